"""A study of the service: tokens, notes, decisions by their idempotency keys, late answers, an evaluation."""

import secrets
from unittest.mock import patch

from nilregret.serve.auth.tokens import Tokens
from nilregret.storage import SqlStorage

from ..service import Client
from .kinds import Clock
from .tables import dump

AT = "/v1/studies/shop"
POLICY = {"arms": [[0.0], [0.3], [0.6], [1.0]], "policy": {"algorithm": "gp_ts", "reward": "bernoulli", "v": 0.6,
          "kernel": {"type": "matern", "nu": 2.5, "lengthscale": 0.3}}}  # fmt: skip
BODY = POLICY | {"seed": 7, "deadline": 150.0, "on_deadline": "reward", "default_reward": 0.0, "propensities": True}
ROUNDS, FURTHER = 8, 4


def decided(client, headers, key):
    status, said = client.run(client.send("POST", f"{AT}/decisions", {}, key=key, headers=headers))
    assert status in (200, 201), said
    return said["decisions"][0]


def answered(client, headers, id_, reward):
    return client.send("PUT", f"{AT}/decisions/{id_}/reward", {"reward": reward}, headers=headers)


def round_(client, clock, headers, at):
    """Decides and answers most; returns the decision."""
    found = decided(client, headers, f"visit-{at}")
    if at % 3:
        reward = float((found["number"] * 7 + 3 * found["arm"]) % 5 < 2)
        status, said = client.run(answered(client, headers, found["id"], reward))
        assert status == 200, said
    clock.now += 60.0
    return found


def served(database, path):
    """Writes the file, and returns decisions by which it is known: one made before, and the next ones."""
    storage, clock = SqlStorage(f"sqlite:///{database}"), Clock()
    with patch.object(secrets, "token_urlsafe", lambda _: "a" * 43):
        tokens = Tokens(storage, clock=clock)
        secret = tokens.new("admin", "shops", about="the till")
        cookie = tokens.log_in(secret)
    headers = {"Authorization": f"Bearer {secret}"}
    with Client(storage, clock=clock) as client:
        status, said = client.run(client.send("PUT", AT, BODY, headers=headers))
        assert status == 201, said
        first = [round_(client, clock, headers, at) for at in range(ROUNDS)]
        told = client.run(answered(client, headers, first[0]["id"], 1.0))  # After its deadline.
        assert (told[0], told[1]["late"]) == (200, True), told
        status, said = client.run(client.send("PATCH", AT, {"note": "of summer", "tags": ["a", "b"]}, headers=headers))
        assert status == 200, said
        dump(database, path)
        further = [round_(client, clock, headers, at)["arm"] for at in range(ROUNDS, ROUNDS + FURTHER)]
    storage.close()
    return {
        "secret": secret,
        "cookie": cookie,
        "first": [(each["id"], each["arm"]) for each in first],
        "further": further,
    }
