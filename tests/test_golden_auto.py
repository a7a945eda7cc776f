"""Decisions of `auto`, and of parts that no algorithm plays by default, on every kind of domain: a change is seen here.

After a change that is meant to alter decisions write them anew: python tests/golden/write.py
"""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import nilregret as nr
from nilregret.domains.domain import alike

GOLDEN = Path(__file__).parent / "golden" / "auto.json"
ARMS = nr.Arms.grid(0, 1, 15)
BOX = nr.Box([0.0, -1.0], [1.0, 1.0])
SPACE = nr.Space(rate=nr.Float(1e-3, 1, log=True), layers=nr.Int(1, 8), kind=nr.Choice("a", "b", "c"))
CONDITIONAL = nr.Space(kind=nr.Choice("a", "b"), x=nr.Float(0, 1), m=nr.when("kind", "a", nr.Float(0, 1)))
MATERN = nr.Matern(2.5, 0.2)
told = {"noise": 0.1, "norm_bound": 2}


def value(rng, trial):
    x = np.atleast_1d(trial.point)
    return float(np.sin(5 * x[0]) + 0.3 * np.sum(x**2) - 0.2 * x[-1]) + 0.05 * rng.standard_normal()


def play(policy, rounds, *, reward=value, context=None, constraints=0, wait=1):
    """Arms or points of `rounds` decisions; every seventh trial fails, and rewards come in batches of `wait`."""
    study, rng, points, waiting = nr.Study(policy, seed=3), np.random.default_rng(5), [], []
    for t in range(rounds):
        trial = study.ask() if context is None else study.ask(context(rng))
        points.append(trial.point.tolist() if trial.arm is None else trial.arm)
        known = {"constraints": [float(np.atleast_1d(trial.point)[0]) - 0.6] * constraints} if constraints else {}
        said = reward(rng, trial)
        if t % 7 == 6:
            study.fail(trial, "no reward")
            continue
        waiting.append((trial, said, known))
        if t % wait == 0:
            for each, number, beside in waiting:
                study.tell(each, number, **beside)
            waiting = []
    return points


def parted(case, one, other):
    """The first round in which the decisions are not the same but for what another machine may round otherwise."""
    domain = case.args[0].domain
    for t, (here, there) in enumerate(zip(one, other, strict=True)):
        if not (here == there or (isinstance(here, list) and alike(domain, np.array(here), np.array(there)))):
            return t, here, there
    return None


CASES = {
    "arms": partial(play, nr.auto(ARMS), 30),
    "box": partial(play, nr.auto(BOX), 24),
    "space": partial(play, nr.auto(SPACE), 26),
    "conditional space": partial(play, nr.auto(CONDITIONAL), 24),
    "grid of a space": partial(play, nr.auto(SPACE.grid(4)), 24),
    "parallel": partial(play, nr.auto(SPACE, parallel=3), 20, wait=3),
    "constraints": partial(play, nr.auto(BOX, constraints=1), 18, constraints=1),
    "context in a box": partial(
        play, nr.auto(ARMS, context=nr.Box([0.0], [1.0]), regret="simple"), 20, context=lambda rng: rng.random(1)
    ),
    "every reward counts": partial(
        play, nr.auto(ARMS, context=nr.Box([0.0], [1.0])), 60, context=lambda rng: rng.random(1)
    ),
    "every reward counts, on arms": partial(play, nr.auto(ARMS, regret="cumulative"), 20),
    "context among arms": partial(
        play, nr.auto(ARMS, context=nr.Arms([0, 0.5, 1.0])), 20, context=lambda rng: [0.5 * rng.integers(3)]
    ),
    "context in a space": partial(
        play, nr.auto(nr.Space(p=nr.Float(1, 2)), context=nr.Space(h=nr.Float(0, 24))), 16,
        context=lambda rng: {"h": float(rng.uniform(0, 24))},
    ),
    "yes and no": partial(
        play, nr.auto(ARMS, reward="bernoulli"), 60, reward=lambda rng, trial: float(rng.random() < 0.3)
    ),
    "counts": partial(play, nr.auto(ARMS, reward="poisson"), 40, reward=lambda rng, trial: float(rng.poisson(2))),
    "switching": partial(play, nr.auto(ARMS, world="switching"), 40),
    "drifting": partial(play, nr.auto(ARMS, world="drifting"), 40),
    "silent no": partial(play, nr.auto(ARMS, answers="silent no"), 30, wait=2),
    "unknown answers": partial(play, nr.auto(ARMS, answers="unknown"), 30, wait=2),
    "late": partial(play, nr.auto(BOX, answers="late"), 14, wait=2),
    "on average": partial(play, nr.gp_ts(ARMS, MATERN, **told, constraints=nr.OnAverage()), 30, constraints=1),
    "every round": partial(play, nr.igp_ucb(ARMS, MATERN, **told, constraints=nr.EveryRound()), 30, constraints=1),
    "adaptive on a box": partial(
        play, nr.gp_ts(BOX, nr.SquaredExponential([0.3, 0.5]), **told, memory="adaptive"), 14
    ),
    "hallucinated": partial(play, nr.gp_ucb(ARMS, MATERN, noise=0.1, pending="hallucinate"), 30, wait=3),
    "bank of lengthscales": partial(play, nr.gp_ucb(ARMS, MATERN, noise=0.1, refit=nr.slots.LengthscaleBank()), 25),
    "bank of rates": partial(play, nr.gp_ts(ARMS, MATERN, **told, memory=nr.slots.DriftBank()), 30),
    "without noise": partial(
        play, nr.igp_ucb(ARMS, MATERN, noise=0, norm_bound=3), 24,
        reward=lambda rng, trial: float(np.sin(5 * trial.point[0])),
    ),
    "linear": partial(play, nr.gp_ts(BOX, nr.Linear(), **told), 12),
    "sketch": partial(
        play,
        nr.igp_ucb(BOX, nr.Matern(2.5, 0.4), noise=0.1, norm_bound=1, width="ay").using(sketch=nr.slots.Sketch()),
        14,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_decisions_are_those_on_record(name):
    assert parted(CASES[name], CASES[name](), json.loads(GOLDEN.read_text())[name]) is None
