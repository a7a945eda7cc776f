"""Studies that minimise: everything inside maximises, and here the sign is turned, once.

A user of a study that minimises gives and sees losses. What decides sees rewards, which are minus the losses: a study
that minimises f is, bit for bit, the one that maximises -f. Of the numbers in the units of the reward those change sign
that are places (a reward, a mean, a bound, a prior mean, what a silent trial counts as); widths, deviations, norm
bounds and the prices of violations are distances, and stay.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal, final

from .._utils.checks import Array, shown
from .._utils.errors import InvalidInput
from ..policy.availability import Available
from ..policy.engines import Decision
from ..policy.policy import Policy
from ..policy.scripted import ScriptedPolicy, ScriptedState
from ..policy.state import State
from ..slots.envelope import Envelope
from ..slots.feasibility import Mask
from ..slots.lengthscales import Lengthscales
from ..slots.memory import Evidence, Restart
from ..storage.record import Event, Trial

Goal = Literal["maximize", "minimize"]
GOALS: tuple[Goal, Goal] = ("maximize", "minimize")
LIKE = 0.4  # how alike a word must be to be taken for a goal misspelt: "min" is .55

AnyPolicy = Policy | ScriptedPolicy


def check_goal(goal: object) -> Goal:
    """The goal, or an error that knows what was probably meant."""
    for known in GOALS:
        if isinstance(goal, str) and goal == known:
            return known
    close = difflib.get_close_matches(str(goal).strip().lower(), GOALS, n=1, cutoff=LIKE)
    hint = f" Did you mean {close[0]!r}?" if isinstance(goal, str) and close else ""
    raise InvalidInput(f"`goal` is {shown(goal)}: it must be 'maximize' or 'minimize', what is told.{hint}")


def has_channels(policy: AnyPolicy) -> bool:
    """Whether each constraint has a posterior of its own."""
    return isinstance(policy, Policy) and policy.constraints is not None


def on_average(policy: AnyPolicy) -> bool:
    """Whether some rounds may make up for others, as a budget has it: then no single round violates a constraint."""
    if not isinstance(policy, Policy):
        return policy.constraint_count > 0
    constraints = policy.constraints
    return (constraints is not None and constraints.on_average) or policy.objective.constraints > 0


def best_told(goal: Goal) -> str:
    """What the best of the values told is called; what the posterior says is best may be another trial."""
    return "highest told" if goal == "maximize" else "lowest told"


def check_told(policy: AnyPolicy, goal: Goal, value: float) -> None:
    """Refuse what a policy cannot be told; the error has the user's numbers."""
    if isinstance(policy, Policy):
        check = policy.pending.check_reward if goal == "maximize" else policy.pending.check_loss
        check(value, policy.noise)
        policy.objective.check_told(value)


def begun(policy: AnyPolicy, goal: Goal, *, seed: int) -> AnyState:
    """A state before any event, of a policy in the user's units."""
    if not isinstance(policy, Policy):
        state: State | ScriptedState = ScriptedState(policy, seed=seed)
    else:
        state = State(policy_of_rewards(policy, goal), seed=seed)
    return state if goal == "maximize" else NegatedState(state)


def policy_of_rewards(policy: Policy, goal: Goal) -> Policy:
    """A policy in the user's units as one of rewards."""
    if goal == "maximize":
        return policy
    pending, objective = policy.pending.turned(), policy.objective.turned()
    return replace(policy, prior_mean=turned(policy.prior_mean), pending=pending, objective=objective)


def turned(value: float) -> float:
    """A loss as a reward, a reward as a loss; 0 has no sign."""
    return 0.0 - value


@final
class NegatedState:
    """A state of rewards, seen by a study of losses: what goes in and comes out has its sign turned on the way.

    It has what `State` has that a study uses; arrays have the same shapes.
    """

    def __init__(self, state: State | ScriptedState) -> None:
        self._state = state

    def receive(self, events: Iterable[Event]) -> None:
        """Take in what happened, in order."""
        self._state.receive([Event(order, kind, _rewarded(trial)) for order, kind, trial in events])

    def decide(
        self, context: Array | None = None, *, now: float = math.inf, available: Available | None = None,
        again: Trial | None = None,
    ) -> Decision:  # fmt: skip
        """The next point."""
        return self._state.decide(context, now=now, available=available, again=again)

    def settled(self) -> NegatedState:
        """A state in which nothing waits, to look at."""
        return NegatedState(self._state.settled())

    def envelope(self, points: Any = None, context: Array | None = None, *, now: float = math.inf) -> Envelope:
        """Bounds of the loss: the lower one is minus the upper one of the reward."""
        seen = self._state.envelope(points, context, now=now)
        if seen.width is not None:
            return Envelope(0.0 - seen.mean, seen.std, seen.width, seen.valid_for)
        return Envelope(0.0 - seen.mean, seen.std, None, seen.valid_for, lower=0.0 - seen.upper, upper=0.0 - seen.lower)

    def limit(self, j: int, points: Any = None, context: Array | None = None) -> Envelope:
        """Bounds of constraint j, which has the user's sign."""
        return self._state.limit(j, points, context)

    def certain(self, points: Any, context: Array | None) -> Array:
        """What is known of points satisfying all constraints, `(n,)`."""
        return self._state.certain(points, context)

    def infeasible(self, context: Array | None) -> float | None:
        """Whether no point can satisfy all constraints, and with which probability."""
        return self._state.infeasible(context)

    def inside(self, trials: list[Trial]) -> Mask | None:
        """Which answered trials satisfy all constraints in the posterior mean."""
        return self._state.inside(trials)

    def answered_means(self, trials: list[Trial]) -> Array:
        """Posterior mean of the loss at answered trials, `(n,)`."""
        return 0.0 - self._state.answered_means([_rewarded(trial) for trial in trials])

    def width(self, *, now: float = math.inf) -> float:
        """The width of the next round, which has no sign."""
        return self._state.width(now=now)

    @property
    def minimum(self) -> float | None:
        """What unanswered trials count as: the largest loss; None where they are not censored."""
        least = self._state.minimum
        return None if least is None else turned(least)

    @property
    def multipliers(self) -> Array:
        """What violating each constraint costs, `(m,)`."""
        return self._state.multipliers

    @property
    def proved(self) -> str:
        """What the bounds of all channels are proved for."""
        return self._state.proved

    @property
    def remarks(self) -> Mapping[str, str]:
        """What whoever asks should know."""
        return self._state.remarks

    @property
    def saturated(self) -> bool:
        """Whether a multiplier or a penalty has been cut off."""
        return self._state.saturated

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """Guesses of the norm bound; the norm of -f is that of f."""
        return self._state.norm_bounds

    @property
    def lengthscales(self) -> Lengthscales | None:
        """What is believed of the lengthscales."""
        return self._state.lengthscales

    @property
    def restarts(self) -> list[Restart]:
        """Every cut of the memory so far."""
        return self._state.restarts

    @property
    def evidence(self) -> Evidence | None:
        """How much spoke for a change; nothing in it has a sign."""
        return self._state.evidence

    @property
    def information_gain(self) -> float:
        """Realised information gain, nats."""
        return self._state.information_gain


AnyState = State | ScriptedState | NegatedState


def of_rewards(state: AnyState) -> State | ScriptedState:
    """The state that decides, which sees rewards."""
    return state._state if isinstance(state, NegatedState) else state


def copied(state: AnyState) -> AnyState | None:
    """An independent state after the same events; None of a script, which has to be played again."""
    inner = of_rewards(state)
    if not isinstance(inner, State):
        return None
    return NegatedState(inner.copy()) if isinstance(state, NegatedState) else inner.copy()


def _rewarded(trial: Trial) -> Trial:
    """A trial of a study that minimises, as what decides sees it."""
    return trial if trial.reward is None else trial._replace(reward=turned(trial.reward))
