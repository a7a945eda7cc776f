"""Srinivas, Krause, Kakade & Seeger 2010: GP-UCB, experimental design, and the rules it is compared with."""

from __future__ import annotations

from typing import Any

from ..checks import flag, one_of
from ..domain import Domain
from ..errors import InvalidInput
from ..kernels import Kernel
from ..parts.confidence import Confidence
from ..parts.memory import Memory
from ..parts.pending import Pending
from ..parts.refit import Refit
from ..parts.rkhs import BoundedNoise
from ..parts.scores import (
    ExpectedImprovement,
    PosteriorDeviation,
    PosteriorMean,
    ProbabilityOfImprovement,
    Score,
    UpperConfidenceBound,
)
from ..parts.search import PointSearch
from ..parts.series import Series
from ..policy import Policy, check_model
from .common import (
    bayes_width,
    bounds_without_theorem,
    build,
    check_gain,
    checked_noise,
    chosen_gain,
    norm_bound_or_guess,
    prior_std,
    ridge_of_noise,
)

SMALL_MARGIN = 0.05  # of the prior standard deviation, for the probability of improvement


def gp_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    context: Domain | None = None,
    width: str | None = None,
    scale: float = 1.0,
    delta: float = 0.1,
    a: float | None = None,
    b: float | None = None,
    r: float | None = None,
    series: Series | float | None = None,
    norm_bound: float | None = None,
    guess_norm: bool = False,
    information_gain: str | float = "greedy",
    regularization: float | None = None,
    prior_mean: float = 0.0,
    memory: Memory | None = None,
    pending: str | Pending = "ignore",
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """GP-UCB: play argmax mu_{t-1}(x) + beta_t^{1/2} sigma_{t-1}(x) (Srinivas et al. 2010, Algorithm 1, eq. 6).

    Args:
        domain: arms, a box, or a space of parameters (encoded into the unit cube).
        kernel: prior covariance of the rewards, on (context, point) rows where there are contexts; the theorems assume
            k(x, x) <= 1.
        noise: standard deviation of the reward noise (Theorem 3: its largest absolute value), reward units.
        context: domain of the contexts given to `ask`, or None.
        width: "finite" for Theorem 1, beta_t = 2 log(|D| t^2 pi^2 / (6 delta)), the default on arms; "compact" for
            Theorem 2, beta_t = 2 log(2 t^2 pi^2 / (3 delta)) + 2 d log(t^2 d b r sqrt(log(4 d a / delta))), the default
            elsewhere; "rkhs" for Theorem 3, beta_t = 2 B^2 + 300 gamma_t log^3(t / delta).
        scale: multiplies beta_t; the paper's experiments divide it by 5.
        delta: failure probability of the confidence bounds.
        a: of Theorem 2, P(sup |df/dx_j| > L) <= a exp(-(L / b)^2); derived from the kernel unless given (how:
            `noregret.parts.smoothness`).
        b: likewise, in reward units per unit of length.
        r: longest side of the box, of Theorem 2; taken from the domain unless given.
        series: pi_t of Theorems 1 and 2 (Lemma 5.1: any with sum 1 / pi_t = 1), which shares delta out over the rounds:
            a power p > 1 for pi_t = zeta(p) t^p, or a part such as `nr.EvenSeries(1000)`; pi^2 t^2 / 6 unless given.
        norm_bound: B of Theorem 3, a bound on ||f||_k, reward units.
        guess_norm: with width="rkhs", take `norm_bound` (1 unless given) as a guess only and double it whenever the
            observations contradict it (the paper's remark after Theorem 3); `study.norm_bounds` shows the guesses.
        information_gain: gamma_t of Theorem 3: "greedy", an upper bound; "realised", "rate" or a number, for which
            nothing is proved.
        regularization: lambda; `noise**2` unless given, as in eq. 1. With another value nothing is proved.
        prior_mean: what a reward is expected to be before anything is seen; the theorems are for f - prior_mean.
        memory: which trials count: all of them, or a part such as `nr.SlidingWindow(200)` or `nr.RestartEvery(100)`.
        pending: what unanswered trials count as: "ignore", "hallucinate", or a part.
        search: how a continuous domain is searched.
        refit: learn the kernel from the record, on a schedule; then nothing is proved.
    """
    noise = checked_noise(noise)
    ridge = ridge_of_noise(regularization, noise)  # sigma^2 of eq. 1
    matched = ridge == noise**2
    check_model(domain, context, kernel)
    flag("guess_norm", guess_norm, why="The guess itself is `norm_bound`.")
    check_gain(information_gain)
    confidence: Confidence
    if isinstance(width, str) and width == "rkhs":
        if norm_bound is None and not guess_norm:
            raise InvalidInput(
                "width='rkhs' is Theorem 3, which needs `norm_bound`: a bound on the norm of f in the kernel's RKHS. "
                "Where none is known, guess_norm=True finds one by doubling."
            )
        if series is not None:
            raise InvalidInput("`series` is of Theorems 1 and 2: Theorem 3 has no pi_t. Leave it out.")
        bound = norm_bound_or_guess(norm_bound, guess_norm=guess_norm, refit=refit)
        gain = chosen_gain(information_gain, domain, context, kernel)
        confidence = BoundedNoise(
            norm_bound=bound,
            gain=gain,
            delta=delta,
            scale=scale,
            noise_matched=matched,
            guessed=guess_norm,
            noise=noise,
        )
    else:
        if norm_bound is not None or guess_norm:
            raise InvalidInput(
                "`norm_bound` belongs to Theorem 3: add width='rkhs' to use it, or leave it out; Theorems 1 and 2 are "
                "for samples of the process and need none."
            )
        if width is not None:
            one_of("width", width, ["finite", "compact", "rkhs"], why="They are Theorems 1, 2 and 3.")
        confidence = bayes_width(
            domain,
            context,
            kernel,
            width=width,
            a=a,
            b=b,
            r=r,
            delta=delta,
            scale=scale,
            noise_matched=matched,
            series=series,
        )
    return build(
        "gp_ucb", domain, kernel, confidence, UpperConfidenceBound(),  # eq. 6
        noise=noise, regularization=ridge, context=context, prior_mean=prior_mean, memory=memory, pending=pending,
        search=search, refit=refit,
    )  # fmt: skip


def expected_improvement(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    context: Domain | None = None,
    incumbent: str = "mean",
    margin: float = 0.0,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    memory: Memory | None = None,
    pending: str | Pending = "ignore",
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """Expected improvement, EI (Mockus et al. 1978; the baseline of Srinivas et al. 2010, section 6).

    Before the first reward the prior mean is the incumbent.

    Args:
        domain, kernel, noise, context, regularization, prior_mean, memory, pending, search, refit: see `gp_ucb`.
        incumbent: "mean", the highest posterior mean over the domain under the context of the question, which makes EI
            competitive under noise (Srinivas et al.), or "reward", the best noisy reward told under that very context,
            with which it gets stuck (as in Chowdhury & Gopalan 2017). See `noregret.parts.scores.Improvement`.
        margin: improvement below which a point does not count, reward units.
        delta: of `study.bounds` alone, which are those of Theorem 1 on arms and pointwise elsewhere.
    """
    return _rule(
        "expected_improvement", domain, kernel, ExpectedImprovement(incumbent=incumbent, margin=margin),
        noise=noise, context=context, delta=delta, regularization=regularization, prior_mean=prior_mean,
        memory=memory, pending=pending, search=search, refit=refit,
    )  # fmt: skip


def probability_of_improvement(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    context: Domain | None = None,
    incumbent: str = "mean",
    margin: float | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    memory: Memory | None = None,
    pending: str | Pending = "ignore",
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """Most probable improvement, PI or MPI (Kushner 1964; the baseline of Srinivas et al. 2010, section 6).

    Args:
        domain, kernel, noise, context, incumbent, delta, regularization, prior_mean, memory, pending, search, refit:
            see `expected_improvement`.
        margin: by how much it must improve, reward units; 5% of the prior standard deviation unless given. Without
            any, and with the incumbent "mean", the rule is `greedy_mean`.
    """
    if margin is None:
        margin = SMALL_MARGIN * prior_std(domain, context, kernel)
    return _rule(
        "probability_of_improvement", domain, kernel, ProbabilityOfImprovement(incumbent=incumbent, margin=margin),
        noise=noise, context=context, delta=delta, regularization=regularization, prior_mean=prior_mean,
        memory=memory, pending=pending, search=search, refit=refit,
    )  # fmt: skip


def greedy_mean(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    context: Domain | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    memory: Memory | None = None,
    pending: str | Pending = "ignore",
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """Exploitation alone, argmax mu_{t-1}(x) ("mean only" of Srinivas et al. 2010, section 6); see `gp_ucb`."""
    return _rule(
        "greedy_mean", domain, kernel, PosteriorMean(),
        noise=noise, context=context, delta=delta, regularization=regularization, prior_mean=prior_mean,
        memory=memory, pending=pending, search=search, refit=refit,
    )  # fmt: skip


def greedy_variance(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    context: Domain | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    memory: Memory | None = None,
    pending: str | Pending = "ignore",
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """Experimental design, argmax sigma_{t-1}(x) (Srinivas et al. 2010, eq. 4): learns f everywhere; see `gp_ucb`.

    The information it gathers is at least (1 - 1/e) of the most possible. "Variance only" in their section 6.
    """
    return _rule(
        "greedy_variance", domain, kernel, PosteriorDeviation(),
        noise=noise, context=context, delta=delta, regularization=regularization, prior_mean=prior_mean,
        memory=memory, pending=pending, search=search, refit=refit,
    )  # fmt: skip


def _rule(
    algorithm: str,
    domain: Domain,
    kernel: Kernel,
    score: Score,
    *,
    noise: float,
    delta: float,
    regularization: float | None,
    context: Domain | None,
    **slots: Any,
) -> Policy:
    """A rule that uses no confidence bounds."""
    noise = checked_noise(noise)
    ridge = ridge_of_noise(regularization, noise)
    check_model(domain, context, kernel)
    confidence = bounds_without_theorem(domain, context, delta=delta, noise_matched=ridge == noise**2)
    return build(
        algorithm, domain, kernel, confidence, score, noise=noise, regularization=ridge, context=context, **slots
    )
