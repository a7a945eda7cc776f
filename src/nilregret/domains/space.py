"""Spaces of named parameters, and finite sets of arms such as their grids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, finite_array, frozen, integer, many, number, points_array, shown
from .._utils.dataclass import dataclass, field
from .._utils.numerals import exact
from ..errors import InvalidInput, printable
from ..serialize import described_by, entries, to_plain
from .conditions import Conditional, Conditions, Mask, as_declared, columns_by_name, encoded_as
from .coordinates import (
    MOST_ARMS,
    PointLookup,
    as_rows,
    check_count,
    check_size,
    inside_box,
    named_points,
    refuse_lists,
)  # fmt: skip
from .mixture import Mixture, expanded
from .parameters import CHOSEN, Choice, Float, Int, Parameter, checked_level, is_nothing

if TYPE_CHECKING:
    from .limits import Limit, Limits

MOST_SAID = 3  # Names that an error repeats.


def _decode_space(data: dict[str, Any]) -> Space:
    limits = data.pop("where", None)
    (parameters,) = entries(data, parameters=list)
    space = Space(**_named(parameters))
    if limits is None:
        return space
    if not isinstance(limits, list) or not limits or not all(isinstance(limit, str) for limit in limits):
        raise InvalidInput(f"the field `where` is {shown(limits)}: it must be a list of texts.")
    return space.where(*limits)


def _encode_space(space: Space) -> dict[str, Any]:
    plain: dict[str, Any] = {"parameters": to_plain(list(space.declared.items()))}
    return plain if space.limits is None else {**plain, "where": space.limits.plain()}


def _named(pairs: list[Any]) -> dict[str, Any]:
    """Returns the dict of a decoded list of (name, value)."""
    result = {name: value for name, value in pairs if isinstance(name, str)}
    if len(result) < len(pairs):
        raise InvalidInput("its names are not all text, or one of them is there twice")
    return result


def _meant(given: object) -> str:
    """Returns a sentence with the probable meaning of a plain value in place of a parameter."""
    if isinstance(given, tuple) and len(given) == 2 and all(type(end) in (int, float) for end in given):
        low, high = given
        whole = f", whole ones nr.Int({low!r}, {high!r})" * (type(low) is type(high) is int)
        return f"Numbers from {low!r} to {high!r} are nr.Float({low!r}, {high!r}){whole}."
    if isinstance(given, list | tuple) and given:
        return f"One of several is a choice: nr.Choice({shown(given[0])}, ...)."
    return ""


def _named_arms(given: object) -> str:
    """Returns a sentence with the space of arms that were given by their names, or nothing."""
    names = [name for name in given if isinstance(name, str)] if isinstance(given, list | tuple | dict) else []
    if not names:
        return ""
    options = ", ".join(map(shown, names[:MOST_SAID])) + ", ..." * (len(names) > MOST_SAID)
    return f"Arms with names are the options of a choice: nr.Space(arm=nr.Choice({options})).grid()."


@described_by(encode=_encode_space, decode=_decode_space)
class Space:
    """Named parameters: `Space(C=Float(1e-2, 1e3, log=True), kernel=Choice("rbf", "linear"))`.

    Parameters that count only if others have certain values are declared with `when`.

    Attributes:
        declared: name to parameter or conditional parameter, in the order given.
        parameters: name to `Float`, `Int` or `Choice`, conditional ones included. `Space(**space.parameters)` is the
            same space, with its conditions and without its limits.
        conditions: of conditional parameters, or None if there are none.
        dimension: number of columns of an encoded point.
        limits: that every trial keeps, made by `where`, or None if there are none.
        unknown: names of the parameters with a level for what is missing or was never declared.
        changed: True in a running study whose space has changed (`Study.widen`), so that trials may be outside of it.

    >>> import nilregret as nr
    >>> space = nr.Space(rate=nr.Float(1e-4, 1.0, log=True), layers=nr.Int(1, 8), kind=nr.Choice("a", "b"))
    >>> space.dimension  # a column for each number, and one for each option
    4
    >>> space.decode(space.encode({"rate": 0.01, "layers": 3, "kind": "b"}))["layers"]
    3
    """

    if TYPE_CHECKING:

        def __init__(self, /, **parameters: Parameter | Conditional | Mixture) -> None: ...

    def __init__(self, /, *given: object, **parameters: Any) -> None:  # type: ignore[no-redef]
        if given:
            advice = "Write nr.Space(**parameters)." if isinstance(given[0], dict) else "Such as nr.Space(x=...)."
            raise InvalidInput(f"A space takes its parameters by name, and {shown(given[0])} has none.", advice=advice)
        if not parameters:
            raise InvalidInput("A space needs at least one named parameter.", advice="Such as Space(x=Float(0, 1)).")
        parameters, totals = expanded(parameters)
        for name, parameter in parameters.items():
            if not isinstance(parameter, Float | Int | Choice | Conditional):
                raise InvalidInput(
                    f"Parameter `{name}` is {shown(parameter)}: it must be a Float, Int or Choice.",
                    advice=_meant(parameter),
                )
        parameters = {name: as_declared(parameter, parameters) for name, parameter in parameters.items()}
        conditions = Conditions(parameters)
        self.declared: Mapping[str, Parameter | Conditional] = parameters
        self.parameters: Mapping[str, Parameter] = conditions.parameters
        self.conditions = conditions if conditions.needs else None
        self.dimension = sum(parameter.columns for parameter in self.parameters.values())
        self.unknown = tuple(name for name, parameter in self.parameters.items() if parameter.unknown)
        self.limits = _limits(conditions, tuple(totals))
        self.changed = False

    def where(self, *limits: Limit) -> Space:
        """Returns this space with limits that every trial keeps, besides those that it has.

        Args:
            limits: texts such as "a + b <= 1", "kind != 'sgd' or momentum > 0" or "a + b + c == 1", or functions that
                take parameters by name and return True or False. Only texts can be written as JSON, as storages do. A
                comparison with a parameter that does not count (see `when`) holds.

        Raises:
            InvalidInput: a text is no limit, names no parameter of the space or contradicts another one, or hardly any
                point keeps all of them.

        >>> import nilregret as nr
        >>> space = nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).where("a + b <= 1")
        >>> space.limits.holds(space.inside("points", [{"a": 0.5, "b": 0.4}, {"a": 1.0, "b": 1.0}]))
        array([ True, False])
        """
        for limit in limits:
            if not isinstance(limit, str) and not callable(limit):
                advice = "Give them one by one: where(*limits)." if isinstance(limit, list | tuple) else ""
                raise InvalidInput(
                    f"A limit is a text such as 'a + b <= 1' or a function, not {shown(limit)}.", advice=advice
                )
        result = Space(**self.declared)
        result.limits = _limits(result.conditions or Conditions(result.declared), (*self._given, *limits))
        _check_limits(result)
        return result

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self._described == other._described

    def __hash__(self) -> int:
        return hash(self._described)

    @property
    def _given(self) -> tuple[Limit, ...]:
        return () if self.limits is None else self.limits.given

    @property
    def _described(self) -> tuple[object, ...]:
        return tuple(self.declared.items()), self._given

    def __repr__(self) -> str:
        named = ", ".join(f"{printable(name)}={parameter!r}" for name, parameter in self.declared.items())
        limits = (
            "" if self.limits is None else f".where({', '.join(printable(repr(text)) for text in self.limits.texts)})"
        )
        return f"Space({named}){limits}"

    def encode(self, parameters: Mapping[str, Any]) -> Array:
        """Returns the point `(d,)` in the unit cube of a dict with every parameter (or every active one)."""
        if not isinstance(parameters, Mapping):
            raise InvalidInput(
                f"Parameters are a dict such as {{'{next(iter(self.parameters))}': ...}}, not {shown(parameters)}."
            )
        if self.unknown:
            parameters = {**dict.fromkeys(self.unknown), **parameters}
        given, known = {str(name) for name in parameters}, set(self.parameters)
        if self.conditions is not None and given <= known:
            return np.array(self.conditions.encode(parameters))
        if given != known:
            wrong = {"missing": sorted(known - given), "unknown": sorted(given - known)}
            said = ", ".join(f"{word} {shown(names)}" for word, names in wrong.items() if names)
            raise InvalidInput(
                f"The parameters do not fit the space: {said}. The space has {', '.join(self.parameters)}."
            )
        columns: list[float] = []
        for name, parameter in self.parameters.items():
            columns += encoded_as(name, parameter, parameters[name])
        return np.array(columns)

    def decode(self, point: npt.ArrayLike) -> dict[str, Any]:
        """Returns the parameters of an encoded point `(d,)`, or the active ones if some are conditional."""
        return self.decoded(finite_array("point", point).reshape(1, -1))[0]  # a point, whatever shape

    def decoded(self, points: Array) -> list[dict[str, Any]]:
        """Returns what `decode` does of each encoded point `(n, d)`, column by column."""
        rows = as_rows("point", points, self.dimension)
        if self.conditions is not None:
            return [self.conditions.decode(row) for row in rows]
        columns = [map(parameter.decode, rows[:, of]) for parameter, of in self.columns()]
        return [dict(zip(self.parameters, values, strict=True)) for values in zip(*columns, strict=True)]

    def as_decoded(self, point: Array) -> Array:
        """Returns the point `(d,)` of the parameters of a point, next to it since decoded numbers have 12 digits."""
        return self.encode(self.decode(point))

    def unknown_in(self, parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
        """Returns (name, value) of each entry of a dict that is at the level of the unknown, as it came.

        None stands for a missing entry.
        """
        active, found = {name: self.parameters[name] for name in self.unknown}, []
        if self.conditions is not None and active:
            counting = self.decode(self.encode(parameters))
            active = {name: parameter for name, parameter in active.items() if name in counting}
        for name, parameter in active.items():
            value = parameters.get(name)
            if isinstance(parameter, Choice) and parameter.find(value) is None:
                found.append((name, checked_level(value)))
            elif is_nothing(value):
                found.append((name, None))
        return tuple(found)

    @cached_property
    def lower(self) -> Array:
        """Lower corner of the encoded points, `(d,)`."""
        return frozen(np.zeros(self.dimension))

    @cached_property
    def upper(self) -> Array:
        """Upper corner of the encoded points, `(d,)`."""
        ends = [np.full(p.columns, CHOSEN if isinstance(p, Choice) else 1.0) for p in self.parameters.values()]
        return frozen(np.concatenate(ends))

    def columns(self) -> tuple[tuple[Parameter, slice], ...]:
        """Returns each parameter with its columns of an encoded point."""
        return self._columns

    @cached_property
    def _columns(self) -> tuple[tuple[Parameter, slice], ...]:
        return tuple(zip(self.parameters.values(), columns_by_name(self.parameters).values(), strict=True))

    @cached_property
    def _numbers(self) -> IndexArray:
        """The columns of numbers, `(k,)`."""
        places = [np.arange(place.start, place.stop) for each, place in self._columns if not isinstance(each, Choice)]
        return np.concatenate([np.zeros(0, dtype=np.intp), *places])

    def spread(self, cube: Array) -> Array:
        """Returns the valid encoded points `(n, d)` of coordinates in [0, 1), one for each parameter, `(n, p)`.

        All options of a choice and all values of an `Int` have equal shares of their coordinate.
        """
        points = np.zeros((len(cube), self.dimension))
        for (parameter, columns), u in zip(self.columns(), cube.T, strict=True):
            if isinstance(parameter, Choice):
                k = len(parameter.options)
                points[np.arange(len(u)), columns.start + np.minimum((u * k).astype(int), k - 1)] = CHOSEN
            else:
                points[:, columns.start] = parameter.spread(u)
        return self._with_numbers(points)

    def snap(self, points: Array) -> Array:
        """Returns the nearest encoded points `(n, d)` that are valid parameters (whole numbers, one option)."""
        result = points.copy()
        for parameter, columns in self.columns():
            if isinstance(parameter, Choice):
                result[:, columns] = 0.0
                result[np.arange(len(points)), columns.start + points[:, columns].argmax(axis=1)] = CHOSEN
        return self._with_numbers(result)

    def _with_numbers(self, points: Array) -> Array:
        """Returns points `(n, d)` of valid options, which are changed in place, with valid numbers."""
        for parameter, columns in self.columns():
            if not isinstance(parameter, Choice) and (not parameter.real or parameter.unknown):
                points[:, columns] = parameter.snap(points[:, columns])
        numbers = self._numbers
        points[:, numbers] = np.clip(points[:, numbers], self.lower[numbers], self.upper[numbers])
        return points if self.conditions is None else self.conditions.centre_inactive(points)

    def active(self, points: Array) -> Mask | None:
        """Returns the active columns of encoded points `(n, d)`, or None if all are always active."""
        return None if self.conditions is None else self.conditions.active(points)

    def inside(self, name: str, points: npt.ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Array:
        """Returns checked encoded points `(n, d)` of parameters or encoded points.

        Args:
            name: of the argument, for errors.
            points: dicts of parameters, a table with a column for each parameter, one of its rows, or arrays of
                encoded points.

        Raises:
            InvalidInput: a point is outside, or the points are lists of numbers, which could be values or shares.
        """
        named = named_points(points)
        if named is not None:
            return np.array([self.encode(point) for point in named])
        refuse_lists(name, points, self.parameters)
        try:
            return self.snap(inside_box(name, cast("npt.ArrayLike", points), self.lower, self.upper))
        except InvalidInput as error:
            raise InvalidInput(
                f"{error.what} In a Space numbers are shares of the ranges, as the kernel sees them; values are given "
                f"by name: {{{next(iter(self.parameters))!r}: ...}}."
            ) from error

    def grid(self, per_dimension: int | Mapping[str, int] | None = None, *, most: int = MOST_ARMS) -> Arms:
        """Returns arms at every combination of `per_dimension` values of each number and all options of each choice.

        Combinations that do not keep the limits are left out.

        Args:
            per_dimension: one number for all, or one for each numeric parameter by name. Spaces of choices need
                none.
            most: largest number of arms. A larger grid is refused before it is made.

        >>> import nilregret as nr
        >>> prices = nr.Space(price=nr.Float(4.0, 8.0)).grid(5)
        >>> [prices.parameters(arm)["price"] for arm in range(len(prices))]
        [4.0, 5.0, 6.0, 7.0, 8.0]
        """
        names = [name for name, parameter in self.parameters.items() if not isinstance(parameter, Choice)]
        if per_dimension is None and names:
            raise InvalidInput(f"`per_dimension` is missing: of how many values of {', '.join(names)} is the grid?")
        given = {} if per_dimension is None else per_dimension
        counts = dict(given) if isinstance(given, Mapping) else dict.fromkeys(names, given)
        if set(counts) != set(names):
            raise InvalidInput(
                f"`per_dimension` names {sorted(map(str, counts))}, but the numeric parameters are {names}."
            )
        for name, count in counts.items():
            counts[name] = integer(f"per_dimension[{name}]", count, low=1)
        if self.conditions is not None:
            return self._arms(self._settled(counts, self.conditions, most), counts)
        check_count(math.prod(_count_of_values(p, counts.get(name, 0)) for name, p in self.parameters.items()), most)
        columns = [
            np.array([parameter.encode(value) for value in parameter.values(counts.get(name, 0))])
            for name, parameter in self.parameters.items()
        ]
        # The last column varies fastest.
        places = np.indices([len(column) for column in columns]).reshape(len(columns), -1)
        rows = np.concatenate([column[place] for column, place in zip(columns, places, strict=True)], axis=1)
        return self._arms(rows, counts)

    def _arms(self, rows: Array, counts: Mapping[str, int]) -> Arms:
        """Returns the arms of a grid, those that keep the limits."""
        if self.limits is not None:
            count, rows = len(rows), rows[self.limits.holds(rows)]
            if not len(rows):
                raise InvalidInput(
                    f"None of the {count:,} points of this grid keeps the limits {shown(self.limits.texts)}: take more "
                    "values of each parameter, or values that meet them."
                )
        return Arms(rows, space=self, counts=tuple(counts.items()))

    def _settled(self, counts: Mapping[str, int], conditions: Conditions, most: int) -> Array:
        """Returns every combination of active values once, `(n, d)`.

        Inactive parameters do not multiply the combinations. Parents come first.
        """
        rows = conditions.middle[None]
        for (name, parameter), (_, columns) in zip(self.parameters.items(), self.columns(), strict=True):
            values = np.array([parameter.encode(value) for value in parameter.values(counts.get(name, 0))])
            active = conditions.active(rows)[:, columns.start]
            check_count(len(rows) + int(active.sum()) * (len(values) - 1), most)
            repeats = np.where(active, len(values), 1)
            of_value = np.concatenate([np.arange(count) for count in repeats])
            rows, active = np.repeat(rows, repeats, axis=0), np.repeat(active, repeats)
            rows[active, columns] = values[of_value[active]]
        return rows


def _limits(conditions: Conditions, given: tuple[Limit, ...]) -> Limits | None:
    if not given:
        return None
    from .limits import Limits  # Most spaces have none.

    return Limits(conditions, given)


@lru_cache(maxsize=64)  # A policy is read again and again, and a limit may take a second to check.
def _check_limits(space: Space) -> None:
    from .limits_linear import check_limits

    if space.limits is not None:
        check_limits(
            space.limits, lambda count, rng: space.spread(rng.random((count, len(space.parameters)))), space.snap
        )


def _count_of_values(parameter: Parameter, count: int) -> int:
    """Returns the number of values of `parameter.values(count)`, or an upper bound."""
    if isinstance(parameter, Choice):
        return parameter.count
    known = parameter.known_count
    return (count if known is None else min(count, known)) + parameter.unknown


def _encode_arms(arms: Arms) -> dict[str, Any]:
    if arms.space is not None and arms.counts is not None:  # counts are short, however large the grid
        return {"space": to_plain(arms.space), "counts": to_plain(arms.counts)}
    added = {} if arms.first is None else {"first": arms.first}
    return {"points": to_plain(arms.points), "space": to_plain(arms.space)} | added


def _decode_arms(data: dict[str, Any]) -> Arms:
    if "counts" in data:
        space, counts = entries(data, space=Space, counts=list)
        return cast("Arms", space.grid(_named(counts)))
    if "first" in data:
        points, space, first = entries(data, points=list, space=Space | None, first=int)
        return Arms(points, space=space, first=first)
    points, space = entries(data, points=list, space=Space | None)
    return Arms(points, space=space)


@described_by(encode=_encode_arms, decode=_decode_arms)
@dataclass(frozen=True, eq=False)
class Arms:
    """A finite decision set: the rows of `points`, an `(N, d)` array (or `(N,)` for one dimension).

    Arms may coincide. With `space`, the points are encoded parameters and `parameters(arm)` decodes them.

    >>> import nilregret as nr
    >>> arms = nr.Arms([[0.0, 1.0], [2.0, 3.0]])
    >>> len(arms), arms.dimension, arms.points[1]
    (2, 2, array([2., 3.]))
    """

    limits: ClassVar[None] = None  # of a space are kept by its arms

    points: Array
    space: Space | None = field(default=None, kw_only=True)
    # Of a grid, the number of values of each parameter.
    counts: tuple[tuple[str, int], ...] | None = field(default=None, kw_only=True)
    # Number of the first arms, whose extent stays the unit of length when others are added. None for all.
    first: int | None = field(default=None, kw_only=True)

    if TYPE_CHECKING:  # arguments are converted

        def __init__(
            self,
            points: npt.ArrayLike,
            *,
            space: Space | None = None,
            counts: tuple[tuple[str, int], ...] | None = None,
            first: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space | None):
            raise InvalidInput(f"`space` must be a Space, not {shown(self.space)}.")
        try:
            points = points_array("points", self.points, dimension=None if self.space is None else self.space.dimension)
        except InvalidInput as error:
            raise error.advised(_named_arms(self.points)) from None
        if points.shape[0] == 0 or points.shape[1] == 0:
            raise InvalidInput(f"Arms needs at least one arm of at least one dimension; `points` is {points.shape}.")
        check_size("points", points)
        if self.first is not None:
            integer("first", self.first, low=1, high=len(points), why="It is the number of the first arms.")
        object.__setattr__(self, "points", frozen(points + 0.0))  # turns -0.0 into 0.0, for equal bytes
        limits = None if self.space is None else self.space.limits
        if self.space is not None and limits is not None and not (kept := limits.holds(self.points)).all():
            arm = self.space.decode(self.points[kept.argmin()])
            raise InvalidInput(f"Arm {shown(arm)} does not keep the limits {shown(limits.texts)} of its space.")

    @staticmethod
    def grid(lower: float, upper: float, count: int) -> Arms:
        """Returns `count` evenly spaced arms on [lower, upper], ends included, in one dimension.

        >>> import nilregret as nr
        >>> nr.Arms.grid(0, 10, 5).points[:, 0]
        array([ 0. ,  2.5,  5. ,  7.5, 10. ])
        """
        lower, upper = number("lower", lower), number("upper", upper)
        count = integer("count", count, low=1, high=MOST_ARMS)
        if lower >= upper and count > 1:
            raise InvalidInput(f"A grid needs lower < upper, not {exact(lower)} and {exact(upper)}.")
        return Arms(np.linspace(lower, upper, count))

    def __len__(self) -> int:
        return int(self.points.shape[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arms) and self.space == other.space and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash((self.points.tobytes(), self.space))

    def __repr__(self) -> str:
        space, arms = "" if self.space is None else f" in {self.space}", many(len(self), "arm")
        return f"Arms({arms} of dimension {self.dimension}{space})"

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""
        return int(self.points.shape[1])

    @property
    def founding(self) -> Arms:
        """The arms without those that `with_more` added."""
        return self if self.first is None else Arms(self.points[: self.first], space=self.space)

    def with_more(self, points: npt.ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> Arms:
        """Returns these arms and more of them, which get the next numbers. Units of length stay as they are.

        Args:
            points: `(k, d)`, or dicts of parameters if the arms have a `space`.
        """
        if self.space is not None:
            rows = self.space.inside("points", points)
        elif named_points(points, columns=False) is not None:
            raise InvalidInput("These arms have no named parameters: give points `(k, d)`, not dicts.")
        else:
            rows = as_rows("points", cast("npt.ArrayLike", points), self.dimension)
        if not len(rows):
            raise InvalidInput("`points` is empty: it must have a row for each new arm.")
        check_count(len(self) + len(rows))
        first = len(self) if self.first is None else self.first
        return Arms(np.concatenate([self.points, rows]), space=self.space, first=first)

    def parameters(self, arm: int) -> dict[str, Any]:
        """Returns the named parameters of an arm, or raises an error if the arms have no `space`."""
        if self.space is None:
            raise InvalidInput(
                "These arms have no named parameters, as those of a grid of a space have.",
                advice="Make them with `Space(...).grid(...)`.",
            )
        if integer("arm", arm, low=0) >= len(self):
            raise InvalidInput(f"There is no arm {arm}: these are arms 0 .. {len(self) - 1}.")
        return self.space.decode(self.points[arm])

    @cached_property
    def _lookup(self) -> PointLookup:
        return PointLookup(self.points)

    def index(self, points: npt.ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> IndexArray:
        """Returns the arm of each row of `points` `(n, d)`.

        With `space`, points may also be a dict of parameters, a list of them, a table's row or a table.

        Raises:
            InvalidInput: a point is no arm, to 1e-9 of the arms' extent.
        """
        return self._index("points", points)

    def inside(
        self, name: str, points: npt.ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]]
    ) -> Array:  # fmt: skip
        """Returns the arms' own points `(n, d)` for points that are arms (see `index`)."""
        return np.asarray(self.points[self._index(name, points)])

    def _index(self, name: str, points: Any) -> IndexArray:
        named = named_points(points, columns=self.space is not None)
        if named is not None:
            if self.space is None:
                raise InvalidInput("These arms have no named parameters: give points, not dicts.")
            points = self.space.inside(name, named)
        elif self.space is not None:
            refuse_lists(name, points, self.space.parameters)
        rows = as_rows(name, points, self.dimension)
        return np.array([self._find(row) for row in rows], dtype=np.intp)

    def _find(self, row: Array) -> int:
        arm = self._lookup.find(row)
        if arm is not None:
            return arm
        arm = self._lookup.nearest(row)
        raise InvalidInput(
            f"{self._named(row)} is not one of the arms; the nearest is arm {arm} at {self._named(self.points[arm])}. "
            "A posterior on arms knows only the arms: use one of them, or add this point to them."
            + ("" if self._coded(row) else " Numbers without names are from 0 to 1 here: give parameters by name."),
            advice="They are `domain.points` (of contexts, `context.points`).",
        )

    def _named(self, row: Array) -> str:
        """Returns a point as an error shows it: by its parameters, if it has any."""
        return shown(self.space.decode(row) if self.space is not None and self._coded(row) else row.tolist())

    def _coded(self, row: Array) -> bool:
        """Returns True if a point may be an encoded point of the space, or if there is no space."""
        return self.space is None or bool(((row >= 0.0) & (row <= 1.0)).all())

    def coinciding(self, arms: IndexArray) -> IndexArray:
        """Returns all arms at the points of some arms, `(n,)`."""
        return self._lookup.coinciding(arms)
