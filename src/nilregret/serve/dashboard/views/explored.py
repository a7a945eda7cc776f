"""Importance of the parameters by the model, and all trials on parallel axes (the pictures of these names)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...._utils.checks import many
from ...._utils.numerals import numeral
from ....domains.domain import space_of
from ....domains.parameters import Choice
from ....errors import NoRegretError
from ....plots.overview_picture import deciding, importance_panels
from ....plots.parallel_picture import axes_of_trials, context_axes, ends_of, limits_of, parallel_panel
from ....plots.scene import Panel
from ....study.function import Axis, axes
from ....study.importance import Importance, Indices, importance
from ....study.quantities import Quantity, objectives, quantities
from ....study.study import Study
from .columns import PARAMETERS, columns_of, objective_key
from .pictures import Picture, drawn, short
from .posterior import listed, quantity_at

MOST_AXES, MOST_METRICS = 14, 4  # of parallel axes, and of these for metrics


def importance_view(study: Study, key: str = "") -> dict[str, Any]:
    """Returns the importance of each parameter, or the reason why there is none. It is kept until the study changes.

    Args:
        study: any study.
        key: of the number that the parameters move, or "" for the reward (see `quantity_at`).
    """

    def made() -> dict[str, Any]:
        of = quantity_at(study, key)
        try:
            view = _importance(importance(of), of)
        except NoRegretError as error:
            view = {"why_not": str(error), "pictures": [], "sentence": ""}
        return view | {"channels": listed(of)}

    return study.replica.kept(("importance", key), made)


def _importance(found: Importance, of: Quantity) -> dict[str, Any]:
    pairs = found.pairs(1)
    value, best = importance_panels(found, of)
    panels = (value, replace(best, y=value.y))  # Each has the names.
    parts = zip(("value", "best"), panels, (found.value, found.best), strict=True)
    second = "For satisfying it" if of.limited else f"For being among {deciding(of)}"
    titles = {"value": "For the value", "best": second}
    return {
        "why_not": "",
        "sentence": f"{_said_above(value)} {found.certainty[0].upper()}{found.certainty[1:]}.",
        "pictures": [_shares(titles[name], found, indices, panel) for name, panel, indices in parts],
        "pair": " and ".join(pairs[0]) if pairs else "",
    }  # fmt: skip


def _shares(title: str, found: Importance, indices: Indices, panel: Panel) -> Picture:
    """Returns a picture of shares with its table."""
    rows = [[found.names[i], *_said(indices, i)] for i in found.order.tolist()]
    table = {"head": ["parameter", "in all", "90% interval", "alone"], "rows": rows}
    return drawn(title, _said_above(panel), [panel.at(0, 0)]) | {"table": table}


def _said_above(panel: Panel) -> str:
    """Returns the title of a panel as a sentence."""
    return panel.title.replace("\n", " ") + "."


def _said(indices: Indices, i: int) -> list[str]:
    low, high = (float(end[i]) for end in indices.total_interval)
    return [f"{indices.total[i]:.0%}", f"{low:.0%} to {high:.0%}", f"{indices.first[i]:.0%}"]


# -- parallel axes -----------------------------------------------------------------------------------------------


def parallel_view(study: Study) -> dict[str, Any]:
    """Returns the picture of the answered trials as lines, and the fields that select trials by ranges."""
    answered = sum(trial.reward is not None for trial in study.trials)
    every = axes_of_trials(study)
    if answered < 2 or not every:
        why = "Two answered trials are needed, and a parameter that varies."
        return {"why_not": why, "picture": None, "sides": []}
    metrics = [each for each in quantities(study) if each.channel is None][:MOST_METRICS]
    told = objectives(study)
    shown = every[: MOST_AXES - len(told) - len(metrics)]
    panel = parallel_panel(study, shown, None, beside=metrics)
    sides = [_side(study, axis) for axis in shown]
    sides += [_field(each.name, each.key, *ends_of(each)) for each in metrics]
    sides += [_field(each.name, objective_key(each.channel or 0), *limits_of(each)) for each in told]
    more = f", on {len(sides)} axes of {len(every) + len(told) + len(metrics)}" if len(every) > len(shown) else ""
    summary = f"{many(answered, 'answered trial')}{more}. {panel.title[0].upper()}{panel.title[1:]}."
    brush = [{"key": side["key"], "ends": side["ends"]} for side in sides]
    picture = drawn("All trials on parallel axes", summary, [panel]) | {"table": None, "brush": brush}
    return {"why_not": "", "picture": picture, "sides": sides}


def _side(study: Study, axis: Axis) -> dict[str, Any]:
    """Returns the field of a parameter."""
    parameter, key = axis.parameter, _key(study, axis)
    if isinstance(parameter, Choice):
        options = [short(option) for option in parameter.options]
        return _field(axis.name, key, 0.0, float(len(options) - 1), options=options)
    return _field(
        axis.name, key, float(parameter.low), float(parameter.high), log=bool(getattr(parameter, "log", False))
    )


def _field(
    name: str, key: str, low: float, high: float, *, options: Sequence[str] = (), log: bool = False
) -> dict[str, Any]:
    """Returns a field of the form. Its ends are those of the axis, with True for a logarithmic one."""
    return {
        "name": name, "key": key, "ends": [low, high, log], "options": list(options), "low": numeral(low),
        "high": numeral(high),
    }  # fmt: skip


def _key(study: Study, axis: Axis) -> str:
    """Returns the key of the column with the values of a parameter or coordinate."""
    of_contexts = context_axes(study)
    if axis in of_contexts:
        original = axes(study.policy.context)[of_contexts.index(axis)]  # type: ignore[arg-type]
        named = space_of(study.policy.context) is not None  # type: ignore[arg-type]
        return f"context.{original.name if named else axis.columns.start}"
    if space_of(study.policy.domain) is None:
        return f"point.{axis.columns.start}"
    other = PARAMETERS + axis.name
    return other if other in columns_of(study).layout else axis.name
