"""The fits of one output: which fits are due, and which are on record."""

from __future__ import annotations

import math
from typing import NamedTuple, final

import numpy as np

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
class Fits(Copyable):
    """The fits of one output in a run, for a policy that learns its kernel.

    A fit is made once, for a decision, and goes on record with it. A replay reads the fit from the record.

    Args:
        policy: the policy of the output.
        refit: the schedule of fits.
        seed: the seed of the run.
        index: 0 for the reward, j for constraint j.

    Attributes:
        made: fits by the numbers of the trials that they saw and the multipliers then. Copies share them.
        count: number of the last fit that was due since the last restart.
    """

    def __init__(self, policy: Policy, refit: Refit, *, seed: int, index: int) -> None:
        self._policy, self._refit, self._seed, self._index = policy, refit, seed, index
        self.made: dict[tuple[tuple[int, ...], bytes], Refitted] = {}
        self.count = 0
        self._forgotten = 0  # answers that the memory forgot since the last restart
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
        self._new = None

    def forget_before(self, first: int, data: TrainingData) -> None:
        """Counts the answers before number `first`, which the data are about to forget."""
        self._forgotten += sum(number < first and self._sees(number, data) for number in data.posterior.entries)

    def update(self, data: TrainingData, when: When) -> bool:
        """Makes the fit that is due, or reads the one on record. Returns whether the posterior was rebuilt."""
        before = data.posterior.begun
        if when.fits is not None:
            self._read(data, when.fits)
        else:
            self._make(data)
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
        if data.outcomes.count < self._wanted:
            return
        refit, seen = self._refit, self._seen(data)
        answers = self._forgotten + len(seen)
        due = max(refit.fits(answers), self.count)
        self._wanted = data.outcomes.count + (0 if refit.outputs == "own" else refit.seen_by(due + 1) - answers)
        if due == self.count:
            return
        self.count = due
        first = seen[: max(refit.seen_by(due) - self._forgotten, 0)]
        if due < self._last or due <= self._recorded or not first:
            return
        self._new, self._new_is_past = Fit(self._index, due, self._fitted(first, data).plain()), False
        data.rebuild(*Refitted.of(self._new.values))  # from plain values, as every reader of the record does

    def _seen(self, data: TrainingData) -> list[Trial]:
        """Returns the trials that a fit may see."""
        entries = data.posterior.entries
        if self._refit.outputs == "own":
            everything = {number: entry.trial for number, entry in entries.items()} | data.pending.open
            return [everything[number] for number in sorted(everything)]
        return [entry.trial for number, entry in entries.items() if self._sees(number, data)]

    def _fitted(self, trials: list[Trial], data: TrainingData) -> Refitted:
        policy = self._policy
        key = (tuple(trial.number for trial in trials), data.multipliers.tobytes())
        if self._refit.outputs == "own" or key not in self.made:
            self.made[key] = self._refit(
                policy.kernel,
                np.array([row_of(trial) for trial in trials]),
                np.array([data.value(trial) for trial in trials]),
                policy.sides,
                noise=math.sqrt(policy.regularization),
                seed=self._seed,
                prior_mean=policy.prior_mean,
            )
        return self.made[key]

    def _sees(self, number: int, data: TrainingData) -> bool:
        return self._refit.outputs == "own" or data.pending.is_answer(number)
