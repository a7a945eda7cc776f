"""Places for records, the server of one of them started once and only where it is wanted."""

import itertools

import pytest

from noregret.storage import MemoryStorage

from .postgres import Server


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
