"""The arithmetic of `benchmarks/tuning.py`: its problems' optima, its cache, and what it makes of runs."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

from tuning_parts.functions import FUNCTIONS
from tuning_parts.methods import METHODS, add_method, add_policy
from tuning_parts.problems import DEVELOPMENT, HELD_OUT, PROBLEMS
from tuning_parts.report import Table, bootstrap
from tuning_parts.runs import Cache, run

OPTIMA = {
    "hartmann-6": {"x0": 0.20169, "x1": 0.150011, "x2": 0.476874, "x3": 0.275332, "x4": 0.311652, "x5": 0.6573},
    "ackley-mixed": dict.fromkeys(["x0", "x1", "x2", "x3", "x4"], 0),
    "branin-category": {"x": 3.14159265, "y": 2.275, "kind": "c"},
    "levy-5": {f"x{i}": 1.0 for i in range(5)},
    "camel-noisy": {"x": 0.089842, "y": -0.712656},
    "conditional": {"way": "ride", "shared": 0.8, "pace": 0.1, "load": 10**-1.5, "gear": 7},
    "ackley-10": {f"x{i}": 0.0 for i in range(10)},
    "log-rosenbrock": {f"x{i}": 10.0 for i in range(4)},
    "levy-20": {f"x{i}": 1.0 for i in range(20)},
    "integers": {"x0": 3, "x1": 17, "x2": 8, "x3": -11, "x4": 29},
    "hartmann-3-noisy": {"x0": 0.114614, "x1": 0.555649, "x2": 0.852547, "kind": "c"},
    "cliff": {"x0": 0.440706, "x1": 0.3, "x2": 0.845565, "x3": 0.15},
}


def random_points(problem, count):
    rng = np.random.default_rng(0)
    for point in rng.uniform(size=(count, problem.space.dimension)):
        yield problem.space.decode(problem.space.snap(point[None])[0])


def test_halves_have_models_and_functions_alike():
    for names, least in ((DEVELOPMENT, 14), (HELD_OUT, 10)):
        models = sum(PROBLEMS[name].model for name in names)
        assert len(names) >= least
        assert 2 * models == len(names)


@pytest.mark.parametrize("problem", FUNCTIONS, ids=lambda problem: problem.name)
def test_known_optimum_is_reached_and_not_surpassed(problem):
    assert problem.value(OPTIMA[problem.name]) == pytest.approx(problem.best, abs=2e-4)
    assert max(problem.value(parameters) for parameters in random_points(problem, 500)) <= problem.best + 1e-6


@pytest.mark.parametrize("name", [name for name, problem in PROBLEMS.items() if problem.model])
def test_models_are_finite_and_repeat_themselves(name):
    problem = PROBLEMS[name]
    for parameters in random_points(problem, 2):
        value = problem.value(parameters)
        assert np.isfinite(value)
        assert problem.value(parameters) == value


def made(cache, method, seed, values, told=None):
    seconds = [0.5 * (i + 1) for i in range(len(values))]
    cache.add({"problem": "levy-5", "method": method, "seed": seed, "values": values, "told": told or values,
               "wall": seconds, "cpu": seconds})  # fmt: skip


def test_regret_is_divided_by_that_of_the_median_random_search():
    cache = Cache(None)
    for seed, value in enumerate([-1.0, -4.0, -8.0]):
        made(cache, "random", seed, [-9.0, value, -10.0])
        made(cache, "mine", seed, [-2.0, -6.0, -0.5])
    table = Table(cache, ["levy-5"], ["mine", "random"], [0, 1, 2], 3)
    assert table.regret[0, 0] == pytest.approx([0.125] * 3)
    assert table.regret[0, 1] == pytest.approx([0.25, 1.0, 2.0])
    assert table.ranks() == pytest.approx(np.array([[1.0, 2.0]]))
    assert table.cpu[0, 0] == pytest.approx([1.5] * 3)
    shorter = Table(cache, ["levy-5"], ["mine"], [0], 2)  # a run's beginning is a shorter run
    assert shorter.regret[0, 0, 0] == pytest.approx(2.0 / 4.0)


def test_under_noise_the_trial_that_was_told_best_counts():
    cache = Cache(None)
    made(cache, "random", 0, [-2.0, -2.0])
    made(cache, "mine", 0, [-1.0, -3.0], told=[-1.5, -0.5])
    assert Table(cache, ["levy-5"], ["mine"], [0], 2).regret[0, 0, 0] == pytest.approx(1.5)


def test_bootstrap_covers_the_mean():
    rows = np.random.default_rng(0).normal(0.3, 0.1, size=(5, 20))
    low, high = bootstrap(rows, np.random.default_rng(1))
    assert low < rows.mean() < high
    assert high - low < 0.08


def test_cache_outlives_the_process_and_keeps_the_longest(tmp_path):
    first = Cache(tmp_path / "deep")
    done = run("conditional", "random", 0, 3)
    first.add(run("conditional", "random", 0, 5))
    first.add(done)
    again = Cache(tmp_path / "deep")
    assert again.has("conditional", "random", 0, 5)
    assert not again.has("conditional", "random", 0, 6)
    assert again.runs["conditional", "random", 0]["values"][:3] == done["values"]
    assert all(wall >= 0.0 for wall in done["wall"])


def test_policies_and_methods_join_by_dotted_name():
    add_policy("plain=tuning_parts.methods:expected_improvement")
    add_method("blind=tuning_parts.methods:RandomSearch")
    try:
        assert run("levy-5", "plain", 3, 2) | {"wall": 0, "cpu": 0} == run("levy-5", "ei", 3, 2) | {
            "method": "plain", "wall": 0, "cpu": 0,
        }  # fmt: skip
        assert run("levy-5", "blind", 3, 4)["values"] == run("levy-5", "random", 3, 4)["values"]
    finally:
        del METHODS["plain"], METHODS["blind"]
