"""The posterior along each axis through a point (the picture `slices`), and over two axes (the picture `contour`).

Form fields choose the point and the context of both pictures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from ...._utils.checks import Array, many, shown, whole_in, written
from ....domains.domain import Arms, Box, Domain, Space, sides, space_of
from ....domains.parameters import Choice, Parameter
from ....errors import InvalidInput, TrialError
from ....plots.along import Place
from ....plots.base import BAND_LABELS
from ....plots.contour_picture import COUNT, contour_panels
from ....plots.page import middles
from ....plots.posterior_picture import posterior_panel
from ....plots.scene import Heat, Panel
from ....plots.slices_picture import Slice, slice_panels, slices_of
from ....plots.source import centre_of, introduced, value_range
from ....policy.policy import Policy
from ....storage.record import Trial
from ....study.direction import has_channels
from ....study.formatting import settings
from ....study.function import Axis, active_axes, answers_for_units, axes, line_through, settings_at, value_at
from ....study.quantities import Quantity, quantities
from ....study.study import Study
from .alternatives import is_expensive
from .pictures import Picture, drawn, short

MOST_LISTED = 60  # values of a coordinate of arms in a list. If there are more, the user types a number.
MOST_FIELDS = 12  # fields of a form
Kind = Literal["p", "c"]  # A field of an address is "p" (point) or "c" (context) and the number of the axis.


class ChosenPoint(NamedTuple):
    """A point `(d,)`, a context `(c,)` or None, and the form fields of both.

    Attributes:
        trial: the trial at the point, if the address names no other point and there are no contexts.
        is_best: True if the point is the best one.
    """

    point: Array
    context: Array | None
    fields: list[dict[str, Any]]
    context_fields: list[dict[str, Any]]
    trial: Trial | None
    is_best: bool

    @property
    def through(self) -> Place:
        """The trial, or the point and its context."""
        return self if self.trial is None else self.trial


def chosen_point(study: Study, query: Mapping[str, str]) -> ChosenPoint:
    """Returns the point and context of an address. Defaults are the best point and the latest context.

    Args:
        study: the study of the picture.
        query: "p0", "p1", ... for axes of the domain and "c0", ... for axes of the contexts. Each value is a number,
            or the index of an option.

    Raises:
        InvalidInput: a value does not fit its axis.
    """
    domain, contexts = study.policy.domain, study.policy.context
    context: Array | None = None
    context_fields: list[dict[str, Any]] = []
    if contexts is not None:
        trials = study.trials
        last = trials[-1].context if len(trials) else None
        context, context_fields = _chosen(contexts, _middle(contexts) if last is None else last, query, "c")
    best = _best_trial(study, context)
    base = _middle(domain) if best is None else best.point
    point, fields = _chosen(domain, base, query, "p")
    is_best = best is not None and bool(np.allclose(point, base, rtol=1e-5, atol=1e-9))
    trial = best if is_best and context is None else None
    return ChosenPoint(point, context, fields if len(fields) > 1 else [], context_fields, trial, is_best)


def _best_trial(study: Study, context: Array | None) -> Trial | None:
    """Returns the trial that pictures go through, that of `centre_of` without contexts."""
    try:
        return centre_of(study) if context is None else study.best(context=context)
    except (InvalidInput, TrialError):
        return None


def _middle(domain: Domain) -> Array:
    """Returns a default point: the middle of each range, the first option, or the first arm."""
    if isinstance(domain, Arms):
        return np.asarray(domain.points[0], dtype=np.float64)
    if isinstance(domain, Box):
        return np.asarray((domain.lower + domain.upper) / 2.0)
    values: dict[str, Any] = {}
    for name, parameter in domain.parameters.items():
        if domain.conditions is None or domain.conditions.is_active(name, values):
            values[name] = _middle_value(parameter)
    return domain.encode(values)


def _middle_value(parameter: Parameter) -> Any:
    return parameter.options[0] if isinstance(parameter, Choice) else parameter.decode(np.array([0.5]))


def _chosen(domain: Domain, base: Array, query: Mapping[str, str], kind: Kind) -> tuple[Array, list[dict[str, Any]]]:
    """Returns the point of the address, and a field for each axis that is active there."""
    listed = axes(domain)[:MOST_FIELDS]
    if isinstance(domain, Space):
        return _of_space(domain, listed, base, query, kind)
    point = base.copy()
    for i, axis in enumerate(listed):
        text = query.get(f"{kind}{i}", "")
        if text:
            point[axis.columns] = _columns(domain, axis, text)
    if isinstance(domain, Arms):  # The nearest arm is taken.
        gaps = (((domain.points - point) / sides(domain)) ** 2).sum(axis=1)
        point = domain.points[int(gaps.argmin())]
    else:
        point = np.clip(point, domain.lower, domain.upper)
    return point, [_field(domain, axis, point, f"{kind}{i}") for i, axis in enumerate(listed)]


def _of_space(
    space: Space, listed: list[Axis], base: Array, query: Mapping[str, str], kind: Kind
) -> tuple[Array, list[dict[str, Any]]]:
    """Reads parents first, because their values decide which parameters are active."""
    there = space.decode(base)
    values: dict[str, Any] = {}
    fields: dict[str, Axis] = {}
    for name, parameter in space.parameters.items():
        if space.conditions is None or space.conditions.is_active(name, values):
            values[name] = there.get(name, _middle_value(parameter))
            at = next((i for i, axis in enumerate(listed) if axis.name == name), None)
            if at is not None:
                text = query.get(f"{kind}{at}", "")
                if text:
                    values[name] = _value(listed[at], text)
                fields[f"{kind}{at}"] = listed[at]
    point = space.encode(values)
    return point, [_field(space, axis, point, key) for key, axis in fields.items()]


def _columns(domain: Domain, axis: Axis, text: str) -> Any:
    value = _value(axis, text)
    return axis.parameter.encode(value) if space_of(domain) is not None else [value]


def _value(axis: Axis, text: str) -> Any:
    """Returns the value of a field, where an option is given by its index."""
    parameter = axis.parameter
    if isinstance(parameter, Choice):
        place = whole_in(text)
        if place is not None and 0 <= place < len(parameter.options):
            return parameter.options[place]
        raise InvalidInput(f"`{axis.name}` has no option number {shown(text)}: choose one that is listed.")
    value = written(text)
    if value is None or not math.isfinite(value):
        raise InvalidInput(f"`{axis.name}` is {shown(text)}: type a number.")
    value = min(max(value, float(parameter.low)), float(parameter.high))
    return value if parameter.real else parameter.decode(np.array([parameter.position(value)]))


def _field(domain: Domain, axis: Axis, point: Array, key: str) -> dict[str, Any]:
    """Returns the description of a form field."""
    value, parameter = value_at(domain, point, axis), axis.parameter
    field = {"key": key, "name": axis.name, "value": value, "options": None, "low": None, "high": None, "step": None}
    if isinstance(parameter, Choice):
        at, named = parameter.place(point[axis.columns]), enumerate(map(short, parameter.options))
        return field | {"options": [{"value": str(i), "text": text, "chosen": i == at} for i, text in named]}
    if isinstance(domain, Arms):
        present = np.unique(domain.points[:, axis.columns.start])
        if len(present) <= MOST_LISTED:
            return field | {"options": _listed(domain, axis, present, float(point[axis.columns.start]))}
    return field | {
        "value": "" if value is None else _plain(value), "low": _plain(parameter.low), "high": _plain(parameter.high),
        "low_said": short(parameter.low), "high_said": short(parameter.high),
        "step": "any" if parameter.real or parameter.step is None else _plain(parameter.step),
    }  # fmt: skip


def _listed(domain: Arms, axis: Axis, present: Array, at: float) -> list[dict[str, Any]]:
    named = domain.space is not None
    values: list[Any] = [axis.parameter.decode(np.array([each])) if named else each for each in present.tolist()]
    return [
        {"value": _plain(value), "text": short(value), "chosen": each == at}
        for value, each in zip(values, present.tolist(), strict=True)
    ]


def _plain(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(f"{value:.6g}"))


MOST_SLICES = 8  # pictures along an axis
MOST_POINTS, FEWEST_POINTS = 81, 15  # along a real parameter
FEWEST_SIDE = 11  # cells along an axis of a map
WORK, MAP_WORK = 1.5e9, 2e9  # multiplications for all slices, and for a map


class _Section(NamedTuple):
    """A posterior through a point, of the reward, a constraint or a metric."""

    study: Study
    at: ChosenPoint
    of: Quantity

    @property
    def low(self) -> bool:
        """True if lower values are better."""
        return not self.of.upward

    @property
    def name(self) -> str:
        """Name of the drawn quantity."""
        return _name(self.of)


def posterior_view(study: Study, query: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Returns pictures of the posterior, and the fields of the form that chooses their point.

    Args:
        study: a study with any policy.
        query: "p0", ..., "c0", ... choose the point and the context (see `chosen_point`). "channel" is 0 for the
            reward, the number of a constraint, or "metrics." and the name of a metric.
            "x" and "y" are the numbers of the axes of the map.

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
    section = _Section(study, at, quantity_at(study, query.get("channel", "")))
    lines = active_axes(policy.domain, at.point)
    shown = lines if len(lines) <= MOST_SLICES else _by_variation(section, lines)[:MOST_SLICES]
    found = sorted(_slices(section, shown, _points(study, len(lines))), key=lambda one: -_variation([one], one.axis))
    slices = _slice_pictures(section, found)
    if isinstance(policy.domain, Arms) and (
        study.replica.roster.unordered or not any(len(one.values) > 2 for one in found)
    ):  # Arms without an order, which names show, are ranked by their posterior mean.
        slices = [_ranked(section)]
    pair = _pair(query, lines, found)
    maps = [] if pair is None else _maps(section, pair)
    return {
        "slices": slices, "maps": maps, "fields": at.fields, "context_fields": at.context_fields,
        "channels": listed(section.of), "axes": _axes_listed(lines, pair) if maps else [],
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
    found = whole_in(text)
    if found is None or not 0 <= found <= most:
        raise InvalidInput(f"There is no {key} number {text[:20]!r} here: it is a number from 0 to {most}.")
    return found


# -- what is seen ------------------------------------------------------------------------------------------------


def _points(study: Study, lines: int) -> int:
    """Returns the number of points along an axis that the work allows."""
    if not is_expensive(study):
        return MOST_POINTS
    answers = sum(trial.reward is not None for trial in study.trials)
    return int(min(MOST_POINTS, max(FEWEST_POINTS, WORK / max(1.0, float(answers) ** 2 * lines))))


def _slices(section: _Section, axes: list[Axis], count: int) -> list[Slice]:
    """Returns a slice along each axis that has several points."""
    study, through = section.study, section.at.through
    try:
        several = slices_of(study, through, None, of=section.of, count=count, among=axes)
    except InvalidInput:  # No arm differs from this one in one coordinate only.
        return []
    return several


def _slice_pictures(section: _Section, found: list[Slice]) -> list[Picture]:
    study, of = section.study, section.of
    limits = value_range(None, study, of)
    panels = slice_panels(found, study, section.at.through, limits, section.name, of=of, in_a_row=1)
    return [
        drawn(f"Along {one.axis.name}", _of_slice(section, one) + _left_out(one), [panel])
        for one, panel in zip(found, panels, strict=True)
    ]


def _left_out(one: Slice) -> str:
    said = f" Drawn are the best {len(one.values)} of {len(one.values) + one.left_out}." if one.left_out else ""
    return said + "".join(f" It assumes {text}." for text in one.assumed)


def _of_slice(section: _Section, one: Slice) -> str:
    middle, word = one.middle, "posterior mean" if one.quantiles is None else "posterior median"
    said = f"The {word} of {'the ' * (section.of.channel == 0)}{section.name}"
    if not np.ptp(middle):
        return f"{said} is {short(float(middle[0]))} all along {one.axis.name}: nothing tells it apart."
    top = int(middle.argmin() if section.low else middle.argmax())
    if one.quantiles is None:
        band, low, high = BAND_LABELS[one.band.band], one.band.lower[top], one.band.upper[top]
    else:
        band, low, high = "95% of the posterior", one.quantiles[0][top], one.quantiles[-1][top]
    return (
        f"{said} lies between {short(float(middle.min()))} and {short(float(middle.max()))} along {one.axis.name}; "
        f"{'lowest' if section.low else 'highest'} at {short(one.values[top])}, with {band} from {short(float(low))} "
        f"to {short(float(high))}."
    )


def _ranked(section: _Section) -> Picture:
    """Returns the posterior of the arms in the order of its mean."""
    study, arms = section.study, section.study.policy.domain
    panel = posterior_panel(section.of, context=section.at.context, label=section.name, ranked=True)
    found = section.of.band(arms.points, section.at.context)  # type: ignore[union-attr]
    best = int(found.mean.argmin() if section.low else found.mean.argmax())
    point = arms.points[best]  # type: ignore[union-attr]
    first = settings(_settings_of(study, point), point.tolist(), best, names=study.replica.roster.names)
    summary = (
        f"{many(len(found.mean), 'arm')} in the order of the posterior mean. First is {first}, with "
        f"{short(float(found.mean[best]))}, {BAND_LABELS[found.band]} from {short(float(found.lower[best]))} to "
        f"{short(float(found.upper[best]))}."
    )
    return drawn("Arms, the best first", summary, [panel])


def _maps(section: _Section, pair: tuple[Axis, Axis]) -> list[Picture]:
    """Returns the maps of the median and of its uncertainty, or none if the arms lie on no grid."""
    study, of = section.study, section.of
    answers = sum(trial.reward is not None for trial in study.trials)
    cells = (MAP_WORK if is_expensive(study) else np.inf) / max(1.0, float(answers) ** 2)
    limits, side = value_range(None, study, of), int(min(COUNT, max(FEWEST_SIDE, cells**0.5)))
    try:
        panels = contour_panels(study, of, section.at.through, pair, section.name, limits, count=side)
    except InvalidInput:
        return []
    over = f"{pair[0].name} and {pair[1].name}"
    titles = (over, f"How uncertain: {over}")
    return [
        drawn(title, _of_map(panel, over, low=section.low and not i), [panel])
        for i, (title, panel) in enumerate(zip(titles, panels, strict=True))
    ]


def _of_map(panel: Panel, over: str, *, low: bool) -> str:
    (heat,) = (mark for mark in panel.marks if isinstance(mark, Heat))
    row, column = np.unravel_index(int((np.nanargmin if low else np.nanargmax)(heat.z)), heat.z.shape)
    title, *assumed = panel.title.split("\n", 1)
    name = f"{title} of the {heat.label}" if not heat.uncertain else heat.label
    ends = f"from {short(float(np.nanmin(heat.z)))} to {short(float(np.nanmax(heat.z)))}"
    words = [side[int(i)] for side, i in zip(middles(panel), (column, row), strict=True)]
    where = f"{panel.x.label} {words[0]} and {panel.y.label} {words[1]}"
    extreme = "widest" if heat.uncertain else "lowest" if low else "highest"
    return f"{name[0].upper()}{name[1:]} over {over}: {ends}, {extreme} at {where}." + "".join(
        f" It assumes {text}." for text in assumed
    )


def _settings_of(study: Study, point: Array) -> dict[str, Any] | None:
    """Returns the parameters at a point, or None if the domain has no named parameters."""
    found = settings_at(study.policy.domain, point)
    return None if found is None else dict(found)


# -- the form ----------------------------------------------------------------------------------------------------


def _pair(query: Mapping[str, str], lines: list[Axis], slices: list[Slice]) -> tuple[Axis, Axis] | None:
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


def _variation(slices: list[Slice], one: Axis) -> float:
    """Returns by how much the median varies along an axis, or -1 without a slice."""
    return next((float(np.ptp(each.middle)) for each in slices if each.axis == one), -1.0)


def _by_variation(section: _Section, lines: list[Axis]) -> list[Axis]:
    """Returns the axes by how much the mean varies along them, looked at in few places, all at once."""
    domain = section.study.policy.domain
    places = [line_through(domain, section.at.point, one, count=FEWEST_POINTS)[1] for one in lines]
    means = _mean(section, np.concatenate(places))
    parts = np.split(means, np.cumsum([len(each) for each in places])[:-1])
    return [lines[i] for i in np.argsort([-np.ptp(part) if len(part) else 1.0 for part in parts], kind="stable")]


def _mean(section: _Section, points: Array) -> Array:
    return section.of.band(points, section.at.context).mean


def _axes_listed(lines: list[Axis], pair: tuple[Axis, Axis] | None) -> list[dict[str, Any]]:
    x, y = (None, None) if pair is None else pair
    return [{"value": str(i), "text": one.name, "x": one == x, "y": one == y} for i, one in enumerate(lines)]


def _name(of: Quantity) -> str:
    """Returns the name of the drawn quantity."""
    study = of.study
    charged = of.channel == 0 and study.policy.constraint_count and not has_channels(study.policy)
    sign = "less" if study.goals[0] == "maximize" else "plus"
    return f"{of.name} {sign} what violations are charged" if charged else of.name


def offered(study: Study) -> list[Quantity]:
    """Returns the numbers whose model can be drawn: those with a posterior, and those that two trials told."""
    return [each for each in quantities(study) if each.modelled or len(each.trials) > 1]


def quantity_at(study: Study, key: str) -> Quantity:
    """Returns the number that a form chose, by its key, or the reward.

    Raises:
        InvalidInput: there is no such number.
    """
    known = {each.key: each for each in offered(study)}
    if key and key not in known:
        raise InvalidInput(f"There is no channel {shown(key)} here: there are {', '.join(known)}.")
    return known[key or "0"]


def listed(chosen: Quantity) -> list[dict[str, Any]]:
    """Returns the options of a form that chooses a number, or none if there is the reward alone."""
    every = offered(chosen.study)
    options = [{"value": each.key, "text": each.name, "chosen": each.key == chosen.key} for each in every]
    return options if len(options) > 1 else []


def _place_text(study: Study, at: ChosenPoint) -> str:
    if study.policy.domain.dimension == 1:
        return ""
    if at.trial is not None:
        return f"Through {introduced(study, at.trial)}."
    named = settings(_settings_of(study, at.point), at.point.tolist(), None)
    return ("Through the recommended point, " if at.is_best else "Through ") + named + "."
