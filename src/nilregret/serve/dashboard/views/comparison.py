"""Comparison of the rewards of a study with those of its first choice and of its best choice, kept throughout.

Trials that were added, such as the rows of an old log, are no choices of the study. They inform the estimates alone.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, final

import numpy as np

from ...._utils.checks import Array, IndexArray, many
from ...._utils.dataclass import dataclass
from ....errors import InvalidInput, TrialError
from ....storage.trial import Trial, was_asked
from ....study.best import has_budget, keeping
from ....study.formatting import where
from ....study.study import Study
from ....study.visits import shared_of
from ....study.waiting import counted_from, counted_trials
from .alternatives import Alternative, best_now, doubt_of, if_kept, in_plays, noise_of

SIDES = 2.0  # standard deviations on either side of an estimate, a range of 95% if the model is right
FEWEST = 2  # rewards of a comparison
WIDEST = 3.0  # Width of the range of a mean reward, in ranges of the rewards told, beyond which nothing is known of it.
FIRST = "first choice"


@final
@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Gains and losses of a study, in the units told. Gains are positive if better, also if rewards are losses.

    Attributes:
        since: number of the first trial that counts.
        trials: numbers of the answered trials, `(n,)`.
        places: positions on the axis: numbers of trials, or plays so far if some trials are runs of plays, `(n,)`.
        plays: rewards told of all trials, which is more than n if some trials are runs of plays (`switching`).
        total: sum of the rewards.
        called: "first choice", or in other words if a trial was named, or if the first one does not keep the limits.
        first: that choice in the place of every trial, or None if nothing is known of it.
        best: the best choice of now in the place of every trial, or None if there is none.
        gained: cumulative gain over that choice, `(n,)`, empty if it is not known.
        gained_half: half the width of the range of `gained`, `(n,)`.
        missed: cumulative loss against the best choice, `(n,)`, empty if it is not known.
        missed_half: half the width of the range of `missed`, `(n,)`.
        recent: number of the latest trials in `recent_cost`.
        recent_cost: loss of one play against the best choice in the latest trials, with half the width of its range.
        limits: least and largest possible mean reward.
        left_out: trials that do not count yet, in words, or an empty text (`nilregret.study.waiting`).
        alike: number of units and the correlation of their rewards, or None if no unit visits twice.
    """

    since: int
    trials: Array
    places: Array
    plays: int
    total: float
    called: str
    first: Alternative | None
    best: Alternative | None
    gained: Array
    gained_half: Array
    missed: Array
    missed_half: Array
    recent: int
    recent_cost: tuple[float, float] | None
    limits: tuple[float, float]
    left_out: str
    alike: tuple[int, float] | None = None

    @property
    def in_runs(self) -> bool:
        """True if some trial was played more than once."""
        return self.plays > len(self.trials)

    @property
    def cost(self) -> tuple[float, float] | None:
        """Total loss against the best choice with half the width of its range, or None if it is not known."""
        return (float(self.missed[-1]), float(self.missed_half[-1])) if len(self.missed) else None


def compare(study: Study, *, baseline: int | None = None) -> Comparison | None:
    """Returns the comparison of a study, or None before there are two rewards.

    Args:
        study: a study with any policy.
        baseline: number of the trial whose choice is the first one. The default is the first answered trial that was
            asked for.
    """
    trials = study.trials
    asked = len(trials)
    since = counted_from(study, asked)
    known = counted_trials(study)
    answered = [trial for trial in known.answered if since <= trial.number < asked and was_asked(trial)]
    choice = _baseline(study, baseline)
    if choice is None or len(answered) < FEWEST:
        return None
    sign = 1.0 if study.goals[0] == "maximize" else -1.0
    plays = np.array([1 if trial.plays is None else trial.plays.times for trial in answered], dtype=np.int64)
    rewards = plays * np.array([trial.reward for trial in answered], dtype=np.float64)
    noise, shared = noise_of(study, answered), shared_of(answered, rewards / plays)
    doubt = doubt_of(study, answered) * shared.doubt
    chance = shared.chance(noise, plays)
    found = if_kept(study, choice, answered, where(choice)), best_now(study, answered, _best_name(study))
    first, best = (_if_known(in_plays(each, plays, doubt), rewards / plays, plays) for each in found)
    recent = min(len(answered), max(20, len(answered) // 10))
    numbers = np.array([trial.number for trial in answered], dtype=np.float64)
    total = int(plays.sum())
    none = np.zeros(0)
    return Comparison(
        since=since, left_out=known.left_out, limits=_limits(study),
        trials=numbers, plays=total, total=float(rewards.sum()), called=_called(study, choice, baseline),
        first=first, best=best, recent=recent,
        places=np.cumsum(plays).astype(np.float64) if total > len(answered) else numbers,
        gained=none if first is None else sign * np.cumsum(rewards - first.mean),
        gained_half=none if first is None else _half_widths(first, chance),
        missed=none if best is None else np.cumsum(sign * (best.mean - rewards)),
        missed_half=none if best is None else _half_widths(best, chance),
        recent_cost=None if best is None else _recent_cost(
            best, sign * (best.mean - rewards), shared.chance(noise, plays, recent), plays, recent
        ),
        alike=shared.said,
    )  # fmt: skip


def _if_known(choice: Alternative | None, rewards: Array, plays: IndexArray) -> Alternative | None:
    """Returns a choice, or None if the range of its mean reward is absurd beside the rewards told, `(n,)`."""
    most = WIDEST * float(np.ptp(rewards) * plays.sum()) or math.inf  # If all rewards are equal, they tell no scale.
    return choice if choice is not None and 2.0 * SIDES * choice.error <= most else None


def _limits(study: Study) -> tuple[float, float]:
    """Returns the least and largest possible mean reward, as far as the policy was told what rewards are."""
    kind: Any = getattr(study.policy, "objective", None)
    if getattr(kind, "span", None) is None:
        return -math.inf, math.inf
    low, span = kind.span
    return low, math.inf if kind.counts else low + span


def _half_widths(alternative: Alternative, chance: Array) -> Array:
    """Returns half the widths of the ranges of cumulative differences from an alternative, `(n,)`."""
    # Deviations of one unknown function add up, while variances of the noise add up.
    spread = np.sqrt(chance + np.cumsum(alternative.sampled))
    return np.asarray(SIDES * np.hypot(np.cumsum(alternative.std), spread))


def _recent_cost(
    best: Alternative, losses: Array, chance: Array, plays: IndexArray, recent: int
) -> tuple[float, float]:
    """Returns the loss of one play in the latest trials, and half the width of its range."""
    count = float(plays[-recent:].sum())
    noise = math.sqrt(float(chance[-1]) + float(best.sampled[-recent:].sum()))
    spread = math.hypot(float(best.std[-recent:].sum()), noise) / count
    return float(losses[-recent:].sum()) / count, SIDES * spread


def _baseline(study: Study, number: int | None) -> Trial | None:
    trials = study.trials
    if number is not None:
        if not 0 <= number < len(trials):
            raise InvalidInput(
                f"There is no trial {number} to compare with: this study has {many(len(trials), 'trial')}, numbered "
                "from 0."
            )
        return trials[number]
    answered = [trial for trial in trials if trial.reward is not None and was_asked(trial)]
    if study.policy.constraint_count:  # A choice that violates constraints is no alternative.
        with suppress(TrialError):
            answered = study.replica.query(lambda state: keeping(study.policy, state, answered))
    return next(iter(answered), None)


def _called(study: Study, choice: Trial, number: int | None) -> str:
    """Returns the name of the choice that is compared with. The first choice is that of the first answered trial."""
    first = next((trial for trial in study.trials if trial.reward is not None and was_asked(trial)), choice)
    if choice.number == first.number:
        return FIRST
    return f"{FIRST} within the limits" if number is None else f"choice of trial {number}"


def _best_name(study: Study) -> str:
    if study.policy.context is not None:
        return "the best choice under each context" + ", mixed over all" * has_budget(study.policy)
    try:
        return study.mix().said(where) if has_budget(study.policy) else where(study.best())
    except TrialError:
        return ""
