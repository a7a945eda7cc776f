"""Docstrings, comments and the user pages are plain English (tests/prose.py)."""

from collections import Counter

import pytest

from tests import prose

ROOMS = sorted(
    path.name
    for path in prose.SOURCE.iterdir()
    if path.is_dir() != (path.suffix == ".py") and path.name != "__pycache__"
)
PAGES = ["README.md", *(path.relative_to(prose.HOME).as_posix() for path in prose.files([str(prose.PAGES)]))]
NOT_YET_PLAIN = {  # user pages that still wait for a rewrite; whoever rewrites a page takes it out
    # start and reference
    "docs/gallery.md",
}


@pytest.mark.parametrize("page", sorted(set(PAGES) - NOT_YET_PLAIN))
def test_sentences_of_a_page(page):
    assert list(prose.findings(prose.HOME / page)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_docstrings_and_comments_of_a_room(room):
    found = [each for path in prose.files([str(prose.SOURCE / room)]) for each in prose.findings(path)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("# What is\n\nWhat is new stays.\nHow many? Trials; `a; b`.", ["opening", "semicolon"]),
        (f"A {'word ' * 25}[link](a.md) ends.\n\n```\n{'word ' * 26}\n```\n", ["long"]),
        (f"| a | {'word ' * 26} |\n|---|---|\n- {'word ' * 20}\n- {'word ' * 20}", ["long"]),
        (f"A $x; y$ {'`a b` ' * 22} sum:\n$$\nx; y\n$$\n{'word ' * 25}", []),
        ("The desk has a trial. So somebody waits.", ["private", "opening", "private"]),
    ],
)
def test_rules_of_pages_find_what_they_are_for(text, rules, tmp_path, monkeypatch):
    monkeypatch.setattr(prose, "HOME", tmp_path)
    (tmp_path / "a.md").write_text(text + "\n")
    assert Counter(each.rule for each in prose.findings(tmp_path / "a.md")) == Counter(rules)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ('def f():\n    """What is told."""', ["opening"]),
        ('def f():\n    """Take a trial."""', ["verb"]),
        ('def f():\n    """Returns a; then b."""', ["semicolon"]),
        (f'class A:\n    """A {"very " * 25}long sentence."""', ["long"]),
        (f"x = 1  # {'word ' * 26}", ["long"]),
        ('def f(a):\n    """Returns the trial.\n\n    Args:\n        a: the name; it counts.\n    """', ["semicolon"]),
        ('def f():\n    """Returns the trial, as eq. (7) of Verma et al. (2021) says."""', []),
    ],
)
def test_rules_find_what_they_are_for(text, rules, tmp_path, monkeypatch):
    monkeypatch.setattr(prose, "HOME", tmp_path)
    (tmp_path / "a.py").write_text(text + "\n")
    assert Counter(each.rule for each in prose.findings(tmp_path / "a.py")) == Counter(rules)
