"""A long record is replayed faster than it came about, and to the last bit as if it had come about again."""

import subprocess
import sys

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp import PointPosterior, triangle
from nilregret.study.transaction import Transaction

from .waiting import LONG

KERNEL = nr.Matern(2.5, 0.2)


def grown(points, looks=(), ends=()):
    """A posterior that learned points one by one; after some of them it does something else, or is looked at."""
    posterior = PointPosterior(KERNEL, points.shape[1], 0.01)
    for number, point in enumerate(points):
        posterior.append(point, float(np.sin(7 * point).sum()))
        for end in ends:
            end(posterior, number, points)
        if number in looks:
            posterior.predict(points[:3])
    return posterior


def forget_one(posterior, number, points):
    if number == 70:
        posterior.forget(points[30], float(np.sin(7 * points[30]).sum()))


def repeat_one(posterior, number, points):
    if number == 64:
        posterior.append(points[4], 0.5)


def several_at_once(posterior, number, points):
    if number == 61:
        posterior.extend(3.0 + np.arange(30.0).reshape(15, 2), np.ones(15))


def window(posterior, number, points):
    """The size goes up and down about the end of a block."""
    if number >= 32:
        posterior.forget(points[number - 32], float(np.sin(7 * points[number - 32]).sum()))


@pytest.mark.parametrize(
    "ends", [(), (repeat_one,), (forget_one,), (several_at_once, repeat_one, forget_one), (window,)]
)
@pytest.mark.parametrize("scale", [1.0, 1e-7], ids=["apart", "nearly coinciding"])
def test_when_a_posterior_is_looked_at_changes_no_bit(ends, scale, monkeypatch):
    monkeypatch.setattr(triangle, "BLOCK", 32)
    points = scale * np.random.default_rng(0).random((100, 2))
    points[80] = points[20]  # one comes again
    last = grown(points, ends=ends)
    for looks in (range(100), {31, 32, 50, 63, 64, 90}):
        other = grown(points, looks, ends)
        np.testing.assert_array_equal(last.factor_rows(0, last.rank), other.factor_rows(0, other.rank))
        np.testing.assert_array_equal(last.half, other.half)
        np.testing.assert_array_equal(last.predict(points[:9] + 0.1), other.predict(points[:9] + 0.1))
        np.testing.assert_array_equal(last.copy().weights, other.weights)


def test_rows_are_computed_one_by_one_for_the_last_block_only(monkeypatch):
    """A replay of a long record on a box costs what the products of its full blocks cost."""
    monkeypatch.setattr(triangle, "BLOCK", 32)
    added, add = [], PointPosterior._add
    monkeypatch.setattr(PointPosterior, "_add", lambda *args: added.append(args[1:]) or add(*args))
    grown(np.random.default_rng(0).random((67, 2)), {66})
    assert added == [(0, 32), (32, 64), (64, 65), (65, 66), (66, 67)]


def test_a_block_is_the_factor_of_what_it_holds(monkeypatch):
    monkeypatch.setattr(triangle, "BLOCK", 32)
    posterior = grown(np.random.default_rng(1).random((100, 2)), range(100))
    matrix = KERNEL(posterior.points, posterior.points) + 0.01 * np.eye(100)
    np.testing.assert_allclose(posterior.factor_rows(0, 100), np.linalg.cholesky(matrix), atol=1e-12)


@pytest.mark.parametrize("hallucinates", [False, True])
def test_a_study_on_a_box_opens_again_as_it_was(hallucinates, tmp_path):
    box, more = nr.Box([0.0, 0.0], [1.0, 1.0]), {"search": nr.slots.PointSearch(candidates=16, starts=1)}
    policy = nr.gp_bucb(box, KERNEL, noise=0.1, beta=2.0, **more)
    if not hallucinates:
        policy = nr.igp_ucb(box, KERNEL, noise=0.1, norm_bound=1.0, **more)
    study, rng = nr.Study(policy, storage=f"sqlite:///{tmp_path}/a.db"), np.random.default_rng(0)
    study.quiet = True

    def play():
        """One question and one answer at a time, in one transaction."""
        kept = study.replica
        transaction = Transaction(kept)
        for point in rng.random((560, 2)):
            order = kept.record.order + 1
            decision = study.inputs.point(point)
            trial = kept.put(transaction._trial(decision, None, order=order, now=1e9), "asked")
            kept.put(trial.answered(reward=float(np.sin(7 * point).sum()), order=order + 1, time=1e9), "told")

    study.replica.write(play)
    again = nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")
    probes, live, seen = rng.random((9, 2)), study.replica.current(), again.replica.current()
    assert len(again.trials) == 560
    np.testing.assert_array_equal(seen.envelope(probes).mean, live.envelope(probes).mean)
    np.testing.assert_array_equal(seen.envelope(probes).std, live.envelope(probes).std)
    np.testing.assert_array_equal(seen.decide().point, live.decide().point)


def in_a_new_process(program, *arguments):
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=LONG)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_study_with_any_part_is_opened_by_a_process_that_has_used_none(tmp_path):
    """`Safe` was known only where somebody had said `nr.Safe` before, so neither `Study.open` nor the command line."""
    arms, storage = nr.Arms.grid(0, 1, 9), f"sqlite:///{tmp_path / 'safe.db'}"
    policy = nr.igp_ucb(arms, KERNEL, noise=0.1, norm_bound=2.0, constraints=nr.Safe(start=arms.points[:1], scale=1.0))
    with nr.Study(policy, seed=0, storage=storage, name="safe") as study:
        study.tell(study.ask(), 0.5, constraints=[-1.0])
        following = study.ask().point.tolist()
        study.abandon(1)
    opened = (
        "import sys, nilregret as nr; print(nr.Study.open(storage=sys.argv[1], name='safe').trials[1].point.tolist())"
    )
    assert in_a_new_process(opened, storage).strip() == str(following)


EVERY_PART = """
import importlib, pkgutil
import nilregret
from nilregret import serialize
try:
    serialize._decoder("nothing of that name")
except nilregret.errors.InvalidInput:
    known = set(serialize._DECODERS)
for module in pkgutil.walk_packages(nilregret.__path__, "nilregret."):
    if module.name.split(".")[1] not in ("__main__", "integrations", "papers", "serve", "testing"):
        importlib.import_module(module.name)
print(sorted(set(serialize._DECODERS) - known))
"""


def test_every_described_part_is_found_by_its_name():
    assert in_a_new_process(EVERY_PART).strip() == "[]"


def test_what_a_study_was_made_with_is_said_by_the_names_of_the_parts(tmp_path):
    """As after an upgrade that has changed a default: version 0.2 drew the width of `gp_ucb`."""
    arms, storage = nr.Arms.grid(0, 1, 9), f"sqlite:///{tmp_path / 'old.db'}"
    drawn = nr.irgp_ucb(arms, KERNEL, noise=0.1, shift="half").score
    nr.Study(nr.gp_ucb(arms, KERNEL, noise=0.1).using(score=drawn), storage=storage, name="old").close()
    said = r"other values: score \(RandomisedBound then, UpperConfidenceBound now\).*has other defaults.*nr.Study.open"
    with pytest.raises(nr.errors.InvalidInput, match=said):
        nr.Study(nr.gp_ucb(arms, KERNEL, noise=0.1), storage=storage, name="old")


def test_the_only_study_of_a_storage_opens_without_its_name(tmp_path):
    storage, policy = f"sqlite:///{tmp_path}/one.db", nr.gp_ucb(nr.Arms.grid(0, 1, 3), nr.Matern(2.5, 0.3), noise=0.1)
    nr.Study(policy, storage=storage, name="oven").close()
    assert nr.Study.open(storage=storage).name == "oven"
    nr.Study(policy, storage=storage, name="kiln").close()
    with pytest.raises(nr.errors.InvalidInput, match="it has: 'oven', 'kiln'"):
        nr.Study.open(storage=storage)
