"""The algorithms: each a citation and the parts that fill its slots."""

from __future__ import annotations

import math

from .checks import number, one_of
from .domain import Arms, Box, Domain
from .errors import InvalidInput
from .kernels import Kernel
from .parts.confidence import CompactBayes, Confidence, FiniteBayes
from .parts.scores import UpperConfidenceBound
from .parts.search import PointSearch
from .parts.smoothness import Tail, derivative_tail
from .policy import Policy, check_domain, check_kernel


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
        regularization: lambda; `noise**2` unless given, as in eq. 1.
        prior_mean: what a reward is expected to be before anything is seen; the theorems are for f - prior_mean.
        search: how a continuous domain is searched.
    """
    noise = number("noise", noise, low=0.0, why="It is a standard deviation, in the units of the reward.")
    check_domain("domain", domain)
    check_kernel(kernel)
    return Policy(
        algorithm="gp_ucb",
        domain=domain,
        context=context,
        kernel=kernel,
        noise=noise,
        regularization=noise**2 if regularization is None else regularization,  # sigma^2 of eq. 1
        prior_mean=prior_mean,
        confidence=_bayes_width(domain, context, kernel, width=width, scale=scale, delta=delta, a=a, b=b, r=r),
        score=UpperConfidenceBound(),  # eq. 6
        search=PointSearch() if search is None else search,
    )


def _bayes_width(
    domain: Domain, context: Domain | None, kernel: Kernel, *, width: str | None, scale: float, delta: float,
    a: float | None, b: float | None, r: float | None,
) -> Confidence:  # fmt: skip
    """The width of Theorem 1 or 2; with contexts D is the set of all (context, point)."""
    parts = [domain] if context is None else [context, domain]
    finite = all(isinstance(part, Arms) for part in parts)
    if width is None:
        width = "finite" if finite else "compact"
    one_of("width", width, ["finite", "compact"])
    if width == "finite":
        if not finite:
            raise InvalidInput(
                "width='finite' is Theorem 1, for finitely many arms (and contexts). On a continuous domain use "
                "width='compact' (Theorem 2), or arms from `Arms.grid` or `space.grid`."
            )
        return FiniteBayes(size=math.prod(len(part) for part in parts if isinstance(part, Arms)), delta=delta, scale=scale)
    box = _enclosing_box(parts)
    if (a is None) != (b is None):
        raise InvalidInput("Theorem 2 needs `a` and `b` together: give both, or neither to derive them from the kernel.")
    if a is None or b is None:
        tail = derivative_tail(kernel, box.lower, box.upper)
    else:
        tail = Tail(math.log(number("a", a, low=0.0, open_low=True)), b)
    side = float((box.upper - box.lower).max()) if r is None else r
    return CompactBayes(dimension=box.dimension, side=side, log_a=tail.log_a, b=tail.b, delta=delta, scale=scale)


def _enclosing_box(parts: list[Domain]) -> Box:
    """The box of all (context, point) rows."""
    lower: list[float] = []
    upper: list[float] = []
    for part in parts:
        corners = (part.points.min(axis=0), part.points.max(axis=0)) if isinstance(part, Arms) else (part.lower, part.upper)
        lower += corners[0].tolist()
        upper += corners[1].tolist()
    return Box(lower, upper)
