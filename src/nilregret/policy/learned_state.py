"""The knowledge of a state as JSON and arrays, so that a state need not be made by a replay.

A state of linear models of arms under contexts learns trials one after the other, and nothing that it holds grows with
them. Other states are made by a replay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .._utils.checks import Array
from ..gp.context_bank import ContextPosterior
from ..storage.trial import Trial
from .outcomes import FailedPoints
from .policy import Policy
from .state import State

OF_ROUNDS = ("count", "since", "extra_plays", "last", "uniform", "_added")
OF_OUTCOMES = ("count", "least")


def is_compact(state: object) -> bool:
    """Returns whether `learned` can say what a state has learned."""
    if not isinstance(state, State):
        return False
    policy, reward, memory = state.policy, state.reward, state.memory
    if type(reward.posterior.belief.observed) is not ContextPosterior:
        return False
    plain = policy.models is not None and policy.constraints is None and policy.fitting is None
    plain = plain and reward.guess is None and reward.balance is None and policy.confidence.recent is None
    plain = plain and policy.objective.is_reward and not policy.pending.revises and policy.memory.keeps_all
    plain = plain and policy.slate is None  # Places may not teach what their rows say.
    return plain and memory.detector is None and not memory.restarts and not state.outputs.others


def learned(state: State) -> tuple[Any, list[Array]]:
    """Returns what a compact state has learned, as JSON and the arrays in use, which must be copied."""
    from .._utils.plain_parts import Writer

    writer, posterior = Writer(ContextPosterior.PARTS), state.reward.posterior
    outcomes, points = state.reward.data.outcomes, state.reward.data.outcomes.points
    found = {
        "rounds": {name: vars(state.rounds)[name] for name in OF_ROUNDS},
        "budgets": [budget.learned() for budget in state.rounds.budgets],
        "outcomes": {name: vars(outcomes)[name] for name in OF_OUTCOMES},
        "failed": list(outcomes.failed),
        "points": None if points is None else [dict(each) for each in vars(points).values()],
        "aside": vars(state.outputs.engine)["failed"],
        "waiting": [trial.number for trial in state.waiting],
        "posterior": posterior.belief.observed.learned(),
        "trials": np.array(posterior.learned, dtype=np.int64),
    }
    return writer.plain(found), writer.arrays


def restored(policy: Policy, seed: int, plain: Any, arrays: list[Array], trial_of: Callable[[int], Trial]) -> State:
    """Returns a state that has learned this, to the bit as the one that was written.

    Args:
        policy: of rewards.
        seed: of the study.
        plain: JSON, as the next from `learned`.
        arrays: which belong to the state from now on.
        trial_of: returns a trial of the record by its number, as a state sees it.
    """
    from .._utils.plain_parts import Reader

    state = State(policy, seed=seed)
    if not is_compact(state):
        raise ValueError("the policy has no compact state")
    found = Reader(ContextPosterior.PARTS, arrays).value(plain)
    vars(state.rounds).update({name: found["rounds"][name] for name in OF_ROUNDS})
    for budget, known in zip(state.rounds.budgets, found["budgets"], strict=True):
        budget.take(known)
    outcomes, posterior = state.reward.data.outcomes, state.reward.posterior
    vars(outcomes).update({name: found["outcomes"][name] for name in OF_OUTCOMES})
    outcomes.failed = {number: trial_of(number) for number in found["failed"]}
    if found["points"] is not None:
        points = FailedPoints(())
        vars(points).update(zip(vars(points), map(Counter, found["points"]), strict=True))
        outcomes.points = points
    vars(state.outputs.engine)["failed"] = found["aside"]
    state.waiting = [trial_of(number) for number in found["waiting"]]
    posterior.belief.observed.take(found["posterior"])
    posterior.take(found["trials"].tolist(), trial_of)
    return state
