"""Two to six studies side by side: best so far, cost of learning, settings that differ, and paired differences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ...._utils.checks import Array
from ....study.curves import half_interval
from ....study.study import Study
from .comparison import compare
from .pictures import Picture, axis, empty, layer, line, lines_picture, many, measured, short, spread_evenly, table
from .progress import answers_of, best_so_far
from .settings import description
from .status import status

FEWEST, MOST = 2, 6  # studies of one comparison
COLORS = ("main", "best", "third", "good", "warn", "dot")
POINTS, ROWS = 300, 10  # places of the picture, and rows of its table
LATEST = 10  # a mean of the latest answers takes this fraction of them
MOST_SETTINGS, LONGEST = 40, 160  # rows of the table of settings, and characters of a value
PLACE = "answers so far"


class StudyFacts(NamedTuple):
    """Numbers and settings of one study, for a comparison.

    Attributes:
        name: of the study.
        goal: "maximize" or "minimize".
        seed: of the study.
        rewards: told, in the order of the trials, `(n,)`.
        best: best reward so far of the trials that violate nothing, `(n,)`, NaN before the first.
        at: see `status`.
        cost: of learning, with half the width of its range, or None if it is not known.
        settings: texts by name.
        policy: JSON without the seed. Studies with the same text differ by chance alone.
    """

    name: str
    goal: str
    seed: int
    rewards: Array
    best: Array
    at: dict[str, Any]
    cost: tuple[float, float] | None
    settings: dict[str, str]
    policy: str


def facts_of(study: Study, name: str, *, now: float) -> StudyFacts:
    """Returns what a comparison needs of a study.

    Args:
        study: with any policy.
        name: of the study, as its reader knows it.
        now: present time in Unix seconds.
    """
    told, found, policy = answers_of(study), compare(study), study.policy.to_json()
    rewards = np.zeros(0) if told is None else told.rewards
    best = rewards if told is None else best_so_far(study, told.rewards, told.outside)
    settings = dict(description(study)) | {f"policy: {key}": value for key, value in _leaves(json.loads(policy))}
    return StudyFacts(
        name, study.goal, study.seed, rewards, best, status(study, now=now),
        None if found is None else found.cost, settings, policy,
    )  # fmt: skip


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields the values of a JSON document with their paths. Lists are values."""
    if not isinstance(value, Mapping):
        yield path, value if isinstance(value, str) else json.dumps(value)
        return
    for key, each in value.items():
        yield from _leaves(each, f"{path}.{key}" if path else str(key))


def compared_view(studies: Sequence[StudyFacts]) -> dict[str, Any]:
    """Returns a picture, rows of numbers, settings that differ, and paired differences.

    Args:
        studies: 2 to 6.
    """
    goals = {each.goal for each in studies}
    return {
        "picture": _history(studies), "rows": [_row(each) for each in studies], "settings": _settings(studies),
        "pairs": _pairs(studies), "names": [each.name for each in studies],
        "caution": "" if len(goals) == 1 else "Some of these studies maximise and others minimise: their numbers do "
        "not say which is better.",
    }  # fmt: skip


def _history(studies: Sequence[StudyFacts]) -> Picture:
    title, longest = "Best so far", max(len(each.rewards) for each in studies)
    if not longest:
        return empty(title, "None of these studies has an answer yet.")
    kept = spread_evenly(longest, POINTS)
    lines = [
        line(each.name, _at(each.best, kept), color, style="step") for each, color in zip(studies, COLORS, strict=False)
    ]
    rows = spread_evenly(longest, ROWS)
    values = zip(*(_at(each.best, rows).tolist() for each in studies), strict=True)
    told = [(int(i) + 1, *each) for i, each in zip(rows, values, strict=True)]
    return lines_picture(
        title, f"The best reward told so far, by number of answers. {_leader(studies)}", x=axis(PLACE),
        y=axis("reward" if studies[0].goal == "maximize" else "loss"), layers=[layer(kept + 1.0, *lines)],
        table=table([PLACE, *(each.name for each in studies)], told),
    )  # fmt: skip


def _at(values: Array, places: Any) -> Array:
    """Returns the values at these places, NaN beyond the end."""
    known = np.full(len(places), np.nan)
    inside = places < len(values)
    known[inside] = values[places[inside]]
    return known


def _leader(studies: Sequence[StudyFacts]) -> str:
    fewest = min(len(each.rewards) for each in studies)
    known = [each for each in studies if fewest and np.isfinite(each.best[fewest - 1])]
    if len({each.goal for each in studies}) > 1 or len(known) < len(studies):
        return ""
    sign = 1.0 if studies[0].goal == "maximize" else -1.0
    ahead = max(known, key=lambda each: sign * each.best[fewest - 1])
    if len({short(float(each.best[fewest - 1])) for each in known}) == 1:
        return f"After {many(fewest, 'answer')} each, they are equal."
    return f"After {many(fewest, 'answer')} each, {ahead.name} is ahead with {short(float(ahead.best[fewest - 1]))}."


def _row(each: StudyFacts) -> dict[str, Any]:
    latest = each.rewards[-max(1, len(each.rewards) // LATEST) :]
    best = each.best[-1] if len(each.best) and np.isfinite(each.best[-1]) else None
    value, between = ("-", "") if each.cost is None else measured(*each.cost)
    unknown = each.cost is not None and abs(each.cost[0]) <= each.cost[1]
    return {
        "name": each.name, "at": each.at, "best": short(best), "mean": short(_mean(each.rewards)),
        "latest": short(_mean(latest)), "cost": "not known yet" if unknown else value, "between": between,
    }  # fmt: skip


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


def _settings(studies: Sequence[StudyFacts]) -> list[tuple[str, list[str]]]:
    """Returns the settings that differ, each with its value in every study."""
    names = dict.fromkeys(name for each in studies for name in each.settings)
    rows = [(name, [each.settings.get(name, "-")[:LONGEST] for each in studies]) for name in names]
    return [row for row in rows if len(set(row[1])) > 1][:MOST_SETTINGS]


# -- paired by seed ----------------------------------------------------------------------------------------------


def _pairs(studies: Sequence[StudyFacts]) -> list[str]:
    """Returns sentences about differences of the mean reward between policies, in studies of the same seed."""
    groups: dict[str, dict[int, StudyFacts]] = {}
    for each in studies:
        if len(each.rewards):
            groups.setdefault(each.policy, {})[each.seed] = each
    found = (_difference(one, other) for one, other in combinations(groups.values(), 2))
    return [sentence for sentence in found if sentence]


def _difference(one: dict[int, StudyFacts], other: dict[int, StudyFacts]) -> str:
    """Returns a sentence about the difference of two policies. Pairs share a seed and count equally many answers."""
    seeds = sorted(one.keys() & other.keys())
    if not seeds or one[seeds[0]].goal != other[seeds[0]].goal:
        return ""
    differences = np.array([_paired(one[seed], other[seed]) for seed in seeds])
    names = f"{one[seeds[0]].name} less {other[seeds[0]].name}"
    mean = float(differences.mean())
    if len(seeds) == 1:
        return f"{names}: {short(mean)} an answer, in one pair with the seed {seeds[0]}, too few for an interval."
    half = float(half_interval(differences))
    value, between = measured(mean, half)
    verdict = " Which of them earns more is not known yet." if abs(mean) <= half else ""
    return (
        f"{names} and their like: {value} an answer ({between}, a 95% interval of {many(len(seeds), 'pair')} of the "
        f"same seed).{verdict}"
    )


def _paired(one: StudyFacts, other: StudyFacts) -> float:
    count = min(len(one.rewards), len(other.rewards))
    return float((one.rewards[:count] - other.rewards[:count]).mean())
