"""OpenAPI 3.1 document of the API, made from the structures and the operations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ..wire.messages import NAME_PATTERN, Sums
from .operations import LONGEST_KEY, REFUSED, Operation, ResponseInfo

# Examples of request bodies, and links between operations, for the OpenAPI document.
#
# The tests send every example to a service. `examples.json` holds both.


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


When = Annotated[
    dict[str, Any] | None, Meta(description="Where it counts: another one before it, and a value of that, or several.")
]
Log = Annotated[bool, Meta(description="Whether its logarithm is what varies.")]


class Parameter(Struct, forbid_unknown_fields=True, frozen=True, tag_field="type", kw_only=True):
    """A parameter to choose."""

    when: When = None
    unknown: Annotated[bool, Meta(description="Of a context: whether a missing or unknown value is a level.")] = False


class FloatParameter(Parameter, frozen=True, tag="float", kw_only=True):
    """A real number."""

    low: float
    high: float
    log: Log = False
    step: Annotated[float, Meta(gt=0)] | None = None


class IntParameter(Parameter, frozen=True, tag="int", kw_only=True):
    """A whole number."""

    low: int
    high: int
    log: Log = False
    step: Annotated[int, Meta(ge=1)] = 1


class ChoiceParameter(Parameter, frozen=True, tag="choice", kw_only=True):
    """A choice of one option."""

    options: Annotated[
        list[Any], Meta(min_length=1, description="Any values of JSON, each once.", extra_json_schema={"items": {}})
    ]


KINDS: tuple[type[Struct], ...] = (FloatParameter, IntParameter, ChoiceParameter)
OF = {
    "StudyRequest": ("space", "context"),
    "WidenRequest": ("parameters",),
}  # structures, and their entries that are parameters by name
REWARDED = ("RewardRequest", "RewardItem", "ObservationRequest")  # structures whose `reward` may be `Sums`


DEFINITIONS = "#/components/schemas/{name}"
KEY = {
    "name": "Idempotency-Key", "in": "header", "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY},
    "description": "Names this request: the same again is answered the same, and done once.",
}  # fmt: skip
PLACES: dict[str, dict[str, Any]] = {
    "name": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 1602, "pattern": NAME_PATTERN},
        "description": "Of the study. `.`, `..`, and names with a slash, a backslash or `~~` first are `~~` and the "
        "hexadecimal digits of their UTF-8.",
    },
    "id": {
        "schema": {"type": "string", "minLength": 1, "maxLength": 1602, "pattern": NAME_PATTERN},
        "description": "Of the decision, as it was given. Or the `event` that it was asked for, written as the name of "
        "a study is.",
    },
    "step": {"schema": {"type": "integer", "minimum": 0}, "description": "Of the evaluation; it grows."},
    "arm": {"schema": {"type": "integer", "minimum": 0}, "description": "The number of an arm."},
    "entry": {"schema": {"type": "integer", "minimum": 0}, "description": "The number of a point that waits."},
    "number": {"schema": {"type": "integer", "minimum": 0}, "description": "Of the decision, as it was given."},
}


def document(operations: Sequence[Operation]) -> bytes:
    """Returns the whole document as JSON."""
    kinds = [*_kinds(operations), *KINDS, Sums]
    schemas, components = msgspec.json.schema_components(kinds, ref_template=DEFINITIONS)
    _describe_parameters(components)
    known = dict(zip(kinds, schemas, strict=True))
    addresses = {operation.name: operation.path for operation in operations}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = re.sub(r":\w+\}", "}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation, known, addresses)
    said = {
        "openapi": "3.1.0",
        "info": {
            "title": "nilregret",
            "version": version("nilregret"),
            "summary": "Decisions made while learning, over HTTP.",
        },
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}, {}],
    }
    return json.dumps(said, sort_keys=False).encode()


def _describe_parameters(components: dict[str, Any]) -> None:
    """Adds the types of parameters and `Sums` to entries that are parsed after msgspec."""
    several = {"oneOf": [{"$ref": DEFINITIONS.format(name=kind.__name__)} for kind in KINDS]}
    for structure, entries in OF.items():
        for entry in entries:
            described = components[structure]["properties"][entry]
            for choice in described.get("anyOf", [described]):
                if choice["type"] == "object":
                    choice |= {"additionalProperties": several, "minProperties": 1}
    for structure in REWARDED:
        components[structure]["properties"]["reward"]["anyOf"].append({"$ref": DEFINITIONS.format(name=Sums.__name__)})


def _kinds(operations: Sequence[Operation]) -> list[type[msgspec.Struct]]:
    found: list[type[msgspec.Struct]] = []
    for operation in operations:
        bodies = [answered.body for answered in {**REFUSED, **_answers(operation)}.values()]
        for kind in (operation.body, *bodies):
            if isinstance(kind, type) and kind not in found:
                found.append(kind)
    return found


def _operation(operation: Operation, known: Mapping[Any, Any], paths: Mapping[str, str]) -> dict[str, Any]:
    answers = {**_answers(operation), **_refused(operation)}
    said: dict[str, Any] = {
        "operationId": operation.name, "summary": operation.summary,
        "parameters": [*_places(operation), *_query(operation), *([KEY] if operation.repeatable else [])],
        "responses": {str(status): _answer(answers[status], known) for status in sorted(answers)},
    }  # fmt: skip
    for status in operation.answers:
        if status < 300 and operation.name in links():
            said["responses"][str(status)]["links"] = _links(operation.name, paths)
    if operation.text:
        said["description"] = operation.text
    if operation.body is not None:
        content = {"schema": known[operation.body], "examples": _examples(operation.name)}
        said["requestBody"] = {"required": True, "content": {"application/json": content}}
        if operation.lines is not None:
            lines = {"schema": {"type": "string", "description": operation.lines.text}}
            said["requestBody"]["content"]["application/x-ndjson"] = lines | {"example": operation.lines.example}
    return said


def _answers(operation: Operation) -> dict[int, ResponseInfo]:
    return {**operation.answers, **({} if operation.lines is None else {200: operation.lines.answer})}


def _examples(name: str) -> dict[str, Any]:
    return {each.name: {"summary": each.summary, "value": each.body} for each in examples()[name]}


def _links(name: str, paths: Mapping[str, str]) -> dict[str, Any]:
    """Returns the operations that may follow, with the parameters that they take from the answer."""
    link = links()[name]
    return {
        then: {
            "operationId": then,
            "parameters": {each: link.values[each] for each in re.findall(r"\{(\w+)(?::\w+)?\}", paths[then])},
        }
        for then in link.operations
    }


def _refused(operation: Operation) -> dict[int, ResponseInfo]:
    return {status: answered for status, answered in REFUSED.items() if status not in operation.answers}


def _places(operation: Operation) -> list[dict[str, Any]]:
    names = re.findall(r"\{(\w+)(?::\w+)?\}", operation.path)
    return [{"name": name, "in": "path", "required": True, **PLACES[name]} for name in names]


def _query(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    (_,), components = msgspec.json.schema_components([operation.query])
    properties: dict[str, Any] = components[operation.query.__name__]["properties"]
    return [{"name": name, "in": "query", "required": False, "schema": kind} for name, kind in properties.items()]


def _answer(answered: ResponseInfo, known: Mapping[Any, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"description": answered.description}
    if isinstance(answered.body, tuple):
        said["content"] = {media: {} for media in answered.body}
    elif answered.body is not None:
        said["content"] = {"application/json": {"schema": known[answered.body]}}
    return said
