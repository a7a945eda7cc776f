"""Pictures of figures: panels of lines and box plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from .._utils.checks import Array
from .._utils.files import check_picture
from .._utils.numerals import numeral
from ..study.curves import Boxes, Curves, Panel
from .base import new_figure, plain
from .lines import BESIDE, fit_words, grid, inches, legend_columns, letters, paper_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_IN_A_ROW = 4
COLORS = ("#00798c", "#d1495b", "#e09f3e", "#b9a7d3", "#1b1b2f", "#7a8793", "#8ab17d", "#b56576")
# Lines differ in grey and where they coincide: the fourth is broad and below the others, which stay visible on it.
STYLES = ("-", "--", "-.", "-", (0, (3, 4)))
WIDTHS = (1.6, 1.6, 1.6, 3.0, 1.6)
FEW = 12  # Points of a panel that each get a tick.
FEWEST = 3  # Replicates from which a band is drawn: of two it says next to nothing.
BANDS = {"error": "shaded: ±2 standard errors", "deviation": "shaded: ±1 standard deviation", "none": None}


def panels(
    shown: Sequence[Panel], path: str | Path, *, title: str = "", note: str = "", width: str | None = None
) -> None:
    """Saves a picture of panels side by side, more than four in two rows. A name has one colour in all panels.

    Args:
        shown: from left to right, then from top to bottom.
        path: of the PNG, SVG or PDF.
        title: above all panels.
        note: a small line below them.
        width: "column" or "page" for a paper, whose caption says title and note. The default is a picture for a screen.
    """
    check_picture(path)
    if width is not None:
        with paper_style():
            _panels(shown, path, inches(width))
        return
    rows = 1 if len(shown) <= MOST_IN_A_ROW else 2
    columns = -(-len(shown) // rows)
    figure = new_figure(2.2 + 4.2 * columns, 3.7 * rows + (0.2 if note else 0.0))
    axes = _drawn(figure, shown, rows, columns, cell=(4.2, 3.7), title_size=10.0)
    _legend(figure, axes, shown, {"fontsize": 8, "title_fontsize": 7, "loc": "outside right center"})
    figure.suptitle(plain(title), fontsize=11, x=0.01, horizontalalignment="left")
    if note:
        figure.supxlabel(note, fontsize=8, color="0.35", x=0.01, horizontalalignment="left")
    save(figure, path, dpi=90)


def _panels(shown: Sequence[Panel], path: str | Path, wide: float) -> None:
    """Saves the picture of a paper, inches wide, with the legend below its panels."""
    rows, columns = grid(len(shown), wide)
    names = list(dict.fromkeys(name for panel in shown if isinstance(panel, Curves) for name in panel.lines))
    in_legend = legend_columns(names, wide)
    across = wide / columns
    tall = min(max((0.75 if rows == 1 else 0.55) * across, 1.6), 3.0)
    figure = new_figure(wide, rows * tall + 0.16 * (-(-len(names) // in_legend) + 1))
    axes = _drawn(figure, shown, rows, columns, cell=(across, tall), title_size=8.0)
    _legend(figure, axes, shown, {"loc": "outside lower center", "ncols": in_legend, "handlelength": 2.6})
    save(figure, path, dpi=200)


def _drawn(
    figure: Figure, shown: Sequence[Panel], rows: int, columns: int, *, cell: tuple[float, float], title_size: float
) -> Any:
    """Returns the axes of the panels, which it draws, each in a cell of some inches."""
    axes: Any = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    axes = axes[: len(shown)]
    names = dict.fromkeys(
        name for panel in shown for name in (panel.lines if isinstance(panel, Curves) else _colored(panel))
    )
    place = {name: i for i, name in enumerate(names)}
    room = letters(cell[0] - BESIDE, title_size)  # Of the names of places.
    for ax, panel in zip(axes, shown, strict=True):
        if isinstance(panel, Curves):
            _draw_curves(ax, panel, place, room)
        else:
            _draw_boxes(ax, panel, place, room)
        ax.set(ylabel=panel.y_label)
        ax.set_title(plain(panel.title), fontsize=title_size)
        fit_words(ax, *cell)
        ax.grid(alpha=0.25, lw=0.6)
    return axes


def _legend(figure: Figure, axes: Any, shown: Sequence[Panel], style: dict[str, Any]) -> None:
    """Adds one legend of all lines outside of the panels, where it hides none."""
    lines = [panel for panel in shown if isinstance(panel, Curves)]
    named = {name: line for ax in axes for line, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    if named:
        title = _band_in_words(lines)
        figure.legend(named.values(), named, title=title, alignment="left", frameon=False, **style)


def _band(panel: Curves, name: str) -> Array | None:
    """Returns half the height of the band around a line, `(n,)`, or None with too few replicates."""
    return panel.spread(name) if len(panel.lines[name]) >= FEWEST and panel.band != "none" else None


def _band_in_words(panels: Sequence[Curves]) -> str | None:
    drawn = any(_band(panel, name) is not None for panel in panels for name in panel.lines)
    return BANDS[panels[0].band] if drawn else None


def _draw_curves(ax: Axes, panel: Curves, place: dict[str, int], room: int) -> None:
    for name in panel.lines:
        i, mean, spread = place[name], panel.mean(name), _band(panel, name)
        color, style, width = COLORS[i % len(COLORS)], STYLES[i % len(STYLES)], WIDTHS[i % len(STYLES)]
        marks: dict[str, Any] = {"marker": "o", "ms": 3} if panel.marks else {}
        below = 1.9 if width > min(WIDTHS) else 2.0  # The place among the layers of the picture.
        ax.plot(panel.x, mean, color=color, ls=style, lw=width, label=plain(name), zorder=below, **marks)
        if spread is not None and spread.any():
            ax.fill_between(panel.x, mean - spread, mean + spread, color=color, alpha=0.12, lw=0)
    if "x" in panel.log:
        ax.set_xscale("log")
    if "y" in panel.log:
        ax.set_yscale("log")
        _above_the_lowest_mean(ax, panel)
    else:
        ax.set_ylim(bottom=None if min(panel.mean(name).min() for name in panel.lines) < 0.0 else 0.0)
    ax.set_xlim(float(panel.x[0]), float(panel.x[-1]))
    ax.set_xlabel(panel.x_label)
    if panel.log and panel.marks and len(panel.x) <= FEW:
        _plain_ticks(ax, panel, room)
    if "x" not in panel.log:
        ax.xaxis.get_major_locator().set_params(integer=len(panel.x) <= 60)  # type: ignore[call-arg]


def _above_the_lowest_mean(ax: Axes, panel: Curves) -> None:
    """Cuts a logarithmic axis below the lowest mean: a band below zero would stretch it without end."""
    means = np.concatenate([panel.mean(name) for name in panel.lines])
    if (means > 0.0).any() and panel.band != "none":
        ax.set_ylim(bottom=0.8 * means[means > 0.0].min())


def _plain_ticks(ax: Axes, panel: Curves, room: int) -> None:
    """Writes plain numbers on short logarithmic axes, where matplotlib would write 6 x 10^2."""
    from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

    if "x" in panel.log:
        _name_places(ax, panel.x, [numeral(x) for x in panel.x], room)
        ax.xaxis.set_minor_locator(NullLocator())
    low, high = ax.get_ylim()
    if "y" in panel.log and high < 10.0 * low:
        ax.yaxis.set_major_locator(MaxNLocator(6))
        ax.yaxis.set_major_formatter(ScalarFormatter())
        ax.yaxis.set_minor_locator(NullLocator())


def _name_places(ax: Axes, places: Any, names: Sequence[str], room: int) -> None:
    """Writes as many names of places below the axis as there is room for, in letters."""
    every = -(-len(names) * (max(map(len, names)) + 2) // room)
    ax.set_xticks(places[every - 1 :: every], names[every - 1 :: every])


def _colored(panel: Boxes) -> list[str]:
    """Returns the names that have a colour: each box, or the title if the boxes are along an axis."""
    return [panel.title] if panel.x_label else list(panel.boxes)


def _draw_boxes(ax: Axes, panel: Boxes, place: dict[str, int], room: int) -> None:
    drawn = ax.boxplot(list(panel.boxes.values()), widths=0.6, patch_artist=True, medianprops={"color": "black"})
    for box, name in zip(drawn["boxes"], panel.boxes, strict=True):
        box.set_facecolor(COLORS[place[panel.title if panel.x_label else name] % len(COLORS)])
        box.set_alpha(0.6)
    if panel.x_label:
        _name_places(ax, range(1, len(panel.boxes) + 1), list(panel.boxes), room)
    else:
        ax.set_xticklabels([fill(name, max(room // len(panel.boxes), 1)) for name in panel.boxes])
    ax.set_xlabel(panel.x_label)
    if "y" in panel.log:
        ax.set_yscale("log")
