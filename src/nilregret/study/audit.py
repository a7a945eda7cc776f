"""Checks of stored trials: a study uses no row of a storage without them.

A file may be damaged, edited by hand, or made to harm. A study replays its record, so an impossible row would silently
change later decisions. Every row is checked once, when it is first read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import NoReturn, cast

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, many, shown
from .._utils.numerals import exact
from ..domains.domain import Arms, space_of
from ..errors import InvalidInput, StorageError
from ..kernels import Kernel
from ..kernels.factorization import LEAST_REGULARIZATION
from ..policy.engines import row_of
from ..policy.policy import Policy
from ..slots.refit import Refitted
from ..slots.switching import MOST_REPEATS
from ..storage.base import News
from ..storage.changes import ARM_KINDS, StudyChange
from ..storage.record import Record
from ..storage.trial import NO_CURVE, Answer, Fit, Measured, Report, Trial
from ..storage.visit import Visit
from .audit_reports import check_reports, is_known
from .direction import AnyPolicy, Goal, has_channels, reward_check
from .function import Settings, agree, are_at, outside, settings_of, with_facts
from .play_rewards import is_possible
from .pruning import pruning_of
from .queue import KINDS as OF_QUEUE
from .queue import Queue
from .spaces import ArmTimes, Roster

OF_TRIALS = ("enqueued", "taken")  # Changes that leave the policy as it is.


class Auditor:
    """The checks of the stored trials of one study.

    Args:
        policy: of the study.
        goal: of the study.
        where: the study in words, for errors.
    """

    def __init__(self, policy: AnyPolicy, goal: Goal, where: str) -> None:
        self._made, self._roster, self._policy = policy, Roster(policy, ()), policy
        self._changes: tuple[StudyChange, ...] = ()  # Those of arms, or of the space.
        self._times: ArmTimes | None = None
        self._queued: tuple[StudyChange, ...] = ()
        self._queue = Queue()
        self._checked = reward_check(policy, goal)
        self._where = where
        self._explores = isinstance(policy, Policy) and policy.explore.ever
        self._fits = isinstance(policy, Policy) and policy.fitting is not None
        self._timed = policy.pending.in_time
        self._seen: dict[int | None, Array] = {}  # Points by arm: a storage may share their arrays.
        self._astray: set[int] = set()  # Numbers of trials whose points are not in their domain.
        self._under_none: set[int] = set()  # Those whose contexts are not in theirs.

    def news(self, found: News, known: Record) -> News:
        """Returns what the record lacks or has in an older version: trials, with their parameters, and changes.

        Args:
            found: every trial and change with an event not earlier than the last known one, by number.
            known: the record so far, checked before.

        Raises:
            StorageError: a trial or change cannot be right, or the storage lost known events.
        """
        stored, fresh = found.trials, list[Trial]()
        changes = self._check_changes(found.arms, known)
        reached = known.order == 0  # Whether the last known event is still in the storage.
        steps = [report for report in found.steps if report.order > known.order]
        reached = reached or len(changes) < len(found.arms) or self._are_known(found.steps, len(steps), known)
        count = expected = len(known)
        before = known[-1] if count else None
        self._place([trial for trial in stored if not 0 <= trial.number < count])
        for trial in stored:
            if 0 <= trial.number < count:
                old = known[trial.number]
                old = old._replace(curve=NO_CURVE) if old.curve else old
                if trial == old:
                    reached = reached or trial.last_order == known.order
                    continue
                if trial.as_of(known.order) != old:  # Only later events may have changed it.
                    self._refuse(trial, "it is not what it was when it was read before")
                reached = reached or old.last_order == known.order
            else:
                if trial.number != expected:
                    self._refuse(trial, f"trial {expected} is missing")
                expected += 1
                self._policy = self._policy_of(trial)
                self._check_new(trial, before)
                before = trial
            self._check_outcome(trial)
            fresh.append(trial)
        self._check_visits([trial for trial in fresh if trial.visit is not None], known)
        unknown = [number for number in self._queue.tried if number >= expected]
        if unknown:
            self._fail(f"says that trial {unknown[0]} was taken from the points to try first, and has no such trial")
        if not reached:
            self._fail(f"no longer holds event {known.order} of its record: the file has been replaced by another")
        if steps or any(trial.state == "stopped" for trial in fresh):
            if self._policy.objective_count > 1:
                self._fail("has reports, and trials of several objectives have none")
            check_reports(pruning_of(self._policy), fresh, steps, known, self._refuse, self._fail)
        self._check_orders(fresh, [*changes, *steps], known)
        return News(self._decoded(fresh), found.stamp, changes, steps)

    def prepare(self, known: Record) -> None:
        """Reads the changes of a record that was not read trial by trial."""
        self._check_changes((), known)

    def again(self, trials: Sequence[Trial]) -> list[Trial]:
        """Returns trials that were read once more, after the checks of each by itself.

        Raises:
            StorageError: a trial cannot be right.
        """
        self._place(trials)
        for trial in trials:
            self._check_new(trial, None)
            self._check_outcome(trial)
        return self._decoded(list(trials))

    def _are_known(self, stored: Sequence[Report], fresh: int, known: Record) -> bool:
        """Returns whether the last known event is a report, which the storage still has."""
        again = list(stored[: len(stored) - fresh])  # At most the last known event.
        if again and not is_known(again, known):
            self._fail("has other reports than it had")
        return bool(again)

    # -- changes -------------------------------------------------------------------------------------------------

    def _check_changes(self, stored: Sequence[StudyChange], known: Record) -> list[StudyChange]:
        """Returns the changes that the record lacks, and reads the arms after them."""
        fresh = [change for change in stored if change.order > known.order]
        again = [change for change in stored if change.order <= known.order]  # At most the last known event.
        if again and again != list(known.changes[-1:]):
            self._fail("has other changes than it had")
        changes = tuple(change for change in (*known.changes, *fresh) if change.kind not in OF_TRIALS)
        if changes != self._changes:
            try:
                self._roster = Roster(self._made, changes)
                self._policy = self._roster.policy
                self._roster.check(known)
            except (InvalidInput, ValueError) as error:
                what = "arms" if changes[0].kind in ARM_KINDS else "space"
                raise StorageError(f"The {what} of {self._where} has been damaged: {error} Restore a copy.") from error
            self._changes, self._times = changes, ArmTimes(changes)
        queued = tuple(change for change in (*known.changes, *fresh) if change.kind in OF_QUEUE)
        if queued != self._queued:
            try:
                self._queue, self._queued = Queue(queued), queued
            except InvalidInput as error:
                what = f"The points to try first of {self._where} have been damaged"
                raise StorageError(f"{what}: {error} Restore a copy.") from error
        return fresh

    def _policy_of(self, trial: Trial) -> AnyPolicy:
        """Returns the policy that decided a trial, on all arms of now."""
        spaces = self._roster.spaces
        return self._policy if spaces is None else spaces.policy_at(trial.asked_order)

    def _by_policy(self, trials: Sequence[Trial]) -> list[tuple[AnyPolicy, list[Trial]]]:
        """Returns the trials in order, in groups that one policy decided."""
        groups = groupby(trials, key=lambda trial: id(self._policy_of(trial)))
        return [(self._policy_of(found[0]), found) for found in (list(group) for _, group in groups)]

    def _place(self, trials: Sequence[Trial]) -> None:
        """Notes the new trials whose points or contexts are not in the domains of their policy, in a call for all."""
        for policy, some in self._by_policy(trials):
            if not isinstance(policy.domain, Arms):  # An arm is compared with its own point.
                self._astray |= outside(policy.domain, [(trial.number, trial.point) for trial in some])
            if policy.context is not None:
                under = [(trial.number, trial.context) for trial in some if trial.context is not None]
                self._under_none |= outside(policy.context, under)

    # -- one trial -----------------------------------------------------------------------------------------------

    def _check_new(self, trial: Trial, before: Trial | None) -> None:
        self._check_question(trial, before)
        self._check_entry(trial)
        if trial.propensity is not None and not 0.0 < trial.propensity <= 1.0:
            self._refuse(trial, f"its propensity is {trial.propensity}")
        if trial.fits:
            self._check_fits(trial, trial.fits)
        elif self._fits and trial.fits is None and trial.as_corrected().told_order != trial.asked_order:
            self._refuse(trial, "it does not say which fits came into force with it")

    def _check_question(self, trial: Trial, before: Trial | None) -> None:
        domain, contexts = self._policy.domain, self._policy.context
        if before is not None and trial.asked_order <= before.asked_order:
            self._refuse(trial, f"it was asked (event {trial.asked_order}) before trial {before.number}")
        if (trial.context is None) != (contexts is None):
            self._refuse(trial, f"it has {'no' if contexts else 'a'} context")
        if trial.number in self._under_none and trial.context is not None:
            self._refuse(trial, f"its context {trial.context.tolist()} is not in the domain of contexts")
        if isinstance(domain, Arms):
            placed = self._seen.get(trial.arm) is trial.point or _is_arm(domain, trial)
            self._seen[trial.arm] = trial.point
            if self._times is not None and trial.arm is not None:
                added = trial.asked_order == trial.as_corrected().told_order
                placed = placed and self._times.allow(trial.arm, trial.asked_order, retired=added)
        else:
            placed = trial.arm is None and trial.number not in self._astray
        if not placed:
            self._refuse(trial, f"arm {trial.arm}, {trial.point.tolist()} is not in the domain of its policy")
        if trial.explored and (not self._explores or trial.asked_order == trial.told_order):
            self._refuse(trial, "it is marked as a forced uniform round, and was none")
        if not math.isfinite(trial.asked_at) or (
            self._timed and before is not None and trial.asked_at < before.asked_at
        ):
            self._refuse(trial, f"it was asked at {trial.asked_at}")

    def _check_entry(self, trial: Trial) -> None:
        """Refuses a trial that is not the one that `enqueue` named."""
        entry = self._queue.tried.get(trial.number)
        if entry is None:
            return
        named = entry.pinned(self._policy.domain)
        added = trial.asked_order == trial.as_corrected().told_order
        right = self._queue.asked[trial.number] == trial.asked_order and not (trial.explored or added)
        right = right and (not named.whole or named.arm == trial.arm)
        if not right or not named.matching(trial.point[None])[0]:
            self._refuse(trial, f"it is not entry {entry.number} of the points to try first, which it was taken for")

    def _check_visits(self, visited: list[Trial], known: Record) -> None:
        """Refuses visits that could not have been: an event twice, or a unit, a choice or a slate that came later."""
        events = dict(known.events) if visited else {}
        for trial in visited:
            visit = cast(Visit, trial.visit)
            said = (visit.unit, visit.slate, visit.kept if visit.kept is None else visit.kept + 1)
            right = max((0, *(number for number in said if number is not None))) <= trial.number
            right = right and (visit.slate is None) == (visit.place is None) and not (visit.kept and trial.explored)
            if not right or (visit.event is not None and events.setdefault(visit.event, trial.number) != trial.number):
                self._refuse(trial, f"its visit is {visit.text()}")

    def _check_fits(self, trial: Trial, fits: tuple[Fit, ...]) -> None:
        channels = [fit.channel for fit in fits]
        if channels != sorted(set(channels)):
            self._refuse(trial, f"fits of the channels {channels} came into force with it")
        for fit in fits:
            self._check_fit(trial, fit)

    def _check_fit(self, trial: Trial, fit: Fit) -> None:
        """Refuses a fit that the policy could not have made: its kernel may differ in hyperparameters alone."""
        policy = self._policy
        channels = policy.output_count - 1 if has_channels(policy) else 0
        asked = trial.as_corrected().told_order != trial.asked_order
        of = None
        if isinstance(policy, Policy) and asked and 0 <= fit.channel <= channels:
            of = policy.of_channel(fit.channel) if fit.channel else policy
        if of is None or of.fitting is None or not 1 <= fit.number <= of.fitting.fits(trial.number):
            self._refuse(trial, f"fit {shown(fit.number)} of channel {fit.channel} came into force with it")
        try:
            kernel, ridge, _, _ = Refitted.of(fit.values)
            same = _structure(kernel) == _structure(of.kernel.rescaled(1.0 / of.sides).rescaled(of.sides))
            told = same and ridge >= LEAST_REGULARIZATION * float(kernel.diagonal(row_of(trial)[None])[0])
        except (InvalidInput, ValueError) as error:
            self._refuse(trial, f"its fit describes nothing: {error}")
        if not same:
            self._refuse(trial, f"its fit is of another kernel, {shown(kernel)}")
        if not told:
            self._refuse(trial, f"its fit has the regularization {exact(ridge)}, too little for {shown(kernel)}")

    def _check_outcome(self, trial: Trial) -> None:
        wanted = (trial.reward is not None, trial.reason is not None, trial.told_order is not None)
        state = (trial.state, *wanted, trial.told_at is not None)
        if state not in _STATES or (trial.state == "abandoned" and trial.abandoned is None):
            self._refuse(
                trial,
                f"state {shown(trial.state)} with reward {trial.reward!r}, reason {shown(trial.reason)}, told_order "
                f"{trial.told_order} and told_at {trial.told_at}",
            )
        if trial.abandoned is not None or trial.lease_until is not None:
            self._check_abandoned(trial)
        if trial.repeats != 1 or trial.plays is not None or trial.corrected:
            self._check_plays(trial)
        self._check_std(trial, trial.reward, trial.std)
        self._check_metrics(trial, trial.reward, trial.measured)
        self._check_others(trial, trial)
        withdrawn = bool(trial.corrected) and trial.reward is None
        if trial.corrected:
            self._check_corrections(trial)
            trial = trial.as_corrected()
        if trial.constraints is not None:
            self._check_constraints(trial, trial.constraints, withdrawn=withdrawn)
        elif trial.constraints_order is not None:
            self._refuse(trial, f"event {trial.constraints_order} told its constraint values, and it has none")
        if trial.told_order is not None and trial.told_at is not None:
            self._check_answer(trial, trial.told_order, trial.told_at, withdrawn=withdrawn)

    def _check_answer(self, trial: Trial, order: int, at: float, *, withdrawn: bool) -> None:
        added, valued = order == trial.asked_order, trial.reward is not None or trial.state == "stopped"
        if order < trial.asked_order or (added and (not (valued or withdrawn) or at != trial.asked_at)):
            self._refuse(trial, f"it was told in event {order} and asked in event {trial.asked_order}")
        if not math.isfinite(at) or (self._timed and at < trial.asked_at):
            self._refuse(trial, f"it was told at {at}")
        if trial.reward is not None:
            self._check_reward(trial, trial.reward)
        elif not (trial.reason or "").strip():
            self._refuse(trial, f"it {'was ' * (trial.state == 'stopped')}{trial.state} without a reason")

    def _check_plays(self, trial: Trial) -> None:
        """Refuses several plays from a policy that asks for one, and more rewards than plays."""
        told = [plays for plays in (trial.plays, *(answer.plays for answer in trial.corrected)) if plays is not None]
        runs = isinstance(self._policy, Policy) and self._policy.switching is not None
        fits = trial.repeats == 1 or (runs and 1 < trial.repeats <= MOST_REPEATS)
        fits = fits and all(is_possible(plays) and plays.times <= trial.repeats for plays in told)
        if not fits or (trial.plays is not None and trial.reward is None):
            self._refuse(trial, f"it is to be played {many(trial.repeats, 'time')}, and was told as {shown(told)}")

    def _check_abandoned(self, trial: Trial) -> None:
        """Refuses an abandonment that did not come after the question and before the answer."""
        if trial.lease_until is not None and not math.isfinite(trial.lease_until):
            self._refuse(trial, f"its lease ends at {trial.lease_until}")
        left = trial.abandoned
        if left is None:
            return
        first = trial.as_corrected().told_order
        in_between = trial.asked_order < left.order and (first is None or left.order < first)
        if not in_between or not math.isfinite(left.time) or not left.reason.strip():
            self._refuse(trial, f"it was given up in event {left.order}, at {left.time}, {shown(left.reason)}")

    def _check_corrections(self, trial: Trial) -> None:
        """Refuses answers that do not follow each other, or that could not have been told."""
        orders = [answer.order for answer in trial.corrected] + [trial.told_order or 0]
        if orders != sorted(set(orders)) or trial.state not in ("observed", "failed"):
            self._refuse(trial, f"it is {trial.state}, and its answers came in events {orders}")
        times = [answer.time for answer in trial.corrected] + [trial.told_at or 0.0]
        if not all(map(math.isfinite, times)) or (self._timed and min(times) < trial.asked_at):
            self._refuse(trial, f"its answers came at {times}")
        for answer in trial.corrected:
            g, wanted = answer.constraints, self._policy.constraint_count
            if (answer.reward is None) == (answer.reason is None) or (g is not None and wanted and len(g) != wanted):
                self._refuse(trial, f"it was told {shown(answer)}")
            if answer.reward is not None:
                self._check_reward(trial, answer.reward)
            self._check_std(trial, answer.reward, answer.std)
            self._check_metrics(trial, answer.reward, answer.measured)
            self._check_others(trial, answer)

    def _check_others(self, trial: Trial, told: Trial | Answer) -> None:
        """Refuses values that do not fit the number of objectives, or that could not have been told."""
        policy = self._policy
        wanted = 0 if told.reward is None else policy.objective_count - 1
        if not wanted and not told.others:
            return
        fits = len(told.others) == wanted and all(
            abs(value) <= LARGEST_REWARD and (std is None or 0.0 <= std <= LARGEST_REWARD) for value, std in told.others
        )
        if fits and policy.constraint_count:
            fits = told.constraints is not None
        if not fits:
            values = [value for value, _ in told.others]
            self._refuse(trial, f"its further objectives are {values}, and the policy has {policy.objective_count}")

    def _check_metrics(self, trial: Trial, reward: float | None, measured: Measured) -> None:
        if measured and (reward is None or not all(abs(value) <= LARGEST_REWARD for _, value in measured)):
            self._refuse(trial, f"its metrics are {shown(dict(measured))}, and its reward {reward}")

    def _check_std(self, trial: Trial, reward: float | None, std: float | None) -> None:
        if std is not None and (reward is None or not 0.0 <= std <= LARGEST_REWARD):
            self._refuse(trial, f"the standard deviation of its noise is {std}, and its reward {reward}")

    def _check_reward(self, trial: Trial, reward: float) -> None:
        if not abs(reward) <= LARGEST_REWARD:
            self._refuse(trial, f"its reward is {reward}")
        try:
            if self._checked is not None:
                self._checked(reward)
        except InvalidInput as error:
            self._refuse(trial, str(error))

    def _check_constraints(self, trial: Trial, g: Array, *, withdrawn: bool) -> None:
        wanted = self._policy.constraint_count
        by_themselves = trial.constraints_order
        if by_themselves is None:
            told = trial.state == "observed"
        else:
            told = trial.asked_order < by_themselves != trial.told_order
            alone = trial.state in ("failed", "stopped")  # It has no reward that came with them.
            told = told and (withdrawn or not alone or by_themselves < (trial.told_order or 0))
        if not told or (wanted and len(g) != wanted) or np.abs(g).max(initial=0.0) > LARGEST_REWARD:
            self._refuse(trial, f"it is {trial.state} with {many(len(g), 'constraint value')}; the policy has {wanted}")

    # -- together ------------------------------------------------------------------------------------------------

    def _check_orders(self, fresh: list[Trial], changes: list[StudyChange | Report], known: Record) -> None:
        """Refuses events that are not numbered 1, 2, ... without gaps or repeats."""
        if not changes and _are_plain(fresh, known):
            return
        events: list[tuple[int, Trial | None]] = [(change.order, None) for change in changes]
        for trial in fresh:
            old = {at for _, at in known[trial.number].events()} if trial.number < len(known) else set()
            events += [(order, trial) for _, order in trial.events() if order not in old]
        events.sort(key=lambda event: event[0])
        for expected, (found, changed) in enumerate(events, start=known.order + 1):
            if found != expected:
                why = f"in event {found}, where event {expected} is due"
                self._fail(f"has a change or report {why}") if changed is None else self._refuse(
                    changed, f"it is {why}"
                )

    def _decoded(self, trials: list[Trial]) -> list[Trial]:
        """Returns the trials with the parameters of their points, which must equal the stored ones."""
        result = []
        for policy, some in self._by_policy(trials):
            space = space_of(policy.domain)
            decoded = settings_of(policy.domain, [trial.point for trial in some])
            contexts = settings_of(policy.context, [trial.context for trial in some])
            for trial, settings, under in zip(some, decoded, contexts, strict=True):
                if not agree(space, trial.settings, settings):
                    self._refuse(
                        trial, f"its parameters {shown(trial.settings)} are not those of its point, {shown(settings)}"
                    )
                result.append(self._named(trial, settings, under))
                try:
                    self._roster.moved(result[-1])
                except InvalidInput as error:
                    self._refuse(trial, str(error))
        return result

    def _named(self, trial: Trial, settings: Settings, under: Settings) -> Trial:
        under = with_facts(under, () if trial.visit is None else trial.visit.given)
        enqueued = trial.number in self._queue.tried
        if settings is None and under is None and not enqueued:
            return trial
        return trial._replace(settings=settings, context_settings=under, enqueued=enqueued)

    def _refuse(self, trial: Trial, why: str) -> NoReturn:
        raise StorageError(f"Trial {trial.number} of {self._where} has been damaged: {why}. Restore a copy.")

    def _fail(self, why: str) -> NoReturn:
        raise StorageError(f"The storage of {self._where} {why}. Nothing was written; open the study anew.")


# Combinations that can occur: the state, then whether there is a reward, a reason, a `told_order`, a `told_at`.
_STATES = {
    ("pending", False, False, False, False),
    ("abandoned", False, False, False, False),
    ("observed", True, False, True, True),
    ("failed", False, True, True, True),
    ("stopped", False, True, True, True),
}


def _is_arm(domain: Arms, trial: Trial) -> bool:
    return trial.arm in range(len(domain)) and bool(are_at(domain.points[trial.arm], trial.point))


def _are_plain(fresh: list[Trial], known: Record) -> bool:
    """Returns whether these are new trials, asked and perhaps answered, in events without gaps, as most are."""
    orders = [trial.asked_order for trial in fresh]
    orders += [trial.told_order for trial in fresh if trial.told_order is not None]
    orders.sort()
    plain = not any(trial.constraints_order is not None or trial.abandoned or trial.corrected for trial in fresh)
    new = bool(fresh) and fresh[0].number >= len(known)
    return plain and new and orders == list(range(known.order + 1, known.order + 1 + len(orders)))


def _structure(kernel: Kernel) -> Kernel:
    """Returns the kernel with its hyperparameters erased."""
    return kernel.with_log_parameters(np.zeros(len(kernel.log_parameters)))
