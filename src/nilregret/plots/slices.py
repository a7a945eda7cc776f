"""The picture of the objective along each parameter, through the best trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from .._utils.checks import Array
from .._utils.numerals import numeral
from ..domains.parameters import Choice, Int
from ..errors import InvalidInput
from ..storage.record import Trial
from ..study.best import without_violation
from ..study.direction import has_channels, on_average
from ..study.function import Axis as ParameterAxis
from ..study.function import Function, active_axes, line_through, value_at
from ..study.study import Study
from .along import MOST_OPTIONS, Seen, contexts_of, edges, faded, is_active, places, scale, seen_along
from .base import reward_label
from .drawing import draw
from .scene import Axis, Band, Boxes, Line, Mark, Panel, Picture, Points
from .source import Source, centre_of, chosen_axes, function_of, introduced, standing, study_of, value_range
from .ticks import fenced, padded

IN_A_ROW = 3
COUNT = 81  # Points along a real parameter.
LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
BANDS = ((0, "95% of the posterior", 0.14), (1, "80%", 0.31), (2, "50%", 0.53))
GAP = 0.15  # Share of an axis without any trial of which the middle is hatched.
MARGIN = 0.05  # Share of an axis beside a trial that is not.
LIKELY = 0.5  # Probability of being feasible below which a stretch is shaded.
MOST_BARS = 30  # Whole numbers that are drawn one by one.
HALF = 0.38  # Half the width of a bar.


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Slice:
    """The objective along one parameter through a trial, in the units told.

    Attributes:
        axis: the parameter.
        values: its values, n of them. Of a choice with many options, the best ones.
        left_out: number of options that are not shown.
        quantiles: of the posterior at these values, `(7, n)`, for `LEVELS`.
        seen: all answered trials in which the parameter is active.
        untried: stretches of the axis that no trial is near, pairs of places.
        infeasible: stretches that are feasible with a probability below 1/2.
    """

    axis: ParameterAxis
    values: Sequence[Any]
    left_out: int
    quantiles: Array
    seen: Seen
    untried: Sequence[tuple[float, float]]
    infeasible: Sequence[tuple[float, float]] = ()


def slices(
    source: Source,
    path: str | Path | None = None,
    *,
    parameters: Sequence[str] | None = None,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns a picture of the objective along each parameter, through the best trial.

    Bands hold 50%, 80% and 95% of the posterior of the objective without noise. All answered trials are drawn at their
    value of the parameter, as crosses if they violate a constraint. A trial fades the less the model thinks that it
    says about the slice. No trial is near where the panel is hatched, neither an answered one nor one that failed or is
    pending. The probability of satisfying the constraints is below 1/2 where it is shaded. All panels have one scale. A
    parameter that is not active at the best trial has no slice.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 0.3) ** 2, nr.Space(x=nr.Float(0, 1)), trials=8, progress=False)
    >>> figure = nr.plots.slices(result)

    Args:
        source: a study or a result. If the policy has contexts, the context is that of the best trial.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        parameters: names of those to draw, or None for all.
        range: lowest and highest value that is possible, such as (0, 1) for an accuracy. No band leaves it.
        label: of the values. By default "reward", or "loss" if the goal is to minimise.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered, the policy has no posterior, or a name is unknown.
    """
    study = study_of(source)
    limits = value_range(range, study)
    through = centre_of(study)
    found = slices_of(study, through, parameters)
    panels = slice_panels(found, study, through, limits, reward_label(study, label))
    rows, columns = -(-len(panels) // IN_A_ROW), min(len(panels), IN_A_ROW)
    picture = Picture(
        panels=[panel.at(*divmod(i, IN_A_ROW)) for i, panel in enumerate(panels)],
        heights=[1.0] * rows, widths=[1.0] * columns, size=(0.8 + 3.1 * columns, 1.0 + 2.5 * rows),
        name=study.name, title=f"through {introduced(study, through)}", legend=True,
    )  # fmt: skip
    return draw(picture, path, interactive=interactive)


def slices_of(study: Study, through: Trial, parameters: Sequence[str] | None) -> list[Slice]:
    """Returns a slice for each parameter, or for those of these names.

    Raises:
        InvalidInput: there is no such parameter, or none has several values.
    """
    domain, function = study.policy.domain, function_of(study)
    lines = [
        (axis, *line_through(domain, through.point, axis, count=COUNT)) for axis in active_axes(domain, through.point)
    ]
    several = {axis.name: (values, points) for axis, values, points in lines if len(points) > 1}
    if not several:
        raise InvalidInput(
            "No arm differs from the best one in one coordinate only, so there is nothing to draw along.",
            advice="Grids have such arms, for example `Space(...).grid(9)`.",
        )
    axes = chosen_axes([axis for axis, *_ in lines if axis.name in several], parameters)
    return [_slice(study, function, through, axis, *several[axis.name]) for axis in axes]


def _slice(
    study: Study, function: Function, through: Trial, axis: ParameterAxis, values: Sequence[Any], points: Array
) -> Slice:
    found = function.quantiles(LEVELS, points, contexts_of(through, len(points)))
    seen = seen_along(study, function, through, [axis])
    shown = _shown(axis, found, upward=study.goal == "maximize")
    values = [values[i] for i in shown]
    domain = study.policy.domain
    asked = [value_at(domain, trial.point, axis) for trial in study.trials if is_active(domain, trial.point, axis)]
    return Slice(
        axis=axis, values=values, left_out=len(points) - len(shown), quantiles=found[:, shown], seen=seen,
        untried=_untried(axis, values, asked), infeasible=_infeasible(study, through, axis, values, points[shown]),
    )  # fmt: skip


def _shown(axis: ParameterAxis, found: Array, *, upward: bool) -> list[int]:
    """Returns the columns to draw: all, or the options with the best medians, the best first."""
    count = found.shape[1]
    if not isinstance(axis.parameter, Choice) or count <= MOST_OPTIONS:
        return list(range(count))
    best: list[int] = np.argsort(-found[3] if upward else found[3], kind="stable")[:MOST_OPTIONS].tolist()
    return best


def _untried(axis: ParameterAxis, values: Sequence[Any], tried: Sequence[Any]) -> list[tuple[float, float]]:
    parameter = axis.parameter
    if _by_bars(axis):
        missing = [i for i, value in enumerate(values) if not any(type(t) is type(value) and t == value for t in tried)]
        at = places(axis, values, values)
        return [(float(at[i]) - 0.5, float(at[i]) + 0.5) for i in missing]
    if isinstance(parameter, Choice):
        return []
    near = np.unique([parameter.position(value) for value in tried])
    lows, highs = np.append(0.0, near + MARGIN), np.append(near - MARGIN, 1.0)
    wide = np.diff([0.0, *near, 1.0]) > GAP
    ends = zip(lows[wide].tolist(), highs[wide].tolist(), strict=True)
    return [(_at(parameter, low), _at(parameter, high)) for low, high in ends]


def _infeasible(
    study: Study, through: Trial, axis: ParameterAxis, values: Sequence[Any], points: Array
) -> list[tuple[float, float]]:
    """Returns stretches around values whose points, `(n, d)`, are probably not feasible."""
    if not has_channels(study.policy) or on_average(study.policy):
        return []
    probable = study.feasible(points, context=through.context) >= LIKELY
    changes = np.flatnonzero(np.diff(np.concatenate([[1], probable, [1]])))
    at = edges(axis, values)[changes].reshape(-1, 2)
    return [(low, high) for low, high in at.tolist()]


def _at(parameter: Any, share: float) -> float:
    low, high = float(parameter.low), float(parameter.high)
    return low * (high / low) ** share if parameter.log else low + share * (high - low)


def _by_bars(axis: ParameterAxis) -> bool:
    """Returns whether values are drawn one by one."""
    parameter = axis.parameter
    if isinstance(parameter, Choice):
        return True
    return isinstance(parameter, Int) and parameter.count <= MOST_BARS and not parameter.log


def slice_panels(
    found: Sequence[Slice], study: Study, through: Trial, limits: tuple[float, float] | None, label: str
) -> list[Panel]:
    """Returns a panel for each slice, all on one scale."""
    told = np.array([trial.reward for trial in study.trials if trial.reward is not None], dtype=np.float64)
    room = padded(limits) if limits else padded(fenced(told, upward=study.goal == "maximize"), 0.15)
    low, high = limits or (-np.inf, np.inf)
    feasible = {trial.number for trial in without_violation(study.policy, study.trials)}
    called = standing(study, through) if study.policy.context is None else f"trial {through.number}"
    panels = []
    for i, one in enumerate(found):
        x = scale(one.axis, one.values)
        marks = _model(one, low, high) + _trials(one, room, through, called, feasible)
        note = f"best {len(one.values)} of {len(one.values) + one.left_out}" if one.left_out else ""
        y = Axis(label="" if i % IN_A_ROW else label, limits=room)
        panels.append(Panel(marks=marks, x=x, y=y, title=note))
    return panels


def _model(one: Slice, low: float, high: float) -> list[Mark]:
    """Returns the hatching, the bands and the median."""
    at, inside = places(one.axis, one.values, one.values), np.clip(one.quantiles, low, high)
    marks: list[Mark] = []
    if len(one.infeasible):
        starts, stops = np.array(one.infeasible).T
        marks.append(Boxes(starts, stops, None, None, "failed", "probably not feasible", 0.2))
    if len(one.untried):
        starts, stops = np.array(one.untried).T
        marks.append(Boxes(starts, stops, None, None, "observed", "no trial near", 0.35, hatched=True))
    for i, label, opacity in BANDS:  # Each leaves out the next one, so that the legend has the colours of the panel.
        for low_end, high_end in ((i, i + 1), (-2 - i, -1 - i)):
            ends = inside[low_end], inside[high_end]
            if _by_bars(one.axis):
                marks.append(Boxes(at - HALF, at + HALF, *ends, "model", label, opacity))
            else:
                marks.append(Band(at, *ends, "model", label, opacity))
    if _by_bars(one.axis):
        x = np.column_stack([at - HALF, at + HALF, np.full(len(at), np.nan)]).ravel()
        marks.append(Line(x, np.repeat(inside[3], 3), "model", "median"))
    else:
        marks.append(Line(at, inside[3], "model", "median"))
    return marks


def _trials(
    one: Slice, room: tuple[float, float], through: Trial, called: str, feasible: set[int]
) -> list[Mark]:  # fmt: skip
    """Returns all trials, faded by their distance from the slice. Outliers are at the edge."""
    seen = one.seen
    x, told = places(one.axis, seen.values[0], one.values), [trial.reward or 0.0 for trial in seen.trials]
    y, opacity = np.array(told, dtype=np.float64), faded(seen.close)
    hover = [f"trial {trial.number}: {numeral(value)}" for trial, value in zip(seen.trials, y, strict=True)]
    marks: list[Mark] = []
    drawn, violates = np.isfinite(x), np.array([trial.number not in feasible for trial in seen.trials], dtype=bool)
    within = drawn & (y >= room[0]) & (y <= room[1])
    for chosen, shape, heights, label in (
        (within & ~violates, "o", y, "trials, faded by distance"),
        (within & violates, "x", y, "not feasible"),
        (drawn & (y < room[0]), "v", np.full(len(y), room[0]), ""),
        (drawn & (y > room[1]), "^", np.full(len(y), room[1]), ""),
    ):
        if chosen.any():
            words = [hover[i] for i in np.flatnonzero(chosen)]
            marks.append(Points(x[chosen], heights[chosen], "text", label, shape, 4.0, opacity[chosen], words))
    mine = [i for i, trial in enumerate(seen.trials) if trial.number == through.number]
    if mine and np.isfinite(x[mine[0]]) and through.reward is not None:
        marks.append(Points(x[mine], [through.reward], "best", called, "*", 10.0))
    return marks
