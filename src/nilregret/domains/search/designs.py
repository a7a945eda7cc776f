"""Points that fill a domain evenly, and points that differ from a good one in some parameters only.

The unit cube here has one coordinate for each *parameter*. A choice of k options is floor(k u), a whole number too, so
that all options are equally frequent. (The encoded cube has a column for each option, and there the largest of k
columns would be random.)
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import numpy.typing as npt

from ..._utils.checks import Array, IndexArray
from ..._utils.randomness import Draws, Rng, sobol_points
from ..domain import Arms, Box, Domain, Space, count_of_points, distinct
from ..parameters import CHOSEN, Choice, Parameter
from .feasible import kept, region, stratified

SMALLEST, LARGEST = 10.0**-2.5, 10.0**-0.5  # steps of a mutation, as shares of a parameter's range
MOST_LISTED = 2**16  # largest number of points of a space that are listed
FEW = 16  # points for each of a design: if no more keep the limits, all are listed
MOST_OPTIONS = 32  # options of a choice to which a search steps, those of the best points
MEAN_CHANGES = 2.0  # mean number of parameters that a mutation changes, but at least a fifth of them


def coordinates(domain: Domain) -> int:
    """Returns the number of coordinates of the cube: parameters of a space, or columns of a box or of arms."""
    return len(domain.parameters) if isinstance(domain, Space) else domain.dimension


def from_cube(domain: Box | Space, cube: Array) -> Array:
    """Returns the points `(n, d)` of coordinates `(n, parameters)` in [0, 1)."""
    if isinstance(domain, Box):
        return domain.lower + cube * (domain.upper - domain.lower)
    return domain.spread(cube)


def uniform(domain: Box | Space, count: int, rng: Rng) -> Array:
    """Returns points drawn independently and uniformly, `(count, d)`. All values of a choice or `Int` are as likely.

    The logarithm of a whole number with `log=True` is uniform. Under limits, points are about uniform where they hold.
    """
    if domain.limits is not None:
        return region(domain).filled(count, rng)
    return from_cube(domain, rng.random((count, coordinates(domain))))


def sobol(domain: Box | Space, count: int, rng: Draws) -> Array:
    """Returns at least `count` scrambled Sobol points (a power of two), `(m, d)`."""
    return from_cube(domain, sobol_points(coordinates(domain), 2 ** max(count - 1, 1).bit_length(), rng))


def design(domain: Domain, count: int, rng: Draws, *, middle: bool = False) -> Array:
    """Returns up to `count` distinct points of the domain, spread evenly, `(m, d)`, or all if there are no more.

    With `middle` the first point has every number in the middle of its range. It has no effect on arms.
    """
    if isinstance(domain, Arms):
        return domain.points[_spread_arms(domain, count, rng)]
    if domain.limits is not None:
        inside = region(domain)
        few = (count_of_points(domain) or math.inf) * inside.share <= FEW * count
        points = every(inside.space) if few else np.zeros((0, domain.dimension))
        return stratified(points[rng.permutation(len(points))], count) if len(points) else inside.spread(count, rng)
    points = sobol(domain, 4 * count, rng)
    if middle:
        points[0] = _middle(domain, points[0])
    points = distinct(points)
    if len(points) < count and isinstance(domain, Space):
        rest = _combinations(domain, MOST_LISTED)
        points = distinct(np.concatenate([points, rest[rng.permutation(len(rest))]]))
    return points[:count]


def _middle(domain: Box | Space, point: Array) -> Array:
    """Returns a point with the choices of this one `(d,)`, and every number in the middle of its range."""
    point, half = point.copy(), 0.5 * (domain.lower + domain.upper)
    for parameter, columns in domain.columns():
        if not isinstance(parameter, Choice):
            point[columns] = half[columns]
    return np.asarray(domain.snap(point[None])[0])


def within(points: Array, others: Array, least: Array, *, order: IndexArray) -> npt.NDArray[np.bool_]:
    """Returns which points differ from one of the others by less than `least` in all columns, `(n,)`.

    Args:
        points: `(n, d)`.
        others: `(m, d)`.
        least: `(d,)`.
        order: order in which the columns are compared, each for the remaining pairs.
    """
    first, *rest = order
    one, other = np.nonzero(np.abs(points[:, first, None] - others[:, first]) < least[first])
    for column in rest:
        if not len(one):
            break
        close = np.abs(points[one, column] - others[other, column]) < least[column]
        one, other = one[close], other[close]
    found = np.zeros(len(points), dtype=bool)
    found[one] = True
    return found


def every(space: Space, most: int = MOST_LISTED) -> Array:
    """Returns all points of a space, `(n, d)`, or none if it is infinite or has more than `most` combinations."""
    points = distinct(_combinations(space, most))
    return points if space.limits is None else kept(space, points)


def _combinations(space: Space, most: int) -> Array:
    """Returns the points of all combinations of values, as `every` does, with repeats where conditions do not hold."""
    count = count_of_points(space)
    if count is None or count > most:
        return np.zeros((0, space.dimension))
    each = [_values(parameter) for parameter in space.parameters.values()]
    return space.snap(np.array([list(itertools.chain(*row)) for row in itertools.product(*each)]))


def _values(parameter: Parameter) -> list[list[float]]:
    """Returns the columns of every value of a parameter, or none for a real one."""
    return [parameter.at(place) for place in range(parameter.count or 0)]


def _spread_arms(arms: Arms, count: int, rng: Draws) -> IndexArray:
    """Returns the arms nearest to Sobol points of the box around them, completed by random arms."""
    if len(arms) <= count:
        return rng.permutation(len(arms))
    low, high = arms.points.min(axis=0), arms.points.max(axis=0)
    unit = (arms.points - low) / np.where(high > low, high - low, 1.0)
    wanted = sobol(Box(np.zeros(arms.dimension), np.ones(arms.dimension)), count, rng)[:count]
    chosen: list[int] = []
    for point in wanted:
        distances = np.square(unit - point).sum(axis=1)
        nearest = int(distances.argmin())
        if nearest not in chosen:
            chosen.append(nearest)
    while len(chosen) < count:
        arm = int(rng.integers(len(arms)))
        if arm not in chosen:
            chosen.append(arm)
    return np.array(chosen)


def mutated(domain: Box | Space, centres: Array, count: int, rng: Draws) -> Array:
    """Returns points that differ from a centre of `(m, d)` in a few parameters, by steps of all sizes.

    There are `count` of them, or fewer if some cannot be moved onto the limits of the domain.
    """
    low, span = domain.lower, domain.upper - domain.lower
    unit = ((centres - low) / span)[np.arange(count) % len(centres)]
    known = domain.columns()
    changed = rng.random((count, len(known))) < max(0.2, min(1.0, MEAN_CHANGES / len(known)))
    changed[np.arange(count), rng.integers(len(known), size=count)] = True
    steps = _steps(count, rng)
    for (parameter, columns), change in zip(known, changed.T, strict=True):
        rows = np.flatnonzero(change)
        if isinstance(parameter, Choice):
            unit[rows, columns] = 0.0
            unit[rows, columns.start + rng.integers(len(parameter.options), size=len(rows))] = 1.0
        else:
            moved = unit[rows, columns.start] + steps[rows] * rng.standard_normal(len(rows))
            unit[rows, columns.start] = np.minimum(np.maximum(moved, 0.0), 1.0)
    return clipped(domain, low + unit * span, centres[np.arange(count) % len(centres)])


def one_changed(domain: Box | Space, centre: Array, which: int, count: int, rng: Draws) -> Array:
    """Returns points that differ from the centre `(d,)` in one parameter.

    The points have every option of a choice, or `count` steps of all sizes.
    """
    parameter, columns = domain.columns()[which]
    if isinstance(parameter, Choice):
        points = np.repeat(centre[None], len(parameter.options), axis=0)
        points[:, columns] = CHOSEN * np.eye(len(parameter.options))
        return clipped(domain, points, np.repeat(centre[None], len(points), axis=0))
    at = columns.start
    low, side = domain.lower[at], domain.upper[at] - domain.lower[at]
    points = np.repeat(centre[None], count, axis=0)
    moved = (centre[at] - low) / side + _steps(count, rng) * rng.standard_normal(count)
    points[:, at] = low + side * np.clip(moved, 0, 1)
    if parameter.count is not None:
        here = parameter.place(centre[columns])
        near = [here + step for step in (-2, -1, 1, 2) if 0 <= here + step < parameter.count]
        extra = np.repeat(centre[None], len(near), axis=0)
        extra[:, at] = [parameter.at(place)[0] for place in near]
        points = np.concatenate([points, extra])
    return clipped(domain, points, np.repeat(centre[None], len(points), axis=0))


def _steps(count: int, rng: Draws) -> Array:
    """Returns sizes of steps, log-uniform."""
    return np.asarray(SMALLEST * (LARGEST / SMALLEST) ** rng.random(count))


def clipped(domain: Box | Space, points: Array, anchors: Array | None = None) -> Array:
    """Returns the nearest valid points of the domain, `(n, d)`, or those that keep its limits (see `feasible.kept`)."""
    points = domain.snap(np.minimum(np.maximum(points, domain.lower), domain.upper))
    return points if domain.limits is None else kept(domain, points, anchors)


def leading_options(domain: Box | Space, ranked: Array) -> npt.NDArray[np.bool_]:
    """Returns which columns are worth a step, `(d,)`: of a choice with many options, those of the best points.

    Args:
        domain: domain of the points.
        ranked: points `(n, d)`, the best first.
    """
    worth = np.ones(domain.dimension, dtype=bool)
    for parameter, columns in domain.columns():
        if isinstance(parameter, Choice) and parameter.columns > MOST_OPTIONS:
            options, first = np.unique(ranked[:, columns].argmax(axis=1), return_index=True)
            worth[columns] = np.isin(
                np.arange(parameter.columns), options[np.argsort(first, kind="stable")[:MOST_OPTIONS]]
            )
    return worth


def neighbours(domain: Box | Space, point: Array, worth: npt.NDArray[np.bool_]) -> Array:
    """Returns points that differ in one choice or one number with steps.

    The new options are those of the columns in `worth` `(d,)`. A number changes by a step, by an eighth of the range,
    or to an end. Parameters that become active are at the middle of their range.
    """
    active, changed = domain.active(point[None]), [np.zeros((0, domain.dimension))]
    for parameter, columns in domain.columns():
        if parameter.real or (active is not None and not active[0, columns.start]):
            continue
        values = _other_values(parameter, point[columns], worth[columns])
        rows = np.repeat(point[None], len(values), axis=0)
        rows[:, columns] = values
        changed.append(rows)
    points = np.concatenate(changed)
    points = points if active is None else domain.snap(points)
    return points if domain.limits is None else kept(domain, points, np.repeat(point[None], len(points), axis=0))


def _other_values(parameter: Parameter, columns: Array, worth: npt.NDArray[np.bool_]) -> Array:
    """Returns the columns of the values next to one, `(n, columns)`."""
    if isinstance(parameter, Choice):
        others = np.flatnonzero(worth & (np.arange(parameter.columns) != columns.argmax()))
        return np.where(others[:, None] == np.arange(parameter.columns), CHOSEN, 0.0)
    here, last = parameter.place(columns), (parameter.count or 1) - 1
    far = max(last // 8, 2)
    places = sorted({here - 1, here + 1, here - far, here + far, 0, last} - {here})
    found = [parameter.at(place) for place in places if 0 <= place <= last]
    return np.array(found).reshape(len(found), 1)
