"""What a policy knows after a record: the only place where the parts of a policy meet.

A `State` is a cache, rebuilt by replay and never stored: a pure function of (policy, seed, events so far).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

import numpy as np

from .availability import Available
from .checks import Array
from .engines import Decision, Engine, Question, row_of, table
from .information import GreedyDesign
from .kernels import Kernel
from .ledger import Ledger
from .parts.confidence import Bounds, Envelope, Progress, Window
from .parts.explore import NoExploration
from .parts.memory import Discount, Forever, Restart, RestartOnChange, SlidingWindow
from .parts.objective import Constrained, Multipliers, averages
from .parts.pending import Censored
from .parts.refit import Refitted
from .parts.rkhs import BoundedNoise, NormGuess, SelfNormalized
from .policy import Policy
from .randomness import Randomness
from .record import Event, Trial

_number = attrgetter("number")


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
        self._asked: deque[Trial] = deque()  # the last trials asked for, where the width depends on them
        self._uniform: list[int] = []  # forced uniform rounds that count
        self._shown = -1  # the latest uniform round that the detector has seen
        self._restarts: list[Restart] = []
        self._ticked = 0  # rounds that have passed in a posterior that drifts
        self._fits: dict[
            tuple[tuple[int, ...], bytes], Refitted
        ] = {}  # shared by copies: each is a pure function of its key
        self._fitted = 0  # fits that were due so far, since the last restart
        self._left = 0  # what fits would have seen and no longer counts, since the last restart
        self._last_fit = math.inf  # fits before this one are not made: another follows in the same replay
        confidence, objective, memory = policy.confidence, policy.objective, policy.memory
        self._guess = None
        if isinstance(confidence, SelfNormalized | BoundedNoise) and confidence.guessed:
            self._guess = NormGuess(confidence)
        self._multipliers = Multipliers(objective) if isinstance(objective, Constrained) else None
        self._detector = memory.detector(policy.domain, policy.kernel) if isinstance(memory, RestartOnChange) else None
        # Asked of the policy once: a round takes some tens of microseconds, and each question is a part of one.
        self._forgets = not isinstance(memory, Forever)
        self._drifts = isinstance(memory, Discount) and memory.rate > 0.0
        self._window = memory.rounds if isinstance(memory, SlidingWindow) else None
        self._recent = confidence.recent
        self._explores = not isinstance(policy.explore, NoExploration)
        self._valid_for = policy.valid_for
        self._design: GreedyDesign | None = None
        self._ledger = Ledger(policy, seed=seed)
        if self._multipliers is not None:
            self._ledger.multipliers = self._multipliers.values

    @property
    def _engine(self) -> Engine:
        return self._ledger.engine

    # -- what happens --------------------------------------------------------------------------------------------

    def receive(self, events: Iterable[Event]) -> None:
        """Take in what happened, in order."""
        events = list(events)
        if self.policy.refit is not None:
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
        window = self._recent
        if trial.explored:
            self._uniform.append(trial.number)
        if window is not None:
            self._asked.append(trial)
            while self._asked and self._is_past(window, trial):
                self._asked.popleft()
        self._ledger.ask(trial)

    def _is_past(self, window: Window, latest: Trial) -> bool:
        """Whether the first of the trials kept is in no window from now on."""
        if window.in_time:
            return self._asked[0].asked_at < latest.asked_at - window.length
        return len(self._asked) > window.length

    def _settle(self) -> None:
        """Take in the outcomes that wait, and whatever else is due before a decision."""
        if self._forgets:
            due = self.policy.memory.cut(self._since, self._rounds)
            if due is not None:
                self._restart(due)
        waiting, self._waiting = self._waiting, []
        if waiting:
            waiting.sort(key=_number)
            self._take_in(waiting)
            self._look_for_changes(waiting)
        elif self._ledger.asked is not None:
            self._ledger.take([], {})
        if self._window is not None:
            self._forget_before(self._first_counted())
        if self._drifts:
            self._tick(self._rounds)
        if self._multipliers is not None:
            self._weigh(waiting, self._multipliers)
        if self._guess is not None and waiting:
            self._guess.check(self._rounds, self._engine.answers)
        if self.policy.refit is not None:
            self._fit()

    def _first_counted(self) -> int:
        return self._since if self._window is None else max(self._since, self._rounds - self._window)

    # -- outcomes ------------------------------------------------------------------------------------------------

    def _take_in(self, waiting: list[Trial]) -> None:
        """Those of the outcomes that count; where f drifts each in its own round, or as if it were of this one."""
        first = self._first_counted()
        counted = [trial for trial in waiting if trial.number >= first]
        if not self._drifts:
            self._ledger.take(counted, self._asked_since(counted))
            return
        for trial in counted:
            self._tick(trial.number)  # no tick where the answer is late: then f is taken as it has become
            self._ledger.take([trial], {})

    def _asked_since(self, trials: list[Trial]) -> dict[int, int]:
        """How many questions have been asked after that of each trial; points told without one are none."""
        if not isinstance(self.policy.pending, Censored):
            return {}
        added, rounds = self._added, self._rounds
        return {t.number: rounds - t.number - 1 - len(added) + bisect_right(added, t.number) for t in trials}

    # -- memory --------------------------------------------------------------------------------------------------

    def _restart(self, restart: Restart) -> None:
        """Nothing before this round counts any more."""
        self._since = restart.round
        self._restarts.append(restart)
        self._uniform = [number for number in self._uniform if number >= restart.round]
        self._asked = deque(trial for trial in self._asked if trial.number >= restart.round)
        self._fitted = self._left = 0
        if self._detector is not None:
            self._detector.reset()
        self._ledger.restart(restart.round)

    def _look_for_changes(self, trials: list[Trial]) -> None:
        """Show the detector the uniform rounds that were answered, in the order in which the answers came in."""
        detector = self._detector
        if detector is None:
            return
        for trial in trials:
            if trial.reward is None or not trial.explored or trial.number < self._since:
                continue
            found = detector.add(trial.point, trial.reward - self.policy.prior_mean)
            self._shown = max(trial.number, self._shown)
            if found:
                # After the latest round of the test, which is not this one where this answer came late.
                reason = f"a change detected on the last {2 * found.half} uniform rounds"
                self._restart(Restart(self._shown + 1, reason))

    def _forget_before(self, first: int) -> None:
        self._left += sum(number < first and self._seen_by_fits(number) for number in self._ledger.entries)
        self._ledger.forget_before(first)
        self._uniform = [number for number in self._uniform if number >= first]

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
        ledger, began = self._ledger, multipliers.epoch != before
        ledger.multipliers = multipliers.values
        if not isinstance(objective, Constrained) or not (began or changed):
            return
        kernel = objective.kernels[multipliers.epoch] if objective.kernels else ledger.kernel  # k_l of Algorithm 2
        other, ledger.kernel = kernel != ledger.kernel, kernel
        start = multipliers.epoch * objective.epoch
        if objective.fresh and began and start > self._since:  # a memory that was cut later stays cut there
            self._restart(Restart(start, "a new epoch"))
        elif other:
            ledger.begin_own(self._since)
        elif changed:
            ledger.retarget()

    @property
    def multipliers(self) -> Array:
        """Of the constraints, in the next round, `(m,)`; none without constraints."""
        return self._ledger.multipliers

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
            self._last_fit = (len(self._ledger.entries) + len(waiting) + len(told)) // refit.every

    def _fit(self) -> None:
        """The fit that is due, if one is: of the first k * `every` answers that count."""
        refit = self.policy.refit
        if refit is None:
            return
        ledger = self._ledger
        seen = [entry.trial for number, entry in ledger.entries.items() if self._seen_by_fits(number)]
        if refit.outputs == "own":
            everything = {number: entry.trial for number, entry in ledger.entries.items()} | ledger.open
            seen = [everything[number] for number in sorted(everything)]
        due = (self._left + len(seen)) // refit.every
        if due <= self._fitted:
            return
        self._fitted = due
        first = seen[: max(due * refit.every - self._left, 0)]
        if due < self._last_fit or not first:
            return
        key = (tuple(trial.number for trial in first), ledger.multipliers.tobytes())
        if refit.outputs == "own" or key not in self._fits:
            self._fits[key] = refit(
                self.policy.kernel,
                np.array([row_of(trial) for trial in first]),
                np.array([ledger.value(trial) for trial in first]),
                self.policy.sides,
                noise=math.sqrt(self.policy.regularization),
                seed=self._seed,
                prior_mean=self.policy.prior_mean,
            )
        ledger.begin(*self._fits[key])

    def _seen_by_fits(self, number: int) -> bool:
        refit = self.policy.refit
        return refit is not None and (refit.outputs == "own" or self._ledger.is_answer(number))

    # -- decisions -----------------------------------------------------------------------------------------------

    def decide(
        self, context: Array | None = None, *, now: float = math.inf, available: Available | None = None
    ) -> Decision:
        """The next point; the same one however often it is asked for.

        Args:
            context: known before, or None.
            now: Unix seconds, where the width depends on how long ago questions were asked.
            available: what may be played this time; None for everything.
        """
        self._settle()
        randomness = Randomness(self._seed, self._rounds)
        score = None
        if self._explores and self.policy.explore.due(len(self._uniform), self._rounds - self._first_counted()):
            score = self.policy.explore.score
            if score is None:
                if available is not None:
                    return self._engine.anywhere_among(randomness, available)
                return self._engine.anywhere(randomness)
        t = self._rounds - self._since + 1
        best = self._ledger.best_reward(context)
        question = Question(t, self.bounds(now=now), context, self._last, best, randomness, score)
        if self._guess is not None:
            question = question._replace(norm_growth=self._guess.growth)
        if available is not None:
            best = self._ledger.best_reward_at(available.points, context)
            return self._engine.choose_among(question._replace(best_reward=best), available)
        return self._engine.choose(question)

    def bounds(self, *, now: float = math.inf) -> Bounds:
        """The bounds of f in the next round."""
        policy, scale = self.policy, self._ledger.scale
        progress = Progress(
            self._engine.posterior,
            None if self._guess is None else self._guess.bound,
            self._greedy_design,
            1.0 if self._multipliers is None else self._noise_factor(),
            None if self._recent is None else lambda: self._recent_deviations(now),
            self._engine.answers,
        )
        # Round t = 1, 2, ... since the last restart: every trial asked for counts, answered or not.
        width = policy.confidence.width(self._rounds - self._since + 1, progress)
        valid_for = "none" if self._ledger.failed and policy.pending.failed == "worst" else self._valid_for
        return Bounds(width, valid_for, scale.mean, scale.std)

    def _noise_factor(self) -> float:
        objective = self.policy.objective
        return objective.noise_factor(self.multipliers) if isinstance(objective, Constrained) else 1.0

    def _recent_deviations(self, now: float) -> Array:
        """Posterior std, reward units, at the last trials asked for, within the window of the width.

        Of those that are data: eq. (5) in the proof of Verma et al.'s Theorem 1 sums what censoring takes from B_t, and
        trials that have failed, or left the memory, are no part of it.
        """
        window, ledger = self._recent, self._ledger
        trials = [trial for trial in self._asked if ledger.counts(trial.number)]
        if window is not None and window.in_time:
            trials = [trial for trial in trials if trial.asked_at >= now - window.length]
        return ledger.scale.std * self._engine.deviations(trials) if trials else np.zeros(0)

    def _greedy_design(self) -> GreedyDesign:
        """Made once; it depends on nothing that happens."""
        if self._design is None:
            policy = self.policy
            self._design = GreedyDesign(policy.kernel, table(policy.domain, policy.context), policy.regularization)
        return self._design

    # -- looking -------------------------------------------------------------------------------------------------

    def settled(self) -> State:
        """A state that has taken in every outcome; a copy where something is due, so that looking changes nothing."""
        if not self._waiting and not self.policy.by_round and self._ledger.asked is None:
            return self
        other = State.__new__(State)
        other.__dict__.update(self.__dict__)
        other._ledger = self._ledger.copy()
        for name in ("_asked", "_uniform", "_restarts", "_waiting"):
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
        means = self._ledger.means(trials)
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
        return self._ledger.lowest() if isinstance(self.policy.pending, Censored) else None

    @property
    def information_gain(self) -> float:
        """Realised information gain of what counts, nats."""
        return self._engine.posterior.information_gain

    @property
    def kernel(self) -> Kernel:
        """The kernel in use: the policy's, or the last one fitted (then on standardised rewards)."""
        return self._engine.setting.kernel
