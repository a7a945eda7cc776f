"""LB-GP-UCB: GP-UCB that balances lengthscales when the right one is unknown (Ziomek, Adachi & Osborne 2024)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Unpack

from .._utils.checks import listed
from ..domains.domain import D, sides
from ..kernels import Kernel
from ..policy.policy import Policy
from ..slots.envelope import Confidence
from ..slots.refit import RegretBalancing
from ..slots.scores import UpperConfidenceBound
from ..slots.widths.mixtures import AnalyticMixture, AnyRidge
from .arguments import DELTA, chosen_width, noise_and_ridge
from .definition import FreeSlots, algorithm, build, given

CANDIDATES = 5  # The default number of lengthscales (section 5: "at least 5 candidates are generated for g(1)").


@algorithm(
    context="with none: averages over different contexts compare nothing",
    refit="with its candidates for the lengthscale",
    constraints="with none: the bound on its regret is for the reward alone",
    switching="each trial is one play, of the candidate whose turn it is",
)
def lb_gp_ucb(
    domain: D,
    kernel: Kernel,
    *,
    noise: float,
    norm_bound: float,
    factors: Sequence[float] | None = None,
    growth: float = 0.0,
    width: Literal["amm", "ay"] | Confidence | None = None,
    delta: float = DELTA,
    regularization: float | None = None,
    **slots: Unpack[FreeSlots],
) -> Policy[D]:
    """LB-GP-UCB (Ziomek, Adachi & Osborne 2024, Alg. 1) with tighter widths, and candidates that do not grow in number.

    The algorithm is GP-UCB under several lengthscales, whose regret is balanced. In each round one candidate theta_j
    decides: the one with the smallest regret bound after one more round of its own,
    R_j(n) ~ sqrt(n) (B_j sqrt(gamma_n) + gamma_n) with gamma_n ~ theta_j^-d. It plays argmax mu_j + beta_j sigma_j. All
    candidates learn from all rewards. A candidate is eliminated if its average reward is lower than that of another
    candidate by more than their bounds allow. `study.lengthscales` shows the next candidate and the eliminated ones.

    Theorem 4.1: let ||f||_k <= B_j under some candidate, and so under all shorter ones. Then with probability 1 - delta
    the regret is within a factor of the regret under the right lengthscale. The factor is about the number of
    candidates. The theorem assumes that kernel, noise and N are right, and that no round is forced. It also assumes
    that every round offers the same points (hence no `context`), and that all answers count. `study.bounds` are those
    of the next candidate, which may be wrong: nothing is proved for them (`valid_for` is "none").

    Args:
        domain: arms, a box, or a space of parameters.
        kernel: kernel with the *longest* lengthscales that may be right, theta_0.
        noise: sub-Gaussian constant R of the noise, reward units.
        norm_bound: N, a bound on ||f||_k under the longest lengthscale that suits f, reward units. Under theta_j the
            bound is B_j = N (theta_0 / theta_j)^{d/2}.
        factors: theta_j / theta_0, descending. e^{-i/d}, i = 0, ..., 4, unless given (Definition 3.1, for d columns).
        growth: a in g(t) = t^a / (the least factor), from 0 to 1. As g grows, candidates shorter by e^{-1/d} are added
            down to theta_0 / g(t). With 0 none are added.
        width: "amm" (unless given) or "ay", as of `igp_ucb`, each with B_j and the candidate's posterior. Both are
            tighter than the paper's. Or a part, which is then not made of B_j.
        delta: failure probability: half for the widths, half for the eliminations.
        regularization: lambda, `noise**2` unless given.
        slots: see `gp_ucb`, without `refit`, `constraints`, `switching` and `context`.

    Raises:
        InvalidInput: for values that make no sense, for a kernel without lengthscales, and for a kernel whose rate of
            information gain is unknown (`nilregret.theory.rates.information_gain_rate`).

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.lb_gp_ucb(arms, kernel, noise=0.1, norm_bound=1.0)
    >>> policy.valid_for
    'none'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise, ridge = noise_and_ridge(domain, kernel, given("lb_gp_ucb", noise, slots), regularization, slots)
    columns = len(sides(domain, slots.get("context")))
    if factors is None:
        factors = [math.exp(-i / columns) for i in range(CANDIDATES)]  # Definition 3.1
    balance = RegretBalancing(
        factors=tuple(listed("factors", factors)), norm_bound=norm_bound, noise=noise, growth=growth, delta=delta,
    )  # fmt: skip
    confidence = chosen_width(width, ["amm", "ay"], delta=delta)
    if isinstance(confidence, str | None):
        part = AnyRidge if confidence == "ay" else AnalyticMixture
        confidence = part(  # delta / 2 (Theorem 4.1)
            norm_bound=balance.norm_bound, noise=noise, regularization=ridge, parts=2, delta=balance.delta
        )
    slots["refit"] = balance
    score = UpperConfidenceBound()
    return build("lb_gp_ucb", domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)
