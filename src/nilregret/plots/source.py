"""Arguments that all pictures share: a study or a result, the numbers to draw, a range, and a place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from .._utils.checks import Array, integer, many, one_of, shown
from ..domains.domain import Space
from ..errors import InvalidInput, TrialError
from ..storage.record import Trial
from ..study.best import admissible, at_full, closest_of, in_space, is_noisy, told_best
from ..study.direction import best_label, on_average, signs_of
from ..study.formatting import figure
from ..study.front import Front
from ..study.function import Axis as ParameterAxis
from ..study.function import Function
from ..study.quantities import Quantity, drawn, objectives
from ..study.study import Study
from .base import labelled

NO_SINGLE_BEST = "Each context has a best of its own"


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


class Drawn(NamedTuple):
    """A number that a picture draws.

    Attributes:
        of: the number.
        limits: lowest and highest value that is possible or of interest, or None.
        label: of the values.
    """

    of: Quantity
    limits: tuple[float, float] | None
    label: str


def numbers_drawn(
    source: Source, of: str | int | None, limits: tuple[float, float] | None, label: str | None
) -> list[Drawn]:
    """Returns the numbers that a picture draws: the one that `of` names, or all objectives.

    Args:
        source: a study or a result.
        of: name or number, or None for all objectives.
        limits: range of the values, or None.
        label: of the values, or None for the name of the number.

    Raises:
        InvalidInput: there is no such number, or one range or label is given for several numbers.
    """
    study = study_of(source)
    found = drawn(study, of)
    for name, given in (("range", limits), ("label", label)):
        if len(found) > 1 and given is not None:
            names = ", ".join(repr(each.name) for each in found)
            raise InvalidInput(
                f"`{name}` is for one number, and this picture draws {names}: leave it out, or draw one alone."
            )
    return [Drawn(each, value_range(limits, study, each), labelled(label, each.name)) for each in found]


def are_clicks(study: Study) -> bool:
    """Returns whether the rewards are 0 or 1 by chance: the policy says so, or they differ at one point."""
    if len(study.goals) > 1 or any(trial.reward not in (None, 0.0, 1.0) for trial in study.trials):
        return False
    span = getattr(getattr(study.policy, "objective", None), "span", None)
    return bool(span == (0.0, 1.0) or is_noisy(study.trials))


def value_range(
    given: tuple[float, float] | None, study: Study, of: Quantity | None = None
) -> tuple[float, float] | None:
    """Returns the range of values that was given, (0, 1) for clicks, or None. `of` is the number that is drawn.

    Raises:
        InvalidInput: it is no pair of numbers of which the first is lower.
    """
    if given is None:
        return (0.0, 1.0) if (of is None or of.objective) and are_clicks(study) else None
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
    return objectives(study)[0].function


def best_of(study: Study, of: Quantity | None = None) -> Trial | None:
    """Returns the trial with the best value told, or under noise, `fidelity` or budgets on average the recommended one.

    With several objectives, it is the trial of the front with the best mean of an objective, the first unless `of` is
    one.

    Returns:
        None if no trial is feasible.

    Raises:
        InvalidInput: no trial has been answered.
    """
    answered = answered_of(study)
    if len(study.goals) > 1:
        leaders = leaders_of(study, study.front_values())
        return leaders[of.channel or 0 if of is not None and of.objective else 0] if leaders else None
    best = told_best(admissible(study.policy, answered), study.goals[0])
    if best is not None and (is_noisy_study(study) or on_average(study.policy) or study.inputs.full is not None):
        try:
            return study.best()
        except TrialError:  # Its posterior begins after the last restart, without an answer so far.
            pass
    return best


def has_single_best(study: Study) -> bool:
    """Returns whether one trial may be the best: always but under contexts that the policy does not choose itself."""
    return study.policy.context is None or study.inputs.full is not None


def leaders_of(study: Study, front: Front) -> list[Trial]:
    """Returns the trial of a front with the best mean of each objective, or none if the front is empty."""
    signs = signs_of(study.goals)
    return [front.trials[i] for i in (signs * front.mean).argmax(axis=0).tolist()] if front.trials else []


def is_noisy_study(study: Study) -> bool:
    """Returns whether noise was told or seen, or rewards are clicks."""
    return is_noisy(at_full(study.policy, study.trials)) or are_clicks(study)


def standing(study: Study, trial: Trial) -> str:
    """Returns what a trial of `centre_of` is, in words: recommended, or the highest or lowest told, or the closest."""
    if len(study.goals) > 1:
        front = study.front_values()
        each = zip(study.policy.objective_names, leaders_of(study, front), strict=False)
        leads = [f"best {name}" for name, leader in each if leader.number == trial.number]
        on = any(known.number == trial.number for known in front.trials)
        return " and ".join(leads) or ("on the front" if on else "not on the front")
    best = told_best(admissible(study.policy, study.trials), study.goals[0])
    if best is None:
        return "closest to feasible"
    if trial.number == best.number and not is_noisy_study(study) and study.inputs.full is None:
        return best_label(study.goals[0])
    found = best_of(study)
    return "recommended" if found is None or found.number == trial.number else "chosen"


def centre_of(study: Study, of: Quantity | None = None) -> Trial:
    """Returns the trial through which sections go: the best one of a number, or the closest if nothing is feasible.

    Raises:
        InvalidInput: no trial has been answered.
    """
    found = best_of(study, of) or closest_of(in_space(study.policy, study.trials))
    return found or (study.best() if len(study.goals) == 1 else answered_of(study)[-1])


def through_of(study: Study, given: Trial | int | None, of: Quantity) -> Trial:
    """Returns the trial that a caller names as the place of sections, or that of `centre_of`.

    Raises:
        InvalidInput: there is no such trial, or none has been answered.
    """
    answered_of(study)
    if given is None:
        return centre_of(study, of)
    last = len(study.trials) - 1
    return study.trials[integer("through", given.number if isinstance(given, Trial) else given, low=0, high=last)]


def answered_of(study: Study) -> list[Trial]:
    """Returns the answered trials.

    Raises:
        InvalidInput: no trial has been answered.
    """
    answered = [trial for trial in study.trials if trial.reward is not None]
    if not answered:
        ends = (("failed", "failed"), ("stopped", "stopped early"))
        counts = [(sum(trial.state == state for trial in study.trials), word) for state, word in ends]
        said = " and ".join(f"{many(count, 'trial')} {word}" for count, word in counts if count)
        curves = " `nr.plots.curves` draws those that reported." if counts[1][0] else ""
        raise InvalidInput(
            f"No trial has been answered yet, so there is nothing to draw{f': {said}' * bool(said)}.",
            advice=f"`study.trials` says what became of each.{curves}" if said else "",
        )
    return answered


def introduced(study: Study, trial: Trial) -> str:
    """Returns number, standing and point of a trial of `centre_of` in words. Under contexts no single one is best."""
    if not has_single_best(study):
        return f"trial {trial.number}, {named(trial)}. {NO_SINGLE_BEST}"
    return f"trial {trial.number} ({standing(study, trial)}), {named(trial)}"


def named(trial: Trial) -> str:
    """Returns the point of a trial in words, with its context."""
    context = "" if trial.context is None else f" under {_listed(trial.context_parameters, 'context', trial.context)}"
    return _listed(trial.parameters, "point", trial.point) + context


def context_named(study: Study, context: object) -> str:
    """Returns a context in words, given by names or as a row."""
    domain, row = study.policy.context, study.inputs.context(context)
    space = domain if isinstance(domain, Space) else getattr(domain, "space", None)
    return "" if row is None else _listed(None if space is None else space.decode(row), "context", row)


def _listed(parameters: dict[str, object] | None, word: str, row: Array) -> str:
    """Returns parameters by name, or coordinates after a word."""
    return f"{word} [{figure(row.tolist())}]" if parameters is None else figure(parameters)


def chosen_axes(
    offered: Sequence[ParameterAxis], names: Sequence[str] | None, every: Sequence[ParameterAxis]
) -> list[ParameterAxis]:
    """Returns the axes of these names, or all that are offered of every axis of the domain.

    Raises:
        InvalidInput: a name is not among them.
    """
    if names is None:
        return list(offered)
    given = [names] if isinstance(names, str) else list(names)
    known = {axis.name: axis for axis in offered}
    for name in given:
        one_of("parameters", name, [axis.name for axis in every])
        if name not in known:
            raise InvalidInput(
                f"`parameters` has {shown(name)}, which does not vary at the best trial.",
                advice=f"Those that do: {', '.join(known) or 'none'}.",
            )
    return [known[name] for name in given]
