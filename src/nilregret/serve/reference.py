"""The page of the API for people, from the operations themselves: `python -m nilregret.serve.reference` prints it."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from .app import OPERATIONS
from .auth.roles import needed, public
from .examples import examples
from .openapi import document
from .operations import REFUSALS, Operation
from .problems import KINDS

BEGINNING = """# Addresses of the service

What each address of `nilregret serve` takes and answers; [the service](service.md) says what it is good for. Programs
read the same from `/openapi.json` (OpenAPI 3.1). This page is made from the code:
`python -m nilregret.serve.reference > docs/service-api.md`.

Bodies are JSON objects. An entry that is not known is refused by its name; NaN and infinity are no JSON. Times are Unix
seconds. Where a study minimises, rewards are losses. A type that ends in `?` may be `null` or left out; entries in
*italics* must be given.
"""
WIDEST = 110  # characters of a line of JSON
SENT = ("Request", "Item", "Parameter")  # how the names of structures end that are sent
WHO = {"reader": "readers", "decider": "deciders", "admin": "admins"}
ERRORS = """## Errors

`{"error": {"kind": "...", "sentence": "...", "field": "..."}}`: a word for programs, a sentence for people, and the
entry that is to blame where it is one.

| status | |
|---|---|
"""


def page() -> str:
    """The whole page, Markdown."""
    said = json.loads(document(OPERATIONS))
    schemas = said["components"]["schemas"]
    parts = [BEGINNING, *(_operation(operation, said, schemas) for operation in OPERATIONS)]
    parts.append(ERRORS + "\n".join(f"| {status} | {what} |" for status, what in REFUSALS.items()) + "\n")
    parts.append(
        "| `kind` | |\n|---|---|\n" + "\n".join(f"| `{kind}` | {what} |" for kind, what in KINDS.items()) + "\n"
    )
    used = [name for name in schemas if not name.endswith(SENT)]
    parts.append("## What is sent\n")
    parts += [_structure(name, schemas) for name in schemas if name.endswith(SENT)]
    parts.append("## What comes back\n")
    parts += [_structure(name, schemas) for name in used]
    return "\n".join(parts)


def _operation(operation: Operation, said: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    path = re.sub(r":\w+\}", "}", operation.path)
    about = said["paths"][path][operation.method.lower()]
    who = "anybody" if public(operation.method, path) else WHO[needed(operation.method, path)]
    lines = [f"## {operation.method} {path}\n", f"{operation.summary} {operation.text}".strip(), "", f"- For {who}."]
    if operation.body is not None:
        lines.append(f"- Takes [{operation.body.__name__}](#{operation.body.__name__.lower()}).")
    if operation.repeatable:
        lines.append("- Heeds `Idempotency-Key`.")
    for each in about["parameters"]:
        if each["in"] == "query":
            words = each["schema"].get("description") or _first(each["schema"])
            lines.append(f"- `?{each['name']}=` {_type(each['schema'], schemas)}. {words}".rstrip())
    for status, answered in operation.answers.items():
        body = answered.body
        kind = f"[{body.__name__}](#{body.__name__.lower()})" if isinstance(body, type) else ", ".join(body or ())
        lines.append(f"- {status}: {answered.what} {kind}")
    return "\n".join([*lines, *_examples(operation)]) + "\n"


def _examples(operation: Operation) -> list[str]:
    """What may be sent: short ones in a line, others in a block of their own."""
    if operation.body is None:
        return []
    said = ["", "Examples:", ""]
    for each in examples()[operation.name]:
        text = json.dumps(each.body)
        said.append(f"- {each.summary} `{text}`" if len(text) <= WIDEST else f"- {each.summary}\n{_block(each.body)}")
    return said


def _block(body: Mapping[str, Any]) -> str:
    """An entry a line, within a list."""
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in body.items())
    return f"\n  ```json\n  {{\n{lines}\n  }}\n  ```\n"


def _structure(name: str, schemas: Mapping[str, Any]) -> str:
    schema = schemas[name]
    needed_ = set(schema.get("required", ()))
    lines = [f"### {name}\n", schema.get("description", ""), "", "| entry | type | |", "|---|---|---|"]
    for entry, kind in schema["properties"].items():
        shown = f"*`{entry}`*" if entry in needed_ and name.endswith(SENT) else f"`{entry}`"
        lines.append(f"| {shown} | {_type(kind, schemas)} | {_words(kind)} |")
    return "\n".join(lines) + "\n"


def _words(kind: Mapping[str, Any]) -> str:
    text = kind.get("description") or _first(kind)
    default = kind.get("default")
    return text if default in (None, "", False) else f"{text} Default: `{json.dumps(default)}`.".strip()


def _first(kind: Mapping[str, Any]) -> str:
    """The first description within a choice of types."""
    return next((each["description"] for each in kind.get("anyOf", ()) if "description" in each), "")


def _type(kind: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """A type in a few words."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in kind or "oneOf" in kind:
        choices = kind.get("anyOf") or kind["oneOf"]
        several = [each for each in choices if each.get("type") != "null"]
        said = " or ".join(dict.fromkeys(_type(each, schemas) for each in several))
        return f"{said}?" if len(several) < len(choices) else said
    if "enum" in kind:
        return " or ".join(f"`{json.dumps(value)}`" for value in _options(kind["enum"]))
    if kind.get("type") == "array":
        return f"list of {_type(kind.get('items', {}), schemas)}"
    if kind.get("type") == "object":
        inner = kind.get("additionalProperties")
        return f"object of {_type(inner, schemas)}" if isinstance(inner, dict) and inner else "object"
    return str(kind.get("type", "anything"))


def _options(values: Iterable[Any]) -> list[Any]:
    return sorted(values, key=str)


if __name__ == "__main__":
    sys.stdout.write(page())
