"""Markdown for `policy-tables.md`, made from the schemas of tuning files when the site is built."""

from collections.abc import Iterable, Mapping

from nilregret.algorithms import registry
from nilregret.algorithms.schema import Schema


def filled(text: str) -> str:
    """Returns the page with its `<!-- name -->` marks replaced by tables of algorithms, parts and kernels."""
    parts = {
        "shared": _words(_shared()),
        "algorithms": _algorithms(registry.ALGORITHMS),
        "live": _algorithms({name: registry.ALGORITHMS_LIVE[name] for name in registry.IN_EPOCHS}),
        "parts": _table("table", _parts()),
        "kernels": _table("", (("", name, schema) for name, schema in registry.KERNELS.items())),
    }
    for name, each in parts.items():
        text = text.replace(f"<!-- {name} -->", each)
    return text


def _words(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _shared() -> list[str]:
    """Returns the entries that all algorithms but `auto` take."""
    first, *others = (schema.entries for name, schema in registry.ALGORITHMS.items() if name != "auto")
    return [entry for entry in first if all(entry in each for each in others)]


def _algorithms(schemas: Mapping[str, Schema]) -> str:
    shared = set(_shared())
    rows = []
    for name, schema in schemas.items():
        left = [entry for entry in schema.entries if name == "auto" or entry not in shared]
        needed = [entry for entry in left if entry in schema.needed]
        rows.append(f"| `{name}` | {_words(needed)} | {_words(entry for entry in left if entry not in needed)} |")
    return "\n".join(["| `algorithm` | needs | takes, too |", "|---|---|---|", *rows])


def _parts() -> Iterable[tuple[str, str, Schema]]:
    for slot, (_, named) in registry.PARTS.items():
        yield from ((f"`{slot}`", name, schema) for name, schema in named.items())
    yield from (("`refit`", name, schema) for name, schema in registry.REFITS.items())
    for name, schema in {"refit": registry.REFIT, "search": registry.SEARCH, "v": registry.POWER_LAW}.items():
        yield f"`{name}`", "", schema


def _table(first: str, rows: Iterable[tuple[str, str, Schema]]) -> str:
    """Returns a table of types and their entries, the required ones in italics."""
    lines = [f"| {first} | `type` | entries |", "|---|---|---|"] if first else ["| `type` | entries |", "|---|---|"]
    for slot, name, schema in rows:
        entries = ", ".join(f"*`{each}`*" if each in schema.needed else f"`{each}`" for each in schema.entries)
        cells = [slot, f"`{name}`" if name else "", entries]
        lines.append(f"| {' | '.join(cells if first else cells[1:])} |")
    return "\n".join(lines)
