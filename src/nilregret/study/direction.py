"""The goals of a study: policies maximise rewards, and a study that minimises passes them minus its losses.

A user of a study that minimises gives and sees losses. The state sees rewards. A study that minimises f decides, bit
for bit, like the study that maximises -f. Rewards, means, bounds, prior means and the value of a silent trial change
sign. Widths, standard deviations, norm bounds and prices of violations are distances and keep theirs.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, cast, final

import numpy as np

from .._utils.checks import Array, frozen, many, shown
from ..errors import InvalidInput, TrialError
from ..policy.fits import LateFits
from ..policy.policy import Policy
from ..policy.scripted import ScriptedPolicy, ScriptedState
from ..policy.state import State
from ..slots.envelope import Envelope
from ..slots.fidelity import Fidelity
from ..slots.objective import Objective
from ..slots.pending import Pending
from ..storage.record import Event, Record
from ..storage.trial import Trial
from .lessons import Lessons

Goal = Literal["maximize", "minimize"]
GOALS: tuple[Goal, Goal] = ("maximize", "minimize")
PLAIN: tuple[Goal, ...] = ("maximize",)  # Trials are as the state sees them.
LIKE = 0.4  # Similarity from which a misspelt goal is suggested: "min" has 0.55.

AnyPolicy = Policy | ScriptedPolicy
AnyState = State | ScriptedState
MOST_KEPT = 100  # Results of a study that are kept until its next event.
R = TypeVar("R")


@final
class Version:
    """A study between two events, with what was computed of it.

    Attributes:
        state: one that has learned all outcomes, or None before somebody asks for it.
    """

    def __init__(self) -> None:
        self.state: AnyState | None = None
        self._kept: dict[Any, Any] = {}

    def of(self, key: Any, make: Callable[[], R]) -> R:
        """Returns what a function computes, computed once."""
        found = self._kept.get(key, self)
        if found is self:
            found = make()
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = found
        return cast(R, found)


def check_policy(policy: object) -> None:
    """Raises `InvalidInput` unless an algorithm made the policy."""
    if not isinstance(policy, Policy | ScriptedPolicy):
        raise InvalidInput(
            f"`policy` must be made by an algorithm, not {shown(policy)}.", advice="Such as `gp_ucb(...)`."
        )


def goals_of(policy: AnyPolicy, goal: Any) -> tuple[Goal, ...]:
    """Returns the goal of each objective of a study, or raises an error.

    Args:
        policy: with the number of objectives, and their goals if it has some.
        goal: a word for all objectives, or a word for each.
    """
    count, known = policy.objective_count, _known_goals(policy)
    if isinstance(goal, dict):
        order = ", ".join(policy.objective_names)
        raise InvalidInput(
            f"`goal` is {shown(goal)}: pass a word for all objectives, or a tuple in their order ({order})."
        )
    if isinstance(goal, tuple | list) and (count > 1 or len(goal) > 1):
        if len(goal) != count:
            raise InvalidInput(
                f"`goal` has {many(len(goal), 'entry')}, and the policy has {many(count, 'objective')}: give each one.",
                advice="Make the policy with `nr.auto(space, objectives=...)`." if count == 1 else "",
            )
        found = tuple(check_goal(each) for each in goal)
    else:
        found = (check_goal(goal),) * count
        found = known if known is not None and goal == GOALS[0] else found
    if known is not None and known != found:
        raise InvalidInput(
            f"`goal` is {shown(goal)}, and the objectives of the policy have the goals {known!r}. A study on "
            "record keeps its goals: another `name` begins a new one."
        )
    return found


def _known_goals(policy: AnyPolicy) -> tuple[Goal, ...] | None:
    rule = policy.constraints if isinstance(policy, Policy) else None
    return None if rule is None else cast(tuple[Goal, ...] | None, rule.goals)


def goals_in(policy: AnyPolicy, first: Goal) -> tuple[Goal, ...]:
    """Returns the goal of each objective of a policy, of which `first` is the first one."""
    return (first,) if policy.objective_count == 1 else _known_goals(policy) or (first,) * policy.objective_count


def signs_of(goals: Iterable[str]) -> Array:
    """Returns 1.0 for each objective that is maximised and -1.0 for each that is minimised, `(k,)`."""
    return np.array([1.0 if goal == "maximize" else -1.0 for goal in goals])


def check_one_objective(policy: AnyPolicy, asked: str) -> None:
    """Raises `TrialError` if a policy has several objectives, of which no trial is the best.

    Args:
        policy: of the study.
        asked: name of the method that was called.
    """
    if policy.objective_count > 1:
        raise TrialError(
            f"`{asked}` is for one objective, and this study has {policy.objective_count} "
            f"({', '.join(policy.objective_names)}): no single trial is best in all.",
            advice="`front()` returns the trials that no other one beats; `best(weights=...)` picks one of them.",
            topic="front",
        )


def as_given(goals: tuple[Goal, ...]) -> Goal | tuple[Goal, ...]:
    """Returns the goals as a study takes them: a word, or a tuple with one for each of several objectives."""
    return goals[0] if len(goals) == 1 else goals


def with_goals(policy: AnyPolicy, goals: tuple[Goal, ...]) -> AnyPolicy:
    """Returns the policy of a study, whose rule of several objectives knows their goals."""
    if len(goals) == 1 or not isinstance(policy, Policy) or policy.constraints is None:
        return policy
    return replace(policy, constraints=policy.constraints.with_goals(goals))


def check_goal(goal: object) -> Goal:
    """Returns the goal, or raises an error with the goal that was probably meant."""
    for known in GOALS:
        if isinstance(goal, str) and goal == known:
            return known
    close = difflib.get_close_matches(str(goal).strip().lower(), GOALS, n=1, cutoff=LIKE)
    hint = f" Did you mean {close[0]!r}?" if isinstance(goal, str) and close else ""
    raise InvalidInput(f"`goal` is {shown(goal)}: it must be 'maximize' or 'minimize', what is told.{hint}")


def has_channels(policy: AnyPolicy) -> bool:
    """Returns whether each constraint has a posterior of its own."""
    return isinstance(policy, Policy) and policy.constraints is not None


def setting_of(policy: AnyPolicy) -> Fidelity | None:
    """Returns the setting that a policy chooses, or None."""
    return policy.fidelity if isinstance(policy, Policy) else None


def on_average(policy: AnyPolicy) -> bool:
    """Returns whether constraints hold on average, like a budget: then no single round violates one."""
    if not isinstance(policy, Policy):
        return policy.constraint_count > 0
    constraints = policy.constraints
    return (constraints is not None and constraints.on_average) or policy.objective.constraints > 0


def best_label(goal: Goal) -> str:
    """Returns the name of the best value told, which may be of another trial than the best posterior mean."""
    return "highest told" if goal == "maximize" else "lowest told"


def reward_check(policy: AnyPolicy, goal: Goal) -> Callable[[float], None] | None:
    """Returns a function that raises `InvalidInput` if the policy cannot learn from a value in the units told.

    Most policies learn from every number. For them the function is None, since every answer is checked.
    """
    if not isinstance(policy, Policy):
        return None
    pending, objective = policy.pending, policy.objective
    late, known = type(pending), type(objective)
    ours = (late.check_reward, late.check_loss, known.check_told)
    if ours == (Pending.check_reward, Pending.check_loss, Objective.check_told):
        return None
    check_pending = pending.check_reward if goal == "maximize" else pending.check_loss

    def check(value: float) -> None:
        check_pending(value, policy.noise)
        objective.check_told(value)

    return check


def state_after(
    policy: AnyPolicy, goal: Goal, trials: Iterable[Trial] = (), *, seed: int, late: LateFits | None = None
) -> AnyState:
    """Returns the state of a policy after trials, as if corrected answers had come first.

    The fits on record with the trials are in force. None is made for a round that was decided.

    Args:
        policy: in the units told.
        goal: of the study, of the first of several objectives.
        trials: all trials by number, in the units told.
        seed: of the study.
        late: fits that are made apart from decisions. None if a decision makes the fit that is due.
    """
    known = [trial.as_corrected() for trial in trials]
    events = Lessons(policy, goal).of(Record().apply(known), known)
    state: AnyState = (
        State(policy_of_rewards(policy, goal), seed=seed, late=late)
        if isinstance(policy, Policy)
        else ScriptedState(policy, seed=seed)
    )
    goals = goals_in(policy, goal)
    state.receive(events if goals == PLAIN else as_rewards(events, goals))
    return state


def as_learned(
    events: Sequence[Event], lessons: Lessons, record: Sequence[Trial], spaces: Any, goals: tuple[Goal, ...]
) -> Sequence[Event]:
    """Returns new events of a study as its state learns from them: in the space of now, and in rewards.

    Args:
        events: in order, as they are on record.
        lessons: what events teach.
        record: all trials.
        spaces: the spaces of the study (`nilregret.study.spaces.Spaces`), or None if there was one.
        goals: of the study.
    """
    if lessons.slates is not None:
        events = lessons.of(events, record)
    if spaces is not None:
        events = [Event(order, kind, spaces.moved(trial)) for order, kind, trial in events]
    if lessons.slates is None and any(event.kind == "stopped" for event in events):
        events = lessons.of(events, record if spaces is None else [spaces.moved(trial) for trial in record])
    return events if goals == PLAIN else as_rewards(events, goals)


def policy_of_rewards(policy: Policy, goal: Goal) -> Policy:
    """Returns the policy of rewards for a policy in the units told."""
    rule = policy.constraints
    if rule is not None and rule.objectives > 1:
        policy = replace(policy, constraints=rule.turned())
    if goal == "maximize":
        return policy
    pending, objective = policy.pending.turned(), policy.objective.turned()
    guards = policy.guards and tuple(guard.turned() for guard in policy.guards)
    return replace(policy, prior_mean=negated(policy.prior_mean), pending=pending, objective=objective, guards=guards)


def negated(value: float) -> float:
    """Returns minus a number, and 0.0 for 0.0."""
    return 0.0 - value


def as_rewards(events: Iterable[Event], goals: tuple[Goal, ...]) -> list[Event]:
    """Returns the events of a study with rewards that are maximised (see `reward_trial`)."""
    return [Event(order, kind, reward_trial(trial, goals)) for order, kind, trial in events]


def reward_trial(trial: Trial, goals: tuple[Goal, ...]) -> Trial:
    """Returns a trial as the state of a policy sees it: each output is maximised, or a constraint.

    Minus a loss is the reward. The values of further objectives stand before those of the constraints.
    """
    if trial.reward is None:
        return trial
    reward = trial.reward if goals[0] == "maximize" else negated(trial.reward)
    if len(goals) == 1:
        return trial._replace(reward=reward)
    others = [
        other.value if goal == "maximize" else negated(other.value)
        for other, goal in zip(trial.others, goals[1:], strict=True)
    ]
    limits = [] if trial.constraints is None else trial.constraints.tolist()
    return trial._replace(reward=reward, constraints=frozen(np.array([*others, *limits])))


def told_envelope(found: Envelope, goal: Goal) -> Envelope:
    """Returns bounds of the reward in the units told: the lower bound of the loss is minus the upper of the reward."""
    if goal == "maximize":
        return found
    if found.width is not None:
        return Envelope(0.0 - found.mean, found.std, found.width, found.valid_for)
    return Envelope(
        0.0 - found.mean, found.std, None, found.valid_for, lower=0.0 - found.upper, upper=0.0 - found.lower
    )


def copy_of_state(state: AnyState) -> State | None:
    """Returns an independent copy of a state, or None for a script, which has to be replayed."""
    return state.copy() if isinstance(state, State) else None


def paid_by(policy: AnyPolicy) -> str | None:
    """Returns the name of the metric by which a policy divides improvements (`nilregret.slots.PerCost`), or None."""
    return policy.score.cost if isinstance(policy, Policy) else None
