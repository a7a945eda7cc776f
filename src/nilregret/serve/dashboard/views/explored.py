"""Importance of the parameters by the model, and all trials on parallel axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...._utils.checks import Array
from ...._utils.errors import NoRegretError
from ....domains.parameters import Choice, Parameter
from ....storage.trial import Trial
from ....study.axes import Axis, axes, space_of, value_at
from ....study.importance import Importance, Indices
from ....study.study import Study
from .columns import PARAMETERS, columns_of
from .pictures import many, short, spread_evenly
from .progress import reward_word
from .status import order_of

MOST_LINES, MOST_BEST, MOST_AXES = 300, 40, 14  # drawn trials, of these the best, and axes
WIDTH, HEIGHT, TOP, SIDE = 960, 300, 34, 60  # of the picture of parallel axes
CLASSES = 5  # colours, from the worst fifth of the drawn trials to the best
CLIPPED = (2.0, 98.0)  # percentiles of the rewards at the ends of their axis

_known: WeakKeyDictionary[Study, tuple[int, dict[str, Any]]] = WeakKeyDictionary()


def importance_view(study: Study) -> dict[str, Any]:
    """Returns the importance of each parameter, or the reason why there is none. It is kept until the study changes."""
    order = order_of(study)
    known = _known.get(study)
    if known is None or known[0] != order:
        try:
            view = _importance(study.importance())
        except NoRegretError as error:
            view = {"why_not": str(error), "rows": [], "sentence": ""}
        known = _known[study] = order, view
    return known[1]


def _importance(found: Importance) -> dict[str, Any]:
    order = found.order.tolist()
    pairs = found.pairs(1)
    return {
        "why_not": "",
        "sentence": f"{_leaders(found.value, found.names)} {found.certainty[0].upper()}{found.certainty[1:]}.",
        "rows": [
            {"name": found.names[i], "value": _bar(found.value, i), "best": _bar(found.best, i)} for i in order
        ],
        "pair": " and ".join(pairs[0]) if pairs else "",
    }  # fmt: skip


def _leaders(indices: Indices, names: Sequence[str]) -> str:
    """Returns a sentence with the parameters that may matter most, by the intervals of their total indices."""
    if not indices.leaders:
        return "No parameter moves the answers so far."
    top, *rest = indices.leaders
    others = [names[i] for i in sorted(rest)]
    if len(others) >= len(names) - 1 and len(names) > 2:
        return "No single parameter stands out yet."
    return f"{names[top]} matters most." if not others else f"{names[top]} or {' or '.join(others)} matters most."


def _bar(indices: Indices, i: int) -> dict[str, Any]:
    """Returns the index of a parameter as shares of the width of a bar, in percent."""
    low, high = (float(end[i]) for end in indices.total_interval)
    alone, total = float(indices.first[i]), max(float(indices.total[i]), float(indices.first[i]))
    return {
        "alone": round(100 * max(alone, 0.0), 1), "total": round(100 * min(max(total, 0.0), 1.0), 1),
        "low": round(100 * max(low, 0.0), 1), "high": round(100 * min(high, 1.0), 1),
        "said": f"{total:.0%} in all, {max(alone, 0.0):.0%} alone (90% interval {max(low, 0.0):.0%} to {high:.0%})",
    }  # fmt: skip


# -- parallel axes -----------------------------------------------------------------------------------------------


class _Side(NamedTuple):
    """One of the parallel axes.

    Attributes:
        name: shown to people.
        key: of its column in the grid of trials.
        low: number at the lower end, the position of the first option for a categorical parameter.
        high: number at the upper end.
        options: of a categorical parameter.
        heights: of the drawn trials, from 0 to 1, NaN where the parameter does not count `(n,)`.
        log: whether the scale is logarithmic.
    """

    name: str
    key: str
    low: float
    high: float
    options: list[str]
    heights: Array
    log: bool = False


def parallel_view(study: Study) -> dict[str, Any]:
    """Returns the answered trials as lines through an axis for each parameter and one for the reward."""
    answered = [trial for trial in study.trials if trial.reward is not None]
    listed = axes(study.policy.domain)
    if len(answered) < 2 or not listed:
        why = "Two answered trials are needed, and a parameter that varies."
        return {"why_not": why, "lines": [], "sides": [], "sentence": ""}
    sign = 1.0 if study.goal == "maximize" else -1.0
    rewards = sign * np.array([trial.reward for trial in answered], dtype=np.float64)
    best = np.argsort(-rewards, kind="stable")[: min(MOST_BEST, max(1, len(answered) // 10))]
    drawn = np.unique(np.concatenate([best, spread_evenly(len(answered), MOST_LINES - len(best))]))
    trials = [answered[i] for i in drawn.tolist()]
    sides = [_side(study, trials, axis) for axis in listed[: MOST_AXES - 1]]
    sides.append(_reward_side(study, np.array([trial.reward for trial in trials], dtype=np.float64)))
    ranks = np.argsort(np.argsort(rewards[drawn], kind="stable"), kind="stable")
    places = np.linspace(SIDE, WIDTH - SIDE, len(sides))
    lines = [
        {
            "number": trial.number, "fifth": int(CLASSES * rank // len(trials)),
            "points": _line(places, [side.heights[i] for side in sides]),
        }
        for i, (trial, rank) in enumerate(zip(trials, ranks.tolist(), strict=True))
    ]  # fmt: skip
    left_out = len(listed) - len(sides) + 1
    return {
        "why_not": "",
        "lines": sorted(lines, key=lambda each: each["fifth"]), "width": WIDTH, "height": HEIGHT,
        "top": TOP, "bottom": HEIGHT - TOP, "word": reward_word(study),
        "sides": [
            {"x": round(float(x), 1), "ends": [side.low, side.high, side.log], "name": side.name, "key": side.key,
             "low": side.options[0] if side.options else short(side.low),
             "high": side.options[-1] if side.options else short(side.high), "options": side.options}
            for x, side in zip(places, sides, strict=True)
        ],
        "sentence": f"{many(len(trials), 'trial')} of {many(len(answered), 'answered trial')}"
        + (", the best and others evenly spread" if len(trials) < len(answered) else "")
        + (f", on {len(sides)} axes of {len(listed) + 1}" if left_out > 0 else "") + ". The better, the brighter.",
    }  # fmt: skip


def _line(places: Array, heights: Sequence[float]) -> str:
    """Returns the points of a line. At an axis that does not count for a trial the line is below it."""
    ends = [-0.06 if np.isnan(height) else height for height in heights]
    return " ".join(
        f"{x:.1f},{HEIGHT - TOP - y * (HEIGHT - 2 * TOP):.1f}" for x, y in zip(places.tolist(), ends, strict=True)
    )


def _side(study: Study, trials: Sequence[Trial], axis: Axis) -> _Side:
    domain, parameter = study.policy.domain, axis.parameter
    names = None if trials[0].settings is None else [dict(trial.settings or ()) for trial in trials]
    found = [
        np.nan if names is not None and axis.name not in names[i]
        else _height(parameter, value_at(domain, trial.point, axis))
        for i, trial in enumerate(trials)
    ]  # fmt: skip
    key, heights = _key(study, axis), np.array(found)
    if isinstance(parameter, Choice):
        options = [short(option) for option in parameter.options]
        return _Side(axis.name, key, 0.0, float(len(options) - 1), options, heights)
    log = bool(getattr(parameter, "log", False))
    return _Side(axis.name, key, float(parameter.low), float(parameter.high), [], heights, log)


def _height(parameter: Parameter, value: Any) -> float:
    if isinstance(parameter, Choice):
        return parameter.options.index(value) / max(len(parameter.options) - 1, 1)
    return float(parameter.position(value))


def _key(study: Study, axis: Axis) -> str:
    """Returns the key of the column with the values of a parameter or coordinate."""
    if space_of(study.policy.domain) is None:
        return f"point.{axis.columns.start}"
    other = PARAMETERS + axis.name
    return other if other in columns_of(study).layout else axis.name


def _reward_side(study: Study, rewards: Array) -> _Side:
    low, high = (float(end) for end in np.percentile(rewards, CLIPPED))
    heights = np.clip((rewards - low) / (high - low), 0.0, 1.0) if high > low else np.full(len(rewards), 0.5)
    return _Side(reward_word(study), "reward", low, high, [], heights)
