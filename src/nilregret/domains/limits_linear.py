"""Linear limits: points that keep them, contradictions, and the share of points that keep the others.

| symbol | meaning | shape |
|---|---|---|
| A u = b, G u <= h | limits that are linear in the columns u of encoded points | (k, d), (l, d) |
| t | room: the distance of u from the limits G and from the ends of ranges, at most 1/2 | |

A linear program finds the point with most room. If limits leave no room, the fewest of them that leave none are named.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.numerals import numeral
from .._utils.randomness import Draws, Rng
from ..errors import InvalidInput
from .conditions import Mask
from .parameters import CHOSEN, Choice

if TYPE_CHECKING:
    from .limits import Limits

LEAST_ROOM = 1e-7  # that a linear program tells from none
FEW = 256  # points that are drawn first, since one of them keeps most limits
MOST_DRAWN = 2**20  # points: if the share is 1e-6, one is found with probability 0.65, and if it is 1e-5, always
MOST_CALLS = 2**16  # points if a limit is a function
MOST_WORK = 2**28  # points times the sum of characters of the limits and of 32 for each column
MOST_TRIED = 30  # limits of which all pairs are tried
MOST_NAMED = 6  # limits in an error
CHAINS = 2**12  # points that are drawn at a time


@final
class Polytope:
    """The points that keep the linear limits of numbers, as if steps and whole numbers were real.

    Linear limits of choices are left out.

    Attributes:
        named: the columns of all linear limits, `(d,)`.
        moving: of these the columns u of the limits of numbers, `(d,)`.
        A, b: of A u = b.
        G, h: of G u <= h, ends of ranges included.
    """

    def __init__(self, limits: Limits) -> None:
        chosen = np.concatenate([np.full(p.columns, isinstance(p, Choice)) for p in limits.parameters.values()])
        lines = [limits.line(place) for place in limits.straight]
        self.named = np.any([np.zeros(limits.dimension), *(row for row, _, _ in lines)], axis=0)
        lines = [line for line in lines if not line[0][chosen].any()]
        self.moving = np.any([np.zeros(limits.dimension), *(row for row, _, _ in lines)], axis=0)
        q = int(self.moving.sum())
        equal, below = ([(*row[self.moving], by) for row, by, same in lines if same == kind] for kind in (True, False))
        self.A, self.b = np.split(np.array(equal).reshape(-1, q + 1), [q], axis=1)
        G, h = np.split(np.array(below).reshape(-1, q + 1), [q], axis=1)
        self.G, self.h = np.concatenate([G, np.eye(q), -np.eye(q)]), np.concatenate([h[:, 0], np.ones(q), np.zeros(q)])
        self._limits = limits

    @cached_property
    def centre(self) -> Array:
        """The point with most room, `(q,)`."""
        return most_room(self._limits, self._limits.straight, self.moving)[1][self.moving]

    @cached_property
    def _back(self) -> Array:
        return np.linalg.pinv(self.A) if len(self.A) else np.zeros((self.A.shape[1], 0))

    def steps(self, at: Array, rng: Rng) -> Array:
        """Returns points `(n, q)` after a step of hit and run (Smith 1984), which makes them uniform in the end."""
        way = rng.standard_normal(at.shape)
        way -= way @ self.A.T @ self._back.T
        rate, slack = way @ self.G.T, np.maximum(self.h - at @ self.G.T, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(np.abs(rate) > 1e-12, slack / rate, np.nan)
            last = np.nanmin(np.where(rate > 0.0, reach, np.inf), axis=1, initial=2.0**10)
            first = np.nanmax(np.where(rate < 0.0, reach, -np.inf), axis=1, initial=-(2.0**10))
        moved = at + (first + rng.random(len(at)) * (last - first))[:, None] * way
        return np.asarray(moved - (moved @ self.A.T - self.b.T) @ self._back.T)


def most_room(limits: Limits, places: Iterable[int], wide: Mask) -> tuple[float, Array]:
    """Returns the largest room t, or -1 if no point keeps some limits, and a point with that room, `(d,)`.

    Args:
        limits: of a space.
        places: of linear comparisons.
        wide: the columns in which room is wanted, `(d,)`.
    """
    from scipy.optimize import linprog  # slow to import, and most limits need none of it

    d, choices = limits.dimension, [name for name, p in limits.parameters.items() if isinstance(p, Choice)]
    ends, sums = np.ones(d), np.zeros((len(choices), d + 2))
    sums[:, -1] = CHOSEN
    for row, name in zip(sums, choices, strict=True):
        row[limits.columns[name]], ends[limits.columns[name]] = 1.0, CHOSEN
    equal: list[npt.ArrayLike] = [*sums]
    below: list[npt.ArrayLike] = []
    for place in places:
        row, bound, same = limits.line(place)
        size = np.abs(row).max()
        (equal if same else below).append(
            [*row / size, 0.0 if same else np.linalg.norm(row[wide]) / size, bound / size]
        )
    for column in np.flatnonzero(wide):
        side = np.zeros(d)
        side[column] = 1.0
        below += [[*side, 1.0, ends[column]], [*-side, 1.0, 0.0]]
    G, A = np.array(below).reshape(-1, d + 2), np.array(equal).reshape(-1, d + 2)
    bounds = [*[(0.0, end) for end in ends], (0.0, 0.5)]
    found = linprog([*np.zeros(d), -1.0], G[:, :-1], G[:, -1], A[:, :-1], A[:, -1], bounds=bounds)
    return (-1.0, np.zeros(d)) if found.x is None else (float(found.x[-1]), np.asarray(found.x[:-1]))


def check_limits(limits: Limits, draw: Callable[[int, Draws], Array], snap: Callable[[Array], Array]) -> None:
    """Raises an error for limits that contradict each other, or that hardly any point keeps.

    Args:
        limits: of a space.
        draw: returns uniform points of the space without its limits.
        snap: returns the nearest valid points.
    """
    rng = Draws("limits")
    if limits.equalities is None and not limits.missed(draw(FEW, rng)).any(axis=1).all():
        return
    _check_room(limits)
    inside = Polytope(limits)
    if not limits.curved and limits.real[inside.named].all():
        return
    _check_share(limits, inside, draw, snap, rng)


def _check_share(
    limits: Limits, inside: Polytope, draw: Callable[[int, Draws], Array], snap: Callable[[Array], Array], rng: Draws
) -> None:
    """Raises an error if no point keeps the limits, of many that keep those of the polytope."""
    work = sum(map(len, limits.texts)) + 32 * limits.dimension
    most = min(MOST_CALLS if limits.functions else MOST_DRAWN, MOST_WORK // work)
    kept, drawn = np.zeros(len(limits.texts)), 0
    at = np.repeat(inside.centre[None], CHAINS, axis=0)
    while drawn < most:
        points, at = draw(CHAINS, rng), inside.steps(at, rng)
        points[:, inside.moving] = at
        missed = limits.missed(snap(points))
        if not missed.any(axis=1).all():
            return
        drawn += len(points)
        kept += [len(points) - missed[:, limits.owner == each].any(axis=1).sum() for each in range(len(kept))]
    worst = np.argsort(kept, kind="stable")[:MOST_NAMED]
    shares = [f"{limits.texts[i]!r} {numeral(100.0 * kept[i] / drawn, 2)}%" for i in worst]
    raise InvalidInput(
        f"None of {drawn:,} points drawn from the space keeps its limits. Of the points keep: {', '.join(shares)}. "
        "Usually a limit is mistyped, or in other units than its parameters. Otherwise narrow the ranges to where the "
        "limits can hold."
    )


def _check_room(limits: Limits) -> None:
    """Raises an error that names the fewest limits that leave no room."""

    def room(owners: Sequence[int]) -> float:
        return most_room(limits, [place for place in limits.straight if limits.owner[place] in owners], limits.real)[0]

    owners = sorted({int(limits.owner[place]) for place in limits.straight})
    if room(owners) > LEAST_ROOM:
        return
    fewest = _fewest(owners, lambda some: room(some) <= LEAST_ROOM)
    said, several = " and ".join(repr(limits.texts[owner]) for owner in fewest[:MOST_NAMED]), len(fewest) > 1
    said += f" and {len(fewest) - MOST_NAMED} more" * (len(fewest) > MOST_NAMED)
    if room(fewest) >= 0.0:
        only = f"{'s' * several} {said} {'together hold' if several else 'holds'} only at an edge of the ranges"
        raise InvalidInput(
            f"Limit{only}, so no point could be drawn that keeps {'them' if several else 'it'}. Numbers that must be "
            "equal are an equality, such as 'a + b == 1'. A parameter with one value left is best left out."
        )
    if several:
        every = "both" if len(fewest) == 2 else "all of them"
        raise InvalidInput(
            f"Limits {said} contradict each other: no point in the ranges of the parameters keeps {every}."
        )
    raise InvalidInput(f"Limit {said} holds nowhere in the ranges of its parameters. Usually it is in other units.")


def _fewest(owners: list[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Returns one limit or two that fail, or several of which each is needed."""
    sizes = (1, 2) if len(owners) <= MOST_TRIED else (1,)
    for some in itertools.chain.from_iterable(itertools.combinations(owners, size) for size in sizes):
        if fails(some):
            return list(some)
    for owner in owners:
        rest = [each for each in owners if each != owner]
        owners = rest if fails(rest) else owners
    return owners
