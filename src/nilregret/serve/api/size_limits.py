"""Limits on the size of a study that a caller puts, checked on its description before anything is made.

A few words describe a grid of a million arms, or a search over a million candidates in each decision. A caller could so
take the memory and the processor time that all studies share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._utils.checks import shown
from ..._utils.numerals import exact
from ...domains.domain import Arms, Domain, Space
from ...errors import InvalidInput
from ...serialize import DEEPEST, from_plain
from ..wire.limits import Limits

# The largest values of entries of a policy, by class: some ten times the defaults.
MOST: dict[str, dict[str, float]] = {
    "PointSearch": {
        "candidates": 8192, "around": 1024, "starts": 64, "evaluations": 200, "mutations": 4096, "incumbents": 64,
    },
    "Refit": {"restarts": 20},
    "Sketch": {"most": 2000, "oversampling": 100.0},
    "Pareto": {"objectives": 5, "limits": 100},  # the time of a volume grows by some ten times with each objective
    "EveryRound": {"count": 100}, "OnAverage": {"count": 100}, "Safe": {"count": 100},
    "AdditivePenalty": {"constraints": 100}, "MultiplicativePenalty": {"constraints": 100},
    "NearestMeans": {"neighbours": 1000},
    "InitialDesign": {"rounds": 10_000},
}  # fmt: skip
LISTED = {"DriftBank": {"rates": 64}, "Safe": {"start": 1000, "slope": 1000}}  # the largest number of entries in a list


def check_columns(space: Space, limits: Limits) -> None:
    """Refuses a space with too many columns."""
    if space.dimension > limits.columns:
        raise InvalidInput(
            f"These parameters have {space.dimension} columns, one for each number and one for each option of a "
            f"choice, and this service takes {limits.columns}. Leave out what hardly matters."
        )


def check_arms(count: int, limits: Limits) -> None:
    """Refuses too many arms."""
    if count > limits.arms:
        raise InvalidInput(
            f"There are {count:,} arms, and this service takes {limits.arms:,} of a study. Give the parameters "
            "without a grid, which are then searched, or say with each decision which points may be played (`among`)."
        )


def check_policy(described: Mapping[str, Any], limits: Limits) -> None:
    """Refuses a policy that would be too large.

    Args:
        described: policy as `Policy.to_json` writes it. May hold anything at all.
        limits: of the service.
    """
    for count, part in enumerate(_parts(described, DEEPEST)):
        if count >= limits.parts:
            raise InvalidInput(f"The policy has more than {limits.parts} parts, and this service takes no more.")
        _check_numbers(part)
        _check_domain(part, limits)
    check_arms(_arms(described.get("domain"), limits) * _arms(described.get("context"), limits), limits)


def _parts(data: Any, levels: int) -> Iterator[Mapping[str, Any]]:
    """Yields the descriptions within a description, outermost first."""
    if not isinstance(data, dict | list) or levels == 0:  # the parser refuses deeper descriptions
        return
    if isinstance(data, dict):
        yield data
    for each in data.values() if isinstance(data, dict) else data:
        yield from _parts(each, levels - 1)


def _check_numbers(part: Mapping[str, Any]) -> None:
    kind = part.get("type")
    if not isinstance(kind, str):
        return
    for name, most in MOST.get(kind, {}).items():
        value = part.get(name)
        if isinstance(value, int | float) and value > most:
            raise InvalidInput(f"`{name}` of `{kind}` is {shown(value)}, and this service takes at most {exact(most)}.")
    for name, most in LISTED.get(kind, {}).items():
        value = part.get(name)
        if isinstance(value, list) and len(value) > most:
            raise InvalidInput(f"`{name}` of `{kind}` has {len(value)} entries, and this service takes {exact(most)}.")


def _check_domain(part: Mapping[str, Any], limits: Limits) -> None:
    if part.get("type") == "Space":
        space = from_plain(part)
        check_columns(space, limits)
    check_arms(_arms(part, limits), limits)
    for name in ("lower", "points"):
        values = part.get(name)
        if part.get("type") in ("Box", "Arms") and isinstance(values, list) and values:
            row = values if name == "lower" else values[0]
            if isinstance(row, list) and len(row) > limits.columns:
                raise InvalidInput(f"Points have {len(row)} coordinates, and this service takes {limits.columns}.")


def _arms(domain: Any, limits: Limits) -> int:
    """Returns the number of arms in the description of a domain. 1 means other domains."""
    if not isinstance(domain, dict) or domain.get("type") != "Arms":
        return 1
    points, counts = domain.get("points"), domain.get("counts")
    if not isinstance(counts, list):
        return len(points) if isinstance(points, list) else 1
    space = from_plain(domain.get("space"))
    pairs = [each for each in counts if isinstance(each, list) and len(each) == 2]
    if not isinstance(space, Space) or len(pairs) < len(counts):
        raise InvalidInput("A grid is described by its `space` and by `counts`, a list of [name, number].")
    return len(gridded(space, {str(name): steps for name, steps in pairs}, limits))


def gridded(space: Space, steps: int | Mapping[str, int], limits: Limits) -> Arms:
    """Returns the grid of a space, and refuses one that is too large before it is made."""
    check_columns(space, limits)
    return space.grid(steps, most=limits.arms)


def check_made(domain: Domain, context: Space | None, limits: Limits) -> None:
    """Refuses points with contexts of too many columns."""
    columns = domain.dimension + (0 if context is None else context.dimension)
    if columns > limits.columns:
        raise InvalidInput(
            f"A point and its context have {columns} columns, one for each number and one for each option of a choice, "
            f"and this service takes {limits.columns}. Leave out what hardly matters."
        )
