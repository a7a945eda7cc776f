"""The schedules of Avanesov's GP-UCB-CPD, eq. 3.4-3.7.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from ..._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, integer, number, one_of, settle, shown
from ..._utils.serialize import described
from ...errors import InvalidInput
from ...kernels import Kernel

LEVEL = 2.6  # theta_1 in the paper's experiments, for prior variance 1
RIDGE_CONSTANT = {"average": 2.0, "integral": 10.0}  # c, for prior variance 1
BETA_CONSTANT = 0.02  # D in the paper's experiments

STEEPEST = 6.0  # largest exponent of a power law
MOST_LOG_POWER = 50.0
MOST_ROUNDS = 10_000_000  # largest number of rounds in a loop

Schedule = float | Callable[[int], float]


@final
@described
@dataclass(frozen=True)
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

    It is the ridge of the bandit's posterior (t rho_t of eq. 3.5).

    >>> import nilregret as nr
    >>> round(nr.theory.ucb_regularization(noise=0.05, horizon=1000), 3)
    0.104
    """
    return 6.0 * number("noise", noise, low=0.0, high=LARGEST_REWARD, open_low=True) ** 2 * _log(horizon)


def ucb_rho(t: int, *, noise: float, horizon: int) -> float:
    """Returns rho_t = sigma^2 / t of the bandit after t pairs, eq. 3.5, reward units^2.

    Its ridge t rho_t is always sigma^2. The prior sigma^2 / (t rho_t) k of eq. 2.1 is then k itself (appendix B).
    Another sequence has no theorem, and its ridge would differ from round to round.

    >>> import nilregret as nr
    >>> round(nr.theory.ucb_rho(10, noise=0.05, horizon=1000), 4)
    0.0104
    """
    return ucb_regularization(noise=noise, horizon=horizon) / integer("t", t, low=1)


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
        log_power: p. Eq. 3.7 prints 4. With 3, as in the proof's eq. A.3, the results match the paper's figures.

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
