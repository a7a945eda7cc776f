"""The arithmetic of `benchmarks/tuning.py`: its problems' optima, its cache, and what it makes of runs."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import tuning
from tuning_parts import coco
from tuning_parts.functions import EXTRA, FUNCTIONS
from tuning_parts.methods import METHODS, OfPolicy, add_policy
from tuning_parts.problems import DEVELOPMENT, HELD_OUT, MODELS_DEVELOPMENT, MODELS_HELD_OUT, PROBLEMS
from tuning_parts.report import Table, best_peer, bootstrap, present, reached, rows, worker_ratios
from tuning_parts.runs import Cache, key, parts, run
from tuning_parts.show import markdown, ratio_text, within_text
from tuning_parts.suites import SUITES

OPTIMA = {
    "hartmann-6": {"x0": 0.20169, "x1": 0.150011, "x2": 0.476874, "x3": 0.275332, "x4": 0.311652, "x5": 0.6573},
    "ackley-mixed": dict.fromkeys(["x0", "x1", "x2", "x3", "x4"], 0),
    "branin-category": {"x": 3.14159265, "y": 2.275, "kind": "c"},
    "levy-5": {f"x{i}": 1.0 for i in range(5)},
    "camel-noisy": {"x": 0.089842, "y": -0.712656},
    "conditional-when": {"way": "ride", "shared": 0.8, "load": 10**-1.5, "gear": 7},
    "conditional": {"way": "ride", "shared": 0.8, "pace": 0.1, "load": 10**-1.5, "gear": 7},
    "ackley-10": {f"x{i}": 0.0 for i in range(10)},
    "log-rosenbrock": {f"x{i}": 10.0 for i in range(4)},
    "levy-20": {f"x{i}": 1.0 for i in range(20)},
    "integers": {"x0": 3, "x1": 17, "x2": 8, "x3": -11, "x4": 29},
    "hartmann-3-noisy": {"x0": 0.114614, "x1": 0.555649, "x2": 0.852547, "kind": "c"},
    "ackley-20": {f"x{i}": 0.0 for i in range(20)},
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


def test_models_that_are_held_out_belong_to_no_other_half():
    assert len(MODELS_DEVELOPMENT) >= 8 <= len(MODELS_HELD_OUT)
    assert not set(MODELS_HELD_OUT) & {*DEVELOPMENT, *HELD_OUT, *MODELS_DEVELOPMENT}


def test_extra_problems_belong_to_neither_half():
    for problem in EXTRA:
        assert problem.name in PROBLEMS
        assert problem.name not in DEVELOPMENT + HELD_OUT


@pytest.mark.parametrize("problem", [*FUNCTIONS, *EXTRA], ids=lambda problem: problem.name)
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


def test_policies_join_by_dotted_name():
    add_policy("plain=tuning_parts.methods:expected_improvement")
    try:
        assert run("levy-5", "plain", 3, 2) | {"wall": 0, "cpu": 0} == run("levy-5", "ei", 3, 2) | {
            "method": "plain", "wall": 0, "cpu": 0,
        }  # fmt: skip
    finally:
        del METHODS["plain"]


class Watched:
    """A method that remembers in which order it was asked and told, in `log`."""

    def __init__(self, space, seed):
        self.space, self.names, self.log = space, {}, []
        Watched.last = self

    def suggest(self):
        parameters = dict.fromkeys(self.space.parameters, 0.0) | {"x0": len(self.names) / 100}
        self.names[id(parameters)] = (parameters, len(self.names))
        self.log.append(f"ask {len(self.names) - 1}")
        return parameters

    def tell(self, parameters, reward):
        self.log.append(f"tell {self.names[id(parameters)][1]}")


@pytest.fixture
def watched():
    METHODS["watched"] = Watched
    yield
    del METHODS["watched"]


def test_names_of_several_workers_are_read_back():
    assert key("ei") == "ei"
    for name, said in (("ei", ("ei", 1)), ("ei@4", ("ei", 4)), ("ei@12", ("ei", 12))):
        assert parts(name) == said
        assert key(*said) == name


@pytest.mark.usefixtures("watched")
def test_one_worker_is_told_before_it_asks():
    run("levy-5", "watched", 0, 3)
    assert Watched.last.log == ["ask 0", "tell 0", "ask 1", "tell 1", "ask 2", "tell 2"]


@pytest.mark.usefixtures("watched")
def test_of_three_workers_each_asks_as_soon_as_it_is_told():
    done = run("levy-5", "watched", 0, 5)
    together = run("levy-5", "watched@3", 0, 5)
    order = ["ask 0", "ask 1", "ask 2", "tell 0", "ask 3", "tell 1", "ask 4", "tell 2", "tell 3", "tell 4"]
    assert Watched.last.log == order
    assert together["values"] == done["values"]
    assert together["method"] == "watched@3"
    assert (np.diff(together["cpu"]) >= 0.0).all()


def test_more_workers_than_trials_are_no_harm():
    assert len(run("levy-5", "random@9", 0, 4)["values"]) == 4


def test_a_policy_suggests_while_answers_are_pending():
    done = run("conditional", "ei@4", 0, 7)
    assert np.isfinite(done["told"]).all()
    assert len(set(done["values"])) > 3


@pytest.mark.parametrize(("name", "workers"), [("taking", 1), ("taking@3", 3)])
def test_policies_that_take_it_are_told_the_number_of_workers(name, workers):
    told = []

    def make(space, *, parallel):
        told.append(parallel)
        return METHODS["ei"].make(space)

    METHODS["taking"] = OfPolicy(make)
    try:
        run("levy-5", name, 0, 3)
    finally:
        del METHODS["taking"]
    assert told == [workers]


def three_methods():
    """On two problems with five seeds: "good" always before "bad"; "bad" before random search, or far behind."""
    cache, rng = Cache(None), np.random.default_rng(0)
    for problem, poor in (("levy-5", -3.0), ("ackley-10", -90.0)):
        for seed in range(5):
            for method, value in (("random", -9.0), ("good", -1.0), ("bad", poor)):
                values = [value - rng.uniform(0.0, 0.5), value - 1.0]
                cache.add({"problem": problem, "method": method, "seed": seed, "values": values, "told": values,
                           "wall": [1.0, 2.0], "cpu": [0.5, 0.75]})  # fmt: skip
    return cache, ["levy-5", "ackley-10"]


def test_rows_have_ranks_and_what_the_first_has_less():
    cache, problems = three_methods()
    table = Table(cache, problems, ["good", "bad", "random"], range(5), 2)
    good, bad, random = rows(table)
    assert table.ranks().tolist() == [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]
    assert (good.rank, bad.rank, random.rank) == (1.0, 2.5, 2.5)
    assert good.rank_interval == (1.0, 1.0)
    assert bad.rank_interval == (2.0, 3.0)  # problems are drawn anew too
    assert bad.rank_less == -1.5
    assert bad.rank_less_interval == (-2.0, -1.0)
    assert good.rank_less_interval == (0.0, 0.0)
    assert bad.less_interval[0] < bad.less < bad.less_interval[1] < 0.0
    assert (good.wall, good.cpu, good.ask, good.runs) == (2.0, 0.75, 0.5, 10)
    assert [name for name, _ in bad.worse] == ["ackley-10"]
    assert bad.worse[0][1][0] > 1.0
    assert not good.worse
    assert not random.worse


def test_comparisons_use_the_seeds_that_both_have():
    cache, problems = three_methods()
    for seed in (1, 3, 4):
        del cache.runs["levy-5", "bad", seed]
    del cache.runs["levy-5", "good", 0]
    table = Table(cache, problems, ["good", "bad", "random"], range(5), 2)
    assert table.ranks().tolist() == [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]  # of "good" and "bad" seed 2 alone
    found = table.regret[:, 0] - table.regret[:, 1]
    assert rows(table)[1].less == pytest.approx((found[0, 2] + found[1].mean()) / 2.0)
    del cache.runs["levy-5", "good", 2]
    ranks = Table(cache, problems, ["good", "bad", "random"], range(5), 2).ranks()
    assert np.isnan(ranks[0, :2]).all()  # no seed in common
    assert ranks[1].tolist() == [1.0, 3.0, 2.0]
    assert present(cache, problems, ["good", "absent"], range(5), 2) == ["good"]
    assert present(cache, problems, ["good"], range(5), 3) == []


def test_ranks_of_complete_runs_are_means_over_seeds():
    cache = Cache(None)
    for seed, (mine, plain) in enumerate([(-1.0, -2.0), (-2.0, -1.0), (-1.0, -3.0), (-5.0, -5.0)]):
        made(cache, "mine", seed, [mine])
        made(cache, "random", seed, [plain])
    ranks = Table(cache, ["levy-5"], ["mine", "random"], range(4), 1).ranks()
    assert ranks[0].tolist() == [(1 + 2 + 1 + 1.5) / 4, (2 + 1 + 2 + 1.5) / 4]


def test_share_that_reached_the_maximum_has_wilsons_interval():
    cache = Cache(None)
    for seed in range(40):
        made(cache, "mine", seed, [-5.0, -0.5 if seed == 7 else -0.005])
    hits, count, (low, high) = reached(cache, "levy-5", "mine", range(40), 2, 0.01)
    assert (hits, count) == (39, 40)
    z, p = 1.959963984540054, 39 / 40
    middle, half = p + z * z / 80, z * np.sqrt(p * (1 - p) / 40 + z * z / 6400)
    assert (low, high) == pytest.approx(((middle - half) / (1 + z * z / 40), (middle + half) / (1 + z * z / 40)))
    assert "39 of 40, 97.5% [87.1%, 99.6%]" in within_text(cache, ["levy-5"], ["mine"], range(40), 2, 0.01)
    assert "no runs" in within_text(cache, ["levy-5"], ["mine"], range(40), 3, 0.01)


def test_ratio_of_workers_is_of_mean_regrets_at_equal_trials():
    cache = Cache(None)
    for seed in range(6):
        made(cache, "random", seed, [-4.0])
        made(cache, "mine", seed, [-2.0 - 0.1 * seed])
        if seed != 3:
            made(cache, "mine@4", seed, [1.5 * (-2.0 - 0.1 * seed)])
    one, many = (Table(cache, ["levy-5"], [name], range(6), 1) for name in ("mine", "mine@4"))
    ((ratio, (low, high), runs),) = worker_ratios(one, many)
    assert (ratio, low, high) == pytest.approx((1.5, 1.5, 1.5))
    assert runs == 5
    assert "mine@4 / mine: 1.500 [1.500, 1.500], 5 runs each" in ratio_text(one, many, "chosen")


def test_the_page_says_the_exceptions():
    cache, problems = three_methods()
    table = Table(cache, problems, ["good", "bad", "random"], range(5), 2)
    page = markdown({"both": table})
    assert "| good | 0.1" in page
    assert "Differences are good's number less the one of the line: above 0" in page
    assert rows(table)[1].less < 0.0  # of the worse one
    assert "- bad: ackley-10 [" in page
    tables = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.count("|") for line in tables[:5]} == {10}
    assert {line.count("|") for line in tables[5:]} == {5}


def test_methods_suggest_what_counts_alone():
    problem = PROBLEMS["conditional-when"]
    method, named = METHODS["random"](problem.space, 0), set()
    for _ in range(20):
        parameters = method.suggest()
        named.add((parameters["way"], *sorted(parameters)))
        method.tell(parameters, problem.value(parameters))
    assert named == {
        ("walk", "pace", "shared", "way"),
        ("ride", "gear", "load", "shared", "way"),
        ("stay", "shared", "way"),
    }


@pytest.mark.parametrize("suite", SUITES)
def test_names_of_suites_resolve_and_halves_are_apart(suite):
    halves = {half: SUITES[suite].names(half, None) for half in ("development", "held-out")}
    assert not set(halves["development"]) & set(halves["held-out"])
    assert set(SUITES[suite].methods) <= set(METHODS)
    for half, names in halves.items():
        assert len(names) == len(set(names)) > 0
        assert all(name in PROBLEMS or coco.NAME.fullmatch(name) for name in names)
        grouped = SUITES[suite].groups(names)
        assert {name for group in grouped.values() for name in group} in ({*names}, set())
        for name in names:
            parts_of = coco.NAME.fullmatch(name)
            held_out = PROBLEMS[name].held_out if parts_of is None else int(parts_of[4]) in coco.HELD_OUT
            assert held_out == (half == "held-out")


def test_held_out_suite_of_functions_has_84_problems_in_five_groups():
    names = SUITES["bbob"].names("held-out", None)
    assert len(names) == 14 * 3 * 2
    groups = SUITES["bbob"].groups(names)
    assert [len(group) for group in groups.values()] == [12, 18, 12, 18, 24, 28, 28, 28]
    assert len(SUITES["bbob"].names("held-out", [20, 40])) == 8 * 2


def test_the_figures_of_the_readme_are_of_the_policy_that_it_names():
    first = tuning.USUAL["methods"][0]
    assert METHODS[first].make.__name__ == "auto"


def logged(cache, problem, gaps, **more):
    """Runs of one trial on a problem whose optimum is 0, by method."""
    for method, gap in gaps.items():
        cache.add({"problem": problem, "method": method, "seed": 0, "values": [-gap], "told": [-gap], "wall": [1.0],
                   "cpu": [1.0], **more})  # fmt: skip


def test_logarithms_of_gaps_have_a_floor_and_a_best_peer():
    cache, problems = Cache(None), ["levy-5", "levy-20", "ackley-10"]
    logged(cache, "levy-5", {"auto": 0.0, "random": 10.0, "tpe": 1.0, "cmaes": 1e-3})
    logged(cache, "levy-20", {"auto": 0.1, "random": 1e5, "tpe": 1e4, "cmaes": 1e3})
    logged(cache, "ackley-10", {"auto": 0.1, "random": 10.0, "tpe": 1.0, "gpsampler": 0.01})
    names = ["auto", "random", "tpe", "cmaes", "gpsampler"]
    table = Table(cache, problems, names, [0], 1, measure="log gap", redraw=True)
    assert table.regret[:, 0, 0].tolist() == [-8.0, -1.0, -1.0]
    every = rows(table)
    assert every[2].less == pytest.approx(-14.0 / 3)
    assert every[2].less_interval == pytest.approx((-8.0, -1.0))  # of one seed: over problems alone
    peer = best_peer(every)
    assert (peer.method, peer.less, peer.problems) == ("gpsampler", 1.0, 1)  # of the runs that both have
    assert np.isnan(every[4].rank)  # on a third of the problems
    assert every[0].rank == pytest.approx(1.0)  # where the others are
    groups = {"first": Table(cache, problems[:2], names, [0], 1, measure="log gap", redraw=True)}
    printed = markdown({"two": table}, {"two": groups})
    assert "auto less the best peer: gpsampler +1.000 [+1.000, +1.000], 1 problems" in printed
    assert "Worse than random" not in printed
    assert "+3.000, 4.00, -7.50 [-9.00, -6.00]" in printed
    assert printed.split()[-4:] == ["-", "|", "cmaes", "|"]  # no run of the last method


def test_under_noise_the_recommended_point_counts_where_the_run_has_it():
    cache = Cache(None)
    logged(cache, "levy-5", {"mine": 4.0}, recommended={"1": -0.5})
    assert Table(cache, ["levy-5"], ["mine"], [0], 1, measure="gap").regret[0, 0, 0] == 0.5
    done = run("camel-noisy", "ei", 0, 12)
    assert list(done["recommended"]) == ["12"]
    assert done["recommended"]["12"] in done["values"]
    told_best = run("camel-noisy", "random", 0, 31)
    assert told_best["recommended"]["30"] == told_best["values"][int(np.argmax(told_best["told"][:30]))]
    assert "recommended" not in run("levy-5", "random", 0, 2)
