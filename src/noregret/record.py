"""The record: every trial there was, in the order in which it was asked and told.

It keeps what was observed, never what was made of it; everything else a study knows is recomputed from it. A trial
goes from pending to observed or failed once and never back. One counter numbers all that happens in a study: a
trial's `asked_order` says what was known when it was decided (everything with a smaller order), `told_order` when its
answer came in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, final, overload

import numpy as np

from .checks import Array, frozen, shown
from .errors import StorageError, TrialError

TrialState = Literal["pending", "observed", "failed"]


class _Fields(NamedTuple):
    number: int
    point: Array
    arm: int | None
    settings: tuple[tuple[str, Any], ...] | None
    asked_order: int
    asked_at: float
    context: Array | None = None
    explored: bool = False
    state: TrialState = "pending"
    reward: float | None = None
    reason: str | None = None
    told_order: int | None = None
    told_at: float | None = None
    constraints: Array | None = None
    context_settings: tuple[tuple[str, Any], ...] | None = None
    constraints_order: int | None = None


def _listed(numbers: Array | None) -> list[float] | None:
    return None if numbers is None else [float(x) for x in numbers]


@final
class Trial(_Fields):  # a tuple: two are made in each round, and a frozen dataclass takes five times as long
    """One decision and, once it is there, its answer.

    Attributes:
        number: 0, 1, 2, ... in the order of asking.
        point: coordinates as the kernel sees them, `(d,)`, read-only.
        arm: index into the `Arms`, or None on other domains.
        settings: (name, value) of each parameter where the domain has named ones, else None; see `parameters`.
        context: context it was decided for, or None.
        explored: True for a forced uniform round.
        state: "pending", "observed" or "failed".
        reward: the reward told, or None.
        constraints: the constraint values told, `(m,)`, read-only, or None.
        context_settings: (name, value) of each parameter of the context where the contexts have named ones, else None;
            see `context_parameters`.
        reason: why it failed, or None.
        asked_order: position among all events of the study; equal to `told_order` for a point never asked for.
        asked_at: Unix time in seconds.
        told_order: position of the answer among all events, or None while pending.
        told_at: Unix time of the answer in seconds, or None.
        constraints_order: position among all events of the constraint values that were told by themselves, before or
            after the reward; None where they came with it, or are not known.
    """

    __slots__ = ()

    @property
    def parameters(self) -> dict[str, Any] | None:
        """The named parameters, a fresh dict, or None where the domain has none."""
        return None if self.settings is None else dict(self.settings)

    @property
    def feasible(self) -> bool | None:
        """Whether every constraint value told for it is at most 0; None where none was told."""
        return None if self.constraints is None else bool(self.constraints.max(initial=0.0) <= 0.0)

    @property
    def context_parameters(self) -> dict[str, Any] | None:
        """The named parameters of the context, a fresh dict, or None where it has none."""
        return None if self.context_settings is None else dict(self.context_settings)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and self._key() == other._key()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __repr__(self) -> str:
        """What a reader of the record asks for; orders, times and what is None are left out."""
        facts: dict[str, Any] = {"context": self.context_parameters or _listed(self.context), "arm": self.arm}
        facts |= {"parameters": self.parameters} if self.settings is not None else {"point": _listed(self.point)}
        facts |= {"reward": self.reward, "constraints": _listed(self.constraints), "reason": self.reason}
        words = [str(self.number), self.state] + ["explored"] * self.explored
        return (
            f"Trial({', '.join(words + [f'{name}={value!r}' for name, value in facts.items() if value is not None])})"
        )

    def __hash__(self) -> int:
        return hash((self.number, self.state))

    def _key(self) -> tuple[Any, ...]:
        return (
            self.number, self.point.tobytes(), self.arm, self.explored, self.state, self.reward, self.reason,
            self.asked_order, self.asked_at, self.told_order, self.told_at,
            None if self.context is None else self.context.tobytes(),
            None if self.constraints is None else self.constraints.tobytes(), self.constraints_order,
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        # Arrays come out of a pickle writable, and a record does not change.
        return _restored, tuple(self)

    def asked(self) -> Trial:
        """This trial as it was when it was asked for, its outcome unknown."""
        if self.state == "pending":
            return self
        return Trial(
            self.number, self.point, self.arm, self.settings, self.asked_order, self.asked_at, self.context,
            self.explored,
        )  # fmt: skip

    def as_of(self, order: int) -> Trial:
        """This trial as it was after the event of this order."""
        trial = self
        if trial.told_order is not None and trial.told_order > order:
            known = None if trial.constraints_order is None else trial.constraints
            trial = trial._replace(
                state="pending", reward=None, reason=None, told_order=None, told_at=None, constraints=known
            )
        if trial.constraints_order is not None and trial.constraints_order > order:
            trial = trial._replace(constraints=None, constraints_order=None)
        return trial

    def answered(self, *, reward: float, order: int, time: float, constraints: Array | None = None) -> Trial:
        """This trial with its reward, and the constraint values that came with it; those known before stay."""
        return Trial(
            self.number, self.point, self.arm, self.settings, self.asked_order, self.asked_at, self.context,
            self.explored, "observed", reward, None, order, time,
            self.constraints if constraints is None else constraints, self.context_settings, self.constraints_order,
        )  # fmt: skip

    def limited(self, *, constraints: Array, order: int) -> Trial:
        """This trial with its constraint values, told by themselves."""
        return self._replace(constraints=constraints, constraints_order=order)

    def failed(self, *, reason: str, order: int, time: float) -> Trial:
        """This trial, marked as one that will never have a reward."""
        return Trial(
            self.number, self.point, self.arm, self.settings, self.asked_order, self.asked_at, self.context,
            self.explored, "failed", None, reason, order, time, self.constraints, self.context_settings,
            self.constraints_order,
        )  # fmt: skip


def _restored(*values: Any) -> Trial:
    for value in values:
        if isinstance(value, np.ndarray):
            frozen(value)
    return Trial(*values)


class Event(NamedTuple):
    """One thing that happened: a trial was asked for, its outcome became known, or its constraint values alone did."""

    order: int
    kind: Literal["asked", "told", "limited"]
    trial: Trial


class Record(Sequence[Trial]):
    """The trials of a study by number, append-only."""

    def __init__(self) -> None:
        self._trials: list[Trial] = []
        self.order = 0  # of the last event

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        return self._trials[index]

    def __repr__(self) -> str:
        pending = sum(trial.state == "pending" for trial in self._trials)
        failed = sum(trial.state == "failed" for trial in self._trials)
        return (
            f"Record({len(self)} trials: {len(self) - pending - failed} observed, {pending} pending, {failed} failed)"
        )

    def take(self, trial: Trial) -> Event:
        """Take in a trial that has just been asked for, added or ended: what happened is one event."""
        if trial.number == len(self._trials):
            self._trials.append(trial)
        else:
            self._trials[trial.number] = trial
        if trial.constraints_order is not None and trial.constraints_order > (trial.told_order or -1):
            event = Event(trial.constraints_order, "limited", trial)
        elif trial.told_order is None:
            event = Event(trial.asked_order, "asked", trial)
        else:
            event = Event(trial.told_order, "told", trial)
        self.order = event.order
        return event

    def apply(self, changed: Iterable[Trial]) -> list[Event]:
        """Take in trials that are new or newly answered; returns what happened, in order.

        An "asked" event has the trial as it was then: whoever replays a record must not see the answer before it came.
        """
        events: list[Event] = []
        for trial in changed:
            if trial.constraints_order is not None:
                events += self._apply_parts(trial)
                continue
            if trial.number > len(self._trials):
                raise StorageError(
                    f"The record has no trial {len(self._trials)}, but trial {trial.number}: it has been damaged. "
                    "Restore a copy of the storage."
                )
            if trial.number == len(self._trials):
                self._trials.append(trial)
                if trial.told_order != trial.asked_order:
                    events.append(Event(trial.asked_order, "asked", trial.asked()))
            else:
                self._trials[trial.number] = trial
            if trial.told_order is not None:
                events.append(Event(trial.told_order, "told", trial))
        if len(events) > 1:
            events.sort(key=lambda event: event.order)
        self.order = events[-1].order if events else self.order
        return events

    def _apply_parts(self, trial: Trial) -> list[Event]:
        """What happened to a trial whose constraint values were told by themselves, as far as it is news."""
        before = self._trials[trial.number] if trial.number < len(self._trials) else None
        if before is None:
            self._trials.append(trial)
        else:
            self._trials[trial.number] = trial
        found: list[tuple[Literal["asked", "told", "limited"], int | None]] = [
            ("asked", trial.asked_order if before is None and trial.told_order != trial.asked_order else None),
            ("told", trial.told_order if before is None or before.told_order is None else None),
            ("limited", trial.constraints_order if before is None or before.constraints_order is None else None),
        ]
        return [Event(order, kind, trial.as_of(order)) for kind, order in found if order is not None]

    def unlimited(self, trial_or_number: Trial | int) -> Trial:
        """The trial meant, whose constraint values are not known; errors if there is none, or they are."""
        trial = self.found(trial_or_number)
        if trial.state == "failed":
            raise TrialError(f"Trial {trial.number} was told to have failed: its constraint values teach nothing now.")
        if trial.constraints is not None:
            raise TrialError(
                f"The constraint values of trial {trial.number} were told already ({trial.constraints.tolist()}); the "
                "record is append-only. Usually a worker reported twice."
            )
        return trial

    def pending(self, trial_or_number: Trial | int) -> Trial:
        """The pending trial meant; errors if there is none of that number or its outcome is known already."""
        trial = self.found(trial_or_number)
        if trial.state != "pending":
            outcome = f"reward {trial.reward!r}" if trial.state == "observed" else f"failed: {shown(trial.reason)}"
            raise TrialError(
                f"Trial {trial.number} was told already ({outcome}); the record is append-only. Usually a worker "
                "reported twice. To record another reward of the same point use `add`."
            )
        return trial

    def found(self, trial_or_number: Trial | int) -> Trial:
        """The trial meant; errors if there is none of that number."""
        given = trial_or_number if type(trial_or_number) is Trial else None
        number = trial_or_number if given is None else given.number
        if type(number) is not int and (isinstance(number, bool) or not isinstance(number, Integral)):
            number = -1
        if not 0 <= number < len(self._trials):
            number = trial_or_number if given is None else given.number
            have = f"trials 0 .. {len(self) - 1}" if len(self) else "no trial yet"
            raise TrialError(
                f"There is no trial {shown(number)}: this study has {have}. "
                "Pass the trial that `ask` returned, or its number; for a point never asked for use `add`."
            )
        trial = self._trials[int(number)]
        if given is not None and given is not trial and given.point.tobytes() != trial.point.tobytes():
            raise TrialError(
                f"Trial {number} of this study is at {trial.point.tolist()}, the one given is at "
                f"{given.point.tolist()}: it was asked from another study."
            )
        return trial
