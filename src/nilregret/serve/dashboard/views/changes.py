"""Restarts of the memory with their reasons, and the present evidence of a change."""

from __future__ import annotations

import math
from typing import Any

from ...._utils.checks import many
from ....plots.restarts import evidence_panel
from ....policy.policy import Policy
from ....study.study import Study
from .pictures import Picture, drawn, empty, short

EVIDENCE = "Evidence of a change"


def changes(study: Study) -> dict[str, Any]:
    """Returns restarts with their reasons and times, and a picture of the evidence."""
    trials = study.trials
    pairs = zip(study.restarts, study.restart_reasons, strict=True)
    cuts = [
        {"round": round_, "reason": why, "at": trials[round_].asked_at if round_ < len(trials) else None}
        for round_, why in pairs
    ]
    return {"restarts": cuts, "sentence": _sentence(study, len(cuts)), "picture": _evidence(study)}


def _sentence(study: Study, cuts: int) -> str:
    policy = study.policy
    if not isinstance(policy, Policy):
        return f"{policy.algorithm} keeps no memory that could be cut."
    if cuts:
        last = study.restarts[-1]
        often = "once" if cuts == 1 else many(cuts, "time")
        return f"The policy has started anew {often}; only trials from {last} on count now."
    if policy.memory.drift() is not None:
        return "The world is taken to drift all the time: old answers count less and less, and nothing is cut."
    first = policy.memory.first_counted(0, len(study.trials))
    if first:
        return f"A window slides along: only trials from {first} on count now."
    beside = ", on a level of all rewards that may move" if policy.memory.tides else ""
    return f"Every answer counts{beside}: nothing has been forgotten."


def _evidence(study: Study) -> Picture:
    found = study.evidence
    if found is None:
        why = "This policy's memory does not weigh how much speaks for a change; memory='adaptive' does."
        return empty(EVIDENCE, why)
    if not len(found.values):
        return empty(EVIDENCE, "No answer has been weighed yet.")
    now, enough = float(found.values[-1]), float(found.threshold)
    summary = (
        f"The evidence for a change is {short(now)} now; at {short(enough)} the policy starts anew. Where nothing "
        f"changes, chance alone is to bring that about in at most {math.exp(-enough):.2%} of runs."
    )
    return drawn(EVIDENCE, summary, [evidence_panel(study)])
