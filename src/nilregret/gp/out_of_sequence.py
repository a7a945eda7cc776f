"""A posterior of a drifting function whose observations may be added late, changed or removed.

| symbol | name | meaning |
|---|---|---|
| s | | round of an observation, with at most one observation a round |
| | `now` | round of the predictions |
| F_s | `_live`, `_marks` | posterior before the observation of round s, from all observations of earlier rounds |

A drifting function is a Markov chain of weights, so F_{s+1} follows from F_s and the observation of round s. A change
at round s leaves F_s as it was, and everything from there on is computed again when it is next needed. So the posterior
depends only on the observations, whatever their history. It is the posterior of the Gaussian process with covariance
k(x, x') (1 - rate)^{|s - s'| / 2} (Bogunovic, Scarlett & Cevher 2016, section 3.2).

Every eighth of the last F_s is kept, and ever fewer of the older ones. So going back over n rounds costs about 2 n + 4
steps of a drifting posterior, and the memory is that of log t posteriors. Of large posteriors only the latest are kept.
Going back to before the oldest costs all rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from .._utils.checks import Array, number
from ..errors import InvalidInput
from .arms import ArmIndices
from .bank import BankPosterior
from .drifting import DriftingPosterior
from .protocol import Posterior

APART = 8  # rounds from one kept F_s to the next, since a copy costs about as much as a round
LARGE = 250_000  # number of floats of a posterior by which `APART` is increased in proportion
KEPT = 4  # steps of `APART` rounds during which every F_s is kept
FEWEST, MOST = 4, 8_000_000  # largest number of kept F_s, or of their floats in all, whichever allows more

Chain = DriftingPosterior | BankPosterior


@final
class OutOfSequencePosterior(Posterior):
    """A drifting posterior whose observations belong to rounds. Its points are `entry(arm, round)`.

    Args:
        chain: posterior without observations, which is owned from now on.
    """

    OWNED = ("_by_round", "_marks")

    def __init__(self, chain: Chain) -> None:
        self._start = chain
        self.prior, self.regularization, self.count = chain.prior, chain.regularization, 0
        self._arms = len(chain.prior.variance)
        self.now = 0
        self._by_round: dict[int, tuple[int, float, float]] = {}  # arm, target and weight, by round
        self._first = 0  # first observation of the present chain
        self._round, self._owned = 0, False
        self._live: Chain | None = None  # F_s for the latest s read, changed in place if it is owned
        self._marks: list[tuple[int, Chain]] = []  # ascending rounds and their F_s, which are never changed
        self._apart, self._most = APART * (1 + chain.size // LARGE), max(FEWEST, MOST // chain.size)

    def entry(self, arm: int, round_: int) -> int:
        """Returns the observation of an arm in a round, as one number."""
        return round_ * self._arms + arm

    # -- observations --------------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Sets the round of the predictions."""
        if now < self.now:
            raise InvalidInput(f"Round {now} is before round {self.now}: time goes on.")
        self.now = now

    def append(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Adds the observation of an entry."""
        round_, arm = divmod(int(point), self._arms)
        if round_ in self._by_round:
            raise InvalidInput(f"Round {round_} has an observation already.")
        self._by_round[round_] = arm, number("target", target), weight
        self.count += 1
        self._changed(round_)

    def revise(self, point: Any, old: float, new: float) -> None:  # noqa: ARG002 - a round has one
        """Replaces the target of an entry."""
        round_, arm = self._known(point)
        self._by_round[round_] = arm, number("new", new), self._by_round[round_][2]
        self._changed(round_)

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the targets of several entries. Later posteriors are computed again when they are needed."""
        for point, before, after in zip(points, old, new, strict=True):
            self.revise(point, before, after)

    def forget(self, point: Any, target: float, *, weight: float = 1.0) -> None:  # noqa: ARG002 - a round has one
        """Removes the observation of an entry."""
        round_, _ = self._known(point)
        del self._by_round[round_]
        self.count -= 1
        self._changed(round_ if round_ > self._first else -1)

    def _known(self, point: Any) -> tuple[int, int]:
        round_, arm = divmod(int(point), self._arms)
        if self._by_round.get(round_, (None,))[0] != arm:
            raise InvalidInput(f"Arm {arm} has no observation of round {round_} to change or forget.")
        return round_, arm

    def _changed(self, round_: int) -> None:
        if round_ < self._round:
            self._live = None
        while self._marks and self._marks[-1][0] > round_:
            self._marks.pop()

    # -- predictions ---------------------------------------------------------------------------------------------

    @property
    def chain(self) -> Chain:
        """Posterior of this round, not to be changed."""
        if not self._by_round:
            return self._start
        chain = self._go_back() if self._live is None else self._live
        while self._round < self.now:
            if not self._owned:
                chain, self._owned = chain.copy(), True
            if self._round in self._by_round:
                self._learn(chain, self._round)
            chain.tick()
            self._round += 1
            if self._round % self._apart == 0 and _kept_until(self._round, self._apart) >= self.now:
                self._marks.append((self._round, chain.copy()))
        self._live = chain
        self._marks = [mark for mark in self._marks if _kept_until(mark[0], self._apart) >= self.now][-self._most :]
        return self._learned(chain) if self.now in self._by_round else chain

    def _go_back(self) -> Chain:
        """Returns the last valid F_s.

        If there is none, that is F_s of the first observation, before which f is a sample of the prior.
        """
        if not self._marks:
            self._first = min(self._by_round)
        self._round, chain = self._marks[-1] if self._marks else (self._first, self._start)
        self._owned = False
        return chain

    def _learned(self, chain: Chain) -> Chain:
        """Returns the posterior with the observation of this very round, before the next round has begun."""
        chain = chain.copy()
        self._learn(chain, self.now)
        return chain

    def _learn(self, chain: Chain, round_: int) -> None:
        arm, target, weight = self._by_round[round_]
        chain.append(arm, target, weight=weight)

    def deviations_from(self, observed: OutOfSequencePosterior) -> Chain:
        """Returns the posterior of f less the mean of another posterior.

        Rates have the shares of the other posterior, since this one has targets of 0.

        Args:
            observed: the other posterior.
        """
        chain, other = self.chain, observed.chain
        if isinstance(chain, BankPosterior) and isinstance(other, BankPosterior):
            return chain.deviations_from(other)
        return chain

    def variance_only(self) -> OutOfSequencePosterior:
        """Returns a copy whose targets do not change the shares of the rates."""
        other = self.copy()
        if isinstance(self._start, BankPosterior):
            other._start = self._start.copy()
            other._start.weighs = False
        return other

    @property
    def rate(self) -> float:
        """Share of f that is new in each round, the most likely one of several."""
        return self.chain.rate

    @property
    def mean_rate(self) -> float:
        """Share of f that is new in each round, the mean of several."""
        chain = self.chain
        return float(chain.shares @ chain.rates) if isinstance(chain, BankPosterior) else chain.rate

    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Returns mean and std of the present f, at all arms or those listed."""
        return self.chain.predict(points)

    def covariance(self, points: ArmIndices) -> Array:
        """Returns the joint posterior covariance, `(n, n)`."""
        return self.chain.covariance(points)

    def sample(self, rng: np.random.Generator, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint samples of the present f, `(size, n)`."""
        return self.chain.sample(rng, points, size=size)

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k of the present f."""
        return self.chain.mean_norm

    @property
    def log_determinant_ratio(self) -> float:
        """Sum of log(1 + sigma^2 / lambda) over time."""
        return self.chain.log_determinant_ratio

    def copy(self) -> Self:
        """Returns an independent posterior in the same state, which shares the posteriors of earlier rounds."""
        self._owned = False  # The live posterior is shared, too, until one of the two replaces it.
        return super().copy()


def _kept_until(round_: int, apart: int) -> int:
    """Returns the round up to which F_s is kept: s + KEPT * 2^k, 2^k the largest power that divides s, in steps."""
    step = round_ // apart
    return apart * (step + KEPT * (step & -step))
