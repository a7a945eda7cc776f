"""The search space of an Optuna study, inferred from its completed trials, because define-by-run declares none."""

from __future__ import annotations

from collections.abc import Collection
from typing import final

from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial

CHANGES = 3  # If a range has changed more often, the space takes the hull of all its ranges, else the last one.


@final
class ObservedSpace:
    """The parameters of the completed trials, with their ranges and the groups in which they occur together.

    The space depends only on the trials, in the order in which they were completed.

    Attributes:
        constraints: names of all constraints in the trials.
    """

    def __init__(self) -> None:
        self.constraints: set[str] = set()
        self._groups: list[set[str]] = []
        self._last: dict[str, BaseDistribution] = {}
        self._hull: dict[str, BaseDistribution | None] = {}
        self._changes: dict[str, int] = {}

    def observe(self, trial: FrozenTrial) -> None:
        """Adds a completed trial."""
        self.constraints |= set(trial.constraints)
        self._split(set(trial.distributions))
        for name, distribution in trial.distributions.items():
            last = self._last.get(name)
            if last is None:
                self._hull[name] = distribution
            elif last != distribution:
                self._changes[name] = self._changes.get(name, 0) + 1
                known = self._hull[name]
                self._hull[name] = None if known is None else hull(known, distribution)
            self._last[name] = distribution

    def _split(self, names: set[str]) -> None:
        """Splits the groups so that each trial has all or none of a group, as Optuna's `TPESampler` does."""
        parts: list[set[str]] = []
        for group in self._groups:
            parts += [group & names, group - names]
            names = names - group
        self._groups = [part for part in (*parts, names) if part]

    @property
    def space(self) -> dict[str, BaseDistribution]:
        """Distributions by name that can be decided before a trial begins: those with known ends and several values."""
        found = {name: self._range(name) for name in sorted(self._last)}
        return {name: each for name, each in found.items() if each is not None and not each.single()}

    def _range(self, name: str) -> BaseDistribution | None:
        return self._last[name] if self._changes.get(name, 0) <= CHANGES else self._hull[name]

    def groups(self, names: Collection[str]) -> list[list[str]]:
        """Returns the names in sorted groups that are decided together. Unknown names are one group."""
        parts = [sorted(group & set(names)) for group in self._groups]
        unknown = sorted(set(names) - set(self._last))
        return sorted(part for part in (*parts, unknown) if part)


def hull(one: BaseDistribution, other: BaseDistribution) -> BaseDistribution | None:
    """Returns the smallest range that contains both, or None if their values lie on different grids."""
    if isinstance(one, FloatDistribution) and isinstance(other, FloatDistribution) and one.step == other.step:
        low, high = min(one.low, other.low), max(one.high, other.high)
        if one.step is not None and not _whole((one.low - other.low) / one.step):
            return None
        return FloatDistribution(low, high, log=one.log, step=one.step)
    if isinstance(one, IntDistribution) and isinstance(other, IntDistribution) and one.step == other.step:
        if (one.low - other.low) % one.step:
            return None
        return IntDistribution(min(one.low, other.low), max(one.high, other.high), log=one.log, step=one.step)
    return None


def _whole(steps: float) -> bool:
    return abs(steps - round(steps)) < 1e-6  # steps
