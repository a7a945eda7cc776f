"""The picture of the rewards by trial, with their running mean and the best reward so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...._utils.checks import Array, IndexArray
from ....policy.policy import Policy
from ....storage.record import Trial
from ....study.curves import running_mean
from ....study.direction import best_label, on_average
from ....study.study import Study
from ....study.waiting import counted_trials
from .pictures import (
    COLUMNS,
    ROWS,
    Picture,
    axis,
    dots,
    empty,
    layer,
    line,
    lines_picture,
    many,
    short,
    spread_evenly,
    table,
)

TITLE = "Progress"
WINDOWS = 30  # A running mean takes this fraction of all rewards, which is smooth and still moves.
SHORTEST, CLICKS = 5, 50  # rewards in a running mean, at least, and clicks
MOST_TICKS = 500  # marked failures
LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)  # quantiles of answers that share a place


class Answers(NamedTuple):
    """Answered trials in their order: reward, number and plays of each, `(n,)`.

    Attributes:
        outside: True for trials that violate a constraint, `(n,)`.
        places: positions on the axis: numbers of trials, or plays so far if some trials are runs of plays, `(n,)`.
        window: number of plays in a running mean.
        left_out: trials that do not count yet, in words, or an empty text (`nilregret.study.waiting`).
    """

    rewards: Array
    numbers: Array
    plays: Array
    outside: Any
    places: Array
    window: int
    left_out: str

    @property
    def in_runs(self) -> bool:
        """True if some trial was played more than once."""
        return bool((self.plays > 1.0).any())


def of_clicks(study: Study) -> bool:
    """Returns whether rewards are 0 and 1, whose mean is a rate and whose best says nothing."""
    return isinstance(study.policy, Policy) and study.policy.objective.clicks


def reward_word(study: Study) -> str:
    """Returns "reward", or "loss" if the goal is to minimise."""
    return "reward" if study.goal == "maximize" else "loss"


def progress(study: Study, *, columns: int = COLUMNS, between: tuple[float, float] | None = None) -> Picture:
    """Returns a picture of the rewards by trial. Where they would overlap it shows their quantiles.

    If trials are runs of plays, a reward is the mean of a run. The axis then counts plays, and means are over plays.

    Args:
        study: a study with any policy.
        columns: number of columns of pixels.
        between: places of the axis that are shown, or None for all.
    """
    trials = study.trials
    told = answers_of(study)
    if told is None:
        return empty(TITLE, _nothing(trials, counted_trials(study, valued=True).left_out))
    word = reward_word(study)
    mean = running_mean(told.rewards, told.window, told.plays)
    best = best_so_far(study, told)
    shown = _between(told, between)
    summary, numbers = _summary(study, len(trials), told, mean, best), _table(study, told, mean, best, shown)
    if len(shown) > 2 * columns:
        return _dense(study, told, mean, best, shown, columns) | {"summary": summary, "table": numbers}
    series = [
        line(_mean_name(study, told), mean[shown], "main"),
        line(_best_name(study, told), best[shown], "best", style="step"),
    ][: 1 if of_clicks(study) else 2]
    return lines_picture(
        TITLE, summary, y=axis(word), marks=restart_marks(study), x=_axis(told, shown), thinned=False,
        layers=[layer(told.places[shown], *series)], dots=_marked(word, trials, told, shown), table=numbers,
    )  # fmt: skip


def _between(told: Answers, between: tuple[float, float] | None) -> IndexArray:
    """Returns the indices of the answers between two places of the axis, or of all."""
    if between is None:
        return np.arange(len(told.places))
    found = np.flatnonzero((told.places >= between[0]) & (told.places <= between[1]))
    return found if len(found) else np.arange(len(told.places))


def _axis(told: Answers, shown: IndexArray) -> dict[str, Any]:
    return runs_axis(told.places[shown], told.numbers[shown]) if told.in_runs else axis("trial")


def _dense(
    study: Study, told: Answers, mean: Array, best: Array, shown: IndexArray, columns: int
) -> Picture:  # fmt: skip
    """Returns the picture of more answers than fit: quantiles of as many answers as share a place, and their ends."""
    parts = np.array_split(shown, columns // 2)
    ends, middle = np.array([part[-1] for part in parts]), np.array([part[len(part) // 2] for part in parts])
    spread = np.array([np.quantile(told.rewards[part], LEVELS) for part in parts]).T
    least = np.array([part[told.rewards[part].argmin()] for part in parts])
    most = np.array([part[told.rewards[part].argmax()] for part in parts])
    outer = np.unique(np.concatenate([least, most]))
    each = many(len(parts[0]), "answer")
    low, quarter, half, three, high = (line("", values, "dot", style="hidden") for values in spread)
    series = [
        low,
        high,
        quarter,
        three,
        half | {"name": f"median of {each}", "style": "line", "color": "third"},
        line(f"mean of the last {many(told.window, _unit(told))}", mean[ends], "main"),
        line(_best_name(study, told), best[ends], "best", style="step"),
    ]
    bands = [
        {"layer": 0, "low": 0, "high": 1, "color": "dot", "name": f"9 in 10 of {each}"},
        {"layer": 0, "low": 2, "high": 3, "color": "dot", "name": "the middle half"},
    ]
    return lines_picture(
        TITLE, "", y=axis(reward_word(study)), x=_axis(told, middle), marks=restart_marks(study), bands=bands,
        layers=[layer(told.places[middle], *series)], thinned=True,
        dots=_marked(reward_word(study), study.trials, told, outer, name=f"lowest and highest of {each}"),
    )  # fmt: skip


def runs_axis(places: Array, numbers: Array) -> dict[str, Any]:
    """Returns an axis of plays, `(n,)`, whose readout names the trial at each place."""
    named = [f"play {int(at):,}, trial {int(number)}" for at, number in zip(places, numbers, strict=True)]
    return axis("play") | {"said": named}


def answers_of(study: Study) -> Answers | None:
    """Returns the answered trials of a study, or None before the first."""
    known = counted_trials(study, valued=True)
    answered = known.answered
    if not answered:
        return None
    by_round = not on_average(study.policy)
    plays = np.array([1.0 if trial.plays is None else trial.plays.times for trial in answered])
    numbers = np.array([trial.number for trial in answered], dtype=np.float64)
    outside = np.array([by_round and trial.constraints is not None and not trial.feasible for trial in answered])
    total = int(plays.sum())
    return Answers(
        np.array([trial.reward for trial in answered], dtype=np.float64), numbers, plays, outside,
        np.cumsum(plays) if total > len(answered) else numbers,
        max(CLICKS if of_clicks(study) else SHORTEST, total // WINDOWS), known.left_out,
    )  # fmt: skip


def _best_name(study: Study, told: Answers) -> str:
    """Returns the name of the best reward so far, which may differ from the reward of the recommended trial."""
    which = " mean of a run" * told.in_runs + " without a violation" * bool(told.outside.any())
    return best_label(study.goal) + which + " since the last restart" * bool(study.restarts)


def _mean_name(study: Study, told: Answers) -> str:
    return f"{'rate' if of_clicks(study) else 'mean'} of the last {many(told.window, _unit(told))}"


def _unit(told: Answers) -> str:
    return "play" if told.in_runs else "answer"


def _marked(
    word: str, trials: Sequence[Trial], told: Answers, kept: Any, *, name: str = ""
) -> list[dict[str, Any]]:  # fmt: skip
    shown, broken = kept[~told.outside[kept]], kept[told.outside[kept]]
    name = name or (f"mean {word} of each run of plays" if told.in_runs else f"{word} of each trial")
    marked = [dots(name, told.places[shown], told.rewards[shown], "dot")]
    if len(broken):
        marked.append(dots("constraint violated", told.places[broken], told.rewards[broken], "warn", shape="cross"))
    failed = np.array([float(trial.number) for trial in trials if trial.state == "failed"])
    failed = failed[spread_evenly(len(failed), MOST_TICKS)]
    if len(failed):
        at = failed if not told.in_runs else np.append(0.0, told.places)[np.searchsorted(told.numbers, failed)]
        marked.append(dots("failed", at, np.zeros(len(failed)), "warn", shape="tick"))
    return marked


def best_so_far(study: Study, told: Answers) -> Array:
    """Returns the best reward since the last restart of the trials that violate nothing, `(n,)`, NaN before."""
    better = np.fmax if study.goal == "maximize" else np.fmin
    parts = np.split(np.where(told.outside, np.nan, told.rewards), np.searchsorted(told.numbers, study.restarts))
    return np.concatenate([better.accumulate(part) for part in parts])


def restart_marks(study: Study) -> list[dict[str, Any]]:
    """Returns a mark for each restart, labelled with its reason."""
    pairs = zip(study.restarts, study.restart_reasons, strict=True)
    return [{"x": round_ - 0.5, "label": f"started anew: {why}"} for round_, why in pairs]


def not_yet(left_out: str) -> str:
    """Returns a sentence on the trials that do not count yet, for the end of a line."""
    return f" Not counted yet: {left_out}." if left_out else ""


def _nothing(trials: Sequence[Trial], left_out: str) -> str:
    if left_out:
        return f"No trial counts yet: {left_out}."
    if not len(trials):
        return "Nothing has been asked yet, so there is nothing to see."
    failed = sum(trial.state == "failed" for trial in trials)
    if failed == len(trials):
        every = "The one trial there was failed" if failed == 1 else f"All of {many(failed, 'trial')} failed"
        return f"{every}, so no value is known. The list of trials says why."
    return f"{many(len(trials), 'trial')}, and none has been answered yet."


def _summary(study: Study, asked: int, told: Answers, mean: Array, best: Array) -> str:
    window, plays, clicks = told.window, int(told.plays.sum()), of_clicks(study)
    word = "rate" if clicks else f"mean {reward_word(study)}"
    count = f"{many(len(told.rewards), 'answer')} of {many(asked, 'trial')}"
    if told.in_runs:
        count += f", of {many(plays, 'play')} in all; each play counts once"
    if plays >= 2 * window:
        then = float(mean[np.searchsorted(np.cumsum(told.plays), window)])
        which = f"plays, to {short(mean[-1])} in the last" if told.in_runs else f"to {short(mean[-1])} in the last"
        change = f"the {word} went from {short(then)} in the first {window:,} {which}"
    else:
        change = f"the {word} is {short(float(told.rewards @ told.plays) / plays)}"
    ever = (
        f"; the {_best_name(study, told)} is {short(float(best[-1]))}" if np.isfinite(best[-1]) and not clicks else ""
    )
    return f"{count}: {change}{ever}." + not_yet(told.left_out)


def _table(study: Study, told: Answers, mean: Array, best: Array, shown: IndexArray) -> dict[str, Any]:
    word, runs = reward_word(study), told.in_runs
    counted = ["plays so far", "plays"] if runs else []
    head = ["trial", *counted, f"mean {word}" if runs else word, _mean_name(study, told), _best_name(study, told)]
    kept = shown[spread_evenly(len(shown), ROWS)].tolist()

    def row(i: int) -> list[object]:
        counts = [int(told.places[i]), int(told.plays[i])] if runs else []
        return [int(told.numbers[i]), *counts, told.rewards[i], mean[i], best[i]]

    return table(head, map(row, kept))
