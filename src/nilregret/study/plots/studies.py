"""Pictures of a study: its trials, and the posterior along each parameter."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._utils.checks import Array
from ..._utils.errors import InvalidInput
from ...domains.domain import Domain
from ...domains.parameters import Choice, Int
from ...policy.policy import Policy
from ...storage.record import Trial
from ..axes import Axis, active_axes, agrees, line_through, value_at
from ..best import closest_of
from ..direction import Goal, best_label, on_average
from ..study import Study
from .base import BEST, FAILED, MODEL, OBSERVED, new_figure, reward_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_SLICES = 4
MOST_TICKS = 8
SLICE_POINTS = 101  # Points along a real parameter of a continuous space.
BAND_LABELS = {"proved": "confidence bounds", "policy": "bounds of the policy", "deviations": "mean ± 2 std"}


def tuning(study: Study, path: str | Path, *, sign: float = 1.0, label: str | None = None) -> None:
    """Saves a picture of a study: its observations, and the posterior along each parameter.

    On the left are all observations and the best one so far. If no trial satisfies the constraints, the best trial is
    the closest one. On the right is the posterior along each named parameter, or each coordinate, through the best
    point: the mean, a band (see `Study.band`), and the observations there. If the policy has contexts, the context is
    that of the best trial. A policy without a posterior (`nilregret.policy.scripted`) has the left part alone.

    Args:
        study: with at least one answered trial.
        path: of the PNG.
        sign: -1 if the rewards of the study are negated losses, so that the picture shows losses. A study with
            goal="minimize" shows losses anyway, and needs 1.
        label: of the vertical axes. By default "reward", or "loss" if the goal is to minimise.
    """
    closest = closest_of(study.trials)
    said, best = ("recommended", study.best()) if closest is None else ("nothing feasible, closest", closest)
    slices = _slices(study.policy.domain, best)[:MAX_SLICES] if isinstance(study.policy, Policy) else []
    figure = new_figure(4.6 * (1 + len(slices)), 3.8)
    axes: Any = figure.subplots(1, 1 + len(slices), squeeze=False)[0]
    _history(axes[0], study, sign, reward_label(study, label))
    for ax, along in zip(axes[1:], slices, strict=True):
        _draw_slice(ax, study, along, sign)
    where = "" if best.context is None else f" under context {_short(best.context)}"
    figure.suptitle(f"{study.name}: {said} {_named(best)}{where}", fontsize=11)
    figure.savefig(path, dpi=150)


def progress(study: Study, path: str | Path | None = None) -> Figure:
    """Returns a picture of how a study went: every value, the best told so far, and the failed trials.

    Args:
        study: with at least one answered trial.
        path: of the picture, or None to save nothing.

    Raises:
        InvalidInput: no trial has been answered.
    """
    if all(trial.reward is None for trial in study.trials):
        raise InvalidInput("No trial has been answered yet, so there is nothing to draw.")
    figure = new_figure(6.4, 4.0)
    ax = figure.subplots()
    _history(ax, study, 1.0, "value")
    ax.set(title=study.name, xlabel="trial")
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _named(trial: Trial) -> str:
    """Returns the point of a trial in words."""
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
    by_round = not on_average(study.policy)  # On average, no single round violates a constraint.
    outside = np.array([by_round and trial.feasible is False for trial in answered])
    ax.plot(numbers[~outside], sign * rewards[~outside], "o", ms=4, color=OBSERVED, label="observed")
    if outside.any():
        ax.plot(numbers[outside], sign * rewards[outside], "x", ms=4, color=OBSERVED, label="not feasible")
    better, end = np.fmax if study.goal == "maximize" else np.fmin, len(study.trials) - 0.5
    shown: Goal = "maximize" if (study.goal == "maximize") == (sign > 0.0) else "minimize"
    best = better.accumulate(np.where(outside, np.nan, rewards))  # Drawn to the end, so that a single value is visible.
    ax.step([*numbers, end], sign * np.append(best, best[-1]), where="post", color=BEST, label=best_label(shown))
    failed = [trial.number for trial in study.trials if trial.state == "failed"]
    if failed:  # Ticks along the axis stay readable however many there are.
        ax.plot(
            failed, np.zeros(len(failed)), "|", ms=9, mew=1.5, color=FAILED, label="failed",
            transform=ax.get_xaxis_transform(), clip_on=False,
        )  # fmt: skip
    ax.set(xlabel="trial", ylabel=label, title="Observations")
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    ax.legend(frameon=False, fontsize=8)


class _Slice(NamedTuple):
    """Points that differ from the best point in one parameter or coordinate only."""

    axis: Axis
    values: list[Any]
    points: Array  # (n, d)
    best: Trial


def _slices(domain: Domain, best: Trial) -> list[_Slice]:
    """Returns a slice for each parameter or coordinate that has several values."""
    lines = [
        (axis, line_through(domain, best.point, axis, count=SLICE_POINTS)) for axis in active_axes(domain, best.point)
    ]
    return [_Slice(axis, values, points, best) for axis, (values, points) in lines if len(points) > 1]


def _draw_slice(ax: Axes, study: Study, along: _Slice, sign: float) -> None:
    shown = study.band(along.points, context=along.best.context)
    mean, lower, upper = sign * shown.mean, sign * shown.lower, sign * shown.upper
    band, line = BAND_LABELS[shown.band], "posterior mean"
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
    """Puts ticks at whole numbers only. On a logarithmic axis, at some of the values."""
    from matplotlib.ticker import NullLocator

    if not parameter.log:
        ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
        return
    ax.set_xscale("log")
    every = -(-len(values) // MOST_TICKS)
    ax.set_xticks(values[::every], [str(value) for value in values[::every]])
    ax.xaxis.set_minor_locator(NullLocator())


def _draw_bars(ax: Axes, xs: Array, lower: Array, upper: Array, **style: Any) -> None:
    """Adds a bar from the lower to the upper end at each place. If the posterior is skew, the mean may lie outside."""
    ax.errorbar(xs, 0.5 * (lower + upper), yerr=0.5 * np.abs(upper - lower), fmt="none", ecolor=MODEL, **style)


def _told(study: Study, along: _Slice) -> list[tuple[Any, float]]:
    """Returns (value of the parameter, reward) of the answered trials on a slice, under the same context."""
    domain, best = study.policy.domain, along.best
    under = None if best.context is None else best.context.tobytes()
    return [
        (value_at(domain, trial.point, along.axis), trial.reward)
        for trial in study.trials
        if trial.reward is not None
        and (trial.context is None or trial.context.tobytes() == under)
        and agrees(domain, trial.point[None], best.point, (along.axis,))[0]
    ]
