"""Regret bounds for late rewards: Verma, Dai & Low 2022 and Desautels, Krause & Burdick 2014.

| symbol | name | meaning | shape |
|---|---|---|---|
| T | `rounds` | number of rounds | scalar |
| m | `window` | number of further trials within which a reward must come | rounds |
| rho_m | `answer_probability` | probability of a reward within the window | (0, 1] |
| beta_T | `beta` | width without the sum over the last m trials, at T (`CensoredWidth`) | scalar |
| B_y | `reward_bound` | bound of rewards above the minimum | reward units |
| B_f | `norm_bound` | bound of the RKHS norm of f - minimum | reward units |
| gamma_T | `information_gain` | any upper bound of the maximum information gain after T rounds, nats | scalar |
| lambda | `regularization` | ridge | reward units^2 |
| C | `conditional_gain` | bound on the information in pending trials given the observed ones, nats | scalar |

They bound the cumulative regret with the probability of the theorem, and are as loose as those of `regret_bounds`.
"""

from __future__ import annotations

import math

from .._utils.checks import LARGEST_REWARD, integer, number
from .regret_bounds import ANTI_CONCENTRATION, gp_ucb_regret_bound, sum_of_deviations_bound


def gp_ucb_sdf_regret_bound(
    rounds: int,
    *,
    beta: float,
    information_gain: float,
    window: float,
    reward_bound: float = 1.0,
    answer_probability: float = 1.0,
    regularization: float | None = None,
) -> float:
    """Returns the bound of Verma, Dai & Low 2022, Theorem 2.

    It is (2 / rho_m) (C1 beta_T sqrt(T gamma_T) + m B_y C1^2 gamma_T) with C1 = sqrt(2 / log(1 + 1/lambda)). For lambda
    < 1 the last term is divided by lambda, as the width is (proof of their Theorem 1, eq. 5).

    Args:
        rounds: T.
        beta: beta_T = B_f + (R + B_y) sqrt(2 (gamma_{T-1} + 1 + log(2 / delta))). See `CensoredWidth` for lambda < 1.
        information_gain: gamma_T for the current ridge, or an upper bound of it.
        window: m. Batches of b, asked one by one, have m = b - 1 and rho_m = 1: Proposition 1.
        reward_bound: B_y.
        answer_probability: rho_m, or the least one of all points played if delays depend on them (section 3.3). See
            `nilregret.environments.delays.answer_probability`.
        regularization: lambda, by default 1 + 2/T.

    k(x, x) <= 1 is assumed.

    >>> import nilregret as nr
    >>> round(nr.theory.gp_ucb_sdf_regret_bound(1000, beta=4.0, information_gain=10.0, window=5))
    1649
    """
    rho = _probability(answer_probability)
    return 2.0 / rho * _widths_by_deviations(rounds, beta, information_gain, window, reward_bound, regularization)


def gp_ts_sdf_regret_bound(
    rounds: int,
    *,
    beta: float,
    information_gain: float,
    window: float,
    norm_bound: float,
    log_size: float,
    reward_bound: float = 1.0,
    answer_probability: float = 1.0,
    delta: float = 0.1,
    regularization: float | None = None,
) -> float:
    """Returns the bound of Verma, Dai & Low 2022, Theorem 3, in the explicit form of its proof, eq. 23.

    (11 / (rho_m p)) q (C1 beta_T sqrt(T gamma_T) + m B_y C1^2 gamma_T) + B_f pi^2 / 3 + ((4 B_f + 11 c_T) / (rho_m p))
    sqrt(2 T log(2 / delta)). Here q = 1 + sqrt(2 log(|Q| T^2)), p = 1 / (4 e sqrt(pi)) (Lemma 3) and c_T = q nu_T. The
    proof takes nu_t as increasing, which its sum over the last m trials is not. Here nu_T is its largest possible
    value, m B_y + beta_T.

    Args:
        rounds: T.
        beta: beta_T = B_f + (R + B_y) sqrt(2 (gamma_{T-1} + 1 + log(4 / delta))).
        information_gain: gamma_T.
        window: m. For batches of b it is b - 1, which with rho_m = 1 is Proposition 2.
        norm_bound: B_f.
        log_size: log |Q|, of the number of arms.
        reward_bound: B_y.
        answer_probability: rho_m, see `gp_ucb_sdf_regret_bound`.
        delta: failure probability, the same as in `beta`.
        regularization: lambda, by default 1 + 2/T.

    k(x, x) <= 1 is assumed. As in `gp_ts_regret_bound`, the proof divides by p - 1/t^2, which is negative for t <= 4.

    >>> import nilregret as nr
    >>> given = {"information_gain": 10.0, "window": 5, "norm_bound": 1.0, "log_size": 5.0}
    >>> f"{nr.theory.gp_ts_sdf_regret_bound(1000, beta=4.0, **given):.2g}"
    '2.3e+06'
    """
    rho, B = _probability(answer_probability), number("norm_bound", norm_bound, low=0.0, high=LARGEST_REWARD)
    delta = number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
    largest = number(
        "log_size", log_size, low=0.0, high=LARGEST_REWARD, why="It is the logarithm of a number of points."
    )
    summed = _widths_by_deviations(rounds, beta, information_gain, window, reward_bound, regularization)
    spread = 1.0 + math.sqrt(2.0 * (largest + 2.0 * math.log(rounds)))  # c_t / nu_t
    c = spread * (window * reward_bound / min(_ridge(regularization, rounds), 1.0) + beta)
    mean = 11.0 * spread * summed / (rho * ANTI_CONCENTRATION) + B * math.pi**2 / 3.0
    step = (4.0 * B + 11.0 * c) / (rho * ANTI_CONCENTRATION)  # eq. 22
    return mean + step * math.sqrt(2.0 * rounds * math.log(2.0 / delta))


def gp_bucb_regret_bound(
    rounds: int,
    *,
    width: float,
    information_gain: float,
    noise: float,
    conditional_gain: float,
    compact: bool = False,
    prior_variance: float = 1.0,
) -> float:
    """Returns the bound of Desautels, Krause & Burdick 2014, the regret theorem of GP-BUCB.

    It is sqrt(C1 T exp(2 C) beta_T gamma_T), exp(C) times the bound of GP-UCB, with C1 = 8 / log(1 + sigma^{-2}). No
    trial may be chosen while pending trials tell more than C nats about f given the observed ones. Rounds of
    uncertainty sampling must be added: each costs at most the range of f.

    Args:
        rounds: T.
        width: beta_T^{1/2} of GP-UCB, before exp(C) multiplies it.
        information_gain: gamma_T, or an upper bound of it.
        noise: sigma, where lambda is sigma^2.
        conditional_gain: C. For batches of b use gamma_{b-1} or `conditional_gain_bound`.
        compact: True for the width of Theorem 2, which adds 2.
        prior_variance: the largest k(x, x).

    >>> import nilregret as nr
    >>> given = {"width": 4.0, "information_gain": 10.0, "noise": 0.1}
    >>> round(nr.theory.gp_bucb_regret_bound(1000, conditional_gain=0.5, **given))
    868
    """
    gain = number("conditional_gain", conditional_gain, low=0.0, why="It is in nats.")
    bound = gp_ucb_regret_bound(
        rounds, width=width, information_gain=information_gain, noise=noise, prior_variance=prior_variance
    )
    return math.exp(gain) * bound + (2.0 if compact else 0.0)


def conditional_gain_bound(batch: int, *, initial: int, information_gain: float) -> float:
    """Returns the bound (b - 1) gamma_{T_init} / T_init on the information in b - 1 further trials, nats.

    Desautels, Krause & Burdick 2014, the lemma on initialisation. Uncertainty sampling takes the largest deviation each
    time, and deviations only shrink. So no later trial tells more than the average of the first T_init, which must be
    observed. GP-BUCB pays exp of this bound for its batches.

    Args:
        batch: b.
        initial: T_init.
        information_gain: gain of the T_init trials, as realised, or gamma_{T_init}.

    >>> import nilregret as nr
    >>> nr.theory.conditional_gain_bound(5, initial=20, information_gain=10.0)
    2.0
    """
    further = integer("batch", batch, low=1) - 1
    gain = number("information_gain", information_gain, low=0.0, why="It is in nats.")
    return further * gain / integer("initial", initial, low=1, why="It counts rounds of uncertainty sampling.")


def _widths_by_deviations(
    rounds: int,
    beta: float,
    information_gain: float,
    window: float,
    reward_bound: float,
    regularization: float | None,
) -> float:
    """Returns an upper bound of sum_{t <= T} nu_t sigma_{t-1}(x_t) (proof of Theorem 2, eq. 12 and 13)."""
    beta = number("beta", beta, low=0.0, high=LARGEST_REWARD, why="It multiplies the standard deviation.")
    m = number("window", window, low=0.0, why="It is how many further questions an answer is waited for.")
    reward_bound = number("reward_bound", reward_bound, low=0.0, high=LARGEST_REWARD)
    ridge = _ridge(regularization, rounds)
    deviations = sum_of_deviations_bound(rounds, information_gain=information_gain, regularization=ridge)
    squares = deviations**2 / rounds  # C1^2 gamma_T, a bound of the sum of variances: eq. 12 squared
    return beta * deviations + m * reward_bound * squares / min(ridge, 1.0)


def _ridge(regularization: float | None, rounds: int) -> float:
    integer("rounds", rounds, low=1)
    if regularization is None:
        return 1.0 + 2.0 / rounds
    return number("regularization", regularization, low=0.0, open_low=True)


def _probability(value: object) -> float:
    why = "It is the probability of an answer within the window."
    return number("answer_probability", value, low=0.0, high=1.0, open_low=True, why=why)
