"""Elements of pictures and pages: rounded numbers, objectives in words, axes, lines, dots and tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...._utils.checks import many
from ...._utils.numerals import numeral
from ....domains.options import worded
from ....plots.base import reward_label
from ....plots.page import page_picture, table_of
from ....plots.scene import Heat, Panel
from ....plots.scene import Picture as Scene
from ....storage.trial import Answer, Trial
from ....study.study import Study

Picture = dict[str, Any]


SMALLEST = 1e-12  # relative width of a range, below which it does not limit the digits of the estimate
ROUNDING = 1e-9  # slack before an end of a range is rounded outwards


def short(value: object) -> str:
    """Returns a value as text. Counts have thousands separators, since nobody pastes them."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        return worded(value)
    return f"{value:,}" if isinstance(value, int) else numeral(float(value))


def each_short(value: object) -> str:
    """Returns a value as text, or those of several objectives with commas."""
    return ", ".join(map(short, value)) if isinstance(value, list | tuple) else short(value)


def measured(
    value: float, half: float, limits: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[str, str]:  # fmt: skip
    """Returns an estimate and its range as text, with the digits that the range justifies.

    Half the width of the range gets two digits. Its ends are rounded outwards.

    Args:
        value: the estimate.
        half: half the width of the range.
        limits: least and largest possible value, at which the range is cut.
    """
    low, high = max(value - half, limits[0]), min(value + half, limits[1])
    value = min(max(value, limits[0]), limits[1])
    largest = max(abs(low), abs(high))
    if not (half > 0.0 and SMALLEST < largest < math.inf and half > SMALLEST * largest):
        return short(value), f"{short(low)} to {short(high)}"
    # More than six digits are not readable, however narrow the range is.
    unit = 10.0 ** max(math.floor(math.log10(half)) - 1, math.floor(math.log10(largest)) - 5)
    ends = (
        max(math.floor(low / unit + ROUNDING) * unit, limits[0]),
        min(math.ceil(high / unit - ROUNDING) * unit, limits[1]),
    )
    said, *between = (numeral(round(each / unit) * unit, 1, step=unit) for each in (value, *ends))
    return said, " to ".join(between)


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> dict[str, Any]:
    """Returns the numbers of a picture as a table of text."""
    return {"head": list(head), "rows": [[short(value) for value in row] for row in rows]}


def interval_bars(rows: Sequence[tuple[str, str, float, float, float]]) -> list[dict[str, Any]]:
    """Returns intervals as bars, in percent of their common range.

    Args:
        rows: name, words, lower end, middle and upper end of each. A middle may lie outside of its ends.
    """
    if not rows:
        return []
    low, high = min(min(row[2:]) for row in rows), max(max(row[2:]) for row in rows)
    scale = 100.0 / (high - low) if high > low else 0.0
    return [
        {
            "name": name, "from": round((lower - low) * scale, 2), "to": round((upper - low) * scale, 2),
            "mean": round((middle - low) * scale, 2), "said": said,
        }
        for name, said, lower, middle, upper in rows
    ]  # fmt: skip


def reward_text(trial: Trial | Answer, names: Sequence[str] = ()) -> str:
    """Returns the reward of a trial, its noise and the number of its plays as text, or "" if there is no reward.

    Args:
        trial: of any study, or an earlier answer.
        names: of its objectives, which stand before the value of each, or none.
    """
    if trial.reward is None:
        return ""
    told = values_text(trial)
    said = [f"{name} = {text}" for name, text in zip(names, told, strict=True)] if names else told
    return ", ".join(said) + ("" if trial.plays is None else f" (mean of {many(trial.plays.times, 'play')})")


def values_text(trial: Trial | Answer) -> list[str]:
    """Returns the value of each objective with its noise as text, or none if there is no reward."""
    if trial.reward is None:
        return []
    told = [(trial.reward, trial.std), *((each.value, each.std) for each in trial.others)]
    return [short(value) + ("" if std is None else f" \N{PLUS-MINUS SIGN} {short(std)}") for value, std in told]


def drawn(
    title: str, summary: str, panels: Sequence[Panel], *, heights: Sequence[float] = (), thinned: bool = False
) -> Picture:
    """Returns panels as a picture of a page, from top to bottom, with a table of the numbers of the first one.

    Args:
        title: above the picture.
        summary: a sentence, which those hear who do not see the picture.
        panels: from top to bottom.
        heights: share of the height of each panel.
        thinned: True if a part of the picture has more detail.
    """
    stacked = [panel.at(i, 0, 1, 1) for i, panel in enumerate(panels)]
    scene = page_picture(Scene(panels=stacked, heights=heights or [1.0] * len(panels)))
    numbers = table_of(replace(panels[0], x=panels[-1].x))
    is_map = any(isinstance(mark, Heat) for mark in panels[0].marks)
    return {
        "kind": "map" if is_map else "lines", "title": title, "summary": summary, "scene": scene, "thinned": thinned,
        "brush": None,
        "table": None if numbers is None else {"head": numbers[0], "rows": numbers[1]},
    }  # fmt: skip


def empty(title: str, why: str) -> Picture:
    """Returns a picture that only says why there is nothing to draw."""
    return {"kind": "none", "title": title, "summary": why}


# -- objectives in words. A reward alone is the case of one objective. --


def has_front(study: Study) -> bool:
    """Returns whether a study has several objectives, so that no single trial is the best."""
    return study.policy.objective_count > 1


def names_of(study: Study) -> tuple[str, ...]:
    """Returns the name of each value that a trial tells: "reward" or "loss", or the names of several objectives."""
    return study.policy.objective_names if has_front(study) else (reward_label(study),)


def said_with(study: Study) -> tuple[str, ...]:
    """Returns the names that stand before the values of an answer: none before a single one."""
    return study.policy.objective_names if has_front(study) else ()


def goals_text(study: Study) -> str:
    """Returns the goal of each objective in words."""
    named = said_with(study) or (f"the {reward_label(study)}",)
    return ", ".join(f"{goal} {name}" for goal, name in zip(study.goals, named, strict=True))


def one_reward_alone(study: Study, what: str) -> str:
    """Returns a sentence for a page that needs one reward, or "" for a study that has one.

    Args:
        study: of the page.
        what: the subject of the page, such as "What learning cost".
    """
    if not has_front(study):
        return ""
    return (
        f"{what} is a number of one reward, and this study has {study.policy.objective_count} objectives. The overview "
        "has the hypervolume of the front by trial."
    )
