"""The output of a tuning run: a line for each trial, a progress bar in a terminal, and a table at the end."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from tabulate import tabulate

from ..._utils.checks import many
from ...domains.domain import Arms
from ...storage.record import Trial
from ...study.study import Study
from ..progress import Bar
from .config import TuningFile

TOP = 5  # The number of rows of the final table.


def _value(number: object) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _parameters(trial: Trial) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in (trial.parameters or {}).items())


def progress_bar(job: TuningFile) -> Bar:
    """Returns the progress bar of a tuning job on stdout, with a line for each trial."""
    return Bar(job.name, job.trials, goal=job.goal, file=sys.stdout, leave=False, line=_line)


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


def _line(trial: Trial, best: str) -> str:
    result = f"failed: {trial.reason}" if trial.reward is None else _value(trial.reward)
    if trial.state == "abandoned" and trial.abandoned is not None:
        result = f"abandoned: {trial.abandoned.reason}"
    result += ", not feasible" if trial.feasible is False else ""
    return f"trial {trial.number}: {_parameters(trial)} -> {result}  ({best})"


def summary(job: TuningFile, study: Study) -> str:
    """Returns the best parameter combinations by posterior mean, and the place of the study."""
    answered: dict[Any, list[Trial]] = {}
    for trial in study.trials:
        if trial.reward is not None:
            answered.setdefault(trial.settings, []).append(trial)
    failed = sum(trial.state == "failed" for trial in study.trials)
    feasible = [trials for trials in answered.values() if _feasible(trials)]
    end = (
        f"{many(len(study.trials), 'trial')}, {failed} failed, {many(len(answered), 'combination')} tried; "
        f"study {study.name!r} in "
        f"{job.storage}"
    )
    if answered and not feasible:
        rules = " and ".join(map(str, job.reader.each))
        return f"\n{job.name}: no combination satisfied {rules}, so there is no best one\n\n{end}"
    return f"{_best_table(job, study, feasible)}\n{end}" if answered else end


def _feasible(trials: list[Trial]) -> bool:
    """Returns whether the constraint values of a combination are at most 0 on average."""
    values = [trial.constraints for trial in trials if trial.constraints is not None]
    return not values or bool(np.mean(values, axis=0).max() <= 0.0)


def _best_table(job: TuningFile, study: Study, answered: list[list[Trial]]) -> str:
    mean, std = study.predict(np.array([trials[0].point for trials in answered]))
    rows = []
    for position in np.argsort(-mean if job.goal == "maximize" else mean, kind="stable")[:TOP]:
        trials = answered[position]
        average = sum(trial.reward or 0.0 for trial in trials) / len(trials)
        shown: dict[str, Any] = trials[0].parameters or {}
        figures = [
            len(trials),
            _value(average),
            _value(float(mean[position])),
            f"{std[position]:.2g}",
        ]
        rows.append([*(_value(shown[name]) if name in shown else "-" for name in job.space.parameters), *figures])
    headings = [*job.space.parameters, "tried", "average", "posterior mean", "std"]
    of = ", of those that satisfied all constraints" if job.reader.count else ""
    listing = tabulate(rows, headings, tablefmt="simple", disable_numparse=True, stralign="right")
    return f"\n{job.name}: best by posterior mean{of}\n\n{listing}\n"
