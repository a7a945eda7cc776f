"""A run of `maximize` or `minimize`: what was asked for, checked, and carried out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from .._utils.checks import shown
from .._utils.errors import InvalidInput
from ..domains.domain import Arms, Box, Domain, Space, check_domain
from ..study.direction import AnyPolicy, Goal
from ..study.study import Study, check_policy
from .feasibility import Limits
from .objective import Objective
from .opening import check_count, opened
from .result import Result
from .session import Session, check_no_context

if TYPE_CHECKING:
    from ..storage import Storage


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """What a call of `maximize` or `minimize` asks for; the attributes are its arguments.

    Those that say what is evaluated and how are in `session`.
    """

    goal: Goal
    session: Session
    space: Domain
    seed: int
    storage: str | Storage | None
    name: str | None
    policy: AnyPolicy | None

    def __post_init__(self) -> None:
        if callable(self.space) and isinstance(self.session.objective, Space | Box | Arms):
            raise InvalidInput(f"`{self.goal}` takes the objective first and then the space: the two are swapped.")
        check_domain("space", self.space)
        self.session.check(self.space)
        if self.policy is not None:
            _check_fits(self.policy, self.space, self.session.limits)

    def result(self) -> Result:
        """Carry it out, or go on with it."""
        return self.session.result(self._study(), self.storage)

    def _study(self) -> Study:
        session = self.session
        return opened(
            self.space,
            self.policy,
            goal=self.goal,
            seed=self.seed,
            storage=self.storage,
            name=_name_of(session.objective, self.goal) if self.name is None else self.name,
            budget=session.trials,
            parallel=session.at_once,
            limits=session.limits,
            about=session.limits.facts,
        )


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
    check_no_context(policy)
    check_count(policy, limits)
