"""A run of `maximize` or `minimize`: what was asked for, checked, and carried out."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

from ..checks import flag, integer, listed, number, shown
from ..domain import Arms, Box, Domain, Space
from ..errors import InvalidInput, NoRegretError
from ..record import Trial
from ..serialize import loads
from ..study.goal import AnyPolicy, Goal
from ..study.study import Study, check_policy
from .answers import Outcome, attempt, usable
from .limits import LONGEST, Limited
from .lock import alone, finished
from .loop import Loop, nothing_works
from .progress import Bar
from .result import Result

Objective = Callable[..., Any]
Callback = Callable[[Study, Trial], object]

MOST_TRIALS = 1_000_000
MOST_IN_FLIGHT = 10_000


@final
@dataclass(frozen=True)
class Evaluation:
    """An objective, called with what it was made for; can be sent to other processes if the objective can.

    Attributes:
        objective: called with keyword arguments where it is given a dict, else with the point.
        home: the process it comes from.
    """

    objective: Objective
    home: int = field(default_factory=os.getpid)

    def __call__(self, at: Any) -> Outcome:
        """The objective's number, or why there is none."""
        outcome = attempt(partial(self._value, at))
        return outcome if os.getpid() == self.home else outcome._replace(error=None)  # not every error can be sent back

    def _value(self, at: Any) -> float:
        return usable(self.objective(**at) if isinstance(at, dict) else self.objective(at))


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """What a call of `maximize` or `minimize` asks for; the attributes are its arguments."""

    goal: Goal
    objective: Objective
    space: Domain
    trials: int
    seed: int
    storage: str | None
    name: str | None
    policy: AnyPolicy | None
    executor: Executor | None
    in_flight: int | None
    timeout: float | None
    callbacks: Sequence[Callback]
    progress: bool

    def __post_init__(self) -> None:
        if not isinstance(self.space, Space | Box | Arms):
            hint = " Write nr.Space(**parameters)." if isinstance(self.space, dict) else ""
            raise InvalidInput(f"`space` must be a Space, Box or Arms, not {shown(self.space)}.{hint}")
        check_objective(self.objective, _names(self.space), _conditional(self.space))
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
            _check_fits(self.policy, self.space)

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
        task: Any = Evaluation(self.objective)
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
        """New, or as it is in the storage; a policy that was chosen when it began stays."""
        name = _name_of(self.objective, self.goal) if self.name is None else self.name
        policy = self.policy or self._stored_policy(name) or automatic(self.space, parallel=at_once)
        return Study(policy, goal=self.goal, seed=self.seed, storage=self.storage, name=name)

    def _stored_policy(self, name: str) -> AnyPolicy | None:
        from ..storage import SqlStorage

        stored = None if self.storage is None else SqlStorage(self.storage).find(name)
        if stored is None:
            return None
        policy: AnyPolicy = loads(stored.policy)
        check_policy(policy)
        if policy.domain != self.space:
            raise InvalidInput(
                f"Study {name!r} in {self.storage} is of other parameters: {shown(policy.domain)} then, "
                f"{shown(self.space)} now. Choose another `name` for the new ones."
            )
        return policy

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


def automatic(space: Domain, *, parallel: int) -> AnyPolicy:
    """The policy for who names none."""
    from ..algorithms import expected_improvement
    from ..kernels import Matern
    from ..slots.pending import Hallucinated, Ignored
    from ..slots.refit import Refit

    pending = Ignored(failed="worst") if parallel == 1 else Hallucinated(failed="worst")
    kernel, refit = Matern(2.5, (0.5,) * space.dimension), Refit(every=3, restarts=4)
    return expected_improvement(space, kernel, noise=0.05, refit=refit, pending=pending)


def check_objective(objective: object, names: Sequence[str] | None, conditional: Collection[str] = ()) -> None:
    """Refuse, before anything is evaluated, what cannot be called with these names, or with a point where None.

    Nor without those of them that do not always count.
    """
    if not callable(objective):
        raise InvalidInput(f"`objective` must be a function of the parameters, not {shown(objective)}.")
    if inspect.iscoroutinefunction(objective):
        raise InvalidInput("`objective` is an `async` function: wrap it, as in lambda **p: asyncio.run(f(**p)).")
    try:
        called = inspect.signature(objective)
    except (TypeError, ValueError):  # a built-in without a signature: the first trial will tell
        return
    try:
        _ = called.bind(None) if names is None else called.bind(**dict.fromkeys(names))
        if names is not None and conditional:
            called.bind(**dict.fromkeys(name for name in names if name not in conditional))
    except TypeError as error:
        given = "a point, an array (d,)" if names is None else f"the parameters {', '.join(names)} as keyword arguments"
        hint = "" if names is None or all(map(str.isidentifier, names)) else " Names with spaces go to a **dict."
        if conditional:
            hint += (
                " Parameters with conditions are left out where they do not count: give them defaults, or take **dict."
            )
        raise InvalidInput(f"`objective` cannot be called with {given}: {error}.{hint}") from error


def _names(space: Domain) -> list[str] | None:
    """Of the parameters; None where the domain has no named ones."""
    named = space.space if isinstance(space, Arms) else space
    return list(named.parameters) if isinstance(named, Space) else None


def _conditional(space: Domain) -> Collection[str]:
    """Names of the parameters that do not always count."""
    named = space.space if isinstance(space, Arms) else space
    return () if not isinstance(named, Space) or named.conditions is None else named.conditions.needs


def _name_of(objective: Objective, goal: str) -> str:
    """The name of a function, behind `partial` too; of what has none the goal."""
    while isinstance(objective, partial):
        objective = objective.func
    name = getattr(objective, "__name__", type(objective).__name__)
    return name if name.isidentifier() else goal


def _check_fits(policy: AnyPolicy, space: Domain) -> None:
    check_policy(policy)
    if policy.domain != space:
        raise InvalidInput(
            f"`policy` is for another domain: {shown(policy.domain)}, and `space` is {shown(space)}. Make both of one."
        )
    if policy.context is not None or policy.constraints:
        needs = "a context for each question" if policy.context is not None else "constraint values with each answer"
        raise InvalidInput(
            f"`policy` needs {needs}, and an objective gives one number. Ask and tell by yourself: "
            "trial = study.ask(...), study.tell(trial, ...)."
        )
