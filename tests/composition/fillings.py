"""Representative fillings of every slot, and which pairs of them are refused for which reason.

The one list behind the tests of all pairs and the table in docs/measured/composition.md, which `python -m
tests.composition.write` writes.
"""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import numpy as np

import nilregret as nr
from nilregret.gp.mixture import EarlierStudy
from nilregret.policy.policy import Policy
from nilregret.slots.envelope import (
    CompactBayes,
    ConstantWidth,
    DriftBayes,
    FiniteBayes,
    PointwiseBayes,
    ScheduledWidth,
)
from nilregret.slots.explore import TimedDesign, UncertaintySampling, UniformExploration
from nilregret.slots.objective import AdditivePenalty, MultiplicativePenalty
from nilregret.slots.refit import RegretBalancing
from nilregret.slots.scores import (
    ExpectedImprovement,
    PosteriorDeviation,
    PosteriorMean,
    ProbabilityOfImprovement,
    RandomisedBound,
    ThompsonSample,
)
from nilregret.slots.widths.delayed import CensoredBounds, CensoredWidth, Inflated
from nilregret.slots.widths.likelihood_ratio import LikelihoodRatio, RateQuantiles
from nilregret.slots.widths.mixtures import AnalyticMixture, AnyRidge, DualMixture, Intersection, NoiseFree
from nilregret.slots.widths.self_normalized import BoundedNoise, KernelUcb, PeriodRkhs, RealisedGain, SelfNormalized
from nilregret.testing.driver import Driver

NOISE = 0.1
NORM = {"norm_bound": 1.0, "noise": NOISE, "regularization": NOISE**2}
TOO_SMALL = {**NORM, "norm_bound": 0.1}
ARMS, BOX = nr.Arms.grid(0, 1, 9), nr.Box(0.0, 1.0)
SPACE = nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 3), kind=nr.Choice("a", "b"))
SEARCH = nr.slots.PointSearch(candidates=8, around=4, starts=1, evaluations=2)
DOMAINS = {
    "arms": (ARMS, None),
    "arms under a table of contexts": (ARMS, nr.Arms.grid(0, 1, 3)),
    "arms under contexts of a box": (ARMS, nr.Box(0.0, 1.0)),
    "box": (BOX, None),
    "box under contexts of a box": (BOX, nr.Box(0.0, 1.0)),
    "space": (SPACE, None),
}


def base(where: str = "arms") -> Policy:
    """GP-UCB of a constant width, on one of the domains."""
    domain, context = DOMAINS[where]
    columns = domain.dimension + (0 if context is None else context.dimension)
    kernel = nr.Matern(2.5, [0.3] * columns)
    return nr.gp_ucb(domain, kernel, noise=NOISE, context=context, width=ConstantWidth(value=2.0), search=SEARCH)


class Filling(NamedTuple):
    """One way to fill a slot.

    Attributes:
        slot: that it fills.
        name: of the row in the table, a code or a few words.
        put: gives a policy with it; the second argument is the slot that the other one of a pair fills.
    """

    slot: str
    name: str
    put: Callable[[Policy, str], Policy]


def _using(slot: str, name: str, part: object) -> Filling:
    return Filling(slot, name, lambda policy, other: policy.using(**{slot: part}))


def _by_log_probability(policy: Policy, other: str) -> Policy:
    score = {} if other == "score" else {"score": ExpectedImprovement()}  # which it is for
    return policy.using(constraints=nr.EveryRound(rule="probability", noise=NOISE), **score)


def _front(policy: Policy, other: str) -> Policy:
    score = {} if other == "score" else {"score": nr.slots.HypervolumeImprovement()}  # which it is for
    return policy.using(constraints=nr.slots.Pareto(noise=NOISE), **score)


def _of_front(score: object) -> Callable[[Policy, str], Policy]:
    def put(policy: Policy, other: str) -> Policy:
        return policy.using(score=score, constraints=nr.slots.Pareto(noise=NOISE))  # without which it is none

    return put


def _safe(policy: Policy, other: str) -> Policy:
    return policy.using(constraints=nr.Safe(start=_start(policy.domain), scale=1.0, noise=NOISE))


def _safe_by_slopes(policy: Policy, other: str) -> Policy:
    slope = dict.fromkeys(SPACE.parameters, 9.0) if isinstance(policy.domain, nr.Space) else 9.0
    return policy.using(constraints=nr.Safe(start=_start(policy.domain), slope=slope, noise=10.0))  # never refuted


def _start(domain: nr.Arms | nr.Box | nr.Space) -> np.ndarray:
    return domain.points[:2] if isinstance(domain, nr.Arms) else domain.inside("start", [domain.lower, domain.upper])


def _compact(policy: Policy, other: str) -> Policy:
    columns = policy.domain.dimension + (0 if policy.context is None else policy.context.dimension)
    return policy.using(confidence=CompactBayes(dimension=columns, side=1.0, log_a=1.0, b=5.0))


def _penalty(penalty: Callable[..., object]) -> Callable[[Policy, str], Policy]:
    return lambda policy, other: policy.using(objective=penalty(epoch=3, epochs=4))


def _known(reward: object) -> Callable[[Policy, str], Policy]:
    return lambda policy, other: policy.using(objective=reward, noise=reward.noise)


def _tide(policy: Policy, other: str) -> Policy:
    return _known(nr.slots.Bernoulli())(policy, other).using(memory=nr.slots.Tide())  # which it is for


def _exposed(policy: Policy, other: str) -> Policy:
    return _known(nr.slots.Bernoulli())(policy, other).using(pending=nr.slots.Exposed(wait=5))


def _models(policy: Policy, other: str) -> Policy:
    under = {"context": nr.Box(0.0, 1.0), "kernel": nr.Matern(2.5, [0.3, 0.3])}  # contexts, which they are for
    alone = policy.context is None and isinstance(policy.domain, nr.Arms)
    return policy.using(refit=nr.slots.ArmModels(), **(under if alone else {}))


def _given(policy: Policy, other: str) -> Policy:
    points = policy.domain.points[:2] if isinstance(policy.domain, nr.Arms) else policy.domain.lower[None]
    return policy.using(explore=nr.slots.GivenPoints(policy.domain.inside("points", points)))


def _earlier(policy: Policy, other: str) -> Policy:
    if policy.context is None and isinstance(policy.domain, nr.Arms) and other != "domain":  # it is for boxes
        policy = policy.using(domain=BOX)
    points = np.linspace(0.0, 1.0, 2)[:, None].repeat(policy.domain.dimension, axis=1)
    study = EarlierStudy(name="a", points=points, targets=[0.0, 1.0], kernel=nr.Matern(), regularization=NOISE**2)
    return policy.using(refit=nr.slots.EarlierStudies(studies=[study], around=nr.slots.Refit(every=5, restarts=0)))


def _likelihood(policy: Policy, other: str) -> Policy:
    if other != "objective":  # which it is for
        policy = _known(nr.slots.Bernoulli())(policy, other)
    return policy.using(confidence=LikelihoodRatio(norm_bound=0.5))


OWN = nr.slots.Refit(every=5, restarts=0, outputs="own", standardize=False, prior="none")
CENSORED_WIDTH = CensoredWidth(window=2, reward_bound=1.0, norm_bound=1.0, noise=NOISE, ridge_large=False, ridge=0.01)
CENSORED_BOUNDS = CensoredBounds(window=2, reward_bound=1.0, norm_bound=1.0, ridge=0.01)
FILLINGS = [
    _using("memory", "`RestartAt`", nr.slots.RestartAt((4,))),
    _using("memory", "`RestartEvery`", nr.slots.RestartEvery(6)),
    _using("memory", "`RestartDoubling`", nr.slots.RestartDoubling(5, ridge=True)),
    _using("memory", "`SlidingWindow`", nr.slots.SlidingWindow(6)),
    Filling("memory", "`RestartOnChange`", lambda policy, other: policy.detecting_changes(threshold=0.1, ridge=0.1)),
    _using("memory", "`EDetector`", nr.slots.EDetector(delta=0.9)),
    _using("memory", "`Discount`", nr.slots.Discount(0.05)),
    _using("memory", "`DriftBank`", nr.slots.DriftBank((0.0, 0.1))),
    Filling("memory", "`Tide`", _tide),
    _using("memory", "`AllOf` window, detector, discount",
           nr.slots.AllOf((nr.slots.SlidingWindow(6), nr.slots.EDetector(delta=0.9), nr.slots.Discount(0.05)))),
    _using("explore", "`Confirm`", nr.slots.Confirm(20)),
    _using("explore", "`UniformExploration`", UniformExploration(0.8)),
    _using("explore", "`Uniform`", nr.slots.Uniform(0.2)),
    _using("explore", "`Shares`", nr.slots.Shares({1: 0.3})),
    _using("explore", "`UncertaintySampling`", UncertaintySampling(3)),
    _using("explore", "`InitialDesign`", nr.slots.InitialDesign(3)),
    _using("explore", "`TimedDesign`", TimedDesign(design=nr.slots.InitialDesign(3), seconds=60.0)),
    Filling("explore", "`GivenPoints`", _given),
    _using("explore", "`CoordinateSearch`", nr.slots.CoordinateSearch(every=3, after=3, steps=8)),
    _using("explore", "`Elsewhere`", nr.slots.Elsewhere(after=15)),
    _using("explore", "`AskAgain`", nr.slots.AskAgain(budget=8, rounds=4, noise=0.0)),
    _using("explore", "`InTurn`", nr.slots.InTurn((nr.slots.InitialDesign(2), UniformExploration(0.5)))),
    _using("pending", "`Ignored(failed='worst')`", nr.slots.Ignored(failed="worst")),
    _using("pending", "`Hallucinated`", nr.slots.Hallucinated()),
    _using("pending", "`NearestMeans`", nr.slots.NearestMeans()),
    _using("pending", "`Censored`", nr.slots.Censored(minimum=None, window=2.0)),
    _using("pending", "`Imputed`", nr.slots.Imputed()),
    _using("pending", "`LateOrNever`", nr.slots.LateOrNever()),
    Filling("pending", "`Exposed`", _exposed),
    Filling("objective", "`MultiplicativePenalty`", _penalty(MultiplicativePenalty)),
    Filling("objective", "`AdditivePenalty`", _penalty(lambda **more: AdditivePenalty(step=0.5, **more))),
    Filling("objective", "`Bernoulli`", _known(nr.slots.Bernoulli())),
    Filling("objective", "`Poisson`", _known(nr.slots.Poisson(ceiling=2.0))),
    Filling("objective", "`Bounded`", _known(nr.slots.Bounded())),
    _using("confidence", "`FiniteBayes`", FiniteBayes(size=27)),
    Filling("confidence", "`CompactBayes`", _compact),
    _using("confidence", "`PointwiseBayes`", PointwiseBayes()),
    _using("confidence", "`ScheduledWidth`", ScheduledWidth(schedule=nr.theory.PowerLaw(1.0, 0.1))),
    _using("confidence", "`DriftBayes`", DriftBayes(horizon=50, alpha=2.5, dimension=1)),
    _using("confidence", "`PeriodRkhs`", PeriodRkhs(horizon=50, norm_bound=1.0, gain=RealisedGain())),
    _using("confidence", "`SelfNormalized`", SelfNormalized(norm_bound=1.0, noise=NOISE)),
    _using("confidence", "`SelfNormalized`, norm guessed", SelfNormalized(norm_bound=0.1, noise=NOISE, guessed=True)),
    _using("confidence", "`BoundedNoise`", BoundedNoise(norm_bound=1.0, gain=RealisedGain())),
    _using("confidence", "`KernelUcb`", KernelUcb(eta=1.0, regularization=NOISE**2)),
    _using("confidence", "`AnyRidge`", AnyRidge(**NORM)),
    _using("confidence", "`AnalyticMixture`", AnalyticMixture(**NORM)),
    _using("confidence", "`AnalyticMixture`, norm guessed", AnalyticMixture(**TOO_SMALL, guessed=True)),
    _using("confidence", "`DualMixture`", DualMixture(**TOO_SMALL)),
    _using("confidence", "`NoiseFree`", NoiseFree(norm_bound=1.0)),
    _using("confidence", "`Intersection`", Intersection(parts=(AnalyticMixture(**NORM), ConstantWidth(value=2.0)))),
    Filling("confidence", "`LikelihoodRatio`", _likelihood),
    _using("confidence", "`CensoredWidth`", CENSORED_WIDTH),
    _using("confidence", "`CensoredBounds`", CENSORED_BOUNDS),
    _using("confidence", "`Inflated`", Inflated(base=ConstantWidth(value=2.0))),
    _using("confidence", "`RateQuantiles`", RateQuantiles()),
    _using("score", "`PosteriorMean`", PosteriorMean()),
    _using("score", "`PosteriorDeviation`", PosteriorDeviation()),
    _using("score", "`ExpectedImprovement`", ExpectedImprovement()),
    _using("score", "`ProbabilityOfImprovement`", ProbabilityOfImprovement()),
    _using("score", "`RandomisedBound`", RandomisedBound(shift=3.0)),
    _using("score", "`ThompsonSample`", ThompsonSample()),
    _using("score", "`GaussianDraws`", nr.slots.GaussianDraws()),
    _using("score", "`PerCost`", nr.slots.PerCost("seconds")),
    _using("score", "`ThompsonSample` on a grid", ThompsonSample(grid=3)),
    Filling("score", "`HypervolumeImprovement`", _of_front(nr.slots.HypervolumeImprovement())),
    Filling("score", "`ScalarisedImprovement`", _of_front(nr.slots.ScalarisedImprovement())),
    Filling("score", "`ScalarisedBound`", _of_front(nr.slots.ScalarisedBound())),
    Filling("score", "`ScalarisedSample`", _of_front(nr.slots.ScalarisedSample())),
    *[Filling("domain", name, lambda policy, other: policy) for name in DOMAINS if name != "arms"],
    _using("refit", "`Refit`", nr.slots.Refit(every=5, restarts=0)),
    _using("refit", "`Refit(outputs='own')`", OWN),
    _using("refit", "`LengthscaleBank`", nr.slots.LengthscaleBank(factors=(0.5, 1.0))),
    _using("refit", "`LengthscaleBank` around fits",
           nr.slots.LengthscaleBank(factors=(1.0, 3.0), weight=None, around=nr.slots.Refit(every=5, restarts=0))),
    _using("refit", "`RegretBalancing`", RegretBalancing(factors=(1.0, 0.4), norm_bound=1.0, noise=NOISE)),
    Filling("refit", "`ArmModels`", _models),
    Filling("refit", "`EarlierStudies`", _earlier),
    _using("constraints", "`EveryRound`", nr.EveryRound(noise=NOISE)),
    Filling("constraints", "`EveryRound(rule='probability')`", _by_log_probability),
    _using("constraints", "`OnAverage`", nr.OnAverage(noise=NOISE, step=0.5)),
    Filling("constraints", "`Pareto`", _front),
    Filling("constraints", "`Safe`", _safe),
    Filling("constraints", "`Safe(slope=...)`", _safe_by_slopes),
    _using("switching", "`Lazy`", nr.slots.Lazy(factor=2.0)),
    _using("pruning", "`Never`", nr.slots.Never(steps=5)),
    _using("pruning", "`Median`", nr.slots.Median(steps=5)),
    _using("pruning", "`Halving`", nr.slots.Halving(steps=5)),
    _using("pruning", "`Predicted`", nr.slots.Predicted(steps=5)),
    _using("slate", "`Cascade`", nr.slots.Cascade()),
    _using("slate", "`Positions`", nr.slots.Positions((1.0, 0.5))),
]  # fmt: skip
SLOTS = list(dict.fromkeys(filling.slot for filling in FILLINGS))
ORDER = {"domain": 0, "explore": 1}  # the others after these: detectors are added to the forced rounds there are


def made(one: Filling, other: Filling) -> Policy:
    """A policy with two fillings."""
    where = next((filling.name for filling in (one, other) if filling.slot == "domain"), "arms")
    policy = base(where)
    first, second = sorted((one, other), key=lambda filling: ORDER.get(filling.slot, 2))
    return second.put(first.put(policy, second.slot), first.slot)


class Reason(NamedTuple):
    """Why some fillings do not go together.

    Attributes:
        one: fillings, by the beginning of their names.
        other: that they do not go with, likewise.
        error: what the error says, a regular expression.
        reason: for the table.
    """

    one: tuple[str, ...]
    other: tuple[str, ...]
    error: str
    reason: str


LEARNED = ("`Refit", "`LengthscaleBank`", "`RegretBalancing`", "`ArmModels`", "`EarlierStudies`")
STOPS = ("`Median`", "`Halving`", "`Predicted`")
FRONTS = (
    "`HypervolumeImprovement`",
    "`ScalarisedImprovement`",
    "`ScalarisedBound`",
    "`ScalarisedSample`",
    "`Pareto`",
)
SLATES = ("`Cascade`", "`Positions`")
REASONS = [
    Reason(
        SLATES,
        ("`MultiplicativePenalty`", "`AdditivePenalty`", "`EveryRound", "`OnAverage`", "`Safe", *FRONTS),
        "one reward of each place",
        "What was not seen has no answer, and constraint values come by themselves.",
    ),
    Reason(
        SLATES,
        ("box", "space", "`EarlierStudies`", "`Lazy`"),
        "for policies on `Arms`",
        "A slate has another arm in each place, once.",
    ),
    Reason(
        ("`Positions`",),
        (
            "`RestartOnChange`",
            "`EDetector`",
            "`AllOf`",
            "`NoiseFree`",
            "`CensoredWidth`",
            "`CensoredBounds`",
            "`Refit",
            "`LengthscaleBank` around fits",
        ),
        "counts some answers less than others",
        "Answers count by the probability that their place was seen, and these take all for equally noisy.",
    ),
    Reason(
        FRONTS,
        (
            "arms under a table of contexts",
            "arms under contexts of a box",
            "box under contexts of a box",
            "`ArmModels`",
        ),
        "without contexts|has none",
        "A front is looked for once, and under contexts each has its own.",
    ),
    Reason(
        ("`Pareto`",),
        (
            "`PosteriorMean`",
            "`PosteriorDeviation`",
            "`ExpectedImprovement`",
            "`ProbabilityOfImprovement`",
            "`RandomisedBound`",
            "`ThompsonSample`",
            "`GaussianDraws`",
            "`PerCost`",
        ),
        "scores one reward",
        "These scores are of one reward, and a front needs a score of all objectives.",
    ),
    Reason(
        FRONTS[:4],
        ("`EveryRound", "`OnAverage`", "`Safe"),
        "the policy has one",
        "Scores of a front need the rule `Pareto`, which holds limits as `EveryRound` does.",
    ),
    Reason(
        FRONTS,
        ("`MultiplicativePenalty`", "`AdditivePenalty`"),
        "one of the two, not both",
        "A penalty charges for violations in the one function that is learned, and a front has several.",
    ),
    Reason(
        FRONTS,
        ("`Exposed`", "`LikelihoodRatio`", "`Bernoulli`", "`Poisson`", "`Bounded`"),
        "counts an unanswered trial|Likelihood ratios|says more of a reward",
        "Clicks and counts have posteriors of their own kind, for one reward.",
    ),
    Reason(
        FRONTS,
        ("`CensoredWidth`", "`CensoredBounds`"),
        "are not censored",
        "The theorem of Verma et al. is about one censored reward.",
    ),
    Reason(
        FRONTS,
        ("`Lazy`",),
        "`Lazy` keeps",
        "Runs of plays end when one reward is known well enough.",
    ),
    Reason(
        STOPS,
        ("arms under", "box under", "`ArmModels`"),
        "under one context",
        "A rule compares the curves of trials, and under contexts they differ because the contexts do.",
    ),
    Reason(
        STOPS,
        FRONTS,
        "has several objectives",
        "A curve has one value at each step.",
    ),
    Reason(
        STOPS,
        ("`Lazy`",),
        "played several times",
        "A trial of several plays has no curve.",
    ),
    Reason(
        ("`Discount`", "`DriftBank`", "`AllOf`"),
        LEARNED,
        "would be taken for noise|finitely many arms",
        "What learns a kernel takes all answers for those of one function, and under a drift f is another one in each "
        "round: what has drifted would be taken for noise. Windows are the drift that this goes with.",
    ),
    Reason(
        ("`RegretBalancing`",),
        ("arms under", "box under"),
        "who had the better contexts",
        "It compares what candidates earned on average in different rounds, and under contexts the best that can be "
        "earned differs from round to round: who had the better contexts would refute the others.",
    ),
    Reason(
        ("`DriftBank`",),
        ("arms under contexts of a box", "box", "space"),
        "finitely many arms",
        "The bank keeps, for each rate, a posterior of the values of f at finitely many arms; a posterior over a "
        "continuum grows with the rounds, for each rate.",
    ),
    Reason(
        ("`MultiplicativePenalty`", "`AdditivePenalty`"),
        ("`EveryRound", "`OnAverage`", "`Safe"),
        "one of the two, not both",
        "A penalty charges for violations in the one function that is learned (Shi and Eryilmaz), the three worlds "
        "learn each constraint by itself: what violates would be charged twice.",
    ),
    Reason(
        ("`EveryRound(rule='probability')`",),
        (
            "`PosteriorMean`",
            "`PosteriorDeviation`",
            "`ProbabilityOfImprovement`",
            "`RandomisedBound`",
            "`ThompsonSample`",
            "`GaussianDraws`",
        ),
        "is no logarithm",
        "log(EI x probability) = log EI + log probability (Schonlau et al. 1998): the score must be a logarithm of "
        "an expectation.",
    ),
    Reason(
        ("`OnAverage`",),
        ("`ExpectedImprovement`", "`ProbabilityOfImprovement`", "`PerCost`"),
        "pure number",
        "The Lagrangian f - sum_j phi_j g_j is in units of the reward (Shi and Eryilmaz, Algorithm 3), and these "
        "scores are pure numbers.",
    ),
    Reason(
        ("`Safe",),
        (
            "`UniformExploration`",
            "`Uniform`",
            "`Shares`",
            "`UncertaintySampling`",
            "`InitialDesign`",
            "`TimedDesign`",
            "`GivenPoints`",
            "`CoordinateSearch`",
            "`Elsewhere`",
            "`AskAgain`",
            "`Confirm`",
            "`InTurn`",
            "`RestartOnChange`",
        ),
        "nothing has certified",
        "A forced round is played whether it is certified or not, so that P(any violation) <= delta would be lost; "
        "`RestartOnChange` lives on forced rounds.",
    ),
    Reason(("`Shares`",), ("box", "space", "`EarlierStudies`"), "the policy has none", "Shares are of arms."),
    Reason(
        ("`Safe`",),
        LEARNED,
        "certifies by a kernel that is given",
        "Certificates are probabilities under the kernel that is given; under one that was learned nothing.",
    ),
    Reason(
        ("`Safe",),
        ("`Discount`", "`DriftBank`", "`AllOf`"),
        "may have drifted by the next round",
        "What was certified may have drifted by the next round: every round would be a risk anew, and no delta "
        "would do for a whole run.",
    ),
    Reason(
        ("`SelfNormalized`, norm guessed", "`AnalyticMixture`, norm guessed"),
        LEARNED,
        "A norm can be guessed",
        "What contradicts a guessed norm hangs on the kernel, and so on which fits came before: a record that is "
        "replayed makes the last fit alone.",
    ),
    Reason(
        ("`CensoredWidth`", "`CensoredBounds`"),
        ("`EveryRound", "`OnAverage`", "`Safe"),
        "not censored",
        "Its bounds are for rho_m f, the mean of censored rewards (Verma, Dai and Low, Theorem 1), and constraint "
        "values are not censored: `confidence=` of the constraints says which bounds are theirs, and then they go "
        "together.",
    ),
    Reason(
        ("`CensoredBounds`", "`DualMixture`", "`Intersection`", "`LikelihoodRatio`", "`RateQuantiles`"),
        ("`ThompsonSample`", "`ThompsonSample` on a grid"),
        "widens its draws",
        "Thompson sampling draws from the posterior, widened by a multiple of its deviation (Chowdhury and Gopalan, "
        "Algorithm 2), and these bounds are none.",
    ),
    Reason(
        ("`DualMixture`", "`NoiseFree`"),
        LEARNED,
        "nobody knows the norm",
        "It bounds functions of a norm of at most B in the RKHS of the kernel that is given; in that of a kernel that "
        "was learned nobody knows the norm.",
    ),
    Reason(
        ("`Tide`",),
        (
            "`MultiplicativePenalty`",
            "`AdditivePenalty`",
            "`SelfNormalized`",
            "`AnyRidge`",
            "`AnalyticMixture`",
            "`DualMixture`",
            "`NoiseFree`",
            "`LikelihoodRatio`",
            "`Scalarised",
            "`HypervolumeImprovement`",
            "arms under contexts of a box",
            "box",
            "space",
            *(name for name in LEARNED if name != "`ArmModels`"),
            "`EveryRound",
            "`OnAverage`",
            "`Pareto`",
            "`Safe",
        ),
        "`Tide` is for clicks|rates that stand still",
        "A level beside the arms is learned with rates of clicks, counts and bounded rewards, and with linear models "
        "of arms. What proves bounds for rewards that stand still has no level.",
    ),
    Reason(
        ("`DualMixture`", "`NoiseFree`"),
        ("`Discount`", "`DriftBank`", "`AllOf`"),
        "no single f fits",
        "It bounds one function by what all answers say of it, and under a drift f is another one in each round.",
    ),
    Reason(
        ("`LikelihoodRatio`",),
        (
            "`MultiplicativePenalty`",
            "`AdditivePenalty`",
            "`Discount`",
            "`DriftBank`",
            "`AllOf`",
            "arms under contexts of a box",
            "box",
            "space",
            *LEARNED,
            "`EveryRound",
            "`OnAverage`",
            "`Safe",
        ),
        "Likelihood ratios are for",
        "It is made of the likelihood of clicks, counts or bounded rewards, arm by arm, of one function: what charges "
        "for violations, drifts, or is scaled by a fit has none, nor have constraint values.",
    ),
    Reason(
        ("`GaussianDraws`",),
        ("box", "space", "`EarlierStudies`"),
        "finitely many arms",
        "Each arm has a draw by itself, and of infinitely many independent draws none is the largest.",
    ),
    Reason(
        ("`EarlierStudies`",),
        ("arms under", "box under"),
        "boxes and spaces without contexts",
        "Studies are mixed by how well they rank the rewards of this one, and under contexts there is no one ranking.",
    ),
    Reason(
        ("`ArmModels`",),
        ("box", "space"),
        "there must be arms, and contexts",
        "Each of finitely many arms has a model of its own, as a function of the context.",
    ),
    Reason(
        ("`ArmModels`",),
        ("`Hallucinated`", "`LateOrNever`"),
        "cannot shrink the variance",
        "The models learn from values, and an unanswered trial has none.",
    ),
    Reason(
        ("`ArmModels`",),
        ("`ThompsonSample`",),
        "draws one function of all contexts",
        "The average of several models is no posterior of one function that could be drawn; each arm has a draw.",
    ),
    Reason(
        ("`Exposed`",),
        (
            "`Discount`",
            "`DriftBank`",
            "`AllOf`",
            "`MultiplicativePenalty`",
            "`AdditivePenalty`",
            "arms under contexts of a box",
            "box",
            "space",
            "`SelfNormalized`",
            "`AnyRidge`",
            "`AnalyticMixture`",
            "`DualMixture`",
            *(name for name in LEARNED if name != "`ArmModels`"),
            "`EveryRound",
            "`OnAverage`",
            "`Safe",
            "`Lazy`",
        ),
        "share of an observation|differs from point to point",
        "It counts an unanswered trial as a share of an observation, which the posterior of clicks, counts and bounded "
        "rewards learns, and so do linear models of arms.",
    ),
    Reason(
        ("`Lazy`",),
        ("arms under", "box under", "`ArmModels`"),
        "under contexts each round has its own",
        "A choice is played for many rounds, and under contexts each round has its own: the choice of one says nothing "
        "of the next.",
    ),
    Reason(
        ("`Lazy`",),
        tuple(filling.name for filling in FILLINGS if filling.slot == "memory"),
        "looks at rounds one by one",
        "A run of plays is one entry of the record, and a memory forgets, or looks for changes, round by round.",
    ),
    Reason(
        ("`Lazy`",),
        ("`Bernoulli`", "`Poisson`", "`Bounded`", "`LikelihoodRatio`"),
        "differs from point to point|is for rewards",
        "How much plays can teach is known where all have one noise; that of clicks and counts differs from point to "
        "point and is learned on the way.",
    ),
    Reason(
        ("`Lazy`",),
        ("`NearestMeans`", "`Censored`", "`Imputed`", "`LateOrNever`"),
        "is that of a single play",
        "A run of plays is under way as a whole, and what stands in for its answer would be that of a single play.",
    ),
    Reason(
        ("`Lazy`",),
        ("`MultiplicativePenalty`", "`AdditivePenalty`", "`EveryRound", "`OnAverage`", "`Safe"),
        "not that of constraints",
        "A run keeps the uncertainty of the reward within a factor and not that of constraints, which are learned, "
        "charged and kept round by round.",
    ),
    Reason(
        ("`Lazy`",),
        LEARNED,
        "changes it between them",
        "How much plays can teach is known under one kernel, and a fit changes it between them.",
    ),
    Reason(
        ("`Lazy`",),
        ("`CensoredWidth`", "`CensoredBounds`"),
        "adds up the last single ones",
        "A run of plays is one entry of the record, and these widths add up the last single ones.",
    ),
]


def reason_for(one: Filling, other: Filling) -> Reason | None:
    """Why two fillings are refused; None for those that go together."""
    for reason in REASONS:
        for first, second in ((one, other), (other, one)):
            if first.name.startswith(reason.one) and second.name.startswith(reason.other):
                return reason
    return None


LAGS = (0, 2, 0, 1, None, 0, 1, None)  # questions until a trial is answered; None for never
FAILS = 4  # this one is not waited for: it fails


def play(driver: Driver, rounds: int) -> nr.Study:
    """A study, with answers that come late, out of order, or never, and a failure."""
    study, due = driver.study(), {}
    for step in range(rounds):
        driver._now = float(step)
        trial = study.ask(driver.context(step))
        if step == FAILS:
            study.fail(trial, "the machine burnt down")
        elif (lag := LAGS[step % len(LAGS)]) is not None:
            due.setdefault(step + lag, []).append(trial)
        for late in reversed(due.pop(step, [])):
            driver.answer(study, late)
    return study


PAIRS = [pair for pair in combinations(FILLINGS, 2) if pair[0].slot != pair[1].slot]


def table() -> str:
    """The table of docs/measured/composition.md."""
    used = list(dict.fromkeys(reason for pair in PAIRS if (reason := reason_for(*pair)) is not None))
    refused = sum(reason_for(*pair) is not None for pair in PAIRS)
    lines = [
        f"{len(PAIRS)} pairs: {len(PAIRS) - refused} work, {refused} are refused.",
        "",
        "| slot | filling | does not go with |",
        "|---|---|---|",
    ]
    for filling in FILLINGS:
        others = [
            (other.name, used.index(reason) + 1)
            for other in FILLINGS
            if other.slot != filling.slot and (reason := reason_for(filling, other)) is not None
        ]
        text = ", ".join(f"{name} ({number})" for name, number in others)
        lines.append(f"| {filling.slot} | {filling.name} | {text or '-'} |")
    lines += ["", *(f"{number}. {reason.reason}" for number, reason in enumerate(used, start=1))]
    return "\n".join(lines)
