"""The points that answers certify by slopes, on boxes and spaces: their border, and ascents that stay among them.

| symbol | name | meaning | shape |
|---|---|---|---|
| x_i | `places` | answered points, after their contexts | (k, D) |
| u_ij, l_ij | `ceilings`, `floors` | largest and smallest value of g_j at x_i | (k, m) |
| d_j | `metrics` | largest change of g_j from one point to another | |
| U_j(x) | `upper` | min_i u_ij + c_j d_j(x_i, x) | (n, m) |
| r_j(x) | `rooms` | -U_j(x), how much g_j may rise from a certified point x | (n, m) |
| w_j | | c_j times the slope of g_j in each column that moves, per side of the domain | (p,) |

U_j rises by at most c_j d_j(x, x') from x to x'. So all points with c_j d_j(x, x') <= r_j(x) for all j are certified
as x is: a weighted L1 ball. Every result of this module was certified by `upper` itself, after all rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray
from ..._utils.dataclass import dataclass
from ..._utils.randomness import Draws
from ..distances import Metric
from ..domain import Box, Space, among, distinct
from .boxes import AcquisitionFunction, coarse, real_columns
from .designs import clipped, leading_options, neighbours

Mask = npt.NDArray[np.bool_]

CENTRES = 24  # certified points from which the border is sought
SHARES = (1.0, 0.5)  # of the way to the border
SPREAD = 16  # directions in which it is sought, besides those of the coordinates and towards goals
INSIDE = 1.0 - 1e-9  # share of a radius that is used, so that rounding does not lead outside
FIRST = 0.1  # longest first step of an ascent, in sides
LONGER, SHORTER = 8.0, 0.25  # factors of a step without curvature, and of one that was not accepted
ENOUGH = 1e-4  # share of the predicted rise for which a step is accepted (Armijo)
ARRIVED = 1e-7  # step in sides, or rise as a share of the values' range, at which an ascent ends
SECTIONS = 8  # points of a way that are looked at together, twice
ALTERNATIONS = 3  # largest number of alternations between real columns and others
SWEEPS = 4  # projections onto the ball of each constraint in turn


def allowed(lower: Array, upper: Array) -> Mask:
    """Returns a mask `(n,)` of the points with bounds `(n, m)` that are certified."""
    return np.asarray(((upper <= 0.0) & (lower <= 0.0)).all(axis=1))


@final
@dataclass(frozen=True, kw_only=True)
class Cones:
    """Bounds of m constraints from answers and slopes, under one context.

    Attributes:
        metrics: distance of each constraint, in its units.
        places: (context, point) rows where bounds are known, `(k, D)`.
        ceilings: upper bound of each constraint there, `(k, m)`.
        floors: lower bounds, `(k, m)`.
        factors: c_j, the factor of distances in upper bounds, `(m,)`.
        context: context of the points, `(c,)`, or None.
        stated: points at which all constraints are stated to be at most 0, `(s, d)`, or None.
    """

    metrics: tuple[Metric, ...]
    places: Array
    ceilings: Array
    floors: Array
    factors: Array
    context: Array | None = None
    stated: Array | None = None

    @property
    def before(self) -> int:
        """Number of columns of the context."""
        return 0 if self.context is None else len(self.context)

    @property
    def points(self) -> Array:
        """The points where bounds are known, `(k, d)`, also under other contexts."""
        return self.places[:, self.before :]

    def distances(self, points: Array, j: int, places: Array | None = None) -> Array:
        """Returns d_j of points `(n, d)` and of the places, or some of their rows, `(n, k)`."""
        rows = points
        if self.context is not None:
            rows = np.hstack([np.broadcast_to(self.context, (len(points), self.before)), points])
        return self.metrics[j](rows, self.places if places is None else places)

    def bounds(self, points: Array) -> tuple[Array, Array]:
        """Returns L_j = max_i l_ij - d_j(x_i, x) and U_j, each `(n, m)`, infinite where no place says anything."""
        lower, upper = np.empty((len(points), len(self.metrics))), np.empty((len(points), len(self.metrics)))
        for j, (low, high) in enumerate(zip(self.floors.T, self.ceilings.T, strict=True)):
            far = self.distances(points, j)
            lower[:, j], upper[:, j] = (low - far).max(axis=1), (high + self.factors[j] * far).min(axis=1)
        if self.stated is not None:  # Not by distances: in a context with a missing value nothing is near.
            stated = among(points, self.stated)
            upper[stated] = np.minimum(upper[stated], 0.0)
        return lower, upper

    def upper(self, points: Array) -> Array:
        """Returns U_j, `(n, m)`."""
        return self.bounds(points)[1]

    def holds(self, points: Array) -> Mask:
        """Returns which points are certified, `(n,)`."""
        return allowed(*self.bounds(points))

    def narrowed(self, points: Array, lower: Array) -> Array:
        """Returns max(L_j, min(lower_j, U_j)) for lower bounds `(m, n)` of another kind, `(m, n)`."""
        least, upper = self.bounds(points)
        return np.asarray(np.maximum(least.T, np.minimum(lower, upper.T)))

    def narrowed_slopes(self, points: Array, lower: Array, slopes: list[Array]) -> tuple[Array, list[Array]]:
        """Returns the same with its gradients `(n, d)`, given those of the other bounds."""
        found, rises = lower.copy(), []
        for j, (metric, rise) in enumerate(zip(self.metrics, slopes, strict=True)):
            far = self.distances(points, j)
            above, below = self.ceilings[:, j] + self.factors[j] * far, self.floors[:, j] - far
            upper, least = above.min(axis=1), below.max(axis=1)
            by_lower = least >= np.minimum(lower[j], upper)
            by_upper = ~by_lower & (upper < lower[j])
            nearest = np.where(by_upper, above.argmin(axis=1), below.argmax(axis=1))
            away = np.sign(points - self.points[nearest]) * metric.weights[self.before :]
            found[j] = np.maximum(least, np.minimum(lower[j], upper))
            rises.append(np.where(by_lower[:, None], -away, np.where(by_upper[:, None], self.factors[j] * away, rise)))
        return found, rises

    def between(self, points: Array, others: Array) -> Array:
        """Returns c_j d_j of points `(n, d)` and other points `(k, d)` under the context, `(n, k, m)`."""
        places = others
        if self.context is not None:
            places = np.hstack([np.broadcast_to(self.context, (len(others), self.before)), others])
        found = np.stack([self.distances(points, j, places) for j in range(len(self.metrics))], axis=2)
        return np.asarray(self.factors * found)


@final
class CertifiedSearch:
    """A search among the certified points of a box or space.

    Args:
        domain: box or space that is searched.
        cones: bounds by which points are certified.
    """

    def __init__(self, domain: Box | Space, cones: Cones) -> None:
        self.domain, self.cones = domain, cones
        self.span = domain.upper - domain.lower
        weights = cones.factors[:, None] * np.array([metric.weights[cones.before :] for metric in cones.metrics])
        self.moving: IndexArray = np.flatnonzero(real_columns(domain) & (weights > 0.0).all(axis=0))
        self.weights = weights[:, self.moving] * self.span[self.moving]  # w_j, (m, p)
        grains = np.array([metric.grains[cones.before :] for metric in cones.metrics])
        self.grains = cones.factors * grains[:, self.moving].sum(axis=1)  # (m,)
        known = distinct(cones.points)
        inside = ((known >= domain.lower) & (known <= domain.upper) & (domain.snap(known) == known)).all(axis=1)
        self.places = self.kept(known[inside])  # those that are certified, (k, d)

    def kept(self, points: Array) -> Array:
        """Returns the points that are certified and keep the limits of the domain, `(k, d)`."""
        return points[self.good(points)]

    def good(self, points: Array) -> Mask:
        """Returns which valid points are certified and keep the limits of the domain, `(n,)`."""
        found, limits = self.cones.holds(points), self.domain.limits
        if limits is not None:
            found[found] = limits.holds(points[found])
        return found

    def centres(self, surface: AcquisitionFunction, goals: Array) -> Array:
        """Returns the certified points from which the border is sought, `(k, d)`.

        Half are those with the best values, half those from which the first goal is nearest to being certified. They
        are answered points, points of `start`, and those next to them in a choice or whole number.
        """
        centres = self._leading(self.places, surface, goals)
        if real_columns(self.domain).all() or not len(centres):
            return centres
        around = [centres, *self._beside(centres)]
        return self._leading(distinct(np.concatenate(around)), surface, goals)

    def _leading(self, places: Array, surface: AcquisitionFunction, goals: Array) -> Array:
        if len(places) <= CENTRES:
            return places
        left = self.cones.upper(places)[:, None] + self.cones.between(places, goals[:1])
        by_value = np.argsort(-coarse(surface.values(places)), kind="stable")
        by_goal = np.argsort(left.max(axis=2)[:, 0], kind="stable")
        both = np.stack([by_value, by_goal], axis=1).ravel()  # alternately
        _, first = np.unique(both, return_index=True)
        return places[both[np.sort(first)][:CENTRES]]

    def _beside(self, ranked: Array) -> list[Array]:
        """Returns certified points next to each point in choices and whole numbers, moved back where they have to."""
        worth, found = leading_options(self.domain, ranked), []
        for each in ranked:
            around = neighbours(self.domain, each, worth)
            beyond = ~self.cones.holds(around)
            if len(self.moving) and beyond.any():
                around[beyond] = self._projected(around[beyond])
            found.append(self.kept(around))
        return found

    def border(self, centres: Array, goals: Array) -> Array:
        """Returns certified points on the ways to the border from centres `(k, d)`, `(n, d)`.

        The ways lead along each coordinate, in spread directions, and towards goals `(g, d)`.
        """
        p = len(self.moving)
        if not p or not len(centres):
            return centres[:0]
        here = centres[:, self.moving]
        ahead = (goals[None, :, self.moving] - here[:, None]) / self.span[self.moving]
        along = np.concatenate([np.eye(p), -np.eye(p), _directions(p)])
        ways = np.concatenate([np.broadcast_to(along, (len(centres), *along.shape)), ahead], axis=1)
        rooms = np.maximum(-self.cones.upper(centres) - self.grains, 0.0)
        spent = np.abs(ways) @ self.weights.T  # d_j of a whole way, (k, w, m)
        with np.errstate(divide="ignore", invalid="ignore"):
            longest = np.nanmin(np.where(spent > 0.0, rooms[:, None] / spent, np.inf), axis=2) * INSIDE
        longest = np.where(np.isfinite(longest), longest, 0.0)  # no way at all
        longest[:, len(along) :] = np.minimum(longest[:, len(along) :], 1.0)  # not beyond a goal
        found = []
        for share in SHARES:
            points = np.repeat(centres[:, None], ways.shape[1], axis=1)
            points[..., self.moving] += share * longest[..., None] * ways * self.span[self.moving]
            found.append(points.reshape(-1, centres.shape[1]))
        points = np.concatenate(found)
        return self.kept(
            clipped(self.domain, points, np.tile(np.repeat(centres, ways.shape[1], axis=0), (len(SHARES), 1)))
        )

    def ascend(self, surface: AcquisitionFunction, starts: Array, *, steps: int) -> tuple[Array, Array]:
        """Returns certified points that the starts reach uphill, and their values.

        Args:
            surface: function to maximise.
            starts: certified points `(n, d)`.
            steps: largest number of steps, each a batch of all starts.
        """
        at, values = starts.copy(), surface.values(starts)
        moved = np.arange(len(at))
        for _ in range(ALTERNATIONS):
            at[moved], values[moved] = self._climb(surface, at[moved], steps)
            if real_columns(self.domain).all():
                break
            moved = self._step_aside(surface, at, values)
            if not len(moved):
                break
        return at, values

    def _step_aside(self, surface: AcquisitionFunction, at: Array, values: Array) -> IndexArray:
        """Moves points to their best certified neighbours in choices and whole numbers, in place.

        Returns the points that rose.
        """
        ranked = np.argsort(-values, kind="stable")
        around = self._beside(at[ranked])
        scores = surface.values(np.concatenate(around)) if any(map(len, around)) else np.zeros(0)
        risen, ends = [], np.cumsum([len(each) for each in around])
        for i, beside, found in zip(ranked, around, np.split(scores, ends[:-1]), strict=True):
            if len(found) and found.max() > values[i]:
                at[i], values[i] = beside[int(found.argmax())], found.max()
                risen.append(i)
        return np.array(risen, dtype=np.intp)

    def _climb(self, surface: AcquisitionFunction, at: Array, steps: int) -> tuple[Array, Array]:
        """Returns the ends of ascents in the real columns, and their values.

        Spectral projected gradients (Birgin, Martinez and Raydan 2000), with a step that never falls.
        """
        at = at.copy()
        values, slopes = self._slopes(surface, at)
        if not len(self.moving):
            return at, values
        size = np.abs(slopes).max(axis=1)
        length = FIRST / np.where(size > 0.0, size, 1.0)
        going = np.flatnonzero(size > 0.0)
        for _ in range(steps):
            if not len(going):
                break
            tried = at[going].copy()
            tried[:, self.moving] += (length[going, None] * slopes[going]) * self.span[self.moving]
            tried = self._back(at[going], self._projected(np.clip(tried, self.domain.lower, self.domain.upper)))
            step = (tried - at[going])[:, self.moving] / self.span[self.moving]
            found, risen = self._slopes(surface, tried)
            ahead = np.einsum("ij,ij->i", slopes[going], step)
            better = (found >= values[going] + ENOUGH * ahead) & (ahead > 0.0)
            bend = np.einsum("ij,ij->i", slopes[going] - risen, step)
            square = np.einsum("ij,ij->i", step, step)
            with np.errstate(divide="ignore", invalid="ignore"):
                fitting = np.where(bend > 0.0, square / bend, LONGER * length[going])
            rose, far = found - values[going], np.abs(step).max(axis=1)
            length[going] = np.where(better, np.minimum(fitting, LONGER * length[going]), SHORTER * length[going])
            ends = (far <= ARRIVED) | (better & (rose <= ARRIVED * np.abs(found)))
            taken = going[better]
            at[taken], values[taken], slopes[taken] = tried[better], found[better], risen[better]
            going = going[~ends]
        return at, values

    def _slopes(self, surface: AcquisitionFunction, points: Array) -> tuple[Array, Array]:
        """Returns values, and finite slopes in the columns that move, per side."""
        values, slopes = surface.slopes(points)
        active = self.domain.active(points)
        if active is not None:
            slopes = np.where(active, slopes, 0.0)
        return values, np.nan_to_num(slopes[:, self.moving] * self.span[self.moving])

    def _projected(self, points: Array) -> Array:
        """Returns points `(n, d)` with their moving columns projected onto the nearest ball of each constraint."""
        for _ in range(1 if len(self.weights) == 1 else SWEEPS):
            for j, weights in enumerate(self.weights):
                whole = self.cones.factors[j] * self.cones.distances(points, j)
                offsets = (points[:, None, self.moving] - self.cones.points[None, :, self.moving]) / self.span[
                    self.moving
                ]
                radii = -(self.cones.ceilings[:, j] + (whole - np.abs(offsets) @ weights))  # left for moving columns
                excess = np.where(radii >= 0.0, self.cones.ceilings[:, j] + whole, np.inf)
                rows, nearest = np.arange(len(points)), excess.argmin(axis=1)
                offset, radius = offsets[rows, nearest], INSIDE * radii[rows, nearest]
                known = np.isfinite(radius) & (radius >= 0.0)
                ends = (
                    self.cones.points[nearest][:, self.moving]
                    + within_ball(offset, weights, np.where(known, radius, 0.0)) * self.span[self.moving]
                )
                points[:, self.moving] = np.where(known[:, None], ends, points[:, self.moving])
        return np.asarray(np.clip(points, self.domain.lower, self.domain.upper))

    def _back(self, at: Array, tried: Array) -> Array:
        """Returns the farthest points seen on the ways from certified points to others that are certified, `(n, d)`."""
        return last_good(at, tried, self.good)


def last_good(at: Array, tried: Array, good: Callable[[Array], Mask]) -> Array:
    """Returns tried points, or the farthest good points seen on the ways to them from good points, `(n, d)`."""
    result, low, width = tried.copy(), np.zeros(len(at)), 1.0
    rows = np.flatnonzero(~good(tried))
    result[rows] = at[rows]
    for _ in range(2 if len(rows) else 0):
        t = low[rows, None] + width * np.arange(1, SECTIONS) / SECTIONS
        points = at[rows, None] + t[..., None] * (tried[rows] - at[rows])[:, None]
        inside = good(points.reshape(-1, at.shape[1])).reshape(t.shape)
        some = inside.any(axis=1)
        last = t.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        chosen = np.arange(len(rows))[some]
        result[rows[some]] = points[chosen, last[some]]
        low[rows[some]] = t[chosen, last[some]]
        width /= SECTIONS
    return result


def within_ball(offsets: Array, weights: Array, radii: Array) -> Array:
    """Returns the nearest offsets `(n, p)` with sum_c w_c |offset_c| <= radius, of positive weights `(p,)`.

    They are soft thresholds sign(a) max(|a| - t w, 0), where t is found by sorting |a| / w (Duchi et al. 2008, figure
    1, with weights).
    """
    sizes = np.abs(offsets)
    ratios = sizes / weights
    order = np.argsort(-ratios, axis=1, kind="stable")
    ranked, heavy = np.take_along_axis(sizes, order, axis=1), weights[order]
    levels = (np.cumsum(heavy * ranked, axis=1) - radii[:, None]) / np.cumsum(heavy * heavy, axis=1)
    above = np.take_along_axis(ratios, order, axis=1) > levels
    last = above.shape[1] - 1 - above[:, ::-1].argmax(axis=1)
    level = np.maximum(np.where(above.any(axis=1), levels[np.arange(len(levels)), last], np.inf), 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sign(offsets) * np.maximum(sizes - level[:, None] * weights, 0.0))


@lru_cache(maxsize=64)
def _directions(columns: int) -> Array:
    """Returns spread directions, `(SPREAD, columns)`."""
    found = Draws(f"directions {columns}").standard_normal((SPREAD, columns))
    return np.asarray(found / np.abs(found).sum(axis=1, keepdims=True))
