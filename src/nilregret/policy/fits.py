"""The fits of one output: which fits are due, and which are on record."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable
from ..slots.refit import Refit, Refitted
from ..storage.record import Event, Trial
from ..storage.trial import Fit
from .engines import row_of
from .policy import Policy
from .training_data import TrainingData

FitsOnRecord = tuple[Fit, ...]  # fits that came into force with a decision


class When(NamedTuple):
    """The decision for which a state is updated.

    Attributes:
        past: whether the decision is on record.
        fits: fits that came into force with the decision. None if the record does not say.
    """

    past: bool = False
    fits: FitsOnRecord | None = None


NOW = When()


@final
@dataclass(frozen=True)
class FitJob:
    """A fit that is due, with a copy of the data that it sees.

    A call makes the fit, in any thread or process.

    Attributes:
        channel: 0 for the reward, j for constraint j.
        number: 1, 2, ... since the memory was last cut.
        restarts: number of restarts of the memory before it.
        multipliers: those by which rewards are charged, as bytes.
        answers: rewards and noise of the trials that the fit sees, by number. The reward of an imputed one is None.
        fitted: makes the fit.
    """

    channel: int
    number: int
    restarts: int
    multipliers: bytes
    answers: dict[int, tuple[float | None, float | None]]
    fitted: Callable[[], Refitted]

    def __call__(self) -> Fit:
        """Makes the fit."""
        return Fit(self.channel, self.number, self.fitted().plain())


class LateFits:
    """Fits that are made apart from decisions. Each comes into force with the first decision after it is ready.

    All states of a study in a process share it: a state that is rebuilt finds the same fits.

    Attributes:
        ready: the last fit that was made for each output, with its job, by channel.
    """

    def __init__(self) -> None:
        self.ready: dict[int, tuple[FitJob, Fit]] = {}


@final
class Fits(Copyable):
    """The fits of one output in a run, for a policy that learns its kernel.

    A fit is made once, for a decision, and goes on record with it. A replay reads the fit from the record.

    Args:
        policy: the policy of the output.
        refit: the schedule of fits.
        seed: the seed of the run.
        index: 0 for the reward, j for constraint j.
        late: fits that are made apart from decisions. None if a decision makes the fit that is due.

    Attributes:
        made: fits by the numbers of the trials that they saw and the multipliers then. Copies share them.
        count: number of the last fit that was due since the last restart.
    """

    def __init__(self, policy: Policy, refit: Refit, *, seed: int, index: int, late: LateFits | None = None) -> None:
        self._policy, self._refit, self._seed, self._index, self._late = policy, refit, seed, index, late
        self.made: dict[tuple[tuple[int, ...], bytes], Refitted] = {}
        self.count = self._restarts = 0
        self._forgotten = 0  # answers that the memory forgot since the last restart
        self._held_from = 0  # number before which the memory forgot all trials
        self._wanted = 0  # number of outcomes before which no fit is due, so that rounds need not count answers
        self._last = 0  # earlier fits are neither made nor read, because the same replay brings a later one
        self._recorded = 0  # fits up to this number are on record, so the replay does not make them
        self._new: Fit | None = None  # in force, and not on record
        self._new_is_past = False  # whether a past decision was made under `_new`

    def plan_replay(self, events: list[Event], data: TrainingData, waiting: list[Trial] | None) -> None:
        """Finds the last fit of a replay. Earlier fits are skipped, since each fit starts anew.

        Args:
            events: the events of the replay.
            data: the training data before the replay.
            waiting: outcomes that the data have not learned. None if answers to come are not counted.
        """
        policy = self._policy
        asked = [i for i, event in enumerate(events) if event.kind == "asked"]
        known = policy.plain or (policy.foreseeable and self._refit.outputs != "own")
        if len(events) < 2 or not asked or not known:  # the answers that will count, or that fits will see, are unknown
            return
        given = (fit for i in reversed(asked) for fit in events[i].trial.fits or () if fit.channel == self._index)
        self._last = self._recorded = next((fit.number for fit in given), 0)
        if waiting is not None and events[asked[-1]].trial.fits is None:  # older versions did not record fits
            told = [e for e in events[: asked[-1]] if e.kind == "told" and e.trial.reward is not None]
            waited = [trial for trial in waiting if trial.reward is not None]
            answers = sum(map(data.pending.is_answer, data.posterior.entries))
            self._last = max(self._last, self._refit.fits(answers + len(waited) + len(told)))

    def end_replay(self) -> None:
        """Ends what `plan_replay` began."""
        self._last = self._recorded = 0

    @property
    def unrecorded(self) -> FitsOnRecord:
        """Fits in force for the next decision that are not on record."""
        return () if self._new is None else (self._new,)

    def restart(self) -> None:
        """Forgets all answers."""
        self.count = self._forgotten = self._wanted = 0
        self._restarts += 1
        self._new = None

    def forget_before(self, first: int, data: TrainingData) -> None:
        """Counts the answers before number `first`, which the data are about to forget."""
        self._held_from = first
        self._forgotten += sum(number < first and self._sees(number, data) for number in data.posterior.entries)

    def update(self, data: TrainingData, when: When) -> bool:
        """Makes the fit that is due, or reads the one on record. Returns whether the posterior was rebuilt."""
        before = data.posterior.begun
        if when.fits is not None:
            self._read(data, when.fits)
        else:
            if self._late is None or when.past:
                self._make(data)
            else:
                self._take(data, self._late)
            self._new_is_past = self._new_is_past or when.past
            if self._new is not None and self._new_is_past and not when.past:
                # The fit was made in the replay of an older record. It goes on record with this decision.
                self._new_is_past = False
                data.rebuild(*Refitted.of(self._new.values))
        return data.posterior.begun != before

    def _read(self, data: TrainingData, fits: FitsOnRecord) -> None:
        new, self._new = None if self._new_is_past else self._new, None
        self._new_is_past = False
        for fit in fits:
            if fit.channel == self._index and fit != new:  # this very state may have made the fit
                self.count, self._wanted = fit.number, 0
                if fit.number >= self._last:
                    data.rebuild(*Refitted.of(fit.values))

    def _make(self, data: TrainingData) -> None:
        due = self._due(data)
        if due is None:
            return
        self.count = due
        if due < self._last or due <= self._recorded or not (trials := self._first(due, data)):
            return
        key = tuple(trial.number for trial in trials), data.multipliers.tobytes()
        if self._refit.outputs == "own" or key not in self.made:
            self.made[key] = self._job(due, trials, data).fitted()
        self._enforce(Fit(self._index, self.count, self.made[key].plain()), data)

    def _enforce(self, fit: Fit, data: TrainingData) -> None:
        self._new, self._new_is_past = fit, False
        data.rebuild(*Refitted.of(fit.values))  # from plain values, as every reader of the record does

    def _take(self, data: TrainingData, late: LateFits) -> None:
        """Lets a fit come into force that is ready, unless its data have been dropped or corrected since."""
        if self._due(data) is None or self._index not in late.ready:
            return
        job, fit = late.ready[self._index]
        if job.number <= self.count or job.restarts != self._restarts:
            return
        entries = data.posterior.entries
        held = {number: answer for number, answer in job.answers.items() if number >= self._held_from}
        same = all(
            number in entries and (answer[0] is None or answer == _answer(entries[number].trial))
            for number, answer in held.items()
        )
        if held and same and job.multipliers == data.multipliers.tobytes():
            self.count = fit.number
            self._enforce(fit, data)

    def may_be_due(self, data: TrainingData, more: int) -> bool:
        """Returns whether a fit may be due after `more` outcomes that the data have not learned."""
        return data.outcomes.count + more >= self._wanted

    def job(self, data: TrainingData) -> FitJob | None:
        """Returns the fit that is due and not in force, or None."""
        due = self._due(data)
        trials = [] if due is None else self._first(due, data)
        return self._job(due, trials, data) if due is not None and trials else None

    def _due(self, data: TrainingData) -> int | None:
        """Returns the number of the last fit that is due, or None if it is in force."""
        if data.outcomes.count < self._wanted:
            return None
        refit, pending = self._refit, data.pending
        all_count = refit.outputs != "own" and not (pending.open or pending.dropped)
        answers = self._forgotten + len(data.posterior.entries if all_count else self._seen(data))
        due = max(refit.fits(answers), self.count)
        if due == self.count:
            more = 0 if refit.outputs == "own" else refit.seen_by(due + 1) - answers
            self._wanted = data.outcomes.count + more
            return None
        return due

    def _first(self, number: int, data: TrainingData) -> list[Trial]:
        """Returns the trials that the fit of this number sees, which may be none."""
        return self._seen(data)[: max(self._refit.seen_by(number) - self._forgotten, 0)]

    def _job(self, number: int, trials: list[Trial], data: TrainingData) -> FitJob:
        policy = self._policy
        fitted = partial(
            self._refit,
            policy.kernel,
            np.array([row_of(trial) for trial in trials]),
            np.array([data.value(trial) for trial in trials]),
            policy.sides,
            noise=math.sqrt(policy.regularization),
            seed=self._seed,
            prior_mean=policy.prior_mean,
            **({} if all(trial.std is None for trial in trials) else {"stds": _stds(trials)}),
        )
        answers = {trial.number: _answer(trial) for trial in trials}
        return FitJob(self._index, number, self._restarts, data.multipliers.tobytes(), answers, fitted)

    def _seen(self, data: TrainingData) -> list[Trial]:
        """Returns the trials that a fit may see."""
        entries = data.posterior.entries
        if self._refit.outputs == "own":
            everything = {number: entry.trial for number, entry in entries.items()} | data.pending.open
            return [everything[number] for number in sorted(everything)]
        return [entry.trial for number, entry in entries.items() if self._sees(number, data)]

    def _sees(self, number: int, data: TrainingData) -> bool:
        return self._refit.outputs == "own" or data.pending.is_answer(number)


def _answer(trial: Trial) -> tuple[float | None, float | None]:
    return trial.reward, trial.std


def _stds(trials: list[Trial]) -> Array:
    """Returns the noise of each trial as told, `(n,)`, nan where it is unknown."""
    return np.array([math.nan if trial.std is None else trial.std for trial in trials])
