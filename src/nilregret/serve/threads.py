"""A pool of threads that tenants share: their queues are served in turn, and no tenant gets all threads.

anyio's limiters are not enough. They serve in order of arrival. When a caller is cancelled, they count its thread as
free while the thread still works.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar, final

R = TypeVar("R")
Work = Callable[[], object]


@final
class TenantThreads:
    """A pool of threads with one queue for each tenant.

    Args:
        count: number of threads.
        name: beginning of the threads' names.
        most: threads that one tenant may hold at once. All unless given.
    """

    def __init__(self, count: int, name: str, *, most: int | None = None) -> None:
        self._pool = ThreadPoolExecutor(count, name)
        self._most = count if most is None else most
        self._idle = threading.Condition()  # also the lock
        self._waiting: OrderedDict[str, deque[Work]] = OrderedDict()  # by tenant; the next tenant comes first
        self._held: Counter[str] = Counter()  # threads by tenant
        self._free, self._closed = count, False

    def submit(self, tenant: str, work: Work) -> None:
        """Queues `work`, which must not raise.

        Raises:
            RuntimeError: the pool is closed.
        """
        with self._idle:
            if self._closed:
                raise RuntimeError("The service is closed: its threads take nothing more.")
            self._waiting.setdefault(tenant, deque()).append(work)
            self._start()

    def future(self, tenant: str, do: Callable[[], R]) -> Future[R]:
        """Returns the future result of `do()`. It does not begin if the future is cancelled before."""
        future: Future[R] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(do())
            except BaseException as error:
                future.set_exception(error)

        self.submit(tenant, work)
        return future

    async def run(self, tenant: str, do: Callable[[], R]) -> R:
        """Returns the result of `do()` from a thread. It does not begin if the caller is cancelled before."""
        return await asyncio.wrap_future(self.future(tenant, do))

    def close(self, *, drop: bool) -> None:
        """Waits for the work that has begun, and for the queues unless they are dropped."""
        with self._idle:
            if drop:
                self._waiting.clear()
            while self._held:
                self._idle.wait()
            self._closed = True
        self._pool.shutdown()

    def _start(self) -> None:
        """Gives free threads to the tenants in turn. The caller holds the lock."""
        for tenant in [each for each in self._waiting if self._held[each] < self._most][: self._free]:
            queue = self._waiting[tenant]
            self._free -= 1
            self._held[tenant] += 1
            self._pool.submit(self._run, tenant, queue.popleft())
            if queue:
                self._waiting.move_to_end(tenant)
            else:
                del self._waiting[tenant]

    def _run(self, tenant: str, work: Work) -> None:
        try:
            work()
        finally:
            with self._idle:
                self._free += 1
                self._held[tenant] -= 1
                if not self._held[tenant]:
                    del self._held[tenant]
                self._start()
                if not self._held:
                    self._idle.notify_all()


def deliver(answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    """Sets (future, result, error) in the event loops of the futures, with one wake-up for each loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any, BaseException | None]]] = {}
    for answer in answers:
        by_loop.setdefault(answer[0].get_loop(), []).append(answer)
    for loop, several in by_loop.items():
        try:
            loop.call_soon_threadsafe(_set, several)
        except RuntimeError:  # the loop is closed, so there is no caller any more
            continue


def _set(answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, result, error in answers:
        if future.done():  # the caller is gone
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
