"""The picture of pairs of parameters: the model of the objective and its uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .._utils.checks import integer
from .._utils.numerals import numeral
from ..errors import InvalidInput
from ..storage.record import Trial
from ..study.function import Axis as ParameterAxis
from ..study.function import Function, active_axes, line_through
from ..study.study import Study
from .along import contexts_of, edges, faded, places, scale, seen_along, settled
from .base import reward_label
from .drawing import draw
from .scene import Heat, Mark, Panel, Picture, Points
from .source import Source, centre_of, chosen_axes, function_of, introduced, study_of, value_range
from .ticks import fenced

COUNT = 41  # Values of a real parameter.
LEVELS = (0.15866, 0.84134)  # One standard deviation to either side, if the posterior is normal.


def contour(
    source: Source,
    path: str | Path | None = None,
    *,
    parameters: Sequence[str] | None = None,
    pairs: int = 2,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns a picture of the model over pairs of parameters, through the best trial, and of its uncertainty.

    The pairs are those that interact most (`study.importance().pairs`). The left panel shows the posterior median. The
    right panel shows half the width of the central 68% of the posterior. White points are trials, faded the less the
    model thinks that they say about the section. The star is the best trial.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
    >>> result = nr.minimize(lambda x, y: (x - y) ** 2 + x, space, trials=12, progress=False)
    >>> figure = nr.plots.contour(result, parameters=("x", "y"))

    Args:
        source: a study or a result. If the policy has contexts, the context is that of the best trial.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        parameters: names of two parameters, or None for the pairs that interact most.
        pairs: number of pairs, if no parameters are named.
        range: lowest and highest value that is possible. No colour is beyond it.
        label: of the values. By default "reward", or "loss" if the goal is to minimise.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered, fewer than two parameters vary, or a name is unknown.
    """
    study = study_of(source)
    limits = value_range(range, study)
    through, word = centre_of(study), reward_label(study, label)
    function = function_of(study)
    drawn = _pairs(study, through, parameters, integer("pairs", pairs, low=1))
    panels: list[Panel] = []
    for row, (first, second) in enumerate(drawn):
        mean, spread = _panels(study, function, through, first, second, word, limits)
        panels += [mean.at(row, 0), spread.at(row, 1)]
    picture = Picture(
        panels=panels, heights=[1.0] * len(drawn), widths=(1.0, 1.0), size=(8.6, 0.7 + 3.1 * len(drawn)),
        name=study.name, title=f"through {introduced(study, through)}",
    )  # fmt: skip
    return draw(picture, path, interactive=interactive)


def _pairs(
    study: Study, through: Trial, parameters: Sequence[str] | None, count: int
) -> list[tuple[ParameterAxis, ParameterAxis]]:
    offered = active_axes(study.policy.domain, through.point)
    if len(offered) < 2:
        raise InvalidInput(f"A contour needs two parameters that vary at the best trial, and there is {len(offered)}.")
    if parameters is not None:
        chosen = chosen_axes(offered, parameters)
        if len(chosen) != 2 or chosen[0].name == chosen[1].name:
            raise InvalidInput(f"`parameters` must be two different names, not {parameters!r}.")
        return [(chosen[0], chosen[1])]
    known = {axis.name: axis for axis in offered}
    every = study.importance().pairs()
    return [(known[a], known[b]) for a, b in every if a in known and b in known][:count]


def _panels(
    study: Study, function: Function, through: Trial, first: ParameterAxis, second: ParameterAxis, word: str,
    limits: tuple[float, float] | None,
) -> tuple[Panel, Panel]:  # fmt: skip
    """Returns the panels of the median and of the uncertainty."""
    domain = study.policy.domain
    (across, left), (up, right) = (line_through(domain, through.point, axis, count=COUNT) for axis in (first, second))
    points = np.repeat(through.point[None], len(across) * len(up), axis=0)
    points[:, first.columns] = np.tile(left[:, first.columns], (len(up), 1))
    points[:, second.columns] = np.repeat(right[:, second.columns], len(across), axis=0)
    points, shape = settled(domain, points), (len(up), len(across))
    contexts = contexts_of(through, len(points))
    try:
        median, ends = function.median(points, contexts), function.quantiles(LEVELS, points, contexts)
    except InvalidInput as error:
        raise InvalidInput(
            f"The arms are no full grid over {first.name} and {second.name}, so there is no contour.",
            advice="Grids have one, for example `Space(...).grid(9)`.",
        ) from error
    low, high = limits or fenced(median, upward=study.goal == "maximize")
    half = 0.5 * (np.clip(ends[1], low, high) - np.clip(ends[0], low, high)) if limits else 0.5 * (ends[1] - ends[0])
    x, y = edges(first, across), edges(second, up)
    trials = _trials(study, function, through, (first, second), (across, up))
    of = (
        scale(
            first,
            across,
        ),
        scale(second, up),
    )
    mean = Heat(x, y, np.clip(median, low, high).reshape(shape), word)
    spread = Heat(x, y, np.minimum(half, fenced(half, upward=False)[1]).reshape(shape), "half of the central 68%", True)
    return (
        Panel(marks=[mean, *trials], x=of[0], y=of[1], title="posterior median"),
        Panel(marks=[spread, *trials], x=of[0], y=of[1], title="uncertainty"),
    )


def _trials(
    study: Study, function: Function, through: Trial, axes: tuple[ParameterAxis, ParameterAxis],
    options: tuple[Sequence[Any], Sequence[Any]],
) -> list[Mark]:  # fmt: skip
    seen = seen_along(study, function, through, axes)
    x, y = (places(axis, values, known) for axis, values, known in zip(axes, seen.values, options, strict=True))
    hover = [f"trial {trial.number}: {numeral(trial.reward or 0.0)}" for trial in seen.trials]
    marks: list[Mark] = [Points(x, y, "#ffffff", size=3.5, opacity=faded(seen.close), hover=hover)]
    mine = [i for i, trial in enumerate(seen.trials) if trial.number == through.number]
    return [*marks, Points(x[mine], y[mine], "best", shape="*", size=11.0)] if mine else marks
