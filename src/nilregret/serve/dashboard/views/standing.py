"""Where a study stands, in a line of a list and at the head of its page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...._utils.errors import TrialError
from ...._utils.serialize import plain_loads
from ....policy.policy import Policy
from ....storage import StoredStudy, Summary
from ....storage.record import Record, Trial
from ....storage.trial import TrialState
from ....study.formatting import where
from ....study.study import Study
from ...deadlines import FACT, Rule
from .domains import in_words_of
from .pictures import in_words, many, short, told
from .progress import told_word

RECENT = 20  # answers that say how it goes at present
QUIET = 86_400.0  # seconds without an event after which a study is called quiet
FINISHED = 3600.0  # likewise, where no answer is waited for
FRESH = ("running", "waiting")  # states that end by themselves where nothing happens
LONGEST_NUMBER = 20


def order_of(study: Study) -> int:
    """The position of the last event: it grows with everything that happens to a study."""
    trials = study.trials
    return trials.order if isinstance(trials, Record) else len(trials)


def unchanged(study: Study, known: str, *, now: float) -> bool:
    """Whether `standing` would say what it said when this was its "known": nothing has happened, nor has a day passed.

    Args:
        study: of any kind.
        known: as it was.
        now: Unix seconds.
    """
    order, _, until = known.partition("_")
    if order != str(order_of(study)):
        return False
    return until == "" or (until.lstrip("-").isdecimal() and len(until) < LONGEST_NUMBER and now <= int(until))


def standing(study: Study, *, now: float) -> dict[str, Any]:
    """Counts, the last event, the best, and a word for it all.

    Args:
        study: of any kind.
        now: Unix seconds.
    """
    trials = study.trials
    order = trials.order if isinstance(trials, Record) else len(trials)
    trials = trials[: len(trials)]
    states = Counter(trial.state for trial in trials)
    last_told = max((trial.told_at for trial in trials if trial.told_at is not None), default=None)
    last_asked = trials[-1].asked_at if trials else None
    last = max((time for time in (last_told, last_asked) if time is not None), default=None)
    state, why = _state(trials, states, last, now)
    best, why_no_best = _best(study)
    return {
        "goal": study.goal, "word": told_word(study), "algorithm": study.policy.algorithm, "order": order,
        "trials": len(trials), "observed": states["observed"], "pending": states["pending"],
        "plays": sum(trial.times for trial in trials if trial.reward is not None), "failed": states["failed"],
        "abandoned": states["abandoned"], "last_told_at": last_told, "last_asked_at": last_asked, "last_at": last,
        "state": state, "state_why": why, "best": best, "why_no_best": why_no_best,
        "known": f"{order}_{math.ceil(last + _lasts(states))}" if last is not None and state in FRESH else f"{order}_",
    }  # fmt: skip


def summed_up(stored: StoredStudy, known: Summary, *, now: float) -> dict[str, Any]:
    """What a line of a list says of a study that nobody has opened here: as `standing`, with the best that was told."""
    states: dict[TrialState, int] = {"observed": known.observed, "pending": known.pending, "failed": known.failed}
    last = known.last_at
    state, why = _state([], states, last, now)
    best = None if known.best is None else {"reward": short(known.best), "where": None}
    return {
        "goal": stored.goal, "algorithm": plain_loads(stored.policy).get("algorithm", ""), "trials": known.trials,
        "pending": known.pending, "last_told_at": last, "state": state, "state_why": why, "best": best, "known": "",
    }  # fmt: skip


def _state(
    trials: Sequence[Trial], states: Mapping[TrialState, int], last: float | None, now: float
) -> tuple[str, str]:
    """One of "empty", "failing", "waiting", "quiet" and "running", and what is meant."""
    if last is None:
        return "empty", "nothing has been asked yet"
    ended = [trial.state for trial in trials[-RECENT:] if trial.state in ("observed", "failed")]
    if ended and all(state == "failed" for state in ended):
        every = (
            "every trial"
            if states["failed"] == len(trials)
            else "the last trial"
            if len(ended) == 1
            else f"the last {many(len(ended), 'trial')}"
        )
        return "failing", f"{every} failed"
    if now - last > _lasts(states):
        pending = states["pending"] > 0
        return "quiet", "nothing has happened for a day" if pending else "no trial is open, and none has been asked for"
    if not states["observed"]:
        return "waiting", "no answer has come yet"
    return "running", "active within the day" if states["pending"] else "active within the hour"


def _lasts(states: Mapping[TrialState, int]) -> float:
    """How many seconds after its last event a study still goes on, as far as one can tell."""
    return QUIET if states["pending"] else FINISHED


def _best(study: Study) -> tuple[dict[str, Any] | None, str]:
    """The trial that is recommended and what is believed there; None where there is none, and why."""
    try:
        best = study.best()
    except TrialError as error:
        return None, str(error)
    found: dict[str, Any] = {
        "number": best.number, "where": where(best), "reward": told(best),
        "context": None if best.context is None else short_context(best), "mean": None, "lower": None, "upper": None,
    }  # fmt: skip
    if isinstance(study.policy, Policy):
        mean, _ = study.predict(best.point[None], context=best.context)
        lower, upper = study.bounds(best.point[None], context=best.context)
        found |= {"mean": short(float(mean[0])), "lower": short(float(lower[0])), "upper": short(float(upper[0]))}
    return found, ""


def short_context(trial: Trial) -> str:
    """In a line."""
    named = trial.context_parameters
    if named is not None:
        return ", ".join(f"{name}={short(value)}" for name, value in named.items())
    return "" if trial.context is None else ", ".join(short(value) for value in trial.context.tolist())


def described(study: Study) -> list[tuple[str, str]]:
    """What was set when the study was made."""
    facts = [
        ("policy", study.policy.algorithm), ("goal", f"{study.goal} the {told_word(study)}"),
        ("to choose from", in_words_of(study.policy.domain)),
    ]  # fmt: skip
    if study.policy.context is not None:
        facts.append(("contexts", in_words_of(study.policy.context)))
    if study.policy.constraint_count:
        facts.append(("constraints", str(study.policy.constraint_count)))
    facts.append(("seed", str(study.seed)))
    return facts + [
        ("answers", _rule(Rule.of(dict(study.about)))) if name == FACT else (name, str(value))
        for name, value in study.about.items()
    ]


def _rule(rule: Rule) -> str:
    """How long an answer is waited for, and what its absence means."""
    instead = "nothing" if rule.default_reward is None else short(rule.default_reward)
    what = {
        "abandon": "then the trial is given up", "fail": "then it is told to have failed",
        "reward": f"then {instead} is told instead", "censor": f"and until they come they count as {instead}",
        "silence": f"and as time goes by silence comes to count as {instead}",
    }[rule.on_deadline]  # fmt: skip
    return "are waited for " + ("for ever" if rule.deadline is None else in_words(rule.deadline)) + f", {what}"
