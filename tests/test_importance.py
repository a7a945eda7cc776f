"""Sobol indices: of functions whose indices are known, and of studies."""

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.dataclass import replace
from nilregret.cli.overview import overview
from nilregret.gp.warping import Warp
from nilregret.plots.history_picture import History
from nilregret.plots.overview_picture import importance_panels
from nilregret.policy.engines import Units
from nilregret.policy.function_values import gain_over
from nilregret.serve.dashboard.views import explored
from nilregret.study import importance as of
from nilregret.study.importance import Factors
from nilregret.study.quantities import quantity


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    """Intervals of few draws, which cost most of the time."""
    monkeypatch.setattr(of, "DRAWS", 6)


def shares_of(f, count):
    """First-order, total and second-order indices of a function of numbers in [0, 1]."""
    shares = of._shares(count, 2048, both=True)
    values = f(shares.reshape(-1, count)).reshape(len(shares), 2048)
    first, total = of._first_and_total(values[None], count)
    return first[0], total[0], of._second(values, count)


def ishigami(u):
    a, b, c = (2.0 * np.pi * u - np.pi).T
    return np.sin(a) + 7.0 * np.sin(b) ** 2 + 0.1 * c**4 * np.sin(a)


def test_indices_of_ishigami_are_the_known_ones():
    first, total, second = shares_of(ishigami, 3)
    np.testing.assert_allclose(first, [0.3139, 0.4424, 0.0], atol=0.01)
    np.testing.assert_allclose(total, [0.5576, 0.4424, 0.2437], atol=0.01)
    np.testing.assert_allclose(second, [[0, 0, 0.2437], [0, 0, 0], [0.2437, 0, 0]], atol=0.01)


def test_indices_of_a_sum_are_the_shares_of_its_variance():
    weights = np.array([4.0, 2.0, 1.0, 0.0])
    first, total, second = shares_of(lambda u: u @ weights, 4)
    np.testing.assert_allclose(first, weights**2 / 21.0, atol=0.005)
    np.testing.assert_allclose(total, weights**2 / 21.0, atol=0.005)
    assert second.max() < 0.01


TRIANGLE = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where("a + b <= 1")
BAND = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where("abs(a - b) <= 0.003")
MIXTURE = nr.Space(recipe=nr.Mixture("a", "b", "c"), t=nr.Float(0, 1))


@pytest.mark.parametrize(
    ("space", "f", "first", "total"),
    [  # Moments of Dirichlet(1, 1, 1), with b uniform on [0, 1 - a].
        (TRIANGLE, lambda x: x[:, 0] * x[:, 1], [1 / 3, 1 / 3], [2 / 3, 2 / 3]),
        (TRIANGLE, lambda x: x[:, 0], [1, 1 / 4], [1, 1 / 4]),
        (MIXTURE, lambda x: x[:, 0], [1, 1 / 4, 1 / 4, 0], [1, 1 / 4, 1 / 4, 0]),
        (BAND, lambda x: x[:, 0] - x[:, 1], [0, 0], [1, 1]),
    ],
)
def test_indices_under_limits_are_those_of_the_permitted_points(space, f, first, total):
    design = of._Design(Factors(nr.auto(space)), 4096, both=True)
    values = design.blocks(f(design.rows[0])[None])
    found = of._first_and_total(values, len(first), tied=True)
    np.testing.assert_allclose(found, [[first], [total]], atol=0.05)  # The standard error is at most 0.015.
    interactions = of._beyond_sums(values[0, 0], design.ranks)
    assert (interactions[0, 1] > 0.1) == (total[0] < 1)


def test_a_study_under_limits_has_its_importance_over_the_permitted_points():
    study = nr.Study(nr.auto(TRIANGLE), seed=0)
    for a, b in [(i / 4, j / 4) for i in range(5) for j in range(5 - i)]:
        study.add({"a": a, "b": b}, a)
    found = study.importance()
    np.testing.assert_allclose(found.value.first, [1.0, 0.25], atol=0.1)
    low, high = found.value.first_interval
    assert (low <= found.value.first).all()
    assert (found.value.first <= high).all()


def test_a_constant_has_no_important_parameter():
    for each in shares_of(lambda u: np.full(len(u), 3.0), 2):
        assert not each.any()


def test_intervals_hold_the_indices_of_the_median_also_where_draws_differ_from_it():
    median, draws = np.moveaxis(of._shares(2, 64, both=False)[None], -1, 0)  # that varies with a, each draw with b
    found = of._indices(median, median, draws)
    for index, (low, high) in ((found.first, found.first_interval), (found.total, found.total_interval)):
        assert (low <= index).all()
        assert (index <= high).all()
    assert found.leaders == [0, 1]  # by the draws it may be b


def known_exactly(f, count, *, best):
    """Indices with intervals of a function that all draws are equal to."""
    many, few = (
        f(of._shares(count, points, both=False).reshape(-1, count)).reshape(1, count + 2, points)
        for points in (of.POINTS, of.POINTS_OF_DRAWS)
    )
    each = (many, few, np.repeat(few, 6, axis=0))
    return of._indices(*map(of._among_best, each)) if best else of._indices(*each)


@pytest.mark.parametrize("best", [False, True])
def test_equal_parameters_that_are_known_exactly_lead_together(best):
    found = known_exactly(lambda u: np.sin(2.0 * np.pi * u).sum(axis=1), 6, best=best)
    assert sorted(found.leaders) == list(range(6))


def test_what_is_known_exactly_has_narrow_intervals_around_the_truth():
    found = known_exactly(ishigami, 3, best=False)
    for truth, (low, high) in (
        ([0.3139, 0.4424, 0.0], found.first_interval), ([0.5576, 0.4424, 0.2437], found.total_interval)
    ):  # fmt: skip
        assert (low <= truth).all()
        assert (truth <= high).all()
        assert (high - low).max() < 0.08
    assert found.leaders == [0]


@pytest.mark.parametrize(
    ("total", "high", "named"),
    [
        ([0.5, 0.45, 0.02, 0.02, 0.02], 0.21, [0, 1]),  # wide intervals meet, and still two dominate
        ([0.6, 0.4, 0.0, 0.0, 0.0], 0.0, [0, 1]),  # the second is far behind the first, and far ahead of the rest
        ([0.1, 0.9, 0.0, 0.0, 0.0], 0.0, [1]),
        ([0.2, 0.2, 0.2, 0.2, 0.2], 0.1, []),
    ],
)
def test_a_summary_names_the_parameters_that_dominate(total, high, named):
    total = np.array(total)
    ends = np.maximum(total - 0.3, 0.0) if high > 0.2 else total - 0.05, np.maximum(total + 0.05, high)
    assert of.Indices(total, total, np.array(ends), np.array(ends)).named == named


def test_no_total_lies_under_its_first_order_index():
    found = known_exactly(lambda u: (u**2).sum(axis=1), 5, best=False)
    assert (found.total >= found.first).all()
    assert (found.total_interval[1] >= found.first).all()


def told(space, f, count, *, goal="minimize", policy=None, contexts=None):
    """A study that was told a function at points of a Sobol sequence."""
    from scipy.stats import qmc

    study = nr.Study(policy or nr.auto(space), seed=0, goal=goal)
    factors = Factors(study.policy)
    shares = qmc.Sobol(len(factors.each), rng=np.random.default_rng(0)).random(count)
    for point, context in (
        zip(*factors.rows(shares), strict=True) if contexts else [(p, None) for p in factors.rows(shares)[0]]
    ):
        study.add(point, f(point) if context is None else f(point, context), context=context)
    return study


@pytest.mark.parametrize("goal", ["minimize", "maximize"])
def test_a_study_of_a_sum_finds_its_shares(goal):
    sign = 1.0 if goal == "minimize" else -1.0
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0.001, 1000.0, log=True), c=nr.Float(-1, 1))
    found = told(space, lambda x: sign * (4.0 * x[0] + 2.0 * x[1]), 32, goal=goal).importance()
    assert found.names == ("a", "b", "c")
    np.testing.assert_allclose(found.value.first, [0.8, 0.2, 0.0], atol=0.05)
    np.testing.assert_allclose(found.value.total, [0.8, 0.2, 0.0], atol=0.05)
    low, high = found.value.total_interval
    assert (low <= found.value.total + 0.05).all()
    assert (found.value.total <= high + 0.05).all()
    assert found.explained > 0.95
    assert found.best.total[0] > found.best.total[1] > found.best.total[2]
    assert found.pairs(1)[0] in [("a", "b"), ("a", "c"), ("b", "c")]
    assert "determine" in repr(found)
    table = found.to_pandas()
    assert list(table.index) == ["a", "b", "c"]
    assert table["total"].to_list() == found.value.total.tolist()


def test_choices_whole_numbers_and_conditions_count():
    space = nr.Space(kind=nr.Choice("x", "y"), n=nr.Int(1, 3), depth=nr.when("kind", "y", nr.Float(0, 1)))

    def f(point):
        at = space.decode(point)
        return 2.0 * (at["kind"] == "x") + 0.0 * at["n"] + 0.5 * at.get("depth", 0.0)

    found = told(space, f, 32).importance()
    by_name = dict(zip(found.names, found.value.total, strict=True))
    assert by_name["kind"] > 0.9
    assert by_name["kind"] > by_name["depth"]
    assert by_name["n"] < 0.05


def test_columns_of_a_context_are_named_and_count():
    policy = nr.auto(nr.Box([0.0], [1.0]), context=nr.Box([0.0, 0.0], [1.0, 2.0]), regret="simple")
    study = told(None, lambda x, c: float(x[0] + 2.0 * c[0]), 32, goal="maximize", policy=policy, contexts=True)
    found = study.importance()
    assert found.names == ("context[0]", "context[1]", "point")
    np.testing.assert_allclose(found.value.total, [0.8, 0.0, 0.2], atol=0.06)


def test_a_grid_has_its_parameters_and_other_arms_are_one_thing():
    space = nr.Space(a=nr.Float(0, 1), b=nr.Int(1, 4))
    policy = nr.gp_ucb(space.grid(5), nr.SquaredExponential(0.6), noise=0.05)
    study = nr.Study(policy, seed=0)
    for point in policy.domain.points[::2]:
        study.add(point, 3.0 * point[0] + point[1])
    np.testing.assert_allclose(study.importance().value.total, [0.9, 0.1], atol=0.08)
    scattered = nr.Study(nr.gp_ucb(nr.Arms([[0.0, 0.0], [1.0, 2.0], [0.3, 0.4]]), nr.Matern(2.5, 1.0), noise=0.1))
    for _ in range(3):
        scattered.tell(scattered.ask(), 1.0)
    with pytest.raises(nr.NoRegretError, match="only one thing that varies, arm"):
        scattered.importance()


def test_what_has_no_importance_says_why():
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))))
    for has in ("none", "1"):
        with pytest.raises(nr.NoRegretError, match=f"at least two answered trials, and this study has {has}"):
            study.importance()
        study.tell(study.ask(), 1.0)
    one = nr.minimize(lambda x: x[0], nr.Box([0.0], [1.0]), trials=3, progress=False)
    with pytest.raises(nr.NoRegretError, match="only one thing that varies"):
        one.study.importance()
    script = nr.Study(nr.algorithms.admmbo(nr.Box([0.0, 0.0], [1.0, 1.0]), constraints=1))
    for _ in range(2):
        script.tell(script.ask(), 1.0, constraints=[-1.0])
    with pytest.raises(nr.NoRegretError, match="has no posterior"):
        script.importance()


def test_one_absurd_value_does_not_hide_the_rest():
    space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), c=nr.Float(0, 1))
    found = told(space, lambda x: x[0] + 1e6 * (x[2] > 0.9), 32).importance()
    assert found.value.total.argmax() == 2
    assert found.best.total[0] > found.best.total[1]


def test_models_of_arms_have_an_overview_without_importance():
    study = nr.Study(nr.auto(nr.Arms(range(3)), context=nr.Space(age=nr.Float(16, 90)), reward="bernoulli"))
    for age in range(20, 90, 2):
        study.tell(study.ask({"age": age}), float(age % 3 == 0))
    with pytest.raises(nr.errors.InvalidInput, match="a model for each arm"):
        nr.plots.importance(study)
    assert nr.plots.overview(study).axes


def test_a_parameter_with_one_value_has_no_importance():
    space = nr.Space(a=nr.Float(0, 1), b=nr.Choice("only"))
    study = nr.Study(nr.gp_ucb(space.grid(9), nr.SquaredExponential(0.6), noise=0.05), seed=0)
    for point in study.policy.domain.points[::2]:
        study.add(point, 3.0 * point[0])
    found = study.importance()
    assert dict(zip(found.names, found.value.total.round(2), strict=True)) == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize("warped", [False, True])
@pytest.mark.parametrize(("mean", "std"), [(0.3, 0.8), (-1.0, 2.0), (0.2, 1e-6)])
def test_the_gain_is_in_the_units_of_the_rewards(warped, mean, std):
    warp = Warp(np.array([-20.0, -3.0, -1.0, 0.5]), np.array([-2.0, -1.0, -0.2, 0.5])) if warped else None
    units = Units(0.25, 1.5, warp)
    draws = units.back(mean + std * np.random.default_rng(0).normal(size=400_000))
    for incumbent in (-30.0, -4.0, 0.0, 0.4, 2.0):
        found = np.maximum(draws - incumbent, 0.0)
        error = found.std() / np.sqrt(len(found))
        assert gain_over(incumbent, mean, std, units) == pytest.approx(found.mean(), rel=1e-4, abs=5.0 * error + 1e-9)


def test_before_its_first_fit_a_model_that_learns_units_says_no_number():
    study = nr.Study(nr.auto(nr.Space(t=nr.Float(20, 90), kind=nr.Choice("a", "b"))), seed=0)
    for count in range(1, 4):
        study.add({"t": 20.0 + 20.0 * count, "kind": "a"}, 500.0 * count)
        known = count == 3
        assert (History(study).gain is not None) == known
        assert ("mean" in overview(study)["best"]) == known
        result = nr.minimize(lambda t, kind: 500.0, study.policy.domain, trials=count, progress=False)
        assert ("posterior mean" in repr(result)) <= known
        if count == 2:
            with pytest.raises(nr.errors.InvalidInput, match="no units yet: it learns them from the first 3 rewards"):
                study.importance()


def test_what_the_trials_do_not_determine_names_no_parameter():
    study = told(nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)), lambda x: x[0], 4)
    of_loss = quantity(study, None)
    found = replace(study.importance(), explained=0.004)
    assert importance_panels(found, of_loss)[0].title == "What moves the loss:\ntoo early to say"
    sentence = (
        "What moves the loss: too early to say. The trials determine 0% of the variation (shares are of this part)"
    )
    assert explored._importance(found, of_loss)["sentence"].startswith(sentence)
    assert "shares are of this part" in repr(found)


def test_importance_is_computed_once_until_the_next_event():
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))), seed=0)
    for x, y in ((0.1, 0.5), (0.9, 0.2), (0.4, 0.7)):
        study.add({"x": x, "y": y}, x)
    found = study.importance()
    assert study.importance("reward") is found
    assert not found.value.total.flags.writeable
    study.add({"x": 0.6, "y": 0.1}, 0.1)
    assert study.importance() is not found
