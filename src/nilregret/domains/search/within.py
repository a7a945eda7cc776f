"""Local maxima within the limits of a space, by sequential quadratic programming (Kraft 1988, SLSQP of SciPy).

The end of an ascent is then moved onto the limits (`feasible.Region.kept`), so that it keeps them to all digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array
from .feasible import Region

PRECISE = 1e-10  # change of the score, as a share of its range, at which an ascent ends
FARTHEST = 1e6  # largest gap, in units of its slope, so that all numbers are finite
EXCLUDED = 1e3  # loss of a point whose score is not finite, in ranges of the score

Slopes = Callable[[Array], tuple[Array, Array]]


def climb_within(
    region: Region, score: Callable[[Array], Array], slopes: Slopes, at: Array, values: Array,
    who: npt.NDArray[np.intp], *, unit: float, steps: int,
) -> int:  # fmt: skip
    """Moves some points uphill in their real columns, in place, and returns the number of points evaluated.

    Args:
        region: that they stay in.
        score: of points `(m, d)`, `(m,)`.
        slopes: returns scores `(m,)` and gradients `(m, d)`.
        at: the points, `(n, d)`, which keep the limits.
        values: their scores, `(n,)`.
        who: which points move.
        unit: range of the scores.
        steps: largest number for each.
    """
    counted, scale = 0, unit if np.isfinite(unit) and unit > 0.0 else 1.0
    for i in who:
        ascent = _Ascent(region, slopes, at[i].copy(), scale)
        end = region.kept(ascent.end(steps)[None], at[i][None])
        counted += ascent.evaluations + 1
        if len(end) and (value := float(score(end)[0])) > values[i]:
            at[i], values[i] = end[0], value
    return counted


@final
class _Ascent:
    """The problem of one start: minus the score in `unit`, and the room that each limit leaves."""

    def __init__(self, region: Region, slopes_at: Slopes, start: Array, unit: float) -> None:
        self.limits, self.slopes_at, self.start, self.unit = region.limits, slopes_at, start, unit
        active = region.space.active(start[None])
        self.free = np.flatnonzero(region.real if active is None else region.real & active[0])
        self.bent = np.setdiff1d(np.flatnonzero(~self.limits.equal), self.limits.straight)
        slopes = self.limits.jacobian(start[None])[0][self.bent] if len(self.bent) else np.zeros((0, 1))
        self.sizes = np.maximum(np.linalg.norm(slopes, axis=1), 1e-9)
        self.A, self.b = self.of_free(region.A, region.b)
        self.G, self.h = self.of_free(*self.limits.linear or (np.zeros((0, len(start))), np.zeros(0)))
        self.evaluations = 0

    def of_free(self, rows: Array, bounds: Array) -> tuple[Array, Array]:
        """Returns rows of length 1 and bounds of those linear limits that have columns that move."""
        moving = rows[:, self.free]
        sizes = np.linalg.norm(moving, axis=1)
        some = sizes > 0.0
        bounds = bounds - np.delete(rows, self.free, axis=1) @ np.delete(self.start, self.free)
        return moving[some] / sizes[some, None], bounds[some] / sizes[some]

    def end(self, steps: int) -> Array:
        """Returns the end of the ascent, `(d,)`, which keeps the limits but for rounding."""
        from scipy import optimize  # slow to import, and only limits need it

        rules: list[dict[str, Any]] = []
        if len(self.G):
            rules.append({"type": "ineq", "fun": lambda x: self.h - self.G @ x, "jac": lambda _: -self.G})
        if len(self.bent):
            rules.append({"type": "ineq", "fun": self.room, "jac": self.room_slopes})
        if len(self.A):
            rules.append({"type": "eq", "fun": lambda x: self.A @ x - self.b, "jac": lambda _: self.A})
        if not len(self.free):
            return self.start
        minimize: Any = optimize.minimize
        found = minimize(
            self.loss, self.start[self.free], jac=True, bounds=[(0.0, 1.0)] * len(self.free), constraints=rules,
            method="SLSQP", options={"maxiter": steps, "ftol": PRECISE},
        ).x  # fmt: skip
        return self.placed(found)[0] if np.isfinite(found).all() else self.start

    def placed(self, x: Array) -> Array:
        """Returns the point with these real columns, `(1, d)`."""
        point = self.start.copy()
        point[self.free] = np.clip(x, 0.0, 1.0)
        return point[None]

    def loss(self, x: Array) -> tuple[float, Array]:
        """Returns minus the score and its slopes."""
        self.evaluations += 1
        values, slopes = self.slopes_at(self.placed(x))
        slope = np.nan_to_num(slopes[0][self.free] / self.unit)
        if not np.isfinite(values[0]):
            return EXCLUDED, 0.0 * slope
        return -float(values[0]) / self.unit, -slope

    def room(self, x: Array) -> Array:
        """Returns minus the gap of each inequality that is not linear, in units of its slope at the start."""
        gaps = self.limits.gaps(self.placed(x))[0][self.bent] / self.sizes
        return np.asarray(-np.clip(np.nan_to_num(gaps, nan=FARTHEST), -FARTHEST, FARTHEST))

    def room_slopes(self, x: Array) -> Array:
        """Returns the slopes of `room`."""
        slopes = self.limits.jacobian(self.placed(x))[0][self.bent][:, self.free]
        return np.asarray(-slopes / self.sizes[:, None])
