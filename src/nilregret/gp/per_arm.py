"""Kernels under which the arms have independent functions of the context, and their features: a block for each arm.

| symbol | name | meaning | shape |
|---|---|---|---|
| a, c | | arm and context of a point | |
| G | `Split.gram` | covariance of the arms | (K, K) |
| k_c | `Split.outside` | covariance of the contexts | |

If k((a, c), (a', c')) = G(a, a') k_c(c, c') with G diagonal, f is an independent function of the context for each arm.
Features of k_c, times the root of G(a, a), are those of the block of arm a.
"""

from __future__ import annotations

from functools import singledispatch
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, shown
from ..domains.domain import Arms, Domain, Space, distinct
from ..domains.parameters import CHOSEN, Choice
from ..errors import InvalidInput
from ..kernels import Active, Intercept, Kernel, Mixture, Multiplied, Product, Sum
from .feature_maps import FeatureMap

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
