"""Points of a space that keep its known limits (`Space.where`).

Every search makes points without a look at limits, and passes them through `kept`, which moves points outside onto the
limits. Only real columns move: whole numbers and choices of a point stay as they are.

| symbol | name | meaning | shape |
|---|---|---|---|
| c | `anchors` | points that keep the limits | (n, d) |
| u | `points` | wished points | (n, d) |
| P | | projection onto the equalities A u = b of real columns | (d, d) |
| g, J | | gaps of the comparisons, and their slopes | (n, m), (n, m, d) |

A point outside takes a few steps u - J^+ max(g, 0) within the equalities. Then c + t P (u - c) with the largest t that
keeps the limits is found by bisection. So a few points end on a border to all digits, whatever the limits are.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, cast, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array
from ..._utils.randomness import Draws, Rng, sobol_points
from ...errors import InvalidInput
from ..domain import Box, Space, distinct

if TYPE_CHECKING:
    from ..limits import Limits

CORRECTIONS = 4  # steps towards the limits
FINE, ROUGH = 2.0**-44, 2.0**-24  # shares of a way that may be left before a border, of a few points and of many
MANY = 8  # points, which are candidates: the best of them are refined later
SECTIONS = 15  # points of a way that are looked at together
BURN_IN = 32  # steps of hit and run, and as many for each column
MOST_SOBOL = 2**14  # points of a design that are looked at
BATCH, MOST_DRAWN = 2**11, 2**20  # points drawn at a time, and in all, until one keeps the limits
POOL = 8  # multiple of the points of a design that are drawn
LLOYD = 10  # rounds that find the clusters of a design
FAR = 4.0  # distance of a target beyond every border

Mask = npt.NDArray[np.bool_]


@final
class Region:
    """The points of a space that keep its limits.

    Args:
        space: with limits.
        limits: of the space.
    """

    def __init__(self, space: Space, limits: Limits) -> None:
        from ..limits_linear import Polytope

        self.space, self.limits, self.real = space, limits, limits.real
        self.polytope = Polytope(limits)
        d = space.dimension
        A, b = (np.zeros((0, d)), np.zeros(0)) if limits.equalities is None else limits.equalities
        self.A, self.b, self.back = A, b, np.linalg.pinv(A) if len(A) else np.zeros((d, 0))
        self.across = np.diag(self.real.astype(float)) - self.back @ A

    def level(self, points: Array) -> Array:
        """Returns the nearest points on the equalities, `(n, d)`."""
        return points - (points @ self.A.T - self.b) @ self.back.T if len(self.A) else points

    def kept(self, points: Array, anchors: Array | None = None) -> Array:
        """Returns the points `(k, d)` that keep the limits, those outside after they were moved onto the limits.

        Args:
            points: wished points `(n, d)`, valid but for the limits.
            anchors: a point that keeps the limits for each, `(n, d)`, or None for one in the middle.
        """
        space, limits = self.space, self.limits
        outside = np.flatnonzero(~limits.tight(points))
        if not len(outside):
            return points
        wished = self._corrected(points[outside])
        base = np.repeat(self.middle[None], len(outside), axis=0) if anchors is None else anchors[outside]
        moved, found = self._reached(base, wished, points[outside])
        result, left = points.copy(), np.ones(len(points), dtype=bool)
        result[outside[found]] = moved[found]
        # Near a pole rounding may take much, so a point that holds by rounding alone is kept only as somebody gave it.
        left[outside[~found]] = anchors is None and limits.holds(points[outside[~found]])
        kept = result[left] if space.conditions is None else space.snap(result[left])
        return kept[limits.holds(kept)]

    def _corrected(self, points: Array) -> Array:
        """Returns the points after a few steps towards the limits."""
        points = self.level(points)
        for _ in range(CORRECTIONS):
            gaps = self.limits.gaps(self.space.snap(points))
            far = (gaps > 0.0) & np.isfinite(gaps) & ~self.limits.equal
            rows = np.flatnonzero(far.any(axis=1))
            if not len(rows):
                break
            slopes = np.where(far[rows][:, :, None], self.limits.jacobian(points[rows]) @ self.across, 0.0)
            lengths = np.maximum(np.linalg.norm(slopes, axis=2, keepdims=True), 1e-12)
            steps = (
                np.linalg.pinv(slopes / lengths, rcond=1e-9)
                @ (np.where(far, gaps, 0.0)[rows] / lengths[..., 0])[..., None]
            )
            points[rows] = self.level(np.clip(points[rows] - np.clip(steps[..., 0], -1.0, 1.0), 0.0, self.space.upper))
        return points

    def _reached(self, anchors: Array, wished: Array, given: Array) -> tuple[Array, Mask]:
        """Returns the last points on the ways from anchors to wished points, and whether there is a way.

        Whole numbers and choices are those of `given`.
        """
        real, start = self.real, self.space.snap(np.where(self.real, anchors, given))
        there = self.space.snap(np.where(real, np.clip(wished, 0.0, self.space.upper), start))
        straight = self.limits.tight(there)
        start = np.where(straight[:, None], there, start)
        loose = ~straight & ~self.limits.tight(start)
        found = ~loose | (self.limits.holds(start) & (start == anchors).all(axis=1))
        active = self.space.active(start)
        way = np.where(real if active is None else real & active, wished - start, 0.0)
        way -= way @ self.A.T @ self.back.T
        best, rows, low, width = start.copy(), np.flatnonzero(found), np.zeros(len(start)), 1.0
        ends, inside = self._on_way(start[rows], way[rows], np.ones((len(rows), 1)), loose[rows])
        best[rows] = np.where(inside, ends[:, 0], best[rows])
        rows = rows[~inside[:, 0]]
        while len(rows) and width > (FINE if len(start) <= MANY else ROUGH):
            k = min(max(BATCH // len(rows), 1), SECTIONS)
            t = low[rows, None] + width * np.arange(1, k + 1) / (k + 1)
            tried, inside = self._on_way(start[rows], way[rows], t, loose[rows])
            last = np.where(inside.all(axis=1), k, inside.argmin(axis=1)) - 1  # before the first one outside
            on, width = np.flatnonzero(last >= 0), width / (k + 1)
            best[rows[on]], low[rows[on]] = tried[on, last[on]], t[on, last[on]]
        return best, found

    def _on_way(self, start: Array, way: Array, t: Array, loose: Mask) -> tuple[Array, Mask]:
        """Returns the points start + t way, `(n, k, d)` for shares t `(n, k)`, and which keep the limits, `(n, k)`."""
        tried = start[:, None] + t[..., None] * way[:, None]
        inside = ((tried > -1e-12) & (tried < self.space.upper + 1e-12)).all(axis=2)
        tried = np.clip(tried, 0.0, self.space.upper)
        flat = tried.reshape(-1, tried.shape[2])
        kept = self.limits.tight(flat).reshape(t.shape)
        if loose.any():
            kept |= loose[:, None] & self.limits.holds(flat).reshape(t.shape)
        return tried, inside & kept

    @cached_property
    def middle(self) -> Array:
        """A point well inside of the linear limits, `(d,)`, with any options."""
        point = np.where(self.real, 0.5, self.space.snap(np.full((1, self.space.dimension), 0.5))[0])
        if self.polytope.moving.any():
            point[self.polytope.moving] = self.polytope.centre
        return np.asarray(self.space.snap(point[None])[0])

    def uniform(self, count: int, rng: Rng) -> Array:
        """Returns about uniform points that keep the limits, `(n, d)`, at least one and at most `count`.

        Raises:
            InvalidInput: none was found.
        """
        found, drawn, kept = [], 0, 0
        batch = min(max(count, 64), BATCH)
        at = self._chains(batch, rng)
        while kept < count and drawn < MOST_DRAWN and (drawn < 16 * count or not kept):
            points = self.space.spread(rng.random((batch, len(self.space.parameters))))
            if at is not None:
                for _ in range(4):
                    at = self.polytope.steps(at, rng)
                points[:, self.polytope.moving] = np.clip(at, 0.0, 1.0)
                points = self.space.snap(points)
            points = points[self.limits.tight(points)]
            found.append(points)
            drawn, kept = drawn + batch, kept + len(points)
        if not kept:
            raise InvalidInput(
                f"No point that keeps the limits {self.limits.texts} was found in {drawn:,} draws. Usually the ranges "
                "are far too wide: narrow them to where the limits can hold."
            )
        return np.concatenate(found)[:count]

    def _chains(self, count: int, rng: Rng) -> Array | None:
        """Returns starts of hit and run, or None if draws of the whole space do as well."""
        if not self.polytope.moving.any() or (self.limits.equalities is None and self.share > 0.1):
            return None
        at = np.repeat(self.polytope.centre[None], count, axis=0)
        for _ in range(BURN_IN + at.shape[1]):
            at = self.polytope.steps(at, rng)
        return at

    @cached_property
    def share(self) -> float:
        """Share of 2,048 uniform points that keep the limits."""
        points = self.space.spread(Draws("share").random((BATCH, len(self.space.parameters))))
        return float(self.limits.holds(points).mean())

    def sobol(self, count: int, rng: Draws) -> Array:
        """Returns Sobol points that keep the limits, `(n, d)`: none under equalities, few if the share is small."""
        if self.limits.equalities is not None:
            return np.zeros((0, self.space.dimension))
        more = min(max(int(count / max(self.share, 1e-9)), count), MOST_SOBOL)
        points = sobol_points(len(self.space.parameters), 2 ** max(more - 1, 1).bit_length(), rng)
        points = self.space.spread(points)
        return points[self.limits.tight(points)]

    def spread(self, count: int, rng: Draws) -> Array:
        """Returns up to `count` points that keep the limits, `(n, d)`, spread evenly.

        Sobol points are taken if enough of them keep the limits. Otherwise they are one of each cluster of many points
        that were drawn.
        """
        points = distinct(self.sobol(count, rng))
        if len(points) >= count:
            return points[:count]
        return stratified(self.filled(POOL * count, rng), count)

    def candidates(self, count: int, rng: Draws) -> Array:
        """Returns `count` points that keep the limits, `(n, d)`, three quarters of them on borders, as optima are."""
        points = self.sobol(count, rng)
        points = points[:count] if len(points) >= count else self.filled(count, rng)
        some = points[-(-3 * len(points) // 4) :]
        return np.concatenate([points[: len(points) - len(some)], self.to_border(some, rng)])

    def filled(self, count: int, rng: Rng) -> Array:
        """Returns `count` points that keep the limits, `(n, d)`: drawn ones, and walks from them if those are few."""
        points = self.uniform(count, rng)
        while len(points) < count:
            base = points[np.arange(min(len(points), count - len(points)))]
            target = self.space.spread(rng.random((len(base), len(self.space.parameters))))
            ends = self.kept(np.where(self.real, target, base), base)
            if not len(ends):
                break
            points = np.concatenate([points, ends])
        return points[:count]

    def to_border(self, points: Array, rng: Draws) -> Array:
        """Returns the points where ways in random directions from some points leave the limits or ranges, `(n, d)`."""
        way = rng.standard_normal(points.shape) * self.real
        lengths = np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-12)
        return self._reached(points, points + FAR * way / lengths, points)[0]


@lru_cache(maxsize=64)
def _region(space: Space) -> Region:
    return Region(space, space.limits)  # type: ignore[arg-type]  # not None


def region(domain: Box | Space) -> Region:
    """Returns what keeps the limits of a domain, which has some."""
    return _region(cast("Space", domain))


def kept(domain: Box | Space, points: Array, anchors: Array | None = None) -> Array:
    """Returns the points that keep the limits of a domain, which has some (see `Region.kept`)."""
    return region(domain).kept(points, anchors)


def stratified(points: Array, count: int) -> Array:
    """Returns up to `count` distinct points, `(k, d)`, in their order: the first of each cluster of near ones.

    Points farthest apart would all lie on borders. Centres of clusters (Lloyd 1982) would leave borders out.
    """
    points = distinct(points)
    centres, squares = points[:count].copy(), np.square(points).sum(axis=1)
    owner = np.zeros(len(points), dtype=np.intp)
    for _ in range(LLOYD):
        owner = (np.square(centres).sum(axis=1) - 2.0 * points @ centres.T + squares[:, None]).argmin(axis=1)
        member = (owner == np.arange(len(centres))[:, None]).astype(float)
        sizes = member.sum(axis=1, keepdims=True)
        centres = np.where(sizes > 0.0, member @ points / np.maximum(sizes, 1.0), centres)
    firsts = np.sort(np.unique(owner, return_index=True)[1])
    return np.asarray(points[np.concatenate([firsts, np.delete(np.arange(len(points)), firsts)])[:count]])
