"""The client for `asyncio`: each request runs in a thread of the client, and the event loop goes on.

The event loop's own threads are not used, because other code may fill them with work that waits for these requests. A
client may be used in several event loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Self, TypeVar, final

import numpy.typing as npt

from ..._utils.checks import Array, integer
from ...study.direction import AnyPolicy
from .. import messages as m
from .calls import Context, Points, Told
from .remote import Client, ExportKind, RemoteStudy

T = TypeVar("T")
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


@final
class AsyncRemoteStudy:
    """A study of a service, with `await`. `AsyncClient.create` and `AsyncClient.study` make it."""

    def __init__(self, study: RemoteStudy, threads: Threads) -> None:
        self.name, self._study, self._threads = study.name, study, threads

    def __repr__(self) -> str:
        return f"Async{self._study!r}"

    async def ask(self, context: Context = None, **options: Any) -> Any:
        """Returns one decision, or a list of `count` (see `RemoteStudy.ask`)."""
        return await self._threads.run(lambda: self._study.ask(context, **options))

    async def tell(self, decision: m.Decision | str, reward: Told | None = None, **options: Any) -> m.Answer:
        """Records the reward of a decision (see `RemoteStudy.tell`)."""
        return await self._threads.run(self._study.tell, decision, reward, **options)

    async def tell_many(
        self, answers: Iterable[tuple[m.Decision | str, Told]], *, revise: bool = False
    ) -> list[m.RewardResult]:
        """Records the rewards of several decisions (see `RemoteStudy.tell_many`)."""
        return await self._threads.run(self._study.tell_many, list(answers), revise=revise)

    async def fail(self, decision: m.Decision | str, reason: str, *, revise: bool = False) -> m.Answer:
        """Records that a decision failed (see `RemoteStudy.fail`)."""
        return await self._threads.run(self._study.fail, decision, reason, revise=revise)

    async def abandon(self, decision: m.Decision | str, reason: str = "its worker is gone") -> m.Answer:
        """Records that no worker will answer a decision (see `RemoteStudy.abandon`)."""
        return await self._threads.run(self._study.abandon, decision, reason)

    async def add(self, point: Mapping[str, Any] | npt.ArrayLike, reward: Told, **options: Any) -> m.Observation:
        """Records an observation (see `RemoteStudy.add`)."""
        return await self._threads.run(self._study.add, point, reward, **options)

    async def predict(self, points: Points | None = None, **options: Any) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation (see `RemoteStudy.predict`)."""
        return await self._threads.run(self._study.predict, points, **options)

    async def bounds(self, points: Points | None = None, **options: Any) -> tuple[Array, Array]:
        """Returns the policy's bounds (see `RemoteStudy.bounds`)."""
        return await self._threads.run(self._study.bounds, points, **options)

    async def best(self, *, context: Context = None) -> m.DecisionInFull:
        """Returns the best decision (see `RemoteStudy.best`)."""
        return await self._threads.run(self._study.best, context=context)

    async def decision(self, decision: m.Decision | str) -> m.DecisionInFull:
        """Returns a decision with its reward (see `RemoteStudy.decision`)."""
        return await self._threads.run(self._study.decision, decision)

    async def feasible(self, points: Points | None = None, *, context: Context = None) -> Array:
        """Returns the feasibility of points (see `RemoteStudy.feasible`)."""
        return await self._threads.run(self._study.feasible, points, context=context)

    async def infeasible(self, *, context: Context = None) -> float | None:
        """Returns whether no point is feasible (see `RemoteStudy.infeasible`)."""
        return await self._threads.run(self._study.infeasible, context=context)

    async def explain(self, number: int, *, draws: int = 1000) -> dict[str, Any]:
        """Returns why a decision was made (see `RemoteStudy.explain`)."""
        return await self._threads.run(self._study.explain, number, draws=draws)

    async def trials(self) -> list[dict[str, Any]]:
        """Returns all trials (see `RemoteStudy.trials`)."""
        return await self._threads.run(self._study.trials)

    async def status(self) -> m.StudyInFull:
        """Returns the state of the study (see `RemoteStudy.status`)."""
        return await self._threads.run(self._study.status)

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

    async def export(self, kind: ExportKind = "jsonl") -> bytes:
        """Returns all trials as a file (see `RemoteStudy.export`)."""
        return await self._threads.run(self._study.export, kind)
