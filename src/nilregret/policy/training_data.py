"""What counts, and as what: the trials that a policy learns from, for one channel.

| symbol | name | meaning | unit |
|---|---|---|---|
| y_s | `trial.reward` | what was told | reward |
| ytilde_s | target | what a trial counts as: answered, censored, penalised | of the belief |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .._utils.checks import Array
from ..gp import Belief
from ..gp.binomial_counts import RatePrior
from ..gp.fitting import Standardization
from ..gp.warping import AnyWarp
from ..kernels import Kernel
from ..slots.memory import Prediction
from ..slots.pending import ImputedValue, PendingInfo
from ..storage.trial import Trial
from .answers_alone import AnswersAlone
from .aside import Aside
from .best import BestRewards, best_at
from .constraint_means import Charged
from .engines import Engine, Units
from .policy import Policy
from .silence_values import checked_value, due, standing

AskedSince = Callable[[Trial], int]
LEAST_NOISE = 1e-4  # of lambda: noise that was told to be less counts as this, where answers are weighed


class Entry(NamedTuple):
    """A trial that counts."""

    trial: Trial
    target: float | None  # in the belief's units; None where the trial counts for the variance alone


def noise_told(policy: Policy, regularization: float) -> float | None:
    """The variance of the noise as it was told, which says what predicts well; None where lambda is that, or fitted."""
    told = max(policy.noise**2, LEAST_NOISE * regularization)
    return None if policy.fitting is not None or math.isclose(told, regularization) else told


class Ledger:
    """Trials that count with their targets, and a belief that has learned exactly these.

    The belief can be made afresh from the rest at any time (`begin`), which is what restarts and fits do.
    """

    def __init__(self, policy: Policy, engine: Engine[Any], asked_since: AskedSince, *, of_reward: bool = True) -> None:
        self._of_reward = of_reward  # whether it is this channel's business which points have failed
        self.policy, self.engine, self._asked_since = policy, engine, asked_since
        self._pending, self._objective = policy.pending, policy.objective
        self.waits = policy.pending.waits()
        self._charged = Charged(policy.sides) if policy.objective.constraints else None
        self._plain = not policy.pending.revises  # asked once: a round takes some tens of microseconds
        self._drift, self._learning = policy.memory.drift(), policy.refit
        self._direct = self._plain and self._charged is None and self.waits is None and not self._pending.moves
        rates = policy.objective.learned(policy)
        self.known = None if rates is None else RatePrior(rates, policy.prior_mean)
        self.multipliers: Array = np.zeros(0)  # of the constraints, in force now
        self.kernel = policy.kernel  # of what is learned, where it is not fitted
        self.added = 0  # kernels to compare that came in the run
        self.open: dict[int, Trial] = {}  # asked for and not answered, as far as `pending` wants to know
        self.fresh: list[Trial] = []  # those of them that have not been taken in
        self.gone: dict[int, Trial] = {}  # abandoned instead: they count as nothing until an answer comes after all
        self.entries: dict[int, Entry] = {}  # what counts, in the order in which it came in
        self.dropped: set[int] = set()  # answered or failed, and counted as something else for good
        self.failed: dict[int, Trial] = {}
        self._aside: Aside | None = None  # kept from the first failure on: most studies have none
        self.least: float | None = None  # the smallest reward told
        self.heard = 0  # outcomes that came in, of trials that counted then
        self._best: BestRewards | None = None  # once they are asked for
        self._answers: AnswersAlone | None = None  # once they are asked for
        self._untaught: list[tuple[list[Any], list[float | None]]] = []  # what the belief learns once it is looked at
        self.begun = 0  # beliefs so far
        self.begin_own(0)

    def begin_own(self, first: int) -> None:
        """A new belief under the kernel in force and the ridge of a memory that begins with this round."""
        policy = self.policy
        ridge = policy.memory.regularization(first, policy.regularization)
        self.begin(self.kernel, ridge, Standardization(policy.prior_mean, 1.0))

    @property
    def belief(self) -> Belief[Any]:
        """What has been learned. It learns when it is looked at: in a replay that is seldom, and much at once."""
        if self._untaught:
            batches, self._untaught = self._untaught, []
            if self.engine.joins:
                batches = [([cell for cells, _ in batches for cell in cells], [y for _, ys in batches for y in ys])]
            for cells, targets in batches:
                self.engine.put(self._belief, cells, targets)
        return self._belief

    def begin(self, kernel: Kernel, regularization: float, scale: Standardization, warp: AnyWarp | None = None) -> None:
        """A new belief, which learns everything that counts."""
        kept = {} if self.waits is None else standing(self)
        self.in_use, self.ridge, self._answers = kernel, regularization, None
        self.units = Units(scale.mean, scale.std, warp)
        apart = self._pending.hallucinates
        noise = noise_told(self.policy, regularization)
        columns, learning = len(self.policy.sides), self._learning
        self.bank = None if learning is None else learning.bank(kernel, columns, self.added, noise)
        self._untaught = []
        self.begun += 1
        self._belief: Belief[Any] = self.engine.fresh(
            kernel,
            regularization,
            apart=apart,
            drift=self._drift,
            known=self.known,
            bank=self.bank,
            noise_variance=noise,
        )
        self.belief.advance(self.engine.now)
        if self._pending.moves and self.waits is None:  # what stands in may look at the answers: these first
            self.entries = {number: entry for number, entry in self.entries.items() if number not in self.open}
        if self.entries:
            self._learn_anew(apart, kept)
        if self._pending.moves and self.waits is None:
            self._reconsider()

    def _learn_anew(self, apart: bool, kept: dict[int, float | None]) -> None:
        answers = self._targets_of_answers() if self.units.warp is not None else {}
        self.entries = {
            number: Entry(
                trial,
                answers[number] if number in answers
                else self._kept(kept[number]) if number in kept else self._target_now(trial),
            )
            for number, (trial, _) in self.entries.items()
        }  # fmt: skip
        cells = {number: self.engine.entry(trial) for number, (trial, _) in self.entries.items()}
        targets = {number: target for number, (_, target) in self.entries.items()}
        if apart:  # questions in the order in which they were asked, then answers in the order in which they came
            self.engine.put(self.belief, [cells[number] for number in sorted(cells)], [None] * len(cells))
            valued = [number for number, target in targets.items() if target is not None]
            self.engine.fill(self.belief, [cells[number] for number in valued], [targets[number] for number in valued])
        else:
            self.engine.put(self.belief, list(cells.values()), list(targets.values()))

    def _targets_of_answers(self) -> dict[int, float]:
        """Warped all at once: one by one takes some 20 us each."""
        values = {
            number: value
            for number, (trial, _) in self.entries.items()
            if self.is_answer(number) and (value := self._objective.target(trial, self.multipliers)) is not None
        }
        center, unit, warp = self.units
        told = np.array(list(values.values()))
        scaled = ((told if warp is None else warp.to(told)) - center) / unit
        return dict(zip(values, scaled.tolist(), strict=True))

    def _kept(self, value: float | None) -> float | None:
        return None if value is None else self._scaled(value)

    def restart(self, first: int) -> None:
        """Only trials from this one on count, under the policy's own kernel."""
        self.open = {number: trial for number, trial in self.open.items() if number >= first}
        self.fresh = [trial for trial in self.fresh if trial.number >= first]
        self.gone = {number: trial for number, trial in self.gone.items() if number >= first}
        self.entries = {number: entry for number, entry in self.entries.items() if number >= first}
        rewards = (entry.trial.reward for entry in self.entries.values())
        self.least = min((reward for reward in rewards if reward is not None), default=None)
        self._best = None
        if self.waits is not None:
            self.waits.forget(first)
        self._recharge()
        failed, self.failed, self._aside = self.failed, {}, None
        if self._of_reward:
            self.engine.forgive_all()
        for number, trial in failed.items():
            if number >= first:
                self._set_aside(trial)
        self.begin_own(first)

    def advance(self) -> None:
        """Another round is asked about, where functions drift."""
        self.belief.advance(self.engine.now)
        if self._answers is not None:
            self._answers.advance(self.engine.now)

    def copy(self, engine: Engine[Any], asked_since: AskedSince) -> Ledger:
        """An independent ledger in the same state."""
        other = Ledger.__new__(Ledger)
        other.__dict__.update(self.__dict__)
        other.engine, other._asked_since, other._belief = engine, asked_since, self.belief.copy()
        for name in ("open", "fresh", "gone", "entries", "dropped", "failed", "_untaught"):
            setattr(other, name, getattr(self, name).copy())
        other._aside = None if self._aside is None else self._aside.copy()
        other.waits = None if self.waits is None else self.waits.copy()
        other._charged = None if self._charged is None else self._charged.copy()
        other._best = None
        other._answers = None if self._answers is None else self._answers.copy(engine)
        return other

    # -- questions and outcomes ----------------------------------------------------------------------------------

    def ask(self, trial: Trial) -> None:
        """A trial has been asked for."""
        if not self._plain:
            # Taken in with what is known at the next decision: without delays that is the answer, as if there had
            # never been anything else.
            self.open[trial.number] = trial
            self.fresh.append(trial)
            if self.waits is not None:
                self.waits.ask(trial)

    def abandon(self, trial: Trial) -> None:
        """Nobody works on a trial any more: what stood in for its answer does so no longer."""
        question = self.open.pop(trial.number, None)
        if question is not None:
            self.gone[trial.number] = question
            self.fresh = [other for other in self.fresh if other is not question]
            if self.waits is not None:
                self.waits.hear(trial)
            self._close(trial.number)

    def take(self, trials: list[Trial]) -> None:
        """Outcomes of trials that count, by number, and what was asked for since they were last taken in."""
        if self._direct and len(trials) == 1 and trials[0].reward is not None:
            self._take_one(trials[0], trials[0].reward)
            return
        least = self.least
        self.heard += len(trials)
        for trial in trials:
            if trial.reward is not None and (self.least is None or trial.reward < self.least):
                self.least = trial.reward
        taken = [entry for trial in trials if (entry := self._resolve(trial)) is not None]
        if self.fresh:
            taken += [entry for trial in self.fresh if (entry := self._stands_in(trial)) is not None]
            taken.sort(key=lambda entry: entry.trial.number)
            self.fresh = []
        if taken:
            self._enter(taken)
            if self._best is not None or self._aside is not None:
                self._hear([entry.trial for entry in taken])
        for trial in trials:
            if trial.reward is None and self._of_reward:
                self._set_aside(trial)
        self._follow(lowered=least != self.least)

    def _take_one(self, trial: Trial, reward: float) -> None:
        """The path of most rounds: an answer counts as itself, and nothing else hangs on it."""
        self.heard += 1
        if self.least is None or reward < self.least:
            self.least = reward
        target = self._target(trial)
        if target is not None:
            self._untaught.append(([self.engine.entry(trial)], [target]))
            self.entries[trial.number] = Entry(trial, target)
            self._hear([trial])

    def _follow(self, *, lowered: bool) -> None:
        """What unanswered trials count as by now."""
        recharged = self._charged is not None and self._charged.is_news()
        if self.waits is not None:
            self._revise_all(due(self, self.waits, everything=recharged))
            if recharged or lowered:
                self._revalue(sorted(number for number in self.dropped if number in self.entries))
        elif self._pending.moves or (lowered and (self.dropped or self.open)):
            self.retarget()
        elif recharged:
            self._revalue([number for number in (*self.open, *sorted(self.dropped)) if number in self.entries])

    def _resolve(self, trial: Trial) -> Entry | None:
        """The trial and its target where it is still to be learned; what was pending of it is settled."""
        target = self._target(trial)
        if self._plain:
            return None if target is None else Entry(trial, target)  # the path of most rounds
        question = self.open.pop(trial.number, None) or self.gone.pop(trial.number, None)
        if self.waits is not None:
            self.waits.hear(trial)
        if question is not None and self.fresh:
            self.fresh = [other for other in self.fresh if other is not question]
        if trial.reward is None and self._pending.failed == "worst":
            self.dropped.add(trial.number)
            target = self._scaled(self._worst(trial))
        elif target is None:
            self._close(trial.number)
            return None
        elif question is not None and not self._pending.counts(trial, lambda: self._asked_since(trial)):
            self.dropped.add(trial.number)  # too late: what stood in for it stays
            return None if trial.number in self.entries else self._stands_in(question)
        if self._charged is not None:
            self._charged.hear(trial)
        if trial.number not in self.entries:
            return Entry(trial, target)
        if self.entries[trial.number].target is None:  # it comes in only now
            self.entries[trial.number] = self.entries.pop(trial.number)
        self._revise(trial, target)
        self._hear([trial])
        return None

    def _stands_in(self, trial: Trial) -> Entry | None:
        pseudo = self._pseudo(trial)
        return None if pseudo is None else Entry(trial, self._of(pseudo))

    def _enter(self, taken: list[Entry]) -> None:
        entry_of = self.engine.entry
        self._untaught.append(([entry_of(trial) for trial, _ in taken], [target for _, target in taken]))
        entries = self.entries
        for entry in taken:
            entries[entry.trial.number] = entry

    def _revise(self, trial: Trial, target: float | None) -> None:
        engine, (before, old) = self.engine, self.entries[trial.number]
        if before.repeats > 1 and before.times != trial.times:  # fewer plays than were asked for
            engine.drop(self.belief, engine.entry(before), old)
            engine.put(self.belief, [engine.entry(trial)], [target])
        else:
            engine.revise(self.belief, engine.entry(trial), old, target)
        self.entries[trial.number] = Entry(trial, target)

    def _revise_all(self, changes: list[tuple[Trial, float | None]]) -> None:
        """What these trials count as from now on, as one change of the belief."""
        if changes:
            entries, entry_of = self.entries, self.engine.entry
            old = [entries[trial.number].target for trial, _ in changes]
            new = [target for _, target in changes]
            self.engine.revise_all(self.belief, [entry_of(trial) for trial, _ in changes], old, new)
            for trial, target in changes:
                entries[trial.number] = Entry(trial, target)

    def _hear(self, trials: list[Trial]) -> None:
        """Take note of rewards that count from now on."""
        if self._best is None and self._aside is None:
            return
        for trial in trials:
            if trial.reward is not None:
                if self._best is not None:
                    self._best.hear(trial)
                if self._aside is not None:
                    self._aside.answer(trial, self.engine, +1)

    def _close(self, number: int) -> None:
        """A trial that was pending teaches nothing after all."""
        entry = self.entries.pop(number, None)
        if entry is not None:
            self.engine.drop(self.belief, self.engine.entry(entry.trial), entry.target)
            if self._aside is not None and entry.trial.reward is not None:
                self._aside.answer(entry.trial, self.engine, -1)

    def _set_aside(self, trial: Trial) -> None:
        """A point that has only failed is not asked for again; where it has been answered, a failure is a hiccup."""
        self.failed[trial.number] = trial
        if self._aside is None:
            known = (entry.trial for entry in self.entries.values())
            self._aside = Aside(other for other in known if other.reward is not None)
        self._aside.failure(trial, self.engine, +1)

    def forget_before(self, first: int) -> None:
        """Trials before this one count no more; the others as they are."""
        gone = [number for number in self.entries if number < first]
        for number in gone:
            self._close(number)
        if self.open:
            self.open = {number: trial for number, trial in self.open.items() if number >= first}
            self.fresh = [trial for trial in self.fresh if trial.number >= first]
        self.dropped.difference_update(gone)
        if self.waits is not None:
            self.waits.forget(first)
        if gone:
            self._best = None
            self._recharge()
            if self._pending.moves and self.waits is None:
                self.retarget()
            elif self._charged is not None:
                self._follow(lowered=False)
        if self._aside is not None:
            for number in [number for number in self.failed if number < first]:
                self._aside.failure(self.failed.pop(number), self.engine, -1)

    def _recharge(self) -> None:
        if self._charged is not None:
            self._charged.forget(entry.trial for entry in self.entries.values())

    # -- the best reward -----------------------------------------------------------------------------------------

    def best_reward(self, context: Array | None) -> float | None:
        """The best (warped) reward that counts under this very context; None before the first."""
        if self._best is None:
            self._best = BestRewards(entry.trial for entry in self.entries.values())
        return self._warped(self._best.under(context))

    def best_reward_at(self, points: Array, context: Array | None) -> float | None:
        """The best (warped) reward that counts at some points `(n, d)` under this context; None before the first."""
        return self._warped(best_at((entry.trial for entry in self.entries.values()), points, context))

    def _warped(self, reward: float | None) -> float | None:
        return None if reward is None else self.units.warped(reward)

    # -- what trials count as ------------------------------------------------------------------------------------

    def retarget(self) -> None:
        """What trials count as has changed, for all of them: answers first, then what is made of them."""
        self._revalue([number for number in self.entries if number not in self.open])
        if self.open:
            if self._answers is not None:
                self._answers.take(self._answered())
            self._revalue([number for number in self.open if number in self.entries])
            if self._pending.moves:
                self._reconsider()

    def _reconsider(self) -> None:
        """What counted as nothing may count as something by now."""
        waiting = {trial.number for trial in self.fresh}
        out = [trial for number, trial in self.open.items() if number not in self.entries and number not in waiting]
        begun = [entry for trial in out if (entry := self._stands_in(trial)) is not None]
        if begun:
            self._enter(begun)

    def _revalue(self, numbers: list[int]) -> None:
        changes = []
        for number in numbers:
            trial, old = self.entries[number]
            if number in self.open:
                pseudo = self._pseudo(trial)
                if pseudo is None:
                    self._close(number)
                    continue
                target = self._of(pseudo)
            else:
                target = self._target_now(trial)
            if target != old:
                changes.append((trial, target))
        self._revise_all(changes)

    def _answered(self) -> dict[int, tuple[Trial, float]]:
        return {
            number: (trial, target)
            for number, (trial, target) in self.entries.items()
            if target is not None and self.is_answer(number)
        }

    def _answers_alone(self) -> AnswersAlone:
        if self._answers is None:
            belief = self.engine.fresh(
                self.in_use,
                self.ridge,
                apart=False,
                drift=self._drift,
                known=self.known,
                noise_variance=noise_told(self.policy, self.ridge),
            )
            belief.advance(self.engine.now)
            self._answers = AnswersAlone(self.engine, belief, self.units, self.policy.sides)
            self._answers.take(self._answered())
        return self._answers

    def counts(self, number: int) -> bool:
        """Whether a trial is among the data, as whatever: not where it has failed, been forgotten, or is ignored."""
        return number in self.entries or number in self.open

    def is_answer(self, number: int) -> bool:
        """Whether a trial counts by its own reward."""
        return number not in self.open and number not in self.dropped

    def points(self, dimension: int) -> Array:
        """Of everything asked for that counts or is waited for, or has failed, `(n, d)`."""
        trials = [entry.trial for entry in self.entries.values()] + [*self.open.values(), *self.failed.values()]
        return np.array([trial.point for trial in trials]).reshape(len(trials), dimension)

    def lowest(self) -> float:
        """The smallest reward there is, as far as is known: what a failed trial counts as, where it does."""
        return self._pending.lowest(self.least, self.policy.prior_mean)

    def charge(self, trial: Trial) -> float:
        """What multipliers charge at an unanswered trial, as far as is known, reward units."""
        values = None if self._charged is None else self._charged.nearest(trial)
        return 0.0 if values is None else self._objective.charge(values, self.multipliers)

    def charges(self, trials: list[Trial]) -> Array:
        """Likewise, at several, `(n,)`."""
        return np.zeros(len(trials)) if self._charged is None else np.array([self.charge(trial) for trial in trials])

    def _worst(self, trial: Trial) -> float:
        return self.lowest() - self.charge(trial)

    def value(self, trial: Trial) -> float:
        """What a trial counts as, reward units; where it counts for the variance alone, the posterior mean."""
        value = self._objective.target(trial, self.multipliers) if self.is_answer(trial.number) else None
        if value is None:
            value = self._worst(trial) if trial.state == "failed" else self._stood_for(trial)
        return float(self.means([trial])[0]) if value is None else value

    def _stood_for(self, trial: Trial) -> float | None:
        pseudo = self._pseudo(trial)
        return None if pseudo is None else pseudo.value

    def means(self, trials: list[Trial]) -> Array:
        """Posterior mean of what is learned, at trials, `(n,)`, as a reward: of warped ones that is the median."""
        return self.units.back(self.engine.means(self.belief, trials))

    def shown_means(self, trials: list[Trial]) -> Array:
        """Posterior mean of the reward itself, at trials, `(n,)`."""
        units, engine = self.units, self.engine
        means = engine.means(self.belief, trials)
        if units.warp is None:
            return units.back(means)
        # The same number at the same point, to the last digit.
        _, one, each = np.unique([engine.here(t) for t in trials], axis=0, return_index=True, return_inverse=True)
        stds = engine.deviations(self.belief, [trials[i] for i in one])
        return units.warp.moments(*units.rewards(means[one], stds))[0][each.reshape(-1)]

    def predictions(self, trial: Trial) -> Prediction:
        """What is believed of f at a trial, reward units; what stands in for its answer is no part of it."""
        belief, engine = self.belief, self.engine
        if trial.number in self.entries:
            belief = belief.copy()
            engine.drop(belief, engine.entry(trial), self.entries[trial.number].target)
        mean, std = belief.predict(np.array([engine.here(trial)]))
        units = self.units
        if units.warp is None:
            return Prediction(float(mean[0]) * units.unit + units.center, float(std[0]) * units.unit)
        low, middle, high = (float(at) for at in units.back(np.array([mean[0] - std[0], mean[0], mean[0] + std[0]])))
        return Prediction(middle, 0.5 * (high - low))

    def _target(self, trial: Trial) -> float | None:
        """What an answered trial counts as, in the belief's units; None where it teaches nothing."""
        value = self._objective.target(trial, self.multipliers)
        return None if value is None else self._scaled(value)

    def _target_now(self, trial: Trial) -> float | None:
        if self.is_answer(trial.number):
            return self._target(trial)
        if trial.state == "failed":
            return self._scaled(self._worst(trial))
        pseudo = self._pseudo(trial)
        return None if pseudo is None else self._of(pseudo)

    def _pseudo(self, trial: Trial) -> ImputedValue | None:
        known = PendingInfo(
            self._worst(trial),
            float(self.units.back(np.zeros(()))),
            lambda: self._asked_since(trial),
            lambda: float(self.means([trial])[0]),
            self._answers_alone,
            lambda: self.charge(trial),
            self.waits,
        )
        return self._pending.count_as(trial, known)

    def _of(self, pseudo: ImputedValue) -> float | None:
        value = checked_value(pseudo, self._pending)
        return None if value is None else self._scaled(value)

    def _scaled(self, value: float) -> float:
        center, unit, warp = self.units
        return (value - center) / unit if warp is None else self.units.scaled(value)
