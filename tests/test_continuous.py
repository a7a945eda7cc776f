"""Policies on boxes, spaces and contexts; the search; Theorem 2; refits."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import nilregret as nr
from nilregret._utils.process_setting import OneThread
from nilregret._utils.randomness import Randomness
from nilregret.domains.search.boxes import AcquisitionFunction, PointSearch
from nilregret.domains.search.designs import mutated
from nilregret.domains.search.quasi_newton import ascend
from nilregret.domains.search.trust_region import tops_of_parabolas
from nilregret.policy.engines import Question
from nilregret.policy.engines.rounds import PointRound
from nilregret.slots.envelope import CompactBayes
from nilregret.slots.refit import Refit
from nilregret.slots.widths.slopes import derivative_tail

from .marks import nightly, thinned

BOX = nr.Box([0.0, -1.0], [1.0, 1.0])
SPACE = nr.Space(x=nr.Float(1e-3, 10.0, log=True), n=nr.Int(1, 100), kind=nr.Choice("a", "b", "c"))
LINE = nr.Arms.grid(0, 1, 30)
CASES = {
    "box": dict(domain=BOX, kernel=nr.Matern(2.5, [0.3, 0.6])),
    "space": dict(domain=SPACE, kernel=nr.SquaredExponential(0.4)),
    "box, contexts in a box": dict(domain=BOX, kernel=nr.Matern(2.5, 0.5), context=nr.Box([0.0], [2.0])),
    "arms, contexts in a box": dict(domain=LINE, kernel=nr.Matern(2.5, 0.5), context=nr.Box([0.0], [2.0])),
    "arms, finitely many contexts": dict(domain=LINE, kernel=nr.Matern(1.5, 0.5), context=nr.Arms([0.0, 1.0, 2.0])),
    "space, contexts of parameters": dict(
        domain=SPACE, kernel=nr.Matern(2.5, 0.5), context=nr.Space(day=nr.Choice("work", "rest"))
    ),
    "box, refits": dict(
        domain=nr.Box([0.0, 0.0], [1.0, 20.0]), kernel=nr.Matern(2.5, [0.5, 9.0]), refit=Refit(every=6)
    ),
    "arms, refits": dict(domain=LINE, kernel=nr.Matern(2.5, 0.5), refit=Refit(every=5, prior="none")),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def policy(request):
    return nr.gp_ucb(noise=0.1, scale=0.2, search=PointSearch(candidates=128, around=8, evaluations=6), **request.param)


def context_of(policy, number):
    if policy.context is None:
        return None
    if isinstance(policy.context, nr.Space):
        return {"day": ("work", "rest")[number % 2]}
    return [float(number % 3)]


def reward(trial):
    context = 0.0 if trial.context is None else trial.context.sum()
    noise = np.random.default_rng([5, trial.number]).normal(scale=0.1)
    return float(-((trial.point - 0.3 - 0.2 * context) ** 2).sum() + noise)


def play(study, rounds):
    for _ in range(rounds):
        trial = study.ask(context_of(study.policy, len(study.trials)))
        study.tell(trial, reward(trial))
    return [(trial.point.tobytes(), trial.arm) for trial in study.trials]


@pytest.mark.parametrize("stops", [(9,), *nightly(((0, 1, 7, 13),))], ids=len)
def test_resuming_continues_to_the_last_bit(policy, stops, tmp_path):
    url = f"sqlite:///{tmp_path}/a.db"
    straight = play(nr.Study(policy, seed=4), 24)
    for stop in stops:
        name = f"stop at {stop}"
        first = nr.Study(policy, seed=4, storage=url, name=name)
        play(first, stop)
        if stop:
            first.best()
        assert play(nr.Study.open(storage=url, name=name), 24 - stop) == straight


def in_groups(study, groups):
    """Answers that come in groups: added ones, trials asked for together, a failure among them."""
    for group in range(len(study.trials) // 12, groups):
        context = context_of(study.policy, group)
        asked = study.ask(context, count=3)
        rng = np.random.default_rng([9, group])
        if isinstance(study.policy.domain, nr.Arms):
            added = study.policy.domain.points[rng.integers(0, len(study.policy.domain), 9)]
        else:
            low, high = study.policy.domain.lower, study.policy.domain.upper
            added = rng.uniform(low, high, (9, len(low)))
        if isinstance(study.policy.domain, nr.Space):
            added = study.policy.domain.snap(added)
        for point in added:
            study.add(point, float(-np.sum((point - 0.3) ** 2)), context=context)
        study.fail(asked[0], "no")
        for trial in reversed(asked[1:]):
            study.tell(trial, reward(trial))
    means = study.predict([trial.point for trial in study.trials[:20]], context=context_of(study.policy, 0))[0]
    return [trial.point.tobytes() for trial in study.trials], study.information_gain, means.tolist()


GROUPED = {
    "box": CASES["box"],
    "arms, contexts in a box": CASES["arms, contexts in a box"],
    "space, a fit after three groups": CASES["space"] | dict(refit=Refit(every=30)),
    "arms, a fit after three groups": CASES["arms, refits"] | dict(refit=Refit(every=30)),
}


@pytest.mark.parametrize("name", thinned(GROUPED, "arms, contexts in a box", "space, a fit after three groups"))
def test_groups_of_answers_resume_to_the_last_bit(name, tmp_path):
    """Answers that wait together are taken in together: a replay, which may fit later, groups them alike."""
    search = PointSearch(candidates=128, around=8, evaluations=6)
    policy = nr.gp_ucb(noise=0.1, scale=0.2, search=search, **GROUPED[name])
    url = f"sqlite:///{tmp_path}/a.db"
    straight = in_groups(nr.Study(policy, seed=4), 5)
    for stop in (1, 4):
        name = f"stop at {stop}"
        in_groups(nr.Study(policy, seed=4, storage=url, name=name), stop)
        assert in_groups(nr.Study.open(storage=url, name=name), 5) == straight


@pytest.mark.parametrize("seed", [0, *nightly(1, 2)])
@pytest.mark.parametrize(
    "space",
    [
        nr.Space(a=nr.Choice("a", "b", "c"), b=nr.Choice(1, 2, 3), c=nr.Choice(True, False)),
        nr.Space(a=nr.Choice("a", "b", "c", "d"), n=nr.Int(0, 9)),
        nr.Space(m=nr.Int(0, 5), n=nr.Int(0, 9)),
        nr.Space(n=nr.Int(3, 3), x=nr.Float(0, 1), k=nr.Choice("only")),
    ],
    ids=["choices", "choice and number", "numbers", "one value"],
)
def test_resuming_where_everything_ties(space, seed, tmp_path):
    """Symmetry makes many scores equal but for rounding, which differs between a live and a resumed study."""
    policy = nr.gp_ucb(space, nr.Matern(2.5, 0.5), noise=0.1, scale=0.2)
    live = nr.Study(policy, seed=seed)
    for _ in range(16):
        resumed = nr.Study(policy, seed=seed, storage=f"sqlite:///{tmp_path}/a.db")
        trials = live.ask(), resumed.ask()
        assert trials[0].parameters == trials[1].parameters
        for study, trial in zip((live, resumed), trials, strict=True):
            study.tell(trial, 0.0)


def test_looking_changes_nothing_and_order_of_arrival_neither(policy):
    quiet, curious = nr.Study(policy, seed=1), nr.Study(policy, seed=1)
    for turn in range(8):
        context = context_of(policy, turn)
        left, right = quiet.ask(context, count=2), curious.ask(context, count=2)
        assert [t.point.tolist() for t in left] == [t.point.tolist() for t in right]
        for trial in left:
            quiet.tell(trial, reward(trial))
        for trial in reversed(right):
            curious.tell(trial, reward(trial))
            curious.best()
            curious.predict(trial.parameters or trial.point, context=context)
    assert quiet.information_gain == curious.information_gain > 0.0


def test_round_trips_through_json(policy):
    again = nr.Policy.from_json(policy.to_json())
    assert again == policy
    assert play(nr.Study(again, seed=2), 8) == play(nr.Study(policy, seed=2), 8)


def test_points_lie_in_the_domain_and_bounds_around_the_mean(policy):
    study = nr.Study(policy, seed=0)
    play(study, 15)
    for trial in study.trials:
        if isinstance(policy.domain, nr.Space):
            assert np.array_equal(policy.domain.snap(trial.point[None])[0], trial.point)
            np.testing.assert_allclose(policy.domain.encode(trial.parameters), trial.point, atol=1e-9)
        elif isinstance(policy.domain, nr.Box):
            assert ((policy.domain.lower <= trial.point) & (trial.point <= policy.domain.upper)).all()
        with pytest.raises(ValueError, match="read-only"):
            trial.point[0] = 0.0
    context = context_of(policy, 0)
    points = np.array([trial.point for trial in study.trials])
    mean, std = study.predict(points, context=context)
    lower, upper = study.bounds(points, context=context)
    assert (lower < mean).all()
    assert (mean < upper).all()
    assert (std > 0).all()
    assert study.best().reward is not None


def test_it_learns(policy):
    study = nr.Study(policy, seed=3)
    play(study, 40)
    losses = [-reward(trial) for trial in study.trials]
    assert np.mean(losses[-10:]) < 0.9 * np.mean(losses[:10]) + 0.05


def test_failed_points_are_not_asked_for_again():
    study = nr.Study(nr.gp_ucb(BOX, nr.Matern(2.5, 0.5), noise=0.1), seed=0)
    play(study, 5)
    failed = [study.fail(study.ask(), "no") for _ in range(4)]
    later = [study.ask() for _ in range(3)]
    span = BOX.upper - BOX.lower
    for trial in later:
        assert all(np.linalg.norm((trial.point - other.point) / span) > 0.01 for other in failed)
    study.add(failed[0].point, 100.0)
    assert np.linalg.norm((study.ask().point - failed[0].point) / span) < 0.3


def test_a_constant_context_is_no_context():
    plain = nr.gp_ucb(LINE, nr.Matern(2.5, 0.3), noise=0.1, scale=0.2)
    same = nr.gp_ucb(LINE, nr.Matern(2.5, 0.3), noise=0.1, scale=0.2, context=nr.Arms([7.0]))
    points = nr.gp_ucb(LINE, nr.Matern(2.5, 0.3), noise=0.1, scale=0.2, context=nr.Box([6.0], [8.0]), width="compact")
    studies = [nr.Study(policy, seed=1) for policy in (plain, same)]
    for _ in range(30):
        arms = []
        for study in studies:
            trial = study.ask(None if study is studies[0] else [7.0])
            study.tell(trial, float(np.sin(7 * trial.point[0])))
            arms.append(trial.arm)
        assert arms[0] == arms[1]
    other = nr.Study(points)
    for trial in studies[0].trials:
        other.add(trial.point, trial.reward, context=[7.0])
    np.testing.assert_allclose(other.predict(context=[7.0]), studies[0].predict(), atol=1e-8)


def test_theorem_2_as_printed():
    d, r, a, b, delta = 3, 2.0, 1.5, 4.0, 0.05
    width = CompactBayes(dimension=d, side=r, log_a=math.log(a), b=b, delta=delta)
    for t in (1, 2, 10, 1000):
        beta = 2 * math.log(2 * t**2 * math.pi**2 / (3 * delta)) + 2 * d * math.log(
            t**2 * d * b * r * math.sqrt(math.log(4 * d * a / delta))
        )
        assert width.width(t, None) == pytest.approx(math.sqrt(beta), rel=1e-14)
    policy = nr.gp_ucb(nr.Box([0, 0, 0], [1, 2, 1]), nr.Matern(2.5, 0.5), noise=0.1, a=a, b=b, delta=delta)
    assert policy.confidence == width
    assert policy.confidence.valid_for == "played"
    assert nr.gp_ucb(BOX, nr.Matern(), noise=0.1, scale=0.5).confidence.valid_for == "none"


def test_the_derived_tail_holds():
    """P(sup |df/dx_j| > L) <= a exp(-(L/b)^2), checked on samples at levels where the bound is below 1."""
    kernel = nr.SquaredExponential(0.2)
    log_a, b = derivative_tail(kernel, np.zeros(1), np.ones(1))
    assert b == pytest.approx(2 / 0.2)
    grid = np.linspace(0, 1, 200)
    root = np.linalg.cholesky(kernel(grid, grid) + 1e-9 * np.eye(200))
    samples = root @ np.random.default_rng(0).standard_normal((200, 2000))
    steepest = np.abs(np.diff(samples, axis=0) / (grid[1] - grid[0])).max(axis=0)
    for level in b * np.sqrt(log_a + np.array([0.5, 1.0, 3.0])):
        assert (steepest > level).mean() <= math.exp(log_a - (level / b) ** 2)
    sharper = derivative_tail(nr.Matern(2.5, 0.2), np.zeros(1), np.ones(1))
    assert sharper.b == pytest.approx(2 * math.sqrt(2.5 / 1.5) / 0.2)
    both = derivative_tail(kernel + nr.Linear(scale=4.0), np.zeros(1), np.ones(1))
    assert both.b == pytest.approx(2 * math.sqrt(25 + 4))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.0])
def test_rough_kernels_have_no_theorem_2(nu):
    with pytest.raises(nr.errors.InvalidInput, match="nu > 2"):
        nr.gp_ucb(BOX, nr.Matern(nu), noise=0.1, width="compact")
    with pytest.warns(nr.errors.NoRegretWarning, match="nothing is proved"):
        policy = nr.gp_ucb(BOX, nr.Matern(nu), noise=0.1)
    assert policy.valid_for == "none"
    assert nr.Policy.from_json(policy.to_json()) == policy
    # Slopes of a rough sample between points close together are steep: wider than for the smooth kernel.
    smooth = nr.gp_ucb(BOX, nr.Matern(2.5), noise=0.1).confidence
    assert 0.8 * smooth.width(1, None) < policy.confidence.width(1, None) < 2.0 * smooth.width(1, None)
    study = nr.Study(policy, seed=0)
    study.tell(study.ask(), 1.0)
    assert study.replica.current().valid_for == "none"


def test_the_kernel_recommended_for_contexts_has_theorem_2():
    """a and b of a product on columns of its own: of the process whose slopes are those of its factors."""
    policy = nr.gp_ucb(
        nr.Box([0.0], [1.0]), nr.SquaredExponential(0.3).on(0) * nr.Matern(2.5, 0.5).on(1), noise=0.1,
        context=nr.Box([0.0], [2.0]),
    )  # fmt: skip
    assert policy.valid_for == "played"
    assert policy.confidence.b == pytest.approx(2.0 / 0.3)  # twice the largest std of a slope
    lower, upper = np.zeros(2), np.array([2.0, 1.0])
    # A product of squared exponentials on columns of their own is one squared exponential, and so are its constants.
    product = nr.SquaredExponential(0.3).on(0) * nr.SquaredExponential(0.5, scale=2.0).on(1)
    same = derivative_tail(nr.SquaredExponential([0.3, 0.5], scale=2.0), lower, upper)
    np.testing.assert_allclose(derivative_tail(product, lower, upper), same, rtol=1e-12)
    both_seen = nr.SquaredExponential([0.3, 0.5]) * nr.SquaredExponential([0.4, 0.2])
    one = nr.SquaredExponential([(0.3**-2 + 0.4**-2) ** -0.5, (0.5**-2 + 0.2**-2) ** -0.5])
    np.testing.assert_allclose(derivative_tail(both_seen, lower, upper), derivative_tail(one, lower, upper), rtol=1e-12)
    # A column that the kernel does not see has slope 0.
    unseen = derivative_tail(nr.SquaredExponential(0.3).on(0), lower, upper)
    assert unseen.b == pytest.approx(2.0 / 0.3)
    assert derivative_tail(nr.Matern(1.5).on(0) * nr.SquaredExponential().on(1), lower, upper) is None
    study = nr.Study(policy, seed=0)
    for hour in (0.5, 1.0):
        study.tell(study.ask([hour]), hour)


@pytest.mark.parametrize(
    "kernel",
    [
        nr.SquaredExponential(0.3) * nr.Matern(2.5, 0.4),
        nr.Linear(scale=2.0) * nr.SquaredExponential(0.2),
        nr.kernels.Periodic(0.5, 0.8),
        nr.kernels.RationalQuadratic(1.0, 0.2),
        nr.kernels.Periodic(0.4) * nr.Linear() + 0.5 * nr.Matern(2.5, 0.3),
    ],
    ids=["product", "linear product", "periodic", "rational quadratic", "sum"],
)
def test_derived_tails_hold_on_samples(kernel):
    """P(sup |df/dx| > L) <= a exp(-(L/b)^2), on samples, at levels where the bound is 0.6, 0.2 and 0.05."""
    lower, upper = np.array([0.5]), np.array([1.5])
    log_a, b = derivative_tail(kernel, lower, upper)
    grid = np.linspace(0.5, 1.5, 150)[:, None]
    values, vectors = np.linalg.eigh(kernel(grid, grid))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    samples = root @ np.random.default_rng(0).standard_normal((150, 2000))
    slopes = np.abs(np.diff(samples, axis=0) / (grid[1] - grid[0]))
    for level in b * np.sqrt(log_a + np.array([0.5, 1.6, 3.0])):
        assert (slopes.max(axis=0) > level).mean() <= math.exp(log_a - (level / b) ** 2)
    # b is twice the largest std of a slope, or an upper bound of that: not a hundred times too large.
    assert b / 4.0 < slopes.std(axis=1).max() < b / 1.9


BRANIN = nr.Box([-5.0, 0.0], [10.0, 15.0])


def branin(points):
    x, y = points[:, 0], points[:, 1]
    u = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return -(u**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def branin_surface():
    def slopes(points):
        steps = 1e-6 * np.eye(2)
        return branin(points), np.stack([(branin(points + s) - branin(points - s)) / 2e-6 for s in steps], axis=1)

    return AcquisitionFunction(branin, slopes)


def test_the_search_finds_the_maximum_and_counts():
    search = PointSearch(candidates=256, around=16, evaluations=40)
    standing = search.candidate_points(BRANIN, 0)
    found = search.maximize(
        branin_surface(), BRANIN, candidates=standing, scores=branin(standing), incumbents=np.zeros((0, 2)),
        rng=lambda: np.random.default_rng(0),
    )  # fmt: skip
    assert found.value == pytest.approx(-0.397887, abs=1e-6)
    assert found.value == pytest.approx(branin(found.point[None])[0])
    assert 16 < found.evaluations <= 16 + 3 * 45
    assert nr.Environment(branin, domain=BRANIN).best_value == pytest.approx(-0.397887, abs=1e-6)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_tops_of_parabolas_are_the_highest_points_of_their_boxes(d):
    rng = np.random.default_rng(d)
    gradients, hessians = rng.standard_normal((40, d)), rng.standard_normal((40, d, d))
    hessians += hessians.transpose(0, 2, 1)
    hessians[0], hessians[1] = 0.0, -np.eye(d)
    low, high = -rng.uniform(0, 2, (40, d)), rng.uniform(0, 2, (40, d))
    low[2] = 0.0
    steps, heights = tops_of_parabolas(gradients, hessians, low, high)
    assert ((low <= steps) & (steps <= high)).all()
    unit = np.stack(np.meshgrid(*[np.linspace(0, 1, 21)] * d), axis=-1).reshape(-1, d)
    for g, H, step, height, lower, upper in zip(gradients, hessians, steps, heights, low, high, strict=True):
        tried = lower + unit * (upper - lower)
        values = tried @ g + 0.5 * np.einsum("mi,ij,mj->m", tried, H, tried)
        assert height == pytest.approx(g @ step + 0.5 * step @ H @ step)
        assert height >= max(values.max(), 0.0) - 1e-12


PEAKS = {
    "inside": (lambda u: np.sin(9 * u[:, 0]) * np.cos(7 * u[:, 1] - 2) + 0.1 * u.sum(axis=1)),
    "on a face": (lambda u: 3 * u[:, 0] - (u[:, 1] - 0.37) ** 2 + 0.3 * np.sin(9 * u[:, 1])),
    "in a corner": (lambda u: np.exp(-4 * u[:, 0] - 3 * (1 - u[:, 1]))),
    "with a kink": (lambda u: -np.abs(u[:, 0] - 0.3) - np.abs(u[:, 1] - 0.6) ** 1.5),
    "a narrow one among wide ones": (
        lambda u: np.exp(-((u - 0.7) ** 2).sum(axis=1) / 0.1) + np.exp(-((u - 0.2) ** 2).sum(axis=1) / 0.002)
    ),
}


@pytest.mark.parametrize("name", PEAKS)
def test_dense_searches_find_known_maxima(name):
    from scipy.optimize import minimize

    box = nr.Box([-2.0, 5.0], [2.0, 5.5])
    score = PEAKS[name]

    def values(points):
        assert ((box.lower <= points) & (points <= box.upper)).all()
        return score((points - box.lower) / (box.upper - box.lower))

    search = PointSearch()
    standing = search.candidate_points(box, 3)
    found = search.maximize(
        AcquisitionFunction(values, None), box, candidates=standing, scores=values(standing), incumbents=standing[:1],
        rng=lambda: np.random.default_rng(0),
    )  # fmt: skip
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 301)] * 2), axis=-1).reshape(-1, 2)
    start = grid[score(grid).argmax()]
    best = minimize(
        lambda u: -score(u[None])[0], start, method="Nelder-Mead", bounds=[(0, 1)] * 2,
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 2000},
    )  # fmt: skip
    assert found.value >= -best.fun - (1e-4 if name == "with a kink" else 1e-9)
    assert found.value == values(found.point[None])[0]
    assert found.evaluations < 300


def test_a_hasty_search_takes_fewer_steps_to_a_point_that_is_nearly_as_good():
    box, bend = nr.Box(np.zeros(5), np.ones(5)), np.array([2.0, 9.0, 30.0, 4.0, 60.0])

    def values(points):
        return -(bend * (points - 0.37) ** 2).sum(axis=1)

    surface = AcquisitionFunction(values, lambda points: (values(points), -2.0 * bend * (points - 0.37)), 0.003)
    standing = PointSearch(candidates=128).candidate_points(box, 3)
    plain, hasty = (
        PointSearch(candidates=128, hasty=hasty).maximize(
            surface, box, candidates=standing, scores=values(standing), incumbents=standing[:1],
            rng=lambda: np.random.default_rng(0),
        )
        for hasty in (False, True)
    )  # fmt: skip
    assert plain.value >= hasty.value >= plain.value - 0.02
    assert hasty.evaluations < plain.evaluations


def test_a_search_keeps_clear_of_what_is_forbidden():
    def values(points):
        scores = -((points - 0.5) ** 2).sum(axis=1)
        return np.where(np.linalg.norm(points - 0.5, axis=1) < 0.05, -np.inf, scores)

    box = nr.Box([0.0, 0.0], [1.0, 1.0])
    standing = PointSearch().candidate_points(box, 0)
    found = PointSearch().maximize(
        AcquisitionFunction(values, None), box, candidates=standing, scores=values(standing), incumbents=np.full((1,
        2), 0.5),
        rng=lambda: np.random.default_rng(0),
    )  # fmt: skip
    assert -(0.07**2) < found.value <= -(0.05**2)


def test_whole_numbers_and_choices_are_searched_exactly():
    def values(points):
        parameters = [SPACE.decode(point) for point in points]
        return np.array(
            [
                -(np.log10(p["x"]) ** 2) - ((p["n"] - 37) / 50) ** 2 + {"a": 0.0, "b": 0.5, "c": 0.2}[p["kind"]]
                for p in parameters
            ]
        )

    def slopes(points):
        step = 1e-6 * np.eye(5)[0]
        gradient = np.zeros((len(points), 5))
        gradient[:, 0] = (values(points + step) - values(points - step)) / 2e-6
        return values(points), gradient

    search = PointSearch(candidates=64, around=16)
    standing = search.candidate_points(SPACE, 1)
    found = search.maximize(
        AcquisitionFunction(values, slopes), SPACE, candidates=standing, scores=values(standing),
        incumbents=np.zeros((0, 5)),
        rng=lambda: np.random.default_rng(0),
    )  # fmt: skip
    best = SPACE.decode(found.point)
    assert (best["n"], best["kind"]) == (37, "b")
    assert best["x"] == pytest.approx(1.0, abs=1e-3)


def test_a_path_can_be_maximized():
    from nilregret.gp import PointPosterior, sample_path

    posterior = PointPosterior(nr.Matern(2.5, 0.3), 2, 0.01)
    for point in np.random.default_rng(0).uniform(BOX.lower, BOX.upper, (10, 2)):
        posterior.append(point, float(point.sum()))
    path = sample_path(posterior, np.random.default_rng(1))
    search = PointSearch(candidates=512)
    standing = search.candidate_points(BOX, 0)
    found = search.maximize(
        AcquisitionFunction(path, path.slopes), BOX, candidates=standing, scores=path(standing),
        incumbents=np.zeros((0, 2)),
        rng=lambda: np.random.default_rng(0),
    )  # fmt: skip
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 101), np.linspace(-1, 1, 201)), axis=-1).reshape(-1, 2)
    assert found.value >= path(grid).max() - 1e-6


def test_a_kernel_that_cannot_be_refitted_stays_as_it_is():
    """Two distinct points say nothing about a lengthscale, nor about the variance of f in reward units."""
    arms = nr.Arms.grid(0.0, 1.0, 20)
    policy = nr.gp_ucb(arms, nr.SquaredExponential(0.05, scale=4.0), noise=0.1, refit=nr.slots.Refit(every=3))
    study = nr.Study(policy)
    for arm, reward in ((3, 5000.0), (3, 5100.0), (6, 5050.0)):
        study.add(arms.points[arm], reward)
    mean, std = study.predict()
    assert std[19] == pytest.approx(2.0, abs=1e-6)
    assert 5000.0 < mean[19] < 5100.0


def test_refits_learn_the_kernel_and_nothing_is_certified():
    policy = nr.gp_ucb(nr.Box([0.0], [1.0]), nr.Matern(2.5, [3.0]), noise=0.5, refit=Refit(every=10))
    study = nr.Study(policy, seed=2)  # in many seeds the first kernel, which is far too smooth, explains all
    for _ in range(40):
        trial = study.ask()
        study.tell(trial, 100.0 + 5.0 * float(np.sin(20 * trial.point[0])))
    state = study.replica.state.settled()
    assert state.kernel.lengthscale[0] < 0.6
    assert state.envelope(np.array([[0.5]])).valid_for == "none"
    mean, _ = study.predict([[0.2], [0.9]])
    np.testing.assert_allclose(mean, 100.0 + 5.0 * np.sin([4.0, 18.0]), atol=1.5)


def test_gradients_of_the_score_are_those_of_its_values_after_a_refit():
    study = nr.Study(nr.gp_ucb(BOX, nr.Matern(2.5, [0.5, 0.9]), noise=0.1, refit=Refit(every=10)), seed=0)
    for point in np.random.default_rng(0).uniform(BOX.lower, BOX.upper, (20, 2)):
        study.add(point, 300.0 + 50.0 * float(np.sin(5 * point[0])) + 10.0 * point[1])
    state = study.replica.state.settled()
    reward = state.reward
    score, best = state.policy.score, reward.data.best_reward
    question = Question(21, state.bounds(), reward.posterior.units, None, None, best, Randomness(0, 20), score)
    surface = score.on_points(PointRound(state.outputs.engine, reward.posterior.belief, question, np.zeros((1, 2))))
    points = np.array([[0.3, 0.4], [0.8, -0.7]])
    values, gradients = surface.slopes(points)
    np.testing.assert_allclose(values, surface.values(points))
    for column, step in enumerate(1e-5 * np.eye(2)):
        expected = (surface.values(points + step) - surface.values(points - step)) / 2e-5
        np.testing.assert_allclose(gradients[:, column], expected, rtol=1e-4)


def test_a_refit_learns_the_mean_where_good_rewards_are_frequent():
    # 60 of 70 rewards near 10, the function elsewhere 0: the average is not what to expect far from the data.
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.uniform(0.45, 0.55, (60, 1)), np.linspace(0, 1, 10)[:, None]])
    y = 10.0 * np.exp(-(((X[:, 0] - 0.5) / 0.12) ** 2)) + 0.05 * rng.standard_normal(70)
    found = Refit()(nr.Matern(2.5, [0.3]), X, y, np.ones(1), noise=0.1, seed=0)
    assert found.scale.std == pytest.approx(y.std())
    assert found.scale.mean < 0.7 * y.mean()
    assert found.kernel.scale == 1.0
    shifted = Refit()(nr.Matern(2.5, [0.3]), X, y + 1000.0, np.ones(1), noise=0.1, seed=0)
    assert shifted.scale.mean == pytest.approx(found.scale.mean + 1000.0, abs=1e-3)
    np.testing.assert_allclose(shifted.kernel.log_parameters, found.kernel.log_parameters, atol=1e-3)


def test_the_scales_of_sums_are_fitted():
    X, y = np.random.default_rng(0).uniform(size=(30, 2)), np.sin(np.arange(30.0))
    both = nr.Matern(2.5, 0.3).on(0) + nr.Matern(2.5, 0.3).on(1)
    found = Refit()(both, X, y, np.ones(2), noise=0.1, seed=0).kernel
    assert found.left.kernel.scale != 1.0
    product = nr.Matern(2.5, 0.3, scale=2.0).on(0) * nr.Matern(2.5, 0.3).on(1)
    found = Refit()(product, X, y, np.ones(2), noise=0.1, seed=0).kernel
    assert (found.left.kernel.scale, found.right.kernel.scale) == (1.0, 1.0)


def test_a_look_before_a_question_does_not_fit_twice(monkeypatch):
    fits = []
    original = Refit.__call__
    monkeypatch.setattr(Refit, "__call__", lambda *args, **known: fits.append(1) or original(*args, **known))

    def run(look):
        study = nr.Study(nr.gp_ucb(BOX, nr.Matern(2.5, [0.5, 0.9]), noise=0.1, refit=Refit(every=5)), seed=0)
        for _ in range(11):
            trial = study.ask()
            study.tell(trial, float(np.sin(4 * trial.point[0]) + trial.point[1]))
            if look:
                study.predict([[0.5, 0.0]])
        return [trial.point.tolist() for trial in study.trials]

    plain = run(look=False)
    assert len(fits) == 2
    fits.clear()
    assert run(look=True) == plain
    assert len(fits) == 2


def rosenbrock(points):
    return -np.sum(100.0 * (points[:, 1:] - points[:, :-1] ** 2) ** 2 + (1.0 - points[:, :-1]) ** 2, axis=1)


def slopes_of(values):
    def slopes(points, which):
        steps = 1e-6 * np.eye(points.shape[1])
        return values(points), np.stack([(values(points + s) - values(points - s)) / 2e-6 for s in steps], axis=1)

    return slopes


def ascended(values, starts, **changed):
    known = {"radius": 0.1, "reach": 100.0, "best": -np.inf, "unit": 1e-3, "evaluations": 500}
    return ascend(slopes_of(values), starts, **(known | changed))


def test_ascent_follows_a_curved_ridge_and_never_falls():
    starts = np.random.default_rng(0).uniform(size=(6, 4))

    def values(u):
        return rosenbrock(4.0 * u - 2.0)

    at, found, _ = ascended(values, starts)
    best = int(found.argmax())
    np.testing.assert_allclose(at[best], 0.75, atol=1e-3)
    assert (found >= values(starts)).all()
    np.testing.assert_array_equal(found, values(at))


def test_ascent_ends_on_the_sides_and_in_the_corners():
    target, bend = np.array([1.3, 0.4, -0.2]), np.array([[3.0, 1.0, 0.5], [1.0, 2.0, 0.3], [0.5, 0.3, 1.0]])

    def values(u):
        return -np.einsum("ij,jk,ik->i", u - target, bend, u - target)

    at, found, _ = ascended(values, np.random.default_rng(1).uniform(size=(5, 3)), reach=100.0)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 3), axis=-1).reshape(-1, 3)
    assert found.max() >= values(grid).max() - 1e-9
    assert ((at >= 0.0) & (at <= 1.0)).all()


def test_ascent_gives_up_what_cannot_win():
    starts = np.random.default_rng(2).uniform(size=(5, 3))
    at, _, counted = ascended(lambda u: -np.sum((u - 0.5) ** 2, axis=1), starts, best=50.0, reach=1.0)
    assert counted == len(starts)
    np.testing.assert_array_equal(at, starts)


def test_ascent_with_a_resolution_stops_early_and_within_it():
    rng = np.random.default_rng(3)
    saved = 0
    for _ in range(20):
        target, sides = rng.uniform(0.2, 0.8, size=4), rng.uniform(0.05, 2.0, size=4)

        def values(u, target=target, sides=sides):
            return -np.log1p(5.0 * np.sum(((u - target) / sides) ** 2, axis=1))

        starts = np.clip(target + 0.3 * rng.uniform(-1, 1, size=(4, 4)) * sides, 0.0, 1.0)
        (_, fine, many), (_, found, few) = (ascended(values, starts, resolution=size) for size in (0.0, 0.01))
        assert found.max() >= fine.max() - 0.02
        saved += many - few
    assert saved > 0


def test_ascent_is_as_quick_in_stretched_coordinates():
    stretched = np.array([0.05, 0.3, 1.0, 5.0])
    starts = 0.5 + 0.04 * np.random.default_rng(4).standard_normal((4, 4)) * stretched

    def values(u):
        return -np.sum(((u - 0.5) / stretched) ** 2, axis=1)

    _, found, counted = ascended(values, np.clip(starts, 0.0, 1.0), unit=1.0, radius=0.05)
    assert found.max() > -1e-6
    assert counted <= 4 * 12


def test_rescaling_a_kernel_is_rescaling_the_points():
    factors = np.array([2.0, 0.1])
    points = np.random.default_rng(0).uniform(0, 1, (6, 2))
    kernel = nr.Matern(2.5, [0.3, 0.7], scale=2.0) + nr.Linear(scale=3.0).on(1)
    np.testing.assert_allclose(kernel.rescaled(factors)(points * factors, points * factors), kernel(points, points))
    with pytest.raises(nr.errors.InvalidInput, match="a lengthscale for each dimension"):
        nr.gp_ucb(nr.Box([0, 0], [1, 9]), nr.Matern(), noise=0.1, refit=Refit())


def test_simulated_contexts():
    arms = nr.Arms.grid(0, 1, 21)
    env = nr.Environment(
        lambda x, c: -((x[:, 0] - c[:, 0]) ** 2), domain=arms, contexts=nr.Box([0.0], [1.0]), noise=0.05
    )
    policy = nr.gp_ucb(arms, nr.SquaredExponential([0.3, 0.3]), noise=0.05, context=nr.Box([0.0], [1.0]), scale=0.1)
    run = nr.simulate(policy, env, 60, seed=0)
    assert run.contexts.shape == (60, 1)
    assert (run.regret >= 0).all()
    assert run.regret[-20:].mean() < 0.5 * run.regret[:20].mean()
    box = nr.Environment(lambda x: -((x[:, 0] - 0.3) ** 2), domain=nr.Box([0.0], [1.0]), noise=0.05)
    run = nr.simulate(nr.gp_ucb(nr.Box([0.0], [1.0]), nr.SquaredExponential(0.3), noise=0.05, scale=0.1), box, 30)
    assert (run.arms == -1).all()
    assert box.best_value == pytest.approx(0.0, abs=1e-9)
    assert run.simple_regret[-1] < 0.01


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nr.Box([1, 0], [0, 1]), "lower < upper; in dimension 0"),
        (lambda: nr.Box([0, 0], [1]), "one shape"),
        (lambda: nr.Box([], []), "one shape"),
        (lambda: nr.Box([0.0], [np.inf]), "not finite"),
        (lambda: nr.gp_ucb(BOX, nr.Matern(), noise=0.1, width="finite"), "Theorem 1, for finitely many arms"),
        (lambda: nr.gp_ucb(BOX, nr.Matern(), noise=0.1, a=1.0), "`a` and `b` together"),
        (lambda: nr.gp_ucb(BOX, nr.Matern() * nr.Matern(1.5), noise=0.1, width="compact"), "cannot be derived"),
        (lambda: nr.gp_ucb(BOX, nr.Matern(2.5, [1, 2, 3]), noise=0.1), "3 lengthscales"),
        (
            lambda: nr.gp_ucb(BOX, nr.kernels.Empirical(np.eye(2)), noise=0.1),
            "has no gradient|no coordinates|coordinates|columns|indices",
        ),
        (lambda: nr.gp_ucb(BOX, nr.Matern(), noise=0.1, context="c"), "`context`"),
        (lambda: nr.gp_ucb(BOX, nr.Matern(), noise=0.1, search=3), "`search`"),
        (lambda: nr.gp_ucb(BOX, nr.Matern(), noise=0.1, refit=True), "`refit`"),
        (lambda: nr.gp_ucb(BOX, nr.SquaredExponential(1e200), noise=0.1), "out of all proportion"),
        (lambda: nr.gp_ucb(BOX, nr.SquaredExponential(1e-200), noise=0.1), "`lengthscale` is 1e-200"),
        (lambda: SPACE.encode(None), "Parameters are a dict"),
        (lambda: SPACE.decode("abc"), "not an array of numbers"),
        (lambda: SPACE.decode([[1], [2, 3]]), "not an array of numbers"),
        (lambda: SPACE.grid({1: 2, "x": 2}), "numeric parameters are"),
        (lambda: BOX.inside("point", [[1, 2], [3]]), "not an array of numbers"),
        (lambda: LINE.index([[1, 2], [3]]), "not an array of numbers"),
        (lambda: PointSearch(candidates=1), "`candidates`"),
        (lambda: Refit(every=2), "`every`"),
        (lambda: Refit(prior="flat"), "`prior`"),
    ],
)
def test_bad_descriptions_are_explained(make, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make()


def test_points_outside_and_wrong_contexts_are_explained():
    study = nr.Study(nr.gp_ucb(BOX, nr.Matern(), noise=0.1))
    with pytest.raises(nr.errors.InvalidInput, match="outside the box"):
        study.add([2.0, 0.0], 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="2 dimensions"):
        study.add([0.5], 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="continuous"):
        study.predict()
    with pytest.raises(nr.errors.InvalidInput, match="no context domain"):
        study.ask([1.0])
    study.add([1.0 + 1e-12, 0.0], 1.0)
    assert study.trials[0].point[0] == 1.0
    study = nr.Study(nr.gp_ucb(BOX, nr.Matern(), noise=0.1, context=nr.Box([0.0], [1.0])))
    for call in (study.ask, lambda: study.predict([[0.1, 0.1]]), lambda: study.add([0.1, 0.1], 1.0)):
        with pytest.raises(nr.errors.InvalidInput, match="Pass `context=`"):
            call()
    with pytest.raises(nr.errors.InvalidInput, match="one point at a time; 2 were given"):
        study.ask([0.1, 0.2])
    with pytest.raises(nr.errors.InvalidInput, match="outside the box"):
        study.ask([3.0])
    assert len(study.trials) == 0


@pytest.mark.parametrize("domain", [nr.Box([0, 0], [2, 1]), nr.Box([0, 0], [2, 1]).grid(15)], ids=["box", "arms"])
@pytest.mark.parametrize("make", [nr.expected_improvement, *nightly(nr.gp_ucb)])
def test_a_region_where_everything_fails_is_left(make, domain):
    """Failures that count as the worst seen: less than half of the trials fail, where otherwise nearly all would."""
    policy = make(domain, nr.Matern(2.5, [0.3, 0.3]), noise=0.1, pending=nr.slots.Ignored(failed="worst"))
    study, failed = nr.Study(policy, seed=0), 0
    for _ in range(40):
        trial = study.ask()
        if trial.point[0] > 0.5:
            study.fail(trial, "out of memory")
            failed += 1
        else:
            study.tell(trial, float(trial.point[0]))
    assert failed < 30
    assert study.best().point[0] > 0.3
    again = nr.Study(policy, seed=0)
    for trial in study.trials:  # the same events give the same state
        asked = again.ask()
        np.testing.assert_array_equal(asked.point, trial.point)
        again.tell(asked, trial.reward) if trial.reward is not None else again.fail(asked, "out of memory")
    where = domain.points[:5] if isinstance(domain, nr.Arms) else [[0.2, 0.3]]
    np.testing.assert_array_equal(study.predict(where), again.predict(where))
    assert study.replica.current().valid_for == "none"


def test_a_space_of_whole_numbers_and_choices_is_finite():
    space = nr.Space(n=nr.Int(1, 5), k=nr.Choice("a", "b"))
    policy = nr.gp_ucb(space, nr.Matern(1.5, 0.3), noise=0.1)
    assert policy.confidence.size == 10
    study = nr.Study(policy, seed=0)
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, float(trial.parameters["n"] == 4) + (trial.parameters["k"] == "b"))
    assert study.best().parameters == {"n": 4, "k": "b"}


# -- what does not depend on the machine or grow with the square -------------------------------------------------------


def test_decisions_do_not_depend_on_the_number_of_blas_threads():
    """Nor do fits: sums that threads share round differently, and a fit makes 1e-10 of a box's side of it."""
    box = nr.Box([0.0, 0.0], [1.0, 1.0])
    policy = nr.gp_ucb(
        box, nr.Matern(2.5, [0.3, 0.3]), noise=0.1, a=1.0, b=1.0, refit=nr.slots.Refit(every=40, restarts=0)
    )
    rows = np.random.default_rng(0).uniform(size=(160, 2))
    asked = []
    for threads in (1, 2):
        with threadpool_limits(threads, user_api="blas"):
            study = nr.Study(policy, seed=1)
            for row in rows:
                study.add(row, float(np.sin(5 * row).sum()))
            asked.append((study.ask().point.tobytes(), study.replica.state.kernel))
    assert asked[0] == asked[1]


def test_one_thread_puts_the_old_number_back_whoever_leaves_last():
    def threads():
        return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]

    with threadpool_limits(2, user_api="blas"):
        before, inner, outer = threads(), OneThread(), OneThread()
        inner.__enter__()
        assert set(threads()) == {1}
        inner.__enter__()
        inner.__exit__()
        assert set(threads()) == {1}
        inner.__exit__()
        assert threads() == before
        with pytest.raises(ZeroDivisionError), outer:
            1 / 0  # noqa: B018 - it raises
        assert threads() == before


def test_one_thread_holds_in_each_thread_of_python():
    """From threadpoolctl 3.8 on the first thread that sets the number of OpenBLAS owns it."""

    def threads():
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    def inside():
        with OneThread():
            return threads()

    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as pool:  # the owner is this thread
        assert [pool.submit(inside).result(), threads(), inside(), threads()] == [{1}, {2}, {1}, {2}]


def test_the_best_trial_takes_no_kernel_matrix(monkeypatch):
    box = nr.Box([0.0, 0.0], [1.0, 1.0])
    study = nr.Study(nr.gp_bucb(box, nr.Matern(2.5, 0.3), noise=0.1, beta=1.0), seed=1)
    for row in np.random.default_rng(0).uniform(size=(30, 2)):
        study.add(row, float(np.sin(5 * row).sum()))
    study.add(study.trials[3].point, 0.5)
    means = study.predict([trial.point for trial in study.trials])[0]
    state = study.replica.current()
    np.testing.assert_allclose(state.answered_means(list(study.trials)), means, rtol=1e-9)
    elsewhere = study.ask()
    both = state.answered_means([study.trials[5], elsewhere])
    np.testing.assert_allclose(both, study.predict([study.trials[5].point, elsewhere.point])[0], rtol=1e-9)
    calls = []
    kernel = type(study.policy.kernel).__call__
    monkeypatch.setattr(type(study.policy.kernel), "__call__", lambda self, X, Y: calls.append(1) or kernel(self, X, Y))
    assert study.best().number == int(means.argmax())
    assert calls == []


@pytest.mark.parametrize(("d", "most"), [(1, 60), (2, 60), (5, 300)])
def test_a_point_is_moved_apart_to_the_best_untried_one_around_it(d, most):
    """Where candidates are dense the nearest mutations are valued alone, since the score is smooth there."""
    search, box = PointSearch(mutations=256, apart=0.001), nr.Box(np.zeros(d), np.ones(d))
    assert search.dense(box) == (d < 5)
    for seed in range(5):
        rng, valued = np.random.default_rng(seed), []
        point, curvature = rng.uniform(0.3, 0.7, d), rng.uniform(0.5, 2.0, d)

        def values(points, point=point, curvature=curvature, valued=valued):
            valued.append(len(points))
            return -((points - point) ** 2 @ curvature)

        candidates = search.candidate_points(box, seed)
        moved = search.moved_apart(
            point, AcquisitionFunction(values, values), box, candidates=candidates, scores=values(candidates),
            tried=point[None], rng=lambda seed=seed: np.random.default_rng(seed),
        )  # fmt: skip
        assert valued[1:] == [sum(valued[1:])]
        assert sum(valued[1:]) <= most
        assert np.abs(moved - point).max() >= 0.001
        changed = mutated(box, point[None], 256, np.random.default_rng(seed))
        changed = changed[np.abs(changed - point).max(axis=1) >= 0.001]
        assert values(moved[None])[0] >= values(changed).max()
