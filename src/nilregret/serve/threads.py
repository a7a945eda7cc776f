"""A few threads for many tenants: each has its turn, and none gets all of them.

Whoever has something to do waits in the queue of its own, and the queues are served in turn. A tenant holds at most so
many threads at once: if its work is slow, the threads that are left go on for the others.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar, final

R = TypeVar("R")
Work = Callable[[], object]


class _Task(NamedTuple):
    whose: str
    work: Work


@final
class Threads:
    """So many threads.

    Args:
        count: of them.
        name: what they are called.
        most: of them that one tenant holds at once.
    """

    def __init__(self, count: int, name: str, *, most: int | None = None) -> None:
        self._count, self._name, self._most = count, name, count if most is None else most
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._waiting: OrderedDict[str, deque[Work]] = OrderedDict()  # by tenant; whose turn it is comes first
        self._held: dict[str, int] = {}  # threads, by tenant
        self._busy, self._over = 0, False
        self._ready: SimpleQueue[_Task | None] = SimpleQueue()
        self._made: list[threading.Thread] = []

    def submit(self, whose: str, work: Work) -> None:
        """Let `work`, which raises nothing, be done in a thread, in this tenant's turn.

        Raises:
            RuntimeError: the threads are gone.
        """
        with self._lock:
            if self._over:
                raise RuntimeError("The service is closed: its threads take nothing more.")
            held = self._held.get(whose, 0)
            if self._busy == self._count or held == self._most:
                self._waiting.setdefault(whose, deque()).append(work)
                return
            self._held[whose] = held + 1
            self._busy += 1
            if self._busy > len(self._made):
                thread = threading.Thread(target=self._serve, name=f"{self._name}-{self._busy}", daemon=True)
                self._made.append(thread)
                thread.start()
        self._ready.put(_Task(whose, work))

    def begun(self, whose: str, do: Callable[[], R]) -> Future[R]:
        """What `do` gives, once a thread has come to it."""
        future: Future[R] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(do())
            except BaseException as error:
                future.set_exception(error)

        self.submit(whose, work)
        return future

    async def run(self, whose: str, do: Callable[[], R]) -> R:
        """Likewise; nothing is begun for who is gone by then."""
        return await asyncio.wrap_future(self.begun(whose, do))

    def close(self, *, drop: bool) -> None:
        """Let what has been begun come to its end; what waits, too, unless it is dropped."""
        with self._lock:
            if drop:
                self._waiting.clear()
            while self._busy:
                self._idle.wait()
            self._over = True
        for _ in self._made:
            self._ready.put(None)
        for thread in self._made:
            thread.join()

    # -- in a thread ---------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        task = self._ready.get()
        while task is not None:
            whose, work = task
            del task
            work()
            task = self._next(whose)
            del work
            if task is None:
                task = self._ready.get()

    def _next(self, done: str) -> _Task | None:
        """What this thread goes on with."""
        with self._lock:
            left = self._held[done] - 1
            if left:
                self._held[done] = left
            else:
                del self._held[done]
            for whose, queue in self._waiting.items():
                held = self._held.get(whose, 0)
                if held == self._most:
                    continue
                work = queue.popleft()
                self._held[whose] = held + 1
                if queue:
                    self._waiting.move_to_end(whose)
                else:
                    del self._waiting[whose]
                return _Task(whose, work)
            self._busy -= 1
            if not self._busy:
                self._idle.notify_all()
            return None


def deliver(answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    """Tell those that wait in a loop what came of their calls: (who waits, result, error), all at once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Any, BaseException | None]]] = {}
    for answer in answers:
        by_loop.setdefault(answer[0].get_loop(), []).append(answer)
    for loop, those in by_loop.items():
        try:
            loop.call_soon_threadsafe(_tell, those)
        except RuntimeError:  # the loop is closed, and nobody listens any more
            continue


def _tell(answers: list[tuple[asyncio.Future[Any], Any, BaseException | None]]) -> None:
    for future, result, error in answers:
        if future.done():  # whoever asked is gone
            continue
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
