"""The trials of a long record, of which the storage alone holds the early ones.

A record of a million trials takes gigabytes, and hours pass before anybody looks at its first trial again. An early
trial is read from the storage when it is looked at, and checked as every row is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, final

from .trial import Trial

BLOCK = 1000  # trials that are read at a time
HELD = 200_000  # early trials that are held once all of them have been read, some 500 MB


@final
class EarlyTrials:
    """A list of trials, of which the first `count` are read when they are looked at.

    Args:
        count: number of early trials.
        read: returns the early trials from one number to before another, as the storage has them now.
        order: of the last event that the early trials have seen. Later events of an early trial are in `own`.
        own: early trials that are held here, because they changed later or wait for an answer.
        recent: all later trials.
        held: the first early trials, as far as they were read one after the other.
    """

    def __init__(
        self, count: int, read: Callable[[int, int], list[Trial]], order: int, own: Iterable[Trial] = (),
        recent: Iterable[Trial] = (), held: list[Trial] | None = None,
    ) -> None:  # fmt: skip
        self.count, self.order, self._read = count, order, read
        self.own = {trial.number: trial for trial in own}
        self.recent = list(recent)
        self._held: list[Trial] = [] if held is None else held
        self._block: tuple[int, list[Trial]] = (0, [])  # the trials read last, and the number of the first of them

    def __len__(self) -> int:
        return self.count + len(self.recent)

    def __iter__(self) -> Iterator[Trial]:
        for first in range(0, self.count, BLOCK):
            yield from self._early(first, min(first + BLOCK, self.count))
        yield from self.recent

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            if index == slice(None):
                return EarlyTrials(self.count, self._read, self.order, self.own.values(), self.recent, self._held)
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if number >= self.count:
            return self.recent[number - self.count]
        if number < 0:
            raise IndexError(f"There is no trial {index}.")
        if number in self.own:
            return self.own[number]
        first, known = self._block
        if not first <= number < first + len(known):
            # Whoever goes on from the trials read last reads on. Any other one reads one trial.
            more = BLOCK if known and number == first + len(known) else 1
            first, known = self._block = number, self._early(number, min(number + more, self.count))
        return known[number - first]

    def __setitem__(self, index: int | slice, value: Any) -> None:
        if isinstance(index, slice):  # as a record replaces or adds one trial
            number, (trial,) = index.start, value
            if number == len(self):
                self.recent.append(trial)
                return
        else:
            number, trial = index, value
        if number < self.count:
            self.own[number] = trial
        else:
            self.recent[number - self.count] = trial

    def __delitem__(self, index: slice) -> None:
        del self.recent[index.start - self.count :]

    def append(self, trial: Trial) -> None:
        """Adds a trial."""
        self.recent.append(trial)

    @property
    def at_hand(self) -> list[Trial]:
        """The trials that are held in memory, by number."""
        return [*(self.own[number] for number in sorted(self.own)), *self.recent]

    def _early(self, first: int, end: int) -> list[Trial]:
        """Returns early trials as they were after the last event that they have seen here."""
        own, held = self.own, self._held
        found = held[first:end]
        if len(found) < end - first:
            found = self._read(first, end)
            found = [trial if trial.last_order <= self.order else trial.as_of(self.order) for trial in found]
            if self.count <= HELD and len(held) == first:  # Whoever reads all of them will do so again.
                held += found
        return [own.get(trial.number, trial) for trial in found] if own else found
