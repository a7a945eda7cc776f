"""What it cost to learn, and what it is worth now: for those who pay for it, in their own units.

The rewards that came in are compared with what two others would have brought: the first choice, had it been kept, and
the choice that looks best now, had it been known from the start. What came in is known; the others are estimates, and
are given with a range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from ....checks import Array
from ....errors import InvalidInput
from ....operate.words import where
from ....policy.policy import Policy
from ....record import Trial
from ....study.study import Study
from .pictures import Picture, axis, empty, line, many, short, signed, spread_evenly, table
from .progress import runs_axis, told_word
from .rivals import Rival, best_now, counted_from, has_beliefs, in_plays, kept, noise_of

TITLE = "What did it cost to learn, and what is it worth now?"
SIDES = 2.0  # standard deviations on either side: right 19 times in 20 if the model is
SUMMARY = (
    "Above the dashed line is better than the first choice; the gap to the upper line is what not knowing it cost."
)
POINTS = 200  # of a curve
ROWS = 10
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
    gained = gained_half = possible = possible_half = none
    if of_first is not None:
        gained = sign * np.cumsum(rewards - of_first.mean)
        # Deviations of one unknown function add up; those of the noise do so in squares.
        gained_half = SIDES * np.hypot(np.cumsum(of_first.std), noise * np.sqrt(count))
        if of_best is not None:
            possible = sign * np.cumsum(of_best.mean - of_first.mean)
            possible_half = SIDES * np.cumsum(of_best.std + of_first.std)
    recent = min(len(answered), max(20, len(answered) // 10))
    cost, recent_cost = None, None
    if of_best is not None:
        missed = sign * (of_best.mean - rewards)
        cost = float(missed.sum()), SIDES * math.hypot(float(of_best.std.sum()), noise * math.sqrt(float(count[-1])))
        lately = float(plays[-recent:].sum())
        spread = math.hypot(float(of_best.std[-recent:].sum()) / lately, noise / math.sqrt(lately))
        recent_cost = float(missed[-recent:].sum()) / lately, SIDES * spread
    numbers = np.array([trial.number for trial in answered], dtype=np.float64)
    return Account(
        since=since, trials=numbers, places=count.astype(np.float64) if int(count[-1]) > len(answered) else numbers,
        plays=int(count[-1]), total=float(rewards.sum()),
        first=of_first, best=of_best, noise=noise, gained=gained, gained_half=gained_half, possible=possible,
        possible_half=possible_half, cost=cost, recent_cost=recent_cost, recent=recent,
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
    from ....errors import TrialError

    try:
        return where(study.best())
    except TrialError:
        return ""


def worth(study: Study, *, baseline: int | None = None) -> dict[str, Any]:
    """The picture, and what it says in figures and sentences.

    Args:
        study: of any kind.
        baseline: see `account`.
    """
    found = account(study, baseline=baseline)
    if found is None:
        why = "There is nothing to compare yet: two answers are needed at least."
        verdict = {"said": why, "tone": ""}
        return {"picture": empty(TITLE, why), "verdict": verdict, "facts": [], "sentences": [], "notes": []}
    facts, sentences = _said(study, found)
    return {
        "picture": _picture(study, found), "verdict": _verdict(study, found), "facts": facts, "sentences": sentences,
        "notes": _notes(study, found),
    }  # fmt: skip


# -- the picture -------------------------------------------------------------------------------------------------


def _picture(study: Study, found: Account) -> Picture:
    title = f"{'Gained' if study.goal == 'maximize' else 'Saved'} in all, against the first choice"
    if not len(found.gained):
        return empty(title, "Of the choice to compare with nothing is known since the memory was cut.")
    at = spread_evenly(len(found.trials), POINTS)
    better = "gained" if study.goal == "maximize" else "saved"
    series = [
        line("range of what came in", (found.gained - found.gained_half)[at], "main", style="hidden"),
        line("range of what came in", (found.gained + found.gained_half)[at], "main", style="hidden"),
        line("what came in", found.gained[at], "main"),
    ]
    bands = [{"layer": 0, "low": 0, "high": 1, "color": "main"}]
    if len(found.possible):
        series += [
            line("range of the best choice", (found.possible - found.possible_half)[at], "best", style="hidden"),
            line("range of the best choice", (found.possible + found.possible_half)[at], "best", style="hidden"),
            line("the best choice of now, from the start", found.possible[at], "best"),
        ]
        bands.append({"layer": 0, "low": 3, "high": 4, "color": "best"})
    rows = spread_evenly(len(found.trials), ROWS).tolist()
    x = runs_axis(found.places[at], found.trials[at]) if found.in_runs else axis("trial")
    return {
        "kind": "lines", "title": title, "summary": SUMMARY, "x": x,
        "y": axis(f"{better} in all"), "zero": "the first choice, kept",
        "layers": [{"x": found.places[at].tolist(), "series": series}], "bands": bands, "dots": [],
        "marks": [],
        "table": table(
            ["trial", f"{better} so far", "from", "to", "possible with the best of now"],
            [
                (
                    int(found.trials[i]), found.gained[i], found.gained[i] - found.gained_half[i],
                    found.gained[i] + found.gained_half[i], found.possible[i] if len(found.possible) else None,
                )
                for i in rows
            ],
        ),
    }  # fmt: skip


# -- in words ----------------------------------------------------------------------------------------------------


def _verdict(study: Study, found: Account) -> dict[str, str]:
    """The answer to the question in the title, in a sentence."""
    if not len(found.gained):
        return {"said": "Of the first choice too little is known to compare with it.", "tone": ""}
    gain, half, count = float(found.gained[-1]), float(found.gained_half[-1]), found.plays
    of = f"against the first choice ({_range(gain, half)}), in {many(count, 'answer')}"
    if gain > half:
        done = "gained" if study.goal == "maximize" else "saved"
        return {"said": f"Learning has paid: {short(gain)} {done} {of}.", "tone": "good"}
    if gain < -half:
        return {
            "said": f"So far learning has cost more than it has brought: {short(-gain)} lost {of}.{_pace(found)}",
            "tone": "bad",
        }
    return {"said": f"Whether learning has paid cannot be told yet: {signed(gain)} {of}.", "tone": "unsure"}


def _pace(found: Account) -> str:
    """When it will have made up for that, as it goes at present."""
    recent = found.recent
    before = float(found.gained[-recent - 1]) if len(found.gained) > recent else 0.0
    rate = (float(found.gained[-1]) - before) / recent
    if rate <= 0.0:
        return ""
    more = math.ceil(-float(found.gained[-1]) / rate)
    return f" As in the last {recent}, it makes up for that in about {short(more)} more."


def _range(value: float, half: float) -> str:
    return f"{short(value - half)} to {short(value + half)}"


def _said(study: Study, found: Account) -> tuple[list[dict[str, str]], list[str]]:
    """Figures for those who look, sentences for those who read."""
    word, count = told_word(study), found.plays
    brought, verb = ("brought", "bring") if study.goal == "maximize" else ("cost", "cost")
    facts = [_fact(f"{word.capitalize()} so far", short(found.total), f"in {many(count, 'answer')}")]
    sentences = [f"{many(count, 'answer')} {brought} {short(found.total)} in all, {short(found.total / count)} each."]
    if found.first is not None:
        gain, half = float(found.gained[-1]), float(found.gained_half[-1])
        kept_range = _range(found.first.total, SIDES * float(found.first.std.sum()))
        sentences.append(
            f"The first choice, {found.first.name}, kept throughout, would have {brought} about "
            f"{short(found.first.total)} ({kept_range})." + _difference(study, gain, half)
        )
        name = "Gained" if study.goal == "maximize" else "Saved"
        facts.append(_fact(f"{name} against the first choice", signed(gain), _range(gain, half), _tone(gain, half)))
    if found.best is not None and found.cost is not None and found.recent_cost is not None:
        (cost, half), (each, give) = found.cost, found.recent_cost
        facts.append(_fact("What learning cost", short(cost), f"{_range(cost, half)}; not knowing the best"))
        facts.append(
            _fact(
                "What it costs now", f"{short(each)} a {_one(found)}", f"{_range(each, give)}; the last {found.recent}"
            )
        )
        sentences.append(_of_cost(found, found.best, brought, cost, half))
        facts.append(_worth_now(study, found, found.best))
        sentences.append(_now(found, found.best, verb))
    return facts, sentences


def _one(found: Account) -> str:
    """What brings one reward."""
    return "play" if found.in_runs else "trial"


def _worth_now(study: Study, found: Account, best: Rival) -> dict[str, str]:
    mean, half = _each(best, found.plays)
    if found.first is None:
        return _fact(f"A {_one(found)} is worth now", short(mean), _range(mean, half))
    sign = 1.0 if study.goal == "maximize" else -1.0
    then, spread = _each(found.first, found.plays)
    more, both = sign * (mean - then), half + spread
    what = "More" if study.goal == "maximize" else "Saved"
    return _fact(f"{what} a {_one(found)} from now on", signed(more), _range(more, both), _tone(more, both))


def _each(rival: Rival, plays: int) -> tuple[float, float]:
    """What one of the plays brings on average over the contexts that there were, and half the width of its range."""
    return rival.total / plays, SIDES * float(rival.std.sum()) / plays


def _now(found: Account, best: Rival, verb: str) -> str:
    mean, half = _each(best, found.plays)
    said = f"From now on the best choice is expected to {verb} {short(mean)} a {_one(found)} ({_range(mean, half)})"
    if found.first is None:
        return said + "."
    then, spread = _each(found.first, found.plays)
    return f"{said}, the first one {short(then)} ({_range(then, spread)})."


def _of_cost(found: Account, best: Rival, brought: str, cost: float, half: float) -> str:
    count = found.plays
    said = f"What looks best now, {best.name}, would have {brought} about {short(best.total)} from the start. "
    if cost + half <= 0.0:
        return said + f"What came in is better than that, by {short(-cost)}: learning has cost nothing."
    recent = "-" if found.recent_cost is None else short(found.recent_cost[0])
    return said + (
        f"Not to have known it cost {short(cost)} ({_range(cost, half)}): {short(cost / count)} a {_one(found)}, of "
        f"the last {found.recent} {recent}."
    )


def _difference(study: Study, gain: float, half: float) -> str:
    more, less = ("more than that came in", "less than that came in") if study.goal == "maximize" else ("saved", "lost")
    if abs(gain) <= half:
        return f" The difference, {signed(gain)}, is within what chance and doubt can do ({_range(gain, half)})."
    said = more if gain > 0 else less
    low, high = sorted((abs(gain - half), abs(gain + half)))
    return f" {short(abs(gain))} {said} ({short(low)} to {short(high)})."


def _tone(value: float, half: float) -> str:
    return "unsure" if abs(value) <= half else "good" if value > 0 else "bad"


def _fact(name: str, value: str, note: str = "", tone: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "note": note, "tone": tone}


def _notes(study: Study, found: Account) -> list[str]:
    """What to bear in mind."""
    if has_beliefs(study):
        notes = [
            "What came in is counted; what other choices would have brought is estimated by the model. Its ranges are "
            "two standard deviations to either side, right about 19 times in 20 if kernel and noise are."
        ]
    else:
        notes = [
            "What other choices would have brought is the mean of the rewards told there, give or take two standard "
            "errors."
        ]
    if found.since:
        notes.append(f"Only trials from {found.since} on count: before, the world is taken to have been another.")
    if isinstance(study.policy, Policy) and study.policy.memory.drift() is not None:
        notes.append(
            "The world is taken to drift, and the model speaks of now: what other choices would have brought in the "
            "past is judged by what they bring today."
        )
    violating = sum(trial.feasible is False for trial in study.trials[found.since :])
    if violating:
        notes.append(
            f"What came in counts the {many(violating, 'trial')} that violated constraints; the choices compared with "
            "are the first that satisfied them, unless another is named, and the best of those that did."
        )
    if study.policy.context is not None and len(found.trials) > 1:
        notes.append("Under contexts the estimates are made for some trials, evenly spread, that stand for the others.")
    states = [trial.state for trial in study.trials]
    silent, failed = states.count("pending") + states.count("abandoned"), states.count("failed")
    if silent or failed:
        left = [many(silent, "unanswered trial")] * bool(silent) + [f"{failed:,} that failed"] * bool(failed)
        notes.append(f"Not counted: {' and '.join(left)}.")
    return notes
