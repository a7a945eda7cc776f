"""Pictures of a study whose reward function changes over time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, many
from ..errors import InvalidInput
from ..study.study import Study
from .base import BEST, FAILED, MODEL, OBSERVED, new_figure, plain, reward_label
from .source import Source, study_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def changes(
    source: Source, path: str | Path, *, known: Sequence[int] = (), label: str | None = None, unit: str = "trial"
) -> None:
    """Saves a picture of a study whose reward function changes: points played, rewards, and restarts.

    Args:
        source: a study or a result with at least one answered trial, on a domain of one dimension.
        path: of the PNG.
        known: rounds at which the reward function did change, if they are known, as in a simulation.
        label: of the rewards (see `tuning`).
        unit: name of a round, such as "hour".

    Raises:
        InvalidInput: no trial has been answered, or the domain has several dimensions.
    """
    study = study_of(source)
    name, values = _played(study)
    restarts, trials = study.restarts, study.trials
    answered = [trial for trial in trials if trial.reward is not None]
    if not answered:
        raise InvalidInput("No trial has been answered yet, so there is nothing to draw.")
    figure = new_figure(9.0, 5.4)
    played, rewarded = figure.subplots(2, 1, sharex=True)
    _draw_played(played, values, np.array([trial.explored for trial in trials], dtype=bool))
    rewards = np.array([trial.reward for trial in answered], dtype=np.float64)
    _draw_rewards(rewarded, np.array([trial.number for trial in answered]), rewards)
    for ax, named in ((played, True), (rewarded, False)):  # One legend explains the lines of both panels.
        _draw_changes(ax, known, restarts, named=named)
    played.set(
        ylabel=plain(name), title=f"{plain(study.name)}: {many(len(restarts), 'restart')} in {many(len(trials), unit)}"
    )
    rewarded.set(xlabel=unit, ylabel=reward_label(study, label))
    figure.savefig(path, dpi=110)


def evidence(source: Source, path: str | Path, *, known: Sequence[int] = (), unit: str = "trial") -> None:
    """Saves a picture of the evidence for a change after each answer, with its threshold.

    Args:
        source: a study or a result of a policy that computes evidence (`memory="adaptive"`), with at least one answer.
        path: of the PNG.
        known: rounds at which the reward function did change, if they are known, as in a simulation.
        unit: name of a round, such as "hour".

    Raises:
        InvalidInput: there is no evidence to draw.
    """
    study = study_of(source)
    found, restarts = study.evidence, study.restarts
    if found is None or not len(found.trials):
        raise InvalidInput(
            "There is no evidence to draw: no answer has been looked at yet, or the policy's memory looks at none. "
            'Policies made with memory="adaptive" do.'
        )
    figure = new_figure(9.0, 3.2)
    ax = figure.subplots()
    ax.plot(found.trials, found.values, ".-", ms=3, lw=1.0, color=MODEL, label="evidence for a change")
    ax.axhline(found.threshold, color=FAILED, lw=1.0, label="enough: 1 / delta")
    _draw_changes(ax, known, restarts, named=True)
    ax.set(xlabel=unit, ylabel="log evidence", title=f"{plain(study.name)}: how much spoke for a change")
    figure.savefig(path, dpi=110)


def _draw_changes(ax: Axes, known: Sequence[int], restarts: Sequence[int], *, named: bool) -> None:
    """Adds vertical lines at known changes and at restarts, with a legend."""
    for i, round_ in enumerate(known):
        ax.axvline(round_, color=OBSERVED, lw=5, alpha=0.35, label="the world changed" if named and not i else None)
    for i, round_ in enumerate(restarts):
        ax.axvline(round_, color=BEST, lw=1.5, ls="--", label="started anew" if named and not i else None)
    ax.legend(fontsize=8, edgecolor="none", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    ax.margins(x=0.01)


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
    """Returns the name of the only coordinate and its value in every trial, `(t,)`."""
    trials = study.trials
    if study.policy.domain.dimension != 1:
        raise InvalidInput("What was played can be drawn over time for a domain of one dimension only.")
    if trials and trials[0].parameters is not None:
        (name,) = trials[0].parameters
        return name, np.array([(trial.parameters or {})[name] for trial in trials], dtype=np.float64)
    return "point", np.array([trial.point[0] for trial in trials], dtype=np.float64)
