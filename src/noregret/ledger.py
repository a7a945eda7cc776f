"""What counts, and as what: the trials that a policy learns from, in its engine.

| symbol | name | meaning | unit |
|---|---|---|---|
| y_s | `trial.reward` | what was told | reward |
| ytilde_s | target | what a trial counts as: answered, censored, penalised | of the posterior |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .checks import Array
from .engines import Engine, Setting, make_engine
from .fillings import Filling
from .fitting import Standardization
from .kernels import Kernel
from .parts.memory import Discount
from .parts.pending import Censored, Hallucinated, Ignored, NearestMeans
from .parts.scores import Improvement
from .policy import Policy
from .record import Trial


class Entry(NamedTuple):
    """A trial that counts."""

    trial: Trial
    target: float  # in the posterior's units


class Aside:
    """Which points are set aside: those where a trial that counts has failed, and none that counts was answered.

    Two counts for each point, so that this is so at all times, whatever comes in or leaves, in whatever order.
    """

    def __init__(self, answered: Iterable[Trial]) -> None:
        self._answers = Counter(trial.point.tobytes() for trial in answered)
        self._failures: Counter[bytes] = Counter()

    def answer(self, trial: Trial, engine: Engine, change: int) -> None:
        """One answered trial more, or (-1) less."""
        key = trial.point.tobytes()
        before = self._answers[key]
        self._answers[key] += change
        if self._failures[key] and not (before and self._answers[key]):
            (engine.forgive if change > 0 else engine.fail)(trial)

    def failure(self, trial: Trial, engine: Engine, change: int) -> None:
        """One failed trial more, or (-1) less."""
        key = trial.point.tobytes()
        before = self._failures[key]
        self._failures[key] += change
        if not self._answers[key] and not (before and self._failures[key]):
            (engine.fail if change > 0 else engine.forgive)(trial)

    def copy(self) -> Aside:
        """An independent copy."""
        other = Aside([])
        other._answers, other._failures = self._answers.copy(), self._failures.copy()
        return other


class Ledger:
    """Trials that count with their targets, and an engine that has learned exactly these.

    The engine can be made afresh from the rest at any time (`begin`), which is what restarts and fits do.
    """

    def __init__(self, policy: Policy, *, seed: int) -> None:
        self.policy = policy
        self._seed = seed
        # Asked of the policy once: a round takes some tens of microseconds, and each question is a part of one.
        self._ignores, self._hallucinates = (isinstance(policy.pending, kind) for kind in (Ignored, Hallucinated))
        self._censors = isinstance(policy.pending, Censored)
        self._plain = policy.pending == Ignored()
        self._by_reward = isinstance(policy.score, Improvement) and policy.score.incumbent == "reward"
        self.multipliers: Array = np.zeros(0)  # of the constraints, in force now
        self.kernel = policy.kernel  # in force now, where the epochs of constraints have one each
        self.open: dict[int, Trial] = {}  # asked for and not answered, as far as `pending` wants to know
        self.asked: Trial | None = None  # the last of them, where it is to be learned and has not been yet
        self.entries: dict[int, Entry] = {}  # what counts, in the order in which it came in
        self.dropped: set[int] = set()  # trials that count as the worst for good: too late, or failed
        self.failed: dict[int, Trial] = {}
        self.least: float | None = None  # the smallest reward told
        self.begin_own(0)

    def begin(self, kernel: Kernel, regularization: float, scale: Standardization) -> None:
        """A new engine, which learns everything that counts."""
        policy, self.scale = self.policy, scale
        setting = Setting(
            policy.domain,
            policy.context,
            kernel,
            regularization,
            policy.score,
            policy.search,
            hallucinate=self._hallucinates,
            drift=(policy.memory.rate or None) if isinstance(policy.memory, Discount) else None,
        )
        self.engine: Engine = make_engine(setting, seed=self._seed)
        self._filling: Filling | None = None
        if isinstance(policy.pending, NearestMeans):
            self._filling = Filling(policy.pending, make_engine(setting, seed=self._seed), policy.sides)
        entries, self.entries = self.entries, {}
        self._best: dict[bytes, float] = {}  # rewards, by context, where a score asks for them
        self._aside: Aside | None = None  # kept from the first failure on: most studies have none
        if self._hallucinates:
            for number in sorted(entries.keys() | self.open.keys()):
                self.engine.query(entries[number].trial if number in entries else self.open[number])
        if entries:
            trials = [entry.trial for entry in entries.values()]
            self._enter(trials, [self._target_now(trial) for trial in trials])
        for trial in self.failed.values():
            self._set_aside(trial)
        if self._filling is not None:
            self.retarget()

    def restart(self, first: int) -> None:
        """Only trials from this one on count, under the policy's own kernel (of this epoch)."""
        self.open = {number: trial for number, trial in self.open.items() if number >= first}
        self.entries = {number: entry for number, entry in self.entries.items() if number >= first}
        self.failed = {number: trial for number, trial in self.failed.items() if number >= first}
        if self.asked is not None and self.asked.number < first:
            self.asked = None
        rewards = (entry.trial.reward for entry in self.entries.values())
        self.least = min((reward for reward in rewards if reward is not None), default=None)
        self.begin_own(first)

    def begin_own(self, first: int) -> None:
        """A new engine under the kernel in force and the ridge of a memory that begins with this round."""
        policy = self.policy
        ridge = policy.memory.regularization(first, policy.regularization)
        self.begin(self.kernel, ridge, Standardization(policy.prior_mean, 1.0))

    def copy(self) -> Ledger:
        """An independent ledger in the same state."""
        other = Ledger.__new__(Ledger)
        other.__dict__.update(self.__dict__)
        other.engine = self.engine.copy()
        other._filling = None if self._filling is None else self._filling.copy()
        other._aside = None if self._aside is None else self._aside.copy()
        for name in ("open", "entries", "dropped", "failed", "_best"):
            setattr(other, name, getattr(self, name).copy())
        return other

    # -- questions and outcomes ----------------------------------------------------------------------------------

    def ask(self, trial: Trial) -> None:
        """A trial has been asked for; the one before has been taken in (`take`)."""
        if self._ignores:
            return
        self.open[trial.number] = trial
        if self._hallucinates:
            self.engine.query(trial)
        else:
            # Learned with what is known at the next decision: without delays that is the answer, as if never open.
            self.asked = trial

    def take(self, trials: list[Trial], asked_since: dict[int, int]) -> None:
        """Outcomes of trials that count, and what was asked for since they were last taken in.

        Args:
            trials: by number.
            asked_since: how many questions have been asked after that of each trial, where answers may be late.
        """
        least = self.least
        for trial in trials:
            if trial.reward is not None and (self.least is None or trial.reward < self.least):
                self.least = trial.reward
        fresh = [entry for trial in trials if (entry := self._resolve(trial, asked_since)) is not None]
        if self.asked is not None:  # no outcome yet
            fresh.append(Entry(self.asked, self._target_now(self.asked)))
            fresh.sort(key=lambda entry: entry.trial.number)
            self.asked = None
        if fresh:
            self._enter([entry.trial for entry in fresh], [entry.target for entry in fresh])
        for trial in trials:
            if trial.reward is None:
                self.failed[trial.number] = trial
                self._set_aside(trial)
        if self._filling is not None or (least != self.least and (self.dropped or self._censors)):
            self.retarget()

    def _resolve(self, trial: Trial, asked_since: dict[int, int]) -> Entry | None:
        """The trial and its target where it is still to be learned; what was pending of it is settled."""
        target = self._target(trial)
        if self._plain:
            return None if target is None else Entry(trial, target)
        question = self.open.pop(trial.number, None)
        if question is self.asked:
            self.asked = None
        if trial.reward is None and self.policy.pending.failed == "worst":
            self.dropped.add(trial.number)
            target = self._lowest_target()
            if trial.number in self.entries:
                self._revise(trial, target)  # where it is censored it counts as the worst already
                return None
        elif target is None:
            if question is not None:
                self._close(trial)
            return None
        elif question is not None and not self._hallucinates:
            return self._resolve_open(trial, target, question, asked_since.get(trial.number, 0))
        if self._hallucinates and question is None:
            self.engine.query(trial)
        return Entry(trial, target)

    def _resolve_open(self, trial: Trial, target: float, question: Trial, asked_since: int) -> Entry | None:
        """An answer that counts if it came in time; where the trial counts as something already that is revised."""
        pending, learned = self.policy.pending, trial.number in self.entries
        if isinstance(pending, Censored) and not pending.in_time_to_count(trial, asked_since):
            self.dropped.add(trial.number)
            return None if learned else Entry(question, self._lowest_target())
        if not learned:
            return Entry(trial, target)
        self._revise(trial, target)
        return None

    def _enter(self, trials: list[Trial], targets: list[float]) -> None:
        self.engine.learn(trials, targets)
        for trial, target in zip(trials, targets, strict=True):
            self.entries[trial.number] = Entry(trial, target)
        if self._by_reward or self._aside is not None:
            self._hear(trials)

    def _revise(self, trial: Trial, target: float) -> None:
        self.engine.revise(trial, self.entries[trial.number].target, target)
        self.entries[trial.number] = Entry(trial, target)
        self._hear([trial])

    def _hear(self, trials: list[Trial]) -> None:
        """Take note of rewards that count from now on."""
        for trial in trials:
            if trial.reward is None:
                continue
            if self._by_reward:
                self._compare(trial)
            if self._aside is not None:
                self._aside.answer(trial, self.engine, +1)

    def best_reward(self, context: Array | None) -> float | None:
        """The best reward that counts under this very context; None before the first, or where no score asks for it."""
        return self._best.get(_key_of(context)) if self._by_reward else None

    def _close(self, trial: Trial) -> None:
        """A trial that was pending teaches nothing after all."""
        if self._hallucinates:
            self.engine.unquery(trial)
        elif trial.number in self.entries:
            self.engine.forget(trial, self.entries.pop(trial.number).target)

    def _set_aside(self, trial: Trial) -> None:
        """A point that has only failed is not asked for again; where it has been answered, a failure is a hiccup."""
        if self._aside is None:
            known = (entry.trial for entry in self.entries.values())
            self._aside = Aside(other for other in known if other.reward is not None)
        self._aside.failure(trial, self.engine, +1)

    def forget_before(self, first: int) -> None:
        """Trials before this one count no more; the others as they are."""
        gone = [number for number in self.entries if number < first]
        for number in gone:
            trial, target = self.entries.pop(number)
            self.engine.forget(trial, target)
            if self._hallucinates:
                self.engine.unquery(trial)
            if self._aside is not None and trial.reward is not None:
                self._aside.answer(trial, self.engine, -1)
        for number in [number for number in self.open if number < first]:
            trial = self.open.pop(number)
            if self._hallucinates:
                self.engine.unquery(trial)
        self.dropped.difference_update(gone)
        if self._aside is not None:
            for number in [number for number in self.failed if number < first]:
                self._aside.failure(self.failed.pop(number), self.engine, -1)
        if gone:
            self._follow()

    def _follow(self) -> None:
        """Entries have gone: what is made of all of them anew."""
        if self._by_reward:
            self._best = {}
            for trial, _ in self.entries.values():
                self._compare(trial)
        if self._filling is not None:
            self.retarget()

    def best_reward_at(self, points: Array, context: Array | None) -> float | None:
        """The best reward that counts at some points `(n, d)` under this very context; None as in `best_reward`."""
        if not self._by_reward:
            return None
        known, under = {point.tobytes() for point in points}, _key_of(context)
        rewards = (
            entry.trial.reward
            for entry in self.entries.values()
            if entry.trial.reward is not None
            and entry.trial.point.tobytes() in known
            and _key_of(entry.trial.context) == under
        )
        return max(rewards, default=None)

    def _compare(self, trial: Trial) -> None:
        key = _key_of(trial.context)
        if trial.reward is not None and trial.reward > self._best.get(key, -np.inf):
            self._best[key] = trial.reward

    # -- what trials count as ------------------------------------------------------------------------------------

    def retarget(self) -> None:
        """What trials count as has changed, for all of them."""
        filling = self._filling
        if filling is None:
            self._revalue(list(self.entries))
            return
        self._revalue([number for number in self.entries if number not in self.open])
        filling.take({number: entry for number, entry in self.entries.items() if self.is_answer(number)})
        self._revalue([number for number in self.open if number in self.entries])

    def _revalue(self, numbers: list[int]) -> None:
        for number in numbers:
            trial, old = self.entries[number]
            target = self._target_now(trial)
            if target != old:
                self.engine.revise(trial, old, target)
                self.entries[number] = Entry(trial, target)

    def counts(self, number: int) -> bool:
        """Whether a trial is among the data, as whatever: not where it has failed, been forgotten, or is ignored."""
        return number in self.entries or number in self.open

    def is_answer(self, number: int) -> bool:
        """Whether a trial counts by its own reward."""
        return number not in self.open and number not in self.dropped

    def lowest(self) -> float:
        """What an unanswered trial counts as where it is censored, and a failed one as the worst; reward units."""
        pending = self.policy.pending
        if isinstance(pending, Censored) and pending.minimum is not None:
            return pending.minimum
        return self.policy.prior_mean if self.least is None else self.least

    def value(self, trial: Trial) -> float:
        """What a trial counts as, reward units."""
        if trial.number in self.open and self._hallucinates:
            return float(self.means([trial])[0])
        if trial.number in self.open and self._filling is not None:
            return self._filling.value(trial) * self.scale.std + self.scale.mean
        value = self.policy.objective.target(trial, self.multipliers) if self.is_answer(trial.number) else None
        return self.lowest() if value is None else value

    def means(self, trials: list[Trial]) -> Array:
        """Posterior mean of what is learned, at trials, reward units, `(n,)`."""
        return self.engine.answered_means(trials) * self.scale.std + self.scale.mean

    def _target(self, trial: Trial) -> float | None:
        """What an answered trial counts as, in the posterior's units; None where it teaches nothing."""
        value = self.policy.objective.target(trial, self.multipliers)
        return None if value is None else (value - self.scale.mean) / self.scale.std

    def _lowest_target(self) -> float:
        return (self.lowest() - self.scale.mean) / self.scale.std

    def _target_now(self, trial: Trial) -> float:
        if self._filling is not None and trial.number in self.open:
            return self._filling.value(trial)
        target = self._target(trial) if self.is_answer(trial.number) else None
        return self._lowest_target() if target is None else target


def _key_of(context: Array | None) -> bytes:
    return b"" if context is None else context.tobytes()
