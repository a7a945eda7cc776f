"""A request of `maximize` or `minimize`, checked and carried out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from .._utils.checks import shown
from .._utils.errors import InvalidInput
from ..domains.domain import Arms, Box, Domain, Space, check_domain
from ..study.direction import AnyPolicy, Goal
from ..study.study import Study, check_policy
from .constraints import ConstraintReader
from .objective import Objective
from .open_study import check_constraint_count, open_study
from .result import Result
from .run_options import RunOptions, check_no_context

if TYPE_CHECKING:
    from ..storage import Storage


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Request:
    """The arguments of a call of `maximize` or `minimize`.

    `options` holds the arguments about the evaluations.
    """

    goal: Goal
    options: RunOptions
    space: Domain
    seed: int
    storage: str | Storage | None
    name: str | None
    policy: AnyPolicy | None

    def __post_init__(self) -> None:
        if callable(self.space) and isinstance(self.options.objective, Space | Box | Arms):
            raise InvalidInput(f"`{self.goal}` takes the objective first and then the space: the two are swapped.")
        check_domain("space", self.space)
        self.options.check(self.space)
        if self.policy is not None:
            _check_fits(self.policy, self.space, self.options.reader)

    def result(self) -> Result:
        """Carries the request out, or goes on with it."""
        return self.options.result(self._study(), self.storage)

    def _study(self) -> Study:
        options = self.options
        return open_study(
            self.space,
            self.policy,
            goal=self.goal,
            seed=self.seed,
            storage=self.storage,
            name=_name_of(options.objective, self.goal) if self.name is None else self.name,
            budget=options.trials,
            parallel=options.parallel,
            reader=options.reader,
            about=options.reader.facts,
        )


def _name_of(objective: Objective, goal: str) -> str:
    """Returns the name of a function, also inside `partial`, or the goal if there is no name."""
    while isinstance(objective, partial):
        objective = objective.func
    name = getattr(objective, "__name__", type(objective).__name__)
    return name if name.isidentifier() else goal


def _check_fits(policy: AnyPolicy, space: Domain, reader: ConstraintReader) -> None:
    check_policy(policy)
    if policy.domain != space:
        raise InvalidInput(
            f"`policy` is for another domain: {shown(policy.domain)}, and `space` is {shown(space)}. Make both of one."
        )
    check_no_context(policy)
    check_constraint_count(policy, reader)
