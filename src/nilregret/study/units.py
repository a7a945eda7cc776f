"""Rows that belong to units: visitors or machines that come back, so that their rewards are alike.

| symbol | name | meaning | shape |
|---|---|---|---|
| u | `units` | a number for each row, the same for rows of one unit | (n,) |
| J | | number of units | |
| n_j | | rows of unit j | (J,) |
| rho | | correlation of two rewards of one unit at one arm | |

All intervals that are drawn from decisions get their sums and counts here. Without units `units` is None.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .._utils.checks import Array, IndexArray
from ..storage.trial import Trial


def units_of(values: Iterable[object]) -> IndexArray | None:
    """Returns a number of the unit of each row `(n,)`, or None if no two rows are of one unit.

    Args:
        values: name of the unit of each row. A row with None, NaN or an empty text is a unit by itself.
    """
    known: dict[object, int] = {}
    found: list[int] = []
    for row, value in enumerate(values):
        key = value if isinstance(value, Hashable) else repr(value)
        alone = key is None or key == "" or key != key
        found.append(known.setdefault((row,) if alone else (key, None), len(known)))
    return np.array(found, dtype=np.intp) if len(known) < len(found) else None


def sums(values: Array, units: IndexArray) -> Array:
    """Returns the sum of the values of each unit, `(J,)`. Numbers of units are at least 0, and some may be missing."""
    return np.asarray(np.bincount(units, values), dtype=np.float64)[np.bincount(units) > 0]


def error_of_mean(values: Array, units: IndexArray | None) -> float:
    """Returns the standard error of a mean of values `(n,)`, robust to clusters (Liang & Zeger, 1986)."""
    if units is None:
        return float(values.std() / np.sqrt(len(values)))
    return math.sqrt(sum_of_squares(values - values.mean(), units)) / len(values)


def sum_of_squares(values: Array, units: IndexArray | None) -> float:
    """Returns the sum of squares of values `(n,)`, or of the sums of each unit."""
    each = values if units is None else sums(values, units)
    return float((each**2).sum())


def visits(units: IndexArray | None) -> float:
    """Returns sum n_j^2 / n, the mean over rows of the number of rows of their unit. It is 1 without units.

    The variance of a mean is at most this many times that of independent rows (Kish, 1965, design effect).
    """
    if units is None or not len(units):
        return 1.0
    return sum_of_squares(np.ones(len(units)), units) / len(units)


def earlier(units: IndexArray, plays: IndexArray) -> Array:
    """Returns the number of plays of the same unit before each row, `(n,)`.

    Args:
        units: `(n,)`.
        plays: of each row, `(n,)`.
    """
    order = np.argsort(units, kind="stable")
    before = np.cumsum(plays[order]) - plays[order]
    starts = np.flatnonzero(np.diff(units[order], prepend=units[order][0] - 1))
    found = np.empty(len(units))
    found[order] = before - np.repeat(before[starts], np.diff(np.append(starts, len(units))))
    return found


def correlation(rewards: Array, arms: IndexArray, units: IndexArray) -> float:
    """Returns the estimated correlation of two rewards of one unit at one arm, within [0, 1].

    It is the estimate of an analysis of variance with units within arms (Searle, Casella & McCulloch, 1992,
    chapter 3, and Donner & Koval, 1980). If the data cannot tell, it is 1: then a unit says as much as one row.

    Args:
        rewards: `(n,)`.
        arms: played in each row, `(n,)`.
        units: `(n,)`.
    """
    arm = np.unique(arms, return_inverse=True)[1]
    _, first, cell = np.unique(np.column_stack([arm, units]), axis=0, return_index=True, return_inverse=True)
    cell, of_cell = cell.reshape(-1), arm[first]
    n, cells, groups = len(rewards), len(first), int(arm.max()) + 1
    if n == cells:
        return 0.0  # No arm was played twice for a unit.
    if cells == groups:
        return 1.0
    sizes, totals = np.bincount(cell), np.bincount(arm)
    means, grand = np.bincount(cell, rewards) / sizes, np.bincount(arm, rewards) / totals
    between = float(sizes @ (means - grand[of_cell]) ** 2) / (cells - groups)
    within = float(((rewards - means[cell]) ** 2).sum()) / (n - cells)
    size = (n - float((sizes**2 / totals[of_cell]).sum())) / (cells - groups)
    shared = max(0.0, (between - within) / size)
    return shared / (shared + within) if shared > 0.0 else 0.0


def trial_units(trials: Sequence[Trial]) -> IndexArray | None:
    """Returns the number of the first trial of the unit of each trial, `(n,)`, or None if no unit visits twice."""
    if all(trial.visit is None for trial in trials):
        return None
    found = np.array([trial.number if trial.unit is None else trial.unit for trial in trials], dtype=np.intp)
    return found if len(np.unique(found)) < len(found) else None


class Shared(NamedTuple):
    """Dependence of the answered trials of units.

    Attributes:
        units: of the trials, `(n,)`, or None if no unit visits twice.
        correlation: of two rewards of one unit at one arm.
        doubt: factor of the deviations of a mean, which the posterior computes as if all rewards were independent.
    """

    units: IndexArray | None
    correlation: float
    doubt: float

    @property
    def said(self) -> tuple[int, float] | None:
        """Number of units and the correlation, or None."""
        return None if self.units is None else (len(np.unique(self.units)), self.correlation)

    def chance(self, noise: float, plays: IndexArray, recent: int = 0) -> Array:
        """Returns the variance of the sum of the noise up to each trial, `(n,)`, of the latest trials if `recent`.

        A play adds its own variance and twice the covariances with earlier plays of its unit.
        """
        plays = plays[-recent:]
        if self.units is None:
            return np.asarray(noise**2 * np.cumsum(plays))
        pairs = plays * earlier(self.units[-recent:], plays)
        return np.asarray(noise**2 * np.cumsum(plays + 2.0 * self.correlation * pairs))


def shared_of(answered: Sequence[Trial], rewards: Array) -> Shared:
    """Returns what trials of one unit have in common, by rewards of one play `(n,)`."""
    units = trial_units(answered)
    if units is None:
        return Shared(None, 0.0, 1.0)
    known: dict[bytes, int] = {}
    arms = np.array([known.setdefault(trial.point.tobytes(), len(known)) for trial in answered], dtype=np.intp)
    found = correlation(rewards, arms, units)
    return Shared(units, found, math.sqrt(1.0 + found * (visits(units) - 1.0)))
