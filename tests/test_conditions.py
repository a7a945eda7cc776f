"""Parameters that count only where others have certain values."""

import copy
import json
import pickle

import numpy as np
import pytest

import nilregret as nr
from nilregret import plots, serialize
from nilregret.domains.search.designs import neighbours
from nilregret.testing import check_kernel

from .marks import nightly

pytestmark = pytest.mark.usefixtures("few_draws")
SPACE = nr.Space(
    way=nr.Choice("walk", "ride", "stay"),
    steep=nr.Choice(True, False, 1),
    pace=nr.when("way", "walk", nr.Float(0, 1)),
    gear=nr.when("way", ["ride"], nr.Int(1, 12)),
    chain=nr.when("gear", [1, 2], nr.Choice("wet", "dry", None)),
    hill=nr.when("way", ("walk", "ride"), nr.when("steep", True, nr.Float(0, 9))),
)

MIDDLE = {"pace": [0.5], "gear": [0.5], "chain": [np.sqrt(0.5) / 3] * 3, "hill": [0.5]}


def uniform(count, space=SPACE, seed=0):
    return space.snap(np.random.default_rng(seed).uniform(size=(count, space.dimension)) * space.upper)


def counting(values):
    """By hand which parameters count."""
    names = {"way", "steep"}
    if values["way"] == "walk":
        names.add("pace")
    if values["way"] == "ride":
        names.add("gear")
        if values["gear"] <= 2:
            names.add("chain")
    if values["way"] != "stay" and values["steep"] is True:
        names.add("hill")
    return names


def test_only_what_counts_is_among_the_parameters():
    points = uniform(400)
    active = SPACE.active(points)
    seen = set()
    for point, mask in zip(points, active, strict=True):
        values = SPACE.decode(point)
        assert set(values) == counting(values)
        np.testing.assert_allclose(SPACE.encode(values), point, atol=1e-9)
        for (name, parameter), (_, columns) in zip(SPACE.parameters.items(), SPACE.columns(), strict=True):
            assert (mask[columns] == (name in values)).all()
            if name not in values:
                assert point[columns].tolist() == MIDDLE[name]
            assert isinstance(parameter, nr.Float | nr.Int | nr.Choice)
        seen.add(frozenset(values))
    assert len(seen) == 1 + 2 + 4  # stay; walk, up a hill or not; ride, with a chain or not, up a hill or not
    np.testing.assert_array_equal(SPACE.snap(points), points)


def test_points_that_differ_in_what_does_not_count_are_one_point():
    kernel = nr.kernel_for(SPACE)
    rows = np.random.default_rng(1).uniform(size=(2, SPACE.dimension)) * SPACE.upper
    rows[:, :3] = SPACE.encode({"way": "stay", "steep": False})[:3]
    rows[:, 3:6] = rows[:1, 3:6]
    one, other = SPACE.snap(rows)
    np.testing.assert_array_equal(one, other)
    for choices in ("tied", "overlap", "transformed"):
        check_kernel(nr.kernel_for(SPACE, choices=choices), uniform(8))
    assert kernel(one[None], other[None]) == pytest.approx(1.0)


def test_a_grid_has_every_combination_once():
    grid = SPACE.grid({"pace": 3, "gear": 12, "hill": 2})
    expected = {"walk": 3 * (2 + 2), "ride": (10 + 2 * 3) * (2 + 2), "stay": 3}  # hills with steep is True: 2, else 1
    ways = [grid.parameters(arm)["way"] for arm in range(len(grid))]
    assert {way: ways.count(way) for way in expected} == expected
    assert len(np.unique(grid.points, axis=0)) == len(grid)
    assert serialize.loads(serialize.dumps(grid)) == grid
    assert [grid.index(grid.parameters(arm))[0] for arm in range(0, len(grid), 7)] == list(range(0, len(grid), 7))
    with pytest.raises(nr.errors.InvalidInput, match="the most is 1,000,000"):
        nr.Space(a=nr.Choice(1, 2), b=nr.when("a", 1, nr.Float(0, 1)), c=nr.when("a", 1, nr.Float(0, 1))).grid(1001)


def test_spaces_with_conditions_are_written_and_read():
    text = serialize.dumps(SPACE)
    again = serialize.loads(text)
    assert again == SPACE
    assert hash(again) == hash(SPACE)
    assert serialize.dumps(again) == text
    assert "gear=when('way', 'ride', Int(low=1, high=12, log=False, step=1))" in repr(SPACE)
    some = {"rbf", "poly", "linear", "cosine"}  # in whatever order a process has it
    assert nr.when("kernel", some, nr.Int(0, 1)).values == ("cosine", "linear", "poly", "rbf")
    plain = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", 2))
    assert json.loads(serialize.dumps(plain)) == {
        "type": "Space",
        "parameters": [
            ["x", {"type": "Float", "low": 0.0, "high": 1.0, "log": False}],
            ["kind", {"type": "Choice", "options": ["a", 2]}],
        ],
    }
    assert plain.active(np.zeros((1, 3))) is None


def test_the_parameters_of_a_space_make_it_again():
    again = nr.Space(**copy.deepcopy(pickle.loads(pickle.dumps(dict(SPACE.parameters)))))
    assert again == SPACE
    assert repr(again) == repr(SPACE)
    assert serialize.dumps(again) == serialize.dumps(SPACE)
    more = nr.Space(**SPACE.parameters, x=nr.Float(0, 1))
    assert more.conditions.needs == SPACE.conditions.needs
    child, needs = next(iter(SPACE.conditions.needs.items()))
    alone = nr.Space(**{child: SPACE.parameters[child]})  # Without its condition it always counts.
    assert alone.conditions is None
    assert SPACE.parameters[child] == alone.parameters[child] != needs


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.when("way", "ride", 3), "must be a Float, Int or Choice"),
        (lambda: nr.when(3, "ride", nr.Float(0, 1)), "names another parameter"),
        (lambda: nr.when("way", [], nr.Float(0, 1)), "names no value"),
        (lambda: nr.Space(a=nr.when("b", 1, nr.Float(0, 1))), "which is not in the space"),
        (lambda: nr.Space(a=nr.when("a", 1, nr.Float(0, 1))), "must stand before it"),
        (lambda: nr.Space(a=nr.when("b", 1, nr.Float(0, 1)), b=nr.Int(0, 3)), "must stand before it"),
        (lambda: nr.Space(b=nr.Int(0, 3), a=nr.when("b", 4, nr.Float(0, 1))), "some values of 'b': `value` is 4"),
        (lambda: nr.Space(b=nr.Choice("x"), a=nr.when("b", "y", nr.Float(0, 1))), "'y' is not among the options"),
        (lambda: nr.Space(b=nr.Float(0, 1), a=nr.when("b", 1, nr.Float(0, 1))), "which varies continuously"),
    ],
)
def test_conditions_that_cannot_be_are_refused(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"way": "walk", "steep": False}, r"missing \['pace'\]. It counts, as way is 'walk'"),
        ({"steep": False}, r"missing \['way'\]. The space has way"),
        (
            {"way": "stay", "steep": True, "pace": 0.3},
            "`pace` is 0.3, and it counts only where way is 'walk': leave it",
        ),
        ({"way": "ride", "steep": 1, "gear": 3, "hill": 2.0}, "way is 'walk' or 'ride' and steep is True: leave it"),
        ({"way": "stay", "steep": True, "speed": 0.3}, r"unknown \['speed'\]"),
        ({"way": "walk", "steep": 1, "pace": 7.0}, "Parameter `pace` is 7"),
        ({"way": "walk", "steep": 1, "pace": None}, "Parameter `pace` must be a number"),
    ],
)
def test_what_is_missing_or_does_not_count_is_said(given, message):
    study = nr.Study(nr.expected_improvement(SPACE, nr.kernel_for(SPACE), noise=0.1))
    with pytest.raises(nr.errors.InvalidInput, match=message):
        study.add(given, 1.0)
    assert len(study.trials) == 0


def test_tables_say_nothing_where_a_parameter_does_not_count():
    full = {"way": "stay", "steep": False, "pace": float("nan"), "gear": None, "chain": None, "hill": np.float64("nan")}
    np.testing.assert_array_equal(SPACE.encode(full), SPACE.encode({"way": "stay", "steep": False}))


def test_the_search_moves_what_counts_alone():
    point = SPACE.encode({"way": "stay", "steep": True})
    rows = neighbours(SPACE, point, np.ones(SPACE.dimension, dtype=bool))
    named = [SPACE.decode(row) for row in rows]
    assert {"way": "walk", "steep": True, "pace": 0.5, "hill": 4.5} in named
    assert {tuple(values.items())[:2] for values in named} == {
        (("way", way), ("steep", steep))
        for way, steep in [("walk", True), ("ride", True), ("stay", False), ("stay", 1)]
    }
    np.testing.assert_array_equal(SPACE.snap(rows), rows)


@pytest.mark.parametrize("algorithm", [nr.expected_improvement, *nightly(nr.gp_ucb)])
def test_a_study_asks_for_what_counts_and_replays_itself(algorithm, tmp_path):
    policy = algorithm(SPACE, nr.kernel_for(SPACE), noise=0.05, refit=nr.slots.Refit(every=4, restarts=1))
    storage = f"sqlite:///{tmp_path / 'ways.db'}"

    def run(study, rounds):
        asked = []
        for _ in range(rounds):
            trial = study.ask()
            values = trial.parameters
            assert set(values) == counting(values)
            asked.append(values)
            study.tell(trial, values.get("pace", 0.0) - 0.1 * values.get("hill", 0.0) + 0.05 * values.get("gear", 0.0))
        return asked

    through = run(nr.Study(policy, seed=2), 11)
    assert (
        run(nr.Study(policy, seed=2, storage=storage), 7) + run(nr.Study(policy, seed=2, storage=storage), 4) == through
    )
    assert [trial.parameters for trial in nr.Study(policy, seed=2, storage=storage).trials] == through
    plots.overview(nr.Study(policy, seed=2, storage=storage), tmp_path / "ways.png")
    assert (tmp_path / "ways.png").stat().st_size > 0
    best = nr.Study(policy, seed=2, storage=storage).best()
    assert set(best.parameters) == counting(best.parameters)


def test_a_climb_leaves_alone_what_does_not_count():
    """The posterior slopes along a column that does not count, and the proposal must not follow it."""
    space = nr.Space(
        on=nr.Choice("no", "yes"), x=nr.Float(0, 1), y=nr.when("on", "yes", nr.Float(0, 1)), z=nr.Float(0, 1)
    )
    study = nr.Study(nr.gp_ucb(space, nr.kernel_for(space), noise=0.1, delta=0.1))
    for y in (0.6, 0.7, 0.8, 0.9):
        study.add({"on": "yes", "x": 0.5, "y": y, "z": 0.5}, 3.0 * y)
    study.add({"on": "no", "x": 0.5, "z": 0.5}, 4.0)
    for _ in range(5):
        trial = study.ask()
        column = trial.point[3]
        assert ("y" in trial.parameters) == (trial.parameters["on"] == "yes")
        assert trial.parameters["on"] == "yes" or column == 0.5
        study.tell(trial, 1.0)


def test_maximize_calls_with_what_counts_and_wants_defaults_for_the_rest():
    space = nr.Space(way=nr.Choice("walk", "ride"), pace=nr.when("way", "walk", nr.Float(0, 1)))

    def time(way, pace=None):
        assert (pace is None) == (way == "ride")
        return 0.2 if pace is None else -((pace - 0.3) ** 2)

    result = nr.maximize(time, space, trials=8, seed=1)
    assert {row["state"] for row in result.history} == {"observed"}
    assert {frozenset(row["parameters"]) for row in result.history} == {frozenset({"way"}), frozenset({"way", "pace"})}
    assert result.best_parameters == {"way": "ride"}
    with pytest.raises(nr.errors.InvalidInput, match="left out where they do not count: give them defaults"):
        nr.maximize(lambda way, pace: 0.0, space, trials=3)
