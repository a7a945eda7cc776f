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
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Self, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, flag, frozen, integer, many, number, one_of, settle, shown
from .._utils.errors import InvalidInput, TrialError
from .._utils.serialize import described
from ..kernels import Kernel
from ..storage.record import Trial
from ..theory.penalties import LARGEST, ExponentialPenalty, PenaltyFunction, PowerPenalty, check_assumption_2
from .base import Combination, Part

MOST_CONSTRAINTS = 1000
SATURATED = (
    f"A multiplier or a penalty has reached {LARGEST:g} and grows no further. Usually the constraints cannot be met "
    "anywhere that was tried, nothing is kept between epochs, or the constraint values are large numbers: see whether "
    "any trial satisfied them, divide them by a typical violation, or take penalty='power'."
)


class Change(Enum):
    """What a new epoch asks for."""

    NOTHING = 0
    REVALUE = 1  # all trials count as something else now
    RESTART = 2  # nothing that was learned counts any more


class PenaltyState(ABC):
    """What is charged in the coming round, a function of the trials heard of so far.

    Attributes:
        values: multipliers `(m,)`, read-only.
        saturated: whether one of them, or a penalty, has been cut off.
        kernel: of what is learned, in force now; None for the policy's.
        steps: values there were, each with the number of rounds before the first that was decided under it.
    """

    values: Array
    steps: Sequence[tuple[int, Array]] = ()
    saturated: bool = False
    kernel: Kernel | None = None

    @property
    def noise_factor(self) -> float:
        """How much larger the noise of a target is than that of a reward."""
        return 1.0

    @property
    def began(self) -> int:
        """The round in which what is charged now began."""
        return 0

    @abstractmethod
    def hear(self, trial: Trial) -> None:
        """Take note of an outcome."""

    @abstractmethod
    def advance(self, rounds: int) -> Change:
        """What is due after so many rounds."""

    def restart(self, first: int) -> None:  # noqa: B027 - most charge nothing that could be out of date
        """The memory was cut at this round."""

    @abstractmethod
    def put_back(self, trials: Sequence[Trial]) -> Array:
        """What is learned of these answered trials is so much less than their rewards, on average, `(n,)`."""

    @abstractmethod
    def copy(self) -> Self:
        """An independent copy."""


@final
class NoCharges(PenaltyState):
    """Nothing is charged, ever."""

    values: Array = frozen(np.zeros(0))

    def hear(self, trial: Trial) -> None:
        """Nothing to note."""

    def advance(self, rounds: int) -> Change:  # noqa: ARG002 - nothing is ever due
        """Nothing."""
        return Change.NOTHING

    def put_back(self, trials: Sequence[Trial]) -> Array:
        """Zeros."""
        return np.zeros(len(trials))

    def copy(self) -> NoCharges:
        """Itself: it never changes."""
        return self


class Objective(Part):
    """What is learned of a trial."""

    constraints: int = 0  # m, how many constraint values each trial has
    kernels: tuple[Kernel, ...] = ()  # that `PenaltyState.kernel` may take; the first is the policy's own

    charges: ClassVar[bool] = False  # whether multipliers charge for violations (`Constrained`)
    revises: ClassVar[bool] = True  # whether what a trial counts as may change

    @property
    def proved(self) -> bool:
        """Whether the bandit's bounds hold for what is learned, its own assumptions granted."""
        return False

    @property
    def looks_back(self) -> bool:
        """Whether what is learned of old data may hang on their noise; then only some bounds are for it."""
        return self.revises

    @abstractmethod
    def target(self, trial: Trial, charges: Array) -> float | None:
        """What an answered trial counts as under these charges `(m,)`, reward units; None where it teaches nothing."""

    def charge(self, constraints: Array, charges: Array) -> float:  # noqa: ARG002 - mostly nothing
        """What a trial of these constraint values `(m,)` counts as less than its reward."""
        return 0.0

    # What is known of rewards beyond their size (`slots.rewards`): mostly nothing.

    def check_told(self, value: float) -> None:
        """Refuse a reward (a loss, where the goal is to minimise) that there cannot be."""

    def admits(self, confidence: Any) -> bool:  # noqa: ARG002
        """Whether the noise is what the proof of these bounds assumes."""
        return True

    def learned(self, policy: Combination) -> Any:  # noqa: ARG002
        """What a posterior with a variance for each arm knows of the rewards (`Rates`); None for the plain one."""
        return None

    def turned(self) -> Objective:
        """The same of a study that minimises, which learns minus the losses."""
        return self

    def begin(self) -> PenaltyState:
        """The charges of the first round; mostly nothing is charged, ever."""
        return NoCharges()


@final
@described
@dataclass(frozen=True)
class RewardAlone(Objective):
    """The reward; constraint values may be told and are recorded all the same."""

    revises: ClassVar[bool] = False

    @property
    def proved(self) -> bool:
        """Yes: the theorems are for rewards."""
        return True

    def target(self, trial: Trial, charges: Array) -> float | None:  # noqa: ARG002 - nothing to weigh
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
        kernels: k_l of each epoch, L of them (Assumptions 3 and 5); none where all have the policy's.
    """

    charges: ClassVar[bool] = True

    epoch: int
    epochs: int
    constraints: int = 1
    fresh: bool = False
    kernels: tuple[Kernel, ...] = ()

    def __post_init__(self) -> None:
        why = "It is the number of constraint values of each trial."
        settle(
            self,
            epoch=integer("epoch", self.epoch, low=1, why="It is the number of rounds S of an epoch."),
            epochs=integer("epochs", self.epochs, low=1, why="It is the number of epochs L."),
            constraints=integer("constraints", self.constraints, low=1, high=MOST_CONSTRAINTS, why=why),
            fresh=flag("fresh", self.fresh),
        )
        object.__setattr__(self, "kernels", _checked_kernels(self.kernels, self.epochs))

    def check(self, policy: Combination) -> None:
        """A kernel for each epoch is given, not learned."""
        if self.kernels and (self.kernels[0] != policy.kernel or policy.refit is not None):
            raise InvalidInput(
                "With a kernel for each epoch the policy's own is that of the first, and none of them is refitted."
            )

    @property
    def looks_back(self) -> bool:
        """Where data are kept: multipliers come of points that were chosen by noisy rewards, which they weigh anew."""
        return not self.fresh and self.epochs > 1

    def begin(self) -> Multipliers:
        """The multipliers of the first epoch."""
        return Multipliers(self)

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

    @abstractmethod
    def penalty_of(self, constraints: Array, multipliers: Array) -> float:
        """What a target is less than the reward, reward units."""

    def saturates(self, constraints: Array) -> bool:  # noqa: ARG002 - a linear penalty does not
        """Whether the penalty of these values is cut off."""
        return False

    def charge(self, constraints: Array, charges: Array) -> float:
        """The penalty."""
        return self.penalty_of(constraints, charges)

    def target(self, trial: Trial, charges: Array) -> float | None:
        """The reward less the penalty; None where either is missing."""
        if trial.reward is None or trial.constraints is None:
            return None
        return trial.reward - self.penalty_of(trial.constraints, charges)


@final
@described
@dataclass(frozen=True, kw_only=True)
class MultiplicativePenalty(Constrained):
    """Algorithm 2, for noiseless constraints: f + eps - sum_j kappa_j (psi(g_j) - 1).

    kappa_j starts at 1 and is multiplied by psi of the epoch's average g_j. psi(x) = exp(c x), or (c x + 1)^n, for
    x > 0, and 1 for x <= 0; or any other that meets Assumption 2.

    Attributes:
        penalty: "exp", "power", or a `PenaltyFunction`, which is checked against Assumption 2.
        c: steepness of psi, per unit of g; of the named ones.
        n: exponent of the power, at least 1.
        function: the psi in use.
    """

    penalty: str | PenaltyFunction = "exp"
    c: float = 1.0
    n: float = 2.0
    function: PenaltyFunction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "c", number("c", self.c, low=0.0, open_low=True))
        object.__setattr__(self, "n", number("n", self.n, low=1.0))
        object.__setattr__(self, "function", self._chosen())

    def _chosen(self) -> PenaltyFunction:
        if isinstance(self.penalty, PenaltyFunction):
            if (self.c, self.n) != (1.0, 2.0):
                raise InvalidInput(
                    "`c` and `n` belong to `penalty` 'exp' and 'power': a function of your own has its own."
                )
            check_assumption_2(self.penalty)
            return self.penalty
        one_of("penalty", self.penalty, ["exp", "power"], advice="Or give a `nr.slots.PenaltyFunction`.")
        return ExponentialPenalty(self.c) if self.penalty == "exp" else PowerPenalty(self.c, self.n)

    def psi(self, g: Array) -> Array:
        """The penalty function, at most `LARGEST`."""
        return np.asarray(np.exp(np.minimum(self._log_psi(g), math.log(LARGEST))))

    def _log_psi(self, g: Array) -> Array:
        with np.errstate(over="ignore"):  # infinity is cut off where psi is
            return self.function.log_of(np.maximum(g, 0.0))

    def saturates(self, constraints: Array) -> bool:
        """Whether psi has been cut off for some of these values."""
        return bool((self._log_psi(constraints) > math.log(LARGEST)).any())

    def penalty_of(self, constraints: Array, multipliers: Array) -> float:
        """Line 3: sum_j kappa_j (psi(g_j) - 1)."""
        return float(multipliers @ (self.psi(constraints) - 1.0))

    @property
    def proved(self) -> bool:
        """Yes: all that is uncertain is the reward's noise, which the multipliers do not touch (see `looks_back`)."""
        return True

    def first(self) -> Array:
        """Ones."""
        return np.ones(self.constraints)

    def updated(self, multipliers: Array, means: Array) -> Array:
        """Line 4: kappa_j <- kappa_j psi(average g_j), at most `LARGEST`."""
        return np.asarray(np.minimum(multipliers * self.psi(means), LARGEST))

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
        object.__setattr__(self, "step", number("step", self.step, low=0.0, high=LARGEST_REWARD, open_low=True))

    def penalty_of(self, constraints: Array, multipliers: Array) -> float:
        """Sum_j kappa_j (g_j + eps_j): the argument of IGP-UCB in Algorithm 3."""
        return float(multipliers @ constraints)

    @property
    def proved(self) -> bool:
        """Only epoch by epoch: multipliers are made of the noise of earlier trials, which then is not independent."""
        return self.fresh

    def first(self) -> Array:
        """Zeros."""
        return np.zeros(self.constraints)

    def updated(self, multipliers: Array, means: Array) -> Array:
        """Kappa_j <- [kappa_j + mu average g_j]^+, at most `LARGEST`."""
        return np.asarray(np.clip(multipliers + self.step * means, 0.0, LARGEST))

    def noise_factor(self, multipliers: Array) -> float:
        """sqrt(1 + sum kappa_j^2)."""
        return math.sqrt(1.0 + float(multipliers @ multipliers))


def _checked_kernels(kernels: Sequence[Kernel], epochs: int) -> tuple[Kernel, ...]:
    """None, or one for each epoch."""
    if not isinstance(kernels, Sequence):
        raise InvalidInput(f"`kernels` is {shown(kernels)}: it must be a list of kernels, one for each epoch.")
    each = tuple(kernels)
    if each and (len(each) != epochs or not all(isinstance(kernel, Kernel) for kernel in each)):
        raise InvalidInput(
            f"There are {len(each)} kernels for {many(epochs, 'epoch')}: give one kernel for all epochs, or a list "
            "of one kernel for each."
        )
    return each


def averages(trials: Sequence[Trial], values: Sequence[Array]) -> Array:
    """For each trial the average value of the trials at its point (and context), `(n, m)`, of values `(m,)` each."""
    keys = [(trial.point.tobytes(), b"" if trial.context is None else trial.context.tobytes()) for trial in trials]
    together: dict[tuple[bytes, bytes], list[Array]] = {}
    for key, value in zip(keys, values, strict=True):
        together.setdefault(key, []).append(value)
    means = {key: np.mean(listed, axis=0) for key, listed in together.items()}
    return np.array([means[key] for key in keys])


def satisfying(trials: Sequence[Trial]) -> list[Trial]:
    """The answered trials at whose points the constraint values told are at most 0 on average; errors if none are."""
    told = [trial for trial in trials if trial.reward is not None and trial.constraints is not None]
    if not told:
        raise TrialError("No trial has been answered with constraint values yet, so there is no best one.")
    means = averages(told, [trial.constraints for trial in told if trial.constraints is not None])
    worst = means.max(axis=1)
    if (worst > 0.0).all():
        least = told[int(worst.argmin())]
        raise TrialError(
            f"None of the {len(told)} answered trials satisfied all constraints, so there is no best one. The smallest "
            f"violation was {worst.min():.4g}, by trial {least.number}. Go on asking; if that does not help, see "
            "whether the constraints can be met at all, and lie at 0 where they are just met."
        )
    return [trial for trial, value in zip(told, worst, strict=True) if value <= 0.0]


@final
class Multipliers(PenaltyState):
    """The multipliers of the epoch that is going on; a function of the trials known when it began.

    Attributes:
        epoch: which one, from 0.
        values: `(m,)`, read-only.
        saturated: whether a multiplier or a penalty has ever been cut off at `LARGEST`.
    """

    def __init__(self, objective: Constrained) -> None:
        self._objective = objective
        self.epoch = 0
        self.values = frozen(objective.first())
        self.saturated = False
        self.kernel = objective.kernels[0] if objective.kernels else None
        self._told: dict[int, list[Array]] = {}  # of epochs after which there is another
        self._since, self._anew = 0, False  # the first round of epoch 0; whether `advance` has yet to say so
        self.steps: list[tuple[int, Array]] = [(0, self.values)]

    def hear(self, trial: Trial) -> None:
        """Take note of a trial's constraint values."""
        if trial.constraints is None or trial.number < self._since:
            return
        self.saturated = self.saturated or self._objective.saturates(trial.constraints)
        epoch = (trial.number - self._since) // self._objective.epoch
        if self.epoch <= epoch < self._objective.epochs - 1:
            self._told.setdefault(epoch, []).append(trial.constraints)

    @property
    def noise_factor(self) -> float:
        """Of the objective."""
        return self._objective.noise_factor(self.values)

    @property
    def began(self) -> int:
        """The round in which the epoch began."""
        return self._since + self.epoch * self._objective.epoch

    def restart(self, first: int) -> None:
        """Another world: the algorithm begins anew with it, epochs and all; Algorithm 2's multipliers never fall."""
        self.epoch, self.values, self._told = 0, frozen(self._objective.first()), {}
        self._since, self._anew = first, True

    def advance(self, rounds: int) -> Change:
        """Begin the epoch that is due after so many rounds."""
        objective, before, epoch = self._objective, self.values, self.epoch
        anew, self._anew = self._anew, False
        while self.epoch < objective.number_at(rounds - self._since):
            told = self._told.pop(self.epoch, [])
            if told:  # an epoch of which nothing is known changes nothing
                self.values = frozen(objective.updated(self.values, np.mean(told, axis=0)))
            self.epoch += 1
        if self.values is not self.steps[-1][1]:
            self.steps.append((rounds, self.values))
        self.saturated = self.saturated or bool((self.values >= LARGEST).any())
        if objective.kernels:
            self.kernel = objective.kernels[self.epoch]  # k_l of Algorithm 2
        if objective.fresh and self.epoch != epoch:
            return Change.RESTART
        return Change.REVALUE if anew or not np.array_equal(before, self.values) else Change.NOTHING

    def put_back(self, trials: Sequence[Trial]) -> Array:
        """The penalty of the average constraint values at the point of each trial."""
        g = averages(trials, [np.zeros(0) if trial.constraints is None else trial.constraints for trial in trials])
        return np.array([self._objective.penalty_of(each, self.values) for each in g])

    def copy(self) -> Multipliers:
        """An independent copy."""
        other = Multipliers(self._objective)
        other.epoch, other.values, other.saturated = self.epoch, self.values, self.saturated
        other.kernel, other._since, other._anew = self.kernel, self._since, self._anew
        other._told = {epoch: list(told) for epoch, told in self._told.items()}
        other.steps = self.steps.copy()
        return other
