"""The same for programs that wait by `await`: each call runs in a thread, and the loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, final

import numpy.typing as npt

from ..checks import Array
from ..serve import messages as m
from ..study.goal import AnyPolicy
from .calls import Context, Points
from .remote import Client, ExportKind, RemoteStudy


@final
class AsyncClient:
    """A decision service, by `await`.

    Args:
        url, token, timeout, attempts: as of `Client`.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0, attempts: int = 5) -> None:
        self._client = Client(url, token=token, timeout=timeout, attempts=attempts)

    def __repr__(self) -> str:
        return f"Async{self._client!r}"

    async def studies(self) -> list[m.StudySaid]:
        """See `Client.studies`."""
        return await asyncio.to_thread(self._client.studies)

    async def study(self, name: str) -> AsyncRemoteStudy:
        """See `Client.study`."""
        return AsyncRemoteStudy(await asyncio.to_thread(self._client.study, name))

    async def create(self, name: str, policy: AnyPolicy, **options: Any) -> AsyncRemoteStudy:
        """See `Client.create`."""
        return AsyncRemoteStudy(await asyncio.to_thread(self._client.create, name, policy, **options))


@final
class AsyncRemoteStudy:
    """A study that a service keeps, by `await`; `AsyncClient.create` and `AsyncClient.study` make it."""

    def __init__(self, study: RemoteStudy) -> None:
        self.name, self._study = study.name, study

    def __repr__(self) -> str:
        return f"Async{self._study!r}"

    async def ask(self, context: Context = None, **options: Any) -> Any:
        """One decision, or a list of `count`; see `RemoteStudy.ask`."""
        return await asyncio.to_thread(lambda: self._study.ask(context, **options))

    async def tell(self, decision: m.Decision | str, reward: float | None = None, **options: Any) -> m.Answer:
        """See `RemoteStudy.tell`."""
        return await asyncio.to_thread(self._study.tell, decision, reward, **options)

    async def tell_many(self, answers: Iterable[tuple[m.Decision | str, float]]) -> list[m.RewardResult]:
        """See `RemoteStudy.tell_many`."""
        return await asyncio.to_thread(self._study.tell_many, list(answers))

    async def fail(self, decision: m.Decision | str, reason: str) -> m.Answer:
        """See `RemoteStudy.fail`."""
        return await asyncio.to_thread(self._study.fail, decision, reason)

    async def add(self, point: Mapping[str, Any] | npt.ArrayLike, reward: float, **options: Any) -> m.Observation:
        """See `RemoteStudy.add`."""
        return await asyncio.to_thread(self._study.add, point, reward, **options)

    async def predict(self, points: Points | None = None, *, context: Context = None) -> tuple[Array, Array]:
        """See `RemoteStudy.predict`."""
        return await asyncio.to_thread(self._study.predict, points, context=context)

    async def bounds(self, points: Points | None = None, **options: Any) -> tuple[Array, Array]:
        """See `RemoteStudy.bounds`."""
        return await asyncio.to_thread(self._study.bounds, points, **options)

    async def best(self, *, context: Context = None) -> m.DecisionInFull:
        """See `RemoteStudy.best`."""
        return await asyncio.to_thread(self._study.best, context=context)

    async def decision(self, decision: m.Decision | str) -> m.DecisionInFull:
        """See `RemoteStudy.decision`."""
        return await asyncio.to_thread(self._study.decision, decision)

    async def explain(self, number: int) -> dict[str, Any]:
        """See `RemoteStudy.explain`."""
        return await asyncio.to_thread(self._study.explain, number)

    async def status(self) -> m.StudyInFull:
        """See `RemoteStudy.status`."""
        return await asyncio.to_thread(self._study.status)

    async def events(self, after: int = 0, *, follow: bool = False, every: float = 1.0) -> AsyncIterator[m.Event]:
        """See `RemoteStudy.events`."""
        while True:
            for event in await asyncio.to_thread(list, self._study.events(after)):
                after = event.order
                yield event
            if not follow:
                return
            await asyncio.sleep(every)

    async def export(self, kind: ExportKind = "jsonl") -> bytes:
        """See `RemoteStudy.export`."""
        return await asyncio.to_thread(self._study.export, kind)
