"""Confidence bounds for samples of a Gaussian process: Theorems 1 and 2 of Srinivas et al. 2010."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .._utils.checks import number, one_of, shown
from ..domains.domain import Box, Domain, count_of_points, enclosing_box
from ..errors import InvalidInput, warn
from ..kernels import Kernel, domains
from ..policy.policy import check_model
from ..slots.envelope import CompactBayes, Confidence, FiniteBayes, PointwiseBayes
from ..theory.series import PowerSeries, Series

if TYPE_CHECKING:
    from ..slots.widths.slopes import Tail


def bayes_width(
    domain: Domain,
    context: Domain | None,
    kernel: Kernel,
    *,
    width: str | None,
    delta: float,
    noise_matched: bool,
    a: float | None = None,
    b: float | None = None,
    r: float | None = None,
    scale: float = 1.0,
    series: Series | float | None = None,
) -> Confidence:
    """Returns the width of Theorem 1 or 2. With contexts, D is the set of all (context, point).

    Args:
        domain, context, kernel: the model.
        width: "finite" for Theorem 1, "compact" for Theorem 2. None for the one that suits the domain.
        delta, a, b, r, scale, series: see `gp_ucb`.
        noise_matched: whether lambda is the noise variance, as the theorems assume.
    """
    size = count_of_arms(domain, context)
    pi_t = chosen_series(series)
    name = ("compact" if size is None else "finite") if width is None else width
    one_of("width", name, ["finite", "compact"])
    if name == "finite":
        size = _checked_size(size, a=a, b=b, r=r)
        return FiniteBayes(size=size, delta=delta, scale=scale, noise_matched=noise_matched, series=pi_t)
    box = enclosing_box(domain, context)
    tail, assumed = _tail(kernel, box, a, b, by_name=width is not None)
    return CompactBayes(
        dimension=box.dimension, side=float((box.upper - box.lower).max()) if r is None else r, log_a=tail.log_a,
        b=tail.b, delta=delta, scale=scale, noise_matched=noise_matched, assumed=assumed, series=pi_t,
    )  # fmt: skip


def _checked_size(size: int | None, **slopes: float | None) -> int:
    """Returns |D| of Theorem 1, and refuses the arguments of Theorem 2."""
    if size is None:
        raise InvalidInput(
            "`width` 'finite' is Theorem 1, for finitely many arms (and contexts). On a continuous domain use "
            "`width` 'compact' (Theorem 2), or a grid of arms.",
            advice="`Arms.grid` and `space.grid` make one.",
        )
    unused = [name for name, value in slopes.items() if value is not None]
    if unused:
        raise InvalidInput(
            f"`{unused[0]}` belongs to Theorem 2, and finitely many arms have Theorem 1: add `width` 'compact', or "
            "leave it out."
        )
    return size


def _tail(kernel: Kernel, box: Box, a: float | None, b: float | None, *, by_name: bool) -> tuple[Tail, bool]:
    """Returns the constants a and b of Theorem 2, and whether they are an assumption without proof."""
    from ..slots.widths.slopes import Tail, assumed_tail, derivative_tail

    if (a is None) != (b is None):
        raise InvalidInput("Theorem 2 needs `a` and `b` together: give both, or neither to have them derived.")
    if a is not None and b is not None:
        return Tail(math.log(number("a", a, low=0.0, open_low=True)), b), False
    tail = derivative_tail(kernel, box.lower, box.upper)
    if tail is not None:
        return tail, False
    _warn_of_rough_samples(kernel, by_name=by_name)
    return assumed_tail(kernel, box.lower, box.upper), True


def chosen_series(series: object) -> Series | None:
    """Returns pi_t of Lemma 5.1, from a part or from a number, which is a power of t."""
    if series is None or isinstance(series, Series):
        return series
    if isinstance(series, int | float | np.integer | np.floating):
        return PowerSeries(series)  # type: ignore[arg-type]  # The class converts numpy's numbers.
    raise InvalidInput(
        f"`series` is {shown(series)}: it must be a power of t above 1, or a part. It says how delta is shared out "
        "over the rounds (Lemma 5.1).",
        advice="Such a part is `nr.slots.EvenSeries(1000)`.",
    )


def _warn_of_rough_samples(kernel: Kernel, *, by_name: bool) -> None:
    """Warns that Theorem 2 does not hold, or raises an error if the user asked for it by name."""
    what = (
        f"The constants a and b of Theorem 2 cannot be derived for {shown(kernel)}: its samples must have continuous "
        "derivatives, as those of a kernel that is four times differentiable (Matern with nu > 2), and a kernel of "
        "your own must say how large they are (`derivatives` or `moments`)."
    )
    if by_name:
        raise InvalidInput(
            f"{what} Use nu = 2.5, a grid of arms with `width` 'finite', or give `a` and `b` yourself, such that "
            "sup |df/dx_j| > L has a probability of at most a exp(-(L / b)^2). Without `width` one that is not proved "
            "is used."
        )
    warn(
        f"{what} The width used is for slopes between points a thousandth of a side apart, and nothing is proved for "
        "it (`valid_for` is 'none'). Use nu = 2.5, or give `a` and `b`."
    )


def bounds_without_theorem(
    domain: Domain, context: Domain | None, *, width: str | None, delta: float, noise_matched: bool
) -> Confidence:
    """Returns bounds for rules that use none: Theorem 1, which holds for all decisions, or pointwise bounds."""
    size = count_of_arms(domain, context)
    if width == "finite" and size is None:
        raise InvalidInput(
            "`width` 'finite' is Theorem 1 of Srinivas et al. 2010, for finitely many arms (and contexts). On a "
            "continuous domain use `width` 'pointwise', or a grid of arms.",
            advice="`Arms.grid` and `space.grid` make one.",
        )
    if size is None or width == "pointwise":
        return PointwiseBayes(delta=delta)
    return FiniteBayes(size=size, delta=delta, noise_matched=noise_matched)


def count_of_arms(domain: Domain, context: Domain | None) -> int | None:
    """Returns |D|, the number of pairs (context, arm), or None if there are infinitely many."""
    parts = [domain] if context is None else [context, domain]
    sizes = [size for size in map(count_of_points, parts) if size is not None]
    return math.prod(sizes) if len(sizes) == len(parts) else None


def prior_std(domain: Domain, context: Domain | None, kernel: Kernel) -> float:
    """Returns the largest prior standard deviation of a reward, over the arms or the corners of the box."""
    check_model(domain, context, kernel)
    return domains.prior_std(domain, context, kernel)
