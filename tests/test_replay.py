"""A study that is rebuilt from its record goes on through whatever happens as the live one does, to the bit."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.storage import MemoryStorage

ARMS, KERNEL = nr.Arms.grid(0, 1, 12), nr.Matern(2.5, 0.3)
BEFORE, AFTER = 30, 100
SPACE = nr.Space(kind=nr.Choice("a", "b"), x=nr.Float(0, 1), y=nr.when("kind", "b", nr.Float(0, 1)))
SEARCH = nr.slots.PointSearch(candidates=8, around=4, starts=1, evaluations=2)
POLICIES = {
    "two channels": nr.gp_ucb(
        ARMS, KERNEL, noise=0.2, pending=nr.slots.Imputed(),
        constraints=nr.EveryRound(count=2, noise=0.1, pending=nr.slots.Imputed(minimum=-1.0)),
    ),
    "prices": nr.gp_ucb(ARMS, KERNEL, noise=0.2, constraints=nr.OnAverage(count=2, noise=0.1, epoch=3)),
    "runs": nr.gp_ucb(ARMS, KERNEL, noise=0.2, switching="lazy"),
    "lengthscales": nr.algorithms.lb_gp_ucb(ARMS, KERNEL, noise=0.2, norm_bound=1.0),
    "adaptive": nr.gp_ucb(ARMS, KERNEL, noise=0.2, memory="adaptive"),
    "counts": nr.auto(ARMS, reward=nr.slots.Poisson(ceiling=4.0)),
    "exposed": nr.auto(ARMS, reward=nr.slots.Poisson(ceiling=4.0)).using(
        pending=nr.slots.Exposed(wait=5.0, in_time=True, failed="worst")
    ),
    "conditional": nr.auto(SPACE, noise=0.2).using(
        search=SEARCH, pending="hallucinate", refit=nr.slots.Refit(every=20, restarts=0)
    ),
}  # fmt: skip


def told(study, trial, drawn):
    """A reward that any of the policies takes, and constraint values."""
    value = float(round(abs(2.0 * np.sin(5.0 * trial.point.sum()) + drawn)))
    limits = [float(np.cos(7.0 * trial.point.sum() + j)) for j in range(study.policy.constraint_count)] or None
    return value, limits


def happen(study, seed, count):
    """So many things, by chance and by what is on record; gives every decision."""
    rng, decided = np.random.default_rng(seed), []
    for _ in range(count):
        kind, pick, drawn = rng.random(), int(rng.integers(10**6)), float(rng.standard_normal())
        trials = study.trials
        waiting = [trial for trial in trials if trial.open]
        if kind < 0.5 or not waiting:
            among = {"exclude": [0, 1]} if isinstance(study.policy.domain, nr.Arms) and pick % 5 == 0 else {}
            trial = study.ask(lease=3.0 if pick % 7 == 0 else None, **among)
            decided.append((trial.number, trial.point.tobytes(), trial.explored, trial.repeats))
            continue
        trial = waiting[pick % len(waiting)]
        value, limits = told(study, trial, drawn)
        if kind < 0.8:
            if limits and pick % 4 == 0 and trial.constraints is None:
                study.tell(trial, constraints=limits)
            else:
                study.tell(trial, value, constraints=None if trial.constraints is not None else limits)
        elif kind < 0.86:
            study.fail(trial, "failed")
        elif kind < 0.92 and trial.state == "pending":
            study.abandon(trial, "gone")
        else:
            study.add(trial.point, value, constraints=limits)
    return decided


@pytest.mark.parametrize("name", POLICIES)
def test_live_and_replayed_go_on_alike(name):
    now = [0.0]
    live, replayed = (nr.Study(POLICIES[name], seed=4, storage=MemoryStorage(), clock=lambda: now[0]) for _ in range(2))
    for study in (live, replayed):
        study.quiet = True
        happen(study, 1, BEFORE)
    replayed.replica.rebuild()
    now[0] = 5.0  # leases are over
    decided = [happen(study, 2, AFTER) for study in (live, replayed)]
    assert len(decided[0]) > AFTER // 3
    assert decided[0] == decided[1]
    assert list(live.trials) == list(replayed.trials)
    point = live.trials[0].point[None]
    seen = [(*study.bounds(point), study.multipliers, [study.width]) for study in (live, replayed)]
    assert [np.asarray(each).tobytes() for each in seen[0]] == [np.asarray(each).tobytes() for each in seen[1]]
