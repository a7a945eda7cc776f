"""Thompson sampling: draws of the right distribution on arms and boxes, widened by v_t, and the grid of the theorem."""

import numpy as np
import pytest

import nilregret as nr
from nilregret._utils.randomness import Randomness
from nilregret.domains.search.arms import best_on_grid
from nilregret.gp import PointPosterior, sample_path
from nilregret.policy.engines.base import Question
from nilregret.policy.engines.rounds import PointRound
from nilregret.slots.scores import ThompsonSample

from .marks import nightly

ARMS = nr.Arms.grid(0, 1, 12)
KERNEL = nr.SquaredExponential(0.3)
SEEN = [(1, 0.3), (6, 1.0), (9, 0.2), (6, 0.8)]


def played(policy, seed):
    study = nr.Study(policy, seed=seed)
    for arm, reward in SEEN:
        study.add(ARMS.points[arm], reward)
    return study.ask()


def probabilities_of_being_best(width, regularization, draws=200_000):
    """P(arm is the argmax of a draw from GP(mu, width^2 cov)), by brute force."""
    arms = [arm for arm, _ in SEEN]
    K = KERNEL(ARMS.points, ARMS.points)
    solve = np.linalg.solve(K[np.ix_(arms, arms)] + regularization * np.eye(len(arms)), K[arms])
    mean = solve.T @ np.array([reward for _, reward in SEEN])
    cov = K - K[arms].T @ solve
    root = np.linalg.cholesky(cov + 1e-9 * np.eye(12))
    samples = mean + width * np.random.default_rng(0).standard_normal((draws, 12)) @ root.T
    return np.bincount(samples.argmax(axis=1), minlength=12) / draws


@pytest.mark.parametrize("norm_bound", [0.5, *nightly(3.0)])
def test_arms_are_played_with_the_probability_that_they_are_best(norm_bound):
    """Every frequency within 4.5 standard errors: fails by chance less than once in 10,000 times."""
    policy = nr.gp_ts(ARMS, KERNEL, noise=0.2, norm_bound=norm_bound, regularization=0.1)
    draws = 700
    arms = [played(policy, seed).arm for seed in range(draws)]
    study = nr.Study(policy)
    for arm, reward in SEEN:
        study.add(ARMS.points[arm], reward)
    wanted = probabilities_of_being_best(study.width, 0.1)
    error = np.sqrt(np.maximum(wanted * (1 - wanted), 1e-3) / draws)
    np.testing.assert_array_less(np.abs(np.bincount(arms, minlength=12) / draws - wanted), 4.5 * error)


@pytest.mark.parametrize("draws", [50, *nightly(200)])
def test_a_box_is_played_like_its_arms(draws):
    """The distribution of the argmax of a path: within 4.5 standard errors of the joint samples' in each quarter."""
    box = nr.Box([0.0], [1.0])
    fine = nr.Arms.grid(0, 1, 201)
    frequencies = []
    for domain in (box, fine):
        policy = nr.gp_ts(domain, KERNEL, noise=0.2, norm_bound=0.5, regularization=0.1)
        points = []
        for seed in range(draws):
            study = nr.Study(policy, seed=seed)
            for arm, reward in [(20, 0.3), (110, 1.0), (160, 0.2)]:
                study.add(fine.points[arm], reward)
            points.append(study.ask().point[0])
        frequencies.append(np.histogram(points, bins=[0, 0.25, 0.45, 0.65, 1.0])[0] / draws)
    a, b = frequencies
    p = 0.5 * (a + b)
    error = np.sqrt(np.maximum(p * (1 - p), 2e-3) * 2 / draws)
    np.testing.assert_array_less(np.abs(a - b), 4.5 * error)


def test_widening_a_path_is_affine():
    posterior = PointPosterior(KERNEL, 1, 0.1)
    for x, y in [(0.1, 1.0), (0.7, -0.4), (0.5, 0.2)]:
        posterior.append([x], y)
    path = sample_path(posterior, np.random.default_rng(3))
    wide = path.widened(2.5)
    grid = np.linspace(0, 1, 40)[:, None]
    mean = posterior.mean(grid)
    np.testing.assert_allclose(wide(grid), mean + 2.5 * (path(grid) - mean), atol=1e-10)
    value, gradient = wide.slope(np.array([0.33]))
    step = 1e-6
    difference = (wide(np.array([[0.33 + step]])) - wide(np.array([[0.33 - step]]))) / (2 * step)
    assert gradient[0] == pytest.approx(difference[0], rel=1e-5)
    assert value == pytest.approx(wide(np.array([[0.33]]))[0])


def test_the_grid_of_the_theorem():
    """D_t has B L r d t^2 points a side; what is played lies on it, next to the maximum of the same path."""
    box = nr.Box([-1.0, 0.0], [1.0, 1.0])
    kernel = nr.SquaredExponential(0.5)
    for t in range(1, 6):
        study = nr.Study(nr.gp_ts(box, kernel, noise=0.1, norm_bound=1.5, lipschitz=2.0), seed=1)
        free = nr.Study(nr.gp_ts(box, kernel, noise=0.1, norm_bound=1.5), seed=1)
        for point in np.random.default_rng(0).uniform(box.lower, box.upper, (t - 1, 2)):
            for each in (study, free):
                each.add(point, float(np.sin(3 * point[0]) - point[1]))
        trial, other = study.ask(), free.ask()
        per_side = np.ceil(1.5 * 2.0 * 2.0 * 2 * t**2)
        place = (trial.point - box.lower) / (box.upper - box.lower) * (per_side - 1)
        np.testing.assert_allclose(place, np.round(place), atol=1e-9)
        assert (np.abs(trial.point - other.point) <= (box.upper - box.lower) / (per_side - 1) + 1e-12).all()


def decision_set(box, per_side):
    sides = [np.linspace(low, high, per_side) for low, high in zip(box.lower, box.upper, strict=True)]
    return np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, box.dimension)


@pytest.mark.parametrize("per_side", [5, *nightly(3, 9)])
def test_what_is_played_is_the_best_of_the_decision_set(per_side):
    """By brute force: the path that a round draws, at every point of D_t."""
    box = nr.Box([-1.0, 0.0], [1.0, 1.0])
    kernel = nr.SquaredExponential([0.3, 0.25])
    policy = nr.gp_ts(
        box,
        kernel,
        noise=0.1,
        norm_bound=1.0,
        grid=per_side,
        regularization=0.01,
        search=nr.slots.PointSearch(candidates=64),
    )
    for seed in range(3):
        study = nr.Study(policy, seed=seed)
        for t in range(1, 13):
            state = study.replica.current()
            state._update()
            randomness, reward = Randomness(seed, t - 1), state.reward
            question = Question(
                t, state.bounds(), reward.posterior.units, None, None, reward.data.best_reward, randomness, policy.score
            )
            trial = study.ask()
            path = policy.score.on_points(
                PointRound(state.outputs.engine, reward.posterior.belief, question, np.zeros((1, 2)))
            )
            points = decision_set(box, per_side)
            assert path.values(trial.point[None])[0] == pytest.approx(path.values(points).max(), rel=1e-9)
            study.tell(trial, float(np.sin(3 * trial.point[0]) - trial.point[1]))


def test_a_decision_set_too_large_to_look_at_whole_is_climbed():
    """Against brute force: on grids coarser than the peaks are wide, and finer."""
    box = nr.Box([-1.0, 0.0], [1.0, 2.0])
    rng = np.random.default_rng(2)
    candidates = nr.slots.PointSearch().candidate_points(box, 0)
    for per_side in (7, 25, 100):
        points = decision_set(box, per_side)
        for _ in range(10):
            path = sample_path(PointPosterior(nr.SquaredExponential(0.4), 2, 1.0), rng, waves=64)
            top = candidates[path(candidates).argmax()]
            found = best_on_grid(path, box, top, candidates, per_side, most=1)
            assert path(found[None])[0] == pytest.approx(path(points).max(), rel=1e-9)
            assert np.abs(points - found).max(axis=1).min() < 1e-12  # it is one of them


def test_decision_sets_in_many_dimensions_and_of_the_finest_grids():
    def peak(x):
        return -np.abs(x - 0.3).sum(axis=1)

    for d, count in ((6, 101.0), (20, 11), (2, 1e12 + 1)):
        cube = nr.Box(np.zeros(d), np.ones(d))
        candidates = np.random.default_rng(0).uniform(size=(50, d))
        np.testing.assert_allclose(best_on_grid(peak, cube, np.full(d, 0.9), candidates, count), 0.3, rtol=1e-9)
    here = np.array([0.3])
    np.testing.assert_array_equal(best_on_grid(peak, nr.Box([0.0], [1.0]), here, here[None], 1e300), here)


def test_the_decision_sets_follow_the_guess_of_the_norm():
    box = nr.Box([0.0], [1.0])
    kernel = nr.SquaredExponential(0.2)
    policy = nr.gp_ts(box, kernel, noise=0.01, guess_norm=True, lipschitz=1.0, regularization=1e-4)
    study = nr.Study(policy, seed=0)
    for _ in range(4):
        trial = study.ask()
        study.tell(trial, 30.0 * np.sin(6.0 * trial.point[0]))
    guess = study.norm_bounds[-1][1]
    assert guess > 16.0
    place = study.ask().point[0] * (np.ceil(guess * 1.0 * 5**2) - 1)
    assert place == pytest.approx(round(place), abs=1e-9)


def test_the_lipschitz_constant_of_the_kernel():
    """L of section 4.2 by differences of the kernel; functions of norm 1 are no steeper."""
    box = nr.Box([0.0, 0.0], [1.0, 2.0])
    for kernel in (nr.Matern(1.5, [0.5, 0.2], scale=2.0), nr.SquaredExponential(0.3) + nr.kernels.Periodic(1.5).on(1)):
        policy = nr.gp_ts(box, kernel, noise=0.1, norm_bound=3.0, lipschitz="kernel")
        slope = policy.score.grid / (3.0 * 2.0 * 2)
        step = 1e-4 * np.eye(2)
        here = np.array([[0.4, 0.7]])
        slopes = [(2.0 * kernel.diagonal(here)[0] - 2.0 * kernel(here + h, here)[0, 0]) / 1e-8 for h in step]
        assert slope == pytest.approx(np.sqrt(max(slopes)), rel=1e-2)
        points = decision_set(box, 60)
        centres = np.random.default_rng(0).uniform(box.lower, box.upper, (10, 2))
        weights = np.random.default_rng(1).standard_normal(10)
        f = kernel(points, centres) @ weights / np.sqrt(weights @ kernel(centres, centres) @ weights)
        assert np.abs(np.diff(f.reshape(60, 60), axis=1)).max() <= slope * 2.0 / 59
    with pytest.raises(nr.errors.InvalidInput, match="nu > 1"):
        nr.gp_ts(box, nr.Matern(0.5), noise=0.1, norm_bound=1.0, lipschitz="kernel")


def test_thompson_with_contexts_and_on_spaces():
    space = nr.Space(x=nr.Float(0, 1), kind=nr.Choice("a", "b"))
    study = nr.Study(nr.gp_ts(space, nr.Matern(2.5, 0.4), noise=0.05, norm_bound=1.0), seed=0)
    for _ in range(15):
        trial = study.ask()
        study.tell(trial, -((trial.parameters["x"] - 0.7) ** 2) + (trial.parameters["kind"] == "b"))
    assert study.best().parameters["kind"] == "b"
    contexts = nr.Box([0.0], [1.0])
    policy = nr.gp_ts(
        nr.Box([0.0], [1.0]), nr.SquaredExponential([0.3, 0.3]), noise=0.05, norm_bound=0.3, context=contexts,
        regularization=0.01,
    )  # fmt: skip
    study = nr.Study(policy, seed=0)
    rng = np.random.default_rng(0)
    late = []
    for t in range(40):
        z = rng.uniform(size=1)
        trial = study.ask(z)
        study.tell(trial, float(-((trial.point[0] - z[0]) ** 2)))
        if t >= 25:
            late.append(abs(trial.point[0] - z[0]))
    assert np.mean(late) < 0.2  # a third if it played at random, .13 on average over seeds


@pytest.mark.parametrize(
    "kernel",
    [
        nr.SquaredExponential(0.2).on(0) * nr.SquaredExponential(0.2).on(1),
        nr.Matern(2.5, lengthscale=0.2).on(1) * nr.SquaredExponential(0.2).on(0),
        nr.SquaredExponential([0.3, 0.3]) * nr.Matern(2.5, lengthscale=[0.3, 0.3]),
    ],
)
def test_a_path_of_a_product_varies_alike_in_every_direction(kernel):
    """The covariance over space of single paths, along both diagonals; spread about 0.04, by waves and points."""
    here = np.random.default_rng(1).uniform(0.0, 200.0, (2000, 2))
    for seed in range(2):
        path = sample_path(PointPosterior(kernel, 2, 1.0), np.random.default_rng(seed))
        values = path(here)
        for step in ([0.3, 0.3], [0.3, -0.3]):
            seen = float(np.mean(values * path(here + step)))
            wanted = kernel(np.zeros((1, 2)), np.array([step]))[0, 0]
            assert abs(seen - wanted) < 0.15


@pytest.mark.parametrize("most", [1, None])
def test_on_a_space_the_grid_is_of_points_that_stand_for_parameters(most, monkeypatch, tmp_path):
    if most is not None:  # as where the grid is too large to be looked at whole
        monkeypatch.setattr("nilregret.domains.search.arms.best_on_grid.__kwdefaults__", {"most": most})
    space = nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 4), kind=nr.Choice("a", "b"))
    search = nr.slots.PointSearch(candidates=8, around=4, starts=1, evaluations=2)
    policy = nr.gp_ucb(space, nr.Matern(2.5, [0.3] * 4), noise=0.1, search=search).using(score=ThompsonSample(grid=3))
    for seed in range(2):
        url = f"sqlite:///{tmp_path}/{seed}.db"
        study = nr.Study(policy, seed=seed, storage=url)
        for _ in range(2):
            trial = study.ask()
            np.testing.assert_array_equal(space.snap(trial.point[None])[0], trial.point)
            study.tell(trial, 0.5)
        assert len(nr.Study.open(storage=url).trials) == 2
