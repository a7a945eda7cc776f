"""Ingredients that add up to a total, as one entry of a space."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any, final

from .._utils.checks import number, shown
from .._utils.dataclass import dataclass
from .._utils.numerals import exact
from ..errors import InvalidInput, printable
from .parameters import SIGNIFICANT_DIGITS, Float


@final
@dataclass(frozen=True, init=False, repr=False)
class Mixture:
    """Ingredients that add up to a total: `Mixture("water", "oil", salt=(0, 0.1), total=1.0)`.

    In a `Space` it stands for a `Float` of each ingredient, which objectives receive by its name, and the limit
    "water + oil + salt == 1.0". The name of the entry itself is not used.

    Args:
        *names: ingredients from 0 to the total.
        total: of all amounts, above 0.
        **ranges: least and largest amount of other ingredients, in the units of the total. Ends that no recipe can
            have, since the others would not add up to the rest, are drawn in.

    Attributes:
        ingredients: name and `Float` of each ingredient.
        total: of all amounts.

    Raises:
        InvalidInput: a name is no name or is there twice, or the ranges leave no choice of amounts.

    >>> import nilregret as nr
    >>> nr.Space(recipe=nr.Mixture("water", "oil", salt=(0, 0.1)), oven=nr.Int(150, 220))  # doctest: +ELLIPSIS
    Space(water=Float(low=0.0, high=1.0, log=False), ...).where('water + oil + salt == 1.0')
    """

    ingredients: tuple[tuple[str, Float], ...]
    total: float

    def __init__(self, *names: str, total: float = 1.0, **ranges: tuple[float, float]) -> None:
        total = number("total", total, low=0.0, open_low=True, why="It is what all amounts add up to.")
        _check_names([*names, *ranges])
        amounts = {name: _range(name, given) for name, given in (dict.fromkeys(names, (0.0, total)) | ranges).items()}
        least, most = (sum(ends[side] for ends in amounts.values()) for side in (0, 1))
        slack = 10.0**-SIGNIFICANT_DIGITS * total
        if least >= total - slack or most <= total + slack:
            which, sum_of = ("least", least) if least >= total - slack else ("largest", most)
            raise InvalidInput(
                f"The {which} amounts of the ingredients add up to {exact(_rounded(sum_of))}, and `total` is "
                f"{exact(total)}: no recipe is left to choose.",
                advice="Are the ranges in the units of the total?",
            )
        reach = {name: (max(a, total - (most - b)), min(b, total - (least - a))) for name, (a, b) in amounts.items()}
        object.__setattr__(self, "total", total)
        object.__setattr__(
            self, "ingredients", tuple((name, Float(*map(_rounded, ends))) for name, ends in reach.items())
        )

    def __repr__(self) -> str:
        ranges = "".join(f"{name}=({each.low!r}, {each.high!r}), " for name, each in self.ingredients)
        return f"Mixture({ranges}total={self.total!r})"

    @property
    def limit(self) -> str:
        """The limit of a space that has the ingredients."""
        return f"{' + '.join(name for name, _ in self.ingredients)} == {self.total!r}"


def expanded(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Returns the parameters of a space, with ingredients in place of mixtures, and the limits of these."""
    result: dict[str, Any] = {}
    limits = []
    for name, each in given.items():
        parts = getattr(each, "ingredients", None)
        if parts is not None:
            limits.append(each.limit)
        for part, parameter in [(name, each)] if parts is None else parts:
            if part in result:
                raise InvalidInput(
                    f"`{printable(part)}` is there twice: the ingredients of a mixture are parameters of the space, by "
                    "their own names. Rename one of the two."
                )
            result[part] = parameter
    return result, limits


def _check_names(names: list[Any]) -> None:
    """Raises an error for names of ingredients that a limit cannot have, or too few."""
    for name in names:
        if not isinstance(name, str):
            hint = "Ingredients are given one by one: Mixture(*names)." if isinstance(name, list | tuple) else ""
            raise InvalidInput(f"An ingredient of a mixture is a name, not {shown(name)}.", advice=hint)
        if not name.isidentifier() or keyword.iskeyword(name):
            raise InvalidInput(
                f"Ingredient {shown(name)} has no name that a limit could use: it needs letters, digits and _, such as "
                "corn_starch."
            )
        if names.count(name) > 1:
            raise InvalidInput(f"Ingredient {shown(name)} is named twice.")
    if len(names) < 2:
        raise InvalidInput(f"A mixture has two ingredients or more, and here are {len(names)}: {shown(names)}.")


def _range(name: str, given: object) -> tuple[float, float]:
    """Returns the checked least and largest amount of an ingredient."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidInput(
            f"Ingredient `{printable(name)}` is {shown(given)}: it must be its least and largest amount, such as "
            f"{printable(name)}=(0, 0.1)."
        )
    low, high = (number(f"{name}[{place}]", end, low=0.0) for place, end in enumerate(given))
    if low >= high:
        raise InvalidInput(
            f"Ingredient `{printable(name)}` goes from {exact(low)} to {exact(high)}: the first must be less. Usually "
            "the two are swapped."
        )
    return low, high


def _rounded(value: float) -> float:
    """Returns a sum without the digits that adding made: 1 - 0.9 is 0.1."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")
