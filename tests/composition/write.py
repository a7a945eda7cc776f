"""Write the table of docs/measured/composition.md: `python -m tests.composition.write`."""

from pathlib import Path

from .fillings import table

PAGE = Path(__file__).parents[2] / "docs" / "measured" / "composition.md"
BEGIN, END = "<!-- table -->\n", "<!-- end of table -->\n"


def written(page: str) -> str:
    """The page with the table as it is now."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
