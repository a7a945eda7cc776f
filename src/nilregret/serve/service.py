"""What the operations of one server process share."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from .decisions import SECRET, Ids, new_secret
from .events import Streams
from .metrics import Metrics
from .settings import Settings
from .worker import NotesStorage, StudyWorkers


@final
class Service:
    """Studies, ids, figures and streams.

    Args:
        storage: of all studies.
        settings: of the service.
        clock: Unix seconds.
    """

    def __init__(self, storage: NotesStorage, settings: Settings, clock: Callable[[], float]) -> None:
        self.storage, self.settings = storage, settings
        self.desks = StudyWorkers(storage, settings, clock)
        self.metrics = Metrics(self.desks)
        self.streams = Streams(settings)
        self._ids: Ids | None = None

    @property
    def ids(self) -> Ids:
        """Of this installation."""
        return self.prepare() if self._ids is None else self._ids

    def prepare(self) -> Ids:
        """See that the storage can keep notes; the secret of the installation is the first one."""
        self.storage.keep_notes()
        self._ids = Ids(self.storage.note_once(SECRET, new_secret()))
        return self._ids
