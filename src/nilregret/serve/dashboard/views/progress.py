"""The rewards by trial (the picture `history`), with a sentence on how they went, and the curves of trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...._utils.checks import many, shown
from ....errors import InvalidInput
from ....plots.base import reward_label
from ....plots.curves_picture import curves_panel, ended_at, reporting
from ....plots.history_picture import MOST, History, history_panels, panels_of, volume_panel
from ....plots.source import value_range
from ....plots.ticks import spread_evenly
from ....storage.record import Trial
from ....study.quantities import quantities, quantity
from ....study.study import Study
from ....study.waiting import counted_trials
from .front import NO_FRONT, front_now, reference_text
from .pictures import Picture, drawn, empty, has_front, short, table

CURVE_TITLE, ROWS = "Curves", 100  # of a table
NO_CURVE = empty(CURVE_TITLE, "No trial has reported a step yet.")


def curves_view(study: Study, trial: Trial | None = None) -> Picture | None:
    """Returns the picture `curves` of a study, or None if no trial has reported, or the given one has not.

    Args:
        study: a study with any policy.
        trial: that is highlighted, whose reports are the table. None for the best finished one.
    """
    trials = reporting(study) if trial is None or trial.curve else []
    if not trials:
        return None
    panel = curves_panel(
        quantity(study, None),
        value_range(None, study),
        reward_label(study),
        chosen=None if trial is None else trial.number,
    )
    if trial is None:
        summary = f"{many(len(trials), 'trial')} reported: {panel.title}."
        return drawn(CURVE_TITLE, summary.replace("\n", "; "), [replace(panel, title="")])
    said = ended_at(trial)
    picture = drawn("Curve", f"{said[0].upper()}{said[1:]}, of {many(len(trial.curve), 'report')}.", [panel])
    return picture | {"table": table(["step", panel.y.label], _reports(trial))}


def reports(study: Study) -> bool:
    """Returns whether trials of a study report: its policy has a pruning rule, or some have reported."""
    return getattr(study.policy, "pruning", None) is not None or any(trial.curve for trial in study.trials)


def _reports(trial: Trial) -> list[tuple[str, str]]:
    """Returns the steps and values of a trial as text, of many those evenly spread."""
    kept, steps = spread_evenly(len(trial.curve), ROWS).tolist(), trial.steps
    return [(f"{step:,}", short(value)) for step, value in (steps[i] for i in kept)]


TITLE = "Progress"
HEIGHTS = (3.0, 2.0)  # of the values, and of the gap to the best or a budget


VOLUME = "hypervolume of the front"  # the picture of several objectives unless another number is chosen


def channels_of(study: Study, key: str) -> list[dict[str, Any]]:
    """Returns the options of a form that chooses what is drawn of several objectives, or none with one objective."""
    if not has_front(study):
        return []
    told = [("", VOLUME), *((each.key, each.name) for each in quantities(study))]
    return [{"value": value, "text": text, "chosen": value == key} for value, text in told]


def progress(study: Study, *, between: tuple[float, float] | None = None, key: str = "") -> Picture:
    """Returns the picture `history` of a study, or the reason why there is none.

    Args:
        study: a study with any policy.
        between: places of the axis that are shown, or None for all.
        key: of the number that is drawn of several objectives (`Quantity.key`), or "" for the hypervolume.
    """
    if has_front(study):
        return _of_front(study, key)
    try:
        found = History(study)
    except InvalidInput:
        found = None
    if found is None or not found.counted:
        return empty(TITLE, _nothing(study.trials, counted_trials(study, valued=True).left_out))
    word = reward_label(study)
    panels = history_panels(found, value_range(None, study), word, between=between, titled=False)
    summary = _summary(found, len(study.trials), word)
    thinned = len(found.values) > MOST
    return drawn(TITLE, summary, panels, heights=HEIGHTS[: len(panels)], thinned=thinned)


def _of_front(study: Study, key: str) -> Picture:
    """Returns the hypervolume by trial, or each value of a number that trials told."""
    if not any(trial.reward is not None for trial in study.trials):
        return empty(TITLE, _nothing(study.trials, ""))
    if not key:
        return _volume_picture(study)
    of = next((each for each in quantities(study) if each.key == key), None)
    if of is None:
        known = ", ".join(each.key for each in quantities(study))
        raise InvalidInput(f"There is no channel {shown(key)} here: there are {known}.")
    panels = panels_of(of, value_range(None, study, of), of.name)
    said = panels[0].title.replace("\n", "; ") or many(len(of.trials), "answer")
    summary = f"{of.name}: {said}."
    return drawn(TITLE, summary, [replace(each, title="") for each in panels], heights=HEIGHTS[: len(panels)])


def _volume_picture(study: Study) -> Picture:
    """Returns the hypervolume of the front after each trial, by the posterior means of now."""
    front = front_now(study)
    if not front.trials:
        return empty(TITLE, NO_FRONT)
    panel = volume_panel(study, front)
    answered = sum(trial.reward is not None for trial in study.trials)
    grown = panel.title.partition("\n")[2]
    summary = (
        f"{many(answered, 'answer')} of {many(len(study.trials), 'trial')}: the front of posterior means covers "
        f"{short(front.hypervolume)}, measured from {reference_text(study)}{f'; {grown}' * bool(grown)}."
    )
    return drawn(TITLE, summary, [replace(panel, title="")])


def _nothing(trials: Sequence[Trial], left_out: str) -> str:
    if left_out:
        return f"No trial counts yet: {left_out}."
    if not len(trials):
        return "Nothing has been asked yet, so there is nothing to see."
    failed = sum(trial.state == "failed" for trial in trials)
    if failed == len(trials):
        every = "The one trial there was failed" if failed == 1 else f"All of {many(failed, 'trial')} failed"
        return f"{every}, so no value is known. The list of trials says why."
    return f"{many(len(trials), 'trial')}, and none has been answered yet."


def not_yet(left_out: str) -> str:
    """Returns a sentence on the trials that do not count yet, for the end of a line."""
    return f" Not counted yet: {left_out}." if left_out else ""


def _summary(found: History, asked: int, label: str) -> str:
    window, plays = found.length, int(found.plays.sum())
    mean, word = found.running, "rate" if found.clicks else f"mean {label}"
    count = f"{many(len(found.values), 'answer')} of {many(asked, 'trial')}"
    if found.in_runs:
        count += f", of {many(plays, 'play')} in all; each play counts once"
    if plays >= 2 * window:
        then = float(mean[np.searchsorted(np.cumsum(found.plays), window)])
        which = f"plays, to {short(mean[-1])} in the last" if found.in_runs else f"to {short(mean[-1])} in the last"
        change = f"the {word} went from {short(then)} in the first {window:,} {which}"
    else:
        change = f"the {word} is {short(float(found.values @ found.plays) / plays)}"
    ever = ""
    if np.isfinite(found.best_so_far[-1]) and not found.clicks:
        name = found.best_name.removeprefix("best so far (").removesuffix(")")
        ever = f"; the {name} is {short(float(found.best_so_far[-1]))}"
    return f"{count}: {change}{ever}.{not_yet(found.left_out)}"
