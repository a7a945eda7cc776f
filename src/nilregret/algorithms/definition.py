"""The definition of an algorithm: a decorated function that fills the slots of a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import Parameter, signature
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from .._utils.checks import nearest
from .._utils.numerals import numeral
from ..domains.domain import D, Domain
from ..domains.search.boxes import PointSearch
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy
from ..slots.by_name import chosen, is_part
from ..slots.constraints import Constraints
from ..slots.envelope import Confidence
from ..slots.explore import Explore
from ..slots.memory import Memory
from ..slots.no_worse import NoWorse
from ..slots.objective import Objective, RewardAlone
from ..slots.pending import Pending
from ..slots.refit import Learning
from ..slots.rewards import KnownReward, chosen_reward
from ..slots.scores import Score
from ..slots.switching import Switching

F = TypeVar("F", bound=Callable[..., Policy])


class FreeSlots(TypedDict, total=False):
    """The slots of `Slots` that do not share their name with an argument of any algorithm."""

    context: Domain | None
    prior_mean: float | None
    memory: Literal["adaptive", "kept", "fresh"] | Memory | None
    explore: Explore | None
    pending: Literal["ignore", "hallucinate", "auto"] | Pending | None
    search: PointSearch | None
    refit: Learning | None
    switching: Literal["lazy"] | Switching | None


class Slots(FreeSlots, total=False):
    """The slots that every algorithm takes besides its own arguments. Each has a default, which None stands for.

    An algorithm refuses the slots that it fills itself. A new slot is one line here and a field of `Policy`.

    Attributes:
        context: domain of the contexts given to `ask`. None, the default, for no contexts.
        prior_mean: expected reward before any observation, reward units. The default is 0. The theorems are for
            f - prior_mean.
        memory: the trials that count, all by default. "adaptive" (`nr.slots.EDetector()`) counts those since the last
            change that was detected. A part such as `nr.slots.SlidingWindow(200)` or `nr.slots.RestartEvery(100)` says
            otherwise. The constrained algorithms take "kept" and "fresh" too.
        explore: the forced rounds, none by default. Otherwise a part of `nilregret.slots.explore`.
        pending: the value that an unanswered trial counts as. "ignore", the default, or "hallucinate", or "auto", or a
            part. "auto" (`nr.slots.LateOrNever()`) hallucinates until there is evidence that silence means no.
        search: the search for the next point on a continuous domain.
        refit: the way to learn the kernel from the record. `nr.slots.Refit(...)` fits on a schedule and
            `nr.slots.LengthscaleBank()` averages over lengthscales. With either nothing is proved.
        switching: the number of rounds that a choice is played, one by default. "lazy" (`nr.slots.Lazy()`) plays a
            choice until some standard deviation may have shrunk by a tenth. This makes few decisions, with hardly more
            regret. Otherwise a part.
        constraints: the constraints, each with a posterior of its own. None by default. Otherwise
            `nr.EveryRound(count=1)`, `nr.OnAverage(count=1)` or `nr.Safe(start=points, scale=...)`. `nr.NoWorse(...)`
            keeps a control, also in a list with one of these or with others of its kind.
        reward: the kind of reward, if more is known than its size. "bernoulli" is for clicks, "poisson" for counts and
            "bounded" for numbers from 0 to 1. `nr.slots.Bernoulli(ceiling=0.1)`, `nr.slots.Poisson(...)` and
            `nr.slots.Bounded(low=..., high=...)` say more. The noise follows from the reward, so `noise` is left out.
    """

    constraints: Constraints | NoWorse | Sequence[Constraints | NoWorse] | None
    reward: Literal["bernoulli", "poisson", "bounded"] | KnownReward | None


LATER = ("confidence", "objective", "score", "sketch")  # Only `Policy.using` fills these slots.


# The parameters that each algorithm shows, and the slots that it fills itself, each with a description of the part.
_KNOWN: dict[str, tuple[Iterable[str], dict[str, str]]] = {}


class MissingNoise(InvalidInput, TypeError):
    """A missing argument, which is a TypeError in any call."""


def algorithm(**fills: str) -> Callable[[F], F]:
    """Returns a decorator that shows the slots of an algorithm in its signature. The algorithm calls `given` first.

    Args:
        fills: the slots that the algorithm fills itself, each with a description of the part.
    """

    def decorate(function: F) -> F:
        own = list(signature(function).parameters.values())[:-1]  # The last parameter is `**slots`.
        types = {name: getattr(hint, "__forward_arg__", hint) for name, hint in Slots.__annotations__.items()}
        slots = [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in types.items()
            if name not in fills
        ]
        shown = signature(function).replace(parameters=[*own, *slots])
        function.__signature__ = shown  # type: ignore[attr-defined]  # `inspect.signature` and `help` read it.
        _KNOWN[function.__name__] = shown.parameters, fills
        return function

    return decorate


def given(algorithm: str, noise: Any, slots: FreeSlots, **own: object) -> Any:
    """Returns the noise, and checks the keywords of a call, of which `reward` becomes a part and says the noise.

    Args:
        algorithm: its name.
        noise: its argument.
        slots: its other keywords, as they are given.
        own: arguments that share their name with a slot that the algorithm fills, which take no parts.
    """
    known, fills = _KNOWN[algorithm]
    for keyword in [*slots, *(name for name, value in own.items() if is_part(value))]:
        if keyword not in known or keyword in own:
            raise _unexpected(algorithm, keyword, known, fills)
    chosen: Any = slots
    if chosen.get("reward") is not None:
        chosen["reward"] = chosen_reward(chosen["reward"])
        return _noise_of_reward(chosen["reward"], noise)
    if noise is None:
        raise MissingNoise(
            f"{algorithm}() is missing the keyword argument 'noise', the standard deviation of the rewards' noise. "
            "Of clicks, counts and bounded rewards it follows from reward='bernoulli', 'poisson' or 'bounded'."
        )
    return noise


def _noise_of_reward(reward: KnownReward, noise: float | None) -> float:
    if noise is not None:
        raise InvalidInput(
            f"With `reward` the noise follows, here {numeral(reward.noise, 6)}: leave `noise` out.",
            advice="A smaller one follows from what more is known, such as `reward=nr.slots.Bernoulli(ceiling=0.1)`.",
        )
    return reward.noise


def keyword_hint(keyword: str, known: Iterable[str]) -> str:
    """Returns what a keyword probably means that nothing takes, after a space, or an empty text."""
    if keyword in ("beta", "kappa") and "width" in known:
        return (
            " Here `width` multiplies the standard deviation, and a theorem sets it. A constant one is "
            "`nilregret.slots.envelope.ConstantWidth(value=2.0)`, in a file `{ type = 'constant', value = 2.0 }`. "
            "It is the square root of BoTorch's beta, or the kappa of others."
        )
    return nearest(keyword, known)


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
    return TypeError(f"{algorithm}() got an unexpected keyword argument {keyword!r}.{keyword_hint(keyword, known)}")


def build(
    algorithm: str,
    domain: D,
    kernel: Kernel,
    confidence: Confidence,
    score: Score,
    *,
    noise: float,
    regularization: float,
    objective: Objective | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """Returns a policy of these parts, with defaults for the slots that are not given."""
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
