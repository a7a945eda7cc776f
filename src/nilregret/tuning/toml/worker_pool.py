"""The executor of a tuning job: this process, several processes, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from ...errors import InvalidInput, MissingExtra, NoRegretError

CONNECT = 20.0  # Seconds in which a cluster must answer, and then have a worker.


@contextmanager
def pool(workers: int, cluster: str | None) -> Iterator[Executor | None]:
    """Yields an executor of threads that use a process each, that of a cluster, or None for this process.

    Args:
        workers: number of evaluations at once, on this machine.
        cluster: address of a Dask scheduler, such as "tcp://127.0.0.1:8786", or None.
    """
    if cluster is not None:
        with _joined(cluster, workers) as executor:
            yield executor
    elif workers > 1:
        with ThreadPoolExecutor(workers) as executor:
            yield executor
    else:
        yield None


@contextmanager
def _joined(address: str, workers: int) -> Iterator[Executor]:
    if workers > 1:
        raise InvalidInput("--workers is for processes of this machine, a cluster has its own: give one of both.")
    try:
        import distributed
    except ImportError as error:
        raise MissingExtra(
            "--cluster needs Dask, which is not installed: pip install 'nilregret[dask]'. On this machine alone "
            "--workers does without."
        ) from error
    try:
        make: Any = distributed.Client
        client = make(address, timeout=CONNECT)
    except (OSError, ValueError) as error:
        raise NoRegretError(
            f"There is no cluster at {address!r} ({error}). Usually the scheduler is not running, or listens "
            "elsewhere: it is started by `dask scheduler`, which prints its address, such as tcp://10.0.0.1:8786."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT)
        except TimeoutError as error:
            raise NoRegretError(
                f"The cluster at {address!r} has no workers: start some by `dask worker {address}`."
            ) from error
        yield client.get_executor()
