"""Maximum information gain: upper bounds of the information about f in T rewards.

| symbol | name | meaning | shape |
|---|---|---|---|
| I | `gains` | gain 1/2 log det(I + K_A / lambda) of the first t greedy points, nats | (T,) |
| lambda | `regularization` | sigma^2 in Srinivas et al., lambda in Chowdhury & Gopalan | reward units^2 |
| gamma_T | `bound` | largest gain of T points with repeats, here from above | scalar |
| lambda_i | `eigenvalues` | of the kernel matrix over all arms, largest first | (r,) |
| m_i | `allocation` | number of the T observations that go to mode i | (r,) |

Srinivas et al. 2010, section 5. Finding gamma_T itself is NP-hard. The gain of known points needs no bound:
`posterior.information_gain` has it as a running sum.
"""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any, Literal, Self, final

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
from ..domains.domain import Arms, Box, Space
from ..errors import InvalidInput
from ..kernels import ALL, Active, Kernel, Linear, check_covariance, check_kernel
from ..kernels.factorization import pivoted_cholesky, tolerance
from .choice import posterior_on_arms

LEAST_RIDGE = 1e-150  # least lambda of a spectrum, against overflow of the eigenvalues divided by it
MOST_OBSERVATIONS = 10_000_000
NEAR_GREEDY = 1.0 / (1.0 - math.exp(-1.0))  # largest ratio of gamma_T to the greedy gain (Nemhauser et al. 1978)
TIES = 1e-10  # relative: the greedy arm must not depend on the rounding of an engine or machine
SEEN = 16  # points on which a kernel is checked
FIRST_ROOM = 256  # initial capacity for greedy points, doubled when it is used up
BOUNDS = ("greedy", "spectral", "split", "sharp", "linear", "realised")


def information_gain(
    kernel: Kernel,
    points: Arms | Box | Space | npt.ArrayLike,
    noise: float,
    *,
    bound: Literal["greedy", "spectral", "split", "sharp", "linear", "realised"] = "greedy",
    count: int | None = None,
) -> float:
    """Returns an upper bound of gamma_count, the largest information gain of `count` noisy rewards, in nats.

    Args:
        kernel: prior covariance.
        points: the arms, `Arms` or `(N, d)`. With contexts, one row for every (context, arm).
        noise: standard deviation sigma of the rewards' noise, reward units.
        bound: name of the bound. "greedy" is that of Srinivas et al. 2010, section 5.1. "spectral" is eq. 8, and
            "split" is Theorem 4 with its constants. "sharp" is the least bound proved here (see
            `GreedyDesign.sharp_bound` and `Spectrum.gain`). "linear" (C.3) is for `Linear` kernels and others of finite
            rank, also on boxes and spaces (see `linear_gain_bound`). "realised" is no bound, but the gain 1/2 log det(I
            + K / sigma^2) of the given points, each observed once.
        count: number of observations T. Not with "realised".

    Raises:
        InvalidInput: if `points` is not finite (a `Box`), unless the bound is "linear". Use a grid of it, or
            `information_gain_rate`.

    >>> import nilregret as nr
    >>> arms = nr.Arms.grid(0, 1, 50)
    >>> round(float(nr.information_gain(nr.SquaredExponential(0.2), arms.points, 0.1, count=10)), 1)
    22.8
    """
    one_of("bound", bound, BOUNDS)
    check_kernel("kernel", kernel)
    why = "It is a standard deviation."
    regularization = number("noise", noise, low=1e-150, high=LARGEST_REWARD, why=why) ** 2
    where: Any = points  # each bound checks it
    if bound == "realised":
        if count is not None:
            raise InvalidInput('`count` goes with upper bounds: the "realised" gain is that of all the points given.')
        return _realised(kernel, where, regularization)
    if count is None:
        raise InvalidInput(f"`count` is missing: the {bound} bound is that of so many observations.")
    count = integer("count", count, low=0, high=MOST_OBSERVATIONS, why="It is a number of observations.")
    if bound == "linear":
        return linear_gain_bound(kernel, where, regularization, count)
    if bound == "greedy":
        return GreedyDesign(kernel, where, regularization).bound(count)
    spectrum = Spectrum.of(kernel, where, regularization)
    if bound == "spectral":
        return spectrum.bound(count)
    if bound == "split":
        return spectrum.split_bound(count)
    return min(spectrum.gain(count), GreedyDesign(kernel, where, regularization).sharp_bound(count))


def linear_gain_bound(
    kernel: Kernel, points: Arms | Box | Space | npt.ArrayLike, regularization: float, count: int
) -> float:
    """Returns an upper bound of gamma_T for a kernel of finite rank (Srinivas et al. 2010, C.3).

    It is logarithmic in T on any domain. Let X have the points played as columns and D be the diagonal of X X^T. Then
    1/2 log det(I + X X^T s / lambda) <= 1/2 sum_i log(1 + D_ii s / lambda) (Hadamard), with s = `kernel.scale`. D_ii is
    at most T max x_i^2. As the logarithm is concave, the sum is also at most d log(1 + tr D s / (d lambda)) with tr D
    <= T max |x|^2. The result is the lesser of the two. If |x| <= 1 and s = 1, it is at most d/2 log(1 + T / lambda),
    the O(d log T) of the paper.

    Other kernels of finite `rank` r use the second bound, with tr D <= T max k(x, x). The matrix of the T points has at
    most r eigenvalues other than 0, and their sum is tr D.
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
def _linear_part(kernel: Kernel, squares: Array) -> tuple[float, Array] | None:  # noqa: ARG001 - only linear kernels use both
    """Returns the scale of a linear kernel and the squares of the coordinates that it sees, `(n, d)`, or None."""
    return None


@_linear_part.register
def _of_linear(kernel: Linear, squares: Array) -> tuple[float, Array] | None:
    return kernel.scale, squares


@_linear_part.register
def _of_active(kernel: Active, squares: Array) -> tuple[float, Array] | None:
    kernel.diagonal(squares[:1])  # Raises an error if the points lack columns that the kernel sees.
    return _linear_part(kernel.kernel, squares[:, list(kernel.dimensions)])


def effective_dimension(kernel: Kernel, points: Arms | npt.ArrayLike, regularization: float) -> int:
    """Returns the d of KernelUCB's regret O(sqrt(d T)).

    Valko et al. 2013, Definition 1, and Chowdhury & Gopalan 2017, section 4.1: min{j >= 1: j lambda log T >= sum_{i >
    j} lambda_i}. The lambda_i are the eigenvalues of the kernel matrix of the T points played, largest first. The
    number tells in about how many directions the data spread. It is at most T and at most the rank.

    Args:
        kernel: prior covariance.
        points: the T points played, `(T, d)`, with repeats, in any order.
        regularization: lambda, reward units squared.

    >>> import nilregret as nr
    >>> nr.theory.effective_dimension(nr.SquaredExponential(0.2), nr.Arms.grid(0, 1, 50), 0.01)
    6
    """
    ridge = number("regularization", regularization, low=0.0, open_low=True)
    check_kernel("kernel", kernel)
    values = np.maximum(np.linalg.eigvalsh(_kernel_matrix(kernel, points))[::-1], 0.0)
    size = float(values[0])
    values[values <= 1e-12 * len(values) * size] = 0.0  # rounding errors of a matrix of low rank
    tails = np.append(np.cumsum(values[::-1])[::-1][1:], 0.0)  # sum over i > j, j = 1, ..., T
    return int((np.arange(1, len(values) + 1) * ridge * math.log(len(values)) >= tails).argmax()) + 1


def _kernel_matrix(kernel: Kernel, points: Arms | npt.ArrayLike) -> Array:
    rows = _finite(points).points
    matrix = kernel.between_arms(rows, ALL, ALL) if isinstance(points, Arms) else kernel(rows, rows)
    check_covariance(kernel, matrix, len(rows))
    return matrix


def _realised(kernel: Kernel, points: Arms | npt.ArrayLike, regularization: float) -> float:
    matrix = _kernel_matrix(kernel, points)
    try:  # I + K / lambda is at least I, unless rounding hides I.
        factor = np.linalg.cholesky(np.eye(len(matrix)) + matrix / regularization)
    except np.linalg.LinAlgError as error:
        raise InvalidInput(
            f"The gain of {shown(kernel)} is lost in rounding: `noise` is too small beside it, or it is no covariance.",
            advice="Give more noise. `nilregret.testing.check_kernel` says what is wrong with a kernel of your own.",
        ) from error
    return float(np.log(factor.diagonal()).sum())


def _finite(points: Any) -> Arms:
    if isinstance(points, Box | Space):
        raise InvalidInput(
            f"`points` is {shown(points)}: these bounds are of finitely many arms. Give a grid of it (`Arms`, or "
            "`space.grid(...)`), or use `information_gain_rate`."
        )
    return points if isinstance(points, Arms) else Arms(points)


def _seen(kernel: Kernel, points: Any) -> Arms:
    """Returns the points as arms, on some of which the kernel is a covariance."""
    arms = _finite(points)
    some = np.unique(np.linspace(0, len(arms.points) - 1, SEEN).astype(np.intp))
    check_covariance(kernel, kernel.between_arms(arms.points, some, some), len(some))
    return arms


@final
class GreedyDesign:
    """Experimental design by rule (4): x_t = argmax sigma_{t-1}, which needs no rewards (Srinivas et al. 2010).

    The design grows on demand. The first request for T points costs T updates of the posterior on arms, and later
    requests cost nothing. The design is a function of its arguments, so callers with the same arguments may share it.
    Arms whose variance is within a relative 1e-10 of the largest are ties, and the first of them is taken.

    Args:
        kernel: prior covariance.
        points: the arms, `Arms` or `(N, d)`. With contexts, one row for every (context, arm).
        regularization: lambda, reward units squared.

    >>> import nilregret as nr
    >>> design = nr.theory.GreedyDesign(nr.SquaredExponential(0.2), nr.Arms.grid(0, 1, 11), 0.01)
    >>> design.order(3)
    array([ 0, 10,  5])
    """

    def __init__(self, kernel: Kernel, points: Arms | npt.ArrayLike, regularization: float) -> None:
        check_kernel("kernel", kernel)
        self.regularization = number("regularization", regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True)
        self._posterior = posterior_on_arms(_seen(kernel, points), kernel, self.regularization)
        self._known = 0
        self._order = np.zeros(FIRST_ROOM, dtype=np.intp)
        self._gains = np.zeros(FIRST_ROOM + 1)  # gains of the first 0, 1, 2, ... points

    def order(self, count: int) -> IndexArray:
        """Returns the indices of the first `count` greedy arms."""
        self._grow(count)
        return self._order[:count].copy()

    def gains(self, count: int) -> Array:
        """Returns the information gains of the first 1, 2, ..., `count` greedy points, nats, `(count,)`."""
        self._grow(count)
        return self._gains[1 : count + 1].copy()

    def gain(self, count: int) -> float:
        """Returns the gain of the first `count` greedy points, at least (1 - 1/e) gamma_count (eq. 5), nats."""
        self._grow(count)
        return float(self._gains[count])

    def bound(self, count: int) -> float:
        """Returns gamma_count <= (1 - 1/e)^{-1} I(greedy points) of section 5.1.

        It takes constant time once the design has grown.
        """
        return NEAR_GREEDY * self.gain(count)

    def sharp_bound(self, count: int) -> float:
        """Returns the least of `bound` and I_s + count (I_{s+1} - I_s), s <= count.

        It is closer to I if gains have slowed. By submodularity the best `count` points add at most `count` times the
        largest single gain to any set, here the first s greedy points. (Minoux 1978, and Nemhauser et al. 1978, eq. 4.)
        It takes O(count).
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
        eigenvalues: eigenvalues of the kernel matrix, `(r,)`, in any order. Zeros may be left out.
        regularization: lambda, reward units squared.
        residual: largest diagonal entry of the part of the kernel matrix that the eigenvalues leave out.

    >>> import nilregret as nr
    >>> spectrum = nr.theory.Spectrum([3.0, 1.0], 0.1)
    >>> round(spectrum.gain(10), 2)
    4.47
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
        # The rest E of the kernel matrix adds at most log det(I + A + E) <= log det(I + A) + tr E for an observation.
        self._left_out = 0.5 * self.residual / self.regularization
        # 1 / a_i with a_i = lambda_i / lambda. Modes that are practically 0 get no observation.
        kept = self.eigenvalues[self.eigenvalues > 1e-150 * self.regularization]
        self._inverse = self.regularization / kept

    @classmethod
    def of(cls, kernel: Kernel, points: Arms | npt.ArrayLike, regularization: float) -> Self:
        """Returns the spectrum over these arms.

        It takes O(N r^2) if the kernel matrix has low rank r, and O(N^3) otherwise.
        """
        check_kernel("kernel", kernel)
        arms = _seen(kernel, points).points
        size = number("regularization", regularization, low=0.0, open_low=True)
        tol = tolerance(kernel.arm_variances(arms), size)
        factor = pivoted_cholesky(kernel, arms, tol=tol, max_rank=len(arms) // 4)
        if factor.complete:
            values = np.linalg.eigvalsh(factor.features.T @ factor.features)
            return cls(values, size, residual=factor.residual)
        return cls(np.linalg.eigvalsh(kernel.between_arms(arms, ALL, ALL)), size)

    def allocation(self, count: int) -> Array:
        """Returns the whole numbers m_i with sum `count` that maximise sum_i log(1 + m_i lambda_i / lambda), exactly.

        Mode i gains log(1 + 1 / (1 / a_i + m)) from its (m+1)-th observation, less with every m. So the best allocation
        takes the `count` smallest of all the numbers 1 / a_i + m. Filling to a level just below that of `count` numbers
        leaves fewer than r of them. Sorting finds these: O(r log r) for any count.
        """
        count = integer("count", count, low=0)
        if not len(self._inverse):
            return np.zeros(0)
        # Shifted, since filling must not be rounded away where 1 / a_i is huge.
        bottoms = self._inverse - self._inverse[0]
        filled: Array = np.floor(np.maximum(_water_level(bottoms, count) - bottoms, 0.0))
        rest = count - int(filled.sum())
        if rest < 0:  # A level at whole numbers may be rounded up.
            order = np.argsort(bottoms + filled, kind="stable")[::-1]
            filled[order[filled[order] > 0.0][:-rest]] -= 1.0
            rest = count - int(filled.sum())
        while rest > 0:
            # A mode's own next number is larger by 1, so each mode takes at most one more in each pass.
            order = np.argsort(bottoms + filled, kind="stable")[:rest]
            filled[order] += 1.0
            rest -= len(order)
        return filled

    def gain(self, count: int) -> float:
        """Returns 1/2 max over whole m of sum_i log(1 + m_i lambda_i / lambda), a bound without the constant of eq. 8.

        Eq. 8 multiplies by (1 - 1/e)^{-1} because it comes through the greedy gain. A direct proof does without. With
        n_x the plays of arm x, the gain is 1/2 log det(I + K N / lambda). Majorisation bounds it by 1/2 sum_i log(1 +
        lambda_i n_(i) / lambda), where the sorted plays are whole numbers with sum T. Majorisation is det(I + A B) <=
        prod_i (1 + a_i b_i) for positive semi-definite A, B with sorted eigenvalues (Marshall, Olkin & Arnold 2011,
        9.H.1).
        """
        m = self.allocation(count)
        return 0.5 * float(np.log1p(m / self._inverse[: len(m)]).sum()) + self._left_out * count

    def gains(self, count: int) -> Array:
        """Returns `gain` of 1, 2, ..., `count`, `(count,)`, together in O(count log count)."""
        count = integer("count", count, low=0, high=MOST_OBSERVATIONS)
        m = self.allocation(count).astype(np.intp)
        starts = np.repeat(np.cumsum(m) - m, m)
        numbers = np.sort(np.repeat(self._inverse[: len(m)], m) + (np.arange(len(starts)) - starts))
        curve = 0.5 * np.cumsum(np.log1p(1.0 / numbers)) if len(numbers) else np.zeros(count)
        return curve + self._left_out * np.arange(1, count + 1)

    def bound(self, count: int) -> float:
        """Returns gamma_count <= 1/2 (1 - 1/e)^{-1} max_m sum_i log(1 + m_i lambda_i / lambda): eq. 8."""
        return NEAR_GREEDY * self.gain(count)

    def split_bound(self, count: int) -> float:
        """Returns the bound of Theorem 4 with the constants of its proof (Lemma 7.8), at the best T_*.

        1/2 (1 - 1/e)^{-1} max_{1 <= r <= T} [T_* log(1 + r n_T / lambda) + (T - r) B(T_*) / lambda]. n_T is the sum of
        all eigenvalues, and B(T_*) that of all but the T_* largest. The paper drops the 1 in the logarithm, which its
        proof needs. It has r from 1, since for any T_* the largest eigenvalue gets at least one of the T observations.
        Its asymptotic form is O((B(T_*) T + T_* log(n_T T)) / lambda). The bound is never below eq. 8.
        """
        count = integer("count", count, low=0)
        values, ridge = self.eigenvalues, self.regularization
        total = float(values.sum())
        if count == 0 or total == 0.0:
            return NEAR_GREEDY * self._left_out * count
        heads = np.arange(1, min(count, len(values)) + 1, dtype=np.float64)  # T_*
        tails = np.cumsum(values[::-1])[::-1][1:]  # B(1), B(2), ...
        tails = np.append(tails, 0.0)[: len(heads)]
        # The bound is concave in r. So the best whole r >= 1 is next to the best real one, where
        # 1 + r n_T / lambda = T_* n_T / B(T_*).
        with np.errstate(divide="ignore"):
            real = np.clip((heads * total / tails - 1.0) * ridge / total, 1.0, count)

        def value(r: Array) -> Array:
            return np.asarray(heads * np.log1p(r * total / ridge) + (count - r) * tails / ridge)

        best = np.maximum(value(np.floor(real)), value(np.ceil(real)))
        return NEAR_GREEDY * (0.5 * float(best.min()) + self._left_out * count)


def _water_level(bottoms: Array, amount: float) -> float:
    """Returns the level w with sum_i (w - bottom_i)^+ = amount.

    `bottoms` is in ascending order and begins with 0.
    """
    levels = (amount + np.cumsum(bottoms)) / np.arange(1, len(bottoms) + 1)  # levels if the first k are under water
    wet = np.flatnonzero(levels > bottoms)
    return float(levels[wet[-1]]) if len(wet) else 0.0
