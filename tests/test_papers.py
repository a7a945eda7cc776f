"""Every figure of every paper, in small; the larger ones are run by `nilregret papers` and kept in docs/papers."""

import csv
import math
import pickle

import numpy as np
import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret import environments as worlds
from nilregret import papers, plots
from nilregret.__main__ import main
from nilregret.papers import chowdhury, srinivas
from nilregret.papers import figure as verdicts
from nilregret.papers.figure import Job, compare, grouped, kept_rounds
from nilregret.papers.run import size, text, write
from nilregret.papers.srinivas import intel_temperatures
from nilregret.study.curves import Boxes, Curves, interval, standard_error

from .marks import nightly

FIGURES = {figure.name: figure for paper in papers.papers() for figure in paper.figures}
WRITTEN = ("srinivas-3", "chowdhury-2a", "verma-4a", "avanesov-3", "shi-3")  # also outside the nightly tests


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The data sets of the sensor figures in small, named by NILREGRET_DATA."""
    rng = np.random.default_rng(7)

    def table(rows, sensors):
        return 3 * np.sin(np.arange(rows)[:, None] / 9 + np.arange(sensors)) + rng.standard_normal((rows, sensors))

    temperature = 20 + table(240, 5)
    sets = {
        "intel_lab/intel_lab_30min": dict(
            temperature=temperature,
            humidity=temperature,
            hour_of_day=np.tile(np.arange(1, 49) % 48 / 2, 5),
            day=np.repeat(np.arange(5), 48),
        ),
        "light_cmu/light_cmu": dict(
            train=np.uint16(700 + 100 * table(40, 4)), test=np.uint16(700 + 100 * table(9, 4)), coords=np.ones((4, 2))
        ),
        "metr_la_week/metr_la_week": dict(
            speed_mph=60 + table(2016, 6), sensor_id=np.array(list("abcdef")), latlon=np.ones((6, 2))
        ),
        **{
            f"verma_tables/{name}": dict(
                axes=np.tile(np.linspace(0, 1, 3), (2, 1)), correct=rng.integers(60, 90, size=(*sizes, 9)), cases=100
            )
            for name, sizes in (("svm", ()), ("lr", ()), ("cnn", ()), ("growing", (3,)))
        },
        "tst_svm/tst_svm": dict(
            accuracy=rng.uniform(size=(4, 9)),
            hyperparameters=rng.uniform(size=(9, 6)),
            meta_features=rng.uniform(size=(4, 22)),
        ),
    }
    for name, arrays in sets.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        np.savez(tmp_path / f"{name}.npz", **{key: np.asarray(value) for key, value in arrays.items()})
    monkeypatch.setenv("NILREGRET_DATA", str(tmp_path))
    return tmp_path


def shown(panel):
    return panel.boxes if isinstance(panel, Boxes) else panel.lines


def numbers(result):
    """All numbers of a result's panels, and what its statements measured."""
    lines = {
        f"{panel.title}/{panel.y_label}/{name}": line for panel in result.panels for name, line in shown(panel).items()
    }
    return lines, [statement.measured for statement in result.statements]


# -- every figure ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in FIGURES if name not in WRITTEN])
def test_every_figure_is_made(name, folder):
    result = FIGURES[name].make(Job(trials=2, rounds=5))
    assert result.statements
    for panel in result.panels:
        assert all(np.isfinite(line).all() for line in shown(panel).values())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in WRITTEN else [pytest.mark.nightly]) for name in FIGURES]
)
def test_every_figure_is_written_and_is_the_same_again(name, folder, tmp_path):
    figure = FIGURES[name]
    job = Job(trials=3, rounds=8)
    result = figure.make(job)
    assert result.statements
    for panel in result.panels:
        assert all(np.isfinite(line).all() for line in shown(panel).values())
    written = write(figure, job, result, tmp_path / "new" / "folder")
    assert written.picture.read_bytes().startswith(b"\x89PNG")
    words = written.text.read_text()
    assert sum(line.strip() in ("holds", "does not hold", "open") for line in words.splitlines()) == len(
        result.statements
    )
    rows = list(csv.DictReader(written.csv.read_text(encoding="utf-8").splitlines()))
    # A row for each number of a box, for each x of a line.
    numbers_of = [line.mean(axis=0) if line.ndim == 2 else line for p in result.panels for line in shown(p).values()]
    np.testing.assert_allclose([float(row["mean"]) for row in rows], np.concatenate(numbers_of), rtol=1e-5)
    again = numbers(figure.make(job))
    for key, line in numbers(result)[0].items():
        np.testing.assert_array_equal(line, again[0][key])
    assert numbers(result)[1] == again[1]


@pytest.mark.parametrize("name", [*nightly("srinivas-5b"), "chowdhury-2b"])
def test_figures_do_not_depend_on_the_number_of_processes(name, folder):
    alone, shared = (numbers(FIGURES[name].make(Job(trials=5, rounds=8, jobs=jobs)))[0] for jobs in (1, 2))
    for key, line in alone.items():
        np.testing.assert_array_equal(line, shared[key])


def test_a_trial_is_the_same_whatever_the_number_of_trials():
    few, more = (numbers(FIGURES["chowdhury-1a"].make(Job(trials=count, rounds=8)))[0] for count in (2, 4))
    for key, line in few.items():
        np.testing.assert_array_equal(line, more[key][:2])
    other = numbers(FIGURES["chowdhury-1a"].make(Job(trials=2, rounds=8, seed=1)))[0]
    assert not any(np.array_equal(few[key], other[key]) for key in few)


def test_names_and_sizes_of_the_papers():
    assert {
        *(f"srinivas-{part}" for part in ("1", "3", "5a", "5b", "5c")),
        *(f"chowdhury-{number}{part}" for number in "1234" for part in "ab"),
        *(f"verma-{name}" for name in ("1a", "1b", "1c", "1d", "5a", "5b", "2a", "2h", "3a", "3d", "4a", "4d")),
    } <= set(FIGURES)
    assert (FIGURES["srinivas-5a"].trials, FIGURES["srinivas-5a"].rounds) == (30, 1000)
    assert FIGURES["srinivas-5b"].trials == 2000
    assert FIGURES["srinivas-5c"].trials == 900
    for name in ("1a", "1b", "2a", "2b", "3a", "3b"):
        assert (FIGURES[f"chowdhury-{name}"].trials, FIGURES[f"chowdhury-{name}"].rounds) == (25, 30_000)


def test_a_job_is_as_large_as_the_paper_unless_told_otherwise():
    figure = FIGURES["srinivas-5a"]
    full, quick, mine = figure.job(), figure.job(quick=True), figure.job(trials=3)
    assert (full.trials, full.rounds) == (30, 1000)
    assert (quick.trials, quick.rounds) == figure.quick
    assert (mine.trials, mine.rounds) == (3, 1000)
    assert "full size is" not in size(figure, full)
    assert "full size is" in size(figure, quick)
    for wrong in ({"trials": -1}, {"seed": -1}, {"jobs": 0}, {"jobs": -2}, {"jobs": 1.5}):
        with pytest.raises(nr.errors.InvalidInput):
            figure.job(**wrong)


# -- as in the papers --------------------------------------------------------------------------------------------------


def test_rules_of_srinivas():
    arms = nr.Arms.grid(0, 1, 1000)
    rules = srinivas.rules(arms, nr.SquaredExponential(0.2), srinivas.NOISE)
    width = nr.Study(rules["GP-UCB"]).width
    assert width == pytest.approx(math.sqrt(2 * math.log(1000 * math.pi**2 / 0.6) / 5))
    assert rules["EI"].score.incumbent == rules["MPI"].score.incumbent == "mean"
    assert all(rule.regularization == pytest.approx(0.025) for rule in rules.values())


def test_rules_of_chowdhury():
    arms = nr.Box(np.zeros(1), np.ones(1)).sample(100, seed=0)
    rules = chowdhury.rules(arms, chowdhury.SE, 0.2, {"B": 3.0})
    assert set(rules) == {"GP-EI", "GP-PI", "IGP-UCB, B", "GP-TS, B", "GP-UCB, B"}
    assert all(rule.regularization == pytest.approx(0.04) for rule in rules.values())  # lambda = R^2
    assert rules["GP-EI"].score.incumbent == rules["GP-PI"].score.incumbent == "reward"
    assert rules["GP-PI"].score.margin == 0.0
    studies = {name: nr.Study(rule) for name, rule in rules.items()}
    for study in studies.values():
        for _ in range(4):
            study.tell(study.ask(), 0.0)
    gamma4, gamma5 = (math.log(t) ** 2 for t in (4, 5))  # SE, d = 1, constant 1
    assert studies["IGP-UCB, B"].width == pytest.approx(3 + 0.2 * math.sqrt(2 * (gamma4 + 1 + math.log(10))))
    assert studies["GP-TS, B"].width == pytest.approx(3 + 0.2 * math.sqrt(2 * (gamma4 + 1 + math.log(20))))
    assert studies["GP-UCB, B"].width == pytest.approx(math.sqrt(2 * 9 + 300 * gamma5 * math.log(50) ** 3))


def test_bounds_of_figure_1():
    for d in (1, 2, 5):
        for T in (1e3, 1e6):
            assert srinivas.regret_bound(nr.Linear(), d, T) == pytest.approx(d * math.sqrt(T))
            se = srinivas.regret_bound(nr.SquaredExponential(), d, T)
            assert se == pytest.approx(math.sqrt(T * math.log(T) ** (d + 1)))
            matern = srinivas.regret_bound(nr.Matern(2.5), d, T)
            assert matern == pytest.approx(T ** ((2.5 + d * (d + 1)) / (5 + d * (d + 1))))


def test_four_kernels_of_equal_trace():
    for kernel in srinivas.equal_traces(30).values():
        assert np.trace(kernel.covariance) == pytest.approx(30)


def test_the_log_is_used_where_there_is_one(folder):
    _, notes = intel_temperatures(None, days=5)
    assert "stand in" in notes[0]
    lines = [
        f"2004-03-0{day} 08:{minute:02}:00.0 2 {mote} {20 + mote + day}.5 37.1 45.1 2.69"
        for day in (1, 2, 3)
        for minute in range(4)
        for mote in (1, 2, 3)
    ]
    (folder / "intel_lab" / "data.txt").write_text("\n".join(lines))
    readings, notes = intel_temperatures(None, days=2)
    assert notes == ()
    assert readings.values.shape == (8, 3)


# -- statements --------------------------------------------------------------------------------------------------------


def curves(**ends):
    """Straight lines with these ends, one for each trial."""
    x = np.arange(1.0, 5.0)
    lines = {name: np.outer(values, x / 4.0) for name, values in ends.items()}
    return Curves(x=x, lines=lines, x_label="rounds", y_label="regret")


def test_below_holds_where_every_paired_difference_is_clear():
    # a and b differ by 1 +- 0.1 in pairs, although they vary by 100 from trial to trial.
    base = np.array([100.0, 200.0, 300.0, 400.0])
    gap, sometimes = np.array([1.1, 0.9, 1.1, 0.9]), np.array([1.1, -0.9, 1.1, 0.9])
    shown = curves(a=base, b=base + gap, c=base + sometimes)
    statement = verdicts.below("a is below b", shown, ["a"], ["b"])
    assert statement.holds
    assert statement.verdict == "holds"
    assert "b - a = 1 (0.816 to 1.18)" in statement.measured
    assert not verdicts.below("b is below a", shown, ["b"], ["a"]).holds
    assert not verdicts.below("c is not clearly above a", shown, ["a"], ["b", "c"]).holds
    assert "closest: c - a" in verdicts.below("", shown, ["a"], ["b", "c"]).measured


def test_below_is_open_on_one_trial():
    statement = verdicts.below("a is below b", curves(a=[1.0], b=[9.0]), ["a"], ["b"])
    assert statement.holds is None
    assert statement.verdict == "open"


def test_coincide_is_about_the_height_of_the_panel():
    shown = curves(a=[1.0, 1.0], b=[4.8, 4.9], c=[100.0, 100.0], d=[11.0, 11.0])
    assert verdicts.coincide("", shown, ["a", "b"]).holds
    assert verdicts.coincide("", shown, ["b", "a"]).holds
    far = verdicts.coincide("", shown, ["a", "b", "d"])
    assert not far.holds
    assert "d - a = 10" in far.measured
    assert "10% of the height" in far.measured


@pytest.mark.parametrize(("igp", "expected"), [(1.0, [True, True, True]), (50.0, [False, True, True])])
def test_statements_about_synthetic_functions(igp, expected):
    noise = np.array([0.1, -0.1, 0.1])
    shown = curves(
        **{
            "IGP-UCB": igp - noise,
            "GP-TS": 5.0 + noise,
            "GP-UCB": 300 + noise,
            "GP-EI": 20 - noise,
            "GP-PI": 21 + noise,
        }
    )
    assert [statement.holds for statement in chowdhury.synthetic_statements(shown)] == expected


@pytest.mark.parametrize(("ei", "expected"), [(1.0, [True, True]), (7.0, [False, True])])
def test_statements_about_benchmarks(ei, expected):
    noise = np.array([0.1, -0.1, 0.1])
    shown = curves(
        **{"IGP-UCB": 5 - noise, "GP-TS": 6.0 + noise, "GP-UCB": 30 + noise, "GP-EI": ei - noise, "GP-PI": ei + noise}
    )
    assert [statement.holds for statement in chowdhury.benchmark_statements(shown)] == expected


def test_intervals():
    assert interval(np.array([1.0, 2.0, 3.0])) == pytest.approx((2.0, 2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert str(interval(np.array([2.0]))) == "2"
    assert str(interval(np.array([2e4, 2e4]))) == "20000 (20000 to 20000)"
    np.testing.assert_allclose(standard_error(np.array([[1.0, 5.0], [3.0, 5.0]])), [1.0, 0.0])
    np.testing.assert_array_equal(standard_error(np.ones((1, 3))), np.zeros(3))


# -- trials ------------------------------------------------------------------------------------------------------------


def test_trials_of_one_snapshot_become_one_replicate():
    values = np.arange(8.0).reshape(4, 2)
    np.testing.assert_array_equal(grouped(values, [3, 0, 3, 0]), [[4.0, 5.0], [2.0, 3.0]])


def test_compare_gives_every_policy_the_same_world_and_noise():
    arms = nr.Arms.grid(0, 1, 6)

    def world(trial, seed):
        f = worlds.gp_sample(nr.SquaredExponential(0.2), arms, seed=seed)
        rules = {name: nr.algorithms.greedy_variance(arms, nr.SquaredExponential(0.2), noise=0.1) for name in "ab"}
        return nr.Environment(f, domain=arms, noise=0.1), rules

    seen = []
    job = Job(trials=3, rounds=7, report=lambda done, total: seen.append((done, total)))
    runs = compare(job, world, lambda run: run.rewards)
    np.testing.assert_array_equal(runs["a"], runs["b"])
    assert runs["a"].shape == (3, 7)
    assert len(np.unique(runs["a"])) == 21
    assert seen == [(0, 3), (3, 3)]
    last = compare(job, world, lambda run: run.cumulative_regret[-1:])  # not a curve: kept as it is
    assert last["a"].shape == (3, 1)


def test_rounds_that_are_kept():
    np.testing.assert_array_equal(kept_rounds(7), np.arange(1, 8))
    kept = kept_rounds(30_000)
    assert len(kept) == 300
    assert (kept[0], kept[-1]) == (1, 30_000)


def test_a_job_leaves_its_progress_bar_behind_when_it_is_sent_to_a_process():
    job = Job(trials=2, rounds=3, seed=4, report=lambda done, total: None)
    assert pickle.loads(pickle.dumps(job)).seed_of(1) == job.seed_of(1)


# -- files and the command line ----------------------------------------------------------------------------------------


def test_boxes_and_logarithmic_axes(tmp_path):
    boxes = Boxes(boxes={"a": np.array([1.0, 2.0, 4.0]), "b": np.ones(2)}, y_label="violation", log="y", title="t")
    lines = Curves(x=np.array([1.0, 10.0]), lines={"a": np.ones((3, 2))}, x_label="T", y_label="R", log="xy")
    plots.panels([boxes, lines], tmp_path / "both.png", title="both")
    assert (tmp_path / "both.png").stat().st_size > 1000
    assert [row[:4] for row in boxes.rows()][3:] == [("t", "b", 0, "1"), ("t", "b", 1, "1")]
    with pytest.raises(nr.errors.InvalidInput, match="shape"):
        Curves(x=np.ones(2), lines={"a": np.ones(2)}, x_label="", y_label="")


def call(*arguments):
    return CliRunner().invoke(main, ["papers", *arguments])


def test_the_list():
    result = call()
    assert result.exit_code == 0
    assert all(any(line.split()[:1] == [name] for line in result.output.splitlines()) for name in FIGURES)
    assert "Srinivas" in result.output


def test_a_figure_by_command(tmp_path):
    result = call("srinivas-5a", "--quick", "--trials", "2", "--seed", "3", "--out", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "clearly outperform the others" in result.output
    assert "2 trials of 300 rounds, seed 3" in result.output
    assert {path.name for path in tmp_path.iterdir()} == {f"srinivas-5a-quick.{kind}" for kind in ("csv", "txt", "png")}


def test_data_sets_are_named_where_they_stand_in_and_where_they_are_missing(folder, tmp_path, monkeypatch):
    monkeypatch.delenv("NILREGRET_DATA")
    small = ["--quick", "--trials", "2", "--out", str(tmp_path)]
    result = call("srinivas-5c", *small, "--data", str(folder))
    assert result.exit_code == 0, result.output
    assert "stand in for the paper's I-880" in result.output
    result = call("srinivas-5c", *small)
    assert result.exit_code == 1
    assert "NILREGRET_DATA" in result.output
    assert "metr_la_week" in result.output
    assert "Traceback" not in result.output


def test_without_matplotlib_the_numbers_are_written_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    result = call("srinivas-3", "--out", str(tmp_path))
    assert result.exit_code == 0
    assert "No picture: A picture needs matplotlib" in result.output
    assert {path.name for path in tmp_path.iterdir()} == {"srinivas-3.csv", "srinivas-3.txt"}


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["srinivas-5d"], 1, "Did you mean srinivas-5"),
        (["5a"], 1, "srinivas-5a"),
        (["nonsense"], 1, "`nilregret papers` lists them"),
        (["srinivas-3", "chowdry-1a"], 1, "chowdhury-1a"),
        (["srinivas-3", "--trials", "0"], 2, "--trials"),
        (["srinivas-3", "--seed", "-1"], 2, "--seed"),
        (["srinivas-3", "--jobs", "0"], 1, "`jobs` is 0"),
        (["srinivas-3", "--jobs", "two"], 2, "--jobs"),
    ],
)
def test_nonsense_is_explained(arguments, code, words, tmp_path):
    result = call(*arguments, "--out", str(tmp_path))
    assert result.exit_code == code
    assert words in result.output
    assert not list(tmp_path.iterdir())  # no figure is begun before all names and options are known


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    result = call("srinivas-3", "--out", str(tmp_path / "file" / "below"))
    assert result.exit_code == 1
    assert "--out" in result.output


def test_the_text_wraps_and_counts(folder):
    figure = FIGURES["srinivas-3"]
    job = figure.job()
    words = text(figure, job, figure.make(job))
    assert max(map(len, words.splitlines())) <= 100
    assert words.endswith("2 statements: 2 hold, 0 do not hold, 0 open.")
