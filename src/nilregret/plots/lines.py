"""Lines of several contenders: colours and dashes, sizes for papers, and labels at the ends of the lines."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._utils.checks import Array, number, one_of
from .base import new_figure, plain
from .scene import FEWEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# The colours of Okabe and Ito, which colour-blind people tell apart, the light ones last. "text" is that of words.
COLORS = ("#0072b2", "#d55e00", "#009e73", "text", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a7a")
# Each line has a dash of its own, so that a print in grey is read as well.
DASHES: tuple[Any, ...] = (
    "-", (0, (5, 1.6)), (0, (1, 1.1)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (9, 3)), (0, (1, 3)),
    (0, (2, 2)),
)  # fmt: skip
WIDTHS = {"column": 3.3, "page": 6.8}  # Inches, of one column and of all columns of a page.
PAPER = {
    "font.size": 8.0, "axes.titlesize": 8.0, "axes.labelsize": 8.0, "legend.fontsize": 7.5, "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "pdf.fonttype": 42, "ps.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "nilregret",
}  # fmt: skip  # TrueType fonts are embedded in PDF, and letters are outlines in SVG.
HANDLE, LETTER = 0.55, 0.058  # Inches of the line in a legend, and of a letter.
NARROWEST = 2.2  # Inches of a panel.
BESIDE = 0.65  # Inches of a panel beside its axes.
OF_A_POINT = 0.0082  # Inches of a letter, by the points of its font.
TICKS = (4, 6)  # Least and most intervals between the ticks of an axis.
GAP = 14.0  # Points between the end of a line and its label.
DATES: dict[str, dict[str, None]] = {".pdf": {"CreationDate": None}, ".svg": {"Date": None}}


class Line(NamedTuple):
    """A line of a contender.

    Attributes:
        name: label.
        x: `(n,)`.
        y: `(n,)`.
        band: lower and upper end, `(n,)` each, or None.
    """

    name: str
    x: Array
    y: Array
    band: tuple[Array, Array] | None = None


def paper_style() -> AbstractContextManager[None]:
    """Returns a context in which matplotlib draws and saves pictures for papers."""
    new_figure(1.0, 1.0)  # This raises the error that names the extra.
    from matplotlib import rc_context

    return rc_context(PAPER)  # type: ignore[arg-type]  # the stubs know each key's type


def inches(width: str | float) -> float:
    """Returns a width in inches: that of a column, of the page, or a number."""
    if isinstance(width, str):
        return WIDTHS[one_of("width", width, WIDTHS, why="It may also be a number of inches.")]
    return number("width", width, low=1.0, high=60.0, why="It is in inches.")


def save(figure: Figure, path: str | Path | None, *, dpi: float = 200) -> None:
    """Saves a picture in the format that the ending of the path names. The file holds no date."""
    if path is None:
        return
    with paper_style():
        figure.savefig(path, dpi=dpi, metadata=DATES.get(Path(path).suffix.lower()))


def grid(count: int, wide: float) -> tuple[int, int]:
    """Returns the rows and columns of panels, inches wide altogether. A column of a paper holds one beside none."""
    rows = -(-count // max(int(wide / NARROWEST), 1))
    return rows, -(-count // rows)


def fit_words(ax: Axes, wide: float, tall: float) -> None:
    """Wraps the words around a panel, inches wide and tall, and leaves few ticks, so that none runs into another."""
    from matplotlib.ticker import MaxNLocator

    for text, long in ((ax.title, wide), (ax.xaxis.label, wide), (ax.yaxis.label, tall)):
        most, given = letters(long - BESIDE, float(text.get_fontsize())), text.get_text().split("\n")
        if "$" not in text.get_text().replace(r"\$", ""):  # A formula is not broken.
            text.set_text("\n".join(fill(line, most) for line in given))
    for axis, room in ((ax.xaxis, 1.6 * wide), (ax.yaxis, 2.4 * tall)):
        if isinstance(axis.get_major_locator(), MaxNLocator):
            axis.get_major_locator().set_params(nbins=int(np.clip(room, *TICKS)))  # type: ignore[call-arg]


def letters(inches: float, size: float) -> int:
    """Returns the number of letters of a size in points that fit into a line, at least a few."""
    return max(int(inches / (OF_A_POINT * size)), FEWEST)


def color_of(i: int) -> str:
    """Returns the colour of line i, which the background of the style in force does not hide."""
    from matplotlib import rcParams

    color = COLORS[i % len(COLORS)]
    return str(rcParams["text.color"]) if color == "text" else color


def draw_lines(ax: Axes, lines: Sequence[Line], place: dict[str, int], *, step: bool = False) -> list[Line2D]:
    """Adds lines with their bands, and returns them. A name has one colour and one dash in all panels."""
    drawn: list[Line2D] = []
    for line in lines:
        i = place[line.name]
        color, dash = color_of(i), DASHES[i % len(DASHES)]
        style: dict[str, Any] = {"color": color, "ls": dash, "lw": 1.4, "label": plain(line.name)}
        style |= {"marker": "o", "ms": 4} if len(line.x) == 1 else {}
        drawn += ax.plot(line.x, line.y, drawstyle="steps-post" if step else "default", **style)
        if line.band is not None:
            ax.fill_between(line.x, *line.band, color=color, alpha=0.15, lw=0, step="post" if step else None)
    return drawn


def name_lines(figure: Figure, panels: Sequence[tuple[Axes, Sequence[Line2D]]], *, direct: bool) -> None:
    """Writes the names of several lines, at their ends or in a legend below all panels."""
    handles = {str(line.get_label()): line for _, lines in panels for line in lines}
    if len(handles) > 1 and direct:
        label_ends(figure, panels)
    elif len(handles) > 1:
        columns = legend_columns(list(handles), figure.get_figwidth())
        figure.legend(
            handles=list(handles.values()), loc="outside lower center", frameon=False, ncols=columns, handlelength=2.6
        )


def legend_columns(names: Sequence[str], width: float) -> int:
    """Returns the number of columns of a legend that is as wide as the picture, inches."""
    wide = [HANDLE + LETTER * len(name) for name in names]
    fits = (n for n in range(len(wide), 1, -1) if sum(map(max, np.array_split(wide, n))) <= width)
    return next(fits, 1)


def label_ends(figure: Figure, panels: Sequence[tuple[Axes, Sequence[Line2D]]]) -> None:
    """Writes the name of each line to the right of its end. Labels that would overlap are moved apart."""
    figure.draw_without_rendering()
    notes = [
        [_note(ax, line, _end(ax, line), 0.0) for line in lines] for ax, lines in panels
    ]  # First in their places, so that the layout makes room.
    figure.draw_without_rendering()
    scale = 72.0 / figure.dpi
    for (ax, lines), texts in zip(panels, notes, strict=True):
        heights = [1.08 * scale * float(text.get_window_extent().height) for text in texts]
        for text in texts:
            text.remove()
        axis = scale * float(ax.bbox.height)
        ends = np.array([_end(ax, line) for line in lines])
        middles = apart(ends * axis, max(heights), axis)
        for line, end, middle in zip(lines, ends, middles, strict=True):
            _note(ax, line, float(end), float(middle - end * axis))


def _end(ax: Axes, line: Line2D) -> float:
    """Returns the height at which a line ends, as a share of the axis."""
    x, y = np.asarray(line.get_xdata(), dtype=np.float64), np.asarray(line.get_ydata(), dtype=np.float64)
    seen = np.flatnonzero(np.isfinite(y))
    if not len(seen):
        return 0.0
    at = ax.transAxes.inverted().transform(ax.transData.transform((x[seen[-1]], y[seen[-1]])))[1]
    return float(np.clip(at, 0.0, 1.0)) if np.isfinite(at) else 0.0


def _note(ax: Axes, line: Line2D, end: float, shift: float) -> Any:
    """Writes a label with a line of the same colour and dash from the end of the line to it."""
    arrow = {
        "arrowstyle": "-",
        "color": line.get_color(),
        "lw": 1.0,
        "shrinkA": 1.5,
        "shrinkB": 0.5,
        "relpos": (0, 0.5),
    }
    return ax.annotate(
        str(line.get_label()), (1.0, end), xycoords="axes fraction", xytext=(GAP, shift), textcoords="offset points",
        verticalalignment="center", fontsize=PAPER["legend.fontsize"], arrowprops=arrow, annotation_clip=False,
    )  # fmt: skip


def apart(wanted: Array, distance: float, height: float) -> Array:
    """Returns the places nearest to the wanted ones, in the same order, at a distance and within [0, height].

    If there is no room for all, they continue below and above the axis.

    Args:
        wanted: `(n,)`.
        distance: least distance between places.
        height: of the axis.
    """
    from scipy.optimize import isotonic_regression

    order = np.argsort(wanted, kind="stable")
    steps = distance * np.arange(len(wanted))
    slack = height - steps[-1]
    low, high = (0.0, slack) if slack >= 0.0 else (slack / 2.0, slack / 2.0)
    places = np.empty(len(wanted))
    places[order] = np.clip(isotonic_regression(wanted[order] - steps).x, low, high) + steps
    return places
