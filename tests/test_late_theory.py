"""Theorems for late answers: widths, regret bounds, fillings and initial rounds, each from first principles."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments.delays import (
    FixedDelay,
    GeometricDelay,
    HeavyTailedDelay,
    PoissonDelay,
    SilentNo,
    answer_probability,
    make_delay,
)
from nilregret.slots.envelope import ConstantWidth, FiniteBayes, Progress
from nilregret.slots.explore import UncertaintySampling, UniformExploration
from nilregret.slots.widths.delayed import CensoredWidth, Inflated
from nilregret.storage.base import News
from nilregret.storage.record import Trial
from nilregret.theory.regret_bounds import ANTI_CONCENTRATION

KERNEL = nr.SquaredExponential(0.15)
ARMS = nr.Arms.grid(0, 1, 30)
BOX = nr.Box([0.0], [1.0])
NOISE = 0.3


def play(study, rounds, delay=0, reward=lambda trial: math.sin(7 * trial.point[0])):
    """Tell each answer after so many further questions."""
    for number in range(rounds):
        study.ask()
        if number >= delay:
            trial = study.trials[number - delay]
            study.tell(trial, reward(trial))
    return study


def deviation(kernel, points, at, ridge):
    """Posterior std of f, by a dense solve."""
    at = np.atleast_2d(at)
    if not len(points):
        return np.sqrt(kernel.diagonal(at))
    K = kernel(points, points) + ridge * np.eye(len(points))
    k = kernel(points, at)
    return np.sqrt(kernel.diagonal(at) - np.einsum("ij,ij->j", k, np.linalg.solve(K, k)))


def gain(kernel, points, ridge):
    return 0.5 * np.linalg.slogdet(np.eye(len(points)) + kernel(points, points) / ridge)[1] if len(points) else 0.0


# -- regret bounds -----------------------------------------------------------------------------------------------------


def test_regret_bounds_are_those_of_the_papers():
    T, gamma, beta, m, By, rho, ridge = 100, 7.0, 3.0, 9, 1.5, 0.8, 2.0
    C1 = math.sqrt(2 / math.log(1 + 1 / ridge))
    ucb = nr.theory.gp_ucb_sdf_regret_bound(
        T, beta=beta, information_gain=gamma, window=m, reward_bound=By, answer_probability=rho, regularization=ridge
    )
    summed = C1 * beta * math.sqrt(T * gamma) + m * By * C1**2 * gamma
    assert ucb == pytest.approx(2 / rho * summed)  # Theorem 2
    B, Q, delta = 2.0, 50, 0.05
    ts = nr.theory.gp_ts_sdf_regret_bound(
        T, beta=beta, information_gain=gamma, window=m, reward_bound=By, answer_probability=rho, regularization=ridge,
        norm_bound=B, log_size=math.log(Q), delta=delta,
    )  # fmt: skip
    p, q = ANTI_CONCENTRATION, 1 + math.sqrt(2 * math.log(Q * T**2))
    c = q * (m * By + beta)
    expected = 11 / (rho * p) * q * summed + B * math.pi**2 / 3
    assert ts == pytest.approx(expected + (4 * B + 11 * c) / (rho * p) * math.sqrt(2 * T * math.log(2 / delta)))
    plain = nr.theory.gp_ucb_regret_bound(T, width=beta, information_gain=gamma, noise=0.5)
    hallucinated = nr.theory.gp_bucb_regret_bound(
        T, width=beta, information_gain=gamma, noise=0.5, conditional_gain=0.7
    )
    assert hallucinated == pytest.approx(math.exp(0.7) * plain)
    compact = nr.theory.gp_bucb_regret_bound(
        T, width=beta, information_gain=gamma, noise=0.5, conditional_gain=0.7, compact=True
    )
    assert compact == pytest.approx(hallucinated + 2)


def test_without_delays_the_bound_is_that_of_the_undelayed_rule():
    """m = 0 and rho = 1: 2 beta_T times the sum of deviations, as of IGP-UCB for a ridge of one's own."""
    known = {"information_gain": 7.0, "regularization": 1.5}
    assert nr.theory.gp_ucb_sdf_regret_bound(100, beta=3.0, window=0, **known) == pytest.approx(
        nr.theory.igp_ucb_regret_bound(100, width=3.0, **known)
    )
    assert nr.theory.gp_bucb_regret_bound(9, width=2.0, information_gain=1.0, noise=0.1, conditional_gain=0.0) == (
        nr.theory.gp_ucb_regret_bound(9, width=2.0, information_gain=1.0, noise=0.1)
    )


def test_large_batches_cost_censoring_less_than_hallucination():
    """Propositions 1 and 2 (m = b - 1, rho = 1) grow linearly in b where exp(gamma_{b-1}) grows with a power."""
    ratios = []
    for batch in (2, 20, 200):
        gamma = nr.information_gain(KERNEL, ARMS, 1.0, bound="greedy", count=batch - 1)
        censored = nr.theory.gp_ucb_sdf_regret_bound(1000, beta=3.0, information_gain=20.0, window=batch - 1)
        ratios.append(
            nr.theory.gp_bucb_regret_bound(1000, width=3.0, information_gain=20.0, noise=1.0, conditional_gain=gamma)
            / censored
        )
    assert ratios[0] < ratios[1] < ratios[2]


@pytest.mark.parametrize("ridge", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("m", [0, 4])
def test_widths_times_deviations_are_below_their_bound(ridge, m):
    """Eq. 12 and 13: what Theorem 2 bounds is 2 / rho_m times the sum of nu_t sigma_{t-1}(x_t), at any points."""
    rng, T, By, beta = np.random.default_rng(3), 25, 1.5, 2.0
    points = rng.uniform(size=(T, 1))
    points[5:9] = points[5]
    total = 0.0
    for t in range(T):
        before = points[:t]
        recent = deviation(KERNEL, before, points[max(t - m, 0) : t], ridge).sum() if t and m else 0.0
        total += (By * recent / min(ridge, 1.0) + beta) * deviation(KERNEL, before, points[t], ridge)[0]
    bound = nr.theory.gp_ucb_sdf_regret_bound(
        T, beta=beta, information_gain=gain(KERNEL, points, ridge), window=m, reward_bound=By, regularization=ridge
    )
    assert 2 * total <= bound * (1 + 1e-9)


def test_regret_bounds_refuse_nonsense():
    right = {"beta": 1.0, "information_gain": 1.0, "window": 2}
    for wrong in ({"answer_probability": 0.0}, {"answer_probability": 1.1}, {"window": -1}, {"regularization": 0.0}):
        with pytest.raises(nr.errors.InvalidInput, match=f"`{next(iter(wrong))}`"):
            nr.theory.gp_ucb_sdf_regret_bound(10, **{**right, **wrong})
    with pytest.raises(nr.errors.InvalidInput, match="`rounds`"):
        nr.theory.gp_ts_sdf_regret_bound(0, norm_bound=1.0, log_size=1.0, **right)
    with pytest.raises(nr.errors.InvalidInput, match="`conditional_gain`"):
        nr.theory.gp_bucb_regret_bound(10, width=1.0, information_gain=1.0, noise=0.1, conditional_gain=-1.0)
    with pytest.raises(nr.errors.InvalidInput, match="`initial`"):
        nr.theory.conditional_gain_bound(3, initial=0, information_gain=1.0)


# -- censoring with a small ridge --------------------------------------------------------------------------------------


def test_a_ridge_below_1_widens_the_theorem():
    policy = nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=3, minimum=-1.0, reward_bound=2.0, regularization=0.25)
    study = play(nr.Study(policy, seed=1), 6, delay=2)
    points = np.array([trial.point for trial in study.trials])
    recent = deviation(KERNEL, points, points[-3:], 0.25).sum()
    spread = math.sqrt(2 * (gain(KERNEL, points, 0.25) + 1 + math.log(2 / 0.1)))
    assert study.width == pytest.approx(2.0 * recent / 0.25 + 1.0 + (NOISE + 2.0) / 0.5 * spread)
    assert policy.valid_for == "rho_m f"
    # From lambda = 1 on there is no factor; and what the papers' experiments set by hand has none.
    for ridge in (1.0, 1.7):
        assert nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=3, regularization=ridge).confidence.ridge == 1.0
    constant = nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=3, minimum=-1.0, beta=1.0, regularization=0.25)
    study = play(nr.Study(constant, seed=1), 6, delay=2)
    points = np.array([trial.point for trial in study.trials])
    assert study.width == pytest.approx(deviation(KERNEL, points, points[-3:], 0.25).sum() + 1.0)
    assert constant.valid_for == "none"


def test_the_factors_are_those_of_a_scaled_problem():
    """k / lambda with a ridge of 1 is the same problem: mu is the same, sigma over and B_f times sqrt(lambda)."""
    ridge, points = 0.25, np.array([[0.1], [0.15], [0.6]])
    scaled = nr.SquaredExponential(0.15, scale=1 / ridge)
    first = CensoredWidth(window=2, reward_bound=0.7, norm_bound=3.0, noise=NOISE, ridge=ridge)
    second = replace(first, norm_bound=3.0 * math.sqrt(ridge), ridge=1.0)
    widths = []
    for width, kernel, lam in ((first, KERNEL, ridge), (second, scaled, 1.0)):
        study = nr.Study(nr.algorithms.greedy_mean(BOX, kernel, noise=math.sqrt(lam)))
        for point in points:
            study.add(point, 0.0)
        posterior = study.replica.state.settled().reward.posterior.belief.with_pending
        recent = deviation(kernel, points, points[-2:], lam)
        widths.append(width.width(4, Progress(posterior, recent=lambda recent=recent: recent)))
    # nu sigma is the same at every point: sigma' = sigma / sqrt(lambda).
    assert widths[0] * math.sqrt(ridge) == pytest.approx(widths[1])
    with pytest.raises(nr.errors.InvalidInput, match="`ridge`"):
        replace(first, ridge=1.5)


# -- GP-BUCB's theorem -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [ARMS, BOX], ids=["arms", "box"])
def test_inflated_bounds_hold_those_of_the_answered_trials(domain):
    """exp(I(f; y_unanswered | y_answered)): a dense information gain, and never narrower than what is proved."""
    policy = nr.gp_bucb(domain, KERNEL, noise=NOISE, inflation="realised")
    study = play(nr.Study(policy, seed=2), 9, delay=4)
    trials = study.trials
    everything = np.array([trial.point for trial in trials])
    answered = np.array([trial.point for trial in trials if trial.reward is not None])
    extra = gain(KERNEL, everything, NOISE**2) - gain(KERNEL, answered, NOISE**2)
    base = policy.confidence.base.width(len(trials) + 1, None)
    assert study.width == pytest.approx(math.exp(extra) * base)
    assert extra > 0.1
    at = ARMS.points
    bounds = study.bounds(at)
    spread = base * deviation(KERNEL, answered, at, NOISE**2)
    mean = study.predict(at)[0]
    assert (bounds[0] <= mean - spread + 1e-9).all()
    assert (bounds[1] >= mean + spread - 1e-9).all()


def test_what_gp_bucb_proves():
    make = lambda **more: nr.gp_bucb(ARMS, KERNEL, noise=NOISE, **more)  # noqa: E731
    assert make().valid_for == "none"
    assert make(inflation="realised").valid_for == make(inflation=0.5).valid_for == "f"
    assert nr.gp_bucb(BOX, KERNEL, noise=NOISE, inflation="realised").valid_for == "played"
    assert make(inflation="realised", beta=2.0).valid_for == "none"
    assert make(inflation="realised", regularization=1.0).valid_for == "none"
    assert make(inflation="realised", memory=nr.slots.SlidingWindow(9)).valid_for == "none"
    for wrong in ("realized", -0.1, math.nan):
        with pytest.raises(nr.errors.InvalidInput, match=r"`(inflation|least)`"):
            make(inflation=wrong)
    with pytest.raises(nr.errors.InvalidInput, match="`base`"):
        Inflated(base=2.0)


def test_a_given_c_is_the_least_factor():
    """The theorem asks that unanswered trials tell no more than C: where they do, the width follows them."""
    constant = nr.gp_bucb(ARMS, KERNEL, noise=NOISE, beta=1.0, inflation=1.2)
    study = nr.Study(constant, seed=0)
    assert study.width == pytest.approx(math.exp(1.2))
    points = np.array([trial.point for trial in study.ask(count=6)])
    assert gain(KERNEL, points, NOISE**2) > 1.2
    assert study.width == pytest.approx(math.exp(gain(KERNEL, points, NOISE**2)))


def test_without_delays_inflation_changes_nothing():
    plain = play(nr.Study(nr.gp_bucb(ARMS, KERNEL, noise=NOISE), seed=3), 25)
    inflated = play(nr.Study(nr.gp_bucb(ARMS, KERNEL, noise=NOISE, inflation="realised"), seed=3), 25)
    undelayed = play(nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=NOISE), seed=3), 25)
    assert [t.arm for t in plain.trials] == [t.arm for t in inflated.trials] == [t.arm for t in undelayed.trials]
    assert inflated.width == pytest.approx(undelayed.width, rel=1e-9)


def test_inflated_bounds_hold_in_batches():
    """f in the bounds, all arms and rounds, with probability 0.9 each: 5 failures of 12 have probability 0.004."""
    failures = 0
    policy = nr.gp_bucb(ARMS, KERNEL, noise=NOISE, inflation="realised", initial=6)
    K = KERNEL(ARMS.points, ARMS.points) + 1e-10 * np.eye(len(ARMS))
    for seed in range(12):
        rng = np.random.default_rng([11, seed])
        f = rng.multivariate_normal(np.zeros(len(ARMS)), K)
        study, inside = nr.Study(policy, seed=seed), True
        for _ in range(6):
            trials = study.ask(count=5)
            lower, upper = study.bounds()
            inside &= bool(((lower <= f) & (f <= upper)).all())
            for trial in trials:
                study.tell(trial, f[trial.arm] + NOISE * rng.normal())
        failures += not inside
    assert failures < 5


# -- uncertainty sampling ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [ARMS, BOX], ids=["arms", "box"])
@pytest.mark.parametrize("maker", [nr.gp_bucb, nr.algorithms.gp_bts], ids=["UCB", "Thompson"])
def test_first_rounds_take_the_largest_deviation(domain, maker):
    """Whatever is answered meanwhile, and by a dense posterior; afterwards the policy's own score decides."""
    policy = replace(maker(domain, KERNEL, noise=NOISE, beta=2.0), explore=UncertaintySampling(7))
    study = play(nr.Study(policy, seed=4), 7, delay=3)
    points = np.array([trial.point for trial in study.trials])
    fine = np.linspace(0, 1, 1001)[:, None] if domain is BOX else ARMS.points
    for t in range(7):
        most = deviation(KERNEL, points[:t], fine, NOISE**2).max()
        assert deviation(KERNEL, points[:t], points[t], NOISE**2)[0] >= most * (1 - 1e-6)
    assert not any(trial.explored for trial in study.trials)
    if maker is nr.gp_bucb and domain is ARMS:
        lower, upper = study.bounds()
        assert upper[study.ask().arm] == pytest.approx(upper.max())
        assert np.ptp(upper - lower) > 0.1


def test_initial_rounds_are_those_of_greedy_variance():
    initial = play(nr.Study(nr.gp_bucb(ARMS, KERNEL, noise=NOISE, initial=8), seed=5), 8)
    greedy = play(nr.Study(nr.algorithms.greedy_variance(ARMS, KERNEL, noise=NOISE), seed=5), 8)
    assert [trial.arm for trial in initial.trials] == [trial.arm for trial in greedy.trials]
    assert nr.gp_bucb(ARMS, KERNEL, noise=NOISE, initial=0) == nr.gp_bucb(ARMS, KERNEL, noise=NOISE)


@pytest.mark.parametrize("initial", [1, 5, 20])
def test_after_uncertainty_sampling_batches_tell_little(initial):
    study = play(nr.Study(nr.gp_bucb(ARMS, KERNEL, noise=NOISE, initial=initial), seed=6), initial)
    points = np.array([trial.point for trial in study.trials])
    realised = gain(KERNEL, points, NOISE**2)
    worst = 0.0
    rng = np.random.default_rng(8)
    for _ in range(50):
        batch = ARMS.points[rng.integers(len(ARMS), size=5)]
        worst = max(worst, gain(KERNEL, np.concatenate([points, batch]), NOISE**2) - realised)
    bound = nr.theory.conditional_gain_bound(6, initial=initial, information_gain=realised)
    assert worst <= bound * (1 + 1e-9)
    assert nr.theory.conditional_gain_bound(1, initial=initial, information_gain=realised) == 0.0


def test_restarts_begin_with_uncertainty_again():
    policy = nr.gp_bucb(ARMS, KERNEL, noise=NOISE, beta=0.0, initial=3, memory=nr.slots.RestartEvery(10))
    arms = [trial.arm for trial in play(nr.Study(policy, seed=7), 13).trials]
    widest = [
        deviation(KERNEL, ARMS.points[arms[10:t]], ARMS.points, NOISE**2)[arms[t]]
        == pytest.approx(deviation(KERNEL, ARMS.points[arms[10:t]], ARMS.points, NOISE**2).max())
        for t in range(10, 13)
    ]
    assert all(widest)
    with pytest.raises(nr.errors.InvalidInput, match="longer window"):
        nr.gp_bucb(ARMS, KERNEL, noise=NOISE, initial=5, memory=nr.slots.SlidingWindow(5))
    with pytest.raises(nr.errors.InvalidInput, match="forced uniform rounds"):
        replace(policy, memory=nr.slots.RestartOnChange())
    detecting = policy.detecting_changes()
    assert detecting.memory == nr.slots.AllOf((nr.slots.RestartEvery(10), nr.slots.RestartOnChange()))
    assert detecting.explore == nr.slots.InTurn((UncertaintySampling(3), UniformExploration()))


def test_descriptions_survive(tmp_path):
    policy = nr.gp_bucb(ARMS, KERNEL, noise=NOISE, inflation=0.4, initial=4)
    assert nr.Policy.from_json(policy.to_json()) == policy
    assert isinstance(policy.confidence.base, FiniteBayes)
    assert Inflated(base=ConstantWidth(value=1.0, delta=0.2)).delta == 0.2
    url = f"sqlite:///{tmp_path}/study.db"
    straight = play(nr.Study(policy, seed=9), 9, delay=2)
    play(nr.Study(policy, seed=9, storage=url), 9, delay=2)
    again = nr.Study(policy, seed=9, storage=url)
    assert again.ask().arm == straight.ask().arm
    assert again.width == straight.width


# -- rho_m -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("window", [0, 3, 7.5, math.inf])
@pytest.mark.parametrize(
    "delay",
    [
        FixedDelay(3.0),
        PoissonDelay(4.0),
        GeometricDelay(2.0),
        HeavyTailedDelay(3.0, tail=0.8),
    ],
    ids=repr,
)
def test_probabilities_are_the_frequencies(delay, window):
    """Six standard errors of 4,000 draws: by chance less than once in 1e7 cases."""
    rng = np.random.default_rng(1)
    seen = np.mean([delay.draw(rng, np.zeros(1), 0.0) <= min(window, 1e300) for _ in range(4000)])
    rho = delay.within(window)
    assert abs(seen - rho) <= 6 * math.sqrt(rho * (1 - rho) / 4000)
    if window < math.inf:
        assert answer_probability(delay, window) == rho


def test_the_slowest_point_decides():
    delay = lambda rng, x: rng.geometric(1 / (1 + 6 * x[0])) - 1  # noqa: E731
    exact = [GeometricDelay(6 * x).within(4) for x in (0.2, 0.5, 1.0)]
    found = answer_probability(delay, 4, points=[[0.2], [1.0], [0.5]], draws=4000)
    assert found == pytest.approx(min(exact), abs=6 * 0.5 / math.sqrt(4000))
    assert found == answer_probability(delay, 4, points=[[0.2], [1.0], [0.5]], draws=4000)
    assert answer_probability(lambda rng: rng.integers(4), 1, points=[[0.0]]) == pytest.approx(0.5, abs=0.1)
    assert answer_probability(timedelta(hours=1), timedelta(hours=2)) == 1.0
    assert answer_probability(timedelta(hours=1), timedelta(minutes=2)) == 0.0
    assert answer_probability(9, 9) == 1.0
    with pytest.raises(nr.errors.InvalidInput, match="`points`"):
        answer_probability(delay, 4)
    with pytest.raises(nr.errors.InvalidInput, match="both alike"):
        answer_probability(delay, timedelta(hours=2))
    for biased in (SilentNo(0.0), lambda rng, x, y: 0):
        with pytest.raises(nr.errors.InvalidInput, match="depend on the reward"):
            answer_probability(biased, 4, points=[[0.0]])
    assert make_delay(2).within(1) == 0.0


# -- an unknown horizon ------------------------------------------------------------------------------------------------


def test_periods_double_and_each_has_its_own_ridge():
    """Cuts at 16, 32, 64, ...; the posterior of each period is a dense one with lambda = 1 + 2/T, T its length."""
    policy = nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=2, minimum=-1.0, horizon="doubling")
    assert policy.memory == nr.slots.RestartDoubling(16, ridge=True)
    study = play(nr.Study(policy, seed=1), 70)
    assert study.restarts == [16, 32, 64]
    trials = study.trials[64:]
    X, y = np.array([t.point for t in trials]), np.array([t.reward for t in trials])
    K = KERNEL(X, X) + (1 + 2 / 64) * np.eye(len(X))
    mean, std = study.predict(ARMS.points)
    np.testing.assert_allclose(mean, -1.0 + KERNEL(ARMS.points, X) @ np.linalg.solve(K, y + 1.0), atol=1e-9)
    np.testing.assert_allclose(std, deviation(KERNEL, X, ARMS.points, 1 + 2 / 64), atol=1e-9)
    assert policy.valid_for == "none"


@pytest.mark.parametrize("first", [1, 3, 16])
def test_cuts_are_at_doubled_rounds(first):
    memory, cuts, since = nr.slots.RestartDoubling(first), [], 0
    for round_ in range(first * 20):
        due = memory.cut(since, round_)
        if due is not None:
            since = due.round
            cuts.append((round_, since))
    assert cuts == [(n, n) for n in (first * 2**i for i in range(5))]
    assert memory.cut(0, first * 20).round == first * 16  # several at once: the last
    assert memory.regularization(first, 0.3) == 0.3
    lengths = [
        nr.slots.RestartDoubling(first, ridge=True).regularization(since, 0.3) for since in (0, first, 2 * first)
    ]
    assert lengths == [1 + 2 / first, 1 + 2 / first, 1 + 1 / first]


def test_before_the_first_restart_doubling_changes_nothing():
    short = [nr.gp_ucb_sdf(ARMS, KERNEL, noise=NOISE, window=2, minimum=-1.0, horizon=h) for h in (16, "doubling")]
    fixed, doubling = (play(nr.Study(policy, seed=2), 15, delay=1) for policy in short)
    assert [trial.arm for trial in fixed.trials] == [trial.arm for trial in doubling.trials]
    assert fixed.width == doubling.width
    for more in ({"memory": nr.slots.SlidingWindow(3)}, {"regularization": 0.3}):
        with pytest.raises(nr.errors.InvalidInput, match="RestartDoubling"):
            nr.gp_ts_sdf(ARMS, KERNEL, noise=NOISE, window=2, horizon="doubling", **more)
    with pytest.raises(nr.errors.InvalidInput, match="`horizon`"):
        nr.gp_ts_sdf(ARMS, KERNEL, noise=NOISE, window=2, horizon="double")
    with pytest.raises(nr.errors.InvalidInput, match="`first`"):
        nr.slots.RestartDoubling(0)


# -- the nearest means -------------------------------------------------------------------------------------------------

HOURS = nr.Arms.grid(0, 24, 3)
WORLDS = {
    "arms": (ARMS, None, KERNEL),
    "box": (BOX, None, KERNEL),
    "arms, contexts": (ARMS, HOURS, nr.SquaredExponential([8.0, 0.15])),
}


def regress(kernel, X, y, at, ridge, prior):
    K = kernel(X, X) + ridge * np.eye(len(X))
    return prior + kernel(at, X) @ np.linalg.solve(K, np.asarray(y) - prior)


def filled(trials, kernel, k, sides, prior):
    """Rows and values of all trials: dense posterior means of the answered ones at the k nearest distinct of them."""
    rows = [np.concatenate([[] if t.context is None else t.context, t.point]) for t in trials]
    X = np.array([row for row, t in zip(rows, trials, strict=True) if t.reward is not None])
    y = [t.reward for t in trials if t.reward is not None]
    distinct = np.array(list(dict.fromkeys(map(tuple, X))))
    values = []
    for row, trial in zip(rows, trials, strict=True):
        distances = np.linalg.norm((distinct - row) / sides, axis=1)
        nearest = np.argsort(np.round(distances, 12), kind="stable")[:k]  # of those equally far the earlier trial
        means = regress(kernel, X, y, distinct[nearest], NOISE**2, prior)
        values.append(means.mean() if trial.reward is None else trial.reward)
    return np.array(rows), np.array(values)


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("k", [1, 3])
def test_unanswered_trials_count_as_the_means_nearby(name, k):
    domain, context, kernel = WORLDS[name]
    policy = nr.gp_ucb(
        domain, kernel, noise=NOISE, context=context, prior_mean=0.4, pending=nr.slots.NearestMeans(neighbours=k)
    )
    assert policy.valid_for == "none"
    study, rng = nr.Study(policy, seed=3), np.random.default_rng(5)
    sides = np.array([1.0]) if context is None else np.array([24.0, 1.0])
    at = ARMS.points
    seen = None if context is None else HOURS.points[1]
    for number in range(12):
        study.ask(None if context is None else HOURS.points[number % 3])
        if number in (3, 4, 6, 7, 8, 11):  # the first three have no answer yet
            open_ = [trial.number for trial in study.trials if trial.reward is None]
            study.tell(open_[rng.integers(len(open_))], float(rng.normal()))
            X, y = filled(study.trials, kernel, k, sides, 0.4)
            where = at if seen is None else np.column_stack([np.broadcast_to(seen, (len(at), 1)), at])
            expected = regress(kernel, X, y, where, NOISE**2, 0.4)
            np.testing.assert_allclose(study.predict(at, context=seen)[0], expected, atol=1e-7)
            np.testing.assert_allclose(
                study.predict(at, context=seen)[1], deviation(kernel, X, where, NOISE**2), atol=1e-6
            )


def test_at_answered_points_the_nearest_mean_is_hallucination():
    greedy = replace(nr.algorithms.greedy_mean(ARMS, KERNEL, noise=NOISE), pending=nr.slots.NearestMeans())
    study = nr.Study(greedy)
    study.add(ARMS.points[9], 1.0)
    mean, std = study.predict(ARMS.points)
    assert study.ask().arm == 9
    after, less = study.predict(ARMS.points)
    np.testing.assert_allclose(after, mean, atol=1e-12)
    assert less[9] < std[9] - 0.01


def test_before_the_first_answer_it_is_the_prior_mean():
    study = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=NOISE, prior_mean=0.7, pending=nr.slots.NearestMeans(neighbours=2)))
    study.ask(count=4)
    np.testing.assert_allclose(study.predict(ARMS.points)[0], 0.7, atol=1e-12)
    with pytest.raises(nr.errors.InvalidInput, match="`neighbours`"):
        nr.slots.NearestMeans(neighbours=0)


@pytest.mark.parametrize("memory", [nr.slots.SlidingWindow(6), nr.slots.RestartEvery(7)], ids=["window", "restarts"])
def test_what_is_forgotten_fills_nothing(memory):
    policy = nr.gp_ucb(ARMS, KERNEL, noise=NOISE, memory=memory, pending=nr.slots.NearestMeans())
    study = play(nr.Study(policy, seed=4), 17, delay=2)
    first = 17 - 6 if isinstance(memory, nr.slots.SlidingWindow) else 14
    X, y = filled(study.trials[first:], KERNEL, 1, np.array([1.0]), 0.0)
    np.testing.assert_allclose(
        study.predict(ARMS.points)[0], regress(KERNEL, X, y, ARMS.points, NOISE**2, 0.0), atol=1e-8
    )


def test_a_failure_that_counts_as_the_worst_is_filled_no_more():
    study = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=NOISE, pending=nr.slots.NearestMeans(failed="worst")), seed=1)
    first, second, third = study.ask(count=3)
    study.tell(first, 1.0)
    study.tell(second, -2.0)
    study.fail(third, "burnt down")
    X = np.array([trial.point for trial in (first, second, third)])
    np.testing.assert_allclose(
        study.predict(ARMS.points)[0],
        regress(KERNEL, X, [1.0, -2.0, -2.0], ARMS.points, NOISE**2, 0.0),
        atol=1e-9,
    )


def test_of_points_equally_far_the_earlier_trial_is_the_nearest():
    """Whichever answer came first."""
    arms = nr.Arms([[0.0], [0.5], [1.0]])
    policy = nr.algorithms.greedy_mean(arms, nr.SquaredExponential(0.1), noise=NOISE, pending=nr.slots.NearestMeans())
    for times in ((4, 6), (6, 4)):  # between the two answers another question
        asked = [Trial(n, arms.points[arm], arm, None, n + 1, 0.0) for n, arm in enumerate((0, 2, 1))]
        told = [
            asked[n].answered(reward=reward, order=order, time=0.0)
            for n, reward, order in zip((0, 1), (1.0, -1.0), times, strict=True)
        ]
        study = nr.Study(policy)
        study.replica.apply(News([*told, asked[2], Trial(3, arms.points[1], 1, None, 5, 0.0)], ""))
        assert study.predict(arms.points[1:2])[0][0] > 0.5


def test_without_answers_that_count_it_is_the_mean_that_was_fitted():
    policy = nr.gp_ucb(
        ARMS,
        KERNEL,
        noise=NOISE,
        memory=nr.slots.SlidingWindow(3),
        pending=nr.slots.NearestMeans(),
        refit=nr.slots.Refit(every=3),
    )
    study = nr.Study(policy, seed=0)
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, 5.0 + float(trial.point[0]))
    study.ask(count=4)  # no answer is in the window any more
    mean, _ = study.predict(ARMS.points)
    assert float(np.ptp(mean)) < 1e-9
    assert 5.0 <= float(mean[0]) <= 6.0
