"""Commands that decide or record observations: checked in `prepare`, then run in a transaction that they share."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, final

from ...domains.domain import Arms, Space
from ...domains.options import readable
from ...errors import InvalidInput
from ...policy.availability import Available
from ...policy.engines import Decision
from ...policy.explain import Propensity
from ...policy.state import State
from ...storage.record import Trial
from ...study import slates
from ...study.explain import propensity_of
from ...study.function import settings_at
from ...study.transaction import Going, Transaction
from ...study.visits import Asked, Seen, asked_of
from ..wire import messages
from ..wire.decision_ids import IdempotentRequest, key_of
from ..wire.problems import Problem, about
from .answers import plays_told, trial_of
from .collected import COLLECTED
from .workers import Action, StudyWorker

WOULD = "would"  # kind of the notes about what the policy would have done
PLACES = ("parameters", "point", "arm")  # entries of an observation, one of which says where it was made
PAUSED = (
    "The study is paused, so nothing is decided; rewards are taken all the same. An admin lets it go on, on the "
    'dashboard or by `PATCH` with {"paused": false}.'
)


_Given = tuple[Seen | None, Available | None, float | None, Asked | None]


class DecideResult(NamedTuple):
    """Result of `Decide`.

    Attributes:
        trials: the decisions.
        again: whether the request is a retry.
        propensities: functions that compute the propensity of each decision, which may take a while. None if the
            request did not ask for propensities, or if a replay of the record must compute them.
        alike: whether a retry has the same `among` and `exclude` as the first request.
        cautions: sentences about new decisions.
    """

    trials: list[Trial]
    again: bool
    propensities: list[Callable[[], Propensity | None]] | None = None
    alike: bool = True
    cautions: list[str] | None = None


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
        body, study, given = self.body, worker.study, self._given(worker)

        def action(transaction: Transaction, before: Sequence[_NewTrial] = ()) -> DecideResult | Going:
            known = self._earlier(worker, transaction, before, given)
            if isinstance(known, DecideResult):
                return known
            if worker.notes.paused and not known:
                raise Problem(409, "paused", PAUSED)
            made, count = list(known), body.count or 1
            worker.counts.check(transaction, self.most_pending, count - len(made))
            if body.slate:
                places = slates.decided(transaction, *given, count, slate=True)
                self._write_notes(transaction, places, 0)
                return DecideResult(places, again=False)
            begun = len(made)
            while len(made) < count and (len(made) == begun or not transaction.expired):
                state = transaction.copy_state() if body.propensity and not study.propensities else None
                others = [each.trial for each in made]
                playable = slates.next_offered(transaction, given[1], given[3], others) if made else given[1]
                trial = transaction.ask(given[0], playable, *given[2:])
                if body.propensity:
                    playable = transaction.roster.playable(playable)
                made.append(_NewTrial(trial, partial(_propensity, state, available=playable)))
            self._write_notes(transaction, [each.trial for each in made], count - len(made))
            if len(made) < count:
                return Going(partial(action, before=made))
            propensities = [partial(each.propensity, each.trial) for each in made if each.propensity is not None]
            wanted = body.propensity and len(propensities) == count
            said = slates.repeats(transaction.roster, given[1], given[3], count) if count > 1 else {}
            return DecideResult(
                [each.trial for each in made], again=False, propensities=[*propensities] if wanted else None,
                cautions=[*said.values()],
            )  # fmt: skip

        return action

    def _given(self, worker: StudyWorker) -> _Given:
        """Returns context, available points, lease, and what the caller says of the decision, checked."""
        body, study = self.body, worker.study
        inputs, context = study.replica.inputs, None
        if body.context is not None or inputs.policy.context is not None:
            context = about("context", Seen, body.context, inputs)
        offered = None
        if body.among is not None or body.exclude is not None:
            entry = "exclude" if body.among is None else "among"
            offered = about(entry, study.offered, body.among, body.exclude)
        if body.slate and about("count", slates.check_slate, body.slate, body.count) and body.propensity:
            raise InvalidInput("`propensity` is not computed for a slate: put the study with `propensities`.")
        if body.event is not None and body.count is not None and not body.slate:
            raise InvalidInput(f"`event` names one decision, and `count` is {body.count}. Ask for each alone.")
        asked = None
        if body.event is not None or body.unit is not None or body.facts is not None:
            asked = about("facts", asked_of, body.event, body.unit, body.facts)
        return context, offered, worker.deadlines.lease(body.deadline), asked

    def _write_notes(self, transaction: Transaction, trials: Sequence[Trial], left: int) -> None:
        """Writes the notes for retries, in the transaction that records the trials. `left` decisions are to come."""
        body, numbers = self.body, [trial.number for trial in trials]
        self.request.store(transaction, numbers, left or None)
        if body.client is not None:
            offered = self.request.hash_of(body.among, body.exclude)
            transaction.write_note(key_of("client", body.client), json.dumps([numbers, offered]))

    def _earlier(
        self, worker: StudyWorker, transaction: Transaction, before: Sequence[_NewTrial], given: _Given
    ) -> DecideResult | Sequence[_NewTrial]:
        """Returns the stored reply or the client's pending decisions, or else the decisions made so far."""
        body, reply = self.body, self.request.stored_reply(transaction)
        if reply is not None:
            trials = [trial_of(worker, transaction, each) for each in reply.numbers]
            if type(reply.more) is not int:
                return DecideResult(trials, again=True, alike=reply.more is None)
            # Another process may have begun the request, or may have gone on with it.
            own = {each.trial.number: each for each in before}
            return [own.get(trial.number) or _NewTrial(trial, None) for trial in trials]
        if before:
            return before
        if body.event is not None and body.event in worker.study.replica.record.events:
            places = slates.decided(transaction, *given, body.count or 1, slate=body.slate)
            self.request.store(transaction, [trial.number for trial in places], "of an event that was there")
            return DecideResult(places, again=True, alike=False)
        another = body.client is None or body.event is not None or body.unit is not None  # not what was asked before
        note = None if another else transaction.read_note(key_of("client", body.client or ""))
        if note is None:
            return ()
        numbers, offered = json.loads(note)
        left = [
            trial for trial in (trial_of(worker, transaction, each) for each in numbers) if trial.state == "pending"
        ]
        if worker.deadlines.rule.reward is not None:  # A decision with a reward has been worked on.
            left = [trial for trial in left if not transaction.read_note(f"{COLLECTED}:{trial.number}")]
        if not left:
            return ()
        alike = offered == self.request.hash_of(body.among, body.exclude)
        more = None if alike else "of other things to choose from"
        self.request.store(transaction, [trial.number for trial in left], more)
        return DecideResult(left, again=True, alike=alike)


def _propensity(before: State | None, trial: Trial, available: Available | None) -> Propensity | None:
    return None if before is None else propensity_of(before, trial, available=available)


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
        context = about("context", Seen, body.context, inputs)
        answer = plays_told(body.reward, worker.study.policy), body.constraints, body.std, body.metrics
        told = about("reward", inputs.observation, *answer)
        checked = worker.study.replica.checked
        entry, place = checked(lambda: self._place(worker))
        read: Decision = about(entry, checked, lambda: worker.study.inputs.point(place))
        by = worker.study.inputs

        def action(transaction: Transaction) -> ObserveResult:
            now = transaction.inputs
            decision = read if now is by else about(entry, now.point, place)  # Another process may change the space.
            reply = self.request.stored_reply(transaction)
            if reply is not None:
                return ObserveResult(trial_of(worker, transaction, reply.numbers[0]), reply.more, again=True)
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
        domain = worker.study.policy.domain
        settings, same = settings_at(domain, decision.point), decision.point.tobytes() == done.point.tobytes()
        if isinstance(domain, Space):  # Parameters that were read from a decision have 12 digits.
            same = settings == settings_at(domain, done.point)
        return {
            "parameters": None if settings is None else readable(dict(settings)), "point": decision.point.tolist(),
            "arm": decision.arm, "same": same, "explored": decision.explored,
        }  # fmt: skip
