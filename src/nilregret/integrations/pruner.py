"""The pruner of Optuna that decides by a pruning rule of this library."""

from __future__ import annotations

import math
from typing import Any, final

import numpy as np
from optuna.pruners import BasePruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .._utils.checks import LARGEST_REWARD, LARGEST_SEED, integer, shown
from ..errors import InvalidInput
from ..slots.by_name import chosen, part_of
from ..slots.pruning import Course, Courses, Pruning
from ..storage.trial import GOING

ENDED = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING, TrialState.FAIL)


@final
class NoRegretPruner(BasePruner):
    """A pruner for Optuna: `trial.should_prune()` by a rule of this library.

    It goes with any sampler. A rule that pauses prunes, since Optuna's trials do not wait.

    Args:
        rule: "median", "halving", "predicted", or a part such as `nr.slots.Halving(steps=50)`.
        seed: of the trials that run on all the same (`nilregret.slots.Pruning.explore`).
    """

    def __init__(self, rule: str | Pruning = "halving", *, seed: int = 0) -> None:
        found: Pruning | None = part_of("pruning", chosen({"pruning": rule})["pruning"])
        if found is None:
            raise InvalidInput(f"`rule` is {shown(rule)}: it must be a rule such as `nr.slots.Halving()`, or its name.")
        self._rule, self._seed = found, integer("seed", seed, low=0, high=LARGEST_SEED)

    def __repr__(self) -> str:
        return f"NoRegretPruner({self._rule!r})"

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Returns True if the trial is to be pruned after its last report."""
        rule, sign = self._rule, 1.0 if study.direction == StudyDirection.MAXIMIZE else -1.0
        this = self._course(trial, sign)
        if this is None or trial.last_step != this.steps[-1]:  # The last report is no number.
            return False
        if not rule.may_stop(int(this.steps[-1])):
            return False
        trials = study.get_trials(deepcopy=False, states=ENDED)
        courses = [self._course(other, sign) for other in trials if other.number != trial.number]
        others = [course for course in courses if course is not None]
        return rule.judged(Courses.of(rule, this, others, sign), seed=self._seed) not in GOING

    def _course(self, trial: FrozenTrial, sign: float) -> Course | None:
        """Returns the finite values that a trial has reported, or None without any."""
        curve = reports(trial)
        if not curve:
            return None
        values = sign * np.array([value for _, value in curve])
        value = trial.value if trial.state == TrialState.COMPLETE else None
        final = None if value is None or not math.isfinite(value) else sign * value
        return Course(
            trial.number, np.zeros(0), np.array([step for step, _ in curve]),
            np.maximum.accumulate(values) if self._rule.of == "best" else values,
            final is not None, trial.state == TrialState.PRUNED, final,
        )  # fmt: skip


def reports(trial: FrozenTrial) -> list[tuple[int, float]]:
    """Returns step and value of each report of a trial in order, without those that are no usable numbers."""
    given: dict[int, Any] = trial.intermediate_values
    return [
        (step, float(value))
        for step, value in sorted(given.items())
        if math.isfinite(value) and abs(value) <= LARGEST_REWARD and step >= 0
    ]
