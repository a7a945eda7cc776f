"""The trials that one output learns from, each with its target.

| symbol | name | meaning | unit |
|---|---|---|---|
| y_s | `trial.reward` | reward of the trial | reward |
| ytilde_s | target | value that the posterior learns: answered, censored or penalised | of the posterior |
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable, independent
from ..gp.fitting import Standardization
from ..gp.warping import AnyWarp
from ..kernels import Kernel
from ..slots.pending import ImputedValue, PendingInfo, Waits
from ..storage.trial import Trial
from .engines import Engine
from .engines.base import row_of
from .outcomes import Outcomes, PendingTrials, best_at
from .policy import Policy
from .rounds import Rounds
from .trained_posterior import AnswersAlone, Entry, TrainedPosterior

SAME = 1e-12  # largest difference of two distances that count as equal, in units of the domain's sides


@final
class ConstraintMeans(Copyable):
    """The average constraint values at each answered (context, point).

    Args:
        sides: sides of the domain, `(c + d,)`, the units of distances.
    """

    OWNED = ("_sums",)

    def __init__(self, sides: Array) -> None:
        self._sides = np.where(sides > 0.0, sides, 1.0)
        self._sums: dict[bytes, tuple[Array, Array, int]] = {}  # row, sum of the values, and number of trials
        self._changed = False

    def add(self, trial: Trial) -> None:
        """Adds the constraint values of a trial, if it has a reward and such values."""
        if trial.reward is not None and trial.constraints is not None:
            row = row_of(trial) / self._sides
            _, total, count = self._sums.get(row.tobytes(), (row, np.zeros(len(trial.constraints)), 0))
            self._sums[row.tobytes()] = row, total + trial.constraints, count + 1
            self._changed = True

    def reset(self, trials: Iterable[Trial]) -> None:
        """Replaces all values by those of these trials."""
        self._sums, self._changed = {}, True
        for trial in trials:
            self.add(trial)

    def take_changed(self) -> bool:
        """Returns whether a value has changed since the last call."""
        changed, self._changed = self._changed, False
        return changed

    def nearest(self, trial: Trial) -> Array | None:
        """Returns the average values at the answered point nearest to a trial, `(m,)`, or None before the first.

        If several points are equally near, their averages are averaged.
        """
        if not self._sums:
            return None
        row = row_of(trial) / self._sides
        same = self._sums.get(row.tobytes())
        if same is not None:
            return np.asarray(same[1] / same[2])
        known = list(self._sums.values())
        distances = np.linalg.norm(np.array([at for at, _, _ in known]) - row, axis=1)
        near = np.flatnonzero(distances <= distances.min() + SAME)
        return np.asarray(np.mean([known[i][1] / known[i][2] for i in near], axis=0))


@final
class TrainingData:
    """The trials that one output learns from, and the posterior that has learned them.

    Args:
        policy: the policy of the output.
        engine: the engine of the policy.
        rounds: the rounds of the run.
        of_reward: whether the output is the reward. Failures of constraints set no points aside.

    Attributes:
        posterior: the posterior with its entries.
        pending: trials that are imputed, or wait for an answer.
        outcomes: rewards and failures of the trials that count.
        multipliers: the multipliers of the constraints now, `(m,)`.
    """

    def __init__(self, policy: Policy, engine: Engine[Any], rounds: Rounds, *, of_reward: bool) -> None:
        self.policy, self.engine, self._rounds = policy, engine, rounds
        self._part, self._objective = policy.pending, policy.objective
        self.posterior = TrainedPosterior(policy, engine)
        self.pending = PendingTrials(policy.pending)
        self.outcomes = Outcomes(engine, sets_aside=of_reward)
        self.multipliers: Array = np.zeros(0)
        self._constraint_means = ConstraintMeans(policy.sides) if policy.objective.constraints else None
        self._answers: AnswersAlone | None = None  # made when a part asks for the posterior of the answers alone
        self._plain = not policy.pending.revises  # read once, since a round takes some tens of microseconds
        self._moves = policy.pending.moves and self.pending.waits is None
        self._direct = self._plain and not (self._constraint_means or self.pending.waits or self._moves)
        self.rebuild_own(0)

    # -- the posterior -------------------------------------------------------------------------------------------

    def add_arms(self, policy: Policy) -> bool:
        """Takes over a policy on more arms (see `State.add_arms`)."""
        self.policy = policy
        alone = self._answers is None or self._answers.add_arms(policy.domain)
        return self.posterior.add_arms(policy) and alone

    def rebuild_own(self, first: int) -> None:
        """Rebuilds the posterior under its own kernel, with the ridge of a memory that begins at round `first`."""
        policy = self.policy
        ridge = policy.memory.regularization(first, policy.regularization)
        self.rebuild(self.posterior.kernel, ridge, Standardization(policy.prior_mean, 1.0))

    def rebuild(
        self, kernel: Kernel, regularization: float, scale: Standardization, warp: AnyWarp | None = None
    ) -> None:
        """Rebuilds the posterior under another kernel, ridge or unit, from all trials that count."""
        values = {} if self.pending.waits is None else self._imputed_values()
        self._answers = None
        posterior = self.posterior
        posterior.reset(kernel, regularization, scale, warp)
        if self._moves:  # imputed values may depend on the answers, so these are learned first
            entries = posterior.entries
            posterior.entries = {n: entry for n, entry in entries.items() if n not in self.pending.open}
        if posterior.entries:
            targets = self._targets_of_answers() if warp is not None else {}
            posterior.relearn({n: self._new_target(entry, targets, values) for n, entry in posterior.entries.items()})
        if self._moves:
            self._impute_others()

    def _new_target(self, entry: Entry, targets: dict[int, float], values: dict[int, float | None]) -> float | None:
        number = entry.trial.number
        if number in targets:
            return targets[number]
        return self._scaled(values[number]) if number in values else self._target_now(entry.trial)

    def _imputed_values(self) -> dict[int, float | None]:
        """Returns the current imputed values in reward units. A rebuilt posterior continues from them."""
        entries = self.posterior.entries
        targets = {number: entries[number].target for number in self.pending.open if number in entries}
        return {
            number: None if target is None else float(self.posterior.units.back(np.array(target)))
            for number, target in targets.items()
        }

    def _targets_of_answers(self) -> dict[int, float]:
        """Returns the targets of all answers. Warping them at once saves some 20 us each."""
        values = {
            number: value
            for number, (trial, _) in self.posterior.entries.items()
            if self.pending.is_answer(number) and (value := self._objective.target(trial, self.multipliers)) is not None
        }
        center, unit, warp = self.posterior.units
        told = np.array(list(values.values()))
        scaled = ((told if warp is None else warp.to(told)) - center) / unit
        return dict(zip(values, scaled.tolist(), strict=True))

    def advance(self) -> None:
        """Moves the posterior to the engine's round, if functions drift."""
        self.posterior.advance()
        if self._answers is not None:
            self._answers.advance(self.engine.now)

    # -- trials and outcomes -------------------------------------------------------------------------------------

    def abandon(self, trial: Trial) -> None:
        """Removes the imputed value of an abandoned trial."""
        if self.pending.abandon(trial):
            self._close(trial.number)

    def update(self, outcomes: list[Trial]) -> None:
        """Learns outcomes, by number, and imputes trials that were asked for since the last update."""
        if self._direct and len(outcomes) == 1 and outcomes[0].reward is not None:
            trial = outcomes[0]  # most rounds: one answer, on which no imputed value depends
            target = self.target(trial)
            self.outcomes.observe(trial, counts=target is not None)
            if target is not None:
                self.posterior.learn_one(trial, target)
            return
        least = self.outcomes.least
        for trial in outcomes:
            self.outcomes.observe(trial)
        learned = [entry for trial in outcomes if (entry := self._resolve(trial)) is not None]
        if self.pending.fresh:
            learned += [entry for trial in self.pending.fresh if (entry := self._imputed_entry(trial)) is not None]
            learned.sort(key=lambda entry: entry.trial.number)
            self.pending.fresh = []
        if learned:
            self.posterior.learn(learned)
            for entry in learned:
                self.outcomes.add(entry.trial)
        for trial in outcomes:
            if trial.reward is None:
                self.outcomes.fail(trial, self.posterior.trials)
        self._update_imputed(lowered=least != self.outcomes.least)

    def _resolve(self, trial: Trial) -> Entry | None:
        """Closes a pending trial by its outcome. Returns the entry that is still to be learned, if any."""
        target = self.target(trial)
        if self._plain:
            return None if target is None else Entry(trial, target)
        asked = self.pending.close(trial)
        imputed = self.posterior.is_imputed(trial.number)
        if trial.reward is None and self._part.failed != "aside":
            self.pending.dropped.add(trial.number)
            target = self._scaled(self._worst(trial))
        elif target is None:
            self._close(trial.number)
            return None
        elif asked is not None and not self._part.counts(trial, lambda: self._rounds.asked_since(trial)):
            self.pending.dropped.add(trial.number)  # the reward came too late, so the imputed value stays
            return None if imputed else self._imputed_entry(asked)
        if self._constraint_means is not None:
            self._constraint_means.add(trial)
        if not imputed:
            return Entry(trial, target)
        entries = self.posterior.entries
        if entries[trial.number].target is None:  # the order of entries is that in which values came
            entries[trial.number] = entries.pop(trial.number)
        self.posterior.revise(trial, target)
        self.outcomes.add(trial)
        return None

    def _close(self, number: int) -> None:
        """Removes a trial from the data."""
        trial = self.posterior.drop(number)
        if trial is not None:
            self.outcomes.remove(trial)

    def restart(self, first: int) -> None:
        """Forgets trials before number `first` and returns to the policy's own kernel."""
        posterior = self.posterior
        self.pending.forget_before(first)
        posterior.entries = {number: entry for number, entry in posterior.entries.items() if number >= first}
        self._recount_constraints()
        self.outcomes.restart(first, list(posterior.trials))
        self.rebuild_own(first)

    def forget_before(self, first: int) -> None:
        """Forgets trials before number `first`. The others stay as they are."""
        gone = [number for number in self.posterior.entries if number < first]
        for number in gone:
            self._close(number)
        self.pending.forget_before(first)
        if gone:
            self.outcomes.forget_best()
            self._recount_constraints()
            if self._moves:
                self.retarget()
            elif self._constraint_means is not None:
                self._update_imputed(lowered=False)
        self.outcomes.forget_failures(first)

    def _recount_constraints(self) -> None:
        if self._constraint_means is not None:
            self._constraint_means.reset(self.posterior.trials)

    # -- imputed values ------------------------------------------------------------------------------------------

    def imputed(self, trial: Trial) -> ImputedValue | None:
        """Returns the imputed value of an unanswered trial in reward units, or None if it counts as nothing."""
        info = PendingInfo(
            self._worst(trial),
            float(self.posterior.units.back(np.zeros(()))),
            lambda: self._rounds.asked_since(trial),
            lambda: float(self.posterior.means([trial])[0]),
            self._answers_alone,
            lambda: self.charge(trial),
            self.pending.waits,
        )
        return self._part.count_as(trial, info)

    def imputed_target(self, imputed: ImputedValue) -> float | None:
        """Returns an imputed value in the posterior's units, or None if it only lowers the variance."""
        return self._scaled(self._part.checked(imputed))

    def _imputed_entry(self, trial: Trial) -> Entry | None:
        imputed = self.imputed(trial)
        return None if imputed is None else Entry(trial, self.imputed_target(imputed))

    def _update_imputed(self, *, lowered: bool) -> None:
        """Updates the imputed values after outcomes.

        Args:
            lowered: whether the smallest reward has changed.
        """
        pending = self.pending
        recharged = self._constraint_means is not None and self._constraint_means.take_changed()
        if pending.waits is not None:
            self.posterior.revise_all(self._due(pending.waits, everything=recharged))
            self.posterior.weigh_all(pending.open, pending.waits, self.lowest())
            if recharged or lowered:
                self._update_targets(sorted(number for number in pending.dropped if number in self.posterior.entries))
        elif self._part.moves or (lowered and (pending.dropped or pending.open)):
            self.retarget()
        elif recharged:
            numbers = (*pending.open, *sorted(pending.dropped))
            self._update_targets([number for number in numbers if number in self.posterior.entries])

    def _due(self, waits: Waits, *, everything: bool) -> list[tuple[Trial, float | None]]:
        """Returns the open trials whose target changes, with the new targets.

        All means are read before any target changes. So the order of trials does not matter.

        Args:
            waits: the memory of delays.
            everything: whether all open trials are looked at, or only those that may have changed.
        """
        moving, posterior, pending = waits.moving(), self.posterior, self.pending
        numbers = [number for number in (pending.open if everything else moving) if number in posterior.entries]
        if not numbers:
            return []
        trials = [pending.open[number] for number in numbers]
        values = waits.values(waits.ages(numbers), posterior.means(trials), self.charges(trials), self.lowest())
        targets = posterior.units.scaled_all(values)
        return [
            (trial, target)
            for number, trial, target in zip(numbers, trials, targets, strict=True)
            if target != posterior.entries[number].target
        ]

    def retarget(self) -> None:
        """Computes all targets anew: first those of answers, then the imputed ones."""
        open_ = self.pending.open
        self._update_targets([number for number in self.posterior.entries if number not in open_])
        if open_:
            if self._answers is not None:
                self._answers.update(self._answered())
            self._update_targets([number for number in open_ if number in self.posterior.entries])
            if self._part.moves:
                self._impute_others()

    def _impute_others(self) -> None:
        """Imputes open trials that counted as nothing so far."""
        fresh = {trial.number for trial in self.pending.fresh}
        out = [t for n, t in self.pending.open.items() if n not in self.posterior.entries and n not in fresh]
        begun = [entry for trial in out if (entry := self._imputed_entry(trial)) is not None]
        if begun:
            self.posterior.learn(begun)

    def _update_targets(self, numbers: list[int]) -> None:
        changes = []
        for number in numbers:
            trial, old = self.posterior.entries[number]
            if number in self.pending.open:
                imputed = self.imputed(trial)
                if imputed is None:
                    self._close(number)
                    continue
                target = self.imputed_target(imputed)
            else:
                target = self._target_now(trial)
            if target != old:
                changes.append((trial, target))
        self.posterior.revise_all(changes)

    def _answered(self) -> dict[int, tuple[Trial, float]]:
        return {
            number: (trial, target)
            for number, (trial, target) in self.posterior.entries.items()
            if target is not None and self.pending.is_answer(number)
        }

    def _answers_alone(self) -> AnswersAlone:
        if self._answers is None:
            posterior = self.posterior
            self._answers = AnswersAlone(self.engine, posterior.empty(), posterior.noise, self.policy.sides)
            self._answers.update(self._answered())
        return self._answers

    # -- values of trials ----------------------------------------------------------------------------------------

    def target(self, trial: Trial) -> float | None:
        """Returns the target of an answered trial in the posterior's units, or None if it teaches nothing."""
        value = trial.reward if self._objective.is_reward else self._objective.target(trial, self.multipliers)
        center, unit, warp = self.posterior.units
        if value is None or (unit == 1.0 and center == 0.0 and warp is None):
            return value  # not a copy of the number that the trial keeps
        return (value - center) / unit if warp is None else self.posterior.units.scaled(value)

    def _target_now(self, trial: Trial) -> float | None:
        if self.pending.is_answer(trial.number):
            return self.target(trial)
        if trial.state == "failed":
            return self._scaled(self._worst(trial))
        imputed = self.imputed(trial)
        return None if imputed is None else self.imputed_target(imputed)

    def _scaled(self, value: float | None) -> float | None:
        return None if value is None else self.posterior.units.scaled(value)

    def value(self, trial: Trial) -> float:
        """Returns the value of a trial in reward units: the posterior mean if it only lowers the variance."""
        is_answer = self.pending.is_answer(trial.number)
        value = self._objective.target(trial, self.multipliers) if is_answer else None
        if value is None and trial.state == "failed":
            value = self._worst(trial)
        elif value is None:
            imputed = self.imputed(trial)
            value = None if imputed is None else imputed.value
        return float(self.posterior.means([trial])[0]) if value is None else value

    def lowest(self) -> float:
        """Returns the smallest possible reward, as far as is known. Failed trials may count as this value."""
        return self._part.lowest(self.outcomes.least, self.policy.prior_mean)

    def _worst(self, trial: Trial) -> float:
        return self.lowest() - self.charge(trial)

    def charge(self, trial: Trial) -> float:
        """Returns the charge of the multipliers at an unanswered trial in reward units, as far as is known."""
        values = None if self._constraint_means is None else self._constraint_means.nearest(trial)
        return 0.0 if values is None else self._objective.charge(values, self.multipliers)

    def charges(self, trials: list[Trial]) -> Array:
        """Returns the charges at several unanswered trials, `(n,)`."""
        return np.array([self.charge(trial) for trial in trials])

    def noise_of_silence(self) -> float:
        """Returns the largest variance of an answer or silence, ((v - s) / 2)^2, in the posterior's units.

        It is 0 if silence is no answer. A fit sees answers alone: if all of them are equal, it finds no noise.
        """
        waits = self.pending.waits
        answer = None if waits is None else waits.answer()
        if waits is None or answer is None:
            return 0.0
        scaled = self.posterior.units.scaled
        return 0.25 * (scaled(answer) - scaled(waits.worth(self.lowest()))) ** 2

    # -- reading -------------------------------------------------------------------------------------------------

    def contains(self, number: int) -> bool:
        """Returns whether a trial is among the data, answered or imputed."""
        return number in self.posterior.entries or number in self.pending.open

    def points(self) -> Array:
        """Returns the points of trials that count, wait or have failed, `(n, d)`."""
        trials = [*self.posterior.trials, *self.pending.open.values(), *self.outcomes.failed.values()]
        return np.array([trial.point for trial in trials]).reshape(len(trials), self.policy.domain.dimension)

    def best_reward(self, context: Array | None) -> float | None:
        """Returns the best (warped) reward that counts under a context, or None before the first."""
        return self._warped(self.outcomes.best(context, self.posterior.trials))

    def best_reward_at(self, points: Array, context: Array | None) -> float | None:
        """Returns the best (warped) reward at points `(n, d)` under a context, or None before the first."""
        return self._warped(best_at(self.posterior.trials, points, context))

    def _warped(self, reward: float | None) -> float | None:
        return None if reward is None else self.posterior.units.warped(reward)

    def copy(self, engine: Engine[Any], rounds: Rounds) -> TrainingData:
        """Returns an independent copy."""
        fresh = {
            "engine": engine, "_rounds": rounds, "posterior": self.posterior.copy(engine),
            "outcomes": self.outcomes.copy(engine),
            "_answers": None if self._answers is None else self._answers.copy(engine),
        }  # fmt: skip
        return independent(self, ("pending", "_constraint_means"), fresh=fresh)
