"""A run of `maximize` or `minimize`: what was asked for, checked, and carried out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, final

from ..checks import flag, integer, listed, number, shown
from ..domain import Arms, Box, Domain, Space, check_domain
from ..errors import InvalidInput, NoRegretError
from ..record import Trial
from ..study.goal import AnyPolicy, Goal
from ..study.study import Study, check_policy
from .feasibility import Limits, limits_of
from .limits import LONGEST, Limited, check_sendable
from .lock import alone, finished
from .loop import Loop, nothing_works
from .objective import Evaluation, Objective, check_objective
from .opening import check_count, opened
from .progress import Bar
from .result import Result

if TYPE_CHECKING:
    from ..storage import Storage

Callback = Callable[[Study, Trial], object]
Constraint = int | str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None

MOST_TRIALS = 1_000_000
MOST_IN_FLIGHT = 10_000


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """What a call of `maximize` or `minimize` asks for; the attributes are its arguments."""

    goal: Goal
    objective: Objective
    space: Domain
    trials: int
    seed: int
    storage: str | Storage | None
    name: str | None
    policy: AnyPolicy | None
    executor: Executor | None
    in_flight: int | None
    timeout: float | None
    callbacks: Sequence[Callback]
    progress: bool
    constraints: Constraint = None

    def __post_init__(self) -> None:
        if callable(self.space) and isinstance(self.objective, Space | Box | Arms):
            raise InvalidInput(f"`{self.goal}` takes the objective first and then the space: the two are swapped.")
        check_domain("space", self.space)
        check_objective(self.objective, self.space)
        for constraint in self.limits.functions:
            check_objective(constraint, self.space, what="A function in `constraints`")
        integer("trials", self.trials, low=1, high=MOST_TRIALS)
        if self.timeout is not None:
            number("timeout", self.timeout, low=0.0, open_low=True, high=LONGEST, why="It is in seconds.")
        if self.executor is not None and not isinstance(self.executor, Executor):
            raise InvalidInput(f"`executor` must be a concurrent.futures.Executor, not {shown(self.executor)}.")
        for callback in listed("callbacks", self.callbacks, why="Each is called with (study, trial)."):
            if not callable(callback):
                raise InvalidInput(f"A callback is called with (study, trial), and {shown(callback)} cannot be called.")
        flag("progress", self.progress)
        if self.policy is not None:
            _check_fits(self.policy, self.space, self.limits)

    @cached_property
    def limits(self) -> Limits:
        """What answers must satisfy."""
        return limits_of(self.constraints)

    def result(self) -> Result:
        """Carry it out, or go on with it."""
        at_once = self._at_once()
        study = self._study(at_once)
        stopped = None if finished(study, self.trials) else self._go_on(study, at_once)
        trials = tuple(study.trials)
        if stopped is None and not any(trial.reward is not None for trial in trials):
            raise NoRegretError(nothing_works(len(trials), trials[-1]))
        return Result(study=study, trials=trials, wanted=self.trials, stopped=stopped)

    def _go_on(self, study: Study, at_once: int) -> str | None:
        """Evaluate what is left; returns why it stopped before the end, or None."""
        task: Any = Evaluation(self.objective, self.limits)
        with ExitStack() as during:
            during.enter_context(alone(study, self.storage, trials=self.trials))
            bar = during.enter_context(Bar(study.name, self.trials, goal=self.goal, show=self.progress))
            if self.timeout is not None:
                task = during.enter_context(closing(Limited(task, self.timeout)))
                if self.executor is None:
                    task.start()

            def ended(trial: Trial) -> str | None:
                bar.ended(trial)
                said = [callback(study, trial) for callback in self.callbacks]  # all of them, whatever one returns
                return "a callback returned True" if any(answer is True for answer in said) else None

            check_sendable(task, self.executor)
            bar.begun(study)
            try:
                loop = Loop(study, task, trials=self.trials, ended=ended, executor=self.executor, in_flight=at_once)
                stopped = loop.run()
            except KeyboardInterrupt:
                stopped = "it was interrupted (Ctrl-C)"
            if stopped is None:
                return None
            done = sum(trial.state != "pending" for trial in study.trials)
            further = "the same call goes on" if self.storage else "with a `storage` the same call would go on"
            reason = f"{stopped} after {done} of {self.trials} trials; {further}"
            bar.say(f"Stopped: {reason}.")
        return reason

    def _study(self, at_once: int) -> Study:
        name = _name_of(self.objective, self.goal) if self.name is None else self.name
        return opened(
            self.space,
            self.policy,
            goal=self.goal,
            seed=self.seed,
            storage=self.storage,
            name=name,
            budget=self.trials,
            parallel=at_once,
            limits=self.limits,
            about=self.limits.facts,
        )

    def _at_once(self) -> int:
        """How many evaluations are under way at a time."""
        if self.executor is None:
            if self.in_flight not in (None, 1):
                raise InvalidInput("`in_flight` is for an `executor`; without one there is one evaluation at a time.")
            return 1
        workers = getattr(self.executor, "_max_workers", None) if self.in_flight is None else self.in_flight
        if workers is None:
            raise InvalidInput(
                f"`executor` does not say how many workers it has ({type(self.executor).__name__}): give `in_flight=`, "
                "how many evaluations shall be under way at once."
            )
        return integer("in_flight", workers, low=1, high=MOST_IN_FLIGHT)


def _name_of(objective: Objective, goal: str) -> str:
    """The name of a function, behind `partial` too; of what has none the goal."""
    while isinstance(objective, partial):
        objective = objective.func
    name = getattr(objective, "__name__", type(objective).__name__)
    return name if name.isidentifier() else goal


def _check_fits(policy: AnyPolicy, space: Domain, limits: Limits) -> None:
    check_policy(policy)
    if policy.domain != space:
        raise InvalidInput(
            f"`policy` is for another domain: {shown(policy.domain)}, and `space` is {shown(space)}. Make both of one."
        )
    if policy.context is not None:
        raise InvalidInput(
            "`policy` needs a context for each question, and an objective has none. Ask and tell by yourself: "
            "trial = study.ask(...), study.tell(trial, ...)."
        )
    check_count(policy, limits)
