"""Nothing that a terminal obeys reaches one: names, options, reasons and facts may come from anywhere."""

import logging
import re
import signal
import warnings

import pytest
from click.testing import CliRunner

import nilregret as nr
from nilregret.__main__ import main
from nilregret.cli import common
from nilregret.errors import NoRegretWarning, printable
from nilregret.serve.http.server import _escape
from nilregret.serve.watch.signals import signals_of
from nilregret.serve.wire.problems import Problem
from nilregret.storage import SqlStorage
from nilregret.tuning.outcome import Rule

from .service import stored_before

EVIL = "\x1b]0;taken\x07\x1b[31mred\x9b2J\u202e\r"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")
URL = "sqlite:///a.db"


def clean(text):
    assert not OBEYED.search(text), ascii(text)
    return text


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A study with such characters in all that somebody may choose."""
    folder = tmp_path_factory.mktemp("printable")
    space = nr.Space(**{f"p{EVIL}": nr.Float(0, 1), "kind": nr.Choice(f"a{EVIL}", "b"),
                        f"q{EVIL}": nr.when("kind", f"a{EVIL}", nr.Float(0, 1))})  # fmt: skip
    storage = SqlStorage(f"sqlite:///{folder}/a.db")
    policy = nr.gp_ucb(space.grid(2), nr.Matern(2.5, 0.5), noise=0.1)
    stored_before(storage, f"n{EVIL}", policy)
    made = nr.Study(policy, storage=storage, name=f"n{EVIL}")
    for reward in (0.0, 1.0, 2.0):
        made.tell(made.ask(), reward)
    made.fail(made.ask(), f"because{EVIL}")
    made.abandon(made.ask(), f"gone{EVIL}")
    return made


def test_representations_and_texts(study):
    why = study.explain(1)
    best = study.best()
    for each in (study, study.policy, study.policy.domain, study.policy.domain.space, why, why.why, study.trials[3],
                 study.trials[4], best, study.fits, *study.policy.domain.space.declared.values(),
                 Rule(f"cost{EVIL}", 1.0, 1.0)):  # fmt: skip
        clean(repr(each))
        clean(str(each))


@pytest.mark.parametrize("wrong", [
    lambda study: study.add({"q": 1}, 1.0), lambda study: study.predict([{f"p{EVIL}": 3.0, "kind": "b"}]),
    lambda study: nr.Space(**{f"x{EVIL}": 3}), lambda study: study.tell(3, 1.0), lambda study: study.tell(EVIL, 1.0),
    lambda study: nr.Study.open(storage=study.storage, name=EVIL), lambda study: SqlStorage(EVIL),
])  # fmt: skip
def test_errors(study, wrong):
    with pytest.raises(nr.NoRegretError) as caught:
        wrong(study)
    clean(str(caught.value))


def test_warnings_problems_and_lines_of_the_log(capsys):
    with pytest.warns(NoRegretWarning) as caught:
        warnings.warn(NoRegretWarning(EVIL), stacklevel=1)
    clean(str(caught[0].message))
    clean(Problem(422, "invalid", EVIL).sentence)
    lines = logging.StreamHandler()
    lines.addFilter(_escape)
    log = logging.Logger("printable")
    log.addHandler(lines)
    try:
        raise ValueError(EVIL)
    except ValueError:
        log.exception("Study %s was left out", EVIL)
    said = clean(capsys.readouterr().err)
    assert "Traceback" in said
    assert "\\x1b" in said


@pytest.mark.parametrize("words", [
    ("show",), ("trials",), ("studies",), ("arms",), ("explain", 1), ("explain", 1, 2), ("tell", 0, 5), ("ask",),
    ("add", '{"x": 1}', 1), ("evaluate", "--policy", "uniform"), ("fail", 3, EVIL),
    ("rename", EVIL), ("describe-arm", 0, "--name", EVIL), ("retire-arm", 99), ("delete",),
])  # fmt: skip
def test_commands(study, words):
    named = [study.name] * (words[0] != "studies")
    result = CliRunner().invoke(main, [words[0], study.storage.url, *named, *map(str, words[1:])], input="n\n")
    clean(result.output)


def test_signals():
    study = nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.Matern(2.5, 0.5), noise=0.1))
    for _ in range(3):
        study.fail(study.ask(), f"because{EVIL}")
    (signal,) = signals_of(study, now=0.0)
    assert "because" in clean(signal.sentence)


def test_text_without_such_characters_stays():
    assert printable("two\nlines, ein Fluß, 東京 \U0001f39b") == "two\nlines, ein Fluß, 東京 \U0001f39b"


def test_commands_give_sigterm_back(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    (tmp_path / "a.toml").write_text("")
    within = []
    monkeypatch.setattr(common, "opened_study", lambda *_: within.append(signal.getsignal(signal.SIGTERM)))
    for words in (["tune", f"{tmp_path}/a.toml"], ["work", URL, "a", "b:c", "--trials", "1"], ["papers"],
                  ["serve", "--storage", f"{URL}", "--host", "1.2.3.4.5"]):  # fmt: skip
        CliRunner().invoke(main, words)
        assert signal.getsignal(signal.SIGTERM) is before
    assert within
    assert within[0] is not before
