"""What bounds say of constraints, and how a search keeps within their borders.

| symbol | name | meaning | shape |
|---|---|---|---|
| L_j | `limit.lower` | lower bounds of g_j, which is satisfied when <= 0 | (n,) |
| s_j | `view.limit_sizes` | prior standard deviation of g_j, what violations are compared by | (m,) |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from ..domains.domain import Space
from ..domains.search.acquisition import AcquisitionFunction
from .acquisition import PointView
from .envelope import Envelope

LEAST_STD = 1e-100  # where nothing is uncertain
STIFF = 10.0  # ranges of the score that a violation of one prior deviation costs in a search
AROUND = 64  # points near one that violates, among which one is looked for that does not
ANCHORS = 4  # of these
SHARES = np.unique(np.concatenate([0.5 ** np.arange(24.0), np.linspace(0.0, 1.0, 17)]))[::-1, None, None]

Mask = npt.NDArray[np.bool_]


def admitted(limits: Sequence[Envelope]) -> Mask:
    """Which candidates satisfy all constraints in the posterior mean, `(n,)`."""
    return np.asarray(np.max([limit.mean for limit in limits], axis=0) <= 0.0)


def hopeless(limits: Sequence[Envelope]) -> Mask:
    """Which candidates violate some constraint even at its lower bound, `(n,)`."""
    return np.asarray(np.max([limit.lower for limit in limits], axis=0) > 0.0)


def violation(limits: Sequence[Envelope], sizes: Array) -> Array:
    """max_j L_j / s_j."""
    return np.asarray(np.max([limit.lower / size for limit, size in zip(limits, sizes, strict=True)], axis=0))


def log_probability(limits: Sequence[Envelope]) -> Array:
    """Sum_j log P(g_j <= 0), `(n,)`."""
    from scipy.special import log_ndtr  # slow to import, and most scores need none of it

    return np.asarray(sum(log_ndtr(-limit.mean / np.maximum(limit.std, LEAST_STD)) for limit in limits))


def less(
    surface: AcquisitionFunction, view: PointView, charge: Callable[[Array], Array], slopes: Callable[[Array], Array]
) -> AcquisitionFunction:
    """A surface less a charge `(n,)` for lower bounds `(m, n)`, whose derivatives in them are `slopes`, `(m, n)`."""

    def values(points: Array) -> Array:
        lower = np.array([limit.lower for limit in view.limits(points)])
        return np.asarray(surface.values(points) - charge(lower))

    def rises(points: Array) -> tuple[Array, Array]:
        scores, gradients = surface.slopes(points)
        found = view.limit_slopes(points)
        lower = np.array([limit.lower for limit, _, _ in found])
        for (limit, by_mean, by_std), slope in zip(found, slopes(lower), strict=True):
            gradients = gradients - slope[:, None] * (by_mean - (limit.width or 0.0) * by_std)
        return np.asarray(scores - charge(lower)), gradients

    return AcquisitionFunction(values, rises) if view.limits_symmetric else view.without_slopes(values)


def penalised(surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
    """The surface less an exact penalty for violations, steeper than any score is likely to be."""
    # Of scores whose last digits depend on how they were come by: a power of two leaves no trace of that.
    scores = view.of_candidates(surface)
    finite = scores[np.isfinite(scores)]
    extent = float(np.ptp(finite)) if len(finite) else 1.0
    price = STIFF * 2.0 ** float(np.ceil(np.log2(max(extent, 1e-100)))) / view.limit_sizes

    def charge(lower: Array) -> Array:
        return np.asarray(price @ np.maximum(lower, 0.0))

    return less(surface, view, charge, lambda lower: price[:, None] * (lower > 0.0))


def with_probability(surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
    """The surface plus the log probability that all constraints are satisfied."""

    def values(points: Array) -> Array:
        return np.asarray(surface.values(points) + log_probability(view.limits(points)))

    def rises(points: Array) -> tuple[Array, Array]:
        from scipy.special import log_ndtr

        scores, gradients = surface.slopes(points)
        for limit, by_mean, by_std in view.limit_slopes(points):
            std = np.maximum(limit.std, LEAST_STD)
            z = -limit.mean / std
            log_p = log_ndtr(z)
            hazard = np.exp(np.minimum(-0.5 * z**2 - 0.5 * np.log(2.0 * np.pi) - log_p, 700.0))  # phi(z) / Phi(z)
            scores = scores + log_p
            gradients = gradients + (hazard / std)[:, None] * (-by_mean - z[:, None] * by_std)
        return scores, gradients

    return AcquisitionFunction(values, rises)


def between(point: Array, anchors: Array, view: PointView) -> Array:
    """Points from one to others, ever closer to it, `(k, d)`, the others among them."""
    rows = (point + SHARES * (anchors - point)).reshape(-1, len(point))
    return view.domain.snap(rows) if isinstance(view.domain, Space) else rows


def nearest(point: Array, points: Array, view: PointView, count: int) -> Array:
    """Those of some points that are nearest to one, in units of the sides."""
    far = np.linalg.norm((points - point) / view.sides, axis=1)
    return np.asarray(points[np.argsort(far, kind="stable")[:count]])


def moved_inside(point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
    """The point, or the best of those between it and points where no lower bound is above 0; itself where none is."""

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
    """Sum_j P(g_j > 0), `(n,)`."""
    from scipy.special import ndtr

    return np.asarray(sum(ndtr(limit.mean / np.maximum(limit.std, LEAST_STD)) for limit in limits))
