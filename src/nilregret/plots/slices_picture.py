"""The picture of the objective along each parameter, through the best trial."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np

from .._utils.checks import Array
from .._utils.dataclass import dataclass, replace
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..domains.conditions import Mask
from ..domains.domain import Arms
from ..domains.parameters import Choice, Int
from ..errors import InvalidInput
from ..storage.record import Trial
from ..study.best import without_violation
from ..study.direction import has_channels, on_average
from ..study.explanation import PosteriorBand
from ..study.function import Axis as ParameterAxis
from ..study.function import active_axes, line_through, value_at
from ..study.function import axes as every
from ..study.quantities import Quantity, quantity
from ..study.study import Study
from ..study.waiting import counted_from
from .along import MOST_OPTIONS, Place, Seen, assumed, contexts_of, edges, faded, places, scale, seen_along, tried_along
from .base import BAND_LABELS
from .curves_picture import stopped_marks, stopped_of
from .drawing import draw
from .scene import Axis, Band, Boxes, Line, Mark, Panel, Picture, Points
from .source import Source, chosen_axes, has_single_best, introduced, numbers_drawn, standing, study_of, through_of
from .ticks import beyond, fenced, padded

IN_A_ROW = 3
COUNT = 81  # Points along a real parameter.
LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
BANDS = ((0, "95% of the posterior", 0.14), (1, "80%", 0.31), (2, "50%", 0.53))
GAP = 0.15  # Share of an axis without any trial of which the middle is hatched.
MARGIN = 0.05  # Share of an axis beside a trial that is not.
LIKELY = 0.5  # Probability of being feasible below which a stretch is shaded.
MOST_BARS = 30  # Whole numbers that are drawn one by one.
HALF = 0.38  # Half the width of a bar.
MOST_SEEN = 600  # Trials that are drawn, the latest. Of more, bars count how often each place was asked for.
BINS, TALLEST = 50, 0.2  # Bars of counts, and the share of the height that the tallest has.


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Slice:
    """The objective along one parameter through a trial, in the units told.

    Attributes:
        axis: the parameter.
        values: its values, n of them. Of a choice with many options, the best ones.
        left_out: number of options that are not shown.
        assumed: the values of parameters that are active at some of the values only, in words, or none.
        quantiles: of the posterior at these values, `(7, n)`, for `LEVELS`. None for a constraint.
        band: posterior mean and bounds at these values.
        seen: answered trials in which the parameter is active, at most the latest 600.
        stopped: likewise the stopped trials, evenly spread.
        since: number of the first trial that the memory has not forgotten.
        tried: places that were asked for and the number of trials of each, `(k,)` both.
        untried: stretches of the axis that no trial is near, pairs of places.
        infeasible: stretches that are feasible with a probability below 1/2, or not certified by slopes.
        unlikely: the name of these stretches.
    """

    axis: ParameterAxis
    values: Sequence[Any]
    left_out: int
    assumed: Sequence[str]
    quantiles: Array | None
    band: PosteriorBand
    seen: Seen
    stopped: Seen
    since: int
    tried: tuple[Array, Array]
    untried: Sequence[tuple[float, float]]
    infeasible: Sequence[tuple[float, float]] = ()
    unlikely: str = "probably not feasible"

    @property
    def middle(self) -> Array:
        """Posterior median of the reward, or posterior mean of a constraint, `(n,)`."""
        return self.band.mean if self.quantiles is None else np.asarray(self.quantiles[len(LEVELS) // 2])


def slices(
    source: Source,
    path: str | Path | None = None,
    *,
    of: str | int | None = None,
    parameters: Sequence[str] | None = None,
    through: Trial | int | None = None,
    range: tuple[float, float] | None = None,  # noqa: A002 - the field's word
    label: str | None = None,
    interactive: bool = False,
) -> Any:
    """Returns a picture of the objective along each parameter, through the best trial.

    Bands hold 50%, 80% and 95% of the posterior of the objective without noise. Dashed lines are the confidence bounds
    of a policy that proves them. All answered trials are drawn at their value of the parameter, the latest 600 of more,
    as crosses if they violate a constraint. Stopped trials are open marks at their last value. A trial fades the less
    the model thinks that it says about the slice. No trial is near where the panel is hatched, neither an answered one
    nor one that failed or is pending. The probability of satisfying the constraints is below 1/2 where it is shaded.
    All panels have one scale. A slice ends where a known limit begins. Along an ingredient of a mixture, the others
    share the rest as they do at the trial. A parameter that is not active at the best trial has no slice. Several
    objectives have rows of their own.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 0.3) ** 2, nr.Space(x=nr.Float(0, 1)), trials=8, progress=False)
    >>> figure = nr.plots.slices(result)

    Args:
        source: a study or a result. If the policy has contexts, the context is that of the best trial.
        path: of a PNG, PDF or SVG, or of an HTML page if interactive. None saves nothing.
        of: name of an objective, number or text of a constraint, or name of a metric. Metrics have no model in the
            study, so one with the same kernel is fitted. It is not recorded. None for the reward, or all objectives.
        parameters: names of those to draw, or None for all.
        through: trial or its number. None for the best one, of several objectives the best of the first in the picture.
        range: lowest and highest value that is possible, such as (0, 1) for an accuracy. No band leaves it.
        label: of the values. By default "reward", or "loss" if the goal is to minimise, or the name in `of`.
        interactive: True for a figure of plotly, which needs the extra `interactive`.

    Returns:
        Matplotlib's figure, or plotly's.

    Raises:
        InvalidInput: no trial has been answered, the policy has no posterior, or a name is unknown.
    """
    check_picture(path, interactive=interactive)
    study = study_of(source)
    drawn = numbers_drawn(study, of, range, label)
    place = through_of(study, through, drawn[0].of)
    panels: list[Panel] = []
    rows = columns = 0
    for told, limits, word in drawn:
        found = slices_of(study, place, parameters, of=told)
        each = slice_panels(found, study, place, limits, word, of=told)
        panels += [panel.at(rows + i // IN_A_ROW, i % IN_A_ROW) for i, panel in enumerate(each)]
        rows, columns = rows - (-len(each) // IN_A_ROW), max(columns, min(len(each), IN_A_ROW))
    picture = Picture(
        panels=panels, heights=[1.0] * rows, widths=[1.0] * columns, size=(0.8 + 3.1 * columns, 1.0 + 2.5 * rows),
        name=study.name, title=f"through {introduced(study, place)}", legend=True,
    )  # fmt: skip
    return draw(picture, path, interactive=interactive)


def slices_of(
    study: Study,
    through: Place,
    parameters: Sequence[str] | None,
    *,
    of: Quantity | None = None,
    count: int = COUNT,
    among: Sequence[ParameterAxis] | None = None,
) -> list[Slice]:
    """Returns a slice for each parameter, or for those of these names.

    Args:
        study: a study with a posterior.
        through: the trial or place.
        parameters: names, or None for all.
        of: the number that is drawn, or None for the first objective.
        count: points along a real parameter.
        among: axes that are looked at, or None for all that are active.

    Raises:
        InvalidInput: there is no such parameter, or none has several values.
    """
    domain, of = study.policy.domain, quantity(study, of)
    offered = active_axes(domain, through.point) if among is None else among
    lines = [(axis, *line_through(domain, through.point, axis, count=count)) for axis in offered]
    several = {axis.name: (values, points) for axis, values, points in lines if len(points) > 1}
    if not several:
        raise InvalidInput(
            f"No {'arm' if isinstance(domain, Arms) else 'point within the limits'} differs from the best one in one "
            "coordinate only, so there is nothing to draw along.",
            advice="Grids have such arms, for example `Space(...).grid(9)`." if isinstance(domain, Arms) else "",
        )
    axes = chosen_axes([axis for axis, *_ in lines if axis.name in several], parameters, every(domain))
    return [_slice(study, of, through, axis, *several[axis.name]) for axis in axes]


def _slice(
    study: Study, of: Quantity, through: Place, axis: ParameterAxis, values: Sequence[Any], points: Array
) -> Slice:
    seen = seen_along(study, of.function, through, [axis], of.trials[-MOST_SEEN:])
    band = of.band(points, through.context)
    found = None if of.limited else of.function.quantiles(LEVELS, points, contexts_of(through, len(points)))
    shown = _shown(axis, band.mean if found is None else found[len(LEVELS) // 2], upward=of.upward)
    values = [values[i] for i in shown]
    asked, counts = tried_along(study, axis)
    return Slice(
        axis=axis, values=values, left_out=len(points) - len(shown), assumed=assumed(study, through, points[shown]),
        quantiles=None if found is None else found[:, shown],
        band=PosteriorBand(band.mean[shown], band.lower[shown], band.upper[shown], band.band),
        seen=seen, stopped=seen_along(study, of.function, through, [axis], stopped_of(of)),
        since=counted_from(study, len(study.trials)),
        tried=(places(axis, asked, values), counts.astype(np.float64)),
        untried=_untried(axis, values, asked), infeasible=_infeasible(study, through, axis, values, points[shown]),
        unlikely=name_of_unlikely(study),
    )  # fmt: skip


def _shown(axis: ParameterAxis, middle: Array, *, upward: bool) -> list[int]:
    """Returns the columns to draw: all, or the options with the best medians, the best first."""
    count = len(middle)
    if not isinstance(axis.parameter, Choice) or count <= MOST_OPTIONS:
        return list(range(count))
    best: list[int] = np.argsort(-middle if upward else middle, kind="stable")[:MOST_OPTIONS].tolist()
    return best


def _untried(axis: ParameterAxis, values: Sequence[Any], tried: Sequence[Any]) -> list[tuple[float, float]]:
    parameter = axis.parameter
    if _by_bars(axis):
        missing = [i for i, value in enumerate(values) if not any(type(t) is type(value) and t == value for t in tried)]
        at = places(axis, values, values)
        return [(float(at[i]) - 0.5, float(at[i]) + 0.5) for i in missing]
    if isinstance(parameter, Choice):
        return []
    first, last = parameter.position(values[0]), parameter.position(values[-1])
    near = np.unique([parameter.position(value) for value in tried])
    near = near[(near >= first - MARGIN) & (near <= last + MARGIN)]
    lows, highs = np.append(first, near + MARGIN), np.append(near - MARGIN, last)
    wide = np.diff([first, *near, last]) > GAP
    ends = zip(lows[wide].tolist(), highs[wide].tolist(), strict=True)
    return [(_at(parameter, low), _at(parameter, high)) for low, high in ends]


def _infeasible(
    study: Study, through: Place, axis: ParameterAxis, values: Sequence[Any], points: Array
) -> list[tuple[float, float]]:
    """Returns stretches around values whose points, `(n, d)`, are probably not feasible."""
    return runs_of(unlikely(study, through, points), edges(axis, values))


def unlikely(study: Study, through: Place, points: Array) -> Mask:
    """Returns whether points `(n, d)` are probably not feasible, or not certified, `(n,)`."""
    if not (has_channels(study.policy) and study.policy.constraint_count) or on_average(study.policy):
        return np.zeros(len(points), dtype=bool)
    return np.asarray(study.feasible(points, context=through.context) < LIKELY)


def runs_of(chosen: Mask, sides: Array) -> list[tuple[float, float]]:
    """Returns the ends of the runs of chosen cells, `(n,)`, of which each is between two sides, `(n + 1,)`."""
    changes = np.flatnonzero(np.diff(np.concatenate([[0], chosen, [0]])))
    return [(low, high) for low, high in sides[changes].reshape(-1, 2).tolist()]


def name_of_unlikely(study: Study) -> str:
    """Returns what is said of points that are `unlikely`."""
    by_slopes = getattr(getattr(study.policy, "constraints", None), "slope", None) is not None
    return "not certified" if by_slopes else "probably not feasible"


def _at(parameter: Any, share: float) -> float:
    low, high = float(parameter.low), float(parameter.high)
    return low * (high / low) ** share if parameter.log else low + share * (high - low)


def _by_bars(axis: ParameterAxis) -> bool:
    """Returns whether values are drawn one by one."""
    parameter = axis.parameter
    if isinstance(parameter, Choice):
        return True
    return isinstance(parameter, Int) and parameter.known_count <= MOST_BARS and not parameter.log


def slice_panels(
    found: Sequence[Slice],
    study: Study,
    through: Place,
    limits: tuple[float, float] | None,
    label: str,
    *,
    of: Quantity | None = None,
    in_a_row: int = IN_A_ROW,
) -> list[Panel]:
    """Returns a panel for each slice, all on one scale.

    Args:
        found: the slices.
        study: of the slices.
        through: the trial or place of the slices.
        limits: lowest and highest value, or None.
        label: of the values.
        of: the number of the slices, or None for the first objective.
        in_a_row: number of panels beside each other, of which the first has the label.
    """
    of = quantity(study, of)
    room = padded(limits) if limits else padded(_reach(found, of), 0.15)
    low, high = limits or (-np.inf, np.inf)
    panels = []
    for i, one in enumerate(found):
        x = scale(one.axis, one.values)
        if _by_bars(one.axis):
            at = places(one.axis, one.values, one.values).tolist()
            x = replace(x, places=[(place, str(value)) for place, value in zip(at, one.values, strict=True)])
        zero: list[Mark] = [Line(x.limits, [0.0, 0.0], "text", "the limit", 1.0, dashed=True)] if of.limited else []
        marks = zero + _model(one, low, high) + _counts(one, room) + _trials(one, of, room)
        marks += _centre(one, of, through, room)
        notes = [f"best {len(one.values)} of {len(one.values) + one.left_out}"] * bool(one.left_out)
        y = Axis(label="" if i % in_a_row else label, limits=room)
        panels.append(Panel(marks=marks, x=x, y=y, title="\n".join([*notes, *one.assumed])))
    return panels


def _reach(found: Sequence[Slice], of: Quantity) -> tuple[float, float]:
    if not of.limited:
        return fenced(of.values, upward=of.upward)
    known = np.concatenate([of.values, [0.0], *(one.middle for one in found)])
    return float(known.min()), float(known.max())


def _model(one: Slice, low: float, high: float) -> list[Mark]:
    """Returns the hatching, the bands and the median."""
    at, middle = places(one.axis, one.values, one.values), np.clip(one.middle, low, high)
    marks: list[Mark] = []
    if len(one.infeasible):
        starts, stops = np.array(one.infeasible).T
        marks.append(Boxes(starts, stops, None, None, "failed", one.unlikely, 0.2))
    if len(one.untried):
        starts, stops = np.array(one.untried).T
        marks.append(Boxes(starts, stops, None, None, "observed", "no trial near", 0.35, hatched=True))
    for name, opacity, sides, whole in _bands(one, low, high):
        if _by_bars(one.axis):
            marks.append(Boxes(at - HALF, at + HALF, *sides, "model", name, opacity, ends=whole))
        else:
            marks.append(Band(at, *sides, "model", name, opacity, ends=whole))
    if one.quantiles is not None and one.band.band == "proved":
        bounds = (np.clip(one.band.lower, low, high), np.clip(one.band.upper, low, high))
        for name, end in zip(("lower confidence bound", "upper confidence bound"), bounds, strict=True):
            marks.append(_curve(one, at, end, name, 1.0, dashed=True))
    return [*marks, _curve(one, at, middle, "median" if one.quantiles is not None else "posterior mean", 1.6)]


Pair = tuple[Array, Array]


def _bands(one: Slice, low: float, high: float) -> list[tuple[str, float, Pair, Pair | None]]:
    """Returns name, opacity, sides and ends of each band: parts that leave out the next band, for colours in legends.

    The first of the two parts of a band has its name and its ends.
    """
    if one.quantiles is None:
        ends = (one.band.lower, one.band.upper)
        return [(BAND_LABELS[one.band.band], 0.2, ends, ends)]
    inside, found = np.clip(one.quantiles, low, high), list[tuple[str, float, Pair, Pair | None]]()
    for i, label, opacity in BANDS:
        found.append((label, opacity, (inside[i], inside[i + 1]), (inside[i], inside[-1 - i])))
        found.append(("", opacity, (inside[-2 - i], inside[-1 - i]), None))
    return found


def _curve(one: Slice, at: Array, values: Array, name: str, width: float, *, dashed: bool = False) -> Line:
    if not _by_bars(one.axis):
        return Line(at, values, "model", name, width, dashed=dashed)
    x = np.column_stack([at - HALF, at, at + HALF, np.full(len(at), np.nan)]).ravel()
    return Line(
        x, np.column_stack([values] * 3 + [np.full(len(at), np.nan)]).ravel(), "model", name, width, dashed=dashed
    )


def _counts(one: Slice, room: tuple[float, float]) -> list[Mark]:
    """Returns bars of how often each place was asked for, if not all trials are drawn."""
    x, counts = one.tried
    inside = np.isfinite(x)
    x, counts = x[inside], counts[inside]
    if counts.sum() <= MOST_SEEN or not len(x):
        return []
    if not isinstance(one.axis.parameter, Choice) and len(x) > BINS:
        scaled = np.log(x) if one.axis.parameter.log else x
        counts, ends = np.histogram(scaled, BINS, weights=counts)
        ends = np.exp(ends) if one.axis.parameter.log else ends
        starts, stops = ends[:-1][counts > 0], ends[1:][counts > 0]
    elif _by_bars(one.axis) or len(x) == 1:
        starts, stops = x - HALF, x + HALF
    else:
        ends = edges(one.axis, x.tolist())
        starts, stops = ends[:-1], ends[1:]
    counts = counts[counts > 0]
    tops = room[0] + TALLEST * (room[1] - room[0]) * counts / counts.max()
    hover = [f"{int(count):,} times" for count in counts.tolist()]
    return [
        Boxes(starts, stops, np.full(len(tops), room[0]), tops, "observed", "how often asked for", 0.35, hover=hover)
    ]


def _trials(one: Slice, of: Quantity, room: tuple[float, float]) -> list[Mark]:
    """Returns the trials, faded by their distance from the slice. Outliers are at the edge."""
    seen = one.seen
    x, told = places(one.axis, seen.values[0], one.values), [of.told(trial) for trial in seen.trials]
    y, opacity = np.array(told, dtype=np.float64), faded(seen.close)
    hover = [f"trial {trial.number}: {numeral(value)}" for trial, value in zip(seen.trials, y, strict=True)]
    marks: list[Mark] = []
    feasible = {trial.number for trial in without_violation(of.study.policy, seen.trials)}
    drawn, violates = np.isfinite(x), np.array([trial.number not in feasible for trial in seen.trials], dtype=bool)
    within, ends = drawn & (y >= room[0]) & (y <= room[1]), dict(zip("v^", room, strict=True))
    forgotten = np.array([trial.number < one.since for trial in seen.trials], dtype=bool)
    latest = f"latest {MOST_SEEN} " if len(seen.trials) == MOST_SEEN else ""
    for chosen, shape, heights, label in (
        (within & forgotten, "d", y, "trials forgotten by now"),
        (within & ~violates & ~forgotten, "o", y, f"{latest}trials, faded by distance"),
        (within & violates & ~forgotten, "x", y, "not feasible"),
        *((far, end, np.full(len(y), ends[end]), name) for far, end, name in beyond(np.where(drawn, y, np.nan), room)),
    ):
        if chosen.any():
            words = [hover[i] for i in np.flatnonzero(chosen)]
            color = "observed" if shape == "d" else "text"
            marks.append(Points(x[chosen], heights[chosen], color, label, shape, 4.0, opacity[chosen], words))
    early = one.stopped
    at = places(one.axis, early.values[0], one.values)
    return marks + stopped_marks(early.trials, at, limits=room, color="text", opacity=faded(early.close))


def _centre(one: Slice, of: Quantity, through: Place, room: tuple[float, float]) -> list[Mark]:
    """Returns the star of the trial that the slice goes through, or a line at another point."""
    study = of.study
    x = places(one.axis, [value_at(study.policy.domain, through.point, one.axis)], one.values)
    if not np.isfinite(x[0]):
        return []
    value = of.told(through) if isinstance(through, Trial) else None
    if not isinstance(through, Trial) or value is None:
        return [Line([float(x[0])] * 2, room, "best", "the point chosen", 1.2, dashed=True)]
    called = standing(study, through) if has_single_best(study) else f"trial {through.number}"
    return [Points(x, [value], "best", called, "*", 10.0, hover=[f"trial {through.number}: {numeral(value)}"])]
