"""The point of a box or space with the best score: candidates everywhere, then refinement of the best.

In few dimensions the candidates are dense. Then parabolas through their scores are followed by Newton's method from
values alone, with all starts in one batch (`trust_region`). Otherwise, and if columns are whole numbers or choices,
points around the best candidates are followed by gradients.

The search works in the unit cube (u = (x - lower) / (upper - lower)), where one step size fits all dimensions. It is
deterministic given its random generator.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray, flag, integer, number, settle
from ..._utils.dataclass import field
from ..._utils.randomness import Draws
from ...errors import InvalidInput
from ...serialize import LATER, description
from ..domain import Box, Space
from .designs import clipped, every, leading_options, mutated, neighbours, sobol, within
from .feasible import kept, region


def wrong_score(what: str, score: float) -> InvalidInput:
    """Returns the error about a score that is infinite or NaN. `what` says of what it is, such as "an arm"."""
    return InvalidInput(
        f"The score of {what} is {'infinite' if score == score else 'NaN'}. Usually a score of one's own divides by a "
        "standard deviation of 0, or takes the logarithm of a negative number, or a width of one's own is no finite "
        "number.",
        advice="See `nilregret.testing.check_policy`.",
    )


class AcquisitionFunction(NamedTuple):
    """A function to maximise, of rows in the domain's (encoded) coordinates.

    Attributes:
        values: maps points `(m, d)` to values `(m,)`.
        slopes: maps points `(m, d)` to values `(m,)` and gradients `(m, d)`.
        resolution: difference of values that does not matter. With 0, a search ends at a small share of their range.
        rough: maps points `(m, d)` to approximate values `(m,)`, by which many points are ranked before the best of
            them are valued. None if nothing is much cheaper than `values`.
        near: maps starts `(m, d)` and a number of trials to an approximation around these starts, by which they climb.
            The approximation is None if the function itself is as cheap.
    """

    values: Callable[[Array], Array]
    slopes: Callable[[Array], tuple[Array, Array]]
    resolution: float = 0.0
    rough: Callable[[Array], Array] | None = None
    near: Callable[[Array, int], AcquisitionFunction | None] | None = None


MILD = (1e-100, 1e100)  # ranges of scores whose squares neither vanish nor overflow
MOST_LOOKS = 2**20  # upper limit of all counts of a search
DENSE = 0.1  # largest spacing of candidates in the unit cube for which parabolas suffice
PEAKS, STARTS = 4, 2  # multiples of `starts`: peaks of dense candidates that are valued, and that are refined
APART = 2.0  # distance between these peaks, in spacings
CLOSE = 0.01  # smallest distance between starts, as a share of the diagonal
AROUND = 64  # least number of mutations tried by `moved_apart`
NEAREST = 24  # number of the nearest of them that are valued where candidates are dense, and
FARTHER = 12  # one of so many of the others
BLOCK = 32  # best points that are compared with each other at a time
LEADING = 64  # number of candidates that are compared with the tried points at a time
MORE = 3  # multiple of starts and steps if the candidates are not dense
HASTY = 0.02  # nats of a logarithmic score that are not worth another step of a hasty search
REACH = 3.0  # spacings within which the slope of a start must lead above the best so far
VALUED = 48  # number of points tried that are valued exactly, if rough values are cheaper
COLLINEAR = 1e-6  # relative singular value below which a part of a parabola is set to 0, as on a face
FITS = 0.02  # largest error of a parabola that fits, as a share of the range of the scores around
MOST_ALTERNATIONS = 5  # largest number of alternations between real columns and others
COARSE = 1e-9  # share of the range of scores below which candidates rank by position
SAME = 1e-9  # share of its range by which a column of a whole number or choice differs if the value differs
FLAT = 1e-10  # relative range of the candidates' scores below which a score is constant


class Found(NamedTuple):
    """The result of a search.

    Attributes:
        point: `(d,)`, a valid point of the domain.
        value: score of the point.
        evaluations: number of points at which the score was evaluated, without the candidates.
    """

    point: Array
    value: float
    evaluations: int


@final
@description(frozen=True, kw_only=True)
class PointSearch:
    """Multi-start ascent.

    Attributes:
        candidates: number of scrambled Sobol points that are valued in every search, a power of two.
        around: number of points tried around the best candidates and incumbents before gradients are used. Dense
            candidates, in few dimensions, do without.
        starts: number of the best points that are refined. Dense candidates are refined by Newton's method. Others
            have three times as many starts, refined by quasi-Newton steps.
        evaluations: largest number of steps of each start, and three times as many without dense candidates. One
            step of all starts is one batch.
        mutations: number of points tried that differ from a good one in some parameters only, by steps of all
            sizes. They are useful if the candidates are not dense.
        incumbents: number of the best points so far that are searched closely.
        apart: smallest distance of a new point from every point tried, in some parameter, as a share of its range.
            So the end of a search is not spent on one point. With 0 any point is allowed. Without real parameters an
            answered point may be repeated if answers are noisy, and the best one also if that is not known yet. Points
            may also be repeated under contexts, and if `EveryRound`, `OnAverage` or `Safe` place them inside of a
            border.
        hasty: True to end the quasi-Newton steps of a start once the next one promises too little. Then it has two
            hundredths of an expected improvement left to gain, or does not come up to the best start.
        related: number of distinct points by which starts climb, once there are more than ten times as many. They are
            those that the kernel relates most to the starts. Standard deviations on the way are given these points
            alone, but exact at the starts. Means are given all points, and so are the scores of the starts and of the
            ends. With 0 everything is. Scores of other quantities, constraints and several objectives always are given
            all points.
    """

    candidates: int = 1024
    around: int = 48
    starts: int = 3
    evaluations: int = 20
    mutations: int = 0
    incumbents: int = 1
    apart: float = 0.0
    hasty: bool = field(default=False, metadata=LATER)
    related: int = field(default=0, metadata=LATER)

    def __post_init__(self) -> None:
        lowest = (
            ("candidates", 2),
            ("around", 0),
            ("starts", 1),
            ("evaluations", 1),
            ("mutations", 0),
            ("incumbents", 1),
            ("related", 0),
        )
        for name, low in lowest:
            settle(self, **{name: integer(name, getattr(self, name), low=low, high=MOST_LOOKS)})
        settle(self, apart=number("apart", self.apart, low=0.0, high=1.0, why="It is a share of a parameter's range."))
        settle(self, hasty=flag("hasty", self.hasty))

    def candidate_points(self, domain: Box | Space, seed: int) -> Array:
        """Returns the candidates `(candidates, d)`, the same for the same seed, or all points if there are no more."""
        rng = Draws(f"candidates {seed} {domain.dimension}")
        if isinstance(domain, Space) and len(points := every(domain, self.candidates)):
            return points[rng.permutation(len(points))]
        if domain.limits is not None:
            return region(domain).candidates(self.candidates, rng)
        points = sobol(domain, self.candidates, rng)
        if self.dense(domain):  # Upper bounds often have their maxima on faces and in corners.
            unit = (points - domain.lower) / (domain.upper - domain.lower)
            half = 0.75 * _spacing(domain, len(unit))
            unit = np.where(unit < half, 0.0, np.where(unit > 1.0 - half, 1.0, unit))
            corners = list(itertools.product((0.0, 1.0), repeat=domain.dimension))
            unit[: len(corners)] = corners[: len(unit)]
            points = domain.lower + unit * (domain.upper - domain.lower)
        return points

    def dense(self, domain: Box | Space) -> bool:
        """Returns True if the candidates are so close together that they show every peak worth refining."""
        dense = bool(_spacing(domain, self.candidates) <= DENSE and real_columns(domain).all())
        return dense and domain.limits is None

    def moved_apart(
        self, point: Array, surface: AcquisitionFunction, domain: Box | Space, *, candidates: Array, scores: Array,
        tried: Array, rng: Callable[[], Draws],
    ) -> Array:  # fmt: skip
        """Returns the point `(d,)`, or the best untried point around it if it is too close to a tried one.

        Args:
            point: result of the search.
            surface: score.
            domain: domain of the points.
            candidates: `(m, d)`.
            scores: of the candidates, `(m,)`.
            tried: points that are not to be played while there are others, `(n, d)`.
            rng: returns the generator of the trial.
        """
        if not self.apart or not self._near(point[None], tried, domain)[0]:
            return point
        leading = self._leading(candidates[np.argsort(-coarse(scores), kind="stable")], tried, domain)
        changed = mutated(domain, point[None], max(self.mutations, AROUND), rng())
        changed = changed[~self._near(changed, tried, domain)]
        if self.dense(domain):  # Of a smooth score around its maximum the nearest points are nearly always the best.
            changed = changed[_nearest(changed, point, domain)]
        around = np.concatenate([changed, leading])
        if not len(around):
            return point
        around = _likely(surface, around)
        values = surface.values(around)
        return around[int(values.argmax())].copy() if np.isfinite(values.max()) else point

    def _leading(self, ranked: Array, tried: Array, domain: Box | Space) -> Array:
        """Returns the first of these points that was not tried, `(1, d)`, or none."""
        for start in range(0, len(ranked), LEADING):
            block = ranked[start : start + LEADING]
            found = np.flatnonzero(~self._near(block, tried, domain))
            if len(found):
                return block[found[:1]]
        return ranked[:0]

    def _near(self, points: Array, tried: Array, domain: Box | Space) -> npt.NDArray[np.bool_]:
        """Returns True for points that were tried, or differ from a tried point only slightly in real parameters."""
        real = real_columns(domain)
        least = np.where(real, self.apart, SAME) * (domain.upper - domain.lower)
        # Real columns come first, since they leave few pairs to be compared in the others.
        return within(points, tried, least, order=np.argsort(~real, kind="stable"))

    def maximize(
        self, surface: AcquisitionFunction, domain: Box | Space, *, candidates: Array, scores: Array, incumbents: Array,
        rng: Callable[[], Draws],
    ) -> Found:  # fmt: skip
        """Returns the best point found.

        Args:
            surface: score.
            domain: domain of the points.
            candidates: `(m, d)`.
            scores: of the candidates, `(m,)`.
            incumbents: points worth a closer search, `(i, d)`: the best so far, and the last maximum.
            rng: returns the generator of the trial.

        Raises:
            InvalidInput: no score of a candidate is finite.
        """
        possible = np.flatnonzero(np.isfinite(scores))
        if not len(possible):
            raise wrong_score("every point", float(scores.max()))
        if float(np.ptp(scores[possible])) <= FLAT * float(np.abs(scores[possible]).max()):
            # All points are equally good, as before the first observation.
            pick = int(possible[rng().integers(len(possible))])
            return Found(candidates[pick], float(scores[pick]), 0)
        if self.dense(domain):
            return self._refine_together(surface, domain, candidates, scores, incumbents)
        if len(incumbents) and domain.limits is not None:
            incumbents = kept(domain, incumbents)
        spacing, starts = _spacing(domain, len(candidates)), MORE * self.starts
        top = candidates[_spread(candidates, coarse(scores), starts, domain)]
        centres = np.concatenate([top, incumbents])
        tried = np.concatenate([_perturbed(centres, domain, self.around, spacing, rng()), incumbents])
        if self.mutations and len(incumbents):
            tried = np.concatenate([tried, mutated(domain, incumbents, self.mutations, rng())])
        # The candidates' scores may have been computed in several ways, which round differently. From here on only
        # scores count that a replay computes in the same way.
        points = _likely(surface, np.concatenate([top, tried]))
        values = surface.values(points)
        first = Found(points[int(values.argmax())], float(values.max()), len(points))
        chosen = _spread(points, values, starts, domain)
        unit = float(np.ptp(values[np.isfinite(values)]))
        found = self._ascend(
            surface, domain, points[chosen], values[chosen], best=first.value, spacing=spacing, unit=unit,
            worth=leading_options(domain, points[np.argsort(-values, kind="stable")]),
        )  # fmt: skip
        return max(first, found, key=lambda each: each.value)._replace(
            evaluations=first.evaluations + found.evaluations
        )

    def _refine_together(
        self, surface: AcquisitionFunction, domain: Box | Space, candidates: Array, scores: Array, incumbents: Array
    ) -> Found:
        """Returns the best of the refined peaks of the candidates and incumbents, one batch a step."""
        from .trust_region import climb

        spacing = _spacing(domain, len(candidates))
        apart = APART * spacing / np.sqrt(domain.dimension)
        seen = candidates[_spread(candidates, coarse(scores), PEAKS * self.starts, domain, apart=apart)]
        peaks, replaced = _peaks(seen, candidates, scores, domain)
        points = np.concatenate([seen[~replaced], peaks, incumbents])
        values = surface.values(points)
        first = Found(points[int(values.argmax())], float(values.max()), len(points))
        starts = _spread(points, values, STARTS * self.starts, domain, apart=CLOSE)
        low, span = domain.lower, domain.upper - domain.lower

        def inside(u: Array) -> Array:
            return np.asarray(np.clip(low + u * span, low, domain.upper))

        at, value, evaluations = climb(
            lambda u: surface.values(inside(u)),
            np.clip((points[starts] - low) / span, 0.0, 1.0),
            values[starts],
            radius=APART * spacing,
            rounds=self.evaluations,
            scale=float(np.ptp(scores[np.isfinite(scores)])),
        )
        found = Found(inside(at), value, 0) if value > first.value else first
        return found._replace(evaluations=first.evaluations + evaluations)

    def _ascend(
        self, surface: AcquisitionFunction, domain: Box | Space, at: Array, values: Array, *, best: float,
        spacing: float, unit: float, worth: npt.NDArray[np.bool_],
    ) -> Found:  # fmt: skip
        """Returns the best end of some starts, which climb by the score or by approximations around them."""
        local = None if surface.near is None or not self.related else surface.near(at, self.related)
        at, values = at.copy(), values.copy()
        counted = self._alternate(
            local or surface, domain, at, values, best=best, spacing=spacing, unit=unit, worth=worth
        )  # fmt: skip
        if local is not None:
            values = surface.values(at)
        top = int(values.argmax())
        return Found(at[top], float(values[top]), counted)

    def _alternate(
        self, surface: AcquisitionFunction, domain: Box | Space, at: Array, values: Array, *, best: float,
        spacing: float, unit: float, worth: npt.NDArray[np.bool_],
    ) -> int:  # fmt: skip
        """Alternates gradients in real columns with local search in others until neither improves, in place.

        Returns the number of points evaluated.
        """
        from .quasi_newton import climb_within

        real, counted, moving = real_columns(domain), 0, np.arange(len(at))
        for _ in range(MOST_ALTERNATIONS):
            if real.any() and domain.limits is not None:
                first = moving[np.argsort(-values[moving], kind="stable")[: self.starts]]
                counted += climb_within(
                    region(domain), surface.values, surface.slopes, at, values, first, unit=unit,
                    steps=MORE * self.evaluations,
                )  # fmt: skip
            elif real.any():
                counted += self._climb(surface, domain, at, values, moving, real, best=best, spacing=spacing, unit=unit)
            if real.all():
                break
            moving, tried = _step_to_neighbours(surface, domain, at, values, moving, worth)
            counted += tried
            if not len(moving):
                break
        return counted

    def _climb(
        self, surface: AcquisitionFunction, domain: Box | Space, at: Array, values: Array, who: npt.NDArray[np.intp],
        real: npt.NDArray[np.bool_], *, best: float, spacing: float, unit: float,
    ) -> int:  # fmt: skip
        """Moves these starts uphill in the real columns, in place, and returns the number of points evaluated."""
        from .quasi_newton import PATIENCE, ascend, between

        whole = real.all()
        columns = slice(None) if whole else np.flatnonzero(real)
        low, span = domain.lower[columns], (domain.upper - domain.lower)[columns]
        high, fixed = low + span, at[who]
        counting = domain.active(fixed)
        factor = _power_of_two(unit)
        scaled = span * factor
        resolution = max(surface.resolution, HASTY) if self.hasty and surface.resolution else surface.resolution

        def slopes(u: Array, which: npt.NDArray[np.intp]) -> tuple[Array, Array]:
            moved = between(low + u * span, low, high)
            points = moved if whole else fixed[which]
            if not whole:
                points[:, columns] = moved
            found, gradients = surface.slopes(points)
            if counting is not None:  # inactive columns do not move
                gradients = np.where(counting[which], gradients, 0.0)
            return found if factor == 1.0 else found * factor, gradients[:, columns] * scaled

        u, found, counted = ascend(
            slopes,
            np.clip((fixed[:, columns] - low) / span, 0.0, 1.0),
            radius=0.3 * spacing,
            reach=REACH * spacing,
            best=max(best, float(values.max())) * factor,
            unit=unit * factor,
            resolution=resolution * factor,
            patience=1.0 if self.hasty else PATIENCE,
            evaluations=MORE * self.evaluations,
        )
        found = found / factor
        better = found > values[who]
        fixed[:, columns] = np.clip(low + u * span, low, high)
        at[who[better]], values[who[better]] = fixed[better], found[better]
        return counted


def _likely(surface: AcquisitionFunction, points: Array) -> Array:
    """Returns the points `(k, d)` that are worth an exact value, which are all if there are no rough values."""
    if surface.rough is None or len(points) <= VALUED:
        return points
    return points[np.sort(np.argpartition(-surface.rough(points), VALUED)[:VALUED])]


def _step_to_neighbours(
    surface: AcquisitionFunction, domain: Box | Space, at: Array, values: Array, who: npt.NDArray[np.intp],
    worth: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.intp], int]:  # fmt: skip
    """Moves these starts to their best neighbours, in place, in one batch.

    Returns the starts that rose, and the number of points evaluated.
    """
    around = [neighbours(domain, at[i], worth) for i in who]
    points = np.concatenate(around)
    if not len(points):
        return who[:0], 0
    risen, ends = [], np.cumsum([len(each) for each in around])
    for i, tried, found in zip(who, around, np.split(surface.values(points), ends[:-1]), strict=True):
        if len(found) and found.max() > values[i]:
            at[i], values[i] = tried[int(found.argmax())], found.max()
            risen.append(i)
    return np.array(risen, dtype=np.intp), len(points)


def _peaks(points: Array, candidates: Array, scores: Array, domain: Box | Space) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Returns maxima of parabolas through the scores around points, within the range of these scores, `(k, d)`.

    The scores of the candidates are known already, and every evaluation of the score costs O(n^2). A start close to the
    maximum saves some evaluations. The second result, `(k,)`, says which parabolas fit so well that the point itself
    need not be valued.
    """
    from .trust_region import tops_of_parabolas

    d, span = domain.dimension, domain.upper - domain.lower
    count = (d + 1) * (d + 2)  # twice the number of coefficients of a parabola
    if not real_columns(domain).all() or count > len(candidates) // 8:
        return points, np.ones(len(points), dtype=bool)
    offsets = (candidates - points[:, None]) / span
    squares = np.einsum("kij,kij->ki", offsets, offsets)
    near = np.argpartition(squares, count, axis=1)[:, :count]
    values = scores[near]
    usable = np.asarray(np.isfinite(values).all(axis=1))
    values = np.where(usable[:, None], values, 0.0)
    reach = np.sqrt(np.take_along_axis(squares, near, axis=1).max(axis=1))[:, None]
    z = np.take_along_axis(offsets, near[:, :, None], axis=1) / reach[:, None]
    i, j = np.triu_indices(d)
    design = np.concatenate([np.ones((len(points), count, 1)), z, z[:, :, i] * z[:, :, j]], axis=2)
    coefficients = np.einsum("kij,kj->ki", np.linalg.pinv(design, rcond=COLLINEAR), values)
    missed = np.abs(np.einsum("kij,kj->ki", design, coefficients) - values).max(axis=1)
    hessians = np.zeros((len(points), d, d))
    hessians[:, i, j] += coefficients[:, d + 1 :]
    hessians += hessians.transpose(0, 2, 1).copy()
    unit = (points - domain.lower) / span
    low, high = np.maximum(-reach, -unit) / reach, np.minimum(reach, 1.0 - unit) / reach
    least = COLLINEAR * np.ptp(values, axis=1)
    steps, _ = tops_of_parabolas(coefficients[:, 1 : d + 1], hessians, low, high, least=least)
    # Rounding removes the last digits of the scores, which depend on the way in which they were computed.
    grid = 0.01 * _spacing(domain, len(candidates))
    peaks = domain.lower + np.clip(grid * np.round((unit + steps * reach) / grid), 0.0, 1.0) * span
    return np.where(usable[:, None], peaks, points), ~usable | (missed <= FITS * np.ptp(values, axis=1))


def leaders(points: Array, scores: Array, count: int, domain: Box | Space) -> Array:
    """Returns the best points apart from each other, `(k, d)`, k <= `count`, or none if all scores are equal."""
    finite = scores[np.isfinite(scores)]
    if not len(finite) or np.ptp(finite) <= FLAT * float(np.abs(finite).max()):
        return points[:0]
    return points[_spread(points, coarse(scores), count, domain)]


def real_columns(domain: Box | Space) -> npt.NDArray[np.bool_]:
    """Returns which columns of a point vary continuously, `(d,)`."""
    real = np.ones(domain.dimension, dtype=bool)
    for parameter, columns in domain.columns():
        real[columns] = parameter.real
    return real


def coarse(scores: Array) -> Array:
    """Returns scores in steps of a billionth of their range.

    So scores that differ only by rounding rank by their position.
    """
    finite = scores[np.isfinite(scores)]
    unit = COARSE * float(np.ptp(finite))
    return np.asarray(np.round((scores - finite.max()) / unit)) if unit else scores


def _power_of_two(unit: float) -> float:
    """Returns the factor of the scores during an ascent, so that squares neither vanish nor overflow.

    The factor is 1 except for extreme ranges, and a power of two, which leaves every digit as it is.
    """
    return 1.0 if MILD[0] <= unit <= MILD[1] or not np.isfinite(unit) else float(2.0 ** -np.frexp(max(unit, 1e-300))[1])


def _spacing(domain: Box | Space, count: int) -> float:
    """Returns the distance between `count` points in the unit cube."""
    return float(count ** (-1.0 / domain.dimension))


def _spread(points: Array, values: Array, count: int, domain: Box | Space, *, apart: float = 0.02) -> list[int]:
    """Returns the best points, none of them closer than a share `apart` of the diagonal to a better one."""
    span, limit, chosen = domain.upper - domain.lower, apart**2 * domain.dimension, list[int]()
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > -np.inf]

    for start in range(0, len(order), BLOCK):  # The first block is often enough.
        rows = np.concatenate([np.array(chosen, dtype=np.intp), order[start : start + BLOCK]])
        unit = points[rows] / span
        offsets = unit[:, None] - unit
        far = np.einsum("ijk,ijk->ij", offsets, offsets) > limit
        left = far[: len(chosen)].all(axis=0)
        left[: len(chosen)] = False
        while len(chosen) < count and left.any():
            first = int(left.argmax())
            chosen.append(int(rows[first]))
            left &= far[first]
        if len(chosen) == count:
            break
    return chosen


def _nearest(points: Array, centre: Array, domain: Box | Space) -> IndexArray:
    """Returns the nearest points to a centre, and a few of the others, `(k,)`."""
    distances = np.abs((points - centre) / (domain.upper - domain.lower)).max(axis=1)
    order = np.argsort(distances, kind="stable")
    return np.concatenate([order[:NEAREST], order[NEAREST::FARTHER]])


def _perturbed(centres: Array, domain: Box | Space, count: int, spacing: float, rng: Draws) -> Array:
    """Returns points around the centres, at two distances, within the domain."""
    if count == 0:
        return np.zeros((0, domain.dimension))
    # Half the spacing of the candidates, and a tenth of that.
    radius = 0.5 * spacing * np.where(np.arange(count) % 2, 1.0, 0.1)[:, None] * (domain.upper - domain.lower)
    anchors = centres[np.arange(count) % len(centres)]
    return clipped(domain, anchors + radius * rng.standard_normal((count, domain.dimension)), anchors)
