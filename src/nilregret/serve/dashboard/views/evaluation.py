"""Off-policy evaluation: what another policy, or the old rule, would have earned on the log of a study."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ...._utils.checks import many, whole_in
from ....domains.domain import Arms
from ....errors import InvalidInput
from ....evaluation.estimators import ESTIMATORS
from ....evaluation.log import WAITING
from ....study.study import Study
from ...wire.evaluation_messages import EvaluationRequest, EvaluationResult
from .forms import number
from .pictures import interval_bars, short

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
        "bars": _bars(rows), "cautions": result.cautions, "facts": _facts(result),
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


def _facts(result: EvaluationResult) -> list[tuple[str, str]]:
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
