"""Regret bounds of theorems, as numbers.

| symbol | name | meaning | shape |
|---|---|---|---|
| T | `rounds` | number of rounds | scalar |
| gamma_T | `information_gain` | any upper bound of the maximum information gain after T rounds, nats | scalar |
| beta_T^{1/2}, beta_T, v_T | `width` | multiplier of the standard deviation in round T | scalar |
| B | `norm_bound` | bound of the RKHS norm of f | reward units |
| lambda | `regularization` | ridge; sigma^2 in Srinivas et al. | reward units^2 |

All bound the cumulative regret R_T with the probability of the theorem (1 - delta, with the delta in `width`). They are
loose by a wide margin. They show orders of growth and not the regret to expect. The realised gain of a run may replace
gamma_T, which enters these proofs only through the points played. In `width` that is not allowed without a proof.
"""

from __future__ import annotations

import math

from .._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, LEAST_DELTA, flag, integer, number

LEAST = 1e-100  # smallest variance, whose quotients must not overflow
ANTI_CONCENTRATION = 1.0 / (4.0 * math.e * math.sqrt(math.pi))  # p of Chowdhury & Gopalan 2017, Lemma 8


def sum_of_deviations_bound(
    rounds: int, *, information_gain: float, regularization: float, prior_variance: float = 1.0
) -> float:
    """Returns an upper bound of sum_{t <= T} sigma_{t-1}(x_t) at any points played.

    It is sqrt(2 T gamma_T s / log(1 + s / lambda)) with s the largest k(x, x), by Cauchy-Schwarz. It follows from
    Srinivas et al. 2010, Lemmas 5.3 and 5.4, where s = 1.
    """
    T, gamma = _rounds(rounds), _gain(information_gain)
    ridge = number("regularization", regularization, low=LEAST, high=LARGEST_VARIANCE)
    size = number("prior_variance", prior_variance, low=LEAST, high=LARGEST_REWARD)
    return math.sqrt(2.0 * T * gamma * size / math.log1p(size / ridge))


def gp_ucb_regret_bound(
    rounds: int,
    *,
    width: float,
    information_gain: float,
    noise: float,
    compact: bool = False,
    prior_variance: float = 1.0,
) -> float:
    """Returns the bound of Srinivas et al. 2010, Theorems 1 and 3: sqrt(C1 T beta_T gamma_T).

    C1 = 8 / log(1 + sigma^{-2}).

    Args:
        rounds: T.
        width: beta_T^{1/2} of the theorem. If it does not grow (`EvenSeries` after its own rounds), take the largest of
            the T rounds.
        information_gain: gamma_T, or an upper bound of it.
        noise: sigma, the standard deviation of the noise. In this theorem lambda is sigma^2.
        compact: True for Theorem 2, which adds 2 for the error of the discretisation.
        prior_variance: s, the largest k(x, x), 1 in the paper. For another s, C1 = 8 s / log(1 + s / sigma^2).

    >>> import nilregret as nr
    >>> round(nr.theory.gp_ucb_regret_bound(1000, width=4.0, information_gain=10.0, noise=0.1))
    527
    """
    sigma = number("noise", noise, low=LEAST**0.5, high=LARGEST_REWARD, why="It is a standard deviation.")
    # sqrt(C1 T beta gamma) is twice the width times the bound of the sum of deviations: Lemmas 5.2 and 5.4.
    deviations = sum_of_deviations_bound(
        rounds, information_gain=information_gain, regularization=sigma**2, prior_variance=prior_variance
    )
    return 2.0 * _width(width) * deviations + (2.0 if flag("compact", compact) else 0.0)


def igp_ucb_regret_bound(
    rounds: int,
    *,
    width: float,
    information_gain: float,
    regularization: float | None = None,
    prior_variance: float = 1.0,
) -> float:
    """Returns the bound of Chowdhury & Gopalan 2017, proof of Theorem 3: R_T <= 2 beta_T sum sigma_{t-1}(x_t).

    Args:
        rounds: T.
        width: beta_T = B + R sqrt(2 (gamma_{T-1} + 1 + ln(1/delta))).
        information_gain: gamma_T for the current ridge, or an upper bound of it.
        regularization: None for the paper's lambda = 1 + 2/T, whose sum is at most sqrt(4 (T + 2) gamma_T) (Lemma 4).
            For another lambda `sum_of_deviations_bound` bounds the sum, and the width must hold for that lambda.
        prior_variance: c, the largest k(x, x), 1 in the paper. Above 1 the sum is that of `sum_of_deviations_bound`.
            The paper's remark (section 2) makes the whole bound c times larger, which is more.

    >>> import nilregret as nr
    >>> round(nr.theory.igp_ucb_regret_bound(1000, width=4.0, information_gain=10.0))
    1602
    """
    return 2.0 * _width(width) * _deviations(rounds, information_gain, regularization, prior_variance)


def gp_ts_regret_bound(
    rounds: int,
    *,
    width: float,
    information_gain: float,
    norm_bound: float,
    log_size: float,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_variance: float = 1.0,
) -> float:
    """Returns the bound of Chowdhury & Gopalan 2017, Lemma 13, the explicit form of Theorem 4.

    R_T <= (11 c_T / p) sum sigma_{t-1}(x_t) + (2 B + 1) pi^2 / 6 + ((4 B + 11) c_T / p) sqrt(2 T ln(2/delta)), with c_T
    = v_T (1 + sqrt(2 ln(|D_T| T^2))) (Definition 1) and p = 1 / (4 e sqrt(pi)) (Lemma 8).

    Args:
        rounds: T.
        width: v_T = B + R sqrt(2 (gamma_{T-1} + 1 + ln(2/delta))).
        information_gain: gamma_T for the current ridge, or an upper bound of it.
        norm_bound: B.
        log_size: ln |D_T|: log of the number of arms, or d ln(B L r d T^2) for the theorem's grid of [0, r]^d.
        delta: failure probability, the same as in the width.
        regularization: None for the paper's lambda = 1 + 2/T, see `igp_ucb_regret_bound`.
        prior_variance: c, the largest k(x, x), 1 in the paper. |f| <= B c^{1/2} replaces B, and sigma <= c^{1/2}
            replaces 1.

    The proof of Lemma 10 divides by p - 1/t^2, which is negative for t <= 4. The regret of those rounds is at most 8 B
    and is small against the rest.

    >>> import nilregret as nr
    >>> bound = nr.theory.gp_ts_regret_bound(1000, width=4.0, information_gain=10.0, norm_bound=1.0, log_size=5.0)
    >>> f"{bound:.2g}"
    '1.8e+06'
    """
    T, B = _rounds(rounds), number("norm_bound", norm_bound, low=0.0, high=LARGEST_REWARD)
    delta = number("delta", delta, low=LEAST_DELTA, high=1.0, open_high=True)
    largest = number(
        "log_size", log_size, low=0.0, high=LARGEST_REWARD, why="It is the logarithm of a number of points."
    )
    size = math.sqrt(max(_prior_variance(prior_variance), 1.0))
    B *= size  # |f(x)| <= ||f||_k k(x, x)^{1/2}
    c = _width(width) * (1.0 + math.sqrt(2.0 * (largest + 2.0 * math.log(T))))  # Definition 1
    p = ANTI_CONCENTRATION
    # Steps of the martingale are |Y_t - Y_{t-1}| <= 2 B + 11 c/p + (2 B + 1)/t^2, which the paper bounds by the second
    # term. That fails for tiny B, where the first term is larger.
    step = max(4.0 * B + 1.0 + 11.0 * size * c / p, (4.0 * B + 11.0 * size) * c / p)
    mean = (
        11.0 * c / p * _deviations(T, information_gain, regularization, prior_variance)
        + (2.0 * B + 1.0) * math.pi**2 / 6.0
    )
    return mean + step * math.sqrt(2.0 * T * math.log(2.0 / delta))  # Lemma 11, Azuma-Hoeffding


def _deviations(rounds: int, information_gain: float, regularization: float | None, prior_variance: float) -> float:
    T, gamma, size = _rounds(rounds), _gain(information_gain), _prior_variance(prior_variance)
    if regularization is None and size <= 1.0:
        return math.sqrt(4.0 * (T + 2) * gamma)  # Lemma 4
    ridge = 1.0 + 2.0 / T if regularization is None else regularization
    return sum_of_deviations_bound(T, information_gain=gamma, regularization=ridge, prior_variance=size)


def _prior_variance(value: object) -> float:
    return number("prior_variance", value, low=0.0, open_low=True, why="It is the largest k(x, x).")


def _rounds(value: object) -> int:
    return integer("rounds", value, low=1)


def _gain(value: object) -> float:
    return number("information_gain", value, low=0.0, high=LARGEST_REWARD, why="It is in nats.")


def _width(value: object) -> float:
    return number("width", value, low=0.0, high=LARGEST_REWARD, why="It multiplies the standard deviation.")
