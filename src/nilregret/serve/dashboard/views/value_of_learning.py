"""Cost and gain of learning, in the units of the rewards.

The cost of learning is the difference from the choice that now looks best, had it been known from the start. The gain
is the difference from the first choice, had it been kept. Both are estimates with a range. Off-policy evaluation says
what another policy, or the old rule, would have earned on the log of a study.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...._utils.checks import Array, many, whole_in
from ....domains.domain import Arms
from ....errors import InvalidInput
from ....evaluation.estimators import ESTIMATORS
from ....evaluation.log import WAITING
from ....plots.base import reward_label
from ....plots.scene import Axis, Band, Line, Mark, Panel
from ....plots.ticks import spread_evenly
from ....policy.policy import Policy
from ....storage.trial import was_asked
from ....study.best import has_budget
from ....study.direction import has_channels, on_average
from ....study.study import Study
from ....study.waiting import counted_trials
from ...wire.evaluation_messages import EvaluationRequest, EvaluationResult
from .alternatives import Alternative, has_posterior
from .comparison import FIRST, SIDES, Comparison, compare
from .forms import number
from .pictures import Picture, drawn, interval_bars, measured, one_reward_alone, short
from .progress import not_yet

POINTS = 200  # points of a curve
UNKNOWN = "not known yet"
NOTHING = "There is nothing to compare yet: two answers to decisions of the study are needed at least."


def value_view(study: Study, *, baseline: int | None = None) -> dict[str, Any]:
    """Returns pictures of cost and gain, with a verdict, facts, sentences and notes.

    Args:
        study: a study with any policy.
        baseline: see `compare`.
    """
    why = one_reward_alone(study, "What learning cost")
    found = None if why else compare(study, baseline=baseline)
    if found is None:
        why = why or " ".join([NOTHING, *_not_counted(study)])
        why += not_yet(counted_trials(study).left_out)
        return {"pictures": [], "verdict": {"said": why, "tone": ""}, "facts": [], "sentences": [], "notes": []}
    return {
        "pictures": [picture for picture in (_cost(found), _gain(study, found)) if picture is not None],
        "verdict": _verdict(study, found), "facts": _facts(study, found), "sentences": _sentences(study, found),
        "notes": _notes(study, found),
    }  # fmt: skip


# -- the pictures ------------------------------------------------------------------------------------------------


def _cost(found: Comparison) -> Picture | None:
    """Returns a picture of the cost of learning by trial."""
    if found.best is None or found.cost is None:
        return None
    value, between = measured(*found.cost)
    return _curve(
        found, found.missed, found.missed_half, color="best", title="What did it cost to learn?",
        label="lost so far", name="lost against the best choice of now", zero="the best choice of now, from the start",
        summary=f"Lost so far against the best choice of now, had it been known from the start: {value} ({between}). "
        "Where the line is level, nothing is lost any more.",
    )  # fmt: skip


def _gain(study: Study, found: Comparison) -> Picture | None:
    """Returns a picture of the gain over the first choice by trial."""
    if not len(found.gained):
        return None
    better = "gained" if study.goals[0] == "maximize" else "saved"
    value, between = measured(float(found.gained[-1]), float(found.gained_half[-1]))
    return _curve(
        found, found.gained, found.gained_half, color="model", title="What is it worth?", label=f"{better} so far",
        name=f"{better} against the {found.called}", zero=f"the {found.called}, kept",
        summary=f"{better.capitalize()} so far against the {found.called}, had it been kept: {value} ({between}). "
        f"Above the dashed line is better than the {found.called}.",
    )  # fmt: skip


def _curve(
    found: Comparison, values: Array, half: Array, *, color: str, title: str, label: str, name: str, zero: str,
    summary: str,
) -> Picture:  # fmt: skip
    at = spread_evenly(len(values), POINTS)
    places, trials = found.places[at], found.trials[at].tolist()
    words = [(x, f"{int(x):,}, trial {number}") for x, number in zip(places.tolist(), trials, strict=True)]
    ends = (float(places[0]) - 0.5, float(places[-1]) + 0.5)
    x = Axis(label="play" if found.in_runs else "trial", limits=ends, whole=True, places=words if found.in_runs else ())
    marks: list[Mark] = [
        Line(ends, [0.0, 0.0], "text", zero, 1.0, dashed=True),
        Band(places, (values - half)[at], (values + half)[at], color, "range, right about 19 times in 20"),
        Line(places, values[at], color, name),
    ]
    return drawn(title, summary, [Panel(marks=marks, x=x, y=Axis(label=label))])


# -- in words ----------------------------------------------------------------------------------------------------


def _verdict(study: Study, found: Comparison) -> dict[str, str]:
    """Returns a sentence that says whether learning has paid, and its tone."""
    said, tone = _judged(study, found)
    return {"said": said + not_yet(found.left_out), "tone": tone}


def _judged(study: Study, found: Comparison) -> tuple[str, str]:
    if not len(found.gained):
        return f"Of the {found.called} too little is known to compare with it.", ""
    gain, half = float(found.gained[-1]), float(found.gained_half[-1])
    value, between = measured(-gain if gain < -half else gain, half)
    of = f"against the {found.called} ({between}), in {many(found.plays, 'answer')}{_since(found)}"
    if gain > half:
        done = "gained" if study.goals[0] == "maximize" else "saved"
        if found.called != FIRST:  # it may be a poor one, so the gain over it praises nothing
            return f"{value} {done} {of}. It was not the first choice.", ""
        return f"Learning has paid: {value} {done} {of}.", "good"
    if gain < -half:
        lost = f"{value} lost {of}"
        return f"So far learning has cost more than it has brought: {lost}.{_pace(found)}", "bad"
    return f"Whether learning has paid is not known yet ({between}), in {many(found.plays, 'answer')}.", "unsure"


def _since(found: Comparison) -> str:
    return f" since trial {found.since}" if found.since else ""


def _plus(value: float, half: float) -> str:
    """Returns an estimate as text, with a plus sign if it is positive."""
    return ("+" if value > 0 else "") + measured(value, half)[0]


def _pace(found: Comparison) -> str:
    """Returns a sentence that says when the loss will be made up for at the present rate."""
    recent = found.recent
    before = float(found.gained[-recent - 1]) if len(found.gained) > recent else 0.0
    rate = (float(found.gained[-1]) - before) / recent
    if rate <= 0.0:
        return ""
    more = math.ceil(-float(found.gained[-1]) / rate)
    return f" As in the last {recent}, it makes up for that in about {short(more)} more."


def _facts(study: Study, found: Comparison) -> list[dict[str, str]]:
    """Returns numbers with their names and ranges."""
    word, one = reward_label(study), _one(found)
    count = f"in {many(found.plays, 'answer')}{_since(found)}"
    facts = [_fact(f"{word.capitalize()} so far", short(found.total), count)]
    if found.first is not None:
        gain, half = float(found.gained[-1]), float(found.gained_half[-1])
        name = "Gained" if study.goals[0] == "maximize" else "Saved"
        between = measured(gain, half)[1]
        facts.append(_fact(f"{name} against the {found.called}", _known(gain, half), between, _tone(found, gain, half)))
    if found.best is not None and found.cost is not None and found.recent_cost is not None:
        cost, between = _about(*found.cost)
        facts.append(_fact("What learning cost", cost, f"{between}, against the best choice of now"))
        each, between = _about(*found.recent_cost)
        facts.append(_fact(f"Still lost a {one}", each, f"{between}, in the last {found.recent}"))
        facts.append(_value_now(study, found, found.best))
    return facts


def _about(value: float, half: float) -> tuple[str, str]:
    """Returns an estimate and its range as text. If the range contains 0, the estimate is "not known yet"."""
    said, between = measured(value, half)
    return (UNKNOWN if abs(value) <= half else said), between


def _known(value: float, half: float) -> str:
    """Returns an estimate with its sign as text, or "not known yet" if its range contains 0."""
    return UNKNOWN if abs(value) <= half else _plus(value, half)


def _one(found: Comparison) -> str:
    """Returns the word for what brings one reward."""
    return "play" if found.in_runs else "trial"


def _value_now(study: Study, found: Comparison, best: Alternative) -> dict[str, str]:
    mean, half = _each(best, found.plays)
    one = _one(found)
    if found.first is None:
        value, between = measured(mean, half, found.limits)
        return _fact("Worth from now on", f"{value} a {one}", between)
    sign = 1.0 if study.goals[0] == "maximize" else -1.0
    then, spread = _each(found.first, found.plays)
    more, both = sign * (mean - then), half + spread
    between = f"{measured(more, both)[1]}, {'more' if study.goals[0] == 'maximize' else 'less'} than the {found.called}"
    worth = _known(more, both)
    return _fact(
        "Worth from now on", worth if worth == UNKNOWN else f"{worth} a {one}", between, _tone(found, more, both)
    )


def _each(alternative: Alternative, plays: int) -> tuple[float, float]:
    """Returns the mean reward of one play over the contexts of the trials, and half the width of its range."""
    return alternative.total / plays, SIDES * alternative.error / plays


def _limits_of_total(found: Comparison) -> tuple[float, float]:
    return found.plays * found.limits[0], found.plays * found.limits[1]


def _tone(found: Comparison, value: float, half: float) -> str:
    if found.called != FIRST:
        return ""
    return "unsure" if abs(value) <= half else "good" if value > 0 else "bad"


def _fact(name: str, value: str, note: str = "", tone: str = "") -> dict[str, str]:
    return {"name": name, "value": value, "note": note, "tone": tone}


def _sentences(study: Study, found: Comparison) -> list[str]:
    """Returns the comparison in sentences."""
    count = found.plays
    brought, verb = ("brought", "bring") if study.goals[0] == "maximize" else ("cost", "cost")
    sentences = [f"{many(count, 'answer')} {brought} {short(found.total)} in all, {short(found.total / count)} each."]
    if found.first is not None:
        value, between = measured(found.first.total, SIDES * found.first.error, _limits_of_total(found))
        sentences.append(
            f"The {found.called}, {found.first.name}, kept throughout, would have {brought} about {value} ({between})."
            + _difference(study, float(found.gained[-1]), float(found.gained_half[-1]))
        )
    if found.best is not None and found.cost is not None:
        sentences += [_of_cost(found, found.best, brought, *found.cost), _now(found, found.best, verb)]
    return sentences


def _now(found: Comparison, best: Alternative, verb: str) -> str:
    value, between = measured(*_each(best, found.plays), found.limits)
    said = f"From now on the best choice is expected to {verb} {value} a {_one(found)} ({between})"
    if found.first is None:
        return said + "."
    then, around = measured(*_each(found.first, found.plays), found.limits)
    return f"{said}, the {found.called} {then} ({around})."


def _of_cost(found: Comparison, best: Alternative, brought: str, cost: float, half: float) -> str:
    total = measured(best.total, SIDES * best.error, _limits_of_total(found))[0]
    said = f"What looks best now, {best.name}, would have {brought} about {total} from the start. "
    value, between = measured(cost, half)
    if cost + half <= 0.0:
        return said + f"What came in is better than that, by {measured(-cost, half)[0]}: learning has cost nothing."
    if cost <= half:
        return said + f"What not knowing it has cost is within what chance and doubt can do ({between})."
    return said + f"Not to have known it cost {value} ({between}), {short(cost / found.plays)} a {_one(found)}."


def _difference(study: Study, gain: float, half: float) -> str:
    more, less = (
        ("more than that came in", "less than that came in") if study.goals[0] == "maximize" else ("saved", "lost")
    )
    if abs(gain) <= half:
        return (
            f" The difference, {_plus(gain, half)}, is within what chance and doubt can do ({measured(gain, half)[1]})."
        )
    value, between = measured(abs(gain), half)
    return f" {value} {more if gain > 0 else less} ({between})."


def _notes(study: Study, found: Comparison) -> list[str]:
    """Returns assumptions and limits of the estimates."""
    notes = _of_ranges(study)
    if found.alike is not None:
        notes.append(
            f"The answers are of {many(found.alike[0], 'unit')}. Answers of one unit at one arm have a correlation of "
            f"about {short(found.alike[1])}, and ranges are wider by as much."
        )
    if found.since:
        notes.append(f"Only trials from {found.since} on count: before, the world is taken to have been another.")
    if isinstance(study.policy, Policy) and study.policy.memory.drift() is not None:
        notes.append(
            "The world is taken to drift, and the model speaks of now: what other choices would have brought in the "
            "past is judged by what they bring today."
        )
    violating = sum(trial.feasible is False for trial in study.trials[found.since :])
    if has_budget(study.policy):
        notes.append(
            "The budget holds on average. The best choice of now is a mix of the points tried: it earns most while its "
            "mean use is within the budget, by the model. The first choice is one that keeps the budget by itself."
        )
    elif violating:
        broke = "took more than a budget gives a trial" if on_average(study.policy) else "violated constraints"
        notes.append(
            f"What came in counts the {many(violating, 'trial')} that {broke}; the choices compared with are "
            "the first, unless another is named, and the best of those that are taken to satisfy them: by the mean of "
            f"the values told there{', and by the model' * has_channels(study.policy)}. They may yet violate them."
        )
    if study.policy.context is not None and len(found.trials) > 1:
        notes.append(
            "Where there are many contexts the estimates are made for some trials, evenly spread, that stand for the "
            "others; the ranges allow for that."
        )
    return notes + _not_counted(study)


def _not_counted(study: Study) -> list[str]:
    """Returns a note of the trials that do not count."""
    known = counted_trials(study).trials
    failed = sum(trial.state == "failed" for trial in known)
    stopped = sum(trial.state == "stopped" for trial in known)
    silent = sum(trial.reward is None for trial in known) - failed - stopped
    left = [many(silent, "unanswered trial")] * bool(silent)
    added = sum(trial.reward is not None and not was_asked(trial) for trial in known)
    left += [f"{many(added, 'trial')} that the study did not decide"] * bool(added)
    left += [f"{count:,} that {what}" for count, what in ((failed, "failed"), (stopped, "were stopped")) if count]
    if not left:
        return []
    return [f"Not counted: {' and '.join(left)}."]


def _of_ranges(study: Study) -> list[str]:
    """Returns what the ranges assume."""
    if has_posterior(study):
        notes = [
            "What came in is counted; what other choices would have brought is estimated by the model. Its ranges are "
            "two standard deviations to either side, right about 19 times in 20 if kernel and noise are."
        ]
    else:
        notes = [
            "What other choices would have brought is the mean of the rewards told there, give or take two standard "
            "errors."
        ]
    if isinstance(study.policy, Policy) and study.policy.fitting is not None:
        notes.append(
            "Kernel and noise are estimated here, so ranges are right less often. If repeats of a point differ by more "
            "than the estimated noise, ranges are wider by as much."
        )
    return notes


WORDS = ("uniform", "best")
NUMBERS = {"low": "The least reward", "high": "The largest reward", "default": "The reward of decisions without one"}
LONGEST = 12_000  # characters of a policy as JSON
ADDRESS = ("policy", "like", "estimator", *NUMBERS)  # entries of the form


def recorded(study: Study) -> bool:
    """Returns whether the decisions of a study can evaluate other policies."""
    return study.propensities and isinstance(study.policy.domain, Arms)


def evaluation_request(query: Mapping[str, str]) -> EvaluationRequest:
    """Returns the request that a form stands for.

    Args:
        query: "policy" is a word, the number of an arm, or JSON. "low", "high" and "default" are rewards.

    Raises:
        InvalidInput: an entry cannot be used.
    """
    typed = {name: query.get(name, "") for name in NUMBERS}
    numbers = {name: number(NUMBERS[name], text) if text.strip() else None for name, text in typed.items()}
    low, high = numbers["low"], numbers["high"]
    chosen = query.get("estimator", "") or ESTIMATORS[0]
    if chosen not in ESTIMATORS:
        raise InvalidInput(f"There is no estimator {chosen[:20]!r}: there are {', '.join(ESTIMATORS)}.")
    given = {
        "policy": _policy(query.get("policy", "").strip()), "estimator": chosen, "default_reward": numbers["default"],
        "reward_range": None if low is None and high is None else [low or 0.0, 1.0 if high is None else high],
    }  # fmt: skip
    try:
        return msgspec.convert(given, EvaluationRequest)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"The form cannot be used: {error}.") from None


def _policy(text: str) -> Any:
    if text in WORDS:
        return text
    if (arm := whole_in(text)) is not None:
        return arm
    try:
        found = json.loads(text[:LONGEST])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list | dict):
        raise InvalidInput(
            f"The policy is {text[:40]!r}: write {' or '.join(WORDS)}, the number of an arm, probabilities of the arms "
            "as JSON, or a policy as its JSON."
        )
    return found


def evaluation_view(result: EvaluationResult, goal: str) -> dict[str, Any]:
    """Returns a verdict, bars and facts of an evaluation.

    Args:
        result: of the operation `evaluate`.
        goal: of the study.
    """
    low, high = result.gain
    better = (low > 0.0) if goal == "maximize" else (high < 0.0)
    if low <= 0.0 <= high:
        said, tone = "Which of the two earns more is not known yet", "unsure"
    else:
        said = "The other policy would have been " + ("better" if better else "worse")
        tone = "good" if better else "bad"
    lower, upper = result.logged_interval
    rows: list[tuple[str, float | None, float, float]] = [
        ("the other policy", result.value, result.lower, result.upper),
        ("this study's decisions", result.logged, lower, upper),
    ]
    return {
        "verdict": {
            "said": f"{said}: the difference is {short(low)} to {short(high)} a decision.{_waiting(result)}",
            "tone": tone,
        },
        "bars": _bars(rows), "cautions": result.cautions, "facts": _facts_of(result),
    }  # fmt: skip


def _bars(rows: Sequence[tuple[str, float | None, float, float]]) -> list[dict[str, Any]]:
    """Returns values with their intervals as bars. An estimate may lie outside of its interval, but not of all."""
    low, high = min(row[2] for row in rows), max(row[3] for row in rows)
    drawn = []
    for name, value, lower, upper in rows:
        middle = (lower + upper) / 2.0 if value is None else min(max(value, low), high)
        said = f"{'not estimated' if value is None else short(value)} a decision, {short(lower)} to {short(upper)}"
        drawn.append((name, said, lower, middle, upper))
    return interval_bars(drawn)


def _waiting(result: EvaluationResult) -> str:
    count = result.left_out.get(WAITING, 0)
    return f" Not counted yet: {many(count, 'decision')} {WAITING}." if count else ""


def _share(overlap: float) -> str:
    return "as far as the log shows, all" if overlap == 1.0 else f"about {overlap:.0%}"


def _facts_of(result: EvaluationResult) -> list[tuple[str, str]]:
    units = "" if result.units is msgspec.UNSET else f" of {many(result.units, 'unit')}"
    sure, as_much = f"{1.0 - result.delta:.0%}", short(round(result.effective_sample_size)) + " units" * bool(units)
    return [
        ("interval", f"holds with probability {sure}, also for a log whose policy learned on the way"),
        ("decisions", f"{short(result.rows)}{units}, which say as much as {as_much} of the other policy's own"),
        ("overlap", f"{_share(result.overlap)} of the other policy's choices could have been made here"),
        ("largest weight", short(result.largest_weight)),
        ("probabilities", "pass their test" if result.check.passed else "fail their test: do not trust the result"),
        *((f"left out, {reason}", short(count)) for reason, count in result.left_out.items() if reason != WAITING),
        *((name, short(value)) for name, value in result.estimates.items()),
    ]
