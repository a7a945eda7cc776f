"""The TOML file of `noregret tune`, checked and turned into what it describes."""

from __future__ import annotations

import difflib
import inspect
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from .. import algorithms
from ..checks import shown
from ..domain import Arms, Domain, Space
from ..errors import InvalidInput, NoRegretError
from ..kernels import Kernel, Linear, Matern, Periodic, Product, RationalQuadratic, SquaredExponential, Sum
from ..parameters import Choice, Float, Int, Parameter
from ..parts.pending import Ignored
from ..parts.refit import Refit
from ..policy import Policy
from ..serialize import described_types
from .outside import imported

ALGORITHMS: dict[str, Callable[..., Policy]] = {name: getattr(algorithms, name) for name in algorithms.__all__}
KERNELS: dict[str, Callable[..., Kernel]] = {
    "squared_exponential": SquaredExponential,
    "matern": Matern,
    "linear": Linear,
    "rational_quadratic": RationalQuadratic,
    "periodic": Periodic,
}
NOT_IN_A_FILE = ("context", "search", "memory", "pending", "change_points", "constraints")
COMBINED: dict[str, Callable[[Kernel, Kernel], Kernel]] = {"sum": Sum, "product": Product}
PICTURES = (".png", ".pdf", ".svg")
LONGEST_TIMEOUT = 1e8  # seconds

Positive = Annotated[int, msgspec.Meta(ge=1)]


class _Table(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    pass


class _Float(_Table, tag="float", frozen=True):
    low: float
    high: float
    log: bool = False


class _Int(_Table, tag="int", frozen=True):
    low: int
    high: int
    log: bool = False
    step: int = 1


class _Choice(_Table, tag="choice", frozen=True):
    options: list[str | int | float | bool]


class Objective(_Table, frozen=True):
    """What is evaluated: a Python function or a shell command, exactly one of them."""

    function: str | None = None  # "module:function", called with the parameters as keyword arguments
    command: str | None = None  # a shell command with {name} for each parameter
    goal: Literal["maximize", "minimize"] = "maximize"
    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None  # seconds, of a command


class _File(_Table, frozen=True):
    trials: Positive
    parameters: dict[str, dict[str, Any]]
    policy: dict[str, Any]
    objective: Objective
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    grid: Positive | dict[str, Positive] | None = None
    name: str | None = None
    storage: str | None = None
    plot: str | None = None


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
    def space(self) -> Space:
        """The parameters."""
        domain = self.policy.domain
        space = domain.space if isinstance(domain, Arms) else domain
        if not isinstance(space, Space):
            raise InvalidInput("A tuning job is about named parameters.")
        return space


def load(path: Path) -> Job:
    """Read and check a tuning file; every error names the file and the field."""
    try:
        text = path.read_text(encoding="utf-8")
        if not text.strip():
            raise InvalidInput(
                f"{path} is empty. A tuning file has `trials`, [parameters.NAME], [policy], [objective]."
            )
        data = tomllib.loads(text)
    except FileNotFoundError:
        raise InvalidInput(f"There is no file {str(path)!r}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(
            f"{path} is not valid TOML: {error}. Usually a quote or bracket is not closed, or a word lacks its quotes."
        ) from error
    try:
        return _job(_convert(data, _File, ""), path)
    except NoRegretError as error:
        raise InvalidInput(f"{path}: {error}") from error


def check_picture(path: Path) -> Path:
    """Refuse, before hours of trials, a picture that could not be written after them."""
    if path.suffix.lower() not in PICTURES:
        raise InvalidInput(f"The picture {str(path)!r} must end in one of {', '.join(PICTURES)}.")
    try:
        folder, _ = path.parent.is_dir(), path.exists()
    except OSError as error:
        raise InvalidInput(f"The picture {shown(str(path))} cannot be written: {error.strerror}.") from error
    if not folder:
        raise InvalidInput(f"The picture goes to the folder {str(path.parent)!r}, which does not exist: make it first.")
    return path


def _job(file: _File, path: Path) -> Job:
    _check_objective(file.objective)
    folder = path.resolve().parent
    if not file.parameters:
        raise InvalidInput("[parameters] is empty: there is nothing to tune.")
    space = Space(**{name: _in(f"parameters.{name}", _parameter, table) for name, table in file.parameters.items()})
    name = path.stem if file.name is None else file.name
    if not name.strip() or re.search(r"[/\\\\\x00-\x1f]", name):
        raise InvalidInput(f"`name` is {name!r}: it must be some text without slashes and control characters.")
    return Job(
        name=name,
        folder=folder,
        trials=file.trials,
        seed=file.seed,
        storage=_beside(file.storage or f"sqlite:///{name}.db", folder),
        plot=check_picture(folder / (file.plot or f"{name}.png")),
        policy=_in("policy", _policy, file.policy, _domain(space, file.grid), file.objective.goal, folder),
        objective=file.objective,
    )


def _domain(space: Space, grid: int | dict[str, int] | None) -> Domain:
    return space if grid is None else _in("grid", space.grid, grid)


def _check_objective(objective: Objective) -> None:
    if (objective.function is None) == (objective.command is None):
        raise InvalidInput("[objective] needs either `function` or `command`, and not both.")
    if objective.timeout is None:
        return
    if objective.command is None:
        raise InvalidInput("[objective] `timeout` is for a `command`; a function cannot be stopped from outside.")
    if not objective.timeout <= LONGEST_TIMEOUT:
        raise InvalidInput(
            f"[objective] `timeout` is {objective.timeout}: at most {LONGEST_TIMEOUT:g} seconds, or leave it out."
        )


def _parameter(table: Mapping[str, Any]) -> Parameter:
    kind = table.get("type")
    if kind not in ("float", "int", "choice"):
        raise InvalidInput(f"`type` is {kind!r}: it must be 'float', 'int' or 'choice'.")
    described: _Float | _Int | _Choice = _convert(table, _Float | _Int | _Choice, "")
    if isinstance(described, _Choice):
        return Choice(*described.options)
    if isinstance(described, _Float):
        return Float(described.low, described.high, log=described.log)
    return Int(described.low, described.high, log=described.log, step=described.step)


def _policy(table: Mapping[str, Any], domain: Domain, goal: str, folder: Path) -> Policy:
    arguments = dict(table)
    make = _named("algorithm", arguments.pop("algorithm", None), ALGORITHMS)
    if not isinstance(arguments.get("kernel"), Mapping):
        raise InvalidInput("`kernel` must be a table such as { type = 'matern', nu = 2.5, lengthscale = 0.2 }.")
    arguments["kernel"] = _in("kernel", _kernel, arguments["kernel"], folder)
    if goal == "minimize" and isinstance(arguments.get("prior_mean"), int | float):
        arguments["prior_mean"] = -arguments["prior_mean"]  # the file speaks of losses, the policy of rewards
    if "refit" in arguments:
        arguments["refit"] = _in("refit", _refit, arguments["refit"])
    for name in NOT_IN_A_FILE:
        if name in arguments:
            raise InvalidInput(f"`{name}` cannot be set in a file: it is for programs that ask and tell by themselves.")
    # A trial that fails counts as the worst seen so far, or a region where nothing works would be tried forever.
    pending: dict[str, Any] = (
        {"pending": Ignored(failed="worst")} if "pending" in inspect.signature(make).parameters else {}
    )
    policy: Policy = _call(make, arguments, domain=domain, **pending)
    if policy.constraints:
        raise InvalidInput(
            f"`algorithm` {policy.algorithm!r} needs constraint values with every reward, and what a file "
            "describes gives one number. Tell them from Python: `study.tell(trial, reward, constraints=g)`."
        )
    return policy


def _refit(table: object) -> Refit:
    if not isinstance(table, Mapping):
        raise InvalidInput("`refit` must be a table such as { every = 10 }.")
    refit: Refit = _call(Refit, table)
    return refit


def _kernel(table: Mapping[str, Any], folder: Path) -> Kernel:
    arguments = dict(table)
    kind = arguments.pop("type", None)
    if isinstance(kind, str) and re.search("[.:]", kind):
        return _own_kernel(kind, arguments, folder)
    make = _named("type", kind, {**KERNELS, **COMBINED})
    if kind in COMBINED:
        for side in ("left", "right"):
            if not isinstance(arguments.get(side), Mapping):
                raise InvalidInput(f"a {kind} needs the kernel tables `left` and `right`.")
            arguments[side] = _in(side, _kernel, arguments[side], folder)
    kernel: Kernel = _call(make, arguments)
    return kernel


def _own_kernel(reference: str, arguments: Mapping[str, Any], folder: Path) -> Kernel:
    """A kernel of the user's own: "module.Class" or "module:Class", imported as the objective's function is."""
    module, _, name = reference.replace(":", ".").rpartition(".")
    if not module or not name:
        raise InvalidInput(f"`type` is {reference!r}: a kernel of your own is 'module.Class', beside this file.")
    make = imported("`type`", reference, module, name, folder)
    if not (isinstance(make, type) and issubclass(make, Kernel) and make in described_types()):
        raise InvalidInput(
            f"`type` {reference!r} is no kernel that a study could store: it must be a class that derives from "
            "`noregret.kernels.PointKernel` or another kernel, decorated with `noregret.serialize.described`."
        )
    kernel: Kernel = _call(make, arguments)
    return kernel


def _named(field: str, name: object, known: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if not isinstance(name, str) or name not in known:
        close = difflib.get_close_matches(str(name), known, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise InvalidInput(f"`{field}` is {name!r}: it must be one of {', '.join(map(repr, known))}.{hint}")
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


def _convert(data: Any, kind: Any, place: str) -> Any:
    """`data` as a checked structure; an error names the entry, the fault, and for a misspelt name the right one."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        message = str(error).replace("Object", "the table").replace("`$", f"`{place or 'file'}").replace("`file.", "`")
        unknown = re.search(r"unknown field `([^`]*)`", message)
        if unknown:
            fields = [name for struct in _structs(kind) for name in struct.__struct_fields__]
            close = difflib.get_close_matches(unknown.group(1), fields, n=1)
            message += (
                f". Did you mean `{close[0]}`?" if close else f". The fields are: {', '.join(dict.fromkeys(fields))}."
            )
        raise InvalidInput(message) from None


def _structs(kind: Any) -> tuple[Any, ...]:
    return getattr(kind, "__args__", (kind,))


def _in(field: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """`make(*arguments)`, where an error says in which field of the file it was found."""
    try:
        return make(*arguments)
    except InvalidInput as error:
        raise InvalidInput(f"[{field}] {error}") from error


def _beside(storage: str, folder: Path) -> str:
    """A relative SQLite path counts from the file's folder, so that the study is found from anywhere."""
    prefix = "sqlite:///"
    path = storage.removeprefix(prefix)
    if path in (storage, "", ":memory:") or Path(path).is_absolute():
        return storage
    return prefix + str(folder / path)
