"""Parts as a user would write them in a module of his own: nothing is imported that is not public."""

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from nilregret.kernels import Stationary
from nilregret.slots import (
    Bounds,
    Change,
    Confidence,
    Detector,
    Envelope,
    Explore,
    ImputedValue,
    Memory,
    Objective,
    PenaltyState,
    Pending,
    PointwiseScore,
    Restart,
    Score,
    Width,
    described,
)

# -- memory: a window that grows, and a detector that is shown what was believed before ------------------------------


@described
@dataclass(frozen=True)
class GrowingWindow(Memory):
    """The younger half of the trials, and at least so many."""

    least: int

    def first_counted(self, since, round_):
        return max(since, min(round_ // 2, round_ - self.least))


@described
@dataclass(frozen=True)
class Surprise(Memory):
    """All since the answers of the last `rounds` trials were, on average, more than `limit` deviations off."""

    limit: float = 2.0
    rounds: int = 4
    noise: float = 0.1

    def watch(self, world):
        return Surprises(self)


class Surprises(Detector):
    predicts = True

    def __init__(self, memory):
        self.memory, self.last = memory, deque(maxlen=memory.rounds)

    def see(self, seen):
        spread = math.hypot(seen.before.std, self.memory.noise)
        self.last.append(abs(seen.trial.reward - seen.before.mean) / spread)
        if len(self.last) == self.memory.rounds and np.mean(self.last) > self.memory.limit:
            return Restart(seen.trial.number + 1, "answers that nothing had led to expect")
        return None

    def reset(self):
        self.last.clear()

    def copy(self):
        other = Surprises(self.memory)
        other.last.extend(self.last)
        return other


@described
@dataclass(frozen=True)
class OwnPicture(Memory):
    """Restarts where a belief of its own, of the answers since, is far from an answer: needs no prediction."""

    limit: float = 3.0

    def watch(self, world):
        return Picture(self.limit, world, world.fresh())


class Picture(Detector):
    def __init__(self, limit, world, belief):
        self.limit, self.world, self.belief = limit, world, belief

    def see(self, seen):
        cell = self.world.cell(seen.trial)
        mean, std = self.belief.predict(np.array([cell]))
        self.belief.put(cell, seen.value)
        far = abs(seen.value - mean[0]) > self.limit * math.sqrt(std[0] ** 2 + self.world.regularization)
        return Restart(seen.trial.number + 1, "far from what was known") if far else None

    def reset(self):
        self.belief = self.world.fresh()

    def copy(self):
        return Picture(self.limit, self.world, self.belief.copy())


@described
@dataclass(frozen=True)
class Drifting(Memory):
    """f changes a little in every round."""

    rate: float

    def drift(self):
        return self.rate


# -- explore ---------------------------------------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class EpsilonGreedy(Explore):
    """A share of the rounds is uniform."""

    epsilon: float

    def due(self, uniform, history, randomness):
        return randomness.draws.random() < self.epsilon


# -- pending ---------------------------------------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class Liar(Pending):
    """An unanswered trial counts as the lowest reward so far."""

    def count_as(self, trial, known):
        return ImputedValue(known.lowest)


@described
@dataclass(frozen=True)
class Patient(Pending):
    """As nothing for some rounds, then for the variance alone."""

    rounds: int

    hallucinates = True
    moves = True

    def count_as(self, trial, known):
        return ImputedValue(None) if known.age() >= self.rounds else None


@described
@dataclass(frozen=True)
class Believer(Pending):
    """As what the posterior says of it, a little less."""

    less: float = 0.1

    moves = True

    def count_as(self, trial, known):
        return ImputedValue(known.mean() - self.less)


# -- objective -------------------------------------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class Clipped(Objective):
    """Rewards between two numbers: a wild one does not carry everything away."""

    low: float
    high: float

    def target(self, trial, charges):
        return None if trial.reward is None else min(max(trial.reward, self.low), self.high)


@described
@dataclass(frozen=True)
class RisingPrice(Objective):
    """The reward less what the first coordinate costs; the price rises by `step` every `epoch` rounds."""

    step: float = 0.2
    epoch: int = 5

    def target(self, trial, charges):
        return None if trial.reward is None else trial.reward - charges[0] * trial.point[0]

    def begin(self):
        return Price(self)


class Price(PenaltyState):
    def __init__(self, objective):
        self.objective, self.values = objective, np.zeros(1)

    def hear(self, trial):
        pass

    def advance(self, rounds):
        before, self.values = self.values, np.array([self.objective.step * (rounds // self.objective.epoch)])
        return Change.NOTHING if before == self.values else Change.REVALUE

    def put_back(self, trials):
        return np.array([self.values[0] * trial.point[0] for trial in trials])

    def copy(self):
        other = Price(self.objective)
        other.values = self.values
        return other


# -- confidence ------------------------------------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class RootWidth(Width):
    """A width that grows with the root of the logarithm of the rounds."""

    scale: float = 1.0

    def width(self, t, progress):
        return self.scale * math.sqrt(2.0 * math.log(1.0 + t))


@described
@dataclass(frozen=True)
class Between(Confidence):
    """The bounds of a width, cut off where f cannot be."""

    inner: Width
    low: float = 0.0
    high: float = 1.0

    def bounds(self, t, progress):
        return Cut(self, self.inner.width(t, progress))


class Cut(Bounds):
    def __init__(self, part, width):
        self.part, self.inner = part, width

    def __call__(self, mean, std, rows=None):
        lower, upper = mean - self.inner * std, mean + self.inner * std
        low, high = self.part.low, self.part.high
        return Envelope(mean, std, lower=np.clip(lower, low, high), upper=np.clip(upper, low, high))


# -- score -----------------------------------------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class Middle(PointwiseScore):
    """A weighted mean of both bounds (Hurwicz); without derivatives."""

    optimism: float = 0.8

    def __call__(self, envelope, incumbent=None):
        return self.optimism * envelope.upper + (1.0 - self.optimism) * envelope.lower


@described
@dataclass(frozen=True)
class OptimisticThompson(Score):
    """A draw of f, nowhere below the mean (May et al. 2012)."""

    draws = True

    def on_table(self, view):
        return np.maximum(view.draw(), view.envelope().mean)

    def on_points(self, view):
        path = view.path()

        def values(points):
            return np.maximum(path.values(points), view.envelope(points).mean)

        return view.without_slopes(values)


# -- kernels ---------------------------------------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class Cauchy(Stationary):
    """kappa = 1 / (1 + r^2 / 2): a mixture of squared exponentials, exponential in their inverse squared lengths."""

    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = 1.0

    def profile(self, squares):
        value = 1.0 / (1.0 + 0.5 * squares)
        return value, lambda: value**2

    @property
    def moments(self):
        return 1.0, 2.0

    def frequencies(self, unit):
        from scipy.special import ndtri

        normal, mixing = ndtri(unit[:, :-1]), -np.log(unit[:, -1:])
        return np.sqrt(mixing) * normal / np.asarray(self.lengthscale)
