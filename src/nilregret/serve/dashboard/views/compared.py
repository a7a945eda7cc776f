"""Two to six studies side by side: best so far, cost of learning, settings that differ, and paired differences."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from ...._utils.checks import Array, IndexArray, many
from ....plots.history_picture import numbers_told
from ....plots.scene import Axis, Line, Panel
from ....plots.ticks import spread_evenly
from ....study.curves import half_interval
from ....study.direction import signs_of
from ....study.formatting import in_words
from ....study.front import believed_values, volumes
from ....study.study import Study
from ....theory.fronts import non_dominated, reference_point
from .comparison import compare
from .front import front_now, listed
from .pictures import Picture, drawn, empty, has_front, measured, short
from .settings import description
from .standing import standing_status

FEWEST, MOST = 2, 6  # studies of one comparison
COLORS = ("model", "best", "third", "failed", "observed", "text")
POINTS = 300  # places of the picture
LATEST = 10  # a mean of the latest answers takes this fraction of them
MOST_SETTINGS, LONGEST = 40, 160  # rows of the table of settings, and characters of a value
TOLD = ("domain", "context")  # parts of a policy that its description tells in words
LIKE = 100.0  # times the largest reward of another study, up to which both are drawn on one axis
PLACE, STEPS = "answers so far", "steps so far"
DIFFER = "These studies have not the same objectives: their numbers do not say which is better."


class FrontFacts(NamedTuple):
    """The numbers from which the hypervolumes of a study with several objectives are computed.

    Attributes:
        objectives: name and goal of each.
        answered: numbers of the answered trials that count, `(n,)`.
        values: posterior means of now at the trials by number, all maximised, `(m, k)`. NaN where one is not compared.
        given: reference of the policy, all maximised, or None.
        on_front: number of trials on the front.
    """

    objectives: tuple[tuple[str, str], ...]
    answered: IndexArray
    values: Array
    given: Array | None
    on_front: int


class StudyFacts(NamedTuple):
    """Numbers and settings of one study, for a comparison.

    Attributes:
        name: of the study.
        goal: "maximize" or "minimize".
        seed: of the study.
        rewards: told, in the order of the trials, `(n,)`. Those of runs of plays are means of runs.
        plays: number of plays of each reward, `(n,)`.
        best: best reward so far of the trials that violate nothing, `(n,)`, NaN before the first.
        at: see `standing_status`.
        cost: of learning, with half the width of its range, or None if it is not known.
        settings: texts by name.
        policy: JSON without the seed. Studies with the same text differ by chance alone.
        task: domain, contexts and goal as JSON, which studies have in common where a difference means anything.
        left_out: trials that do not count yet, in words, or an empty text.
        front: of several objectives, or None. `goal` is then that of the hypervolume, and `best` is the hypervolume so
            far, once the reference is known (`_measured`).
        spent: steps of all trials up to each answer, `(n,)`, or None unless every answered trial has reported.
    """

    name: str
    goal: str
    seed: int
    rewards: Array
    plays: Array
    best: Array
    at: dict[str, Any]
    cost: tuple[float, float] | None
    settings: dict[str, str]
    policy: str
    task: str
    left_out: str
    front: FrontFacts | None = None
    spent: Array | None = None


def facts_of(study: Study, name: str, *, now: float, paused: bool = False) -> StudyFacts:
    """Returns what a comparison needs of a study.

    Args:
        study: with any policy.
        name: of the study, as its reader knows it.
        now: present time in Unix seconds.
        paused: whether somebody has paused it.
    """
    told, policy = numbers_told(study), study.policy.to_json()
    front = _front_facts(study, told.numbers) if has_front(study) else None
    found = compare(study) if front is None else None
    leaves = json.loads(policy)
    parts = {key: value for key, value in leaves.items() if key not in TOLD}
    told_first = dict(description(study))
    settings = told_first | dict(_leaves(parts)) | told_first
    task = json.dumps([leaves.get("domain"), leaves.get("context"), study.goal])
    return StudyFacts(
        name, "maximize" if front else study.goals[0], study.seed, told.values, told.plays, told.best_so_far,
        standing_status(study, now=now, paused=paused), None if found is None else found.cost, settings, policy, task,
        told.left_out, front, _spent(study, told.numbers),
    )  # fmt: skip


def _spent(study: Study, answered: IndexArray) -> Array | None:
    """Returns the steps of all trials up to each answered one, `(n,)`, or None if one of these did not report."""
    steps = np.array([trial.curve[-1].step if trial.curve else 0 for trial in study.trials], dtype=np.float64)
    return np.cumsum(steps)[answered] if len(answered) and (steps[answered] > 0).all() else None


def _front_facts(study: Study, answered: IndexArray) -> FrontFacts:
    given: Any = getattr(getattr(study.policy, "constraints", None), "reference", None)
    return FrontFacts(
        tuple(zip(study.policy.objective_names, study.goals, strict=True)), answered, believed_values(study),
        None if given is None else signs_of(study.goals) * given, len(front_now(study).trials),
    )  # fmt: skip


def _measured(studies: Sequence[StudyFacts]) -> tuple[list[StudyFacts], dict[Any, Array]]:
    """Returns the studies with their hypervolumes, and the reference for all studies of the same objectives.

    The reference is the one that all policies have, or else one that follows from the answers of all these studies.
    """
    references: dict[Any, Array] = {}
    for front in (each.front for each in studies if each.front is not None):
        same = [each.front for each in studies if each.front and each.front.objectives == front.objectives]
        given = {None if each.given is None else tuple(each.given) for each in same}
        values = np.concatenate([each.values[np.isfinite(each.values).all(axis=1)] for each in same])
        if len(given) == 1 and front.given is not None:
            references[front.objectives] = front.given
        elif len(values):
            references[front.objectives] = reference_point(values, values[non_dominated(values)])
    return [_with_volumes(each, references) for each in studies], references


def _with_volumes(each: StudyFacts, references: Mapping[Any, Array]) -> StudyFacts:
    front = each.front
    if front is None or front.objectives not in references:
        return each
    return each._replace(best=volumes(front.values, references[front.objectives])[front.answered])


def _leaves(value: Any, *path: str) -> Iterator[tuple[str, str]]:
    """Yields the values of a JSON document in words with their paths. A part is named by its type."""
    if isinstance(value, list) and any(isinstance(each, Mapping) for each in value):
        value = {str(each.get("type", i) if isinstance(each, Mapping) else i): each for i, each in enumerate(value)}
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _leaves(each, *path, *([] if key in ("type", "parts") else [in_words(key).replace("_", " ")]))
    else:
        yield ", ".join(path), _in_words(value)


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_in_words, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return in_words(value) if isinstance(value, str) else short(value)


def compared_view(studies: Sequence[StudyFacts]) -> dict[str, Any]:
    """Returns a picture, rows of numbers, settings that differ, and paired differences.

    Args:
        studies: 2 to 6.
    """
    studies, references = _measured(studies)
    goals = {each.goal for each in studies if each.front is None}
    waiting = "".join(f" Not counted yet in {each.name}: {each.left_out}." for each in studies if each.left_out)
    mixed = "Some of these studies maximise and others minimise: their numbers do not say which is better."
    kinds = {each.front and each.front.objectives for each in studies}
    differ = f"{DIFFER} " * (len(kinds) > 1)
    return {
        "pictures": [_history(those, references) for those in _on_one_axis(studies)],
        "rows": [_row(each) for each in studies],
        "fronts": any(each.front for each in studies), "rewards": not all(each.front for each in studies),
        "settings": _settings(studies),
        "pairs": _pairs(studies), "names": [each.name for each in studies],
        "caution": (differ + mixed * (len(goals) > 1) + waiting).strip(),
    }  # fmt: skip


def _on_one_axis(studies: Sequence[StudyFacts]) -> list[list[StudyFacts]]:
    """Returns the studies in groups that one axis shows: of one goal, and of one task or of rewards of like size."""
    groups: list[list[StudyFacts]] = []
    for each in studies:
        fitting = (those for those in groups if _alike(those[0], each))
        found = next(fitting, None)
        if found is None:
            groups.append([each])
        else:
            found.append(each)
    return groups


def _alike(one: StudyFacts, other: StudyFacts) -> bool:
    if one.front or other.front:
        return bool(one.front and other.front and one.front.objectives == other.front.objectives)
    sizes = [float(np.abs(each.rewards).max(initial=0.0)) for each in (one, other)]
    return one.goal == other.goal and (one.task == other.task or max(sizes) <= LIKE * min(sizes) or 0.0 in sizes)


def _history(studies: Sequence[StudyFacts], references: Mapping[Any, Array]) -> Picture:
    front, longest = studies[0].front, max(len(each.rewards) for each in studies)
    title = "Best so far" if front is None else "Hypervolume so far"
    if not longest:
        return empty(title, "None of these studies has an answer yet.")
    kept = spread_evenly(longest, POINTS)
    best, by_steps = "highest" if studies[0].goal == "maximize" else "lowest", _by_steps(studies)
    if by_steps:  # What a stopped trial cost counts, too.
        longest = max(int(each.spent[-1]) for each in studies)  # type: ignore[index]
    marks = [_line(each, color, kept, by_steps=by_steps) for each, color in zip(studies, COLORS, strict=False)]
    word = "reward" if studies[0].goal == "maximize" else "loss"
    said = f"The {best} {word} told so far, by number of {'steps of all trials' if by_steps else 'answers'}."
    if front is not None:
        if front.objectives not in references:
            return empty(title, "None of these studies has a trial on its front yet.")
        word, corner = "hypervolume", _reference_text(front, references[front.objectives])
        said = f"What the front of posterior means covers by number of answers, measured from {corner} for all of them."
    place = STEPS if by_steps else PLACE
    panel = Panel(marks=marks, x=Axis(label=place, limits=(0.5, longest + 0.5), whole=True), y=Axis(label=word))
    return drawn(title, f"{said} {_leader(studies)}", [panel])


def _by_steps(studies: Sequence[StudyFacts]) -> bool:
    """Returns whether studies are compared by the steps of their trials, which all of them have reported."""
    return all(each.spent is not None for each in studies)


def _line(each: StudyFacts, color: str, kept: IndexArray, *, by_steps: bool) -> Line:
    if not by_steps or each.spent is None:
        return Line(kept + 1.0, _at(each.best, kept), color, each.name, steps=True)
    own = kept[kept < len(each.best)]
    return Line(each.spent[own], each.best[own], color, each.name, steps=True)


def _reference_text(front: FrontFacts, reference: Array) -> str:
    signs = signs_of(goal for _, goal in front.objectives)
    return listed([name for name, _ in front.objectives], signs * reference)


def _at(values: Array, places: Any) -> Array:
    """Returns the values at these places, NaN beyond the end."""
    known = np.full(len(places), np.nan)
    inside = places < len(values)
    known[inside] = values[places[inside]]
    return known


def _leader(studies: Sequence[StudyFacts]) -> str:
    if len(studies) < 2 or len({each.task for each in studies}) > 1 or not all(len(each.best) for each in studies):
        return ""
    spent = [each.spent for each in studies if each.spent is not None and _by_steps(studies)]
    fewest = min(int(each[-1]) for each in spent) if spent else min(len(each.best) for each in studies)
    at = [int(np.searchsorted(each, fewest, side="right")) for each in spent] or [fewest] * len(studies)
    found = [float(each.best[i - 1]) if i else np.nan for each, i in zip(studies, at, strict=True)]
    if not np.isfinite(found).all():
        return ""
    after = f"After {many(fewest, 'step' if spent else 'answer')} each"
    if len(set(map(short, found))) == 1:
        return f"{after}, they are equal."
    ahead = int(np.argmax(found) if studies[0].goal == "maximize" else np.argmin(found))
    return f"{after}, {studies[ahead].name} is ahead with {short(found[ahead])}."


def _row(each: StudyFacts) -> dict[str, Any]:
    latest = max(1, len(each.rewards) // LATEST)
    best = each.best[-1] if len(each.best) and np.isfinite(each.best[-1]) else None
    value, between = ("-", "") if each.cost is None else measured(*each.cost)
    unknown = each.cost is not None and abs(each.cost[0]) <= each.cost[1]
    if each.front is not None:
        dash = dict.fromkeys(("best", "mean", "latest", "cost"), "-")
        volume = float(each.best[-1]) if each.front.on_front else None
        return dash | {
            "name": each.name, "at": each.at, "between": "", "volume": short(volume), "count": each.front.on_front
        }  # fmt: skip
    return {
        "volume": "-", "count": 0,
        "name": each.name, "at": each.at, "best": short(best), "mean": short(_mean(each)),
        "latest": short(_mean(each, latest)), "cost": "not known yet" if unknown else value, "between": between,
    }  # fmt: skip


def _mean(each: StudyFacts, latest: int = 0) -> float | None:
    """Returns the mean reward of a play, of the latest trials or of all."""
    rewards, plays = each.rewards[-latest:], each.plays[-latest:]
    return float(plays @ rewards / plays.sum()) if len(rewards) else None


def _settings(studies: Sequence[StudyFacts]) -> list[tuple[str, list[str]]]:
    """Returns the settings that differ, each with its value in every study."""
    names = dict.fromkeys(name for each in studies for name in each.settings)
    rows = [(name, [each.settings.get(name, "-") for each in studies]) for name in names]
    differ = [row for row in rows if len(set(row[1])) > 1][:MOST_SETTINGS]
    return [(name, [textwrap.shorten(each, LONGEST, placeholder=" ...") for each in values]) for name, values in differ]


# -- paired by seed ----------------------------------------------------------------------------------------------


def _pairs(studies: Sequence[StudyFacts]) -> list[str]:
    """Returns sentences about differences of the mean reward between policies, in pairs of studies of the same seed.

    Pairs have one domain and goal. A single seed makes no pair, since every study has seed 0 unless it is told another.
    """
    groups: dict[tuple[str, str], dict[int, list[StudyFacts]]] = {}
    for each in studies:
        if len(each.rewards) and each.front is None:
            groups.setdefault((each.task, each.policy), {}).setdefault(each.seed, []).append(each)
    twins = [those for group in groups.values() for those in group.values() if len(those) > 1]
    alone = [{seed: those[0] for seed, those in group.items() if len(those) == 1} for group in groups.values()]
    tasks = [task for task, _ in groups]
    both = [(alone[i], alone[j]) for i, j in combinations(range(len(tasks)), 2) if tasks[i] == tasks[j]]
    among = sum(len(one.keys() & other.keys()) > 1 for one, other in both)
    found = [_difference(one, other, among) for one, other in both]
    return [sentence for sentence in found if sentence] + [
        f"{' and '.join(each.name for each in those)} have one policy and one seed, so none of them is paired."
        for those in twins
    ]


def _difference(one: dict[int, StudyFacts], other: dict[int, StudyFacts], among: int) -> str:
    """Returns a sentence about the difference of two policies, or an empty one if they share fewer than two seeds.

    Args:
        one: studies of a policy by seed.
        other: those of another policy.
        among: number of differences whose intervals hold at once.
    """
    pairs = [(one[seed], other[seed]) for seed in sorted(one.keys() & other.keys())]
    if len(pairs) < 2:
        return ""
    differences = np.array([_paired(*pair) for pair in pairs])
    mean, half = float(differences.mean()), float(half_interval(differences, among=among))
    value, between = measured(mean, half)
    verdict = " Which of them earns more is not known yet." if abs(mean) <= half else ""
    together = f" for all {among} differences at once" if among > 1 else ""
    paired = ", ".join(f"{first.name} less {second.name}" for first, second in pairs)
    return (
        f"{value} an answer ({between}, a 95% interval{together}) is the mean of {many(len(pairs), 'pair')}: {paired}."
        f"{verdict}"
    )


def _paired(one: StudyFacts, other: StudyFacts) -> float:
    """Returns the difference of the mean rewards of two studies, over as many plays of each as both have."""
    count = float(min(one.plays.sum(), other.plays.sum()))
    return (_total(one, count) - _total(other, count)) / count


def _total(each: StudyFacts, count: float) -> float:
    """Returns the sum of the rewards of the first plays of a study."""
    ends, sums = np.cumsum(each.plays), np.cumsum(each.plays * each.rewards)
    return float(np.interp(count, np.append(0.0, ends), np.append(0.0, sums)))
