"""`maximize` and `minimize`: an objective, what it depends on, and how often; `run`: for a study of yours."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from .._utils.checks import shown
from .._utils.errors import InvalidInput
from ..domains.domain import Domain
from ..study.direction import AnyPolicy
from ..study.study import Study
from .objective import Objective
from .opening import check_count
from .request import Run
from .result import Result
from .session import Callback, Constraint, Session, check_no_context

if TYPE_CHECKING:
    from ..storage import Storage


def maximize(
    objective: Objective,
    space: Domain,
    *,
    trials: int,
    seed: int = 0,
    storage: str | Storage | None = None,
    name: str | None = None,
    constraints: Constraint = None,
    policy: AnyPolicy | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
) -> Result:
    """Find where an objective is largest, with as few evaluations as possible.

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

    An evaluation that raises, or returns what is no number, is a failed trial with the reason, and the run goes on; it
    ends with an error where the first ten fail. Ctrl-C ends the run and returns the result so far.

    Args:
        objective: called with the parameters as keyword arguments where the space has names for them (a `Space`, or
            arms of one), else with a point, an array `(d,)` of its own. Returns a number: Python's, numpy's, an array
            of one number, or a dict with the entry "reward".
        space: `Space` of named parameters, `Box` or `Arms`.
        trials: how many in all, failed ones and those on record included.
        seed: of all random choices; the same seed gives the same run.
        storage: URL of a database, such as "sqlite:///studies.db", or a `nilregret.storage.Storage`, in which each
            trial
            is the moment it is known. The same call goes on where it was, after Ctrl-C, a crash or a power cut too:
            what had no answer is evaluated again. A run that is finished returns at once.
        name: of the study in the storage; the objective's own name unless given.
        constraints: what the best trial must satisfy, all of it seen only when a trial is evaluated: a text such as
            "latency <= 50", where the objective returns a dict with this entry beside "reward"; or a function, called
            as the objective is, of which a value of at most 0 satisfies; or several of both; or a number m, where
            the objective returns (value, [g_1, ..., g_m]), or a dict with the entry "constraints", and g_j <= 0
            satisfies. Trials may violate them: it takes such to find out where the border is.
        policy: how to decide, for this very space; `auto(space, budget=trials, constraints=m, ...)` unless given, or
            the one in the storage.
        executor: evaluates several at once: any `concurrent.futures.Executor`, such as a `ThreadPoolExecutor`, a
            `ProcessPoolExecutor` (then the objective must be importable), or `client.get_executor()` of a cluster of
            Dask. It is not shut down. What is tried depends on the order in which answers come and on nothing else. An
            evaluation that the executor cancels is an abandoned trial; where the executor breaks, the run ends.
        in_flight: how many evaluations at once; as many as the executor has workers unless given.
        timeout: seconds that an evaluation may take; then its trial fails with that reason. It runs in a process of its
            own, since nothing else can be ended: what the objective changes in the variables of this program, this
            program does not see.
        callbacks: each is called with (study, trial) after each answer, in this thread; one that returns True ends the
            run.
        progress: whether to show a progress bar (in a terminal or notebook) and say why trials fail, on stderr.
    """
    session = Session(
        objective=objective,
        trials=trials,
        constraints=constraints,
        executor=executor,
        in_flight=in_flight,
        timeout=timeout,
        callbacks=callbacks,
        progress=progress,
    )
    return Run(
        goal="maximize", session=session, space=space, seed=seed, storage=storage, name=name, policy=policy
    ).result()


def minimize(
    objective: Objective,
    space: Domain,
    *,
    trials: int,
    seed: int = 0,
    storage: str | Storage | None = None,
    name: str | None = None,
    constraints: Constraint = None,
    policy: AnyPolicy | None = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
) -> Result:
    """Find where an objective is smallest; all else is as in `maximize`, and nothing need be negated.

    >>> import nilregret as nr
    >>> result = nr.minimize(lambda x: (x - 2) ** 2 + 1, nr.Space(x=nr.Float(-5, 5)), trials=12, progress=False)
    >>> round(result.best_value, 1)
    1.0
    """
    session = Session(
        objective=objective,
        trials=trials,
        constraints=constraints,
        executor=executor,
        in_flight=in_flight,
        timeout=timeout,
        callbacks=callbacks,
        progress=progress,
    )
    return Run(
        goal="minimize", session=session, space=space, seed=seed, storage=storage, name=name, policy=policy
    ).result()


def run(
    study: Study,
    objective: Objective,
    *,
    trials: int,
    constraints: Constraint = None,
    executor: Executor | None = None,
    in_flight: int | None = None,
    timeout: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool = True,
) -> Result:
    """Evaluate a study's trials until there are enough: `maximize` for a study that you have made yourself.

    >>> import nilregret as nr
    >>> policy = nr.gp_bucb(nr.Arms.grid(0, 1, 50), nr.SquaredExponential(0.2), noise=0.1)
    >>> study = nr.Study(policy, goal="minimize")
    >>> result = nr.run(study, lambda x: (x[0] - 0.3) ** 2, trials=20, progress=False)
    >>> len(study.trials)
    20

    Trials that are pending without a lease are taken for those of a run that was stopped, and are evaluated first;
    those with a lease belong to workers that join by themselves. Of one study in an SQLite file there is one run at a
    time. Several evaluations at once want a policy that looks at pending trials (`nr.auto(space, parallel=8)`,
    `nr.gp_bucb`, `policy.using(pending=nr.slots.Hallucinated())`): others mostly ask for the same point again.

    Args:
        study: whose trials they are; what it is to maximise or minimise is its own affair, as are seed and storage.
        objective: called with the parameters, or the point, as by `maximize`.
        trials: how many in all, failed ones and those on record included.
        constraints: as of `maximize`; where the policy has constraints, unless given, the objective returns
            (value, [g_1, ..., g_m]), or a dict with the entry "constraints".
        executor: as of `maximize`, and so are all that follow.
        in_flight: how many evaluations at once.
        timeout: seconds that an evaluation may take.
        callbacks: each is called with (study, trial) after each answer.
        progress: whether to show a progress bar.

    Raises:
        InvalidInput: for what makes no sense, or does not fit the study.
        NoRegretError: where the first ten trials fail, or the executor breaks before any trial has a value.
    """
    if not isinstance(study, Study):
        raise InvalidInput(
            f"`run` takes a study and then the objective, not {shown(study)}. To have one made: `maximize`."
        )
    policy = study.policy
    check_no_context(policy)
    session = Session(
        objective=objective,
        trials=trials,
        constraints=constraints if constraints is not None else policy.constraint_count or None,
        executor=executor,
        in_flight=in_flight,
        timeout=timeout,
        callbacks=callbacks,
        progress=progress,
    )
    session.check(policy.domain)
    check_count(policy, session.limits)
    return session.result(study, study.storage)
