"""The reference: a page for each public class and function, from the one list in `reference.md`."""

import inspect
import pkgutil
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = "api"  # within the sources, ignored by git
BLOCK = re.compile(r"^```{eval-rst}\n(.*?)^```\n", re.M | re.S)
ENTRY = re.compile(r"^\.\. auto\w+:: (nilregret\.\S+)\n(?: .*\n)*", re.M)


def shown(name: str) -> str:
    """Returns a public name as users write it after `import nilregret as nr`."""
    parts = name.split(".")
    short = len(parts) == 2 or (len(parts) == 3 and parts[1] != "integrations")
    return ".".join(["nr", *parts[1:]]) if short else name


def names(text: str) -> list[str]:
    """Returns the public names that the list has."""
    return ENTRY.findall(text)


def groups(text: str) -> Iterator[tuple[str, str, str]]:
    """Yields title, page and list of each group."""
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, rest = part.partition("\n")
        yield title, re.sub(r"\W+", "-", title.lower()), rest


def first_sentence(name: str) -> str:
    """Returns the first sentence of the docstring of a public name."""
    text = (inspect.getdoc(pkgutil.resolve_name(name)) or "").split("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<![ (]al)(?<![ (]eq)(?<![ (]e\.g)\. ", text)[0].rstrip(".")
    return re.sub(r"([|*])", r"\\\1", sentence) + "."


def write(app: Any) -> None:
    """Writes the pages of the groups and of the names; what did not change stays as it is."""
    folder = Path(app.srcdir) / FOLDER
    pages: dict[str, str] = {}
    for title, page, text in groups((Path(app.srcdir) / "reference.md").read_text(encoding="utf-8")):
        lines = [title, "=" * len(title), "", ".. toctree::", "   :hidden:", ""]
        lines += [f"   {shown(name)} <{name}>" for name in names(text)]
        for heading, block in re.findall(r"^### ([^\n]*)$|^```{eval-rst}\n(.*?)^```\n", text, re.M | re.S):
            if heading:
                lines += ["", heading, "-" * len(heading)]
                continue
            lines += ["", ".. list-table::", "   :class: names", ""]
            for name in names(block):
                lines += [f"   * - :doc:`{shown(name)} <{name}>`", f"     - {first_sentence(name)}"]
        pages[page] = "\n".join(lines)
        for entry in ENTRY.finditer(text):
            title = shown(entry[1])
            pages[entry[1]] = f"{title}\n{'=' * len(title)}\n\n{entry[0]}"
    if folder.exists() and {file.stem for file in folder.glob("*.rst")} - set(pages):
        shutil.rmtree(folder)
    folder.mkdir(exist_ok=True)
    for page, text in pages.items():
        file = folder / f"{page}.rst"
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")


def index(text: str) -> str:
    """Returns the page `reference` with links in place of its list."""

    def links(block: re.Match[str]) -> str:
        return " ·\n".join(f"[`{shown(name)}`]({FOLDER}/{name}.rst)" for name in names(block[0])) + "\n"

    pages = "\n".join(f"{FOLDER}/{page}" for _, page, _ in groups(text))
    for title, page, _ in groups(text):
        text = text.replace(f"\n## {title}\n", f"\n## [{title}]({FOLDER}/{page}.rst)\n")
    return BLOCK.sub(links, text) + f"\n```{{toctree}}\n:hidden:\n\n{pages}\n```\n"
