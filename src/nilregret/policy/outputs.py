"""What is believed of constraints that have posteriors of their own: a ledger for each, beside that of the reward.

A channel is a ledger of trials whose reward is the constraint value; everything that a ledger does for rewards (fits,
windows, what unanswered trials count as) it does for these.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any, Self, final

import numpy as np

from .._utils.checks import Array
from ..gp.fitting import Standardization
from ..kernels import Kernel
from ..kernels.domains import prior_std
from ..slots.constraint_scale import cautious_scale
from ..slots.constraint_state import Expected
from ..slots.constraints import LEAST_RIDGE, Constraints
from ..slots.envelope import Bounds, Envelope, Progress
from ..slots.feasibility import hopeless
from ..slots.lengthscales import with_factor
from ..slots.memory import Model
from ..storage.record import Event, Trial
from ..theory.information import GreedyDesign
from .engines import Engine, Limit, Limits, row_of, table
from .fits import Fitted, When
from .learning import learner_of
from .policy import Policy
from .silence_values import noise_of_silence
from .training_data import AskedSince, Ledger

FEW, SHARE = 64, 0.1  # values from which on the size of a constraint is looked at after this share more

_number = attrgetter("number")


@final
class Channel:
    """One constraint.

    Args:
        policy: whose reward the constraint is (`Policy.of_channel`).
        engine: of the policy.
        asked_since: as of the reward's ledger.
        seed: of the run.
        index: of the constraint, from 0.
        learns: whether its size is learned with caution.
    """

    def __init__(
        self,
        policy: Policy,
        engine: Engine[Any],
        asked_since: AskedSince,
        *,
        seed: int,
        index: int,
        learns: bool,
    ) -> None:
        self.policy, self._index = policy, index
        self._news = 0  # values since the last look at its size
        self._shape: Kernel | None = None  # of prior variance 1, where its size is learned
        self._size: tuple[float, float] | None = None  # as it was learned: a factor of the lengthscales, and the std
        if learns:
            self._shape = (1.0 / prior_std(policy.domain, policy.context, policy.kernel) ** 2) * policy.kernel
        self.ledger = Ledger(policy, engine, asked_since, of_reward=False)
        self.fits = learner_of(policy, seed=seed, channel=index + 1)
        self._guess = policy.confidence.guess()
        self._design: tuple[float, GreedyDesign] | None = None

    def value_of(self, trial: Trial) -> Trial:
        """The trial as if its constraint value had been its reward."""
        g = trial.constraints
        if g is None:
            return trial._replace(reward=None)
        return trial._replace(reward=float(g[self._index]), state="observed", reason=None)

    def check(self, rounds: int) -> None:
        """Look whether the data contradict a guess."""
        if self._guess is not None:
            self._guess.check(rounds, self.ledger.belief.answered)

    @property
    def valid_for(self) -> str:
        """What its bounds are proved for (see `Envelope`)."""
        refuted = self._guess is not None and self._guess.refuted
        return "none" if refuted or self._shape is not None else self.policy.valid_for

    def take(self, trials: list[Trial]) -> None:
        """Constraint values of trials that count."""
        self.ledger.take([self.value_of(trial) for trial in trials])
        self._news += len(trials)

    def expected(self, trial: Trial, engine: Engine[Any], t: int, since: int) -> Expected:
        """A constraint value, and what is expected of it."""
        policy, cell, units = self.policy, np.array([engine.here(trial)]), self.ledger.units
        seen = self.bounds(t, since)(*units.rewards(*self.ledger.belief.predict(cell)), cell)
        value = math.nan if trial.constraints is None else float(trial.constraints[self._index])
        known = self._shape is None or self._size is not None
        prior = math.sqrt(engine.between(self.ledger.kernel, [cell[0]], [cell[0]])[0, 0]) if known else math.inf
        return Expected(
            value,
            seen,
            max(policy.noise, math.sqrt(LEAST_RIDGE) * prior) if known else math.inf,
            prior,
            policy.prior_mean,
        )

    def learn(self) -> bool:
        """Look how large it is by what counts now; whether it is taken for another kernel than before."""
        ledger, policy, kernel = self.ledger, self.policy, self._shape
        count = len(ledger.entries)
        if kernel is None or not self._news or (count > FEW and self._news < SHARE * count):
            return False
        self._news = 0
        told: dict[bytes, tuple[Array, list[float]]] = {}
        for number in sorted(ledger.entries):
            trial = ledger.entries[number].trial
            if trial.reward is not None:
                row = row_of(trial)
                told.setdefault(row.tobytes(), (row, []))[1].append(trial.reward)
        if not told:
            return False
        rows = np.array([row for row, _ in told.values()])
        means, counts = (np.array([found(values) for _, values in told.values()]) for found in (np.mean, len))
        factor, size = cautious_scale(kernel, rows, means, counts, noise=policy.noise)
        if (factor, size) == self._size or not size:
            return False
        self._size = factor, size
        ledger.kernel = size**2 * with_factor(kernel, factor, rows.shape[1])
        ridge = policy.regularization if policy.noise else LEAST_RIDGE * size**2
        ledger.begin(ledger.kernel, ridge, Standardization(policy.prior_mean, 1.0))
        return True

    def restart(self, first: int) -> None:
        """Only trials from this one on count."""
        if self.fits is not None:
            self.fits.restart()
        self.ledger.kernel, self._size = self.policy.kernel, None
        self.ledger.restart(first)
        self._news = len(self.ledger.entries)

    def bounds(self, t: int, since: int) -> Bounds:
        """The bounds of round t, the t-th since the last cut."""
        belief = self.ledger.belief
        guessed = None if self._guess is None else self._guess.bound
        progress = Progress(belief.asked, guessed, lambda: self._greedy(since), 1.0, None, belief.answered)
        return self.policy.confidence.bounds(t, progress)

    def _greedy(self, since: int) -> GreedyDesign:
        policy = self.policy
        ridge = policy.memory.regularization(since, policy.regularization)
        if self._design is None or self._design[0] != ridge:
            self._design = ridge, GreedyDesign(policy.kernel, table(policy.domain, policy.context), ridge)
        return self._design[1]

    def copy(self, engine: Engine[Any], asked_since: AskedSince) -> Channel:
        """An independent one in the same state."""
        other = Channel.__new__(Channel)
        other.__dict__.update(self.__dict__)
        other.ledger = self.ledger.copy(engine, asked_since)
        other.fits = None if self.fits is None else self.fits.copy()
        other._guess = None if self._guess is None else self._guess.copy()
        return other


def _model(channel: Channel, engine: Engine[Any]) -> Model:
    kernel, ledger = channel.ledger.in_use, channel.ledger
    noise = channel.policy.noise**2 if channel.policy.fitting is None else max(ledger.ridge, noise_of_silence(ledger))
    return Model(noise, partial(engine.between, kernel), partial(engine.largest_variance, kernel))


@final
class Channels:
    """All constraints of a policy, and what violations cost."""

    def __init__(
        self, policy: Policy, world: Constraints, engine: Engine[Any], asked_since: AskedSince, *, seed: int
    ) -> None:
        self.world = world
        self.each = [
            Channel(policy.of_channel(j + 1), engine, asked_since, seed=seed, index=j, learns=world.learns(j))
            for j in range(world.count)
        ]
        self.books = world.begin()
        self._waiting: list[Trial] = []  # whose constraint values came in since the last decision, and failed ones

    @property
    def due(self) -> bool:
        """Whether anything waits to be taken in."""
        return bool(self._waiting) or any(channel.ledger.fresh for channel in self.each)

    @property
    def prices(self) -> Array:
        """Of violations, `(m,)`."""
        return self.books.prices

    def ask(self, trial: Trial, engine: Engine[Any], t: int, since: int) -> None:
        """A trial has been asked for."""
        for channel in self.each:
            channel.ledger.ask(trial)
        self.books.asked(trial, lambda: self._at(trial, engine, t, since))

    def _at(self, trial: Trial, engine: Engine[Any], t: int, since: int) -> list[Envelope]:
        return [channel.expected(trial, engine, t, since).seen for channel in self.each]

    def hear(self, event: Event) -> None:
        """An outcome has come in, or constraint values have."""
        trial = event.trial
        if event.kind == "abandoned":
            for channel in self.each:
                channel.ledger.abandon(trial)
            return
        news = event.kind == "limited" or (trial.constraints_order is None and trial.constraints is not None)
        if news or (trial.state == "failed" and trial.constraints is None):
            self._waiting.append(trial)

    def plan(self, events: list[Event]) -> None:
        """What a replay will bring: see `Fits`."""
        for channel in self.each:
            if channel.fits is not None and not self.books.watches:
                channel.fits.plan(events, channel.ledger, None)

    def planned(self) -> None:
        """What was planned for has come in."""
        for channel in self.each:
            if channel.fits is not None:
                channel.fits.planned()

    def take(self, first: int, engine: Engine[Any], t: int, since: int) -> None:
        """Take in what waits, by number, of the trials that count: those from this one on."""
        waiting, self._waiting = sorted(self._waiting, key=_number), []
        for trial in waiting:
            if trial.constraints is not None:
                self.books.hear(trial, partial(self._expected, trial, engine, t, since))
        counted = [trial for trial in waiting if trial.number >= first]
        for channel in self.each:
            if counted or channel.ledger.fresh:
                channel.take(counted)

    @property
    def news(self) -> Fitted:
        """Fits that have come into force for the decision to come, and are not on record."""
        return tuple(fit for channel in self.each if channel.fits is not None for fit in channel.fits.news)

    def _expected(self, trial: Trial, engine: Engine[Any], t: int, since: int) -> list[Expected]:
        return [channel.expected(trial, engine, t, since) for channel in self.each]

    def settle(self, rounds: int, when: When) -> bool:
        """Prices, checks and fits, after everything has come in; whether a size was learned anew."""
        self.books.advance(rounds)
        for channel in self.each:
            channel.check(rounds)
            if channel.fits is not None:
                channel.fits.settle(channel.ledger, when)
        learned = [channel.learn() for channel in self.each]
        return any(learned)

    def scales(self) -> tuple[Callable[[float], float], ...]:
        """What brings a value of each into the units of its belief as it is now."""
        return tuple(channel.ledger.units.scaled for channel in self.each)

    def models(self, policy: Policy, engine: Engine[Any]) -> tuple[Model, ...]:
        """What each is believed to be before anything is seen; none where all are as the reward and come with it."""
        alike = all(c.policy.kernel == policy.kernel and c.policy.noise == policy.noise for c in self.each)
        if alike and policy.refit is None and policy.pending.waits() is None:  # a reward that stays away may be a no
            return ()
        return tuple(_model(channel, engine) for channel in self.each)

    def silent(self, trial: Trial) -> Array | None:
        """What no value of an unanswered trial is worth, `(m,)`, nan where it says nothing; None where none does."""
        each = [self._worth(channel.ledger, trial) for channel in self.each]
        return None if np.isnan(each).all() else np.array(each)

    @staticmethod
    def _worth(ledger: Ledger, trial: Trial) -> float:
        waits = ledger.waits
        silent = waits is not None and waits.evident and trial.number in ledger.open
        return waits.worth(ledger.lowest()) if silent and waits is not None else math.nan

    def restart(self, first: int) -> None:
        """Nothing before this round counts any more."""
        self.books.forget_before(first)
        for channel in self.each:
            channel.restart(first)

    def forget_before(self, first: int) -> None:
        """Trials before this one count no more."""
        self.books.forget_before(first)
        for channel in self.each:
            if channel.fits is not None:
                channel.fits.forget_before(first, channel.ledger)
            channel.ledger.forget_before(first)

    def advance(self) -> None:
        """Another round is asked about, where functions drift."""
        for channel in self.each:
            channel.ledger.advance()

    def limits(self, t: int, since: int) -> Limits:
        """What is believed of them in round t since the last cut."""
        each = (Limit(c.ledger.belief, c.bounds(t, since), c.ledger.units) for c in self.each)
        return Limits(self.world, tuple(each), self.books)

    def envelope(self, j: int, engine: Engine[Any], t: int, since: int, points: Any, context: Array | None) -> Envelope:
        """Bounds of constraint j, from 1, in the user's units."""
        return self.each[j - 1].ledger.units.shown(self.believed(j, engine, t, since, points, context))

    def believed(self, j: int, engine: Engine[Any], t: int, since: int, points: Any, context: Array | None) -> Envelope:
        """Likewise, in the units in which it is learned: satisfied when <= 0 in these too."""
        channel = self.each[j - 1]
        found = engine.envelope(channel.ledger.belief, channel.bounds(t, since), channel.ledger.units, points, context)
        found.valid_for = channel.valid_for
        return found

    def hopeless(self, engine: Engine[Any], t: int, since: int, points: Any, context: Array | None) -> bool:
        """Whether at every one of these points (arms, for None) some lower bound is above 0."""
        each = [self.envelope(j + 1, engine, t, since, points, context) for j in range(len(self.each))]
        return bool(hopeless(each).all())

    @property
    def confidence(self) -> float:
        """The probability, at least, with which the bounds of all of them hold; 0 where some are not proved."""
        deltas = [c.policy.confidence.delta if c.valid_for == "f" else 1.0 for c in self.each]
        return max(1.0 - sum(deltas), 0.0)

    def inside(self, trials: list[Trial]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Which answered trials satisfy all constraints in the posterior mean, `(n,)`."""
        return np.asarray(np.max([channel.ledger.means(trials) for channel in self.each], axis=0) <= 0.0)

    def copy(self, engine: Engine[Any], asked_since: AskedSince) -> Self:
        """An independent one in the same state."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.each = [channel.copy(engine, asked_since) for channel in self.each]
        other._waiting = self._waiting.copy()
        other.books = self.books.copy()
        return other
