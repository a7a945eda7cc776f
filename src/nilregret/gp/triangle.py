"""A lower-triangular factor that grows by one row at a time, in place.

| symbol | name | meaning | shape |
|---|---|---|---|
| L | `_left`, `_corner` | blocks of `BLOCK` rows: left of the diagonal block, and that block | (n, n), lower |

Rows are stored in blocks that have their full width at once, and double their rows by need. So growth copies at most a
block, and only half of the square is kept: n = 10,000 takes 0.45 GB. Substitution runs block by block in level-3 BLAS.
A few right-hand sides together cost little more than one, since reading L takes most of the time.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from scipy.linalg.blas import dtrsm

from .._utils.checks import Array
from .._utils.copying import Copyable

BLOCK = 256
FIRST = 32  # rows of a block that are allocated at first, and doubled when they are used up
SMALL = 1_000_000  # largest number of multiplications in a product for which OpenBLAS does not first copy its operands
FEW = 48  # number of right-hand sides up to which that copy takes longer than the product


def doubled(rows: Array) -> Array:
    """Returns rows with as many rows of zeros below them. Their stride stays, which decides how products round."""
    return np.concatenate([rows, np.zeros_like(rows)])


class Rotations(NamedTuple):
    """The rotations that turned the factor of M into that of M + sign * c c^T, row by row from `start` on.

    Attributes:
        start: first row.
        sign: 1 or -1.
        cosines: `(n - start,)`.
        sines: `(n - start,)`.
    """

    start: int
    sign: float
    cosines: Array
    sines: Array

    def turn(self, rows: Array, extra: Array, first: int) -> None:
        """Applies the rotations to L^{-1} B, in place: to its rows from `first` on, and to `extra` (0 at `start`).

        [L c] H = [L' 0] with H orthogonal (sign 1) or hyperbolic (sign -1), so L'^{-1} B is the top of H^{-1} [L^{-1}
        B, 0].
        """
        for row, cosine, sine in zip(
            rows, self.cosines[first - self.start :].tolist(), self.sines[first - self.start :].tolist(), strict=False
        ):
            before = row.copy()
            row += sine * extra
            row /= cosine
            extra -= self.sign * sine * before
            extra /= cosine


class _Rows(NamedTuple):
    """A block of rows of L.

    Attributes:
        low: first row.
        high: end of the rows.
        left: columns before `low`, `(high - low, low)`.
        corner: triangle from column `low` on, `(high - low, high - low)`.
    """

    low: int
    high: int
    left: Array
    corner: Array


class GrowingTriangle(Copyable):
    """The Cholesky factor L of a positive definite matrix to which rows and columns are added and removed."""

    OWNED = ("_left", "_corner")

    def __init__(self) -> None:
        self.size = 0
        self._left: list[Array] = []
        self._corner: list[Array] = []
        self._shared = 0  # leading blocks shared with a copy, which are replaced when they change
        self._last: Array | None = None  # contiguous corner of the last block, as BLAS takes it

    def append(self, row: Array, diagonal: float) -> None:
        """Adds the row (row, diagonal) of L, where `row` is `(size,)`."""
        block, inside = divmod(self.size, BLOCK)
        if inside == 0:
            self._left.append(np.zeros((FIRST, block * BLOCK)))
            self._corner.append(np.zeros((FIRST, BLOCK)))
        elif inside == len(self._corner[block]):
            self._left[block], self._corner[block] = doubled(self._left[block]), doubled(self._corner[block])
        self._last = None
        self._left[block][inside] = row[: block * BLOCK]
        self._corner[block][inside, :inside] = row[block * BLOCK :]
        self._corner[block][inside, inside] = diagonal
        self.size += 1

    def extend(self, rows: Array, residual: Array, ridge: Array) -> None:
        """Adds rows and columns to M.

        Args:
            rows: L^{-1} times the new columns of M above the diagonal block, transposed, `(m, size)`.
            residual: Schur complement less the ridge, `(m, m)`, which is overwritten. It is a covariance, so pivots
                that are negative by rounding count as 0. Thus those of M do not fall below the ridge.
            ridge: added to the diagonal of M, `(m,)`.
        """
        for j, row in enumerate(rows):
            residual[j:, j] -= residual[j:, :j] @ residual[j, :j]
            diagonal = math.sqrt(ridge[j] + max(residual[j, j], 0.0))
            residual[j + 1 :, j] /= diagonal
            self.append(np.concatenate([row, residual[j, :j]]), diagonal)

    def solve(self, right: Array) -> Array:
        """Returns L^{-1} `right`, `(n, m)` or `(n,)`."""
        solution = np.empty((self.size, *right.shape[1:]))
        for low, high, left, corner in self._rows():
            rest = right[low:high] - _times(left, solution[:low]) if low else right[:high]
            solution[low:high] = dtrsm(1.0, self._whole(corner).T, rest, trans_a=1).reshape(rest.shape)
        return solution

    def _whole(self, corner: Array) -> Array:
        """Returns the corner of a block as a contiguous array. BLAS would copy that of a last block at each call."""
        if len(corner) == BLOCK:
            return corner
        if self._last is None:
            self._last = corner.copy()
        return self._last

    def substitute(self, right: Array, solution: Array, *, start: int) -> None:
        """Writes the rows `start` .. n of L^{-1} `right` into `solution`, row by row.

        The products for a row are the same however many rows are solved at once. So the result does not depend on the
        time of the call.
        """
        for low, high, left, corner in self._rows(start):
            for i in range(max(low, start), high):
                known = left[i - low] @ solution[:low] + corner[i - low, : i - low] @ solution[low:i]
                solution[i] = (right[i] - known) / corner[i - low, i - low]

    def solve_transposed(self, right: Array) -> Array:
        """Returns L^{-T} `right`, `(n, m)` or `(n,)`."""
        solution = right.copy()
        for low, high, left, corner in reversed(self._rows()):
            part = dtrsm(1.0, self._whole(corner).T, solution[low:high]).reshape(solution[low:high].shape)
            solution[low:high] = part
            if low:
                solution[:low] -= left.T @ part
        return solution

    def times_transposed(self, right: Array) -> Array:
        """Returns L^T `right`, `(n,)`."""
        result = np.zeros(self.size)
        for low, high, left, corner in self._rows():
            result[:low] += right[low:high] @ left
            result[low:high] += right[low:high] @ corner
        return result

    def part(self, low: int, high: int) -> Array:
        """Returns the rows `low` .. `high` of L up to column `high`, `(high - low, high)`."""
        result = np.zeros((high - low, high))
        for rows in self._rows(low):
            first, last = max(low, rows.low), min(high, rows.high)
            if first < last:
                result[first - low : last - low, : rows.low] = rows.left[first - rows.low : last - rows.low]
                result[first - low : last - low, rows.low : last] = rows.corner[
                    first - rows.low : last - rows.low, : last - rows.low
                ]
        return result

    def _rows(self, start: int = 0) -> list[_Rows]:
        """Returns the blocks from that of row `start` on."""
        rows = []
        for block in range(start // BLOCK, len(self._left)):
            low, high = block * BLOCK, min((block + 1) * BLOCK, self.size)
            rows.append(
                _Rows(low, high, self._left[block][: high - low], self._corner[block][: high - low, : high - low])
            )
        return rows

    def diagonal(self) -> Array:
        """Returns the diagonal of L, `(n,)`."""
        return np.concatenate([rows.corner.diagonal() for rows in self._rows()] or [np.zeros(0)])

    def dense(self, start: int = 0) -> Array:
        """Returns a copy of the trailing square from row and column `start` on."""
        return self.part(start, self.size)[:, start:].copy()

    def add_to_diagonal(self, position: int, amount: float) -> Rotations:
        """Applies M[position, position] += amount, in O((n - position)^2).

        The amount may have either sign, as long as M stays positive definite.
        """
        trailing = self.dense(position)
        column = np.zeros(len(trailing))
        column[0] = math.sqrt(abs(amount))
        rotations = _rank_one(trailing, column, position, 1.0 if amount > 0 else -1.0)
        self._replace(position, trailing)
        return rotations

    def remove(self, position: int) -> None:
        """Removes row and column `position` of M. O((n - position)^2)."""
        trailing = self.dense(position)
        kept, column = trailing[1:, 1:].copy(), trailing[1:, 0].copy()
        _rank_one(kept, column, position, 1.0)
        rows = self.part(position, self.size)[1:, :position]
        self.size, self._last = position, None
        del self._left[-(-position // BLOCK) :], self._corner[-(-position // BLOCK) :]
        self._own(position // BLOCK)
        for offset, row in enumerate(rows):
            self.append(np.concatenate([row, kept[offset, :offset]]), float(kept[offset, offset]))

    def keep_blocks(self, count: int) -> None:
        """Removes all rows but those of the first `count` blocks."""
        self.size, self._last = count * BLOCK, None
        del self._left[count:], self._corner[count:]

    def copy(self) -> Self:
        """Returns an independent factor, which shares full blocks until one of the two changes them."""
        self._shared = self.size // BLOCK
        other = super().copy()
        if other._left and self.size % BLOCK:
            other._left[-1], other._corner[-1] = other._left[-1].copy(), other._corner[-1].copy()
        return other

    def _own(self, first: int) -> None:
        for number in range(first, min(self._shared, len(self._left))):
            self._left[number], self._corner[number] = self._left[number].copy(), self._corner[number].copy()
        self._shared = min(self._shared, first)

    def _replace(self, start: int, trailing: Array) -> None:
        self._last = None
        self._own(start // BLOCK)
        for low, high, left, corner in self._rows(start):
            first = max(low, start)  # row `start` may be anywhere in its block
            rows = trailing[first - start : high - start]
            left[first - low :, start:] = rows[:, : max(low - start, 0)]
            corner[first - low :, first - low :] = rows[:, first - start : high - start]


def _times(left: Array, right: Array) -> Array:
    """Returns the product, computed in pieces if there are few columns."""
    columns = right.shape[1] if right.ndim == 2 else 1
    if not 1 < columns <= FEW:
        return np.asarray(left @ right)
    width = SMALL // (len(left) * columns)
    result = left[:, :width] @ right[:width]
    for start in range(width, len(right), width):
        result += left[:, start : start + width] @ right[start : start + width]
    return result


def _rank_one(factor: Array, column: Array, start: int, sign: float) -> Rotations:
    """Turns the factor of M into that of M + sign * column column^T, in place, by (hyperbolic) rotations."""
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
