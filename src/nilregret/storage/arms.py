"""Changes of the arms of a running study: arms are added, retired, brought back and described.

Each change is an event of the study, numbered by the same counter as the events of trials. Arms keep their numbers. A
new arm gets the next number, and a retired arm keeps its own.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, get_args

from .._utils.checks import shown
from ..errors import StorageError
from ..serialize import plain_loads

ArmChangeKind = Literal["added", "retired", "restored", "described"]
KINDS: tuple[str, ...] = get_args(ArmChangeKind)
MEMBERS = {"arm": int, "point": (list, type(None)), "name": (str, type(None)), "about": (dict, type(None))}


class ChangedArm(NamedTuple):
    """An arm in a change.

    Attributes:
        arm: its number.
        point: its coordinates if it is added, else None.
        name: its name if it is added or described and has one, else None.
        about: facts about it if it is added or described and has some, plain JSON values, else None.
    """

    arm: int
    point: tuple[float, ...] | None = None
    name: str | None = None
    about: dict[str, Any] | None = None


class ArmChange(NamedTuple):
    """A change of the arms of a study.

    Attributes:
        order: position among all events of the study.
        time: Unix seconds.
        kind: of the change.
        arms: the arms that it changes, each once, at least one.
    """

    order: int
    time: float
    kind: ArmChangeKind
    arms: tuple[ChangedArm, ...]


def arms_text(change: ArmChange) -> str:
    """Returns the arms of a change as JSON."""
    return json.dumps([arm._asdict() for arm in change.arms])


def arm_change(row: Sequence[Any]) -> ArmChange:
    """Returns the change of arms in a row (order, time, kind, arms).

    Raises:
        StorageError: the row cannot be right.
    """
    order, time, kind, text = row
    try:
        if (type(order), type(time), type(text)) != (int, float, str) or not math.isfinite(time):
            raise ValueError(f"its order is {shown(order)}, its time {shown(time)}")
        if kind not in KINDS:
            raise ValueError(f"its kind is {shown(kind)}")
        listed = plain_loads(text)
        if not isinstance(listed, list) or not listed:
            raise ValueError("it names no arms")
        return ArmChange(order, time, kind, tuple(_changed(each) for each in listed))
    except ValueError as error:
        raise StorageError(
            f"Event {shown(order)} in the storage, a change of arms, has been damaged ({error}). Restore a copy."
        ) from error


def _changed(given: Any) -> ChangedArm:
    if not isinstance(given, dict) or given.keys() != MEMBERS.keys():
        raise ValueError(f"an arm is {shown(given)}")
    for name, kinds in MEMBERS.items():
        if not isinstance(given[name], kinds) or isinstance(given[name], bool):  # type: ignore[arg-type]  # types
            raise ValueError(f"`{name}` of an arm is {shown(given[name])}")  # noqa: TRY004 - the value is of a file
    point = given["point"]
    if point is not None and not all(type(x) in (int, float) and math.isfinite(x) for x in point):
        raise ValueError(f"the point of an arm is {shown(point)}")
    return ChangedArm(given["arm"], None if point is None else tuple(map(float, point)), given["name"], given["about"])
