"""A transaction on a study: its decisions and rewards are committed together.

A commit takes longer than the decision that it makes durable. A server that has ten requests for a study waiting runs
all ten in one transaction and commits once. No request is answered before the commit. A request that fails must not
take the others with it.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, cast, final

import numpy as np

from .._utils.checks import Array
from ..domains.domain import Space
from ..errors import InvalidInput, NoRegretError, TrialError
from ..policy.availability import Available, without
from ..policy.engines import Decision
from ..policy.state import State
from ..storage.changes import ArmChangeKind, ChangedArm, StudyChange
from ..storage.record import Record, answer_of, describe_answer, require_running
from ..storage.trial import GOING, NO_CURVE, Measured, Other, Plays, Report, Trial, Verdict, was_asked
from ..storage.visit import Visit
from .direction import copy_of_state, has_channels
from .function import context_settings, settings_at
from .inputs import Inputs
from .plain_rounds import PlainStudy
from .play_rewards import NOTHING_MORE, Told, check_limits, check_plays, is_same
from .queue import LOST, WITHDRAWN, Enqueued, Rounding, impossible
from .replica import Replica
from .spaces import Arm, Roster, space_to_change, widening
from .visits import Asked, Seen, kept_in, same_question, still_kept

R = TypeVar("R")

LEAST = 2  # Calls that run however long they take: otherwise a slow call would never run.


class Failed(NamedTuple):
    """The outcome of a call that raised an error and left no trace."""

    error: Exception


class NotYet(NamedTuple):
    """The outcome of a call that did not begin, because the time for the transaction was over."""


class Going(NamedTuple):
    """The outcome of a call that takes longer than one transaction may.

    Attributes:
        then: the rest of the call, for the next transaction.
    """

    then: Callable[[Transaction], Any]


class HalfDone(Exception):
    """A call failed after it had changed the study: the whole transaction is rolled back."""


@final
class Transaction:
    """A transaction on a study: the decisions, rewards and notes that one commit makes durable.

    Its methods run inside `Replica.write`, and their arguments have been checked. `tell`, `fail` and `abandon` are
    idempotent: if the same answer is on record already, they return the trial and record nothing.

    Args:
        replica: of the study.
        propensities: whether decisions are recorded with their probability.
        plain: the plain rounds of the study, or None if it has none.
        until: time, by `time.monotonic`, after which no further call should begin.
    """

    def __init__(
        self, replica: Replica, *, propensities: bool = False, plain: PlainStudy | None = None, until: float = math.inf
    ) -> None:
        self.propensities, self.plain = propensities, plain
        self._replica, self._until = replica, until
        self._notes: dict[str, str | None] = {}  # As they were read, None where there is none.
        self._written: dict[str, str] = {}
        self._deciding = False

    # -- reading -------------------------------------------------------------------------------------------------

    @property
    def trials(self) -> Sequence[Trial]:
        """All trials by number, with the changes of this transaction."""
        return self._replica.trials

    @property
    def record(self) -> Record:
        """The record, with the changes of this transaction."""
        return self._replica.record

    @property
    def roster(self) -> Roster:
        """The arms of the study, with the changes of this transaction."""
        return self._replica.roster

    @property
    def order(self) -> int:
        """The order of the last event."""
        return self._replica.record.order

    @property
    def expired(self) -> bool:
        """True if the time is over: a call that has done some of its work returns `Going`."""
        return time.monotonic() > self._until

    @property
    def inputs(self) -> Inputs:
        """The checks of what users pass, with the changes of this transaction."""
        return self._replica.inputs

    @property
    def now(self) -> float:
        """The time of the study's clock, Unix seconds."""
        return self._replica.now()

    def copy_state(self) -> State | None:
        """Returns an independent copy of the state, or None if the policy is a script.

        The propensity of the next decision is computed from it.
        """
        return copy_of_state(self._replica.state)

    def preview(self, context: Array | Seen | None) -> Decision:
        """Returns the decision that `ask` would make now, and records nothing."""
        context = context.by(self.inputs, None)[0] if isinstance(context, Seen) else context
        state = self._replica.state  # A copy decides, because a decision may first fit hyperparameters.
        return (copy_of_state(state) or state).decide(context, now=self.now, available=self.roster.playable(None))

    def standing(self, offered: Available) -> Available:
        """Returns the points among some that have not failed, or all of them if every one has."""
        state = self._replica.state
        gone = state.failed_among(offered) if isinstance(state, State) else np.zeros(0, dtype=bool)
        return without(offered, gone) if gone.any() and not gone.all() else offered

    # -- writing -------------------------------------------------------------------------------------------------

    def ask(
        self, context: Array | Seen | None, offered: Available | None, lease: float | None, asked: Asked | None = None,
        rounding: Rounding | None = None,
    ) -> Trial:  # fmt: skip
        """Decides and records the next trial (see `Study.ask`).

        Args:
            context: `(c,)`, or as it was given, or None.
            offered: points that may be played, or None for all.
            lease: seconds, or None for no limit.
            asked: who visits, and the caller's own id and facts, or None.
            rounding: of what the policy chooses, or None.
        """
        replica = self._replica
        if isinstance(context, Seen):
            context, asked = context.by(replica.inputs, asked)
        if asked is not None and asked.event in replica.record.events:
            known = self.roster.moved(replica.record.require(asked.event))
            # With `fidelity` the policy sets the context.
            return known if replica.inputs.full is not None else same_question(known, context, asked, replica.inputs)
        if replica.roster.retired:
            offered = replica.roster.playable(offered)
        self._deciding = True
        now, trial = replica.now(), None
        try:
            if self.plain is not None and offered is None and lease is None and asked is None and rounding is None:
                trial = self.plain.ask(context, now)
            if trial is None:
                trial = replica.put(self._decided(context, offered, lease, asked, now, rounding), "asked")
        except BaseException:
            replica.invalidate()  # The state has learned rewards too early for a replay.
            raise
        self._deciding = False
        return trial

    def _decided(
        self, context: Array | None, offered: Available | None, lease: float | None, asked: Asked | None, now: float,
        rounding: Rounding | None,
    ) -> Trial:  # fmt: skip
        """Returns the next trial, which is not on record yet."""
        replica, full = self._replica, self._replica.inputs.full
        under = context if full is None else full  # Points are compared at the full setting.
        kept = None if asked is None else self._kept(asked, under, offered, now)
        idle = kept or not (rounding or replica.queue.waiting)
        decision = None if idle else self._of_queue(under, offered, now, rounding)
        enqueued = decision is not None
        if decision is None:
            decision = replica.state.decide(under, now=now, available=offered) if kept is None else kept[0]
        if full is not None and context is not None and np.array_equal(full, context):
            context = cast(State, replica.state).setting(decision)
        trial = self._trial(decision, context, order=replica.record.order + 1, now=now, enqueued=enqueued, asked=asked)
        if self.propensities and not enqueued and kept is None and isinstance(replica.state, State):
            found = replica.state.propensity(decision, under, now=now, available=offered)
            trial = trial if found is None else trial._replace(propensity=found)
        if asked is not None:
            trial = self._of_visit(trial, asked, None if kept is None else kept[1])
        return trial if lease is None else trial._replace(lease_until=now + lease)

    def _kept(
        self, asked: Asked, context: Array | None, offered: Available | None, now: float
    ) -> tuple[Decision, Trial] | None:
        """Returns the decision of a unit that keeps its arm, and the trial that chose it, or None."""
        replica = self._replica
        link = None if replica.sticky is None or asked.unit is None else replica.units.link(asked.unit)
        found = link and kept_in(replica.record, link, asked.place or 0)
        if found is None or replica.sticky is None:
            return None
        chosen = self.roster.moved(found)
        if not still_kept(chosen, replica.policy.domain, offered, seconds=replica.sticky, now=now):
            return None
        if not replica.state.may_keep(chosen, context):
            return None
        return replica.state.keep(chosen), chosen

    def _of_visit(self, trial: Trial, asked: Asked, chosen: Trial | None) -> Trial:
        """Returns a new trial with what the caller said of it, and notes whose it is.

        Args:
            trial: as it was decided.
            asked: what the caller said.
            chosen: the trial whose arm it keeps, or None.
        """
        visit = self._replica.units.visit(trial.number, asked, chosen, sticky=self._replica.sticky is not None)
        return trial._replace(visit=visit, propensity=trial.propensity if chosen is None else chosen.propensity)

    def keep(self, unit: str, slate: Sequence[Trial]) -> None:
        """Notes that a unit keeps the arms of a slate, if some place of it was decided and not kept."""
        decided = self._replica.sticky is not None and any(trial.kept is None for trial in slate)
        self._replica.units.note(unit, slate[0].number, decided=decided)

    def _of_queue(
        self, context: Array | None, offered: Available | None, now: float, rounding: Rounding | None = None
    ) -> Decision | None:
        """Returns the first decision of the queue that is possible, and records that it was taken."""
        replica = self._replica
        for entry in list(replica.queue.waiting.values()):
            why = impossible(entry, replica.roster)
            if why is None:
                pinned = entry.pinned(replica.policy.domain)
                some = pinned.among(replica.policy.domain, offered)
                if some is not None and not len(some.points):
                    continue  # It is not among what is offered this time.
                try:
                    decision = replica.state.fill(pinned, context, now=now, available=offered)
                except InvalidInput as error:
                    why = error.what
                except NoRegretError:
                    continue  # Nothing that may be played now has these values, but it may later (`Safe`).
                else:
                    point = None if rounding is None or pinned.whole else rounding(decision.point, context, pinned)
                    self._take(entry.number, len(replica.record), None, now, point)
                    return decision if point is None else decision._replace(point=point)
            self._take(entry.number, None, why, now)
        rounded = rounding is not None and rounding(None, context, None) is not None
        return self._of_queue(context, offered, now) if rounded else None

    def forget(self, unit: str) -> bool:
        """Removes the link from a unit to its trials (see `Study.forget`)."""
        return self._replica.units.forget(unit)

    def _take(self, entry: int, trial: int | None, reason: str | None, now: float, point: Array | None = None) -> None:
        rounded = {} if point is None else {"rounded": point.tolist()}
        body = {"entry": entry, "trial": trial, "reason": reason, **rounded}
        self._replica.change(StudyChange(self.order + 1, now, "taken", (), body))

    def enqueue(self, points: Any) -> list[Enqueued]:
        """Records points to try first, and returns them (see `Study.enqueue`)."""
        replica, count = self._replica, self._replica.queue.count
        entries = replica.queue.entering(points, replica.roster, replica.inputs, replica.trials)
        replica.change(StudyChange(self.order + 1, self.now, "enqueued", (), {"entries": entries}))
        return [entry.told(replica.policy.domain) for entry in replica.queue.entries[count:]]

    def enqueue_first(self, entries: list[dict[str, Any]]) -> bool:
        """Records entries, checked, in a study that has asked for nothing yet. Returns False for any other study."""
        added = not any(map(was_asked, self.trials))
        if added and not self._replica.queue.count:
            self._replica.change(StudyChange(self.order + 1, self.now, "enqueued", (), {"entries": entries}))
            return True
        return False

    def withdraw(self, entry: Any) -> None:
        """Records that an entry of the queue will not be tried. If it is withdrawn already, nothing is recorded."""
        queue = self._replica.queue
        if not any((each.number, reason) == (entry, WITHDRAWN) for each, reason, _ in queue.passed):
            self._take(queue.require(entry), None, WITHDRAWN, self.now)

    def add(
        self, decision: Decision, context: Array | Seen | None, told: Told, reward: float,
        propensity: float | None = None, steps: Iterable[tuple[int, float]] = (), stopped: str | None = None,
        asked: Asked | Visit | None = None,
    ) -> Trial:  # fmt: skip
        """Records a point that was not asked for, with its answer and the reward in it (see `Study.add`).

        Its reports, if it has made some, are the events after it. With a reason in `stopped` it has no reward. `asked`
        says who visited.
        """
        if isinstance(context, Seen):
            context, asked = context.by(self.inputs, asked)
        order, plays = self.order + 1, told.plays
        decision = self.inputs.at_trial(decision, self.trials)._replace(repeats=1 if plays is None else plays.times)
        trial = self._trial(decision, context, order=order, now=self.now, asked=asked)._replace(propensity=propensity)
        if asked is not None:  # A visit comes from an export, and holds no name of a unit.
            trial = trial._replace(visit=asked) if isinstance(asked, Visit) else self._of_visit(trial, asked, None)
        for at, report in enumerate(steps, start=order + 1):
            trial = trial.with_report(Report(at, trial.asked_at, trial.number, *report, "go"))
        if stopped is not None:
            return self._replica.put(trial.as_stopped(reason=stopped, order=order, time=trial.asked_at), "stopped")
        answered = trial.answered(
            reward=reward, constraints=told.constraints, order=order, time=trial.asked_at, plays=plays, std=told.std,
            measured=told.measured, others=told.others,
        )  # fmt: skip
        check_limits(told, None, self._replica.policy.constraint_count)
        return self._replica.put(answered, "told")

    def tell(self, told: Told, revise: bool = False) -> Trial:
        """Records a reward, constraint values, or both (see `Study.tell`)."""
        record = self._replica.record
        if self.plain is not None and told.constraints is None and told[3:] == NOTHING_MORE:
            found = self.plain.tell(told.trial, told.reward, within=True)
            if found is not None:
                return found
        known = record.require(told.trial)
        if told.reward is None:
            return self._tell_constraints(known, told, revise=revise)
        if known.told_order is not None:
            return self._tell_again(known, told, told.reward, revise=revise)
        g, plays = told.constraints, told.plays
        if told.others:
            check_limits(told, known.constraints, self._replica.policy.constraint_count)
        if plays is not None:
            check_plays(known, plays)
        if g is not None and known.constraints is not None:
            if not np.array_equal(g, known.constraints):
                record.require_no_constraints(known)  # This raises an error: other values are on record.
            g = None
        answered = known.answered(
            reward=told.reward, constraints=g, order=record.order + 1, time=self._replica.now(), plays=plays,
            std=told.std, measured=told.measured, others=told.others,
        )  # fmt: skip
        return self._replica.put(answered, "told")

    def _tell_again(self, known: Trial, told: Told, reward: float, *, revise: bool) -> Trial:
        """Corrects an answer, or does nothing if it is the same."""
        if is_same(known, told):
            return self.roster.moved(known)
        if not revise:
            self._replica.record.require_open(
                told.trial, describe_answer(reward, told.constraints, None, told.std, told.measured, told.others)
            )  # This raises an error.
        check_plays(known, told.plays)
        check_limits(told, known.constraints, self._replica.policy.constraint_count)
        return self._correct(known, reward, told.constraints, None, told.plays, told.std, told.measured, told.others)

    def tell_all(self, answers: Sequence[Told], *, revise: bool) -> list[Trial]:
        """Records several answers, in this order (see `Study.tell_many`)."""
        return [self.tell(told, revise=revise) for told in answers]

    def fail(self, trial: Trial | int | str, reason: str, *, revise: bool = False) -> Trial:
        """Records that a trial has failed (see `Study.fail`)."""
        record = self._replica.record
        known = record.require(trial)
        if known.state == "failed" and known.reason == reason:
            return self.roster.moved(known)
        if not known.open and revise:
            return self._correct(known, None, None, reason)
        known = record.require_open(trial, describe_answer(None, None, reason))
        return self._replica.put(known.failed(reason=reason, order=record.order + 1, time=self.now), "told")

    def abandon(self, trial: Trial | int | str, reason: str) -> Trial:
        """Records that nobody works on a trial any more (see `Study.abandon`)."""
        record = self._replica.record
        known = record.require(trial)
        if known.state == "abandoned":
            return self.roster.moved(known)
        if not known.open:
            raise TrialError(
                f"Trial {known.number} cannot be abandoned: its answer is there ({answer_of(known)}).",
                advice="A wrong answer is corrected by `tell(..., revise=True)` or `fail(..., revise=True)`.",
                topic="answered",
            )
        left = known.as_abandoned(reason=reason, order=record.order + 1, time=self.now)
        return self._replica.put(left, "abandoned")

    def report(self, trial: Trial | int | str, step: int, value: float) -> tuple[Trial, Verdict]:
        """Records the value of a running trial after a step (see `Study.report`).

        Returns:
            The trial, and the verdict of the pruning rule. If the report is on record already, it is that of now.
        """
        replica = self._replica
        known = replica.record.require(trial)
        place = bisect_left(known.curve, step, key=lambda report: report.step)
        same = place < len(known.curve) and known.curve[place].step == step
        if same and known.curve[place].value == value:
            over = known.curve[-1].verdict if known.state != "stopped" else "stop"
            return self.roster.moved(known), replica.verdict(known) if known.open else over
        require_running(known, f"it reports step {step}")
        if place < len(known.curve):
            last = known.curve[-1]
            now = f"now that is {value!r}" if same else f"now step {step} comes"
            said = f"{known.curve[place].value!r} after step {step}" if same else f"step {last.step}"
            raise TrialError(
                f"Trial {known.number} has reported {said} already, and {now}; nothing was recorded. Usually two "
                "workers have the same trial, or it began again.",
                advice="Steps grow. A trial that begins again goes on with the steps after the last one.",
                topic="reported",
            )
        found = replica.report(known, step, value)
        return found, found.curve[-1].verdict

    def stop(self, trial: Trial | int | str, reason: str | None) -> Trial:
        """Records that a trial was stopped before its last step (see `Study.stop`)."""
        replica = self._replica
        known = replica.record.require(trial)
        if known.state == "stopped":
            return self.roster.moved(known)
        require_running(known, "it is to be stopped")
        if not known.curve:
            raise TrialError(
                f"Trial {known.number} has reported no step yet, so it cannot be stopped; nothing was recorded.",
                advice="`study.abandon(trial)` gives it up, `study.report(trial, step, value)` reports.",
                topic="no_report",
            )
        if reason is None:
            ours = known.curve[-1].verdict not in GOING
            last = f"by hand after step {known.curve[-1].step}"
            reason = replica.lessons.curves.why(known, replica.trials) if ours else last
        stopped = known.as_stopped(reason=reason, order=self.order + 1, time=self.now)
        return replica.put(stopped, "stopped")

    # -- the domain ----------------------------------------------------------------------------------------------

    def widen(self, parameters: Mapping[str, Any], was: Mapping[str, Any] | None, *, of_context: bool = False) -> Space:
        """Records a change of the space, or of that of contexts, and returns that of now (see `Study.widen`)."""
        replica = self._replica
        body = widening(replica.policy, parameters, was, self.trials, of_context=of_context)
        if body is not None:
            change = StudyChange(self.order + 1, self.now, "widened", (), body)
            replica.roster.after(change).check(replica.record)  # At their first places.
            replica.change(change)
            for entry in list(replica.queue.waiting.values()):
                if entry.lost:
                    self._take(entry.number, None, LOST, self.now)
        return space_to_change(replica.policy, of_context=of_context)

    def add_arms(self, points: Any, names: Any, about: Any) -> list[Arm]:
        """Adds arms and returns them (see `Study.add_arms`)."""
        roster = self._replica.roster
        return self._change_arms("added", roster.adding(points, names, about))

    def describe_arm(self, arm: int, name: str | None, about: Mapping[str, Any] | None) -> Arm:
        """Records another name or other facts of an arm, and returns the arm (see `Study.describe_arm`)."""
        changed = self._replica.roster.describing(arm, name, about)
        self._change_arms("described", () if changed is None else (changed,))
        return self._replica.roster.listed()[arm]

    def move_arm(self, arm: int, kind: Literal["retired", "restored"]) -> Arm:
        """Retires or restores an arm, and returns it. If it is so already, nothing is recorded."""
        changed = self._replica.roster.moving(arm, kind)
        self._change_arms(kind, () if changed is None else (changed,))
        return self._replica.roster.listed()[arm]

    def _change_arms(self, kind: ArmChangeKind, arms: tuple[ChangedArm, ...]) -> list[Arm]:
        if not arms:
            return []
        self._replica.change(StudyChange(self.order + 1, self.now, kind, arms))
        listed = self._replica.roster.listed()
        return [listed[each.arm] for each in arms]

    def _trial(
        self, decision: Decision, context: Array | None, *, order: int, now: float, enqueued: bool = False,
        asked: Asked | Visit | None = None,
    ) -> Trial:  # fmt: skip
        policy = self._replica.roster.policy
        point, arm, explored, repeats, fits = decision
        settings = settings_at(policy.domain, point) if self._replica.inputs.named else None
        named = (
            None if context is None else context_settings(policy.context, context, () if asked is None else asked.given)
        )
        # In the order of the fields: a call of `Trial` takes half a microsecond more in every round.
        return tuple.__new__(Trial, (
            len(self._replica.record.trials), point, arm, settings, order, now, context, explored, enqueued, "pending",
            None, None, None, None, None, named, None, None, None, (), repeats, None, fits, None,
            None, (), (), NO_CURVE, None,
        ))  # fmt: skip

    def _tell_constraints(self, known: Trial, told: Told, *, revise: bool) -> Trial:
        """Records constraint values without a reward."""
        g = told.constraints
        if g is not None and known.constraints is not None and np.array_equal(g, known.constraints):
            return known
        if revise and not known.open and known.constraints is not None:
            return self._correct(known, known.reward, g, known.reason, known.plays, known.std)
        known = self._replica.record.require_no_constraints(known)
        policy = self._replica.policy
        if known.state == "observed" and policy.constraint_count and not has_channels(policy):
            raise TrialError(
                f"The reward of trial {known.number} was told without constraint values, and {policy.algorithm} learns "
                "from both together: it is too late for them. Tell them with the reward, or before it.",
                advice="Policies made with `constraints=nr.EveryRound(...)` take them in any order.",
                topic="together",
            )
        if g is None:
            return known
        return self._replica.put(known.with_constraints(constraints=g, order=self.order + 1), "limited")

    def _correct(
        self, known: Trial, reward: float | None, constraints: Array | None, reason: str | None,
        plays: Plays | None = None, std: float | None = None, measured: Measured = (), others: tuple[Other, ...] = (),
    ) -> Trial:  # fmt: skip
        """Records another answer. Without new constraint values and metrics, those on record stay."""
        measured = measured or (() if reward is None else known.measured)
        g = known.constraints if constraints is None else constraints
        if reward is None and known.constraints_order is None:
            g = None  # They came with the reward that is taken back.
        revised = known.as_revised(
            reward=reward, reason=reason, constraints=g, order=self.order + 1, time=self.now, plays=plays, std=std,
            measured=measured, others=others,
        )  # fmt: skip
        return self._replica.put(revised, "corrected")

    # -- notes ---------------------------------------------------------------------------------------------------

    def read_note(self, key: str) -> str | None:
        """Returns the note under a key, or None. The storage is asked unless the key was announced or fetched."""
        if key not in self._written and key not in self._notes:
            self.fetch_notes([key])
        return self._written.get(key, self._notes.get(key))

    def fetch_notes(self, keys: Iterable[str]) -> None:
        """Reads the notes under several keys at once, for `read_note`."""
        new, handle = [key for key in keys if key not in self._notes], self._replica.handle
        self._notes |= dict.fromkeys(new) | ({} if handle is None else handle.read_notes(new))

    def write_note(self, key: str, value: str) -> None:
        """Writes a note in the commit of this transaction."""
        self._written[key] = value

    # -- several calls -------------------------------------------------------------------------------------------

    def run(self, act: Callable[[Transaction], R]) -> R | Failed:
        """Returns the result of a call, or `Failed` with its error.

        Raises:
            HalfDone: the call failed after it had changed the study.
        """
        order, notes = self.order, dict(self._written)
        try:
            return act(self)
        except Exception as error:  # Any error: the other calls must not fail with this one.
            if self._deciding or self.order != order:
                raise HalfDone from error
            self._written = notes
            return Failed(error)

    def save_notes(self) -> None:
        """Hands the notes over to the commit."""
        if self._replica.handle is not None and self._replica.handle.keeps_notes:
            self._replica.notes.update(self._written)
