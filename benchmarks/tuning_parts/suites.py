"""Suites: problems under a heading, how a run of them is judged, and what else of them is printed.

Development runs are on COCO's instance 1 and the models on which things may be tried. Held-out ones, on instances 4
and 5 and the other models, are for the last word: a policy is run there once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from . import coco
from .problems import MODELS_DEVELOPMENT, MODELS_HELD_OUT

PEERS = ("auto", "random", "tpe", "cmaes", "gpsampler", "botorch")
WITH_CHOICES = ("auto", "random", "tpe", "gpsampler")
FIRST = (1, 6, 10, 15, 20, 25)  # functions of COCO's five groups
GROUPS = {f"f{first}-{end - 1}": range(first, end) for first, end in pairwise(FIRST)}


def _nothing(_):
    return {}


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Problems that are judged together.

    Attributes:
        names: (half, dimensions or None) -> the names of its problems; not all suites have dimensions.
        measure: of `report.Table`.
        groups: names of problems -> {title: names}, whose means and ranks are printed as well.
        methods, trials, seeds: where the command says nothing.
    """

    names: Callable[[str, list[int] | None], list[str]]
    measure: str = "log gap"
    groups: Callable[[list[str]], dict[str, list[str]]] = _nothing
    methods: tuple[str, ...] = PEERS
    trials: tuple[int, ...] = (30, 60, 100)
    seeds: int = 1


def _instances(half):
    return coco.DEVELOPED_ON if half == "development" else coco.HELD_OUT


def _bbob(half, dimensions):
    """Above ten dimensions with fewer functions and one instance."""
    usual = [d for d in dimensions or coco.DIMENSIONS if d <= max(coco.DIMENSIONS)]
    high = [d for d in dimensions or () if d > max(coco.DIMENSIONS)]
    instances = _instances(half)
    return coco.names("bbob", instances, usual) + coco.names("bbob", instances[:1], high, coco.IN_HIGH)


def _mixint(half, dimensions):
    return coco.names("mixint", _instances(half), dimensions or (5, 10))


def _noisy(half, dimensions):
    some = dimensions or (2, 5)
    return [name for percent in (5, 20) for name in coco.names("bbob", _instances(half)[:1], some, noise=percent)]


def _models(half, dimensions):  # noqa: ARG001
    return MODELS_DEVELOPMENT if half == "development" else MODELS_HELD_OUT


def _by_part(names):
    """The parts of each name's problem: suite, function, dimension, instance and noise."""
    return {name: coco.NAME.fullmatch(name).groups() for name in names}


def _by_function(names):
    """By the five groups of COCO's functions, and by dimension."""
    of = _by_part(names)
    groups = {title: [name for name in names if int(of[name][1]) in numbers] for title, numbers in GROUPS.items()}
    for d in sorted({int(parts[2]) for parts in of.values()}):
        groups[f"d {d}"] = [name for name in names if int(of[name][2]) == d]
    return {title: some for title, some in groups.items() if some}


def _by_noise(names):
    of = _by_part(names)
    return {f"noise {percent}%": [name for name in names if of[name][4] == percent] for percent in ("5", "20")}


SUITES = {
    "bbob": Suite(names=_bbob, groups=_by_function),
    "mixint": Suite(names=_mixint, groups=_by_function, methods=("auto", "random", "tpe", "cmaes")),
    "models": Suite(names=_models, measure="regret", methods=WITH_CHOICES, trials=(30, 60), seeds=10),
    "noisy": Suite(names=_noisy, groups=_by_noise, methods=WITH_CHOICES),
}
