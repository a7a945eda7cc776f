"""Pictures drawn with matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from .base import Theme, new_figure, plain, theme
from .lines import legend_columns
from .scene import FEWEST, LETTERS, Axis, Band, Boxes, Heat, Line, Panel, Picture, Points, Words
from .ticks import ticked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SMALL, DPI = 8.0, 150
MOST_COLUMNS = 5  # Of a legend.
TICK_LETTERS = 13.0  # Of the name of a place on an inch.
BESIDE = 0.6  # Inches of a panel beside its axes.


def static_figure(picture: Picture, path: str | Path | None) -> Figure:
    """Returns matplotlib's figure of a picture, and saves it if there is a path."""
    look = theme()
    figure = new_figure(*picture.size)
    figure.set_facecolor(look.surface)
    grid = figure.add_gridspec(
        len(picture.heights), len(picture.widths), height_ratios=picture.heights, width_ratios=picture.widths
    )
    room = picture.size[0] - _beside(picture)
    for panel in map(ticked, picture.panels):
        rows, columns = slice(panel.row, panel.row + panel.rows), slice(panel.column, panel.column + panel.columns)
        share = sum(picture.widths[columns]) / sum(picture.widths)
        _draw_panel(figure.add_subplot(grid[rows, columns]), panel, look, room * share)
    if picture.heading:
        figure.suptitle(plain(picture.heading), fontsize=10, x=0.01, horizontalalignment="left", color=look.text)
    if picture.legend:
        named: dict[str, Any] = {}
        for ax in figure.axes:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                named.setdefault(label, handle)
        figure.legend(
            list(named.values()), list(named), loc="outside lower center", fontsize=SMALL, frameon=False,
            labelcolor=look.text, ncols=min(legend_columns(list(named), picture.size[0]), MOST_COLUMNS),
        )  # fmt: skip
    if path is not None:
        figure.savefig(path, dpi=DPI, facecolor=look.surface)
    return figure


def _beside(picture: Picture) -> float:
    """Returns the inches of a picture that are beside its axes: names of places, numbers and labels."""
    names = dict.fromkeys(range(len(picture.widths)), 0.0)
    for panel in picture.panels:
        letters = max((len(line) for _, words in panel.y.ticks or () for line in words.split("\n")), default=0)
        names[panel.column] = max(names[panel.column], letters / TICK_LETTERS)
    return sum(names.values()) + BESIDE * len({panel.column for panel in picture.panels})


def _wrapped(title: str, inches: float) -> str:
    """Returns the title of a panel, each line wrapped to a width."""
    most = max(int(LETTERS * inches), FEWEST)
    return "\n".join(fill(line, most) for line in title.split("\n"))


def _draw_panel(ax: Axes, panel: Panel, look: Theme, inches: float) -> None:
    ax.set_facecolor(look.surface)
    _set_axis(ax, "x", panel.x, look)
    _set_axis(ax, "y", panel.y, look)
    for mark in panel.marks:
        _DRAW[type(mark)](mark, ax, look)
    if panel.title:
        ax.set_title(plain(_wrapped(panel.title, inches)), fontsize=9.5, loc="left", color=look.text)
    for side, spine in ax.spines.items():
        spine.set_visible(panel.framed and side in ("left", "bottom"))
        spine.set_color(look.text)
    if panel.legend:
        ax.legend(fontsize=SMALL, frameon=False, labelcolor=look.text, handlelength=1.5)


def _set_axis(ax: Axes, name: Literal["x", "y"], axis: Axis, look: Theme) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator

    of = ax.xaxis if name == "x" else ax.yaxis
    if axis.log:
        (ax.set_xscale if name == "x" else ax.set_yscale)("log")
    of.set_label_text(plain(axis.label), fontsize=9, color=look.text)
    if axis.limits is not None:
        (ax.set_xlim if name == "x" else ax.set_ylim)(*axis.limits)
    ticks = axis.ticks or ()
    of.set_major_locator(FixedLocator([at for at, _ in ticks]))
    of.set_ticklabels([plain(words) for _, words in ticks], rotation=90 if axis.steep else 0)
    of.set_minor_locator(NullLocator())
    ax.tick_params(axis=name, which="both", labelsize=SMALL, colors=look.text, length=3 if ticks else 0)
    if axis.grid:
        ax.grid(axis=name, color=look.faint, lw=0.6)
        ax.set_axisbelow(True)


def _points(mark: Points, ax: Axes, look: Theme) -> None:
    from matplotlib.colors import to_rgba_array

    color: Any = look.color(mark.color)
    edge: dict[str, Any] = {"color": color, "alpha": mark.opacity, "linewidths": 1.2 if mark.shape in "x|" else 0.0}
    if mark.shape == "*":
        edge |= {"linewidths": 0.6, "edgecolors": look.surface if look.surface != "none" else "white"}
    if mark.shape == "O":  # Matplotlib takes no opacity of each mark for marks without a face.
        edge = {"facecolors": "none", "edgecolors": to_rgba_array(color, mark.opacity), "linewidths": 1.2}
    ax.scatter(
        mark.x, mark.y, s=mark.size**2, marker=mark.shape.lower(), label=plain(mark.label) or None, zorder=3,
        clip_on=mark.shape not in "|v^*", **edge,
    )  # fmt: skip


def _line(mark: Line, ax: Axes, look: Theme) -> None:
    ax.plot(
        mark.x, mark.y, color=look.color(mark.color), lw=mark.width, ls="--" if mark.dashed else "-",
        label=plain(mark.label) or None, drawstyle="steps-post" if mark.steps else "default", alpha=mark.opacity,
    )  # fmt: skip


def _band(mark: Band, ax: Axes, look: Theme) -> None:
    color, label = look.color(mark.color), plain(mark.label) or None
    ax.fill_between(mark.x, mark.low, mark.high, color=color, alpha=mark.opacity, lw=0, label=label)


def _boxes(mark: Boxes, ax: Axes, look: Theme) -> None:
    from matplotlib.collections import PolyCollection

    low, high = ax.get_ylim() if mark.y0 is None else (mark.y0, mark.y1)
    color = look.color(mark.color)
    sides = np.broadcast_arrays(*(np.asarray(side, dtype=np.float64) for side in (mark.x0, mark.x1, low, high)))
    corners = [[(a, c), (b, c), (b, d), (a, d)] for a, b, c, d in zip(*(side.ravel() for side in sides), strict=True)]
    face: dict[str, Any] = {"facecolor": color, "lw": 0.0}
    if mark.hatched:
        face = {"facecolor": "none", "edgecolor": color, "hatch": "////", "lw": 0.0}
    drawn = PolyCollection(corners, alpha=mark.opacity, label=plain(mark.label) or None, zorder=1.5, **face)
    ax.add_collection(drawn, autolim=mark.y0 is not None)
    ax.autoscale_view()


def _heat(mark: Heat, ax: Axes, look: Theme) -> None:
    drawn = ax.pcolormesh(mark.x, mark.y, mark.z, cmap="cividis" if mark.uncertain else look.ramp, rasterized=True)
    bar = drawn.axes.figure.colorbar(drawn, ax=ax, pad=0.02)  # type: ignore[union-attr]
    bar.set_ticks([at for at, _ in mark.ticks], labels=[plain(words) for _, words in mark.ticks])
    bar.minorticks_off()
    bar.set_label(plain(mark.label), fontsize=SMALL, color=look.text)
    bar.ax.tick_params(labelsize=SMALL, colors=look.text)
    bar.outline.set_visible(False)


def _words(mark: Words, ax: Axes, look: Theme) -> None:
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=2.5, foreground=look.surface)] if look.surface != "none" else []
    ax.annotate(
        plain(mark.text), (mark.x, mark.y),
        xytext=(6 if mark.right else -6, 0 if mark.middle else 5 if mark.above else -5),
        textcoords="offset points", fontsize=SMALL, color=look.color(mark.color), path_effects=halo, zorder=5,
        horizontalalignment="left" if mark.right else "right",
        verticalalignment="center" if mark.middle else "bottom" if mark.above else "top",
    )  # fmt: skip


_DRAW: dict[type, Callable[[Any, Any, Theme], None]] = {
    Points: _points, Line: _line, Band: _band, Boxes: _boxes, Heat: _heat, Words: _words,
}  # fmt: skip
