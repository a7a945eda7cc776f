"""The account of a study: what came in, what the first choice would have brought, and what the best one of now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from ...._utils.checks import Array
from ...._utils.errors import InvalidInput, TrialError
from ....storage.record import Trial
from ....study.formatting import where
from ....study.study import Study
from .pictures import many
from .rivals import Rival, best_now, counted_from, in_plays, kept, noise_of

SIDES = 2.0  # standard deviations on either side: right 19 times in 20 if the model is
FEWEST = 2


@final
@dataclass(frozen=True, kw_only=True)
class Account:
    """The figures, in the units told; gains are such that more is better, also where the goal is to minimise.

    Attributes:
        since: the first trial that counts.
        trials: numbers of the answered trials, `(n,)`.
        places: where they are drawn: their numbers, or where some are runs of plays, the plays until the end of each.
        plays: rewards told of all of them; more than n where a trial is played several times (`switching`).
        total: of what was told.
        first: what the first choice would have brought, or None where nothing is known of it.
        best: likewise of what looks best now.
        noise: standard deviation of a reward about its mean.
        gained: cumulative, what came in beyond the first choice, `(n,)`; empty where that is not known.
        gained_half: half the width of its range, `(n,)`.
        possible: cumulative, what the best would have brought beyond the first choice, `(n,)`.
        possible_half: likewise.
        missed: cumulative, what not knowing the best has cost, `(n,)`; empty where that is not known.
        missed_half: half the width of its range, `(n,)`.
        cost: what not knowing the best has cost in all, and half the width of its range; None where it is not known.
        recent_cost: of one trial, of the last `recent`, likewise.
        recent: how many those are.
    """

    since: int
    trials: Array
    places: Array
    plays: int
    total: float
    first: Rival | None
    best: Rival | None
    noise: float
    gained: Array
    gained_half: Array
    possible: Array
    possible_half: Array
    missed: Array
    missed_half: Array
    cost: tuple[float, float] | None
    recent_cost: tuple[float, float] | None
    recent: int

    @property
    def in_runs(self) -> bool:
        """Whether some trial was played more than once."""
        return self.plays > len(self.trials)


def account(study: Study, *, baseline: int | None = None) -> Account | None:
    """The figures of a study; None before there are two answers.

    Args:
        study: of any kind.
        baseline: the trial whose choice the others are compared with; the first answered one unless given.
    """
    trials = study.trials
    asked = len(trials)
    since = counted_from(study, asked)
    first = _baseline(trials, baseline)
    answered = [trial for trial in trials[since:asked] if trial.reward is not None]
    if first is None or len(answered) < FEWEST:
        return None
    sign = 1.0 if study.goal == "maximize" else -1.0
    plays = np.array([1 if trial.plays is None else trial.plays.times for trial in answered], dtype=np.int64)
    rewards = plays * np.array([trial.reward for trial in answered], dtype=np.float64)
    noise = noise_of(study, answered)
    of_first = in_plays(kept(study, first, answered, where(first)), plays)
    of_best = in_plays(best_now(study, answered, _best_name(study)), plays)
    count = np.cumsum(plays)
    none = np.zeros(0)
    gained = gained_half = possible = possible_half = missed = missed_half = none
    if of_first is not None:
        gained = sign * np.cumsum(rewards - of_first.mean)
        # Deviations of one unknown function add up; those of the noise do so in squares.
        gained_half = SIDES * np.hypot(np.cumsum(of_first.std), np.sqrt(noise**2 * count + np.cumsum(of_first.sampled)))
        if of_best is not None:
            possible = sign * np.cumsum(of_best.mean - of_first.mean)
            sampled = np.cumsum(of_best.sampled + of_first.sampled)
            possible_half = SIDES * np.hypot(np.cumsum(of_best.std + of_first.std), np.sqrt(sampled))
    recent = min(len(answered), max(20, len(answered) // 10))
    cost, recent_cost = None, None
    if of_best is not None:
        each = sign * (of_best.mean - rewards)
        missed = np.cumsum(each)
        missed_half = SIDES * np.hypot(np.cumsum(of_best.std), np.sqrt(noise**2 * count + np.cumsum(of_best.sampled)))
        cost = float(missed[-1]), float(missed_half[-1])
        lately = float(plays[-recent:].sum())
        chance = math.sqrt(noise**2 * lately + float(of_best.sampled[-recent:].sum()))
        spread = math.hypot(float(of_best.std[-recent:].sum()), chance) / lately
        recent_cost = float(each[-recent:].sum()) / lately, SIDES * spread
    numbers = np.array([trial.number for trial in answered], dtype=np.float64)
    return Account(
        since=since, trials=numbers, places=count.astype(np.float64) if int(count[-1]) > len(answered) else numbers,
        plays=int(count[-1]), total=float(rewards.sum()),
        first=of_first, best=of_best, noise=noise, gained=gained, gained_half=gained_half, possible=possible,
        possible_half=possible_half, missed=missed, missed_half=missed_half, cost=cost, recent_cost=recent_cost,
        recent=recent,
    )  # fmt: skip


def _baseline(trials: Sequence[Trial], number: int | None) -> Trial | None:
    if number is not None:
        if not 0 <= number < len(trials):
            raise InvalidInput(
                f"There is no trial {number} to compare with: this study has {many(len(trials), 'trial')}, numbered "
                "from 0."
            )
        return trials[number]
    answered = (trial for trial in trials if trial.reward is not None)
    first = next(answered, None)
    if first is None or first.feasible is not False:
        return first
    return next((trial for trial in answered if trial.feasible), first)  # what may not be done is no alternative


def _best_name(study: Study) -> str:
    return "the best choice under each context" if study.policy.context is not None else _name_of_best(study)


def _name_of_best(study: Study) -> str:
    try:
        return where(study.best())
    except TrialError:
        return ""
