import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import chi2, kstest, norm

import nilregret as nr
from nilregret import environments as worlds
from nilregret.environments.environment import search_maximum

KNOWN = [worlds.rosenbrock, worlds.hartmann3, worlds.hartmann6, worlds.branin]
KERNELS = [nr.SquaredExponential(0.2), nr.Matern(2.5, 0.2), nr.Matern(0.5, 0.3, scale=2.0) + nr.Linear()]
UNIT = nr.Box(0.0, 1.0)


@pytest.mark.parametrize("function", KNOWN, ids=repr)
def test_the_stated_maximum_is_what_a_search_finds(function):
    assert search_maximum(function, function.domain) == pytest.approx(function.best, abs=1e-6)
    np.testing.assert_allclose(function(function.argmax), function.best, rtol=0, atol=1e-12)
    function.domain.inside("argmax", function.argmax)
    assert function(function.domain.sample(20_000, seed=0).points).max() < function.best


@pytest.mark.parametrize("function", KNOWN, ids=repr)
def test_the_stated_argmax_is_no_worse_than_its_neighbours(function):
    width = 1e-4 * (function.domain.upper - function.domain.lower)
    steps = np.concatenate([np.diag(width), -np.diag(width)])
    for place in function.argmax:
        neighbours = np.clip(place + steps, function.domain.lower, function.domain.upper)
        assert (function(neighbours) <= function.best + 1e-12).all()


def test_known_functions_at_points_worked_out_by_hand():
    assert worlds.rosenbrock([[0.0, 0.0]]) == pytest.approx(9.0)
    assert worlds.rosenbrock([[0.5, 0.5]]) == pytest.approx(10 - 100 * 0.25**2 - 0.25)
    assert worlds.branin([[0.0, 0.0]]) == pytest.approx(-36 - 10 * (1 - 1 / (8 * np.pi)) - 10)
    # Far from the others' centers one term of Hartmann is left: its exponent is 0 at its own center.
    assert worlds.hartmann3([[0.1091, 0.8732, 0.5547]]) == pytest.approx(
        3.0
        + np.exp(-(3 * 0.2598**2 + 10 * 0.7562**2 + 30 * 0.2874**2))
        + 1.2 * np.exp(-(0.1 * 0.3608**2 + 10 * 0.4345**2 + 35 * 0.1923**2))
        + 3.2 * np.exp(-(0.1 * 0.071**2 + 10 * 0.2989**2 + 35 * 0.3281**2))
    )


def test_known_functions_make_environments():
    function = worlds.hartmann3
    arms = function.domain.sample(300, seed=4)
    on_arms, on_box = function.environment(noise=0.1, arms=arms), function.environment(noise=0.1)
    np.testing.assert_array_equal(on_arms.values, function(arms.points))
    assert on_arms.best_value == function(arms.points).max() < on_box.best_value == function.best
    run = nr.simulate(nr.gp_ucb(arms, nr.SquaredExponential(0.2), noise=0.1), on_arms, 5)
    np.testing.assert_allclose(run.regret, on_arms.best_value - function(run.points))
    run = nr.simulate(nr.gp_ucb(function.domain, nr.SquaredExponential(0.2), noise=0.1), on_box, 3)
    np.testing.assert_allclose(run.regret, function.best - function(run.points))


def test_boxes_make_arms():
    box = nr.Box([0.0, -1.0], [2.0, 1.0])
    grid = box.grid([3, 2])
    np.testing.assert_array_equal(grid.points, [[0, -1], [0, 1], [1, -1], [1, 1], [2, -1], [2, 1]])
    assert box.grid(4) == box.grid([4, 4])
    assert len(box.grid(4)) == 16
    np.testing.assert_array_equal(box.grid(1).points, [[1.0, 0.0]])
    assert UNIT.grid(7) == nr.Arms.grid(0, 1, 7)
    drawn = box.sample(500, seed=3)
    assert drawn == box.sample(500, seed=3) != box.sample(500, seed=4)
    for column, (low, high) in enumerate([(0, 2), (-1, 1)]):
        # The p-value of each is below 1e-3 with probability 1e-3; the seed is fixed.
        assert kstest(drawn.points[:, column], "uniform", args=(low, high - low)).pvalue > 1e-3


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_norm_of_an_rkhs_function_is_exact(kernel):
    arms = nr.Arms([0.05, 0.3, 0.55, 0.9])
    function = worlds.rkhs_function(kernel, arms, seed=1)
    K, values = kernel(arms.points, arms.points), function(arms.points)
    # The function is determined by its values at its own centers, and |f|^2 = f^T K^{-1} f.
    assert function.norm == pytest.approx(np.sqrt(values @ np.linalg.solve(K, values)), rel=1e-8)
    # By the reproducing property |<f, k(., x)>| = |f(x)| <= |f| sqrt(k(x, x)).
    grid = UNIT.grid(201).points
    assert (np.abs(function(grid)) <= function.norm * np.sqrt(kernel.diagonal(grid)) * (1 + 1e-12)).all()
    scaled = worlds.rkhs_function(kernel, arms, seed=1, norm=2.5)
    assert scaled.norm == pytest.approx(2.5, rel=1e-12)
    np.testing.assert_allclose(scaled(grid), function(grid) * 2.5 / function.norm, rtol=1e-10, atol=1e-12)


def test_a_single_kernel_function_has_norm_one():
    one = worlds.RKHSFunction(nr.Matern(1.5, 0.3), [[0.2]], [1.0])
    assert one.norm == 1.0
    assert one([[0.2]]) == pytest.approx(1.0)


def test_rkhs_functions_on_every_domain():
    space = nr.Space(rate=nr.Float(0.0, 1.0), depth=nr.Int(1, 4), kind=nr.Choice("a", "b"))
    for domain, count in ((nr.Box([0, 0], [1, 5]), 20), (space, 20), (nr.Arms.grid(0, 1, 30), 30)):
        function = worlds.rkhs_function(nr.Matern(2.5, 0.4), domain, seed=5, norm=3.0)
        assert len(function.centers) == count
        np.testing.assert_array_equal(domain.inside("centers", function.centers), function.centers)
        assert nr.Environment(function, domain=domain).best_value <= 3.0  # |f(x)| <= |f| sqrt(k(x, x))
    few = worlds.rkhs_function(nr.Matern(), nr.Arms.grid(0, 1, 30), seed=5, centers=4)
    assert len(few.centers) == 4


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_the_recipe_of_chowdhury_and_gopalan(kernel):
    arms = UNIT.sample(40, seed=2)
    y = worlds.gp_sample(kernel, arms, seed=2).values  # one seed, one sample: the two kinds of function are paired
    function = worlds.rkhs_posterior_mean(kernel, arms, seed=2)
    K, ridge = kernel(arms.points, arms.points), 0.01 * np.ptp(y)
    weights = np.linalg.solve(K + ridge * np.eye(40), y)
    np.testing.assert_allclose(function(arms.points), K @ weights, atol=1e-9)
    assert function.norm == pytest.approx(np.sqrt(weights @ K @ weights), rel=1e-9)
    values = function(arms.points)
    assert worlds.range_noise(values) ** 2 == pytest.approx(0.01 * (values.max() - values.min()))
    assert worlds.literal_norm(kernel, arms, values) == pytest.approx(np.sqrt(values @ K @ values), rel=1e-9)


def test_the_norms_of_the_paper_s_functions():
    """The RKHS norm is 2 to 4 and the literal sqrt(f^T K f) is tens; averages over 25 functions, fixed seeds."""
    for kernel in KERNELS[:2]:
        norms = []
        for seed in range(25):
            arms = UNIT.sample(100, seed=seed)
            function = worlds.rkhs_posterior_mean(kernel, arms, seed=seed)
            norms.append((function.norm, worlds.literal_norm(kernel, arms, function(arms.points))))
        exact, literal = np.mean(norms, axis=0)
        assert 2.0 < exact < 4.0
        assert 40.0 < literal < 60.0


def test_the_norm_a_benchmark_needs():
    """An interpolant of Hartmann 3 on 300 arms has an RKHS norm near 11, and the literal norm is near 107."""
    kernel, arms = nr.SquaredExponential(0.2), worlds.hartmann3.domain.sample(300, seed=1)
    values = worlds.hartmann3(arms.points)
    assert worlds.rkhs_fit(kernel, arms, values, regularization=1e-6).norm == pytest.approx(11.0, abs=1.0)
    assert worlds.literal_norm(kernel, arms, values) == pytest.approx(107.0, rel=0.2)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_samples_on_arms_have_the_prior_s_covariance(kernel):
    """sum of f^T K^{-1} f over 400 samples is chi^2 with 400 * 5 degrees; outside the limits with probability 1e-4."""
    arms = nr.Arms([0.0, 0.1, 0.35, 0.7, 1.0])
    K = kernel(arms.points, arms.points)
    draws = np.array([worlds.gp_sample(kernel, arms, seed=[11, seed]).values for seed in range(400)])
    total = np.einsum("si,ij,sj->", draws, np.linalg.inv(K), draws)
    assert chi2.ppf(5e-5, 2000) < total < chi2.isf(5e-5, 2000)
    # Every direction by itself: five tests, each failing with probability 2e-5.
    values, vectors = np.linalg.eigh(K)
    each = ((draws @ vectors) ** 2).sum(axis=0) / values
    assert (each > chi2.ppf(1e-5, 400)).all()
    assert (each < chi2.isf(1e-5, 400)).all()


def test_samples_on_a_box_are_functions():
    """Values at one point over 200 seeds are N(0, 2): the p-value is below 1e-4 with probability 1e-4."""
    box, kernel = nr.Box([0, 0], [1, 2]), nr.Matern(2.5, [0.3, 0.6], scale=2.0)
    paths = [worlds.gp_sample(kernel, box, seed=seed, waves=256) for seed in range(200)]
    at = np.array([path(np.array([[0.4, 1.1]]))[0] for path in paths])
    assert kstest(at / np.sqrt(2.0), norm.cdf).pvalue > 1e-4
    points = box.sample(6, seed=0).points
    np.testing.assert_array_equal(paths[7](points), worlds.gp_sample(kernel, box, seed=7, waves=256)(points))
    env = nr.Environment(paths[0], domain=box, noise=0.1)
    run = nr.simulate(nr.gp_ucb(box, kernel, noise=0.1, scale=0.2), env, 3)
    assert (run.regret >= -1e-9).all()


def test_worlds_share_no_randomness_with_each_other_or_with_policies():
    arms = UNIT.sample(50, seed=7)
    iid = worlds.gp_sample(nr.kernels.Empirical(np.eye(50)), nr.Arms(np.arange(50.0)), seed=7).values
    for stream in ([7], [7, 0], [7, 1], [0, 7]):
        rng = np.random.default_rng(stream)
        assert not np.isin(rng.standard_normal(200), iid).any()
        assert not np.isin(np.random.default_rng(stream).random(200), arms.points).any()
    # Uniforms and normals of one stream would be tied to each other: their ranks are not.
    assert abs(np.corrcoef(arms.points[:, 0], iid)[0, 1]) < 0.5  # exceeded by chance with probability 2e-4


def test_a_sample_is_the_same_in_another_process():
    script = (
        "import nilregret as nr; "
        "print(*nr.environments.gp_sample(nr.SquaredExponential(0.2), nr.Arms.grid(0, 1, 60), seed=3).values)"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    here = worlds.gp_sample(nr.SquaredExponential(0.2), nr.Arms.grid(0, 1, 60), seed=3).values
    np.testing.assert_allclose(np.array(printed, dtype=float), here, atol=1e-9)


def test_functions_of_arms():
    arms = nr.Arms([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0]])
    function = worlds.ArmFunction(arms, [5.0, 6.0, 7.0])
    np.testing.assert_array_equal(function([[2.0, 3.0], [0.0, 1.0]]), [6.0, 5.0])
    np.testing.assert_array_equal(nr.Environment(function, domain=arms).values, [5.0, 6.0, 7.0])
    with pytest.raises(nr.errors.InvalidInput, match="not one of the arms"):
        function([[2.0, 2.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: worlds.rkhs_function(nr.Matern(), nr.Arms.grid(0, 1, 5), seed=0, centers=6), "for 5 arms"),
        (lambda: worlds.rkhs_function(nr.Matern(), "box", seed=0), "`domain`"),
        (lambda: worlds.rkhs_function(nr.Matern(), UNIT, seed=-1), "`seed` is -1"),
        (lambda: worlds.rkhs_function(nr.Matern(), UNIT, seed=0, norm=0.0), "`norm` is 0"),
        (lambda: worlds.RKHSFunction(nr.Matern(), [[0.0]], [0.0]).scaled(1.0), "zero everywhere"),
        (lambda: worlds.RKHSFunction(nr.Matern(), [[0.0]], [0.0, 1.0]), "`weights` has shape"),
        (lambda: worlds.rkhs_fit(nr.Matern(), UNIT, [1.0], regularization=1.0), "`arms` must be Arms"),
        (lambda: worlds.rkhs_fit(nr.Matern(), nr.Arms([0, 1]), [1.0], regularization=1.0), "`values` has shape"),
        (lambda: worlds.literal_norm(nr.Matern(), nr.Arms([0, 1]), [1.0]), "`values` has shape"),
        (lambda: worlds.range_noise([1.0, 1.0]), "all the same"),
        (lambda: worlds.gp_sample(nr.Matern(), [0.0, 1.0], seed=0), "`domain`"),
        (lambda: worlds.gp_sample(nr.Matern(), nr.Arms([0, 1]), seed=None), "`seed` must be a whole number"),
        (lambda: worlds.ArmFunction(nr.Arms([0, 1]), [1.0]), "`values` has shape"),
        (lambda: worlds.ArmFunction(UNIT, [1.0]), "`arms` must be Arms"),
        (lambda: worlds.branin.environment(arms=nr.Arms([0, 1])), "dimension 2"),
        (lambda: worlds.branin([1.0, 2.0, 3.0]), "`points` has 3 columns"),
        (lambda: UNIT.grid([2, 2]), "`per_dimension` has 2 entries"),
        (lambda: UNIT.grid(0), "`per_dimension` is 0"),
        (lambda: UNIT.sample(0, seed=0), "`count` is 0"),
    ],
)
def test_nonsense_is_explained(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()
