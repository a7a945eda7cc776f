"""Known limits of a space: their texts, the points that keep them, and what is refused."""

import pickle

import numpy as np
import pytest

import nilregret as nr
from nilregret.domains.space import column_order
from nilregret.serialize import dumps, loads

TEXTS = ("a + b + c == 1", "layers * width <= 4096", "kind != 'sgd' or momentum > 0", "0 <= a - b <= 1")


def space(*limits):
    return nr.Space(
        a=nr.Float(0, 1),
        b=nr.Float(0, 1),
        c=nr.Float(0, 1),
        layers=nr.Int(1, 100),
        width=nr.Int(1, 1000),
        kind=nr.Choice("sgd", "adam"),
        momentum=nr.Float(0, 1),
        rate=nr.Float(1e-5, 1, log=True),
        flag=nr.Choice(True, False),
        batch=nr.Choice(16, 32, 64),
    ).where(*limits)


def point(**changes):
    usual = dict(a=0.4, b=0.3, c=0.3, layers=4, width=1000, kind="sgd", momentum=0.1, rate=0.01, flag=True, batch=32)
    return {**usual, **changes}


def holds(text, **changes):
    of = space(text)
    return bool(of.limits.holds(of.inside("point", point(**changes)))[0])


def test_a_space_keeps_its_limits_as_texts():
    limited = space(*TEXTS)
    assert limited.limits.texts == TEXTS
    assert repr(limited).endswith(f".where({', '.join(map(repr, TEXTS))})")
    for again in (loads(dumps(limited)), pickle.loads(pickle.dumps(limited)), space("a+b+c==1").where(*TEXTS)):
        assert again == limited and hash(again) == hash(limited) and dumps(again) == dumps(limited)
    assert space().limits is None and space() != limited and "where" not in dumps(space())
    assert nr.Space(**limited.parameters) == space()


def test_the_order_of_limits_is_no_difference_on_record():
    assert column_order(space(*TEXTS), space(*TEXTS[::-1])) == list(range(space().dimension))
    assert column_order(space(*TEXTS), space(*TEXTS[1:])) is None
    assert column_order(space(*TEXTS), space()) is None


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        ("a + b <= 1", {"a": 0.1 + 0.2, "b": 0.7}, True),
        ("a + b < 1", {"a": 0.1 + 0.2, "b": 0.7}, False),
        ("a + b <= 1", {"a": 0.5, "b": 0.5 + 1e-9}, False),
        ("a + b + c == 1", {}, True),
        ("a + b + c == 1", {"c": 0.3 + 1e-9}, False),
        ("layers < 4", {}, False),
        ("not layers >= 5", {}, True),
        ("layers * width <= 4000", {}, True),
        ("layers * width < 4000", {}, False),
        ("width % layers == 0", {}, True),
        ("width % layers == 0", {"layers": 3}, False),
        ("width // layers != 250", {}, False),
        ("kind != 'sgd' or momentum > 0", {"momentum": 0.0}, False),
        ("kind != 'sgd' or momentum > 0", {"momentum": 0.0, "kind": "adam"}, True),
        ("kind in ('sgd', 'adam') and batch in (16, 32.0)", {}, True),
        ("kind not in ('sgd',) or batch not in [32]", {}, False),
        ("flag or a <= 0.1", {}, True),
        ("not (flag and a > 0.1)", {}, False),
        ("batch * rate <= 0.32", {}, True),
        ("batch > 32 or layers == 4", {}, True),
        ("0 <= a - b < 0.1", {}, False),
        ("log(rate) / log(10) <= -2", {}, True),
        ("exp(a) <= max(1.5, b, 2 ** b)", {}, True),
        ("-a ** 2 + abs(-b) >= min(a, 0.14)", {}, True),
        ("a / (b - c) <= 1", {}, False),
        ("log(momentum) <= 1", {"momentum": 0.0}, False),
    ],
)
def test_limits_hold_as_python_says(text, changes, expected):
    assert holds(text, **changes) is expected


def test_gaps_are_in_the_units_of_the_user():
    limited = space(*TEXTS)
    gaps = limited.limits.gaps(limited.inside("point", point()))
    assert limited.limits.owner.tolist() == [0, 1, 2, 3, 3]
    assert np.allclose(gaps, [[0.0, -96.0, -0.1, -0.1, -0.9]])
    A, b = limited.limits.equalities
    assert A.tolist() == [[1, 1, 1] + [0] * (limited.dimension - 3)] and b.tolist() == [1]
    A, b = limited.limits.linear
    assert A[:, :2].tolist() == [[-1, 1], [1, -1]] and b.tolist() == [0, 1] and limited.limits.curved


def test_a_grid_has_the_points_that_keep_the_limits():
    blends = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), c=nr.Float(0, 1)).where("a + b + c == 1").grid(11)
    assert len(blends) == 66 and loads(dumps(blends)) == blends
    assert all(abs(sum(blends.parameters(arm).values()) - 1) <= 1e-9 for arm in range(66))
    with pytest.raises(nr.errors.InvalidInput, match="None of the 8 points of this grid keeps the limits"):
        nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), c=nr.Float(0, 1)).where("a + b + c == 1.5").grid(2)
    with pytest.raises(nr.errors.InvalidInput, match="does not keep the limits"):
        blends.with_more({"a": 1.0, "b": 1.0, "c": 0.5})


def test_a_comparison_with_a_parameter_that_does_not_count_holds():
    of = nr.Space(kind=nr.Choice("a", "b"), gamma=nr.when("kind", "b", nr.Float(0, 1))).where("gamma > 0.5")
    given = [{"kind": "a"}, {"kind": "b", "gamma": 0.4}, {"kind": "b", "gamma": 0.6}]
    assert of.limits.holds(of.inside("points", given)).tolist() == [True, False, True]
    assert of.limits.linear is None


def test_functions_are_limits_too():
    of = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where(lambda a, b: a + b <= 1)
    assert of.limits.holds(np.array([[0.2, 0.3], [0.7, 0.6]])).tolist() == [True, False]
    with pytest.raises(nr.errors.InvalidInput, match="The limit <lambda> is a function, and a record has no"):
        dumps(of)
