"""The TOML file of `nilregret tune`, checked and converted."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..._utils.checks import many
from ..._utils.dataclass import dataclass
from ..._utils.files import check_picture, text_of
from ...algorithms.registry import PolicyContext, policy, read_entry
from ...algorithms.schema import Table, convert, parameter, within
from ...domains.domain import Arms, Space
from ...errors import InvalidInput, NoRegretError
from ...policy.policy import Policy
from ...slots.pruning import Pruning
from ...study.direction import GOALS, Goal, check_goal
from ..open_study import asked_rule, check_alone, check_several
from ..outcome import ConstraintReader, answer_reader, checked_objectives
from ..stop import Enough, stop_rule

LONGEST_TIMEOUT = 1e8  # Seconds.

Positive = Annotated[int, msgspec.Meta(ge=1)]


class Evaluation(Table, frozen=True):
    """The objective: exactly one of a Python function and a shell command."""

    function: str | None = None  # "module:function", called with the parameters as keyword arguments.
    command: str | None = None  # A shell command with {name} for each parameter.
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None  # Seconds.
    constraints: list[str] | None = None  # Texts such as "latency <= 50" about an entry of the answer.


class _File(Table, frozen=True):
    parameters: dict[str, dict[str, Any]]
    objective: Evaluation
    trials: Positive | None = None
    enqueue: list[dict[str, Any]] | None = None  # Parameters of each point to try first, of all or some of them.
    seconds: Annotated[float, msgspec.Meta(gt=0)] | None = None
    where: list[str] | str | None = None  # Limits of the parameters, such as "a + b <= 1".
    stop: float | str | None = None  # The gain that is not worth another trial, such as "1%" (`Enough`).
    cost: str | None = None  # The entry of the answer that a trial costs, or "seconds".
    policy: dict[str, Any] | None = None
    goal: str | list[str] | None = None  # "maximize", if it is left out.
    objectives: dict[str, str] | list[str] | None = None  # Goals by name, or names that share `goal`.
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    grid: Positive | dict[str, Positive] | None = None
    name: str | None = None
    storage: str | None = None
    plot: str | None = None
    pruning: str | dict[str, Any] | None = None  # The rule that stops trials, by name or as a table.
    steps: Positive | None = None  # The number of steps of a full trial.
    of: str | None = None  # Which value of a curve counts, "last" or "best".
    like: list[str] | str | None = None  # Storages and tables of earlier studies.


@dataclass(frozen=True)
class TuningFile:
    """A checked tuning file.

    Attributes:
        name: name of the study.
        folder: folder of the file, from which relative paths and the objective start.
        goals: "maximize" or "minimize", of each objective.
        trials: number of trials in all, with failed ones, or None.
        enqueue: points to try first, or None.
        seconds: length of a run, or None.
        stop: rule that ends a run, or None.
        seed: seed of the study.
        storage: URL of the database.
        plot: path of the picture.
        domain: the space of parameters, or a grid of them.
        policy: the policy, or None for that of `auto`.
        objective: the objective.
        reader: reads the values of objectives and constraints in answers.
        like: URLs of storages and paths of tables with earlier studies, or None.
        pruning: rule that stops trials, or None.
        steps: number of steps of a full trial, or None.
        of: which value of a curve counts, or None.
    """

    name: str
    folder: Path
    goals: tuple[Goal, ...]
    trials: int | None
    enqueue: list[dict[str, Any]] | None
    seconds: float | None
    stop: Enough | None
    seed: int
    storage: str
    plot: Path
    domain: Arms | Space
    policy: Policy | None
    objective: Evaluation
    reader: ConstraintReader
    like: list[str] | None
    pruning: str | Pruning | None
    steps: int | None
    of: Any

    @property
    def reports(self) -> bool:
        """True if the file says that trials report, so that each line of a command may be a step."""
        return (self.pruning, self.steps, self.of) != (None, None, None)

    @property
    def space(self) -> Space:
        """The parameters."""
        space = self.domain.space if isinstance(self.domain, Arms) else self.domain
        if not isinstance(space, Space):
            raise InvalidInput("A tuning job is about named parameters.")
        return space


def load(path: Path) -> TuningFile:
    """Reads and checks a tuning file. Every error names the file and the field."""
    data = read_toml(path, "A tuning file has `trials`, [parameters.NAME], [objective].")
    try:
        return _job(convert(data, _File, ""), path)
    except NoRegretError as error:
        raise error.after(f"{path}: ") from error


def read_toml(path: Path, wanted: str) -> dict[str, Any]:
    """Returns the tables of a file.

    Args:
        path: path of the file.
        wanted: what the file should have, for the error about an empty file.
    """
    text = text_of(path)
    if not text.strip():
        raise InvalidInput(f"{path} is empty. {wanted}")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(
            f"{path} is not valid TOML: {error}. Usually a quote or bracket is not closed, or a word lacks its quotes."
        ) from error


def _job(file: _File, path: Path) -> TuningFile:
    _check_objective(file.objective)
    objectives = several(file.goal, file.objectives)
    check_several(objectives, stop=file.stop, cost=file.cost, like=file.like)
    reader = within("objective", answer_reader, file.objective.constraints, file.cost, objectives)
    folder = path.resolve().parent
    if not file.parameters:
        raise InvalidInput("[parameters] is empty: there is nothing to tune.")
    space, domain = space_and_domain(file.parameters, file.where, file.grid)
    place = PolicyContext(space, folder, reader.count, objectives=reader.names)
    check_alone(file.like, file.policy)
    pruning = read_entry("pruning", file.pruning, place)
    rule = asked_rule(pruning, file.steps, file.of)
    made = None if file.policy is None else within("policy", policy, file.policy, domain, place)
    if made is not None and made.pruning is None and rule is not None:
        made = made.using(pruning=rule)
    name = path.stem if file.name is None else file.name
    if not name.strip() or re.search(r"[/\\\\\x00-\x1f]", name):
        raise InvalidInput(f"`name` is {name!r}: it must be some text without slashes and control characters.")
    listed = [file.like] if isinstance(file.like, str) else file.like or []
    return TuningFile(
        name=name,
        folder=folder,
        goals=reader.goals or (check_goal(GOALS[0] if file.goal is None else file.goal),),
        trials=file.trials,
        enqueue=file.enqueue,
        seconds=file.seconds,
        stop=stop_rule(file.stop),
        seed=file.seed,
        storage=_absolute(file.storage or f"sqlite:///{name}.db", folder),
        plot=check_picture(folder / (file.plot or f"{name}.png")),
        domain=domain,
        policy=made,
        objective=file.objective,
        reader=reader,
        like=None if file.like is None else [_placed(each, folder) for each in listed],
        pruning=pruning,
        steps=file.steps,
        of=file.of,
    )


def several(goal: str | list[str] | None, objectives: dict[str, str] | list[str] | None) -> dict[str, Goal] | None:
    """Returns the goal of each of several objectives by name, or None for one.

    Args:
        goal: of all objectives or of each, if they are a list of names.
        objectives: goals by name, or names.
    """
    if goal is not None and isinstance(objectives, dict):
        raise InvalidInput("`goal` stands beside `objectives`, which have goals of their own: leave `goal` out.")
    each = goal if isinstance(goal, list) else None
    found = checked_objectives(objectives, GOALS[0] if goal is None or each is not None else check_goal(goal))
    if found is None or each is None:
        return found
    if len(each) != len(found):
        raise InvalidInput(f"`goal` has {many(len(each), 'entry')}, and there are {many(len(found), 'objective')}.")
    return dict(zip(found, map(check_goal, each), strict=True))


def named_space(entry: str, tables: dict[str, dict[str, Any]]) -> Space:
    """Returns the space of the parameters in tables. `entry` is the name of the tables, for errors."""
    return Space(**{name: within(f"{entry}.{name}", parameter, table) for name, table in tables.items()})


def space_and_domain(
    parameters: dict[str, dict[str, Any]], where: list[str] | str | None, grid: int | dict[str, int] | None
) -> tuple[Space, Arms | Space]:
    """Returns the space of the parameters with its limits, and the domain, which is a grid if the file has one."""
    limits = [where] if isinstance(where, str) else where or []
    space = within("where", named_space("parameters", parameters).where, *limits)
    return space, space if grid is None else within("grid", space.grid, grid)


def _check_objective(objective: Evaluation) -> None:
    if (objective.function is None) == (objective.command is None):
        raise InvalidInput("[objective] needs either `function` or `command`, and not both.")
    if objective.timeout is None:
        return
    if not objective.timeout <= LONGEST_TIMEOUT:
        raise InvalidInput(
            f"[objective] `timeout` is {objective.timeout}: at most {LONGEST_TIMEOUT:g} seconds, or leave it out."
        )


def _placed(like: str, folder: Path) -> str:
    """Returns the URL of a storage or the path of a table, with a path relative to the file's folder made absolute."""
    return _absolute(like, folder) if "://" in like else str(folder / like)


def _absolute(storage: str, folder: Path) -> str:
    """Returns the URL of the database, with an SQLite path relative to the file's folder made absolute."""
    prefix = "sqlite:///"
    path = storage.removeprefix(prefix)
    if path in (storage, "", ":memory:") or Path(path).is_absolute():
        return storage
    return prefix + str(folder / path)
