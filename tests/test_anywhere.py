"""Processes in surroundings that are not those of a developer: `python -O`, other locales, a home that is not there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import nilregret as nr
from nilregret.storage import database

SCRIPT = """
import nilregret as nr

space = nr.Space(größe=nr.Float(1e-5, 1e-1, log=True), kind=nr.Choice("ä", "sgd"))
place = "sqlite:///stüdien 1.db"
for trials in (4, 6):  # The second run goes on where the first one stopped.
    result = nr.minimize(lambda größe, kind: größe, space, trials=trials, storage=place, name="ü a", progress=False)
result.study.export("träger.csv")
print(len(result.study.trials), result)
"""


def played(folder, *options, **environment):
    (folder / "run.py").write_text(SCRIPT, encoding="utf-8")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHONUTF8"))}
    home = {"HOME": "/nonexistent", "PYTHONPATH": str(Path(nr.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, *options, "run.py"],
        cwd=folder,
        env=kept | home | environment,
        capture_output=True,
        check=False,
    )


@pytest.mark.nightly
@pytest.mark.parametrize(("options", "environment"), [(["-O"], {"LC_ALL": "C"}), (["-OO"], {"LC_ALL": "C.UTF-8"})])
def test_a_study_with_umlauts_in_its_path_without_assertions_and_home(tmp_path, options, environment):
    folder = tmp_path / "Büro mit Raum"
    folder.mkdir()
    ended = played(folder, *options, **environment)
    assert ended.returncode == 0, ended.stderr.decode()
    assert ended.stdout.startswith(b"6 ")
    assert {path.name for path in folder.iterdir()} >= {"stüdien 1.db", "träger.csv"}
    assert (folder / "träger.csv").read_text(encoding="utf-8").count("\n") == 7


@pytest.mark.nightly
def test_a_file_name_that_the_locale_cannot_write_is_an_error_with_its_remedy(tmp_path):
    ended = played(tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert ended.returncode == 1
    assert b"file names are in ascii. Rename it, or set PYTHONUTF8=1." in ended.stderr


def test_a_file_name_in_another_encoding_is_refused(monkeypatch):
    monkeypatch.setattr(database, "ENCODING", "ascii")
    with pytest.raises(nr.errors.InvalidInput, match="in ascii"):
        nr.Study(nr.auto(nr.Box([0], [1])), storage="sqlite:///stüdien.db")
