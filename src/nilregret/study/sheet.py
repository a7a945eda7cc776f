"""A batch on paper: a table of trials to run by hand, with empty columns for what came out.

| column | contents |
|---|---|
| number | of the trial |
| parameters, point, arm, context.NAME | where it is run |
| value | empty: the reward or loss, or the word `failed` or `abandoned`. Of several objectives values.NAME, ... |
| constraints.0 (NAME, ...), ... | empty: constraint values |
| metrics.COST | empty: cost of the trial, above 0, if the policy divides by it |
| std (optional) | empty: standard deviation of the noise of the value, if the policy weighs values by it |
| remarks | empty: for people. Of a failed or abandoned trial it is the reason |
| sheet | name of the study, so that no other study reads the sheet |

`Study.add_from` reads the table back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from html import escape
from io import StringIO
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, final

import numpy as np

from .._utils.checks import Array, frozen, integer, many, one_of, shown
from .._utils.dataclass import dataclass
from .._utils.files import check_place, kind_of
from .._utils.tables import LOSSES, OF_TRIALS, REWARDS, SHEET, csv_writer
from ..domains.domain import Arms, Domain, Space, keeping_limits, space_of
from ..errors import InvalidInput
from ..policy.decide import Pinned
from ..policy.state import State
from ..policy.trained_posterior import why_one_noise
from ..slots.constraints import Mask
from ..storage.trial import Trial
from .direction import has_channels, paid_by
from .function import Axis, axes, cell_of, is_active, value_at
from .rows import ARMS, LIMITS, METRICS, OPTIONAL, REMARKS, STD, STDS, STEPS, VALUES
from .transaction import Transaction
from .visits import Seen

ENDINGS = (".csv", ".html")
MOST_DIGITS = 12  # as many as a decoded value has
AS_SURE = 0.99  # least share of the probability of the chosen point with which a rounded one satisfies constraints
MOST_TRIED = 256  # ways to round a point up and down, of which those inside of the limits are kept
MOST_JUDGED = 16  # of these, by the constraints
PENDING = "The trials are pending: a sheet without a count is of those."
RESERVED = {*OF_TRIALS, *REWARDS, *LOSSES, *ARMS, REMARKS, SHEET} - {STEPS}  # names of columns that are no parameter

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
@page {{ size: A4 landscape; margin: 12mm; }}
body {{ font: 11pt/1.4 sans-serif; color: #000; background: #fff; margin: 1em; }}
h1 {{ font-size: 14pt; margin: 0 0 .2em; }} p {{ margin: 0 0 .8em; }}
table {{ border-collapse: collapse; width: 100%; }} thead {{ display: table-header-group; }}
tr {{ break-inside: avoid; }} td {{ height: 2.2em; }}
th, td {{ border: 1px solid #000; padding: .2em .5em; text-align: right; }} td {{ white-space: nowrap; }}
td.text {{ white-space: normal; overflow-wrap: anywhere; min-width: 6em; }}
th {{ background: #eee; }} th.wide {{ text-align: left; }} .empty {{ min-width: 5em; }} .wide {{ width: 30%; }}
</style></head><body><h1>{title}</h1>
<p>Write what came out. Write failed if the point does not work, abandoned if an accident ended the trial.
Where you set another value than printed, strike it out and write yours.</p>
<table><thead><tr>{head}</tr></thead><tbody>
{body}
</tbody></table></body></html>
"""


@final
@dataclass(frozen=True, repr=False)
class Sheet:
    """Trials to run by hand, as a table to print or to fill in.

    Attributes:
        name: of the study.
        trials: the pending trials, by number.
        columns: names of the columns.
        rows: cells of each trial. Those to fill in are empty.
        limits: names of the constraints.
    """

    name: str
    trials: list[Trial]
    columns: list[str]
    rows: list[list[Any]]
    limits: list[str]

    def __repr__(self) -> str:
        return f"Sheet({many(len(self.trials), 'trial')} of study {self.name!r})"

    def _repr_html_(self) -> str:
        return self.to_html()

    def write(self, path: str | Path, *, decimal: str = ".") -> Path:
        """Writes the sheet to a file and returns its path.

        Args:
            path: of a new file that ends in .csv, or in .html for a page to print.
            decimal: "." or ",". With a comma the cells of a CSV file are separated by semicolons, as spreadsheets of
                countries with decimal commas want it.
        """
        path = _new_place(path)
        text = self.to_html(decimal=decimal) if path.suffix.lower() == ".html" else self.to_csv(decimal=decimal)
        try:
            encoding = "utf-8-sig" if path.suffix.lower() == ".csv" else "utf-8"
            with path.open("x", encoding=encoding, newline="") as file:
                file.write(text)
        except OSError as error:
            raise InvalidInput(f"{path} could not be written: {error.strerror}. {PENDING}") from error
        return path

    def to_csv(self, *, decimal: str = ".") -> str:
        """Returns the sheet as CSV."""
        file, comma = StringIO(newline=""), one_of("decimal", decimal, [".", ","]) == ","
        write = csv_writer(file, separator=";" if comma else ",")
        write([self._title(column) for column in self.columns])
        for row in self.rows:
            write([_text(cell, decimal) if isinstance(cell, float) else cell for cell in row])
        return file.getvalue()

    def to_html(self, *, decimal: str = ".") -> str:
        """Returns the sheet as a page to print. It needs no other file."""
        one_of("decimal", decimal, [".", ","])
        shown_columns = [column for column in self.columns if column != SHEET]
        first = next(i for i, column in enumerate(shown_columns) if column in REWARDS or column.startswith(VALUES))
        kinds = [
            "" if i < first else ' class="wide"' if column == REMARKS else ' class="empty"'
            for i, column in enumerate(shown_columns)
        ]
        rows = ("".join(_html_cell(cell, decimal) for cell in row[: len(shown_columns)]) for row in self.rows)
        return PAGE.format(
            title=f"{escape(self.name)}, {many(len(self.trials), 'trial')}",
            head="".join(
                f"<th{kind}>{escape(self._title(name).removeprefix(VALUES)).replace('_', '_<wbr>')}</th>"
                for name, kind in zip(shown_columns, kinds, strict=True)
            ),
            body="\n".join(f"<tr>{row}</tr>" for row in rows),
        )

    def _title(self, column: str) -> str:
        """Returns what stands above a column (see `rows.without_titles`)."""
        if column.startswith(LIMITS):
            return f"{column} ({self.limits[int(column.removeprefix(LIMITS))]}: at most 0 if met)"
        return f"{column} (optional)" if column in OPTIONAL or column.startswith(STDS) else column


def _text(cell: Any, decimal: str) -> str:
    return repr(cell).removesuffix(".0").replace(".", decimal) if isinstance(cell, float) else str(cell)


def _html_cell(cell: Any, decimal: str) -> str:
    """Returns a cell of a page. Text may be broken between lines, and a number may not."""
    kind = ' class="text"' if isinstance(cell, str) and cell else ""
    return f"<td{kind}>{escape(_text(cell, decimal))}</td>"


def check_form(path: str | Path | None, digits: int, decimal: str) -> None:
    """Raises an error, before anything is asked for, if a sheet cannot be made so (see `Study.sheet`)."""
    integer("digits", digits, low=1, high=MOST_DIGITS)
    if one_of("decimal", decimal, [".", ","]) == "," and path is None:
        raise InvalidInput("`decimal` is of a file, and `path` is missing: `write` and `to_csv` of a sheet take it.")
    if path is not None:
        _new_place(path)


def _new_place(path: str | Path) -> Path:
    """Returns the path of a sheet to write, or raises an error if none can be written there, or something is there."""
    place = check_place("sheet", path, ENDINGS)
    if kind_of(place):
        raise InvalidInput(
            f"The sheet {shown(str(path))} is there already. It is not overwritten, since what people wrote on it "
            "would be lost.",
            advice="Read it first, by `nilregret import` or `add_from`, and name another file.",
        )
    return place


def sheet_of(name: str, policy: Any, trials: Sequence[Trial], limits: list[str]) -> Sheet:
    """Returns the sheet of some trials.

    Args:
        name: of the study.
        policy: of the study.
        trials: of the sheet.
        limits: names of the constraints.
    """
    domain, context, objectives = policy.domain, policy.context, policy.objective_names
    named = space_of(domain) is not None
    columns: list[tuple[str, Domain, Axis]] = []
    for axis in axes(domain):
        taken = axis.name.casefold() in RESERVED or "." in axis.name
        own = f"parameters.{axis.name}" if taken else axis.name
        columns.append((own if named else f"point.{axis.columns.start}", domain, axis))
    for axis in [] if context is None else axes(context):
        own = axis.columns.start if space_of(context) is None else axis.name
        columns.append((f"context.{own}", context, axis))
    arm = ["arm"] * (isinstance(domain, Arms) and not named)
    value = REWARDS[1] if REWARDS[1] not in {axis.name for _, _, axis in columns} else REWARDS[0]
    values, stds = [value], [STD]
    if len(objectives) > 1:
        values, stds = ([f"{prefix}{each}" for each in objectives] for prefix in (VALUES, STDS))
    costs = [] if (cost := paid_by(policy)) is None else [f"{METRICS}{cost}"]
    noise = stds * (not why_one_noise(policy))
    empty = [*values, *(f"{LIMITS}{j}" for j in range(len(limits))), *costs, *noise, REMARKS]
    rows = []
    for trial in trials:
        at = {True: (trial.point, trial.parameters), False: (trial.context, trial.context_parameters)}
        cells = [cell_of(of, *at[of is domain], axis) for _, of, axis in columns]
        rows.append([trial.number, *[trial.arm for _ in arm], *cells, *[""] * len(empty), name])
    return Sheet(name, list(trials), ["number", *arm, *(name for name, *_ in columns), *empty, SHEET], rows, limits)


# -- rounding --------------------------------------------------------------------------------------------------------


def ask_rounded(calls: Transaction, seen: Seen | None, lease: float | None, digits: int) -> Trial:
    """Records the next trial, at values that a person can set, and returns the trial.

    A rounded point is put into the queue and taken at once. So the record says that the point was named. What `enqueue`
    named stays as it is.
    """
    return calls.ask(seen, None, lease, rounding=partial(_rounding, calls, digits))


def _rounding(
    calls: Transaction, digits: int, chosen: Array | None, context: Array | None, given: Pinned | None
) -> Array | None:
    """Returns what the policy chose with rounded numbers, but for given columns (see `Rounding`), or None."""
    state = calls.copy_state()
    if state is None:
        return None
    decided = chosen
    if chosen is None:
        chosen = calls.preview(context).point
    others = [trial.point for trial in calls.trials]
    limited = has_channels(state.policy) and state.policy.constraint_count > 0
    sure = partial(_as_sure, state.settled(), chosen, context) if limited else None
    columns = None if given is None else given.columns
    point = rounded(state.policy.domain, chosen, others, digits, sure, columns)
    if np.array_equal(point, chosen):
        return None
    if decided is None:
        calls.enqueue([point])
    return frozen(point.copy())


def _as_sure(state: State, chosen: Array, context: Array | None, points: Array) -> Mask:
    """Returns which points `(n, d)` satisfy the constraints as surely as the one that the policy chose, `(n,)`.

    A point next to a certified one may have no certificate (`Safe`), so each needs its own. The state must be settled.
    """
    before, *after = state.certain(np.stack([chosen, *points]), context)
    least = 1.0 if state.policy.constraints.certifies else AS_SURE * before  # type: ignore[union-attr]
    return np.asarray(after) >= least


def rounded(
    domain: Domain, point: Array, others: Sequence[Array], digits: int, fits: Callable[[Array], Mask] | None = None,
    given: Mask | None = None,
) -> Array:  # fmt: skip
    """Returns the nearest point `(d,)` with few digits that keeps the limits and was not tried, or the point itself.

    A range is rounded to the power of ten at or below 10**-digits of the range, a logarithmic one to that many digits.
    More digits are taken if limits or earlier trials leave no such point, or if none fits.

    Args:
        domain: of the points.
        point: the one to round.
        others: points that were tried.
        digits: at first.
        fits: returns which points `(n, d)` may be taken, `(n,)`. None takes all.
        given: columns that stay as they are, `(d,)`, or None.
    """
    known = {other.tobytes() for other in others}
    if isinstance(domain, Arms) or point.tobytes() in known:
        return point
    for more in range(digits, MOST_DIGITS + 1):
        tried = islice(_roundings(domain, point, more, given), MOST_TRIED)
        new = (each for each in tried if len(keeping_limits(domain, each[None])) and each.tobytes() not in known)
        found = list(islice(new, 1 if fits is None else MOST_JUDGED))
        if found and (fits is None or (judged := fits(np.stack(found))).any()):
            return found[0 if fits is None else int(judged.argmax())]
    return point


def is_rounded(domain: Domain, exact: Array, point: Array) -> bool:
    """Returns whether a point `(d,)` may be what a sheet made of an exact one."""
    each = (islice(_roundings(domain, exact, digits, None), MOST_TRIED) for digits in range(1, MOST_DIGITS + 1))
    return not isinstance(domain, Arms) and any(np.array_equal(found, point) for found in chain.from_iterable(each))


def _roundings(domain: Any, point: Array, digits: int, given: Mask | None) -> Iterator[Array]:
    """Yields points with so many digits, the nearest first.

    Of each equality, the parameter with the largest share is what the others leave, and so has as many decimals.
    """
    real = [axis for axis in axes(domain) if axis.parameter.real and is_active(domain, point, axis)]
    real = [axis for axis in real if given is None or not given[axis.columns.start]]
    at = [value_at(domain, point, axis) for axis in real]
    units = [_unit(axis, value, digits) for axis, value in zip(real, at, strict=True)]
    each = [_numbers(axis, value, unit) for axis, value, unit in zip(real, at, units, strict=True)]
    if isinstance(domain, Space):
        pairs = zip(real, each, strict=True)
        each = [[axis.parameter.encode(value)[0] for value in values] for axis, values in pairs]
    columns = [axis.columns.start for axis in real]
    equal = None if domain.limits is None else domain.limits.equalities
    rest, finest = list[Axis](), min(units, default=Decimal(1))
    if equal is not None:
        from scipy.linalg import qr  # slow to import, and only equalities need it

        free = np.isin(np.arange(len(point)), columns)
        left = qr(equal[0] * free, mode="r", pivoting=True)[1][: len(equal[0])]
        rest = [axis for axis, column in zip(real, columns, strict=True) if column in left]
        bound = (unit for unit, column in zip(units, columns, strict=True) if equal[0][:, column].any())
        finest = min(bound, default=finest)
        if given is not None and equal[0][:, given].any():  # What numbers of any length leave has as many digits.
            finest = finest.scaleb(digits - MOST_DIGITS)
        each = [values[: 1 if axis in rest else None] for axis, values in zip(real, each, strict=True)]
    for values in product(*each):
        found = point.copy()
        found[columns] = values
        if equal is not None and rest:
            _balance(domain, found, rest, equal, finest)
        yield domain.snap(found[None])[0]


def _balance(domain: Space, point: Array, rest: list[Axis], equal: tuple[Array, Array], unit: Decimal) -> None:
    """Sets some coordinates of a point to what the others leave, in whole units (see `Limits.equalities`)."""
    columns = [axis.columns.start for axis in rest]
    point[columns] = 0.0
    point[columns] = np.linalg.lstsq(equal[0][:, columns], equal[1] - equal[0] @ point, rcond=None)[0]
    for axis, column in zip(rest, columns, strict=True):
        value = Decimal(repr(value_at(domain, point, axis))) / unit
        point[column] = axis.parameter.encode(float(value.to_integral_value() * unit))[0]


def _unit(axis: Axis, value: float, digits: int) -> Decimal:
    """Returns the power of ten to which a value is rounded."""
    low, high, log = axis.parameter.low, axis.parameter.high, axis.parameter.log  # type: ignore[union-attr]
    return Decimal(10) ** (math.floor(math.log10(value if log else high - low)) - digits + log)


def _numbers(axis: Axis, value: float, unit: Decimal) -> list[float]:
    """Returns the multiples of the unit below and above a value, inside of the range, the nearer one first."""
    low, high = axis.parameter.low, axis.parameter.high  # type: ignore[union-attr]
    exact = Decimal(repr(value)) / unit
    found = [float(exact.to_integral_value(way) * unit) for way in (ROUND_FLOOR, ROUND_CEILING)]
    inside = sorted({number for number in found if low <= number <= high}, key=lambda number: abs(number - value))
    return inside or [value]
