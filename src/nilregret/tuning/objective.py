"""An objective: what may be one, and how it is called."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

from .._utils.checks import shown
from .._utils.errors import InvalidInput
from ..domains.domain import Arms, Domain, Space
from .answers import Outcome, attempt
from .feasibility import UNLIMITED, Limits

Objective = Callable[..., Any]


@final
@dataclass(frozen=True)
class Evaluation:
    """An objective, called with what it was made for; can be sent to other processes if the objective can.

    Attributes:
        objective: called with keyword arguments where it is given a dict, else with the point.
        limits: what its answers must satisfy.
        home: the process it comes from.
    """

    objective: Objective
    limits: Limits = UNLIMITED
    home: int = field(default_factory=os.getpid)

    def __call__(self, at: Any) -> Outcome:
        """The objective's number, or why there is none."""
        outcome = attempt(partial(self._value, at))
        return outcome if os.getpid() == self.home else outcome._replace(error=None)  # not every error can be sent back

    def _value(self, at: Any) -> Outcome:
        return self.limits.read(_called(self.objective, at), lambda function: _called(function, at))


def _called(function: Objective, at: Any) -> Any:
    return function(**at) if isinstance(at, dict) else function(at.copy())


def check_objective(objective: object, domain: Domain, *, what: str = "`objective`") -> None:
    """Refuse, before anything is evaluated, what cannot be called as it will be.

    Args:
        objective: what shall be called: with the parameters of the domain, and without those of them that do not always
            count; with a point, where it has none.
        domain: what may be played.
        what: the objective is, for errors.
    """
    if not callable(objective):
        raise InvalidInput(f"{what} must be a function of the parameters, not {shown(objective)}.")
    if inspect.iscoroutinefunction(objective):
        raise InvalidInput(f"{what} is an `async` function: wrap it in one that returns asyncio.run(...) of it.")
    try:
        called = inspect.signature(objective)
    except (TypeError, ValueError):  # a built-in without a signature: the first trial will tell
        return
    space = domain.space if isinstance(domain, Arms) else domain
    try:
        if isinstance(space, Space):
            for names in (space.parameters, _always(space)):
                called.bind(**dict.fromkeys(names))
        else:
            called.bind(None)
    except TypeError as error:
        given, hint = _given(space)
        declare = "" if isinstance(space, Space) else "To have the coordinates by name, declare an nr.Space."
        raise InvalidInput(f"{what} cannot be called with {given}: {error}.{hint}", advice=declare) from error


def _always(space: Space) -> list[str]:
    """Names of the parameters that count whatever the others are."""
    return [name for name in space.parameters if space.conditions is None or name not in space.conditions.needs]


def _given(space: object) -> tuple[str, str]:
    """What an objective is called with, and a hint."""
    if not isinstance(space, Space):
        return "a point, an array (d,)", ""
    hint = "" if all(map(str.isidentifier, space.parameters)) else " Names with spaces go to a **dict."
    if len(_always(space)) < len(space.parameters):
        hint += " Parameters with conditions are left out where they do not count: give them defaults, or take **dict."
    return f"the parameters {', '.join(space.parameters)} as keyword arguments", hint
