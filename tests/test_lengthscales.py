"""Several lengthscales at once: averaged by what they predict, or balanced by their regret."""

import math

import numpy as np
import pytest

import nilregret as nr
from nilregret.environments import gp_sample
from nilregret.errors import InvalidInput
from nilregret.gp import AveragedArms, AveragedPoints, Bank, PointPosterior
from nilregret.gp.choice import posterior_on_arms
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.refit import with_factor
from nilregret.slots.scores import ThompsonSample
from nilregret.testing import check_policy

ARMS = nr.Arms.grid(0.0, 1.0, 15)
KERNEL = nr.Matern(2.5, 0.2, scale=1.5)
NOISE = 0.1
LAMBDA = NOISE**2
FACTORS = (0.25, 0.5, 1.0, 2.0)
WIDTH = ConstantWidth(value=2.0)


def bank_of(weight=None, factors=FACTORS, kernel=KERNEL):
    return Bank(tuple(with_factor(kernel, factor, 1) for factor in factors), factors, weight)


def on_arms(weight=None, factors=FACTORS):
    bank = bank_of(weight, factors)
    return AveragedArms(bank, [posterior_on_arms(ARMS, kernel, LAMBDA) for kernel in bank.kernels])


def at_points(weight=None, factors=FACTORS):
    bank = bank_of(weight, factors)
    return AveragedPoints(bank, [PointPosterior(kernel, 1, LAMBDA) for kernel in bank.kernels])


KINDS = {"arms": (on_arms, lambda arm: arm), "points": (at_points, lambda arm: ARMS.points[arm])}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def kind(request):
    return request.param


def answers(count=30, seed=0):
    rng = np.random.default_rng(seed)
    f = gp_sample(nr.Matern(2.5, 0.1), ARMS, seed=seed)(ARMS.points)
    arms = rng.integers(len(ARMS), size=count)
    return [(int(arm), float(f[arm] + NOISE * rng.standard_normal())) for arm in arms]


def dense_log_evidence(kernel, observations, weight):
    """By one factorisation of the whole covariance, and by the product of predictions, which must agree."""
    points = ARMS.points[[arm for arm, _ in observations]]
    y = np.array([target for _, target in observations])
    C = kernel(points, points) + LAMBDA * np.eye(len(y))
    misfit, spread = float(y @ np.linalg.solve(C, y)), np.linalg.slogdet(C)[1]
    if weight is None:
        whole = -0.5 * misfit - 0.5 * spread
    else:
        whole = -0.5 * spread - 0.5 * (weight + len(y)) * math.log1p(misfit / weight)
    total, squares = 0.0, 0.0
    for t in range(len(y)):
        K, k = C[:t, :t], C[:t, t]
        solved = np.linalg.solve(K, k) if t else k
        variance, error = C[t, t] - float(solved @ k), y[t] - float(solved @ y[:t])
        square = error**2 / variance
        if weight is None:
            total += -0.5 * math.log(variance) - 0.5 * square
        else:  # Student-t of nu + t degrees, scale (nu + squares) / (nu + t), without its constants
            total += -0.5 * math.log(variance) - 0.5 * math.log(weight + squares)
            total -= 0.5 * (weight + t + 1) * math.log1p(square / (weight + squares))
        squares += square
    constant = 0.0 if weight is None else 0.5 * weight * math.log(weight) - 0.5 * weight * math.log(weight)
    return whole, total + constant


@pytest.mark.parametrize("weight", [None, 10.0])
def test_weights_are_dense_bayes_factors_and_products_of_predictions(kind, weight):
    make, at = kind
    posterior, seen = make(weight), answers()
    for arm, target in seen:
        posterior.append(at(arm), target)
    both = np.array([dense_log_evidence(kernel, seen, weight) for kernel in posterior.bank.kernels])
    found = np.log(posterior.shares)
    for logs in both.T:
        np.testing.assert_allclose(found - found[0], logs - logs[0], atol=1e-8 * np.abs(both).max())
    assert posterior.shares.max() < 1.0  # something was compared


def test_order_leaves_no_trace_and_what_is_taken_back_neither(kind):
    make, at = kind
    seen = answers()
    forward, backward, revised = make(10.0), make(10.0), make(10.0)
    for arm, target in seen:
        forward.append(at(arm), target)
    for arm, target in reversed(seen):
        backward.append(at(arm), target)
    for arm, target in [*seen, (3, 9.0)]:
        revised.append(at(arm), target + 1.0)
    revised.forget(at(3), 10.0)
    for arm, target in seen:
        revised.revise(at(arm), target + 1.0, target)
    where = None if make is on_arms else ARMS.points
    for other in (backward, revised):
        np.testing.assert_allclose(other.shares, forward.shares, atol=1e-7)
        np.testing.assert_allclose(other.predict(where), forward.predict(where), atol=1e-7)
        assert other.count == forward.count == len(seen)


def test_what_is_believed_has_the_moments_of_the_mixture(kind):
    make, at = kind
    posterior = make(10.0)
    for arm, target in answers(6):
        posterior.append(at(arm), target)
    where = np.array([2, 7, 8]) if make is on_arms else ARMS.points[[2, 7, 8]]
    w = posterior.shares
    means, stds = (np.array(each) for each in zip(*(each.predict(where) for each in posterior.each), strict=True))
    mean, std = posterior.predict(where)
    np.testing.assert_allclose(mean, w @ means)
    np.testing.assert_allclose(std**2, w @ (stds**2 + means**2) - mean**2, atol=1e-12)
    covariance = posterior.covariance(where)
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()), std)
    np.testing.assert_allclose(posterior.cross_covariance(where, where), covariance, atol=1e-12)
    drawn = posterior.sample(np.random.default_rng(0), where, size=40_000)
    # 40,000 draws: means to 5 standard errors, which fails by chance once in a million runs.
    np.testing.assert_array_less(np.abs(drawn.mean(axis=0) - mean), 5 * std / 200)
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.06 * covariance.max())


def test_the_covariance_is_how_answers_move_the_mean(kind):
    """d mu(x) / d y_s = cov(x, x_s) / lambda, weights included, where the scale is as told."""
    make, at = kind
    seen, step = answers(8), 1e-5
    posteriors = []
    for change in (step, -step, 0.0):
        posterior = make(None)
        for place, (arm, target) in enumerate(seen):
            posterior.append(at(arm), target + (change if place == 2 else 0.0))
        posteriors.append(posterior)
    up, down, known = posteriors
    where, there = np.array([1, 9]), np.array([seen[2][0]])
    if make is at_points:
        where, there = ARMS.points[where], ARMS.points[there]
    moved = (up.predict(where)[0] - down.predict(where)[0]) / (2 * step)
    np.testing.assert_allclose(moved, known.cross_covariance(where, there)[:, 0] / LAMBDA, rtol=1e-5, atol=1e-7)


def test_gradients_are_those_of_mean_and_std():
    posterior = at_points(10.0)
    for arm, target in answers(6):
        posterior.append(ARMS.points[arm], target)
    x, step = np.array([[0.33], [0.71]]), 1e-6
    found = posterior.gradients(x)
    np.testing.assert_allclose([found.mean, found.std], posterior.predict(x), atol=1e-12)
    above, below = posterior.predict(x + step), posterior.predict(x - step)
    slopes = [(high - low) / (2 * step) for high, low in zip(above, below, strict=True)]
    np.testing.assert_allclose([found.mean_gradient[:, 0], found.std_gradient[:, 0]], slopes, atol=1e-5)
    np.testing.assert_allclose(posterior.mean_gradient(x)[1][:, 0], slopes[0], atol=1e-5)


def played(policy, rounds=12, seed=3):
    """The points of a study with answers two rounds late, and the study."""
    study, rng, waiting = nr.Study(policy, seed=seed), np.random.default_rng(1), []
    for _ in range(rounds):
        waiting.append(study.ask())
        if len(waiting) > 2:
            trial = waiting.pop(0)
            x = float(trial.point[0])
            study.tell(trial, math.sin(9 * x) + 0.5 * math.cos(23 * x) + NOISE * rng.standard_normal())
    return [trial.point.tolist() for trial in study.trials], study


BOX_SEARCH = nr.slots.PointSearch(candidates=32, around=4, starts=1, evaluations=4)


@pytest.mark.parametrize("where", [ARMS, nr.Box(0.0, 1.0)], ids=["arms", "box"])
@pytest.mark.parametrize("score", [None, ThompsonSample()], ids=["ucb", "thompson"])
@pytest.mark.parametrize("pending", [None, nr.slots.Hallucinated()], ids=["answers", "hallucinated"])
def test_one_candidate_is_the_policy_itself(where, score, pending):
    plain = nr.gp_ucb(where, KERNEL, noise=NOISE, width=WIDTH, search=BOX_SEARCH, pending=pending)
    plain = plain if score is None else plain.using(score=score)
    alone, _ = played(plain)
    single, study = played(plain.using(refit=nr.slots.LengthscaleBank(factors=(1.0,))))
    if pending is None:
        assert single == alone
    else:  # the mixture rounds otherwise
        np.testing.assert_allclose(single, alone, atol=1e-6)
    assert study.lengthscales.weights.tolist() == [1.0]


def test_a_study_shows_weights_and_is_opened_again_as_it_was():
    policy = nr.gp_ucb(ARMS, KERNEL, noise=NOISE, width=WIDTH, refit=nr.slots.LengthscaleBank(factors=FACTORS))
    assert nr.Policy.from_json(policy.to_json()) == policy
    assert policy.valid_for == "none"
    points, study = played(policy, rounds=30)
    known = study.lengthscales
    assert known.factors == FACTORS
    assert known.weights.sum() == pytest.approx(1.0)
    assert known.leader is None
    study.replica.rebuild()
    np.testing.assert_array_equal(study.lengthscales.weights, known.weights)
    assert played(policy, rounds=30)[0] == points
    assert nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=NOISE)).lengthscales is None
    assert known.kernels[int(known.weights.argmax())] == study.replica.state.kernel


def test_the_right_lengthscale_wins():
    arms = nr.Arms.grid(0.0, 1.0, 100)
    refit = nr.slots.LengthscaleBank(factors=(0.25, 0.5, 1.0, 2.0))
    policy = nr.gp_ucb(arms, nr.Matern(2.5, 0.2), noise=NOISE, width=WIDTH, refit=refit)
    study, f, rng = nr.Study(policy), gp_sample(nr.Matern(2.5, 0.05), arms, seed=2), np.random.default_rng(0)
    points = arms.points[::2]
    for point, value in zip(points, f(points), strict=True):
        study.add(point, float(value + NOISE * rng.standard_normal()))
    known = study.lengthscales
    assert known.factors[int(known.weights.argmax())] == 0.25
    assert known.weights.max() > 0.9


def test_fits_move_the_candidates():
    refit = nr.slots.LengthscaleBank(factors=(0.5, 1.0, 2.0), around=nr.slots.Refit(every=6, restarts=0))
    policy = nr.gp_ucb(ARMS, KERNEL, noise=NOISE, width=WIDTH, refit=refit)
    _, study = played(policy, rounds=5)
    assert study.lengthscales.kernels[1] == KERNEL
    _, study = played(policy, rounds=12)
    middle = study.lengthscales.kernels[1]
    assert middle != KERNEL
    assert study.lengthscales.kernels[0] == with_factor(middle, 0.5, 1)


def test_constraints_have_a_bank_each():
    policy = nr.gp_ucb(
        ARMS, KERNEL, noise=NOISE, width=WIDTH, refit=nr.slots.LengthscaleBank(), constraints=nr.EveryRound(noise=NOISE)
    )
    assert policy.of_channel(1).refit == nr.slots.LengthscaleBank()
    check_policy(policy, rounds=12)


@pytest.mark.parametrize("where", [ARMS, nr.Box(0.0, 1.0)], ids=["arms", "box"])
@pytest.mark.parametrize("growth", [0.0, 0.9])
def test_balancing_keeps_its_promises(where, growth):
    policy = nr.algorithms.lb_gp_ucb(
        where, nr.Matern(2.5, 0.4), noise=NOISE, norm_bound=2.0, growth=growth, search=BOX_SEARCH,
        factors=(1.0, 0.4),
    )  # fmt: skip
    check_policy(policy, rounds=14)


def balanced(norm_bound, kernel, f, rounds=120, **more):
    arms = nr.Arms.grid(0.0, 1.0, 60)
    policy = nr.algorithms.lb_gp_ucb(arms, kernel, noise=NOISE, norm_bound=norm_bound, **more)
    study, rng, leaders = nr.Study(policy, seed=0), np.random.default_rng(0), []
    for _ in range(rounds):
        known = study.lengthscales
        leaders.append(known.leader)
        assert known.leader not in known.eliminated
        trial = study.ask()
        study.tell(trial, float(f(trial.point[0]) + NOISE * rng.standard_normal()))
    return study, leaders


def bumps(x):
    """One broad hill, and a narrow one that is higher and that a long lengthscale does not see."""
    return 0.5 * math.exp(-(((x - 0.3) / 0.2) ** 2)) + 6.0 * math.exp(-(((x - 0.8) / 0.05) ** 2))


def test_longer_lengthscales_decide_more_often_and_wrong_ones_are_eliminated():
    study, leaders = balanced(1.0, nr.SquaredExponential(1.0), bumps, factors=(1.0, 0.1))
    assert leaders[:2] == [0, 1]  # each once, the longest first
    early = leaders[:15]
    assert early.count(0) > early.count(1) > 0
    assert study.lengthscales.eliminated == (0,)
    assert leaders[-20:] == [1] * 20
    before = study.lengthscales
    study.replica.rebuild()
    assert study.lengthscales.eliminated == before.eliminated
    np.testing.assert_array_equal(study.lengthscales.weights, before.weights)


def test_a_right_lengthscale_is_not_eliminated():
    """Its probability is 1 - delta at least, whatever the others are; the bounds are loose, and here it never is."""
    for seed in range(4):
        kernel = nr.Matern(2.5, 0.3)
        f = nr.environments.rkhs_function(kernel, nr.Arms.grid(0.0, 1.0, 60), norm=1.0, seed=seed)
        study, _ = balanced(1.0, kernel, lambda x, f=f: float(f(np.array([[x]]))[0]), rounds=60)
        assert 0 not in study.lengthscales.eliminated


def test_shorter_candidates_come_as_g_grows():
    study, _ = balanced(1.0, nr.Matern(2.5, 0.5), lambda x: 0.0 * x, rounds=60, factors=(1.0,), growth=0.5)
    factors = study.lengthscales.factors
    assert len(factors) == 1 + math.floor(0.5 * math.log(60))  # q(i) = e^-i down to 1 / sqrt(t)
    np.testing.assert_allclose(factors, np.exp(-np.arange(len(factors))))


def test_widths_and_turns_are_those_of_the_paper():
    """Line 3 and the width of Theorem 4.1 by hand, for two candidates after some rounds."""
    kernel, arms = nr.SquaredExponential(0.5), nr.Arms.grid(0.0, 1.0, 60)
    study, leaders = balanced(2.0, kernel, lambda x: math.sin(6 * x), rounds=25, factors=(1.0, 0.3))
    played_by = [leaders.count(0), leaders.count(1)]
    norms = [2.0, 2.0 * 0.3**-0.5]

    def regret(j, n):
        gamma = math.log(n) ** 2 / (1.0, 0.3)[j]
        return math.sqrt(n) * (norms[j] * math.sqrt(gamma) + gamma)

    leader = min((0, 1), key=lambda j: regret(j, played_by[j] + 1))
    assert study.lengthscales.leader == leader
    alone = posterior_on_arms(arms, with_factor(kernel, (1.0, 0.3)[leader], 1), LAMBDA)
    for trial in study.trials:
        alone.append(trial.arm, trial.reward)
    spread = alone.log_determinant_ratio + 2 * math.log(2 / 0.1)
    assert study.width == pytest.approx(math.hypot(norms[leader], math.sqrt(spread)))
    np.testing.assert_allclose(study.predict(), alone.predict(), atol=1e-9)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: nr.slots.LengthscaleBank(factors=()), "one to"),
        (lambda: nr.slots.LengthscaleBank(factors=(1.0, 1.0)), "different"),
        (lambda: nr.slots.LengthscaleBank(factors=(0.0,)), "factors"),
        (lambda: nr.slots.LengthscaleBank(weight=0.0), "weight"),
        (lambda: nr.slots.LengthscaleBank(around=3), "nr.slots.Refit"),
        (lambda: nr.gp_ucb(ARMS, nr.Linear(), noise=NOISE, refit=nr.slots.LengthscaleBank()), "no lengthscale"),
        (lambda: nr.algorithms.lb_gp_ucb(ARMS, KERNEL, noise=NOISE, norm_bound=1.0, factors=(0.5, 1.0)), "descend"),
        (lambda: nr.algorithms.lb_gp_ucb(ARMS, nr.Matern(0.5, 0.2), noise=NOISE, norm_bound=1.0), "nu"),
        (
            lambda: nr.algorithms.lb_gp_ucb(ARMS, KERNEL, noise=NOISE, norm_bound=1.0, refit=nr.slots.Refit()),
            "fills the slot",
        ),
        (
            lambda: nr.algorithms.lb_gp_ucb(ARMS, KERNEL, noise=NOISE, norm_bound=1.0, context=ARMS),
            "different contexts compare",
        ),
        (
            lambda: nr.algorithms.lb_gp_ucb(ARMS, KERNEL, noise=NOISE, norm_bound=1.0).using(context=ARMS),
            "had the better contexts",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make, says):
    with pytest.raises(InvalidInput, match=says):
        make()


# -- by the noise that was told ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])], ids=["arms", "box"])
def test_answers_are_weighed_by_the_noise_told_whatever_the_regulariser_is(domain):
    """Under `igp_ucb` lambda is 1 and the noise 0.1: the shares are those of `gp_ucb`, the mean is that of lambda."""
    choices = {"noise": NOISE, "refit": nr.slots.LengthscaleBank(factors=FACTORS)}
    wide = nr.Study(nr.igp_ucb(domain, KERNEL, norm_bound=3.0, regularization=1.0, **choices))
    told = nr.Study(nr.gp_ucb(domain, KERNEL, **choices))
    for arm, target in answers(40):
        for study in (wide, told):
            study.add(ARMS.points[arm], target)
    weights = told.lengthscales.weights
    assert weights.max() > 0.6
    np.testing.assert_allclose(wide.lengthscales.weights, weights, atol=1e-6)
    posteriors = [nr.Study(nr.gp_ucb(domain, with_factor(KERNEL, each, 1), noise=1.0)) for each in FACTORS]
    for study in posteriors:
        for arm, target in answers(40):
            study.add(ARMS.points[arm], target)
    means = [study.predict(ARMS.points)[0] for study in posteriors]
    np.testing.assert_allclose(wide.predict(ARMS.points)[0], weights @ np.stack(means), atol=1e-5)
