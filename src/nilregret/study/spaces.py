"""The spaces of a study: that of its policy, and those to which it was changed since (`Study.widen`).

Each trial is decided, checked and explained in the space of its own time. The record keeps its point there, and its
named values. The state in force is made of all trials at their places in the space of now, as if each value had been
tried there. Hyperparameters on record are in units of the ranges of their time. So none of them is in force after a
change, and a fit is due with the next decision.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, final

import numpy as np

from .._utils.checks import Array, shown
from ..domains.changed import ELSEWHERE, changed_space, gone_options, known_columns, placed
from ..domains.conditions import Conditions
from ..domains.domain import Arms, Space, options_of
from ..domains.options import import_name, known, option_key
from ..errors import InvalidInput
from ..policy.policy import Policy
from ..policy.respaced import on_space
from ..serialize import from_plain, to_plain
from ..storage.changes import StudyChange
from ..storage.trial import Trial
from .direction import AnyPolicy

BODY = {"space", "before", "was"}
NO_SPACE = "Only a study of a `Space` of named parameters can change it"


def space_change(change: StudyChange) -> tuple[Space, Space, dict[str, list[float]]]:
    """Returns the space before a change, the space after it, and the columns that new parameters had until then.

    Raises:
        InvalidInput: the change cannot be right.
    """
    body = change.body or {}
    was = body.get("was")
    if body.keys() != BODY or not isinstance(was, dict):
        raise InvalidInput(f"Event {change.order} changes the space to {shown(body)}.")
    before, space = from_plain(body["before"]), from_plain(body["space"])
    if not isinstance(before, Space) or not isinstance(space, Space):
        raise InvalidInput(f"Event {change.order} changes {shown(before)} to {shown(space)}.")
    for name, columns in was.items():
        new = space.parameters.get(name)
        right = new is not None and name not in before.parameters and isinstance(columns, list)
        right = right and new is not None and len(columns) == new.columns
        if not right or not all(type(x) in (int, float) and abs(x) <= 1 for x in columns):
            raise InvalidInput(f"Event {change.order} says that {shown(name)} was {shown(columns)}.")
    return before, space, was


@final
class Spaces:
    """The spaces of a study after some changes of its space, at least one.

    Args:
        made: the policy with which the study was made.
        changes: the changes of its space so far, in order.

    Attributes:
        policies: the policy on each space, in order.

    Raises:
        InvalidInput: the changes do not fit the policy.
    """

    def __init__(self, made: AnyPolicy, changes: Sequence[StudyChange]) -> None:
        if not isinstance(made, Policy) or not isinstance(made.domain, Space):
            raise InvalidInput(f"{NO_SPACE}.")
        self.policies: list[Policy[Any]] = [made]
        self._orders = [change.order for change in changes]
        self._was: list[dict[str, Any]] = []
        for change in changes:
            with known(options_of(made.domain)):
                before, space, was = space_change(change)
            if before != self.policies[-1].domain:
                raise InvalidInput(f"Event {change.order} changes {before!r}, which was not the space of the study.")
            self.policies.append(on_space(self.policies[-1], space))
            self._was.append({name: space.parameters[name].decode(np.array(at)) for name, at in was.items()})
        self._spaces: list[Space] = [policy.domain for policy in self.policies]
        self._gone = gone_options(self.space, self._spaces[:-1])
        self._moved: dict[int, tuple[Trial, Trial]] = {}  # Trials as given and as moved, by number.

    @property
    def space(self) -> Space:
        """The space of now."""
        return self._spaces[-1]

    def policy_at(self, order: int) -> Policy[Any]:
        """Returns the policy that decided in the event of this order."""
        return self.policies[bisect_left(self._orders, order)]

    def moved(self, trial: Trial) -> Trial:
        """Returns a trial at its place in the space of now, which may be outside, and without its fits."""
        begun = bisect_left(self._orders, trial.asked_order)
        if begun == len(self._orders):
            return trial
        given, found = self._moved.get(trial.number, (None, trial))
        if given is trial:  # Readers compare trials by identity.
            return found
        point = self._place(trial, begun) if given is None else found.point
        found = trial._replace(point=point, fits=None if trial.fits is None else ())
        self._moved[trial.number] = trial, found
        return found

    def _place(self, trial: Trial, begun: int) -> Array:
        values = dict(trial.settings or ())
        for was in self._was[begun:]:
            values = was | values
        return placed(self.space, values, self._gone, known_columns(self.space, self._spaces[begun], trial.point))


def widening(
    policy: AnyPolicy, parameters: Mapping[str, Any], was: Mapping[str, Any] | None, trials: Iterable[Trial]
) -> dict[str, Any] | None:
    """Returns a change of the space as it is recorded, or None if the space is as wanted (see `Study.widen`).

    Args:
        policy: of the study now.
        parameters: the changed and new parameters.
        was: the values that new parameters had so far.
        trials: all trials, at their places in the space of now.

    Raises:
        InvalidInput: the space cannot change so.
    """
    domain = policy.domain
    if not isinstance(policy, Policy) or not isinstance(domain, Space):
        advice = "`study.add_arms` adds arms." if isinstance(domain, Arms) else ELSEWHERE
        raise InvalidInput(f"{NO_SPACE}, and this one plays {shown(domain)}.", advice=advice)
    space, told = changed_space(domain, parameters), was or {}
    if space == domain:
        return None
    new = [name for name in space.parameters if name not in domain.parameters]
    if not isinstance(told, Mapping) or told.keys() - set(new):
        raise InvalidInput(
            f"`was` is {shown(was)}: it must have the values so far of new parameters, and "
            + (f"the new ones are {', '.join(new)}." if new else "none is new.")
        )
    _refuse_objects(domain, space)
    _check_known(space, new, told, trials, domain)
    try:
        on_space(policy, space)
    except InvalidInput as error:
        raise error.after("The space of this study cannot change so: ") from None
    columns = {}
    for name, value in told.items():
        try:
            columns[name] = space.parameters[name].encode(value)
        except InvalidInput as error:
            raise error.after(f"`was` of parameter `{name}`: ") from None
    return {"before": to_plain(domain), "space": to_plain(space), "was": columns}


def _refuse_objects(before: Space, space: Space) -> None:
    """Refuses classes and functions as new options, since a record has only their names."""
    there = {option_key(option) for option in options_of(before)}
    for option in options_of(space):
        if import_name(option) is not None and option_key(option) not in there:
            raise InvalidInput(
                f"{shown(option)} cannot become an option of a running study, since a record knows a class or function "
                "by its name only: take a text for it, and look the object up by that."
            )


def _check_known(
    space: Space, new: Sequence[str], told: Mapping[str, Any], trials: Iterable[Trial], before: Space
) -> None:
    """Refuses new parameters that count in earlier trials, and whose values then are not given."""
    conditions, lacking = Conditions(space.declared), [name for name in new if name not in told]
    for trial in trials if lacking else ():
        values = dict(trial.settings or ()) | dict(told)
        active: dict[str, Any] = {}
        for name in space.parameters:
            if not conditions.is_active(name, active):
                continue
            if name in lacking:
                raise InvalidInput(
                    f"Parameter `{name}` is new to this study, which has {', '.join(before.parameters)}. Its trials "
                    "had some value of it, and `was` says which.",
                    advice=f"If it is meant: `study.widen({name}=..., was={{{name!r}: ...}})`.",
                )
            if name in values:
                active[name] = values[name]
