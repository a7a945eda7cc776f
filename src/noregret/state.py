"""What a policy knows after a record: the only place where the parts of a policy meet.

A `State` is a cache, rebuilt by replay and never stored: a pure function of (policy, seed, events so far).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from .checks import Array
from .engines import Decision, Engine, Question, Setting, make_engine, row_of, table
from .fitting import Standardization
from .information import GreedyDesign
from .kernels import Kernel
from .parts.confidence import Bounds, Envelope, Progress
from .parts.memory import Discount, Forever, Restart, RestartOnChange, SlidingWindow
from .parts.objective import Constrained, Multipliers, averages
from .parts.pending import Censored, Hallucinated, Ignored
from .parts.refit import Refitted
from .parts.rkhs import NormGuess, SelfNormalized
from .policy import Policy
from .randomness import Randomness
from .record import Event, Trial

NO_MULTIPLIERS = np.zeros(0)


class State:
    """A policy after some events of a record.

    Outcomes that arrive between two decisions wait until the next one and are then taken in by trial number, so that
    the order of their arrival leaves no trace, and replaying the events repeats the same arithmetic bit for bit.
    """

    def __init__(self, policy: Policy, *, seed: int) -> None:
        self.policy = policy
        self._seed = seed
        self._rounds = 0  # trials so far
        self._since = 0  # the first trial that counts
        self._last: Array | None = None  # the point asked for most recently
        self._waiting: list[Trial] = []  # outcomes since the last decision
        self._added: list[int] = []  # trials told without having been asked for, in ascending order
        self._open: dict[int, Trial] = {}  # asked for and not answered, as far as `pending` wants to know
        self._entries: dict[int, tuple[Trial, float]] = {}  # what counts: trials and their targets, as they came in
        self._dropped: set[int] = set()  # trials whose answer came too late
        self._failed: list[Trial] = []
        self._asked: deque[Trial] = deque()  # the last trials asked for, where the width depends on them
        self._uniform: list[int] = []  # forced uniform rounds that count
        self._shown = -1  # the latest uniform round that the detector has seen
        self._restarts: list[Restart] = []
        self._ticked = 0  # rounds that have passed in a posterior that drifts
        self._least: float | None = None  # the smallest reward told
        self._best_reward: float | None = None
        self._fits: dict[tuple[int, ...], Refitted] = {}  # shared by copies: each is a pure function of its key
        self._fitted = 0  # fits that were due so far, since the last restart
        self._left = 0  # what fits would have seen and no longer counts, since the last restart
        self._last_fit = math.inf  # fits before this one are not made: another follows in the same replay
        confidence, objective, memory = policy.confidence, policy.objective, policy.memory
        self._guess = NormGuess(confidence) if isinstance(confidence, SelfNormalized) and confidence.guessed else None
        self._multipliers = Multipliers(objective) if isinstance(objective, Constrained) else None
        self._detector = memory.detector(policy.domain, policy.kernel) if isinstance(memory, RestartOnChange) else None
        self._design: GreedyDesign | None = None
        self._begin(policy.kernel, policy.regularization, Standardization(policy.prior_mean, 1.0))

    # -- what happens --------------------------------------------------------------------------------------------

    def receive(self, events: Iterable[Event]) -> None:
        """Take in what happened, in order."""
        events = list(events)
        self._plan_fits(events)
        for event in events:
            if event.kind == "asked":
                self._settle()
                self._note(event.trial)
            else:
                self._waiting.append(event.trial)
                if event.trial.asked_order == event.trial.told_order:
                    self._added.append(event.trial.number)
            self._rounds = max(self._rounds, event.trial.number + 1)
        self._last_fit = 0

    def _note(self, trial: Trial) -> None:
        """A trial has been asked for."""
        self._last = trial.point
        pending, window = self.policy.pending, self.policy.confidence.recent
        if trial.explored:
            self._uniform.append(trial.number)
        if window is not None:
            self._asked.append(trial)
            while not window.in_time and len(self._asked) > window.length:
                self._asked.popleft()
        if isinstance(pending, Ignored):
            return
        self._open[trial.number] = trial
        if isinstance(pending, Hallucinated):
            self._engine.query(trial)
        else:
            self._enter([trial], [self._censored_target()])

    def _settle(self) -> None:
        """Take in the outcomes that wait, and whatever else is due before a decision."""
        memory = self.policy.memory
        if not isinstance(memory, Forever):
            due = memory.cut(self._since, self._rounds)
            if due is not None:
                self._restart(due)
        waiting, self._waiting = self._waiting, []
        if waiting:
            waiting.sort(key=lambda trial: trial.number)
            self._take_in(waiting)
            self._look_for_changes(waiting)
        if isinstance(memory, SlidingWindow):
            self._forget_before(self._first_counted())
        if isinstance(memory, Discount):
            self._tick(self._rounds)
        if self._multipliers is not None:
            self._weigh(waiting, self._multipliers)
        if self._guess is not None and waiting:
            self._guess.check(self._rounds, self._engine.answers)
        if self.policy.refit is not None:
            self._fit()

    def _first_counted(self) -> int:
        memory = self.policy.memory
        return max(self._since, self._rounds - memory.rounds) if isinstance(memory, SlidingWindow) else self._since

    # -- outcomes ------------------------------------------------------------------------------------------------

    def _take_in(self, waiting: list[Trial]) -> None:
        """Those of the outcomes that count; where f drifts each in its own round, or as if it were of this one."""
        counted = [trial for trial in waiting if trial.number >= self._first_counted()]
        if not isinstance(self.policy.memory, Discount):
            self._take(counted)
            return
        for trial in counted:
            self._tick(trial.number)  # no tick where the answer is late: then f is taken as it has become
            self._take([trial])

    def _take(self, trials: list[Trial]) -> None:
        """Outcomes of trials that count."""
        pending, lowest = self.policy.pending, self._least
        rewards = [trial.reward for trial in trials if trial.reward is not None]
        if rewards:
            self._least = min(rewards) if self._least is None else min(*rewards, self._least)
        fresh = [entry for entry in map(self._resolve, trials) if entry is not None]
        if fresh:
            self._enter([trial for trial, _ in fresh], [target for _, target in fresh])
        for trial in trials:
            # After what was answered: a point that has been is not set aside, in whatever order.
            if trial.reward is None:
                self._failed.append(trial)
                self._set_aside(trial)
        if lowest != self._least and (self._dropped or isinstance(pending, Censored)):
            self._retarget()

    def _set_aside(self, trial: Trial) -> None:
        """A point that has only failed is not asked for again; where it was answered before, a failure is a hiccup."""
        if not any(t.reward is not None and np.array_equal(t.point, trial.point) for t, _ in self._entries.values()):
            self._engine.fail(trial)

    def _resolve(self, trial: Trial) -> tuple[Trial, float] | None:
        """The trial and its target where it is still to be learned; what was pending of it is settled."""
        pending = self.policy.pending
        opened = self._open.pop(trial.number, None) is not None
        target = self._target(trial)
        if trial.reward is None and pending.failed == "worst":
            self._dropped.add(trial.number)
            if opened and isinstance(pending, Censored):
                return None  # it counts as the worst already
            target = self._censored_target()
        elif target is None:
            if opened:
                self._close(trial)
            return None
        if isinstance(pending, Hallucinated) and not opened:
            self._engine.query(trial)
        if not (opened and isinstance(pending, Censored)):
            return trial, target
        if pending.in_time_to_count(trial, self._asked_since(trial)):
            self._revise(trial, target)
        else:
            self._dropped.add(trial.number)
        return None

    def _asked_since(self, trial: Trial) -> int:
        """How many questions have been asked after that of a trial; points told without one are none."""
        added = len(self._added) - bisect_right(self._added, trial.number)
        return self._rounds - trial.number - 1 - added

    def _enter(self, trials: list[Trial], targets: list[float]) -> None:
        self._engine.learn(trials, targets)
        for trial, target in zip(trials, targets, strict=True):
            self._entries[trial.number] = (trial, target)
            self._compare(trial)

    def _compare(self, trial: Trial) -> None:
        if trial.reward is not None and (self._best_reward is None or trial.reward > self._best_reward):
            self._best_reward = trial.reward

    def _revise(self, trial: Trial, target: float) -> None:
        self._engine.revise(trial, self._entries[trial.number][1], target)
        self._entries[trial.number] = (trial, target)
        self._compare(trial)

    def _close(self, trial: Trial) -> None:
        """A trial that was pending teaches nothing after all."""
        if isinstance(self.policy.pending, Hallucinated):
            self._engine.unquery(trial)
        else:
            self._engine.forget(trial, self._entries.pop(trial.number)[1])

    def _target(self, trial: Trial) -> float | None:
        """What an answered trial counts as, in the posterior's units; None where it teaches nothing."""
        value = self.policy.objective.target(trial, self.multipliers)
        return None if value is None else (value - self._scale.mean) / self._scale.std

    def _censored_target(self) -> float:
        return (self._censored_value() - self._scale.mean) / self._scale.std

    def _censored_value(self) -> float:
        pending = self.policy.pending
        lowest = pending.minimum if isinstance(pending, Censored) else None
        if lowest is None:
            lowest = self.policy.prior_mean if self._least is None else self._least
        return lowest

    def _retarget(self) -> None:
        """What trials count as has changed, for all of them."""
        for number, (trial, old) in self._entries.items():
            target = self._target_now(number, trial)
            if target != old:
                self._engine.revise(trial, old, target)
                self._entries[number] = (trial, target)

    def _target_now(self, number: int, trial: Trial) -> float:
        target = self._target(trial) if self._is_answer(number) else None
        return self._censored_target() if target is None else target

    # -- memory --------------------------------------------------------------------------------------------------

    def _restart(self, restart: Restart) -> None:
        """Nothing before this round counts any more."""
        self._since = restart.round
        self._restarts.append(restart)
        self._uniform = [number for number in self._uniform if number >= restart.round]
        self._open = {number: trial for number, trial in self._open.items() if number >= restart.round}
        self._entries = {number: entry for number, entry in self._entries.items() if number >= restart.round}
        self._asked = deque(trial for trial in self._asked if trial.number >= restart.round)
        self._fitted = self._left = 0
        if self._detector is not None:
            self._detector.reset()
        self._least = min((t.reward for t, _ in self._entries.values() if t.reward is not None), default=None)
        policy = self.policy
        self._begin(policy.kernel, policy.regularization, Standardization(policy.prior_mean, 1.0))

    def _begin(self, kernel: Kernel, regularization: float, scale: Standardization) -> None:
        """A new engine, which learns everything that counts."""
        policy, self._scale = self.policy, scale
        self._engine: Engine = make_engine(
            Setting(
                policy.domain,
                policy.context,
                kernel,
                regularization,
                policy.score,
                policy.search,
                hallucinate=isinstance(policy.pending, Hallucinated),
                drift=policy.memory.rate if isinstance(policy.memory, Discount) else None,
            ),
            seed=self._seed,
        )
        entries, self._entries, self._best_reward = self._entries, {}, None
        if isinstance(policy.pending, Hallucinated):
            for number in sorted(entries.keys() | self._open.keys()):
                self._engine.query(entries[number][0] if number in entries else self._open[number])
        if entries:
            trials = [trial for trial, _ in entries.values()]
            self._enter(
                trials, [self._target_now(number, trial) for number, trial in zip(entries, trials, strict=True)]
            )
        for trial in self._failed:
            if trial.number >= self._since:
                self._set_aside(trial)

    def _look_for_changes(self, trials: list[Trial]) -> None:
        """Show the detector the uniform rounds that were answered, in the order in which the answers came in."""
        if self._detector is None:
            return
        for trial in trials:
            if trial.reward is None or not trial.explored or trial.number < self._since:
                continue
            found = self._detector.add(trial.point, trial.reward - self.policy.prior_mean)
            self._shown = max(trial.number, self._shown)
            if found:
                # After the latest round of the test, which is not this one where this answer came late.
                reason = f"a change detected on the last {2 * found.half} uniform rounds"
                self._restart(Restart(self._shown + 1, reason))

    def _forget_before(self, first: int) -> None:
        gone = [number for number in self._entries if number < first]
        self._left += sum(self._seen_by_fits(number) for number in gone)
        for number in gone:
            trial, target = self._entries.pop(number)
            self._engine.forget(trial, target)
            if isinstance(self.policy.pending, Hallucinated):
                self._engine.unquery(trial)
        for number in [number for number in self._open if number < first]:
            trial = self._open.pop(number)
            if isinstance(self.policy.pending, Hallucinated):
                self._engine.unquery(trial)
        if gone and isinstance(self.policy.pending, Censored):
            self._dropped.difference_update(gone)
        self._best_reward = max((t.reward for t, _ in self._entries.values() if t.reward is not None), default=None)
        self._uniform = [number for number in self._uniform if number >= first]
        if any(trial.number < first for trial in self._failed):
            self._failed = [trial for trial in self._failed if trial.number >= first]
            self._engine.forgive()
            for trial in self._failed:
                self._set_aside(trial)

    def _tick(self, round_: int) -> None:
        """Let time pass until a round."""
        for _ in range(round_ - self._ticked):
            self._engine.tick()
        self._ticked = max(round_, self._ticked)

    # -- objective -----------------------------------------------------------------------------------------------

    def _weigh(self, waiting: list[Trial], multipliers: Multipliers) -> None:
        """Multipliers of a new epoch, and what trials count as under them."""
        objective = self.policy.objective
        for trial in waiting:
            multipliers.hear(trial)
        before = multipliers.epoch
        changed = multipliers.advance(self._rounds)
        if isinstance(objective, Constrained) and objective.fresh and multipliers.epoch != before:
            self._restart(Restart(multipliers.epoch * objective.epoch, "a new epoch"))
        elif changed:
            self._retarget()

    @property
    def multipliers(self) -> Array:
        """Of the constraints, in the next round, `(m,)`; none without constraints."""
        return NO_MULTIPLIERS if self._multipliers is None else self._multipliers.values

    @property
    def saturated(self) -> bool:
        """Whether a multiplier or a penalty has been cut off."""
        return self._multipliers is not None and self._multipliers.saturated

    # -- fits ----------------------------------------------------------------------------------------------------

    def _plan_fits(self, events: list[Event]) -> None:
        """Where a replay makes several fits due, only the last one is made: each starts from the policy's kernel."""
        refit = self.policy.refit
        self._last_fit = 0
        if refit is None or len(events) < 2 or not isinstance(self.policy.memory, Forever):
            return
        last = max((i for i, event in enumerate(events) if event.kind == "asked"), default=-1)
        told = [event for event in events[:last] if event.kind == "told" and event.trial.reward is not None]
        waiting = [trial for trial in self._waiting if trial.reward is not None]
        if self.policy.plain:  # otherwise it is not known beforehand which answers will count
            self._last_fit = (len(self._entries) + len(waiting) + len(told)) // refit.every

    def _fit(self) -> None:
        """The fit that is due, if one is: of the first k * `every` answers that count."""
        refit = self.policy.refit
        if refit is None:
            return
        seen = [trial for number, (trial, _) in self._entries.items() if self._seen_by_fits(number)]
        if refit.outputs == "own":
            everything = {number: trial for number, (trial, _) in self._entries.items()} | self._open
            seen = [everything[number] for number in sorted(everything)]
        due = (self._left + len(seen)) // refit.every
        if due <= self._fitted:
            return
        self._fitted = due
        first = seen[: max(due * refit.every - self._left, 0)]
        if due < self._last_fit or not first:
            return
        key = tuple(trial.number for trial in first)
        if refit.outputs == "own" or key not in self._fits:
            self._fits[key] = refit(
                self.policy.kernel,
                np.array([row_of(trial) for trial in first]),
                np.array([self._value(trial) for trial in first]),
                self.policy.sides,
                noise=math.sqrt(self.policy.regularization),
                seed=self._seed,
                prior_mean=self.policy.prior_mean,
            )
        self._begin(*self._fits[key])

    def _seen_by_fits(self, number: int) -> bool:
        refit = self.policy.refit
        return refit is not None and (refit.outputs == "own" or self._is_answer(number))

    def _is_answer(self, number: int) -> bool:
        return number not in self._open and number not in self._dropped

    def _value(self, trial: Trial) -> float:
        """What a trial counts as, reward units."""
        if trial.number in self._open and isinstance(self.policy.pending, Hallucinated):
            return float(self.answered_means([trial])[0])
        value = self.policy.objective.target(trial, self.multipliers) if self._is_answer(trial.number) else None
        return self._censored_value() if value is None else value

    # -- decisions -----------------------------------------------------------------------------------------------

    def decide(self, context: Array | None = None, *, now: float = math.inf) -> Decision:
        """The next point; the same one however often it is asked for.

        Args:
            context: known before, or None.
            now: Unix seconds, where the width depends on how long ago questions were asked.
        """
        self._settle()
        randomness = Randomness(self._seed, self._rounds)
        if self.policy.explore.due(len(self._uniform), self._rounds - self._first_counted()):
            return self._engine.anywhere(randomness)
        t = self._rounds - self._since + 1
        question = Question(t, self.bounds(now=now), context, self._last, self._best_reward, randomness)
        return self._engine.choose(question)

    def bounds(self, *, now: float = math.inf) -> Bounds:
        """The bounds of f in the next round."""
        policy, scale = self.policy, self._scale
        progress = Progress(
            self._engine.posterior,
            None if self._guess is None else self._guess.bound,
            self._greedy_design,
            1.0 if self._multipliers is None else self._noise_factor(),
            lambda: self._recent_deviations(now),
        )
        # Round t = 1, 2, ... since the last restart: every trial asked for counts, answered or not.
        width = policy.confidence.width(self._rounds - self._since + 1, progress)
        valid_for = "none" if policy.pending.failed == "worst" and self._failed else policy.valid_for
        return Bounds(width, valid_for, scale.mean, scale.std)

    def _noise_factor(self) -> float:
        objective = self.policy.objective
        return objective.noise_factor(self.multipliers) if isinstance(objective, Constrained) else 1.0

    def _recent_deviations(self, now: float) -> Array:
        """Posterior std, reward units, at the last trials asked for, within the window of the width."""
        window = self.policy.confidence.recent
        trials = list(self._asked)
        if window is not None and window.in_time:
            trials = [trial for trial in trials if trial.asked_at >= now - window.length]
        return self._scale.std * self._engine.deviations(trials) if trials else np.zeros(0)

    def _greedy_design(self) -> GreedyDesign:
        """Made once; it depends on nothing that happens."""
        if self._design is None:
            policy = self.policy
            self._design = GreedyDesign(policy.kernel, table(policy.domain, policy.context), policy.regularization)
        return self._design

    # -- looking -------------------------------------------------------------------------------------------------

    def settled(self) -> State:
        """A state that has taken in every outcome; a copy where something is due, so that looking changes nothing."""
        if not self._waiting and not self.policy.by_round:
            return self
        other = State.__new__(State)
        other.__dict__.update(self.__dict__)
        other._engine = self._engine.copy()
        for name in ("_open", "_entries", "_dropped", "_failed", "_asked", "_uniform", "_restarts", "_waiting"):
            setattr(other, name, getattr(self, name).copy())
        for name in ("_guess", "_multipliers", "_detector"):
            part = getattr(self, name)
            setattr(other, name, None if part is None else part.copy())
        other._settle()
        return other

    def envelope(self, points: Any = None, context: Array | None = None, *, now: float = math.inf) -> Envelope:
        """The bounds of f that hold in the next round, at all arms or at points of the domain."""
        return self.bounds(now=now)(*self._engine.predict(points, context))

    def answered_means(self, trials: list[Trial]) -> Array:
        """Posterior mean of f at answered trials, `(n,)`; under constraints what is charged for them is put back."""
        means = self._engine.answered_means(trials) * self._scale.std + self._scale.mean
        objective = self.policy.objective
        if isinstance(objective, Constrained):
            g = averages(trials, [np.zeros(0) if trial.constraints is None else trial.constraints for trial in trials])
            means = means + [objective.penalty_of(each, self.multipliers) for each in g]
        return means

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """(rounds so far, guess of the norm bound): the first and every one that replaced another; empty if given."""
        return [] if self._guess is None else list(self._guess.history)

    @property
    def restarts(self) -> list[Restart]:
        """Every cut of the memory so far."""
        return list(self._restarts)

    @property
    def minimum(self) -> float | None:
        """What unanswered trials count as, reward units; None where they are not censored."""
        return self._censored_value() if isinstance(self.policy.pending, Censored) else None

    @property
    def information_gain(self) -> float:
        """Realised information gain of what counts, nats."""
        return self._engine.posterior.information_gain

    @property
    def kernel(self) -> Kernel:
        """The kernel in use: the policy's, or the last one fitted (then on standardised rewards)."""
        return self._engine.setting.kernel
