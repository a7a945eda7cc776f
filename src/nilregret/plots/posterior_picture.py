"""Picture of the posterior over a domain of one dimension, or over arms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..domains.domain import Arms
from ..errors import InvalidInput, TrialError
from ..policy.policy import Policy
from ..storage.record import Trial
from ..study.best import in_space
from ..study.explanation import PosteriorBand
from ..study.formatting import figure
from ..study.function import Axis as ParameterAxis
from ..study.function import axes, line_through, value_at
from ..study.quantities import Quantity
from ..study.study import Study
from .along import LONG, places, scale, shortened
from .base import BAND_LABELS, labelled
from .curves_picture import stopped_marks, stopped_of
from .drawing import draw
from .lines import inches
from .scene import Axis, Band, Boxes, Line, Mark, Panel, Picture, Points
from .source import Source, are_clicks, best_of, context_named, numbers_drawn, standing, study_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

POINTS = 201
FEW_ARMS = 40  # So many arms of a line are drawn as bars.
FEW_NAMED = 8  # So many arms have their parameters below them.
THIN = 0.06  # Half the width of a bar, as a share of the distance of two arms.
MOST_ARMS = 60  # Arms of several dimensions that are drawn, the best ones.


def posterior(
    source: Source,
    path: str | Path | None = None,
    *,
    context: Any = None,
    channel: int | None = None,
    of: str | int | None = None,
    width: str | float = 5.0,
    label: str | None = None,
) -> Figure:
    """Returns a picture of the posterior: its mean, a band, and the observed values.

    The domain has one dimension, or it is a list of arms. Arms of several dimensions are in order of their mean, the
    best 60 of them. For other domains there are `nilregret.plots.slices` and `nilregret.plots.contour`.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 0.3) ** 2, nr.Space(x=nr.Float(0, 1)), trials=6, progress=False)
    >>> figure = nr.plots.posterior(result)

    Args:
        source: a study or a result.
        path: path of the picture, or None to save nothing. The ending names the format: .pdf, .svg or .png.
        context: context of the posterior, if the policy has contexts. The default is that of the last trial.
        channel: number of an output: objectives first, then constraints.
        of: the same, or the name of an objective, text of a constraint, or name of a metric (see `slices`). None for
            the reward, or a panel for each objective.
        width: inches, or "column" or "page" of a paper.
        label: label of the vertical axis. The default is "reward", "loss", the constraint or the metric.

    Raises:
        InvalidInput: the domain has several dimensions and no arms, or the policy has no posterior.
    """
    check_picture(path)
    study = study_of(source)
    domain = study.policy.domain
    along = axes(domain)
    if not isinstance(study.policy, Policy) or (len(along) != 1 and not isinstance(domain, Arms)):
        raise InvalidInput(
            "The posterior is drawn for domains of one dimension and for arms: take `nr.plots.slices` or "
            "`nr.plots.contour`, which show some directions of a larger domain."
        )
    if context is None and study.policy.context is not None and len(study.trials):
        last = study.trials[-1]
        context = last.context if last.context_parameters is None else last.context_parameters
    wide, told = inches(width), numbers_drawn(study, channel if of is None else of, None, label)
    panels = [posterior_panel(each.of, context=context, label=label).at(row, 0) for row, each in enumerate(told)]
    picture = Picture(panels=panels, heights=[1.0] * len(panels), size=(wide, 0.62 * wide * len(panels)), legend=True)
    return cast("Figure", draw(picture, path, interactive=False))


def posterior_panel(of: Quantity, *, context: Any = None, label: str | None = None, ranked: bool = False) -> Panel:
    """Returns the panel of the posterior along the only axis of a domain, or of the best arms.

    Args:
        of: the reward, a constraint or a metric.
        context: of the posterior, or None.
        label: of the values, or None for the name of the number.
        ranked: True for arms in the order of their mean, also along one dimension.
    """
    study = of.study
    seen, along = _Seen(of, context), axes(study.policy.domain)
    if len(along) == 1 and not study.replica.roster.unordered and not ranked:
        marks, x = _of_line(seen, along[0])
    else:
        marks, x = _of_arms(seen, cast(Arms, study.policy.domain).points)
    if of.limited:
        marks.insert(0, Line(x.limits, [0.0, 0.0], "text", "the limit", 0.8, dashed=True))
    said = labelled(label, of.name + ", satisfied at most 0" * of.limited)
    title = "" if context is None else f"under {context_named(study, context)}"
    return Panel(marks=marks, x=x, y=Axis(label=said), title=title)


class _Seen(NamedTuple):
    """A number that trials tell, under a context."""

    of: Quantity
    context: Any

    @property
    def study(self) -> Study:
        """The study of the trials."""
        return cast(Study, self.of.study)

    @property
    def clicks(self) -> bool:
        """True for the rate of clicks."""
        return self.of.objective and are_clicks(self.study)

    def band(self, points: Array) -> PosteriorBand:
        """Returns the posterior at points `(n, d)`. Rates of clicks are within [0, 1]."""
        found = self.of.band(points, self.context)
        if not self.clicks:
            return found
        mean, lower, upper = (np.clip(part, 0.0, 1.0) for part in found[:3])
        return PosteriorBand(mean, lower, upper, found.band)

    def told(self) -> tuple[list[Trial], Array]:
        """Returns the answered trials under the context, and their values, `(n,)`."""
        kept = {trial.number for trial in in_space(self.study.policy, self.of.trials)}
        mine = [
            under and t.number in kept for under, t in zip(self._under(self.of.trials), self.of.trials, strict=True)
        ]
        return list(compress(self.of.trials, mine)), self.of.values[np.array(mine, dtype=bool)]

    @property
    def stopped(self) -> list[Trial]:
        """The stopped trials under the context."""
        found = stopped_of(self.of)
        return list(compress(found, self._under(found)))

    def _under(self, trials: Sequence[Trial]) -> list[bool]:
        known = None if self.context is None else self.study.inputs.context(self.context)
        return [known is None or np.array_equal(cast(Array, trial.context), known) for trial in trials]


def _of_line(seen: _Seen, axis: ParameterAxis) -> tuple[list[Mark], Axis]:
    """Returns mean, band and values along the only axis of a domain, and the axis."""
    domain = seen.study.policy.domain
    start = domain.points[0] if isinstance(domain, Arms) else 0.5 * (domain.lower + domain.upper)
    values, points = line_through(domain, start, axis, count=POINTS)
    shown, xs = seen.band(points), places(axis, values, values)
    trials, told = seen.told()
    at = places(axis, [value_at(domain, trial.point, axis) for trial in trials], values)
    if axis.parameter.real and len(xs) > FEW_ARMS:
        marks: list[Mark] = [
            Band(xs, shown.lower, shown.upper, "model", BAND_LABELS[shown.band]),
            Line(xs, shown.mean, "model", "posterior mean"),
        ]
    else:
        marks = _bars(xs, shown)
    marks.append(_observed(trials, at, told))
    early = seen.stopped
    marks += stopped_marks(early, places(axis, [value_at(domain, trial.point, axis) for trial in early], values))
    marks += _best(seen, trials, at, np.interp(at, xs, shown.mean) if seen.clicks else told)
    return marks, scale(axis, values)


def _of_arms(seen: _Seen, points: Array) -> tuple[list[Mark], Axis]:
    """Returns mean, band and values of the best arms in the order of their means, and the axis."""
    study = seen.study
    shown = seen.band(points)
    falls = seen.of.upward
    order = np.argsort(-shown.mean if falls else shown.mean, kind="stable")[:MOST_ARMS]
    place = {int(arm): float(i) for i, arm in enumerate(order)}
    kept = PosteriorBand(shown.mean[order], shown.lower[order], shown.upper[order], shown.band)
    xs = np.arange(len(order), dtype=np.float64)
    trials, told = seen.told()
    inside = [i for i, trial in enumerate(trials) if trial.arm in place]
    at = np.array([place[trials[i].arm or 0] for i in inside])
    trials, told = [trials[i] for i in inside], told[inside]
    marks = [*_bars(xs, kept), _observed(trials, at, told)]
    marks += stopped_marks(seen.stopped, np.array([place.get(trial.arm or 0, np.nan) for trial in seen.stopped]))
    marks += _best(seen, trials, at, np.interp(at, xs, kept.mean) if seen.clicks else told)
    label = "arm, in the order of the means" + (f" (best {len(order)})" if len(order) < len(shown.mean) else "")
    names = _names(study, order)
    every = 1 if len(order) <= FEW_NAMED else 1 + len(order) // 20
    short = names if len(order) <= FEW_NAMED else [shortened(name) for name in names]
    steep = sum(map(len, short[::every])) > LONG * 2 and len(order) > FEW_NAMED
    ticks, said = list(zip(xs.tolist(), short, strict=True))[::every], list(zip(xs.tolist(), names, strict=True))
    places_said = [(x, name.replace("\n", ", ")) for x, name in said]
    return marks, Axis(
        label=label, limits=(-0.5, len(order) - 0.5), ticks=ticks, places=places_said, grid=False, steep=steep
    )


def _names(study: Study, order: IndexArray) -> list[str]:
    """Returns the names of arms: of few, their parameters in lines."""
    arms, called = cast(Arms, study.policy.domain), study.replica.roster.names
    if arms.space is not None and len(order) <= FEW_NAMED:
        return ["\n".join(map(figure, arms.space.decode(arms.points[arm]).values())) for arm in order]
    return [called.get(arm, str(arm)) for arm in order.tolist()]


def _bars(xs: Array, shown: PosteriorBand) -> list[Mark]:
    """Returns a mean and a bar at each place. If the posterior is skew, the mean may lie outside the bar."""
    half = THIN * (float(np.diff(np.unique(xs)).min()) if len(xs) > 1 else 1.0)
    ends = (shown.lower, shown.upper)
    return [
        Boxes(xs - half, xs + half, *ends, "model", BAND_LABELS[shown.band], 0.6, ends=ends),
        Points(xs, shown.mean, "model", "posterior mean", "s"),
    ]


def _observed(trials: Sequence[Trial], at: Array, told: Array) -> Points:
    hover = [f"trial {trial.number}: {numeral(value)}" for trial, value in zip(trials, told.tolist(), strict=True)]
    return Points(at, told, "observed", "observed", size=3.5, hover=hover)


def _best(seen: _Seen, trials: Sequence[Trial], at: Array, told: Array) -> list[Mark]:
    """Returns the mark of the recommended trial, if it is shown."""
    several = len(seen.study.goals) > 1
    try:
        found = best_of(seen.study, seen.of) if several else seen.study.best(context=seen.context)
    except TrialError:  # Nothing is feasible, or nothing is answered.
        found = None
    if found is None:
        return []
    best, called = found.number, standing(seen.study, found) if several else "recommended"
    mine = [i for i, trial in enumerate(trials) if trial.number == best]
    hover = [f"trial {best}"]
    return [Points(at[mine], told[mine], "best", f"{called}: trial {best}", "*", 11.0, hover=hover)] if mine else []
