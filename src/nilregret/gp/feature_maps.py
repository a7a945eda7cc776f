"""Features of points: those of a kernel of finite rank, or of inducing points (Nystrom).

Features may belong to blocks, such as one block for each arm. Features of different blocks are orthogonal.

| symbol | name | meaning | shape |
|---|---|---|---|
| z(x) | `features` | coordinates of k(x, .) in an orthonormal basis of the span | (n, r) |
| S | `NystromFeatures.points` | inducing points | (r, d) |
| L | | K(S, S) = L L^T | (r, r) |
| k - z^T z | `left_out` | prior variance outside the span | (n,) |

Inducing points have z(x) = L^{-1} k(S, x), the projection on the span of k(s, .), s in S (Nystrom).

`draw_sketch` draws inducing points by their posterior variance: the sketch of BKB, with bounds of its error.

| symbol | name | meaning | shape |
|---|---|---|---|
| U, N | `Observations` | distinct points observed, and number of observations of each | (n, d), (n,) |
| p_i | | probability that x_i becomes an inducing point: min(1, q N_i s^2(x_i) / lambda) | (n,) |
| q | `oversampling` | | scalar |
| K, Q | | kernel matrix of all t observations; that of the span of the inducing points, Q <= K | (t, t) |
| D^2 | `Sketch.left_out` | tr(K - Q): prior variance outside of the span, summed over observations | reward units^2 |
| rho | `shortfall` | D / sqrt(lambda) | scalar |

Calandriello, Carratino, Lazaric, Valko & Rosasco 2019 (BKB) draw every observation by its own posterior variance, which
is its ridge leverage score. With q of the order of log(t / delta) / epsilon^2 the sketched variances are then within (1
+ epsilon) / (1 - epsilon) of the exact ones with probability 1 - delta. Such a q keeps nearly every point of a run of
practical length, so it is not relied on here. Instead the residual of the draw is *measured*. While the residual is
more than asked for, further points are drawn by their share of it (Chen, Epperly, Tropp & Webber 2025).

The following bounds hold for any inducing points, drawn in any way from any observations. P projects on their span, Phi
has rows phi(x_s)^T, V = Phi^T Phi + lambda I and V' = P Phi^T Phi P + lambda I. The sketched variance, with the part
outside of the span included, is s'^2(x) = lambda phi(x)^T V'^{-1} phi(x).

1. Variances. |Phi (I - P) u| <= D |(I - P) u|, so |Phi u|^2 <= (1 + c) |Phi P u|^2 + (1 + 1/c) D^2 |(I - P) u|^2 for
   every c > 0. The same holds with Phi u and Phi P u exchanged. If (1 + 1/c) rho^2 = c both say V <= (1 + c) V' and
   V' <= (1 + c) V. Hence

       s'(x) / a <= s(x) <= a s'(x),    a = sqrt(1 + c) = rho / 2 + sqrt(1 + rho^2 / 4)           (1 + rho / 2 + ...).

2. Gain. log det(I + K / lambda) <= log det(I + Q / lambda) + tr(K - Q) / lambda.
3. Mean. With y = Phi f + eta and mu' = phi^T V'^{-1} P Phi^T y,

       f - mu' = lambda phi^T V'^{-1} f - phi^T V'^{-1} P Phi^T Phi (I - P) f - phi^T V'^{-1} P Phi^T eta.

   The first term is at most s'(x) |f|. As |V'^{-1/2} P Phi^T| <= 1 the second is at most s'(x) D |f| / sqrt(lambda).
   The norm of P Phi^T eta in V'^{-1} is the root of eta^T Q (Q + lambda)^{-1} eta. It is at most the same with K for Q,
   since the function is operator monotone. The self-normalised inequality bounds that for K, whatever P. So

       |f(x) - mu'(x)| <= s'(x) (B (1 + rho) + (R / sqrt(lambda)) sqrt(log det(I + K / lambda) + 2 ln(1 / delta)))

   at all points in all rounds with probability 1 - delta (and with the right side of 2 in place of its determinant).

Kernels under which the arms have independent functions of the context, and their features: a block for each arm.

| symbol | name | meaning | shape |
|---|---|---|---|
| a, c | | arm and context of a point | |
| G | `Split.gram` | covariance of the arms | (K, K) |
| k_c | `Split.outside` | covariance of the contexts | |

If k((a, c), (a', c')) = G(a, a') k_c(c, c') with G diagonal, f is an independent function of the context for each arm.
Features of k_c, times the root of G(a, a), are those of the block of arm a.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import singledispatch
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt
from scipy.linalg.blas import dtrsm

from .._utils.checks import Array, IndexArray, shown
from .._utils.randomness import Draws
from ..domains.domain import Arms, Domain, Space, distinct
from ..domains.parameters import CHOSEN, Choice
from ..errors import InvalidInput
from ..kernels import Active, Intercept, Kernel, Mixture, Multiplied, Product, Sum
from ..kernels.factorization import ROUNDING, pivoted_root
from .arm_blocks import ArmBlocks, root_of_gram
from .observations import Observations


class FeatureMap(ABC):
    """A map of points to coordinates in a finite-dimensional space of functions.

    Attributes:
        size: number of features r of a block.
        blocks: number of blocks.
        exact: True if the space contains all samples of the process.
    """

    size: int
    blocks: int = 1
    exact: bool

    def blocks_of(self, points: Array) -> IndexArray:
        """Returns the block of every row, `(n,)`."""
        return np.zeros(len(points), dtype=np.intp)

    def members(self, points: Array, block: int) -> npt.NDArray[np.bool_]:
        """Returns which rows are in a block, `(n,)`."""
        return np.asarray(self.blocks_of(points) == block)

    def values(self, points: Array, weights: Array) -> Array:
        """Returns weights^T z of every row, `(n,)`, from weights of all blocks, `(blocks, r)`."""
        z = self.features(points)
        found = z @ weights[0] if self.blocks == 1 else np.einsum("ij,ij->i", z, weights[self.blocks_of(points)])
        return np.asarray(found)

    def slopes(self, points: Array, weights: Array) -> Array:
        """Returns the gradients of `values`, `(n, d)`."""
        return self.gradient(points, weights[self.blocks_of(points)])

    @abstractmethod
    def features(self, points: Array) -> Array:
        """Returns z of every row, `(n, r)`."""

    def left_out(self, points: Array, features: Array) -> Array:  # noqa: ARG002
        """Returns the prior variance outside of the span, `(n,)`: zeros, if the map is exact."""
        return np.zeros(len(points))

    def rest(self, points: Array, others: Array, features: Array, other_features: Array) -> Array:  # noqa: ARG002
        """Returns the prior covariance outside of the span, `(n, m)`: zeros, if the map is exact."""
        return np.zeros((len(points), len(others)))

    @abstractmethod
    def gradient(self, points: Array, weights: Array) -> Array:
        """Returns rows d (weights[i]^T z(x_i)) / d x_i, `(n, d)`."""


@final
class KernelFeatures(FeatureMap):
    """The features of a kernel of finite rank, which span all samples."""

    exact = True

    def __init__(self, kernel: Kernel, size: int) -> None:
        self._kernel, self.size = kernel, size

    def features(self, points: Array) -> Array:
        """Returns the kernel's own features."""
        found = self._kernel.features(points)
        return np.zeros((len(points), 0)) if found is None else found

    def gradient(self, points: Array, weights: Array) -> Array:
        """Returns the kernel's own gradients."""
        return self._kernel.feature_gradient(points, weights)


@final
class NystromFeatures(FeatureMap):
    """The features of inducing points s, which span k(s, .).

    Args:
        kernel: prior covariance.
        points: S, `(r, d)`. Points may depend on each other, and points that add less than `least` are left out.
        least: variance, reward units squared.
        most: largest number of inducing points. Points that add the most are kept.
    """

    exact = False

    def __init__(self, kernel: Kernel, points: Array, least: float, most: int) -> None:
        self._kernel = kernel
        if len(points):
            floor = max(least, 100.0 * ROUNDING * float(kernel.diagonal(points).max()))
            factor, order = pivoted_root(kernel(points, points), tol=floor)
            rank = min(factor.shape[1], most)
            self.points = points[order[:rank]]
            self._factor = np.asfortranarray(factor[:rank, :rank])
        else:
            self.points, self._factor = points.copy(), np.zeros((0, 0))
        self.size = len(self.points)

    def features(self, points: Array) -> Array:
        """Returns L^{-1} k(S, x)."""
        return self.solve(self._kernel(self.points, points)).T

    def solve(self, right: Array) -> Array:
        """Returns L^{-1} `right`, `(r, n)` or `(r,)`."""
        return np.asarray(dtrsm(1.0, self._factor, right, lower=1).reshape(right.shape)) if right.size else right

    def left_out(self, points: Array, features: Array) -> Array:
        """Returns k(x, x) - |z|^2."""
        return np.asarray(np.maximum(self._kernel.diagonal(points) - np.einsum("ij,ij->i", features, features), 0.0))

    def rest(self, points: Array, others: Array, features: Array, other_features: Array) -> Array:
        """Returns k(x, x') - z^T z'."""
        return self._kernel(points, others) - features @ other_features.T

    def gradient(self, points: Array, weights: Array) -> Array:
        """Returns gradients through the kernel: weights^T z(x) = (L^{-T} weights)^T k(S, x)."""
        if not weights.size:
            return np.zeros(points.shape)
        inner: Array = dtrsm(1.0, self._factor, weights.T, lower=1, trans_a=1)
        return np.asarray(self._kernel.input_gradient(points, self.points, inner.T))


CHUNK = 4096  # points at a time, which bounds the memory
FEW = 16  # smallest number of points drawn at a time for the residual


class Terms(NamedTuple):
    """Requirements of a sketch.

    Attributes:
        accuracy: largest rho.
        oversampling: q.
        growth: C. Inducing points are drawn again when 1 + sum s'^2 / lambda since the last draw exceeds C.
        most: largest number of inducing points.
        seed: of the draws.
    """

    accuracy: float
    oversampling: float
    growth: float
    most: int
    seed: int


class Sketch(NamedTuple):
    """Inducing points, and all observations in their span.

    Attributes:
        span: features of the inducing points.
        weights: posterior of the weights of the features.
        left_out: D^2.
    """

    span: NystromFeatures
    weights: ArmBlocks
    left_out: float


def draw_sketch(
    kernel: Kernel,
    seen: Observations,
    regularization: float,
    before: tuple[NystromFeatures, ArmBlocks],
    terms: Terms,
    rng: Draws,
) -> Sketch:
    """Returns inducing points for the observations, drawn by the variances of the sketch before."""
    n, plays = seen.size, seen.plays
    if not n:
        return Sketch(NystromFeatures(kernel, seen.points, 0.0, terms.most), ArmBlocks(1, 0, regularization), 0.0)
    total = float(plays.sum())
    budget = 0.5 * terms.accuracy**2 * regularization  # The other half is for later observations.
    scores = np.concatenate([_variances(*before, points) for _, points in _chunks(seen)])
    chosen = rng.random(n) < terms.oversampling * plays * scores / regularization  # min(1, q s^2 / lambda)
    places = _capped(np.flatnonzero(chosen), scores * plays, terms.most)
    while True:
        span = NystromFeatures(kernel, seen.points[places], 0.1 * budget / total, terms.most)
        gram, right, left = _sums(span, kernel, seen)
        if left.sum() <= budget or span.size >= terms.most or len(places) == n:
            break
        extra = max(FEW, len(places) // 4)
        more = _by_share(np.where(np.isin(np.arange(n), places), 0.0, left), extra, rng)
        if not len(more) or len(places) >= 4 * terms.most:
            break
        places = np.union1d(places, more)
    weights = ArmBlocks(1, span.size, regularization)
    weights.renew(0, root_of_gram(gram / regularization))
    for _ in range(2):  # From 0, one refinement is a solve.
        weights.refine_by(0, right - gram @ weights.mean[0])
    return Sketch(span, weights, float(left.sum()))


def _chunks(seen: Observations) -> Iterator[tuple[slice, Array]]:
    for start in range(0, seen.size, CHUNK):
        some = slice(start, min(start + CHUNK, seen.size))
        yield some, seen.points[some]


def _variances(span: NystromFeatures, weights: ArmBlocks, points: Array) -> Array:
    z = span.features(points)
    half = weights.halves(span.blocks_of(points), z)
    return np.asarray(np.einsum("ij,ij->i", half, half) + span.left_out(points, z))


def _sums(span: NystromFeatures, kernel: Kernel, seen: Observations) -> tuple[Array, Array, Array]:
    """Returns Z^T N Z, Z^T N ybar, and the residuals N_i (k - |z|^2), at least as large as rounding errors."""
    gram, right, left = np.zeros((span.size, span.size)), np.zeros(span.size), np.zeros(seen.size)
    for some, points in _chunks(seen):
        z, plays = span.features(points), seen.plays[some]
        weighted = z * plays[:, None]
        gram += weighted.T @ z
        right += weighted.T @ seen.average[some]
        left[some] = plays * np.maximum(span.left_out(points, z), ROUNDING * kernel.diagonal(points))
    return gram, right, left


def _capped(places: IndexArray, sizes: Array, most: int) -> IndexArray:
    """Returns the places of the largest sizes, if there are too many to be compared with each other."""
    if len(places) <= 4 * most:
        return places
    return np.sort(places[np.argsort(-sizes[places], kind="stable")[: 4 * most]])


def _by_share(sizes: Array, count: int, rng: Draws) -> IndexArray:
    """Returns places without repeats, each drawn in proportion to its size, as the first exponential clocks."""
    positive = np.flatnonzero(sizes > 0.0)
    clocks = -np.log1p(-rng.random(len(sizes))[positive]) / sizes[positive]
    return positive[np.argsort(clocks, kind="stable")[:count]]


MOST_ARMS = 1024  # arms beyond which their covariance matrix would be large
SAME = 1e-12  # relative difference up to which two matrices count as multiples of each other


class ArmColumns(NamedTuple):
    """The columns of the arms in the points of a posterior. An arm may be an option of a choice.

    Attributes:
        columns: these columns.
        rows: all distinct arms, in their order, as points whose other columns are 0, `(K, d)`.
    """

    columns: frozenset[int]
    rows: Array

    @staticmethod
    def of(arms: Array, columns: range, dimension: int) -> ArmColumns:
        """Returns the columns of distinct arms `(K, c)` in points with `dimension` columns."""
        rows = np.zeros((len(arms), dimension))
        rows[:, columns] = arms
        return ArmColumns(frozenset(columns), rows)


class Split(NamedTuple):
    """A kernel as a product: a matrix over the arms, and a kernel that sees no column of the arms."""

    gram: Array
    outside: Kernel


def arm_columns(domain: Domain, dimension: int) -> list[ArmColumns]:
    """Returns the columns that hold an arm, or one option of a choice, in rows whose last columns are the point's."""
    first = dimension - domain.dimension
    if isinstance(domain, Arms):
        if len(domain) > MOST_ARMS:
            return []
        return [ArmColumns.of(distinct(domain.points), range(first, dimension), dimension)]
    if not isinstance(domain, Space) or domain.active(domain.lower[None]) is not None:
        return []
    choices = [place for parameter, place in domain.columns() if isinstance(parameter, Choice)]
    codes = [CHOSEN * np.eye(place.stop - place.start) for place in choices]
    places = [range(first + place.start, first + place.stop) for place in choices]
    return [ArmColumns.of(code, place, dimension) for code, place in zip(codes, places, strict=True)]


@singledispatch
def split(kernel: Kernel, arms: ArmColumns) -> Split | None:
    """Returns the kernel as such a product, or None if it is not known to be one.

    A kernel of your own that is such a product may say so: `split.register(MyKernel)`.
    """
    seen = kernel.columns(arms.rows.shape[1])
    if seen <= arms.columns:
        return Split(kernel(arms.rows, arms.rows), Intercept())
    return None if seen & arms.columns else Split(np.ones((len(arms.rows), len(arms.rows))), kernel)


@split.register(Product)
def _product(kernel: Product, arms: ArmColumns) -> Split | None:
    left, right = split(kernel.left, arms), split(kernel.right, arms)
    if left is None or right is None:
        return None
    outside = [each.outside for each in (left, right) if each.outside != Intercept()] or [Intercept()]
    return Split(left.gram * right.gram, outside[0] if len(outside) == 1 else outside[0] * outside[1])


@split.register(Sum)
def _sum(kernel: Sum, arms: ArmColumns) -> Split | None:
    left, right = split(kernel.left, arms), split(kernel.right, arms)
    if left is None or right is None:
        return None
    at = np.unravel_index(int(np.abs(left.gram).argmax()), left.gram.shape)
    factor = float(right.gram[at] / left.gram[at]) if left.gram[at] else 0.0
    alike = factor > 0.0 and np.allclose(right.gram, factor * left.gram, rtol=SAME, atol=0.0)
    return Split(left.gram, left.outside + factor * right.outside) if alike else None


@split.register(Multiplied)
def _multiplied(kernel: Multiplied, arms: ArmColumns) -> Split | None:
    inside = split(kernel.kernel, arms)
    return None if inside is None else inside._replace(gram=kernel.factor * inside.gram)


@split.register(Mixture)
def _mixture(kernel: Mixture, arms: ArmColumns) -> Split | None:
    return split(kernel.expanded, arms)


@split.register(Active)
def _active(kernel: Active, arms: ArmColumns) -> Split | None:
    inside = frozenset(i for i, column in enumerate(kernel.dimensions) if column in arms.columns)
    found = split(kernel.kernel, ArmColumns(inside, arms.rows[:, list(kernel.dimensions)]))
    return None if found is None else found._replace(outside=found.outside.on(*kernel.dimensions))


def arm_features(kernel: Kernel, arms: ArmColumns) -> ArmFeatures | None:
    """Returns the features of independent functions for each arm, or None if the arms are not independent."""
    if not 1 < len(arms.rows) <= MOST_ARMS or kernel.rank(arms.rows.shape[1]) is None:
        return None
    found = split(kernel, arms)
    if found is None or np.count_nonzero(found.gram) != len(arms.rows) or not found.gram.diagonal().all():
        return None
    rank = found.outside.rank(arms.rows.shape[1])
    if rank is None or found.outside.features(arms.rows[:1]) is None:
        return None
    return ArmFeatures(found, arms, rank)


@final
class ArmFeatures(FeatureMap):
    """The features of a kernel with an independent function of the context for each arm.

    Args:
        split: the kernel, with a diagonal matrix over the arms.
        arms: of the points.
        size: rank of the kernel of the contexts.
    """

    exact = True

    def __init__(self, split: Split, arms: ArmColumns, size: int) -> None:
        self._outside, self.size, self.blocks = split.outside, size, len(arms.rows)
        self._columns = np.array(sorted(arms.columns))
        self._others = np.setdiff1d(np.arange(arms.rows.shape[1]), self._columns)
        self._arms, self._every = arms.rows[:, self._columns], np.arange(len(arms.rows))
        self._block = {row.tobytes(): block for block, row in enumerate(self._arms)}
        self._last: tuple[bytes, Array] = b"", np.zeros((0, size))  # one context and its features
        self._scales = np.sqrt(split.gram.diagonal())
        self._plain = bool((self._scales == 1.0).all())

    def blocks_of(self, points: Array) -> IndexArray:
        """Returns the arm of every row, `(n,)`.

        Raises:
            InvalidInput: if a row is none of the arms.
        """
        own = points[:, self._columns] + 0.0
        if own.shape == self._arms.shape and (own == self._arms).all():  # as in every decision
            return self._every
        try:
            return np.array([self._block[row.tobytes()] for row in own], dtype=np.intp)
        except KeyError:
            row = next(row for row in own if row.tobytes() not in self._block)
            raise InvalidInput(
                f"{shown(row.tolist())} is not one of the arms, and under this kernel the arms say nothing of it."
            ) from None

    def members(self, points: Array, block: int) -> npt.NDArray[np.bool_]:
        """Returns which rows are those of an arm, `(n,)`, without a look-up of each."""
        return np.asarray((points[:, self._columns] == self._arms[block]).all(axis=1))

    def features(self, points: Array) -> Array:
        """Returns the features of the contexts, times the root of the prior variance of each arm."""
        contexts = points[:, self._others]
        if len(points) and (contexts[1:] == contexts[0]).all():
            found = np.repeat(self._of_one(points[:1], contexts[0].tobytes()), len(points), axis=0)
        else:
            found = np.asarray(self._outside.features(points))
        return found if self._plain else found * self._scales[self.blocks_of(points), None]

    def _of_one(self, point: Array, context: bytes) -> Array:
        """Returns the features of one context, `(1, r)`. A decision and its reward ask for the same ones."""
        if self._last[0] != context:
            self._last = context, np.asarray(self._outside.features(point))
        return self._last[1]

    def gradient(self, points: Array, weights: Array) -> Array:
        """Returns the gradients by the context. Those by the arm's columns count as 0."""
        return self._outside.feature_gradient(points, weights * self._scales[self.blocks_of(points), None])
