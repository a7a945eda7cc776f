"""Mean and variance of fixed candidate points, updated as observations arrive at O(n) a candidate an observation.

Without these updates a maximiser would pay O(n^2) for the variance of every candidate at every decision, which is most
of the cost of a decision.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.blas import dtrsm

from .._utils.checks import Array
from . import triangle
from .points import PointPosterior
from .triangle import Rotations

ROWS = 256  # of V that are allocated at a time


class CandidateMoments:
    """Posterior mean and std at fixed points X, where V = L^{-1} k(U, X) grows by one row for each new point.

    Args:
        posterior: posterior whose changes are followed from now on.
        points: X, `(m, d)`.
    """

    def __init__(self, posterior: PointPosterior, points: Array) -> None:
        self._posterior = posterior
        self.points = points
        self._prior = posterior.kernel.diagonal(points)
        self._restart()

    def _restart(self) -> None:
        self._rows: list[Array] = []
        self._known = 0
        self._variance = self._prior.copy()
        self._mean = np.zeros(len(self.points))
        self._removals, self._blocks = self._posterior.removals, self._posterior.blocks
        self._posterior.rotations.clear()  # Only this class reads them.
        self._target_changes = self._posterior.target_changes

    def predict(self, *, weights: Array | None = None) -> tuple[Array, Array]:
        """Returns posterior mean and standard deviation at the points, each `(m,)`, as fresh arrays.

        Args:
            weights: the mean is k(x)^T `weights`, `(n,)`, in place of the posterior's own.
        """
        if self._removals != self._posterior.removals:
            self._restart()
        if self._blocks != self._posterior.blocks:
            self._rewind(self._blocks * triangle.BLOCK)
            self._blocks = self._posterior.blocks
        for rotations in self._posterior.rotations:
            self._turn(rotations)
        self._posterior.rotations.clear()
        for low in range(self._known, self._posterior.rank, ROWS):
            self._follow(low, min(low + ROWS, self._posterior.rank), moves=weights is None)
        if weights is not None:
            self._mean = self._of_halves(self._posterior.rotate(weights))
            self._target_changes = -1  # The mean is not the posterior's own.
        elif self._target_changes != self._posterior.target_changes:
            self._target_changes = self._posterior.target_changes
            self._mean = self._of_halves(self._posterior.half)
        return self._mean.copy(), np.sqrt(np.maximum(self._variance, 0.0))

    def _of_halves(self, half: Array) -> Array:
        """Returns half^T V, `(m,)`."""
        mean = np.zeros(len(self.points))
        for place, rows in enumerate(self._rows):
            part = half[place * ROWS : (place + 1) * ROWS]
            mean += part @ rows[: len(part)]
        return mean

    def _rewind(self, known: int) -> None:
        """Drops all but the first `known` rows, since the others of the factor have changed."""
        self._known = min(self._known, known)
        del self._rows[-(-self._known // ROWS) :]
        self._variance = self._prior.copy()
        for place, rows in enumerate(self._rows):
            part = rows[: self._known - place * ROWS]
            self._variance -= np.einsum("ij,ij->j", part, part)
        self._target_changes = -1

    def _turn(self, rotations: Rotations) -> None:
        """Applies a rotation of the factor to the known rows."""
        extra = np.zeros(len(self.points))
        for place, block in enumerate(self._rows):
            low, high = max(place * ROWS, rotations.start), min((place + 1) * ROWS, self._known)
            if low < high:
                rows = block[low - place * ROWS : high - place * ROWS]
                self._variance += np.einsum("ij,ij->j", rows, rows)
                rotations.turn(rows, extra, low)
                self._variance -= np.einsum("ij,ij->j", rows, rows)

    def _follow(self, low: int, high: int, *, moves: bool) -> None:
        """Adds the rows `low` .. `high` of V, at most one block of them, and to the mean if it `moves`."""
        posterior = self._posterior
        cross = posterior.kernel(posterior.points[low:high], self.points)
        factor = posterior.factor_rows(low, high)
        for place, rows in enumerate(self._rows):
            start, end = place * ROWS, min((place + 1) * ROWS, low)
            cross -= factor[:, start:end] @ rows[: end - start]
        # The transposed system needs no copy of the many columns.
        new = dtrsm(1.0, factor[:, low:high], cross.T, side=1, lower=1, trans_a=1, overwrite_b=1).T
        for offset, row in enumerate(new):
            block, inside = divmod(low + offset, ROWS)
            if inside == 0 and block == len(self._rows):
                self._rows.append(np.zeros((ROWS, len(self.points))))
            self._rows[block][inside] = row
        self._variance -= np.einsum("ij,ij->j", new, new)
        if moves:
            self._mean += posterior.half[low:high] @ new
        self._known = high
