"""Verma, Dai & Low 2022: GP-UCB-SDF and GP-TS-SDF for answers that come late, and what they are compared with."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Unpack

from .._utils.checks import integer, one_of, shown
from .._utils.errors import InvalidInput
from ..domains.domain import Domain
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.envelope import Confidence, ConstantWidth
from ..slots.explore import UncertaintySampling
from ..slots.memory import RestartDoubling
from ..slots.pending import Censored
from ..slots.scores import Score, ThompsonSample, UpperConfidenceBound
from ..slots.widths.delayed import CensoredBounds, CensoredWidth, Inflated
from .common import (
    Slots,
    algorithm,
    bayes_width,
    build,
    checked_noise,
    chosen_gain,
    chosen_width,
    is_other,
    ridge_for_horizon,
    ridge_of_noise,
)


@algorithm(
    pending="trials without an answer are censored, as `window`, `minimum` and `late` say",
    switching="each trial is one play, whose answer is censored by itself",
)
def gp_ucb_sdf(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    window: float | timedelta,
    minimum: float | None = 0.0,
    reward_bound: float = 1.0,
    norm_bound: float = 1.0,
    beta: float | None = None,
    width: str | Confidence | None = None,
    late: str = "drop",
    horizon: int | str | None = None,
    information_gain: str | float = "realised",
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """GP-UCB-SDF (Verma, Dai & Low 2022, eq. 2) by the realised information gain; lambda = 1 without `horizon`.

    argmax mu_{t-1} + nu_t sigma_{t-1}, unanswered trials censored. nu_t = B_y sum_{s=t-m}^{t-1} sigma_{t-1}(x_s) +
    beta_t, with beta_t = B_f + (R + B_y) sqrt(2 (gamma_{t-1} + 1 + log(2 / delta))). Standard deviations are of f,
    without noise.

    Args:
        domain, kernel: see `gp_ucb`.
        noise: R, the sub-Gaussian constant of the noise, reward units.
        window: m: an answer counts that comes before more than m further trials have been asked for; or a `timedelta`.
            For batches of b, b - 1; for random delays twice their mean is a good choice.
        minimum: the smallest value of f, as which an unanswered trial counts; None where it is not known (then the
            smallest reward told so far takes its place, and nothing is proved).
        reward_bound: B_y, a bound on how far a reward is above the minimum, reward units.
        norm_bound: B_f, a bound on the norm of f - minimum in the kernel's RKHS, reward units.
        beta: a constant in place of beta_t; the paper's experiments take 1. Then nothing is proved.
        width: "censored", nu_t; "tight", bounds of the same that are never wider (`CensoredBounds`: only what is
            missing is missed, and at the points that it tells of); or a part, also one of your own, with which nothing
            else that is about the bounds may be given.
        late: "drop", as in the paper: a later answer never counts; "accept": it does, and then nothing is proved.
        horizon: T; sets lambda = 1 + 2/T. "doubling" starts afresh after 16, 32, 64, ... rounds, each time with the
            lambda of the period to come (`RestartDoubling`); the default needs no T and forgets nothing.
        information_gain: see `igp_ucb`.
        delta: failure probability. The bounds hold for rho_m f, rho_m the probability of an answer within the window.
        regularization: lambda; 1 + 2/T unless given, 1 without a horizon. Below 1 the theorem's width has further
            factors (`CensoredWidth`), which make it very wide; a constant `beta` has none.
        slots: see `gp_ucb`; `prior_mean` is the minimum unless given, as the paper shifts rewards.
    """
    return _censoring(
        "gp_ucb_sdf", domain, kernel, UpperConfidenceBound(), parts=2, noise=noise, window=window, minimum=minimum,
        reward_bound=reward_bound, norm_bound=norm_bound, beta=beta, width=width, late=late, horizon=horizon,
        information_gain=information_gain, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


@algorithm(
    pending="trials without an answer are censored, as `window`, `minimum` and `late` say",
    switching="each trial is one play, whose answer is censored by itself",
)
def gp_ts_sdf(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    window: float | timedelta,
    minimum: float | None = 0.0,
    reward_bound: float = 1.0,
    norm_bound: float = 1.0,
    beta: float | None = None,
    width: str | Confidence | None = None,
    late: str = "drop",
    horizon: int | str | None = None,
    information_gain: str | float = "realised",
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """GP-TS-SDF (Verma, Dai & Low 2022, eq. 3) by the realised information gain; lambda = 1 without `horizon`.

    The argmax of a draw from GP(mu_{t-1}, nu_t^2 cov_{t-1}). As `gp_ucb_sdf`, with log(4 / delta) in beta_t. (The code
    that the paper released draws without nu_t.)

    Args:
        domain, kernel, noise, window, minimum, reward_bound, norm_bound, beta, width: see `gp_ucb_sdf`.
        late, horizon, information_gain, delta, regularization, slots: likewise.
    """
    return _censoring(
        "gp_ts_sdf", domain, kernel, ThompsonSample(), parts=4, noise=noise, window=window, minimum=minimum,
        reward_bound=reward_bound, norm_bound=norm_bound, beta=beta, width=width, late=late, horizon=horizon,
        information_gain=information_gain, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


def _censoring(
    algorithm: str,
    domain: Domain,
    kernel: Kernel,
    score: Score,
    *,
    parts: int,
    noise: float | None = None,
    window: float | timedelta,
    minimum: float | None,
    reward_bound: float,
    norm_bound: float,
    beta: float | None,
    width: str | Confidence | None,
    late: str,
    horizon: int | str | None,
    information_gain: str | float,
    delta: float,
    regularization: float | None,
    **slots: Unpack[Slots],
) -> Policy:
    if isinstance(horizon, str):
        one_of("horizon", horizon, ["doubling"], why="Or give the number of rounds, or None.")
        if slots.get("memory") is not None or regularization is not None:
            raise InvalidInput(
                "`horizon` 'doubling' decides itself which trials count and what lambda is: leave `memory` and "
                "`regularization` out.",
                advice="Or give `memory=nr.slots.RestartDoubling(...)` in its place.",
            )
        slots["memory"], horizon = RestartDoubling(16, ridge=True), None
    noise, ridge = checked_noise(noise), ridge_for_horizon(regularization, horizon)
    context = slots.get("context")
    check_model(domain, context, kernel)
    pending = Censored.within(window, minimum=minimum, late=late)
    names = ["censored"] if score.draws else ["censored", "tight"]
    chosen = chosen_width(
        width, names, delta=delta, reward_bound=reward_bound != 1.0, norm_bound=norm_bound != 1.0,
        beta=beta is not None, information_gain=is_other(information_gain, "realised"),
    )  # fmt: skip
    gain = chosen_gain(information_gain, domain, context, kernel)
    confidence: Confidence
    if not isinstance(chosen, str | None):
        confidence = chosen
    elif chosen == "tight":
        if beta is not None:
            raise InvalidInput("`beta` is a constant in place of beta_t, and `width` 'tight' has a beta_t: give one.")
        confidence = CensoredBounds(
            window=pending.window, in_time=pending.in_time, reward_bound=reward_bound, norm_bound=norm_bound,
            ridge=ridge, gain=gain, delta=delta,
        )  # fmt: skip
    else:
        confidence = CensoredWidth(
            window=pending.window, in_time=pending.in_time, reward_bound=reward_bound, norm_bound=norm_bound,
            noise=noise, beta=beta, gain=gain, parts=parts, delta=delta, ridge_large=ridge >= 1.0,
            ridge=min(ridge, 1.0),
        )  # fmt: skip
    slots["pending"] = pending
    if slots.get("prior_mean") is None:
        slots["prior_mean"] = minimum  # as the paper shifts rewards
    return build(algorithm, domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)


@algorithm(pending="trials without an answer are hallucinated")
def gp_bucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    beta: float | None = None,
    width: str | Confidence | None = None,
    inflation: str | float | None = None,
    initial: int = 0,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """GP-BUCB (Desautels, Krause & Burdick 2014) without its factor exp(C), which `inflation` gives.

    GP-UCB that hallucinates the answers it waits for: unanswered trials shrink the variance and leave the mean as it
    is.

    Args:
        domain, kernel, noise, regularization, slots: see `gp_ucb`.
        beta: a constant width, the multiplier of the standard deviation; the one of Srinivas et al.'s Theorem 1 or 2
            unless given.
        width: "finite" or "compact", those theorems; or a part, also one of your own.
        inflation: the factor exp(C) by which the theorem of GP-BUCB widens that, C a bound in nats of what unanswered
            trials tell about f given the answers. None leaves it out, and then nothing is proved. "realised" takes
            what they tell; a number takes that C, or what they tell where it is more (`Inflated`). Delays must have
            nothing to do with the rewards.
        initial: T_init, rounds of uncertainty sampling at the beginning (and after each restart), which make C small.
        delta: of that theorem.
    """
    initial = integer("initial", initial, low=0, why="It counts rounds of uncertainty sampling.")
    if initial:
        if slots.get("explore") is not None:
            raise InvalidInput("`initial` and `explore` both say which rounds are forced: give one of them.")
        slots["explore"] = UncertaintySampling(initial)
    slots["pending"] = "hallucinate"
    policy = _batch(
        "gp_bucb", domain, kernel, UpperConfidenceBound(), noise=noise, beta=beta, width=width, delta=delta,
        regularization=regularization, **slots,
    )  # fmt: skip
    if inflation is not None:
        least = 0.0 if isinstance(inflation, str) and inflation == "realised" else inflation
        if isinstance(least, str):
            raise InvalidInput(f"`inflation` is {shown(inflation)}: it must be 'realised', a number of nats, or None.")
        policy = replace(policy, confidence=Inflated(base=policy.confidence, least=least))  # type: ignore[arg-type]  # a `Width`
    return policy


@algorithm(pending="trials without an answer are hallucinated")
def gp_bts(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    beta: float | None = None,
    width: str | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """GP-BTS (Chowdhury & Gopalan 2019), of a width of Srinivas et al. 2010 in place of its own, unless told another.

    Thompson sampling that hallucinates the answers it waits for. Draws from GP(mu, beta^2 cov), with mu of the answered
    trials and cov of all.

    Args:
        domain, kernel, noise, beta, width, delta, regularization, slots: see `gp_bucb`.
    """
    slots["pending"] = "hallucinate"
    return _batch(
        "gp_bts", domain, kernel, ThompsonSample(), noise=noise, beta=beta, width=width, delta=delta,
        regularization=regularization, **slots,
    )  # fmt: skip


@algorithm(pending="trials without an answer are ignored")
def asy_ts(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    beta: float | None = 1.0,
    width: str | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """asy-TS: Thompson sampling that ignores the answers it waits for (Kandasamy et al. 2018).

    Draws from the posterior of the answered trials, GP(mu, beta^2 cov), with beta = 1 unless another width is given.

    Args:
        domain, kernel, noise, beta, width, delta, regularization, slots: see `gp_bucb`.
    """
    if width is not None and not is_other(beta, 1.0):
        beta = None  # not given: the width takes its place
    return _batch(
        "asy_ts", domain, kernel, ThompsonSample(), noise=noise, beta=beta, width=width, delta=delta,
        regularization=regularization, **slots,
    )  # fmt: skip


def _batch(
    algorithm: str,
    domain: Domain,
    kernel: Kernel,
    score: Score,
    *,
    noise: float | None = None,
    beta: float | None,
    width: str | Confidence | None,
    delta: float,
    regularization: float | None,
    **slots: Unpack[Slots],
) -> Policy:
    noise = checked_noise(noise)
    ridge = ridge_of_noise(regularization, noise)
    context = slots.get("context")
    check_model(domain, context, kernel)
    chosen = chosen_width(width, ["finite", "compact"], delta=delta, beta=beta is not None)
    confidence: Confidence
    if not isinstance(chosen, str | None):
        confidence = chosen
    elif beta is not None:
        if chosen is not None:
            raise InvalidInput("`beta` is a constant in place of the theorem's width that `width` names: give one.")
        confidence = ConstantWidth(value=beta, delta=delta)
    else:
        confidence = bayes_width(
            domain, context, kernel,
            width=chosen, a=None, b=None, r=None, delta=delta, scale=1.0, noise_matched=ridge == noise**2,
        )  # fmt: skip
    return build(algorithm, domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)
