"""How much T rewards can tell about f at most: the maximum information gain gamma_T, from above.

| symbol | name | meaning | shape |
|---|---|---|---|
| I | `gains` | gain 1/2 log det(I + K_A / lambda) of the first t greedy points, nats | (T,) |
| lambda | `regularization` | sigma^2 in Srinivas et al., lambda in Chowdhury & Gopalan | reward units^2 |
| gamma_T | `bound` | largest gain of T points, repeats allowed; here from above | scalar |
| lambda_i | `eigenvalues` | of the kernel matrix over all arms, largest first | (r,) |
| m_i | `allocation` | how many of the T observations go to mode i | (r,) |

Srinivas et al. 2010, section 5. Finding gamma_T itself is NP-hard. What was gained by points that are known needs no
bound: `posterior.information_gain` keeps it as a running sum.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import (
    LARGEST_REWARD,
    LARGEST_VARIANCE,
    Array,
    IndexArray,
    finite_array,
    frozen,
    integer,
    number,
    one_of,
    shown,
)
from .._utils.errors import InvalidInput
from ..domains.domain import Arms, Box, Space
from ..gp.choice import posterior_on_arms
from ..gp.factorization import pivoted_cholesky, tolerance
from ..kernels import ALL, Active, Kernel, Linear, check_kernel

LEAST_RIDGE = 1e-150  # of a spectrum: eigenvalues divided by it must not overflow
MOST_OBSERVATIONS = 10_000_000
NEAR_GREEDY = 1.0 / (1.0 - math.exp(-1.0))  # gamma_T over the greedy gain, at most (Nemhauser et al. 1978)
TIES = 1e-10  # relative; which arm is greedy must not hang on the rounding of one engine or machine
FIRST_ROOM = 256  # greedy points for which room is made at first; doubled when it is used up
BOUNDS = ("greedy", "spectral", "split", "sharp", "linear", "realised")


def information_gain(
    kernel: Kernel, points: Arms | npt.ArrayLike, noise: float, *, bound: str = "greedy", count: int | None = None
) -> float:
    """An upper bound of gamma_count, the largest information gain of `count` noisy rewards, in nats.

    Args:
        kernel: prior covariance.
        points: the arms, `Arms` or `(N, d)`; with contexts, one row for every (context, arm).
        noise: standard deviation sigma of the rewards' noise, reward units.
        bound: "greedy" (Srinivas et al. 2010, section 5.1), "spectral" (eq. 8), "split" (Theorem 4 with its
            constants), "sharp" (the least that is proved here: see `GreedyDesign.sharp_bound` and `Spectrum.gain`),
            "linear" (C.3, for `Linear` kernels and others of finite rank, on boxes and spaces too: see
            `linear_gain_bound`), or "realised": no bound, but the gain 1/2 log det(I + K / sigma^2) of the given
            points, each observed once.
        count: number of observations T; not with "realised".

    Errors where `points` is not finite (a `Box`), unless the bound is "linear": its bound is that of a grid of it, or
    `information_gain_rate`.
    """
    one_of("bound", bound, BOUNDS)
    check_kernel("kernel", kernel)
    why = "It is a standard deviation."
    regularization = number("noise", noise, low=1e-150, high=LARGEST_REWARD, why=why) ** 2
    if bound == "realised":
        if count is not None:
            raise InvalidInput('`count` goes with upper bounds: the "realised" gain is that of all the points given.')
        return _realised(kernel, points, regularization)
    if count is None:
        raise InvalidInput(f"`count` is missing: the {bound} bound is that of so many observations.")
    count = integer("count", count, low=0, high=MOST_OBSERVATIONS, why="It is a number of observations.")
    if bound == "linear":
        return linear_gain_bound(kernel, points, regularization, count)
    if bound == "greedy":
        return GreedyDesign(kernel, points, regularization).bound(count)
    spectrum = Spectrum.of(kernel, points, regularization)
    if bound == "spectral":
        return spectrum.bound(count)
    if bound == "split":
        return spectrum.split_bound(count)
    return min(spectrum.gain(count), GreedyDesign(kernel, points, regularization).sharp_bound(count))


def linear_gain_bound(
    kernel: Kernel, points: Arms | Box | Space | npt.ArrayLike, regularization: float, count: int
) -> float:
    """gamma_T of a kernel of finite rank from above (Srinivas et al. 2010, C.3): logarithmic in T, whatever the domain.

    With X the points played as columns, 1/2 log det(I + X X^T s / lambda) <= 1/2 sum_i log(1 + D_ii s / lambda), D the
    diagonal of X X^T (Hadamard). D_ii is at most T max x_i^2, and the sum at most d log(1 + tr D s / (d lambda)) with
    tr D <= T max |x|^2, as the logarithm is concave: the lesser of the two, for s = `kernel.scale`. Where |x| <= 1 and
    s = 1 it is at most d/2 log(1 + T / lambda), the O(d log T) of the paper.

    Other kernels of finite `rank` r have the second of the two, with tr D <= T max k(x, x): the matrix of the T points
    has at most r eigenvalues that are not 0, and their sum is tr D.
    """
    if isinstance(points, Box | Space):
        squares = np.maximum(np.abs(points.lower), np.abs(points.upper))[None] ** 2
    else:
        squares = _finite(points).points ** 2
    T, ridge = integer("count", count, low=0), number("regularization", regularization, low=0.0, open_low=True)
    linear = _linear_part(kernel, squares)
    if linear is not None:
        scale, squares = linear
        each, d = T * scale / ridge, squares.shape[1]
        apart = float(np.log1p(each * squares.max(axis=0)).sum())
        together = d * math.log1p(each * float(squares.sum(axis=1).max()) / d)
        return float(0.5 * min(apart, together))
    rank = kernel.rank(squares.shape[1])
    if rank is None:
        raise InvalidInput(
            "The linear bound is for `Linear` kernels and others of finite rank (of some of the columns, too), not "
            f'for {kernel!r}: use bound="sharp" on arms.'
        )
    if isinstance(points, Box | Space):
        largest = kernel.derivatives(points.lower, points.upper).value
    else:
        largest = float(kernel.arm_variances(_finite(points).points).max())
    if not math.isfinite(largest):
        raise InvalidInput(f'{kernel!r} states no largest prior variance on a box: use bound="sharp" on arms.')
    return 0.5 * rank * math.log1p(T * largest / (ridge * rank)) if rank else 0.0


@singledispatch
def _linear_part(kernel: Kernel, squares: Array) -> tuple[float, Array] | None:  # noqa: ARG001 - most are not linear
    """The scale of a linear kernel, and the squares of the coordinates that it sees, `(n, d)`."""
    return None


@_linear_part.register
def _of_linear(kernel: Linear, squares: Array) -> tuple[float, Array] | None:
    return kernel.scale, squares


@_linear_part.register
def _of_active(kernel: Active, squares: Array) -> tuple[float, Array] | None:
    kernel.diagonal(squares[:1])  # do the points have the columns that the kernel sees?
    return _linear_part(kernel.kernel, squares[:, list(kernel.dimensions)])


def effective_dimension(kernel: Kernel, points: Arms | npt.ArrayLike, regularization: float) -> int:
    """The d of KernelUCB's regret O(sqrt(d T)) (Valko et al. 2013, Definition 1; Chowdhury & Gopalan 2017, 4.1).

    min{j >= 1: j lambda log T >= sum_{i > j} lambda_i} with lambda_i the eigenvalues of the kernel matrix of the T
    points played, largest first: about how many directions the data are spread over. At most T, and at most the rank.

    Args:
        kernel: prior covariance.
        points: the T points played, `(T, d)`, repeats included, in any order.
        regularization: lambda, reward units squared.
    """
    ridge = number("regularization", regularization, low=0.0, open_low=True)
    check_kernel("kernel", kernel)
    rows = _finite(points).points
    matrix = kernel.between_arms(rows, ALL, ALL) if isinstance(points, Arms) else kernel(rows, rows)
    values = np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0.0)
    size = float(values[0])
    values[values <= 1e-12 * len(values) * size] = 0.0  # what rounding leaves of a matrix of low rank
    tails = np.append(np.cumsum(values[::-1])[::-1][1:], 0.0)  # sum over i > j, j = 1, ..., T
    return int((np.arange(1, len(values) + 1) * ridge * math.log(len(values)) >= tails).argmax()) + 1


def _realised(kernel: Kernel, points: Arms | npt.ArrayLike, regularization: float) -> float:
    if isinstance(points, Arms):
        matrix = kernel.between_arms(points.points, ALL, ALL)
    else:
        rows = _finite(points).points
        matrix = kernel(rows, rows)
    # I + K / lambda is at least I: always positive definite enough for its Cholesky factor.
    factor = np.linalg.cholesky(np.eye(len(matrix)) + matrix / regularization)
    return float(np.log(factor.diagonal()).sum())


def _finite(points: Any) -> Arms:
    if isinstance(points, Box | Space):
        raise InvalidInput(
            f"`points` is {shown(points)}: these bounds are of finitely many arms. Give a grid of it (`Arms`, or "
            "`space.grid(...)`), or use `information_gain_rate`."
        )
    return points if isinstance(points, Arms) else Arms(points)


@final
class GreedyDesign:
    """Experimental design by rule (4): x_t = argmax sigma_{t-1}, which needs no rewards (Srinivas et al. 2010).

    Grown as rounds go by: asking for T points costs T updates of the posterior on arms the first time and nothing
    afterwards. The design is a function of its arguments, so that one may be shared by whoever has the same ones.
    Arms whose variance is within a relative 1e-10 of the largest are ties, and the first of them is taken.

    Args:
        kernel: prior covariance.
        points: the arms, `Arms` or `(N, d)`; with contexts, one row for every (context, arm).
        regularization: lambda, reward units squared.
    """

    def __init__(self, kernel: Kernel, points: Arms | npt.ArrayLike, regularization: float) -> None:
        check_kernel("kernel", kernel)
        self.regularization = number("regularization", regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True)
        self._posterior = posterior_on_arms(_finite(points), kernel, self.regularization)
        self._known = 0
        self._order = np.zeros(FIRST_ROOM, dtype=np.intp)
        self._gains = np.zeros(FIRST_ROOM + 1)  # of the first 0, 1, 2, ... points

    def order(self, count: int) -> IndexArray:
        """The first `count` greedy arms, by index."""
        self._grow(count)
        return self._order[:count].copy()

    def gains(self, count: int) -> Array:
        """Information gains of the first 1, 2, ..., `count` greedy points, nats, `(count,)`."""
        self._grow(count)
        return self._gains[1 : count + 1].copy()

    def gain(self, count: int) -> float:
        """Information gain of the first `count` greedy points, at least (1 - 1/e) gamma_count (eq. 5), nats."""
        self._grow(count)
        return float(self._gains[count])

    def bound(self, count: int) -> float:
        """gamma_count <= (1 - 1/e)^{-1} I(greedy points): section 5.1. Constant time once the design has grown."""
        return NEAR_GREEDY * self.gain(count)

    def sharp_bound(self, count: int) -> float:
        """The least of `bound` and I_s + count (I_{s+1} - I_s), s <= count: closer to I where gains have slowed.

        By submodularity the best `count` points add at most `count` times the largest single gain to whatever is there,
        here the first s greedy points (Minoux 1978; Nemhauser et al. 1978, eq. 4). O(count).
        """
        self._grow(count + 1)
        gains = self._gains[: count + 2]
        return float(min(NEAR_GREEDY * gains[count], (gains[:-1] + count * np.diff(gains)).min()))

    def _grow(self, count: int) -> None:
        if type(count) is int and 0 <= count <= self._known:
            return
        count = integer("count", count, low=0, high=MOST_OBSERVATIONS, why="It is a number of observations.")
        if count > len(self._order):
            room = max(count, 2 * len(self._order))
            self._order = np.resize(self._order, room)
            self._gains = np.resize(self._gains, room + 1)
        posterior = self._posterior
        while self._known < count:
            _, std = posterior.predict()
            arm = int((std >= (1.0 - TIES) * std.max()).argmax())
            posterior.append(arm, 0.0)
            self._order[self._known] = arm
            self._known += 1
            self._gains[self._known] = posterior.information_gain


@final
class Spectrum:
    """Bounds of gamma_T by the eigenvalues of the kernel matrix over all arms (Srinivas et al. 2010, section 5.1).

    Args:
        eigenvalues: of the kernel matrix, `(r,)`, in any order; zeros may be left out.
        regularization: lambda, reward units squared.
        residual: what the eigenvalues leave out: largest diagonal entry of the rest of the kernel matrix.
    """

    def __init__(self, eigenvalues: npt.ArrayLike, regularization: float, *, residual: float = 0.0) -> None:
        values = np.atleast_1d(finite_array("eigenvalues", eigenvalues))
        if values.ndim != 1:
            raise InvalidInput(f"`eigenvalues` has shape {values.shape}: it must be (r,), a number for each mode.")
        size = float(np.abs(values).max(initial=0.0))
        if (values < -1e-8 * size).any():
            raise InvalidInput(
                f"`eigenvalues` has {values.min():g}: those of a covariance matrix are not negative. Usually the "
                "matrix was not symmetric, or not a covariance."
            )
        self.eigenvalues = frozen(np.sort(np.maximum(values, 0.0))[::-1].copy())
        if size > LARGEST_REWARD:
            raise InvalidInput(
                f"`eigenvalues` has {size:g}, beyond {LARGEST_REWARD:g}: change the unit of the rewards."
            )
        self.regularization = number("regularization", regularization, low=LEAST_RIDGE, high=LARGEST_VARIANCE)
        self.residual = number("residual", residual, low=0.0, high=LARGEST_REWARD)
        # What the rest E of the kernel matrix can add for an observation: log det(I + A + E) <= log det(I + A) + tr E.
        self._left_out = 0.5 * self.residual / self.regularization
        # 1 / a_i with a_i = lambda_i / lambda; modes that could not be told from 0 have no use for an observation.
        kept = self.eigenvalues[self.eigenvalues > 1e-150 * self.regularization]
        self._inverse = self.regularization / kept

    @classmethod
    def of(cls, kernel: Kernel, points: Arms | npt.ArrayLike, regularization: float) -> Self:
        """The spectrum over these arms: O(N r^2) where the kernel matrix has low rank r, O(N^3) where not."""
        check_kernel("kernel", kernel)
        arms = _finite(points).points
        size = number("regularization", regularization, low=0.0, open_low=True)
        tol = tolerance(kernel.arm_variances(arms), size)
        factor = pivoted_cholesky(kernel, arms, tol=tol, max_rank=len(arms) // 4)
        if factor.complete:
            values = np.linalg.eigvalsh(factor.features.T @ factor.features)
            return cls(values, size, residual=factor.residual)
        return cls(np.linalg.eigvalsh(kernel.between_arms(arms, ALL, ALL)), size)

    def allocation(self, count: int) -> Array:
        """The whole numbers m_i, sum `count`, that maximise sum_i log(1 + m_i lambda_i / lambda), exactly.

        Mode i gains log(1 + 1 / (1 / a_i + m)) by its (m+1)-th observation, less with every m: so the best allocation
        takes the `count` smallest of all the numbers 1 / a_i + m. Filling to a level just below the one where
        they are `count` leaves fewer than r of them to be found by sorting: O(r log r) for any count.
        """
        count = integer("count", count, low=0)
        if not len(self._inverse):
            return np.zeros(0)
        bottoms = self._inverse - self._inverse[0]  # shifted: filling must not be rounded away where 1 / a_i is huge
        filled: Array = np.floor(np.maximum(_water_level(bottoms, count) - bottoms, 0.0))
        rest = count - int(filled.sum())
        if rest < 0:  # rounding of a level that hits whole numbers
            order = np.argsort(bottoms + filled)[::-1]
            filled[order[filled[order] > 0.0][:-rest]] -= 1.0
            rest = count - int(filled.sum())
        while rest > 0:
            # Every mode takes one more at most before the next look: a mode's own next number is larger by 1.
            order = np.argsort(bottoms + filled, kind="stable")[:rest]
            filled[order] += 1.0
            rest -= len(order)
        return filled

    def gain(self, count: int) -> float:
        """1/2 max over whole m of sum_i log(1 + m_i lambda_i / lambda): eq. 8 without its constant, and still a bound.

        Eq. 8 multiplies by (1 - 1/e)^{-1} because it comes through the greedy gain. Directly: with n_x the plays of arm
        x, the gain is 1/2 log det(I + K N / lambda) and majorisation (det(I + A B) <= prod_i (1 + a_i b_i) for positive
        semi-definite A, B with sorted eigenvalues; Marshall, Olkin & Arnold 2011, 9.H.1) bounds it by
        1/2 sum_i log(1 + lambda_i n_(i) / lambda), the sorted plays being whole numbers with sum T.
        """
        m = self.allocation(count)
        return 0.5 * float(np.log1p(m / self._inverse[: len(m)]).sum()) + self._left_out * count

    def gains(self, count: int) -> Array:
        """`gain` of 1, 2, ..., `count`, `(count,)`, in one go: O(count log count)."""
        count = integer("count", count, low=0, high=MOST_OBSERVATIONS)
        m = self.allocation(count).astype(np.intp)
        starts = np.repeat(np.cumsum(m) - m, m)
        numbers = np.sort(np.repeat(self._inverse[: len(m)], m) + (np.arange(len(starts)) - starts))
        curve = 0.5 * np.cumsum(np.log1p(1.0 / numbers)) if len(numbers) else np.zeros(count)
        return curve + self._left_out * np.arange(1, count + 1)

    def bound(self, count: int) -> float:
        """gamma_count <= 1/2 (1 - 1/e)^{-1} max_m sum_i log(1 + m_i lambda_i / lambda): eq. 8."""
        return NEAR_GREEDY * self.gain(count)

    def split_bound(self, count: int) -> float:
        """Theorem 4 with the constants of its proof (Lemma 7.8), at the best T_*.

        1/2 (1 - 1/e)^{-1} max_{1 <= r <= T} [T_* log(1 + r n_T / lambda) + (T - r) B(T_*) / lambda] with n_T the sum of
        all eigenvalues and B(T_*) that of all but the T_* largest. The paper drops the 1 in the logarithm, which its
        proof needs, and has r from 1: whatever T_*, the largest eigenvalue is allotted one of the T observations at
        least. Its asymptotic form is O((B(T_*) T + T_* log(n_T T)) / lambda). Never below eq. 8.
        """
        count = integer("count", count, low=0)
        values, ridge = self.eigenvalues, self.regularization
        total = float(values.sum())
        if count == 0 or total == 0.0:
            return NEAR_GREEDY * self._left_out * count
        heads = np.arange(1, min(count, len(values)) + 1, dtype=np.float64)  # T_*
        tails = np.cumsum(values[::-1])[::-1][1:]  # B(1), B(2), ...
        tails = np.append(tails, 0.0)[: len(heads)]
        # Concave in r: the best whole r >= 1 is next to the best real one, where 1 + r n_T / lambda = T_* n_T / B(T_*).
        with np.errstate(divide="ignore"):
            real = np.clip((heads * total / tails - 1.0) * ridge / total, 1.0, count)

        def value(r: Array) -> Array:
            return np.asarray(heads * np.log1p(r * total / ridge) + (count - r) * tails / ridge)

        best = np.maximum(value(np.floor(real)), value(np.ceil(real)))
        return NEAR_GREEDY * (0.5 * float(best.min()) + self._left_out * count)


def _water_level(bottoms: Array, amount: float) -> float:
    """The level w with sum_i (w - bottom_i)^+ = amount, for `bottoms` in ascending order, the first of them 0."""
    levels = (amount + np.cumsum(bottoms)) / np.arange(1, len(bottoms) + 1)  # if the first k are under water
    wet = np.flatnonzero(levels > bottoms)
    return float(levels[wet[-1]]) if len(wet) else 0.0
