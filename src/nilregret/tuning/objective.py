"""The objective: checks of a user's function, and the call of it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, final

from .._utils.checks import shown
from ..domains.domain import Arms, Domain, Space
from ..errors import InvalidInput
from .outcome import UNLIMITED, ConstraintReader, Outcome, attempt

Objective = Callable[..., Any]


@final
@dataclass(frozen=True)
class Evaluation:
    """A task that calls an objective. It can be sent to other processes if the objective can.

    Attributes:
        objective: called with keyword arguments for a dict of parameters, else with the point.
        reader: reads the constraint values of answers.
        home: number of the process in which this was made.
    """

    objective: Objective
    reader: ConstraintReader = UNLIMITED
    home: int = field(default_factory=os.getpid)

    def __call__(self, at: Any) -> Outcome:
        """Returns the outcome of the objective at parameters or a point."""
        outcome = attempt(partial(self._value, at))
        return outcome if os.getpid() == self.home else outcome._replace(error=None)  # Some errors cannot be sent back.

    def _value(self, at: Any) -> Outcome:
        return self.reader.read(_called(self.objective, at), lambda function: _called(function, at))


def _called(function: Objective, at: Any) -> Any:
    return function(**at) if isinstance(at, dict) else function(at.copy())


def check_objective(objective: object, domain: Domain, *, what: str = "`objective`") -> None:
    """Raises an error, before any evaluation, if the objective cannot be called.

    Args:
        objective: the function. It must accept all parameters of the domain, and also only those without conditions. If
            the domain has no parameters, it must accept a point.
        domain: domain of the points.
        what: name of the objective, for errors.
    """
    if not callable(objective):
        raise InvalidInput(f"{what} must be a function of the parameters, not {shown(objective)}.")
    if inspect.iscoroutinefunction(objective):
        raise InvalidInput(f"{what} is an `async` function: wrap it in one that returns asyncio.run(...) of it.")
    try:
        called = inspect.signature(objective)
    except (TypeError, ValueError):  # Some built-in functions have no signature. The first trial then shows mistakes.
        return
    space = domain.space if isinstance(domain, Arms) else domain
    try:
        if isinstance(space, Space):
            for names in (space.parameters, _unconditional(space)):
                called.bind(**dict.fromkeys(names))
        else:
            called.bind(None)
    except TypeError as error:
        arguments, hint = _arguments(space)
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
