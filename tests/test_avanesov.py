"""The figures of GP-UCB-CPD: settings as printed, fits, and statements that can fail."""

import math

import numpy as np
import pytest

import nilregret as nr
from nilregret import papers
from nilregret.papers import avanesov
from nilregret.papers.figure import PowerFit, fit_power
from nilregret.study.curves import Curves, Interval


def test_figures_and_their_sizes():
    figures = {figure.name: figure for paper in papers.papers() for figure in paper.figures}
    sizes = {name: (f.trials, f.rounds) for name, f in figures.items() if name.startswith("avanesov")}
    assert sizes == {"avanesov-1": (64, 2400), "avanesov-2": (64, 2700), "avanesov-3": (64, 1200)}


def test_settings_of_section_4():
    policy = avanesov.rule(1200)
    assert policy.explore.xi == math.sqrt(3)
    detector = policy.memory.detector(policy.domain, policy.context, policy.kernel)
    assert detector._schedules.at(7) == pytest.approx((2.6 * 7 ** (-6 / 7), 2 * 7 ** (1 / 7)))
    assert policy.kernel == nr.Matern(2.5, 1.0)
    assert policy.regularization == pytest.approx(6 * 0.05**2 * math.log(1200))  # eq. 3.4
    study = nr.Study(policy)
    assert study.width == pytest.approx(math.sqrt(0.02 * math.log(1200) ** 3))  # eq. 3.7, t = 1
    assert len(policy.domain) == 1000
    assert (policy.domain.points[0, 0], policy.domain.points[-1, 0]) == (0.0, 5.0)
    env = avanesov.world(3, 1200, 4)
    assert env.change_points == (300, 600, 900)
    assert env.noise == 0.05
    fewer = avanesov.world(3, 900, 2)
    np.testing.assert_array_equal(fewer.values, env.values)  # a seed's functions are the same in all figures


def test_a_power_law_is_found_with_its_interval():
    x = np.array([1.0, 2.0, 5.0, 9.0])
    exact = fit_power(x, np.tile(3.0 * x**0.7, (5, 1)))
    assert (exact.constant, exact.exponent.mean) == pytest.approx((3.0, 0.7))
    assert exact.exponent.high - exact.exponent.low == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(exact(x), 3.0 * x**0.7)
    assert exact.words("T") == "3 T^0.7"
    alone = fit_power(x, 3.0 * x[None] ** 0.7)
    assert alone.exponent.low == -math.inf
    for values in (np.zeros((2, 4)), -np.ones((2, 4))):
        with pytest.raises(nr.errors.InvalidInput, match="positive"):
            fit_power(x, values)


def test_the_interval_of_the_exponent_covers_it():
    """Of 400 intervals of level 95% (30 replicates, levels that hang together) 95% +- 3 standard deviations cover."""
    x = np.geomspace(1.0, 10.0, 5)
    covered = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        noise = 0.3 * rng.standard_normal((30, 1)) + 0.2 * rng.standard_normal((30, 5))
        fit = fit_power(x, x**0.5 * (1.0 + noise))
        covered += fit.exponent.low <= 0.5 <= fit.exponent.high
    assert abs(covered / 400 - 0.95) < 3 * math.sqrt(0.95 * 0.05 / 400) + 0.01


def test_statements_about_growth():
    T = np.array(avanesov.HORIZONS, dtype=float)
    spread = 1.0 + 0.01 * np.array([[-1.0], [0.0], [1.0]]) * np.array([1.0, -1.0, 1.0, -1.0, 1.0])

    def verdicts(values, symbol="T"):
        return [s.holds for s in avanesov.growth_statements(fit_power(T, values), T, values, symbol)]

    assert verdicts(1.86 * T**0.74 * spread) == [True, True, True, True]
    assert verdicts(0.3 * T * spread) == [False, False, False, False]
    assert verdicts(2.0 * 1.86 * T**0.74 * spread) == [True, True, False, True]
    assert verdicts(1.5 * T**0.77 * spread) == [True, True, True, True]
    assert verdicts(0.9 * T**0.82 * spread) == [True, True, False, False]
    assert avanesov.PRINTED["K"] == PowerFit(502.0, Interval(0.282, 0.21, 0.35))


def cumulated(*by_period, trials=4):
    """Cumulative regret over four periods of ten rounds, with a little that differs from trial to trial."""
    steps = np.repeat(np.array(by_period) / 10.0, 10)
    return np.cumsum(steps) * (1.0 + 0.01 * np.arange(trials)[:, None])


def test_statements_about_the_comparison():
    changes = (10, 20, 30)
    x = np.arange(1.0, 41.0)

    def verdicts(alarm=(0, 0, 0, 0), **regret):
        lines = {
            avanesov.ORACLE: cumulated(20, 20, 20, 20),
            avanesov.CPD: cumulated(20, 30, 30, 30),
            avanesov.UCB: cumulated(10, 40, 50, 60),
            avanesov.NEVER: cumulated(20, 45, 55, 60),
        } | {getattr(avanesov, name): cumulated(*values) for name, values in regret.items()}
        shown = Curves(x=x, lines=lines, x_label="", y_label="")
        both = (*avanesov.before_the_change(shown, np.array(alarm), 10), *avanesov.after_it(shown, changes))
        return [statement.holds for statement in both]

    assert verdicts() == [True] * 7
    assert verdicts(alarm=(0, 1, 0, 0))[2] is False
    assert verdicts(UCB=(25, 40, 50, 60))[0] is False
    assert verdicts(CPD=(35, 30, 30, 30))[1] is False
    assert verdicts(CPD=(20, 20, 20, 20))[3] is False
    assert verdicts(UCB=(10, 10, 10, 10))[4] is False
    assert verdicts(CPD=(20, 50, 60, 70))[5] is False
    assert verdicts(NEVER=(20, 100, 100, 100))[6] is False
    assert verdicts(NEVER=(20, 30, 40, 50))[6] is False


def test_when_a_run_has_restarted_since_the_last_change():
    f = [lambda x: x[:, 0]] * 2
    env = nr.Environment(f, domain=nr.Arms.grid(0, 1, 4), change_points=[6])
    policy = nr.gp_ucb(env.domain, nr.SquaredExponential(0.3), noise=0.1, memory=nr.slots.RestartAt((2, 8)))
    run = nr.simulate(policy, env, 10, seed=0)
    np.testing.assert_array_equal(avanesov.restarted(run, [6]), [0, 0, 1, 1, 1, 1, 0, 0, 1, 1])


@pytest.mark.parametrize(
    "more",
    [{"detector": "oracle", "change_points": 3}, {"detector": "oracle", "change_points": 2.5}, {"alpha": np.ones(2)}],
)
def test_odd_arguments_are_refused_by_name(more):
    name = list(more)[-1]
    with pytest.raises(nr.errors.InvalidInput, match=name):
        nr.gp_ucb_cpd(nr.Arms.grid(0, 1, 11), nr.Matern(2.5), noise=0.1, horizon=50, **more)
