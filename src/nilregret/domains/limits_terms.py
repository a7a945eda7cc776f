"""Numbers and comparisons of limits as functions of numpy arrays, with the rounding that they may have.

| symbol | name | meaning | shape |
|---|---|---|---|
| l <= r | `Truth` | a comparison, or several joined by `and` and `or` | |
| l - r | `gap` | in the user's units; at most 0 where the comparison holds | (n,) |
| | `size` | of the numbers that a term adds up, by which rounding is judged | (n,) |
| a u + c | `line` | a term that is linear in the columns u of encoded points | (d,), () |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, final

import numpy as np

from .._utils.checks import LARGEST_WHOLE, Array
from .._utils.dataclass import dataclass

ROUNDING = 1e-10  # by which a limit may be missed, as a share of the sizes of its terms: decoded floats have 12 digits
MARGIN = 0.5  # of that, by which a search stays inside, so that decoded values keep a limit to the last digit
LEAST_ROUNDING = 1e-300  # so that 0 < 0 does not hold
RESOLUTION = 1e-5  # least size of a parameter, as a share of its largest value, since shares of a range round, too

Line = tuple[Array, float]


@final
@dataclass(frozen=True, eq=False)
class Values:
    """Points, as limits read them.

    Attributes:
        numbers: of each parameter that a limit names: its values, or the places of its options, `(n,)`.
        active: of conditional parameters, True where they count, `(n,)`.
        points: the encoded points, `(n, d)`.
        exact: True if the numbers are decoded to the last digit, so that no margin is needed.
    """

    numbers: Mapping[str, Any]
    active: Mapping[str, Any]
    points: Array
    exact: bool = False


NOWHERE = Values({}, {}, np.zeros((1, 0)))  # Values of a constant.


@dataclass(frozen=True, eq=False)
class Term:
    """A number that depends on parameters.

    Attributes:
        of: returns values and sizes, each `(n,)`.
        names: of its parameters. Without any it is a constant.
        whole: True if all its values are whole numbers.
        line: coefficients and constant in columns of encoded points, or None if it is not linear.
    """

    of: Callable[[Values], Any]
    names: frozenset[str] = frozenset()
    whole: bool = False
    line: Line | None = None


@dataclass(frozen=True, eq=False)
class Truth:
    """A comparison that holds or not.

    Attributes:
        of: returns the gap with its margin, and the gap less what rounding may do, each `(n,)`. It holds where the
            second is <= 0.
        names: of its parameters.
        line: a and b of a u <= b, or of a u == b, or None if it is not linear.
        equal: True for a == that stands alone.
        cyclic: True if it has a remainder, so that many values may meet an equality.
    """

    of: Callable[[Values], tuple[Array, Array]]
    names: frozenset[str]
    line: Line | None = None
    equal: bool = False
    cyclic: bool = False


def comparison(of: Callable[[Values], Any], names: frozenset[str], **facts: Any) -> Truth:
    """Returns a comparison that holds wherever one of its parameters does not count."""

    def checked(v: Values) -> tuple[Array, Array]:
        gap, slack = of(v)
        for name in names & v.active.keys():
            gap, slack = np.where(v.active[name], gap, -1.0), np.where(v.active[name], slack, -1.0)
        return gap, slack

    return Truth(checked, names, **facts)


def signs(holds: Any) -> tuple[Array, Array]:
    """Returns gaps of comparisons that have no size, such as those of options."""
    gap = np.where(holds, -1.0, 1.0)
    return gap, gap


def combined(parts: Sequence[list[Truth]], *, every: bool) -> list[Truth]:
    """Returns comparisons, all of which must hold, for lists of comparisons of which every one or any one must hold."""
    if every:
        return [truth for part in parts for truth in part]
    if len(parts) == 1:
        return parts[0]
    each = [_joined(part, np.maximum) for part in parts]
    return [_joined(each, np.minimum)]


def _joined(truths: Sequence[Truth], choose: Callable[[Array, Array], Array]) -> Truth:
    if len(truths) == 1:
        return truths[0]

    def of(v: Values) -> tuple[Array, Array]:
        gaps, slacks = zip(*(truth.of(v) for truth in truths), strict=True)
        return reduce(choose, gaps), reduce(choose, slacks)

    return Truth(of, frozenset[str]().union(*(truth.names for truth in truths)))


def ordered(left: Term, sign: str, right: Term, *, real: bool, cyclic: bool) -> Truth:
    """Returns a comparison of numbers, with a sign of <=, >, == and !=.

    A strict comparison of real numbers holds by more than rounding can take away, one of whole numbers by 1.

    Args:
        left: a number.
        sign: of the comparison.
        right: a number.
        real: True if a parameter in it varies continuously, so that a search can stay inside by a margin.
        cyclic: see `Truth`.
    """
    if sign == ">":
        left, right = right, left
    line, whole = None, left.whole and right.whole

    def of(v: Values) -> tuple[Array, Array]:
        (first, size), (second, other) = left.of(v), right.of(v)
        gap, rounding = first - second, ROUNDING * (size + other) + LEAST_ROUNDING
        if whole:  # Floats are exact below 2**53.
            rounding = np.where(size + other < LARGEST_WHOLE, 0.0, rounding)
        least = np.where(rounding > 0.0, 2.0 * rounding, 1.0)
        if sign == ">":
            gap = gap + least
        elif sign != "<=":
            gap = np.abs(gap) if sign == "==" else least - np.abs(gap)
        fine = np.isfinite(gap) & np.isfinite(rounding)
        gap, rounding = np.where(fine, gap, np.inf), np.where(fine, rounding, 0.0)
        margin = MARGIN * rounding * (sign == "<=" and not v.exact) if real else -rounding
        return gap + margin, gap - rounding

    if left.line is not None and right.line is not None and sign != "!=":
        row, bound = left.line[0] - right.line[0], right.line[1] - left.line[1]
        least = 1.0 if whole else 3.0 * ROUNDING * float(np.abs(row).sum() + abs(left.line[1]) + abs(right.line[1]))
        line = row, bound - least * (sign == ">")
    return comparison(of, left.names | right.names, line=line, equal=sign == "==", cyclic=cyclic)


def plus(left: Term, right: Term) -> Term:
    """Returns a sum."""

    def of(v: Values) -> tuple[Array, Array]:
        (first, size), (second, other) = left.of(v), right.of(v)
        return first + second, size + other

    line = None
    if left.line is not None and right.line is not None:
        line = left.line[0] + right.line[0], left.line[1] + right.line[1]
    return Term(of, left.names | right.names, left.whole and right.whole, line)


def times(term: Term, factor: float) -> Term:
    """Returns a multiple, which is whole if the factor is."""

    def of(v: Values) -> tuple[Array, Array]:
        value, size = term.of(v)
        return factor * value, abs(factor) * size

    line = None if term.line is None else (factor * term.line[0], factor * term.line[1])
    return Term(of, term.names, term.whole and factor.is_integer(), line)


Sized = tuple[Array, Array]


def extreme(each: Sequence[Sized], before: np.ufunc) -> Sized:
    """Returns values and sizes of the number that comes before all others."""

    def first(one: Sized, other: Sized) -> Sized:
        chosen = before(other[0], one[0]) | np.isnan(other[0])
        return np.where(chosen, other[0], one[0]), np.where(chosen, other[1], one[1])

    return reduce(first, each)


def ratio(left: Sized, right: Sized) -> Sized:
    """Returns values and sizes of a quotient."""
    return left[0] / right[0], left[1] * right[1] / np.square(right[0])


def _power(left: Sized, right: Sized) -> Sized:
    (base, size), (exponent, _) = left, right
    value = np.power(base, exponent)
    grown = np.power(size / np.abs(base), np.abs(exponent))
    return value, np.where(exponent >= 0.0, np.power(size, exponent), np.abs(value) * grown)


OF_TWO: dict[str, Callable[[Sized, Sized], Sized]] = {
    "*": lambda left, right: (left[0] * right[0], left[1] * right[1]),
    "/": ratio,
    "**": _power,
    "%": lambda left, right: (np.mod(left[0], right[0]), left[1] + right[1]),
    "//": lambda left, right: (np.floor_divide(left[0], right[0]), left[1] + right[1]),
}
OF_ONE: dict[str, Callable[[Array, Array], Sized]] = {
    "abs": lambda value, size: (np.abs(value), size),
    "log": lambda value, size: (np.log(value), np.abs(np.log(value)) + size / np.abs(value)),
    "exp": lambda value, size: (np.exp(value), np.exp(value) * np.maximum(size, 1.0)),
}
