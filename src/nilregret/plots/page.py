"""Pictures as JSON for the script of the dashboard, and the numbers of a picture as a table.

Numbers are sent with the digits that a reader sees. The script prints them and rounds none, but for ticks of a zoom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.numerals import DIGITS, EXACT, numeral
from .scene import Axis, Band, Boxes, Heat, Line, Mark, Panel, Picture, Points, Words
from .ticks import spread_evenly, ticked

ROWS, SIDE = 12, 6  # Rows of a table, and rows and columns of the table of a map.
JOIN = "\n"  # Between the texts of a mark, which are sent as one.
UNKNOWN = "-"

Entry = dict[str, Any]


def page_picture(picture: Picture) -> Entry:
    """Returns a picture as JSON: its panels from top to bottom, with the share of the height of each."""
    panels = [ticked(panel) for panel in picture.panels]
    return {"panels": [_panel(panel, picture.heights[panel.row]) for panel in panels]}


def table_of(panel: Panel) -> tuple[list[str], list[list[str]]] | None:
    """Returns the head and the rows of a table of the numbers of a panel, or None if no mark has numbers over x."""
    panel = ticked(panel)
    for mark in panel.marks:
        if isinstance(mark, Heat):
            return _table_of_map(panel, mark)
    read = [mark for mark in panel.marks if _has_numbers(mark)]
    places = _places(panel, read)
    if not len(places):
        return None
    kept = places[spread_evenly(len(places), ROWS)]
    head, columns = [panel.x.label or "place"], [_words_of(panel.x, kept)]
    for mark in read:
        for name, values in _columns(mark):
            head.append(name)
            columns.append([_written(value, panel.y) for value in _at(mark, values, kept)])
    return head, [list(row) for row in zip(*columns, strict=True)]


def _written(value: float, axis: Axis) -> str:
    return UNKNOWN if math.isnan(value) else numeral(value, step=_step(axis))


def _has_numbers(mark: Mark) -> bool:
    """Returns True if a mark has a name, and a number at each place of x."""
    if isinstance(mark, Line):
        return bool(mark.label) and not mark.is_rule
    if isinstance(mark, Boxes):
        return bool(mark.label) and mark.ends is not None
    return bool(getattr(mark, "label", "")) and (
        isinstance(mark, Band) or (isinstance(mark, Points) and not mark.hover)
    )


def _places(panel: Panel, marks: Sequence[Mark]) -> Array:
    """Returns the places on x that are read: those that have words, else those of points and bands, else of lines."""
    if panel.x.places:
        return np.array([at for at, _ in panel.x.places], dtype=np.float64)
    first = [_across(mark) for mark in marks if not isinstance(mark, Line)] or [_across(mark) for mark in marks]
    known = np.unique(np.concatenate(first)) if first else np.zeros(0)
    return known[np.isfinite(known)]


def _across(mark: Mark) -> Array:
    """Returns the places of a mark on x, of boxes their middles, `(n,)`."""
    x = (np.asarray(mark.x0) + np.asarray(mark.x1)) / 2.0 if isinstance(mark, Boxes) else mark.x
    return np.asarray(x, dtype=np.float64)


def _columns(mark: Mark) -> list[tuple[str, Any]]:
    if isinstance(mark, Band | Boxes):
        low, high = _ends(mark)
        return [(f"{mark.label}, from", low), (f"{mark.label}, to", high)]
    return [(mark.label, mark.y)]  # type: ignore[union-attr]


def _ends(mark: Band | Boxes) -> tuple[Any, Any]:
    return mark.ends or ((mark.low, mark.high) if isinstance(mark, Band) else (mark.y0, mark.y1))


def _at(mark: Mark, values: Any, places: Array) -> list[float]:
    """Returns the values of a mark at places: of steps those before, else those at the very place, NaN if none."""
    x, y = _across(mark), np.asarray(values, dtype=np.float64)
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    at = np.searchsorted(x, places, side="right") - 1
    known = at >= 0
    if not (isinstance(mark, Line) and mark.steps):
        known &= x[at] == places
    return np.where(known, y[at], np.nan).tolist()  # type: ignore[no-any-return]


def middles(panel: Panel) -> tuple[list[str], list[str]]:
    """Returns the words of the columns and of the rows of a map."""
    panel = ticked(panel)
    (heat,) = (mark for mark in panel.marks if isinstance(mark, Heat))
    return _middles(panel.x, heat.x), _middles(panel.y, heat.y)


def _table_of_map(panel: Panel, mark: Heat) -> tuple[list[str], list[list[str]]]:
    across, up = _middles(panel.x, mark.x), _middles(panel.y, mark.y)
    columns, rows = spread_evenly(len(across), SIDE).tolist(), spread_evenly(len(up), SIDE).tolist()
    head = [f"{panel.y.label} \\ {panel.x.label}", *(across[j] for j in columns)]
    return head, [[up[i], *(_written(float(mark.z[i, j]), panel.y) for j in columns)] for i in reversed(rows)]


def _middles(axis: Axis, edges: Array) -> list[str]:
    """Returns the words of the middles of cells."""
    found = np.sqrt(edges[1:] * edges[:-1]) if axis.log else (edges[1:] + edges[:-1]) / 2.0
    return _words_of(axis, found)


def _words_of(axis: Axis, places: Array) -> list[str]:
    """Returns the words of places on an axis: those of the axis where it has names, else numbers."""
    named = {round(at, 9): words for at, words in (axis.places or axis.ticks or ())}
    return [named.get(round(at, 9)) or numeral(at, step=_step(axis)) for at in places.tolist()]


def _step(axis: Axis) -> float:
    """Returns the difference that numbers show, a thousandth of the length of an axis, or 0 if it is logarithmic."""
    return 0.0 if axis.limits is None or axis.log else 0.001 * (axis.limits[1] - axis.limits[0])


# -- JSON --------------------------------------------------------------------------------------------------------------


def _panel(panel: Panel, height: float) -> Entry:
    marks = []
    for mark in panel.marks:
        named = {"kind": type(mark).__name__.lower(), "color": getattr(mark, "color", "")}
        entry = named | {"label": getattr(mark, "label", "")} | _JSON[type(mark)](mark, panel)
        # What is left out, the script takes to be missing.
        marks.append({key: value for key, value in entry.items() if value is not False and value != ""})
    places, words = zip(*panel.x.places, strict=True) if panel.x.places else ((), ())
    return {
        "height": height, "framed": panel.framed, "marks": marks, "x": _axis(panel.x), "y": _axis(panel.y),
        "places": list(places), "said": JOIN.join(words),
    }  # fmt: skip


def _axis(axis: Axis) -> Entry:
    return {
        "label": axis.label, "limits": list(axis.limits or (0.0, 1.0)), "log": axis.log, "grid": axis.grid,
        "ticks": [[at, words] for at, words in axis.ticks or ()], "whole": axis.whole, "steep": axis.steep,
    }  # fmt: skip


def _numbers(values: npt.ArrayLike, axis: Axis | None = None) -> list[float | None]:
    """Returns numbers with the digits that are written, which the script prints, and None for those not finite."""
    array = np.ravel(np.asarray(values, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.nan_to_num(np.floor(np.log10(np.abs(array))), neginf=0.0, posinf=0.0)
    step = 0.0 if axis is None else _step(axis)
    least = sizes - math.floor(math.log10(step)) + 1.0 if step > 0.0 else np.zeros(len(array))
    digits = np.clip(least, DIGITS, EXACT).astype(np.intp)
    found = [float(f"{v:.{n}g}") for v, n in zip(array.tolist(), digits.tolist(), strict=True)]
    return [(int(v) if v.is_integer() else v) if math.isfinite(v) else None for v in found]


def _hover(texts: Sequence[str]) -> str:
    return JOIN.join(text.replace(JOIN, " ") for text in texts)


def _points(mark: Points, panel: Panel) -> Entry:
    opacity = np.asarray(mark.opacity, dtype=np.float64)
    return {
        "x": _numbers(mark.x, panel.x), "y": _numbers(mark.y, panel.y), "shape": mark.shape, "size": mark.size,
        "opacity": [round(each, 2) for each in opacity.tolist()] if opacity.ndim else float(opacity),
        "hover": _hover(mark.hover), "read": _has_numbers(mark),
    }  # fmt: skip


def _line(mark: Line, panel: Panel) -> Entry:
    return {
        "x": _numbers(mark.x, panel.x), "y": _numbers(mark.y, panel.y), "width": mark.width, "dashed": mark.dashed,
        "steps": mark.steps, "opacity": mark.opacity, "hover": _hover([mark.hover]), "rule": mark.is_rule,
        "read": _has_numbers(mark),
    }  # fmt: skip


def _band(mark: Band, panel: Panel) -> Entry:
    return {
        "x": _numbers(mark.x, panel.x), "low": _numbers(mark.low, panel.y), "high": _numbers(mark.high, panel.y),
        "to": _numbers(mark.ends[1], panel.y) if mark.ends else "", "opacity": mark.opacity,
        "read": _has_numbers(mark),
    }  # fmt: skip


def _boxes(mark: Boxes, panel: Panel) -> Entry:
    low, high = (panel.y.limits or (0.0, 1.0)) if mark.y0 is None else (mark.y0, mark.y1)
    sides = np.broadcast_arrays(*(np.ravel(np.asarray(each, np.float64)) for each in (mark.x0, mark.x1, low, high)))
    x0, x1, y0, y1 = (_numbers(side, axis) for side, axis in zip(sides, [panel.x] * 2 + [panel.y] * 2, strict=True))
    return {
        "x0": x0, "x1": x1, "y0": y0, "y1": y1,
        "to": _numbers(mark.ends[1], panel.y) if mark.ends else "", "opacity": mark.opacity, "hatched": mark.hatched,
        "hover": _hover(mark.hover), "read": _has_numbers(mark),
    }  # fmt: skip


def _heat(mark: Heat, panel: Panel) -> Entry:
    return {
        "x": _numbers(mark.x, panel.x), "y": _numbers(mark.y, panel.y), "z": _numbers(mark.z),
        "uncertain": mark.uncertain, "ticks": [[at, words] for at, words in mark.ticks],
        "across": JOIN.join(_middles(panel.x, mark.x)), "up": JOIN.join(_middles(panel.y, mark.y)),
    }  # fmt: skip


def _words(mark: Words, panel: Panel) -> Entry:  # noqa: ARG001
    return {
        "x": mark.x, "y": mark.y, "text": mark.text, "right": mark.right, "above": mark.above, "middle": mark.middle
    }  # fmt: skip


_JSON: dict[type, Callable[[Any, Panel], Entry]] = {
    Points: _points, Line: _line, Band: _band, Boxes: _boxes, Heat: _heat, Words: _words,
}  # fmt: skip
