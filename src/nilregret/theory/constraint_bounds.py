"""Bounds of Theorems 1 and 2 of Shi & Eryilmaz 2022 for long-term constraints, as numbers.

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

from .._utils.checks import integer, number, shown
from ..errors import InvalidInput
from .penalties import PenaltyFunction
from .regret_bounds import igp_ucb_regret_bound


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
