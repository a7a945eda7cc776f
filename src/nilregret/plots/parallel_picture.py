"""The picture of all trials as lines across their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from .._utils.checks import Array, many
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..domains.domain import Domain
from ..domains.parameters import Choice, Int
from ..errors import InvalidInput
from ..storage.record import Trial
from ..study.best import in_space, without_violation
from ..study.function import Axis as ParameterAxis
from ..study.function import axes as axes_of
from ..study.function import is_active, value_at
from ..study.quantities import Quantity, objectives, quantity
from ..study.study import Study
from .along import option_word, places
from .base import labelled
from .curves_picture import last_values, stopped_marks, stopped_of
from .drawing import draw
from .scene import Axis, Line, Mark, Panel, Picture, Ticks, Words
from .source import Source, answered_of, chosen_axes, numbers_drawn, study_of, value_range
from .ticks import fenced, linear_ticks, log_ticks, spread_evenly

OFF = -0.13  # Place of a parameter that is not active.
BEST = 0.1  # Share of the trials that is highlighted.
MOST_WORDS = 12  # Words along an axis.
MOST_LINES, MOST_BEST, MOST_STOPPED = 300, 60, 100  # Trials that are drawn, of these the best, and stopped ones.


def parallel(
    source: Source,
    path: str | Path | None = None,
    *,
    of: str | int | Sequence[str | int] = (),
    parameters: Sequence[str] | None = None,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns a picture of all trials as lines across their parameters, with the best tenth highlighted.

    Each vertical line is a parameter, the last one the value told. Of several objectives, each has a line, and the
    trials of the front are highlighted. Where the highlighted lines meet, the parameter matters. A parameter that is
    not active in a trial is at "off". Trials that violate constraints are never among the best. Stopped trials have
    dashed lines to an open mark at their last value.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))
    >>> result = nr.minimize(lambda x, kind: x + (kind == "a"), space, trials=12, progress=False)
    >>> figure = nr.plots.parallel(result)

    Args:
        source: a study or a result.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        of: names of metrics, or numbers or texts of constraints, one or several, which have an axis each.
        parameters: names of those to draw, or None for all.
        range: lowest and highest value to draw. By default that of the values without far outliers.
        label: of the values. By default "reward", or "loss" if the goal is to minimise.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered, or a name is unknown.
    """
    check_picture(path, interactive=interactive)
    study = study_of(source)
    several: Any = of if isinstance(of, list | tuple) else [of]
    beside = [each for each in (quantity(study, name) for name in several) if not each.objective]
    offered = axes_of_trials(study)
    axes = chosen_axes(offered, parameters, offered)
    limits = numbers_drawn(study, None, range, label)[0].limits
    panel = parallel_panel(study, axes, limits, label, beside=beside)
    count = len(panel.x.ticks or ())
    picture = Picture(panels=[panel], size=(min(2.4 + 1.15 * count, 16.0), 4.2), name=study.name, legend=True)
    return draw(picture, path, interactive=interactive)


def axes_of_trials(study: Study) -> list[ParameterAxis]:
    """Returns the axes of the points and, if the policy has contexts, before them those of the contexts."""
    return context_axes(study) + axes_of(study.policy.domain)


def context_axes(study: Study) -> list[ParameterAxis]:
    """Returns the axes of the contexts."""
    found = [] if study.policy.context is None else axes_of(study.policy.context)
    return [axis._replace(name=f"context {axis.name.removeprefix('point')}".rstrip()) for axis in found]


def parallel_panel(
    study: Study, axes: Sequence[ParameterAxis], limits: tuple[float, float] | None, label: str | None = None, *,
    beside: Sequence[Quantity] = (),
) -> Panel:  # fmt: skip
    """Returns the panel of trials as lines: all, or the best ones and others evenly spread.

    Args:
        study: a study with an answered trial.
        axes: those of `axes_of_trials` that are drawn.
        limits: lowest and highest value, or None for those without far outliers. Of several objectives, None.
        label: of the values, or None for the names of the objectives.
        beside: further numbers with an axis each, before those of the objectives.
    """
    trials = in_space(study.policy, answered_of(study))
    if not trials:
        raise InvalidInput("No answered trial is in the space of now, so there is no line to draw.")
    best, title, word = highlighted(study, trials)
    kept, first = _drawn(len(trials), best)
    title += f"; drawn are {len(kept)}" * (len(kept) < len(trials))
    shown, told = [trials[i] for i in kept], objectives(study)
    each = [LineAxis(axis.name, _heights(study, shown, axis), _ticks(axis)) for axis in axes]
    each += [_of_number(number, shown, ends_of(number)) for number in beside]
    each += [_of_number(number, shown, limits or limits_of(number)) for number in told]
    if label is not None:
        each[-1] = each[-1]._replace(name=labelled(label, ""))
    hover = [f"trial {trial.number}: {', '.join(map(numeral, trial.values or ()))}" for trial in shown]
    panel = line_panel(each, first, hover, title=title, words=(word, "others"))
    return _with_stopped(panel, study, axes, len(beside), limits)


def _with_stopped(
    panel: Panel, study: Study, axes: Sequence[ParameterAxis], beside: int, limits: tuple[float, float] | None
) -> Panel:
    """Returns a panel with dashed lines of the stopped trials below the others, and open marks at their last value."""
    number = objectives(study)[0]
    stopped = stopped_of(number, most=MOST_STOPPED)
    if not stopped:
        return panel
    values = share_of(last_values(stopped), limits or limits_of(number))
    gaps = [np.full(len(stopped), np.nan)] * (beside + 1)
    heights = np.column_stack([*(_heights(study, stopped, axis) for axis in axes), *gaps[1:], values, gaps[0]])
    last = heights.shape[1] - 2
    across = np.tile(np.append(np.arange(last + 1.0), np.nan), len(stopped))
    line = Line(across, heights.ravel(), "observed", "stopped", width=0.8, dashed=True, opacity=0.3)
    marks = stopped_marks(stopped, np.full(len(stopped), float(last)), y=values)
    return replace(panel, marks=[line, *panel.marks, *marks])


class LineAxis(NamedTuple):
    """An axis of a panel of lines.

    Attributes:
        name: below it.
        heights: where n trials are, from 0 to 1, or `OFF`, `(n,)`.
        ticks: places from 0 to 1 and words.
    """

    name: str
    heights: Array
    ticks: Ticks


def line_panel(
    each: Sequence[LineAxis], best: Sequence[int], hover: Sequence[str], *, title: str,
    words: tuple[str, str], color: str = "best",
) -> Panel:  # fmt: skip
    """Returns a panel with a line for each trial across axes side by side.

    Args:
        each: the axes, from left to right.
        best: places of the trials that are highlighted, the best first.
        hover: text of each trial.
        title: above the panel.
        words: name of the highlighted trials, and of the others.
        color: role of the highlighted trials.
    """
    heights, names = np.column_stack([axis.heights for axis in each]), [axis.name for axis in each]
    marks = _frame([axis.ticks for axis in each], off=bool((heights == OFF).any()))
    return Panel(
        marks=marks + _lines(heights, best, hover, words, color), framed=False, title=title,
        x=Axis(limits=(-0.35, len(names) - 0.5), ticks=[(float(i), name) for i, name in enumerate(names)], grid=False,
               steep=sum(map(len, names)) > 12 * len(names)),
        y=Axis(limits=(OFF - 0.06, 1.06), ticks=[], grid=False),
    )  # fmt: skip


def _of_number(of: Quantity, trials: Sequence[Trial], ends: tuple[float, float]) -> LineAxis:
    told = np.array([of.told(trial) for trial in trials], dtype=np.float64)
    return LineAxis(of.name, share_of(told, ends), share_ticks(ends))


def ends_of(of: Quantity) -> tuple[float, float]:
    """Returns the lowest and the highest value that trials told."""
    return float(of.values.min(initial=np.inf)), float(of.values.max(initial=-np.inf))


def limits_of(of: Quantity) -> tuple[float, float]:
    """Returns the ends of the axis of an objective: those possible for clicks, else those without far outliers."""
    return value_range(None, of.study, of) or fenced(of.values, upward=of.upward)


def highlighted(study: Study, trials: Sequence[Trial]) -> tuple[list[int], str, str]:
    """Returns the places of the trials that are highlighted, with a title and a name: the front, or the best tenth."""
    count = many(len(trials), "trial")
    if len(study.goals) > 1:
        place = {trial.number: i for i, trial in enumerate(trials)}
        best = [place[trial.number] for trial in study.front()]
        return best, f"on the front: {len(best):,} of {count}", "on the front"
    best = best_tenth(study, trials)
    ties = " with ties" if len(best) > _tenth(trials) else ""
    return best, f"best tenth{ties}: {len(best):,} of {count}", "best tenth"


def _drawn(count: int, best: Sequence[int]) -> tuple[list[int], list[int]]:
    """Returns the places of the trials that are drawn, and among these the places of the best, the best first."""
    if count <= MOST_LINES:
        return list(range(count)), list(best)
    first = list(best[:MOST_BEST])
    others = np.setdiff1d(spread_evenly(count, MOST_LINES - len(first)), best).tolist()
    kept = sorted({*first, *others})
    place = {i: k for k, i in enumerate(kept)}
    return kept, [place[i] for i in first]


def best_tenth(study: Study, trials: Sequence[Trial]) -> list[int]:
    """Returns the places of the best tenth of answered trials with ties, at least one, the best first."""
    sign = -1.0 if study.goals[0] == "maximize" else 1.0
    place = {trial.number: i for i, trial in enumerate(trials)}
    feasible = without_violation(study.policy, trials)
    losses = sign * np.array([trial.reward for trial in feasible], dtype=np.float64)
    ranked = np.argsort(losses, kind="stable")
    count = np.searchsorted(losses[ranked], losses[ranked[: _tenth(trials)]][-1:], side="right").sum()
    return [place[feasible[i].number] for i in ranked[:count].tolist()]


def _tenth(trials: Sequence[Trial]) -> int:
    return max(round(BEST * len(trials)), 1)


def _heights(study: Study, trials: Sequence[Trial], axis: ParameterAxis) -> Array:
    """Returns where trials are on the axis of a parameter, from 0 to 1, `(n,)`."""
    of_context = axis in context_axes(study)
    domain = cast(Domain, study.policy.context if of_context else study.policy.domain)
    found = []
    for trial in trials:
        point = cast(Array, trial.context if of_context else trial.point)
        value = value_at(domain, point, axis)
        if not is_active(domain, point, axis):
            found.append(OFF)
        elif isinstance(axis.parameter, Choice):
            place = places(axis, [value], axis.parameter.options)[0]
            found.append(_option(float(place), len(axis.parameter.options)))
        else:
            found.append(OFF if value is None else axis.parameter.position(value))  # A number may be missing.
    return np.array(found)


def _option(place: float, count: int) -> float:
    return place / (count - 1) if count > 1 else 0.5


def share_of(values: Array, limits: tuple[float, float]) -> Array:
    """Returns where values are between two ends, from 0 to 1 and a little beyond, `(n,)`."""
    low, high = limits
    return np.clip((values - low) / (high - low), -0.04, 1.04) if high > low else np.full(len(values), 0.5)


def share_ticks(limits: tuple[float, float]) -> list[tuple[float, str]]:
    """Returns places from 0 to 1 and words of an axis between two ends."""
    low, high = limits
    if not high > low:
        return [(0.5, numeral(low))]
    return [((at - low) / (high - low), words) for at, words in linear_ticks(low, high)]


def _ticks(axis: ParameterAxis) -> list[tuple[float, str]]:
    """Returns places from 0 to 1 and words along the axis of a parameter."""
    parameter = axis.parameter
    if isinstance(parameter, Choice):
        count = len(parameter.options)
        every = -(-count // MOST_WORDS)
        return [(_option(float(i), count), option_word(option)) for i, option in enumerate(parameter.options)][::every]
    low, high = float(parameter.low), float(parameter.high)
    if high == low:
        return [(0.5, numeral(low))]
    ticks = log_ticks(low, high) if parameter.log else linear_ticks(low, high, whole=isinstance(parameter, Int))
    return [(parameter.position(at), words) for at, words in ticks]


def _frame(ticks: Sequence[Sequence[tuple[float, str]]], *, off: bool) -> list[Mark]:
    strokes: list[tuple[list[float], list[float]]] = [([i, i], [0.0, 1.0]) for i in range(len(ticks))]
    strokes += [([i - 0.025, i + 0.025], [at, at]) for i, words in enumerate(ticks) for at, _ in words]
    x, y = ([value for stroke in strokes for value in (*stroke[side], np.nan)] for side in (0, 1))
    marks: list[Mark] = [Line(x, y, "text", width=0.9)]
    marks += [Words(i, at, word, middle=True) for i, words in enumerate(ticks) for at, word in words]
    if off:
        marks.append(Words(-0.02, OFF, "off", right=False, middle=True))
    return marks


def _lines(heights: Array, best: Sequence[int], hover: Sequence[str], words: tuple[str, str], color: str) -> list[Mark]:
    """Returns one line for all other trials, and one for each of the best."""
    x = np.arange(heights.shape[1], dtype=np.float64)
    others = np.delete(heights, best, axis=0)
    marks: list[Mark] = []
    if len(others):
        broken = np.column_stack([others, np.full(len(others), np.nan)])
        across = np.tile(np.append(x, np.nan), len(others))
        marks.append(Line(across, broken.ravel(), "observed", words[1], 0.8, opacity=0.35))
    for k, i in enumerate(reversed(best)):
        marks.append(Line(x, heights[i], color, words[0] if not k else "", 1.5, opacity=0.85, hover=hover[i]))
    return marks
