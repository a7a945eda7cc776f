"""Rows of a table, as the body of a request: JSON lines, which are written while they are sent."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, final

import msgspec
import numpy as np

from .._utils.checks import many, shown
from .._utils.files import bytes_of
from .._utils.logs import Row
from .._utils.tables import NESTED, Table, given_table, is_missing, table_in
from ..errors import InvalidInput
from ..serve.wire import messages as m

PART = 500  # rows that are sent together


@final
class Rows:
    """The rows of a table as JSON lines. Each iteration yields all of them.

    Args:
        table: path of a file, a data frame, a mapping of columns or a list of dicts.

    Attributes:
        key: a name of the content of a file, or None.

    Raises:
        InvalidInput: nothing can be read.
    """

    def __init__(self, table: Any) -> None:
        self.key: str | None = None
        if isinstance(table, str | Path):
            data = bytes_of(table)
            self.key = f"content {hashlib.sha256(data).hexdigest()}"
            found = table_in(data, str(table))
        else:
            found = given_table("table", table)
        columns = {name: found.values(name) if name in NESTED else cells for name, cells in found.columns.items()}
        self._table = Table(found.called, columns)

    def __iter__(self) -> Iterator[bytes]:
        part = []
        for number, row in enumerate(self._table.rows(), start=1):
            part.append(msgspec.json.encode(self._checked(row, number), enc_hook=_plain) + b"\n")
            if len(part) == PART:
                yield b"".join(part)
                part = []
        yield b"".join(part)

    def _checked(self, row: Row, number: int) -> Row:
        """Returns a row with None in empty cells. JSON would write an infinite number as a missing one."""
        found = {name: None if is_missing(value) else value for name, value in row.items()}
        for name, value in found.items():
            if isinstance(value, float) and math.isinf(value):
                raise InvalidInput(
                    f"Row {number} of {self._table.called} has {value} in column {name}: it must be finite."
                )
        return found

    def cautions(self, said: m.ObservationsTaken) -> list[str]:
        """Returns sentences about what a service has taken of the rows."""
        found, called = [], self._table.called
        if not said.new:
            found.append(
                f"All {many(said.rows, 'row')} of {called} are on record already, under the same key. Nothing was "
                "recorded again. If they are new decisions, pass a `key` of their own."
            )
        if not said.recorded:
            found.append(f"No row of {called} has a reward, so nothing was recorded.")
        if said.unread:
            found.append(f"{called} has columns that were not read: {', '.join(map(shown, said.unread))}.")
        if 0 < said.without_propensity < said.recorded:
            found.append(
                f"{said.without_propensity:,} of {many(said.recorded, 'row')} have no propensity. Such rows teach the "
                "policy, and `evaluate` leaves them out."
            )
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise InvalidInput(f"A cell of the table is {shown(value)}, which is no value of JSON.")
