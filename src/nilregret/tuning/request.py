"""The common part of `maximize` and `minimize`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .._utils.checks import shown
from .._utils.errors import InvalidInput
from ..domains.domain import Arms, Box, Domain, Space, check_domain
from ..study.direction import AnyPolicy, Goal, check_policy
from .constraints import ConstraintReader
from .objective import Objective
from .open_study import check_alone, check_constraint_count, open_study
from .result import Result
from .run_options import RunOptions, check_no_context

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
    if callable(space) and isinstance(options.objective, Space | Box | Arms):
        raise InvalidInput(f"`{goal}` takes the objective first and then the space: the two are swapped.")
    check_domain("space", space)
    options.check(space)
    if policy is not None:
        _check_fits(policy, space, options.reader)
        check_alone(like, policy)
    study = open_study(
        space, policy, goal=goal, seed=seed, storage=storage,
        name=_name_of(options.objective, goal, stored=storage is not None) if name is None else name,
        budget=options.trials,
        parallel=options.parallel, reader=options.reader, about=options.reader.facts, like=like,
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
    check_constraint_count(policy, reader)
