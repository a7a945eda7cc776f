"""`compare`: paired runs, their table, and its pictures."""

import math
import re
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib.text import Text

import nilregret as nr
from nilregret.errors import InvalidInput, NoRegretWarning
from nilregret.plots import lines
from nilregret.simulation import Comparison
from nilregret.simulation.compare_policies import _difference, _wins
from nilregret.study.curves import carried_by

KERNEL, ARMS = nr.SquaredExponential(0.2), nr.Arms.grid(0, 1, 20)
POLICIES = {
    "GP-UCB": nr.gp_ucb(ARMS, KERNEL, noise=0.1, scale=0.1),
    "EI": nr.expected_improvement(ARMS, KERNEL, noise=0.1),
    "greedy": nr.algorithms.greedy_mean(ARMS, KERNEL, noise=0.1),
}


def world(seed):
    return nr.Environment(nr.environments.gp_sample(KERNEL, ARMS, seed=seed), domain=ARMS, noise=0.1)


@pytest.fixture(scope="module")
def compared():
    return nr.compare(POLICIES, world, rounds=15, seeds=range(3, 9))


def test_the_numbers_are_those_of_replicate(compared):
    runs = {name: nr.replicate(lambda p=policy: p, world, 15, seeds=range(3, 9)) for name, policy in POLICIES.items()}
    assert [row.policy for row in compared.table] == list(POLICIES)
    best = min(runs, key=lambda name: runs[name].total_regret.mean())
    for row in compared.table:
        own, other = runs[row.policy].total_regret, runs[best].total_regret
        np.testing.assert_array_equal(compared.runs["environment"][row.policy].rewards, runs[row.policy].rewards)
        assert row.reference == best == compared.best()
        assert row.cumulative_regret == own.mean()
        assert row.cumulative_error == pytest.approx(own.std(ddof=1) / math.sqrt(6))
        differences = own - other
        assert row.cumulative_difference == pytest.approx(differences.mean())
        half = 3.5341 * differences.std(ddof=1) / math.sqrt(6)  # t with 5 degrees of freedom, 1 - .025 / 3 pairs
        assert row.cumulative_upper - row.cumulative_difference == pytest.approx(half, rel=1e-4)
        simple = runs[row.policy].simple_regret[:, -1] - runs[best].simple_regret[:, -1]
        assert row.simple_difference == pytest.approx(simple.mean())
        assert math.isnan(row.violation)
    assert sum(row.cumulative_wins for row in compared.table) == pytest.approx(1.0)
    simple = np.array([runs[row.policy].simple_regret[:, -1] for row in compared.table])
    least = (simple == simple.min(axis=0)) / (simple == simple.min(axis=0)).sum(axis=0)
    assert [row.simple_wins for row in compared.table] == pytest.approx(least.mean(axis=1).tolist())


def test_all_policies_meet_the_same_world_and_noise(compared):
    runs = compared.runs["environment"]
    for i, seed in enumerate(range(3, 9)):
        values = world(seed).values
        noise = [run.rewards[i] - values[run.arms[i]] for run in runs.values()]
        np.testing.assert_allclose(noise, [noise[0]] * 3, atol=1e-12)
        best = [run.regret[i] + values[run.arms[i]] for run in runs.values()]
        np.testing.assert_allclose(best, values.max())


def test_the_result_does_not_depend_on_processes(monkeypatch, compared):
    monkeypatch.setattr("nilregret.simulation.runner.START", 0.0)
    again = nr.compare({"EI": lambda: POLICIES["EI"]}, lambda seed: world(seed), rounds=15, seeds=range(3, 9), jobs=2)
    np.testing.assert_array_equal(again.runs["environment"]["EI"].rewards, compared.runs["environment"]["EI"].rewards)


def test_each_world_is_made_once_for_all_policies():
    made = []

    def counted(seed):
        made.append(seed)
        return world(seed)

    nr.compare(POLICIES, counted, rounds=2, seeds=[5, 6])
    assert sorted(made) == [5, 5, 6]  # The first one again, to see that it depends on the seed alone.


def test_a_function_of_the_environment_fits_each_one():
    def greedy(env):
        return nr.algorithms.greedy_mean(env.domain, KERNEL, noise=env.noise)

    few = nr.Arms.grid(0, 1, 3)
    worlds = {"many": world(1), "few": nr.Environment(lambda x: x[:, 0], domain=few, noise=0.3)}
    found = nr.compare({"greedy": greedy}, worlds, rounds=4, seeds=[1, 2])
    assert [(row.environment, row.policy) for row in found.table] == [("many", "greedy"), ("few", "greedy")]
    assert found.runs["few"]["greedy"].arms.max() <= 2


def test_names_and_order_are_those_given():
    found = nr.compare(list(POLICIES.values()), [world(1), world(2)], rounds=3, seeds=[1, 2], baseline="greedy_mean")
    names = [policy.algorithm for policy in POLICIES.values()]
    assert [row.policy for row in found.table] == names * 2
    assert list(found.runs) == ["environment 1", "environment 2"]
    assert {row.reference for row in found.table} == {"greedy_mean"}
    assert "Differences to greedy_mean, with 95% intervals" in str(found)


def test_one_seed_has_no_interval():
    found = nr.compare(POLICIES, world(1), rounds=3, seeds=[4])
    assert all(math.isnan(row.cumulative_error) and math.isnan(row.cumulative_lower) for row in found.table)
    assert "without intervals: there is one seed" in str(found)
    assert "nan" not in str(found)


def test_violations_are_in_the_table_where_there_are_constraints():
    env = nr.Environment(lambda x: x[:, 0], domain=ARMS, noise=0.1, constraints=lambda x: x[:, 0] - 0.5)
    found = nr.compare({"blind": POLICIES["greedy"]}, {"hill": env}, rounds=6, seeds=range(3))
    (row,) = found.table
    assert row.violation == found.runs["hill"]["blind"].violation[:, -1].mean() > 0.0
    assert "violation" in str(found)
    assert "violation" in found.to_pandas()


def test_the_frame_is_long_and_tidy(compared):
    frame = compared.to_pandas()
    assert list(frame) == [
        "environment", "policy", "seed", "round", "regret", "cumulative_regret", "simple_regret",
    ]  # fmt: skip
    assert len(frame) == 3 * 6 * 15
    last = frame[frame["round"] == 15].groupby("policy")["cumulative_regret"].mean()
    assert last["EI"] == pytest.approx(compared.table[1].cumulative_regret)
    assert sorted(set(compared.to_pandas(every=7)["round"])) == [1, 8, 15]


def test_a_tie_counts_in_equal_parts():
    assert _wins({"a": np.array([1.0, 2.0]), "b": np.array([1.0, 3.0])}) == {"a": 0.75, "b": 0.25}


@pytest.mark.parametrize(("seeds", "draw", "least"), [(2, "normal", 0.94), (20, "exponential", 0.90)])
def test_the_intervals_cover(seeds, draw, least):
    # The probability that 4,000 intervals of coverage 0.95 cover less than 0.94 is 0.002; the seed is fixed.
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(4000):
        values = rng.standard_normal(seeds) if draw == "normal" else rng.standard_exponential(seeds) - 1.0
        (_, lower, upper), _ = _difference(values, np.zeros(seeds))
        covered += lower <= 0.0 <= upper
    assert least <= covered / 4000 <= 0.96


OTHER = nr.gp_ucb(nr.Arms.grid(0, 2, 20), KERNEL, noise=0.1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policies": {"EI": POLICIES["EI"], "far": OTHER}}, r"\[far\] \[environment\] .*different domains"),
        ({"policies": {"a": POLICIES["EI"], " a": OTHER}}, "the name 'a' twice"),
        ({"policies": [POLICIES["EI"], POLICIES["EI"]]}, "the name 'expected_improvement' twice"),
        ({"policies": POLICIES["EI"]}, "must be a dict"),
        ({"policies": {}}, "nothing to compare"),
        ({"policies": {3: POLICIES["EI"]}}, "has the name 3"),
        ({"policies": {"a": "EI"}}, r"\[a\] `policy` must be made by an algorithm"),
        ({"policies": {"a": lambda: 3}}, r"\[a\] \[environment\] \[seed 0\] `policy` must be made by an algorithm"),
        ({"environments": 3}, "must be an `Environment`"),
        ({"environments": {"a": 3}}, "has 3 under 'a'"),
        ({"environments": []}, "nothing to play in"),
        ({"environments": lambda: 3}, r"\[environment\] The function for seed 0 returned 3"),
        ({"environments": lambda x: x[:, 0]}, r"called with seed 0, and it failed.*nr.Environment\(f"),
        ({"seeds": [1, 1]}, "a seed twice"),
        ({"seeds": []}, "`seeds` is empty"),
        ({"seeds": 3}, "`seeds` is 3"),
        ({"baseline": "best"}, "`baseline` is 'best'"),
        ({"by": "total"}, "`by` is 'total'"),
        ({"rounds": 0}, "`rounds` is 0"),
    ],
)
def test_wrong_input(change, message):
    given = {"policies": POLICIES, "environments": world, "rounds": 2, "seeds": [0, 1]} | change
    with pytest.raises(InvalidInput, match=message):
        nr.compare(given.pop("policies"), given.pop("environments"), **given)


def test_a_world_that_does_not_follow_the_seed_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="two different environments for seed 1"):
        nr.compare(POLICIES, lambda seed: world(seed + rng.integers(10**6)), rounds=2, seeds=[1, 2])


def test_so_is_one_on_a_box():
    rng, box = np.random.default_rng(0), nr.Box(0, 1)
    policies = {"EI": nr.expected_improvement(box, nr.Matern(2.5, 0.2), noise=0.1)}

    def fresh(_):
        slope = rng.normal()
        return nr.Environment(lambda x: slope * x[:, 0], domain=box)

    with pytest.raises(InvalidInput, match="two different environments for seed 1"):
        nr.compare(policies, fresh, rounds=2, seeds=[1])


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_errors_of_later_seeds_name_policy_environment_and_seed(jobs):
    other = nr.gp_ucb(nr.Arms.grid(0, 2, 5), KERNEL, noise=0.1)
    with pytest.raises(InvalidInput, match=r"^\[odd\] \[environment\] \[seed 3\] The policy and the environment have"):
        nr.compare({"odd": lambda seed: [POLICIES["EI"], other][seed // 3]}, world, rounds=2, seeds=[1, 3], jobs=jobs)
    with pytest.raises(IndexError) as found:
        nr.compare({"bad": lambda seed: [POLICIES["EI"]][seed // 3]}, world, rounds=2, seeds=[1, 3], jobs=jobs)
    assert found.value.__notes__ == ["[seed 3]", "[bad][environment]"]


def test_a_warning_names_the_policy_at_the_line_of_the_call():
    env = nr.Environment(lambda x: 50.0 * x[:, 0], domain=ARMS, noise=0.1)
    with pytest.warns(NoRegretWarning, match=r"^EI: ") as found:
        nr.compare({"EI": POLICIES["EI"]}, env, rounds=12, seeds=[1, 2])
    assert found[0].filename == __file__


def test_a_difference_that_is_the_same_with_each_seed_has_no_interval():
    env = nr.Environment(lambda x: 0.0 * x[:, 0], domain=ARMS)
    found = nr.compare({name: POLICIES[name] for name in ("EI", "greedy")}, env, rounds=2, seeds=range(3))
    assert "+0 with each seed" in str(found)
    assert "[0, 0]" not in str(found)


def test_html_escapes_names(compared):
    runs = {"<script>": dict(zip(["<b>", "x", "y"], compared.runs["environment"].values(), strict=True))}
    seconds = {"<script>": dict.fromkeys(["<b>", "x", "y"], 0.1)}
    shown = Comparison(runs=runs, seeds=compared.seeds, rounds=15, seconds=seconds)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "&lt;b&gt;" in shown


def test_the_table_for_a_paper(compared):
    runs = {f"{name} & 5%_": run for name, run in compared.runs["environment"].items()}
    found = Comparison(
        runs={"a_1": runs, "b": runs},
        seeds=compared.seeds,
        rounds=15,
        seconds={"a_1": dict.fromkeys(runs, 0.1), "b": dict.fromkeys(runs, 0.1)},
    )
    text = found.to_latex(caption="", label="tab:a")
    assert text.startswith(r"\begin{table}")
    assert text.count(r"\midrule") == text.count(r"\multicolumn{7}{l}{\emph{") == 2
    assert r"\emph{a\_1}" in text
    assert r"\caption{a\_1: 6 seeds, 15 rounds. " in text
    assert r"\label{tab:a}" in text
    rows = [line.removesuffix(r" \\").split(" & ") for line in compared.to_latex().splitlines() if "$" in line]
    assert [row[0] for row in rows] == list(POLICIES)
    least = min(compared.table, key=lambda row: row.cumulative_regret)
    assert [r"\mathbf" in row[1] for row in rows] == [row == least for row in compared.table]
    for row, (name, *cells) in zip(compared.table, rows, strict=True):
        assert float(re.search(r"[\d.]+", cells[0])[0]) == pytest.approx(row.cumulative_regret, rel=0.05), name
        assert (cells[1] == "") == (row == least)
    assert "GP-UCB \\& 5\\%\\_ &" in text
    with pytest.raises(InvalidInput, match="`label` needs a `caption`"):
        compared.to_latex(label="tab:a")
    with pytest.raises(InvalidInput, match="`caption` is 3"):
        compared.to_latex(caption=3)
    kept = found.to_latex(columns=["simple wins", "cumulative regret"], environment="b").splitlines()
    assert kept[0] == r"\begin{tabular}{lrr}"
    assert kept[2] == r"policy & simple wins & cumulative regret \\"
    assert not any("multicolumn" in line for line in kept)
    few = [found.to_latex(columns=each, environment="b", caption="") for each in (["simple wins"], ["simple regret"])]
    assert r"\caption{b: 6 seeds, 15 rounds.}" in few[0]
    assert few[1].count("standard error") == 1
    assert "ifference" not in few[1]
    assert [line.split(" & ")[-1].removesuffix(r" \\") for line in kept if "$" in line] == [
        row[1] for row in map(list, rows)
    ]
    with pytest.raises(InvalidInput, match=r"`columns` is 'simple win': .* Did you mean 'simple wins'"):
        compared.to_latex(columns=["simple win"])
    with pytest.raises(InvalidInput, match=r"must be a list.*\['simple wins'\]"):
        compared.to_latex(columns="simple wins")
    with pytest.raises(InvalidInput, match="`columns` is empty"):
        compared.to_latex(columns=[])
    assert "± is one standard error of the mean. Differences to" in text
    decimals = [len(number.rpartition(".")[2]) for number in re.findall(r"(\d[\d.]*)", rows[1][1])]
    assert len(set(decimals)) == 1


def test_names_that_latex_would_take_for_other_marks_and_arguments(compared):
    runs = dict(zip(["[1] a<b|c>d", "*best", "x"], compared.runs["environment"].values(), strict=True))
    found = Comparison(runs={"a": runs}, seeds=compared.seeds, rounds=15, seconds={"a": dict.fromkeys(runs, 0.1)})
    rows = [line.split(" & ")[0] for line in found.to_latex().splitlines() if "$" in line]
    assert rows == [r"{}[1] a\textless{}b\textbar{}c\textgreater{}d", "{}*best", "x"]


def test_one_environment_of_several_is_drawn(compared):
    two = Comparison(
        runs=dict.fromkeys("ab", compared.runs["environment"]), seeds=compared.seeds, rounds=15, seconds={}
    )
    assert len(two.plot().axes) == 2
    assert len(two.plot(environment="b").axes) == 1
    with pytest.raises(InvalidInput, match="`environment` is 'c'"):
        two.plot(environment="c")


def boxes(figure, ax):
    figure.draw_without_rendering()
    return [Text.get_window_extent(text) for text in ax.texts]  # Without the line to it.


@pytest.mark.parametrize("options", [{}, {"kind": "simple", "width": "page"}, {"scale": "inset"}, {"height": 1.2}])
def test_labels_do_not_overlap_and_stay_in_the_picture(compared, options):
    run = compared.runs["environment"]["EI"]
    figure = nr.plots.regret(
        {f"contender {i}": run for i in range(6)} | {"far": compared.runs["environment"]["greedy"]}, **options
    )
    found = boxes(figure, figure.axes[0])
    assert len(found) == 7
    assert not any(a.overlaps(b) for i, a in enumerate(found) for b in found[:i])
    assert all(box.x1 <= figure.bbox.x1 + 1.0 for box in found)


def test_places_are_apart_in_their_order():
    places = lines.apart(np.array([3.0, 1.0, 1.1, 9.9]), 2.0, 10.0)
    assert list(np.argsort(places)) == [1, 2, 0, 3]
    assert np.diff(np.sort(places)).min() >= 2.0 - 1e-12
    assert places.min() >= 0.0
    assert places.max() <= 10.0


def run_of(values):
    """Returns a stand-in of a run whose cumulative regret is `(seeds, T)`."""
    return type("Run", (), {"cumulative_regret": np.asarray(values), "simple_regret": np.asarray(values)})()


def test_a_contender_that_dwarfs_the_others_gets_a_logarithm_or_an_inset():
    ramp = np.linspace(0.1, 1.0, 30)
    small, large = run_of([ramp, 1.1 * ramp]), run_of([100 * ramp, 120 * ramp])
    log = nr.plots.regret({"a": small, "b": run_of([2 * ramp, ramp]), "c": large})
    assert log.axes[0].get_yscale() == "log"
    inset = nr.plots.regret({"a": small, "b": run_of([0 * ramp, 0 * ramp]), "c": large})
    assert inset.axes[0].get_yscale() == "linear"
    (inner,) = inset.axes[0].child_axes
    assert [line.get_label() for line in inner.lines] == ["a", "b"]
    plain = nr.plots.regret({"a": small, "b": run_of([2 * ramp, ramp])})
    assert plain.axes[0].get_yscale() == "linear"
    assert not plain.axes[0].child_axes


def test_contenders_differ_in_colour_and_dash(compared):
    drawn = compared.plot().axes[0].lines
    assert [line.get_label() for line in drawn] == list(POLICIES)
    assert len(set(lines.COLORS)) == len(set(map(str, lines.DASHES))) == 8


def test_a_panel_for_each_environment_and_one_legend(compared):
    three = Comparison(
        runs=dict.fromkeys("abcd", compared.runs["environment"]), seeds=compared.seeds, rounds=15, seconds={}
    )
    figure = three.plot(width="page")
    assert [ax.get_title() for ax in figure.axes[:4]] == list("abcd")
    assert len(figure.legends) == 1


def test_files_for_papers(compared, tmp_path):
    for ending in (".pdf", ".svg"):
        for name in ("one", "two"):
            compared.plot(tmp_path / f"{name}{ending}", width=3.0)
        assert (tmp_path / f"one{ending}").read_bytes() == (tmp_path / f"two{ending}").read_bytes()
    assert b"/FontFile2" in (tmp_path / "one.pdf").read_bytes()  # A TrueType font is embedded.
    assert b"<text" not in (tmp_path / "one.svg").read_bytes()
    assert compared.plot(width="page").get_figwidth() == 6.8
    with pytest.raises(InvalidInput, match="must end in one of"):
        compared.plot(tmp_path / "one.docx")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(nr.plots.regret, {}), "`runs` is {}"),
        (partial(nr.plots.regret, {"a": 3}), "has 3 under 'a'"),
        (partial(nr.plots.regret, 3), "`runs` is 3"),
        (partial(nr.plots.regret, {"a": run_of([[1.0]])}, kind="total"), "`kind` is 'total'"),
        (partial(nr.plots.regret, {"a": run_of([[1.0]])}, width="text"), "`width` is 'text'"),
    ],
)
def test_wrong_input_of_the_picture(call, message):
    with pytest.raises(InvalidInput, match=message):
        call()


class Played(NamedTuple):
    """The numbers of a run that a comparison reads."""

    total_regret: np.ndarray
    simple_regret: np.ndarray
    constraints: np.ndarray


def made(regret, baseline=None):
    """A comparison of policies by the regret of each seed, `(seeds,)`."""
    none = np.zeros((1, 0))
    runs = {name: Played(values, values[:, None], none) for name, values in regret.items()}
    seconds = {"environment": dict.fromkeys(runs, 1e-3)}
    return Comparison(
        runs={"environment": runs}, seeds=tuple(range(len(next(iter(regret.values()))))), rounds=9, seconds=seconds,
        baseline=baseline,
    )  # fmt: skip


@pytest.mark.parametrize("count", [3, 6])
def test_without_a_baseline_all_pairs_hold_at_once(count):
    """The best of equal policies is no reference by luck. More than 27 of 300 have probability .0005 at 5%."""
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(300):
        noise = rng.standard_normal((count, 20)) + 5.0 * rng.standard_normal(20)
        rows = made({str(i): values for i, values in enumerate(noise)}).table
        wrong += any(row.cumulative_lower > 0.0 for row in rows)
    assert wrong <= 27
    assert f"which hold for all {math.comb(count, 2)} pairs at once" in str(
        made(dict(zip("abcdef"[:count], noise, strict=False)))
    )


def test_with_a_baseline_each_interval_holds_by_itself():
    values = {"a": np.arange(6.0), "b": np.arange(6.0) ** 1.2, "c": np.ones(6)}
    row = made(values, baseline="a").table[1]
    differences = values["b"] - values["a"]
    assert row.cumulative_upper - differences.mean() == pytest.approx(
        2.570581835636314 * differences.std(ddof=1) / math.sqrt(6)
    )
    assert "at once" not in str(made(values, baseline="a"))


@pytest.mark.parametrize("stuck", [0, 1, 3])
def test_a_difference_that_a_few_stuck_runs_carry_says_so(stuck):
    rng = np.random.default_rng(stuck)
    regret = {"plain": 0.1 * rng.standard_normal(20), "gets stuck": 0.1 * rng.standard_normal(20)}
    regret["gets stuck"][:stuck] += 10.0
    found = made(regret, baseline="plain")
    assert [row.cumulative_carried for row in found.table] == [0, stuck]
    marked = f", by {stuck} seed{'s' * (stuck > 1)}"
    assert (marked in str(found)) == (stuck > 0)
    assert ("such as runs that got stuck" in str(found)) == (stuck > 0)


def test_ordinary_differences_are_seldom_marked():
    """Of 20 normal numbers fewer than one in a thousand are marked: more than 4 of 400 have probability .001."""
    rng = np.random.default_rng(0)
    assert sum(carried_by(rng.standard_normal(20)) > 0 for _ in range(400)) <= 4
    assert carried_by(np.zeros(20)) == carried_by(np.arange(4.0)) == 0
