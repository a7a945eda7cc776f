"""Arguments that all pictures share: a study or a result, and a range of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ..._utils.checks import many, shown
from ..._utils.errors import InvalidInput, TrialError
from ...storage.record import Trial
from ..axes import Axis as ParameterAxis
from ..best import closest_of, is_noisy, told_best, without_violation
from ..direction import best_label
from ..function import Function
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


def function_of(study: Study) -> Function:
    """Returns the model of the objective.

    Raises:
        InvalidInput: the policy has no posterior.
    """
    return study.replica.query(lambda state: Function(state, study.goal, study.seed))


def best_of(study: Study) -> Trial | None:
    """Returns the trial with the best value told, or the recommended one if noise was told or seen.

    Returns:
        None if no trial is feasible.

    Raises:
        InvalidInput: no trial has been answered.
    """
    answered = answered_of(study)
    best = told_best(without_violation(study.policy, answered), study.goal)
    if best is not None and is_noisy(answered):
        try:
            return study.best()
        except TrialError:  # Its posterior begins after the last restart, without an answer so far.
            pass
    return best


def standing(study: Study, trial: Trial) -> str:
    """Returns what a trial of `centre_of` is, in words: recommended, or the highest or lowest told, or the closest."""
    best = told_best(without_violation(study.policy, study.trials), study.goal)
    if best is None:
        return "closest to feasible"
    return best_label(study.goal) if trial.number == best.number and not is_noisy(study.trials) else "recommended"


def centre_of(study: Study) -> Trial:
    """Returns the trial through which sections go: the best one, or the closest if nothing is feasible.

    Raises:
        InvalidInput: no trial has been answered.
    """
    return best_of(study) or closest_of(study.trials) or study.best()


def answered_of(study: Study) -> list[Trial]:
    """Returns the answered trials.

    Raises:
        InvalidInput: no trial has been answered.
    """
    answered = [trial for trial in study.trials if trial.reward is not None]
    if not answered:
        failed = sum(trial.state == "failed" for trial in study.trials)
        raise InvalidInput(
            "No trial has been answered yet, so there is nothing to draw"
            + (f": {many(failed, 'trial')} failed." if failed else "."),
            advice="`study.trials` says what became of each." if failed else "",
        )
    return answered


def introduced(study: Study, trial: Trial) -> str:
    """Returns number, standing and point of a trial of `centre_of` in words."""
    return f"trial {trial.number} ({standing(study, trial)}), {named(trial)}"


def named(trial: Trial) -> str:
    """Returns the point of a trial in words, with its context."""
    context = "" if trial.context is None else f" under context {_short(trial.context)}"
    if trial.parameters is None:
        return f"point {_short(trial.point)}{context}"
    return ", ".join(f"{name}={_short(value)}" for name, value in trial.parameters.items()) + context


def _short(value: object) -> str:
    if isinstance(value, np.ndarray):
        return "[" + ", ".join(f"{part:.4g}" for part in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def chosen_axes(offered: Sequence[ParameterAxis], names: Sequence[str] | None) -> list[ParameterAxis]:
    """Returns the axes of these names, or all.

    Raises:
        InvalidInput: a name is not among them.
    """
    if names is None:
        return list(offered)
    given = [names] if isinstance(names, str) else list(names)
    known = {axis.name: axis for axis in offered}
    for name in given:
        if name not in known:
            raise InvalidInput(
                f"`parameters` has {shown(name)}, which does not vary at the best trial.",
                advice=f"Those that do: {', '.join(known) or 'none'}.",
            )
    return [known[name] for name in given]
