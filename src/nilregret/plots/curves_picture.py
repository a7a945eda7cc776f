"""The picture of the curves of trials that report, and the open marks of stopped trials in all pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.checks import Array, many
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..errors import InvalidInput
from ..storage.record import Trial
from ..study.best import in_space
from ..study.pruning import pruning_of
from ..study.quantities import Quantity
from ..study.study import Study
from .drawing import draw
from .scene import Axis, Line, Mark, Panel, Picture, Points
from .source import NO_SINGLE_BEST, Source, best_of, has_single_best, numbers_drawn, standing
from .ticks import beyond, fenced, log_ticks, padded, spread_evenly, thinned

MOST = 100  # Curves that are drawn.
COLUMNS = 60  # Of a longer curve, the lowest and the highest value of so many stretches are drawn.
WIDE, SKEW = 20.0, 0.25  # Ratio of the ends of a logarithmic axis, and the share of it below which half of it lies.
EDGE = 0.015  # Distance of a mark beyond the limits from the edge, as a share of the axis.
MOST_STOPPED = 300  # Stopped trials that a picture of trials draws.
ENDS = {  # Label, colour, mark and opacity of the curves by what became of their trials. The first are drawn last.
    "observed": ("finished", "model", "o", 0.5),
    "stopped": ("stopped", "observed", "O", 0.45),
    "pending": ("pending", "third", "o", 0.25),
    "paused": ("paused", "third", "d", 0.25),
    "failed": ("failed", "failed", "x", 0.45),
    "abandoned": ("given up", "observed", "x", 0.3),
}


def curves(
    source: Source,
    path: str | Path | None = None,
    *,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns a picture of the values that trials reported, a curve for each trial over its steps.

    The curve of a stopped trial ends in an open mark, that of a finished one in a full mark. The best finished trial
    is highlighted. Pending and paused trials are drawn lightly. An axis is logarithmic if its numbers are positive and
    crowd at the low end. Of more than 100 curves, the best one, those not ended and others evenly spread are drawn.

    >>> import nilregret as nr
    >>> study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), goal="minimize")
    >>> trial = study.ask()
    >>> for step in (1, 2, 3):
    ...     _ = study.report(trial, step, 1.0 / step)
    >>> figure = nr.plots.curves(study)

    Args:
        source: a study or a result.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        range: lowest and highest value to draw. By default that of the values without far outliers.
        label: of the values. By default "reward", or "loss" if the goal is to minimise.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has reported a step.
    """
    check_picture(path, interactive=interactive)
    told, limits, word = numbers_drawn(source, None, range, label)[0]
    panel = curves_panel(told, limits, word)
    picture = Picture(panels=[panel], size=(7.2, 4.4), name=told.study.name, legend=True)
    return draw(picture, path, interactive=interactive)


def curves_panel(of: Quantity, limits: tuple[float, float] | None, label: str, *, chosen: int | None = None) -> Panel:
    """Returns the panel of the curves.

    Args:
        of: the reward.
        limits: lowest and highest value, or None for those without far outliers.
        label: of the values.
        chosen: number of a trial that is highlighted beside the best finished one, or None.

    Raises:
        InvalidInput: no trial has reported a step.
    """
    study: Study = of.study
    trials = reporting(study)
    if not trials:
        raise InvalidInput(
            "No trial has reported a step, so there is no curve to draw.",
            advice="Trials report by `study.report(trial, step, value)`, or if the objective yields its values.",
        )
    best = _best(study)
    shown = _shown(trials, {number for number in (best, chosen) if number is not None})
    marks: list[Mark] = []
    for state in reversed(ENDS):
        marks += _group(state, [each for each in shown if became(each) == state and each.number not in (best, chosen)])
    for trial in sorted(
        (each for each in shown if each.number in (best, chosen)), key=lambda each: each.number == best
    ):
        marks += _highlighted(study, trial, best=trial.number == best)
    steps, values = (np.concatenate(side) for side in zip(*map(_values, shown), strict=True))
    x, reach = _axis("step", np.unique(steps), None, whole=True), fenced(values, upward=of.upward)
    y, ends = _axis(label, values, limits, reach), last_values(shown)
    low, high = y.limits or (-np.inf, np.inf)
    beyond = int(np.sum((ends < low) | (ends > high)))
    title = _title(study, trials, len(shown)) + f"; {many(beyond, 'end')} beyond the picture" * (beyond > 0)
    return Panel(marks=marks, x=x, y=y, title=title)


def reporting(study: Study) -> list[Trial]:
    """Returns the trials that have reported a step."""
    return [trial for trial in study.trials if trial.curve]


def became(trial: Trial) -> str:
    """Returns the state of a trial, or "paused" if it is pending and the rule lets it wait."""
    return "paused" if trial.state == "pending" and trial.curve and trial.curve[-1].verdict == "wait" else trial.state


def ended_at(trial: Trial) -> str:
    """Returns a trial that has reported, its state and its last report in words."""
    last = trial.curve[-1]
    return f"trial {trial.number}: {ENDS[became(trial)][0]} at step {last.step:,} with {numeral(last.value)}"


def _best(study: Study) -> int | None:
    """Returns the number of the best finished trial, or None if there is no single best."""
    if not has_single_best(study) or all(trial.reward is None for trial in study.trials):
        return None
    found = best_of(study)
    return None if found is None else found.number


def _shown(trials: Sequence[Trial], first: set[int]) -> list[Trial]:
    """Returns the trials that are drawn: all, or these first, those that have not ended, and others evenly spread."""
    kept = {trial.number for trial in trials if trial.number in first}
    for those in ([each for each in trials if each.state == "pending"], trials):
        rest = [trial.number for trial in those if trial.number not in kept]
        kept |= {rest[i] for i in spread_evenly(len(rest), max(MOST - len(kept), 0)).tolist()}
    return [trial for trial in trials if trial.number in kept]


def _values(trial: Trial) -> tuple[Array, Array]:
    """Returns the steps and the values of a curve, `(n,)` each, of many the lowest and highest of each stretch."""
    steps, values = np.array([(each.step, each.value) for each in trial.curve], dtype=np.float64).T
    kept = thinned(values, COLUMNS)
    return steps[kept], values[kept]


def _group(state: str, trials: Sequence[Trial]) -> list[Mark]:
    """Returns one line with gaps for the curves of trials in one state, and the mark at the end of each."""
    if not trials:
        return []
    word, color, shape, opacity = ENDS[state]
    parts = [(np.append(x, np.nan), np.append(y, np.nan)) for x, y in map(_values, trials)]
    x, y = (np.concatenate(side) for side in zip(*parts, strict=True))
    ends = np.array([trial.curve[-1].step for trial in trials], dtype=np.float64)
    hover, size = [ended_at(trial) for trial in trials], 5.5 if shape == "O" else 4.0
    marks = Points(ends, last_values(trials), color, word, shape, size, min(2.0 * opacity, 1.0), hover)
    return [Line(x, y, color, width=0.9, opacity=opacity), marks]


def _highlighted(study: Study, trial: Trial, *, best: bool) -> list[Mark]:
    """Returns the curve of one trial, with a mark at its end that says what the trial is."""
    x, y = _values(trial)
    word, _, shape, _ = ENDS[became(trial)]
    called, color = f"trial {trial.number}, {standing(study, trial) if best else word}", "best" if best else "text"
    shape, size = ("*", 11.0) if best else (shape, 6.0)
    return [Line(x, y, color, called, 2.0), Points(x[-1:], y[-1:], color, "", shape, size, hover=[ended_at(trial)])]


def _axis(
    label: str, values: Array, limits: tuple[float, float] | None, reach: tuple[float, float] | None = None, *,
    whole: bool = False,
) -> Axis:  # fmt: skip
    """Returns an axis of these values `(n,)`: a logarithmic one if they are positive and crowd at the low end."""
    low, high = float(values.min()), float(values.max())
    log = low > 0.0 and high > WIDE * low and float(np.median(values)) < low + SKEW * (high - low)
    if log and limits is None:
        room = (high / low) ** 0.04
        ends = (low / room, high * room)
        return Axis(label=label, log=True, limits=ends, ticks=log_ticks(*ends))
    ends = limits or padded(reach or (low, high), 0.03 if whole else 0.06)
    return Axis(label=label, limits=ends, whole=whole)


def _title(study: Study, trials: Sequence[Trial], shown: int) -> str:
    """Returns how many trials ended in which way, and the share of the steps that stopping saved."""
    states = [became(trial) for trial in trials]
    counts = ", ".join(f"{states.count(state):,} {ENDS[state][0]}" for state in ENDS if state in states)
    saved = saving(study, trials)
    said = f"{counts}\nstopping saved {saved:.0%} of the steps" if saved > 0.0 else counts
    said += _missed(study)
    said += f"; drawn are {shown} of {many(len(trials), 'curve')}" * (shown < len(trials))
    return said if has_single_best(study) else f"{said}\n{NO_SINGLE_BEST}"


def _missed(study: Study) -> str:
    """Returns how many stops would have been better, as measured by the trials that ran on all the same, in words."""
    found = study.pruned() if pruning_of(study.policy).explore > 0.0 else None
    if found is None or found.regretted is None or not found.stopped:
        return ""
    return f"; about {round(found.regretted):,} of {many(found.stopped, 'stop')} would have been better"


def saving(study: Study, trials: Sequence[Trial]) -> float:
    """Returns the share of the steps that stopping saved, of the trials that reported and ended.

    Without stopping, each would have gone to the full length of the rule, or else to the last step of all.
    """
    ended = [trial for trial in trials if trial.state in ("observed", "stopped")]
    if not any(trial.state == "stopped" for trial in ended):
        return 0.0
    full = pruning_of(study.policy).steps or max(trial.curve[-1].step for trial in trials)
    missing = sum(full - trial.curve[-1].step for trial in ended if trial.state == "stopped")
    return missing / (full * len(ended)) if full else 0.0


# -- stopped trials in other pictures --


def stopped_of(of: Quantity, *, most: int = MOST_STOPPED) -> list[Trial]:
    """Returns the stopped trials that a picture of a number draws, evenly spread if there are many.

    Only the reward is known of them: that of their last report.
    """
    if not of.objective:
        return []
    found = in_space(of.study.policy, [trial for trial in of.study.trials if trial.state == "stopped"])
    return [found[i] for i in spread_evenly(len(found), most).tolist()]


def last_values(trials: Sequence[Trial]) -> Array:
    """Returns the last value that each trial reported, `(n,)`."""
    return np.array([trial.curve[-1].value for trial in trials], dtype=np.float64)


def stopped_marks(
    trials: Sequence[Trial], x: Array, *, limits: tuple[float, float] = (-math.inf, math.inf), y: Array | None = None,
    ends: tuple[float, float] | None = None, color: str = "observed", label: str = "stopped, at the last value",
    opacity: Any = 0.8,
) -> list[Mark]:  # fmt: skip
    """Returns the open marks of stopped trials, or none if there is none.

    Args:
        trials: n stopped trials.
        x: their places, `(n,)`. NaN where one is not shown.
        limits: lowest and highest value of the axis.
        ends: where marks beyond them stand, or None for a little inside.
        y: heights, `(n,)`, or None for the last values.
        color: role.
        label: in the legend.
        opacity: one number, or `(n,)`.
    """
    inside = np.isfinite(x)
    if not inside.any():
        return []
    heights, (low, high) = last_values(trials) if y is None else y, limits
    edge = EDGE * (high - low) if math.isfinite(high - low) else 0.0
    bottom, top = ends or (low + edge, high - edge)
    opacity = np.broadcast_to(opacity, len(x))
    seen, at = np.where(inside, heights, np.nan), {"v": bottom, "^": top}
    marks: list[Mark] = []
    shapes = [((seen >= low) & (seen <= high), "O", label, heights)]
    for beyond_it, shape, name in beyond(seen, limits):
        shapes.append((beyond_it, shape, f"{beyond_it.sum()} stopped {name}", np.full(len(x), at[shape])))
    for chosen, shape, name, places in shapes:
        if chosen.any():
            words = [ended_at(trials[i]) for i in np.flatnonzero(chosen).tolist()]
            marks.append(Points(x[chosen], places[chosen], color, name, shape, 5.0, opacity[chosen], words))
    return marks
