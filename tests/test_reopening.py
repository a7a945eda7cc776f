"""A long record is replayed faster than it came about, and to the last bit as if it had come about again."""

import subprocess
import sys

import numpy as np
import pytest

import noregret as nr
from noregret.posterior import PointPosterior
from noregret.posterior.ahead import Ahead

KERNEL = nr.Matern(2.5, 0.2)


def grown(points, *, foresees, ends=()):
    """A posterior that learned points one by one; after some of them it does something else."""
    posterior = PointPosterior(KERNEL, points.shape[1], 0.01)
    if foresees:
        posterior.foresee(points)
    for number, point in enumerate(points):
        posterior.append(point, float(np.sin(7 * point).sum()))
        for end in ends:
            end(posterior, number, points)
    return posterior


def forget_one(posterior, number, points):
    if number == 700:
        posterior.forget(points[30], float(np.sin(7 * points[30]).sum()))


def repeat_one(posterior, number, points):
    if number == 640:
        posterior.append(points[40], 0.5)


def two_at_once(posterior, number, points):
    if number == 600:
        posterior.extend(np.array([[3.0, 3.0], [4.0, 4.0]]), [0.5, 0.25])


@pytest.mark.parametrize("ends", [(), (repeat_one,), (forget_one,), (two_at_once, repeat_one, forget_one)])
def test_points_that_are_foreseen_are_learned_bit_for_bit_as_others(ends, monkeypatch):
    points = np.random.default_rng(0).random((850, 2))
    points[800] = points[20]  # one comes again
    used = []
    top = Ahead.top
    monkeypatch.setattr(Ahead, "top", lambda *args: used.append(top(*args)) or used[-1])
    seen, plain = grown(points, foresees=True, ends=ends), grown(points, foresees=False, ends=ends)
    np.testing.assert_array_equal(seen.factor_rows(0, seen.rank), plain.factor_rows(0, plain.rank))
    np.testing.assert_array_equal(seen.half, plain.half)
    np.testing.assert_array_equal(seen.predict(points[:9]), plain.predict(points[:9]))
    assert sum(each is not None for each in used) > 50


def test_where_nothing_is_as_foreseen_nothing_is_lost():
    points = np.random.default_rng(1).random((600, 2))
    posterior = PointPosterior(KERNEL, 2, 0.01)
    posterior.foresee(np.random.default_rng(2).random((600, 2)))
    for point in points:
        posterior.append(point, 0.5)
    plain = PointPosterior(KERNEL, 2, 0.01)
    for point in points:
        plain.append(point, 0.5)
    np.testing.assert_array_equal(posterior.half, plain.half)


@pytest.mark.parametrize("hallucinates", [False, True])
def test_a_study_on_a_box_opens_again_as_it_was(hallucinates, tmp_path):
    box, more = nr.Box([0.0, 0.0], [1.0, 1.0]), {"search": nr.PointSearch(candidates=16, starts=1)}
    policy = nr.gp_bucb(box, KERNEL, noise=0.1, beta=2.0, **more)
    if not hallucinates:
        policy = nr.igp_ucb(box, KERNEL, noise=0.1, norm_bound=1.0, **more)
    study, rng = nr.Study(policy, storage=f"sqlite:///{tmp_path}/a.db"), np.random.default_rng(0)
    study.quiet = True

    def play():
        """One question and one answer at a time, in one transaction."""
        kept = study._kept
        for point in rng.random((560, 2)):
            order = kept.record.order + 1
            trial = kept.put(study._trial(study._given.point(point), None, order=order, now=1e9))
            kept.put(trial.answered(reward=float(np.sin(7 * point).sum()), order=order + 1, time=1e9))

    study._kept.write(play)
    again = nr.Study.open(storage=f"sqlite:///{tmp_path}/a.db")
    probes, live, seen = rng.random((9, 2)), study._look(), again._look()
    assert len(again.trials) == 560
    np.testing.assert_array_equal(seen.envelope(probes).mean, live.envelope(probes).mean)
    np.testing.assert_array_equal(seen.envelope(probes).std, live.envelope(probes).std)
    np.testing.assert_array_equal(seen.decide().point, live.decide().point)


def in_a_new_process(program, *arguments):
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, timeout=120)
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
        "import sys, noregret as nr; print(nr.Study.open(storage=sys.argv[1], name='safe').trials[1].point.tolist())"
    )
    assert in_a_new_process(opened, storage).strip() == str(following)


EVERY_PART = """
import importlib, pkgutil
import noregret
from noregret import serialize
try:
    serialize._decoder("nothing of that name")
except noregret.InvalidInput:
    known = set(serialize._DECODERS)
for module in pkgutil.walk_packages(noregret.__path__, "noregret."):
    if module.name.split(".")[1] not in ("__main__", "integrations", "papers", "serve", "testing"):
        importlib.import_module(module.name)
print(sorted(set(serialize._DECODERS) - known))
"""


def test_every_described_part_is_found_by_its_name():
    assert in_a_new_process(EVERY_PART).strip() == "[]"


def test_what_a_study_was_made_with_is_said_by_the_names_of_the_parts(tmp_path):
    """As after an upgrade that has changed a default."""
    arms, storage = nr.Arms.grid(0, 1, 9), f"sqlite:///{tmp_path / 'old.db'}"
    nr.Study(nr.gp_ucb(arms, KERNEL, noise=0.1, width="theorem"), storage=storage, name="old").close()
    said = r"another score \(UpperConfidenceBound then, RandomisedBound now\).*its changelog says which default"
    with pytest.raises(nr.InvalidInput, match=said):
        nr.Study(nr.gp_ucb(arms, KERNEL, noise=0.1), storage=storage, name="old")
