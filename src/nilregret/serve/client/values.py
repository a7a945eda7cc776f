"""Conversion of values to and from the JSON of a service."""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, outcome, shown
from ..._utils.errors import InvalidInput
from ...study.play_rewards import Rewards, is_several
from .. import messages as m

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


def plain(value: Any) -> Any:
    """Returns plain numbers and lists in place of those of numpy."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return value


def numbers(values: Sequence[float | None]) -> Array:
    """Returns an array, with NaN for None."""
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def constraint_values(constraints: npt.ArrayLike | None) -> list[float] | None:
    """Returns the values of constraints as a list."""
    return None if constraints is None else np.atleast_1d(np.asarray(constraints, dtype=float)).tolist()
