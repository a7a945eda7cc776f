"""The picture of pairs of parameters: the model of the objective and its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from .._utils.checks import Array, integer
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..domains.conditions import Mask
from ..domains.domain import Arms
from ..domains.parameters import Choice
from ..errors import InvalidInput
from ..storage.record import Trial
from ..study.best import without_violation
from ..study.function import Axis as ParameterAxis
from ..study.function import active_axes, agrees, axes, permitted, section, value_at
from ..study.importance import importance
from ..study.quantities import Quantity
from ..study.study import Study
from .along import Place, active_at, assumed, contexts_of, edges, faded, places, scale, seen_along
from .base import BAND_LABELS
from .curves_picture import stopped_marks, stopped_of
from .drawing import draw
from .scene import Axis, Boxes, Heat, Mark, Panel, Picture, Points
from .slices_picture import MOST_SEEN, name_of_unlikely, runs_of, unlikely
from .source import Source, chosen_axes, introduced, numbers_drawn, study_of, through_of
from .ticks import fenced

COUNT = 41  # Values of a real parameter.
MOST_SIDE = 120  # Values of a parameter of arms.
FEWEST = 0.5  # Share of the cells of a grid that must be arms.
NAMES = ("posterior median", "half of the central 68%")
Cells = tuple[list[Any], list[Any], Array, tuple[Any, Any]]  # Values of both sides, points `(n, d)`, rows and columns.
LEVELS = (0.15866, 0.84134)  # One standard deviation to either side, if the posterior is normal.


def contour(
    source: Source,
    path: str | Path | None = None,
    *,
    of: str | int | None = None,
    parameters: Sequence[str] | None = None,
    pairs: int = 2,
    through: Trial | int | None = None,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns a picture of the model over pairs of parameters, through the best trial, and of its uncertainty.

    The pairs are those that interact most (`study.importance().pairs`). The left panel shows the posterior median. The
    right panel shows half the width of the central 68% of the posterior. White points are trials, faded the less the
    model thinks that they say about the section. Stopped trials are open marks, and trials that violate constraints are
    crosses. The star is the best trial. Cells that are probably not feasible are hatched. Cells that break a known
    limit, or where a parameter is not active, are empty. Of a mixture, ingredients that are not drawn share the rest as
    they do at the trial.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
    >>> result = nr.minimize(lambda x, y: (x - y) ** 2 + x, space, trials=12, progress=False)
    >>> figure = nr.plots.contour(result, parameters=("x", "y"))

    Args:
        source: a study or a result. If the policy has contexts, the context is that of the best trial.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        of: name of an objective, number or text of a constraint, or name of a metric (see `slices`).
        parameters: names of two parameters, or None for the pairs that interact most.
        pairs: number of pairs, if no parameters are named. Of each, if there are several objectives.
        through: trial or its number, or None for the best one (see `slices`).
        range: lowest and highest value that is possible. No colour is beyond it.
        label: of the values. By default "reward", or "loss" if the goal is to minimise, or the name in `of`.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered, fewer than two parameters vary, or a name is unknown.
    """
    check_picture(path, interactive=interactive)
    study = study_of(source)
    drawn, count = numbers_drawn(study, of, range, label), integer("pairs", pairs, low=1)
    place = through_of(study, through, drawn[0].of)
    panels: list[Panel] = []
    for told, limits, word in drawn:
        for pair in _pairs(told, place, parameters, count):
            mean, spread = contour_panels(study, told, place, pair, word, limits)
            panels += [mean.at(len(panels) // 2, 0), spread.at(len(panels) // 2, 1)]
    rows = len(panels) // 2
    picture = Picture(
        panels=panels, heights=[1.0] * rows, widths=(1.0, 1.0), size=(8.6, 0.7 + 3.1 * rows),
        name=study.name, title=f"through {introduced(study, place)}",
        legend=any(isinstance(mark, Boxes | Points) and mark.label for panel in panels for mark in panel.marks),
    )  # fmt: skip
    return draw(picture, path, interactive=interactive)


def _pairs(
    of: Quantity, through: Trial, parameters: Sequence[str] | None, count: int
) -> list[tuple[ParameterAxis, ParameterAxis]]:
    offered = active_axes(of.study.policy.domain, through.point)
    if len(offered) < 2:
        raise InvalidInput(f"A contour needs two parameters that vary at the best trial, and there is {len(offered)}.")
    if parameters is not None:
        chosen = chosen_axes(offered, parameters, axes(of.study.policy.domain))
        if len(chosen) != 2 or chosen[0].name == chosen[1].name:
            raise InvalidInput(f"`parameters` must be two different names, not {parameters!r}.")
        return [(chosen[0], chosen[1])]
    known = {axis.name: axis for axis in offered}
    every = importance(of).pairs()
    return [(known[a], known[b]) for a, b in every if a in known and b in known][:count]


def contour_panels(
    study: Study, of: Quantity, through: Place, pair: tuple[ParameterAxis, ParameterAxis], word: str,
    limits: tuple[float, float] | None = None, *, count: int = COUNT,
) -> tuple[Panel, Panel]:  # fmt: skip
    """Returns the panel of the median and that of the uncertainty.

    Args:
        study: a study with a posterior.
        of: the number that is drawn.
        through: the trial or place that fixes the other parameters.
        pair: the two parameters.
        word: name of the values.
        limits: lowest and highest value, or None.
        count: values of a real parameter.

    Raises:
        InvalidInput: the arms lie on no grid over the two parameters.
    """
    cells = _of_arms(study, through, pair) if isinstance(study.policy.domain, Arms) else None
    across, up, points, at = cells or _of_grid(study, through, pair, count)
    contexts = contexts_of(through, len(points))
    names = NAMES
    if of.limited:
        band = of.band(points, through.context)
        middle, ends = band.mean, np.array([band.lower, band.upper])
        names = ("posterior mean", f"half the width of the {BAND_LABELS[band.band]}")
    else:
        middle, ends = of.function.median(points, contexts), of.function.quantiles(LEVELS, points, contexts)
    low, high = limits or fenced(middle, upward=of.upward)
    half = 0.5 * (np.clip(ends[1], low, high) - np.clip(ends[0], low, high)) if limits else 0.5 * (ends[1] - ends[0])
    median, spread = np.full((len(up), len(across)), np.nan), np.full((len(up), len(across)), np.nan)
    median[at], spread[at] = np.clip(middle, low, high), np.minimum(half, fenced(half, upward=False)[1])
    x, y = edges(pair[0], across), edges(pair[1], up)
    outside = np.zeros(median.shape, dtype=bool)
    outside[at] = unlikely(study, through, points)
    trials = _hatched(outside, x, y, name_of_unlikely(study)) + _trials(study, of, through, pair, (across, up))
    right, above = _wide_enough(scale(pair[0], across), x), _wide_enough(scale(pair[1], up), y)
    return (
        Panel(
            marks=[Heat(x, y, median, word), *trials],
            x=right,
            y=above,
            title="\n".join([names[0], *assumed(study, through, points)]),
        ),
        Panel(marks=[Heat(x, y, spread, names[1], True), *trials], x=right, y=above, title="uncertainty"),
    )


def _of_grid(study: Study, through: Place, pair: tuple[ParameterAxis, ParameterAxis], count: int) -> Cells:
    domain = study.policy.domain
    points = section(domain, through.point, [(axis, axis.parameter.values(count)) for axis in pair])
    across, up = (list(axis.parameter.values(count)) for axis in pair)
    kept = np.flatnonzero(permitted(domain, points) & active_at(domain, points, pair))
    if not len(kept):
        raise InvalidInput(
            f"No point keeps the known limits for {pair[0].name} and {pair[1].name} beside the other parameters of the "
            "trial, so there is no contour.",
            advice="Ingredients of a mixture of two determine each other: `nr.plots.slices` draws one.",
        )
    return across, up, points[kept], np.divmod(kept, len(across))


def _of_arms(study: Study, through: Place, pair: tuple[ParameterAxis, ParameterAxis]) -> Cells:
    """Returns the arms that agree with a place on all other parameters. At least half of the cells are arms."""
    domain = cast(Arms, study.policy.domain)
    points = domain.points[agrees(domain, domain.points, through.point, pair) & active_at(domain, domain.points, pair)]
    (across, columns), (up, rows) = (_side(domain, points, axis) for axis in pair)
    if min(len(across), len(up)) < 2 or len(points) < FEWEST * len(across) * len(up):
        raise InvalidInput(
            f"The arms are no grid over {pair[0].name} and {pair[1].name}, so there is no contour.",
            advice="Grids have one, for example `Space(...).grid(9)`.",
        )
    return across, up, points, (rows, columns)


def _side(domain: Arms, points: Array, axis: ParameterAxis) -> tuple[list[Any], Any]:
    """Returns the values along a parameter, none of them if there are too many, and the index of each point's value."""
    if isinstance(axis.parameter, Choice):
        return list(axis.parameter.options), points[:, axis.columns].argmax(axis=1)
    present, first, where = np.unique(
        np.round(points[:, axis.columns.start], 12), return_index=True, return_inverse=True
    )
    values = [] if len(present) > MOST_SIDE else [value_at(domain, points[i], axis) for i in first.tolist()]
    return values, where


def _wide_enough(axis: Axis, sides: Array) -> Axis:
    """Returns an axis that holds all cells."""
    low, high = axis.limits or (float(sides[0]), float(sides[-1]))
    return replace(axis, limits=(min(low, float(sides[0])), max(high, float(sides[-1]))))


def _hatched(chosen: Mask, x: Array, y: Array, label: str) -> list[Mark]:
    """Returns hatched boxes over the chosen cells `(m, k)`, between sides `(k + 1,)` and `(m + 1,)`."""
    found = [(*run, y[i], y[i + 1]) for i, row in enumerate(chosen) for run in runs_of(row, x)]
    if not found:
        return []
    left, right, low, high = np.array(found).T
    return [Boxes(left, right, low, high, "failed", label, 0.8, hatched=True)]


def _trials(
    study: Study, of: Quantity, through: Place, axes: tuple[ParameterAxis, ParameterAxis],
    options: tuple[Sequence[Any], Sequence[Any]],
) -> list[Mark]:  # fmt: skip
    seen = seen_along(study, of.function, through, axes, of.trials[-MOST_SEEN:])
    x, y = (places(axis, values, known) for axis, values, known in zip(axes, seen.values, options, strict=True))
    hover = [f"trial {trial.number}: {numeral(of.told(trial) or 0.0)}" for trial in seen.trials]
    kept = {trial.number for trial in without_violation(study.policy, seen.trials)}
    violates = np.array([trial.number not in kept for trial in seen.trials], dtype=bool)
    marks: list[Mark] = []
    for chosen, word, shape, size in ((~violates, "", "o", 3.5), (violates, ", not feasible", "x", 4.0)):
        if chosen.any() or not word:
            words = [f"{hover[i]}{word}" for i in np.flatnonzero(chosen)]
            marks.append(Points(x[chosen], y[chosen], "#ffffff", "", shape, size, faded(seen.close)[chosen], words))
    early = seen_along(study, of.function, through, axes, stopped_of(of))
    x, y = (places(axis, values, known) for axis, values, known in zip(axes, early.values, options, strict=True))
    marks += stopped_marks(early.trials, x, y=y, color="#ffffff", label="", opacity=faded(early.close))
    here = [[value_at(study.policy.domain, through.point, axis)] for axis in axes]
    x, y = (places(axis, value, known) for axis, value, known in zip(axes, here, options, strict=True))
    return [*marks, Points(x, y, "best", shape="*", size=11.0)] if np.isfinite([*x, *y]).all() else marks
