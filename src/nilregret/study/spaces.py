"""The spaces of a study: those of its policy, and those to which they were changed since (`Study.widen`).

Each trial is decided, checked and explained in the spaces of its own time, that of the points and that of the contexts.
The record keeps its point and context there, and the named values. The state in force is made of all trials at their
places in the spaces of now, as if each value had been tried there. So a context that was unknown counts for its level
as soon as that is declared. Hyperparameters on record are in units of the ranges of their time. So none of them is in
force after a change, and a fit is due with the next decision.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast, final

import numpy as np

from .._utils.checks import Array, shown
from ..domains.changed import ELSEWHERE, changed_space, gone_options, known_columns, placed
from ..domains.conditions import Conditions
from ..domains.domain import Arms, Space, options_of
from ..domains.options import import_name, known, option_key
from ..errors import InvalidInput
from ..policy.policy import Policy
from ..policy.respaced import on_context, on_space
from ..serialize import from_plain, to_plain
from ..storage.changes import StudyChange
from ..storage.trial import Trial
from .direction import AnyPolicy

BODY = {"space", "before", "was"}
OF_CONTEXT = {"of": "context"}  # Further entry of a change of the contexts.
NO_SPACE = "Only a study of a `Space` of named parameters can change it"
NO_CONTEXTS = "Only contexts of a `Space` of named parameters can change"


class SpaceChange(NamedTuple):
    """A change of the space of points, or of that of contexts.

    Attributes:
        of_context: True for that of contexts.
        before: the space until then.
        space: the space from then on.
        was: the columns that new parameters had until then.
    """

    of_context: bool
    before: Space
    space: Space
    was: dict[str, list[float]]

    @classmethod
    def of(cls, change: StudyChange) -> SpaceChange:
        """Returns a change on record.

        Raises:
            InvalidInput: the change cannot be right.
        """
        body = change.body or {}
        was = body.get("was")
        of_context = body.keys() - BODY == OF_CONTEXT.keys() and body["of"] == "context"
        if body.keys() - (OF_CONTEXT if of_context else {}) != BODY or not isinstance(was, dict):
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
        return cls(of_context, before, space, was)

    @property
    def values(self) -> dict[str, Any]:
        """The values that new parameters had until then."""
        return {name: self.space.parameters[name].decode(np.array(at)) for name, at in self.was.items()}


@final
class _Places:
    """The places of trials in one of the two spaces of now.

    Args:
        spaces: the space at the beginning and after each change of the study.
        changes: the changes of the study, those of the other space included, with the values that they give.
    """

    def __init__(self, spaces: Sequence[Space], was: Sequence[Mapping[str, Any] | None]) -> None:
        self._spaces, self._was = spaces, was
        self._gone = gone_options(spaces[-1], spaces[:-1])

    def place(self, known: Array, settings: Iterable[tuple[str, Any]], begun: int) -> Array:
        """Returns the place of the values that were decided after `begun` changes, which may be outside."""
        later = [was for was in self._was[begun:] if was is not None]
        if not later:
            return known
        values = dict(settings)
        for was in later:
            values = {**was, **values}
        now = self._spaces[-1]
        return placed(now, values, self._gone, known_columns(now, self._spaces[begun], known))


@final
class Spaces:
    """The spaces of a study after some changes of them, at least one.

    Args:
        made: the policy with which the study was made, on all arms of now.
        changes: the changes of its spaces so far, in order.

    Attributes:
        policies: the policy on each space, in order.

    Raises:
        InvalidInput: the changes do not fit the policy.
    """

    def __init__(self, made: AnyPolicy, changes: Sequence[StudyChange]) -> None:
        if not isinstance(made, Policy):
            raise InvalidInput(f"{NO_SPACE}.")
        self.policies: list[Policy[Any]] = [made]
        self._orders = [change.order for change in changes]
        found = []
        for change in changes:
            with known(options_of(made.domain, made.context)):
                each = SpaceChange.of(change)
            now = self.policies[-1]
            before = now.context if each.of_context else now.domain
            if each.before != before:
                raise InvalidInput(
                    f"Event {change.order} changes {each.before!r}, which was not the space of the study."
                )
            self.policies.append((on_context if each.of_context else on_space)(now, each.space))
            found.append(each)
        self._points = self._places(found, of_context=False)
        self._contexts = self._places(found, of_context=True)
        self._moved: dict[int, tuple[Trial, Trial]] = {}  # Trials as given and as moved, by number.

    def _places(self, changes: Sequence[SpaceChange], *, of_context: bool) -> _Places | None:
        """Returns the places in one of the spaces, or None if it never changed."""
        was = [each.values if each.of_context is of_context else None for each in changes]
        if not any(each is not None for each in was):
            return None
        return _Places([space_to_change(each, of_context=of_context) for each in self.policies], was)

    def policy_at(self, order: int) -> Policy[Any]:
        """Returns the policy that decided in the event of this order."""
        return self.policies[bisect_left(self._orders, order)]

    def moved(self, trial: Trial) -> Trial:
        """Returns a trial at its place in the spaces of now, which may be outside, and without its fits."""
        begun = bisect_left(self._orders, trial.asked_order)
        if begun == len(self._orders):
            return trial
        given, found = self._moved.get(trial.number, (None, trial))
        if given is trial:  # Readers compare trials by identity.
            return found
        point, context = (found.point, found.context) if given is not None else self._place(trial, begun)
        found = trial._replace(point=point, context=context, fits=None if trial.fits is None else ())
        self._moved[trial.number] = trial, found
        return found

    def _place(self, trial: Trial, begun: int) -> tuple[Array, Array | None]:
        point, context = trial.point, trial.context
        if self._points is not None:
            point = self._points.place(point, trial.settings or (), begun)
        if self._contexts is not None and context is not None:
            context = self._contexts.place(context, trial.context_settings or (), begun)
        return point, context


def widening(
    policy: AnyPolicy, parameters: Mapping[str, Any], was: Mapping[str, Any] | None, trials: Iterable[Trial],
    *, of_context: bool = False,
) -> dict[str, Any] | None:  # fmt: skip
    """Returns a change of a space as it is recorded, or None if the space is as wanted (see `Study.widen`).

    Args:
        policy: of the study now.
        parameters: the changed and new parameters.
        was: the values that new parameters had so far.
        trials: all trials, at their places in the spaces of now.
        of_context: True for the space of contexts.

    Raises:
        InvalidInput: the space cannot change so.
    """
    before, policy = space_to_change(policy, of_context=of_context), cast("Policy[Any]", policy)
    space, told = changed_space(before, parameters), was or {}
    if space == before:
        return None
    new = [name for name in space.parameters if name not in before.parameters]
    if not isinstance(told, Mapping) or told.keys() - set(new):
        raise InvalidInput(
            f"`was` is {shown(was)}: it must have the values so far of new parameters, and "
            + (f"the new ones are {', '.join(new)}." if new else "none is new.")
        )
    _refuse_objects(before, space)
    settings = (trial.context_settings if of_context else trial.settings for trial in trials)
    _check_known(space, new, told, settings, before)
    try:
        (on_context if of_context else on_space)(policy, space)
    except InvalidInput as error:
        raise error.after("The space of this study cannot change so: ") from None
    columns = {}
    for name, value in told.items():
        try:
            columns[name] = space.parameters[name].encode(value)
        except InvalidInput as error:
            raise error.after(f"`was` of parameter `{name}`: ") from None
    plain = {"before": to_plain(before), "space": to_plain(space), "was": columns}
    return plain | OF_CONTEXT if of_context else plain


def space_to_change(policy: AnyPolicy, *, of_context: bool) -> Space:
    """Returns the space of points, or of contexts, of a policy.

    Raises:
        InvalidInput: there is no such space.
    """
    domain = policy.context if of_context else policy.domain
    if isinstance(policy, Policy) and isinstance(domain, Space):
        return domain
    if of_context:
        words = "takes none" if domain is None else f"has {shown(domain)}"
        raise InvalidInput(f"{NO_CONTEXTS}, and this study {words}.")
    advice = "`study.add_arms` adds arms." if isinstance(domain, Arms) else ELSEWHERE
    raise InvalidInput(f"{NO_SPACE}, and this one plays {shown(domain)}.", advice=advice)


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
    space: Space, new: Sequence[str], told: Mapping[str, Any],
    settings: Iterable[Sequence[tuple[str, Any]] | None], before: Space,
) -> None:  # fmt: skip
    """Refuses new parameters that count in earlier trials, and whose values then are not given."""
    conditions = Conditions(space.declared)
    lacking = [name for name in new if name not in told and not space.parameters[name].unknown]
    for known_values in settings if lacking else ():
        values = dict(known_values or ()) | dict(told)
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
