"""Shi & Eryilmaz beyond the figures: any psi, a kernel for each epoch, other inner bandits, the bounds as numbers."""

import math
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

import nilregret as nr
from nilregret.gp.information_gain import GreedyDesign
from nilregret.slots import described
from nilregret.slots.envelope import FiniteBayes
from nilregret.slots.objective import MultiplicativePenalty
from nilregret.slots.pending import Hallucinated
from nilregret.slots.widths.delayed import Inflated
from nilregret.slots.widths.self_normalized import GreedyGain, SelfNormalized
from nilregret.theory.penalties import CHECKED, LARGEST, check_assumption_2

ARMS, KERNEL = nr.Arms.grid(0, 1, 30), nr.Matern(2.5, 0.2)
COMMON = {"noise": 0.1, "norm_bound": 1.0, "regularization": 0.01, "epoch": 5, "epochs": 4}
ALGORITHMS = {"noiseless": nr.gp_ucb_noiseless_constraints, "noisy": nr.gp_ucb_noisy_constraints}


def make(kind, kernel=KERNEL, domain=ARMS, **more):
    return ALGORITHMS[kind](domain, kernel, **COMMON | more)


def play(study, rounds):
    for _ in range(rounds):
        trial = study.ask()
        noise = np.random.default_rng([1, trial.number]).normal(scale=0.1)
        study.tell(trial, math.sin(9 * trial.point[0]) + noise, constraints=trial.point[0] - 0.1)
    return study


@pytest.fixture(params=ALGORITHMS, name="kind")
def kind_fixture(request):
    return request.param


# -- psi ---------------------------------------------------------------------------------------------------------------


@described
@dataclass(frozen=True)
class Parabola(nr.slots.PenaltyFunction):
    """1 + c x + (c x)^2 / 2: the product of two of them has all terms of the one of the sum, and more."""

    c: float = 1.0

    def log_of(self, violation):
        x = self.c * violation
        return np.log1p(x + 0.5 * x**2)


@dataclass(frozen=True)
class Of(nr.slots.PenaltyFunction):
    """Whatever function."""

    function: object

    def log_of(self, violation):
        return self.function(violation)


@pytest.mark.parametrize(
    ("psi", "formula"),
    [
        (nr.slots.ExponentialPenalty(0.7), lambda x: math.exp(0.7 * x)),
        (nr.slots.PowerPenalty(0.7, 3.0), lambda x: (0.7 * x + 1) ** 3),
        (nr.slots.PowerPenalty(2.0, 1.0), lambda x: 2 * x + 1),
        (Parabola(2.0), lambda x: 1 + 2 * x + 2 * x**2),
    ],
)
def test_psi_and_its_inverse(psi, formula):
    g = np.array([-3.0, 0.0, 1e-3, 0.4, 2.5])
    np.testing.assert_allclose(psi(g), [formula(max(each, 0.0)) for each in g], rtol=1e-13)
    for x in (0.0, 1e-6, 0.3, 1.0, 7.0):
        assert psi.inverse(formula(x)) == pytest.approx(x, rel=1e-8, abs=1e-12)
    with pytest.raises(nr.errors.InvalidInput, match="psi is at least 1"):
        psi.inverse(0.5)
    check_assumption_2(psi)


@pytest.mark.parametrize("c", [1e-6, 1e-3, 1.0, 300.0, 1e308])
def test_the_papers_functions_pass_whatever_their_steepness(c):
    for psi in (nr.slots.ExponentialPenalty(c), nr.slots.PowerPenalty(c, 1.0), nr.slots.PowerPenalty(c, 1000.0)):
        check_assumption_2(psi)


@pytest.mark.parametrize(
    ("log_psi", "message"),
    [
        (lambda x: x + 0.1, r"psi\(0\) is 1\.10517 and must be 1"),
        (lambda x: np.minimum(x, 2.0), r"does not increase strictly beyond x = 2\.371"),
        (lambda x: -x, "does not increase strictly beyond x = 0"),
        (np.sin, "does not increase strictly"),
        (lambda x: 0.0 * x, "does not increase strictly beyond x = 0"),
        (lambda x: 0.5 * np.log1p(x), "not convex"),  # (x + 1)^n with n = 1/2
        (lambda x: np.log1p(x**2), r"psi\(x\) psi\(y\) < psi\(x \+ y\)"),
        (lambda x: np.log(np.cosh(np.minimum(x, 700))), r"psi\(x\) psi\(y\) < psi\(x \+ y\)"),
        (lambda x: x**2, r"psi\(x\) psi\(y\) < psi\(x \+ y\)"),
        (lambda x: float(x[0]), "one number for each violation"),
        (lambda x: np.full(x.shape, np.nan), "without NaN"),
    ],
)
def test_a_psi_that_breaks_assumption_2_is_refused(log_psi, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make("noiseless", penalty=Of(log_psi))


def test_assumption_2_holds_for_what_passes():
    """On a grid of its own, signs and all: convex, and psi(x) psi(y) >= psi(x + y)."""
    x = np.linspace(-2.0, 3.0, 51)
    for psi in (Parabola(1.3), nr.slots.ExponentialPenalty(1.3), nr.slots.PowerPenalty(1.3, 2.0)):
        assert (np.diff(psi(x), 2) >= -1e-12).all()
        X, Y = np.meshgrid(x, x)
        assert (psi(X) * psi(Y) >= psi(X + Y) * (1 - 1e-12)).all()
    assert CHECKED[0] == 0.0


def test_a_psi_of_ones_own_is_used_and_stored(tmp_path):
    policy = make("noiseless", penalty=Parabola(2.0))
    assert nr.Policy.from_json(policy.to_json()) == policy
    url = f"sqlite:///{tmp_path}/studies.db"
    study = play(nr.Study(policy, storage=url, seed=3), 11)
    g = np.array([trial.constraints[0] for trial in study.trials])
    kappa = 1.0
    for epoch in range(2):
        mean = max(g[5 * epoch : 5 * epoch + 5].mean(), 0.0)
        kappa *= 1 + 2 * mean + 2 * mean**2  # line 4 of Algorithm 2
    assert study.multipliers == pytest.approx([kappa])
    assert kappa > 1.2
    trial = study.trials[-1]
    x = max(trial.constraints[0], 0.0)
    assert policy.objective.target(trial, np.array([kappa])) == pytest.approx(
        trial.reward - kappa * (2 * x + 2 * x**2)  # line 3
    )
    again = nr.Study.open(storage=url)
    assert again.ask().arm == study.ask().arm
    huge = MultiplicativePenalty(epoch=1, epochs=1, penalty=Parabola(1.0))
    np.testing.assert_allclose(huge.psi(np.array([1e200, 1e5])), LARGEST)
    assert huge.saturates(np.array([1e5]))


def test_names_are_the_functions_they_stand_for():
    for named, function in (
        ({"penalty": "exp", "c": 0.5}, nr.slots.ExponentialPenalty(0.5)),
        ({"penalty": "power", "c": 0.5, "n": 3.0}, nr.slots.PowerPenalty(0.5, 3.0)),
    ):
        one, other = (play(nr.Study(make("noiseless", **more), seed=1), 14) for more in (named, {"penalty": function}))
        assert one.policy.objective.function == function
        assert [t.arm for t in one.trials] == [t.arm for t in other.trials]
        np.testing.assert_array_equal(one.multipliers, other.multipliers)
    for more in ({"c": 2.0}, {"n": 3.0}):
        with pytest.raises(nr.errors.InvalidInput, match="a function of your own has its own"):
            make("noiseless", penalty=nr.slots.ExponentialPenalty(), **more)
    with pytest.raises(nr.errors.InvalidInput, match="`penalty` is <built-in function exp>"):
        make("noiseless", penalty=math.exp)


# -- a kernel for each epoch -------------------------------------------------------------------------------------------

KERNELS = [nr.Matern(2.5, length) for length in (0.3, 0.2, 0.2, 0.1)]


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])], ids=["arms", "box"])
@pytest.mark.parametrize("memory", ["kept", "fresh"])
def test_every_epoch_has_its_kernel(kind, domain, memory):
    """What is learned in an epoch is the posterior under its kernel, of the data that count, weighed anew."""
    policy = make(kind, KERNELS, domain, memory=memory)
    study = nr.Study(policy, seed=2)
    points = np.linspace(0, 1, 30)[:, None]
    for rounds in (3, 7, 12, 18, 24):
        play(study, rounds - len(study.trials))
        epoch = min(rounds // 5, 3)
        counted = study.trials[5 * epoch if memory == "fresh" else 0 :]
        targets = [policy.objective.target(trial, study.multipliers) for trial in counted]
        X, kernel = np.array([trial.point for trial in counted]), KERNELS[epoch]
        K = kernel(X, X) + 0.01 * np.eye(len(X))
        mean = kernel(points, X) @ np.linalg.solve(K, targets)
        var = 1 - np.einsum("ij,ji->i", kernel(points, X), np.linalg.solve(K, kernel(X, points)))
        got = study.predict(points)
        np.testing.assert_allclose(got[0], mean, atol=1e-8)
        np.testing.assert_allclose(got[1], np.sqrt(var), atol=1e-7)


def test_one_kernel_many_times_is_one_kernel(kind):
    one, many = (play(nr.Study(make(kind, kernel), seed=4), 22) for kernel in (KERNEL, [KERNEL] * 4))
    assert [t.arm for t in one.trials] == [t.arm for t in many.trials]
    np.testing.assert_array_equal(one.predict(), many.predict())


def test_kernels_of_epochs_are_stored_and_replayed(kind, tmp_path):
    policy = make(kind, KERNELS)
    assert nr.Policy.from_json(policy.to_json()) == policy
    assert policy.kernel == KERNELS[0]
    url = f"sqlite:///{tmp_path}/studies.db"
    straight = play(nr.Study(policy, seed=5), 23)
    play(nr.Study(policy, seed=5, storage=url), 8)
    again = nr.Study.open(storage=url)
    play(again, 15)
    assert [t.arm for t in again.trials] == [t.arm for t in straight.trials]
    np.testing.assert_array_equal(nr.Study.open(storage=url).predict(), straight.predict())
    study = play(nr.Study(policy, seed=5), 10)
    study.predict()  # looking begins the epoch in a copy
    assert play(study, 13).trials[-1].arm == straight.trials[-1].arm


@pytest.mark.parametrize(
    ("kernels", "more", "message"),
    [
        (KERNELS[:3], {}, "3 kernels for 4 epochs"),
        ([], {}, "must be a kernel"),
        ([*KERNELS[:3], "matern"], {}, "must be a kernel"),
        ([*KERNELS[:3], nr.Matern(2.5, [1.0, 1.0])], {}, "columns|dimension|lengthscale"),
        (KERNELS, {"information_gain": "greedy"}, "is of one kernel"),
        (KERNELS, {"information_gain": "rate"}, "is of one kernel"),
    ],
)
def test_kernels_that_do_not_fit_are_refused(kernels, more, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        make("noiseless", kernels, **more)


def test_the_first_kernel_is_the_policys_and_none_is_refitted():
    policy = make("noiseless", KERNELS)
    for change in ({"refit": nr.slots.Refit(every=5)}, {"kernel": nr.Matern(2.5, 0.7)}):
        with pytest.raises(nr.errors.InvalidInput, match="With a kernel for each epoch"):
            replace(policy, **change)


# -- other inner bandits -----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Constraint values are told")  # to a plain policy, on purpose
def test_gp_ucb_as_the_inner_bandit():
    """Theorem 3 of Srinivas et al. at delta / L, with the noise as its bound."""
    policy = nr.gp_ucb_noiseless_constraints(
        ARMS, KERNEL, noise=0.1, norm_bound=1.5, epoch=6, epochs=5, solver="gp_ucb", information_gain="greedy"
    )
    assert policy.regularization == pytest.approx(0.01)
    constrained = nr.Study(policy, seed=3)
    inner = nr.gp_ucb(ARMS, KERNEL, noise=0.1, width="rkhs", norm_bound=1.5, delta=0.1 / 5, information_gain="greedy")
    plain = nr.Study(inner, seed=3)
    for study in (constrained, plain):
        for _ in range(14):
            trial = study.ask()
            study.tell(trial, math.sin(9 * trial.point[0]), constraints=-0.5)
    assert [t.arm for t in constrained.trials] == [t.arm for t in plain.trials]
    assert constrained.width == plain.width
    loose = nr.gp_ucb_noiseless_constraints(ARMS, KERNEL, noise=0.1, norm_bound=1.5, epoch=6, epochs=5, solver="gp_ucb")
    assert loose.valid_for == "none"  # the gain realised does not do for Theorem 3
    with pytest.raises(nr.errors.InvalidInput, match="knows no noise that grows with the multipliers"):
        make("noisy", solver="gp_ucb")


def test_bounds_for_one_f_are_not_for_data_weighed_anew():
    """Theorem 6 of Srinivas et al. is for an f that was there before the noise; multipliers are made of what it did."""

    def proved(**more):
        rest = {"epochs": 5, "solver": "gp_ucb", "information_gain": "greedy", **more}
        return nr.gp_ucb_noiseless_constraints(ARMS, KERNEL, noise=0.1, norm_bound=1.5, epoch=6, **rest).valid_for

    assert proved() == "none"
    assert proved(memory="fresh") == "f"  # each epoch has an f of its own before it begins
    assert proved(epochs=1) == "f"
    assert proved(solver="igp_ucb") == "f"  # Theorem 2 of Chowdhury & Gopalan: all f of the ball at once
    sample = FiniteBayes(size=len(ARMS.points))
    policy = nr.gp_ucb_noiseless_constraints(ARMS, KERNEL, noise=0.1, epoch=6, epochs=5, width=sample)
    assert policy.valid_for == "none"
    inflated = Inflated(base=SelfNormalized(norm_bound=1.5, noise=0.1))
    waiting = policy.using(confidence=inflated, pending=Hallucinated())
    assert waiting.valid_for == "f"


@pytest.mark.parametrize("memory", ["kept", "fresh"])
def test_the_gain_of_an_epoch_is_that_of_its_kernel(memory):
    rough = nr.SquaredExponential(0.02)
    width = SelfNormalized(norm_bound=1.5, noise=0.1, gain=GreedyGain())
    policy = nr.gp_ucb_noiseless_constraints(
        ARMS, [KERNEL, rough], noise=0.1, epoch=4, epochs=2, width=width, memory=memory
    )
    study = nr.Study(policy, seed=0)
    for t in range(1, 9):
        kernel, count = (KERNEL, t - 1) if t <= 4 else (rough, t - 1 if memory == "kept" else t - 5)
        gamma = GreedyDesign(kernel, ARMS, policy.regularization).bound(count)
        beta = 1.5 + 0.1 * math.sqrt(2 * (gamma + 1 + math.log(1 / 0.1)))
        assert study.width == pytest.approx(beta, rel=1e-9)
        study.tell(study.ask(), 0.2, constraints=-0.5)


def test_the_gain_of_a_period_is_for_its_lambda():
    """Lambda = 1 + 2/T of the doubling periods; 9 is what the policy would have without them."""
    width = SelfNormalized(norm_bound=1.5, noise=0.1, gain=GreedyGain())
    memory = nr.slots.RestartDoubling(3, ridge=True)
    policy = nr.igp_ucb(ARMS, KERNEL, noise=0.1, width=width, regularization=9.0, memory=memory)
    study = nr.Study(policy, seed=0)
    for t, period in [(1, 3), (2, 3), (3, 3), (1, 3), (2, 3), (3, 3), (1, 6), (2, 6)]:
        gamma = GreedyDesign(KERNEL, ARMS, 1 + 2 / period).bound(t - 1)
        beta = 1.5 + 0.1 * math.sqrt(2 * (gamma + 1 + math.log(1 / 0.1)))
        assert study.width == pytest.approx(beta, rel=1e-9)
        study.tell(study.ask(), 0.2)


@pytest.mark.parametrize("domain", [ARMS, nr.Box([0.0], [1.0])], ids=["arms", "box"])
def test_expected_improvement_as_the_inner_bandit(kind, domain):
    """It plays what it plays on the penalised rewards alone, under multipliers that stay."""
    policy = make(kind, domain=domain, solver="expected_improvement", epoch=30, epochs=1)
    study = nr.Study(policy, seed=1)
    plain = nr.Study(nr.expected_improvement(domain, KERNEL, noise=0.1, regularization=0.01), seed=1)
    for _ in range(12):
        trial, other = study.ask(), plain.ask()
        np.testing.assert_allclose(trial.point, other.point, atol=1e-6)
        reward = math.sin(9 * trial.point[0])
        study.tell(trial, reward, constraints=trial.point - 0.1)
        plain.tell(other, policy.objective.target(study.trials[-1], study.multipliers))
    assert policy.confidence == make(kind, solver="igp_ucb", epoch=30, epochs=1).confidence  # bounds hold for any play


# -- the bounds --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("psi", "inverse"),
    [
        (nr.slots.ExponentialPenalty(0.5), lambda value: math.log(value) / 0.5),
        (nr.slots.PowerPenalty(2.0, 3.0), lambda value: (value ** (1 / 3) - 1) / 2),
        (Parabola(1.0), lambda value: -1 + math.sqrt(2 * value - 1)),
    ],
)
def test_bounds_11_and_12(psi, inverse):
    S, L, gamma, B, R, delta, gap, m = 40, 6, 5.0, 2.0, 0.3, 0.1, 0.7, 3
    width = B + R * math.sqrt(2 * (gamma + 1 + math.log(L / delta)))
    bounds = nr.theory.noiseless_constraints_bounds(
        S, L, width=width, information_gain=gamma, gap=gap, penalty=psi, constraints=m
    )
    inner = 4 * width * math.sqrt((S + 2) * gamma)  # eq. 15 with the constants of IGP-UCB's Theorem 3
    assert bounds.regret == pytest.approx(L * inner)
    # Eq. 22 is tight where one constraint takes it all; m of them are each at most that.
    most = S * inverse(1 + (L * S * gap + L * inner) / S)
    assert bounds.violation == pytest.approx(math.sqrt(m) * most)
    assert S * (psi([most / S])[0] - 1) == pytest.approx(L * S * gap + L * inner)
    free = nr.theory.noiseless_constraints_bounds(S, L, width=0.0, information_gain=gamma, gap=0.0, penalty=psi)
    assert free == (0.0, 0.0)


def test_the_orders_of_theorem_1():
    """exp: the violation is S log(...), and longer runs of longer epochs violate less on average."""

    def average(n, psi):
        S = L = n
        bounds = nr.theory.noiseless_constraints_bounds(S, L, width=1.0, information_gain=3.0, gap=1.0, penalty=psi)
        return bounds.violation / (S * L)

    assert average(400, nr.slots.ExponentialPenalty()) < 0.25 * average(50, nr.slots.ExponentialPenalty())
    # "we need n > 1 if we choose (9)": with n = 1 the bound stays linear.
    assert average(400, nr.slots.PowerPenalty(1.0, 1.0)) > 0.9
    assert average(400, nr.slots.PowerPenalty(1.0, 2.0)) < 0.5 * average(50, nr.slots.PowerPenalty(1.0, 2.0))


THEOREM_2 = {"noise": 0.02, "norm_bound": 2.0, "information_gain": 6.0, "constraints": 2, "delta": 0.1}


def by_hand(S, L, epsilon, mu, Q, M, *, noise, norm_bound, information_gain, constraints, delta):
    """Appendix C line by line; eq. 32 with the root of S that the event G_l has."""
    R, B, gamma, m, log = noise, norm_bound, information_gain, constraints, math.log(2 * L / delta)
    root = math.sqrt(2 * (gamma + 1 + log))
    margin = epsilon - 4 * R * root * math.sqrt((S + 2) * gamma) / S
    margin -= 2 * R * (math.sqrt(4 * m / S) + math.sqrt(log / S))
    event = 2 * R * (math.sqrt(4 * m * S) + math.sqrt(S * log))  # G_l, on the norm of the summed noise
    move = mu * (math.sqrt(m) * S * M + event) / S  # of kappa in one epoch
    top = 2 * Q + 4 * (B + R * root) * math.sqrt((S + 2) * gamma) / S
    top += m * mu * M**2 + 4 * mu * R**2 * (math.sqrt(4 * m) + math.sqrt(log)) ** 2 / S
    kappa = move + top / margin
    inner = 4 * (B + math.sqrt(1 + kappa**2) * R * root) * math.sqrt((S + 2) * gamma)
    products = m * S * mu * M**2 + mu / S * event**2 + kappa * event  # eq. 28: what -sum kappa_j g_j is at most
    return L * (inner + products), S * kappa / mu + L * event, kappa


def test_theorem_2_and_slaters_condition():
    S, L, mu = 100, 9, 2 / 3
    least = nr.theory.least_slack(S, L, noise=0.02, information_gain=6.0, constraints=2, delta=0.1)
    log = math.log(180)
    printed = 4 * (0.02 * math.sqrt(2 * 6 + 2 + 2 * log)) * math.sqrt(102 * 6) / S
    printed += 2 * 0.02 * (math.sqrt(8 / S) + math.sqrt(log / S))
    assert least == pytest.approx(printed)
    more = {"step": mu, "largest_reward": 1.5, "largest_constraint": 0.8}
    for slack in (1.1 * least, 0.6):
        bounds = nr.theory.noisy_constraints_bounds(S, L, slack=slack, **more, **THEOREM_2)
        assert bounds == pytest.approx(by_hand(S, L, slack, mu, 1.5, 0.8, **THEOREM_2))
    with pytest.raises(nr.errors.InvalidInput, match="Theorem 2 needs more than"):
        nr.theory.noisy_constraints_bounds(S, L, slack=least, **more, **THEOREM_2)


def test_the_orders_of_theorem_2():
    """With L = S and mu = 1 / sqrt(L) both averages fall as T^{-1/4}, or a little slower for their logarithms."""

    def averages(n):
        arguments = THEOREM_2 | {"information_gain": 3.0}
        bounds = nr.theory.noisy_constraints_bounds(
            n, n, slack=0.5, step=n**-0.5, largest_reward=1.0, largest_constraint=1.0, **arguments
        )
        return np.array([bounds.regret, bounds.violation]) / n**2, bounds.multipliers

    small, large = averages(10_000), averages(160_000)
    ratio = large[0] / small[0]
    assert (ratio < 0.28).all()  # 16^{-1/2} is 0.25
    assert (ratio > 0.22).all()
    assert large[1] < small[1]  # multipliers are O(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: nr.theory.noiseless_constraints_bounds(
            0, 5, width=1.0, information_gain=1.0, gap=0.0, penalty=nr.slots.ExponentialPenalty()), "`epoch` is 0"),
        (lambda: nr.theory.noiseless_constraints_bounds(
            5, 5, width=1.0, information_gain=1.0, gap=-0.1, penalty=nr.slots.ExponentialPenalty()), "`gap` is -0.1"),
        (lambda: nr.theory.noiseless_constraints_bounds(
            5, 5, width=1.0, information_gain=1.0, gap=0.0, penalty="exp"), "`penalty` is 'exp'"),
        (lambda: nr.theory.least_slack(5, 0, noise=0.1, information_gain=1.0), "`epochs` is 0"),
        (lambda: nr.theory.least_slack(5, 5, noise=0.1, information_gain=1.0, delta=1.0), "`delta` is 1"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        call()


def test_runs_keep_what_the_theorems_promise(kind):
    """Small worlds in which the assumptions hold: f and g of known norm, fresh epochs, lambda = 1 + 2/S."""
    S, L, noise = 30, 4, 0.02
    arms = nr.Arms.grid(0, 1, 15)
    K = KERNEL(arms.points, arms.points)
    f = g = K[:, 8]  # of norm 1: what is best violates most
    env = nr.Environment(
        lambda x: f[arms.index(x)], domain=arms, noise=noise, constraints=lambda x: g[arms.index(x), None] - 0.5,
        constraint_noise=noise if kind == "noisy" else 0.0,
    )  # fmt: skip
    policy = ALGORITHMS[kind](arms, KERNEL, noise=noise, norm_bound=6.0, epoch=S, epochs=L, memory="fresh")
    gamma = nr.information_gain(KERNEL, arms, math.sqrt(1 + 2 / S), count=S, bound="sharp")
    runs = nr.replicate(lambda: policy, lambda: env, S * L, seeds=range(3))
    feasible = g <= 0.5
    if kind == "noiseless":
        width = 6.0 + noise * math.sqrt(2 * (gamma + 1 + math.log(L / 0.1)))
        bounds = nr.theory.noiseless_constraints_bounds(
            S,
            L,
            width=width,
            information_gain=gamma,
            gap=f.max() - f[feasible].max(),
            penalty=policy.objective.function,
        )
    else:
        bounds = nr.theory.noisy_constraints_bounds(
            S, L, noise=noise, norm_bound=6.0, information_gain=gamma, slack=0.5 - g.min(), largest_reward=1.0,
            step=policy.objective.step, largest_constraint=0.5,
        )  # fmt: skip
        assert (runs.multipliers <= bounds.multipliers).all()
    assert (runs.cumulative_regret[:, -1] <= bounds.regret).all()
    assert (runs.violation[:, -1] <= bounds.violation).all()
    assert (runs.constraints > 0).any()


# -- what was realised -------------------------------------------------------------------------------------------------


def test_realised_violation_is_of_what_was_told():
    env = nr.Environment(lambda x: x[:, 0], domain=ARMS, noise=0.1, constraints=lambda x: x - 0.3, constraint_noise=0.5)
    run = nr.simulate(make("noisy"), env, 20, seed=2)
    rng_free = run.told_constraints - run.constraints
    assert 0.2 < rng_free.std() < 0.9
    total = np.cumsum(run.told_constraints[:, 0])
    np.testing.assert_allclose(run.realised_violation, np.maximum(total, 0.0))
    assert not np.allclose(run.realised_violation, run.violation)
    # The multipliers are made of it: eq. of Algorithm 3 after the first epoch.
    step = make("noisy").objective.step
    assert run.multipliers[5, 0] == pytest.approx(max(step * run.told_constraints[:5, 0].mean(), 0.0))
    exact = nr.simulate(
        make("noiseless"), nr.Environment(lambda x: x[:, 0], domain=ARMS, constraints=lambda x: x - 0.3, noise=0.1), 8
    )
    np.testing.assert_array_equal(exact.told_constraints, exact.constraints)
    plain = nr.simulate(nr.gp_ucb(ARMS, KERNEL, noise=0.1), nr.Environment(lambda x: x[:, 0], domain=ARMS), 3)
    assert plain.told_constraints.shape == (3, 0)
    both = nr.replicate(lambda: make("noisy"), lambda: env, 6, seeds=range(2))
    assert both.told_constraints.shape == (2, 6, 1)
    assert both.realised_violation.shape == (2, 6)


def test_a_stored_policy_of_before_is_read():
    """Descriptions without the fields that came later mean what they meant."""
    policy = make("noiseless", penalty="power", c=2.0)
    text = policy.to_json().replace(', "kernels": []', "")
    assert "kernels" not in text
    script = f"import nilregret as nr; print(nr.Policy.from_json({text!r}).to_json())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == policy.to_json()
