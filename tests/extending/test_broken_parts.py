"""Each way of breaking a promise is caught by `nilregret.testing`, with a sentence that names it."""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest

import nilregret as nr
from nilregret.kernels import Stationary
from nilregret.slots import (
    Bounds,
    Confidence,
    Detector,
    Envelope,
    Explore,
    ImputedValue,
    Memory,
    Objective,
    Pending,
    PointwiseScore,
    Restart,
    Score,
    Width,
    described,
)
from nilregret.storage import SqlStorage
from nilregret.testing import check_kernel, check_policy, check_storage

from . import mine

POLICY = nr.gp_ucb(nr.Arms.grid(0, 1, 12), nr.Matern(2.5, 0.25), noise=0.1)
QUICK = nr.slots.PointSearch(candidates=64, starts=1)
ON_A_BOX = nr.gp_ucb(nr.Box([0.0], [1.0]), nr.Matern(2.5, 0.25), noise=0.1, search=QUICK)
COUNTER = itertools.count()


def part(cls):
    return described(dataclass(frozen=True)(cls))


@part
class GoesBack(Memory):
    def first_counted(self, since, round_):
        return max(since, 4 - round_)


@part
class CutsTheFuture(Memory):
    def cut(self, since, round_):
        return Restart(round_ + 1, "too early") if round_ == 7 else None


@part
class KeepsAllAndForgets(Memory):
    keeps_all = True

    def first_counted(self, since, round_):
        return max(since, round_ - 3)


@part
class DriftsTooMuch(Memory):
    def drift(self):
        return 1.5


class SharedWatch(Detector):
    def __init__(self):
        self.count = 0

    def see(self, seen):
        self.count += 1
        return Restart(seen.trial.number + 1, "every third answer") if self.count % 3 == 0 else None

    def reset(self):
        pass

    def copy(self):
        return self


@part
class SharesItsWatch(Memory):
    def watch(self, world):
        return SharedWatch()


@part
class OwnDice(Explore):
    def due(self, uniform, history, randomness):
        return next(COUNTER) % 2 == 0


@part
class NeverAndDoes(Explore):
    ever = False

    def due(self, uniform, history, randomness):
        return history > 3


@part
class SaysNumbers(Explore):
    def due(self, uniform, history, randomness):
        return 0.5


@part
class MovesSilently(Pending):
    def count_as(self, trial, known):
        return ImputedValue(-0.1 * known.age())


@part
class NeverRevises(Pending):
    revises = False

    def count_as(self, trial, known):
        return ImputedValue(known.lowest)


@part
class ProvesAnything(Pending):
    def count_as(self, trial, known):
        return ImputedValue(known.lowest)

    def proves(self, proved, policy):
        return "f"


@part
class StandsInForAnother(Pending):
    def count_as(self, trial, known):
        return ImputedValue(0.25)

    def stand_in(self, lowest):
        return lowest


@part
class Fickle(Objective):
    def target(self, trial, charges):
        return None if trial.reward is None else trial.reward + 0.01 * next(COUNTER)


@part
class Fuzzy(Width):
    def width(self, t, progress):
        return 1.0 + 0.1 * (next(COUNTER) % 2)


@part
class Negative(Width):
    def width(self, t, progress):
        return -1.0


@part
class Crossed(Confidence):
    def bounds(self, t, progress):
        return CrossedBounds()


class CrossedBounds(Bounds):
    def __call__(self, mean, std, rows=None):
        return Envelope(mean, std, lower=mean + std, upper=mean - std)


@part
class OneForAll(Confidence):
    def bounds(self, t, progress):
        return Widest()


class Widest(Bounds):
    def __call__(self, mean, std, rows=None):
        return Envelope(mean, std, lower=mean - std.max(), upper=mean + std.max())


@part
class SaysItMoves(Confidence):
    def bounds(self, t, progress):
        return ClippedAndMoves()


class ClippedAndMoves(Bounds):
    moves = True

    def __call__(self, mean, std, rows=None):
        return Envelope(mean, std, lower=np.clip(mean - std, -1, 1), upper=np.clip(mean + std, -1, 1))


@part
class Claims(mine.RootWidth):
    @property
    def valid_for(self):
        return "everything"


@part
class NotANumber(PointwiseScore):
    def __call__(self, envelope, incumbent=None):
        return np.full(len(envelope.mean), np.nan)


@part
class OneNumber(PointwiseScore):
    def __call__(self, envelope, incumbent=None):
        return np.array([envelope.upper.max()])


@part
class WrongPartials(PointwiseScore):
    def __call__(self, envelope, incumbent=None):
        return envelope.mean + envelope.std

    def partials(self, envelope, incumbent=None):
        return np.ones_like(envelope.mean), np.zeros_like(envelope.std)


@part
class WrongSlopes(Score):
    def on_table(self, view):
        return view.envelope().mean

    def on_points(self, view):
        surface = view.without_slopes(lambda points: np.sin(9.0 * points[:, 0]))
        return surface._replace(slopes=lambda points: (surface.values(points), np.zeros(points.shape)))


@part
class OwnRandom(Score):
    def on_table(self, view):
        return np.random.default_rng(next(COUNTER)).random(len(view.envelope().mean))

    def on_points(self, view):
        return view.path()


@part
class Unhashable(Memory):
    rounds: list[int] = field(default_factory=list)


BROKEN = {
    "a window that goes back": ({"memory": GoesBack()}, "GoesBack.first_counted"),
    "a cut in the future": ({"memory": CutsTheFuture()}, "CutsTheFuture.cut"),
    "keeps all, and forgets": ({"memory": KeepsAllAndForgets()}, "keeps all answers"),
    "more than all is new": ({"memory": DriftsTooMuch()}, r"drift\(\)` is 1.5"),
    "a watch whose copies are one": ({"memory": SharesItsWatch()}, "looked at.*remembers something"),
    "no hash": ({"memory": Unhashable([3])}, "no hash"),
    "dice of its own": ({"explore": OwnDice()}, "answers otherwise when it is asked again"),
    "never, and does": ({"explore": NeverAndDoes()}, "says that it never does"),
    "numbers": ({"explore": SaysNumbers()}, "says True or False"),
    "moves silently": ({"pending": MovesSilently()}, "set `moves = True`"),
    "never revises": ({"pending": NeverRevises()}, "`revises` as it is|NeverRevises.*say"),
    "proves anything": ({"pending": ProvesAnything()}, "nothing is proved"),
    "stands in for another": ({"pending": StandsInForAnother()}, "all unanswered trials count as"),
    "a fickle objective": ({"objective": Fickle()}, "remembers something|not the one of the trials"),
    "a fuzzy width": ({"confidence": Fuzzy()}, "remembers something|asked again"),
    "a negative width": ({"confidence": Negative()}, "lower bound lies above|width of -1"),
    "crossed bounds": ({"confidence": Crossed()}, "a lower bound lies above"),
    "bounds of all points together": ({"confidence": OneForAll()}, "depends on which other points"),
    "bounds that do not move": ({"confidence": SaysItMoves()}, "move with the rewards"),
    "a claim that nobody knows": ({"confidence": Claims()}, "valid_for` is 'everything'"),
    "scores that are no numbers": ({"score": NotANumber()}, "NaN"),
    "one score": ({"score": OneNumber()}, "scores|one of the domain"),
    "wrong partials": ({"score": WrongPartials()}, "WrongPartials.partials"),
    "random numbers of its own": ({"score": OwnRandom()}, "decides otherwise"),
}


@pytest.mark.parametrize(("parts", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_broken_parts_are_caught(parts, message):
    with pytest.raises(AssertionError, match=message):
        check_policy(POLICY.using(**parts), rounds=12)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"score": WrongPartials()}, "WrongPartials.partials|the gradient is not that of the score"),
        ({"score": WrongSlopes()}, "the gradient is not that of the score"),
        ({"confidence": OneForAll()}, "depends on which other points"),
    ],
    ids=["wrong partials", "wrong slopes", "bounds of all points together"],
)
def test_broken_parts_are_caught_on_boxes(parts, message):
    with pytest.raises(AssertionError, match=message):
        check_policy(ON_A_BOX.using(**parts), rounds=10)


def test_no_policy_and_too_few_rounds():
    for wrong, rounds, message in (("gp_ucb", 18, "no `Policy`"), (POLICY, 3, "less than 10 rounds")):
        with pytest.raises(AssertionError, match=message):
            check_policy(wrong, rounds=rounds)


# -- kernels ---------------------------------------------------------------------------------------------------------


class Profiled(Stationary):
    """Of its own `kappa` alone."""

    @property
    def moments(self):
        return math.inf, math.inf

    def frequencies(self, unit):
        raise nr.errors.InvalidInput("No frequencies.")


@part
class NotPositive(Profiled):
    lengthscale: float = 1.0
    scale: float = 1.0

    def profile(self, squares):
        value = np.where(squares < 1.0, 1.0, 0.0)
        return value, lambda: np.zeros_like(value)


@part
class WrongGradient(Profiled):
    lengthscale: float = 1.0
    scale: float = 1.0

    def profile(self, squares):
        value = np.exp(-0.5 * squares)
        return value, lambda: 2.0 * value


@part
class Constant(nr.Linear.__mro__[1]):
    """Of one's own from the ground up, with everything wrong that can be."""

    scale: float = 1.0

    def __call__(self, A, B):
        return np.full((len(A), len(B)), self.scale) + np.arange(len(A))[:, None]

    def diagonal(self, A):
        return np.full(len(A), self.scale)

    def input_gradient(self, X, B, weights):
        return np.zeros(np.shape(X))

    def diagonal_gradient(self, X):
        return np.zeros(np.shape(X))

    log_parameters = property(lambda self: np.log([self.scale]))

    def hyperparameters(self, columns):
        return ()

    def with_log_parameters(self, values):
        return Constant(float(np.exp(values[0])))

    def matrix_and_pullback(self, X):
        return self(X, X), lambda weights: np.zeros(1)

    def scaled(self, factor):
        return Constant(factor * self.scale)

    def derivatives(self, lower, upper):
        raise nr.errors.InvalidInput("None.")


@described
@dataclass(frozen=True)
class Alone(nr.kernels.Stationary):
    """A profile without the function of slopes."""

    lengthscale: float = 1.0
    scale: float = 1.0

    def profile(self, squares):
        return np.exp(-squares)


class Bare(nr.kernels.Stationary):
    """No dataclass."""

    def profile(self, squares):
        return np.exp(-squares), lambda: 2.0 * np.exp(-squares)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (NotPositive(1.0), "not positive semi-definite"),
        (WrongGradient(1.0), "input_gradient` is not the derivative"),
        (Constant(), "not symmetric"),
        ("matern", "no `Kernel`"),
        (Alone(1.0), "`Alone.profile` must return two things, .* it returns array"),
        (Bare(), "`Bare` is not decorated with `nilregret.slots.described`. Make it a frozen dataclass"),
    ],
    ids=["not positive", "wrong gradient", "not symmetric", "no kernel", "one array", "bare"],
)
def test_broken_kernels_are_caught(kernel, message):
    with pytest.raises(AssertionError, match=message):
        check_kernel(kernel)


@described
@dataclass(frozen=True)
class Hat(nr.kernels.Stationary):
    """1 - r, cut off at 0, is a covariance on a line only."""

    lengthscale: float = 1.0
    scale: float = 1.0

    def profile(self, squares):
        distances = np.sqrt(squares)
        within = (distances > 0.0) & (distances < 1.0)
        return np.maximum(1.0 - distances, 0.0), lambda: within / np.where(within, distances, 1.0)


@described
@dataclass(frozen=True)
class WithoutScale(nr.kernels.Stationary):
    lengthscale: float = 1.0

    def profile(self, squares):
        return np.exp(-squares), lambda: 2.0 * np.exp(-squares)


def test_a_kernel_that_is_positive_at_few_points_is_caught_at_many():
    with pytest.raises(AssertionError, match=r"100 points within .* has the eigenvalue -"):
        check_kernel(Hat(0.4))


def test_a_kernel_without_a_field_is_told_which_one():
    with pytest.raises(nr.errors.InvalidInput, match=r"`WithoutScale` has no field `scale`.*docs/extending.md"):
        WithoutScale()


@pytest.mark.parametrize("lengthscale", [0.4, (0.4, 1.3)])
def test_a_kernel_of_ones_own_keeps_the_promises(lengthscale):
    check_kernel(mine.Cauchy(lengthscale, 1.7))
    check_kernel(2.0 * mine.Cauchy(lengthscale) + nr.Linear())


# -- storages --------------------------------------------------------------------------------------------------------


def test_broken_storages_are_caught(tmp_path, monkeypatch):
    names = (f"sqlite:///{tmp_path}/{number}.db" for number in itertools.count())
    check_storage(lambda: next(names))
    one = f"sqlite:///{tmp_path}/one.db"
    with pytest.raises(AssertionError, match="`make` gave the same place twice"):
        check_storage(lambda: one)
    news = SqlStorage.news
    with monkeypatch.context() as patch:  # one that loses the last trial
        patch.setattr(
            SqlStorage, "news", lambda *args, **more: (found := news(*args, **more))._replace(trials=found.trials[:-1])
        )
        with pytest.raises(
            (AssertionError, nr.NoRegretError),
            match=r"not those that went in|no longer holds",
        ):
            check_storage(lambda: next(names))
