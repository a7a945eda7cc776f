"""The record: every trial there was, in the order in which it was asked and told.

It keeps what was observed, never what was made of it; everything else a study knows is recomputed from it. One counter
numbers all that happens in a study: a trial's `asked_order` says what was known when it was decided (everything with a
smaller order), `told_order` when its answer came in. Nothing that was recorded is lost: a correction keeps what it
corrects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import NamedTuple, overload

from .._utils.checks import Array, many, shown
from .._utils.errors import StorageError, TrialError
from .trial import EventKind, Trial

__all__ = ["Event", "Record", "Trial", "describe_answer"]


class Event(NamedTuple):
    """One thing that happened: a trial was asked for, answered, given up or corrected, or its constraint values came.

    The trial of an "asked" event is as it was then: whoever replays a record must not see the answer before it came.
    """

    order: int
    kind: EventKind
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
        states = [trial.state for trial in self._trials]
        counts = [f"{states.count('observed')} observed", f"{states.count('pending')} pending"]
        counts += [f"{states.count('failed')} failed"]
        counts += [f"{states.count('abandoned')} abandoned"] * ("abandoned" in states)
        return f"Record({many(len(self), 'trial')}: {', '.join(counts)})"

    # -- taking in -----------------------------------------------------------------------------------------------

    def take(self, trial: Trial) -> Event:
        """Take in a trial of which one thing is new: that is the event."""
        if trial.number == len(self._trials):
            self._trials.append(trial)
        else:
            self._trials[trial.number] = trial
        if trial.constraints_order is not None or trial.abandoned is not None or trial.corrected:
            kind, order = max(trial.happened(), key=lambda happened: happened[1])
            event = Event(order, kind, trial)
        elif trial.told_order is None:
            event = Event(trial.asked_order, "asked", trial)
        else:
            event = Event(trial.told_order, "told", trial)
        self.order = event.order
        return event

    def apply(self, changed: Iterable[Trial]) -> list[Event]:
        """Take in trials that are new or of which something is new; returns what happened, in order."""
        events: list[Event] = []
        trials, known = self._trials, self.order
        for trial in changed:
            number, unusual = trial.number, trial.abandoned is not None or trial.corrected
            if number > len(trials):
                raise StorageError(
                    f"The record has no trial {len(trials)}, but trial {number}: it has been damaged. "
                    "Restore a copy of the storage."
                )
            fresh = number == len(trials)
            if fresh:
                trials.append(trial)
            else:
                trials[number] = trial
            if unusual or trial.constraints_order is not None:
                events += [Event(at, kind, trial.as_of(at)) for kind, at in trial.happened() if at > known]
                continue
            if fresh and trial.told_order != trial.asked_order:
                events.append(Event(trial.asked_order, "asked", trial.asked()))
            if trial.told_order is not None:
                events.append(Event(trial.told_order, "told", trial))
        if len(events) > 1:
            events.sort(key=_order)
        self.order = events[-1].order if events else known
        return events

    def take_back(self, order: int, before: Mapping[int, Trial | None]) -> None:
        """Be again as after the event of this order.

        Args:
            order: of an earlier event.
            before: the trials that have changed since, as they were then; None for those that are new.
        """
        for number in sorted(before, reverse=True):
            known = before[number]
            if known is None:
                del self._trials[number:]
            else:
                self._trials[number] = known
        self.order = order

    def righted(self) -> list[Event]:
        """All that happened, in order, as if every answer that was corrected had been right in the first place."""
        return Record().apply([trial.righted() for trial in self._trials])

    def as_of(self, order: int) -> Record:
        """The record as it was after the event of this order."""
        earlier = Record()
        earlier._trials = [trial.as_of(order) for trial in self._trials if trial.asked_order <= order]
        earlier.order = order
        return earlier

    # -- finding -------------------------------------------------------------------------------------------------

    def unlimited(self, trial_or_number: Trial | int) -> Trial:
        """The trial meant, whose constraint values are not known; errors if there is none, or they are."""
        trial = self.found(trial_or_number)
        if trial.state == "failed":
            raise TrialError(
                f"Trial {trial.number} was told to have failed, and nothing is learned from it now; nothing was "
                "recorded. Usually the trial is not the one that was meant, or failed in its reward alone.",
                advice="Tell constraint values before `fail`, or correct it by `tell(trial, reward, constraints=..., "
                "revise=True)`.",
                topic="failed",
            )
        if trial.constraints is not None:
            raise TrialError(
                f"The constraint values of trial {trial.number} were told already ({trial.constraints.tolist()}). "
                "Usually a worker reported twice.",
                advice="`tell(..., revise=True)` corrects what was told.",
                topic="answered",
            )
        return trial

    def unanswered(self, trial_or_number: Trial | int, answer: str) -> Trial:
        """The trial meant, pending or abandoned; errors if there is none of that number, or its outcome is known.

        Args:
            trial_or_number: as `ask` returned it, or its number.
            answer: what is to be told of it now, for the error.
        """
        trial = self.found(trial_or_number)
        if not trial.open:
            raise TrialError(
                f"Trial {trial.number} was told already ("
                f"{describe_answer(trial.reward, trial.constraints, trial.reason)}), and now another answer comes "
                f"({answer}); nothing was recorded. Usually two workers had the same trial.",
                advice="`tell(..., revise=True)` corrects an answer and keeps the first; to record another reward of "
                "the same point use `add`.",
                topic="answered",
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
                f"There is no trial {shown(number)}: this study has {have}.",
                advice="Pass the trial that `ask` returned, or its number; for a point never asked for use `add`.",
                topic="no_trial",
            )
        trial = self._trials[int(number)]
        if given is not None and given is not trial and given.point.tobytes() != trial.point.tobytes():
            raise TrialError(
                f"Trial {number} of this study is at {trial.point.tolist()}, the one given is at "
                f"{given.point.tolist()}: it was asked from another study."
            )
        return trial


def describe_answer(reward: float | None, constraints: Array | None, reason: str | None = None) -> str:
    """An answer in words."""
    if reason is not None:
        return f"failed: {shown(reason)}"
    facts = [] if reward is None else [f"reward {reward!r}"]
    return ", ".join(facts + ([] if constraints is None else [f"constraints {constraints.tolist()}"]))


def _order(event: Event) -> int:
    return event.order
