"""The picture of the front: what one objective costs in another."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, compress
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, many
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..errors import InvalidInput
from ..storage.record import Trial
from ..study.best import without_violation
from ..study.direction import signs_of
from ..study.front import Front
from ..study.quantities import Quantity, objectives, quantity
from ..study.study import Study
from ..study.waiting import counted_from
from ..theory.fronts import non_dominated
from .base import BAND_LABELS
from .drawing import draw
from .parallel_picture import LineAxis, line_panel, share_of, share_ticks
from .scene import Axis, Boxes, Line, Mark, Panel, Picture, Points, Words
from .source import Source, answered_of, leaders_of, named, study_of
from .ticks import fenced, log_ticks, padded, spread_evenly

MOST = 1000  # Trials that are drawn besides the front.
MOST_PAIRS = 4  # Objectives of which every pair has a panel.
ON, OTHERS, UP = "on the front, posterior means", "others, as told", "up is better on every axis"
ROOM = 0.1  # Room beside the values, as a share of their range.
EDGE = 0.012  # Distance of far outliers from the edge, as a share of the axis.
CORNER = 0.2  # Share of an axis that the word in the corner takes.
FAR_LABEL = 0.6  # Share of an axis beyond which a label is to the left.


@final
class Shown(NamedTuple):
    """The trials of a front and all others, with the axes that its panels share.

    Attributes:
        study: with several objectives.
        front: its front.
        numbers: the k objectives.
        others: trials that told values and are not on the front.
        feasible: False where one of these violates a constraint or limit.
        values: what `others` told, `(n, k)`.
        chosen: the trial that is recommended, or None.
        limits: ends of the axis of each objective.
        log: numbers of the objectives with a logarithmic axis.
    """

    study: Study
    front: Front
    numbers: list[Quantity]
    others: list[Trial]
    feasible: npt.NDArray[np.bool_]
    values: Array
    chosen: Trial | None
    limits: list[tuple[float, float]]
    log: Collection[int]

    @property
    def corner(self) -> Array | None:
        """The reference point that a user gave, `(k,)`, or None."""
        given: Any = getattr(self.study.policy, "constraints", None)
        return None if getattr(given, "reference", None) is None else self.front.reference

    @property
    def recommended(self) -> Trial | None:
        """The trial that is recommended, if it is on the front."""
        chosen = self.chosen
        return chosen if chosen is not None and any(t.number == chosen.number for t in self.front.trials) else None

    def hover(self, trial: Trial, values: Sequence[float], word: str) -> str:
        """Returns what is known of a trial: its values, and its parameters."""
        each = zip(self.numbers, values, strict=True)
        listed = ", ".join(f"{number.name} {numeral(value)}" for number, value in each)
        return f"trial {trial.number}{word}: {listed}; {named(trial)}"


def front(
    source: Source,
    path: str | Path | None = None,
    *,
    weights: Mapping[str, float] | Sequence[float] | None = None,
    reference: Sequence[float] | None = None,
    log: str | int | Sequence[str | int] = (),
    interactive: bool = False,
) -> Any:
    """Returns a picture of the front of several objectives: what one costs in another, and how sure that is.

    The front is of posterior means, with bounds as cross-hairs. A trial is on it if no other trial beats it in all
    objectives. Two objectives have a staircase: what is beyond it was not reached by any trial. The arrow says in which
    corner both are better. All other trials are at what they told, as crosses if they violate a constraint. Failed
    trials are left out. Far outliers are at the edge.

    With three or four objectives there is a panel for each pair, with the staircase of the two alone. Three and more
    also have an axis each, turned so that up is better everywhere, and lines that connect what belongs to one trial.

    >>> import nilregret as nr
    >>> space, both = nr.Space(x=nr.Float(0, 1)), {"loss": "minimize", "recall": "maximize"}
    >>> study = nr.Study(nr.auto(space, objectives=tuple(both)), goal=tuple(both.values()))
    >>> for _ in range(6):
    ...     trial = study.ask()
    ...     x = trial.parameters["x"]
    ...     _ = study.tell(trial, (x**2, x))
    >>> figure = nr.plots.front(study)

    Args:
        source: a study or a result, of several objectives.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        weights: weight of each objective, by name or in order, to mark the trial that `study.best(weights=...)` picks.
        reference: the worst value of each objective that counts, in the units told, for the volume in the title. None
            for that of the policy, or one that follows from the answers. A given one is drawn.
        log: names or numbers of objectives with a logarithmic axis, such as a latency. Their values are above 0.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: there is only one objective, no trial has been answered, or a logarithm has a value of at most 0.
    """
    check_picture(path, interactive=interactive)
    study = study_of(source)
    if len(study.goals) == 1:
        raise InvalidInput(
            "A front has several objectives, and this study has one, so its best trial is a single one.",
            advice="`nr.plots.history` shows it.",
        )
    answered_of(study)
    found = study.front_values(reference)
    chosen = None if weights is None else study.best(weights=weights)
    corner = None if reference is None else found.reference
    panels = front_panels(study, found, chosen=chosen, corner=corner, log=_checked_log(study, found, log))
    return draw(_arranged(panels, study.name, front_title(study, found)), path, interactive=interactive)


def _checked_log(study: Study, found: Front, log: str | int | Sequence[str | int]) -> frozenset[int]:
    """Returns the numbers of the objectives with a logarithmic axis."""
    listed: Any = log if isinstance(log, list | tuple) else [] if log is None else [log]
    chosen = [quantity(study, each, word="log") for each in listed]
    for each in chosen:
        if not each.objective:
            raise InvalidInput(f"`log` has {each.name!r}, which is no objective.")
        j = each.channel or 0
        least = min(float(each.values.min()), float(found.mean[:, j].min(initial=np.inf)), float(found.reference[j]))
        if not least > 0.0:
            raise InvalidInput(f"`log` has {each.name!r}, whose values reach {numeral(least)}: they must be above 0.")
    return frozenset(each.channel or 0 for each in chosen)


def _arranged(panels: Sequence[Panel], name: str, title: str) -> Picture:
    """Returns the picture of the panels of a front: pairs side by side, and lines across all objectives below."""
    pairs, wide = ([*panels[:-1]], [panels[-1]]) if len(panels) > 1 else (list(panels), [])
    columns = min(len(pairs), 3)
    rows = -(-len(pairs) // columns)
    placed = [panel.at(*divmod(i, columns)) for i, panel in enumerate(pairs)]
    placed += [panel.at(rows, 0, 1, columns) for panel in wide]
    single = len(pairs) == 1
    return Picture(
        panels=placed, heights=[1.0] * (rows + len(wide)), widths=[1.0] * columns,
        size=(7.2, 4.8) if single else (3.6 * columns, 0.9 + 3.2 * (rows + len(wide))),
        name=name, title=title, legend=True,
    )  # fmt: skip


def front_title(study: Study, found: Front) -> str:
    """Returns how many trials are on a front, and its volume, in words."""
    answered = sum(trial.reward is not None for trial in study.trials)
    failed = sum(trial.state == "failed" for trial in study.trials)
    left_out = f", {failed:,} failed" if failed else ""
    if not found.trials:
        some = any(trial.reward is not None for trial in without_violation(study.policy, study.trials))
        why = "no answer since the last restart" if some and study.restarts else "nothing feasible"
        return f"{why} in {many(answered, 'trial')}{left_out}"
    corner = ", ".join(numeral(value) for value in found.reference.tolist())
    on = f"{len(found.trials):,} of {many(answered, 'trial')} on the front{left_out}"
    note = f"; {found.note}" if found.note else ""
    return f"{on}; volume {numeral(found.hypervolume)} from ({corner}){note}"


def front_panels(
    study: Study, front: Front, *, chosen: Trial | None = None, corner: Array | None = None,
    log: Collection[int] = (),
) -> list[Panel]:  # fmt: skip
    """Returns the panel of two objectives. Of more, that of each pair and, as the last one, that of axes side by side.

    Args:
        study: with several objectives.
        front: its front.
        chosen: the trial that is recommended, or None.
        corner: reference point that is drawn, `(k,)`, or None for that of the policy, if it was given one.
        log: numbers of the objectives with a logarithmic axis.
    """
    shown = _shown(study, front, chosen, log)
    drawn = shown.corner if corner is None else corner
    k = len(shown.numbers)
    pairs = combinations(range(k), 2) if k <= MOST_PAIRS else ()
    panels = [_pair(shown, i, j, drawn) for i, j in pairs]
    return panels if k == 2 else [*panels, _lines(shown)]


def _shown(study: Study, front: Front, chosen: Trial | None, log: Collection[int]) -> Shown:
    numbers, on = objectives(study), {trial.number for trial in front.trials}
    others = [trial for trial in answered_of(study) if trial.number not in on]
    others = [others[i] for i in spread_evenly(len(others), MOST).tolist()]
    inside = {trial.number for trial in without_violation(study.policy, others)}
    values = np.array([trial.values for trial in others], dtype=np.float64).reshape(-1, len(numbers))
    limits = []
    for j, number in enumerate(numbers):
        own = np.concatenate([front.mean[:, j], front.lower[:, j], front.upper[:, j]])
        told = fenced(values[:, j], upward=number.upward) if len(values) else (np.inf, -np.inf)
        if j in log:  # No outlier crushes a logarithmic axis, and a bound may be at 0.
            own, told = (
                front.mean[:, j],
                (float(values[:, j].min(initial=np.inf)), float(values[:, j].max(initial=0.0))),
            )
        limits.append((min(told[0], float(own.min(initial=np.inf))), max(told[1], float(own.max(initial=-np.inf)))))
    feasible = np.array([trial.number in inside for trial in others], dtype=bool)
    return Shown(study, front, numbers, others, feasible, values, chosen, limits, log)


def _pair(shown: Shown, i: int, j: int, corner: Array | None) -> Panel:
    """Returns the panel of objectives i (across) and j (up)."""
    x, y = (_axis(shown, each, corner) for each in (i, j))
    marks = _told(shown, i, j, x, y) + _staircase(shown, i, j, (x, y), corner)
    if corner is not None:
        label = f"reference ({numeral(corner[i])}, {numeral(corner[j])})"
        marks.append(Points([corner[i]], [corner[j]], "third", label, "s", 6.0, hover=[label]))
    marks += _on_front(shown, i, j) + _leaders(shown, i, j, x) + _better(shown, i, j, x, y)
    return Panel(marks=marks, x=x, y=y)


def _axis(shown: Shown, j: int, corner: Array | None) -> Axis:
    low, high = shown.limits[j]
    if corner is not None:
        low, high = min(low, float(corner[j])), max(high, float(corner[j]))
    number = shown.numbers[j]
    label = f"{number.name} ({'higher' if number.upward else 'lower'} is better)"
    if j in shown.log:
        low, high = padded((math.log(low), math.log(high)), ROOM)
        return Axis(label=label, limits=(math.exp(low), math.exp(high)), log=True)
    return Axis(label=label, limits=padded((low, high), ROOM))


def _told(shown: Shown, i: int, j: int, x: Axis, y: Axis) -> list[Mark]:
    """Returns the trials that are not on the front, at what they told. Far ones are at the edge."""
    across, up = (np.clip(shown.values[:, n], *_inner(axis)) for n, axis in ((i, x), (j, y)))
    far = (across != shown.values[:, i]) | (up != shown.values[:, j])
    outside = f" ({far.sum():,} far outside)" if far.any() else ""
    marks: list[Mark] = []
    since = counted_from(shown.study, len(shown.study.trials))
    old = np.array([trial.number < since for trial in shown.others], dtype=bool)
    for mask, label, shape, size in (
        (old, "forgotten by now", "d", 4.0), (shown.feasible & ~old, OTHERS + outside, "o", 4.0),
        (~shown.feasible & ~old, "not feasible", "x", 5.0),
    ):  # fmt: skip
        if mask.any():
            hover = [shown.hover(shown.others[n], shown.values[n].tolist(), "") for n in np.flatnonzero(mask).tolist()]
            opacity = np.where(far, 0.3, 0.55)[mask]
            marks.append(Points(across[mask], up[mask], "observed", label, shape, size, opacity, hover))
    return marks


def _inner(axis: Axis) -> tuple[float, float]:
    """Returns the ends between which a mark is not cut off. On a logarithmic axis, nothing is outside."""
    low, high = axis.limits or (0.0, 1.0)
    edge = 0.0 if axis.log else EDGE * (high - low)
    return low + edge, high - edge


def _staircase(shown: Shown, i: int, j: int, axes: tuple[Axis, Axis], corner: Array | None) -> list[Mark]:
    """Returns the border of what two objectives reach, from the edge where the second is worst to that of the first.

    It is listed from the best value of the first objective. With three objectives and more, trials of the front that
    others beat in these two are not on the border.
    """
    signs = signs_of(shown.study.goals)
    pair = (signs * shown.front.mean)[:, [i, j]]
    pair = np.unique(pair[non_dominated(pair)], axis=0)[::-1]
    if not len(pair):
        return []
    ends = [axis.limits or (0.0, 1.0) for axis in axes]
    worst = [end[0] if sign > 0.0 else -end[1] for end, sign in zip(ends, signs[[i, j]], strict=True)]
    across = signs[i] * np.append(np.repeat(pair[:, 0], 2), worst[0])
    up = signs[j] * np.insert(np.repeat(pair[:, 1], 2), 0, worst[1])
    name = "what they reach" if len(shown.numbers) == 2 else "what the two alone reach"
    return [*_volume(shown, pair, signs[[i, j]], corner), Line(across, up, "model", name, 1.4)]


def _volume(shown: Shown, pair: Array, signs: Array, corner: Array | None) -> list[Mark]:
    """Returns the area between the border and the reference point, of two objectives."""
    if corner is None or len(shown.numbers) > 2:
        return []
    low = signs * corner
    above = pair[(pair > low).all(axis=1)]
    if not len(above):
        return []
    ends = np.append(above[1:, 0], low[0])
    sides = (signs[0] * ends, signs[0] * above[:, 0], np.full(len(above), corner[1]), signs[1] * above[:, 1])
    x0, x1, y0, y1 = (*np.sort(sides[:2], axis=0), *np.sort(sides[2:], axis=0))
    hover = [f"volume {numeral(shown.front.hypervolume)}"] * len(above)
    return [Boxes(x0, x1, y0, y1, "model", "volume", 0.08, hover=hover)]


def _on_front(shown: Shown, i: int, j: int) -> list[Mark]:
    """Returns the trials of the front at their posterior means, with bounds across and up."""
    mean, low, high = shown.front.mean, shown.front.lower.copy(), shown.front.upper
    if not len(mean):
        return []
    for n in shown.log:  # A bound may be at 0.
        low[:, n] = np.maximum(low[:, n], 0.5 * shown.limits[n][0])
    gap = np.full(len(mean), np.nan)
    across = np.column_stack([low[:, i], high[:, i], gap, mean[:, i], mean[:, i], gap]).ravel()
    up = np.column_stack([mean[:, j], mean[:, j], gap, low[:, j], high[:, j], gap]).ravel()
    label = BAND_LABELS["proved" if shown.study.valid_for == "f" else "policy"]
    hover = [shown.hover(t, row, ", means") for t, row in zip(shown.front.trials, mean.tolist(), strict=True)]
    return [
        Line(across, up, "model", label, 1.0, opacity=0.55, hover=label),
        Points(mean[:, i], mean[:, j], "model", ON, "o", 5.5, hover=hover),
    ]


def _leaders(shown: Shown, i: int, j: int, x: Axis) -> list[Mark]:
    """Returns the best trial of each of the two objectives, and the recommended one, with a label."""
    front = shown.front
    if not front.trials:
        return []
    place = {trial.number: n for n, trial in enumerate(front.trials)}
    leaders = leaders_of(shown.study, front)
    said: dict[int, list[str]] = {}
    for n in (i, j):
        value = numeral(float(front.mean[place[leaders[n].number], n]))
        said.setdefault(leaders[n].number, []).append(f"best {shown.numbers[n].name}: {value}")
    recommended = shown.recommended
    if recommended is not None and len(shown.numbers) == 2:  # A smaller panel has no room for it.
        said.setdefault(recommended.number, []).append(f"recommended: trial {recommended.number}")
    marks: list[Mark] = []
    for number, words in said.items():
        at, up = (float(front.mean[place[number], n]) for n in (i, j))
        far = 1.0 - _side(x, at) if shown.numbers[i].upward else _side(x, at)  # From the corner that is better.
        beyond = number == leaders[j].number and far > CORNER
        right, above = _side(x, at) < FAR_LABEL, shown.numbers[j].upward == beyond
        marks.append(Words(at, up, ", ".join(words), "best", right=right, above=above))
    if recommended is not None:
        row = front.mean[place[recommended.number]]
        hover = [shown.hover(recommended, row.tolist(), ", recommended")]
        marks.append(Points([row[i]], [row[j]], "best", "recommended", "*", 12.0, hover=hover))
    return marks


def _side(axis: Axis, at: float) -> float:
    """Returns where a place is on an axis, from 0 to 1."""
    low, high = axis.limits or (0.0, 1.0)
    return math.log(at / low) / math.log(high / low) if axis.log else (at - low) / (high - low)


ARROWS = {(True, True): "↗", (True, False): "↘", (False, True): "↖", (False, False): "↙"}


def _better(shown: Shown, i: int, j: int, x: Axis, y: Axis) -> list[Mark]:
    """Returns the word in the corner where both objectives are better."""
    right, above = shown.numbers[i].upward, shown.numbers[j].upward
    at, up = ((axis.limits or (0.0, 1.0))[end] for axis, end in ((x, right), (y, above)))
    arrow = ARROWS[right, above]
    text = f"better {arrow}" if right else f"{arrow} better"
    return [Words(at, up, text, "third", right=not right, above=not above)]


def _lines(shown: Shown) -> Panel:
    """Returns the panel with an axis for each objective, turned so that up is better."""
    told = np.concatenate([shown.values[shown.feasible], shown.front.mean])
    each = []
    for j, number in enumerate(shown.numbers):
        ends = shown.limits[j]
        heights, ticks = share_of(told[:, j], ends), share_ticks(ends)
        if j in shown.log:
            low, high = math.log(ends[0]), math.log(ends[1])
            heights = share_of(np.log(told[:, j]), (low, high))
            ticks = [((math.log(at) - low) / ((high - low) or 1.0), words) for at, words in log_ticks(*ends)]
        if not number.upward:
            heights, ticks = np.subtract(1.0, heights), [(1.0 - at, words) for at, words in ticks]
        each.append(LineAxis(number.name, heights, ticks))
    trials = [*compress(shown.others, shown.feasible), *shown.front.trials]
    hover = [shown.hover(trial, row, "") for trial, row in zip(trials, told.tolist(), strict=True)]
    first = len(trials) - len(shown.front.trials)
    found = line_panel(each, range(first, len(trials)), hover, title=UP, words=(ON, OTHERS), color="model")
    if shown.recommended is None:
        return found
    row = next(n for n in range(first, len(trials)) if trials[n].number == shown.recommended.number)
    way = [float(axis.heights[row]) for axis in each]
    chosen = Line(np.arange(float(len(each))), way, "best", "recommended", 2.4, hover=hover[row])
    return replace(found, marks=[*found.marks, chosen])
