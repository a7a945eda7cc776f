"""The list of trials by page, the record of a trial, and why it was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._utils.errors import InvalidInput
from ....storage.record import Trial
from ....study.direction import on_average
from ....study.explanation import Candidate, Explanation
from ....study.formatting import where
from ....study.study import Study
from ....study.trial_json import trial_json
from .pictures import many, reward_text, short
from .status import short_context

PER_PAGE = 50
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
STATES = ("observed", "pending", "failed", "abandoned")


def trials_page(study: Study, query: Mapping[str, str]) -> dict[str, Any]:
    """Returns a page of the trials, the latest first.

    Args:
        study: a study with any policy.
        query: "state" is one of `STATES` or "" for all. "page" counts from 1.
    """
    state, text = query.get("state", ""), query.get("page", "1") or "1"
    if state and state not in STATES:
        raise InvalidInput(f"There are no trials of the state {state[:20]!r}: there are {', '.join(STATES)}.")
    if not (text.isdecimal() and len(text) < 10 and int(text) > 0):
        raise InvalidInput(f"There is no page {text[:20]!r}: pages are numbered from 1.")
    trials = study.trials
    found = [trial for trial in trials[: len(trials)] if not state or trial.state == state]
    pages = max(1, -(-len(found) // PER_PAGE))
    page = min(int(text), pages)
    end = len(found) - (page - 1) * PER_PAGE
    shown = found[max(0, end - PER_PAGE) : end][::-1]
    return {
        "rows": [_row(study, trial) for trial in shown], "count": len(found), "page": page, "pages": pages,
        "state": state, "states": STATES, "contexts": study.policy.context is not None,
        "constraints": any(trial.constraints is not None for trial in shown),
    }  # fmt: skip


def _row(study: Study, trial: Trial) -> dict[str, Any]:
    record = trial_json(trial)
    limits = record["constraints"]
    marks = (
        [f"to be played {many(trial.repeats, 'time')}"] * (trial.repeats > 1)
        + ["at random"] * trial.explored
        + ["late"] * trial.late
        + ["corrected"] * bool(trial.corrected)
    )
    return {
        "number": trial.number, "state": trial.state, "where": where(trial), "context": short_context(trial),
        "reward": reward_text(trial), "reason": record["reason"] or "",
        "constraints": "" if limits is None else ", ".join(short(value) for value in limits),
        "violates": trial.feasible is False and not on_average(study.policy), "asked_at": trial.asked_at,
        "told_at": trial.told_at, "marks": marks,
        "asked": trial.as_corrected().told_order != trial.asked_order,
    }  # fmt: skip


def trial_record(study: Study, number: int) -> dict[str, Any] | None:
    """Returns the record of a trial, or None if no trial has this number."""
    trials = study.trials
    if not 0 <= number < len(trials):
        return None
    trial = trials[number]
    earlier = [
        {"reward": reward_text(answer) if answer.reward is not None else f"failed: {answer.reason}", "at": answer.time}
        for answer in trial.corrected
    ]
    return _row(study, trial) | {
        "corrected": earlier, "lease_until": trial.lease_until, "last": len(trials) - 1,
        "given_up": None if trial.abandoned is None else trial.abandoned.reason,
    }  # fmt: skip


def explanation_view(found: Explanation) -> dict[str, Any]:
    """Returns an explanation as a sentence, a table of the candidates and further facts."""
    candidates = [("chosen", found.chosen), ("runner-up", found.runner_up)]
    shown = [(name, each) for name, each in candidates if each is not None]
    return {
        "why": found.why,
        "facts": [(name, said.replace("+-", PLUS_MINUS)) for name, said in found.facts if said and name != "context"],
        "candidates": [_candidate(name, each) for name, each in shown], "bars": _bars(shown),
        "rule": found.rule,
    }  # fmt: skip


def _candidate(name: str, each: Candidate) -> dict[str, str]:
    figures = ("score", "mean", "std", "lower", "upper")
    return {"name": name, "where": each.name} | {key: short(getattr(each, key)) for key in figures}


def _bars(shown: list[tuple[str, Candidate]]) -> list[dict[str, Any]]:
    """Returns bounds as bars, in percent of their common range."""
    known = [
        (name, each.lower, each.mean, each.upper)
        for name, each in shown
        if each.lower is not None and each.upper is not None and each.mean is not None
    ]
    if not known:
        return []
    # The mean of a skew posterior may lie outside its bounds.
    low, high = min(min(each[1:]) for each in known), max(max(each[1:]) for each in known)
    scale = 100.0 / (high - low) if high > low else 0.0
    return [
        {
            "name": name, "from": round((lower - low) * scale, 2), "to": round((upper - low) * scale, 2),
            "mean": round((mean - low) * scale, 2), "said": f"{short(mean)}, bounds {short(lower)} to {short(upper)}",
        }
        for name, lower, mean, upper in known
    ]  # fmt: skip
