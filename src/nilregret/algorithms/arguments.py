"""Checks of the arguments that several algorithms share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, flag, integer, number, one_of, shown
from ..domains.domain import Arms, Domain
from ..errors import InvalidInput
from ..kernels import Kernel
from ..kernels.domains import prior_std
from ..policy.policy import check_model
from ..slots.by_name import part_of
from ..slots.envelope import Confidence
from ..slots.refit import Learning
from .definition import FreeSlots, Slots

if TYPE_CHECKING:
    from ..slots.widths.self_normalized import Gain

EXACT = (
    1e-8  # lambda of rewards without noise, in prior variances: answers that differ by 1e-4 deviations count as equal
)
GAINS = ("realised", "greedy", "rate")
DELTA = 0.1  # The default failure probability.


def is_other(value: object, default: float | str) -> bool:
    """Returns whether an unchecked argument differs from its default."""
    return not (isinstance(value, int | float | str) and value == default)


def is_exact(noise: object, slots: Slots) -> bool:
    """Returns True if there is no noise, and all that is learned is one function in a space that is given."""
    one = (slots.get("refit"), slots.get("memory"), slots.get("constraints")) == (None, None, None)
    return one and not isinstance(noise, str) and checked_noise(noise) == 0.0


def noise_and_ridge(
    domain: Domain, kernel: Kernel, noise: float | None, regularization: float | None, slots: FreeSlots
) -> tuple[float, float]:
    """Returns the noise and lambda, which is the noise variance unless given, and checks the model.

    Args:
        domain, kernel, noise, regularization: arguments of the algorithm.
        slots: slots of the algorithm, which may have a context.
    """
    noise, context = checked_noise(noise), slots.get("context")
    check_model(domain, context, kernel)
    return noise, ridge_of_noise(regularization, noise, domain, context, kernel)


def chosen_width(width: object, names: Iterable[str], *, delta: float, **others: bool) -> Confidence | str | None:
    """Returns the checked `width`: a name, None for the default, or a part that defines the bounds completely.

    Args:
        width: the argument of the algorithm.
        names: the allowed names.
        delta: the argument of the algorithm.
        others: arguments that shape a named width, and whether the caller gave them.
    """
    if width is None:
        return None
    part: Confidence | None = part_of("confidence", width)
    if part is None:
        advice = "Or give a part, such as `nilregret.slots.envelope.ConstantWidth(value=2.0)`."
        return one_of("width", width, names, advice=advice)
    ignored = [name for name, is_set in {**others, "delta": is_other(delta, DELTA)}.items() if is_set]
    if ignored:
        raise InvalidInput(
            f"`width` is a part, {shown(width)}, and says all of the bounds: `{ignored[0]}` would be ignored. Leave it "
            "out, or give it to the part."
        )
    return part


def checked_noise(noise: object) -> float:
    """Returns the noise as a number.

    Raises:
        InvalidInput: for values that are no standard deviation.
    """
    if isinstance(noise, str) and noise == "unknown":
        raise InvalidInput(
            "Noise that nobody knows, `noise` 'unknown', is bounded for the widths of `igp_ucb` and `gp_ts` alone. "
            "Take one of them, or have the noise learned, with nothing proved, by `refit` beside a first guess of "
            "`noise`, or by `auto`.",
            advice="The one is `refit=nr.slots.Refit(every=10)`, the other `nr.auto(domain)`.",
        )
    why = "It is a standard deviation (or sub-Gaussian constant), in the units of the reward."
    return number("noise", noise, low=0.0, high=LARGEST_REWARD, why=why)


def ridge_of_noise(
    regularization: float | None, noise: float, domain: Domain, context: Domain | None, kernel: Kernel
) -> float:
    """Returns lambda: as given, or the noise variance, which is sigma^2 of Srinivas et al. 2010, eq. 1.

    Without noise lambda is a tiny share of the prior variance, so that the mean interpolates the answers.
    """
    if regularization is None:
        return noise**2 or EXACT * prior_std(domain, context, kernel) ** 2
    return number("regularization", regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True)


def ridge_for_horizon(regularization: float | None, horizon: int | None) -> float:
    """Returns lambda = 1 + 2/T (Chowdhury & Gopalan 2017, Theorem 2), or its limit 1 without a horizon."""
    if horizon is not None:
        horizon = integer("horizon", horizon, low=1, high=None, why="It is the number of rounds T of the theorem.")
    if regularization is not None:
        return number("regularization", regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True)
    return 1.0 if horizon is None else 1.0 + 2 / horizon


def norm_bound_or_guess(norm_bound: float | None, *, guess_norm: bool, refit: Learning | None) -> float:
    """Returns B, or the first guess of B."""
    if flag("guess_norm", guess_norm, why="The guess itself is `norm_bound`.") and refit is not None:
        from ..slots.widths.self_normalized import NO_GUESS_WITH_FITS

        raise InvalidInput(NO_GUESS_WITH_FITS)
    if norm_bound is None and not guess_norm:
        raise InvalidInput(
            "`norm_bound` is missing: the theorem needs a bound on the norm of f in the kernel's RKHS. Where none is "
            "known, `guess_norm` starts with a guess and doubles it whenever the observations contradict it.",
            advice="`gp_ts` takes `v=1.0` in its place: draws of the plain posterior, of which nothing is proved.",
        )
    return 1.0 if norm_bound is None else norm_bound


def check_gain(name: object) -> None:
    """Raises an error if this is no information gain, also where none is needed."""
    if isinstance(name, str):
        one_of("information_gain", name, GAINS, why="A number is a constant gain, for which nothing is proved.")
    else:
        from ..slots.widths.self_normalized import ConstantGain

        ConstantGain(value=name)  # type: ignore[arg-type]  # The class checks the number.


def chosen_gain(name: str | float, domain: Domain, context: Domain | None, kernel: Kernel) -> Gain:
    """Returns the information gain of a width: by name, or a constant one for a number."""
    from ..slots.widths import self_normalized

    check_gain(name)
    if not isinstance(name, str):
        return self_normalized.ConstantGain(value=name)
    if name == "greedy":
        if not isinstance(domain, Arms) or not isinstance(context, Arms | None):
            raise InvalidInput(
                "`information_gain` 'greedy' needs finitely many arms (and contexts), and this domain is continuous. "
                "Use 'realised', which is valid and tighter, or a grid of arms."
            )
        return self_normalized.GreedyGain()
    if name == "rate":
        width = 0 if context is None else context.dimension
        return self_normalized.RateGain(kernel=kernel, dimension=width + domain.dimension)
    return self_normalized.RealisedGain()
