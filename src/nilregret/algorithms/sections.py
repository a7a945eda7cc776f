"""Tables of a TOML file: the entries of each, of which kind, and errors that name the entry and the right spelling."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, final

import msgspec

from .._utils.errors import InvalidInput

T = TypeVar("T")
R = TypeVar("R")


@final
@dataclass(frozen=True)
class Section:
    """A table of a file, and what is made of it.

    Attributes:
        make: called with the entries as keyword arguments. Those that are left out have its defaults.
        needed: entries that must be there, each with its kind (as of `msgspec.convert`).
        allowed: entries that may be, likewise.
        refused: names that a user may well try, and why they are no entries.
        where: it is.
    """

    make: Callable[..., Any]
    needed: Mapping[str, Any] = field(default_factory=dict)
    allowed: Mapping[str, Any] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    where: str = "in a file"

    @property
    def entries(self) -> list[str]:
        """All of them, by name."""
        return [*self.needed, *self.allowed]

    def check(self, table: Mapping[str, Any], named: str = "") -> dict[str, Any]:
        """The entries of a table, of the right kinds.

        Args:
            table: from the file, without what says which table it is.
            named: what says so, for errors.
        """
        for name in table:
            if name in self.refused:
                raise InvalidInput(f"`{name}` cannot be set {self.where}: {self.refused[name]}.")
        unknown = [name for name in table if name not in self.entries]
        missing = [name for name in self.needed if name not in table]
        if unknown or missing:
            wrong = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(
                unknown
            )
            hint = nearest(unknown[0], self.entries) if unknown else ""
            of = f" of {named}" if named else ""
            raise InvalidInput(f"{'; '.join(wrong)}.{hint} The entries{of} are: {', '.join(self.entries) or 'none'}.")
        read: dict[str, Any] = msgspec.structs.asdict(convert(dict(table), self._struct))
        return {name: value for name, value in read.items() if value is not msgspec.UNSET}

    @cached_property
    def _struct(self) -> type[msgspec.Struct]:
        optional = [(name, kind | msgspec.UnsetType, msgspec.UNSET) for name, kind in self.allowed.items()]
        return msgspec.defstruct("Section", [*self.needed.items(), *optional], forbid_unknown_fields=True)


def nearest(name: str, known: Iterable[str]) -> str:
    """A question after the right spelling, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def one_named(entry: str, name: object, known: Mapping[str, T], refused: Mapping[str, str] | None = None) -> T:
    """What a name stands for."""
    if isinstance(name, str) and refused and name in refused:
        raise InvalidInput(f"`{entry}` {name!r} {refused[name]}")
    if not isinstance(name, str) or name not in known:
        hint = nearest(str(name), known)
        given = "missing" if name is None else repr(name)
        raise InvalidInput(f"`{entry}` is {given}: it must be one of {', '.join(map(repr, known))}.{hint}")
    return known[name]


def within(entry: str, read: Callable[..., R], *arguments: Any) -> R:
    """`read(*arguments)`, where an error says in which entry of the file it was found."""
    try:
        return read(*arguments)
    except InvalidInput as error:
        raise error.within(entry) from error


def convert(data: Any, kind: Any, place: str = "") -> Any:
    """`data` as a checked structure; an error names the entry, the fault, and for a misspelt name the right one."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        message = (
            re.sub(r"^Object missing required field (`.*?`)", r"the entry \1 is missing", str(error))
            .replace("Object", "the table")
            .replace("`object`", "a table")
            .replace("`str | object`", "a name or a table")
            .replace("`$", f"`{place or 'file'}")
            .replace("`file.", "`")
        )
        unknown = re.search(r"unknown field `([^`]*)`", message)
        if unknown:
            fields = [name for struct in _structs(kind) for name in struct.__struct_fields__]
            close = difflib.get_close_matches(unknown.group(1), fields, n=1)
            message += (
                f". Did you mean `{close[0]}`?" if close else f". The fields are: {', '.join(dict.fromkeys(fields))}."
            )
        raise InvalidInput(message) from None


def _structs(kind: Any) -> tuple[Any, ...]:
    return getattr(kind, "__args__", (kind,))
