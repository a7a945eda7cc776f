"""Mixtures: ingredients that add up to a total, as one entry of a space."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret._utils.randomness import Draws
from nilregret.domains.search.designs import design
from nilregret.serialize import dumps, loads
from nilregret.storage import MemoryStorage

from .service import Client, plain

MOVED = pytest.mark.filterwarnings("ignore:Amounts miss the limit")


def test_a_mixture_is_parameters_and_a_limit():
    space = nr.Space(recipe=nr.Mixture("water", "oil", salt=(0, 0.1), total=2), oven=nr.Int(150, 220))
    assert list(space.parameters) == ["water", "oil", "salt", "oven"]
    assert space.limits.texts == ("water + oil + salt == 2.0",)
    assert space == nr.Space(
        water=nr.Float(0, 2), oil=nr.Float(0, 2), salt=nr.Float(0, 0.1), oven=nr.Int(150, 220)
    ).where("water + oil + salt == 2.0")
    assert loads(dumps(space)) == space == eval(repr(space), vars(nr) | {name: getattr(nr, name) for name in dir(nr)})


def test_ranges_are_drawn_in_to_what_a_recipe_can_have():
    mixture = nr.Mixture("filler", iron=(0.4, 2), nickel=(0.1, 0.3), total=1.0)
    assert repr(mixture) == "Mixture(filler=(0.0, 0.5), iron=(0.4, 0.9), nickel=(0.1, 0.3), total=1.0)"
    assert mixture == eval(repr(mixture), vars(nr) | {"Mixture": nr.Mixture})
    assert dict(nr.Mixture(a=(0, 0.3), b=(0, 0.9)).ingredients) == {"a": nr.Float(0.1, 0.3), "b": nr.Float(0.7, 0.9)}


def test_two_mixtures_and_further_limits():
    space = nr.Space(one=nr.Mixture("a", "b"), two=nr.Mixture("c", "d", total=5)).where("a <= c")
    assert space.limits.texts == ("a + b == 1.0", "c + d == 5.0", "a <= c")


def test_a_design_lies_inside_as_well_as_near_borders():
    """Points farthest apart would all be vertices and edges, and a maximum inside was then missed."""
    least = np.sort(design(nr.Space(recipe=nr.Mixture(*"abcd")), 12, Draws("design of a mixture")).min(axis=1))
    assert len(least) == 12
    assert least[0] < 0.02
    assert least[6] > 0.02


@pytest.mark.parametrize("made", [nr.Mixture("a", "b", "c"), nr.Mixture("a", b=(2, 5), c=(0, 0.3), total=10)])
def test_every_trial_adds_up(made):
    study = nr.Study(nr.auto(nr.Space(recipe=made, kind=nr.Choice("x", "y"))), seed=0)
    for _ in range(11):
        trial = study.ask()
        amounts = {name: trial.parameters[name] for name, _ in made.ingredients}
        assert abs(sum(amounts.values()) - made.total) <= 1e-9
        assert all(each.low <= amounts[name] <= each.high for name, each in made.ingredients)
        study.tell(trial, -((amounts["a"] - made.total / 3) ** 2))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: nr.Mixture("a"), "two ingredients or more, and here are 1"),
        (lambda: nr.Mixture(), "two ingredients or more, and here are 0"),
        (lambda: nr.Mixture("a", "a"), "'a' is named twice"),
        (lambda: nr.Mixture("a", "b", a=(0, 1)), "'a' is named twice"),
        (lambda: nr.Mixture(["a", "b"]), "is a name, not .*one by one"),
        (lambda: nr.Mixture("corn starch", "b"), "no name that a limit.*corn_starch"),
        (lambda: nr.Mixture("lambda", "b"), "no name that a limit could use"),
        (lambda: nr.Mixture("a", "b", total=0), "`total` is 0:.*what all amounts add up to"),
        (lambda: nr.Mixture("a", "b", total=-1), "`total` is -1:"),
        (lambda: nr.Mixture("a", "b", total=float("inf")), "`total` is inf"),
        (lambda: nr.Mixture("a", b=0.3), "`b` is 0.3: it must be its least and largest amount"),
        (lambda: nr.Mixture("a", b=(-1, 1)), r"`b\[0\]` is -1:"),
        (lambda: nr.Mixture("a", b=(0.3, 0.1)), "`b` goes from 0.3 to 0.1.*swapped"),
        (lambda: nr.Mixture(a=(0.7, 0.9), b=(0.5, 1)), "least amounts .* add up to 1.2.*`total` is 1:"),
        (lambda: nr.Mixture(a=(0, 0.4), b=(0, 0.6)), "largest amounts .* add up to 1, and.*in the units"),
        (lambda: nr.Space(a=nr.Float(0, 1), recipe=nr.Mixture("a", "b")), "`a` is there twice.*Rename"),
        (lambda: nr.Space(one=nr.Mixture("a", "b"), two=nr.Mixture("b", "c")), "`b` is there twice"),
        (lambda: nr.when("kind", "x", nr.Mixture("a", "b")), "it must be a Float, Int or Choice"),
    ],
)  # fmt: skip
def test_bad_mixtures(make, said):
    with pytest.raises(nr.errors.InvalidInput, match=f"(?s){said}"):
        make()


GROWN = 9.7 / 9.65


@pytest.mark.parametrize(
    ("made", "given", "taken"),
    [
        (nr.Mixture("a", "b", "c"), (0.33, 0.33, 0.33), (1 / 3, 1 / 3, 1 / 3)),
        (nr.Mixture("a", "b", "c", total=50), (30.1, 0, 20), (30.1 / 1.002, 0, 20 / 1.002)),
        (
            nr.Mixture("a", b=(2, 5), c=(0, 0.3), total=10),
            (7.65, 2, 0.3),
            (7.65 * GROWN, 2 * GROWN, 0.3),
        ),  # `c` may not grow.
    ],
)
def test_rounded_amounts_are_moved_to_the_total(made, given, taken):
    study = nr.Study(nr.auto(nr.Space(recipe=made)))
    row = dict(zip("abc", given, strict=True))
    with pytest.warns(
        nr.errors.NoRegretWarning, match=r"miss the limit 'a \+ b \+ c == .*recorded in proportion"
    ) as said:
        trials = (study.add(row, 0.5), *study.add_from([row | {"reward": 0.4}]))
    assert len(said) == 2
    for trial in trials:
        assert [*trial.parameters.values()] == pytest.approx(taken, rel=1e-10)
        assert sum(trial.parameters.values()) == pytest.approx(made.total, rel=1e-11)
        assert trial.parameters["c"] <= dict(made.ingredients)["c"].high
    assert study.best().number == 0


@MOVED
def test_rounded_amounts_keep_the_other_limits_that_they_kept():
    space = nr.Space(recipe=nr.Mixture("a", "b", "c")).where("a <= 0.5", "b + c >= 0.2")
    study = nr.Study(nr.auto(space))
    amounts = study.add({"a": 0.5, "b": 0.3, "c": 0.195}, 9.0).parameters
    assert [*amounts.values()] == pytest.approx([0.5, 0.3 * 0.5 / 0.495, 0.195 * 0.5 / 0.495])
    assert study.best().number == 0


@MOVED
def test_amounts_that_miss_the_total_are_refused(tmp_path):
    study = nr.Study(nr.auto(nr.Space(recipe=nr.Mixture("a", "b", "c"))))
    row = {"a": 0.5, "b": 0.3, "c": 0.17}
    said = r"add up to 0.97, not 1. Up to 0.01 is taken as rounding"
    sheet = study.sheet(1)
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,reward\n0.5,0.3,0.17,1")
    by_hand = dict(zip(sheet.columns, sheet.rows[0], strict=True)) | row | {"value": 1.0}
    calls = [lambda: study.add(row, 1.0), lambda: study.add_from(path), lambda: study.add_from([by_hand]),
             lambda: study.enqueue(row)]  # fmt: skip
    for call in calls:
        with pytest.raises(nr.errors.InvalidInput, match=said):
            call()
    assert [trial.state for trial in study.trials] == ["pending"]
    difference = nr.Study(nr.auto(nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 9), c=nr.Float(0, 1)).where("a + b == c")))
    with pytest.raises(nr.errors.InvalidInput, match=r"'a \+ b == c' differ by -0.2. Up to 0.0\d+ is taken"):
        difference.add({"a": 0.3, "b": 0.3, "c": 0.8}, 1.0)
    assert difference.add({"a": 0.3, "b": 0.3, "c": 0.602}, 1.0).parameters["b"] == pytest.approx(0.3005, abs=1e-4)


def test_the_command_line_says_once_that_rows_were_moved(tmp_path):
    at, path = f"sqlite:///{tmp_path}/a.db", tmp_path / "rows.csv"
    nr.Study(nr.auto(nr.Space(recipe=nr.Mixture("a", "b", "c", total=100))), storage=at, name="s").close()
    path.write_text("a,b,c,reward\n33,33,33,1\n50,30,19,2\n50,30,20,3\n")
    for command in (["import", at, "s", path], ["enqueue", at, "s", '{"a": 50, "b": 30, "c": 19}']):
        ended = CliRunner().invoke(main, [*map(str, command)], catch_exceptions=False)
        assert ended.exit_code == 0
        assert ended.stderr.startswith("Note: Amounts miss the limit 'a + b + c == 100.0' by a hundredth or less.")
        assert ended.stderr.count("Note:") == 1


@MOVED
def test_observations_over_http_are_read_alike():
    at = "/v1/studies/a"
    space = nr.Space(recipe=nr.Mixture("a", "b", "c"), heat=nr.Float(20, 90))
    with Client(MemoryStorage()) as client:
        client.put(at, {"policy": plain(nr.auto(space))})
        for row, said in (
            ({"a": 0.5, "b": 0.3, "c": 0.17, "heat": 30}, "add up to 0.97, not 1. Up to 0.01 is taken as rounding"),
            ({"a": 0.5, "b": 0.3, "c": 0.2, "heat": 95}, "must lie in [20, 90]. `widen` changes the range."),
        ):
            status, answer = client.post(f"{at}/observations", {"parameters": row, "reward": 1.0})
            line = json.dumps({"parameters": row, "reward": 1.0}).encode()
            kind = {"Content-Type": "application/x-ndjson"}
            of_lines = client.post(f"{at}/observations", raw=line, key=said, headers=kind)[1]
            assert status == 422
            assert said in answer["error"]["sentence"]
            assert said[:20] in of_lines["error"]["sentence"]
        row = {"a": 0.33, "b": 0.33, "c": 0.33, "heat": 30}
        client.post(f"{at}/observations", {"parameters": row, "reward": 1.0})
        assert client.get(f"{at}/best")[1]["parameters"]["a"] > 0.3333
