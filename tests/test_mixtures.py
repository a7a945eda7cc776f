"""AY, AMM and DMM: against dense arithmetic, within each other, and honest; a norm told too small is found out."""

import math

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments import rkhs_function
from nilregret.gp import DistinctArmsPosterior, PointPosterior
from nilregret.gp.arms import Prior
from nilregret.gp.choice import posterior_on_arms
from nilregret.policy.state import State
from nilregret.slots.envelope import ConstantWidth, FiniteBayes, Progress
from nilregret.slots.widths.mixtures import RATIOS, AnalyticMixture, AnyRidge, DualMixture, Intersection

ARMS = nr.Arms.grid(0, 1, 40)
KERNEL = nr.Matern(2.5, 0.2)
KNOWN = {"norm_bound": 2.0, "noise": 0.3, "regularization": 0.09}


def observed(make, rounds=25, seed=0):
    """A posterior of random plays with repeats, and the plays themselves."""
    posterior, rng = make(), np.random.default_rng(seed)
    arms = rng.integers(0, 40, rounds)
    arms[1::3] = arms[0]
    targets = rng.normal(size=rounds)
    for arm, target in zip(arms, targets, strict=True):
        posterior.append(ARMS.points[arm] if isinstance(posterior, PointPosterior) else int(arm), float(target))
    return posterior, arms, targets


ENGINES = {
    "features": lambda: posterior_on_arms(ARMS, KERNEL, 0.09),
    "played": lambda: DistinctArmsPosterior(Prior(KERNEL, ARMS.points), 0.09),
    "points": lambda: PointPosterior(KERNEL, 1, 0.09),
}


def cells(name, arms=None):
    chosen = np.arange(40) if arms is None else arms
    return ARMS.points[chosen] if name == "points" else chosen


def dense(arms, targets, alpha):
    """Mean, std, y^T (I + K / alpha)^{-1} y and log det(I + K / alpha), from the printed formulas."""
    X = ARMS.points[arms]
    K, k = KERNEL(X, X), KERNEL(X, ARMS.points)
    inverse = np.linalg.inv(K + alpha * np.eye(len(X)))
    variance = 1.0 - np.einsum("in,ij,jn->n", k, inverse, k)
    misfit = alpha * targets @ inverse @ targets
    return k.T @ inverse @ targets, np.sqrt(variance), misfit, np.linalg.slogdet(np.eye(len(X)) + K / alpha)[1]


@pytest.mark.parametrize("name", ENGINES)
def test_a_spectrum_is_the_posterior_at_any_regularization(name):
    posterior, arms, targets = observed(ENGINES[name])
    ridges = 0.09 * RATIOS
    spectrum = posterior.spectrum()
    assert posterior.spectrum() is spectrum  # until something changes
    means, stds = spectrum.moments(cells(name), ridges)
    for alpha, mean, std, misfit in zip(ridges, means, stds, spectrum.misfit(ridges), strict=True):
        expected = dense(arms, targets, alpha)
        np.testing.assert_allclose(mean, expected[0], atol=1e-9)
        np.testing.assert_allclose(std, expected[1], atol=1e-8)
        assert misfit == pytest.approx(expected[2], rel=1e-9)
        assert spectrum.log_determinant_ratio(alpha) == pytest.approx(expected[3], rel=1e-9)
    some = spectrum.moments(cells(name, [3, 7]), ridges)
    np.testing.assert_allclose(some[0], means[:, [3, 7]], atol=1e-12)
    place = ARMS.points[arms[0]] if name == "points" else int(arms[0])
    posterior.revise(place, float(targets[0]), 5.0)
    again = posterior.spectrum()
    targets[0] = 5.0
    assert again.misfit(ridges)[3] == pytest.approx(dense(arms, targets, ridges[3])[2], rel=1e-9)
    posterior.forget(place, 5.0)
    assert posterior.spectrum().misfit(ridges)[3] == pytest.approx(dense(arms[1:], targets[1:], ridges[3])[2], rel=1e-9)


@pytest.mark.parametrize("name", ENGINES)
def test_dual_bounds_as_printed(name):
    B, R, delta, lam = 2.0, 0.3, 0.05, 0.09
    posterior, arms, targets = observed(ENGINES[name])
    mean, std = posterior.predict(cells(name))
    bounds = DualMixture(norm_bound=B, noise=R, regularization=lam, delta=delta).bounds(26, Progress(posterior))
    envelope = bounds(mean.copy(), std.copy(), cells(name))
    _, _, q0, log_ratio = dense(arms, targets, lam)
    radius = q0 + R**2 * (log_ratio + 2 * math.log(1 / delta))  # Rad_t^2
    each = [(*dense(arms, targets, alpha)[:3], alpha) for alpha in lam * RATIOS]
    widths = [s * math.sqrt((radius + alpha * B**2 - q) / alpha) for _, s, q, alpha in each]
    upper = np.min([m + w for (m, *_), w in zip(each, widths, strict=True)], axis=0)
    lower = np.max([m - w for (m, *_), w in zip(each, widths, strict=True)], axis=0)
    np.testing.assert_allclose(envelope.upper, upper, atol=1e-8)
    np.testing.assert_allclose(envelope.lower, lower, atol=1e-8)


def test_analytic_ones_as_printed():
    posterior, arms, targets = observed(ENGINES["features"])
    log_ratio = dense(arms, targets, 0.09)[3]
    noise = 0.3 / math.sqrt(0.09) * math.sqrt(log_ratio + 2 * math.log(2 / 0.1))
    now = Progress(posterior)
    assert AnyRidge(**KNOWN, parts=2).width(26, now) == pytest.approx(2.0 + noise)
    assert AnalyticMixture(**KNOWN, parts=2).width(26, now) == pytest.approx(math.hypot(2.0, noise))
    doubled = Progress(posterior, norm_bound=4.0, noise_factor=3.0)
    assert AnyRidge(**KNOWN, parts=2).width(26, doubled) == pytest.approx(4.0 + 3.0 * noise)


@pytest.mark.parametrize("seed", range(6))
def test_each_lies_within_the_one_before(seed):
    posterior, *_ = observed(ENGINES["features"], rounds=8 * (seed + 1), seed=seed)
    now, (mean, std) = Progress(posterior), posterior.predict()
    dual, analytic, any_ridge = (
        part.bounds(1, now)(mean.copy(), std.copy(), np.arange(40))
        for part in (DualMixture(**KNOWN), AnalyticMixture(**KNOWN), AnyRidge(**KNOWN))
    )
    assert (dual.upper <= analytic.upper + 1e-9).all()
    assert (dual.lower >= analytic.lower - 1e-9).all()
    assert (analytic.upper < any_ridge.upper).all()
    assert (dual.upper - dual.lower < analytic.upper - analytic.lower - 1e-6).any()


def test_bounds_follow_units_and_a_hallucinated_std():
    posterior, *_ = observed(ENGINES["features"])
    bounds = DualMixture(**KNOWN).bounds(26, Progress(posterior))
    mean, std = posterior.predict()
    plain = bounds(mean, std, None)
    other = bounds(7.0 + 2.0 * mean, 2.0 * std, None)
    np.testing.assert_allclose(other.upper, 7.0 + 2.0 * plain.upper, atol=1e-12)
    halved = bounds(mean, 0.5 * std, None)
    np.testing.assert_allclose(halved.upper - mean, 0.5 * (plain.upper - mean), atol=1e-12)


@pytest.mark.parametrize("width", ["ay", "amm", "dmm", "best"])
def test_bounds_hold_where_played(width):
    failures = 0
    for seed in range(30):
        f = rkhs_function(KERNEL, ARMS, norm=2.0, seed=seed)
        policy = nr.igp_ucb(ARMS, KERNEL, noise=0.3, norm_bound=2.0, width=width)
        assert policy.valid_for == "f"
        values, study, rng = f(ARMS.points), nr.Study(policy, seed=seed), np.random.default_rng(seed)
        inside = True
        for _ in range(40):
            trial = study.ask()
            lower, upper = study.bounds()
            inside &= bool((lower <= values + 1e-9).all() and (values <= upper + 1e-9).all())
            study.tell(trial, values[trial.arm] + 0.3 * rng.normal())
        failures += not inside
        assert study.norm_bounds[1:] == []
    assert failures <= 2  # delta = .1 of 30, and these are looser than that


@pytest.mark.parametrize("seed", range(4))
def test_half_the_norm_empties_the_set_and_is_raised(seed):
    f = rkhs_function(KERNEL, ARMS, norm=4.0, seed=seed)
    policy = nr.igp_ucb(ARMS, KERNEL, noise=0.1, norm_bound=2.0, width="dmm")
    values, rng = f(ARMS.points), np.random.default_rng(seed)
    assert State(policy, seed=0).valid_for == "f"
    study = nr.Study(policy, seed=seed)
    for _ in range(60):
        trial = study.ask()
        study.tell(trial, values[trial.arm] + 0.1 * rng.normal())
        if len(study.norm_bounds) > 1:
            lower, upper = study.bounds()
            assert (lower <= values).all()
            assert (values <= upper).all()
            assert study.replica.state.settled().valid_for == "none"  # what was told is refuted
    raised = study.norm_bounds
    assert raised[0] == (0, 2.0)
    assert raised[1][0] <= 50
    assert raised[-1][1] in (4.0, 8.0)


def test_a_constraint_whose_norm_is_refuted_is_not_called_proved():
    g = rkhs_function(KERNEL, ARMS, norm=4.0, seed=1)(ARMS.points)
    told_too_small = DualMixture(norm_bound=0.5, noise=0.1, regularization=0.01)
    policy = nr.gp_ucb(
        ARMS, KERNEL, noise=0.1,
        constraints=nr.EveryRound(noise=0.1, regularization=0.01, confidence=told_too_small),
    )  # fmt: skip
    study, rng = nr.Study(policy, seed=0), np.random.default_rng(0)

    def claim():
        return study.replica.current().limit(1).valid_for

    assert claim() == "f"
    for arm in rng.integers(0, 40, 60):
        study.add(ARMS.points[arm], 0.0, constraints=[g[arm] + 0.1 * rng.normal()])
    assert claim() == "none"
    assert study.replica.current().outputs.confidence == 0.0  # of all of them together


@pytest.mark.parametrize("where", ["box", "context", "late"])
def test_dual_bounds_anywhere(where):
    box = nr.Box([0.0], [1.0])
    domain = box if where == "box" else ARMS
    context = nr.Arms.grid(0, 1, 3) if where == "context" else None
    kernel = nr.Matern(2.5, [0.5, 0.2]) if context is not None else KERNEL
    pending = "hallucinate" if where == "late" else None
    policy = nr.igp_ucb(
        domain, kernel, noise=0.1, norm_bound=2.0, width="dmm", context=context, pending=pending,
    )  # fmt: skip
    study = nr.Study(policy, seed=1)
    given = [[0.5]] if context is not None else []
    for _ in range(6):
        first, second = study.ask(*given), study.ask(*given)
        if where == "late":
            assert first.arm != second.arm  # the second knows of the first
        for trial in (first, second):
            study.tell(trial, float(np.sin(5 * trial.point[0])))
    points = np.linspace(0, 1, 7)[:, None] if where == "box" else None
    lower, upper = study.bounds(points, context=[0.5] if given else None)
    assert (lower < upper).all()
    assert policy.valid_for == ("none" if where == "late" else "f")


def test_several_bounds_at_once():
    dual = DualMixture(**KNOWN, delta=0.05)
    bayes = FiniteBayes(size=40, delta=0.05)
    both = Intersection(parts=(dual, bayes))
    posterior, *_ = observed(ENGINES["features"])
    now, (mean, std) = Progress(posterior), posterior.predict()
    each = [part.bounds(5, now)(mean.copy(), std.copy(), None) for part in (dual, bayes)]
    found = both.bounds(5, now)(mean.copy(), std.copy(), None)
    np.testing.assert_array_equal(found.upper, np.minimum(each[0].upper, each[1].upper))
    np.testing.assert_array_equal(found.lower, np.maximum(each[0].lower, each[1].lower))
    assert both.delta == pytest.approx(0.1)
    assert both.valid_for == "f"
    policy = nr.igp_ucb(ARMS, KERNEL, noise=0.3, width=both, regularization=0.09)
    assert policy.valid_for == "f"
    assert nr.Policy.from_json(policy.to_json()) == policy
    assert Intersection(parts=(dual, ConstantWidth(value=2.0))).valid_for == "none"
    with pytest.raises(nr.errors.InvalidInput, match="two or more"):
        Intersection(parts=(dual,))


def test_what_is_chosen_by_name():
    def ucb(**more):
        return nr.igp_ucb(ARMS, KERNEL, noise=0.3, norm_bound=2.0, **more)

    assert isinstance(ucb(width="best").confidence, DualMixture)
    assert ucb(width="best").regularization == 0.3**2
    assert ucb(width="igp").regularization == 1.0
    assert isinstance(ucb(width="best", memory=nr.slots.Discount(0.01)).confidence, AnalyticMixture)
    assert isinstance(ucb(width="best", refit=nr.slots.Refit(every=5)).confidence, AnalyticMixture)
    draw = nr.gp_ts(ARMS, KERNEL, noise=0.3, norm_bound=2.0, width="best").confidence
    assert isinstance(draw, AnalyticMixture)
    assert draw.parts == 2
    whitehouse = ucb(width="ay", regularization="whitehouse", horizon=100)
    assert whitehouse.regularization == pytest.approx(100 ** (1 / (2 * 2.5 + 2)))  # d = 1, nu = 5/2
    assert whitehouse.valid_for == "f"


@pytest.mark.parametrize(
    ("more", "match"),
    [
        ({"width": "dmm", "refit": nr.slots.Refit(every=5)}, "nobody knows the norm"),
        ({"width": "dmm", "memory": nr.slots.Discount(0.01)}, "no single f fits"),
        ({"width": "amm", "information_gain": "greedy"}, "leave `information_gain` out"),
        ({"width": "amm", "v": 2.0, "norm_bound": None}, "`v` replaces"),
        ({"width": "ay", "regularization": "whitehouse"}, "needs `horizon`"),
        ({"width": "ay", "regularization": "other"}, "whitehouse"),
        ({"width": "flynn"}, "dmm"),
    ],
)
def test_nonsense_is_refused(more, match):
    with pytest.raises(nr.errors.InvalidInput, match=match):
        nr.igp_ucb(ARMS, KERNEL, noise=0.3, **{"norm_bound": 2.0, **more})
