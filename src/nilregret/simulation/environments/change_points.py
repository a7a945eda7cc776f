"""Change points: rounds, counted from 0, at which another reward function begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._utils.checks import integer, listed, many, shown
from ..._utils.errors import InvalidInput
from ..._utils.randomness import world_generator

MOST_PERIODS = 1_000_000


def even_changes(rounds: int, periods: int) -> tuple[int, ...]:
    """Returns `periods` - 1 change points that cut `rounds` into periods of equal length (to within one round).

    This is "the most hostile setting" of Avanesov's experiments (section 4), which maximises the lower bound of the
    regret.

    >>> even_changes(1200, 4)
    (300, 600, 900)
    """
    rounds, periods = _fitting(rounds, periods, shortest=1)
    return tuple(rounds * period // periods for period in range(1, periods))


def random_changes(rounds: int, periods: int, *, seed: int | Sequence[int], shortest: int = 1) -> tuple[int, ...]:
    """Returns change points drawn uniformly from all that leave every period at least `shortest` rounds.

    Args:
        rounds: T.
        periods: K, with K - 1 changes.
        seed: seed of the change points, which are independent of functions and noise with the same seed.
        shortest: least length of a period, rounds.
    """
    rounds, periods = _fitting(rounds, periods, shortest=shortest)
    shortest = integer("shortest", shortest, low=1)
    spare = rounds - periods * shortest
    # Every way to share out the spare rounds has the same probability (stars and bars).
    bars = np.sort(world_generator(seed, "changes").choice(spare + periods - 1, periods - 1, replace=False))
    extra = bars - np.arange(periods - 1)
    return tuple(int(more) + shortest * period for period, more in enumerate(extra, start=1))


def ascending_rounds(change_points: Sequence[int]) -> list[int]:
    """Returns change points as integers.

    Raises:
        InvalidInput: unless they are rounds from 1 in ascending order.
    """
    why = "They are rounds, counted from 0."
    rounds = [
        integer("change_points", round_, low=1, why=why) for round_ in listed("change_points", change_points, why=why)
    ]
    if rounds != sorted(set(rounds)):
        raise InvalidInput(f"`change_points` are {shown(rounds)}: they must be in ascending order, each once.")
    return rounds


def _fitting(rounds: int, periods: int, *, shortest: int) -> tuple[int, int]:
    rounds, periods = integer("rounds", rounds, low=1), integer("periods", periods, low=1, high=MOST_PERIODS)
    shortest = integer("shortest", shortest, low=1, why="It is the length of a period in rounds.")
    if periods * shortest > rounds:
        raise InvalidInput(
            f"{many(rounds, 'round')} cannot hold {many(periods, 'period')} of at least {many(shortest, 'round')}: ask "
            "for fewer or shorter ones."
        )
    return rounds, periods
