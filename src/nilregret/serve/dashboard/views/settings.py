"""The settings of a study: in words, as JSON, and as code that goes on with it."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ...._utils.checks import many
from ....domains.domain import Arms, Box, Domain, Space, space_of
from ....domains.options import readable
from ....domains.parameters import Choice, Int, Parameter
from ....policy.policy import Policy
from ....storage import StoredStudy
from ....study.direction import AnyPolicy
from ....study.formatting import duration, in_words
from ....study.formatting import settings as settings_text
from ....study.study import Study
from ....study.visits import STICKY
from ...wire.messages import segment
from ...work.collected import WHOLE
from ...work.deadlines import FACT, Rule
from .pictures import each_short, goals_text, has_front, names_of, short

MOST_NAMED = 12  # parameters, options or sides in a list


def domain_text(domain: Domain) -> str:
    """Returns a description of a domain, such as the range of each parameter."""
    if isinstance(domain, Space):
        return _space(domain)
    if isinstance(domain, Box):
        ends = zip(domain.lower.tolist(), domain.upper.tolist(), strict=True)
        sides = [f"{short(low)} to {short(high)}" for low, high in ends]
        return f"{many(len(sides), 'number')}: {_listed(sides, ', ')}"
    named = "" if domain.space is None else f" of {_space(domain.space)}"
    size = "" if domain.dimension == 1 or domain.space is not None else f" in {domain.dimension} dimensions"
    return many(len(domain), "arm") + size + named


def _space(space: Space) -> str:
    needs = {} if space.conditions is None else space.conditions.needs
    said = [
        f"{name} {_parameter(parameter)}"
        + "".join(f", where {need.on} is {_any(need.values)}" for need in needs.get(name, ()))
        for name, parameter in space.parameters.items()
    ]
    limits = "" if space.limits is None else f", where {_listed(list(space.limits.texts), ' and ')}"
    return _listed(said, "; ") + limits


def _parameter(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return _any(parameter.options)
    steps = ""
    if isinstance(parameter, Int) and parameter.step == 1:
        steps = ", whole numbers"
    elif parameter.step is not None:
        steps = f", in steps of {short(parameter.step)}"
    if parameter.low == parameter.high:
        return f"always {short(parameter.low)}"
    return f"{short(parameter.low)} to {short(parameter.high)}{steps}"


def _any(options: Iterable[object]) -> str:
    return _listed([short(option) for option in options], " or ")


def _listed(said: list[str], between: str) -> str:
    if len(said) <= MOST_NAMED:
        return between.join(said)
    return between.join(said[:MOST_NAMED]) + f" and {len(said) - MOST_NAMED} more"


MOST_ARMS = 200  # listed
PARTS = (
    "score", "kernel", "confidence", "explore", "memory", "pending", "objective", "refit", "sketch", "switching",
)  # fmt: skip
IDLE = ("Forever", "NoExploration", "Ignored", "RewardAlone")  # parts that do nothing


def settings(study: Study, name: str, stored: StoredStudy, base: str, storage: str | None) -> dict[str, Any]:
    """Returns the settings of a study.

    Args:
        study: a study with any policy.
        name: of the study, as the caller knows it.
        stored: the study as the storage knows it.
        base: address of the service, such as "http://127.0.0.1:8000".
        storage: address of the storage without a password, or None if the caller may not know it.
    """
    return {
        "facts": description(study), "word": "values" if has_front(study) else names_of(study)[0], "arms": _arms(study),
        "policy": json.dumps(json.loads(study.policy.to_json()), indent=2),
        "created_at": stored.created_at, "stored_as": stored.name,
        "clients": _clients(study, name, base, stored.name, storage),
        "api": f"/v1/studies/{segment(name)}",
    }  # fmt: skip


def _arms(study: Study) -> dict[str, Any] | None:
    """Returns the first arms with their trials, and how many there are, or None if the study has none."""
    policy = study.policy
    if not isinstance(policy, Policy) or not isinstance(policy.domain, Arms):
        return None
    arms, played = study.arms, Counter(trial.arm for trial in study.trials)
    rows = [
        {
            "number": arm.number, "name": arm.name or "", "retired": arm.retired, "trials": played[arm.number],
            "where": settings_text(arm.parameters, arm.point.tolist(), None),
        }
        for arm in arms[:MOST_ARMS]
    ]  # fmt: skip
    return {"rows": rows, "count": len(arms), "named": any(row["name"] for row in rows)}


def curl(method: str, address: str, body: Mapping[str, Any]) -> str:
    """Returns the line of a shell that sends a request with a body of JSON."""
    sent = shlex.quote(json.dumps(body))
    return f"curl -X {method} {shlex.quote(address)} -H 'Content-Type: application/json' -d {sent}"


def _clients(study: Study, name: str, base: str, stored_as: str, storage: str | None) -> list[dict[str, str]]:
    """Returns code that asks for a trial and tells its reward: with curl, from Python, and on the command line."""
    policy, at = study.policy, f"{base}/v1/studies/{segment(name)}"
    context = None if policy.context is None or study.inputs.full is not None else _example(policy.context)
    limits = [0.0] * policy.constraint_count
    asked = {} if context is None else {"context": context}
    values = [1.0] * policy.objective_count
    reward, listed = tuple(values) if has_front(study) else 1.0, ",".join(map(str, values))
    told = {"reward": reward} | ({"constraints": limits} if limits else {})
    under = "" if context is None else repr(context)
    more = f", constraints={limits}" if limits else ""
    where, known = "STORAGE" if storage is None else shlex.quote(storage), shlex.quote(stored_as)
    opened = "STORAGE" if storage is None else storage
    option = "" if context is None else f" --context {shlex.quote(json.dumps(context))}"
    more_told = "" if not limits else "".join(f" --constraint {each}" for each in limits)
    return [
        {"title": "curl", "code": "\n".join(
            [curl("POST", f"{at}/decisions", asked), curl("PUT", f"{at}/decisions/ID/reward", told)]
        )},
        {"title": "Python, over HTTP", "code": (
            f"from nilregret.client import Client\n\nstudy = Client({base!r}).study({name!r})\n"
            f"decision = study.ask({under})\nstudy.tell(decision, {reward}{more})"
        )},
        {"title": "Python, on the same storage", "code": (
            f"import nilregret as nr\n\nstudy = nr.Study.open(storage={opened!r}, name={stored_as!r})\n"
            f"trial = study.ask({under})\nstudy.tell(trial, {reward}{more})"
        )},
        {"title": "Command line", "code": (
            f"nilregret ask {where} {known}{option}\nnilregret tell {where} {known} NUMBER {listed}{more_told}"
        )},
    ]  # fmt: skip


def _example(domain: Domain) -> Any:
    """Returns a point of a domain: its parameters by name, or its coordinates."""
    space = space_of(domain)
    if space is None:
        return domain.points[0].tolist() if isinstance(domain, Arms) else domain.lower.tolist()
    return readable({name: parameter.values(1)[0] for name, parameter in space.parameters.items()})


def description(study: Study) -> list[tuple[str, str]]:
    """Returns the settings of a study as pairs of a name and a text."""
    facts = [
        ("policy", _policy_text(study.policy)), ("goal", goals_text(study)),
        ("to choose from", domain_text(study.policy.domain)),
    ]  # fmt: skip
    if study.policy.context is not None:
        name = "contexts" if study.inputs.full is None else "fidelity, which it chooses too"
        facts.append((name, domain_text(study.policy.context)))
    if study.policy.constraint_count:
        facts.append(("constraints", str(study.policy.constraint_count)))
    facts.append(("seed", str(study.seed)))
    return facts + [
        ("answers", _deadline_text(Rule.of(dict(study.about)))) if name == FACT
        else (name, _sticky_text(value)) if name == STICKY else (name, str(value))
        for name, value in study.about.items()
    ]  # fmt: skip


def _sticky_text(value: object) -> str:
    """Returns a text on how long a unit keeps its arm."""
    return "a unit keeps its arm " + (
        f"for {duration(value)}" if isinstance(value, float) else "as long as the arm may be played"
    )


def _policy_text(policy: AnyPolicy) -> str:
    """Returns the algorithm and the names of its parts, but for parts that do nothing."""
    if not isinstance(policy, Policy):
        return policy.algorithm
    parts = ((slot, type(getattr(policy, slot)).__name__) for slot in PARTS if getattr(policy, slot) is not None)
    said = [slot if name.lower() == slot else f"{slot}: {in_words(name)}" for slot, name in parts if name not in IDLE]
    return f"{policy.algorithm} ({', '.join(said)})"


def _deadline_text(rule: Rule) -> str:
    """Returns a text on the deadline of a trial, and on the outcome that is set then."""
    instead = "nothing" if rule.default_reward is None else each_short(rule.default_reward)
    what = {
        "abandon": "then the trial is given up", "fail": "then it is told to have failed",
        "reward": f"then {instead} is told instead", "censor": f"and until they come they count as {instead}",
        "silence": f"and as time goes by silence comes to count as {instead}",
    }[rule.on_deadline]  # fmt: skip
    if rule.reward is not None:
        what = f"then {WHOLE[rule.reward]} is told, and without any {what.removeprefix('then ')}"
    return "are waited for " + ("for ever" if rule.deadline is None else duration(rule.deadline)) + f", {what}"
