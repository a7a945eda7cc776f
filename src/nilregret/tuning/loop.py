"""The loop of every optimisation: ask, evaluate, tell. A run may be stopped anywhere and resumed from the record.

The loop asks for a trial after each answer, in the order in which answers arrive. The trials depend on that order and
on nothing else. One evaluation at a time is an executor with one worker, which is the calling thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent import futures
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any, Literal, TypeVar, cast, final
from uuid import uuid4

from .._utils.checks import counted
from .._utils.dataclass import dataclass
from .._utils.executors import HOPELESS
from .._utils.numerals import exact
from ..errors import InvalidInput, NoRegretError, StorageError, TrialError, exception_text, warn
from ..slots.pruning import Never
from ..storage.trial import GOING, Trial, Verdict
from ..study.pruning import pruning_of
from ..study.study import Study
from ..study.transaction import Transaction
from .objective import Task, steps_of, where
from .outcome import Outcome, Unusable

T = TypeVar("T")

REFUSED = "refused"  # Begins the reason of a run whose study decides nothing more.
CANCELLED = "its evaluation was cancelled"
LEFT_OUT = (
    "trials do not keep: metrics are finite numbers, at most 100, under names of one line. The rewards are recorded. "
    "Leave out what was not measured, and save text, lists and models elsewhere."
)
REPORTS = "has reported nothing. Usually the objective returns its value: let it `yield` the value after each step."
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


def is_stepwise(executor: Executor | None) -> bool:
    """Returns whether trials can report step by step. A generator cannot be sent to another process half-way."""
    apart: Any = getattr(futures, "InterpreterPoolExecutor", ())  # It is an executor of threads by name alone.
    return isinstance(executor, ThreadPoolExecutor | ThisThread | None) and not isinstance(executor, apart)


Ending = Literal["stop", "wait", "left"]  # Why a trial does not go on. A trial that is left has its answer already.


@final
class Walk:
    """An evaluation under way or paused.

    Attributes:
        trial: its trial.
        steps: its further steps.
        step: number of the last one, from 1. Reports of steps that were on record before are passed over.
        last: the last report, step and value, or None.
    """

    def __init__(self, trial: Trial, task: Task) -> None:
        self.trial, self.steps, self.step = trial, steps_of(task, trial), 0
        self.last = trial.steps[-1] if trial.curve else None


@final
class Loop:
    """Evaluations of a study's trials.

    A trial that reports is paused if the pruning rule says so and the task can wait. It goes on before a new trial
    begins, once the rule says so. At the end of the run paused trials are stopped. After an interrupt or an error they
    stay pending, and a later run asks the rule again before it begins them anew.

    Args:
        study: the study that has the trials.
        task: a function from a trial to the outcome of its evaluation.
        trials: how many there shall be in all (see `counting`). Workers that ask at the same moment may make as many
            more as there are others.
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
        self.refusal: NoRegretError | None = None  # The error with which the study decided nothing more.
        self._reason: str | None = None  # The reason to end the run now.
        self._closed = False  # Whether the run has ended, which closes evaluations in other threads.
        self._stepwise, self._waits = is_stepwise(executor), lease is None and getattr(task, "waits", False)
        known = list(study.trials)
        # A stopped run left trials pending, which are evaluated first. Trials with a lease belong to other workers.
        resumed = [Walk(trial, task) for trial in known if trial.state == "pending" and trial.lease_until is None]
        self._resumed = deque(walk for walk in resumed if lease is None and not walk.last)
        self._paused = {walk.trial.number: walk for walk in resumed if lease is None and walk.last}
        self._has_value = any(trial.state in ("observed", "stopped") for trial in known)
        self._valued = 0  # Values in this run.
        self._failed = 0  # Failures in this run before any value.
        self._silent = pruning_of(study.policy) != Never()  # Whether no trial with a value has reported yet.
        self._left_out: set[str] = set()  # Entries of answers that a warning has named.
        self._cancelled = 0  # Cancellations since the last answer.
        self._token = uuid4().hex  # It identifies this run.
        self._asked: dict[int, Trial] = {}
        self._under_way: dict[Future[Any], Walk] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()
        self.evaluated = 0

    def run(self) -> str | None:
        """Evaluates until there are as many trials as wanted. Returns the reason for an earlier end, or None.

        Trials without an answer stay pending, except that an interrupted worker with a lease abandons its trials.
        """
        try:
            self._fill()
            while self._under_way and self._reason is None:
                self._finish(self._done.get())
                self._fill()
            for walk in list(self._paused.values()):
                self._stop(walk)
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
            self._closed = True
            for walk in self._paused.values():
                walk.steps.close()
            for future, walk in self._under_way.items():
                if future.cancel() or future.done():  # An evaluation that runs is closed in its thread.
                    walk.steps.close()
        return self._reason or self._over

    def _next(self) -> Walk | None:
        """Returns the next trial to evaluate, or None if there are as many as wanted, or none is to begin."""
        new = counting(self._study, shared=self._lease is not None) < self._wanted or bool(self._resumed)
        if self._reason is not None or not (new or self._paused):
            return None
        if self._time is not None and not self._time.left:
            over: str | None = self._time.reason
        else:
            over = None if self._enough is None or self._resumed else self._enough()
        self._over = over if new else None
        if over is not None:
            return None
        for walk in list(self._paused.values()):
            if self._goes_on(walk):
                return self._paused.pop(walk.trial.number)
        if self._resumed:
            return self._resumed.popleft()
        if not new or self._reason is not None:
            return None
        try:
            return Walk(self._study.ask(lease=None if self._lease is None else self._lease.seconds), self._task)
        except NoRegretError as error:  # Nothing more can be decided, such as with slopes that are refuted.
            if type(error) is not NoRegretError or not self._has_value:
                raise
            self._over, self.refusal = f"{REFUSED}: {error}", error
            return None

    def _goes_on(self, walk: Walk) -> bool:
        """Returns whether a paused trial may go on now. If the rule stops it now, it is stopped."""
        verdict = self._report(walk, *cast(Any, walk.last))
        if verdict not in ("wait", *GOING):
            self._stop(walk)
        return verdict in GOING

    def _fill(self) -> None:
        """Submits trials to the executor until as many are under way as may be, or no more are to begin."""
        while len(self._under_way) < self._in_flight and (walk := self._next()) is not None:
            self._begin(walk)

    def _begin(self, walk: Walk) -> None:
        """Submits a trial to the executor, or goes on with it."""
        trial = walk.trial
        self._asked[trial.number] = trial
        if self._time is not None:
            self._time.begin()
        try:
            if self._stepwise:
                future = self._executor.submit(self._walked, walk)
            else:
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
        self._under_way[future] = walk
        future.add_done_callback(self._done.put)

    def _walked(self, walk: Walk) -> Outcome | Ending | NoRegretError:
        """Returns the outcome of a trial, or why it does not go on. It runs in the thread of a worker."""
        known, verdict = walk.last[0] if walk.last else 0, "go"
        try:
            while verdict in GOING:
                try:
                    value = next(walk.steps)
                except StopIteration as end:
                    return cast(Outcome, end.value)
                walk.step += 1
                if walk.step > known:
                    verdict = self._report(walk, walk.step, value)
        except Unusable as error:
            return Outcome(reason=str(error), malformed=True)
        except NoRegretError as error:
            return error
        finally:
            if verdict != "wait":
                walk.steps.close()
        return cast(Ending, verdict)

    def _report(self, walk: Walk, step: int, value: float) -> Verdict | Ending:
        """Reports a step, and returns the verdict on the trial."""
        if self._closed:
            return "left"
        replica, number = self._study.replica, walk.trial.number
        try:
            checked = replica.inputs.report(step, value)
        except InvalidInput as error:
            raise Unusable(str(error)) from error
        try:
            _, verdict = self._patiently(lambda: replica.write(Transaction(replica).report, number, *checked))
        except TrialError as error:
            return self._answered(walk, error)
        walk.last = checked
        return "stop" if verdict == "wait" and not self._waits else verdict

    def _answered(self, walk: Walk, error: TrialError) -> Ending:
        """Returns what becomes of a trial that was answered by others. It may have been stopped by hand."""
        if self._study.trials[walk.trial.number].state == "stopped":
            return "stop"
        if self._lease is None:
            raise error
        self._lease.say(f"trial {walk.trial.number}: {error}")  # Another process answered first, and that holds.
        return "left"

    def _finish(self, future: Future[Any]) -> None:
        """Records the outcome of an evaluation, or pauses it."""
        walk, outcome = self._under_way.pop(future), _outcome(future)
        if isinstance(outcome, Outcome) and outcome.cancelled:
            self._abandon(walk, outcome.reason or CANCELLED)
        elif isinstance(outcome, Outcome):
            self.evaluated += 1
            outcome = self._record(walk, outcome)
        elif outcome == "stop":
            self.evaluated += 1
        if outcome == "wait":
            self._paused[walk.trial.number] = walk
            return
        if outcome == "stop":
            self._stop(walk)
        elif outcome is None:
            self._abandon(walk, CANCELLED)
        self._asked.pop(walk.trial.number, None)

    def _stop(self, walk: Walk) -> None:
        """Records that a trial was stopped."""
        walk.steps.close()
        self._paused.pop(walk.trial.number, None)
        self._has_value, self._valued = True, self._valued + 1
        trial = self._patiently(lambda: self._study.stop(walk.trial))
        self._reason = self._ended(trial) or self._reason

    def _record(self, walk: Walk, outcome: Outcome) -> Ending:
        """Records an outcome. Returns "stop" if others have stopped the trial meanwhile."""
        self._cancelled = 0
        try:
            for step, value in enumerate(outcome.curve, 1):
                if not walk.last or step > walk.last[0]:
                    self._report(walk, step, value)
        except Unusable as error:
            outcome = Outcome(reason=str(error), malformed=True)
        if outcome.malformed and not self._valued:
            self._release()
            raise InvalidInput(malformed(walk.trial, outcome))
        try:
            trial = self._patiently(lambda: _told(self._study, walk.trial, outcome))
        except TrialError as error:
            return self._answered(walk, error)
        self._warn(outcome, trial)
        self._valued += outcome.value is not None
        self._has_value = self._has_value or self._valued > 0
        self._failed += outcome.value is None
        self._reason = self._ended(trial) or self._reason
        if not self._has_value and self._failed >= HOPELESS and self._lease is None:
            raise NoRegretError(nothing_works(self._failed, trial)) from outcome.error
        return "left"

    def _warn(self, outcome: Outcome, trial: Trial) -> None:
        """Warns once of each entry of an answer that no trial can keep, and of a rule without reports."""
        if self._silent and outcome.value is not None:
            self._silent = False
            if not trial.curve:
                warn(f"`pruning` and `steps` are for trials that report, and trial {trial.number} {REPORTS}")
        new = [name for name in outcome.left_out if name not in self._left_out]
        if new:
            self._left_out.update(new)
            warn(f"Answers have {counted(len(new), 'entry')} {', '.join(new)}, which {LEFT_OUT}")

    def _patiently(self, act: Callable[[], T]) -> T:
        """Returns the result of a write. A worker with a lease retries while the storage is away."""
        for seconds in () if self._lease is None else RETRIES:
            try:
                return act()
            except StorageError:
                self._lease.wait(seconds)  # type: ignore[union-attr]  # There are retries with a lease only.
        return act()

    def _abandon(self, walk: Walk, reason: str) -> None:
        """Records that an evaluation was cancelled, which tells nothing about its point."""
        try:
            trial = self._patiently(lambda: self._study.abandon(walk.trial, reason))
        except TrialError as error:
            self._answered(walk, error)
            return
        self._reason = self._ended(trial) or self._reason
        self._cancelled += 1
        if self._reason is None and self._cancelled >= HOPELESS:
            self._reason = f"cancelled: {self._cancelled} evaluations one after the other"

    def _release(self) -> None:
        """Abandons the trials of an interrupted worker that has a lease."""
        for trial in self._asked.values() if self._lease is not None else ():
            with suppress(TrialError):  # The answer may be on record already.
                self._study.abandon(trial, STOPPED)


def counting(study: Study, *, shared: bool = False) -> int:
    """Returns how many trials count towards those wanted, and records the end of leases that are over.

    Failed trials count, and so do abandoned ones that had no lease, or an executor that abandons all would never end.

    Args:
        study: the study.
        shared: True if other workers share the study. Then no abandoned trial counts.
    """
    trials, replica = study.trials, study.replica
    if replica.leases.over(replica.now()):
        replica.write(lambda: None)
        trials = study.trials
    return sum(trial.state != "abandoned" or not (shared or trial.lease_until) for trial in trials)


def _told(study: Study, trial: Trial, outcome: Outcome) -> Trial:
    value: Any = outcome.value
    if value is None:
        return study.fail(trial, outcome.reason or "it gave no reason")
    reported = [value for _, value in study.trials[trial.number].steps]
    if reported and pruning_of(study.policy).of == "best":
        value = max(reported) if study.goal == "maximize" else min(reported)
    return study.tell(trial, value, constraints=outcome.constraints, std=outcome.std, metrics=outcome.metrics)


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
    end = "" if reason.endswith(("?", ".")) else "."
    return (
        f"The run ends at trial {trial.number}: {reason}{end} Usually every evaluation "
        "makes this mistake, which says nothing of the point, so the trial was not answered. Mend the objective. "
        "If it is this point that has no value, raise an exception or return NaN. Where there is a storage, "
        "the same call then goes on."
    )


def _outcome(future: Future[Any]) -> Outcome | Ending | None:
    """Returns the outcome of an evaluation, or None if it was cancelled. Other errors of the executor are reasons."""
    error = None if future.cancelled() else future.exception()
    if isinstance(error, BrokenExecutor | KeyboardInterrupt):
        raise error
    if future.cancelled() or isinstance(error, CancelledError):
        return None
    if error is not None:  # The call or its answer could not be sent, or its worker was killed.
        return Outcome(reason=exception_text(error), error=error)
    outcome: Outcome | Ending | NoRegretError = future.result()
    if isinstance(outcome, NoRegretError):  # The report of a step failed.
        raise outcome
    return outcome
