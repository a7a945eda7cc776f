"""Plain rounds of a study in memory, whose policy learns from arms and rewards alone (`Policy.direct`).

An `ask` and a `tell` of such a study pass leases, queues, changed arms, storage and late fits, which are dormant. Here a
round looks at whether they are, and then records what a `Transaction` would record, to the bit. At whatever is unusual
it does nothing, and the transaction takes the call.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, final

from .._utils.checks import LARGEST_REWARD
from ..policy.plain_rounds import PlainRounds
from ..policy.policy import Policy
from ..policy.state import State
from ..storage.trial import NO_CURVE, UNANSWERED, Trial
from .direction import PLAIN
from .replica import Replica


def are_plain(replica: Replica, *, propensities: bool) -> bool:
    """Returns whether a study may have plain rounds."""
    policy = replica.made
    if not isinstance(policy, Policy) or not policy.direct or replica.handle is not None or propensities:
        return False
    named = replica.inputs.named or policy.context is not None
    learns = replica.lessons.slates is None and replica.goals == PLAIN and not policy.pending.in_time
    return learns and not named and policy.fidelity is None


@final
class PlainStudy:
    """The plain rounds of a study.

    Args:
        replica: of the study, which `are_plain`.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica = replica
        self._begin(replica.state)

    def _begin(self, state: Any) -> None:
        """Finds out what is dormant in a state, which a replay or new arms make anew."""
        self._state: Any = state
        plain = isinstance(state, State) and isinstance(state.outputs.engine.blas, nullcontext)
        self._rounds = PlainRounds(state) if plain else None

    def ask(self) -> Trial | None:
        """Returns the next trial, recorded (see `Study.ask`), or None if a transaction must decide it."""
        replica = self._replica
        with replica.plain_lock:
            state, record = replica.state, replica.record
            if state is not self._state:
                self._begin(state)
            queue, rounds = replica.queue, self._rounds
            if rounds is None or replica.roster.retired or queue.waiting or queue.passed:
                return None
            told = state.waiting
            if told and (len(told) > 1 or not rounds.learns(told[0])):
                return None
            now = replica.begin()
            if now is None:
                return None
            if told:
                state.waiting = []
                rounds.learn(told[0], told[0].arm, None, told[0].reward)
            number, order = len(record.trials), record.order + 1
            point, arm, explored = rounds.play(None)
            trial: Trial = tuple.__new__(
                Trial, (number, point, arm, None, order, now, None, explored, *UNANSWERED)
            )
            record.trials.append(trial)
            replica.settle(order)
            return trial

    def tell(self, trial: Any, reward: Any) -> Trial | None:
        """Returns a trial with its reward, recorded (see `Study.tell`), or None if a transaction must take it."""
        replica = self._replica
        if type(reward) is not float or not abs(reward) <= LARGEST_REWARD or replica.inputs.checked is not None:
            return None
        with replica.plain_lock:
            record = replica.record
            ours = type(trial) is Trial and trial.number < len(record.trials) and record.trials[trial.number] is trial
            if not ours or trial.told_order is not None or trial.curve is not NO_CURVE:
                return None
            now, order = replica.begin(), record.order + 1
            if now is None:
                return None
            told = trial.answered(reward=reward, order=order, time=now)
            record.trials[trial.number] = told
            replica.state.waiting.append(told)
            replica.settle(order)
            return told
