"""How a study went: every reward, the mean of the last ones, the best so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....checks import Array
from ....record import Trial
from ....study.study import Study
from .pictures import (
    COLUMNS,
    ROWS,
    Picture,
    axis,
    dots,
    empty,
    line,
    many,
    running_mean,
    short,
    spread_evenly,
    table,
    thinned,
)

TITLE = "Progress"
WINDOWS = 30  # running means of this share of all answers: short enough to move, long enough to be smooth
SHORTEST = 5
MOST_TICKS = 500  # failures that are marked


def told_word(study: Study) -> str:
    """What is told: rewards, or losses where the goal is to minimise."""
    return "reward" if study.goal == "maximize" else "loss"


def progress(study: Study, *, columns: int = COLUMNS) -> Picture:
    """The rewards by trial, thinned to the columns of a screen: lowest and highest of each.

    Args:
        study: of any kind.
        columns: of pixels.
    """
    trials = study.trials
    answered = [trial for trial in trials if trial.reward is not None]
    if not answered:
        return empty(TITLE, _nothing(trials))
    word = told_word(study)
    rewards = np.array([trial.reward for trial in answered], dtype=np.float64)
    places = np.array([trial.number for trial in answered], dtype=np.float64) + 1.0
    outside = np.array([trial.constraints is not None and not trial.feasible for trial in answered])
    window = max(SHORTEST, len(answered) // WINDOWS)
    mean = running_mean(rewards, window)
    best = best_so_far(study, rewards, outside)
    kept = thinned(rewards, columns)
    shown, broken = kept[~outside[kept]], kept[outside[kept]]
    failed = np.array([trial.number + 1.0 for trial in trials if trial.state == "failed"])
    failed = failed[spread_evenly(len(failed), MOST_TICKS)]
    marked = [dots(f"{word} of each trial", places[shown], rewards[shown], "dot")]
    if len(broken):
        marked.append(dots("constraint violated", places[broken], rewards[broken], "warn", shape="cross"))
    if len(failed):
        marked.append(dots("failed", failed, np.zeros(len(failed)), "warn", shape="tick"))
    series = [
        line(f"mean of the last {window}", mean[kept], "main"),
        line("best so far", best[kept], "best", style="step"),
    ]
    return {
        "kind": "lines", "title": TITLE, "summary": _summary(study, len(trials), rewards, mean, best, window),
        "x": axis("trial"), "y": axis(word), "layers": [{"x": places[kept].tolist(), "series": series}], "bands": [],
        "dots": marked, "marks": restart_marks(study), "thinned": len(kept) < len(answered),
        "table": _table(word, places, rewards, mean, best, window),
    }  # fmt: skip


def best_so_far(study: Study, rewards: Array, outside: Any) -> Array:
    """The best of the rewards that violated nothing, `(n,)`; NaN before the first."""
    better = np.fmax if study.goal == "maximize" else np.fmin
    return np.asarray(better.accumulate(np.where(outside, np.nan, rewards)))


def restart_marks(study: Study) -> list[dict[str, Any]]:
    """Where the memory was cut, each with why."""
    pairs = zip(study.restarts, study.restart_reasons, strict=True)
    return [{"x": round_ + 0.5, "label": f"started anew: {why}"} for round_, why in pairs]


def _nothing(trials: Sequence[Trial]) -> str:
    if not len(trials):
        return "Nothing has been asked yet, so there is nothing to see."
    failed = sum(trial.state == "failed" for trial in trials)
    if failed == len(trials):
        return f"All of {many(failed, 'trial')} failed, so no value is known. The list of trials says why each did."
    return f"{many(len(trials), 'trial')}, and none has been answered yet."


def _summary(study: Study, asked: int, rewards: Array, mean: Array, best: Array, window: int) -> str:
    word = told_word(study)
    count = f"{many(len(rewards), 'answer')} of {many(asked, 'trial')}"
    if len(rewards) >= 2 * window:
        first = float(rewards[:window].mean())
        went = f"the mean {word} went from {short(first)} in the first {window} to {short(mean[-1])} in the last"
    else:
        went = f"the mean {word} is {short(float(rewards.mean()))}"
    ever = f"; the best told is {short(float(best[-1]))}" if np.isfinite(best[-1]) else ""
    return f"{count}: {went}{ever}."


def _table(word: str, places: Array, rewards: Array, mean: Array, best: Array, window: int) -> dict[str, Any]:
    head = ["trial", word, f"mean of the last {window}", "best so far"]
    kept = spread_evenly(len(places), ROWS)
    return table(head, ((int(places[i]), rewards[i], mean[i], best[i]) for i in kept.tolist()))
