"""Pictures of a study whose reward function changes over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from .._utils.checks import Array, many
from .._utils.files import check_picture
from ..errors import InvalidInput
from ..study.curves import running_mean
from ..study.quantities import objectives
from ..study.study import Study
from .base import reward_label
from .curves_picture import stopped_marks, stopped_of
from .drawing import draw
from .history_picture import restart_rules, restarts_of
from .scene import Axis, Line, Mark, Panel, Picture, Points
from .source import Source, study_of
from .ticks import padded, thinned

COLUMNS = 800  # Columns that the lowest and the highest evidence is drawn of.


def changes(
    source: Source, path: str | Path, *, known: Sequence[int] = (), label: str | None = None, unit: str = "trial"
) -> None:
    """Saves a picture of a study whose reward function changes: points played, rewards, and restarts.

    Args:
        source: a study or a result with at least one answered trial, on a domain of one dimension.
        path: of the PNG.
        known: rounds at which the reward function did change, if they are known, as in a simulation.
        label: of the rewards (see `tuning`).
        unit: name of a round, such as "hour".

    Raises:
        InvalidInput: no trial has been answered, or the domain has several dimensions.
    """
    check_picture(path)
    study = study_of(source)
    name, values = _played(study)
    answered = [trial for trial in study.trials if trial.reward is not None]
    if not answered:
        raise InvalidInput("No trial has been answered yet, so there is nothing to draw.")
    x = (-0.5, len(study.trials) - 0.5)
    numbers = np.array([trial.number for trial in answered], dtype=np.float64)
    rewards = np.array([trial.reward for trial in answered], dtype=np.float64)
    width, stopped = max(1, len(rewards) // 30), stopped_of(objectives(study)[0])
    told: list[Mark] = [
        Points(numbers, rewards, "observed", "observed", size=2.5),
        Line(numbers[width - 1 :], running_mean(rewards, width)[width - 1 :], "model", f"mean of the last {width}"),
        *stopped_marks(stopped, np.array([trial.number for trial in stopped], dtype=np.float64)),
    ]
    panels = [
        _with_changes(study, _chosen(study, values), known, x=Axis(limits=x, whole=True), label=name),
        _with_changes(study, told, known, x=Axis(label=unit, limits=x, whole=True), label=reward_label(study, label)),
    ]
    title = f"{many(len(study.restarts), 'restart')} in {many(len(study.trials), unit)}"
    stacked = [panel.at(i, 0) for i, panel in enumerate(panels)]
    picture = Picture(panels=stacked, heights=(1.0, 1.0), size=(9.0, 5.4), name=study.name, title=title, legend=True)
    draw(picture, path, interactive=False)


def evidence(source: Source, path: str | Path, *, known: Sequence[int] = (), unit: str = "trial") -> None:
    """Saves a picture of the evidence for a change after each answer, with its threshold.

    Args:
        source: a study or a result of a policy that computes evidence (`memory="adaptive"`), with at least one answer.
        path: of the PNG.
        known: rounds at which the reward function did change, if they are known, as in a simulation.
        unit: name of a round, such as "hour".

    Raises:
        InvalidInput: there is no evidence to draw.
    """
    check_picture(path)
    study = study_of(source)
    title = "how much spoke for a change"
    panel = evidence_panel(study, known=known, unit=unit)
    draw(Picture(panels=[panel], size=(9.0, 3.2), name=study.name, title=title, legend=True), path, interactive=False)


def evidence_panel(study: Study, *, known: Sequence[int] = (), unit: str = "trial") -> Panel:
    """Returns the panel of the evidence for a change.

    Raises:
        InvalidInput: there is no evidence to draw.
    """
    found = study.evidence
    if found is None or not len(found.trials):
        raise InvalidInput(
            "There is no evidence to draw: no answer has been looked at yet, or the policy's memory looks at none. "
            'Policies made with memory="adaptive" do.'
        )
    values, trials = np.asarray(found.values, dtype=np.float64), np.asarray(found.trials, dtype=np.float64)
    kept = thinned(values, COLUMNS)
    kept = kept[np.argsort(trials[kept], kind="stable")]
    ends, enough = (-0.5, max(float(trials.max()), len(study.trials) - 1.0) + 0.5), float(found.threshold)
    marks: list[Mark] = [
        Line(trials[kept], values[kept], "model", "evidence for a change", 1.2),
        Line(ends, [enough] * 2, "failed", "enough to start anew: 1 / delta", 1.2, dashed=True),
    ]
    return _with_changes(study, marks, known, x=Axis(label=unit, limits=ends, whole=True), label="log evidence")


def _with_changes(study: Study, marks: list[Mark], known: Sequence[int], *, x: Axis, label: str) -> Panel:
    """Returns a panel of marks with lines at known changes and at restarts."""
    heights = np.concatenate(
        [np.asarray(mark.y, dtype=np.float64) for mark in marks if isinstance(mark, Points | Line)]
    )
    limits = padded((float(np.nanmin(heights)), float(np.nanmax(heights))))
    below: list[Mark] = [
        Line(
            [at] * 2, limits, "observed", "the world changed" * (not i), 5.0, dashed=True, opacity=0.35, hover="changed"
        )
        for i, at in enumerate(known)
    ]
    return Panel(
        marks=below + marks + restart_rules(restarts_of(study), limits), x=x, y=Axis(label=label, limits=limits)
    )


def _chosen(study: Study, values: Array) -> list[Mark]:
    """Returns the points played, and those played at random."""
    numbers, forced = np.arange(len(values)), np.array([trial.explored for trial in study.trials], dtype=bool)
    marks: list[Mark] = [Points(numbers[~forced], values[~forced], "model", "chosen", size=2.5)]
    if forced.any():
        marks.append(Points(numbers[forced], values[forced], "failed", "at random, to notice changes", "x", 5.0))
    return marks


def _played(study: Study) -> tuple[str, Array]:
    """Returns the name of the only coordinate and its value in every trial, `(t,)`."""
    trials = study.trials
    if study.policy.domain.dimension != 1:
        raise InvalidInput("What was played can be drawn over time for a domain of one dimension only.")
    if trials and trials[0].parameters is not None:
        (name,) = trials[0].parameters
        return name, np.array([(trial.parameters or {})[name] for trial in trials], dtype=np.float64)
    return "point", np.array([trial.point[0] for trial in trials], dtype=np.float64)
