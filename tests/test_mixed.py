"""Kernels on spaces of numbers and choices."""

import math

import numpy as np
import pytest

import nilregret as nr
from nilregret import serialize, testing
from nilregret.gp.paths import Waves, prior_path, summands
from nilregret.testing.driver import central_differences
from nilregret.theory.change.geometry import product_average

SPACE = nr.Space(
    x=nr.Float(0, 1), kind=nr.Choice("a", "b", "c", "d"), n=nr.Int(1, 9), solver=nr.Choice("fast", "exact")
)
GROUPS = (0, 1, 1, 1, 1, 2, 3, 3)


def draws(space, count, seed=0):
    """Encoded points drawn uniformly."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        columns = []
        for parameter in space.parameters.values():
            if isinstance(parameter, nr.Choice):
                columns += parameter.encode(parameter.options[rng.integers(len(parameter.options))])
            else:
                columns += parameter.encode(parameter.decode(rng.uniform(size=1)))
        rows.append(columns)
    return np.array(rows)


# -- one lengthscale for several columns -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "inside",
    [nr.Matern(2.5, [0.3, 0.8, 0.5, 2.0], scale=1.7), nr.SquaredExponential(0.6), nr.kernels.RationalQuadratic(2.0)],
)
def test_a_tied_kernel_keeps_the_promises_and_is_the_formula(inside):
    X = draws(SPACE, 9)
    X += np.random.default_rng(1).normal(0, 0.05, X.shape)
    kernel = nr.kernels.Tied(inside, GROUPS)
    testing.check_kernel(kernel, X)
    lengths = np.broadcast_to(np.asarray(inside.lengthscale), (4,))[list(GROUPS)]
    unit = type(inside)(**{**vars(inside), "lengthscale": 1.0})
    np.testing.assert_allclose(kernel(X, X[:4]), unit(X / lengths, X[:4] / lengths), rtol=1e-13)
    assert kernel.expanded == type(inside)(**{**vars(inside), "lengthscale": tuple(lengths)})


def test_tied_columns_are_one_hyperparameter():
    kernel = nr.kernels.Tied(nr.Matern(2.5, [0.3, 0.8, 0.5, 2.0]), GROUPS)
    known = kernel.hyperparameters(range(8))
    assert [parameter.kind for parameter in known] == ["lengthscale"] * 4 + ["scale"]
    assert [parameter.columns for parameter in known[:4]] == [(0,), (1, 2, 3, 4), (5,), (6, 7)]
    assert {parameter.dimension for parameter in known} == {4}
    inner = kernel.on(*range(1, 9)).hyperparameters(range(9))
    assert [parameter.columns for parameter in inner[:4]] == [(1,), (2, 3, 4, 5), (6,), (7, 8)]
    with pytest.raises(nr.errors.InvalidInput, match="of 8 columns which group they are in, and the points have 7"):
        kernel.hyperparameters(range(7))


def test_tied_kernels_are_measured_in_other_units_where_a_group_has_one():
    kernel = nr.kernels.Tied(nr.Matern(2.5, [0.3, 0.8]), (0, 1, 1))
    X = np.random.default_rng(2).uniform(size=(5, 3))
    factors = np.array([10.0, 0.5, 0.5])
    np.testing.assert_allclose(kernel.rescaled(factors)(X * factors, X * factors), kernel(X, X), rtol=1e-12)
    with pytest.raises(nr.errors.InvalidInput, match="has one for several of them"):
        kernel.rescaled(np.array([10.0, 0.5, 0.6]))


def test_what_is_known_of_a_kernel_is_known_of_a_tied_one():
    kernel = nr.kernels.Tied(nr.Matern(2.5, [0.3, 0.8], scale=2.0), (0, 1, 1))
    plain = nr.Matern(2.5, [0.3, 0.8, 0.8], scale=2.0)
    assert (kernel.variance, kernel.smoothness, kernel.rank(3)) == (2.0, 2.5, None)
    corners = np.zeros(3), np.ones(3)
    for mine, theirs in zip(kernel.derivatives(*corners), plain.derivatives(*corners), strict=True):
        np.testing.assert_allclose(mine, theirs)
    assert nr.theory.information_gain_rate(kernel, 3, 50.0) == nr.theory.information_gain_rate(plain, 3, 50.0)
    smooth, X = (
        nr.kernels.Tied(nr.SquaredExponential([0.3, 0.8]), (0, 1, 1)),
        np.random.default_rng(3).uniform(size=(4, 3)),
    )
    np.testing.assert_allclose(
        product_average(smooth, *corners)(X, X), product_average(smooth.expanded, *corners)(X, X), rtol=1e-14
    )
    rngs = np.random.default_rng(4), np.random.default_rng(4)
    paths = [prior_path(each, (0, 1, 2), 3, 64, rng) for each, rng in zip((kernel, plain), rngs, strict=True)]
    assert isinstance(paths[0], Waves)
    np.testing.assert_array_equal(*(path.plus(np.zeros(4), X) for path in paths))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.kernels.Tied(nr.Linear(), (0, 0)), "`kernel` must be a stationary kernel"),
        (lambda: nr.kernels.Tied(nr.Matern(2.5, [1.0, 2.0]), (0, 0)), "has 2 lengthscales and there are 1 groups"),
        (lambda: nr.kernels.Tied(nr.Matern(), ()), "counted from 0"),
        (lambda: nr.kernels.Tied(nr.Matern(), (0, 2)), "counted from 0"),
        (lambda: nr.kernels.Tied(nr.Matern(), (0, 2**62)), "counted from 0"),  # which is never counted to
        (lambda: nr.kernels.Tied(nr.Matern(), (0, -1)), "`groups`"),
        (lambda: nr.kernels.Tied(nr.Matern(), (0, True)), "`groups`"),
        (lambda: nr.kernels.Tied(nr.Matern(), 0), "give the group of each column"),
        (lambda: nr.kernels.Tied(nr.Matern(), "01"), "give the group of each column"),
    ],
)
def test_wrong_groups_are_refused(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


def test_a_fit_learns_one_lengthscale_for_each_parameter():
    """f is drawn from a tied prior: x matters, n hardly, one choice does and the other does not."""
    rng = np.random.default_rng(5)
    X = draws(SPACE, 150, seed=6)
    true = nr.kernels.Tied(nr.Matern(2.5, [0.5, 1.0, 20.0, 50.0]), GROUPS)
    y = rng.multivariate_normal(np.zeros(len(X)), true(X, X) + 1e-4 * np.eye(len(X)))
    found = nr.gp.fit(nr.kernel_for(SPACE), X, nr.gp.Standardization.of(y).to(y), fit_mean=True, restarts=1)
    assert isinstance(found.kernel, nr.kernels.Tied)
    assert found.kernel.groups == GROUPS
    x, kind, n, solver = found.kernel.kernel.lengthscale
    assert 0.2 < x < 1.2
    assert 0.4 < kind < 3.0
    assert min(n, solver) > 4.0


# -- the kernel for a domain -----------------------------------------------------------------------------------------


def test_kernel_for_a_space_has_a_lengthscale_for_each_parameter():
    kernel = nr.kernel_for(SPACE)
    assert kernel.groups == GROUPS
    assert kernel.kernel == nr.Matern(2.5, (0.2 * math.sqrt(4),) * 4)
    assert nr.kernel_for(SPACE.grid(3)) == kernel
    assert nr.kernel_for(SPACE, kernel=nr.SquaredExponential(scale=3.0), lengthscale=0.7) == nr.kernels.Tied(
        nr.SquaredExponential((0.7,) * 4, scale=3.0), GROUPS
    )


def test_kernel_for_domains_without_choices_is_not_tied():
    assert nr.kernel_for(nr.Space(x=nr.Float(0, 1), n=nr.Int(0, 3)), lengthscale=0.5) == nr.Matern(2.5, (0.5, 0.5))
    assert nr.kernel_for(nr.Box([0, -1], [10, 1]), lengthscale=0.1) == nr.Matern(2.5, (1.0, 0.2))
    assert nr.kernel_for(nr.Arms([[0.0, 3.0], [5.0, 3.0]]), lengthscale=0.1) == nr.Matern(2.5, (0.5, 0.1))
    assert nr.kernel_for(nr.Space(kind=nr.Choice("a"))) == nr.Matern(2.5, (0.2,))


def test_kernel_for_rows_of_context_and_point():
    kernel = nr.kernel_for(SPACE, context=nr.Box(0, 24), lengthscale=0.5)
    assert kernel == nr.kernels.Tied(nr.Matern(2.5, (12.0, 0.5, 0.5, 0.5, 0.5)), (0, *(group + 1 for group in GROUPS)))
    context = nr.Space(weekday=nr.Choice("mo", "tu", "we"))
    assert nr.kernel_for(nr.Box(0, 2), context=context, lengthscale=0.5).groups == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.kernel_for("space"), "`domain` must be Arms, a Box or a Space"),
        (lambda: nr.kernel_for(SPACE, context=3), "`context` must be Arms, a Box or a Space"),
        (lambda: nr.kernel_for(SPACE, kernel=nr.Linear()), "`kernel` must be a stationary kernel"),
        (lambda: nr.kernel_for(SPACE, lengthscale=0.0), "`lengthscale`"),
        (lambda: nr.kernel_for(SPACE, lengthscale=[0.1, 0.2]), "give one number"),
    ],
)
def test_what_is_no_domain_kernel_or_length_is_refused(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


# -- kernels for choices ---------------------------------------------------------------------------------------------


def settings(points):
    return [SPACE.decode(point) for point in points]


def test_overlap_is_the_share_of_choices_that_agree():
    """Ru et al. 2020, eq. 1, from the named parameters; away from the options still a covariance."""
    X = draws(SPACE, 30)
    kernel = nr.kernels.Overlap((0, 0, 0, 0, 1, 1), scale=1.7).on(1, 2, 3, 4, 6, 7)
    brute = [
        [1.7 / 2.0 * ((a["kind"] == b["kind"]) + (a["solver"] == b["solver"])) for b in settings(X[:9])]
        for a in settings(X)
    ]
    np.testing.assert_allclose(kernel(X, X[:9]), brute, atol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(X), 1.7)
    assert kernel.variance == 1.7
    assert kernel.rank(8) == 6
    assert kernel.rescaled(np.ones(8)) == kernel
    factors = np.array([1.0, 2.0, 2.0, 2.0, 3.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(kernel.rescaled(factors)(X * factors, X * factors), kernel(X, X), rtol=1e-12)
    with pytest.raises(nr.errors.InvalidInput, match="of 2 columns which choice they belong to, and the points have 8"):
        nr.kernels.Overlap((0, 0))(X, X)


def test_the_transformed_overlap_is_a_tied_squared_exponential():
    """Wan et al. 2021, eq. 2, exp(sum_i l_i 1[h_i = h'_i] / c), divided by its value at h = h'."""
    X, weights = draws(SPACE, 30), {"kind": 0.7, "solver": 2.5}
    lengths = [math.sqrt(2 / (2.0 * weight)) for weight in weights.values()]
    kernel = nr.kernels.Tied(nr.SquaredExponential(lengths), (0, 0, 0, 0, 1, 1)).on(1, 2, 3, 4, 6, 7)

    def transformed(a, b):
        return math.exp(sum(weight * (a[name] == b[name]) for name, weight in weights.items()) / 2.0)

    brute = [[transformed(a, b) / transformed(a, a) for b in settings(X)] for a in settings(X)]
    np.testing.assert_allclose(kernel(X, X), brute, rtol=1e-12)


@pytest.mark.parametrize("choices", ["overlap", "transformed"])
def test_mixtures_are_the_formula_and_keep_the_promises(choices):
    kernel = nr.kernel_for(SPACE, choices=choices)
    kernel = nr.kernels.Mixture(kernel.left, kernel.right, 0.3, scale=1.7)
    X = draws(SPACE, 10)
    testing.check_kernel(kernel, X)
    testing.check_kernel(kernel, X + np.random.default_rng(1).normal(0, 0.03, X.shape))
    h, x = kernel.left(X, X), nr.Matern(2.5, (0.4, 0.4))(X[:, [0, 5]], X[:, [0, 5]])
    np.testing.assert_allclose(kernel(X, X), 1.7 * (0.7 * (h + x) / 2.0 + 0.3 * h * x), rtol=1e-12)
    np.testing.assert_allclose(kernel.expanded(X, X), kernel(X, X), rtol=1e-12)
    assert kernel.variance == pytest.approx(1.7)
    assert nr.kernel_for(SPACE, choices=choices).variance == 1.0
    found = kernel.input_gradient(X[:4] + 0.01, X, np.ones((4, 10)))
    expected = central_differences(lambda moved: float(kernel(moved, X).sum()), X[:4] + 0.01)
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("share", [0.05, 0.95])
def test_a_fit_learns_the_share_of_the_product(share):
    rng, X = np.random.default_rng(8), draws(SPACE, 220, seed=9)
    start = nr.kernel_for(SPACE, choices="overlap")
    true = nr.kernels.Mixture(start.left, start.right, share)
    y = rng.multivariate_normal(np.zeros(len(X)), true(X, X) + 1e-4 * np.eye(len(X)))
    found = nr.gp.fit(start, X, y, restarts=0, noise=0.01, bounds={"scale": (1.0, 1.0)})
    assert abs(found.kernel.share - share) < 0.25
    fixed = nr.gp.fit(start, X, y, restarts=0, noise=0.01, bounds={"odds": (1.0, 1.0)}, prior=None)
    assert fixed.kernel.share == 0.5


def test_spaces_of_one_kind_have_no_mixture():
    numbers, named = nr.Space(x=nr.Float(0, 1), n=nr.Int(0, 3)), nr.Space(kind=nr.Choice("a", "b", "c"))
    for choices in ("overlap", "transformed"):
        assert nr.kernel_for(numbers, choices=choices) == nr.kernel_for(numbers)
    assert nr.kernel_for(named, choices="overlap") == nr.kernels.Overlap((0, 0, 0)).on(0, 1, 2)
    with_context = nr.kernel_for(named, context=nr.Box(0, 24), choices="overlap", lengthscale=0.5)
    assert with_context == nr.kernels.Mixture(nr.kernels.Overlap((0, 0, 0)).on(1, 2, 3), nr.Matern(2.5, (12.0,)).on(0))
    with pytest.raises(nr.errors.InvalidInput, match="`choices`"):
        nr.kernel_for(named, choices="hamming")
    with pytest.raises(nr.errors.InvalidInput, match="`share`"):
        nr.kernels.Mixture(nr.Matern(), nr.Matern(), 1.0)


def test_rates_and_paths_of_mixtures():
    kernel = nr.kernel_for(SPACE, choices="overlap")
    assert nr.theory.information_gain_rate(kernel, 8, 50.0) > nr.theory.information_gain_rate(kernel.right, 8, 50.0)
    X = draws(SPACE, 6)
    parts = summands(kernel, tuple(range(8)))
    assert len(parts) == 3
    total = sum(part.on(*columns)(X, X) for part, columns in parts)
    np.testing.assert_allclose(total, kernel(X, X), rtol=1e-12)
    for part, columns in parts:
        values = prior_path(part, columns, 8, 64, np.random.default_rng(11)).plus(np.zeros(6), X)
        assert np.isfinite(values).all()
        assert values.any()


# -- rounding --------------------------------------------------------------------------------------------------------


def test_rounded_points_are_what_they_stand_for():
    kernel, rng = nr.kernel_for(SPACE), np.random.default_rng(12)
    relaxed = rng.uniform(size=(12, 8)) * SPACE.upper
    rounded = nr.kernels.Rounded(kernel, SPACE)
    np.testing.assert_array_equal(rounded(relaxed, relaxed), kernel(SPACE.snap(relaxed), SPACE.snap(relaxed)))
    testing.check_kernel(rounded, relaxed)
    slopes = rounded.input_gradient(relaxed[:4], relaxed, np.ones((4, 12)))
    assert slopes[:, 0].all()
    assert not slopes[:, 1:].any()
    with_context = nr.kernels.Rounded(nr.kernel_for(SPACE, context=nr.Box(0, 1)), SPACE)
    testing.check_kernel(with_context, np.hstack([rng.uniform(size=(12, 1)), relaxed]))
    with pytest.raises(nr.errors.InvalidInput, match="its own are the last"):
        rounded(relaxed[:, 1:], relaxed[:, 1:])


def test_rounding_changes_nothing_where_the_search_rounds_already():
    """All points that a study sees stand for parameters: the proposals are the same ones."""
    asked = []
    for kernel in (nr.kernel_for(SPACE), nr.kernels.Rounded(nr.kernel_for(SPACE), SPACE)):
        policy = nr.expected_improvement(SPACE, kernel, noise=0.05, refit=nr.slots.Refit(every=4, restarts=1))
        study, named = nr.Study(policy, seed=5), []
        for _ in range(9):
            trial = study.ask()
            study.tell(trial, trial.parameters["x"] - 0.1 * trial.parameters["n"] + (trial.parameters["kind"] == "c"))
            named.append(trial.parameters)
        asked.append(named)
    assert asked[0] == asked[1]


# -- in a study ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("algorithm", "choices"),
    [(nr.expected_improvement, "tied"), (nr.gp_ts, "tied"), (nr.expected_improvement, "overlap")],
)
def test_a_study_on_a_mixed_space_replays_itself(algorithm, choices, tmp_path):
    given = {"norm_bound": 1.0} if algorithm is nr.gp_ts else {}
    kernel = nr.kernel_for(SPACE, choices=choices)
    policy = algorithm(SPACE, kernel, noise=0.05, refit=nr.slots.Refit(every=4, restarts=1), **given)
    assert serialize.loads(serialize.dumps(policy)) == policy

    def reward(parameters):
        return -((parameters["x"] - 0.4) ** 2) + 0.2 * (parameters["kind"] == "c") - 0.01 * parameters["n"]

    def run(study, rounds):
        trials = []
        for _ in range(rounds):
            trials.append(study.ask())
            study.tell(trials[-1], reward(trials[-1].parameters))
        return [trial.parameters for trial in trials]

    through = run(nr.Study(policy, seed=3), 10)
    storage = f"sqlite:///{tmp_path / 'mixed.db'}"
    parts = [run(nr.Study(policy, seed=3, storage=storage), rounds) for rounds in (9, 1)]
    assert parts[0] + parts[1] == through
