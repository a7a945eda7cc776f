"""What the cached state of a study saves whoever opens it, and what it costs.

    python benchmarks/replicas.py

Studies in SQLite files are opened by a replay of their record and from the state that is kept beside it, one after the
other in one run: processor time and events taken in, size, what keeping the state costs, in seconds and in decisions of
this study, and whether what is believed and decided next is the same to the bit. Then a server process is started on a
study that another one has worked on, with its state and without it, and asked what is best.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

import noregret as nr
from noregret.storage import Change, SqlStorage
from noregret.study.cached import SHARE
from noregret.study.program import program
from noregret.study.standing import _said

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.service_parts.servers import Connection, Server

ARMS = nr.Arms.grid(0, 1, 100)
K = nr.Matern(2.5, 0.2)
BOX = nr.Box([0, 0], [1, 1])
LOOKS = 5  # decisions that are timed in the end
AT = "/v1/studies/shop"


class Case(NamedTuple):
    name: str
    policy: nr.Policy
    trials: int


def cases(trials, boxes):
    yield Case("arms", nr.gp_ucb(ARMS, K, noise=0.1), trials)
    yield Case("arms, fits (`auto`)", nr.auto(ARMS), trials)
    yield Case("arms, memory='adaptive'", nr.gp_ucb(ARMS, K, noise=0.1, memory="adaptive"), max(trials // 4, 10))
    yield Case("arms, a budget", nr.gp_ucb(ARMS, K, noise=0.1, constraints=nr.OnAverage()), max(trials // 4, 10))
    for count in boxes:
        yield Case("box (`auto`)", nr.auto(BOX), count)
    yield Case("box, a constraint (`auto`)", nr.auto(BOX, constraints=1), max(boxes[0] // 2, 10))


def answer(study, trial, rng):
    x = trial.point
    values = [float(x.sum() - 1.2)] * study.policy.constraint_count or None
    study.tell(trial, float(np.sin(9.0 * x[0]) + 0.3 * x[-1] + 0.1 * rng.normal()), constraints=values)


def played(case, url):
    """Put a study there; returns processor seconds of a decision in the end."""
    study, rng = nr.Study(case.policy, seed=1), np.random.default_rng(0)
    study.quiet = True
    box = isinstance(case.policy.domain, nr.Box)
    for number in range(case.trials):
        early = box and number < case.trials - LOOKS
        if number == case.trials - LOOKS:
            begin = time.process_time()
        # On boxes most points are drawn: a decision of the policy's own takes some tens of milliseconds.
        answer(study, study.ask(among=rng.random((1, 2))) if early else study.ask(), rng)
    decision, storage = (time.process_time() - begin) / LOOKS, SqlStorage(url)
    text = case.policy.to_json()
    stored = storage.find_or_make("study", policy=text, goal="maximize", seed=1, about="{}")
    with storage.writing(stored) as writer:  # one commit for all
        writer.save([Change(None, trial) for trial in study.trials], order=2 * case.trials)
    storage.close()
    return decision


def check(true, why):
    if not true:
        raise RuntimeError(why)


def send(connection, method, path, body):
    status, said = connection.send(method, path, body)
    check(status in (200, 201), said)
    return said


def opened(url):
    begin = time.process_time()
    study = nr.Study.open(storage=url)
    return study, time.process_time() - begin


def look(number, case, folder):
    url = f"sqlite:///{folder}/{number}.db"
    decision = played(case, url)
    replayed, slow = opened(url)
    replayed._kept.cache.drop()  # which a long replay has kept
    begin = time.process_time()
    outcome = replayed._kept.keep_state()
    cost = time.process_time() - begin
    restored, fast = opened(url)
    check(outcome.kept, outcome.why)
    record = replayed._kept.record
    same = _said(replayed._kept.state, record) == _said(restored._kept.state, record)
    print(
        f"{case.name:27s} {case.trials:6d} {slow:9.2f} s {fast:7.2f} s {slow / fast:7.1f} "
        f"{replayed._kept.replayed:6d} / {restored._kept.replayed} {outcome.size / 1e6:8.2f} MB {cost:6.3f} s "
        f"{cost / decision:9.1f}   {'yes' if same else 'NO'}",
        flush=True,
    )


def served(trials, folder):
    """Seconds of processor until a server that starts has given its first decision, without and with a state."""
    url = f"sqlite:///{folder}/served.db"
    policy = nr.auto(ARMS)
    first = Server.of_studies(url)
    first.begin()
    connection = Connection(first.port)
    send(connection, "PUT", AT, {"policy": json.loads(policy.to_json()), "seed": 1})
    for number in range(trials):
        decision = send(connection, "POST", f"{AT}/decisions", {})["decisions"][0]
        reward = float(np.sin(9.0 * decision["arm"] / 100) + 0.1 * np.cos(50.0 * number))
        send(connection, "PUT", f"{AT}/decisions/{decision['id']}/reward", {"reward": reward})
    connection.close()
    first.end()
    found = {}
    for how in ("with", "without"):
        name = SqlStorage(url).names()[0]
        if how == "without":
            storage = SqlStorage(url)
            storage.drop_state(storage.find(name))
        kept = nr.Study.open(storage=url, name=name)._kept if how == "with" else None
        server = Server.of_studies(url)
        server.begin()
        connection, before = Connection(server.port), server.cpu
        said = send(connection, "GET", f"{AT}/best", None)
        found[how] = server.cpu - before, said
        connection.close()
        server.kill()
        if kept is not None:
            events = kept.cache.found_at, kept.record.order
    (fast, one), (slow, other) = found["with"], found["without"]
    print(
        f"\na second server, {trials} decisions and rewards on 100 arms (`auto`): first answer after {slow:.2f} s by "
        f"replay, {fast:.2f} s from the state of {events[0]} of {events[1]} events, {slow / max(fast, 0.01):.1f} "
        f"times; the same answer: {'yes' if one == other else 'NO'}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000, help="on arms")
    parser.add_argument("--boxes", type=int, nargs="+", default=[500, 1000, 3000], help="trials on boxes")
    parser.add_argument("--served", type=int, default=1500, help="decisions of the first server")
    options = parser.parse_args()
    warnings.simplefilter("ignore", nr.NoRegretWarning)
    print(f"processor time; a service spends {100 * SHARE:.0f} % of that of its decisions at most on keeping states")
    print(f"{'':27s} trials     replay    cached   ratio       events        size   keeping   decisions  same")
    program()  # once in a process
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases(options.trials, options.boxes)):
            look(number, case, folder)
        served(options.served, folder)


if __name__ == "__main__":
    main()
