"""What people see: numbers, tables that fit, the live view of a run, hints, completion."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret._utils.numerals import numeral, numerals
from nilregret.cli.groups import EXAMPLES, GROUPS
from nilregret.cli.overview import _domain, overview, overview_parts
from nilregret.study import terminal
from nilregret.study.formatting import sparkline

from .waiting import LONG

pytestmark = pytest.mark.usefixtures("few_draws")
pty = pytest.importorskip("pty")
pyte_free = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def on_a_terminal(code, *, width=80, interrupt=None, stdout=None, **variables):
    """Returns what a program writes to a terminal of its own, and its exit code."""
    variables = {"TERM": "xterm-256color", "COLUMNS": str(width), "LINES": "40"} | variables
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    environment |= variables | {"PYTHONPATH": os.pathsep.join(sys.path)}
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=follower, stdout=stdout or follower, stderr=follower, env=environment,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # A shell's job in the background ignores it.
    )  # fmt: skip
    os.close(follower)
    found, end = b"", time.monotonic() + LONG
    while time.monotonic() < end:
        try:
            part = os.read(leader, 65536)
        except OSError:  # The terminal is closed.
            break
        if not part:
            break
        found += part
        if interrupt is not None and interrupt in found:
            time.sleep(0.05)  # The view has been drawn.
            process.send_signal(signal.SIGINT)
            interrupt = None
    os.close(leader)
    return found.decode(), process.wait(timeout=LONG)


RUN = """
import sys, time
import nilregret as nr
def score(x, kind):
    print("heard", flush=True)
    if x > 4.0:
        raise ValueError("too hot")
    return -((x - 2) ** 2) + (kind == "b")
space = nr.Space(x=nr.Float(0, 5), kind=nr.Choice("a", "b"))
"""


WIDTHS = [40, 80]
RUNS = """
import os
from concurrent.futures import ThreadPoolExecutor

def run(trials=5, executor=None, **variables):
    os.environ.pop("NO_COLOR", None)
    os.environ.update({"TERM": "xterm-256color", "COLUMNS": "80"} | variables)
    result = nr.maximize(score, space, trials=trials, executor=executor)
    if trials == 12:
        print(result)
    print("---")

run(12, COLUMNS="40")
run(12)
run(NO_COLOR="1")
run(TERM="dumb")
run()
print = lambda *a, **k: None
with ThreadPoolExecutor(3) as pool:
    run(9, executor=pool)
"""


def screen_after(text):
    """Returns the lines that a terminal shows after all escape codes of a text."""
    lines, row, column = [""], 0, 0
    for token in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", text):
        if token == "\n":
            row += 1
            lines += [""] * (row >= len(lines))
        elif token == "\r":
            column = 0
        elif token.endswith("A") and token[0] == "\x1b":
            row -= int(token[2:-1] or 1)
        elif token.endswith("K") and token[0] == "\x1b":
            lines[row] = "" if token[2:-1] == "2" else lines[row][:column]
        elif token[0] != "\x1b":
            lines[row] = lines[row][:column].ljust(column) + token + lines[row][column + 1 :]
            column += 1
    return lines


@pytest.fixture(scope="module")
def runs():
    """What several runs of one program, between lines of "---", write to a terminal."""
    said, code = on_a_terminal(RUN + RUNS, TERM="dumb")
    assert code == 0, said
    return said.split("---\r\n")


@pytest.mark.parametrize("width", [40, 80])
def test_a_run_has_one_view_that_is_gone_at_its_end(runs, width):
    said = runs[WIDTHS.index(width)]
    shown = pyte_free.sub("", said)
    for part in ("12/12", "best", "at x="):
        assert part in shown
    view = shown.partition("Result")[0].replace("\r", "\n").split("\n")
    assert max(len(line.rstrip()) for line in view) <= width
    left = [line for line in screen_after(said) if line.strip()]
    assert left.count("heard") == 12  # What the objective prints is whole, above the view.
    others = [line for line in left if line != "heard"]
    assert others[0].startswith("trial ")
    assert "failed: ValueError: too hot" in others[0]
    ending = " ".join(line.strip() for line in others[1:])
    assert re.match(r"score: 12 trials, best \S+ \(trial \d+\), \d failed Result of 'score'", ending), others
    assert said.rindex("\x1b[?25h") > said.rindex("\x1b[?25l")  # The cursor is there again.


def test_what_an_objective_prints_stays_in_its_file(tmp_path):
    with (tmp_path / "out.txt").open("w") as out:
        said, code = on_a_terminal(RUN + "nr.maximize(score, space, trials=5)", stdout=out)
    assert (code, (tmp_path / "out.txt").read_text()) == (0, "heard\n" * 5)
    assert "heard" not in said
    assert "5/5" in said


def test_ctrl_c_ends_the_view_and_keeps_what_is_known():
    slow = RUN.replace('print("heard", flush=True)', "time.sleep(0.2)")
    said, code = on_a_terminal(slow + "print(len(nr.maximize(score, space, trials=500).trials))", interrupt=b"2/500")
    assert code == 0
    left = "\n".join(screen_after(said))
    assert "Stopped: interrupted: by Ctrl-C after" in left.replace("\n", " ")
    assert "500 trials" in left
    assert "━" not in left


@pytest.mark.parametrize(
    ("run", "view", "colours"),
    [(2, True, False), (3, False, False), (4, True, True)],
    ids=["no colour", "dumb", "all"],
)
def test_colours_and_views_are_what_the_terminal_takes(runs, run, view, colours):
    said = runs[run]
    assert ("5/5" in said) is view
    assert any(re.search(r"[3]\d", code) for code in COLOUR.findall(said)) is colours
    assert view or "\x1b" not in said


def test_a_pipe_gets_a_line_for_each_improvement_and_failure(capsys):
    def score(x):
        if x > 4.0:
            raise ValueError("too hot")
        return x

    nr.maximize(score, nr.Space(x=nr.Float(0, 5)), trials=10)
    _, said = capsys.readouterr()
    lines = said.splitlines()
    assert "\x1b" not in said
    assert lines[-1].startswith("score: 10 trials, best ")
    assert all(re.match(r"trial \d+(: best so far \S+, x=| failed: ValueError: too hot)", line) for line in lines[:-1])
    values = [float(line.split()[5].rstrip(",")) for line in lines[:-1] if "best so far" in line]
    assert values == sorted(set(values))
    nr.maximize(score, nr.Space(x=nr.Float(0, 5)), trials=3, progress=False)
    assert capsys.readouterr().err == ""


def test_executors_share_one_view(runs):
    assert "9/9" in runs[5]


def test_a_notebook_has_a_line_that_is_written_again(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    with ThreadPoolExecutor(1) as pool:
        nr.maximize(lambda x: x, nr.Space(x=nr.Float(0, 1)), trials=4, name="line", executor=pool)
    said = capsys.readouterr().err
    assert said.count("\r") >= 2
    assert "\x1b" not in said
    assert said.endswith("\n")
    assert said.strip().split("\r")[-1].splitlines()[0].startswith("line: 4 trials, best ")


@pytest.mark.parametrize(("value", "text"), [
    (0.1 + 0.2, "0.3"), (1e-5, "1e-5"), (1e-9, "1e-9"), (2.5e9, "2.5e9"), (-2.5e9, "-2.5e9"), (9_999_999.0, "9999999"),
    (-1234.5678, "-1235"), (123456.7, "123457"), (0.0, "0"),
    (-1e-300, "-1e-300"), (1e10, "1e10"), (float("nan"), "unknown"), (float("-inf"), "-inf"), (200.0, "200"),
])  # fmt: skip
def test_numbers_have_the_digits_they_deserve(value, text):
    assert numeral(value) == text


def test_numbers_that_differ_late_have_more_digits():
    assert numerals([0.98123, 0.98124, 0.5]) == ["0.98123", "0.98124", "0.5"]
    assert numerals([0.98123, 0.98123]) == ["0.9812", "0.9812"]
    assert numerals([1.0, 1.0 + 1e-12, 1.0001]) == ["1", "1", "1"]
    assert numerals([]) == []


def test_a_comparison_is_printed_in_a_terminal_of_ascii(monkeypatch):
    arms = nr.Arms.grid(0, 1, 4)
    world = nr.Environment(lambda x: x[:, 0], domain=arms, noise=1.0)
    policy = nr.gp_ucb(arms, nr.SquaredExponential(0.2), noise=1.0)
    result = nr.compare({"é": policy, "b": policy}, world, rounds=9, seeds=range(4))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    print(result)
    sys.stdout.seek(0)
    lines = sys.stdout.read().splitlines()
    assert "+-" in lines[-1]
    assert lines[-2].startswith(r"\xe9")
    assert len({line.index("+-") for line in lines[1:] if "+-" in line}) == 1


def test_sparklines_keep_their_scale_and_their_width():
    values = [0, 1, 0.5, 2, 1.5, -1000]
    rewards, best = sparkline(values, values, "maximize", width=40, encoding="utf-8")
    assert (rewards, best) == ("▁▅▃█▆▁", "▁▅▅███")
    losses, best = sparkline([3.0, 1.0, 2.0], [3.0, 1.0, 2.0], "minimize", width=40, encoding="utf-8")
    assert (losses, best) == ("█▁▅", "█▁▁")
    rewards, _ = sparkline(list(range(1000)), list(range(1000)), "maximize", width=40, encoding="utf-8")
    assert len(rewards) == 40
    assert rewards == "".join(sorted(rewards))
    assert sparkline([1.0, 1.0], [1.0, 1.0], "maximize", width=9, encoding="ascii") == ("__", "__")


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space = nr.Space(heat=nr.Float(120, 250), kind=nr.Choice("rye", "wheat"))
    made = nr.Study(nr.auto(space), storage="sqlite:///studies.db", name="oven")
    for i in range(6):
        trial = made.ask()
        if i == 4:
            made.fail(trial, "the door was open and nobody saw it for an hour")
        else:
            made.tell(trial, [3.0, 4.0, 1.0, 5.0, 0.0, 2.0][i])
    return made


def command(*words, width=80, code=0, **variables):
    """Returns what a command prints to a terminal, with the codes of colours."""
    environment = {"NO_COLOR": None, "FORCE_COLOR": None, "TERM": "dumb", "COLUMNS": str(width), "LINES": "40"}
    with mock.patch("nilregret.study.terminal.is_terminal", return_value=True):
        result = CliRunner().invoke(main, list(words), env=environment | variables)
    assert result.exit_code == code, result.output
    return result.output


COLOURED = {"TERM": "xterm-256color", "FORCE_COLOR": "1"}


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("words", [("trials",), ("show",), ("studies",), ("explain", "oven", "5")])
def test_what_is_shown_fits_the_terminal(study, width, words):
    said = command(words[0], "studies.db", *words[1:], width=width)
    assert max(map(len, said.splitlines())) <= width
    assert "\x1b" not in said


def test_a_terminal_marks_what_matters_and_drops_what_is_empty(study):
    assert all("reward" in command("trials", "studies.db", width=width) for width in (40, 80))
    text = command("trials", "studies.db", width=140)
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d", line)]
    assert [row[1] for row in rows] == ["observed"] * 4 + ["failed", "observed"]
    assert [row[2] for row in rows if row[2] in ("best", "better")] == ["better", "better", "best"]
    assert "plays" not in text
    wide = command("trials", "studies.db", "--wide")
    assert "propensity" in wide.splitlines()[0]
    assert len(wide.splitlines()) == 8
    (failed,) = [line for line in command("trials", "studies.db", **COLOURED).splitlines() if "failed" in line]
    assert "\x1b[31m" in failed
    assert "\x1b[3" not in command("trials", "studies.db", **COLOURED, NO_COLOR="1")
    assert "abandoned" not in command("studies", "studies.db")
    assert "the door was open" in " ".join(command("trials", "studies.db", "--state", "failed", width=60).split())


@pytest.mark.parametrize(("about", "given_up"), [({"constraints": "latency <= 50"}, "constraints"), ({}, "metrics")])
def test_a_narrow_terminal_has_readings_rather_than_how_far_they_are_from_their_limits(study, about, given_up):
    policy = nr.auto(nr.Space(x=nr.Float(0, 1)), constraints=1)
    limited = nr.Study(policy, about=about, storage="sqlite:///studies.db", name="limited")
    limited.add({"x": 0.123456}, 0.123456, constraints=[12.0], metrics={"latency": 62.0, "size": 3.1})
    text = command("trials", "studies.db", "limited", width=60)
    assert {"constraints", "metrics"} - {*text.splitlines()[0].split()} == {given_up}
    assert f"Not shown: asked (UTC); told (UTC); {given_up}. " in " ".join(text.split())


def test_a_pipe_gets_every_column_that_holds_something_whole():
    """With --wide it gets also the empty ones."""
    rows = [[1, None, 0.25, "a" * 99], [2, None, 0.5, None]]
    for wide in (False, True):
        made = terminal.table(rows, ["trial", "reason", "reward", "at"], states=["best", ""], wide=wide)
        lines = [line.split() for line in terminal.plain(made).splitlines()]
        assert lines[0] == ["trial", *["reason"] * wide, "reward", "at"]
        assert lines[2:] == [["1", *["-"] * wide, "0.25", "a" * 99], ["2", *["-"] * wide, "0.5", "-"]]


@pytest.mark.parametrize(("now", "said"), [(1.8e9, "2027-01-15 08:00:00 UTC"), (1e15, "1e15 s")])
def test_times_of_a_summary_name_their_zone(now, said):
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1))), clock=lambda: now)
    study.tell(study.ask(), 1.0)
    facts = terminal.plain(overview_parts(overview(study), study)[0]).splitlines()
    assert [line.split(maxsplit=2)[2] for line in facts if line.startswith(("first", "last "))] == [said, said]


def test_parameters_that_do_not_fit_a_line_have_one_each(study):
    space = nr.Space(temperature=nr.Float(20.0, 90.0), minutes=nr.Int(10, 180), kind=nr.Choice("a", "b"))
    for domain, first in ((space, "temperature Float(low=20.0"), (space.grid(2), "8 arms of")):
        lines = _domain(nr.Study(nr.auto(domain))).split("\n")
        assert lines[0].startswith(first)
        assert lines[-1] == "kind Choice(options=('a', 'b'))"


@pytest.mark.parametrize(("words", "right"), [
    (("list",), "That is `nilregret studies`"), (("best",), "`nilregret show`"), (("optimize",), "`nilregret tune`"),
    (("ui",), "`nilregret serve`"), (("version",), "`nilregret --version`"),
    (("tell", "s.db", "0", "500"), "STUDY is missing: nilregret tell s.db STUDY 0 500"),
])  # fmt: skip
def test_what_people_type_instead_is_answered_with_the_command(words, right):
    assert right in CliRunner().invoke(main, list(words)).output


@pytest.mark.parametrize(("words", "last"), [
    (("show", "studies.db"), "next: nilregret explain studies.db oven 3"),
    (("ask", "studies.db"), "next: nilregret tell studies.db oven 6 REWARD"),
    (("studies", "studies.db"), "next: nilregret show studies.db oven"),
])  # fmt: skip
def test_a_terminal_is_told_what_to_do_next(study, words, last):
    assert command(*words).splitlines()[-1] == last
    assert "next:" not in CliRunner().invoke(main, list(words)).output
    assert "next:" not in command(*words, "--json")


def test_misspelt_names_are_guessed(study):
    for words in (
        ["show", "studies.db", "ovne"],
        ["rename", "studies.db", "ovne", "b"],
        ["delete", "studies.db", "ov"],
    ):
        assert "Did you mean 'oven'?" in CliRunner().invoke(main, [*words, *["--yes"] * (words[0] == "delete")]).stderr
    assert "Did you mean" not in CliRunner().invoke(main, ["show", "studies.db", "xyz"]).stderr
    assert "Did you mean 'show'?" in CliRunner().invoke(main, ["shwo"]).stderr


def test_every_command_is_in_a_group_and_has_an_example_that_parses():
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(main.commands)
    assert sorted(EXAMPLES) == sorted(main.commands)
    for name in main.commands:
        said = CliRunner().invoke(main, [name, "--help"]).output
        assert f"  nilregret {EXAMPLES[name][0]}\n" in said
        for example in EXAMPLES[name]:
            words = example.partition(" > ")[0]
            options = set(re.findall(r" (--[a-z-]+)", words))
            inner = main.commands[name]
            inner = inner.commands[words.split()[1]] if name == "token" else inner
            assert options <= {option for parameter in inner.params for option in parameter.opts}, example


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_line_of_each_shell_prints_its_completion(shell):
    setting = f"{shell}_source"
    page = (Path(__file__).parents[1] / "docs" / "install.md").read_text()
    assert f"_NILREGRET_COMPLETE={setting} nilregret" in page
    done = CliRunner().invoke(main, prog_name="nilregret", env={"_NILREGRET_COMPLETE": setting})
    assert done.exit_code == 0, done.output
    assert f"_NILREGRET_COMPLETE={shell}_complete" in done.output


def test_studies_are_completed(study):
    words = {"COMP_WORDS": "nilregret show studies.db o", "COMP_CWORD": "3", "_NILREGRET_COMPLETE": "bash_complete"}
    found = CliRunner().invoke(main, prog_name="nilregret", env=words)
    assert found.output == "plain,oven\n"
    nowhere = words | {"COMP_WORDS": "nilregret show nowhere.db o"}
    assert CliRunner().invoke(main, prog_name="nilregret", env=nowhere).output.strip() == ""
