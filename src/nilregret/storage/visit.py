"""A visit: the unit that a decision is for, the caller's own id and facts, and the place in a slate.

Most trials have none of it. In a storage it is one JSON object, without the entries that say nothing.
"""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

from .._utils.checks import shown
from ..domains.options import import_name
from ..serialize import plain_loads

Facts = tuple[tuple[str, Any], ...]  # name and value of each, plain JSON values
SCALARS = (str, int, float, bool, type(None))


class Visit(NamedTuple):
    """Facts of a decision besides its point and context.

    Attributes:
        event: the caller's own id of the decision, or None.
        unit: number of the first trial of the unit (a visitor, a machine), or None if no unit was named.
        kept: number of the trial whose arm this one keeps, or None if the policy decided.
        slate: number of the first trial of the slate, or None if the trial is of no slate.
        place: place within the slate, 0, 1, ..., or None.
        facts: name and value of each fact of the caller.
        given: name and value of the entries of the context, as they came, that its coordinates do not say.
    """

    event: str | None = None
    unit: int | None = None
    kept: int | None = None
    slate: int | None = None
    place: int | None = None
    facts: Facts = ()
    given: Facts = ()

    def json(self) -> dict[str, Any]:
        """Returns the entries that say something, as plain values."""
        found = {name: value for name, value in zip(self._fields[:5], self[:5], strict=True) if value is not None}
        return found | {name: dict(facts) for name in ("facts", "given") if (facts := getattr(self, name))}

    def said(self) -> dict[str, Any]:
        """Returns the entries that say something, without `given`, which is part of the context."""
        found = self.json()
        found.pop("given", None)
        return found

    def text(self) -> str:
        """Returns the entries as JSON."""
        return json.dumps(self.json(), default=import_name)


def visit_of(text: str | None) -> Visit | None:
    """Returns the visit that `Visit.text` described.

    Raises:
        ValueError: the text cannot be right.
    """
    if text is None:
        return None
    found = plain_loads(text)
    if not isinstance(found, dict) or not found or not found.keys() <= set(Visit._fields):
        raise ValueError(f"`visit` is {shown(found)}")
    for name, value in found.items():
        right = type(value) is (str if name == "event" else dict if name in ("facts", "given") else int)
        right = right and not (type(value) is int and value < 0)
        if not right or (name in ("facts", "given") and not all(map(_is_scalar, value.values()))):
            raise ValueError(f"`{name}` of `visit` is {shown(value)}")
    plain: dict[str, Any] = found
    pairs = {name: tuple(value.items()) for name, value in plain.items() if isinstance(value, dict)}
    return Visit(**(plain | pairs))


def _is_scalar(value: object) -> bool:
    return isinstance(value, SCALARS) and not (isinstance(value, float) and not math.isfinite(value))
