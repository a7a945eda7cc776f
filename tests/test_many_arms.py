"""Many arms: factors through a sample, posteriors made at once, and joint draws that are exact at each arm."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import nilregret as nr
from nilregret.gp import DistinctArmsPosterior, LowRankPosterior
from nilregret.gp.arms import MOST_JOINT, Prior
from nilregret.gp.choice import posterior_on_arms
from nilregret.gp.low_rank_arms import MAX_RANK
from nilregret.kernels.factorization import MANY, SAMPLE, factor_of_arms, pivoted_cholesky, tolerance
from nilregret.policy import state

from .marks import nightly

ROUGH, RIDGE = nr.Matern(1.5, 0.2), 0.01
PRIOR = Prior(ROUGH, np.random.default_rng(0).uniform(size=(MOST_JOINT + 4, 2)))
CROWD = nr.Arms(np.random.default_rng(1).uniform(size=(MANY + 8, 3)))
SOME = np.random.default_rng(2).integers(MOST_JOINT, size=60)


def sample_of(count):
    return np.random.default_rng(0).choice(count, SAMPLE, replace=False)


def learned(posterior, rounds=40, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        posterior.append(int(rng.integers(25)), float(rng.standard_normal()))
    return posterior


@pytest.mark.parametrize(
    "kernel", [nr.SquaredExponential(4.0), nr.Linear(), 2.0 * nr.SquaredExponential(4.0) + nr.Linear()]
)
def test_a_factor_through_a_sample_is_within_the_tolerance_at_every_arm(kernel):
    tol = tolerance(kernel.arm_variances(CROWD.points), RIDGE)
    factor = factor_of_arms(kernel, CROWD.points, tol=tol, max_rank=MAX_RANK)
    variance = np.einsum("ij,ij->i", factor.features, factor.features)
    assert factor.complete
    assert factor.residual <= tol
    assert len(factor.pivots) == factor.features.shape[1]
    np.testing.assert_allclose(variance, kernel.arm_variances(CROWD.points), rtol=0, atol=tol + 1e-13)
    rows = factor.features[SOME]
    np.testing.assert_allclose(rows @ rows.T, kernel(CROWD.points[SOME], CROWD.points[SOME]), rtol=0, atol=1e-12)
    usual = pivoted_cholesky(kernel, CROWD.points, tol=tol, max_rank=MAX_RANK)
    assert abs(len(usual.pivots) - len(factor.pivots)) <= 4
    assert isinstance(posterior_on_arms(CROWD, kernel, RIDGE), LowRankPosterior)


def test_arms_that_a_sample_misses_are_within_the_tolerance_too():
    """Rare arms far from all others, whose features would divide the rounding of the sample by its smallest pivots."""
    rng, ridge, kernel = np.random.default_rng(0), 1e-6, nr.SquaredExponential(1.5)
    points = rng.uniform(size=(MANY + 616, 2))
    missed = np.setdiff1d(np.arange(len(points)), sample_of(len(points)))[:40]
    points[missed] = 1.0 + rng.uniform(0.5, 1.0, size=(40, 2))
    tol = tolerance(kernel.arm_variances(points), ridge)
    factor = factor_of_arms(kernel, points, tol=tol, max_rank=MAX_RANK)
    assert factor.complete
    for some in (missed, SOME):
        rows = factor.features[some]
        np.testing.assert_allclose(rows @ rows.T, kernel(points[some], points[some]), rtol=0, atol=4.0 * tol)


def test_rough_kernels_are_refused_by_the_sample_alone():
    tol = tolerance(ROUGH.arm_variances(CROWD.points), RIDGE)
    factor = factor_of_arms(ROUGH, CROWD.points, tol=tol, max_rank=MAX_RANK)
    assert not factor.complete
    assert factor.features.shape == (0, MAX_RANK)
    assert not pivoted_cholesky(ROUGH, CROWD.points, tol=tol, max_rank=MAX_RANK).complete
    assert isinstance(posterior_on_arms(CROWD, ROUGH, RIDGE), DistinctArmsPosterior)


def test_up_to_many_arms_the_factor_is_the_usual_one_to_the_bit():
    points = CROWD.points[:300]
    args = {"tol": 1e-9, "max_rank": 90}
    usual, found = pivoted_cholesky(ROUGH, points, **args), factor_of_arms(ROUGH, points, **args)
    assert found.features.tobytes() == usual.features.tobytes()


@pytest.mark.parametrize("kernel", [ROUGH, nr.SquaredExponential(4.0)])
def test_first_observations_at_once_are_as_one_by_one(kernel):
    """To rounding on many arms, and to the bit on few."""
    rng = np.random.default_rng(3)
    for arms, exactly in ((CROWD, False), (nr.Arms(CROWD.points[:200]), True)):
        plays, targets = rng.integers(90, size=150).tolist(), rng.standard_normal(150).tolist()
        one, many = posterior_on_arms(arms, kernel, RIDGE), posterior_on_arms(arms, kernel, RIDGE)
        for arm, target in zip(plays, targets, strict=True):
            one.append(arm, target)
        many.begin_with(plays, targets)
        for mine, other in zip(one.predict(), many.predict(), strict=True):
            assert not exactly or mine.tobytes() == other.tobytes()
            np.testing.assert_allclose(mine, other, rtol=0, atol=1e-9)
        assert one.log_determinant_ratio == pytest.approx(many.log_determinant_ratio, rel=1e-12)
        assert (one.count, one.plays.tolist()) == (many.count, many.plays.tolist())


@pytest.mark.parametrize("name", ["auto", "gp_ts", *nightly("auto, two at a time")])
def test_studies_of_many_arms_are_replayed_to_the_bit(name, tmp_path):
    """With fits, and with draws whose features are made when they are first needed."""
    arms = nr.Arms(PRIOR.points) if name == "gp_ts" else CROWD
    policy = nr.gp_ts(arms, ROUGH, noise=0.1, v=1.0) if name == "gp_ts" else nr.auto(arms, parallel=1 + ("," in name))
    path, rng = f"sqlite:///{tmp_path}/study.db", np.random.default_rng(4)
    through = nr.Study(policy, seed=0)
    for _ in range(2):
        with nr.Study(policy, seed=0, storage=path) as study:
            for _ in range(4):
                trial = study.ask()
                assert through.ask().arm == trial.arm
                reward = float(np.sin(5 * trial.point.sum()) + 0.1 * rng.standard_normal())
                study.tell(trial, reward)
                through.tell(trial.number, reward)
            assert bool(study.fits) == (name != "gp_ts")
            mine, other = (each.predict(arms.points[:99]) for each in (study, through))
            assert [each.tobytes() for each in mine] == [each.tobytes() for each in other]


def exact_draws(posterior, draws):
    mean, std = posterior.predict()
    return (draws - mean) / std


def test_draws_of_many_arms_have_the_exact_mean_and_deviation_at_every_arm():
    posterior = learned(DistinctArmsPosterior(PRIOR, RIDGE))
    draws = posterior.sample(np.random.default_rng(5), size=600)
    assert draws.shape == (600, MOST_JOINT + 4)
    scaled = exact_draws(posterior, draws)
    # 4,100 arms: the largest of their means and variances stays below 5.5 standard errors but once in 5,000 times.
    assert np.abs(scaled.mean(axis=0)).max() < 5.5 / 600**0.5
    assert np.abs((scaled**2).mean(axis=0) - 1.0).max() < 5.5 * (2.0 / 600) ** 0.5
    # What is lost is the covariance of residuals, which is small where pivots are near.
    lost = np.abs(np.cov(draws[:, SOME].T) - posterior.covariance(SOME))
    assert lost.max() < 0.25


def covariance_of_draws(posterior):
    """Covariance of the draws at the first arms, from the span, `(60, 60)`."""
    span = posterior._spanned()
    rows, seen = span.rows(np.arange(60)), span.rows(posterior._arms)
    return (
        rows @ rows.T
        + np.diag(span.left_out[:60])
        - rows @ seen.T @ posterior._root.T @ posterior._root @ (seen @ rows.T)
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_a_draw_loses_is_the_correlation_of_residuals_alone(seed):
    """Of an arm that was played nothing is lost, also after arms were forgotten."""
    posterior = learned(DistinctArmsPosterior(PRIOR, RIDGE), seed=seed)
    posterior._spanned()
    learned(posterior, 10, seed + 9)  # some follow the last full block
    for arm in [arm for arm in range(25) if posterior.plays[arm] == 1]:
        posterior.forget(arm, float(posterior._average[arm]))
    exact, drawn = posterior.covariance(np.arange(60)), covariance_of_draws(posterior)
    np.testing.assert_allclose(drawn.diagonal(), exact.diagonal(), rtol=0, atol=1e-9)
    known = np.flatnonzero(posterior.plays)
    np.testing.assert_allclose(drawn[known], exact[known], rtol=0, atol=1e-9)
    left = posterior._spanned().left_out[:60]
    assert (np.abs(drawn - exact) <= np.sqrt(np.outer(left, left)) + 1e-9).all()
    assert left[known].max() == 0.0


def test_a_draw_does_not_depend_on_earlier_draws_nor_on_copies():
    often, seldom = (DistinctArmsPosterior(Prior(ROUGH, PRIOR.points), RIDGE) for _ in range(2))
    for number in range(6):
        for posterior in (often, seldom):
            learned(posterior, 9, number)
        aside = often.copy()
        learned(aside, 3, 100 + number).append(3000 + number, 1.0)
        first = aside.sample(np.random.default_rng(0))
        often.sample(np.random.default_rng(0))
        assert aside.sample(np.random.default_rng(0)).tobytes() == first.tobytes()
    mine, other = (posterior.sample(np.random.default_rng(1)) for posterior in (often, seldom))
    assert mine.tobytes() == other.tobytes()
    chosen = seldom.sample(np.random.default_rng(1), np.arange(2000, 4000))
    assert chosen.shape == (1, 2000)


def test_up_to_the_limit_draws_come_from_the_whole_matrix():
    few = DistinctArmsPosterior(Prior(ROUGH, PRIOR.points[:300]), RIDGE)
    learned(few).sample(np.random.default_rng(0))
    assert few._span is None
    listed = learned(DistinctArmsPosterior(PRIOR, RIDGE))
    listed.sample(np.random.default_rng(0), np.arange(50))  # their own covariance
    assert listed._span is None


@pytest.mark.parametrize(("arms", "threads"), [(CROWD, 1), (nr.Arms.grid(0, 1, 20), 2)])
def test_decisions_on_many_arms_use_one_blas_thread(arms, threads, monkeypatch):
    used, decide = [], state.decide

    def recorded(*given, **named):
        used.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return decide(*given, **named)

    monkeypatch.setattr(state, "decide", recorded)
    with threadpool_limits(2, user_api="blas"):
        nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1)).ask(exclude=[0])  # No plain round.
    assert set(used) == {threads}
