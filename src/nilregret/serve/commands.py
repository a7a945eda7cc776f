"""What can be done to a study from outside, each checked in `prepared`, done in a transaction that others share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import msgspec

from .._utils.checks import number
from .._utils.errors import InvalidInput, TrialError
from ..domains.domain import Arms
from ..policy.availability import Available, available
from ..policy.engines import Decision
from ..policy.explain import Propensity
from ..policy.state import State
from ..storage.record import Trial
from ..storage.trial import Plays
from ..study.answers import Told, reason_of, told_of
from ..study.axes import settings_at
from ..study.explain import propensity_of
from ..study.rewards import Rewards, check_plays
from ..study.transaction import Going, Transaction
from . import messages
from .deadlines import DEFAULTED
from .decisions import key_of
from .idempotency import Request
from .problems import Problem, about
from .worker import Act, StudyWorker

LATE, OBSERVED, WOULD = "late", "observed", "would"  # notes of a trial
PLACES = ("parameters", "point", "arm")  # entries of an observation that say where
AHEAD = 60.0  # seconds by which the clocks of two machines may differ
SEEN = "It is when the reward was seen, in Unix seconds (not milliseconds), and not to come."


class Decided(NamedTuple):
    """What comes of `Decide`.

    Attributes:
        trials: decided.
        again: whether the request came before.
        chances: of each, where that was asked for and is not to be found in the record alone: how probable it was,
            which may take a while.
        alike: whether `among` and `exclude` are those of then; a client may come back with others.
    """

    trials: list[Trial]
    again: bool
    chances: list[Callable[[], Propensity | None]] | None = None
    alike: bool = True


@final
class Decide(NamedTuple):
    """Ask for decisions."""

    body: messages.DecisionRequest
    request: Request
    most_pending: int

    def keys(self, desk: StudyWorker) -> list[str]:  # noqa: ARG002
        """See `Call`."""
        client = self.body.client
        found = [] if client is None else [key_of("client", client)]
        return found if self.request.key is None else [self.request.key, *found]

    def prepared(self, desk: StudyWorker) -> Act:
        """See `Call`."""
        body, study = self.body, desk.study
        seen = about("context", study.inputs.context, body.context)
        whole = body.among is None and body.exclude is None
        offered = (
            None
            if whole
            else about(
                "exclude" if body.among is None else "among", available, study.policy.domain, body.among, body.exclude
            )
        )
        lease = desk.waiting.lease(body.deadline)

        def act(turn: Transaction, before: Sequence[_Made] = ()) -> Decided | Going:
            known = self._known(turn, before)
            if isinstance(known, Decided):
                return known
            made, count = list(known), body.count or 1
            desk.tally.check(turn, self.most_pending, count - len(made))
            begun = len(made)
            while len(made) < count and (len(made) == begun or not turn.expired):
                state = turn.copy_state() if body.propensity else None
                made.append(_Made(turn.ask(seen, offered, lease), partial(_chance, state, available=offered)))
            self._note(turn, [each.trial for each in made], count - len(made))
            if len(made) < count:
                return Going(partial(act, before=made))
            chances: list[Callable[[], Propensity | None]]
            chances = [partial(each.chance, each.trial) for each in made if each.chance is not None]
            wanted = body.propensity and len(chances) == count
            return Decided([each.trial for each in made], again=False, chances=chances if wanted else None)

        return act

    def _note(self, turn: Transaction, trials: Sequence[Trial], left: int) -> None:
        """Remember what was decided, in the transaction that records it; so many decisions are left to make."""
        body, numbers = self.body, [trial.number for trial in trials]
        self.request.note(turn, numbers, left or None)
        if body.client is not None:
            offered = self.request.hash_of(body.among, body.exclude)
            turn.write_note(key_of("client", body.client), json.dumps([numbers, offered]))

    def _known(self, turn: Transaction, before: Sequence[_Made]) -> Decided | Sequence[_Made]:
        """What it was answered before, or what its client still has to do; else what has been decided of it so far."""
        body, answered = self.body, self.request.answered(turn)
        if answered is not None:
            trials = [_at(turn, each) for each in answered.numbers]
            if type(answered.more) is not int:
                return Decided(trials, again=True, alike=answered.more is None)
            ours = {each.trial.number: each for each in before}  # another process may go on with it, or have begun it
            return [ours.get(trial.number) or _Made(trial, None) for trial in trials]
        if before:
            return before
        note = None if body.client is None else turn.read_note(key_of("client", body.client))
        if note is None:
            return ()
        known = json.loads(note)  # of an earlier service the numbers alone
        numbers, offered = known if known and isinstance(known[0], list) else (known, None)
        left = [trial for trial in (_at(turn, each) for each in numbers) if trial.state == "pending"]
        if not left:
            return ()
        alike = offered == self.request.hash_of(body.among, body.exclude)
        self.request.note(turn, [trial.number for trial in left], None if alike else "of other things to choose from")
        return Decided(left, again=True, alike=alike)


class _Made(NamedTuple):
    """A decision of a request, and how probable it was; None where it was made elsewhere, or before a crash."""

    trial: Trial
    chance: Callable[[Trial], Propensity | None] | None


def _chance(before: State | None, trial: Trial, available: Available | None) -> Propensity | None:
    return None if before is None else propensity_of(before, trial, available=available)


class TellResult(NamedTuple):
    """What comes of a reward or a failure.

    Attributes:
        trial: as it is on record.
        late: whether it came after the deadline.
        counted: whether it reached what is learned.
        sentence: what there is to say about that.
        told: the reward, its plays and the constraint values as they were told, where they are not those on record.
        new: whether it is the first answer that somebody gave to this decision.
        again: whether all of it was known before.
    """

    trial: Trial
    late: bool
    counted: bool
    sentence: str | None = None
    told: tuple[float | None, Plays | None, list[float] | None] | None = None
    new: bool = False
    again: bool = False


@final
class Tell(NamedTuple):
    """Tell what came of a decision: a reward, constraint values, or that it failed."""

    number: int
    body: messages.RewardRequest | messages.FailureRequest

    def keys(self, desk: StudyWorker) -> list[str]:
        """See `Call`."""
        return [f"{kind}:{self.number}" for kind in (DEFAULTED, LATE)] if desk.waiting.acts else []

    def prepared(self, desk: StudyWorker) -> Act:
        """See `Call`."""
        body, study = self.body, desk.study
        if isinstance(body, messages.FailureRequest):
            reason, revise = about("reason", reason_of, "failed", body.reason), body.revise
            return lambda turn: self._failed(desk, turn, reason, revise=revise)
        if body.reward is None and body.constraints is None:
            raise InvalidInput("`reward` is missing: a reward, or constraint values, or both must be told.")
        field = "constraints" if body.reward is None else "reward"
        told = about(field, told_of, study.inputs, self.number, _rewards(body.reward), body.constraints)
        if body.observed_at is not None:
            number("observed_at", body.observed_at, high=study.replica.clock() + AHEAD, why=SEEN)
        return lambda turn: self._told(desk, turn, told, body)

    def _told(self, desk: StudyWorker, turn: Transaction, told: Told, body: messages.RewardRequest) -> TellResult:
        trial = _at(turn, self.number)
        if turn.read_note(f"{DEFAULTED}:{self.number}") is not None:
            return self._after_default(desk, turn, trial, told, revise=body.revise)
        order, was_open = turn.order, trial.open
        trial = turn.tell(told, revise=body.revise)
        if body.observed_at is not None:
            turn.write_note(f"{OBSERVED}:{self.number}", json.dumps(body.observed_at))
        came = heard(desk, turn.trials, trial)
        return came._replace(new=was_open and not trial.open, again=turn.order == order)

    def _after_default(
        self, desk: StudyWorker, turn: Transaction, trial: Trial, told: Told, *, revise: bool
    ) -> TellResult:
        """Too late for the study's rule: kept, and counted where the rule says so."""
        check_plays(trial, told.plays)
        key = f"{LATE}:{self.number}"
        before = json.loads(turn.read_note(key) or "[null, null, null]")
        late = _both(trial.number, before, told, revise=revise)
        rule = desk.waiting.rule
        counts = rule.late == "count"
        if late != before:
            if counts:
                trial = turn.tell(told, revise=True)
            turn.write_note(key, json.dumps(late))
        stands = "the failure" if rule.on_deadline == "fail" else f"the default reward {rule.default_reward!r}"
        sentence = (
            f"It came after the deadline, in place of {stands}: it counts as if it had come then."
            if counts
            else f"It came after the deadline and does not count: {stands} stands. It is kept with the decision."
        )
        return TellResult(
            trial, late=True, counted=counts, sentence=sentence, told=(late[0], late[2] and Plays(*late[2]), late[1]),
            new=before[0] is None and late[0] is not None, again=late == before,
        )  # fmt: skip

    def _failed(self, desk: StudyWorker, turn: Transaction, reason: str, *, revise: bool) -> TellResult:
        after = _over(turn, self.number)
        if after is not None:
            return after
        order, was_open = turn.order, turn.trials[self.number].open
        came = heard(desk, turn.trials, turn.fail(self.number, reason, revise=revise))
        return came._replace(new=was_open, again=turn.order == order)


@final
class GiveUp(NamedTuple):
    """Tell that nobody works on a decision any more."""

    number: int
    reason: str

    def keys(self, desk: StudyWorker) -> list[str]:
        """See `Call`."""
        return [f"{DEFAULTED}:{self.number}"] if desk.waiting.acts else []

    def prepared(self, desk: StudyWorker) -> Act:
        """See `Call`."""
        reason = about("reason", reason_of, "was abandoned", self.reason)
        return lambda turn: _over(turn, self.number) or heard(desk, turn.trials, turn.abandon(self.number, reason))


class Observed(NamedTuple):
    """What comes of `Observe`."""

    trial: Trial
    would: dict[str, Any] | None
    again: bool


@final
class Observe(NamedTuple):
    """Tell of something that was not asked for."""

    body: messages.ObservationRequest
    request: Request

    def keys(self, desk: StudyWorker) -> list[str]:  # noqa: ARG002
        """See `Call`."""
        return [] if self.request.key is None else [self.request.key]

    def prepared(self, desk: StudyWorker) -> Act:
        """See `Call`."""
        body, study = self.body, desk.study
        given = study.inputs
        seen = about("context", given.context, body.context)
        value, plays = about("reward", given.rewards, _rewards(body.reward))
        place, where = self._place(desk)
        decision = about(place, given.point, where)._replace(repeats=1 if plays is None else plays.times)
        g = None if body.constraints is None else about("constraints", given.constraints, body.constraints)

        def act(turn: Transaction) -> Observed:
            known = self.request.answered(turn)
            if known is not None:
                return Observed(_at(turn, known.numbers[0]), known.more, again=True)
            would = self._would(desk, turn.preview(seen), decision) if body.compare else None
            trial = turn.add(decision, seen, value, g, plays)
            self.request.note(turn, [trial.number], would)
            if would is not None:
                turn.write_note(f"{WOULD}:{trial.number}", json.dumps(would))
            return Observed(trial, would, again=False)

        return act

    def _place(self, desk: StudyWorker) -> tuple[str, Any]:
        """The entry that says where, and what it says."""
        body, domain = self.body, desk.study.policy.domain
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
    def _would(desk: StudyWorker, decision: Decision, done: Decision) -> dict[str, Any]:
        settings = settings_at(desk.study.policy.domain, decision.point)
        return {
            "parameters": None if settings is None else dict(settings), "point": decision.point.tolist(),
            "arm": decision.arm, "same": decision.point.tobytes() == done.point.tobytes(),
            "explored": decision.explored,
        }  # fmt: skip


def _rewards(said: messages.Rewards | None) -> Any:
    """A reward, or those of several plays, as a study takes them."""
    if not isinstance(said, messages.Sums):
        return said
    try:
        return Rewards(**msgspec.structs.asdict(said))
    except InvalidInput as error:
        raise error.within("reward") from None


def _over(turn: Transaction, number_: int) -> TellResult | None:
    """What is said of a decision to which the study's rule has been applied at its deadline; None of others."""
    trial = _at(turn, number_)
    if turn.read_note(f"{DEFAULTED}:{number_}") is None:
        return None
    sentence = "It came after the deadline, when the study's rule had been applied; nothing was changed."
    return TellResult(trial, late=True, counted=False, sentence=sentence)


def _both(number_: int, before: Sequence[Any], told: Told, *, revise: bool) -> list[Any]:
    """What has come late of a trial by now: reward, constraint values, plays.

    Raises:
        TrialError: something else came before, and is not to be corrected.
    """
    reward, g, plays = (*before, None)[:3]
    now = told.reward, None if told.constraints is None else told.constraints.tolist(), told.plays and list(told.plays)
    for name, known, other in (("reward", [reward, plays], [now[0], now[2]]), ("constraint values", [g], [now[1]])):
        if known[0] is not None and other[0] is not None and known != other and not revise:
            raise TrialError(
                f"Of trial {number_} a late answer was told already ({name} {known[0]}), and now another one comes "
                f"({name} {other[0]}); nothing was recorded.",
                topic="answered",
            )
    first = (reward, plays) if now[0] is None else (now[0], now[2])
    return [first[0], g if now[1] is None else now[1], first[1]]


def heard(desk: StudyWorker, trials: Sequence[Trial], trial: Trial) -> TellResult:
    """What an answered trial says of its answer."""
    late = desk.waiting.late(trial)
    if not late or trial.state != "observed":
        return TellResult(trial, late=late, counted=trial.state == "observed")
    counted = counts(desk, trials, trial)
    expires = desk.waiting.expires_at(trial)
    passed = expires is not None and trial.told_at is not None and trial.told_at > expires
    since = "the deadline" if passed else "the decision had been given up"
    sentence = f"It came after {since}, and " + ("counts all the same." if counted else "does not count.")
    return TellResult(trial, late=True, counted=counted, sentence=sentence)


def counts(desk: StudyWorker, trials: Sequence[Trial], trial: Trial) -> bool:
    """Whether the policy's rule for pending trials lets its reward count."""
    first = trial.righted()

    def since() -> int:
        end = first.told_order or 0
        later = trials[first.number + 1 :]
        return sum(each.asked_order < end and each.asked_order != each.righted().told_order for each in later)

    return desk.study.policy.pending.counts(first, since)


def _at(turn: Transaction, number_: int) -> Trial:
    trials = turn.trials
    if number_ >= len(trials):
        raise Problem(
            404, "no_decision", "This decision is no longer on record: an older copy of the storage has taken the "
            "place of the one that it was made with.",
        )  # fmt: skip
    return trials[number_]
