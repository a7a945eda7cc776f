"""Targets: the reward, or the reward minus a penalty for violated constraints.

| symbol | name | meaning | shape |
|---|---|---|---|
| g_j | `trial.constraints` | constraint values, satisfied on average when <= 0 | (m,) |
| kappa_j | `multipliers` | price of a violation in this epoch, reward units | (m,) |
| L, S | `epochs`, `epoch` | epochs, and rounds of each | |
| psi | `penalty` | 1 where satisfied, growing with the violation | |

Shi & Eryilmaz 2022, Algorithms 2 and 3. An epoch is S trials, asked for or added. Its multipliers follow from the
constraint values of the previous epoch that are known when it begins. Later values do not change them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import Enum
from typing import Any, ClassVar, Self, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, flag, frozen, integer, many, number, one_of, settle, shown
from .._utils.copying import Copyable, take_back
from .._utils.dataclass import dataclass, field
from .._utils.numerals import exact, numeral
from ..errors import InvalidInput, TrialError
from ..kernels import Kernel
from ..serialize import description
from ..storage.record import Trial
from ..theory.penalties import LARGEST, ExponentialPenalty, PenaltyFunction, PowerPenalty, check_assumption_2
from .base import Part, Policy

MOST_CONSTRAINTS = 1000
SATURATED = (
    f"A multiplier or a penalty has reached {exact(LARGEST)} and grows no further. Usually the constraints cannot be "
    "met anywhere that was tried, nothing is kept between epochs, or the constraint values are large numbers: see "
    "whether any trial satisfied them, divide them by a typical violation, or take penalty='power'."
)


class Change(Enum):
    """The effect of a new epoch on the training data."""

    NOTHING = 0
    REVALUE = 1  # the targets of all trials change
    RESTART = 2  # all training data are dropped


class PenaltyState(ABC):
    """Current multipliers of a run, a function of the recorded trials.

    Attributes:
        values: multipliers `(m,)`, read-only.
        saturated: True if a multiplier or a penalty has reached its limit.
        kernel: current kernel of the targets, or None for the policy's.
        steps: values so far, each with the number of rounds before the first decision under it.
    """

    values: Array
    steps: Sequence[tuple[int, Array]] = ()
    saturated: bool = False
    kernel: Kernel | None = None

    @property
    def noise_factor(self) -> float:
        """Ratio of the noise of a target to the noise of a reward."""
        return 1.0

    def changes_noise(self) -> bool:
        """Returns whether targets may be noisier than rewards, because the class has its own `noise_factor`."""
        return type(self).noise_factor is not PenaltyState.noise_factor

    @property
    def began(self) -> int:
        """Round in which the current multipliers began."""
        return 0

    @abstractmethod
    def hear(self, trial: Trial) -> None:
        """Records an outcome: a reward with constraint values, or a failure."""

    @abstractmethod
    def advance(self, rounds: int) -> Change:
        """Updates the multipliers before a decision and returns the effect on the training data.

        Args:
            rounds: number of rounds so far.
        """

    def restart(self, first: int) -> None:  # noqa: B027 - most states do not depend on the memory
        """Begins again after a cut of the memory at this round."""

    @abstractmethod
    def put_back(self, trials: Sequence[Trial]) -> Array:
        """Returns by how much targets lie below rewards on average, `(n,)`.

        Args:
            trials: n observed trials.
        """

    @abstractmethod
    def copy(self) -> Self:
        """Returns an independent copy."""


@final
class NoPenalties(PenaltyState):
    """A state without multipliers."""

    values: Array = frozen(np.zeros(0))

    def hear(self, trial: Trial) -> None:
        """Ignores the outcome."""

    def advance(self, rounds: int) -> Change:  # noqa: ARG002
        """Returns `Change.NOTHING`."""
        return Change.NOTHING

    def put_back(self, trials: Sequence[Trial]) -> Array:
        """Returns zeros."""
        return np.zeros(len(trials))

    def copy(self) -> NoPenalties:
        """Returns the same object, which never changes."""
        return self


class Objective(Part):
    """The target that the posterior learns from a trial."""

    constraints: int = 0  # m, number of constraint values of each trial
    kernels: tuple[Kernel, ...] = ()  # values of `PenaltyState.kernel`, the first being the policy's own

    charges: ClassVar[bool] = False  # True if multipliers charge for violations (`Constrained`)
    revises: ClassVar[bool] = True  # True if the target of a trial may change
    is_reward: ClassVar[bool] = False  # True if the target of every trial is its reward
    clicks: ClassVar[bool] = False  # True if rewards are 0 and 1

    def __init_subclass__(cls) -> None:
        """Takes back `is_reward` where the target is overridden."""
        super().__init_subclass__()
        take_back(cls, "is_reward", False, ("target",))

    @property
    def proved(self) -> bool:
        """True if the bandit's bounds hold for the target, under their own assumptions."""
        return False

    @property
    def looks_back(self) -> bool:
        """True if targets of old trials may depend on old noise.

        Only bounds with `for_all_at_once` then hold.
        """
        return self.revises

    @abstractmethod
    def target(self, trial: Trial, multipliers: Array) -> float | None:
        """Returns the target of an observed trial, reward units, or None if it is no training data.

        Args:
            trial: the trial with its reward and constraint values.
            multipliers: prices of violations in this round, `(m,)`.
        """

    def charge(self, constraints: Array, multipliers: Array) -> float:  # noqa: ARG002
        """Returns the penalty that is taken off the reward.

        Args:
            constraints: constraint values, `(m,)`.
            multipliers: prices of violations in this round, `(m,)`.
        """
        return 0.0

    # The following methods are for rewards of known support (`slots.rewards`).

    def check_told(self, value: float) -> None:
        """Raises `InvalidInput` for an impossible reward. A study that minimises passes the loss."""

    def admits(self, confidence: Any) -> bool:  # noqa: ARG002
        """Returns True if the noise meets the assumptions of these bounds."""
        return True

    def learned(self, policy: Policy) -> Any:  # noqa: ARG002
        """Returns the reward model (`Rates`) for a posterior with a variance for each arm, or None."""
        return None

    def turned(self) -> Objective:
        """Returns the same objective for a study that minimises, whose rewards are minus the losses."""
        return self

    def begin(self) -> PenaltyState:
        """Returns the state of the first round. Most objectives have no multipliers."""
        return NoPenalties()


@final
@description(frozen=True)
class RewardAlone(Objective):
    """The reward. Constraint values may come and are recorded."""

    revises: ClassVar[bool] = False
    batched = True
    is_reward: ClassVar[bool] = True

    @property
    def proved(self) -> bool:
        """True, since the theorems are for rewards."""
        return True

    def target(self, trial: Trial, multipliers: Array) -> float | None:  # noqa: ARG002
        """Returns the reward."""
        return trial.reward


@dataclass(frozen=True, kw_only=True)
class Constrained(Objective):
    """The reward minus a penalty for violations by the multipliers of the epoch.

    Attributes:
        epoch: S, rounds of an epoch.
        epochs: L. After all epochs the last one continues with its multipliers.
        constraints: m.
        fresh: True drops all training data at the beginning of an epoch, as the pseudocode reads. False (the default)
            keeps the data and computes all targets under the new multipliers, as for the paper's figures.
        kernels: k_l of each epoch, L of them (Assumptions 3 and 5), or none if all epochs use the policy's.
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
        settle(self, kernels=_checked_kernels(self.kernels, self.epochs))

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if kernels of epochs are given and the policy's kernel is another or is fitted."""
        if self.kernels and (self.kernels[0] != policy.kernel or policy.refit is not None):
            raise InvalidInput(
                "With a kernel for each epoch the policy's own is that of the first, and none of them is refitted."
            )

    @property
    def looks_back(self) -> bool:
        """True if data are kept from epoch to epoch.

        Multipliers then depend on points chosen by noisy rewards, whose targets they change.
        """
        return not self.fresh and self.epochs > 1

    def begin(self) -> Multipliers:
        """Returns the multipliers of the first epoch."""
        return Multipliers(self)

    def number_at(self, rounds: int) -> int:
        """Returns the epoch of the next round, counted from 0, after so many rounds."""
        return min(rounds // self.epoch, self.epochs - 1)

    @abstractmethod
    def first(self) -> Array:
        """Returns the multipliers of the first epoch."""

    @abstractmethod
    def updated(self, multipliers: Array, means: Array) -> Array:
        """Returns the multipliers after an epoch with these average constraint values, `(m,)`."""

    @abstractmethod
    def noise_factor(self, multipliers: Array) -> float:
        """Returns the ratio of the noise of a target to the noise of a reward."""

    @abstractmethod
    def penalty_of(self, constraints: Array, multipliers: Array) -> float:
        """Returns the penalty that is taken off the reward, reward units."""

    def saturates(self, constraints: Array) -> bool:  # noqa: ARG002
        """Returns True if the penalty of these values reaches its limit."""
        return False

    def charge(self, constraints: Array, multipliers: Array) -> float:
        """Returns the penalty."""
        return self.penalty_of(constraints, multipliers)

    def target(self, trial: Trial, multipliers: Array) -> float | None:
        """Returns the reward minus the penalty, or None if either is missing."""
        if trial.reward is None or trial.constraints is None:
            return None
        return trial.reward - self.penalty_of(trial.constraints, multipliers)


@final
@description(frozen=True, kw_only=True)
class MultiplicativePenalty(Constrained):
    """Algorithm 2, for noiseless constraints: f + eps - sum_j kappa_j (psi(g_j) - 1).

    kappa_j starts at 1 and is multiplied by psi of the epoch's average g_j. psi(x) = exp(c x), or (c x + 1)^n, for x >
    0, and 1 for x <= 0. Other functions that satisfy Assumption 2 are possible.

    Attributes:
        penalty: "exp", "power", or a `PenaltyFunction`, which is checked against Assumption 2.
        c: steepness of psi for "exp" and "power", per unit of g.
        n: exponent for "power", at least 1.
        function: current psi.
    """

    penalty: str | PenaltyFunction = "exp"
    c: float = 1.0
    n: float = 2.0
    function: PenaltyFunction = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, c=number("c", self.c, low=0.0, open_low=True))
        settle(self, n=number("n", self.n, low=1.0))
        settle(self, function=self._chosen())

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
        """Returns the penalty function, at most `LARGEST`."""
        return np.asarray(np.exp(np.minimum(self._log_psi(g), math.log(LARGEST))))

    def _log_psi(self, g: Array) -> Array:
        with np.errstate(over="ignore"):  # `psi` limits infinite values.
            return self.function.log_of(np.maximum(g, 0.0))

    def saturates(self, constraints: Array) -> bool:
        """Returns True if psi of some of these values reaches its limit."""
        return bool((self._log_psi(constraints) > math.log(LARGEST)).any())

    def penalty_of(self, constraints: Array, multipliers: Array) -> float:
        """Returns sum_j kappa_j (psi(g_j) - 1) of line 3."""
        return float(multipliers @ (self.psi(constraints) - 1.0))

    @property
    def proved(self) -> bool:
        """True, since only rewards are noisy and the multipliers do not touch their noise (see `looks_back`)."""
        return True

    def first(self) -> Array:
        """Returns ones."""
        return np.ones(self.constraints)

    def updated(self, multipliers: Array, means: Array) -> Array:
        """Returns kappa_j psi(average g_j) of line 4, at most `LARGEST`."""
        return np.asarray(np.minimum(multipliers * self.psi(means), LARGEST))

    def noise_factor(self, multipliers: Array) -> float:  # noqa: ARG002
        """Returns 1, since the constraint values have no noise."""
        return 1.0


@final
@description(frozen=True, kw_only=True)
class AdditivePenalty(Constrained):
    """Algorithm 3, for noisy constraints: f + eps - sum_j kappa_j (g_j + eps_j).

    kappa_j starts at 0 and moves by `step` times the epoch's average g_j, never below 0. The noise of a target is
    sqrt(1 + sum_j kappa_j^2) R-sub-Gaussian.

    Attributes:
        step: mu, reward units per unit of g. The theory takes O(1 / sqrt(L)).
    """

    step: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        settle(self, step=number("step", self.step, low=0.0, high=LARGEST_REWARD, open_low=True))

    def penalty_of(self, constraints: Array, multipliers: Array) -> float:
        """Returns sum_j kappa_j (g_j + eps_j), as in the argument of IGP-UCB in Algorithm 3."""
        return float(multipliers @ constraints)

    @property
    def proved(self) -> bool:
        """True for fresh epochs only.

        Otherwise multipliers depend on the noise of earlier trials, which then is not independent.
        """
        return self.fresh

    def first(self) -> Array:
        """Returns zeros."""
        return np.zeros(self.constraints)

    def updated(self, multipliers: Array, means: Array) -> Array:
        """Returns [kappa_j + mu average g_j]^+, at most `LARGEST`."""
        return np.asarray(np.clip(multipliers + self.step * means, 0.0, LARGEST))

    def noise_factor(self, multipliers: Array) -> float:
        """Returns sqrt(1 + sum kappa_j^2)."""
        return math.sqrt(1.0 + float(multipliers @ multipliers))


def _checked_kernels(kernels: Sequence[Kernel], epochs: int) -> tuple[Kernel, ...]:
    """Returns no kernels, or one for each epoch."""
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
    """Returns for each trial the average value of all trials at its point and context, `(n, m)`.

    The values are `(m,)` each.
    """
    keys = [(trial.point.tobytes(), b"" if trial.context is None else trial.context.tobytes()) for trial in trials]
    together: dict[tuple[bytes, bytes], list[Array]] = {}
    for key, value in zip(keys, values, strict=True):
        together.setdefault(key, []).append(value)
    means = {key: listed[0] if len(listed) == 1 else np.mean(listed, axis=0) for key, listed in together.items()}
    return np.array([means[key] for key in keys])


def satisfying(trials: Sequence[Trial]) -> list[Trial]:
    """Returns the observed trials at whose points the constraint values are at most 0 on average.

    Raises:
        TrialError: if there is no such trial.
    """
    told = [trial for trial in trials if trial.reward is not None and trial.constraints is not None]
    if not told:
        raise TrialError("No trial has been answered with constraint values yet, so there is no best one.")
    means = averages(told, [trial.constraints for trial in told if trial.constraints is not None])
    worst = means.max(axis=1)
    if (worst > 0.0).all():
        least = told[int(worst.argmin())]
        raise TrialError(
            f"None of the {len(told)} answered trials satisfied all constraints, so there is no best one. The smallest "
            f"violation was {numeral(worst.min())}, by trial {least.number}. Go on asking; if that does not help, see "
            "whether the constraints can be met at all, and lie at 0 where they are just met."
        )
    return [trial for trial, value in zip(told, worst, strict=True) if value <= 0.0]


@final
class Multipliers(Copyable, PenaltyState):
    """Multipliers of the current epoch, a function of the trials known when it began.

    Attributes:
        epoch: number of the epoch, from 0.
        values: multipliers `(m,)`, read-only.
        saturated: True if a multiplier or a penalty has ever reached `LARGEST`.
    """

    OWNED = ("steps",)
    OWNED_EACH = ("_values_by_epoch",)

    def __init__(self, objective: Constrained) -> None:
        self._objective = objective
        self.epoch = 0
        self.values = frozen(objective.first())
        self.saturated = False
        self.kernel = objective.kernels[0] if objective.kernels else None
        self._values_by_epoch: dict[int, list[Array]] = {}  # constraint values of each epoch but the last
        self._since, self._anew = 0, False  # first round of epoch 0, and whether `advance` has yet to report a restart
        self.steps: list[tuple[int, Array]] = [(0, self.values)]

    def hear(self, trial: Trial) -> None:
        """Records the constraint values of a trial."""
        if trial.constraints is None or trial.number < self._since:
            return
        self.saturated = self.saturated or self._objective.saturates(trial.constraints)
        epoch = (trial.number - self._since) // self._objective.epoch
        if self.epoch <= epoch < self._objective.epochs - 1:
            self._values_by_epoch.setdefault(epoch, []).append(trial.constraints)

    @property
    def noise_factor(self) -> float:
        """Ratio of the noise of a target to the noise of a reward."""
        return self._objective.noise_factor(self.values)

    @property
    def began(self) -> int:
        """Round in which the epoch began."""
        return self._since + self.epoch * self._objective.epoch

    def restart(self, first: int) -> None:
        """Begins with the first epoch again, since f may have changed.

        Multipliers of Algorithm 2 never fall otherwise.
        """
        self.epoch, self.values, self._values_by_epoch = 0, frozen(self._objective.first()), {}
        self._since, self._anew = first, True

    def advance(self, rounds: int) -> Change:
        """Begins the epoch that is due after so many rounds."""
        objective, before, epoch = self._objective, self.values, self.epoch
        anew, self._anew = self._anew, False
        while self.epoch < objective.number_at(rounds - self._since):
            values = self._values_by_epoch.pop(self.epoch, [])
            if values:  # An epoch without values changes nothing.
                self.values = frozen(objective.updated(self.values, np.mean(values, axis=0)))
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
        """Returns the penalty of the average constraint values at the point of each trial."""
        g = averages(trials, [np.zeros(0) if trial.constraints is None else trial.constraints for trial in trials])
        return np.array([self._objective.penalty_of(each, self.values) for each in g])
