"""Fits that are made apart from decisions: when their owner says so, or by an executor."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from typing import Literal, Protocol, final

import numpy as np

from .._utils.checks import Array, IndexArray, shown
from .._utils.executors import POOL, survives_forks
from ..errors import InvalidInput
from ..policy.fits import FitJob, LateFits
from ..storage.record import Trial
from ..storage.trial import Fit
from .replica import Replica


class FitExecutor(Protocol):
    """An object that calls functions apart, such as an executor of `concurrent.futures`."""

    def submit(self, make: Callable[[], Fit], /) -> Future[Fit]:
        """Returns the future result of `make()`.

        Raises:
            RuntimeError: the executor takes nothing more.
        """


FitMode = Literal["inline", "pending"] | FitExecutor


def check_fits(fits: FitMode) -> LateFits | None:
    """Returns the store of fits that are made apart from decisions, or None if decisions make them.

    Raises:
        InvalidInput: `fits` is neither a mode nor an executor.
    """
    if isinstance(fits, str) and fits == "inline":
        return None
    if (isinstance(fits, str) and fits == "pending") or callable(getattr(fits, "submit", None)):
        return LateFits()
    raise InvalidInput(
        f"`fits` is {shown(fits)}: it must be 'inline', 'pending' or an executor.",
        advice="Such as `concurrent.futures.ThreadPoolExecutor(1)`.",
    )


@final
class FitRunner:
    """Makes the fits of a study apart from its decisions.

    Further fits wait for those that are under way. A fit that fails is not tried again before the next one is due.

    Args:
        replica: of the study.
        executor: makes the fits, or None if `make` does.

    Attributes:
        made: number of fits that were made.
        late: number of trials that were recorded while a fit was under way.
        error: the last error of a fit, until somebody takes it, or None.
        failure: the last error in words, until a fit succeeds.
    """

    def __init__(self, replica: Replica, executor: FitExecutor | None) -> None:
        self._replica, self._executor = replica, executor
        self._lock = threading.Lock()
        self._running: dict[int, int] = {}  # number of trials when the fit began, by channel
        self._failed: dict[int, tuple[int, int]] = {}  # restarts and number of the fit, by channel
        self.made = self.late = 0
        self.error: Exception | None = None
        self.failure = ""
        survives_forks(self, POOL)

    @property
    def fork_lock(self) -> threading.Lock:
        """See `Forkable`."""
        return self._lock

    def after_fork(self) -> None:
        """Leaves the executor to the parent process: `make` makes the fits of a forked process."""
        self._lock, self._executor = threading.Lock(), None
        self._running.clear()

    @property
    def under_way(self) -> int:
        """The number of fits that were begun and are not ready."""
        return len(self._running)

    @property
    def behind(self) -> int:
        """The number of trials that were recorded since the oldest fit under way began."""
        begun = list(self._running.values())
        return len(self._replica.record) - min(begun) if begun else 0

    def begin(self) -> None:
        """Hands the fits that are due to the executor."""
        if self._executor is None:
            return
        for job in self._begun():
            try:
                future = self._executor.submit(job)
            except RuntimeError:  # it takes nothing more, so the fit stays due
                self._end(job.channel)
                continue
            future.add_done_callback(lambda done, job=job: self._finish(job, done))  # type: ignore[misc]

    def make(self) -> int:
        """Makes the fits that are due. Returns how many it made."""
        jobs = self._begun()
        try:
            for job in jobs:
                self._replica.offer(job, job())
                self.made += 1
        finally:
            for job in jobs:
                self._end(job.channel)
        return len(jobs)

    def _begun(self) -> list[FitJob]:
        """Returns the fits that are due, which are under way from now on. There are none while others are."""
        if self._running:  # a look at the data takes longer than most asks
            return []
        jobs, count = self._replica.fit_jobs(), len(self._replica.record)
        with self._lock:
            found = [] if self._running else [each for each in jobs if not self._has_failed(each)]
            self._running |= {each.channel: count for each in found}
        return found

    def _has_failed(self, job: FitJob) -> bool:
        return self._failed.get(job.channel) == (job.restarts, job.number)

    def _finish(self, job: FitJob, done: Future[Fit]) -> None:
        try:
            self._replica.offer(job, done.result())
            self.made, self.failure = self.made + 1, ""
        except CancelledError:
            self._end(job.channel)
            return
        except Exception as error:  # the fit, or its executor, failed, and nobody waits for the result
            self._failed[job.channel], self.error = (job.restarts, job.number), error
            self.failure = str(error) or type(error).__name__
        self._end(job.channel)
        self.begin()  # more rewards may have come meanwhile

    def _end(self, channel: int) -> None:
        with self._lock:
            self.late += len(self._replica.record) - self._running.pop(channel)


def answer_delays(trials: Sequence[Trial]) -> tuple[list[Trial], IndexArray, Array]:
    """Returns the answered trials, and for each the trials asked and the seconds until its answer, `(n,)`.

    Trials that were added without being asked do not count. A corrected trial counts as it was answered first.

    Args:
        trials: all trials of a study.
    """
    first = [trial.as_corrected() for trial in trials]
    asked = np.array([trial.asked_order for trial in first if trial.asked_order != trial.told_order], dtype=np.int64)
    answered = [trial for trial in first if trial.told_order is not None and trial.asked_order != trial.told_order]
    ends = np.array([trial.told_order for trial in answered], dtype=np.int64)
    begins = np.array([trial.asked_order for trial in answered], dtype=np.int64)
    questions = np.searchsorted(asked, ends) - np.searchsorted(asked, begins, side="right")
    seconds = [(trial.told_at or trial.asked_at) - trial.asked_at for trial in answered]
    return answered, questions, np.array(seconds, dtype=np.float64)
