"""Trials as rows of a table: what is written, and what a row must be to be read.

SQLite stores any kind of value in any column, so types are checked here; whether the values make sense together and
belong to a study is the business of `noregret.study.integrity`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..checks import Array, frozen, shown
from ..errors import StorageError
from ..record import Trial
from ..serialize import plain_loads

_TEXT, _WHOLE, _REAL = (str,), (int,), (float,)
_OR_NULL = (type(None),)
KINDS: dict[str, tuple[type, ...]] = {
    "number": _WHOLE,
    "state": _TEXT,
    "arm": _WHOLE + _OR_NULL,
    "point": _TEXT,
    "parameters": _TEXT + _OR_NULL,
    "context": _TEXT + _OR_NULL,
    "explored": (int, bool),
    "reward": _REAL + _OR_NULL,
    "reason": _TEXT + _OR_NULL,
    "asked_order": _WHOLE,
    "asked_at": _REAL,
    "told_order": _WHOLE + _OR_NULL,
    "told_at": _REAL + _OR_NULL,
    "constraints": _TEXT + _OR_NULL,
    "constraints_order": _WHOLE + _OR_NULL,
}


def to_row(trial: Trial) -> dict[str, Any]:
    """The values of the columns."""
    return {
        "number": trial.number,
        "state": trial.state,
        "arm": trial.arm,
        "point": json.dumps(trial.point.tolist()),
        "parameters": None if trial.parameters is None else json.dumps(trial.parameters),
        "context": None if trial.context is None else json.dumps(trial.context.tolist()),
        "explored": trial.explored,
        "reward": trial.reward,
        "reason": trial.reason,
        "asked_order": trial.asked_order,
        "asked_at": trial.asked_at,
        "told_order": trial.told_order,
        "told_at": trial.told_at,
        "constraints": None if trial.constraints is None else json.dumps(trial.constraints.tolist()),
        "constraints_order": trial.constraints_order,
    }


def from_row(row: Mapping[str, Any]) -> Trial:
    """The trial of a row; its `settings` are those written in the row, which nobody has compared with its point."""
    try:
        for name, kinds in KINDS.items():
            if type(row[name]) not in kinds:
                raise ValueError(f"`{name}` is {shown(row[name])}")
        if row["explored"] not in (0, 1):
            raise ValueError(f"`explored` is {row['explored']}")
        values = {name: row[name] for name in KINDS if name != "parameters"}
        values["explored"] = bool(row["explored"])
        values["point"] = _array("point", row["point"])
        for name in ("context", "constraints"):
            values[name] = None if row[name] is None else _array(name, row[name])
        settings = None if row["parameters"] is None else _settings(row["parameters"])
        return Trial(settings=settings, **values)
    except ValueError as error:
        raise StorageError(
            f"Trial {shown(row['number'])} in the storage has been damaged ({error}). Restore a copy of the file."
        ) from error


def _array(name: str, text: str) -> Array:
    values = plain_loads(text)
    if type(values) is not list or not all(type(value) in (int, float) for value in values):
        raise ValueError(f"`{name}` is no list of numbers")
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"`{name}` has a number too large for a float") from None
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` has a value that is not finite")
    return frozen(array)


def _settings(text: str) -> tuple[tuple[str, Any], ...]:
    values = plain_loads(text)
    if not isinstance(values, dict):
        raise ValueError("`parameters` is no object")  # noqa: TRY004 - of a file, not of a call
    return tuple(values.items())
