"""The schedules of Avanesov's GP-UCB-CPD, eq. 3.4-3.7, and its regret.

| symbol | name | meaning | unit |
|---|---|---|---|
| n | `n` | pairs in each half of a test | |
| alpha | `alpha` | smoothness of the kernel: nu of a Matern kernel, infinite for the squared exponential | |
| d | `dimension` | coordinates of a point | |
| g | `noise` | sub-Gaussian constant of the noise | reward |
| T | `horizon` | rounds in all | |
| n rho_n | ridge | added by the detector to the diagonal of k(x_i, x_j) | as k |
| theta_n | threshold | distance above which a change is reported | reward^2 |
| c, C, D | constants | of the ridge, the threshold, beta_t; Theorem 3.1 leaves them to the practitioner | |

The paper's experiments (Matern alpha = 5/2, d = 1, lengthscale 1 on [0, 5], g = 0.05) use D = 0.02 and theta_n = 2.6
n^{-6/7}. They state only the product C (F^2 + ...) = 2.6, neither C nor F, and no c. So the default `level` is 2.6. c
is 2 with distances averaged over the domain, and 10 with integrated ones. With these values false alarms are as rare as
in the paper's figures (`docs/change.md`). Both are in units of the prior variance.

Theorem 3.1 of Avanesov for GP-UCB-CPD: eq. 3.9, (A.7), and the pairs needed for a detection, (C.13).

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
from collections.abc import Callable, Sequence
from typing import final

from ..._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, integer, many, number, one_of, settle, shown
from ...errors import InvalidInput
from ...kernels import Kernel
from ...serialize import description

LEVEL = 2.6  # theta_1 in the paper's experiments, for prior variance 1
RIDGE_CONSTANT = {"average": 2.0, "integral": 10.0}  # c, for prior variance 1
BETA_CONSTANT = 0.02  # D in the paper's experiments

STEEPEST = 6.0  # largest exponent of a power law
MOST_LOG_POWER = 50.0
MOST_ROUNDS = 10_000_000  # largest number of rounds in a loop

Schedule = float | Callable[[int], float]


@final
@description(frozen=True)
class PowerLaw:
    """A map n -> constant * n^exponent, for n = 1, 2, ... `PowerLaw(2.6, -6 / 7)` is the paper's threshold.

    >>> import nilregret as nr
    >>> round(nr.theory.PowerLaw(2.6, -6 / 7)(10), 3)
    0.361
    """

    constant: float
    exponent: float = 0.0

    def __post_init__(self) -> None:
        constant = number("constant", self.constant, low=0.0, high=LARGEST_VARIANCE, open_low=True)
        settle(self, constant=constant)
        exponent = number("exponent", self.exponent, low=-STEEPEST, high=STEEPEST, why="It is the power of n.")
        settle(self, exponent=exponent)

    def __call__(self, n: int) -> float:
        """Returns the value at n."""
        return self.constant * math.pow(n, self.exponent)


def schedule_value(name: str, schedule: Schedule, n: int) -> float:
    """Returns the value at n of a number or of a function of n, positive and possibly infinite."""
    value = schedule(n) if callable(schedule) else schedule
    if isinstance(value, float) and value == math.inf:
        return value
    why = f"It is what `{name}` gives for n = {n}." if callable(schedule) else ""
    return number(name, value, low=0.0, high=LARGEST_VARIANCE, open_low=True, why=why)


def checked_schedule(name: str, schedule: float | PowerLaw | None) -> float | PowerLaw | None:
    """Returns a schedule that can be stored: a positive number, possibly infinite, a `PowerLaw`, or None."""
    if schedule is None or isinstance(schedule, PowerLaw):
        return schedule
    if callable(schedule):
        raise InvalidInput(
            f"`{name}` is {shown(schedule)}: a policy is stored with its schedules, so it must be a number or a "
            "`PowerLaw`.",
            advice="(`detect_change` and `ChangeDetector` take any function of n.)",
        )
    return schedule_value(name, schedule, 1)


def smoothness(kernel: Kernel) -> float | None:
    """Returns alpha: nu of a Matern kernel, infinity for a squared exponential one, or None if it is not stated.

    >>> import nilregret as nr
    >>> nr.theory.smoothness(nr.Matern(2.5, 0.2)), nr.theory.smoothness(nr.SquaredExponential(0.2))
    (2.5, inf)
    """
    return kernel.smoothness


def detection_exponent(alpha: float, dimension: int) -> float:
    """Returns (2 alpha + d) / (2 alpha + d + 1), the rate of eq. 3.5 and 3.6, or 1 for infinite alpha.

    >>> import nilregret as nr
    >>> round(nr.theory.detection_exponent(2.5, 1), 3)
    0.857
    """
    alpha, d = _alpha(alpha), integer("dimension", dimension, low=1)
    return 1.0 - 1.0 / (2.0 * alpha + d + 1.0)


def detection_ridge(alpha: float, dimension: int, *, constant: float) -> PowerLaw:
    """Returns the schedule n rho_n = c n^{1 / (2 alpha + d + 1)}, eq. 3.5: the ridge of each half, in units of k.

    >>> import nilregret as nr
    >>> round(nr.theory.detection_ridge(2.5, 1, constant=2.0)(128), 6)
    4.0
    """
    return PowerLaw(constant, 1.0 - detection_exponent(alpha, dimension))


def detection_threshold(alpha: float, dimension: int, *, level: float = LEVEL) -> PowerLaw:
    """Returns theta_n = level * n^{-(2 alpha + d) / (2 alpha + d + 1)}, eq. 3.6.

    See `threshold_level` for its constant.

    >>> import nilregret as nr
    >>> round(nr.theory.detection_threshold(2.5, 1)(128), 4)
    0.0406
    """
    return PowerLaw(level, -detection_exponent(alpha, dimension))


def threshold_level(
    *, norm_bound: float, noise: float, horizon: int, constant: float = 1.0, noise_power: float = 2.0
) -> float:
    """Returns C (F^2 + g^2 log^2 T), the constant of eq. 3.6 as its proof has it (A.5, C.12).

    Args:
        norm_bound: F, which bounds the RKHS norm of every period's function.
        noise: g, reward units.
        horizon: T.
        constant: C, which depends on the kernel and on c. The paper gives no value for it.
        noise_power: power of g. Eq. 3.6 prints g itself (1), which would depend on the unit of the rewards.

    >>> import nilregret as nr
    >>> round(nr.theory.threshold_level(norm_bound=1.0, noise=0.05, horizon=1000), 3)
    1.119
    """
    F = number("norm_bound", norm_bound, low=0.0, high=LARGEST_REWARD)
    g = number("noise", noise, low=0.0, high=LARGEST_REWARD)
    C = number("constant", constant, low=0.0, high=LARGEST_REWARD, open_low=True)
    power = number("noise_power", noise_power, low=0.0, high=2.0, why="The variance of the noise is its square.")
    return C * (F**2 + math.pow(g, power) * _log(horizon) ** 2)


def ucb_regularization(*, noise: float, horizon: int) -> float:
    """Returns sigma^2 = 6 g^2 log T, eq. 3.4, reward units^2.

    It is the ridge of the bandit's posterior (t rho_t, where eq. 3.5 has rho_t = sigma^2 / t).

    >>> import nilregret as nr
    >>> round(nr.theory.ucb_regularization(noise=0.05, horizon=1000), 3)
    0.104
    """
    return 6.0 * number("noise", noise, low=0.0, high=LARGEST_REWARD, open_low=True) ** 2 * _log(horizon)


def ucb_beta(
    t: int, *, alpha: float, dimension: int, horizon: int, constant: float = BETA_CONSTANT, log_power: float = 3.0
) -> float:
    """Returns beta_t = D t^{d(d+1) / (2 alpha + d(d+1))} log^p T, eq. 3.7.

    Its square root multiplies the standard deviation.

    Args:
        t: length of the history since the last restart, at least 1.
        alpha: smoothness. Infinity gives the power 0 of t.
        dimension: d.
        horizon: T, at least 2.
        constant: D.
        log_power: p. Eq. 3.7 prints 4: 3 of eq. A.3, 1 of Lemma B.7. With 3 the results match the paper's figures.

    >>> import nilregret as nr
    >>> round(nr.theory.ucb_beta(100, alpha=2.5, dimension=1, horizon=1000), 1)
    24.6
    """
    t, d = integer("t", t, low=1), integer("dimension", dimension, low=1)
    pairs = d * (d + 1)
    power = pairs / (2.0 * _alpha(alpha) + pairs)
    D = number("constant", constant, low=0.0, high=LARGEST_REWARD, open_low=True)
    p = number("log_power", log_power, low=0.0, high=MOST_LOG_POWER)
    return D * math.pow(t, power) * math.pow(_log(horizon), p)


def uniform_count(rounds: int, *, exploration: float = 3**0.5) -> int:
    """Returns how many of the first rounds after a restart are uniform in Algorithm 2.

    These are the rounds with |uniform| <= xi sqrt(t).

    >>> import nilregret as nr
    >>> nr.theory.uniform_count(1000)
    55
    """
    rounds = integer("rounds", rounds, low=0, high=MOST_ROUNDS)
    xi, played = number("exploration", exploration, low=0.0), 0
    for t in range(rounds):
        played += played <= xi * math.sqrt(t)  # line 6
    return played


def default_threshold(alpha: float | None, dimension: int, size: float, *, kernel: Kernel) -> PowerLaw:
    """Returns the default threshold for a prior variance of `size`.

    Raises:
        InvalidInput: for kernels that state no smoothness.
    """
    if alpha is None:
        raise InvalidInput(
            f"The {type(kernel).__name__} kernel states no smoothness alpha, and the threshold of Theorem 3.1 hangs on "
            "it. Give `threshold`.",
            advice="A number, PowerLaw(constant, exponent) or any function of n; `calibrate_threshold` finds one.",
        )
    return detection_threshold(alpha, dimension, level=LEVEL * size)


def default_ridge(alpha: float | None, dimension: int, size: float, *, distance: str) -> PowerLaw:
    """Returns the default ridge. A kernel without stated smoothness gets the limit of infinite alpha, a constant."""
    constant = RIDGE_CONSTANT[one_of("distance", distance, RIDGE_CONSTANT)]
    return detection_ridge(math.inf if alpha is None else alpha, dimension, constant=constant * size)


def _alpha(value: float) -> float:
    return value if isinstance(value, float) and value == math.inf else number("alpha", value, low=0.0, open_low=True)


def _log(horizon: int) -> float:
    why = "The schedules of Theorem 3.1 grow with its logarithm, which one round would make 0."
    return math.log(integer("horizon", horizon, low=2, why=why))


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
            (A.3), since (A.13) drops the 300 of (A.3), and the constant and log T of Lemma B.7.
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
            f"{delay * math.sqrt(2.0 * max(lengths)):,.0f}: a change needs about {needed:.3g} uniform pairs to be "
            "seen. Periods that are longer, changes that are larger, or a larger `exploration` make the theorem hold."
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
