"""Pictures as JSON for the script of the dashboard, and the numbers of a picture as a table.

All numbers that a reader sees are sent as texts. The script draws them and formats none, but for ticks of a zoom.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array
from .._utils.numerals import numeral
from .scene import Axis, Band, Boxes, Heat, Line, Mark, Panel, Picture, Points, Words
from .ticks import spread_evenly, ticked

ROWS, SIDE = 12, 6  # Rows of a table, and rows and columns of the table of a map.
DIGITS = 6  # Of a number that is drawn.
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
            columns.append(
                [UNKNOWN if math.isnan(v) else numeral(v, step=_step(panel.y)) for v in _at(mark, values, kept)]
            )
    return head, [list(row) for row in zip(*columns, strict=True)]


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
    first = [mark.x for mark in marks if not isinstance(mark, Line)] or [mark.x for mark in marks]  # type: ignore[union-attr]
    known = np.unique(np.concatenate([np.asarray(x, dtype=np.float64) for x in first])) if first else np.zeros(0)
    return known[np.isfinite(known)]


def _columns(mark: Mark) -> list[tuple[str, Any]]:
    if isinstance(mark, Band | Boxes):
        low, high = _ends(mark)
        return [(f"{mark.label}, from", low), (f"{mark.label}, to", high)]
    return [(mark.label, mark.y)]  # type: ignore[union-attr]


def _ends(mark: Band | Boxes) -> tuple[Any, Any]:
    return mark.ends or ((mark.low, mark.high) if isinstance(mark, Band) else (mark.y0, mark.y1))


def _at(mark: Mark, values: Any, places: Array) -> list[float]:
    """Returns the values of a mark at places: of steps those before, else those at the very place, NaN if none."""
    middle = (np.asarray(mark.x0) + np.asarray(mark.x1)) / 2.0 if isinstance(mark, Boxes) else mark.x
    x, y = np.asarray(middle, dtype=np.float64), np.asarray(values, dtype=np.float64)
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
    cells = _texts(mark.z)
    return head, [[up[i], *(cells[i * len(across) + j] for j in columns)] for i in reversed(rows)]


def _middles(axis: Axis, edges: Array) -> list[str]:
    """Returns the words of the middles of cells."""
    found = np.sqrt(edges[1:] * edges[:-1]) if axis.log else (edges[1:] + edges[:-1]) / 2.0
    return _words_of(axis, found)


def _words_of(axis: Axis, places: Array) -> list[str]:
    """Returns the words of places on an axis: those of the axis where it has names, else numbers."""
    named = {round(at, 9): words for at, words in (axis.places or axis.ticks or ())}
    return [named.get(round(at, 9)) or numeral(at, step=_step(axis)) for at in places.tolist()]


def _step(axis: Axis) -> float:
    """Returns the difference that numbers show, a hundredth of the length of an axis, or 0 if it is logarithmic."""
    return 0.0 if axis.limits is None or axis.log else 0.01 * (axis.limits[1] - axis.limits[0])


# -- JSON --------------------------------------------------------------------------------------------------------------


def _panel(panel: Panel, height: float) -> Entry:
    read = [mark for mark in panel.marks if _has_numbers(mark)]
    marks = [_JSON[type(mark)](mark, panel) for mark in panel.marks]
    for mark, entry in zip(panel.marks, marks, strict=True):
        entry |= {"kind": type(mark).__name__.lower(), "color": getattr(mark, "color", ""), "label": _label(mark)}
    places = _places(panel, read)
    words = [] if panel.x.whole and not panel.x.places else _words_of(panel.x, places)
    return {
        "height": height, "framed": panel.framed,
        "marks": [_short(mark) for mark in marks], "x": _axis(panel.x),
        "y": _axis(panel.y), "places": _numbers(places), "said": JOIN.join(words),
    }  # fmt: skip


def _short(entry: Entry) -> Entry:
    """Returns an entry without what is empty, which the script takes to be missing."""
    return {
        key: value for key, value in entry.items() if value is not False and not (isinstance(value, str) and not value)
    }


def _label(mark: Mark) -> str:
    return getattr(mark, "label", "")


def _axis(axis: Axis) -> Entry:
    return {
        "label": axis.label, "limits": list(axis.limits or (0.0, 1.0)), "log": axis.log, "grid": axis.grid,
        "ticks": [[at, words] for at, words in axis.ticks or ()], "whole": axis.whole, "steep": axis.steep,
    }  # fmt: skip


def _numbers(values: npt.ArrayLike) -> list[float | None]:
    """Returns numbers with six digits, and None for those that are not finite."""
    array = np.ravel(np.asarray(values, dtype=np.float64))
    whole = np.isfinite(array) & (array == np.round(array)) & (np.abs(array) < 1e15)
    return [
        int(value) if is_whole else float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
        for value, is_whole in zip(array.tolist(), whole.tolist(), strict=True)
    ]


def _texts(values: npt.ArrayLike, step: float = 0.0) -> list[str]:
    known: dict[float, str] = {}
    found = []
    for value in np.ravel(np.asarray(values, dtype=np.float64)).tolist():
        text = known.get(value)
        if text is None:
            text = known[value] = numeral(value, step=step) if math.isfinite(value) else UNKNOWN
        found.append(text)
    return found


def _hover(texts: Sequence[str]) -> str:
    return JOIN.join(text.replace(JOIN, " ") for text in texts)


def _points(mark: Points, panel: Panel) -> Entry:
    opacity = np.asarray(mark.opacity, dtype=np.float64)
    return {
        "x": _numbers(mark.x), "y": _numbers(mark.y), "shape": mark.shape, "size": mark.size,
        "opacity": [round(each, 2) for each in opacity.tolist()] if opacity.ndim else float(opacity),
        "hover": _hover(mark.hover), "said": "" if mark.hover else JOIN.join(_texts(mark.y, _step(panel.y))),
    }  # fmt: skip


def _line(mark: Line, panel: Panel) -> Entry:
    said = JOIN.join(_texts(mark.y, _step(panel.y))) if _has_numbers(mark) else ""
    return {
        "x": _numbers(mark.x), "y": _numbers(mark.y), "width": mark.width, "dashed": mark.dashed, "steps": mark.steps,
        "opacity": mark.opacity, "hover": _hover([mark.hover]), "said": said, "rule": mark.is_rule,
    }  # fmt: skip


def _band(mark: Band, panel: Panel) -> Entry:
    return {
        "x": _numbers(mark.x), "low": _numbers(mark.low), "high": _numbers(mark.high), "opacity": mark.opacity,
        "said": _from_to(mark, panel) if mark.label else "",
    }  # fmt: skip


def _from_to(mark: Band | Boxes, panel: Panel) -> str:
    low, high = (_texts(end, _step(panel.y)) for end in _ends(mark))
    return JOIN.join(f"{first} to {last}" for first, last in zip(low, high, strict=True))


def _boxes(mark: Boxes, panel: Panel) -> Entry:
    low, high = (panel.y.limits or (0.0, 1.0)) if mark.y0 is None else (mark.y0, mark.y1)
    sides = np.broadcast_arrays(
        *(np.ravel(np.asarray(side, dtype=np.float64)) for side in (mark.x0, mark.x1, low, high))
    )
    names = ("x0", "x1", "y0", "y1")
    return {name: _numbers(side) for name, side in zip(names, sides, strict=True)} | {
        "opacity": mark.opacity, "hatched": mark.hatched, "hover": _hover(mark.hover),
        "said": _from_to(mark, panel) if _has_numbers(mark) else "",
    }  # fmt: skip


def _heat(mark: Heat, panel: Panel) -> Entry:
    return {
        "x": _numbers(mark.x), "y": _numbers(mark.y), "z": _numbers(mark.z), "uncertain": mark.uncertain,
        "ticks": [[at, words] for at, words in mark.ticks], "said": JOIN.join(_texts(mark.z)),
        "across": JOIN.join(_middles(panel.x, mark.x)), "up": JOIN.join(_middles(panel.y, mark.y)),
    }  # fmt: skip


def _words(mark: Words, panel: Panel) -> Entry:  # noqa: ARG001
    return {
        "x": mark.x, "y": mark.y, "text": mark.text, "right": mark.right, "above": mark.above, "middle": mark.middle
    }  # fmt: skip


_JSON: dict[type, Callable[[Any, Panel], Entry]] = {
    Points: _points, Line: _line, Band: _band, Boxes: _boxes, Heat: _heat, Words: _words,
}  # fmt: skip
