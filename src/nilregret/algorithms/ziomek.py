"""Ziomek, Adachi & Osborne 2024: balancing lengthscales of which nobody knows which one suits f."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

from .._utils.checks import listed
from ..domains.domain import Domain, sides
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.envelope import Confidence
from ..slots.lengthscales import RegretBalancing
from ..slots.scores import UpperConfidenceBound
from ..slots.widths.mixtures import AnalyticMixture, AnyRidge
from .common import DELTA, FreeSlots, algorithm, build, checked_noise, chosen_width, ridge_of_noise

CANDIDATES = 5  # lengthscales, unless told (section 5: "at least 5 candidates are generated for g(1)")


@algorithm(
    context="with none: averages over different contexts compare nothing",
    refit="with its candidates for the lengthscale",
    constraints="with none: the bound on its regret is for the reward alone",
    switching="each trial is one play, of the candidate whose turn it is",
)
def lb_gp_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    norm_bound: float,
    factors: Sequence[float] | None = None,
    growth: float = 0.0,
    width: str | Confidence | None = None,
    delta: float = DELTA,
    regularization: float | None = None,
    **slots: Unpack[FreeSlots],
) -> Policy:
    """LB-GP-UCB (Ziomek, Adachi & Osborne 2024, Alg. 1) with tighter widths, and candidates that do not grow in number.

    GP-UCB under several lengthscales, whose regret is balanced. Each round is decided by one candidate theta_j: that of
    the smallest regret bound after one more round of its own, R_j(n) ~ sqrt(n) (B_j sqrt(gamma_n) + gamma_n) with
    gamma_n ~ theta_j^-d, which plays argmax mu_j + beta_j sigma_j. All learn from all answers. A candidate whose
    average reward falls behind by more than its bounds allow was wrong and decides no more. `study.lengthscales` shows
    whose turn it is, and what was eliminated.

    Their Theorem 4.1: if ||f||_k <= B_j under some candidate (and so under all shorter ones), the regret is with
    probability 1 - delta within a factor of about the number of candidates of that under the right lengthscale. It
    assumes that kernel, noise and N are right, that no round is forced, that the same may be played in every round
    (hence no `context`), and that all answers count. `study.bounds` are those of the candidate whose turn it is, which
    may be a wrong one: nothing is proved for them (`valid_for` is "none").

    Args:
        domain: arms, a box, or a space of parameters.
        kernel: with the *longest* lengthscales that may be right, theta_0.
        noise: sub-Gaussian constant R of the noise, reward units.
        norm_bound: N, a bound on ||f||_k under the longest lengthscale that suits f, reward units; under theta_j it is
            taken for B_j = N (theta_0 / theta_j)^{d/2}.
        factors: theta_j / theta_0, descending; e^{-i/d}, i = 0, ..., 4, unless given (Definition 3.1, for d columns).
        growth: a in g(t) = t^a / (the least factor), from 0 to 1: as g grows, e^{-1/d} times shorter candidates are
            added down to theta_0 / g(t); none for 0.
        width: "amm" (unless given) or "ay", as of `igp_ucb`, each with B_j and the candidate's posterior: both are
            tighter than the paper's. Or a part, which is then not made of B_j.
        delta: failure probability: half for the widths, half for the eliminations.
        regularization: lambda; `noise**2` unless given.
        slots: see `gp_ucb`; but `refit`, `constraints`, `switching` and `context`.

    Raises:
        InvalidInput: for values that make no sense, and for a kernel without lengthscales or whose rate of information
            gain is not known (`nilregret.theory.rates.information_gain_rate`).
    """
    noise = checked_noise(noise)
    ridge = ridge_of_noise(regularization, noise)
    context = slots.get("context")
    check_model(domain, context, kernel)
    columns = len(sides(domain, context))
    if factors is None:
        factors = [math.exp(-i / columns) for i in range(CANDIDATES)]  # Definition 3.1
    balance = RegretBalancing(
        factors=tuple(listed("factors", factors)), norm_bound=norm_bound, noise=noise, growth=growth, delta=delta,
    )  # fmt: skip
    chosen = chosen_width(width, ["amm", "ay"], delta=delta)
    if not isinstance(chosen, str | None):
        confidence = chosen
    else:
        part = AnyRidge if chosen == "ay" else AnalyticMixture
        confidence = part(  # delta / 2 (Theorem 4.1)
            norm_bound=balance.norm_bound, noise=noise, regularization=ridge, parts=2, delta=balance.delta
        )
    slots["refit"] = balance
    return build(
        "lb_gp_ucb", domain, kernel, confidence, UpperConfidenceBound(), noise=noise, regularization=ridge, **slots,
    )  # fmt: skip
