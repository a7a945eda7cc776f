"""Advice of errors in terms of HTTP, instead of the library's advice to Python programs.

The keys are topics of errors. An error of another topic, or without one, is sent without advice.
"""

from __future__ import annotations

import re

from ...errors import NoRegretError
from ...study.inputs import NO_REWARD

REVISE = 'Send it with `"revise": true` to correct what was told; the first answer is kept with the decision.'
ADVICE = {
    "answered": f"{REVISE} Another reward of the same point is told by `POST .../observations`.",
    "failed": f"Constraint values are told before `POST .../failure`. {REVISE}",
    "together": "A study put with `constraints`, and without a whole policy in `policy`, takes them in any order.",
    "unusable": "If the point does not work, `POST .../decisions/ID/failure` says so. After an accident that says "
    "nothing of the point, `POST .../decisions/ID/abandonment` gives it up. Both stay on record.",
    "plays": 'It is a list of numbers, or {"count": n, "sum": s, "squares": q}.',
    "std": "Leave `std` out. Studies of `auto`, `gp_ucb` and `expected_improvement` take it.",
    "more_plays": "More plays of it are told by `POST .../observations`.",
    "context": "Give it as `context`: numbers, or an object of parameters by name.",
    "among": "It is a list of points, or of objects of parameters.",
    "named": "Such an object is sent as `parameters` in place of `point`.",
    "all_failed": "`GET .../export` has the reasons.",
    "added": "Observations are such: ask about a decision.",
    "channels": "Those of studies that were put with `constraints` have one.",
    "minimum": "`POST .../observations` takes over to it what was told to this one.",
    "bounded": 'They are {"type": "bounded", "low": ..., "high": ...}, `reward` of a `policy`.',
    "retired": "Arms are added by `POST .../arms`, and brought back by `PUT .../arms/ARM`.",
    "no_arm": "`GET .../arms` lists them.",
    "kernel": 'Such as {"type": "matern", "nu": 2.5, "lengthscale": 0.2}.',
    "policy": 'It has an "algorithm", as that of a recipe, or is what `nilregret create` takes as a `.json` file.',
    "no_propensities": 'A study that was put with `"propensities": true` records them.',
    "no_arms": "Put it with `arms`, or with a `grid` of its parameters.",
    "target": 'It is "uniform", "best", the number of an arm, probabilities of arms, or a whole policy.',
    "reward_range": "Give it as `reward_range`: [lowest, highest].",
    "values": "Send a list of numbers in this order, or an object of these names.",
    "limits": "Send them together: `constraints` beside `reward`.",
    "one": "`GET .../best` has its best decision.",
    "front": "`GET .../front` has the decisions that no other beats, and `GET .../best?weights=...` picks one of them.",
    "over": "Reports and a stop come before the reward.",
    "reported": "Steps grow. A worker that begins again goes on with the steps after the last one.",
    "no_report": "`POST .../decisions/ID/abandonment` gives up a decision that has not reported.",
    "refuted": "Put a new study with larger ones. `POST .../observations` tells it these trials (`GET .../export`).",
    "lost": "If a point of `start` lost only its measurement, `PUT .../decisions/ID/reward` with `revise` tells it, or "
    "`POST .../enqueue` plays the point again. Another time `POST .../abandonment` gives such a decision up.",
    "range": "`widen` changes the range.",
    "cost": "Send it as one of the `metrics` of a reward, and with `revise` where that is on record.",
    "no_trial": "Numbers are those that came with the decisions.",
}
CALLS = {  # calls of Python in warnings, and what stands in a request in their place
    "`explore=nr.slots.Uniform(0.1)`": '`"explore": {"type": "floor", "rate": 0.1}` of a policy',
    "`refit=nr.slots.Refit(every=10)`": '`"refit": {"every": 10}` of a policy',
    "`study.bounds(points, channel=1)`": "`GET .../bounds?channel=1`",
    "`constraints=` was forgotten in `study.tell`": "`constraints` was left out of the rewards",
    "`study.add`": "`POST .../observations`",
    "`constraints=nr.EveryRound(count=...)`, or one of its relatives, where it is made": '`"constraints": 1`',
}
ARGUMENT = re.compile(r"`(\w+)=`")
MISSING = {  # topics of errors that become 404, with the kind and the field of the problem
    "no_trial": ("no_decision", "number"),
    "no_arm": ("no_arm", "arm"),
}


def sentence_of(error: NoRegretError) -> str:
    """Returns the error in words: what happened, the cause, and what to try."""
    parts = [error.what, ADVICE.get(error.topic, "")]
    said = " ".join(part for part in parts if part)
    return f"`{'.'.join(error.places)}`: {said}" if error.places else said


def warning_of(said: str) -> str:
    """Returns a warning with entries of requests in place of calls of Python."""
    for python, http in CALLS.items():
        said = said.replace(python, http)
    return ARGUMENT.sub(r"`\1`", said)


CLIENT_REVISE = "With `revise=True` it corrects what was told, and the first answer is kept."
WORDS = {
    "`GET /v1/studies` lists those there are; `PUT /v1/studies/NAME` makes one.": (
        "`client.studies()` lists those there are, and `client.create` makes one."
    ),
    ADVICE["answered"]: f"{CLIENT_REVISE} Another reward of the same point is told by `study.add`.",
    ADVICE["failed"]: f"Constraint values are told before `study.fail`. {CLIENT_REVISE}",
    ADVICE["unusable"]: NO_REWARD.replace("trial", "decision"),
    ADVICE["more_plays"]: "More plays of it are told by `study.add`.",
    ADVICE["all_failed"]: "`study.trials()` has the reasons.",
    ADVICE["retired"]: "`study.add_arms` adds some, and `study.restore_arm` brings one back.",
    ADVICE["no_arm"]: "`study.arms()` lists them.",
    ADVICE["no_report"]: "`study.abandon` gives up a decision that has not reported.",
    ADVICE["one"]: "`study.best()` is its best decision.",
    ADVICE[
        "refuted"
    ]: "`client.create` makes one with larger ones, and `new.add_from(old.trials())` takes over these trials.",
    ADVICE["lost"]: "If a point of `start` lost only its measurement, `study.tell(..., revise=True)` tells it, or "
    "`study.enqueue` plays the point again. Another time `study.abandon` gives such a decision up.",
    ADVICE["values"]: "Pass a number for each, in this order, or a dict of these names.",
    ADVICE["limits"]: "Tell them together: `study.tell(decision, values, constraints=g)`.",
    ADVICE["front"]: (
        "`study.front()` returns the decisions that no other beats, and `study.best(weights=...)` picks one of them."
    ),
}


def in_words(said: str) -> str:
    """Returns the sentence of a refusal with advice that names calls of the client."""
    for http, ours in WORDS.items():
        said = said.replace(http, ours)
    return said
