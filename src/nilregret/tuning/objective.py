"""The call of an objective: at once, or step by step if it is a generator, and in another process with a time limit.

A generator yields its value after each step, and is closed once going on is not worth it. All that evaluates trials
sees the same: the value after each step, and the outcome at the end.
"""

from __future__ import annotations

import inspect
import os
import re
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import Any, final
from uuid import uuid4

from .._utils.checks import shown
from .._utils.dataclass import dataclass, field
from ..domains.domain import Arms, Domain, Space
from ..errors import InvalidInput, TrialError, exception_text, warn
from ..storage.trial import Trial
from .outcome import UNLIMITED, ConstraintReader, Malformed, Outcome, attempt

Objective = Callable[..., Any]
Task = Callable[[Trial], Outcome]

_CURRENT: ContextVar[Trial] = ContextVar("trial")


def current_trial() -> Trial:
    """Returns the trial that an objective evaluates, if it is called inside the objective.

    The number, the point and the parameters of the trial can name files, for example. `maximize`, `minimize`, `run`
    and `nilregret tune` set the trial, in this thread, in other threads, in processes and on a cluster. A shell command
    has the number in the environment variable NILREGRET_TRIAL. A thread that the objective starts does not know the
    trial, so pass it on.

    >>> import nilregret as nr
    >>> def loss(x):
    ...     return {"reward": x**2, "seed": nr.current_trial().number}
    >>> result = nr.minimize(loss, nr.Space(x=nr.Float(-1, 1)), trials=3, progress=False)
    >>> [trial.metrics["seed"] for trial in result.trials]
    [0.0, 1.0, 2.0]

    Raises:
        TrialError: no trial is evaluated here.
    """
    try:
        return _CURRENT.get()
    except LookupError:
        raise TrialError(
            "No trial is evaluated here: `current_trial` is for an objective that `maximize`, `minimize` or `run` "
            "calls. A thread that the objective starts does not know its trial, so pass it on. With ask and tell, "
            "`study.ask()` returns the trial."
        ) from None


@contextmanager
def evaluating(trial: Trial) -> Iterator[None]:
    """Makes a trial the current one (`current_trial`) while the block runs."""
    token = _CURRENT.set(trial)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def where(trial: Trial) -> Any:
    """Returns the argument of an objective: a copy of the trial's parameters, or else of its point `(d,)`."""
    return trial.point.copy() if trial.settings is None else trial.parameters


Steps = Generator[float, None, Outcome]  # The value after each step, and the outcome at the end.


def steps_of(task: Task, trial: Trial) -> Steps:
    """Yields the value after each step of an evaluation, and returns the outcome. A task without steps has none."""
    steps: Callable[[Trial], Steps] | None = getattr(task, "steps", None)
    return task(trial) if steps is None else (yield from steps(trial))


def outcome_of(steps: Steps) -> Outcome:
    """Returns the outcome of an evaluation, with its curve."""
    curve = list[float]()
    with closing(steps):
        while True:
            try:
                curve.append(next(steps))
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome._replace(curve=tuple(curve)) if curve else outcome


@final
@dataclass(frozen=True)
class Evaluation:
    """A task that calls an objective. It can be sent to other processes if the objective can.

    Attributes:
        objective: called with keyword arguments for a dict of parameters, else with the point.
        reader: reads the constraint values of answers.
        home: number of the process in which this was made.
        waits: whether the objective can wait between two steps. A generator that waits costs nothing but its memory.
    """

    objective: Objective
    reader: ConstraintReader = UNLIMITED
    home: int = field(default_factory=os.getpid)
    waits: bool = True

    def __call__(self, trial: Trial) -> Outcome:
        """Returns the outcome of the objective at the parameters or the point of a trial."""
        outcome = outcome_of(self.steps(trial))
        return outcome if os.getpid() == self.home else outcome._replace(error=None)  # Some errors cannot be sent back.

    def steps(self, trial: Trial) -> Steps:
        """Yields the value after each step of a generator, and returns the outcome. Another objective has no steps."""
        walk = _Walk(self.reader, partial(_called, at=where(trial), more=trial.context_parameters or {}))
        done = 0
        try:
            while True:
                with evaluating(trial):
                    outcome = attempt(partial(walk.forward, self.objective))
                if walk.over or outcome.value is None:
                    later = done > 0 and outcome.reason is not None
                    return outcome._replace(reason=f"after step {done}: {outcome.reason}") if later else outcome
                yield outcome.value  # type: ignore[misc]  # A curve is of one objective.
                done += 1
        finally:
            with evaluating(trial):
                walk.close(trial.number)


class _Walk:
    """The calls of one evaluation.

    Args:
        reader: reads answers.
        call: calls a function with the arguments of the objective.
    """

    def __init__(self, reader: ConstraintReader, call: Callable[[Objective], Any]) -> None:
        self._reader, self._call = reader, call
        self._generator: Generator[Any, Any, Any] | None = None
        self._answers = list[Any]()  # The last one.
        self.over = False

    def forward(self, objective: Objective) -> Outcome:
        """Returns the value after the next step, or the outcome once the evaluation is over."""
        if self._generator is None:
            answer = self._call(objective)
            if not isinstance(answer, Generator):
                self.over = True
                return self._reader.read(answer, self._call)
            self._generator = answer
            if self._reader.names:
                raise Malformed("it is a generator, and a curve is of one objective: `return` the values at the end")
        try:
            self._answers[:] = [next(self._generator)]
        except StopIteration as end:
            self.over = True
            return self._ended(end.value)
        return Outcome(self._reader.value(self._answers[0]))

    def _ended(self, returned: object) -> Outcome:
        if returned is not None:
            raise Malformed(f"it returned {shown(returned)} after its last step, which nothing reads: `yield` it")
        if not self._answers:
            raise Malformed("it yielded nothing, and a generator must `yield` its value after each step")
        return self._reader.read(self._answers[0], self._call)

    def close(self, number: int) -> None:
        """Closes the generator. An error that it raises meanwhile is a warning, because its trial has its answer."""
        try:
            if self._generator is not None:
                self._generator.close()
        except Exception as error:  # The objective may raise anything.
            warn(f"The generator of trial {number} raised an error when it was closed: {exception_text(error)}.")


def _called(function: Objective, at: Any, more: dict[str, Any]) -> Any:
    return function(**at, **more) if isinstance(at, dict) else function(at.copy(), **more)


LONGEST = 1e8  # Seconds.
# Seconds after which an idle process ends by itself, since its owner may have been killed. The time is shorter in a
# worker of a user's executor, because the shutdown of that executor waits for the process.
IDLE, IDLE_IN_WORKER = 60.0, 2.0

_task: list[Task] = []  # The task of this process, if it evaluates.
_steps: list[Steps] = []  # The evaluation of this process.


def _receive(task: Task) -> None:
    _task[:] = [task]


def _ready() -> None:
    """Returns nothing. A call that succeeds shows that the process has started and holds the task."""


def _begin(trial: Trial) -> float | Outcome:
    _steps[:] = [steps_of(_task[0], trial)]
    return _forward()


def _forward() -> float | Outcome:
    """Returns the value after the next step, or the outcome at the end."""
    try:
        return next(_steps[0])
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome._replace(error=None)  # Some exceptions cannot be sent to another process.


def _close() -> None:
    _steps[0].close()


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
        return outcome_of(self.steps(trial))

    def steps(self, trial: Trial) -> Steps:
        """Yields the value after each step, and returns the outcome. The time limit is for all steps together."""
        pool, left = self._ready_pool(), self._seconds
        call: Callable[[], float | Outcome] = partial(_begin, trial)
        while True:
            begun = monotonic()
            try:
                found: float | Outcome = pool.submit(call).result(timeout=max(left, 0.0))
            except TimeoutError:
                self._end(pool)
                return Outcome(reason=f"no answer within {self._seconds:g} s")
            except BrokenExecutor as error:
                self._end(pool)
                return Outcome(
                    reason=f"its process ended without an answer{_status(error)}: out of memory, or a crash?"
                )
            except BaseException:  # After an interrupt no caller waits for the answer.
                self._end(pool)
                raise
            if isinstance(found, Outcome):
                return found
            left, call = left - (monotonic() - begun), _forward
            try:
                yield found
            except GeneratorExit:
                self._close(pool)
                raise

    def _close(self, pool: Any) -> None:
        """Closes the evaluation of a process, which may take as long as an evaluation."""
        try:
            pool.submit(_close).result(timeout=self._seconds)
        except Exception:  # The process takes too long, has died, or was ended.
            self._end(pool)

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


def check_objective(
    objective: object, domain: Domain, *, what: str = "`objective`", setting: str | None = None
) -> None:
    """Raises an error, before any evaluation, if the objective cannot be called.

    Args:
        objective: the function. It must accept all parameters of the domain, and also only those without conditions. If
            the domain has no parameters, it must accept a point.
        domain: domain of the points.
        what: name of the objective, for errors.
        setting: name of one more argument, which the policy chooses (`Fidelity`), or None.
    """
    more = {} if setting is None else {setting: None}
    if not callable(objective):
        raise InvalidInput(f"{what} must be a function of the parameters, not {shown(objective)}.")
    if inspect.iscoroutinefunction(objective) or inspect.isasyncgenfunction(objective):
        raise InvalidInput(f"{what} is an `async` function: wrap it in one that returns asyncio.run(...) of it.")
    try:
        called = inspect.signature(objective)
    except (TypeError, ValueError):  # Some built-in functions have no signature. The first trial then shows mistakes.
        return
    space = domain.space if isinstance(domain, Arms) else domain
    try:
        if isinstance(space, Space):
            for names in (space.parameters, _unconditional(space)):
                called.bind(**dict.fromkeys(names) | more)
        else:
            called.bind(None, **more)
    except TypeError as error:
        arguments, hint = _arguments(space)
        arguments += "" if setting is None else f" and the setting {setting}"
        declare = "" if isinstance(space, Space) else "To have the coordinates by name, declare an nr.Space."
        raise InvalidInput(f"{what} cannot be called with {arguments}: {error}.{hint}", advice=declare) from error


def _unconditional(space: Space) -> list[str]:
    """Returns the names of the parameters without conditions."""
    return [name for name in space.parameters if space.conditions is None or name not in space.conditions.needs]


def _arguments(space: object) -> tuple[str, str]:
    """Returns a description of the arguments of an objective, and a hint."""
    if not isinstance(space, Space):
        return "a point, an array (d,)", ""
    hint = "" if all(map(str.isidentifier, space.parameters)) else " Names with spaces go to a **dict."
    if len(_unconditional(space)) < len(space.parameters):
        hint += " Parameters with conditions are left out where they do not count: give them defaults, or take **dict."
    return f"the parameters {', '.join(space.parameters)} as keyword arguments", hint
