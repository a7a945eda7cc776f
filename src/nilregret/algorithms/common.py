"""What the algorithms share: checked arguments, and widths that several of them may use."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypedDict, TypeVar, Unpack, cast

import numpy as np

from .._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, flag, integer, number, one_of, shown
from .._utils.errors import InvalidInput, NoRegretWarning
from ..domains.domain import Arms, Domain, count_of_points, enclosing_box
from ..domains.search.boxes import PointSearch
from ..kernels import Kernel, domains
from ..policy.policy import Policy, check_model
from ..slots.by_name import chosen
from ..slots.check import is_part, part_of
from ..slots.constraints import Constraints
from ..slots.envelope import CompactBayes, Confidence, FiniteBayes, PointwiseBayes
from ..slots.explore import Explore
from ..slots.memory import Memory
from ..slots.objective import Objective, RewardAlone
from ..slots.pending import Pending
from ..slots.refit import Learning
from ..slots.rewards import KnownReward, chosen_reward
from ..slots.scores import Score
from ..slots.switching import Switching
from ..slots.widths.gains import ConstantGain, Gain, GreedyGain, RateGain, RealisedGain
from ..slots.widths.self_normalized import NO_GUESS_WITH_FITS
from ..slots.widths.slopes import Tail, assumed_tail, derivative_tail
from ..theory.series import PowerSeries, Series

GAINS = ("realised", "greedy", "rate")
DELTA = 0.1  # failure probability unless another is given
F = TypeVar("F", bound=Callable[..., Policy])


class FreeSlots(TypedDict, total=False):
    """The slots of `Slots` that do not share their name with an argument of any algorithm."""

    context: Domain | None
    prior_mean: float | None
    memory: str | Memory | None
    explore: Explore | None
    pending: str | Pending | None
    search: PointSearch | None
    refit: Learning | None
    switching: str | Switching | None


class Slots(FreeSlots, total=False):
    """What every algorithm takes besides its own arguments; None, or left out, is the plain filling.

    A new slot is one line here, beside its field of `Policy`. Those that an algorithm fills itself are refused by it.

    Attributes:
        context: domain of the contexts given to `ask`; None for none.
        prior_mean: what a reward is expected to be before anything is seen, reward units; the theorems are for
            f - prior_mean. 0 unless given.
        memory: which trials count: all of them; "adaptive", those since a change of the world was noticed
            (`nr.slots.EDetector()`); or a part such as `nr.slots.SlidingWindow(200)` or `nr.slots.RestartEvery(100)`.
            The constrained ones take "kept" and "fresh" too.
        explore: which rounds are forced: none, or a part of `nilregret.slots.explore`.
        pending: what unanswered trials count as: "ignore" (unless given), "hallucinate", "auto", which hallucinates
            until silence is seen to mean no (`nr.slots.LateOrNever()`), or a part.
        search: how a continuous domain is searched.
        refit: learn the kernel from the record, by fits on a schedule (`nr.slots.Refit(...)`) or as an average over
            lengthscales (`nr.slots.LengthscaleBank()`); then nothing is proved.
        switching: how long a choice is played: one round unless given; "lazy", as long as no standard deviation may
            have shrunk by a tenth (`nr.slots.Lazy()`), which makes few decisions and loses next to nothing; or a part.
        constraints: what must hold, each constraint with a posterior of its own: `nr.EveryRound(count=1)`,
            `nr.OnAverage(count=1)` or `nr.Safe(start=points, scale=...)`; none unless given.
        reward: what rewards are, if more is known than their size: "bernoulli" (clicks), "poisson" (counts), "bounded"
            (numbers from 0 to 1), or `nr.slots.Bernoulli(ceiling=0.1)`, `nr.slots.Poisson(...)`,
            `nr.slots.Bounded(low=..., high=...)`.
            Then `noise` follows and is left out.
    """

    constraints: Constraints | None
    reward: str | KnownReward | None


LATER = ("confidence", "objective", "score", "sketch")  # slots that `Policy.using` fills, and no argument


def algorithm(**fills: str) -> Callable[[F], F]:
    """Decorator of an algorithm: keywords are checked before anything else, and its signature shows the slots it takes.

    Args:
        fills: the slots that it fills itself, each with what it is filled with.
    """

    def decorate(function: F) -> F:
        own = list(signature(function).parameters.values())[:-1]  # the last are the slots
        types = {name: getattr(hint, "__forward_arg__", hint) for name, hint in Slots.__annotations__.items()}
        slots = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in types.items()
            if name not in fills
        ]
        shown = signature(function).replace(parameters=[*own, *slots])
        name = function.__name__

        @wraps(function)
        def checked(*arguments: Any, **keywords: Any) -> Policy:
            for keyword in keywords:
                filled = keyword in fills and is_part(keywords[keyword])  # under the name of an own argument
                if keyword not in shown.parameters or filled:
                    raise _unexpected(name, keyword, shown.parameters, fills)
            if keywords.get("reward") is not None:
                keywords = _of_reward(keywords)
            elif keywords.get("noise") is None:
                kind = InvalidInput if "noise" in keywords else TypeError  # the latter as of any argument left out
                raise kind(
                    f"{name}() is missing the keyword argument 'noise', the standard deviation of the rewards' noise. "
                    "Of clicks, counts and bounded rewards it follows from reward='bernoulli', 'poisson' or 'bounded'."
                )
            return function(*arguments, **keywords)

        checked.__signature__ = shown  # type: ignore[attr-defined]  # where `inspect.signature` and `help` look
        return cast(F, checked)

    return decorate


def _of_reward(keywords: dict[str, Any]) -> dict[str, Any]:
    """What follows from what rewards are."""
    reward = chosen_reward(keywords["reward"])
    if keywords.get("noise") is not None:
        raise InvalidInput(
            f"With `reward` the noise follows, here {reward.noise:.6g}: leave `noise` out.",
            advice="A smaller one follows from what more is known, such as `reward=nr.slots.Bernoulli(ceiling=0.1)`.",
        )
    return keywords | {"reward": reward, "noise": reward.noise}


def _unexpected(algorithm: str, keyword: str, known: Iterable[str], fills: dict[str, str]) -> Exception:
    if keyword in fills:
        return InvalidInput(
            f"`{algorithm}` fills the slot `{keyword}` itself: {fills[keyword]}. Leave it out.",
            advice=f"For another part there make the policy first and say `policy.using({keyword}=...)`.",
        )
    if keyword in LATER:
        return InvalidInput(
            f"`{keyword}` is no argument of `{algorithm}`: it is a slot of the policy, which is filled when that is "
            "there.",
            advice=f"Say `policy.using({keyword}=...)`.",
        )
    from difflib import get_close_matches  # only for who has misspelt something

    close = get_close_matches(keyword, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return TypeError(f"{algorithm}() got an unexpected keyword argument {keyword!r}.{hint}")


def is_other(value: object, default: float | str) -> bool:
    """Whether an argument, not checked yet, was given another value than its default."""
    return not (isinstance(value, int | float | str) and value == default)


def chosen_width(width: object, names: Iterable[str], *, delta: float, **others: bool) -> Confidence | str | None:
    """`width` checked: a name, None for the default one, or a part that says all there is to say of the bounds.

    Args:
        width: as given to the algorithm.
        names: that it may be.
        delta: as given to the algorithm.
        others: the arguments that make a named width what it is, and whether they were given.
    """
    if width is None:
        return None
    part: Confidence | None = part_of("confidence", width)
    if part is None:
        advice = "Or give a part, such as `nilregret.slots.envelope.ConstantWidth(value=2.0)`."
        return one_of("width", width, names, advice=advice)
    given = [name for name, is_given in {**others, "delta": is_other(delta, DELTA)}.items() if is_given]
    if given:
        raise InvalidInput(
            f"`width` is a part, {shown(width)}, and says all of the bounds: `{given[0]}` would be ignored. Leave it "
            "out, or give it to the part."
        )
    return part


def checked_noise(noise: object) -> float:
    """The noise, or a clear error."""
    if isinstance(noise, str) and noise == "unknown":
        raise InvalidInput(
            "Noise that nobody knows, `noise` 'unknown', is bounded for the widths of `igp_ucb` and `gp_ts` alone. "
            "Take one of them, or have the noise learned, with nothing proved, by `refit` beside a first guess of "
            "`noise`, or by `auto`.",
            advice="The one is `refit=nr.slots.Refit(every=10)`, the other `nr.auto(domain)`.",
        )
    why = "It is a standard deviation (or sub-Gaussian constant), in the units of the reward."
    return number("noise", noise, low=0.0, high=LARGEST_REWARD, why=why)


def ridge_of_noise(regularization: float | None, noise: float) -> float:
    """Lambda as given, or the noise variance: sigma^2 of Srinivas et al. 2010, eq. 1."""
    if regularization is None:
        return noise**2
    return number("regularization", regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True)


def ridge_for_horizon(regularization: float | None, horizon: int | None) -> float:
    """Lambda = 1 + 2/T of Chowdhury & Gopalan 2017, Theorem 2; 1, its limit, where no horizon is given."""
    if horizon is not None:
        horizon = integer("horizon", horizon, low=1, high=None, why="It is the number of rounds T of the theorem.")
    if regularization is not None:
        return number("regularization", regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True)
    return 1.0 if horizon is None else 1.0 + 2 / horizon


def bayes_width(
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
    series: Series | float | None = None,
) -> Confidence:
    """The width of Theorem 1 or 2 of Srinivas et al. 2010; with contexts D is the set of all (context, point)."""
    size = count_of_arms(domain, context)
    by_name = width is not None
    series = chosen_series(series)
    if width is None:
        width = "compact" if size is None else "finite"
    one_of("width", width, ["finite", "compact"])
    if width == "finite":
        if size is None:
            raise InvalidInput(
                "`width` 'finite' is Theorem 1, for finitely many arms (and contexts). On a continuous domain use "
                "`width` 'compact' (Theorem 2), or a grid of arms.",
                advice="`Arms.grid` and `space.grid` make one.",
            )
        given = [name for name, value in (("a", a), ("b", b), ("r", r)) if value is not None]
        if given:
            raise InvalidInput(
                f"`{given[0]}` belongs to Theorem 2, and finitely many arms have Theorem 1: add `width` 'compact', or "
                "leave it out."
            )
        return FiniteBayes(size=size, delta=delta, scale=scale, noise_matched=noise_matched, series=series)
    if (a is None) != (b is None):
        raise InvalidInput("Theorem 2 needs `a` and `b` together: give both, or neither to have them derived.")
    box = enclosing_box(domain, context)
    assumed = False
    if a is None or b is None:
        tail = derivative_tail(kernel, box.lower, box.upper)
        assumed = tail is None
        if tail is None:
            _warn_of_rough_samples(kernel, by_name=by_name)
            tail = assumed_tail(kernel, box.lower, box.upper)
    else:
        tail = Tail(math.log(number("a", a, low=0.0, open_low=True)), b)
    return CompactBayes(
        dimension=box.dimension,
        side=float((box.upper - box.lower).max()) if r is None else r,
        log_a=tail.log_a,
        b=tail.b,
        delta=delta,
        scale=scale,
        noise_matched=noise_matched,
        assumed=assumed,
        series=series,
    )


def chosen_series(series: object) -> Series | None:
    """pi_t of Lemma 5.1: a part, or a number for a power of t."""
    if series is None or isinstance(series, Series):
        return series
    if isinstance(series, int | float | np.integer | np.floating):
        return PowerSeries(series)  # type: ignore[arg-type]  # numpy's numbers become plain there
    raise InvalidInput(
        f"`series` is {shown(series)}: it must be a power of t above 1, or a part. It says how delta is shared out "
        "over the rounds (Lemma 5.1).",
        advice="Such a part is `nr.slots.EvenSeries(1000)`.",
    )


def norm_bound_or_guess(norm_bound: float | None, *, guess_norm: bool, refit: Learning | None) -> float:
    """B, or the first guess of it."""
    if flag("guess_norm", guess_norm, why="The guess itself is `norm_bound`.") and refit is not None:
        raise InvalidInput(NO_GUESS_WITH_FITS)
    if norm_bound is None and not guess_norm:
        raise InvalidInput(
            "`norm_bound` is missing: the theorem needs a bound on the norm of f in the kernel's RKHS. Where none is "
            "known, `guess_norm` starts with a guess and doubles it whenever the observations contradict it."
        )
    return 1.0 if norm_bound is None else norm_bound


def _warn_of_rough_samples(kernel: Kernel, *, by_name: bool) -> None:
    """Whoever asks for Theorem 2 by name is refused where it does not hold; others are told."""
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
    warnings.warn(
        f"{what} The width used is for slopes between points a thousandth of a side apart, and nothing is proved for "
        "it (`valid_for` is 'none'). Use nu = 2.5, or give `a` and `b`.",
        NoRegretWarning,
        stacklevel=5,  # here, `bayes_width`, the algorithm, its decorator, the caller
    )


def bounds_without_theorem(
    domain: Domain, context: Domain | None, *, width: str | None, delta: float, noise_matched: bool
) -> Confidence:
    """Bounds for rules that use none themselves: Theorem 1, which holds whatever is played, or pointwise ones."""
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
    """|D|, which counts every (context, arm); None where there are infinitely many."""
    parts = [domain] if context is None else [context, domain]
    sizes = [size for size in map(count_of_points, parts) if size is not None]
    return math.prod(sizes) if len(sizes) == len(parts) else None


def check_gain(name: object) -> None:
    """Refuse what says no information gain, also where none is needed."""
    if isinstance(name, str):
        one_of("information_gain", name, GAINS, why="A number is a constant gain, for which nothing is proved.")
    else:
        ConstantGain(value=name)  # type: ignore[arg-type]  # what is no number is refused there


def chosen_gain(name: str | float, domain: Domain, context: Domain | None, kernel: Kernel) -> Gain:
    """The information gain that a width is made of, by name; a number is a constant one."""
    check_gain(name)
    if not isinstance(name, str):
        return ConstantGain(value=name)
    if name == "greedy":
        if not isinstance(domain, Arms) or not isinstance(context, Arms | None):
            raise InvalidInput(
                "`information_gain` 'greedy' needs finitely many arms (and contexts), and this domain is continuous. "
                "Use 'realised', which is valid and tighter, or a grid of arms."
            )
        return GreedyGain()
    if name == "rate":
        width = 0 if context is None else context.dimension
        return RateGain(kernel=kernel, dimension=width + domain.dimension)
    return RealisedGain()


def prior_std(domain: Domain, context: Domain | None, kernel: Kernel) -> float:
    """The largest prior standard deviation of a reward, over the arms or the corners of the box."""
    check_model(domain, context, kernel)
    return domains.prior_std(domain, context, kernel)


def build(
    algorithm: str,
    domain: Domain,
    kernel: Kernel,
    confidence: Confidence,
    score: Score,
    *,
    noise: float,
    regularization: float,
    objective: Objective | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """A policy of these parts; those not given are the plain ones."""
    filled: dict[str, Any] = {name: part for name, part in slots.items() if part is not None}
    objective = filled.pop("reward", objective)
    filled = chosen(filled)
    return Policy(
        algorithm=algorithm,
        domain=domain,
        kernel=kernel,
        noise=noise,
        regularization=regularization,
        objective=RewardAlone() if objective is None else objective,
        confidence=confidence,
        score=score,
        **filled,
    )
