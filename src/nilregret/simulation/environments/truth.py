"""What is true of the points of a domain: a function for each stationary period, or one that becomes another.

A channel is the reward, or all constraints. On arms what its functions say is worked out once for each context, and
kept: a round of a simulation then is a look into a table.

| symbol | name | meaning | shape |
|---|---|---|---|
| p | `period` | stationary periods, from 0 | |
| a | `age` | rounds since the period began, from 0 | |
| f, g_1 .. g_m | | what a function says of n points (with contexts: and of n contexts) | (n,) or (n, m) |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, finite_array, frozen, integer, listed, many, settle, shown
from ..._utils.errors import InvalidInput
from ...domains.domain import Arms, Domain, Space

Function = Callable[..., npt.ArrayLike]

MOST_KEPT = 20_000_000  # numbers in tables, 160 MB


@final
@dataclass(frozen=True)
class Drifting:
    """A function that becomes another one, steadily: a gradual change, in a period of its own or from the beginning.

    In the period's round a = 0, 1, ... it is (1 - u) f + u g with u = min(a / over, 1).

    Attributes:
        begin: f, the reward or constraint function (as of `Environment`) that it is at first.
        end: g, that it is after `over` rounds.
        over: rounds.
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
    """The functions of all periods.

    Args:
        name: of the argument that they were given as, for errors: "reward" or "constraints".
        given: a function or a `Drifting`, or a sequence of them, one for each period.
        domain: of the points.
        contexts: of the contexts, or None.
    """

    def __init__(self, name: str, given: Any, *, domain: Domain, contexts: Domain | None) -> None:
        self._name, self._domain, self._contexts = name, domain, contexts
        several = isinstance(given, Sequence) and not isinstance(given, str)
        self.periods = [self._part(part) for part in (given if several else [given])]
        if not self.periods:
            raise self._no_function(given)
        self._count: int | None = None  # m, once it is known
        self._table: dict[tuple[int, bytes], Array] = {}  # what a function says of all arms under a context
        self._kept = 0
        # Rows of a table come again and again; other contexts hardly ever.
        self._keeps = isinstance(domain, Arms) and isinstance(contexts, Arms | None)
        if self._keeps and contexts is None:
            for function in self._functions():
                self._of_arms(function, None)

    def _part(self, part: Any) -> Drifting | Function:
        if not isinstance(part, Drifting) and not callable(part):
            raise self._no_function(part)
        found: Drifting | Function = part
        return found

    def _no_function(self, given: Any) -> InvalidInput:
        what = "rewards (n,)" if self._name == "reward" else "(n, m)"
        return InvalidInput(f"`{self._name}` must be a function from points (n, d) to {what}, not {shown(given)}.")

    def _functions(self) -> list[Function]:
        found: list[Function] = []
        for part in self.periods:
            found += [part.begin, part.end] if isinstance(part, Drifting) else [part]
        return found

    def moving(self, period: int, age: int) -> bool:
        """Whether the function is on its way to another one."""
        part = self._in(period)
        return isinstance(part, Drifting) and age < part.over

    def _in(self, period: int) -> Drifting | Function:
        return self.periods[period if len(self.periods) > 1 else 0]

    def of_arms(self, period: int, age: int, context: Array | None) -> Array:
        """What is true of all arms under a context `(c,)`, `(N,)` or `(N, m)`; not to be written to."""
        part = self._in(period)
        if not isinstance(part, Drifting):
            return self._of_arms(part, context)
        u = min(age / part.over, 1.0)
        return np.asarray((1.0 - u) * self._of_arms(part.begin, context) + u * self._of_arms(part.end, context))

    def of_points(self, period: int, age: int, points: Array, context: Array | None) -> Array:
        """What is true of points `(n, d)` under a context `(c,)`, `(n,)` or `(n, m)`."""
        part = self._in(period)
        if not isinstance(part, Drifting):
            return self._ask(part, points, context)
        u = min(age / part.over, 1.0)
        return np.asarray((1.0 - u) * self._ask(part.begin, points, context) + u * self._ask(part.end, points, context))

    def of_trial(self, period: int, age: int, arm: int | None, point: Array, context: Array | None) -> Any:
        """What is true of one point, a number or `(m,)`."""
        if arm is not None and self._keeps:
            return self.of_arms(period, age, context)[arm]
        return self.of_points(period, age, point[None], context)[0]

    def _of_arms(self, function: Function, context: Array | None) -> Array:
        if not self._keeps:
            return self._ask(function, self._domain.points, context)  # type: ignore[union-attr]  # asked of arms alone
        key = (id(function), b"" if context is None else context.tobytes())  # it is in `periods` for good
        known = self._table.get(key)
        if known is None:
            known = frozen(self._ask(function, self._domain.points, context))  # type: ignore[union-attr]
            self._kept += known.size
            if self._kept > MOST_KEPT and self._contexts is not None:
                self._table, self._kept = {}, known.size
            self._table[key] = known
        return known

    def _ask(self, function: Function, points: Array, context: Array | None) -> Array:
        seen = None if context is None else np.repeat(context[None], len(points), axis=0)
        values = called(f"{self._name}(points)", function, points, seen)
        return self._rewards(values, points) if self._name == "reward" else self._limits(values, points)

    def _rewards(self, values: Array, points: Array) -> Array:
        if values.shape != (len(points),):
            raise InvalidInput(
                f"`reward` returned shape {values.shape} for points of shape {points.shape}; it must be "
                f"({len(points)},): one number for each row. For 1-d points use `points[:, 0]` inside the function."
            )
        return values

    def _limits(self, values: Array, points: Array) -> Array:
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
        """How many numbers the first function has for a point: m."""
        if self._count is None:
            domain = self._domain
            point = domain.points[:1] if isinstance(domain, Arms) else domain.lower[None]
            self.of_points(0, 0, domain.snap(point) if isinstance(domain, Space) else point, context)
        return 0 if self._count is None else self._count


def called(name: str, function: Function, points: Array, contexts: Array | None) -> Array:
    """What a function says of points: asked of all at once, or one by one where it knows single points alone."""
    several: Any = function(points) if contexts is None else function(points, contexts)
    values = finite_array(name, several)
    if values.ndim and (values.size != 1 or len(points) == 1):
        return values
    if len(points) == 1:
        return values[None]
    seen = [()] * len(points) if contexts is None else [(context,) for context in contexts]
    return finite_array(name, [function(point, *context) for point, context in zip(points, seen, strict=True)])  # type: ignore[arg-type]  # refused there


def checked_changes(change_points: Sequence[int] | None, *, rewards: int, limits: int) -> tuple[int, ...]:
    """Change points that go with so many reward and constraint functions."""
    why = "They are rounds, counted from 0."
    given = [] if change_points is None else listed("change_points", change_points, why=why)
    rounds = tuple(integer("change_points", round_, low=1, why=why) for round_ in given)
    if list(rounds) != sorted(set(rounds)):
        raise InvalidInput(f"`change_points` are {shown(list(rounds))}: they must be in ascending order, each once.")
    for count, kind in ((rewards, "reward"), (limits, "constraint")):
        # One function is for all periods, as long as there is another channel that changes.
        if len(rounds) + 1 != count and (count != 1 or max(rewards, limits) == 1):
            raise InvalidInput(
                f"{many(count, f'{kind} function')} and {many(len(rounds), 'change point')} do not go together: there "
                "is one function more than there are changes."
            )
    return rounds
