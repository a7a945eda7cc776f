"""The algorithms: each a citation and the parts that fill its slots."""

from __future__ import annotations

import math

from .checks import LARGEST_REWARD, number, one_of
from .domain import Arms, Domain, enclosing_box
from .errors import InvalidInput
from .kernels import Kernel
from .parts.confidence import CompactBayes, Confidence, FiniteBayes
from .parts.refit import Refit
from .parts.scores import UpperConfidenceBound
from .parts.search import PointSearch
from .parts.smoothness import derivative_tail
from .policy import Policy, check_model


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
    regularization: float | None = None,
    prior_mean: float = 0.0,
    search: PointSearch | None = None,
    refit: Refit | None = None,
) -> Policy:
    """GP-UCB: play argmax mu_{t-1}(x) + beta_t^{1/2} sigma_{t-1}(x) (Srinivas et al. 2010, Algorithm 1, eq. 6).

    Args:
        domain: arms, a box, or a space of parameters (encoded into the unit cube).
        kernel: prior covariance of the rewards, on (context, point) rows where there are contexts; the theorems assume
            k(x, x) <= 1.
        noise: standard deviation of the reward noise, reward units.
        context: domain of the contexts given to `ask`, or None.
        width: "finite" for Theorem 1, beta_t = 2 log(|D| t^2 pi^2 / (6 delta)), the default on arms; "compact" for
            Theorem 2, beta_t = 2 log(2 t^2 pi^2 / (3 delta)) + 2 d log(t^2 d b r sqrt(log(4 d a / delta))), the default
            elsewhere.
        scale: multiplies beta_t; the paper's experiments divide it by 5.
        delta: failure probability of the confidence bounds.
        a: of Theorem 2, P(sup |df/dx_j| > L) <= a exp(-(L / b)^2); derived from the kernel unless given (how:
            `noregret.parts.smoothness`).
        b: likewise, in reward units per unit of length.
        r: longest side of the box, of Theorem 2; taken from the domain unless given.
        regularization: lambda; `noise**2` unless given, as in eq. 1. With another value nothing is proved.
        prior_mean: what a reward is expected to be before anything is seen; the theorems are for f - prior_mean.
        search: how a continuous domain is searched.
        refit: learn the kernel from the record, on a schedule; then nothing is proved.
    """
    why = "It is a standard deviation, in the units of the reward."
    noise = number("noise", noise, low=0.0, high=LARGEST_REWARD, why=why)
    ridge = noise**2 if regularization is None else regularization  # sigma^2 of eq. 1
    check_model(domain, context, kernel)
    return Policy(
        algorithm="gp_ucb",
        domain=domain,
        context=context,
        kernel=kernel,
        noise=noise,
        regularization=ridge,
        prior_mean=prior_mean,
        confidence=_bayes_width(
            domain,
            context,
            kernel,
            width=width,
            a=a,
            b=b,
            r=r,
            delta=delta,
            scale=scale,
            noise_matched=ridge == noise**2,
        ),
        score=UpperConfidenceBound(),  # eq. 6
        search=PointSearch() if search is None else search,
        refit=refit,
    )


def _bayes_width(
    domain: Domain,
    context: Domain | None,
    kernel: Kernel,
    *,
    width: str | None,
    a: float | None,
    b: float | None,
    r: float | None,
    delta: float,
    scale: float,
    noise_matched: bool,
) -> Confidence:
    """The width of Theorem 1 or 2; with contexts D is the set of all (context, point)."""
    parts = [domain] if context is None else [context, domain]
    sizes = [len(part) for part in parts if isinstance(part, Arms)]
    finite = len(sizes) == len(parts)
    if width is None:
        width = "finite" if finite else "compact"
    one_of("width", width, ["finite", "compact"])
    if width == "finite":
        if not finite:
            raise InvalidInput(
                "width='finite' is Theorem 1, for finitely many arms (and contexts). On a continuous domain use "
                "width='compact' (Theorem 2), or arms from `Arms.grid` or `space.grid`."
            )
        return FiniteBayes(size=math.prod(sizes), delta=delta, scale=scale, noise_matched=noise_matched)
    if (a is None) != (b is None):
        raise InvalidInput("Theorem 2 needs `a` and `b` together: give both, or neither to have them derived.")
    box = enclosing_box(domain, context)
    if a is None or b is None:
        log_a, b = derivative_tail(kernel, box.lower, box.upper)
    else:
        log_a = math.log(number("a", a, low=0.0, open_low=True))
    return CompactBayes(
        dimension=box.dimension,
        side=float((box.upper - box.lower).max()) if r is None else r,
        log_a=log_a,
        b=b,
        delta=delta,
        scale=scale,
        noise_matched=noise_matched,
    )
