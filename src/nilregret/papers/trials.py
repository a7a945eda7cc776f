"""The same worlds for several policies, again and again: the part that takes the time, in processes.

Trial i of a figure is one world (a function, a row of a data set) in which every policy decides under the same noise,
so that policies are compared in pairs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .._utils.blas import one_thread
from .._utils.checks import Array
from .._utils.errors import NoRegretWarning
from .._utils.executors import results_of
from ..simulation.environments import Environment
from ..simulation.results import Run
from ..simulation.runner import IDLE, simulate
from ..slots.objective import SATURATED
from ..study.direction import AnyPolicy
from .figure import Job, kept_rounds

World = tuple[Environment, Mapping[str, AnyPolicy]]


def average_regret(run: Run) -> Array:
    """R_t / t at every round, `(T,)`."""
    return run.average_regret


def cumulative_regret(run: Run) -> Array:
    """R_t at every round, `(T,)`."""
    return run.cumulative_regret


def compare(
    job: Job,
    world: Callable[[int, int], World],
    measure: Callable[[Run], Array],
    *,
    rounds: int | None = None,
    groups: Sequence[int] | None = None,
) -> dict[str, Array]:
    """Every policy in every trial's world; the result does not depend on `job.jobs`.

    Args:
        job: how many trials, and how.
        world: from (trial, its seed) to the environment and the policies by name.
        measure: what is kept of a run. Where its last axis is the rounds, those of `kept_rounds` are.
        rounds: T; the job's unless given.
        groups: for each trial a number, equal where trials share their world and differ in noise alone. Such trials
            are not independent: they become one replicate, their mean.

    Returns:
        By name of the policy, `(replicates, ...)`.
    """
    horizon = job.rounds if rounds is None else rounds
    kept = kept_rounds(horizon) - 1

    def one(trial: int) -> dict[str, Array]:
        seed, measured = job.seed_of(trial), {}
        with one_thread:  # the same world on every machine and in every process
            env, policies = world(trial, seed)
        for name, policy in policies.items():
            values = np.asarray(measure(simulate(policy, env, horizon, seed=seed)))
            measured[name] = values[..., kept] if values.shape[-1:] == (horizon,) else values
        return measured

    results = in_processes(job, one, job.trials)
    stacked = {name: np.stack([result[name] for result in results]) for name in results[0]}
    return stacked if groups is None else {name: grouped(values, groups) for name, values in stacked.items()}


def grouped(values: Array, groups: Sequence[int]) -> Array:
    """Means over the trials of each group, `(number of groups, ...)`, in the order of the groups' numbers."""
    numbers = np.asarray(groups)[: len(values)]
    return np.stack([values[numbers == number].mean(axis=0) for number in np.unique(numbers)])


def in_processes(job: Job, one: Callable[[int], dict[str, Array]], count: int) -> list[dict[str, Array]]:
    """`one(0)`, ..., `one(count - 1)`, reported as they come; scales are as the paper has them, and not warned of."""
    one = _without_cautions(one)
    job.report(0, count)
    results: list[dict[str, Array]] = []
    if job.executor is not None:
        for result in results_of(job.executor, one, range(count)):
            results.append(result)
            job.report(len(results), count)
        return results
    if job.jobs == 1 or count == 1:
        for trial in range(count):
            results.append(one(trial))
            job.report(trial + 1, count)
        return results
    import loky

    workers = min(loky.cpu_count() if job.jobs == -1 else job.jobs, count)
    length = max(1, count // (25 * workers))  # of a batch: what `one` holds is sent once for each
    pool, whole = loky.get_reusable_executor(max_workers=workers, timeout=IDLE), False
    try:
        batches = [range(start, min(start + length, count)) for start in range(0, count, length)]
        for future in [pool.submit(lambda batch: [one(trial) for trial in batch], batch) for batch in batches]:
            results.extend(future.result())
            job.report(len(results), count)
        whole = True
    finally:
        if not whole:  # an error or an interrupt does not wait for what is running
            pool.shutdown(wait=True, kill_workers=True)
    return results


def _without_cautions(one: Callable[[int], dict[str, Array]]) -> Callable[[int], dict[str, Array]]:
    """The same, silent about scales that do not fit; multipliers that are cut off are still warned of."""

    def quiet(trial: int) -> dict[str, Array]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=f"(?!{SATURATED[:20]})", category=NoRegretWarning)
            return one(trial)

    return quiet
