"""The point and the context of the pictures of the posterior, and the form fields that choose them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from ...._utils.checks import Array, shown, whole_in, written
from ....domains.domain import Arms, Box, Domain, Space, sides, space_of
from ....domains.parameters import Choice, Parameter
from ....errors import InvalidInput, TrialError
from ....plots.along import Place
from ....plots.source import centre_of
from ....storage.record import Trial
from ....study.function import Axis, axes, value_at
from ....study.study import Study
from .pictures import short

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
