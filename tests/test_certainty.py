"""How sure the best trial is: probabilities and expected losses against formulas and draws made here."""

import math

import numpy as np
import pytest
from scipy.stats import beta, norm

import nilregret as nr
from nilregret._utils.numerals import numeral, percent, with_error
from nilregret.cli.overview import overview
from nilregret.slots import LengthscaleBank, Refit
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.scores import ThompsonSample
from nilregret.study.best import Certainty
from nilregret.study.formatting import use_text
from nilregret.tuning.result import _doubts

ARMS = nr.Arms.grid(0, 1, 12)
KERNEL = nr.Matern(2.5, 0.3)
SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))


def noisy_study(policy, rounds, *, seed=0, noise=0.3, **more):
    study, rng = nr.Study(policy, seed=seed, **more), np.random.default_rng([7, seed])
    sign = -1.0 if study.goal == "minimize" else 1.0
    for _ in range(rounds):
        trial = study.ask()
        constraints = [float(trial.point[0] - 0.6)] if policy.constraint_count else None
        reward = float(np.sin(6.0 * trial.point).sum()) + noise * rng.standard_normal()
        study.tell(trial, sign * reward, constraints=constraints)
    return study


def by_hand(study, points, best, kernel, noise):
    """Probability and loss of a point among others, by the formulas of a posterior and a million draws."""
    X, y = np.array([t.point for t in study.trials]), np.array([t.reward for t in study.trials])
    weights = np.linalg.solve(kernel(X, X) + noise**2 * np.eye(len(X)), kernel(X, points))
    mean, covariance = weights.T @ y, kernel(points, points) - weights.T @ kernel(X, points)
    drawn = np.random.default_rng(1).multivariate_normal(mean, covariance, size=200_000, check_valid="ignore")
    shortfall = drawn.max(axis=1) - drawn[:, best]
    return np.mean(shortfall < 1e-9), shortfall.mean()


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])], ids=["arms", "box"])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_the_joint_posterior(domain, seed):
    study = noisy_study(nr.gp_ucb(domain, KERNEL, noise=0.3, scale=0.5), 15, seed=seed)
    points = np.unique([trial.point for trial in study.trials], axis=0)
    for trial in (study.best(), study.trials[0]):
        place = int(np.flatnonzero((points == trial.point).all(axis=1))[0])
        probability, loss = by_hand(study, points, place, KERNEL, 0.3)
        found = study.certainty(trial)
        assert found.probability == pytest.approx(probability, abs=0.02)
        assert found.loss == pytest.approx(loss, rel=0.05, abs=0.002)
    assert study.certainty() == study.certainty(study.best()) == study.certainty(study.best().number)


def test_two_points_have_a_formula():
    study = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=0.5))
    study.add(ARMS.points[2], 1.0)
    study.add(ARMS.points[9], 0.6)
    X = ARMS.points[[2, 9]]
    inverse = np.linalg.inv(KERNEL(X, X) + 0.25 * np.eye(2))
    mean = KERNEL(X, X) @ inverse @ [1.0, 0.6]
    covariance = KERNEL(X, X) - KERNEL(X, X) @ inverse @ KERNEL(X, X)
    ahead, apart = mean[0] - mean[1], math.sqrt(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
    found = study.certainty()
    assert found.probability == pytest.approx(norm.cdf(ahead / apart), abs=0.02)
    expected = apart * norm.pdf(ahead / apart) - ahead * norm.cdf(-ahead / apart)
    assert found.loss == pytest.approx(expected, rel=0.06)


def test_minimising_mirrors_maximising():
    for policy in (nr.gp_ucb(ARMS, KERNEL, noise=0.3), nr.auto(SPACE)):
        up, down = noisy_study(policy, 12), noisy_study(policy, 12, goal="minimize")
        assert up.best().number == down.best().number
        assert up.certainty() == down.certainty()
        assert up.certainty().loss >= 0.0


@pytest.mark.parametrize("refit", [Refit(every=3, warp="half-rank"), LengthscaleBank()], ids=["warp", "bank"])
def test_units_are_those_of_rewards(refit):
    policy = nr.expected_improvement(SPACE, nr.Matern(2.5, [0.5, 0.5]), noise=0.3, refit=refit)
    study = noisy_study(policy, 20)
    found, bad = study.certainty(), min(study.trials, key=lambda trial: trial.reward)
    # The loss of one point less that of another is the difference of their means, whatever else was tried.
    means = study.predict(np.array([study.best().point, bad.point]))[0]
    assert study.certainty(bad).loss - found.loss == pytest.approx(means[0] - means[1], rel=0.05)
    assert study.certainty(bad).probability < found.probability < 1.0


def test_it_is_trivial_for_one_point_and_without_noise():
    study = nr.Study(nr.auto(SPACE))
    with pytest.raises(nr.errors.TrialError, match="No trial has been answered"):
        study.certainty()
    study.tell(study.ask(), 1.0)
    assert study.certainty() == (1.0, 0.0)
    exact = nr.maximize(lambda x, y: -((x - 0.3) ** 2) - y, SPACE, trials=25, progress=False)
    assert (exact.probability_best, exact.expected_loss) == (1.0, 0.0)
    assert "probability" not in repr(exact)
    assert exact.study.certainty(0).probability < 0.01


def test_only_what_satisfies_the_constraints_is_compared():
    policy = nr.auto(SPACE, constraints=1)
    study = noisy_study(policy, 20)
    found, inside = study.certainty(), [trial.number for trial in study.trials if trial.constraints[0] <= 0.0]
    assert 0 < len(inside) < 20
    assert sum(study.certainty(number).probability for number in inside) == pytest.approx(1.0, abs=0.05)
    assert found == study.certainty(study.best())
    assert study.best().number in inside


def test_contexts():
    policy = nr.gp_ucb(ARMS, KERNEL * nr.Matern(2.5, 0.3).on(1), noise=0.3, context=nr.Box([0.0], [1.0]))
    study, rng = nr.Study(policy), np.random.default_rng(0)
    for _ in range(12):
        trial = study.ask(rng.uniform(size=1))
        study.tell(trial, float(trial.point[0] * trial.context[0]) + 0.3 * rng.standard_normal())
    probabilities = {t.arm: study.certainty(t, context=[0.4]).probability for t in study.trials}
    assert sum(probabilities.values()) == pytest.approx(1.0, abs=0.03)


def test_scripts_have_no_posterior():
    policy = nr.algorithms.admmbo(nr.Box([0.0, -1.0], [2.0, 1.0]), first=(3, 4), more=(2, 2), candidates=200)
    study = nr.Study(policy)
    for _ in range(4):
        study.tell(study.ask(), 1.0, constraints=[-1.0])
    assert study.certainty() is None


# -- results ----------------------------------------------------------------------------------------------------------


def noisy(**parameters):
    point = np.array(list(parameters.values()), dtype=float)
    return float(-((point - 2.0) ** 2).sum()) + 2.0 * noisy.rng.standard_normal()


@pytest.mark.parametrize("optimize", [nr.maximize, nr.minimize])
def test_noise_that_was_seen_moves_the_best_trial(optimize):
    noisy.rng, sign = np.random.default_rng(3), 1.0 if optimize is nr.maximize else -1.0
    space = nr.Space(a=nr.Int(0, 4), b=nr.Int(0, 4))
    result = optimize(lambda **p: sign * noisy(**p), space, trials=50, progress=False)
    assert len({trial.point.tobytes() for trial in result.trials}) < 50
    assert result.best_trial.number == result.study.best().number
    assert result.best_value == result.best_trial.reward != max(sign * row["value"] for row in result.history) * sign
    assert (result.probability_best, result.expected_loss) == result.study.certainty()
    assert 0.0 < result.probability_best < 1.0 < 1.0 + result.expected_loss
    assert "values are noisy" in repr(result)
    assert f"probability {result.probability_best:.0%}, expected loss {result.expected_loss:.2g}" in repr(result)


def test_a_result_also_names_the_trial_that_show_recommends():
    """Noise that was not seen may have made the highest value told."""
    noisy.rng = np.random.default_rng(5)
    result = nr.maximize(noisy, nr.Space(a=nr.Float(0, 4), b=nr.Float(0, 4)), trials=20, progress=False)
    said, best = overview(result.study), result.study.best()
    assert (said["best"]["number"], said["best_told"]["number"]) == (best.number, result.best_trial.number)
    assert best.number != result.best_trial.number
    assert f"of trial {result.best_trial.number} (highest told)" in repr(result)
    believed = with_error(*(float(each[0]) for each in result.study.predict(best.point[None])))
    told = f"told {numeral(best.reward)}\n"
    assert f"recommended if noisy: trial {best.number}, best posterior mean {believed}, {told}" in repr(result)
    assert f"with probability {percent(result.probability_best)}," in repr(result)


def test_a_result_says_the_mean_use_of_a_budget_on_average():
    space = nr.Space(x=nr.Float(0, 1))
    result = nr.maximize(
        lambda x: {"reward": x, "power": x}, space, trials=8, progress=False, constraints="power <= 0.4",
        policy=nr.auto(space, constraints=nr.OnAverage()),
    )  # fmt: skip
    (use,) = overview(result.study)["budgets"]
    assert result.best_trial.number == result.study.best().number
    assert f"mean use of {use_text(use)}" in repr(result)
    assert use["mean"] == pytest.approx(np.mean([trial.constraints[0] for trial in result.trials]))


def test_noise_that_nothing_shows_leaves_the_best_value():
    noisy.rng = np.random.default_rng(3)
    result = nr.maximize(lambda x, y: noisy(x=x, y=y), SPACE, trials=12, progress=False)
    assert result.best_value == max(row["value"] for row in result.history)
    assert result.probability_best == result.study.certainty(result.best_trial).probability < 1.0


def test_failures_are_not_compared():
    def fragile(x, y):
        return x - y if x < 0.5 else float("nan")

    result = nr.maximize(fragile, SPACE, trials=15, progress=False)
    assert result.probability_best > 0.9  # The values told for failures do not count.
    assert result.best_trial.state == "observed"


def test_noise_that_is_told_is_seen():
    policy = nr.auto(SPACE)
    study = nr.Study(policy)
    for number in range(9):
        study.tell(study.ask(), 0.1 * (number % 4), std=0.2)
    assert 0.0 < study.certainty().probability < 1.0


# -- clicks, counts and bounded rewards ------------------------------------------------------------------------------


def equal_arms(reward, mean, draw, runs):
    """Of A/A tests: how many are sure of an arm, and the share of bounds that hold."""
    sure, held = 0, []
    for seed in range(runs):
        study, rng = nr.Study(nr.auto(nr.Arms.grid(0, 1, 2), reward=reward), seed=seed), np.random.default_rng(seed)
        for _ in range(150):
            study.tell(study.ask(), draw(rng))
        sure += study.certainty().probability > 0.95
        lower, upper = study.bounds()
        held += list((lower <= mean) & (mean <= upper))
    return sure, np.mean(held)


KINDS = {
    "clicks": ("bernoulli", 0.1, lambda rng: float(rng.random() < 0.1)),
    "counts": ("poisson", 2.0, lambda rng: float(rng.poisson(2.0))),
    "shares": (nr.slots.Bounded(low=-1.0, high=1.0), 0.0, lambda rng: 2.0 * rng.random() - 1.0),
}


@pytest.mark.parametrize("runs", [12, pytest.param(60, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_arms_are_seldom_told_apart(kind, runs):
    """At 5%, more than 3 of 12 or 8 of 60 have a probability below .004. So have fewer bounds that hold, at .93.

    The posterior of the decisions is sure in 5, 3 and 3 of 12 tests, and bounds of its draws hold in .29, .29 and .46.
    """
    sure, held = equal_arms(*KINDS[kind], runs)
    assert sure <= {12: 3, 60: 8}[runs]
    assert held >= {12: 0.75, 60: 0.85}[runs]


def test_a_better_arm_is_found():
    rng, study = np.random.default_rng(0), nr.Study(nr.auto(nr.Arms(range(2)), reward="bernoulli"), seed=0)
    for _ in range(600):
        trial = study.ask()
        study.tell(trial, float(rng.random() < (0.2, 0.6)[trial.arm]))
    found = study.certainty()
    assert study.best().arm == 1
    assert found.probability > 0.95
    assert 0.0 <= found.loss < 0.01
    assert study.certainty(next(trial for trial in study.trials if trial.arm == 0)).probability < 0.05


def test_silence_counts_where_it_means_no():
    """Both arms were clicked six times, one of them after four times as many showings."""
    study = nr.Study(nr.auto(nr.Arms(range(2)), reward="bernoulli", answers="silent no"), seed=0)
    for number in range(300):
        trial = study.ask(among=[int(number % 5 > 0)])
        if number < 250 and number % (20 if trial.arm else 5) == (5 if trial.arm == 0 else 1) % 5:
            study.tell(trial, 1.0)
    clicks = [sum(trial.reward == 1.0 for trial in study.trials if trial.arm == arm) for arm in range(2)]
    assert clicks[0] > clicks[1] > 5
    assert study.best().arm == 0
    assert study.certainty().probability > 0.95  # of yeses alone neither would be better


def test_bounds_are_beta_quantiles_and_contain_the_mean():
    study = nr.Study(nr.auto(nr.Arms(range(3)), reward="bernoulli"), seed=0)
    for arm, clicks, shown in ((0, 3, 30), (1, 0, 20)):
        for number in range(shown):
            study.add(arm, float(number < clicks))
    lower, upper = study.bounds()
    mean, _ = study.predict()
    tails = norm.cdf([-2.0, 2.0])
    for arm, clicks, shown in ((0, 3, 30), (1, 0, 20), (2, 0, 0)):
        low = beta.ppf(tails[0], clicks, 1 + shown - clicks) if clicks else 0.0
        high = beta.ppf(tails[1], 1 + clicks, shown - clicks) if shown > clicks else 1.0
        assert lower[arm] == pytest.approx(min(low, mean[arm]), abs=1e-12)
        assert upper[arm] == pytest.approx(max(high, mean[arm]), abs=1e-12)
    assert math.isnan(study.width)
    assert study.policy.valid_for == "none"


def test_bounded_rewards_of_0_and_1_say_as_much_as_clicks():
    """Also where arms differ much: the spread between them is no noise."""
    studies = [nr.Study(nr.auto(nr.Arms(range(3)), reward=reward)) for reward in ("bernoulli", "bounded")]
    for study in studies:
        for arm, yes in ((0, 3), (1, 15), (2, 29)):
            for number in range(30):
                study.add(arm, float(number < yes))
    clicks, shares = (np.array(study.bounds()) for study in studies)
    np.testing.assert_allclose(shares, clicks, atol=0.03)


@pytest.mark.parametrize("reward", ["bernoulli", "poisson", "bounded"])
def test_losses_mirror_rewards(reward):
    """A study of losses is sure of the arm that is seldom clicked, and its bounds are those of the same rates."""
    studies = [nr.Study(nr.auto(nr.Arms(range(2)), reward=reward), goal=goal) for goal in ("maximize", "minimize")]
    for study in studies:
        for arm, yes in ((0, 12), (1, 2)):
            for number in range(60):
                study.add(arm, float(number < yes))
    up, down = (np.array(study.bounds()) for study in studies)
    np.testing.assert_allclose(up, down, atol=0.005)  # the mean, to which bounds are widened, has another prior
    assert [study.best().arm for study in studies] == [0, 1]
    assert all(0.9 < study.certainty().probability < 1.0 for study in studies)


def test_draws_have_a_width_of_their_own():
    drawn = nr.auto(ARMS, reward="bernoulli")
    before = drawn.using(confidence=ConstantWidth(value=0.6), score=ThompsonSample())
    for policy in (drawn, before):
        study = nr.Study(policy, seed=3)
        rng = np.random.default_rng(0)
        for _ in range(40):
            trial = study.ask()
            study.tell(trial, float(rng.random() < 0.1 + 0.05 * trial.arm))
        arms = [trial.arm for trial in study.trials]
        if policy is drawn:
            expected = arms
    assert arms == expected


def test_a_probability_of_no_draw_is_not_said_to_be_zero():
    assert _doubts(Certainty(0.0, 0.1), noisy=False) == [
        "best of the points tried with probability < 1%, expected loss 0.1"
    ]
