"""Descriptions of domains in words."""

from __future__ import annotations

from collections.abc import Iterable

from ....domains.domain import Box, Domain, Space
from ....domains.parameters import Choice, Int, Parameter
from .pictures import many, short

MOST_NAMED = 12  # parameters, options or sides in a list


def domain_text(domain: Domain) -> str:
    """Returns a description of a domain, such as the range of each parameter."""
    if isinstance(domain, Space):
        return _space(domain)
    if isinstance(domain, Box):
        ends = zip(domain.lower.tolist(), domain.upper.tolist(), strict=True)
        sides = [f"{short(low)} to {short(high)}" for low, high in ends]
        return f"{many(len(sides), 'number')}: {_listed(sides, ', ')}"
    named = "" if domain.space is None else f" of {_space(domain.space)}"
    size = "" if domain.dimension == 1 or domain.space is not None else f" in {domain.dimension} dimensions"
    return many(len(domain), "arm") + size + named


def _space(space: Space) -> str:
    needs = {} if space.conditions is None else space.conditions.needs
    said = [
        f"{name} {_parameter(parameter)}"
        + "".join(f", where {need.on} is {_any(need.values)}" for need in needs.get(name, ()))
        for name, parameter in space.parameters.items()
    ]
    return _listed(said, "; ")


def _parameter(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return _any(parameter.options)
    steps = ""
    if isinstance(parameter, Int):
        steps = ", whole numbers" if parameter.step == 1 else f", in steps of {parameter.step}"
    return f"{short(parameter.low)} to {short(parameter.high)}{steps}"


def _any(options: Iterable[object]) -> str:
    return _listed([short(option) for option in options], " or ")


def _listed(said: list[str], between: str) -> str:
    if len(said) <= MOST_NAMED:
        return between.join(said)
    return between.join(said[:MOST_NAMED]) + f" and {len(said) - MOST_NAMED} more"
