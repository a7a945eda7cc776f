"""Newton's method from values alone, for all starts in one batch.

| symbol | name | meaning | shape |
|---|---|---|---|
| u | `at` | the best point of a start so far, in the unit cube | (d,) |
| g, H | `gradient`, `hessian` | of the score at u, by differences | (d,), (d, d) |
| r | `radius` | the model is trusted where no coordinate changes by more | scalar |

A posterior's values at m points cost one pass over its factor for all of them together, hardly more for twenty points
than for two. So every start evaluates, in the same batch, the 1 + 2 d + d (d - 1) / 2 points that determine a parabola,
and moves to where that has its maximum within its trust region and the cube; three batches are usually enough. For few
dimensions: points of a batch grow as d^2, faces of a cube as 3^d.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..checks import Array

STEP = 1e-4  # of the differences, in the unit cube: truncation and rounding both far below what matters
NEWTON = 1e-6  # relative gain expected below which one more step ends at the maximum: its error is squared
ENOUGH = 1e-13  # relative gain expected below which nothing is left to do
LEAST_RADIUS = 1e-6
SAME = 0.2  # radii within which two starts that head for one point are one
HOPE = 2.0  # times the gain that its parabola promises: a start that stays below the best even so is given up


@dataclass
class _Start:
    at: Array
    value: float
    radius: float
    gradient: Array
    hessian: Array
    step: Array
    gain: float = np.inf  # expected of the step
    done: bool = False


def climb(
    values: Callable[[Array], Array], points: Array, scores: Array, *, radius: float, rounds: int, scale: float
) -> tuple[Array, float, int]:
    """The best point that the starts lead to, its value, and how many points were evaluated.

    Args:
        values: `(m, d)` points of the unit cube -> `(m,)`; -inf where a point is not allowed.
        points: starts, `(k, d)`.
        scores: their values, `(k,)`.
        radius: first trust radius.
        rounds: most batches.
        scale: of the values: gains are small or not compared with it.
    """
    d, evaluations = points.shape[1], 0
    zero = np.zeros(d)
    starts = [_Start(u, float(v), radius, zero, np.zeros((d, d)), zero) for u, v in zip(points, scores, strict=True)]
    for _ in range(rounds):
        best = max(starts, key=lambda start: start.value)
        active = _apart([s for s in starts if not s.done and s.value + HOPE * s.gain >= best.value], SAME * radius)
        if not active:
            break
        if all(s.gain <= NEWTON * scale for s in active):
            targets = np.array([s.at + s.step for s in active])
            evaluations += len(targets)
            for start, target, value in zip(active, targets, values(targets), strict=True):
                if value > start.value:
                    start.at, start.value = target, float(value)
            break
        stencils = [_stencil(s.at + s.step) for s in active]
        batch = np.concatenate(stencils)
        evaluations += len(batch)
        for start, stencil, found in zip(active, stencils, np.split(values(batch), len(active)), strict=True):
            _move(start, stencil, found, tiny=ENOUGH * scale)
    best = max(starts, key=lambda start: start.value)
    return best.at, best.value, evaluations


def _apart(starts: list[_Start], least: float) -> list[_Start]:
    """Without those that head for where a better one does."""
    kept: list[_Start] = []
    for start in sorted(starts, key=lambda start: -start.value):
        target = start.at + start.step
        start.done = any(float(np.abs(target - other.at - other.step).max()) < least for other in kept)
        if not start.done:
            kept.append(start)
    return kept


def _move(start: _Start, stencil: Array, found: Array, *, tiny: float) -> None:
    """Accept the stencil's centre if it is better, and plan the next step."""
    untried = start.gain == np.inf
    better = found[0] > start.value
    if better or untried:
        start.at, start.value = stencil[0], float(found[0])
        if not np.isfinite(found).all():
            start.done = True
            return
        start.gradient, start.hessian = _differences(stencil, found)
    else:
        start.radius = 0.25 * float(np.abs(start.step).max())
    low, high = np.maximum(-start.radius, -start.at), np.minimum(start.radius, 1.0 - start.at)
    start.step, start.gain = top_of_parabola(start.gradient, start.hessian, low, high)
    start.done = start.gain <= tiny or start.radius < LEAST_RADIUS


def _stencil(u: Array) -> Array:
    """U, two points along each axis (both on one side where the cube ends), one for each pair of axes."""
    d = len(u)
    first = np.where(u + STEP <= 1.0, STEP, -STEP)
    second = np.where((first > 0) & (u - STEP >= 0.0), -STEP, 2.0 * first)
    rows = np.zeros((1 + 2 * d + d * (d - 1) // 2, d))
    axes = np.arange(d)
    rows[1 + axes, axes] = first
    rows[1 + d + axes, axes] = second
    for row, (i, j) in enumerate(itertools.combinations(range(d), 2), start=1 + 2 * d):
        rows[row, [i, j]] = first[[i, j]]
    return u + rows


def _differences(stencil: Array, found: Array) -> tuple[Array, Array]:
    """Gradient and Hessian at the first point, exact for parabolas."""
    d = stencil.shape[1]
    axes = np.arange(d)
    offsets = stencil - stencil[0]
    a, b = offsets[1 + axes, axes], offsets[1 + d + axes, axes]
    rise_a, rise_b = (found[1 : 1 + d] - found[0]) / a, (found[1 + d : 1 + 2 * d] - found[0]) / b
    curvature = 2.0 * (rise_a - rise_b) / (a - b)
    gradient = rise_a - 0.5 * a * curvature
    hessian = np.diag(curvature)
    for row, (i, j) in enumerate(itertools.combinations(range(d), 2), start=1 + 2 * d):
        mixed = found[row] - found[1 + i] - found[1 + j] + found[0]
        hessian[i, j] = hessian[j, i] = mixed / (a[i] * a[j])
    return gradient, hessian


def top_of_parabola(gradient: Array, hessian: Array, low: Array, high: Array) -> tuple[Array, float]:
    """The step s in [low, high] (which holds 0) of the highest g s + s H s / 2, and that height.

    Tries the faces of the box, each coordinate free or at one of its ends: 3^d of them, whatever the signs of H.
    """
    d = len(gradient)
    best, height = np.zeros(d), 0.0
    for ends in itertools.product((0, 1, 2), repeat=d):
        face = np.array(ends)
        free = face == 0
        step = np.where(face == 1, low, np.where(face == 2, high, 0.0))
        if free.any():
            inner = hessian[np.ix_(free, free)]
            try:
                step[free] = np.linalg.solve(inner, -(gradient + hessian @ step)[free])
            except np.linalg.LinAlgError:
                continue
            if not ((low <= step) & (step <= high)).all():
                continue
        rise = float(gradient @ step + 0.5 * step @ hessian @ step)
        if rise > height:
            best, height = step, rise
        if free.all() and (d == 1 or np.linalg.eigvalsh(hessian)[-1] < 0.0) and rise >= height:
            break  # concave, and its top lies inside
    return best, height
