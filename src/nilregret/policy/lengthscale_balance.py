"""Regret balancing: which lengthscale decides the next round, and which lengthscales the rewards have refuted.

| symbol | name | meaning |
|---|---|---|
| S_j | `_played`, `_totals` | rounds that candidate j decided: all, and sums over those that were answered |
| R_j(n) | `_regret` | order of candidate j's regret bound after n rounds of its own |
| B_j | `_norm_of` | N (theta_0 / theta_j)^{d/2}: bound on the norm under a shorter lengthscale |
| beta_s sigma_s | `spread` | half the width of the bounds of f at x_s when x_s was asked for |
| xi_t | | 2 R^2 ln(m pi^2 t^2 / (3 delta)), m candidates |

Ziomek, Adachi & Osborne 2024, Algorithm 1. Candidate j suits f if ||f||_j <= B_j. Then all shorter candidates suit f as
well (their Lemma 2.1), and f* <= f(x_s) + 2 beta_s sigma_s in the rounds of candidate j.

With probability 1 - delta / 2 every average of noise over n rounds of one candidate is at most sqrt(xi_t / n) on the
side that counts. This holds for m candidates and n = 1, 2, ..., because m sum_n 3 delta / (m pi^2 n^2) = delta / 2.
Hence

    mean_j y + sqrt(xi_t / |S_j|) + 2 / |S_j| sum beta_s sigma_s >= f* >= mean_i y - sqrt(xi_t / |S_i|) for all i.

A candidate for which this fails is refuted. In the paper's line 12 the first root has the other sign, and the proof
does not go through. The code published with the paper has the sign used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, final

from .._utils.copying import Copyable
from ..gp import Averaged
from ..gp.fitting import Standardization
from ..slots.lengthscales import RegretBalancing
from ..storage.record import Trial
from ..theory.rates import information_gain_rate
from .policy import Policy
from .training_data import TrainingData


class _Round(NamedTuple):
    """A round that a candidate decided.

    Attributes:
        candidate: the index of the candidate.
        spread: beta_s sigma_s, reward units.
        value: y_s less the prior mean, or nan before the answer.
    """

    candidate: int
    spread: float
    value: float = math.nan


class _Total(NamedTuple):
    """Sums over the answered rounds of a candidate."""

    rounds: int
    values: float
    spreads: float


@final
class Balance(Copyable):
    """The balance between candidate lengthscales in a run.

    Attributes:
        leader: the candidate that decides the next round.
        eliminated: candidates that decide no more rounds.
    """

    OWNED = ("_open", "_answered", "_played", "_totals")

    def __init__(self, policy: Policy, refit: RegretBalancing) -> None:
        self._policy, self._refit, self._columns = policy, refit, len(policy.sides)
        self.restart()

    def restart(self) -> None:
        """Forgets all rounds."""
        self._t = 0
        self._open: dict[int, _Round] = {}  # rounds without an answer
        self._answered: dict[int, _Round] = {}
        self.eliminated: tuple[int, ...] = ()
        self._factors = self._refit.factors
        self._count()

    def _count(self) -> None:
        self._played = [0] * len(self._factors)
        self._totals = [_Total(0, 0.0, 0.0)] * len(self._factors)
        for each in (*self._open.values(), *self._answered.values()):
            self._played[each.candidate] += 1
        for each in self._answered.values():
            self._add(each)
        self._choose()

    def _add(self, each: _Round) -> None:
        n, values, spreads = self._totals[each.candidate]
        self._totals[each.candidate] = _Total(n + 1, values + each.value, spreads + each.spread)

    def _choose(self) -> None:
        """Chooses the smallest regret bound after one more round (line 3). Of equal bounds the longest leads."""
        self.leader = min(self._left(), key=lambda j: (self._regret(j, self._played[j] + 1), j))

    def _left(self) -> list[int]:
        return [j for j in range(len(self._factors)) if j not in self.eliminated]

    def _regret(self, j: int, n: int) -> float:
        """Returns Theorem 2.3's bound up to a constant.

        The bound is sqrt(n) (B_j sqrt(gamma_n) + gamma_n), with gamma_n ~ theta_j^-d (Prop. 2.2).
        """
        d = self._columns
        gamma = information_gain_rate(self._policy.kernel, d, n, source="vakili") * self._factors[j] ** -d
        return math.sqrt(n) * (self._norm_of(j) * math.sqrt(gamma) + gamma)

    def _norm_of(self, j: int) -> float:
        """Returns B_j = N (theta_0 / theta_j)^{d/2} (section 2, before Lemma 2.1)."""
        return float(self._refit.norm_bound * self._factors[j] ** (-0.5 * self._columns))

    def norm(self) -> float:
        """Returns the norm bound of the leader."""
        return self._norm_of(self.leader)

    def record(self, trial: Trial, spread: Callable[[], float | None], data: TrainingData) -> None:
        """Records a round that the leader decided, or that was forced.

        Args:
            trial: the trial that was asked for.
            spread: returns half the width of the bounds at the trial, or None if the round was forced.
            data: the training data of the reward.
        """
        self._t += 1
        half = spread()
        if half is not None:
            self._open[trial.number] = _Round(self.leader, half)
            self._played[self.leader] += 1
            self._choose()
        self._steer(data)

    def update(self, data: TrainingData) -> None:
        """Takes in answers, eliminates candidates, and adds shorter ones."""
        if self._take_answers(data):
            self._eliminate()
        added = self._refit.added_by(self._t, self._columns)
        new = len(self._refit.factors) + added - len(self._factors)
        if new > 0:  # lines 14-17
            self._factors = self._refit.all_factors(self._columns, added)
            self._played += [0] * new
            self._totals += [_Total(0, 0.0, 0.0)] * new
        posterior = data.posterior
        if posterior.added != added:
            posterior.added = added
            units = posterior.units
            data.rebuild(posterior.in_use, posterior.ridge, Standardization(units.center, units.unit), units.warp)
        self._choose()
        self._steer(data)

    def _steer(self, data: TrainingData) -> None:
        averaged = data.posterior.belief.observed
        if isinstance(averaged, Averaged):
            averaged.leader = self.leader

    def _take_answers(self, data: TrainingData) -> bool:
        """Returns whether answers have come. Each counts as its target at that time."""
        entries = data.posterior.entries
        come = [number for number in self._open if number in entries and data.pending.is_answer(number)]
        for number in come:
            value = data.value(entries[number].trial) - self._policy.prior_mean
            each = self._answered[number] = self._open.pop(number)._replace(value=value)
            self._add(each)
        return bool(come)

    def _eliminate(self) -> None:
        """Eliminates refuted candidates for good (lines 9-13, with the sign of the text above)."""
        left, totals = self._left(), self._totals
        if any(not totals[j].rounds for j in left):  # line 9
            return
        odds = len(self._factors) * math.pi**2 * max(self._t, 1) ** 2 / (3.0 * self._refit.delta)
        xi = 2.0 * self._refit.noise**2 * math.log(odds)  # Theorem 4.1, with d ln g(t) = m
        root = {j: math.sqrt(xi / totals[j].rounds) for j in left}
        best = max(totals[j].values / totals[j].rounds - root[j] for j in left)
        gone = [j for j in left if (totals[j].values + 2.0 * totals[j].spreads) / totals[j].rounds + root[j] < best]
        self.eliminated = tuple(sorted({*self.eliminated, *gone}))

    def forget_before(self, first: int) -> None:
        """Forgets rounds before number `first`. Eliminated candidates stay so."""
        if any(number < first for number in (*self._open, *self._answered)):
            self._open = {number: each for number, each in self._open.items() if number >= first}
            self._answered = {number: each for number, each in self._answered.items() if number >= first}
            self._count()
