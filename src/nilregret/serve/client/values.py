"""Conversion of values to and from the JSON of a service."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, number, only_entry, outcome, real, shown
from ..._utils.errors import InvalidInput
from ...domains.coordinates import named_points
from ...study.play_rewards import Rewards, is_several
from .. import messages as m

HIDDEN = np.ma.masked  # an array itself
Points = npt.ArrayLike | Sequence[Mapping[str, Any]] | Mapping[str, Any]
Context = npt.ArrayLike | Mapping[str, Any] | None
Told = float | Sequence[float] | Array | Rewards  # of one play, or of several


def decision_id(decision: m.Decision | m.DecisionInFull | str) -> str:
    """Returns the id of a decision."""
    given = decision if isinstance(decision, str) else getattr(decision, "id", None)
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"{shown(decision)} is no decision: pass what `ask` returned, or its `id`.")
    return given


def key_header(key: str | None) -> dict[str, str]:
    """Returns the header with an `Idempotency-Key`, which is made unless given."""
    if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
        raise InvalidInput(f"`key` is {shown(key)}: it must be a text of plain letters, digits and signs.")
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def reward_of(value: Told) -> float | list[float | bool] | m.Sums:
    """Returns a reward, or the rewards of several plays."""
    if isinstance(value, Rewards):
        return m.Sums(**asdict(value))
    if is_several(value):
        return [*finite_array("rewards", value).ravel().tolist()]
    return outcome("reward", value, low=-LARGEST_REWARD, high=LARGEST_REWARD, why="It is what came of a decision.")


def plain(name: str, value: Any) -> Any:
    """Returns a value as JSON holds it, with numbers, arrays, tables and structures of any library as Python's own.

    Args:
        name: of the value, for errors.
        value: numbers, text and None, and lists, arrays, rows, tables, mappings and structures of them.

    Raises:
        InvalidInput: a number is NaN, infinite or masked, or an entry is nothing that JSON holds. JSON would write NaN
            as null, which says that nothing was given.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)  # of numpy's strings a plain one
    if isinstance(value, Struct):
        fields = zip(value.__struct_fields__, astuple(value), strict=True)
        return {key: plain(_within(name, key), each) for key, each in fields if each is not None}
    if isinstance(value, Mapping):
        return {str(key): plain(_within(name, str(key)), each) for key, each in value.items()}
    if callable(getattr(value, "to_numpy", None)) and (rows := named_points(value)) is not None:
        listed = [plain(name, row) for row in rows]
        return listed if hasattr(value, "columns") else listed[0]
    if hasattr(value, "__array__") and not isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value)  # a tensor, or a column of a table
    if isinstance(value, np.ndarray) and value.shape == ():
        value = only_entry(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.ndarray | Sequence | AbstractSet) and not isinstance(value, bytes) and value is not HIDDEN:
        return [plain(f"{name}[{i}]", each) for i, each in enumerate(value)]
    whole = isinstance(value, Integral) and not isinstance(value, np.timedelta64)
    return int(value) if whole else number(name, value)


def _within(name: str, key: str) -> str:
    return f"{name}.{key}" if name else key


def context_of(context: Context) -> Any:
    """Returns a context as it was given, except that a single number is a list: a context of one dimension."""
    return context if real(context) is None else [only_entry(context)]


def numbers(values: Sequence[float | None]) -> Array:
    """Returns an array, with NaN for None."""
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def constraint_values(constraints: npt.ArrayLike | None) -> list[float] | None:
    """Returns the values of constraints as a list."""
    return None if constraints is None else np.atleast_1d(finite_array("constraints", constraints)).tolist()
