"""Local maxima from several starts: projected quasi-Newton steps in the unit cube, and SLSQP within limits.

In the unit cube gradients come in batches:

| symbol | name | meaning | shape |
|---|---|---|---|
| u | `at` | present point of each start | (m, d) |
| f, g | `value`, `gradient` | of the score there | (m,), (m, d) |
| B | `bend` | positive definite approximation of minus the Hessian | (m, d, d) |
| p | `step` | B^{-1} g in the coordinates that are not held by a side | (m, d) |

The gradient of one point costs about as much as those of ten, since the factor of the posterior is read once either
way. BFGS with Powell's damping (Nocedal & Wright 2006, procedure 18.2) keeps B positive definite where the score is not
concave. A step is accepted by Armijo's rule after projection (Bertsekas 1982). A step that is not accepted shows the
curvature too, and halves the next one.

The first B is diagonal. Coordinates in which all starts have steep slopes get large curvatures, so ridges that run
along a coordinate need no more steps than round hills.

Within the limits of a space the steps are those of sequential quadratic programming (Kraft 1988, SLSQP of SciPy).
The end of an ascent is then moved onto the limits (`feasible.Region.kept`), so that it keeps them to all digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array
from .feasible import Region

ENOUGH = 1e-4  # share of the predicted rise for which a step is accepted (Armijo)
DAMPING = 0.2  # least share of the old curvature along a step (Powell)
STEEPEST = 1e100  # largest slope, beyond which slopes are clipped
LONGEST = 0.5  # longest step, in sides of the cube
SHORTER = 0.5  # largest step after one that was not accepted, as a share of it
SHORTEST = 1e-5  # step in sides of the cube below which a start is dropped
AWAY = 1e-3  # cosine between step and gradient below which the gradient itself is followed
FINISHED = 1e-7  # predicted rise, as a share of `unit`, below which a start has arrived
PATIENCE = 3.0  # multiple of the predicted rise within which a start must come up to the best, if not given
STRETCHED = 1e-4  # least curvature of a coordinate at first, as a share of the largest

Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Slopes = Callable[[Array, Index], tuple[Array, Array]]  # points (k, d), starts -> values (k,), gradients (k, d)


def ascend(
    slopes: Slopes, starts: Array, *, radius: float, reach: float, best: float, unit: float, evaluations: int,
    resolution: float = 0.0, patience: float = PATIENCE,
) -> tuple[Array, Array, int]:  # fmt: skip
    """Returns the final points of the starts, their values, and the number of points evaluated.

    Args:
        slopes: score and gradient in u.
        starts: `(m, d)`, in the unit cube.
        radius: length of the first step.
        reach: distance along its slope within which a start must be able to come up to the best one, or it is
            dropped.
        best: best value known elsewhere.
        unit: scale of the score.
        evaluations: largest number for each start.
        resolution: difference of the score that does not matter, or 0 for a small share of `unit`.
        patience: multiple of the predicted rise within which a start must come up to the best.
    """
    moving = np.arange(len(starts))
    climbers = _Climbers(starts, *_climbable(*slopes(starts, moving)), radius)
    at, value = climbers.at.copy(), climbers.value.copy()
    enough = max(resolution, FINISHED * unit)
    counted = len(starts)
    for _ in range(evaluations - 1):
        going = climbers.promising(reach=reach, best=best, enough=enough, ahead=resolution, patience=patience)
        if np.count_nonzero(going) < len(going):
            at[moving], value[moving] = climbers.at, climbers.value
            moving = moving[going]
            climbers.keep(going)
            if not len(moving):
                break
        climbers.judge(*_climbable(*slopes(climbers.trial, moving)))
        counted += len(moving)
    at[moving], value[moving] = climbers.at, climbers.value
    return at, value, counted


def _climbable(value: Array, gradient: Array) -> tuple[Array, Array]:
    """Returns finite slopes with finite squares. A standard deviation of 0 may have no slope."""
    if np.vdot(gradient, gradient) <= STEEPEST:
        return value, gradient
    return value, between(np.nan_to_num(gradient), -STEEPEST, STEEPEST)


@final
class _Climbers:
    """The starts that still move, m of them."""

    STATE = ("at", "value", "gradient", "bend", "fresh", "longest", "slope", "trial", "rise")

    def __init__(self, at: Array, value: Array, gradient: Array, radius: float) -> None:
        self.at, self.value, self.gradient, self.radius = at, value, gradient, radius
        m, d = at.shape
        shape = _shape(gradient)
        lengths = np.maximum(_lengths(gradient / shape), 1e-300)
        self.bend = np.multiply.outer(lengths / radius, np.diag(shape))  # steps of length `radius`
        self.fresh = np.ones(m, dtype=bool)  # B has no curvature yet
        self.longest = np.full(m, LONGEST)  # length of the longest step that is tried
        self.unit = np.eye(d)
        self._aim()

    def keep(self, going: Mask) -> None:
        """Drops the other starts."""
        for name in self.STATE:
            setattr(self, name, getattr(self, name)[going])

    def _aim(self) -> None:
        """Computes the full steps from the present points, the slopes there, and the predicted rises."""
        at, uphill, bend = self.at, self.gradient, self.bend
        held = ((at <= 0.0) & (uphill <= 0.0)) | ((at >= 1.0) & (uphill >= 0.0))
        if any_held := np.count_nonzero(held):  # quicker than `any` and `all` for few numbers
            uphill = np.where(held, 0.0, uphill)
            bend = np.where(held[:, :, None] | held[:, None, :], self.unit, bend)
        try:
            step = np.asarray(np.linalg.solve(bend, uphill[:, :, None])[:, :, 0], dtype=np.float64)
        except np.linalg.LinAlgError:  # Curvatures of very different sizes. The gradient replaces every step.
            step = np.zeros_like(uphill)
        if any_held:
            step = np.where(held, 0.0, step)
        # The part of the step within the sides must lead upwards, otherwise the gradient replaces the step.
        left = between(at + step, 0.0, 1.0) - at
        norms = _lengths(uphill)
        poor = _products(left, uphill) <= AWAY * norms * _lengths(left)
        if np.count_nonzero(poor):
            step[poor] = uphill[poor] * (self.radius / np.maximum(norms[poor], 1e-300))[:, None]
        step *= (self.longest / np.maximum(_lengths(step), self.longest))[:, None]
        self.trial, self.slope, self.rise = between(at + step, 0.0, 1.0), norms, _products(uphill, step)

    def promising(self, *, reach: float, best: float, enough: float, ahead: float, patience: float) -> Mask:
        """Returns which starts have not arrived and may still pass the best by `ahead`."""
        far = np.where(self.fresh, np.inf, patience * self.rise)  # B has no curvature at first
        bound = self.value + np.minimum(reach * self.slope, far)
        least = max(best, float(self.value.max())) + ahead
        return np.asarray((self.rise > enough) & (bound >= least) & (self.longest > SHORTEST))

    def judge(self, value: Array, gradient: Array) -> None:
        """Accepts the trials that rise enough, and shortens the steps of the others. All show the curvature."""
        trial = self.trial
        moved, turned = trial - self.at, self.gradient - gradient
        accepted = value - self.value >= ENOUGH * _products(moved, self.gradient)
        known = np.isfinite(value)
        if np.count_nonzero(known) == len(known):
            self.bend = _learned(self.bend, self.fresh, moved, turned)
            self.fresh = ~known
        else:
            self.bend[known] = _learned(self.bend[known], self.fresh[known], moved[known], turned[known])
            self.fresh = self.fresh & ~known
        if np.count_nonzero(accepted) == len(accepted):
            self.at, self.value, self.gradient = trial, value, np.ascontiguousarray(gradient)
            self.longest = np.full(len(value), LONGEST)
        else:
            self.longest = np.where(accepted, LONGEST, SHORTER * _lengths(moved))
            self.value = np.where(accepted, value, self.value)
            self.at, self.gradient = (
                np.where(accepted[:, None], new, old) for new, old in ((trial, self.at), (gradient, self.gradient))
            )
        self._aim()


def _learned(bend: Array, fresh: Mask, s: Array, y: Array) -> Array:
    """Returns B `(m, d, d)` after moves s and changes y of minus the gradient `(m, d)`, by damped BFGS."""
    curved = _products(s, y)
    first = fresh & (curved > 0.0)
    if np.count_nonzero(first):  # the first B gets the right size along s
        bend, along = bend.copy(), np.einsum("ij,ijk,ik->i", s[first], bend[first], s[first])
        bend[first] *= (curved[first] / along)[:, None, None]
    Bs = np.einsum("ijk,ik->ij", bend, s)
    sBs = _products(s, Bs)
    low = curved < DAMPING * sBs
    r = y
    if np.count_nonzero(low):
        weight = np.ones(len(s))
        weight[low] = (1.0 - DAMPING) * sBs[low] / (sBs - curved)[low]
        r = weight[:, None] * y + (1.0 - weight)[:, None] * Bs
    sr = _products(s, r)
    sound = (sBs > 0.0) & (sr > 0.0)
    if np.count_nonzero(sound) < len(sound):
        result = bend.copy()
        result[sound] += _change(r[sound], sr[sound], Bs[sound], sBs[sound])
        return result
    return bend + _change(r, sr, Bs, sBs)


def _change(r: Array, sr: Array, Bs: Array, sBs: Array) -> Array:
    """Returns what BFGS adds to B, `(m, d, d)`."""
    added = r[:, :, None] * (r / sr[:, None])[:, None, :]
    added -= Bs[:, :, None] * (Bs / sBs[:, None])[:, None, :]
    return added


def _shape(gradients: Array) -> Array:
    """Returns curvatures of the coordinates up to a factor, `(d,)`, from the gradients `(m, d)` of all starts.

    A function that changes over a distance l has slopes of size 1 / l and curvatures of size 1 / l^2.
    """
    largest = float(np.abs(gradients).max())
    squares = np.mean(np.square(gradients / largest), axis=0) if largest else np.ones(gradients.shape[1])
    return np.asarray(np.maximum(squares / squares.max(), STRETCHED))


def between(values: Array, low: Array | float, high: Array | float) -> Array:
    """Returns the nearest values of an interval, as `np.clip` does, in a third of its time for few values."""
    return np.asarray(np.minimum(np.maximum(values, low), high))


def _products(rows: Array, others: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->i", rows, others))


def _lengths(rows: Array) -> Array:
    return np.asarray(np.sqrt(_products(rows, rows)))


PRECISE = 1e-10  # change of the score, as a share of its range, at which an ascent ends
FARTHEST = 1e6  # largest gap, in units of its slope, so that all numbers are finite
EXCLUDED = 1e3  # loss of a point whose score is not finite, in ranges of the score

SlopesOfPoint = Callable[[Array], tuple[Array, Array]]


def climb_within(
    region: Region, score: Callable[[Array], Array], slopes: SlopesOfPoint, at: Array, values: Array,
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

    def __init__(self, region: Region, slopes_at: SlopesOfPoint, start: Array, unit: float) -> None:
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
