"""Posteriors on arms of a drifting function, by exact forgetting at a cost independent of the number of rounds.

`DriftingPosterior` forgets at one rate.

| symbol | name | meaning | shape |
|---|---|---|---|
| Phi | `_features` | row x is phi(x), k = phi^T phi to the tolerance of `factorization` | (N, r) |
| S, m | `_covariance`, `_weights` | posterior of the weights w_t, f_t = Phi w_t | (r, r), (r,) |
| eps | `rate` | share of f that is new in each round | scalar |

Bogunovic, Scarlett & Cevher 2016, eq. 3: f_{t+1} = sqrt(1 - eps) f_t + sqrt(eps) g_{t+1}, hence exactly

    S <- (1 - eps) S + eps I,    m <- sqrt(1 - eps) m,    sigma^2 <- (1 - eps) sigma^2 + eps k(x, x).

Each tick shrinks rounding errors of earlier rounds, so nothing need be recomputed.

`BankPosterior` is a mixture of such posteriors, one for each of several rates of drift.

| symbol | name | meaning | shape |
|---|---|---|---|
| eps_j | `rates` | shares of f that may be new in each round, ascending | (J,) |
| Phi | `_features` | row x is phi(x), k = phi^T phi to `TOLERANCE` lambda | (N, r) |
| S_j, m_j | `_covariances`, `_weights` | posterior of the weights of f at rate eps_j | (J, r, r), (J, r) |
| w_j | `_log_shares` (logs) | share of a rate, by its predictions, lately above all | (J,) |
| a | `SHARED` | share that is spread over all rates after each reward | |

Under some theorems lambda is not the variance of the noise. Then a second set of posteriors with the variance of the
noise determines w_j, and those of lambda determine everything else. So J is twice as large in some of the shapes.

Every rate predicts each reward before it learns the reward, with density p_j. The
density is Student-t, with the scale learned as in `theory.change.evidence`, where the given scale counts as `PRIOR`
rewards.
Then

    w_j <- (1 - a) w_j p_j / sum_i w_i p_i + a / J    (fixed share, Herbster & Warmuth 1998).

The predictions have the mean and the covariance of the mixture of all rates. This is Bayesian change-point detection
(Adams & MacKay 2007) with rates of forgetting in place of run lengths. The rate with the largest share alone would do
as well in most runs. In some runs it assumes for long that nothing changes where it has not looked.

`OutOfSequencePosterior` is one of these, whose observations may be added late, changed or removed.

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

import math
from collections.abc import Sequence
from typing import Any, Self, final

import numpy as np
from scipy.linalg.blas import dger

from .._utils.checks import Array, number
from .._utils.copying import independent
from .._utils.randomness import Rng
from ..domains.domain import Arms
from ..errors import InvalidInput
from ..kernels import Kernel
from ..kernels.factorization import covariance_root, draws_of_root, pivoted_cholesky, tolerance
from .arms import ArmIndices, Prior
from .protocol import Posterior


def draws_of_weights(mean: Array, covariance: Array, rng: Rng, size: int) -> Array:
    """Returns draws from N(mean, covariance), `(size, r)`."""
    root = covariance_root(0.5 * (covariance + covariance.T))
    return np.asarray(mean + draws_of_root(root, rng, size))


@final
class DriftingPosterior(Posterior):
    """A posterior whose observations fade as rounds pass (`tick`), so single ones cannot be removed."""

    OWNED = ("plays", "_covariance", "_weights", "_mean", "_variance")

    def __init__(self, domain: Arms, kernel: Kernel, regularization: float, *, rate: float) -> None:
        self.prior = Prior(kernel, domain.points)
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.rate = number("rate", rate, low=0.0, high=1.0)
        tol = tolerance(self.prior.variance, self.regularization)
        factor = pivoted_cholesky(kernel, domain.points, tol=tol, max_rank=len(domain))
        self._features = factor.features
        self.count = 0
        self.plays = np.zeros(len(domain), dtype=np.int64)
        self._covariance = np.eye(self._features.shape[1], order="F")
        self._weights = np.zeros(self._features.shape[1])
        self._mean = np.zeros(len(domain))
        self._variance = self.prior.variance.copy()
        self._log_ratio = 0.0

    @property
    def size(self) -> int:
        """Number of floats that a copy holds."""
        return self._covariance.size + 2 * len(self._mean)

    def tick(self) -> None:
        """Advances by one round. O(N + r^2)."""
        keep = 1.0 - self.rate
        self._covariance *= keep
        self._covariance.reshape(-1, order="F")[:: len(self._weights) + 1] += self.rate  # the diagonal
        self._weights *= math.sqrt(keep)
        self._mean *= math.sqrt(keep)
        self._variance *= keep
        self._variance += self.rate * self.prior.variance

    def append(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Adds one observation of the present f. O(N r + r^2)."""
        arm, target = int(point), number("target", target)
        phi = self._features[arm]
        direction = self._covariance @ phi
        variance = max(float(phi @ direction), 0.0)
        noise = self.regularization / weight
        total = noise + variance
        g = self._features @ direction
        step = (target - float(self._mean[arm])) / total
        self._weights += step * direction
        self._mean += step * g
        self._variance -= g * g / total
        if len(phi):
            self._covariance = dger(-1.0 / total, direction, direction, a=self._covariance, overwrite_a=1)
        self._log_ratio += math.log1p(variance / noise)
        self.count += 1
        self.plays[arm] += 1

    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Returns mean and std of the present f, at all arms or those listed."""
        arms: Any = slice(None) if points is None else points
        return self._mean[arms].copy(), np.sqrt(np.maximum(self._variance[arms], 0.0))

    def covariance(self, points: ArmIndices) -> Array:
        """Returns the joint posterior covariance, `(n, n)`."""
        rows = self._features[np.asarray(points)]
        return np.asarray(rows @ self._covariance @ rows.T)

    def sample(self, rng: Rng, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint samples of the present f, `(size, n)`."""
        rows = self._features if points is None else self._features[np.asarray(points)]
        return draws_of_weights(self._weights, self._covariance, rng, size) @ rows.T

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k of the present f."""
        return float(np.linalg.norm(self._weights))

    @property
    def log_determinant_ratio(self) -> float:
        """Sum of log(1 + sigma^2 / lambda) over time, twice the time-varying gain of Bogunovic et al."""
        return self._log_ratio


SHARED = 1e-3
PRIOR = 10.0  # rewards that the given scale counts as
TOLERANCE = 1e-3  # of lambda: prior variance that features may leave out
RECOMPUTE_EVERY = 256  # rewards between two recomputations of means and variances from the factors
FARTHEST = 1e100  # largest standardised error, so that squares do not overflow


@final
class BankPosterior(Posterior):
    """The mixture of posteriors at several rates. Observations fade as rounds pass (`tick`)."""

    OWNED = ("plays", "_covariances", "_weights", "_means", "_variances", "_log_ratios", "_log_shares", "_squares")

    def __init__(
        self,
        domain: Arms,
        kernel: Kernel,
        regularization: float,
        *,
        rates: Sequence[float],
        noise_variance: float | None = None,
    ) -> None:
        self.prior = Prior(kernel, domain.points)
        self.regularization = number("regularization", regularization, low=0.0, open_low=True)
        self.rates = tuple(number("rates", rate, low=0.0, high=1.0) for rate in rates)
        many = len(self.rates)
        variances = [self.regularization]
        if noise_variance is not None:
            variances.append(number("noise_variance", noise_variance, low=0.0, open_low=True))
        self._ridges = np.repeat(variances, many)
        self._rates = np.tile(self.rates, len(variances))
        least = min(variances)
        tol = max(tolerance(self.prior.variance, least), TOLERANCE * least)
        self._features = pivoted_cholesky(kernel, domain.points, tol=tol, max_rank=len(domain)).features
        both, arms, rank = len(self._rates), len(domain), self._features.shape[1]
        self.count = 0
        self.weighs = True  # whether rewards change the shares of the rates
        self.plays = np.zeros(arms, dtype=np.int64)
        self._covariances = np.tile(np.eye(rank), (both, 1, 1))
        self._weights = np.zeros((both, rank))
        self._means = np.zeros((both, arms))
        self._variances = np.tile(self.prior.variance, (both, 1))
        self._log_ratios = np.zeros(many)
        self._log_shares = np.full(many, -math.log(many))
        self._squares = np.zeros(many)

    @property
    def rate(self) -> float:
        """Rate with the largest share."""
        return self.rates[int(self._log_shares.argmax())]

    @property
    def shares(self) -> Array:
        """Shares of the rates, `(J,)`, adding up to 1."""
        return np.asarray(np.exp(self._log_shares))

    @property
    def size(self) -> int:
        """Number of floats that a copy holds."""
        return self._covariances.size + 2 * self._means.size

    def tick(self) -> None:
        """Advances by one round. O(J (N + r^2))."""
        keep, rates = 1.0 - self._rates, self._rates
        self._covariances *= keep[:, None, None]
        diagonal = np.arange(self._weights.shape[1])
        self._covariances[:, diagonal, diagonal] += rates[:, None]
        self._weights *= np.sqrt(keep)[:, None]
        self._means *= np.sqrt(keep)[:, None]
        self._variances *= keep[:, None]
        self._variances += rates[:, None] * self.prior.variance

    def append(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Adds one observation of the present f. O(J (N r + r^2))."""
        arm, target = int(point), number("target", target)
        phi = self._features[arm]
        directions = self._covariances @ phi  # (J, r)
        variances = np.maximum(self._variances[:, arm], 0.0)
        totals = self._ridges / weight + variances
        errors = target - self._means[:, arm]
        if self.weighs:
            self._weigh(errors[-len(self.rates) :], totals[-len(self.rates) :])
        scaled = directions / totals[:, None]
        g = directions @ self._features.T  # (J, N)
        self._weights += errors[:, None] * scaled
        self._means += (errors / totals)[:, None] * g
        self._variances -= g * g / totals[:, None]
        self._covariances -= scaled[:, :, None] * directions[:, None, :]
        self._log_ratios += np.log1p(variances[: len(self.rates)] / (self.regularization / weight))
        self.count += 1
        self.plays[arm] += 1
        if self.count % RECOMPUTE_EVERY == 0:
            self._recompute()

    def _weigh(self, errors: Array, totals: Array) -> None:
        """Updates the shares after a reward that was predicted with these errors and variances."""
        squares = np.clip(errors / np.sqrt(totals), -FARTHEST, FARTHEST) ** 2
        half = 0.5 * (PRIOR + self.count + 1.0)
        scatter = PRIOR + self._squares
        log = self._log_shares - 0.5 * np.log(totals * scatter) - half * np.log1p(squares / scatter)
        shares = np.exp(log - log.max())
        shares /= shares.sum()
        self._log_shares = np.log((1.0 - SHARED) * shares + SHARED / len(shares))
        self._squares += squares

    def _recompute(self) -> None:
        rows = self._features
        self._covariances = 0.5 * (self._covariances + self._covariances.transpose(0, 2, 1))
        self._means = self._weights @ rows.T
        left_out = self.prior.variance - np.einsum("nr,nr->n", rows, rows)
        for j, covariance in enumerate(self._covariances):
            self._variances[j] = left_out + np.einsum("nr,nr->n", rows @ covariance, rows)

    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Returns mean and std of the present f, at all arms or those listed."""
        arms: Any = slice(None) if points is None else points
        shares, means = self.shares, self._means[: len(self.rates), arms]
        mean = shares @ means
        variance = shares @ (np.maximum(self._variances[: len(self.rates), arms], 0.0) + (means - mean) ** 2)
        return mean, np.sqrt(variance)

    def covariance(self, points: ArmIndices) -> Array:
        """Returns the joint posterior covariance, `(n, n)`."""
        rows = self._features[np.asarray(points)]
        return np.asarray(rows @ self._mixed()[1] @ rows.T)

    def sample(self, rng: Rng, points: ArmIndices | None = None, *, size: int = 1) -> Array:
        """Returns joint normal samples of the present f with mean and covariance of the mixture, `(size, n)`."""
        rows = self._features if points is None else self._features[np.asarray(points)]
        return draws_of_weights(*self._mixed(), rng, size) @ rows.T

    def deviations_from(self, believed: BankPosterior) -> BankPosterior:
        """Returns the posterior of f less the mean of another posterior.

        Shares and means are those of the other posterior, and variances are those of this one.

        Args:
            believed: the other posterior.
        """
        shares, many = believed.shares, len(self.rates)
        means = believed._means - shares @ believed._means[:many]
        weights = believed._weights - shares @ believed._weights[:many]
        return independent(self, fresh={"_log_shares": believed._log_shares, "_means": means, "_weights": weights})

    def _mixed(self) -> tuple[Array, Array]:
        """Returns mean and covariance of the weights over all rates, `(r,)` and `(r, r)`."""
        shares, weights = self.shares, self._weights[: len(self.rates)]
        mean = shares @ weights
        apart = weights - mean
        within = np.tensordot(shares, self._covariances[: len(shares)], axes=1)
        return mean, within + (shares[:, None] * apart).T @ apart

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu||_k of the present f."""
        return float(np.linalg.norm(self.shares @ self._weights[: len(self.rates)]))

    @property
    def log_determinant_ratio(self) -> float:
        """Sum of log(1 + sigma^2 / lambda) over time, averaged over the rates by their shares."""
        return float(self.shares @ self._log_ratios)


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

    def sample(self, rng: Rng, points: ArmIndices | None = None, *, size: int = 1) -> Array:
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
