"""Newton's method from values alone, for all starts in one batch, within trust regions.

| symbol | name | meaning | shape |
|---|---|---|---|
| u | `at` | best point of a start so far, in the unit cube | (d,) |
| g, H | `gradient`, `hessian` | of the score at u, by differences | (d,), (d, d) |
| r | `radius` | largest trusted change of a coordinate | scalar |

Values of a posterior at m points cost one pass over its factor for all of them, hardly more for twenty points than for
two. So every start evaluates, in the same batch, the 1 + 2 d + d (d - 1) / 2 points that determine a parabola. It moves
to the maximum of the parabola within its trust region and the cube. Three batches are usually enough. The method is for
few dimensions, since points of a batch grow as d^2, and faces of a cube as 3^d.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array

STEP = 1e-4  # step of the differences in the unit cube, with negligible truncation and rounding
NEWTON = 3e-7  # predicted relative gain below which one more step, which squares the error, ends the search
ENOUGH = 1e-13  # predicted relative gain below which a start has arrived
LEAST_RADIUS = 1e-6
SINGULAR = 1e-9  # determinant, in units of the largest entry, below which a Hessian counts as singular
SAME = 0.2  # distance of the targets of two starts, in radii, below which they count as one
HOPE = 2.0  # multiple of the predicted gain that must lift a start above the best, or it is dropped


@dataclass
class _Start:
    at: Array
    value: float
    radius: float
    gradient: Array
    hessian: Array
    step: Array
    gain: float = np.inf  # predicted for the step
    done: bool = False


def climb(
    values: Callable[[Array], Array], points: Array, scores: Array, *, radius: float, rounds: int, scale: float
) -> tuple[Array, float, int]:
    """Returns the best point found from the starts, its value, and the number of points evaluated.

    Args:
        values: `(m, d)` points of the unit cube -> `(m,)`, minus infinity for excluded points.
        points: starts, `(k, d)`.
        scores: their values, `(k,)`.
        radius: first trust radius.
        rounds: largest number of batches.
        scale: of the values, by which gains count as small.
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
        fresh = [s.gain == np.inf for s in active]  # their values are known
        tried = [stencil[known:] for stencil, known in zip(stencils, fresh, strict=True)]
        parts = np.split(values(np.concatenate(tried)), np.cumsum([len(each) for each in tried])[:-1])
        evaluations += sum(len(part) for part in parts)
        for start, stencil, known, part in zip(active, stencils, fresh, parts, strict=True):
            _accept(start, stencil, np.append(start.value, part) if known else part)
        _plan(active, least=ENOUGH * scale)
    best = max(starts, key=lambda start: start.value)
    return best.at, best.value, evaluations


def _apart(starts: list[_Start], least: float) -> list[_Start]:
    """Returns the starts without those whose target is that of a better start."""
    kept: list[_Start] = []
    for start in sorted(starts, key=lambda start: -start.value):
        target = start.at + start.step
        start.done = any(float(np.abs(target - other.at - other.step).max()) < least for other in kept)
        if not start.done:
            kept.append(start)
    return kept


def _accept(start: _Start, stencil: Array, found: Array) -> None:
    """Moves to the stencil's centre if it is better, and otherwise reduces the trust radius."""
    untried = start.gain == np.inf
    if not untried and not found[0] > start.value:
        start.radius = 0.25 * float(np.abs(start.step).max())
        return
    start.at, start.value = stencil[0], float(found[0])
    start.done = not np.isfinite(found).all()
    if not start.done:
        start.gradient, start.hessian = _differences(stencil, found)


def _plan(starts: list[_Start], *, least: float) -> None:
    """Computes the next step of each start, within its trust radius."""
    at, radius = np.array([start.at for start in starts]), np.array([[start.radius] for start in starts])
    gradients, hessians = np.array([start.gradient for start in starts]), np.array([start.hessian for start in starts])
    low, high = np.maximum(-radius, -at), np.minimum(radius, 1.0 - at)
    for start, step, gain in zip(starts, *tops_of_parabolas(gradients, hessians, low, high), strict=True):
        start.step, start.gain = step, float(gain)
        start.done |= start.gain <= least or start.radius < LEAST_RADIUS


def _stencil(u: Array) -> Array:
    """Returns u, two points along each axis (on one side where the cube ends), and one for each pair of axes."""
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
    """Returns gradient and Hessian at the first point, exact for parabolas."""
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


def tops_of_parabolas(
    gradients: Array, hessians: Array, low: Array, high: Array, *, least: Array | float = 0.0
) -> tuple[Array, Array]:
    """Returns, for each row, the step s of the highest g s + s H s / 2, and that height.

    The step is within [low, high], which contains 0. All faces of the boxes are tried, each coordinate free or at one
    of its ends, so the result is right whatever the signs of H.

    Args:
        gradients: `(k, d)`.
        hessians: `(k, d, d)`, symmetric.
        low: `(k, d)`.
        high: `(k, d)`.
        least: smallest gain of a face over those before it, `(k,)`, so that rounding does not choose between equal
            faces.
    """
    k, d = gradients.shape
    best, height = np.zeros((k, d)), np.zeros(k)
    inside = np.zeros(k, dtype=bool)  # concave parabolas with their maxima inside, which no face exceeds
    for chosen in itertools.product((True, False), repeat=d):
        free = np.array(chosen)
        steps, possible = _tops_of_faces(gradients, hessians, low, high, free)
        rises = np.einsum("ki,fki->fk", gradients, steps) + 0.5 * np.einsum("fki,kij,fkj->fk", steps, hessians, steps)
        for step, allowed, rise in zip(steps, possible, rises, strict=True):
            better = allowed & ~inside & (rise > height + least)
            best[better], height[better] = step[better], rise[better]
        if free.all():
            inside = possible[0] & (np.linalg.eigvalsh(hessians)[:, -1] < 0.0)
            if inside.all():
                break
    return best, height


def _tops_of_faces(
    gradients: Array, hessians: Array, low: Array, high: Array, free: npt.NDArray[np.bool_]
) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Returns the stationary steps of all faces with these free coordinates, `(faces, k, d)`, and which are possible.

    The other coordinates are at all combinations of their ends.
    """
    k, d = gradients.shape
    held, rest = np.flatnonzero(~free), np.flatnonzero(free)
    ends = np.array(list(itertools.product((False, True), repeat=len(held)))).reshape(2 ** len(held), len(held))
    steps = np.zeros((len(ends), k, d))
    steps[:, :, held] = np.where(ends[:, None, :], high[:, held], low[:, held])
    if not len(rest):
        return steps, np.ones((len(ends), k), dtype=bool)
    slopes = (gradients + np.einsum("kij,fkj->fki", hessians, steps))[:, :, rest]
    inner = hessians[:, rest[:, None], rest]
    regular = np.abs(np.linalg.det(inner)) > SINGULAR * np.abs(inner).max(axis=(1, 2)) ** len(rest)
    inner = np.where(regular[:, None, None], inner, np.eye(len(rest)))
    steps[:, :, rest] = -np.linalg.solve(inner, slopes[..., None])[..., 0]
    return steps, regular & ((low <= steps) & (steps <= high)).all(axis=2)
