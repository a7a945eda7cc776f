"""The state of a policy on an Optuna study, cached and brought up to date with the finished trials.

If earlier trials have changed, the state is computed anew from the last saved state before the change.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, cast, final

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from .._utils.checks import LARGEST_REWARD, Array, frozen, many, number, shown
from ..domains.domain import Arms
from ..errors import InvalidInput
from ..policy.decide import Pinned
from ..policy.engines import Decision
from ..policy.policy import Policy
from ..policy.state import State
from ..policy.trained_posterior import refuse_std
from ..storage.record import Event, Trial
from ..storage.trial import Other
from ..study.direction import Goal, policy_of_rewards, reward_trial, with_goals
from .distributions import Translation

APART, SAVED = 32, 3  # finished trials between saved states, and the number of saved states
STD = "nilregret:std"  # user attribute of a trial with the standard deviation of the noise of its value


class TrialKey(NamedTuple):
    """The identity of a finished trial, sorted by the time of its end. Different studies do not share keys."""

    ended: float  # Unix seconds
    number: int
    state: TrialState
    values: tuple[float, ...]


def trial_key(trial: FrozenTrial) -> TrialKey:
    """Returns the key of a finished trial."""
    ended = trial.datetime_complete
    return TrialKey(ended.timestamp() if ended else 0.0, trial.number, trial.state, tuple(trial.values or ()))


class Running(NamedTuple):
    """A running trial with its known values."""

    trial: FrozenTrial
    values: Mapping[str, Any]


class OptunaHistory(NamedTuple):
    """The other trials of a study when a trial begins.

    Attributes:
        finished: finished trials in the order of their ends.
        keys: keys of the finished trials.
        running: running trials by number.
    """

    finished: Sequence[FrozenTrial]
    keys: list[TrialKey]
    running: Sequence[Running]


@dataclass
class _Position:
    """A state of the policy, and its position in the record.

    Attributes:
        state: the state after these trials.
        read: number of finished trials that were read.
        order: order of the last event.
        rounds: number of rounds so far, which is one more than the round of the last trial.
    """

    state: State
    read: int = 0
    order: int = 0
    rounds: int = 0

    def copy(self) -> _Position:
        return _Position(self.state.copy(), self.read, self.order, self.rounds)


@final
class OptunaState:
    """The state of a policy after the finished trials of an Optuna study, and its decisions.

    A finished trial counts as asked and answered at its end, in the order of the ends. Running trials count as pending,
    in the order of their numbers. A decision therefore depends only on the seed, the number of the trial and the
    record, in every process. The state is updated with new trials and not computed anew.

    Args:
        policy: the policy, in the units of the study.
        translation: translation between values of trials and the domain of the policy.
        goals: goal of each objective of the study.
        seed: seed of the random choices of the policy.
        constraints: names of the constraints in the order of the policy.
        explored: returns True for a trial that was a forced uniform round.
    """

    def __init__(
        self,
        policy: Policy,
        translation: Translation,
        *,
        goals: tuple[Goal, ...],
        seed: int,
        constraints: tuple[str, ...],
        explored: Callable[[FrozenTrial], bool],
    ) -> None:
        self.policy, self.translation = policy, translation
        rewards = policy_of_rewards(cast(Policy, with_goals(policy, goals)), goals[0])
        self._goals = goals
        self._begin: Callable[[], State] = lambda: State(rewards, seed=seed)
        self._seed, self._constraints, self._explored = seed, constraints, explored
        self._keys: list[TrialKey] = []
        self._points: list[Array | None] = []  # points of the finished trials
        self._first = 0  # number of the trial of round 0
        self._now = _Position(self._begin())
        self._saved: deque[_Position] = deque(maxlen=SAVED)
        self._before: _Position | None = None  # the position before the decision of round `_decided`
        self._decided = 0

    def decide(self, number: int, history: OptunaHistory, *, now: float, fixed: Mapping[str, Any]) -> Decision:
        """Returns the decision for a trial.

        Args:
            number: number of the trial.
            history: the other trials.
            now: start of the trial in Unix seconds.
            fixed: values of the trial that are fixed already.
        """
        pending = [
            (trial, frozen(point))
            for trial, values in history.running
            if (point := self.translation.point(values)) is not None
        ]
        self._read_history(history, [number, *(trial.number for trial, _ in pending)])
        at = number - self._first
        self._add_finished(history.finished, [*(trial.number - self._first for trial, _ in pending), at])
        columns = self.translation.fixed(fixed)
        position = self._now
        if pending or position.rounds != at:
            position = position.copy()
            position.state.receive([self._asked_event(position, trial, point) for trial, point in pending])
            position.state.turn_to(at)
        elif self._before is None:
            self._before, self._decided = position.copy(), at
        if columns:
            with suppress(InvalidInput):  # If no point has these values, Optuna takes them all the same.
                return position.state.fill(Pinned.of(self.translation.space, columns), now=now)
        return position.state.decide(now=now)

    # -- following the record ------------------------------------------------------------------------------------

    def _read_history(self, history: OptunaHistory, waiting: list[int]) -> None:
        """Reads the history, and goes back to a saved state if earlier trials have changed."""
        same = len(self._keys)
        if history.keys[:same] != self._keys:
            both = zip(self._keys, history.keys, strict=False)
            same = next((i for i, (then, now) in enumerate(both) if then != now), min(same, len(history.keys)))
            self._go_back(same)
        self._points[same:] = [self.translation.point(trial.params) for trial in history.finished[same:]]
        self._keys = history.keys
        members = (trial.number for trial, at in zip(history.finished, self._points, strict=True) if at is not None)
        first = min([*members, *waiting])
        if first != self._first:
            self._first = first
            self._go_back(0)

    def _go_back(self, read: int) -> None:
        """Goes back to the last saved state with at most the first `read` finished trials."""
        while self._saved and self._saved[-1].read > read:
            self._saved.pop()
        if self._now.read > read:
            self._now, self._before = self._saved[-1].copy() if self._saved else _Position(self._begin()), None

    def _add_finished(self, finished: Sequence[FrozenTrial], waiting: list[int]) -> None:
        """Adds all new finished trials to the state, before the waiting rounds are decided."""
        told = [trial.number - self._first for trial, at in self._new(finished) if at is not None]
        if self._before is not None and (told or self._decided != waiting[0]):
            # The state after a decision stays valid if the next trial is of the same round.
            self._now = self._now if [*told, *waiting][0] == self._decided else self._before
            self._before = None
        now = self._now
        if len(finished) - now.read > APART:  # Trials added at once need only the last of the fits that are due.
            self._add_until(finished, len(finished) - APART // 2)
        if now.read - (self._saved[-1].read if self._saved else 0) >= APART:
            self._saved.append(now.copy())
        self._add_until(finished, len(finished))

    def _add_until(self, finished: Sequence[FrozenTrial], end: int) -> None:
        """Adds the finished trials up to an index to the state."""
        position, events = self._now, []
        for trial, point in self._new(finished)[: end - position.read]:
            if point is not None:
                asked = self._asked_event(position, trial, frozen(point))
                events += [asked, self._told_event(position, asked.trial, trial)]
                position.rounds = max(position.rounds, asked.trial.number + 1)
        position.read = end
        position.state.receive(events)

    def _new(self, finished: Sequence[FrozenTrial]) -> list[tuple[FrozenTrial, Array | None]]:
        read = self._now.read
        return list(zip(finished[read:], self._points[read:], strict=True))

    def _asked_event(self, position: _Position, trial: FrozenTrial, point: Array) -> Event:
        position.order += 1
        domain = self.translation.domain
        arm = int(domain.index(point[None])[0]) if isinstance(domain, Arms) else None
        asked_at = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
        asked = Trial(
            trial.number - self._first, point, arm, None, position.order, asked_at, None, self._explored(trial)
        )  # fmt: skip
        return Event(position.order, "asked", asked)

    def _told_event(self, position: _Position, asked: Trial, trial: FrozenTrial) -> Event:
        position.order += 1
        time = trial.datetime_complete.timestamp() if trial.datetime_complete else asked.asked_at
        values = outcome(trial)
        if isinstance(values, str):
            return Event(position.order, "told", asked.failed(reason=values, order=position.order, time=time))
        limits = constraint_values(trial, self._constraints)
        stds = stds_of(trial, len(values))
        if any(std is not None for std in stds):
            refuse_std(self.policy, stds)
        told = asked.answered(
            reward=values[0], constraints=limits, order=position.order, time=time, std=stds[0],
            others=tuple(map(Other, values[1:], stds[1:])),
        )  # fmt: skip
        return Event(position.order, "told", reward_trial(told, self._goals))


def goals_in(study: Study) -> tuple[Goal, ...]:
    """Returns the goal of each objective of a study."""
    return tuple("maximize" if each == StudyDirection.MAXIMIZE else "minimize" for each in study.directions)


def check_objectives(policy: Policy, wanted: int) -> None:
    """Raises `InvalidInput` if a policy has not as many objectives as a study."""
    if policy.objective_count != wanted:
        raise InvalidInput(
            f"This study has {many(wanted, 'objective')}, and the policy has {policy.objective_count}: make it with "
            f"`objectives={wanted}`, such as nr.auto(space, objectives={wanted}), or leave `policy` out."
        )


def outcome(trial: FrozenTrial) -> tuple[float, ...] | str:
    """Returns the values of a finished trial, one for each objective, or a text that says why there are none.

    The value of a pruned trial is its last intermediate value, as in Optuna.
    """
    if trial.state == TrialState.FAIL or not trial.values:
        return "it failed" if trial.state == TrialState.FAIL else "it was pruned before any value"
    for value in trial.values:
        if not math.isfinite(value) or abs(value) > LARGEST_REWARD:
            return f"its value is {value:g}"
    return tuple(map(float, trial.values))


def stds_of(trial: FrozenTrial, count: int) -> list[float | None]:
    """Returns the standard deviation of the noise of each value, which the user attribute `STD` holds, or None.

    Of several objectives the attribute is a list, with None where nothing is known.
    """
    told, of = trial.user_attrs.get(STD), f"It is of trial {trial.number}."
    each = [told] * count if told is None else told if count > 1 else [told]
    if not isinstance(each, list | tuple) or len(each) != count:
        raise InvalidInput(f"`{STD}` is {shown(told)}: it must be a list of {many(count, 'number')}. {of}")
    return [None if std is None else number(STD, std, low=0.0, high=LARGEST_REWARD, why=of) for std in each]


def constraint_values(trial: FrozenTrial, names: tuple[str, ...]) -> Array | None:
    """Returns the constraint values, `(m,)`, or None if the trial lacks a value."""
    values = trial.constraints if names else {}
    if not names or not all(name in values for name in names):
        return None
    return frozen(np.clip([float(values[name]) for name in names], -LARGEST_REWARD, LARGEST_REWARD))


CHANGES = 3  # If a range has changed more often, the space takes the hull of all its ranges, else the last one.


@final
class ObservedSpace:
    """The parameters of the completed trials, with their ranges and the groups in which they occur together.

    The space depends only on the trials, in the order in which they were completed.

    Attributes:
        constraints: names of all constraints in the trials.
    """

    def __init__(self) -> None:
        self.constraints: set[str] = set()
        self._groups: list[set[str]] = []
        self._last: dict[str, BaseDistribution] = {}
        self._hull: dict[str, BaseDistribution | None] = {}
        self._changes: dict[str, int] = {}

    def observe(self, trial: FrozenTrial) -> None:
        """Adds a completed trial."""
        self.constraints |= set(trial.constraints)
        self._split(set(trial.distributions))
        for name, distribution in trial.distributions.items():
            last = self._last.get(name)
            if last is None:
                self._hull[name] = distribution
            elif last != distribution:
                self._changes[name] = self._changes.get(name, 0) + 1
                known = self._hull[name]
                self._hull[name] = None if known is None else hull(known, distribution)
            self._last[name] = distribution

    def _split(self, names: set[str]) -> None:
        """Splits the groups so that each trial has all or none of a group, as Optuna's `TPESampler` does."""
        parts: list[set[str]] = []
        for group in self._groups:
            parts += [group & names, group - names]
            names = names - group
        self._groups = [part for part in (*parts, names) if part]

    @property
    def space(self) -> dict[str, BaseDistribution]:
        """Distributions by name that can be decided before a trial begins: those with known ends and several values."""
        found = {name: self._range(name) for name in sorted(self._last)}
        return {name: each for name, each in found.items() if each is not None and not each.single()}

    def _range(self, name: str) -> BaseDistribution | None:
        return self._last[name] if self._changes.get(name, 0) <= CHANGES else self._hull[name]

    def groups(self, names: Collection[str]) -> list[list[str]]:
        """Returns the names in sorted groups that are decided together. Unknown names are one group."""
        parts = [sorted(group & set(names)) for group in self._groups]
        unknown = sorted(set(names) - set(self._last))
        return sorted(part for part in (*parts, unknown) if part)


def hull(one: BaseDistribution, other: BaseDistribution) -> BaseDistribution | None:
    """Returns the smallest range that contains both, or None if their values lie on different grids."""
    if isinstance(one, FloatDistribution) and isinstance(other, FloatDistribution) and one.step == other.step:
        low, high = min(one.low, other.low), max(one.high, other.high)
        if one.step is not None and not _whole((one.low - other.low) / one.step):
            return None
        return FloatDistribution(low, high, log=one.log, step=one.step)
    if isinstance(one, IntDistribution) and isinstance(other, IntDistribution) and one.step == other.step:
        if (one.low - other.low) % one.step:
            return None
        return IntDistribution(min(one.low, other.low), max(one.high, other.high), log=one.log, step=one.step)
    return None


def _whole(steps: float) -> bool:
    return abs(steps - round(steps)) < 1e-6  # steps
