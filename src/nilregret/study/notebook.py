"""Studies and results as tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._utils.numerals import html_table
from ..storage.record import Trial
from .best import told_best, without_violation
from .definition import constraint_names
from .direction import AnyPolicy, Goal

MOST_ROWS = 10  # The last trials, and the best one if it is earlier.
MOST_COLUMNS = 8  # Parameters or coordinates.


def study_html(
    policy: AnyPolicy, goal: Goal, trials: Sequence[Trial], *, caption: str, about: Mapping[str, Any]
) -> str:
    """Returns the last trials of a study, with the best value told in bold type."""
    best = told_best(without_violation(policy, trials), goal)
    return trials_html(trials, caption=caption, best=None if best is None else best.number, about=about)


def trials_html(trials: Sequence[Trial], *, caption: str, best: int | None, about: Mapping[str, Any]) -> str:
    """Returns a table of the last trials, with the best one in bold type.

    Args:
        trials: all of the study.
        caption: lines above the table.
        best: number of the best trial, or None.
        about: facts of the study, which name its constraints.
    """
    kept = list(trials[-MOST_ROWS:])
    if best is not None and best < len(trials) and trials[best] not in kept:
        kept = [trials[best], *kept]
    rows = [_cells(trial, about) for trial in kept]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    filled = [name for name in columns if any(row.get(name) not in ("", None) for row in rows)]
    strong = next((i for i, trial in enumerate(kept) if trial.number == best), None)
    left_out = len(trials) - len(kept)
    above = caption + (f"\nlast {min(len(trials), MOST_ROWS)} of {len(trials)} trials" if left_out else "")
    return html_table(filled, [[row.get(name) for name in filled] for row in rows], caption=above, strong=strong)


def _cells(trial: Trial, about: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the cells of a trial by heading. An empty one is None."""
    reason = trial.abandoned.reason if trial.abandoned is not None and trial.state == "abandoned" else trial.reason
    named = trial.parameters or {f"point[{i}]": value for i, value in enumerate(trial.point.tolist())}
    places = dict(list(named.items())[:MOST_COLUMNS])
    more = {"...": "..."} if len(named) > MOST_COLUMNS else {}
    told = [] if trial.constraints is None else trial.constraints.tolist()
    limits = dict(zip(constraint_names(about, len(told)), told, strict=True))
    answer = {"value": trial.reward, **limits, "reason": reason}
    return {"trial": trial.number, "state": trial.state, **places, **more, **answer}
