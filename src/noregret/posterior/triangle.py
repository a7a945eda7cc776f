"""A lower-triangular factor that grows by one row at a time, in place.

| symbol | name | meaning | shape |
|---|---|---|---|
| L | `_blocks` | blocks of `BLOCK` rows, each up to the end of its diagonal block | (n, n), lower |

Rows live in blocks that are allocated whole and filled, so growth copies nothing and only half of the square is kept:
n = 10,000 takes 0.45 GB. Substitution with many right-hand sides runs block by block in level-3 BLAS.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ..checks import Array

BLOCK = 256


class Rotations(NamedTuple):
    """What turned the factor of M into that of M + sign * c c^T, row by row from `start` on."""

    start: int
    sign: float
    cosines: Array  # (n - start,)
    sines: Array  # (n - start,)

    def turn(self, rows: Array, extra: Array, first: int) -> None:
        """Carry L^{-1} B over to the new factor, in place: its rows from `first` on, and `extra` (0 at `start`).

        [L c] H = [L' 0] with H orthogonal (sign 1) or hyperbolic (sign -1), so L'^{-1} B is the top of
        H^{-1} [L^{-1} B; 0].
        """
        for row, cosine, sine in zip(
            rows, self.cosines[first - self.start :].tolist(), self.sines[first - self.start :].tolist(), strict=False
        ):
            before = row.copy()
            row += sine * extra
            row /= cosine
            extra -= self.sign * sine * before
            extra /= cosine


class GrowingTriangle:
    """The Cholesky factor L of a positive definite matrix to which rows and columns are added and removed."""

    def __init__(self) -> None:
        self.size = 0
        self._blocks: list[Array] = []
        self._shared = 0  # leading blocks that a copy uses too: replaced, not written into

    def append(self, row: Array, diagonal: float) -> None:
        """Add the row (row, diagonal) of L; `row` is `(size,)`."""
        block, inside = divmod(self.size, BLOCK)
        if inside == 0:
            self._blocks.append(np.zeros((BLOCK, (block + 1) * BLOCK)))
        self._blocks[block][inside, : self.size] = row
        self._blocks[block][inside, self.size] = diagonal
        self.size += 1

    def extend(self, rows: Array, residual: Array, ridge: Array) -> None:
        """Add rows and columns to M.

        Args:
            rows: L^{-1} times the new columns of M above the diagonal block, transposed, `(m, size)`.
            residual: the Schur complement less the ridge, `(m, m)`, written to. A covariance: pivots that rounding
                takes below 0 count as 0, so that those of M do not fall below the ridge.
            ridge: what M has on its diagonal besides, `(m,)`.
        """
        for j, row in enumerate(rows):
            residual[j:, j] -= residual[j:, :j] @ residual[j, :j]
            diagonal = math.sqrt(ridge[j] + max(residual[j, j], 0.0))
            residual[j + 1 :, j] /= diagonal
            self.append(np.concatenate([row, residual[j, :j]]), diagonal)

    def solve(self, right: Array, *, start: int = 0, known: Array | None = None) -> Array:
        """L^{-1} `right`, `(n, m)` or `(n,)`; with `known` (its first `start` rows), only the rows from there on.

        Args:
            right: rows from `start` on.
            start: rows of the solution that are known already.
            known: those rows, `(start, m)`.
        """
        solution = np.empty((self.size, *right.shape[1:]))
        if known is not None:
            solution[:start] = known[:start]
        for low, high, block in self._rows(start):
            rest = right[low - start : high - start] - block[:, :low] @ solution[:low]
            solution[low:high] = solve_triangular(block[:, low:high], rest, lower=True, check_finite=False)
        return solution

    def substitute(self, right: Array, solution: Array, *, start: int) -> None:
        """Rows `start` .. n of L^{-1} `right` into `solution`, row by row.

        One dot product a row, however many rows at once: the result does not depend on when it was asked for.
        """
        for low, high, block in self._rows(start):
            for i in range(low, high):
                row = block[i - low]
                solution[i] = (right[i] - row[:i] @ solution[:i]) / row[i]

    def solve_transposed(self, right: Array) -> Array:
        """L^{-T} `right`, `(n, m)` or `(n,)`."""
        solution = right.copy()
        for low, high, block in reversed(list(self._rows(0))):
            part = solve_triangular(block[:, low:high], solution[low:high], lower=True, trans=1, check_finite=False)
            solution[low:high] = part
            solution[:low] -= block[:, :low].T @ part
        return solution

    def part(self, low: int, high: int) -> Array:
        """Rows `low` .. `high` of L up to column `high`, `(high - low, high)`: a copy where they span blocks."""
        pieces = [block[: high - first, :high] for first, _, block in self._rows(low) if first < high]
        if len(pieces) == 1:
            return pieces[0]
        result = np.zeros((high - low, high))
        filled = 0
        for piece in pieces:
            result[filled : filled + len(piece), : piece.shape[1]] = piece
            filled += len(piece)
        return result

    def _rows(self, start: int) -> list[tuple[int, int, Array]]:
        """(first row, last row + 1, those rows of L up to their diagonal block) from row `start` on."""
        rows = []
        low = start
        while low < self.size:
            block, inside = divmod(low, BLOCK)
            high = min((block + 1) * BLOCK, self.size)
            rows.append((low, high, self._blocks[block][inside : inside + high - low, :high]))
            low = high
        return rows

    def diagonal(self) -> Array:
        """The diagonal of L, `(n,)`."""
        return np.concatenate([block[:, low:high].diagonal() for low, high, block in self._rows(0)] or [np.zeros(0)])

    def dense(self, start: int = 0) -> Array:
        """A copy of the trailing square from row and column `start` on."""
        result = np.zeros((self.size - start, self.size - start))
        for low, high, block in self._rows(start):
            result[low - start : high - start, : high - start] = block[:, start:high]
        return result

    def add_to_diagonal(self, position: int, amount: float) -> Rotations:
        """Follow M[position, position] += amount (of either sign, M staying positive definite). O((n - position)^2)."""
        trailing = self.dense(position)
        column = np.zeros(len(trailing))
        column[0] = math.sqrt(abs(amount))
        rotations = _rank_one(trailing, column, position, 1.0 if amount > 0 else -1.0)
        self._replace(position, trailing)
        return rotations

    def remove(self, position: int) -> None:
        """Drop row and column `position` of M. O((n - position)^2)."""
        trailing = self.dense(position)
        kept, column = trailing[1:, 1:].copy(), trailing[1:, 0].copy()
        _rank_one(kept, column, position, 1.0)
        left = [block[:, :position].copy() for _, _, block in self._rows(position)]
        rows = np.concatenate(left)[1:] if left else np.zeros((0, position))
        self.size = position
        del self._blocks[-(-position // BLOCK) :]
        self._own(position // BLOCK)
        for offset, row in enumerate(rows):
            self.append(np.concatenate([row, kept[offset, :offset]]), float(kept[offset, offset]))

    def copy(self) -> GrowingTriangle:
        """An independent factor; full blocks are shared until one of the two changes them."""
        other = GrowingTriangle()
        other.size, other._blocks = self.size, self._blocks.copy()
        self._shared = other._shared = self.size // BLOCK
        if other._blocks and self.size % BLOCK:
            other._blocks[-1] = other._blocks[-1].copy()
        return other

    def _own(self, first: int) -> None:
        for number in range(first, min(self._shared, len(self._blocks))):
            self._blocks[number] = self._blocks[number].copy()
        self._shared = min(self._shared, first)

    def _replace(self, start: int, trailing: Array) -> None:
        self._own(start // BLOCK)
        for low, high, block in self._rows(start):
            block[:, start:high] = trailing[low - start : high - start, : high - start]


def _rank_one(factor: Array, column: Array, start: int, sign: float) -> Rotations:
    """Turn the factor of M into that of M + sign * column column^T, in place (rotations, or hyperbolic ones)."""
    cosines, sines = np.ones(len(factor)), np.zeros(len(factor))
    for k in range(len(factor)):
        if column[k] == 0.0:
            continue
        diagonal = float(factor[k, k])
        new = math.sqrt(max(diagonal**2 + sign * float(column[k]) ** 2, 1e-300))
        cosine, sine = new / diagonal, float(column[k]) / diagonal
        cosines[k], sines[k] = cosine, sine
        factor[k, k] = new
        below = slice(k + 1, None)
        factor[below, k] = (factor[below, k] + sign * sine * column[below]) / cosine
        column[below] = cosine * column[below] - sine * factor[below, k]
    return Rotations(start, sign, cosines, sines)
