"""The memory of a run: restarts, windows, drift, and change detectors."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, final

from .._utils.copying import Copyable, independent
from ..gp import OutOfSequencePosterior
from ..slots.memory import Detector, Evidence, Observation, Prediction, Restart, checked_restart
from ..storage.record import Event, Trial
from .outputs import BY_NUMBER, Outputs
from .policy import Policy
from .rounds import Rounds

# The order in which a change detector reads outcomes, if silence is an answer too.
#
# If only a yes is ever answered, a detector of answers alone sees only yeses, however rare they have become. So the
# detector reads silence as well: as the least reward, once all answers have come that will come. A yes that was read
# when it came would be read before every no of the same time. Such an order depends on the values, and no e-process
# allows that (`nilregret.theory.change.evidence`). Therefore each trial waits for the trials that were asked for
# before it.

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


@final
class MemoryRunner:
    """The slot `memory` in a run: decides which trials count, and lets the outputs learn these.

    Args:
        policy: the policy.
        rounds: the rounds of the run.
        outputs: the models of all outputs.

    Attributes:
        restarts: all restarts so far.
        drifts: whether f changes in each round.
        detector: the detector of changes, or None.
        kept: results of forced rounds that later ones need again. Copies share them.
    """

    def __init__(self, policy: Policy, rounds: Rounds, outputs: Outputs) -> None:
        self.policy, self.rounds, self.outputs = policy, rounds, outputs
        self.restarts: list[Restart] = []
        self.kept: dict[Any, Any] = {}
        self.drifts = policy.memory.drift() is not None
        self._forgets = not policy.memory.keeps_all  # read once, since a round takes some tens of microseconds
        self.detector: Detector | None = policy.memory.watch(outputs.model_info(learned=policy.fitting is None))
        self._joins = self.detector is not None and self.detector.joins
        silent = self.detector is not None and not self.detector.predicts
        silent = silent and outputs.reward.data.pending.waits is not None
        self._silence = SilenceOrder() if silent else None
        self._limited: list[Trial] = []  # trials whose constraint values came by themselves since the last update

    def record(self, trial: Trial) -> None:
        """Records a trial that was asked for."""
        if self._silence is not None:
            self._silence.record(trial)

    def observe(self, event: Event) -> None:
        """Stores what the change detector reads of an event at the next update."""
        if event.kind == "abandoned" and self._silence is not None:
            self._silence.abandon(event.trial)
        elif event.kind == "limited" and self._joins:
            self._limited.append(event.trial)

    @property
    def waits(self) -> bool:
        """True if constraint values wait for the change detector."""
        return bool(self._limited)

    @property
    def evidence(self) -> Evidence | None:
        """The evidence of a change, or None without a detector that has a number for it."""
        return None if self.detector is None else self.detector.evidence

    @property
    def first_counted(self) -> int:
        """The number of the first trial that counts in the next round."""
        rounds = self.rounds
        if not self._forgets:
            return rounds.since
        return max(self.policy.memory.first_counted(rounds.since, rounds.count), rounds.since)

    # -- one update ----------------------------------------------------------------------------------------------

    def update(self, outcomes: list[Trial]) -> None:
        """Learns outcomes, by number, and restarts or forgets if that is due."""
        rounds, memory, outputs = self.rounds, self.policy.memory, self.outputs
        if self._forgets and (due := memory.cut(rounds.since, rounds.count)) is not None:
            self._check_and_restart(due)
        if outcomes or outputs.reward.data.pending.fresh:
            self._learn(outcomes)
        if outputs.others_wait:
            outputs.learn_others(self.first_counted)
        if self._limited:
            self._read_limited()
        if self._forgets and (first := self.first_counted) > rounds.since:
            outputs.forget_before(first)
            rounds.forget_before(first)
        if self.drifts:
            outputs.advance(rounds.count)

    def _learn(self, outcomes: list[Trial]) -> None:
        first, data, detector = self.first_counted, self.outputs.reward.data, self.detector
        counted = outcomes if not first else [trial for trial in outcomes if trial.number >= first]
        if not self._forgets:
            data.update(counted)
            return
        if detector is not None and detector.predicts:
            for trial in counted:
                self._learn_one(trial, detector)
            if data.pending.fresh:  # no outcome counts any more, so no update has imputed these
                data.update([])
            return
        drift = self._drift() if detector is not None else 0.0
        if self.drifts:
            self.outputs.advance(self.rounds.count)
        data.update(counted)
        if detector is not None:
            silence = self._silence
            for trial in outcomes if silence is None else silence.ready(outcomes, self.outputs):
                if trial.number >= self.rounds.since and trial.reward is not None:
                    self._read(detector, trial, None, drift)

    def _learn_one(self, trial: Trial, detector: Detector) -> None:
        """Predicts an outcome, learns it, and shows both to the detector. An e-value needs the earlier prediction."""
        if trial.number < self.rounds.since:  # an earlier outcome has caused a restart
            return
        if self.drifts:
            self.outputs.advance(trial.number)
        data = self.outputs.reward.data
        before, drift = data.posterior.predictions(trial), self._drift()
        data.update([trial])
        if trial.reward is not None:
            self._read(detector, trial, before, drift)

    def _read_limited(self) -> None:
        """Passes constraint values that came without a reward to the detector."""
        limited, self._limited = sorted(self._limited, key=BY_NUMBER), []
        for trial in limited:
            if trial.number >= self.rounds.since and self.detector is not None:
                self._read(self.detector, trial, None, self._drift())

    def _drift(self) -> float:
        """Returns the expected share of f that is new in each round, or 0 if f does not drift."""
        drift, belief = self.policy.memory.drift(), self.outputs.reward.posterior.belief.observed
        return (
            belief.mean_rate
            if isinstance(belief, OutOfSequencePosterior)
            else drift
            if isinstance(drift, float)
            else 0.0
        )

    def _read(self, detector: Detector, trial: Trial, before: Prediction | None, drift: float) -> None:
        """Shows the detector an outcome, and restarts if it calls for that."""
        value = math.nan if trial.reward is None else trial.reward - self.policy.prior_mean
        restart = detector.see(Observation(trial, value, before, drift))
        if restart is not None:
            self._check_and_restart(restart)

    # -- restarts ------------------------------------------------------------------------------------------------

    def _check_and_restart(self, restart: Restart) -> None:
        checked_restart(self.policy.memory, restart, since=self.rounds.since, round_=self.rounds.count)
        self.outputs.reward.charges.restart(restart.round)
        self.restart(restart)

    def restart(self, restart: Restart) -> None:
        """Forgets all rounds before a restart."""
        self.restarts.append(restart)
        self.rounds.restart(restart.round)
        if self.detector is not None:
            self.detector.cut(restart)
        if self._silence is not None:
            self._silence.restart(restart.round)
        self.outputs.restart(restart.round)

    def refitted(self) -> None:
        """Tells the detector that kernel, noise or units have changed."""
        if self.detector is not None:
            self.detector.refitted(self.outputs.model_info(learned=True))

    def copy(self, rounds: Rounds, outputs: Outputs) -> MemoryRunner:
        """Returns an independent copy."""
        owned = ("restarts", "_limited", "detector", "_silence")
        return independent(self, owned, fresh={"rounds": rounds, "outputs": outputs})
