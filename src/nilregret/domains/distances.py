"""Distances between points by slopes: how much a function can change from one point to the other.

| symbol | name | meaning | shape |
|---|---|---|---|
| s_p | `slope` | largest change of g per unit of parameter p: per decade on a logarithmic scale | |
| J_p | jumps | largest change of g from one option of a choice to another | (k, k) |
| r_p | `grains` | most that the digits of two values of parameter p are rounded, times s_p | |
| d | | sum_p s_p abs(x_p - x'_p) + r_p (x_p != x'_p) + J_p(x_p, x'_p), infinite where nothing is known | (n, k) |

If g has these slopes, abs(g(x) - g(x')) <= d(x, x'). This holds for the values that people see, of 12 digits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, many, number, real, shown
from .._utils.numerals import numeral
from ..errors import InvalidInput
from .domain import Arms, Domain, Space, space_of
from .options import import_name
from .parameters import CHOSEN, SIGNIFICANT_DIGITS, Choice, Float, Int, Parameter, option_place

Mask = npt.NDArray[np.bool_]
Slope = float | Sequence[Any] | Mapping[str, Any]

UP = 1.0 + 1e-9  # factor of all distances, so that rounding of coordinates certifies nothing
BLOCK = 2**21  # pairs of points at a time
PER = "per unit, or per decade (a factor of 10) of a logarithmic parameter"


class _Jumps(NamedTuple):
    """The columns of a choice, the largest changes between its options, `(k, k)`, and its name."""

    columns: slice
    table: Array
    name: str


def packed(slope: Any) -> Any:
    """Returns slopes as they are stored: a mapping is a tuple of (key, value), a list is a tuple.

    A class or function that is an option is named.
    """
    if isinstance(slope, Mapping):
        return tuple((import_name(key) or key, packed(value)) for key, value in slope.items())
    if isinstance(slope, Sequence) and not isinstance(slope, str):
        return tuple(map(packed, slope))
    return slope.tolist() if isinstance(slope, np.ndarray | np.generic) else slope


def check_numbers(slope: Any, where: str = "slope") -> None:
    """Raises an error for a number in unpacked slopes that is NaN or below 0, whatever the domain."""
    if isinstance(slope, Mapping | list | tuple):
        for key, value in slope.items() if isinstance(slope, Mapping) else enumerate(slope):
            if isinstance(slope, Mapping) or not isinstance(value, list | tuple):  # It may be packed.
                check_numbers(value, f"{where}[{key!r}]")
    elif real(slope) is not None and not slope >= 0.0:
        why = f"It is the most by which the constraint changes, {PER}."
        number(where, slope, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)


def has_names(slope: Any) -> bool:
    """Returns True for packed slopes by name."""
    return isinstance(slope, tuple) and bool(slope) and isinstance(slope[0], tuple) and isinstance(slope[0][0], str)


@final
class Metric:
    """Distances by slopes between (context, point) rows, in units of g.

    Args:
        slope: of the parameters by name, a number or one for each coordinate where there are no names. Packed or not.
        domain: of the points.
        context: of the contexts, or None. Without slopes of its own, other contexts are infinitely far away.

    Attributes:
        weights: distance per unit of each column, `(D,)`, 0 in the columns of choices and of `fixed`.
        grains: distance that is added where columns differ, `(D,)`, since decoded numbers are rounded.
        jumps: columns and table of each choice.
        fixed: columns across which nothing is known, `(D,)`: where they differ, the distance is infinite.
        reach: largest finite distance, but for jumps that are not known.
    """

    def __init__(self, slope: Slope, domain: Domain, context: Domain | None) -> None:
        parts = (domain,) if context is None else (context, domain)
        width = sum(part.dimension for part in parts)
        self.weights, self.fixed, self.jumps = np.zeros(width), np.zeros(width, dtype=bool), list[_Jumps]()
        self.grains = np.zeros(width)
        self._named: list[tuple[int, str, float]] = []  # column, name and units of each number
        self._nothing = np.zeros(width, dtype=bool)  # columns that are above 0.5 if a value is missing
        self._activity: list[tuple[slice, Space]] = []
        self.reach, first, left = 0.0, 0, _by_name(slope, domain)
        for part in parts:
            self._take(part, left, first, needed=part is domain)
            first += part.dimension
        if isinstance(left, dict) and left:
            known = [name for part in parts if (space := space_of(part)) is not None for name in space.parameters]
            raise InvalidInput(
                f"`slope` names {shown(sorted(left))}, and the parameters are {shown(known)}: usually a name is "
                "misspelt. Name each parameter once."
            )
        self.weights *= UP

    def _take(self, part: Domain, slope: Any, first: int, *, needed: bool) -> None:
        """Takes the slopes of the domain or of the contexts, whose columns begin at `first`."""
        space = space_of(part)
        if space is None:
            self._take_coordinates(part, slope, first, needed=needed)
            return
        if space.conditions is not None:
            self._activity.append((slice(first, first + space.dimension), space))
        for name, (parameter, columns) in zip(space.parameters, space.columns(), strict=True):
            at = slice(first + columns.start, first + columns.stop)
            if parameter.unknown:
                self._nothing[at.stop - 1] = True
            if name in slope:
                self._take_parameter(name, parameter, slope.pop(name), at)
            elif not needed:
                self.fixed[at] = True
            else:
                said, others = dict.fromkeys(space.parameters, 1.0), set(slope) - set(space.parameters)
                odd = (
                    f" It names {shown(sorted(map(str, others)))}, which is no parameter of the points."
                    if others
                    else ""
                )
                raise InvalidInput(
                    f"`slope` says nothing of parameter `{name}`, and nothing is certified without it.{odd} Give the "
                    f"most by which the constraint changes, {PER}, or None to never change it while tuning.",
                    advice=f"Such as `slope={shown(said)}`.",
                )

    def _take_coordinates(self, part: Domain, slope: Any, first: int, *, needed: bool) -> None:
        at = slice(first, first + part.dimension)
        if not needed:
            self.fixed[at] = True
            return
        each = [slope] * part.dimension if isinstance(slope, int | float | np.number) else slope
        if has_names(each) or not isinstance(each, tuple | list) or len(each) != part.dimension:
            raise InvalidInput(
                f"`slope` is {shown(slope)}: the domain has {many(part.dimension, 'coordinate')} without names, so "
                "give one number for all, or one for each. Names need a space of parameters."
            )
        sides = np.ptp(part.points, axis=0) if isinstance(part, Arms) else part.upper - part.lower
        for i, (value, side) in enumerate(zip(each, sides, strict=True)):
            self._named.append((first + i, f"x{i}", 1.0))
            self._take_number(f"slope[{i}]", value, first + i, 1.0, float(side))

    def _take_parameter(self, name: str, parameter: Parameter, value: Any, at: slice) -> None:
        where = f"slope[{name!r}]"
        if isinstance(parameter, Choice):
            table = _table(where, parameter, value)
            self.jumps.append(_Jumps(at, table * UP, name))
            self.reach += float(table[np.isfinite(table)].max(initial=0.0))
            return
        if isinstance(value, tuple):
            raise InvalidInput(f"`{where}` is {shown(value)}: parameter `{name}` is a number, so give one, {PER}.")
        units = math.log10(parameter.high / parameter.low) if parameter.log else float(parameter.high - parameter.low)
        self._named.append((at.start, name, units))
        self._take_number(where, value, at.start, units, 1.0)
        if parameter.real:
            self.grains[at.start] = self.weights[at.start] / units * _grain(parameter)

    def _take_number(self, where: str, value: Any, column: int, units: float, side: float) -> None:
        """Takes the slope of a column, in which 1 stands for so many units."""
        if value is None or value == math.inf:
            self.fixed[column] = True
            return
        if value == 0:
            raise InvalidInput(
                f"`{where}` is 0, which says that the constraint does not depend on it at all. Usually it does a "
                f"little: give the most by which it changes, {PER}, or leave the parameter out of the space."
            )
        why = f"It is the most by which the constraint changes, {PER}."
        found = number(where, value, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)
        self.weights[column] = found * units
        self.reach += found * units * side

    def __call__(self, points: Array, places: Array) -> Array:
        """Returns the distances of rows `(n, D)` and `(k, D)`, `(n, k)`."""
        if len(points) * len(places) > BLOCK and len(points) > 1:
            step = max(BLOCK // max(len(places), 1), 1)
            return np.concatenate([self(points[i : i + step], places) for i in range(0, len(points), step)])
        found = np.zeros((len(points), len(places)))
        for column in np.flatnonzero(self.weights):
            gaps = np.abs(points[:, None, column] - places[None, :, column])
            found += self.weights[column] * gaps + self.grains[column] * (gaps > 0.0)
        for columns, table, _ in self.jumps:
            found += table[points[:, columns].argmax(axis=1)[:, None], places[:, columns].argmax(axis=1)]
        return np.where(self._apart(points, places), np.inf, found)

    def terms(self, point: Array, place: Array) -> str:
        """Returns the distance of two rows as a sum in words, such as "2 x 0.8 (speed) + 8 (fan)"."""
        said = []
        for column, name, units in self._named:
            if far := units * abs(float(point[column] - place[column])):
                said.append(f"{numeral(float(self.weights[column]) / units / UP)} x {numeral(far)} ({name})")
        for columns, table, name in self.jumps:
            if jump := float(table[point[columns].argmax(), place[columns].argmax()]):
                said.append(f"{numeral(jump / UP)} ({name})")
        return " + ".join(said)

    def _apart(self, points: Array, places: Array) -> Mask:
        """Returns which pairs of rows differ where nothing is known, `(n, k)`."""
        found = np.zeros((len(points), len(places)), dtype=bool)
        for column in np.flatnonzero(self.fixed):
            found |= points[:, None, column] != places[None, :, column]
        for column in np.flatnonzero(self._nothing):  # Two missing values may differ.
            found |= (points[:, None, column] > 0.5 * CHOSEN) | (places[None, :, column] > 0.5 * CHOSEN)
        for columns, space in self._activity:
            ours, theirs = space.active(points[:, columns]), space.active(places[:, columns])
            if ours is not None and theirs is not None:
                found |= (ours[:, None] != theirs[None]).any(axis=2)
        return found


def _grain(parameter: Float | Int) -> float:
    """Returns by how much two decoded values of a real parameter are rounded at most, in its units or in decades."""
    last = 10.0 ** (1 - SIGNIFICANT_DIGITS)  # the last digit of numbers from 1 to 10, half of it for each value
    if parameter.log:
        return last / math.log(10.0)
    return float(last * 10.0 ** math.floor(math.log10(max(abs(parameter.low), abs(parameter.high)))))


def _by_name(slope: Any, domain: Domain) -> Any:
    """Returns slopes by name as a fresh dict, the others as they are."""
    slope = packed(slope)
    if has_names(slope):
        return dict(slope)
    space = space_of(domain)
    if space is None:
        return slope
    if len(space.parameters) == 1 and isinstance(slope, int | float | np.number):
        return dict.fromkeys(space.parameters, slope)
    said = dict.fromkeys(space.parameters, 1.0)
    raise InvalidInput(
        f"`slope` is {shown(slope)}: the parameters have names, so give the slope of each by name, {PER}.",
        advice=f"Such as `slope={shown(said)}`.",
    )


def _table(where: str, choice: Choice, value: Any) -> Array:
    """Returns the largest changes between the options of a choice, `(k, k)`, over other options, too."""
    count, known = choice.columns, dict[str, int]()
    table = np.full((count, count), np.inf)
    if isinstance(value, tuple):
        for one, jumps in map(_pair, value):
            if not isinstance(jumps, tuple):
                raise InvalidInput(
                    f"`{where}` has {shown(jumps)} for the option {shown(one)}: of a choice give the largest change "
                    "between any two options, or a table such as {'low': {'high': 8.0}}, or None to never change it "
                    "while tuning."
                )
            for other, jump in map(_pair, jumps):
                i, j = _option(where, choice, one, known), _option(where, choice, other, known)
                if i == j:
                    raise InvalidInput(f"`{where}` has a jump from {shown(one)} to itself: name another option.")
                table[i, j] = table[j, i] = _jump(f"{where}[{one!r}][{other!r}]", jump)
    elif value is not None and value != math.inf:
        table[:] = _jump(where, value)
    np.fill_diagonal(table, 0.0)
    for middle in range(count):  # Floyd and Warshall
        table = np.minimum(table, table[:, middle, None] + table[middle])
    return table


def _pair(entry: Any) -> tuple[Any, Any]:
    """Returns a (key, value) of a packed table."""
    if isinstance(entry, tuple) and len(entry) == 2:
        return entry
    raise InvalidInput(f"A table of jumps is a dict such as {{'low': {{'high': 8.0}}}}, not {shown(entry)}.")


def _jump(where: str, value: Any) -> float:
    if value is None or value == math.inf:
        return math.inf
    why = "It is the most by which the constraint changes from one option to the other."
    return number(where, value, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)


def _option(where: str, choice: Choice, option: Any, known: dict[str, int]) -> int:
    """Returns the place of an option. `known` holds those that were found before."""
    key = repr(option)
    place = known[key] if key in known else option_place(choice, option, texts=isinstance(option, str))
    if place is not None:
        known[key] = place
    else:
        raise InvalidInput(f"`{where}` names the option {shown(option)}, and the options are {shown(choice.declared)}.")
    return place
