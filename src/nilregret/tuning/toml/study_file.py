"""A study from a file without an objective, in TOML or JSON, for programs that ask and tell by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from ..._utils.files import text_of
from ...algorithms.auto import auto
from ...algorithms.registry import PolicyContext, policy
from ...algorithms.schema import convert, within
from ...errors import InvalidInput, NoRegretError
from ...serialize import loads
from ...study.direction import GOALS, AnyPolicy, Goal, as_given, check_policy, goals_of
from .config import Positive, named_space, read_toml, several, space_and_domain

WANTED = (
    "A file of a study has [parameters.NAME], and may have [policy], [context.NAME], `where`, `goal`, `objectives`, "
    "`seed`, `grid`."
)
FOR_TUNING = {"trials", "objective", "storage", "name", "plot"}


class _File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    parameters: dict[str, dict[str, Any]]
    where: list[str] | str | None = None  # Limits of the parameters, such as "a + b <= 1".
    context: dict[str, dict[str, Any]] | None = None  # The parameters that are known before each decision.
    policy: dict[str, Any] | None = None
    goal: str | list[str] | None = None  # Of several objectives one word for all, or one for each.
    objectives: dict[str, str] | list[str] | None = None  # Goals by name, or names that share `goal`.
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    grid: Positive | dict[str, Positive] | None = None
    constraints: Annotated[int, msgspec.Meta(ge=0)] = 0  # The number of values told with each reward.


class Described(NamedTuple):
    """The policy, goal and seed in a file."""

    policy: AnyPolicy
    goal: Goal | tuple[Goal, ...]
    seed: int


def load(path: Path) -> Described:
    """Reads and checks a file: `.toml`, or `.json` as of `policy.to_json()`. Errors name the file and the field."""
    if path.suffix.lower() == ".json":
        return _from_json(path)
    if path.suffix.lower() != ".toml":
        raise InvalidInput(f"{path}: a study is described by a file that ends in .toml or .json.")
    data = read_toml(path, WANTED)
    for_tuning = sorted(FOR_TUNING & data.keys())
    if for_tuning:
        raise InvalidInput(
            f"{path}: {', '.join(f'`{name}`' for name in for_tuning)} is for `nilregret tune`, which makes its study "
            f"by itself. {WANTED}"
        )
    try:
        return _described(convert(data, _File, ""), path.resolve().parent)
    except NoRegretError as error:
        raise error.after(f"{path}: ") from error


def _from_json(path: Path) -> Described:
    text = text_of(path)
    try:
        made = loads(text)
        check_policy(made)
    except NoRegretError as error:
        wanted = "It must hold a policy as the library writes it."
        raise InvalidInput(f"{path}: {error.what} {wanted}", advice="`policy.to_json()` gives it.") from error
    return Described(made, "maximize", 0)


def _described(file: _File, folder: Path) -> Described:
    if not file.parameters:
        raise InvalidInput("[parameters] is empty: there is nothing to decide.")
    space, domain = space_and_domain(file.parameters, file.where, file.grid)
    context = named_space("context", file.context) if file.context else None
    objectives = several(file.goal, file.objectives) or {}
    names = tuple(objectives)
    if file.policy is None:
        made = auto(domain, context=context, constraints=file.constraints, objectives=names or 1)
    else:
        place = PolicyContext(space, folder, file.constraints, context, live=True, objectives=names)
        made = within("policy", policy, file.policy, domain, place)
    goal = tuple(objectives.values()) or (GOALS[0] if file.goal is None else file.goal)
    return Described(made, as_given(goals_of(made, goal)), file.seed)
