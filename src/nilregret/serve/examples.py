"""Examples of request bodies, and links between operations, for the OpenAPI document.

The tests send every example to a service. `examples.json` holds both.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


class Example(msgspec.Struct, frozen=True):
    """A body of a request.

    Attributes:
        name: of the example, unique within the operation.
        study: name of the example study that the request is sent to.
        summary: what the body says, in words.
        body: plain values.
    """

    name: str
    study: str
    summary: str
    body: dict[str, Any]


class Links(msgspec.Struct, frozen=True):
    """The operations that may follow an answer.

    Attributes:
        values: runtime expressions of OpenAPI that take parameters from the request or the answer.
        operations: names of the operations that may follow.
    """

    values: dict[str, str]
    operations: list[str]


class _File(msgspec.Struct, frozen=True):
    examples: dict[str, list[Example]]
    links: dict[str, Links]


@cache
def _read() -> _File:
    return msgspec.json.decode(files(__package__).joinpath("examples.json").read_bytes(), type=_File)


def examples() -> dict[str, list[Example]]:
    """Returns the examples by the name of their operation."""
    return _read().examples


def links() -> dict[str, Links]:
    """Returns the operations that may follow, by the name of the operation that they follow."""
    return _read().links
