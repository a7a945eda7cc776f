"""Which lengthscale decides the next round, and which ones the rewards have refuted: regret balancing.

| symbol | name | meaning |
|---|---|---|
| S_j | `_played`, `_totals` | rounds that candidate j decided: all, and sums over those that were answered |
| R_j(n) | `_regret` | order of candidate j's regret bound after n rounds of its own |
| B_j | `_norm_of` | N (theta_0 / theta_j)^{d/2}: bound on the norm under a shorter lengthscale |
| beta_s sigma_s | `spread` | half the width of the bounds of f at x_s, when it was asked for |
| xi_t | | 2 R^2 ln(m pi^2 t^2 / (3 delta)), m candidates |

Ziomek, Adachi & Osborne 2024, Algorithm 1. Candidate j suits f where ||f||_j <= B_j, and with it all that are shorter
(their Lemma 2.1). Then f* <= f(x_s) + 2 beta_s sigma_s in its rounds, and with probability 1 - delta / 2 all averages
of noise over n rounds of one candidate are at most sqrt(xi_t / n) on the side that counts (m candidates, n = 1, 2, ...:
m sum_n 3 delta / (m pi^2 n^2) = delta / 2), hence

    mean_j y + sqrt(xi_t / |S_j|) + 2 / |S_j| sum beta_s sigma_s >= f* >= mean_i y - sqrt(xi_t / |S_i|) for all i.

A candidate for which this fails is refuted. (In the paper's line 12 the first root has the other sign, with which the
proof does not go through; the code published with it has it as it is here.)
"""

from __future__ import annotations

import math
from typing import NamedTuple, final

from ..gp import Averaged
from ..gp.fitting import Standardization
from ..slots.lengthscales import RegretBalancing
from ..storage.record import Trial
from ..theory.rates import information_gain_rate
from .fits import Learner, Spread, When
from .policy import Policy
from .training_data import Ledger


class _Round(NamedTuple):
    """One that a candidate decided."""

    candidate: int
    spread: float  # beta_s sigma_s, reward units
    value: float = math.nan  # y_s less the prior mean, once it is there


class _Total(NamedTuple):
    """Over the answered rounds of a candidate."""

    rounds: int
    values: float
    spreads: float


@final
class Balance(Learner):
    """Whose turn it is.

    Attributes:
        leader: the candidate that decides the next round.
        eliminated: candidates that decide no more.
    """

    OWNED = ("_open", "_heard", "_played", "_totals")

    def __init__(self, policy: Policy, refit: RegretBalancing) -> None:
        self._policy, self._refit, self._columns = policy, refit, len(policy.sides)
        self.restart()

    def restart(self) -> None:
        """Nothing counts any more."""
        self._t = 0
        self._open: dict[int, _Round] = {}  # rounds without an answer
        self._heard: dict[int, _Round] = {}
        self.eliminated: tuple[int, ...] = ()
        self._factors = self._refit.factors
        self._count()

    def _count(self) -> None:
        self._played = [0] * len(self._factors)
        self._totals = [_Total(0, 0.0, 0.0)] * len(self._factors)
        for each in (*self._open.values(), *self._heard.values()):
            self._played[each.candidate] += 1
        for each in self._heard.values():
            self._add(each)
        self._choose()

    def _add(self, each: _Round) -> None:
        n, values, spreads = self._totals[each.candidate]
        self._totals[each.candidate] = _Total(n + 1, values + each.value, spreads + each.spread)

    def _choose(self) -> None:
        """Line 3: the smallest regret bound, one more round of its own included; of several the longest."""
        self.leader = min(self._left(), key=lambda j: (self._regret(j, self._played[j] + 1), j))

    def _left(self) -> list[int]:
        return [j for j in range(len(self._factors)) if j not in self.eliminated]

    def _regret(self, j: int, n: int) -> float:
        """Theorem 2.3 up to its constant: sqrt(n) (B_j sqrt(gamma_n) + gamma_n), gamma_n ~ theta_j^-d (Prop. 2.2)."""
        d = self._columns
        gamma = information_gain_rate(self._policy.kernel, d, n, source="vakili") * self._factors[j] ** -d
        return math.sqrt(n) * (self._norm_of(j) * math.sqrt(gamma) + gamma)

    def _norm_of(self, j: int) -> float:
        """B_j = N (theta_0 / theta_j)^{d/2} (section 2, before Lemma 2.1)."""
        return float(self._refit.norm_bound * self._factors[j] ** (-0.5 * self._columns))

    def norm(self) -> float:
        """Of the candidate that decides."""
        return self._norm_of(self.leader)

    def ask(self, trial: Trial, spread: Spread, ledger: Ledger) -> None:
        """A round was decided: by the leader, or forced."""
        self._t += 1
        half = spread()
        if half is not None:
            self._open[trial.number] = _Round(self.leader, half)
            self._played[self.leader] += 1
            self._choose()
        self._steer(ledger)

    def settle(self, ledger: Ledger, when: When) -> bool:  # noqa: ARG002 - nothing is fitted
        """Take in answers, refute, and add shorter candidates."""
        if self._hear(ledger):
            self._eliminate()
        added = self._refit.added_by(self._t, self._columns)
        new = len(self._refit.factors) + added - len(self._factors)
        if new > 0:  # lines 14-17
            self._factors = self._refit.all_factors(self._columns, added)
            self._played += [0] * new
            self._totals += [_Total(0, 0.0, 0.0)] * new
        if ledger.added != added:
            ledger.added = added
            units = ledger.units
            ledger.begin(ledger.in_use, ledger.ridge, Standardization(units.center, units.unit), units.warp)
        self._choose()
        self._steer(ledger)
        return False

    def _steer(self, ledger: Ledger) -> None:
        averaged = ledger.belief.answered
        if isinstance(averaged, Averaged):
            averaged.leader = self.leader

    def _hear(self, ledger: Ledger) -> bool:
        """Whether answers have come; each counts as what it was learned as when it came."""
        come = [number for number in self._open if number in ledger.entries and ledger.is_answer(number)]
        for number in come:
            value = ledger.value(ledger.entries[number].trial) - self._policy.prior_mean
            each = self._heard[number] = self._open.pop(number)._replace(value=value)
            self._add(each)
        return bool(come)

    def _eliminate(self) -> None:
        """Lines 9-13, with the sign of the text above; what was eliminated stays so."""
        left, totals = self._left(), self._totals
        if any(not totals[j].rounds for j in left):  # line 9
            return
        odds = len(self._factors) * math.pi**2 * max(self._t, 1) ** 2 / (3.0 * self._refit.delta)
        xi = 2.0 * self._refit.noise**2 * math.log(odds)  # Theorem 4.1, with d ln g(t) = m
        root = {j: math.sqrt(xi / totals[j].rounds) for j in left}
        best = max(totals[j].values / totals[j].rounds - root[j] for j in left)
        gone = [j for j in left if (totals[j].values + 2.0 * totals[j].spreads) / totals[j].rounds + root[j] < best]
        self.eliminated = tuple(sorted({*self.eliminated, *gone}))

    def forget_before(self, first: int, ledger: Ledger) -> None:  # noqa: ARG002 - it has its own numbers
        """Trials before this one count no more; what they refuted stays refuted."""
        if any(number < first for number in (*self._open, *self._heard)):
            self._open = {number: each for number, each in self._open.items() if number >= first}
            self._heard = {number: each for number, each in self._heard.items() if number >= first}
            self._count()
