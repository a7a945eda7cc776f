"""The true reward and constraint values of points: a function for each stationary period, or a drifting function.

An output is the reward, or all constraints together. On arms the values are computed once for each context, and cached
in a table.

| symbol | name | meaning | shape |
|---|---|---|---|
| p | `period` | stationary periods, from 0 | |
| a | `age` | rounds since the period began, from 0 | |
| f, g_1 .. g_m | | values of a function at n points (with contexts: and n contexts) | (n,) or (n, m) |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, frozen, integer, listed, many, settle, shown
from .._utils.dataclass import dataclass
from .._utils.randomness import world_generator
from ..domains.domain import Arms, Domain, Space
from ..errors import InvalidInput

MOST_PERIODS = 1_000_000


def even_changes(rounds: int, periods: int) -> tuple[int, ...]:
    """Returns `periods` - 1 change points that cut `rounds` into periods of equal length (to within one round).

    This is "the most hostile setting" of Avanesov's experiments (section 4), which maximises the lower bound of the
    regret.

    >>> even_changes(1200, 4)
    (300, 600, 900)
    """
    rounds, periods = _fitting(rounds, periods, shortest=1)
    return tuple(rounds * period // periods for period in range(1, periods))


def random_changes(rounds: int, periods: int, *, seed: int | Sequence[int], shortest: int = 1) -> tuple[int, ...]:
    """Returns change points drawn uniformly from all that leave every period at least `shortest` rounds.

    Args:
        rounds: T.
        periods: K, with K - 1 changes.
        seed: seed of the change points, which are independent of functions and noise with the same seed.
        shortest: least length of a period, rounds.
    """
    rounds, periods = _fitting(rounds, periods, shortest=shortest)
    shortest = integer("shortest", shortest, low=1)
    spare = rounds - periods * shortest
    # Every way to share out the spare rounds has the same probability (stars and bars).
    bars = np.sort(world_generator(seed, "changes").choice(spare + periods - 1, periods - 1, replace=False))
    extra = bars - np.arange(periods - 1)
    return tuple(int(more) + shortest * period for period, more in enumerate(extra, start=1))


def ascending_rounds(change_points: Sequence[int]) -> list[int]:
    """Returns change points as integers.

    Raises:
        InvalidInput: unless they are rounds from 1 in ascending order.
    """
    why = "They are rounds, counted from 0."
    rounds = [
        integer("change_points", round_, low=1, why=why) for round_ in listed("change_points", change_points, why=why)
    ]
    if rounds != sorted(set(rounds)):
        raise InvalidInput(f"`change_points` are {shown(rounds)}: they must be in ascending order, each once.")
    return rounds


def _fitting(rounds: int, periods: int, *, shortest: int) -> tuple[int, int]:
    rounds, periods = integer("rounds", rounds, low=1), integer("periods", periods, low=1, high=MOST_PERIODS)
    shortest = integer("shortest", shortest, low=1, why="It is the length of a period in rounds.")
    if periods * shortest > rounds:
        raise InvalidInput(
            f"{many(rounds, 'round')} cannot hold {many(periods, 'period')} of at least {many(shortest, 'round')}: ask "
            "for fewer or shorter ones."
        )
    return rounds, periods


Function = Callable[..., npt.ArrayLike]

MOST_CACHED = 20_000_000  # The most numbers in a table, 160 MB.


@final
@dataclass(frozen=True)
class Drifting:
    """A function that gradually becomes another one, from the beginning of its period.

    In the period's round a = 0, 1, ... the function is (1 - u) f + u g with u = min(a / over, 1).

    Attributes:
        begin: f, the first reward or constraint function (as of `Environment`).
        end: g, the function after `over` rounds.
        over: number of rounds of the change.
    """

    begin: Function
    end: Function
    over: int

    def __post_init__(self) -> None:
        for name in ("begin", "end"):
            if not callable(getattr(self, name)):
                raise InvalidInput(f"`{name}` must be a function of points (n, d), not {shown(getattr(self, name))}.")
        settle(self, over=integer("over", self.over, low=1, why="It is the number of rounds that the change takes."))


@final
class TrueOutput:
    """The functions of all periods for one output.

    Args:
        name: name of the argument, for errors: "reward" or "constraints".
        functions: a function or a `Drifting`, or a sequence of them, one for each period.
        domain: domain of the points.
        contexts: domain of the contexts, or None.
    """

    def __init__(self, name: str, functions: Any, *, domain: Domain, contexts: Domain | None) -> None:
        self._name, self._domain, self._contexts = name, domain, contexts
        several = isinstance(functions, Sequence) and not isinstance(functions, str)
        self.periods = [self._part(part) for part in (functions if several else [functions])]
        if not self.periods:
            raise self._no_function(functions)
        self._count: int | None = None  # m, or None before the first evaluation.
        self._table: dict[tuple[int, bytes], Array] = {}  # By function and context, the values of all arms.
        self._cached = 0
        # Contexts that are arms come again and again, others hardly ever.
        self._caches = isinstance(domain, Arms) and isinstance(contexts, Arms | None)
        if self._caches and contexts is None:
            for function in self._functions():
                self._of_arms(function, None)

    def _part(self, part: Any) -> Drifting | Function:
        if not isinstance(part, Drifting) and not callable(part):
            raise self._no_function(part)
        found: Drifting | Function = part
        return found

    def _no_function(self, value: Any) -> InvalidInput:
        what = "rewards (n,)" if self._name == "reward" else "(n, m)"
        return InvalidInput(f"`{self._name}` must be a function from points (n, d) to {what}, not {shown(value)}.")

    def _functions(self) -> list[Function]:
        found: list[Function] = []
        for part in self.periods:
            found += [part.begin, part.end] if isinstance(part, Drifting) else [part]
        return found

    def drifting(self, period: int, age: int) -> bool:
        """Returns whether the function is changing gradually."""
        part = self._in(period)
        return isinstance(part, Drifting) and age < part.over

    def _in(self, period: int) -> Drifting | Function:
        return self.periods[period if len(self.periods) > 1 else 0]

    def of_arms(self, period: int, age: int, context: Array | None) -> Array:
        """Returns the values of all arms under a context `(c,)`, a read-only `(N,)` or `(N, m)`."""
        part = self._in(period)
        if not isinstance(part, Drifting):
            return self._of_arms(part, context)
        u = min(age / part.over, 1.0)
        return np.asarray((1.0 - u) * self._of_arms(part.begin, context) + u * self._of_arms(part.end, context))

    def of_points(self, period: int, age: int, points: Array, context: Array | None) -> Array:
        """Returns the values at points `(n, d)` under a context `(c,)`, `(n,)` or `(n, m)`."""
        part = self._in(period)
        if not isinstance(part, Drifting):
            return self._evaluate(part, points, context)
        u = min(age / part.over, 1.0)
        return np.asarray(
            (1.0 - u) * self._evaluate(part.begin, points, context) + u * self._evaluate(part.end, points, context)
        )

    def of_trial(self, period: int, age: int, arm: int | None, point: Array, context: Array | None) -> Any:
        """Returns the value at one point, a number or `(m,)`."""
        if arm is not None and self._caches:
            return self.of_arms(period, age, context)[arm]
        return self.of_points(period, age, point[None], context)[0]

    def _of_arms(self, function: Function, context: Array | None) -> Array:
        if not self._caches:
            return self._evaluate(function, self._domain.points, context)  # type: ignore[union-attr]  # The domain is arms.
        key = (id(function), b"" if context is None else context.tobytes())  # `periods` keeps the function alive.
        known = self._table.get(key)
        if known is None:
            known = frozen(self._evaluate(function, self._domain.points, context))  # type: ignore[union-attr]
            self._cached += known.size
            if self._cached > MOST_CACHED and self._contexts is not None:
                self._table, self._cached = {}, known.size
            self._table[key] = known
        return known

    def _evaluate(self, function: Function, points: Array, context: Array | None) -> Array:
        contexts = None if context is None else np.repeat(context[None], len(points), axis=0)
        values = values_at(f"{self._name}(points)", function, points, contexts)
        return self._rewards(values, points) if self._name == "reward" else self._constraints(values, points)

    def _rewards(self, values: Array, points: Array) -> Array:
        if values.shape != (len(points),):
            raise InvalidInput(
                f"`reward` returned shape {values.shape} for points of shape {points.shape}; it must be "
                f"({len(points)},): one number for each row. For 1-d points use `points[:, 0]` inside the function."
            )
        return values

    def _constraints(self, values: Array, points: Array) -> Array:
        if values.ndim == 1:
            values = values[:, None]
        if values.ndim != 2 or len(values) != len(points):
            raise InvalidInput(
                f"`constraints` returned shape {values.shape} for points of shape {points.shape}; it must be "
                f"({len(points)}, m): one row for each point, one column for each constraint."
            )
        if self._count is None:
            self._count = values.shape[1]
        if values.shape[1] != self._count:
            raise InvalidInput(
                f"One of the `constraints` functions returned {many(values.shape[1], 'column')}, and another one "
                f"{self._count}: each is for a stationary period, and has all m constraints of it as its columns."
            )
        return values

    def columns(self, context: Array | None) -> int:
        """Returns m, the number of values of the first function at a point."""
        if self._count is None:
            domain = self._domain
            point = domain.points[:1] if isinstance(domain, Arms) else domain.lower[None]
            self.of_points(0, 0, domain.snap(point) if isinstance(domain, Space) else point, context)
        return 0 if self._count is None else self._count


def values_at(name: str, function: Function, points: Array, contexts: Array | None) -> Array:
    """Returns the values of a function at points: of all at once, or one by one if it takes single points only."""
    several: Any = function(points) if contexts is None else function(points, contexts)
    values = finite_array(name, several)
    if values.ndim and (values.size != 1 or len(points) == 1):
        return values
    if len(points) == 1:
        return values[None]
    each = [()] * len(points) if contexts is None else [(context,) for context in contexts]
    return finite_array(name, [function(point, *context) for point, context in zip(points, each, strict=True)])  # type: ignore[arg-type]  # `finite_array` checks them


def checked_changes(change_points: Sequence[int] | None, *, rewards: int, constraints: int) -> tuple[int, ...]:
    """Returns the change points, after a check against the numbers of reward and constraint functions."""
    rounds = tuple(ascending_rounds([] if change_points is None else change_points))
    for count, kind in ((rewards, "reward"), (constraints, "constraint")):
        # One function is for all periods, if the other output changes.
        if len(rounds) + 1 != count and (count != 1 or max(rewards, constraints) == 1):
            raise InvalidInput(
                f"{many(count, f'{kind} function')} and {many(len(rounds), 'change point')} do not go together: there "
                "is one function more than there are changes."
            )
    return rounds


@final
class ArmFunction:
    """A function of arms, defined by its values: `Environment(function, domain=function.arms)`.

    Args:
        arms: the arms.
        values: value at every arm, `(N,)`.
    """

    def __init__(self, arms: Arms, values: npt.ArrayLike) -> None:
        if not isinstance(arms, Arms):
            raise InvalidInput(f"`arms` must be Arms, not {shown(arms)}.")
        self.arms, self.values = arms, frozen(finite_array("values", values))
        if self.values.shape != (len(arms),):
            raise InvalidInput(
                f"`values` has shape {self.values.shape}: it must be ({len(arms)},), one number for each arm."
            )

    def __call__(self, points: npt.ArrayLike) -> Array:
        """Values at points `(n, d)`, `(n,)`. An error if a point is no arm."""
        # An environment asks for all arms at once. Each has its own value, also if two arms coincide.
        if np.array_equal(np.asarray(points), self.arms.points):
            return self.values.copy()
        return np.asarray(self.values[self.arms.index(points)])
