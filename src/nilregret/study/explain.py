"""Explanations of trials: the record is replayed up to the moment of a trial, and the policy decides again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from ..storage.trial import Trial, was_asked
from ..theory.fronts import LEAST_STD, boxes, log_distribution, log_ehvi
from .cautions import of_deadlines
from .direction import AnyPolicy, AnyState, Goal, has_channels, setting_of, signs_of, state_after, told_envelope
from .explanation import Candidate, Explanation, FrontGain, OutputBounds
from .front import Front, front_of
from .function import settings_at
from .inputs import DRAWS
from .queue import Entry
from .sheet import is_rounded

MOST_DRAWS = 10**7
NO_REASONS = Reasons(None, None, None, np.zeros(0), None)  # of a trial that the policy did not decide


def explanation(
    policy: AnyPolicy, goals: tuple[Goal, ...], trials: Sequence[Trial], number: int, *, seed: int,
    about: Mapping[str, Any] | None = None, available: Available | None = None, draws: int = DRAWS,
    entry: Entry | None = None,
) -> Explanation:  # fmt: skip
    """Returns why a trial was chosen.

    Args:
        policy: of the study.
        goals: of the objectives.
        trials: all of them, by number.
        number: of the trial to explain.
        seed: of the study.
        about: the facts of the study.
        available: points that could be played then, or None for all.
        draws: number of draws that estimate a propensity that has no closed form.
        entry: of the queue that became the trial, or None.

    Raises:
        TrialError: `add` recorded the trial.
    """
    trial = trials[number]
    if not was_asked(trial):
        raise TrialError(
            f"Trial {number} was not asked for: its point and its answer were added together, and nobody chose it.",
            advice="That was `study.add`. Ask about a trial that `ask` returned.",
            topic="added",
        )
    with no_collection:
        earlier = [each.as_of(trial.asked_order - 1) for each in trials[:number]]
        state = state_after(policy, goals[0], earlier, seed=seed)
    asked = trial.as_of(trial.asked_order)
    return _Moment(policy, state, goals, asked, earlier, available, draws, entry).explanation(about or {})


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
    if trial.enqueued or trial.kept is not None:
        return None
    decision = before.decide(_under(before.policy, trial).context, now=trial.asked_at, available=available, again=trial)
    same = _same(decision, trial, before.policy.domain)
    return Inquiry(before, trial, trial.asked_at, available, draws, same).reasons().propensity


def _under(policy: AnyPolicy, trial: Trial) -> Trial:
    """Returns the trial under the context of its decision: with `fidelity`, it is the full setting."""
    fidelity = setting_of(policy)
    return trial if fidelity is None else trial._replace(context=fidelity.full)


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


def gain_of_front(
    front: Front, goals: tuple[Goal, ...], chosen: Sequence[OutputBounds], pending: Array
) -> FrontGain | None:
    """Returns what a point is expected to add to a front, or None if nothing was answered.

    Args:
        front: of answered trials.
        goals: of the k objectives.
        chosen: the posterior of each objective at the point.
        pending: posterior means of pending trials, `(p, k)`.
    """
    if not front.trials:
        return None
    signs = signs_of(goals)
    mean = signs * [each.mean for each in chosen]
    std = np.maximum([each.std for each in chosen], LEAST_STD)
    told = signs * front.mean
    known = np.concatenate([told, signs * pending])
    log_gain = log_ehvi(mean[:, None], std[:, None], boxes(known, signs * front.reference))[0]
    low, high = (np.exp(log_distribution((ends - mean) / std)) for ends in boxes(known, np.full(len(goals), -np.inf)))
    better = np.flatnonzero((told >= mean).all(axis=1))
    return FrontGain(
        size=len(front.trials), volume=front.hypervolume, reference=tuple(front.reference.tolist()),
        gain=float(np.exp(log_gain)), chance=float((high - low).prod(axis=1).sum()),
        beaten_by=front.trials[int(better[0])].number if len(better) else None,
    )  # fmt: skip


class _Moment:
    """A study at the moment before a trial was asked for.

    Args:
        policy: of the study, in the units told.
        state: after all earlier events.
        goals: of the objectives.
        trial: the trial as it was when it was asked for.
        earlier: the earlier trials as they were at that moment.
        available: points that could be played, or None for all.
        draws: see `explanation`.
        entry: of the queue, or None.
    """

    def __init__(
        self, policy: AnyPolicy, state: AnyState, goals: tuple[Goal, ...], trial: Trial, earlier: Sequence[Trial],
        available: Available | None, draws: int, entry: Entry | None,
    ) -> None:  # fmt: skip
        self._policy, self._goals, self._draws, self._available = policy, goals, draws, available
        self._asked, self._trial = trial, _under(policy, trial)
        self._earlier, self._entry = earlier, entry
        again: dict[str, Any] = {"now": trial.asked_at, "available": available, "again": trial}
        self._decision: Decision = (
            state.fill(entry.pinned(state.policy.domain), self._trial.context, **again)
            if entry is not None
            else state.decide(self._trial.context, **again)
            if trial.kept is None
            else state.keep(trial)
        )
        self._state = state  # By now it has learned all that was known then.
        self._domain = state.policy.domain
        self._unrounded = self._chosen_for_a_sheet(again)
        self._by_policy = trial.kept is None and (entry is None or self._unrounded is not None)
        self._towards = state.outputs.dual.towards if isinstance(state, State) and self._by_policy else None

    def _chosen_for_a_sheet(self, again: dict[str, Any]) -> Array | None:
        """Returns what the policy chose, if the trial's point is that one rounded, or None.

        `Study.sheet` names the point after it has asked. What `enqueue` names is on record before.
        """
        trial, entry = self._trial, self._entry
        at_once = entry is not None and entry.order == trial.asked_order - 2 and entry.time >= trial.asked_at
        if not at_once or not isinstance(self._state, State):
            return None
        chosen = self._state.decide(trial.context, **again).point
        return chosen if is_rounded(self._domain, chosen, trial.point) else None

    def explanation(self, about: Mapping[str, Any]) -> Explanation:
        """Returns the explanation of the trial, of a study with these facts."""
        state, trial = self._state, self._trial
        waiting = tuple(each.number for each in self._earlier if each.state == "pending")
        told, several = sum(each.state == "observed" for each in self._earlier), len(self._goals) > 1
        common: dict[str, Any] = {
            "trial": self._asked, "algorithm": state.policy.algorithm, "pending": waiting,
            "goal": self._goals if several else self._goals[0],
            "objectives": self._policy.objective_names if several else (),
            "answered": told, "multipliers": tuple(map(float, state.multipliers)),
            "restarts": tuple(state.restarts), "repeated": _same(self._decision, trial, self._domain),
            "enqueued": None if self._entry is None else self._entry.said(self._domain),
            "cautions": tuple(of_deadlines(state, about, self._earlier).values()),
        }  # fmt: skip
        if not isinstance(state, State):  # The policy is a script.
            return Explanation(**common, round=trial.number + 1, chosen=self._candidate(trial.point, None))
        return self._of(state, common)

    def _of(self, state: State, common: dict[str, Any]) -> Explanation:
        trial = self._trial
        inquiry = Inquiry(state, trial, trial.asked_at, self._available, self._draws, common["repeated"])
        reasons = inquiry.reasons() if self._by_policy else NO_REASONS
        compared = reasons.compared
        other = None if compared is None else runner_up(compared, trial, self._domain)
        if self._unrounded is not None:
            reasons = reasons._replace(propensity=None)  # Nothing was drawn at the rounded point.
            if compared is not None and other is not None and np.array_equal(compared.points[other], self._unrounded):
                other = None
        finite = None if compared is None or compared.tied is None else compared
        return Explanation(
            **common, rule=reasons.rule, forced_by=reasons.forced_by, round=state.round,
            chosen=self._believed(trial.point, trial.arm, None if self._towards is not None else self._score(reasons)),
            runner_up=None if other is None or compared is None else self._believed(
                compared.points[other], None if compared.arms is None else int(compared.arms[other]),
                float(reasons.shown[other]),
            ),
            compared=None if finite is None else len(finite.points),
            tied=None if finite is None or finite.tied is None else len(finite.tied),
            width=state.width(now=trial.asked_at), drawn=reasons.width, valid_for=state.valid_for,
            first_counted=state.first_counted,
            constraints=self._constraints(), front=self._front(reasons), feasible=self._feasible(),
            kernel=state.kernel, fitted=state.kernel != state.policy.kernel, propensity=reasons.propensity,
            unrounded=None if self._unrounded is None else self._believed(self._unrounded, None, None),
            proofs=state.outputs.dual.proofs(trial.point, trial.context),
            towards=None if self._towards is None else self._believed(self._towards, None, None),
            **_lengthscales(state), budgets=reasons.budgets, instead=self._instead(reasons),
        )  # fmt: skip

    def _instead(self, reasons: Reasons) -> Candidate | None:
        """Returns what the policy would have played, if a budget held the round to the control."""
        other = reasons.instead
        return None if other is None else self._believed(other.point, other.arm, None)

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

    def _candidate(
        self, point: Array, arm: int | None, score: float | None = None, others: tuple[OutputBounds, ...] = (),
        **beliefs: float,
    ) -> Candidate:  # fmt: skip
        settings = settings_at(self._domain, point)
        return Candidate(
            point=tuple(point.tolist()), arm=arm, parameters=None if settings is None else dict(settings), score=score,
            others=others, **beliefs,
        )  # fmt: skip

    def _believed(self, point: Array, arm: int | None, score: float | None) -> Candidate:
        trial, whole = self._trial, isinstance(self._domain, Arms) and arm is not None
        seen = self._state.envelope(None if whole else point[None], trial.context, now=trial.asked_at)
        seen = told_envelope(seen, self._goals[0])
        at = arm if whole and arm is not None else 0
        others = self._outputs(point, range(1, len(self._goals)))
        return self._candidate(point, arm, score, others, **_numbers(seen, at))

    def _outputs(self, point: Array, numbers: Sequence[int]) -> tuple[OutputBounds, ...]:
        """Returns the posteriors of outputs at a point, in the units told."""
        goals = dict(enumerate(self._goals))
        found = [(j, self._state.limit(j, point[None], self._trial.context)) for j in numbers]
        return tuple(OutputBounds(**_numbers(told_envelope(each, goals.get(j, "maximize")), 0)) for j, each in found)

    def _constraints(self) -> tuple[OutputBounds, ...]:
        policy, first = self._state.policy, len(self._goals)
        if not has_channels(policy):
            return ()
        return self._outputs(self._trial.point, range(first, first + policy.constraint_count))

    def _front(self, reasons: Reasons) -> FrontGain | None:
        """Returns what the trial was expected to add to the front, if its score looked for one."""
        if len(self._goals) == 1 or reasons.rule is None or reasons.forced_by is not None:
            return None
        waiting = [each for each in self._earlier if each.state == "pending"]
        chosen = self._believed(self._trial.point, self._trial.arm, None).objectives
        pending = [[each.mean for each in self._believed(t.point, t.arm, None).objectives] for t in waiting]
        known = front_of(self._policy, self._goals, self._state, self._earlier)
        return gain_of_front(known, self._goals, chosen, np.array(pending).reshape(-1, len(self._goals)))

    def _feasible(self) -> float | None:
        if not has_channels(self._state.policy) or not self._state.policy.constraint_count:
            return None
        return float(self._state.certain(self._trial.point[None], self._trial.context)[0])
