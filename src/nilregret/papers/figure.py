"""A figure of a paper: its name, a line about it, its size, and the function that makes it.

The module of a paper holds one `Paper`, and one decorated function for each figure:

    PAPER = Paper("srinivas", "Srinivas, Krause, Kakade and Seeger 2010")

    @PAPER.figure("5a", "Average regret on draws from the prior", trials=30, quick=(6, 200), rounds=1000)
    def synthetic(job: Job) -> Result: ...

`Paper.declare` declares several figures that one function makes with different arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from .._utils.checks import IndexArray, integer
from .._utils.errors import InvalidInput
from .._utils.executors import check_executor
from ..study.curves import Panel

MOST_POINTS = 300  # points of a curve


def _silent(done: int, total: int) -> None:
    """Ignores the progress."""


@final
@dataclass(frozen=True)
class Statement:
    """A statement of a paper about a figure, and its verdict.

    Attributes:
        text: the statement, and how it is measured if that is not obvious.
        measured: the measured numbers.
        holds: True if the numbers agree with the statement, or None if there are too few trials to tell.
    """

    text: str
    measured: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.holds is None:
            return "open"
        return "holds" if self.holds else "does not hold"


@final
@dataclass(frozen=True)
class Result:
    """The panels, statements and notes of a figure.

    Attributes:
        panels: the panels from left to right.
        statements: statements of the paper with their verdicts.
        notes: differences from the paper, such as other data.
    """

    panels: tuple[Panel, ...]
    statements: tuple[Statement, ...]
    notes: tuple[str, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Job:
    """The size of a figure, and the processes and data for it.

    Attributes:
        trials: number of independent repetitions, which figures without randomness ignore.
        rounds: rounds T of each trial. It is a maximum if the data fix T (the number of sensors).
        seed: seed of all trials. Trial i is the same for every number of trials and processes.
        jobs: number of processes, or -1 for one on every processor.
        executor: executor in place of processes, such as `client.get_executor()` of a cluster of Dask.
        data: folder of the data sets. The default is NILREGRET_DATA.
        report: callback that is called with (done, total) during the work.
    """

    trials: int
    rounds: int
    seed: int = 0
    jobs: int = 1
    executor: Executor | None = None
    data: Path | None = None
    report: Callable[[int, int], None] = _silent

    def __post_init__(self) -> None:
        integer("trials", self.trials, low=1)
        integer("rounds", self.rounds, low=1)
        integer("seed", self.seed, low=0)
        check_executor(self.executor)
        if isinstance(self.jobs, bool) or not isinstance(self.jobs, int) or self.jobs == 0 or self.jobs < -1:
            raise InvalidInput(f"`jobs` is {self.jobs!r}: it must be a number of processes, or -1 for all processors.")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "report": _silent, "executor": None}  # Neither can be sent to another process.

    def seed_of(self, trial: int) -> int:
        """Returns the seed of one trial: of its environment, its noise and the choices of the policies."""
        return int(np.random.SeedSequence([self.seed, trial]).generate_state(1, np.uint64)[0])


def kept_rounds(rounds: int) -> IndexArray:
    """Returns the rounds (from 1) at which curves are stored: the first, the last and evenly spaced ones between."""
    return np.unique(np.linspace(1, rounds, min(rounds, MOST_POINTS)).round().astype(np.intp))


@final
@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure that can be made again.

    Attributes:
        name: name of the figure, such as "srinivas-5a".
        about: a line about the figure.
        make: function that makes the figure.
        trials: number of trials in the paper, or ours if the paper does not say.
        rounds: number of rounds in the paper, or ours if the paper does not say.
        quick: (trials, rounds) of a quick version, with fewer trials unless nothing is random (one trial).
        data: files of the data folder, such as "light_cmu/light_cmu.npz". The figure needs any one of them.
    """

    name: str
    about: str
    make: Callable[[Job], Result]
    trials: int
    rounds: int
    quick: tuple[int, int]
    data: tuple[str, ...] = ()

    def is_full(self, job: Job) -> bool:
        """Returns True if a job is as large as the figure. If nothing is random (one trial), only the rounds count."""
        return job.rounds >= self.rounds and (self.trials == 1 or job.trials >= self.trials)

    def stem(self, job: Job) -> str:
        """Returns the name of the files, which differs for smaller runs, so that they replace no full run."""
        return self.name if self.is_full(job) else f"{self.name}-quick"

    def job(
        self,
        *,
        trials: int | None = None,
        quick: bool = False,
        seed: int = 0,
        jobs: int = 1,
        executor: Executor | None = None,
        data: Path | None = None,
        report: Callable[[int, int], None] = _silent,
    ) -> Job:
        """Returns a job of the paper's size, or of the quick size. `trials` replaces the number of trials."""
        size, rounds = self.quick if quick else (self.trials, self.rounds)
        return Job(
            trials=trials or size, rounds=rounds, seed=seed, jobs=jobs, executor=executor, data=data, report=report
        )


@final
class Paper:
    """A paper and its reproduced figures.

    Attributes:
        key: name of the module of the paper, with which the names of its figures begin.
        title: authors, year and subject.
        figures: the figures in the order of their declarations.
    """

    def __init__(self, key: str, title: str) -> None:
        self.key, self.title = key, title
        self.figures: list[Figure] = []

    def figure(
        self,
        name: str,
        about: str,
        *,
        trials: int = 1,
        rounds: int = 1,
        quick: tuple[int, int] = (1, 1),
        data: tuple[str, ...] = (),
    ) -> Callable[[Callable[[Job], Result]], Callable[[Job], Result]]:
        """Returns a decorator that declares a function as figure `name` of this paper."""

        def declare(make: Callable[[Job], Result]) -> Callable[[Job], Result]:
            full = f"{self.key}-{name}"
            self.figures.append(
                Figure(name=full, about=about, make=make, trials=trials, rounds=rounds, quick=quick, data=data)
            )
            return make

        return declare

    def declare(self, rows: Sequence[tuple[Any, ...]], **size: Any) -> None:
        """Declares a figure for each row (name, about, make, *arguments), made by `make(job, *arguments)`.

        Args:
            rows: the figures.
            size: `trials`, `rounds`, `quick` and `data` of all figures (see `figure`).
        """
        for name, about, make, *arguments in rows:
            self.figure(name, about, **size)(_bound(make, arguments))


def _bound(make: Callable[..., Result], arguments: Sequence[Any]) -> Callable[[Job], Result]:
    return lambda job: make(job, *arguments)
