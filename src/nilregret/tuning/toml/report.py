"""The output of a tuning run: its progress, and a table at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._utils.checks import many
from ...domains.domain import Arms
from ...storage.record import Trial
from ...study.formatting import figure
from ...study.study import Study
from ..progress import Bar
from .config import TuningFile

if TYPE_CHECKING:
    from rich.table import Table

TOP = 5  # The number of rows of the final table.
COLUMNS = 4  # Parameters that a terminal shows in a column each.
REASONS = 3  # Reasons of failures that the summary names.


def progress_bar(job: TuningFile) -> Bar:
    """Returns the progress of a tuning job on stdout."""
    return Bar(job.name, job.trials, goal=job.goal, file=sys.stdout, summary=False)


def opening_line(job: TuningFile, study: Study) -> str:
    """Returns the line that says what the job is, or where a resumed study stands."""
    done = ended_trials(study)
    if done:
        return f"Continuing {job.name!r}: {many(done, 'trial')} on record, {job.trials} wanted."
    domain = job.domain
    where = f"{many(len(domain), 'combination')} of" if isinstance(domain, Arms) else "a continuous space of"
    parameters = many(len(job.space.parameters), "parameter")
    return f"{job.name!r}: {many(job.trials, 'trial')} on {where} {parameters}."


def ended_trials(study: Study) -> int:
    """Returns the number of trials that are not pending."""
    return sum(trial.state != "pending" for trial in study.trials)


def summary(job: TuningFile, study: Study) -> list[str | Table]:
    """Returns the best parameter combinations by posterior mean, the failures, and the place of the study."""
    answered: dict[Any, list[Trial]] = {}
    for trial in study.trials:
        if trial.reward is not None:
            answered.setdefault(trial.settings, []).append(trial)
    reasons = Counter(trial.reason for trial in study.trials if trial.state == "failed")
    feasible = [trials for trials in answered.values() if _feasible(trials)]
    end = (
        f"{many(len(study.trials), 'trial')}, {reasons.total()} failed, {many(len(answered), 'combination')} tried; "
        f"study {study.name!r} in {job.storage}"
    )
    failures = [f"failed ({many(count, 'trial')}): {reason}" for reason, count in reasons.most_common(REASONS)]
    if len(reasons) > REASONS:
        failures.append(f"failed for {many(len(reasons) - REASONS, 'other reason')}")
    if answered and not feasible:
        rules = " and ".join(map(str, job.reader.each))
        return [f"\n{job.name}: no combination satisfied {rules}, so there is no best one\n", *failures, end]
    if not answered:
        return [*failures, end]
    of = ", of those that satisfied all constraints" if job.reader.count else ""
    title = f"\n{job.name}: recommended, by posterior mean{of}\n"
    return [title, _best_table(job, study, feasible), "", *failures, end]


def _feasible(trials: list[Trial]) -> bool:
    """Returns whether the constraint values of a combination are at most 0 on average."""
    values = [trial.constraints for trial in trials if trial.constraints is not None]
    return not values or bool(np.mean(values, axis=0).max() <= 0.0)


def _best_table(job: TuningFile, study: Study, answered: Sequence[list[Trial]]) -> Table:
    from ...study.terminal import is_terminal, table

    mean, std = study.predict(np.array([trials[0].point for trials in answered]))
    names = list(job.space.parameters)
    apart = len(names) <= COLUMNS or not is_terminal()
    rows: list[list[Any]] = []
    for position in np.argsort(-mean if job.goal == "maximize" else mean, kind="stable")[:TOP]:
        trials = answered[position]
        average = sum(trial.reward or 0.0 for trial in trials) / len(trials)
        shown: dict[str, Any] = trials[0].parameters or {}
        figures = [len(trials), float(average), float(mean[position]), float(std[position])]
        at = [shown.get(name, "-") for name in names] if apart else [figure(shown)]
        rows.append([*at, *figures])
    headings = [*(names if apart else ["at"]), "tried", "average", "posterior mean", "std"]
    states = ["best"] + [""] * (len(rows) - 1)
    return table(rows, headings, states=states, dispensable=["tried", "std", "average"])
