"""Workers of all studies that one server process has open."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar, final

from ...errors import InvalidInput, NoRegretError, StorageError
from ...storage import MemoryStorage, SqlStorage, StoredStudy, Summary
from ...study.late_fits import FitMode
from ...study.study import Study
from ..auth.caller import BETWEEN, OPERATOR, missing, owners, stored_name
from ..wire.problems import Problem
from ..wire.settings import Settings
from .study_notes import NONE, notes_of
from .threads import TenantExecutor, TenantThreads
from .worker import StudyWorker

LOG = logging.getLogger("nilregret.serve")
R = TypeVar("R")
NotesStorage = SqlStorage | MemoryStorage  # storages that keep notes
LOOKUP_THREADS = 2


@final
class StudyWorkers:
    """The workers of one server process.

    Args:
        storage: of all studies.
        settings: of the service.
        clock: Unix seconds.

    Attributes:
        errors: of studies, outside of requests, by tenant and name.
    """

    def __init__(self, storage: NotesStorage, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self.storage, self._settings, self._clock = storage, settings, clock
        self._writers = TenantThreads(settings.writers, "nilregret-writer", most=max(1, settings.writers - 1))
        self._readers = TenantThreads(settings.readers, "nilregret-reader", most=max(1, settings.readers - 1))
        self._fitters = TenantThreads(settings.fitters, "nilregret-fitter") if settings.fitters else None
        self._lookups = TenantThreads(LOOKUP_THREADS, "nilregret-lookup")
        self._lock = threading.Lock()
        self._workers: OrderedDict[str, StudyWorker] = OrderedDict()  # by name in the storage, longest unused first
        self._opening: dict[str, Future[StudyWorker]] = {}
        self.errors: Counter[tuple[str, str]] = Counter()

    async def get(self, tenant: str, name: str, *, fresh: bool = False) -> StudyWorker:
        """Returns the worker of a study, and opens the study if necessary.

        Args:
            tenant: owner of the study.
            name: of the study, as the tenant knows it.
            fresh: whether the storage is asked anew which study has the name.

        Raises:
            Problem: 404, the tenant has no such study.
        """
        stored_as = await self._stored_as(tenant, name)
        worker = None if fresh else self._recent(stored_as, tenant)
        if worker is None and stored_as in self._workers:
            worker = await self.lookup(self._recheck, stored_as, tenant, tenant=tenant)
        if worker is not None:
            return worker
        with self._lock:  # concurrent requests share one opening
            opening = self._opening.get(stored_as)
            if opening is None:
                opening = self._opening[stored_as] = self._readers.future(
                    tenant, lambda: self._open(tenant, name, stored_as)
                )
        opening.add_done_callback(lambda _: self._opening.pop(stored_as, None))
        return await asyncio.shield(asyncio.wrap_future(opening))

    async def summary(self, tenant: str, name: str) -> tuple[StoredStudy, Summary] | None:
        """Returns the summary of a stored study. None if the study is open in this process or does not exist."""
        stored_as = await self._stored_as(tenant, name)
        if stored_as in self._workers:
            return None
        found = await self.lookup(self.storage.summaries, stored_as, tenant=tenant)
        return found[0] if found else None

    async def in_thread(self, do: Callable[..., R], *args: Any, tenant: str = OPERATOR) -> R:
        """Returns `do(*args)`, called in a reading thread when it is the tenant's turn."""
        return await self._readers.run(tenant, lambda: do(*args))

    async def lookup(self, do: Callable[..., R], *args: Any, tenant: str = OPERATOR) -> R:
        """Returns `do(*args)` from a thread for short queries of the storage, which long reads cannot occupy."""
        return await self._lookups.run(tenant, lambda: do(*args))

    async def open_recent(self, *, since: float, most: int = 128) -> None:
        """Opens the studies with an event since a time.

        Args:
            since: Unix seconds.
            most: number of studies. The latest are opened.
        """

        def names() -> list[tuple[str, str]]:
            found = [(known.last_at or 0.0, stored.name) for stored, known in self.storage.summaries()]
            recent = sorted(each for each in found if each[0] >= since)[-min(most, self._settings.open_studies) :]
            return owners(self.storage, [name for _, name in recent])

        for tenant, name in await self.lookup(names):
            with self.isolated(tenant, name):
                await self.get(tenant, name)

    @contextmanager
    def isolated(self, tenant: str, name: str) -> Iterator[None]:
        """Logs and counts an error of a study in this block, so that work for other studies goes on."""
        try:
            yield
        except Exception as error:
            known = isinstance(error, NoRegretError | Problem)  # it was deleted or damaged, or the storage is away
            trace = None if known or self.errors[tenant, name] else error
            self.errors[tenant, name] += 1
            said = f"{type(error).__name__}: {error}"
            LOG.error("Study %r of tenant %r was left out: %s", name, tenant, said, exc_info=trace)

    def forget(self, worker: StudyWorker) -> None:
        """Drops the worker of a study that has another name now."""
        with self._lock:
            for name in [name for name, each in self._workers.items() if each is worker]:
                del self._workers[name]

    @property
    def open(self) -> list[StudyWorker]:
        """The workers of the studies that are open in this process."""
        with self._lock:
            return list(self._workers.values())

    def close(self) -> None:
        """Waits for commands and running reads, and closes the storage."""
        self._writers.close(drop=False)
        self._readers.close(drop=True)
        self._lookups.close(drop=True)
        if self._fitters is not None:
            self._fitters.close(drop=True)
        self.storage.close()

    async def _stored_as(self, tenant: str, name: str) -> str:
        """Returns the name in the storage, which is queried in a thread if a tenant may own the name."""
        if BETWEEN in name and tenant == OPERATOR:
            return await self.lookup(stored_name, self.storage, tenant, name, tenant=tenant)
        return stored_name(self.storage, tenant, name)

    def _recent(self, stored_as: str, tenant: str) -> StudyWorker | None:
        """Returns the worker if the storage was asked for its name a short time ago."""
        with self._lock:
            worker = self._workers.get(stored_as)
            if worker is None or worker.tenant != tenant:
                return None
            if time.monotonic() - worker.checked_at > self._settings.recheck_seconds:
                return None
            self._workers.move_to_end(stored_as)
            return worker

    def _recheck(self, stored_as: str, tenant: str) -> StudyWorker | None:
        """Returns the worker if its name still means the same study, and drops the worker otherwise."""
        stored = self.storage.find(stored_as)
        notes = NONE if stored is None else notes_of(self.storage, [stored])[0]
        with self._lock:
            worker = self._workers.get(stored_as)
            # A study of the operator becomes a tenant's when a tenant of that name gets its first token.
            now = None if stored is None else (tenant, stored.identity)
            if worker is not None and (worker.tenant, worker.stored.identity) == now:
                worker.checked_at, worker.notes = time.monotonic(), notes
                return worker
            self._workers.pop(stored_as, None)
            return None

    def _open(self, tenant: str, name: str, stored_as: str) -> StudyWorker:
        if self.storage.find(stored_as) is None:
            raise missing(name)
        try:
            fits: FitMode = "inline" if self._fitters is None else TenantExecutor(self._fitters, tenant)
            study = Study.open(storage=self.storage, name=stored_as, clock=self._clock, fits=fits)
        except InvalidInput as error:
            if self.storage.find(stored_as) is None:  # the study was deleted a moment ago
                raise missing(name) from None
            raise StorageError(f"Study {stored_as!r} cannot be opened: {error}") from error
        study.quiet = True
        if study.late_fits is not None:
            study.late_fits.begin()  # so that pages show what a fresh study in Python does
        stored = self.storage.find(stored_as)
        if stored is None:
            raise missing(name)
        worker = StudyWorker(tenant, name, study, stored, self._settings, self._writers, self._readers)
        (worker.notes,) = notes_of(self.storage, [stored])
        with self._lock:
            self._workers[stored_as] = worker
            while len(self._workers) > self._settings.open_studies:
                self._workers.popitem(last=False)
        return worker
