"""Points of boxes and spaces under a certificate by slopes: the search for a goal, and the point that is played.

| symbol | name | meaning | shape |
|---|---|---|---|
| L_j, U_j | `lower`, `upper` | bounds of g_j by slopes | (n, m) |
| l_j | `limit.lower` | lower bounds of g_j in its posterior | (n,) |
| E_j | `noise` | bound of the noise of g_j | (m,) |
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from .._utils.checks import Array
from ..domains.domain import Box, Space, distinct, keeping_limits
from ..domains.search.boxes import AcquisitionFunction, coarse, leaders
from ..domains.search.cones import CertifiedSearch, Cones
from .acquisition import PointView
from .envelope import Envelope
from .feasibility import between
from .slopes import SlopeState

GOALS = 4  # goals towards which ways lead: the point that was found, and the best candidates apart from it
STARTS = 8  # certified points from which each ascent starts
STEPS = 20  # steps of each ascent
Judged = Callable[[Array, PointView], Array]

LEADING = 64  # certified points on the border that are compared, by score and by what they tell of the goal


def cones_of(state: SlopeState, context: Array | None) -> Cones:
    """Returns the bounds of a state under a context, by the largest factor for all constraints."""
    factors = state.factors(context)
    return state.cones(context, np.full_like(factors, factors.max()))


def certified_point(point: Array, surface: AcquisitionFunction, view: PointView, judged: Judged) -> Array:
    """Returns the goal if it is certified, or else the certified point that `judged` prefers, `(d,)`.

    Args:
        point: the goal, where the search of the whole domain ended, `(d,)`.
        surface: score, less a penalty where constraints are violated for sure.
        view: the round.
        judged: scores of the points of a view, -inf where they are not to be played.
    """
    state: SlopeState = view.dual_state  # type: ignore[assignment]
    state.refuse()
    domain, cones = cast("Box | Space", view.domain), cones_of(state, view.context)
    search = CertifiedSearch(domain, cones)
    if search.good(point[None])[0]:
        return point
    others = leaders(view.points, view.of_candidates(surface), GOALS - 1, domain)
    goals = np.concatenate([point[None], others[~search.good(others)]])
    centres = search.centres(surface, goals)
    border = distinct(np.concatenate([centres, search.border(centres, goals), search.kept(view.points)]))
    nearer = informing(view, state, cones, goals[0])
    best, telling = _leading(surface, border), _leading(nearer, border)
    best, ends = _ascended(search, surface, best), _ascended(search, nearer, telling)
    ways = between(point, np.concatenate([best[-1:], ends[-1:]]), view)
    candidates = np.concatenate([goals, search.places, state.open_points(view.context), best, ends, ways])
    candidates = keeping_limits(domain, distinct(candidates))  # Others would be moved after they were certified.
    here = view.at(candidates)
    return np.asarray(candidates[int(judged(surface.values(candidates), here).argmax())].copy())


def _leading(surface: AcquisitionFunction, points: Array) -> Array:
    """Returns the best points by a surface, the best first, of those with a finite value."""
    values = surface.values(points)
    points, values = points[np.isfinite(values)], values[np.isfinite(values)]
    return points[np.argsort(-coarse(values), kind="stable")[:LEADING]] if len(points) else points


def _ascended(search: CertifiedSearch, surface: AcquisitionFunction, ranked: Array) -> Array:
    """Returns ranked certified points, and the ends of ascents from the first ones, the best end last."""
    if not len(ranked):
        return ranked
    at, values = search.ascend(surface, ranked[:STARTS], steps=STEPS)
    return np.concatenate([ranked, at[np.argsort(values, kind="stable")]])


def informing(view: PointView, state: SlopeState, cones: Cones, goal: Array) -> AcquisitionFunction:
    """Returns how low an answer may bring the upper bounds at a goal, in prior deviations: -(mu - sigma + E + d).

    Of several constraints the largest bound counts.
    """
    sizes = view.limit_sizes[:, None]

    def bounds(points: Array, limits: list[Envelope]) -> Array:
        means = np.array([limit.mean - limit.std for limit in limits])
        return np.asarray((means + state.noise[:, None] + cones.between(points, goal[None])[:, 0].T) / sizes)

    def both(points: Array) -> tuple[Array, Array]:
        found = view.limit_slopes(points)
        upper = bounds(points, [limit for limit, _, _ in found])
        rises = cones.factors[:, None] * np.array([metric.weights[cones.before :] for metric in state.metrics])
        slopes = [
            (by_mean - by_std + np.sign(points - goal) * rise) / size
            for (_, by_mean, by_std), rise, size in zip(found, rises, sizes, strict=True)
        ]
        worst, rows = upper.argmax(axis=0), np.arange(len(points))
        return -upper[worst, rows], -np.array(slopes)[worst, rows]

    return AcquisitionFunction(lambda points: -bounds(points, view.limits(points)).max(axis=0), both)
