"""Restarts of the memory with their reasons, and the present evidence of a change."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....policy.policy import Policy
from ....study.study import Study
from .pictures import (
    COLUMNS,
    ROWS,
    Picture,
    axis,
    empty,
    layer,
    line,
    lines_picture,
    many,
    short,
    spread_evenly,
    table,
    thinned,
)
from .progress import restart_marks

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
    return "Every answer counts: nothing has been forgotten."


def _evidence(study: Study) -> Picture:
    found = study.evidence
    if found is None:
        why = "This policy's memory does not weigh how much speaks for a change; memory='adaptive' does."
        return empty(EVIDENCE, why)
    values = np.asarray(found.values, dtype=np.float64)
    if not len(values):
        return empty(EVIDENCE, "No answer has been weighed yet.")
    kept, places = thinned(values, COLUMNS), np.asarray(found.trials, dtype=np.float64)
    rows = spread_evenly(len(values), ROWS).tolist()
    order = kept[np.argsort(places[kept], kind="stable")]
    now, enough = float(values[-1]), float(found.threshold)
    summary = (
        f"The evidence for a change is {short(now)} now; at {short(enough)} the policy starts anew. Where nothing "
        f"changes, chance alone is to bring that about in at most {math.exp(-enough):.2%} of runs."
    )
    drawn = layer(
        places[order],
        line("evidence for a change", values[order], "main"),
        line("enough to start anew", np.full(len(order), found.threshold), "warn"),
    )
    return lines_picture(
        EVIDENCE, summary, x=axis("trial"), y=axis("evidence, natural log"), layers=[drawn], marks=restart_marks(study),
        table=table(["trial", "evidence"], [(int(places[i]), values[i]) for i in rows]),
    )  # fmt: skip
