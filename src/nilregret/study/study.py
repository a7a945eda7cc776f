"""A study is a policy, a seed and a record: the entry point of users."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, final, overload

import numpy.typing as npt

from .._utils.checks import LARGEST_SEED, Array, integer, new_study_name, shown, study_name
from ..domains.domain import D, Space
from ..errors import InvalidInput, NoRegretError, NoRegretWarning, printable
from ..policy.availability import Some
from ..policy.policy import Policy
from ..policy.scripted import ScriptedPolicy
from ..serialize import loads
from ..slots.memory import Restart
from ..slots.objective import SATURATED
from ..storage.trial import GOING, Trial
from . import slates, snapshots
from .cautions import FIRST, Answered, cautions, infeasible_sentence, next_check, of_budgets, trial_cautions
from .definition import PROPENSITIES, check_facts, constraint_names, settings_as_facts, stored_facts
from .direction import Goal, as_given, check_goal, check_policy, goals_in, goals_of, has_channels, with_goals
from .late_fits import FitMode, FitRunner, check_fits
from .leases import lease_seconds
from .plain_rounds import PlainStudy, are_plain
from .play_rewards import Rewards, answer_entries, listed_answers, reason_of
from .queries import Queries
from .queue import PASSED, WITHDRAWN, Enqueued
from .replica import Replica
from .spaces import Arm
from .stored import found_or_made, reopened, words_of
from .transaction import Failed, NotYet, Transaction
from .visits import Asked, Seen, asked_of, sticky_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from ..storage.base import Storage
    from .sheet import Sheet

MOST_AT_ONCE = 10_000  # Trials of one `ask` or `tell_many`, which is one transaction.

FIT_FAILED = (
    "A fit of the hyperparameters has failed ({}). Decisions go on with those in force, and the next fit is made when "
    "more rewards are there."
)

P = ParamSpec("P")
R = TypeVar("R")


@final
class Study(Queries[D]):
    """A sequential experiment: `ask` for the next trial, `tell` its reward, as often as you like.

    >>> import nilregret as nr
    >>> policy = nr.gp_ucb(nr.Arms.grid(0, 1, 100), nr.SquaredExponential(0.2), noise=0.1)
    >>> study = nr.Study(policy, seed=0)
    >>> for _ in range(20):
    ...     trial = study.ask()
    ...     reward = -((trial.point[0] - 0.3) ** 2)
    ...     _ = study.tell(trial, reward)

    Each trial depends on the policy, the seed and the record alone. Queries (`predict`, `best`, ...) change nothing.
    Several threads may use one study. With a storage, several processes may use it at once.

    Args:
        policy: made by one of the algorithm functions.
        goal: "maximize" rewards, or "minimize" losses, errors or costs. All numbers that you give and get are in the
            units told. So are the policy's `prior_mean` and the `minimum` of censored answers, which is the worst
            value (of losses the largest). A part of your own always sees rewards, which are minus the losses. Of
            several objectives (`nr.auto(space, objectives=2)`), a word for all, or a tuple with one for each.
        seed: of all random choices, a whole number >= 0.
        storage: URL of a database, such as "sqlite:///studies.db" or "postgresql://user:password@host/database", or a
            `nilregret.storage.Storage`. None keeps the record in memory.
        name: of the study within the storage. If the storage has a study of this name, that study is resumed. The
            policy, goal and seed must then equal those on record.
        about: facts to store with a new study. A resumed study must have the same facts.
        propensities: if True, each decision is recorded with its probability (`Trial.propensity`), which a log needs to
            say what another policy would have earned. It is among the facts, so a study that is opened again keeps it.
        sticky: if True, a unit (`ask(unit=)`) keeps the arm or point chosen for it, as long as that may be played.
            Seconds or a `timedelta` say for how long. It is among the facts, as `propensities`.
        clock: returns the time of asking and telling in Unix seconds.
        on_change: called by `ask` once with each new cut of the memory, a `nilregret.slots.Restart`, whichever process
            told the reward that led to it. Cuts on record when the study was opened are skipped. `ask` raises an error
            of this function after its trial was recorded as pending.
        fits: "inline" makes a fit of hyperparameters in the `ask` for which it is due. "pending" leaves it to
            `fit_pending`. An executor, such as a `concurrent.futures.ThreadPoolExecutor(1)`, makes it meanwhile. Until
            it is ready, decisions go on with the hyperparameters in force. It comes into force, and on record, with the
            first decision after that.

    Attributes:
        goals: the goal of each objective, of which most studies have one.
        seed: as given.
        name: as given.
        about: as given, with `propensities` and `sticky` if they are on.
        propensities: as given.
        quiet: if True, warnings go to `held_warnings` instead of Python's `warnings`.
        held_warnings: sentences of held warnings, by kind.
        replica: record, state and storage, for programs that serve or test studies.
        late_fits: fits that are made apart from decisions, with counts, or None if decisions make them.

    Raises:
        InvalidInput: an argument cannot be used, or the stored study was made with other ones.
        StorageError: the storage cannot be used.
    """

    def __init__(
        self,
        policy: Policy[D] | ScriptedPolicy,
        *,
        goal: Goal | Sequence[Goal] = "maximize",
        seed: int = 0,
        storage: str | Storage | None = None,
        name: str = "study",
        about: Mapping[str, str] | None = None,
        propensities: bool = False,
        sticky: bool | float | timedelta = False,
        clock: Callable[[], float] = time.time,
        on_change: Callable[[Restart], object] | None = None,
        fits: FitMode = "inline",
    ) -> None:
        check_policy(policy)
        self.goals: tuple[Goal, ...] = goals_of(policy, goal)
        self.seed = integer("seed", seed, low=0, high=LARGEST_SEED, why="Random streams are numbered from 0.")
        self.name = (new_study_name if storage is None else study_name)("name", name)
        self.about = check_facts(about) | settings_as_facts(propensities=propensities, sticky=sticky)
        self.propensities = self.about.get(PROPENSITIES) is True
        self._on_change = _checked_function(on_change)
        self.quiet, self.held_warnings = False, dict[str, str]()
        self._warned: set[str] = set()  # Kinds of warnings: each is given once.
        self._next_check: float = FIRST  # The number of trials at which rewards are compared with the policy's scales.
        policy, first = with_goals(policy, self.goals), self.goals[0]
        policy, handle = found_or_made(policy, storage, goal=first, seed=self.seed, name=self.name, facts=self.about)
        late = check_fits(fits)
        self.replica = Replica(policy, first, self.seed, clock, handle, late)
        self.replica.sticky = sticky_seconds(self.about)
        self.late_fits = None if late is None else FitRunner(self.replica, None if isinstance(fits, str) else fits)
        fitted = isinstance(policy, Policy) and policy.fitting is not None
        self._fits = self.late_fits if fitted else None  # Those to begin after each call.
        plain = PlainStudy(self.replica) if are_plain(self.replica, propensities=self.propensities) else None
        self._calls = Transaction(self.replica, propensities=self.propensities, plain=plain)  # Each call without notes.
        self._plain = plain if handle is None else None  # In memory a plain call needs no transaction.
        charges = isinstance(policy, Policy) and (policy.objective.revises or policy.confidence.guess() is not None)
        self._remarks = charges or has_channels(policy)  # Whether a decision may lead to a warning.
        self._announced = len(self.replica.state.restarts)  # Cuts of the memory that `on_change` has seen or skips.

    @classmethod
    def open(
        cls,
        storage: str | Storage,
        *,
        name: str | None = None,
        clock: Callable[[], float] = time.time,
        on_change: Callable[[Restart], object] | None = None,
        fits: FitMode = "inline",
    ) -> Self:
        """Resumes a stored study by name: its policy, goal and seed come from the storage.

        Args:
            storage: see `Study`.
            name: of the study within the storage. The default is the only one, or "study".
            clock: see `Study`.
            on_change: see `Study`.
            fits: see `Study`.

        Raises:
            InvalidInput: the storage has no study of this name.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> policy = nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1)
        >>> study = nr.Study(policy, storage="sqlite:///oven.db", name="oven")
        >>> _ = study.add([3.0], 0.5)
        >>> study.close()
        >>> nr.Study.open(storage="sqlite:///oven.db", name="oven").trials[0].reward
        0.5
        """
        from ..storage.sql import opened

        database = opened(storage, make=False)
        if name is None:
            name = names[0] if len(names := database.names()) == 1 else "study"
        stored = database.find(name)
        if stored is None:
            listed = ", ".join(map(repr, database.names())) or "none"
            raise InvalidInput(f"There is no study {shown(name)} in {words_of(storage)}; it has: {listed}.")
        policy, about = loads(stored.policy), stored_facts(stored.about, f"Study {name!r} in {words_of(storage)}")
        check_policy(policy)
        goal = as_given(goals_in(policy, check_goal(stored.goal)))
        return cls(
            policy, goal=goal, seed=stored.seed, storage=database, name=name, about=about,
            clock=clock, on_change=on_change, fits=fits,
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the way to open a stored study again, so that both copies share its record."""
        handle = self.replica.handle
        if handle is None or not handle.storage.shared:
            raise NoRegretError(
                "A study in memory cannot be copied or pickled: a trial told to one copy would be unknown to the "
                "other. Give it a `storage`, which copies and processes share; or make a new study of `study.policy`, "
                "`study.goal` and `study.seed`, and `add` the trials."
            )
        clock = self.replica.clock
        given: dict[str, Any] = {} if clock is time.time else {"clock": clock}
        if self.late_fits is not None:
            given["fits"] = "pending"  # an executor stays with its process
        if self._on_change is not None:
            given["on_change"] = self._on_change
        return reopened, (type(self), handle.storage.place, handle.study.name, given, handle.study.identity)

    def close(self) -> None:
        """Closes the storage's files and connections. The next call opens them again, and `with study:` closes them."""
        if self.replica.handle is not None:
            snapshots.keep(self.replica, least=snapshots.AT_CLOSE)
            self.replica.handle.storage.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        made = printable(self.policy.algorithm) + f", goal={self.goal!r}" * (self.goal != "maximize")
        return f"Study({self.name!r}, {made}, seed={self.seed}, {self.replica.record!r})"

    # -- asking and telling --------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        count: None = None,
        among: Some | None = None,
        exclude: Some | None = None,
        lease: float | timedelta | None = None,
        unit: str | None = None,
        event: str | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> Trial[D]: ...
    @overload
    def ask(
        self,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        count: int,
        among: Some | None = None,
        exclude: Some | None = None,
        lease: float | timedelta | None = None,
        unit: str | None = None,
        event: str | None = None,
        facts: Mapping[str, Any] | None = None,
        slate: bool = False,
    ) -> list[Trial[D]]: ...
    def ask(
        self,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        count: int | None = None,
        among: Some | None = None,
        exclude: Some | None = None,
        lease: float | timedelta | None = None,
        unit: str | None = None,
        event: str | None = None,
        facts: Mapping[str, Any] | None = None,
        slate: bool = False,
    ) -> Trial[D] | list[Trial[D]]:
        """Returns the next trial, recorded as pending. With `count`, returns a list of that many.

        The policy's `pending` part says how pending trials are treated. Most policies ignore them, and then mostly
        ask for the same point again until a reward comes. `gp_bucb`, `gp_ucb_sdf` and `auto(parallel=k)` spread out.
        So does `auto` in boxes and spaces, if it has no contexts and no constraints. Under a context, several trials on
        arms are at different arms as long as there are enough. A list of b trials is b decisions in turn, recorded in
        one transaction: all of them, or none.

        Args:
            context: known before the decision, if the policy has contexts: `(c,)`, a dict of parameters or a table's
                row.
            count: number of trials, at most 10,000.
            among: points that may be played this time. On arms: their numbers, a truth value for each, points or dicts
                of parameters. On a box or space: points `(n, d)` or dicts. Random rounds keep to them too. They are
                not stored, because a recorded trial is never decided again.
            exclude: arms that may not be played this time. Boxes and spaces do not take it.
            lease: time to wait for the reward, seconds or a `timedelta`. After it, the next call of any process that
                writes to the study abandons the trial, which then no longer counts as pending. Its reward is still
                accepted, however late. Each report of the trial begins the lease anew.
            unit: the visitor, machine or account that the decision is for, a text. Its trials belong together
                (`trial.unit`), and with `Study(sticky=...)` it keeps its arm or point. The text itself is not recorded.
            event: your own id of the decision, a text. `tell` takes it in place of the trial. The same event again
                returns the same trial and records nothing.
            facts: what you want to find again with the decision, by name: finite numbers, texts, True, False or None,
                at most 20. Decisions do not depend on them.
            slate: if True, the trials are the places of one slate, in order, each at another arm (`trial.slate`,
                `trial.place`). The propensity of each is given the places before. `tell_slate` answers them. An event
                is then that of the whole slate, and a unit keeps all its places.

        Raises:
            InvalidInput: an argument cannot be used.
            NoRegretError: nothing is left to play: everything has failed, or nothing is certified (`nr.Safe`).
            TrialError: the event is of a decision under another context.
            StorageError: the trial could not be recorded.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> study.ask().state
        'pending'
        >>> [trial.number for trial in study.ask(count=3)]
        [1, 2, 3]
        """
        replica, whole = self.replica, among is None and exclude is None
        asks_alone = unit is None and event is None and facts is None
        single = whole and asks_alone and lease is None and count is None and slate is False
        if single and self._plain is not None and (found := self._plain.ask(context)) is not None:
            return found
        seen = None if context is None and replica.roster.policy.context is None else Seen(context, replica.inputs)
        offered = None if whole else self.offered(among, exclude)
        seconds = None if lease is None else lease_seconds(lease)
        asked = None if asks_alone else self._asked(unit, event, facts, None if slate else count)
        if slate is not False:
            slate = slates.check_slate(slate, count)
        if count is None:
            trial = self._write_surely(self._calls.ask, seen, offered, seconds, asked)
            if self._remarks or self._on_change is not None or replica.queue.passed:
                self._after_ask()
            return trial
        wanted = integer("count", count, low=1, high=MOST_AT_ONCE)
        trials = self._write(slates.decided, self._calls, seen, offered, seconds, asked, wanted, slate=slate)
        self._after_ask()
        if not slate:
            self._warn(slates.repeats(replica.roster, offered, asked, wanted), stacklevel=3)
        return trials

    def _asked(
        self, unit: str | None, event: str | None, facts: Mapping[str, Any] | None, count: int | None
    ) -> Asked | None:
        """Returns what the caller says of a decision, checked."""
        handle = self.replica.handle
        if event is not None and count is not None:
            raise InvalidInput(f"`event` names one decision, and `count` asks for {shown(count)}: ask for each alone.")
        if unit is not None and handle is not None and not handle.keeps_notes:
            raise InvalidInput("`unit` needs a storage that keeps notes, as SQLite, PostgreSQL and memory do.")
        return asked_of(event, unit, facts)

    def forget(self, unit: str) -> bool:
        """Removes the link from a unit to its trials, which stay on record, and returns True if there was one.

        Nothing on record says any more whose they are. The next decision for this unit is that of a new one.

        Args:
            unit: as `ask` was given it.

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Arms(range(3)), reward="bernoulli"), sticky=True)
        >>> first, again = study.ask(unit="user-17"), study.ask(unit="user-17")
        >>> again.arm == first.arm, again.kept, study.forget("user-17")
        (True, 0, True)
        """
        asked = self._asked(unit, None, None, None)
        return asked is not None and self.replica.write(self._calls.forget, unit)

    def enqueue(self, points: Any) -> list[Enqueued]:
        """Records points to try first, and returns them as they wait.

        Each is tried once, in order: the next `ask`, of any process, takes the first one that may be played then. Such
        a trial is marked (`trial.enqueued`) and counts as any other. So an initial design is as much shorter. It has no
        propensity, since no policy drew it.

        Args:
            points: one, or a list of several. A dict of parameters, of all or of some: the policy chooses the others as
                the best ones for the given values. Or coordinates `(d,)`, or the number of an arm.

        Raises:
            InvalidInput: a point is outside of the domain or its limits, is retired, or waits already. Then none is
                recorded.

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Space(rate=nr.Float(1e-4, 1.0, log=True), depth=nr.Int(1, 8))))
        >>> _ = study.enqueue([{"rate": 0.01, "depth": 3}, {"depth": 2}])
        >>> study.ask().parameters
        {'rate': 0.01, 'depth': 3}
        >>> study.ask().parameters["depth"], study.enqueued
        (2, [])
        """
        return self.replica.write(self._calls.enqueue, points)

    def withdraw(self, entry: int) -> None:
        """Takes a point that waits out of the queue.

        Args:
            entry: its number in `enqueued`.

        Raises:
            InvalidInput: no such entry waits.

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Box(0, 1)))
        >>> (entry,) = study.enqueue([0.3])
        >>> study.withdraw(entry.number)
        >>> study.enqueued
        []
        """
        self.replica.write(self._calls.withdraw, entry)

    def tell(
        self,
        trial: Trial | int | str,
        reward: float | Sequence[float] | Array | Rewards | Mapping[str, float] | None = None,
        *,
        constraints: npt.ArrayLike | None = None,
        std: float | Sequence[float | None] | Mapping[str, float] | None = None,
        metrics: Mapping[str, float] | None = None,
        revise: bool = False,
    ) -> Trial[D]:
        """Records the reward of a trial and returns the trial with it.

        Rewards may come in any order, at any time, from any process. `tell` is idempotent: a repeated call with the
        same answer returns the same trial and records nothing. A different answer is refused. The reward of an
        abandoned trial is accepted and marked (`trial.late`). It counts like one that came while the trial was pending.

        Args:
            trial: as `ask` returned it, its number, or its event.
            reward: a finite number. True and False count as 1 and 0. If the goal is to minimise, the loss. None if
                only the constraint values are known yet (a discount, days before the purchase). If the trial is to be
                played `trial.repeats` times (`switching`), the rewards of all or fewer plays, or their `Rewards`. Of
                several objectives, the value of each, in their order or by name, with the constraint values.
            constraints: constraint values g `(m,)`, satisfied when <= 0, with the reward or before it. With
                `nr.EveryRound`, `nr.OnAverage` and `nr.Safe` also after it, and the policy learns from each by itself.
                Other policies with constraints learn nothing from a reward without constraint values.
            std: standard deviation of the noise of this reward, reward units, where it is known: the standard error of
                a mean over folds, an error bar. Of several plays, that of each. It takes the place of the policy's
                noise, given or fitted. 0 says that the reward is exact. None says nothing. Of several objectives, one
                for each, or by name.
            metrics: further numbers to keep with the reward, by name, such as {"accuracy": 0.93, "epochs": 12}. At most
                100. They are in `trial.metrics` and in every table. Decisions do not depend on them.
            revise: if True, a different answer corrects the one on record. The study goes on as if the correction had
                been told first. `trial.corrected` keeps the earlier answer.

        Raises:
            InvalidInput: the reward or the constraint values cannot be used.
            TrialError: there is no such trial, or it has a different answer.
            StorageError: the reward could not be recorded.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> trial = study.ask()
        >>> study.tell(trial, 0.7).state
        'observed'
        >>> study.tell(trial.number, 0.7).reward  # the same answer again changes nothing
        0.7
        """
        alone = constraints is None and std is None and metrics is None and not revise
        answered = self._plain.tell(trial, reward) if alone and self._plain is not None else None
        if answered is None:
            told = self.replica.inputs.answer(trial, reward, constraints, std, metrics)
            surely = self.replica.record.awaits(trial)
            answered = (self._write_surely if surely else self._write)(self._calls.tell, told, revise)
        self._after_tell()
        return answered

    def tell_many(self, answers: Iterable[Any], *, revise: bool = False) -> list[Trial[D]]:
        """Records several answers in one transaction, all or none, and returns the trials with them.

        Args:
            answers: each (trial, reward) or (trial, reward, constraints), or a dict of these names, "std" and
                "metrics" (see `tell`). At most 10,000.
            revise: see `tell`.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> trials = study.ask(count=2)
        >>> [trial.reward for trial in study.tell_many([(trials[0], 0.1), (trials[1], 0.2)])]
        [0.1, 0.2]
        """
        told = [self.inputs.answer(**answer_entries(answer)) for answer in listed_answers(answers)]
        integer("len(answers)", len(told), low=0, high=MOST_AT_ONCE)
        answered = self._write(self._calls.tell_all, told, revise=revise)
        self._after_tell()
        return answered

    def tell_slate(
        self,
        slate: Trial | int | str | Sequence[Trial],
        rewards: Sequence[float | None] | None = None,
        *,
        clicked: int | Sequence[int] | None = None,
        revise: bool = False,
    ) -> list[Trial[D]]:
        """Records answers of the places of a slate in one transaction, all or none, and returns its trials.

        Each place may also be answered alone, by `tell` and its trial. A model of places says what the answers teach
        (`nr.auto(arms, slate="cascade")`). It is idempotent, as `tell` is.

        Args:
            slate: as `ask` returned it, or one of its trials, the number of one, or the event of the slate.
            rewards: of each place, in order. None where nothing is known yet.
            clicked: in place of rewards: the places whose reward is 1, one or several. All others have the reward 0.
            revise: see `tell`.

        Raises:
            InvalidInput: the answers do not fit the slate.
            TrialError: the trial is of no slate, or a place has a different answer.

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Arms(range(6)), reward="bernoulli"))
        >>> page = study.ask(count=3, slate=True)
        >>> [(trial.place, trial.reward) for trial in study.tell_slate(page, clicked=1)]
        [(0, 0.0), (1, 1.0), (2, 0.0)]
        """
        answered = self._write(slates.told, self._calls, slate, rewards, clicked, revise=revise)
        self._after_tell()
        return answered

    def fail(self, trial: Trial | int | str, reason: str, *, revise: bool = False) -> Trial[D]:
        """Records that a trial will never have a reward, and returns the trial.

        A point that has only failed is not asked for again. If bad points are the cause,
        `pending=nr.slots.Ignored(failed="worst")` keeps away from their neighbours too.

        Args:
            trial: as `ask` returned it, its number, or its event.
            reason: why it failed, in words.
            revise: if True, the failure replaces a reward on record, which `trial.corrected` keeps.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> study.fail(study.ask(), "out of memory").reason
        'out of memory'
        """
        reason = reason_of("failed", reason)
        return self._write(self._calls.fail, trial, reason, revise=revise)

    def report(self, trial: Trial | int | str, step: int, value: float) -> bool:
        """Records the value of a running trial after a step, and returns True if going on is worth it.

        The pruning rule of the policy decides (`nr.auto(space, pruning="median")`). Without a rule it is always worth
        it. If not, `stop` ends the trial. A report is idempotent: a repeated one records nothing and is judged anew, so
        a paused trial may ask whether it goes on now.

        Args:
            trial: as `ask` returned it, its number, or its event.
            step: a whole number, at least 0, that grows from report to report.
            value: after this step, in the units of the reward (the loss, if the goal is to minimise).

        Raises:
            InvalidInput: step or value cannot be used, or the study has several objectives.
            TrialError: the trial has its answer, or has reported this step or a later one.

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Space(rate=nr.Float(0, 1))), goal="minimize")
        >>> trial = study.ask()
        >>> study.report(trial, 1, 0.9), study.report(trial, 2, 0.7)
        (True, True)
        >>> study.stop(trial).steps
        [(1, 0.9), (2, 0.7)]
        """
        checked = self.replica.inputs.report(step, value)
        _, verdict = self._write(self._calls.report, trial, *checked)
        return verdict in GOING

    def stop(self, trial: Trial | int | str, reason: str | None = None) -> Trial[D]:
        """Records that a trial was stopped before its last step, and returns the trial.

        A stopped trial teaches the model what the pruning rule says (`nilregret.slots.Pruning.learned`). It is never
        the best one. `tell(..., revise=True)` records a reward in its place.

        Args:
            trial: as `ask` returned it, its number, or its event. It has reported at least once.
            reason: in words. The pruning rule gives one if it stopped the trial.

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Space(rate=nr.Float(0, 1))), goal="minimize")
        >>> trial = study.ask()
        >>> _ = study.report(trial, 1, 0.9)
        >>> study.stop(trial).state
        'stopped'
        """
        given = None if reason is None else reason_of("was stopped", reason)
        return self._write(self._calls.stop, trial, given)

    def abandon(self, trial: Trial | int | str, reason: str = "its worker is gone") -> Trial[D]:
        """Records that nobody works on a trial any more, and returns the trial.

        The trial no longer counts as pending, and the policy learns nothing about its point. Its reward is accepted if
        it comes. `ask(lease=...)` abandons a trial after some time.

        Args:
            trial: as `ask` returned it, its number, or its event.
            reason: in words.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> study.abandon(study.ask(), "the worker is gone").state
        'abandoned'
        """
        reason = reason_of("was abandoned", reason)
        return self._write(self._calls.abandon, trial, reason)

    def add(
        self,
        point_or_parameters: npt.ArrayLike | Mapping[str, Any],
        reward: float | Sequence[float] | Rewards | Mapping[str, float],
        *,
        context: npt.ArrayLike | Mapping[str, Any] | None = None,
        constraints: npt.ArrayLike | None = None,
        std: float | Sequence[float | None] | Mapping[str, float] | None = None,
        metrics: Mapping[str, float] | None = None,
    ) -> Trial[D]:
        """Records the reward of a point that was not asked for, and returns the new trial.

        Args:
            point_or_parameters: `(d,)`, a dict of parameters, or a table's row. Columns of a row are matched by name if
                the domain has named parameters, else by order.
            reward: see `tell`.
            context: of the trial, if the policy has contexts.
            constraints: see `tell`.
            std: see `tell`.
            metrics: see `tell`.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> study.add([3.0], 0.5).arm
        3
        >>> len(study.trials)
        1
        """
        answer = self.inputs.observation(reward, constraints, std, metrics)
        seen = Seen(context, self.inputs)
        # Read inside the transaction, because another process may have changed the space.
        added = self._write(lambda: self._calls.add(self.replica.inputs.point(point_or_parameters), seen, *answer))
        self._after_tell()
        return added

    def add_from(self, table: Any, *, decimal: str | None = None) -> list[Trial[D]]:
        """Records the rewards of a table or a file, all or none, and returns their trials.

        A row with the `number` or the `event` of a trial of this study is the answer to it: it is told, once. Other
        rows are new trials. Warnings name columns that mean nothing, and count rows left out without a reward.

        Args:
            table: path of a CSV, JSON lines, JSON, Parquet or Arrow file, such as one that `export` wrote, or of a log
                that `nr.evaluate` reads. Or a data frame, a mapping of columns, or a list of dicts. Columns: the
                parameters (or `parameters.NAME`, `point.0`, ..., or `arm` or `action`) and `reward` (or `value`, or
                `loss` if the goal is to minimise). There may be `std`, `propensity`, `context.NAME`, `constraints.0`,
                `metrics.NAME`, `unit`, `event`, `facts.NAME`, ... Several objectives have columns `values.NAME` (or
                `NAME`) and perhaps `stds.NAME`. Another study is a table of its trials.
            decimal: "." or ",", the decimal mark of a CSV file. None leaves it to the file, which is refused if its
                numbers have two readings, such as 1.250.

        Raises:
            InvalidInput: the table cannot be read, a row cannot be used, or no row has a reward.
            TrialError: a trial has a different answer.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.add([3.0], 0.5)
        >>> _ = study.export("trials.csv")
        >>> other = nr.Study(study.policy, seed=1)
        >>> _ = other.add_from("trials.csv")
        >>> other.trials[0].reward
        0.5
        """
        from . import export, importing

        if isinstance(table, Study):
            table = export.columns_of(table.policy, table.trials, table.replica.roster.columns)
        named = self.goals[0], self.name, decimal
        take = importing.taking(table, self.replica, *named, propensities=self.propensities)
        taken = self._write(take, self._calls)
        self._after_tell()
        return taken

    def sheet(
        self, count: int = 0, path: str | Path | None = None, *, digits: int = 3, decimal: str = ".",
        context: npt.ArrayLike | Mapping[str, Any] | None = None, lease: float | timedelta | None = None,
    ) -> Sheet:  # fmt: skip
        """Asks for trials to run by hand, and returns a table of them to fill in, which `add_from` reads.

        Numbers are rounded before a trial is recorded, so the trial is what stands on the sheet. Such a trial is marked
        as `enqueue` marks it (`trial.enqueued`). Those of a `step`, whole numbers and arms stay as the policy chose.

        In the sheet, `value` takes the reward (the loss), or the word `failed` or `abandoned`. Empty rows stay pending.
        If a person set other values than asked, write these: the trial is abandoned, and a new one has these values.

        Args:
            count: number of trials, at most 10,000. With 0 the sheet is of the pending trials, and nothing is asked.
            path: of a new file, in .csv or in .html for a page to print. None writes none (`Sheet.write` does).
            digits: 1 to 12. 3 rounds to a thousandth of each range or finer, and logarithmic ones to 3 significant
                digits. If limits, constraints or earlier trials leave no such point, more digits are taken.
            decimal: "." or "," in the file (see `Sheet.write`).
            context: see `ask`.
            lease: see `ask`.

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Space(heat=nr.Float(20, 90), rate=nr.Float(0.01, 1, log=True))))
        >>> sheet = study.sheet(2)
        >>> sheet.columns
        ['number', 'heat', 'rate', 'value', 'std', 'remarks', 'sheet']
        >>> sheet.to_csv().splitlines()[1]
        '0,31.7,0.947,,,,study'
        """
        from .sheet import ask_rounded, check_form, sheet_of

        wanted = integer("count", count, low=0, high=MOST_AT_ONCE)
        check_form(path, digits, decimal)
        replica, policy = self.replica, self.policy
        seen = None if not wanted or (context is None and policy.context is None) else Seen(context, replica.inputs)
        seconds = None if lease is None else lease_seconds(lease)
        if wanted:
            trials = self._write(lambda: [ask_rounded(self._calls, seen, seconds, digits) for _ in range(wanted)])
            self._after_ask()
        else:
            trials = [trial for trial in self.trials if trial.state == "pending"]
        made = sheet_of(self.name, policy, trials, constraint_names(self.about, policy.constraint_count))
        if path is not None:
            made.write(path, decimal=decimal)
        return made

    # -- arms ----------------------------------------------------------------------------------------------------

    def add_arms(
        self, points: npt.ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]], *,
        names: Sequence[str | None] | None = None, about: Sequence[Mapping[str, Any] | None] | None = None,
    ) -> list[Arm]:  # fmt: skip
        """Adds arms to the running study, and returns them. They get the next numbers.

        The kernel stays as it is, and so do its lengthscales. What is known of similar arms is known of a new arm at
        once. The next decision may play it. Each call makes the posterior anew from the whole record.

        Args:
            points: coordinates `(k, d)`, or dicts of parameters if the arms have named ones.
            names: of the new arms, one or None each.
            about: facts about each new arm that JSON can hold, or None.

        Raises:
            InvalidInput: the policy plays no `Arms`, or a part of it cannot have more of them.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> (scarf,) = study.add_arms([[11.0]], names=["scarf"])
        >>> scarf.number, scarf.name
        (11, 'scarf')
        """
        return self.replica.write(self._calls.add_arms, points, names, about)

    def retire_arm(self, arm: int) -> Arm:
        """Retires an arm, and returns it: no later decision plays it.

        It keeps its number, its trials still teach about similar arms, and its pending trials may be told. To retire
        it again records nothing.

        Args:
            arm: its number.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.retire_arm(3)
        >>> study.arms[3].retired
        True
        """
        return self.replica.write(self._calls.move_arm, arm, "retired")

    def restore_arm(self, arm: int) -> Arm:
        """Brings a retired arm back, and returns it. Decisions may play it again, and nothing of it was forgotten.

        Args:
            arm: its number.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.retire_arm(3), study.restore_arm(3)
        >>> study.arms[3].retired
        False
        """
        return self.replica.write(self._calls.move_arm, arm, "restored")

    def describe_arm(self, arm: int, *, name: str | None = None, about: Mapping[str, Any] | None = None) -> Arm:
        """Records a name of an arm, facts about it, or both, and returns the arm. Decisions do not depend on them.

        Args:
            arm: its number.
            name: the new name, or None to leave it.
            about: the new facts, which JSON can hold, or None to leave them.

        >>> import nilregret as nr
        >>> arms = nr.Arms.grid(0, 10, 11)
        >>> study = nr.Study(nr.gp_ucb(arms, nr.SquaredExponential(2.0), noise=0.1))
        >>> _ = study.describe_arm(3, name="scarf")
        >>> study.arms[3].name
        'scarf'
        """
        return self.replica.write(self._calls.describe_arm, arm, name, about)

    # -- the space -----------------------------------------------------------------------------------------------

    def widen(self, /, *, was: Mapping[str, Any] | None = None, context: Any = None, **parameters: Any) -> Space:
        """Records another space of the running study, or of its contexts, and returns it. Every trial still teaches.

        A range may become wider or narrower, a scale logarithmic or not, steps finer or coarser. A choice may get or
        lose options, and parameters may be new. Trials outside of a narrower space stay as data, but no round plays
        them again and `best` leaves them out. Limits and conditions stay. Lengthscales are shares of the ranges, so
        hyperparameters are fitted anew with the next decision. If the space is as wanted already, nothing is recorded.

        A level of a context that is declared at last takes over the trials that came with it while it was unknown
        (`nr.Choice(..., unknown=True)`). Their propensities stay.

        Args:
            was: value that each new parameter had in the trials so far, such as {"momentum": 0.0}. A new parameter of
                contexts that has `unknown=True` needs none: it was unknown.
            context: changed and new parameters of contexts by name, in place of parameters of the space, as in
                `widen(context={"device": nr.Choice("phone", "tablet", unknown=True)})`.
            parameters: changed and new parameters, each a `Float`, `Int` or `Choice`, or `when(...)` if it is new.

        Raises:
            InvalidInput: the study plays in no `Space`, or a trial has no place in the new one. Or a part of the policy
                belongs to the old one. Then nothing is recorded.

        >>> import nilregret as nr
        >>> study = nr.Study(nr.auto(nr.Space(rate=nr.Float(0.0, 0.1))), goal="minimize")
        >>> _ = study.add({"rate": 0.08}, 0.3)
        >>> study.widen(rate=nr.Float(0.0, 1.0), momentum=nr.Float(0.0, 0.9), was={"momentum": 0.0})
        Space(rate=Float(low=0.0, high=1.0, log=False), momentum=Float(low=0.0, high=0.9, log=False))
        >>> sorted(study.ask().parameters)
        ['momentum', 'rate']
        """
        context = context.parameters if isinstance(context, Space) else context
        contexts = isinstance(context, Mapping)
        if contexts and parameters:
            raise InvalidInput("One change is of the space or of its contexts: make one after the other.")
        if context is not None and not contexts:
            parameters["context"] = context  # A parameter of that name.
        return self.replica.write(self._calls.widen, context if contexts else parameters, was, of_context=contexts)

    def group_commit(
        self, acts: Sequence[Callable[[Transaction], R]], *, keys: Iterable[str] = (), seconds: float
    ) -> list[R | Failed | NotYet]:
        """Runs several calls in this order with one commit, and returns the outcome of each. Servers use it.

        Args:
            acts: functions of the `nilregret.study.transaction.Transaction`.
            keys: of the notes that the calls may read, if the storage keeps notes.
            seconds: time for the calls since the first one began. After it, all calls but the first two are `NotYet`.
                So are those after a call that returned `Going`.

        Returns:
            The result of each call, or `Failed` with its error. A failed call leaves no trace.
        """
        from .group_commit import group_commit

        found = group_commit(self.replica, acts, self._calls, keys=keys, seconds=seconds)
        if self._fits is not None:
            self._begin_fits(self._fits)
        self._after_ask()
        self._after_tell()
        return found

    # -- fits apart from decisions -------------------------------------------------------------------------------

    def fit_pending(self) -> int:
        """Makes the fits of hyperparameters that are due, and returns how many it made.

        They come into force with the next decision. Other threads may ask and tell meanwhile. If the study was made
        with `fits="inline"`, decisions make all fits and none is made here. If it has an executor, the fits that the
        executor has begun are left to it.
        """
        if self.late_fits is None:
            return 0
        with self.replica.lock:
            self.replica.sync()
        return self.late_fits.make()

    def _write(self, act: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        result = self.replica.write(act, *args, **more)
        if self._fits is not None:
            self._begin_fits(self._fits)
        return result

    def _write_surely(self, act: Callable[P, R], *args: P.args, **more: P.kwargs) -> R:
        result = self.replica.write_surely(act, *args, **more)
        if self._fits is not None:
            self._begin_fits(self._fits)
        return result

    def _begin_fits(self, fits: FitRunner) -> None:
        fits.begin()
        error, fits.error = fits.error, None
        if error is not None:
            self._warn({"fit": FIT_FAILED.format(f"{type(error).__name__}: {error}")}, stacklevel=5)

    # -- warnings ------------------------------------------------------------------------------------------------

    def _after_ask(self) -> None:
        state = self.replica.state
        if state.saturated:
            self._warn({"saturated": SATURATED}, stacklevel=4)
        self._warn(state.remarks, stacklevel=4)
        for entry, reason, _ in self.replica.queue.passed:
            if reason != WITHDRAWN:
                said = PASSED.format(entry.number, reason)
                self._warn({f"entry {entry.number}": said}, stacklevel=4)
        if self._on_change is not None:
            self._announce(self._on_change)

    def _announce(self, on_change: Callable[[Restart], object]) -> None:
        with self.replica.lock:
            known, restarts = self._announced, self.replica.state.restarts
            self._announced = len(restarts)
        for restart in restarts[known:]:
            on_change(restart)

    def _after_tell(self) -> None:
        """Compares the rewards told with the policy's scales, at 4, 16, 64, ... trials."""
        if len(self.replica.record.trials) < self._next_check:
            return
        with self.replica.lock:
            trials = [self.replica.roster.moved(trial) for trial in self.replica.record.at_hand]
            self._next_check = next_check(len(self.replica.record), constrained=self.policy.constraint_count > 0)
            found = cautions(self.policy, Answered.of(trials), self.replica.state.multipliers)
            found |= of_budgets(self.replica.state, trials[-1].context)
            found |= trial_cautions(self.policy, trials, propensities=self.propensities)
            if has_channels(self.policy) and self.policy.context is None:
                probability = self.replica.current().infeasible(None)
                if probability:  # It is 0 if the bounds prove nothing, and such bounds may err.
                    found["infeasible"] = infeasible_sentence(probability, self.policy.domain)
        self._warn(found, stacklevel=4)

    def _warn(self, found: Mapping[str, str], *, stacklevel: int) -> None:
        """Gives each kind of warning once, or holds it if the study is quiet."""
        for kind, sentence in found.items():
            if kind in self._warned:
                continue
            self._warned.add(kind)
            if self.quiet:
                self.held_warnings[kind] = sentence
            else:
                warnings.warn(NoRegretWarning(sentence), stacklevel=stacklevel)


def _checked_function(on_change: Any) -> Callable[[Restart], object] | None:
    if on_change is not None and not callable(on_change):
        raise InvalidInput(f"`on_change` is {shown(on_change)}: it must be a function of a restart, or None.")
    return on_change  # type: ignore[no-any-return]
