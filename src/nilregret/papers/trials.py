"""Trials of several policies in the same environments, in processes.

Trial i of a figure is one environment (a function, a row of a data set). Every policy decides there under the same
noise, so that policies are compared in pairs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from .._utils.blas import one_thread
from .._utils.checks import Array
from .._utils.errors import NoRegretWarning
from .._utils.executors import results_of
from ..simulation.environments import Environment
from ..simulation.results import Run
from ..simulation.runner import IDLE, simulate_all
from ..slots.objective import SATURATED
from ..study.direction import AnyPolicy
from .figure import Job, kept_rounds

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
