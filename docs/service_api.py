"""Markdown for `service-api.md`, made from the OpenAPI document of the service when the site is built."""

import json
import re
from collections.abc import Mapping
from typing import Any

from nilregret.serve.api.app import OPERATIONS
from nilregret.serve.api.openapi import document
from nilregret.serve.api.operations import REFUSALS
from nilregret.serve.auth.tokens import needed, public
from nilregret.serve.wire.problems import KINDS

WIDEST = 110  # characters of JSON in one line
SENT = ("Request", "Item", "Parameter")  # endings of the names of structures that callers send
ROLES = {"reader": "readers", "decider": "deciders", "admin": "admins"}


def filled(text: str) -> str:
    """Returns the page with its `<!-- name -->` marks replaced by what the OpenAPI document says."""
    said = json.loads(document(OPERATIONS))
    schemas = said["components"]["schemas"]
    operations = [
        _operation(method.upper(), path, each, schemas)
        for path, methods in said["paths"].items()
        for method, each in methods.items()
    ]
    parts = {
        "addresses": operations,
        "errors": [_table("status", REFUSALS), _table("`kind`", {f"`{kind}`": text for kind, text in KINDS.items()})],
        "requests": [_structure(name, schema, schemas) for name, schema in schemas.items() if name.endswith(SENT)],
        "answers": [_structure(name, schema, schemas) for name, schema in schemas.items() if not name.endswith(SENT)],
    }
    for name, texts in parts.items():
        text = text.replace(f"<!-- {name} -->", "\n\n".join(texts))
    return text


def _table(head: str, rows: Mapping[Any, str]) -> str:
    return "\n".join([f"| {head} | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows.items())])


def _operation(method: str, path: str, about: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    callers = "anybody" if public(method, path) else ROLES[needed(method, path)]
    lines = [f"## {method} {path}\n", f"{about['summary']} {about.get('description', '')}".strip()]
    lines += ["", f"- For {callers}."]
    body = about.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        lines.append(f"- Takes {_type(body['schema'], schemas)}.")
    for each in about["parameters"]:
        if each["in"] == "header":
            lines.append(f"- Heeds `{each['name']}`.")
        elif each["in"] == "query":
            words = each["schema"].get("description") or _first(each["schema"])
            lines.append(f"- `?{each['name']}=` {_type(each['schema'], schemas)}. {words}".rstrip())
    for status, answer in about["responses"].items():
        if int(status) < 300 or answer["description"] != REFUSALS.get(int(status)):
            kinds = [_type(each["schema"], schemas) if each else media for media, each in answer["content"].items()]
            lines.append(f"- {status}: {answer['description']} {', '.join(kinds)}")
    if body:
        lines += ["", "Examples:", ""]
        lines += [_example(each["summary"], each["value"]) for each in body["examples"].values()]
    return "\n".join(lines)


def _example(summary: str, body: Mapping[str, Any]) -> str:
    """Returns an example in one line, or one entry a line if it is long."""
    text = json.dumps(body)
    if len(text) <= WIDEST:
        return f"- {summary} `{text}`"
    lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in body.items())
    return f"- {summary}\n\n  ```json\n  {{\n{lines}\n  }}\n  ```\n"


def _structure(name: str, schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    required = set(schema.get("required", ())) if name.endswith(SENT) else set()
    lines = [f"### {name}\n", schema.get("description", ""), "", "| entry | type | |", "|---|---|---|"]
    for entry, kind in schema["properties"].items():
        shown = f"*`{entry}`*" if entry in required else f"`{entry}`"
        lines.append(f"| {shown} | {_type(kind, schemas)} | {_words(kind)} |")
    return "\n".join(lines)


def _words(kind: Mapping[str, Any]) -> str:
    text = kind.get("description") or _first(kind)
    default = kind.get("default")
    return text if default in (None, "", False) else f"{text} Default: `{json.dumps(default)}`.".strip()


def _first(kind: Mapping[str, Any]) -> str:
    """Returns the first description within a choice of types."""
    return next((each["description"] for each in kind.get("anyOf", ()) if "description" in each), "")


def _type(kind: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Returns a JSON schema in a few words."""
    if "$ref" in kind:
        name = re.sub(".*/", "", kind["$ref"])
        return f"[{name}](#{name.lower()})"
    if "anyOf" in kind or "oneOf" in kind:
        choices = kind.get("anyOf") or kind["oneOf"]
        several = [each for each in choices if each.get("type") != "null"]
        said = " or ".join(dict.fromkeys(_type(each, schemas) for each in several))
        return f"{said}?" if len(several) < len(choices) else said
    if "enum" in kind:
        return " or ".join(f"`{json.dumps(value)}`" for value in sorted(kind["enum"], key=str))
    if kind.get("type") == "array":
        return f"list of {_type(kind.get('items', {}), schemas)}"
    if kind.get("type") == "object":
        inner = kind.get("additionalProperties")
        return f"object of {_type(inner, schemas)}" if isinstance(inner, dict) and inner else "object"
    return str(kind.get("type", "anything"))
