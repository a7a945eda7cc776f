"""The examples that are scripts; the one that is a file for `noregret tune` is run in test_tune.py."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import noregret as nr
from noregret import plots

EXAMPLES = Path(__file__).parents[1] / "examples"
PNG = b"\x89PNG"


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


def test_pictures_of_changes(tmp_path):
    arms = nr.Arms.grid(0, 1, 9)
    study = nr.Study(nr.gp_ucb(arms, nr.Linear(), noise=0.1, memory=nr.RestartEvery(3)))
    with pytest.raises(nr.InvalidInput, match="No trial has been answered"):
        plots.changes(study, tmp_path / "none.png")
    trials = study.ask(count=7)
    study.tell(trials[5], 1.0)
    plots.changes(study, tmp_path / "few.png", known=[2])
    assert (tmp_path / "few.png").read_bytes().startswith(PNG)
    plane = nr.Study(nr.gp_ucb(nr.Box(np.zeros(2), np.ones(2)), nr.Linear(), noise=0.1))
    plane.add([0.5, 0.5], 1.0)
    with pytest.raises(nr.InvalidInput, match="one dimension"):
        plots.changes(plane, tmp_path / "plane.png")


@pytest.mark.slow
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
    assert len({trial.arm for trial in answered}) == len(answered)  # nobody was sent where another one was
    study.ask()
    abandoned = subprocess.run([*command, "--trials", "9"], capture_output=True, text=True, check=False)
    assert abandoned.returncode == 0, abandoned.stderr
    assert study.trials[len(answered)].reason == "its worker was stopped"
