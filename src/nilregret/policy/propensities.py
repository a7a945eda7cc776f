"""The probability of a decision, given the record before it, over forced rounds and the random numbers of a score.

A round is forced by one of several parts, each with a probability (`Explore.chances`). In each case one of finitely
many points has the largest score, whose law the score knows (`Score.law`). The probability of a point is the sum over
the cases.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.randomness import Randomness
from ..domains.domain import Arms
from ..slots.explore import Chances
from ..slots.propensities import KnownScores, ScoreLaw
from .availability import Available
from .decide import Posed, pose
from .engines import Decision
from .memory_runner import MemoryRunner


class _Case(NamedTuple):
    """A case of a round, by the part that forces it or none.

    Attributes:
        chance: the probability of the case.
        numbers: the arms of which one is played, or the places of points on other domains, `(n,)`.
        law: the law of their scores.
        size: the size by which score differences are judged.
    """

    chance: float
    numbers: IndexArray
    law: ScoreLaw
    size: float = 1.0


def propensity(
    memory: MemoryRunner, decision: Decision, context: Array | None, *, now: float, available: Available | None
) -> float | None:
    """Returns the probability of a decision, or None on continuous domains and where a part does not say it.

    Args:
        memory: the memory of the run, as it was when the decision was made.
        decision: the decision.
        context: the context of the round, or None.
        now: Unix seconds.
        available: what could be played, or None for everything.
    """
    cases = _cases(memory, context, now, available)
    if cases is None:
        return None
    if decision.arm is not None:
        ours = [decision.arm]
    else:
        ours = np.flatnonzero((available.points == decision.point).all(axis=1)).tolist()  # type: ignore[union-attr]
    found = 0.0
    for chance, numbers, law, size in cases:
        for number in ours:
            for place in np.flatnonzero(numbers == number).tolist():
                found += chance * law.probability(place, size)
    return found


def distribution(
    memory: MemoryRunner, context: Array | None, *, now: float, available: Available | None
) -> Array | None:
    """Returns the probability of each arm, `(N,)`, or None (see `propensity`).

    An arm that may not be played has 0. On other domains there is an entry for each point that may be played.
    """
    cases = _cases(memory, context, now, available)
    if cases is None:
        return None
    domain = memory.policy.domain
    found = np.zeros(len(domain) if isinstance(domain, Arms) else len(available.points))  # type: ignore[union-attr]
    for chance, numbers, law, size in cases:
        found[numbers] += chance * law.probabilities(size)
    return found


def _cases(memory: MemoryRunner, context: Array | None, now: float, available: Available | None) -> list[_Case] | None:
    """Returns the cases of the next round, or None if some law is not known."""
    if available is None and not isinstance(memory.policy.domain, Arms):
        return None
    explore, seed, number = memory.policy.explore, memory.rounds.seed, memory.rounds.count
    parts: Chances | None = ((None, 1.0),)
    if explore.ever:
        history = number - memory.first_counted
        parts = explore.chances(len(memory.rounds.uniform), history, Randomness(seed, number))
    found = []
    for forcing, chance in parts or ():
        if chance > 0.0:
            randomness = Randomness(seed, number)
            posed_ = pose(memory, context, randomness, now=now, available=available, forcing=forcing)
            case = None if randomness.used else _case(memory, posed_, chance)
            if case is None:
                return None
            found.append(case)
    return found or None


def _case(memory: MemoryRunner, posed_: Posed, chance: float) -> _Case | None:
    """Returns one case, or None if its law is not known."""
    _, question, left = posed_
    engine, belief = memory.outputs.engine, memory.outputs.reward.posterior.belief
    if left is not None and len(left.points) == 1:
        return _Case(chance, left.numbers, KnownScores(np.zeros(1)))
    if question is None:
        among = engine.remaining(left)
        return None if among is None else _Case(chance, among.numbers, KnownScores(np.zeros(len(among.points))))
    with engine.blas:
        law = engine.law(belief, question, left)
        return None if law is None else _Case(chance, *law, engine.size(belief, question, left))
