"""A study is a policy, a seed and a record: the user's one entry point."""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final, overload

import numpy.typing as npt

from .._utils.checks import LARGEST_SEED, Array, integer, new_study_name, number, shown, study_name
from .._utils.errors import InvalidInput, NoRegretError, NoRegretWarning
from .._utils.serialize import loads
from ..policy.availability import Available, Some, available
from ..policy.engines import Decision
from ..policy.policy import Policy
from ..policy.scripted import ScriptedPolicy
from ..slots.memory import Restart
from ..slots.objective import SATURATED
from ..storage.record import Record
from ..storage.trial import Plays, Trial
from . import export
from .answers import Answering, reason_of, told_by_each, told_of
from .audit import Auditor, check_facts, check_same, settings_at, stored_facts
from .cautions import FIRST, cautions, infeasible_sentence, next_look
from .direction import AnyPolicy, AnyState, Goal, check_goal, has_channels
from .inputs import Inputs
from .queries import Queries
from .replica import Replica, StoredStudyHandle, found_again
from .rewards import Rewards

if TYPE_CHECKING:
    from ..storage.base import Identity, Storage

MOST_AT_ONCE = 10_000  # trials of one `ask` or `tell_many`: one transaction
LONGEST_LEASE = 1e9  # seconds, some thirty years


@final
class Study(Queries):
    """Ask what to try, tell what came of it, as often as you like.

    >>> import nilregret as nr
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
        storage: URL of a database, such as "sqlite:///studies.db" or "postgresql://user:password@host/database", or a
            `nilregret.storage.Storage`; None keeps the record in memory.
        name: of the study within the storage; opening a name again resumes that study, which needs an equal policy,
            goal and seed.
        about: facts to keep with a stored study, which must be the same when it is resumed.
        clock: gives the time of asking and telling in Unix seconds.
        on_change: called by `ask` with each new cut of the memory, a `nilregret.slots.Restart`, once, whichever process
            told what led to it; not for those that a study had when it was opened. An error in it comes out of `ask`,
            whose trial is then on record, pending.
    """

    def __init__(
        self,
        policy: AnyPolicy,
        *,
        goal: Goal = "maximize",
        seed: int = 0,
        storage: str | Storage | None = None,
        name: str = "study",
        about: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.time,
        on_change: Callable[[Restart], object] | None = None,
    ) -> None:
        check_policy(policy)
        self.policy = policy
        self.goal: Goal = check_goal(goal)
        self._given = Inputs(policy, self.goal)
        self.seed = integer("seed", seed, low=0, high=LARGEST_SEED, why="Random streams are numbered from 0.")
        self.name = (new_study_name if storage is None else study_name)("name", name)
        self.about = check_facts(about)
        self._clock, self._on_change = clock, on_change
        if on_change is not None and not callable(on_change):
            raise InvalidInput(f"`on_change` is {shown(on_change)}: it must be a function of a restart, or None.")
        self.quiet = False  # whether warnings are kept in `unsaid` and not given
        self.unsaid: dict[str, str] = {}  # sentences by kind
        self._said: set[str] = set()  # kinds of warnings: each is given once
        self._look_at: float = FIRST  # trials at which what was told is compared with what the policy expects
        self._kept = Replica(policy, self.goal, self.seed, clock, None if storage is None else self._placed(storage))
        self._answering = Answering(policy, self._kept)
        self._announced = len(self._state.restarts)  # cuts of which `on_change` need not be told

    @classmethod
    def open(
        cls,
        *,
        storage: str | Storage,
        name: str = "study",
        clock: Callable[[], float] = time.time,
        on_change: Callable[[Restart], object] | None = None,
    ) -> Self:
        """Resume a stored study by name alone: its policy, goal and seed come from the storage."""
        from ..storage.opening import opened

        database = opened(storage, make=False)
        stored = database.find(name)
        if stored is None:
            names = ", ".join(map(repr, database.names())) or "none"
            raise InvalidInput(f"There is no study {shown(name)} in {_words(storage)}; it has: {names}.")
        policy, about = loads(stored.policy), stored_facts(stored.about, f"Study {name!r} in {_words(storage)}")
        return cls(
            policy, goal=check_goal(stored.goal), seed=stored.seed, storage=database, name=name, about=about,
            clock=clock, on_change=on_change,
        )  # fmt: skip

    def _placed(self, given: str | Storage) -> StoredStudyHandle:
        from ..storage.opening import opened

        storage, where = opened(given), _words(given)
        try:
            new_study_name("name", self.name)
        except InvalidInput:
            if storage.find(self.name) is None:  # one that is there already goes on
                raise
        policy, about = self.policy.to_json(), json.dumps(self.about, sort_keys=True)
        stored = storage.find_or_make(self.name, policy=policy, goal=self.goal, seed=self.seed, about=about)
        check_same(stored, policy, self.goal, self.seed, about, where)
        return StoredStudyHandle(storage, stored, Auditor(self.policy, self.goal, f"study {self.name!r} in {where}"))

    def __reduce__(self) -> tuple[Any, ...]:
        """A study with a storage is copied and pickled as what opens it again: both then share its record."""
        place = self._kept.place
        if place is None or not place.storage.shared:
            raise NoRegretError(
                "A study in memory cannot be copied or pickled: a trial told to one copy would be unknown to the "
                "other. Give it a `storage`, which copies and processes share; or make a new study of `study.policy`, "
                "`study.goal` and `study.seed`, and `add` the trials."
            )
        given: dict[str, Any] = {} if self._clock is time.time else {"clock": self._clock}
        if self._on_change is not None:
            given["on_change"] = self._on_change
        return _reopened, (type(self), place.storage.place, place.study.name, given, place.study.identity)

    def close(self) -> None:
        """Let go of the storage's files and connections; the next call opens them again. `with study:` does so, too."""
        if self._kept.place is not None:
            self._kept.place.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        lease: float | timedelta | None = None,
    ) -> Trial: ...
    @overload
    def ask(
        self,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        count: int,
        among: Some | None = None,
        exclude: Some | None = None,
        lease: float | timedelta | None = None,
    ) -> list[Trial]: ...
    def ask(
        self,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        count: int | None = None,
        among: Some | None = None,
        exclude: Some | None = None,
        lease: float | timedelta | None = None,
    ) -> Trial | list[Trial]:
        """The next trial to try, recorded as pending; with `count`, a list of that many.

        What pending trials count as is the policy's choice (`pending`). Most ignore them, and then mostly ask for the
        same point again until an answer comes; `gp_bucb` and `gp_ucb_sdf` spread out. A list of b is b asks, one
        after the other, in one transaction: all of them are recorded, or none.

        Args:
            context: what is known before the decision, `(c,)`, a dict of parameters or a table's row, where the policy
                has contexts.
            count: how many trials, at most 10,000.
            among: what may be played this time: arms (by number, a truth value for each, points or dicts of
                parameters), or on a box or space the points `(n, d)` or dicts to choose from. Random rounds keep to
                it too. What was available is not stored: a trial is what was decided, and is never decided again.
            exclude: arms that may not be played this time; not on a box or space.
            lease: how long an answer is waited for, seconds or a `timedelta`. After that the trial is abandoned, at the
                next call of any process that writes to the study: it no longer counts as pending. Its answer is taken
                all the same, however late.
        """
        seen = self._given.context(context)
        whole = among is None and exclude is None
        offered = None if whole else available(self.policy.domain, among, exclude)
        seconds = None if lease is None else _seconds(lease)
        if count is None:
            trial = self._kept.write(self._next, seen, offered, seconds)
            self._after_asking()
            return trial
        wanted = integer("count", count, low=1, high=MOST_AT_ONCE)
        trials = self._kept.write(lambda: [self._next(seen, offered, seconds) for _ in range(wanted)])
        self._after_asking()
        return trials

    def _after_asking(self) -> None:
        if self._state.saturated:
            self._warn({"saturated": SATURATED}, stacklevel=4)
        self._warn(self._state.remarks, stacklevel=4)
        if self._on_change is not None:
            self._announce(self._on_change)

    def _announce(self, on_change: Callable[[Restart], object]) -> None:
        with self._kept.lock:
            known, restarts = self._announced, self._state.restarts
            self._announced = len(restarts)
        for restart in restarts[known:]:
            on_change(restart)

    def tell(
        self,
        trial: Trial | int,
        reward: float | Sequence[float] | Array | Rewards | None = None,
        *,
        constraints: npt.ArrayLike | None = None,
        revise: bool = False,
    ) -> Trial:
        """Record the reward of a trial, in any order, any time later, from any process; returns it answered.

        To tell the same again changes nothing and returns the same trial, so a worker that does not know whether it was
        heard may repeat itself; another answer is refused. An answer to a trial that was abandoned is taken, and marked
        (`trial.late`): it counts as one that came while the trial was pending.

        Args:
            trial: as `ask` returned it, or its number.
            reward: finite; True and False count as 1 and 0. Where the goal is to minimise, the loss. None where only
                the constraint values are known yet (a discount, days before the purchase). Of a trial to be played
                `trial.repeats` times (`switching`) the rewards of its plays, all or fewer, or their `Rewards`.
            constraints: constraint values g `(m,)`, satisfied when <= 0; together with the reward, or by themselves
                before it. With `nr.EveryRound`, `nr.OnAverage` and `nr.Safe` also after it, and each teaches what it
                says; other policies with constraints learn nothing of a reward without them.
            revise: whether another answer corrects the one there is: the study goes on as if it had been told in the
                first place, and what was told first stays in `trial.corrected`.
        """
        told = told_of(self._given, trial, reward, constraints)
        answered = self._kept.write(self._answering.tell, told, revise=revise)
        if len(self._record) >= self._look_at:
            self._look_for_wrong_scales()
        return answered

    def tell_many(self, answers: Iterable[Any], *, revise: bool = False) -> list[Trial]:
        """Record several answers in one transaction, all of them or none; returns the trials, answered.

        Args:
            answers: each (trial, reward) or (trial, reward, constraints), or a dict of these names, as of `tell`; at
                most 10,000.
            revise: as of `tell`.
        """
        told = told_by_each(self._given, answers)
        integer("len(answers)", len(told), low=0, high=MOST_AT_ONCE)
        answered = self._kept.write(self._answering.all, told, revise=revise)
        if len(self._record) >= self._look_at:
            self._look_for_wrong_scales()
        return answered

    def fail(self, trial: Trial | int, reason: str, *, revise: bool = False) -> Trial:
        """Record that a trial will never have a reward; a point that has only failed is not asked for again.

        Where bad points are the cause, `pending=nr.slots.Ignored(failed="worst")` keeps away from their neighbours
        too. With
        `revise=True` it takes back an answer, which stays in `trial.corrected`.
        """
        return self._kept.write(self._answering.fail, trial, reason_of("failed", reason), revise=revise)

    def abandon(self, trial: Trial | int, reason: str = "its worker is gone") -> Trial:
        """Record that nobody works on a trial any more: it no longer counts as pending, and says nothing of its point.

        Its answer is taken all the same if it comes. `ask(lease=...)` does this by itself after some time.
        """
        return self._kept.write(self._answering.abandon, trial, reason_of("was abandoned", reason))

    def add(
        self,
        point_or_parameters: npt.ArrayLike | Mapping[str, Any],
        reward: float | Sequence[float] | Rewards,
        *,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        constraints: npt.ArrayLike | None = None,
    ) -> Trial:
        """Record the reward of a point that was never asked for (under a context, where the policy has them).

        The point is `(d,)`, a dict of parameters, or a table's row: by the names of its columns where the domain has
        named parameters, by their order elsewhere.
        """
        (value, plays), seen = self._given.rewards(reward), self._given.context(context)
        g = None if constraints is None else self._given.constraints(constraints)
        decision = self._given.point(point_or_parameters)._replace(repeats=1 if plays is None else plays.times)

        added = self._kept.write(self._added, decision, seen, value, g, plays)
        if len(self._record) >= self._look_at:
            self._look_for_wrong_scales()
        return added

    def add_from(self, path: str | Path) -> list[Trial]:
        """Add the trials with a reward of a file that `export` wrote, or one with such columns; returns them."""
        return export.add_from(self.add, self._given, self.policy, path)

    # -- inside --------------------------------------------------------------------------------------------------

    @property
    def _record(self) -> Record:
        return self._kept.record

    @property
    def _state(self) -> AnyState:
        return self._kept.state

    def _next(self, context: Array | None, offered: Available | None, lease: float | None) -> Trial:
        kept = self._kept
        kept.deciding()
        now = kept.now()
        decision = kept.state.decide(context, now=now, available=offered)
        trial = self._trial(decision, context, order=kept.record.order + 1, now=now)
        return kept.put(trial if lease is None else trial._replace(lease_until=now + lease))

    def _added(
        self, decision: Decision, context: Array | None, reward: float, constraints: Array | None, plays: Plays | None
    ) -> Trial:
        order = self._record.order + 1
        trial = self._trial(decision, context, order=order, now=self._kept.now())
        return self._kept.put(
            trial.answered(reward=reward, constraints=constraints, order=order, time=trial.asked_at, plays=plays)
        )

    def _trial(self, decision: Decision, context: Array | None, *, order: int, now: float) -> Trial:
        domain, contexts = self.policy.domain, self.policy.context
        point, arm, explored, repeats, fits = decision
        named = None if context is None or contexts is None else settings_at(contexts, context)
        # By place: names take half a microsecond more, in every round.
        return Trial(
            len(self._record), point, arm, settings_at(domain, point), order, now, context, explored, "pending",
            None, None, None, None, None, named, None, None, None, (), repeats, None, fits,
        )  # fmt: skip

    def _look_for_wrong_scales(self) -> None:
        with self._kept.lock:
            trials = self._record[:]
            self._look_at = next_look(len(trials), constrained=self.policy.constraint_count > 0)
            found = cautions(self.policy, trials, self._state.multipliers)
            if has_channels(self.policy) and self.policy.context is None:
                sure = self._look().infeasible(None)
                if sure:  # bounds that prove nothing may err
                    found["infeasible"] = infeasible_sentence(sure, self.policy.domain)
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


def check_policy(policy: object) -> None:
    """Refuse what is no policy."""
    if not isinstance(policy, Policy | ScriptedPolicy):
        raise InvalidInput(
            f"`policy` must be made by an algorithm, not {shown(policy)}.", advice="Such as `gp_ucb(...)`."
        )


def _seconds(lease: float | timedelta) -> float:
    seconds = lease.total_seconds() if isinstance(lease, timedelta) else lease
    why = "It is how long an answer is waited for, in seconds."
    return number("lease", seconds, low=0.0, open_low=True, high=LONGEST_LEASE, why=why)


def _words(storage: str | Storage) -> str:
    return storage if isinstance(storage, str) else str(getattr(storage, "url", storage.place))


def _reopened(cls: type[Study], url: str, name: str, given: dict[str, Any], known: Identity | None = None) -> Study:
    storage, name = found_again(url, name, known)
    return cls.open(storage=storage, name=name, **given)
