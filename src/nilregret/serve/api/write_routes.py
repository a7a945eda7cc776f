"""Operations under /v1 that decide and record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET
from starlette.types import ASGIApp

from ..._utils.checks import whole_in
from ...errors import InvalidInput
from ...policy.explain import Propensity
from ...storage.trial import GOING, Trial
from ...study.transaction import Transaction
from ..auth.tokens import Caller
from ..wire import messages as m
from ..wire.decision_ids import IdempotentRequest
from ..wire.problems import problem_of
from ..work.answers import End, Report, Tell, TellSlate, check_sums
from ..work.commands import Decide, DecideResult, Observe
from ..work.events import several
from ..work.workers import StudyWorker
from . import create_study
from .bulk import OBSERVATIONS
from .operations import AGAIN, REFUSED, Operation, ParsedRequest, ResponseInfo, Service, json_of
from .replies import answer, decision

STUDY = "/v1/studies/{name}"
PROPENSITIES = 10  # decisions of one request with propensities, each of which may take a thousand draws
ONE = STUDY + "/decisions/{id}"
TOLD = {
    200: ResponseInfo("It is on record; also where it was before, and where it came late.", m.Answer),
    **{status: REFUSED[status] for status in (409,)},
}


async def put_study(service: Service, request: ParsedRequest) -> ASGIApp:
    """Makes a study, or checks that the stored one is the same."""
    made, study = await service.workers.in_thread(
        create_study.put,
        service.storage,
        request.caller,
        request.path["name"],
        request.body,
        service.settings.limits,
        tenant=request.caller.tenant,
    )
    return json_of(study, 201 if made else 200)


async def ask(service: Service, request: ParsedRequest) -> ASGIApp:
    """Makes decisions."""
    worker, body = await request.worker(service), request.body
    _check_count("count", body.count or 1, service)
    for name in ("among", "exclude"):
        _check_listed(name, getattr(body, name), service.settings.limits.arms)
    if body.propensity and (body.count or 1) > PROPENSITIES:
        raise InvalidInput(
            f"`propensity` is said of at most {PROPENSITIES} decisions in a request, and `count` is {body.count}: each "
            "may take a thousand draws, or a replay. Ask for fewer at a time, or `GET .../explain/NUMBER` later."
        )
    if body.event and isinstance(service.ids.which(request.caller.tenant, worker.stored, body.event), int):
        raise InvalidInput("`event` is the id of a decision of this study, which has none of it: take another text.")
    idempotent = IdempotentRequest.of("decisions", request.key, body)
    decided: DecideResult = await worker.run(Decide(body, idempotent, service.settings.limits.pending))
    service.metrics.count_decisions(worker, len(decided.trials), again=decided.again)
    # The points that the first request could choose from are not on record. A recorded probability needs none.
    wanted = body.propensity and decided.alike and not worker.study.propensities
    chances = await _propensities(worker, body, decided) if wanted else [None] * len(decided.trials)
    said = [decision(worker, service.ids, trial, p) for trial, p in zip(decided.trials, chances, strict=True)]
    return json_of(m.Decisions(said, decided.cautions or UNSET), 201, AGAIN if decided.again else ())


async def _propensities(worker: StudyWorker, body: m.DecisionRequest, decided: DecideResult) -> list[float | None]:
    """Returns the probability of each decision in the state before. A retry gets that state by a replay."""

    def replayed(trial: Trial) -> Propensity | None:
        return worker.study.explain(trial.number, among=body.among, exclude=body.exclude).propensity

    chances = decided.propensities or [partial(replayed, trial) for trial in decided.trials]
    found = await worker.read(lambda _: [chance() for chance in chances])
    return [None if each is None else each.value for each in found]


async def reward(service: Service, request: ParsedRequest) -> ASGIApp:
    """Records the reward of a decision."""
    worker = await request.worker(service)
    return json_of(await _told(service, worker, request.caller, request.path["id"], request.body))


async def failure(service: Service, request: ParsedRequest) -> ASGIApp:
    """Records that a decision failed."""
    worker = await request.worker(service)
    which = service.ids.which(request.caller.tenant, worker.stored, request.path["id"])
    done = await worker.run(Tell(which, request.body))
    service.metrics.count_answer(worker, done)
    return json_of(answer(worker, service.ids, done))


async def tell_slate(service: Service, request: ParsedRequest) -> ASGIApp:
    """Records answers of the places of a slate."""
    worker = await request.worker(service)
    which = service.ids.which(request.caller.tenant, worker.stored, request.path["id"])
    done = await worker.run(TellSlate(which, request.body))
    for each in done:
        service.metrics.count_answer(worker, each)
    return json_of(m.SlateSaid([answer(worker, service.ids, each) for each in done]))


async def _ended(
    service: Service, request: ParsedRequest, record: Callable[[Transaction, int, Any], Trial]
) -> ASGIApp:  # fmt: skip
    """Records that a decision was abandoned or stopped."""
    worker = await request.worker(service)
    which = service.ids.which(request.caller.tenant, worker.stored, request.path["id"])
    done = await worker.run(End(which, request.body.reason, record))
    service.metrics.count_answer(worker, done)
    return json_of(answer(worker, service.ids, done))


async def report(service: Service, request: ParsedRequest) -> ASGIApp:
    """Records the value of a decision after a step."""
    worker, step = await request.worker(service), request.path["step"]
    which = service.ids.which(request.caller.tenant, worker.stored, request.path["id"])
    whole, most = whole_in(step, digits=30), service.settings.limits.reports
    verdict, again = await worker.run(Report(which, step if whole is None else whole, request.body.value, most))
    if again:
        service.metrics.count_repeated(worker)
    return json_of(m.StepSaid(verdict in GOING, verdict))


async def _told(
    service: Service,
    worker: StudyWorker,
    caller: Caller,
    id: str | None,  # noqa: A002 - the name in messages and tables
    body: m.RewardRequest,
    event: str = "",
) -> m.Answer:
    which = event if id is None else service.ids.which(caller.tenant, worker.stored, id)
    done = await worker.run(Tell(which, body))
    service.metrics.count_answer(worker, done)
    return answer(worker, service.ids, done)


async def rewards(service: Service, request: ParsedRequest) -> ASGIApp:
    """Records the rewards of several decisions, each by itself."""
    worker = await request.worker(service)
    items: list[m.RewardItem] = request.body.items
    _check_count("items", len(items), service)
    if any((item.id is None) is (item.event is None) for item in items):
        raise InvalidInput("`items`: each names its decision by exactly one of `id` and `event`.")
    check_sums(items, worker.study.policy)
    done: list[Any] = await asyncio.gather(
        *(_told(service, worker, request.caller, item.id, item, item.event or "") for item in items),
        return_exceptions=True,
    )
    results = []
    for item, each in zip(items, done, strict=True):
        event = UNSET if item.event is None else item.event
        if isinstance(each, Exception):
            problem = problem_of(each)
            fault = m.Fault(problem.kind, problem.sentence, problem.field)
            results.append(m.RewardResult(item.id, problem.status, None, fault, event))
        elif isinstance(each, BaseException):
            raise each
        else:
            results.append(m.RewardResult(item.id, 200, each, None, event))
    return json_of(m.RewardResults(results))


def _check_count(name: str, count: int, service: Service) -> None:
    most = service.settings.limits.count
    if count > most:
        raise InvalidInput(f"`{name}` is {count}: at most {most} are taken in one request. Send several.")


def _check_listed(name: str, listed: list[Any] | None, most: int) -> None:
    if listed is not None and len(listed) > most:
        raise InvalidInput(f"`{name}` has {len(listed)} entries: at most {most} are looked at in one decision.")


async def observe(service: Service, request: ParsedRequest) -> ASGIApp:
    """Records an observation that no decision asked for."""
    worker = await request.worker(service)
    idempotent = IdempotentRequest.of("observations", request.key, request.body)
    done = await worker.run(Observe(request.body, idempotent))
    service.metrics.count_observations(worker, 1, again=done.again)
    trial, would = done.trial, done.would
    said = m.Observation(
        trial.number, trial.reward or 0.0, None if would is None else m.Would(**would), **several(trial)
    )
    return json_of(said, 201, AGAIN if done.again else ())


WRITE_OPERATIONS = [
    Operation(
        method="PUT", path=STUDY, name="putStudy", summary="Make a study, or see that it is as it should be.",
        text="To put the same again changes nothing. A study keeps the policy, goal, seed, facts and waiting rule that "
        "it was made with: another one is refused with what differs.",
        handler=put_study, body=m.StudyRequest,
        answers={
            200: ResponseInfo("It was there, and is the same.", m.StudySaid), 201: ResponseInfo("Made.", m.StudySaid),
        },
    ),
    Operation(
        method="POST", path=f"{STUDY}/decisions", name="ask", summary="Ask what to do.",
        text="The decisions are on disk, pending, before they are answered. With an `Idempotency-Key` the same request "
        "again, to whichever server, gets the same decisions, also after a crash.",
        handler=ask, body=m.DecisionRequest, repeatable=True, answers={201: ResponseInfo("Decided.", m.Decisions)},
    ),
    Operation(
        method="PUT", path=f"{ONE}/reward", name="reward", summary="Tell what came of a decision.",
        text="The same again changes nothing; another one is refused, unless with `revise` it corrects the one there "
        "is: the study goes on as if it had come first. A late one is taken; `late` and `counted` say what became of "
        "it.",
        handler=reward, body=m.RewardRequest, answers=TOLD,
    ),
    Operation(
        method="PUT", path=f"{ONE}/slate", name="tellSlate", summary="Tell what came of the places of a slate.",
        text="Of any of its decisions. All answers are recorded, or none. Each place may be told by itself, too.",
        handler=tell_slate, body=m.SlateRequest,
        answers={200: ResponseInfo("They are on record.", m.SlateSaid), 409: REFUSED[409]},
    ),
    Operation(
        method="POST", path=f"{ONE}/failure", name="fail", summary="Tell that nothing will come of a decision.",
        text="A point that has only failed is not asked for again. With `revise` it takes back a reward.",
        handler=failure, body=m.FailureRequest, answers=TOLD,
    ),
    Operation(
        method="POST", path=f"{ONE}/abandonment", name="abandon",
        summary="Tell that nobody works on a decision any more.",
        text="It no longer counts as pending, and says nothing of its point. Its reward is taken all the same if it "
        "comes.",
        handler=partial(_ended, record=Transaction.abandon), body=m.AbandonmentRequest, answers=TOLD,
    ),
    Operation(
        method="PUT", path=ONE + "/steps/{step}", name="report",
        summary="Tell the value after a step, and ask whether to go on.",
        text="Steps grow. The study's rule (`pruning` of a policy) judges, and without one every decision goes on. The "
        "same report again records nothing and is judged anew, so a paused evaluation asks whether it may go on.",
        handler=report, body=m.StepRequest,
        answers={200: ResponseInfo("It is on record.", m.StepSaid), **{status: REFUSED[status] for status in (409,)}},
    ),
    Operation(
        method="POST", path=f"{ONE}/stop", name="stop", summary="Tell that an evaluation was stopped.",
        text="Its reports stay, and it has no reward. A decision without a report is abandoned instead.",
        handler=partial(_ended, record=Transaction.stop), body=m.StopRequest, answers=TOLD,
    ),
    Operation(
        method="POST", path=f"{STUDY}/rewards", name="rewards", summary="Tell what came of several decisions.",
        text="Each is recorded by itself, and has a status of its own.",
        handler=rewards, body=m.RewardsRequest, answers={200: ResponseInfo("What came of each.", m.RewardResults)},
    ),
    Operation(
        method="POST", path=f"{STUDY}/observations", name="observe",
        summary="Tell of something that was not asked for.",
        text="With `compare` the policy learns as an apprentice: it says what it would have done in your place, before "
        "it learns what came of what you did.",
        handler=observe, body=m.ObservationRequest, repeatable=True, lines=OBSERVATIONS,
        answers={201: ResponseInfo("On record.", m.Observation)},
    ),
]  # fmt: skip
