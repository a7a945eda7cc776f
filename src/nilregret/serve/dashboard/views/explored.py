"""Importance of the parameters by the model, and all trials on parallel axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from ...._utils.checks import Array
from ....domains.domain import Domain
from ....domains.parameters import Choice, Parameter
from ....errors import NoRegretError
from ....storage.trial import Trial
from ....study.function import Axis, axes, space_of, value_at
from ....study.importance import Importance, Indices
from ....study.study import Study
from .columns import PARAMETERS, Read, columns_of
from .pictures import many, short, spread_evenly
from .progress import reward_word
from .status import order_of

MOST_LINES, MOST_BEST, MOST_AXES = 300, 40, 14  # drawn trials, of these the best, and axes
WIDTH, SIDE = 960, 60  # of the picture of parallel axes
TOP, BOTTOM, OFF = 52, 286, 318  # ends of an axis, and the place of trials for which it does not count
UNDER = 22  # of the words below
CROWDED, LETTERS = 8, 15  # axes from which their names take two rows, and letters of a name
CLASSES = {0: "worst fifth", 1: "", 2: "middle", 3: "", 4: "best fifth"}  # colours of the drawn trials
CLIPPED = 2.0  # percentile of the rewards at the worse end of their axis

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
    """Returns a sentence with the parameters that matter most."""
    if not indices.leaders:
        return "No parameter moves the answers so far."
    named = [names[i] for i in indices.named]
    if not named:
        return "No single parameter stands out yet."
    return f"{named[0]} matters most." if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]} matter most."


def _bar(indices: Indices, i: int) -> dict[str, Any]:
    """Returns the index of a parameter as shares of the width of a bar, in percent."""
    low, high = (float(end[i]) for end in indices.total_interval)
    alone, total = float(indices.first[i]), float(indices.total[i])
    return {
        "alone": round(100 * alone, 1), "total": round(100 * total, 1), "low": round(100 * low, 1),
        "high": round(100 * high, 1), "said": f"{total:.0%} in all ({low:.0%} to {high:.0%}), {alone:.0%} alone",
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
        beyond: "low" or "high" if trials lie beyond that end.
    """

    name: str
    key: str
    low: float
    high: float
    options: list[str]
    heights: Array
    log: bool = False
    beyond: str = ""

    def end(self, which: Literal["low", "high"]) -> str:
        """Returns the text at an end."""
        if self.options:
            return self.options[0 if which == "low" else -1]
        sign = {"low": "\N{LESS-THAN OR EQUAL TO} ", "high": "\N{GREATER-THAN OR EQUAL TO} "}[which]
        return (sign if self.beyond == which else "") + short(self.low if which == "low" else self.high)


def parallel_view(study: Study) -> dict[str, Any]:
    """Returns the answered trials as lines through an axis for each parameter and one for the reward."""
    answered = [trial for trial in study.trials if trial.reward is not None]
    listed = _axes(study)
    if len(answered) < 2 or not listed:
        why = "Two answered trials are needed, and a parameter that varies."
        return {"why_not": why, "lines": [], "sides": [], "sentence": ""}
    sign = 1.0 if study.goal == "maximize" else -1.0
    trials = _drawn(answered, sign)
    rewards = np.array([trial.reward for trial in trials], dtype=np.float64)
    sides = [_side(axis, key, [read(trial) for trial in trials]) for axis, key, read in listed[: MOST_AXES - 1]]
    sides.append(_reward_side(study, rewards))
    fifths = _fifths(sign * rewards)
    places = np.linspace(SIDE, WIDTH - SIDE, len(sides))
    lines = [
        {"number": trial.number, "fifth": fifth, "points": _line(places, [side.heights[i] for side in sides])}
        for i, (trial, fifth) in enumerate(zip(trials, fifths, strict=True))
    ]
    left_out = len(listed) - len(sides) + 1
    return {
        "why_not": "",
        "lines": sorted(lines, key=lambda each: each["fifth"]), "width": WIDTH,
        "height": UNDER + (OFF if any(np.isnan(side.heights).any() for side in sides) else BOTTOM),
        "top": TOP, "bottom": BOTTOM, "off": OFF, "word": reward_word(study),
        "legend": [(fifth, name) for fifth, name in CLASSES.items() if name and fifth in fifths],
        "sides": [
            {"x": round(float(x), 1), "ends": [side.low, side.high, side.log], "name": side.name, "key": side.key,
             "low": side.end("low"), "high": side.end("high"), "options": side.options,
             "letters": LETTERS, "up": 32 if len(sides) <= CROWDED or i % 2 else 14,
             "off": bool(np.isnan(side.heights).any())}
            for i, (x, side) in enumerate(zip(places, sides, strict=True))
        ],
        "sentence": f"{short(len(trials))} of " * (len(trials) < len(answered))
        + many(len(answered), "answered trial")
        + ", the best and others evenly spread" * (len(trials) < len(answered))
        + (f", on {len(sides)} axes of {len(listed) + 1}" if left_out > 0 else "") + ". The better, the brighter.",
    }  # fmt: skip


def _axes(study: Study) -> list[tuple[Axis, str, Read]]:
    """Returns the axes of the contexts, then those of the points, with their columns of the grid and their readers."""
    policy, found = study.policy, list[tuple[Axis, str, Read]]()
    if policy.context is not None:
        named = space_of(policy.context) is not None
        for axis in axes(policy.context):
            name = axis.name if named else str(axis.columns.start)
            reader = _reader(policy.context, axis, lambda trial: (trial.context, trial.context_settings))
            found.append((axis if named else axis._replace(name=f"context {name}"), f"context.{name}", reader))
    for axis in axes(policy.domain):
        found.append(
            (axis, _key(study, axis), _reader(policy.domain, axis, lambda trial: (trial.point, trial.settings)))
        )
    return found


def _reader(domain: Domain, axis: Axis, part: Callable[[Trial], tuple[Array | None, Any]]) -> Read:
    """Returns a function that reads the value of a trial along an axis, or None where the axis does not count."""

    def read(trial: Trial) -> Any:
        point, settings = part(trial)
        if point is None or (settings is not None and axis.name not in dict(settings)):
            return None
        return value_at(domain, point, axis)

    return read


def _drawn(answered: Sequence[Trial], sign: float) -> list[Trial]:
    """Returns the trials to draw: all, or the best and others evenly spread."""
    if len(answered) <= MOST_LINES:
        return list(answered)
    rewards = sign * np.array([trial.reward for trial in answered], dtype=np.float64)
    best = np.argsort(-rewards, kind="stable")[:MOST_BEST]
    found = np.unique(np.concatenate([best, spread_evenly(len(answered), MOST_LINES - MOST_BEST)]))
    return [answered[i] for i in found.tolist()]


def _fifths(rewards: Array) -> list[int]:
    """Returns the class of each reward by its rank, 0 for the worst fifth. Equal ones share a mean rank."""
    from scipy.stats import rankdata

    ranks = rankdata(rewards) - 0.5  # between 0 and n
    return [int(fifth) for fifth in len(CLASSES) * ranks // len(rewards)]


def _line(places: Array, heights: Sequence[float]) -> str:
    """Returns the points of a line. At an axis that does not count for a trial the line is below it."""
    ys = [OFF if np.isnan(height) else BOTTOM - height * (BOTTOM - TOP) for height in heights]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(places.tolist(), ys, strict=True))


def _side(axis: Axis, key: str, values: Sequence[Any]) -> _Side:
    """Returns the side of an axis, given the value of each trial, or None where the axis does not count."""
    parameter = axis.parameter
    heights = np.array([np.nan if value is None else _height(parameter, value) for value in values])
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
    """Returns the side of the rewards, to the best one. Few far worse ones lie at its end, which says so."""
    low, high, beyond = float(rewards.min()), float(rewards.max()), ""
    if study.goal == "maximize":
        low, worst = float(np.percentile(rewards, CLIPPED, method="lower")), low
        beyond = "low" if worst < low else ""
    else:
        high, worst = float(np.percentile(rewards, 100.0 - CLIPPED, method="higher")), high
        beyond = "high" if worst > high else ""
    heights = np.clip((rewards - low) / (high - low), 0.0, 1.0) if high > low else np.full(len(rewards), 0.5)
    return _Side(reward_word(study), "reward", low, high, [], heights, beyond=beyond)
