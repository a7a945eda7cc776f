"""Points that are about to come, as in a replay: the factor is read for several of them at once."""

from __future__ import annotations

from typing import final

import numpy as np

from ..checks import Array
from ..kernels import Kernel
from .triangle import BLOCK, GrowingTriangle

TOGETHER = 32  # points that are looked ahead at a time
FEWEST = 2 * BLOCK  # rows of the factor below which nothing is gained


@final
class Ahead:
    """The first rows of L^{-1} k(U, x) for points x that are to come, of the blocks of L that are full.

    Args:
        kernel: of the posterior.
        points: in the order in which they will come, `(m, d)`; others may come in between.
    """

    def __init__(self, kernel: Kernel, points: Array) -> None:
        self._kernel, self._points = kernel, points + 0.0
        self._place = {point.tobytes(): i for i, point in reversed(list(enumerate(self._points)))}
        self._known: dict[bytes, tuple[Array, Array]] = {}
        self._full = 0

    def top(self, factor: GrowingTriangle, U: Array, x: Array, cross: Array) -> Array | None:
        """The first rows for a point, where they are known.

        Args:
            factor: of the posterior.
            U: its points, `(n, d)`.
            x: the point, `(1, d)`.
            cross: k(U, x), `(n, 1)`.
        """
        full = len(U) // BLOCK * BLOCK
        place = self._place.get(key := x.tobytes())
        if place is None or full < FEWEST:
            return None
        if full != self._full or key not in self._known:
            some = self._points[place : place + min(TOGETHER, BLOCK - len(U) % BLOCK)]
            rights = [self._kernel(U[:full], point[None]) for point in some]
            tops = factor.tops(rights)
            if full != self._full and not np.array_equal(factor.solve(rights[0], rows=full), tops[0]):
                self._place.clear()  # another BLAS than any we know: each point by itself, then
                return None
            found = zip(rights, tops, strict=True)
            self._full, self._known = full, {point.tobytes(): pair for point, pair in zip(some, found, strict=True)}
        right, top = self._known.pop(key)
        return top if np.array_equal(right, cross[:full]) else None
