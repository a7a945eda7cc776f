"""In which order a memory's watch is shown what came of trials, where silence is an answer too.

Where only a yes is ever answered, a watch that is shown answers sees nothing but yeses, however rare they have become.
So it is shown silence as well: as the least reward, once all answers have come that will. A yes that was shown when it
came would be shown before every no that was asked for at the same time, and an order that looks at the values is what
no e-process allows (`nilregret.theory.change.evidence`). Therefore each trial waits for those asked for before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import final

from .._utils.copying import Copyable
from ..storage.record import Trial
from .outputs import Channels
from .training_data import Ledger

LAST = 2**62  # an order after all others: what silence says has not been said before


@final
class Turns(Copyable):
    """The trials that a watch is still to be shown."""

    OWNED = ("_line", "_known")

    def __init__(self) -> None:
        self._asked = 0  # questions so far
        self._line: deque[tuple[int, int]] = deque()  # number, and questions up to its own, in the order of asking
        self._known: dict[int, Trial] = {}  # the trials of the line, as they are now

    def ask(self, trial: Trial) -> None:
        """A question."""
        self._asked += 1
        self._line.append((trial.number, self._asked))
        self._known[trial.number] = trial

    def abandon(self, trial: Trial) -> None:
        """Nobody works on it any more: its silence says nothing, nor does an answer that comes all the same."""
        self._known.pop(trial.number, None)

    def shown(self, outcomes: Sequence[Trial], ledger: Ledger, channels: Channels | None) -> list[Trial]:
        """Whose turn it is by now.

        Args:
            outcomes: that have come in since the last call, by number.
            ledger: of the rewards, which has taken these in.
            channels: the constraints that have posteriors of their own.
        """
        waits = ledger.waits
        if waits is None or not waits.evident:
            for trial in outcomes:
                self._known.pop(trial.number, None)
            while self._line and self._line[0][0] not in self._known:
                self._line.popleft()  # they have had their turn
            return list(outcomes)
        found = self._queued(outcomes)
        settled, worth = waits.settled, waits.worth(ledger.lowest())
        while self._line:
            number, place = self._line[0]
            known = self._known.get(number)
            if known is not None and known.state == "pending":
                if self._asked - place < settled:
                    break
                limits = None if channels is None else channels.silent(known)
                known = known._replace(state="observed", reward=worth, constraints=limits, told_order=LAST)
            if known is not None:
                found.append(known)
            self._line.popleft()
            self._known.pop(number, None)
        return found

    def _queued(self, outcomes: Iterable[Trial]) -> list[Trial]:
        """Put outcomes in their places; after its silence was shown one says no more."""
        found = []
        for trial in outcomes:
            if trial.number in self._known:
                self._known[trial.number] = trial
            elif trial.told_order == trial.asked_order:  # never asked for
                found.append(trial)
        return found

    def restart(self, first: int) -> None:
        """Trials before this one are shown no more."""
        while self._line and self._line[0][0] < first:
            self._known.pop(self._line.popleft()[0], None)
