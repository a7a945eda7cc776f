"""The algorithms and parts that the policy of a tuning file or a request may name.

The entries of each are derived from its signature (`schema.Schema`). A part is named after its class, an algorithm
after its function. A new part takes one name in the list of its slot.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from .. import algorithms, kernels, slots, theory
from .._utils.checks import nearest
from ..domains.domain import D, Space
from ..domains.search.boxes import PointSearch
from ..errors import InvalidInput, exception_text
from ..policy.policy import Policy
from ..slots.by_name import NAMED
from ..slots.envelope import ConstantWidth, PointwiseBayes
from ..slots.explore import UncertaintySampling, UniformExploration
from ..slots.no_worse import NoWorse, parted
from ..slots.refit import Learning
from ..slots.rewards import KnownReward
from ..slots.switching import Switching
from ..theory.series import EvenSeries, PowerSeries, Series
from .auto import auto
from .schema import Inner, Schema, one_named, within

# Imports of Python objects that a tuning file names, from modules beside the file or installed ones.
#
# Only a tuning file, which the user runs on purpose, can make the program import a module. A stored study may come
# from anybody, so it can only name classes that are already registered.


def imported(what: str, reference: str, module: str, name: str, folder: Path) -> Any:
    """Returns the object `name` of `module`.

    Args:
        what: place of the reference for errors, such as "[objective] `function`".
        reference: text of the reference, for errors.
        module: name of the module.
        name: name of the object.
        folder: folder of the tuning file.

    Raises:
        InvalidInput: the module or the object cannot be loaded.
    """
    if sys.path[:1] != [str(folder)]:
        sys.path.insert(0, str(folder))
    beside, known = folder / f"{module}.py", sys.modules.get(module)
    origin = Path(getattr(known, "__file__", None) or "")
    if known is not None and beside.is_file() and origin.resolve() != beside.resolve():
        del sys.modules[module]  # It is another module of this name, which the process imported before.
    importlib.invalidate_caches()  # The file may be newer than the list of its folder.
    try:
        found = importlib.import_module(module)
        if hasattr(found, name):
            return getattr(found, name)
    except (Exception, SystemExit) as error:  # A module of the user may raise anything.
        raise InvalidInput(
            f"{what} {reference!r} could not be loaded from {folder}: {exception_text(error)}. The module must lie "
            "beside the TOML file or be installed, with everything it imports."
        ) from error
    hint = nearest(name, [each for each in dir(found) if not each.startswith("_")])
    raise InvalidInput(f"{what} {reference!r} could not be loaded: the module {module!r} has no {name!r}.{hint}")


# Arguments of algorithms that no file sets, and why.
LEFT_OUT = {
    "domain": "it is made of [parameters] and `grid`",
    "context": "contexts are for programs that ask and tell by themselves",
    "constraints": "[objective] says what must be satisfied, as in constraints = ['latency <= 50']",
    "reward": "clicks and counts come one by one, to programs that ask and tell by themselves",
    "switching": "each trial of a file is evaluated once; runs of equal plays are for programs that ask and tell",
    "change_points": "of a real objective nobody knows them",
    "like": "earlier studies stand at the top of the file, as in like = ['sqlite:///old.db']",
    "fidelity": "settings are for objectives in Python: `nr.minimize(..., fidelity=...)`",
    "objectives": "they stand at the top of the file, as in objectives = { loss = 'minimize', recall = 'maximize' }",
}
# Arguments that programs which ask and tell by themselves do not set in a policy, and why.
LEFT_OUT_LIVE = {
    "domain": "it is made of the parameters, or of the arms",
    "context": "it stands beside the policy",
    "constraints": "how many there are stands beside the policy, and in which sense they hold is this algorithm's own",
    "change_points": LEFT_OUT["change_points"],
    "like": "earlier studies are read by programs in Python: `policy.to_json()` holds what they know",
    "fidelity": "a whole policy, as Python writes it, may have one",
}
_CONSTRAINED = (
    "needs constraint values with every reward, told from Python: `study.tell(trial, reward, constraints=g)`. "
    "Any other algorithm takes constraints = ['latency <= 50'] in [objective]."
)
# The algorithms that charge for constraint values by themselves.
IN_EPOCHS = ("gp_ucb_noiseless_constraints", "gp_ucb_noisy_constraints")
# The algorithms of which `constraints` is a number.
COUNTED = (*IN_EPOCHS, "hypervolume_thompson", "hypervolume_ucb")
ALGORITHMS_LEFT_OUT = dict.fromkeys(IN_EPOCHS, _CONSTRAINED)
# A file says less than Python: one kernel, known noise, a number as lambda, the sense of constraints by its name.
_TYPES: dict[str, Any] = {
    "kernel": Inner, "noise": float, "regularization": float, "constraints": str | Inner | list[Inner],
    "penalty": str,
}  # fmt: skip


def _algorithm(make: Callable[..., Policy], *, live: bool) -> Schema:
    """Returns the entries of an algorithm: all its arguments but those that stand elsewhere.

    Args:
        make: the algorithm.
        live: for programs that ask and tell by themselves. They may say what rewards are, and how long a choice is
            played.
    """
    arguments = signature(make).parameters
    in_epochs = make.__name__ in IN_EPOCHS
    refused = LEFT_OUT_LIVE if live else LEFT_OUT
    if live and "constraints" in arguments and make.__name__ not in COUNTED:
        refused = {name: why for name, why in refused.items() if name != "constraints"}
    follows = make is auto or (live and "reward" in arguments)  # The noise is learned, or follows from the reward.
    return Schema(
        make,
        types={name: kind for name, kind in _TYPES.items() if name in arguments},
        without=("memory", "width") if in_epochs else (),  # A file has no words for "kept" and "fresh".
        required=() if follows else ("noise",),
        optional=("noise",) if follows else (),
        refused=refused,
        where="in a policy" if live else "in a file",
    )


def _type_of(name: str) -> str:
    """Returns the `type` in a table of the class or function of this name: "e_detector" of EDetector."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


_OTHERS = ("admmbo", "bandit_oco", "boca")  # They have no policy that asks and tells, or settings.
_EVERY = {name: getattr(algorithms, name) for name in dir(algorithms) if name not in _OTHERS}
_EVERY = dict(sorted({**_EVERY, "auto": auto}.items()))
ALGORITHMS = {name: _algorithm(make, live=False) for name, make in _EVERY.items() if name not in IN_EPOCHS}
ALGORITHMS_LIVE = {name: _algorithm(make, live=True) for name, make in _EVERY.items()}

# Slots that take a name in place of a table, and the table of each name.
BY_NAME = {slot: {name: _type_of(of) for name, of in options.items()} for slot, options in NAMED.items()} | {
    "reward": {"bernoulli": "bernoulli", "poisson": "poisson", "bounded": "bounded"},
    "constraints": {"on_average": "on_average", "every_round": "every_round"},
}


def _named(*makes: Callable[..., Any], **own: Schema | Callable[..., Any]) -> dict[str, Schema]:
    """Returns schemas by name: a class in words ("sliding_window"), or the keyword."""
    by_name = {_type_of(make.__name__): make for make in makes}
    return {name: each if isinstance(each, Schema) else Schema(each) for name, each in {**by_name, **own}.items()}


def _scaled(factor: float, kernel: kernels.Kernel) -> kernels.Kernel:
    return factor * kernel


KERNELS = _named(
    kernels.SquaredExponential, kernels.Matern, kernels.RationalQuadratic, kernels.Periodic, kernels.Linear,
    kernels.Sum, kernels.Product, kernels.Tied, kernels.Overlap, kernels.Mixture, kernels.Intercept,
    kernels.RandomFeatures,
    scaled=_scaled,
    active=Schema(kernels.Active, {"parameters": list[str]}, without=["dimensions"]),
    rounded=Schema(kernels.Rounded, without=["space"]),
    for_parameters=Schema(kernels.kernel_for, without=["domain", "context"]),
)  # fmt: skip
# A file has one value for all constraints.
_CHANNELS: dict[str, Any] = {
    "kernel": Inner, "noise": float, "regularization": float, "prior_mean": float, "confidence": float,
    "pending": Inner,
}  # fmt: skip
_COUNT = ["count"]  # It stands beside the policy.
_LOSSES = ["losses"]  # The goal of the study says so.
_DELAY = ["delay"]  # It is learned.
# For each slot, the base class of what fills it, and the schemas by `type`.
PARTS: dict[str, tuple[type, dict[str, Schema]]] = {
    "memory": (slots.Memory, _named(
        slots.SlidingWindow, slots.RestartEvery, slots.RestartDoubling, slots.RestartAt, slots.RestartOnChange,
        slots.Discount, slots.DriftBank, slots.Tide, slots.AllOf, slots.EDetector,
    )),
    "explore": (slots.Explore, _named(
        slots.InitialDesign, slots.CoordinateSearch, slots.AskAgain, slots.InTurn, slots.Elsewhere,
        uniform=UniformExploration, floor=slots.Uniform, uncertainty=UncertaintySampling, confirm=slots.Confirm,
        shares=Schema(slots.Shares, {"shares": dict[str, float]}),
    )),
    "pending": (slots.Pending, _named(
        slots.Ignored, slots.Hallucinated, slots.NearestMeans, imputed=Schema(slots.Imputed, without=_DELAY),
        late_or_never=Schema(slots.LateOrNever, without=_DELAY), censored=slots.Censored.within,
        exposed=Schema(slots.Exposed, without=["in_time"]),
    )),
    "width": (slots.Confidence, _named(constant=ConstantWidth, pointwise=PointwiseBayes)),
    "switching": (Switching, _named(slots.Lazy)),
    "pruning": (slots.Pruning, _named(slots.Never, slots.Median, slots.Halving, slots.Predicted)),
    "slate": (slots.SlateModel, _named(slots.Cascade, slots.Positions)),
    "reward": (KnownReward, _named(
        bernoulli=Schema(slots.Bernoulli, without=_LOSSES), poisson=Schema(slots.Poisson, without=_LOSSES),
        bounded=Schema(slots.Bounded, without=_LOSSES),
    )),
    "constraints": (slots.Constraints, _named(
        on_average=Schema(slots.OnAverage, _CHANNELS, without=_COUNT),
        every_round=Schema(slots.EveryRound, _CHANNELS, without=_COUNT),
        safe=Schema(slots.Safe, {**_CHANNELS, "start": list[Any], "scale": float | str, "slope": Any}, without=_COUNT),
        no_worse=Schema(NoWorse, {"than": Any, "span": list[float]}, without=_LOSSES),
    )),
    "series": (Series, _named(power=PowerSeries, even=EvenSeries)),
}  # fmt: skip
POWER_LAW = Schema(theory.PowerLaw)
REFIT = Schema(slots.Refit)
# A [refit] with a `type` is one of these, without one a `REFIT`.
REFITS = _named(slots.LengthscaleBank, slots.ArmModels)
SEARCH = Schema(PointSearch)
# Inner tables by entry: without a `type`, and with one.
PLAIN = {
    "refit": REFIT, "around": REFIT, "search": SEARCH, "v": POWER_LAW, "threshold": POWER_LAW, "ridge": POWER_LAW,
    "otherwise": Schema(slots.CoordinateSearch),
}  # fmt: skip
TYPED: dict[str, tuple[type, dict[str, Schema]]] = {
    **dict.fromkeys(("kernel", "left", "right"), (kernels.Kernel, KERNELS)), **PARTS, "refit": (Learning, REFITS),
}  # fmt: skip


class PolicyContext(NamedTuple):
    """The entries of a file or a request beside its policy, which some parts of the policy need.

    Attributes:
        space: the parameters of the domain. None for arms without parameters.
        folder: the folder of the file, from which users' classes are imported. None if there is no file.
        constraints: the number of constraints.
        context: the parameters that are known before each decision, or None.
        live: whether a program asks and tells by itself.
        objectives: names of several objectives. Empty if there is one, or if the policy has the names.
    """

    space: Space | None
    folder: Path | None
    constraints: int = 0
    context: Space | None = None
    live: bool = False
    objectives: tuple[str, ...] = ()


def policy(table: Mapping[str, Any], domain: D, place: PolicyContext) -> Policy[D]:
    """Returns the policy that a table describes.

    Args:
        table: the entries, with the name of the algorithm.
        domain: domain of the policy.
        place: the entries beside the policy.
    """
    entries = dict(table)
    name = entries.pop("algorithm", None)
    if place.live:
        schema = one_named("algorithm", name, ALGORITHMS_LIVE)
    else:
        schema = one_named("algorithm", name, ALGORITHMS, ALGORITHMS_LEFT_OUT)
    if "kernel" in schema.needed and not isinstance(entries.get("kernel"), Mapping):
        example = "Such as { type = 'matern', nu = 2.5, lengthscale = 0.2 }."
        raise InvalidInput("`kernel` must be a table, with a `type`.", advice=example, topic="kernel")
    for slot, names in BY_NAME.items():
        if slot in schema.allowed and isinstance(entries.get(slot), str):
            entries[slot] = {"type": one_named(slot, entries[slot], names)}
    rule = None if place.live else _rule_in_file(str(name), schema, entries, place)
    # `auto` takes no parts, but without a floor what it decides could hardly be evaluated.
    explore = entries.pop("explore", None) if place.live and name == "auto" else None
    if not isinstance(explore, Mapping | None):
        raise InvalidInput("`explore` must be a table, with a `type`, such as { type = 'floor', rate = 0.1 }.")
    arguments = read(schema, entries, place, named=f"`{name}`")
    if "pending" in schema.allowed:
        # A failed trial counts as the worst reward so far. Otherwise a failing region would be tried forever.
        arguments.setdefault("pending", slots.Ignored(failed="worst"))
    arguments |= {} if rule is None else {"constraints": rule}
    if place.live:
        _check_live(str(name), schema, arguments, place)
    arguments |= _beside(str(name), arguments, place)
    made: Policy = schema.make(domain=domain, **arguments)
    return made if explore is None else made.using(explore=read_entry("explore", explore, place))


def _rule_in_file(name: str, schema: Schema, entries: dict[str, Any], place: PolicyContext) -> Any:
    """Takes the table of `constraints` out of the entries of a file, and returns its part, or None without a table."""
    takes = "constraints" in signature(schema.make).parameters and name not in COUNTED
    said = entries.get("constraints")
    if isinstance(said, str):
        entries["constraints"] = {"type": one_named("constraints", said, BY_NAME["constraints"])}
    if not takes or not isinstance(entries.get("constraints"), Mapping):
        return None
    if not place.constraints:
        raise InvalidInput(
            "`constraints` says in which sense they hold, and [objective] has none: write "
            "constraints = ['heat <= 50'] there, in the units of an entry of its answer."
        )
    return read_entry("constraints", entries.pop("constraints"), place)


def _beside(name: str, arguments: Mapping[str, Any], place: PolicyContext) -> dict[str, Any]:
    """Returns the arguments that stand beside the policy, or raises an error if an algorithm takes none of them."""
    found: dict[str, Any] = {}
    if place.constraints:
        rules = _rules(arguments)
        counted = name in COUNTED or (name == "auto" and "constraints" not in rules)
        sense = rules.get("constraints", slots.EveryRound())
        count = place.constraints if counted else replace(sense, count=place.constraints)
        found["constraints"] = [*rules["guards"], count] if "guards" in rules else count
    if place.objectives:
        able = [each for each, known in ALGORITHMS.items() if "objectives" in signature(known.make).parameters]
        if name not in able:
            raise InvalidInput(
                f"`algorithm` {name!r} has one objective, and the file has several: it must be one of "
                f"{', '.join(map(repr, able))}."
            )
        if "objectives" in arguments:
            raise InvalidInput("`objectives` is there twice: leave it out of the policy.")
        found["objectives"] = place.objectives
    return found if place.context is None else found | {"context": place.context}


def _rules(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the rule of constraints that is said, and each `NoWorse`, by slot."""
    return parted({"constraints": arguments["constraints"]}) if "constraints" in arguments else {}


def _check_live(name: str, schema: Schema, arguments: Mapping[str, Any], place: PolicyContext) -> None:
    """Raises an error for entries that do not fit together, in the words of the table."""
    if name != "auto" and "noise" in schema.allowed and not {"noise", "reward"} & set(arguments):
        raise InvalidInput(
            "`noise` is missing: the standard deviation of the rewards' noise. Of clicks, counts and bounded rewards "
            "it follows from `reward`: 'bernoulli', 'poisson' or 'bounded'."
        )
    if name in IN_EPOCHS and not place.constraints:
        raise InvalidInput(f"`algorithm` {name!r} is about constraints: say beside the policy how many there are.")
    if "constraints" in _rules(arguments) and not place.constraints:
        raise InvalidInput(
            "`constraints` says in which sense they hold, and how many there are is missing: write both, the "
            'number beside the policy, as in {"constraints": 1, "policy": {"constraints": ...}}.'
        )


def read(table: Schema, entries: Mapping[str, Any], place: PolicyContext, *, named: str = "") -> dict[str, Any]:
    """Returns the arguments that a table describes. The reader of an inner table follows from its name."""
    return {name: read_entry(name, value, place) for name, value in table.check(entries, named).items()}


def read_entry(name: str, value: Any, place: PolicyContext) -> Any:
    """Returns the part that a table describes, by the name of the entry. Other values are returned as they are."""
    known = name in PLAIN or name in TYPED
    if name == "constraints" and isinstance(value, list):
        return [read_entry(name, each, place) for each in value]
    return within(name, _read_inner, name, value, place) if known and isinstance(value, Mapping) else value


def _read_inner(name: str, table: Mapping[str, Any], place: PolicyContext) -> Any:
    """Returns the part that an inner table describes."""
    if name in PLAIN and not (name == "refit" and "type" in table):
        return PLAIN[name].make(**read(PLAIN[name], table, place))
    kind, tables = TYPED[name]
    if name == "explore" and "shares" in table:
        table = {"type": "shares", **table}
    if name == "pending" and "failed" in _schema_of_type(kind, tables, table.get("type"), place).entries:
        table = {"failed": "worst", **table}
    return _typed(kind, tables, table, place)


def _typed(kind: type, tables: Mapping[str, Schema], value: Mapping[str, Any], place: PolicyContext) -> Any:
    """Returns the part or kernel that a table with a `type` describes."""
    entries = dict(value)
    name = entries.pop("type", None)
    schema = _schema_of_type(kind, tables, name, place)
    arguments = read(schema, entries, place, named=f"{name!r}")
    if "parts" in arguments:  # Combined parts have parts of the same slot.
        arguments["parts"] = tuple(_same_kind(kind, tables, part, place) for part in arguments["parts"])
    if schema.make in (kernels.Active, kernels.Rounded, kernels.kernel_for) and place.space is None:
        raise InvalidInput(f"`type` {name!r} is for named parameters, and these are arms without any.")
    if schema.make is kernels.Active:
        return kernels.Active(arguments["kernel"], _columns(arguments["parameters"], place))
    if schema.make in (kernels.Rounded, kernels.kernel_for):
        arguments["space" if schema.make is kernels.Rounded else "domain"] = place.space
    if schema.make is kernels.kernel_for and place.context is not None:
        arguments["context"] = place.context
    try:
        return schema.make(**arguments)
    except InvalidInput:
        raise
    except (TypeError, ValueError) as error:  # Users' classes may raise these.
        raise InvalidInput(f"{name!r} does not take these values: {error}.") from error


def _same_kind(kind: type, tables: Mapping[str, Schema], part: Any, place: PolicyContext) -> Any:
    return within("parts", _typed, kind, tables, part, place) if isinstance(part, Mapping) else part


def _columns(names: list[str], place: PolicyContext) -> tuple[int, ...]:
    """Returns the columns of these parameters in an encoded row (context, point)."""
    where: dict[str, range] = {}
    before = 0
    for space in (each for each in (place.context, place.space) if each is not None):
        for name, (_, columns) in zip(space.parameters, space.columns(), strict=True):
            where[name] = range(before + columns.start, before + columns.stop)
        before += space.dimension
    return tuple(column for name in names for column in one_named("parameters", name, where))


def _schema_of_type(kind: type, tables: Mapping[str, Schema], name: object, place: PolicyContext) -> Schema:
    """Returns the schema of a type by name, or of a user's class ("module:Class" or "module.Class")."""
    if place.folder is None or not isinstance(name, str) or not {":", "."} & set(name):
        return one_named("type", name, {**tables})
    module, _, cls = name.replace(":", ".").rpartition(".")
    made = imported("`type`", name, module, cls, place.folder)
    if not (isinstance(made, type) and issubclass(made, kind) and "__dataclass_fields__" in made.__dict__):
        raise InvalidInput(
            f"`type` {name!r} must be a class that derives from `{kind.__name__}`, a frozen dataclass that "
            "can be stored.",
            advice="It stands under `nilregret.slots.described`.",
        )
    return Schema(made, {each.name: Any for each in fields(made) if each.init})  # type: ignore[arg-type]  # a dataclass, as checked above
