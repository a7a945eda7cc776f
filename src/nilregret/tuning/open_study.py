"""The study of a run: a new one, or the stored one. Its policy is given, stored or chosen by `auto`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from .._utils.checks import many, shown
from ..algorithms.auto import auto
from ..algorithms.earlier import with_earlier
from ..domains.domain import Domain, Space, column_order, options_of
from ..domains.options import known
from ..errors import InvalidInput
from ..policy.policy import Policy
from ..serialize import loads, to_plain
from ..slots.by_name import check_part, chosen
from ..slots.explore import within_time
from ..slots.fidelity import Fidelity
from ..slots.pruning import Never, Pruning
from ..study.definition import differing, listed, same_values
from ..study.direction import AnyPolicy, Goal, check_policy, has_channels, paid_by, setting_of
from ..study.pruning import pruning_of
from ..study.stored import space_now
from ..study.study import Study
from .outcome import UNLIMITED, ConstraintReader

if TYPE_CHECKING:
    from ..storage import Storage


def open_study(
    domain: Domain,
    policy: AnyPolicy | None,
    *,
    goal: Goal,
    seed: int,
    storage: str | Storage | None,
    name: str,
    budget: int | None = None,
    seconds: float | None = None,
    parallel: int = 1,
    reader: ConstraintReader = UNLIMITED,
    about: Mapping[str, str] | None = None,
    like: Any = None,
    pruning: str | Pruning | None = None,
    steps: int | None = None,
    of: Literal["last", "best"] | None = None,
    fidelity: Fidelity | None = None,
) -> Study:
    """Returns the study of a run, new or from the storage.

    Args:
        domain: domain of the points.
        policy: the policy. None for the stored one, or for a new study that of `auto`. A later version of the library,
            or another number of workers, goes on with the stored policy.
        goal: goal of the study.
        seed: seed of all random choices.
        storage: see `Study`.
        name: name of the study in the storage.
        budget: number of trials, if known.
        seconds: length of the run, if known, of which the initial design of `auto` takes a third at most.
        parallel: number of evaluations at once.
        reader: reads the constraint values of answers.
        about: facts to keep with the study.
        like: earlier studies for the policy of `auto`, or None.
        pruning: rule that stops trials, or its name, or None.
        steps: full number of steps of a trial, if known.
        of: which value of a curve counts.
        fidelity: setting that the policy chooses, or None.
    """
    rule = asked_rule(pruning, steps, of)
    given, policy = policy, policy or _stored(domain, storage, name)
    if policy is None:
        made = auto(
            domain, budget=budget, parallel=parallel, constraints=reader.count, cost=reader.cost,
            objectives=reader.names or 1, pruning=rule, fidelity=fidelity,
        )  # fmt: skip
        policy = made if like is None else with_earlier(made, like, goal=goal)
        if seconds is not None:
            policy = policy.using(explore=within_time(policy.explore, seconds, parallel=parallel))
    check_objectives(policy, reader)
    check_constraint_count(policy, reader)
    check_cost(policy, reader.cost)
    check_pruning(policy, pruning, steps, of)
    check_fidelity(policy, fidelity)
    policy = policy if given is None else _with_names(policy, reader.names)
    study = Study(policy, goal=reader.goals or goal, seed=seed, storage=storage, name=name, about=about)
    if given is None and study.replica.roster.spaces is not None:
        _check_same(study.policy.domain, domain, storage, name)
    return study


def check_alone(like: Any, policy: object) -> None:
    """Raises an error if earlier studies and a policy were both given."""
    if like is not None and policy is not None:
        raise InvalidInput(
            "`like` and `policy` were both given, and a given policy stays as it is: leave one out.",
            advice="A policy that knows earlier studies is made by `nr.auto(space, like=...)`.",
        )


def named_goals(study: Study) -> dict[str, Goal] | None:
    """Returns the goal of each of several objectives of a study by name, or None for one objective."""
    several = len(study.goals) > 1
    return dict(zip(study.policy.objective_names, study.goals, strict=True)) if several else None


def check_several(objectives: object, *, stop: object = None, cost: object = None, like: object = None) -> None:
    """Raises an error for an argument that is for one objective, if there are several."""
    if objectives is None:
        return
    if stop is not None:
        raise InvalidInput(
            "`stop` is for one objective: no rule that ends a search for a front has held in tests.",
            advice="Take `trials`, `seconds` or a callback.",
        )
    if cost is not None:
        raise InvalidInput("`cost` is for one objective: leave it out, or make the cost one of the objectives.")
    if like is not None:
        raise InvalidInput("`like` is for one objective: leave it out.", advice="`enqueue` takes points to try first.")


def check_objectives(policy: AnyPolicy, reader: ConstraintReader) -> None:
    """Raises an error if the policy has other objectives than answers have."""
    count = max(len(reader.names), 1)
    given = cast(Any, policy).constraints.names if policy.objective_count > 1 else None
    if policy.objective_count == count and (given is None or given == reader.names):
        return
    theirs = many(policy.objective_count, "objective")
    if policy.objective_count > 1:
        theirs += f" ({', '.join(policy.objective_names)})"
    if not reader.names:
        raise InvalidInput(
            f"`policy` has {theirs}, and `objectives` does not say what is in an answer: give each a name and a goal.",
            advice="Such as objectives={'loss': 'minimize', 'recall': 'maximize'}.",
        )
    raise InvalidInput(
        f"`objectives` are {', '.join(map(repr, reader.names))}, and `policy` has {theirs}: make it by "
        f"`nr.auto(space, objectives={reader.names})`, or leave `policy` out.",
        advice="A study on record has the policy with which it began: another `name` begins a new one.",
    )


def _with_names(policy: AnyPolicy, names: tuple[str, ...]) -> AnyPolicy:
    """Returns a policy that knows the names of several objectives."""
    if not names or not isinstance(policy, Policy):
        return policy
    return replace(policy, constraints=replace(cast(Any, policy.constraints), names=names))


def check_constraint_count(policy: AnyPolicy, reader: ConstraintReader) -> None:
    """Raises an error if the policy takes another number of constraint values than answers have."""
    if policy.constraint_count == reader.count:
        return
    if not reader.count:
        raise InvalidInput(
            f"`policy` needs {many(policy.constraint_count, 'constraint value')} with each answer, and the objective "
            "gives one number: say with `constraints=` where they come from, such as constraints=['latency <= 50']."
        )
    rule = type(policy.constraints).__name__ if has_channels(policy) else "EveryRound"
    raise InvalidInput(
        f"The objective has {many(reader.count, 'constraint')}, and `policy` takes {policy.constraint_count}: make "
        f"it with constraints=nr.{rule}(count={reader.count}), or leave `policy` out. (A study on record has the "
        "policy with which it began: another `name` begins a new one.)"
    )


def check_cost(policy: AnyPolicy, cost: str | None) -> None:
    """Raises an error if the policy does not take what a trial costs from the entry that was named."""
    if cost is not None and paid_by(policy) != cost:
        raise InvalidInput(
            f"`cost` is {shown(cost)}, and `policy` does not divide by it: make it with cost={cost!r}, as by "
            f"`nr.auto(space, cost={cost!r})`, or leave `cost` out.",
            advice="A study on record has the policy with which it began: another `name` begins a new one.",
        )


def asked_rule(pruning: object, steps: int | None, of: object) -> Pruning | None:
    """Returns the pruning rule that arguments ask for, or None if they ask for none."""
    if pruning is None and steps is None and of is None:
        return None
    rule = Never() if pruning is None else chosen({"pruning": pruning})["pruning"]
    check_part("pruning", rule)
    for name, given, own, unsaid in (("steps", steps, rule.steps, None), ("of", of, rule.of, "last")):
        if given is not None and own not in (unsaid, given):
            raise InvalidInput(f"`{name}` is {shown(given)}, and the rule in `pruning` has {shown(own)}: say it once.")
        rule = rule if given is None else replace(rule, **{name: given})
    return cast(Pruning, rule)


def check_fidelity(policy: AnyPolicy, fidelity: Fidelity | None) -> None:
    """Raises an error if the policy has another setting than the argument asks for."""
    found = setting_of(policy)
    if fidelity is not None and found != fidelity:
        raise InvalidInput(
            f"`policy` has the setting {found!r}, and `fidelity` is {fidelity!r}: make it by "
            "`nr.auto(space, fidelity=...)`, or leave `fidelity` out.",
            advice="A study on record keeps its setting: another `name` begins a new one.",
        )


def check_pruning(policy: AnyPolicy, pruning: object, steps: int | None, of: object) -> None:
    """Raises an error if the policy has another pruning rule than arguments ask for. Of a name, the kind counts."""
    found, rule = pruning_of(policy), asked_rule(pruning, steps, of)
    named = pruning is None or isinstance(pruning, str)
    if rule is None or rule == found or (named and _alike(rule, found, pruning, steps, of)):
        return
    raise InvalidInput(
        f"`policy` has the pruning rule {found!r}, and the arguments ask for {rule!r}: make it by "
        "`nr.auto(space, pruning=...)`, or leave `pruning`, `steps` and `of` out.",
        advice="A study on record has the policy with which it began: another `name` begins a new one.",
    )


def _alike(rule: Pruning, found: Pruning, pruning: object, steps: object, of: object) -> bool:
    """Returns whether a rule on record is as its name, the steps and the value that counts say, if they are given."""
    kind = pruning is None or type(rule) is type(found)
    return kind and steps in (None, found.steps) and of in (None, found.of)


def _stored(domain: Domain, storage: str | Storage | None, name: str) -> AnyPolicy | None:
    from ..storage.sql import opened

    if storage is None or (stored := opened(storage).find(name)) is None:
        return None
    with known(options_of(domain)):
        policy: AnyPolicy = loads(stored.policy)
    check_policy(policy)
    if not _is_same(policy.domain, domain):
        _check_same(loads(space_now(opened(storage), stored).policy).domain, domain, storage, name)
    return policy


def _is_same(then: Domain, now: Domain) -> bool:
    """Returns whether two domains differ in nothing but the order of parameters and options."""
    reordered = isinstance(then, Space) and isinstance(now, Space) and column_order(then, now) is not None
    return reordered or same_values(to_plain(then), to_plain(now))


def _check_same(then: Domain, now: Domain, storage: object, name: str) -> None:
    if _is_same(then, now):
        return
    learning = f", with `like = {json.dumps(f'{storage}#{name}')}` to learn from the old ones"
    learning *= isinstance(storage, str)
    both = isinstance(then, Space) and isinstance(now, Space) and {*then.declared} <= {*now.declared}
    widening = f"`Study.open(storage={str(storage)!r}, name={name!r}).widen(...)` lets it go on with these." * both
    found = listed([*differing(to_plain(then), to_plain(now), "domain")])
    raise InvalidInput(
        f"Study {shown(name)} in {storage} is of other parameters: {found}. "
        f"Choose another `name` for the new ones{learning}.",
        advice=widening,
    )
