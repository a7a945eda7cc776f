"""Which number the posterior learns: the reward, or the reward minus a penalty for violating constraints.

| symbol | name | meaning | shape |
|---|---|---|---|
| g_j | `trial.constraints` | constraint values, satisfied on average when <= 0 | (m,) |
| kappa_j | `multipliers` | what a violation costs in this epoch, reward units | (m,) |
| L, S | `epochs`, `epoch` | epochs, and rounds of each | |
| psi | `penalty` | 1 where satisfied, growing with the violation | |

Shi & Eryilmaz 2022, Algorithms 2 and 3. An epoch is S trials asked for or added; its multipliers follow from the
constraint values of the epoch before that are known when it begins, and stay as they are whatever comes in later.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from ..checks import Array, frozen, integer, number, one_of
from ..errors import NoRegretWarning
from ..record import Trial
from ..serialize import described

LARGEST = 1e6  # of multipliers and of psi: they saturate, with a warning, far beyond where anything is feasible


class Objective(ABC):
    """What is learned of a trial."""

    constraints: int  # m, how many constraint values each trial has

    @abstractmethod
    def target(self, trial: Trial, multipliers: Array) -> float | None:
        """What an answered trial counts as, reward units; None where its constraint values are missing."""


@final
@described
@dataclass(frozen=True)
class RewardAlone(Objective):
    """The reward; constraint values may be told and are recorded all the same."""

    constraints = 0

    def target(self, trial: Trial, multipliers: Array) -> float | None:  # noqa: ARG002 - nothing to weigh
        """The reward."""
        return trial.reward


@dataclass(frozen=True, kw_only=True)
class Constrained(Objective):
    """The reward minus what the multipliers of this epoch charge for violations.

    Attributes:
        epoch: S, rounds of an epoch.
        epochs: L. When all are over the last one goes on: its multipliers stay.
        constraints: m.
        fresh: forget everything learned at the beginning of an epoch, as the pseudocode reads; False (the default)
            keeps it and weighs all trials anew under the new multipliers, as the paper's figures do.
    """

    epoch: int
    epochs: int
    constraints: int = 1
    fresh: bool = False

    def __post_init__(self) -> None:
        integer("epoch", self.epoch, low=1, why="It is the number of rounds S of an epoch.")
        integer("epochs", self.epochs, low=1, why="It is the number of epochs L.")
        integer("constraints", self.constraints, low=1, why="It is the number of constraint values of each trial.")

    def number_at(self, rounds: int) -> int:
        """Which epoch the next round is in after so many rounds, from 0."""
        return min(rounds // self.epoch, self.epochs - 1)

    @abstractmethod
    def first(self) -> Array:
        """The multipliers of the first epoch."""

    @abstractmethod
    def updated(self, multipliers: Array, means: Array) -> Array:
        """The multipliers after an epoch of these average constraint values, `(m,)`."""

    @abstractmethod
    def noise_factor(self, multipliers: Array) -> float:
        """How much larger the noise of a target is than that of a reward."""


@final
@described
@dataclass(frozen=True, kw_only=True)
class MultiplicativePenalty(Constrained):
    """Algorithm 2, for noiseless constraints: f + eps - sum_j kappa_j (psi(g_j) - 1).

    kappa_j starts at 1 and is multiplied by psi of the epoch's average g_j. psi(x) = exp(c x), or (c x + 1)^n, for
    x > 0, and 1 for x <= 0.

    Attributes:
        penalty: "exp" or "power".
        c: steepness of psi, per unit of g.
        n: exponent of the power, at least 1.
    """

    penalty: str = "exp"
    c: float = 1.0
    n: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("penalty", self.penalty, ["exp", "power"])
        object.__setattr__(self, "c", number("c", self.c, low=0.0, open_low=True))
        object.__setattr__(self, "n", number("n", self.n, low=1.0))

    def psi(self, g: Array) -> Array:
        """The penalty function, at most `LARGEST`."""
        violation = np.maximum(g, 0.0)
        if self.penalty == "exp":
            return np.asarray(np.exp(np.minimum(self.c * violation, math.log(LARGEST))))
        return np.asarray(np.minimum(np.minimum(self.c * violation + 1.0, LARGEST) ** self.n, LARGEST))

    def target(self, trial: Trial, multipliers: Array) -> float | None:
        """Line 5."""
        if trial.reward is None or trial.constraints is None:
            return None
        return trial.reward - float(multipliers @ (self.psi(trial.constraints) - 1.0))

    def first(self) -> Array:
        """Ones."""
        return np.ones(self.constraints)

    def updated(self, multipliers: Array, means: Array) -> Array:
        """Line 8: kappa_j <- kappa_j psi(average g_j), at most `LARGEST`."""
        return _saturated(multipliers * self.psi(means))

    def noise_factor(self, multipliers: Array) -> float:  # noqa: ARG002 - only the reward is noisy
        """1: the constraint values have no noise."""
        return 1.0


@final
@described
@dataclass(frozen=True, kw_only=True)
class AdditivePenalty(Constrained):
    """Algorithm 3, for noisy constraints: f + eps - sum_j kappa_j (g_j + eps_j).

    kappa_j starts at 0 and moves by `step` times the epoch's average g_j, never below 0. The noise of a target is
    sqrt(1 + sum_j kappa_j^2) R-sub-Gaussian.

    Attributes:
        step: mu, reward units per unit of g; the theory takes O(1 / sqrt(L)).
    """

    step: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "step", number("step", self.step, low=0.0, open_low=True))

    def target(self, trial: Trial, multipliers: Array) -> float | None:
        """Line 5."""
        if trial.reward is None or trial.constraints is None:
            return None
        return trial.reward - float(multipliers @ trial.constraints)

    def first(self) -> Array:
        """Zeros."""
        return np.zeros(self.constraints)

    def updated(self, multipliers: Array, means: Array) -> Array:
        """Line 8: kappa_j <- [kappa_j + mu average g_j]^+."""
        return _saturated(np.maximum(multipliers + self.step * means, 0.0))

    def noise_factor(self, multipliers: Array) -> float:
        """sqrt(1 + sum kappa_j^2)."""
        return math.sqrt(1.0 + float(multipliers @ multipliers))


class Multipliers:
    """The multipliers of the epoch that is going on; a function of the trials known when it began."""

    def __init__(self, objective: Constrained) -> None:
        self._objective = objective
        self.epoch = 0
        self.values = frozen(objective.first())
        self._told: dict[int, list[Array]] = {}  # of epochs not over yet

    def hear(self, trial: Trial) -> None:
        """Take note of a trial's constraint values."""
        epoch = trial.number // self._objective.epoch
        if trial.constraints is not None and epoch >= self.epoch:
            self._told.setdefault(epoch, []).append(trial.constraints)

    def advance(self, rounds: int) -> bool:
        """Begin the epoch that is due after so many rounds; whether the multipliers have changed."""
        before = self.values
        while self.epoch < self._objective.number_at(rounds):
            told = self._told.pop(self.epoch, [])
            if told:  # an epoch of which nothing is known changes nothing
                self.values = frozen(self._objective.updated(self.values, np.mean(told, axis=0)))
            self.epoch += 1
        return not np.array_equal(before, self.values)

    def copy(self) -> Multipliers:
        """An independent copy."""
        other = Multipliers(self._objective)
        other.epoch, other.values = self.epoch, self.values
        other._told = {epoch: list(told) for epoch, told in self._told.items()}
        return other


def _saturated(multipliers: Array) -> Array:
    if (multipliers > LARGEST).any():
        warnings.warn(
            NoRegretWarning(
                f"A multiplier has reached {LARGEST:g} and stays there. Usually the constraints cannot be met anywhere "
                "that was tried, or nothing is kept between epochs: see whether any trial satisfied them."
            ),
            stacklevel=2,
        )
    return np.asarray(np.minimum(multipliers, LARGEST))
