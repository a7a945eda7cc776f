"""Whether the cached state of a study is what a replay of its record gives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..domain import Arms
from ..record import Record
from .goal import AnyState, of_rewards
from .kept import Kept

POINTS = 100  # of the last trials at which a state that is checked must say the same as a replay


class Standing(NamedTuple):
    """What there is of a cached state, for people.

    Attributes:
        events: in it; 0 where there is none that this program would use.
        of: events on record.
        why: none is used, in words; empty where one is, or none is there.
        equal: whether it says and decides what a replay of the record does, to the bit; None where nobody looked.
    """

    events: int
    of: int
    why: str
    equal: bool | None


def standing(kept: Kept, *, check: bool) -> Standing:
    """The cached state of a study that has just been opened.

    Args:
        kept: of the study.
        check: whether to replay the record, and compare.
    """
    cache, record, equal = kept.cache, kept.record, None
    if cache is None:
        return Standing(0, record.order, "the study has no storage", None)
    if check and cache.found_at:
        replayed = kept.replay()
        equal = _said(kept.state, record) == _said(replayed, record)
    return Standing(cache.found_at, record.order, cache.unused, equal)


def _said(state: AnyState, record: Record) -> list[bytes | None]:
    """What a state decides next, and what it believes of all arms, or where it has looked last."""
    settled, last = state.settled(), record[-1]
    decision = settled.decide(last.context, now=last.asked_at)
    domain = of_rewards(settled).policy.domain
    points = None if isinstance(domain, Arms) else np.array([trial.point for trial in record[-POINTS:]])
    seen = settled.envelope(points, last.context, now=last.asked_at)
    return [decision.point.tobytes(), *(part.tobytes() for part in (seen.mean, seen.std, seen.lower, seen.upper))]
