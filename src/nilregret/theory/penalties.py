"""Penalty functions psi of Shi & Eryilmaz 2022, and a check of Assumption 2.

| symbol | name | meaning | shape |
|---|---|---|---|
| g, x | `g`, `violation` | a constraint value and its positive part | (n,) |
| psi | | 1 where satisfied, growing with the violation | (n,) |
| psi_+^{-1} | `inverse` | violation at which psi has a given value, of eq. (12) | |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, finite_array, number, settle, shown
from ..errors import InvalidInput
from ..serialize import description

LARGEST = 1e6  # upper limit of multipliers and of psi, far beyond any feasible point
TOLERANCE = 1e-9  # relative tolerance of the checks, which must accept a psi exactly at the border
CHECKED = np.concatenate([[0.0], np.logspace(-4.0, 4.0, 65)])  # violations at which Assumption 2 is checked


class PenaltyFunction(ABC):
    """psi of Algorithm 2: 1 for g <= 0, and exp of `log_of` for violations x = g > 0.

    Assumption 2 wants psi convex, strictly increasing for x >= 0 with psi(0) = 1, and psi(x) psi(y) >= psi(x + y). A
    psi of your own is a frozen dataclass, decorated with `nilregret.slots.described` so that it can be stored:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import nilregret as nr
    >>> from nilregret.slots import described
    >>> @described
    ... @dataclass(frozen=True)
    ... class SecondOrder(nr.slots.PenaltyFunction):
    ...     c: float = 1.0
    ...
    ...     def log_of(self, violation):
    ...         x = self.c * violation
    ...         return np.log1p(x + 0.5 * x**2)
    >>> SecondOrder(2.0)([-1.0, 0.0, 1.0]).round(9)
    array([1., 1., 5.])
    """

    @abstractmethod
    def log_of(self, violation: Array) -> Array:
        """Returns log psi(x) at violations x >= 0, elementwise, an array of their shape.

        Infinity is allowed if psi is huge. The logarithm lets a steep psi be limited before it overflows.
        """

    @final
    def __call__(self, g: npt.ArrayLike) -> Array:
        """Returns psi(g), elementwise, for constraint values g of any sign. It is infinite on overflow."""
        violation = np.maximum(finite_array("g", g), 0.0)
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.log_of(violation)))

    def inverse(self, value: float) -> float:
        """Returns psi_+^{-1}: the violation x >= 0 at which psi is `value` >= 1."""
        target = math.log(number("value", value, low=1.0, why="psi is at least 1."))
        if target == 0.0:
            return 0.0
        low, high = 0.0, 1.0
        while self._log_at(high) < target:
            low, high = high, 2.0 * high
            if high > 1e300:
                raise InvalidInput(
                    f"{shown(self)} stays below {value:g} however large the violation: it has no inverse there."
                )
        while low == 0.0 and high > 1e-300 and self._log_at(0.5 * high) >= target:
            high *= 0.5
        low = max(low, 0.5 * high)
        for _ in range(60):  # 60 halvings of one binade leave no rounding error.
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self._log_at(middle) >= target else (middle, high)
        return high

    def _log_at(self, violation: float) -> float:
        with np.errstate(over="ignore"):
            return float(self.log_of(np.array([violation]))[0])


@final
@description(frozen=True)
class ExponentialPenalty(PenaltyFunction):
    """Eq. (10): exp(c x), c > 0 per unit of g. It gives the smallest bound on the violation."""

    c: float = 1.0

    def __post_init__(self) -> None:
        settle(self, c=number("c", self.c, low=0.0, open_low=True))

    def log_of(self, violation: Array) -> Array:
        """Returns c x."""
        return self.c * violation

    def inverse(self, value: float) -> float:
        """Returns log(value) / c."""
        return math.log(number("value", value, low=1.0, why="psi is at least 1.")) / self.c


@final
@description(frozen=True)
class PowerPenalty(PenaltyFunction):
    """Eq. (9): (c x + 1)^n, c > 0 per unit of g, n >= 1. A sublinear bound on the violation needs n > 1."""

    c: float = 1.0
    n: float = 2.0

    def __post_init__(self) -> None:
        settle(self, c=number("c", self.c, low=0.0, open_low=True))
        settle(self, n=number("n", self.n, low=1.0))

    def log_of(self, violation: Array) -> Array:
        """Returns n log(c x + 1)."""
        return np.asarray(self.n * np.log1p(self.c * violation))

    def inverse(self, value: float) -> float:
        """Returns (value^(1 / n) - 1) / c."""
        return math.expm1(math.log(number("value", value, low=1.0, why="psi is at least 1.")) / self.n) / self.c


def check_assumption_2(psi: PenaltyFunction) -> None:
    """Raises `InvalidInput` for a psi that breaks Assumption 2.

    The violations tested are 0, 1e-4 .. 1e4, up to psi = `LARGEST`.
    """
    logs = _logs(psi, CHECKED)
    if abs(logs[0]) > TOLERANCE:
        raise _broken(psi, f"psi(0) is {math.exp(min(logs[0], 700.0)):.6g} and must be 1: meeting costs nothing")
    beyond = np.flatnonzero(~(logs <= math.log(LARGEST)))
    end = int(beyond[0]) if beyond.size else len(logs)
    x, h = CHECKED[:end], logs[:end]
    falling = np.flatnonzero(np.diff(logs[: end + 1]) <= 0.0)
    if falling.size or len(beyond) < len(logs) - end:
        at = CHECKED[falling[0] if falling.size else end]
        raise _broken(psi, f"psi does not increase strictly beyond x = {at:.4g}")
    slopes = np.diff(np.expm1(h)) / np.diff(x)
    rounding = 8.0 * np.finfo(float).eps * np.exp(h[1:]) / np.diff(x)  # rounding error of differences of psi
    bent = np.flatnonzero(slopes[1:] < slopes[:-1] * (1.0 - TOLERANCE) - rounding[:-1] - rounding[1:])
    if bent.size:
        raise _broken(psi, f"psi is not convex near x = {x[bent[0] + 1]:.4g}")
    product = h[:, None] + h[None, :]
    together = _logs(psi, (x[:, None] + x[None, :]).reshape(-1)).reshape(product.shape)
    wrong = np.argwhere(together > product + TOLERANCE * (1.0 + product))
    if wrong.size:
        first, second = x[wrong[0]]
        raise _broken(psi, f"psi(x) psi(y) < psi(x + y) at x = {first:.4g}, y = {second:.4g}")


def _logs(psi: PenaltyFunction, violations: Array) -> Array:
    with np.errstate(over="ignore"):
        logs = np.asarray(psi.log_of(violations.copy()))
    if logs.shape != violations.shape or logs.dtype.kind not in "fiu" or np.isnan(logs).any():
        raise InvalidInput(
            f"`log_of` of {shown(psi)} must give one number for each violation, an array of their shape without NaN; "
            f"it gave shape {logs.shape} of {logs.dtype} for shape {violations.shape}. Write it with numpy functions."
        )
    return logs.astype(np.float64)


def _broken(psi: PenaltyFunction, what: str) -> InvalidInput:
    return InvalidInput(
        f"{shown(psi)} does not meet Assumption 2 of Shi & Eryilmaz: {what}. Without it neither regret nor violation "
        "is bounded. exp(c x), (c x + 1)^n with n >= 1, and products of such functions meet it."
    )
