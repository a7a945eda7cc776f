"""All outputs of a policy: the reward, further objectives, and constraints that have posteriors of their own."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import independent
from ..domains.domain import Arms
from ..errors import InvalidInput
from ..slots.constraints import Mask, hopeless
from ..slots.envelope import DualState, Envelope
from ..slots.memory import Model, ModelInfo
from ..storage.record import Event, Trial
from .engines import Engine, Front, Limits, Prior
from .fits import FitJob, FitsOnRecord, LateFits
from .output_model import OutputModel
from .policy import Policy
from .rounds import Rounds

BY_NUMBER = attrgetter("number")


@final
class Outputs:
    """The models of all outputs of a policy.

    Args:
        policy: the policy.
        engine: the engine of the policy.
        rounds: the rounds of the run.
        seed: the seed of the run.
        late: fits that are made apart from decisions, or None.

    Attributes:
        reward: the model of the reward, output 0.
        others: the models of all other outputs, from 1.
        objectives: the models of the objectives, the reward first.
        constraints: the models of the constraints, the last outputs.
        rule: the sense in which constraints must hold, or None without such constraints.
        dual: the run-time state of the rule, such as prices.
    """

    def __init__(
        self, policy: Policy, engine: Engine[Any], rounds: Rounds, *, seed: int, late: LateFits | None = None
    ) -> None:
        self.policy, self.engine, self.rounds, self.rule = policy, engine, rounds, policy.constraints
        count = 0 if self.rule is None else self.rule.count
        engine.outputs += count
        self.others = [
            OutputModel(
                policy.of_channel(j + 1), engine, rounds, seed=seed, index=j + 1,
                learns_size=self.rule is not None and self.rule.learns(j), late=late,
            )
            for j in range(count)
        ]  # fmt: skip
        self.reward = OutputModel(policy, engine, rounds, seed=seed, index=0, late=late)
        self._share(self.reward)
        self.dual = DualState() if self.rule is None else self.rule.begin(policy)
        self._waiting: list[Trial] = []  # trials whose constraint values came in, or that failed, since the last update
        self.reward.update_kernel()

    def _share(self, reward: OutputModel) -> None:
        """Sets which models are of objectives, and which of constraints."""
        k = 1 if self.rule is None else self.rule.objectives
        self.each = [reward, *self.others]
        self.objectives, self.constraints = self.each[:k], self.each[k:]

    def add_arms(self, policy: Policy) -> bool:
        """Takes over a policy on more arms (see `State.add_arms`)."""
        self.policy, self.rule, self.engine.domain = policy, policy.constraints, policy.domain
        each = [policy, *(policy.of_channel(j + 1) for j in range(len(self.others)))]
        return all(output.add_arms(one) for output, one in zip(self.each, each, strict=True))

    # -- trials and values ---------------------------------------------------------------------------------------

    def record(self, trial: Trial) -> None:
        """Records a trial that was asked for."""
        for output in self.each:
            output.data.pending.record(trial)
        if self.constraints:
            self.dual.asked(trial, lambda: [output.bounds_at(trial) for output in self.constraints])

    def observe_others(self, event: Event) -> None:
        """Stores values of the other outputs, or a failure, for the next update."""
        trial = event.trial
        if event.kind == "abandoned":
            for output in self.others:
                output.data.abandon(trial)
            self.dual.left(trial)
            return
        came = event.kind == "limited" or (trial.constraints_order is None and trial.constraints is not None)
        if came or (trial.state == "failed" and trial.constraints is None):
            self._waiting.append(trial)

    @property
    def others_wait(self) -> bool:
        """True if values of the other outputs wait to be learned."""
        return bool(self._waiting) or any(output.data.pending.fresh for output in self.others)

    def learn_others(self, first: int) -> None:
        """Learns the values of other outputs that wait, by number, of trials from number `first` on."""
        waiting, self._waiting = sorted(self._waiting, key=BY_NUMBER), []
        for trial in waiting:
            if trial.constraints is not None:
                self.dual.hear(trial, partial(self._expected, trial))
            else:
                self.dual.left(trial)
        counted = [trial for trial in waiting if trial.number >= first]
        for output in self.others:
            if counted or output.data.pending.fresh:
                output.learn_value(counted)

    def _expected(self, trial: Trial) -> list[Any]:
        return [output.expected(trial) for output in self.constraints]

    def plan_replay(self, events: list[Event], waiting: list[Trial]) -> None:
        """Finds out which fits of a replay are needed (see `Fits.plan_replay`)."""
        self.reward.plan_replay(events, waiting)
        if not self.dual.watches:
            for output in self.others:
                output.plan_replay(events, None)

    def end_replay(self) -> None:
        """Ends what `plan_replay` began."""
        for output in self.each:
            output.end_replay()

    def update_others(self, known: FitsOnRecord | None) -> bool:
        """Updates prices, guesses, fits and sizes. Returns whether a size was learned anew."""
        if not self.others:
            return False
        self.dual.advance(self.rounds.count)
        for output in self.others:
            output.check_guess()
            output.update_kernel(known)
        learned = [output.update_size() for output in self.others]
        return any(learned)

    @property
    def unrecorded_fits(self) -> FitsOnRecord:
        """Fits in force for the next decision that are not on record."""
        return tuple(fit for output in self.each for fit in output.unrecorded_fits)

    def may_fit(self, outcomes: int) -> bool:
        """Returns whether a fit may be due after so many outcomes that the reward has not learned."""
        return self.reward.may_fit(outcomes) or any(each.may_fit(len(self._waiting)) for each in self.others)

    def fit_jobs(self) -> list[FitJob]:
        """Returns the fits that are due and not in force."""
        return [job for output in self.each if (job := output.fit_job()) is not None]

    # -- memory --------------------------------------------------------------------------------------------------

    def restart(self, first: int) -> None:
        """Forgets trials before number `first`, and all fits."""
        self.dual.forget_before(first)
        for output in self.each:
            output.restart(first)

    def forget_before(self, first: int) -> None:
        """Forgets trials before number `first`."""
        self.dual.forget_before(first)
        for output in self.each:
            output.forget_before(first)

    def advance(self, round_: int) -> None:
        """Moves all posteriors to a round, if functions drift."""
        if round_ > self.engine.now:
            self.engine.now = round_
            for output in self.each:
                output.data.advance()

    def model_info(self, *, learned: bool) -> ModelInfo:
        """Returns the priors of all outputs, for change detectors.

        Args:
            learned: whether kernel and noise stay as they are. False before the first fit.
        """
        policy, engine, reward, posterior = self.policy, self.engine, self.reward, self.reward.posterior
        kernel, ridge = posterior.in_use, posterior.ridge
        return ModelInfo(
            policy.domain, policy.context, kernel, ridge, engine.cell,
            partial(engine.fresh, Prior(kernel, ridge)),
            reward.description().noise_variance, policy.output_count,
            partial(engine.prior_covariance, kernel), partial(engine.largest_variance, kernel),
            posterior.units.scaled, learned, self._scales(), self._models(),
        )  # fmt: skip

    def _scales(self) -> tuple[Callable[[float], float], ...]:
        return tuple(output.posterior.units.scaled for output in self.others)

    def _models(self) -> tuple[Model, ...]:
        """Returns the priors of other outputs, or none if all equal that of the reward and come with it."""
        policy = self.policy
        alike = all(o.policy.kernel == policy.kernel and o.policy.noise == policy.noise for o in self.others)
        if alike and policy.refit is None and policy.pending.waits() is None:  # silence may be an answer
            return ()
        return tuple(output.description() for output in self.others)

    def silent_values(self, trial: Trial) -> Array | None:
        """Returns the values of silence for the other outputs of an unanswered trial, `(m,)`.

        A value is nan if silence says nothing. Returns None if all are.
        """
        values = np.array([self._silent_value(output, trial) for output in self.others])
        return None if np.isnan(values).all() else values

    @staticmethod
    def _silent_value(output: OutputModel, trial: Trial) -> float:
        waits = output.data.pending.waits
        if waits is None or not waits.evident or trial.number not in output.data.pending.open:
            return math.nan
        return waits.worth(output.data.lowest())

    # -- constraints ---------------------------------------------------------------------------------------------

    def limits(self) -> Limits:
        """Returns the beliefs about all other outputs for the next round."""
        if self.rule is None:
            raise self._no_constraints()
        return Limits(self.rule, tuple(output.limit() for output in self.others), self.dual, self._front())

    def _front(self) -> Front | None:
        """Returns the points of a front, or None for a single objective."""
        if len(self.objectives) == 1 or self.rule is None:
            return None
        told = [trial for trial in self.reward.data.posterior.trials if trial.reward is not None]
        places = {trial.point.tobytes(): trial.point for trial in [*told, *self.reward.data.pending.open.values()]}
        points = np.array(list(places.values())).reshape(len(places), self.policy.domain.dimension)
        at = dict(zip(places, range(len(places)), strict=True))
        index = np.array([at[trial.point.tobytes()] for trial in told], dtype=np.intp)
        units, counts = [output.posterior.units for output in self.objectives], np.bincount(index, minlength=len(at))
        sums = np.zeros((len(at), len(units)))
        for j, (output, each) in enumerate(zip(self.objectives, units, strict=True)):
            values = np.array([output.value_of(trial).reward for trial in told], dtype=np.float64)
            values = values if each.warp is None else each.warp.to(values)
            np.add.at(sums[:, j], index, values - each.center)
        with np.errstate(invalid="ignore"):
            observed, given = sums / counts[:, None], self.rule.reference
        inside = self.engine.inside(points) if self.engine.strays else slice(None)
        if given is not None:
            given = tuple(each.warped(value) - each.center for each, value in zip(units, given, strict=True))
        return Front(points[inside], observed[inside], None if given is None else np.array(given))

    def _other(self, j: int) -> OutputModel:
        if not self.others:
            raise self._no_constraints()
        return self.each[j]

    def _no_constraints(self) -> InvalidInput:
        return InvalidInput(
            f"The policy `{self.policy.algorithm}` has no posterior of the constraints.",
            advice="Make it with `constraints=nr.EveryRound(count=1)`, `nr.OnAverage(...)` or `nr.Safe(...)`.",
            topic="channels",
        )

    def other_envelope(self, j: int, points: Any, context: Array | None) -> Envelope:
        """Returns the bounds of output j, from 1, in the user's units."""
        output = self._other(j)
        return output.posterior.units.shown(output.envelope(points, context))

    def certain(self, points: Any, context: Array | None) -> Array:
        """Returns what is certain of points and the constraints, `(n,)` (see `Constraints.certain`)."""
        if self.rule is None or not self.constraints:
            raise self._no_constraints()
        found = [output.envelope(points, context) for output in self.constraints]
        domain = self.policy.domain
        at = domain.points if points is None and isinstance(domain, Arms) else domain.inside("points", points)
        return self.rule.certain(found, at, self.dual, context)

    def infeasible(self, context: Array | None) -> float | None:
        """Returns the confidence that no point is feasible, or None if some point may be.

        No point is feasible if at every candidate the lower bound of some constraint is above 0.
        """
        self._other(1)
        if not self.constraints:
            return None
        points = self.engine.candidates()
        if points is not None:
            points = np.concatenate([points, self.engine.kept(self.reward.data.points())])
        first = len(self.objectives)
        each = [self.other_envelope(j, points, context) for j in range(first, len(self.each))]
        return self.confidence if hopeless(each).all() else None

    @property
    def confidence(self) -> float:
        """The least probability that the bounds of all constraints hold. It is 0 if some are not proved."""
        deltas = [o.policy.confidence.delta if o.valid_for == "f" else 1.0 for o in self.constraints]
        return max(1.0 - sum(deltas), 0.0)

    def inside(self, trials: Sequence[Trial]) -> Mask | None:
        """Returns which answered trials are feasible in the posterior mean, `(n,)`, or None without constraints."""
        if not self.constraints:
            return None
        means = [output.posterior.means(list(trials)) for output in self.constraints]
        return np.asarray(np.max(means, axis=0) <= 0.0)

    def copy(self, rounds: Rounds) -> Outputs:
        """Returns an independent copy."""
        engine = self.engine.copy()
        each = [output.copy(engine, rounds) for output in self.each]
        fresh = {"engine": engine, "rounds": rounds, "reward": each[0], "others": each[1:]}
        found = independent(self, ("_waiting", "dual"), fresh=fresh)
        found._share(each[0])
        return found
