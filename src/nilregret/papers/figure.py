"""A figure of a paper as a description: a name, a line about it, and the function that makes it.

A paper's module holds one `Paper`, and one decorated function for each figure:

    PAPER = Paper("srinivas", "Srinivas, Krause, Kakade and Seeger 2010")

    @PAPER.figure("5a", "Average regret on draws from the prior", trials=30, quick=(6, 200), rounds=1000)
    def synthetic(job: Job) -> Result: ...
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from .._utils.checks import IndexArray, integer
from .._utils.errors import InvalidInput
from .._utils.executors import check_executor
from ..study.curves import Panel

MOST_POINTS = 300  # of a curve that are kept


def _silent(done: int, total: int) -> None:
    """Say nothing about the progress."""


@final
@dataclass(frozen=True)
class Statement:
    """A sentence that a paper makes about a figure, and whether it is so here.

    Attributes:
        text: what the paper says, and how that is measured where it is not plain.
        measured: the numbers found.
        holds: whether they agree with it; None where that is open, there being too few trials to tell.
    """

    text: str
    measured: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        """In words."""
        if self.holds is None:
            return "open"
        return "holds" if self.holds else "does not hold"


@final
@dataclass(frozen=True)
class Result:
    """What a figure shows, and what is to be said about it.

    Attributes:
        panels: from left to right.
        statements: of the paper.
        notes: what a reader must know, such as that the data stand in for others.
    """

    panels: tuple[Panel, ...]
    statements: tuple[Statement, ...]
    notes: tuple[str, ...] = ()


@final
@dataclass(frozen=True, kw_only=True)
class Job:
    """How large a figure is made, and with what.

    Attributes:
        trials: independent repetitions; figures without chance ignore it.
        rounds: of each, T; where the data set it (T = number of sensors), at most that many.
        seed: of everything; trial i is the same for every number of trials and of processes.
        jobs: processes; -1 for one on every processor.
        executor: does the trials instead, such as `client.get_executor()` of a cluster of Dask.
        data: the folder of the data sets; NILREGRET_DATA unless given.
        report: called with (done, total) as the work goes on.
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
        return {**self.__dict__, "report": _silent, "executor": None}  # they stay in the process that has them

    def seed_of(self, trial: int) -> int:
        """The seed of one trial: of its world, its noise and the policies' choices."""
        return int(np.random.SeedSequence([self.seed, trial]).generate_state(1, np.uint64)[0])


def kept_rounds(rounds: int) -> IndexArray:
    """The rounds (from 1) at which curves are kept: the first, the last and evenly between them."""
    return np.unique(np.linspace(1, rounds, min(rounds, MOST_POINTS)).round().astype(np.intp))


@final
@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure that can be made again.

    Attributes:
        name: such as "srinivas-5a".
        about: one line.
        make: the function that makes it.
        trials: of the paper (or, where it does not say, ours).
        rounds: likewise.
        quick: (trials, rounds) of a first look: fewer trials than the full size, unless nothing is random (one trial).
        data: files of the data folder, such as "light_cmu/light_cmu.npz", of which it needs one, the usual one first.
    """

    name: str
    about: str
    make: Callable[[Job], Result]
    trials: int
    rounds: int
    quick: tuple[int, int]
    data: tuple[str, ...] = ()

    def is_full(self, job: Job) -> bool:
        """Whether a job is no smaller than the figure; where nothing is random (one trial) the rounds alone count."""
        return job.rounds >= self.rounds and (self.trials == 1 or job.trials >= self.trials)

    def stem(self, job: Job) -> str:
        """What its files are called: a smaller run never takes the place of a full one."""
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
        """The paper's size, or a quick one; `trials` replaces either's."""
        size, rounds = self.quick if quick else (self.trials, self.rounds)
        return Job(
            trials=trials or size, rounds=rounds, seed=seed, jobs=jobs, executor=executor, data=data, report=report
        )


@final
class Paper:
    """A paper and those of its figures that are reproduced.

    Attributes:
        key: what the names of its figures begin with, the name of its module.
        title: who, when and what.
        figures: in the order in which they were declared.
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
        """Declare the decorated function as figure `name` of this paper."""

        def declare(make: Callable[[Job], Result]) -> Callable[[Job], Result]:
            full = f"{self.key}-{name}"
            self.figures.append(
                Figure(name=full, about=about, make=make, trials=trials, rounds=rounds, quick=quick, data=data)
            )
            return make

        return declare
