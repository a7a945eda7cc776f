"""The definition of a stored study (policy, goal, seed and facts), compared with that of a study that resumes it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

from .._utils.checks import flag, shown
from ..domains.domain import Space, column_order, options_of
from ..domains.options import known
from ..errors import InvalidInput, StorageError
from ..policy.policy import Policy
from ..serialize import from_plain, loads, plain_loads
from ..slots.constraints import objective_names
from ..storage.base import StoredStudy
from .direction import AnyPolicy, Goal
from .visits import STICKY, sticky_of

# A policy whose spaces have another order of parameters or options than those on record.
#
# The columns of the policy are put into the order on record. If the policy is then equal to the one on record, the
# study goes on with that one. So decisions do not depend on the order that a program happened to have, such as that
# of a set.

# The column now of each column on record, by the number of columns: of a point, of a context, of both.
Orders = Mapping[int, list[int]]


def in_order_of(recorded: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Returns a policy's description in the order of the one on record, or as it is.

    It stays as it is if a list of numbers in it may be about columns and cannot be put into that order. It also stays
    as it is on sets of arms, whose numbers follow the order.

    Args:
        recorded: description of the policy on record.
        now: description of the policy.
    """
    if all(recorded.get(name) == now.get(name) for name in ("domain", "context")):
        return now
    of_points, of_contexts = (_order(recorded.get(name), now.get(name)) for name in ("domain", "context"))
    if of_points is None or of_contexts is None:
        return now
    joint = [*of_contexts, *(len(of_contexts) + column for column in of_points)]  # Of a (context, point) row.
    orders = {len(joint): joint}
    for part in (of_points, of_contexts):
        if orders.setdefault(len(part), part) != part:
            return now  # A point has as many columns as a context, in another order.
    try:
        return {
            name: recorded[name] if name in ("domain", "context") else _moved(entry, orders)
            for name, entry in now.items()
        }
    except _Unclear:
        return now


class _Unclear(Exception):
    """A list of numbers may be about columns, and has another length."""


def _order(recorded: Any, now: Any) -> list[int] | None:
    """Returns the order of the columns of a described domain, or None if the two differ in more."""
    if recorded is None or now is None:
        return [] if recorded is now else None
    try:
        then, here = from_plain(recorded), from_plain(now)
    except InvalidInput:  # Of another version.
        return None
    if isinstance(then, Space) and isinstance(here, Space):
        return column_order(then, here)
    return list(range(then.dimension)) if recorded == now else None


def _moved(entry: Any, orders: Orders) -> Any:
    """Returns an entry of a description with its columns in the order on record."""
    if isinstance(entry, dict):
        own, inside = _of_kernel(entry, orders)
        return {name: own[name] if name in own else _moved(value, inside) for name, value in entry.items()}
    if not isinstance(entry, list):
        return entry
    if not all(type(each) in (int, float) for each in entry):
        return [_moved(each, orders) for each in entry]
    if len(set(entry)) < 2:
        return entry
    return [entry[column] for column in _of_length(orders, len(entry))]


def _of_kernel(entry: dict[str, Any], orders: Orders) -> tuple[dict[str, Any], Orders]:
    """Returns the columns that a kernel names, in the order on record, and the orders for the kernel inside it.

    The kernel inside sees a column for each group, or the columns that are named.
    """
    groups, dimensions = entry.get("groups"), entry.get("dimensions")
    if isinstance(groups, list):
        moved = [groups[column] for column in _of_length(orders, len(groups))]
        names = list(dict.fromkeys(moved))
        return {"groups": [names.index(group) for group in moved]}, {len(names): names}
    if isinstance(dimensions, list):
        joint = orders[max(orders)]
        if not set(dimensions) <= set(joint):
            raise _Unclear
        moved = sorted(joint.index(column) for column in dimensions)
        return {"dimensions": moved}, {len(moved): [dimensions.index(joint[column]) for column in moved]}
    return {}, orders


def _of_length(orders: Orders, length: int) -> list[int]:
    if length not in orders:
        raise _Unclear
    return orders[length]


def objectives_of(stored: StoredStudy) -> dict[str, Goal]:
    """Returns the goal of each of several objectives by name, or an empty dict. The policy is not loaded."""
    rule = plain_loads(stored.policy).get("constraints")  # Of a script, a number.
    goals: list[Goal] | None = rule.get("goals") if isinstance(rule, dict) else None
    if goals is None:
        return {}
    return dict(zip(objective_names(rule.get("names"), len(goals)), goals, strict=True))


PROPENSITIES = "propensities"  # The fact that decisions are recorded with their probability.
RULE = "service"  # the entry of a study's facts that holds the deadline rule
ROUNDING = 1e-12  # Relative difference of two numbers that are equal but for rounding.
SHORT = 60  # Characters of a value that an error still shows.
LISTED = 6  # Differences that an error lists.
FIRST = ("domain", "context", "algorithm", "objective", "constraints")  # Fields of a policy from which others follow.


class Difference(NamedTuple):
    """A value in which a study differs from the stored one. None stands for no value."""

    path: str
    then: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.path} ({shortly(self.then)} then, {shortly(self.now)} now)"


def listed(found: list[Difference]) -> str:
    """Returns the differences in words, at most `LISTED` of them."""
    more = f" and {len(found) - LISTED:,} more" if len(found) > LISTED else ""
    return ", ".join(map(str, found[:LISTED])) + more


def check_facts(about: object) -> dict[str, Any]:
    """Returns facts about a study as a storage will return them.

    Raises:
        InvalidInput: JSON cannot hold them.
    """
    try:
        text = json.dumps(dict(about or {}), sort_keys=True, allow_nan=False)  # type: ignore[call-overload]
        facts: dict[str, Any] = plain_loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"`about` must be a dict of facts that JSON can hold, such as {{'units': 'kg'}}: {error}."
        ) from error
    return facts


def settings_as_facts(*, propensities: object, sticky: object) -> dict[str, Any]:
    """Returns the settings of a study that are among its facts, checked (see `Study`)."""
    found: dict[str, Any] = {PROPENSITIES: True} if flag(PROPENSITIES, propensities) else {}
    kept = sticky_of(sticky)
    return found | ({STICKY: kept} if kept else {})


def stored_facts(text: str, where: str) -> dict[str, Any]:
    """Returns the facts of a stored study.

    Args:
        text: JSON.
        where: the study in words, for errors.

    Raises:
        StorageError: the text is not a JSON object.
    """
    try:
        facts = plain_loads(text)
    except InvalidInput as error:
        raise StorageError(f"{where} has been damaged: {error} Restore a copy.") from error
    if not isinstance(facts, dict):
        raise StorageError(f"{where} has been damaged: its facts are {shown(facts)}. Restore a copy.")
    return facts


def policy_in_force(
    stored: StoredStudy, now: Callable[[], StoredStudy], of: AnyPolicy, goal: Goal, seed: int, about: str, url: str
) -> AnyPolicy:
    """Returns the policy of a stored study that is resumed: the given one, but for rounding and order.

    If the given policy was rounded otherwise on another machine, or has its parameters or options in another order, the
    stored one is returned. So it is if the given policy plays in the space to which the study was changed since.

    Args:
        stored: the stored study.
        now: returns the study as if it had been made with its space of now.
        of: policy that resumes it.
        goal: that resumes it.
        seed: that resumes it.
        about: JSON of the facts.
        url: of the storage, for errors.

    Raises:
        InvalidInput: the stored study was made with another policy, goal, seed or facts.
    """
    where = f"Study {stored.name!r} in {url}"
    found = differences(stored, of, goal, seed, about, where)
    if found:
        spaces = any(each.path.startswith(("domain", "context")) for each in found)
        if spaces and not differences(now(), of, goal, seed, about, where):
            return _loaded(stored, of)
        raise InvalidInput(
            f"{where} was made with other values: {listed(found)}. A study keeps what it was "
            "made with. Usually the program was changed, or nilregret was upgraded and has other defaults. Choose "
            "another name for a new study.",
            advice=f"To continue this one as it is, call `nr.Study.open(storage={url!r}, name={stored.name!r})`."
            + " Its `widen(...)` goes on in a changed space."
            * (spaces and any(isinstance(each, Space) for each in (of.domain, of.context)))
            + f" A new study of another space learns from it by `like={f'{url}#{stored.name}'!r}`." * spaces,
            topic="made",
        )
    if json.loads(_as_of_now(stored.policy)) == json.loads(of.to_json()):
        return of
    return _loaded(stored, of)


def _loaded(stored: StoredStudy, of: AnyPolicy) -> AnyPolicy:
    """Returns the stored policy, with classes and functions of the given one for their names."""
    with known(options_of(of.domain, of.context)):
        policy: AnyPolicy = loads(stored.policy)
    return policy


def differences(
    stored: StoredStudy, policy: AnyPolicy, goal: Goal, seed: int, about: str, where: str
) -> list[Difference]:
    """Returns all values in which a stored study differs, those from which others follow first.

    Rounding does not count, nor the order of parameters and options (see `nilregret.study.definition`).

    Args:
        stored: the stored study.
        policy: the other policy.
        goal: the other goal.
        seed: the other seed.
        about: JSON of the other facts.
        where: the study in words, for errors.
    """
    recorded, now = stored_facts(_as_of_now(stored.policy), where), json.loads(policy.to_json())
    facts = differing(stored_facts(stored.about, where), json.loads(about))
    of_policy = [*differing(recorded, in_order_of(recorded, now))]
    found = [each for each in of_policy if each.path.startswith(FIRST)]
    found += differing({"goal": stored.goal, "seed": stored.seed}, {"goal": goal, "seed": seed})
    for each in facts:
        if each.path in (PROPENSITIES, STICKY):  # False is not on record.
            found.append(each._replace(then=each.then or False, now=each.now or False))
        else:
            found.append(each if each.path.startswith(RULE) else each._replace(path=f"about.{each.path}"))
    found += of_policy
    return list({each.path: each for each in found}.values())


def _as_of_now(policy: str) -> str:
    """Returns the JSON of a stored policy, with defaults for fields that an older version did not have."""
    try:
        return Policy.from_json(policy).to_json()
    except InvalidInput:
        return policy


def differing(old: Any, new: Any, path: str = "") -> Iterator[Difference]:
    """Yields the values that differ, as deep in the two descriptions as both have the same kind of entry."""
    if same_values(old, new):
        return
    if None in (old, new) and isinstance(old or new, dict) and "type" not in (old or new):
        old, new = old or {}, new or {}
    then, now = _named(old), _named(new)
    if isinstance(old, dict) and isinstance(new, dict) and old.get("type") == new.get("type"):
        for name in sorted(old.keys() | new.keys()):
            yield from differing(old.get(name), new.get(name), f"{path}.{name}".lstrip("."))
    elif then and now and then != now:
        yield from differing(then, now, path.removesuffix(".parameters"))
    elif isinstance(old, list) and isinstance(new, list) and not then:
        for i, (before, after) in enumerate(zip_longest(old, new)):
            yield from differing(before, after, f"{path}[{i}]")
    else:
        yield Difference(path, old, new)


def _named(value: Any) -> dict[str, Any]:
    """Returns the parameters of a described space by name, or an empty dict for another value."""
    pairs = isinstance(value, list) and all(isinstance(each, list) and len(each) == 2 for each in value)
    return dict(value) if pairs and all(isinstance(each[0], str) for each in value) else {}


def same_values(old: Any, new: Any) -> bool:
    """Returns whether two values are equal up to rounding, since exp and log differ between machines."""
    if old == new:
        return True
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=ROUNDING)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same_values, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same_values(old[name], new[name]) for name in old)
    return False


def shortly(value: Any) -> str:
    """Returns the class name of a part, or a value as JSON: two parts in one slot differ in their class."""
    said = str(value["type"]) if isinstance(value, dict) and "type" in value else json.dumps(value)
    return "nothing" if value is None else said if len(said) <= SHORT else f"{said[: SHORT - 3]}..."


def constraint_names(about: Mapping[str, Any], count: int) -> list[str]:
    """Returns the names of constraints: the texts that limited the objective's entries, else constraint 1, ...

    Args:
        about: facts of the study.
        count: number of constraints.
    """
    said = str(about.get("constraints", "")).split(", ")
    return said if len(said) == count and all(said) else [f"constraint {j + 1}" for j in range(count)]
