"""Pages of the documentation: what they point to is there, and nothing is left to be filled in."""

import inspect
import os
import pkgutil
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import nilregret
from nilregret import slots, testing

HOME = Path(__file__).parent.parent
DOCS = HOME / "docs"
PAGES = sorted([HOME / "README.md", HOME / "CONTRIBUTING.md", HOME / "CHANGELOG.md", *HOME.glob("docs/**/*.md")])
LINK = re.compile(r"!?\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
LEFT_OPEN = re.compile(r"^[\s|*_-]*[A-Z]{4,}[\s|*_.-]*$|\b(?:TODO|FIXME|TBD|XXX)\b", re.M)


def prose(text):
    """A page without its code, in which brackets are no links and words in capitals no gaps."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^(```+|~~~+).*?^\1", "", text, flags=re.M | re.S))


@cache
def anchors(page):
    """Of a page's headings, as GitHub makes them."""
    headings = re.findall(
        r"^#+ (.*)$", re.sub(r"^(```+).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.M | re.S), re.M
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page, text):
    """Relative links of a page that lead nowhere."""
    wrong = []
    for target in LINK.findall(prose(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(HOME)))
def test_links_lead_somewhere_and_nothing_is_left_open(page):
    text = page.read_text(encoding="utf-8")
    assert broken(page, text) == []
    assert LEFT_OPEN.findall(prose(text)) == []


def test_what_these_tests_would_find():
    page = HOME / "docs" / "tune.md"
    text = "[a](nowhere.md), ![b](../pictures/none.png), [c](studies.md), [d](https://x.org), [e](#nothing-here)"
    assert broken(page, text) == ["nowhere.md", "../pictures/none.png", "#nothing-here"]
    for gap in ("TABLE", "| TABLE |", "so far. TODO: more", "OPTIMUM"):
        assert LEFT_OPEN.search(prose(f"before\n\n{gap}\n\nafter"))
    assert not LEFT_OPEN.search(prose("A TABLE of GP-UCB\n\n```\nTABLE\n```\n`TODO`"))


def test_the_reference_lists_every_public_name_once():
    text = (HOME / "docs" / "reference.md").read_text()
    names = re.findall(r"^\.\. auto\w+:: (nilregret(?:\.\S+)?)\.(\w+)$", text, re.M)
    listed = [getattr(pkgutil.resolve_name(place), name) for place, name in names]
    for module in (nilregret, nilregret.algorithms, nilregret.plots, slots, testing):
        public = [getattr(module, name) for name in module.__all__]
        missing = [
            each for each in public if not isinstance(each, ModuleType) and sum(each is one for one in listed) != 1
        ]
        assert missing == []


@pytest.mark.parametrize("room", [nilregret.theory, nilregret.storage], ids=["theory", "storage"])
def test_every_public_name_shows_an_example(room):
    assert [name for name in room.__all__ if ">>> " not in getattr(room, name).__doc__] == []


def test_what_decided_a_part_of_auto_is_on_the_page_that_its_table_names():
    rows = re.findall(r"^\| .+\|$", inspect.cleandoc(nilregret.auto.__doc__), re.M)
    named = [name for row in rows for name in re.findall(r'"([A-Z][a-z ]+)"', row.split("|")[-2])]
    assert len(named) >= 8
    page = (HOME / "docs" / "choosing.md").read_text(encoding="utf-8")
    section = page.split("\n## What `auto` is made of")[1].split("\n## ")[0]
    assert re.findall(r"^### (.+)$", section, re.M) == named


def contents(page="index"):
    """Pages in the table of contents below a page; each table of contents has at most eight entries of its own."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    for toctree in re.findall(r"^```{toctree}\n(.*?)^```", text, re.M | re.S):
        entries = toctree.split("\n\n", 1)[1].split()
        assert len(entries) <= 8, page
        for entry in entries:
            path = os.path.normpath(Path(page).parent / entry)
            found = [str(each.relative_to(DOCS).with_suffix("")) for each in sorted(DOCS.glob(f"{path}.md"))]
            for name in found or [path]:  # what has no page in the repository is generated
                if name != page:
                    yield name
                    yield from contents(name) if found else ()


def test_every_page_is_in_the_table_of_contents_and_every_picture_in_the_gallery():
    pages = {str(page.relative_to(HOME / "docs").with_suffix("")) for page in HOME.glob("docs/**/*.md")} - {"index"}
    generated = {"learn/index"}  # the tutorials
    assert sorted(contents()) == sorted(pages | generated)
    shown = set(re.findall(r"\(pictures/([\w.-]+)\)", (HOME / "docs" / "gallery.md").read_text()))
    assert shown == {picture.name for picture in HOME.glob("docs/pictures/*.*g")}
