"""The lock of a replica."""

from __future__ import annotations

import threading
from typing import Protocol, final

from .._utils.errors import NoRegretError


class _Replica(Protocol):
    def invalidate(self) -> None: ...


@final
class ReplicaLock:
    """The lock of record and state. If an interrupt ends its block, the replica is invalidated.

    A state learns when it is read, so even a query may leave the state half changed.
    """

    def __init__(self, lock: threading.RLock, replica: _Replica) -> None:
        self._lock, self._replica = lock, replica

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and not issubclass(kind, NoRegretError):
            self._replica.invalidate()
        self._lock.release()
