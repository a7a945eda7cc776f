"""Decisions in which some parameters are given: the policy chooses the others.

The points compared have the given columns, and so the best score of these points is that for the given values. Where
all columns are given, nothing is left to choose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, frozen, shown
from .._utils.randomness import Draws, Randomness
from ..domains.domain import Arms, Box, Domain, Space
from ..domains.limits import Limits
from ..domains.search.designs import mutated, uniform
from ..errors import InvalidInput
from .availability import Available
from .decide import best_point, due_forcing, forced_places, pose
from .engines import Decision
from .memory_runner import MemoryRunner

AROUND, TIMES = 256, 4  # points around the best one so far, and how often they are drawn
FEW = 32  # points of a first look
PROJECTIONS = 200  # onto the planes of linear limits and into the ranges, by turns
LEVEL = 1e-11  # distance from a plane that counts as on it
SAME = 1e-9  # difference of two columns of the same value


class Pinned(NamedTuple):
    """A point of which some columns are given.

    Attributes:
        point: `(d,)`, with any values in the other columns.
        columns: True for the given columns, `(d,)`.
        arm: the arm, if all columns are given and the domain has arms.
    """

    point: Array
    columns: npt.NDArray[np.bool_]
    arm: int | None = None

    @classmethod
    def of(cls, space: Space, fixed: Mapping[str, Sequence[float]]) -> Pinned:
        """Returns a point of which these columns of parameters are given.

        Raises:
            InvalidInput: they do not fit the space.
        """
        known = dict(zip(space.parameters, space.columns(), strict=True))
        point, columns = np.zeros(space.dimension), np.zeros(space.dimension, dtype=bool)
        for name, values in fixed.items():
            if name not in known or len(values) != known[name][0].columns:
                raise InvalidInput(f"its parameter {shown(name)} is of another space")
            point[known[name][1]], columns[known[name][1]] = values, True
        return cls(frozen(point), columns)

    @property
    def whole(self) -> bool:
        """True if all columns are given."""
        return bool(self.columns.all())

    def matching(self, points: Array) -> npt.NDArray[np.bool_]:
        """Returns which points have the given columns, `(n,)`."""
        gaps = np.abs(points[:, self.columns] - self.point[self.columns])
        return np.asarray((gaps <= SAME).all(axis=1))

    def counting(self, domain: Domain, points: Array) -> npt.NDArray[np.bool_]:
        """Returns which points have the given columns, and count them, `(n,)`.

        The middle of a range may be given where the parameter does not count.
        """
        found, space = self.matching(points), domain.space if isinstance(domain, Arms) else domain
        active = None if self.whole or not isinstance(space, Space) else space.active(points)
        return found if active is None else found & active[:, self.columns].all(axis=1)

    def among(self, domain: Domain, offered: Available | None) -> Available | None:
        """Returns what has the given columns of what is offered, which may be nothing. None stands for a continuum.

        Args:
            domain: of the policy.
            offered: what may be played, or None for everything.
        """
        if isinstance(domain, Arms):
            arms = np.flatnonzero(self.counting(domain, domain.points)) if self.arm is None else np.array([self.arm])
            arms = arms if offered is None or offered.arms is None else np.intersect1d(arms, offered.arms)
            return Available(frozen(domain.points[arms]), arms)
        return None if offered is None else Available(offered.points[self.counting(domain, offered.points)], None)

    def onto(self, domain: Box | Space, points: Array) -> Array:
        """Returns the points with the given columns in place of their own, `(m, d)`, as far as the domain has them."""
        moved = points.copy()
        moved[:, self.columns] = self.point[self.columns]
        limits = domain.limits
        if limits is not None and not self.whole:
            self._level(moved, limits)
        moved = domain.snap(moved)
        moved = moved[self.counting(domain, moved)]
        if limits is None or not len(moved):
            return moved
        tight = limits.tight(moved)
        return moved[tight if tight.any() else limits.holds(moved)]

    def _level(self, points: Array, limits: Limits) -> None:
        """Moves the points into the linear limits and ranges by turns, in real columns that are not given, in place."""
        free, none = limits.real & ~self.columns, (points[:0], np.zeros(0))
        (A, b), (B, c) = limits.equalities or none, limits.linear or none
        back = np.linalg.pinv(A[:, free]).T
        for _ in range(PROJECTIONS):
            apart, over = points @ A.T - b, np.maximum(points @ B.T - c, 0.0)
            if max(np.abs(apart).max(initial=0.0), over.max(initial=0.0)) <= LEVEL:
                break
            points[:, free] -= apart @ back
            for row, excess in zip(B[:, free], over.T, strict=True):
                points[:, free] -= np.outer(excess / max(row @ row, LEVEL), row)
            points[:, free] = np.clip(points[:, free], 0.0, 1.0)


def filled(
    memory: MemoryRunner, pinned: Pinned, context: Array | None, randomness: Randomness, *, now: float,
    available: Available | None,
) -> Decision:  # fmt: skip
    """Returns the decision with the given columns and the best score.

    Args:
        memory: the memory of the run.
        pinned: the given columns.
        context: the context of the round, or None.
        randomness: the random numbers of the round.
        now: Unix seconds.
        available: what may be played, or None for everything.

    Raises:
        InvalidInput: no point has the given columns.
    """
    domain = memory.policy.domain
    if pinned.whole:
        return Decision(frozen(pinned.point.copy()), pinned.arm, explored=False)
    some = pinned.among(domain, available)
    if some is not None:
        return _best(memory, some, context, randomness, now)
    return _searched(memory, pinned, cast(Box | Space, domain), context, randomness, now)


def _searched(
    memory: MemoryRunner, pinned: Pinned, domain: Box | Space, context: Array | None, randomness: Randomness,
    now: float,
) -> Decision:  # fmt: skip
    """Returns the best point that is found with the given columns: everywhere, and then around the best so far."""
    rng = Draws(f"pinned {memory.rounds.seed} {memory.rounds.count}")
    posterior, best = memory.outputs.reward.posterior, best_point(memory, context)
    if not posterior.belief.observed.count:  # All scores are equal: a design is spread.
        forcing = due_forcing(memory, randomness) if memory.policy.explore.ever else None
        places = None if forcing is None else forced_places(memory, forcing, context, randomness)
        if places is not None and len(spread := pinned.onto(domain, places)):
            return Decision(frozen(spread[0]), None, explored=False)
    starts = _some_with(pinned, domain, cast(Array, memory.outputs.engine.candidates()), rng)
    if best is not None:
        starts = np.concatenate([starts, _around(pinned, domain, best, rng)])
    decision = _best(memory, Available(starts, None), context, randomness, now)
    for _ in range(TIMES):
        near = np.unique(_around(pinned, domain, decision.point, rng), axis=0)
        decision = _best(memory, Available(near, None), context, randomness, now)
    return decision


def _around(pinned: Pinned, domain: Box | Space, centre: Array, rng: Draws) -> Array:
    """Returns points with the given columns around another one."""
    return pinned.onto(domain, np.concatenate([centre[None], mutated(domain, centre[None], AROUND, rng)]))


def _some_with(pinned: Pinned, domain: Box | Space, candidates: Array, rng: Draws) -> Array:
    """Returns distinct points with the given columns, `(m, d)`, none if none is found."""
    found = pinned.onto(domain, candidates)
    for _ in range(TIMES):
        if len(found):
            break
        found = pinned.onto(domain, uniform(domain, len(candidates), rng))
    return np.unique(found, axis=0)


def has_some(pinned: Pinned, domain: Box | Space, candidates: Array) -> bool:
    """Returns whether the domain has points with the given columns, as far as a look at some points shows."""
    few = pinned.onto(domain, candidates[:FEW])
    return len(few) > 0 or len(_some_with(pinned, domain, candidates, Draws("pinned"))) > 0


def _best(memory: MemoryRunner, some: Available, context: Array | None, randomness: Randomness, now: float) -> Decision:
    """Returns the decision among finitely many points, in a round that is not forced."""
    if not len(some.points):
        raise InvalidInput("No point that may be played now has these values.")
    _, question, available = pose(memory, context, randomness, now=now, available=some, forcing=None)
    engine: Any = memory.outputs.engine
    decision: Decision = engine.choose(memory.outputs.reward.posterior.belief, question, available)
    return decision
