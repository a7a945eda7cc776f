"""The only module that imports a plotting library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .checks import Array, IndexArray
from .domain import Arms, Choice, Float, Int, Space
from .errors import MissingExtra
from .study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OBSERVED, BEST, MODEL, FAILED = "#7a8793", "#d1495b", "#00798c", "#edae49"
MAX_SLICES = 4


def _new_figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("Pictures need matplotlib, which is not installed: pip install 'noregret[plot]'.") from error
    return Figure(figsize=(width, height), layout="constrained")


def tuning(study: Study, path: Path, *, sign: float = 1.0, label: str = "reward") -> None:
    """Save a picture of a study on a grid of parameters.

    Left, every observation and the best so far. Then the posterior along each parameter through the best point: mean,
    confidence bounds of the policy (or two standard deviations, where nothing is proved), and what was observed there.

    Args:
        study: with at least one answered trial.
        path: of the PNG.
        sign: -1 where rewards are negated losses, so that the picture shows losses.
        label: of the vertical axes.
    """
    domain, best = study.policy.domain, study.best()
    slices = _slices(domain, int(best.arm or 0))[:MAX_SLICES]
    figure = _new_figure(4.6 * (1 + len(slices)), 3.8)
    axes: Any = figure.subplots(1, 1 + len(slices), squeeze=False)[0]
    _history(axes[0], study, sign, label)
    for ax, (name, arms) in zip(axes[1:], slices, strict=True):
        _slice(ax, study, name, arms, sign)
    point = ", ".join(f"{name}={_short(value)}" for name, value in (best.parameters or {}).items())
    figure.suptitle(f"{study.name}: best {point}", fontsize=11)
    figure.savefig(path, dpi=150)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _history(ax: Axes, study: Study, sign: float, label: str) -> None:
    answered = [trial for trial in study.trials if trial.reward is not None]
    numbers = np.array([trial.number for trial in answered]) + 1
    rewards = np.array([trial.reward for trial in answered], dtype=np.float64)
    ax.plot(numbers, sign * rewards, "o", ms=4, color=OBSERVED, label="observed")
    ax.step(numbers, sign * np.maximum.accumulate(rewards), where="post", color=BEST, label="best so far")
    failed = [trial.number + 1 for trial in study.trials if trial.state == "failed"]
    for position, number in enumerate(failed):
        ax.axvline(number, color=FAILED, lw=1, label="failed" if position == 0 else None)
    ax.set(xlabel="trial", ylabel=label, title="Observations")
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    ax.legend(frameon=False, fontsize=8)


def _slices(domain: Arms, best: int) -> list[tuple[str, IndexArray]]:
    """For each parameter with several values: the arms that differ from the best one in nothing else."""
    result, start = [], 0
    for name, parameter in (domain.space or Space(x=Float(0, 1))).parameters.items():
        columns = np.arange(start, start + parameter.columns)
        start += parameter.columns
        others = np.delete(domain.points, columns, axis=1)
        arms = np.flatnonzero((others == others[best]).all(axis=1))
        if len(arms) > 1:
            result.append((name, arms))
    return result


def _slice(ax: Axes, study: Study, name: str, arms: IndexArray, sign: float) -> None:
    domain = study.policy.domain
    parameter = None if domain.space is None else domain.space.parameters[name]
    points = domain.points[arms]
    mean, std = study.predict(points)
    certified = study.policy.confidence.valid_for == "f"
    width = study.width if certified else 2.0
    band = "confidence bounds" if certified else "mean ± 2 std"
    where = {int(arm): position for position, arm in enumerate(arms)}
    seen = [trial for trial in study.trials if trial.reward is not None and trial.arm in where]
    ticks: list[Any] = [domain.parameters(int(arm))[name] for arm in arms]
    xs: Array = np.arange(len(arms), dtype=np.float64)
    if isinstance(parameter, Choice):
        ax.errorbar(xs, sign * mean, yerr=width * std, fmt="s", color=MODEL, capsize=4, label=band)
        ax.set_xticks(xs, [str(tick) for tick in ticks])
    else:
        xs = np.array(ticks, dtype=np.float64)
        ax.fill_between(
            xs, sign * mean - width * std, sign * mean + width * std, color=MODEL, alpha=0.18, lw=0, label=band
        )
        ax.plot(xs, sign * mean, color=MODEL, marker=".", label="posterior mean")
        if isinstance(parameter, Float | Int) and parameter.log:
            ax.set_xscale("log")
    at = [xs[where[int(trial.arm or 0)]] for trial in seen]
    ax.plot(at, [sign * float(trial.reward or 0.0) for trial in seen], "o", ms=4, color=OBSERVED, label="observed")
    ax.set(xlabel=name, title=f"Posterior along {name}")
    ax.legend(frameon=False, fontsize=8)
