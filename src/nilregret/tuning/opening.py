"""The study behind a run: new, or as it is in its storage, with a policy that was given, stored or chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .._utils.checks import many, shown
from .._utils.errors import InvalidInput
from .._utils.serialize import loads
from ..algorithms.auto import auto
from ..domains.domain import Domain, Space
from ..study.direction import AnyPolicy, Goal
from ..study.study import Study, check_policy
from .feasibility import UNLIMITED, Limits

if TYPE_CHECKING:
    from ..storage import Storage


def opened(
    domain: Domain,
    policy: AnyPolicy | None,
    *,
    goal: Goal,
    seed: int,
    storage: str | Storage | None,
    name: str,
    budget: int | None = None,
    parallel: int = 1,
    limits: Limits = UNLIMITED,
    about: Mapping[str, str] | None = None,
) -> Study:
    """New, or as it is in the storage.

    Args:
        domain: what may be played.
        policy: how to decide; None for what the library would choose, or chose when the study began: a later version,
            or another number of workers, goes on with that.
        goal: of the study, as all that follows.
        seed: of all random choices.
        storage: as of `Study`.
        name: within it.
        budget: how many trials there will be, if that is known.
        parallel: how many evaluations are under way at once.
        limits: what answers must satisfy.
        about: facts to keep with it.
    """
    policy = policy or _stored(domain, storage, name)
    policy = policy or auto(domain, budget=budget, parallel=parallel, constraints=limits.count)
    check_count(policy, limits)
    return Study(policy, goal=goal, seed=seed, storage=storage, name=name, about=about)


def check_count(policy: AnyPolicy, limits: Limits) -> None:
    """Refuse a policy that takes another number of constraint values than answers will have."""
    if policy.constraint_count == limits.count:
        return
    if not limits.count:
        raise InvalidInput(
            f"`policy` needs {many(policy.constraint_count, 'constraint value')} with each answer, and the objective "
            "gives one number: say with `constraints=` where they come from, such as constraints=['latency <= 50']."
        )
    raise InvalidInput(
        f"The objective has {many(limits.count, 'constraint')}, and `policy` takes {policy.constraint_count}: make "
        f"it with constraints=nr.EveryRound(count={limits.count}), or leave `policy` out. (A study on record has the "
        "policy with which it began: another `name` begins a new one.)"
    )


def _stored(domain: Domain, storage: str | Storage | None, name: str) -> AnyPolicy | None:
    from ..storage.opening import opened

    stored = None if storage is None else opened(storage).find(name)
    if stored is None:
        return None
    policy: AnyPolicy = loads(stored.policy)
    check_policy(policy)
    if policy.domain != domain:
        raise InvalidInput(
            f"Study {shown(name)} in {storage} is of other parameters: {_differences(policy.domain, domain)}. "
            "Choose another `name` for the new ones."
        )
    return policy


def _differences(then: Domain, now: Domain) -> str:
    """In what two domains differ: of spaces the parameters that do, since the whole is long and cut."""
    if isinstance(then, Space) and isinstance(now, Space):
        names = list(dict.fromkeys([*then.declared, *now.declared]))
        differing = [name for name in names if then.declared.get(name) != now.declared.get(name)]
        if not differing:
            return f"they stood in the order {', '.join(then.declared)}"
        return "; ".join(
            f"`{name}` was {_declared(then, name)} then and is {_declared(now, name)} now" for name in differing
        )
    return f"{shown(then)} then, {shown(now)} now"


def _declared(space: Space, name: str) -> str:
    return shown(space.declared[name]) if name in space.declared else "not there"
