"""Picture of the posterior over a domain of one dimension, or over arms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from .._utils.checks import Array
from ..domains.domain import Arms
from ..domains.parameters import Choice, Float
from ..errors import InvalidInput, TrialError
from ..policy.policy import Policy
from ..storage.record import Trial
from ..study.definition import constraint_names
from ..study.explanation import PosteriorBand
from ..study.formatting import figure
from ..study.function import Axis, axes, line_through, value_at
from ..study.study import Study
from .base import BEST, MODEL, OBSERVED, new_figure, plain, reward_label
from .lines import inches, paper_style, save
from .source import Source, are_clicks, context_named, study_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 201
BAND_LABELS = {"proved": "confidence bounds", "policy": "bounds of the policy", "deviations": "mean ± 2 std"}
FEW_ARMS = 40  # So many arms of a line are drawn as bars.
FEW_NAMED = 8  # So many arms have their parameters below them.
MOST_ARMS = 60  # Arms of several dimensions that are drawn, the best ones.


def posterior(
    source: Source,
    path: str | Path | None = None,
    *,
    context: Any = None,
    channel: int = 0,
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
        channel: 0 for the reward, j for constraint j.
        width: inches, or "column" or "text" of a paper.
        label: label of the vertical axis. The default is "reward", "loss", or the constraint.

    Raises:
        InvalidInput: the domain has several dimensions and no arms, or the policy has no posterior.
    """
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
    wide = inches(width)
    with paper_style():
        figure = new_figure(wide, 0.62 * wide)
        ax: Axes = figure.subplots()
        seen = _Seen(study, context, channel)
        if len(along) == 1 and not study.replica.roster.unordered:
            _draw_line(ax, seen, along[0])
        else:
            _draw_arms(ax, seen, cast(Arms, domain).points)
        named = [reward_label(study, None), *constraint_names(study.about, study.policy.constraint_count)][channel]
        ax.set(ylabel=label or plain(named) + ", satisfied at most 0" * (channel > 0))
        if channel:
            ax.axhline(0.0, color="0.5", lw=0.8)
        if context is not None:
            ax.set_title(f"under {plain(context_named(study, context))}", loc="left")
        ax.grid(alpha=0.25, lw=0.5)
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
        save(figure, path)
    return figure


class _Seen(NamedTuple):
    """An output of a study under a context."""

    study: Study
    context: Any
    channel: int

    @property
    def clicks(self) -> bool:
        """True for the rate of clicks."""
        return not self.channel and are_clicks(self.study)

    def band(self, points: Array) -> PosteriorBand:
        """Returns the posterior at points `(n, d)`. Rates of clicks are within [0, 1]."""
        found = self.study.band(points, context=self.context, channel=self.channel)
        if not self.clicks:
            return found
        mean, lower, upper = (np.clip(part, 0.0, 1.0) for part in found[:3])
        return PosteriorBand(mean, lower, upper, found.band)

    def told(self) -> tuple[list[Trial], Array]:
        """Returns the answered trials under the context, and their values, `(n,)`."""
        known = None if self.context is None else self.study.inputs.context(self.context)
        trials, values = [], []
        for trial in self.study.trials:
            value = trial.reward
            if self.channel and trial.constraints is not None and value is not None:
                value = float(trial.constraints[self.channel - 1])
            if value is not None and (known is None or np.array_equal(trial.context, known)):  # type: ignore[arg-type]
                trials.append(trial)
                values.append(value)
        return trials, np.array(values, dtype=np.float64)


def _draw_line(ax: Axes, seen: _Seen, axis: Axis) -> None:
    """Adds mean, band and values along the only axis of a domain."""
    domain = seen.study.policy.domain
    start = domain.points[0] if isinstance(domain, Arms) else 0.5 * (domain.lower + domain.upper)
    values, points = line_through(domain, start, axis, count=POINTS)
    shown = seen.band(points)
    trials, told = seen.told()
    at = [value_at(domain, trial.point, axis) for trial in trials]
    choice = isinstance(axis.parameter, Choice)
    xs = np.arange(len(values), dtype=np.float64) if choice else np.array(values, dtype=np.float64)
    if isinstance(axis.parameter, Float) and len(xs) > FEW_ARMS:
        ax.fill_between(xs, shown.lower, shown.upper, color=MODEL, alpha=0.2, lw=0, label=BAND_LABELS[shown.band])
        ax.plot(xs, shown.mean, color=MODEL, label="posterior mean")
    else:
        _draw_bars(ax, xs, shown)
    ax.plot([values.index(x) for x in at] if choice else at, told, "o", ms=3.5, color=OBSERVED, label="observed")
    if choice:
        ax.set_xticks(xs, [plain(str(value)) for value in values])
    elif getattr(axis.parameter, "log", False):
        ax.set_xscale("log")
    places = [values.index(x) for x in at] if choice else at
    _mark_best(ax, seen, trials, places, np.interp(places, xs, shown.mean) if seen.clicks else told)
    ax.set(xlabel=plain(axis.name))


def _draw_arms(ax: Axes, seen: _Seen, points: Array) -> None:
    """Adds mean, band and values of the best arms, in the order of their means."""
    study = seen.study
    shown = seen.band(points)
    falls = study.goal == "maximize" and not seen.channel
    order = np.argsort(-shown.mean if falls else shown.mean, kind="stable")[:MOST_ARMS]
    place = {int(arm): float(i) for i, arm in enumerate(order)}
    kept = PosteriorBand(shown.mean[order], shown.lower[order], shown.upper[order], shown.band)
    _draw_bars(ax, np.arange(len(order), dtype=np.float64), kept)
    trials, told = seen.told()
    inside = [i for i, trial in enumerate(trials) if trial.arm in place]
    at = [place[trials[i].arm or 0] for i in inside]
    ax.plot(at, told[inside], "o", ms=3.5, color=OBSERVED, label="observed")
    _mark_best(
        ax,
        seen,
        [trials[i] for i in inside],
        at,
        np.interp(at, np.arange(len(order)), kept.mean) if seen.clicks else told[inside],
    )
    every, space = 1 + len(order) // 20, cast(Arms, study.policy.domain).space
    if space is not None and len(order) <= FEW_NAMED:
        labels = [plain("\n".join(map(figure, space.decode(points[arm]).values()))) for arm in order]
        ax.set_xticks(np.arange(len(order)), labels)
    else:
        called = study.replica.roster.names
        ax.set_xticks(
            np.arange(0, len(order), every), [plain(called.get(arm, str(arm))) for arm in order[::every].tolist()]
        )
    ax.set(xlabel="arm, in the order of the means" + (f" (best {len(order)})" if len(order) < len(shown.mean) else ""))


def _draw_bars(ax: Axes, xs: Array, shown: PosteriorBand) -> None:
    """Adds a mean and a bar at each place. If the posterior is skew, the mean may lie outside the bar."""
    middle, half = 0.5 * (shown.lower + shown.upper), 0.5 * np.abs(shown.upper - shown.lower)
    ax.errorbar(xs, middle, yerr=half, fmt="none", ecolor=MODEL, capsize=2, label=BAND_LABELS[shown.band])
    ax.plot(xs, shown.mean, "s", ms=4, color=MODEL, label="posterior mean")


def _mark_best(ax: Axes, seen: _Seen, trials: Sequence[Trial], at: Sequence[float], told: Array) -> None:
    """Marks the recommended trial, if it is shown."""
    try:
        best = seen.study.best(context=seen.context).number
    except TrialError:  # Nothing is feasible, or nothing is answered.
        return
    for trial, x, value in zip(trials, at, told, strict=True):
        if trial.number == best:
            ax.plot(x, value, "*", ms=11, color=BEST, label=f"recommended: trial {best}", zorder=3)
