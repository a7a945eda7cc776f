"""Srinivas, Krause, Kakade & Seeger 2010: GP-UCB, experimental design, and the rules it is compared with."""

from __future__ import annotations

from typing import Unpack

from .._utils.checks import flag
from .._utils.errors import InvalidInput
from ..domains.domain import Domain
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.envelope import Confidence
from ..slots.refit import Learning
from ..slots.scores import (
    ExpectedImprovement,
    PosteriorDeviation,
    PosteriorMean,
    ProbabilityOfImprovement,
    Score,
    UpperConfidenceBound,
)
from ..slots.widths.self_normalized import BoundedNoise
from ..theory.series import Series
from .common import (
    Slots,
    algorithm,
    bayes_width,
    bounds_without_theorem,
    build,
    check_gain,
    checked_noise,
    chosen_gain,
    chosen_width,
    is_other,
    norm_bound_or_guess,
    prior_std,
    ridge_of_noise,
)

WIDTHS = ("finite", "compact", "rkhs")
DRAWN = ("randomised", "recommended")  # words that `width` had once
SMALL_MARGIN = 0.05  # of the prior standard deviation, for the probability of improvement


@algorithm()
def gp_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    width: str | Confidence | None = None,
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
    **slots: Unpack[Slots],
) -> Policy:
    """GP-UCB: play argmax mu_{t-1}(x) + beta_t^{1/2} sigma_{t-1}(x) (Srinivas et al. 2010, Algorithm 1, eq. 6).

    beta_t is that of Theorem 1 where arms and contexts are finitely many, that of Theorem 2 elsewhere, unless `width`
    says otherwise. `irgp_ucb` draws a width in each round instead, which has less regret.

    Args:
        domain: arms, a box, or a space of parameters (encoded into the unit cube).
        kernel: prior covariance of the rewards, on (context, point) rows where there are contexts; the theorems assume
            k(x, x) <= 1.
        noise: standard deviation of the reward noise (Theorem 3: its largest absolute value), reward units.
        width: "finite" for Theorem 1, beta_t = 2 log(|D| t^2 pi^2 / (6 delta)), the default where D is finite;
            "compact" for Theorem 2, the default elsewhere, beta_t = 2 log(2 t^2 pi^2 / (3 delta)) + 2 d log(t^2 d b r
            sqrt(log(4 d a / delta))); "rkhs" for Theorem 3, beta_t = 2 B^2 + 300 gamma_t log^3(t / delta). Or a part,
            also one of your own, such as `nilregret.slots.envelope.ConstantWidth(value=2.0)`; then nothing below that
            is about the bounds may be given.
        scale: multiplies beta_t; the paper's experiments divide it by 5 (0.2). Below 1 nothing is proved.
        delta: failure probability of the confidence bounds.
        a: of Theorem 2, P(sup |df/dx_j| > L) <= a exp(-(L / b)^2); derived from the kernel unless given (how:
            `nilregret.slots.widths.slopes`).
        b: likewise, in reward units per unit of length.
        r: longest side of the box, of Theorem 2; taken from the domain unless given.
        series: pi_t of Theorems 1 and 2 (Lemma 5.1: any with sum 1 / pi_t = 1), which shares delta out over the rounds:
            a power p > 1 for pi_t = zeta(p) t^p, or a part such as `nr.slots.EvenSeries(1000)`; pi^2 t^2 / 6 unless
            given.
        norm_bound: B of Theorem 3, a bound on ||f||_k, reward units.
        guess_norm: with width="rkhs", take `norm_bound` (1 unless given) as a guess only and double it whenever the
            observations contradict it (the paper's remark after Theorem 3); `study.norm_bounds` shows the guesses.
        information_gain: gamma_t of Theorem 3: "greedy", an upper bound; "realised", "rate" or a number, for which
            nothing is proved.
        regularization: lambda; `noise**2` unless given, as in eq. 1. With another value nothing is proved.
        slots: what every algorithm takes (`nilregret.algorithms.Slots`):

            - context: domain of the contexts given to `ask`, or None.
            - prior_mean: what a reward is expected to be before anything is seen, reward units; 0 unless given. The
              theorems are for f - prior_mean.
            - memory: which trials count: all of them; "adaptive", those since a change of the world was noticed
              (`nr.slots.EDetector()`); or a part such as `nr.slots.SlidingWindow(200)` or `nr.slots.RestartEvery(100)`.
            - explore: which rounds are forced: none, or a part of `nilregret.slots.explore`.
            - pending: what unanswered trials count as: "ignore", "hallucinate", or a part.
            - search: how a continuous domain is searched, `nr.slots.PointSearch(...)`.
            - refit: learn the kernel from the record, by fits on a schedule, `nr.slots.Refit(...)`, or as an average
              over
              lengthscales, `nr.slots.LengthscaleBank()`; then nothing is proved.
            - switching: how long a choice is played: one round unless given; "lazy", `nr.slots.Lazy()`, as long as
              little can
              be learned by it.
            - constraints: what must hold, each with a posterior of its own: `nr.EveryRound(count=1)`,
              `nr.OnAverage(count=1)` or `nr.Safe(start=points, scale=...)`; none unless given.
            - reward: what rewards are, if more is known than their size: "bernoulli" (clicks), "poisson" (counts) or
              "bounded", or a part such as `nr.slots.Bernoulli(ceiling=0.1)`; `noise` then follows and is left out.

    Raises:
        InvalidInput: for values that make no sense, and for parts that do not go together.
        TypeError: for a keyword that is none of these.
    """
    noise = checked_noise(noise)
    ridge = ridge_of_noise(regularization, noise)  # sigma^2 of eq. 1
    matched = ridge == noise**2
    context = slots.get("context")
    check_model(domain, context, kernel)
    flag("guess_norm", guess_norm, why="The guess itself is `norm_bound`.")
    check_gain(information_gain)
    _refuse_old_words(width)
    confidence: Confidence
    chosen = chosen_width(
        width, WIDTHS, delta=delta, scale=is_other(scale, 1.0), a=a is not None, b=b is not None,
        r=r is not None, series=series is not None, norm_bound=norm_bound is not None, guess_norm=guess_norm,
        information_gain=is_other(information_gain, "greedy"),
    )  # fmt: skip
    if not isinstance(chosen, str | None):
        confidence = chosen
    elif chosen == "rkhs":
        if series is not None:
            raise InvalidInput("`series` is of Theorems 1 and 2: Theorem 3 has no pi_t. Leave it out.")
        bound = _norm_of_theorem_3(norm_bound, guess_norm=guess_norm, refit=slots.get("refit"))
        gain = chosen_gain(information_gain, domain, context, kernel)
        confidence = BoundedNoise(
            norm_bound=bound, gain=gain, delta=delta, scale=scale, noise_matched=matched, guessed=guess_norm,
            noise=noise,
        )  # fmt: skip
    else:
        if norm_bound is not None or guess_norm:
            raise InvalidInput(
                "`norm_bound` belongs to Theorem 3: add `width` 'rkhs' to use it, or leave it out; Theorems 1 and 2 "
                "are for samples of the process and need none."
            )
        confidence = bayes_width(
            domain, context, kernel, width=chosen, a=a, b=b, r=r, delta=delta, scale=scale, noise_matched=matched,
            series=series,
        )  # fmt: skip
    return build(
        "gp_ucb", domain, kernel, confidence, UpperConfidenceBound(),  # eq. 6
        noise=noise, regularization=ridge, **slots,
    )  # fmt: skip


def _refuse_old_words(width: object) -> None:
    """Words that `width` had when the default was drawn."""
    if isinstance(width, str) and width in DRAWN:
        shift = "theorem" if width == "randomised" else "half"
        raise InvalidInput(
            f"`width` {width!r} draws a width in each round, which is no GP-UCB: take the algorithm 'irgp_ucb' with "
            f"`shift` {shift!r}."
        )
    if isinstance(width, str) and width == "theorem":
        raise InvalidInput(
            "`width` 'theorem' is what `gp_ucb` plays unless told otherwise, Theorem 1 or 2 as the domain has it: "
            "leave `width` out."
        )


def _norm_of_theorem_3(norm_bound: float | None, *, guess_norm: bool, refit: Learning | None) -> float:
    """B of Theorem 3, or the first guess of it."""
    if norm_bound is None and not guess_norm:
        raise InvalidInput(
            "`width` 'rkhs' is Theorem 3, which needs `norm_bound`: a bound on the norm of f in the kernel's RKHS. "
            "Where none is known, `guess_norm` finds one by doubling."
        )
    return norm_bound_or_guess(norm_bound, guess_norm=guess_norm, refit=refit)


@algorithm()
def expected_improvement(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    incumbent: str = "mean",
    margin: float = 0.0,
    width: str | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """Expected improvement, EI (Mockus et al. 1978), on the highest posterior mean in place of the best reward.

    The baseline of Srinivas et al. 2010, section 6. Before the first reward the prior mean is the incumbent.

    Args:
        domain, kernel, noise, regularization, slots: see `gp_ucb`.
        incumbent: "mean", the highest posterior mean over the domain under the context of the question, which makes EI
            competitive under noise (Srinivas et al.), or "reward", the best noisy reward told under that very context,
            with which it gets stuck (as in Chowdhury & Gopalan 2017). See `nilregret.slots.scores.Improvement`.
        margin: improvement below which a point does not count, reward units.
        width: of `study.bounds` alone: "finite", those of Theorem 1, the default on arms; "pointwise", for one point
            in one round, the default elsewhere; or a part.
        delta: likewise.
    """
    return _rule(
        "expected_improvement", domain, kernel, ExpectedImprovement(incumbent=incumbent, margin=margin),
        noise=noise, width=width, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


@algorithm()
def probability_of_improvement(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    incumbent: str = "mean",
    margin: float | None = None,
    width: str | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """Most probable improvement, PI (Kushner 1964), by a 20th of the prior std on the highest posterior mean.

    The baseline of Srinivas et al. 2010, section 6 ("MPI").

    Args:
        domain, kernel, noise, incumbent, width, delta, regularization, slots: see `expected_improvement`.
        margin: by how much it must improve, reward units; 5% of the prior standard deviation unless given. Without
            any, and with the incumbent "mean", the rule is `greedy_mean`.
    """
    if margin is None:
        margin = SMALL_MARGIN * prior_std(domain, slots.get("context"), kernel)
    return _rule(
        "probability_of_improvement", domain, kernel, ProbabilityOfImprovement(incumbent=incumbent, margin=margin),
        noise=noise, width=width, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


@algorithm()
def greedy_mean(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    width: str | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """Exploitation alone, argmax mu_{t-1}(x) ("mean only" of Srinivas et al. 2010, section 6).

    Args:
        domain, kernel, noise, width, delta, regularization, slots: see `expected_improvement`.
    """
    return _rule(
        "greedy_mean", domain, kernel, PosteriorMean(),
        noise=noise, width=width, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


@algorithm()
def greedy_variance(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    width: str | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """Experimental design, argmax sigma_{t-1}(x) (Srinivas et al. 2010, eq. 4): learns f everywhere.

    The information it gathers is at least (1 - 1/e) of the most possible. "Variance only" in their section 6.

    Args:
        domain, kernel, noise, width, delta, regularization, slots: see `expected_improvement`.
    """
    return _rule(
        "greedy_variance", domain, kernel, PosteriorDeviation(),
        noise=noise, width=width, delta=delta, regularization=regularization, **slots,
    )  # fmt: skip


def _rule(
    algorithm: str,
    domain: Domain,
    kernel: Kernel,
    score: Score,
    *,
    noise: float | None = None,
    width: str | Confidence | None,
    delta: float,
    regularization: float | None,
    **slots: Unpack[Slots],
) -> Policy:
    """A rule that uses no confidence bounds."""
    noise = checked_noise(noise)
    ridge = ridge_of_noise(regularization, noise)
    context = slots.get("context")
    check_model(domain, context, kernel)
    chosen = chosen_width(width, ["finite", "pointwise"], delta=delta)
    if not isinstance(chosen, str | None):
        confidence = chosen
    else:
        matched = ridge == noise**2
        confidence = bounds_without_theorem(domain, context, width=chosen, delta=delta, noise_matched=matched)
    return build(algorithm, domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)
