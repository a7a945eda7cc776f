"""Picture of the trials of a study over wall-clock time."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.checks import Array, IndexArray, many
from .._utils.files import check_picture
from ..errors import InvalidInput
from ..storage.record import Trial
from ..study.study import Study
from .base import BEST, FAILED, MODEL, OBSERVED, new_figure, plain, theme
from .lines import paper_style, save
from .source import NO_SINGLE_BEST, Source, best_of, has_single_best, standing, study_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Seconds of each unit of the axis, the largest first.
UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0), ("milliseconds", 1e-3))
SHORTEST, BREAK = 0.004, 0.0015  # The least length of a bar, and the gap after it, as shares of the axis.
MOST_LANES = 60
KINDS: dict[str, tuple[str, str, Any]] = {
    "observed": ("answered", MODEL, "-"),
    "failed": ("failed", FAILED, "-"),
    "abandoned": ("abandoned", OBSERVED, "-"),
    "stopped": ("", OBSERVED, "-"),  # The open mark at its end has the name.
    "pending": ("pending", OBSERVED, (0, (0.5, 0.3))),
}


def timeline(source: Source, path: str | Path | None = None, *, width: float = 7.2) -> Figure:
    """Returns a picture of the trials over wall-clock time: a bar from each question to its answer.

    Trials that overlap are in different rows, so that the number of rows is the largest number of trials under way. A
    trial without an answer extends to the last event of the study. The bar of a stopped trial ends in an open mark. A
    gap in a row is time without work.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 0.3) ** 2, nr.Space(x=nr.Float(0, 1)), trials=6, progress=False)
    >>> figure = nr.plots.timeline(result)

    Args:
        source: a study or a result, with at least one trial.
        path: path of the picture, or None to save nothing. The ending names the format: .pdf, .svg or .png.
        width: inches.

    Raises:
        InvalidInput: there is no trial.
    """
    check_picture(path)
    study = study_of(source)
    if not len(study.trials):
        raise InvalidInput("A timeline needs at least one trial.")
    trials = list(study.trials)
    spans = _spans(trials)
    lanes = np.array(lanes_of(spans))
    rows = int(lanes.max()) + 1
    with paper_style():
        figure = new_figure(width, 1.1 + 0.24 * min(rows, MOST_LANES))
        ax: Axes = figure.subplots()
        thick = max(2.0, min(11.0, 72.0 * (figure.get_figheight() - 1.0) / rows * 0.55))  # Points.
        ax.set(xlabel=_draw_bars(ax, study, spans, lanes, thick=thick, width=width), ylim=(rows - 0.3, -0.7))
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        together = f"up to {rows} at once" if rows > 1 else "one after another"
        title = f"{plain(study.name)}: {many(len(trials), 'trial')}, {together}"
        ax.set_title(title if has_single_best(study) else f"{title}. {NO_SINGLE_BEST}", loc="left")
        ax.grid(axis="x", alpha=0.25, lw=0.5)
        figure.legend(loc="outside lower center", ncols=5, frameon=False)
        save(figure, path)
    return figure


def _draw_bars(ax: Axes, study: Study, spans: Array, lanes: IndexArray, *, thick: float, width: float) -> str:
    """Adds a bar for each trial to a picture of a width in inches, and returns the name of the unit of time."""
    trials = study.trials
    best, label = _leaders(study)
    name, unit = _unit(float(np.ptp(spans)))
    starts, ends = ((spans - spans.min()) / unit).T
    whole = max(float(ends.max()), 1e-12)
    ends = np.maximum(ends - BREAK * whole, starts + SHORTEST * whole)
    for state, (word, color, dash) in KINDS.items():
        of = [i for i, trial in enumerate(trials) if trial.state == state and trial.number not in best]
        if of:
            ax.hlines(lanes[of], starts[of], ends[of], color=color, lw=thick, linestyles=dash, label=word)
    stopped = [i for i, trial in enumerate(trials) if trial.state == "stopped"]
    if stopped:
        x, y, face = ends[stopped], lanes[stopped], theme().surface
        ax.scatter(x, y, s=thick**2 / 2.0, facecolors=face, edgecolors=OBSERVED, zorder=3, label="stopped")
    if best:
        ax.hlines(lanes[best], starts[best], ends[best], color=BEST, lw=thick, label=label)
    per_point = whole / (66.0 * width)  # The axis has most of the 72 points of an inch.
    ends_of = dict.fromkeys(lanes.tolist(), -whole)  # The right end of the last number of each row.
    for i, trial in enumerate(trials):
        if starts[i] < ends_of[int(lanes[i])]:
            continue
        ends_of[int(lanes[i])] = starts[i] + per_point * (4.0 * len(str(trial.number)) + 2.0)
        ax.annotate(
            str(trial.number), (starts[i], lanes[i]), xytext=(0, thick / 2 + 0.5), textcoords="offset points",
            fontsize=6, horizontalalignment="left", verticalalignment="bottom",
        )  # fmt: skip
    ax.set_xlim(0.0, float(ends.max()))
    return name


def _leaders(study: Study) -> tuple[list[int], str]:
    """Returns the numbers of the trials that are marked and their name: the best one, or those on the front."""
    if not has_single_best(study) or all(trial.reward is None for trial in study.trials):
        return [], ""
    if len(study.goals) > 1:
        return [trial.number for trial in study.front()], "on the front"
    leader = best_of(study)
    return ([], "") if leader is None else ([leader.number], f"{standing(study, leader)}: trial {leader.number}")


def _spans(trials: Sequence[Trial]) -> Array:
    """Returns the time of the question and the end of each trial, Unix seconds, `(n, 2)`."""
    given_up = {trial.number: trial.abandoned.time for trial in trials if trial.abandoned is not None}
    ended = [given_up.get(trial.number) if trial.told_at is None else trial.told_at for trial in trials]
    last = max([trial.asked_at for trial in trials] + [time for time in ended if time is not None])
    ends = [last if time is None else time for time in ended]
    asked = [trial.asked_at for trial in trials]
    return np.array([asked, np.maximum(ends, asked)], dtype=np.float64).T


def lanes_of(spans: Array) -> list[int]:
    """Returns a row for each span `(n, 2)`, the lowest in which no other span is under way."""
    lanes = [0] * len(spans)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    for i in np.argsort(spans[:, 0], kind="stable"):
        start, end = spans[i]
        while busy and busy[0][0] <= start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lanes[i] = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (float(end), lanes[i]))
    return lanes


def _unit(seconds: float) -> tuple[str, float]:
    """Returns the name and the length of the unit in which a time has few digits."""
    return next(((name, unit) for name, unit in UNITS if seconds >= 2.0 * unit), UNITS[-1])
