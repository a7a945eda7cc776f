"""Known limits of a space: their texts, the points that keep them, and what is refused."""

import json
import math
import pickle
import re

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.randomness import Draws
from nilregret.domains.conditions import Conditions
from nilregret.domains.domain import column_order
from nilregret.domains.limits import Limits
from nilregret.serialize import dumps, loads
from nilregret.serve.dashboard.views.settings import domain_text

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
        assert (again, hash(again), dumps(again)) == (limited, hash(limited), dumps(limited))
    assert (space().limits, space() == limited, "where" in dumps(space())) == (None, False, False)
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
        ("layers ** 40 <= 4 ** 40", {}, True),
        ("layers ** 40 * 3 < 4 ** 40 * 3", {}, False),
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
    assert A.tolist() == [[1, 1, 1] + [0] * (limited.dimension - 3)]
    assert b.tolist() == [1]
    A, b = limited.limits.linear
    assert A[:, :2].tolist() == [[-1, 1], [1, -1]]
    assert (b.tolist(), limited.limits.curved) == ([0, 1], True)


def test_contexts_have_no_limits():
    with pytest.raises(nr.errors.InvalidInput, match="`context` has the limits 'a <= b', but a context is given"):
        nr.auto(cube(1), context=cube(2).where("a <= b"))


def test_settings_and_errors_say_the_limits(tmp_path):
    assert domain_text(cube(2).where("a <= b", "a >= 0.1")).endswith(", where a <= b and a >= 0.1")
    place = {"storage": f"sqlite:///{tmp_path}/runs.db", "name": "n", "progress": False, "trials": 2}
    nr.minimize(lambda a, b: a + b, cube(2).where("a <= b"), **place)
    with pytest.raises(nr.errors.InvalidInput, match=r"domain.where\[0\] \(\"a <= b\" then, \"a <= 2 \* b\" now\)"):
        nr.minimize(lambda a, b: a + b, cube(2).where("a <= 2 * b"), **place)
    with pytest.raises(nr.errors.InvalidInput, match="The limit <lambda> is a function, and a record has no functions"):
        nr.minimize(lambda a, b: a + b, cube(2).where(lambda a, b: a <= b), **place)


def test_points_outside_are_learned_from_and_never_the_best():
    study = nr.Study(nr.auto(cube(2).where("a + b <= 1")))
    study.add({"a": 0.9, "b": 0.9}, 1.8)
    with pytest.raises(nr.errors.TrialError, match="No answered trial is in the space and its limits"):
        study.best()
    study.add({"a": 0.5, "b": 0.5}, 1.0)
    study.add({"a": 0.2, "b": 0.2}, 0.4)
    assert study.best().number == 1
    assert study.predict({"a": 0.9, "b": 0.9})[0][0] > 1.5


def test_a_search_keeps_limits_to_the_last_digit():
    of = cube(2, s=nr.Float(0, 1, step=0.1), t=nr.Float(0, 1, step=0.1))
    limits = of.where("a + b <= 1", "s + t <= 0.3", "a <= 1").limits
    points = np.array([[0.3, 0.7, 0.1, 0.2], [0.3, 0.7 + 1e-14, 0.1, 0.2], [0.3, 0.7 + 1e-11, 0.1, 0.2], [1, 0, 0, 0]])
    assert limits.holds(points).tolist() == [True] * 4
    assert limits.tight(points).tolist() == [True, True, False, True]
    assert (limits.gaps(points)[:, 0] > 0).tolist() == [True] * 4
    assert limits.tight(np.array([[0.3, 0.7 - 1e-9, 0.1, 0.2]])).all()
    blend = cube(3).where("a + b + c == 1", "a <= 2 * b").limits
    assert blend.tight(np.array([[0.1 + 0.2, 0.5, 0.2], [0.3, 0.5, 0.2 + 1e-8]])).tolist() == [True, False]


def test_slopes_of_gaps():
    of = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 3), r=nr.Float(1e-4, 1, log=True), n=nr.Int(1, 10))
    limits = of.where("a + b <= 2", "a * b * n <= 9", "log(r) <= a", "a - b / 3 == 0.1", lambda a: a <= 0.9).limits
    at = of.inside("points", [{"a": 0.5, "b": 1.2, "r": 0.1, "n": 4}])
    ten = math.log(1e4)
    expected = [[1, 3, 0, 0], [4.8, 6, 0, 0], [-1, 0, ten, 0], [1, -1, 0, 0], [0, 0, 0, 0]]
    assert np.allclose(limits.jacobian(at)[0], expected, atol=1e-6)
    assert np.allclose(limits.jacobian(np.zeros((2, 4)))[:, 3], [-1, 1, 0, 0])


def test_a_grid_has_the_points_that_keep_the_limits():
    blends = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1), c=nr.Float(0, 1)).where("a + b + c == 1").grid(11)
    assert (len(blends), loads(dumps(blends))) == (66, blends)
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


def test_steps_and_constants_have_limits_too():
    of = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1), c=nr.Float(5, 5), n=nr.Int(2, 2), s=nr.Float(0, 1, step=0.1))
    A, b = of.where("x + y + c == 2 * n + 1.5").limits.equalities
    assert (A.tolist(), b.tolist()) == ([[1, 1, 0, 0, 0]], [0.5])
    given = [{"x": 0.2, "y": 0.1, "c": 5, "n": 2, "s": s} for s in (0.1, 0.2)]
    assert of.where("x + s <= 0.35", "s < 0.2").limits.missed(of.inside("points", given)).tolist() == [[0, 0], [1, 1]]


def test_functions_see_the_parameters_that_count():
    of = nr.Space(kind=nr.Choice("a", "b"), gamma=nr.when("kind", "b", nr.Float(0, 1)))
    points = of.inside("points", [{"kind": "a"}, {"kind": "b", "gamma": 0.25}])
    for function in (lambda gamma: gamma >= 0.5, lambda **given: given.get("gamma", 1) >= 0.5):
        assert of.where(function).limits.holds(points).tolist() == [True, False]


def test_functions_are_limits_too():
    of = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where(lambda a, b: a + b <= 1)
    assert of.limits.holds(np.array([[0.2, 0.3], [0.7, 0.6]])).tolist() == [True, False]
    with pytest.raises(nr.errors.InvalidInput, match="The limit <lambda> is a function, and a record has no"):
        dumps(of)


def cube(count=4, **others):
    return nr.Space(**{name: nr.Float(0, 1) for name in "abcdefghij"[:count]}, **others)


@pytest.mark.parametrize(
    ("limits", "error"),
    [
        (("a + d <= 1",), "names `d`, which is no parameter: the space has 'a, b, c, .*If d is an outcome"),
        (("moment <= 1",), "names `moment`, .* Did you mean 'momentum'"),
        (("loss <= 0.3",), "If loss is an outcome, .* that is `constraints=`: nr.minimize.*, constraints='loss <= 50'"),
        (("a.b <= 1",), "names `a.b`"),
        (("a = 1",), "has a single =, which assigns. Equality is written =="),
        (("a ≤ 1",), "has ≤ in it. Write <="),
        (("a <= 1 && b <= 1",), "has && in it. Write and"),
        (("",), "is empty. Such as"),
        (("a <= ",), "cannot be read. It is written as in Python"),
        (("a + b",), "is no comparison, such as 'a . b <= 1'. Compare it with something"),
        (("kind",), "is no comparison"),
        (("1 <= 2",), "names no parameter"),
        (("a & b <= 1",), "Comparisons are joined by `and`"),
        (("(a <= 1) | (b <= 1)",), "Comparisons are joined by `or`"),
        (("a ^ 2 <= 1",), r"A power is written \*\*, not"),
        (("a <= b, b <= c",), "Give limits one by one"),
        (("a <= 0.1 if b <= 0.1 else c <= 0.1",), "A condition is written with `or`"),
        (("x[0] <= 1",), "Parameters are named without brackets"),
        (("a is None",), "compares with `is`. Write == or !="),
        (("kind in 'sgd'",), "has `in` without a list of options"),
        (("kind == 'sdg'",), "compares `kind` with 'sdg', which is not among .*'sgd', 'adam'.*. Did you mean 'sgd'"),
        (("kind < 'b'",), "takes \"'b'\" for a number or a comparison"),
        (("a <= True",), "takes 'True' for a number"),
        (("kind + 1 <= 2",), "takes `kind` for a number, .*Options are compared by == and !=, such as kind == 'sgd'"),
        (("sqrt(a) <= 1",), r"calls 'sqrt', and it may call min, max, abs, log, exp alone. A root is written \*\* 0.5"),
        (("np.log(a) <= 1",), r"calls 'np.log', .* Write log\("),
        (("sin(a) <= 1",), "Anything else is a function: where"),
        (("min(a) <= 1",), "calls min with 1 number. It takes two numbers or more"),
        (("log(a, 2) <= 1",), "calls log with 2 numbers. It takes one number"),
        (("max(a, b, key=abs) <= 1",), "calls max with other things than numbers"),
        (("max(*a) <= 1",), "calls max with other things than numbers"),
        (("a % 0.5 <= 0.1",), "has % between numbers that are not whole"),
        (("f'{a}' == kind",), "and a limit is made of numbers, parameters"),
        (("9**9**9**9 <= a",), "has a number that is too large for a float"),
        (("a <= 1e999",), "has a number that is too large"),
        (("a <= 1 / 0",), "has a number that is too large for a float, or none"),
        (("a == 0.5",), "leaves `a` one value, .* Leave it out, or declare it as a Choice of one option"),
        (("kind == 'sgd'",), "leaves `kind` one value, .*Leave it out"),
        (("a + layers == 1",), "is an equality with `layers`, which has steps, .*Leave one of its parameters out"),
        (("a + batch == 1",), "is an equality with `batch`, which is a choice"),
        (("a + rate == 1",), "`rate`, which varies by its logarithm, .*Declare rate without log=True"),
        (("a * b == 0.2",), "is an equality that is not linear"),
        (("a + b <= 0.5", "a >= 0.6"), "Limits 'a . b <= 0.5' and 'a >= 0.6' contradict each other: .* keeps both"),
        (
            ("a + b <= 1", "b <= 0.9", "a >= .6", "b >= .6"),
            "'a . b <= 1' and 'a >= 0.6' and 'b >= 0.6' contradict .* all of",
        ),
        (("a + b >= 3",), "Limit 'a . b >= 3' holds nowhere in the ranges"),
        (("0.6 <= a <= 0.5",), "Limit '0.6 <= a <= 0.5' holds nowhere"),
        (("batch >= 65",), "Limit 'batch >= 65' holds nowhere"),
        (("a + b >= 2",), "Limit 'a . b >= 2' holds only at an edge of the ranges, .* that keeps it"),
        (("a <= b", "b <= a"), "Limits 'a <= b' and 'b <= a' together hold only at an edge"),
        (
            ("a + b + c == 1", "a * b * c >= 0.04"),
            "None of [0-9,]+ points .*: 'a . b . c >= 0.04' 0%, 'a . b . c == 1' 100%",
        ),
        (
            tuple(f"{'a' * 3900} + b >= {i}" for i in range(3)),
            "These limits have 11,727 characters, and the most of all is",
        ),
        ((3,), "A limit is a text such as 'a . b <= 1' or a function, not 3"),
        ((["a <= b"],), r"not \['a <= b'\]. Give them one by one"),
        (("a <= 0.5",) * 2 + tuple(f"a <= {i}" for i in range(1, 100)), "These are 101 limits, and the most is 100"),
    ],
)
def test_what_is_no_limit_is_refused_with_a_sentence(limits, error):
    with pytest.raises(nr.errors.InvalidInput, match=error):
        space(*limits)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda a, z: True, "The limit <lambda> takes z; the parameters are 'a, b'"),
        (lambda *a: True, "takes nothing by the name of a parameter"),
        (max, "is a function without names of arguments"),
        (lambda a: a, "returned 0.* and it must return True or False. Where it is a number g"),
        (lambda a: 1 / 0, "The limit <lambda> raised ZeroDivisionError .* at {'a': "),
        (lambda a: a > 2, "None of 65,536 points drawn from the space keeps its limits"),
    ],
)
def test_what_a_function_must_say(function, error):
    with pytest.raises(nr.errors.InvalidInput, match=error):
        cube(2).where(function)


def test_functions_may_take_less_than_all_parameters_and_more():
    assert cube(2).where(lambda a, scale=3: a * scale <= 1).limits.gaps(np.array([[0.2, 0], [0.4, 0]])).tolist() == [
        [-1],
        [1],
    ]
    assert cube(2).where(lambda **all: sum(all.values()) <= 1).limits.holds(
        np.array([[0.2, 0], [0.4, 1]])
    ).tolist() == [True, False]


@pytest.mark.parametrize(
    "limits",
    [
        ["a + b + c + d == 1", "a * b >= 0.2"],  # thin, and linear but for one
        ["+".join("abcd") + " == 1", "a == b", "a - b == 0", "2 * a == 2 * b"],  # the same twice
        ["+".join(f"{name} ** 2" for name in "abcd") + " <= 0.01"],  # a share of 3e-5
        ["n >= 10"],  # a whole number may be at its end
        ["n * a <= 0.01", "n >= 9"],
        ["a <= b", "b <= c", "c <= d"],
    ],
)
def test_limits_that_many_points_keep_are_taken(limits):
    assert len(cube(4, n=nr.Int(1, 10)).where(*limits).limits.texts) == len(set(limits))


def test_equalities_have_no_row_twice():
    A, b = cube(4).where("a + b == 1", "2 * a + 2 * b == 2", "c == d").limits.equalities
    assert A.tolist() == [[1, 1, 0, 0], [0, 0, 1, -1]]
    assert b.tolist() == [1, 0]


@pytest.mark.parametrize("where", [3, [], [3], ["a <="], ["__import__('os').system('true') <= 1"]])
def test_forged_limits_run_nothing(where):
    plain = json.loads(dumps(cube(2)))
    with pytest.raises(nr.errors.InvalidInput):
        loads(json.dumps({**plain, "where": where}))


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000 + "a",
        "-" * 3999 + "a",
        "not " * 900 + "a <= 1",
        "a" + "**a" * 1000 + " <= 1",
        "+".join(["a"] * 150) + " <= 1",
        " and ".join(["a <= 1"] * 400),
        "9" * 3000 + " <= a",
        "a" * 5000,
        "lambda: " * 500 + "a",
        "[" * 150 + "a" + "]" * 150,
        "a <= 1\0",
        "a <= '\ud800'",
        "\u202ea <= 1",
        "a <= 1; import os",
        "a.__class__.__bases__[0] <= 1",
        "(x := 3) <= a",
        "[x for x in a] <= 1",
        "a if a else a",
        "{**a} <= 1",
        "yield a",
        "await a",
        "0x" + "f" * 900 + " <= a",
        "1e400j <= a",
        "a <= ...",
    ],
)
def test_hostile_texts_end_soon_with_a_sentence(text):
    with pytest.raises(nr.errors.InvalidInput, match="Limit "):
        cube(2).where(text)


def test_names_are_read_as_python_reads_them():
    names = {name: nr.Float(0, 1) for name in ("µ", "opt.lr", "learning rate", "lambda", "_quoted_0_")}
    of = nr.Space(**names).where("µ + opt.lr + `learning rate` + `lambda` + `_quoted_0_` + `µ` <= 1")
    assert of.limits.texts == ("μ + opt.lr + `learning rate` + `lambda` + _quoted_0_ + `µ` <= 1",)
    points = np.array([[0.2, 0.3, 0.1, 0.1, 0.1], [0.2, 0.3, 0.1, 0.1, 0.2]])
    assert of.limits.holds(points).tolist() == [True, False]
    assert loads(dumps(of)) == of
    with pytest.raises(nr.errors.InvalidInput, match=r"names `q s`.* stands between backticks"):
        of.where("`q s` <= 1")
    with pytest.raises(nr.errors.InvalidInput, match="cannot be read"):
        of.where("`lambda <= 1")


NUMBERS = ["a", "b", "rate", "layers", "width", "batch", "momentum"]
CONDITIONS = ["kind == 'sgd'", "kind != 'adam'", "flag", "flag == False", "kind in ('adam',)", "batch != 32"]


def number(draws, depth):
    """Returns the text of a random number."""
    pick = draws.integers(12 if depth else 4)
    if pick < 3:
        return NUMBERS[draws.integers(len(NUMBERS))]
    if pick == 3:
        return repr([0, 1, 2, 3, 0.5, 0.25, 1e-3, 10][draws.integers(8)])
    one, other = number(draws, depth - 1), number(draws, depth - 1)
    if pick == 4:
        return f"({one}) ** {draws.integers(4)}"
    if pick == 5:
        return [f"abs({one})", f"log({one})", f"exp(min(5, {one}))", f"-({one})"][draws.integers(4)]
    if pick == 6:
        return f"{['min', 'max'][draws.integers(2)]}({one}, {other})"
    return f"({one}) {'+-*/'[draws.integers(4)]} ({other})"


def condition(draws, depth):
    """Returns the text of a random condition."""
    pick = draws.integers(8 if depth else 4)
    if pick == 0:
        return CONDITIONS[draws.integers(len(CONDITIONS))]
    if pick < 4:
        signs = [["<=", "<", ">=", ">"][draws.integers(4)] for _ in range(1 + draws.integers(2))]
        return " ".join([f"({number(draws, 2)})", *(f"{sign} ({number(draws, 2)})" for sign in signs)])
    if pick == 4:
        return f"not ({condition(draws, depth - 1)})"
    word = [" and ", " or "][draws.integers(2)]
    return word.join(f"({condition(draws, depth - 1)})" for _ in range(2 + draws.integers(2)))


def by_python(code, parameters):
    """Returns what Python says of a condition, or None if a number in it cannot be computed."""
    known = {"log": math.log, "exp": math.exp, "abs": abs, "min": min, "max": max, "__builtins__": {}}
    try:
        return eval(code, known, parameters)
    except (ValueError, ZeroDivisionError, OverflowError):
        return None


@pytest.mark.parametrize("texts", [300, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_texts_mean_what_they_mean_in_python(texts):
    """Random conditions hold as Python's own evaluation says, but within rounding of a border."""
    draws, whole = Draws("texts"), space()
    points = whole.spread(draws.random((40, len(whole.parameters))))
    parameters = [whole.decode(point) for point in points]
    compared, differing = 0, []
    for _ in range(texts):
        text = condition(draws, 2)
        try:
            limits = Limits(Conditions(whole.declared), (text,))
        except nr.errors.InvalidInput as error:
            refused = str(error)
            assert re.search("too large|names no parameter|leaves", refused), text
            continue
        code, found, gaps = compile(text, "", "eval"), limits.holds(points), limits.gaps(points)
        for each, holds, gap in zip(parameters, found, gaps, strict=True):
            said = by_python(code, each)
            if said is not None and np.abs(gap).min() > 1e-8:
                compared += 1
                differing += [text] if bool(said) != holds else []
    assert compared > 30 * texts
    assert differing == []
