"""What a tuning run shows: a live line in a terminal, plain lines elsewhere, a table at the end."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from ..record import Trial
from ..study import Study
from .config import Job

TOP = 5  # rows of the final table


def _value(number: object) -> str:
    return f"{number:.6g}" if isinstance(number, float) else str(number)


def _parameters(trial: Trial) -> str:
    return ", ".join(f"{name}={_value(value)}" for name, value in (trial.parameters or {}).items())


class Live:
    """A progress bar with the best value so far; without a terminal, one line a trial."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._console = Console(highlight=False, soft_wrap=True)
        self._best: float | None = None
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[best]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task(job.name, total=job.trials, best="")

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def begun(self, study: Study) -> None:
        """Say where the study stands."""
        done = [trial for trial in study.trials if trial.state != "pending"]
        for trial in done:
            self._keep_best(trial)
        if done:
            self._say(f"Continuing {self._job.name!r}: {len(done)} of {self._job.trials} trials are on record.")
        else:
            combinations = len(self._job.domain)
            self._say(f"{self._job.name!r}: {self._job.trials} trials on {combinations} parameter combinations.")
        self._show(len(done))

    def ended(self, study: Study, trial: Trial) -> None:
        """Show one trial."""
        self._keep_best(trial)
        result = f"failed: {trial.reason}" if trial.reward is None else _value(self._job.sign * trial.reward)
        if trial.reward is None or not self._console.is_terminal:
            self._say(f"trial {trial.number + 1}: {_parameters(trial)} -> {result}  ({self._best_text()})")
        self._show(sum(trial.state != "pending" for trial in study.trials))

    def interrupted(self, study: Study) -> None:
        """Say that nothing is lost."""
        done = sum(trial.state != "pending" for trial in study.trials)
        self._say(f"Stopped after {done} of {self._job.trials} trials; run the same command again to go on.")

    def _keep_best(self, trial: Trial) -> None:
        if trial.reward is not None and (self._best is None or trial.reward > self._best):
            self._best = trial.reward

    def _best_text(self) -> str:
        return "no value yet" if self._best is None else f"best {_value(self._job.sign * self._best)}"

    def _show(self, done: int) -> None:
        self._progress.update(self._task, completed=done, best=self._best_text())

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False)


def table(job: Job, study: Study) -> None:
    """The best parameter combinations by posterior mean."""
    console = Console(highlight=False)
    answered: dict[int, list[Trial]] = {}
    for trial in study.trials:
        if trial.reward is not None and trial.arm is not None:
            answered.setdefault(trial.arm, []).append(trial)
    failed = sum(trial.state == "failed" for trial in study.trials)
    if answered:
        console.print(_best_table(job, study, answered))
    console.print(
        f"{len(study.trials)} trials, {failed} failed, {len(answered)} combinations tried; "
        f"study {study.name!r} in {job.storage}",
        markup=False,
        soft_wrap=True,
    )


def _best_table(job: Job, study: Study, answered: dict[int, list[Trial]]) -> Table:
    arms = list(answered)
    mean, std = study.predict(job.domain.points[arms])
    names = list(job.domain.parameters(0))
    headings = [*names, "tried", "average", "posterior mean", "std"]
    result = Table(*headings, title=f"{job.name}: best by posterior mean")
    for position in sorted(range(len(arms)), key=lambda i: -mean[i])[:TOP]:
        trials = answered[arms[position]]
        average = sum(trial.reward or 0.0 for trial in trials) / len(trials)
        shown: dict[str, Any] = trials[0].parameters or {}
        result.add_row(
            *(_value(shown[name]) for name in names),
            str(len(trials)),
            _value(job.sign * average),
            _value(job.sign * float(mean[position])),
            f"{std[position]:.2g}",
        )
    return result
