"""Pictures as data: panels of marks for three renderers.

`static` draws with matplotlib, `interactive` with plotly, and `page` writes JSON for the script of the dashboard. A
picture is described once, and all renderers draw the same marks, ticks and numbers. A colour is the name of a role
(`Theme.color`).
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any, final

from .._utils.checks import Array
from .._utils.dataclass import dataclass, field, replace

Color = str
Ticks = Sequence[tuple[float, str]]
LETTERS = 12.0  # Of a title on an inch.
FEWEST = 14  # Letters in a line of a panel's title, and of a name that is shortened.


@final
@dataclass(frozen=True, eq=False)
class Points:
    """Marks at n places.

    Attributes:
        x: `(n,)`.
        y: `(n,)`.
        color: role.
        label: in the legend, or "".
        shape: "o", "O" (an open circle), "x", "|", "*", "v", "^", "s" or "d".
        size: in points.
        opacity: one number, or `(n,)`.
        hover: text of each place for interactive pictures.
    """

    x: Any
    y: Any
    color: Color
    label: str = ""
    shape: str = "o"
    size: float = 4.0
    opacity: Any = 1.0
    hover: Sequence[str] = ()


@final
@dataclass(frozen=True, eq=False)
class Line:
    """A line through n places, or steps. It has a gap at NaN."""

    x: Any
    y: Any
    color: Color
    label: str = ""
    width: float = 1.6
    dashed: bool = False
    steps: bool = False
    opacity: float = 1.0
    hover: str = ""

    @property
    def is_rule(self) -> bool:
        """True if the line is dashed and straight, and holds no numbers to read."""
        return self.dashed and len(self.x) == 2


@final
@dataclass(frozen=True, eq=False)
class Band:
    """The area between two lines over x, `(n,)` each.

    Attributes:
        ends: lower and upper numbers that are read, if the area is a part of a band, `(n,)` each. None for the lines.
    """

    x: Any
    low: Any
    high: Any
    color: Color
    label: str = ""
    opacity: float = 0.2
    ends: tuple[Any, Any] | None = None


@final
@dataclass(frozen=True, eq=False)
class Boxes:
    """Rectangles from x0 to x1 and y0 to y1, `(n,)` each. None as y0 and y1 is the whole height.

    Attributes:
        ends: lower and upper numbers that are read in the middle of each, `(n,)` each, or None.
    """

    x0: Any
    x1: Any
    y0: Any
    y1: Any
    color: Color
    label: str = ""
    opacity: float = 1.0
    hatched: bool = False
    hover: Sequence[str] = ()
    ends: tuple[Any, Any] | None = None


@final
@dataclass(frozen=True, eq=False)
class Heat:
    """A value on a grid of cells.

    Attributes:
        x: edges, `(k + 1,)`.
        y: edges, `(m + 1,)`.
        z: `(m, k)`.
        label: of the scale.
        uncertain: True for the ramp of uncertainties.
        ticks: places and words of the scale, which the renderers' common part sets.
    """

    x: Array
    y: Array
    z: Array
    label: str
    uncertain: bool = False
    ticks: Ticks = ()


@final
@dataclass(frozen=True, eq=False)
class Words:
    """A short text at a place.

    Attributes:
        right: True if the text is to the right of the place, else to its left.
        above: True if the text is above the place, else below it.
        middle: True if the text is at the height of the place.
    """

    x: float
    y: float
    text: str
    color: Color = "text"
    right: bool = True
    above: bool = True
    middle: bool = False


Mark = Points | Line | Band | Boxes | Heat | Words


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Axis:
    """An axis of a panel.

    Attributes:
        label: beside it.
        limits: its ends, the lower one first, or None for the extent of the marks.
        log: True for a logarithmic axis.
        ticks: places and words, or None for round numbers.
        places: words of places for a readout, if they are not those of numbers.
        whole: True if ticks are whole numbers only.
        grid: True for lines across the panel at the ticks.
        steep: True if the words of the ticks are turned by a right angle.
    """

    label: str = ""
    limits: tuple[float, float] | None = None
    log: bool = False
    ticks: Ticks | None = None
    places: Ticks = ()
    whole: bool = False
    grid: bool = True
    steep: bool = False


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Panel:
    """A panel of a picture.

    Attributes:
        marks: from the lowest to the topmost.
        x: horizontal axis.
        y: vertical axis.
        title: above it, in one line or more.
        row: first row of the grid of the picture.
        column: first column.
        rows: number of rows.
        columns: number of columns.
        legend: True for a legend below the panel, of marks that have a label.
        framed: False for no frame.
    """

    marks: Sequence[Mark]
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    title: str = ""
    row: int = 0
    column: int = 0
    rows: int = 1
    columns: int = 1
    legend: bool = False
    framed: bool = True

    def at(self, row: int, column: int, rows: int | None = None, columns: int | None = None) -> Panel:
        """Returns the panel at another place of a grid."""
        return replace(self, row=row, column=column, rows=rows or self.rows, columns=columns or self.columns)


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class Picture:
    """Panels on a grid.

    Attributes:
        panels: of which each knows its place.
        heights: share of each row.
        widths: share of each column.
        size: width and height, inches.
        name: of the study, before the title. It is shortened where there is no room.
        title: above all panels, which is wrapped.
        legend: True for one legend of all panels below them.
    """

    panels: Sequence[Panel]
    heights: Sequence[float] = (1.0,)
    widths: Sequence[float] = (1.0,)
    size: tuple[float, float] = (6.4, 4.0)
    name: str = ""
    title: str = ""
    legend: bool = False

    @property
    def heading(self) -> str:
        """The name and the title, in lines that fit the width."""
        most = int(LETTERS * self.size[0])
        room = max(most - len(self.title) - 2, FEWEST) if self.title else most
        name = self.name if len(self.name) <= room else f"{self.name[: room - 1]}…"
        return fill(": ".join(part for part in (name, self.title) if part), most)
