"""The run of a tuning job, in the loop of `maximize`. The study is on disk, so a run may be stopped and resumed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from ...errors import InvalidInput, NoRegretError, needs
from ..open_study import open_study
from ..progress import Bar
from ..result import Result
from ..run_options import check_sendable, evaluated, in_flight_count
from .config import TuningFile
from .evaluation import evaluator

CONNECT = 20.0  # Seconds in which a cluster must answer, and then have a worker.


def run(job: TuningFile, executor: Executor | None = None) -> Result:
    """Evaluates trials until there are as many as the job says, and returns the result.

    Nothing is stored if the objective cannot be loaded. A finished study is only read.
    """
    task = evaluator(job, executor)
    check_sendable(task, executor)
    count = in_flight_count(executor, None)
    study = open_study(
        job.domain, job.policy, goal=job.goals[0], seed=job.seed, storage=job.storage, name=job.name, budget=job.trials,
        seconds=job.seconds, parallel=count, reader=job.reader, about=job.reader.facts, like=job.like,
        pruning=job.pruning, steps=job.steps, of=job.of,
    )  # fmt: skip
    bar = Bar(job.name, job.trials, goals=job.goals, file=sys.stdout, summary=False)
    return evaluated(
        study, task, job.storage, trials=job.trials, seconds=job.seconds, bar=bar, executor=executor, in_flight=count,
        again="run the same command again to go on", enqueue=job.enqueue, stop=job.stop,
    )  # fmt: skip


@contextmanager
def pool(workers: int, cluster: str | None) -> Iterator[Executor | None]:
    """Yields an executor of threads that use a process each, that of a cluster, or None for this process.

    Args:
        workers: number of evaluations at once, on this machine.
        cluster: address of a Dask scheduler, such as "tcp://127.0.0.1:8786", or None.
    """
    if cluster is None:
        with ThreadPoolExecutor(workers) as executor:
            yield executor if workers > 1 else None
        return
    if workers > 1:
        raise InvalidInput("--workers is for processes of this machine, a cluster has its own: give one of both.")
    with needs("--cluster", "Dask", "dask", instead="On this machine alone --workers does without."):
        from distributed import Client
    make: Any = Client
    try:
        client = make(cluster, timeout=CONNECT)
    except (OSError, ValueError) as error:
        raise NoRegretError(
            f"There is no cluster at {cluster!r} ({error}). Usually the scheduler is not running, or listens "
            "elsewhere: it is started by `dask scheduler`, which prints its address, such as tcp://10.0.0.1:8786."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT)
        except TimeoutError as error:
            raise NoRegretError(
                f"The cluster at {cluster!r} has no workers: start some by `dask worker {cluster}`."
            ) from error
        yield client.get_executor()
