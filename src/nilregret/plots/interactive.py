"""Pictures drawn with plotly, for notebooks and web pages."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import needs
from .base import Theme, theme
from .scene import Axis, Band, Boxes, Heat, Line, Panel, Picture, Points, Words
from .ticks import ticked

INCH = 96  # Pixels.
SYMBOLS = {
    "o": "circle", "x": "x-thin", "|": "line-ns", "*": "star", "v": "triangle-down", "^": "triangle-up", "s": "square",
    "d": "diamond", "O": "circle-open",
}  # fmt: skip
BESIDE, BELOW = 0.07, 0.11  # Shares of the picture between panels.
BESIDE_SCALE = 0.17  # The same where panels have a scale of colours.
FOOT = 110  # Pixels below the panels, for words and the legend.


def interactive_figure(picture: Picture, path: str | Path | None) -> Any:
    """Returns plotly's figure of a picture, and saves it as a page if there is a path."""
    with needs("An interactive picture", "plotly", "interactive"):
        from plotly import graph_objects
    look, figure = theme(), graph_objects.Figure()
    named: set[str] = set()
    for i, panel in enumerate(map(ticked, picture.panels)):
        _draw_panel(figure, picture, panel, "" if i == 0 else str(i + 1), look, named)
    width, height = picture.size
    lines = picture.heading.split("\n")
    clear = "rgba(0,0,0,0)" if look.surface == "none" else look.surface
    figure.update_layout(
        title={"text": "<br>".join(lines), "font": {"size": 15}},
        width=1.15 * INCH * width, height=1.15 * INCH * height + 60,
        paper_bgcolor=clear, plot_bgcolor=clear, font={"color": look.text, "size": 11}, hovermode="closest",
        margin={"l": 70, "r": 30, "t": 72 + 18 * len(lines), "b": FOOT},
        legend={"orientation": "h", "y": 0.0, "yref": "container", "yanchor": "bottom"},
    )  # fmt: skip
    if path is not None:
        figure.write_html(path)
    return figure


def _ends(shares: Any, first: int, count: int, gap: float) -> tuple[float, float]:
    """Returns both ends of some rows or columns of a grid, as shares of the picture."""
    sides = np.asarray(shares, dtype=np.float64) / np.sum(shares) * (1.0 - gap * (len(shares) - 1))
    starts = np.concatenate([[0.0], np.cumsum(sides + gap)[:-1]])
    last = first + count - 1
    return float(starts[first]), float(min(starts[last] + sides[last], 1.0))


def _draw_panel(figure: Any, picture: Picture, panel: Panel, key: str, look: Theme, named: set[str]) -> None:
    coloured = any(isinstance(mark, Heat) for each in picture.panels for mark in each.marks)
    left, right = _ends(picture.widths, panel.column, panel.columns, BESIDE_SCALE if coloured else BESIDE)
    above, below = _ends(picture.heights, panel.row, panel.rows, BELOW)
    figure.update_layout(
        {
            f"xaxis{key}": _axis(panel.x, (left, right), f"y{key}", look, framed=panel.framed),
            f"yaxis{key}": _axis(panel.y, (1.0 - below, 1.0 - above), f"x{key}", look, framed=panel.framed),
        }
    )
    for mark in panel.marks:
        if isinstance(mark, Words):
            figure.add_annotation(_words(mark, panel, key, look))
            continue
        for trace in _TRACES[type(mark)](mark, panel, look):
            label = trace.get("name") or ""
            trace |= {"showlegend": bool(label) and label not in named, "legendgroup": label or None}
            named.add(label)
            if "colorbar" in trace:
                middle, high = 1.0 - 0.5 * (above + below), below - above
                trace["colorbar"] |= {"x": right + 0.005, "y": middle, "len": high, "thickness": 9}
            figure.add_trace({"xaxis": f"x{key}", "yaxis": f"y{key}", **trace})
    if panel.title:
        figure.add_annotation(
            text=panel.title.replace("\n", "<br>"), x=left, y=1.0 - above, xref="paper", yref="paper", showarrow=False,
            xanchor="left", yanchor="bottom", align="left", font={"size": 12},
        )  # fmt: skip


def _axis(axis: Axis, domain: tuple[float, float], anchor: str, look: Theme, *, framed: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "domain": domain, "anchor": anchor, "title": {"text": axis.label}, "gridcolor": look.faint, "zeroline": False,
        "showgrid": axis.grid, "linecolor": look.text, "showline": framed, "type": "log" if axis.log else "linear",
    }  # fmt: skip
    if axis.limits is not None:
        found["range"] = [math.log10(end) for end in axis.limits] if axis.log else list(axis.limits)
    ticks = axis.ticks or ()
    found |= {"tickvals": [at for at, _ in ticks], "ticktext": [words for _, words in ticks]}
    return found | {"tickangle": -90 if axis.steep else 0}


def _numbers(values: Any) -> list[float]:
    return np.asarray(values, dtype=np.float64).tolist()  # type: ignore[no-any-return]


def _points(mark: Points, panel: Panel, look: Theme) -> list[dict[str, Any]]:  # noqa: ARG001
    opacity = np.asarray(mark.opacity, dtype=np.float64)
    color, thin = look.color(mark.color), mark.shape in "x|O"
    marker = {
        "symbol": SYMBOLS[mark.shape], "size": 1.6 * mark.size, "color": color,
        "opacity": opacity.tolist(), "line": {"color": color, "width": 1.5 if thin else 0},
    }  # fmt: skip
    return [
        {
            "type": "scatter", "mode": "markers", "x": _numbers(mark.x), "y": _numbers(mark.y), "name": mark.label,
            "marker": marker, "hovertext": list(mark.hover) or None, "hoverinfo": "text" if mark.hover else "x+y",
            "cliponaxis": mark.shape not in "x|",
        }
    ]  # fmt: skip


def _line(mark: Line, panel: Panel, look: Theme) -> list[dict[str, Any]]:  # noqa: ARG001
    line = {
        "color": look.color(mark.color), "width": 1.3 * mark.width, "dash": "dash" if mark.dashed else "solid",
        "shape": "hv" if mark.steps else "linear",
    }  # fmt: skip
    return [
        {
            "type": "scatter", "mode": "lines", "x": _numbers(mark.x), "y": _numbers(mark.y), "name": mark.label,
            "line": line, "opacity": mark.opacity, "hovertext": mark.hover or None,
            "hoverinfo": "text" if mark.hover else "x+y",
        }
    ]  # fmt: skip


def _area(x: Any, y: Any, mark: Band | Boxes, look: Theme, hover: str = "") -> dict[str, Any]:
    color = look.color(mark.color)
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    found: dict[str, Any] = {
        "type": "scatter", "mode": "lines", "x": _numbers(x), "y": _numbers(y), "fill": "toself", "name": mark.label,
        "fillcolor": f"rgba({red},{green},{blue},{mark.opacity:.3f})", "line": {"width": 0, "color": color},
        "hovertext": hover or None, "hoveron": "fills", "hoverinfo": "text" if hover else "skip",
    }  # fmt: skip
    if isinstance(mark, Boxes) and mark.hatched:
        found["fillpattern"] = {"shape": "/", "fgcolor": color, "bgcolor": "rgba(0,0,0,0)", "fgopacity": mark.opacity}
    return found


def _band(mark: Band, panel: Panel, look: Theme) -> list[dict[str, Any]]:  # noqa: ARG001
    x, low, high = (np.asarray(side, dtype=np.float64) for side in (mark.x, mark.low, mark.high))
    return [_area(np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]]), mark, look)]


def _boxes(mark: Boxes, panel: Panel, look: Theme) -> list[dict[str, Any]]:
    low, high = (panel.y.limits or (0.0, 1.0)) if mark.y0 is None else (mark.y0, mark.y1)
    sides = np.broadcast_arrays(*(np.asarray(side, dtype=np.float64) for side in (mark.x0, mark.x1, low, high)))
    hover = list(mark.hover) or [""] * sides[0].size
    return [
        _area([a, b, b, a, a], [c, c, d, d, c], mark, look, words)
        for a, b, c, d, words in zip(*(side.ravel() for side in sides), hover, strict=True)
    ]


def _heat(mark: Heat, panel: Panel, look: Theme) -> list[dict[str, Any]]:  # noqa: ARG001
    return [
        {
            "type": "heatmap", "x": _numbers(mark.x), "y": _numbers(mark.y), "z": mark.z.tolist(),
            "colorscale": "Cividis" if mark.uncertain else look.ramp.capitalize(),
            "colorbar": {
                "title": {"text": mark.label, "side": "right"}, "tickvals": [at for at, _ in mark.ticks],
                "ticktext": [words for _, words in mark.ticks],
            },
        }
    ]  # fmt: skip


def _words(mark: Words, panel: Panel, key: str, look: Theme) -> dict[str, Any]:
    place = [math.log10(at) if axis.log else at for axis, at in ((panel.x, mark.x), (panel.y, mark.y))]
    return {
        "text": mark.text, "x": place[0], "y": place[1], "xref": f"x{key}", "yref": f"y{key}", "showarrow": False,
        "xanchor": "left" if mark.right else "right",
        "yanchor": "middle" if mark.middle else "bottom" if mark.above else "top",
        "xshift": 6 if mark.right else -6, "font": {"color": look.color(mark.color)},
    }  # fmt: skip


_TRACES: dict[type, Callable[[Any, Panel, Theme], list[dict[str, Any]]]] = {
    Points: _points, Line: _line, Band: _band, Boxes: _boxes, Heat: _heat,
}  # fmt: skip
