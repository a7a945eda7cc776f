"""What an entry of a request should have been: the names and the words that there are, where others were sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ..algorithms.schema import nearest

STEP = re.compile(r"\[[^]]*\]|[^.[\]]+")  # of a place such as "items[1].reward"
ELSEWHERE = " `/openapi.json` has those there are."


def fitting(said: str, kind: Any, place: str, unknown: str | None) -> str:
    """What there is where something else was sent; begins with a space, or is nothing.

    Args:
        said: what is wrong, in msgspec's words.
        kind: of the whole body or address; None where it is not known.
        place: of the value that is wrong in it, "" for the whole.
        unknown: an entry that there is not, where that is what is wrong.
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
    """The kinds that a value at a place may have."""
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
