"""Commands that change a study: checked in `prepare`, then run in a transaction that several commands share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import msgspec
import numpy as np

from ..._utils.checks import number
from ...domains.domain import Arms
from ...domains.options import readable
from ...errors import InvalidInput, TrialError
from ...policy.availability import Available
from ...policy.engines import Decision
from ...policy.explain import Propensity
from ...policy.state import State
from ...storage.record import Trial
from ...storage.trial import Other, Plays
from ...study.direction import AnyPolicy
from ...study.explain import propensity_of
from ...study.function import settings_at
from ...study.play_rewards import Rewards, Told, check_plays, reason_of
from ...study.pruning import pruning_of
from ...study.transaction import Going, Transaction
from ..wire import messages
from ..wire.decision_ids import IdempotentRequest, key_of
from ..wire.problems import Problem, about, unfit
from .deadlines import DEFAULTED
from .worker import Action, StudyWorker

LATE, OBSERVED, WOULD = "late", "observed", "would"  # kinds of notes about a trial
NO_ANSWER = "[null,null,null,null,null]"  # a note without a late answer (see `_merged`)
PLACES = ("parameters", "point", "arm")  # entries of an observation, one of which says where it was made
AHEAD = 60.0  # seconds by which the clocks of two machines may differ
PAUSED = (
    "The study is paused, so nothing is decided; rewards are taken all the same. An admin lets it go on, on the "
    'dashboard or by `PATCH` with {"paused": false}.'
)
SEEN = "It is when the reward was seen, in Unix seconds (not milliseconds), and not to come."


class DecideResult(NamedTuple):
    """Result of `Decide`.

    Attributes:
        trials: the decisions.
        again: whether the request is a retry.
        propensities: functions that compute the propensity of each decision, which may take a while. None if the
            request did not ask for propensities, or if a replay of the record must compute them.
        alike: whether a retry has the same `among` and `exclude` as the first request.
    """

    trials: list[Trial]
    again: bool
    propensities: list[Callable[[], Propensity | None]] | None = None
    alike: bool = True


class _NewTrial(NamedTuple):
    """A decision of a request, and its propensity. None if another process or an earlier one made the decision."""

    trial: Trial
    propensity: Callable[[Trial], Propensity | None] | None


@final
class Decide(NamedTuple):
    """Makes decisions."""

    body: messages.DecisionRequest
    request: IdempotentRequest
    most_pending: int

    def note_keys(self, worker: StudyWorker) -> list[str]:  # noqa: ARG002
        """Returns the keys of the notes about the request and its client."""
        client = self.body.client
        found = [] if client is None else [key_of("client", client)]
        return [*self.request.keys, *found]

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks context, available points and deadline, and returns the action that decides."""
        body, study = self.body, worker.study
        inputs, context = study.replica.inputs, None
        if body.context is not None or inputs.policy.context is not None:
            context = about("context", inputs.context, body.context)
        offered = None
        if body.among is not None or body.exclude is not None:
            entry = "exclude" if body.among is None else "among"
            offered = about(entry, study.offered, body.among, body.exclude)
        lease = worker.deadlines.lease(body.deadline)

        def action(transaction: Transaction, before: Sequence[_NewTrial] = ()) -> DecideResult | Going:
            known = self._earlier(transaction, before)
            if isinstance(known, DecideResult):
                return known
            if worker.notes.paused and not known:
                raise Problem(409, "paused", PAUSED)
            made, count = list(known), body.count or 1
            worker.counts.check(transaction, self.most_pending, count - len(made))
            begun = len(made)
            while len(made) < count and (len(made) == begun or not transaction.expired):
                state = transaction.copy_state() if body.propensity and not study.propensities else None
                trial, playable = transaction.ask(context, offered, lease), offered
                if body.propensity:
                    playable = transaction.roster.playable(offered)
                made.append(_NewTrial(trial, partial(_propensity, state, available=playable)))
            self._write_notes(transaction, [each.trial for each in made], count - len(made))
            if len(made) < count:
                return Going(partial(action, before=made))
            propensities = [partial(each.propensity, each.trial) for each in made if each.propensity is not None]
            wanted = body.propensity and len(propensities) == count
            return DecideResult(
                [each.trial for each in made], again=False, propensities=[*propensities] if wanted else None
            )

        return action

    def _write_notes(self, transaction: Transaction, trials: Sequence[Trial], left: int) -> None:
        """Writes the notes for retries, in the transaction that records the trials. `left` decisions are to come."""
        body, numbers = self.body, [trial.number for trial in trials]
        self.request.store(transaction, numbers, left or None)
        if body.client is not None:
            offered = self.request.hash_of(body.among, body.exclude)
            transaction.write_note(key_of("client", body.client), json.dumps([numbers, offered]))

    def _earlier(self, transaction: Transaction, before: Sequence[_NewTrial]) -> DecideResult | Sequence[_NewTrial]:
        """Returns the stored reply or the client's pending decisions, or else the decisions made so far."""
        body, reply = self.body, self.request.stored_reply(transaction)
        if reply is not None:
            trials = [_trial(transaction, each) for each in reply.numbers]
            if type(reply.more) is not int:
                return DecideResult(trials, again=True, alike=reply.more is None)
            # Another process may have begun the request, or may have gone on with it.
            own = {each.trial.number: each for each in before}
            return [own.get(trial.number) or _NewTrial(trial, None) for trial in trials]
        if before:
            return before
        note = None if body.client is None else transaction.read_note(key_of("client", body.client))
        if note is None:
            return ()
        numbers, offered = json.loads(note)
        left = [trial for trial in (_trial(transaction, each) for each in numbers) if trial.state == "pending"]
        if not left:
            return ()
        alike = offered == self.request.hash_of(body.among, body.exclude)
        more = None if alike else "of other things to choose from"
        self.request.store(transaction, [trial.number for trial in left], more)
        return DecideResult(left, again=True, alike=alike)


def _propensity(before: State | None, trial: Trial, available: Available | None) -> Propensity | None:
    return None if before is None else propensity_of(before, trial, available=available)


class TellResult(NamedTuple):
    """Result of a reward or a failure.

    Attributes:
        trial: as it is on record.
        late: whether the answer came after the deadline.
        counted: whether the policy learns from the answer.
        sentence: about a late answer, in words.
        told: the answer that was told, if it differs from the one on record.
        new: whether it is the decision's first answer from a caller.
        again: whether all of it was on record already.
    """

    trial: Trial
    late: bool
    counted: bool
    sentence: str | None = None
    told: Told | None = None
    new: bool = False
    again: bool = False


@final
class Tell(NamedTuple):
    """Records the answer to a decision: a reward, constraint values, or a failure."""

    number: int
    body: messages.RewardRequest | messages.FailureRequest

    def note_keys(self, worker: StudyWorker) -> list[str]:
        """Returns the keys of the notes that the deadline rule writes."""
        return [f"{kind}:{self.number}" for kind in (DEFAULTED, LATE)] if worker.deadlines.active else []

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks the answer, and returns the action that records it."""
        body, study = self.body, worker.study
        if isinstance(body, messages.FailureRequest):
            reason, revise = about("reason", reason_of, "failed", body.reason), body.revise
            return lambda transaction: self._fail(worker, transaction, reason, revise=revise)
        if body.reward is None and body.constraints is None:
            raise InvalidInput("`reward` is missing: a reward, or constraint values, or both must be told.")
        field = "constraints" if body.reward is None else "reward"
        answer = _rewards(body.reward, study.policy), body.constraints, body.std, body.metrics
        told = about(field, study.inputs.answer, self.number, *answer)
        if body.observed_at is not None:
            number("observed_at", body.observed_at, high=study.replica.clock() + AHEAD, why=SEEN)
        return lambda transaction: self._tell(worker, transaction, told, body)

    def _tell(
        self, worker: StudyWorker, transaction: Transaction, told: Told, body: messages.RewardRequest
    ) -> TellResult:
        trial = _trial(transaction, self.number)
        if transaction.read_note(f"{DEFAULTED}:{self.number}") is not None:
            return self._tell_after_default(worker, transaction, trial, told, revise=body.revise)
        order, was_open = transaction.order, trial.open
        trial = transaction.tell(told, revise=body.revise)
        if body.observed_at is not None:
            transaction.write_note(f"{OBSERVED}:{self.number}", json.dumps(body.observed_at))
        result = tell_result(worker, transaction.trials, trial)
        return result._replace(new=was_open and not trial.open, again=transaction.order == order)

    def _tell_after_default(
        self, worker: StudyWorker, transaction: Transaction, trial: Trial, told: Told, *, revise: bool
    ) -> TellResult:
        """Stores an answer that came after the deadline rule was applied. It counts if the rule says so."""
        check_plays(trial, told.plays)
        key = f"{LATE}:{self.number}"
        before = json.loads(transaction.read_note(key) or NO_ANSWER)
        late = _merged(trial.number, before, told, revise=revise)
        rule = worker.deadlines.rule
        counted = rule.late == "count"
        if late != before:
            if counted:
                trial = transaction.tell(told, revise=True)
            transaction.write_note(key, json.dumps(late))
        stands = "the failure" if rule.on_deadline == "fail" else f"the default reward {rule.default_reward!r}"
        sentence = (
            f"It came after the deadline, in place of {stands}: it counts as if it had come then."
            if counted
            else f"It came after the deadline and does not count: {stands} stands. It is kept with the decision."
        )
        return TellResult(
            trial, late=True, counted=counted, sentence=sentence, told=answer_of_note(trial.number, late),
            new=before[0] is None and late[0] is not None, again=late == before,
        )  # fmt: skip

    def _fail(self, worker: StudyWorker, transaction: Transaction, reason: str, *, revise: bool) -> TellResult:
        after = _after_default(transaction, self.number)
        if after is not None:
            return after
        order, was_open = transaction.order, transaction.trials[self.number].open
        trial = transaction.fail(self.number, reason, revise=revise)
        result = tell_result(worker, transaction.trials, trial)
        return result._replace(new=was_open, again=transaction.order == order)


@final
class End(NamedTuple):
    """Records that a decision was abandoned or stopped."""

    number: int
    reason: str | None
    record: Callable[[Transaction, int, Any], Trial]

    def note_keys(self, worker: StudyWorker) -> list[str]:
        """Returns the key of the note that the deadline rule writes."""
        return [f"{DEFAULTED}:{self.number}"] if worker.deadlines.active else []

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks the reason, and returns the action that records it."""
        ended = "was abandoned" if self.record is Transaction.abandon else "was stopped"
        reason = None if self.reason is None else about("reason", reason_of, ended, self.reason)

        def action(transaction: Transaction) -> TellResult:
            after = _after_default(transaction, self.number)
            if after is not None:
                return after
            was_open = transaction.trials[self.number].open
            trial = self.record(transaction, self.number, reason)
            return tell_result(worker, transaction.trials, trial)._replace(new=was_open and not trial.open)

        return action


@final
class Report(NamedTuple):
    """Records the value of a decision after a step of its evaluation, and judges whether to go on."""

    number: int
    step: int | str
    value: float
    most: int

    def note_keys(self, worker: StudyWorker) -> list[str]:
        """Returns the key of the note that the deadline rule writes."""
        return [f"{DEFAULTED}:{self.number}"] if worker.deadlines.active else []

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks step and value, and returns the action that records them."""
        step, value = about("value", worker.study.inputs.report, self.step, self.value)

        def action(transaction: Transaction) -> str:
            if _after_default(transaction, self.number) is not None:
                raise Problem(
                    409, "conflict", "The deadline of this decision has passed, and the study's rule was applied; "
                    "nothing was recorded. Ask for another decision.",
                )  # fmt: skip
            curve = transaction.trials[self.number].curve
            if len(curve) >= self.most and step > curve[-1].step:
                raise Problem(
                    422, "refused", f"This decision has reported {self.most:,} times, and this service takes no more "
                    "of one decision; nothing was recorded. Report fewer of the steps, such as every tenth.",
                )  # fmt: skip
            return transaction.report(self.number, step, value)[1]

        return action


class ObserveResult(NamedTuple):
    """Result of `Observe`.

    Attributes:
        trial: the observation on record.
        would: what the policy would have done instead, if the request asks for a comparison.
        again: whether the request is a retry.
    """

    trial: Trial
    would: dict[str, Any] | None
    again: bool


@final
class Observe(NamedTuple):
    """Records an observation that no decision asked for."""

    body: messages.ObservationRequest
    request: IdempotentRequest

    def note_keys(self, worker: StudyWorker) -> list[str]:  # noqa: ARG002
        """Returns the key of the note about the request."""
        return self.request.keys

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks the observation, and returns the action that records it."""
        body, inputs = self.body, worker.study.inputs
        context = about("context", inputs.context, body.context)
        answer = _rewards(body.reward, worker.study.policy), body.constraints, body.std, body.metrics
        told = about("reward", inputs.observation, *answer)
        checked = worker.study.replica.checked
        entry, place = checked(lambda: self._place(worker))
        decision: Decision = about(entry, checked, lambda: worker.study.inputs.point(place))

        def action(transaction: Transaction) -> ObserveResult:
            reply = self.request.stored_reply(transaction)
            if reply is not None:
                return ObserveResult(_trial(transaction, reply.numbers[0]), reply.more, again=True)
            would = self._comparison(worker, transaction.preview(context), decision) if body.compare else None
            trial = transaction.add(decision, context, *told)
            self.request.store(transaction, [trial.number], would)
            if would is not None:
                transaction.write_note(f"{WOULD}:{trial.number}", json.dumps(would))
            return ObserveResult(trial, would, again=False)

        return action

    def _place(self, worker: StudyWorker) -> tuple[str, Any]:
        """Returns the entry that says where the observation was made, and its value."""
        body, domain = self.body, worker.study.policy.domain
        given = [(name, getattr(body, name)) for name in PLACES if getattr(body, name) is not None]
        if len(given) != 1:
            raise InvalidInput("`parameters`, `point` or `arm`: an observation is of exactly one of them.")
        if body.arm is None:
            return given[0]
        if not isinstance(domain, Arms) or body.arm >= len(domain):
            count = f"arms 0 .. {len(domain) - 1}" if isinstance(domain, Arms) else "no arms"
            raise InvalidInput(f"`arm` is {body.arm}: this study has {count}.")
        return "arm", domain.points[body.arm]

    @staticmethod
    def _comparison(worker: StudyWorker, decision: Decision, done: Decision) -> dict[str, Any]:
        """Returns the policy's decision, compared with the observed one."""
        settings = settings_at(worker.study.policy.domain, decision.point)
        return {
            "parameters": None if settings is None else readable(dict(settings)), "point": decision.point.tolist(),
            "arm": decision.arm, "same": decision.point.tobytes() == done.point.tobytes(),
            "explored": decision.explored,
        }  # fmt: skip


class _Summed(msgspec.Struct):
    """The entry of a body that holds the rewards of several plays, summed up."""

    reward: messages.Sums


class _Items(msgspec.Struct):
    """The entry of a body that holds several of them."""

    items: list[_Summed | None]


def check_sums(items: Sequence[messages.RewardItem], policy: AnyPolicy) -> None:
    """Refuses a list of rewards with sums of plays that have a wrong form, before any is recorded."""
    given = [{"reward": each.reward} if isinstance(each.reward, dict) else None for each in items]
    if policy.objective_count == 1 and any(given):
        try:
            msgspec.convert({"items": given}, _Items)
        except msgspec.ValidationError as error:
            raise unfit("The body", error, _Items) from None


def _rewards(told: messages.Rewards | None, policy: AnyPolicy) -> Any:
    """Returns a reward, values of objectives, or the rewards of several plays, in the form that a study takes."""
    if not isinstance(told, dict) or policy.objective_count > 1:
        return told
    try:
        return Rewards(**msgspec.structs.asdict(msgspec.convert({"reward": told}, _Summed).reward))
    except msgspec.ValidationError as error:
        raise unfit("The body", error, _Summed) from None
    except InvalidInput as error:
        raise error.within("reward") from None


def _after_default(transaction: Transaction, number_: int) -> TellResult | None:
    """Returns the result of a decision to which the deadline rule has been applied. None of other decisions."""
    trial = _trial(transaction, number_)
    if transaction.read_note(f"{DEFAULTED}:{number_}") is None:
        return None
    sentence = "It came after the deadline, when the study's rule had been applied; nothing was changed."
    return TellResult(trial, late=True, counted=False, sentence=sentence)


def _merged(number_: int, before: Sequence[Any], told: Told, *, revise: bool) -> list[Any]:
    """Returns reward, constraint values, plays, noise and metrics that have come late, the earlier ones included.

    Of several objectives, those after the first follow in a list: the value and its noise of each.

    Raises:
        TrialError: a different late answer came before, and `revise` is False.
    """
    reward, g, plays, std, metrics, *others = before
    now = told.reward, None if told.constraints is None else told.constraints.tolist(), told.plays and list(told.plays)
    metrics = metrics if not told.measured else dict(told.measured)
    further = [[list(other) for other in told.others]] if told.others else []
    known_reward, new_reward = [reward, plays, std, *others], [now[0], now[2], told.std, *further]
    for name, known, other in (("reward", known_reward, new_reward), ("constraint values", [g], [now[1]])):
        if known[0] is not None and other[0] is not None and known != other and not revise:
            raise TrialError(
                f"Of trial {number_} a late answer was told already ({name} {known[0]}), and now another one comes "
                f"({name} {other[0]}); nothing was recorded.",
                topic="answered",
            )
    first = known_reward if now[0] is None else new_reward
    return [first[0], g if now[1] is None else now[1], first[1], first[2], metrics, *first[3:]]


def answer_of_note(number_: int, late: Sequence[Any]) -> Told:
    """Returns the late answer that a note holds (see `_merged`)."""
    reward, g, plays, std, metrics, *others = late
    limits = None if g is None else np.array(g, dtype=np.float64)
    further = tuple(Other(*each) for each in (others[0] if others else ()))
    return Told(number_, reward, limits, plays and Plays(*plays), std, tuple((metrics or {}).items()), further)


def tell_result(worker: StudyWorker, trials: Sequence[Trial], trial: Trial) -> TellResult:
    """Returns what the record says of the answer of a trial."""
    late = worker.deadlines.late(trial)
    if not late or trial.state != "observed":
        taught = trial.state == "stopped" and pruning_of(worker.study.policy).learned != "nothing"
        return TellResult(trial, late=late, counted=trial.state == "observed" or taught)
    counted = reward_counts(worker, trials, trial)
    expires = worker.deadlines.expires_at(trial)
    passed = expires is not None and trial.told_at is not None and trial.told_at > expires
    since = "the deadline" if passed else "the decision had been given up"
    sentence = f"It came after {since}, and " + ("counts all the same." if counted else "does not count.")
    return TellResult(trial, late=True, counted=counted, sentence=sentence)


def reward_counts(worker: StudyWorker, trials: Sequence[Trial], trial: Trial) -> bool:
    """Returns whether the policy learns from a late reward, by its rule for pending trials."""
    first = trial.as_corrected()

    def decisions_since() -> int:
        end = first.told_order or 0
        later = trials[first.number + 1 :]
        return sum(each.asked_order < end and each.asked_order != each.as_corrected().told_order for each in later)

    return worker.study.policy.pending.counts(first, decisions_since)


def _trial(transaction: Transaction, number_: int) -> Trial:
    trials = transaction.trials
    if number_ >= len(trials):
        raise Problem(
            404, "no_decision", "This decision is no longer on record: an older copy of the storage has taken the "
            "place of the one that it was made with.",
        )  # fmt: skip
    return trials[number_]
