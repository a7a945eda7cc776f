"""A log of many rows in one request: seconds, memory of the server, decisions meanwhile, and a kill half-way."""

import contextlib
import json
import random
import sqlite3
import threading
import time
from pathlib import Path

import nilregret as nr
from nilregret.client.remote import RemoteStudy
from nilregret.client.session import Session
from nilregret.errors import ServiceError

from .servers import Connection, Server

CONTEXT = nr.Space(hour=nr.Float(0, 24), device=nr.Choice("phone", "desk"))
KINDS = {
    "4 arms": nr.auto(nr.Arms(range(4)), reward="bernoulli"),
    "4 arms, 2 contexts": nr.auto(nr.Arms(range(4)), context=CONTEXT, reward="bernoulli"),
}
PAUSE = 0.05  # seconds between decisions


def log(path, count, *, contexts):
    rng = random.Random(0)
    with path.open("w") as file:
        for _ in range(count):
            row = {"arm": rng.randrange(4), "propensity": 0.25, "reward": int(rng.random() < 0.3)}
            context = {"hour": round(24 * rng.random(), 3), "device": rng.choice(["phone", "desk"])}
            file.write(json.dumps(row | ({"context": context} if contexts else {})) + "\n")
    return path


def run(folder, *, count):
    """A row for each kind: seconds, MB of the server before and at most, ms of decisions, and rows after a kill."""
    found = []
    for kind, policy in KINDS.items():
        path = log(Path(folder) / "log.jsonl", count, contexts=policy.context is not None)
        for database in ("sent", "killed"):
            file = Path(folder) / f"{len(kind)}-{database}.db"
            url = f"sqlite:///{file}"
            nr.Study(policy, storage=url, name="shop", propensities=True).close()
            server = Server.of_studies(url)
            server.begin()
            try:
                if database == "sent":
                    row = [kind, *_sent(server, path, policy)]
                else:
                    row.append(_killed(server, path, file, count))
            finally:
                server.end()
        found.append(row)
    return found


def _sent(server, path, policy):
    context = {} if policy.context is None else {"context": {"hour": 3.0, "device": "desk"}}
    connection, seconds = Connection(server.port), []

    def decide():
        at = time.perf_counter()
        status, said = connection.send("POST", "/v1/studies/shop/decisions", context)
        seconds.append(time.perf_counter() - at)
        if status != 201:
            raise RuntimeError(said)

    decide()
    before = server.memory
    seconds.clear()
    sending = threading.Thread(target=_send, args=(server, path))
    began = time.perf_counter()
    sending.start()
    while sending.is_alive():
        decide()
        time.sleep(PAUSE)
    took = time.perf_counter() - began
    ordered = sorted(1e3 * each for each in seconds)
    return took, before, server.memory, len(ordered), ordered[len(ordered) // 2], ordered[-1]


def _send(server, path):
    session = Session(f"http://127.0.0.1:{server.port}", token=None, timeout=300.0, attempts=1)
    try:
        return RemoteStudy(session, "shop").add_from(path)
    finally:
        session.close()


def _on_record(file):
    with contextlib.closing(sqlite3.connect(file)) as database:
        return database.execute("SELECT count(*) FROM trials WHERE reward IS NOT NULL").fetchone()[0]


def _killed(server, path, file, count):
    """Rows on record after a kill half-way, and the same request again."""

    def killed():
        with contextlib.suppress(ServiceError):
            _send(server, path)

    sending = threading.Thread(target=killed)
    sending.start()
    while _on_record(file) < count // 2:
        time.sleep(PAUSE)
    server.kill()
    sending.join()
    server.begin()
    said, on_record = _send(server, path), _on_record(file)
    if (said.rows, said.recorded, on_record) != (count, count, count):
        raise RuntimeError(f"{said}, and {on_record} on record, of {count}.")
    return said.new
