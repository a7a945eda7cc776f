"""Which fits are due, of the first answers that count, on a schedule; and those that are on record."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np

from .._utils.copying import Copyable
from ..slots.refit import Refit, Refitted
from ..storage.record import Event, Trial
from ..storage.trial import Fit
from .engines import row_of
from .policy import Policy
from .training_data import Ledger

Spread = Callable[[], float | None]


Fitted = tuple[Fit, ...]  # what came into force with a decision


class When(NamedTuple):
    """Which decision is about to be made.

    Attributes:
        past: whether it is on record.
        fits: that came into force with it; None where nobody knows.
    """

    past: bool = False
    fits: Fitted | None = None


NOW = When()


class Learner(Copyable, ABC):
    """What the slot `refit` does in a run."""

    def plan(self, events: list[Event], ledger: Ledger, waiting: list[Trial] | None) -> None:
        """What a replay will bring: see `Fits`."""

    def planned(self) -> None:
        """What was planned for has come in."""

    def ask(self, trial: Trial, spread: Spread, ledger: Ledger) -> None:
        """A trial was asked for; `spread` gives half the width of the bounds there, None if it was forced."""

    def norm(self) -> float | None:
        """The bound on the norm under the kernel in use, where it is another than was told."""
        return None

    @property
    def news(self) -> Fitted:
        """What has come into force for the decision to come, and is not on record."""
        return ()

    @abstractmethod
    def restart(self) -> None:
        """Nothing that was seen counts any more."""

    @abstractmethod
    def forget_before(self, first: int, ledger: Ledger) -> None:
        """Trials before this one are about to count no more."""

    @abstractmethod
    def settle(self, ledger: Ledger, when: When) -> bool:
        """Do what is due; whether the kernel in use is another one now."""


@final
class Fits(Learner):
    """The fits of a run, for a policy that learns its kernel.

    A fit is made once, for a decision, and goes on record with it. A replay takes it from there.

    Args:
        policy: of the run.
        refit: of the policy.
        seed: of the run.
        channel: 0 for the reward, j for constraint j.

    Attributes:
        made: by the trials that a fit saw and the multipliers then; each is a pure function of these, and copies share
            them.
        count: fits that were due so far, since the last restart.
    """

    def __init__(self, policy: Policy, refit: Refit, *, seed: int, channel: int) -> None:
        self._policy, self._refit, self._seed, self._channel = policy, refit, seed, channel
        self.made: dict[tuple[tuple[int, ...], bytes], Refitted] = {}
        self.count = 0
        self._left = 0  # what fits would have seen and no longer counts, since the last restart
        self._wanted = 0  # answers heard before which none is due: mostly there is nothing to count
        self._last = 0  # fits before this one are neither made nor taken: another follows in the same replay
        self._known = 0  # how many of these are on record, and so are not made
        self._news: Fit | None = None  # in force, and not on record
        self._old = False  # whether that has decided before

    def plan(self, events: list[Event], ledger: Ledger, waiting: list[Trial] | None) -> None:
        """Where a replay brings several fits, only the last one is made or taken: each starts anew.

        Args:
            events: of the replay.
            ledger: before them.
            waiting: outcomes that are to be taken in; None where nobody counts which answers will come.
        """
        policy = self._policy
        asked = [i for i, event in enumerate(events) if event.kind == "asked"]
        known = policy.plain or (policy.foreseeable and self._refit.outputs != "own")
        if len(events) < 2 or not asked or not known:  # which answers will count, or what fits will see
            return
        given = (fit for i in reversed(asked) for fit in events[i].trial.fits or () if fit.channel == self._channel)
        self._last = self._known = next((fit.number for fit in given), 0)
        if waiting is not None and events[asked[-1]].trial.fits is None:  # of an older version, which did not say
            told = [e for e in events[: asked[-1]] if e.kind == "told" and e.trial.reward is not None]
            waited = [trial for trial in waiting if trial.reward is not None]
            answers = sum(map(ledger.is_answer, ledger.entries))
            self._last = max(self._last, self._refit.fits(answers + len(waited) + len(told)))

    def planned(self) -> None:
        """What was planned for has come in."""
        self._last = self._known = 0

    @property
    def news(self) -> Fitted:
        """See `Learner`."""
        return () if self._news is None else (self._news,)

    def restart(self) -> None:
        """Nothing that was seen counts any more."""
        self.count = self._left = self._wanted = 0
        self._news = None

    def forget_before(self, first: int, ledger: Ledger) -> None:
        """Trials before this one are about to count no more."""
        self._left += sum(number < first and self._sees(number, ledger) for number in ledger.entries)

    def settle(self, ledger: Ledger, when: When) -> bool:
        """Make the fit that is due, if one is, or take the one on record, and begin anew with it."""
        before = ledger.begun
        if when.fits is not None:
            self._take(ledger, when.fits)
        else:
            self._make(ledger)
            self._old = self._old or when.past
            if self._news is not None and self._old and not when.past:
                # Made in the replay of an older record: from this decision on, it is on record.
                self._old = False
                ledger.begin(*Refitted.of(self._news.values))
        return ledger.begun != before

    def _take(self, ledger: Ledger, fits: Fitted) -> None:
        """What is on record."""
        news, self._news = None if self._old else self._news, None
        self._old = False
        for fit in fits:
            if fit.channel == self._channel and fit != news:  # made by this very state, for the decision
                self.count, self._wanted = fit.number, 0
                if fit.number >= self._last:
                    ledger.begin(*Refitted.of(fit.values))

    def _make(self, ledger: Ledger) -> None:
        refit, policy = self._refit, self._policy
        if ledger.heard < self._wanted:
            return
        seen = [entry.trial for number, entry in ledger.entries.items() if self._sees(number, ledger)]
        if refit.outputs == "own":
            everything = {number: entry.trial for number, entry in ledger.entries.items()} | ledger.open
            seen = [everything[number] for number in sorted(everything)]
        due = refit.fits(self._left + len(seen))
        if due <= self.count:
            missing = 0 if refit.outputs == "own" else refit.seen_by(self.count + 1) - self._left - len(seen)
            self._wanted = ledger.heard + missing
            return
        self.count = due
        first = seen[: max(refit.seen_by(due) - self._left, 0)]
        if due < self._last or due <= self._known or not first:
            return
        key = (tuple(trial.number for trial in first), ledger.multipliers.tobytes())
        if refit.outputs == "own" or key not in self.made:
            self.made[key] = refit(
                policy.kernel,
                np.array([row_of(trial) for trial in first]),
                np.array([ledger.value(trial) for trial in first]),
                policy.sides,
                noise=math.sqrt(policy.regularization),
                seed=self._seed,
                prior_mean=policy.prior_mean,
            )
        self._news, self._old = Fit(self._channel, due, self.made[key].plain()), False
        ledger.begin(*Refitted.of(self._news.values))  # as whoever reads the record will

    def _sees(self, number: int, ledger: Ledger) -> bool:
        return self._refit.outputs == "own" or ledger.is_answer(number)
