"""Common part of the two exact posteriors on arms, and joint draws of f at many arms.

Both posteriors keep mean and variance of every arm and change them by rank-one updates. They differ in the factor that
yields the posterior covariance between one arm and all others. With g = cov(., a), s^2 = g_a, one observation y at arm
a does

    mu += g (y - mu_a) / (lambda + s^2),    sigma^2 -= g^2 / (lambda + s^2),    log det += log(1 + s^2 / lambda).

n observations of one arm together have the effect of one observation of their average, with lambda / n for lambda. An
observation of weight w, whose noise variance is lambda / w, has the effect of w observations. At
fixed intervals everything is computed again from the sums of each arm, so that rounding errors do not add up. A
batch of observations therefore needs only the sums up to its last such recomputation.

`Span` has the joint draws of f at many arms, exact at each arm.

A joint draw at N arms wants a root of their kernel matrix: N^3 operations and N^2 numbers. Here the prior is split,

| symbol | name | meaning | shape |
|---|---|---|---|
| Phi | `Span.features` | features in the span of r pivots and of the u arms played | (N, r + u) |
| E | `Span.left_out` | prior variance outside of the span, k(x, x) - |phi(x)|^2 | (N,) |
| U, M, G | | arms played, K(U, U) + lambda diag(1 / n), K(., U), as in `distinct_arms` | |

    f(x) = phi(x)^T w + e(x),    w ~ N(0, I),    e(x) ~ N(0, E_x), independent of all others.

The arms played are pivots, so e is 0 there and phi(x)^T phi(a) = k(x, a) for every arm x and every arm a played. Hence
the posterior of this prior has the mean of the exact posterior, G M^{-1} ybar, and its covariance is

    Phi Phi^T + diag(E) - G M^{-1} G^T = K - G M^{-1} G^T - (off-diagonal entries of the residual matrix).

Mean and variance of every draw at every arm are the exact ones, whatever the pivots. What is lost is the correlation of
the residuals of arms never played, at most sqrt(E_x E_x') between two. If all these correlations are positive, the
maximum of a draw is stochastically larger without them (Slepian's inequality).

An arm played whose residual variance is below `SPANNED` counts as spanned, since dividing by less would amplify
rounding. This neglects covariances of at most sqrt(`SPANNED`) of the prior variance, where arms nearly coincide.

The proof for GP-TS (Chowdhury & Gopalan 2017, Theorem 4) uses of a draw only its distribution at single arms. At the
best arm a draw exceeds f with at least a constant probability (Lemma 8). No draw is far from the mean at any arm, by a
union over the arms (Lemma 5). Lemmas 9 and 10 follow from these events for every f that is drawn. All hold as they
stand, so the theorem does.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, final

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import daxpy

from .._utils.checks import Array, IndexArray, finite_array, integer, number, shown
from .._utils.randomness import Rng
from ..errors import InvalidInput
from ..kernels import ALL, Kernel
from ..kernels.factorization import MANY, covariance_root, factor_of_sample, features_of_pivots, normals
from .protocol import CountingPosterior, check_regularization
from .spectrum import Spectrum

MOST_JOINT = 4096  # arms whose joint covariance is factored: a second of arithmetic, and some 400 MB
PIVOTS = 192  # largest number of pivots besides the arms played
ENOUGH = 1e-6  # share of the largest prior variance below which no pivot is added
SPANNED = 1e-12  # the same for an arm played, whose residual counts as 0 below it
BLOCK = 8  # arms played whose features are computed together, in a third of the time
ROOM = 256  # columns for which memory is set aside at a time, which none of them takes before it is filled


class _Columns:
    """Columns of features, which the spans of several posteriors share as far as they agree.

    Attributes:
        room: `(N, most)`, column-major.
        pivots: whose column each is. Those of the prior are first.
    """

    def __init__(self, room: Array, pivots: list[int]) -> None:
        self.room, self.pivots = room, pivots

    def put(self, columns: Array, pivots: list[int]) -> None:
        """Adds columns."""
        size = len(self.pivots)
        if size + len(pivots) > self.room.shape[1]:
            self.room = _widened(self.room[:, :size])
        self.room[:, size : size + len(pivots)] = columns
        self.pivots += pivots


def _widened(known: Array) -> Array:
    room = np.empty((len(known), known.shape[1] + ROOM), order="F")
    room[:, : known.shape[1]] = known
    return room


class Span(NamedTuple):
    """Features of all arms, and what they leave out.

    Arms played enter in blocks of `BLOCK`, and those after the last full block one by one. When their block is full it
    replaces them. So how a span rounds depends on the order of the arms, and not on when it was asked for.

    Attributes:
        columns: features of the prior's pivots and of full blocks. Those of longer spans may follow.
        size: number of these features.
        left_out: E, `(N,)`.
        played: arms that were added to the pivots, in order.
        negligible: variance below which a residual counts as 0.
        last: features of the arms after the last full block, each `(N,)`.
        full: the span of the full blocks alone, if arms follow them.
    """

    columns: _Columns
    size: int
    left_out: Array
    played: tuple[int, ...]
    negligible: float
    last: tuple[Array, ...] = ()
    full: Span | None = None

    def rows(self, arms: IndexArray) -> Array:
        """Returns the features of some arms, `(n, r + u)`."""
        return np.column_stack([self.columns.room[arms, : self.size], *(column[arms] for column in self.last)])

    def following(self, kernel: Kernel, points: Array, arms: list[int]) -> Span:
        """Returns the span of the prior's pivots and these arms, of which this span may have the first.

        O(N (r + u)) for each arm that is new.
        """
        span, count = self, len(arms)
        while len(span.played) < count:
            full = span.full or span
            begun = len(full.played)
            if begun + BLOCK <= count:
                span = full._with_block(kernel, points, arms[begun : begun + BLOCK])
            else:
                span = span._with_arm(kernel, points, arms[len(span.played)])
        return span

    def _with_block(self, kernel: Kernel, points: Array, arms: list[int]) -> Span:
        columns, size, block = self.columns, self.size, np.array(arms)
        rows = columns.room[block, :size]
        within = kernel.between_arms(points, block, block) - rows @ rows.T
        kept, root = _independent(within, self.negligible)
        new = block[kept].tolist()
        if columns.pivots[size : size + len(new)] != new:
            k = kernel.between_arms(points, ALL, block[kept])
            residual = k - columns.room[:, :size] @ rows[kept].T
            if len(columns.pivots) > size:  # Another posterior went on with other arms.
                columns = _Columns(_widened(columns.room[:, :size]), columns.pivots[:size])
            columns.put(solve_triangular(root, residual.T, lower=True).T, new)
        added = columns.room[:, size : size + len(new)]
        left_out = np.maximum(self.left_out - np.einsum("ij,ij->i", added, added), 0.0)
        left_out[block] = 0.0
        return Span(columns, size + len(new), left_out, (*self.played, *arms), self.negligible)

    def _with_arm(self, kernel: Kernel, points: Array, arm: int) -> Span:
        left, last, full, played = float(self.left_out[arm]), self.last, self.full or self, (*self.played, arm)
        if left <= self.negligible:
            return self._replace(played=played, full=full)
        column = kernel.between_arms(points, ALL, np.array([arm]))[:, 0]
        column = column - self.columns.room[:, : self.size] @ self.columns.room[arm, : self.size]
        for other in last:
            column -= other * other[arm]
        column /= np.sqrt(left)
        left_out = np.maximum(self.left_out - column**2, 0.0)
        left_out[arm] = 0.0
        return self._replace(left_out=left_out, played=played, last=(*last, column), full=full)

    def deviations(
        self, rng: Rng, arms: IndexArray, root: Array, noise: Array, points: IndexArray | None, size: int
    ) -> Array:
        """Returns joint draws of f - mu at all arms, or at those listed, `(size, n)`. O(N (r + u)) each.

        Args:
            rng: random numbers.
            arms: U, all of which are among the pivots, `(u,)`.
            root: F with F^T F = M^{-1}, `(u, u)`.
            noise: sqrt(lambda / n) of these arms, `(u,)`.
            points: arms asked for.
            size: number of draws.
        """
        seen, some = self.rows(arms), slice(None) if points is None else points
        weights = normals(rng, size, seen.shape[1])
        gap = weights @ seen.T + rng.standard_normal((size, len(arms))) * noise
        weights = weights - (gap @ root.T @ root) @ seen  # Matheron's rule
        drawn = rng.standard_normal((size, len(self.left_out[some]))) * np.sqrt(self.left_out[some])
        features = self.columns.room[some, : self.size]
        for draw, each in zip(drawn, weights, strict=True):
            draw += features @ each[: self.size]
            for column, weight in zip(self.last, each[self.size :], strict=True):
                draw += weight * column[some]
        return drawn


def _independent(matrix: Array, negligible: float) -> tuple[list[int], Array]:
    """Returns the places of rows with a residual variance, and the Cholesky factor of these rows."""
    kept: list[int] = []
    factor = np.zeros_like(matrix)
    for place in range(len(matrix)):
        left = matrix[place, place] - factor[place] @ factor[place]
        if left > negligible:
            column = len(kept)
            rest = slice(place, None)
            factor[rest, column] = (matrix[rest, place] - factor[rest] @ factor[place]) / np.sqrt(left)
            kept.append(place)
    return kept, factor[kept, : len(kept)]


def span_of_prior(kernel: Kernel, points: Array, variance: Array) -> Span:
    """Returns features in the span of pivots chosen in a sample of the arms.

    Args:
        kernel: prior covariance.
        points: of all arms, `(N, d)`.
        variance: prior variances, `(N,)`.
    """
    size = float(variance.max())
    sample = factor_of_sample(kernel, points, tol=ENOUGH * size, max_rank=PIVOTS)
    rank = len(sample.pivots)
    room = features_of_pivots(kernel, points, sample, room=rank + ROOM)
    features = room[:, :rank]
    left_out = np.maximum(variance - np.einsum("ij,ij->i", features, features), 0.0)
    left_out[sample.pivots] = 0.0
    return Span(_Columns(room, sample.pivots.tolist()), rank, left_out, (), SPANNED * size)


RECOMPUTE_EVERY = 256  # updates between two computations of everything from the sums, at least

TOGETHER = 64  # kernel columns computed at once, which bounds the memory

LITTLE_SLACK = 0.01  # (lambda - s^2) / lambda below which forgetting an observation renews the factor

ArmIndices = Sequence[int] | IndexArray


class Prior:
    """The kernel over the arms, which never changes and is shared between copies of a posterior.

    Attributes:
        kernel: prior covariance.
        points: of the arms, `(N, d)`.
        variance: prior variance of every arm, `(N,)`.
        size: largest prior standard deviation.
    """

    def __init__(self, kernel: Kernel, points: Array) -> None:
        self.kernel = kernel
        self.points = points
        self.variance = kernel.arm_variances(points)
        self.size = math.sqrt(float(self.variance.max()))
        self._root: Array | None = None
        self._span: Span | None = None

    def columns(self, arms: ArmIndices) -> Array:
        """Returns the kernel columns of some arms, `(N, n)`."""
        return self.kernel.between_arms(self.points, ALL, np.asarray(arms, dtype=np.intp))

    def root(self) -> Array:
        """Returns R with R R^T the kernel matrix of all arms.

        R is made on first use, for joint samples only, and takes O(N^2) memory.
        """
        if self._root is None:
            self._root = covariance_root(self.columns(range(len(self.points))))
        return self._root

    def span(self) -> Span:
        """Returns features for joint samples of many arms, made on first use (see `Span`)."""
        if self._span is None:
            self._span = span_of_prior(self.kernel, self.points, self.variance)
        return self._span


def renewal(rank: int) -> int:
    """Returns the number of updates after which everything is computed again, for a factor of this rank."""
    return max(RECOMPUTE_EVERY, 2 * rank)


def revise_sums(
    arms: IndexArray, old: Sequence[float], new: Sequence[float], plays: Array | IndexArray, average: Array,
    scatter: Array,
) -> Array:  # fmt: skip
    """Applies changes of targets to the averages and scatters of the arms.

    Args:
        arms: arm of each change, `(n,)`, where arms may repeat.
        old: target before, `(n,)`.
        new: target after, `(n,)`.
        plays: number of observations of every arm by their weights, `(N,)`.
        average: average target of every arm, `(N,)`, changed in place.
        scatter: sum of squared deviations from the average, `(N,)`, changed in place.

    Returns:
        The change of each average, `(N,)`.
    """
    before, after, count = finite_array("old", old), finite_array("new", new), len(plays)
    if not plays[arms].all():
        raise InvalidInput(f"Arm {int(arms[plays[arms] == 0][0])} has no observation to change.")
    about = average[arms]
    squares = np.bincount(arms, weights=(after - about) ** 2 - (before - about) ** 2, minlength=count)
    changes = np.bincount(arms, weights=after - before, minlength=count)
    moved = np.divide(changes, plays, out=np.zeros(count), where=plays > 0)
    average += moved
    scatter += squares - plays * moved**2
    return moved


class Column(NamedTuple):
    """Posterior covariance of one arm with all arms, before an update.

    Attributes:
        covariance: g, `(N,)`.
        variance: s^2 = g_a.
        slack: lambda / n - s^2 if n observations are removed, without cancellation where the posterior can avoid
            it.
    """

    covariance: Array
    variance: float
    slack: float


class ArmPosterior(CountingPosterior):
    """A posterior over finitely many arms. Points are arm indices."""

    OWNED: ClassVar[tuple[str, ...]] = ("plays", "_told", "_average", "_scatter", "_mean", "_variance")

    def __init__(self, prior: Prior, regularization: float) -> None:
        arms = len(prior.points)
        self.prior = prior
        self.regularization = number(
            "regularization",
            regularization,
            low=0.0,
            open_low=True,
            why="It is the noise variance added to the kernel matrix; for rewards without noise use a small "
            "one, such as 1e-6 of the prior variance.",
        )
        check_regularization(self.regularization, float(prior.variance.max()))
        self.count = 0
        self.plays = np.zeros(arms)  # observations of each arm by their weights
        self._told = np.zeros(arms, dtype=np.int64)  # observations of each arm, whatever their weights
        self._average = np.zeros(arms)  # of each arm's targets
        self._scatter = np.zeros(arms)  # sum of squared deviations from that average
        self._mean = np.zeros(arms)
        self._variance = prior.variance.copy()
        self._log_ratio = 0.0
        self._updates = 0
        self._spectrum: Spectrum | None = None  # cached until an observation changes

    # -- the factor, by each subclass --------------------------------------------------------------------------------

    @property
    @abstractmethod
    def rank(self) -> int:
        """Size of the factor. A round costs O(N rank + rank^2)."""

    @property
    @abstractmethod
    def grows(self) -> bool:
        """True if the first play of each arm adds to the rank."""

    @abstractmethod
    def _enter(self, arms: list[int]) -> None:
        """Makes room for arms that are about to be played for the first time, before a new factorisation."""

    @abstractmethod
    def _add(self, arm: int, count: float) -> tuple[Array, float]:
        """Adds observations of `arm`, counted by weight, to the factor and returns g `(N,)` and s^2 from before."""

    @abstractmethod
    def _remove(self, arm: int, count: float, *, last: bool) -> Column:
        """Removes observations of `arm`, which has as many, and returns the column from before.

        Args:
            arm: its index.
            count: number of observations by their weights.
            last: whether none are left.
        """

    @abstractmethod
    def _column(self, arm: int) -> Column:
        """Returns the posterior covariance of a played arm with all arms."""

    @abstractmethod
    def _refactor(self) -> float:
        """Computes the factor from the plays and returns log det(I + K / lambda)."""

    @abstractmethod
    def _follow(self, steps: Array) -> Array:
        """Returns the covariance of all arms with the played arms, times `steps` `(N,)`.

        `steps` is 0 at arms that were not played. The result is the coming change of the mean, and internal weights of
        the mean change here.
        """

    @abstractmethod
    def _move_mean(self, step: float) -> None:
        """Applies `mean += step * g` for the last column to internal weights of the mean."""

    @abstractmethod
    def _recompute(self) -> tuple[Array, Array]:
        """Returns mean and variance of every arm, computed from the factor and the averages of the arms."""

    @abstractmethod
    def _diagonalised(self) -> Spectrum:
        """Returns the spectrum of the observations, for other regularizations."""

    # -- observations --------------------------------------------------------------------------------------------

    @final
    def append(self, point: int, target: float, *, weight: float = 1.0, count: int = 1, scatter: float = 0.0) -> None:
        """Adds `count` observations of arm `point` with this average and scatter. O(N rank + rank^2)."""
        arm = point if type(point) is int and 0 <= point < len(self.plays) else self._arm(point)
        if type(target) is not float or not math.isfinite(target):
            target = number("target", target)
        worth = count * weight
        noise = self.regularization / worth
        g, variance = self._add(arm, worth)
        total = noise + variance
        self._step(g, (target - self._mean.item(arm)) / total, -1.0 / total)
        self._log_ratio += math.log1p(variance / noise)
        self._sum_up(arm, target, count, worth, weight * scatter)
        self._spectrum = None
        self._updates += 1
        if self._updates >= RECOMPUTE_EVERY:  # A call less in most rounds.
            self._renew_if_due()

    @final
    def append_all(self, points: Sequence[int], targets: Sequence[float]) -> None:
        """Adds several observations.

        Observations before the last recomputation change only the sums.
        """
        arms, updates, new, last = [self._arm(point) for point in points], self._updates, set(), 0
        for i, arm in enumerate(arms, start=1):
            updates += 1
            if self.grows and not self.plays[arm]:
                new.add(arm)
            if updates >= renewal(self.rank + len(new)):
                last, updates = i, 0
        for arm, target in zip(arms[:last], targets[:last], strict=True):
            if not self.plays.item(arm):
                self._enter([arm])
            self._sum_up(arm, number("target", target), 1, 1.0, 0.0)
        if last:
            self._renew()
        for arm, target in zip(arms[last:], targets[last:], strict=True):
            self.append(arm, target)

    @final
    def begin_with(self, points: Sequence[int], targets: Sequence[float]) -> None:
        """Adds the first observations. On more than `MANY` arms all is computed once, from their sums."""
        if len(self.plays) <= MANY:
            self.append_all(points, targets)
            return
        arms = [self._arm(point) for point in points]
        new = list(dict.fromkeys(arm for arm in arms if not self.plays.item(arm)))
        for start in range(0, len(new), TOGETHER):
            self._enter(new[start : start + TOGETHER])
        for arm, target in zip(arms, targets, strict=True):
            self._sum_up(arm, number("target", target), 1, 1.0, 0.0)
        self._renew()

    @final
    def _sum_up(self, arm: int, target: float, count: int, worth: float, scatter: float) -> None:
        self.count += count
        # Arithmetic on numpy's scalars would cost as much as the update of the posterior.
        self._told[arm] = self._told.item(arm) + count
        plays, average, before = self.plays.item(arm) + worth, self._average.item(arm), self._scatter.item(arm)
        change = target - average
        average += change * worth / plays
        self.plays[arm], self._average[arm] = plays, average
        self._scatter[arm] = before + (change * (target - average) * worth + scatter)

    @final
    def revise(self, point: int, old: float, new: float) -> None:
        """Replaces the target of one observation of arm `point` from `old` to `new`. O(N rank + rank^2)."""
        arm, old, new = self._played(point), number("old", old), number("new", new)
        self._step(self._column(arm).covariance, (new - old) / self.regularization, 0.0)
        before = self._average[arm]
        self._average[arm] += (new - old) / self.plays[arm]
        self._scatter[arm] += (new - old) * ((new - self._average[arm]) + (old - before))
        self._updated()

    @final
    def revise_all(self, points: ArmIndices, old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the targets of several observations at once. O(N rank + rank^2), and O(1) for each."""
        moved = revise_sums(self._indices(points), old, new, self.plays, self._average, self._scatter)
        self._mean += self._follow(moved * self.plays / self.regularization)
        self._updated()

    @final
    def forget(self, point: int, target: float, *, weight: float = 1.0, count: int = 1, scatter: float = 0.0) -> None:
        """Removes `count` observations of arm `point` with this average. O(N rank + rank^2)."""
        arm, target = self._played(point, count), number("target", target)
        worth, told = count * weight, self._told.item(arm) - count
        noise = self.regularization / worth
        column = self._remove(arm, worth, last=told == 0)
        self.count -= count
        self._told[arm] = told
        left, change = self.plays.item(arm) - worth if told else 0.0, target - self._average[arm]
        self.plays[arm] = left
        self._average[arm] = 0.0 if told == 0 else self._average[arm] - change * worth / left
        scatter *= weight
        self._scatter[arm] = (
            0.0 if told <= 1 else self._scatter[arm] - change * (target - self._average[arm]) * worth - scatter
        )
        if column.slack < LITTLE_SLACK * noise:
            # The observation was nearly all the information on its arm, so subtraction would cancel what is left.
            self._renew()
            return
        self._step(column.covariance, -(target - float(self._mean[arm])) / column.slack, 1.0 / column.slack)
        self._log_ratio -= math.log(noise / column.slack)
        self._updated()

    def _step(self, g: Array, mean_step: float, variance_step: float) -> None:
        self._move_mean(mean_step)
        daxpy(g, self._mean, len(g), mean_step)  # mean += mean_step * g, in place
        if variance_step:
            daxpy(g * g, self._variance, len(g), variance_step)

    def _updated(self) -> None:
        self._spectrum = None
        self._updates += 1
        self._renew_if_due()

    def _renew_if_due(self) -> None:
        if self._updates >= self.renewed_after:  # At least `RECOMPUTE_EVERY`.
            self._renew()

    @property
    def renewed_after(self) -> int:
        """Updates after which everything is computed again, for the present rank."""
        return renewal(self.rank)

    def _renew(self) -> None:
        """Computes everything from the sums."""
        self._updates, self._spectrum = 0, None
        self._log_ratio = self._refactor()
        self._mean, self._variance = self._recompute()

    @final
    def _indices(self, points: ArmIndices) -> IndexArray:
        arms = np.asarray(points)
        if arms.size and (arms.dtype.kind not in "iu" or arms.min() < 0 or arms.max() >= len(self.plays)):
            raise InvalidInput(
                f"A posterior on arms takes arm indices, here 0 .. {len(self.plays) - 1}, not {shown(points)}."
            )
        return arms.astype(np.intp)

    def _arm(self, point: int) -> int:
        if type(point) is int and 0 <= point < len(self.plays):
            return point
        arm = integer("point", point, low=0, why="A posterior on arms takes arm indices.")
        if arm >= len(self.plays):
            raise InvalidInput(f"There is no arm {arm}: the domain has arms 0 .. {len(self.plays) - 1}.")
        return arm

    def _played(self, point: int, count: int = 1) -> int:
        arm = self._arm(point)
        if self._told[arm] < count:
            many = "no observation" if count == 1 else f"fewer than {count} observations"
            raise InvalidInput(f"Arm {arm} has {many} to change or forget.")
        return arm

    # -- predictions ---------------------------------------------------------------------------------------------

    @final
    def predict(self, points: ArmIndices | None = None) -> tuple[Array, Array]:
        """Returns posterior mean and std of f at all arms, or at those listed, as fresh arrays `(n,)`."""
        if points is None:
            mean, std = self.moments()
            return mean.copy(), std
        arms = self._indices(points)
        return self._mean[arms], np.sqrt(np.maximum(self._variance[arms], 0.0))

    @final
    def moments(self) -> tuple[Array, Array]:
        """Returns posterior mean and std of f at all arms, `(n,)`. The mean may be read, and not be changed."""
        variance = self._variance
        if variance.size and not variance.item(variance.argmin()) > 0.0:
            variance = np.maximum(variance, 0.0)  # Rounding may leave -1e-17 where nothing is uncertain.
        return self._mean, np.sqrt(variance)

    @final
    def spectrum(self) -> Spectrum:
        """Returns the diagonalised observations. O(N r^2) once after each change."""
        if self._spectrum is None:
            self._spectrum = self._diagonalised()
        return self._spectrum

    @final
    @property
    def log_determinant_ratio(self) -> float:
        """Log det(I + K / lambda), a running sum (Srinivas et al. 2010, Lemma 5.3)."""
        return self._log_ratio

    @final
    @property
    def scatter_within_arms(self) -> float:
        """Sum over arms of squared deviations of the targets from their average."""
        return float(np.maximum(self._scatter, 0.0).sum())
