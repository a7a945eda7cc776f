"""Trials and times as text, and as tables for notebooks."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from types import MappingProxyType
from typing import Any

import numpy as np

from .._utils.checks import many
from .._utils.numerals import DIGITS, html_table, numeral
from ..domains.options import import_name, worded
from ..errors import printable
from ..storage.record import Trial
from .best import admissible, at_full, told_front
from .definition import constraint_names
from .direction import AnyPolicy, Goal, on_average

UNITS = ((1.0, "s", 120.0), (60.0, "min", 120.0), (3600.0, "h", 72.0))  # Seconds, name, and how many are said.
MOST_CHARACTERS = 60  # Most characters of a cell.
NO_NAMES: Mapping[int, str] = MappingProxyType({})  # Of arms, by number.
BARS = "▁▂▃▄▅▆▇█"
ASCII_BARS = "_.:-=+*#"
OUTLIERS = 0.1  # The share of values, on the worse side, that may lie below a sparkline's scale.
FEW = 5  # Fewer values are all on the scale.


def where(trial: Trial, digits: int = DIGITS, names: Mapping[int, str] = NO_NAMES) -> str:
    """Returns the point of a trial in a line, with the name of its arm if there is one."""
    return settings(trial.parameters, trial.point.tolist(), trial.arm, digits, names)


def settings(
    parameters: dict[str, Any] | None, point: Sequence[float], arm: int | None, digits: int = DIGITS,
    names: Mapping[int, str] = NO_NAMES,
) -> str:  # fmt: skip
    """Returns named parameters, or coordinates and the arm, after its name."""
    if parameters is not None:
        return figure(parameters, digits)
    coordinates = ", ".join(figure(value, digits) for value in point)
    if arm is None:
        return f"({coordinates})"
    return (f"{printable(names[arm])}, " if arm in names else "") + f"arm {arm} ({coordinates})"


def figure(value: object, digits: int = DIGITS) -> str:
    """Returns a value as text that a terminal obeys nothing of, with so many digits of its numbers."""
    if isinstance(value, list):
        return ", ".join(figure(part, digits) for part in value)
    if isinstance(value, dict):
        return ", ".join(f"{printable(str(name))}={_part(part, digits)}" for name, part in value.items())
    return "" if value is None else numeral(value, digits) if isinstance(value, float) else printable(worded(value))


def _part(value: object, digits: int) -> str:
    return printable(worded(value)) if isinstance(value, list | dict) else figure(value, digits) or str(value)


def moment(time: float | None) -> str:
    """Returns Unix seconds as a date and a time of day, UTC. A number that is no date stays a number."""
    if time is None:
        return ""
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):  # The user's own clock may count from any moment.
        return f"{numeral(time)} s"


def cell(value: object, *, most: int = MOST_CHARACTERS) -> str:
    """Returns a value as one short line for a cell of a table."""
    text = figure(value).replace("\n", " ")
    return text if len(text) <= most else text[: most - 3] + "..."


def metrics_text(measured: Sequence[tuple[str, float]]) -> str:
    """Returns metrics as text, "accuracy=0.93, epochs=12", the first eight of many."""
    more = ", ..." * (len(measured) > MOST_COLUMNS)
    return ", ".join(f"{printable(name)}={numeral(value)}" for name, value in measured[:MOST_COLUMNS]) + more


def mean_uses(policy: AnyPolicy, about: Mapping[str, Any], trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Returns name and mean of the values of each constraint, and their number, if constraints hold on average."""
    told = [trial.constraints for trial in trials if trial.constraints is not None]
    if not told or not on_average(policy):
        return []
    used = zip(constraint_names(about, len(told[0])), np.mean(told, axis=0).tolist(), strict=True)
    return [{"name": name, "mean": mean, "of": len(told)} for name, mean in used]


def use_text(use: Mapping[str, Any]) -> str:
    """Returns an entry of `mean_uses` in words."""
    return f"{limit_text(use['name'], use['mean'])}, in {many(use['of'], 'trial')}"


def limit_text(name: str, value: float) -> str:
    """Returns the name of a constraint, and how far a value of it is over or within the limit."""
    return f"{name}: {numeral(abs(value))} {'over' if value > 0.0 else 'within'} the limit"


def sparkline(
    values: Sequence[float], counted: Sequence[float], goal: str, *, width: int, encoding: str | None
) -> tuple[str, str]:
    """Returns the values, and the best so far of each, as two lines of small bars on one scale.

    Args:
        values: rewards or losses, in the order in which they came.
        counted: the same, infinitely bad where a trial cannot be the best.
        goal: goal of the study. Bars of a loss are lower for better values.
        width: most characters of a line. Each bar is the best value of its part of the trials.
        encoding: of the output. Where it lacks the bars, ASCII stands for them.
    """
    better = max if goal == "maximize" else min
    parts = [better(part) for part in _parts(values, width)]
    best = list(accumulate((better(part) for part in _parts(counted, width)), better))
    ordered = sorted(parts)
    beyond = math.ceil(OUTLIERS * len(parts)) if len(parts) >= FEW else 0
    low, high = (ordered[beyond], ordered[-1]) if goal == "maximize" else (ordered[0], ordered[-1 - beyond])
    bars = BARS if _shows(BARS, encoding) else ASCII_BARS
    top = len(bars) - 1
    levels = [
        [round(top * min(max((value - low) / (high - low or 1.0), 0.0), 1.0)) for value in line]
        for line in (parts, best)
    ]
    first, second = ("".join(bars[level] for level in line) for line in levels)
    return first, second


def _parts(values: Sequence[float], most: int) -> Iterator[Sequence[float]]:
    """Yields the values in so many parts of equal length, at most."""
    length = math.ceil(len(values) / most)
    for start in range(0, len(values), max(1, length)):
        yield values[start : start + length]


def _shows(text: str, encoding: str | None) -> bool:
    try:
        text.encode(encoding or sys.getdefaultencoding())
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def encodable(text: str) -> str:
    """Returns a text that `print` can write: an ASCII terminal gets "+-" for "±" and escapes for other letters."""
    if _shows(text, getattr(sys.stdout, "encoding", None)):
        return text
    return text.replace("±", "+-").encode("ascii", "backslashreplace").decode()


def as_json(value: Any) -> str:
    """Returns a JSON document in plain ASCII, which every terminal and pipe can show."""
    return json.dumps(value, indent=1, allow_nan=False, default=import_name)


def unit(seconds: float) -> tuple[float, str]:
    """Returns the unit in which people say a duration: its seconds, and its name."""
    return next(((size, name) for size, name, most in UNITS if seconds < most * size), (86_400.0, "days"))


def duration(seconds: float) -> str:
    """Returns a duration as text: "0.2 s", "3 min", "5 h", "12 days"."""
    size, name = unit(seconds)
    few = seconds < 10 * size and name != "days"
    return f"{numeral(seconds / size, 2) if few else round(seconds / size)} {name}"


def in_words(name: str) -> str:
    """Returns the name of a class as words: "ThompsonSample" as "Thompson sample"."""
    return re.sub(r"(?<=[a-z0-9])[A-Z]", lambda found: f" {found[0].lower()}", name)


MOST_ROWS = 10  # The last trials, and as many of the best that are earlier.
TRIAL = ("trial", "state", "reason")  # Columns of each table of trials.
MOST_COLUMNS = 8  # Parameters or coordinates.


def study_html(
    policy: AnyPolicy, goals: tuple[Goal, ...], trials: Sequence[Trial], *, caption: str, about: Mapping[str, Any]
) -> str:
    """Returns the last trials of a study, with the best value told, or the front of them, in bold type."""
    best = told_front(admissible(policy, at_full(policy, trials)), goals)
    return trials_html(trials, caption=caption, best=best, about=about, names=policy.objective_names)


def trials_html(
    trials: Sequence[Trial], *, caption: str, best: Sequence[Trial], about: Mapping[str, Any], names: Sequence[str]
) -> str:
    """Returns a table of the last trials, with the best one, or those of a front, in bold type.

    Args:
        trials: all of the study.
        caption: lines above the table.
        best: the best trial, or those of a front.
        about: facts of the study, which name its constraints.
        names: of the objectives.
    """
    strong = {trial.number for trial in best[:MOST_ROWS]}
    kept = [trial for trial in trials[:-MOST_ROWS] if trial.number in strong] + list(trials[-MOST_ROWS:])
    rows = [_cells(trial, about, names) for trial in kept]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    filled = [name for name in columns if any(row.get(name) not in ("", None) for row in rows)]
    left_out = len(trials) - len(kept)
    above = caption + (f"\nlast {min(len(trials), MOST_ROWS)} of {len(trials)} trials" if left_out else "")
    bold = [i for i, trial in enumerate(kept) if trial.number in strong]
    return html_table(filled, [[row.get(name) for name in filled] for row in rows], caption=above, strong=bold)


def _cells(trial: Trial, about: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns the cells of a trial by heading. An empty one is None."""
    reason = trial.abandoned.reason if trial.abandoned is not None and trial.state == "abandoned" else trial.reason
    named = trial.parameters or {f"point[{i}]": value for i, value in enumerate(trial.point.tolist())}
    places = dict(list(named.items())[:MOST_COLUMNS])
    more = {"...": "..."} if len(named) > MOST_COLUMNS else {}
    told = [] if trial.constraints is None else trial.constraints.tolist()
    limits = dict(zip(constraint_names(about, len(told)), told, strict=True))
    metrics = dict(trial.measured[:MOST_COLUMNS])
    values = dict(zip(names if len(names) > 1 else ["value"], trial.values or (), strict=False))
    values = {f"values.{name}" if name in (*named, *TRIAL) else name: value for name, value in values.items()}
    answer = {**values, **limits, **{name: metrics[name] for name in metrics if name not in named}}
    answer["reason"] = reason
    return {"trial": trial.number, "state": trial.state, **places, **more, **answer}
