"""The front of several objectives: a picture, a table of its trials, and which of them given weights choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

from ...._utils.checks import Array, many
from ....errors import NoRegretError
from ....plots.front_picture import front_panels
from ....plots.scene import Panel
from ....plots.source import leaders_of
from ....storage.trial import Trial
from ....study.formatting import where
from ....study.front import Front
from ....study.study import Study
from ...wire.problems import Problem, about
from .forms import number
from .pictures import Picture, drawn, empty, has_front, names_of, short, values_text

MOST_ROWS = 100  # trials of the front in the table
LONGEST = 24  # characters of a name in a list of values
TITLE = "The front"
NO_FRONT = "No trial with an answer keeps the limits yet, so there is no front."
WHAT = (
    "No other trial that keeps the limits is at least as good in the posterior mean of every objective, and better in "
    "one."
)


def front_now(study: Study) -> Front:
    """Returns the front of a study with several objectives, computed again after each event but reports."""
    return study.replica.kept("front", study.front_values)


def reference_text(study: Study) -> str:
    """Returns the reference of the hypervolume in words, and that it moves unless the policy was given one."""
    given = getattr(getattr(study.policy, "constraints", None), "reference", None)
    moves = " (which follows from the answers)" * (given is None)
    return listed(names_of(study), front_now(study).reference) + moves


def front_facts(study: Study) -> dict[str, Any] | None:
    """Returns the hypervolume, its reference and the best trial of each objective, or None with one objective."""
    if not has_front(study):
        return None
    found, names = front_now(study), names_of(study)
    count = len(found.trials)
    means = {trial.number: row for trial, row in zip(found.trials, found.mean.tolist(), strict=True)}
    leaders = [
        {"name": name, "number": trial.number, "mean": short(means[trial.number][j])}
        for j, (name, trial) in enumerate(zip(names, leaders_of(study, found), strict=count > 0))
    ]
    return {
        "count": count, "volume": short(found.hypervolume) if count else "-", "leaders": leaders,
        "against": reference_text(study) if count else "",
    }  # fmt: skip


def listed(names: Sequence[str], values: Array) -> str:
    """Returns the value of each objective in words, with the beginning of a long name."""
    each = zip(names, values.tolist(), strict=True)
    return ", ".join(f"{shorten(name, LONGEST, placeholder=' ...')} = {short(value)}" for name, value in each)


def front_view(study: Study, query: Mapping[str, str]) -> dict[str, Any]:
    """Returns the front as a picture and a table, and the form of the weights that choose one of its trials.

    Args:
        study: with any policy. Of one with a single objective nothing is shown.
        query: "w-0", "w-1", ... are the weights of the objectives. An empty one counts as 0.
    """
    if not has_front(study):
        return {"front": None}
    found, names, wrong, chosen = front_now(study), names_of(study), dict[str, str](), None
    try:
        chosen = _chosen(study, query) if found.trials else None
    except Problem as problem:
        wrong = {problem.field or "": problem.sentence}
    shown = range(min(len(found.trials), MOST_ROWS))
    fields = [
        {"key": f"w-{j}", "label": name, "value": query.get(f"w-{j}", "")[:40], "wrong": wrong.get(f"w-{j}", "")}
        for j, name in enumerate(names)
    ]
    return {
        "front": {
            "names": names, "rows": [_row(study, found, i, chosen) for i in shown],
            "left_out": len(found.trials) - len(shown), "fields": fields, "refused": wrong.get("", ""),
            "chosen": None if chosen is None else _said(study, chosen),
            "pictures": _pictures(study, found, chosen),
        }
    }  # fmt: skip


def _chosen(study: Study, query: Mapping[str, str]) -> Trial | None:
    """Returns the trial of the front that the weights of an address choose, or None without weights.

    Raises:
        Problem: a weight cannot be used, with the name of its field.
    """
    names, weights = names_of(study), list[float]()
    for j, name in enumerate(names):
        text = query.get(f"w-{j}", "").strip()
        weight = about(f"w-{j}", number, f"The weight of {name}", text, always=True) if text else 0.0
        if weight < 0.0:
            raise Problem(
                422, "invalid", f"The weight of {name} is {text[:20]}: it must be at least 0.", field=f"w-{j}"
            )
        weights.append(weight)
    if not any(query.get(f"w-{j}", "").strip() for j in range(len(names))):
        return None
    try:
        return study.best(weights=weights)
    except NoRegretError as error:
        raise Problem(422, "invalid", str(error), field="") from None


def _row(study: Study, found: Front, i: int, chosen: Trial | None) -> dict[str, Any]:
    trial = found.trials[i]
    means = zip(found.mean[i].tolist(), found.lower[i].tolist(), found.upper[i].tolist(), strict=True)
    return {
        "number": trial.number, "where": where(trial, names=study.replica.roster.names),
        "values": [
            {"mean": short(mean), "between": f"{short(low)} to {short(high)}", "told": told}
            for (mean, low, high), told in zip(means, values_text(trial), strict=True)
        ],
        "chosen": chosen is not None and chosen.number == trial.number,
    }  # fmt: skip


def _said(study: Study, chosen: Trial) -> dict[str, Any]:
    return {"number": chosen.number, "where": where(chosen, names=study.replica.roster.names)}


def _pictures(study: Study, found: Front, chosen: Trial | None) -> list[Picture]:
    """Returns the picture of the front. If there are more than two objectives, those of pairs of them come after it."""
    if not found.trials:
        return [empty(TITLE, NO_FRONT)]
    *pairs, panel = front_panels(study, found, chosen=chosen)
    named = "" if chosen is None else f" The weights choose trial {chosen.number}."
    left_out = f" The front is {found.note}." if found.note else ""
    summary = f"{many(len(found.trials), 'trial')}. {WHAT}{left_out}{named}"
    up = " On each axis, up is better." * (len(names_of(study)) > 2)
    return [_drawn(TITLE, summary + up, panel), *(_drawn(*_of_pair(each), each) for each in pairs)]


def _of_pair(panel: Panel) -> tuple[str, str]:
    x, y = (axis.label.rpartition(" (")[0] for axis in (panel.x, panel.y))
    return f"{x} and {y}", "The line is the border of what these two alone reach."


def _drawn(title: str, summary: str, panel: Panel) -> Picture:
    return drawn(title, summary, [replace(panel, title="").at(0, 0)])
