"""Widths that are drawn: their law, that they repeat, what is shown of them; and that they do not get stuck."""

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import expon, kstest

import nilregret as nr
from nilregret import testing
from nilregret._utils.randomness import Draws, Randomness
from nilregret.environments import gp_sample
from nilregret.slots.envelope import CompactBayes, ConstantWidth, FiniteBayes
from nilregret.slots.scores import ExpectedImprovement, RandomisedBound, UpperConfidenceBound

ARMS = nr.Arms.grid(0, 1, 40)
BOX = nr.Box([0.0, 0.0], [1.0, 2.0])
KERNEL = nr.Matern(2.5, 0.2)


def zetas(score, t=7, seed=3, count=4000):
    return np.array([score.drawn_width(t, Randomness(seed, number)) for number in range(count)]) ** 2


def test_zeta_is_a_shifted_exponential_of_mean_two():
    """Kolmogorov and Smirnov at a fixed seed: with other draws this would fail one time in a thousand."""
    drawn = zetas(RandomisedBound(shift=2 * math.log(338)))
    assert kstest(drawn - 2 * math.log(338), expon(scale=2.0).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 4 / math.sqrt(len(drawn))
    others = zetas(RandomisedBound(shift=2 * math.log(338)), seed=4)
    assert abs(np.corrcoef(drawn, others)[0, 1]) < 4 / math.sqrt(len(drawn))
    # On a box the shift grows with the logarithm of the round.
    assert zetas(RandomisedBound(shift=1.0, growth=8.0), t=50) == pytest.approx(
        zetas(RandomisedBound(shift=1.0), t=50) + 8.0 * math.log(50)
    )
    assert (zetas(RandomisedBound(shift=-2 * math.log(2))) >= 0).all()  # of a single arm


def test_the_uniform_number_of_a_trial_stands_apart_from_its_draws():
    one, same = Randomness(5, 8), Randomness(5, 8)
    same.draws.random()
    assert one.uniform == one.uniform == same.uniform != Randomness(5, 9).uniform
    assert one.used
    assert not Randomness(5, 8).used
    uniform = [Randomness(0, number).uniform for number in range(4000)]
    first = [Randomness(0, number).draws.random() for number in range(4000)]
    assert abs(np.corrcoef(uniform, first)[0, 1]) < 4 / math.sqrt(4000)
    assert Randomness(5, 8, Draws("other")).uniform == 1.0 - Draws("other").random()


def test_shifts_as_printed():
    """Takeno, Inatsu & Karasuyama 2023: 2 log(N / 2); 2 d log(b d r t^2 (sqrt(log a d) + sqrt(pi) / 2)) - 2 log 2."""
    drawn = nr.irgp_ucb(ARMS, KERNEL, noise=0.1)
    assert drawn.score.shift == pytest.approx(2 * math.log(40 / 2))
    assert drawn.score.growth == 0.0
    assert nr.irgp_ucb(ARMS, KERNEL, noise=0.1, shift="half").score.shift == pytest.approx(math.log(40 / 2))
    a, b, r, d = 3.0, 5.0, 1.5, 2
    boxed = nr.irgp_ucb(BOX, KERNEL, noise=0.1, a=a, b=b, r=r).score
    t = 9
    wanted = 2 * d * math.log(b * d * r * t**2 * (math.sqrt(math.log(a * d)) + math.sqrt(math.pi) / 2)) - 2 * math.log(
        2
    )
    assert boxed.shift + boxed.growth * math.log(t) == pytest.approx(wanted)
    smooth = nr.irgp_ucb(BOX, 4.0 * KERNEL, noise=0.1, shift="half", a=a, b=0.1, r=r).score
    assert smooth.shift == pytest.approx(math.log(100 / 2))
    half = nr.irgp_ucb(BOX, 4.0 * KERNEL, noise=0.1, shift="half", a=a, b=8.0, r=r).score
    assert half.shift == pytest.approx(d * math.log(8.0 * d * r / 2.0) - math.log(2))
    assert half.growth == 0.0
    # Contexts are known before a round, and do not count as arms.
    kernel = nr.Matern(2.5, [0.5, 0.2])
    of_contexts = nr.irgp_ucb(ARMS, kernel, noise=0.1, context=nr.Arms.grid(0, 1, 7))
    assert of_contexts.score.shift == pytest.approx(2 * math.log(20))
    assert nr.irgp_ucb(BOX, nr.Matern(2.5, 0.2).on(0, 1), noise=0.1, shift="half", r=3.0).score.shift > 0.0


def test_the_law_of_zeta_is_that_of_the_proof():
    """E max f <= E max (mu + zeta^{1/2} sigma), tight for strangers: exactly, for two arms that are alike."""
    largest = np.random.default_rng(0).standard_normal((200_000, 2)).max(axis=1)
    root = np.sqrt(zetas(RandomisedBound(shift=0.0), count=20_000))
    assert largest.mean() + 5 * largest.std() / math.sqrt(len(largest)) < root.mean()
    # u-quantiles: P(max > c(u)) <= u at every u.
    for u in (0.5, 0.1, 0.01):
        quantile = brentq(lambda c: 1 - (0.5 * (1 + math.erf(c / math.sqrt(2)))) ** 2 - u, -5, 10)  # noqa: B023
        assert quantile <= math.sqrt(2 * math.log(2 / 2) + 2 * math.log(1 / u))


@pytest.mark.parametrize("shift", ["theorem", "half"])
@pytest.mark.parametrize("domain", [ARMS, BOX], ids=["arms", "box"])
def test_bounds_remain_those_of_the_theorem(domain, shift):
    policy = nr.irgp_ucb(domain, KERNEL, noise=0.1, shift=shift, search=nr.slots.PointSearch(candidates=64))
    theorem = nr.gp_ucb(domain, KERNEL, noise=0.1)
    assert policy.confidence == theorem.confidence
    assert isinstance(policy.confidence, FiniteBayes if domain is ARMS else CompactBayes)
    assert policy.valid_for == theorem.valid_for == ("f" if domain is ARMS else "played")
    assert nr.Policy.from_json(policy.to_json()) == policy
    study = nr.Study(policy, seed=2)
    for _ in range(4):
        trial = study.ask()
        study.tell(trial, float(trial.point[0]))
    assert study.width == theorem.confidence.width(5, None)
    testing.check_policy(policy, rounds=12)


def test_what_is_played_is_the_highest_drawn_bound():
    study = nr.Study(nr.irgp_ucb(ARMS, KERNEL, noise=0.1, shift="half"), seed=4)
    for _ in range(20):
        mean, std = study.predict()
        trial = study.ask()
        drawn = study.policy.score.drawn_width(trial.number + 1, Randomness(4, trial.number))
        score = mean + drawn * std
        assert score[trial.arm] == pytest.approx(score.max())
        study.tell(trial, math.sin(9 * trial.point[0]))
    why = study.explain(19)
    assert why.repeated
    assert why.rule == "RandomisedBound"
    assert why.drawn == drawn != why.width == study.policy.confidence.width(20, None)
    assert why.score == pytest.approx(why.mean + why.drawn * why.chosen.std)
    assert f"mean + {drawn:.4g} std, a width drawn for this round" in str(why)
    assert json.loads(json.dumps(why.to_dict()))["drawn"] == drawn
    theorem = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.1))
    theorem.ask()
    assert theorem.explain(0).drawn is None


def test_a_propensity_is_that_of_the_draw():
    """Two arms, of which the better known one is the better: which is played hangs on zeta alone."""
    arms = nr.Arms([[0.0], [1.0]])
    study = nr.Study(nr.irgp_ucb(arms, nr.SquaredExponential(0.05), noise=1.0), seed=1)
    for _ in range(9):
        study.add([0.0], 1.0)
    study.add([1.0], 0.5)
    (better, worse), (s0, s1) = study.predict()
    least = ((better - worse) / (s1 - s0)) ** 2  # zeta above which the other is played
    wanted = math.exp(-least / 2.0)
    assert 0.05 < wanted < 0.95
    trial = study.ask()
    assert study.explain(trial.number).propensity.value == pytest.approx(wanted if trial.arm else 1.0 - wanted)


@pytest.mark.parametrize("told", [{}, {"scale": 0.2}, {"series": 1.5}, {"width": "finite"}])
def test_gp_ucb_plays_its_theorem(told):
    """Theorem 1 of Srinivas et al. 2010, which version 0.2 played only where it was named."""
    policy = nr.gp_ucb(ARMS, KERNEL, noise=0.1, **told)
    assert policy.score == UpperConfidenceBound()
    assert isinstance(policy.confidence, FiniteBayes)
    study = nr.Study(policy, seed=3)
    for _ in range(6):
        mean, std = study.predict()
        score = mean + study.width * std
        trial = study.ask()
        assert score[trial.arm] == pytest.approx(score.max())
        study.tell(trial, float(trial.point[0]))


def test_gp_ucb_plays_theorem_2_where_arms_or_contexts_are_not_finitely_many():
    boxed = nr.gp_ucb(BOX, KERNEL, noise=0.1)
    contexts = nr.gp_ucb(ARMS, nr.Matern(2.5, [0.5, 0.2]), noise=0.1, context=nr.Box(0, 1))
    for policy in (boxed, contexts):
        assert policy.score == UpperConfidenceBound()
        assert isinstance(policy.confidence, CompactBayes)


def test_what_is_no_shift_is_refused():
    with pytest.raises(nr.errors.InvalidInput, match="`shift`"):
        RandomisedBound(shift=math.inf)
    with pytest.raises(nr.errors.InvalidInput, match="`growth`"):
        RandomisedBound(shift=1.0, growth=-1.0)


def test_bounds_that_are_given_are_what_is_played_by():
    policy = nr.irgp_ucb(ARMS, KERNEL, noise=0.1)
    given = policy.using(confidence=ConstantWidth(value=2.0))
    assert given.score == UpperConfidenceBound()
    plain = nr.gp_ucb(ARMS, KERNEL, noise=0.1, width=ConstantWidth(value=2.0))
    assert given == dataclasses.replace(plain, algorithm="irgp_ucb")
    both = policy.using(confidence=ConstantWidth(value=2.0), score=policy.score)
    assert both.score == policy.score == policy.using(memory=nr.slots.SlidingWindow(9)).score


LINE, ROUGH = nr.Arms.grid(0, 1, 30), nr.SquaredExponential(0.02)


def stuck(make, runs=40, rounds=150, *, arms=LINE, kernel=ROUGH, scale=0.3):
    """Runs at whose end the recommended arm is more than 0.1 from the best."""
    count = 0
    for seed in range(runs):
        values = gp_sample(kernel, arms, seed=seed)(arms.points)
        study, noise = nr.Study(make(arms, kernel), seed=seed), np.random.default_rng([seed, 1])
        for _ in range(rounds):
            trial = study.ask()
            study.tell(trial, values[trial.arm] + scale * noise.standard_normal())
        count += values.max() - values[study.predict()[0].argmax()] > 0.1
    return count


def test_half_the_shift_does_not_get_stuck_where_two_deviations_do():
    """Of 400 other functions half the shift was stuck in 3 and two deviations in 38.

    At these rates this would fail for other functions with probability 0.03.
    """
    drawn = stuck(lambda arms, kernel: nr.irgp_ucb(arms, kernel, noise=0.3, shift="half"))
    two = stuck(lambda arms, kernel: nr.gp_ucb(arms, kernel, noise=0.3, width=ConstantWidth(value=2.0)))
    assert drawn <= 2
    assert two >= 1


def test_auto_draws_on_arms_alone():
    assert nr.auto(ARMS).score == nr.auto(ARMS, parallel=3, world="drifting").score
    assert (
        nr.auto(ARMS).score
        == nr.irgp_ucb(ARMS, KERNEL, noise=0.1, shift="half").score
        == RandomisedBound(shift=math.log(20))
    )
    assert nr.auto(nr.Arms([[0.0]])).score == RandomisedBound(shift=-math.log(2))
    assert nr.auto(ARMS, constraints=1).score == ExpectedImprovement()
    assert nr.auto(ARMS, context=BOX, regret="simple").score == UpperConfidenceBound()
    assert nr.auto(BOX).score == nr.auto(nr.Space(n=nr.Int(1, 40))).score == ExpectedImprovement(incumbent="pending")


def hill(point):
    return -float((point[0] - 0.3) ** 2)


def test_a_study_of_auto_on_arms_goes_on_with_the_score_it_began_with(tmp_path):
    storage = f"sqlite:///{tmp_path / 'old.db'}"
    earlier = nr.auto(ARMS).using(score=ExpectedImprovement())
    assert earlier.algorithm == "auto"
    nr.maximize(hill, ARMS, trials=14, policy=earlier, storage=storage, name="a")
    result = nr.maximize(hill, ARMS, trials=18, storage=storage, name="a")
    assert result.study.policy.score == ExpectedImprovement()
    assert result.study.explain(16).rule == "ExpectedImprovement"
    alone = nr.maximize(hill, ARMS, trials=18, policy=earlier)
    assert [trial.arm for trial in result.study.trials] == [trial.arm for trial in alone.study.trials]


@pytest.mark.nightly
def test_auto_does_not_get_stuck_where_expected_improvement_does():
    """Of 40 other functions auto was stuck in 3 and expected improvement in 14, both with fewer fits than usual.

    At these rates this would fail for other functions with probability 0.015.
    """
    axis, kernel = np.linspace(0, 1, 14), nr.SquaredExponential(0.12)
    arms = nr.Arms(np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2))
    auto = nr.auto(arms)
    auto = auto.using(refit=dataclasses.replace(auto.refit, every=20, growth=0.5, restarts=0))
    improvement = auto.using(score=ExpectedImprovement())
    assert stuck(lambda *_: auto, 12, arms=arms, kernel=kernel, scale=0.1) <= 3
    assert stuck(lambda *_: improvement, 12, arms=arms, kernel=kernel, scale=0.1) >= 1
