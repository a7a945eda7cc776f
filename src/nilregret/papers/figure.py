"""A figure of a paper: its name, a line about it, its size, and the function that makes it.

The module of a paper holds one `Paper`, and one decorated function for each figure:

    PAPER = Paper("srinivas", "Srinivas, Krause, Kakade and Seeger 2010")

    @PAPER.figure("5a", "Average regret on draws from the prior", trials=30, quick=(6, 200), rounds=1000)
    def synthetic(job: Job) -> Result: ...

`Paper.declare` declares several figures that one function makes with different arguments. The verdicts on statements
are at the end.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, integer
from .._utils.dataclass import dataclass
from .._utils.executors import check_executor, results_of
from .._utils.numerals import numeral
from .._utils.process_setting import one_thread
from ..environments import Environment
from ..errors import InvalidInput, NoRegretWarning
from ..simulation.metrics import Run
from ..simulation.runner import IDLE, simulate_all
from ..slots.objective import SATURATED
from ..study.curves import Curves, Interval, Panel, interval
from ..study.direction import AnyPolicy

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
    trials: int = 1
    rounds: int = 1
    quick: tuple[int, int] = (1, 1)
    data: tuple[str, ...] = ()

    def is_full(self, job: Job) -> bool:
        """Returns True if a job is as large as the figure. If nothing is random (one trial), only the rounds count."""
        return job.rounds >= self.rounds and (self.trials == 1 or job.trials >= self.trials)

    def stem(self, job: Job) -> str:
        """Returns the name of the files, which differs for smaller runs, so that they replace no full run."""
        return self.name if self.is_full(job) else f"{self.name}-quick"

    def job(self, *, trials: int | None = None, quick: bool = False, **run: Any) -> Job:
        """Returns a job of the paper's size, or of the quick size, with the other arguments of a `Job`.

        `trials` replaces the number of trials.
        """
        size, rounds = self.quick if quick else (self.trials, self.rounds)
        return Job(trials=trials or size, rounds=rounds, **run)


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
        self, name: str, about: str, **size: Any
    ) -> Callable[[Callable[[Job], Result]], Callable[[Job], Result]]:
        """Returns a decorator that declares a function as figure `name`, with the size and data of a `Figure`."""

        def declare(make: Callable[[Job], Result]) -> Callable[[Job], Result]:
            self.figures.append(Figure(name=f"{self.key}-{name}", about=about, make=make, **size))
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


# Trials of several policies in the same environments, in processes.
#
# Trial i of a figure is one environment (a function, a row of a data set). Every policy decides there under the same
# noise, so that policies are compared in pairs.

World = tuple[Environment, Mapping[str, AnyPolicy]]
Some = Callable[[Sequence[int]], list[dict[str, Array]]]  # returns the results of some trials, by name

TOGETHER = 25  # The most trials of a comparison whose runs are in memory at once.


def average_regret(run: Run) -> Array:
    """Returns R_t / t at every round, `(T,)`."""
    return run.average_regret


def cumulative_regret(run: Run) -> Array:
    """Returns R_t at every round, `(T,)`."""
    return run.cumulative_regret


def compare(
    job: Job,
    world: Callable[[int, int], World],
    measure: Callable[[Run], Array],
    *,
    rounds: int | None = None,
    groups: Sequence[int] | None = None,
) -> dict[str, Array]:
    """Returns measurements of every policy in the environment of every trial, for any number of processes.

    Args:
        job: number of trials, and how they are run.
        world: returns the environment and the policies by name for a trial and its seed.
        measure: returns the measurements of a run. If the last axis has T entries, those of `kept_rounds` are stored.
        rounds: number of rounds T. The default is that of the job.
        groups: a number for each trial, equal for trials that share their environment and differ in noise alone. Such
            trials are not independent, so that their mean becomes one replicate.

    Returns:
        The measurements by name of the policy, `(replicates, ...)`.
    """
    horizon = job.rounds if rounds is None else rounds
    kept = kept_rounds(horizon) - 1

    def some(trials: Sequence[int]) -> list[dict[str, Array]]:
        seeds = [job.seed_of(trial) for trial in trials]
        with one_thread:  # makes the environments the same on every machine and in every process
            worlds = [world(trial, seed) for trial, seed in zip(trials, seeds, strict=True)]
        measured: list[dict[str, Array]] = [{} for _ in trials]
        for name in worlds[0][1]:
            each = {seed: (policies[name], env) for seed, (env, policies) in zip(seeds, worlds, strict=True)}
            for found, run in zip(measured, simulate_all(each, horizon), strict=True):
                values = np.asarray(measure(run))
                found[name] = values[..., kept] if values.shape[-1:] == (horizon,) else values
        return measured

    stacked = _stacked(_results(job, _without_cautions(some), together=TOGETHER))
    return stacked if groups is None else {name: grouped(values, groups) for name, values in stacked.items()}


def grouped(values: Array, groups: Sequence[int]) -> Array:
    """Returns the means over the trials of each group in the order of their numbers, `(number of groups, ...)`."""
    numbers = np.asarray(groups)[: len(values)]
    return np.stack([values[numbers == number].mean(axis=0) for number in np.unique(numbers)])


def in_trials(job: Job, one: Callable[[int], dict[str, Array]]) -> dict[str, Array]:
    """Returns the results of `one(trial)` by name, stacked over the trials, `(trials, ...)`."""

    def some(trials: Sequence[int]) -> list[dict[str, Array]]:
        return [one(trial) for trial in trials]

    return _stacked(_results(job, _without_cautions(some), together=1))


def _stacked(results: list[dict[str, Array]]) -> dict[str, Array]:
    return {name: np.stack([result[name] for result in results]) for name in results[0]}


def _results(job: Job, some: Some, *, together: int) -> list[dict[str, Array]]:
    """Returns the results of `some` for all trials, and reports them as they arrive.

    Args:
        job: number of trials, and how they are run.
        some: returns the results of some trials.
        together: largest number of trials for one call in this process.
    """
    count = job.trials
    job.report(0, count)
    if job.executor is not None:
        return _reported(results_of(job.executor, some, _batches(count, 1)), job)
    if job.jobs == 1 or count == 1:
        return _reported(map(some, _batches(count, together)), job)
    import loky

    workers = min(loky.cpu_count() if job.jobs == -1 else job.jobs, count)
    # The data of `some` are sent once for a batch of trials.
    length = max(1, count // (25 * workers)) if together == 1 else min(together, -(-count // (4 * workers)))
    pool, whole = loky.get_reusable_executor(max_workers=workers, timeout=IDLE), False
    try:
        futures = [pool.submit(some, batch) for batch in _batches(count, length)]
        results = _reported((future.result() for future in futures), job)
        whole = True
    finally:
        if not whole:  # After an error or an interrupt, running trials are killed.
            pool.shutdown(wait=True, kill_workers=True)
    return results


def _batches(count: int, length: int) -> list[range]:
    """Returns the trials in batches of a length, of which the last may be shorter."""
    return [range(start, min(start + length, count)) for start in range(0, count, length)]


def _reported(batches: Iterable[list[dict[str, Array]]], job: Job) -> list[dict[str, Array]]:
    """Returns the results of all batches, and reports them as they arrive."""
    results: list[dict[str, Array]] = []
    for found in batches:
        results.extend(found)
        job.report(len(results), job.trials)
    return results


def _without_cautions(some: Some) -> Some:
    """Returns the function without warnings about scales, which are those of the paper.

    Warnings about multipliers that were cut off remain.
    """

    def quiet(trials: Sequence[int]) -> list[dict[str, Array]]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=f"(?!{SATURATED[:20]})", category=NoRegretWarning)
            return some(trials)

    return quiet


INDISTINGUISHABLE = 0.05  # fraction of the end of the highest curve


def ends(curves: Curves, names: Sequence[str] | None = None) -> str:
    """Returns the ends of the curves as text."""
    listed = list(curves.lines) if names is None else names
    return ", ".join(f"{name} {numeral(curves.mean(name)[-1], 3)}" for name in listed)


def gap(curves: Curves, lower: str, upper: str) -> Interval:
    """Returns the difference between the ends of two curves, with its 95% interval over pairs."""
    return interval(_end(curves, upper) - _end(curves, lower))


def together(verdicts: Iterable[bool | None]) -> bool | None:
    """Returns False if one of the verdicts is False, else None if one is open, else True."""
    listed = list(verdicts)
    if any(verdict is not None and not verdict for verdict in listed):
        return False
    return None if None in listed else True


def above(gap: Interval, border: float = 0.0) -> bool | None:
    """Returns True if the interval lies above the border, None if it contains the border, else False."""
    return None if gap.low <= border < gap.high else gap.low > border


def below(text: str, curves: Curves, lower: Sequence[str], upper: Sequence[str]) -> Statement:
    """Returns the statement that each curve of `lower` ends below each curve of `upper`.

    It holds if the interval of each difference is above 0. It does not hold if one of them is below 0.
    """
    gaps = {pair: gap(curves, *pair) for pair in itertools.product(lower, upper)}
    (a, b), closest = min(gaps.items(), key=lambda item: (item[1].high > 0.0, item[1].low, item[1].mean))
    measured = f"{ends(curves, [*lower, *upper])}; closest: {b} - {a} = {closest}"
    return Statement(text, measured, together(above(each) for each in gaps.values()))


def coincide(text: str, curves: Curves, names: Sequence[str]) -> Statement:
    """Returns the statement that the curves end within 5% of the height of the panel, so that they coincide in print.

    It holds if the intervals of all differences lie within these 5%. It does not hold if one lies outside.
    """
    ends_at = {name: float(curves.mean(name)[-1]) for name in curves.lines}
    ranked = sorted(names, key=ends_at.__getitem__)
    low, high = ranked[0], ranked[-1]
    apart = (ends_at[high] - ends_at[low]) / max(ends_at.values())
    measured = f"{ends(curves, names)}; {high} - {low} = {gap(curves, low, high)}, {100 * apart:.2g}% of the height"
    limit = INDISTINGUISHABLE * max(ends_at.values())
    gaps = [gap(curves, a, b) for a, b in itertools.combinations(ranked, 2)]
    return Statement(text, measured, together(within(each, limit) for each in gaps))


def within(gap: Interval, limit: float) -> bool | None:
    """Returns True if the interval lies between -limit and limit, None if a part of it does, else False."""
    if -limit <= gap.low and gap.high <= limit:
        return True
    return False if gap.low > limit or gap.high < -limit else None


def _end(curves: Curves, name: str) -> Array:
    return curves.lines[name][:, -1]


class PowerFit(NamedTuple):
    """C x^c, and the 95% interval of c over the replicates."""

    constant: float
    exponent: Interval

    def __call__(self, x: npt.ArrayLike) -> Array:
        """The fitted curve."""
        return self.constant * np.asarray(x, dtype=np.float64) ** self.exponent.mean

    def words(self, symbol: str) -> str:
        """Returns the law as text, such as "1.86 T^0.74"."""
        return f"{self.constant:.3g} {symbol}^{self.exponent.mean:.3g}"


def fit_power(x: Array, values: Array) -> PowerFit:
    """Returns the least-squares fit to the logarithms of the means over replicates.

    The interval is that of the linearised exponent. Replicate i changes c by
    sum_j w_j (y_ij / mean_j - 1) / replicates, where w are the weights of the slope. The interval is therefore valid
    if values of a replicate at different x are dependent.
    """
    means = values.mean(axis=0)
    if len(x) < 2 or not (means > 0.0).all() or not (x > 0.0).all():
        raise InvalidInput("A power law is fitted to two or more positive means at positive x.")
    log_x, log_y = np.log(x), np.log(means)
    weights = (log_x - log_x.mean()) / np.square(log_x - log_x.mean()).sum()
    exponent = interval(float(weights @ log_y) + (values / means) @ weights)
    return PowerFit(float(np.exp(log_y.mean() - exponent.mean * log_x.mean())), exponent)
