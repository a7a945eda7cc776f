"""Which fits are due: of the first answers that count, on a schedule."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self, final

import numpy as np

from ..record import Event, Trial
from ..slots.refit import Refit, Refitted
from .engines import row_of
from .ledger import Ledger
from .policy import Policy

Spread = Callable[[], float | None]


class Learner(ABC):
    """What the slot `refit` does in a run."""

    def plan(self, events: list[Event], ledger: Ledger, waiting: list[Trial]) -> None:  # noqa: B027
        """What a replay will bring: see `Fits`."""

    def planned(self) -> None:  # noqa: B027 - most plan nothing
        """What was planned for has come in."""

    def ask(self, trial: Trial, spread: Spread, ledger: Ledger) -> None:  # noqa: B027 - most do not mind
        """A trial was asked for; `spread` gives half the width of the bounds there, None if it was forced."""

    def norm(self) -> float | None:
        """The bound on the norm under the kernel in use, where it is another than was told."""
        return None

    @abstractmethod
    def restart(self) -> None:
        """Nothing that was seen counts any more."""

    @abstractmethod
    def forget_before(self, first: int, ledger: Ledger) -> None:
        """Trials before this one are about to count no more."""

    @abstractmethod
    def settle(self, ledger: Ledger) -> bool:
        """Do what is due; whether the kernel in use is another one now."""

    @abstractmethod
    def copy(self) -> Self:
        """One that goes on by itself."""


@final
class Fits(Learner):
    """The fits of a run, for a policy that learns its kernel.

    Attributes:
        made: by the trials that a fit saw and the multipliers then; each is a pure function of these, and copies share
            them.
        count: fits that were due so far, since the last restart.
    """

    def __init__(self, policy: Policy, refit: Refit, *, seed: int) -> None:
        self._policy, self._refit, self._seed = policy, refit, seed
        self.made: dict[tuple[tuple[int, ...], bytes], Refitted] = {}
        self.count = 0
        self._left = 0  # what fits would have seen and no longer counts, since the last restart
        self._wanted = 0  # answers heard before which none is due: mostly there is nothing to count
        self._last = math.inf  # fits before this one are not made: another follows in the same replay

    def plan(self, events: list[Event], ledger: Ledger, waiting: list[Trial]) -> None:
        """Where a replay makes several fits due, only the last one is made: each starts from the policy's kernel."""
        self._last = 0
        policy = self._policy
        known = policy.plain or (policy.foreseeable and self._refit.outputs != "own")
        if len(events) < 2 or not known:  # which answers will count, or what their fits will see
            return
        last = max((i for i, event in enumerate(events) if event.kind == "asked"), default=-1)
        told = [event for event in events[:last] if event.kind == "told" and event.trial.reward is not None]
        waited = [trial for trial in waiting if trial.reward is not None]
        answers = sum(map(ledger.is_answer, ledger.entries))
        self._last = self._refit.fits(answers + len(waited) + len(told))

    def planned(self) -> None:
        """What was planned for has come in."""
        self._last = 0

    def restart(self) -> None:
        """Nothing that was seen counts any more."""
        self.count = self._left = self._wanted = 0

    def forget_before(self, first: int, ledger: Ledger) -> None:
        """Trials before this one are about to count no more."""
        self._left += sum(number < first and self._sees(number, ledger) for number in ledger.entries)

    def settle(self, ledger: Ledger) -> bool:
        """Make the fit that is due, if one is, and begin anew with it."""
        before = ledger.belief
        self._settle(ledger)
        return ledger.belief is not before

    def _settle(self, ledger: Ledger) -> None:
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
        if due < self._last or not first:
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
        ledger.begin(*self.made[key])

    def _sees(self, number: int, ledger: Ledger) -> bool:
        return self._refit.outputs == "own" or ledger.is_answer(number)

    def copy(self) -> Fits:
        """One that goes on by itself; the fits made are shared."""
        other = Fits.__new__(Fits)
        other.__dict__.update(self.__dict__)
        return other
