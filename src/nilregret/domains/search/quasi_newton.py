"""Local maxima in the unit cube from several starts: projected quasi-Newton steps, with gradients in batches.

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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array

ENOUGH = 1e-4  # share of the predicted rise for which a step is accepted (Armijo)
DAMPING = 0.2  # least share of the old curvature along a step (Powell)
STEEPEST = 1e100  # largest slope, beyond which slopes are clipped
LONGEST = 0.5  # longest step, in sides of the cube
SHORTER = 0.5  # largest step after one that was not accepted, as a share of it
SHORTEST = 1e-5  # step in sides of the cube below which a start is dropped
AWAY = 1e-3  # cosine between step and gradient below which the gradient itself is followed
FINISHED = 1e-7  # predicted rise, as a share of `unit`, below which a start has arrived
PATIENCE = 3.0  # multiple of the predicted rise within which a start must come up to the best
STRETCHED = 1e-4  # least curvature of a coordinate at first, as a share of the largest

Index = npt.NDArray[np.intp]
Slopes = Callable[[Array, Index], tuple[Array, Array]]  # points (k, d), starts -> values (k,), gradients (k, d)


def ascend(
    slopes: Slopes, starts: Array, *, radius: float, reach: float, best: float, unit: float, evaluations: int,
    resolution: float = 0.0,
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
    """
    moving = np.arange(len(starts))
    value, gradient = _climbable(*slopes(starts, moving))
    climbers = _Climbers(starts.copy(), value, gradient, radius)
    enough = max(resolution, FINISHED * unit)
    counted = len(starts)
    for _ in range(evaluations - 1):
        moving = climbers.promising(moving, reach=reach, best=best, enough=enough, ahead=resolution)
        if not len(moving):
            break
        trial = climbers.trial(moving)
        climbers.judge(moving, trial, *_climbable(*slopes(trial, moving)))
        counted += len(moving)
    return climbers.at, climbers.value, counted


def _climbable(value: Array, gradient: Array) -> tuple[Array, Array]:
    """Returns finite slopes with finite squares. A standard deviation of 0 may have no slope."""
    if not np.isfinite(gradient.sum()):
        gradient = np.nan_to_num(gradient)
    return value, between(gradient, -STEEPEST, STEEPEST)


@final
@dataclass
class _Climbers:
    at: Array
    value: Array
    gradient: Array
    radius: float

    def __post_init__(self) -> None:
        m, d = self.at.shape
        shape = _shape(self.gradient)
        lengths = np.maximum(_lengths(self.gradient / shape), 1e-300)
        self.bend = np.multiply.outer(lengths / self.radius, np.diag(shape))  # steps of length `radius`
        self.fresh = np.ones(m, dtype=bool)  # B has no curvature yet
        self.longest = np.full(m, LONGEST)  # length of the longest step that is tried
        self.uphill = np.zeros((m, d))  # the gradient in the free coordinates
        self.slope = np.zeros(m)  # length of `uphill`
        self.step = np.zeros((m, d))
        self.rise = np.zeros(m)  # predicted by g and p
        self._aim(np.arange(m))

    def _aim(self, who: Index) -> None:
        """Computes the full steps from the present points."""
        at, gradient = self.at[who], self.gradient[who]
        held = ((at <= 0.0) & (gradient <= 0.0)) | ((at >= 1.0) & (gradient >= 0.0))
        uphill = np.where(held, 0.0, gradient)
        bend = np.where(held[:, :, None] | held[:, None, :], np.eye(at.shape[1]), self.bend[who])
        step = np.linalg.solve(bend, uphill[:, :, None])[:, :, 0]
        step = np.where(held, 0.0, step)
        # The part of the step within the sides must lead upwards, otherwise the gradient replaces the step.
        left = between(at + step, 0.0, 1.0) - at
        norms = _lengths(uphill)
        poor = np.einsum("ij,ij->i", left, uphill) <= AWAY * norms * _lengths(left)
        if poor.any():
            step[poor] = uphill[poor] * (self.radius / np.maximum(norms[poor], 1e-300))[:, None]
        longest = self.longest[who]
        step *= (longest / np.maximum(_lengths(step), longest))[:, None]
        self.step[who], self.uphill[who], self.slope[who] = step, uphill, norms
        self.rise[who] = np.einsum("ij,ij->i", uphill, step)

    def promising(self, who: Index, *, reach: float, best: float, enough: float, ahead: float) -> Index:
        """Returns the starts that have not arrived and may still pass the best by `ahead`."""
        rise = self.rise[who]
        far = np.where(self.fresh[who], np.inf, PATIENCE * rise)  # B has no curvature at first
        bound = self.value[who] + np.minimum(reach * self.slope[who], far)
        going = (rise > enough) & (bound >= max(best, float(self.value.max())) + ahead) & (self.longest[who] > SHORTEST)
        return who[going]

    def trial(self, who: Index) -> Array:
        """Returns the points to evaluate next."""
        return between(self.at[who] + self.step[who], 0.0, 1.0)

    def judge(self, who: Index, trial: Array, value: Array, gradient: Array) -> None:
        """Accepts the points that rise enough, and shortens the steps of the others. All show the curvature."""
        moved = trial - self.at[who]
        promised = np.einsum("ij,ij->i", moved, self.gradient[who])
        risen = value - self.value[who]
        accepted = risen >= ENOUGH * promised
        self._learn(who, moved, self.gradient[who] - gradient, known=np.isfinite(value))
        self.longest[who] = np.where(accepted, LONGEST, SHORTER * _lengths(moved))
        rising = who[accepted]
        self.at[rising], self.value[rising] = trial[accepted], value[accepted]
        self.gradient[rising] = gradient[accepted]
        self._aim(who)

    def _learn(self, who: Index, s: Array, y: Array, *, known: npt.NDArray[np.bool_]) -> None:
        """Applies damped BFGS for a move s and the change y of minus the gradient, if it is known."""
        if not known.all():
            who, s, y = who[known], s[known], y[known]
        curved = np.einsum("ij,ij->i", s, y)
        first = self.fresh[who] & (curved > 0.0)
        if first.any():  # the first B gets the right size along s
            who_first, s_first = who[first], s[first]
            along = np.einsum("ij,ijk,ik->i", s_first, self.bend[who_first], s_first)
            self.bend[who_first] *= (curved[first] / along)[:, None, None]
        self.fresh[who] = False
        bend = self.bend[who]
        Bs = np.einsum("ijk,ik->ij", bend, s)
        sBs = np.einsum("ij,ij->i", s, Bs)
        weight = np.ones(len(who))
        low = curved < DAMPING * sBs
        weight[low] = (1.0 - DAMPING) * sBs[low] / (sBs - curved)[low]
        r = weight[:, None] * y + (1.0 - weight)[:, None] * Bs
        sr = np.einsum("ij,ij->i", s, r)
        known = (sBs > 0.0) & (sr > 0.0)
        if not known.all():
            who, bend, Bs, sBs, r, sr = who[known], bend[known], Bs[known], sBs[known], r[known], sr[known]
        bend += r[:, :, None] * (r / sr[:, None])[:, None, :] - Bs[:, :, None] * (Bs / sBs[:, None])[:, None, :]
        self.bend[who] = bend


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


def _lengths(rows: Array) -> Array:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))
