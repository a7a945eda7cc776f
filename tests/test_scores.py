"""Scores: values against quadrature, derivatives against finite differences, and what the rules then play."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import nilregret as nr
from nilregret._utils.randomness import Randomness
from nilregret.policy.availability import available
from nilregret.policy.decide import pose
from nilregret.slots.envelope import Envelope
from nilregret.slots.scores import (
    ExpectedImprovement,
    PointwiseScore,
    PosteriorDeviation,
    PosteriorMean,
    ProbabilityOfImprovement,
    UpperConfidenceBound,
)

SCORES = [
    UpperConfidenceBound(),
    PosteriorMean(),
    PosteriorDeviation(),
    ExpectedImprovement(margin=0.1),
    ProbabilityOfImprovement(margin=0.1),
]


def envelope(mean, std, width=1.5):
    return Envelope(np.atleast_1d(np.asarray(mean, float)), np.atleast_1d(np.asarray(std, float)), width, "none")


@pytest.mark.parametrize(("mean", "std"), [(0.3, 0.5), (-1.0, 0.4), (2.0, 1.0), (0.0, 3.0)])
def test_expected_improvement_is_the_integral(mean, std):
    f_best, margin = 0.7, 0.05
    wanted = quad(lambda f: (f - f_best - margin) * norm.pdf(f, mean, std), f_best + margin, mean + 40 * std)[0]
    log_ei = ExpectedImprovement(margin=margin)(envelope(mean, std), f_best)[0]
    assert math.exp(log_ei) == pytest.approx(wanted, rel=1e-7)


def test_log_expected_improvement_far_from_the_incumbent():
    """Where EI underflows: log h(z) = -z^2/2 - log sqrt(2 pi) - 2 log|z| + log(1 - 3/z^2 + 15/z^4 - ...)."""
    for z in (-40.0, -300.0, -9.9e3, -1.01e4, -1e8):
        series = math.log1p(-3 / z**2 + 15 / z**4)
        wanted = -0.5 * z**2 - 0.5 * math.log(2 * math.pi) - 2 * math.log(-z) + series
        assert ExpectedImprovement()(envelope(z, 1.0), 0.0)[0] == pytest.approx(wanted, rel=1e-9)
    means = np.linspace(-5e4, 3, 400)
    values = ExpectedImprovement()(envelope(means, np.ones(400)), 0.0)
    assert np.isfinite(values).all()
    assert (np.diff(values) > 0).all()
    certain = ExpectedImprovement()(envelope([-1.0, 1.0], [0.0, 0.0]), 0.0)
    assert np.isfinite(certain).all()
    assert certain[1] == pytest.approx(0.0, abs=1e-12)  # log of an improvement of 1 for sure


@pytest.mark.parametrize("score", SCORES, ids=lambda score: type(score).__name__)
@pytest.mark.parametrize(("mean", "std"), [(0.3, 0.5), (-4.0, 0.4), (1.4, 0.7), (-30.0, 0.5), (0.8, 2.0)])
def test_partials_are_derivatives(score, mean, std):
    step = 1e-6
    by_mean, by_std = score.partials(envelope(mean, std), 0.7)
    up, down = score(envelope(mean + step, std), 0.7), score(envelope(mean - step, std), 0.7)
    assert by_mean[0] == pytest.approx((up - down)[0] / (2 * step), rel=1e-6, abs=1e-6)
    up, down = score(envelope(mean, std + step), 0.7), score(envelope(mean, std - step), 0.7)
    assert by_std[0] == pytest.approx((up - down)[0] / (2 * step), rel=1e-6, abs=1e-6)


def test_slopes_far_from_the_incumbent():
    """Phi / h = |z| + 2 / |z| - ... and phi / h = z^2 + 3 - ...: no difference of two huge logarithms may blur them."""
    for z in (-9.9e3, -1.01e4, -1e8, -1e12):
        by_mean, by_std = ExpectedImprovement().partials(envelope(z, 1.0), 0.0)
        assert by_mean[0] == pytest.approx(-z, rel=1e-6)
        assert by_std[0] == pytest.approx(z**2, rel=1e-6)
    for std in (0.0, 1.0, 1e100):
        for score in (ExpectedImprovement(), ProbabilityOfImprovement()):
            far = envelope([-1e100, 1e100], [std, std])
            assert np.isfinite(score(far, 0.0)).all()
            assert np.isfinite(score.partials(far, 0.0)).all()


def test_probability_of_improvement_ranks_as_the_probability():
    rng = np.random.default_rng(0)
    mean, std = rng.normal(size=50), rng.uniform(0.1, 2, 50)
    z = ProbabilityOfImprovement(margin=0.2)(envelope(mean, std), 0.5)
    np.testing.assert_allclose(norm.cdf(z), 1 - norm.cdf(0.7, mean, std), atol=1e-12)


def test_an_improvement_needs_something_to_improve_on():
    with pytest.raises(nr.errors.InvalidInput, match="nothing has been observed yet"):
        ExpectedImprovement(incumbent="reward")(envelope(0.0, 1.0))
    with pytest.raises(nr.errors.InvalidInput, match="`incumbent`"):
        nr.expected_improvement(nr.Arms.grid(0, 1, 5), nr.Matern(), noise=0.1, incumbent="best")
    with pytest.raises(nr.errors.InvalidInput, match="`margin`"):
        nr.algorithms.probability_of_improvement(nr.Arms.grid(0, 1, 5), nr.Matern(), noise=0.1, margin=-1.0)


def played(policy, rewards):
    study = nr.Study(policy, seed=0)
    for arm, reward in rewards:
        study.add(policy.domain.points[arm], reward)
    return study


ARMS = nr.Arms.grid(0, 1, 40)
HISTORY = [(3, 0.2), (20, 0.9), (35, -0.4), (20, 0.3), (28, 0.5)]


def test_the_rules_play_what_their_definition_says():
    kernel = nr.SquaredExponential(0.1)
    means, stds = played(nr.algorithms.greedy_mean(ARMS, kernel, noise=0.1), HISTORY).predict()
    cases = {
        nr.algorithms.greedy_mean(ARMS, kernel, noise=0.1): means,
        nr.algorithms.greedy_variance(ARMS, kernel, noise=0.1): stds,
        nr.expected_improvement(ARMS, kernel, noise=0.1): improvement(means, stds, means.max()),
        nr.expected_improvement(ARMS, kernel, noise=0.1, incumbent="reward"): improvement(means, stds, 0.9),
        nr.algorithms.probability_of_improvement(ARMS, kernel, noise=0.1): norm.cdf(
            (means - means.max() - 0.05) / stds
        ),
        nr.algorithms.probability_of_improvement(ARMS, kernel, noise=0.1, incumbent="reward", margin=0.0): norm.cdf(
            (means - 0.9) / stds
        ),
    }
    for policy, score in cases.items():
        assert score[played(policy, HISTORY).ask().arm] == pytest.approx(score.max(), rel=1e-9), policy.score


def improvement(mean, std, best):
    z = (mean - best) / std
    return std * (norm.pdf(z) + z * norm.cdf(z))


def test_probability_of_improvement_without_a_margin_is_the_mean_rule():
    """With the best posterior mean as incumbent z = (mu - max mu) / sigma <= 0 is 0 at the best mean alone."""
    kernel = nr.SquaredExponential(0.1)
    greedy = played(nr.algorithms.greedy_mean(ARMS, kernel, noise=0.1), HISTORY)
    pi = played(nr.algorithms.probability_of_improvement(ARMS, kernel, noise=0.1, margin=0.0), HISTORY)
    assert greedy.ask().arm == pi.ask().arm


@pytest.mark.parametrize(
    "make",
    [
        nr.expected_improvement,
        nr.algorithms.probability_of_improvement,
        nr.algorithms.greedy_mean,
        nr.algorithms.greedy_variance,
    ],
)
def test_the_rules_on_a_box_find_the_best_score(make):
    box, kernel = nr.Box([0, 0], [1, 2]), nr.Matern(2.5, [0.3, 0.5])
    study = nr.Study(make(box, kernel, noise=0.05, prior_mean=3.0), seed=0)
    rng = np.random.default_rng(1)
    for point in rng.uniform([0, 0], [1, 2], (15, 2)):
        study.add(point, 3.0 + np.sin(5 * point[0]) * np.cos(2 * point[1]))
    trial = study.ask()
    x, y = np.meshgrid(np.linspace(0, 1, 60), np.linspace(0, 2, 60))
    grid = np.column_stack([x.ravel(), y.ravel()])
    best_mean = max(study.predict([t.point])[0][0] for t in study.trials if t.reward is not None)
    score = study.policy.score

    def scores(points):
        mean, std = study.predict(points)
        return score(envelope(mean, std), best_mean)

    assert scores([trial.point])[0] >= scores(grid).max() - 1e-6


CONSTANT = {"finite": nr.Arms([[0.7]]), "continuous": nr.Box([0.0], [1.0])}


@pytest.mark.parametrize("context", CONSTANT)
@pytest.mark.parametrize("incumbent", ["mean", "reward"])
@pytest.mark.parametrize("make", [nr.expected_improvement, nr.algorithms.probability_of_improvement])
@pytest.mark.parametrize("domain", [nr.Arms.grid(0, 1, 40), nr.Box([0.0], [1.0])], ids=["arms", "box"])
def test_a_context_that_never_changes_changes_no_play(domain, make, incumbent, context):
    kernel, rules = nr.SquaredExponential(0.1), {"noise": 0.1, "incumbent": incumbent, "prior_mean": 0.3}
    alone = nr.Study(make(domain, kernel, **rules), seed=3)
    seen = nr.Study(make(domain, kernel.on(1), context=CONSTANT[context], **rules), seed=3)
    for t in range(15):
        noise = 0.1 * np.random.default_rng(t).normal()
        first, second = alone.ask(), seen.ask([0.7])
        np.testing.assert_allclose(first.point, second.point, atol=1e-7)
        for study, trial in ((alone, first), (seen, second)):
            study.tell(trial, float(np.sin(8.0 * first.point[0]) + noise))


def test_the_best_reward_is_that_of_the_same_context():
    kernel, arms, times = nr.SquaredExponential(0.1), nr.Arms.grid(0, 1, 20), nr.Arms([[0.0], [1.0]])
    policy = nr.expected_improvement(arms, kernel.on(1), noise=0.1, context=times, incumbent="reward", prior_mean=0.2)
    study = nr.Study(policy)
    for place, reward, context in ((3, 5.0, 0.0), (12, 0.9, 1.0), (17, 0.4, 1.0)):
        study.add(arms.points[place], reward, context=[context])
    for context, best in ((0.0, 5.0), (1.0, 0.9)):
        mean, std = study.predict(context=[context])
        score = policy.score(envelope(mean, std), best)
        assert score[study.ask([context]).arm] == pytest.approx(score.max(), rel=1e-9)


def test_on_a_box_the_incumbent_is_the_highest_mean_of_candidates_and_points():
    box, kernel = nr.Box([0.0], [1.0]), nr.SquaredExponential(0.1)
    policy = nr.expected_improvement(box, kernel, noise=0.1)
    for history in ([(0.31, 1.0), (0.35, 1.2)], [(0.31, -1.0)]):  # between two points; where nothing was observed
        study = nr.Study(policy)
        for point, reward in history:
            study.add([point], reward)
        fine = np.linspace(0, 1, 4001)[:, None]
        mean, std = study.predict(fine)
        asked = study.ask().point[None]
        scores = [policy.score(envelope(m, s), mean.max())[0] for m, s in zip(*study.predict(asked), strict=True)]
        assert scores[0] >= policy.score(envelope(mean, std), mean.max()).max() - 1e-4


@dataclass(frozen=True)
class Optimism(PointwiseScore):
    """The upper bound as a score of one's own, which the engine of arms does not read off the bounds."""

    def __call__(self, envelope, incumbent=None):
        return envelope.upper


ROUGH = nr.Matern(2.5, 0.2)
PAIRED = {"context": nr.Arms([0.0, 0.5, 1.0]), "kernel": nr.Matern(2.5, [0.3, 0.2])}
READ_OFF = {
    "plain": {},
    "unit and centre": {"prior_mean": 3.0},
    "contexts": PAIRED,
    "pending": {"pending": "hallucinate"},
    "window": {"memory": nr.slots.SlidingWindow(6)},
    "bounds of another form": {"width": "dmm"},
    "constraints": {"constraints": nr.EveryRound()},
}


@pytest.mark.parametrize("name", READ_OFF)
def test_a_bound_read_off_is_the_score_of_the_envelope(name):
    """The same bits, for all arms and for some of them. Constraints judge scores, so they are not read off."""
    arms, more = nr.Arms.grid(0, 1, 12), {"kernel": ROUGH, **READ_OFF[name]}
    make = nr.igp_ucb if "width" in more or "constraints" in more else nr.gp_ucb
    bound = {"norm_bound": 1.0} if make is nr.igp_ucb else {}
    policy = make(arms, more.pop("kernel"), noise=0.1, **bound, **more)
    study, rng = nr.Study(policy, seed=1), np.random.default_rng(0)
    for t in range(25):
        context = None if policy.context is None else [0.5 * rng.integers(3)]
        state, at = study.replica.state.copy(), study.inputs.context(context)
        state.decide(at)
        for offered in (None, available(arms, [1, 4, 5, 9], None)):
            found = []
            for score in (policy.score, Optimism()):
                _, question, left = pose(state.memory, at, Randomness(1, t), now=0.0, available=offered)
                engine, belief = state.outputs.engine, state.reward.posterior.belief
                found.append(engine.scores(belief, question._replace(score=score), left)[0])
            np.testing.assert_array_equal(*found)
        trial = study.ask(context)
        if t % 3:
            g = {"constraints": [trial.point[0] - 0.6]} if policy.constraint_count else {}
            study.tell(trial, math.sin(6.0 * trial.point[0]) + 0.1 * rng.standard_normal(), **g)
