"""GP-UCB-SDF and GP-TS-SDF for rewards that come late (Verma, Dai & Low 2022)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Literal, Unpack

from .._utils.checks import one_of
from ..domains.domain import D
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.envelope import Confidence
from ..slots.memory import RestartDoubling
from ..slots.pending import Censored
from ..slots.scores import Score, ThompsonSample, UpperConfidenceBound
from ..slots.widths.delayed import CensoredBounds, CensoredWidth
from .arguments import checked_noise, chosen_gain, chosen_width, is_other, ridge_for_horizon
from .definition import Slots, algorithm, build, given

FILLED = {
    "pending": "trials without an answer are censored, as `window`, `minimum` and `late` say",
    "switching": "each trial is one play, whose answer is censored by itself",
}


@algorithm(**FILLED)
def gp_ucb_sdf(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    window: float | timedelta,
    minimum: float | None = 0.0,
    reward_bound: float = 1.0,
    norm_bound: float = 1.0,
    beta: float | None = None,
    width: Literal["censored", "tight"] | Confidence | None = None,
    late: str = "drop",
    horizon: int | Literal["doubling"] | None = None,
    information_gain: Literal["greedy", "realised", "rate"] | float = "realised",
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """GP-UCB-SDF (Verma, Dai & Low 2022, eq. 2) by the realised information gain, lambda = 1 without `horizon`.

    Each round plays argmax mu_{t-1} + nu_t sigma_{t-1}, with unanswered trials censored. The width is
    nu_t = B_y sum_{s=t-m}^{t-1} sigma_{t-1}(x_s) + beta_t, with
    beta_t = B_f + (R + B_y) sqrt(2 (gamma_{t-1} + 1 + log(2 / delta))). Standard deviations are of f, without noise.

    Args:
        domain, kernel: see `gp_ucb`.
        noise: R, the sub-Gaussian constant of the noise, reward units.
        window: m. An answer counts if at most m further trials have been asked for by then. A `timedelta` counts time
            instead. For batches of b take b - 1, for random delays about twice their mean.
        minimum: the smallest value of f, which an unanswered trial counts as. If None, the smallest reward so far
            takes its place, and nothing is proved.
        reward_bound: B_y, the largest difference of a reward and the minimum, reward units.
        norm_bound: B_f, a bound on the norm of f - minimum in the kernel's RKHS, reward units.
        beta: a constant in place of beta_t, for which nothing is proved. The paper's experiments take 1.
        width: "censored", "tight" or a part.

            - "censored": nu_t.
            - "tight": bounds of rho_m f, too, which are never wider (`CensoredBounds`). Only missing rewards widen
              them, each at the points that are correlated with its own point.
            - A part. Then the other arguments about the bounds must be left out.
        late: "drop", as in the paper, ignores later answers. "accept" counts them, and then nothing is proved.
        horizon: T, which sets lambda = 1 + 2/T. "doubling" starts afresh after 16, 32, 64, ... rounds, each time with
            the lambda of the next period (`RestartDoubling`). The default needs no T and forgets nothing.
        information_gain: see `igp_ucb`.
        delta: failure probability. The bounds hold for rho_m f, with rho_m the probability of an answer within the
            window.
        regularization: lambda, 1 + 2/T unless given, and 1 without a horizon. Below 1 the theorem's width has further
            factors (`CensoredWidth`), which make it very wide. A constant `beta` has none.
        slots: see `gp_ucb`. `prior_mean` is the minimum unless given, as the paper shifts rewards.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb_sdf(arms, kernel, noise=0.1, window=10, norm_bound=1.0)
    >>> policy.valid_for
    'rho_m f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("gp_ucb_sdf", noise, slots)
    return _with_censoring(
        "gp_ucb_sdf", domain, kernel, UpperConfidenceBound(), parts=2, noise=noise, window=window, minimum=minimum,
        reward_bound=reward_bound, norm_bound=norm_bound, beta=beta, width=width, late=late, horizon=horizon,
        information_gain=information_gain, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


@algorithm(**FILLED)
def gp_ts_sdf(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    window: float | timedelta,
    minimum: float | None = 0.0,
    reward_bound: float = 1.0,
    norm_bound: float = 1.0,
    beta: float | None = None,
    width: Literal["censored"] | Confidence | None = None,
    late: str = "drop",
    horizon: int | Literal["doubling"] | None = None,
    information_gain: Literal["greedy", "realised", "rate"] | float = "realised",
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """GP-TS-SDF (Verma, Dai & Low 2022, eq. 3) by the realised information gain, lambda = 1 without `horizon`.

    Each round plays the argmax of a draw from GP(mu_{t-1}, nu_t^2 cov_{t-1}). nu_t is that of `gp_ucb_sdf`, with
    log(4 / delta) in beta_t. The code that the paper released draws without nu_t.

    Args:
        domain, kernel, noise, window, minimum, reward_bound, norm_bound, beta, width: see `gp_ucb_sdf`.
        late, horizon, information_gain, delta, regularization, slots: see `gp_ucb_sdf`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ts_sdf(arms, kernel, noise=0.1, window=10, norm_bound=1.0)
    >>> policy.valid_for
    'rho_m f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("gp_ts_sdf", noise, slots)
    return _with_censoring(
        "gp_ts_sdf", domain, kernel, ThompsonSample(), parts=4, noise=noise, window=window, minimum=minimum,
        reward_bound=reward_bound, norm_bound=norm_bound, beta=beta, width=width, late=late, horizon=horizon,
        information_gain=information_gain, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


def _with_censoring(
    algorithm: str,
    domain: D,
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
) -> Policy[D]:
    """Returns GP-UCB-SDF or GP-TS-SDF, with log(parts / delta) in beta_t."""
    horizon = _number_of_rounds(horizon, regularization, slots)
    noise, ridge = checked_noise(noise), ridge_for_horizon(regularization, horizon)
    check_model(domain, slots.get("context"), kernel)
    pending = Censored.within(window, minimum=minimum, late=late)
    confidence = chosen_width(
        width, ["censored"] if score.draws else ["censored", "tight"], delta=delta, reward_bound=reward_bound != 1.0,
        norm_bound=norm_bound != 1.0, beta=beta is not None, information_gain=is_other(information_gain, "realised"),
    )  # fmt: skip
    gain = chosen_gain(information_gain, domain, slots.get("context"), kernel)
    if isinstance(confidence, str | None):
        confidence = _censored_width(
            confidence, noise=noise, ridge=ridge, beta=beta, parts=parts, window=pending.window,
            in_time=pending.in_time, reward_bound=reward_bound, norm_bound=norm_bound, gain=gain, delta=delta,
        )  # fmt: skip
    slots["pending"] = pending
    if slots.get("prior_mean") is None:
        slots["prior_mean"] = minimum  # The paper shifts rewards by the minimum.
    return build(algorithm, domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)


def _number_of_rounds(horizon: int | str | None, regularization: float | None, slots: Slots) -> int | None:
    """Returns T, or None for "doubling", which fills the memory."""
    if not isinstance(horizon, str):
        return horizon
    one_of("horizon", horizon, ["doubling"], why="Or give the number of rounds, or None.")
    if slots.get("memory") is not None or regularization is not None:
        raise InvalidInput(
            "`horizon` 'doubling' decides itself which trials count and what lambda is: leave `memory` and "
            "`regularization` out.",
            advice="Or give `memory=nr.slots.RestartDoubling(...)` in its place.",
        )
    slots["memory"] = RestartDoubling(16, ridge=True)
    return None


def _censored_width(
    name: str | None, *, noise: float, ridge: float, beta: float | None, parts: int, **shared: Any
) -> Confidence:
    """Returns nu_t of eq. 2, or the tighter bounds. The `shared` arguments are those of both parts."""
    if name == "tight":
        if beta is not None:
            raise InvalidInput("`beta` is a constant in place of beta_t, and `width` 'tight' has a beta_t: give one.")
        return CensoredBounds(ridge=ridge, **shared)
    return CensoredWidth(noise=noise, beta=beta, parts=parts, ridge_large=ridge >= 1.0, ridge=min(ridge, 1.0), **shared)
