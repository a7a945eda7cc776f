"""The spaces and the arms of a running study: those of its policy, with what was changed since (`Study.widen`).

Each trial is decided, checked and explained in the spaces of its own time, that of the points and that of the contexts.
The record keeps its point and context there, and the named values. The state in force is made of all trials at their
places in the spaces of now, as if each value had been tried there. So a context that was unknown counts for its level
as soon as that is declared. Hyperparameters on record are in units of the ranges of their time. So none of them is in
force after a change, and a fit is due with the next decision.

| event | effect |
|---|---|
| added | more arms with the next numbers, of which nothing is known. What was learned stays |
| retired | no decision plays the arm. Its trials still teach, and its pending trials may be told |
| restored | decisions may play the arm again |
| described | another name, or other facts |

The arms at a moment are a function of the policy and the changes on record so far. A trial is therefore decided, and
explained, with the arms of its own time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, frozen, integer, many, shown
from ..domains.conditions import Conditions
from ..domains.domain import ELSEWHERE, Arms, Space, changed_space, gone_options, known_columns, options_of, placed
from ..domains.options import import_name, known, option_key
from ..errors import InvalidInput
from ..policy.availability import Available
from ..policy.policy import Policy
from ..serialize import from_plain, to_plain
from ..storage.changes import ARM_KINDS, ArmChangeKind, ChangedArm, ChangeKind, StudyChange
from ..storage.trial import Trial
from .definition import check_facts
from .direction import AnyPolicy

LONGEST = 200  # Characters of a name.


class Arm(NamedTuple):
    """An arm of a study.

    Attributes:
        number: its number, which never changes.
        point: its coordinates, `(d,)`, read-only.
        parameters: its named parameters, or None without names.
        name: or None.
        about: facts about it.
        retired: True if no decision may play it.
        since: time since when it is retired or may be played, Unix seconds, or None for the start of the study.
        added_at: time at which it was added, or None for an arm of the policy.
    """

    number: int
    point: Array
    parameters: dict[str, Any] | None
    name: str | None
    about: dict[str, Any]
    retired: bool
    since: float | None
    added_at: float | None


@final
class Roster:
    """The arms after some changes.

    Args:
        made: the policy with which the study was made.
        changes: all changes of the study so far, in order. Those of the queue have no effect here.

    Attributes:
        policy: the policy on all arms, the retired ones included, and on the spaces of now.
        spaces: the spaces of the study, or None if no space of it ever changed.
        retired: numbers of the retired arms.

    Raises:
        InvalidInput: the changes do not fit the policy.
    """

    def __init__(self, made: AnyPolicy, changes: Sequence[StudyChange]) -> None:
        self.policy, self._made = made, made
        self._changes = [change for change in changes if change.kind in ARM_KINDS]
        self.retired: set[int] = set()
        if self._changes:
            self._take(made, self._changes)
        self._of_space = [change for change in changes if change.kind == "widened"]
        self.spaces = Spaces(self.policy, self._of_space) if self._of_space else None
        if self.spaces is not None:
            self.policy = self.spaces.policies[-1]

    def _take(self, made: AnyPolicy, changes: Sequence[StudyChange]) -> None:
        """Takes over the changes of arms."""
        if not isinstance(made, Policy) or not isinstance(made.domain, Arms):
            raise InvalidInput(NO_ARMS)
        count, points = len(made.domain), []
        for change in changes:
            numbers = [each.arm for each in change.arms]
            if change.kind == "added":
                if numbers != list(range(count, count + len(numbers))) or any(a.point is None for a in change.arms):
                    raise InvalidInput(f"Arms {shown(numbers)} were added where arm {count} is next.")
                points += [each.point for each in change.arms]
                count += len(numbers)
            elif not all(0 <= arm < count for arm in numbers):
                raise InvalidInput(f"Arms {shown(numbers)} were {change.kind}, and there were {count}.")
            elif change.kind == "retired":
                self.retired.update(numbers)
            elif change.kind == "restored":
                self.retired.difference_update(numbers)
        if points:
            self.policy = made.with_arms(made.domain.with_more(np.array(points)))

    def plays_as(self, other: Roster) -> bool:
        """Returns whether the arms and the spaces are those of another roster of the study."""
        return len(self._of_space) == len(other._of_space) and self.policy.domain == other.policy.domain

    def as_of(self, order: int) -> Roster:
        """Returns the arms after the event of this order."""
        known = (*self._changes, *self._of_space)
        changes = [change for change in known if change.order <= order]
        return self if len(changes) == len(known) else Roster(self._made, changes)

    def after(self, change: StudyChange) -> Roster:
        """Returns the arms, or the space, after one more change."""
        return Roster(self._made, (*self._changes, *self._of_space, change))

    def check(self, trials: Iterable[Trial]) -> None:
        """Raises `InvalidInput` if a trial has no place in the space of now."""
        for trial in () if self.spaces is None else trials:
            self.moved(trial)

    def moved(self, trial: Trial) -> Trial:
        """Returns a trial at its place in the space of now."""
        return trial if self.spaces is None else self.spaces.moved(trial)

    @property
    def domain(self) -> Arms:
        """All arms.

        Raises:
            InvalidInput: the policy has no arms.
        """
        if not isinstance(self.policy, Policy) or not isinstance(self.policy.domain, Arms):
            raise InvalidInput(NO_ARMS)
        return self.policy.domain

    @cached_property
    def names(self) -> dict[int, str]:
        """The names of the arms that have one, by number."""
        return {arm: name for arm, (name, _) in self._described.items() if name is not None}

    @property
    def unordered(self) -> bool:
        """True if all arms have names, which their order in the domain does not follow."""
        domain = self.policy.domain
        return isinstance(domain, Arms) and len(self.names) == len(domain)

    def called(self, arm: int) -> str:
        """Returns the name of an arm, or "arm 3" if it has none."""
        return self.names.get(arm, f"arm {arm}")

    def columns(self, trial: Trial) -> dict[str, Any]:
        """Returns further columns of a trial in tables and files: the name of its arm, if any arm has one."""
        return {"arm_name": None if trial.arm is None else self.names.get(trial.arm)} if self.names else {}

    @cached_property
    def _described(self) -> dict[int, tuple[str | None, dict[str, Any]]]:
        of = [each for change in self._changes if change.kind in ("added", "described") for each in change.arms]
        return {each.arm: (each.name, each.about or {}) for each in of}

    def listed(self) -> list[Arm]:
        """Returns all arms by number."""
        domain, since, added = self.domain, dict[int, float](), dict[int, float]()
        for change in self._changes:
            if change.kind != "described":
                since |= dict.fromkeys((each.arm for each in change.arms), change.time)
            if change.kind == "added":
                added |= dict.fromkeys((each.arm for each in change.arms), change.time)
        return [
            Arm(
                arm, frozen(domain.points[arm]), None if domain.space is None else domain.parameters(arm),
                *self._described.get(arm, (None, {})), arm in self.retired, since.get(arm), added.get(arm),
            )
            for arm in range(len(domain))
        ]  # fmt: skip

    # -- decisions -----------------------------------------------------------------------------------------------

    def playable(self, offered: Available | None) -> Available | None:
        """Returns what a decision may play, or None for everything.

        Args:
            offered: what is offered this time, or None for everything.

        Raises:
            InvalidInput: nothing is left to play.
        """
        if not self.retired:
            return offered
        left = self._left
        if offered is not None and offered.arms is not None:
            arms = np.setdiff1d(offered.arms, sorted(self.retired))
            left = Available(frozen(self.domain.points[arms]), arms)
        if not len(left.points):
            which = "All arms" if offered is None else "All arms that are offered this time"
            raise InvalidInput(
                f"{which} are retired, so nothing is left to play; nothing was recorded.",
                advice="Add arms by `study.add_arms`, or bring one back by `study.restore_arm`.",
                topic="retired",
            )
        return left

    @cached_property
    def _left(self) -> Available:
        arms: IndexArray = np.setdiff1d(np.arange(len(self.domain)), sorted(self.retired))
        return Available(frozen(self.domain.points[arms]), arms)

    def playable_at(self, orders: Sequence[int]) -> npt.NDArray[np.bool_] | None:
        """Returns which arms could be played in some events, `(n, N)`, or None if all always could.

        Args:
            orders: of the events, ascending.
        """
        if not self._changes:
            return None
        now = np.ones(len(self.domain), dtype=bool)
        now[[each.arm for change in self._changes if change.kind == "added" for each in change.arms]] = False
        found, begin = np.empty((len(orders), len(now)), dtype=bool), 0
        for change in self._changes:
            end = bisect_left(orders, change.order)
            found[begin:end], begin = now, end
            if change.kind != "described":
                now[[each.arm for each in change.arms]] = change.kind != "retired"
        found[begin:] = now
        return found

    # -- changes -------------------------------------------------------------------------------------------------

    def adding(
        self, points: npt.ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]],
        names: Sequence[str | None] | None, about: Sequence[Mapping[str, Any] | None] | None,
    ) -> tuple[ChangedArm, ...]:  # fmt: skip
        """Returns new arms with their numbers (see `Study.add_arms`)."""
        domain, policy = self.domain, self.policy
        count, more = len(domain), domain.with_more(points)
        try:
            policy.with_arms(more)  # type: ignore[union-attr]  # `domain` has shown that it is a `Policy`
        except InvalidInput as error:
            raise error.after("These arms cannot be added to this study: ") from None
        new = more.points[count:]
        names, facts = _as_many("names", names, len(new)), _as_many("about", about, len(new))
        return tuple(
            ChangedArm(count + i, tuple(row.tolist()), checked_name(name), _facts(told))
            for i, (row, name, told) in enumerate(zip(new, names, facts, strict=True))
        )

    def describing(self, arm: int, name: str | None, about: Mapping[str, Any] | None) -> ChangedArm | None:
        """Returns an arm with another name or other facts, or None if both are as they were."""
        number = self.number(arm)
        before = self._described.get(number, (None, {}))
        after = before[0] if name is None else checked_name(name), before[1] if about is None else _facts(about) or {}
        return None if after == before else ChangedArm(number, None, *after)

    def moving(self, arm: int, kind: ArmChangeKind) -> ChangedArm | None:
        """Returns the arm that is to be retired or restored, or None if it is so already."""
        number = self.number(arm)
        return None if (number in self.retired) == (kind == "retired") else ChangedArm(number)

    def number(self, arm: int) -> int:
        """Returns the checked number of an arm."""
        count = len(self.domain)
        number = integer("arm", arm, low=0)
        if number >= count:
            words = f"There is no arm {number}: this study has {many(count, 'arm')}, 0 .. {count - 1}."
            raise InvalidInput(words, advice="`study.arms` lists them.", topic="no_arm")
        return number


@final
class ArmTimes:
    """The events between which each arm could be played, to check stored trials.

    Args:
        changes: all changes of the study, in order.
    """

    def __init__(self, changes: Sequence[StudyChange]) -> None:
        self._changes: dict[int, list[tuple[int, ChangeKind]]] = {}
        for change in changes:
            for each in change.arms if change.kind != "described" else ():
                self._changes.setdefault(each.arm, []).append((change.order, change.kind))

    def allow(self, arm: int, order: int, *, retired: bool) -> bool:
        """Returns whether an arm could be played in the event of this order.

        Args:
            arm: its number.
            order: of the event.
            retired: whether a retired arm may be played then.
        """
        changes = self._changes.get(arm, [])
        earlier = [kind for at, kind in changes if at < order]
        there = bool(earlier) or not changes or changes[0][1] != "added"
        return there and (retired or not earlier or earlier[-1] != "retired")


NO_ARMS = (
    "Arms come and go in studies whose policy plays `Arms`. A box or a space has all its points from the start: say "
    "`among` with each decision which of them may be played."
)


def checked_name(name: str | None) -> str | None:
    """Returns the name of an arm, or None."""
    if name is not None and not (isinstance(name, str) and name.strip() and len(name) <= LONGEST and "\0" not in name):
        raise InvalidInput(f"The name of an arm is {shown(name)}: it must be text of at most {LONGEST} characters.")
    return name


def _facts(about: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if about is None else check_facts(about)


def _as_many(what: str, given: Sequence[Any] | None, count: int) -> Sequence[Any]:
    if given is None:
        return [None] * count
    try:
        fits = not isinstance(given, str | Mapping) and len(given) == count
    except TypeError:  # a number, say
        fits = False
    if not fits:
        raise InvalidInput(
            f"`{what}` is {shown(given)}: it must be a list with an entry for each of {many(count, 'arm')}."
        )
    return given


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
        from ..policy.respaced import on_context, on_space

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
    from ..policy.respaced import on_context, on_space

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
