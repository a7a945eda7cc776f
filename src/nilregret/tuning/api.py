"""`maximize` and `minimize` for an objective and its parameters, and `run` for a study of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Literal

from .._utils.checks import shown
from ..domains.domain import Arms, Box, D, Domain, Space, check_domain
from ..errors import InvalidInput
from ..slots.fidelity import Fidelity
from ..slots.pruning import Pruning
from ..study.direction import AnyPolicy, Goal, check_policy, setting_of
from ..study.study import Study
from .objective import Objective
from .open_study import (
    check_alone,
    check_constraint_count,
    check_cost,
    check_fidelity,
    check_objectives,
    check_pruning,
    check_several,
    named_goals,
    open_study,
)
from .outcome import ConstraintReader, checked_objectives
from .result import Result
from .run_options import Callback, Constraint, RunOptions, check_no_context
from .stop import Enough

if TYPE_CHECKING:
    from ..storage import Storage


def optimize(
    goal: Goal,
    options: RunOptions,
    space: Domain,
    *,
    seed: int,
    storage: str | Storage | None,
    name: str | None,
    policy: AnyPolicy | None,
    like: Any = None,
) -> Result:
    """Carries out a call of `maximize` or `minimize`, after checks.

    Args:
        goal: "maximize" or "minimize", the name of the call.
        options: the arguments about the evaluations.
        space: domain of the points.
        seed: seed of all random choices.
        storage: URL or storage, or None.
        name: name of the study, or None.
        policy: policy, or None.
        like: earlier studies, or None.
    """
    check_several(options.objectives, like=like)
    if callable(space) and isinstance(options.objective, Space | Box | Arms):
        raise InvalidInput(f"`{goal}` takes the objective first and then the space: the two are swapped.")
    check_domain("space", space)
    options.check(space)
    if policy is not None:
        check_cost(policy, options.cost)
        _check_fits(policy, space, options.reader)
        check_alone(like, policy)
        check_pruning(policy, options.pruning, options.steps, options.of)
        check_fidelity(policy, options.fidelity)
    study = open_study(
        space, policy, goal=goal, seed=seed, storage=storage,
        name=_name_of(options.objective, goal, stored=storage is not None) if name is None else name,
        budget=options.trials, seconds=options.seconds,
        parallel=options.parallel, reader=options.reader, about=options.reader.facts, like=like,
        pruning=options.pruning, steps=options.steps, of=options.of, fidelity=options.fidelity,
    )  # fmt: skip
    return options.result(study, storage)


def _name_of(objective: Objective, goal: str, *, stored: bool) -> str:
    """Returns the name of a function, also inside `partial`, or the goal if there is no name.

    Raises:
        InvalidInput: there is no name, and another function without one may have a study in the same storage.
    """
    while isinstance(objective, partial):
        objective = objective.func
    name = getattr(objective, "__name__", type(objective).__name__)
    if name.isidentifier():
        return name
    if stored:
        raise InvalidInput(
            f"The objective {shown(objective)} has no name, so its study in `storage` needs one.",
            advice="Usually it is a lambda. Another lambda would go on with its study. Give `name=`, or use `def`.",
        )
    return goal


def _check_fits(policy: AnyPolicy, space: Domain, reader: ConstraintReader) -> None:
    check_policy(policy)
    if policy.domain != space:
        raise InvalidInput(
            f"`policy` is for another domain: {shown(policy.domain)}, and `space` is {shown(space)}. Make both of one."
        )
    check_no_context(policy)
    check_objectives(policy, reader)
    check_constraint_count(policy, reader)


def maximize(
    objective: Objective,
    space: D,
    *,
    trials: int | None = None,
    enqueue: Any = None,
    seconds: float | None = None,
    stop: Enough | float | str | None = None,
    cost: str | None = None,
    seed: int = 0,
    storage: str | Storage | None = None,
    name: str | None = None,
    constraints: Constraint = None,
    objectives: Mapping[str, str] | Sequence[str] | None = None,
    policy: AnyPolicy | None = None,
    like: Any = None,
    fidelity: Fidelity | None = None,
    pruning: str | Pruning | None = None,
    steps: int | None = None,
    of: Literal["last", "best"] | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
) -> Result[D]:
    """Finds the point at which an objective is largest, with as few evaluations as possible.

    >>> import nilregret as nr
    >>> space = nr.Space(x=nr.Float(-5, 5), kind=nr.Choice("plain", "shifted"))
    >>> def score(x, kind):
    ...     return -((x - 2) ** 2) + (1.0 if kind == "shifted" else 0.0)
    >>> result = nr.maximize(score, space, trials=15, progress=False)
    >>> result.best_parameters["kind"]
    'shifted'

    >>> def served(threads):
    ...     return {"reward": threads**0.5, "latency": 10 + 4 * threads}
    >>> space = nr.Space(threads=nr.Int(1, 32))
    >>> nr.maximize(served, space, trials=15, constraints="latency <= 50", progress=False).best_parameters
    {'threads': 10}

    If an evaluation raises an exception, or returns NaN, its trial fails with the reason, and the run goes on. If it
    raises `concurrent.futures.CancelledError`, since a measurement was lost, the trial is abandoned. If the first ten
    trials fail, the run ends with an error. A first answer of the wrong form, such as None or a text, ends it at once.
    Ctrl-C ends the run and returns the result so far.

    Args:
        objective: called with the parameters as keyword arguments if the space has names for them (a `Space`, or arms
            of one). Else called with a point, a copied array `(d,)`. Returns a number of Python or numpy, an array of
            one number, or a dict with the entry "reward". An entry "std" beside it is the standard deviation of its
            noise (see `Study.tell`), unless a constraint names it. A generator function yields such an answer after
            each step. Each value is on record at once (`trial.steps`), and the last answer is that of the trial.
        space: `Space` of named parameters, `Box` or `Arms`.
        trials: number of trials in all, with failed ones and those on record. None for as many as `seconds` allow.
        enqueue: points to try first, of all parameters or of some, such as `[{"x": 2.0, "kind": "plain"}, {"x": 1.0}]`
            (see `Study.enqueue`). They are among the `trials`. A run that is resumed does not enqueue them again.
        seconds: length of this call from its first trial on, after which no trial begins. Evaluations that have begun
            are waited for, so `timeout` bounds the rest. The initial design takes a third of the time at most.
        stop: rule that ends the run once further trials are not worth it. `nr.Enough("1%")`, or "1%" for short, is a
            share of the spread of the values. `nr.Enough(0.01)` is in units of the value. `result.stopped` says why a
            run ended.
        cost: name of what a trial costs, an entry of the objective's answer above 0. Then the expected improvement per
            cost decides. If no answer has an entry "seconds", it is the time from question to answer.
        seed: seed of all random choices. The same seed gives the same run.
        storage: URL of a database, such as "sqlite:///studies.db", or a `nilregret.storage.Storage`. Each trial is
            stored at once. The same call resumes the run, also after Ctrl-C, a crash or a power cut, and evaluates
            unanswered trials again. A finished run returns at once.
        name: name of the study in the storage, the objective's own name unless given.
        constraints: conditions that the best trial must satisfy, known only after an evaluation.

            - A text such as "latency <= 50": the objective returns a dict with this entry beside "reward".
            - A function with the arguments of the objective: a value of at most 0 satisfies the constraint.
            - A list of texts and functions.
            - A number m: the objective returns (value, [g_1, ..., g_m]), or a dict with the entry "constraints".
              g_j <= 0 satisfies constraint j.

            Trials may violate constraints, since the border can only be found by trials on both sides.
        objectives: several objectives, by name with their goals: {"loss": "minimize", "recall": "maximize"}. A list of
            names takes the goal of this call. The objective returns a dict with these entries, or a tuple in this
            order. Then `result.front` has the trials that no other one beats, and `result.best(weights=...)` picks one.
            `stop`, `cost` and `like` are for one objective.
        policy: policy for this very space. Unless given, the one in the storage, or
            `auto(space, budget=trials, constraints=m, ...)`.
        like: earlier studies of similar problems, which need not be told how similar (see `auto`). The rewards of a
            table are values of this objective: losses, if it is minimised. A run that is resumed goes on with the
            earlier studies that it began with.
        fidelity: setting that makes trials cheaper, such as `nr.Fidelity("rows", 1_000, 100_000)`. The policy chooses
            it for each trial, and the objective gets it as one more argument. The last trials are at the full setting,
            and the result is one of these (docs/fidelity.md).
        pruning: rule that stops trials of a generator before their last step: "median", "halving", "predicted", or a
            part such as `nr.slots.Halving(pause=True)`. The generator is closed, so its `finally` runs. A trial that is
            paused waits, and its generator with it. By default no trial is stopped.
        steps: number of steps of a full trial, if known.
        of: which value of a curve counts, "last" (by default) or "best". With "best" it is also the value of the trial.
        executor: runs several evaluations at once. Any `concurrent.futures.Executor`: a `ThreadPoolExecutor`, a
            `ProcessPoolExecutor` (then the objective must be importable), or `client.get_executor()` of a Dask cluster.
            The executor is not shut down. The trials depend on the order in which answers come, and on nothing else. If
            the executor cancels an evaluation, its trial is abandoned. If the executor breaks, the run ends.
        in_flight: number of evaluations at once, that of the executor's workers unless given.
        timeout: seconds that an evaluation may take. After that its trial fails. The evaluation runs in a process of
            its own, which alone can be ended. So this program does not see changes that the objective makes to its
            variables.
        callbacks: functions that are called with (study, trial) after each answer, in this thread. If one returns True,
            the run ends.
        progress: whether to show a progress bar (in a terminal or notebook), and reasons of failed trials, on stderr.
    """
    options = RunOptions(
        objective=objective, trials=trials, enqueue=enqueue, seconds=seconds, stop=stop, cost=cost,
        constraints=constraints, objectives=checked_objectives(objectives, "maximize"), fidelity=fidelity,
        pruning=pruning, steps=steps, of=of, executor=executor, in_flight=in_flight, timeout=timeout,
        callbacks=callbacks, progress=progress,
    )  # fmt: skip
    return optimize("maximize", options, space, seed=seed, storage=storage, name=name, policy=policy, like=like)


def minimize(
    objective: Objective,
    space: D,
    *,
    trials: int | None = None,
    enqueue: Any = None,
    seconds: float | None = None,
    stop: Enough | float | str | None = None,
    cost: str | None = None,
    seed: int = 0,
    storage: str | Storage | None = None,
    name: str | None = None,
    constraints: Constraint = None,
    objectives: Mapping[str, str] | Sequence[str] | None = None,
    policy: AnyPolicy | None = None,
    like: Any = None,
    fidelity: Fidelity | None = None,
    pruning: str | Pruning | None = None,
    steps: int | None = None,
    of: Literal["last", "best"] | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
) -> Result[D]:
    """Finds the point at which an objective is smallest. All else is as in `maximize`, without negation.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 2) ** 2 + 1, nr.Space(x=nr.Float(-5, 5)), trials=12, progress=False)
    >>> round(result.best_value, 1)
    1.0
    """
    options = RunOptions(
        objective=objective, trials=trials, enqueue=enqueue, seconds=seconds, stop=stop, cost=cost,
        constraints=constraints, objectives=checked_objectives(objectives, "minimize"), fidelity=fidelity,
        pruning=pruning, steps=steps, of=of, executor=executor, in_flight=in_flight, timeout=timeout,
        callbacks=callbacks, progress=progress,
    )  # fmt: skip
    return optimize("minimize", options, space, seed=seed, storage=storage, name=name, policy=policy, like=like)


if maximize.__doc__ and minimize.__doc__:  # There are none under `python -OO`. `help` of both explains the arguments.
    _arguments = cleandoc(maximize.__doc__).partition("\nArgs:\n")[2]
    minimize.__doc__ = f"{cleandoc(minimize.__doc__)}\n\nArgs:\n{_arguments}"


def run(
    study: Study[D],
    objective: Objective,
    *,
    trials: int | None = None,
    enqueue: Any = None,
    seconds: float | None = None,
    stop: Enough | float | str | None = None,
    cost: str | None = None,
    constraints: Constraint = None,
    pruning: str | Pruning | None = None,
    steps: int | None = None,
    of: Literal["last", "best"] | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
) -> Result[D]:
    """Evaluates a study's trials until there are enough. This is `maximize` for a study that you made yourself.

    >>> import nilregret as nr
    >>> policy = nr.gp_bucb(nr.Arms.grid(0, 1, 50), nr.SquaredExponential(0.2), noise=0.1)
    >>> study = nr.Study(policy, goal="minimize")
    >>> result = nr.run(study, lambda x: (x[0] - 0.3) ** 2, trials=20, progress=False)
    >>> len(study.trials)
    20

    Pending trials without a lease are those of a stopped run, and are evaluated first. Pending trials with a lease
    belong to other workers. Once it is over, they are abandoned, and others take their place. A study in an SQLite file
    has one run at a time. For several evaluations at once, choose a
    policy that takes pending trials into account: `nr.auto(space, parallel=8)`, `nr.gp_bucb`, or
    `policy.using(pending=nr.slots.Hallucinated())`. Other policies mostly ask for the same point again.

    Args:
        study: the study, which has the goal, the seed and the storage.
        objective: called with the parameters, or the point, as by `maximize`.
        trials: number of trials in all, with failed ones and those on record. None for as many as `seconds` allow.
        enqueue: points to try first, if the study has not asked for any trial yet (see `maximize`).
        seconds: length of this call, after which no trial begins (see `maximize`).
        stop: see `maximize`.
        cost: see `maximize`. The study's policy must have it (`nr.auto(space, cost="seconds")`).
        constraints: see `maximize`. If the policy has constraints and none are given, the objective returns
            (value, [g_1, ..., g_m]), or a dict with the entry "constraints".
        pruning: see `maximize`. The study's policy must have it (`nr.auto(space, pruning="median")`).
        steps: see `maximize`. The rule of the study's policy must have it.
        of: see `maximize`. The rule of the study's policy must have it.
        executor: see `maximize`.
        in_flight: number of evaluations at once.
        timeout: seconds that an evaluation may take.
        callbacks: functions that are called with (study, trial) after each answer.
        progress: whether to show a progress bar.

    Raises:
        InvalidInput: for arguments that make no sense, or do not fit the study.
        NoRegretError: if the first ten trials fail, or if the executor breaks before any trial has a value.
    """
    if not isinstance(study, Study):
        raise InvalidInput(
            f"`run` takes a study and then the objective, not {shown(study)}. To have one made: `maximize`."
        )
    policy = study.policy
    check_no_context(policy)
    if constraints is None:
        constraints = policy.constraint_count or None
    options = RunOptions(
        objective=objective, trials=trials, enqueue=enqueue, seconds=seconds, stop=stop, cost=cost,
        constraints=constraints, objectives=named_goals(study), fidelity=setting_of(policy),
        pruning=pruning, steps=steps, of=of, executor=executor, in_flight=in_flight, timeout=timeout,
        callbacks=callbacks, progress=progress,
    )  # fmt: skip
    options.check(policy.domain)
    check_constraint_count(policy, options.reader)
    check_cost(policy, options.cost)
    check_pruning(policy, pruning, steps, of)
    return options.result(study, study.storage)
