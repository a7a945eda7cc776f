"""Chowdhury & Gopalan 2017: IGP-UCB and GP-TS, and KernelUCB (Valko et al. 2013), which they are compared with."""

from __future__ import annotations

import math
from typing import Any, Unpack

from .._utils.checks import LARGEST_REWARD, flag, integer, number, one_of, shown
from .._utils.errors import InvalidInput
from ..domains.domain import Box, Domain, enclosing_box
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.by_name import chosen_memory
from ..slots.check import part_of
from ..slots.envelope import Confidence, ScheduledWidth
from ..slots.memory import Memory
from ..slots.refit import Learning
from ..slots.scores import ThompsonSample, UpperConfidenceBound
from ..slots.widths.gains import Gain
from ..slots.widths.likelihood_ratio import LikelihoodRatio
from ..slots.widths.mixtures import AnalyticMixture, AnyRidge, DualMixture
from ..slots.widths.self_normalized import KernelUcb, SelfNormalized
from ..slots.widths.slopes import lipschitz_constant
from ..theory.change.schedules import PowerLaw
from .common import (
    Slots,
    algorithm,
    build,
    checked_noise,
    chosen_gain,
    chosen_width,
    is_other,
    norm_bound_or_guess,
    ridge_for_horizon,
    ridge_of_noise,
)

WIDTHS = ("igp", "ay", "amm", "dmm", "best", "lr")  # each but the last within the one before


@algorithm()
def igp_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | str | None = None,
    norm_bound: float | None = None,
    horizon: int | None = None,
    width: str | Confidence | None = None,
    information_gain: str | float = "realised",
    guess_norm: bool = False,
    v: float | PowerLaw | None = None,
    delta: float = 0.1,
    regularization: float | str | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """IGP-UCB (Chowdhury & Gopalan 2017, Algorithm 1) by the *realised* information gain; lambda = 1 without `horizon`.

    argmax mu_{t-1} + beta_t sigma_{t-1}, beta_t = B + R sqrt(2 (gamma_{t-1} + 1 + ln(1 / delta))). The paper has the
    largest gain gamma_{t-1} there is ("greedy"), and lambda = 1 + 2/T.

    Args:
        domain, kernel, slots: see `gp_ucb`.
        noise: R, the sub-Gaussian constant of the noise (its standard deviation if it is Gaussian), reward units.
            "unknown" where the noise is Gaussian of one standard deviation that nobody knows: it is bounded by what is
            told (`nilregret.slots.widths.unknown_noise`), in all rounds at once, which takes half of delta. With
            "igp", "ay"
            and "amm", a `norm_bound` and a `regularization` (or the theorem's).
        norm_bound: B, a bound on the norm of f - prior_mean in the kernel's RKHS, reward units.
        horizon: T, the number of rounds; sets lambda = 1 + 2/T.
        width: "igp", the one above, unless given; or a tighter one that holds as surely, and for any lambda, which is
            then noise^2 unless given: "ay", "amm" or "dmm" (`nilregret.slots.widths.mixtures`), each within the one
            before.
            "best" is the tightest: "dmm", but under fits or where f drifts "amm". "lr", for `reward=` on arms: by the
            likelihood of the rewards (`nilregret.slots.widths.likelihood_ratio`). Or a part, also one of your own,
            which needs no `norm_bound` and with which nothing else that is about the bounds may be given.
        information_gain: gamma of the width: "realised", 1/2 log det(I + K / lambda) of what was observed (valid and
            tight); "greedy", a bound on the maximum information gain (finite domains); "rate", its growth rate with
            constant 1 (nothing is proved), or a constant number (likewise).
        guess_norm: take `norm_bound` (1 unless given) as a guess only and double it whenever the observations
            contradict it; `study.norm_bounds` shows the guesses.
        v: what multiplies the standard deviation, instead of beta_t: a number, or `nr.theory.PowerLaw(c, p)` for c
            t^p. The
            paper leaves v free (section 3); nothing is proved, and no `norm_bound` is needed.
        delta: failure probability of the confidence bounds.
        regularization: lambda; 1 + 2/T unless given, 1 without a horizon, noise^2 for the tighter widths. Below 1
            nothing is proved of "igp"; the paper's experiments use noise^2. "whitehouse" is the lambda of Whitehouse,
            Ramdas & Wu 2023 for "ay", T^(d / (2 nu + 2 d)) of a Matern kernel.
    """
    known, ridge = _noise_and_ridge(noise, regularization, horizon, width, kernel, domain)
    context = slots.get("context")
    check_model(domain, context, kernel)
    chosen = chosen_width(
        width, WIDTHS, delta=delta, norm_bound=norm_bound is not None, guess_norm=guess_norm, v=v is not None,
        information_gain=is_other(information_gain, "realised"),
    )  # fmt: skip
    confidence = chosen if not isinstance(chosen, str | None) else _width(
        v, norm_bound, name=chosen, guess_norm=guess_norm, refit=slots.get("refit"), memory=slots.get("memory"),
        noise=known, delta=delta, ridge=ridge, parts=1,
        gain=_gain(information_gain, chosen, domain, context, kernel),
    )  # fmt: skip
    score = UpperConfidenceBound()
    return build(
        "igp_ucb", domain, kernel, confidence, score,
        noise=math.sqrt(ridge) if known is None else known, regularization=ridge, **slots,
    )  # fmt: skip


@algorithm()
def gp_ts(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | str | None = None,
    norm_bound: float | None = None,
    horizon: int | None = None,
    width: str | Confidence | None = None,
    information_gain: str | float = "realised",
    guess_norm: bool = False,
    v: float | PowerLaw | None = None,
    lipschitz: float | str | None = None,
    grid: float | None = None,
    growth: float = 0.0,
    delta: float = 0.1,
    regularization: float | str | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """GP-TS (Chowdhury & Gopalan 2017) by the realised gain, no grid D_t, lambda = 1, unless told otherwise.

    The argmax of a draw from GP(mu_{t-1}, v_t^2 k_{t-1}), v_t = B + R sqrt(2 (gamma_{t-1} + 1 + ln(2 / delta)))
    (Algorithm 2). On arms the draw is joint and exact; on continuous domains it is a path, maximised with gradients.
    The paper has the largest gain ("greedy"), a grid D_t of a box (`lipschitz`) and lambda = 1 + 2/T (`horizon`).

    Args:
        domain, kernel, noise, norm_bound, horizon, information_gain: see `igp_ucb`.
        guess_norm, v, delta, regularization, slots: likewise.
        width: "igp", the one above, unless given; "ay" or "amm", as of `igp_ucb`, with ln(2 / delta); "best" is "amm".
            The bounds of "dmm" are no multiple of the std, by which a draw could be widened. Or a part.
        lipschitz: L of the theorem's discretisation D_t, a constant with |f(x) - f(x')| <= B L |x - x'|_1, or "kernel"
            to have it derived (section 4.2): then the argmax is over a grid of (B L r d t^2)^d points of the box, with
            the guess of B in force where it is guessed. A grid of up to 16,384 points is searched whole, a larger one
            from the maximum over the box and the best candidates, by moves on the grid until no neighbour is better.
            Without it, over the box itself.
        grid: D_t of your own (footnote 7): points along each side of the box in the first round.
        growth: with `grid`, D_t has grid * t^growth points along each side.
    """
    known, ridge = _noise_and_ridge(noise, regularization, horizon, width, kernel, domain)
    context = slots.get("context")
    check_model(domain, context, kernel)
    chosen = chosen_width(
        width, [name for name in WIDTHS if name not in ("dmm", "lr")], delta=delta,
        norm_bound=norm_bound is not None and lipschitz is None,  # which needs it too
        guess_norm=guess_norm, v=v is not None, information_gain=is_other(information_gain, "realised"),
    )  # fmt: skip
    confidence = chosen if not isinstance(chosen, str | None) else _width(
        v, norm_bound, name="amm" if chosen == "best" else chosen, guess_norm=guess_norm, refit=slots.get("refit"),
        memory=slots.get("memory"), noise=known, delta=delta, ridge=ridge,
        parts=2,  # ln(2 / delta)
        gain=_gain(information_gain, chosen, domain, context, kernel),
    )  # fmt: skip
    bound = norm_bound if confidence.stated_norm is None else confidence.stated_norm
    score = _decision_sets(lipschitz, grid, growth, bound, domain, kernel, context)
    return build(
        "gp_ts", domain, kernel, confidence, score,
        noise=math.sqrt(ridge) if known is None else known, regularization=ridge, **slots,
    )  # fmt: skip


@algorithm()
def kernel_ucb(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    eta: float,
    horizon: int | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """KernelUCB: argmax mu_{t-1} + eta lambda^{-1/2} sigma_{t-1} (Valko et al. 2013, whose lambda is free; 1 here).

    Args:
        domain, kernel, slots: see `gp_ucb`.
        noise: R, reward units; the rule does not use it.
        eta: exploration, reward units.
        horizon: T; sets lambda = 1 + 2/T.
        delta: not used by the rule.
        regularization: lambda; 1 + 2/T unless given, 1 without a horizon.
    """
    noise, ridge = checked_noise(noise), ridge_for_horizon(regularization, horizon)
    check_model(domain, slots.get("context"), kernel)
    confidence = KernelUcb(eta=eta, regularization=ridge, delta=delta)
    score = UpperConfidenceBound()
    return build(
        "kernel_ucb", domain, kernel, confidence, score,
        noise=noise, regularization=ridge, **slots,
    )  # fmt: skip


def _width(
    v: float | PowerLaw | None,
    norm_bound: float | None,
    *,
    name: str | None,
    guess_norm: bool,
    refit: Learning | None,
    memory: str | Memory | None,
    noise: float | None,
    delta: float,
    ridge: float,
    parts: int,
    gain: Gain,
) -> Confidence:
    """beta_t or v_t of Theorem 2, a tighter width, or a v of the user's own."""
    _check_unknown(noise, name, v)
    if v is not None:
        if name is not None and name != "igp":
            raise InvalidInput(f"`v` replaces the width of the theorem, and `width` {name!r} names another: give one.")
        if flag("guess_norm", guess_norm):
            raise InvalidInput("`guess_norm` is for the width of the theorem, and `v` replaces that width: give one.")
        if norm_bound is not None:  # which D_t may need
            number("norm_bound", norm_bound, low=0.0, high=LARGEST_REWARD, open_low=True)
        if not isinstance(v, PowerLaw):
            v = PowerLaw(number("v", v, low=0.0, open_low=True, why="It multiplies the standard deviation."))
        return ScheduledWidth(schedule=v, delta=delta)
    bound = norm_bound_or_guess(norm_bound, guess_norm=guess_norm, refit=refit)
    if name == "lr":
        return LikelihoodRatio(norm_bound=bound, delta=delta, guessed=bool(guess_norm))
    if name is None or name == "igp":
        return SelfNormalized(
            norm_bound=bound, noise=noise, gain=gain, parts=parts, delta=delta, ridge_large=_is_large(ridge),
            guessed=bool(guess_norm),
        )  # fmt: skip
    if name == "best":
        drifts = memory is not None and chosen_memory(memory).drift() is not None
        name = "dmm" if refit is None and not drifts and noise is not None else "amm"
    common: dict[str, Any] = {
        "norm_bound": bound,
        "noise": noise,
        "regularization": ridge,
        "delta": delta,
        "guessed": bool(guess_norm),
    }
    if name == "dmm":
        return DualMixture(**common)
    return (AnyRidge if name == "ay" else AnalyticMixture)(parts=parts, **common)


def _check_unknown(noise: float | None, name: str | None, v: object) -> None:
    """Which widths go with noise that nobody knows."""
    if noise is None and (v is not None or name in ("dmm", "lr")):
        raise InvalidInput(
            "Noise that is not known is bounded for the widths 'igp', 'ay' and 'amm'; `v` needs none, and 'dmm' and "
            "'lr' are made of sets that it must be known for. Take one of the three, or give `noise`."
        )


def _gain(gain: str | float, name: object, *model: Any) -> Gain:
    """The information gain of the theorem's width; the others are made of what was observed."""
    if isinstance(name, str) and name != "igp" and is_other(gain, "realised"):
        raise InvalidInput(
            f"`width` {name!r} is made of the information gain realised, and tighter with it than with any bound on "
            "the largest one: leave `information_gain` out, or take `width` 'igp'."
        )
    return chosen_gain(gain, *model)


def _noise_and_ridge(
    noise: float | str | None,
    regularization: float | str | None,
    horizon: int | None,
    width: object,
    kernel: Kernel,
    domain: Domain,
) -> tuple[float | None, float]:
    """R, None where it is not known, and lambda."""
    if not isinstance(noise, str):
        known = checked_noise(noise)
        return known, _ridge(regularization, horizon, width, known, kernel, domain)
    if noise != "unknown":
        raise InvalidInput(f"`noise` must be a number, R, or 'unknown'; it is {shown(noise)}.")
    if part_of("confidence", width) is not None:
        raise InvalidInput("`width` is a part, which says how large the noise may be: give `noise` as a number.")
    if regularization is None and isinstance(width, str) and width != "igp":
        raise InvalidInput(
            f"`width` {width!r} takes lambda = noise^2, and the noise is not known: give `regularization`, a guess of "
            "the variance of the noise. The bounds hold whatever it is, and are the tighter the better the guess."
        )
    return None, _ridge(regularization, horizon, width, 0.0, kernel, domain)


def _ridge(
    regularization: float | str | None, horizon: int | None, width: object, noise: float, kernel: Kernel, domain: Domain
) -> float:
    """Lambda: 1 + 2/T of the theorem, noise^2 of the tighter widths, or Whitehouse, Ramdas & Wu's."""
    if isinstance(regularization, str):
        one_of("regularization", regularization, ["whitehouse"], why="Or give lambda itself, a number.")
        nu = getattr(kernel, "nu", None)
        if nu is None or horizon is None:
            raise InvalidInput(
                "`regularization` 'whitehouse' is T^(d / (2 nu + 2 d)) and needs `horizon` and a Matern kernel, of a "
                "nu. Give both, or lambda itself."
            )
        rounds = integer("horizon", horizon, low=1, high=None)
        return float(rounds ** (domain.dimension / (2.0 * nu + 2.0 * domain.dimension)))
    ridge = ridge_for_horizon(regularization, horizon)
    named = isinstance(width, str) and width != "igp"
    return ridge_of_noise(regularization, noise) if named else ridge


def _is_large(ridge: float) -> bool:
    return number("regularization", ridge, low=0.0, open_low=True) >= 1.0


def _decision_sets(
    lipschitz: float | str | None,
    grid: float | None,
    growth: float,
    norm_bound: float | None,
    domain: Domain,
    kernel: Kernel,
    context: Domain | None,
) -> ThompsonSample:
    """D_t: of the theorem, of the user (footnote 7), or the domain itself."""
    growth = number("growth", growth)
    if grid is not None and lipschitz is not None:
        raise InvalidInput("`lipschitz` makes the decision sets of the theorem and `grid` sets of your own: give one.")
    if lipschitz is None and grid is None:
        if is_other(growth, 0.0):
            raise InvalidInput("`growth` is that of `grid`, which is missing.")
        return ThompsonSample()
    if not isinstance(domain, Box):
        name = "lipschitz" if grid is None else "grid"
        raise InvalidInput(f"`{name}` sets the discretisation of a box; arms and spaces need none.")
    if grid is not None:
        return ThompsonSample(grid=grid, growth=growth, per_norm=False)
    if norm_bound is None:
        raise InvalidInput("The decision sets of `lipschitz` need `norm_bound`, B of |f(x) - f(x')| <= B L |x - x'|_1.")
    if isinstance(lipschitz, str):
        one_of("lipschitz", lipschitz, ["kernel"], why="Or give the constant L itself, a number.")
        box = enclosing_box(domain, context)
        L = lipschitz_constant(kernel, box.lower, box.upper)
    else:
        L = number("lipschitz", lipschitz, low=0.0, high=LARGEST_REWARD, open_low=True)
    # B L r d, the number of points along each side at t = 1.
    return ThompsonSample(grid=norm_bound * L * float((domain.upper - domain.lower).max()) * domain.dimension)
