"""Verma, Dai & Low 2022: GP-UCB-SDF and GP-TS-SDF for answers that come late, and what they are compared with."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from ..checks import integer, one_of, shown
from ..domain import Domain
from ..errors import InvalidInput
from ..kernels import Kernel
from ..parts.confidence import Confidence, ConstantWidth
from ..parts.delayed import CensoredWidth, Inflated
from ..parts.explore import UncertaintySampling
from ..parts.memory import Memory, RestartDoubling
from ..parts.pending import Censored
from ..parts.refit import Refit
from ..parts.scores import Score, ThompsonSample, UpperConfidenceBound
from ..parts.search import PointSearch
from ..policy import Policy, check_model
from .common import bayes_width, build, checked_noise, chosen_gain, ridge_for_horizon, ridge_of_noise


def gp_ucb_sdf(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    window: float | timedelta,
    minimum: float | None = 0.0,
    reward_bound: float = 1.0,
    norm_bound: float = 1.0,
    beta: float | None = None,
    late: str = "drop",
    horizon: int | str | None = None,
    context: Domain | None = None,
    information_gain: str | float = "realised",
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float | None = None,
    memory: Memory | None = None,
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """GP-UCB-SDF: argmax mu_{t-1} + nu_t sigma_{t-1}, unanswered trials censored (Verma, Dai & Low 2022, eq. 2).

    nu_t = B_y sum_{s=t-m}^{t-1} sigma_{t-1}(x_s) + beta_t, with
    beta_t = B_f + (R + B_y) sqrt(2 (gamma_{t-1} + 1 + log(2 / delta))). Standard deviations are of f, without noise.

    Args:
        domain, kernel, context, memory, search, refit: see `gp_ucb`.
        noise: R, the sub-Gaussian constant of the noise, reward units.
        window: m: an answer counts that comes before more than m further trials have been asked for; or a `timedelta`.
            For batches of b, b - 1; for random delays twice their mean is a good choice.
        minimum: the smallest value of f, as which an unanswered trial counts; None where it is not known (then the
            smallest reward told so far takes its place, and nothing is proved).
        reward_bound: B_y, a bound on how far a reward is above the minimum, reward units.
        norm_bound: B_f, a bound on the norm of f - minimum in the kernel's RKHS, reward units.
        beta: a constant in place of beta_t; the paper's experiments take 1. Then nothing is proved.
        late: "drop", as in the paper: a later answer never counts; "accept": it does, and then nothing is proved.
        horizon: T; sets lambda = 1 + 2/T. "doubling" starts afresh after 16, 32, 64, ... rounds, each time with the
            lambda of the period to come (`RestartDoubling`); the default needs no T and forgets nothing.
        information_gain: see `igp_ucb`.
        delta: failure probability. The bounds hold for rho_m f, rho_m the probability of an answer within the window.
        regularization: lambda; 1 + 2/T unless given, 1 without a horizon. Below 1 the theorem's width has further
            factors (`CensoredWidth`), which make it very wide; a constant `beta` has none.
        prior_mean: the minimum unless given, as the paper shifts rewards.
    """
    confidence, slots = _censoring(
        domain, kernel, noise=noise, window=window, minimum=minimum, reward_bound=reward_bound, norm_bound=norm_bound,
        beta=beta, late=late, context=context, information_gain=information_gain, delta=delta, parts=2, horizon=horizon,
        regularization=regularization, prior_mean=prior_mean, memory=memory,
    )  # fmt: skip
    return build(
        "gp_ucb_sdf", domain, kernel, confidence, UpperConfidenceBound(),
        context=context, search=search, refit=refit, **slots,
    )  # fmt: skip


def gp_ts_sdf(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    window: float | timedelta,
    minimum: float | None = 0.0,
    reward_bound: float = 1.0,
    norm_bound: float = 1.0,
    beta: float | None = None,
    late: str = "drop",
    horizon: int | str | None = None,
    context: Domain | None = None,
    information_gain: str | float = "realised",
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float | None = None,
    memory: Memory | None = None,
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """GP-TS-SDF: the argmax of a draw from GP(mu_{t-1}, nu_t^2 cov_{t-1}) (Verma, Dai & Low 2022, eq. 3).

    As `gp_ucb_sdf`, with log(4 / delta) in beta_t. (The code that the paper released draws without nu_t.)
    """
    confidence, slots = _censoring(
        domain, kernel, noise=noise, window=window, minimum=minimum, reward_bound=reward_bound, norm_bound=norm_bound,
        beta=beta, late=late, context=context, information_gain=information_gain, delta=delta, parts=4, horizon=horizon,
        regularization=regularization, prior_mean=prior_mean, memory=memory,
    )  # fmt: skip
    return build(
        "gp_ts_sdf", domain, kernel, confidence, ThompsonSample(),
        context=context, search=search, refit=refit, **slots,
    )  # fmt: skip


def _censoring(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    window: float | timedelta,
    minimum: float | None,
    reward_bound: float,
    norm_bound: float,
    beta: float | None,
    late: str,
    context: Domain | None,
    information_gain: str | float,
    delta: float,
    parts: int,
    horizon: int | str | None,
    memory: Memory | None,
    regularization: float | None,
    prior_mean: float | None,
) -> tuple[Confidence, dict[str, Any]]:
    if isinstance(horizon, str):
        one_of("horizon", horizon, ["doubling"], why="Or give the number of rounds, or None.")
        if memory is not None or regularization is not None:
            raise InvalidInput(
                "horizon='doubling' decides itself which trials count and what lambda is: leave `memory` and "
                "`regularization` out, or give `memory=nr.RestartDoubling(...)` in its place."
            )
        memory, horizon = RestartDoubling(16, ridge=True), None
    noise, ridge = checked_noise(noise), ridge_for_horizon(regularization, horizon)
    check_model(domain, context, kernel)
    pending = Censored.within(window, minimum=minimum, late=late)
    confidence = CensoredWidth(
        window=pending.window,
        in_time=pending.in_time,
        reward_bound=reward_bound,
        norm_bound=norm_bound,
        noise=noise,
        beta=beta,
        gain=chosen_gain(information_gain, domain, context, kernel),
        parts=parts,
        delta=delta,
        ridge_large=ridge >= 1.0,
        ridge=min(ridge, 1.0),
    )
    if prior_mean is None:
        prior_mean = 0.0 if minimum is None else minimum
    slots = {"noise": noise, "regularization": ridge, "prior_mean": prior_mean, "pending": pending, "memory": memory}
    return confidence, slots


def gp_bucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    beta: float | None = None,
    inflation: str | float | None = None,
    initial: int = 0,
    context: Domain | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    memory: Memory | None = None,
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """GP-BUCB: GP-UCB that hallucinates the answers it waits for (Desautels, Krause & Burdick 2014).

    Unanswered trials shrink the variance and leave the mean as it is.

    Args:
        domain, kernel, noise, context, regularization, prior_mean, memory, search, refit: see `gp_ucb`.
        beta: a constant width, the multiplier of the standard deviation; the one of Srinivas et al.'s Theorem 1 or 2
            unless given.
        inflation: the factor exp(C) by which the theorem of GP-BUCB widens that, C a bound in nats of what unanswered
            trials tell about f given the answers. None leaves it out, and then nothing is proved. "realised" takes
            what they tell; a number takes that C, or what they tell where it is more (`Inflated`). Delays must have
            nothing to do with the rewards.
        initial: T_init, rounds of uncertainty sampling at the beginning (and after each restart), which make C small.
        delta: of that theorem.
    """
    score = UpperConfidenceBound()
    policy = _batch("gp_bucb", domain, kernel, score, "hallucinate", noise, beta, context, delta, regularization,
                    prior_mean=prior_mean, memory=memory, search=search, refit=refit)  # fmt: skip
    if inflation is not None:
        least = 0.0 if isinstance(inflation, str) and inflation == "realised" else inflation
        if isinstance(least, str):
            raise InvalidInput(f"`inflation` is {shown(inflation)}: it must be 'realised', a number of nats, or None.")
        policy = replace(policy, confidence=Inflated(base=policy.confidence, least=least))
    initial = integer("initial", initial, low=0, why="It counts rounds of uncertainty sampling.")
    return replace(policy, explore=UncertaintySampling(initial)) if initial else policy


def gp_bts(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    beta: float | None = None,
    context: Domain | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    memory: Memory | None = None,
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """GP-BTS: Thompson sampling that hallucinates the answers it waits for (Chowdhury & Gopalan 2019).

    Draws from GP(mu, beta^2 cov), with mu of the answered trials and cov of all; see `gp_bucb`.
    """
    score = ThompsonSample()
    return _batch("gp_bts", domain, kernel, score, "hallucinate", noise, beta, context, delta, regularization,
                  prior_mean=prior_mean, memory=memory, search=search, refit=refit)  # fmt: skip


def asy_ts(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    beta: float | None = 1.0,
    context: Domain | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    memory: Memory | None = None,
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """asy-TS: Thompson sampling that ignores the answers it waits for (Kandasamy et al. 2018).

    Draws from the posterior of the answered trials, GP(mu, beta^2 cov), with beta = 1 unless given; see `gp_bucb`.
    """
    score = ThompsonSample()
    return _batch("asy_ts", domain, kernel, score, "ignore", noise, beta, context, delta, regularization,
                  prior_mean=prior_mean, memory=memory, search=search, refit=refit)  # fmt: skip


def _batch(
    algorithm: str,
    domain: Domain,
    kernel: Kernel,
    score: Score,
    pending: str,
    noise: float,
    beta: float | None,
    context: Domain | None,
    delta: float,
    regularization: float | None,
    **slots: Any,
) -> Policy:
    noise = checked_noise(noise)
    ridge = ridge_of_noise(regularization, noise)
    check_model(domain, context, kernel)
    confidence: Confidence
    if beta is not None:
        confidence = ConstantWidth(value=beta, delta=delta)
    else:
        confidence = bayes_width(
            domain, context, kernel,
            width=None, a=None, b=None, r=None, delta=delta, scale=1.0, noise_matched=ridge == noise**2,
        )  # fmt: skip
    return build(
        algorithm, domain, kernel, confidence, score,
        noise=noise, regularization=ridge, context=context, pending=pending, **slots,
    )  # fmt: skip
