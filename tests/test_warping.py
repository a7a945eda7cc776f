"""Rewards bent by half-ranks: the map by itself, and studies that learn through it."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import norm

import nilregret as nr
from nilregret.gp.fitting import Standardization
from nilregret.gp.warping import SignedLog, Warp, half_rank
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.explore import UniformExploration
from nilregret.slots.memory import RestartEvery
from nilregret.slots.objective import AdditivePenalty
from nilregret.slots.pending import Censored, Hallucinated, Ignored, NearestMeans
from nilregret.slots.refit import _schedule
from nilregret.storage.base import News

from .attacks.sequences import Reference
from .reference import mapped

BOX = nr.Box([0.0, -1.0], [1.0, 1.0])
QUICK = nr.slots.PointSearch(candidates=64, around=4, starts=1, evaluations=4)
WARPED = nr.slots.Refit(every=4, restarts=0, warp="half-rank")
PROBES = np.array([[0.1, -0.5], [0.5, 0.0], [0.9, 0.8], [0.33, 0.2], [1.0, 1.0]])


def brute_force(rewards):
    """The warped rewards, one by one, from what the documentation says."""
    n, ordered = len(rewards), sorted(rewards)
    median = 0.5 * (ordered[(n - 1) // 2] + ordered[n // 2])
    upper = [y - median for y in rewards if y >= median]
    scale = math.hypot(*upper) / math.sqrt(len(upper))
    if scale == 0.0:
        below = {y for y in rewards if y < median}
        scale = median - sum(below) / len(below) if below else 0.0
    warped = []
    for y in rewards:
        less, equal = sum(other < y for other in rewards), sum(other == y for other in rewards)
        rank = less + 0.5 * (equal + 1)
        warped.append(y if y >= median else median + scale * float(norm.ppf((rank - 0.5) / n)))
    return np.array(warped)


@pytest.mark.parametrize(
    ("knots", "heights"),
    [([0.0, 1.0], [1.0]), ([1.0], [1.0]), ([1.0, 1.0], [0.0, 1.0]), ([0.0, 1.0], [1.0, 1.0]), ([0.0, 1.0], [0.0, 2.0])],
)
def test_what_is_no_increasing_map_is_refused(knots, heights):
    with pytest.raises(nr.errors.InvalidInput, match="ascend"):
        Warp(knots, heights)


def drawn(n, seed):
    return np.random.default_rng(seed).standard_normal(n)


SETS = {
    "two": np.array([0.0, 1.0]),
    "three": np.array([5.0, -1.0, 2.0]),
    "odd": drawn(11, 0),
    "even": drawn(12, 1),
    "many": drawn(200, 2),
    "ties": np.array([1.0, 4.0, 2.0, 10.0, 12.0, 2.0, 3.0, 5.0, 6.0, 2.0]),
    "ties at the median": np.array([0.0, 1.0, 1.0, 1.0, 1.0, 3.0, -2.0]),
    "one bad": np.array([1.0, 1.0, 1.0, 1.0, -3.0]),
    "a plateau above": np.array([2.0, 2.0, 2.0, 2.0, 2.0, 1.0, 0.5, -7.0]),
    "an outlier": np.append(drawn(9, 3), -1e12),
    "an outlier beyond all digits": np.append(drawn(9, 3), -1e30),
    "an outlier above": np.append(drawn(9, 4), 1e12),
    "tiny": 1e-300 * drawn(9, 5),
    "huge": 1e90 * drawn(10, 6),
    "far from 0": 1e6 + drawn(10, 7),
}


@pytest.mark.parametrize("rewards", SETS.values(), ids=SETS.keys())
def test_the_map_is_the_documented_one_and_keeps_the_order(rewards):
    warp, wanted = half_rank(rewards), brute_force(rewards)
    size = np.ptp(wanted)
    np.testing.assert_allclose(warp.to(rewards), wanted, rtol=1e-12, atol=1e-12 * size)
    ordered = np.unique(rewards)
    assert (np.diff(warp.to(ordered)) > 0.0).all()
    median = np.median(rewards)
    above = rewards[rewards >= median]
    assert np.array_equal(warp.to(above), above)
    assert np.array_equal(warp.back(above), above)
    # Back to where they came from: on the knots exactly.
    np.testing.assert_allclose(warp.back(warp.to(rewards)), rewards, rtol=1e-12, atol=0.0)
    assert (warp.knots[-1], warp.heights[-1]) == (median, median)


@pytest.mark.parametrize("name", ["two", "odd", "even", "ties", "a plateau above", "tiny", "far from 0"])
def test_the_map_is_a_bijection_of_all_numbers(name):
    rewards = SETS[name]
    warp, span = half_rank(rewards), np.ptp(rewards)
    grid = np.linspace(rewards.min() - 3.0 * span, rewards.max() + 3.0 * span, 4001)
    assert (np.diff(warp.to(grid)) > 0.0).all()
    assert (np.diff(warp.back(grid)) > 0.0).all()
    np.testing.assert_allclose(warp.back(warp.to(grid)), grid, rtol=1e-11, atol=1e-11 * span)
    np.testing.assert_allclose(warp.to(warp.back(grid)), grid, rtol=1e-11, atol=1e-11 * span)
    for at in warp.knots:  # continuous
        near = at + 1e-9 * span * np.array([-1.0, 1.0])
        assert float(np.ptp(warp.to(near))) <= 1e-5 * span


def test_where_nothing_is_below_the_median_there_is_no_map():
    for rewards in ([], [3.0], [1.0] * 7, [0.0, 0.0, 0.0, 5.0], [1e12] * 4):
        assert half_rank(np.array(rewards)) is None
    noise = 1.0 + np.finfo(float).eps * np.array([0.0, 1.0, 2.0, 1.0, 0.0, 3.0])
    assert half_rank(noise) is None  # rounding is no difference


def test_an_outlier_leaves_the_other_ranks_alone():
    others = 1e-4 * drawn(9, 3)
    for outlier in (-1e3, -1e15, -1e30):
        found = half_rank(np.append(others, outlier)).to(others)
        np.testing.assert_allclose(found, half_rank(np.append(others, -1.0)).to(others), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("factor", "shift"), [(4.0, 0.0), (0.1, 0.0), (1e-9, 1e-9), (1e12, 3e12), (1.0, -50.0)])
def test_affine_maps_of_rewards_move_the_map_likewise(factor, shift):
    for name in ("odd", "even", "ties", "one bad", "a plateau above"):
        rewards = SETS[name]
        plain, moved = half_rank(rewards), half_rank(factor * rewards + shift)
        size = factor * np.ptp(rewards)
        np.testing.assert_allclose(moved.knots, factor * plain.knots + shift, rtol=1e-12, atol=1e-12 * size)
        np.testing.assert_allclose(moved.heights, factor * plain.heights + shift, rtol=1e-11, atol=1e-11 * size)


def test_a_map_is_read_only_and_its_own():
    knots = np.array([0.0, 1.0])
    warp = Warp(knots, np.array([-1.0, 1.0]))
    knots[0] = 7.0
    assert warp.knots[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        warp.heights[0] = 3.0


@pytest.mark.parametrize("name", sorted(SETS.keys() - {"tiny"}))
def test_moments_are_those_of_what_is_behind_a_normal_warped_reward(name):
    warp = half_rank(SETS[name])
    size = float(np.ptp(warp.heights))
    mean, std = (grid.ravel() for grid in np.meshgrid(np.linspace(-3.0, 2.0, 11), [1e-4, 0.03, 0.3, 1.0, 4.0]))
    mean, std = warp.heights[-1] + size * mean, size * std
    with np.errstate(all="raise"):
        found = warp.moments(mean, std)
    wanted = mapped(warp.back, warp.heights, mean, std)
    rounding = 1e-14 * np.abs(warp.knots).max()
    assert (np.abs(found[0] - wanted[0]) <= 1e-9 * wanted[1] + rounding).all()
    assert (np.abs(found[1] - wanted[1]) <= 1e-7 * wanted[1] + rounding).all()
    certain = warp.moments(np.append(mean, warp.heights), np.zeros(len(mean) + len(warp.heights)))
    assert np.array_equal(certain[0], warp.back(np.append(mean, warp.heights)))
    assert not certain[1].any()


def test_moments_of_many_points_are_those_of_each(monkeypatch):
    warp, generator = half_rank(SETS["many"]), np.random.default_rng(0)
    mean, std = generator.standard_normal(300), generator.uniform(0.0, 2.0, 300)
    whole = warp.moments(mean, std)
    monkeypatch.setattr("nilregret.gp.warping.MOST_AT_ONCE", 1000)
    assert all(np.array_equal(*pair) for pair in zip(whole, warp.moments(mean, std), strict=True))
    above = warp.moments(np.array([9.0]), np.array([0.1]))  # where rewards stay
    assert (above[0][0], above[1][0]) == (9.0, 0.1)


def test_moments_of_signed_logarithms():
    warp = SignedLog(2.0)
    mean, std = (2.0 * grid.ravel() for grid in np.meshgrid([-9.0, -1.0, -1e-3, 0.0, 0.3, 4.0], [1e-5, 0.02, 1.0, 4.0]))
    with np.errstate(all="raise", under="ignore"):
        found = warp.moments(mean, std)
        far = warp.moments(np.array([1e300, -50.0, 0.0]), np.array([1e5, 1e5, 1e300]))
    wanted = mapped(warp.back, np.zeros(1), mean, std)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-4)
    assert np.isfinite(far).all()


# -- studies -----------------------------------------------------------------------------------------------------------


def cliff(point):
    """A smooth hill, and a region a thousand times worse than it."""
    return float(math.sin(5.0 * point[0]) + 0.3 * point[1] - 1000.0 * (point[0] > 0.7))


def warped(refit=WARPED, domain=BOX, **more):
    kernel = nr.Matern(2.5, [0.4] * (domain.dimension + (0 if more.get("context") is None else 1)))
    slots = {name: more.pop(name) for name in ("memory", "pending", "explore", "objective") if name in more}
    policy = nr.expected_improvement(domain, kernel, noise=0.1, search=QUICK, refit=refit, **more)
    return policy.using(confidence=ConstantWidth(value=2.0), **slots)


def play(study, rounds, *, start=0, sign=1.0, answered=lambda number: True, context=None, constraints=None):
    for number in range(start, rounds):
        given = None if context is None else [0.5 * (number % 3)]
        trial = study.ask(given)
        if answered(number):
            value = sign * cliff(trial.point) + (0.0 if given is None else given[0])
            study.tell(trial, value, constraints=None if constraints is None else constraints(trial))
    return study


def dense(study, points, *, sign=1.0):
    """Mean and (lower, upper) by the numbers of the documentation: every step of it done by hand, but for the fit."""
    state = study.replica.current()
    posterior = state.reward.posterior
    trials = [trial for trial in study.trials if trial.state == "observed"]
    X, y = np.array([trial.point for trial in trials]), np.array([sign * trial.reward for trial in trials])
    seen = 4 * (len(y) // 4)
    warp = half_rank(y[:seen])
    np.testing.assert_allclose(warp.to(y[:seen]), brute_force(y[:seen]), rtol=1e-12)
    scale = Standardization.of(brute_force(y[:seen]))
    assert posterior.units.unit == pytest.approx(scale.std, rel=1e-12)
    targets = (warp.to(y) - posterior.units.center) / scale.std
    assert np.ptp(targets) < 8.0  # nothing is an outlier
    np.testing.assert_allclose([entry.target for entry in posterior.entries.values()], targets, rtol=1e-9, atol=1e-12)
    kernel = posterior.in_use
    solved = np.linalg.solve(
        kernel(X, X) + posterior.ridge * np.eye(len(X)), np.column_stack([targets, kernel(X, points)])
    )
    cross = kernel(X, points)
    std = scale.std * np.sqrt(kernel.diagonal(points) - np.einsum("ij,ij->j", cross, solved[:, 1:]))
    mean = posterior.units.center + scale.std * (cross.T @ solved[:, 0])
    return *mapped(warp.back, warp.heights, mean, std), warp.back(mean - 2.0 * std), warp.back(mean + 2.0 * std), X


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_what_is_shown_is_a_dense_process_mapped_back(goal):
    sign = 1.0 if goal == "maximize" else -1.0
    study = play(nr.Study(warped(), seed=3, goal=goal), 22, sign=sign)
    mean, std, lower, upper, X = dense(study, PROBES, sign=sign)
    found_mean, found_std = study.predict(PROBES)
    np.testing.assert_allclose(found_mean, sign * mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(found_std, std, rtol=1e-6, atol=1e-7)
    ends = (lower, upper) if goal == "maximize" else (-upper, -lower)
    for got, want in zip(study.bounds(PROBES), ends, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-7)
    means = dense(study, X, sign=sign)[0]
    assert means[study.best().number] == pytest.approx(means.max(), rel=1e-9)
    assert any(abs(trial.reward) > 900.0 for trial in study.trials)


SQUARE = nr.Arms(np.random.default_rng(0).uniform([0.0, -1.0], [1.0, 1.0], (60, 2)))


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_what_is_shown_is_the_belief_that_decides(goal):
    """Expected improvement over what is shown is the score, and the arm of the highest is asked for."""
    sign = 1.0 if goal == "maximize" else -1.0
    study = play(nr.Study(warped(domain=SQUARE), seed=0, goal=goal), 20, sign=sign)
    for _ in range(4):
        state = study.replica.current()
        posterior = state.reward.posterior
        warp = posterior.units.warp
        normal = posterior.units.rewards(*posterior.belief.predict())
        shown = mapped(warp.back, warp.heights, *normal)
        found = study.predict()
        np.testing.assert_allclose(sign * found[0], shown[0], rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(found[1], shown[1], rtol=1e-6, atol=1e-7)
        assert (found[1].max(), np.std([trial.reward for trial in study.trials])) > (100.0, 100.0)
        assert posterior.units.unit < 2.0  # the unit that decides has nothing left of the cliff
        best = float(normal[0].max())
        assert best >= warp.heights[-1]  # the median: from it up rewards are as they were told
        gain = mapped(
            lambda w, warp=warp, best=best: np.maximum(warp.back(w) - best, 0.0), [*warp.heights, best], *normal
        )
        said = study.explain(study.ask(), draws=0)
        assert said.chosen.arm == gain[0].argmax()
        for one in (said.chosen, said.runner_up):
            assert one.score == pytest.approx(math.log(gain[0][one.arm]), rel=1e-6)
        study.tell(said.trial, sign * cliff(said.trial.point))


@pytest.mark.parametrize("goal", ["maximize", "minimize"])
def test_the_best_is_where_the_mean_that_is_shown_is(goal):
    """Also where it is not where the median is: one trial in five is fifty worse than the others."""
    sign, generator = 1.0 if goal == "maximize" else -1.0, np.random.default_rng(33)
    study = nr.Study(warped(nr.slots.Refit(every=4, restarts=0, warp="half-rank", noise="unknown"), SQUARE), goal=goal)
    for _ in range(8):
        point = SQUARE.points[generator.integers(12)]
        study.add(point, sign * float(generator.standard_normal() - 50.0 * (generator.random() < 0.2)))
    state = study.replica.current()
    means = sign * study.predict([trial.point for trial in study.trials])[0]
    assert study.best().number == means.argmax() != state.reward.posterior.means(list(study.trials)).argmax()


def test_bounds_of_warped_rewards_are_no_multiple_of_the_deviation():
    study = play(nr.Study(warped(), seed=3), 14)
    early, late = study.explain(2, draws=0), study.explain(12, draws=0)
    assert (early.width, study.explain(2).to_dict()["width"], dict(early.facts)["bounds"][:13]) == (
        2.0,
        2.0,
        "mean +- 2 std",
    )
    assert math.isnan(study.width)
    assert math.isnan(late.width)
    assert late.to_dict()["width"] is None
    assert "+-" not in str(late)
    assert late == study.explain(12, draws=0)
    auto = nr.Study(nr.auto(nr.Arms.grid(0, 1, 9)), seed=0)
    for _ in range(10):
        trial = auto.ask()
        auto.tell(trial, cliff([trial.point[0], 0.0]))
    assert "std in the units that are learned, a width drawn" in dict(auto.explain(9, draws=0).facts)["score"]


def test_a_goal_only_turns_the_sign():
    up = play(nr.Study(warped(), seed=3), 14)
    down = play(nr.Study(warped(), seed=3, goal="minimize"), 14, sign=-1.0)
    assert [trial.point.tolist() for trial in up.trials] == [trial.point.tolist() for trial in down.trials]


CASES = {
    "plain": {},
    "hallucinated": {"pending": Hallucinated()},
    "hallucinated, failures as the worst": {"pending": Hallucinated(failed="worst")},
    "censored": {"pending": Censored(minimum=-1002.0, window=3, late="accept")},
    "censored at the smallest": {"pending": Censored(minimum=None, window=3, late="accept")},
    "nearest means": {"pending": NearestMeans(neighbours=2)},
    "ignored": {"pending": Ignored(failed="worst")},
    "a window": {"memory": nr.slots.SlidingWindow(9)},
    "periods": {"memory": RestartEvery(10)},
    "own outputs": {
        "pending": Hallucinated(),
        "refit": nr.slots.Refit(every=4, restarts=0, warp="half-rank", outputs="own"),
    },
    "growth": {"refit": nr.slots.Refit(every=3, restarts=0, warp="half-rank", growth=0.5, noise="unknown")},
    "contexts": {"context": nr.Box([0.0], [1.0])},
    "contexts, arms": {"context": nr.Box([0.0], [1.0]), "domain": nr.Arms.grid(0, 1, 9)},
    "arms": {"domain": nr.Arms.grid(0, 1, 9)},
}


def probes_of(study):
    domain = study.policy.domain
    return domain.points if isinstance(domain, nr.Arms) else PROBES


@pytest.mark.parametrize("case", CASES)
def test_every_part_works_through_the_map(case, tmp_path):
    """Against a dense reference of what counts; replayed, and opened again, bit for bit."""
    policy = warped(**CASES[case])
    reward = (lambda p: p) if policy.domain.dimension > 1 else (lambda p: np.append(p, 0.0))
    url = f"sqlite:///{tmp_path}/studies.db"
    study, given = nr.Study(policy, seed=1, storage=url), (None if policy.context is None else [0.5])
    for number in range(19):
        trial = study.ask(None if policy.context is None else [0.5 * (number % 3)])
        if number % 5 != 3:
            study.tell(trial, cliff(reward(trial.point)))
        elif number == 13:
            study.fail(trial, "it broke")
        if number == 12:
            study.tell(8, cliff(reward(study.trials[8].point)))  # late
        if number == 11:
            study = nr.Study.open(storage=url)
    probes = probes_of(study)
    rows = probes if given is None else np.column_stack([np.full(len(probes), 0.5), probes])
    with np.errstate(all="raise"):
        found = study.predict(probes, context=given)
    for got, want in zip(found, Reference(study).predict(study, rows), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    assert study.replica.current().reward.posterior.units.warp is not None
    again = nr.Study.open(storage=url)
    for got, want in zip(again.predict(probes, context=given), found, strict=True):
        assert np.array_equal(got, want)
    now = study.trials[-1].asked_at
    seen = None if given is None else np.array(given)
    mine, other = (each.replica.current().decide(seen, now=now).point.tobytes() for each in (study, again))
    assert mine == other


def test_constraints_are_charged_before_the_map():
    policy = warped(objective=AdditivePenalty(step=0.5, epoch=4, epochs=10, constraints=1))
    study = play(nr.Study(policy, seed=2), 17, constraints=lambda trial: [float(trial.point[0] - 0.4)])
    for got, want in zip(study.predict(PROBES), Reference(study).predict(study, PROBES), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)
    assert study.replica.current().reward.posterior.units.warp is not None
    assert study.best().reward > -100.0


def test_changes_are_seen_through_the_map():
    policy = warped(memory=nr.slots.RestartOnChange(threshold=0.3, ridge=0.1), explore=UniformExploration(1.0))
    study = nr.Study(policy, seed=0)
    for number in range(30):
        trial = study.ask()
        study.tell(trial, math.sin(5.0 * trial.point[0]) if number < 15 else 8.0 - 4.0 * trial.point[0])
    assert any(restart >= 15 for restart in study.restarts)
    for got, want in zip(study.predict(PROBES), Reference(study).predict(study, PROBES), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


# -- fits at growing distances, noise ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("every", "growth"), [(3, 0.1), (3, 1.0), (10, 0.0), (7, 0.03), (3, 1e-9), (50, 0.5)])
def test_the_schedule_is_consistent(every, growth):
    refit, counts = nr.slots.Refit(every=every, growth=growth), [every]
    while counts[-1] <= 2000:
        counts.append(counts[-1] + max(every, math.floor(growth * counts[-1])))
    for n in range(2001):
        due = refit.fits(n)
        assert due == sum(count <= n for count in counts)
        assert due == 0 or refit.seen_by(due) <= n < refit.seen_by(due + 1)
    assert [refit.seen_by(k + 1) for k in range(len(counts) - 1)] == counts[:-1]
    assert _schedule.cache_info().currsize <= 64


@pytest.mark.parametrize("memory", ["all", "window"])
def test_a_replay_makes_the_last_fit_alone_where_all_counts_and_decides_as_live(memory):
    policy = warped(refit=nr.slots.Refit(every=3, restarts=0, growth=0.4, warp="half-rank"))
    if memory == "window":
        policy = policy.using(memory=nr.slots.SlidingWindow(12))
    study = play(nr.Study(policy, seed=5), 26)
    live = study.replica.current().reward.fits.made
    fits = policy.refit.fits(26)
    assert (fits, len(live)) == (6, 6)
    again = nr.Study(policy, seed=5)
    again.replica.apply(News(list(study.trials), ""))
    assert again.replica.current().reward.fits.made == {}
    for k in range(4):
        mine, other = study.ask(), again.ask()
        assert mine.point.tobytes() == other.point.tobytes()
        study.tell(mine, float(k))
        again.tell(other, float(k))


@pytest.mark.parametrize(
    "pending", [nr.slots.Ignored(failed="worst"), nr.slots.Hallucinated(failed="worst"), nr.slots.Hallucinated()]
)
def test_a_replay_makes_the_last_fit_alone_where_failures_and_open_trials_count_too(pending):
    refit = nr.slots.Refit(every=3, restarts=0, growth=0.4, warp="half-rank")
    policy, open_trials = warped(refit=refit, pending=pending), []
    study = nr.Study(policy, seed=5)
    for number in range(34):
        open_trials.append(study.ask())
        if number % 4 == 1:
            study.fail(open_trials.pop(0), "it broke")
        elif number % 3:
            trial = open_trials.pop(number % len(open_trials))
            study.tell(trial, cliff(trial.point))
    again = nr.Study(policy, seed=5)
    again.replica.apply(News(list(study.trials), ""))
    assert len(study.replica.current().reward.fits.made) >= 4
    assert again.replica.current().reward.fits.made == {}
    for mine, other in zip(study.predict(PROBES), again.predict(PROBES), strict=True):
        assert mine.tobytes() == other.tobytes()
    assert study.ask().point.tobytes() == again.ask().point.tobytes()


def test_noise_that_is_given_stays_and_unknown_noise_does_not_look_at_the_policys():
    X = np.random.default_rng(0).uniform(size=(20, 2))
    y = np.sin(5.0 * X[:, 0]) + 0.05 * np.random.default_rng(1).standard_normal(20)

    def fitted(noise, how, warp="none"):
        refit = nr.slots.Refit(restarts=0, noise=how, warp=warp)
        return refit(nr.Matern(2.5, [0.5, 0.5]), X, y, np.ones(2), noise=noise, seed=0)

    for noise in (0.01, 0.1, 1.0):
        found = fitted(noise, "given")
        assert math.sqrt(found.regularization) * found.scale.std == pytest.approx(noise, rel=1e-12)
    low, high = fitted(1e-6, "unknown"), fitted(100.0, "unknown")
    assert low.regularization == high.regularization
    assert low.kernel == high.kernel
    assert fitted(0.05, "fitted").regularization == pytest.approx(low.regularization, rel=0.05)


def test_given_noise_far_below_the_rewards_is_what_can_be_computed_with():
    study = nr.Study(warped(refit=nr.slots.Refit(every=3, restarts=0, noise="given"), regularization=0.01), seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(9):
            trial = study.ask()
            study.tell(trial, 1e12 * cliff(trial.point))
    assert np.isfinite(study.predict(PROBES)[0]).all()
    assert study.replica.current().reward.posterior.ridge >= 1e-11


def test_warped_rewards_are_standardised():
    with pytest.raises(nr.errors.InvalidInput, match="`warp` 'half-rank' does not go with `standardize` False"):
        nr.slots.Refit(warp="half-rank", standardize=False)
    for wrong in ({"growth": -0.1}, {"growth": 1.5}, {"growth": math.nan}, {"warp": "rank"}, {"noise": None}):
        with pytest.raises(nr.errors.InvalidInput, match=f"`{next(iter(wrong))}`"):
            nr.slots.Refit(**wrong)
