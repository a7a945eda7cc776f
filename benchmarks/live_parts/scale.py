"""1,000 arms under contexts of 50 columns: what a decision costs, what a study holds, and how soon it opens.

The record is written straight through the storage, with arms at random, since a million decisions would take an hour.
It is then opened three times, each time in a process of its own: by a replay, after which a snapshot is written; from
that snapshot; and from one after a kill, with half as many events behind it as lie between two snapshots. Each process
then decides. Processor time, since the machine has other things to do.
"""

import resource
import tempfile
import time
from pathlib import Path

import bench
import numpy as np

import nilregret as nr
from nilregret.storage import Change, SqlStorage
from nilregret.study import snapshots

ARMS, COLUMNS, DECISIONS, MORE, BLOCK = 1000, 50, 1_000_000, 2000, 5000
SPREAD, LEAST, MOST = 0.3, 0.05, 0.1  # of the weights of an arm, and of its clicks


def clicked(weights, contexts, rng):
    """Whether a click came, for each row."""
    chance = LEAST + MOST / (1.0 + np.exp(-np.einsum("ij,ij->i", weights, contexts - 0.5)))
    return (rng.random(len(contexts)) < chance).astype(float)


def world(rng):
    """Weights of the columns, for each arm."""
    return SPREAD * rng.standard_normal((ARMS, COLUMNS))


def written(url, decisions):
    """Writes a study of so many decisions, each with its answer."""
    policy = nr.auto(nr.Arms(range(ARMS)), context=nr.Box([0] * COLUMNS, [1] * COLUMNS), reward="bernoulli")
    study, rng = nr.Study(policy, seed=0, storage=url, name="shop"), np.random.default_rng(0)
    weights, handle = world(rng), study.replica.handle
    first = study.tell(study.ask(rng.random(COLUMNS)), 0.0)
    for number in range(1, decisions, BLOCK):
        count = min(BLOCK, decisions - number)
        contexts, arms = rng.random((count, COLUMNS)), rng.integers(ARMS, size=count)
        rewards = clicked(weights[arms], contexts, rng)
        changes = [
            Change(None, first._replace(
                number=number + i, arm=int(arms[i]), point=policy.domain.points[arms[i]], context=contexts[i],
                asked_order=2 * (number + i) + 1, told_order=2 * (number + i) + 2, reward=float(rewards[i]),
            ))
            for i in range(count)
        ]  # fmt: skip
        with handle.storage.writing(handle.study) as writer:
            writer.save(changes, order=2 * (number + count))


def timed(call):
    begin = time.process_time()
    found = call()
    return time.process_time() - begin, found


def opened(url, more, *, killed=False):
    """Opens the study, decides, and closes it unless it is `killed`: seconds, us of an ask and a tell, and MB."""
    bench.quiet(nr.auto(nr.Arms(range(2)), context=nr.Box(0, 1), reward="bernoulli")).ask([0.5])  # imports
    checking, storage = timed(lambda: SqlStorage(url))
    opening, study = timed(lambda: nr.Study.open(storage=storage, name="shop"))
    quick = not isinstance(study.replica.record.trials, list)
    rng = np.random.default_rng(1)
    weights = world(np.random.default_rng(0))
    learning, trial = timed(lambda: study.ask(rng.random(COLUMNS)))
    study.tell(trial, 0.0)
    held, asking, telling = resident(), [], []
    for _ in range(more):
        context = rng.random(COLUMNS)
        seconds, trial = timed(lambda context=context: study.ask(context))
        asking.append(seconds)
        reward = float(clicked(weights[[trial.arm]], context[None], rng)[0])
        telling.append(timed(lambda trial=trial, reward=reward: study.tell(trial, reward))[0])
    found = {
        "quick": quick, "checking": checking, "opening": opening + learning, "ask": 1e6 * np.median(asking),
        "mean": 1e6 * np.mean(asking), "tell": 1e6 * np.median(telling), "held": held, "peak": bench.peak(),
        "grown": resident() - held,
    }  # fmt: skip
    if not killed:
        study.close()
    return found


def opened_and_killed(url, more):
    """The same without an end, so that no snapshot is written of what came last."""
    return opened(url, more, killed=True)


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def scale(report):
    """Row scale."""
    decisions = report.rounds or DECISIONS
    more = min(MORE, decisions)
    behind = snapshots.EVERY // 4  # decisions, of two events each
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/studies.db"
        bench.apart(written, url, decisions)
        size = Path(folder, "studies.db").stat().st_size / 2**20
        each = {
            "a replay": bench.apart(opened, url, more),
            "a snapshot": bench.apart(opened_and_killed, url, min(behind, decisions)),
            "a snapshot, after a kill": bench.apart(opened, url, more),
        }
    rows = [
        [
            name if one["quick"] or name == "a replay" else f"{name} (none so early)", f"{one['checking']:.1f}",
            f"{one['opening']:.1f}", f"{one['ask']:.0f}", f"{one['mean']:.0f}", f"{one['tell']:.0f}",
            f"{one['held']:.0f}", f"{one['peak']:.0f}", f"{1024 * one['grown'] / more:.2f}",
        ]
        for name, one in each.items()
    ]  # fmt: skip
    report.keep("scale", f"{decisions} decisions", "auto", range(1), **{
        f"{name}: {key}": [value] for name, one in each.items() for key, value in one.items()
    })  # fmt: skip
    head = [
        "opened from", "file checked, s", "opened and first decision, s", "ask, us", "mean", "tell, us", "held, MB",
        "peak, MB", "grows by a decision, KB",
    ]  # fmt: skip
    report.show(
        f"{ARMS} arms, {COLUMNS} columns, {decisions} decisions in an SQLite file of {size:.0f} MB, processor time",
        head, rows,
    )  # fmt: skip
