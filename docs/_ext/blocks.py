"""Outputs under the code blocks: a page's blocks are run when the site is built, as the tests run them.

`python blocks.py page.md folder` runs the blocks of one page in a process and a working folder of its own. What each
block printed, and the pictures that it made, are inserted below it. A block that raises is a warning, which fails a
build with `-W`.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LONGEST = 40  # lines of printed text that are shown
VARYING = (  # Times, which are others in each run: what comes before them stays.
    r"(?m)(\d% {2,})[\d.e-]+$",  # The last column of a comparison.
    r"(first asked {2,}|last answer {2,}).+",
    r"(answers {2,}after ).+ at most",
)
OUTPUTS = "outputs"  # folder of pictures within the sources, ignored by git


def insert(app: Any, name: str, source: list[str]) -> None:
    """Inserts what the blocks of a page printed and drew below them."""
    from sphinx.util import logging

    path = Path(app.env.doc2path(name))
    if path.suffix != ".md" or "```python" not in source[0]:
        return
    key = hashlib.sha256((source[0] + _library()).encode()).hexdigest()[:16]
    kept = Path(app.doctreedir) / "blocks" / f"{key}.json"
    pictures = Path(app.srcdir) / OUTPUTS / name.replace("/", "-")
    if not kept.exists() or not pictures.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        pictures.mkdir(parents=True, exist_ok=True)
        for old in pictures.iterdir():
            old.unlink()
        run = subprocess.run(
            [sys.executable, __file__, str(path), str(pictures)],
            capture_output=True,
            text=True,
            env={**os.environ, "MPLBACKEND": "agg", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        if run.returncode:
            logging.getLogger(__name__).warning("a block failed:\n%s", run.stderr[-3000:], location=name)
            return
        kept.write_text(run.stdout.splitlines()[-1], encoding="utf-8")
    text = source[0]
    for end, printed, drawn in reversed(json.loads(kept.read_text(encoding="utf-8"))):
        text = (
            text[:end] + "".join(_shown(printed, [f"/{OUTPUTS}/{pictures.name}/{each}" for each in drawn])) + text[end:]
        )
    source[0] = text


def _shown(printed: str, drawn: list[str]) -> Iterator[str]:
    if printed.strip():
        lines = steady(printed).rstrip().splitlines()
        lines = lines if len(lines) <= LONGEST else [*lines[:LONGEST], "..."]
        yield "\n\n``````{code-block} text\n:class: output\n\n" + "\n".join(lines) + "\n``````\n"
    for picture in drawn:
        yield f"\n\n```{{image}} {picture}\n:alt: The picture that this block draws\n:class: output\n```\n"


def steady(text: str) -> str:
    """Returns printed text with dots in place of times."""
    for varying in VARYING:
        text = re.sub(varying, r"\1...", text)
    return text


def _library() -> str:
    """Returns a word that changes whenever a module of the library does."""
    import nilregret

    files = sorted(Path(nilregret.__file__).parent.rglob("*.py"))
    return str([(str(file), file.stat().st_mtime_ns) for file in files])


def main(page: Path, pictures: Path) -> None:
    """Runs the blocks of a page, and prints where each ends, what it printed and the files of its pictures."""
    from sybil import Sybil
    from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

    import nilregret as nr

    document = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()]).parse(page)
    outputs = []
    style = nr.plots.style("transparent") if hasattr(nr.plots, "style") else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder, style:
        os.chdir(folder)
        known: list[Any] = []
        for number, example in enumerate(document.examples()):
            before = {file.name for file in Path(folder).glob("*.png")}
            with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()):
                example.evaluate()
            drawn = []
            figures = list(_figures(example.namespace, known))
            for figure in figures:
                drawn.append(f"{number}-{len(drawn)}.png")
                figure.savefig(pictures / drawn[-1], dpi=110, bbox_inches="tight")
            written = sorted({file.name for file in Path(folder).glob("*.png")} - before)
            for name in [] if figures else written:
                drawn.append(f"{number}-{len(drawn)}.png")
                (pictures / drawn[-1]).write_bytes((Path(folder) / name).read_bytes())
            outputs.append((example.region.end, printed.getvalue(), drawn))
        os.chdir("/")
    print("\n" + json.dumps([output for output in outputs if output[1] or output[2]]))


def _figures(namespace: dict[str, Any], known: list[Any]) -> Iterator[Any]:
    """Yields the figures of matplotlib that no earlier block made."""
    if "matplotlib" not in sys.modules:
        return
    from matplotlib.figure import Figure

    figures = [value for value in namespace.values() if isinstance(value, Figure)]
    if "matplotlib.pyplot" in sys.modules:
        import matplotlib.pyplot as plt

        figures += [plt.figure(number) for number in plt.get_fignums()]
    for figure in figures:
        if all(figure is not one for one in known):
            known.append(figure)
            yield figure


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
