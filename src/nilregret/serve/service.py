"""Objects that the operations of one server process share."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from .decision_ids import SECRET, Ids, new_secret
from .events import Streams
from .metrics import Metrics
from .settings import Settings
from .signal_sender import SignalSender
from .signals import SignalCache
from .webhook import Webhook
from .workers import NotesStorage, StudyWorkers


@final
class Service:
    """Study workers, decision ids, metrics and event streams of one server process.

    Args:
        storage: of all studies.
        settings: of the service.
        clock: Unix seconds.

    Attributes:
        clock: as given.
    """

    def __init__(self, storage: NotesStorage, settings: Settings, clock: Callable[[], float]) -> None:
        self.storage, self.settings = storage, settings
        self.workers = StudyWorkers(storage, settings, clock)
        self.signals = SignalCache()
        self.metrics = Metrics(self.workers, self.signals, clock)
        self.streams = Streams(settings)
        self.clock = clock
        self._ids: Ids | None = None

    def sender(self, webhook: Webhook) -> SignalSender:
        """Returns an object that sends the signals of this process."""
        return SignalSender(webhook, self.workers, self.signals, self.clock)

    @property
    def ids(self) -> Ids:
        """Decision ids of this installation."""
        return self.prepare() if self._ids is None else self._ids

    def prepare(self) -> Ids:
        """Reads or makes the secret of the installation."""
        import scipy.optimize  # the first decision would wait for these modules, some 0.4 s
        import scipy.stats.qmc  # noqa: F401

        self._ids = Ids(self.storage.note_once(SECRET, new_secret()))
        return self._ids
