"""What other tenants wait for while one decider asks for a thousand decisions at once."""

import threading
import time

import nilregret as nr
from nilregret.serve.auth.tokens import Tokens, stored_name
from nilregret.storage import SqlStorage

from .servers import Connection, Server

MANY = 1000  # decisions of one request, the most there may be


def slow_policy():
    """Each decision takes in all that is pending, and searches a box."""
    return nr.gp_bucb(nr.Box([0.0, 0.0], [1.0, 1.0]), nr.SquaredExponential(0.1), noise=0.1)


def quick_policy():
    return nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)


class Asking(threading.Thread):
    """The one request, sent again with its key until it is answered: after a minute there is an answer that says so."""

    def __init__(self, connection, count):
        super().__init__(daemon=True)
        self._connection, self._count, self.decisions, self.seconds = connection, count, 0, 0.0

    def run(self):
        began, status = time.perf_counter(), 503
        while status == 503:
            status, said = self._connection.send(
                "POST", "/v1/studies/many/decisions", {"count": self._count}, key="many"
            )
        self.seconds = time.perf_counter() - began
        self.decisions = len(said["decisions"])


PAUSE = 0.02  # seconds between rounds of calls: the service takes so many requests of a tenant a second


def run(url, *, count=MANY, alone=3.0):
    """Seconds of the request, and of another tenant's calls the slowest in milliseconds: (without it, during it).

    Args:
        url: of an empty storage.
        count: decisions of the one request.
        alone: seconds of calls before it.
    """
    storage = SqlStorage(url)
    tokens = Tokens(storage)
    secrets = {tenant: tokens.new("decider", tenant) for tenant in ("many", "other")}
    for tenant, name, policy in (("many", "many", slow_policy()), ("other", "shop", quick_policy())):
        nr.Study(policy, storage=storage, name=stored_name(storage, tenant, name))
    storage.close()
    server = Server.of_studies(url)
    server.begin()
    try:
        other = Connection(server.port, secrets["other"])
        asking = Asking(Connection(server.port, secrets["many"]), count)
        before = slowest(other, lambda since: time.perf_counter() - since < alone)
        asking.start()
        during = slowest(other, lambda _: asking.is_alive())
        asking.join()
    finally:
        server.end()
    if asking.decisions != count:
        raise RuntimeError(f"{asking.decisions} decisions instead of {count}.")
    return asking.seconds, {call: (before[call], during[call]) for call in before}


def slowest(connection, on):
    """Milliseconds of the slowest of each call, one after the other for as long as that."""
    found, since = {}, time.perf_counter()

    def timed(name, method, path, body):
        at = time.perf_counter()
        status, said = connection.send(method, path, body)
        found[name] = max(found.get(name, 0.0), 1e3 * (time.perf_counter() - at))
        if status not in (200, 201):
            raise RuntimeError(f"{method} {path}: {status} {said}")
        return said

    while not found or on(since):
        decided = timed("decision", "POST", "/v1/studies/shop/decisions", {})["decisions"][0]
        timed("reward", "PUT", f"/v1/studies/shop/decisions/{decided['id']}/reward", {"reward": 0.5})
        timed("prediction", "GET", "/v1/studies/shop/predict", None)
        timed("/readyz", "GET", "/readyz", None)
        time.sleep(PAUSE)
    return found
