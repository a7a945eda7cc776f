"""The package's modules as trees, parsed and walked once for all tests that look at code."""

import ast
from functools import cache
from pathlib import Path

import nilregret as nr

ROOT = Path(nr.__file__).parent


def module_name(path):
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def text_of(path):
    return path.read_text(encoding="utf-8")


@cache
def parsed(path):
    return ast.parse(text_of(path))


@cache
def nodes(path):
    """All nodes of a module, in the order of `ast.walk`."""
    return tuple(ast.walk(parsed(path)))
