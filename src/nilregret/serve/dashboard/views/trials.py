"""The record of a trial, and why it was chosen."""

from __future__ import annotations

from typing import Any

from ....storage.trial import Answer, Trial, was_asked
from ....study.definition import constraint_names
from ....study.direction import on_average
from ....study.explanation import Candidate, Explanation
from ....study.formatting import limit_text, where
from ....study.study import Study
from ....study.trial_json import trial_json
from ....study.waiting import set_at_deadline
from ...work.collected import Collected
from .grid import marks
from .pictures import interval_bars, reward_text, said_with, short
from .progress import curves_view, reports
from .status import short_context

VERDICTS = {
    "stop": "the rule says to stop", "wait": "the rule lets it wait",
    "spared": "the rule says to stop, and it runs on to show what stopping misses",
}  # fmt: skip
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


def trial_record(study: Study, number: int) -> dict[str, Any] | None:
    """Returns the record of a trial, or None if no trial has this number."""
    trials = study.trials
    if not 0 <= number < len(trials):
        return None
    trial, said = trials[number], said_with(study)
    earlier = [
        {"reward": reward_text(answer, said) or f"{_ended(answer)}: {answer.reason}", "at": answer.time}
        for answer in trial.corrected
    ]
    record = trial_json(trial)
    limits = record["constraints"] or []
    names = constraint_names(study.about, len(limits))
    return {
        "number": trial.number, "state": trial.state, "context": short_context(trial),
        "where": where(trial, names=study.replica.roster.names),
        "reward": reward_text(trial, said), "reason": record["reason"] or "",
        "constraints": ", ".join(
            limit_text(name, value) if "constraints" in study.about else short(value)
            for name, value in zip(names, limits, strict=True)
        ),
        "metrics": [(name, short(value)) for name, value in trial.measured],
        "violates": trial.feasible is False and not on_average(study.policy), "asked_at": trial.asked_at,
        "told_at": trial.told_at, "marks": marks(trial, set_at_deadline(study)),
        "asked": was_asked(trial),
        "corrected": earlier, "lease_until": trial.lease_until, "last": len(trials) - 1,
        "curve": curves_view(study, trial), "last_report": _last_report(trial), "reports": reports(study),
        "visit": _visit(trial),
        "given_up": None if trial.abandoned is None else trial.abandoned.reason,
    }  # fmt: skip


def _visit(trial: Trial) -> list[tuple[str, str, str]]:
    """Returns name, text and address of what is known of a visit. The address is that of trials like this one."""
    said = [] if trial.event is None else [("event", trial.event, "")]
    if trial.unit is not None:
        said.append(("unit", str(trial.unit), f"?from.unit={trial.unit}&to.unit={trial.unit}"))
    if trial.kept is not None:
        said.append(("keeps the arm of", f"trial {trial.kept}", f"/{trial.kept}"))
    return said + [(name, short(value), "") for name, value in trial.facts.items()]


def rewards_view(came: Collected) -> list[dict[str, Any]]:
    """Returns several rewards of a trial, each with the time at which it came."""
    late = {(False, True): "", (True, True): " (late)", (True, False): " (late, does not count)"}
    return [
        {"key": each.key, "at": each.at, "text": short(each.reward) + late.get((each.late, each.counted), "")}
        for each in came.rewards
    ]


def _ended(answer: Answer) -> str:
    return "stopped" if answer.stopped else "failed"


def _last_report(trial: Trial) -> str:
    """Returns the last report of a trial and what the rule said of it, or an empty text."""
    if not trial.curve:
        return ""
    last = trial.curve[-1]
    said = f"; {VERDICTS[last.verdict]}" if trial.open and last.verdict in VERDICTS else ""
    return f"{short(last.value)} after step {last.step:,}{said}"


def explanation_view(found: Explanation) -> dict[str, Any]:
    """Returns an explanation as a sentence, a table of the candidates and further facts."""
    candidates = [("chosen", found.chosen), ("runner-up", found.runner_up)]
    shown = [(name, each) for name, each in candidates if each is not None]
    return {
        "why": found.why,
        "facts": [(name, said.replace("+-", PLUS_MINUS)) for name, said in found.facts if said and name != "context"],
        "candidates": [_candidate(name, each, found) for name, each in shown], "names": found.objectives,
        "bars": [_bars(shown, j) for j in range(len(found.objectives) or 1)],
        "rule": found.rule and f"{found.better} is better",
    }  # fmt: skip


def _candidate(name: str, each: Candidate, found: Explanation) -> dict[str, Any]:
    figures = ("mean", "std", "lower", "upper")
    values = [(short(of.mean), f"{short(of.lower)} to {short(of.upper)}") for of in each.objectives]
    said = {"name": name, "where": each.name, "values": values, "score": short(found.shown_score(each))}
    return said | {key: short(getattr(each, key)) for key in figures}


def _bars(shown: list[tuple[str, Candidate]], j: int) -> list[dict[str, Any]]:
    """Returns the bounds of objective j that are known as bars."""
    known = [(name, each.objectives[j]) for name, each in shown if None not in each.numbers]
    return interval_bars([
        (name, f"{short(of.mean)}, bounds {short(of.lower)} to {short(of.upper)}", of.lower, of.mean, of.upper)
        for name, of in known
    ])  # fmt: skip
