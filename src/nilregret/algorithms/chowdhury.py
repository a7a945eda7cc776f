"""IGP-UCB and GP-TS (Chowdhury & Gopalan 2017)."""

from __future__ import annotations

import math
from typing import Any, Literal, Unpack

from .._utils.checks import LARGEST_REWARD, flag, integer, number, one_of, shown
from ..domains.domain import Box, D, Domain, enclosing_box
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.by_name import chosen_memory, part_of
from ..slots.envelope import Confidence, ScheduledWidth
from ..slots.scores import ThompsonSample, UpperConfidenceBound
from ..slots.widths.likelihood_ratio import LikelihoodRatio
from ..slots.widths.mixtures import AnalyticMixture, AnyRidge, DualMixture, NoiseFree
from ..slots.widths.self_normalized import Gain, KernelUcb, SelfNormalized
from ..slots.widths.slopes import lipschitz_constant
from ..theory.change.schedules import PowerLaw
from .arguments import (
    checked_noise,
    chosen_gain,
    chosen_width,
    is_exact,
    is_other,
    norm_bound_or_guess,
    ridge_for_horizon,
    ridge_of_noise,
)
from .definition import Slots, algorithm, build, given

WIDTHS = ("igp", "ay", "amm", "dmm", "best", "lr")  # Each but the last lies within the one before.


@algorithm()
def igp_ucb(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | Literal["unknown"] | None = None,
    norm_bound: float | None = None,
    horizon: int | None = None,
    width: Literal["igp", "ay", "amm", "dmm", "best", "lr"] | Confidence | None = None,
    information_gain: Literal["greedy", "realised", "rate"] | float = "realised",
    guess_norm: bool = False,
    v: float | PowerLaw | None = None,
    delta: float = 0.1,
    regularization: float | str | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """IGP-UCB (Chowdhury & Gopalan 2017, Algorithm 1) by the *realised* information gain, lambda = 1 without `horizon`.

    Each round plays argmax mu_{t-1} + beta_t sigma_{t-1}, with
    beta_t = B + R sqrt(2 (gamma_{t-1} + 1 + ln(1 / delta))). The paper takes the largest possible gain gamma_{t-1}
    ("greedy") and lambda = 1 + 2/T.

    With `noise` 0 it plays noise-free GP-UCB (Iwazaki 2025). Lambda is then 1e-8 of the prior variance, and beta_t is
    at most B (`nilregret.slots.widths.mixtures`). The regret stays bounded for squared exponential kernels and smooth
    Matern kernels. The rule above is played if `width="igp"`, `v`, `information_gain`, `memory`, `refit` or
    `constraints` is given.

    Args:
        domain, kernel, slots: see `gp_ucb`.
        noise: R, the sub-Gaussian constant of the noise (the standard deviation of Gaussian noise), reward units.
            "unknown" is for Gaussian noise of one unknown standard deviation. The rewards bound it
            (`nilregret.slots.widths.self_normalized`), in all rounds at once, which takes half of delta. This needs the
            width "igp", "ay" or "amm", a `norm_bound`, and a `regularization` (or the theorem's).
        norm_bound: B, a bound on the norm of f - prior_mean in the kernel's RKHS, reward units.
        horizon: T, the number of rounds, which sets lambda = 1 + 2/T.
        width: "igp", the one above, unless given. The others are tighter, hold as surely, and for any lambda, which is
            then noise^2 unless given.

            - "ay", "amm", "dmm": see `nilregret.slots.widths.mixtures`. Each lies within the one before.
            - "best": the tightest, which is "dmm", but "amm" under fits or if f drifts. Without noise it is the
              noise-free width.
            - "lr": by the likelihood of the rewards (`nilregret.slots.widths.likelihood_ratio`), for `reward=` on arms.
            - A part, which needs no `norm_bound`. Then the other arguments about the bounds must be left out.
        information_gain: gamma of the width.

            - "realised": 1/2 log det(I + K / lambda) of the observations, valid and tight.
            - "greedy": a bound on the maximum information gain (finite domains).
            - "rate" (its growth rate with constant 1) or a constant number: nothing is proved.
        guess_norm: takes `norm_bound` (default 1) as a guess only, which doubles whenever the observations contradict
            it. `study.norm_bounds` shows the guesses.
        v: multiplier of the standard deviation in place of beta_t: a number, or `nr.theory.PowerLaw(c, p)` for c t^p.
            The paper leaves v free (section 3). Nothing is proved, and no `norm_bound` is needed.
        delta: failure probability of the confidence bounds.
        regularization: lambda, 1 + 2/T unless given, 1 without a horizon, noise^2 for the tighter widths. Below 1
            nothing is proved of "igp". The paper's experiments use noise^2. "whitehouse" is the lambda of Whitehouse,
            Ramdas & Wu 2023 for "ay", T^(d / (2 nu + 2 d)) of a Matern kernel.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.igp_ucb(arms, kernel, noise=0.1, norm_bound=1.0)
    >>> round(nr.Study(policy).width, 2), policy.valid_for
    (1.26, 'f')
    """
    noise = given("igp_ucb", noise, slots)
    if width is None and v is None and not is_other(information_gain, "realised") and is_exact(noise, slots):
        width = "best"
    context = slots.get("context")
    check_model(domain, context, kernel)
    known, ridge = _noise_and_ridge(noise, regularization, horizon, width, kernel, domain, context)
    confidence = chosen_width(
        width, WIDTHS, delta=delta, norm_bound=norm_bound is not None, guess_norm=guess_norm, v=v is not None,
        information_gain=is_other(information_gain, "realised"),
    )  # fmt: skip
    if isinstance(confidence, str | None):
        gain = _gain(information_gain, confidence, domain, context, kernel)
        confidence = _width(
            v, norm_bound, name=confidence, guess_norm=guess_norm, slots=slots, noise=known, delta=delta, ridge=ridge,
            parts=1, gain=gain,
        )  # fmt: skip
    std = math.sqrt(ridge) if known is None else known
    return build(
        "igp_ucb", domain, kernel, confidence, UpperConfidenceBound(), noise=std, regularization=ridge, **slots
    )


@algorithm()
def gp_ts(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | Literal["unknown"] | None = None,
    norm_bound: float | None = None,
    horizon: int | None = None,
    width: Literal["igp", "ay", "amm", "best"] | Confidence | None = None,
    information_gain: Literal["greedy", "realised", "rate"] | float = "realised",
    guess_norm: bool = False,
    v: float | PowerLaw | None = None,
    lipschitz: float | str | None = None,
    grid: float | None = None,
    growth: float = 0.0,
    delta: float = 0.1,
    regularization: float | str | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """GP-TS (Chowdhury & Gopalan 2017) by the realised gain, no grid D_t, lambda = 1, unless told otherwise.

    Each round plays the argmax of a draw from GP(mu_{t-1}, v_t^2 k_{t-1}), with
    v_t = B + R sqrt(2 (gamma_{t-1} + 1 + ln(2 / delta))) (Algorithm 2). On arms the draw is joint and exact. Of more
    than 4,096 arms under a rough kernel it is exact at each arm alone, which is all that the theorem asks for
    (docs/posterior.md). On continuous domains it is a path, maximised with gradients. The paper takes the largest gain
    ("greedy"), a grid D_t of a box (`lipschitz`) and lambda = 1 + 2/T (`horizon`).

    Args:
        domain, kernel, noise, norm_bound, horizon, information_gain: see `igp_ucb`.
        guess_norm, v, delta, regularization, slots: see `igp_ucb`.
        width: "igp", the one above, unless given. "ay" or "amm" as of `igp_ucb`, with ln(2 / delta), or a part. "best"
            is "amm", since the bounds of "dmm" are no multiple of the std, by which a draw could be widened.
        lipschitz: L of the theorem's discretisation D_t, with |f(x) - f(x')| <= B L |x - x'|_1. "kernel" derives it
            (section 4.2). Then the argmax is over a grid of (B L r d t^2)^d points of the box, with the current guess
            of B. A grid of up to 16,384 points is searched whole. A larger one is searched by moves on the grid, from
            the maximum over the box and the best candidates, until no neighbour is better. Without `lipschitz` the
            argmax is over the box itself.
        grid: points along each side of the box in the first round, for a D_t of your own (footnote 7).
        growth: exponent of the points along each side with `grid`, which are grid * t^growth.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ts(arms, kernel, noise=0.1, norm_bound=1.0)
    >>> policy.valid_for
    'f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("gp_ts", noise, slots)
    context = slots.get("context")
    check_model(domain, context, kernel)
    known, ridge = _noise_and_ridge(noise, regularization, horizon, width, kernel, domain, context)
    confidence = chosen_width(
        width, [name for name in WIDTHS if name not in ("dmm", "lr")], delta=delta,
        norm_bound=norm_bound is not None and lipschitz is None,  # D_t needs the bound, too.
        guess_norm=guess_norm, v=v is not None, information_gain=is_other(information_gain, "realised"),
    )  # fmt: skip
    if isinstance(confidence, str | None):
        gain = _gain(information_gain, confidence, domain, context, kernel)
        confidence = _width(
            v, norm_bound, name="amm" if confidence == "best" else confidence, guess_norm=guess_norm, slots=slots,
            noise=known, delta=delta, ridge=ridge, parts=2, gain=gain,  # ln(2 / delta)
        )  # fmt: skip
    bound = norm_bound if confidence.stated_norm is None else confidence.stated_norm
    score = _decision_sets(lipschitz, grid, growth, bound, domain, kernel, context)
    std = math.sqrt(ridge) if known is None else known
    return build("gp_ts", domain, kernel, confidence, score, noise=std, regularization=ridge, **slots)


def _width(
    v: float | PowerLaw | None,
    norm_bound: float | None,
    *,
    name: str | None,
    guess_norm: bool,
    slots: Slots,
    noise: float | None,
    delta: float,
    ridge: float,
    parts: int,
    gain: Gain,
) -> Confidence:
    """Returns beta_t or v_t of Theorem 2, a tighter width, or the schedule v of the user."""
    _check_unknown(noise, name, v)
    if v is not None:
        return _schedule(v, norm_bound, name, guess_norm=guess_norm, delta=delta)
    refit, memory = slots.get("refit"), slots.get("memory")
    bound = norm_bound_or_guess(norm_bound, guess_norm=guess_norm, refit=refit)
    guessed = bool(guess_norm)
    if name == "lr":
        return LikelihoodRatio(norm_bound=bound, delta=delta, guessed=guessed)
    if name is None or name == "igp":
        large = number("regularization", ridge, low=0.0, open_low=True) >= 1.0
        return SelfNormalized(
            norm_bound=bound, noise=noise, gain=gain, parts=parts, delta=delta, ridge_large=large, guessed=guessed
        )
    if name == "best" and parts == 1 and is_exact(noise, slots):
        return NoiseFree(norm_bound=bound, delta=delta, guessed=guessed)
    if name == "best":
        drifts = memory is not None and chosen_memory(memory).drift() is not None
        name = "dmm" if refit is None and not drifts and noise is not None else "amm"
    shared: dict[str, Any] = {
        "norm_bound": bound, "noise": noise, "regularization": ridge, "delta": delta, "guessed": guessed,
    }  # fmt: skip
    if name == "dmm":
        return DualMixture(**shared)
    return (AnyRidge if name == "ay" else AnalyticMixture)(parts=parts, **shared)


def _schedule(
    v: float | PowerLaw, norm_bound: float | None, name: str | None, *, guess_norm: bool, delta: float
) -> Confidence:
    """Returns the width v_t that replaces that of the theorem."""
    if name is not None and name != "igp":
        raise InvalidInput(f"`v` replaces the width of the theorem, and `width` {name!r} names another: give one.")
    if flag("guess_norm", guess_norm):
        raise InvalidInput("`guess_norm` is for the width of the theorem, and `v` replaces that width: give one.")
    if norm_bound is not None:  # D_t may need the bound.
        number("norm_bound", norm_bound, low=0.0, high=LARGEST_REWARD, open_low=True)
    if not isinstance(v, PowerLaw):
        v = PowerLaw(number("v", v, low=0.0, open_low=True, why="It multiplies the standard deviation."))
    return ScheduledWidth(schedule=v, delta=delta)


def _check_unknown(noise: float | None, name: str | None, v: object) -> None:
    """Raises an error for unknown noise with a width that needs the noise."""
    if noise is None and (v is not None or name in ("dmm", "lr")):
        raise InvalidInput(
            "Noise that is not known is bounded for the widths 'igp', 'ay' and 'amm'; `v` needs none, and 'dmm' and "
            "'lr' are made of sets that it must be known for. Take one of the three, or give `noise`."
        )


def _gain(gain: str | float, name: object, *model: Any) -> Gain:
    """Returns the information gain of the theorem's width. The other widths take the realised gain."""
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
    context: Domain | None,
) -> tuple[float | None, float]:
    """Returns R, which is None if unknown, and lambda."""
    if not isinstance(noise, str):
        known = checked_noise(noise)
        return known, _ridge(regularization, horizon, width, known, kernel, domain, context)
    if noise != "unknown":
        raise InvalidInput(f"`noise` must be a number, R, or 'unknown'; it is {shown(noise)}.")
    if part_of("confidence", width) is not None:
        raise InvalidInput("`width` is a part, which says how large the noise may be: give `noise` as a number.")
    if regularization is None and isinstance(width, str) and width != "igp":
        raise InvalidInput(
            f"`width` {width!r} takes lambda = noise^2, and the noise is not known: give `regularization`, a guess of "
            "the variance of the noise. The bounds hold whatever it is, and are the tighter the better the guess."
        )
    return None, _ridge(regularization, horizon, width, 0.0, kernel, domain, context)


def _ridge(
    regularization: float | str | None,
    horizon: int | None,
    width: object,
    noise: float,
    kernel: Kernel,
    domain: Domain,
    context: Domain | None,
) -> float:
    """Returns lambda: 1 + 2/T of the theorem, noise^2 of the tighter widths, or that of Whitehouse, Ramdas & Wu."""
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
    return ridge_of_noise(regularization, noise, domain, context, kernel) if named else ridge


def _decision_sets(
    lipschitz: float | str | None,
    grid: float | None,
    growth: float,
    norm_bound: float | None,
    domain: Domain,
    kernel: Kernel,
    context: Domain | None,
) -> ThompsonSample:
    """Returns the score with D_t of the theorem, of the user (footnote 7), or the domain itself."""
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
    # There are B L r d points along each side at t = 1.
    return ThompsonSample(grid=norm_bound * L * float((domain.upper - domain.lower).max()) * domain.dimension)


@algorithm()
def kernel_ucb(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    eta: float,
    horizon: int | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """KernelUCB: argmax mu_{t-1} + eta lambda^{-1/2} sigma_{t-1} (Valko et al. 2013, whose lambda is free, and 1 here).

    Args:
        domain, kernel, slots: see `gp_ucb`.
        noise: R, reward units. The rule does not use it.
        eta: exploration, reward units.
        horizon: T, which sets lambda = 1 + 2/T.
        delta: failure probability, which the rule does not use.
        regularization: lambda, 1 + 2/T unless given, and 1 without a horizon.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.kernel_ucb(arms, kernel, noise=0.1, eta=0.1)
    >>> round(nr.Study(policy).width, 2), policy.valid_for
    (0.1, 'none')
    """
    noise, ridge = checked_noise(given("kernel_ucb", noise, slots)), ridge_for_horizon(regularization, horizon)
    check_model(domain, slots.get("context"), kernel)
    confidence = KernelUcb(eta=eta, regularization=ridge, delta=delta)
    return build(
        "kernel_ucb", domain, kernel, confidence, UpperConfidenceBound(), noise=noise, regularization=ridge, **slots
    )
