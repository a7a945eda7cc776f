"""What a policy knows after a record: the only place where the parts of a policy meet.

A `State` is a cache, rebuilt by replay and never stored: a pure function of (policy, seed, events so far).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from .._utils.checks import Array, shown
from .._utils.errors import InvalidInput, NoRegretError
from .._utils.randomness import Randomness
from ..domains.domain import Arms
from ..gp import Belief, OutOfSequencePosterior
from ..kernels import Kernel
from ..slots.envelope import Bounds, Envelope, Progress
from ..slots.explore import Explore, Situation, checked_places
from ..slots.feasibility import Mask
from ..slots.lengthscales import Lengthscales
from ..slots.memory import Detector, Evidence, ModelInfo, Observation, Prediction, Restart
from ..slots.objective import Change
from ..storage.record import Event, Trial
from ..theory.information import GreedyDesign
from .availability import Available, places_left
from .engines import Decision, Engine, Question, make_engine, table
from .fits import NOW, Fitted, Learner, When
from .learning import learner_of, lengthscales_of
from .outputs import Channels
from .policy import Policy
from .recent import Recent
from .repeats import repeated
from .silence_order import Turns
from .silence_values import noise_of_silence
from .training_data import Ledger

_number = attrgetter("number")


class State:
    """A policy after some events of a record.

    Outcomes that arrive between two decisions wait until the next one and are then taken in by trial number, so that
    the order of their arrival leaves no trace, and replaying the events repeats the same arithmetic bit for bit.

    Args:
        policy: of the run.
        seed: of its random choices.
        recorded: whether fits go on record with the decisions for which they are made.
    """

    def __init__(self, policy: Policy, *, seed: int, recorded: bool = True) -> None:
        self.policy, self._recorded = policy, recorded
        self._seed = seed
        self._rounds = 0  # trials so far
        self._since = 0  # the first trial that counts
        self._last: Array | None = None  # the point asked for most recently
        self._waiting: list[Trial] = []  # outcomes since the last decision
        self._added: list[int] = []  # trials told without having been asked for, in ascending order
        self._uniform: list[int] = []  # forced uniform rounds that count
        self._restarts: list[Restart] = []
        self._fits = learner_of(policy, seed=seed)
        # Asked of the policy once: a round takes some tens of microseconds, and each question is a part of one.
        self._forgets, self._drifts = not policy.memory.keeps_all, policy.memory.drift() is not None
        self._weighs, self._explores = policy.objective.revises, policy.explore.ever
        self._switching = policy.switching
        self._beyond = 0  # plays, beyond one for each trial that counts
        recent, self._valid_for = policy.confidence.recent, policy.valid_for
        self._recent = None if recent is None else Recent(recent)  # trials, where the width depends on them
        self._fitted = policy.fitting is not None
        # Whether only what comes in makes anything due.
        self._quiet = not (policy.by_round or policy.refit or policy.constraints)
        self._design: GreedyDesign | None = None
        self._design_kernel: Kernel = policy.kernel
        self._engine: Engine[Any] = make_engine(policy.domain, policy.context, policy.search, policy.sketch, seed=seed)
        self._engine.drifts, self._engine.runs = self._drifts, policy.switching is not None
        self._channels: Channels | None = None
        if policy.constraints is not None:
            self._engine.channels += policy.constraints.count
            self._channels = Channels(policy, policy.constraints, self._engine, self._asked_since, seed=seed)
        self._ledger = Ledger(policy, self._engine, self._asked_since)
        # What parts know besides their description.
        self._guess = policy.confidence.guess()
        self._charges = policy.objective.begin()
        self._ledger.multipliers = self._charges.values
        if self._fits is not None:
            self._fits.settle(self._ledger, NOW)
        self._watch = policy.memory.watch(self._world(learned=policy.fitting is None))
        self._joins = self._watch is not None and self._watch.joins
        turned = self._watch is not None and not self._watch.predicts and self._ledger.waits is not None
        self._turns = Turns() if turned else None  # where silence is an answer too
        # Whether every outcome counts and nothing else is ever due: most policies, whose rounds are quick.
        self._simple = self._quiet and not self._drifts and self._guess is None
        self._limited: list[Trial] = []  # whose constraint values came by themselves since the last decision

    def _world(self, *, learned: bool) -> ModelInfo:
        policy, engine, ledger = self.policy, self._engine, self._ledger
        kernel, ridge, scaled = ledger.in_use, ledger.ridge, ledger.units.scaled
        noise = policy.noise**2 if policy.fitting is None else max(ridge, noise_of_silence(ledger))
        return ModelInfo(
            policy.domain, policy.context, kernel, ridge, engine.cell,
            partial(engine.fresh, kernel, ridge, apart=False, drift=None),
            noise, 1 + policy.constraint_count,
            partial(engine.between, kernel), partial(engine.largest_variance, kernel),
            scaled, learned, () if self._channels is None else self._channels.scales(),
            () if self._channels is None else self._channels.models(policy, engine),
        )  # fmt: skip

    # -- what happens --------------------------------------------------------------------------------------------

    def receive(self, events: Iterable[Event]) -> None:
        """Take in what happened, in order."""
        if self._fits is not None:
            events = list(events)
            self._fits.plan(events, self._ledger, self._waiting)
            if self._channels is not None:
                self._channels.plan(events)
        for event in events:
            trial = event.trial
            if event.kind == "asked":
                self._settle(When(self._recorded, trial.fits) if self._fitted else NOW)
                self._note(trial)
            else:
                self._hear(event)
            if trial.number >= self._rounds:
                self._rounds = trial.number + 1
        if self._fits is not None:
            self._fits.planned()
            if self._channels is not None:
                self._channels.planned()

    def _hear(self, event: Event) -> None:
        """An outcome has come in, or will not come."""
        order, kind, trial = event
        if kind == "told":
            if trial.repeats > 1:
                self._beyond += trial.times - (1 if trial.asked_order == order else trial.repeats)
            self._waiting.append(trial)
            if trial.asked_order == order:
                self._added.append(trial.number)
        elif kind == "abandoned":
            self._ledger.abandon(trial)
            if self._turns is not None:
                self._turns.abandon(trial)
        if kind == "limited" and self._joins:
            self._limited.append(trial)
        if self._channels is not None:
            self._channels.hear(event)

    def _note(self, trial: Trial) -> None:
        """A trial has been asked for."""
        self._last = trial.point
        if self._switching is not None:
            self._beyond += trial.repeats - 1
        if self._fits is not None:
            self._fits.ask(trial, partial(self._spread_at, trial), self._ledger)
        if trial.explored:
            self._uniform.append(trial.number)
        if self._recent is not None:
            self._recent.ask(trial)
        self._ledger.ask(trial)
        if self._turns is not None:
            self._turns.ask(trial)
        if self._channels is not None:
            self._channels.ask(trial, self._engine, self._rounds - self._since + 1, self._since)

    def _settle(self, when: When = NOW) -> None:
        """Take in the outcomes that wait, and whatever else is due before a decision."""
        if self._waiting or self._ledger.fresh or not self._quiet:
            waiting, self._waiting = self._waiting, []
            if len(waiting) > 1:
                waiting.sort(key=_number)
            if not self._simple:
                self._take_stock(waiting, when)
            elif waiting or self._ledger.fresh:
                self._ledger.take(waiting)

    def _take_stock(self, waiting: list[Trial], when: When) -> None:
        if self._forgets and (due := self.policy.memory.cut(self._since, self._rounds)) is not None:
            self._cut(due)
        if waiting or self._ledger.fresh:
            self._take_in(waiting)
        self._take_limits()
        if self._limited:
            self._join()
        if self._forgets and (first := self._first_counted()) > self._since:
            self._forget_before(first)
        if self._drifts:
            self._advance(self._rounds)
        if self._weighs:
            self._weigh(waiting)
        if self._guess is not None and waiting:
            self._guess.check(self._rounds, self._ledger.belief.answered)
        if self._channels is not None and self._channels.settle(self._rounds, when) and self._watch is not None:
            self._watch.refitted(self._world(learned=True))
        if self._fits is not None:
            self._fit(self._fits, when)

    def _fit(self, fits: Learner, when: When) -> None:
        """The fit that is due, if one is."""
        if fits.settle(self._ledger, when) and self._watch is not None:
            self._watch.refitted(self._world(learned=True))

    def _take_limits(self) -> None:
        """Take in the constraint values that wait."""
        if self._channels is not None and self._channels.due:
            self._channels.take(self._first_counted(), self._engine, self._rounds - self._since + 1, self._since)

    def _first_counted(self) -> int:
        return (
            max(self.policy.memory.first_counted(self._since, self._rounds), self._since)
            if self._forgets
            else self._since
        )

    # -- outcomes ------------------------------------------------------------------------------------------------

    def _take_in(self, waiting: list[Trial]) -> None:
        """Those of the outcomes that count, by number, and what the memory's watch makes of them."""
        first = self._first_counted()
        counted = waiting if not first else [trial for trial in waiting if trial.number >= first]
        if not self._forgets:
            self._ledger.take(counted)
            return
        if self._watch is not None and self._watch.predicts:
            for trial in counted:
                self._take_singly(trial)
            if self._ledger.fresh:  # none of the answers counted any more
                self._ledger.take([])
            return
        drift = self._drift() if self._watch is not None else 0.0
        if self._drifts:
            self._advance(self._rounds)
        self._ledger.take(counted)
        if self._watch is not None:
            turns = self._turns
            for trial in waiting if turns is None else turns.shown(waiting, self._ledger, self._channels):
                if trial.number >= self._since and trial.reward is not None:
                    self._look_at(self._watch, trial, None, drift)

    def _drift(self) -> float:
        """The share of f that is new in each round, by what is known; 0 where f does not drift."""
        drift, belief = self.policy.memory.drift(), self._ledger.belief.answered
        if isinstance(belief, OutOfSequencePosterior):
            return belief.mean_rate
        return drift if isinstance(drift, float) else 0.0

    def _take_singly(self, trial: Trial) -> None:
        """Prediction, learning, and then a look: an e-value needs what was believed before."""
        if trial.number < self._since or self._watch is None:  # a cut on the way
            return
        if self._drifts:
            self._advance(trial.number)
        before, drift = self._ledger.predictions(trial), self._drift()
        self._ledger.take([trial])
        if trial.reward is not None:
            self._look_at(self._watch, trial, before, drift)

    def _join(self) -> None:
        """Constraint values that came by themselves, for the watch."""
        limited, self._limited = sorted(self._limited, key=_number), []
        for trial in limited:
            if trial.number >= self._since and self._watch is not None:
                self._look_at(self._watch, trial, None, self._drift())

    def _look_at(self, watch: Detector, trial: Trial, before: Prediction | None, drift: float) -> None:
        """What came of a trial, and the cut that follows from it."""
        value = math.nan if trial.reward is None else trial.reward - self.policy.prior_mean
        cut = watch.see(Observation(trial, value, before, drift))
        if cut is not None:
            self._cut(cut)

    def _cut(self, cut: Restart) -> None:
        """A restart that the memory calls for."""
        if not isinstance(cut, Restart):
            raise InvalidInput(
                f"`{type(self.policy.memory).__name__}` cuts the memory by {shown(cut)}: it must be a `Restart(round, "
                "reason)`, or None for no cut."
            )
        if not self._since < cut.round <= self._rounds:
            name = type(self.policy.memory).__name__
            raise NoRegretError(
                f"`{name}` cuts the memory at round {cut.round}, which is not after the last cut (round {self._since}) "
                f"and by the round to come ({self._rounds}): usually it forgets to compare with `since`, or a watch "
                "counts rounds of its own. A trial's round is `trial.number`."
            )
        self._charges.restart(cut.round)
        self._restart(cut)

    def _asked_since(self, trial: Trial) -> int:
        """How many questions have been asked after that of a trial; points told without one are none."""
        return self._rounds - trial.number - 1 - len(self._added) + bisect_right(self._added, trial.number)

    # -- memory --------------------------------------------------------------------------------------------------

    def _restart(self, restart: Restart) -> None:
        """Nothing before this round counts any more."""
        self._since = restart.round
        self._restarts.append(restart)
        self._uniform = [number for number in self._uniform if number >= restart.round]
        if self._recent is not None:
            self._recent.restart(restart.round)
        if self._fits is not None:
            self._fits.restart()
        if self._watch is not None:
            self._watch.cut(restart)
        if self._turns is not None:
            self._turns.restart(restart.round)
        self._ledger.restart(restart.round)
        if self._channels is not None:
            self._channels.restart(restart.round)

    def _forget_before(self, first: int) -> None:
        if self._fits is not None:
            self._fits.forget_before(first, self._ledger)
        self._ledger.forget_before(first)
        if self._channels is not None:
            self._channels.forget_before(first)
        self._uniform = [number for number in self._uniform if number >= first]

    def _advance(self, round_: int) -> None:
        """Let time pass until a round."""
        if round_ > self._engine.now:
            self._engine.now = round_
            self._ledger.advance()
            if self._channels is not None:
                self._channels.advance()

    # -- objective -----------------------------------------------------------------------------------------------

    def _weigh(self, waiting: list[Trial]) -> None:
        """What is charged in a new epoch, and what trials count as then."""
        charges, ledger = self._charges, self._ledger
        for trial in waiting:
            charges.hear(trial)
        change = charges.advance(self._rounds)
        ledger.multipliers = charges.values
        kernel = self.policy.kernel if charges.kernel is None else charges.kernel
        other, ledger.kernel = kernel is not ledger.kernel and kernel != ledger.kernel, kernel
        if change is Change.RESTART and charges.began > self._since:  # a memory that was cut later stays cut there
            self._restart(Restart(charges.began, "a new epoch"))
        elif other:
            ledger.begin_own(self._since)
        elif change is not Change.NOTHING:
            ledger.retarget()

    @property
    def multipliers(self) -> Array:
        """Of the constraints, in the next round, `(m,)`; none without constraints."""
        return self._ledger.multipliers if self._channels is None else self._channels.prices

    @property
    def price_steps(self) -> Sequence[tuple[int, Array]]:
        """What was charged in what is learned, each with the round from which on it was."""
        return self._charges.steps

    @property
    def saturated(self) -> bool:
        """Whether a multiplier or a penalty has been cut off."""
        return self._charges.saturated

    @property
    def remarks(self) -> Mapping[str, str]:
        """What whoever asks should know, a sentence for each kind."""
        return {} if self._channels is None else self._channels.books.remarks

    # -- decisions -----------------------------------------------------------------------------------------------

    def decide(
        self, context: Array | None = None, *, now: float = math.inf, available: Available | None = None,
        again: Trial | None = None,
    ) -> Decision:  # fmt: skip
        """The next point; the same one however often it is asked for.

        Args:
            context: known before, or None.
            now: Unix seconds, where the width depends on how long ago questions were asked.
            available: what may be played this time; None for everything.
            again: the trial on record that the decision became, where it is repeated: with the fits of then.
        """
        self._settle(NOW if again is None else When(past=True, fits=again.fits))
        randomness = Randomness(self._seed, self._rounds)
        forced, question, available = self.posed(context, randomness, now=now, available=available)
        if question is None:
            decision = self._engine.anywhere(randomness, available)
        else:
            decision = self._engine.choose(self._ledger.belief, question, available)
            if self._switching is not None and forced is None:
                belief = self._ledger.belief
                decision = repeated(decision, self._switching, belief, self._engine, question, available)
        return decision._replace(fits=self._news()) if self._fitted else decision

    def _news(self) -> Fitted:
        """Fits that come into force with the next decision."""
        of_limits = () if self._channels is None else self._channels.news
        return of_limits if self._fits is None else (*self._fits.news, *of_limits)

    def posed(
        self, context: Array | None, randomness: Randomness, *, now: float, available: Available | None
    ) -> tuple[Explore | None, Question | None, Available | None]:
        """What forces the next round, what is asked of the engine (None: a uniform draw), and of which points."""
        policy, ledger, score = self.policy, self._ledger, self.policy.score
        forced, places = None, None
        if self._explores:
            history = self._rounds - self._first_counted()
            forcing = policy.explore.forcing(len(self._uniform), history, randomness)
            if forcing is not None:
                places = forcing.places(self._situation(context, history, randomness))
                if places is None and forcing.score is None:
                    return forcing, None, available
                if places is not None:
                    places = checked_places(forcing, places, policy.domain)
                    among = places_left(places, policy.domain, available, self._engine.failed_among)
                else:
                    among = available
                if among is not None or places is None:  # otherwise it is not forced after all
                    available, score = among, score if forcing.score is None else forcing.score
                    forced = forcing
        limits = None if self._channels is None else self._channels.limits(self._rounds - self._since + 1, self._since)
        if limits is not None and score is not policy.score:
            world = limits.world.beside(score)
            if world is not limits.world and places is not None:
                score = policy.score  # of a few places: it knows of the constraints what there is to know
            else:
                limits = limits._replace(world=world)
        question = Question(
            self.round, self.bounds(now=now), ledger.units, context, self._last,
            ledger.best_reward if available is None else partial(ledger.best_reward_at, available.points),
            randomness, score, 1.0 if self._guess is None else self._guess.growth,
            limits,
        )  # fmt: skip
        return forced, question, available

    def _situation(self, context: Array | None, history: int, randomness: Randomness) -> Situation:
        return Situation(
            self.policy.domain, context, history, self._seed, randomness,
            lambda: self._best_point(context), lambda: self._ledger.points(self.policy.domain.dimension),
        )  # fmt: skip

    def _best_point(self, context: Array | None) -> Array | None:
        """Of those answered, the point of the best posterior mean under a context."""
        ledger, engine = self._ledger, self._engine
        trials = [entry.trial for entry in ledger.entries.values() if ledger.is_answer(entry.trial.number)]
        if not trials:
            return None
        if self._channels is not None and (inside := self._channels.inside(trials)).any():
            trials = [trial for trial, is_inside in zip(trials, inside, strict=True) if is_inside]
        if context is None:
            return trials[int(engine.means(ledger.belief, trials).argmax())].point
        points = np.unique(np.array([trial.point for trial in trials]), axis=0)
        at: Array = points[
            int(engine.envelope(ledger.belief, self.bounds(), ledger.units, points, context).mean.argmax())
        ]
        return at

    def bounds(self, *, now: float = math.inf) -> Bounds:
        """The bounds of f in the next round."""
        belief = self._ledger.belief
        progress = Progress(
            belief.asked,
            self._norm(),
            self._greedy_design,
            self._charges.noise_factor,
            None if self._recent is None else partial(self._recent_deviations, self._recent, now),
            belief.answered,
            None if self._recent is None else partial(self._pull, self._recent, now),
            self._guess,
        )
        return self.policy.confidence.bounds(self.round, progress)

    @property
    def round(self) -> int:
        """T = 1, 2, ... since the last restart: every play asked for counts, answered or not."""
        return self._rounds - self._since + 1 + self._beyond

    def _norm(self) -> float | None:
        """A bound on the norm that is not the one that was told."""
        return self._guess.bound if self._guess is not None else None if self._fits is None else self._fits.norm()

    def width(self, *, now: float = math.inf) -> float:
        """What multiplies the standard deviation in the next round; NaN where bounds are no such multiple."""
        width = self.bounds(now=now).width
        return math.nan if width is None or self._ledger.units.warp is not None else width

    def _spread_at(self, trial: Trial) -> float | None:
        """Half the width of the bounds of f where this round asks; None where it was forced."""
        history, randomness = self._rounds - self._first_counted(), Randomness(self._seed, self._rounds)
        if self._explores and self.policy.explore.forcing(len(self._uniform), history, randomness) is not None:
            return None
        cell, ledger = np.array([self._engine.here(trial)]), self._ledger
        at = self.bounds()(*ledger.units.rewards(*ledger.belief.predict(cell)), cell)
        return 0.5 * float(at.upper[0] - at.lower[0])

    @property
    def valid_for(self) -> str:
        """What the bounds of the next round are proved for (see `Envelope`)."""
        spoilt = self._ledger.failed and self.policy.pending.failed == "worst"
        spoilt = spoilt or (self._guess is not None and self._guess.refuted)
        return "none" if spoilt else self._valid_for

    @property
    def proved(self) -> str:
        """What the bounds of all channels are proved for together."""
        claims = {self.valid_for} | (
            {c.valid_for for c in self._channels.each} if self._channels is not None else set()
        )
        return claims.pop() if len(claims) == 1 else "played" if claims == {"f", "played"} else "none"

    def _recent_deviations(self, recent: Recent, now: float) -> Array:
        """Posterior std, reward units, at the last trials asked for, within the window of the width.

        Of those that are data: eq. (5) in the proof of Verma et al.'s Theorem 1 sums what censoring takes from B_t, and
        trials that have failed, or left the memory, are no part of it.
        """
        ledger = self._ledger
        trials = [trial for trial in recent.trials(now) if ledger.counts(trial.number)]
        return ledger.units.unit * self._engine.deviations(ledger.belief, trials) if trials else np.zeros(0)

    def _pull(self, recent: Recent, now: float, cells: Any) -> Array:
        """What the mean at cells owes to each of those trials whose answers may still come, `(n, k)`."""
        ledger, engine = self._ledger, self._engine
        trials = [trial for trial in recent.trials(now) if trial.number in ledger.open]
        belief: Belief[Any] = ledger.belief
        return belief.pull(cells, [engine.here(trial) for trial in trials]) if trials else np.zeros((1, 0))

    def _greedy_design(self) -> GreedyDesign:
        """Made once for the kernel and lambda in force; of nothing else that happens is it a function."""
        policy, kernel = self.policy, self._ledger.kernel
        ridge = policy.memory.regularization(self._since, policy.regularization)
        if self._design is None or self._design_kernel is not kernel or self._design.regularization != ridge:
            self._design = GreedyDesign(kernel, table(policy.domain, policy.context), ridge)
            self._design_kernel = kernel
        return self._design

    # -- looking -------------------------------------------------------------------------------------------------

    def settled(self) -> State:
        """A state that has taken in every outcome; a copy where something is due, so that looking changes nothing."""
        channels = self._channels
        due = channels is not None and (channels.due or channels.books.due(self._rounds))
        if not (self._waiting or self._limited or self.policy.by_round or self._ledger.fresh or due):
            return self
        other = self.copy()
        other._settle()
        return other

    def copy(self) -> State:
        """An independent state after the same events."""
        other = State.__new__(State)
        other.__dict__.update(self.__dict__)
        other._engine = self._engine.copy()
        other._ledger = self._ledger.copy(other._engine, other._asked_since)
        other._channels = None if self._channels is None else self._channels.copy(other._engine, other._asked_since)
        other._recent = None if self._recent is None else self._recent.copy()
        for name in ("_added", "_uniform", "_restarts", "_waiting", "_limited"):
            setattr(other, name, getattr(self, name).copy())
        other._fits = None if self._fits is None else self._fits.copy()
        other._charges = self._charges.copy()
        other._guess = None if self._guess is None else self._guess.copy()
        other._watch = None if self._watch is None else self._watch.copy()
        other._turns = None if self._turns is None else self._turns.copy()
        return other

    def turn_to(self, number: int) -> None:
        """The next decision is that of the trial of this number: those between are nobody's, or elsewhere."""
        self._rounds = number

    def envelope(self, points: Any = None, context: Array | None = None, *, now: float = math.inf) -> Envelope:
        """The bounds of f that hold in the next round, at all arms or at points of the domain."""
        ledger = self._ledger
        envelope = self._engine.envelope(ledger.belief, self.bounds(now=now), ledger.units, points, context)
        envelope.valid_for = self.valid_for
        return ledger.units.shown(envelope)

    def limit(self, j: int, points: Any = None, context: Array | None = None) -> Envelope:
        """The bounds of constraint j, from 1, in the next round."""
        since = self._since
        return self._limits.envelope(j, self._engine, self._rounds - since + 1, since, points, context)

    @property
    def _limits(self) -> Channels:
        if self._channels is None:
            raise InvalidInput(
                f"The policy `{self.policy.algorithm}` has no posterior of the constraints.",
                advice="Make it with `constraints=nr.EveryRound(count=1)`, `nr.OnAverage(...)` or `nr.Safe(...)`.",
                topic="channels",
            )
        return self._channels

    def certain(self, points: Any, context: Array | None) -> Array:
        """What is known of points satisfying all constraints, `(n,)` (`Constraints.certain`)."""
        world, domain = self._limits.world, self.policy.domain
        t = self._rounds - self._since + 1
        found = [
            self._limits.believed(j + 1, self._engine, t, self._since, points, context) for j in range(world.count)
        ]
        at = domain.points if points is None and isinstance(domain, Arms) else domain.inside("points", points)
        return world.certain(found, at, self._limits.books, context)

    def infeasible(self, context: Array | None) -> float | None:
        """None, or where every lower bound is above 0 the probability, at least, with which bounds are as they say."""
        limits, points = self._limits, self._engine.candidates()
        if points is not None:
            points = np.concatenate([points, self._ledger.points(self.policy.domain.dimension)])
        t = self._rounds - self._since + 1
        return limits.confidence if limits.hopeless(self._engine, t, self._since, points, context) else None

    def inside(self, trials: list[Trial]) -> Mask | None:
        """Which answered trials satisfy all constraints in the posterior mean, `(n,)`; None where nobody knows."""
        return None if self._channels is None else self._channels.inside(trials)

    def answered_means(self, trials: list[Trial]) -> Array:
        """Posterior mean of f at answered trials, `(n,)`; under constraints what is charged for them is put back."""
        return self._ledger.shown_means(trials) + self._charges.put_back(trials)

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """(rounds so far, guess of the norm bound): the first and every one that replaced another; empty if given."""
        return [] if self._guess is None else list(self._guess.history)

    @property
    def restarts(self) -> list[Restart]:
        """Every cut of the memory so far."""
        return list(self._restarts)

    @property
    def since(self) -> int:
        """The round of the last cut."""
        return self._since

    @property
    def first_counted(self) -> int:
        """The first trial that counts in the next round."""
        return self._first_counted()

    @property
    def evidence(self) -> Evidence | None:
        """What the memory's watch for changes has come to; None where there is none that puts it into a number."""
        return None if self._watch is None else self._watch.evidence

    @property
    def minimum(self) -> float | None:
        """What unanswered trials count as, reward units; None where they are not censored."""
        return self.policy.pending.stand_in(self._ledger.lowest())

    @property
    def information_gain(self) -> float:
        """Realised information gain of what counts, nats."""
        return float(self._ledger.belief.asked.information_gain)

    @property
    def shortfall(self) -> float:
        """Rho of a sketch; 0 where the posterior is exact."""
        return float(self._ledger.belief.asked.shortfall)

    @property
    def kernel(self) -> Kernel:
        """The kernel in use: the policy's, or the last one fitted (then on standardised rewards), or the likeliest."""
        return self._ledger.in_use

    @property
    def lengthscales(self) -> Lengthscales | None:
        """What is believed of the lengthscales; None where one kernel counts."""
        return lengthscales_of(self._ledger, self._fits)
