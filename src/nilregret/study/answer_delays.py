"""Delays of the answers of a study."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._utils.checks import Array, IndexArray
from ..storage.record import Trial


def answer_delays(trials: Sequence[Trial]) -> tuple[list[Trial], IndexArray, Array]:
    """Returns the answered trials, and for each the trials asked and the seconds until its answer, `(n,)`.

    Trials that were added without being asked do not count. A corrected trial counts as it was answered first.

    Args:
        trials: all trials of a study.
    """
    first = [trial.as_corrected() for trial in trials]
    asked = np.array([trial.asked_order for trial in first if trial.asked_order != trial.told_order], dtype=np.int64)
    answered = [trial for trial in first if trial.told_order is not None and trial.asked_order != trial.told_order]
    ends = np.array([trial.told_order for trial in answered], dtype=np.int64)
    begins = np.array([trial.asked_order for trial in answered], dtype=np.int64)
    questions = np.searchsorted(asked, ends) - np.searchsorted(asked, begins, side="right")
    seconds = [(trial.told_at or trial.asked_at) - trial.asked_at for trial in answered]
    return answered, questions, np.array(seconds, dtype=np.float64)
