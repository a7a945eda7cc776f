"""Plain rounds of a study in memory, whose policy learns from arms and rewards alone (`Policy.direct`).

An `ask` and a `tell` of such a study pass leases, queues, changed arms, storage and late fits, which are dormant. Here
a round first sees whether they are, and then records what a `Transaction` would record, to the bit. At whatever is
unusual it does nothing, and a transaction takes the call.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, final

from .._utils.checks import LARGEST_REWARD
from ..domains.domain import space_of
from ..policy.plain_rounds import PlainRounds
from ..policy.policy import Policy
from ..policy.state import State
from ..storage.trial import NO_CURVE, UNANSWERED, Trial
from .direction import PLAIN, reward_trial
from .function import settings_at
from .replica import Replica


def are_plain(replica: Replica, *, propensities: bool) -> bool:
    """Returns whether a study may have plain rounds."""
    policy = replica.made
    if not isinstance(policy, Policy) or not policy.direct or propensities:
        return False
    unnamed = policy.context is None or space_of(policy.context) is None
    learns = replica.lessons.slates is None and len(replica.goals) == 1 and not policy.pending.in_time
    return learns and unnamed and policy.fidelity is None


@final
class PlainStudy:
    """The plain rounds of a study.

    Args:
        replica: of the study, which `are_plain`.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica, self._alone = replica, replica.made.context is None
        self._state: Any = None
        self._rounds: PlainRounds | None = None

    def _begin(self, state: State) -> None:
        """Finds out what is dormant in a state, which a replay or new arms make anew."""
        replica = self._replica
        replica.invalidate()  # The state may now learn what waits, and an interrupt must not leave it half done.
        plain = isinstance(state.outputs.engine.blas, nullcontext)
        self._state, self._rounds = state, PlainRounds(state) if plain else None
        replica.settle(replica.record.order)

    def ask(self, context: Any, now: float | None = None) -> Trial | None:
        """Returns the next trial, recorded (see `Study.ask`), or None if it must be decided in the general way.

        Args:
            context: of the decision, checked if it is of a transaction.
            now: Unix seconds, of the transaction that runs. None for a call of its own, of a study in memory.
        """
        replica, within = self._replica, now is not None
        row = context if within or (context is None and self._alone) else replica.inputs.context(context)
        with replica.fork_lock:
            state: Any = replica.state
            queue, record = replica.queue, replica.record
            if state is not self._state and replica.in_step:
                self._begin(state)
            rounds = self._rounds
            if rounds is None or state is not self._state or replica.roster.retired or queue.waiting or queue.passed:
                return None
            waiting = state.waiting
            if waiting and (len(waiting) > 1 or not rounds.learns(waiting[0])):
                return None
            now = replica.begin() if now is None else now
            if now is None:
                return None
            if within:
                replica.note_change(len(record.trials))
            if waiting:
                state.waiting, told = [], waiting[0]
                rounds.learn(told, told.arm, told.context, told.reward)
            number, order = len(record.trials), record.order + 1
            point, arm, explored = rounds.play(row)
            settings = settings_at(replica.policy.domain, point) if replica.inputs.named else None
            asked = (number, point, arm, settings, order, now, row, explored) + UNANSWERED  # noqa: RUF005 - faster
            trial: Trial = tuple.__new__(Trial, asked)
            if within:
                record.order = order
            record.trials.append(trial)
            if not within:
                replica.settle(order)
            return trial

    def tell(self, trial: Any, reward: Any, *, within: bool = False) -> Trial | None:
        """Returns a trial with its reward, recorded (see `Study.tell`), or None if it must be taken in the general way.

        Args:
            trial: as `ask` returned it.
            reward: of the trial.
            within: True within a transaction. Otherwise it is a call of its own, of a study in memory.
        """
        replica = self._replica
        if type(reward) is not float or not abs(reward) <= LARGEST_REWARD or replica.inputs.checked is not None:
            return None
        with replica.fork_lock:
            record, state = replica.record, self._state
            ours = type(trial) is Trial and trial.number < len(record.trials) and record.trials[trial.number] is trial
            if not ours or trial.told_order is not None or trial.curve is not NO_CURVE or replica.state is not state:
                return None
            now, order = replica.now() if within else replica.begin(), record.order + 1
            if now is None:
                return None
            told: Trial = trial.answered(reward=reward, order=order, time=now)
            if within:
                replica.note_change(trial.number)
                record.order = order
            record.trials[trial.number] = told
            self._state.waiting.append(told if replica.goals == PLAIN else reward_trial(told, replica.goals))
            if not within:
                replica.settle(order)
            return told
