"""Decisions with their rewards by many clients at once, against a floor of the same HTTP library in the same run."""

import statistics
import threading
import time
from pathlib import Path

import nilregret as nr

from .servers import Connection, Server

# One transaction a request with the rows of a decision, without a policy, an API or a check.
FLOOR = """
import sqlite3, sys, uvicorn

connection = sqlite3.connect(sys.argv[2], isolation_level=None)
for statement in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL",
                  "CREATE TABLE studies (id INTEGER PRIMARY KEY, events INTEGER)", "INSERT INTO studies VALUES (1, 0)",
                  "CREATE TABLE trials (number INTEGER PRIMARY KEY, text TEXT)"):
    connection.execute(statement)

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    await receive()
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO trials (text) VALUES (?)", ("x" * 280,))
    connection.execute("UPDATE studies SET events = events + 1")
    connection.execute("COMMIT")
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": b"{}"})

uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), http="httptools", log_level="error", access_log=False)
"""
LIST = 10


def cpu(server):
    """Seconds of processor of a server and its processes."""
    pid = server.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sum(time.clock_gettime(~each << 3 | 2) for each in (pid, *map(int, children)))


def by_clients(server, clients, count, do):
    """Milliseconds of processor for each of `do(connection, client, number)`, and how many there are in a second."""
    faults = []

    def client(number):
        connection = Connection(server.port)
        try:
            for turn in range(count):
                do(connection, number, turn)
        except BaseException as error:
            faults.append(error)
        finally:
            connection.close()

    crowd = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    used, began = cpu(server), time.perf_counter()
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    took, used, total = time.perf_counter() - began, cpu(server) - used, clients * count
    if faults:
        raise faults[0]
    return 1e3 * used / total, total / took


def pair(connection, studies, client, key):
    study = f"/v1/studies/{studies[client % len(studies)]}"
    _, said = connection.send("POST", f"{study}/decisions", {}, key=key)
    id_ = said["decisions"][0]["id"]
    status, said = connection.send("PUT", f"{study}/decisions/{id_}/reward", {"reward": 0.01 * (client % 7)})
    if status != 200:
        raise RuntimeError(said)


def ten(connection, study, key):
    _, said = connection.send("POST", f"/v1/studies/{study}/decisions", {"count": LIST}, key=key)
    items = [{"id": each["id"], "reward": 0.1} for each in said["decisions"]]
    connection.send("POST", f"/v1/studies/{study}/rewards", {"items": items})


def sqlite(policy, folder, *, clients, count, blocks):
    """Rows of a table (see `rows`): two requests of the floor, a pair, and a pair in lists."""
    url = f"sqlite:///{folder}/pairs.db"
    nr.Study(policy, storage=url, name="shop").close()
    floor, shop = Server("-c", FLOOR, None, f"{folder}/floor.db"), Server.of_studies(url)
    kinds = {
        "two requests of the floor": (floor, 2 * count, 0.5, lambda c, *_: c.send("POST", "/", {})),
        "a pair": (shop, count, 1.0, None),
        f"a pair in lists of {LIST}": (shop, max(count // LIST, 1), LIST, None),
    }
    found = {kind: [] for kind in kinds}
    for server in (floor, shop):
        server.begin()
    try:
        for block in range(blocks + 1):
            tag = str(block)
            does = {
                "a pair": lambda c, i, t, tag=tag: pair(c, ["shop"], i, f"{tag}-{i}-{t}"),
                f"a pair in lists of {LIST}": lambda c, i, t, tag=tag: ten(c, "shop", f"{tag}-{i}-{t}-ten"),
            }
            for kind, (server, times, each, do) in kinds.items():
                used, rate = by_clients(server, clients, times, does.get(kind, do))
                found[kind].append((used / each, rate * each))
    finally:
        for server in (floor, shop):
            server.end()
    return rows(found, "two requests of the floor")


def postgresql(policy, postgres, *, clients, count, blocks):
    """Rows of a table, for one process and two, on as many studies as clients, and on a single one."""
    studies = [f"s{number}" for number in range(clients)]
    servers = {}
    for processes in (1, 2):
        url = postgres.url()
        for name in (*studies, "one"):
            nr.Study(policy, storage=url, name=name).close()
        more = () if processes == 1 else ("--workers", str(processes))
        servers[processes] = Server("-m", "nilregret", "serve", "--storage", url, "--port", None, *more)
    found = {(many, processes): [] for many in ("many studies", "one study") for processes in servers}
    for server in servers.values():
        server.begin()
    try:
        for block in range(blocks + 1):
            for (many, processes), of in found.items():
                names = studies if many == "many studies" else ["one"]
                of.append(
                    by_clients(
                        servers[processes], clients, count,
                        lambda c, i, t, names=names, block=block: pair(c, names, i, f"{block}-{i}-{t}"),
                    )
                )  # fmt: skip
    finally:
        for server in servers.values():
            server.end()
    return [
        row
        for many in ("many studies", "one study")
        for row in rows({f"{many}, {n} process(es)": found[many, n] for n in servers}, f"{many}, 1 process(es)")
    ]


def rows(found, base):
    """Medians over blocks, the first of which is a warm-up: processor, ratio to the base, rate, ratio to the base."""
    made = []
    for kind, blocks in found.items():
        each, floors = blocks[1:], found[base][1:]
        ratios = [statistics.median(a[part] / b[part] for a, b in zip(each, floors, strict=True)) for part in (0, 1)]
        made.append([
            kind, statistics.median(used for used, _ in each), ratios[0], statistics.median(rate for _, rate in each),
            ratios[1],
        ])  # fmt: skip
    return made
