"""How a study went: every reward, the mean of the last ones, the highest told so far, or the lowest loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...._utils.checks import Array
from ....storage.record import Trial
from ....study.direction import best_label, on_average
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


class _Went(NamedTuple):
    """Answers in the order of their trials: `rewards`, `numbers` of the trials, `plays` of each, `outside`, `(n,)`.

    `places` are those on the axis: the number of the trial, or where trials are runs of plays, the plays until its end.
    """

    rewards: Array
    numbers: Array
    plays: Array
    outside: Any
    places: Array
    window: int

    @property
    def in_runs(self) -> bool:
        """Whether some trial was played more than once."""
        return bool((self.plays > 1.0).any())


def told_word(study: Study) -> str:
    """What is told: rewards, or losses where the goal is to minimise."""
    return "reward" if study.goal == "maximize" else "loss"


def progress(study: Study, *, columns: int = COLUMNS) -> Picture:
    """The rewards by trial, thinned to the columns of a screen: lowest and highest of each.

    Where a trial is a run of plays its reward is their mean: then plays are counted, and means are those of plays.

    Args:
        study: of any kind.
        columns: of pixels.
    """
    trials = study.trials
    answered = [trial for trial in trials if trial.reward is not None]
    if not answered:
        return empty(TITLE, _nothing(trials))
    word, went = told_word(study), _went(answered, by_round=not on_average(study.policy))
    mean = running_mean(went.rewards, went.window, went.plays)
    best = best_so_far(study, went.rewards, went.outside)
    kept = thinned(went.rewards, columns)
    series = [
        line(f"mean of the last {many(went.window, _unit(went))}", mean[kept], "main"),
        line(_best_name(study, went), best[kept], "best", style="step"),
    ]
    return {
        "kind": "lines", "title": TITLE, "summary": _summary(study, len(trials), went, mean, best),
        "x": runs_axis(went.places[kept], went.numbers[kept]) if went.in_runs else axis("trial"), "y": axis(word),
        "layers": [{"x": went.places[kept].tolist(), "series": series}], "bands": [],
        "dots": _marked(word, trials, went, kept), "marks": restart_marks(study),
        "thinned": len(kept) < len(answered), "table": _table(study, went, mean, best),
    }  # fmt: skip


def runs_axis(places: Array, numbers: Array) -> dict[str, Any]:
    """An axis of plays, `(n,)`, on which each place says which trial it is."""
    named = [f"play {int(at):,}, trial {int(number)}" for at, number in zip(places, numbers, strict=True)]
    return axis("play") | {"said": named}


def _went(answered: Sequence[Trial], *, by_round: bool) -> _Went:
    plays = np.array([1.0 if trial.plays is None else trial.plays.times for trial in answered])
    numbers = np.array([trial.number for trial in answered], dtype=np.float64)
    outside = np.array([by_round and trial.constraints is not None and not trial.feasible for trial in answered])
    total = int(plays.sum())
    return _Went(
        np.array([trial.reward for trial in answered], dtype=np.float64), numbers, plays, outside,
        np.cumsum(plays) if total > len(answered) else numbers, max(SHORTEST, total // WINDOWS),
    )  # fmt: skip


def _best_name(study: Study, went: _Went) -> str:
    """Of the best of what was told; what is recommended goes by the posterior, and may be another trial."""
    return best_label(study.goal) + " mean of a run" * went.in_runs + " without a violation" * bool(went.outside.any())


def _unit(went: _Went) -> str:
    return "play" if went.in_runs else "answer"


def _marked(word: str, trials: Sequence[Trial], went: _Went, kept: Any) -> list[dict[str, Any]]:
    shown, broken = kept[~went.outside[kept]], kept[went.outside[kept]]
    name = f"mean {word} of each run of plays" if went.in_runs else f"{word} of each trial"
    marked = [dots(name, went.places[shown], went.rewards[shown], "dot")]
    if len(broken):
        marked.append(dots("constraint violated", went.places[broken], went.rewards[broken], "warn", shape="cross"))
    failed = np.array([float(trial.number) for trial in trials if trial.state == "failed"])
    failed = failed[spread_evenly(len(failed), MOST_TICKS)]
    if len(failed):
        at = failed if not went.in_runs else np.append(0.0, went.places)[np.searchsorted(went.numbers, failed)]
        marked.append(dots("failed", at, np.zeros(len(failed)), "warn", shape="tick"))
    return marked


def best_so_far(study: Study, rewards: Array, outside: Any) -> Array:
    """The best of the rewards that violated nothing, `(n,)`; NaN before the first."""
    better = np.fmax if study.goal == "maximize" else np.fmin
    return np.asarray(better.accumulate(np.where(outside, np.nan, rewards)))


def restart_marks(study: Study) -> list[dict[str, Any]]:
    """Where the memory was cut, each with why."""
    pairs = zip(study.restarts, study.restart_reasons, strict=True)
    return [{"x": round_ - 0.5, "label": f"started anew: {why}"} for round_, why in pairs]


def _nothing(trials: Sequence[Trial]) -> str:
    if not len(trials):
        return "Nothing has been asked yet, so there is nothing to see."
    failed = sum(trial.state == "failed" for trial in trials)
    if failed == len(trials):
        every = "The one trial there was failed" if failed == 1 else f"All of {many(failed, 'trial')} failed"
        return f"{every}, so no value is known. The list of trials says why."
    return f"{many(len(trials), 'trial')}, and none has been answered yet."


def _summary(study: Study, asked: int, went: _Went, mean: Array, best: Array) -> str:
    word, window, plays = told_word(study), went.window, int(went.plays.sum())
    count = f"{many(len(went.rewards), 'answer')} of {many(asked, 'trial')}"
    if went.in_runs:
        count += f", of {many(plays, 'play')} in all; each play counts once"
    if plays >= 2 * window:
        then = float(mean[np.searchsorted(np.cumsum(went.plays), window)])
        which = f"plays, to {short(mean[-1])} in the last" if went.in_runs else f"to {short(mean[-1])} in the last"
        went_so = f"the mean {word} went from {short(then)} in the first {window:,} {which}"
    else:
        went_so = f"the mean {word} is {short(float(went.rewards @ went.plays) / plays)}"
    told = f"the {_best_name(study, went)} is"
    ever = f"; {told} {short(float(best[-1]))}" if np.isfinite(best[-1]) else ""
    return f"{count}: {went_so}{ever}."


def _table(study: Study, went: _Went, mean: Array, best: Array) -> dict[str, Any]:
    word, runs, last = told_word(study), went.in_runs, f"mean of the last {many(went.window, _unit(went))}"
    head = [
        "trial",
        *(["plays so far", "plays"] if runs else []),
        f"mean {word}" if runs else word,
        last,
        _best_name(study, went),
    ]
    kept = spread_evenly(len(went.places), ROWS).tolist()

    def row(i: int) -> list[object]:
        counts = [int(went.places[i]), int(went.plays[i])] if runs else []
        return [int(went.numbers[i]), *counts, went.rewards[i], mean[i], best[i]]

    return table(head, map(row, kept))
