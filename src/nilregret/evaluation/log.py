"""A log of decisions: contexts, actions, propensities and rewards, checked and in arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, IndexArray, many, shown
from .._utils.dataclass import dataclass, field, replace
from .._utils.logs import AMONG, COUNTED
from .._utils.numerals import exact
from .._utils.tables import REWARDS, Table
from ..domains.domain import arms_by_option
from ..errors import InvalidInput
from ..study.visits import units_of

if TYPE_CHECKING:
    from ..study.study import Study


ACTION, PROPENSITY = ("action", "arm"), ("propensity",)
IDS = ("id", "event", "event_id", "decision_id", "number")
UNIT, KEPT, NUMBER = "unit", "kept", "number"  # who visits, and the number of the decision that a row repeats
OTHERS = {*IDS, *ACTION, AMONG, COUNTED, UNIT, KEPT}  # columns that mean something and are not read
WAITING = "still waited for, answered or not"  # the reason for which young decisions are left out
ROUNDING = 1e-6  # by which a propensity of 1 may exceed it in a file of single precision
NEEDED = (
    "A log has the columns action, propensity and reward, and context or context.NAME where decisions had contexts."
)
NO_PROPENSITIES = (
    "No row of the log has a propensity, the probability with which its action was chosen. Without it nothing is "
    "certain of other policies."
)
RECORD = (
    "A study records them if it is made with `nr.Study(policy, propensities=True)`. They are of use if the policy "
    "draws or has a floor, such as `explore=nr.slots.Uniform(0.1)`. `estimator='model'` takes the reward model alone."
)


@final
@dataclass(frozen=True, kw_only=True)
class Log:
    """The decisions of a log that have a propensity, n of them, among N actions.

    Attributes:
        actions: names of the actions, N of them. Probabilities are in this order.
        taken: action of each row, as an index, `(n,)`.
        propensities: probability with which it was chosen, within (0, 1], `(n,)`.
        rewards: NaN while there is none, `(n,)`.
        contexts: what a policy is given: an array `(n, c)`, a list, or None.
        available: whether an action could be chosen, `(n, N)`, or None if all always could.
        left_out: numbers of rows that are not among the n, by reason.
        least: lowest propensity of each action that there can be by design, `(N,)`, 0 if nothing is known. Or None.
        unread: names of columns that were of no use.
        study: where the log comes from, or None for other logs.
        recorded: True if the record of a study knows which actions could be chosen in each row.
        units: a number for each row, the same for rows of one unit, `(n,)`, or None if all rows are of different units.
        draws: a number for each row, the same for a decision and those that keep its arm (`Study(sticky=)`), `(n,)`,
            or None if no row keeps one. A row that keeps an arm has the context and the actions of that decision.
        unweighed: rows with a reward and without a propensity, from which the reward model alone learns, or None.
    """

    actions: tuple[Any, ...]
    taken: IndexArray
    propensities: Array
    rewards: Array
    contexts: Any
    available: npt.NDArray[np.bool_] | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    least: Array | None = None
    unread: tuple[str, ...] = ()
    study: Study | None = None
    recorded: bool = False
    units: IndexArray | None = None
    draws: IndexArray | None = None
    unweighed: Log | None = None

    def __len__(self) -> int:
        return len(self.taken)

    @property
    def weighed(self) -> bool:
        """True if some row has a propensity. Without any, the reward model alone says something of a policy."""
        return not bool(np.isnan(self.propensities).all())

    @cached_property
    def offered(self) -> Array:
        """Number of actions that could be chosen in each row, `(n,)`."""
        if self.available is None:
            return np.full(len(self), float(len(self.actions)))
        return np.asarray(self.available.sum(axis=1), dtype=np.float64)

    @property
    def floored(self) -> bool:
        """True if every action has a lowest propensity by design."""
        return self.least is not None and bool(self.least.all())

    @cached_property
    def code(self) -> dict[Any, int]:
        """Index of each action by name (see `codes_of`)."""
        return codes_of(self.actions, self.study)

    def context(self, row: int) -> Any:
        """Returns the context of a row, or None."""
        return None if self.contexts is None else self.contexts[row]

    def only(self, rows: npt.NDArray[np.bool_], reason: str) -> Log:
        """Returns some of the rows.

        Args:
            rows: which of them, `(n,)`.
            reason: why the others are left out.
        """
        if rows.all():
            return self
        out = dict(self.left_out)
        out[reason] = out.get(reason, 0) + int((~rows).sum())
        return replace(
            self, taken=self.taken[rows], propensities=self.propensities[rows], rewards=self.rewards[rows],
            contexts=_some(self.contexts, rows), left_out=out,
            available=None if self.available is None else self.available[rows],
            units=None if self.units is None else self.units[rows],
            draws=None if self.draws is None else self.draws[rows],
        )  # fmt: skip


def _some(contexts: Any, rows: npt.NDArray[np.bool_] | IndexArray) -> Any:
    if contexts is None:
        return None
    at = np.flatnonzero(rows) if rows.dtype == bool else rows
    return contexts[at] if isinstance(contexts, np.ndarray) else [contexts[i] for i in at]


def log_of_table(
    table: Table, actions: Sequence[Any] | None = None, rewarded: str | None = None, *, weighed: bool = True
) -> Log:
    """Returns the log in a table.

    Args:
        table: of decisions, with a row for each.
        actions: names of all actions, in the order of a policy's probabilities. None for those found, sorted.
        rewarded: name of the column that is the reward, or None for that of its usual names.
        weighed: False if there need be no column of propensities.

    Raises:
        InvalidInput: a column is missing, or a value cannot be used.
    """
    table = replace(table, first=0)
    for name in filter(None, map(table.find, IDS)):
        refuse_repeated(name, table.columns[name])
    action = column(table, ACTION)
    propensity = column(table, PROPENSITY) if weighed else table.find(*PROPENSITY)
    answers = table if rewarded is None else table.flat()  # Metrics may be dicts in the rows.
    reward, loss = answers.reward() if rewarded is None else (column(answers, (rewarded,)), False)
    if loss:
        raise InvalidInput(
            f"{table.named}: `{reward}` is a loss by its name, and policies are compared by their rewards. Give a "
            "column `reward`, which is minus the loss, and the range of rewards.",
            advice="Such as `reward_range=(-1, 0)`.",
        )
    if not len(table):
        raise InvalidInput(f"{table.called} has no decisions, so nothing can be evaluated.")
    among = _among(table)
    named = actions if actions is not None or among is None else _all_of(among, table.values(action))
    codes, names = coded(table.values(action), named)
    unread = table.unread({action, propensity or action, reward, *([] if rewarded is None else REWARDS)})
    chances = np.full(len(codes), np.nan) if propensity is None else table.numbers(propensity)
    unit = table.find(UNIT)
    log = Log(
        actions=names, taken=codes, propensities=chances, rewards=answers.numbers(reward),
        contexts=contexts_of(table), unread=tuple(name for name in unread if name.casefold() not in OTHERS),
        available=None if among is None else _available(among, names),
        units=None if unit is None else units_of(table.values(unit)),
    )  # fmt: skip
    return checked(_kept(log, table))


def _kept(log: Log, table: Table) -> Log:
    """Returns the log with the contexts and actions of the decisions that rows repeat, by the column `kept`."""
    kept = table.find(KEPT)
    repeated = np.full(len(log), np.nan) if kept is None else table.numbers(kept)
    if np.isnan(repeated).all():
        return log
    number = table.find(NUMBER)
    if number is None:
        raise InvalidInput(
            f"{table.named}: `{kept}` names the decisions whose action is kept by their numbers, and there is no "
            f"column `{NUMBER}`. Usually columns of an export were left out: keep `{NUMBER}`, or leave out `{kept}`."
        )
    draws = np.where(np.isnan(repeated), table.numbers(number), repeated)
    draws = np.where(np.isnan(draws), -1.0 - np.arange(len(log)), draws)
    _, first, codes = np.unique(draws, return_index=True, return_inverse=True)
    of = first[codes]
    return replace(
        log, draws=codes, available=None if log.available is None else log.available[of],
        contexts=_some(log.contexts, of),
    )  # fmt: skip


def _among(table: Table) -> list[Sequence[Any] | None] | None:
    """Returns the actions that could be chosen in each row, or None if no row says it."""
    column = table.find(AMONG)
    cells = () if column is None else table.values(column)
    found: list[Sequence[Any] | None] = [each if isinstance(each, list | tuple) else None for each in cells]
    return found if any(found) else None


def _all_of(among: Sequence[Sequence[Any] | None], taken: Sequence[Any]) -> list[Any]:
    """Returns all actions, numbers in order, and others as they come."""
    names = list(dict.fromkeys(name for row, each in enumerate(among) for name in (each or (taken[row],))))
    return sorted(names) if all(isinstance(name, int) for name in names) else names


def _available(among: Sequence[Sequence[Any] | None], names: Sequence[Any]) -> npt.NDArray[np.bool_] | None:
    """Returns whether each action could be chosen, `(n, N)`, or None if all always could."""
    code = {name: i for i, name in enumerate(names)}
    found = np.zeros((len(among), len(names)), dtype=bool)
    for row, listed in enumerate(among):
        found[row, [code[name] for name in listed or names if name in code]] = True
    return None if found.all() else found


def checked(log: Log) -> Log:
    """Returns the rows of a log that have a propensity, or raises an error about a value that cannot be used."""
    p, wrong = log.propensities, np.flatnonzero(np.abs(log.rewards) > LARGEST_REWARD)
    if len(wrong):
        raise InvalidInput(
            f"Row {wrong[0]} has the reward {exact(log.rewards[wrong[0]])}: it must be finite, or missing."
        )
    wrong = np.flatnonzero((p <= 0.0) | (p > 1.0 + ROUNDING))
    if len(wrong):
        raise InvalidInput(
            f"Row {wrong[0]} has the propensity {exact(p[wrong[0]])}: it must lie in (0, 1]. It is the probability "
            "with which the action of the row was chosen, so it cannot be 0. Often it is that of another action, or a "
            "score."
        )
    known = ~np.isnan(p)
    if not len(p):
        raise InvalidInput("The log has no decisions, so nothing can be evaluated.")
    if not known.any():
        return log
    alone = ~known & ~np.isnan(log.rewards)
    others = replace(log, available=None, left_out={}).only(alone, "") if alone.any() else log.unweighed
    return replace(log, propensities=np.minimum(p, 1.0), unweighed=others).only(known, "without a propensity")


def column(table: Table, names: Sequence[str]) -> str:
    """Returns the column of one of these names, or raises an error."""
    column = table.find(*names)
    if column is None:
        raise InvalidInput(f"The log has no column {names[0]}: {table.named}. {NEEDED}")
    return column


def refuse_repeated(name: str, values: Any) -> None:
    """Raises an error if two rows have one id: a decision that counts twice makes intervals too narrow."""
    seen: dict[Any, int] = {}
    for row, value in enumerate(values):
        key = value if isinstance(value, Hashable) else repr(value)
        if key is None or key == "" or key != key:
            continue
        if key in seen:
            raise InvalidInput(
                f"Rows {seen[key]} and {row} have the same {name}, {shown(value)}: each decision must stand in the log "
                "once, or it would count twice. Often a log was joined with several rewards, or read twice. A column "
                "that names something else, such as users, needs another name."
            )
        seen[key] = row


def codes_of(actions: Sequence[Any], study: Study | None) -> dict[Any, int]:
    """Returns the index of each action by name, number as a text ("3", as JSON has keys), and option of a study.

    Options name arms if there is one parameter. A text that fits two actions names none.
    """
    texts: dict[str, set[int]] = {}
    for i, action in enumerate(actions):
        if not isinstance(action, str):
            texts.setdefault(str(action), set()).add(i)
    for option, arms in ({} if study is None else arms_by_option(study.policy.domain)).items():
        texts.setdefault(option, set()).update(arms)
    code: dict[Any, int] = {text: places.pop() for text, places in texts.items() if len(places) == 1}
    return code | {action: i for i, action in enumerate(actions)}


def coded(taken: Any, actions: Sequence[Any] | None) -> tuple[IndexArray, tuple[Any, ...]]:
    """Returns the actions of the rows as indices, and the names of all."""
    if not (isinstance(taken, np.ndarray) and taken.ndim == 1 and taken.dtype.kind in "fiu"):
        taken = _names(list(taken))
        kinds = set(map(type, taken))
        taken = np.array(taken, dtype=object if str in kinds and len(kinds) > 1 else None)  # 1 is not "1".
    values = np.asarray(taken)
    if values.dtype.kind == "f" and np.array_equal(values, np.round(values)):  # A column with a gap, or of a CSV.
        values = values.astype(np.int64)
    if values.dtype.kind in "iuU" and actions is None:
        names, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.intp), tuple(names.tolist())
    listed = _names(values.tolist())
    names_in_order = list(dict.fromkeys(listed)) if actions is None else list(actions)
    if actions is None:
        names_in_order.sort(key=lambda name: (type(name).__name__, name))
    code = {name: i for i, name in enumerate(names_in_order)}
    if len(code) < len(names_in_order):
        raise InvalidInput(f"`actions` names an action twice: {shown(names_in_order)}.")
    for row, name in enumerate(listed):
        if name not in code:
            raise InvalidInput(f"Row {row} has the action {shown(name)}, which is none of {shown(names_in_order)}.")
    return np.fromiter((code[name] for name in listed), np.intp, len(listed)), tuple(names_in_order)


def _names(actions: list[Any]) -> list[Any]:
    """Returns names of actions, or raises an error if one is missing or cannot name anything."""
    for row, name in enumerate(actions):
        if name is None or not isinstance(name, Hashable) or name != name:
            raise InvalidInput(f"Row {row} has the action {shown(name)}: it must be a number or a text.")
    return actions


def contexts_of(table: Table) -> Any:
    """Returns the contexts: rows of numbers, dictionaries by name, the values of one column, or None."""
    one = table.find("context")
    if one is not None:
        found = table.values(one)
        return found if isinstance(found, np.ndarray) and found.dtype.kind in "fiu" else list(found)
    named = {name.removeprefix("context."): name for name in table.columns if str(name).startswith("context.")}
    if not named:
        return None
    if all(name.isdecimal() for name in named):
        return np.column_stack([table.numbers(named[name]) for name in sorted(named, key=int)])
    rows = zip(*map(table.values, named.values()), strict=True)
    return [dict(zip(named, row, strict=True)) for row in rows]


def refuse_outside(log: Log, reward_range: tuple[float, float]) -> None:
    """Raises an error if a reward lies outside the range."""
    low, high = reward_range
    wrong = np.flatnonzero((log.rewards < low) | (log.rewards > high))
    if len(wrong):
        least, most = np.nanmin(log.rewards), np.nanmax(log.rewards)
        raise InvalidInput(
            f"{many(len(wrong), 'reward')} of the log lie outside [{exact(low)}, {exact(high)}], such as "
            f"{exact(log.rewards[wrong[0]])} in row {wrong[0]}: they go from {exact(least)} to {exact(most)}. "
            "Intervals need the range of all rewards that could come, not only of those that came.",
            advice="Say it by `reward_range=(lowest, highest)`.",
            topic="reward_range",
        )


MOST_COLUMNS = 200  # The reward model solves systems of this size.
MOST_LEVELS = 32  # values of a category that have a column each


def features_of(contexts: Any, count: int) -> Array:
    """Returns the columns of numbers that describe contexts, `(n, c)`.

    Numbers are taken as they are. Each frequent value of a text has a column of its own. Missing values are the mean.

    Args:
        contexts: `(n, c)`, or a list of numbers, texts, lists and dictionaries, or None.
        count: n.
    """
    if contexts is None:
        return np.zeros((count, 0))
    if isinstance(contexts, np.ndarray) and contexts.dtype.kind in "fiub":
        return _filled(contexts.reshape(count, -1).astype(np.float64)[:, :MOST_COLUMNS])
    numbers: dict[str, list[tuple[int, float]]] = {}
    levels: dict[str, list[tuple[int, Any]]] = {}
    for row, context in enumerate(contexts):
        for name, value in _entries("", context):
            if isinstance(value, Real):
                numbers.setdefault(name, []).append((row, float(value)))
            elif value is not None:
                levels.setdefault(name, []).append((row, value))
    columns = []
    for _, cells in sorted(numbers.items(), key=lambda item: -len(item[1]))[:MOST_COLUMNS]:
        column = np.full(count, np.nan)
        rows, values = zip(*cells, strict=True)
        column[list(rows)] = values
        columns.append(column)
    for texts in levels.values():
        for level, _ in Counter(value for _, value in texts).most_common(MOST_LEVELS):
            column = np.zeros(count)
            column[[row for row, value in texts if value == level]] = 1.0
            columns.append(column)
    return _filled(np.column_stack(columns[:MOST_COLUMNS])) if columns else np.zeros((count, 0))


def _entries(name: str, context: Any) -> Iterator[tuple[str, Any]]:
    """Yields the numbers and texts in a context, with their names."""
    if isinstance(context, Mapping):
        for key, value in context.items():
            yield from _entries(f"{name}.{key}", value)
    elif isinstance(context, np.ndarray) or (isinstance(context, Sequence) and not isinstance(context, str | bytes)):
        for i, value in enumerate(context):
            yield from _entries(f"{name}.{i}", value)
    else:
        yield name, context


def _filled(columns: Array) -> Array:
    """Returns columns with their means in place of missing and infinite values."""
    finite = np.isfinite(columns)
    if finite.all():
        return columns
    known = np.where(finite, columns, 0.0)
    means = known.sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    return np.where(finite, columns, means)
