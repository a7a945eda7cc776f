"""The climb from several starts."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.domains.search.boxes import AcquisitionFunction, PointSearch
from nilregret.domains.search.quasi_newton import ascend
from nilregret.gp import PointBelief, PointPosterior
from nilregret.gp.choice import posterior_at_points
from nilregret.study.stored import portable


def test_slopes_beyond_all_numbers_are_climbed_all_the_same():
    """Where nothing is uncertain a standard deviation has slopes that are infinite, or none at all."""

    def slopes(points, _):
        gradients = -2.0 * (points - 0.5)
        gradients[0] = [np.inf, -1e300]
        gradients[1] = np.nan
        return -np.sum((points - 0.5) ** 2, axis=1), gradients

    starts = np.array([[0.0, 0.3], [0.4, 0.4], [0.1, 0.9]])
    at, value, _ = ascend(slopes, starts, radius=0.1, reach=1.0, best=-1.0, unit=1.0, evaluations=1)
    assert np.isfinite(at).all()
    assert np.isfinite(value).all()


def test_a_side_holds_a_climb_only_where_the_slope_leads_out():
    """The maximum lies on the side x = 1; a start in the corner (0, 0) climbs away from both of its sides."""
    top = np.array([1.4, 0.3])

    def slopes(points, _):
        return -np.sum((points - top) ** 2, axis=1), -2.0 * (points - top)

    starts = np.array([[0.0, 0.0], [1.0, 1.0], [0.2, 0.9]])
    at, value, _ = ascend(slopes, starts, radius=0.1, reach=9.0, best=-np.inf, unit=1.0, evaluations=40)
    best = int(value.argmax())
    np.testing.assert_allclose(at[best], [1.0, 0.3], atol=1e-3)
    corner = ascend(slopes, starts[:1], radius=0.1, reach=9.0, best=-np.inf, unit=1.0, evaluations=40)[0]
    np.testing.assert_allclose(corner, [[1.0, 0.3]], atol=1e-3)


@pytest.mark.parametrize("seed", [1878, 2196])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_singular_matrix_of_curvatures_ends_no_search(seed):
    """Slopes of such different sizes came from the score of `auto` where trials lay very close together."""
    rng = np.random.default_rng(seed)
    sizes = 10.0 ** rng.uniform(-16, 16, 2)

    def slopes(points, _):
        value = -(sizes * (points - 0.3) ** 2).sum(axis=1) - np.abs(points).sum(axis=1) * rng.random()
        return value, -2 * sizes * (points - 0.3) * 10.0 ** rng.uniform(-9, 9, points.shape)

    starts = rng.random((2, 2))
    at, _, _ = ascend(slopes, starts, radius=0.1, reach=1e30, best=-1e300, unit=1.0, evaluations=30)
    assert np.isfinite(at).all()


def known_posterior(n, kernel=None):
    rng = np.random.default_rng(n)
    points = rng.uniform(size=(n, 6))
    posterior = PointPosterior(nr.Matern(2.5, 0.5) if kernel is None else kernel, 6, 1e-3)
    posterior.extend(points, np.sin(4.0 * points[:, 0]) - points[:, 1] ** 2)
    return posterior


@pytest.mark.parametrize("kernel", [nr.Matern(2.5, 0.5), nr.SquaredExponential([0.3, 0.5, 1, 2, 3, 4]), nr.Linear()])
def test_rough_predictions_have_the_exact_mean_and_no_smaller_deviation(kernel):
    posterior = known_posterior(320, kernel)
    points = np.vstack([np.random.default_rng(1).uniform(size=(50, 6)), posterior.points[:9]])
    mean, std = posterior.predict(points)
    rough_mean, rough_std = posterior.predict_roughly(points)
    np.testing.assert_allclose(rough_mean, mean, atol=1e-9)
    assert (rough_std >= std - 1e-7).all()
    assert (rough_std <= np.sqrt(kernel.diagonal(points))).all()


def test_few_observations_sketches_and_mixtures_have_no_rough_predictions():
    assert PointBelief(known_posterior(30), apart=False).predict_roughly is None
    large = known_posterior(320)
    assert PointBelief(large, apart=False).predict_roughly is not None
    bank = posterior_at_points(nr.Linear(), 6, 1e-3, terms=None)
    bank.extend(large.points, large.average)
    assert PointBelief(bank, apart=False).predict_roughly is None


def test_a_search_that_ranks_roughly_finds_as_good_a_point():
    """Only ranked roughly: every value that counts is exact, so the best point is as good as without it."""
    box, search = nr.Box([0] * 6, [1] * 6), PointSearch(mutations=256, incumbents=5)
    candidates = search.candidate_points(box, 0)
    for n in (320, 400):
        posterior = known_posterior(n)

        def score(moments):
            return moments[0] + moments[1]

        def values(points, posterior=posterior):
            return score(posterior.predict(points))

        def slopes(points, posterior=posterior):
            at = posterior.gradients(points)
            return at.mean + at.std, at.mean_gradient + at.std_gradient

        exact = AcquisitionFunction(values, slopes)
        rough = exact._replace(rough=lambda points, posterior=posterior: score(posterior.predict_roughly(points)))
        found = [
            search.maximize(
                each, box, candidates=candidates, scores=values(candidates), incumbents=posterior.points[:5],
                rng=lambda: np.random.default_rng(0),
            )
            for each in (exact, rough)
        ]  # fmt: skip
        assert found[1].evaluations < 0.5 * found[0].evaluations
        assert found[1].value >= found[0].value - 1e-6


def test_pending_trials_shrink_the_rough_deviation_and_leave_the_mean():
    belief = PointBelief(known_posterior(320), apart=True)
    points = np.random.default_rng(2).uniform(size=(20, 6))
    belief.put_all(points[:3], [None] * 3)
    assert belief.spread is not belief.observed
    mean, std = belief.predict_roughly(points)
    np.testing.assert_allclose(mean, belief.mean(points), atol=1e-9)
    assert (std >= belief.predict(points)[1] - 1e-7).all()


def test_climbs_by_related_points_have_exact_means_and_deviations_between_the_exact_and_those_of_these_points():
    exact, starts = known_posterior(320), np.random.default_rng(3).uniform(size=(7, 6))
    given, around = exact.related(starts, 30), np.concatenate([starts, starts + 0.05])
    part = PointPosterior(exact.kernel, 6, 1e-3)
    part.extend(exact.points[given.near], np.zeros(30))
    mean, std = exact.predict_roughly(around, given=given)
    exact_mean, least = exact.predict(around)
    np.testing.assert_allclose(mean, exact_mean, atol=1e-9)
    np.testing.assert_allclose(std[:7], least[:7], rtol=1e-4)
    assert (std[7:] > least[7:]).all()
    assert (std[7:] < part.predict(around)[1][7:]).all()
    at, step = exact.gradients(around, given=given), 1e-6
    np.testing.assert_allclose(at.std, std, rtol=1e-9)
    for column, moved in enumerate(step * np.eye(6)):
        high, low = (exact.predict_roughly(around + sign * moved, given=given) for sign in (1, -1))
        np.testing.assert_allclose(at.mean_gradient[:, column], (high[0] - low[0]) / (2 * step), atol=1e-5)
        np.testing.assert_allclose(at.std_gradient[:, column], (high[1] - low[1]) / (2 * step), atol=1e-4)


SPACES = {
    "box": nr.Box([0] * 4, [1] * 4),
    "mixed": nr.Space(a=nr.Float(0, 1), b=nr.Float(1, 9, log=True), c=nr.Int(0, 40), d=nr.Choice("x", "y")),
}


class TestRelatedPoints:
    """A search that climbs by few related points, on studies of 320 trials."""

    def played(self, policy, *, rounds=8):
        """Returns a study with 320 trials and so many rounds more, two of them open."""
        study, rng = nr.Study(policy, seed=3), np.random.default_rng(0)
        domain = policy.domain
        known = domain.lower + rng.uniform(size=(320, domain.dimension)) * (domain.upper - domain.lower)
        for point in domain.snap(known):
            study.add(point, self.reward(point))
        self.go_on(study, rounds)
        return study

    def reward(self, point):
        return float(np.round(-np.sum((point[:3] - 0.4) ** 2) + 0.01 * np.cos(40.0 * point[0]), 6))

    def go_on(self, study, rounds):
        for _ in range(rounds):
            study.ask()
            for trial in [trial for trial in study.trials if trial.state == "pending"][:-2]:
                study.tell(trial, self.reward(trial.point))

    def climbing(self, space, related):
        policy = nr.auto(SPACES[space], parallel=3)
        search = nr.slots.PointSearch(mutations=64, incumbents=5, apart=0.001, related=related)
        return policy.using(search=search, refit=None)

    @pytest.mark.parametrize("space", SPACES)
    def test_a_replayed_study_decides_and_explains_the_same(self, space):
        study = self.played(self.climbing(space, 30), rounds=5)
        again = portable(study)()  # a replay of its record
        for each in (study, again):
            self.go_on(each, 3)
        for one, other in zip(study.trials, again.trials, strict=True):
            np.testing.assert_array_equal(one.point, other.point)
        assert all(again.explain(trial.number).repeated for trial in again.trials[-6:])

    def test_the_point_found_is_valued_by_all_trials(self, monkeypatch):
        found = []
        maximize = PointSearch.maximize

        def watched(self, surface, *args, **more):
            result = maximize(self, surface, *args, **more)
            found.append((result.value, float(surface.values(result.point[None])[0])))
            return result

        monkeypatch.setattr(PointSearch, "maximize", watched)
        some, every = (self.played(self.climbing("box", related)) for related in (30, 0))
        assert found
        assert all(value == pytest.approx(exact, abs=1e-9) for value, exact in found)
        assert [trial.point.tolist() for trial in some.trials] != [trial.point.tolist() for trial in every.trials]

    def test_there_must_be_more_than_ten_times_as_many_points(self):
        some, every = (self.played(self.climbing("box", related)) for related in (33, 0))
        np.testing.assert_array_equal([trial.point for trial in some.trials], [trial.point for trial in every.trials])

    def test_a_search_on_record_without_the_word_climbs_by_all(self):
        assert "related" not in nr.serialize.to_plain(PointSearch())
        assert nr.serialize.from_plain({"type": "PointSearch"}).related == 0
        assert nr.gp_ucb(SPACES["box"], nr.Matern(2.5, 0.5), noise=0.1).search.related == 0
