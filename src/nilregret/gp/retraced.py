"""A function that drifts, of which any observation may be told late, changed or taken back.

| symbol | name | meaning |
|---|---|---|
| s | | round that an observation belongs to, at most one each |
| | `now` | round that predictions are for |
| F_s | `_live`, `_marks` | what was known of f before the observation of round s: from all those of earlier rounds |

A drifting function is a Markov chain of weights, so F_{s+1} follows from F_s and the observation of round s. What
changes at round s leaves F_s as it was: everything is worked out anew from there on, when it is next asked for. So the
posterior is a function of the observations alone, whatever became of them in which order, and it is the one of the
Gaussian process with covariance k(x, x') (1 - rate)^{|s - s'| / 2} (Bogunovic, Scarlett & Cevher 2016, section 3.2).

Of the F_s every eighth of the last ones is kept, and ever fewer of those further back, so that going back over n rounds
costs about 2 n + 4 steps of a drifting posterior, and keeping them as much memory as log t of these. Of large ones only
the latest are kept: going back to before the oldest costs all rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np

from .._utils.checks import Array, number
from .._utils.errors import InvalidInput
from .arms import ArmIndices
from .bank import BankPosterior
from .drifting import DriftingPosterior
from .protocol import Posterior

APART = 8  # rounds from one F_s that is kept to the next: a copy costs about as much as a round,
LARGE = 250_000  # and more where it has so many numbers: then so many times as far apart
KEPT = 4  # of these steps during which every one is kept
FEWEST, MOST = 4, 8_000_000  # F_s kept at most: so many, or so many numbers in all

Chain = DriftingPosterior | BankPosterior


@final
class Retraced(Posterior):
    """A drifting posterior whose observations belong to rounds. It takes `entry(arm, round)` for a point.

    Args:
        chain: without observations; taken over.
    """

    OWNED = ("_told", "_marks")

    def __init__(self, chain: Chain) -> None:
        self._start = chain
        self.prior, self.regularization, self.count = chain.prior, chain.regularization, 0
        self._arms = len(chain.prior.variance)
        self.now = 0
        self._told: dict[int, tuple[int, float]] = {}  # arm and target, by round
        self._first = 0  # the first observation that what follows has begun with
        self._round, self._owned = 0, False
        self._live: Chain | None = None  # F_s for the latest s looked at; changed in place where it is owned
        self._marks: list[tuple[int, Chain]] = []  # ascending; what is in it is never changed
        self._apart, self._most = APART * (1 + chain.size // LARGE), max(FEWEST, MOST // chain.size)

    def entry(self, arm: int, round_: int) -> int:
        """The observation of an arm in a round, as one number."""
        return round_ * self._arms + arm

    # -- observations --------------------------------------------------------------------------------------------

    def advance(self, now: int) -> None:
        """Predictions are for this round."""
        if now < self.now:
            raise InvalidInput(f"Round {now} is before round {self.now}: time goes on.")
        self.now = now

    def append(self, point: Any, target: float) -> None:
        """Add the observation of an entry."""
        round_, arm = divmod(int(point), self._arms)
        if round_ in self._told:
            raise InvalidInput(f"Round {round_} has an observation already.")
        self._told[round_] = arm, number("target", target)
        self.count += 1
        self._changed(round_)

    def revise(self, point: Any, old: float, new: float) -> None:  # noqa: ARG002 - a round has one
        """Change the target of an entry."""
        round_, arm = self._known(point)
        self._told[round_] = arm, number("new", new)
        self._changed(round_)

    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Change the targets of several entries: what follows is worked out when it is next asked for."""
        for point, before, after in zip(points, old, new, strict=True):
            self.revise(point, before, after)

    def forget(self, point: Any, target: float) -> None:  # noqa: ARG002 - a round has one
        """Take the observation of an entry back out."""
        round_, _ = self._known(point)
        del self._told[round_]
        self.count -= 1
        self._changed(round_ if round_ > self._first else -1)

    def _known(self, point: Any) -> tuple[int, int]:
        round_, arm = divmod(int(point), self._arms)
        if self._told.get(round_, (None,))[0] != arm:
            raise InvalidInput(f"Arm {arm} has no observation of round {round_} to change or forget.")
        return round_, arm

    def _changed(self, round_: int) -> None:
        if round_ < self._round:
            self._live = None
        while self._marks and self._marks[-1][0] > round_:
            self._marks.pop()

    # -- what is known now ---------------------------------------------------------------------------------------

    @property
    def chain(self) -> Chain:
        """The posterior of this round; not to be changed."""
        if not self._told:
            return self._start
        chain = self._go_back() if self._live is None else self._live
        while self._round < self.now:
            if not self._owned:
                chain, self._owned = chain.copy(), True
            if self._round in self._told:
                chain.append(*self._told[self._round])
            chain.tick()
            self._round += 1
            if self._round % self._apart == 0 and _kept_until(self._round, self._apart) >= self.now:
                self._marks.append((self._round, chain.copy()))
        self._live = chain
        self._marks = [mark for mark in self._marks if _kept_until(mark[0], self._apart) >= self.now][-self._most :]
        return self._learned(chain) if self.now in self._told else chain

    def _go_back(self) -> Chain:
        """To the last F_s that is right; to the first observation, before which f is a sample of the prior."""
        if not self._marks:
            self._first = min(self._told)
        self._round, chain = self._marks[-1] if self._marks else (self._first, self._start)
        self._owned = False
        return chain

    def _learned(self, chain: Chain) -> Chain:
        """With the observation of this very round, before the next one has begun."""
        chain = chain.copy()
        chain.append(*self._told[self.now])
        return chain

    def beside(self, answered: Retraced) -> Chain:
        """What this one says of the variance where `answered` has the mean: draws of f less that mean.

        Rates are shared out as `answered` says: this one knows of questions alone.
        """
        chain, other = self.chain, answered.chain
        if isinstance(chain, BankPosterior) and isinstance(other, BankPosterior):
            return chain.spread_as(other)
        return chain

    def of_questions(self) -> Retraced:
        """A copy in which the targets do not say which rate is likely."""
        other = self.copy()
        if isinstance(self._start, BankPosterior):
            other._start = self._start.copy()
            other._start.weighs = False
        return other

    @property
    def rate(self) -> float:
        """The share of f that is new in each round; of several the most likely one."""
        return self.chain.rate

    @property
    def mean_rate(self) -> float:
        """Likewise; of several their mean."""
        chain = self.chain
        return float(chain.shares @ chain.rates) if isinstance(chain, BankPosterior) else chain.rate

    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Mean and std of f as it is now, at all arms or those listed."""
        return self.chain.predict(points)

    def covariance(self, points: ArmIndices) -> Array:
        """Joint posterior covariance, `(n, n)`."""
        return self.chain.covariance(points)

    def sample(self, rng: np.random.Generator, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Joint samples of f as it is now, `(size, n)`."""
        return self.chain.sample(rng, points, size=size)

    @property
    def mean_norm(self) -> float:
        """||mu||_k, of f as it is now."""
        return self.chain.mean_norm

    @property
    def log_determinant_ratio(self) -> float:
        """Sum of log(1 + sigma^2 / lambda), as the time passed."""
        return self.chain.log_determinant_ratio

    def copy(self) -> Self:
        """Returns an independent posterior in the same state, which shares the posteriors of earlier rounds."""
        self._owned = False  # The live posterior is shared, too, until one of the two replaces it.
        return super().copy()


def _kept_until(round_: int, apart: int) -> int:
    """The round up to which F_s is kept: KEPT * 2^k on, 2^k the largest power that divides s, all in steps."""
    step = round_ // apart
    return apart * (step + KEPT * (step & -step))
