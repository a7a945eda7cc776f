"""Trials as tables and files: pandas, CSV, JSON lines, Parquet and Arrow. Files are read again by `add_from`.

A row has one value a column: `parameters.rate`, `point.0`, `context.hour`, `constraints.0`.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, final

from .._utils.checks import shown
from .._utils.errors import InvalidInput, MissingExtra
from ..domains.domain import Arms, Domain
from ..domains.parameters import Choice, Int, Parameter
from ..policy.policy import Policy
from ..storage.record import Trial
from .axes import space_of
from .direction import AnyPolicy
from .inputs import Inputs
from .play_rewards import Rewards
from .trial_json import trial_json, with_fits

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".csv", ".jsonl", ".parquet", ".arrow")
Row = dict[str, Any]
Columns = Callable[[Trial], Row]


def rows(policy: AnyPolicy, trials: Iterable[Trial], extra: Columns | None = None) -> Iterator[Row]:
    """Yields a row for each trial, all with the same columns. An empty cell is None.

    The column `propensity` is there if some decision is recorded with its probability, and `std` if the noise of some
    reward is known.

    Args:
        policy: of the study.
        trials: of the study.
        extra: further columns of a trial, the same for all.
    """
    trials, more = list(trials), extra or _nothing
    limits = (len(trial.constraints) for trial in trials if trial.constraints is not None)
    widest = max([policy.constraint_count, *limits])
    known = [name for name in ("propensity", "std") if any(getattr(trial, name) is not None for trial in trials)]
    for trial in trials:
        record = trial_json(trial)
        yield _row(record, policy, widest) | {name: record.get(name) for name in known} | more(trial)


def _row(record: Row, policy: AnyPolicy, constraints: int) -> Row:
    named = _names(policy.domain)
    told = record["constraints"] or []  # Without constraints in the policy, their number may differ.
    limits = [*told, *[None] * (constraints - len(told))]
    row = {name: record[name] for name in ("number", "state", "reward", "reason")}
    if named is None:
        row |= {f"point.{i}": value for i, value in enumerate(record["point"])}
    else:
        row |= {f"parameters.{name}": record["parameters"].get(name) for name in named}
    row |= {"arm": record["arm"]} if isinstance(policy.domain, Arms) else {}
    if policy.context is not None:
        context = record["context"]
        listed = context if isinstance(context, Mapping) else dict(enumerate(context))
        row |= {f"context.{name}": listed.get(name) for name in _names(policy.context) or listed}
    row |= {f"constraints.{j}": value for j, value in enumerate(limits)}
    row |= {name: record[name] for name in ("explored", "late", "asked_at", "told_at")}
    if not isinstance(policy, Policy) or policy.switching is None:
        return row
    return row | {"repeats": record.get("repeats", 1), "plays": record.get("plays"), "scatter": record.get("scatter")}


def _names(domain: Domain) -> list[str] | None:
    """Returns the names of the parameters, or None if the domain has none."""
    space = space_of(domain)
    return None if space is None else list(space.parameters)


def to_pandas(policy: AnyPolicy, trials: Iterable[Trial], extra: Columns | None = None) -> pd.DataFrame:
    """Returns the rows as a table (see `rows`).

    Raises:
        MissingExtra: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra(
            "`to_pandas` needs pandas, which is not installed: pip install 'nilregret[export]'. "
            "`study.export('trials.csv')` writes the same table and needs nothing."
        ) from error
    return pd.DataFrame(list(rows(policy, trials, extra)))


def write(policy: AnyPolicy, trials: Iterable[Trial], path: str | Path, *, extra: Columns | None = None) -> Path:
    """Writes all trials to a file and returns its path.

    Args:
        policy: of the study.
        trials: of the study.
        path: of the file. Its ending names the format.
        extra: further columns of a trial, the same for all.
    """
    path = Path(path)
    ending = _ending(path)
    if ending == ".jsonl":
        more = extra or _nothing
        lines = (json.dumps(with_fits(trial) | more(trial), ensure_ascii=False) + "\n" for trial in trials)
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(lines)
        return path
    if ending == ".csv":
        return write_csv(policy, trials, path, extra=extra)
    _write_columns(list(_in_text(policy, trials, extra)), path)
    return path


def write_csv(
    policy: AnyPolicy, trials: Iterable[Trial], path: Path, *, extra: Columns | None = None,
    cell: Callable[[Any], Any] = lambda value: value,
) -> Path:  # fmt: skip
    """Writes trials to a CSV file, row by row, and returns its path.

    Args:
        policy: of the study.
        trials: of the study.
        path: of the file.
        extra: further columns of a trial, the same for all.
        cell: returns what stands for a value or a name of a column.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        writer, row = csv.writer(file), None
        for number, row in enumerate(_in_text(policy, trials, extra)):
            if number == 0:
                writer.writerow(map(cell, row))
            writer.writerow(map(cell, row.values()))
        if row is None:
            writer.writerow(["number"])
    return path


def _in_text(policy: AnyPolicy, trials: Iterable[Trial], extra: Columns | None) -> Iterator[Row]:
    """Yields the rows with their options as text."""
    texts = {column: _texts(parameter) for column, parameter in _choices(policy)}
    return (_told_in_text(row, texts) for row in rows(policy, trials, extra))


def _nothing(_: Trial) -> Row:
    return {}


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in FORMATS:
        raise InvalidInput(
            f"The file is {shown(str(path))}: its name must end in .csv, .jsonl (a JSON object for each trial), "
            ".parquet or .arrow, which says how it is written."
        )
    return ending


def _choices(policy: AnyPolicy) -> Iterator[tuple[str, Choice]]:
    """Yields the columns whose values are options."""
    for prefix, domain in (("parameters", policy.domain), ("context", policy.context)):
        space = None if domain is None else space_of(domain)
        for name, parameter in space.parameters.items() if space is not None else ():
            if isinstance(parameter, Choice):
                yield f"{prefix}.{name}", parameter


def _texts(parameter: Choice) -> dict[tuple[str, Any], str]:
    """Returns the text of each option, by type and value.

    If two options would look alike, or one would be empty, all are written as JSON.
    """
    plain = [option if isinstance(option, str) else json.dumps(option) for option in parameter.options]
    if len(set(plain)) < len(plain) or "" in plain:
        plain = [json.dumps(option) for option in parameter.options]
    return {(type(option).__name__, option): text for option, text in zip(parameter.options, plain, strict=True)}


def _told_in_text(row: Row, texts: Mapping[str, Mapping[tuple[str, Any], str]]) -> Row:
    """Returns a row with its options as text, because a column of a file has one type."""
    return row | {
        column: known.get((type(row[column]).__name__, row[column])) for column, known in texts.items() if column in row
    }


def _write_columns(table: list[Row], path: Path) -> None:
    arrow, parquet = _arrow()
    columns = arrow.Table.from_pylist(table)
    if path.suffix.lower() == ".parquet":
        parquet.write_table(columns, path)
        return
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_file(file, columns.schema) as writer:
        writer.write_table(columns)


def _read_columns(path: Path) -> list[Row]:
    arrow, parquet = _arrow()
    rows: list[Row]
    try:
        if path.suffix.lower() == ".parquet":
            rows = parquet.read_table(path).to_pylist()
        else:
            with arrow.OSFile(str(path), "rb") as file, arrow.ipc.open_file(file) as reader:
                rows = reader.read_all().to_pylist()
    except arrow.ArrowInvalid as error:
        kind = "Parquet" if path.suffix.lower() == ".parquet" else "Arrow"
        raise InvalidInput(f"{path} is no {kind} file, or has been cut off: {error}.") from error
    return rows


def _arrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra(
            "A Parquet or Arrow file needs pyarrow, which is not installed: pip install "
            "'nilregret[export]'. Files that "
            "end in .csv or .jsonl need nothing."
        ) from error
    return pyarrow, parquet


# -- files read again ----------------------------------------------------------------------------------------------


@final
class ImportedTrial(NamedTuple):
    """A trial of a file that has a reward, as `Study.add` takes it.

    Attributes:
        where: point or parameters.
        reward: reward (loss), or the rewards of several plays.
        context: of the trial, or None.
        constraints: constraint values, or None.
        std: standard deviation of the noise of the reward, or None.
    """

    where: Any
    reward: float | Rewards
    context: Any
    constraints: list[float] | None
    std: float | None = None


def read(policy: AnyPolicy, path: str | Path) -> list[ImportedTrial]:
    """Returns the observed trials of a file that `write` wrote, or one like it, in its order.

    In a CSV, Parquet or Arrow file every row with a reward counts. A column "NAME" may stand for a missing
    "parameters.NAME". The policy's domain decides how values are read.
    """
    path = Path(path)
    if _ending(path) == ".jsonl":
        with path.open(encoding="utf-8") as file:
            records = [_parsed(line, number) for number, line in enumerate(file, start=1) if line.strip()]
        return [_told(record) for record in records if record.get("reward") is not None]
    if path.suffix.lower() in (".parquet", ".arrow"):
        table = _read_columns(path)
    else:
        with path.open(encoding="utf-8", newline="") as file:
            table = list(csv.DictReader(file))
    found = (_Reader(policy, row, number) for number, row in enumerate(table, start=1))
    return [each.told() for each in found if each.number("reward") is not None]


def _parsed(line: str, number: int) -> Row:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict) or not {"parameters", "point"} & set(record):
        raise InvalidInput(
            f"Line {number} is no JSON object of a trial: {shown(line.strip())}. A file of JSON lines has one for each "
            "trial, with `reward` and `parameters` or `point`."
        )
    return record


def _told(record: Row) -> ImportedTrial:
    named = record.get("parameters")
    where = record.get("point") if named is None else named
    reward = record["reward"]
    if (record.get("plays") or 1) > 1:
        reward = _several(reward, record["plays"], record.get("scatter"))
    return ImportedTrial(where, reward, record.get("context"), record.get("constraints"), record.get("std"))


def _several(mean: float, plays: float, scatter: float | None) -> Rewards:
    """Returns the rewards of several plays."""
    return Rewards(count=int(plays), sum=0.0, squares=scatter or 0.0, about=mean)


@final
class _Reader:
    """A row of a table, read by its columns."""

    def __init__(self, policy: AnyPolicy, row: Row, line: int) -> None:
        self._policy, self._row, self._line = policy, row, line

    def told(self) -> ImportedTrial:
        """Returns the row as a trial."""
        policy = self._policy
        limits = [self.number(name) for name in self._several("constraints")]
        known = [value for value in limits if value is not None]
        fewer = policy.constraint_count == 0 and limits[: len(known)] == known
        reward, plays = float(self.number("reward") or 0.0), self.number("plays") or 1.0
        return ImportedTrial(
            self._at("parameters", policy.domain) if space_of(policy.domain) else self._at("point", policy.domain),
            reward if plays <= 1 else _several(reward, plays, self.number("scatter")),
            None if policy.context is None else self._at("context", policy.context),
            known if known and (len(known) == len(limits) or fewer) else None,
            self.number("std"),
        )

    def number(self, column: str) -> float | None:
        """Returns the number in a column, or None if the cell is empty or missing."""
        value = self._row.get(column)
        if value is None or value == "":
            return None
        try:
            return float(value)
        except (TypeError, ValueError):
            raise self._wrong(column, value, "a number") from None

    def _several(self, prefix: str) -> list[str]:
        """Returns the columns "prefix.0", "prefix.1", ..."""
        return [name for name in (f"{prefix}.{i}" for i in range(len(self._row))) if name in self._row]

    def _at(self, prefix: str, domain: Domain) -> Any:
        space = space_of(domain)
        if space is None:
            return [self.number(name) for name in self._several(prefix)]
        named = {name: self._value(prefix, name, each) for name, each in space.parameters.items()}
        if space.conditions is None:
            return named
        active = {name for name in named if space.conditions.is_active(name, named)}
        return {name: value for name, value in named.items() if name in active}

    def _value(self, prefix: str, name: str, parameter: Parameter) -> Any:
        column = f"{prefix}.{name}" if f"{prefix}.{name}" in self._row else name
        if column not in self._row:
            raise InvalidInput(
                f"The file has no column {prefix}.{name}, and the study has that parameter: it has "
                f"{shown(list(self._row))}."
            )
        if not isinstance(parameter, Choice):
            number = self.number(column)
            return int(number) if isinstance(parameter, Int) and number is not None and number.is_integer() else number
        text = self._row[column]
        if text is None or text == "":
            return None
        found = [option for (_, option), known in _texts(parameter).items() if known == str(text)]
        if not found:
            raise self._wrong(column, text, f"one of {shown(list(_texts(parameter).values()))}")
        return found[0]

    def _wrong(self, column: str, value: Any, wanted: str) -> InvalidInput:
        return InvalidInput(f"Row {self._line} has {shown(value)} in column {column}: it must be {wanted}, or empty.")


def add_from(add: Callable[..., Trial], inputs: Inputs, policy: AnyPolicy, path: str | Path) -> list[Trial]:
    """Adds the observed trials of a file to a study, and returns them. If one cannot be added, none is.

    Args:
        add: `add` of the study.
        inputs: checks of the study.
        policy: of the study.
        path: of the file.
    """
    found = read(policy, path)
    for number, told in enumerate(found, start=1):
        try:
            inputs.point(told.where)
            inputs.rewards(told.reward)
            inputs.context(told.context)
            if told.constraints is not None:
                inputs.constraints(told.constraints)
            if told.std is not None:
                inputs.std(told.std)
        except InvalidInput as error:
            raise InvalidInput(
                f"Reward {number} of those in {path}: {error.what} Nothing was added.",
                advice=error.advice,
                topic=error.topic,
            ) from None
    return [
        add(told.where, told.reward, context=told.context, constraints=told.constraints, std=told.std) for told in found
    ]
