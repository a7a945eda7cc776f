"""Kernels on spaces of numbers and choices."""

import math

import numpy as np
import pytest

import noregret as nr
from noregret import serialize, testing
from noregret.change.closed import product_average
from noregret.posterior.prior_paths import Waves, prior_path

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
    "inside", [nr.Matern(2.5, [0.3, 0.8, 0.5, 2.0], scale=1.7), nr.SquaredExponential(0.6), nr.RationalQuadratic(2.0)]
)
def test_a_tied_kernel_keeps_the_promises_and_is_the_formula(inside):
    X = draws(SPACE, 9)
    X += np.random.default_rng(1).normal(0, 0.05, X.shape)
    kernel = nr.Tied(inside, GROUPS)
    testing.check_kernel(kernel, X)
    lengths = np.broadcast_to(np.asarray(inside.lengthscale), (4,))[list(GROUPS)]
    unit = type(inside)(**{**vars(inside), "lengthscale": 1.0})
    np.testing.assert_allclose(kernel(X, X[:4]), unit(X / lengths, X[:4] / lengths), rtol=1e-13)
    assert kernel.expanded == type(inside)(**{**vars(inside), "lengthscale": tuple(lengths)})


def test_tied_columns_are_one_hyperparameter():
    kernel = nr.Tied(nr.Matern(2.5, [0.3, 0.8, 0.5, 2.0]), GROUPS)
    known = kernel.hyperparameters(range(8))
    assert [parameter.kind for parameter in known] == ["lengthscale"] * 4 + ["scale"]
    assert [parameter.columns for parameter in known[:4]] == [(0,), (1, 2, 3, 4), (5,), (6, 7)]
    assert {parameter.dimension for parameter in known} == {4}
    inner = kernel.on(*range(1, 9)).hyperparameters(range(9))
    assert [parameter.columns for parameter in inner[:4]] == [(1,), (2, 3, 4, 5), (6,), (7, 8)]
    with pytest.raises(nr.InvalidInput, match="of 8 columns which group they are in, and the points have 7"):
        kernel.hyperparameters(range(7))


def test_tied_kernels_are_measured_in_other_units_where_a_group_has_one():
    kernel = nr.Tied(nr.Matern(2.5, [0.3, 0.8]), (0, 1, 1))
    X = np.random.default_rng(2).uniform(size=(5, 3))
    factors = np.array([10.0, 0.5, 0.5])
    np.testing.assert_allclose(kernel.rescaled(factors)(X * factors, X * factors), kernel(X, X), rtol=1e-12)
    with pytest.raises(nr.InvalidInput, match="has one for several of them"):
        kernel.rescaled(np.array([10.0, 0.5, 0.6]))


def test_what_is_known_of_a_kernel_is_known_of_a_tied_one():
    kernel = nr.Tied(nr.Matern(2.5, [0.3, 0.8], scale=2.0), (0, 1, 1))
    plain = nr.Matern(2.5, [0.3, 0.8, 0.8], scale=2.0)
    assert (kernel.variance, kernel.smoothness, kernel.rank(3)) == (2.0, 2.5, None)
    corners = np.zeros(3), np.ones(3)
    for mine, theirs in zip(kernel.derivatives(*corners), plain.derivatives(*corners), strict=True):
        np.testing.assert_allclose(mine, theirs)
    assert nr.information_gain_rate(kernel, 3, 50.0) == nr.information_gain_rate(plain, 3, 50.0)
    smooth, X = nr.Tied(nr.SquaredExponential([0.3, 0.8]), (0, 1, 1)), np.random.default_rng(3).uniform(size=(4, 3))
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
        (lambda: nr.Tied(nr.Linear(), (0, 0)), "`kernel` must be a stationary kernel"),
        (lambda: nr.Tied(nr.Matern(2.5, [1.0, 2.0]), (0, 0)), "has 2 lengthscales and there are 1 groups"),
        (lambda: nr.Tied(nr.Matern(), ()), "counted from 0"),
        (lambda: nr.Tied(nr.Matern(), (0, 2)), "counted from 0"),
        (lambda: nr.Tied(nr.Matern(), (0, -1)), "`groups`"),
        (lambda: nr.Tied(nr.Matern(), (0, True)), "`groups`"),
        (lambda: nr.Tied(nr.Matern(), 0), "give the group of each column"),
        (lambda: nr.Tied(nr.Matern(), "01"), "give the group of each column"),
    ],
)
def test_wrong_groups_are_refused(make, message):
    with pytest.raises(nr.InvalidInput, match=message):
        make()


def test_a_fit_learns_one_lengthscale_for_each_parameter():
    """f is drawn from a tied prior: x matters, n hardly, one choice does and the other does not."""
    rng = np.random.default_rng(5)
    X = draws(SPACE, 150, seed=6)
    true = nr.Tied(nr.Matern(2.5, [0.5, 1.0, 20.0, 50.0]), GROUPS)
    y = rng.multivariate_normal(np.zeros(len(X)), true(X, X) + 1e-4 * np.eye(len(X)))
    found = nr.fit(nr.kernel_for(SPACE), X, nr.Standardization.of(y).to(y), fit_mean=True, restarts=1)
    assert isinstance(found.kernel, nr.Tied)
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
    assert nr.kernel_for(SPACE, kernel=nr.SquaredExponential(scale=3.0), lengthscale=0.7) == nr.Tied(
        nr.SquaredExponential((0.7,) * 4, scale=3.0), GROUPS
    )


def test_kernel_for_domains_without_choices_is_not_tied():
    assert nr.kernel_for(nr.Space(x=nr.Float(0, 1), n=nr.Int(0, 3)), lengthscale=0.5) == nr.Matern(2.5, (0.5, 0.5))
    assert nr.kernel_for(nr.Box([0, -1], [10, 1]), lengthscale=0.1) == nr.Matern(2.5, (1.0, 0.2))
    assert nr.kernel_for(nr.Arms([[0.0, 3.0], [5.0, 3.0]]), lengthscale=0.1) == nr.Matern(2.5, (0.5, 0.1))
    assert nr.kernel_for(nr.Space(kind=nr.Choice("a"))) == nr.Matern(2.5, (0.2,))


def test_kernel_for_rows_of_context_and_point():
    kernel = nr.kernel_for(SPACE, context=nr.Box(0, 24), lengthscale=0.5)
    assert kernel == nr.Tied(nr.Matern(2.5, (12.0, 0.5, 0.5, 0.5, 0.5)), (0, *(group + 1 for group in GROUPS)))
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
    with pytest.raises(nr.InvalidInput, match=message):
        make()


@pytest.mark.parametrize("algorithm", [nr.expected_improvement, nr.gp_ts])
def test_a_study_with_a_tied_kernel_replays_itself(algorithm, tmp_path):
    given = {"norm_bound": 1.0} if algorithm is nr.gp_ts else {}
    policy = algorithm(SPACE, nr.kernel_for(SPACE), noise=0.05, refit=nr.Refit(every=4, restarts=1), **given)
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
