"""The page of the API: its operations in groups and its schemas, from the OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

GROUPS: Mapping[str, Sequence[str]] = {
    "Studies": [""],
    "Decisions": ["decisions", "rewards", "observations"],
    "Arms": ["arms"],
    "What is known": ["predict", "bounds", "feasible", "best", "explain", "apprentice", "evaluations"],
    "The record": ["events", "export", "trials", "audit"],
}
ELSE = "The process"
LONGEST_LIST = 8  # allowed values that a type names


class Word(NamedTuple):
    """A part of a type in words, and the schema that it links to, if any."""

    text: str
    schema: str | None = None


@cache
def api_view(document: bytes) -> dict[str, Any]:
    """Returns the groups of operations and the schemas of an OpenAPI document, for a template."""
    said = json.loads(document)
    groups: dict[str, list[dict[str, Any]]] = {title: [] for title in (*GROUPS, ELSE)}
    for path, methods in said["paths"].items():
        for method, operation in methods.items():
            groups[_group(path)].append(_operation(path, method.upper(), operation))
    schemas = [
        {"name": name, "about": schema.get("description", ""), "fields": _fields(schema)}
        for name, schema in sorted(said["components"]["schemas"].items())
    ]
    return {"version": said["info"]["version"], "groups": groups, "schemas": schemas}


def _group(path: str) -> str:
    if not path.startswith("/v1/studies"):
        return ELSE
    part = re.sub(r"^/v1/studies(/\{name\})?/?", "", path).partition("/")[0]
    return next(title for title, parts in GROUPS.items() if part in parts)


def _operation(path: str, method: str, operation: Mapping[str, Any]) -> dict[str, Any]:
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    answers = {status: each for status, each in operation["responses"].items() if status < "300"}
    body = None
    if content is not None:
        examples = [
            {"about": each["summary"], "text": json.dumps(each["value"], indent=1)}
            for each in content["examples"].values()
        ]
        body = {"type": type_in_words(content["schema"]), "examples": examples or [{"about": "empty", "text": "{}"}]}
    return {
        "id": operation["operationId"], "method": method, "path": path, "summary": operation["summary"],
        "text": operation.get("description", ""), "body": body,
        "parameters": [
            {
                "name": each["name"], "place": each["in"], "required": each["required"],
                "about": each.get("description", ""), "type": type_in_words(each["schema"]),
            }
            for each in operation["parameters"]
        ],
        "answers": [
            {"status": status, "about": each["description"], "type": _content(each)}
            for status, each in answers.items()
        ],
    }  # fmt: skip


def _content(answer: Mapping[str, Any]) -> list[Word]:
    found = answer.get("content", {})
    schema = found.get("application/json", {}).get("schema")
    return [Word(", ".join(found))] if schema is None else type_in_words(schema)


def _fields(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [
        {
            "name": name, "required": name in required, "type": type_in_words(each),
            "about": each.get("description", ""),
        }
        for name, each in schema.get("properties", {}).items()
    ]  # fmt: skip


def type_in_words(schema: Mapping[str, Any]) -> list[Word]:
    """Returns a JSON schema in words: the type, its parts, and its limits."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return [Word(name, name)]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return _joined([type_in_words(each) for each in schema[several]], " or ")
    if "enum" in schema:
        values = [json.dumps(value) for value in schema["enum"]]
        return [Word(" or ".join(values[:LONGEST_LIST]) + " ..." * (len(values) > LONGEST_LIST))]
    kind = schema.get("type", "anything")
    if kind == "array":
        parts = schema.get("items") or {}
        return [Word("list of "), *type_in_words(parts)] if parts else [Word("list")]
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return [Word("object of "), *type_in_words(schema["additionalProperties"])]
    limits = [
        f"{word} {schema[key]}" for key, word in (("minimum", "at least"), ("maximum", "at most")) if key in schema
    ]
    return [Word(" ".join([kind if isinstance(kind, str) else " or ".join(kind), *limits]))]


def _joined(parts: Sequence[list[Word]], by: str) -> list[Word]:
    found = list(parts[0])
    for part in parts[1:]:
        found += [Word(by), *part]
    return found
