"""Explanations of trials: the record is replayed up to the moment of a trial, and the policy decides again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._utils.checks import Array
from .._utils.process_setting import no_collection
from ..domains.domain import Arms, Domain, alike
from ..errors import InvalidInput, TrialError
from ..policy.availability import Available
from ..policy.engines import Decision
from ..policy.explain import Inquiry, Propensity, Reasons, runner_up
from ..policy.state import State
from ..slots.envelope import Envelope
from ..storage.record import Trial
from .direction import AnyPolicy, AnyState, Goal, has_channels, state_after, told_envelope
from .explanation import Candidate, ConstraintBounds, Explanation
from .function import settings_at
from .queue import Entry

DRAWS = 1000  # Draws that estimate a propensity by default.
MOST_DRAWS = 10**7
NO_REASONS = Reasons(None, None, None, np.zeros(0), None)  # of a trial that `enqueue` asked for


def explanation(
    policy: AnyPolicy, goal: Goal, trials: Sequence[Trial], number: int, *, seed: int,
    available: Available | None = None, draws: int = DRAWS, entry: Entry | None = None,
) -> Explanation:  # fmt: skip
    """Returns why a trial was chosen.

    Args:
        policy: of the study.
        goal: of the study.
        trials: all of them, by number.
        number: of the trial to explain.
        seed: of the study.
        available: points that could be played then, or None for all.
        draws: number of draws that estimate a propensity that has no closed form.
        entry: of the queue that became the trial, or None.

    Raises:
        TrialError: `add` recorded the trial.
    """
    trial = trials[number]
    if trial.as_corrected().told_order == trial.asked_order:
        raise TrialError(
            f"Trial {number} was not asked for: its point and its answer were added together, and nobody chose it.",
            advice="That was `study.add`. Ask about a trial that `ask` returned.",
            topic="added",
        )
    with no_collection:
        earlier = [each.as_of(trial.asked_order - 1) for each in trials[:number]]
        state = state_after(policy, goal, earlier, seed=seed)
    return _Moment(state, goal, trial.as_of(trial.asked_order), earlier, available, draws, entry).explanation()


def propensity_of(
    before: State, trial: Trial, *, available: Available | None = None, draws: int = DRAWS
) -> Propensity | None:
    """Returns how probable a decision was, without a replay. It equals the propensity of `explanation`.

    Args:
        before: the state before the decision, which this call uses up. Of a study that minimises, the state of rewards.
        trial: as it was asked for.
        available: points that could be played, or None for all.
        draws: see `explanation`.
    """
    if trial.enqueued:
        return None
    decision = before.decide(trial.context, now=trial.asked_at, available=available, again=trial)
    same = _same(decision, trial, before.policy.domain)
    return Inquiry(before, trial, trial.asked_at, available, draws, same).reasons().propensity


def _same(decision: Decision, trial: Trial, domain: Domain) -> bool:
    same = decision.arm == trial.arm and alike(domain, decision.point, trial.point)
    return same and decision.explored == trial.explored and decision.repeats == trial.repeats


def _lengthscales(state: State) -> dict[str, Any]:
    known = state.lengthscales
    if known is None:
        return {}
    weighed = tuple(zip(known.factors, map(float, known.weights), strict=True))
    return {"lengthscales": weighed, "turn": None if known.leader is None else known.factors[known.leader]}


def _numbers(envelope: Envelope, row: int) -> dict[str, float]:
    """Returns mean, standard deviation and bounds at one point."""
    return {name: float(getattr(envelope, name)[row]) for name in ("mean", "std", "lower", "upper")}


class _Moment:
    """A study at the moment before a trial was asked for.

    Args:
        state: after all earlier events.
        goal: of the study.
        trial: the trial as it was when it was asked for.
        earlier: the earlier trials as they were at that moment.
        available: points that could be played, or None for all.
        draws: see `explanation`.
        entry: of the queue, or None.
    """

    def __init__(
        self, state: AnyState, goal: Goal, trial: Trial, earlier: Sequence[Trial], available: Available | None,
        draws: int, entry: Entry | None,
    ) -> None:  # fmt: skip
        self._goal, self._trial, self._draws, self._available = goal, trial, draws, available
        self._earlier, self._entry = earlier, entry
        again: dict[str, Any] = {"now": trial.asked_at, "available": available, "again": trial}
        self._decision: Decision = (
            state.decide(trial.context, **again)
            if entry is None
            else state.fill(entry.pinned(state.policy.domain), trial.context, **again)
        )
        self._state = state  # By now it has learned all that was known then.
        self._domain = state.policy.domain

    def explanation(self) -> Explanation:
        """Returns the explanation of the trial."""
        state, trial = self._state, self._trial
        waiting = tuple(each.number for each in self._earlier if each.state == "pending")
        told = sum(each.state == "observed" for each in self._earlier)
        common: dict[str, Any] = {
            "trial": trial, "goal": self._goal, "algorithm": state.policy.algorithm, "pending": waiting,
            "answered": told, "multipliers": tuple(map(float, state.multipliers)),
            "restarts": tuple(state.restarts), "repeated": _same(self._decision, trial, self._domain),
            "enqueued": None if self._entry is None else self._entry.said(self._domain),
        }  # fmt: skip
        if not isinstance(state, State):  # The policy is a script.
            return Explanation(**common, round=trial.number + 1, chosen=self._candidate(trial.point, None))
        return self._of(state, common)

    def _of(self, state: State, common: dict[str, Any]) -> Explanation:
        trial = self._trial
        inquiry = Inquiry(state, trial, trial.asked_at, self._available, self._draws, common["repeated"])
        reasons = inquiry.reasons() if self._entry is None else NO_REASONS
        compared = reasons.compared
        other = None if compared is None else runner_up(compared, trial, self._domain)
        finite = None if compared is None or compared.tied is None else compared
        return Explanation(
            **common, rule=reasons.rule, forced_by=reasons.forced_by, round=state.round,
            chosen=self._believed(trial.point, trial.arm, self._score(reasons)),
            runner_up=None if other is None or compared is None else self._believed(
                compared.points[other], None if compared.arms is None else int(compared.arms[other]),
                float(reasons.shown[other]),
            ),
            compared=None if finite is None else len(finite.points),
            tied=None if finite is None or finite.tied is None else len(finite.tied),
            width=state.width(now=trial.asked_at), drawn=reasons.width, valid_for=state.valid_for,
            first_counted=state.first_counted,
            constraints=self._constraints(), feasible=self._feasible(),
            kernel=state.kernel, fitted=state.kernel != state.policy.kernel, propensity=reasons.propensity,
            **_lengthscales(state),
        )  # fmt: skip

    def _score(self, reasons: Reasons) -> float | None:
        """Returns the score of the trial's point, or None if the point was not compared."""
        compared, trial = reasons.compared, self._trial
        if compared is None:
            return None
        if compared.arms is not None:
            there = np.flatnonzero(compared.arms == trial.arm)
        else:
            there = np.flatnonzero((compared.points == trial.point).all(axis=1))
        if not len(there):
            if self._available is None:
                return None
            raise InvalidInput(
                f"Trial {trial.number} is at {trial.point.tolist()}, which is not among what you say could be played "
                "then.",
                advice="Pass what was passed to `ask`.",
            )
        return float(reasons.shown[there[0]])

    def _candidate(self, point: Array, arm: int | None, score: float | None = None, **beliefs: float) -> Candidate:
        settings = settings_at(self._domain, point)
        return Candidate(
            point=tuple(point.tolist()), arm=arm, parameters=None if settings is None else dict(settings), score=score,
            **beliefs,
        )  # fmt: skip

    def _believed(self, point: Array, arm: int | None, score: float | None) -> Candidate:
        trial, whole = self._trial, isinstance(self._domain, Arms) and arm is not None
        seen = self._state.envelope(None if whole else point[None], trial.context, now=trial.asked_at)
        seen = told_envelope(seen, self._goal)
        at = arm if whole and arm is not None else 0
        return self._candidate(point, arm, score, **_numbers(seen, at))

    def _constraints(self) -> tuple[ConstraintBounds, ...]:
        policy, trial = self._state.policy, self._trial
        if not has_channels(policy):
            return ()
        found = [self._state.limit(j + 1, trial.point[None], trial.context) for j in range(policy.constraint_count)]
        return tuple(ConstraintBounds(**_numbers(each, 0)) for each in found)

    def _feasible(self) -> float | None:
        if not has_channels(self._state.policy):
            return None
        return float(self._state.certain(self._trial.point[None], self._trial.context)[0])
