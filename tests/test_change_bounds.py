"""What Avanesov's theorem says in numbers, the width of its proof, and the ridge of Remark 3.1."""

import math

import numpy as np
import pytest

import nilregret as nr
from nilregret import theory as change
from nilregret.slots.widths.self_normalized import ConstantGain, GreedyGain, PeriodRkhs

ARMS, KERNEL = nr.Arms.grid(0, 5, 12), nr.Matern(2.5, 1.0)
SETTINGS = [(2.5, 1), (1.5, 2), (6.0, 2)]


@pytest.mark.parametrize(("alpha", "d"), SETTINGS)
def test_pairs_to_detect_are_c_13(alpha, d):
    norm, noise, x, C, distance = 1.7, 0.3, 3 * math.log(500), 0.4, 0.6
    level = C * (norm**2 + x**2 * noise**2)
    pairs = change.pairs_to_detect(distance, alpha=alpha, dimension=d, level=level)
    assert pairs == pytest.approx(2 * (level / distance) ** (1 + 1 / (2 * alpha + d)))
    rate = (2 * alpha + d) / (2 * alpha + d + 1)
    threshold = level * pairs**-rate  # eq. C.12
    assert threshold == pytest.approx(distance / 2**rate)
    assert change.pairs_to_detect(distance, alpha=math.inf, dimension=d, level=level) == pytest.approx(
        2 * level / distance
    )


@pytest.mark.parametrize(("alpha", "d"), SETTINGS)
def test_the_rate_is_eq_3_9(alpha, d):
    periods, distance = [300, 500, 1200], 0.25
    T, p = sum(periods), d * (d + 1)
    e = (2 * alpha + 3 * p) / (4 * alpha + 2 * p)
    rate = nr.theory.gp_ucb_cpd_regret_rate(periods, alpha=alpha, dimension=d, distance=distance, constant=2.0)
    delta = math.sqrt(distance)
    expected = 2.0 * delta ** -(2 + 2 / (2 * alpha + d)) * sum(t**e for t in periods) * math.log(T) ** 3
    assert rate == pytest.approx(expected)
    # The second line: equal periods.
    K = 4
    even = nr.theory.gp_ucb_cpd_regret_rate([T // K] * K, alpha=alpha, dimension=d, distance=1.0)
    power = (2 * alpha - p) / (4 * alpha + 2 * p)
    assert even == pytest.approx(K**power * T**e * math.log(T) ** 3)
    if e < 1:  # which is the largest that K periods make of it
        assert even > nr.theory.gp_ucb_cpd_regret_rate([T - 300, 100, 100, 100], alpha=alpha, dimension=d, distance=1.0)
    assert change.regret_exponent(math.inf, d) == 0.5


def test_the_exponents_of_the_experiments():
    """Section 4: the theorem "suggests c = 0.786" for alpha = 5/2 in one dimension."""
    assert change.regret_exponent(2.5, 1) == pytest.approx(0.786, abs=5e-4)


@pytest.mark.parametrize(("alpha", "d"), SETTINGS)
def test_the_bound_is_a_7(alpha, d):
    periods, noise, F, pairs, xi, D = [40_000, 60_000], 0.3, 2.0, 4.0, 1.3, 0.7
    T, p = sum(periods), d * (d + 1)
    e = (2 * alpha + 3 * p) / (4 * alpha + 2 * p)
    sigma2 = 6 * noise**2 * math.log(T)
    first = math.sqrt(8 * D * math.log(T) ** 3 / math.log(1 + 1 / sigma2)) * sum(t**e for t in periods)
    second = F * (xi + 2 * pairs * (2 / xi + 1 / xi**2)) * sum(math.sqrt(t) for t in periods)

    def bound(**more):
        return nr.theory.gp_ucb_cpd_regret_bound(
            periods,
            alpha=alpha,
            dimension=d,
            noise=noise,
            norm_bound=F,
            pairs=pairs,
            exploration=xi,
            constant=D,
            **more,
        )

    assert bound(largest_regret=F) == pytest.approx(first + second)  # as printed
    assert bound() == pytest.approx(first + 2 * second)  # a round may lose 2 F
    # (A.13): the first term is the sum of sqrt(8 T_i beta eta / log(1 + sigma^-2)) for the beta and eta that D bounds.
    learned = sum(
        math.sqrt(8 * t * D * t ** (2 * p / (2 * alpha + p)) * math.log(T) ** 3 / math.log(1 + 1 / sigma2))
        for t in periods
    )
    assert bound(largest_regret=0.0) == pytest.approx(learned)


def test_the_bound_has_no_constant_of_its_own():
    """The paper gives no D for which (A.7) is proved."""
    with pytest.raises(TypeError, match="constant"):
        nr.theory.gp_ucb_cpd_regret_bound([60_000], alpha=2.5, dimension=1, noise=0.1, norm_bound=1.0, pairs=5.0)


def test_periods_too_short_for_a_detection_are_refused():
    """(A.6) with xi = 1: 3 n* sqrt(2 max T_i) <= min T_i."""
    arguments = {"alpha": 2.5, "dimension": 1, "noise": 0.1, "norm_bound": 1.0, "exploration": 1.0, "constant": 1.0}
    least = 3 * 5.0 * math.sqrt(2 * 10_000)
    enough = [10_000, math.ceil(least)]
    assert nr.theory.gp_ucb_cpd_regret_bound(enough, pairs=5.0, **arguments) > 0
    with pytest.raises(nr.errors.InvalidInput, match=r"has 2,121 rounds, and \(A\.6\) asks for 2,121"):
        nr.theory.gp_ucb_cpd_regret_bound([10_000, math.floor(least)], pairs=5.0, **arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nr.theory.gp_ucb_cpd_regret_rate([], alpha=2.5, dimension=1, distance=1.0), "`periods`"),
        (lambda: nr.theory.gp_ucb_cpd_regret_rate(300, alpha=2.5, dimension=1, distance=1.0), "`periods`"),
        (lambda: nr.theory.gp_ucb_cpd_regret_rate([300, 0], alpha=2.5, dimension=1, distance=1.0), "`periods` is 0"),
        (lambda: nr.theory.gp_ucb_cpd_regret_rate([300], alpha=-1, dimension=1, distance=1.0), "`alpha`"),
        (lambda: change.pairs_to_detect(0.0, alpha=2.5, dimension=1, level=1.0), "`distance`"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        call()


# -- eq. A.3 -----------------------------------------------------------------------------------------------------------


def greedy_gains(K, ridge, count):
    """1/2 log det(I + K_A / ridge) along the greedy design, by dense determinants."""
    chosen, gains = [], [0.0]
    for _ in range(count):
        best = max(range(len(K)), key=lambda arm: gain(K, [*chosen, arm], ridge))
        chosen.append(best)
        gains.append(gain(K, chosen, ridge))
    return gains


def gain(K, arms, ridge):
    return 0.5 * np.linalg.slogdet(np.eye(len(arms)) + K[np.ix_(arms, arms)] / ridge)[1]


def test_the_width_of_the_proof():
    T, F, noise, D = 50, 1.5, 0.1, 2.0
    policy = nr.gp_ucb_cpd(
        ARMS, KERNEL, noise=noise, horizon=T, width="rkhs", norm_bound=F, constant=D,
        detector="oracle", change_points=(5,), exploration=0.0,
    )  # fmt: skip
    ridge = 6 * noise**2 * math.log(T)
    gains = greedy_gains(KERNEL(ARMS.points, ARMS.points), ridge, 5)
    study = nr.Study(policy, seed=0)
    for t in [1, 2, 3, 4, 5, 1, 2]:  # counted from the restart
        eta = gains[t] / (1 - 1 / math.e)  # the greedy bound of eta_t
        beta = D * (2 * F**2 + 300 * eta * math.log(t * T**2) ** 3)
        assert study.width == pytest.approx(math.sqrt(beta))
        study.tell(study.ask(), 0.3)
    assert study.restarts == [5]


def test_what_is_proved_with_the_width_of_the_proof():
    def proved(**more):
        policy = nr.gp_ucb_cpd(
            ARMS, KERNEL, noise=0.1, horizon=50, width="rkhs", norm_bound=1.0, detector="never", **more
        )
        return policy.valid_for

    assert proved() == "f"
    assert proved(constant=0.5) == "none"  # D >= 1
    assert proved(regularization=0.3) == "none"
    for gain in ("realised", "rate", 3.0):
        assert proved(information_gain=gain) == "none"
    part = PeriodRkhs(horizon=50, norm_bound=1.0, gain=GreedyGain())
    # Lemma B.5: T^-2, and 2 exp(-u) by (B.13), x^2 = 2 g^2 (u + log T), u = 2 log T (B.14 drops the 2 of two tails).
    tails = 2 * 50 * math.exp(-(2 * math.log(50) + math.log(50)))
    assert part.delta == pytest.approx(50**-2 + tails)
    policy = nr.gp_ucb_cpd(ARMS, KERNEL, noise=0.1, horizon=50, width="rkhs", norm_bound=1.0)
    assert policy.valid_for == "none"  # restarts spend it anew
    assert nr.Policy.from_json(policy.to_json()) == policy
    with pytest.raises(nr.errors.InvalidInput, match="needs `norm_bound`"):
        nr.gp_ucb_cpd(ARMS, KERNEL, noise=0.1, horizon=50, width="rkhs")
    with pytest.raises(nr.errors.InvalidInput, match="add `width` 'rkhs'"):
        nr.gp_ucb_cpd(ARMS, KERNEL, noise=0.1, horizon=50, norm_bound=1.0)
    with pytest.raises(nr.errors.InvalidInput, match="`horizon` is 1"):
        PeriodRkhs(horizon=1, norm_bound=1.0, gain=ConstantGain(value=1.0))


def test_no_smoothness_is_needed_where_no_schedule_hangs_on_it():
    kernel = KERNEL + nr.Matern(1.5, 0.5)
    policy = nr.gp_ucb_cpd(ARMS, kernel, noise=0.1, horizon=50, width="rkhs", norm_bound=1.0, detector="never")
    assert policy.confidence.constant == 1.0


# -- Remark 3.1 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [nr.Arms.grid(0, 5, 30), nr.Box([0.0], [5.0])], ids=["arms", "box"])
def test_the_ridge_predicts_left_out_rewards_best(domain):
    """Leaving out one pair at a time, fitting the others, and comparing: repeats included."""
    rng = np.random.default_rng(3)
    points = change.uniform_points(domain, 25, rng)
    y = np.sin(2 * points[:, 0]) + 0.3 * rng.standard_normal(25)
    candidates = [0.01, 10.0, 0.1, 1.0]
    choice = nr.theory.cross_validate_ridge(points, y, KERNEL, domain=domain, candidates=candidates)
    np.testing.assert_array_equal(choice.candidates, sorted(candidates))
    errors = []
    for ridge in sorted(candidates):
        left = []
        for i in range(25):
            rest = np.arange(25) != i
            K = KERNEL(points[rest], points[rest]) + ridge * np.eye(24)
            left.append(y[i] - (KERNEL(points[[i]], points[rest]) @ np.linalg.solve(K, y[rest]))[0])
        errors.append(np.mean(np.square(left)))
    np.testing.assert_allclose(choice.errors, errors, rtol=1e-8)
    assert choice.ridge == sorted(candidates)[int(np.argmin(errors))]
    assert choice.rho == pytest.approx(choice.ridge / 25)


def test_the_schedule_passes_through_the_ridge():
    points = np.linspace(0, 5, 12)
    choice = nr.theory.cross_validate_ridge(points, np.sin(points), KERNEL, domain=nr.Box([0.0], [5.0]))
    schedule = choice.schedule(2.5, 1)
    assert schedule.exponent == pytest.approx(1 / 7)  # n rho_n = c n^{1 / (2 alpha + d + 1)}
    assert schedule(12) == pytest.approx(choice.ridge)
    assert schedule(24) == pytest.approx(choice.ridge * 2 ** (1 / 7))
    nr.gp_ucb_cpd(ARMS, KERNEL, noise=0.1, horizon=50, ridge=schedule, regularization=choice.ridge)


def test_noisier_rewards_get_a_larger_ridge():
    rng = np.random.default_rng(0)
    points = rng.uniform(0, 5, 60)
    ridges = [
        nr.theory.cross_validate_ridge(
            points, np.sin(2 * points) + noise * rng.standard_normal(60), KERNEL, domain=nr.Box([0.0], [5.0])
        ).ridge
        for noise in (0.01, 1.0)
    ]
    assert 50 * ridges[0] < ridges[1]


def test_units_of_rewards_and_kernel_do_not_matter():
    points, box = np.linspace(0, 5, 15), nr.Box([0.0], [5.0])
    y = np.cos(points) + 0.1 * np.random.default_rng(1).standard_normal(15)
    plain = nr.theory.cross_validate_ridge(points, y, KERNEL, domain=box)
    scaled = nr.theory.cross_validate_ridge(points, 100 * y, nr.Matern(2.5, 1.0, scale=1e4), domain=box)
    assert scaled.ridge == pytest.approx(1e4 * plain.ridge)
    # Rewards of 0 are predicted by any ridge: the largest is taken.
    flat = nr.theory.cross_validate_ridge(points, np.zeros(15), KERNEL, domain=box)
    assert flat.ridge == flat.candidates[-1]


@pytest.mark.parametrize(
    ("points", "rewards", "more", "message"),
    [
        ([1.0], [0.5], {}, "two pairs at least"),
        ([1.0, 2.0], [0.5], {}, "one reward for each point"),
        ([1.0, 2.0], [0.5, math.nan], {}, "not finite"),
        ([1.0, 2.0], [0.5, 1e101], {}, "change the unit"),
        ([1.0, 2.0], [0.5, 1.0], {"candidates": []}, "`candidates`"),
        ([1.0, 2.0], [0.5, 1.0], {"candidates": [0.0, 1.0]}, "`candidates`"),
    ],
)
def test_bad_pairs_are_refused(points, rewards, more, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.theory.cross_validate_ridge(points, rewards, KERNEL, domain=nr.Box([0.0], [5.0]), **more)
