"""What is taken for a number, a point or a flag, and what is refused with a sentence."""

import dataclasses
import datetime
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import nilregret as nr
from nilregret import serialize
from nilregret._utils import checks
from nilregret.algorithms.baselines import Admmbo, BanditOco
from nilregret.domains.options import NamedOption, NestedOption
from nilregret.environments import delays, even_changes
from nilregret.gp.mixture import EarlierStudy
from nilregret.gp.warping import SignedLog, Warp
from nilregret.kernels.combined import Multiplied, Stretched
from nilregret.policy import Policy
from nilregret.simulation import metrics
from nilregret.slots.envelope import (
    CompactBayes,
    ConstantWidth,
    DriftBayes,
    FiniteBayes,
    PointwiseBayes,
    ScheduledWidth,
)
from nilregret.slots.explore import NoExploration, TimedDesign, UncertaintySampling, UniformExploration
from nilregret.slots.memory import Forever
from nilregret.slots.objective import AdditivePenalty, MultiplicativePenalty, RewardAlone
from nilregret.slots.refit import RegretBalancing
from nilregret.slots.scores import (
    ExpectedImprovement,
    PosteriorDeviation,
    PosteriorMean,
    ProbabilityOfImprovement,
    RandomisedBound,
    ThompsonSample,
    UpperConfidenceBound,
)
from nilregret.slots.widths.delayed import CensoredBounds, CensoredWidth, Inflated
from nilregret.slots.widths.likelihood_ratio import LikelihoodRatio, RateQuantiles
from nilregret.slots.widths.mixtures import AnalyticMixture, AnyRidge, DualMixture, Intersection, NoiseFree
from nilregret.slots.widths.self_normalized import (
    BoundedNoise,
    ConstantGain,
    GreedyGain,
    KernelUcb,
    PeriodRkhs,
    RateGain,
    RealisedGain,
    SelfNormalized,
)
from nilregret.theory.penalties import ExponentialPenalty, PowerPenalty

ARMS = nr.Arms.grid(0, 1, 11)
KERNEL = nr.Matern(2.5, 0.3)
POLICY = nr.gp_ucb(ARMS, KERNEL, noise=0.1)
MASKED = np.ma.masked_array([0.1, 0.2], [False, True])

NO_COORDINATES = [
    ("1", "text"),
    (["0.1", "0.2"], "text"),
    (b"1", "bytes"),
    (bytearray(b"1"), "bytes"),
    (True, "True or False"),
    ([0.1, True], "True or False"),
    ([0.1, np.False_], "True or False"),
    (np.array([True]), "True or False"),
    (1j, "complex"),
    ([0.1, 1j], "complex"),
    (np.array([0.1 + 1j]), "complex"),
    (np.datetime64("2026-01-01"), "dates"),
    ([datetime.date(2026, 1, 1)], "date"),
    (np.timedelta64(3, "s"), "time differences"),
    (MASKED, "masked"),
    ([MASKED, MASKED], "masked"),
    ([0.1, np.ma.masked], "masked"),
    ([0.1, None], "NoneType"),
    ({"x": 0.1}, "dict"),
    ({0.1}, "set"),
    (np.array([0.1, "b"], dtype=object), "str"),
    ([0.1, 10**400], "too large"),
    ([[0.1], [0.1, 0.2]], "inhomogeneous"),
    ([math.nan], "not finite at index 0"),
]


@pytest.mark.parametrize(
    ("parameter", "value", "end"),
    [
        (nr.Float(0, 0.3), 0.1 + 0.2, 0.3),
        (nr.Float(-3.07596, 0.32121), 0.3212100000000002, 0.32121),
        (nr.Float(0.1, 0.3), 0.3 - 0.2, 0.1),
        (nr.Float(0.1, 0.3, log=True), 0.1 + 0.2, 0.3),
        (nr.Float(0.1, 0.3, log=True), 0.3 - 0.2, 0.1),
    ],
)
def test_a_value_beyond_an_end_by_rounding_is_the_end(parameter, value, end):
    study = nr.Study(nr.auto(nr.Space(x=parameter)))
    assert study.add({"x": value}, 1.0).parameters == {"x": end}
    assert nr.Space(x=parameter).encode({"x": value})[0] in (0.0, 1.0)


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        (nr.Float(0, 0.3), 0.3 + 1e-8, r"Parameter `x` is 0.30000001: it must lie in \[0, 0.3\]"),
        (nr.Float(0.1, 0.3, log=True), -0.2, r"Parameter `x` is -0.2: it must lie in \[0.1, 0.3\]"),
        (nr.Int(0, 1234567), 1234568, r"Parameter `x` is 1234568: it must lie in \[0, 1234567\]"),
    ],
)
def test_errors_show_numbers_that_differ_as_different(parameter, value, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        nr.Space(x=parameter).encode({"x": value})


@pytest.mark.parametrize(("value", "what"), NO_COORDINATES)
def test_what_is_no_coordinate_is_refused_everywhere(value, what):
    box = nr.Box(0, 2)
    study = nr.Study(nr.gp_ucb(box, KERNEL, noise=0.1))
    seen = nr.Study(nr.algorithms.greedy_mean(ARMS, KERNEL, noise=0.1, context=box))
    for use in (
        lambda: nr.Arms(value),
        lambda: nr.Box(value, 5.0),
        lambda: study.add(value, 1.0),
        lambda: study.predict(value),
        lambda: seen.ask(value),
        lambda: study.tell(study.ask(), 1.0, constraints=value),
        lambda: KERNEL(value, [0.5]),
        lambda: nr.gp.log_marginal_likelihood(KERNEL, [0.1, 0.2], value, 0.1),
    ):
        with pytest.raises(nr.errors.InvalidInput, match=what):
            use()


def nested(depth):
    value = [0.5]
    for _ in range(depth):
        value = [value, value]
    return value


def test_deep_lists_are_refused_at_once():
    with pytest.raises(nr.errors.InvalidInput, match="nested too deeply"):
        nr.Arms(nested(50))


@pytest.mark.parametrize(
    "value",
    [
        [1, 0],
        (1.0, 0.0),
        np.array([1, 0], dtype=np.int8),
        np.array([1, 0], dtype=np.float32),
        np.array([Fraction(1), 0.0], dtype=object),
        [Fraction(1), np.float32(0.0)],
        [np.array(1.0), np.array(0)],
        range(1, -1, -1),
        np.ma.masked_array([1.0, 0.0], [False, False]),
    ],
)
def test_any_real_numbers_are_coordinates(value):
    result = checks.finite_array("points", value)
    assert result.dtype == np.float64
    assert result.tolist() == [1.0, 0.0]
    result[0] = 7.0  # a copy


class Tensor:
    """As libraries for learning have them: an array only by conversion."""

    def __init__(self, values):
        self._values = np.array(values)

    @property
    def shape(self):
        return self._values.shape

    def item(self):
        return self._values.item()

    def __array__(self, dtype=None, copy=None):
        return self._values.astype(dtype) if dtype else self._values


def test_tensors_are_rewards_points_and_parameters():
    study = nr.Study(POLICY)
    assert study.tell(study.ask(), Tensor(0.5)).reward == 0.5
    assert study.tell(study.ask(), Tensor(True)).reward == 1.0
    assert study.tell(study.ask(), Tensor([0.5])).reward == 0.5
    assert study.add(Tensor(0.3), 1.0).arm == 3
    assert study.add(Tensor([0.3]), 1.0).arm == 3
    assert nr.gp_ucb(ARMS, KERNEL, noise=Tensor(0.1)).noise == 0.1
    with pytest.raises(nr.errors.InvalidInput, match="`reward` must be a number"):
        study.add(0.3, Tensor([0.5, 0.5]))


def test_clicks_are_rewards(tmp_path):
    study = nr.Study(POLICY, storage=f"sqlite:///{tmp_path / 'clicks.db'}")
    told = [study.tell(study.ask(), click).reward for click in (True, False, np.True_, np.array(False))]
    assert told == [1.0, 0.0, 1.0, 0.0]
    assert all(type(reward) is float for reward in told)
    with pytest.raises(nr.errors.InvalidInput, match="`noise` must be a number, not True"):
        nr.gp_ucb(ARMS, KERNEL, noise=True)


# -- descriptions ----------------------------------------------------------------------------------------------------

W, F, B = np.int64, np.float64, np.bool_
S = np.str_
EARLIER = EarlierStudy(name=S("a"), points=[[W(0)], [F(1)]], targets=[W(1), F(2)], kernel=KERNEL, regularization=F(0.1))
DESCRIBED = [
    nr.Float(F(1), W(2), log=B(True)),
    nr.Int(W(1), np.int32(9), log=B(False), step=np.uint8(2)),
    nr.Choice(S("a"), W(3), F(0.5), B(True), None),
    nr.Space(x=nr.Float(W(0), F(1)), k=nr.Choice(S("a"), S("b"))),
    nr.when(S("k"), [S("a"), F(2), B(True)], nr.Float(W(0), F(1))),
    nr.Space(k=nr.Choice(S("a"), S("b")), x=nr.when(S("k"), S("a"), nr.Float(W(0), F(1)))),
    nr.Box(F(0), W(1)),
    nr.Box(np.array([0, 0], dtype=np.int16), [W(1), F(2)]),
    nr.Arms.grid(F(0), W(1), W(5)),
    nr.Space(n=nr.Int(W(0), W(9))).grid(W(4)),
    nr.Space(n=nr.Int(W(0), W(9))).grid({S("n"): W(4)}),
    nr.Matern(F(2.5), F(0.2), scale=W(1)),
    nr.Matern(F(2.5), [W(1), F(2)], scale=W(1)),
    nr.SquaredExponential(np.array([1, 2]), scale=np.float32(0.5)),
    nr.kernels.RationalQuadratic(W(1), [W(1), F(2)], scale=F(2)),
    nr.kernels.Periodic(W(24), F(1), scale=W(2)),
    Multiplied(nr.Linear(), F(2)),
    Stretched(nr.Linear(), [F(2), W(1)]),
    nr.Matern(F(2.5)) * W(2),
    nr.kernels.Overlap(np.array([0, 0, 1]), scale=W(2)),
    nr.kernels.Intercept(scale=W(2)),
    nr.kernels.RandomFeatures(nr.Matern(2.5), W(5), W(1)),
    nr.kernels.Mixture(nr.Linear(), nr.Matern(F(1.5)), F(0.25), scale=W(2)),
    nr.kernels.Rounded(nr.Matern(), nr.Space(n=nr.Int(W(0), W(9)))),
    nr.kernels.Tied(nr.Matern(F(2.5)), np.array([0, 1, 1], dtype=np.int16)),
    nr.Linear(scale=W(2)),
    nr.kernels.Empirical(np.eye(2, dtype=np.int64)),
    nr.kernels.Sum(nr.Linear(), nr.Matern(F(1.5))),
    nr.kernels.Product(nr.Linear(), nr.Matern(F(1.5))),
    nr.kernels.Active(nr.Matern(), np.array([0, 1])),
    nr.gp.Standardization(F(0), W(1)),
    nr.theory.PowerLaw(W(2), F(-0.5)),
    Forever(),
    nr.slots.RestartAt(np.array([3, 9])),
    nr.slots.RestartEvery(W(5)),
    nr.slots.RestartDoubling(W(5), ridge=B(True)),
    nr.slots.RestartOnChange(threshold=F(2), ridge=W(1), distance=S("average")),
    nr.slots.SlidingWindow(W(5)),
    nr.slots.EDetector(delta=F(0.05), clip=W(4), weight=W(10), misfit=F(0.05)),
    nr.slots.Discount(F(0.1)),
    nr.slots.DriftBank(np.array([0.0, 0.1])),
    nr.slots.Tide(),
    nr.slots.AllOf([nr.slots.SlidingWindow(W(5)), nr.slots.Discount(F(0.1))]),
    NoExploration(),
    UniformExploration(W(1)),
    nr.slots.Uniform(F(0.1)),
    nr.slots.Shares({np.int64(0): F(0.1)}),
    nr.NoWorse(np.int64(0), by=F(0.1), span=(F(0.0), F(2.0)), norm_bound=F(0.5)),
    UncertaintySampling(W(3)),
    nr.slots.InitialDesign(W(3)),
    TimedDesign(design=nr.slots.InitialDesign(W(3)), seconds=F(60), parallel=W(2), share=F(0.5)),
    NamedOption("math:sqrt"),
    nr.slots.CoordinateSearch(every=W(3), after=W(4), steps=W(5)),
    nr.slots.Elsewhere(after=W(20), hope=F(0.01), stall=W(5), otherwise=nr.slots.CoordinateSearch(every=W(3))),
    nr.slots.AskAgain(budget=W(9), rounds=W(2), noise=F(0.2)),
    nr.slots.InTurn((nr.slots.InitialDesign(W(3)), UniformExploration(W(1)))),
    nr.slots.Ignored(failed=S("worst")),
    nr.slots.Hallucinated(),
    nr.slots.NearestMeans(neighbours=W(2)),
    nr.slots.Imputed(minimum=W(0), answer=W(1), delay=delays.FixedDelay(W(2))),
    nr.slots.Exposed(wait=W(5), minimum=W(0)),
    delays.FixedDelay(W(2)),
    delays.GeometricDelay(W(2)),
    delays.PoissonDelay(W(2)),
    delays.HeavyTailedDelay(scale=W(2), tail=W(1)),
    nr.slots.LateOrNever(minimum=F(0), failed=S("worst")),
    nr.slots.Censored(minimum=W(0), window=W(5), in_time=B(False), late=S("drop")),
    nr.slots.Censored.within(W(5), minimum=F(0)),
    RewardAlone(),
    nr.slots.Bernoulli(ceiling=F(0.1), losses=B(False)),
    nr.slots.Poisson(ceiling=W(2), losses=B(True)),
    nr.slots.Bounded(low=W(0), high=F(2), losses=B(False)),
    LikelihoodRatio(norm_bound=W(1), delta=F(0.1), guessed=B(False)),
    MultiplicativePenalty(epoch=W(5), epochs=W(3), constraints=W(2), fresh=B(True), c=W(1), n=W(2)),
    AdditivePenalty(epoch=W(5), epochs=W(3), constraints=W(2), fresh=B(False), step=W(1)),
    FiniteBayes(size=W(5), delta=F(0.1), scale=W(1), noise_matched=B(True)),
    CompactBayes(dimension=W(2), side=W(1), log_a=W(1), b=F(1), scale=F(1), noise_matched=B(True)),
    PointwiseBayes(delta=F(0.1)),
    ConstantWidth(value=W(1), delta=F(0.1)),
    RateQuantiles(deviations=W(2)),
    DriftBayes(horizon=W(9), alpha=W(2), dimension=W(1), constant=F(1), log_power=W(3)),
    SelfNormalized(norm_bound=W(1), noise=F(0.1), parts=W(2), ridge_large=B(True), guessed=B(False)),
    BoundedNoise(norm_bound=W(1), gain=ConstantGain(value=W(1)), scale=W(1), noise_matched=B(False)),
    KernelUcb(eta=W(1), regularization=W(1), delta=F(0.1)),
    AnyRidge(norm_bound=W(1), noise=F(0.1), regularization=W(1), parts=W(2), guessed=B(False)),
    AnalyticMixture(norm_bound=W(1), noise=F(0.1), regularization=W(1), parts=W(2), delta=F(0.1), guessed=B(False)),
    DualMixture(norm_bound=W(1), noise=F(0.1), regularization=W(1), delta=F(0.1), guessed=B(False)),
    NoiseFree(norm_bound=W(1), delta=F(0.1), guessed=B(False)),
    Intersection(parts=(ConstantWidth(value=W(1)), PointwiseBayes(delta=F(0.1)))),
    CensoredWidth(window=W(3), in_time=B(False), reward_bound=W(1), norm_bound=F(1), noise=F(1), beta=W(1), parts=W(2)),
    CensoredBounds(window=W(3), in_time=B(False), reward_bound=W(1), norm_bound=F(1), ridge=F(1)),
    Inflated(base=ConstantWidth(value=W(1)), least=W(1)),
    ScheduledWidth(schedule=nr.theory.PowerLaw(W(1), W(0)), delta=F(0.1)),
    PeriodRkhs(horizon=W(9), norm_bound=W(1), gain=ConstantGain(value=W(1)), constant=W(1), ridge_matched=B(False)),
    nr.slots.PowerSeries(W(2)),
    nr.slots.EvenSeries(W(9)),
    ExponentialPenalty(W(1)),
    PowerPenalty(W(1), W(2)),
    RealisedGain(),
    GreedyGain(),
    RateGain(kernel=KERNEL, dimension=W(2), constant=W(1)),
    ConstantGain(value=W(2)),
    UpperConfidenceBound(),
    PosteriorMean(),
    PosteriorDeviation(),
    ExpectedImprovement(incumbent=S("mean"), margin=W(0)),
    ProbabilityOfImprovement(incumbent=S("reward"), margin=F(0)),
    RandomisedBound(shift=W(3), growth=F(0)),
    nr.slots.ScalarisedBound(sizes=np.array([1.0, 2.0])),
    nr.slots.ScalarisedSample(sizes=(F(1), W(2)), width=F(1)),
    ThompsonSample(grid=W(3), growth=W(0), per_norm=B(False), width=W(1)),
    nr.slots.GaussianDraws(width=F(0.3)),
    nr.slots.PerCost(S("euros"), ExpectedImprovement(margin=F(0.1))),
    nr.slots.Pareto(
        objectives=W(2), names=(S("a"), S("b")), goals=(S("minimize"), S("maximize")), reference=(F(1), W(2))
    ),
    nr.EveryRound(count=W(2), noise=(F(0.1), W(0)), prior_mean=W(1), regularization=F(0.1), confidence=W(2)),
    nr.OnAverage(kernel=KERNEL, step=F(0.1), most=W(9)),
    nr.slots.Pareto(objectives=W(2), names=[S("loss"), S("size")], limits=W(1), reference=np.array([1.0, 2.0])),
    nr.slots.HypervolumeImprovement(),
    nr.slots.ScalarisedImprovement(directions=W(4)),
    nr.Safe(start=np.array([[0.5]], dtype=np.float32), delta=F(0.1), certificate=S("bounds")),
    nr.Safe(start=np.array([[0.5]]), slope=F(2.0), noise=F(0.5), independent=np.bool_(True), caution=F(1.5)),
    nr.slots.PointSearch(candidates=W(64), around=W(4), starts=W(1), evaluations=W(5)),
    nr.slots.Lazy(factor=F(1.2)),
    nr.slots.Median(finished=4, warmup=F(0.25)),
    nr.slots.Halving(factor=F(4), first=F(0.5), pause=True, steps=50),
    nr.slots.Predicted(level=F(0.1), finished=20, learned="predicted"),
    nr.Fidelity("rows", 10, 1_000, cost=F(1.5), levels=5),
    nr.slots.Cascade(),
    nr.slots.Positions((F(1), 0.5)),
    nr.slots.Confirm(20, rounds=2),
    nr.slots.Never(steps=50, explore=F(0.1), of="best", learned="nothing"),
    nr.slots.LengthscaleBank(factors=(F(0.5), W(2)), weight=F(3.0), around=nr.slots.Refit(every=4)),
    EARLIER,
    nr.slots.EarlierStudies(studies=[EARLIER], around=nr.slots.Refit(every=4)),
    nr.slots.GivenPoints(np.array([[0.5]], dtype=np.float32)),
    RegretBalancing(factors=(F(0.5), F(0.2)), norm_bound=W(1), noise=F(0.1), growth=F(0.2), delta=F(0.2)),
    nr.slots.Refit(every=W(5), prior=S("none"), restarts=W(1), outputs=S("own"), standardize=B(True)),
    nr.slots.ArmModels(
        lengths=np.array([1.0, 0.3]), precision=F(0.3), drift=W(0), changing=B(False), related=B(True), behind=W(10)
    ),
    nr.algorithms.admmbo(
        nr.Box(0, 1), constraints=W(1), rho=F(1), price=W(5), first=(W(3), W(4)), more=[W(1), W(1)], start=W(2)
    ),
    nr.algorithms.bandit_oco(
        nr.Box(0, 1), step=F(0.1), spread=F(0.1), damping=W(0), constraints=W(1), start=np.array([0.5])
    ),
    nr.gp_ucb(
        ARMS, KERNEL, noise=F(0.1), regularization=F(0.1) ** 2, delta=F(0.1), memory=nr.slots.SlidingWindow(W(4))
    ),
    nr.slots.Sketch(accuracy=F(0.2), oversampling=W(3), growth=F(2), most=W(50)),
    nr.gp_ucb_noisy_constraints(ARMS, KERNEL, noise=F(1), norm_bound=W(1), epoch=W(5), epochs=W(3), constraints=W(1)),
    nr.gp_ucb_cpd(ARMS, KERNEL, noise=F(0.1), horizon=W(50), alpha=F(2), detector=S("test"), threshold=W(3)),
    nr.gp_ucb_sdf(ARMS, KERNEL, noise=F(0.1), window=W(3), minimum=W(0), beta=F(1), horizon=W(9)),
    nr.igp_ucb(ARMS, KERNEL, noise=F(0.1), guess_norm=B(True), horizon=W(9)),
    Warp(np.array([F(0), F(1)]), np.array([F(0.5), F(1)])),
    SignedLog(W(2)),
]


@pytest.mark.parametrize("description", DESCRIBED, ids=lambda value: type(value).__name__)
def test_numpy_numbers_become_plain_ones(description):
    text = serialize.dumps(description)
    again = serialize.loads(text)
    assert again == description
    assert serialize.dumps(again) == text
    assert json.loads(text)["type"] == type(description).__name__


def test_every_description_is_among_them():
    made = {type(description) for description in DESCRIBED}
    theirs = {cls for cls in serialize._ENCODERS if cls.__module__.startswith("nilregret.")}
    assert theirs - made == {NestedOption}  # It is read as the option that it describes.
    assert {Policy, Admmbo, BanditOco} <= made


# -- flags, limits and echoes ----------------------------------------------------------------------------------------

REFUSED = [
    (lambda: nr.Float(1, 2, log="no"), "`log` must be True or False"),
    (lambda: nr.Int(1, 2, log=1), "`log` must be True or False"),
    (lambda: nr.slots.Censored(minimum=0, window=1, in_time="no"), "`in_time` must be True or False"),
    (lambda: nr.slots.Refit(standardize=0), "`standardize` must be True or False"),
    (lambda: nr.gp.fit(KERNEL, [0, 1, 2], [0, 1, 2], fit_noise="no"), "`fit_noise` must be True or False"),
    (lambda: nr.gp.fit(KERNEL, [0, 1, 2], [0, 1, 2], fit_mean="no"), "`fit_mean` must be True or False"),
    (
        lambda: nr.theory.gp_ucb_regret_bound(5, width=1, information_gain=1, noise=1, compact="no"),
        "`compact` must be True or False",
    ),
    (lambda: nr.igp_ucb(ARMS, KERNEL, noise=0.1, guess_norm="no"), "`guess_norm` must be True or False"),
    (lambda: AdditivePenalty(epoch=1, epochs=1, fresh="no"), "`fresh` must be True or False"),
    (lambda: FiniteBayes(size=3, noise_matched="no"), "`noise_matched` must be True or False"),
    (lambda: nr.environments.sensor_network(np.eye(3), np.eye(3), lowest="no"), "`lowest` must be True or False"),
    (lambda: nr.gp_ucb_cpd(ARMS, KERNEL, noise=1, horizon=9, detector="never", threshold="x"), "`threshold` must be"),
    (lambda: nr.gp_ucb_cpd(ARMS, KERNEL, noise=1, horizon=9, detector="never", ridge=-1), "`ridge` is -1"),
    (lambda: nr.gp_ucb_cpd(ARMS, KERNEL, noise=1, horizon=9, threshold=lambda n: n), "a number or a `PowerLaw`"),
    (lambda: nr.Arms.grid(0, 1, 10**7), "`count` is 10000000: it must be at most 1000000"),
    (lambda: nr.Box([0, 0], [1, 1]).grid(10**5), "10,000,000,000 arms, and the most is 1,000,000"),
    (lambda: nr.Space(a=nr.Float(0, 1), b=nr.Float(0, 1)).grid(10**5), "10,000,000,000 arms, and the most"),
    (lambda: nr.Box(0, 1).sample(10**9, seed=0), "at most 1000000"),
    (lambda: nr.Study(POLICY).ask(count=2**63), "`count` is 9223372036854775808: it must be at most 10000"),
    (lambda: nr.slots.PointSearch(candidates=2**40), "`candidates` is"),
    (lambda: nr.slots.Refit(restarts=10**9), "`restarts` is"),
    (lambda: even_changes(2**50, 2**49), "`periods` is"),
    (lambda: nr.theory.calibrate_threshold(KERNEL, domain=ARMS, noise=0.1, count=10**9), "`count` is"),
    (lambda: nr.theory.calibrate_threshold(KERNEL, domain=ARMS, noise=0.1, horizon=10**15), "`rounds` is"),
    (lambda: nr.theory.calibrate_threshold(KERNEL, domain="arms", noise=0.1, count=9), "`domain` must be Arms"),
    (lambda: nr.theory.calibrate_threshold("se", domain=ARMS, noise=0.1, count=9), "`kernel` must be a kernel"),
    (lambda: nr.theory.calibrate_threshold(KERNEL, domain=ARMS, noise=math.nan, count=9), "`noise` is nan"),
    (lambda: nr.theory.calibrate_threshold(KERNEL, domain=ARMS, noise=0.1, count=9, seed=-1), "`seed` is -1"),
    (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, scale=1e308), "`scale` is 1e"),
    (lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, delta=5e-324), "`delta` is 5e-324"),
    (lambda: nr.Matern(2.5, scale=1e308), "`scale` is 1e"),
    (lambda: nr.Box(-1e308, 1e308), "beyond 1e100"),
    (lambda: nr.Arms([-1e200, 1e308]), "beyond 1e100"),
    (lambda: nr.information_gain(KERNEL, ARMS, 0.1, count=10**15), "`count` is"),
    (lambda: nr.theory.Spectrum(np.eye(2), 0.1), "a number for each mode"),
    (lambda: nr.kernels.RationalQuadratic(5e-324), "`alpha` is 5e-324"),
    (
        lambda: nr.gp_ts(nr.Box(0, 1), KERNEL, noise=1, norm_bound=1, lipschitz=1.0, growth="x"),
        "`growth` must be a number",
    ),
    (lambda: nr.kernels.Sum(KERNEL, 1), "`right` must be a kernel"),
    (lambda: metrics.cumulative_regret([1.0, math.nan]), "not finite"),
    (lambda: metrics.average_regret(3.0), "a number for each round"),
    (lambda: metrics.average_regret([]), "a number for each round"),
    (lambda: metrics.simple_regret([1.0, 2.0], answered=[1, 0]), "True or False for each round"),
    (lambda: metrics.simple_regret([1.0, 2.0], answered=[True]), "they must be the same"),
    (lambda: metrics.simple_regret([1.0, 2.0], answered_by=[0.5, 1]), "whole numbers from 0"),
    (lambda: metrics.simple_regret([1.0, 2.0], answered_by=[-1, 1]), "whole numbers from 0"),
    (lambda: metrics.simple_regret([1.0], answered_by=[0], answered=[True]), "two ways"),
    (lambda: metrics.violation([1.0, 2.0]), r"must be \(..., T, m\)"),
    (lambda: metrics.strong_violation("no"), "not an array of numbers"),
    (lambda: metrics.recent_violation([[1.0]], rounds=0), "`rounds` is 0"),
    (lambda: metrics.detections(5, [3], 9), "must be a list. They are rounds"),
    (lambda: metrics.detections([1.5], [3], 9), "`restarts` must be a whole number"),
    (lambda: metrics.detections([1], [3], "9"), "`rounds` must be a whole number"),
    (lambda: metrics.regret_by_period([1.0, 2.0], "1"), "must be a list. They are rounds"),
    (lambda: nr.replicate(lambda: POLICY, lambda: POLICY, 3, seeds={1, 2}), "`seeds` is .1, 2.: it must be a list"),
    (lambda: nr.replicate(lambda: POLICY, lambda: POLICY, 3, seeds=[0.5]), "`seeds` must be a whole number"),
]


@pytest.mark.parametrize(("use", "message"), REFUSED)
def test_refused_in_words(use, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        use()


def test_a_million_arms_are_a_grid():
    space = nr.Space(n=nr.Int(0, 999), m=nr.Int(0, 999))
    arms = space.grid(1000)
    assert len(arms) == 1_000_000
    assert arms.parameters(123_456) == {"n": 123, "m": 456}


LONG = "x" * 5000


@pytest.mark.parametrize(
    "use",
    [
        lambda: nr.gp_ucb(LONG, KERNEL, noise=0.1),
        lambda: nr.gp_ucb(ARMS, LONG, noise=0.1),
        lambda: nr.gp_ucb(ARMS, KERNEL, noise=LONG),
        lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, width=LONG),
        lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, pending=LONG),
        lambda: nr.gp_ucb(ARMS, KERNEL, noise=0.1, memory=LONG),
        lambda: nr.Study(LONG),
        lambda: nr.Study(POLICY, name="\0" + LONG),
        lambda: nr.Study(POLICY).add([0.5] * 5000, 1.0),
        lambda: nr.Study(POLICY).add(LONG, 1.0),
        lambda: nr.Study(POLICY).add(0.5, LONG),
        lambda: nr.Study(POLICY).tell(LONG, 1.0),
        lambda: nr.Study(POLICY).ask(count=LONG),
        lambda: nr.Study(POLICY).ask(count=-(10**6000)),
        lambda: nr.Study(POLICY).ask(10**5000),
        lambda: nr.Choice(*["a"] * 5000),
        lambda: nr.Choice(object(), LONG.encode()),
        lambda: nr.Space(k=nr.Choice(*map(str, range(5000)))).encode({"k": LONG}),
        lambda: nr.Space(k=nr.Choice("a")).encode({LONG: 1}),
        lambda: nr.Space(k=LONG),
        lambda: nr.slots.RestartAt(LONG),
        lambda: nr.Environment(LONG, domain=ARMS),
        lambda: nr.simulate(POLICY, LONG, 3),
        lambda: nr.gp.fit(KERNEL, [0.0, 1.0], [0.0, 1.0], bounds={"noise": LONG}),
        lambda: nr.theory.ChangeDetector(KERNEL, domain=LONG),
        lambda: nr.Arms([LONG, LONG]),
    ],
)
def test_inputs_are_echoed_in_part(use):
    with pytest.raises((nr.errors.InvalidInput, nr.errors.TrialError)) as caught:
        use()
    assert len(str(caught.value)) < 500


def test_what_cannot_be_shown_is_named():
    class Silent:
        def __repr__(self):
            raise RuntimeError("no")

    assert checks.shown(Silent()) == "<Silent>"
    assert checks.shown("a" * 100) == "'" + "a" * 76 + "..."
    with pytest.raises(nr.errors.InvalidInput, match="<Silent>"):
        nr.Study(Silent())


@pytest.mark.parametrize(
    "policy",
    [
        nr.gp_ucb(ARMS, nr.Matern(2.5, 0.2, scale=1e100), noise=1e99),
        nr.gp_ucb(ARMS, KERNEL, noise=0.1, scale=1e100, delta=1e-200),
        nr.gp_ucb(nr.Box(0, 1), KERNEL, noise=0.1, a=1e308, b=1e100, r=1e100),
        nr.gp_ucb(nr.Space(**{f"n{i}": nr.Int(0, 2**53) for i in range(24)}), KERNEL, noise=0.1),
        nr.igp_ucb(ARMS, KERNEL, noise=1e100, norm_bound=1e100, delta=1e-200, horizon=10**400),
    ],
)
def test_extremes_that_are_taken_work(policy):
    study = nr.Study(policy)
    for reward in (1.0, 2.0):
        study.tell(study.ask(), reward)
    assert math.isfinite(study.width)


# -- parameters ------------------------------------------------------------------------------------------------------


def test_whole_numbers_in_steps():
    parameter = nr.Int(16, 256, step=16)
    assert parameter.count == 16
    assert parameter.values(100) == list(range(16, 257, 16))
    assert parameter.values(2) == [16, 256]
    for value in parameter.values(16):
        assert parameter.decode(np.array(parameter.encode(value))) == value
    assert [parameter.decode(np.array([u])) for u in (-1.0, 0.03, 0.04, 0.5, 2.0)] == [16, 16, 32, 144, 256]
    for wrong, message in ((24, "16 plus a multiple of 16"), (8, "must lie in"), (272, "must lie in")):
        with pytest.raises(nr.errors.InvalidInput, match=message):
            parameter.encode(wrong)
    with pytest.raises(nr.errors.InvalidInput, match="would end at 9"):
        nr.Int(1, 10, step=2)
    with pytest.raises(nr.errors.InvalidInput, match="not both"):
        nr.Int(1, 9, step=2, log=True)
    with pytest.raises(nr.errors.InvalidInput, match="`step` is 0"):
        nr.Int(1, 9, step=0)


def test_steps_are_searched_stored_and_drawn():
    space = nr.Space(n=nr.Int(-6, 6, step=3), x=nr.Float(0, 1))
    policy = nr.gp_ucb(space, nr.Matern(2.5, 0.5), noise=0.01)
    study = nr.Study(Policy.from_json(policy.to_json()), seed=3)
    for _ in range(15):
        trial = study.ask()
        assert trial.parameters["n"] in (-6, -3, 0, 3, 6)
        study.tell(trial, -((trial.parameters["n"] - 3) ** 2) / 10 - trial.parameters["x"])
    assert study.best().parameters["n"] == 3
    grid = nr.Space(n=nr.Int(0, 9, step=3)).grid(10)
    assert [grid.parameters(arm)["n"] for arm in range(len(grid))] == [0, 3, 6, 9]
    assert nr.gp_ucb(nr.Space(n=nr.Int(0, 9, step=3)), KERNEL, noise=0.1).confidence.size == 4
    np.testing.assert_allclose(space.snap(np.array([[0.3, 0.5]])), [[0.25, 0.5]])


def test_spaces_stored_before_there_were_steps_load():
    old = '{"type": "Space", "parameters": [["n", {"type": "Int", "low": 1, "high": 9, "log": false}]]}'
    assert serialize.loads(old) == nr.Space(n=nr.Int(1, 9))
    assert serialize.dumps(nr.Space(n=nr.Int(1, 9))) == old


def test_none_is_an_option(tmp_path):
    space = nr.Space(depth=nr.Choice(None, 3, 10))
    assert space.decode(space.encode({"depth": None})) == {"depth": None}
    url = f"sqlite:///{tmp_path / 'none.db'}"
    study = nr.Study(nr.gp_ucb(space, nr.Matern(2.5, 1.0), noise=0.1), storage=url)
    asked = {study.tell(study.ask(), 0.0).parameters["depth"] for _ in range(6)}
    assert asked == {None, 3, 10}
    again = nr.Study.open(storage=url)
    assert [trial.parameters for trial in again.trials] == [trial.parameters for trial in study.trials]
    assert again.ask() == nr.Study.open(storage=url).trials[-1]


def test_options_of_other_libraries_are_found():
    choice = nr.Choice("a", 1, 2.5, True)
    assert choice.encode(np.str_("a")) == choice.encode("a")
    assert choice.encode(np.int64(1)) == choice.encode(1) == choice.encode(1.0)
    assert choice.encode(np.bool_(True)) == choice.encode(True) != choice.encode(1)
    assert [type(option) for option in nr.Choice(np.str_("a"), np.int8(1)).options] == [str, int]


# -- tables ----------------------------------------------------------------------------------------------------------


def test_rows_of_tables_are_points_and_contexts():
    pandas = pytest.importorskip("pandas")
    space = nr.Space(n=nr.Int(0, 10), kind=nr.Choice("a", "b"), x=nr.Float(0, 1))
    table = pandas.DataFrame({"x": [0.25, 0.5], "kind": ["b", "a"], "n": [3, 4]})  # columns in another order
    study = nr.Study(nr.gp_ucb(space, nr.Matern(2.5, 1.0), noise=0.1))
    for row in (table.iloc[0], table.iloc[:1]):
        assert study.add(row, 1.0).parameters == {"n": 3, "kind": "b", "x": 0.25}
    mean, _ = study.predict(table)
    np.testing.assert_array_equal(mean, study.predict(table.to_dict("records"))[0])
    with pytest.raises(nr.errors.InvalidInput, match="one point at a time"):
        study.add(table, 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="unknown"):
        study.add(table.iloc[0].rename({"n": "m"}), 1.0)
    arms = space.grid({"n": 2, "x": 2})
    on_arms = nr.Study(nr.gp_ucb(arms, nr.Matern(2.5, 1.0), noise=0.1))
    corner = pandas.Series({"x": 1.0, "kind": "b", "n": 10})
    assert arms.parameters(on_arms.add(corner, 1.0).arm) == {"n": 10, "kind": "b", "x": 1.0}


def test_tables_of_coordinates_go_by_position():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"u": [0.25, 0.5], "v": [1, 2]})
    context = nr.Box([0, 0], [1, 3])
    study = nr.Study(nr.gp_ucb(ARMS, nr.Matern(2.5, 1.0), noise=0.1, context=context))
    for row in (table.iloc[1], table.iloc[1:]):
        trial = study.ask(row)
        np.testing.assert_array_equal(trial.context, [0.5, 2.0])
    with pytest.raises(nr.errors.InvalidInput, match="2 were given"):
        study.ask(table)
    box = nr.Study(nr.gp_ucb(context, nr.Matern(2.5, 1.0), noise=0.1))
    np.testing.assert_array_equal(box.add(table.iloc[0], table["u"].iloc[0]).point, [0.25, 1.0])
    assert box.predict(table)[0].shape == (2,)
    np.testing.assert_array_equal(nr.Arms(table["u"]).points, [[0.25], [0.5]])
    for wrong in (pandas.DataFrame({"u": [True], "v": [1.0]}), pandas.DataFrame({"u": ["0.5"], "v": ["1"]})):
        with pytest.raises(nr.errors.InvalidInput, match="not an array of numbers"):
            box.add(wrong, 1.0)


# -- one point at a time -----------------------------------------------------------------------------------------------


def test_two_numbers_are_two_points_of_one_dimension():
    study = nr.Study(POLICY)
    with pytest.raises(nr.errors.InvalidInput, match=r"one point at a time; 2 were given[.] The points of this domain"):
        study.add([0.1, 0.2], 1.0)
    plane = nr.Study(nr.gp_ucb(nr.Box([0, 0], [1, 1]), KERNEL, noise=0.1))
    with pytest.raises(nr.errors.InvalidInput, match="one point at a time; 2 were given"):
        plane.add([[0.1, 0.2], [0.3, 0.4]], 1.0)
    assert plane.add([0.1, 0.2], 1.0).point.tolist() == [0.1, 0.2]


@pytest.mark.parametrize("domain", [nr.Arms.grid(0, 1, 7), nr.Box([0, 0], [1, 1])])
def test_functions_of_single_points_are_called_for_each(domain):
    def one(x):
        return -float(np.sum((np.asarray(x) - 0.3) ** 2))

    def many(points):
        return -np.sum((points - 0.3) ** 2, axis=1)

    policy = nr.gp_ucb(domain, KERNEL, noise=0.1, search=nr.slots.PointSearch(candidates=32))
    runs = [nr.simulate(policy, nr.Environment(f, domain=domain, noise=0.1, best=0.0), 4) for f in (one, many)]
    for field in dataclasses.fields(runs[0]):
        np.testing.assert_array_equal(getattr(runs[0], field.name), getattr(runs[1], field.name))
    limited = nr.Environment(one, domain=domain, constraints=lambda x: float(np.sum(x)) - 1.0, best=0.0)
    assert limited.constraint_count == 1


def test_functions_of_single_points_and_contexts():
    env = nr.Environment(lambda x, c: np.sum(x * c), domain=ARMS, contexts=nr.Arms([1.0, -1.0]))
    run = nr.simulate(nr.gp_ucb(ARMS, KERNEL.on(1), noise=0.1, context=env.contexts), env, 5)
    assert np.isfinite(run.regret).all()
    assert (run.regret >= 0.0).all()


def test_paths_of_tiny_width_are_climbed():
    """Squares of their slopes vanish: the search scales them up, by a power of two."""
    space = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))
    policy = nr.gp_ts(space, KERNEL, noise=0.1, v=1e-300, search=nr.slots.PointSearch(candidates=8, around=2, starts=1))
    study = nr.Study(policy)
    for _ in range(3):
        study.tell(study.ask(), 0.0)
    assert len(study.trials) == 3


def test_delays_too_long_for_a_whole_number_never_end():
    delay = nr.environments.delays.HeavyTailedDelay(1e300, tail=1e-3)
    waits = [delay.draw(np.random.default_rng(seed), np.zeros(1), 0.0) for seed in range(9)]
    assert math.inf in waits


def test_rewards_all_but_equal_have_a_scale_of_one():
    assert nr.gp.Standardization.of([1e-250, 2e-250, 3e-250]).std == 1.0


def test_a_context_that_is_forgotten_is_named():
    known = nr.Space(hour=nr.Float(0, 24), device=nr.Choice("phone", "desk"))
    with pytest.raises(nr.errors.InvalidInput, match=r"for a context \(hour, device\)"):
        nr.Study(nr.auto(nr.Arms(range(3)), context=known)).ask()
