"""The posterior and its bounds along each axis through a point, and over two axes as a map."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np

from ...._utils.checks import Array
from ....domains.domain import Arms
from ....domains.parameters import Choice, Int
from ....errors import InvalidInput
from ....plots.along import contexts_of, faded, seen_along
from ....plots.source import function_of
from ....policy.policy import Policy
from ....policy.state import State
from ....storage.record import Trial
from ....study.definition import constraint_names
from ....study.direction import has_channels
from ....study.explanation import PosteriorBand
from ....study.formatting import settings
from ....study.function import (
    Axis,
    Function,
    active_axes,
    agrees,
    answers_for_units,
    line_through,
    settings_at,
    space_of,
    value_at,
)
from ....study.study import Study
from .alternatives import counted_from
from .chosen_point import ChosenPoint, chosen_point
from .maps import is_expensive, posterior_map, spread_map
from .pictures import (
    MOST_DOTS,
    Picture,
    axis,
    band_layer,
    count_bars,
    dots,
    empty,
    line,
    lines_picture,
    many,
    short,
    spread_evenly,
    table,
)
from .progress import reward_word

TITLE = "What is believed"
MOST_SLICES = 8  # pictures along an axis
MOST_POINTS, FEWEST_POINTS = 101, 15  # along a real parameter
FEW_ARMS = 8  # whose names stand at the axis
MOST_ARMS = 2000  # arms along a line
ROWS = 12  # rows of a table
WORK = 1.5e9  # multiplications for all slices

BANDS = {
    "proved": "proved bounds", "policy": "the policy's bounds", "deviations": "two standard deviations to either side",
}  # fmt: skip

INNER = (("80% of the posterior", 0.1, 0.9), ("50% of the posterior", 0.25, 0.75))  # bands within the widest one

Predict = Callable[[Array], PosteriorBand]


class _Section(NamedTuple):
    """A study's posterior through a point, as it is drawn.

    Attributes:
        study: the study.
        at: the point and the context.
        predict: returns mean and band at points `(n, d)`.
        channel: 0 for the reward, or the number of a constraint.
        function: model of the reward, or None for a constraint.
    """

    study: Study
    at: ChosenPoint
    predict: Predict
    channel: int
    function: Function | None


def posterior_view(study: Study, query: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Returns pictures of the posterior, and the fields of the form that chooses their point.

    Args:
        study: a study with any policy.
        query: "p0", ..., "c0", ... choose the point and the context (see `chosen_point`). "channel" is 0 for the
            reward, or the number of a constraint. "x" and "y" are the numbers of the axes of the map.

    Raises:
        InvalidInput: a value of the query does not exist.
    """
    query = query or {}
    policy = study.policy
    if not isinstance(policy, Policy):
        why = f"{policy.algorithm} goes by a script and keeps no posterior, so there is nothing to draw."
        return _nothing(why)
    if all(trial.reward is None for trial in study.trials):
        return _nothing("No trial has been answered yet, so nothing is known but what the policy assumes.")
    if answers := study.replica.query(answers_for_units):
        return _nothing(f"The model has no units yet: it learns them from the first {answers} answers.")
    at = chosen_point(study, query)
    channel = _number(query, "channel", policy.constraint_count if has_channels(policy) else 0)
    predict = partial(study.band, context=at.context, channel=channel)
    section = _Section(study, at, predict, channel, None if channel else function_of(study))
    lines = active_axes(policy.domain, at.point)
    count = _points(study, len(lines))
    shown = lines if len(lines) <= MOST_SLICES else _by_variation(section, lines)[:MOST_SLICES]
    slices = [each for each in (_slice(section, one, count) for one in shown) if each is not None]
    slices.sort(key=lambda each: -_spread_of(each))
    if isinstance(policy.domain, Arms) and (
        study.replica.roster.unordered or not any(len(each["layers"][0]["x"]) > 2 for each in slices)
    ):  # Arms without an order, which names show, are ranked by their posterior mean.
        slices = [_ranked(section)]
    pair = _pair(query, lines, slices)
    drawn = (
        None
        if pair is None
        else posterior_map(
            study, at, pair, predict, name=_mean_of(study, channel), low=study.goal == "minimize" or channel > 0
        )
    )
    return {
        "slices": slices, "maps": [] if drawn is None else [drawn, spread_map(drawn)],
        "fields": at.fields, "context_fields": at.context_fields,
        "channels": _channels(study, channel), "axes": _axes_listed(lines, pair) if drawn is not None else [],
        "where": _place_text(study, at), "left_out": [one.name for one in lines if one not in shown], "why": "",
    }  # fmt: skip


def _nothing(why: str) -> dict[str, Any]:
    return {
        "slices": [], "maps": [], "fields": [], "context_fields": [], "channels": [], "axes": [], "where": "",
        "left_out": [], "why": why,
    }  # fmt: skip


def _number(query: Mapping[str, str], key: str, most: int, default: int = 0) -> int:
    text = query.get(key, "")
    if not text:
        return default
    if not (text.isdecimal() and len(text) < 6 and int(text) <= most):
        raise InvalidInput(f"There is no {key} number {text[:20]!r} here: it is a number from 0 to {most}.")
    return int(text)


# -- what is seen ------------------------------------------------------------------------------------------------


def _points(study: Study, lines: int) -> int:
    """Returns the number of points along an axis that the work allows."""
    if not is_expensive(study):
        return MOST_POINTS
    answers = sum(trial.reward is not None for trial in study.trials)
    return int(min(MOST_POINTS, max(FEWEST_POINTS, WORK / max(1.0, float(answers) ** 2 * lines))))


def _slice(section: _Section, along: Axis, count: int) -> Picture | None:
    """Returns the posterior along one axis, or None if the axis has a single point."""
    study, at, domain = section.study, section.at, section.study.policy.domain
    values, points = line_through(domain, at.point, along, count=count)
    if len(points) < 2:
        return None
    kept = spread_evenly(len(points), MOST_ARMS)
    values, points = [values[i] for i in kept.tolist()], points[kept]
    found = section.predict(points)
    named = isinstance(along.parameter, Choice)
    xs = np.arange(len(values), dtype=np.float64) if named else np.array(values, dtype=np.float64)
    log = not named and along.parameter.log  # type: ignore[union-attr]
    return _curve(section, f"Along {along.name}", along.name, xs, values, points, found) | {
        "x": axis(along.name, log=log, whole=isinstance(along.parameter, Int), names=values if named else None),
        "dots": _dots_along(section, along, values), "discrete": named or len(values) <= 12,
        "here": _marked_place(values, value_at(domain, at.point, along), named),
        "here_name": "recommended" if at.is_best else "the point chosen",
        "table": _table(along.name, values, found, _mean_of(study, section.channel)),
    }  # fmt: skip


def _curve(
    section: _Section, title: str, label: str, xs: Array, values: list[Any], points: Array, found: PosteriorBand
) -> Picture:
    study, channel = section.study, section.channel
    mean_of, band, mean = _mean_of(study, channel), _band_name(section, found), found.mean
    top = int(mean.argmax() if study.goal == "maximize" and not channel else mean.argmin())
    extreme = "highest" if study.goal == "maximize" and not channel else "lowest"
    summary = (
        f"The {mean_of} lies between {short(float(mean.min()))} and {short(float(mean.max()))} "
        f"along {label}; {extreme} at {short(values[top])}, with {band} from {short(float(found.lower[top]))} to "
        f"{short(float(found.upper[top]))}."
    )
    if not np.ptp(mean):
        summary = f"The {mean_of} is {short(float(mean[0]))} all along {label}: nothing tells it apart."
    layers = band_layer(xs, found.lower, found.upper, line(mean_of, mean, "main"), band)
    _add_inner_bands(section, points, layers)
    return lines_picture(
        title,
        summary,
        x=axis(label),
        y=axis(_name(study, channel)),
        zero="the limit" if channel else None,
        cropped=True,
        **layers,
    )


def _band_name(section: _Section, found: PosteriorBand) -> str:
    """Returns what the widest band is. Bounds of warped rewards are quantiles."""
    if found.band != "policy" or section.channel:
        return BANDS[found.band]
    width = section.study.replica.query(lambda state: cast(State, state).settled().bounds().width)
    return BANDS[found.band] if width is None else f"{math.erf(width / math.sqrt(2.0)):.0%} of the posterior"


def _add_inner_bands(section: _Section, points: Array, layers: dict[str, Any]) -> None:
    """Adds the middle 80% and 50% of the posterior of the reward, without noise, at points `(n, d)`."""
    if section.function is None:
        return
    levels = [level for _, *ends in INNER for level in ends]
    found = section.function.quantiles(levels, points, contexts_of(section.at, len(points)))
    series = layers["layers"][0]["series"]
    for i, (name, *_) in enumerate(INNER):
        layers["bands"].append({"layer": 0, "low": len(series), "high": len(series) + 1, "color": "main", "name": name})
        series += [line(name, each, "main", style="hidden") for each in found[2 * i : 2 * i + 2]]


def _ranked(section: _Section) -> Picture:
    """Returns the posterior of the arms in the order of its mean."""
    study, channel, arms = section.study, section.channel, section.study.policy.domain
    if not isinstance(arms, Arms):
        return empty(TITLE, "")
    found = section.predict(arms.points)
    order = np.argsort(-found.mean if study.goal == "maximize" and not channel else found.mean, kind="stable")
    kept = order[spread_evenly(len(order), MOST_ARMS)]
    shown = PosteriorBand(found.mean[kept], found.lower[kept], found.upper[kept], found.band)
    names = [study.replica.roster.called(arm) for arm in kept.tolist()]
    named = len(names) <= FEW_ARMS  # The places of names are 0, 1, 2, ..., and ranks begin at 1.
    xs = np.arange(float(len(kept))) + (0.0 if named else 1.0)
    picture = _curve(section, "Arms, the best first", "rank", xs, names, arms.points[kept], shown)
    best = int(kept[0])
    point = arms.points[best]
    first = settings(_settings_of(study, point), point.tolist(), best, names=study.replica.roster.names)
    picture["x"] = axis("arm", names=names) if named else axis("rank", whole=True)
    picture["summary"] = (
        f"{many(len(arms), 'arm')} in the order of the posterior mean. First is {first}, with "
        f"{short(float(shown.mean[0]))}, {_band_name(section, shown)} from {short(float(shown.lower[0]))} to "
        f"{short(float(shown.upper[0]))}."
    )
    table_ = _table("arm", names, shown, _mean_of(study, channel))
    return picture | {"table": table_, "discrete": len(kept) <= 60, "here": None}


def _settings_of(study: Study, point: Array) -> dict[str, Any] | None:
    """Returns the parameters at a point, or None if the domain has no named parameters."""
    found = settings_at(study.policy.domain, point)
    return None if found is None else dict(found)


def _marked_place(values: list[Any], value: Any, named: bool) -> float | None:
    if named:
        return float(values.index(value)) if value in values else None
    return float(value)


def _dots_along(section: _Section, along: Axis, values: list[Any]) -> list[dict[str, Any]]:
    """Returns how often each place of the axis was chosen, and the values told on this line and beside it."""
    study, at, channel = section.study, section.at, section.channel
    domain, trials = study.policy.domain, study.trials
    named = isinstance(along.parameter, Choice)
    places: dict[Any, float] = {value: float(i) for i, value in enumerate(values)} if named else {}
    points = np.array([trial.point for trial in trials[: len(trials)]])
    if not len(points):
        return []
    counts = _active_mask(study, points, along)
    rows, where = np.unique(points[counts][:, along.columns], axis=0, return_inverse=True)
    chosen: list[Any] = [along.parameter.decode(row) if space_of(domain) is not None else float(row[0]) for row in rows]
    xs = np.array([places.get(value, np.nan) if named else float(value) for value in chosen])
    found = [count_bars(xs[where.reshape(-1)], named=named, log=not named and along.parameter.log)] if len(xs) else []  # type: ignore[union-attr]
    recent = [trial for trial in trials[-10 * MOST_DOTS :] if _value_told(trial, channel) is not None]
    if not recent:
        return found
    there = agrees(domain, np.array([trial.point for trial in recent]), at.point, (along,))
    is_on = [bool(is_there) and _same_context(t, at) for t, is_there in zip(recent, there, strict=True)]
    on = [trial for trial, is_there in zip(recent, is_on, strict=True) if is_there][-MOST_DOTS:]
    beside = [trial for trial, is_there in zip(recent, is_on, strict=True) if not is_there]
    since = counted_from(study, len(trials))
    found += _dots_beside(section, along, [trial for trial in beside if trial.number >= since][-MOST_DOTS:], places)
    for name, shape, those in (
        ("told here", "dot", [trial for trial in on if trial.number >= since]),
        ("told here before, forgotten by now", "ring", [trial for trial in on if trial.number < since]),
    ):
        at_x = [value_at(domain, trial.point, along) for trial in those]
        xs = np.array([places.get(value, np.nan) if named else float(value) for value in at_x])
        if those:
            found.append(dots(name, xs, [_value_told(trial, channel) or 0.0 for trial in those], "dot", shape=shape))
    return found


def _dots_beside(section: _Section, along: Axis, trials: list[Trial], places: dict[Any, float]) -> list[dict[str, Any]]:
    """Returns the rewards of trials that are not on this line, the paler the less they say about it."""
    if section.function is None or not trials:
        return []
    seen = seen_along(section.study, section.function, section.at, [along], trials)
    xs = np.array([places.get(x, np.nan) if places else float(x) for x in seen.values[0]], dtype=np.float64)
    rewards = [trial.reward or 0.0 for trial in seen.trials]
    shares = [round(share, 2) for share in faded(seen.close).tolist()]
    name = "other trials, the paler the less they say here"
    return [dots(name, xs, rewards, "dot", shape="faded") | {"shares": shares}] if len(xs) else []


def _active_mask(study: Study, points: Array, along: Axis) -> Any:
    """Returns the mask of the points `(n, d)` where the parameter of the axis is active, `(n,)`."""
    space = space_of(study.policy.domain)
    mask = None if space is None else space.active(points)
    return np.ones(len(points), dtype=bool) if mask is None else mask[:, along.columns.start]


def _same_context(trial: Trial, at: ChosenPoint) -> bool:
    return at.context is None or (trial.context is not None and np.array_equal(trial.context, at.context))


def _value_told(trial: Trial, channel: int) -> float | None:
    if not channel:
        return trial.reward
    known = () if trial.constraints is None else trial.constraints.tolist()
    return known[channel - 1] if len(known) >= channel else None


def _table(label: str, values: list[Any], found: PosteriorBand, name: str) -> dict[str, Any]:
    rows = spread_evenly(len(values), ROWS).tolist()
    head = [label, name, "from", "to"]
    return table(head, [(values[i], found.mean[i], found.lower[i], found.upper[i]) for i in rows])


# -- the form ----------------------------------------------------------------------------------------------------


def _pair(query: Mapping[str, str], lines: list[Axis], slices: list[Picture]) -> tuple[Axis, Axis] | None:
    """Returns the two axes of the map: those of the query, or those along which the posterior varies most."""
    if len(lines) < 2:
        return None
    moves = [_variation(slices, one) for one in lines]
    ranked = sorted(range(len(lines)), key=lambda i: -moves[i])
    first, second = sorted(ranked[:2])
    x = _number(query, "x", len(lines) - 1, first)
    y = _number(query, "y", len(lines) - 1, second)
    if x == y:
        y = next(i for i in (*ranked, 0) if i != x)
    return lines[x], lines[y]


def _variation(slices: list[Picture], one: Axis) -> float:
    return next((_spread_of(picture) for picture in slices if picture["x"]["label"] == one.name), -1.0)


def _spread_of(picture: Picture) -> float:
    """Returns by how much the mean varies along a slice."""
    values = [value for value in picture["layers"][0]["series"][2]["values"] if value is not None]
    return max(values) - min(values) if values else 0.0


def _by_variation(section: _Section, lines: list[Axis]) -> list[Axis]:
    """Returns the axes by how much the mean varies along them, looked at in few places, all at once."""
    domain = section.study.policy.domain
    places = [line_through(domain, section.at.point, one, count=FEWEST_POINTS)[1] for one in lines]
    means = section.predict(np.concatenate(places)).mean
    parts = np.split(means, np.cumsum([len(each) for each in places])[:-1])
    return [lines[i] for i in np.argsort([-np.ptp(part) if len(part) else 1.0 for part in parts], kind="stable")]


def _axes_listed(lines: list[Axis], pair: tuple[Axis, Axis] | None) -> list[dict[str, Any]]:
    x, y = (None, None) if pair is None else pair
    return [{"value": str(i), "text": one.name, "x": one == x, "y": one == y} for i, one in enumerate(lines)]


def _name(study: Study, channel: int) -> str:
    """Returns the name of the drawn quantity."""
    if channel:
        return constraint_names(study.about, study.policy.constraint_count)[channel - 1]
    word = reward_word(study)
    charged = study.policy.constraint_count and not has_channels(study.policy)
    sign = "less" if study.goal == "maximize" else "plus"
    return f"{word} {sign} what violations are charged" if charged else word


def _mean_of(study: Study, channel: int) -> str:
    """Returns the name of the lines and colours."""
    return "posterior mean of " + "the " * (not channel) + _name(study, channel)


def _channels(study: Study, channel: int) -> list[dict[str, Any]]:
    if not has_channels(study.policy):
        return []
    names = [reward_word(study), *constraint_names(study.about, study.policy.constraint_count)]
    return [{"value": str(j), "text": name, "chosen": j == channel} for j, name in enumerate(names)]


def _place_text(study: Study, at: ChosenPoint) -> str:
    if study.policy.domain.dimension == 1:
        return ""
    named = settings(_settings_of(study, at.point), at.point.tolist(), None)
    return ("Through the recommended point, " if at.is_best else "Through ") + named + "."
