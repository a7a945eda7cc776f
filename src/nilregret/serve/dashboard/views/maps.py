"""Maps of the posterior mean and of its bounds' width over two axes, with the other axes fixed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...._utils.checks import Array
from ....domains.domain import Arms, Space
from ....domains.parameters import Choice
from ....study.function import Axis, agrees, value_at
from ....study.study import Study
from .chosen_point import ChosenPoint
from .pictures import MOST_DOTS, Picture, axis, numbers, short, spread_evenly, table

MOST_SIDE, FEWEST_SIDE = 41, 11  # cells along an axis of a map
MOST_ARM_SIDE = 120  # cells along an axis of a grid of arms
FEWEST_SHARE = 0.5  # of the cells of a grid must be arms, or no map is drawn
ROWS = 6  # rows and columns of the table
SPREADS = {
    "proved": "half the width of the proved bounds", "policy": "half the width of the policy's bounds",
    "deviations": "two standard deviations",
}  # fmt: skip
WORK = 2e9  # multiplications for a map


def is_expensive(study: Study) -> bool:
    """Returns True if the cost of a prediction grows with the number of rewards, which it does not on arms."""
    policy = study.policy
    contexts = getattr(policy, "context", None)
    return not (isinstance(policy.domain, Arms) and (contexts is None or isinstance(contexts, Arms)))


def posterior_map(
    study: Study, at: ChosenPoint, pair: tuple[Axis, Axis], predict: Callable[[Array], Any], *, name: str, low: bool
) -> Picture | None:
    """Returns a map of the posterior mean, or None if the arms lie on no grid.

    Args:
        study: a study with a posterior.
        at: the point and context that fix the other axes.
        pair: the two axes.
        predict: returns mean and bounds at points `(n, d)`.
        name: name of the drawn quantity.
        low: True if lower means are better.
    """
    across, up = pair
    domain = study.policy.domain
    grid = _arms(domain, at, pair) if isinstance(domain, Arms) else _grid(study, at, pair)
    if grid is None:
        return None
    xs, ys, points, cells = grid  # cells: (row, column) of each point
    found = predict(points)
    shape = (len(ys), len(xs))
    mean, lower, upper = (np.full(shape, np.nan) for _ in range(3))
    mean[cells], lower[cells], upper[cells] = found.mean, found.lower, found.upper
    better = np.nanargmin if low else np.nanargmax
    row, column = (int(i) for i in np.unravel_index(int(better(mean)), shape))
    return {
        "kind": "map", "band": found.band, "better": "low" if low else "high",
        "title": f"{across.name} and {up.name}", "name": name,
        "summary": (
            f"The {name} over {across.name} and {up.name}: from "
            f"{short(float(np.nanmin(mean)))} to {short(float(np.nanmax(mean)))}, {'lowest' if low else 'highest'} at "
            f"{across.name} {short(xs[column])} and {up.name} {short(ys[row])}."
        ),
        "x": _side(across, xs), "y": _side(up, ys), "mean": [numbers(each) for each in mean],
        "lower": [numbers(each) for each in lower], "upper": [numbers(each) for each in upper],
        "dots": _tried_cells(study, pair, xs, ys),
        "here": _cell_of(domain, at.point, pair, xs, ys), "table": _figures(pair, xs, ys, mean),
    }  # fmt: skip


def spread_map(drawn: Picture) -> Picture:
    """Returns the map of half the width of the band, from the map of the mean with this band."""
    name = SPREADS[drawn["band"]]
    lower, upper = (np.array(drawn[end], dtype=np.float64) for end in ("lower", "upper"))
    half = (upper - lower) / 2.0
    row, column = (int(i) for i in np.unravel_index(int(np.nanargmax(half)), half.shape))
    across, up = drawn["x"], drawn["y"]
    return drawn | {
        "title": f"How uncertain: {drawn['title']}", "name": name, "better": "high", "table": None,
        "summary": (
            f"{name.capitalize()}: from {short(float(np.nanmin(half)))} to {short(float(np.nanmax(half)))}, "
            f"widest at {across['label']} {_named(across, column)} and {up['label']} {_named(up, row)}."
        ),
        "mean": [numbers(each) for each in half],
    }  # fmt: skip


def _named(side: dict[str, Any], i: int) -> str:
    return str(side["names"][i]) if side["names"] else short(side["values"][i])


def _side(along: Axis, values: list[Any]) -> dict[str, Any]:
    named = isinstance(along.parameter, Choice)
    log = not named and along.parameter.log  # type: ignore[union-attr]
    return axis(along.name, log=log, names=values if named else None) | {
        "values": list(range(len(values))) if named else numbers(values)
    }


def _grid(
    study: Study, at: ChosenPoint, pair: tuple[Axis, Axis]
) -> tuple[list[Any], list[Any], Array, tuple[Any, Any]] | None:
    """Returns a grid on a continuous domain, as fine as the work allows."""
    domain = study.policy.domain
    answers = sum(trial.reward is not None for trial in study.trials)
    cells = WORK / max(1.0, float(answers) ** 2)
    side = int(min(MOST_SIDE, max(FEWEST_SIDE, cells**0.5)))
    across, up = pair
    xs, ys = across.parameter.values(side), up.parameter.values(side)
    named = isinstance(domain, Space)
    points = np.repeat(at.point[None], len(xs) * len(ys), axis=0)
    columns: list[Any] = [across.parameter.encode(x) if named else [x] for x in xs]
    rows: list[Any] = [up.parameter.encode(y) if named else [y] for y in ys]
    points[:, across.columns] = np.tile(columns, (len(ys), 1))
    points[:, up.columns] = np.repeat(rows, len(xs), axis=0)
    if isinstance(domain, Space):
        points = domain.snap(points)
    at_row, at_column = np.divmod(np.arange(len(points)), len(xs))
    return xs, ys, points, (at_row, at_column)


def _arms(
    arms: Arms, at: ChosenPoint, pair: tuple[Axis, Axis]
) -> tuple[list[Any], list[Any], Array, tuple[Any, Any]] | None:
    """Returns the grid of the arms that agree with the point on all other axes, or None if they form none."""
    across, up = pair
    points = arms.points[agrees(arms, arms.points, at.point, pair)]
    xs, columns = _places(arms, points, across)
    ys, rows = _places(arms, points, up)
    if min(len(xs), len(ys)) < 2 or len(points) < FEWEST_SHARE * len(xs) * len(ys):
        return None
    return xs, ys, points, (rows, columns)


def _places(arms: Arms, points: Array, along: Axis) -> tuple[list[Any], Any]:
    """Returns the values along an axis (none if there are too many) and the index of the value at each point."""
    encoded = points[:, along.columns]
    if isinstance(along.parameter, Choice):
        return list(along.parameter.options), encoded.argmax(axis=1)
    present, first, where = np.unique(np.round(encoded[:, 0], 12), return_index=True, return_inverse=True)
    if len(present) > MOST_ARM_SIDE:
        return [], where
    return [value_at(arms, points[i], along) for i in first.tolist()], where


def _position(values: list[Any], value: Any, along: Axis) -> float | None:
    """Returns the position of a value along an axis in cells. Numbers between two values are interpolated."""
    if isinstance(along.parameter, Choice):
        return float(values.index(value)) if value in values else None
    known = np.array(values, dtype=np.float64)
    if along.parameter.log:
        known, value = np.log(known), np.log(float(value))
    return float(np.interp(float(value), known, np.arange(len(known))))


def _cell_of(domain: Any, point: Array, pair: tuple[Axis, Axis], xs: list[Any], ys: list[Any]) -> list[float] | None:
    sides = zip(pair, (xs, ys), strict=True)
    places = [_position(values, value_at(domain, point, along), along) for along, values in sides]
    return None if None in places else [round(place, 3) for place in places if place is not None]


def _tried_cells(study: Study, pair: tuple[Axis, Axis], xs: list[Any], ys: list[Any]) -> list[list[float]]:
    """Returns the distinct cells of the latest trials."""
    domain = study.policy.domain
    recent = study.trials[-10 * MOST_DOTS :]
    if not len(recent):
        return []
    points, last = np.unique(np.array([trial.point for trial in recent])[::-1], axis=0, return_index=True)
    cells = [
        _cell_of(domain, point, pair, xs, ys)
        for point in points[np.argsort(last, kind="stable")][:MOST_DOTS]
        if _is_active(domain, point, pair)
    ]
    return [cell for cell in cells if cell is not None]


def _is_active(domain: Any, point: Array, pair: tuple[Axis, Axis]) -> bool:
    """Returns True if the parameters of both axes are active at a point."""
    mask = domain.active(point[None]) if isinstance(domain, Space) else None
    return mask is None or all(mask[0, along.columns.start] for along in pair)


def _figures(pair: tuple[Axis, Axis], xs: list[Any], ys: list[Any], mean: Array) -> dict[str, Any]:
    columns, rows = spread_evenly(len(xs), ROWS).tolist(), spread_evenly(len(ys), ROWS).tolist()
    head = [f"{pair[1].name} \\ {pair[0].name}", *(short(xs[j]) for j in columns)]
    return table(head, [(ys[i], *(mean[i, j] for j in columns)) for i in reversed(rows)])
