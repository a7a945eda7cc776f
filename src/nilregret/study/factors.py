"""Factors: the parameters and context columns of a study as independent inputs, each driven by a number in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from .._utils.checks import Array
from ..domains.domain import Arms, Domain, Space
from ..domains.parameters import Choice, Int
from ..errors import InvalidInput
from .direction import AnyPolicy
from .function import Axis, axes, space_of


class Factor(NamedTuple):
    """An input that varies apart from all others.

    Attributes:
        name: shown to people.
        values: the columns that the factor may have, `(m, columns)`, all equally likely. None for a real coordinate.
        columns: its columns in a (context, point) row.
        low: lower end of a real coordinate.
        high: upper end of a real coordinate.
    """

    name: str
    values: Array | None
    columns: Sequence[int]
    low: float = 0.0
    high: float = 1.0

    def at(self, shares: Array) -> Array:
        """Returns the columns at numbers in [0, 1], `(n, columns)`."""
        if self.values is None:
            return (self.low + shares * (self.high - self.low))[:, None]
        return self.values[np.minimum((shares * len(self.values)).astype(np.intp), len(self.values) - 1)]


@final
class Factors:
    """The factors of a study: those of its contexts first, then those of its points.

    Arms that are a full grid have a factor for each coordinate. All other arms are one factor, since their coordinates
    do not vary independently. A conditional parameter varies on, and counts only where it is active.

    Args:
        policy: the policy of the study.
    """

    def __init__(self, policy: AnyPolicy) -> None:
        self._domain, self._context = policy.domain, policy.context
        self._before = 0 if self._context is None else self._context.dimension
        self.each = [] if self._context is None else _factors(self._context, 0, "context")
        self.contexts = len(self.each)
        self.each += _factors(self._domain, self._before, "arm")

    @property
    def names(self) -> list[str]:
        """The names of all factors."""
        return [factor.name for factor in self.each]

    def rows(self, shares: Array) -> tuple[Array, Array | None]:
        """Returns points `(n, d)` and their contexts `(n, c)`, or None, at numbers in [0, 1], `(n, factors)`."""
        rows = np.empty((len(shares), self._before + self._domain.dimension))
        for factor, share in zip(self.each, shares.T, strict=True):
            rows[:, factor.columns] = factor.at(share)
        points, contexts = rows[:, self._before :], rows[:, : self._before]
        return _settled(self._domain, points), None if self._context is None else _settled(self._context, contexts)


def _settled(domain: Domain, points: Array) -> Array:
    """Returns points whose inactive parameters are at their place."""
    space = space_of(domain)
    return points if space is None or space.conditions is None else space.conditions.centre_inactive(points)


def _factors(domain: Domain, first: int, word: str) -> list[Factor]:
    """Returns the factors of a domain whose columns begin at `first`."""
    if isinstance(domain, Arms):
        each = _of_arms(domain, first)
        whole = range(first, first + domain.dimension)
        return [Factor(word, domain.points, whole)] if each is None else each
    found = [_factor(axis, first, isinstance(domain, Space)) for axis in axes(domain)]
    return (
        [f._replace(name=f"{word}{f.name.removeprefix('point')}") for f in found] if _unnamed(domain, word) else found
    )


def _unnamed(domain: Domain, word: str) -> bool:
    return word == "context" and space_of(domain) is None


def _factor(axis: Axis, first: int, encoded: bool) -> Factor:
    parameter = axis.parameter
    columns = range(first + axis.columns.start, first + axis.columns.stop)
    if isinstance(parameter, Choice) or (isinstance(parameter, Int) and not parameter.log and parameter.count <= 1000):
        values = parameter.values(1000)
        return Factor(axis.name, np.array([parameter.encode(value) for value in values]), columns)
    if isinstance(parameter, Int):  # Whole numbers on a logarithmic scale are as likely as their part of the scale.
        even = np.linspace(0.0, 1.0, 1001)
        return Factor(
            axis.name, np.array([parameter.encode(parameter.decode(even[i : i + 1])) for i in range(1001)]), columns
        )
    low, high = (0.0, 1.0) if encoded else (parameter.low, parameter.high)
    return Factor(axis.name, None, columns, low, high)


def _of_arms(domain: Arms, first: int) -> list[Factor] | None:
    """Returns a factor for each coordinate of a full grid, or None for other arms."""
    found, count = [], 1
    space = space_of(domain)
    conditional = space is not None and space.conditions is not None
    for axis in axes(domain):
        values = np.unique(domain.points[:, axis.columns], axis=0)
        columns = range(first + axis.columns.start, first + axis.columns.stop)
        found.append(Factor(axis.name, values, columns))
        count *= len(values)
    full = count == len(np.unique(domain.points, axis=0))
    return found if full and not conditional else None


def check_several(factors: Factors) -> None:
    """Raises `InvalidInput` unless there are two factors or more."""
    if len(factors.each) < 2:
        of = factors.names[0] if factors.each else "point"
        raise InvalidInput(
            f"There is only one thing that varies, {of}, so importance has nothing to compare.",
            advice="Arms count as one unless they are a full grid, such as `Space(...).grid(9)`.",
        )
