"""Bounds of the maximum information gain against brute force, and what follows from them."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nilregret as nr
from nilregret.errors import InvalidInput
from nilregret.gp.information_gain import NEAR_GREEDY
from nilregret.kernels import ALL
from nilregret.slots import described
from nilregret.slots.envelope import FiniteBayes
from nilregret.theory.regret_bounds import ANTI_CONCENTRATION, sum_of_deviations_bound

GRID = nr.Arms.grid(0, 1, 40)
SE = nr.SquaredExponential(0.2)


def matrix(kernel, points):
    return kernel.between_arms(nr.Arms(points).points, ALL, ALL)


def gain(K, arms, ridge):
    arms = list(arms)
    return 0.5 * np.linalg.slogdet(np.eye(len(arms)) + K[np.ix_(arms, arms)] / ridge)[1]


def exact(K, count, ridge):
    """gamma_count over all multisets of arms."""
    return max(gain(K, arms, ridge) for arms in itertools.combinations_with_replacement(range(len(K)), count))


def greedy(K, count, ridge):
    """Rule (4) with a dense log-determinant for every candidate; the first arm where several are as good."""
    arms, gains = [], []
    for _ in range(count):
        values = np.array([gain(K, [*arms, arm], ridge) for arm in range(len(K))])
        before = gains[-1] if gains else 0.0
        arms.append(int((values - before >= (values.max() - before) * (1 - 1e-8)).argmax()))
        gains.append(values[arms[-1]])
    return arms, gains


@st.composite
def problems(draw):
    """A kernel, few arms (some of them twice), and a ridge."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 2))
    points = rng.uniform(-1, 1, (n, d))
    points[rng.integers(n)] = points[0]
    low_rank = rng.standard_normal((n, draw(st.integers(1, 3))))
    kernels = [
        nr.SquaredExponential(10 ** rng.uniform(-1.5, 1)),
        nr.Matern(1.5, 0.5, scale=3.0),
        nr.Linear(),
        nr.kernels.Empirical(low_rank @ low_rank.T),
        nr.SquaredExponential(0.3) + nr.Linear(scale=2.0),
    ]
    return kernels[draw(st.integers(0, 4))], points, 10 ** draw(st.floats(-3, 1))


@settings(max_examples=150, deadline=None)
@given(problems(), st.integers(1, 5))
def test_bounds_are_in_order(problem, count):
    """Greedy and spectral bounds above the exact maximum, the sharp ones too; Theorem 4 above eq. 8."""
    kernel, points, ridge = problem
    K = matrix(kernel, points)
    best, slack = exact(K, count, ridge), 1e-9
    design, spectrum = nr.theory.GreedyDesign(kernel, points, ridge), nr.theory.Spectrum.of(kernel, points, ridge)
    found = design.gain(count)
    assert best * (1 - math.exp(-1)) - slack <= found <= best + slack  # eq. 5
    assert best <= design.sharp_bound(count) + slack
    assert best <= spectrum.gain(count) + slack  # eq. 8 needs no (1 - 1/e)^{-1}
    assert design.sharp_bound(count) <= design.bound(count) == pytest.approx(NEAR_GREEDY * found)
    assert spectrum.bound(count) >= NEAR_GREEDY * found - slack
    assert spectrum.split_bound(count) >= spectrum.bound(count) - slack
    noise = math.sqrt(ridge)
    for bound, value in {
        "greedy": design.bound(count),
        "spectral": spectrum.bound(count),
        "split": spectrum.split_bound(count),
        "sharp": min(design.sharp_bound(count), spectrum.gain(count)),
    }.items():
        assert nr.information_gain(kernel, points, noise, bound=bound, count=count) == pytest.approx(value, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_design_is_the_naive_one(problem):
    kernel, points, ridge = problem
    K = matrix(kernel, points)
    arms, gains = greedy(K, 6, ridge)
    design = nr.theory.GreedyDesign(kernel, nr.Arms(points), ridge)
    # Near ties may be broken differently; then another greedy design is as good so far.
    same = int(np.cumprod(design.order(6) == arms).sum())
    np.testing.assert_allclose(design.gains(6)[:same], gains[:same], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        design.gains(6), [gain(K, design.order(t), ridge) for t in range(1, 7)], rtol=1e-8, atol=1e-10
    )
    for t in range(6):
        step = [gain(K, [*design.order(t), arm], ridge) for arm in range(len(K))]
        assert design.gain(t + 1) >= max(step) - 1e-7 * max(step)


def test_design_does_not_depend_on_how_it_was_asked():
    whole, piece = nr.theory.GreedyDesign(SE, GRID, 0.01), nr.theory.GreedyDesign(SE, GRID, 0.01)
    gains, order = whole.gains(700), whole.order(700)
    for t in (0, 1, 3, 255, 256, 257, 100, 513, 700):
        assert piece.gain(t) == (0.0 if t == 0 else gains[t - 1])
        assert piece.bound(t) == NEAR_GREEDY * piece.gain(t)
    np.testing.assert_array_equal(piece.order(700), order)
    gains[:] = order[:] = 0  # what was returned is the caller's own
    assert whole.gain(700) > 0.0
    assert whole.order(2).tolist() == piece.order(2).tolist() != [0, 0]


def test_long_design_stays_exact():
    """3,000 rank-one updates against one dense log-determinant of the multiplicities."""
    kernel, ridge, count = nr.Matern(2.5, 0.3), 0.025, 3000
    design = nr.theory.GreedyDesign(kernel, GRID, ridge)
    plays = np.bincount(design.order(count), minlength=len(GRID))
    root = np.sqrt(plays / ridge)
    K = matrix(kernel, GRID.points)
    dense = 0.5 * np.linalg.slogdet(np.eye(len(K)) + root[:, None] * K * root)[1]
    assert design.gain(count) == pytest.approx(dense, rel=1e-9)
    assert (np.diff(design.gains(count), n=2) <= 1e-9).all()  # diminishing returns


def test_sharp_bound_closes_in():
    """Where gains have slowed the greedy design is nearly best, and that can be proved."""
    design = nr.theory.GreedyDesign(SE, GRID, 0.025)
    assert design.sharp_bound(1) == pytest.approx(design.gain(1))
    assert design.sharp_bound(5000) < 1.2 * design.gain(5000)


def test_contexts_are_rows():
    kernel = nr.SquaredExponential(0.3).on(0) * nr.kernels.Empirical([[1.0, 0.5], [0.5, 1.0]]).on(1)
    rows = [(x, task) for task in (0, 1) for x in np.linspace(0, 1, 6)]
    K = kernel(rows, rows)
    assert nr.theory.GreedyDesign(kernel, rows, 0.1).gains(5).tolist() == pytest.approx(greedy(K, 5, 0.1)[1])


def test_arms_by_index():
    kernel = nr.kernels.Empirical(np.diag([1.0, 4.0, 2.0]))
    design = nr.theory.GreedyDesign(kernel, nr.Arms.grid(0, 1, 3), 1.0)
    assert design.order(4).tolist() == [1, 2, 0, 1]  # variances 4, 2, 1, then 4 / 5 against 2 / 3 and 1 / 2
    assert nr.information_gain(kernel, [1, 1, 0], 1.0, bound="realised") == pytest.approx(0.5 * math.log(9 * 2))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(0, 30), min_size=1, max_size=5), st.integers(0, 7), st.floats(0.01, 10))
def test_allocation_is_optimal(values, count, ridge):
    spectrum = nr.theory.Spectrum(values, ridge)

    def value(m):
        return 0.5 * np.log1p(np.array(m) * spectrum.eigenvalues / ridge).sum()

    best = max(value(m) for m in itertools.product(range(count + 1), repeat=len(values)) if sum(m) == count)
    assert spectrum.gain(count) == pytest.approx(best, rel=1e-9, abs=1e-12)
    m = spectrum.allocation(count)
    assert (m == np.floor(m)).all()
    assert m.sum() == count or max(values) <= 1e-100  # modes far below the noise are left out


def test_spectral_curve_is_every_count():
    spectrum = nr.theory.Spectrum.of(SE, GRID, 0.025)
    np.testing.assert_allclose(spectrum.gains(300), [spectrum.gain(t) for t in range(1, 301)], rtol=1e-12)
    assert nr.theory.Spectrum([0.0, 0.0], 1.0).gains(3).tolist() == [0.0, 0.0, 0.0]
    assert len(spectrum.gains(0)) == 0
    assert spectrum.gain(0) == spectrum.bound(0) == spectrum.split_bound(0) == 0.0


def test_huge_counts():
    """Equal eigenvalues share; the whole-number optimum meets the real one."""
    spectrum = nr.theory.Spectrum([2.0] * 4, 0.5)
    assert spectrum.gain(10**12) == pytest.approx(2.0 * math.log1p(10**12))
    assert spectrum.allocation(10**12 + 2).tolist().count(2.5e11 + 1) == 2
    faint = nr.theory.Spectrum([1e-40, 1e-40, 1e-41], 1.0)  # 1 / a_i swallows any count
    assert faint.allocation(10**12).tolist() == [5e11, 5e11, 0.0]


def test_low_rank_spectrum_is_the_dense_one():
    arms = nr.Arms.grid(0, 1, 300)
    low, dense = (
        nr.theory.Spectrum.of(SE, arms, 0.025),
        nr.theory.Spectrum(np.linalg.eigvalsh(matrix(SE, arms.points)), 0.025),
    )
    assert len(low.eigenvalues) < 40
    assert low.gain(1000) == pytest.approx(dense.gain(1000), rel=1e-9)
    assert low.residual > 0.0


def test_split_bound_by_hand():
    """Two eigenvalues 3 and 1, lambda = 1, T = 2: T_* = 1 has r in {1, 2}, T_* = 2 has no tail."""
    one = max(math.log(1 + 4 * r) + (2 - r) * 1 for r in (1, 2))
    two = 2 * math.log(1 + 4 * 2)
    assert nr.theory.Spectrum([1.0, 3.0], 1.0).split_bound(2) == pytest.approx(NEAR_GREEDY * 0.5 * min(one, two))


@pytest.mark.parametrize(("ridge", "count"), [(0.01, 1), (0.01, 2), (1.0, 7), (0.3, 40)])
def test_split_bound_is_over_r_from_one(ridge, count):
    """Lemma 7.8 and Theorem 8 have r = 1, ..., T: with a flat spectrum and little noise r = 0 would be the largest."""
    values = np.sort(np.append(np.ones(30), [2.0, 0.5]))[::-1]
    total = values.sum()
    least = min(
        max(
            head * math.log(1 + r * total / ridge) + (count - r) * values[head:].sum() / ridge
            for r in range(1, count + 1)
        )
        for head in range(1, min(count, len(values)) + 1)
    )
    bound = nr.theory.Spectrum(values, ridge).split_bound(count)
    assert bound == pytest.approx(NEAR_GREEDY * 0.5 * least)
    assert bound >= nr.theory.Spectrum(values, ridge).bound(count)


def test_the_linear_kernels_bound_holds():
    """C.3: above the gain of every play, of the corners of a box above all; logarithmic in T; without a grid."""
    rng = np.random.default_rng(0)
    box = nr.Box([-1.0, 0.0, -0.2], [0.5, 2.0, 0.1])
    kernel, noise = nr.Linear(scale=1.7), 0.3
    for T in (1, 3, 20, 200):
        limit = nr.information_gain(kernel, box, noise, bound="linear", count=T)
        for _ in range(20):
            points = rng.uniform(box.lower, box.upper, (T, 3))
            corners = np.where(rng.uniform(size=(T, 3)) < 0.5, box.lower, box.upper)
            for played in (points, corners):
                assert nr.information_gain(kernel, played, noise, bound="realised") <= limit + 1e-9
    ball = rng.standard_normal((200, 3))
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    limit = nr.information_gain(nr.Linear(), ball, 1.0, bound="linear", count=50)
    assert limit <= 1.5 * math.log(1 + 50 / 3) + 1e-9  # d/2 log(1 + T / d): all plays on the unit sphere
    assert nr.information_gain(nr.Linear(), ball, 1.0, bound="realised", count=None) <= nr.information_gain(
        nr.Linear(), ball, 1.0, bound="linear", count=200
    )
    some = nr.information_gain(kernel.on(0, 2), box, noise, bound="linear", count=9)
    alone = nr.information_gain(kernel, nr.Box([-1.0, -0.2], [0.5, 0.1]), noise, bound="linear", count=9)
    assert some == pytest.approx(alone)
    with pytest.raises(nr.errors.InvalidInput, match="`Linear` kernels"):
        nr.information_gain(SE, box, noise, bound="linear", count=9)


def test_the_effective_dimension():
    """Definition 1 of Valko et al. by hand, and of data in few directions."""
    rng = np.random.default_rng(1)
    for kernel, T, ridge in ((SE, 30, 0.1), (nr.Matern(0.5, 0.05), 60, 0.01), (nr.Linear(), 40, 1.0)):
        points = rng.uniform(0, 1, (T, 1))
        values = np.linalg.eigvalsh(kernel(points, points))[::-1]
        j = next(j for j in range(1, T + 1) if j * ridge * math.log(T) >= values[j:].sum() - 1e-9)
        assert nr.theory.effective_dimension(kernel, points, ridge) == j
    plane = rng.standard_normal((50, 4)) @ np.diag([1.0, 1.0, 0.0, 0.0])
    assert nr.theory.effective_dimension(nr.Linear(), plane, 1e-6) == 2
    assert nr.theory.effective_dimension(SE, np.full((20, 1), 0.3), 1e-6) == 1
    assert nr.theory.effective_dimension(SE, [[0.3]], 1.0) == 1
    arms = nr.Arms.grid(0, 1, 12)
    assert nr.theory.effective_dimension(nr.kernels.Empirical(np.eye(12)), arms, 0.01) == 12
    with pytest.raises(nr.errors.InvalidInput, match="`kernel`"):
        nr.theory.effective_dimension("SE", arms, 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="columns"):
        nr.information_gain(nr.Linear().on(3), arms, 1.0, bound="linear", count=9)


def test_realised_gain_is_that_of_the_posterior():
    policy = nr.gp_ucb(GRID, SE, noise=0.3)
    study = nr.Study(policy)
    for arm in (3, 20, 3, 39):
        study.add(GRID.points[arm], 1.0)
    given = GRID.points[[3, 20, 3, 39]]
    assert nr.information_gain(SE, given, 0.3, bound="realised") == pytest.approx(study.information_gain)
    assert nr.information_gain(SE, nr.Arms(given), 0.3, bound="realised") == pytest.approx(study.information_gain)


def test_errors_say_what_to_do():
    with pytest.raises(nr.errors.InvalidInput, match="count"):
        nr.information_gain(SE, GRID, 0.1)
    with pytest.raises(nr.errors.InvalidInput, match="all the points given"):
        nr.information_gain(SE, GRID, 0.1, bound="realised", count=3)
    with pytest.raises(nr.errors.InvalidInput, match="grid"):
        nr.information_gain(SE, nr.Box(0, 1), 0.1, count=3)
    with pytest.raises(nr.errors.InvalidInput, match="greedy"):
        nr.information_gain(SE, GRID, 0.1, bound="exact", count=3)
    with pytest.raises(nr.errors.InvalidInput, match="count"):
        nr.information_gain(SE, GRID, 0.1, count=-1)
    with pytest.raises(nr.errors.InvalidInput, match="count"):
        nr.theory.GreedyDesign(SE, GRID, 0.1).gain(-1)
    with pytest.raises(nr.errors.InvalidInput, match="not negative"):
        nr.theory.Spectrum([1.0, -0.1], 1.0)


# -- rates and regret bounds ---------------------------------------------------------------------------------------


def test_rates():
    t, log_t = 1000.0, math.log(1000.0)
    rate = nr.theory.information_gain_rate
    assert rate(nr.Linear(), 3, t) == pytest.approx(3 * log_t)
    assert rate(SE, 2, t) == pytest.approx(log_t**3)
    matern = nr.Matern(2.5)
    assert rate(matern, 1, t) == pytest.approx(t ** (2 / 7) * log_t)
    assert rate(matern, 1, t, source="vakili") == pytest.approx(t ** (1 / 6) * log_t ** (5 / 6))
    assert rate(matern, 1, t, constant=0.5) == pytest.approx(0.5 * t ** (2 / 7) * log_t)
    assert rate(SE.on(1), 4, t) == pytest.approx(log_t**2)
    assert rate(SE + matern, 1, t) == pytest.approx(log_t**2 + t ** (2 / 7) * log_t)
    assert rate(nr.Linear().on(0, 1) * SE.on(2), 3, t) == pytest.approx(2 * (log_t**2 + log_t))
    assert rate(nr.kernels.Empirical(np.eye(5)) * nr.Linear(), 1, t) == pytest.approx(5 * log_t)
    assert rate(SE, 1, 0) == rate(SE, 1, 1) == 0.0
    with pytest.raises(nr.errors.InvalidInput, match="vakili"):
        rate(nr.Matern(0.7), 1, t)
    with pytest.raises(nr.errors.InvalidInput, match="information_gain"):
        rate(nr.Matern(0.5), 1, t, source="vakili")
    with pytest.raises(nr.errors.InvalidInput, match="one SquaredExponential"):
        rate(SE.on(0) * SE.on(1), 2, t)


@settings(max_examples=50, deadline=None)
@given(problems(), st.integers(1, 5), st.integers(0, 10**6))
def test_deviations_sum_to_less_than_the_bounds(problem, count, seed):
    """Srinivas Lemma 5.4 at any points and ridge; Chowdhury & Gopalan Lemma 4 at lambda = 1 + 2/T, k(x, x) <= 1."""
    kernel, points, ridge = problem
    K = matrix(kernel, points)
    arms = np.random.default_rng(seed).integers(len(K), size=count)

    def total(K, ridge):
        result = 0.0
        for t, arm in enumerate(arms):
            before = arms[:t]
            k = K[arm, before]
            result += math.sqrt(
                max(K[arm, arm] - k @ np.linalg.solve(K[np.ix_(before, before)] + ridge * np.eye(t), k), 0.0)
            )
        return result

    size = K.diagonal().max()
    bound = sum_of_deviations_bound(
        count, information_gain=gain(K, arms, ridge), regularization=ridge, prior_variance=size
    )
    assert total(K, ridge) <= bound * (1 + 1e-9)
    ours = 1 + 2 / count
    lemma = nr.theory.igp_ucb_regret_bound(count, width=0.5, information_gain=gain(K / size, arms, ours))
    assert total(K / size, ours) <= lemma * (1 + 1e-9)
    assert lemma == pytest.approx(math.sqrt(4 * (count + 2) * gain(K / size, arms, ours)))
    # k(x, x) <= c: never below the sum, and below the paper's remark that bounds grow by a factor of c.
    wide = nr.theory.igp_ucb_regret_bound(count, width=0.5, information_gain=gain(K, arms, ours), prior_variance=size)
    assert total(K, ours) <= wide * (1 + 1e-9)
    if size > 1.0:
        assert wide <= size * math.sqrt(4 * (count + 2) * gain(K, arms, ours)) * (1 + 1e-9)


def test_regret_bounds_are_those_of_the_papers():
    T, gamma, width = 100, 7.0, 3.0
    C1 = 8 / math.log(1 + 0.5**-2)
    theorem = math.sqrt(C1 * T * width**2 * gamma)
    assert nr.theory.gp_ucb_regret_bound(T, width=width, information_gain=gamma, noise=0.5) == pytest.approx(theorem)
    compact = nr.theory.gp_ucb_regret_bound(T, width=width, information_gain=gamma, noise=0.5, compact=True)
    assert compact == pytest.approx(theorem + 2)
    assert nr.theory.igp_ucb_regret_bound(T, width=width, information_gain=gamma) == pytest.approx(
        2 * width * math.sqrt(4 * (T + 2) * gamma)
    )
    c, B = width * (1 + math.sqrt(4 * math.log(T) + 2 * math.log(50))), 2.0
    assert nr.theory.gp_ts_regret_bound(
        T, width=width, information_gain=gamma, norm_bound=B, log_size=math.log(50), delta=0.1
    ) == pytest.approx(
        11 * c / ANTI_CONCENTRATION * math.sqrt(4 * (T + 2) * gamma)
        + (2 * B + 1) * math.pi**2 / 6
        + (4 * B + 11) * c / ANTI_CONCENTRATION * math.sqrt(2 * T * math.log(20))
    )


def test_the_bound_of_gp_ts_for_other_prior_variances():
    """Lemma 13 with |f| <= B c^{1/2} and sigma <= c^{1/2}; the same as in the paper for c <= 1."""
    T, gamma, width, B, c = 100, 7.0, 3.0, 2.0, 2.5
    given = dict(width=width, information_gain=gamma, norm_bound=B, log_size=math.log(50), delta=0.1)
    scale, p = width * (1 + math.sqrt(4 * math.log(T) + 2 * math.log(50))), ANTI_CONCENTRATION
    deviations = sum_of_deviations_bound(T, information_gain=gamma, regularization=1.02, prior_variance=c)
    B *= math.sqrt(c)
    assert nr.theory.gp_ts_regret_bound(T, prior_variance=c, **given) == pytest.approx(
        11 * scale / p * deviations
        + (2 * B + 1) * math.pi**2 / 6
        + (4 * B + 11 * math.sqrt(c)) * scale / p * math.sqrt(2 * T * math.log(20))
    )
    assert nr.theory.gp_ts_regret_bound(T, prior_variance=0.5, **given) == nr.theory.gp_ts_regret_bound(T, **given)


@pytest.mark.parametrize(
    ("bound", "more"),
    [
        (nr.theory.gp_ts_regret_bound, {"width": 3.0}),
        (nr.theory.gp_ts_sdf_regret_bound, {"beta": 3.0, "window": 3}),
    ],
)
def test_bounds_of_huge_decision_sets_do_not_overflow(bound, more):
    more |= {"information_gain": 5.0, "norm_bound": 1.0}
    assert math.isfinite(bound(100, log_size=1e100, **more))
    with pytest.raises(nr.errors.InvalidInput, match="`log_size`"):
        bound(100, log_size=1e308, **more)


def test_gp_ucb_keeps_its_promise():
    """Theorem 1 holds in a run with probability 0.9 at least: fewer than 3 of 5 have probability below 0.01."""
    domain, rounds, noise = nr.Arms.grid(0, 1, 30), 60, 0.2
    promise = nr.theory.gp_ucb_regret_bound(
        rounds,
        width=FiniteBayes(size=30).width(rounds, None),
        information_gain=nr.information_gain(SE, domain, noise, bound="sharp", count=rounds),
        noise=noise,
    )
    kept = 0
    for seed in range(5):
        f = np.random.default_rng([7, seed]).multivariate_normal(np.zeros(30), matrix(SE, domain.points))
        env = nr.Environment(lambda _, f=f: f, domain=domain, noise=noise)
        run = nr.simulate(nr.gp_ucb(domain, SE, noise=noise), env, rounds, seed=seed)
        kept += run.cumulative_regret[-1] <= promise
    assert kept >= 3


@described
@dataclass(frozen=True)
class Wrong(nr.kernels.PointKernel):
    fault: str

    def __call__(self, A, B):
        apart = np.abs(np.asarray(A) - np.asarray(B).T)
        return {"negative": apart, "nan": np.nan * apart, "shape": apart[0]}[self.fault]


@pytest.mark.parametrize(
    ("fault", "message"), [("negative", "no covariance"), ("nan", "not finite"), ("shape", "returned shape")]
)
def test_a_wrong_kernel_is_named_where_it_enters(fault, message):
    kernel, arms = Wrong(fault), nr.Arms.grid(0, 1, 20)
    for call in (
        lambda: nr.information_gain(kernel, arms, 0.1, bound="realised"),
        lambda: nr.theory.effective_dimension(kernel, arms, 0.1),
        lambda: nr.theory.GreedyDesign(kernel, arms, 0.1),
        lambda: nr.theory.Spectrum.of(kernel, arms, 0.1),
        lambda: nr.gp_ucb(arms, kernel, noise=0.1),
        lambda: nr.gp_ucb(nr.Box(0.0, 1.0), kernel, noise=0.1),
    ):
        with pytest.raises(InvalidInput, match=f"Wrong.*{message}.*check_kernel"):
            call()
    with pytest.raises(InvalidInput, match="lost in rounding"):
        nr.information_gain(nr.SquaredExponential(0.2), np.ones((2, 1)), 1e-100, bound="realised")
