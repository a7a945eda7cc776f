"""What we recommend to whoever does not want to choose: parts for everything, picked by a benchmark."""

from __future__ import annotations

from .._utils.checks import LARGEST_REWARD, integer, number, one_of
from .._utils.errors import InvalidInput
from ..domains.domain import Arms, Domain, Space, check_domain
from ..domains.parameters import Choice
from ..domains.search.boxes import PointSearch
from ..kernels import kernel_for
from ..policy.policy import Policy
from ..slots.change_detection import DriftBank, EDetector
from ..slots.check import part_of
from ..slots.combined_memory import AllOf
from ..slots.constraints import Constraints, EveryRound
from ..slots.envelope import ConstantWidth
from ..slots.explore import MOST_ROUNDS, CoordinateSearch, Explore, InitialDesign, InTurn
from ..slots.memory import Forever, Memory
from ..slots.pending import Hallucinated, Ignored, Pending
from ..slots.refit import Refit
from ..slots.rewards import KnownReward, chosen_reward
from ..slots.scores import ExpectedImprovement, Score, ThompsonSample, UpperConfidenceBound
from ..slots.silence import Imputed, LateOrNever
from .common import build
from .randomised import half_shift

WORLDS = ("stationary", "drifting", "switching")
ANSWERS = ("prompt", "late", "silent no", "unknown")
FEWEST = 10  # points of an initial design
MOST = 20  # of those, but for workers that would be idle
SHARE = 3  # of a budget that is known, at most a third goes into it
LEAST_NOISE, MOST_NOISE = 1e-50, 1e40  # reward units; between them squares can be computed with
FIRST_NOISE = 0.1  # reward units, until the first fit
WIDTH = 2.0  # standard deviations that are shown as bounds
DRAWN = 0.6  # of clicks and counts: standard deviations that draws deviate
RELATED = 0.3  # sides of the domain: lengthscale of their kernel
OWN = 0.01  # likewise, of what an arm shares with no other


def auto(
    domain: Domain,
    *,
    context: Domain | None = None,
    noise: float | None = None,
    budget: int | None = None,
    parallel: int = 1,
    constraints: int | Constraints = 0,
    world: str = "stationary",
    answers: str = "prompt",
    reward: str | KnownReward | None = None,
) -> Policy:
    """The policy that we recommend where nothing is known: units, kernel, noise and mean of the rewards are learned.

    It is made of ordinary parts, which `print` shows and `policy.using(...)` replaces:

    | part | filling | what decided |
    |---|---|---|
    | explore | `InitialDesign`: scrambled Sobol points, a coordinate for each parameter | docs/choosing.md, "Starts" |
    | | then, not on arms or under constraints, `CoordinateSearch` of one parameter | "Every fifth round" |
    | kernel | `kernel_for`: Matern-5/2, a lengthscale for each parameter | "Kernels" |
    | refit | every third answer, then ever more rarely; priors of Hvarfner et al. 2024 | "Fits" |
    | | rewards below the median count by rank (`warp="half-rank"`), without contexts | "Outliers" |
    | score | `ExpectedImprovement` on the best posterior mean; `UpperConfidenceBound` with contexts | "Scores" |
    | | on arms without constraints `RandomisedBound`, upper bounds of a width that is drawn | docs/recommended.md |
    | search | Sobol candidates, mutations of the five best, gradients; parabolas in up to 3 real columns | "Searches" |
    | constraints | each with a posterior of its own, and fits of its own | docs/constraints.md |
    | pending | a failed trial counts as the worst; of several open ones each shrinks the variance alone | "Workers" |

    Nothing is proved for it: its bounds are two posterior standard deviations (`valid_for` is "none").

    Args:
        domain: arms, a box, or a space of parameters.
        context: domain of the contexts given to `ask`, or None.
        noise: standard deviation of the reward noise, reward units, if it is known; None, or 0, to have it learned.
        budget: how many trials there will be, if that is known: a short run does not spend itself on its start.
        parallel: how many trials are evaluated at a time.
        constraints: how many constraint values come with each reward, each satisfied when <= 0. They are learned as the
            rewards are, each with units, kernel and noise of its own; the score is then the constrained expected
            improvement (`nr.EveryRound(rule="probability")`), and with contexts the upper confidence bound of what may
            satisfy them. Or a part that says in which sense they hold: `nr.OnAverage(...)`, which takes prices off
            upper bounds, `nr.EveryRound(...)`, or `nr.Safe(...)`. Beside that nothing is forced or fitted: give
            `noise`, of which rewards are taken to vary by ten times as much.
        world: "stationary"; "switching", where only trials since a change that was noticed count
            (`nr.slots.EDetector`); or
            "drifting", which with `reward` on arms has a bank of rates beside that (`nr.slots.DriftBank`). Elsewhere
            units
            are learned by fits, which take all answers for those of one function, and "drifting" is "switching".
        answers: "prompt"; "late", and unanswered trials shrink the variance, as with `parallel` above 1; "silent no",
            where the bad ones are never answered and a trial counts as what is expected of its silence (`Imputed`); or
            "unknown": late, until it is evident that silence means no (`LateOrNever`).
        reward: what rewards are, if more is known than their size: "bernoulli" (clicks), "poisson" (counts), "bounded",
            or a part such as `nr.slots.Bernoulli(ceiling=0.1)`. On arms the policy is then Thompson sampling, of
            draws that
            deviate `DRAWN` times as far, from a posterior that learns a variance for each arm, and how much arms
            resemble their neighbours; nothing is refitted besides (docs/clicks.md, where it was chosen).

    Raises:
        InvalidInput: for values that make no sense.

    >>> import nilregret as nr
    >>> space = nr.Space(C=nr.Float(1e-2, 1e3, log=True), kernel=nr.Choice("rbf", "linear"))
    >>> study = nr.Study(nr.auto(space), seed=0)
    >>> sorted(study.ask().parameters)
    ['C', 'kernel']
    """
    check_domain("domain", domain)
    if context is not None:
        check_domain("context", context)
    why = "It is a standard deviation; leave it out where it is not known, and it is learned."
    told = 0.0 if noise is None else number("noise", noise, low=0.0, high=LARGEST_REWARD, why=why)
    parallel = integer(
        "parallel", parallel, low=1, high=MOST_ROUNDS, why="It is how many trials are evaluated at a time."
    )
    one_of("world", world, WORLDS)
    one_of("answers", answers, ANSWERS)
    sense: Constraints | None = part_of("constraints", constraints)
    why = "It counts constraint values, or is a part such as `nr.OnAverage()`. Texts are for `nr.minimize`."
    count = 0 if sense is not None else integer("constraints", constraints, low=0, why=why)
    limited = count > 0 or sense is not None
    std = max(told, LEAST_NOISE) if told else FIRST_NOISE
    # Until the first fit rewards vary by ten times the noise, so that neither drowns the other.
    factor = (min(std, MOST_NOISE) / FIRST_NOISE) ** 2
    kernel = factor * kernel_for(domain, context=context, lengthscale=0.5)
    start = _start(domain, budget, parallel)
    kind = None if reward is None else chosen_reward(reward)
    if kind is not None and isinstance(domain, Arms) and isinstance(context, Arms | None) and not limited:
        return _of_rates(kind, domain, context, noise, world, pending=_pending(answers, parallel))
    policy = build(
        "auto", domain, kernel, ConstantWidth(value=WIDTH),
        _score(domain, context, limited=count > 0 or (sense is not None and sense.by_sign)),
        noise=std, regularization=std**2, context=context,
        memory=_memory(world),
        explore=_explore(domain, start, limited=limited and context is None),
        pending=_pending(answers, parallel),
        constraints=_limits(count, domain, context),
        # On a border the best is found to the last digits, or not at all.
        search=PointSearch(mutations=256, incumbents=5, apart=0.0001 if limited else 0.001),
        refit=Refit(
            every=3, growth=0.1, warp="half-rank" if context is None else "none", noise="given" if told else "unknown"
        ),
        reward=kind,
    )  # fmt: skip
    return policy if sense is None else policy.using(constraints=sense)


def _of_rates(
    reward: KnownReward, domain: Arms, context: Arms | None, noise: float | None, world: str, *, pending: Pending
) -> Policy:
    """Clicks, counts and the like on finitely many arms."""
    if noise is not None:
        raise InvalidInput("With `reward` the noise follows: leave `noise` out.")
    kernel = kernel_for(domain, context=context, lengthscale=RELATED)
    memory, prior_mean, ridge = _memory(world), None, reward.noise**2
    if world == "drifting":  # how much arms resemble their neighbours is not learned then: half of it is their own
        prior_mean, spread, ridge = reward.start
        own = kernel_for(domain, context=context, lengthscale=OWN)
        memory, kernel = AllOf((memory, DriftBank())), 0.5 * spread**2 * (kernel + own)
    return build(
        "auto", domain, kernel, ConstantWidth(value=DRAWN), ThompsonSample(), noise=reward.noise, regularization=ridge,
        prior_mean=prior_mean, context=context, memory=memory, pending=pending, reward=reward,
    )  # fmt: skip


def _start(domain: Domain, budget: int | None, parallel: int) -> int:
    """Points of the initial design: every option of a choice once, and work for every worker."""
    options = (
        [len(p.options) for p in domain.parameters.values() if isinstance(p, Choice)]
        if isinstance(domain, Space)
        else []
    )
    count = min(max([FEWEST, *options]), MOST)
    if budget is not None:
        share = integer("budget", budget, low=1, why="It is how many trials there will be.") // SHARE
        count = max(min(count, share), 1)
    return max(count, parallel)


def _explore(domain: Domain, start: int, *, limited: bool) -> Explore:
    if isinstance(domain, Arms) or limited:  # beside the best feasible point is mostly what is infeasible
        return InitialDesign(start)
    return InTurn((InitialDesign(start), CoordinateSearch(after=start + 5)))


def _score(domain: Domain, context: Domain | None, *, limited: bool) -> Score:
    if context is not None:
        return UpperConfidenceBound()
    if isinstance(domain, Arms) and not limited:  # expected improvement takes to an arm too soon, and stays there
        return half_shift(len(domain))
    return ExpectedImprovement()


def _limits(count: int, domain: Domain, context: Domain | None) -> Constraints | None:
    """Each in its own units until its first fit, whatever the noise of the reward."""
    if not count:
        return None
    return EveryRound(
        count=count,
        kernel=kernel_for(domain, context=context, lengthscale=0.5),
        rule="probability" if context is None else "optimistic",
    )


def _memory(world: str) -> Memory:
    return Forever() if world == "stationary" else EDetector()


def _pending(answers: str, parallel: int) -> Pending:
    if answers == "silent no":
        return Imputed(minimum=None, failed="worst")
    if answers == "unknown":
        return LateOrNever(minimum=None, failed="worst")
    return Hallucinated(failed="worst") if answers == "late" or parallel > 1 else Ignored(failed="worst")
