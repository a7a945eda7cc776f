"""What it costs to open long studies, to explain an old decision, and to begin a service on many studies."""

import gc
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nilregret as nr
from nilregret.serve.auth.tokens import stored_name
from nilregret.storage import SqlStorage

from ..service_parts.servers import Connection, Server
from .records import put, trials_of

ARMS = nr.Arms.grid(0, 1, 100)


class Case(NamedTuple):
    name: str
    policy: nr.Policy
    trials: int
    reward: object = None


def clicks(points, rng):
    return (rng.random(len(points)) < 0.3 + 0.4 * points[:, 0]).astype(float)


def cases(share):
    """All of them, with this share of their trials."""
    box = nr.Box([0.0, 0.0], [1.0, 1.0])
    found = [
        Case("auto, 100 arms", nr.auto(ARMS), 10_000),
        Case("auto, a box in 6 dimensions", nr.auto(nr.Box([0.0] * 6, [1.0] * 6)), 3_000),
        Case("auto, a space of 6 numbers", nr.auto(nr.Space(**{f"x{i}": nr.Float(0, 1) for i in range(6)})), 1_500),
        Case("auto, clicks on 100 arms", nr.auto(ARMS, reward="bernoulli"), 50_000, clicks),
        Case("gp_ucb, 100 arms", nr.gp_ucb(ARMS, nr.Matern(2.5, 0.2), noise=0.1), 10_000),
        Case("a box, a fixed kernel", nr.gp_ucb(box, nr.Matern(2.5, 0.2), noise=0.1), 10_000),
    ]
    return [case._replace(trials=max(int(share * case.trials), 20)) for case in found]


def clocked(act):
    """Seconds of processor, and what came of it."""
    gc.collect()
    begin = time.process_time()
    found = act()
    return time.process_time() - begin, found


def said(study):
    points = np.array([study.trials[0].point, study.trials[7].point])
    decision = study.replica.current().decide(now=study.trials[-1].asked_at)
    return decision.point.tobytes(), *(each.tobytes() for each in study.predict(points))


def table(folder, share):
    """Opens each, twice, and explains a late decision; whether both went on alike."""
    print("processor seconds")
    print(f"{'':30s} trials      open    decided first    explain 90 %   alike")
    alike = True
    for number, case in enumerate(cases(share)):
        url = f"sqlite:///{folder}/open{number}.db"
        storage = SqlStorage(url)
        put(storage, "study", case.policy, trials_of(case.policy, case.trials, reward=case.reward))
        storage.close()
        opened = partial(nr.Study.open, storage=url)
        seconds, study = min((clocked(opened) for _ in range(2)), key=lambda each: each[0])
        first, mine = clocked(partial(said, study))
        same = said(opened()) == mine
        explained = clocked(partial(study.explain, int(0.9 * case.trials)))[0]
        study.close()
        alike = alike and same
        print(
            f"{case.name:30s} {case.trials:6d} {seconds:7.2f} s {first:10.3f} s {explained:13.3f} s   "
            f"{'yes' if same else 'NO'}",
            flush=True,
        )
    return alike


def started(folder, studies, trials):
    """A server on many studies: its list of them, and the first answer of each."""
    path = f"{folder}/many.db"
    policy, storage = nr.gp_ucb(ARMS, nr.Matern(2.5, 0.2), noise=0.1), SqlStorage(f"sqlite:///{path}")
    made = trials_of(policy, trials)
    names = [f"s{number}" for number in range(studies)]
    for name in names:
        put(storage, stored_name(storage, "default", name), policy, made)
    begin = time.process_time()
    listed = storage.summaries()
    whole = time.process_time() - begin
    storage.close()
    server = Server.of_studies(f"sqlite:///{path}")
    server.begin()
    connection = Connection(server.port)
    connection.send("GET", "/readyz", None)  # what beginning costs is no part of it
    before = server.cpu
    status, said = connection.send("GET", "/v1/studies", None)
    after_list = server.cpu
    if (status, len(said["studies"]), len(listed)) != (200, studies, studies):
        raise RuntimeError(f"{status}: {said}")
    for name in names:
        connection.send("GET", f"/v1/studies/{name}/best", None)
    after = server.cpu
    connection.close()
    server.end()
    size = Path(path).stat().st_size / 1e6
    print(
        f"a server on {studies} studies of {trials} trials ({size:.0f} MB): the list {after_list - before:.2f} s "
        f"(summaries alone {whole:.3f} s), the first answer of each {after - after_list:.2f} s\n"
    )
