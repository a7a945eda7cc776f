"""Theorem 3.1 of Avanesov for GP-UCB-CPD: eq. 3.9, (A.7), and the pairs needed for a detection, (C.13).

| symbol | name | meaning | unit |
|---|---|---|---|
| T_i | `periods` | lengths of the K stationary periods; T is their sum | rounds |
| alpha, d | `alpha`, `dimension` | smoothness of the kernel, coordinates of a point | |
| Delta^2 | `distance` | smallest squared L2 distance of two consecutive functions, eq. 3.3 | reward^2 |
| n* | `pairs` | pairs after a change with which it is detected | |
| F, g | `norm_bound`, `noise` | bound on the norms of the functions, sub-Gaussian constant | reward |
| xi | `exploration` | | |
| D | `constant` | beta_t eta_t <= D t^{2 d(d+1) / (2 alpha + d(d+1))} log^3 T; the paper gives no value for it | |
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..._utils.checks import integer, many, number, shown
from ...errors import InvalidInput
from .schedules import detection_exponent, ucb_regularization


def regret_exponent(alpha: float, dimension: int) -> float:
    """Returns (2 alpha + 3 d(d+1)) / (4 alpha + 2 d(d+1)), the power of each period's length in the regret.

    It is 1/2 for infinite alpha.

    >>> import nilregret as nr
    >>> round(nr.theory.regret_exponent(2.5, 1), 3)
    0.786
    """
    detection_exponent(alpha, dimension)  # checks both
    pairs = dimension * (dimension + 1)
    return 0.5 + pairs / (2.0 * alpha + pairs)


def pairs_to_detect(distance: float, *, alpha: float, dimension: int, level: float) -> float:
    """Returns n* = 2 (level / Delta^2)^{1 + 1 / (2 alpha + d)}, (C.13). n* pairs in each half detect a change.

    At n* the threshold of eq. 3.6 is 2^{-(2 alpha + d) / (2 alpha + d + 1)} Delta^2.

    Args:
        distance: Delta^2, reward units squared, averaged or integrated as in the detector.
        alpha: smoothness of the kernel, possibly infinite.
        dimension: d.
        level: C (F^2 + x^2 g^2), the constant of the threshold (`threshold_level`, or a calibrated one).

    >>> import nilregret as nr
    >>> round(nr.theory.pairs_to_detect(0.5, alpha=2.5, dimension=1, level=2.6), 1)
    13.7
    """
    squared = number("distance", distance, low=0.0, open_low=True, why="Equal functions cannot be told apart.")
    ratio = number("level", level, low=0.0, open_low=True) / squared
    return 2.0 * math.pow(ratio, 1.0 / detection_exponent(alpha, dimension))  # 1 / (...) is 1 + 1 / (2 alpha + d)


def gp_ucb_cpd_regret_rate(
    periods: Sequence[int], *, alpha: float, dimension: int, distance: float, constant: float = 1.0
) -> float:
    """Returns the order of E[R_T] in eq. 3.9, times `constant`: Delta^{-(2 + 2 / (2 alpha + d))} sum_i T_i^e log^3 T.

    e is `regret_exponent`. For K equal periods the sum is the second line of eq. 3.9, K^{1 - e} T^e, the largest sum
    for K periods. The theorem hides the constant, so nothing is proved about the size.

    Args:
        periods: T_1, ..., T_K.
        alpha: smoothness of the kernel, possibly infinite.
        dimension: d.
        distance: Delta^2, reward units squared.
        constant: multiplier of the order.

    >>> import nilregret as nr
    >>> given = {"alpha": 2.5, "dimension": 1, "distance": 0.5}
    >>> short = nr.theory.gp_ucb_cpd_regret_rate([1000, 1000], **given)
    >>> round(nr.theory.gp_ucb_cpd_regret_rate([2000, 2000], **given) / short, 2)
    2.24
    """
    lengths, exponent = _lengths(periods), regret_exponent(alpha, dimension)
    squared = number("distance", distance, low=0.0, open_low=True, why="Equal functions cannot be told apart.")
    harder = math.pow(squared, -1.0 / detection_exponent(alpha, dimension))
    total = sum(math.pow(length, exponent) for length in lengths)
    return number("constant", constant, low=0.0) * harder * total * math.log(sum(lengths)) ** 3


def gp_ucb_cpd_regret_bound(
    periods: Sequence[int],
    *,
    alpha: float,
    dimension: int,
    noise: float,
    norm_bound: float,
    pairs: float,
    constant: float,
    exploration: float = 3**0.5,
    largest_regret: float | None = None,
) -> float:
    """Returns the right side of (A.7): a bound on R_T with probability at least 1 - 7/T, if `constant` is large enough.

    The paper gives no value that is, and nothing is proved for D = 1. (Its 6/T comes from the slip described in
    `PeriodRkhs`.) The number is sqrt(8 D log^3 T / log(1 + sigma^{-2}))
    sum_i T_i^e + l (xi + 2 n* (2/xi + 1/xi^2)) sum_i sqrt(T_i). It has sigma^2 of eq. 3.4, e = `regret_exponent` and l
    the largest regret of a round. k(x, x) <= 1 is assumed. It is given as printed, although line 6 of Algorithm 2 may
    play one more uniform round in a period than xi sqrt(T_i). That is another l for each.

    Args:
        periods: T_1, ..., T_K. They must satisfy (A.6), n* (2/xi + 1/xi^2) sqrt(2 max T_i) <= min T_i. Otherwise a
            period may end before the change at its beginning was detected, and the theorem says nothing.
        alpha: smoothness of the kernel, possibly infinite.
        dimension: d.
        noise: g, the sub-Gaussian constant of the noise, reward units.
        norm_bound: F.
        pairs: n*, from `pairs_to_detect`.
        constant: D, such that beta_t eta_t <= D t^{2 d(d+1) / (2 alpha + d(d+1))} log^3 T for all t. It is not the D of
            (A.3), since (A.13) drops the 300 of (A.3) and the constant of Lemma B.7.
        exploration: xi.
        largest_regret: l, reward units, by default 2 F. The paper has F (A.8), which bounds abs(f), and so the regret
            of a round if rewards are never negative.

    Raises:
        InvalidInput: if the periods break (A.6).

    >>> import nilregret as nr
    >>> given = {"alpha": 2.5, "dimension": 1, "noise": 0.05, "norm_bound": 1.0, "pairs": 14.0}
    >>> short = nr.theory.gp_ucb_cpd_regret_bound([50_000, 50_000], constant=1.0, **given)
    >>> long = nr.theory.gp_ucb_cpd_regret_bound([100_000, 100_000], constant=1.0, **given)
    >>> round(long / short, 2)
    1.88
    """
    lengths, exponent = _lengths(periods), regret_exponent(alpha, dimension)
    T, F = sum(lengths), number("norm_bound", norm_bound, low=0.0)
    xi = number("exploration", exploration, low=0.0, open_low=True, why="Without uniform rounds nothing is detected.")
    needed, D = number("pairs", pairs, low=0.0), number("constant", constant, low=0.0, open_low=True)
    delay = needed * (2.0 / xi + 1.0 / xi**2)  # times sqrt(T_i + T_{i+1}): rounds until a change is seen, (A.10)
    if delay * math.sqrt(2.0 * max(lengths)) > min(lengths):
        raise InvalidInput(
            f"The shortest of the periods has {many(min(lengths), 'round')}, and (A.6) asks for "
            f"{delay * math.sqrt(2.0 * max(lengths)):.0f}: a change needs about {needed:.3g} uniform pairs to be seen. "
            "Periods that are longer, changes that are larger, or a larger `exploration` make the theorem hold."
        )
    ridge = ucb_regularization(noise=noise, horizon=T)  # sigma^2
    learning = math.sqrt(8.0 * D * math.log(T) ** 3 / math.log1p(1.0 / ridge)) * sum(
        math.pow(length, exponent) for length in lengths
    )
    most = 2.0 * F if largest_regret is None else number("largest_regret", largest_regret, low=0.0)
    return learning + most * (xi + 2.0 * delay) * sum(math.sqrt(length) for length in lengths)


def _lengths(periods: Sequence[int]) -> list[int]:
    why = "They are the lengths of the stationary periods, in rounds."
    if not isinstance(periods, Sequence) or len(periods) == 0:
        raise InvalidInput(f"`periods` is {shown(periods)}: it must be a list of at least one length. {why}")
    lengths = [integer("periods", length, low=1, why=why) for length in periods]
    integer("periods", sum(lengths), low=2, why="Their sum is T, and the bounds grow with its logarithm.")
    return lengths
