"""The picture of how a study went: every value, the best so far, and the gap to the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, many
from .._utils.numerals import numeral
from ..storage.record import Trial
from ..study.curves import running_mean
from ..study.direction import best_label, on_average
from ..study.function import expected_gain
from ..study.study import Study
from ..study.waiting import counted_trials
from .base import reward_label
from .drawing import draw
from .scene import Axis, Line, Mark, Panel, Picture, Points, Words
from .source import NO_SINGLE_BEST, Source, answered_of, are_clicks, best_of, standing, study_of, value_range
from .ticks import fenced, log_ticks, padded

EDGE = 0.14  # Room above and below the values, as a share: for the label of the best.
SHORTEST = 20  # Fewest values of a running mean.

Mask = npt.NDArray[np.bool_]


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class History:
    """The numbers of the picture, in the units told.

    Attributes:
        numbers: of the answered trials, `(n,)`.
        values: told, `(n,)`.
        feasible: False where the trial violated a constraint, `(n,)`.
        failed: numbers of the failed trials.
        best_so_far: best feasible value until each answered trial, `(n,)`. NaN before the first.
        best: the trial with the best value, the recommended one under noise, or None if nothing is feasible.
        words: what the best trial is (see `standing`).
        ended: number of trials that are not pending.
        since: number of trials that ended after the last improvement of `best_so_far`.
        gain: expected further gain, or None if it is unknown.
        upward: True if more is better.
        clicks: True if rewards are 0 or 1.
        window: number of values of a running mean. It replaces the best so far of clicks, under contexts, and under
            budgets on average. Else 0.
        spent: numbers of the trials with constraint values and their means so far, `(k,)` and `(k, m)`, under budgets
            on average. Else None.
        left_out: trials that do not count yet, in words, or an empty text (`nilregret.study.waiting`).
    """

    numbers: IndexArray
    values: Array
    feasible: Mask
    failed: Sequence[int]
    best_so_far: Array
    best: Trial | None
    words: str
    ended: int
    since: int
    gain: float | None
    upward: bool
    clicks: bool
    window: int
    spent: tuple[IndexArray, Array] | None
    left_out: str = ""

    @property
    def gaps(self) -> Array:
        """Distance of each value from the best one so far at the end, at least 0, `(n,)`."""
        return np.asarray(np.abs(self.values - self.best_so_far[-1]))

    @property
    def running(self) -> Array:
        """Mean of the last `window` values until each one, `(n,)`."""
        return running_mean(self.values, self.window)


def history(
    source: Source,
    path: str | Path | None = None,
    *,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns a picture of how a study went: every value, the best so far, and the gap to the best on a log scale.

    The title names the best trial, says how long ago the best value improved, and how much more can be
    expected. Far outliers are arrows at the edge. Failed trials are ticks on the axis, and trials that violate
    constraints are crosses.

    For rewards of 0 or 1, under contexts, and under budgets on average, a running mean replaces best and gap. A budget
    has a panel of its mean constraint values so far.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 0.3) ** 2, nr.Space(x=nr.Float(0, 1)), trials=8, progress=False)
    >>> figure = nr.plots.history(result)

    Args:
        source: a study or a result.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        range: lowest and highest value that is possible or of interest. By default that of the values without far
            outliers.
        label: of the values. By default "reward", or "loss" if the goal is to minimise.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered.
    """
    study = study_of(source)
    panels = history_panels(history_of(study), value_range(range, study), reward_label(study, label))
    heights = (3.0, 2.0)[: len(panels)]
    picture = Picture(
        panels=panels, heights=heights, size=(7.2, 1.3 + 0.75 * sum(heights)), name=study.name, legend=True
    )
    return draw(picture, path, interactive=interactive)


def history_of(study: Study) -> History:
    """Returns the numbers of the picture of a study.

    Raises:
        InvalidInput: no trial has been answered.
    """
    trials, known = study.trials, counted_trials(study, valued=True)
    answered = known.answered or answered_of(study)
    left_out = known.left_out if known.answered else ""
    upward = study.goal == "maximize"
    values = np.array([trial.reward for trial in answered], dtype=np.float64)
    by_round = not on_average(study.policy)  # On average, no single round violates a constraint.
    feasible = np.array([not (by_round and trial.feasible is False) for trial in answered])
    better = np.fmax if upward else np.fmin
    best_so_far = better.accumulate(np.where(feasible, values, np.nan))
    last = answered[int(np.nonzero(values == best_so_far[-1])[0][0])] if feasible.any() else None
    clicks, contexts = are_clicks(study), study.policy.context is not None
    best = None if contexts else best_of(study)
    ended = [trial.number for trial in trials if trial.state != "pending"]
    return History(
        numbers=np.array([trial.number for trial in answered]),
        values=values,
        feasible=feasible,
        failed=[trial.number for trial in trials if trial.state == "failed"],
        best_so_far=best_so_far,
        best=best,
        words=NO_SINGLE_BEST if contexts else "" if best is None else standing(study, best),
        ended=len(ended),
        since=0 if last is None else sum(n > last.number for n in ended),
        gain=None if best is None else study.replica.query(partial(expected_gain, best=best)),
        upward=upward,
        clicks=clicks,
        window=max(SHORTEST, len(values) // 10) if clicks or contexts or not by_round else 0,
        spent=None if by_round else _spent(trials),
        left_out=left_out,
    )


def _spent(trials: Sequence[Trial]) -> tuple[IndexArray, Array] | None:
    told = [(trial.number, trial.constraints) for trial in trials if trial.constraints is not None]
    if not told:
        return None
    sums = np.cumsum([values for _, values in told], axis=0)
    return np.array([n for n, _ in told]), sums / np.arange(1, len(told) + 1)[:, None]


def history_panels(found: History, limits: tuple[float, float] | None, label: str) -> list[Panel]:
    """Returns the panel of values, and that of gaps unless all values are one, or that of a budget."""
    end = max(float(found.numbers[-1]), *found.failed, 0.0) + 0.5
    x = Axis(label="trial", limits=(-0.5 - 0.01 * end, end + 0.01 * end), whole=True)
    below = _spending(found, x) if found.window else _gaps(found, x)
    above = x if below is None else Axis(limits=x.limits, whole=True)
    values = Panel(
        marks=_values(found, limits or fenced(found.values, upward=found.upward), end),
        x=above,
        y=Axis(label=label, limits=padded(limits or fenced(found.values, upward=found.upward), EDGE)),
        title=said(found),
    )
    return [values] if below is None else [values, below.at(1, 0)]


def said(found: History) -> str:
    """Returns where the study stands, in two lines."""
    step = _step(found)
    when = f"last improved {many(found.since, 'trial')} ago" if found.since else "last improved by the last trial"
    if found.window:
        mean, last = (numeral(float(value), step=step) for value in (found.values.mean(), found.running[-1]))
        when = f"mean {mean}, of the last {min(found.window, len(found.values))}: {last}"
        when += f"; not counted yet: {found.left_out}" * bool(found.left_out)
    if found.best is None or found.best.reward is None:
        if found.words:
            return f"{found.words}\n{when}"
        return f"nothing feasible in {many(found.ended, 'trial')}\nexpected further gain: unknown"
    gain = "unknown" if found.gain is None else numeral(found.gain, 2)
    value = "" if found.clicks else f" with {numeral(found.best.reward, step=step)}"
    return f"{found.words}: trial {found.best.number}{value}\n{when}; expected further gain: {gain}"


def _step(found: History) -> float:
    """Returns the difference of values that matters, a hundredth of their range."""
    low, high = fenced(found.values, upward=found.upward)
    return 0.01 * (high - low)


def _values(found: History, limits: tuple[float, float], end: float) -> list[Mark]:
    low, high = limits
    inside = (found.values >= low) & (found.values <= high)
    marks: list[Mark] = []
    for chosen, label, shape in (
        (inside & found.feasible, "observed", "o"), (inside & ~found.feasible, "not feasible", "x")
    ):  # fmt: skip
        if chosen.any():
            marks.append(_told(found, chosen, found.values, label, shape))
    ends = padded(limits, EDGE)
    for chosen, shape, at in ((found.values < low, "v", ends[0]), (found.values > high, "^", ends[1])):
        if chosen.any():
            far, worst = ("down", found.values[chosen].min()) if shape == "v" else ("up", found.values[chosen].max())
            name = f"{chosen.sum()} outside, {far} to {numeral(float(worst))}"
            marks.append(_told(found, chosen, np.full(len(chosen), at), name, shape))
    name = f"best so far ({best_label('maximize' if found.upward else 'minimize')})"
    name, line = (f"mean of the last {found.window}", found.running) if found.window else (name, found.best_so_far)
    marks.append(Line([*found.numbers, end], np.append(line, line[-1]), "best", name, steps=True))
    if found.failed:  # Ticks along the axis stay readable however many there are.
        marks.append(Points(found.failed, np.full(len(found.failed), ends[0]), "failed", "failed", "|", 10.0))
    if found.best is not None and found.best.reward is not None and not found.clicks:
        place, value = float(found.best.number), found.best.reward
        marks.append(Points([place], [value], "best", shape="*", size=11.0))
        words = f"trial {found.best.number}: {numeral(value, step=_step(found))}"
        right, above = place <= 0.6 * end, found.upward == (value == found.best_so_far[-1])  # Beyond the line.
        marks.append(Words(place, value, words, "best", right=right, above=above))
    return marks


def _told(found: History, chosen: Mask, heights: Array, label: str, shape: str) -> Points:
    hover = [f"trial {n}: {numeral(v)}" for n, v in zip(found.numbers[chosen], found.values[chosen], strict=True)]
    size = 4.0 if shape == "o" else 6.0
    return Points(found.numbers[chosen], heights[chosen], "observed", label, shape, size, hover=hover)


def _spending(found: History, x: Axis) -> Panel | None:
    """Returns the panel of mean constraint values so far, or None if there is no budget on average."""
    if found.spent is None or x.limits is None:
        return None
    numbers, means = found.spent
    lines = [Line(numbers, mean, "model", "mean constraint value so far" * (not j)) for j, mean in enumerate(means.T)]
    kept = Line(x.limits, [0.0, 0.0], "text", "budget: at most 0 on average", 1.0, dashed=True)
    return Panel(marks=[*lines, kept], x=x, y=Axis(label="constraint"))


def _gaps(found: History, x: Axis) -> Panel | None:
    """Returns the panel of gaps to the best value, on a logarithmic axis, or None if all values are one."""
    gaps, line = found.gaps, np.abs(found.best_so_far - found.best_so_far[-1])
    apart = found.feasible & (gaps > 0.0)
    if not apart.any():
        return None
    low, high = float(gaps[apart].min()), float(gaps[apart].max())
    floor = low / 2.0
    end = 0.0 if x.limits is None else x.limits[1] - 0.5
    marks: list[Mark] = [
        Points(found.numbers[apart], gaps[apart], "observed", opacity=0.8),
        Line([*found.numbers, end], np.maximum(np.append(line, line[-1]), floor), "best", steps=True),
    ]
    limits = (floor, 1.5 * high)
    return Panel(marks=marks, x=x, y=Axis(label="gap to best", log=True, limits=limits, ticks=log_ticks(*limits)))
