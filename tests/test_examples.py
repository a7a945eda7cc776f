"""Examples and tutorials, which are scripts; `svm.toml`, a file for `nilregret tune`, is run in test_tune.py."""

import asyncio
import importlib.util
import os
import re
import runpy
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import nilregret as nr
from nilregret import plots

pytestmark = pytest.mark.usefixtures("few_draws")
EXAMPLES = Path(__file__).parents[1] / "examples"
DOCS = EXAMPLES.parent / "docs"
TUTORIALS = sorted(path.stem for path in (DOCS / "tutorials").glob("*.py"))
PNG = b"\x89PNG"


@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials_have_text_that_fits_and_links_that_lead_somewhere(name):
    text = (DOCS / "tutorials" / f"{name}.py").read_text(encoding="utf-8")
    opening, *blocks = text.split("\n# %%\n")
    prose = [opening.split('"""')[1]]
    prose += ["\n".join(line[2:] for line in block.split("\n\n")[0].splitlines()) for block in blocks]
    assert 400 <= len(" ".join(prose).split()) <= 820
    assert "What you learned\n----------------\n" in prose[-1]
    links = re.findall(r":doc:`([^`]+)`", prose[-1])
    assert len(links) >= 2
    for link in links:
        path = DOCS / f"{link[1:]}.md" if link.startswith("/") else DOCS / "tutorials" / f"{link}.py"
        assert path.is_file(), link


@pytest.mark.nightly
@pytest.mark.parametrize("name", TUTORIALS)
def test_tutorials_run_as_scripts_and_leave_nothing_behind(name, tmp_path):
    script = [sys.executable, "-W", "error::FutureWarning", DOCS / "tutorials" / f"{name}.py"]
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "nan" not in done.stdout.split()
    assert list(tmp_path.iterdir()) == []


def test_pricing_notices_both_changes(tmp_path, monkeypatch, capsys):
    picture = tmp_path / "pricing.png"
    monkeypatch.setattr(sys, "argv", ["pricing.py", "--hours", "900", "--out", str(picture)])
    runpy.run_path(str(EXAMPLES / "pricing.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.count("starting anew") == 2
    assert "changed in hours [288, 792], which was noticed after" in printed
    assert "inf" not in printed
    with_detector, without = (
        float(words.replace(",", "")) for words in printed.split("best prices: ")[1].split() if words[0].isdigit()
    )
    assert with_detector < 0.7 * without
    assert picture.read_bytes().startswith(PNG)


def test_three_studies_to_look_at_in_a_browser(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dashboard.py", "--days", "2"])
    runpy.run_path(str(EXAMPLES / "dashboard.py"), run_name="__main__")
    assert capsys.readouterr().out == "Look at it: nilregret serve --storage sqlite:///dashboard.db\n"
    counts = {
        name: len(nr.Study.open(storage="sqlite:///dashboard.db", name=name).trials)
        for name in ("shop", "oven", "router")
    }
    assert counts == {"shop": 24, "oven": 4, "router": 12}


@pytest.mark.nightly
def test_a_shop_in_which_everything_happens_at_once(tmp_path, monkeypatch, capsys):
    picture = tmp_path / "everything.png"
    monkeypatch.setattr(sys, "argv", ["everything.py", "--days", "24", "--seeds", "1", "--out", str(picture)])
    runpy.run_path(str(EXAMPLES / "everything.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    shop = said[3].split()
    share, discount, noticed = float(shop[4].rstrip("%")), float(shop[5]), int(shop[6])
    assert share >= 85.0
    assert abs(discount / 2.0 - 1.0) <= 0.05
    assert 0 <= noticed <= 150
    assert said[4].startswith("In all: ")
    assert picture.read_bytes().startswith(PNG)


def test_a_cut_before_the_competitor_and_a_second_one_after_are_false_alarms():
    shop = runpy.run_path(str(EXAMPLES / "everything.py"))
    assert shop["alarms"]([5, 40, 60], 30) == ([40], [5, 60])
    assert shop["alarms"]([5], 30) == ([], [5])


def test_boosting_tunes_what_counts_and_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("boosting", EXAMPLES / "boosting.py")
    boosting = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(boosting)
    features, progress = boosting.data()
    monkeypatch.setattr(boosting, "data", lambda: (features[:40], progress[:40]))
    assert boosting.error(n_estimators=5) != boosting.error(n_estimators=5, loss="huber", alpha=0.6)
    told = []

    def error(n_estimators=100, alpha=0.9, **others):  # as quick as a line, and as steep as the real one
        told.append(others)
        return 40.0 + 50.0 / n_estimators + alpha

    monkeypatch.setattr(boosting, "error", error)
    for trials in (6, 12):
        monkeypatch.setattr(sys, "argv", ["boosting.py", "--trials", str(trials), "--folder", str(tmp_path)])
        boosting.main()
        assert f"Result of 'boosting' (minimize): {trials} trials" in capsys.readouterr().out
    assert (tmp_path / "boosting.png").read_bytes().startswith(PNG)
    study = nr.Study.open(storage=f"sqlite:///{tmp_path}/boosting.db", name="boosting")
    assert [trial.state for trial in study.trials] == ["observed"] * 12
    assert len(told) == 14  # with scikit-learn's own parameters after each run
    assert all(("alpha" in t.parameters) == (t.parameters["loss"] == "huber") for t in study.trials)
    assert {trial.parameters["loss"] for trial in study.trials} == {"huber", "squared_error"}


def test_training_reports_each_epoch_and_stops_early(monkeypatch, capsys):
    module = runpy.run_path(str(EXAMPLES / "training.py"))
    monkeypatch.setitem(module["error"].__globals__, "EPOCHS", 4)
    monkeypatch.setattr(sys, "argv", ["training.py", "--trials", "6", "--pruning", "halving"])
    module["main"]()
    said = capsys.readouterr().out
    assert "Result of 'error' (minimize): 6 trials, " in said
    epochs = re.search(r"epochs: (\d+) of 24", said)
    assert 6 <= int(epochs[1]) < 24


def test_svm_is_tuned_from_python_too(monkeypatch, capsys):
    maximize = nr.maximize
    monkeypatch.setattr(nr, "maximize", lambda *given, trials: maximize(*given, trials=trials // 10))
    runpy.run_path(str(EXAMPLES / "svm.py"), run_name="__main__")
    assert "Result of 'accuracy' (maximize): 6 trials" in capsys.readouterr().out


def test_pictures_of_changes(tmp_path):
    arms = nr.Arms.grid(0, 1, 9)
    study = nr.Study(nr.gp_ucb(arms, nr.Linear(), noise=0.1, memory=nr.slots.RestartEvery(3)))
    with pytest.raises(nr.errors.InvalidInput, match="No trial has been answered"):
        plots.changes(study, tmp_path / "none.png")
    trials = study.ask(count=7)
    study.tell(trials[5], 1.0)
    plots.changes(study, tmp_path / "few.png", known=[2])
    assert (tmp_path / "few.png").read_bytes().startswith(PNG)
    plane = nr.Study(nr.gp_ucb(nr.Box(np.zeros(2), np.ones(2)), nr.Linear(), noise=0.1))
    plane.add([0.5, 0.5], 1.0)
    with pytest.raises(nr.errors.InvalidInput, match="one dimension"):
        plots.changes(plane, tmp_path / "plane.png")


@pytest.mark.nightly
def test_workers_share_a_study_and_answer_in_any_order(tmp_path):
    storage = f"sqlite:///{tmp_path}/workers.db"
    command = [sys.executable, str(EXAMPLES / "workers.py"), "--storage", storage, "--rows", "150", "--workers", "2"]
    for trials in ("6", "9"):
        done = subprocess.run([*command, "--trials", trials], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "best: {'C': " in done.stdout
    study = nr.Study.open(storage=storage, name="digits")
    answered = [trial for trial in study.trials if trial.reward is not None]
    assert 9 <= len(answered) == len(study.trials) <= 10  # both workers may have seen that one more was wanted
    assert all(0.0 < trial.reward <= 1.0 for trial in answered)
    assert len({tuple(trial.point) for trial in answered}) == len(answered)  # nobody was sent where another one was
    study.ask()
    abandoned = subprocess.run([*command, "--trials", "9"], capture_output=True, text=True, check=False)
    assert abandoned.returncode == 0, abandoned.stderr
    assert study.trials[len(answered)].reason == "its worker was stopped"


def test_a_shop_whose_service_is_away_loses_customers_and_goes_on(monkeypatch, capsys):
    monkeypatch.syspath_prepend(EXAMPLES / "shop")
    example = runpy.run_path(str(EXAMPLES / "shop" / "__main__.py"))
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # takes calls, and never answers
        assert example["post"](f"http://127.0.0.1:{deaf.getsockname()[1]}/offers", {}, patience=0.05) is None
    options = SimpleNamespace(visitors=3, seed=0, thinks=0.1, pace=0.0)
    with socket.socket() as unheard:  # a port that nobody listens at, and nobody else gets
        unheard.bind(("127.0.0.1", 0))
        customers = example["Customers"](f"http://127.0.0.1:{unheard.getsockname()[1]}", options)
        asyncio.run(customers.all())
    customers.say("All")
    assert "0 sold" in (said := capsys.readouterr().out)
    assert "3 left without an offer" in said
