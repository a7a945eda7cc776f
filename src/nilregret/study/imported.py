"""A row of a table as a trial: the point, the context and the answer, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, final

import numpy as np

from .._utils.checks import Array, shown
from .._utils.tables import OUTCOMES
from ..errors import InvalidInput
from ..policy.engines import Decision
from ..storage.trial import Trial
from .play_rewards import Told
from .visits import Asked

ROUNDED = 1e-6  # Share of a range, or of an answer, that a spreadsheet may round away.
FAILED, ABANDONED = OUTCOMES
AS_NEW = "Without the column `number` all rows are added as new trials."

Steps = tuple[tuple[int, float], ...]


class Links(NamedTuple):
    """Numbers of trials that a row of an export refers to, as they were in the study that was exported.

    Attributes:
        unit: of the first trial of its unit, or None.
        kept: of the trial whose arm it keeps, or None.
        slate: of the first trial of its slate, or None.
        place: within the slate, or None.
    """

    unit: int | None
    kept: int | None
    slate: int | None
    place: int | None


@final
class Imported(NamedTuple):
    """A row of a table with a reward, checked.

    Attributes:
        row: its number in the table, from 1.
        decision: the point, or None if only a number says of which trial the row is.
        context: `(c,)`, or None.
        reward: reward (loss), or the average of several plays.
        told: the answer of which `reward` is part.
        propensity: probability with which the point was chosen, or None.
        number: of a trial of the study that was exported, or None.
        asked_at: time of that trial, Unix seconds, or None.
        sides: of contexts and points, `(c + d,)`, the units of rounding.
        sheet: True if the row is of a sheet, on which a person may have set other values.
        ended: `failed` or `abandoned`, as a person wrote it in place of an answer, and why, or None.
        steps: step and value of each report of the trial.
        stopped: why the trial was stopped, or None.
        asked: who visited, and the caller's own id and facts, or None.
        links: trials of an export that the row refers to, or None.
    """

    row: int
    decision: Decision | None
    context: Array | None
    reward: float
    told: Told
    propensity: float | None
    number: int | None
    asked_at: float | None
    sides: Array
    sheet: bool = False
    ended: tuple[str, str] | None = None
    steps: Steps = ()
    stopped: str | None = None
    asked: Asked | None = None
    links: Links | None = None

    def trial(self, trials: Sequence[Trial], events: Mapping[str, int]) -> Trial | None:
        """Returns the trial of the study to which the row belongs, or None if the row is a new one.

        Args:
            trials: of the study.
            events: numbers of trials by the caller's own id.

        Raises:
            InvalidInput: the trial is of another point.
        """
        same = None if self.asked is None or self.asked.event is None else events.get(self.asked.event)
        if same is not None:
            return self._of_event(trials[same])
        if self.number is None or self.number >= len(trials):
            if self.number is not None and (self.sheet or self.ended is not None):
                raise InvalidInput(f"the study has no trial {self.number}. A row without `number` is a new trial.")
            if self.decision is None:
                raise InvalidInput(
                    f"the study has no trial {self.number}, and no column has its parameters or its point."
                )
            return None
        known = trials[self.number]
        if self.asked_at is not None and abs(self.asked_at - known.asked_at) > rounding(self.asked_at):
            if self.ended is not None:
                raise InvalidInput(
                    f"trial {known.number} was asked at another time. Usually the file is of another study."
                )
            return None
        failed = self.ended is not None and self.ended[0] == FAILED
        if not self.is_at(known) and (not self.sheet or failed):
            where = known.point.tolist() if known.parameters is None else known.parameters
            if self.sheet:
                raise InvalidInput(
                    f"trial {known.number} failed at other values than asked, {shown(where)}, and a record has "
                    "failures of what was asked alone. Put the values asked back, or leave its value empty."
                )
            raise InvalidInput(
                f"trial {known.number} was asked at {shown(where)}"
                + ("" if known.context is None else " and its context")
                + f", and the row is of another point. Usually the file is of another study, or was edited. {AS_NEW}"
            )
        return known

    def _of_event(self, known: Trial) -> Trial:
        if not self.is_at(known):
            raise InvalidInput(
                f"the event {shown(known.event)} is trial {known.number} already, of another point or context. An "
                "event is the id of one decision. If the column has kinds of events, rename it."
            )
        return known

    def is_at(self, known: Trial) -> bool:
        """Returns whether the row is of the point and context of a trial."""
        return is_at(self.decision, self.context, self.sides, known)

    def repeats(self, known: Trial) -> bool:
        """Returns whether a trial has this answer already, but for the digits that a spreadsheet rounds away."""
        told, metrics = self.told, known.metrics
        return (
            known.reward is not None
            and all(map(close, (self.reward, *(other.value for other in told.others)), known.values or ()))
            and all(std is None or close(std, now) for std, now in zip(_stds(told), _stds(known), strict=True))
            and (told.constraints is None or close(told.constraints, known.constraints))
            and (told.plays is None or told.plays.times == known.times)
            and all(close(value, metrics.get(name)) for name, value in told.measured)
        )


def is_at(decision: Decision | None, context: Array | None, units: Array, known: Trial) -> bool:
    """Returns whether a point and a context are those of a trial, as far as they are given."""
    of_contexts = len(units) - len(known.point)
    same = context is None or close(context, known.context, ROUNDED * units[:of_contexts])
    if not same or decision is None:
        return same
    near = ROUNDED * units[of_contexts:]
    return close(decision.point, known.point, near) if decision.arm is None else decision.arm == known.arm


def _stds(answer: Told | Trial) -> list[float | None]:
    return [answer.std, *(other.std for other in answer.others)]


def close(told: Any, known: Any, most: Any = None) -> bool:
    """Returns whether numbers are equal up to rounding, by a share of them or by `most`."""
    if known is None or np.shape(told) != np.shape(known):
        return False
    return bool((np.abs(told - known) <= (ROUNDED * np.abs(known) if most is None else most)).all())


def rounding(time: float) -> float:
    """Returns the seconds by which a spreadsheet may have rounded a time: a unit of its last digit."""
    exponent = Decimal(repr(time)).normalize().as_tuple().exponent
    return 10.0**exponent if isinstance(exponent, int) else 0.0
