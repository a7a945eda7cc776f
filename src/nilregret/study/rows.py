"""Rows of a table as trials: the point, the context and the answer of each, checked."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, final

import numpy as np

from .._utils.checks import LARGEST_WHOLE, Array, frozen, number, number_in, shown
from .._utils.dataclass import replace
from .._utils.logs import COUNTED
from .._utils.numerals import exact
from .._utils.tables import OUTCOMES, REWARDS, SHEET, Table, is_missing
from ..domains.domain import Arms, Domain, Space, arms_by_option, sides, space_of
from ..domains.parameters import Choice, Int, Parameter, option_place, option_texts
from ..errors import InvalidInput, NoRegretError
from ..policy.engines import Decision
from ..slots.costs import SECONDS
from ..storage.trial import Trial
from .direction import Goal, paid_by
from .function import axes, is_recorded
from .imported import ABANDONED, ROUNDED, Imported, Links, Steps, is_at, rounding
from .inputs import Inputs
from .play_rewards import Rewards
from .visits import Asked, asked_of

NUMBER, ASKED, PROPENSITY, STD = "number", "asked_at", "propensity", "std"
EVENT, UNIT, FACTS = "event", "unit", "facts."
METRICS, VALUES, STDS, LIMITS = "metrics.", "values.", "stds.", "constraints."
STATE, REASON, STEPS, STOPPED = "state", "reason", "steps", "stopped"
REMARKS = "remarks"  # A column of a sheet (`Study.sheet`).
OPTIONAL = (STD, f"{METRICS}{SECONDS}", REMARKS)  # Columns of a sheet that may stay empty, as `stds.NAME` may.
TITLE = re.compile(r"(constraints\.\d+) \(.*\)$|(std|stds\..+|metrics\.seconds|remarks) \(optional\)$")
ARMS = ("arm", "action", "arm_name")
CHANCE = (
    "It is the probability with which the action of the row was chosen, so it cannot be 0. Often it is that of another "
    "action, or a score."
)
UNIT_IN_TITLE = re.compile(r"(.+?)\s*(\[[^\[\]]*\]|\([^()]*\))$")
UNRECORDED = "Nothing was recorded."


def in_row(error: NoRegretError, row: int, table: Table) -> NoRegretError:
    """Returns an error that names the row of a table."""
    told = type(error)(f"{table.at(row - table.first)}: {error.what}", advice=error.advice, topic=error.topic)
    return told if table.piece else unrecorded(told)


def unrecorded(error: NoRegretError) -> NoRegretError:
    """Returns an error that says that nothing was recorded."""
    said = "othing was re" in error.what  # Recorded or read.
    return error if said else type(error)(f"{error.what} {UNRECORDED}", advice=error.advice, topic=error.topic)


def without_titles(table: Table) -> Table:
    """Returns a sheet with the names of its columns in place of what stands above them, and any other table."""
    named = {TITLE.sub(r"\1\2", name): column for name, column in table.columns.items()}
    return table if table.find(SHEET) is None else replace(table, columns=named)


def without_units(table: Table, known: Collection[str]) -> tuple[Table, dict[str, str]]:
    """Returns a table whose columns have no unit in brackets behind a known name, and the new names by the old ones.

    Args:
        table: flat.
        known: names of columns. Of two columns that are one without their units, both stay as they are.
    """
    matches = {name: UNIT_IN_TITLE.match(name) for name in table.columns if name not in known}
    bare = {name: match[1] for name, match in matches.items() if match}
    names = Counter([*table.columns, *bare.values()])
    found = {old: new for old, new in bare.items() if (new in known or new.casefold() in REWARDS) and names[new] == 1}
    return replace(table, columns={found.get(name, name): cells for name, cells in table.columns.items()}), found


@final
class Reader:
    """Reads the rows of a table as trials.

    Args:
        table: flat.
        inputs: checks of the study.
        goal: of the study.
        names: of arms, by number.
        trials: of the study if a space of it has changed, else none.

    Attributes:
        reward: the column of rewards.
        exported: True if the table is an export of a study.
        units: names of columns without the unit in the table's own ones, by these.
    """

    def __init__(
        self, table: Table, inputs: Inputs, goal: Goal, names: Mapping[int, str], trials: Sequence[Trial] = ()
    ) -> None:
        self._domain: Any = inputs.policy.domain
        self._context = inputs.policy.context
        self._inputs, self._names, self._trials = inputs, names, trials
        table, self.units = without_units(table, self._known_names())
        self._table = table
        self._sides = sides(self._domain, self._context)
        self._options = arms_by_option(self._domain)
        self._columns: dict[str, str | None] = {}  # The column of each entry that was looked for.
        named = [name for space in self._spaces() for name in space.parameters]
        self._values = self._columns_of_values(named, goal)
        self.reward = next(iter(self._values.values()))
        self._limits = self._numbered("constraints")
        self._metrics = [name for name in table.columns if name.startswith(METRICS)]
        facts = [name for name in table.columns if name.startswith(FACTS)]
        self._facts = {name.removeprefix(FACTS): table.values(name) for name in facts}
        self.exported = table.find(NUMBER) is not None and table.find(ASKED) is not None
        self._sheet = table.find(SHEET)
        own = STEPS in named and table.find(f"parameters.{STEPS}") is None  # The column is the parameter.
        self._curves = None if own else table.find(STEPS)
        self._by_number = False  # Whether only numbers say of which trials the rows are.
        self._where = self._reader_of_points()

    def _known_names(self) -> set[str]:
        policy = self._inputs.policy
        named = [name for space in self._spaces() for name in space.parameters]
        objectives, limits = policy.objective_names, (f"{LIMITS}{j}" for j in range(policy.constraint_count))
        many = [*objectives, *(f"{VALUES}{name}" for name in objectives)] * (len(objectives) > 1)
        contexts = [f"context.{name}" for name in named]
        return {*named, *contexts, *(f"parameters.{name}" for name in named), *limits, *many, NUMBER, STD, REMARKS}

    def _columns_of_values(self, named: Sequence[str], goal: Goal) -> dict[str, str]:
        """Returns the column of each objective by name."""
        table, names = self._table, self._inputs.policy.objective_names
        if len(names) > 1:
            return {name: self._column_of(VALUES, name, "" if name in named else name) for name in names}
        column, loss = table.reward(named)
        if loss and goal == "maximize":
            raise InvalidInput(
                f"{table.named}: `{column}` is a loss by its name, and the study maximises rewards. Nothing was "
                "recorded. Give a column `reward`, which is minus the loss, or make the study with goal 'minimize'."
            )
        return {names[0]: column}

    def _column_of(self, prefix: str, name: str, bare: str) -> str:
        """Returns the column of an objective: "values.NAME", its number in a list, or its bare name."""
        place = self._inputs.policy.objective_names.index(name)
        found = self._table.find(f"{prefix}{name}", f"{prefix}{place}", *[bare] * bool(bare))
        if found is None:
            wanted = f"one of them must be `{prefix}{name}`, the value of an objective."
            raise InvalidInput(f"{self._table.named}: {wanted}{self._table.misspelt(name)}")
        return found

    def rows(self) -> list[Imported]:
        """Returns the rows that have a reward, a failure or a stop."""
        wanted = (self._ended, self._is_told, self._stopped)
        return [self._row(i) for i in range(len(self._table)) if any(is_wanted(i) for is_wanted in wanted)]

    def _is_told(self, i: int) -> bool:
        return not self._word(i) and any(self._answer(column, i) is not None for column in self._values.values())

    def _answer(self, column: str, i: int) -> float | None:
        cell = self._table.columns[column][i]
        if isinstance(cell, str) and cell.strip() and number_in(cell) is None:
            raise self._table.wrong(column, i, f"a number, {' or '.join(map(repr, OUTCOMES))}")
        return self._table.number(column, i)

    def check_sheet(self, name: str) -> None:
        """Raises an error if the table is a sheet of another study, or has an answer in part."""
        if self._sheet is None:
            return
        for i, cell in enumerate(self._table.columns[self._sheet]):
            if not is_missing(cell) and str(cell) != name:
                raise self._table.wrong(self._sheet, i, f"{name!r}, the study of the sheet")
            if not self._word(i):
                self._check_whole(i)

    def _check_whole(self, i: int) -> None:
        """Raises an error if a row of a sheet has some of the numbers that the study needs, and not all of them."""
        policy = self._inputs.policy
        costs = [f"{METRICS}{cost}"] if (cost := paid_by(policy)) not in (None, SECONDS) else []
        needed = [*self._values.values(), *(f"{LIMITS}{j}" for j in range(policy.constraint_count)), *costs]
        cells = [self._table.number(name, i) if name in self._table.columns else None for name in needed]
        self._check_all(needed, cells, i)
        if costs and cells[-1] is not None and cells[-1] <= 0.0:
            raise self._table.wrong(costs[0], i, "a number above 0")

    def _check_all(self, columns: Sequence[str], cells: Sequence[float | None], i: int) -> None:
        """Raises an error if some of the cells of a row are empty, and not all of them."""
        there, empty = (
            [name for name, cell in zip(columns, cells, strict=True) if (cell is None) is no] for no in (False, True)
        )
        if there and empty:
            error = f"`{there[0]}` has a value and `{empty[0]}` has none: fill in both, or neither."
            raise in_row(InvalidInput(error), i + self._table.first, self._table)

    def _word(self, i: int) -> str:
        """Returns `failed` or `abandoned` if a row has it in place of an answer, else an empty text."""
        cells = (self._table.columns[column][i] for column in self._values.values())
        words = (cell.strip().casefold() for cell in cells if isinstance(cell, str))
        return next((word for word in words if word in OUTCOMES), "")

    def _ended(self, i: int) -> tuple[str, str] | None:
        """Returns how the trial of a row ended without an answer, and why, or None."""
        word, numbered = self._word(i), self._whole(NUMBER, i) is not None
        if not word or (word == ABANDONED and not numbered):  # An accident at a point that was not asked for.
            return None
        if not numbered:
            raise InvalidInput(
                f"{self._table.at(i)} has {word!r} in column {self.reward}, and no number of a trial that could fail. "
                "Failures are of trials that were asked for: ask for the point first, or leave the row out."
            )
        column = self._table.find(REMARKS, REASON)
        said = None if column is None else self._table.columns[column][i]
        return word, word if is_missing(said) else str(said).strip()

    def _steps(self, i: int) -> Steps:
        """Returns step and value of each report in a row, checked. Of a CSV file, they are JSON."""
        if self._curves is None:
            return ()
        found = self._table.columns[self._curves][i]
        try:
            listed = json.loads(found) if isinstance(found, str) and found else found
            pairs = [(step, value) for step, value in ([] if is_missing(listed) else listed)]
        except (TypeError, ValueError, RecursionError):
            raise self._table.wrong(self._curves, i, "a list of pairs, a step and a value each") from None
        whole = [(int(step) if isinstance(step, float) and step.is_integer() else step, value) for step, value in pairs]
        steps = tuple(self._inputs.report(step, value) for step, value in whole)
        if any(later <= step for (step, _), (later, _) in itertools.pairwise(steps)):
            raise self._table.wrong(self._curves, i, "a list of pairs, whose steps grow")
        return steps

    def _stopped(self, i: int) -> str | None:
        """Returns why the trial of a row was stopped, or None."""
        state, reason = (self._table.find(name) for name in (STATE, REASON))
        if state is None or self._table.columns[state][i] != STOPPED or self._is_told(i) or not self._steps(i):
            return None
        said = None if reason is None else self._table.columns[reason][i]
        return STOPPED if is_missing(said) else str(said)

    def unread(self) -> list[str]:
        """Returns the columns that mean nothing to the study."""
        known = {column for column in self._columns.values() if column}
        known |= {*self._values.values(), *self._limits, *self._metrics, self._curves or STEPS}
        known |= {REWARDS[0]} if len(self._values) > 1 else set()  # It repeats the first objective.
        remarks = self._table.find(REMARKS)
        is_read = remarks is None or self._sheet is not None or any(map(self._word, range(len(self._table))))
        return [*self._table.unread(known), *([] if is_read else [str(remarks)])]

    def left_out(self, rows: Sequence[Imported]) -> list[int]:
        """Returns the rows that have neither an answer nor the number of a trial that waits for one.

        Args:
            rows: all rows that have an answer.

        Raises:
            InvalidInput: a row has constraint values and no answer.
        """
        if self.exported or self._table.find(PROPENSITY) is not None:  # Many decisions of a log have no reward.
            return []
        table, taken = self._table, {row.row - self._table.first for row in rows}
        others = [i for i in range(len(table)) if i not in taken]
        for i in others:
            self._check_all([self.reward, *self._limits], [None, *self._limits_of(i)], i)
        return [
            i for i in others
            if self._whole(NUMBER, i) is None
            and any(not is_missing(cells[i]) and str(cells[i]).strip() for cells in table.columns.values())
        ]  # fmt: skip

    def _row(self, i: int) -> Imported:
        ended = self._ended(i)
        try:
            steps, stopped = self._steps(i), self._stopped(i)
            metrics = {name.removeprefix(METRICS): self._table.number(name, i) for name in self._metrics}
            told, reward = self._inputs.observation(
                self._told(i, failed=(ended or stopped) is not None), self._constraints(i), self._std(i),
                {name: value for name, value in metrics.items() if value is not None},
            )  # fmt: skip
            where, under, context = self._place(i)
            return Imported(
                i + self._table.first, where, context, reward, told, self._propensity(i),
                self._whole(NUMBER, i), self._number(ASKED, i), self._sides, self._sheet is not None, ended,
                steps, stopped, self._asked(i, under), self._links(i),
            )  # fmt: skip
        except InvalidInput as error:
            if error.what.startswith((self._table.at(i), self._table.named)):  # of a cell, or of all rows
                raise
            raise in_row(error, i + self._table.first, self._table) from None

    def _place(self, i: int) -> tuple[Decision | None, Any, Array | None]:
        """Returns the point of a row, its context as it stands in the row, and that context as an array."""
        known = self._of_earlier_space(i)
        if known is not None:
            return Decision(known.point, known.arm, explored=False), known.context_parameters, known.context
        if self._by_number:
            return self._where(i), None, None
        under = self._at("context", self._context, i)
        return self._where(i), under, self._inputs.context(under)

    def _of_earlier_space(self, i: int) -> Trial | None:
        """Returns the trial of a row that has the values of the trial, even if the spaces of now do not have them."""
        number = self._whole(NUMBER, i) if self._trials else None
        if number is None or number >= len(self._trials):
            return None
        known, asked = self._trials[number], self._number(ASKED, i)
        if asked is not None and abs(asked - known.asked_at) > rounding(asked):
            return None
        row, under = Decision(known.point, known.arm, explored=False), known.context
        if not isinstance(self._domain, Space):
            row = self._where(i)
        elif not self._has(i, "parameters", self._domain, known.point, known.parameters):
            return None
        if self._context is not None and not isinstance(self._context, Space):
            under = self._inputs.context(self._at("context", self._context, i))
        elif self._context is not None and not self._has(i, "context", self._context, under, known.context_parameters):
            return None
        return known if is_at(row, under, self._sides, known) else None

    def _has(self, i: int, prefix: str, space: Space, point: Any, named: Mapping[str, Any] | None) -> bool:
        """Returns whether a row has the values of a trial in a space. Parameters that are new since may have none."""
        table = self._table
        for axis in axes(space):
            column = self._column(prefix, axis.name)
            cell = None if column is None or is_missing(table.columns[column][i]) else table.columns[column][i]
            if column is not None and cell is not None and not isinstance(axis.parameter, Choice):
                cell = table.number(column, i, boolean=False)
            if not is_recorded(space, point, named, axis, cell, near=ROUNDED, texts=table.texts):
                return False
        return True

    def _asked(self, i: int, context: Any) -> Asked | None:
        facts = {name: cells[i] for name, cells in self._facts.items() if not is_missing(cells[i])}
        event, unit = self._text(EVENT, i), None if self.exported else self._text(UNIT, i)
        return asked_of(event, unit, facts, self._inputs.given(context))

    def _text(self, name: str, i: int) -> str | None:
        column = self._table.find(name)
        cell = None if column is None else self._table.columns[column][i]
        if column is None or is_missing(cell):
            return None
        if isinstance(cell, bool) or not isinstance(cell, str | int | float | np.integer):
            raise self._table.wrong(column, i, "a text")
        return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)  # 17 in a column with a gap

    def _links(self, i: int) -> Links | None:
        found = Links(*map(partial(self._whole, i=i), Links._fields)) if self.exported else None
        return found if found is not None and any(each is not None for each in found) else None

    def _propensity(self, i: int) -> float | None:
        p = self._number(PROPENSITY, i)
        if p is not None and 1.0 < p <= 1.0 + ROUNDED:  # It was written in single precision.
            p = 1.0
        return None if p is None else number(PROPENSITY, p, low=0.0, open_low=True, high=1.0, why=CHANCE)

    def _std(self, i: int) -> float | dict[str, float] | None:
        if len(self._values) == 1:
            return self._number(STD, i)
        found = {name: self._number(f"{STDS}{name}", i) for name in self._values}
        for j, name in enumerate(self._values):
            found[name] = self._number(f"{STDS}{j}", i) if found[name] is None else found[name]
        return {name: std for name, std in found.items() if std is not None} or None

    def _told(self, i: int, *, failed: bool) -> float | Rewards | dict[str, float]:
        if len(self._values) > 1:
            cells = {name: 0.0 if failed else self._table.number(column, i) for name, column in self._values.items()}
            return {name: value for name, value in cells.items() if value is not None}
        if failed:
            return 0.0
        reward, plays = self._table.number(self.reward, i), self._number("plays", i) or 1.0
        mean = 0.0 if reward is None else reward
        if plays <= 1:
            return mean
        return Rewards(count=int(plays), sum=0.0, squares=self._number("scatter", i) or 0.0, about=mean)

    def _limits_of(self, i: int) -> list[float | None]:
        return [self._table.number(column, i) for column in self._limits]

    def _constraints(self, i: int) -> list[float] | None:
        limits = self._limits_of(i)
        known = [value for value in limits if value is not None]
        if self._inputs.policy.constraint_count or limits[: len(known)] != known:
            self._check_all(self._limits, limits, i)
        return known or None

    # -- points --------------------------------------------------------------------------------------------------

    def _reader_of_points(self) -> Any:
        """Returns the function that reads the point of a row."""
        space, table = space_of(self._domain), self._table
        named = space is not None and any(self._column("parameters", name) for name in space.parameters)
        if named or (space is None and self._numbered("point")):
            return self._point
        if isinstance(self._domain, Arms) and (column := table.find(*ARMS)):
            self._columns["arm"] = column
            return lambda i: self._arm(column, i)
        if table.find(NUMBER):
            self._by_number = True
            return lambda i: None if self._whole(NUMBER, i) is not None else self._point(i)
        return self._point

    def _point(self, i: int) -> Decision:
        decision = self._inputs.point(self._at("parameters" if space_of(self._domain) else "point", self._domain, i))
        arm = self._number_of_arm("arm", i) if isinstance(self._domain, Arms) else None
        same = arm is not None and np.array_equal(self._domain.points[arm], decision.point)  # Arms may coincide.
        return decision._replace(arm=arm) if same else decision

    def _arm(self, column: str, i: int) -> Decision:
        """Returns the arm of a name, a number, an option or a point."""
        cell, domain = self._table.columns[column][i], self._domain
        if isinstance(cell, Mapping | list | tuple | np.ndarray):
            return self._inputs.point(cell)
        first = self._whole(COUNTED, i) or 0
        named = [arm for arm, name in self._names.items() if name == (str(cell) if first else cell)]
        arm = named[0] if len(named) == 1 else self._number_of_arm(column, i, first)
        if arm is None and len(options := self._options.get(str(cell).strip(), set())) == 1:
            (arm,) = options
        if arm is None:
            last = len(domain) - 1 + first
            raise self._table.wrong(column, i, f"an arm, {first} to {last}, or the name of one")
        return Decision(frozen(domain.points[arm].copy()), arm, explored=False)

    def _number_of_arm(self, column: str, i: int, first: int = 0) -> int | None:
        try:
            value = self._number(column, i)
        except InvalidInput:
            return None
        return None if value is None or value - first not in range(len(self._domain)) else int(value) - first

    def _at(self, prefix: str, domain: Domain | None, i: int) -> Any:
        if domain is None:
            return None
        space, columns = space_of(domain), self._numbered(prefix)
        if space is None or (columns and not any(self._column(prefix, name) for name in space.parameters)):
            if not columns:
                raise InvalidInput(f"{self._table.named}: {prefix}.0, ... are missing.")
            return [self._table.number(name, i, boolean=False) for name in columns]
        return {name: self._value(prefix, name, each, space, i) for name, each in space.parameters.items()}

    def _value(self, prefix: str, name: str, parameter: Parameter, space: Space, i: int) -> Any:
        column = self._column(prefix, name)
        if column is None:
            if parameter.unknown or (space.conditions is not None and name in space.conditions.needs):
                return None
            known = {each for space in self._spaces() for each in space.parameters}
            raise InvalidInput(
                f"{self._table.named}, and no column {name} or {prefix}.{name}: the study has a parameter of that "
                f"name.{self._table.misspelt(name, known=known)}"
            )
        if not isinstance(parameter, Choice):
            value = self._table.number(column, i, boolean=False)
            return int(value) if isinstance(parameter, Int) and value is not None and value.is_integer() else value
        cell = self._table.columns[column][i]
        if is_missing(cell) and (self._table.texts or cell != ""):
            return None
        said = (cell, cell.strip()) if isinstance(cell, str) else (cell,)
        places = (option_place(parameter, each, texts=self._table.texts) for each in said)
        place = next((each for each in places if each is not None), None)
        if place is None and parameter.unknown:
            return cell
        if place is None:
            raise self._table.wrong(column, i, f"one of {shown(option_texts(parameter))}")
        return parameter.options[place]

    # -- columns -------------------------------------------------------------------------------------------------

    def _spaces(self) -> list[Space]:
        domains = (self._domain, self._context)
        return [space for each in domains if each is not None and (space := space_of(each)) is not None]

    def _column(self, prefix: str, name: str) -> str | None:
        """Returns the column of a parameter, whose prefix may be left out."""
        key = f"{prefix}.{name}"
        if key not in self._columns:
            self._columns[key] = next((each for each in (key, name) if each in self._table.columns), None)
        return self._columns[key]

    def _numbered(self, prefix: str) -> list[str]:
        """Returns the columns "prefix.0", "prefix.1", ..., or the only one, "prefix"."""
        count = len(self._table.columns)
        numbered = [name for name in (f"{prefix}.{i}" for i in range(count)) if name in self._table.columns]
        return numbered or [prefix] * (prefix in self._table.columns)

    def _number(self, name: str, i: int) -> float | None:
        if name not in self._columns:
            self._columns[name] = self._table.find(name)
        column = self._columns[name]
        return None if column is None else self._table.number(column, i)

    def _whole(self, name: str, i: int) -> int | None:
        value = self._number(name, i)
        if value is None:
            return None
        number(name, value, low=0.0, high=LARGEST_WHOLE)
        if value != int(value):
            raise InvalidInput(f"`{name}` is {exact(value)}: it must be a whole number.")
        return int(value)
