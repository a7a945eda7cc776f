"""Studies from JSON: a whole policy, or a recipe; and what differs where one of that name is there."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from ..algorithms.auto import auto
from ..checks import points_array
from ..domain import Arms, Domain, Space
from ..errors import InvalidInput, NoRegretError
from ..policy.policy import Policy
from ..serialize import from_plain, loads
from ..study.goal import AnyPolicy
from ..study.integrity import differences
from ..study.study import Study, check_policy
from . import messages
from .caller import Caller
from .desk import Place
from .problems import Problem
from .replies import study_said
from .tenants import BETWEEN, stored_name
from .waiting import FACT, Rule

RECIPE = ("space", "arms", "grid", "context", "options")


def put(storage: Place, caller: Caller, name: str, body: messages.StudyRequest) -> tuple[bool, messages.StudySaid]:
    """Make a study; whether it was not there before, and what it is.

    Raises:
        Problem: 409, there is another one of this name.
    """
    if not name.strip() or BETWEEN in name:
        raise Problem(422, "invalid", "A study's name must have a letter, and no slash.", field="name")
    stored_as = stored_name(caller.tenant, name)
    rule = Rule(body.deadline, body.on_deadline, body.default_reward, body.late)
    policy = rule.policy(_policy(body), body.goal)
    about = dict(body.about or {})
    if FACT in about:
        raise InvalidInput(f"`about` has {FACT!r}, under which the waiting rule is kept: call that fact otherwise.")
    known = storage.find(stored_as)
    made = known is None
    if known is None:
        with_rule = about | rule.fact
        Study(
            policy, goal=body.goal, seed=body.seed, about=with_rule
        )  # refuses what cannot be, before a row is written
        text = json.dumps(with_rule, sort_keys=True)
        known = storage.find_or_make(stored_as, policy=policy.to_json(), goal=body.goal, seed=body.seed, about=text)
    facts = json.dumps(about | rule.fact)
    differing = differences(known, policy.to_json(), body.goal, body.seed, facts, f"The study {name!r}")
    if differing:
        raise Problem(
            409, "another", f"There is a study {name!r}, made with another {', '.join(differing)}. A study keeps what "
            "it was made with: put that again to go on with it, or choose another name for a new study.",
            field=differing[0].partition(" (")[0],
        )  # fmt: skip
    return made, messages.StudySaid(**study_said(name, policy.algorithm, known))


def _policy(body: messages.StudyRequest) -> AnyPolicy:
    recipe = [entry for entry in RECIPE if getattr(body, entry) is not None]
    if body.policy is not None:
        if recipe or body.constraints:
            other = recipe[0] if recipe else "constraints"
            raise InvalidInput(f"`{other}` is part of a recipe, and there is a `policy` too: give one or the other.")
        return whole(body.policy)
    if (body.space is None) == (body.arms is None):
        raise InvalidInput(
            "`space` or `arms` is missing: say what there is to choose from by one of them, or give a whole `policy`."
        )
    domain: Domain = Arms(points_array("arms", body.arms)) if body.arms is not None else _gridded(body)
    context = None if body.context is None else _space("context", body.context)
    return _auto(domain, context, body)


def whole(data: dict[str, Any] | str) -> AnyPolicy:
    """A policy as `to_json` writes it: names of known classes and plain values, nothing that is executed."""
    policy = loads(data) if isinstance(data, str) else from_plain(data)
    try:
        check_policy(policy)
    except NoRegretError:
        raise InvalidInput("`policy` describes no policy: it must be what `policy.to_json()` writes.") from None
    found: AnyPolicy = policy
    return found


def _auto(domain: Domain, context: Space | None, body: messages.StudyRequest) -> Policy:
    from ..tuning.schema import ALGORITHMS
    from ..tuning.sections import within

    of_files = ALGORITHMS["auto"]  # whose rewards are averages; here clicks and counts come one by one
    section = replace(of_files, allowed={**of_files.allowed, "reward": str}, refused={})
    options = within("options", section.check, body.options or {}, "auto")
    return auto(domain, context=context, constraints=body.constraints, **options)


def _gridded(body: messages.StudyRequest) -> Arms | Space:
    space = _space("space", body.space or {})
    return space if body.grid is None else space.grid(body.grid)


def _space(entry: str, tables: dict[str, dict[str, Any]]) -> Space:
    from ..tuning.config import parameter
    from ..tuning.sections import within

    return Space(**{name: within(f"{entry}.{name}", parameter, table) for name, table in tables.items()})
