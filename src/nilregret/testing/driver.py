"""A script of events for studies of one policy: rewards at once, late, out of order and never, and failures.

Each step depends only on its number and the record. A study that was opened again therefore goes on as the one that was
not interrupted. The comparisons that all checks share are at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._utils.checks import Array
from ..domains.domain import Arms, Domain, enclosing_box
from ..domains.search.designs import uniform
from ..errors import InvalidInput, TrialError
from ..kernels.domains import prior_std
from ..policy.policy import Policy
from ..storage.record import Trial
from ..study.study import Study

PROBES = 5  # points at which posteriors are compared
CYCLE = 6  # steps in a period of the script
PLAYS = 3  # most plays of a trial
FAILS, ADDS = 4, 7  # the step with a failure, and the step with an added point


class Driver:
    """A player of the script in studies of one policy.

    Args:
        policy: policy of all studies.
        seed: seed of all studies.
        reward: returns the reward of a trial. None stands for waves about the prior mean, as high as the prior std.
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
        """Returns a new study."""
        return _quiet(Study(self.policy, seed=self.seed, storage=storage, clock=lambda: self._now))

    def opened(self, storage: Any) -> Study:
        """Returns the study in a storage."""
        return _quiet(Study.open(storage=storage, clock=lambda: self._now))

    def play(self, study: Study, start: int, stop: int, *, look: bool = False) -> Study:
        """Plays the steps from `start` to before `stop`, and reads the posterior after each step if `look`."""
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
            told = self._told(trial, self._wave(trial))
            study.add(point, told, context=trial.context, constraints=self._constraints(trial))

    def answer(self, study: Study, trial: Trial) -> None:
        """Tells the reward, further objectives, and the constraint values that the policy needs."""
        reward = self._reward(trial)
        each = [
            reward + 0.1 * i * self.policy.noise for i in range(min(trial.repeats, PLAYS))
        ]  # A trial may be played less often than asked.
        told = each if len(each) > 1 else self._told(trial, reward)
        study.tell(trial, told, constraints=self._constraints(trial))

    def _told(self, trial: Trial, reward: float) -> float | tuple[float, ...]:
        """Returns the reward, or the values of all objectives."""
        others = range(1, self.policy.objective_count)
        told = (reward, *(self._height * float(np.sin(5.0 * self._place(trial) + 2.0 * j)) for j in others))
        return told if len(told) > 1 else reward

    def context(self, step: int) -> Array | None:
        """Returns the context of a step, one of three, so that contexts are repeated."""
        domain = self.policy.context
        return None if domain is None else inside(domain, [2, self.seed], 3)[step % 3]

    # -- reading -------------------------------------------------------------------------------------------------

    def seen(self, study: Study, step: int) -> tuple[Any, ...]:
        """Returns everything that a study predicts, and its next decision."""
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
        """Returns bounds of the other outputs, and feasibility if some of them are constraints."""
        if self.policy.constraints is None:
            return ()
        channels = range(1, self.policy.constraints.count + 1)
        bounds = [study.bounds(self.probes, context=context, channel=j) for j in channels]
        if not self.policy.constraint_count:
            return tuple(bounds)
        return *bounds, study.feasible(self.probes, context=context), study.infeasible(context=context)

    # -- rewards -------------------------------------------------------------------------------------------------

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
            return float(value > policy.prior_mean)  # is a valid click, count and share
        return float(value)

    def _constraints(self, trial: Trial) -> list[float] | None:
        place = self._place(trial)
        return [float(np.cos(7.0 * place + j)) for j in range(self.policy.constraint_count)] or None

    def _place(self, trial: Trial) -> float:
        row = trial.point if trial.context is None else np.concatenate([trial.context, trial.point])
        side = np.where(self._box.upper > self._box.lower, self._box.upper - self._box.lower, 1.0)
        return float(((row - self._box.lower) / side).sum())


def inside(domain: Domain, seed: list[int], count: int) -> Array:
    """Returns points of a domain, `(count, d)`, distinct as far as possible."""
    rng = np.random.default_rng(seed)
    if isinstance(domain, Arms):
        some = rng.permutation(len(domain))[:count]
        return domain.points[np.resize(some, count)]
    return uniform(domain, count, rng)


def _best(study: Study) -> list[int] | None:
    try:
        return [trial.number for trial in study.front()]
    except TrialError:
        return None


def _quiet(study: Study) -> Study:
    """Returns the study without warnings, because its rewards are made up."""
    study.quiet = True
    return study


def promise(kept: object, sentence: str) -> None:
    """Raises an `AssertionError` with this sentence if a promise is not kept."""
    if not kept:
        raise AssertionError(sentence)


def same(first: Any, second: Any) -> bool:
    """Returns True if two nested tuples of arrays and plain values are equal to the last bit."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return bool(np.array_equal(first, second, equal_nan=True))
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    both_nan = isinstance(first, float) and isinstance(second, float) and first != first and second != second
    return both_nan or bool(first == second)


def close(first: Array, second: Array, tolerance: float) -> bool:
    """Returns True if two arrays have one shape and agree within `tolerance` relative to the second one."""
    if first.shape != second.shape:
        return False
    size = max(1.0, float(np.abs(second).max(initial=0.0)))
    return bool(np.isfinite(first).all() and (np.abs(first - second) <= tolerance * size).all())


def refused(call: Callable[[], object], kinds: type[Exception] | tuple[type[Exception], ...]) -> bool:
    """Returns True if a call raises one of these exceptions."""
    try:
        call()
    except kinds:
        return True
    return False


def central_differences(function: Callable[[Array], float], at: Array, step: float = 1e-5) -> Array:
    """Returns the gradient of a function at an array, of its shape, by Richardson-extrapolated differences."""
    gradient = np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        shift = np.zeros(at.shape)
        shift[index] = step
        near = (function(at + shift) - function(at - shift)) / (2 * step)
        far = (function(at + 2 * shift) - function(at - 2 * shift)) / (4 * step)
        gradient[index] = (4 * near - far) / 3
    return gradient
