"""The first picture of a study: how it went, which parameters matter, and the objective along the first three."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.files import check_picture
from ..errors import InvalidInput
from ..study.importance import LITTLE, MENTIONED, Importance, Indices
from ..study.importance import importance as importance_of
from ..study.quantities import Quantity, drawn, objectives
from ..study.study import Study
from .along import shortened
from .drawing import draw
from .front_picture import front_panels, front_title
from .history_picture import panels_of, volume_panel
from .scene import Axis, Boxes, Line, Mark, Panel, Picture
from .slices_picture import IN_A_ROW, slice_panels, slices_of
from .source import Source, answered_of, centre_of, introduced, numbers_drawn, study_of

THICK = 0.36  # Half the height of a bar.


def importance(
    source: Source, path: str | Path | None = None, *, of: str | int | None = None, interactive: bool = False
) -> Any:
    """Returns a picture of which parameters matter, for the value and for being among the best tenth of the space.

    The dark bar is the share of the variation that a parameter causes alone (first-order Sobol index). The pale bar
    adds its interactions (total index). Lines are 90% intervals of the total. `study.importance()` returns the numbers.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
    >>> result = nr.minimize(lambda x, y: 3 * x + y, space, trials=12, progress=False)
    >>> figure = nr.plots.importance(result)

    Args:
        source: a study or a result.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        of: name of an objective, number or text of a constraint, or name of a metric (see `slices`). The right panel is
            about satisfying a constraint, or being among the highest tenth of a metric.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: fewer than two trials were answered, only one thing varies, or the policy has no posterior.
    """
    check_picture(path, interactive=interactive)
    study = study_of(source)
    numbers = drawn(study, of)
    each, rows, panels = [importance_of(told) for told in numbers], len(numbers), list[Panel]()
    for row, (found, told) in enumerate(zip(each, numbers, strict=True)):
        value, best = importance_panels(found, told)
        value = value if rows == 1 else _with_certainty(value, found)
        panels += [value.at(row, 0), best.at(row, 1)]
    picture = Picture(
        panels=panels, heights=[1.0] * rows, widths=(1.0, 1.0),
        size=(7.2, 0.7 * rows + 1.0 + 0.32 * rows * len(each[0].names)),
        name=study.name, title=each[0].certainty if rows == 1 else "", legend=True,
    )  # fmt: skip
    return draw(picture, path, interactive=interactive)


def deciding(of: Quantity) -> str:
    """Returns what the second panel is about, in words."""
    return "whether it is satisfied" if of.limited else "the highest tenth" if of.channel is None else "the best tenth"


def importance_panels(found: Importance, of: Quantity) -> tuple[Panel, Panel]:
    """Returns the panel of the value, and that of the best tenth, or of satisfying a constraint."""
    word = f"the {of.name}" if of.objective else shortened(of.name)
    names = [(float(row), found.names[i]) for row, i in enumerate(found.order[::-1])]
    value = _panel(found.value, found, names, f"What moves {word}:\n{leaders(found.value, found)}")
    best = _panel(found.best, found, [], f"What decides {deciding(of)}:\n{leaders(found.best, found)}")
    return value, best


def leaders(indices: Indices, found: Importance) -> str:
    """Returns the parameters that matter most, in words."""
    if not indices.leaders:
        return "nothing so far"
    if found.explained < MENTIONED:
        return "too early to say"
    short = [shortened(found.names[i]) for i in indices.named]
    if not short:
        return "more than three alike"
    return f"{short[0]} most" if len(short) == 1 else " and ".join([", ".join(short[:-1]), short[-1]])


def _panel(indices: Indices, found: Importance, names: list[tuple[float, str]], title: str) -> Panel:
    order, rows = found.order[::-1], np.arange(len(found.names), dtype=np.float64)
    first, total = indices.first[order], indices.total[order]
    low, high = indices.total_interval[:, order]
    hover = [
        f"{found.names[i]}: alone {a:.2f}, total {b:.2f} ({c:.2f} to {d:.2f})"
        for i, a, b, c, d in zip(order, first, total, low, high, strict=True)
    ]
    zero = np.zeros(len(rows))
    marks: list[Mark] = [
        Boxes(zero, total, rows - THICK, rows + THICK, "model", "with interactions", 0.35, hover=hover),
        Boxes(zero, first, rows - THICK, rows + THICK, "model", "alone", 1.0, hover=hover),
    ]
    if total.any():  # Where nothing varies, an interval would say that something may.
        ends = np.column_stack([low, high, np.full(len(rows), np.nan)]).ravel()
        marks.append(Line(ends, np.repeat(rows, 3), "text", "90% interval of the total", 1.2))
    share = [(tick, f"{tick:.0%}") for tick in (0.0, 0.25, 0.5, 0.75, 1.0)]
    ticks = names or [(row, "") for row in rows.tolist()]
    limits = (-0.6, len(rows) - 0.4)
    return Panel(
        marks=marks, x=Axis(label="share of the variation", limits=(0.0, 1.02), ticks=share),
        y=Axis(limits=limits, ticks=ticks, grid=False), title=title,
    )  # fmt: skip


COLUMNS = 6


def overview(
    source: Source,
    path: str | Path | None = None,
    *,
    of: str | int | None = None,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns the first picture to look at: history, importance, and slices along the three most important parameters.

    A part that the study has no numbers for is left out. `history`, `importance` and `slices` explain the parts. Of
    several objectives, it is the front, the volume over trials, and the importance for each (see `front`).

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
    >>> result = nr.minimize(lambda x, y: 3 * x + y, space, trials=12, progress=False)
    >>> figure = nr.plots.overview(result)

    Args:
        source: a study or a result.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        of: name of an objective, number or text of a constraint, or name of a metric (see `slices`).
        range: lowest and highest value that is possible, such as (0, 1) for an accuracy.
        label: of the values. By default "reward", or "loss" if the goal is to minimise, or the name in `of`.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered.
    """
    check_picture(path, interactive=interactive)
    study = study_of(source)
    numbers = numbers_drawn(study, of, range, label)
    if len(numbers) > 1:
        return draw(_of_front(study), path, interactive=interactive)
    told, limits, word = numbers[0]
    above = panels_of(told, limits, word)
    beside, names = _importance(told)
    below = _slices(told, names, limits, word)
    wide = 4 if beside else COLUMNS
    panels = [panel.at(i, 0, 1 if len(above) > 1 else 2, wide) for i, panel in enumerate(above)]
    panels += [panel.at(0, 4, 2, 2) for panel in beside]
    each = COLUMNS // max(len(below), 1)
    panels += [panel.at(2, i * each, 1, each) for i, panel in enumerate(below)]
    best = centre_of(study, told)
    picture = Picture(
        panels=panels, heights=(2.4, 1.6, 3.0) if below else (2.4, 1.6), widths=[1.0] * COLUMNS,
        size=(10.5, 7.4 if below else 4.4), name=study.name, title=introduced(study, best), legend=True,
    )  # fmt: skip
    return draw(picture, path, interactive=interactive)


def _of_front(study: Study) -> Picture:
    """Returns the front beside the volume over trials, above the importance for each objective."""
    answered_of(study)
    found = study.front_values()
    fronts = front_panels(study, found)[:1] if len(study.goals) == 2 else [front_panels(study, found)[-1]]
    beside = [panel for number in objectives(study) for panel in _importance(number)[0]]
    panels = [fronts[0].at(0, 0, 1, 4), volume_panel(study, found).at(0, 4, 1, 2)]
    count = min(max(len(beside), 1), 3)
    panels += [panel.at(1 + i // count, COLUMNS // count * (i % count), 1, COLUMNS // count)
               for i, panel in enumerate(beside)]  # fmt: skip
    rows = -(-len(beside) // count)
    return Picture(
        panels=panels, heights=(3.4, *[2.2] * rows), widths=[1.0] * COLUMNS, size=(10.5, 4.6 + 2.8 * rows),
        name=study.name, title=front_title(study, found), legend=True,
    )  # fmt: skip


def _importance(of: Quantity) -> tuple[list[Panel], list[str] | None]:
    """Returns the panel of importance and the names by importance, or nothing if there is none."""
    try:
        found = importance_of(of)
    except InvalidInput:
        return [], None
    return [_with_certainty(importance_panels(found, of)[0], found)], [found.names[i] for i in found.order]


def _with_certainty(panel: Panel, found: Importance) -> Panel:
    """Returns a panel of importance whose title says how much the trials determine."""
    so_far = " so far" if found.explained < LITTLE else ""
    noise = f", noise {found.noise:.0%}" * (found.noise >= MENTIONED)
    return replace(panel, title=f"{panel.title}\ntrials determine {found.explained:.0%}{so_far}{noise}")


def _slices(of: Quantity, names: list[str] | None, limits: tuple[float, float] | None, word: str) -> list[Panel]:
    """Returns panels of the slices along the most important parameters."""
    study = of.study
    through = centre_of(study, of)
    try:
        found = slices_of(study, through, None, of=of)
    except InvalidInput:
        return []
    place = {name: i for i, name in enumerate(names or [])}
    first = sorted(found, key=lambda one: place.get(one.axis.name, len(place)))[:IN_A_ROW]
    return slice_panels(first, study, through, limits, word, of=of)
