import math
import warnings

import numpy as np
import pytest
from scipy.stats import lognorm, multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import nilregret as nr
from nilregret import serialize
from nilregret.gp import fitting, likelihood
from nilregret.gp import likelihood as priors
from nilregret.testing.driver import central_differences

from .conformance.test_kernels import KERNELS
from .marks import thinned
from .reference import Dense


def draw(n, d, seed, noise=0.1, lengthscales=None):
    """Standardised rewards of a Matern process on the unit cube."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    K = nr.Matern(2.5, np.geomspace(0.3, 3, d) if lengthscales is None else lengthscales)(X, X)
    y = np.linalg.cholesky(K + 1e-10 * np.eye(n)) @ rng.standard_normal(n) + noise * rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


# The likelihood

REPEATED = [("SquaredExponential", 4), ("Matern 0.8", 4), ("Product", 4), ("Tied, each for itself", 4)]


@pytest.mark.parametrize(
    ("name", "repeats"), [*((name, 1) for name in KERNELS), *thinned([(name, 4) for name in KERNELS], *REPEATED)]
)
def test_likelihood_and_its_gradient(name, repeats):
    kernel, points = KERNELS[name]
    X = np.repeat(points, repeats, axis=0)[: 12 * repeats - 1]  # not every point as often
    y = np.random.default_rng(1).standard_normal(len(X))
    covariance = kernel(X, X) + 0.3 * np.eye(len(X))
    found = nr.gp.log_marginal_likelihood(kernel, X, y, 0.3)
    assert found.value == pytest.approx(multivariate_normal(cov=covariance).logpdf(y), abs=1e-9)

    def value(theta):
        moved = kernel.with_log_parameters(theta[:-1])
        return nr.gp.log_marginal_likelihood(moved, X, y, math.exp(theta[-1])).value

    expected = central_differences(value, np.append(kernel.log_parameters, math.log(0.3)))
    np.testing.assert_allclose(found.gradient, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("repeats", [1, 3])
def test_likelihood_at_the_best_constant_mean_and_its_gradient(repeats):
    X = np.repeat(np.random.default_rng(5).uniform(size=(12, 2)), repeats, axis=0)[: 12 * repeats - 1]
    y = 7.0 + np.random.default_rng(1).standard_normal(len(X))
    kernel, data = nr.Matern(2.5, [0.3, 0.6], scale=2.0), likelihood.merged(X, y)

    def at(theta):
        return likelihood.Marginal(kernel, data, ridges=(0.0,), fit_mean=True)(theta)

    theta = np.append(kernel.log_parameters, math.log(0.3))
    found = at(theta)
    C = kernel(X, X) + 0.3 * np.eye(len(X))
    ones = np.linalg.solve(C, np.ones(len(X)))
    assert found.mean == pytest.approx(ones @ y / ones.sum(), rel=1e-9)
    for off in (0.0, -0.1, 0.1):
        other = multivariate_normal(np.full(len(X), found.mean + off), C).logpdf(y)
        assert found.value == pytest.approx(other, abs=1e-8) if off == 0.0 else found.value > other
    expected = central_differences(lambda t: at(t).value, theta)
    np.testing.assert_allclose(found.gradient(), expected, rtol=1e-6, atol=1e-6)


def test_a_fitted_mean_follows_a_shift_of_the_rewards():
    X, y = draw(40, 2, 3)
    plain, shifted = (nr.gp.fit(nr.Matern(2.5, [0.5, 0.5]), X, z, fit_mean=True) for z in (y, y + 5.0))
    assert shifted.mean == pytest.approx(plain.mean + 5.0, abs=1e-3)
    np.testing.assert_allclose(shifted.kernel.log_parameters, plain.kernel.log_parameters, atol=1e-3)
    assert shifted.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-5)
    without = nr.gp.fit(nr.Matern(2.5, [0.5, 0.5]), X, y)
    assert without.mean == 0.0
    assert plain.log_posterior >= without.log_posterior - 1e-6


def test_repeats_equal_the_plain_likelihood_for_rewards_far_from_zero():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 4, (200, 2)) / 4.0
    y = 1e4 + rng.standard_normal(200)
    kernel = nr.SquaredExponential([0.5, 1.0], scale=1e8) * nr.Linear().on(0) + nr.Matern(0.5, scale=1e8)
    plain = Dense(kernel(X, X), range(200), y, 0.5)  # extended precision: double is not enough for 200 x 200 here
    expected = -0.5 * (plain.quadratic_form + plain.log_determinant + 200 * math.log(2 * math.pi))
    assert nr.gp.log_marginal_likelihood(kernel, X, y, 0.5).value == pytest.approx(expected, rel=1e-10)


def test_cost_follows_the_distinct_points(monkeypatch):
    seen = []
    original = nr.SquaredExponential.profile
    monkeypatch.setattr(
        nr.SquaredExponential, "profile", lambda self, squares: seen.append(squares.size) or original(self, squares)
    )
    X = np.tile(np.linspace(0, 1, 20)[:, None], (100, 1))
    nr.gp.log_marginal_likelihood(nr.SquaredExponential(0.3), X, np.sin(9 * X[:, 0]), 0.01)
    assert seen == [20 * 19 // 2]


def test_likelihood_of_nothing_is_one():
    assert nr.gp.log_marginal_likelihood(nr.Matern(), np.zeros((0, 2)), [], 0.1).value == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": [[0.0], [np.nan], [1.0]]}, "`X` has a value that is not finite"),
        ({"y": [0.0, np.inf, 1.0]}, "`y` has a value that is not finite"),
        ({"y": [0.0, 1.0]}, r"`y` has shape \(2,\) and X 3 rows"),
        ({"y": np.zeros((3, 1))}, r"`y` has shape \(3, 1\)"),
        ({"noise_variance": 0.0}, "`noise_variance` is 0"),
        ({"noise_variance": -1.0}, "`noise_variance` is -1"),
        ({"X": [[0.0], [1e-12], [1.0]], "noise_variance": 1e-30}, "singular to rounding"),
    ],
)
def test_bad_data_are_explained(change, message):
    arguments = {"X": [[0.0], [0.5], [1.0]], "y": [0.0, 1.0, 0.5], "noise_variance": 0.1} | change
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.gp.log_marginal_likelihood(nr.SquaredExponential(), **arguments)
    arguments["noise"] = arguments.pop("noise_variance")
    if "singular" not in message:
        with pytest.raises(nr.errors.InvalidInput, match=message.replace("noise_variance", "noise")):
            nr.gp.fit(nr.SquaredExponential(), **arguments)


# The fit


@pytest.mark.parametrize("d", [2, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_maximum_likelihood_is_not_below_scikit_learn(d, seed):
    X, y = draw(60, d, seed, noise=0.2)
    found = nr.gp.fit(nr.Matern(2.5, [0.5] * d), X, y, prior=None)
    structure = sk.ConstantKernel(1.0, (1e-4, 1e4)) * sk.Matern([0.5] * d, (1e-3, 1e3), nu=2.5)
    with warnings.catch_warnings():  # that a lengthscale sits at its bound
        warnings.simplefilter("ignore")
        peer = GaussianProcessRegressor(structure + sk.WhiteKernel(0.01, (1e-6, 10.0)), alpha=1e-12).fit(X, y)
    assert found.converged
    assert found.log_likelihood > peer.log_marginal_likelihood_value_ - 1e-3
    assert found.log_posterior == found.log_likelihood
    value, _ = nr.gp.log_marginal_likelihood(found.kernel, X, y, found.noise**2)
    assert found.log_likelihood == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        nr.SquaredExponential([0.3, 0.3]),
        nr.Matern(1.5, 0.3),
        nr.Matern(2.2, 0.3),
        nr.Linear() + nr.SquaredExponential(0.3),
        nr.Matern(2.5, 0.3).on(0) * nr.Matern(2.5, 0.3).on(1),
    ],
    ids=str,
)
@pytest.mark.parametrize("prior", [None, "hvarfner", "moderate", "related"])
def test_a_fit_is_a_local_maximum(kernel, prior):
    X, y = draw(40, 2, 3)
    found = nr.gp.fit(kernel, X, y, prior=prior)
    assert found.converged
    beliefs = priors.prior_of(kernel, X, float(y.var()), prior, {})
    problem = fitting._Problem(kernel, likelihood.merged(X, y), beliefs)
    theta = np.append(found.kernel.log_parameters, 2 * math.log(found.noise))
    for index in range(len(theta)):
        for step in (-0.05, 0.05):
            moved = theta.copy()
            moved[index] += step
            moved = np.clip(moved, beliefs.low, beliefs.high)
            assert -problem.loss(moved)[0] <= found.log_posterior + 1e-6
    np.testing.assert_allclose(problem.loss(theta)[1], central_differences(lambda t: problem.loss(t)[0], theta),
                               atol=1e-5)  # fmt: skip


def test_without_the_core_of_scipy_a_fit_is_equal_to_the_bit(monkeypatch):
    X, y = draw(40, 2, 3)

    def fits():
        kernel = nr.Matern(2.5, [0.5, 0.5])
        return [nr.gp.fit(kernel, X, y, noise=0.1, fit_noise=known, bounds=bounds) for known, bounds in cases]

    cases = [(True, {}), (False, {"lengthscale": (0.1, 1.0)}), (False, {"lengthscale": (1, 1), "scale": (1, 1)})]
    assert fitting._core() is not None
    expected = fits()
    monkeypatch.setattr(fitting, "_core", lambda: None)
    assert fits() == expected


def test_the_prior_is_the_one_of_the_paper():
    # Few points say little: with the noise and everything else at hand, the posterior is the likelihood times these.
    X, y = draw(10, 4, 0)
    found = nr.gp.fit(nr.SquaredExponential([1.0] * 4), X, y)
    densities = [
        lognorm.logpdf(each, s=math.sqrt(3), scale=math.exp(math.sqrt(2)) * 2.0) for each in found.kernel.lengthscale
    ]
    densities.append(lognorm.logpdf(found.noise**2, s=1.0, scale=math.exp(-4.0)))
    densities.append(lognorm.logpdf(found.kernel.scale, s=1.0, scale=math.e))
    assert found.log_posterior == pytest.approx(found.log_likelihood + sum(densities), abs=1e-9)


def test_heavy_noise_is_found_and_none_is_invented():
    # Issue 28: within a factor of two in nine of ten runs. Most of these sets were interpolated under "hvarfner".
    kernel, ratios, invented = nr.Matern(2.5, [0.5] * 2), {"hvarfner": [], "moderate": []}, []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(60, 2))
        truth = np.sin(4.0 * X[:, 0]) + np.cos(9.0 * X[:, 1]) * X[:, 0]
        y = truth + 0.6 * rng.standard_normal(60)
        for prior, found in ratios.items():
            refit = nr.slots.Refit(every=3, prior=prior, warp="half-rank", noise="unknown")
            fitted = refit(kernel, X, y, np.ones(2), noise=0.1, seed=0)
            found.append(math.sqrt(fitted.regularization) * fitted.scale.std / 0.6)
        still = nr.gp.fit(kernel, X, nr.gp.Standardization.of(truth).to(truth), prior="moderate", fit_mean=True)
        invented.append(still.noise)
    within = {prior: np.mean(np.abs(np.log2(found)) <= 1.0) for prior, found in ratios.items()}
    assert within["moderate"] >= 0.9 > within["hvarfner"]
    assert max(invented) < 0.02


def test_related_lengthscales_vary_about_a_shared_one():
    # In log parameters it is the normal density with the covariance below, about the mode of the paper's prior.
    X, _ = draw(10, 4, 0)
    kernel = nr.SquaredExponential([1.0] * 4)
    mode = math.sqrt(2) + math.log(4) / 2 - 3
    around, shared = np.eye(4) - 0.25, np.full((4, 4), 0.25)  # covariances: deviations from the average, the average
    related = multivariate_normal(np.full(4, mode), 0.25 * around + 4.0 * shared)
    paper, ours = (priors.prior_of(kernel, X, 1.0, name, {}) for name in ("hvarfner", "related"))
    np.testing.assert_allclose(paper.mode[:5], ours.mode[:5], atol=1e-12)  # The noise differs.
    rng = np.random.default_rng(0)
    one, other = rng.normal(mode, 1.0, (2, 6))
    one[4:] = other[4:]  # scale and noise
    here, there = (ours.density()(theta)[0] for theta in (one, other))
    assert here - there == pytest.approx(related.logpdf(one[:4]) - related.logpdf(other[:4]))
    drawn = ours.draw(300, rng)
    assert np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] == pytest.approx(0.8, abs=0.1)
    # A lengthscale for all columns, or for those of a choice, stays alone.
    assert not len(priors.prior_of(nr.Matern(2.5, 0.3), X, 1.0, "related", {}).related)


def test_few_answers_show_how_smooth_a_function_is_in_all_directions():
    X = np.random.default_rng(2).uniform(size=(40, 10))
    rewards = -np.sum((X - 0.4) ** 2, axis=1)
    y = fitting.Standardization.of(rewards).to(rewards)
    new = np.random.default_rng(9).uniform(size=(50, 10))
    truth = -np.sum((new - 0.4) ** 2, axis=1)
    errors = []
    for prior in ("hvarfner", "related"):
        found = nr.gp.fit(nr.Matern(2.5, [0.5] * 10), X, y, prior=prior, fit_mean=True)
        posterior = nr.gp.PointPosterior(found.kernel, 10, found.noise**2)
        posterior.extend(X, y - found.mean)
        errors.append(1.0 - np.corrcoef(posterior.predict(new)[0], truth)[0, 1])
    assert errors[1] < 0.7 * errors[0]


def test_the_truth_is_found_from_many_points():
    # One draw at a fixed seed; the tolerance is about three standard errors of the maximum-likelihood estimates.
    X, y = draw(400, 2, 5, noise=0.2, lengthscales=[0.2, 0.8])
    found = nr.gp.fit(nr.Matern(2.5, [0.5, 0.5]), X, y, prior=None)
    np.testing.assert_allclose(np.log(found.kernel.lengthscale), np.log([0.2, 0.8]), atol=0.6)
    rng = np.random.default_rng(5)
    rng.uniform(size=(400, 2))
    assert found.noise / math.sqrt(found.kernel.scale) == pytest.approx(0.2, rel=0.5)


def test_equal_arguments_give_equal_results():
    X, y = draw(30, 2, 1)
    kernel = nr.Matern(2.5, [0.5, 0.5])
    first = nr.gp.fit(kernel, X, y, restarts=3, seed=4)
    assert first == nr.gp.fit(kernel, X.copy(), y.copy(), restarts=3, seed=4)
    assert nr.gp.fit(kernel, X, y, restarts=3, seed=5).log_posterior == pytest.approx(first.log_posterior, abs=1e-3)


def test_order_and_merging_do_not_matter():
    X, y = draw(30, 2, 1)
    X, y = np.vstack([X, X]), np.concatenate([y, y + 0.1])
    order = np.random.default_rng(0).permutation(60)
    first, second = nr.gp.fit(nr.Matern(), X, y), nr.gp.fit(nr.Matern(), X[order], y[order])
    assert first.log_posterior == pytest.approx(second.log_posterior, abs=1e-4)


def test_starts_compared_on_a_part_lead_to_the_optimum_of_all(monkeypatch):
    X, y = draw(120, 2, 2)
    whole = nr.gp.fit(nr.Matern(2.5, [0.5, 0.5]), X, y)
    monkeypatch.setattr(fitting, "PART", 40)
    part = nr.gp.fit(nr.Matern(2.5, [0.5, 0.5]), X, y)
    assert part.log_posterior == pytest.approx(whole.log_posterior, abs=1e-3)


def test_a_fit_works_with_a_part_of_many_points(monkeypatch):
    X, y = draw(120, 2, 2)
    whole = nr.gp.fit(nr.Matern(2.5, [0.5, 0.5]), X, y, fit_mean=True)
    sizes, marginal = [], likelihood.Marginal
    monkeypatch.setattr(fitting, "MOST", 100, raising=False)
    monkeypatch.setattr(
        likelihood, "Marginal", lambda k, data, **given: sizes.append(len(data.means)) or marginal(k, data, **given)
    )
    part, again, other = (nr.gp.fit(nr.Matern(2.5, [0.5, 0.5]), X, y, fit_mean=True, seed=seed) for seed in (0, 0, 1))
    assert set(sizes) == {100}
    assert (part.kernel, part.noise, part.mean) == (again.kernel, again.noise, again.mean)
    assert part.kernel != other.kernel  # which part it is follows from the seed
    np.testing.assert_allclose(part.kernel.log_parameters, whole.kernel.log_parameters, atol=0.3)
    assert part.message.endswith("on 100 of 120 points.")


def test_more_starts_are_never_worse():
    for seed in range(4):
        X, y = draw(12, 2, seed, noise=0.3)
        values = [
            nr.gp.fit(nr.Matern(2.5, [0.05, 5.0]), X, y, prior=None, restarts=r).log_likelihood for r in (0, 2, 6)
        ]
        assert values[0] <= values[1] + 1e-9
        assert values[1] <= values[2] + 1e-9


def test_known_noise_stays_as_it_is():
    X, y = draw(30, 2, 1)
    found = nr.gp.fit(nr.Matern(), X, y, noise=0.37, fit_noise=False)
    assert found.noise == pytest.approx(0.37, rel=1e-14)
    assert found.kernel != nr.Matern()
    tiny = nr.gp.fit(nr.Matern(), X, y, noise=1e-3, fit_noise=False)  # below the floor, but said to be known
    assert tiny.noise == pytest.approx(1e-3, rel=1e-14)
    with pytest.raises(nr.errors.InvalidInput, match="`noise` is not given"):
        nr.gp.fit(nr.Matern(), X, y, fit_noise=False)


def test_bounds_fix_and_limit():
    X, y = draw(30, 2, 1)
    bounds = {"scale": (1.0, 1.0), "noise": (0.2, 0.25), "lengthscale": (0.4, 0.6)}
    found = nr.gp.fit(nr.Matern(2.5, [1.0, 1.0]) + nr.Linear(scale=7.0), X, y, bounds=bounds)
    assert found.kernel.left.scale == found.kernel.right.scale == 1.0
    assert 0.2 - 1e-12 <= found.noise <= 0.25 + 1e-12
    assert all(0.4 - 1e-12 <= each <= 0.6 + 1e-12 for each in found.kernel.left.lengthscale)
    everything = {"scale": (1.0, 1.0), "noise": (0.2, 0.2), "lengthscale": (0.4, 0.4)}
    assert nr.gp.fit(nr.Matern(), X, y, bounds=everything).converged


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prior": "flat"}, "`prior` is 'flat'"),
        ({"restarts": -1}, "`restarts` is -1"),
        ({"seed": 0.5}, "`seed`"),
        ({"noise": -0.1}, "`noise` is -0.1"),
        ({"bounds": {"length": (1, 2)}}, "'lengthscale', 'scale', 'noise'"),
        ({"bounds": {"noise": 0.1}}, "two numbers"),
        ({"bounds": {"noise": (0.2, 0.1)}}, r"bounds\['noise'\]\[1\]"),
        ({"bounds": {"noise": (0.0, 0.1)}}, r"bounds\['noise'\]\[0\]"),
    ],
)
def test_bad_arguments_are_explained(arguments, message):
    X, y = draw(10, 2, 1)
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.gp.fit(nr.Matern(), X, y, **arguments)


@pytest.mark.parametrize("prior", [None, "hvarfner"])
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((0, 1)), [], "0 distinct points"),
        ([[0.3]], [1.0], "1 distinct points"),
        ([[0.3], [0.7], [0.3], [0.7]], [1.0, 2.0, 3.0, 4.0], "2 distinct points"),
        ([[0.1], [0.2], [0.3], [0.4]], [0.1, 0.1, 0.1, 0.1], "all rewards are equal"),
        ([[0.1], [0.2], [0.3], [0.4]], [0.0, 0.0, 0.0, 0.0], "all rewards are equal"),
    ],
)
def test_nothing_to_fit_is_said_and_the_kernel_kept(prior, X, y, message):
    with pytest.warns(nr.errors.NoRegretWarning, match=message):
        found = nr.gp.fit(nr.Matern(1.5, 0.123), X, y, noise=0.5, prior=prior)
    assert not found.converged
    assert message in found.message
    np.testing.assert_allclose(found.kernel.lengthscale, 0.123)
    assert found.noise == pytest.approx(0.5)
    assert math.isfinite(found.log_posterior)


def test_noise_is_fitted_to_two_points_where_that_is_wanted():
    X = np.repeat([[0.3], [0.7]], 200, axis=0)
    y = X[:, 0] + 0.5 * np.random.default_rng(0).standard_normal(400)
    found = nr.gp.fit(nr.Matern(2.5, 0.5), X, y, noise=5.0, fit_mean=True, fewest=2)
    assert found.converged
    assert found.noise == pytest.approx(0.5, rel=0.1)
    with pytest.warns(nr.errors.NoRegretWarning, match="at least 5"):
        assert nr.gp.fit(nr.Matern(2.5, 0.5), X, y, noise=5.0, fewest=5).noise == pytest.approx(5.0)
    with pytest.raises(nr.errors.InvalidInput, match="`fewest` is 0"):
        nr.gp.fit(nr.Matern(2.5, 0.5), X, y, fewest=0)


def test_units_do_not_matter_for_maximum_likelihood():
    X, y = draw(30, 2, 4)
    plain = nr.gp.fit(nr.Matern(2.5, [0.5, 0.5]), X, y, prior=None)
    kernel = nr.Matern(2.5, [0.5e6, 0.5e-6], scale=1e8)
    other = nr.gp.fit(kernel, X * [1e6, 1e-6], 1e4 * y, prior=None)
    np.testing.assert_allclose(other.kernel.lengthscale, np.multiply(plain.kernel.lengthscale, [1e6, 1e-6]), rtol=0.02)
    assert other.noise == pytest.approx(1e4 * plain.noise, rel=0.02)
    assert other.log_likelihood == pytest.approx(plain.log_likelihood - 30 * math.log(1e4), abs=1e-3)


def test_a_kernel_far_from_its_bounds_starts_at_them():
    X, y = draw(30, 2, 4)
    assert nr.gp.fit(nr.Matern(2.5, 1e30, scale=1e-30), X, y, restarts=0).converged


def test_noiseless_smooth_data_need_a_ridge_and_it_is_said():
    X = np.linspace(0, 1, 60)[:, None]
    y = np.sin(3 * X[:, 0])
    found = nr.gp.fit(nr.SquaredExponential(0.5), X, y - y.mean(), prior=None, noise=1e-11, fit_noise=False)
    assert math.isfinite(found.log_likelihood)
    assert "ridge" in found.message


def test_only_the_noise_of_an_empirical_kernel_is_fitted():
    covariance = np.cov(np.random.default_rng(3).standard_normal((30, 6)), rowvar=False)
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, 300)
    y = np.linalg.cholesky(covariance)[X] @ rng.standard_normal(6) + 0.3 * rng.standard_normal(300)
    found = nr.gp.fit(nr.kernels.Empirical(covariance), X, y, prior=None)
    assert found.kernel == nr.kernels.Empirical(covariance)
    # The scatter within the arms has 294 degrees of freedom: 5 sd of log noise, failure probability below 1e-6.
    assert found.noise == pytest.approx(0.3, rel=5 / math.sqrt(2 * 294))


def test_standardization():
    y = np.array([3.0, 5.0, 10.0])
    units = nr.gp.Standardization.of(y)
    assert units.to(y).mean() == pytest.approx(0.0, abs=1e-15)
    assert units.to(y).std() == pytest.approx(1.0)
    np.testing.assert_allclose(units.back(units.to(y)), y)
    assert nr.gp.Standardization.of([0.1] * 7) == nr.gp.Standardization(np.mean([0.1] * 7), 1.0)
    assert nr.gp.Standardization.of([]) == nr.gp.Standardization(0.0, 1.0)
    assert serialize.loads(serialize.dumps(units)) == units
    with pytest.raises(nr.errors.InvalidInput, match="`std` is 0"):
        nr.gp.Standardization(0.0, 0.0)
