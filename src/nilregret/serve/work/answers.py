"""Commands that record what came of a decision: rewards, failures, reports, and ends without an answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import msgspec
import numpy as np

from ..._utils.checks import LARGEST_REWARD, many, number, outcome, shown
from ...errors import InvalidInput, TrialError
from ...storage.record import Trial
from ...storage.trial import Other, Plays
from ...study.direction import AnyPolicy
from ...study.lessons import places_of
from ...study.play_rewards import Rewards, Told, check_plays, reason_of
from ...study.pruning import pruning_of
from ...study.slates import rewards_of
from ...study.transaction import Transaction
from ..wire import messages
from ..wire.problems import Problem, about, unfit
from .collected import COLLECTED, WHOLE, Collected, Keyed
from .deadlines import DEFAULTED
from .workers import Action, StudyWorker

LATE, OBSERVED = "late", "observed"  # kinds of notes about a trial
NO_ANSWER = "[null,null,null,null,null]"  # a note without a late answer (see `_merged`)
AHEAD = 60.0  # seconds by which the clocks of two machines may differ
SEEN = "It is when the reward was seen, in Unix seconds (not milliseconds), and not to come."


class TellResult(NamedTuple):
    """Result of a reward or a failure.

    Attributes:
        trial: as it is on record.
        late: whether the answer came after the deadline.
        counted: whether the policy learns from the answer.
        sentence: about a late answer, in words.
        late_told: the answer that came after the deadline rule was applied, kept beside the one on record.
        new: whether it is the decision's first answer from a caller.
        again: whether all of it was on record already.
        collected: the rewards of the decision so far, where several are told as one answer.
    """

    trial: Trial
    late: bool
    counted: bool
    sentence: str | None = None
    late_told: Told | None = None
    new: bool = False
    again: bool = False
    collected: Collected | None = None


@final
class Tell(NamedTuple):
    """Records the answer to a decision: a reward, constraint values, or a failure.

    Attributes:
        which: number of the trial, or its event.
        body: of the request.
    """

    which: int | str
    body: messages.RewardRequest | messages.FailureRequest

    def note_keys(self, worker: StudyWorker) -> list[str]:
        """Returns the keys of the notes that the deadline rule writes."""
        return _note_keys(worker, self.which, DEFAULTED, LATE, COLLECTED)

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks the answer, and returns the action that records it."""
        body, study = self.body, worker.study
        if isinstance(body, messages.FailureRequest):
            reason, revise = about("reason", reason_of, "failed", body.reason), body.revise
            return lambda transaction: self._fail(worker, transaction, reason, revise=revise)
        if body.observed_at is not None:
            number("observed_at", body.observed_at, high=study.replica.clock() + AHEAD, why=SEEN)
        if worker.deadlines.rule.reward is not None:
            new = _keyed(body)
            return lambda transaction: self._collect(worker, transaction, new, revise=body.revise)
        if body.key is not None:
            raise InvalidInput(
                "`key` names one of several rewards of a decision, and a decision of this study has one reward. Leave "
                "`key` out, or make a study with `reward`, such as 'sum', and a `deadline`."
            )
        if body.reward is None and body.constraints is None:
            raise InvalidInput("`reward` is missing: a reward, or constraint values, or both must be told.")
        field = "constraints" if body.reward is None else "reward"
        answer = plays_told(body.reward, study.policy), body.constraints, body.std, body.metrics
        told = about(field, study.inputs.answer, 0, *answer)
        return lambda transaction: self._tell(worker, transaction, told, body)

    def _tell(
        self, worker: StudyWorker, transaction: Transaction, told: Told, body: messages.RewardRequest
    ) -> TellResult:
        trial = trial_of(worker, transaction, self.which)
        told = told._replace(trial=trial.number)
        if transaction.read_note(f"{DEFAULTED}:{trial.number}") is not None:
            return _tell_after_default(worker, transaction, trial, told, revise=body.revise)
        order, was_open = transaction.order, trial.open
        trial = transaction.tell(told, revise=body.revise)
        if body.observed_at is not None:
            transaction.write_note(f"{OBSERVED}:{trial.number}", json.dumps(body.observed_at))
        result = tell_result(worker, transaction.trials, trial)
        return result._replace(new=was_open and not trial.open, again=transaction.order == order)

    def _collect(self, worker: StudyWorker, transaction: Transaction, new: Keyed, *, revise: bool) -> TellResult:
        """Records one of several rewards of a decision, which are told as one answer when the wait is over."""
        trial, rule = trial_of(worker, transaction, self.which), worker.deadlines.rule
        number_ = trial.number
        before = Collected.of(transaction.read_note(f"{COLLECTED}:{number_}"))
        known, waits = before.find(new.key), trial.state == "pending"
        if known is not None and (known.reward, known.metrics) == (new.reward, new.metrics):
            return _collected(worker, transaction, trial, before, known)._replace(again=True)
        late = not waits if known is None else known.late
        counted = waits or trial.open or rule.late == "count" if known is None else known.counted
        new = new._replace(at=transaction.now if new.at is None else new.at, late=late, counted=counted)
        now = before.with_reward(number_, new, revise=revise)
        told = now.told(number_, rule.reward or "sum", late=not counted)
        about("reward", worker.study.inputs.answer, number_, told.reward, None, None, dict(told.measured))
        if transaction.read_note(f"{DEFAULTED}:{number_}") is not None:
            trial = _tell_after_default(worker, transaction, trial, told, revise=True).trial
        elif counted and not waits:
            trial = transaction.tell(told, revise=not trial.open)
        transaction.write_note(f"{COLLECTED}:{number_}", now.note())
        return _collected(worker, transaction, trial, now, new)._replace(new=not before.rewards)

    def _fail(self, worker: StudyWorker, transaction: Transaction, reason: str, *, revise: bool) -> TellResult:
        known = trial_of(worker, transaction, self.which)
        after = _after_default(transaction, known)
        if after is not None:
            return after
        if not revise:
            _require_none_collected(worker, transaction, known)
        order = transaction.order
        trial = transaction.fail(known.number, reason, revise=revise)
        result = tell_result(worker, transaction.trials, trial)
        return result._replace(new=known.open, again=transaction.order == order)


@final
class TellSlate(NamedTuple):
    """Records answers of the places of a slate, all or none.

    Attributes:
        which: number of one of its trials, or the event of the slate.
        body: of the request.
    """

    which: int | str
    body: messages.SlateRequest

    def note_keys(self, worker: StudyWorker) -> list[str]:  # noqa: ARG002
        """Returns no key: the places are not known before the transaction."""
        return []

    def prepare(self, worker: StudyWorker) -> Action:
        """Returns the action that records the answers."""
        body = self.body

        def action(transaction: Transaction) -> list[TellResult]:
            places = places_of(transaction.trials, trial_of(worker, transaction, self.which))
            told = about("rewards", rewards_of, places, body.rewards, body.clicked)
            requests = [(each.number, messages.RewardRequest(reward=value, revise=body.revise)) for each, value in told]
            actions = [Tell(*each).prepare(worker) for each in requests]
            return [each(transaction) for each in actions]

        return action


@final
class End(NamedTuple):
    """Records that a decision was abandoned or stopped."""

    which: int | str
    reason: str | None
    record: Callable[[Transaction, int, Any], Trial]

    def note_keys(self, worker: StudyWorker) -> list[str]:
        """Returns the keys of the notes that the deadline rule writes."""
        return _note_keys(worker, self.which, DEFAULTED, LATE)

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks the reason, and returns the action that records it."""
        ended = "was abandoned" if self.record is Transaction.abandon else "was stopped"
        reason = None if self.reason is None else about("reason", reason_of, ended, self.reason)

        def action(transaction: Transaction) -> TellResult:
            known = trial_of(worker, transaction, self.which)
            after = _after_default(transaction, known)
            if after is not None:
                return after
            _require_none_collected(worker, transaction, known)
            order = transaction.order
            trial = self.record(transaction, known.number, reason)
            result = tell_result(worker, transaction.trials, trial)
            return result._replace(new=known.open and not trial.open, again=transaction.order == order)

        return action


@final
class Report(NamedTuple):
    """Records the value of a decision after a step of its evaluation, and judges whether to go on."""

    which: int | str
    step: int | str
    value: float
    most: int

    def note_keys(self, worker: StudyWorker) -> list[str]:
        """Returns the key of the note that the deadline rule writes."""
        return _note_keys(worker, self.which, DEFAULTED)

    def prepare(self, worker: StudyWorker) -> Action:
        """Checks step and value. Returns the action that records them, and says its verdict and if they are a retry."""
        step, value = about("value", worker.study.inputs.report, self.step, self.value)

        def action(transaction: Transaction) -> tuple[str, bool]:
            known = trial_of(worker, transaction, self.which)
            if _after_default(transaction, known) is not None:
                raise Problem(
                    409, "conflict", "The deadline of this decision has passed, and the study's rule was applied; "
                    "nothing was recorded. Ask for another decision.",
                )  # fmt: skip
            curve = known.curve
            if len(curve) >= self.most and step > curve[-1].step:
                raise Problem(
                    422, "refused", f"This decision has reported {self.most:,} times, and this service takes no more "
                    "of one decision; nothing was recorded. Report fewer of the steps, such as every tenth.",
                )  # fmt: skip
            order = transaction.order
            verdict = transaction.report(known.number, step, value)[1]
            return verdict, transaction.order == order

        return action


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


def plays_told(told: messages.Rewards | None, policy: AnyPolicy) -> Any:
    """Returns a reward, values of objectives, or the rewards of several plays, in the form that a study takes."""
    if not isinstance(told, dict) or policy.objective_count > 1:
        return told
    try:
        return Rewards(**msgspec.structs.asdict(msgspec.convert({"reward": told}, _Summed).reward))
    except msgspec.ValidationError as error:
        raise unfit("The body", error, _Summed) from None
    except InvalidInput as error:
        raise error.within("reward") from None


def _keyed(body: messages.RewardRequest) -> Keyed:
    """Returns one of several rewards of a decision, checked by itself."""
    for entry in ("constraints", "std"):
        if getattr(body, entry) is not None:
            raise InvalidInput(
                f"`{entry}` is given, and this study collects several rewards of a decision, which are numbers alone. "
                "Leave it out."
            )
    if body.key is None:
        raise InvalidInput(
            "`key` is missing: this study collects several rewards of a decision, and each has a name, such as "
            "'click' or 'order-7', by which a retry is known."
        )
    if isinstance(body.reward, list | dict | None):
        raise InvalidInput(
            f"`reward` is {shown(body.reward)}, and this study collects several rewards of a decision, each a number "
            "with a `key` of its own."
        )
    why = "It is one of several rewards of a decision."
    reward = outcome("reward", body.reward, low=-LARGEST_REWARD, high=LARGEST_REWARD, why=why)
    return Keyed(body.key, reward, body.observed_at, {name: float(x) for name, x in (body.metrics or {}).items()})


def _collected(
    worker: StudyWorker, transaction: Transaction, trial: Trial, all_: Collected, one: Keyed
) -> TellResult:  # fmt: skip
    """Returns the result of one of several rewards of a decision."""
    if one.late and one.counted:
        sentence = "It came after the deadline, and counts all the same."
    elif one.late:
        sentence = "It came after the deadline and does not count. It is kept with the decision."
    else:
        rule = worker.deadlines.rule.reward or "sum"
        waits = f"It is kept with the decision. At the deadline {WHOLE[rule]} is told."
        sentence = waits if trial.state == "pending" else ""
    late = late_told(worker, trial.number, transaction.read_note(f"{LATE}:{trial.number}"), all_)
    return TellResult(trial, one.late, one.counted, sentence or None, late, collected=all_)


def _require_none_collected(worker: StudyWorker, transaction: Transaction, trial: Trial) -> None:
    """Raises `TrialError` if rewards of the decision wait to be told."""
    if worker.deadlines.rule.reward is None or trial.state != "pending":
        return
    came = Collected.of(transaction.read_note(f"{COLLECTED}:{trial.number}")).rewards
    if came:
        raise TrialError(
            f"Of trial {trial.number} {many(len(came), 'reward')} came ({came[0].key!r}: {came[0].reward!r}), and at "
            "its deadline they are told; nothing was recorded. Usually the end of another decision was meant.",
            topic="answered",
        )


def _tell_after_default(
    worker: StudyWorker, transaction: Transaction, trial: Trial, told: Told, *, revise: bool
) -> TellResult:
    """Stores an answer that came after the deadline rule was applied. It counts if the rule says so."""
    check_plays(trial, told.plays)
    key = f"{LATE}:{trial.number}"
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
        trial, late=True, counted=counted, sentence=sentence, late_told=_answer_of_note(trial.number, late),
        new=before[0] is None and late[0] is not None, again=late == before,
    )  # fmt: skip


def _after_default(transaction: Transaction, trial: Trial) -> TellResult | None:
    """Returns the result of a decision to which the deadline rule has been applied. None of other decisions."""
    if transaction.read_note(f"{DEFAULTED}:{trial.number}") is None:
        return None
    sentence = "It came after the deadline, when the study's rule had been applied; nothing was changed."
    late = json.loads(transaction.read_note(f"{LATE}:{trial.number}") or NO_ANSWER)
    return TellResult(trial, True, False, sentence, _answer_of_note(trial.number, late))


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


def late_told(worker: StudyWorker, number_: int, note: str | None, collected: Collected) -> Told:
    """Returns the answer that came late, by notes about answers and about several rewards of a decision."""
    rule = worker.deadlines.rule.reward
    if rule is not None and note is None and not all(each.counted for each in collected.rewards):
        return collected.told(number_, rule, late=True)
    return _answer_of_note(number_, json.loads(note or NO_ANSWER))


def _answer_of_note(number_: int, late: Sequence[Any]) -> Told:
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


def trial_of(worker: StudyWorker, transaction: Transaction, which: int | str) -> Trial:
    """Returns the trial of a number or an event, or raises `Problem` if there is none on record."""
    events, trials = worker.study.replica.record.events, transaction.trials
    if isinstance(which, str) and which not in events:
        raise Problem(
            404, "no_decision", "There is no decision of this id or event in this study. Ids are those that "
            "`POST .../decisions` gave, for the study that was asked, and events those that it was sent.", field="id",
        )  # fmt: skip
    number_ = events[which] if isinstance(which, str) else which
    if number_ >= len(trials):
        raise Problem(
            404, "no_decision", "This decision is no longer on record: an older copy of the storage has taken the "
            "place of the one that it was made with.",
        )  # fmt: skip
    return trials[number_]


def _note_keys(worker: StudyWorker, which: int | str, *kinds: str) -> list[str]:
    """Returns the keys of the notes of a decision, as far as the decision is known here."""
    known = worker.study.replica.record.events.get(which) if isinstance(which, str) else which
    return [f"{kind}:{known}" for kind in kinds] if worker.deadlines.active and known is not None else []
