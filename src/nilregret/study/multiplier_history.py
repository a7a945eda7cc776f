"""The price of violating each constraint when each trial was decided.

| symbol | name | meaning | shape |
|---|---|---|---|
| phi, kappa | `values` | the multipliers in force | (n, m) |
| g | `trial.constraints` | constraint values told | (m,) |

Rules that charge prices in the objective keep their steps, which are few. The prices of `OnAverage` take a step after
each epoch. They are computed again from the record, which needs no posterior. Corrected answers count as if they had
been told first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np

from .._utils.checks import Array, IndexArray
from ..policy.policy import Policy
from ..slots.constraints import OnAverage
from ..storage.trial import Trial
from .direction import AnyPolicy, AnyState


def multiplier_history(policy: AnyPolicy, state: AnyState, trials: Sequence[Trial]) -> tuple[IndexArray, Array]:
    """Returns the trials that were asked for, and the multipliers of each decision.

    Args:
        policy: of the study.
        state: after all these trials.
        trials: by number.

    Returns:
        Numbers `(n,)` and multipliers `(n, m)`. m is 0 if the policy has no multipliers.
    """
    first = [trial.as_corrected() if trial.corrected else trial for trial in trials]
    asked = [trial for trial in first if trial.asked_order != trial.told_order]
    numbers = np.array([trial.number for trial in asked], dtype=np.intp)
    if isinstance(policy, Policy) and policy.constraints is not None and policy.constraints.on_average:
        return numbers, _on_average(cast(OnAverage, policy.constraints), first, asked)
    steps = state.price_steps
    if not steps or not np.isfinite(steps[0][1]).all():  # The multipliers of ADMM belong to other constraints.
        return numbers, np.zeros((len(numbers), 0))
    since = np.array([rounds for rounds, _ in steps])
    return numbers, np.array([values for _, values in steps])[np.searchsorted(since, numbers, side="right") - 1]


def _on_average(world: OnAverage, trials: Sequence[Trial], asked: Sequence[Trial]) -> Array:
    """Returns phi_j <- clip(phi_j + step g_j, 0, most) at the start of each epoch (see `OnAverage`), `(n, m)`."""
    epochs = np.array([trial.number // world.epoch for trial in asked], dtype=np.int64)
    steps = np.flatnonzero(np.diff(epochs, prepend=0))  # Decisions that follow a step.
    sums = world.step / world.epoch * _told(world.count, trials, asked, steps)
    values = np.zeros((len(steps) + 1, world.count))
    for j in range(world.count):
        values[1:, j] = list(_walk(sums[:, j].tolist(), world.most))
    return values[np.searchsorted(steps, np.arange(len(asked)), side="right")]


def _told(count: int, trials: Sequence[Trial], asked: Sequence[Trial], steps: IndexArray) -> Array:
    """Returns the sums of constraint values told between two steps, `(len(steps), count)`."""
    limited = [trial for trial in trials if trial.constraints is not None]
    orders = [trial.told_order if trial.constraints_order is None else trial.constraints_order for trial in limited]
    # Each value counts from the next decision on. Values for the same decision are summed by number.
    places = np.searchsorted(np.array([trial.asked_order for trial in asked]), np.array(orders, dtype=np.int64))
    by_place = np.argsort(places, kind="stable")
    sums = np.zeros((len(steps) + 1, count))  # The last row is for values after the last step.
    told = [trial.constraints for trial in limited if trial.constraints is not None]
    g = np.concatenate([np.zeros(0), *told]).reshape(-1, count)
    np.add.at(sums, np.searchsorted(steps, places[by_place]), g[by_place])  # In order, to round as the state does.
    return sums[:-1]


def _walk(sums: list[float], most: float) -> Iterator[float]:
    price = 0.0
    for total in sums:
        price = min(max(price + total, 0.0), most)
        yield price
