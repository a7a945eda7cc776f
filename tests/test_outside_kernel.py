"""Kernels written outside of the package, in one class each, do what those of the package do."""

import math
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret import kernels, serialize
from nilregret.__main__ import main
from nilregret.environments import Environment, gp_sample
from nilregret.gp import PointPosterior, sample_path
from nilregret.slots import described
from nilregret.slots.widths.slopes import derivative_tail, lipschitz_constant
from nilregret.theory.change.geometry import product_average
from nilregret.theory.change.schedules import smoothness
from nilregret.theory.rates import growth_rate
from nilregret.tuning.toml.config import load


@described
@dataclass(frozen=True)
class MyRationalQuadratic(kernels.Stationary):
    """Only a profile."""

    alpha: float = 1.0
    lengthscale: float | tuple[float, ...] = 1.0
    scale: float = 1.0

    def profile(self, squares):
        u = 1.0 + squares / (2.0 * self.alpha)
        return u**-self.alpha, lambda: u ** -(self.alpha + 1.0)


@described
@dataclass(frozen=True)
class MyPlainKernel(kernels.PointKernel):
    """Only values: the same rational quadratic kernel, about which nothing else is said."""

    alpha: float = 1.0
    lengthscale: float = 1.0

    def __call__(self, A, B):
        differences = np.asarray(A, dtype=float)[:, None, :] - np.asarray(B, dtype=float)[None, :, :]
        return (1.0 + (differences**2).sum(axis=2) / (2.0 * self.alpha * self.lengthscale**2)) ** -self.alpha


@described
@dataclass(frozen=True)
class MyBrownian(kernels.PointKernel):
    """Rough, not stationary, of infinite rank."""

    def __call__(self, A, B):
        return np.minimum(np.asarray(A, dtype=float), np.asarray(B, dtype=float).T)


@described
@dataclass(frozen=True)
class MyQuadratic(kernels.PointKernel):
    """Parabolas, with a scale that a fit may change."""

    scale: float = 1.0

    def __call__(self, A, B):
        return self.scale * (1.0 + np.asarray(A, dtype=float) @ np.asarray(B, dtype=float).T) ** 2

    @property
    def log_parameters(self):
        return np.log([self.scale])

    def hyperparameters(self, columns):
        return (kernels.Hyperparameter("scale", tuple(columns), len(columns)),)

    def with_log_parameters(self, values):
        return MyQuadratic(float(np.exp(values[0])))

    def rank(self, dimension):
        return (dimension + 1) * (dimension + 2) // 2


SHIPPED = nr.kernels.RationalQuadratic(1.5, 0.3)
OWN = {"Stationary": MyRationalQuadratic(1.5, 0.3), "PointKernel": MyPlainKernel(1.5, 0.3)}
POINTS = np.random.default_rng(0).uniform(-1.0, 1.0, (9, 2))
BOX = nr.Box([0.0, 0.0], [1.0, 1.0])


@pytest.fixture(params=OWN.values(), ids=OWN.keys())
def own(request):
    return request.param


def hill(points):
    return -np.sum((np.atleast_2d(points) - 0.4) ** 2, axis=1)


def test_values_and_gradients_are_those_of_the_shipped_kernel(own):
    weights = np.random.default_rng(1).standard_normal((9, 4))
    np.testing.assert_allclose(own(POINTS, POINTS[:4]), SHIPPED(POINTS, POINTS[:4]), rtol=1e-10)
    np.testing.assert_allclose(own.diagonal(POINTS), SHIPPED.diagonal(POINTS), rtol=1e-10)
    np.testing.assert_array_equal(own.diagonal_gradient(POINTS), 0.0)
    exact = 1e-10 if own is OWN["Stationary"] else 1e-7
    expected = SHIPPED.input_gradient(POINTS, POINTS[:4], weights)
    np.testing.assert_allclose(own.input_gradient(POINTS, POINTS[:4], weights), expected, rtol=exact, atol=exact)
    brownian = MyBrownian()
    np.testing.assert_allclose(brownian.diagonal_gradient(POINTS[:, :1] + 2.0), 1.0, rtol=1e-8)


def test_json_sums_products_columns_and_factors(own):
    whole = 2.0 * (own + nr.Matern(1.5, 0.5)) * own.on(1)
    again = serialize.loads(serialize.dumps(whole))
    assert again == whole
    inside = (
        2.0 * (SHIPPED(POINTS, POINTS) + nr.Matern(1.5, 0.5)(POINTS, POINTS)) * SHIPPED(POINTS[:, 1:], POINTS[:, 1:])
    )
    np.testing.assert_allclose(again(POINTS, POINTS), inside, rtol=1e-10)
    assert (3.0 * (2.0 * own)).variance == (6.0 if own is OWN["Stationary"] else None)


@pytest.mark.parametrize(
    "make",
    [
        lambda kernel: nr.gp_ucb(nr.Arms.grid(0, 1, 15), kernel, noise=0.1),
        lambda kernel: nr.igp_ucb(nr.Arms.grid(0, 1, 15), kernel, noise=0.1, norm_bound=2.0),
        lambda kernel: nr.igp_ucb(nr.Arms.grid(0, 1, 15), kernel, noise=0.1, norm_bound=2.0, information_gain="greedy"),
        lambda kernel: nr.expected_improvement(nr.Arms.grid(0, 1, 15), kernel, noise=0.1),
        lambda kernel: nr.gp_ucb(nr.Space(x=nr.Float(0, 1), k=nr.Choice("a", "b")).grid(5), kernel, noise=0.1),
    ],
)
def test_on_arms_the_decisions_are_those_of_the_shipped_kernel(make, own):
    runs = []
    for kernel in (SHIPPED, own):
        policy = make(kernel)
        world = Environment(lambda points: np.sin(5.0 * points[:, 0]), domain=policy.domain, noise=0.1)
        runs.append(nr.simulate(policy, world, 20, seed=1))
    np.testing.assert_array_equal(runs[0].points, runs[1].points)
    np.testing.assert_allclose(runs[0].rewards, runs[1].rewards, rtol=1e-10)


def test_thompson_sampling_on_arms(own):
    world = Environment(lambda points: np.sin(5.0 * points[:, 0]), domain=nr.Arms.grid(0, 1, 15), noise=0.1)
    policy = nr.gp_ts(nr.Arms.grid(0, 1, 15), own, noise=0.1, norm_bound=2.0)
    first, second = (nr.simulate(policy, world, 20, seed=1) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)


def test_with_contexts(own):
    chosen = []
    for kernel in (SHIPPED, own):
        study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 9), kernel, noise=0.1, context=nr.Arms.grid(0, 1, 4)), seed=0)
        for i in range(8):
            trial = study.ask(context=[(i % 4) / 3.0])
            study.tell(trial, float(trial.point[0]))
        chosen.append([float(trial.point[0]) for trial in study.trials])
    assert chosen[0] == chosen[1]


@pytest.mark.filterwarnings("ignore:.*Theorem 2")
@pytest.mark.parametrize("rule", ["igp_ucb", "gp_ucb"])
def test_on_a_box_and_a_space(rule, own):
    for domain in (BOX, nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1), n=nr.Int(1, 3))):
        more = {"norm_bound": 1.0} if rule == "igp_ucb" else {}
        found = {}
        for kernel in (SHIPPED, own):
            study = nr.Study(getattr(nr.algorithms, rule)(domain, kernel, noise=0.1, **more), seed=0)
            for _ in range(6):
                trial = study.ask()
                study.tell(trial, float(hill(trial.point)[0]))
            found[kernel] = np.array([trial.point for trial in study.trials])
        if rule == "igp_ucb":  # equal widths: the same decisions, up to where a search by differences ends
            np.testing.assert_allclose(found[own], found[SHIPPED], atol=1e-3)


def test_a_width_from_slopes_is_assumed_with_a_warning(own):
    with pytest.warns(nr.errors.NoRegretWarning):
        policy = nr.gp_ucb(BOX, own, noise=0.1)
    assert policy.valid_for == "none"
    assert nr.gp_ucb(BOX, SHIPPED, noise=0.1).valid_for != "none"
    assert derivative_tail(own, BOX.lower, BOX.upper) is None


def test_slopes_of_a_profile_are_known():
    own, ends = OWN["Stationary"], (BOX.lower, BOX.upper)
    assert lipschitz_constant(own, *ends) == pytest.approx(lipschitz_constant(SHIPPED, *ends), rel=1e-10)
    with pytest.raises(nr.errors.InvalidInput, match="lipschitz"):
        lipschitz_constant(OWN["PointKernel"], *ends)


def test_an_infinite_slope_at_zero_is_infinite():
    @described
    @dataclass(frozen=True)
    class MyExponential(kernels.Stationary):
        lengthscale: float = 1.0
        scale: float = 1.0

        def profile(self, squares):
            r = np.sqrt(squares)
            return np.exp(-r), lambda: np.divide(np.exp(-r), r, out=np.zeros_like(r), where=r > 0.0)

    assert MyExponential().moments == (math.inf, math.inf)


CASES = {
    "Stationary": (MyRationalQuadratic(1.5, 0.3), SHIPPED),
    "PointKernel": (MyPlainKernel(1.5, 0.3), SHIPPED),
    "Stationary times linear": (MyRationalQuadratic(1.5, 0.3) * nr.Linear(), SHIPPED * nr.Linear()),
    "sum, of some columns": (MyPlainKernel(1.5, 0.3).on(1) + nr.Linear(), SHIPPED.on(1) + nr.Linear()),
    "three factors": (
        nr.Matern(1.5) * OWN["PointKernel"].on(0) * nr.Linear(),
        nr.Matern(1.5) * SHIPPED.on(0) * nr.Linear(),
    ),
}


@pytest.mark.parametrize(("mine", "same"), CASES.values(), ids=CASES.keys())
def test_paths_have_the_kernels_covariance(mine, same):
    """Sums of squares of 200 paths, whitened, are chi-squared: beyond 6 standard errors with probability below 1e-7."""
    rng, at, count = np.random.default_rng(5), POINTS[:6], 200
    white = np.linalg.inv(np.linalg.cholesky(same(at, at) + 1e-9 * np.eye(6)))
    paths = [sample_path(PointPosterior(mine, 2, 1.0), rng) for _ in range(count)]
    values = white @ np.array([path(at) for path in paths]).T
    seen = values @ values.T / count
    assert np.abs(seen.diagonal() - 1.0).max() < 6.0 * math.sqrt(2.0 / count)
    assert np.abs(seen - np.diag(seen.diagonal())).max() < 6.0 / math.sqrt(count)


@pytest.mark.parametrize("mine", [*OWN.values(), CASES["Stationary times linear"][0]])
def test_paths_of_the_posterior(mine):
    """Mean and variance of 150 paths given three observations, within 6 standard errors."""
    posterior = PointPosterior(mine, 2, 0.01)
    posterior.extend(POINTS[:3], [1.0, -1.0, 0.5])
    rng, at = np.random.default_rng(6), POINTS
    values = np.array([sample_path(posterior, rng)(at) for _ in range(150)])
    mean, std = posterior.predict(at)
    np.testing.assert_array_less(np.abs(values.mean(axis=0) - mean), 6.0 * std / math.sqrt(150) + 1e-9)
    np.testing.assert_allclose(values.var(axis=0) / std**2, 1.0, atol=6.0 * math.sqrt(2.0 / 150))


def test_a_path_is_one_function_with_its_gradient(own):
    path = sample_path(PointPosterior(own, 2, 1.0), np.random.default_rng(2))
    dense = np.random.default_rng(3).uniform(0, 1, (500, 2))
    before = path(dense)
    np.testing.assert_allclose(path(dense[:7]), before[:7], atol=1e-6)
    value, slope = path.slope(dense[3])
    assert value == pytest.approx(before[3], abs=1e-6)
    step = 1e-4
    there = path(dense[3] + step * np.vstack([np.eye(2), -np.eye(2)]))
    np.testing.assert_allclose(slope, (there[:2] - there[2:]) / (2 * step), atol=1e-2)
    np.testing.assert_allclose(path(dense), before, atol=3e-4)  # pivots came in, each worth 3e-5 std at most
    np.testing.assert_allclose(path.widened(2.0)(dense), 2.0 * path(dense), atol=1e-12)


def test_a_drawn_function_does_not_hang_on_what_it_was_asked_before(own):
    first, second = (gp_sample(own, BOX, seed=3) for _ in range(2))
    dense = np.random.default_rng(3).uniform(0, 1, (300, 2))
    for point in dense[:20]:
        first.slope(point)
    np.testing.assert_allclose(first(dense), second(dense), rtol=0, atol=1e-9)


def test_a_rough_path_ends_at_its_most_pivots(monkeypatch):
    monkeypatch.setattr("nilregret.gp.paths.MOST", 40)
    path = sample_path(PointPosterior(MyBrownian(), 1, 1.0), np.random.default_rng(0))
    values = path(np.linspace(0.001, 1.0, 400)[:, None])
    assert np.isfinite(values).all()
    assert np.isfinite(path.slope(np.array([0.3333]))[1]).all()


def test_gp_ts_on_a_box(own):
    policy = nr.gp_ts(BOX, own, noise=0.1, norm_bound=1.0)
    first, second = (nr.Study(policy, seed=4) for _ in range(2))
    for _ in range(5):
        for study in (first, second):
            trial = study.ask()
            assert ((trial.point >= 0.0) & (trial.point <= 1.0)).all()
            study.tell(trial, float(hill(trial.point)[0]))
    np.testing.assert_array_equal([t.point for t in first.trials], [t.point for t in second.trials])
    assert len({tuple(t.point) for t in first.trials}) == 5


def test_a_fit_of_a_profile_is_that_of_the_shipped_kernel():
    rng = np.random.default_rng(8)
    X = rng.uniform(0, 1, (25, 2))
    y = np.sin(6.0 * X[:, 0]) + 0.1 * rng.standard_normal(25)
    mine, shipped = (nr.gp.fit(kernel, X, y, restarts=0) for kernel in (OWN["Stationary"], SHIPPED))
    assert mine.log_posterior == pytest.approx(shipped.log_posterior, rel=1e-9)
    np.testing.assert_allclose(mine.kernel.log_parameters, shipped.kernel.log_parameters, atol=1e-5)
    plain = nr.gp.fit(OWN["PointKernel"], X, y, restarts=0)
    assert plain.kernel == OWN["PointKernel"]
    assert plain.noise != mine.noise
    quadratic = nr.gp.fit(MyQuadratic(), X, hill(X) + 0.01 * rng.standard_normal(25), prior=None)
    K = MyQuadratic(1.0)(X, X)
    assert quadratic.kernel.scale != 1.0
    for factor in (0.9, 1.1):  # the scale is where the likelihood is largest
        worse = nr.gp.fit(
            MyQuadratic(factor * quadratic.kernel.scale), X, hill(X), prior=None, noise=quadratic.noise,
            fit_noise=False, restarts=0, bounds={"scale": [factor * quadratic.kernel.scale] * 2},
        )  # fmt: skip
        assert worse.kernel.scale == pytest.approx(factor * quadratic.kernel.scale)
    np.testing.assert_allclose(MyQuadratic(2.0)(X, X), 2.0 * K)


def test_the_gradient_by_parameters_is_right_without_being_written():
    kernel, weights = MyQuadratic(2.5), np.random.default_rng(1).standard_normal((9, 9))
    expected = np.vdot(weights, kernel(POINTS, POINTS))
    np.testing.assert_allclose(kernel.matrix_and_pullback(POINTS)[1](weights), [expected], rtol=1e-8)


def test_points_in_other_units(own):
    factors = np.array([3.0, 3.0])
    there = own.rescaled(factors)
    np.testing.assert_allclose(there(3.0 * POINTS, 3.0 * POINTS), own(POINTS, POINTS), rtol=1e-10)
    back = there.rescaled(1.0 / factors)
    np.testing.assert_allclose(back(POINTS, POINTS), own(POINTS, POINTS), rtol=1e-10)
    uneven = np.array([0.2, 30.0])
    stretched = OWN["PointKernel"].rescaled(uneven)
    np.testing.assert_allclose(stretched(uneven * POINTS, uneven * POINTS), SHIPPED(POINTS, POINTS), rtol=1e-10)
    assert stretched.rescaled(1.0 / uneven) == OWN["PointKernel"]
    with pytest.raises(nr.errors.InvalidInput, match="factors"):
        stretched(POINTS[:, :1], POINTS[:, :1])


def test_refit(own):
    domain = nr.Box(0.0, 5.0)
    chosen = []
    for kernel in (SHIPPED, own):
        policy = nr.igp_ucb(domain, kernel, noise=0.1, norm_bound=1.0, refit=nr.slots.Refit(every=5, restarts=0))
        study = nr.Study(policy, seed=0)
        for _ in range(11):
            trial = study.ask()
            study.tell(trial, math.sin(float(trial.point[0])))
        chosen.append([float(t.point[0]) for t in study.trials])
    if own is OWN["Stationary"]:
        np.testing.assert_allclose(chosen[0], chosen[1], atol=1e-3)
    assert len(set(chosen[1])) > 5


@pytest.mark.parametrize("domain", [nr.Arms.grid(0.0, 1.0, 12), nr.Box(0.0, 1.0)])
def test_a_change_is_found(domain, own):
    points = np.random.default_rng(2).choice(np.linspace(0, 1, 12), 40)[:, None]
    rewards = np.sin(5.0 * points[:, 0]) + 2.0 * (np.arange(40) >= 20)
    mine, shipped = (
        nr.theory.detect_change(points, rewards, kernel, domain=domain, threshold=0.5, ridge=0.1)
        for kernel in (own, SHIPPED)
    )
    assert mine.distance == pytest.approx(shipped.distance, rel=1e-10)
    assert bool(mine)
    with pytest.raises(nr.errors.InvalidInput, match="states no smoothness"):
        nr.theory.detect_change(points, rewards, own, domain=domain)


def test_information(own):
    arms = np.linspace(0, 1, 30)[:, None]
    for bound in ("greedy", "spectral", "split", "sharp"):
        mine, shipped = (nr.information_gain(kernel, arms, 0.1, bound=bound, count=12) for kernel in (own, SHIPPED))
        assert mine == pytest.approx(shipped, rel=1e-8)
    for kernel in (own, own + nr.Linear(), 2.0 * own):
        with pytest.raises(nr.errors.InvalidInput, match="No rate is known"):
            nr.theory.information_gain_rate(kernel, 1, 100)
    assert nr.theory.information_gain_rate(nr.Linear() * nr.Matern(), 1, 100) > 0.0


def test_a_finite_rank_says_the_rate_and_the_linear_bound():
    kernel, arms = MyQuadratic(), np.random.default_rng(0).uniform(-1, 1, (25, 2))
    assert nr.theory.information_gain_rate(kernel, 2, 100) == pytest.approx(6.0 * math.log(100))
    times = nr.theory.information_gain_rate(kernel * nr.SquaredExponential(), 2, 100)
    assert times == pytest.approx(6.0 * (math.log(100) ** 3 + math.log(100)))
    bound = nr.information_gain(kernel, arms, 0.1, bound="linear", count=50)
    played = np.repeat(arms, 2, axis=0)
    assert nr.information_gain(kernel, played, 0.1, bound="realised") <= bound
    with pytest.raises(nr.errors.InvalidInput, match="largest prior variance"):
        nr.information_gain(kernel, BOX, 0.1, bound="linear", count=50)


def test_what_is_known_of_a_kernel_can_be_registered():
    @described
    @dataclass(frozen=True)
    class MyConstant(kernels.PointKernel):
        def __call__(self, A, B):
            return np.ones((len(A), len(B)))

        @property
        def variance(self):
            return 1.0

        @property
        def smoothness(self):
            return math.inf

    @product_average.register(MyConstant)
    def average(kernel, lower, upper):
        return lambda U, V: np.ones((len(U), len(V)))

    @growth_rate.register(MyConstant)
    def rate(kernel, d, t, source):
        return math.log(t)

    points, box = np.linspace(0, 1, 10)[:, None], nr.Box(0.0, 1.0)
    assert smoothness(MyConstant()) == math.inf
    assert nr.theory.information_gain_rate(MyConstant().on(0), 3, 100) == pytest.approx(math.log(100))
    found = nr.theory.detect_change(points, 1.0 * (np.arange(10) >= 5), MyConstant(), domain=box, ridge=1e-9)
    assert found.error == 0.0  # the closed form
    assert found.distance == pytest.approx(1.0, rel=1e-6)


def test_a_stored_study_is_replayed(tmp_path, own):
    policy = nr.gp_ts(nr.Box(0.0, 1.0), own, noise=0.1, norm_bound=1.0)
    url = f"sqlite:///{tmp_path}/studies.db"
    study, alone = nr.Study(policy, seed=0, storage=url, name="own"), nr.Study(policy, seed=0)
    for each in (study, alone):
        for _ in range(4):
            trial = each.ask()
            each.tell(trial, float(trial.point[0]))
    again = nr.Study.open(storage=url, name="own")
    assert again.policy == policy
    np.testing.assert_array_equal([t.point for t in again.trials], [t.point for t in study.trials])
    np.testing.assert_array_equal(again.ask().point, alone.ask().point)


MODULE = """
from dataclasses import dataclass
import numpy as np
from nilregret.kernels import PointKernel
from nilregret.slots import described
from nilregret.tuning.toml.config import load

@described
@dataclass(frozen=True)
class KernelOfAFile(PointKernel):
    lengthscale: float = 1.0

    def __call__(self, A, B):
        return np.exp(-np.abs(np.asarray(A)[:, None] - np.asarray(B)[None]).sum(axis=2) / self.lengthscale)

class NoKernel:
    pass

def score(x):
    return -(x - 0.4) ** 2
"""
FILE = """
trials = 5
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[policy]
algorithm = "gp_ts"
noise = 0.1
norm_bound = 1.0
kernel = { type = "own_module.KernelOfAFile", lengthscale = 0.3 }
[objective]
function = "own_module:score"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "own_module.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield tmp_path
    sys.modules.pop("own_module", None)


def tuned(folder, text):
    (folder / "job.toml").write_text(text)
    return CliRunner().invoke(main, ["tune", str(folder / "job.toml")])


def test_nilregret_tune_takes_a_kernel_of_ones_own(folder):
    done = tuned(folder, FILE)
    assert done.exit_code == 0, done.output
    again = tuned(folder, FILE.replace("trials = 5", "trials = 7"))
    assert again.exit_code == 0, again.output
    assert nr.Study.open(storage=f"sqlite:///{folder}/job.db", name="job").policy.kernel.lengthscale == 0.3
    inside = FILE.replace("gp_ts", "igp_ucb").replace(
        '{ type = "own_module.KernelOfAFile", lengthscale = 0.3 }',
        '{ type = "sum", left = { type = "linear" }, right = { type = "own_module:KernelOfAFile" } }',
    )
    (folder / "inside.toml").write_text(inside)
    assert type(load(folder / "inside.toml").policy.kernel.right).__name__ == "KernelOfAFile"


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("own_module.NoKernel", "must be a class that derives from `Kernel`"),
        ("own_module.Missing", "Missing"),
        ("no_such_module_here.Kernel", "beside the TOML file"),
        (".Kernel", "Empty module name"),
        ("own_module.", "has no"),
        ("os.system", "must be a class that derives from `Kernel`"),
    ],
)
def test_a_kernel_that_is_none_is_refused(folder, kind, message):
    done = tuned(folder, FILE.replace("own_module.KernelOfAFile", kind))
    assert done.exit_code != 0
    assert message in " ".join(done.output.split())


def test_a_stored_study_imports_nothing(folder):
    (folder / "planted.py").write_text(f"open({str(folder / 'ran')!r}, 'w')\n" + MODULE)
    sys.path.insert(0, str(folder))
    for kind in ("planted.KernelOfAFile", "planted:KernelOfAFile"):
        with pytest.raises(nr.errors.InvalidInput, match="Unknown type"):
            serialize.loads(f'{{"type": "{kind}"}}')
    assert not (folder / "ran").exists()
