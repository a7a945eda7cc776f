"""The loop of every optimisation: ask, evaluate, tell. A run may be stopped anywhere and resumed from the record.

The loop asks for a trial after each answer, in the order in which answers arrive. The trials depend on that order and
on nothing else. One evaluation at a time is an executor with one worker, which is the calling thread.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any, final
from uuid import uuid4

from .._utils.checks import counted
from .._utils.executors import HOPELESS
from .._utils.numerals import exact
from ..errors import InvalidInput, NoRegretError, StorageError, TrialError, exception_text, warn
from ..storage.record import Trial
from ..study.study import Study
from .outcome import Outcome, Task, where

LONGEST = 1e8  # Seconds.
# Seconds after which an idle process ends by itself, since its owner may have been killed. The time is shorter in a
# worker of a user's executor, because the shutdown of that executor waits for the process.
IDLE, IDLE_IN_WORKER = 60.0, 2.0

_task: list[Task] = []  # The task of this process, if it evaluates.


def _receive(task: Task) -> None:
    _task[:] = [task]


def _ready() -> None:
    """Returns nothing. A call that succeeds shows that the process has started and holds the task."""


def _evaluate(trial: Trial) -> Outcome:
    return _task[0](trial)._replace(error=None)  # Some exceptions cannot be sent to another process.


@final
class TimeLimited:
    """A task with a time limit, which ends the task and every process that it has started.

    Each calling thread has one process, which stays for the next call with all that its modules loaded or cached. The
    time limit ends the process. A `TimeLimited` may be sent to other processes, which then have a process each.

    Args:
        task: a function from a trial to an outcome.
        seconds: time limit of one call, not counting the start of the process.
    """

    def __init__(self, task: Task, seconds: float, *, token: str = "") -> None:
        self._task, self._seconds, self._token = task, seconds, token or uuid4().hex
        self._idle = IDLE_IN_WORKER if token else IDLE
        self._own = threading.local()
        self._pools: list[Any] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self._token, self._task, self._seconds)

    def __call__(self, trial: Trial) -> Outcome:
        """Returns the outcome. It has a reason if there was no answer in time, or if the process died."""
        pool = self._ready_pool()
        try:
            outcome: Outcome = pool.submit(_evaluate, trial).result(timeout=self._seconds)
        except TimeoutError:
            self._end(pool)
            return Outcome(reason=f"no answer within {self._seconds:g} s")
        except BrokenExecutor as error:
            self._end(pool)
            return Outcome(reason=f"its process ended without an answer{_status(error)}: out of memory, or a crash?")
        except BaseException:  # After an interrupt no caller waits for the answer.
            self._end(pool)
            raise
        return outcome

    def start(self) -> None:
        """Starts this thread's process now, with an error if the objective cannot be sent to a process."""
        self._ready_pool()

    def close(self) -> None:
        """Ends the processes, and with them the calls of other threads."""
        for pool in self._pools[:]:
            self._end(pool)

    def _ready_pool(self) -> Any:
        import loky

        pool = getattr(self._own, "pool", None)
        if pool is None or pool not in self._pools:
            pool = loky.ProcessPoolExecutor(
                max_workers=1, timeout=self._idle, initializer=_receive, initargs=(self._task,)
            )
            self._pools.append(pool)
            self._own.pool = pool
        try:
            with _may_have_children():
                pool.submit(_ready).result()
        except Exception as error:  # Users' objects may raise anything when they are sent.
            self._end(pool)
            raise InvalidInput(
                f"The process that a time limit needs could not start with this objective ({exception_text(error)}). "
                "Usually it, or something that it uses, cannot be sent to another process: define it in a module, "
                "make what it uses (files, connections, models) inside it, or leave `timeout` out."
            ) from error
        return pool

    def _end(self, pool: Any) -> None:
        if pool in self._pools:
            self._pools.remove(pool)
        pool.shutdown(wait=True, kill_workers=True)


@contextmanager
def _may_have_children() -> Iterator[None]:
    """Allows child processes in a daemonic process, such as a worker of a Dask cluster.

    The children end by themselves after some idle seconds, and when this process ends.
    """
    from multiprocessing import current_process

    ours: dict[str, Any] = getattr(current_process(), "_config", {})
    forbidden = ours.get("daemon", False)
    if forbidden:
        ours["daemon"] = False
    try:
        yield
    finally:
        if forbidden:
            ours["daemon"] = True


_received: dict[str, TimeLimited] = {}  # Tasks sent to this process. Later calls reuse their processes.


def _unpickled(token: str, task: Task, seconds: float) -> TimeLimited:
    return _received.setdefault(token, TimeLimited(task, seconds, token=token))


def _status(error: BrokenExecutor) -> str:
    """Returns the exit status of a process that ended by itself, in brackets."""
    codes = re.findall(r"\{(.*?)\}", str(error))
    return f" ({codes[-1]})" if codes else ""


CANCELLED = "its evaluation was cancelled"
LEFT_OUT = (
    "trials do not keep: metrics are finite numbers, at most 100, under names of one line. The rewards are recorded. "
    "Leave out what was not measured, and save text, lists and models elsewhere."
)
STOPPED = "its worker was asked to end"
RETRIES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # Seconds before an answer is told again that the storage did not take.


@final
class ThisThread(Executor):
    """An executor that evaluates at once in the calling thread. Interrupts reach the caller."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Returns the answer in a completed future."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@final
@dataclass(frozen=True)
class Lease:
    """A worker's claim on its trials, for a study that several workers share by its storage alone.

    Attributes:
        seconds: after which a trial counts as abandoned. Longer than an evaluation takes.
        say: called with a line where another process answered a trial first.
        wait: called with the seconds to wait before an answer is told again.
    """

    seconds: float
    say: Callable[[str], object]
    wait: Callable[[float], object] = sleep


@final
class TimeLeft:
    """The time that a run has. It begins with the evaluation of its first trial.

    Args:
        seconds: the length of the run.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end: float | None = None

    def begin(self) -> None:
        """Begins the time, once."""
        self._end = monotonic() + self.seconds if self._end is None else self._end

    @property
    def left(self) -> float:
        """The seconds left, at least 0."""
        return self.seconds if self._end is None else max(self._end - monotonic(), 0.0)

    @property
    def reason(self) -> str:
        """Says why a run ended whose time is over."""
        return f"seconds: the {exact(self.seconds)} s were over"


@final
class Loop:
    """Evaluations of a study's trials.

    Args:
        study: the study that has the trials.
        task: a function from a trial to the outcome of its evaluation.
        trials: how many there shall be in all. Trials on record and failed ones count, and without a lease abandoned
            ones. Workers that ask at the same moment may make as many more as there are others.
        ended: called after each answer. A returned reason stops the run without an error.
        executor: where evaluations run.
        in_flight: how many evaluations run at once.
        time: after which no trial begins. Evaluations that have begun are waited for.
        enough: returns the reason why no trial should begin, or None. It is asked again after each answer under way.
        lease: if other workers share the study. Their pending trials are left to them, and an interrupt abandons
            those of this worker.
    """

    def __init__(
        self,
        study: Study,
        task: Task,
        *,
        trials: int,
        ended: Callable[[Trial], str | None],
        executor: Executor | None = None,
        in_flight: int = 1,
        time: TimeLeft | None = None,
        enough: Callable[[], str | None] | None = None,
        lease: Lease | None = None,
    ) -> None:
        self._study, self._task, self._wanted, self._ended = study, task, trials, ended
        self._executor, self._in_flight, self._lease = executor or ThisThread(), in_flight, lease
        self._time, self._enough = time, enough
        self._over: str | None = None  # The reason why no trial was begun the last time.
        known = list(study.trials)
        # A stopped run left trials pending, which are evaluated first. Trials with a lease belong to other workers.
        resumed = [trial for trial in known if trial.state == "pending" and trial.lease_until is None]
        self._resumed = deque(resumed if lease is None else [])
        self._has_value = any(trial.state == "observed" for trial in known)
        self._valued = 0  # Values in this run.
        self._failed = 0  # Failures in this run before any value.
        self._left_out: set[str] = set()  # Entries of answers that a warning has named.
        self._cancelled = 0  # Cancellations since the last answer.
        self._token = uuid4().hex  # It identifies this run.
        self._asked: dict[int, Trial] = {}
        self._under_way: dict[Future[Any], Trial] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self.evaluated = 0

    def run(self) -> str | None:
        """Evaluates until there are as many trials as wanted. Returns the reason for an earlier end, or None.

        Trials without an answer stay pending, except that an interrupted worker with a lease abandons its trials.
        """
        try:
            self._fill()
            while self._under_way:
                reason = self._finish(self._done.get())
                if reason is not None:
                    return reason
                self._fill()
        except BrokenExecutor as error:
            if not self._has_value:
                raise NoRegretError(
                    f"The executor broke before any trial had a value: {exception_text(error)}. Usually a worker was "
                    "killed, ran out of memory, or cannot load the objective: define it in a module that workers can "
                    "import."
                ) from error
            return f"executor: it broke: {exception_text(error)}"
        except KeyboardInterrupt:
            self._release()
            raise
        finally:
            for future in self._under_way:
                future.cancel()  # It has an effect on evaluations that have not begun.
        return self._over

    def _next(self) -> Trial | None:
        """Returns the next trial to evaluate, or None if there are as many as wanted, or none is to begin."""
        trials = self._study.trials
        count = len(trials) if self._lease is None else sum(trial.state != "abandoned" for trial in trials)
        if count >= self._wanted and not self._resumed:
            return None
        if self._time is not None and not self._time.left:
            self._over = self._time.reason
        else:
            self._over = None if self._enough is None or self._resumed else self._enough()
        if self._over is not None:
            return None
        if self._resumed:
            return self._resumed.popleft()
        return self._study.ask(lease=None if self._lease is None else self._lease.seconds)

    def _fill(self) -> None:
        """Submits trials to the executor until as many are under way as may be, or no more are to begin."""
        while len(self._under_way) < self._in_flight and (trial := self._next()) is not None:
            self._begin(trial)

    def _begin(self, trial: Trial) -> None:
        """Submits a trial to the executor."""
        self._asked[trial.number] = trial
        if self._time is not None:
            self._time.begin()
        try:
            # Dask evaluates equal calls once. The token makes the calls of equal points different.
            future = self._executor.submit(_evaluated, self._task, trial, f"{self._token}-{trial.number}")
        except (BrokenExecutor, NoRegretError):
            raise
        except RuntimeError as error:
            raise NoRegretError(
                f"The executor takes no more work ({error}). Usually it was shut down, as at the end of its `with`."
            ) from error
        except Exception as error:  # An executor that lost its workers may raise anything.
            raise BrokenExecutor(exception_text(error)) from error
        self._under_way[future] = trial
        future.add_done_callback(self._done.put)

    def _finish(self, future: Future[Any]) -> str | None:
        """Records the outcome of an evaluation. Returns a reason to stop, or None."""
        trial, outcome = self._under_way.pop(future), _outcome(future)
        reason = self._abandon(trial) if outcome is None else self._record(trial, outcome)
        self._asked.pop(trial.number, None)
        return reason

    def _record(self, trial: Trial, outcome: Outcome) -> str | None:
        self._cancelled = 0
        self.evaluated += 1
        if outcome.malformed and not self._valued:
            self._release()
            raise InvalidInput(malformed(trial, outcome))
        try:
            trial = self._tell(trial, outcome)
        except TrialError as error:
            if self._lease is None:
                raise
            self._lease.say(f"trial {trial.number}: {error}")  # Another process answered first, and that holds.
            return None
        self._warn(outcome)
        self._valued += outcome.value is not None
        self._has_value = self._has_value or self._valued > 0
        self._failed += outcome.value is None
        reason = self._ended(trial)
        if not self._has_value and self._failed >= HOPELESS and self._lease is None:
            raise NoRegretError(nothing_works(self._failed, trial)) from outcome.error
        return reason

    def _warn(self, outcome: Outcome) -> None:
        """Warns once of each entry of an answer that no trial can keep."""
        new = [name for name in outcome.left_out if name not in self._left_out]
        if new:
            self._left_out.update(new)
            warn(f"Answers have {counted(len(new), 'entry')} {', '.join(new)}, which {LEFT_OUT}")

    def _tell(self, trial: Trial, outcome: Outcome) -> Trial:
        """Tells the study the outcome. A worker with a lease retries while the storage is away."""
        for seconds in () if self._lease is None else RETRIES:
            try:
                return _told(self._study, trial, outcome)
            except StorageError:
                self._lease.wait(seconds)  # type: ignore[union-attr]  # There are retries with a lease only.
        return _told(self._study, trial, outcome)

    def _abandon(self, trial: Trial) -> str | None:
        """Records that an evaluation was cancelled, which tells nothing about its point."""
        reason = self._ended(self._study.abandon(trial, CANCELLED))
        self._cancelled += 1
        if reason is None and self._cancelled >= HOPELESS:
            return f"executor: it cancelled {self._cancelled} evaluations one after the other"
        return reason

    def _release(self) -> None:
        """Abandons the trials of an interrupted worker that has a lease."""
        for trial in self._asked.values() if self._lease is not None else ():
            with suppress(TrialError):  # The answer may be on record already.
                self._study.abandon(trial, STOPPED)


def _told(study: Study, trial: Trial, outcome: Outcome) -> Trial:
    if outcome.value is None:
        return study.fail(trial, outcome.reason or "it gave no reason")
    return study.tell(trial, outcome.value, constraints=outcome.constraints, std=outcome.std, metrics=outcome.metrics)


def _evaluated(task: Task, trial: Trial, token: str) -> Outcome:  # noqa: ARG001 - Calls are told apart by the token.
    return task(trial)


def nothing_works(failed: int, last: Trial) -> str:
    """Returns the error sentence for a run in which every trial failed."""
    many = f"All {failed} trials" if failed > 1 else "The only trial"
    return (
        f"{many} failed, the last one with {last.reason!r}. Usually the objective has a mistake that its arguments "
        f"have nothing to do with: call it by yourself with {where(last)!r}. Failed trials stay on record; to begin "
        "afresh where there is a storage, choose another `name`."
    )


def malformed(trial: Trial, outcome: Outcome) -> str:
    """Returns the error sentence for an answer of the wrong form."""
    reason = outcome.reason or ""
    return (
        f"The run ends at trial {trial.number}: {reason}{'' if reason.endswith('?') else '.'} Usually every evaluation "
        "makes this mistake, which says nothing of the point, so the trial was not answered. Mend what the objective "
        "returns. If it is this point that has no value, raise an exception or return NaN. Where there is a storage, "
        "the same call then goes on."
    )


def _outcome(future: Future[Any]) -> Outcome | None:
    """Returns the outcome of an evaluation, or None if it was cancelled. Other errors of the executor are reasons."""
    error = None if future.cancelled() else future.exception()
    if isinstance(error, BrokenExecutor | KeyboardInterrupt):
        raise error
    if future.cancelled() or isinstance(error, CancelledError):
        return None
    if error is not None:  # The call or its answer could not be sent, or its worker was killed.
        return Outcome(reason=exception_text(error), error=error)
    outcome: Outcome = future.result()
    return outcome
