"""The client for `asyncio`: each request runs in a thread of the client, and the event loop goes on.

The event loop's own threads are not used, because other code may fill them with work that waits for these requests. A
client may be used in several event loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, final

from .._utils.checks import integer
from ..serve.wire import messages as m
from ..study.direction import AnyPolicy
from .remote import Client, RemoteStudy

T = TypeVar("T")
P = ParamSpec("P")
MOST = 1000  # concurrent requests


@final
class Threads:
    """The threads in which a client's requests run.

    Args:
        count: number of threads. Further requests wait.
    """

    def __init__(self, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, "nilregret-client")

    async def run(self, do: Callable[..., T], *given: Any, **options: Any) -> T:
        """Returns `do(*given, **options)`, called in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(do, *given, **options))

    def end(self) -> None:
        """Ends the threads after their requests."""
        self._pool.shutdown(wait=False)


@final
class AsyncClient:
    """A decision service, with `await`.

    Args:
        url, token, timeout, attempts: see `Client`.
        at_once: concurrent requests. Further ones wait.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout: float = 30.0, attempts: int = 5, at_once: int = 16
    ) -> None:
        self._client = Client(url, token=token, timeout=timeout, attempts=attempts)
        self._threads = Threads(integer("at_once", at_once, low=1, high=MOST, why="It counts requests."))

    def __repr__(self) -> str:
        return f"Async{self._client!r}"

    async def studies(self) -> list[m.StudySaid]:
        """Returns the studies (see `Client.studies`)."""
        return await self._threads.run(self._client.studies)

    async def study(self, name: str) -> AsyncRemoteStudy:
        """Returns a study that exists (see `Client.study`)."""
        return AsyncRemoteStudy(await self._threads.run(self._client.study, name), self._threads)

    async def create(self, name: str, policy: AnyPolicy, **options: Any) -> AsyncRemoteStudy:
        """Makes or opens a study (see `Client.create`)."""
        return AsyncRemoteStudy(await self._threads.run(self._client.create, name, policy, **options), self._threads)

    async def close(self) -> None:
        """Closes the connections, as `async with` does. No request may follow."""
        self._client.close()
        self._threads.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _awaited(
    method: Callable[Concatenate[RemoteStudy, P], T],
) -> Callable[Concatenate[AsyncRemoteStudy, P], Coroutine[Any, Any, T]]:
    """Returns the method of `AsyncRemoteStudy` that runs a method of `RemoteStudy` in a thread."""

    @wraps(method)
    async def run(self: AsyncRemoteStudy, /, *given: P.args, **options: P.kwargs) -> T:
        return await self._threads.run(method, self._study, *given, **options)

    return run


@final
class AsyncRemoteStudy:
    """A study of a service, with `await`. `AsyncClient.create` and `AsyncClient.study` make it."""

    def __init__(self, study: RemoteStudy, threads: Threads) -> None:
        self.name, self._study, self._threads = study.name, study, threads

    def __repr__(self) -> str:
        return f"Async{self._study!r}"

    ask = _awaited(RemoteStudy.ask)
    tell = _awaited(RemoteStudy.tell)
    tell_slate = _awaited(RemoteStudy.tell_slate)
    tell_many = _awaited(RemoteStudy.tell_many)
    fail = _awaited(RemoteStudy.fail)
    abandon = _awaited(RemoteStudy.abandon)
    report = _awaited(RemoteStudy.report)
    stop = _awaited(RemoteStudy.stop)
    forget = _awaited(RemoteStudy.forget)
    add = _awaited(RemoteStudy.add)
    arms = _awaited(RemoteStudy.arms)
    add_from = _awaited(RemoteStudy.add_from)
    add_arms = _awaited(RemoteStudy.add_arms)
    retire_arm = _awaited(RemoteStudy.retire_arm)
    restore_arm = _awaited(RemoteStudy.restore_arm)
    describe_arm = _awaited(RemoteStudy.describe_arm)
    widen = _awaited(RemoteStudy.widen)
    enqueue = _awaited(RemoteStudy.enqueue)
    enqueued = _awaited(RemoteStudy.enqueued)
    withdraw = _awaited(RemoteStudy.withdraw)
    predict = _awaited(RemoteStudy.predict)
    bounds = _awaited(RemoteStudy.bounds)
    best = _awaited(RemoteStudy.best)
    mix = _awaited(RemoteStudy.mix)
    front = _awaited(RemoteStudy.front)
    front_values = _awaited(RemoteStudy.front_values)
    hypervolume = _awaited(RemoteStudy.hypervolume)
    decision = _awaited(RemoteStudy.decision)
    feasible = _awaited(RemoteStudy.feasible)
    infeasible = _awaited(RemoteStudy.infeasible)
    explain = _awaited(RemoteStudy.explain)
    evaluate = _awaited(RemoteStudy.evaluate)
    trials = _awaited(RemoteStudy.trials)
    status = _awaited(RemoteStudy.status)
    export = _awaited(RemoteStudy.export)

    async def events(self, after: int = 0, *, follow: bool = False, every: float = 1.0) -> AsyncIterator[m.Event]:
        """Yields events (see `RemoteStudy.events`)."""
        while True:
            found: list[m.Event] = await self._threads.run(list, self._study.events(after))
            for event in found:
                after = event.order
                yield event
            if not follow:
                return
            await asyncio.sleep(every)
