"""Studies from JSON: a whole policy or a recipe, compared with a stored study of the same name."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from ..._utils.checks import new_study_name, points_array, shown
from ...algorithms.schema import within
from ...domains.domain import Arms, Domain, Space
from ...domains.parameters import Choice
from ...errors import InvalidInput, NoRegretError
from ...policy.policy import Policy
from ...serialize import from_plain, plain_loads, to_plain
from ...study.definition import PROPENSITIES, Difference, differences, listed, settings_as_facts, shortly
from ...study.direction import AnyPolicy, as_given, check_policy, goals_of, with_goals
from ...study.stored import space_now
from ...study.study import Study
from ...study.visits import STICKY
from ..auth.tokens import OPERATOR, Caller, of_others, stored_name
from ..watch.audit import note_making
from ..wire import messages
from ..wire.problems import Problem, about
from ..wire.settings import Limits
from ..work.deadlines import FACT, Rule
from ..work.workers import NotesStorage
from . import size_limits as sizes
from .replies import study_said
from .size_limits import check_posterior

RECIPE = ("space", "where", "arms", "grid", "context", "objectives")
AS_PUT = {  # Entries of a request by the beginnings of paths in the stored study.
    "domain.space.where": "where", "domain.where": "where", "domain.space": "space", "domain.counts": "grid",
    "domain.points": "arms", "constraints.count": "constraints", "constraints.goals": "goal", f"{FACT}.": "",
    **{each: each for each in ("context", "constraints", "objectives", "goal", "seed", "about", PROPENSITIES, STICKY)},
}  # fmt: skip


def put(
    storage: NotesStorage, caller: Caller, name: str, body: messages.StudyRequest, limits: Limits
) -> tuple[bool, messages.StudySaid]:
    """Makes a study, or compares it with the stored one. Returns whether it is new, and its description.

    Raises:
        Problem: 409, a different study has this name.
    """
    if not name.strip():
        raise Problem(422, "invalid", "A study's name must have a letter.", field="name")
    if caller.tenant == OPERATOR and of_others(storage, [name]):
        whose = shown(name.partition("/")[0])
        raise Problem(
            422, "invalid", f"{whose} is a tenant, whose studies alone begin so: choose another.", field="name"
        )
    stored_as = stored_name(storage, caller.tenant, name)
    rule = Rule(body.deadline, body.on_deadline, body.default_reward, body.late, body.reward)
    given = _policy(body, limits)
    goals = about("goal", goals_of, given, _goal(body))
    policy = about("default_reward", rule.policy, with_goals(given, goals), goals[0])
    known = storage.find(stored_as)
    if known is None:
        within("policy", check_posterior, policy, limits)
    facts = dict(body.about or {})
    if FACT in facts:
        raise InvalidInput(f"`about` has {FACT!r}, under which the waiting rule is kept: call that fact otherwise.")
    made = known is None
    facts |= rule.fact | about(STICKY, partial(settings_as_facts, propensities=body.propensities, sticky=body.sticky))
    if known is None:
        about("name", new_study_name, "name", stored_as)
        Study(policy, goal=as_given(goals), seed=body.seed, about=facts)  # raises an error before a row is written
        text = json.dumps(facts, sort_keys=True)
        known = storage.find_or_make(stored_as, policy=policy.to_json(), goal=goals[0], seed=body.seed, about=text)
        note_making(storage, known, caller)
    same: tuple[Any, ...] = (policy, goals[0], body.seed, json.dumps(facts), f"The study {name!r}")
    differing = differences(known, *same)
    if differing and differences(space_now(storage, known), *same):
        raise _another(name, [each for each in differing if not _by_default(each)], body)
    return made, messages.StudySaid(**study_said(name, policy.algorithm, known))


def _another(name: str, differing: list[Difference], body: messages.StudyRequest) -> Problem:
    """Returns the problem that a study of this name was made with something else."""
    found = _causes([each._replace(path=_entry(each.path, body)) for each in differing], body)
    return Problem(
        409, "another", f"There is a study {name!r}, made with other values: {listed(found)}. A study keeps what it "
        "was made with: put that again to go on with it, or choose another name for a new study.",
        field=re.split(r"[.[]", found[0].path, maxsplit=1)[0],
    )  # fmt: skip


def _causes(found: list[Difference], body: messages.StudyRequest) -> list[Difference]:
    """Returns the differences in entries of the request, without parts of the policy that follow from them."""
    recipe = body.policy is None or _is_recipe(body.policy)
    given = {"reward", *(body.policy if recipe and isinstance(body.policy, dict) else ())}
    if recipe:
        found = [_as_reward(each) if each.path == "policy.objective" else each for each in found]
    of_policy = [each for each in found if each.path.startswith("policy.")]
    own = [each for each in found if each not in of_policy]
    if recipe:
        own += [each for each in of_policy if re.split(r"[.[]", each.path)[1] in given]
    elif any(each.path in Rule.__dataclass_fields__ for each in own):
        own += [each for each in of_policy if not each.path.startswith("policy.pending")]
    else:
        own += of_policy
    return own or found


def _as_reward(found: Difference) -> Difference:
    """Returns a difference of the part that `reward` of a recipe has made, as the words of the recipe."""
    words = [shortly(each).lower() for each in (found.then, found.now)]
    return Difference("policy.reward", *(None if each == "rewardalone" else each for each in words))


def _by_default(found: Difference) -> bool:
    """Returns whether both are equal once the waiting rule has its defaults."""
    name = found.path.removeprefix(f"{FACT}.")
    then, now = (getattr(Rule(), name, None) if value is None else value for value in (found.then, found.now))
    return name != found.path and bool(then == now)


def _entry(path: str, body: messages.StudyRequest) -> str:
    """Returns the path of a difference as an entry of the request."""
    if path.startswith("constraints") and body.objectives is not None:
        path = path.replace("constraints", "objectives", 1)
    if body.space is None and body.arms is None and path.startswith(("domain", "context")):
        return f"policy.{path}"
    starts = AS_PUT | {"domain": "space" if body.arms is None else "arms"}
    start = next((each for each in starts if path.startswith(each)), "")
    return starts[start] + path.removeprefix(start) if start else f"policy.{path}"


def _goal(body: messages.StudyRequest) -> messages.Goal | list[messages.Goal]:
    """Returns the goal of all objectives, or of each."""
    if not isinstance(body.objectives, dict):
        return body.goal
    if body.goal != "maximize":
        raise InvalidInput("`goal` is beside `objectives`, which have goals of their own: leave `goal` out.")
    return list(body.objectives.values())


def _policy(body: messages.StudyRequest, limits: Limits) -> AnyPolicy:
    if isinstance(body.policy, str) and not body.policy.lstrip().startswith("{"):
        raise InvalidInput(
            f"`policy` is {shown(body.policy)}, and as a text it must be a whole policy in JSON. An algorithm by its "
            f'name is an object: {{"algorithm": {json.dumps(body.policy[:60])}}}.'
        )
    if body.policy is not None and not _is_recipe(body.policy):
        beside = [entry for entry in RECIPE if getattr(body, entry) is not None] + ["constraints"] * bool(
            body.constraints
        )
        if beside:
            raise InvalidInput(
                f"`{beside[0]}` is part of a recipe, and there is a whole `policy` too: give one or the other."
            )
        return within("policy", whole, body.policy, limits)
    if body.space is not None and body.arms is not None:
        raise InvalidInput(
            "`space` and `arms` are both given, and each says what there is to choose from: give one of them."
        )
    if body.space is None and body.arms is None:
        raise InvalidInput(
            "`space` or `arms` is missing: say what there is to choose from by one of them, or give a whole `policy`."
        )
    for entry in ("grid", "where"):
        if body.arms is not None and getattr(body, entry) is not None:
            raise InvalidInput(f"`{entry}` is of the parameters of a `space`, and here are `arms`: leave it out.")
    return _of_recipe(body, limits)


def _is_recipe(policy: dict[str, Any] | str) -> bool:
    """Returns whether the policy is written as in a tuning file, and is not a whole one."""
    return isinstance(policy, dict) and "type" not in policy


def whole(data: dict[str, Any] | str, limits: Limits) -> AnyPolicy:
    """Returns a policy from what `to_json` writes: names of known classes and plain values, never code to run."""
    plain = plain_loads(data) if isinstance(data, str) else data
    if isinstance(plain, dict):
        sizes.check_policy(plain, limits)
    policy = from_plain(plain)
    try:
        check_policy(policy)
    except NoRegretError:
        raise InvalidInput("This describes no policy.", topic="policy") from None
    found: AnyPolicy = policy
    return found


def _of_recipe(body: messages.StudyRequest, limits: Limits) -> Policy:
    """Returns the policy that a tuning file would make, with the same tables, checks and sentences."""
    from ...algorithms.registry import PolicyContext, policy

    space = None if body.space is None else _space("space", body.space, limits)
    if space is not None and body.where:
        space = about("where", space.where, *body.where)
    context = None if body.context is None else _space("context", body.context, limits)
    domain = _domain(body, space, limits)
    sizes.check_made(domain, context, limits)
    table = dict(body.policy) if isinstance(body.policy, dict) else {}
    beside = PolicyContext(space, None, body.constraints, context, live=True, objectives=tuple(body.objectives or ()))
    made = within("policy", policy, {"algorithm": "auto"} | table, domain, beside)
    within("policy", sizes.check_policy, to_plain(made), limits)
    return made


def _domain(body: messages.StudyRequest, space: Space | None, limits: Limits) -> Domain:
    if space is None:
        about("arms", sizes.check_arms, len(body.arms or ()), limits)
        points = about("arms", points_array, "arms", body.arms)
        return about("arms", Arms, points, always=True)
    if body.grid is None:
        return space
    if isinstance(body.grid, dict):
        _check_grid(body.grid, space)
    return about("grid", sizes.gridded, space, body.grid, limits)


def _check_grid(grid: dict[str, int], space: Space) -> None:
    names = [name for name, each in space.parameters.items() if not isinstance(each, Choice)]
    if set(grid) != set(names):
        raise InvalidInput(
            f"`grid` has {shown(sorted(grid))}, and the parameters that are numbers are {shown(names)}: give steps for "
            "each of them, or one number for all."
        )


def _space(entry: str, tables: dict[str, dict[str, Any]], limits: Limits) -> Space:
    from ...algorithms.schema import parameter

    read = {name: within(f"{entry}.{name}", parameter, table) for name, table in tables.items()}
    space: Space = about(entry, lambda: Space(**read))
    about(entry, sizes.check_columns, space, limits)
    return space
