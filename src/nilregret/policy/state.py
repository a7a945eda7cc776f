"""The state of a policy after a record: what it knows, and what it decides next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import independent
from .._utils.randomness import Randomness, Rng
from ..kernels import Kernel
from ..slots.constraints import Mask
from ..slots.envelope import Bounds, Envelope
from ..slots.fidelity import Fidelity, Levels, forced_level
from ..slots.memory import Evidence, Restart
from ..slots.no_worse import Budget
from ..slots.objective import Change
from ..slots.refit import Lengthscales
from ..storage.record import Event, Trial
from .availability import Available
from .decide import Pinned, decide, distribution, due_forcing, filled, propensity
from .engines import Decision, make_engine
from .fits import FitJob, FitsOnRecord, LateFits
from .memory_runner import MemoryRunner
from .outputs import BY_NUMBER, Outputs
from .policy import Policy
from .rounds import Rounds

LEAST = 1e-12  # least probability of a decision that was made, which rounding may make 0


@final
class State:
    """A policy after some events of a record.

    A state is a cache: a pure function of policy, seed and events. It is rebuilt by replay and never stored. Outcomes
    that arrive between two decisions are learned before the next decision, by trial number. So the order of their
    arrival leaves no trace, and a replay repeats the same arithmetic to the bit.

    Args:
        policy: the policy of the run.
        seed: the seed of its random choices.
        late: fits that are made apart from decisions. None if a decision makes the fit that is due.

    Attributes:
        rounds: the rounds so far.
        outputs: the models of the reward and of all constraints.
        reward: the model of the reward.
        memory: the memory of the run, which lets the outputs learn.
        waiting: outcomes since the last decision.
    """

    def __init__(self, policy: Policy, *, seed: int, late: LateFits | None = None) -> None:
        self.policy, self._late = policy, late is not None
        budgets = [Budget(guard, policy.context) for guard in policy.guards or ()]
        self.rounds = Rounds(seed, policy.confidence.recent, budgets)
        by_rows = policy.refit is not None and policy.refit.by_rows
        engine = make_engine(policy.domain, policy.context, policy.search, policy.sketch, seed=seed, by_rows=by_rows)
        engine.drifts, engine.runs = policy.memory.drift() is not None, policy.switching is not None
        engine.tides = policy.memory.tides
        self.outputs = Outputs(policy, engine, self.rounds, seed=seed, late=late)
        self.reward = self.outputs.reward
        self.memory = MemoryRunner(policy, self.rounds, self.outputs)
        self.waiting: list[Trial] = []
        self._fitted = policy.fitting is not None
        # Imputing parts and constraints need a trial before its answer. Most policies do not.
        self._imputes = policy.pending.revises or policy.constraints is not None
        # Most policies learn an outcome and have nothing else to update, which makes their rounds quick.
        self._simple = self.reward.guess is None and not (policy.by_round or policy.refit or policy.constraints)

    def add_arms(self, policy: Policy) -> bool:
        """Takes over this policy on more arms, of which nothing is known, to the bit as a replay would, in O(1).

        Returns False if something that was learned depends on all arms. A replay must then make the state anew.
        """
        if policy.models is None or policy.switching is not None or self.memory.detector is not None:
            return False
        self.policy = self.memory.policy = policy
        return self.outputs.add_arms(policy)

    # -- events --------------------------------------------------------------------------------------------------

    def receive(self, events: Iterable[Event]) -> None:
        """Takes in events, in order."""
        if self._fitted:
            events = list(events)
            self.outputs.plan_replay(events, self.waiting)
        for event in events:
            trial = event.trial
            if event.kind == "asked":
                if self.waiting or self._imputes or not self._simple:
                    self._update(trial.fits if self._fitted else None)
                if self.reward.balance is not None:
                    self.reward.balance.record(trial, partial(self._spread_at, trial), self.reward.data)
                self.rounds.record(trial)
                if self._imputes:
                    self.outputs.record(trial)
                    self.memory.record(trial)
            else:
                self._observe(event)
            if trial.number >= self.rounds.count:
                self.rounds.count = trial.number + 1
        if self._fitted:
            self.outputs.end_replay()

    def _observe(self, event: Event) -> None:
        """Stores an outcome until the next decision."""
        trial = event.trial
        if event.kind == "told":
            self.rounds.observe(trial, event.order)
            self.waiting.append(trial)
        else:
            if event.kind == "abandoned":
                self.reward.data.abandon(trial)
            self.memory.observe(event)
        if self.outputs.others:
            self.outputs.observe_others(event)

    def _spread_at(self, trial: Trial) -> float | None:
        """Returns half the width of the bounds of f at a trial, or None if the round is forced."""
        if trial.enqueued or trial.kept is not None:
            return None
        randomness = Randomness(self.rounds.seed, self.rounds.count)
        forced = self.policy.explore.ever and due_forcing(self.memory, randomness) is not None
        if forced:
            return None
        at = self.reward.bounds_at(trial)
        return 0.5 * float(at.upper[0] - at.lower[0])

    def _update(self, known: FitsOnRecord | None = None) -> None:
        """Learns the outcomes that wait, and makes all updates that are due before a decision."""
        outcomes = self.waiting
        if self._simple:
            if outcomes or self.reward.data.pending.fresh:
                self.waiting = []
                self.reward.data.update(sorted(outcomes, key=BY_NUMBER) if len(outcomes) > 1 else outcomes)
            return
        self.waiting = []
        outcomes = sorted(outcomes, key=BY_NUMBER)
        self.memory.update(outcomes)
        if self.policy.objective.revises:
            self._update_charges(outcomes)
        if outcomes:
            self.reward.check_guess()
        if self.outputs.update_others(known):
            self.memory.refitted()
        if self.policy.refit is not None and self.reward.update_kernel(known):
            self.memory.refitted()

    def _update_charges(self, outcomes: list[Trial]) -> None:
        """Updates the multipliers, and the targets of all trials if a new epoch begins."""
        reward, charges = self.reward, self.reward.charges
        for trial in outcomes:
            charges.hear(trial)
        change = charges.advance(self.rounds.count)
        reward.data.multipliers = charges.values
        kernel, before = self.policy.kernel if charges.kernel is None else charges.kernel, reward.posterior.kernel
        reward.posterior.kernel = kernel
        if change is Change.RESTART and charges.began > self.rounds.since:  # a later restart of the memory stays
            self.memory.restart(Restart(charges.began, "a new epoch"))
        elif kernel is not before and kernel != before:
            reward.data.rebuild_own(self.rounds.since)
        elif change is not Change.NOTHING:
            reward.data.retarget()

    # -- decisions -----------------------------------------------------------------------------------------------

    def decide(
        self, context: Array | None = None, *, now: float = math.inf, available: Available | None = None,
        again: Trial | None = None,
    ) -> Decision:  # fmt: skip
        """Returns the next decision. Repeated calls return the same decision.

        Args:
            context: the context of the round, or None.
            now: Unix seconds, if the width depends on the age of questions.
            available: what may be played this time, or None for everything.
            again: the trial on record that this decision became, or None for a new decision. Its fits are read.
        """
        with self.outputs.engine.blas:
            self._update(None if again is None else again.fits)
            randomness = Randomness(self.rounds.seed, self.rounds.count)
            decision = decide(self.memory, context, randomness, now=now, available=available)
        return decision._replace(fits=self.outputs.unrecorded_fits) if self._fitted else decision

    def fill(
        self, pinned: Pinned, context: Array | None = None, *, now: float = math.inf,
        available: Available | None = None, again: Trial | None = None,
    ) -> Decision:  # fmt: skip
        """Returns the decision with given columns. The policy chooses the others (see `decide` for the rest)."""
        with self.outputs.engine.blas:
            self._update(None if again is None else again.fits)
            randomness = Randomness(self.rounds.seed, self.rounds.count)
            decision = filled(self.memory, pinned, context, randomness, now=now, available=available)
        return decision._replace(fits=self.outputs.unrecorded_fits) if self._fitted else decision

    def failed_among(self, available: Available) -> Mask:
        """Returns which points are set aside because their trials failed, `(n,)`."""
        return self.outputs.engine.failed_among(available)

    def may_keep(self, chosen: Trial, context: Array | None) -> bool:
        """Returns False if a rule plays certified points alone, and nothing certifies an earlier trial's point now."""
        rule = self.outputs.rule
        if rule is None or not rule.certifies:
            return True
        with self.outputs.engine.blas:
            self._update()
        return bool(self.certain(chosen.point[None], context)[0] >= 1.0)

    def keep(self, chosen: Trial) -> Decision:
        """Returns the decision to play the arm of an earlier trial again."""
        with self.outputs.engine.blas:
            self._update()
        fits = self.outputs.unrecorded_fits if self._fitted else None
        return Decision(chosen.point, chosen.arm, explored=False, fits=fits)

    def setting(self, decision: Decision) -> Array:
        """Returns the setting that the policy chooses for its decision, `(1,)`. It has a `fidelity`."""
        part = cast(Fidelity, self.policy.fidelity)
        place = forced_level(self.policy.explore, self.rounds.count, len(part.grid))
        if place is None:
            with self.outputs.engine.blas:
                place = part.choose(self._levels(part, decision.point))
        return np.asarray(part.grid[place])

    def _levels(self, part: Fidelity, point: Array) -> Levels:
        """Returns what is known of a point at all settings."""
        posterior, grid = self.reward.posterior, part.grid
        belief, kernel = posterior.belief.with_pending, posterior.in_use
        rows = np.concatenate([grid, np.repeat(point[None], len(grid), axis=0)], axis=1)
        covariance, prior = belief.covariance(rows), kernel(rows, rows)
        variances = np.maximum(prior.diagonal(), np.finfo(float).tiny)
        alike = prior[-1] / np.sqrt(variances * variances[-1])
        std = np.sqrt(np.maximum(covariance.diagonal(), 0.0))
        width = self.bounds().width
        return Levels(part.costs, std, covariance[-1], posterior.ridge, float(variances[-1]), alike, width, len(point))

    def propensity(
        self, decision: Decision, context: Array | None, *, now: float, available: Available | None
    ) -> float | None:
        """Returns the probability with which `decide` has just made a decision, or None if it is not known."""
        found = propensity(self.memory, decision, context, now=now, available=available)
        return None if found is None else min(max(found, LEAST), 1.0)

    def distribution(
        self, context: Array | None = None, *, now: float = math.inf, available: Available | None = None
    ) -> Array | None:
        """Returns the probability of each point that may be played to be the next decision, `(n,)`, or None.

        The arguments are those of `decide`. Nothing is learned before.
        """
        return distribution(self.memory, context, now=now, available=available)

    def settled(self) -> State:
        """Returns a state that has learned all outcomes. It is a copy if an update is due."""
        outputs = self.outputs
        waits = bool(self.waiting) or self.memory.waits or bool(self.reward.data.pending.fresh)
        waits = waits or outputs.others_wait or outputs.dual.due(self.rounds.count)
        waits = waits or (self._late and self.may_fit())  # a fit may be ready
        if not (waits or self.policy.by_round):
            return self
        other = self.copy()
        other._update()
        return other

    def may_fit(self) -> bool:
        """Returns whether a fit may be due now. It never errs when it says no, and is quick."""
        return self._fitted and self.outputs.may_fit(len(self.waiting))

    def fit_jobs(self) -> list[FitJob]:
        """Returns the fits that are due and not in force. The state must be `settled`."""
        return self.outputs.fit_jobs()

    def copy(self) -> State:
        """Returns an independent copy."""
        rounds = self.rounds.copy()
        outputs = self.outputs.copy(rounds)
        memory = self.memory.copy(rounds, outputs)
        fresh = {"rounds": rounds, "outputs": outputs, "reward": outputs.reward, "memory": memory}
        return independent(self, ("waiting",), fresh=fresh)

    def turn_to(self, number: int) -> None:
        """Makes the next decision that of trial `number`. The trials between are skipped."""
        self.rounds.count = number

    # -- predictions and bounds ----------------------------------------------------------------------------------

    def bounds(self, *, now: float = math.inf) -> Bounds:
        """Returns the bounds of f in the next round."""
        return self.reward.bounds(now=now)

    def width(self, *, now: float = math.inf) -> float:
        """Returns the multiple of the standard deviation in the next round, or nan if bounds are no such multiple."""
        width = self.bounds(now=now).width
        return math.nan if width is None or self.reward.posterior.units.warp is not None else width

    def envelope(self, points: Any = None, context: Array | None = None, *, now: float = math.inf) -> Envelope:
        """Returns the bounds of f in the next round, at points of the domain or at all arms."""
        return self.reward.posterior.units.shown(self.reward.envelope(points, context, now=now))

    def answered(self) -> State:
        """Returns a state whose deviations of the reward are those of the answers alone. It is a copy if others count.

        Unanswered trials that shrink deviations keep decisions apart. They say nothing of f.
        """
        if not self.reward.posterior.belief.apart:
            return self
        other = self.copy()
        other.reward.posterior.belief.leave_pending()
        return other

    def limit(self, j: int, points: Any = None, context: Array | None = None) -> Envelope:
        """Returns the bounds of output j, from 1, in the next round."""
        return self.outputs.other_envelope(j, points, context)

    @property
    def tells_exactly(self) -> bool:
        """True if fits have found no noise that would matter in any objective (see `OutputModel`)."""
        return all(output.tells_exactly for output in self.outputs.objectives)

    def objective_means(self, trials: list[Trial]) -> Array:
        """Returns posterior means of all objectives at answered trials, `(n, k)`: medians of warped values."""
        return np.stack([output.posterior.means(trials) for output in self.outputs.objectives], axis=1)

    def certain(self, points: Any, context: Array | None) -> Array:
        """Returns what is certain of points and the constraints, `(n,)` (see `Constraints.certain`)."""
        return self.outputs.certain(points, context)

    def infeasible(self, context: Array | None) -> float | None:
        """Returns the confidence that no point is feasible, or None if some point may be."""
        return self.outputs.infeasible(context)

    def inside(self, trials: list[Trial]) -> Mask | None:
        """Returns which answered trials are feasible in the posterior mean, `(n,)`, or None without constraints."""
        return self.outputs.inside(trials)

    def answered_means(self, trials: list[Trial]) -> Array:
        """Returns posterior means of f at answered trials, `(n,)`, without the charges for violations."""
        return self.reward.posterior.reward_means(trials) + self.reward.charges.put_back(trials)

    def best_answered(self, trials: list[Trial]) -> int:
        """Returns the place of the answered trial with the largest of `answered_means`, the first of several.

        The trials are at different points, or under different contexts.
        """
        return self.reward.posterior.best_of(trials, self.reward.charges.put_back(trials))

    def draw_answered(self, trials: list[Trial], rng: Rng, size: int) -> Array:
        """Returns joint draws of f at answered trials, `(size, n)`, without the charges for violations."""
        return self.reward.posterior.draw(trials, rng, size) + self.reward.charges.put_back(trials)

    @property
    def valid_for(self) -> str:
        """The claim for which the bounds of the next round are proved (see `Envelope`)."""
        return self.reward.valid_for

    @property
    def proved(self) -> str:
        """The claim for which the bounds of all outputs are proved together."""
        claims = {output.valid_for for output in self.outputs.each}
        return claims.pop() if len(claims) == 1 else "played" if claims == {"f", "played"} else "none"

    # -- descriptions --------------------------------------------------------------------------------------------

    @property
    def multipliers(self) -> Array:
        """The multipliers of the constraints in the next round, `(m,)`, empty without constraints."""
        return self.outputs.dual.prices if self.outputs.constraints else self.reward.data.multipliers

    @property
    def price_steps(self) -> Sequence[tuple[int, Array]]:
        """The multipliers so far, each with its first round."""
        return self.reward.charges.steps

    @property
    def saturated(self) -> bool:
        """True if a multiplier or a penalty has been cut off."""
        return self.reward.charges.saturated

    @property
    def remarks(self) -> Mapping[str, str]:
        """Warnings for the user by kind."""
        guess = self.reward.guess
        return self.outputs.dual.remarks if guess is None else {**self.outputs.dual.remarks, **guess.remarks}

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """Guesses of the norm bound, each with the number of rounds before it. Empty if the bound is given."""
        return [] if self.reward.guess is None else list(self.reward.guess.history)

    @property
    def restarts(self) -> list[Restart]:
        """All restarts of the memory so far."""
        return list(self.memory.restarts)

    @property
    def round(self) -> int:
        """The round t = 1, 2, ... since the last restart."""
        return self.rounds.number

    @property
    def since(self) -> int:
        """The round of the last restart."""
        return self.rounds.since

    @property
    def first_counted(self) -> int:
        """The number of the first trial that counts in the next round."""
        return self.memory.first_counted

    @property
    def evidence(self) -> Evidence | None:
        """The evidence of a change, or None without a detector that has a number for it."""
        return self.memory.evidence

    @property
    def minimum(self) -> float | None:
        """The value of censored trials in reward units, or None if unanswered trials are not censored."""
        return self.policy.pending.stand_in(self.reward.data.lowest())

    @property
    def information_gain(self) -> float:
        """The realised information gain of the trials that count, in nats."""
        return float(self.reward.posterior.belief.with_pending.information_gain)

    @property
    def shortfall(self) -> float:
        """The rho of a sketch, or 0 if the posterior is exact."""
        return float(self.reward.posterior.belief.with_pending.shortfall)

    @property
    def kernel(self) -> Kernel:
        """The kernel in use: given, fitted on standardised rewards, or the likeliest of several."""
        return self.reward.posterior.in_use

    @property
    def lengthscales(self) -> Lengthscales | None:
        """The belief about lengthscales, or None if there is one kernel."""
        return self.reward.lengthscales
