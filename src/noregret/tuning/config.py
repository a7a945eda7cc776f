"""The TOML file of `noregret tune`, checked and turned into what it describes."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError

from .. import algorithms
from ..domain import Arms, Choice, Float, Int, Parameter, Space
from ..errors import InvalidInput, NoRegretError
from ..kernels import Kernel, Linear, Matern, Product, SquaredExponential, Sum
from ..policy import Policy

# Grows with the library: a new algorithm or kernel is one more name here.
ALGORITHMS: dict[str, Callable[..., Policy]] = {"gp_ucb": algorithms.gp_ucb}
KERNELS: dict[str, Callable[..., Kernel]] = {
    "squared_exponential": SquaredExponential,
    "matern": Matern,
    "linear": Linear,
}
COMBINED: dict[str, Callable[[Kernel, Kernel], Kernel]] = {"sum": Sum, "product": Product}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class _Float(_Table):
    type: Literal["float"]
    low: float
    high: float
    log: bool = False


class _Int(_Table):
    type: Literal["int"]
    low: int
    high: int
    log: bool = False


class _Choice(_Table):
    type: Literal["choice"]
    options: list[str | int | float | bool]


class Objective(_Table):
    """What is evaluated: a Python function or a shell command, exactly one of them."""

    function: str | None = None  # "module:function", called with the parameters as keyword arguments
    command: str | None = None  # a shell command with {name} for each parameter
    goal: Literal["maximize", "minimize"] = "maximize"
    timeout: PositiveFloat | None = None  # seconds, of a command


class _File(_Table):
    trials: PositiveInt
    seed: Annotated[int, Field(ge=0)] = 0
    name: Annotated[str, Field(min_length=1)] | None = None
    storage: str | None = None
    plot: str | None = None
    grid: PositiveInt | dict[str, PositiveInt]
    parameters: Annotated[
        dict[str, Annotated[_Float | _Int | _Choice, Field(discriminator="type")]], Field(min_length=1)
    ]
    policy: dict[str, Any]
    objective: Objective


@dataclass(frozen=True)
class Job:
    """A checked tuning file.

    Attributes:
        name: of the study.
        folder: where the file lies; its relative paths and its objective start from there.
        trials: how many there shall be in all, failed ones included.
        seed: of the study.
        storage: URL of the database.
        plot: where the picture goes.
        policy: how to decide.
        objective: what to evaluate.
    """

    name: str
    folder: Path
    trials: int
    seed: int
    storage: str
    plot: Path
    policy: Policy
    objective: Objective

    @property
    def sign(self) -> float:
        """What a number of the objective is multiplied by to become a reward, which is always maximised."""
        return 1.0 if self.objective.goal == "maximize" else -1.0

    @property
    def domain(self) -> Arms:
        """The grid of parameters."""
        return self.policy.domain


def load(path: Path) -> Job:
    """Read and check a tuning file; every error names the file and the field."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {str(path)!r}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(
            f"{path} is not valid TOML: {error}. Usually a quote or bracket is not closed, or a word lacks its quotes."
        ) from error
    try:
        return _job(_File.model_validate(data), path)
    except ValidationError as error:
        raise InvalidInput(f"{path} does not describe a tuning job:\n{_explain(error)}") from None
    except NoRegretError as error:
        raise InvalidInput(f"{path}: {error}") from error


def _job(file: _File, path: Path) -> Job:
    if (file.objective.function is None) == (file.objective.command is None):
        raise InvalidInput("[objective] needs either `function` or `command`, and not both.")
    folder = path.resolve().parent
    space = Space(**{name: _in(f"parameters.{name}", _parameter, table) for name, table in file.parameters.items()})
    name = file.name or path.stem
    return Job(
        name=name,
        folder=folder,
        trials=file.trials,
        seed=file.seed,
        storage=_beside(file.storage or f"sqlite:///{name}.db", folder),
        plot=folder / (file.plot or f"{name}.png"),
        policy=_in("policy", _policy, file.policy, _in("grid", space.grid, file.grid)),
        objective=file.objective,
    )


def _parameter(table: _Float | _Int | _Choice) -> Parameter:
    if isinstance(table, _Choice):
        return Choice(*table.options)
    return (Float if isinstance(table, _Float) else Int)(table.low, table.high, log=table.log)  # type: ignore[arg-type]


def _policy(table: Mapping[str, Any], domain: Arms) -> Policy:
    arguments = dict(table)
    make = _named("algorithm", arguments.pop("algorithm", None), ALGORITHMS)
    if not isinstance(arguments.get("kernel"), Mapping):
        raise InvalidInput("`kernel` must be a table such as { type = 'matern', nu = 2.5, lengthscale = 0.2 }.")
    arguments["kernel"] = _in("kernel", _kernel, arguments["kernel"])
    policy: Policy = _call(make, arguments, domain=domain)
    return policy


def _kernel(table: Mapping[str, Any]) -> Kernel:
    arguments = dict(table)
    kind = arguments.pop("type", None)
    make = _named("type", kind, {**KERNELS, **COMBINED})
    if kind in COMBINED:
        for side in ("left", "right"):
            if not isinstance(arguments.get(side), Mapping):
                raise InvalidInput(f"a {kind} needs the kernel tables `left` and `right`.")
            arguments[side] = _in(side, _kernel, arguments[side])
    kernel: Kernel = _call(make, arguments)
    return kernel


def _named(field: str, name: object, known: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if not isinstance(name, str) or name not in known:
        raise InvalidInput(f"`{field}` is {name!r}: it must be one of {', '.join(map(repr, known))}.")
    return known[name]


def _call(make: Callable[..., Any], arguments: Mapping[str, Any], **more: Any) -> Any:
    """`make(**arguments)`, where a wrong or missing name is an error that lists the right ones."""
    parameters = [p for name, p in inspect.signature(make).parameters.items() if name not in more]
    known = [p.name for p in parameters]
    missing = [p.name for p in parameters if p.default is p.empty and p.name not in arguments]
    unknown = [name for name in arguments if name not in known]
    if missing or unknown:
        what = [f"missing {', '.join(missing)}"] * bool(missing) + [f"unknown {', '.join(unknown)}"] * bool(unknown)
        raise InvalidInput(f"{'; '.join(what)}. The fields are: {', '.join(known)}.")
    return make(**arguments, **more)


def _in(field: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """`make(*arguments)`, where an error says in which field of the file it was found."""
    try:
        return make(*arguments)
    except InvalidInput as error:
        raise InvalidInput(f"[{field}] {error}") from error


def _beside(storage: str, folder: Path) -> str:
    """A relative SQLite path counts from the file's folder, so that the study is found from anywhere."""
    prefix = "sqlite:///"
    if storage.startswith(prefix) and not Path(storage.removeprefix(prefix)).is_absolute():
        return prefix + str(folder / storage.removeprefix(prefix))
    return storage


def _explain(error: ValidationError) -> str:
    lines = []
    for item in error.errors():
        place = [str(part) for part in item["loc"] if part not in ("float", "int", "choice")] or ["file"]
        given = "" if item["type"] == "missing" else f" (it is {item['input']!r})"
        lines.append(f"  {'.'.join(place)}: {item['msg']}{given}")
    return "\n".join(lines)
