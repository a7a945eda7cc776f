"""The only place where the parts of a policy meet.

`Policy` is a frozen description. `State` is what a policy knows after a record: a cache, rebuilt by replay and never
stored. Its answer is a pure function of (policy, seed, events so far).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from . import serialize
from .checks import LARGEST_REWARD, Array, number
from .domain import Arms, Box, Domain, Space, check_domain, sides
from .engines import Decision, Engine, Question, Setting, make_engine, row_of, table
from .errors import InvalidInput
from .fitting import Standardization
from .information import GreedyDesign
from .kernels import Kernel
from .parts.confidence import Bounds, Confidence, Envelope, Progress
from .parts.refit import Refit, rescaled
from .parts.rkhs import NormGuess, SelfNormalized
from .parts.scores import Score
from .parts.search import PointSearch
from .randomness import Randomness
from .record import Event, Trial

__all__ = ["Decision", "Policy", "State"]


@final
@serialize.described
@dataclass(frozen=True, kw_only=True)
class Policy:
    """How to decide: parts in fixed slots. Made by the functions of `noregret.algorithms`, one for each theorem.

    Attributes:
        algorithm: name of the function that filled the slots.
        domain: what may be played.
        context: where contexts come from, or None.
        kernel: how the rewards of two points relate; of two (context, point) rows where there are contexts.
        noise: standard deviation (or sub-Gaussian constant) of the reward noise, reward units.
        regularization: lambda, added to the kernel matrix, reward units squared.
        prior_mean: what a reward is expected to be before anything is seen, reward units.
        confidence: which bounds hold for f.
        score: what makes a point attractive.
        search: how a continuous domain is searched for the best score; arms are searched whole.
        refit: when the kernel is learned from the record; None for a kernel that is given.
    """

    algorithm: str
    domain: Domain
    context: Domain | None = None
    kernel: Kernel
    noise: float
    regularization: float
    prior_mean: float = 0.0
    confidence: Confidence
    score: Score
    search: PointSearch = field(default_factory=PointSearch)
    refit: Refit | None = None

    def __post_init__(self) -> None:
        check_model(self.domain, self.context, self.kernel)
        for name, value, kind in (("search", self.search, PointSearch), ("refit", self.refit, Refit | None)):
            if not isinstance(value, kind):
                raise InvalidInput(
                    f"`{name}` must be made by `nr.{'PointSearch' if name == 'search' else 'Refit'}(...)`."
                )
        why = "It is a standard deviation, in the units of the reward."
        object.__setattr__(self, "noise", number("noise", self.noise, low=0.0, high=LARGEST_REWARD, why=why))
        prior_mean = number("prior_mean", self.prior_mean, low=-LARGEST_REWARD, high=LARGEST_REWARD)
        object.__setattr__(self, "prior_mean", prior_mean)
        why = "With noise = 0 give `regularization` yourself, such as 1e-6 of the prior variance."
        ridge = number("regularization", self.regularization, low=0.0, open_low=True, why=why)
        object.__setattr__(self, "regularization", ridge)
        if self.refit is not None:
            rescaled(self.kernel, 1.0 / sides(self.domain, self.context))  # does the kernel have what a fit needs?

    def to_json(self) -> str:
        """The description as one line of JSON; equal policies give equal text."""
        return serialize.dumps(self)

    @staticmethod
    def from_json(text: str) -> Policy:
        """The policy behind `to_json`."""
        policy = serialize.loads(text)
        if not isinstance(policy, Policy):
            raise InvalidInput(f"This JSON describes a {type(policy).__name__}, not a Policy.")
        return policy


def check_model(domain: object, context: object, kernel: object) -> None:
    """Refuse what is no domain or kernel, and a kernel that does not fit the rows it will see."""
    check_domain("domain", domain)
    if context is not None:
        check_domain("context", context)
    if not isinstance(kernel, Kernel):
        raise InvalidInput(f"`kernel` must be a kernel such as Matern(2.5, lengthscale=0.2), not {kernel!r}.")
    if isinstance(domain, Arms) and context is None:
        kernel.between_arms(domain.points, np.array([0]), np.array([0]))
    elif isinstance(domain, Arms | Box | Space):
        width = context.dimension if isinstance(context, Arms | Box | Space) else 0
        row = np.zeros((1, width + domain.dimension))
        kernel.input_gradient(row, row, np.ones((1, 1)))  # continuous domains are searched by gradients


class State:
    """A policy after some events of a record.

    Outcomes that arrive between two decisions wait until the next one and are then taken in by trial number, so that
    the order of their arrival leaves no trace, and replaying the events repeats the same arithmetic bit for bit.
    """

    def __init__(self, policy: Policy, *, seed: int) -> None:
        self.policy = policy
        self._seed = seed
        self._rounds = 0
        self._last: Array | None = None  # the point asked for most recently
        self._waiting: list[Trial] = []
        self._taken: list[Trial] = []  # outcomes in the order in which they were taken in, where refits need them
        self._settled: list[int] = []  # how many of them there were after each settling
        self._refits = 0
        self._scale = Standardization(policy.prior_mean, 1.0)
        self._engine = self._new_engine(policy.kernel, policy.regularization)
        confidence = policy.confidence
        self._guess = NormGuess(confidence) if isinstance(confidence, SelfNormalized) and confidence.guessed else None
        self._design: GreedyDesign | None = None
        self._best_reward: float | None = None

    def _new_engine(self, kernel: Kernel, regularization: float) -> Engine:
        policy = self.policy
        setting = Setting(policy.domain, policy.context, kernel, regularization, policy.score, policy.search)
        return make_engine(setting, seed=self._seed)

    def receive(self, events: Iterable[Event]) -> None:
        """Take in what happened, in order."""
        for event in events:
            if event.kind == "asked":
                self._settle()
                self._last = event.trial.point
            else:
                self._waiting.append(event.trial)
            self._rounds = max(self._rounds, event.trial.number + 1)

    def decide(self, context: Array | None = None) -> Decision:
        """The next point; the same one however often it is asked for."""
        self._settle()
        engine = self._fitted_engine()
        randomness = Randomness(self._seed, self._rounds)
        question = Question(self._rounds + 1, self.bounds(), context, self._last, self._best_reward, randomness)
        return engine.choose(question)

    def bounds(self) -> Bounds:
        """The bounds of f in the next round."""
        posterior, confidence = self._fitted_engine().posterior, self.policy.confidence
        guess = None if self._guess is None else self._guess.bound
        # Round t = 1, 2, ...: every trial asked for counts, answered or not.
        width = confidence.width(self._rounds + 1, Progress(posterior, guess, self._greedy_design))
        valid_for = confidence.valid_for if self.policy.refit is None else "none"
        return Bounds(width, valid_for, self._scale.mean, self._scale.std)

    def envelope(self, points: Any = None, context: Array | None = None) -> Envelope:
        """The bounds of f that hold in the next round, at all arms or at points of the domain."""
        return self.bounds()(*self._fitted_engine().predict(points, context))

    def answered_means(self, trials: list[Trial]) -> Array:
        """Posterior mean of f at answered trials, `(n,)`."""
        means = self._fitted_engine().answered_means(trials)
        return means * self._scale.std + self._scale.mean

    @property
    def width(self) -> float:
        """The multiplier of the standard deviation in the next round."""
        return self.bounds().width

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """(rounds so far, guess of the norm bound): the first and every one that replaced another; empty if given."""
        return [] if self._guess is None else list(self._guess.history)

    @property
    def information_gain(self) -> float:
        """Realised information gain of the settled trials, nats."""
        return self._fitted_engine().posterior.information_gain

    @property
    def kernel(self) -> Kernel:
        """The kernel in use: the policy's, or the last one fitted (then on standardised rewards)."""
        return self._fitted_engine().setting.kernel

    def settled(self) -> State:
        """A state that has taken in every outcome; a copy where some wait, so that looking changes nothing."""
        if not self._waiting:
            return self
        other = State.__new__(State)
        other.__dict__.update(self.__dict__)
        other._engine = self._engine.copy()
        other._taken, other._settled = self._taken.copy(), self._settled.copy()
        other._guess = None if self._guess is None else self._guess.copy()
        other._settle()
        return other

    def _greedy_design(self) -> GreedyDesign:
        """Made once; it depends on nothing that happens."""
        if self._design is None:
            policy = self.policy
            self._design = GreedyDesign(policy.kernel, table(policy.domain, policy.context), policy.regularization)
        return self._design

    def _settle(self) -> None:
        if len(self._waiting) > 1:
            self._waiting.sort(key=lambda trial: trial.number)
        self._take(self._waiting)
        if self.policy.refit is not None and self._waiting:
            self._taken += self._waiting
            self._settled.append(len(self._taken))
        if self._guess is not None and self._waiting:
            self._guess.check(self._rounds, self._engine.posterior)
        self._waiting = []

    def _take(self, trials: list[Trial]) -> None:
        """Take in outcomes together: how they round depends on which, so a replay must group them in the same way."""
        rewards = [(trial, trial.reward) for trial in trials if trial.reward is not None]
        if rewards:
            targets = [(reward - self._scale.mean) / self._scale.std for _, reward in rewards]
            self._engine.learn([trial for trial, _ in rewards], targets)
            best = max(reward for _, reward in rewards)
            self._best_reward = best if self._best_reward is None else max(best, self._best_reward)
        for trial in trials:  # after what was answered: a point that has been is not set aside, in whatever order
            if trial.reward is None:
                self._engine.fail(trial)

    def _fitted_engine(self) -> Engine:
        """The engine, after the fit that is due; only the last one due is made, each starts from the same kernel."""
        refit = self.policy.refit
        if refit is None:
            return self._engine
        answered = [i for i, trial in enumerate(self._taken) if trial.reward is not None]
        due = len(answered) // refit.every
        if due > self._refits:
            first = [self._taken[i] for i in answered[: due * refit.every]]
            kernel, ridge, self._scale = refit(
                self.policy.kernel,
                np.array([row_of(trial) for trial in first]),
                np.array([trial.reward for trial in first]),
                sides(self.policy.domain, self.policy.context),
                noise=math.sqrt(self.policy.regularization),
                seed=self._seed,
            )
            self._engine = self._new_engine(kernel, ridge)
            # What was fitted to enters at once. The rest does as it was settled, since a replay may fit later.
            fitted = answered[due * refit.every - 1] + 1
            ends = [fitted, *(end for end in self._settled if end > fitted)]
            for start, end in zip([0, *ends], ends, strict=False):
                self._take(self._taken[start:end])
            self._refits = due
        return self._engine
