"""What `[policy]` of a tuning file may say: every part, every entry, in explicit tables.

Those of the algorithms are in `offered`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .._utils.errors import InvalidInput
from .._utils.imports import imported
from ..domains.domain import Domain, Space
from ..domains.search.boxes import PointSearch
from ..kernels import (
    Active,
    Kernel,
    Linear,
    Matern,
    Mixture,
    Overlap,
    Periodic,
    Product,
    RationalQuadratic,
    Rounded,
    SquaredExponential,
    Sum,
    Tied,
    kernel_for,
)
from ..policy.policy import Policy
from ..slots.change_detection import DriftBank, EDetector
from ..slots.combined_memory import AllOf
from ..slots.constraints import Constraints, EveryRound, OnAverage
from ..slots.envelope import Confidence, ConstantWidth, PointwiseBayes
from ..slots.explore import CoordinateSearch, Explore, InitialDesign, InTurn, UncertaintySampling, UniformExploration
from ..slots.lengthscales import LengthscaleBank
from ..slots.memory import Discount, Memory, RestartAt, RestartDoubling, RestartEvery, RestartOnChange, SlidingWindow
from ..slots.pending import Censored, Hallucinated, Ignored, NearestMeans, Pending
from ..slots.refit import Learning, Refit
from ..slots.rewards import Bernoulli, Bounded, KnownReward, Poisson
from ..slots.safe import Safe
from ..slots.silence import Imputed, LateOrNever
from ..slots.switching import Lazy, Switching
from ..theory.change import PowerLaw
from ..theory.series import EvenSeries, PowerSeries, Series
from .offered import ALGORITHMS, ALGORITHMS_LEFT_OUT, ALGORITHMS_LIVE, IN_EPOCHS, Inner
from .sections import Section, one_named, within

Lengths = float | list[float]  # one for all columns, or one for each

BY_NAME = {  # of the slots that take a name: the tables that names stand for
    "memory": {"adaptive": "e_detector"},
    "pending": {"ignore": "ignored", "hallucinate": "hallucinated", "auto": "late_or_never"},
    "switching": {"lazy": "lazy"},
    "reward": {"bernoulli": "bernoulli", "poisson": "poisson", "bounded": "bounded"},
    "constraints": {"on_average": "on_average", "every_round": "every_round"},
}

KERNELS = {
    "squared_exponential": Section(SquaredExponential, {}, {"lengthscale": Lengths, "scale": float}),
    "matern": Section(Matern, {}, {"nu": float, "lengthscale": Lengths, "scale": float}),
    "rational_quadratic": Section(RationalQuadratic, {}, {"alpha": float, "lengthscale": Lengths, "scale": float}),
    "periodic": Section(Periodic, {}, {"period": Lengths, "lengthscale": Lengths, "scale": float}),
    "linear": Section(Linear, {}, {"scale": float}),
    "sum": Section(Sum, {"left": Inner, "right": Inner}),
    "product": Section(Product, {"left": Inner, "right": Inner}),
    "scaled": Section(lambda factor, kernel: factor * kernel, {"factor": float, "kernel": Inner}),
    "active": Section(Active, {"parameters": list[str], "kernel": Inner}),
    "tied": Section(Tied, {"kernel": Inner, "groups": list[int]}),
    "overlap": Section(Overlap, {"groups": list[int]}, {"scale": float}),
    "mixture": Section(Mixture, {"left": Inner, "right": Inner}, {"share": float, "scale": float}),
    "rounded": Section(Rounded, {"kernel": Inner}),
    "for_parameters": Section(kernel_for, {}, {"kernel": Inner, "lengthscale": float, "choices": str}),
}

_FAILED: dict[str, Any] = {"failed": str}
_CHANNELS: dict[str, Any] = {
    "kernel": Inner, "noise": float, "regularization": float, "prior_mean": float, "confidence": float,
    "pending": Inner,
}  # fmt: skip
# By slot: what fills it, and its tables by `type`.
PARTS: dict[str, tuple[type, dict[str, Section]]] = {
    "memory": (Memory, {
        "sliding_window": Section(SlidingWindow, {"rounds": int}),
        "restart_every": Section(RestartEvery, {"rounds": int}),
        "restart_doubling": Section(RestartDoubling, {"first": int}, {"ridge": bool}),
        "restart_at": Section(RestartAt, {"rounds": list[int]}),
        "restart_on_change": Section(
            RestartOnChange, {}, {"threshold": float | Inner, "ridge": float | Inner, "distance": str}
        ),
        "discount": Section(Discount, {"rate": float}),
        "drift_bank": Section(DriftBank, {}, {"rates": list[float]}),
        "all_of": Section(AllOf, {"parts": list[Inner]}),
        "e_detector": Section(EDetector, {}, dict.fromkeys(("delta", "clip", "weight", "misfit", "outliers"), float)),
    }),
    "explore": (Explore, {
        "uniform": Section(UniformExploration, {}, {"xi": float}),
        "uncertainty": Section(UncertaintySampling, {"rounds": int}),
        "initial_design": Section(InitialDesign, {}, {"rounds": int}),
        "coordinate_search": Section(CoordinateSearch, {}, {"every": int, "after": int, "steps": int}),
        "in_turn": Section(InTurn, {"parts": list[Inner]}),
    }),
    "pending": (Pending, {
        "ignored": Section(Ignored, {}, _FAILED),
        "hallucinated": Section(Hallucinated, {}, _FAILED),
        "nearest_means": Section(NearestMeans, {}, {"neighbours": int, **_FAILED}),
        "imputed": Section(Imputed, {}, {"minimum": float, "answer": float, **_FAILED}),
        "late_or_never": Section(LateOrNever, {}, {"minimum": float, "answer": float, **_FAILED}),
        "censored": Section(Censored.within, {"window": float, "minimum": float}, {"late": str}),
    }),
    "width": (Confidence, {
        "constant": Section(ConstantWidth, {"value": float}, {"delta": float}),
        "pointwise": Section(PointwiseBayes, {}, {"delta": float}),
    }),
    "switching": (Switching, {"lazy": Section(Lazy, {}, {"factor": float})}),
    "reward": (KnownReward, {
        "bernoulli": Section(Bernoulli, {}, {"ceiling": float}),
        "poisson": Section(Poisson, {}, {"ceiling": float}),
        "bounded": Section(Bounded, {}, {"low": float, "high": float}),
    }),
    "constraints": (Constraints, {  # how many there are stands beside the policy
        "on_average": Section(OnAverage, {}, {"step": float, "epoch": int, "most": float, **_CHANNELS}),
        "every_round": Section(EveryRound, {}, {"rule": str, **_CHANNELS}),
        "safe": Section(
            Safe, {"start": list[Any]}, {"scale": float | str, "certificate": str, "delta": float, **_CHANNELS}
        ),
    }),
    "series": (Series, {
        "power": Section(PowerSeries, {}, {"power": float}),
        "even": Section(EvenSeries, {"rounds": int}),
    }),
}  # fmt: skip
POWER_LAW = Section(PowerLaw, {"constant": float}, {"exponent": float})
REFIT = Section(Refit, {}, {
    "every": int, "growth": float, "prior": str, "restarts": int, "outputs": str, "standardize": bool, "warp": str,
    "noise": str,
})  # fmt: skip
REFITS = {
    "lengthscale_bank": Section(LengthscaleBank, {}, {"factors": list[float], "weight": float, "around": Inner})
}  # of a [refit] with a `type`; without one it is a `REFIT`
SEARCH = Section(PointSearch, {}, {
    "candidates": int, "around": int, "mutations": int, "incumbents": int, "apart": float, "starts": int,
    "evaluations": int,
})  # fmt: skip


class PolicyContext(NamedTuple):
    """What stands beside a policy, which some of its parts need.

    Attributes:
        space: its parameters; None where there are arms of none.
        folder: where its file lies, from which classes of the user's own are imported; None for none.
        constraints: how many there are.
        context: parameters that are known before.
        live: whether a program asks and tells by itself.
    """

    space: Space | None
    folder: Path | None
    constraints: int = 0
    context: Space | None = None
    live: bool = False


Reader = Callable[[Mapping[str, Any], PolicyContext], Any]


def policy(table: Mapping[str, Any], domain: Domain, place: PolicyContext) -> Policy:
    """The policy of `[policy]`."""
    entries = dict(table)
    name = entries.pop("algorithm", None)
    if place.live:
        described = one_named("algorithm", name, ALGORITHMS_LIVE)
    else:
        described = one_named("algorithm", name, ALGORITHMS, ALGORITHMS_LEFT_OUT)
    if "kernel" in described.needed and not isinstance(entries.get("kernel"), Mapping):
        example = "Such as { type = 'matern', nu = 2.5, lengthscale = 0.2 }."
        raise InvalidInput("`kernel` must be a table, with a `type`.", advice=example, topic="kernel")
    for slot, names in BY_NAME.items():
        if slot in described.allowed and isinstance(entries.get(slot), str):
            entries[slot] = {"type": one_named(slot, entries[slot], names)}
    arguments = read(described, entries, place, named=f"`{name}`")
    if "pending" in described.allowed:
        # A trial that fails counts as the worst seen so far, or a region where nothing works would be tried forever.
        arguments.setdefault("pending", Ignored(failed="worst"))
    if place.live:
        _check_live(str(name), described, arguments, place)
    if place.constraints:
        counted = name in IN_EPOCHS or (name == "auto" and "constraints" not in arguments)
        sense = arguments.get("constraints", EveryRound())
        arguments["constraints"] = place.constraints if counted else replace(sense, count=place.constraints)
    if place.context is not None:
        arguments["context"] = place.context
    made: Policy = described.make(domain=domain, **arguments)
    return made


def _check_live(name: str, described: Section, arguments: Mapping[str, Any], place: PolicyContext) -> None:
    """Refuse what only together does not fit, and no algorithm would say in words of its table."""
    if name != "auto" and "noise" in described.allowed and not {"noise", "reward"} & set(arguments):
        raise InvalidInput(
            "`noise` is missing: the standard deviation of the rewards' noise. Of clicks, counts and bounded rewards "
            "it follows from `reward`: 'bernoulli', 'poisson' or 'bounded'."
        )
    if name in IN_EPOCHS and not place.constraints:
        raise InvalidInput(f"`algorithm` {name!r} is about constraints: say beside the policy how many there are.")
    if "constraints" in arguments and not place.constraints:
        raise InvalidInput(
            "`constraints` says in which sense they hold, and there are none: say beside the policy how many there "
            "are, by a number that is also called `constraints`."
        )


def read(table: Section, entries: Mapping[str, Any], place: PolicyContext, *, named: str = "") -> dict[str, Any]:
    """The arguments that a table of the file describes: what is a table itself is read by the name of its entry."""
    return {name: _read(name, value, place) for name, value in table.check(entries, named).items()}


def _read(name: str, value: Any, place: PolicyContext) -> Any:
    if name in READERS and isinstance(value, Mapping):
        return within(name, READERS[name], value, place)
    return value


def _kernel(table: Mapping[str, Any], place: PolicyContext) -> Kernel:
    kernel: Kernel = _typed(Kernel, KERNELS, table, place)
    return kernel


def _part(slot: str) -> Reader:
    return lambda table, place: _typed(*PARTS[slot], table, place)


def _pending(table: Mapping[str, Any], place: PolicyContext) -> Any:
    kind, tables = PARTS["pending"]
    described = _described(kind, tables, table.get("type"), place)
    return _typed(kind, tables, {"failed": "worst", **table} if "failed" in described.entries else table, place)


def _plain(described: Section) -> Reader:
    return lambda table, place: described.make(**read(described, table, place))


def _refit(table: Mapping[str, Any], place: PolicyContext) -> Any:
    return _typed(Learning, REFITS, table, place) if "type" in table else _plain(REFIT)(table, place)


def _typed(kind: type, tables: Mapping[str, Section], value: Mapping[str, Any], place: PolicyContext) -> Any:
    """What a table with a `type` describes."""
    entries = dict(value)
    name = entries.pop("type", None)
    described = _described(kind, tables, name, place)
    arguments = read(described, entries, place, named=f"{name!r}")
    if "parts" in arguments:  # of the same kind as what is made of them
        arguments["parts"] = tuple(_same_kind(kind, tables, part, place) for part in arguments["parts"])
    if described.make in (Active, Rounded, kernel_for) and place.space is None:
        raise InvalidInput(f"`type` {name!r} is for named parameters, and these are arms without any.")
    if described.make is Active:
        return Active(arguments["kernel"], _columns(arguments["parameters"], place))
    if described.make in (Rounded, kernel_for):
        arguments["space" if described.make is Rounded else "domain"] = place.space
    if described.make is kernel_for and place.context is not None:
        arguments["context"] = place.context
    try:
        return described.make(**arguments)
    except InvalidInput:
        raise
    except (TypeError, ValueError) as error:  # of a class of the user's own
        raise InvalidInput(f"{name!r} does not take these values: {error}.") from error


def _same_kind(kind: type, tables: Mapping[str, Section], part: Any, place: PolicyContext) -> Any:
    reader: Reader = partial(_typed, kind, tables)
    return within("parts", reader, part, place) if isinstance(part, Mapping) else part


def _columns(names: list[str], place: PolicyContext) -> tuple[int, ...]:
    """The columns of these parameters in an encoded row: (context, point)."""
    where: dict[str, range] = {}
    before = 0
    for space in (each for each in (place.context, place.space) if each is not None):
        for name, (_, columns) in zip(space.parameters, space.columns(), strict=True):
            where[name] = range(before + columns.start, before + columns.stop)
        before += space.dimension
    return tuple(column for name in names for column in one_named("parameters", name, where))


def _described(kind: type, tables: Mapping[str, Section], name: object, place: PolicyContext) -> Section:
    """The table of a type, or of a class of the user's own, "module:Class" or "module.Class"."""
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
    known = [item for item in fields(made) if item.init]  # type: ignore[arg-type]  # a dataclass, seen above
    needed = {f.name: Any for f in known if f.default is MISSING and f.default_factory is MISSING}
    return Section(made, needed, {f.name: Any for f in known if f.name not in needed})


READERS: dict[str, Reader] = {
    "kernel": _kernel,
    "left": _kernel,
    "right": _kernel,
    **{slot: _part(slot) for slot in PARTS},
    "pending": _pending,
    "refit": _refit,
    "around": _plain(REFIT),
    "search": _plain(SEARCH),
    "v": _plain(POWER_LAW),
    "threshold": _plain(POWER_LAW),
    "ridge": _plain(POWER_LAW),
}
