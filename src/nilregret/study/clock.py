"""The clock of a study."""

from __future__ import annotations

import math
from collections.abc import Callable

from .._utils.errors import NoRegretError
from .._utils.numerals import exact


def read_clock(clock: Callable[[], float], last: float | None) -> float:
    """Returns the time in Unix seconds.

    Args:
        clock: of the study.
        last: time of the last question if the policy measures waiting times, else None.

    Raises:
        NoRegretError: the clock gives no finite number, or has gone back since the last question.
    """
    now = float(clock())
    if not math.isfinite(now):
        raise NoRegretError(f"The clock says {now}, which is no time in seconds; nothing was recorded.")
    if last is not None and now < last:
        raise NoRegretError(
            f"The clock has gone back by {exact(last - now)} s since the last question, and this policy measures "
            "how long it waits for answers. Set the clock right and try again; nothing was recorded.",
            advice="Or pass `clock=` to the study.",
        )
    return now
