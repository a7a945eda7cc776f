"""What becomes of unanswered trials from round to round, and what parts may say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from .._utils.checks import Array, shown
from .._utils.errors import InvalidInput
from ..slots.delay_law import Waits
from ..slots.pending import ImputedValue, Pending
from ..storage.record import Trial
from .engines.base import Units


class Accounts(Protocol):
    """A ledger, as far as it matters here."""

    units: Units
    open: dict[int, Trial]
    waits: Waits | None

    @property
    def entries(self) -> Mapping[int, Any]:
        """What counts, by number of the trial, each with a `target`."""

    def means(self, trials: list[Trial]) -> Array:
        """Posterior mean of what is learned, reward units, `(n,)`."""

    def charges(self, trials: list[Trial]) -> Array:
        """What multipliers charge there, `(n,)`."""

    def lowest(self) -> float:
        """The smallest reward."""


def due(ledger: Accounts, waits: Waits, *, everything: bool) -> list[tuple[Trial, float | None]]:
    """The unanswered trials that count as something else from now on, and as what, in the belief's units.

    Only those that may have moved are looked at, unless `everything` may. All means are taken before any of them moves:
    which trial comes first makes no difference, and a posterior at points is solved once.
    """
    moving = waits.moving()
    entries = ledger.entries
    numbers = [number for number in (ledger.open if everything else moving) if number in entries]
    if not numbers:
        return []
    trials = [ledger.open[number] for number in numbers]
    values = waits.values(waits.ages(numbers), ledger.means(trials), ledger.charges(trials), ledger.lowest())
    targets = ledger.units.scaled_all(values)
    return [
        (trial, target)
        for number, trial, target in zip(numbers, trials, targets, strict=True)
        if target != entries[number].target
    ]


def standing(ledger: Accounts) -> dict[int, float | None]:
    """What unanswered trials count as now, reward units: a belief that is made anew goes on from there."""
    entries = {number: ledger.entries[number].target for number in ledger.open if number in ledger.entries}
    return {
        number: None if target is None else float(ledger.units.back(np.array(target)))
        for number, target in entries.items()
    }


def noise_of_silence(ledger: Accounts) -> float:
    """The largest variance of what is an answer or silence, ((v - s) / 2)^2, in the belief's units; 0 where none is.

    A fit sees answers alone, and where all of them are a yes it takes the world for one without noise.
    """
    waits = ledger.waits
    answer = None if waits is None else waits.answer()
    if waits is None or answer is None:
        return 0.0
    scaled = ledger.units.scaled
    return 0.25 * (scaled(answer) - scaled(waits.worth(ledger.lowest()))) ** 2


def checked_value(pseudo: ImputedValue, part: Pending) -> float | None:
    """The value that a part gives an unanswered trial, reward units; None for the variance alone; errors otherwise."""
    if not isinstance(pseudo, ImputedValue):
        raise InvalidInput(
            f"`{type(part).__name__}.count_as` returned {shown(pseudo)}: it must be an `ImputedValue(value)`, "
            "`ImputedValue(None)` for the variance alone, or None for nothing."
        )
    if pseudo.value is None and not part.hallucinates:
        name = type(part).__name__
        raise InvalidInput(
            f"`{name}` counts a trial for the variance alone (`ImputedValue(None)`) and does not say that it ever "
            "does: set "
            f"`hallucinates = True` in the class, or return None where a trial is to count as nothing."
        )
    return pseudo.value
