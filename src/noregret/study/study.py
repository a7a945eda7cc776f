"""A study is a policy, a seed and a record: the user's one entry point."""

from __future__ import annotations

import json
import math
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, overload

import numpy.typing as npt

from .. import baselines  # noqa: F401 - a stored study may be of one
from ..baselines.scripted import ScriptedPolicy
from ..checks import LARGEST_SEED, Array, integer, shown
from ..errors import InvalidInput, NoRegretError, NoRegretWarning, TrialError
from ..policy.availability import Available, Some, available
from ..policy.engines import Decision
from ..policy.policy import Policy
from ..record import Record, Trial
from ..serialize import loads
from ..slots.envelope import Envelope
from ..slots.memory import Evidence, Restart
from ..slots.objective import SATURATED
from . import export
from .best import best_trial
from .cautions import FIRST, cautions, infeasible_sentence, next_look
from .explain import DRAWS, MOST_DRAWS, explanation
from .explanation import Explanation
from .given import Given
from .goal import AnyPolicy, AnyState, Goal, begun, check_goal, has_channels
from .integrity import Auditor, check_facts, check_same, settings_at, storable, stored_facts

if TYPE_CHECKING:
    import pandas as pd

    from ..storage import SqlStorage, StoredStudy

P = ParamSpec("P")

MOST_AT_ONCE = 10_000  # trials of one `ask`: each is decided and stored by itself


class Study:
    """Ask what to try, tell what came of it, as often as you like.

    >>> import noregret as nr
    >>> policy = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
    >>> study = nr.Study(policy, seed=0)
    >>> for _ in range(20):
    ...     trial = study.ask()
    ...     reward = -((trial.point[0] - 0.3) ** 2)
    ...     _ = study.tell(trial, reward)

    What it asks depends on nothing but the policy, the seed and the record; looking (`predict`, `best`, ...) changes
    nothing. A study may be used by several threads and, with a storage, by several processes at once.

    Args:
        policy: how to decide, made by one of the algorithm functions.
        goal: "maximize" what is told, or "minimize" it: a loss, an error, a cost. All that you give and get is in the
            units told, whichever it is: rewards (then losses), `predict`, `bounds`, and of the policy `prior_mean` and
            the `minimum` of censored answers, which is the worst value there is (of losses the largest). A part of
            your own always sees rewards, which are minus the losses.
        seed: of all random choices; a whole number >= 0.
        storage: URL of a database, such as "sqlite:///studies.db"; None keeps the record in memory.
        name: of the study within the storage; opening a name again resumes that study, which needs an equal policy,
            goal and seed.
        about: facts to keep with a stored study, which must be the same when it is resumed.
        clock: gives the time of asking and telling in Unix seconds.
        on_change: called by `ask` with each new cut of the memory, a `noregret.slots.Restart`, once, whichever process
            told what led to it; not for those that a study had when it was opened. An error in it comes out of `ask`,
            whose trial is then on record, pending.
    """

    def __init__(
        self,
        policy: AnyPolicy,
        *,
        goal: Goal = "maximize",
        seed: int = 0,
        storage: str | None = None,
        name: str = "study",
        about: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        on_change: Callable[[Restart], object] | None = None,
    ) -> None:
        check_policy(policy)
        self.policy = policy
        self.goal: Goal = check_goal(goal)
        self._given = Given(policy, self.goal)
        self.seed = integer("seed", seed, low=0, high=LARGEST_SEED, why="Random streams are numbered from 0.")
        if not isinstance(name, str) or not name.strip() or "\0" in name or not storable(name):
            raise InvalidInput(f"`name` must be some text that can be written as UTF-8, not {shown(name)}.")
        self.name = name
        self.about = check_facts(about)
        self._clock, self._on_change = clock, on_change
        if on_change is not None and not callable(on_change):
            raise InvalidInput(f"`on_change` is {shown(on_change)}: it must be a function of a restart, or None.")
        self._timed = policy.pending.in_time
        self._lock = threading.RLock()
        self._storage: SqlStorage | None = None
        self._stored: StoredStudy
        self._auditor: Auditor
        self._record = Record()
        self._looked: AnyState | None = None
        self._whole = False
        self.quiet = False  # whether warnings are kept in `unsaid` and not given
        self.unsaid: dict[str, str] = {}  # sentences by kind
        self._said: set[str] = set()  # kinds of warnings: each is given once
        self._look_at: float = FIRST  # trials at which what was told is compared with what the policy expects
        if storage is not None:
            self._open(storage)
        self._rebuild()
        self._announced = len(self._state.restarts)  # cuts of which `on_change` need not be told

    @classmethod
    def open(
        cls,
        *,
        storage: str,
        name: str = "study",
        clock: Callable[[], float] = time.time,
        on_change: Callable[[Restart], object] | None = None,
    ) -> Self:
        """Resume a stored study by name alone: its policy, goal and seed come from the storage."""
        from ..storage import SqlStorage

        database = SqlStorage(storage, make=False)
        stored = database.find(name)
        if stored is None:
            names = ", ".join(map(repr, database.names())) or "none"
            raise InvalidInput(f"There is no study {shown(name)} in {storage}; it has: {names}.")
        policy, about = loads(stored.policy), stored_facts(stored.about, f"Study {name!r} in {storage}")
        return cls(
            policy, goal=check_goal(stored.goal), seed=stored.seed, storage=storage, name=name, about=about,
            clock=clock, on_change=on_change,
        )  # fmt: skip

    def _open(self, url: str) -> None:
        from ..storage import SqlStorage

        self._storage = SqlStorage(url)
        policy, about = self.policy.to_json(), json.dumps(self.about, sort_keys=True)
        self._stored = self._storage.find_or_make(self.name, policy=policy, goal=self.goal, seed=self.seed, about=about)
        check_same(self._stored, policy, self.goal, self.seed, about, url)
        self._auditor = Auditor(self.policy, self.goal, f"study {self.name!r} in {url}")

    def __reduce__(self) -> tuple[Any, ...]:
        """A study with a storage is copied and pickled as what opens it again: both then share its record."""
        if self._storage is None:
            raise NoRegretError(
                "A study in memory cannot be copied or pickled: a trial told to one copy would be unknown to the "
                "other. Give it a `storage`, which copies and processes share; or make a new study of `study.policy`, "
                "`study.goal` and `study.seed`, and `add` the trials."
            )
        given: dict[str, Any] = {} if self._clock is time.time else {"clock": self._clock}
        if self._on_change is not None:
            given["on_change"] = self._on_change
        return _reopened, (type(self), self._storage.place, self.name, given)

    def __repr__(self) -> str:
        goal = "" if self.goal == "maximize" else f" goal={self.goal!r},"
        return f"Study({self.name!r}, {self.policy.algorithm},{goal} seed={self.seed}, {self._record!r})"

    # -- deciding and recording ----------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        count: None = None,
        among: Some | None = None,
        exclude: Some | None = None,
    ) -> Trial: ...
    @overload
    def ask(
        self,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        count: int,
        among: Some | None = None,
        exclude: Some | None = None,
    ) -> list[Trial]: ...
    def ask(
        self,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        count: int | None = None,
        among: Some | None = None,
        exclude: Some | None = None,
    ) -> Trial | list[Trial]:
        """The next trial to try, recorded as pending; with `count`, a list of that many.

        What pending trials count as is the policy's choice (`pending`). Most ignore them, and then mostly ask for the
        same point again until an answer comes; `gp_bucb` and `gp_ucb_sdf` spread out. A list of b is b asks, one
        after the other.

        Args:
            context: what is known before the decision, `(c,)`, a dict of parameters or a table's row, where the policy
                has contexts.
            count: how many trials, at most 10,000.
            among: what may be played this time: arms (by number, a truth value for each, points or dicts of
                parameters), or on a box or space the points `(n, d)` or dicts to choose from. Random rounds keep to
                it too. What was available is not stored: a trial is what was decided, and is never decided again.
            exclude: arms that may not be played this time; not on a box or space.
        """
        seen = self._given.context(context)
        whole = among is None and exclude is None
        offered = None if whole else available(self.policy.domain, among, exclude)
        wanted = 1 if count is None else integer("count", count, low=1, high=MOST_AT_ONCE)
        trials = [self._write(self._next, seen, offered) for _ in range(wanted)]
        if self._state.saturated:
            self._warn({"saturated": SATURATED}, stacklevel=3)
        if self._on_change is not None:
            self._announce(self._on_change)
        return trials[0] if count is None else trials

    def _announce(self, on_change: Callable[[Restart], object]) -> None:
        with self._lock:
            known, restarts = self._announced, self._state.restarts
            self._announced = len(restarts)
        for restart in restarts[known:]:
            on_change(restart)

    def tell(
        self, trial: Trial | int, reward: float | None = None, *, constraints: npt.ArrayLike | None = None
    ) -> Trial:
        """Record the reward of a trial, in any order, any time later, from any process; returns it answered.

        Args:
            trial: as `ask` returned it, or its number.
            reward: finite; True and False count as 1 and 0. Where the goal is to minimise, the loss. None where only
                the constraint values are known yet (a discount, days before the purchase).
            constraints: constraint values g `(m,)`, satisfied when <= 0; together with the reward, or by themselves
                before it. With `nr.EveryRound`, `nr.OnAverage` and `nr.Safe` also after it, and each teaches what it
                says; other policies with constraints learn nothing of a reward without them.
        """
        if reward is None and constraints is not None:
            return self._write(self._limited, trial, constraints)
        g = None if constraints is None else self._given.constraints(constraints)
        answered = self._write(self._answered, trial, self._given.reward(reward), g)
        if len(self._record) >= self._look_at:
            self._look_for_wrong_scales()
        return answered

    def _limited(self, trial: Trial | int, constraints: npt.ArrayLike) -> Trial:
        g = self._given.constraints(constraints)
        known = self._record.unlimited(trial)
        policy = self.policy
        if known.state == "observed" and policy.constraint_count and not has_channels(policy):
            raise TrialError(
                f"The reward of trial {known.number} was told without constraint values, and {policy.algorithm} learns "
                "from both together: it is too late for them. Tell them with the reward, or before it; policies made "
                "with `constraints=nr.EveryRound(...)` take them in any order."
            )
        return known.limited(constraints=g, order=self._record.order + 1)

    def _answered(self, trial: Trial | int, reward: float, constraints: Array | None) -> Trial:
        record = self._record
        known = record.pending(trial)
        if constraints is not None and known.constraints is not None:
            record.unlimited(known)  # an error: they are known
        return known.answered(reward=reward, constraints=constraints, order=record.order + 1, time=self._now())

    def fail(self, trial: Trial | int, reason: str) -> Trial:
        """Record that a trial will never have a reward; a point that has only failed is not asked for again.

        Where bad points are the cause, `pending=nr.Ignored(failed="worst")` keeps away from their neighbours too.
        """
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidInput(f"`reason` must say in words why the trial failed, not {shown(reason)}.")
        text = reason.encode("utf-8", "replace").decode("utf-8")  # storable, whatever an exception's message held
        return self._write(
            lambda: self._record.pending(trial).failed(reason=text, order=self._record.order + 1, time=self._now())
        )

    def add(
        self,
        point_or_parameters: npt.ArrayLike | Mapping[str, Any],
        reward: float,
        *,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        constraints: npt.ArrayLike | None = None,
    ) -> Trial:
        """Record the reward of a point that was never asked for (under a context, where the policy has them).

        The point is `(d,)`, a dict of parameters, or a table's row: by the names of its columns where the domain has
        named parameters, by their order elsewhere.
        """
        value, seen = self._given.reward(reward), self._given.context(context)
        g = None if constraints is None else self._given.constraints(constraints)
        decision = self._given.point(point_or_parameters)

        def make() -> Trial:
            order = self._record.order + 1
            trial = self._trial(decision, seen, order=order, now=self._now())
            return trial.answered(reward=value, constraints=g, order=order, time=trial.asked_at)

        added = self._write(make)
        if len(self._record) >= self._look_at:
            self._look_for_wrong_scales()
        return added

    # -- looking -------------------------------------------------------------------------------------------------

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials by number, those of other processes included."""
        with self._lock:
            self._sync()
            return self._record

    def to_pandas(self) -> pd.DataFrame:
        """All trials as a table, a row each: columns "parameters.NAME" (or "point.0", ...), "reward", and so on."""
        return export.to_pandas(self.policy, self.trials)

    def export(self, path: str | Path) -> Path:
        """Write all trials to a file that ends in .csv, .jsonl (a JSON object for each) or .parquet; gives its path."""
        return export.write(self.policy, self.trials, path)

    def add_from(self, path: str | Path) -> list[Trial]:
        """Add the trials with a reward of a file that `export` wrote, or one with such columns; returns them."""
        return export.add_from(self.add, self._given, self.policy, path)

    def predict(
        self, points: npt.ArrayLike | Mapping[str, Any] | None = None, *, context: npt.ArrayLike | None = None
    ) -> tuple[Array, Array]:
        """Posterior mean and standard deviation of the reward (noise not included) at `(n, d)` points, each `(n,)`.

        Where the goal is to minimise, of the loss. Under constraints, of what is learned: the reward less (the loss
        plus) what the multipliers in force charge for violations.
        A dict of parameters, a list of them or a table will do as well. Without points: at every arm.
        """
        envelope = self._envelope(points, context)
        return envelope.mean, envelope.std

    def bounds(
        self,
        points: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        context: npt.ArrayLike | None = None,
        channel: int = 0,
    ) -> tuple[Array, Array]:
        """The policy's lower and upper confidence bounds in the next round, each `(n,)`; see `predict`.

        Args:
            points: see `predict`.
            context: see `predict`.
            channel: 0 for the reward; j for constraint j, from 1, in its own units, where the policy was made with
                `constraints=nr.EveryRound(...)` or one of its relatives.
        """
        most = self.policy.constraint_count if has_channels(self.policy) else 0
        if channel and most:
            why = "It is 0 for the reward, or the number of a constraint, from 1."
            channel = integer("channel", channel, low=0, high=most, why=why)
        envelope = self._envelope(points, context) if channel == 0 else self._limit(channel, points, context)
        return envelope.lower, envelope.upper

    def _limit(self, channel: int, points: Any, context: Any) -> Envelope:
        seen = self._given.context(context)
        with self._lock:
            return self._look().limit(channel, points, seen)

    def feasible(
        self, points: npt.ArrayLike | Mapping[str, Any] | None = None, *, context: npt.ArrayLike | None = None
    ) -> Array:
        """What is known of points `(n, d)` satisfying all constraints, `(n,)`, as the policy's world says.

        With `nr.EveryRound` and `nr.OnAverage` the posterior probability that all g_j <= 0. With `nr.Safe` the
        certificate: 1.0 where all upper bounds are at most 0 and at the points of `start`, else 0.0.
        """
        seen = self._given.context(context)
        with self._lock:
            return self._look().certain(points, seen)

    def infeasible(self, *, context: npt.ArrayLike | Mapping[str, Any] | None = None) -> float | None:
        """Whether no point can satisfy all constraints any more: None, or how sure that is.

        A number says that the lower bound of some constraint is above 0 at every arm (of a continuous domain, at every
        candidate of the search and every point tried), and how probable it is at least that all those bounds hold; 0
        where nothing is proved for them.
        """
        seen = self._given.context(context)
        with self._lock:
            return self._look().infeasible(seen)

    def best(self, *, context: npt.ArrayLike | Mapping[str, Any] | None = None) -> Trial:
        """The answered trial of the highest posterior mean (the earliest, where several are at that point).

        Where the goal is to minimise, of the lowest, here and below. After a restart of the memory, of the trials
        since. With `context`, the trial whose point has the highest posterior mean under that context, whatever the
        context was in which it was tried.

        Under constraints, of those that satisfied them: at whose point the values told are at most 0 on average. What
        counts is then the reward, without the penalty that is learned with it. An error says so where there are none.
        With `context`, of the trials of that very context: what a violation is elsewhere is not learned.
        """
        seen = None if context is None else self._given.context(context)
        with self._lock:
            return best_trial(self.policy, self.goal, self._look(), self._record, seen)

    @property
    def width(self) -> float:
        """What multiplies the standard deviation in the next round; NaN where the bounds are no such multiple."""
        with self._lock:
            width = self._look().bounds(now=self._clock_of_window()).width
            return math.nan if width is None else width

    @property
    def information_gain(self) -> float:
        """Realised information gain of the answered trials, 1/2 log det(I + K / lambda), nats."""
        with self._lock:
            return self._look().information_gain

    @property
    def minimum(self) -> float | None:
        """What unanswered trials count as in the next round, reward units; None where they are not censored.

        Where the policy was made with `minimum=None` it is the smallest reward told so far, and moves with it. Where
        the goal is to minimise, both are the largest loss.
        """
        with self._lock:
            return self._look().minimum

    @property
    def restarts(self) -> list[int]:
        """Rounds, counted from 0, from which on trials count: each is a cut of the memory (see `restart_reasons`)."""
        return [restart.round for restart in self._restarts()]

    @property
    def restart_reasons(self) -> list[str]:
        """Why the memory was cut, in words, one for each of `restarts`."""
        return [restart.reason for restart in self._restarts()]

    @property
    def evidence(self) -> Evidence | None:
        """How much spoke for a change of the world after each answer, natural logs, and from where on memory is cut.

        None of policies whose memory does not put it into a number (`memory="adaptive"` does). See `plots.evidence`.
        """
        with self._lock:
            return self._look().evidence

    def _restarts(self) -> list[Restart]:
        with self._lock:
            return self._look().restarts

    @property
    def multipliers(self) -> Array:
        """What violating each constraint costs in the next round, `(m,)`, reward units; empty without constraints."""
        with self._lock:
            return self._look().multipliers.copy()

    @property
    def last_multipliers(self) -> Array:
        """The multipliers under which the last question was decided, `(m,)`; the first ones before any."""
        return self._state.multipliers.copy()

    @property
    def saturated(self) -> bool:
        """Whether a multiplier or a penalty has grown so large (1e6) that it was cut off, as of the last question."""
        return self._state.saturated

    @property
    def norm_bounds(self) -> list[tuple[int, float]]:
        """Guesses of the norm bound, (rounds so far, guess), the first one and every doubling of it.

        Empty where the norm bound was given (see `igp_ucb(guess_norm=True)`).
        """
        with self._lock:
            return self._look().norm_bounds

    def explain(
        self, trial: Trial | int, *, among: Some | None = None, exclude: Some | None = None, draws: int = DRAWS
    ) -> Explanation:
        """Why a trial was chosen: score, bounds, runner-up, what was pending and forgotten, how probable it was.

        Recomputed from the record of what had happened before the trial was asked for, which costs a replay of it, and
        nothing is stored. It is exact on the machine and with the libraries that decided (see the page on studies).

        Args:
            trial: as `ask` returned it, or its number.
            among: what was passed to `ask` then; the record does not hold it.
            exclude: likewise.
            draws: from which the propensity is estimated where the policy draws (Thompson sampling): its random numbers
                are keyed by (seed, trial number). 0 for none.
        """
        offered = None if among is None and exclude is None else available(self.policy.domain, among, exclude)
        draws = integer("draws", draws, low=0, high=MOST_DRAWS)
        with self._lock:
            self._sync()
            number, trials = self._record.found(trial).number, self._record[:]
        return explanation(self.policy, self.goal, trials, number, seed=self.seed, available=offered, draws=draws)

    # -- inside --------------------------------------------------------------------------------------------------

    def _next(self, context: Array | None, offered: Available | None) -> Trial:
        # The state takes in what was told before it decides. If the trial is not recorded after all, that was too early
        # for a replay to repeat: then the state is made afresh.
        self._whole = False
        now = self._now()
        decision = self._state.decide(context, now=now, available=offered)
        return self._trial(decision, context, order=self._record.order + 1, now=now)

    def _trial(self, decision: Decision, context: Array | None, *, order: int, now: float) -> Trial:
        domain, contexts = self.policy.domain, self.policy.context
        return Trial(
            number=len(self._record),
            point=decision.point,
            arm=decision.arm,
            settings=settings_at(domain, decision.point),
            context=context,
            asked_order=order,
            asked_at=now,
            explored=decision.explored,
            context_settings=None if context is None or contexts is None else settings_at(contexts, context),
        )

    def _write(self, make: Callable[P, Trial], *args: P.args, **more: P.kwargs) -> Trial:
        """Make a trial from the record as it is now, save it, and only then take it in."""
        with self._lock:
            if not self._whole:
                self._rebuild()
            if self._storage is None:
                trial = make(*args, **more)
            else:
                with self._storage.writing(self._stored) as writer:
                    self._apply(self._auditor.news(writer.changes(since=self._record.order), self._record))
                    trial = make(*args, **more)
                    writer.save(trial)
            self._whole = False  # until record and state agree again
            self._state.receive((self._record.take(trial),))
            self._looked = None
            self._whole = True
            return trial

    def _look_for_wrong_scales(self) -> None:
        with self._lock:
            trials = self._record[:]
            self._look_at = next_look(len(trials), constrained=self.policy.constraint_count > 0)
            found = cautions(self.policy, trials, self._state.multipliers)
            if has_channels(self.policy) and self.policy.context is None:
                sure = self._look().infeasible(None)
                found |= {"infeasible": infeasible_sentence(sure)} if sure else {}  # bounds that prove nothing may err
        self._warn(found, stacklevel=4)

    def _warn(self, found: Mapping[str, str], *, stacklevel: int) -> None:
        """Say what has not been said before."""
        for kind, sentence in found.items():
            if kind in self._said:
                continue
            self._said.add(kind)
            if self.quiet:
                self.unsaid[kind] = sentence
            else:
                warnings.warn(NoRegretWarning(sentence), stacklevel=stacklevel)

    def _rebuild(self) -> None:
        """Everything afresh from the record; from the stored one where there is a storage."""
        record, state = Record(), begun(self.policy, self.goal, seed=self.seed)
        known = list(self._record) if self._storage is None else self._news(self._storage, record)
        state.receive(record.apply(known))
        self._record, self._state, self._looked = record, state, None
        self._whole = True  # last: an interrupt before this line leaves the rebuilding to the next call

    def _refresh(self) -> None:
        if not self._whole:
            self._rebuild()

    def _sync(self) -> None:
        self._refresh()
        if self._storage is not None:
            self._apply(self._news(self._storage, self._record))

    def _news(self, storage: SqlStorage, known: Record) -> list[Trial]:
        return self._auditor.news(storage.changes(self._stored, since=known.order), known)

    def _apply(self, changed: Sequence[Trial]) -> None:
        if changed:
            self._whole = False  # until record and state agree again
            self._state.receive(self._record.apply(changed))
            self._looked = None
            self._whole = True

    def _look(self) -> AnyState:
        self._sync()
        if self._looked is None:
            self._looked = self._state.settled()
        return self._looked

    def _envelope(self, points: Any, context: Any) -> Envelope:
        seen = self._given.context(context)
        with self._lock:
            return self._look().envelope(points, seen, now=self._clock_of_window())

    def _clock_of_window(self) -> float:
        """The time where a width depends on it."""
        window = self.policy.window
        return self._now() if window is not None and window.in_time else math.inf

    def _now(self) -> float:
        """The time; where waiting is measured by it, it must not go back."""
        now = float(self._clock())
        if not math.isfinite(now):
            raise NoRegretError(f"The clock says {now}, which is no time in seconds; nothing was recorded.")
        if not self._timed:
            return now
        if len(self._record):
            last = self._record[-1].asked_at
            if now < last:
                raise NoRegretError(
                    f"The clock has gone back by {last - now:g} s since the last question, and this policy measures "
                    "how long it waits for answers. Set the clock right (or pass `clock=` to the study) and try "
                    "again; nothing was recorded."
                )
        return now


def check_policy(policy: object) -> None:
    """Refuse what is no policy."""
    if not isinstance(policy, Policy | ScriptedPolicy):
        raise InvalidInput(f"`policy` must be made by an algorithm such as `gp_ucb(...)`, not {shown(policy)}.")


def _reopened(cls: type[Study], storage: str, name: str, given: dict[str, Any]) -> Study:
    return cls.open(storage=storage, name=name, **given)
