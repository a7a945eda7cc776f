"""Bounds of theorems on regret and violation, as numbers.

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

Regret bounds for late rewards: Verma, Dai & Low 2022 and Desautels, Krause & Burdick 2014.

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

They bound the cumulative regret with the probability of the theorem, and are as loose as the others.

Bounds of Theorems 1 and 2 of Shi & Eryilmaz 2022 for long-term constraints, as numbers.

| symbol | name | meaning | unit |
|---|---|---|---|
| L, S | `epochs`, `epoch` | epochs, and rounds of each; T = L S | |
| m | `constraints` | number of constraints | |
| gamma_S | `information_gain` | upper bound of the maximum information gain after S rounds, under every k_l | nats |
| B | `norm_bound` | bound on the norm of the target in every epoch | reward |
| R | `noise` | sub-Gaussian constant of reward and constraint values | reward, g |
| Delta | `gap` | cost of the constraints: max f - max of f over the feasible points | reward |
| epsilon | `slack` | a point with all g_j <= -epsilon exists (Slater's condition, Assumption 7) | g |
| Q, M | `largest_reward`, `largest_constraint` | bounds of abs(f) and of abs(g_j) (Assumption 6) | reward, g |
| mu | `step` | step of the multipliers | reward / g |

The theorems are printed as orders of growth. These are the numbers from their proofs, with every constant. They hold
with probability 1 - delta for epochs that start without data (`memory="fresh"`), lambda = 1 + 2/S and k(x, x) <= 1. The
multipliers must not have reached their limit. Like all regret bounds they are loose.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, LEAST_DELTA, flag, integer, number, shown
from ..errors import InvalidInput
from .penalties import PenaltyFunction

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
    rounds: int, beta: float, information_gain: float, window: float, reward_bound: float, regularization: float | None
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


class ConstraintBounds(NamedTuple):
    """Bounds after T = L S rounds.

    Attributes:
        regret: bound of R_T, eq. (6), against the best feasible point, reward units.
        violation: bound of V_T, eq. (7), the norm of the summed violations, units of g.
    """

    regret: float
    violation: float


class SlaterBounds(NamedTuple):
    """Bounds after T = L S rounds under Slater's condition.

    Attributes:
        regret: bound of R_T, eq. (6), reward units.
        violation: bound of V_T, eq. (7), units of g.
        multipliers: bound of the norm of the multipliers in every epoch, eq. (33), reward units per unit of g.
    """

    regret: float
    violation: float
    multipliers: float


def noiseless_constraints_bounds(
    epoch: int,
    epochs: int,
    *,
    width: float,
    information_gain: float,
    gap: float,
    penalty: PenaltyFunction,
    constraints: int = 1,
    regularization: float | None = None,
) -> ConstraintBounds:
    """Returns the bounds of Theorem 1, eq. (11) and (12), for Algorithm 2 with IGP-UCB.

    R_T <= L r and V_T <= sqrt(m) S psi_+^{-1}(1 + L Delta + L r / S), r = 2 beta_S sqrt(4 (S + 2) gamma_S).

    Args:
        epoch: S.
        epochs: L.
        width: beta_S = B + R sqrt(2 (gamma_{S-1} + 1 + ln(L / delta))), of the last round of an epoch.
        information_gain: gamma_S for the current ridge, or an upper bound of it.
        gap: Delta, 0 if the unconstrained maximum is feasible.
        penalty: psi, such as `policy.objective.function`.
        constraints: m.
        regularization: None for lambda = 1 + 2/S, see `igp_ucb_regret_bound`.

    If data are kept from epoch to epoch, the variances are smaller still. The bounds then hold too, if `width` is that
    of the last round of all and `regularization` is the current one.

    >>> import nilregret as nr
    >>> penalty = nr.slots.ExponentialPenalty(1.0)
    >>> bounds = nr.theory.noiseless_constraints_bounds(
    ...     100, 10, width=3.0, information_gain=5.0, gap=0.1, penalty=penalty
    ... )
    >>> round(bounds.regret), round(bounds.violation)
    (2710, 337)
    """
    S, L = _sizes(epoch, epochs)
    m = integer("constraints", constraints, low=1)
    cost = number("gap", gap, low=0.0, why="No feasible point is better than the best of all.")
    if not isinstance(penalty, PenaltyFunction):
        raise InvalidInput(
            f"`penalty` is {shown(penalty)}: it must be a `PenaltyFunction`, such as `policy.objective.function` or "
            "`nr.slots.ExponentialPenalty(c)`."
        )
    inner = igp_ucb_regret_bound(S, width=width, information_gain=information_gain, regularization=regularization)
    # Eq. 22: S sum_j (psi(G_j / S) - 1) <= L S Delta + L r, with G_j the sum of g_j over all rounds.
    violation = math.sqrt(m) * S * penalty.inverse(1.0 + L * cost + L * inner / S)
    return ConstraintBounds(L * inner, violation)


def least_slack(
    epoch: int, epochs: int, *, noise: float, information_gain: float, constraints: int = 1, delta: float = 0.1
) -> float:
    """Returns the slack epsilon beyond which Theorem 2 holds, units of g.

    This tests Slater's condition (Assumption 7): epsilon > 4 R sqrt(2 gamma_S + 2 + 2 ln(2 L / delta)) sqrt((S + 2)
    gamma_S) / S + 2 R (sqrt(4 m / S) + sqrt(ln(2 L / delta) / S)).

    Args:
        epoch: S.
        epochs: L.
        noise: R.
        information_gain: gamma_S, or an upper bound of it.
        constraints: m.
        delta: failure probability of the whole run.

    >>> import nilregret as nr
    >>> round(nr.theory.least_slack(10_000, 20, noise=0.1, information_gain=5.0), 3)
    0.053
    """
    setting = _Noisy(epoch, epochs, noise, information_gain, constraints, delta)
    return setting.reward_noise * setting.deviations / setting.S + 2.0 * setting.R * setting.sums / math.sqrt(setting.S)


def noisy_constraints_bounds(
    epoch: int,
    epochs: int,
    *,
    noise: float,
    norm_bound: float,
    information_gain: float,
    slack: float,
    step: float,
    largest_reward: float,
    largest_constraint: float,
    constraints: int = 1,
    delta: float = 0.1,
) -> SlaterBounds:
    """Returns the bounds of Theorem 2, for Algorithm 3 with IGP-UCB (eq. (25), (27), (28) and (33) of its proof).

    Eq. (32), and with it (33), print a step of the multipliers as 2 mu R (...) / S. The event that they cite gives 2 mu
    R (...) / sqrt(S), which is used here.

    Args:
        epoch: S.
        epochs: L.
        noise: R.
        norm_bound: B.
        information_gain: gamma_S for lambda = 1 + 2/S, or an upper bound of it.
        slack: epsilon, above `least_slack`.
        step: mu. The bounds are sublinear for O(1 / sqrt(L)).
        largest_reward: Q.
        largest_constraint: M.
        constraints: m.
        delta: failure probability of the whole run.

    Raises:
        InvalidInput: if `slack` is at most `least_slack`, where the theorem says nothing.

    >>> import nilregret as nr
    >>> given = {"noise": 0.1, "norm_bound": 1.0, "information_gain": 5.0, "slack": 0.2, "step": 0.2}
    >>> bounds = nr.theory.noisy_constraints_bounds(
    ...     10_000, 20, largest_reward=1.0, largest_constraint=1.0, **given
    ... )
    >>> round(bounds.multipliers, 1)
    16.0
    """
    setting = _Noisy(epoch, epochs, noise, information_gain, constraints, delta)
    B, mu = number("norm_bound", norm_bound, low=0.0), number("step", step, low=0.0, open_low=True)
    Q, M = number("largest_reward", largest_reward, low=0.0), number("largest_constraint", largest_constraint, low=0.0)
    epsilon = number("slack", slack, low=0.0, open_low=True, why="Slater's condition: some point meets all with slack.")
    least = least_slack(
        epoch, epochs, noise=noise, information_gain=information_gain, constraints=constraints, delta=delta
    )
    if epsilon <= least:
        raise InvalidInput(
            f"`slack` is {epsilon:g}, and Theorem 2 needs more than {least:.4g} (`least_slack`): with less its "
            "multipliers may grow without limit. Longer epochs, less noise, or constraints with more room make it hold."
        )
    S, L, R, m, sums = setting.S, setting.L, setting.R, setting.m, setting.sums
    inner = B * setting.deviations + setting.reward_noise * setting.deviations  # eq. 24 at kappa = 0
    squares = m * mu * M**2 * S + 4.0 * mu * R**2 * sums**2  # squares of the steps, eq. 28
    stride = math.sqrt(m) * mu * M + 2.0 * mu * R * sums / math.sqrt(S)  # eq. 32
    kappa = stride + (2.0 * Q + (inner + squares) / S) / (epsilon - least)  # eq. 33
    widened = math.sqrt(1.0 + kappa**2)
    regret = B * setting.deviations + widened * setting.reward_noise * setting.deviations  # eq. 25
    regret += squares + 2.0 * R * kappa * math.sqrt(S) * sums  # eq. 28, summed over the epochs
    violation = S * kappa / mu + 2.0 * R * L * math.sqrt(S) * sums  # eq. 27
    return SlaterBounds(L * regret, violation, kappa)


class _Noisy:
    """Terms of Theorem 2.

    Attributes:
        S, L, R, m: see the head of this module.
        reward_noise: R sqrt(2 (gamma_S + 1 + ln(2 L / delta))), eq. 24.
        deviations: 4 sqrt((S + 2) gamma_S), twice the sum of an epoch's standard deviations (Chowdhury & Gopalan 2017,
            Lemma 4).
        sums: sqrt(4 m) + sqrt(ln(2 L / delta)). Times 2 R sqrt(S) it bounds the norm of an epoch's summed noise of the
            constraints, the event G_l.
    """

    def __init__(
        self, epoch: int, epochs: int, noise: float, information_gain: float, constraints: int, delta: float
    ) -> None:
        self.S, self.L = _sizes(epoch, epochs)
        self.m = integer("constraints", constraints, low=1)
        self.R = number("noise", noise, low=0.0)
        gamma = number("information_gain", information_gain, low=0.0, why="It is in nats.")
        delta = number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True)
        log = math.log(2.0 * self.L / delta)
        self.reward_noise = self.R * math.sqrt(2.0 * (gamma + 1.0 + log))
        self.deviations = 4.0 * math.sqrt((self.S + 2.0) * gamma)
        self.sums = math.sqrt(4.0 * self.m) + math.sqrt(log)


def _sizes(epoch: object, epochs: object) -> tuple[int, int]:
    S = integer("epoch", epoch, low=1, why="It is the number of rounds S of an epoch.")
    return S, integer("epochs", epochs, low=1, why="It is the number of epochs L.")
