"""What a policy knows of an Optuna study: a cached state that follows the record and is thrown away on any doubt."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from .._utils.checks import LARGEST_REWARD, Array, frozen
from ..domains.domain import Arms
from ..domains.search.designs import design
from ..policy.availability import Available
from ..policy.engines import Decision
from ..policy.policy import Policy
from ..policy.state import State
from ..storage.record import Event, Trial
from ..study.direction import Goal, policy_of_rewards
from .distributions import Translation

APART, KEPT = 32, 3  # finished trials from one saved state to the next, and how many states are kept
CANDIDATES = 1024  # points to choose from where some parameters are fixed beforehand
BESIDE_FIXED = 9  # a key of the seed: those points have a stream of their own


class Mark(NamedTuple):
    """How a finished trial is recognised; no two studies agree in it by chance. In the order in which trials ended."""

    ended: float  # Unix seconds
    number: int
    state: TrialState
    values: tuple[float, ...]


def mark(trial: FrozenTrial) -> Mark:
    """Of a finished trial."""
    ended = trial.datetime_complete
    return Mark(ended.timestamp() if ended else 0.0, trial.number, trial.state, tuple(trial.values or ()))


class Running(NamedTuple):
    """A trial that is under way, with the values that are known of it."""

    trial: FrozenTrial
    values: Mapping[str, Any]


class OptunaHistory(NamedTuple):
    """What a study shows when a trial begins.

    Attributes:
        finished: trials in the order of their ends.
        marks: theirs.
        running: other trials that are under way, by number.
    """

    finished: Sequence[FrozenTrial]
    marks: list[Mark]
    running: Sequence[Running]


@dataclass
class _Stand:
    """A state, and how far in the record it is.

    Attributes:
        state: after these trials.
        read: finished trials that were looked at.
        order: of the last event.
        rounds: that have passed: the round of the last trial, and one.
    """

    state: State
    read: int = 0
    order: int = 0
    rounds: int = 0

    def copy(self) -> _Stand:
        return _Stand(self.state.copy(), self.read, self.order, self.rounds)


@final
class Follower:
    """One policy on a study: its state after the finished trials, and its decisions.

    Finished trials count in the order of their ends, each as asked and answered then; running ones as pending, in the
    order of their numbers. So a decision is a function of the seed, the trial's number and what the record shows,
    whichever process makes it; and the state goes on with the record without being made anew.

    Args:
        policy: in the study's units.
        translation: between the trials' values and the policy's domain.
        goal: of the study.
        seed: of the policy's random choices.
        constraints: names of the channels, in their order.
        explored: whether a trial was a forced uniform round.
    """

    def __init__(
        self,
        policy: Policy,
        translation: Translation,
        *,
        goal: Goal,
        seed: int,
        constraints: tuple[str, ...],
        explored: Callable[[FrozenTrial], bool],
    ) -> None:
        self.policy, self.translation = policy, translation
        self._sign = 1.0 if goal == "maximize" else -1.0
        self._begin: Callable[[], State] = lambda: State(policy_of_rewards(policy, goal), seed=seed, recorded=False)
        self._seed, self._constraints, self._explored = seed, constraints, explored
        self._marks: list[Mark] = []
        self._points: list[Array | None] = []  # of the finished trials
        self._first = 0  # number of the trial that is round 0
        self._now = _Stand(self._begin())
        self._saved: deque[_Stand] = deque(maxlen=KEPT)
        self._before: _Stand | None = None  # as it was before it decided, for round `_decided`
        self._decided = 0

    def decide(self, number: int, seen: OptunaHistory, *, now: float, fixed: Mapping[str, Any]) -> Decision:
        """The point of a trial.

        Args:
            number: of the trial.
            seen: the other trials.
            now: when it began, Unix seconds.
            fixed: values that it will have in any case.
        """
        pending = [
            (trial, frozen(point))
            for trial, values in seen.running
            if (point := self.translation.point(values)) is not None
        ]
        self._follow(seen, [number, *(trial.number for trial, _ in pending)])
        at = number - self._first
        self._catch_up(seen.finished, [*(trial.number - self._first for trial, _ in pending), at])
        columns = self.translation.fixed(fixed)
        available = self._beside(columns, number) if columns else None
        stand = self._now
        if pending or stand.rounds != at:
            stand = stand.copy()
            stand.state.receive([self._asked(stand, trial, point) for trial, point in pending])
            stand.state.turn_to(at)
        elif self._before is None:
            self._before, self._decided = stand.copy(), at
        return stand.state.decide(now=now, available=available)

    # -- following the record ------------------------------------------------------------------------------------

    def _follow(self, seen: OptunaHistory, waiting: list[int]) -> None:
        """Take in what has finished since; where the past has become another one, go back to before that."""
        same = len(self._marks)
        if seen.marks[:same] != self._marks:
            both = zip(self._marks, seen.marks, strict=False)
            same = next((i for i, (then, now) in enumerate(both) if then != now), min(same, len(seen.marks)))
            self._back(same)
        self._points[same:] = [self.translation.point(trial.params) for trial in seen.finished[same:]]
        self._marks = seen.marks
        members = (trial.number for trial, at in zip(seen.finished, self._points, strict=True) if at is not None)
        first = min([*members, *waiting])
        if first != self._first:
            self._first = first
            self._back(0)

    def _back(self, read: int) -> None:
        """To the last state that was saved before anything but the first `read` finished trials."""
        while self._saved and self._saved[-1].read > read:
            self._saved.pop()
        if self._now.read > read:
            self._now, self._before = self._saved[-1].copy() if self._saved else _Stand(self._begin()), None

    def _catch_up(self, finished: Sequence[FrozenTrial], waiting: list[int]) -> None:
        """Take in the rest, before the rounds that wait."""
        told = [trial.number - self._first for trial, at in self._new(finished) if at is not None]
        if self._before is not None and (told or self._decided != waiting[0]):
            # A decision settles the state as the next question will, if it is the one of that round.
            self._now = self._now if [*told, *waiting][0] == self._decided else self._before
            self._before = None
        now = self._now
        if len(finished) - now.read > APART:  # at once: of the fits that are due only the last is made
            self._feed(finished, len(finished) - APART // 2)
        if now.read - (self._saved[-1].read if self._saved else 0) >= APART:
            self._saved.append(now.copy())
        self._feed(finished, len(finished))

    def _feed(self, finished: Sequence[FrozenTrial], end: int) -> None:
        """Take in the finished trials up to this one."""
        stand, events = self._now, []
        for trial, point in self._new(finished)[: end - stand.read]:
            if point is not None:
                asked = self._asked(stand, trial, frozen(point))
                events += [asked, self._told(stand, asked.trial, trial)]
                stand.rounds = max(stand.rounds, asked.trial.number + 1)
        stand.read = end
        stand.state.receive(events)

    def _new(self, finished: Sequence[FrozenTrial]) -> list[tuple[FrozenTrial, Array | None]]:
        read = self._now.read
        return list(zip(finished[read:], self._points[read:], strict=True))

    def _asked(self, stand: _Stand, trial: FrozenTrial, point: Array) -> Event:
        stand.order += 1
        domain = self.translation.domain
        arm = int(domain.index(point[None])[0]) if isinstance(domain, Arms) else None
        asked_at = trial.datetime_start.timestamp() if trial.datetime_start else 0.0
        asked = Trial(
            trial.number - self._first, point, arm, None, stand.order, asked_at, None, self._explored(trial)
        )  # fmt: skip
        return Event(stand.order, "asked", asked)

    def _told(self, stand: _Stand, asked: Trial, trial: FrozenTrial) -> Event:
        stand.order += 1
        time = trial.datetime_complete.timestamp() if trial.datetime_complete else asked.asked_at
        value = outcome(trial)
        if isinstance(value, str):
            return Event(stand.order, "told", asked.failed(reason=value, order=stand.order, time=time))
        limits = channels(trial, self._constraints)
        told = asked.answered(reward=self._sign * value, constraints=limits, order=stand.order, time=time)
        return Event(stand.order, "told", told)

    # -- deciding ------------------------------------------------------------------------------------------------

    def _beside(self, fixed: Mapping[str, list[float]], number: int) -> Available | None:
        """What may be played beside parameters that are fixed; None for everything, where that leaves nothing."""
        domain, space = self.translation.domain, self.translation.space
        ends = dict(zip(space.parameters, (columns for _, columns in space.columns()), strict=True))
        if isinstance(domain, Arms):
            same = [np.isclose(domain.points[:, ends[name]], fixed[name]).all(axis=1) for name in fixed]
            arms = np.flatnonzero(np.logical_and.reduce(same))
            return Available(frozen(domain.points[arms]), arms) if len(arms) else None
        points = design(space, CANDIDATES, np.random.default_rng([self._seed, BESIDE_FIXED, number]))
        for name, columns in fixed.items():
            points[:, ends[name]] = columns
        return Available(frozen(np.unique(space.snap(points), axis=0)), None)


def outcome(trial: FrozenTrial) -> float | str:
    """The value of a finished trial, or in words why it has none that can be learned from.

    Of a pruned one it is the last intermediate value, which Optuna makes its value.
    """
    if trial.state == TrialState.FAIL or not trial.values:
        return "it failed" if trial.state == TrialState.FAIL else "it was pruned before any value"
    (value,) = trial.values
    if not math.isfinite(value) or abs(value) > LARGEST_REWARD:
        return f"its value is {value:g}"
    return float(value)


def channels(trial: FrozenTrial, names: tuple[str, ...]) -> Array | None:
    """Values of the constraints, `(m,)`; None where the trial lacks one of them."""
    values = trial.constraints if names else {}
    if not names or not all(name in values for name in names):
        return None
    return frozen(np.clip([float(values[name]) for name in names], -LARGEST_REWARD, LARGEST_REWARD))
