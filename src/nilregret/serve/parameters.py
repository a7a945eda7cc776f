"""Structures of parameters for the OpenAPI document. `algorithms.parameter_tables` reads them, as it reads files."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

When = Annotated[
    dict[str, Any] | None, Meta(description="Where it counts: another one before it, and a value of that, or several.")
]
Log = Annotated[bool, Meta(description="Whether its logarithm is what varies.")]


class Parameter(Struct, forbid_unknown_fields=True, frozen=True, tag_field="type", kw_only=True):
    """A parameter to choose."""

    when: When = None


class FloatParameter(Parameter, frozen=True, tag="float", kw_only=True):
    """A real number."""

    low: float
    high: float
    log: Log = False


class IntParameter(Parameter, frozen=True, tag="int", kw_only=True):
    """A whole number."""

    low: int
    high: int
    log: Log = False
    step: Annotated[int, Meta(ge=1)] = 1


class ChoiceParameter(Parameter, frozen=True, tag="choice", kw_only=True):
    """A choice of one option."""

    options: Annotated[list[str | int | float | bool], Meta(min_length=1)]


KINDS: tuple[type[Struct], ...] = (FloatParameter, IntParameter, ChoiceParameter)
OF = {"StudyRequest": ("space", "context")}  # structures, and their entries that are parameters by name
