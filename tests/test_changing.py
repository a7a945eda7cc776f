"""Memories, forced exploration and worlds that change: what must be equal to what, and what nonsense is refused."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

import nilregret as nr
from nilregret import environments as worlds
from nilregret.gp import DriftingPosterior
from nilregret.simulation import metrics
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.explore import UniformExploration
from tests.conformance.test_policies import POLICIES, answer

ARMS = nr.Arms.grid(0, 1, 40)
BOX = nr.Box(0.0, 1.0)
KERNEL = nr.Matern(2.5, 0.3)
NOISE = 0.1


def reward(trial, *, change=None):
    """Noisy; another function from trial `change` on."""
    noise = np.random.default_rng([99, trial.number]).normal(scale=NOISE)
    raised = 3.0 if change is not None and trial.number >= change else 0.0
    return float(raised + np.sin(7 * trial.point[0]) + noise)


def play(study, rounds, *, change=None):
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, reward(trial, change=change))
    return study


def arms_of(study):
    return [trial.arm for trial in study.trials]


def ucb(domain=ARMS, **more):
    return nr.gp_ucb(domain, KERNEL, noise=NOISE, **more)


def cpd(domain=ARMS, *, horizon=200, **more):
    return nr.gp_ucb_cpd(domain, KERNEL, noise=NOISE, horizon=horizon, **more)


def dense(rows, rewards, at, ridge, *, kernel=KERNEL, times=None, now=0.0, rate=0.0):
    """Mean and std by one solve; with `times`, of a function that drifts (Bogunovic et al. 2016, section 3.2)."""
    rows, at = np.asarray(rows).reshape(len(rows), -1), np.asarray(at).reshape(len(at), -1)
    K, k = kernel(rows, rows), kernel(rows, at)
    if times is not None:
        times = np.asarray(times, dtype=float)
        K = K * (1 - rate) ** (np.abs(times[:, None] - times) / 2)
        k = k * (1 - rate) ** (np.abs(times - now)[:, None] / 2)
    weights = np.linalg.solve(K + ridge * np.eye(len(rows)), np.column_stack([np.asarray(rewards), k]))
    variance = kernel.diagonal(at) - np.einsum("ij,ij->j", k, weights[:, 1:])
    return k.T @ weights[:, 0], np.sqrt(np.maximum(variance, 0.0))


# -- degeneracies ------------------------------------------------------------------------------------------------------


def test_no_detector_and_no_exploration_is_gp_ucb():
    policy = cpd(detector="never", exploration=0.0)
    same = dataclasses.replace(ucb(regularization=policy.regularization), confidence=policy.confidence)
    one, other = (play(nr.Study(each, seed=2), 150, change=70) for each in (policy, same))
    assert arms_of(one) == arms_of(other)
    np.testing.assert_array_equal(one.predict(), other.predict())
    assert not any(trial.explored for trial in one.trials)


def test_an_infinite_threshold_is_no_detector_and_its_posterior_is_the_stationary_one():
    study = play(nr.Study(cpd(threshold=math.inf), seed=2), 120)
    never = play(nr.Study(cpd(detector="never"), seed=2), 120)
    assert study.restarts == []
    assert arms_of(study) == arms_of(never)
    np.testing.assert_array_equal(study.predict(), never.predict())
    assert sum(trial.explored for trial in study.trials) > 15
    mean, std = study.predict()
    expected = dense(
        [t.point for t in study.trials], [t.reward for t in study.trials], ARMS.points, study.policy.regularization
    )
    np.testing.assert_allclose((mean, std), expected, atol=1e-9)


def test_infinity_goes_to_json_and_back():
    policy = cpd(threshold=math.inf)
    again = nr.Policy.from_json(policy.to_json())
    assert again == policy
    assert again.memory.threshold == math.inf
    with pytest.raises(ValueError, match="nan"):
        dataclasses.replace(policy, memory=nr.slots.RestartOnChange(threshold=math.nan)).to_json()


NEUTRAL = [
    nr.slots.SlidingWindow(60),
    nr.slots.SlidingWindow(1000),
    nr.slots.Discount(0.0),
    nr.slots.RestartEvery(60),
    nr.slots.RestartAt((60,)),
]


@pytest.mark.parametrize("memory", NEUTRAL, ids=repr)
@pytest.mark.parametrize("make", [ucb, *(POLICIES[name] for name in ("igp_ucb", "expected_improvement", "kernel_ucb"))])
def test_a_memory_that_forgets_nothing_within_the_horizon(make, memory):
    plain, studied = (play(nr.Study(make(**more), seed=1), 60) for more in ({}, {"memory": memory}))
    assert arms_of(plain) == arms_of(studied)
    still = studied.replica.state  # as it is before round 60, which `predict` would be about
    np.testing.assert_allclose(
        still.reward.posterior.belief.predict(), plain.replica.state.reward.posterior.belief.predict(), atol=1e-9
    )


# -- restarts ----------------------------------------------------------------------------------------------------------

RESTARTS = {
    "at": (nr.slots.RestartAt((20, 45)), [20, 45]),
    "every": (nr.slots.RestartEvery(15), [15, 30, 45]),
    "change": (nr.slots.RestartOnChange(), None),
}
SLOTS = {
    "plain": {},
    "refit": {"refit": nr.slots.Refit(every=8, restarts=0)},
    "hallucinated": {"pending": "hallucinate"},
}


def restarting(memory, *, domain=ARMS, **more):
    """GP-UCB with a memory, and the uniform rounds that a detector needs."""
    policy = ucb(domain, scale=0.2, **more)
    explore = UniformExploration(3.0) if isinstance(memory, nr.slots.RestartOnChange) else policy.explore
    return dataclasses.replace(policy, memory=memory, explore=explore)


@pytest.mark.parametrize("slots", SLOTS)
@pytest.mark.parametrize("name", RESTARTS)
def test_after_a_restart_only_later_trials_count(name, slots):
    memory, expected = RESTARTS[name]
    study = play(nr.Study(restarting(memory, **SLOTS[slots]), seed=3), 58, change=20)
    assert study.restarts == (study.restarts if expected is None else expected)
    last = study.restarts[-1]
    assert 20 <= last < 58
    assert len(study.restarts) == len(study.restart_reasons)
    fresh = nr.Study(dataclasses.replace(study.policy, memory=ucb().memory), seed=3)
    for trial in study.trials[last:]:
        fresh.add(trial.point, trial.reward)
    np.testing.assert_allclose(study.predict(), fresh.predict(), rtol=1e-9, atol=1e-9)
    assert study.information_gain == pytest.approx(fresh.information_gain)
    assert study.width == pytest.approx(fresh.width)


def test_reasons():
    assert play(nr.Study(ucb(memory=nr.slots.RestartEvery(4)), seed=0), 9).restart_reasons == ["every 4 rounds"] * 2
    oracle = cpd(detector="oracle", change_points=[3, 5])
    assert play(nr.Study(oracle, seed=0), 9).restart_reasons == ["a known change point"] * 2
    noticed = play(nr.Study(cpd(), seed=0), 120, change=40)
    assert 40 < noticed.restarts[0] < 120
    assert noticed.restart_reasons[0].startswith("a change detected on the last ")
    assert noticed.trials[noticed.restarts[0] - 1].explored  # the round that gave it away does not count any more


def test_what_is_least_and_best_is_forgotten_with_the_rest():
    policy = nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=5, minimum=None, memory=nr.slots.RestartAt((4,)))
    study, fresh = nr.Study(policy, seed=0), nr.Study(dataclasses.replace(policy, memory=ucb().memory), seed=0)
    for value in (-3.0, -4.0, 5.0, 4.0):
        study.tell(study.ask(), value)
    for each in (study, fresh):
        for arm, value in ((3, 1.0), (36, -2.0)):
            each.add(ARMS.points[arm], value)
    study.ask()
    assert study.replica.state.reward.data.outcomes.least == -2.0
    improving = nr.expected_improvement(ARMS, KERNEL, noise=NOISE, incumbent="reward", memory=nr.slots.RestartAt((4,)))
    greedy = nr.Study(improving, seed=0)
    for trial in study.trials[:6]:
        greedy.add(trial.point, trial.reward)
    greedy.ask()
    assert greedy.replica.state.reward.data.best_reward(None) == 1.0
    fresh.ask()
    assert fresh.replica.state.reward.data.lowest() == study.replica.state.reward.data.lowest() == -2.0


def test_late_answers_of_trials_before_a_restart_are_recorded_and_do_not_count():
    for pending in ("ignore", "hallucinate"):
        studies = [nr.Study(ucb(memory=nr.slots.RestartAt((10,)), pending=pending), seed=4) for _ in range(2)]
        late = [[study.ask() for _ in range(3)] for study in studies]
        for study in studies:
            play(study, 9)
        for trial in reversed(late[1]):
            studies[1].tell(trial, 100.0)
        one, other = (play(study, 3) for study in studies)
        assert [t.state for t in one.trials[:3]] == ["pending"] * 3
        assert [t.reward for t in other.trials[:3]] == [100.0] * 3
        assert arms_of(one) == arms_of(other)
        np.testing.assert_array_equal(one.predict(), other.predict())


def test_a_change_seen_through_a_late_answer_forgets_up_to_the_latest_round_of_the_test():
    policy = restarting(nr.slots.RestartOnChange(threshold=0.3))
    study = nr.Study(policy, seed=0)
    first = study.ask()
    assert first.explored
    uniform = []
    while len(uniform) < 3:
        trial = study.ask()
        if trial.explored:
            study.tell(trial, 0.0)
            uniform.append(trial.number)
    study.ask()
    assert study.restarts == []
    study.tell(first, 50.0)  # the fourth answer: now two and two can be compared
    study.ask()
    assert study.restarts == [uniform[-1] + 1]
    assert study.replica.state.memory.detector._detector.count == 0


def test_the_detector_sees_only_answered_uniform_rounds():
    study = nr.Study(cpd(), seed=0)
    told = 0
    for i in range(40):
        trial = study.ask()
        if i % 3 == 0:
            study.fail(trial, "no answer")
        else:
            study.tell(trial, reward(trial))
            told += trial.explored
    study.add(ARMS.points[20], 1.0)
    study.ask()
    assert study.replica.state.memory.detector._detector.count == told > 0


def test_fewer_than_two_uniform_rounds_are_no_test():
    study = nr.Study(cpd(threshold=1e-12), seed=0)
    trial = study.ask()
    assert trial.explored
    study.tell(trial, 5.0)
    study.ask()
    assert study.restarts == []
    assert study.replica.state.memory.detector._detector.distances.shape == (0,)


# -- windows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [ARMS, BOX], ids=["arms", "box"])
def test_a_window_is_the_posterior_of_the_last_trials(domain):
    study = play(nr.Study(ucb(domain, memory=nr.slots.SlidingWindow(12)), seed=5), 30)
    counted = study.trials[-12:]
    at = ARMS.points
    expected = dense([t.point for t in counted], [t.reward for t in counted], at, NOISE**2)
    np.testing.assert_allclose(study.predict(at), expected, atol=1e-7)
    K = KERNEL(np.array([t.point for t in counted]), np.array([t.point for t in counted]))
    gain = 0.5 * np.linalg.slogdet(np.eye(12) + K / NOISE**2)[1]
    assert study.information_gain == pytest.approx(gain, rel=1e-7)


@pytest.mark.parametrize("pending", ["ignore", "hallucinate"])
def test_a_window_counts_unanswered_trials_too_and_drops_answers_that_come_after_it(pending):
    study = nr.Study(ucb(memory=nr.slots.SlidingWindow(6), pending=pending), seed=5)
    trials = study.ask(count=10)
    for number in (9, 1, 5, 3, 7):  # 4 .. 9 count
        study.tell(number, reward(trials[number]))
    told = [trials[number] for number in (5, 7, 9)]
    mean, std = study.predict()
    expected_mean, expected_std = dense([t.point for t in told], [reward(t) for t in told], ARMS.points, NOISE**2)
    np.testing.assert_allclose(mean, expected_mean, atol=1e-9)
    if pending == "hallucinate":  # the variance is of all six
        points = [t.point for t in trials[4:]]
        expected_std = dense(points, np.zeros(6), ARMS.points, NOISE**2)[1]
    np.testing.assert_allclose(std, expected_std, atol=1e-7)


def test_censored_trials_leave_a_window_too():
    policy = nr.gp_ucb_sdf(
        ARMS,
        KERNEL,
        noise=NOISE,
        window=3,
        minimum=-2.0,
        prior_mean=0.0,
        memory=nr.slots.SlidingWindow(6),
        regularization=NOISE**2,
    )
    study = nr.Study(policy, seed=5)
    trials = study.ask(count=10)
    study.tell(9, reward(trials[9]))
    study.tell(5, reward(trials[5]))  # after more than three others: it stays at the minimum
    targets = [-2.0] * 5 + [reward(trials[9])]
    expected = dense([t.point for t in trials[4:]], targets, ARMS.points, NOISE**2)
    np.testing.assert_allclose(study.predict(), expected, atol=1e-7)
    play(study, 6)
    study.ask()
    assert sorted(study.replica.current().reward.posterior.entries) == list(range(11, 17))


def test_fits_go_on_in_a_window():
    """They see the answers of the window, up to the latest multiple of `every`."""
    refit = nr.slots.Refit(every=5, restarts=0)
    study = play(nr.Study(ucb(memory=nr.slots.SlidingWindow(12), refit=refit), seed=5), 30)
    study.ask()
    kernel = study.replica.state.kernel
    play(study, 5)
    study.ask()
    assert study.replica.state.kernel != kernel
    state = study.replica.state
    assert state.reward.fits.count == 7
    assert (
        max(max(numbers) for numbers, _ in state.reward.fits.made) == 35
    )  # 35 answers of 36 trials, one of them pending
    assert all(len(numbers) <= 12 for numbers, _ in state.reward.fits.made)


def test_forced_rounds_are_a_share_of_the_window():
    policy = dataclasses.replace(ucb(memory=nr.slots.SlidingWindow(16)), explore=UniformExploration(1.0))
    study = play(nr.Study(policy, seed=5), 120)
    explored = np.array([trial.explored for trial in study.trials])
    assert 20 <= explored[40:].sum() <= 30  # 5 of 16, for ever


def test_what_has_failed_is_tried_again_when_it_has_left_the_window():
    for domain, policy in ((ARMS, ucb), (BOX, ucb)):
        study = nr.Study(policy(domain, memory=nr.slots.SlidingWindow(5)), seed=5)
        trial = study.ask()
        study.fail(trial, "rig down")
        study.ask()
        assert len(study.replica.state.outputs.engine.failed) == 1
        play(study, 6)
        study.ask()
        assert len(study.replica.state.outputs.engine.failed) == 0


# -- drift -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: nr.gp_ts(ARMS, KERNEL, noise=NOISE, norm_bound=1.0, **more),
        lambda **more: nr.algorithms.asy_ts(nr.Arms.grid(0, 1, 200), nr.Matern(0.5, 0.1), noise=NOISE, **more),
        lambda **more: ucb(**more),
    ],
    ids=["gp_ts", "asy_ts on a rough kernel", "gp_ucb"],
)
def test_to_forget_nothing_is_to_have_no_memory_rule(make):
    plain, discounted = nr.Study(make(), seed=2), nr.Study(make(memory=nr.slots.Discount(0.0)), seed=2)
    assert arms_of(play(plain, 25)) == arms_of(play(discounted, 25))
    np.testing.assert_array_equal(plain.predict(), discounted.predict())


def test_a_drifting_posterior_is_the_dense_one_in_time_and_space():
    rng = np.random.default_rng(0)
    for rate, ridge in itertools.product((0.0, 0.03, 0.5, 1.0), (0.01, 1.0)):
        posterior = DriftingPosterior(ARMS, KERNEL, ridge, rate=rate)
        arms, times, targets = [], [], []
        for now in range(40):
            for _ in range(rng.integers(3)):  # none, one or two in a round
                arms.append(int(rng.integers(40)))
                times.append(now)
                targets.append(float(rng.standard_normal()))
                posterior.append(arms[-1], targets[-1])
            posterior.tick()
        expected = dense(ARMS.points[arms], targets, ARMS.points, ridge, times=times, now=40, rate=rate)
        np.testing.assert_allclose(posterior.predict(), expected, atol=1e-8)
        rows = [0, 7, 33]
        np.testing.assert_allclose(np.sqrt(posterior.covariance(rows).diagonal()), expected[1][rows], atol=1e-8)


def test_a_study_that_discounts_is_the_dense_posterior():
    study = play(nr.Study(ucb(memory=nr.slots.Discount(0.05)), seed=6), 50)
    rows, rewards = [t.point for t in study.trials], [t.reward for t in study.trials]
    expected = dense(rows, rewards, ARMS.points, NOISE**2, times=range(50), now=50, rate=0.05)
    np.testing.assert_allclose(study.predict(), expected, atol=1e-8)
    added = nr.Study(study.policy, seed=6)
    for trial in study.trials:
        added.add(trial.point, trial.reward)
    np.testing.assert_allclose(added.predict(), expected, atol=1e-8)
    assert added.ask().arm == study.ask().arm


def test_time_as_a_context_is_the_same_drift():
    """What `Discount` says to do where it does not go."""
    rate = 0.05
    in_time = nr.Matern(0.5, -2 / math.log(1 - rate)).on(0) * KERNEL.on(1)
    policy = nr.gp_ucb(ARMS, in_time, noise=NOISE, context=nr.Box(0.0, 100.0), a=1.0, b=10.0)
    timed, discounted = nr.Study(policy, seed=6), nr.Study(ucb(memory=nr.slots.Discount(rate)), seed=6)
    for t in range(20):
        arm = t * 7 % 40
        timed.add(ARMS.points[arm], np.cos(t), context=[t])
        discounted.add(ARMS.points[arm], np.cos(t))
    np.testing.assert_allclose(timed.predict(context=[20]), discounted.predict(), atol=1e-8)


def test_a_late_answer_is_of_the_function_as_it_was_when_it_was_asked_for():
    study = nr.Study(ucb(memory=nr.slots.Discount(0.05)), seed=6)
    late, rest = study.ask(), [study.ask() for _ in range(4)]
    study.tell(rest[3], 0.5)
    study.tell(late, -1.0)
    study.ask()
    rows, told = [late.point, rest[3].point], [-1.0, 0.5]
    expected = dense(rows, told, ARMS.points, NOISE**2, times=[0, 4], now=6, rate=0.05)
    np.testing.assert_allclose(study.predict(), expected, atol=1e-8)


def test_tv_gp_ucb_follows_a_drift_that_gp_ucb_does_not():
    """16 paired runs. Leads are 3.5, 4.5 and 5.4 standard errors (by 64 runs): each check fails for 1% of the seeds."""
    rate, rounds = 0.01, 200
    totals = {}
    memories = {
        "TV": nr.slots.Discount(rate),
        "R": nr.slots.RestartEvery(50),
        "SW": nr.slots.SlidingWindow(50),
        "GP-UCB": None,
    }
    for name, memory in memories.items():
        policy = nr.gp_ucb(ARMS, KERNEL, noise=NOISE, scale=0.2, memory=memory)
        runs = [nr.simulate(policy, drifting(seed, rate, rounds), rounds, seed=seed) for seed in range(16)]
        totals[name] = np.array([run.regret.sum() for run in runs])
    for name, errors in (("GP-UCB", 1.0), ("R", 2.0), ("SW", 3.0)):
        gap = totals[name] - totals["TV"]
        assert gap.mean() > errors * gap.std(ddof=1) / 4, name


def drifting(seed, rate, rounds):
    functions = worlds.drifting_samples(KERNEL, ARMS, rounds=rounds, rate=rate, seed=seed)
    return nr.Environment(functions, domain=ARMS, noise=NOISE, change_points=range(1, rounds))


# -- replay ------------------------------------------------------------------------------------------------------------

CENSORED = {"pending": nr.slots.Censored(minimum=None, window=4.0)}
COMBINED = {
    f"{memory}-{slot}": (part, slots)
    for (memory, part), (slot, slots) in itertools.product(
        {
            "at": nr.slots.RestartAt((7, 21)),
            "every": nr.slots.RestartEvery(9),
            "change": nr.slots.RestartOnChange(threshold=0.4),
            "window": nr.slots.SlidingWindow(8),
            "discount": nr.slots.Discount(0.1),
        }.items(),
        {**SLOTS, "censored": CENSORED, "censored and refit": {**CENSORED, **SLOTS["refit"]}}.items(),
    )
    if memory != "discount" or slot == "plain"
}


def live(policy, *, watch=False, interrupt=(), seed=8):
    """36 rounds in which answers come in any order, fail or do not come; the same for every way to run them."""
    study, rng, open_ = nr.Study(policy, seed=seed), np.random.default_rng(1), []
    for t in range(36):
        open_.append(study.ask())
        if t in interrupt:
            study.replica.rebuild()
        while open_ and rng.random() < 0.55:
            trial = open_.pop(int(rng.integers(len(open_))))
            if rng.random() < 0.1:
                study.fail(trial, "lost")
            else:
                study.tell(trial, reward(trial, change=15))
            if t + 1 in interrupt:
                study.replica.rebuild()
        if watch:
            study.predict(ARMS.points[:2])
            assert study.restarts == study.restarts
            assert study.width > 0
    return study


@pytest.mark.parametrize("name", COMBINED)
def test_replay_and_looking_leave_no_trace(name):
    memory, slots = COMBINED[name]
    policy = restarting(memory, **slots)
    assert nr.Policy.from_json(policy.to_json()) == policy
    straight = live(policy)
    for other in (live(policy, watch=True), live(policy, interrupt=(3, 9, 16, 22, 30))):
        assert [t.point for t in other.trials] == [t.point for t in straight.trials]
        np.testing.assert_array_equal(other.predict(), straight.predict())
        assert other.restarts == straight.restarts
        assert other.restart_reasons == straight.restart_reasons
        assert other.information_gain == straight.information_gain
    if isinstance(memory, nr.slots.RestartOnChange | nr.slots.RestartEvery):
        assert straight.restarts


@pytest.mark.parametrize("name", ["change-hallucinated", "window-censored", "every-refit"])
def test_replay_leaves_no_trace_on_a_box(name):
    memory, slots = COMBINED[name]
    policy = restarting(memory, domain=BOX, **slots)
    straight, other = live(policy), live(policy, watch=True, interrupt=(3, 16, 30))
    assert [t.point for t in other.trials] == [t.point for t in straight.trials]
    np.testing.assert_array_equal(other.predict(ARMS.points), straight.predict(ARMS.points))
    assert other.restarts == straight.restarts


def test_looking_when_a_cut_is_due_does_not_cut():
    study = play(nr.Study(ucb(memory=nr.slots.RestartAt((5,))), seed=0), 5)
    before = study.replica.state.reward.posterior.belief
    assert study.restarts == [5]  # of the next decision, as all that is looked at
    assert study.predict()[1].min() == pytest.approx(1.0)
    assert study.replica.state.reward.posterior.belief is before
    assert study.replica.state.restarts == []
    study.ask()
    assert study.replica.state.restarts == [(5, "a known change point")]


def test_a_study_on_disk_resumes_after_a_detected_change(tmp_path):
    url, policy = f"sqlite:///{tmp_path}/s.db", cpd(exploration=4.0)
    straight = play(nr.Study(policy, seed=0), 60, change=20)
    for stop in (15, 40, 60):
        study = nr.Study(policy, seed=0, storage=url)
        play(study, stop - len(study.trials), change=20)
    resumed = nr.Study.open(storage=url)
    assert resumed.restarts == straight.restarts != []
    assert resumed.restart_reasons == straight.restart_reasons
    np.testing.assert_array_equal(resumed.predict(), straight.predict())


@pytest.mark.parametrize(
    "memory", [nr.slots.SlidingWindow(9), nr.slots.RestartEvery(7), nr.slots.Discount(0.1)], ids=repr
)
@pytest.mark.parametrize("name", sorted(set(POLICIES) - {"gp_ucb_cpd"}))
def test_every_policy_takes_a_memory(name, memory):
    try:
        policy = POLICIES[name](memory=memory)
    except nr.errors.InvalidInput as error:
        learns = name == "lb_gp_ucb"
        sentence = "under `Discount` f is another one in each round" if learns else "keeps no single observations"
        assert sentence in str(error)  # noqa: PT017 - and nothing else is refused
        assert isinstance(memory, nr.slots.Discount)
        assert learns or name in {"gp_ucb_sdf", "gp_ts_sdf", "gp_bucb", "gp_bts"} or "constraints" in name
        return
    studies = [nr.Study(policy, seed=2), nr.Study(nr.Policy.from_json(policy.to_json()), seed=2)]
    for t in range(24):
        trials = [study.ask() for study in studies]
        assert trials[0].arm == trials[1].arm
        for study, trial in zip(studies, trials, strict=True):
            answer(study, trial)
        if t == 15:
            studies[1].replica.rebuild()
    one, other = studies
    np.testing.assert_array_equal(one.predict(), other.predict())
    if isinstance(memory, nr.slots.RestartEvery):
        assert [r for r in one.restarts if r % 7 == 0] == [7, 14, 21]


@pytest.mark.parametrize("name", ["expected_improvement", "gp_ts", "gp_ucb_sdf", "igp_ucb"])
def test_every_policy_can_detect_changes(name):
    plain = POLICIES[name]()
    policy = plain.detecting_changes(exploration=2.0)
    study = play(nr.Study(policy, seed=0), 100, change=50)
    assert 50 < study.restarts[0] < 100
    assert policy.valid_for == "none"
    assert nr.Policy.from_json(policy.to_json()) == policy
    with pytest.raises(nr.errors.InvalidInput, match="`exploration`"):
        plain.detecting_changes(exploration=0.0)


def test_with_a_memory_nothing_is_proved_for_the_whole_run():
    assert ucb().valid_for == "f"
    for memory in (
        nr.slots.RestartAt((5,)),
        nr.slots.RestartEvery(5),
        nr.slots.SlidingWindow(5),
        nr.slots.Discount(0.1),
    ):
        assert ucb(memory=memory).valid_for == "none"


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cpd(detector="oracle", change_points=[40, 20]), "ascending order"),
        (lambda: cpd(detector="oracle", change_points=[20, 20]), "ascending order"),
        (lambda: cpd(detector="oracle", change_points=[0]), "`change_points` is 0"),
        (lambda: cpd(detector="oracle", change_points=[200]), "beyond the last of 200 rounds"),
        (lambda: cpd(detector="oracle"), "needs `change_points`"),
        (lambda: cpd(change_points=[20]), "go with `detector` 'oracle'"),
        (lambda: cpd(detector="sometimes"), "`detector`"),
        (lambda: cpd(exploration=-1.0), "`exploration` is -1"),
        (lambda: cpd(exploration=0.0), "give `exploration` > 0"),
        (lambda: cpd(horizon=1), "`horizon`"),
        (lambda: cpd(threshold=-1.0), "`threshold`"),
        (lambda: nr.gp_ucb_cpd(ARMS, nr.Linear(), noise=0.1, horizon=50), "states no smoothness"),
        (lambda: nr.gp_ucb_cpd(ARMS, nr.Linear(), noise=0.1, horizon=50, alpha=2.5), "`threshold`"),
        (lambda: nr.slots.RestartEvery(0), "`rounds` is 0"),
        (lambda: nr.slots.SlidingWindow(0), "`rounds` is 0"),
        (lambda: nr.slots.Discount(1.5), "`rate` is 1.5"),
        (lambda: ucb(memory="window"), "`memory` is 'window'"),
        (lambda: ucb(BOX, memory=nr.slots.DriftBank()), "at finitely many arms"),
        (lambda: ucb(memory=nr.slots.Discount(0.1), refit=nr.slots.Refit()), "would be taken for noise"),
        (lambda: nr.Environment([np.ravel] * 3, domain=ARMS, change_points=[9, 4]), "ascending order"),
        (lambda: nr.Environment([np.ravel] * 3, domain=ARMS, change_points=[9]), "3 reward functions and 1 change"),
        (lambda: worlds.even_changes(3, 4), "cannot hold 4 periods"),
        (lambda: worlds.random_changes(100, 3, seed=0, shortest=34), "at least 34 rounds"),
        (lambda: worlds.drifting_samples(KERNEL, ARMS, rounds=3, rate=2.0, seed=0), "`rate` is 2"),
        (lambda: metrics.detections([3], [9, 4], 20), "ascending order"),
        (lambda: metrics.detections([3], [20], 20), "beyond the last of 20 rounds"),
        (lambda: metrics.regret_by_period(np.ones(5), [5]), "beyond the last of 5 rounds"),
    ],
)
def test_nonsense_is_refused(make, words):
    with pytest.raises(nr.errors.InvalidInput, match=words):
        make()


def test_a_kernel_without_smoothness_works_once_it_is_told_all_it_lacks():
    policy = nr.gp_ucb_cpd(ARMS, nr.Linear(), noise=0.1, horizon=50, alpha=2.5, threshold=2.0, ridge=2.0)
    assert len(play(nr.Study(policy), 10).trials) == 10


# -- worlds and measures -----------------------------------------------------------------------------------------------


def test_change_points():
    assert worlds.even_changes(900, 3) == (300, 600)
    assert worlds.even_changes(10, 4) == (2, 5, 7)
    assert worlds.even_changes(10, 1) == ()
    assert worlds.random_changes(4, 4, seed=0) == (1, 2, 3)
    assert worlds.random_changes(50, 1, seed=0) == ()
    drawn = [worlds.random_changes(30, 3, seed=seed, shortest=8) for seed in range(300)]
    assert drawn[0] == worlds.random_changes(30, 3, seed=0, shortest=8)
    lengths = np.diff(np.array([(0, *changes, 30) for changes in drawn]), axis=1)
    assert lengths.min() == 8
    # All 28 ways to share out 6 spare rounds appear: one is missing with probability 28 (27/28)^300 < 6e-4.
    assert len(set(drawn)) == math.comb(8, 2)


def test_regret_is_against_the_maximum_of_the_period():
    functions = [lambda x: 3 * x[:, 0], lambda x: -x[:, 0], lambda x: 5 + 0 * x[:, 0]]
    env = nr.Environment(functions, domain=ARMS, change_points=[4, 7])
    run = nr.simulate(ucb(memory=nr.slots.RestartAt((4, 7))), env, 10, seed=1)
    x = run.points[:, 0]
    expected = np.concatenate([3 - 3 * x[:4], x[4:7], np.zeros(3)])
    np.testing.assert_allclose(run.regret, expected, atol=1e-12)
    by_period = metrics.regret_by_period(run.regret, env.change_points)
    np.testing.assert_allclose(by_period, [expected[:4].sum(), expected[4:7].sum(), 0.0], atol=1e-12)
    np.testing.assert_array_equal(metrics.regret_by_period(np.ones((2, 6)), []), [[6.0], [6.0]])
    assert run.restarts == (4, 7)


def test_a_change_after_the_last_round_does_not_happen():
    functions = [lambda x: x[:, 0], lambda x: -x[:, 0]]
    env, short = (
        nr.Environment(f, domain=ARMS, change_points=c) for f, c in ((functions, [50]), (functions[:1], None))
    )
    np.testing.assert_array_equal(*(nr.simulate(ucb(), each, 20, seed=0).regret for each in (env, short)))


def test_detections():
    found = metrics.detections([5, 103, 110, 350, 400], [100, 200, 300], 400)
    np.testing.assert_array_equal(found.delays, [3, np.inf, 50])
    assert found.missed == 1
    assert found.false_alarms == 3  # at 5, at 110, and a second one of the third period
    found = metrics.detections([], [], 10)
    assert found.delays.shape == (0,)
    assert (found.missed, found.false_alarms) == (0, 0)
    found = metrics.detections([100, 7], [100], 200)  # an oracle, and an alarm; in any order
    assert (found.delays.tolist(), found.missed, found.false_alarms) == ([0.0], 0, 1)
    found = metrics.detections([200], [100], 200)  # noticed in the very last round
    assert (found.delays.tolist(), found.missed, found.false_alarms) == ([100.0], 0, 0)


def test_an_oracle_is_never_late_and_a_detector_is_soon_there():
    """Of 12 changes 10 are noticed; on this kernel about 3% are missed (a binomial of 0.05: 2 or more of 12 in 12%)."""
    arms = nr.Arms.grid(0, 5, 80)
    kernel = nr.Matern(2.5, 1.0)
    changes = worlds.even_changes(400, 3)
    missed = alarms = 0
    for seed in range(6):
        functions = [worlds.gp_sample(kernel, arms, seed=[seed, period]) for period in range(3)]
        env = nr.Environment(functions, domain=arms, noise=0.05, change_points=changes)
        oracle = nr.gp_ucb_cpd(arms, kernel, noise=0.05, horizon=400, detector="oracle", change_points=changes)
        assert nr.simulate(oracle, env, 400, seed=seed).restarts == changes
        run = nr.simulate(nr.gp_ucb_cpd(arms, kernel, noise=0.05, horizon=400, exploration=6.0), env, 400, seed=seed)
        found = metrics.detections(run.restarts, changes, 400)
        missed, alarms = missed + found.missed, alarms + found.false_alarms
    assert missed <= 2
    assert alarms <= 6


def test_the_cost_of_a_tick_is_of_fixed_size():
    """Whatever has been played, nothing that a round touches grows."""
    study = play(nr.Study(ucb(memory=nr.slots.Discount(0.1)), seed=0), 60)
    posterior = study.replica.state.reward.posterior.belief.observed
    assert isinstance(posterior.chain, DriftingPosterior)
    arrays = {name: value.shape for name, value in vars(posterior.chain).items() if isinstance(value, np.ndarray)}
    play(study, 60)
    after = {name: value.shape for name, value in vars(posterior.chain).items() if isinstance(value, np.ndarray)}
    assert arrays == after
    assert len(posterior._marks) < 45


# -- several memories, and detectors under contexts --------------------------------------------------------------------


def test_detecting_changes_drops_nothing():
    policy = ucb(memory=nr.slots.SlidingWindow(30), explore=nr.slots.InitialDesign(4))
    detecting = policy.detecting_changes(exploration=1.0, threshold=0.3, ridge=0.1)
    detector = nr.slots.RestartOnChange(threshold=0.3, ridge=0.1)
    assert detecting.memory == nr.slots.AllOf((nr.slots.SlidingWindow(30), detector))
    assert detecting.explore == nr.slots.InTurn((nr.slots.InitialDesign(4), UniformExploration(1.0)))
    study = play(nr.Study(detecting, seed=0), 60, change=25)
    assert study.restarts
    assert min(study.replica.current().reward.posterior.entries) >= max(study.restarts[-1], 31)
    never = cpd(detector="never", exploration=2.0)
    assert never.detecting_changes().explore == never.explore
    assert never.detecting_changes(exploration=1.0).explore == nr.slots.InTurn(
        (UniformExploration(2.0), UniformExploration(1.0))
    )
    for again in (
        detecting,
        cpd(),
        ucb(
            memory=nr.slots.AllOf((detector, nr.slots.AllOf((nr.slots.SlidingWindow(9),)))),
            explore=UniformExploration(),
        ),
    ):
        with pytest.raises(nr.errors.InvalidInput, match="detects changes on uniform rounds already"):
            again.detecting_changes()


def test_what_counts_for_all_of_several_memories_counts():
    parts = (nr.slots.SlidingWindow(12), nr.slots.RestartAt((20, 45)), nr.slots.RestartEvery(15))
    study = play(nr.Study(ucb(memory=nr.slots.AllOf(parts)), seed=5), 52)
    assert study.restarts == [15, 20, 30, 45]
    counted = study.trials[45:]
    expected = dense([t.point for t in counted], [t.reward for t in counted], ARMS.points, NOISE**2)
    np.testing.assert_allclose(study.predict(), expected, atol=1e-8)
    earlier = study.trials[28:40]
    again = nr.Study(study.policy, seed=5)
    for trial in study.trials[:40]:
        again.tell(again.ask(), trial.reward)
    expected = dense([t.point for t in earlier if t.number >= 30], [t.reward for t in earlier if t.number >= 30],
                     ARMS.points, NOISE**2)  # fmt: skip
    np.testing.assert_allclose(again.predict(), expected, atol=1e-8)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((), "`parts` (is|has)"),
        ((nr.slots.SlidingWindow(5), "adaptive"), "`parts` (is|has)"),
        ((nr.slots.Discount(0.1), nr.slots.DriftBank()), "drifts by one law"),
    ],
)
def test_memories_that_do_not_go_together(parts, words):
    with pytest.raises(nr.errors.InvalidInput, match=words):
        nr.slots.AllOf(parts)


def test_parts_of_several_memories_check_the_policy_too():
    with pytest.raises(nr.errors.InvalidInput, match="forced uniform rounds"):
        ucb(memory=nr.slots.AllOf((nr.slots.SlidingWindow(5), nr.slots.RestartOnChange())))
    with pytest.raises(nr.errors.InvalidInput, match="longer window"):
        ucb(
            memory=nr.slots.AllOf((nr.slots.RestartEvery(50), nr.slots.SlidingWindow(5))),
            explore=nr.slots.InitialDesign(5),
        )


CONTEXTS = {"arms": (ARMS, nr.Arms.grid(0, 1, 4)), "box": (BOX, nr.Arms.grid(0, 1, 4)), "both": (BOX, nr.Box(0.0, 1.0))}


@pytest.mark.parametrize("name", CONTEXTS)
def test_changes_are_detected_under_contexts(name):
    """A context that shifts the rewards by 2 is no change, a shift by 3 of all of them is one."""
    domain, context = CONTEXTS[name]
    kernel = nr.Matern(2.5, [0.3, 0.3], scale=2.0)
    policy = nr.gp_ucb(domain, kernel, noise=NOISE, context=context, width=ConstantWidth(value=2.0),
                       search=nr.slots.PointSearch(candidates=32)).detecting_changes(exploration=4.0)  # fmt: skip
    assert policy.valid_for == "none"
    study = nr.Study(policy, seed=0)
    for t in range(70):
        at = [(0.0, 1 / 3, 1.0)[t % 3]]
        trial = study.ask(at)
        noise = np.random.default_rng([7, t]).normal(scale=NOISE)
        study.tell(trial, float(np.sin(5 * trial.point[0]) + 2.0 * at[0] + noise + (3.0 if t >= 45 else 0.0)))
    study.ask([0.0])
    assert len(study.restarts) == 1
    assert 45 < study.restarts[0] < 70
    again = nr.Study(policy, seed=0)
    for trial in study.trials[:-1]:
        again.tell(again.ask(trial.context), trial.reward)
    np.testing.assert_array_equal(again.ask([0.0]).point, study.trials[-1].point)
