"""The points to try first: what `enqueue` named, in order, and what became of it.

| event | effect |
|---|---|
| enqueued | more entries at the end of the queue |
| taken | an entry has become a trial, the next event. Or it never will, and the event says why |

The queue is a function of the changes on record, as the arms are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from numbers import Number
from typing import Any, NamedTuple, cast, final

import numpy as np

from .._utils.checks import Array, frozen, integer, many, nearest, shown
from .._utils.randomness import Draws
from ..domains.conditions import encoded_as
from ..domains.domain import (
    Arms,
    Domain,
    Space,
    gone_options,
    known_columns,
    placed,
    refuse_outside_limits,
    space_of,
    within,
)
from ..domains.parameters import Parameter
from ..domains.search.designs import sobol
from ..errors import InvalidInput
from ..policy.decide import Pinned, has_some
from ..policy.policy import Policy
from ..storage.changes import StudyChange
from ..storage.trial import Trial
from .function import settings_at
from .inputs import Inputs
from .spaces import Roster, SpaceChange

KINDS = ("enqueued", "taken", "widened")
MOST_WAITING = 10_000
LOOKED_AT = 1024  # points of a space among which one with the given values is looked for
WITHDRAWN = "it was withdrawn"
LOST = "it is outside of the changed space"
BEYOND = 1e6  # Column of a value that a changed space does not have.
PASSED = "Entry {} of the points to try first is not tried: {}. The record says so, and the next entry takes its turn."

# Returns the point of a decision beside given columns with rounded numbers, or None if it is as it is, under a context.
# Without a decision it enqueues the rounded point of the next one, if it is another.
Rounding = Callable[[Array | None, Array | None, Pinned | None], Array | None]


@final
class Entry(NamedTuple):
    """A point to try first, or some parameters of one.

    Attributes:
        number: 0, 1, 2, ... in the order of `enqueue`.
        point: its coordinates, `(d,)`, or None if only some parameters are given. Of a sheet's trial, all as rounded.
        arm: its arm, or None.
        fixed: the columns of each given parameter by name, or None for a point.
        order: of the event that enqueued it.
        time: of that event, Unix seconds.
    """

    number: int
    point: tuple[float, ...] | None
    arm: int | None
    fixed: dict[str, list[float]] | None
    order: int
    time: float

    def pinned(self, domain: Domain) -> Pinned:
        """Returns the columns that are given.

        Raises:
            InvalidInput: they do not fit the domain.
        """
        if self.point is not None:
            point = np.array(self.point)
            if point.shape != (domain.dimension,):
                raise InvalidInput("its coordinates are those of another space")
            return Pinned(frozen(point), np.ones(len(point), dtype=bool), self.arm)
        space = space_of(domain)
        if space is None:
            raise InvalidInput("its parameters are those of another space")
        return Pinned.of(space, self.fixed or {})

    def said(self, domain: Domain) -> dict[str, Any] | list[float] | int:
        """Returns what was named: parameters, a point, or the number of an arm."""
        if self.point is not None and self.fixed is None:
            settings = settings_at(domain, np.array(self.point))
            return dict(settings) if settings is not None else list(self.point) if self.arm is None else self.arm
        space = cast(Space, space_of(domain))
        return {name: space.parameters[name].decode(np.array(at)) for name, at in (self.fixed or {}).items()}

    def told(self, domain: Domain) -> Enqueued:
        """Returns the entry as a study lists it."""
        return Enqueued(self.number, self.said(domain), self.point is not None, self.time)

    def rounded(self, point: Any) -> Entry:
        """Returns the entry with the point of its trial on a sheet, if the record has one."""
        return self._replace(point=tuple(point)) if _is_numbers(point) else self

    def moved(self, before: Space, space: Space, was: Mapping[str, list[float]]) -> Entry:
        """Returns the entry in a changed space. A value that the space does not have is marked as lost."""
        if self.point is None:
            fixed = {}
            for name, at in (self.fixed or {}).items():
                same = space.parameters[name] == before.parameters[name]
                fixed[name] = at if same else _again(space.parameters[name], before.parameters[name], at)
            return self._replace(fixed=fixed)
        values = before.decode(np.array(self.point))
        values = {name: space.parameters[name].decode(np.array(at)) for name, at in was.items()} | values
        known = known_columns(space, before, np.array(self.point))
        found = (BEYOND,) * space.dimension
        try:
            point = placed(space, values, gone_options(space, [before]), known)
            found = tuple(point.tolist()) if within(space, point[None])[0] and not self.lost else found
        except InvalidInput:
            pass
        return self._replace(point=found)

    @property
    def lost(self) -> bool:
        """True if the entry cannot be tried, because the space has changed."""
        given = [self.point] if self.point is not None else (self.fixed or {}).values()
        return any(BEYOND in each for each in given)

    @property
    def key(self) -> tuple[Any, ...]:
        """Value that is the same for two entries that name the same."""
        fixed = None if self.fixed is None else tuple(sorted((name, *at) for name, at in self.fixed.items()))
        return self.point, self.arm, fixed

    def plain(self) -> dict[str, Any]:
        """Returns the entry as it is recorded."""
        return {"fixed": self.fixed} if self.point is None else {"point": list(self.point), "arm": self.arm}


class Enqueued(NamedTuple):
    """A point that waits to be tried, as a study lists it.

    Attributes:
        number: for `Study.withdraw`.
        named: what was named: parameters, the coordinates of a point, or the number of an arm.
        whole: False if the policy chooses the parameters that are not named.
        enqueued_at: Unix seconds.
    """

    number: int
    named: dict[str, Any] | list[float] | int
    whole: bool
    enqueued_at: float


class Passed(NamedTuple):
    """An entry that never became a trial.

    Attributes:
        entry: the entry.
        reason: in words.
        order: of the event.
    """

    entry: Entry
    reason: str
    order: int


@final
class Queue:
    """The queue after some changes.

    Args:
        changes: all changes of the study so far, in order. Those of other kinds have no effect here.

    Attributes:
        waiting: entries that wait, by number.
        entries: all entries by number.
        tried: the entry of each trial that was taken from the queue, by the number of the trial.
        passed: entries that never became a trial, in order.

    Raises:
        InvalidInput: the changes cannot be right.
    """

    def __init__(self, changes: Sequence[StudyChange] = ()) -> None:
        self.entries: list[Entry] = []
        self.waiting: dict[int, Entry] = {}
        self.tried: dict[int, Entry] = {}
        self.passed: list[Passed] = []
        self.asked: dict[int, int] = {}  # order of the question of each trial of `tried`
        for change in changes:
            self.add(change)

    def add(self, change: StudyChange) -> None:
        """Takes in a change."""
        body = change.body or {}
        if change.kind == "enqueued":
            entries = body.get("entries")
            if not isinstance(entries, list) or not entries:
                raise InvalidInput(f"{shown(entries)} was enqueued.")
            for each in entries:
                entry = self.waiting[self.count] = _entry(self.count, each, change.order, change.time)
                self.entries.append(entry)
        elif change.kind == "widened":
            of_context, before, space, was = SpaceChange.of(change)
            if not of_context:
                self.entries = [entry.moved(before, space, was) for entry in self.entries]
            self.waiting = {number: self.entries[number] for number in self.waiting}
        elif change.kind == "taken":
            number, trial, reason = (body.get(name) for name in ("entry", "trial", "reason"))
            if type(number) is not int or number not in self.waiting:
                raise InvalidInput(f"Entry {shown(number)} of the queue was taken, and did not wait.")
            entry = self.waiting.pop(number)
            if type(trial) is int and reason is None:
                self.tried[trial], self.asked[trial] = entry.rounded(body.get("rounded")), change.order + 1
            elif trial is None and isinstance(reason, str):
                self.passed.append(Passed(entry, reason, change.order))
            else:
                raise InvalidInput(f"Entry {number} of the queue became trial {shown(trial)}, for {shown(reason)}.")

    @property
    def count(self) -> int:
        """Number of all entries."""
        return len(self.entries)

    def listed(self, domain: Domain) -> list[Enqueued]:
        """Returns what waits, in order."""
        return [entry.told(domain) for entry in self.waiting.values()]

    # -- changes -------------------------------------------------------------------------------------------------

    def entering(
        self, points: Any, roster: Roster, inputs: Inputs, trials: Sequence[Trial] = ()
    ) -> list[dict[str, Any]]:
        """Returns new entries as they are recorded, checked (see `Study.enqueue`).

        Args:
            points: as `Study.enqueue` takes them.
            roster: the arms of now.
            inputs: checks of the study.
            trials: of the study (see `Inputs.at_trial`).

        Raises:
            InvalidInput: one of them cannot be tried.
        """
        several = _listed(points, roster.policy.domain)
        if len(self.waiting) + len(several) > MOST_WAITING:
            raise InvalidInput(
                f"{many(len(self.waiting), 'point')} waiting and {len(several)} more are too many: {MOST_WAITING} may "
                "wait to be tried; nothing was recorded."
            )
        known = {each.key: f"entry {each.number} that waits" for each in self.waiting.values()}
        found: list[dict[str, Any]] = []
        for place, each in enumerate(several):
            try:
                entry = _entry(self.count + place, _checked(each, roster, inputs, trials))
                if entry.key in known:
                    raise InvalidInput(f"it is the same as {known[entry.key]}, and each is tried once.")
            except InvalidInput as error:
                which = "" if len(several) == 1 else f" (number {place + 1} of {len(several)})"
                raise error.after(f"{shown(each)}{which} cannot be enqueued, and nothing was: ") from None
            known[entry.key] = f"number {place + 1}"
            found.append(entry.plain())
        return found

    def require(self, number: object) -> int:
        """Returns the checked number of an entry that waits."""
        known = integer("entry", number, low=0)
        if known not in self.waiting:
            became = "there is none" if known >= self.count else "it has been tried or passed over"
            raise InvalidInput(
                f"Entry {known} of the queue does not wait: {became}.", advice="`study.enqueued` lists what waits."
            )
        return known


def _again(parameter: Parameter, before: Parameter, columns: list[float]) -> list[float]:
    """Returns the columns of a value in a changed parameter, or marked ones."""
    try:
        return [BEYOND] * parameter.columns if BEYOND in columns else parameter.encode(before.decode(np.array(columns)))
    except InvalidInput:
        return [BEYOND] * parameter.columns


def impossible(entry: Entry, roster: Roster) -> str | None:
    """Returns why an entry can never be tried any more, or None."""
    domain = roster.policy.domain
    try:
        pinned = entry.pinned(domain)
    except InvalidInput as error:
        return error.what
    if not isinstance(domain, Arms):
        there = not pinned.whole or len(pinned.onto(domain, pinned.point[None]))
        return None if there else "it is outside of the domain by now"
    some = pinned.among(domain, None)
    arms = set() if some is None or some.arms is None else {*some.arms.tolist()}
    if arms - roster.retired:
        return None
    return f"{roster.called(arms.pop())} is retired" if len(arms) == 1 else "all arms with these values are retired"


def _listed(points: Any, domain: Domain) -> list[Any]:
    """Returns several points, or one, as a list."""
    if isinstance(points, Mapping | str) or not hasattr(points, "__iter__"):
        return [points]
    if hasattr(points, "columns") and hasattr(points, "to_dict"):
        points = points.to_dict("records")  # of a data frame
    listed = list(points)
    if not listed:
        raise InvalidInput("Nothing was given to enqueue.", advice="Such as `study.enqueue({'rate': 0.01})`.")
    if not all(isinstance(each, Number) for each in listed):
        return listed
    of_arms = isinstance(domain, Arms) and all(isinstance(each, int | np.integer) for each in listed)
    return listed if of_arms or (domain.dimension == 1 and len(listed) > 1) else [points]


def _checked(given: Any, roster: Roster, inputs: Inputs, trials: Sequence[Trial]) -> dict[str, Any]:
    """Returns what was given as it is recorded."""
    arm: int | None
    domain, space = roster.policy.domain, space_of(roster.policy.domain)
    if isinstance(given, Mapping) and space is not None and not _is_whole(space, given):
        return {"fixed": _partial(space, given, roster)}
    if isinstance(domain, Arms) and isinstance(given, int | np.integer):
        given = domain.points[arm := roster.number(cast(int, given))]
    else:
        given, arm, *_ = inputs.at_trial(inputs.point(given), trials)
    if arm is not None and arm in roster.retired:
        raise InvalidInput(f"{roster.called(arm)} is retired.", advice="`study.restore_arm` brings it back.")
    refuse_outside_limits(domain, given[None], "it")
    return {"point": given.tolist(), "arm": arm}


def _is_whole(space: Space, given: Mapping[str, Any]) -> bool:
    """Returns whether all parameters are given that count."""
    if not given.keys() <= space.parameters.keys():
        return not space.parameters.keys() - given.keys()  # The check of whole points names the unknown ones.
    values: dict[str, Any] = {}
    for name, parameter in space.parameters.items():
        if space.conditions is None or space.conditions.is_active(name, values):
            if name not in given:
                return False
            values[name] = parameter.decode(np.array(encoded_as(name, parameter, given[name])))
    return True


def _partial(space: Space, given: Mapping[str, Any], roster: Roster) -> dict[str, list[float]]:
    """Returns the columns of some parameters, after a look whether the others can be chosen."""
    if not isinstance(roster.policy, Policy):
        raise InvalidInput(f"{roster.policy.algorithm} plays what its script names: give all parameters.")
    names = ", ".join(space.parameters)
    unknown = [name for name in given if name not in space.parameters]
    if unknown or not given:
        hint = nearest(str(unknown[0]), space.parameters) if unknown else ""
        what = f"there is no parameter {shown(unknown[0])}" if unknown else "it names no parameter"
        raise InvalidInput(f"{what}, and the space has {names}.{hint}")
    fixed = {name: encoded_as(name, space.parameters[name], value) for name, value in given.items()}
    pinned, domain = Entry(0, None, None, fixed, 0, 0.0).pinned(space), roster.policy.domain
    if isinstance(domain, Arms):
        arms = np.flatnonzero(pinned.counting(domain, domain.points)).tolist()
        if set(arms) <= roster.retired:
            raise InvalidInput("all arms with these values are retired." if arms else "no arm has these values.")
    elif (space.conditions or space.limits) is not None and not has_some(pinned, space, _looked_at(space)):
        needs = {} if space.conditions is None else space.conditions.needs
        said = [f"`{name}` counts only where {' and '.join(map(str, needs[name]))}" for name in fixed if name in needs]
        none = "no point inside of the limits of the space was found with these values"
        raise InvalidInput(f"{'; '.join(said) or none}.")
    return fixed


@lru_cache(maxsize=4)
def _looked_at(space: Space) -> Array:
    return frozen(sobol(space, LOOKED_AT, Draws("enqueued")))


def _entry(number: int, plain: Any, order: int = 0, time: float = 0.0) -> Entry:
    """Returns an entry on record."""
    if isinstance(plain, dict) and plain.keys() == {"point", "arm"}:
        point, arm = plain["point"], plain["arm"]
        if _is_numbers(point) and (arm is None or type(arm) is int):
            return Entry(number, tuple(map(float, point)), arm, None, order, time)
    elif isinstance(plain, dict) and plain.keys() == {"fixed"}:
        fixed = plain["fixed"]
        if isinstance(fixed, dict) and fixed and all(map(_is_numbers, fixed.values())):
            return Entry(number, None, None, fixed, order, time)
    raise InvalidInput(f"Entry {number} of the queue is {shown(plain)}.")


def _is_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(x) in (int, float) and math.isfinite(x) for x in values)
