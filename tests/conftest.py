"""Places for records, the server of one of them started once and only where it is wanted."""

import itertools

import pytest

from nilregret.storage import MemoryStorage

from .postgres import Server
from .waiting import LONG


@pytest.fixture(scope="session", autouse=True)
def processes_are_kept():
    """Processes of replicates are started once and serve all tests, however long after each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nilregret.simulation.runner.IDLE", LONG)
        yield


@pytest.fixture(scope="session")
def postgres():
    with Server() as server:
        yield server


@pytest.fixture
def places(request, tmp_path):
    """Of a kind of storage, a function that gives a new and empty place at each call."""
    numbers = itertools.count()

    def of(kind):
        if kind == "memory":
            return MemoryStorage
        if kind == "sqlite":
            return lambda: f"sqlite:///{tmp_path}/{next(numbers)}.db"
        return request.getfixturevalue("postgres").url

    return of


@pytest.fixture(scope="session")
def cluster():
    """Two processes of one thread each, and the client that knows them."""
    import dask
    from distributed import Client, LocalCluster

    quick = {
        "distributed.scheduler.allowed-failures": 1,
        "distributed.nanny.pre-spawn-environ.OMP_NUM_THREADS": 1,
        "distributed.worker.profile.enabled": False,  # a look at each thread a hundred times a second
        "distributed.comm.timeouts.connect": f"{LONG} s",  # busy machines are slow to start processes
        "distributed.comm.timeouts.tcp": f"{LONG} s",
    }
    with (
        dask.config.set(quick),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            memory_limit=0, silence_logs="CRITICAL",
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="module")
def few_draws():
    """Importances of few draws, which cost most of the time of a page; `test_importance.py` has their accuracy."""
    with pytest.MonkeyPatch.context() as patch:
        for name, count in {"DRAWS": 4, "POINTS": 256, "POINTS_OF_DRAWS": 64}.items():
            patch.setattr(f"nilregret.study.importance.{name}", count)
        yield
