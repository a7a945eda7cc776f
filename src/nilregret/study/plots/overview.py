"""The first picture of a study: how it went, which parameters matter, and the objective along the first three."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._utils.errors import InvalidInput
from ..importance import LITTLE
from ..study import Study
from .base import reward_label
from .drawing import draw
from .history import history_of, history_panels
from .importance import importance_panels
from .scene import Panel, Picture
from .slices import IN_A_ROW, slice_panels, slices_of
from .source import Source, centre_of, introduced, study_of, value_range

COLUMNS = 6


def overview(
    source: Source,
    path: str | Path | None = None,
    *,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns the first picture to look at: history, importance, and slices along the three most important parameters.

    A part that the study has no numbers for is left out. `history`, `importance` and `slices` explain the parts.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
    >>> result = nr.minimize(lambda x, y: 3 * x + y, space, trials=12, progress=False)
    >>> figure = nr.plots.overview(result)

    Args:
        source: a study or a result.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        range: lowest and highest value that is possible, such as (0, 1) for an accuracy.
        label: of the values. By default "reward", or "loss" if the goal is to minimise.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered.
    """
    study = study_of(source)
    limits = value_range(range, study)
    word = reward_label(study, label)
    above = history_panels(history_of(study), limits, word)
    beside, names = _importance(study)
    below = _slices(study, names, limits, word)
    wide = 4 if beside else COLUMNS
    panels = [panel.at(i, 0, 1 if len(above) > 1 else 2, wide) for i, panel in enumerate(above)]
    panels += [panel.at(0, 4, 2, 2) for panel in beside]
    each = COLUMNS // max(len(below), 1)
    panels += [panel.at(2, i * each, 1, each) for i, panel in enumerate(below)]
    best = centre_of(study)
    picture = Picture(
        panels=panels, heights=(2.4, 1.6, 3.0) if below else (2.4, 1.6), widths=[1.0] * COLUMNS,
        size=(10.5, 7.4 if below else 4.4), name=study.name, title=introduced(study, best), legend=True,
    )  # fmt: skip
    return draw(picture, path, interactive=interactive)


def _importance(study: Study) -> tuple[list[Panel], list[str] | None]:
    """Returns the panel of importance and the names by importance, or nothing if there is none."""
    try:
        found = study.importance()
    except InvalidInput:
        return [], None
    panel, _ = importance_panels(found, study)
    so_far = " so far" if found.explained < LITTLE else ""
    said = f"trials determine {found.explained:.0%}{so_far}"
    return [replace(panel, title=f"{panel.title}\n{said}")], [found.names[i] for i in found.order]


def _slices(study: Study, names: list[str] | None, limits: tuple[float, float] | None, word: str) -> list[Panel]:
    """Returns panels of the slices along the most important parameters."""
    through = centre_of(study)
    try:
        found = slices_of(study, through, None)
    except InvalidInput:
        return []
    place = {name: i for i, name in enumerate(names or [])}
    first = sorted(found, key=lambda one: place.get(one.axis.name, len(place)))[:IN_A_ROW]
    return slice_panels(first, study, through, limits, word)
