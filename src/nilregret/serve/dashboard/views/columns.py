"""The columns of a study's trials as arrays, kept by study, so that trials are sorted and filtered without a loop.

A column of categories has the position of its option, and an empty cell is NaN. Only trials that have changed are read
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple, final
from weakref import WeakKeyDictionary

import numpy as np

from ...._utils.checks import Array
from ....domains.domain import Arms, Domain, space_of
from ....domains.options import option_key
from ....domains.parameters import Choice
from ....storage.trial import Trial, TrialState, metric_names
from ....study.cautions import unknown_levels
from ....study.definition import constraint_names
from ....study.study import Study
from .pictures import names_of, short

STATES: tuple[TrialState, ...] = ("observed", "pending", "failed", "abandoned", "stopped")
PARAMETERS = "parameters."  # before the name of a parameter that another column has too
VISITS = {"event": "event", "unit": "unit", "kept": "keeps the arm of", "slate": "slate", "place": "place"}
FACTS = "facts."
Kind = Literal["number", "category", "time", "text"]
Read = Callable[[Trial], Any]


class Column(NamedTuple):
    """A column of the trials.

    Attributes:
        key: its name in addresses.
        label: its name for people.
        kind: of its values.
        read: returns the value of a trial, or None.
        options: the values of a column of categories.
        objective: number of the objective with these values, from 0, or None.
    """

    key: str
    label: str
    kind: Kind
    read: Read
    options: tuple[Any, ...] = ()
    objective: int | None = None

    def names(self) -> list[str]:
        """Returns the options as text."""
        return [short(option) for option in self.options]

    def values(self, trials: Sequence[Trial]) -> Any:
        """Returns the values of trials as an array, `(n,)`."""
        if self.kind == "text":
            return np.array([self.read(trial) or "" for trial in trials], dtype=object)
        found = [self.read(trial) for trial in trials]
        if self.kind == "category":  # True and 1 are two options.
            places = {option_key(each): float(i) for i, each in enumerate(self.options)}
            found = [places.get(option_key(each), np.nan) for each in found]
        return np.array([np.nan if value is None else value for value in found], dtype=np.float64)


@final
class Columns(NamedTuple):
    """The columns of a study at one moment.

    Attributes:
        order: position of the last event.
        trials: all trials by number.
        layout: the columns by key.
        values: an array by key, `(n,)`. A key that nobody has asked for is missing.
    """

    order: int
    trials: Sequence[Trial]
    layout: dict[str, Column]
    values: dict[str, Any]

    def array(self, key: str) -> Any:
        """Returns the values of a column, `(n,)`."""
        if key not in self.values:
            self.values[key] = self.layout[key].values(self.trials)
        return self.values[key]


_known: WeakKeyDictionary[Study, Columns] = WeakKeyDictionary()


def order_of(study: Study) -> int:
    """Returns the position of the last event, which grows with each event of a study."""
    with study.replica.lock:
        study.replica.sync()
        return study.replica.record.order


def columns_of(study: Study) -> Columns:
    """Returns the columns of a study. Cached values of trials that are the same objects as before are kept."""
    order, known = order_of(study), _known.get(study)
    if known is not None and known.order == order:
        return known
    trials = study.replica.snapshot()
    before = () if known is None else known.trials
    same = len(trials) >= len(before)
    changed = [i for i, (old, new) in enumerate(zip(before, trials, strict=False)) if old is not new] if same else []
    layout = {column.key: column for column in _layout(study, trials)}
    values: dict[str, Any] = {}
    if known is not None and same:
        new = trials[len(before) :]
        for key, array in list(known.values.items()):
            if key in layout and layout[key].options == known.layout[key].options:
                values[key] = np.append(array, layout[key].values(new))
                values[key][changed] = layout[key].values([trials[i] for i in changed])
    found = _known[study] = Columns(order, trials, layout, values)
    return found


def _layout(study: Study, trials: Sequence[Trial]) -> list[Column]:
    policy = study.policy
    columns = [Column("number", "trial", "number", lambda trial: trial.number)]
    states = STATES if _reported(trials) else STATES[:-1]
    columns.append(Column("state", "state", "category", lambda trial: trial.state, states))
    if isinstance(policy.domain, Arms):
        columns.append(Column("arm", "arm", "number", lambda trial: trial.arm))
    told, answer = _told(study, trials), _answer(study, trials)
    columns += told
    fixed = {column.key for column in (*columns, *answer)}
    for column in _of_domain(policy.domain, "point", lambda trial: trial.settings, lambda trial: trial.point):
        clash = column.key in fixed or column.key.startswith(
            ("context.", "constraints.", "metrics.", FACTS, PARAMETERS)
        )
        columns.append(column._replace(key=PARAMETERS + column.key) if clash else column)
    if policy.context is not None:
        under = _of_domain(policy.context, "", lambda trial: trial.context_settings, lambda trial: trial.context)
        came = {
            each.name: [level for level, _ in each.levels if level is not None]
            for each in unknown_levels(policy, trials)
        }
        columns += [
            column._replace(
                key="context." + column.key.lstrip("."),
                options=column.options and (*column.options, *came.get(column.key, ())),
            )
            for column in under
        ]
    return [*columns, *answer]


def _of_metric(name: str) -> Read:
    return lambda trial: trial.metrics.get(name)


def _told(study: Study, trials: Sequence[Trial]) -> list[Column]:
    """Returns the column of each objective, each with that of its noise if some is known."""
    columns, names = list[Column](), names_of(study)
    for j, name in enumerate(names):
        noise = _of_noise(j)
        columns.append(Column(objective_key(j), name, "number", _of_objective(j), objective=j))
        if any(noise(trial) is not None for trial in trials):
            label = f"noise of {name}" if len(names) > 1 else "noise"
            columns.append(Column(f"noise.{j}" if j else "std", label, "number", noise))
    return columns


def objective_key(j: int) -> str:
    """Returns the key of the column of an objective, by its number from 0."""
    return f"objectives.{j}" if j else "reward"


def _of_objective(j: int) -> Read:
    if not j:
        return lambda trial: trial.reward
    return lambda trial: trial.others[j - 1].value if trial.others else None


def _of_noise(j: int) -> Read:
    if not j:
        return lambda trial: trial.std
    return lambda trial: trial.others[j - 1].std if trial.others else None


def _answer(study: Study, trials: Sequence[Trial]) -> list[Column]:
    """Returns the columns of constraints, metrics, reports, times and reasons."""
    widths = {len(trial.constraints) for trial in trials if trial.constraints is not None}
    names = constraint_names(study.about, max([study.policy.constraint_count, *widths]))
    columns = [Column(f"constraints.{j}", name, "number", _of_constraint(j)) for j, name in enumerate(names)]
    columns += [Column(f"metrics.{name}", name, "number", _of_metric(name)) for name in metric_names(trials)]
    if _reported(trials):
        columns.append(Column("curve.step", "last step", "number", lambda trial: _last(trial, "step")))
        columns.append(Column("curve.value", "last value", "number", lambda trial: _last(trial, "value")))
    columns += _of_visits(trials)
    columns.append(Column("asked_at", "asked", "time", lambda trial: trial.asked_at))
    columns.append(Column("told_at", "told", "time", lambda trial: trial.told_at))
    return [*columns, Column("reason", "reason", "text", reason_of)]


def _of_visits(trials: Sequence[Trial]) -> list[Column]:
    """Returns the columns of events, units, slates and facts that some trial has. A unit is a number."""
    visits = [(trial, trial.visit) for trial in trials if trial.visit is not None]
    columns = [
        Column(key, label, "text" if key == "event" else "number", attrgetter(key))
        for key, label in VISITS.items() if any(getattr(visit, key) is not None for _, visit in visits)
    ]  # fmt: skip
    kinds: dict[str, Kind] = {}
    for trial, _ in visits:
        for name, value in trial.facts.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            kinds[name] = kinds.get(name, "number") if number or value is None else "text"
    return columns + [Column(FACTS + name, name, kind, _of_fact(name, kind)) for name, kind in kinds.items()]


def _of_fact(name: str, kind: Kind) -> Read:
    if kind == "number":
        return lambda trial: trial.facts.get(name)
    return lambda trial: None if name not in trial.facts else short(trial.facts[name])


def reason_of(trial: Trial) -> str | None:
    """Returns why a trial failed, was stopped or was abandoned, or None."""
    if trial.abandoned is not None and trial.state == "abandoned":
        return trial.abandoned.reason
    return trial.reason


def _reported(trials: Sequence[Trial]) -> bool:
    """Returns whether a trial has reported, so that some may be stopped."""
    return any(trial.curve for trial in trials)


def _last(trial: Trial, entry: str) -> float | None:
    return getattr(trial.curve[-1], entry) if trial.curve else None


def _of_constraint(j: int) -> Read:
    return lambda trial: None if trial.constraints is None or j >= len(trial.constraints) else trial.constraints[j]


def _of_domain(domain: Domain, prefix: str, settings: Read, point: Read) -> list[Column]:
    space = space_of(domain)
    if space is None:
        names = [f"{prefix}.{i}" for i in range(domain.dimension)]
        return [
            Column(name, name.lstrip(".") if prefix else f"context {i}", "number", _coordinate(point, i))
            for i, name in enumerate(names)
        ]
    return [
        Column(name, name, "category", _setting(settings, i, name), parameter.options)
        if isinstance(parameter, Choice)
        else Column(name, name, "number", _setting(settings, i, name))
        for i, (name, parameter) in enumerate(space.parameters.items())
    ]


def _coordinate(point: Read, i: int) -> Read:
    def read(trial: Trial) -> float | None:
        found = point(trial)
        return None if found is None else float(found[i])

    return read


def _setting(settings: Read, i: int, name: str) -> Read:
    def read(trial: Trial) -> Any:
        found = settings(trial) or ()
        if i < len(found) and found[i][0] == name:  # Inactive parameters are left out, which moves later ones.
            return found[i][1]
        return next((value for other, value in found if other == name), None)

    return read


def latest(values: Array) -> float | None:
    """Returns the largest value that is known, or None."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else None
