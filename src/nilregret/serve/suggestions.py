"""Suggestions for wrong entries of a request: the names and the words that it could have had."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ..algorithms.schema import nearest

STEP = re.compile(r"\[[^]]*\]|[^.[\]]+")  # a step of a place such as "items[1].reward"
ELSEWHERE = " `/openapi.json` has those there are."


def fitting(said: str, kind: Any, place: str, unknown: str | None) -> str:
    """Returns the possible names or words, with a leading space, or "".

    Args:
        said: message of msgspec.
        kind: structure of the whole body or query. None if unknown.
        place: of the wrong value in the body, "" for the whole body.
        unknown: name of an entry that does not exist, if that is the error.
    """
    if unknown is None and "enum value" not in said:
        return ""
    kinds = [] if kind is None else list(_at(msgspec.inspect.type_info(kind), STEP.findall(place)))
    if unknown is None:
        words = [word for each in kinds if isinstance(each, msgspec.inspect.LiteralType) for word in each.values]
        return f" There are: {', '.join(repr(word) for word in words)}." if words else ELSEWHERE
    names = [
        field.encode_name for each in kinds if isinstance(each, msgspec.inspect.StructType) for field in each.fields
    ]
    return f"{nearest(unknown, names)} The entries are: {', '.join(names)}." if names else ELSEWHERE


def _at(kind: msgspec.inspect.Type, steps: list[str]) -> Iterator[msgspec.inspect.Type]:
    """Yields the types that a value at a place may have."""
    if isinstance(kind, msgspec.inspect.Metadata):
        yield from _at(kind.type, steps)
    elif isinstance(kind, msgspec.inspect.UnionType):
        for each in kind.types:
            yield from _at(each, steps)
    elif not steps:
        yield kind
    elif isinstance(kind, msgspec.inspect.ListType):
        yield from _at(kind.item_type, steps[1:])
    elif isinstance(kind, msgspec.inspect.DictType):
        yield from _at(kind.value_type, steps[1:])
    elif isinstance(kind, msgspec.inspect.StructType):
        for field in kind.fields:
            if field.encode_name == steps[0]:
                yield from _at(field.type, steps[1:])
