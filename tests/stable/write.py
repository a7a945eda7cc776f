"""Writes what version 1 keeps: public names with their signatures, operations over HTTP, and the command line.

    python -m tests.stable.write

A line that goes or changes breaks programs of others, and needs a new major version. A new line does not.
"""

import inspect
import json
import pkgutil
import re
from enum import Enum
from pathlib import Path

import click

from nilregret.__main__ import main
from nilregret.serve.api.app import OPERATIONS
from nilregret.serve.api.openapi import document

HERE = Path(__file__).parent
REFERENCE = HERE.parents[1] / "docs" / "reference.md"
# Classes whose objects users hold. Of other classes the constructor is kept, and the abstract methods of parts.
HELD = {
    "nilregret.Study", "nilregret.Trial", "nilregret.Result", "nilregret.Policy", "nilregret.simulation.Comparison",
    "nilregret.simulation.Run", "nilregret.evaluation.Evaluation", "nilregret.study.Explanation",
}  # fmt: skip


def signature(thing):
    """Returns the names of the arguments with their defaults. Annotations may become wider."""
    if inspect.isclass(thing) and issubclass(thing, Enum):
        return "(value)"  # What else `inspect` finds depends on the version of Python.
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return "(...)"
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in found.parameters.values()]
    text = str(found.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def members(place, kind):
    """Returns the members of a class that version 1 keeps."""
    abstract = getattr(kind, "__abstractmethods__", frozenset())
    listed = sorted(name for name in dir(kind) if name[0] != "_") if place in HELD else sorted(abstract)
    for name in listed:
        member = getattr(kind, name, None)
        yield name, signature(member) if callable(member) else ""


def names():
    """Returns each name of the reference with its signature, and the members that are kept."""
    found = {}
    for place in re.findall(
        r"^\.\. auto(?:function|class|data)\w*:: (\S+)", REFERENCE.read_text("utf-8"), re.MULTILINE
    ):
        thing = pkgutil.resolve_name(place)
        found[place] = signature(thing) if callable(thing) else type(thing).__name__
        if inspect.isclass(thing):
            found |= {f"{place}.{name}": said for name, said in members(place, thing)}
    return found


def commands(command=main, path="nilregret"):
    """Returns each command with its arguments and options."""
    found = {path: "; ".join(sorted(_parameter(each) for each in command.params))}
    if isinstance(command, click.Group):
        for name in sorted(command.commands):
            found |= commands(command.commands[name], f"{path} {name}")
    return found


def _parameter(parameter):
    said = "/".join([*parameter.opts, *parameter.secondary_opts])
    kind = "flag" if getattr(parameter, "is_flag", False) else type(parameter.type).__name__
    choices = f" of {', '.join(map(str, parameter.type.choices))}" if isinstance(parameter.type, click.Choice) else ""
    return (
        f"{said}: {kind}{choices}{', required' if parameter.required else ''}{', many' if parameter.nargs < 0 else ''}"
    )


def http():
    """Returns each operation and message of the OpenAPI document, without prose and examples, which may change."""
    said = json.loads(document(OPERATIONS))
    found = {}
    for path, operations in said["paths"].items():
        found |= {f"{method.upper()} {path}": _compact(operation) for method, operation in operations.items()}
    return found | {name: _compact(schema) for name, schema in said["components"]["schemas"].items()}


def _compact(entry):
    return json.dumps(_bare(entry), separators=(",", ":"), sort_keys=True)


def _bare(entry, name=""):
    if isinstance(entry, dict):
        return {k: _bare(v, k) for k, v in entry.items() if name == "properties" or k not in PROSE}
    if isinstance(entry, list):
        bare = [_bare(each) for each in entry]
        return sorted(bare, key=json.dumps) if name == "anyOf" else bare  # Versions of msgspec order them otherwise.
    return entry


PROSE = ("description", "summary", "title", "example", "examples", "tags", "externalDocs", "info", "servers", "links")
SNAPSHOTS = {"names": names, "commands": commands, "http": http}


def text(found):
    return json.dumps(dict(sorted(found.items())), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, make in SNAPSHOTS.items():
        (HERE / f"{name}.json").write_text(text(make()), encoding="utf-8")
