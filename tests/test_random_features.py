"""Random cosines and sines: how far they are from the kernel that they stand for, and what is said of it."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.kernels import Intercept, Overlap, RandomFeatures, RationalQuadratic, Stretched

KERNELS = [
    nr.SquaredExponential(0.7, scale=2.0),
    nr.Matern(0.5),
    nr.Matern(1.7, [0.5, 1.0, 2.0, 0.8]),
    nr.Matern(2.5),
    RationalQuadratic(1.5),
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_error_falls_with_the_root_of_the_number(kernel):
    """Hoeffding's inequality for independent frequencies, at 200 pairs, fails below 1e-6; orthogonal ones do better."""
    rng, points = np.random.default_rng(0), np.random.default_rng(1).uniform(0, 1, (200, 4))
    others = rng.uniform(0, 1, (200, 4))
    for count in (64, 1024):
        features = RandomFeatures(kernel, count)
        worst = np.abs(np.diagonal(features(points, others) - kernel(points, others))).max()
        assert worst <= kernel.scale * np.sqrt(2 / count * np.log(2 * 200 / 1e-6))
        assert 0.0 < features.error(np.zeros(4), np.ones(4)) <= 6.0 * kernel.scale / np.sqrt(count)
        np.testing.assert_array_equal(features.diagonal(points), kernel.diagonal(points))


def test_the_measured_error_is_seldom_exceeded():
    features = RandomFeatures(nr.Matern(2.5, 0.5), 50)
    points = np.random.default_rng(2).uniform(-1, 3, (300, 2))
    worst = np.abs(features(points, points) - features.kernel(points, points)).max()
    assert 0.6 * worst <= features.error([-1.0, -1.0], [3.0, 3.0]) <= 1.3 * worst


def test_the_measured_error_has_no_blind_direction():
    """Against a grid over all differences, over several draws."""
    side = np.linspace(-1.0, 1.0, 121)
    every = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    for seed in range(4):
        features = RandomFeatures(nr.Matern(2.5, 0.4), 64, seed)
        gap = np.abs(features(every, np.zeros((1, 2))) - features.kernel(every, np.zeros((1, 2)))).max()
        assert features.error([0.0, 0.0], [1.0, 1.0]) >= 0.75 * gap


def test_frequencies_are_orthogonal_in_groups_and_depend_on_the_seed():
    kernel = nr.SquaredExponential()
    found = RandomFeatures(kernel, 6, 1).frequencies(3)
    for group in (found[:3], found[3:]):
        products = group @ group.T
        np.testing.assert_allclose(products - np.diag(products.diagonal()), 0.0, atol=1e-9)
    np.testing.assert_array_equal(found, RandomFeatures(kernel, 6, 1).frequencies(3))
    assert not np.array_equal(found, RandomFeatures(kernel, 6, 2).frequencies(3))
    longer = RandomFeatures(nr.SquaredExponential(2.0), 6, 1)  # a fit moves the frequencies, and draws none anew
    np.testing.assert_allclose(longer.frequencies(3), found / 2.0)


def test_nothing_is_proved_for_a_kernel_that_stands_for_another():
    box, features = nr.Box([0.0], [1.0]), RandomFeatures(nr.Matern(2.5, 0.3), 8)
    linear = nr.igp_ucb(box, nr.Linear() + Intercept(), noise=0.1, norm_bound=1.0)
    assert (linear.valid_for, linear.kernel.approximates) == ("f", False)
    wrapped = (features, nr.Linear() + features, features * Intercept(), Stretched(features, [2.0]), 0.3 * features)
    for kernel in (*wrapped, features.on(0)):
        policy = nr.igp_ucb(box, kernel, noise=0.1, norm_bound=1.0)
        assert (policy.valid_for, policy.kernel.approximates) == ("none", True)
        assert nr.Study(policy).valid_for == "none"


def test_a_fit_learns_lengthscales_of_the_features():
    rng = np.random.default_rng(3)
    kernel = RandomFeatures(nr.Matern(2.5, 3.0), 40)
    policy = nr.expected_improvement(nr.Box([0.0], [1.0]), kernel, noise=0.1)
    study = nr.Study(policy.using(refit=nr.slots.Refit(every=20)), seed=0)
    for x in rng.uniform(0, 1, 40):
        study.add([x], float(np.sin(12 * x) + 0.05 * rng.standard_normal()))
    study.ask()
    fitted = study.fits[-1].kernel
    assert isinstance(fitted, RandomFeatures)
    assert fitted.count == 40
    assert fitted.kernel.lengthscale < 1.0


@pytest.mark.parametrize("kernel", [nr.Linear(), Overlap([0, 0]), nr.Matern(2.5) * nr.Matern(1.5), "smooth"])
def test_kernels_without_a_spectrum_are_refused(kernel):
    with pytest.raises(nr.errors.InvalidInput, match="`kernel`"):
        RandomFeatures(kernel)
