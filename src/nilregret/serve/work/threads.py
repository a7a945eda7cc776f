"""A pool of threads that tenants share: their queues are served in turn, and no tenant gets all threads.

anyio's limiters are not enough. They serve in order of arrival. When a caller is cancelled, they count its thread as
free while the thread still works. A `ThreadPoolExecutor` is not enough either. A process that ends waits for its
threads, also for one that waits for a database that does not answer.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, final

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
        self._count, self._name, self._most = count, name, count if most is None else most
        self._threads: list[threading.Thread] = []
        self._tasks: SimpleQueue[tuple[str, Work] | None] = SimpleQueue()  # work of which the turn has come
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
                self._closed = True  # work that ends may not bring more
            while self._held:
                self._idle.wait()
            self._closed = True
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        """Gives free threads to the tenants in turn. The caller holds the lock."""
        for tenant in [each for each in self._waiting if self._held[each] < self._most][: self._free]:
            queue = self._waiting[tenant]
            self._free -= 1
            self._held[tenant] += 1
            self._tasks.put((tenant, queue.popleft()))
            if self._count - self._free > len(self._threads):
                name = f"{self._name}-{len(self._threads)}"
                self._threads.append(threading.Thread(target=self._serve, name=name, daemon=True))
                self._threads[-1].start()
            if queue:
                self._waiting.move_to_end(tenant)
            else:
                del self._waiting[tenant]

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._run(*task)
            del task  # A thread that waits holds nothing of its last caller.

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


class TenantExecutor(NamedTuple):
    """The part of a pool of threads that is one tenant's, with the `submit` of an executor."""

    threads: TenantThreads
    tenant: str

    def submit(self, do: Callable[[], R], /) -> Future[R]:
        """Returns the future result of `do()`."""
        return self.threads.future(self.tenant, do)


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
