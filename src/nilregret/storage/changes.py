"""Changes of a running study that are no events of trials.

Each change is an event of the study, numbered by the same counter as the events of trials.

| kind | what changes |
|---|---|
| added, retired, restored, described | arms. A new arm gets the next number, and a retired arm keeps its own |
| enqueued, taken | the points to try first |
| widened | the domain |

Changes of arms are of format 1. A study with any other change is of format 2, which older programs refuse.
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
ChangeKind = Literal["added", "retired", "restored", "described", "enqueued", "taken", "widened"]
ARM_KINDS: tuple[str, ...] = get_args(ArmChangeKind)
KINDS: tuple[str, ...] = get_args(ChangeKind)
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


class StudyChange(NamedTuple):
    """A change of a study.

    Attributes:
        order: position among all events of the study.
        time: Unix seconds.
        kind: of the change.
        arms: the arms that it changes, each once, at least one. Empty if it is no change of arms.
        body: what else is changed, plain JSON values, or None for a change of arms.
    """

    order: int
    time: float
    kind: ChangeKind
    arms: tuple[ChangedArm, ...] = ()
    body: dict[str, Any] | None = None


def change_text(change: StudyChange) -> str:
    """Returns the arms or the body of a change as JSON."""
    return json.dumps([arm._asdict() for arm in change.arms] if change.kind in ARM_KINDS else change.body)


def change_of(row: Sequence[Any]) -> StudyChange:
    """Returns the change in a row (order, time, kind, arms or body).

    Raises:
        StorageError: the row cannot be right.
    """
    order, time, kind, text = row
    try:
        if (type(order), type(time), type(text)) != (int, float, str) or not math.isfinite(time):
            raise ValueError(f"its order is {shown(order)}, its time {shown(time)}")
        if kind not in KINDS:
            raise ValueError(f"its kind is {shown(kind)}")
        told = plain_loads(text)
        if kind not in ARM_KINDS:
            if not isinstance(told, dict):
                raise ValueError("it is no object")
            return StudyChange(order, time, kind, (), told)
        if not isinstance(told, list) or not told:
            raise ValueError("it names no arms")
        return StudyChange(order, time, kind, tuple(_changed(each) for each in told))
    except ValueError as error:
        raise StorageError(
            f"Event {shown(order)} in the storage, a change of the study, has been damaged ({error}). Restore a copy."
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
