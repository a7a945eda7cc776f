"""The options of a run, checked, and the evaluation of a study's trials, in this process or by an executor."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

from .._utils.checks import flag, integer, listed, many, number, shown
from .._utils.dataclass import dataclass
from .._utils.executors import check_executor
from ..algorithms.auto import checked_fidelity
from ..domains.domain import Domain
from ..errors import InvalidInput, NoRegretError, StorageError, exception_text, warn
from ..slots.fidelity import Fidelity
from ..slots.pruning import Pruning
from ..storage.record import Trial
from ..study.direction import AnyPolicy, Goal, setting_of
from ..study.pruning import pruning_of
from ..study.queue import Queue
from ..study.study import Study
from ..study.transaction import Transaction
from .loop import REFUSED, Loop, TimeLeft, counting, is_stepwise, nothing_works
from .objective import LONGEST, Evaluation, Objective, Task, TimeLimited, check_objective
from .open_study import asked_rule, check_several
from .outcome import ConstraintReader, answer_reader
from .progress import Bar
from .result import Result
from .stop import Enough, stop_rule

if TYPE_CHECKING:
    from ..storage import Storage


# A lock that allows one run at a time on an SQLite storage.
#
# A second run could not distinguish trials under evaluation from trials that a crash left pending.

SCHEME = "sqlite:///"


def finished(study: Study, trials: int) -> bool:
    """Returns whether there is nothing left to evaluate."""
    return all(trial.state != "pending" for trial in study.trials) and counting(study) >= trials


def check_lengths(trials: int | None, seconds: float | None, *, what: str = "`trials`") -> None:
    """Raises an error unless the number of trials, or the seconds, or both say how long a run is.

    Args:
        trials: number of trials in all, or None.
        seconds: length of the run, or None.
        what: where the number of trials is said, for errors.
    """
    if trials is None and seconds is None:
        raise InvalidInput(
            f"{what} is missing: how many there shall be in all. Or give `seconds`, the length of the run, or both."
        )
    if trials is not None:
        integer("trials", trials, low=1, high=MOST_TRIALS)
    if seconds is not None:
        why = "It is for the whole run, and `timeout` for one evaluation."
        number("seconds", seconds, low=0.0, open_low=True, high=LONGEST, why=why)


@contextmanager
def run_lock(study: Study, storage: str | Storage | None, *, trials: int) -> Iterator[None]:
    """Holds the lock of a storage while the block runs.

    The operating system releases the lock, however the process ends. A finished study is only read, which takes no
    lock, since its folder may not be writable. A database server has no lock that ends with a process and needs no
    session, so runs on a server are not kept apart.

    Raises:
        StorageError: if another process holds the lock, or the lock cannot be made.
    """
    place = storage if isinstance(storage, str) or storage is None else storage.place
    if place is None or not place.startswith(SCHEME) or finished(study, trials):
        yield
        return
    with closing(_lock(place)):
        yield


def _lock(storage: str) -> sqlite3.Connection:
    """Returns the write lock of an empty database beside the real one, which ends with the process."""
    path = storage.removeprefix(SCHEME) + ".lock"
    try:
        lock = sqlite3.connect(path, timeout=0.0, isolation_level=None)
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"The lock {path} could not be made ({error}): the folder must be one in which files can be made."
        ) from error
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.DatabaseError as error:
        lock.close()
        if "locked" not in str(error):
            raise StorageError(
                f"The lock {path} could not be taken ({error}): it must be a file that can be written to, and nobody "
                "else's."
            ) from error
        raise StorageError(
            f"Another process is tuning in {storage} ({error}), and a file has one run at a time. Wait for it or stop "
            "it; to tune several things at once give each its own storage.",
            advice="For several processes on one study let each ask and tell by itself (`study.ask`, `study.tell`), or "
            "start workers: `nilregret work STORAGE STUDY MODULE:FUNCTION --trials N`.",
        ) from error
    return lock


MOST_IN_FLIGHT = 10_000
# Packages that send by cloudpickle, which can send lambdas and other objects that the standard pickle cannot.
SENT_BY_VALUE = ("distributed", "loky")


def in_flight_count(executor: Executor | None, in_flight: int | None) -> int:
    """Returns the number of evaluations at a time: `in_flight`, or the number of workers."""
    if executor is None:
        if in_flight not in (None, 1):
            raise InvalidInput("`in_flight` is for an `executor`; without one there is one evaluation at a time.")
        return 1
    workers = _workers(executor) if in_flight is None else in_flight
    if workers is None:
        raise InvalidInput(
            f"`executor` does not say how many workers it has ({type(executor).__name__}), or has none yet: give "
            "`in_flight=`, how many evaluations shall be under way at once."
        )
    return integer("in_flight", workers, low=1, high=MOST_IN_FLIGHT)


def check_sendable(task: Task, executor: Executor | None) -> None:
    """Raises an error if the task cannot be sent to processes. Otherwise each trial would fail and stay on record."""
    dumps = None if executor is None else _dumps(executor)
    if dumps is None:
        return
    try:
        dumps(task)
    except Exception as error:  # Users' objects may raise anything when they are sent.
        raise InvalidInput(
            f"The objective cannot be sent to the processes of `executor` ({exception_text(error)}). Usually it is a "
            "lambda, is defined inside a function, or uses an open file, connection or lock: define it at the top of a "
            "module and make what it uses inside it, or take a ThreadPoolExecutor, or loky's processes."
        ) from error


def check_executor_steps(study: Study, executor: Executor | None) -> None:
    """Raises an error if trials report to a pruning rule, and the executor runs each of them in one piece."""
    if pruning_of(study.policy).stops and not is_stepwise(executor):
        raise InvalidInput(
            "`pruning` decides after each step, and the processes of `executor` send a curve at its end alone. Take a "
            "`ThreadPoolExecutor`, or leave `pruning` out.",
            advice="Beside threads `timeout=` gives each evaluation a process of its own. Workers of a shared storage "
            "(`nilregret work`) prune, too.",
        )


def _workers(executor: Executor) -> int | None:
    """Returns the number of workers (of threads, for a Dask cluster), or None if unknown."""
    count = getattr(executor, "_max_workers", None)
    threads = getattr(getattr(executor, "_client", None), "nthreads", None)
    if count is None and callable(threads):
        count = sum(threads().values()) or None
    return count


def _dumps(executor: Executor) -> Callable[[Any], bytes] | None:
    """Returns the function that serialises tasks for the executor, or None if nothing is sent, or if unknown."""
    packages = {each.__module__.partition(".")[0] for each in type(executor).__mro__}
    if not packages.isdisjoint(SENT_BY_VALUE):
        import cloudpickle

        return cloudpickle.dumps  # type: ignore[no-any-return]
    from concurrent.futures import ProcessPoolExecutor  # This loads multiprocessing.

    return pickle.dumps if isinstance(executor, ProcessPoolExecutor) else None


Callback = Callable[[Study, Trial], object]
Constraint = int | str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None

MOST_TRIALS = 1_000_000
ALL = "trials"  # The reason of a run that has all its trials. Every other one is such a word and a sentence.
INTERRUPTED = "interrupted"


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RunOptions:
    """The objective and the way to evaluate it. The attributes are arguments of `maximize`."""

    objective: Objective
    trials: int | None
    enqueue: Any = None
    seconds: float | None = None
    stop: Enough | float | str | None = None
    cost: str | None = None
    constraints: Constraint = None
    objectives: Mapping[str, Goal] | None = None
    fidelity: Fidelity | None = None
    pruning: str | Pruning | None = None
    steps: int | None = None
    of: Literal["last", "best"] | None = None
    executor: Executor | None = None
    in_flight: int | None = None
    timeout: float | None = None
    callbacks: Sequence[Callback] = ()
    progress: bool = True

    def check(self, domain: Domain) -> None:
        """Raises an error, before any evaluation, for options that make no sense on a domain."""
        setting = None if self.fidelity is None else checked_fidelity(self.fidelity).name
        check_objective(self.objective, domain, setting=setting)
        for constraint in self.reader.functions:
            check_objective(constraint, domain, what="A function in `constraints`", setting=setting)
        check_lengths(self.trials, self.seconds)
        stop_rule(self.stop)
        check_several(self.objectives, stop=self.stop, cost=self.cost)
        asked_rule(self.pruning, self.steps, self.of)
        if self.timeout is not None:
            number("timeout", self.timeout, low=0.0, open_low=True, high=LONGEST, why="It is in seconds.")
        check_executor(self.executor)
        for callback in listed("callbacks", self.callbacks, why="Each is called with (study, trial)."):
            if not callable(callback):
                raise InvalidInput(f"A callback is called with (study, trial), and {shown(callback)} cannot be called.")
        flag("progress", self.progress)

    @cached_property
    def reader(self) -> ConstraintReader:
        """The reader of objectives and constraint values."""
        return answer_reader(self.constraints, self.cost, self.objectives)

    @cached_property
    def parallel(self) -> int:
        """The number of evaluations at a time."""
        return in_flight_count(self.executor, self.in_flight)

    def result(self, study: Study, storage: str | Storage | None) -> Result:
        """Evaluates a study's trials, or goes on with them, and returns the result. `storage` is that of the study."""
        task: Any = Evaluation(self.objective, self.reader)
        return evaluated(
            study, task if self.timeout is None else TimeLimited(task, self.timeout), storage, trials=self.trials,
            seconds=self.seconds, bar=Bar(study.name, self.trials, goals=study.goals, show=self.progress),
            executor=self.executor, in_flight=self.parallel, callbacks=self.callbacks, enqueue=self.enqueue,
            stop=stop_rule(self.stop),
            again="the same call goes on" if storage else "with a `storage` the same call would go on",
        )  # fmt: skip


def evaluated(
    study: Study, task: Task, storage: str | Storage | None, *, trials: int | None, seconds: float | None, bar: Bar,
    executor: Executor | None, in_flight: int, again: str, callbacks: Sequence[Callback] = (), enqueue: Any = None,
    stop: Enough | None = None,
) -> Result:  # fmt: skip
    """Evaluates a study's trials, or goes on with them, and returns the result.

    Args:
        study: the study.
        task: the evaluation, which is closed at the end if it has a time limit.
        storage: of the study.
        trials: number of trials wanted in all, or None for as many as there is time for.
        seconds: after which no trial begins, or None.
        bar: shows the progress.
        executor: runs several evaluations at once, or None.
        in_flight: number of evaluations at once.
        again: words that say how a stopped run goes on.
        callbacks: see `maximize`.
        enqueue: points to try first, or None.
        stop: rule that ends the run, or None.
    """
    enough = None if stop is None else stop.of(study)
    entries = None if enqueue is None else _entries(study, enqueue, trials)
    stopped, most = ALL, MOST_TRIALS if trials is None else trials
    if not finished(study, most):
        with ExitStack() as stack:
            stack.enter_context(run_lock(study, storage, trials=most))
            stack.enter_context(bar)
            if isinstance(task, TimeLimited):
                stack.enter_context(closing(task))
                if executor is None:
                    task.start()
            check_sendable(task, executor)
            check_executor_steps(study, executor)
            if entries is not None:
                _enqueue_first(study, entries)
            time = None if seconds is None else TimeLeft(seconds)
            bar.begun(study, time)

            def ended(trial: Trial) -> str | None:
                bar.ended(trial)
                answers = [callback(study, trial) for callback in callbacks]  # Every callback is called.
                return "callback: it returned True" if any(map(_ends, answers)) else None

            try:
                reason = Loop(
                    study, task, trials=most, ended=ended, executor=executor, in_flight=in_flight, time=time,
                    enough=enough,
                ).run()  # fmt: skip
            except KeyboardInterrupt:
                reason = f"{INTERRUPTED}: by Ctrl-C"
            if reason is not None:
                stopped = _stopped(reason, study, trials, again)
                bar.say(f"Stopped: {stopped.removesuffix('.')}.")
    known = tuple(study.trials)
    if stopped == ALL and known and all(trial.state == "failed" for trial in known):
        raise NoRegretError(nothing_works(len(known), known[-1]))
    return Result(study=study, trials=known, wanted=trials, stopped=stopped)


def _stopped(reason: str, study: Study, trials: int | None, again: str) -> str:
    """Returns why a run ended, after how many trials, and how it goes on. If trials are enough, it does not."""
    done = sum(trial.state != "pending" for trial in study.trials)
    of = f"{done} of {many(trials, 'trial')}" if trials else many(done, "trial")
    if reason.startswith(REFUSED):
        return f"{REFUSED}: no trial is decided after {of}. {reason.removeprefix(REFUSED)[2:]}"
    return f"{reason} after {of}" if reason.startswith("enough: ") else f"{reason} after {of}; {again}"


def _entries(study: Study, points: Any, trials: int | None) -> list[dict[str, Any]]:
    """Returns the points to try first as they are recorded, checked."""
    entries = Queue().entering(points, study.replica.roster, study.inputs)
    if trials is not None and len(entries) > trials:
        raise InvalidInput(
            f"`enqueue` has {many(len(entries), 'point')}, and `trials` is {trials}: each is a trial, so some would "
            "never be tried. Take more `trials`, or leave some points out."
        )
    return entries


def _enqueue_first(study: Study, entries: list[dict[str, Any]]) -> None:
    """Enqueues points in a study that has asked for no trial. A resumed run has them on record."""
    first = next((change.body for change in study.changes if change.kind == "enqueued"), None)
    if (first or {}).get("entries") != entries and not study.replica.write(
        Transaction(study.replica).enqueue_first, entries
    ):
        warn(
            f"`enqueue` is for a new run, and study {shown(study.name)} has begun without these points: they were not "
            "enqueued. `study.enqueue` takes them at any time."
        )


def _ends(answer: object) -> bool:
    """Returns whether the answer of a callback ends the run. It is a truth value, or None to go on."""
    return answer is not None and flag(
        "the answer of a callback", answer, why="True ends the run, and False and None let it go on."
    )


def check_no_context(policy: AnyPolicy) -> None:
    """Raises an error if the policy needs a context before each decision."""
    if policy.context is not None and setting_of(policy) is None:
        raise InvalidInput(
            "`policy` needs a context for each question, and an objective has none. Ask and tell by yourself.",
            advice="That is `trial = study.ask(...)` and `study.tell(trial, ...)`.",
            topic="by_yourself",
        )
