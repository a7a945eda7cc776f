"""Arguments that all pictures share: a study or a result, and a range of values."""

from __future__ import annotations

import math
from typing import Protocol

from ..._utils.checks import shown
from ..._utils.errors import InvalidInput
from ..study import Study


class HasStudy(Protocol):
    """A result of `maximize` or `minimize`."""

    @property
    def study(self) -> Study:
        """The study of the result."""


Source = Study | HasStudy


def study_of(source: Source) -> Study:
    """Returns the study behind a study or a result.

    Raises:
        InvalidInput: the argument is neither.
    """
    study = source if isinstance(source, Study) else getattr(source, "study", None)
    if not isinstance(study, Study):
        raise InvalidInput(f"A picture needs a study or a result, not {shown(source)}.")
    return study


def value_range(given: tuple[float, float] | None) -> tuple[float, float] | None:
    """Returns the range of values that was given, or None.

    Raises:
        InvalidInput: it is no pair of numbers of which the first is lower.
    """
    if given is None:
        return None
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInput(f"`range` is {shown(given)}: it must be two numbers, the lower one first, such as (0, 1).")
    return low, high
