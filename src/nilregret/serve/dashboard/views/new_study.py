"""The form of a new study: what it stands for as a request of the API, and the same as code to paste."""

from __future__ import annotations

import json
from collections.abc import Mapping
from keyword import iskeyword
from typing import Any

from ....algorithms.schema import parameter
from ....errors import InvalidInput
from ...wire.messages import segment
from ...wire.problems import Problem
from .forms import number, whole
from .settings import curl

PARAMETERS, CONTEXTS, OBJECTIVES = 24, 8, 5  # rows of the form
# Options of the form by value, in words.
TYPES = {"": "-", "float": "a number", "int": "a whole number", "choice": "an option"}
REWARDS = {"": "numbers", "bernoulli": "clicks: 0 or 1", "poisson": "counts: 0, 1, 2, ..."}
GOALS = {"maximize": "the largest reward", "minimize": "the least loss"}
EACH = {"": "-", "minimize": "the least", "maximize": "the largest"}  # the goal of one of several objectives
SENSES = {"": "in each round", "on_average": "on average over all rounds"}
ANSWERS = {
    "prompt": "at once", "late": "late: more is asked before they come",
    "silent no": "silent no: a bad trial is never answered",
    "unknown": "unknown: late, until silence turns out to mean no",
}  # fmt: skip
RULES = {
    "": "no trial", "median": "median: one below the median of the finished ones at its step",
    "halving": "halving: of the first 12, one not among the best third at a rung of steps",
    "predicted": "predicted: one that would hardly become the best",
}  # fmt: skip
COUNTING = {"": "the last one", "best": "the best so far"}
WAITING = {
    "abandon": "abandon: the trial is given up, and says nothing of its point",
    "fail": "fail: the trial counts as failed, so its point is avoided",
    "reward": "reward: the given reward is told in its place",
    "censor": "censor: until it is answered, and without an answer, it counts as the given reward",
    "silence": "silence: the longer it is silent, the more it counts as the given reward",
}
COLLECTING = {
    "": "one reward", "sum": "several: their sum is told at the deadline",
    "first": "several: the first is told at the deadline", "last": "several: the last is told at the deadline",
}  # fmt: skip
DEFAULT = "The reward in place of a missing one"
AROUND = (
    "goal",
    "seed",
    "propensities",
    "deadline",
    "on_deadline",
    "default_reward",
    "sticky",
    "reward",
)  # entries beside the policy
OF_FORM = (
    "noise",
    "answers",
    "reward",
    "constraints",
    "objectives",
    "pruning",
)  # entries of a policy that the form has fields for
MOST_ARMS, LONGEST = 1000, 20_000  # lines of arms, and characters of a field


def request_of(given: Mapping[str, str]) -> dict[str, Any]:
    """Returns the body of `PUT /v1/studies/NAME` that a form stands for. The operation itself checks its values.

    Raises:
        InvalidInput: a field cannot be read.
    """
    body: dict[str, Any] = {}
    space = _space("p", PARAMETERS, given)
    arms = _arms(given.get("arms", ""))
    if space:
        body["space"] = space
        limits = [line.strip() for line in given.get("where", "")[:LONGEST].splitlines() if line.strip()]
        body |= {"where": limits} if limits else {}
        if given.get("grid", "").strip():
            body["grid"] = _whole("The steps of the grid", given["grid"])
    if arms:
        body["arms"] = arms
    context = _space("c", CONTEXTS, given)
    if context:
        body["context"] = {name: {**table, "unknown": True} for name, table in context.items()}
    objectives = _objectives(given)
    policy = _policy(given, list(objectives))
    if policy:
        body["policy"] = policy
    if given.get("constraints", "").strip() not in ("", "0"):
        body["constraints"] = _whole("The number of constraints", given["constraints"])
    goal = list(objectives.values()) or given.get("goal")
    if goal not in ("maximize", None, ""):
        body["goal"] = goal
    if given.get("seed", "").strip() not in ("", "0"):
        body["seed"] = _whole("The seed", given["seed"])
    if given.get("propensities") == "1":
        body["propensities"] = True
    return body | _visitors(given) | _waiting(given, several=bool(objectives))


def _visitors(given: Mapping[str, str]) -> dict[str, Any]:
    """Returns whether and for how long a visitor keeps its arm."""
    days = given.get("sticky_days", "").strip()
    if given.get("sticky") != "1":
        return {}
    return {"sticky": 86400.0 * number("The days for which a visitor keeps its arm", days) if days else True}


def _objectives(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the goal of each of several objectives by its name, or none. Errors name the field."""
    found: dict[str, str] = {}
    for i in range(OBJECTIVES):
        name, goal = (given.get(f"o-{part}-{i}", "").strip() for part in ("name", "goal"))
        if not (name or goal):
            continue
        if not name or not goal:
            lacks, key = ("goal", f"o-goal-{i}") if name else ("name", f"o-name-{i}")
            raise Problem(422, "invalid", f"This objective has no {lacks}: fill in both, or neither.", field=key)
        if name in found:
            raise Problem(422, "invalid", "Another objective has this name: give one another.", field=f"o-name-{i}")
        if goal not in EACH:
            raise Problem(422, "invalid", f"There is no goal {goal[:20]!r}.", field=f"o-goal-{i}")
        found[name] = goal
    if len(found) == 1:
        only = next(i for i in range(OBJECTIVES) if given.get(f"o-name-{i}", "").strip())
        what = "One objective alone is a reward: leave the rows empty and choose the goal above, or add a second one."
        raise Problem(422, "invalid", what, field=f"o-name-{only}")
    return found


def _policy(given: Mapping[str, str], objectives: list[str]) -> dict[str, Any]:
    text = given.get("policy", "").strip()[:LONGEST]
    if text:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise InvalidInput('The policy is no JSON object, such as {"algorithm": "gp_ucb", "noise": 0.1}.')
        return found
    policy: dict[str, Any] = {"objectives": objectives} if objectives else {}
    for entry, usual in (("answers", "prompt"), ("reward", "")):
        if given.get(entry, usual) not in ("", usual):
            policy[entry] = given[entry]
    if given.get("sense") and given.get("constraints", "").strip() not in ("", "0"):
        policy["constraints"] = given["sense"]
    if given.get("noise", "").strip():
        policy["noise"] = number("The noise", given["noise"])
    policy |= _pruning(given)
    return {"algorithm": "auto"} | policy if policy else {}


def _pruning(given: Mapping[str, str]) -> dict[str, Any]:
    """Returns the pruning rule of a policy: a word, or a part if more is said than the word."""
    rule, steps, of, spared = (given.get(name, "").strip() for name in ("pruning", "steps", "of", "explore"))
    more: dict[str, Any] = {"steps": _whole("The full number of steps", steps)} if steps else {}
    more |= {"of": of} if of else {}
    more |= {"explore": number("The share that runs on", spared)} if spared else {}
    if not (rule or more):
        return {}
    return {"pruning": {"type": rule or "never"} | more if more else rule}


def _waiting(given: Mapping[str, str], *, several: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if given.get("deadline", "").strip():
        found["deadline"] = number("The deadline", given["deadline"])
    if given.get("on_deadline", "abandon") not in ("", "abandon"):
        found["on_deadline"] = given["on_deadline"]
    if given.get("collect"):
        found["reward"] = given["collect"]
    if given.get("default_reward", "").strip():
        parts = [number(DEFAULT, part) for part in given["default_reward"].split(",")] if several else []
        found["default_reward"] = parts or number(DEFAULT, given["default_reward"])
    return found


def _space(kind: str, rows: int, given: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for i in range(rows):
        name, type_ = (given.get(f"{kind}-{part}-{i}", "").strip() for part in ("name", "type"))
        if not (name or type_):
            continue
        if not name or not type_:
            raise InvalidInput(f"Row {i + 1} has {'no name' if not name else 'no type'}: fill in both, or neither.")
        if name in found:
            raise InvalidInput(f"Two parameters are called {name[:40]!r}: give one another name.")
        described = _parameter(kind, i, name, type_, given)
        found[name] = described | _condition(given.get(f"{kind}-when-{i}", ""), name, found)
        try:
            parameter(found[name])
        except InvalidInput as error:
            raise InvalidInput(f"{name[:40]!r}: {error}") from None
    return found


def _condition(text: str, name: str, above: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Returns the entry "when" of a parameter, typed as in `kernel = rbf, poly`, or no entry if nothing was typed."""
    if not text.strip():
        return {}
    on, equals, values = (part.strip() for part in text.partition("="))
    if on not in above or not equals:
        raise InvalidInput(
            f"{name[:40]!r} counts only where {text.strip()[:40]!r}: name a parameter of a row above and its options, "
            "such as kernel = rbf, poly."
        )
    typed = [value.strip() for value in values.split(",") if value.strip()]
    if above[on]["type"] == "choice":
        return {"when": {on: typed}}
    read = _whole if above[on]["type"] == "int" else number
    return {"when": {on: [read(f"A value of {on[:40]!r}", value) for value in typed]}}


def _parameter(kind: str, i: int, name: str, type_: str, given: Mapping[str, str]) -> dict[str, Any]:
    if type_ == "choice":
        options = [each.strip() for each in given.get(f"{kind}-options-{i}", "").split(",") if each.strip()]
        return {"type": type_, "options": options}
    ends = [given.get(f"{kind}-{end}-{i}", "") for end in ("low", "high")]
    read = _whole if type_ == "int" else number
    low, high = (read(f"An end of {name[:40]!r}", end) for end in ends)
    described = {"type": type_, "low": low, "high": high}
    step = given.get(f"{kind}-step-{i}", "").strip()
    if step and (type_, step) != ("int", "1"):
        described["step"] = read(f"The step of {name[:40]!r}", step)
    return described | ({"log": True} if given.get(f"{kind}-log-{i}") == "1" else {})


def _arms(text: str) -> list[list[float]]:
    lines = [line for line in text[:LONGEST].splitlines() if line.strip()]
    if len(lines) > MOST_ARMS:
        raise InvalidInput(f"{len(lines)} arms are more than the form takes, {MOST_ARMS}: use the API.")
    return [[number("A coordinate of an arm", part) for part in line.split(",")] for line in lines]


def _whole(what: str, text: str) -> int:
    return whole(what, text, digits=18)


def code_of(name: str, body: Mapping[str, Any], base: str) -> list[dict[str, str]]:
    """Returns the request as JSON and curl, and as Python unless its policy was typed as a recipe.

    Args:
        name: of the study.
        body: of the request.
        base: address of the service.
    """
    address = f"{base}/v1/studies/{segment(name)}"
    code = {"JSON": json.dumps(body, indent=1), "curl": curl("PUT", address, body), "Python": _python(name, body, base)}
    return [{"title": title, "code": text} for title, text in code.items() if text]


def _python(name: str, body: Mapping[str, Any], base: str) -> str:
    """Returns a program that makes the same study with the client, or nothing."""
    policy = body.get("policy", {})
    more = {entry: value for entry, value in body.items() if entry in AROUND}
    lines = ["import nilregret as nr", "from nilregret.client import Client", ""]
    if "type" in policy:
        made = f"nr.Policy.from_json({json.dumps(policy)!r})"
    elif policy.get("algorithm", "auto") == "auto" and set(policy) <= {"algorithm", *OF_FORM}:
        domain = f"nr.Arms({body['arms']!r})" if "arms" in body else _space_code(body.get("space", {}))
        domain += f".where({', '.join(map(repr, body['where']))})" if "where" in body else ""
        steps = f".grid({body['grid']})" if "grid" in body else ""
        lines.append(f"domain = {domain}{steps}")
        made = f"nr.auto(domain{_arguments(body, policy)})"
    else:
        return ""
    around = "".join(f", {entry}={value!r}" for entry, value in more.items())
    return "\n".join([*lines, f"study = Client({base!r}).create({name!r}, {made}{around})"])


def _arguments(body: Mapping[str, Any], policy: Mapping[str, Any]) -> str:
    said = {entry: repr(policy[entry]) for entry in ("objectives", "noise", "answers", "reward") if entry in policy}
    if "pruning" in policy:
        said["pruning"] = _pruning_code(policy["pruning"])
    if "context" in body:
        said["context"] = _space_code(body["context"])
    if "constraints" in body:
        average = policy.get("constraints") == "on_average"
        said["constraints"] = f"nr.OnAverage(count={body['constraints']})" if average else str(body["constraints"])
    return "".join(f", {entry}={text}" for entry, text in said.items())


def _pruning_code(rule: str | Mapping[str, Any]) -> str:
    if isinstance(rule, str):
        return repr(rule)
    more = ", ".join(f"{entry}={value!r}" for entry, value in rule.items() if entry != "type")
    return f"nr.slots.{str(rule['type']).capitalize()}({more})"


def _space_code(space: Mapping[str, Mapping[str, Any]]) -> str:
    said = {name: _parameter_code(described) for name, described in space.items()}
    if all(name.isidentifier() and not iskeyword(name) for name in said):
        return f"nr.Space({', '.join(f'{name}={text}' for name, text in said.items())})"
    return f"nr.Space(**{{{', '.join(f'{name!r}: {text}' for name, text in said.items())}}})"


def _parameter_code(described: Mapping[str, Any]) -> str:
    if described["type"] == "choice":
        more = ", unknown=True" if "unknown" in described else ""
        text = f"nr.Choice({', '.join(map(repr, described['options']))}{more})"
    else:
        more = "".join(f", {entry}={described[entry]}" for entry in ("log", "step", "unknown") if entry in described)
        text = f"nr.{described['type'].capitalize()}({described['low']}, {described['high']}{more})"
    for on, values in described.get("when", {}).items():
        text = f"nr.when({on!r}, {values!r}, {text})"
    return text
