"""The curves of trials that report: of a study, and of one trial among the others."""

from __future__ import annotations

from dataclasses import replace

from ...._utils.checks import many
from ....plots.base import reward_label
from ....plots.curves_picture import curves_panel, ended_at, reporting
from ....plots.source import value_range
from ....plots.ticks import spread_evenly
from ....storage.trial import Trial
from ....study.quantities import quantity
from ....study.study import Study
from .pictures import Picture, drawn, empty, short, table

TITLE, ROWS = "Curves", 100  # of a table
NO_CURVE = empty(TITLE, "No trial has reported a step yet.")


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
        return drawn(TITLE, summary.replace("\n", "; "), [replace(panel, title="")])
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
