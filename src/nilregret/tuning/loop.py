"""The loop of every optimisation: ask, evaluate, tell. It may be stopped anywhere and go on later, from the record.

A question is asked after each answer, in the order in which answers come: what is asked depends on that order and on
nothing else. One evaluation at a time is the special case of an executor that has one worker, this thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from queue import SimpleQueue
from typing import Any, final
from uuid import uuid4

from .._utils.errors import NoRegretError, exception_text
from ..storage.record import Trial
from ..study.study import Study
from .answers import Outcome
from .limits import Task

HOPELESS = 10  # trials that fail before one has a value, or are lost one after the other: more would be, too
CANCELLED = "its evaluation was cancelled"


@final
class ThisThread(Executor):
    """An executor that evaluates at once, where it is called; an interrupt goes to whoever called."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """The answer, in a future that is done."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@final
class Loop:
    """Evaluations of a study's trials.

    Args:
        study: whose trials they are.
        task: from where to evaluate (a dict of parameters, or a point `(d,)`) to what came of it.
        trials: how many there shall be in all, those on record and those that fail included.
        ended: called after each answer; a word that it returns stops the run, which is no error.
        executor: where evaluations run.
        in_flight: how many at once.
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
    ) -> None:
        self._study, self._task, self._wanted, self._ended = study, task, trials, ended
        self._executor, self._in_flight = executor or ThisThread(), in_flight
        known = list(study.trials)
        # A run that was stopped left trials pending: the same points are evaluated now, under the same numbers. What
        # has a lease belongs to a worker of its own, which answers or loses it.
        self._left = deque(trial for trial in known if trial.state == "pending" and trial.lease_until is None)
        self._answered = any(trial.state == "observed" for trial in known)
        self._failed = 0  # in this run, before any answer
        self._lost = 0  # since the last answer
        self._token = uuid4().hex  # of this run
        self._under_way: dict[Future[Any], Trial] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()

    def run(self) -> str | None:
        """Go on until there are as many trials as wanted; returns why it stopped before, or None.

        Whatever stops it, trials that have no answer yet stay pending.
        """
        try:
            for _ in range(self._in_flight):
                self._begin()
            while self._under_way:
                reason = self._finish(self._done.get())
                if reason is not None:
                    return reason
                self._begin()
        except BrokenExecutor as error:
            if not self._answered:
                raise NoRegretError(
                    f"The executor broke before any trial had a value: {exception_text(error)}. Usually a worker was "
                    "killed, ran out of memory, or cannot load the objective: define it in a module that workers can "
                    "import."
                ) from error
            return f"the executor broke: {exception_text(error)}"
        finally:
            for future in self._under_way:
                future.cancel()  # those that have not begun
        return None

    def _begin(self) -> None:
        """Evaluate the next trial, if there is one."""
        if self._left:
            trial = self._left.popleft()
        elif len(self._study.trials) < self._wanted:
            trial = self._study.ask()
        else:
            return
        try:
            # Dask evaluates what it takes for the same call once; the trials of one point are evaluations of their own.
            future = self._executor.submit(_evaluated, self._task, where(trial), f"{self._token}-{trial.number}")
        except (BrokenExecutor, NoRegretError):
            raise
        except RuntimeError as error:
            raise NoRegretError(
                f"The executor takes no more work ({error}). Usually it was shut down, as at the end of its `with`."
            ) from error
        except Exception as error:  # whatever somebody's executor raises that has lost its workers
            raise BrokenExecutor(exception_text(error)) from error
        self._under_way[future] = trial
        future.add_done_callback(self._done.put)

    def _finish(self, future: Future[Any]) -> str | None:
        trial, outcome = self._under_way.pop(future), _outcome(future)
        if outcome is None:
            return self._given_up(trial)
        self._lost = 0
        if outcome.value is not None:
            trial = self._study.tell(trial, outcome.value, constraints=outcome.constraints)
            self._answered = True
        else:
            trial = self._study.fail(trial, outcome.reason or "it gave no reason")
            self._failed += 1
        reason = self._ended(trial)
        if not self._answered and self._failed >= HOPELESS:
            raise NoRegretError(nothing_works(self._failed, trial)) from outcome.error
        return reason

    def _given_up(self, trial: Trial) -> str | None:
        """Nobody evaluates it any more, which says nothing of its point."""
        reason = self._ended(self._study.abandon(trial, CANCELLED))
        self._lost += 1
        if reason is None and self._lost >= HOPELESS:
            return f"the executor cancelled {self._lost} evaluations one after the other"
        return reason


def _evaluated(task: Task, at: Any, token: str) -> Outcome:  # noqa: ARG001 - by the token calls are told apart
    return task(at)


def where(trial: Trial) -> Any:
    """What an objective is given of a trial, and may do with as it likes: its parameters, or else its point `(d,)`."""
    return trial.point.copy() if trial.settings is None else trial.parameters


def nothing_works(failed: int, last: Trial) -> str:
    """What to say where every trial fails."""
    many = f"All {failed} trials" if failed > 1 else "The only trial"
    return (
        f"{many} failed, the last one with {last.reason!r}. Usually the objective has a mistake that its arguments "
        f"have nothing to do with: call it by yourself with {where(last)!r}. Failed trials stay on record; to begin "
        "afresh where there is a storage, choose another `name`."
    )


def _outcome(future: Future[Any]) -> Outcome | None:
    """What came of an evaluation, None if it was cancelled; an error that is not the objective's own is a reason."""
    error = None if future.cancelled() else future.exception()
    if isinstance(error, BrokenExecutor | KeyboardInterrupt):
        raise error
    if future.cancelled() or isinstance(error, CancelledError):
        return None
    if error is not None:  # it could not be sent to a worker, or back, or killed one after the other
        return Outcome(reason=exception_text(error), error=error)
    outcome: Outcome = future.result()
    return outcome
