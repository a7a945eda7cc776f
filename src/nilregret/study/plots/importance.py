"""The picture of which parameters matter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..importance import Importance, Indices
from ..study import Study
from .along import shortened
from .drawing import draw
from .scene import Axis, Boxes, Line, Mark, Panel, Picture
from .source import Source, study_of

THICK = 0.36  # Half the height of a bar.


def importance(source: Source, path: str | Path | None = None, *, interactive: bool = False) -> Any:
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
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: fewer than two trials were answered, only one thing varies, or the policy has no posterior.
    """
    study = study_of(source)
    found = study.importance()
    left, right = importance_panels(found, study)
    picture = Picture(
        panels=[left, right.at(0, 1)], widths=(1.0, 1.0), size=(7.2, 1.7 + 0.32 * len(found.names)),
        name=study.name, title=found.certainty, legend=True,
    )  # fmt: skip
    return draw(picture, path, interactive=interactive)


def importance_panels(found: Importance, study: Study) -> tuple[Panel, Panel]:
    """Returns the panel of the value, and that of the best tenth."""
    word = "reward" if study.goal == "maximize" else "loss"
    names = [(float(row), found.names[i]) for row, i in enumerate(found.order[::-1])]
    value = _panel(found.value, found, names, f"What moves the {word}:\n{leaders(found.value, found.names)}")
    best = _panel(found.best, found, [], f"What decides the best tenth:\n{leaders(found.best, found.names)}")
    return value, best


def leaders(indices: Indices, names: Sequence[str]) -> str:
    """Returns the parameters that matter most, in words."""
    if not indices.leaders:
        return "nothing so far"
    short = [shortened(names[i]) for i in indices.named]
    if not short:
        return "no single parameter"
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
