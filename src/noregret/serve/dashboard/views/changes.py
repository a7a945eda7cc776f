"""When the memory was cut and why, how much speaks for a change now, and what constraints cost and have used up."""

from __future__ import annotations

import itertools
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
    line,
    many,
    short,
    spread_evenly,
    table,
    thinned,
)
from .progress import restart_marks

EVIDENCE, BUDGET = "Evidence of a change", "Budgets"
RECENT = 100
PALETTE = ("main", "best", "third", "warn")


def changes(study: Study) -> dict[str, Any]:
    """Restarts with their reasons and times, and the evidence answer by answer."""
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
    kept, places = thinned(values, COLUMNS), np.asarray(found.trials, dtype=np.float64) + 1.0
    rows = spread_evenly(len(values), ROWS).tolist()
    order = kept[np.argsort(places[kept], kind="stable")]
    xs = places[order]
    series = [
        line("evidence for a change", values[order], "main"),
        line("enough to start anew", np.full(len(order), found.threshold), "warn"),
    ]
    now, enough = float(values[-1]), float(found.threshold)
    return {
        "kind": "lines", "title": EVIDENCE,
        "summary": f"The evidence for a change is {short(now)} now; at {short(enough)} the policy starts anew.",
        "x": axis("trial"), "y": axis("evidence, natural log"), "layers": [{"x": xs.tolist(), "series": series}],
        "bands": [], "dots": [], "marks": restart_marks(study),
        "table": table(["trial", "evidence"], [(int(places[i]), values[i]) for i in rows]),
    }  # fmt: skip


# -- constraints -------------------------------------------------------------------------------------------------


def budgets(study: Study) -> dict[str, Any] | None:
    """What the constraints have used up, and what violating them costs now; None where nothing was told of any."""
    told = [trial for trial in study.trials if trial.constraints is not None]
    wanted = study.policy.constraint_count
    widest = max((len(trial.constraints) for trial in told if trial.constraints is not None), default=0)
    if not wanted and not widest:
        return None
    multipliers = study.multipliers.tolist()
    if not told:
        return {
            "rows": [], "multipliers": [short(each) for each in multipliers], "saturated": study.saturated,
            "picture": empty(BUDGET, "No constraint value has been told yet."), "infeasible": None,
        }  # fmt: skip
    rows = [trial.constraints.tolist() for trial in told if trial.constraints is not None]
    values = np.array(list(itertools.zip_longest(*rows, fillvalue=np.nan)), dtype=np.float64)  # (m, n)
    return {
        "rows": [_constraint(j, each, multipliers) for j, each in enumerate(values)],
        "multipliers": [short(each) for each in multipliers], "saturated": study.saturated,
        "picture": _used(values, np.array([trial.number + 1.0 for trial in told])), "infeasible": _infeasible(study),
    }  # fmt: skip


def _constraint(j: int, values: Any, multipliers: list[float]) -> dict[str, str]:
    known = values[np.isfinite(values)]
    share, recent = float((known > 0.0).mean()), float((known[-RECENT:] > 0.0).mean())
    total = float(known.sum())
    return {
        "name": f"constraint {j + 1}", "total": short(total),
        "verdict": "within the budget" if total <= 0.0 else "over the budget",
        "mean": short(float(known.mean())), "share": f"{share:.1%}", "recent": f"{recent:.1%}",
        "violation": short(float(np.maximum(known, 0.0).sum())),
        "multiplier": short(multipliers[j]) if j < len(multipliers) else "-",
    }  # fmt: skip


def _used(values: Any, places: Any) -> Picture:
    total = np.cumsum(np.nan_to_num(values), axis=1)
    kept = spread_evenly(total.shape[1], COLUMNS)
    series = [line(f"constraint {j + 1}", each[kept], PALETTE[j % len(PALETTE)]) for j, each in enumerate(total)]
    over = [f"constraint {j + 1} by {short(float(each[-1]))}" for j, each in enumerate(total) if each[-1] > 0.0]
    summary = f"Over its budget: {', '.join(over)}." if over else "Every constraint is within its budget so far."
    rows = spread_evenly(total.shape[1], ROWS).tolist()
    return {
        "kind": "lines", "title": "What constraints have used beyond what they may", "summary": summary,
        "x": axis("trial"), "y": axis("sum of the constraint values"), "zero": "the budget, used to the full",
        "layers": [{"x": places[kept].tolist(), "series": series}], "bands": [], "dots": [], "marks": [],
        "table": table(["trial", *(each["name"] for each in series)], [(int(places[i]), *total[:, i]) for i in rows]),
    }  # fmt: skip


def _infeasible(study: Study) -> str | None:
    if not (isinstance(study.policy, Policy) and study.policy.constraints is not None and study.policy.context is None):
        return None
    sure = study.infeasible()
    if sure is None:
        return None
    proved = f"with probability at least {sure:.3g}" if sure else "as far as is believed, and nothing is proved"
    return f"No point that was looked at can satisfy all constraints, {proved}."
