"""Feasibility under the bounds of constraints, and searches that stay within them.

| symbol | name | meaning | shape |
|---|---|---|---|
| L_j | `limit.lower` | lower bounds of g_j, which is satisfied when <= 0 | (n,) |
| s_j | `view.limit_sizes` | prior standard deviation of g_j, the unit of violations | (m,) |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from ..domains.domain import Space
from ..domains.search.boxes import AcquisitionFunction
from ..theory.fronts import LEAST_STD, hazard, log_distribution
from .envelope import Envelope
from .scores import PointView

if TYPE_CHECKING:
    from ..domains.search.cones import Cones

STIFF = 10.0  # penalty for a violation of one prior deviation, in ranges of the score
AROUND = 64  # number of points near an infeasible one among which a feasible one is sought
ANCHORS = 4  # number of these from which segments begin
SHARES = np.unique(np.concatenate([0.5 ** np.arange(24.0), np.linspace(0.0, 1.0, 17)]))[::-1, None, None]

Mask = npt.NDArray[np.bool_]


def admitted(limits: Sequence[Envelope]) -> Mask:
    """Returns a mask `(n,)` of the candidates that satisfy all constraints in the posterior mean."""
    return np.asarray(np.max([limit.mean for limit in limits], axis=0) <= 0.0)


def hopeless(limits: Sequence[Envelope]) -> Mask:
    """Returns a mask `(n,)` of the candidates that violate some constraint even at its lower bound."""
    return np.asarray(np.max([limit.lower for limit in limits], axis=0) > 0.0)


def violation(limits: Sequence[Envelope], sizes: Array) -> Array:
    """Returns max_j L_j / s_j, `(n,)`."""
    return np.asarray(np.max([limit.lower / size for limit, size in zip(limits, sizes, strict=True)], axis=0))


def log_probability(limits: Sequence[Envelope]) -> Array:
    """Returns sum_j log P(g_j <= 0), `(n,)`."""
    return np.asarray(sum(log_distribution(-limit.mean / np.maximum(limit.std, LEAST_STD)) for limit in limits))


def minus_charge(
    surface: AcquisitionFunction, view: PointView, charge: Callable[[Array], Array],
    slopes: Callable[[Array], Array], cones: Cones | None = None,
) -> AcquisitionFunction:  # fmt: skip
    """Returns an acquisition function minus a charge `(n,)` for lower bounds `(m, n)`.

    `slopes` gives the derivatives of the charge in the bounds, `(m, n)`. Bounds by slopes narrow those of posteriors.
    """

    def values(points: Array) -> Array:
        lower = np.array([limit.lower for limit in view.limits(points)])
        lower = lower if cones is None else cones.narrowed(points, lower)
        return np.asarray(surface.values(points) - charge(lower))

    def rises(points: Array) -> tuple[Array, Array]:
        scores, gradients = surface.slopes(points)
        found = view.limit_slopes(points)
        lower = np.array([limit.lower for limit, _, _ in found])
        each = [by_mean - (limit.width or 0.0) * by_std for limit, by_mean, by_std in found]
        if cones is not None:
            lower, each = cones.narrowed_slopes(points, lower, each)
        for by_lower, slope in zip(each, slopes(lower), strict=True):
            gradients = gradients - slope[:, None] * by_lower
        return np.asarray(scores - charge(lower)), gradients

    return AcquisitionFunction(values, rises) if view.limits_symmetric else view.without_slopes(values)


def penalised(surface: AcquisitionFunction, view: PointView, cones: Cones | None = None) -> AcquisitionFunction:
    """Returns the acquisition function minus an exact penalty for violations, steeper than any likely score."""
    # The last digits of scores depend on rounding. A power of two removes that dependence.
    scores = view.of_candidates(surface)
    finite = scores[np.isfinite(scores)]
    extent = float(np.ptp(finite)) if len(finite) else 1.0
    price = STIFF * 2.0 ** float(np.ceil(np.log2(max(extent, 1e-100)))) / view.limit_sizes

    def charge(lower: Array) -> Array:
        return np.asarray(price @ np.maximum(lower, 0.0))

    return minus_charge(surface, view, charge, lambda lower: price[:, None] * (lower > 0.0), cones)


def with_probability(surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
    """Returns the acquisition function plus the log probability that all constraints are satisfied."""

    def values(points: Array) -> Array:
        return np.asarray(surface.values(points) + log_probability(view.limits(points)))

    def rises(points: Array) -> tuple[Array, Array]:
        scores, gradients = surface.slopes(points)
        for limit, by_mean, by_std in view.limit_slopes(points):
            std = np.maximum(limit.std, LEAST_STD)
            z = -limit.mean / std
            scores = scores + log_distribution(z)
            gradients = gradients + (hazard(z) / std)[:, None] * (-by_mean - z[:, None] * by_std)
        return scores, gradients

    return AcquisitionFunction(values, rises, surface.resolution)


def between(point: Array, anchors: Array, view: PointView) -> Array:
    """Returns points `(k, d)` on the segments from a point to anchors, ever closer to the point.

    The anchors are among them.
    """
    rows = (point + SHARES * (anchors - point)).reshape(-1, len(point))
    return view.domain.snap(rows) if isinstance(view.domain, Space) else rows


def nearest(point: Array, points: Array, view: PointView, count: int) -> Array:
    """Returns the points that are nearest to a given point, in units of the sides."""
    far = np.linalg.norm((points - point) / view.sides, axis=1)
    return np.asarray(points[np.argsort(far, kind="stable")[:count]])


def moved_inside(point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
    """Returns the point, or the best point on segments to points where no lower bound is above 0.

    Returns the point itself if there is no such point.
    """

    def within(points: Array) -> Array:
        return points[violation(view.limits(points), view.limit_sizes) <= 0.0]

    if len(within(point[None])):
        return point
    everywhere = np.concatenate([view.tried(), view.points])
    inside = within(nearest(point, everywhere, view, AROUND))
    inside = inside if len(inside) else within(everywhere)
    if not len(inside):
        return point
    rows = within(between(point, nearest(point, inside, view, ANCHORS), view))
    return np.asarray(rows[int(surface.values(rows).argmax())].copy()) if len(rows) else point


def risk(limits: Sequence[Envelope]) -> Array:
    """Returns sum_j P(g_j > 0), `(n,)`."""
    from scipy.special import ndtr  # slow to import, and few rules need it

    return np.asarray(sum(ndtr(limit.mean / np.maximum(limit.std, LEAST_STD)) for limit in limits))
