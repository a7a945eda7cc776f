"""Independent functions of the context for each arm: a posterior of blocks is the dense one, and falls back to it."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp import PointPosterior, WeightSpacePosterior, choice
from nilregret.gp.choice import posterior_at_points
from nilregret.gp.feature_maps import ArmColumns
from nilregret.gp.paths import drawn_path
from nilregret.kernels import Intercept, Mixture, Multiplied, Overlap, RandomFeatures

OPTIONS, CONTEXT = np.eye(3), nr.Linear().on(0, 1)
OVERLAP, SMOOTH = Overlap([0, 0, 0]).on(2, 3, 4), RandomFeatures(nr.Matern(2.5, 0.7), 3).on(0, 1)
KERNELS = {
    "linear, linear": (CONTEXT * nr.Linear(scale=2.0).on(2, 3, 4), OPTIONS, 2),
    "scaled arms": (nr.Linear().on(2, 3, 4) * (Intercept(scale=0.3) + CONTEXT), np.diag([1.0, 2.0, -0.5]), 3),
    "constant, linear, smooth": (OVERLAP * (Intercept() + CONTEXT + SMOOTH), OPTIONS, 9),
    "sum of products": (2.0 * (OVERLAP * CONTEXT) + OVERLAP * SMOOTH + Multiplied(OVERLAP, 0.3), OPTIONS, 9),
    "inside of some columns": ((nr.Linear().on(1, 0) * OVERLAP).on(0, 1, 2, 3, 4) * SMOOTH, OPTIONS, 12),
    "no context": (OVERLAP, OPTIONS, 1),
}


def rows(options, count, seed=0):
    rng = np.random.default_rng(seed)
    return np.hstack([rng.uniform(-1, 1, (count, 2)), options[rng.integers(3, size=count)]])


def both(kernel, options, ridge=0.05):
    """The posterior with a block for each arm, and the dense one."""
    arms = [ArmColumns.of(options, range(2, 5), 5)]
    return posterior_at_points(kernel, 5, ridge, arms=arms), PointPosterior(kernel, 5, ridge)


def same(ours, dense, points, tolerance=1e-8):
    np.testing.assert_allclose(ours.predict(points), dense.predict(points), atol=tolerance)
    np.testing.assert_allclose(ours.mean(points), dense.mean(points), atol=tolerance)
    np.testing.assert_allclose(ours.covariance(points[:6]), dense.covariance(points[:6]), atol=tolerance)
    cross = ours.cross_covariance(points[:4], points[3:9])
    np.testing.assert_allclose(cross, dense.cross_covariance(points[:4], points[3:9]), atol=tolerance)
    for name in ("log_determinant", "quadratic_form", "mean_norm"):
        assert getattr(ours, name) == pytest.approx(getattr(dense, name), rel=1e-6, abs=1e-6)
    ridges = np.array([0.01, 0.1, 3.0])
    found, wanted = ours.spectrum(), dense.spectrum()
    np.testing.assert_allclose(found.misfit(ridges), wanted.misfit(ridges), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(found.moments(points, ridges), wanted.moments(points, ridges), atol=1e-6)


@pytest.fixture(params=KERNELS.values(), ids=KERNELS.keys())
def case(request):
    return request.param


def moved(posterior, action, known, which, new):
    """Changes a posterior."""
    if action == "append":
        posterior.append(*new)
    elif action == "revise":
        posterior.revise(*known[which], new[1])
    elif action == "revise all":
        at, old = zip(*known[which:], strict=True)
        posterior.revise_all(at, old, [new[1]] * len(at))
    else:
        posterior.forget(*known[which])


def recorded(action, known, which, new):
    """Returns what is known afterwards."""
    before, after = known[:which], known[which + 1 :]
    if action == "append":
        return [*known, new]
    if action == "revise":
        return [*before, (known[which][0], new[1]), *after]
    return [*before, *((at, new[1]) for at, _ in known[which:])] if action == "revise all" else [*before, *after]


def test_a_block_for_each_arm_is_the_dense_posterior(case):
    kernel, options, rank = case
    ours, dense = both(kernel, options)
    assert isinstance(ours, WeightSpacePosterior)
    assert (ours.weights.count, ours.weights.size, ours.rank) == (3, rank, 3 * rank)
    points, rng, known = rows(options, 40), np.random.default_rng(1), []
    for step in range(120):
        which, new = int(rng.integers(max(len(known), 1))), (points[step % 25], float(rng.standard_normal()))
        action = rng.choice(["append", "append", "revise", "revise all", "forget"]) if known else "append"
        for posterior in (ours, dense):
            moved(posterior, action, known, which, new)
        known = recorded(action, known, which, new)
        if step % 30 == 20:
            same(ours, dense, points)
            copy = ours.copy()
            same(copy, dense, points)
            copy.append(points[0], 5.0)
    same(ours, dense, points)
    for at, target in known:
        ours.forget(at, target)
    same(ours, PointPosterior(kernel, 5, 0.05), points, 1e-7)


def test_little_noise_and_many_observations(case):
    kernel, options, _ = case
    ours, dense = both(kernel, options, 1e-6)
    points, rng = rows(options, 60), np.random.default_rng(2)
    truth = kernel(points, points[:6]) @ rng.standard_normal(6)
    at = rng.integers(60, size=900)  # past several refinements
    targets = truth[at] + 1e-3 * rng.standard_normal(900)
    ours.extend(points[at], targets)
    dense.extend(points[at], targets)
    np.testing.assert_allclose(ours.predict(points), dense.predict(points), atol=1e-6)
    for row, target in zip(points[at[:890]], targets[:890], strict=True):
        ours.forget(row, target)
    few = PointPosterior(kernel, 5, 1e-6)
    few.extend(points[at[890:]], targets[890:])
    np.testing.assert_allclose(ours.predict(points), few.predict(points), atol=1e-5)


def test_the_means_of_all_arms_are_refined(monkeypatch):
    """Each block after some observations of its own, again and again."""
    ours, _ = both(*KERNELS["linear, linear"][:2])
    refined, points = [], rows(OPTIONS, 1800)
    real = ours.weights.refine
    monkeypatch.setattr(ours.weights, "refine", lambda block, *known: (refined.append(block), real(block, *known)))
    ours.extend(points, np.arange(1800.0))
    assert set(refined) == {0, 1, 2}
    assert len(refined) <= 6
    dense = PointPosterior(ours.kernel, 5, 0.05)
    dense.extend(points, np.arange(1800.0))
    np.testing.assert_allclose(ours.mean(points[:20]), dense.mean(points[:20]), rtol=1e-8)


def test_gradients_and_paths(case):
    kernel, options, _ = case
    ours, dense = both(kernel, options)
    points = rows(options, 20)
    for posterior in (ours, dense):
        posterior.extend(points[:12], np.arange(12.0))
    found, wanted = ours.gradients(points), dense.gradients(points)
    for one, other in zip(found[:2], wanted[:2], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)
    for one, other in zip(found[2:], wanted[2:], strict=True):
        np.testing.assert_allclose(one[:, :2], other[:, :2], atol=1e-6)  # by the context
    at = points[10:15]
    paths = np.array([drawn_path(ours, np.random.default_rng([1, i]))(at) for i in range(1500)])
    exact = dense.covariance(at)
    # Tails at 6 standard errors: fails below 1e-6 if right, and the seeds are fixed.
    spread = np.sqrt((np.outer(exact.diagonal(), exact.diagonal()) + exact**2) / 1500)
    assert (np.abs(paths.mean(axis=0) - dense.mean(at)) <= 6 * np.sqrt(exact.diagonal() / 1500) + 1e-9).all()
    assert (np.abs(np.cov(paths, rowvar=False) - exact) <= 6 * spread + 1e-9).all()


def test_what_takes_one_block_or_the_dense_posterior(monkeypatch):
    linear, arms = OVERLAP * CONTEXT, [ArmColumns.of(OPTIONS, range(2, 5), 5)]

    def blocks(kernel, arms=arms):
        found = posterior_at_points(kernel, 5, 0.1, arms=arms)
        return found.weights.count if isinstance(found, WeightSpacePosterior) else None

    assert blocks(linear) == 3
    assert blocks(linear, []) == 1
    assert blocks(linear + CONTEXT) == 1  # the arms share something
    assert blocks(linear + Intercept()) == 1
    assert blocks(Mixture(OVERLAP, CONTEXT)) == 1
    assert blocks(linear, [ArmColumns.of(np.array([[1.0, 0, 0], [1, 1, 0]]), range(2, 5), 5)]) == 1
    assert blocks(nr.Linear()) == 1  # the arm's columns and the context's are not apart
    assert blocks(OVERLAP * nr.Matern(2.5).on(0, 1)) is None
    monkeypatch.setattr(choice, "MOST_FEATURES", 3)
    assert blocks(linear) is None  # 3 blocks of 2 x 2 are more than 3 x 3 numbers
    monkeypatch.setattr(choice, "MOST_FEATURES", 4)
    assert blocks(linear) == 3


def test_a_row_that_is_no_arm_is_refused():
    ours, _ = both(OVERLAP * CONTEXT, OPTIONS)
    with pytest.raises(nr.errors.InvalidInput, match="not one of the arms"):
        ours.predict(np.array([[0.1, 0.2, 0.5, 0.5, 0.0]]))


CONTEXTS = nr.Box([-1.0, -1.0], [1.0, 1.0])
SPACE = nr.Space(arm=nr.Choice("a", "b", "c"), x=nr.Float(0, 1))


def policies():
    kernel = OVERLAP * (Intercept() + CONTEXT + SMOOTH)
    arms = {"context": CONTEXTS, "noise": 0.1}
    yield nr.igp_ucb(nr.Arms(OPTIONS), kernel, norm_bound=1.0, **arms)
    yield nr.gp_ts(nr.Arms(OPTIONS), kernel, norm_bound=1.0, **arms)
    yield nr.gp_ucb_sdf(nr.Arms(OPTIONS), kernel, window=6, norm_bound=1.0, **arms)
    yield nr.gp_bucb(nr.Arms(OPTIONS), kernel, beta=2.0, **arms)
    yield nr.igp_ucb(nr.Arms(OPTIONS), kernel, norm_bound=1.0, constraints=nr.EveryRound(count=1), **arms)
    yield nr.igp_ucb(nr.Arms(OPTIONS), kernel, norm_bound=1.0, memory=nr.slots.SlidingWindow(9), **arms)
    fitted = nr.expected_improvement(nr.Arms(OPTIONS), kernel, **arms)
    yield fitted.using(refit=nr.slots.Refit(every=8))
    yield fitted.using(refit=nr.slots.LengthscaleBank(factors=(0.5, 1.0)))
    yield fitted.using(sketch=nr.slots.Sketch())
    yield nr.igp_ucb(nr.Arms(OPTIONS), kernel, norm_bound=1.0, memory=nr.slots.Discount(0.05), **arms)
    in_space = Overlap([0, 0, 0]).on(0, 1, 2) * (nr.Linear().on(3) + RandomFeatures(nr.Matern(2.5, 0.5), 4).on(3))
    yield nr.gp_ucb(SPACE, in_space, noise=0.1, a=1.0, b=1.0)
    yield nr.gp_ts(SPACE, in_space, noise=0.1, norm_bound=1.0)


@pytest.mark.parametrize("policy", list(policies()), ids=lambda policy: policy.algorithm)
def test_decisions_are_those_of_one_block_for_all(policy, monkeypatch):
    """Every slot works with the blocks: late answers, windows, constraints, predictions, gradients of a search."""

    def played():
        study, waiting, rng = nr.Study(policy, seed=3), [], np.random.default_rng(0)
        for _ in range(24):
            waiting.append(study.ask(None if policy.context is None else rng.uniform(-1, 1, 2)))
            if len(waiting) > 2:
                trial = waiting.pop(0)
                reward = float(np.sin(3 * trial.point.sum()) + 0.1 * rng.standard_normal())
                study.tell(trial, reward, constraints=[reward - 0.5] if policy.constraints else None)
        at = [trial.point for trial in study.trials]
        context = None if policy.context is None else [0.3, -0.2]
        return np.array(at), study.predict(at, context=context)

    points, predicted = played()
    monkeypatch.setattr("nilregret.gp.choice.arm_features", lambda kernel, arms: None)
    same_points, same_predicted = played()
    # Rounding decides which root of a covariance a draw takes, and between options of which nothing is known.
    if policy.context is not None and not policy.score.draws:
        np.testing.assert_array_equal(points, same_points)
        np.testing.assert_allclose(predicted, same_predicted, atol=1e-8)


def test_a_reopened_study_continues_to_the_last_bit(tmp_path):
    """Thompson draws of each arm, several answers at once, and a window that forgets."""
    kernel = OVERLAP * (Intercept() + CONTEXT + SMOOTH)
    policy = nr.gp_ts(nr.Arms(OPTIONS), kernel, norm_bound=1.0, noise=0.1, context=CONTEXTS)
    policy = policy.using(memory=nr.slots.SlidingWindow(7))

    def played(reopened):
        url, rng, waiting, study = f"sqlite:///{tmp_path / f'{reopened}.db'}", np.random.default_rng(0), [], None
        for t in range(20):
            if study is None or reopened:
                study = nr.Study(policy, seed=3, storage=url, name="one")
            waiting.append(study.ask(rng.uniform(-1, 1, 2)))
            if t % 3 == 2:
                for trial in reversed(waiting):
                    study.tell(trial, float(np.sin(3 * trial.context.sum()) + trial.arm))
                waiting = []
        return [trial.arm for trial in study.trials], study.predict(OPTIONS, context=[0.2, 0.1])

    (arms, predicted), (same_arms, same_predicted) = played(False), played(True)
    assert arms == same_arms
    np.testing.assert_array_equal(predicted, same_predicted)
