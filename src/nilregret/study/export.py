"""Trials as tables and files: pandas, CSV, JSON lines, Parquet and Arrow. `importing` reads them again.

A row has one value a column: `parameters.rate`, `point.0`, `context.hour`, `constraints.0`, `metrics.loss`. Several
objectives are in `values.loss` and `stds.loss`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._utils.files import check_place
from .._utils.logs import Row
from .._utils.tables import arrow_modules, csv_writer
from ..domains.domain import Arms, Domain, space_of
from ..domains.options import option_key
from ..domains.parameters import Choice, option_texts
from ..errors import needs
from ..policy.policy import Policy
from ..storage.record import Trial
from ..storage.trial import metric_names
from .direction import AnyPolicy
from .trial_json import trial_json, with_fits

if TYPE_CHECKING:
    import pandas as pd

FORMATS = (".csv", ".jsonl", ".parquet", ".arrow")
STEPS = "steps"  # Column of curves.
VISITS = ("event", "unit", "kept", "slate", "place")  # Columns of who visits, and of slates.
Columns = Callable[[Trial], Row]


def rows(policy: AnyPolicy, trials: Iterable[Trial], extra: Columns | None = None) -> Iterator[Row]:
    """Yields a row for each trial, all with the same columns. An empty cell is None.

    The column `propensity` is there if some decision is recorded with its probability, and `std` if the noise of some
    reward is known. So is `enqueued` if `Study.enqueue` named some, and `steps`, a list of steps and values, if some
    trial has reported. Metrics are in columns such as `metrics.accuracy`. Events, units and slates have columns if some
    trial has one, and facts are in columns such as `facts.order`.

    Args:
        policy: of the study.
        trials: of the study.
        extra: further columns of a trial, the same for all.
    """
    trials, more = list(trials), extra or _nothing
    queued, reported = any(trial.enqueued for trial in trials), any(trial.curve for trial in trials)
    limits = (len(trial.constraints) for trial in trials if trial.constraints is not None)
    widest = max([policy.constraint_count, *limits])
    several = policy.objective_names if policy.objective_count > 1 else ()
    own = ("propensity",) if several else ("propensity", "std")
    known = [name for name in own if any(getattr(trial, name) is not None for trial in trials)]
    noisy = [
        name for j, name in enumerate(several) if any(trial.stds and trial.stds[j] is not None for trial in trials)
    ]
    metrics = metric_names(trials)
    visits = [name for name in VISITS if any(getattr(trial, name) is not None for trial in trials)]
    facts = list(dict.fromkeys(name for trial in trials if trial.visit for name, _ in trial.visit.facts))
    for trial in trials:
        record, measured = trial_json(trial), trial.metrics
        row = _row(trial, record, policy, widest) | {name: record.get(name) for name in known}
        row |= {"enqueued": trial.enqueued} if queued else {}
        row |= {STEPS: record.get(STEPS)} if reported else {}
        row |= {name: getattr(trial, name) for name in visits} | _facts(trial, facts)
        row |= _named("values", several, several, trial.values) | _named("stds", noisy, several, trial.stds)
        yield row | {f"metrics.{name}": measured.get(name) for name in metrics} | more(trial)


def columns_of(policy: AnyPolicy, trials: Iterable[Trial], extra: Columns | None = None) -> dict[str, list[Any]]:
    """Returns the columns of the rows (see `rows`)."""
    listed = list(rows(policy, trials, extra))
    return {name: [row[name] for row in listed] for name in (listed[0] if listed else ("number", "reward"))}


def _row(trial: Trial, record: Row, policy: AnyPolicy, constraints: int) -> Row:
    names = _names(policy.domain)
    named = trial.parameters or {}
    told = record["constraints"] or []  # Without constraints in the policy, their number may differ.
    limits = [*told, *[None] * (constraints - len(told))]
    row: Row = {name: record[name] for name in ("number", "state", "reward", "reason")}
    if names is None:
        row |= {f"point.{i}": value for i, value in enumerate(record["point"])}
    else:
        row |= {f"parameters.{name}": named.get(name) for name in names}
    row |= {"arm": record["arm"]} if isinstance(policy.domain, Arms) else {}
    if policy.context is not None:
        context = trial.context_parameters or record["context"]
        listed: Mapping[Any, Any] = context if isinstance(context, Mapping) else dict(enumerate(context))
        row |= {f"context.{name}": listed.get(name) for name in _names(policy.context) or listed}
    row |= {f"constraints.{j}": value for j, value in enumerate(limits)}
    row |= {name: record[name] for name in ("explored", "late", "asked_at", "told_at")}
    if not isinstance(policy, Policy) or policy.switching is None:
        return row
    return row | {"repeats": record.get("repeats", 1), "plays": record.get("plays"), "scatter": record.get("scatter")}


def _facts(trial: Trial, names: Iterable[str]) -> Row:
    found = trial.facts
    return {f"facts.{name}": found.get(name) for name in names}


def _named(prefix: str, wanted: Iterable[str], names: Sequence[str], values: Sequence[float | None] | None) -> Row:
    """Returns the cells of some objectives."""
    found = dict(zip(names, values if values and names else [None] * len(names), strict=True))
    return {f"{prefix}.{name}": found[name] for name in wanted}


def _names(domain: Domain) -> list[str] | None:
    """Returns the names of the parameters, or None if the domain has none."""
    space = space_of(domain)
    return None if space is None else list(space.parameters)


def to_pandas(policy: AnyPolicy, trials: Iterable[Trial], extra: Columns | None = None) -> pd.DataFrame:
    """Returns the rows as a table (see `rows`).

    Raises:
        MissingExtra: pandas is not installed.
    """
    with needs("`to_pandas`", "pandas", "export", instead="`study.export('trials.csv')` writes the same table."):
        import pandas as pd
    return pd.DataFrame(list(rows(policy, trials, extra)))


def write(policy: AnyPolicy, trials: Iterable[Trial], path: str | Path, *, extra: Columns | None = None) -> Path:
    """Writes all trials to a file and returns its path.

    Args:
        policy: of the study.
        trials: of the study.
        path: of the file. Its ending names the format.
        extra: further columns of a trial, the same for all.
    """
    path = check_place("file", path, FORMATS)
    ending = path.suffix.lower()
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


def write_csv(policy: AnyPolicy, trials: Iterable[Trial], path: Path, *, extra: Columns | None = None) -> Path:
    """Writes trials to a CSV file, row by row, and returns its path (see `csv_cell`).

    Args:
        policy: of the study.
        trials: of the study.
        path: of the file.
        extra: further columns of a trial, the same for all.
    """
    with path.open("w", encoding="utf-8", newline="") as file:
        write_row, row = csv_writer(file), None
        for number, row in enumerate(_in_text(policy, trials, extra)):
            if number == 0:
                write_row(row)
            write_row(row.values())
        if row is None:
            write_row(["number"])
    return path


def _in_text(policy: AnyPolicy, trials: Iterable[Trial], extra: Columns | None) -> Iterator[Row]:
    """Yields the rows with their options as text."""
    texts = {column: _texts(parameter) for column, parameter in _choices(policy)}
    return (_told_in_text(row, texts) for row in rows(policy, trials, extra))


def _nothing(_: Trial) -> Row:
    return {}


def _choices(policy: AnyPolicy) -> Iterator[tuple[str, Choice]]:
    """Yields the columns whose values are options."""
    for prefix, domain in (("parameters", policy.domain), ("context", policy.context)):
        space = None if domain is None else space_of(domain)
        for name, parameter in space.parameters.items() if space is not None else ():
            if isinstance(parameter, Choice):
                yield f"{prefix}.{name}", parameter


def _texts(parameter: Choice) -> dict[Hashable, str]:
    """Returns the text of each option, by its key."""
    return dict(zip(map(option_key, parameter.options), option_texts(parameter), strict=True))


def _told_in_text(row: Row, texts: Mapping[str, Mapping[Hashable, str]]) -> Row:
    """Returns a row with its options as text, because a column of a file has one type, and its steps as JSON."""
    row |= {STEPS: row[STEPS] and json.dumps(row[STEPS])} if STEPS in row else {}
    return row | {column: _text(row[column], known) for column, known in texts.items() if column in row}


def _text(value: Any, known: Mapping[Hashable, str]) -> str | None:
    """Returns the text of an option. A value that was never declared is written as JSON, unless it is text."""
    text = known.get(option_key(value))
    return text if text is not None or value is None else value if isinstance(value, str) else json.dumps(value)


def _write_columns(table: list[Row], path: Path) -> None:
    arrow, parquet = arrow_modules()
    columns = arrow.Table.from_pylist(table)
    if path.suffix.lower() == ".parquet":
        parquet.write_table(columns, path)
        return
    with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_file(file, columns.schema) as writer:
        writer.write_table(columns)
