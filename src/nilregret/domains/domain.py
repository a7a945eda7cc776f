"""The three kinds of domains: arms, boxes and spaces of named parameters.

| symbol | name | meaning | shape |
|---|---|---|---|
| D | `Arms.points` | the decision set, one arm a row | (N, d) |
| x | point | an arm's coordinates, as the kernel sees them | (d,) |

A `Space` of named parameters is encoded into the unit cube, with one column for a number and one for each option of a
choice. Thus one lengthscale means the same share of the range of each parameter.

Spaces that change: other ranges, steps, scales and options, and new parameters.

A point tried in an earlier space keeps its named values. In the present space it may lie outside: a number then has a
column below 0 or above 1. An option that is gone lies on the diagonal of the columns of its choice, away from all
options that are left:

| symbol | meaning |
|---|---|
| k | options that are left. Option i has the column i, with the value sqrt(1/2) |
| c (1, ..., 1) | place of a gone option, at distance 1 from every option if k c^2 - sqrt(2) c - 1/2 = 0 |

The first option that is gone takes the negative root. Each later one is 1 farther out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, frozen, integer, many, nearest, shown
from .._utils.numerals import exact
from .._utils.randomness import world_generator
from ..errors import InvalidInput
from ..serialize import description
from .conditions import Conditional, Conditions, Mask, unwrapped
from .coordinates import MOST_ARMS, SAME_POINT, check_count, check_size, inside_box
from .options import Option, option_key
from .parameters import Choice, Float, Int, Parameter
from .space import Arms, Space


@description(frozen=True, eq=False)
class Box:
    """All points between `lower` and `upper`, arrays `(d,)` (or numbers, for one dimension), both ends included.

    >>> import nilregret as nr
    >>> box = nr.Box([0.0, -1.0], [1.0, 1.0])
    >>> box.dimension, box.grid(3).points.shape
    (2, (9, 2))
    """

    limits: ClassVar[None] = None  # that are known: only a space has any

    lower: Array
    upper: Array

    if TYPE_CHECKING:  # arguments are converted

        def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        lower, upper = (np.atleast_1d(finite_array(name, getattr(self, name))) for name in ("lower", "upper"))
        if lower.ndim != 1 or lower.shape != upper.shape or lower.size == 0:
            raise InvalidInput(
                f"Box needs `lower` and `upper` of one shape (d,), not {lower.shape} and {upper.shape}: one number for "
                "each dimension."
            )
        wrong = np.flatnonzero(lower >= upper)
        if wrong.size:
            i = int(wrong[0])
            raise InvalidInput(
                f"Box needs lower < upper; in dimension {i} they are {exact(lower[i])} and {exact(upper[i])}. "
                + ("Leave that dimension out." if lower[i] == upper[i] else "Usually the two are swapped.")
            )
        check_size("lower", lower)
        check_size("upper", upper)
        object.__setattr__(self, "lower", frozen(lower + 0.0))
        object.__setattr__(self, "upper", frozen(upper + 0.0))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Box)
            and np.array_equal(self.lower, other.lower)
            and np.array_equal(self.upper, other.upper)
        )

    def __hash__(self) -> int:
        return hash((self.lower.tobytes(), self.upper.tobytes()))

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""
        return int(self.lower.size)

    def columns(self) -> list[tuple[Parameter, slice]]:
        """Returns each coordinate, as a real parameter in [0, 1], with its column."""
        share = Float(0.0, 1.0)
        return [(share, slice(i, i + 1)) for i in range(self.dimension)]

    def snap(self, points: Array) -> Array:
        """Returns the points `(n, d)`, since all coordinates are real."""
        return points

    def active(self, points: Array) -> Mask | None:  # noqa: ARG002 - has no conditions
        """Returns None: all coordinates always count."""
        return None

    def inside(self, name: str, points: npt.ArrayLike) -> Array:
        """Returns checked points `(n, d)`. Points within 1e-9 of the box's sides are moved onto them."""
        return inside_box(name, points, self.lower, self.upper)

    def grid(self, per_dimension: int | Sequence[int]) -> Arms:
        """Returns arms at every combination of evenly spaced coordinates, ends included. The last varies fastest.

        Args:
            per_dimension: one number for all dimensions, or one for each. With 1 the middle is taken.

        >>> import nilregret as nr
        >>> nr.Box(0.0, 1.0).grid(3).points[:, 0]
        array([0. , 0.5, 1. ])
        """
        single = isinstance(per_dimension, str | bytes) or not isinstance(per_dimension, Sequence)
        listed = [per_dimension] * self.dimension if single else list(cast("Sequence[int]", per_dimension))
        if len(listed) != self.dimension:
            raise InvalidInput(
                f"`per_dimension` has {many(len(listed), 'entry')} where the box has "
                f"{many(self.dimension, 'dimension')}: give one number for all, or one for each."
            )
        counts = [integer("per_dimension", count, low=1) for count in listed]
        check_count(math.prod(counts))
        columns = [
            np.linspace(low, high, count) if count > 1 else np.array([(low + high) / 2.0])
            for low, high, count in zip(self.lower, self.upper, counts, strict=True)
        ]
        return Arms(np.stack(np.meshgrid(*columns, indexing="ij"), axis=-1).reshape(-1, self.dimension))

    def sample(self, count: int, *, seed: int | Sequence[int]) -> Arms:
        """Returns `count` arms drawn uniformly from the box, the same for the same seed.

        >>> import nilregret as nr
        >>> len(nr.Box([0.0, 0.0], [1.0, 1.0]).sample(100, seed=1))
        100
        """
        shape = (integer("count", count, low=1, high=MOST_ARMS), self.dimension)
        return Arms(world_generator(seed, "arms").uniform(self.lower, self.upper, shape))


MACHINE_SHARE = 1e-6  # share of a range by which another machine may decide otherwise

__all__ = [
    "Arms",
    "Box",
    "Domain",
    "Space",
    "among",
    "arm_of",
    "check_domain",
    "count_of_points",
    "distinct",
    "enclosing_box",
    "keeping_limits",
    "options_of",
    "refuse_outside_limits",
    "sides",
    "space_of",
]

Domain = Arms | Box | Space


def count_of_points(domain: Domain) -> int | None:
    """Returns the number of arms, or of combinations of whole numbers and choices, or None if it is infinite.

    With conditional parameters or limits the number is an upper bound.
    """
    if isinstance(domain, Arms):
        return len(domain)
    if isinstance(domain, Box):
        return None
    counts = [p.count for p in domain.parameters.values() if p.count is not None]
    return math.prod(counts) if len(counts) == len(domain.parameters) else None


def space_of(domain: Domain) -> Space | None:
    """Returns the space of named parameters of a domain, or None if its coordinates have no names."""
    return domain.space if isinstance(domain, Arms) else domain if isinstance(domain, Space) else None


def among(points: Array, known: Iterable[npt.ArrayLike]) -> Mask:
    """Returns a mask `(n,)` of the points that equal one of the known points."""
    found = np.zeros(len(points), dtype=bool)
    for point in known:
        found |= (points == point).all(axis=1)
    return found


def options_of(*domains: Domain | None) -> Iterator[Option]:
    """Yields the options of all choices, in which `nilregret.domains.options.known` finds the objects of names."""
    for domain in domains:
        space = None if domain is None else space_of(domain)
        for parameter in () if space is None else space.parameters.values():
            yield from parameter.options if isinstance(parameter, Choice) else ()


def arms_by_option(domain: Domain) -> dict[str, set[int]]:
    """Returns the arms of each text that is an option of the only parameter. With more parameters options name none."""
    found: dict[str, set[int]] = {}
    if isinstance(domain, Arms) and domain.space is not None and len(domain.space.parameters) == 1:
        for arm, settings in enumerate(domain.space.decoded(domain.points)):
            for option in settings.values():
                if isinstance(option, str):
                    found.setdefault(option, set()).add(arm)
    return found


def arm_of(name: str, domain: Domain, arm: object) -> int:
    """Returns the number of an arm that an argument names.

    Args:
        name: of the argument.
        domain: of the policy.
        arm: its number, also as text. Or a dict of its parameters. Of the arms of a space with one choice, the option.

    Raises:
        InvalidInput: there is no such arm, or an earlier arm has the same point.
    """
    if not isinstance(domain, Arms):
        raise InvalidInput(
            f"`{name}` names an arm, and the policy has none: it plays a {type(domain).__name__}.",
            advice="A space of choices becomes arms by `.grid()`.",
        )
    named = {} if domain.space is None else domain.space.parameters
    choice = next(iter(named.values())) if len(named) == 1 else None
    options = list(choice.options) if isinstance(choice, Choice) else []
    if isinstance(arm, Mapping):
        number = int(domain.index(arm)[0])
    elif isinstance(arm, str) and arm in options:
        number = int(domain.index(dict.fromkeys(named, arm))[0])
    elif isinstance(arm, str) and not arm.isdecimal():
        listed = f"the options are {shown(options)}" if options else NO_NAMES
        raise InvalidInput(f"`{name}` has the arm {shown(arm)}, which the policy does not know: {listed}.")
    else:
        number = integer(name, int(arm) if isinstance(arm, str) else arm, low=0, why="It is the number of an arm.")
    if number >= len(domain):
        raise InvalidInput(f"`{name}` has arm {number}, and there are {many(len(domain), 'arm')}, from number 0.")
    first = int(domain.index(domain.points[number][None])[0])
    if first != number:
        raise InvalidInput(f"`{name}` has arm {number}, whose point is that of arm {first}: name arm {first}.")
    return number


NO_NAMES = "arms have names in a study, and numbers in its policy (`study.arms` lists both)"


def distinct(points: Array) -> Array:
    """Returns the distinct points, in order of first occurrence."""
    _, first = np.unique(points, axis=0, return_index=True)
    return np.asarray(points[np.sort(first)])


def keeping_limits(domain: Domain, points: Array) -> Array:
    """Returns the valid points that keep the known limits of a domain, `(k, d)`."""
    return points if domain.limits is None else points[domain.limits.holds(points)]


def refuse_outside_limits(domain: Domain, points: Array, what: str) -> None:
    """Raises an error if one of some valid points, in words, does not keep the known limits of a domain."""
    limits = domain.limits
    if limits is not None and (missed := np.flatnonzero(limits.missed(points).any(axis=0))).size:
        raise InvalidInput(f"{what} is outside of the limit {shown(limits.texts[limits.owner[missed[0]]])}.")


def check_domain(name: str, value: object) -> None:
    """Raises an error if the value is no domain."""
    if not isinstance(value, Arms | Box | Space):
        advice = "Write nr.Space(**parameters)." if isinstance(value, dict) else ""
        if isinstance(value, list):
            advice = "Ranges of coordinates are nr.Box(lows, highs); points that may be played are nr.Arms(points)."
        raise InvalidInput(f"`{name}` must be Arms, a Box or a Space, not {shown(value)}.", advice=advice)
    space = value.space if isinstance(value, Arms) else value
    if name == "domain" and isinstance(space, Space) and space.unknown:
        raise InvalidInput(
            f"Parameter `{space.unknown[0]}` of the domain is declared with `unknown`, and what is unknown cannot be "
            "chosen: leave `unknown` out. It is for contexts, which are given."
        )
    if name == "context" and value.limits is not None:
        said = shown(", ".join(value.limits.texts))
        raise InvalidInput(f"`context` has the limits {said}, but a context is given and not chosen: leave them out.")


def enclosing_box(domain: Domain, context: Domain | None = None) -> Box:
    """Returns the smallest box that holds every (context, point) row.

    A coordinate in which all points are equal gets side 1.
    """
    lower, upper = [], []
    for part in [domain] if context is None else [context, domain]:
        corners = part.points if isinstance(part, Arms) else np.stack([part.lower, part.upper])
        lower.append(corners.min(axis=0))
        upper.append(corners.max(axis=0))
    low, high = np.concatenate(lower), np.concatenate(upper)
    return Box(low, np.where(high > low, high, low + 1.0))


def sides(domain: Domain, context: Domain | None = None) -> Array:
    """Returns the unit of length of each column of a (context, point) row, `(c + d,)`.

    The unit is 1 for parameters of a space, and otherwise a side of the enclosing box. Arms that were added
    (`Arms.with_more`) do not change it.
    """
    founding = domain.founding if isinstance(domain, Arms) else domain
    box = enclosing_box(founding, context)
    parts = [domain] if context is None else [context, domain]
    encoded = [isinstance(part, Space) or (isinstance(part, Arms) and part.space is not None) for part in parts]
    unit = np.repeat(encoded, [part.dimension for part in parts])
    return np.where(unit, 1.0, box.upper - box.lower)


def alike(domain: Domain, one: Array, other: Array) -> bool:
    """Returns whether two points `(d,)` can be one decision on two machines, which round differently."""
    return bool((np.abs(one - other) <= MACHINE_SHARE * sides(domain)).all())


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    D = TypeVar("D", bound=Domain, default=Any)  # a bare `Study` is of any domain
else:
    from typing import TypeVar

    D = TypeVar("D")


Gone = Mapping[str, Sequence[Any]]  # The options that each choice has lost, in order.

ELSEWHERE = "A new study of another space learns from this one by `nr.auto(space, like=study)`."


def changed_space(space: Space, parameters: Mapping[str, Any]) -> Space:
    """Returns the space with some parameters in place of those of the same names, and new ones at its end.

    A parameter keeps its conditions (`when`), and the space its limits.

    Raises:
        InvalidInput: a parameter cannot take the place of the old one, or the limits do not fit the new space.
    """
    if not parameters:
        raise InvalidInput(
            "Nothing was given to change.", advice="Such as `study.widen(rate=nr.Float(1e-6, 1, log=True))`."
        )
    declared = dict(space.declared)
    for name, given in parameters.items():
        before = declared.get(name)
        if given is None:
            raise InvalidInput(
                f"Parameter `{name}` cannot be taken out of a study: its trials differ in it.", advice=ELSEWHERE
            )
        if isinstance(before, Conditional) and isinstance(given, Float | Int | Choice):
            given = _within(before, given)
        _check_kind(name, before, given, space)
        declared[name] = given
    new = Space(**declared)
    return new.where(*space.limits.given) if space.limits is not None else new


def _check_kind(name: str, before: object, after: object, space: Space) -> None:
    """Refuses a parameter whose conditions, or whose kind, differ from those of the one that it replaces."""
    if before is None:
        if not isinstance(after, Float | Int | Choice | Conditional):
            hint = nearest(name, space.parameters)
            raise InvalidInput(f"Parameter `{name}` is {shown(after)}: it must be a Float, Int or Choice.{hint}")
        return
    (conditions, old), (others, new) = unwrapped(before), unwrapped(after)
    if conditions != others:
        raise InvalidInput(
            f"Parameter `{name}` is {shown(before)}, and its conditions stay as they are: give the new range alone."
        )
    if not isinstance(new, Float | Int | Choice):
        raise InvalidInput(f"Parameter `{name}` is {shown(new)}: it must be a Float, Int or Choice.")
    if old.unknown and not new.unknown:
        raise InvalidInput(
            f"Parameter `{name}` is {shown(old)} and cannot lose `unknown`: earlier decisions may have had no value."
        )
    if isinstance(old, Choice) != isinstance(new, Choice):
        raise InvalidInput(
            f"Parameter `{name}` is {shown(old)} and cannot become {shown(new)}: options have no place in a range.",
            advice=ELSEWHERE,
        )


def _within(declared: Conditional, parameter: Parameter) -> Conditional:
    """Returns the parameter under the conditions of another one."""
    inner = declared.parameter
    return replace(declared, parameter=_within(inner, parameter) if isinstance(inner, Conditional) else parameter)


def placed(space: Space, values: Mapping[str, Any], gone: Gone, known: Mapping[str, Array]) -> Array:
    """Returns the point `(d,)` of a space for values of another time, which may lie outside of it.

    Args:
        space: of now.
        values: the named values. Parameters without one are unknown, or at the middle, as inactive ones are.
        gone: the options that choices of this space have lost.
        known: columns of parameters that are as they were.

    Raises:
        InvalidInput: a value has no place in the space.
    """
    conditions = Conditions(space.declared)
    point, active = conditions.middle.copy(), dict[str, Any]()
    for (name, parameter), (_, columns) in zip(space.parameters.items(), space.columns(), strict=True):
        if (name in values or parameter.unknown) and conditions.is_active(name, active):
            active[name] = values.get(name)
            point[columns] = known[name] if name in known else columns_of(name, parameter, active[name], gone)
    return frozen(point)


def gone_options(space: Space, earlier: Iterable[Space]) -> Gone:
    """Returns the options of earlier spaces that choices of a space do not have, in the order of the spaces."""
    gone: dict[str, list[Any]] = {}
    for each in earlier:
        for name, before in each.parameters.items():
            now, lost = space.parameters.get(name), gone.setdefault(name, [])
            if isinstance(before, Choice) and isinstance(now, Choice):
                left = {option_key(option) for option in (*now.options, *lost)}
                lost += [option for option in before.options if option_key(option) not in left]
    return gone


def known_columns(space: Space, before: Space, point: Array) -> dict[str, Array]:
    """Returns the columns of a point of an earlier space in parameters that are the same in both, by name."""
    return {
        name: point[columns]
        for (name, parameter), (_, columns) in zip(before.parameters.items(), before.columns(), strict=True)
        if space.parameters.get(name) == parameter
    }


def columns_of(name: str, parameter: Parameter, value: Any, gone: Gone) -> list[float]:
    """Returns the columns of a value that may be outside of the range, between two steps, or no option any more."""
    try:
        return parameter.encode(value)
    except InvalidInput:
        pass
    if isinstance(parameter, Choice):
        place = [option_key(option) for option in gone.get(name, ())].index(option_key(value))
        return [_diagonal(parameter.columns, place)] * parameter.columns
    if parameter.low == parameter.high or (parameter.log and value <= 0):
        why = "is one value" if parameter.low == parameter.high else "has no logarithm for it"
        raise InvalidInput(
            f"Parameter `{name}` was {exact(value)} in a trial, and {parameter!r} {why}: take a range with a scale on "
            "which earlier trials have a place.",
            advice=ELSEWHERE,
        )
    return [parameter.position(float(value)), 0.0][: parameter.columns]


def _diagonal(k: int, place: int) -> float:
    """Returns c of the gone option at a place in their order."""
    return (math.sqrt(2.0) - math.sqrt(2.0 + 2.0 * k)) / (2.0 * k) - place / math.sqrt(k)


def within(space: Space, points: Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns which points `(n, d)` are points of the space, `(n,)`: in all ranges, on steps, and at options."""
    points = points.reshape(len(points), space.dimension)  # No points may have no columns.
    return np.asarray((np.abs(space.snap(points) - points) <= SAME_POINT).all(axis=1))


def column_order(then: Space, now: Space) -> list[int] | None:
    """Returns for each column of one space the same column of another one, `(d,)`.

    Returns:
        None if the spaces differ in more than the order of parameters, of options, of the values of a condition, and of
        limits.
    """
    limits = [{*space.limits.given} if space.limits is not None else set() for space in (then, now)]
    if limits[0] != limits[1]:
        return None
    if {name: _unordered(each) for name, each in then.declared.items()} != {
        name: _unordered(each) for name, each in now.declared.items()
    }:
        return None
    begins = dict(zip(now.parameters, (columns.start for _, columns in now.columns()), strict=True))
    order = []
    for name, parameter in then.parameters.items():
        theirs = now.parameters[name]
        if isinstance(parameter, Choice) and isinstance(theirs, Choice):
            order += [begins[name] + (theirs.find(option) or 0) for option in parameter.options]
        else:
            order += range(begins[name], begins[name] + theirs.columns)
    return order


def _unordered(declared: Any) -> Any:
    if isinstance(declared, Conditional):
        return declared.on, frozenset(map(option_key, declared.values)), _unordered(declared.parameter)
    if isinstance(declared, Choice):
        return declared.unknown, frozenset(map(option_key, declared.options))
    return declared
