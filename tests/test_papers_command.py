"""`nilregret papers` as a newcomer meets it: names of files, verdicts, data that are missing."""

import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from nilregret import papers, plots
from nilregret.__main__ import main
from nilregret.environments.data import datasets as files
from nilregret.papers import figure as trials
from nilregret.papers import figure as verdicts
from nilregret.papers import run as report
from nilregret.papers import srinivas
from nilregret.papers.figure import Job, Result, Statement
from nilregret.study.curves import Curves, interval

FIGURES = {figure.name: figure for paper in papers.papers() for figure in paper.figures}


def call(*arguments):
    return CliRunner().invoke(main, ["papers", *map(str, arguments)])


def curves(**ends):
    """Straight lines with these ends, one for each trial."""
    x = np.arange(1.0, 5.0)
    lines = {name: np.outer(values, x / 4.0) for name, values in ends.items()}
    return Curves(x=x, lines=lines, x_label="rounds", y_label="regret")


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_run_smaller_than_the_figure_has_files_of_its_own():
    figure, still = FIGURES["srinivas-5a"], FIGURES["srinivas-1"]
    assert figure.stem(figure.job()) == "srinivas-5a"
    assert figure.stem(figure.job(trials=31)) == "srinivas-5a"
    assert figure.stem(figure.job(trials=29)) == "srinivas-5a-quick"
    assert figure.stem(figure.job(quick=True, trials=500)) == "srinivas-5a-quick"  # of fewer rounds all the same
    assert still.stem(still.job(trials=1)) == "srinivas-1"  # nothing is random
    assert still.stem(still.job(quick=True)) == "srinivas-1-quick"


@pytest.mark.parametrize("name", FIGURES)
def test_a_quick_run_is_smaller_than_the_full_one(name):
    figure = FIGURES[name]
    full, quick = figure.job(), figure.job(quick=True)
    assert quick.rounds <= full.rounds
    assert quick.trials < full.trials or full.trials == 1  # where nothing is random there is but one


def test_a_quick_run_leaves_the_full_one_alone(tmp_path):
    full = tmp_path / "srinivas-1.csv"
    full.write_text("hours of work")
    result = call("srinivas-1", "--quick", "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert full.read_text() == "hours of work"
    names = {f"srinivas-1-quick.{kind}" for kind in ("csv", "txt", "png")} | {"srinivas-1.csv"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert (
        "T up to 300; nothing is random; full size is T up to 10000" in (tmp_path / "srinivas-1-quick.txt").read_text()
    )


def test_a_picture_may_be_a_vector_graphic_equal_at_each_run(tmp_path):
    for folder in ("a", "b"):
        assert call("srinivas-1", "--quick", "--picture", "svg", "--out", tmp_path / folder).exit_code == 0
    first, second = (tmp_path / folder / "srinivas-1-quick.svg" for folder in ("a", "b"))
    assert first.read_text().count("<path") > 10
    assert first.read_text() == second.read_text()


def test_a_picture_for_a_column_of_a_paper(tmp_path):
    """It is as wide as the column, and its words are in the caption of the paper."""
    assert call("srinivas-1", "--quick", "--picture", "svg", "--width", "column", "--out", tmp_path).exit_code == 0
    assert 'width="237.6pt"' in (tmp_path / "srinivas-1-quick.svg").read_text()


def test_a_report_has_all_figures_whose_data_are_there(tmp_path, monkeypatch):
    def make(job):
        return Result((curves(a=[1.0]),), (Statement("a | b", "x = 1", True), Statement("c", "", None)))

    paper = papers.Paper("mine", "Mine 2026")
    for name, data in (("1", ()), ("2", ("nowhere/none.npz",)), ("3", ())):
        paper.figure(name, "about", trials=2, rounds=3, data=data)(make)
    monkeypatch.setattr(report, "papers", lambda: [paper])
    found = call("--all", "--report", tmp_path / "all.md", "--out", tmp_path)
    assert found.exit_code == 0, found.output
    assert "Left out: mine-2 needs nowhere/none.npz" in found.output
    lines = (tmp_path / "all.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ")][1:]
    assert [row.split(" | ")[0] for row in rows] == ["| mine-1", "| ", "| mine-3", "| "]
    assert rows[0].endswith(r" | a \| b | x = 1 | holds |")
    assert "| 2 trials of 3 rounds, seed 0 |" in rows[0]
    assert lines[-1] == "2 figures. 4 statements: 2 hold, 0 do not hold, 2 open (too few trials to tell)."
    for name in ("nilregret", "numpy", "scipy", "Python"):
        assert name in lines[0]
    found = call("--all", "--report", tmp_path / "no" / "all.md", "--out", tmp_path / "new")
    assert (tmp_path / "no" / "all.md").is_file()
    (tmp_path / "file").write_text("")
    found = call("--all", "--report", tmp_path / "file" / "all.md", "--out", tmp_path / "none")
    assert "cannot be written to" in found.output
    assert not list((tmp_path / "none").iterdir())  # This is said before the first figure is made.
    assert "leave out mine-1" in call("--all", "mine-1").output
    assert "name some, or take --all" in call("--report", tmp_path / "all.md").output


def test_the_picture_says_how_large_it_is(tmp_path, monkeypatch):
    said = []
    monkeypatch.setattr(plots, "panels", lambda *_, note="", **__: said.append(note))
    figure = FIGURES["srinivas-5a"]
    result = Result((curves(a=[1.0]),), (Statement("", "", True),))
    for job in (figure.job(seed=4), figure.job(trials=3)):
        report.write(figure, job, result, tmp_path)
    assert said == ["30 trials of 1,000 rounds, seed 4", "3 trials of 1,000 rounds, seed 0; full size is 30 of 1,000"]


def test_the_folder_is_tried_before_the_first_trial(tmp_path, monkeypatch):
    monkeypatch.setattr(trials, "simulate_all", None)  # a trial would fail with another error
    (tmp_path / "file").write_text("")
    result = call("srinivas-5a", "--out", tmp_path / "file" / "below")
    assert result.exit_code == 1
    assert "cannot be written to" in result.output
    assert "--out" in result.output

    def refuse(**_):
        raise PermissionError("read-only")

    monkeypatch.setattr(report.tempfile, "TemporaryFile", refuse)
    result = call("srinivas-5a", "--out", tmp_path / "new")
    assert result.exit_code == 1
    assert "read-only" in result.output


# -- verdicts ----------------------------------------------------------------------------------------------------------


def test_a_comparison_is_open_until_its_interval_has_one_side():
    shown = curves(a=[1.0, 1.0, 1.0], b=[2.0, 2.1, 2.2], c=[0.0, 1.5, 3.0], d=[0.5, 0.4, 0.3])
    assert verdicts.below("", shown, ["a"], ["b"]).holds is True
    assert verdicts.below("", shown, ["b"], ["a"]).holds is False
    assert verdicts.below("", shown, ["a"], ["c"]).holds is None
    assert verdicts.below("", shown, ["a"], ["b", "c"]).holds is None
    failing = verdicts.below("", shown, ["a"], ["b", "c", "d"])
    assert failing.holds is False
    assert "closest: d - a" in failing.measured  # although c's interval reaches lower
    assert verdicts.below("", shown, ["a"], ["a"]).holds is False  # equal in every trial
    assert verdicts.below("", curves(a=[1.0], b=[9.0]), ["a"], ["b"]).holds is None


def test_curves_coincide_or_not_or_it_is_open():
    high = [100.0, 100.0, 100.0]
    near = curves(a=[1.0, 1.0, 1.0], b=[3.0, 3.1, 3.2], high=high)
    assert verdicts.coincide("", near, ["a", "b"]).holds is True
    assert verdicts.coincide("", near, ["a", "high"]).holds is False
    assert verdicts.coincide("", near, ["a", "b", "high"]).holds is False
    assert verdicts.coincide("", curves(a=[1.0, 1.0, 1.0], b=[0.0, 4.0, 9.0], high=high), ["a", "b"]).holds is None
    assert verdicts.coincide("", curves(a=[1.0], b=[1.0]), ["a", "b"]).holds is None


def test_sentences_of_several_parts():
    assert verdicts.together([True, np.True_]) is True
    assert verdicts.together([True, None]) is None
    assert verdicts.together([None, np.False_]) is False
    assert verdicts.above(interval(np.array([1.0, 1.5])), border=0.0) is None
    assert verdicts.above(interval(np.array([1.0, 1.01])), border=0.0) is True


def test_the_last_line_counts_all_three():
    figure = FIGURES["srinivas-5a"]
    result = Result((), tuple(Statement("a", "b", holds) for holds in (True, None, np.False_, True, None)))
    words = report.text(figure, figure.job(), result)
    assert words.endswith("5 statements: 2 hold, 1 does not hold, 2 open (too few trials to tell).")
    assert [line.strip() for line in words.splitlines()].count("open") == 2


def test_a_true_sentence_comes_out_in_a_quick_run(tmp_path):
    """The one of the four that few trials show: of 40 its gap is 16 standard errors, of these 8 about 8."""
    figure = FIGURES["srinivas-5a"]
    job = figure.job(quick=True, trials=8)
    result = call("srinivas-5a", "--quick", "--trials", 8, "--out", tmp_path)
    assert result.exit_code == 0, result.output
    assert f"8 trials of {job.rounds} rounds, seed 0; full size is 30 of 1,000" in result.output
    assert "    holds\n" in result.output.partition("scaling beta_t down by a factor 5")[2]
    assert "\n4 statements: " in result.output


# -- names and data ----------------------------------------------------------------------------------------------------


def test_the_list_says_what_needs_data():
    lines = call().output.splitlines()
    marked = {line.split()[0] for line in lines if "[needs data:" in line}
    assert {"srinivas-5b", "srinivas-5c", "chowdhury-4a", "chowdhury-4b"} <= marked
    assert not marked & {"srinivas-5a", "chowdhury-1a", "avanesov-1"}
    assert "[needs data: intel_lab]" in next(line for line in lines if "srinivas-5b" in line)


@pytest.mark.parametrize("name", [name for name, figure in FIGURES.items() if figure.data])
def test_a_figure_that_says_it_needs_data_does(name, tmp_path, monkeypatch):
    monkeypatch.setenv("NILREGRET_DATA", str(tmp_path))
    with pytest.raises(files.MissingData):
        FIGURES[name].make(Job(trials=1, rounds=2))


def test_missing_data_are_noticed_before_anything_begins(tmp_path, monkeypatch):
    monkeypatch.delenv("NILREGRET_DATA", raising=False)
    out = tmp_path / "out"
    result = call("srinivas-3", "srinivas-5b", "--out", out)
    assert result.exit_code == 1
    assert not out.exists()
    assert "--data DIR" in result.output
    assert "`path`" not in result.output
    assert "`intel_lab/intel_lab_30min.npz` is to be read, but there is no --data" in result.output
    assert len(result.output) < 450
    result = call("chowdhury-4b", "--data", tmp_path)
    assert f"looked for `light_cmu/light_cmu.npz` in `{tmp_path}`" in result.output


def test_capitals_do_not_matter():
    assert papers.find("Srinivas-5A") is FIGURES["srinivas-5a"]


def test_a_paper_is_offered_figure_by_figure(tmp_path):
    result = call("SRINIVAS", "--out", tmp_path / "out")
    assert result.exit_code == 0
    names = [figure.name for figure in srinivas.PAPER.figures]
    assert all(f"  {name} " in result.output for name in names)
    assert "chowdhury" not in result.output
    assert result.output.splitlines()[-1] == f"nilregret papers {' '.join(names)}"
    assert not (tmp_path / "out").exists()
    result = call("srinivas", "chowdhury-1a")
    assert result.exit_code == 1
    assert "'srinivas' names a paper, not a figure" in result.output


# -- progress bars -----------------------------------------------------------------------------------------------------

TUNED = """
trials = 3
[parameters.x]
type = "float"
low = 0.0
high = 1.0
[policy]
algorithm = "gp_ucb"
noise = 0.1
kernel = { type = "matern", nu = 2.5, lengthscale = 0.5 }
[objective]
function = "objective:score"
"""


LOGGED = """
from nilregret.__main__ import main
from nilregret.study import importance
importance.DRAWS = 2
main("papers srinivas-3 --quick --trials 2 --out out".split(), standalone_mode=False)
main(["tune", "job.toml"], standalone_mode=False)
"""


def test_no_progress_bar_in_a_log(tmp_path):
    (tmp_path / "job.toml").write_text(TUNED)
    (tmp_path / "objective.py").write_text("def score(x):\n    return x\n")
    done = subprocess.run([sys.executable, "-c", LOGGED], cwd=tmp_path, capture_output=True, check=True, env=os.environ)
    assert b"srinivas-3" in done.stdout
    assert b"next: nilregret show job.db job" in done.stdout
    assert b"\r" not in done.stdout.replace(b"\r\n", b"\n")
    assert done.stderr == b""
