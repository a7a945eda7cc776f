"""Signals: what an operator should look at in a study, such as trials that fail one after the other.

Each signal is a sentence with its figures. None is a guess: the rules are in `RULES`, and docs/dashboard.md lists them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Literal, NamedTuple, final, get_args
from weakref import WeakKeyDictionary

import numpy as np

from .._utils.checks import Array, many
from ..storage.record import Trial
from ..study.direction import on_average
from ..study.formatting import duration, number
from ..study.study import Study

SignalKind = Literal["failing", "budget", "change", "silent", "fit"]
KINDS: tuple[SignalKind, ...] = get_args(SignalKind)
RULES: dict[SignalKind, str] = {
    "failing": "The last 3 trials with an outcome failed, or more than half of the last 20 did.",
    "budget": "More than the budget is used, and the second half of the answers used more than it allows.",
    "change": "The policy started anew within the last 20 trials, or within a day.",
    "silent": "Nothing has happened for three times the longest pause between the last 100 answers.",
    "fit": "A fit is under way for more than 100 trials, or the last one failed.",
}
LOOKED_AT = 200  # latest trials
IN_A_ROW, RECENT = 3, 20  # failed trials, and trials with an outcome that are looked at
PAUSES, LEAST_PAUSES, LONGER = 100, 10, 3.0  # pauses between answers, and how many times the longest is unusual
LEAST_SILENCE, AT_REST = 60.0, 30 * 86_400.0  # seconds: less is no silence, and more is the end of a study
DAY = 86_400.0
LEAST_ANSWERS, ERRORS = 40, 2.0  # answers in halves, and standard errors beyond which a mean is not chance
BEHIND = 100  # trials


class Signal(NamedTuple):
    """A fact that an operator should look at.

    Attributes:
        kind: a key of `RULES`.
        sentence: with its figures.
        since: Unix seconds, or None if no time is on record.
        event: number that tells this signal from a later one of its kind, such as the trial that began it.
    """

    kind: SignalKind
    sentence: str
    since: float | None
    event: int


class _Known(NamedTuple):
    order: int
    signals: list[Signal]  # all that do not depend on the time of day


@final
class SignalCache:
    """The signals of the open studies of a process, computed again after each change of a record."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Study, _Known] = WeakKeyDictionary()

    def current(self, study: Study, *, now: float) -> list[Signal]:
        """Returns the signals of a study.

        Args:
            study: to look at.
            now: present time in Unix seconds.
        """
        with study.replica.lock:
            study.replica.sync()
            record = study.replica.record
            order, latest = record.order, record[-LOOKED_AT:]
        known = self._known.get(study)
        if known is None or known.order != order:
            known = self._known[study] = _Known(order, [*failing(latest), *_budgets(study)])
        return [*known.signals, *_changes(study, now), *silent(latest, now), *_fits(study)]


def failing(latest: Sequence[Trial]) -> list[Signal]:
    """Returns a signal if the last trials failed.

    Args:
        latest: trials in the order of their numbers.
    """
    ended = [trial for trial in latest if trial.state in ("observed", "failed")][-RECENT:]
    failed = [trial for trial in ended if trial.state == "failed"]
    row = list(takewhile(lambda trial: trial.state == "failed", reversed(ended)))
    if len(row) >= IN_A_ROW:
        said, first = f"The last {many(len(row), 'trial')} with an outcome failed", row[-1]
    elif len(ended) == RECENT and 2 * len(failed) > RECENT:
        said, first = f"{len(failed)} of the last {RECENT} trials with an outcome failed", failed[0]
    else:
        return []
    reason = failed[-1].reason or "no reason was told"
    return [Signal("failing", f"{said}, the latest with: {reason}.", first.told_at, first.number)]


def _budgets(study: Study) -> list[Signal]:
    if not on_average(study.policy):
        return []
    told = [trial for trial in study.replica.snapshot() if trial.constraints is not None]
    widths = {len(trial.constraints) for trial in told if trial.constraints is not None}
    if len(told) < LEAST_ANSWERS or len(widths) != 1:
        return []
    values = np.stack([trial.constraints for trial in told if trial.constraints is not None])
    found = [overrun(j, values[:, j]) for j in range(values.shape[1])]
    return [signal._replace(since=told[len(told) // 2].told_at) for signal in found if signal is not None]


def overrun(index: int, values: Array) -> Signal | None:
    """Returns a signal if a budget is used up and is being used up further.

    Every bound of a budget grows more slowly than the number of rounds. So a mean above 0 that stays breaks each of
    them in the end, and a mean that has come down to 0 breaks none.

    Args:
        index: of the constraint, from 0.
        values: constraint values in the order of their trials, at most 0 on average where the budget holds `(n,)`.
    """
    later = values[len(values) // 2 :]
    total, mean = float(values.sum()), float(later.mean())
    error = float(later.std(ddof=1)) / math.sqrt(len(later))
    if total <= 0.0 or mean <= ERRORS * error:
        return None
    said = (
        f"The budget of constraint {index + 1} is overrun by {number(total)}, and the last "
        f"{many(len(later), 'answer')} went on with {number(mean)} each (standard error {number(error)}): no bound "
        "allows a mean that stays above 0."
    )
    return Signal("budget", said, None, 64 * int(math.log2(len(values))) + index)  # once for each doubling


def _changes(study: Study, now: float) -> list[Signal]:
    restarts = study.restarts
    if not restarts:
        return []
    record, last = study.replica.record, restarts[-1]
    at = record[last].asked_at if last < len(record) else None
    if len(record) - last > RECENT and (at is None or now - at > DAY):
        return []
    return [Signal("change", f"The policy started anew at trial {last}: {study.restart_reasons[-1]}.", at, last)]


def silent(latest: Sequence[Trial], now: float) -> list[Signal]:
    """Returns a signal if nothing has happened for longer than usual.

    Args:
        latest: trials in the order of their numbers.
        now: present time in Unix seconds.
    """
    answers = sorted(trial.told_at for trial in latest if trial.told_at is not None)[-PAUSES - 1 :]
    if len(answers) <= LEAST_PAUSES:
        return []
    longest = max(later - earlier for earlier, later in pairwise(answers))
    last = max(answers[-1], max(trial.asked_at for trial in latest))
    enough = max(LONGER * longest, LEAST_SILENCE)
    if not enough < now - last < max(AT_REST, 2.0 * enough):
        return []
    said = f"Nothing has happened for {duration(now - last)}; the longest of the last pauses was {duration(longest)}."
    return [Signal("silent", said, last, latest[-1].number)]


def _fits(study: Study) -> list[Signal]:
    fits = study.late_fits
    if fits is None:
        return []
    if fits.failure:
        said = f"The last fit failed, and decisions go on with the one before: {fits.failure}."
        return [Signal("fit", said, None, fits.made)]
    behind = fits.behind
    if behind <= BEHIND:
        return []
    said = f"A fit is under way since {many(behind, 'trial')}: decisions go on with the one before."
    return [Signal("fit", said, None, fits.made)]
