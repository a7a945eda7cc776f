"""The record of a study: every trial, in the order in which it was asked and told.

The record holds observations, and everything else that a study knows is recomputed from them. One counter numbers all
events of a study. A trial's `asked_order` says what was known when it was decided: every event with a smaller order.
`told_order` says when its answer came. No recorded fact is lost: a correction keeps the corrected answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from typing import NamedTuple, overload

from .._utils.checks import Array, many, shown
from ..errors import StorageError, TrialError
from .changes import StudyChange
from .early_trials import EarlyTrials
from .trial import NO_CURVE, EventKind, Measured, Other, Report, Trial

__all__ = ["Event", "Record", "Trial", "describe_answer", "held_from"]


class Event(NamedTuple):
    """An event: a trial was asked for, answered, abandoned or corrected, or its constraint values came.

    Attributes:
        order: 1, 2, ...
        kind: of the event.
        trial: of an "asked" event, as it was then: a replay must not see the answer before it came.
    """

    order: int
    kind: EventKind
    trial: Trial


class Record(Sequence[Trial]):
    """The trials of a study by number. Trials are only appended and updated.

    Attributes:
        trials: the trials by number, a list that only the record changes. Of a long record see `EarlyTrials`.
        order: the order of the last event.
        changes: the changes of the study that are no events of trials, in order.
        events: the number of the trial of each id that a caller gave (`Study.ask(event=)`).
    """

    def __init__(self) -> None:
        self.trials: list[Trial] | EarlyTrials = []
        self.changes: tuple[StudyChange, ...] = ()
        self.order = 0  # The order of the last event.
        self.events: dict[str, int] = {}  # The trial of each id that a caller gave.

    def __len__(self) -> int:
        return len(self.trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self.trials)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Trial]: ...
    def __getitem__(self, index: int | slice) -> Trial | Sequence[Trial]:
        return self.trials[index]

    @property
    def at_hand(self) -> Sequence[Trial]:
        """The trials that are held in memory: all of them, or the recent ones of a long record."""
        return self.trials if isinstance(self.trials, list) else self.trials.at_hand

    def __repr__(self) -> str:
        if not isinstance(self.trials, list):
            return f"Record({many(len(self), 'trial')}, most in the storage alone)"
        states = [trial.state for trial in self.trials]
        counts = [f"{states.count('observed')} observed", f"{states.count('pending')} pending"]
        counts += [f"{states.count('failed')} failed"]
        counts += [f"{states.count(each)} {each}" for each in ("stopped", "abandoned") if each in states]
        return f"Record({many(len(self), 'trial')}: {', '.join(counts)})"

    # -- taking in -----------------------------------------------------------------------------------------------

    def update(self, trial: Trial, kind: EventKind) -> Event:
        """Adds or updates a trial to which an event has just happened, and returns the event.

        The reports of a new trial come right after the event.
        """
        at = self.order + 1
        self.order = at if trial.curve is NO_CURVE else max([at, *(report.order for report in trial.curve[-1:])])
        if trial.visit is not None:
            self._note_event(trial)
        self.trials[trial.number : trial.number + 1] = (trial,)
        return Event(at, kind, trial)

    def _note_event(self, trial: Trial) -> None:
        if trial.visit is not None and trial.visit.event is not None:
            self.events[trial.visit.event] = trial.number

    def report(self, trial: Trial) -> None:
        """Takes over a trial that has just made its last report."""
        self.order, self.trials[trial.number] = trial.curve[-1].order, trial

    def change(self, change: StudyChange) -> None:
        """Adds a change that has just happened."""
        self.order, self.changes = change.order, (*self.changes, change)

    def apply(
        self, changed: Iterable[Trial], changes: Sequence[StudyChange] = (), steps: Sequence[Report] = ()
    ) -> list[Event]:
        """Adds and updates trials, and returns their events in order. Changes and reports are no events of trials.

        Args:
            changed: new and changed trials, by number. Known reports may be missing in their curves.
            changes: new changes of the study.
            steps: new reports, in order.

        Raises:
            StorageError: a trial is missing.
        """
        events: list[Event] = []
        trials, known = self.trials, self.order
        for trial in changed if not steps else self._with_reports(changed, steps):
            number, unusual = trial.number, trial.abandoned is not None or trial.corrected
            if number > len(trials):
                raise StorageError(
                    f"The record has no trial {len(trials)}, but trial {number}: it has been damaged. "
                    "Restore a copy of the storage."
                )
            fresh = number == len(trials)
            if fresh:
                trials.append(trial)
                self._note_event(trial)
            else:
                if trials[number].curve and not trial.curve:
                    trial = trial._replace(curve=trials[number].curve)
                trials[number] = trial
            if trial.curve:
                self.order = max(self.order, trial.curve[-1].order)
            if unusual or trial.constraints_order is not None:
                events += [Event(at, kind, trial.as_of(at)) for kind, at in trial.events() if at > known]
                continue
            if fresh and trial.told_order != trial.asked_order:
                events.append(Event(trial.asked_order, "asked", trial.asked()))
            if trial.told_order is not None:
                events.append(Event(trial.told_order, "stopped" if trial.state == "stopped" else "told", trial))
        if len(events) > 1:
            events.sort(key=_order)
        self.changes = (*self.changes, *changes)
        last = (each[-1].order for each in (events, changes, steps) if each)
        self.order = max([self.order, *last])
        return events

    def _with_reports(self, changed: Iterable[Trial], steps: Sequence[Report]) -> list[Trial]:
        """Returns the changed trials with their reports. Trials that have nothing but new reports are updated here."""
        given = {trial.number: trial for trial in changed}
        for report in steps:
            number, fresh = report.trial, report.trial in given
            trial = given[number] if fresh else self.trials[number]
            if fresh and not trial.curve and number < len(self.trials):
                trial = trial._replace(curve=self.trials[number].curve)
            (given if fresh else self.trials)[number] = trial.with_report(report)
        return list(given.values())

    def roll_back(self, order: int, before: Mapping[int, Trial | None]) -> None:
        """Restores the record as it was after an earlier event.

        Args:
            order: of that event.
            before: the trials that have changed since, as they were then, or None for new ones.
        """
        for number in sorted(before, reverse=True):
            known = before[number]
            if known is None:
                for trial in self.trials[number:]:
                    self.events.pop(trial.event or "", None)
                del self.trials[number:]
            else:
                self.trials[number] = known
        self.order, self.changes = order, _until(self.changes, order)

    def as_of(self, order: int) -> Record:
        """Returns the record as it was after the event of this order."""
        earlier = Record()
        earlier.trials = [trial.as_of(order) for trial in self.trials if trial.asked_order <= order]
        earlier.order, earlier.changes = order, _until(self.changes, order)
        for trial in earlier.trials:
            earlier._note_event(trial)
        return earlier

    # -- finding -------------------------------------------------------------------------------------------------

    def require_no_constraints(self, trial_or_number: Trial | int | str) -> Trial:
        """Returns a trial whose constraint values may still be told.

        Raises:
            TrialError: there is no such trial, it has failed, or its constraint values are known.
        """
        trial = self.require(trial_or_number)
        if trial.state in ("failed", "stopped"):
            was = "was told to have failed" if trial.state == "failed" else "was stopped"
            raise TrialError(
                f"Trial {trial.number} {was}, and nothing is learned from it now; nothing was "
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

    def require_open(self, trial_or_number: Trial | int | str, answer: str) -> Trial:
        """Returns a pending or abandoned trial.

        Args:
            trial_or_number: as `ask` returned it, or its number.
            answer: the new answer in words, for the error.

        Raises:
            TrialError: there is no such trial, or it has an answer.
        """
        trial = self.require(trial_or_number)
        if not trial.open:
            raise TrialError(
                f"Trial {trial.number} was told already ({answer_of(trial)}), and now another answer comes "
                f"({answer}); nothing was recorded. Usually two workers had the same trial, or a table was edited.",
                advice="`tell(..., revise=True)` corrects an answer and keeps the first; to record another reward of "
                "the same point use `add`.",
                topic="answered",
            )
        return trial

    def awaits(self, trial: object) -> bool:
        """Returns whether a trial is the one on record here, and has no answer there."""
        if type(trial) is not Trial or trial.told_order is not None or trial.number >= len(self.trials):
            return False
        return self.trials[trial.number] is trial

    def _of_event(self, event: str) -> Trial:
        if event not in self.events:
            have = f"trials 0 .. {len(self) - 1}, none with" if len(self) else "no trial yet, and none with"
            raise TrialError(
                f"There is no trial {shown(event)}: this study has {have} this event. Usually it was asked of another "
                "study, or without `event`.",
                advice="Pass the id to `ask(event=...)` first.",
                topic="no_trial",
            )
        return self.trials[self.events[event]]

    def require(self, trial_or_number: Trial | int | str) -> Trial:
        """Returns a trial.

        Args:
            trial_or_number: as `ask` returned it, its number, or the id that the caller gave it.

        Raises:
            TrialError: the study has no such trial.
        """
        if type(trial_or_number) is str:
            return self._of_event(trial_or_number)
        given = trial_or_number if type(trial_or_number) is Trial else None
        number = trial_or_number if given is None else given.number
        if type(number) is not int and (isinstance(number, bool) or not isinstance(number, Integral)):
            number = -1
        if not 0 <= number < len(self.trials):
            number = trial_or_number if given is None else given.number
            have = f"trials 0 .. {len(self) - 1}" if len(self) else "no trial yet"
            raise TrialError(
                f"There is no trial {shown(number)}: this study has {have}.",
                advice="Pass the trial that `ask` returned, or its number; for a point never asked for use `add`.",
                topic="no_trial",
            )
        trial = self.trials[int(number)]
        other = given is not None and given is not trial and given.point.tobytes() != trial.point.tobytes()
        # Of a study whose space has changed, a trial may be given at its place in another space.
        if given is not None and other and (trial.settings is None or given.settings != trial.settings):
            raise TrialError(
                f"Trial {number} of this study is at {trial.point.tolist()}, the one given is at "
                f"{given.point.tolist()}: it was asked from another study."
            )
        return trial


def held_from(trials: Sequence[Trial], first: int) -> Sequence[Trial]:
    """Returns the trials from a number on. Of the early trials of a long record it returns those without an answer."""
    if not isinstance(trials, Record) or isinstance(trials.trials, list):
        return trials[first:]
    return [trial for trial in trials.at_hand if trial.number >= first]


def answer_of(trial: Trial) -> str:
    """Returns the answer of a trial in words."""
    if trial.state == "stopped":
        return f"stopped: {shown(trial.reason)}"
    return describe_answer(trial.reward, trial.constraints, trial.reason, trial.std, trial.measured, trial.others)


def require_running(known: Trial, now: str) -> None:
    """Raises `TrialError` if a trial has its answer, which nothing but another answer follows."""
    if not known.open:
        raise TrialError(
            f"Trial {known.number} was told already ({answer_of(known)}), and now {now}; nothing was recorded. Usually "
            "a worker went on after the end, or two workers had the same trial.",
            advice="Reports and a stop come before the answer.",
            topic="over",
        )


def describe_answer(
    reward: float | None, constraints: Array | None, reason: str | None = None, std: float | None = None,
    measured: Measured = (), others: tuple[Other, ...] = (),
) -> str:  # fmt: skip
    """Returns an answer in words."""
    if reason is not None:
        return f"failed: {shown(reason)}"
    facts = [] if reward is None else [f"reward {reward!r}"]
    if others:
        facts, std = [f"objectives {(reward, *(other.value for other in others))!r}"], None
    facts += [] if std is None else [f"std {std!r}"]
    facts += [] if constraints is None else [f"constraints {constraints.tolist()}"]
    return ", ".join(facts + [f"metrics {shown(dict(measured))}"] * bool(measured))


def _order(event: Event) -> int:
    return event.order


def _until(changes: tuple[StudyChange, ...], order: int) -> tuple[StudyChange, ...]:
    return tuple(change for change in changes if change.order <= order)
