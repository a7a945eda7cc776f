"""What a tuning run shows: a line a trial, a progress bar where there is a terminal, a table at the end."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

import numpy as np
from tabulate import tabulate
from tqdm import tqdm

from ..._utils.checks import many
from ...domains.domain import Arms
from ...storage.record import Trial
from ...study.study import Study
from .config import TuningFile

TOP = 5  # rows of the final table


def _value(number: object) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _parameters(trial: Trial) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in (trial.parameters or {}).items())


class Live:
    """One line a trial, under which a terminal shows how far it is and the best value so far."""

    def __init__(self, job: TuningFile) -> None:
        self._job = job
        self._best: float | None = None
        self._unmet = False  # whether a trial violated something
        self._bar = tqdm(
            total=job.trials,
            desc=job.name,
            unit="trial",
            file=sys.stdout,
            disable=None,
            leave=False,
            dynamic_ncols=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def begun(self, study: Study) -> None:
        """Say where the study stands."""
        done = [trial for trial in study.trials if trial.state != "pending"]
        for trial in done:
            self._keep_best(trial)
        if done:
            self._say(
                f"Continuing {self._job.name!r}: {many(len(done), 'trial')} on record, {self._job.trials} wanted."
            )
        else:
            domain = self._job.domain
            where = f"{many(len(domain), 'combination')} of" if isinstance(domain, Arms) else "a continuous space of"
            count = len(self._job.space.parameters)
            trials, parameters = many(self._job.trials, "trial"), many(count, "parameter")
            self._say(f"{self._job.name!r}: {trials} on {where} {parameters}.")
        self._show(len(done))

    def ended(self, study: Study, trial: Trial) -> None:
        """Show one trial."""
        self._keep_best(trial)
        result = f"failed: {trial.reason}" if trial.reward is None else _value(trial.reward)
        if trial.state == "abandoned" and trial.abandoned is not None:
            result = f"abandoned: {trial.abandoned.reason}"
        result += ", not feasible" if trial.feasible is False else ""
        self._say(f"trial {trial.number}: {_parameters(trial)} -> {result}  ({self._best_text()})")
        self._show(sum(trial.state != "pending" for trial in study.trials))

    def interrupted(self, study: Study) -> None:
        """Say that nothing is lost."""
        done = sum(trial.state != "pending" for trial in study.trials)
        self._say(f"Stopped after {done} of {many(self._job.trials, 'trial')}; run the same command again to go on.")

    def _keep_best(self, trial: Trial) -> None:
        self._unmet = self._unmet or trial.feasible is False
        if trial.reward is not None and trial.feasible is not False:
            better = max if self._job.goal == "maximize" else min
            self._best = trial.reward if self._best is None else better(trial.reward, self._best)

    def _best_text(self) -> str:
        none = "nothing feasible yet" if self._unmet else "no value yet"
        return none if self._best is None else f"best {_value(self._best)}"

    def _show(self, done: int) -> None:
        self._bar.n = done
        self._bar.set_postfix_str(self._best_text())

    def _say(self, text: str) -> None:
        tqdm.write(text, file=sys.stdout)
        sys.stdout.flush()


def summary(job: TuningFile, study: Study) -> str:
    """The best parameter combinations by posterior mean, and where the study is."""
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
        rules = " and ".join(map(str, job.limits.each))
        return f"\n{job.name}: no combination satisfied {rules}, so there is no best one\n\n{end}"
    return f"{_best_table(job, study, feasible)}\n{end}" if answered else end


def _feasible(trials: list[Trial]) -> bool:
    """Whether the constraint values told of a combination are at most 0 on average."""
    told = [trial.constraints for trial in trials if trial.constraints is not None]
    return not told or bool(np.mean(told, axis=0).max() <= 0.0)


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
    of = ", of those that satisfied all constraints" if job.limits.count else ""
    listing = tabulate(rows, headings, tablefmt="simple", disable_numparse=True, stralign="right")
    return f"\n{job.name}: best by posterior mean{of}\n\n{listing}\n"
