"""Values of parameters never run as commands, and commands never outlive those who wait for them."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from unittest import mock

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret import plots
from nilregret.__main__ import main
from nilregret.tuning.toml.evaluation import filled

from ..waiting import until

NASTY = [
    "$(touch ran)", "`touch ran`", "'; touch ran; '", '"; touch ran; "', "'$(touch ran)'", "\n touch ran\n",
    "\\'$(touch ran)", "a[$(touch ran)]", "$((`touch ran`))", "-n", "PATH=.", "&& touch ran", "~", "*", "!!",
]  # fmt: skip
FILE = """
trials = 15
[parameters.x]
type = "choice"
options = {options}
[policy]
algorithm = "greedy_variance"
noise = 0.1
kernel = {{ type = "matern", nu = 2.5, lengthscale = 0.5 }}
[objective]
command = {command}
{more}
"""


def write(folder, command, options=("a", "b"), more=""):
    path = folder / "job.toml"
    path.write_text(FILE.format(command=json.dumps(command), options=json.dumps(list(options)), more=more))
    return path


def tune(path, *options):
    with mock.patch.object(plots, "overview"):  # a picture takes as long as the run
        return CliRunner().invoke(main, ["tune", str(path), *options])


SAFE = [
    "{x}", "--opt={x}", "echo 1 {x}{x}", "'quoted' {x} \"double $HOME ${{HOME}} \\\" $\" {x}", "echo $(echo {x})",
    "echo $((1 + 2)) {x}", "# it's a comment\necho {x}", "echo a#b {x}", "`pwd`{x}", "echo \\'{x}",
    "echo ${{HOME}} {x}", "test 1 && echo {x} | cat > out", "echo {x}; cat <<EOF\n$(true)\nEOF\n",
]  # fmt: skip
UNSAFE = [
    "'{x}'", '"{x}"', '"a {x} b"', "echo '{x}", "{x!r}", "{x!s}", "{x:.3f}", "{x:>9}", "{x!a:>9}", "{x.real}", "{x[0]}",
    "{}", "{0}", "\\{x}", "`echo {x}`", "$(( {x} + 1 ))", "$[{x}]", "(( {x} ))", "[[ {x} -eq 1 ]]", "a[{x}]=1", "${x}",
    "${{v:-{x}}}", "$'a' {x}", "cat <<EOF\n{x}\nEOF", "# {x}", "echo 1 # ' {x}", "# '\n'{x}'", '"$(echo "{x}")"',
    '"`echo "{x}"`"', "eval echo {x}", "a\\ #'\n{x}'", "echo \\\n#'\n{x}'", "'a'\\''{x}'", "echo 'it''s' '{x}'",
    "{x:{x}}",
]  # fmt: skip


@pytest.mark.parametrize("template", SAFE)
def test_a_value_is_one_word_wherever_a_field_may_stand(tmp_path, template):
    command = filled(template, ["x"])
    for value in NASTY:
        subprocess.run(["sh", "-c", command({"x": value})], cwd=tmp_path, capture_output=True, check=False)
        assert {path.name for path in tmp_path.iterdir()} <= {"out"}, (template, value)


@pytest.mark.parametrize("template", UNSAFE)
def test_fields_that_cannot_be_quoted_are_refused_when_the_file_is_loaded(tmp_path, template):
    result = tune(write(tmp_path, template))
    assert result.exit_code == 1, result.output
    assert "[objective]" in result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job.toml"]


def test_options_that_are_commands_do_not_run(tmp_path):
    result = tune(write(tmp_path, "printf '%s' {x} >> said; echo 1", NASTY))
    assert result.exit_code == 0, result.output
    assert not (tmp_path / "ran").exists()
    assert all(value in (tmp_path / "said").read_text() for value in NASTY)


def test_a_nul_in_an_option_is_refused_before_the_first_trial(tmp_path):
    assert "NUL" in tune(write(tmp_path, "echo 1 {x}", ["a", "b\0c"])).output
    assert not (tmp_path / "job.db").exists()


@pytest.mark.parametrize("text", ['{"x": "$(touch ran)"}', '{"x": "b"}', '{"y": "a"}', "[1]", "{}", None, "1"])
def test_parameters_come_from_the_point_and_a_row_that_says_otherwise_is_refused(tmp_path, text):
    path = write(tmp_path, "touch {x}; echo 1")
    url = f"sqlite:///{tmp_path}/job.db"
    tune(path, "--trials", "1")
    study = nr.Study.open(storage=url, name="job")
    trial = study.ask()
    value = trial.parameters["x"]
    with closing(sqlite3.connect(tmp_path / "job.db")) as connection, connection:
        changed = text if text != f'{{"x": "{value}"}}' else '{"x": "a"}'
        connection.execute("UPDATE trials SET parameters = ? WHERE number = 1", (changed,))
    result = tune(path, "--trials", "3")
    assert result.exit_code == 1
    assert "Trial 1" in result.output
    assert "damaged" in result.output
    assert not (tmp_path / "ran").exists()
    with pytest.raises(nr.errors.StorageError, match=r"Trial 1 .*damaged"):
        nr.Study.open(storage=url, name="job")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups need a POSIX system")
def test_a_timeout_waits_for_nobody_who_holds_the_output(tmp_path):
    left = f"setsid sleep 600 & echo $! > {tmp_path}/left; sleep 600"
    begun = tmp_path / "left"
    for trials, seconds in enumerate((0.2, 2.0, 20.0), start=1):  # a busy machine may be slow to begin
        result = tune(write(tmp_path, left, more=f"timeout = {seconds}"), "--trials", str(trials))
        assert f"no answer within {seconds:g} s" in result.output
        if begun.exists() and begun.read_text().strip():
            break
    os.kill(int(begun.read_text()), signal.SIGKILL)  # which was still there, and is waited for by nobody


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups need a POSIX system")
def test_a_killed_tuner_leaves_no_command_running(tmp_path):
    beats = "while sleep 0.05; do echo beat >> {}; done"
    path = write(tmp_path, f"({beats.format('first')}) & {beats.format('second')}; echo {{x}}")
    tuner = subprocess.Popen(
        [sys.executable, "-m", "nilregret", "tune", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    files = [tmp_path / "first", tmp_path / "second"]
    try:
        until(lambda: all(file.exists() for file in files))
    finally:
        tuner.send_signal(signal.SIGKILL)
        tuner.wait()

    def quiet():
        before = [file.stat().st_size for file in files]
        time.sleep(0.5)
        return before == [file.stat().st_size for file in files]

    until(quiet)
