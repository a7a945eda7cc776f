"""The order in which a change detector reads outcomes, if silence is an answer too.

If only a yes is ever answered, a detector of answers alone sees only yeses, however rare they have become. So the
detector reads silence as well: as the least reward, once all answers have come that will come. A yes that was read when
it came would be read before every no of the same time. Such an order depends on the values, and no e-process allows
that (`nilregret.theory.change.evidence`). Therefore each trial waits for the trials that were asked for before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import final

from .._utils.copying import Copyable
from ..storage.record import Trial
from .outputs import Outputs

LAST = 2**62  # order of silence, after the order of every event


@final
class SilenceOrder(Copyable):
    """The queue of trials that a change detector has not read."""

    OWNED = ("_queue", "_trials")

    def __init__(self) -> None:
        self._asked = 0  # questions so far
        self._queue: deque[tuple[int, int]] = deque()  # number, and questions up to it, in the order of asking
        self._trials: dict[int, Trial] = {}  # the trials of the queue, as they are now

    def record(self, trial: Trial) -> None:
        """Records a trial that was asked for."""
        self._asked += 1
        self._queue.append((trial.number, self._asked))
        self._trials[trial.number] = trial

    def abandon(self, trial: Trial) -> None:
        """Removes an abandoned trial. Neither its silence nor a later answer is read."""
        self._trials.pop(trial.number, None)

    def ready(self, outcomes: Sequence[Trial], outputs: Outputs) -> list[Trial]:
        """Returns the trials that the detector may read now, in order.

        Args:
            outcomes: outcomes since the last call, by number.
            outputs: the outputs, which have learned these outcomes.
        """
        data = outputs.reward.data
        waits = data.pending.waits
        if waits is None or not waits.evident:
            for trial in outcomes:
                self._trials.pop(trial.number, None)
            while self._queue and self._queue[0][0] not in self._trials:
                self._queue.popleft()  # the trial has been read
            return list(outcomes)
        found = self._update(outcomes)
        worth = waits.worth(data.lowest())
        while self._queue:
            number, place = self._queue[0]
            queued = self._trials.get(number)
            if queued is not None and queued.state == "pending":
                if not waits.over(number, self._asked - place):
                    break
                limits = outputs.silent_values(queued)
                queued = queued._replace(state="observed", reward=worth, constraints=limits, told_order=LAST)
            if queued is not None:
                found.append(queued)
            self._queue.popleft()
            self._trials.pop(number, None)
        return found

    def _update(self, outcomes: Iterable[Trial]) -> list[Trial]:
        """Replaces trials of the queue by their outcomes. Returns those that were never asked for.

        The outcome of a trial whose silence was read is ignored.
        """
        found = []
        for trial in outcomes:
            if trial.number in self._trials:
                self._trials[trial.number] = trial
            elif trial.told_order == trial.asked_order:
                found.append(trial)
        return found

    def restart(self, first: int) -> None:
        """Removes trials before number `first`."""
        while self._queue and self._queue[0][0] < first:
            self._trials.pop(self._queue.popleft()[0], None)
