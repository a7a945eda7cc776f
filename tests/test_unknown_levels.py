"""Unknown and missing levels of contexts: `unknown=True`, and levels that are declared later."""

import json
import math

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms.schema import parameter, table_of
from nilregret.domains.parameters import CHOSEN
from nilregret.errors import InvalidInput
from nilregret.serialize import from_plain, to_plain

DEVICE = nr.Choice("phone", "desk", unknown=True)
CONTEXT = nr.Space(hour=nr.Float(0, 24, unknown=True), visits=nr.Int(0, 5, unknown=True), device=DEVICE)


# -- domains ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [{"device": "tablet"}, {"device": None}, {}, {"device": math.nan}])
def test_what_was_never_declared_null_and_missing_are_one_level(given):
    space = nr.Space(device=DEVICE)
    assert space.encode(given).tolist() == [0.0, 0.0, CHOSEN]
    assert space.decode(space.encode(given)) == {"device": None}
    assert space.unknown_in(given) == (("device", "tablet" if given.get("device") == "tablet" else None),)
    assert space.unknown_in({"device": "desk"}) == ()


@pytest.mark.parametrize("kind", [nr.Float(0, 10, unknown=True), nr.Int(0, 10, unknown=True)])
@pytest.mark.parametrize("missing", [{"x": None}, {"x": math.nan}, {"x": np.float64("nan")}, {}])
def test_a_missing_number_is_at_the_middle_and_says_so(kind, missing):
    space = nr.Space(x=kind)
    assert space.encode(missing).tolist() == [0.5, 1.0]
    assert space.decode(space.encode(missing)) == {"x": None}
    assert space.unknown_in(missing) == (("x", None),)
    assert space.encode({"x": 4}).tolist() == [0.4, 0.0]
    assert space.decode(space.encode({"x": 4})) == {"x": 4}
    assert space.unknown_in({"x": 4}) == ()
    with pytest.raises(InvalidInput, match="must lie in"):
        space.encode({"x": 11})


def test_points_of_missing_values_are_points():
    rows = np.array([CONTEXT.encode(each) for each in ({}, {"hour": 6, "visits": 2, "device": "desk"})])
    np.testing.assert_array_equal(CONTEXT.inside("context", rows), rows)
    between = CONTEXT.snap(np.array([[0.3, 0.9, 0.31, 0.2, 0.1, 0.2, 0.3]]))
    assert CONTEXT.decode(between[0]) == {"hour": None, "visits": 2, "device": None}


def test_without_unknown_all_is_as_it_was():
    plain = nr.Space(hour=nr.Float(0, 24), visits=nr.Int(0, 5), device=nr.Choice("phone", "desk"))
    assert "unknown" not in json.dumps(to_plain(plain)) + repr(plain)
    assert plain.dimension == 4
    assert plain.unknown == ()
    with pytest.raises(InvalidInput, match="'tablet' is not among the options"):
        plain.encode({"hour": 1, "visits": 1, "device": "tablet"})
    with pytest.raises(InvalidInput, match="missing"):
        plain.encode({"hour": 1, "device": "desk"})


@pytest.mark.parametrize("each", CONTEXT.parameters.values(), ids=str)
def test_the_fact_is_in_descriptions(each):
    again = from_plain(json.loads(json.dumps(to_plain(each))))
    assert (again, hash(again), repr(again)) == (each, hash(each), repr(each))
    assert parameter(table_of(each)) == each
    assert table_of(each)["unknown"] is True
    assert repr(each).endswith("unknown=True)")
    known = parameter({name: value for name, value in table_of(each).items() if name != "unknown"})
    assert known != each
    assert parameter({**table_of(each), "unknown": False}) == known


def test_none_is_the_level_of_the_unknown_wherever_it_is_declared():
    assert nr.Choice("a", None, "b", unknown=True) == nr.Choice("a", "b", unknown=True)
    assert nr.Choice("a", "b", unknown=True).options == ("a", "b", None)


def test_a_grid_of_contexts_has_the_unknown():
    grid = nr.Space(device=DEVICE, hour=nr.Float(0, 24, unknown=True)).grid(3)
    assert len(grid) == 3 * 4
    assert grid.parameters(11) == {"device": None, "hour": None}
    assert grid.index([{"device": "tablet", "hour": 12.0}, {}]).tolist() == [9, 11]
    assert from_plain(to_plain(grid)) == grid


def test_a_parameter_counts_under_declared_values_only():
    space = nr.Space(device=DEVICE, app=nr.when("device", "phone", nr.Choice("a", "b", unknown=True)))
    assert space.decode(space.encode({"device": "fridge"})) == {"device": None}
    assert space.unknown_in({"device": "fridge"}) == (("device", "fridge"),)
    assert space.unknown_in({"device": "phone"}) == (("app", None),)
    with pytest.raises(InvalidInput, match="counts only for some values of 'device': 'tablet' is not among"):
        nr.Space(device=DEVICE, app=nr.when("device", "tablet", nr.Int(0, 1)))


@pytest.mark.parametrize("level", [["tablet"], {"a": 1}, "x" * 201, "a\0b", math.inf, nr.Float, 10**20])
def test_a_value_that_cannot_be_a_level_is_refused(level):
    with pytest.raises(InvalidInput, match=r"Parameter `device`: .* is no option, and too much"):
        nr.Space(device=DEVICE).encode({"device": level})


@pytest.mark.parametrize("domain", [nr.Space(device=DEVICE), nr.Space(device=DEVICE).grid(), CONTEXT])
def test_the_unknown_cannot_be_chosen(domain):
    with pytest.raises(InvalidInput, match="what is unknown cannot be chosen: leave `unknown` out"):
        nr.auto(domain)


def test_unknown_is_true_or_false():
    with pytest.raises(InvalidInput, match="`unknown` must be True or False"):
        nr.Choice("a", unknown="b")
    with pytest.raises(InvalidInput, match="`unknown` must be True or False"):
        nr.Float(0, 1, unknown=1)
    with pytest.raises(InvalidInput, match="`unknown` must be True or False"):
        nr.Int(0, 1, unknown=None)
