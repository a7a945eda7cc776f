"""GP-UCB and Thompson sampling for batches and delays, by the treatment of unanswered trials.

`gp_bucb` is of Desautels, Krause & Burdick 2014, `gp_bts` of Chowdhury & Gopalan 2019, and `asy_ts` of Kandasamy et al.
2018.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Unpack

from .._utils.checks import integer, shown
from ..domains.domain import D
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy
from ..slots.envelope import Confidence, ConstantWidth
from ..slots.explore import UncertaintySampling
from ..slots.scores import Score, ThompsonSample, UpperConfidenceBound
from ..slots.widths.delayed import Inflated
from .arguments import chosen_width, is_other, noise_and_ridge
from .bayes_widths import bayes_width
from .definition import Slots, algorithm, build, given


@algorithm(pending="trials without an answer are hallucinated")
def gp_bucb(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    beta: float | None = None,
    width: Literal["finite", "compact"] | Confidence | None = None,
    inflation: Literal["realised"] | float | None = None,
    initial: int = 0,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """GP-BUCB (Desautels, Krause & Burdick 2014) without its factor exp(C), which `inflation` gives.

    This is GP-UCB with hallucinated answers: an unanswered trial shrinks the variance and leaves the mean unchanged.

    Args:
        domain, kernel, noise, regularization, slots: see `gp_ucb`.
        beta: a constant multiplier of the standard deviation. By default the width is that of Theorem 1 or 2 of
            Srinivas et al.
        width: "finite" or "compact" for these theorems, or a part.
        inflation: the factor exp(C) by which the theorem of GP-BUCB widens the bounds. C bounds the information of
            unanswered trials about f given the answers, in nats. None leaves the factor out, and then nothing is
            proved. "realised" takes the actual information. A number takes that C, or the actual information if it is
            larger (`Inflated`). Delays must be independent of the rewards.
        initial: T_init, rounds of uncertainty sampling at the beginning and after each restart. They make C small.
        delta: failure probability of that theorem.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_bucb(arms, kernel, noise=0.1)
    >>> round(nr.Study(policy).width, 2), policy.valid_for
    (3.22, 'none')
    """
    noise = given("gp_bucb", noise, slots)
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
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    beta: float | None = None,
    width: Literal["finite", "compact"] | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """GP-BTS (Chowdhury & Gopalan 2019), of a width of Srinivas et al. 2010 in place of its own, unless told another.

    This is Thompson sampling with hallucinated answers. Each round draws from GP(mu, beta^2 cov), with mu of the
    answered trials and cov of all trials.

    Args:
        domain, kernel, noise, beta, width, delta, regularization, slots: see `gp_bucb`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.gp_bts(arms, kernel, noise=0.1)
    >>> policy.valid_for
    'none'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("gp_bts", noise, slots)
    slots["pending"] = "hallucinate"
    return _batch(
        "gp_bts", domain, kernel, ThompsonSample(), noise=noise, beta=beta, width=width, delta=delta,
        regularization=regularization, **slots,
    )  # fmt: skip


@algorithm(pending="trials without an answer are ignored")
def asy_ts(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    beta: float | None = 1.0,
    width: Literal["finite", "compact"] | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """asy-TS: Thompson sampling that ignores the answers it waits for (Kandasamy et al. 2018).

    Each round draws from the posterior of the answered trials, GP(mu, beta^2 cov). beta is 1 unless another width is
    given.

    Args:
        domain, kernel, noise, beta, width, delta, regularization, slots: see `gp_bucb`.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.asy_ts(arms, kernel, noise=0.1)
    >>> policy.valid_for
    'none'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("asy_ts", noise, slots)
    if width is not None and not is_other(beta, 1.0):
        beta = None  # The default gives way to the width.
    return _batch(
        "asy_ts", domain, kernel, ThompsonSample(), noise=noise, beta=beta, width=width, delta=delta,
        regularization=regularization, **slots,
    )  # fmt: skip


def _batch(
    algorithm: str,
    domain: D,
    kernel: Kernel,
    score: Score,
    *,
    noise: float | None = None,
    beta: float | None,
    width: str | Confidence | None,
    delta: float,
    regularization: float | None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """Returns a policy for batches, with a constant width or that of Srinivas et al. 2010."""
    noise, ridge = noise_and_ridge(domain, kernel, noise, regularization, slots)
    confidence = chosen_width(width, ["finite", "compact"], delta=delta, beta=beta is not None)
    if isinstance(confidence, str | None):
        if beta is None:
            context, matched = slots.get("context"), ridge == noise**2
            confidence = bayes_width(domain, context, kernel, width=confidence, delta=delta, noise_matched=matched)
        elif confidence is not None:
            raise InvalidInput("`beta` is a constant in place of the theorem's width that `width` names: give one.")
        else:
            confidence = ConstantWidth(value=beta, delta=delta)
    return build(algorithm, domain, kernel, confidence, score, noise=noise, regularization=ridge, **slots)
