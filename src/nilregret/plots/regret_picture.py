"""Picture of the regret of contenders, legible also where one of them dwarfs the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np

from .._utils.checks import Array, one_of, shown
from .._utils.files import check_picture
from ..errors import InvalidInput
from ..study.curves import half_interval
from .base import new_figure, plain
from .lines import LETTER, Line, draw_lines, fit_words, grid, inches, legend_columns, name_lines, paper_style, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Kind = Literal["cumulative", "simple", "average"]
Scale = Literal["auto", "linear", "log", "inset"]
MOST_POINTS = 300  # Of a line.
DWARFED = 5.0  # The largest line is this much above the middle of the others.
DECADES = 1e-4  # A logarithmic axis shows no more below its top.
MOST_WITH_LABELS = 2  # Panels.
LABEL_HEIGHT = 0.16  # Inches of a label.
LABEL_SHARE = 0.36  # The most that labels may take of the width of a panel.
KINDS = {"cumulative": "cumulative regret", "simple": "simple regret", "average": "average regret"}


class HasRegret(Protocol):
    """A run with its regret, as `simulate` and `replicate` return it."""

    @property
    def cumulative_regret(self) -> Array:
        """The sum of the regret up to each round, `(T,)` or `(seeds, T)`."""

    @property
    def average_regret(self) -> Array:
        """The cumulative regret divided by the number of rounds, of the same shape."""

    @property
    def simple_regret(self) -> Array:
        """The smallest regret of an answered round so far."""


class _Drawing(NamedTuple):
    """The options of the picture."""

    kind: Kind
    scale: Scale
    x_label: str
    y_label: str


def regret(
    runs: Any,
    path: str | Path | None = None,
    *,
    kind: Kind = "cumulative",
    width: str | float = "column",
    height: float | None = None,
    scale: Scale = "auto",
    labels: Literal["auto", "direct", "legend"] = "auto",
    x_label: str = "round",
    y_label: str | None = None,
) -> Figure:
    """Returns a picture of the mean regret of contenders, with 95% intervals of the mean (Student's t).

    Each contender has a colour and a dash of its own. Names stand at the ends of the lines and do not overlap.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 20), nr.SquaredExponential(0.2)
    >>> world = nr.Environment(lambda x: x[:, 0], domain=arms, noise=0.1)
    >>> policies = {"UCB": nr.gp_ucb(arms, kernel, noise=0.1), "EI": nr.expected_improvement(arms, kernel, noise=0.1)}
    >>> result = nr.compare(policies, world, rounds=10, seeds=range(4))
    >>> figure = nr.plots.regret(result, kind="simple", width="page")

    Args:
        runs: result of `nilregret.compare`, one run, or runs by name. By name of the environment and then by name of
            the contender, there is a panel for each environment.
        path: path of the picture, or None to save nothing. The ending names the format: .pdf, .svg or .png.
        kind: regret that is drawn: "cumulative", "simple" or "average" (cumulative, divided by the rounds).
        width: width of the picture: that of a "column" (3.3 inches), of the "page" (6.8), or a number of inches.
        height: height in inches. The default fits the panels and the labels.
        scale: vertical axis: "linear", "log", or "inset" for an enlarged part that leaves the largest line out. The
            default is "log" or "inset" where one contender dwarfs the others.
        labels: "direct" for names at the ends of the lines, or "legend". The default is direct for up to two panels
            with short names.
        x_label: label of the horizontal axis.
        y_label: label of the vertical axis. The default says the kind.

    Raises:
        InvalidInput: there is nothing to draw, or an option is unknown.
    """
    check_picture(path)
    one_of("kind", kind, KINDS)
    one_of("scale", scale, ["auto", "linear", "log", "inset"])
    one_of("labels", labels, ["auto", "direct", "legend"])
    groups = _groups(runs)
    drawing = _Drawing(kind, scale, x_label, KINDS[kind] if y_label is None else y_label)
    place = {name: i for i, name in enumerate(dict.fromkeys(name for each in groups.values() for name in each))}
    wide = inches(width)
    rows, columns = grid(len(groups), wide)
    room = len(groups) <= MOST_WITH_LABELS and LETTER * max(map(len, place)) <= LABEL_SHARE * wide / columns
    direct = labels == "direct" or (labels == "auto" and room)
    each = max(min(0.62 * wide / columns, 3.0), 1.5, LABEL_HEIGHT * len(place) * direct + 0.5)
    with paper_style():
        legend = 0.0 if direct else LABEL_HEIGHT * -(-len(place) // legend_columns(list(place), wide))
        figure = new_figure(wide, rows * each + legend if height is None else inches(height))
        axes: Any = figure.subplots(rows, columns, squeeze=False).reshape(-1)
        for ax in axes[len(groups) :]:
            ax.set_axis_off()
        panels = []
        for i, (ax, (title, contenders)) in enumerate(zip(axes, groups.items(), strict=False)):
            panels.append((ax, _draw(ax, _lines(contenders, kind), place, drawing)))
            ax.set(title=plain(title) if len(groups) > 1 else "", xlabel=x_label)
            ax.set_ylabel(drawing.y_label if i % columns == 0 else "")
            fit_words(ax, wide / columns, (figure.get_figheight() - legend) / rows)
        name_lines(figure, panels, direct=direct)
        save(figure, path)
    return figure


def _groups(runs: Any) -> dict[str, dict[str, HasRegret]]:
    """Returns the runs by environment and contender."""
    given = getattr(runs, "runs", runs)
    if hasattr(given, "cumulative_regret"):
        given = {"regret": given}
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput(
            f"`runs` is {shown(given)}: it must be the result of `compare`, a run of `simulate` or `replicate`, or a "
            "dict of runs by name."
        )
    grouped = given if all(isinstance(each, Mapping) for each in given.values()) else {"": given}
    for contenders in grouped.values():
        for name, run in contenders.items():
            if not hasattr(run, "cumulative_regret"):
                raise InvalidInput(f"`runs` has {shown(run)} under {name!r}: it must be a run.")
    return {str(title): {str(name): run for name, run in each.items()} for title, each in grouped.items()}


def _lines(contenders: Mapping[str, HasRegret], kind: Kind) -> list[Line]:
    """Returns the mean of each contender at some rounds, with its interval."""
    lines = []
    for name, run in contenders.items():
        values = np.atleast_2d(getattr(run, f"{kind}_regret"))
        kept = np.unique(np.linspace(0, values.shape[1] - 1, min(values.shape[1], MOST_POINTS)).round().astype(np.intp))
        values = np.where(np.isfinite(values[:, kept]), values[:, kept], np.nan)  # Infinite before the first answer.
        mean = np.asarray(values.mean(axis=0))
        band = None
        if len(values) > 1:
            half = half_interval(values)
            band = np.asarray(mean - half), np.asarray(mean + half)
        lines.append(Line(name, np.asarray(kept + 1.0), mean, band))
    return lines


def _draw(ax: Axes, lines: list[Line], place: dict[str, int], drawing: _Drawing) -> Any:
    """Adds the lines of a panel and returns its lines."""
    drawn = draw_lines(ax, lines, place)
    ax.set_xlim(min(line.x[0] for line in lines), max(line.x[-1] for line in lines))
    scale = _scale(lines, drawing)
    tops = np.concatenate([line.y for line in lines])
    tops = tops[np.isfinite(tops)]
    if scale == "log" and (tops > 0.0).any():
        ax.set_yscale("log")
        ax.set_ylim(bottom=max(0.8 * tops[tops > 0.0].min(), DECADES * tops.max()))
    else:
        ax.set_ylim(bottom=0.0 if not len(tops) or tops.min() >= 0.0 else None)
    ax.grid(alpha=0.25, lw=0.5)
    ax.xaxis.get_major_locator().set_params(integer=True)  # type: ignore[call-arg]
    if scale == "inset":
        _draw_inset(ax, lines, place, drawing)
    return drawn


def _scale(lines: list[Line], drawing: _Drawing) -> Scale:
    """Returns the scale of a panel."""
    if drawing.scale != "auto" or len(lines) < 2:
        return "linear" if drawing.scale == "auto" else drawing.scale
    ends = np.sort([line.y[-1] for line in lines])
    if not np.isfinite(ends).all() or ends[-1] <= DWARFED * np.median(ends[:-1]):
        return "linear"
    return "log" if ends[0] > 0.0 else "inset"


def _draw_inset(ax: Axes, lines: list[Line], place: dict[str, int], drawing: _Drawing) -> None:
    """Adds all lines but the largest one again, enlarged, where the panel is empty."""
    largest = max(lines, key=lambda line: float(line.y[-1]))
    others = [line for line in lines if line is not largest] or lines
    falls = drawing.kind != "cumulative"
    inner = ax.inset_axes((0.5 if falls else 0.14, 0.5, 0.46, 0.46))
    draw_lines(inner, others, place)
    inner.set_xlim(ax.get_xlim())
    ends = np.concatenate([line.y[len(line.y) // 4 :] if falls else line.y for line in others])
    ends = ends[np.isfinite(ends)]
    if len(ends) and ends.max() > 0.0:
        inner.set_ylim(min(0.0, float(ends.min())), 1.1 * float(ends.max()))
    inner.set_title(f"without {plain(largest.name)}", fontsize=6.5, pad=2)
    inner.tick_params(labelsize=6)
    inner.xaxis.get_major_locator().set_params(nbins=3)  # type: ignore[call-arg]
    inner.grid(alpha=0.25, lw=0.4)
