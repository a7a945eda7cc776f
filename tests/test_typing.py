"""Type checkers accept the code of the README and the docs, and see the parameters of a study of a `Space`."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import nilregret

HOME = Path(__file__).parent.parent
PAGES = [HOME / "README.md", *sorted((HOME / "docs").glob("*.md"))]
BLOCK = re.compile(r"(<!--- skip: next.*?-->\s*)?^```python\n(.*?)^```", re.M | re.S)
MYPY = ["--ignore-missing-imports", "--follow-imports=silent", "--allow-redefinition-new", "--local-partial-types"]
REVEALED = """
import nilregret as nr
from nilregret.client import Client
from nilregret.environments import branin
from nilregret.errors import InvalidInput
from nilregret.plots import history
from nilregret.serialize import described

space = nr.Space(x=nr.Float(0, 1))
study = nr.Study(nr.auto(space))
reveal_type(study.ask().parameters)
reveal_type(nr.minimize(abs, space, trials=3).best_parameters)
reveal_type(nr.Study(nr.auto(nr.Box(0, 1))).ask().parameters)
nr.auto(space, world="drifting", answers="late")
nr.auto(space, world="drifitng")  # a wrong word
"""


def code_of(page):
    """Returns the code blocks of a page at the lines where they stand."""
    text, code = page.read_text(encoding="utf-8"), ""
    for match in BLOCK.finditer(text):
        if not match[1]:
            code += "\n" * (text[: match.start(2)].count("\n") - code.count("\n")) + match[2]
    return code


@pytest.fixture(name="pages", scope="module")
def pages_fixture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for page in PAGES:
        if code := code_of(page):
            (folder / f"{page.stem.lower().replace('-', '_')}_page.py").write_text(code)
    (folder / "revealed.py").write_text(REVEALED)
    return folder


def checked(folder, *command):
    """Returns what a type checker prints."""
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.nightly
def test_mypy_accepts_the_code_of_every_page(pages):
    said = checked(pages, "mypy", *MYPY, "--cache-dir", "cache", ".")
    errors = [line for line in said.splitlines() if ": error:" in line]
    assert [line for line in errors if "revealed.py" not in line] == []
    assert ["drifitng" in error for error in errors] == [True]
    revealed = re.findall(r"Revealed type is \"(.*?)\"", said)
    assert revealed == ["dict[str, Any]", "dict[str, Any]", "None"]


@pytest.mark.nightly
def test_pyright_accepts_the_code_of_every_page(pages):
    source = Path(nilregret.__file__).parents[1]
    (pages / "pyrightconfig.json").write_text(
        f'{{"include": ["."], "typeCheckingMode": "basic", "extraPaths": ["{source}"]}}'
    )
    said = checked(pages, "basedpyright", "--pythonpath", shutil.which(sys.executable) or sys.executable)
    errors = [line for line in said.splitlines() if " - error:" in line]
    assert [line for line in errors if "revealed.py" not in line] == []
    assert ["drifitng" in error for error in errors] == [True]
    revealed = re.findall(r"revealed.py.*Type of .* is \"(.*?)\"", said)
    assert revealed == ["dict[str, Any]", "dict[str, Any]", "None"]
