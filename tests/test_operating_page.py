"""What the page on operating shows is what the commands print."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner

from nilregret.__main__ import main

from .waiting import LONG

PAGE = Path(__file__).parent.parent / "docs" / "operating.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"), "DATE"),
    (re.compile(r'("(?:asked_at|told_at|lease_until)"): [\d.]+'), r"\1: TIME"),
    (re.compile(r"after \S+ s \(median\), \S+ s at most"), "after SOME s"),
]


def steady(text):
    for pattern, instead in VARIES:
        text = pattern.sub(instead, text)
    return [line.rstrip() for line in text.strip().splitlines()]


def printed(command, code):
    """What a command prints, and its exit code."""
    if command == "echo $?":
        return str(code), 0
    words = shlex.split(command)
    assert words[0] == "nilregret", command
    # The page shows what a terminal of this width shows, without its colours.
    with mock.patch("nilregret.study.terminal.is_terminal", return_value=True):
        result = CliRunner().invoke(main, words[1:], env={"TERM": "dumb", "COLUMNS": "120", "LINES": "40"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.output, result.exit_code


def script(folder, text):
    """Run as a user runs it, with the command on the path."""
    (folder / "bin").mkdir()
    command = folder / "bin" / "nilregret"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m nilregret "$@"\n')
    command.chmod(0o755)
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run(["sh", "-c", text], env=environment, check=True, timeout=LONG)


@pytest.mark.nightly
@pytest.mark.skipif(os.name != "posix", reason="the page has a shell script")
def test_the_page_shows_what_the_commands_print(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, commands = 0, 0
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "toml":
            (tmp_path / text.split("\n")[0].removeprefix("# ")).write_text(text)
        elif kind == "sh" and text.startswith("#!"):
            script(tmp_path, text)
        elif kind == "python":
            exec(text, {})
            assert "copy.db" not in text or "oven" in printed("nilregret studies copy.db", 0)[0]
        elif kind == "console":
            for session in text.split("$ ")[1:] if text.startswith("$ ") else ():
                command, _, expected = session.partition("\n")
                found, code = printed(command, code)
                assert steady(found) == steady(expected), command
                commands += 1
    assert commands >= 8
    assert len(json.loads(printed("nilregret trials studies.db oven --json", 0)[0])) == 7
