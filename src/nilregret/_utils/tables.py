"""The one reader of tables: CSV, JSON, JSON lines, Parquet and Arrow files, data frames, mappings and lists of dicts.

CSV is written here too, in the one form that a spreadsheet does not compute.

| what | how it is read |
|---|---|
| separator of a CSV file | comma, semicolon or tab, the one with which the first line has most columns |
| decimal commas | in files that separate by semicolons or tabs. Decimal points beside them are refused |
| 1.250 or 1,250 | in files that separate by semicolons or tabs: refused if no other number shows which it is |
| `decimal` | if given, it is the decimal mark of a CSV file, and the other mark groups thousands |
| a text that begins with `'` and then `=`, `+`, `-` or `@` | without the `'`, as `csv_cell` wrote it |
| numbers | without blanks around them |
| names of columns | without blanks around them, in any capitalisation |
| columns without a name | not at all: the index of a data frame |
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, final

import numpy as np

from ..errors import InvalidInput, needs
from .checks import MINUS, Array, closest, many, number_in, one_of, shown
from .dataclass import dataclass, replace
from .files import bytes_of, text_in
from .logs import AMONG, COUNTED, Row, rows_of_records, rows_of_text

ENDINGS = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather", ".gz")
KINDS = "a CSV table, JSON lines (an object for each row), a JSON list of objects, Parquet or Arrow"
PROPENSITY = "propensity"
REWARDS = ("reward", "value")
LOSSES = ("loss", "cost")  # Minus the rewards, whatever the goal.
INDEX = re.compile(r"(Unnamed: \d+)?$")  # The name of a data frame's index in a CSV file.
SEPARATORS = (",", ";", "\t")
COMPUTED = re.compile(r"'*[=+\-@\t\r]")  # A spreadsheet computes a cell that begins so (but for the quotes).
MOST_PLACES = 5  # Rows that a note lists.
OUTCOMES = ("failed", "abandoned")  # Words in a column of answers.
TEXTS = ("event", "unit", "reason", "remarks")  # Columns whose cells are texts, even such as 12.345.678.
SIGN, EXPONENT = f"[+{MINUS}-]?", f"([eE][+{MINUS}-]?\\d+)?"
NUMBER = re.compile(rf"{SIGN}((\d+\.?\d*|\.\d+){EXPONENT}|inf|nan)$")
DECIMAL = {mark: re.compile(rf"{SIGN}\d*[{mark}]\d+{EXPONENT}$") for mark in ".,"}
# Numbers with thousands that the other mark groups, by the decimal mark. Without the decimal mark they may be both.
GROUPED = {mark: re.compile(rf"{SIGN}[1-9]\d{{0,2}}([{each}]\d{{3}})+([{mark}]\d*)?$") for mark, each in (".,", ",.")}
SAY = "`decimal` of `add_from`, and `nilregret import --decimal`, say which mark is the decimal one."
SHEET = "sheet"  # A column of a sheet to fill in. With a decimal comma its cells are separated by semicolons.
PARQUET, ARROW, WORKBOOK, DATABASE = b"PAR1", b"ARROW1", b"PK\x03\x04", b"SQLite format 3\0"
# Columns of an export that are no answer and no point.
OF_TRIALS = {
    "number", "state", "reason", "explored", "enqueued", "late", "asked_at", "told_at", "fits", "lease_until",
    "abandoned", "corrected", "repeats", "plays", "scatter", "feasible", "parameters", "point", "context",
    "constraints", "propensity", "std", "metrics", "arm", "arm_name", "id", "defaulted", "late_reward", "sheet",
    "remarks", "steps", "unit", "event", "kept", "slate", "place", "facts", "given", AMONG, COUNTED,
}  # fmt: skip
PREFIXES = ("parameters.", "point.", "context.", "constraints.", "metrics.", "late_values.", "facts.", "given.")
NESTED = (
    "parameters",
    "point",
    "context",
    "constraints",
    "metrics",
    "values",
    "stds",
    "facts",
)  # Entries of a trial that hold several values.


@final
@dataclass(frozen=True)
class Table:
    """A table by columns.

    Attributes:
        called: words for the table in errors.
        columns: values by name of the column, all of one length. An empty cell is None or NaN.
        texts: True if a cell may be the text of a value, as in a CSV file.
        first: number of the first row in errors, if it has no line.
        piece: True if the table is a part of a longer one, of which earlier rows are on record.
        lines: of a CSV file, at which the rows end. That of the names of columns is 1.
    """

    called: str
    columns: Mapping[str, Any]
    texts: bool = False
    first: int = 1
    piece: bool = False
    lines: Sequence[int] | None = None

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InvalidInput(
                f"The columns of {self.called} must have a row for each entry. Their lengths are: {listed}."
            )

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    @property
    def named(self) -> str:
        """The table and its columns in words, for errors."""
        return f"{self.called} has the columns {shown(list(self.columns), length=300)}"

    def at(self, row: int) -> str:
        """Returns the place of a row in words, for errors."""
        return f"{f'Row {row + self.first}' if self.lines is None else f'Line {self.lines[row]}'} of {self.called}"

    def places(self, rows: Sequence[int]) -> str:
        """Returns the places of some rows in words, of many the first ones."""
        numbers = [row + self.first if self.lines is None else self.lines[row] for row in rows[:MOST_PLACES]]
        listed = ", ".join(map(str, numbers)) + ", ..." * (len(rows) > MOST_PLACES)
        return f"{'row' if self.lines is None else 'line'}{'s' * (len(rows) > 1)} {listed}"

    def misspelt(self, *names: str, known: Collection[str] = ()) -> str:
        """Returns a hint that a column, none of those known, is like one of these names, or an empty text."""
        close = next(filter(None, (closest(name, self.unread(known)) for name in names)), None)
        return "" if close is None else f" Did you mean column {close!r}?"

    def find(self, *names: str) -> str | None:
        """Returns the column of one of these names, the first that is there, in any capitalisation."""
        spelled = {name.casefold(): name for name in reversed(list(self.columns))}
        return next((spelled[name] if name not in self.columns else name for name in names if name in spelled), None)

    def reward(self, parameters: Collection[str] = ()) -> tuple[str, bool]:
        """Returns the column of the answers, and whether they are losses by their name.

        Args:
            parameters: names that mean a parameter, even if one is called "value".

        Raises:
            InvalidInput: there is none.
        """
        names = [name for name in (*REWARDS, *LOSSES) if name == REWARDS[0] or name not in parameters]
        column = self.find(*names)
        if column is None:
            raise InvalidInput(
                f"{self.named}: one of them must be `reward` (or `value`, or `loss`), the value of the objective. "
                f"Usually it has another name: rename it.{self.misspelt(*REWARDS, known=parameters)}"
            )
        return column, column.casefold() in LOSSES

    def number(self, column: str, row: int, *, boolean: bool = True) -> float | None:
        """Returns the number in a cell, or None if the cell is empty. True is 1 in answers, and no number in points."""
        value = self.columns[column][row]
        if is_missing(value) or (isinstance(value, str) and not value.strip()):
            return None
        as_float = (bool, np.bool_, Decimal) if boolean else Decimal
        found = float(value) if isinstance(value, as_float) else number_in(value)
        if found is None:
            raise self.wrong(column, row, "a number")
        return found

    def numbers(self, column: str) -> Array:
        """Returns a column as numbers, NaN where a cell is empty."""
        values = self.columns[column]
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
            return values.astype(np.float64)
        found = (self.number(column, row) for row in range(len(self)))
        return np.array([math.nan if value is None else value for value in found])

    def values(self, column: str) -> Any:
        """Returns a column, with numbers and JSON in place of the texts that write them if all can be read."""
        values, found = self.columns[column], []
        if not self.texts:
            return values
        for text in values:
            is_json = isinstance(text, str) and (text[0] in "[{-." or text[0].isdigit())
            try:
                found.append(json.loads(text) if is_json else text)
            except (ValueError, RecursionError):
                return values
        return found

    def unread(self, read: Collection[str]) -> list[str]:
        """Returns the columns that are not among those read, and not those of an export."""
        return [
            name for name in self.columns
            if name not in read and name.casefold() not in OF_TRIALS and not name.startswith(PREFIXES)
        ]  # fmt: skip

    def wrong(self, column: str, row: int, wanted: str) -> InvalidInput:
        """Returns the error about a cell."""
        value = self.columns[column][row]
        comma = isinstance(value, str) and (DECIMAL[","].match(value) or GROUPED["."].match(value))
        why = f" Decimal commas are read in files that separate by semicolons. {SAY}" if comma else ""
        return InvalidInput(
            f"{self.at(row)} has {shown(value)} in column {column}: it must be {wanted}, or empty.{why}"
        )

    def rows(self) -> Iterable[Row]:
        """Returns the rows as dicts."""
        columns = [column.tolist() if isinstance(column, np.ndarray) else column for column in self.columns.values()]
        return (dict(zip(self.columns, row, strict=True)) for row in zip(*columns, strict=True))

    def flat(self) -> Table:
        """Returns the table with dicts and lists of a trial's entries as columns "parameters.NAME", "point.0".

        Features of a log of another program may be nested: they become columns "context.user.age".
        """
        found: dict[str, Any] = {}
        for name, column in self.columns.items():
            if name not in NESTED:
                found[name] = column
                continue
            cells = self.values(name)
            rows = [_entries(each, deep=COUNTED in self.columns) for each in cells]
            for key in dict.fromkeys(key for row in rows for key in row):
                found[f"{name}.{key}"] = [row.get(key) for row in rows]
            if not any(isinstance(each, NESTS) for each in cells):
                found[name] = column
        return replace(self, columns=found)


NESTS = (Mapping, list, tuple, np.ndarray)


def _entries(nested: Any, *, deep: bool) -> dict[str, Any]:
    if isinstance(nested, Mapping):
        found: dict[str, Any] = {}
        for key, value in nested.items():
            inner = _entries(value, deep=True) if deep and isinstance(value, Mapping) else {"": value}
            found |= {f"{key}.{name}" if name else str(key): each for name, each in inner.items()}
        return found
    return {str(i): value for i, value in enumerate(nested)} if isinstance(nested, NESTS) else {}


def is_missing(value: object) -> bool:
    """Returns whether a cell is empty: None, NaN, NaT, pandas' NA, a masked entry or an empty text."""
    if value is None or value is np.ma.masked or (isinstance(value, str) and value == ""):
        return True
    if type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float | np.floating) and math.isnan(value)


# -- whatever holds a table ------------------------------------------------------------------------------------------


def table_of(source: Any, called: str) -> Table | None:
    """Returns the table in a data frame, a mapping of columns or a list of dicts, or None if it is none of them.

    Data frames are known by `columns` and entries by name: those of pandas, polars, Arrow and others.

    Args:
        source: the table.
        called: words for it in errors.
    """
    if isinstance(source, Mapping):
        return Table(called, {str(name): _values(column) for name, column in source.items()})
    if isinstance(source, list | tuple) and source and all(isinstance(row, Mapping) for row in source):
        return table_of_records(source, called)
    names = getattr(source, "column_names", None) or getattr(
        source, "columns", None
    )  # Arrow's `columns` are the values.
    if names is None or not hasattr(source, "__getitem__"):
        return None
    return Table(called, _unique({str(name): _values(source[name]) for name in names}, list(names), called))


def _values(column: Any) -> Any:
    """Returns a column as an array of numbers, or as a list with None in empty cells."""
    if isinstance(column, np.ma.MaskedArray):
        column = column.tolist()
    values = list(column) if isinstance(column, list | tuple) else np.asarray(column)
    if isinstance(values, np.ndarray):
        if values.ndim == 0:
            raise InvalidInput(
                f"A column of the table is {shown(column)}: it must be a list with an entry for each row."
            )
        if values.ndim != 1 or values.dtype.kind in "fiub":
            return values
        values = list(values) if values.dtype.kind in "mM" else values.tolist()  # which makes numbers of nanoseconds
    return [None if is_missing(value) and value != "" else value for value in values]


def table_of_records(records: Sequence[Mapping[str, Any]], called: str) -> Table:
    """Returns a table with a row for each dict."""
    names = dict.fromkeys(name for record in records for name in record)
    return Table(called, {str(name): [record.get(name) for record in records] for name in names})


def _unique(columns: dict[str, Any], names: Sequence[Any], called: str) -> dict[str, Any]:
    if len(columns) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InvalidInput(f"Column {shown(twice)} of {called} is there twice: rename one of the two.")
    return columns


def read_table(path: str | Path, decimal: str | None = None) -> Table:
    """Returns the table in a file, whose content says of which kind it is.

    Args:
        path: of the file.
        decimal: decimal mark of a CSV file, "." or ",", or None if the file shows which it is.

    Raises:
        InvalidInput: the file cannot be read, or it is no table.
    """
    return table_in(bytes_of(path), str(path), decimal)


def given_table(name: str, source: Any, *, also: str = "", decimal: str | None = None) -> Table:
    """Returns the table in a file, a data frame, a mapping of columns or a list of dicts.

    Args:
        name: of the argument, for errors.
        source: the table, or the path of a file.
        also: what else the argument takes, for errors.
        decimal: see `read_table`. It has no effect on tables in memory.
    """
    table = read_table(source, decimal) if isinstance(source, str | Path) else table_of(source, f"`{name}`")
    if table is None:
        kinds = f"{also}the path of a file, a data frame, a mapping of columns or a list of dicts"
        raise InvalidInput(f"`{name}` is {shown(source)}: it must be {kinds}.")
    return table


def is_text(data: bytes) -> bool:
    """Returns whether the content of a file is text, and not one of the known kinds of binary files."""
    return not data.startswith((PARQUET, ARROW, WORKBOOK, DATABASE))


def table_in(data: bytes, called: str, decimal: str | None = None) -> Table:
    """Returns the table in the content of a file.

    Args:
        data: content of the file.
        called: words for the file in errors.
        decimal: see `read_table`.
    """
    if decimal is not None:
        one_of("decimal", decimal, [".", ","])
    if is_text(data):
        return _table_of_text(text_in(data, called), called, decimal)
    if data.startswith(WORKBOOK):
        raise InvalidInput(f"{called} is a workbook or a ZIP file, which cannot be read: save its sheet as CSV.")
    if data.startswith(DATABASE):
        raise InvalidInput(f"{called} is a database, where a table is wanted: {KINDS}.")
    return Table(called, _of_arrow(data, called), texts=True)


def _table_of_text(text: str, called: str, decimal: str | None) -> Table:
    """Returns the table in the text of a file."""
    start = text.lstrip()
    if not start:
        raise InvalidInput(f"{called} is empty: it must be {KINDS}.")
    if start[0] == "{":
        records = records_of_text(text, called)
        return table_of_records(rows_of_records(records) or records, called)
    if (rows := rows_of_text(text)) is not None:
        return table_of_records(rows, called)
    if start[0] == "[":
        return table_of_records(_listed(text, called), called)
    return _of_csv(text, called, decimal)


def _of_arrow(data: bytes, called: str) -> dict[str, Any]:
    arrow, parquet = arrow_modules()
    buffer = arrow.BufferReader(data)
    try:
        table = parquet.read_table(buffer) if data.startswith(PARQUET) else arrow.ipc.open_file(buffer).read_all()
    except (arrow.ArrowInvalid, OSError) as error:
        kind = "Parquet" if data.startswith(PARQUET) else "Arrow"
        raise InvalidInput(f"{called} is no {kind} file, or has been cut off: {error}.") from error
    columns: dict[str, Any] = table.to_pydict()
    return _unique(columns, table.column_names, called)


def arrow_modules() -> tuple[Any, Any]:
    """Returns `pyarrow` and `pyarrow.parquet`."""
    with needs("A Parquet or Arrow file", "pyarrow", "export", instead="Files in .csv or .jsonl need nothing."):
        import pyarrow
        from pyarrow import parquet
    return pyarrow, parquet


# -- JSON ------------------------------------------------------------------------------------------------------------


def records_of_text(text: str, called: str) -> list[Row]:
    """Returns the objects of JSON lines."""
    found = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            record = _parsed(line)
            if not isinstance(record, dict):
                raise InvalidInput(f"Line {number} of {called} is no JSON object: {shown(line.strip())}.")
            found.append(record)
    return found


def _listed(text: str, called: str) -> list[Row]:
    found = _parsed(text)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InvalidInput(f"{called} is no JSON list of objects, one for each row, or has been cut off.")
    return found


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# -- CSV -------------------------------------------------------------------------------------------------------------


def csv_cell(value: Any) -> Any:
    """Returns what stands for a value in a CSV file: text that a spreadsheet would compute begins with `'`.

    Numbers stay numbers. `read_table` takes the `'` away again.
    """
    computed = isinstance(value, str) and COMPUTED.match(value) and not NUMBER.match(value)
    return f"'{value}" if computed else value


def csv_writer(file: Any, *, end: str = "\r\n", separator: str = ",") -> Callable[[Iterable[Any]], Any]:
    """Returns a function that writes a row to an open file.

    Args:
        file: opened with `newline=""`.
        end: of a line.
        separator: of cells.
    """
    write = csv.writer(file, lineterminator=end, delimiter=separator).writerow
    return lambda row: write(map(csv_cell, row))


def csv_rows(text: str, called: str) -> list[list[str]]:
    """Returns the rows of a CSV text without names of columns, with decimal points."""
    separator, lines = _csv_lines(text, called)
    rows = [row for _, row in lines]
    return rows if separator == "," else [[_with_point(cell) for cell in row] for row in rows]


def _csv_lines(text: str, called: str) -> tuple[str, list[tuple[int, list[str]]]]:
    """Returns the separator of a CSV text, and its rows with the lines at which they end."""
    separator, text = _separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        return separator, [(reader.line_num, row) for row in reader if any(row)]
    except csv.Error as error:  # Such as a quote that is not closed, which would swallow all rows after it.
        raise InvalidInput(f"{called} is no CSV table: line {reader.line_num}: {error}.") from None


def _of_csv(text: str, called: str, decimal: str | None) -> Table:
    separator, lines = _csv_lines(text, called)
    (_, names), *rows = lines
    while names and not names[-1]:  # A line may end in separators.
        names.pop()
    for number, row in rows:
        if len(row) < len(names) or any(row[len(names) :]):
            raise InvalidInput(
                f"Line {number} of {called} has {many(len(row), 'cell')} where the first line has {len(names)}. "
                "Usually the file has been cut off, or a text with the separator, or a number with a decimal comma, "
                f"stands without quotes. The separator is {separator!r}."
            )
    kept = [i for i, name in enumerate(names) if not INDEX.match(name.strip())]
    columns = {names[i].strip(): [row[i] for _, row in rows] for i in kept}
    _unique(columns, [names[i].strip() for i in kept], called)
    if separator != "," or decimal is not None:
        given = "," if separator == ";" and SHEET in columns and decimal is None else None
        columns = _with_points(columns, called, decimal, given)
    cells = {name: [_cell(text) for text in column] for name, column in columns.items()}
    return Table(called, cells, texts=True, lines=[number for number, _ in rows])


def _separator(text: str) -> tuple[str, str]:
    """Returns the separator of a CSV text, and the text from the names of the columns on."""
    first, _, rest = text.partition("\n")
    said = re.match(r"sep=(.)\r?$", first)  # Written by and for spreadsheets.
    if said and rest.strip():
        return said[1], rest
    head = next((line for line in text.splitlines() if line.strip()), "")
    cells = {each: next(csv.reader([head], delimiter=each), []) for each in SEPARATORS}
    for each in SEPARATORS[1:]:  # Of 0,5;0,5 without names of columns, a comma would make more cells.
        if len(cells[each]) > 1 and all(map(_is_number, cells[each])):
            return each, text
    return max(SEPARATORS, key=lambda each: len(cells[each])), text


def _with_points(
    columns: dict[str, list[str]], called: str, decimal: str | None, likely: str | None
) -> dict[str, list[str]]:
    """Returns columns with numbers as Python writes them.

    Args:
        columns: texts by name.
        called: words for the file in errors.
        decimal: the decimal mark, or None if the numbers show which it is.
        likely: the decimal mark of a number such as 1,250 unless another number shows that it is not, or None.

    Raises:
        InvalidInput: it cannot be known which mark groups thousands.
    """
    of_numbers = [name for name, column in columns.items() if name not in TEXTS and all(map(_is_number, column))]
    cells = [(name, text.strip()) for name in of_numbers for text in columns[name]]
    given, decimal = decimal, decimal or _decimal_mark(cells, called, likely)
    other = "." if decimal == "," else ","
    for name, text in cells:
        if other in text.rstrip(other) and not GROUPED[decimal].match(text):
            why = "as `decimal` says" if given else "as other numbers show"
            raise InvalidInput(
                f"{called} has {text} in column {name}, and {decimal!r} is the decimal mark, {why}: write all numbers "
                "in one way. If some are no numbers, such as dates, leave their column out."
            )
    return {
        name: column if name in TEXTS else [_with_point(text, decimal, grouped=name in of_numbers) for text in column]
        for name, column in columns.items()
    }


def _decimal_mark(cells: Sequence[tuple[str, str]], called: str, likely: str | None) -> str:
    """Returns the decimal mark of numbers, each with the name of its column."""
    found = {mark: [each for each in cells if DECIMAL[mark].match(each[1])] for mark in DECIMAL}
    grouped = {mark: any(GROUPED[mark].match(text) for _, text in cells if text.count(".") + text.count(",") > 1)
               for mark in GROUPED}  # fmt: skip
    if sum(grouped.values()) == 1:  # Such as 1.250,5 and 1.250.000, which can be read in one way.
        return "." if grouped["."] else ","
    if found[","] and found["."]:
        (comma, text), (point, other) = found[","][0], found["."][0]
        raise InvalidInput(
            f"{called} has numbers with a decimal comma ({text} in column {comma}) and others with a point "
            f"({other} in column {point}), which may group thousands: write all in one way. {SAY}"
        )
    mark = "." if found["."] else ","
    alike = [GROUPED["." if mark == "," else ","].match(text) for _, text in found[mark]]
    if alike and all(alike) and mark != likely:
        name, text = found[mark][0]
        whole, part = text.replace(mark, ""), text.replace(mark, ".").rstrip("0")
        raise InvalidInput(
            f"{called} has {text} in column {name}, which may be {whole} or {part}. No other number of the file says "
            f"which: write {whole}, or another number of digits. {SAY}"
        )
    return mark


def _with_point(text: str, decimal: str = ",", *, grouped: bool = False) -> str:
    """Returns a number with a decimal point, and any other text as it is."""
    if grouped and GROUPED[decimal].match(text.strip()):
        text = text.replace("." if decimal == "," else ",", "")
    return text.replace(",", ".") if DECIMAL[","].match(text.strip()) else text


def _is_number(text: str) -> bool:
    text = text.strip()
    known = (NUMBER, DECIMAL[","], *GROUPED.values())
    return not text or text.casefold() in OUTCOMES or any(each.match(text) for each in known)


def _cell(text: str) -> str | None:
    return text[1:] if text.startswith("'") and COMPUTED.match(text) else text or None
