"""Answers with a noise of their own: every posterior is that of the dense formula, and so are fits."""

import math

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.gp import ArmPosterior, AveragedArms, AveragedPoints, Bank, PointPosterior
from nilregret.gp.choice import posterior_at_points, posterior_on_arms
from nilregret.gp.drifting import BankPosterior, DriftingPosterior, OutOfSequencePosterior
from nilregret.gp.feature_maps import Terms
from nilregret.gp.fitting import fit
from nilregret.gp.likelihood import Marginal, log_marginal_likelihood, merged
from nilregret.storage import MemoryStorage

from .service import AT, POLICY, Client, asked, plain

ARMS = nr.Arms.grid(0, 1, 12)
SMOOTH, STEADY, ROUGH = nr.SquaredExponential(0.5), nr.Matern(2.5, 0.3), nr.Matern(0.5, 0.3)
RIDGE = 0.04


def dense(kernel, X, y, noise, at):
    """Mean, covariance, log det(I + K / noise) and y^T (K + noise)^{-1} y, by one solve."""
    K, cross = kernel(X, X), kernel(X, at)
    C = K + np.diag(noise)
    mean = cross.T @ np.linalg.solve(C, y)
    covariance = kernel(at, at) - cross.T @ np.linalg.solve(C, cross)
    return mean, covariance, np.linalg.slogdet(C)[1] - np.log(noise).sum(), y @ np.linalg.solve(C, y)


def check(posterior, kernel, X, y, noise, at, cells):
    mean, covariance, log_ratio, quadratic = dense(kernel, X, y, noise, at)
    found, std = posterior.predict(cells)
    np.testing.assert_allclose(found, mean, atol=1e-7)
    np.testing.assert_allclose(std, np.sqrt(np.maximum(np.diag(covariance), 0.0)), atol=1e-6)
    np.testing.assert_allclose(posterior.covariance(cells), covariance, atol=1e-7)
    assert posterior.log_determinant_ratio == pytest.approx(log_ratio, rel=1e-6, abs=1e-6)
    if hasattr(posterior, "quadratic_form"):
        assert posterior.quadratic_form == pytest.approx(quadratic, rel=1e-6, abs=1e-6)


def makers():
    return {
        "low rank": lambda: posterior_on_arms(ARMS, SMOOTH, RIDGE),
        "distinct arms": lambda: posterior_on_arms(nr.Arms.grid(0, 1, 300), nr.Matern(0.5, 0.01), RIDGE),
        "points": lambda: PointPosterior(ROUGH, 1, RIDGE),
        "features": lambda: posterior_at_points(nr.Linear() + nr.Linear() * nr.Linear(), 1, RIDGE),
        "sketch": lambda: posterior_at_points(SMOOTH, 1, RIDGE, terms=Terms(1e-5, 100.0, 3.0, 100, 0)),
    }


@pytest.mark.parametrize("name", makers())
@pytest.mark.parametrize("seed", range(4))
def test_weights_are_noise_variances_whatever_was_added_changed_and_removed(name, seed):
    rng, posterior = np.random.default_rng(seed), makers()[name]()
    on_arms = isinstance(posterior, ArmPosterior)
    kernel = posterior.prior.kernel if on_arms else posterior.kernel
    grid = posterior.prior.points if on_arms else ARMS.points
    some = rng.integers(0, len(grid), 6)
    held = []
    for step in range(40):
        arm, y = int(rng.choice(some)), float(rng.normal())
        weight = 1.0 if rng.random() < 0.4 else float(np.exp(2.0 * rng.normal()))
        if step > 8 and rng.random() < 0.4:
            arm, y, weight = held.pop(int(rng.integers(len(held))))
            posterior.forget(arm if on_arms else grid[arm], y, weight=weight)
            continue
        if step > 8 and rng.random() < 0.2:
            plain = [i for i, each in enumerate(held) if each[2] == 1.0]
            i = plain[0]
            posterior.revise(held[i][0] if on_arms else grid[held[i][0]], held[i][1], y)
            held[i] = held[i][0], y, 1.0
            continue
        posterior.append(arm if on_arms else grid[arm], y, weight=weight)
        held.append((arm, y, weight))
    arms, y, weights = (np.array(each) for each in zip(*held, strict=True))
    cells = rng.permutation(len(grid))[:7]
    at = grid[cells]
    for each in (posterior, posterior.copy()):
        check(each, kernel, grid[arms], y, RIDGE / weights, at, cells if on_arms else at)
    assert posterior.count == len(held)


@pytest.mark.parametrize("chain", ["one rate", "bank", "bank with two ridges"])
def test_drifting_posteriors_weigh_answers_in_any_order(chain):
    rates = (0.0, 0.1)
    if chain == "one rate":
        start = DriftingPosterior(ARMS, SMOOTH, RIDGE, rate=0.1)
    else:
        start = BankPosterior(ARMS, SMOOTH, RIDGE, rates=rates, noise_variance=0.01 if "two" in chain else None)
    late = OutOfSequencePosterior(start)
    told = {0: (3, 0.5, 4.0), 1: (7, -0.2, 1.0), 2: (3, 0.1, 0.2), 4: (9, 0.3, 30.0)}
    late.advance(5)
    for round_ in (4, 0, 2, 1):
        arm, y, weight = told[round_]
        late.append(late.entry(arm, round_), y, weight=weight)
    late.append(late.entry(1, 3), 9.0, weight=2.0)
    late.forget(late.entry(1, 3), 9.0, weight=2.0)
    rounds, X = np.array(list(told)), ARMS.points[[arm for arm, *_ in told.values()]]
    y, weights = (np.array([each[i] for each in told.values()]) for i in (1, 2))
    if chain == "one rate":
        apart = np.abs(np.append(rounds, 5)[:, None] - np.append(rounds, 5))
        at = ARMS.points[[4]]
        both = SMOOTH(np.concatenate([X, at]), np.concatenate([X, at])) * 0.9 ** (apart / 2.0)
        C, cross = both[:4, :4] + np.diag(RIDGE / weights), both[:4, 4]
        assert late.predict([4])[0][0] == pytest.approx(cross @ np.linalg.solve(C, y), abs=1e-9)
        assert late.predict([4])[1][0] ** 2 == pytest.approx(1.0 - cross @ np.linalg.solve(C, cross), abs=1e-9)
        return
    still = BankPosterior(ARMS, SMOOTH, RIDGE, rates=(0.0,), noise_variance=0.01 if "two" in chain else None)
    for arm, target, weight in told.values():
        still.append(arm, target, weight=weight)
    mean, covariance, _, _ = dense(SMOOTH, X, y, RIDGE / weights, ARMS.points)
    np.testing.assert_allclose(still.predict()[0], mean, atol=2e-3)
    np.testing.assert_allclose(still.predict()[1], np.sqrt(np.diag(covariance)), atol=2e-3)
    assert late.chain.shares.sum() == pytest.approx(1.0)


def test_kernels_are_compared_by_weighted_answers():
    kernels = (nr.SquaredExponential(0.5), nr.SquaredExponential(0.1))
    bank = Bank(kernels, (1.0, 0.2), None)
    X, y = ARMS.points[[2, 3, 8]], np.array([0.3, -0.4, 0.6])
    weights = np.array([9.0, 0.5, 1.0])
    on_arms = AveragedArms(bank, [posterior_on_arms(ARMS, kernel, RIDGE) for kernel in kernels])
    at_points = AveragedPoints(bank, [PointPosterior(kernel, 1, RIDGE) for kernel in kernels])
    for i, arm in enumerate((2, 3, 8)):
        on_arms.append(arm, y[i], weight=weights[i])
        at_points.append(ARMS.points[arm], y[i], weight=weights[i])
    log = [-0.5 * (ratio + q) for _, _, ratio, q in (dense(k, X, y, RIDGE / weights, X) for k in kernels)]
    shares = np.exp(log - np.max(log)) / np.exp(log - np.max(log)).sum()
    for posterior in (on_arms, at_points):
        np.testing.assert_allclose(posterior.shares, shares, atol=1e-9)
    mean = sum(w * dense(k, X, y, RIDGE / weights, ARMS.points)[0] for w, k in zip(shares, kernels, strict=True))
    np.testing.assert_allclose(on_arms.predict()[0], mean, atol=1e-8)
    np.testing.assert_allclose(at_points.predict(ARMS.points)[0], mean, atol=1e-8)


# -- fits --------------------------------------------------------------------------------------------------------


def test_the_likelihood_knows_the_noise_of_some_rewards():
    rng = np.random.default_rng(0)
    X, y = rng.random((9, 2)), rng.normal(size=9)
    X[4] = X[0]
    X[8] = X[5]
    stds = np.array([0.1, np.nan, 0.5, np.nan, 0.3, np.nan, 1.0, np.nan, np.nan])
    kernel = nr.Matern(2.5, (0.4, 0.7), scale=1.3)
    theta = np.append(kernel.log_parameters, math.log(0.2))
    found = Marginal(kernel, merged(X, y, stds), ridges=(0.0,))(theta)
    C = kernel(X, X) + np.diag(np.where(np.isnan(stds), 0.2, stds**2))
    expected = -0.5 * (y @ np.linalg.solve(C, y) + np.linalg.slogdet(C)[1] + 9 * math.log(2 * math.pi))
    assert found.value == pytest.approx(expected, abs=1e-9)
    slope = found.gradient()
    for i in range(len(theta)):
        ends = []
        for step in (1e-5, -1e-5):
            moved = theta.copy()
            moved[i] += step
            ends.append(Marginal(kernel, merged(X, y, stds), ridges=(0.0,))(moved).value)
        assert slope[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-5)
    nothing = Marginal(kernel, merged(X, y, np.full(9, np.nan)), ridges=(0.0,))(theta)
    assert nothing.value == pytest.approx(log_marginal_likelihood(kernel, X, y, 0.2).value, abs=1e-12)


def test_a_fit_leaves_known_noise_alone():
    rng = np.random.default_rng(1)
    X = rng.random((60, 1))
    stds = np.where(np.arange(60) % 2, 1.0, 0.05)
    y = np.sin(6.0 * X[:, 0]) + stds * rng.normal(size=60)
    told, untold = (fit(nr.Matern(2.5, 0.3), X, y, fit_mean=True, stds=each) for each in (stds, None))
    at = np.linspace(0.05, 0.95, 19)[:, None]

    def error(found, noise):
        return np.sqrt(np.mean((dense(found.kernel, X, y, noise, at)[0] - np.sin(6.0 * at[:, 0])) ** 2))

    assert error(told, stds**2) < 0.3 * error(untold, np.full(60, untold.noise**2))
    some = fit(nr.Matern(2.5, 0.3), X, y, fit_mean=True, stds=np.where(stds == 1.0, np.nan, stds))
    assert some.noise == pytest.approx(1.0, rel=0.3)


# -- studies -----------------------------------------------------------------------------------------------------

BOX = nr.Box([0.0], [1.0])
STDS = (0.05, None, 0.4, 0.0, 0.2, 0.05, None, 1.0, 0.3)


def policies():
    return {
        "arms": nr.gp_ucb(ARMS, SMOOTH, noise=0.2),
        "points": nr.gp_ucb(BOX, STEADY, noise=0.2),
        "own lambda": nr.igp_ucb(ARMS, SMOOTH, noise=0.2, norm_bound=1.0),
        "hallucinated": nr.gp_bucb(ARMS, SMOOTH, noise=0.2),
        "hallucinated points": nr.gp_bucb(BOX, STEADY, noise=0.2),
        "window": nr.gp_ucb(ARMS, SMOOTH, noise=0.2).using(memory=nr.slots.SlidingWindow(5)),
        "discount": nr.gp_ucb(ARMS, SMOOTH, noise=0.2).using(memory=nr.slots.Discount(0.05)),
        "drift": nr.gp_ucb(ARMS, SMOOTH, noise=0.2).using(memory=nr.slots.DriftBank()),
        "sketch": nr.gp_ucb(BOX, STEADY, noise=0.2).using(sketch=nr.slots.Sketch()),
        "thompson": nr.gp_ts(ARMS, SMOOTH, noise=0.2, norm_bound=1.0),
        "improvement": nr.expected_improvement(BOX, SMOOTH, noise=0.2),
        "auto": nr.auto(BOX, noise=0.2),
        "auto, noise unknown": nr.auto(BOX),
        "fits": nr.gp_ucb(ARMS, SMOOTH, noise=0.2).using(refit=nr.slots.Refit(every=3)),
        "several lengthscales": nr.gp_ucb(ARMS, SMOOTH, noise=0.2).using(refit=nr.slots.LengthscaleBank()),
    }


def reward(trial):
    return float(np.sin(5.0 * trial.point[0]) + 0.1 * np.cos(7.0 * trial.number))


def played(policy, stds, *, storage=None, late=True):
    study = nr.Study(policy, seed=3, storage=storage)
    waiting = []
    for std in stds:
        waiting.append((study.ask(), std))
        if late and len(waiting) < 3:
            continue
        trial, each = waiting.pop(0)
        study.tell(trial, reward(trial), std=each)
    for trial, each in waiting:
        study.tell(trial, reward(trial), std=each)
    return study


@pytest.mark.parametrize("name", policies())
def test_the_common_noise_told_changes_no_decision(name):
    policy = policies()[name]
    if policy.fitting is not None:
        return  # A fitted noise is not that of the policy.
    plain, told = (played(policy, [std] * 9) for std in (None, 0.2))
    for one, other in zip(plain.trials, told.trials, strict=True):
        np.testing.assert_allclose(one.point, other.point, atol=1e-5)
    at = BOX.lower + np.linspace(0.0, 1.0, 12)[:, None]
    for one, other in zip(plain.predict(at), told.predict(at), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)
    np.testing.assert_allclose(plain.bounds(at), told.bounds(at), atol=1e-5)


@pytest.mark.parametrize("name", policies())
def test_a_stored_study_with_known_noise_decides_and_predicts_as_it_did(tmp_path, name):
    url = f"sqlite:///{tmp_path}/a.db"
    study = played(policies()[name], STDS, storage=url)
    again = nr.Study.open(storage=url)
    assert list(again.trials) == list(study.trials)
    assert [trial.std for trial in again.trials] == list(STDS)
    at = np.linspace(0.0, 1.0, 12)[:, None]
    np.testing.assert_array_equal(again.predict(at), study.predict(at))
    np.testing.assert_array_equal(again.ask().point, played(policies()[name], STDS).ask().point)


@pytest.mark.parametrize("name", ["arms", "points", "own lambda"])
def test_predictions_are_those_of_the_dense_formula(name):
    policy = policies()[name]
    study = played(policy, STDS)
    X, y = (np.array([each(trial) for trial in study.trials]) for each in (lambda t: t.point, lambda t: t.reward))
    ratio = np.array([1.0 if std is None else max(std / 0.2, 1e-3) for std in STDS]) ** 2
    at = ARMS.points
    mean, covariance, log_ratio, _ = dense(policy.kernel, X, y, policy.regularization * ratio, at)
    found = study.predict(at)
    np.testing.assert_allclose(found[0], mean, atol=1e-6)
    np.testing.assert_allclose(found[1], np.sqrt(np.maximum(np.diag(covariance), 0.0)), atol=1e-5)
    assert study.information_gain == pytest.approx(0.5 * log_ratio, rel=1e-5)


def test_the_best_trial_is_not_the_luckiest():
    def best(std):
        study = nr.Study(nr.gp_ucb(ARMS, nr.SquaredExponential(0.02), noise=0.2))
        for arm, value, each in ((2, 1.0, 0.1), (2, 1.1, 0.1), (9, 1.3, std)):
            study.add(ARMS.points[arm], value, std=each)
        return study.best().arm

    assert (best(None), best(2.0)) == (9, 2)


@pytest.mark.parametrize("warp", ["none", "half-rank"])
def test_a_fit_and_a_warp_take_the_noise_in_the_units_of_rewards(warp):
    def study(scale):
        refit = nr.slots.Refit(every=4, warp=warp, noise="unknown")
        found = nr.Study(nr.gp_ucb(BOX, STEADY, noise=0.2).using(refit=refit))
        for number, std in enumerate(STDS[:8]):
            x = (0.37 * number) % 1.0
            found.add([x], scale * np.sin(5.0 * x), std=None if std is None else scale * std)
        return found

    at = np.linspace(0.0, 1.0, 12)[:, None]
    np.testing.assert_allclose(study(100.0).predict(at), 100.0 * np.array(study(1.0).predict(at)), rtol=1e-5, atol=1e-5)
    assert abs(study(1.0).predict([[(0.37 * 3) % 1.0]])[0][0] - np.sin(5.0 * ((0.37 * 3) % 1.0))) < 1e-3  # exact


def test_answers_of_known_noise_are_believed_beside_worse_ones():
    # Half-ranks weighed bad answers up and reached down to them: 0.9754 +- 0.003 was believed to be 0.9721.
    rows = np.array(
        [
            (0.2, 0.9, 0.63, 0.002), (0.9, 0.9, 0.65, 0.006), (0.5, 0.95, 0.63, 0.003), (0.1, 0.6, 0.63, 0.003),
            (0.3, 0.5, 0.947, 0.006), (0.4, 0.45, 0.956, 0.008), (0.5, 0.4, 0.972, 0.003), (0.55, 0.42, 0.974, 0.004),
            (0.6, 0.38, 0.972, 0.003), (0.52, 0.35, 0.972, 0.004), (0.65, 0.4, 0.9754, 0.003), (0.7, 0.3, 0.96, 0.007),
            (0.8, 0.35, 0.958, 0.008), (0.58, 0.36, 0.972, 0.003), (0.5, 0.3, 0.97, 0.0035),
        ]
    )  # fmt: skip
    study = nr.Study(nr.auto(nr.Box([0.0, 0.0], [1.0, 1.0])), seed=0)
    for *point, reward, std in rows:
        study.add(point, reward, std=std)
    assert study.best().number == 10
    mean, std = study.predict([[0.65, 0.4]])
    assert (mean[0], std[0]) == (pytest.approx(0.9754, abs=0.001), pytest.approx(0.003, rel=0.1))


@pytest.mark.parametrize("name", ["box", "space", "arms"])
def test_exact_answers_alone_are_weighed(name):
    made = {"box": nr.Box([0, 0], [1, 1]), "space": nr.Space(price=nr.Float(1, 9)), "arms": ARMS}
    study = nr.Study(nr.auto(made[name]), seed=0)
    for i in range(6):
        study.tell(study.ask(), float(i % 4), std=0.0 if i in (2, 3) else None)
        study.fail(study.ask(), "no disk") if i == 4 else None
    assert study.best() is not None


@pytest.mark.parametrize("std", [-0.1, float("nan"), float("inf"), True, "much", [0.1], 1e200])
def test_a_standard_deviation_that_is_none(std):
    study = nr.Study(policies()["arms"])
    trial = study.ask()
    for call in (lambda: study.tell(trial, 1.0, std=std), lambda: study.add([0.0], 1.0, std=std)):
        with pytest.raises(nr.errors.InvalidInput, match="`std`"):
            call()
    assert study.trials[0].state == "pending"


def refusing():
    arms, known = nr.gp_ucb(ARMS, SMOOTH, noise=0.2), {"norm_bound": 1.0}
    return {
        "within a bound": nr.gp_ucb(ARMS, SMOOTH, noise=0.2, width="rkhs", **known),
        "'realised'": nr.igp_ucb(ARMS, SMOOTH, noise=0.2, information_gain="greedy", **known),
        "its noise is unknown": nr.igp_ucb(ARMS, SMOOTH, noise="unknown", **known),
        "values of f": nr.igp_ucb(ARMS, SMOOTH, noise=0.0, **known),
        r"more than 31,623 times the noise of the policy, 0\.0": nr.igp_ucb(ARMS, SMOOTH, noise=0, width="ay", **known),
        r"noise of the policy, 1e-06": nr.gp_ts(ARMS, SMOOTH, noise=1e-6, **known),
        "CensoredWidth": nr.gp_ucb_sdf(ARMS, SMOOTH, noise=0.2, reward_bound=1.0, window=5, **known),
        "changes": arms.using(memory="adaptive"),
        "clicks": nr.auto(ARMS, reward="bernoulli"),
        "linear models": nr.auto(ARMS, context=nr.Box([0.0], [1.0]), noise=0.2),
        "charges": nr.gp_ucb_noisy_constraints(ARMS, SMOOTH, noise=0.2, norm_bound=1.0, epoch=5, epochs=4, step=0.1),
    }


@pytest.mark.parametrize("word", refusing())
def test_a_policy_that_cannot_weigh_answers_says_why(word):
    study = nr.Study(refusing()[word])
    context = None if study.policy.context is None else [0.5]
    trial = study.ask(context)
    with pytest.raises(nr.errors.InvalidInput, match=word):
        study.tell(trial, 1.0, std=0.1)
    assert study.trials[0].state == "pending"


def test_bounds_that_hold_for_weighted_answers_stay_certified():
    for name in ("arms", "own lambda"):
        study = nr.Study(policies()[name])
        assert study.policy.valid_for == "f"
        study.tell(study.ask(), 0.5, std=0.05)
    outside = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        f = np.linalg.cholesky(SMOOTH(ARMS.points, ARMS.points) + 1e-9 * np.eye(12)) @ rng.normal(size=12)
        study = nr.Study(nr.gp_ucb(ARMS, SMOOTH, noise=0.2, delta=0.2), seed=seed)
        for _ in range(8):
            std = float(rng.choice([0.02, 0.2, 1.0]))
            trial = study.ask()
            study.tell(trial, float(f[trial.arm] + std * rng.normal()), std=std)
        lower, upper = study.bounds(ARMS.points)
        outside += bool(((f < lower) | (f > upper)).any())
    assert outside <= 10


def test_an_exact_answer_is_let_in_where_the_noise_is_tiny():
    study = nr.Study(refusing()[r"noise of the policy, 1e-06"])
    assert study.tell(study.ask(), 0.5, std=0.0).std == 0.0
    assert study.policy.valid_for == "f"


WIDTHS = ("igp", "ay", "amm", "dmm")


@pytest.mark.parametrize("domain", ["arms", "many arms", "box", "features"])
def test_the_bounds_of_an_answer_of_half_the_noise_are_those_of_four_answers(domain):
    made = {
        "arms": (ARMS, SMOOTH), "many arms": (nr.Arms.grid(0, 1, 300), nr.Matern(0.5, 0.01)), "box": (BOX, STEADY),
        "features": (BOX, nr.Linear() + nr.Linear() * nr.Linear()),
    }  # fmt: skip
    for width in WIDTHS:
        policy = nr.igp_ucb(*made[domain], noise=0.2, norm_bound=1.0, width=width)
        one, four = nr.Study(policy), nr.Study(policy)
        for x in (0.0, 1.0, 0.0):
            one.add([x], x - 0.3, std=0.1)
            for _ in range(4):
                four.add([x], x - 0.3)
        at = made[domain][0].points[::9] if domain != "box" and domain != "features" else [[0.0], [0.3], [1.0]]
        np.testing.assert_allclose(one.bounds(at), four.bounds(at), atol=1e-12)


def share_outside(width, wrong, runs, rounds=12):
    """Share of runs in which f leaves the bounds in some round, under noise of `wrong` times the told std."""
    at = ARMS.points[[0, 3, 6, 9]]
    K, outside = SMOOTH(at, at), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        pull = rng.normal(size=4)
        pull *= 0.5 / np.sqrt(pull @ K @ pull)  # f has the norm of the bound
        f = SMOOTH(ARMS.points, at) @ pull
        make = nr.gp_ts if width == "ts" else nr.igp_ucb
        name = "amm" if width == "ts" else width
        study, left, high = nr.Study(make(ARMS, SMOOTH, noise=0.2, norm_bound=0.5, width=name, delta=0.2)), False, False
        for _ in range(rounds):
            arm = int(rng.integers(3))
            std = 0.02 if high else float(rng.choice([0.1, 0.5]))  # it depends on earlier answers, as it may
            noise = std * float(rng.choice([-1.0, 1.0]))  # of all s-sub-Gaussian noise this has the largest variance
            high = noise > 0.0
            study.add(ARMS.points[arm], float(f[arm] + wrong * noise), std=std)
            lower, upper = study.bounds()
            left |= bool(((f < lower) | (f > upper)).any())
        outside += left
    return outside / runs


@pytest.mark.parametrize("width", [*WIDTHS, "ts"])
def test_f_stays_inside_of_the_bounds_if_the_told_noise_is_right(width):
    assert share_outside(width, 1.0, 25) <= 0.2  # delta is 0.2
    assert share_outside(width, 6.0, 6) >= 0.5


@pytest.mark.nightly
@pytest.mark.parametrize("width", [*WIDTHS, "ts"])
def test_f_stays_inside_in_many_runs(width):
    assert share_outside(width, 1.0, 200, rounds=40) <= 0.2


def test_it_belongs_to_the_answer_and_is_corrected_with_it():
    study = nr.Study(policies()["arms"])
    first = study.tell(study.ask(), 0.5, std=0.1)
    assert (first.std, study.trials[0].std) == (0.1, 0.1)
    assert study.tell(0, 0.5, std=0.1) == first
    for other in (None, 0.2):
        with pytest.raises(nr.errors.TrialError, match=r"std 0\.1"):
            study.tell(0, 0.5, std=other)
    corrected = study.tell(0, 0.5, std=0.2, revise=True)
    assert (corrected.std, corrected.corrected[0].std) == (0.2, 0.1)
    fresh = nr.Study(policies()["arms"])
    fresh.tell(fresh.ask(), 0.5, std=0.2)
    np.testing.assert_array_equal(study.predict(), fresh.predict())
    assert study.fail(0, "wrong", revise=True).std is None
    with pytest.raises(nr.errors.InvalidInput, match="no reward"):
        study.tell(0, None, constraints=[1.0], std=0.1)


def test_several_answers_lists_and_tables():
    study = nr.Study(policies()["points"], goal="minimize")
    trials = study.ask(count=3)
    study.tell_many([{"trial": 0, "reward": 0.1, "std": 0.3}, (trials[1], 0.2), {"trial": 2, "reward": 0.3}])
    assert [trial.std for trial in study.trials] == [0.3, None, None]
    assert "std=0.3" in repr(study.trials[0])
    assert study.to_pandas()["std"].isna().tolist() == [False, True, True]
    assert "std" not in nr.Study(policies()["points"]).to_pandas()


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_files_keep_it(tmp_path, ending):
    study = nr.Study(policies()["points"])
    study.add([0.2], 1.0, std=0.125)
    study.add([0.4], 2.0)
    path = study.export(tmp_path / f"trials.{ending}")
    other = nr.Study(policies()["points"])
    assert [trial.std for trial in other.add_from(path)] == [0.125, None]
    with pytest.raises(nr.errors.InvalidInput, match="Nothing was recorded"):
        nr.Study(refusing()["clicks"]).add_from(study.export(tmp_path / f"other.{ending}"))


def test_constraints_with_posteriors_of_their_own_have_their_own_noise():
    policy = nr.gp_ucb(ARMS, SMOOTH, noise=0.2).using(constraints=nr.EveryRound(count=1))
    plain, told = nr.Study(policy), nr.Study(policy)
    for study, std in ((plain, None), (told, 0.01)):
        study.add(ARMS.points[3], 1.0, constraints=[0.5], std=std)
    np.testing.assert_array_equal(plain.bounds(channel=1), told.bounds(channel=1))
    assert told.predict([ARMS.points[3]])[1] < 0.1 * plain.predict([ARMS.points[3]])[1]


def test_an_answer_that_comes_late_takes_the_place_of_a_pending_trial():
    for policy in (policies()["hallucinated"], policies()["hallucinated points"]):
        late, fresh = nr.Study(policy), nr.Study(policy)
        trial = late.ask()
        late.ask()
        late.tell(trial, 0.5, std=0.02)
        late.ask()
        fresh.add(trial.point, 0.5, std=0.02)
        np.testing.assert_allclose(late.predict([trial.point])[0], fresh.predict([trial.point])[0], atol=1e-9)
        assert late.predict([trial.point])[1] <= fresh.predict([trial.point])[1] + 1e-12


# -- other ways to tell it ---------------------------------------------------------------------------------------


def noisy(x):
    return {"reward": -((x - 0.3) ** 2), "std": 0.1 + x}


def test_an_objective_says_it_beside_the_reward():
    space = nr.Space(x=nr.Float(0, 1))
    result = nr.maximize(noisy, space, trials=4, progress=False)
    for row in result.history:
        assert row["std"] == pytest.approx(0.1 + row["parameters"]["x"])
    limited = nr.maximize(noisy, space, trials=3, constraints="std <= 0.5", progress=False)
    assert [trial.std for trial in limited.trials] == [None] * 3
    both = nr.maximize(lambda x: ({"reward": x, "std": 0.5}, [x - 0.5]), space, trials=3, constraints=1, progress=False)
    assert [trial.std for trial in both.trials] == [0.5] * 3
    assert "std" not in nr.maximize(lambda x: {"reward": x, "std": None}, space, trials=2, progress=False).history[0]
    answers = iter([-1.0, math.nan, 0.0, "much"])
    failed = nr.maximize(lambda x: {"reward": x, "std": next(answers)}, space, trials=4, progress=False)
    assert [row["state"] for row in failed.history] == ["failed", "failed", "observed", "failed"]
    assert all("'std'" in row["reason"] for row in failed.history if row["reason"])


def test_folds_of_scikit_learn_say_it():
    sklearn = pytest.importorskip("sklearn")
    from sklearn.neighbors import KNeighborsClassifier

    from nilregret.integrations.sklearn import NoRegretSearchCV

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    found = {}
    for fold_noise in (False, True):
        search = NoRegretSearchCV(
            KNeighborsClassifier(), {"n_neighbors": (1, 20)}, n_iter=4, cv=4, random_state=0, fold_noise=fold_noise
        )
        found[fold_noise] = search.fit(X, y)
    assert [trial.std for trial in found[False].trials_] == [None] * 4
    results = found[True].cv_results_
    scores = np.array([results[f"split{i}_test_score"] for i in range(4)])
    expected = scores.std(axis=0, ddof=1) / 2.0
    np.testing.assert_allclose([trial.std for trial in found[True].trials_], expected)
    assert sklearn.__version__


def test_trials_of_optuna_say_it_by_an_attribute():
    optuna = pytest.importorskip("optuna")
    from nilregret.integrations.optuna import NoRegretSampler
    from nilregret.integrations.optuna_import import import_study

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("nilregret:std", 0.25)
        return x

    study = optuna.create_study(sampler=NoRegretSampler(seed=0), direction="maximize")
    study.optimize(objective, n_trials=4)
    imported = import_study(study)
    assert [trial.std for trial in imported.trials] == [0.25] * 4
    study.add_trial(
        optuna.create_trial(
            value=0.5,
            params={"x": 0.5},
            distributions=study.trials[0].distributions,
            user_attrs={"nilregret:std": -1.0},
        )
    )
    with pytest.raises(nr.errors.InvalidInput, match="nilregret:std"):
        import_study(study)


def test_the_command_line_takes_it(tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    study = nr.Study(policies()["arms"], storage=url)
    study.ask()

    def run(name, *words):
        done = CliRunner().invoke(main, [name, url, "study", *words])
        assert done.exit_code == 0, done.output
        return done.output

    assert '"std": 0.125' in run("tell", "0", "0.5", "--std", "0.125", "--json")
    run("add", "[0.0]", "0.5", "--std", "0.25")
    assert [trial.std for trial in nr.Study.open(storage=url).trials] == [0.125, 0.25]
    assert "0.125" in run("trials")


def test_the_service_keeps_it_with_the_answer():
    with Client(MemoryStorage()) as client:
        client.put(AT, {"policy": plain(POLICY), "seed": 3})
        decision = asked(client)
        path = f"{AT}/decisions/{decision['id']}"
        status, said = client.put(f"{path}/reward", {"reward": 0.5, "std": -0.1})
        assert (status, said["error"]["field"]) == (422, "std")
        for _ in range(2):
            status, said = client.put(f"{path}/reward", {"reward": 0.5, "std": 0.125})
            assert (status, said["std"]) == (200, 0.125)
        assert client.put(f"{path}/reward", {"reward": 0.5})[0] == 409
        assert client.put(f"{path}/reward", {"reward": 0.5, "std": 0.25, "revise": True})[1]["std"] == 0.25
        in_full = client.get(path)[1]
        assert (in_full["std"], in_full["corrected"][0]["std"]) == (0.25, 0.125)
        observation = {"arm": 1, "reward": 0.2, "std": 0.5}
        assert client.post(f"{AT}/observations", observation)[0] == 201
        assert client.post(f"{AT}/observations", observation | {"std": "much"})[0] == 422
        events = client.get(f"{AT}/events")[1]["events"]
        assert [event["std"] for event in events if event["kind"] != "asked"][-2:] == [0.25, 0.5]


PEAK = (390.0, 430.0, 470.0, 485.0, 495.0, 505.0, 520.0, 550.0, 600.0)


@pytest.mark.parametrize("std", [None, 0.5, 2.0, 8.0, 20.0])
def test_a_failed_trial_does_not_overrule_measurements_beside_it(std):
    study = nr.Study(nr.auto(nr.Space(celsius=nr.Float(380, 620))), seed=0)
    study.quiet = True
    told = {x: 700 - ((x - 495) / 8) ** 2 for x in PEAK}
    for x, reward in told.items():
        study.add({"celsius": x}, reward, std=std)
    study.fail(study.ask(among=[{"celsius": 498.0}]), "the door was open")  # it fails where it is best
    means = study.predict([{"celsius": x} for x in PEAK])[0]
    assert np.abs(means - list(told.values())).max() < 3 * (std or 1.0) + 8.0
    assert 480 <= study.best().parameters["celsius"] <= 510


def test_a_region_of_failures_is_left_beside_told_noise():
    study = nr.Study(nr.auto(nr.Space(celsius=nr.Float(380, 620))), seed=3)
    study.quiet = True
    failed = []
    for number in range(30):
        trial = study.ask()
        x = trial.parameters["celsius"]
        if x > 500:
            study.fail(trial, "too hot")
            failed.append(number)
        else:
            study.tell(trial, 700 - ((x - 560) / 8) ** 2, std=8.0)
    assert sum(number >= 15 for number in failed) <= 2
    assert study.best().parameters["celsius"] > 475


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("answers", ["prompt", "late"])
def test_failures_beside_told_noise_are_replayed(seed, answers, tmp_path):
    """Weights of imputed values stay those with which they were learned, until a fit begins anew."""
    rng, url = np.random.default_rng(seed), f"sqlite:///{tmp_path}/a.db"
    policy = nr.auto(nr.Arms(rng.random((40, 2))), answers=answers)
    with nr.Study(policy, seed=seed, storage=url, name="a") as study:
        study.quiet = True
        for _ in range(25):
            trial = study.ask()
            kind = rng.integers(4)
            open_ = [each for each in study.trials if each.state == "pending"]
            if kind == 0:
                study.fail(trial, "no")
            elif kind == 1:
                study.tell(trial, rng.normal(), std=float(rng.choice([1e-9, 0.1, 3.0])))
            elif len(open_) > 2:
                study.tell(open_[0], rng.normal(), **({"std": 0.3} if kind == 2 else {}))
        failed = [each for each in study.trials if each.state == "failed"]
        if failed:
            study.tell(failed[0], 0.5, revise=True)
        mine = study.predict()
    with nr.Study.open(storage=url, name="a") as again:
        np.testing.assert_allclose(again.predict(), mine, rtol=1e-6, atol=1e-8)
