"""Rules of plain English.

`python -m tests.prose src/nilregret/gp` lists the docstrings and comments of a room that break a rule.
`python -m tests.prose docs` lists the sentences of the user pages that do, and `docs/tune.md` those of one page.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HOME = Path(__file__).parent.parent
SOURCE = HOME / "src" / "nilregret"
PAGES = HOME / "docs"
LONGEST = 25  # words in a sentence
RIDDLES = frozenset(
    [
        "what",
        "whether",
        "who",
        "whose",
        "whom",
        "how",
        "of",
        "likewise",
        "as",
        "where",
        "when",
        "that",
        "which",
        "why",
        "to",
        "such",
        "those",
        "these",
        "it",
        "its",
        "some",
        "something",
        "somebody",
        "same",
        "from",
        "by",
        "in",
        "for",
        "with",
        "without",
        "if",
        "and",
        "or",
        "but",
        "not",
        "than",
        "there",
        "they",
        "theirs",
        "this",
        "until",
        "since",
        "on",
        "at",
        "under",
        "between",
        "beside",
        "before",
        "after",
        "so",
        "do",
        "does",
        "done",
        "had",
        "been",
        "was",
        "were",
    ]
)
NO_VERBS = frozenset(
    [
        "Points",
        "Rewards",
        "Bounds",
        "Trials",
        "Rows",
        "Values",
        "Words",
        "Names",
        "Arms",
        "Scores",
        "Rounds",
        "Means",
        "Columns",
        "Classes",
        "Parts",
        "Units",
        "Results",
        "Weights",
        "Draws",
        "Errors",
        "Numbers",
        "Settings",
        "Lines",
        "Fields",
        "Entries",
        "Answers",
        "Studies",
        "Kernels",
        "Parameters",
        "Features",
        "Samples",
        "Costs",
        "Prices",
        "Changes",
        "Tables",
        "Options",
        "Requests",
        "Decisions",
        "Figures",
        "Pages",
        "Seconds",
        "Posteriors",
        "Policies",
        "Indices",
        "Covariances",
        "Gradients",
        "Derivatives",
        "Coordinates",
        "Candidates",
        "Contexts",
        "Constraints",
        "Events",
        "Fits",
        "Hours",
        "Days",
        "Multipliers",
        "Eigenvalues",
        "Probabilities",
        "Quantiles",
        "Variances",
        "Deviations",
        "Is",
        "Has",
        "Was",
        "Us",
        "Thus",
        "Always",
        "Others",
        "Less",
        "Across",
        "Plus",
        "Minus",
        "Times",
        "Perhaps",
        "Besides",
        "Towards",
        "Afterwards",
    ]
)
OPENINGS = frozenset(  # of a sentence on a page, unless the sentence is a question
    [
        "what",
        "whatever",
        "whether",
        "who",
        "whoever",
        "whose",
        "whom",
        "how",
        "of",
        "likewise",
        "as",
        "so",
        "such",
        "nor",
        "nobody",
        "somebody",
        "something",
        "theirs",
        "than",
    ]
)
PRIVATE = re.compile(  # words of an earlier private language: each has a name that the field knows
    r"(?<![-\w])(desks?|clerks?|vaults?|gates?|ledgers?|tally|tallies|hears?|heard|nobody|somebody|worlds?)(?![-\w])",
    re.I,
)
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|al|cf|vs|[eE]qs?|Sec|App|Figs?|Thm|Lem|Cor|Prop|Ch|No|resp|approx)\.")
ITEM = re.compile(r"^(?:[-*] |\d+\. )(.*)$")
ARGUMENT = re.compile(r"^[`*]{0,2}[\w.*]+(?:, [\w.*]+)*[`]?(?: \([^)]*\))?: (.*)$")
SECTIONS = re.compile(r"^(Args|Returns|Raises|Yields|Attributes|Examples?|Notes?|References|Source):$")


class Finding(NamedTuple):
    """A broken rule.

    Attributes:
        place: file and line.
        name: qualified name of what is described; "#" for a comment.
        rule: the rule, in a word.
        words: the sentence or the opening.
        public: whether no part of the name begins with an underscore.
    """

    place: str
    name: str
    rule: str
    words: str
    public: bool


def sentences(text: str) -> Iterator[str]:
    """Yields the sentences of a docstring or a comment, without tables, code blocks and names of arguments."""
    text = re.sub(r"^\s*(```|\.\. ).*?(?:^\s*```|\n\s*\n|\Z)", "\n", text, flags=re.M | re.S)
    blocks: list[list[str]] = [[]]
    for raw in text.split("\n"):
        line = raw.strip()
        if not line or line.startswith(("|", ">>>", "...")) or SECTIONS.match(line):
            blocks.append([])
            continue
        entry = ITEM.match(line) or ARGUMENT.match(line)
        if entry:
            blocks.append([])
            line = entry[1]
        blocks[-1].append(line)
    for block in blocks:
        joined = re.sub(r"``?[^`]+``?", "X", " ".join(block))
        joined = ABBREVIATIONS.sub(lambda match: match[0].replace(".", ""), joined)
        yield from (part for part in re.split(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z`(\"'])", joined) if part.strip())


def blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and text of each paragraph, list item and table cell of a page, without code and formulas."""
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    text = re.sub(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", blank, text, flags=re.M | re.S)
    text = re.sub(r"\A---\n.*?^---$|<!--.*?-->|^\$\$.*?\$\$", blank, text, flags=re.M | re.S)
    text = re.sub(r"``?[^`]+``?|\$[^$\n]+\$", lambda match: "X" + blank(match), text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|<[^>\n]+>", lambda match: (match[1] or "") + blank(match), text)
    start, run = 1, list[str]()
    for number, raw in enumerate([*text.split("\n"), ""], 1):
        line = raw.strip().lstrip("> ")
        entry = ITEM.match(line)
        apart = not line or entry or line.startswith(("|", "#", ":::", "%")) or re.match(r":[\w-]+:", line)
        if apart and run:
            yield start, " ".join(run)
            run = []
        if line.startswith("|"):
            yield from ((number, cell.strip()) for cell in line.strip("|").split("|") if cell.strip(" -:"))
        elif not apart or entry:
            start = start if run else number
            run.append(entry[1] if entry else line)


def page(path: Path) -> Iterator[Finding]:
    """Yields the rules that the sentences of a page break."""
    for line, block in blocks(path.read_text(encoding="utf-8")):
        for sentence in sentences(block.replace("**", "")):
            found = Finding(f"{path.relative_to(HOME)}:{line}", "", "", sentence, True)
            first = re.match(r"[\W_]*([\w'-]+)", sentence)
            if length(sentence) > LONGEST:
                yield found._replace(rule="long")
            if ";" in sentence:
                yield found._replace(rule="semicolon")
            if first and first[1].istitle() and first[1].lower() in OPENINGS and not sentence.endswith("?"):
                yield found._replace(rule="opening")
            if PRIVATE.search(sentence):
                yield found._replace(rule="private")


def length(sentence: str) -> int:
    """Returns the number of words, without symbols and numbers."""
    return sum(bool(re.search(r"[A-Za-z]{2}|\b[aAIX]\b", word)) for word in sentence.split())


def opening(node: ast.AST, text: str) -> str | None:
    """Returns the rule that the first words of a docstring break, or None."""
    first = re.match(r"[`\"'(]*([\w'-]+)", text)
    word = first[1] if first else ""
    if word.lower() in RIDDLES:
        return "opening"
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    named = {each.id if isinstance(each, ast.Name) else getattr(each, "attr", "") for each in node.decorator_list}
    if named & {"property", "cached_property", "setter", "command", "group"} or node.name.startswith("__"):
        return None
    if any(isinstance(each, ast.Call) for each in node.decorator_list):  # a command shows its docstring
        return None
    return None if re.match(r"[A-Z][a-z]+s$", word) and word not in NO_VERBS else "verb"


def described(tree: ast.Module) -> Iterator[tuple[str, ast.AST, str, int]]:
    """Yields name, node, docstring and line of a module and of everything in it."""

    def below(node: ast.AST, name: str) -> Iterator[tuple[str, ast.AST, str, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                full = f"{name}.{child.name}".lstrip(".")
                text = ast.get_docstring(child)
                if text:
                    yield full, child, text, child.body[0].lineno
                yield from below(child, full)
            else:
                yield from below(child, name)

    text = ast.get_docstring(tree)
    if text:
        yield "", tree, text, 1
    yield from below(tree, "")


def comments(text: str) -> Iterator[tuple[int, str]]:
    """Yields line and words of each comment; lines that follow each other are one."""
    run: list[tuple[int, str]] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        words = token.string.lstrip("#: ").strip()
        if re.match(r"(noqa|type:|fmt:|pragma)", words) or words.startswith("--"):
            continue
        alone = token.line.strip().startswith("#")
        if run and alone and token.start[0] == run[-1][0] + 1:
            run.append((token.start[0], words))
            continue
        if run:
            yield run[0][0], " ".join(each for _, each in run)
        run = [(token.start[0], words)]
    if run:
        yield run[0][0], " ".join(each for _, each in run)


def findings(path: Path) -> Iterator[Finding]:
    """Yields the rules that a page, or the docstrings and comments of a file, break."""
    if path.suffix == ".md":
        yield from page(path)
        return
    text = path.read_text(encoding="utf-8")
    short = str(path.relative_to(HOME))
    for name, node, words, line in described(ast.parse(text)):
        parts = [part for part in f"{path.stem}.{name}".split(".") if part != "__init__"]
        place, public = f"{short}:{line}", not any(part.startswith("_") for part in parts)
        broken = opening(node, words)
        if broken:
            yield Finding(place, name, broken, words.split("\n")[0], public)
        for sentence in sentences(words):
            if length(sentence) > LONGEST:
                yield Finding(place, name, "long", sentence, public)
            if ";" in sentence:
                yield Finding(place, name, "semicolon", sentence, public)
    for line, words in comments(text):
        for sentence in sentences(words):
            if length(sentence) > LONGEST:
                yield Finding(f"{short}:{line}", "#", "long", sentence, False)


def files(places: list[str]) -> list[Path]:
    """Returns the Python files and pages in the places, or those of the whole package."""
    found = [Path(place).resolve() for place in places] or [SOURCE]
    kept = [
        [each] if each.is_file() else sorted([*(each.rglob("*.py") if each != PAGES else []), *each.glob("*.md")])
        for each in found
    ]
    return [path for paths in kept for path in paths]


if __name__ == "__main__":
    everything = [each for path in files(sys.argv[1:]) for each in findings(path)]
    for each in everything:
        print(f"{each.place} {each.name} [{each.rule}] {each.words[:150]}")
    print(len(everything), "findings,", sum(each.public for each in everything), "in public docstrings")
