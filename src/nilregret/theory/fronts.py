"""Fronts of several objectives: dominance, volumes, and the expected improvement of a volume. All are maximised.

| symbol | name | meaning | shape |
|---|---|---|---|
| Y | `values`, `front` | objectives at n points | (n, k) |
| r | `reference` | the corner below which nothing counts | (k,) |
| mu, sigma | `mean`, `std` | posteriors of k independent objectives at n candidates | (k, n) |
| l, u | `low`, `high` | boxes that tile what is above r and not dominated by Y | (b, k) |
| lambda | `weights` | a direction, positive | (k,) |
| E(t) | | E max(f - t, 0) = sigma h((mu - t) / sigma) | |
| h(z) | `log_h` | phi(z) + z Phi(z) | |

The hypervolume HV(Y) is the volume of the points above r that some row of Y dominates.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.randomness import Draws

LEAST_STD = 1e-100  # lower limit of sigma, which keeps z finite
FAR_OUT = -1e4  # z below which 1 - |z| R(z), R the Mills ratio, is taken from its asymptotic series
MOST = 1e100  # upper limit of |z|, whose square must not overflow
SUREST = 1e150  # upper limit of z where a difference of E keeps its size
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
MARGIN = 0.1  # distance of the reference from the worst value that counts, as a share of the objective's size
FLAT = 1e-9  # share of the range of all answers below which the quartile is the best answer
TOLERANCE = 0.01  # share of a size by which a point may be worse and still hide another
REACH = 3.0  # sizes of the front, divided by its points, by which the reference is below its nadir
LOW, LEAST = 0.25, 0.2  # A front has this share, 0.2, of the way from the lower quartile of all answers, at least.
ROUNDED = 1e-12  # share of the largest value below which a range is rounding error
NARROW = 1e-4  # sides, in units of the decay of Phi, below which a box is as good as its middle
MOST_AT_ONCE = 2**20  # boxes times candidates in memory at once
LEAST_WEIGHT = 1e-9  # lower limit of a coordinate of a direction, against division by 0
DEPTH = 36.0  # twice the nats by which the probability of an improvement falls over the range of integration
CERTAIN = 6.0  # standard deviations below the mean down to which f exceeds a level for sure
NODES = 6, 12, 16  # of the quadrature: where all objectives are certain, where the first to fail is, and beyond


class Slopes(NamedTuple):
    """Values of n candidates with their derivatives.

    Attributes:
        values: `(n,)`.
        by_mean: derivatives in the mean of each objective, `(k, n)`.
        by_std: derivatives in the standard deviation of each objective, `(k, n)`.
    """

    values: Array
    by_mean: Array
    by_std: Array


def non_dominated(values: Array) -> npt.NDArray[np.bool_]:
    """Returns a mask `(n,)` of the rows that no other row dominates. Equal rows are all kept.

    A row dominates another that it is nowhere below and somewhere above.
    """
    kept = np.zeros(len(values), dtype=bool)
    left = np.lexsort(-values.T[::-1])  # No row is dominated by one that comes later.
    while len(left):
        best, rows = values[left[0]], values[left]
        equal = (rows == best).all(axis=1)
        kept[left[equal]] = True
        left = left[(rows > best).any(axis=1) & ~equal]
    return kept


def boxes(front: Array, reference: Array) -> tuple[Array, Array]:
    """Returns disjoint boxes `low`, `high`, `(b, k)` each, that tile what is above r and not dominated by the front.

    The first side of each box has no upper end, and others have none where nothing bounds them. With two objectives
    these are strips, one more than points, with three at most two for each point and one more.

    Each local lower bound l (Klamroth, Lacour & Vanderpooten 2015, Algorithm 3, with signs turned) is a corner of what
    is not dominated. Its coordinate j is that of a point z^j. The box of l reaches from l_j to min_(i < j) z^i_j
    (Lacour, Klamroth & Fonseca 2017, eq. 2). Ties are broken as if later points were a little lower.

    Args:
        front: points, `(n, k)`. Those that are dominated, or not above r in all objectives, do not matter.
        reference: r, `(k,)`.
    """
    k = len(reference)
    rows = front[(front > reference).all(axis=1)]
    rows = np.unique(rows[non_dominated(rows)], axis=0)
    own = np.eye(k, dtype=bool)
    low, ends = reference[None], np.where(own, reference, np.inf)[None]  # ends[b, i] is z^i of bound b
    for point in rows:
        cut = (point > low).all(axis=1)
        inside, by = low[cut], ends[cut]
        at, j = np.nonzero(point <= np.where(own, np.inf, by).min(axis=1))
        each = np.arange(len(at))
        corners, bounds = inside[at], by[at]
        corners[each, j], bounds[each, j] = point[j], point
        low, ends = np.concatenate([low[~cut], corners]), np.concatenate([ends[~cut], bounds])
    before = np.tri(k, k=-1, dtype=bool).T  # i < j
    high = np.where(before, ends, np.inf).min(axis=1)
    some = (low < high).all(axis=1)
    return low[some], high[some]


def hypervolume(values: Array, reference: Array) -> float:
    """Returns the volume of what is above the reference and dominated by the values `(n, k)`, exactly.

    The first side of the boxes that are not dominated begins where the points end that are.
    """
    low, high = boxes(values, reference)
    under = low[:, 0] > reference[0]
    sides = (high - low)[under]
    sides[:, 0] = low[under, 0] - reference[0]
    return float(sides.prod(axis=1).sum())


def reference_point(values: Array, front: Array, *, reach: float = REACH) -> Array:
    """Returns r_i = N_i - (ideal_i - N_i) / 10, `(k,)`, with N_i below the worst value of the front.

    Here ideal_i and nadir_i are the best and the worst value of a front of f points. N_i is nadir_i less 3 / f of their
    difference, or the worst answer if that is higher. A reference at the nadir would keep a short front short. One at
    the worst answer would count the ends of the front for more than its middle.

    Their difference counts as a fifth, at least, of the way from the lower quartile of all answers to the best. For a
    flat objective it counts as all of that way, or the range of all answers, or 1. Otherwise trials that are the best
    in an objective by a hair would shrink it to nothing.

    A point does not count for the nadir if a better one is nowhere worse by more than 1 / 100 of a size. Otherwise an
    objective that is flat at its best would push the others out.

    Args:
        values: all answers, `(n, k)`.
        front: those that no other dominates, `(f, k)`.
        reach: the number that is 3 by default.
    """
    values, front = values if len(values) else front, front if len(front) else values
    if not len(values):
        return np.full(values.shape[1], -MARGIN)
    ideal, spread = front.max(axis=0), np.ptp(np.concatenate([values, front]), axis=0)
    spread = np.where(spread > ROUNDED * np.abs(ideal), spread, 1.0)
    usual = ideal - np.quantile(values, LOW, axis=0)
    usual = np.where(usual > FLAT * spread, usual, spread)
    least = TOLERANCE * usual
    thin = _thinned(front, TOLERANCE * np.maximum(np.ptp(front, axis=0), least))
    nadir = thin.min(axis=0)
    size = np.where(ideal - nadir > least, np.maximum(ideal - nadir, LEAST * usual), usual)
    worst = np.maximum(np.minimum(nadir, values.min(axis=0)), nadir - reach / len(thin) * size)
    return np.asarray(worst - MARGIN * np.where(ideal - worst > least, ideal - worst, usual))


def _thinned(front: Array, slack: Array) -> Array:
    """Returns the points of a front that no better one beats but for a slack in each objective, `(k,)`."""
    size = np.ptp(front, axis=0)
    rank = (front / np.where(size > 0.0, size, 1.0)).sum(axis=1)
    kept: list[int] = []
    for i in np.argsort(-rank, kind="stable"):
        if not (front[kept] >= front[i] - slack).all(axis=1).any():
            kept.append(int(i))
    return np.asarray(front[kept])


def log_h(z: Array) -> Array:
    """Returns log of h(z) = phi(z) + z Phi(z) for every z.

    The formula itself serves large z, and a scaled erfc all others.
    """
    from scipy.special import erfcx, ndtr  # slow to import, and few scores need it

    high = z > -1.0
    if some := np.count_nonzero(high):
        if some == high.size:
            return np.asarray(np.log(np.exp(-0.5 * z**2 - LOG_SQRT_2PI) + z * ndtr(z)))
        log_h_z = np.empty_like(z)
        log_h_z[high], log_h_z[~high] = log_h(z[high]), log_h(z[~high])
        return log_h_z
    # h = phi(z) (1 - |z| R(|z|)), R(x) = sqrt(pi / 2) erfcx(x / sqrt 2); 1 - |z| R -> 1 / z^2 - 3 / z^4 + ...
    near = np.maximum(z, FAR_OUT)
    rest = np.log1p(near * math.sqrt(0.5 * math.pi) * erfcx(-near / math.sqrt(2.0)))
    if np.count_nonzero(far := z <= FAR_OUT):
        rest = np.where(far, -2.0 * np.log(-z), rest)
    return np.asarray(-0.5 * z**2 - LOG_SQRT_2PI + rest)


def log_ehvi(mean: Array, std: Array, tiles: tuple[Array, Array]) -> Array:
    """Returns the logarithm of the expected hypervolume improvement of n candidates, `(n,)`.

    A point y adds the volume sum_b prod_i max(min(y_i, u_bi) - l_bi, 0). As the objectives are independent, its mean is

        EHVI = sum_b prod_i [E_i(l_bi) - E_i(u_bi)],   E_i(t) = sigma_i h((mu_i - t) / sigma_i)

    (Emmerich, Yang, Deutz, Wang & Fonseca 2016 for two objectives, Yang, Emmerich, Deutz & Back 2019 for more). In
    logarithms nothing underflows, and gradients stay where EHVI is 0 to machine precision (Ament et al. 2023).

    Args:
        mean: `(k, n)`.
        std: `(k, n)`.
        tiles: `low` and `high` of `boxes`.
    """
    most = max(MOST_AT_ONCE // len(tiles[0]), 1)
    return np.concatenate(
        [
            _sums([_Sides(*each).logs for each in zip(m, s, tiles[0].T, tiles[1].T, strict=True)])[0]
            for m, s in ((mean[:, i : i + most], std[:, i : i + most]) for i in range(0, mean.shape[1], most))
        ]
    )


def log_ehvi_slopes(mean: Array, std: Array, tiles: tuple[Array, Array]) -> Slopes:
    """Returns `log_ehvi` with its derivatives in each mean and standard deviation."""
    sides = [_Sides(*each) for each in zip(mean, std, tiles[0].T, tiles[1].T, strict=True)]
    values, shares = _sums([side.logs for side in sides])
    slopes = [side.slopes() for side in sides]
    by_mean, by_std = (np.array([(shares * each[i]).sum(axis=0) for each in slopes]) for i in (0, 1))
    return Slopes(values, by_mean, by_std)


def _sums(logs: list[Array]) -> tuple[Array, Array]:
    """Returns the log of the sum of products `(n,)` and the share of each in it, `(b, n)`, from logs of the factors."""
    each = np.sum(logs, axis=0)
    top = each.max(axis=0)
    shares = np.exp(each - top)
    total = shares.sum(axis=0)
    return np.asarray(top + np.log(total)), np.asarray(shares / total)


class _Sides:
    """Expected lengths E(l) - E(u) of the sides of b boxes in one objective, in logarithms `(b, n)`."""

    def __init__(self, mean: Array, std: Array, low: Array, high: Array) -> None:
        self._std = std = np.maximum(std, LEAST_STD)
        cuts, at = np.unique(np.concatenate([low, high]), return_inverse=True)  # Neighbours share most cuts.
        self._z = np.clip((mean - cuts[:, None]) / std, -MOST, SUREST)
        self._low, self._high = at[: len(low)], at[len(low) :]
        logs = np.log(std) + log_h(self._z)
        above, below = logs[self._low], logs[self._high]
        length = (high - low)[:, None] / std
        # Of E(l) - E(u), the integral of Phi((mu - t) / sigma), little is left by subtraction if l is close to u.
        self._narrow = length * (1.0 + np.abs(self._z[self._low])) < NARROW
        middle = np.broadcast_to(0.5 * (low + high)[:, None], length.shape)[self._narrow]
        spread = np.broadcast_to(std, length.shape)[self._narrow]
        self._middle = np.clip((np.broadcast_to(mean, length.shape)[self._narrow] - middle) / spread, -MOST, MOST)
        gap = np.where(self._narrow, -1.0, np.minimum(below - above, -1e-300))
        self.logs = above + np.log(-np.expm1(gap))
        self.logs[self._narrow] = np.log(length[self._narrow] * spread) + log_distribution(self._middle)

    def slopes(self) -> tuple[Array, Array]:
        """Returns the derivatives of the logarithms in mean and standard deviation, each `(b, n)`."""
        log_p, log_d = log_distribution(self._z), -0.5 * self._z**2 - LOG_SQRT_2PI
        found = []
        # dE / dmu = Phi(z), dE / dsigma = phi(z). Far out, the part beyond u is nothing.
        for logs, far in ((log_p, -self._z), (log_d, self._z**2)):
            with np.errstate(over="ignore", invalid="ignore"):
                above, below = np.exp(logs[self._low] - self.logs), np.exp(logs[self._high] - self.logs)
            found.append(np.where(self._z[self._low] > FAR_OUT, above - below, (far / self._std)[self._low]))
        rate = hazard(self._middle) / np.broadcast_to(self._std, self.logs.shape)[self._narrow]
        found[0][self._narrow], found[1][self._narrow] = rate, -self._middle * rate
        return found[0], found[1]


def log_distribution(z: Array) -> Array:
    """Returns log Phi(z)."""
    from scipy.special import log_ndtr  # slow to import, and few scores need it

    return np.asarray(log_ndtr(z))


def hazard(z: Array) -> Array:
    """Returns phi(z) / Phi(z), the derivative of log Phi(z)."""
    near = np.maximum(z, FAR_OUT)
    return np.where(z > FAR_OUT, np.exp(-0.5 * near**2 - LOG_SQRT_2PI - log_distribution(near)), -z)


def volume_constant(k: int) -> float:
    """Returns c_k = pi^(k/2) / (2^k Gamma(k/2 + 1)), the volume of the positive part of the unit ball."""
    return float(math.pi ** (0.5 * k) / (2.0**k * math.gamma(0.5 * k + 1.0)))


def sphere(draws: Draws, n: int, k: int) -> Array:
    """Returns n directions drawn uniformly from the positive part of the unit sphere, `(n, k)`."""
    normal = np.abs(draws.standard_normal((n, k)))
    return np.asarray(np.maximum(normal / np.linalg.norm(normal, axis=1)[:, None], LEAST_WEIGHT))


def scalarised(values: Array, weights: Array, reference: Array) -> Array:
    """Returns s(y) = min_i (y_i - r_i) / lambda_i of each point, `(n,)`, or `(w, n)` for weights `(w, k)`.

    With lambda uniform on the positive unit sphere (Golovin & Zhang 2020, Lemma 5),

        HV(Y) = c_k E_lambda max_y max(s(y), 0)^k.

    Args:
        values: `(n, k)`.
        weights: lambda, `(k,)` or `(w, k)`.
        reference: r, `(k,)`.
    """
    return np.asarray(((values - reference) / weights[..., None, :]).min(axis=-1))


def log_scalarised_improvement(mean: Array, std: Array, weights: Array, best: float) -> Slopes:
    """Returns log of E max(s(f)^k - best^k, 0), with derivatives, for independent objectives and r = 0.

    Since s(f) > t where every f_i > lambda_i t,

        E = integral from `best` of k t^(k-1) prod_i Phi((mu_i - lambda_i t) / sigma_i) dt.

    Gauss-Legendre quadrature is in three parts. The first ends where some objective is no longer certain, the second
    where the one that fails first is not. Over lambda uniform on the positive sphere and `best` = max_y s(y), c_k E is
    EHVI in the mean.

    Args:
        mean: `(k, n)`, less the reference.
        std: `(k, n)`.
        weights: lambda, `(k,)`.
        best: the largest s(y) known, at least 0.
    """
    std = np.maximum(std, LEAST_STD)
    pace = std / weights[:, None]  # of t, in which z of an objective falls by 1
    z = np.clip((mean - weights[:, None] * best) / std, -MOST, MOST)
    # log Phi falls by DEPTH / 2 from z to -sqrt(DEPTH) if z >= 0, and otherwise to -sqrt(z^2 + DEPTH).
    below = np.minimum(z, 0.0)
    reach = (np.maximum(z, 0.0) + DEPTH / (np.sqrt(below**2 + DEPTH) - below)) * pace
    first = reach.argmin(axis=0)[None]
    end = np.take_along_axis(reach, first, axis=0)[0]
    certain = np.maximum(z - CERTAIN, 0.0) * pace
    step, log_weight = _quadrature(certain.min(axis=0), np.take_along_axis(certain, first, axis=0)[0], end)
    at = z[:, None] - step / pace[:, None]  # (k, q, n)
    k = len(weights)
    with np.errstate(divide="ignore"):  # A part without length begins at t = 0.
        terms = log_weight + math.log(k) + (k - 1) * np.log(best + step) + log_distribution(at).sum(axis=0)
    values, shares = _sums([terms])
    rates = shares * hazard(at) / std[:, None]
    return Slopes(values, rates.sum(axis=1), -(rates * at).sum(axis=1))


def _quadrature(*ends: Array) -> tuple[Array, Array]:
    """Returns nodes and logarithms of weights, `(q, n)` each, for integrals from 0 to the first end, and on to each."""
    steps, logs = [], []
    for count, start, end in zip(NODES, (np.zeros_like(ends[0]), *ends), ends, strict=False):
        nodes, weights = _legendre(count)
        with np.errstate(divide="ignore"):  # A part without length has no weight.
            logs.append(np.log(weights) + np.log(end - start))
        steps.append(start + nodes * (end - start))
    return np.concatenate(steps), np.concatenate(logs)


@lru_cache(maxsize=4)
def _legendre(count: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes[:, None] + 1.0), 0.5 * weights[:, None]
