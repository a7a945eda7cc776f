"""The status of a study, for a row of the list and for the top of its page."""

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
from .domains import domain_text
from .pictures import duration, many, reward_text, short
from .progress import reward_word

RECENT = 20  # latest trials that decide whether a study is failing
QUIET = 86_400.0  # seconds without an event after which a study with pending trials is called quiet
FINISHED = 3600.0  # seconds without an event after which a study without pending trials is called quiet
FRESH = ("running", "waiting")  # states that end with time if nothing happens
LONGEST_NUMBER = 20


def order_of(study: Study) -> int:
    """Returns the position of the last event, which grows with each event of a study."""
    trials = study.trials
    return trials.order if isinstance(trials, Record) else len(trials)


def is_unchanged(study: Study, known: str, *, now: float) -> bool:
    """Returns True if the status is the same as when it had this value of "known".

    Args:
        study: a study with any policy.
        known: the entry "known" of an earlier status.
        now: present time in Unix seconds.
    """
    order, _, until = known.partition("_")
    if order != str(order_of(study)):
        return False
    return until == "" or (until.lstrip("-").isdecimal() and len(until) < LONGEST_NUMBER and now <= int(until))


def status(study: Study, *, now: float) -> dict[str, Any]:
    """Returns counts of trials, times of the last events, the best trial, and a state such as "running".

    Args:
        study: a study with any policy.
        now: present time in Unix seconds.
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
    until = math.ceil(last + _seconds_until_quiet(states)) if last is not None and state in FRESH else ""
    return {
        "goal": study.goal, "word": reward_word(study), "algorithm": study.policy.algorithm, "order": order,
        "trials": len(trials), "observed": states["observed"], "pending": states["pending"],
        "plays": sum(trial.times for trial in trials if trial.reward is not None), "failed": states["failed"],
        "abandoned": states["abandoned"], "last_told_at": last_told, "last_asked_at": last_asked, "last_at": last,
        "state": state, "state_why": why, "best": best, "why_no_best": why_no_best,
        "known": f"{order}_{until}",
    }  # fmt: skip


def status_of_summary(stored: StoredStudy, known: Summary, *, now: float) -> dict[str, Any]:
    """Returns the status of a study that is not open, from its stored summary, with the best reward told."""
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
    """Returns "empty", "failing", "waiting", "quiet" or "running", and an explanation."""
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
    if now - last > _seconds_until_quiet(states):
        pending = states["pending"] > 0
        return "quiet", "nothing has happened for a day" if pending else "no trial is open, and none has been asked for"
    if not states["observed"]:
        return "waiting", "no answer has come yet"
    return "running", "active within the day" if states["pending"] else "active within the hour"


def _seconds_until_quiet(states: Mapping[TrialState, int]) -> float:
    """Returns the seconds after the last event until a study is called quiet."""
    return QUIET if states["pending"] else FINISHED


def _best(study: Study) -> tuple[dict[str, Any] | None, str]:
    """Returns the recommended trial with its posterior, or None and the reason why there is none."""
    try:
        best = study.best()
    except TrialError as error:
        return None, str(error)
    found: dict[str, Any] = {
        "number": best.number, "where": where(best), "reward": reward_text(best),
        "context": None if best.context is None else short_context(best), "mean": None, "lower": None, "upper": None,
    }  # fmt: skip
    if isinstance(study.policy, Policy):
        mean, _ = study.predict(best.point[None], context=best.context)
        lower, upper = study.bounds(best.point[None], context=best.context)
        found |= {"mean": short(float(mean[0])), "lower": short(float(lower[0])), "upper": short(float(upper[0]))}
    return found, ""


def short_context(trial: Trial) -> str:
    """Returns the context of a trial in a line."""
    named = trial.context_parameters
    if named is not None:
        return ", ".join(f"{name}={short(value)}" for name, value in named.items())
    return "" if trial.context is None else ", ".join(short(value) for value in trial.context.tolist())


def description(study: Study) -> list[tuple[str, str]]:
    """Returns the settings of a study as pairs of a name and a text."""
    facts = [
        ("policy", study.policy.algorithm), ("goal", f"{study.goal} the {reward_word(study)}"),
        ("to choose from", domain_text(study.policy.domain)),
    ]  # fmt: skip
    if study.policy.context is not None:
        facts.append(("contexts", domain_text(study.policy.context)))
    if study.policy.constraint_count:
        facts.append(("constraints", str(study.policy.constraint_count)))
    facts.append(("seed", str(study.seed)))
    return facts + [
        ("answers", _deadline_text(Rule.of(dict(study.about)))) if name == FACT else (name, str(value))
        for name, value in study.about.items()
    ]


def _deadline_text(rule: Rule) -> str:
    """Returns a text on the deadline of a trial, and on the outcome that is set then."""
    instead = "nothing" if rule.default_reward is None else short(rule.default_reward)
    what = {
        "abandon": "then the trial is given up", "fail": "then it is told to have failed",
        "reward": f"then {instead} is told instead", "censor": f"and until they come they count as {instead}",
        "silence": f"and as time goes by silence comes to count as {instead}",
    }[rule.on_deadline]  # fmt: skip
    return "are waited for " + ("for ever" if rule.deadline is None else duration(rule.deadline)) + f", {what}"
