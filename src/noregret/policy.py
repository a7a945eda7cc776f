"""The only place where the parts of a policy meet.

`Policy` is a frozen description. `State` is what a policy knows after a record: a cache, rebuilt by replay and never
stored. Its answer is a pure function of (policy, seed, events so far).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from . import serialize
from .checks import LARGEST_REWARD, number
from .domain import Arms
from .errors import InvalidInput, NoRegretError
from .kernels import Kernel
from .parts.confidence import Confidence, Envelope
from .parts.maximizers import best_arm
from .parts.scores import Score
from .posterior import ArmPosterior, posterior_on_arms
from .posterior.arms import ArmIndices
from .randomness import Randomness
from .record import Event, Trial


@final
@serialize.described
@dataclass(frozen=True, kw_only=True)
class Policy:
    """How to decide: parts in fixed slots. Made by the functions of `noregret.algorithms`, one for each theorem.

    Attributes:
        algorithm: name of the function that filled the slots.
        domain: what may be played.
        kernel: how the rewards of two points relate.
        noise: standard deviation (or sub-Gaussian constant) of the reward noise, reward units.
        regularization: lambda, added to the kernel matrix, reward units squared.
        prior_mean: what a reward is expected to be before anything is seen, reward units.
        confidence: which bounds hold for f.
        score: what makes a point attractive.
    """

    algorithm: str
    domain: Arms
    kernel: Kernel
    noise: float
    regularization: float
    prior_mean: float = 0.0
    confidence: Confidence
    score: Score

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Arms):
            hint = " Use `space.grid(per_dimension)`." if hasattr(self.domain, "grid") else ""
            raise InvalidInput(f"`domain` must be `Arms`, not {self.domain!r}.{hint}")
        if not isinstance(self.kernel, Kernel):
            raise InvalidInput(f"`kernel` must be a kernel such as Matern(2.5, lengthscale=0.2), not {self.kernel!r}.")
        why = "It is a standard deviation, in the units of the reward."
        object.__setattr__(self, "noise", number("noise", self.noise, low=0.0, high=LARGEST_REWARD, why=why))
        prior_mean = number("prior_mean", self.prior_mean, low=-LARGEST_REWARD, high=LARGEST_REWARD)
        object.__setattr__(self, "prior_mean", prior_mean)
        why = "With noise = 0 give `regularization` yourself, such as 1e-6 of the prior variance."
        ridge = number("regularization", self.regularization, low=0.0, open_low=True, why=why)
        object.__setattr__(self, "regularization", ridge)
        self.kernel.between_arms(self.domain.points, np.array([0]), np.array([0]))  # does it fit the points?

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


class Decision(NamedTuple):
    """What to play next."""

    arm: int
    explored: bool


class State:
    """A policy after some events of a record.

    Outcomes that arrive between two decisions wait until the next one and are then taken in by trial number, so that
    the order of their arrival leaves no trace, and replaying the events repeats the same arithmetic bit for bit.
    """

    def __init__(self, policy: Policy, *, seed: int) -> None:
        self.policy = policy
        self._seed = seed
        self._posterior = posterior_on_arms(policy.domain, policy.kernel, policy.regularization)
        self._rounds = 0
        self._waiting: list[Trial] = []
        self._failed: set[int] = set()  # arms that failed and were never answered

    def receive(self, events: Iterable[Event]) -> None:
        """Take in what happened, in order."""
        for event in events:
            if event.kind == "asked":
                self._settle()
            else:
                self._waiting.append(event.trial)
            self._rounds = max(self._rounds, event.trial.number + 1)

    def decide(self) -> Decision:
        """The next point; the same one however often it is asked for."""
        self._settle()
        randomness = Randomness(self._seed, self._rounds)
        scores = self.policy.score(self.envelope())
        if self._failed:
            if len(self._failed) == len(scores):
                raise NoRegretError(
                    "Every arm has failed, so there is none left to ask for. Look at the reasons in `study.trials`: "
                    "usually the objective cannot run at all. After mending it, start a study with a new name."
                )
            scores[list(self._failed)] = -np.inf
        return Decision(best_arm(scores, self._posterior.prior.size, randomness), explored=False)

    def envelope(self, arms: ArmIndices | None = None) -> Envelope:
        """The bounds of f that hold in the next round, at all arms or those listed."""
        mean, std = self.posterior.predict(arms)
        confidence = self.policy.confidence
        if self.policy.prior_mean:
            mean += self.policy.prior_mean
        return Envelope(mean, std, self.width, confidence.valid_for)

    @property
    def width(self) -> float:
        """The multiplier of the standard deviation in the next round."""
        # Round t = 1, 2, ...: every trial asked for counts, answered or not.
        confidence, t = self.policy.confidence, self._rounds + 1
        return confidence.width(t, posterior=self.posterior, points=len(self.policy.domain))

    @property
    def posterior(self) -> ArmPosterior:
        """The posterior of f - prior_mean given everything settled."""
        return self._posterior

    def settled(self) -> State:
        """A state that has taken in every outcome; a copy where some wait, so that looking changes nothing."""
        if not self._waiting:
            return self
        other = State.__new__(State)
        other.__dict__.update(self.__dict__)
        other._posterior, other._failed = self._posterior.copy(), self._failed.copy()
        other._settle()
        return other

    def _settle(self) -> None:
        self._waiting.sort(key=lambda trial: trial.number)
        for trial in self._waiting:
            arm = trial.arm
            if arm is None:
                raise InvalidInput(f"Trial {trial.number} has no arm, but the policy plays arms.")
            if trial.reward is None:
                # An arm that cannot be evaluated is set aside, or the same argmax would be asked for forever.
                if not self._posterior.plays[arm]:
                    self._failed.add(arm)
            else:
                self._posterior.append(arm, trial.reward - self.policy.prior_mean)
                self._failed.discard(arm)
        self._waiting = []
