"""One reader of numbers: what is no number is refused wherever a number is told, and never read as another one."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.checks import integer, real, whole_in, written
from nilregret._utils.tables import Table
from nilregret.serve.dashboard.views.forms import number as typed_number

SPACE = nr.Space(x=nr.Float(0, 1))
HOURS = nr.Space(hour=nr.Float(0, 24))
POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=0.1)
NO_NUMBERS = [
    np.ma.masked,
    np.ma.masked_array(7.0, mask=True),
    np.ma.masked_array([7.0], mask=[True]),
    np.ma.masked_array([[7]], mask=[[True]]),
    np.ma.masked_all(3).mean(),
    np.timedelta64(3, "ns"),
    np.array([np.timedelta64(3, "ns")]),
    np.array(np.datetime64("2026-01-01", "ns")),
    np.array("1"),
    np.array([1j]),
    "1",
]
each = pytest.mark.parametrize("value", NO_NUMBERS, ids=repr)


def failure(good, bad, **options):
    """Returns the reason why the second of three evaluations failed. The others have a good answer."""
    answers = iter([good, bad, good])
    result = nr.minimize(lambda x: next(answers), SPACE, trials=3, progress=False, **options)
    assert [row["state"] for row in result.history] == ["observed", "failed", "observed"]
    return result.history[1]["reason"]


@each
def test_what_is_no_number_is_none_in_an_answer(value):
    limited = {"reward": 1.0, "ms": 9.0}
    for good, bad, options in (
        (1.0, value, {}),
        ({"reward": 1.0}, {"reward": value}, {}),
        ({"reward": 1.0, "std": 0.1}, {"reward": 1.0, "std": value}, {}),
        (limited, {"reward": 1.0, "ms": value}, {"constraints": "ms <= 50"}),
        ((1.0, [0.0]), (1.0, [value]), {"constraints": 1}),
    ):
        assert "is not a number: " in failure(good, bad, **options)


@each
def test_what_is_no_number_is_none_for_a_study(value):
    study = nr.Study(POLICY)
    seen = nr.Study(nr.auto(nr.Arms(range(3)), context=HOURS))
    placed = nr.Study(nr.auto(SPACE))
    trial = study.ask()
    for tell in (
        lambda: study.tell(trial, value),
        lambda: study.tell_many([(trial, value)]),
        lambda: study.tell_many([{"trial": trial, "reward": 1.0, "std": value}]),
        lambda: study.tell(trial, 1.0, std=value),
        lambda: study.tell(trial, 1.0, constraints=value),
        lambda: study.tell(trial, 1.0, constraints=[0.0, value]),
        lambda: study.add([0.25], value),
        lambda: study.ask(lease=value),
        lambda: study.ask(count=value),
        lambda: seen.ask({"hour": value}),
        lambda: placed.add({"x": value}, 1.0),
        lambda: nr.gp_ucb(nr.Arms.grid(0, 1, 5), nr.Matern(2.5, 0.3), noise=value),
        lambda: nr.Float(0.0, value),
    ):
        with pytest.raises(nr.errors.InvalidInput):
            tell()
    assert [each.state for each in study.trials] == ["pending"]


@pytest.mark.parametrize(
    "value",
    [2, np.int8(2), np.array(2.0), np.array([2.0]), np.array([[2]]), Fraction(2), np.ma.masked_array([2.0], [False])],
    ids=repr,
)
def test_any_real_number_is_read_as_itself(value):
    assert real(value) == 2.0
    assert type(real(value)) is float
    result = nr.minimize(lambda x: {"reward": value, "std": value}, SPACE, trials=1, progress=False)
    assert (result.trials[0].reward, result.trials[0].std) == (2.0, 2.0)


def test_a_number_too_large_for_a_float_is_infinite():
    assert (real(10**400), real(-(10**400))) == (math.inf, -math.inf)
    assert real([1.0]) is real(None) is real(True) is real(np.True_) is None


def test_a_cell_of_a_table_holds_a_number_or_none():
    cells = [True, Decimal("0.5"), " 1.5 ", 10**400, -(10**400), "", None]
    assert [Table("the table", {"x": cells}).number("x", i) for i in range(7)] == [
        1.0, 0.5, 1.5, math.inf, -math.inf, None, None,
    ]  # fmt: skip
    for cell in ("1_000", "٣", "one", np.timedelta64(3, "ns"), b"1", 1j):
        with pytest.raises(nr.errors.InvalidInput, match="it must be a number, or empty"):
            Table("the table", {"x": [cell]}).number("x", 0)


def test_a_hidden_whole_number_is_none():
    assert integer("count", np.array([3]), low=1) == 3
    for value in (np.ma.masked_array(3, mask=True), np.array([np.timedelta64(3, "ns")]), np.True_, np.array(True)):
        with pytest.raises(nr.errors.InvalidInput, match="whole number"):
            integer("count", value, low=1)


TYPED = [(" 1.5 ", 1.5), ("-2e3", -2000.0), ("1_000", None), ("٣", None), ("", None)]


@pytest.mark.parametrize(("text", "value"), TYPED)
def test_typed_numbers_are_those_that_people_write(text, value):
    assert written(text) == value
    if value is None:
        with pytest.raises(nr.errors.InvalidInput, match="must be a number"):
            typed_number("The noise", text)
    else:
        assert typed_number("The noise", text) == value


WHOLE = [("12", 12), ("-3", -3), ("--5", None), ("٣", None), ("1.0", None), ("", None), (" 1", None), ("9" * 16, None)]


@pytest.mark.parametrize(("text", "value"), WHOLE)
def test_typed_whole_numbers_are_digits_alone(text, value):
    assert whole_in(text) == value
