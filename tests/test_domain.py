import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nilregret as nr
from nilregret import serialize


def test_a_grid_of_choices_alone_needs_no_number():
    space = nr.Space(a=nr.Choice("x", "y"), b=nr.Choice(1, 2, 3))
    assert space.grid() == space.grid(7)
    assert len(space.grid()) == 6
    assert serialize.loads(serialize.dumps(space.grid())) == space.grid()
    with pytest.raises(nr.errors.InvalidInput, match="of how many values of x"):
        nr.Space(x=nr.Float(0, 1), a=nr.Choice("x", "y")).grid()


def test_arms_take_one_dimension_or_many():
    assert nr.Arms([0.0, 1.0, 2.0]).points.shape == (3, 1)
    assert nr.Arms(np.zeros((4, 2))).dimension == 2
    grid = nr.Arms.grid(-1, 3, 5)
    np.testing.assert_array_equal(grid.points[:, 0], [-1, 0, 1, 2, 3])
    assert len(grid) == 5


def test_arms_are_a_read_only_copy():
    points = np.zeros((3, 2))
    arms = nr.Arms(points)
    points[:] = 7.0
    assert not arms.points.any()
    with pytest.raises(ValueError, match="read-only"):
        arms.points[0] = 1.0


def test_index_finds_arms_exactly_nearly_or_not_at_all():
    arms = nr.Arms([[0.0, 0.0], [0.1, 1.0], [0.1, 1.0], [5.0, -2.0]])
    np.testing.assert_array_equal(arms.index([[5.0, -2.0], [-0.0, 0.0], [0.1, 1.0]]), [3, 0, 1])
    np.testing.assert_array_equal(arms.index([0.1 + 1e-12, 1.0]), [1])
    wide = nr.Arms([[0.0, 0.0], [1e9, 0.0], [0.0, 1.0], [1e9, 1.0]])
    with pytest.raises(nr.errors.InvalidInput, match="not one of the arms"):
        wide.index([[0.0, 0.4]])
    with pytest.raises(nr.errors.InvalidInput, match="not one of the arms"):
        nr.Arms([1e-12, 2e-12]).index([1e-10])
    with pytest.raises(nr.errors.InvalidInput, match=r"nearest is arm 3 at \[5\.0, -2\.0\]"):
        arms.index([[4.9, -2.0]])
    ovens = nr.Space(heat=nr.Float(0, 250)).grid(26)
    with pytest.raises(nr.errors.InvalidInput, match=r"\{'heat': 205.0\} is not .* arm 20 at \{'heat': 200.0\}"):
        ovens.index({"heat": 205})
    with pytest.raises(nr.errors.InvalidInput, match=r"\[205.0\] is not .* from 0 to 1"):
        ovens.index(np.array([[205.0]]))
    with pytest.raises(nr.errors.InvalidInput, match="2 dimensions"):
        arms.index([[1.0, 2.0, 3.0]])
    with pytest.raises(nr.errors.InvalidInput, match="not finite"):
        arms.index([[np.nan, 0.0]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.Arms([]), "at least one arm"),
        (lambda: nr.Arms(np.zeros((3, 0))), "at least one dimension"),
        (lambda: nr.Arms(np.zeros((2, 2, 2))), "shape"),
        (lambda: nr.Arms(["spring", "sale"]), r"nr.Space\(arm=nr.Choice\('spring', 'sale'\)\).grid\(\)"),
        (lambda: nr.Space({"x": nr.Float(0, 1)}), r"by name.*nr.Space\(\*\*parameters\)"),
        (lambda: nr.Arms([[1.0], [np.inf]]), r"not finite at index \(1, 0\)"),
        (lambda: nr.Arms("abc"), "not an array of numbers"),
        (lambda: nr.Arms([[1.0], [1.0, 2.0]]), "not an array of numbers"),
        (lambda: nr.Arms.grid(1, 0, 5), "lower < upper"),
        (lambda: nr.Arms.grid(0, 1, 0), "at least 1"),
        (lambda: nr.Arms.grid(0, 1, 2.5), "whole number"),
        (lambda: nr.Float(1, 0), "low <= high"),
        (lambda: nr.Float(0, 1, log=True), "logarithm"),
        (lambda: nr.Float(0, float("nan")), "finite"),
        (lambda: nr.Float(-1e308, 1e308), "narrow the range"),
        (lambda: nr.Float(1e-300, 1e300, log=True), "narrow the range"),
        (lambda: nr.Int(0, 10**400), "beyond"),
        (lambda: nr.Space(x=nr.Float(0, 1)).grid(3).parameters(99), "no arm 99"),
        (lambda: nr.Int(3, 1), "low <= high"),
        (lambda: nr.Int(0, 4, log=True), "logarithm"),
        (lambda: nr.Int(0.5, 4), "whole number"),
        (lambda: nr.Choice(), "at least one option"),
        (lambda: nr.Choice("a", "a"), "differ"),
        (lambda: nr.Choice(object()), "A record runs nothing"),
        (lambda: nr.Choice(float("nan")), "finite"),
        (lambda: nr.Space(), "at least one named parameter"),
        (lambda: nr.Space(x=3), "must be a Float, Int or Choice"),
        (lambda: nr.Space(x=nr.Float(0, 1)).grid(0), "at least 1"),
        (lambda: nr.Space(x=nr.Float(0, 1)).grid({"y": 3}), "numeric parameters are"),
        (lambda: nr.Space(x=nr.Float(0, 1)).encode({"y": 3}), "missing.*'x'.*unknown.*'y'"),
        (lambda: nr.Space(x=nr.Float(0, 1)).encode({"x": 3}), "Parameter `x`"),
        (lambda: nr.Space(k=nr.Choice("a", "b")).encode({"k": "c"}), "not among the options"),
        (lambda: nr.Arms.grid(0, 1, 3).parameters(0), "no named parameters"),
    ],
)
def test_bad_domains_are_explained(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


def test_a_grid_has_every_combination_and_decodes():
    space = nr.Space(C=nr.Float(0.01, 100, log=True), n=nr.Int(1, 3), kind=nr.Choice("a", "b"), flag=nr.Choice(True, 1))
    arms = space.grid({"C": 5, "n": 10})
    assert len(arms) == 5 * 3 * 2 * 2
    seen = [arms.parameters(arm) for arm in range(len(arms))]
    assert len({json.dumps(p) for p in seen}) == len(arms)
    assert sorted({p["C"] for p in seen}) == [0.01, 0.1, 1.0, 10.0, 100.0]
    assert {p["n"] for p in seen} == {1, 2, 3}
    assert all(type(p["n"]) is int for p in seen)
    assert arms.points.min() >= 0.0
    assert arms.points.max() <= 1.0
    for arm in (0, 7, 59):
        assert arms.index(seen[arm])[0] == arm
    np.testing.assert_array_equal(arms.index([seen[4], seen[2]]), [4, 2])


def test_options_are_all_equally_far_apart():
    choice = nr.Choice("a", "b", "c")
    codes = np.array([choice.encode(option) for option in choice.options])
    distances = np.linalg.norm(codes[:, None] - codes[None], axis=2)
    np.testing.assert_allclose(distances, 1.0 - np.eye(3), atol=1e-15)


def test_equal_booleans_and_numbers_are_different_options():
    choice = nr.Choice(True, 1)
    assert choice.decode(np.array(choice.encode(True))) is True
    assert choice.decode(np.array(choice.encode(1))) == 1
    assert choice.decode(np.array(choice.encode(1))) is not True


floats = st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: round(x, 6))


@given(low=floats, span=st.floats(1e-3, 1e6), position=st.floats(0, 1), log=st.booleans())
def test_float_parameters_round_trip(low, span, position, log):
    low = abs(low) + 1e-3 if log else low
    parameter = nr.Float(low, low + span, log=log)
    value = parameter.decode(np.array([position]))
    assert parameter.low <= value <= parameter.high
    assert parameter.decode(np.array(parameter.encode(value))) == pytest.approx(value, rel=1e-9, abs=1e-9 * span)


@given(low=st.integers(-1000, 1000), span=st.integers(0, 500), data=st.data(), log=st.booleans())
def test_int_parameters_round_trip(low, span, data, log):
    low = abs(low) + 1 if log else low
    parameter = nr.Int(low, low + span, log=log)
    value = data.draw(st.integers(low, low + span))
    assert parameter.decode(np.array(parameter.encode(value))) == value


@pytest.mark.parametrize(
    "domain",
    [
        nr.Arms.grid(0, 1, 7),
        nr.Arms(np.random.default_rng(0).standard_normal((5, 3))),
        nr.Space(parameters=nr.Float(0, 1), type=nr.Int(1, 9, log=True), x=nr.Choice("a", 2, True, 0.5)).grid(3),
    ],
)
def test_domains_round_trip_through_json(domain):
    again = serialize.loads(serialize.dumps(domain))
    assert again == domain
    assert hash(again) == hash(domain)
    assert serialize.dumps(again) == serialize.dumps(domain)
    assert repr(again) == repr(domain)
    assert domain != nr.Arms.grid(0, 2, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not the JSON"),
        ('{"type": "Nothing"}', "Unknown type 'Nothing'"),
        (
            '{"type": "Polcy"}',
            r"type 'Polcy' in a description\. Did you mean 'Policy'\? .* open the study in Python, after importing",
        ),
        ('{"type": "Float", "low": 1}', "does not fit"),
        ('{"type": "Float", "low": 2, "high": 1}', "low <= high"),
        ("[1]", "describes a list"),
    ],
)
def test_descriptions_that_are_none_are_explained(text, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.Policy.from_json(text)


def test_a_grid_is_described_by_its_counts_however_large():
    space = nr.Space(self=nr.Float(0, 1), b=nr.Int(0, 99))
    grid = space.grid({"self": 50, "b": 100})
    text = serialize.dumps(grid)
    assert len(text) < 400
    assert serialize.loads(text) == grid
