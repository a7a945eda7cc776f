"""One script of events, played in studies of one policy: answers at once, late, out of order and never, and failures.

What happens at a step is a function of the step and of the record, so that a study that was opened again goes on as the
one that ran through.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._utils.checks import Array
from .._utils.errors import InvalidInput, TrialError
from ..domains.domain import Arms, Domain, Space, enclosing_box
from ..kernels.domains import prior_std
from ..policy.policy import Policy
from ..storage.record import Trial
from ..study.study import Study

PROBES = 5
CYCLE = 6  # steps after which what happens repeats itself
PLAYS = 3  # of a trial that is to be played several times, at most
FAILS, ADDS = 4, 7  # the steps with a failure, and with a point that was never asked for


class Driver:
    """Plays studies of a policy.

    Args:
        policy: of all studies.
        seed: of all studies.
        reward: gives the reward of a trial; None for waves about the prior mean, as high as the prior says.
    """

    def __init__(self, policy: Policy, *, seed: int, reward: Callable[[Trial], float] | None) -> None:
        self.policy, self.seed = policy, seed
        self._reward = self._wave if reward is None else reward
        self._box, self._height = enclosing_box(policy.domain, policy.context), 1.0
        self._height = prior_std(policy.domain, policy.context, policy.kernel)
        self._now = 0.0
        self.probes = inside(policy.domain, [1, seed], PROBES)

    # -- studies -------------------------------------------------------------------------------------------------

    def study(self, *, storage: Any = None) -> Study:
        """A new one."""
        return _quiet(Study(self.policy, seed=self.seed, storage=storage, clock=lambda: self._now))

    def opened(self, storage: Any) -> Study:
        """The one in a storage."""
        return _quiet(Study.open(storage=storage, clock=lambda: self._now))

    def play(self, study: Study, start: int, stop: int, *, look: bool = False) -> Study:
        """The steps from one to before another."""
        for step in range(start, stop):
            self._now = float(step)
            self._play(study, step)
            if look:
                self._looked(study, self.context(step))
        return study

    def _play(self, study: Study, step: int) -> None:
        trial = study.ask(self.context(step))
        if step % CYCLE == 3:
            return
        if step == FAILS and not (isinstance(self.policy.domain, Arms) and len(self.policy.domain) < 3):
            study.fail(trial, "a failure of the script")
            return
        self.answer(study, trial)
        late = trial.number - 2
        if step % CYCLE == 5 and step % (2 * CYCLE) != 5 and late >= 0 and study.trials[late].state == "pending":
            self.answer(study, study.trials[late])
        if step == ADDS:
            point = self.probes[0]
            study.add(point, self._wave(trial), context=trial.context, constraints=self._constraints(trial))

    def answer(self, study: Study, trial: Trial) -> None:
        """Tell the reward, and the constraint values that the policy wants."""
        reward = self._reward(trial)
        each = [reward + 0.1 * i * self.policy.noise for i in range(min(trial.repeats, PLAYS))]  # or fewer than asked
        study.tell(trial, each if len(each) > 1 else reward, constraints=self._constraints(trial))

    def context(self, step: int) -> Array | None:
        """Of a step: one of three, so that contexts come again."""
        domain = self.policy.context
        return None if domain is None else inside(domain, [2, self.seed], 3)[step % 3]

    # -- what is looked at ---------------------------------------------------------------------------------------

    def seen(self, study: Study, step: int) -> tuple[Any, ...]:
        """All that a study says, and what it would decide next."""
        self._now = float(step)
        context = self.context(step)
        state: Any = study.replica.current()
        decision = state.decide(context, now=self._now)
        return *self._looked(study, context), (decision.point, decision.arm, decision.explored)

    def _looked(self, study: Study, context: Array | None) -> tuple[Any, ...]:
        return (
            study.predict(self.probes, context=context), study.bounds(self.probes, context=context), study.width,
            study.information_gain, study.restarts, study.minimum, study.multipliers, study.norm_bounds, _best(study),
            *self._limits(study, context),
        )  # fmt: skip

    def _limits(self, study: Study, context: Array | None) -> tuple[Any, ...]:
        """What is known of constraints that have posteriors of their own."""
        if self.policy.constraints is None:
            return ()
        channels = range(1, self.policy.constraints.count + 1)
        bounds = [study.bounds(self.probes, context=context, channel=j) for j in channels]
        return *bounds, study.feasible(self.probes, context=context), study.infeasible(context=context)

    # -- the world -----------------------------------------------------------------------------------------------

    def _wave(self, trial: Trial) -> float:
        policy = self.policy
        noise = policy.noise * float(np.random.default_rng([99, trial.number]).standard_normal())
        value = policy.prior_mean + self._height * np.sin(5.0 * self._place(trial)) + noise
        try:
            policy.pending.check_reward(value, policy.noise)
        except InvalidInput:
            return float(policy.pending.lowest(None, policy.prior_mean) + abs(value - policy.prior_mean))
        try:
            policy.objective.check_told(value)
        except InvalidInput:
            return float(value > policy.prior_mean)  # a click, a count, and a share
        return float(value)

    def _constraints(self, trial: Trial) -> list[float] | None:
        place = self._place(trial)
        return [float(np.cos(7.0 * place + j)) for j in range(self.policy.constraint_count)] or None

    def _place(self, trial: Trial) -> float:
        row = trial.point if trial.context is None else np.concatenate([trial.context, trial.point])
        side = np.where(self._box.upper > self._box.lower, self._box.upper - self._box.lower, 1.0)
        return float(((row - self._box.lower) / side).sum())


def inside(domain: Domain, seed: list[int], count: int) -> Array:
    """Points of a domain, `(count, d)`: as many distinct ones as there are."""
    rng = np.random.default_rng(seed)
    if isinstance(domain, Arms):
        some = rng.permutation(len(domain))[:count]
        return domain.points[np.resize(some, count)]
    box = enclosing_box(domain)
    points = rng.uniform(box.lower, box.upper, (count, box.dimension))
    return domain.snap(points) if isinstance(domain, Space) else points


def _best(study: Study) -> int | None:
    try:
        return study.best().number
    except TrialError:
        return None


def _quiet(study: Study) -> Study:
    """What is told is made up, so that nobody need hear what it says against the policy."""
    study.quiet = True
    return study
