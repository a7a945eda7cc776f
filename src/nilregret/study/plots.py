"""The only module that imports a plotting library."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, many
from .._utils.errors import InvalidInput, MissingExtra
from ..domains.domain import Domain
from ..domains.parameters import Choice, Int
from ..policy.policy import Policy
from ..storage.record import Trial
from .axes import Axis, active_axes, agrees, line_through, value_at
from .best import closest_of
from .curves import Boxes, Curves, Panel
from .direction import Goal, best_label, on_average
from .study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["changes", "evidence", "panels", "progress", "tuning"]

OBSERVED, BEST, MODEL, FAILED = "#7a8793", "#d1495b", "#00798c", "#edae49"
MAX_SLICES = 4
MOST_IN_A_ROW, MOST_NAMES, MOST_TICKS = 4, 10, 8
SLICE_POINTS = 101  # along a real parameter of a continuous space

COLORS = ("#00798c", "#d1495b", "#e09f3e", "#b9a7d3", "#1b1b2f", "#7a8793", "#8ab17d", "#b56576")
# Told apart in grey, and where lines coincide: the fifth lies on the fourth as dashes on a broad line.
STYLES = ("-", "--", "-.", "-", (0, (3, 4)))
WIDTHS = (1.6, 1.6, 1.6, 3.0, 1.6)
BELIEVED = {"proved": "confidence bounds", "policy": "bounds of the policy", "deviations": "mean ± 2 std"}
FEW = 12  # points of a panel that each get a tick
FEWEST = 3  # replicates with a band: of two it says next to nothing
BANDS = {"error": "shaded: ±2 standard errors", "deviation": "shaded: ±1 standard deviation", "none": None}


def __dir__() -> list[str]:
    return __all__


def _new_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra(
            "Pictures need matplotlib, which is not installed: pip install 'nilregret[plot]'."
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def tuning(study: Study, path: str | Path, *, sign: float = 1.0, label: str | None = None) -> None:
    """Save a picture of a study: what was observed, and what is known of each parameter.

    Left, every observation and the highest told (the lowest loss); where nothing was feasible, what came closest is
    the best. Then the posterior along each named parameter, or each coordinate of the points, through the best point:
    mean, confidence bounds of the policy (or two standard deviations, where they are another multiple and nothing is
    proved), and what was observed there. Where the policy has contexts, under the best trial's; of policies without a
    posterior (`nilregret.policy.scripted`), the left part alone.

    Args:
        study: with at least one answered trial.
        path: of the PNG.
        sign: -1 where a study was told losses negated, so that the picture shows losses; one with goal="minimize" shows
            them as they are.
        label: of the vertical axes; "reward" or, where the goal is to minimise, "loss" unless given.
    """
    closest = closest_of(study.trials)
    said, best = ("recommended", study.best()) if closest is None else ("nothing feasible, closest", closest)
    slices = _slices(study.policy.domain, best)[:MAX_SLICES] if isinstance(study.policy, Policy) else []
    figure = _new_figure(4.6 * (1 + len(slices)), 3.8)
    axes: Any = figure.subplots(1, 1 + len(slices), squeeze=False)[0]
    _history(axes[0], study, sign, _label(study, label))
    for ax, along in zip(axes[1:], slices, strict=True):
        _draw_slice(ax, study, along, sign)
    where = "" if best.context is None else f" under context {_short(best.context)}"
    figure.suptitle(f"{study.name}: {said} {_named(best)}{where}", fontsize=11)
    figure.savefig(path, dpi=150)


def progress(study: Study, path: str | Path | None = None) -> Figure:
    """A picture of how a study went: every value, the highest told so far (or lowest), and where trials failed.

    Args:
        study: with at least one answered trial.
        path: of the picture; None saves nothing.
    """
    figure = _new_figure(6.4, 4.0)
    ax = figure.subplots()
    _history(ax, study, 1.0, "value")
    ax.set(title=study.name, xlabel="trial")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _label(study: Study, given: str | None) -> str:
    """Of what is told."""
    return ("reward" if study.goal == "maximize" else "loss") if given is None else given


def _named(trial: Trial) -> str:
    """Where a trial is, in words."""
    if trial.parameters is None:
        return f"point {_short(trial.point)}"
    return ", ".join(f"{name}={_short(value)}" for name, value in trial.parameters.items())


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return "[" + ", ".join(f"{part:.4g}" for part in value) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _history(ax: Axes, study: Study, sign: float, label: str) -> None:
    answered = [trial for trial in study.trials if trial.reward is not None]
    numbers = np.array([trial.number for trial in answered])
    rewards = np.array([trial.reward for trial in answered], dtype=np.float64)
    by_round = not on_average(study.policy)  # where rounds make up for each other, no single one violates anything
    outside = np.array([by_round and trial.feasible is False for trial in answered])
    ax.plot(numbers[~outside], sign * rewards[~outside], "o", ms=4, color=OBSERVED, label="observed")
    if outside.any():
        ax.plot(numbers[outside], sign * rewards[outside], "x", ms=4, color=OBSERVED, label="not feasible")
    better, end = np.fmax if study.goal == "maximize" else np.fmin, len(study.trials) - 0.5
    shown: Goal = "maximize" if (study.goal == "maximize") == (sign > 0.0) else "minimize"
    best = better.accumulate(np.where(outside, np.nan, rewards))  # drawn to the end: a single one is seen too
    ax.step([*numbers, end], sign * np.append(best, best[-1]), where="post", color=BEST, label=best_label(shown))
    failed = [trial.number for trial in study.trials if trial.state == "failed"]
    if failed:  # as ticks along the axis, however many there are
        ax.plot(
            failed, np.zeros(len(failed)), "|", ms=9, mew=1.5, color=FAILED, label="failed",
            transform=ax.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    ax.set(xlabel="trial", ylabel=label, title="Observations")
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    ax.legend(frameon=False, fontsize=8)


def changes(
    study: Study, path: Path, *, known: Sequence[int] = (), label: str | None = None, unit: str = "trial"
) -> None:
    """Save a picture of a study whose world changes: what was played, what came of it, and where it started anew.

    Args:
        study: with at least one answered trial, on a domain of one dimension.
        path: of the PNG.
        known: rounds at which the world did change, where that is known, as in a simulation.
        label: of the rewards; see `tuning`.
        unit: what a round is, such as "hour".
    """
    name, values = _played(study)
    restarts, trials = study.restarts, study.trials
    answered = [trial for trial in trials if trial.reward is not None]
    if not answered:
        raise InvalidInput("No trial has been answered yet, so there is nothing to draw.")
    figure = _new_figure(9.0, 5.4)
    played, rewarded = figure.subplots(2, 1, sharex=True)
    _draw_played(played, values, np.array([trial.explored for trial in trials], dtype=bool))
    rewards = np.array([trial.reward for trial in answered], dtype=np.float64)
    _draw_rewards(rewarded, np.array([trial.number for trial in answered]), rewards)
    for ax, named in ((played, True), (rewarded, False)):  # one legend says what the lines of both are
        for i, round_ in enumerate(known):
            ax.axvline(round_, color=OBSERVED, lw=5, alpha=0.35, label="the world changed" if named and not i else None)
        for i, round_ in enumerate(restarts):
            ax.axvline(round_, color=BEST, lw=1.5, ls="--", label="started anew" if named and not i else None)
        ax.legend(fontsize=8, edgecolor="none", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        ax.margins(x=0.01)
    played.set(ylabel=name, title=f"{study.name}: {many(len(restarts), 'restart')} in {many(len(trials), unit)}")
    rewarded.set(xlabel=unit, ylabel=_label(study, label))
    figure.savefig(path, dpi=110)


def evidence(study: Study, path: Path, *, known: Sequence[int] = (), unit: str = "trial") -> None:
    """Save a picture of how much spoke for a change of the world, answer by answer, and where it was enough.

    Args:
        study: of a policy that puts it into a number (`memory="adaptive"`), with at least one answer.
        path: of the PNG.
        known: rounds at which the world did change, where that is known, as in a simulation.
        unit: what a round is, such as "hour".
    """
    found, restarts = study.evidence, study.restarts
    if found is None or not len(found.trials):
        raise InvalidInput(
            "There is no evidence to draw: no answer has been looked at yet, or the policy's memory looks at none. "
            'Policies made with memory="adaptive" do.'
        )
    figure = _new_figure(9.0, 3.2)
    ax = figure.subplots()
    ax.plot(found.trials, found.values, ".-", ms=3, lw=1.0, color=MODEL, label="evidence for a change")
    ax.axhline(found.threshold, color=FAILED, lw=1.0, label="enough: 1 / delta")
    for i, round_ in enumerate(known):
        ax.axvline(round_, color=OBSERVED, lw=5, alpha=0.35, label=None if i else "the world changed")
    for i, round_ in enumerate(restarts):
        ax.axvline(round_, color=BEST, lw=1.5, ls="--", label=None if i else "started anew")
    ax.legend(fontsize=8, edgecolor="none", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.margins(x=0.01)
    ax.set(xlabel=unit, ylabel="log evidence", title=f"{study.name}: how much spoke for a change")
    figure.savefig(path, dpi=110)


def _draw_played(ax: Axes, values: Array, forced: npt.NDArray[np.bool_]) -> None:
    numbers = np.arange(len(values))
    ax.plot(numbers[~forced], values[~forced], "o", ms=2.5, color=MODEL, label="chosen")
    if forced.any():
        ax.plot(numbers[forced], values[forced], "x", ms=5, color=FAILED, label="at random, to notice changes")


def _draw_rewards(ax: Axes, numbers: npt.NDArray[np.intp], rewards: Array) -> None:
    width = max(1, len(rewards) // 30)
    means = np.convolve(rewards, np.full(width, 1.0 / width), mode="valid")
    ax.plot(numbers, rewards, "o", ms=2.5, color=OBSERVED, label="observed")
    ax.plot(numbers[width - 1 :], means, color=MODEL, label=f"mean of the last {width}")


def _played(study: Study) -> tuple[str, Array]:
    """The name of the one coordinate, and its value in every trial, `(t,)`."""
    trials = study.trials
    if study.policy.domain.dimension != 1:
        raise InvalidInput("What was played can be drawn over time for a domain of one dimension only.")
    if trials and trials[0].parameters is not None:
        (name,) = trials[0].parameters
        return name, np.array([(trial.parameters or {})[name] for trial in trials], dtype=np.float64)
    return "point", np.array([trial.point[0] for trial in trials], dtype=np.float64)


class _Slice(NamedTuple):
    """Points that differ from the best one in one parameter, or one coordinate, only."""

    axis: Axis
    values: list[Any]
    points: Array  # (n, d)
    best: Trial


def _slices(domain: Domain, best: Trial) -> list[_Slice]:
    """One for each parameter or coordinate that has several values there."""
    lines = [
        (axis, line_through(domain, best.point, axis, count=SLICE_POINTS)) for axis in active_axes(domain, best.point)
    ]
    return [_Slice(axis, values, points, best) for axis, (values, points) in lines if len(points) > 1]


def _draw_slice(ax: Axes, study: Study, along: _Slice, sign: float) -> None:
    shown = study.band(along.points, context=along.best.context)
    mean, lower, upper = sign * shown.mean, sign * shown.lower, sign * shown.upper
    band, line = BELIEVED[shown.band], "posterior mean"
    place: dict[Any, float] = {value: float(i) for i, value in enumerate(along.values)}
    if isinstance(along.axis.parameter, Choice):
        xs = np.arange(len(along.values), dtype=np.float64)
        _draw_bars(ax, xs, lower, upper, label=band, capsize=4)
        ax.plot(xs, mean, "s", color=MODEL, label=line)
        ax.set_xticks(xs, [str(value) for value in along.values])
    elif isinstance(along.axis.parameter, Int):
        xs = np.array(along.values, dtype=np.float64)
        _draw_bars(ax, xs, lower, upper, label=band, capsize=2)
        ax.plot(xs, mean, "s", ms=4, color=MODEL, label=line)
        _whole_ticks(ax, along.axis.parameter, along.values)
    else:
        xs = np.array(along.values, dtype=np.float64)
        ax.fill_between(xs, lower, upper, color=MODEL, alpha=0.18, lw=0, label=band)
        ax.plot(xs, mean, color=MODEL, label=line)
        if along.axis.parameter.log:
            ax.set_xscale("log")
    told = _told(study, along)
    at = [place[value] if isinstance(along.axis.parameter, Choice) else value for value, _ in told]
    ax.plot(at, [sign * reward for _, reward in told], "o", ms=4, color=OBSERVED, label="observed")
    ax.set(xlabel=along.axis.name, title=f"Posterior along {along.axis.name}")
    ax.legend(frameon=False, fontsize=8)


def _whole_ticks(ax: Axes, parameter: Int, values: list[int]) -> None:
    """Ticks at whole numbers only; on a logarithmic axis at some of the values."""
    from matplotlib.ticker import NullLocator

    if not parameter.log:
        ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
        return
    ax.set_xscale("log")
    every = -(-len(values) // MOST_TICKS)
    ax.set_xticks(values[::every], [str(value) for value in values[::every]])
    ax.xaxis.set_minor_locator(NullLocator())


def _draw_bars(ax: Axes, xs: Array, lower: Array, upper: Array, **style: Any) -> None:
    """A bar from one end to the other at each place; the mean of a skew belief may lie outside."""
    ax.errorbar(xs, 0.5 * (lower + upper), yerr=0.5 * np.abs(upper - lower), fmt="none", ecolor=MODEL, **style)


def _told(study: Study, along: _Slice) -> list[tuple[Any, float]]:
    """(value of the parameter, reward) of the answered trials on a slice, under the same context."""
    domain, best = study.policy.domain, along.best
    under = None if best.context is None else best.context.tobytes()
    return [
        (value_at(domain, trial.point, along.axis), trial.reward)
        for trial in study.trials
        if trial.reward is not None
        and (trial.context is None or trial.context.tobytes() == under)
        and agrees(domain, trial.point[None], best.point, (along.axis,))[0]
    ]


def panels(shown: Sequence[Panel], path: Path, *, title: str = "", note: str = "") -> None:
    """Save a picture of panels side by side, more than four in two rows; a name has one colour in all of them.

    Args:
        shown: from left to right, then from top to bottom.
        path: of the PNG.
        title: above all panels.
        note: a small line below them.
    """
    rows = 1 if len(shown) <= MOST_IN_A_ROW else 2
    columns = -(-len(shown) // rows)
    figure = _new_figure(2.2 + 4.2 * columns, 3.7 * rows + (0.2 if note else 0.0))
    axes: Any = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    axes = axes[: len(shown)]
    names = dict.fromkeys(
        name for panel in shown for name in (panel.lines if isinstance(panel, Curves) else _colored(panel))
    )
    place = {name: i for i, name in enumerate(names)}
    for ax, panel in zip(axes, shown, strict=True):
        if isinstance(panel, Curves):
            _draw_curves(ax, panel, place)
        else:
            _draw_boxes(ax, panel, place)
        ax.set(ylabel=panel.y_label)
        if panel.title:
            ax.set_title(panel.title, fontsize=10)
        ax.grid(alpha=0.25, lw=0.6)
    _legends(figure, axes, shown)
    figure.suptitle(title, fontsize=11, x=0.01, horizontalalignment="left")
    if note:
        figure.supxlabel(note, fontsize=8, color="0.35", x=0.01, horizontalalignment="left")
    figure.savefig(path, dpi=90)


def _legends(figure: Figure, axes: Any, shown: Sequence[Panel]) -> None:
    """One beside all panels where they have the same lines, else one in each."""
    style: dict[str, Any] = {"fontsize": 8, "title_fontsize": 7, "alignment": "left", "frameon": False}
    lines = [panel for panel in shown if isinstance(panel, Curves)]
    if len({(*panel.lines, panel.band) for panel in lines}) == 1:
        handles, labels = axes[shown.index(lines[0])].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right center", title=_band_in_words(lines), **style)
        return
    for ax, panel in zip(axes, shown, strict=True):
        if isinstance(panel, Curves):
            ax.legend(title=_band_in_words([panel]), **style)


def _band(panel: Curves, name: str) -> Array | None:
    """Half the height of the band around a line, `(n,)`; None where there are too few replicates."""
    return panel.spread(name) if len(panel.lines[name]) >= FEWEST and panel.band != "none" else None


def _band_in_words(panels: Sequence[Curves]) -> str | None:
    drawn = any(_band(panel, name) is not None for panel in panels for name in panel.lines)
    return BANDS[panels[0].band] if drawn else None


def _draw_curves(ax: Axes, panel: Curves, place: dict[str, int]) -> None:
    for name in panel.lines:
        i, mean, spread = place[name], panel.mean(name), _band(panel, name)
        color, style, width = COLORS[i % len(COLORS)], STYLES[i % len(STYLES)], WIDTHS[i % len(STYLES)]
        ax.plot(panel.x, mean, color=color, ls=style, lw=width, label=name, marker="o" if panel.marks else None, ms=3)
        if spread is not None and spread.any():
            ax.fill_between(panel.x, mean - spread, mean + spread, color=color, alpha=0.12, lw=0)
    if "x" in panel.log:
        ax.set_xscale("log")
    if "y" in panel.log:
        ax.set_yscale("log")
        _above_the_lowest_mean(ax, panel)
    else:
        ax.set_ylim(bottom=None if min(panel.mean(name).min() for name in panel.lines) < 0.0 else 0.0)
    ax.set_xlim(float(panel.x[0]), float(panel.x[-1]))
    ax.set_xlabel(panel.x_label)
    if panel.log and panel.marks and len(panel.x) <= FEW:
        _plain_ticks(ax, panel)
    if "x" not in panel.log:  # few, so that large numbers do not touch
        ax.xaxis.get_major_locator().set_params(nbins=6, integer=len(panel.x) <= 60)  # type: ignore[call-arg]


def _above_the_lowest_mean(ax: Axes, panel: Curves) -> None:
    """A band that reaches below zero would stretch a logarithmic axis without end."""
    means = np.concatenate([panel.mean(name) for name in panel.lines])
    if (means > 0.0).any() and panel.band != "none":
        ax.set_ylim(bottom=0.8 * means[means > 0.0].min())


def _plain_ticks(ax: Axes, panel: Curves) -> None:
    """Numbers as they are on logarithmic axes that span less than a decade, where matplotlib writes 6 x 10^2."""
    from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

    if "x" in panel.log:
        ax.set_xticks(panel.x, [f"{x:g}" for x in panel.x])
        ax.xaxis.set_minor_locator(NullLocator())
    low, high = ax.get_ylim()
    if "y" in panel.log and high < 10.0 * low:
        ax.yaxis.set_major_locator(MaxNLocator(6))
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_locator(NullLocator())


def _colored(panel: Boxes) -> list[str]:
    """What has a colour of its own: each box, or all boxes together where they are along an axis."""
    return [panel.title] if panel.x_label else list(panel.boxes)


def _draw_boxes(ax: Axes, panel: Boxes, place: dict[str, int]) -> None:
    drawn = ax.boxplot(list(panel.boxes.values()), widths=0.6, patch_artist=True, medianprops={"color": "black"})
    for box, name in zip(drawn["boxes"], panel.boxes, strict=True):
        box.set_facecolor(COLORS[place[panel.title if panel.x_label else name] % len(COLORS)])
        box.set_alpha(0.6)
    every = 1 + len(panel.boxes) // MOST_NAMES if panel.x_label else 1
    ax.set_xticks(range(every, len(panel.boxes) + 1, every), list(panel.boxes)[every - 1 :: every])
    ax.set_xlabel(panel.x_label)
    if "y" in panel.log:
        ax.set_yscale("log")
