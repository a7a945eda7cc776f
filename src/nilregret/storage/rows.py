"""Trials as rows of a table, and notes of a service beside them.

SQLite stores values of any type in any column, so types are checked here. `nilregret.study.audit` checks whether the
values make sense together and fit the study.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, final

import numpy as np
import sqlalchemy as sql

from .._utils.checks import Array, frozen, shown
from ..domains.options import import_name
from ..errors import StorageError
from ..serialize import plain_loads
from .base import ListedStudy, StoredStudy
from .trial import NO_CURVE, VERDICTS, Abandoned, Answer, Fit, Measured, Other, Plays, Report, Trial
from .visit import visit_of

_TEXT, _WHOLE, _REAL = (str,), (int,), (float,)
_OR_NULL = (type(None),)
KINDS: dict[str, tuple[type, ...]] = {
    "number": _WHOLE,
    "state": _TEXT,
    "arm": _WHOLE + _OR_NULL,
    "point": _TEXT,
    "parameters": _TEXT + _OR_NULL,
    "context": _TEXT + _OR_NULL,
    "explored": (int, bool),
    "reward": _REAL + _OR_NULL,
    "reason": _TEXT + _OR_NULL,
    "asked_order": _WHOLE,
    "asked_at": _REAL,
    "told_order": _WHOLE + _OR_NULL,
    "told_at": _REAL + _OR_NULL,
    "constraints": _TEXT + _OR_NULL,
    "constraints_order": _WHOLE + _OR_NULL,
    "lease_until": _REAL + _OR_NULL,
    "abandoned_order": _WHOLE + _OR_NULL,
    "abandoned_at": _REAL + _OR_NULL,
    "abandoned_reason": _TEXT + _OR_NULL,
    "corrected": _TEXT + _OR_NULL,
    "repeats": _WHOLE + _OR_NULL,
    "plays": _WHOLE + _OR_NULL,
    "scatter": _REAL + _OR_NULL,
    "fits": _TEXT + _OR_NULL,
    "propensity": _REAL + _OR_NULL,
    "std": _REAL + _OR_NULL,
    "metrics": _TEXT + _OR_NULL,
    "visit": _TEXT + _OR_NULL,
}
FIXED = (  # Columns that never change.
    "number", "arm", "point", "parameters", "context", "explored", "asked_order", "asked_at", "lease_until", "repeats",
    "fits", "propensity", "visit",
)  # fmt: skip
OUTCOME = (  # Columns that may change.
    "state", "reward", "reason", "told_order", "told_at", "constraints", "constraints_order", "abandoned_order",
    "abandoned_at", "abandoned_reason", "corrected", "plays", "scatter", "std", "metrics",
)  # fmt: skip
TOLD = ("state", "reward", "told_order", "told_at")  # Those of them that the reward of a pending trial changes.
_NEVER_ABANDONED, _ONE_PLAY = (None,) * len(Abandoned._fields), (None,) * len(Plays._fields)
NONE = "[]"  # Fits of a policy that makes some, when none came into force.
MOST_SHAPES = 64  # Cached combinations of types that a row may have.
MOST_TEXTS = 4096  # Cached points by their text, because arms are repeated.


def question(trial: Trial) -> tuple[Any, ...]:
    """Returns the values of the columns `FIXED`."""
    return (
        trial.number,
        trial.arm,
        _text_of(trial.point.tobytes()),
        None if trial.settings is None else json.dumps(dict(trial.settings), default=import_name),
        None if trial.context is None else _text_of(trial.context.tobytes()),
        trial.explored,
        trial.asked_order,
        trial.asked_at,
        trial.lease_until,
        None if trial.repeats == 1 else trial.repeats,
        None if trial.fits is None else NONE if trial.fits == () else _listed_fits(trial.fits),
        trial.propensity,
        None if trial.visit is None else trial.visit.text(),
    )


def outcome(trial: Trial) -> tuple[Any, ...]:
    """Returns the values of the columns `OUTCOME`."""
    return (
        trial.state,
        trial.reward,
        trial.reason,
        trial.told_order,
        trial.told_at,
        None if trial.constraints is None and not trial.others else _told(trial),
        trial.constraints_order,
        *(trial.abandoned or _NEVER_ABANDONED),
        None if not trial.corrected else json.dumps([_dict_of(answer) for answer in trial.corrected]),
        *(trial.plays or _ONE_PLAY),
        trial.std,
        json.dumps(dict(trial.measured)) if trial.measured else None,
    )


def is_asked(trial: Trial) -> bool:
    """Returns whether a new trial has no outcome: its columns `OUTCOME` are NULL, but for the state."""
    return trial.state == "pending" and trial.constraints is None


def is_told(before: Trial, trial: Trial) -> bool:
    """Returns whether a changed trial differs from the one before in the columns `TOLD` alone."""
    return (
        before.state == "pending" and trial.state == "observed" and trial.abandoned is None and trial.plays is None
        and trial.constraints is None and trial.std is None
        and not (trial.corrected or trial.measured or trial.others)
    )  # fmt: skip


def _listed_fits(fits: tuple[Fit, ...]) -> str:
    return json.dumps([fit._asdict() for fit in fits])


@lru_cache(MOST_TEXTS)
def _text_of(data: bytes) -> str:
    """Returns the coordinates in the bytes of an array as JSON. Arms are repeated, and so are contexts."""
    return json.dumps(np.frombuffer(data).tolist())


def _told(trial: Trial) -> str:
    """Returns the constraint values of a trial as JSON, or an object with the values of further objectives as well."""
    g = None if trial.constraints is None else trial.constraints.tolist()
    return json.dumps({"others": [list(other) for other in trial.others], "constraints": g} if trial.others else g)


def _dict_of(answer: Answer) -> dict[str, Any]:
    g, plays = answer.constraints, answer.plays
    told = answer._asdict() | {"constraints": None if g is None else g.tolist()}
    others, stopped = told.pop("others"), told.pop("stopped")
    told |= {"others": [list(other) for other in others]} if others else {}
    told |= {"stopped": True} if stopped else {}
    told["plays"] = None if plays is None else list(plays)
    told["metrics"] = dict(told.pop("measured")) or None
    return told


class RowReader:
    """A reader of rows with the columns of `KINDS`, in their order."""

    def __init__(self) -> None:
        self._shapes: set[tuple[type, ...]] = set()
        self._points: dict[str, Array] = {}

    def trials(self, rows: Iterable[Sequence[Any]]) -> list[Trial]:
        """Returns trials. Their `settings` are those of the row, not yet compared with the point."""
        return [self._trial(row) for row in rows]

    def _trial(self, row: Sequence[Any]) -> Trial:
        try:
            shape = tuple(map(type, row))
            if shape not in self._shapes:
                self._check(row, shape)
            (
                number, state, arm, text, parameters, context, explored, reward, reason, asked_order, asked_at,
                told_order, told_at, constraints, constraints_order, lease_until, left_order, left_at, left_reason,
                corrected, repeats, plays, scatter, fits, propensity, std, metrics, visit,
            ) = row  # fmt: skip
            if explored not in (0, 1):
                raise ValueError(f"`explored` is {explored}")
            point = self._points.get(text)
            if point is None:
                if len(self._points) > MOST_TEXTS:
                    self._points.clear()
                point = self._points[text] = _array("point", plain_loads(text))
            g, others = _told_in(constraints)
            left = None
            if (left_order, left_at, left_reason) != (None, None, None):
                if None in (left_order, left_at, left_reason):
                    raise ValueError(f"`abandoned_order` is {left_order}, `abandoned_at` is {left_at}")
                left = Abandoned(left_order, left_at, left_reason)
            return Trial(
                number, point, arm, None if parameters is None else _settings(parameters), asked_order, asked_at,
                _values("context", context), bool(explored), False, state, reward, reason, told_order, told_at,
                g, None, constraints_order, lease_until, left,
                () if corrected is None else _corrected(corrected), 1 if repeats is None else repeats,
                None if plays is None and scatter is None else _plays(plays, scatter),
                None if fits is None else () if fits == NONE else _fits(fits), propensity, std,
                () if metrics is None else _measured(plain_loads(metrics)), others, NO_CURVE, visit_of(visit),
            )  # fmt: skip
        except ValueError as error:
            raise StorageError(
                f"Trial {shown(row[0])} in the storage has been damaged ({error}). Restore a copy of the file."
            ) from error

    def _check(self, row: Sequence[Any], shape: tuple[type, ...]) -> None:
        for (name, kinds), kind, value in zip(KINDS.items(), shape, row, strict=True):
            if kind not in kinds:
                raise ValueError(f"`{name}` is {shown(value)}")
        if len(self._shapes) < MOST_SHAPES:
            self._shapes.add(shape)


_REPORT = (int, float, int, int, float, str)  # Types of the fields of a report.


def report_of(row: Sequence[Any]) -> Report:
    """Returns the report in a row, whose columns are in the order of its fields.

    Raises:
        StorageError: the row cannot be right.
    """
    right = tuple(map(type, row)) == _REPORT and math.isfinite(row[1]) and math.isfinite(row[4])
    if not right or row[5] not in VERDICTS or row[3] < 0:
        raise StorageError(
            f"Event {shown(row[0])} in the storage, a report of a trial, has been damaged ({shown(tuple(row[1:]))}). "
            "Restore a copy."
        )
    return Report(*row)


def _plays(count: Any, scatter: Any) -> Plays:
    if type(count) is not int or type(scatter) is not float:
        raise ValueError(f"`plays` is {shown(count)}, `scatter` is {shown(scatter)}")
    return Plays(count, scatter)


def _fits(text: str) -> tuple[Fit, ...]:
    found = plain_loads(text)
    if not isinstance(found, list):
        raise ValueError("`fits` is no list")  # noqa: TRY004 - the value is of a file, not of a call
    for fit in found:
        if not isinstance(fit, dict) or {name: type(value) for name, value in fit.items()} != _FIT:
            raise ValueError(f"`fits` has {shown(fit)}")
    return tuple(Fit(**fit) for fit in found)


def _measured(metrics: Any) -> Measured:
    if not isinstance(metrics, dict) or not all(type(value) is float for value in metrics.values()):
        raise ValueError(f"`metrics` is {shown(metrics)}")
    return tuple(metrics.items())


def _told_in(text: str | None) -> tuple[Array | None, tuple[Other, ...]]:
    """Returns the constraint values and the values of further objectives in the column `constraints`."""
    if text is None:
        return None, ()
    found = plain_loads(text)
    if not isinstance(found, dict):
        return _array("constraints", found), ()
    if found.keys() != {"others", "constraints"}:
        raise ValueError(f"`constraints` is {shown(found)}")
    g = found["constraints"]
    return None if g is None else _array("constraints", g), _others(found["others"])


def _others(values: Any) -> tuple[Other, ...]:
    pairs = isinstance(values, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in values)
    if not pairs or not all(type(value) is float and type(std) in (float, type(None)) for value, std in values):
        raise ValueError(f"`others` is {shown(values)}")
    return tuple(Other(value, std) for value, std in values)


def _values(name: str, text: str | None) -> Array | None:
    return None if text is None else _array(name, plain_loads(text))


def _array(name: str, values: Any) -> Array:
    if type(values) is not list or not all(type(value) in (int, float) for value in values):
        raise ValueError(f"`{name}` is no list of numbers")
    try:
        array = np.array(values, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"`{name}` has a number too large for a float") from None
    if not np.isfinite(array).all():
        raise ValueError(f"`{name}` has a value that is not finite")
    return frozen(array)


def _settings(text: str) -> tuple[tuple[str, Any], ...]:
    values = plain_loads(text)
    if not isinstance(values, dict):
        raise ValueError("`parameters` is no object")  # noqa: TRY004 - the value is of a file, not of a call
    return tuple(values.items())


_FIT = {"channel": int, "number": int, "values": dict}
_ANSWER: dict[str, tuple[type, ...]] = {
    "order": _WHOLE, "time": _REAL, "reward": _REAL + _OR_NULL, "reason": _TEXT + _OR_NULL,
    "constraints": (list, *_OR_NULL), "plays": (list, *_OR_NULL), "std": _REAL + _OR_NULL, "metrics": (dict, *_OR_NULL),
}  # fmt: skip


def _corrected(text: str) -> tuple[Answer, ...]:
    answers = plain_loads(text)
    if not isinstance(answers, list) or not answers:
        raise ValueError(f"`corrected` is {shown(text)}")
    return tuple(map(_answer, answers))


def _answer(given: Any) -> Answer:
    others, stopped = None, False
    if isinstance(given, dict):
        others, stopped = given.pop("others", None), given.pop("stopped", False)
    if not isinstance(given, dict) or given.keys() != _ANSWER.keys():
        raise ValueError(f"`corrected` has {shown(given)}")
    for name, kinds in _ANSWER.items():
        if type(given[name]) not in kinds:
            raise ValueError(f"`{name}` of `corrected` is {shown(given[name])}")
    g, plays, metrics = (given.pop(name) for name in ("constraints", "plays", "metrics"))
    if plays is not None and len(plays) != 2:
        raise ValueError(f"`plays` of `corrected` is {shown(plays)}")
    return Answer(
        **given, constraints=None if g is None else _array("constraints", g),
        plays=None if plays is None else _plays(*plays), measured=() if metrics is None else _measured(metrics),
        others=() if others is None else _others(others), stopped=stopped is True,
    )  # fmt: skip


NOBODY = ""  # The owner of notes that belong to no study.


def owner(study: StoredStudy | ListedStudy) -> str:
    """Returns the key of a study's notes. A deleted study's number may be given again, but its notes must not."""
    return f"{study.id}:{study.created_at!r}"


@final
class NoteStatements:
    """The SQL statements of notes, as text for the driver.

    Args:
        notes: the table.
        dialect: of the database.
        text: returns a statement as text for the driver, which takes a dict of parameters.
    """

    def __init__(self, notes: sql.Table, dialect: str, text: Callable[[Any], str]) -> None:
        self._lists = dialect == "postgresql"  # Whether the driver takes a list. Other drivers take JSON.
        among = "= ANY(:keys)" if self._lists else "IN (SELECT value FROM json_each(:keys))"
        read = f"SELECT key, value FROM {notes.name} WHERE study = :study AND "
        self._one, self._several = (text(sql.text(f"{read} key {which}")) for which in ("= :key", among))
        self.under = text(sql.text(f"{read} key >= :low AND key < :high"))
        under = f"FROM {notes.name} WHERE study = :study AND key >= :low AND key < :high"
        self.count = text(sql.text(f"SELECT count(*) {under} AND value NOT LIKE :unlike"))
        owners = "= ANY(:studies)" if self._lists else "IN (SELECT value FROM json_each(:studies))"
        self._named = text(sql.text(f"SELECT study, value FROM {notes.name} WHERE key = :key AND study {owners}"))
        put = f"INSERT INTO {notes.name} (study, key, value) VALUES (:study, :key, :value) ON CONFLICT (study, key) DO"
        self.write = text(sql.text(f"{put} UPDATE SET value = excluded.value"))
        self.once = text(sql.text(f"{put} NOTHING"))
        self.drop = text(sql.text(f"DELETE FROM {notes.name} WHERE study = :study AND key = :key"))

    def read(self, study: str, keys: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Returns the statement that reads these notes, and its parameters."""
        if len(keys) == 1:  # The usual case: in SQLite a table made of a list is slow.
            return self._one, {"study": study, "key": keys[0]}
        return self._several, {"study": study, "keys": self._listed(keys)}

    def named(self, key: str, studies: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """Returns the statement that reads the notes of several studies under one key, and its parameters."""
        return self._named, {"key": key, "studies": self._listed(studies)}

    def _listed(self, texts: Sequence[str]) -> list[str] | str:
        return list(texts) if self._lists else json.dumps(list(texts))


def note_rows(study: str, notes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Returns notes as rows of the table."""
    return [{"study": study, "key": key, "value": value} for key, value in notes.items()]
