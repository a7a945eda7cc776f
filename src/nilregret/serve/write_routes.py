"""The operations under /v1 that decide and record, and what they share."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from starlette.types import ASGIApp

from .._utils.errors import InvalidInput
from ..policy.explain import Propensity
from ..storage.record import Trial
from . import create_study as making
from . import messages as m
from .auth.caller import Caller
from .commands import Decide, Decided, GiveUp, Observe, Tell
from .idempotency import Request
from .operations import AGAIN, REFUSED, Answered, Operation, ParsedRequest, json_of
from .problems import problem_of
from .replies import answer, decision
from .service import Service
from .worker import StudyWorker

STUDY = "/v1/studies/{name}"
PROPENSITIES = 10  # decisions of one request whose propensities are asked for, too: each may take a thousand draws
ONE = STUDY + "/decisions/{id}"
TOLD = {
    200: Answered("It is on record; also where it was before, and where it came late.", m.Answer),
    **{status: REFUSED[status] for status in (409,)},
}


async def put_study(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Make it, or see that it is the same."""
    made, desk_of = await service.desks.thread(
        making.put,
        service.storage,
        heard.caller,
        heard.path["name"],
        heard.body,
        service.settings.limits,
        tenant=heard.caller.tenant,
    )
    return json_of(desk_of, 201 if made else 200)


async def ask(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Ask for decisions."""
    desk, body = await heard.desk(service), heard.body
    _check_count("count", body.count or 1, service)
    for name in ("among", "exclude"):
        _check_listed(name, getattr(body, name), service.settings.limits.arms)
    if body.propensity and (body.count or 1) > PROPENSITIES:
        raise InvalidInput(
            f"`propensity` is said of at most {PROPENSITIES} decisions in a request, and `count` is {body.count}: each "
            "may take a thousand draws, or a replay. Ask for fewer at a time, or `GET .../explain/NUMBER` later."
        )
    request = Request.of("decisions", heard.key, body)
    decided: Decided = await desk.do(Decide(body, request, service.settings.limits.pending))
    service.metrics.decided(desk, len(decided.trials), again=decided.again)
    wanted = body.propensity and decided.alike  # what else could be chosen from then is not on record
    chances = await _propensities(desk, body, decided) if wanted else [None] * len(decided.trials)
    said = [decision(desk, service.ids, trial, p) for trial, p in zip(decided.trials, chances, strict=True)]
    return json_of(m.Decisions(said), 201, AGAIN if decided.again else ())


async def _propensities(desk: StudyWorker, body: m.DecisionRequest, decided: Decided) -> list[float | None]:
    """From the state before each decision, which a repeated request finds by a replay."""

    def replayed(trial: Trial) -> Propensity | None:
        return desk.study.explain(trial.number, among=body.among, exclude=body.exclude).propensity

    chances = decided.chances or [partial(replayed, trial) for trial in decided.trials]
    found = await desk.look(lambda _: [chance() for chance in chances])
    return [None if each is None else each.value for each in found]


async def reward(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Tell what came of a decision."""
    desk = await heard.desk(service)
    said, _ = await _told(service, desk, heard.caller, heard.path["id"], heard.body)
    return json_of(said)


async def failure(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Tell that nothing will come of a decision."""
    desk = await heard.desk(service)
    number = service.ids.number(heard.caller.tenant, desk.stored, heard.path["id"])
    done = await desk.do(Tell(number, heard.body))
    service.metrics.heard(desk, done)
    return json_of(answer(desk, service.ids, done))


async def abandonment(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Tell that nobody works on a decision any more."""
    desk = await heard.desk(service)
    number = service.ids.number(heard.caller.tenant, desk.stored, heard.path["id"])
    return json_of(answer(desk, service.ids, await desk.do(GiveUp(number, heard.body.reason))))


async def _told(
    service: Service,
    desk: StudyWorker,
    caller: Caller,
    id: str,  # noqa: A002 - what it is called everywhere
    body: m.RewardRequest,
) -> tuple[m.Answer, int]:
    number = service.ids.number(caller.tenant, desk.stored, id)
    done = await desk.do(Tell(number, body))
    service.metrics.heard(desk, done)
    return answer(desk, service.ids, done), number


async def rewards(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Tell what came of several decisions, each by itself."""
    desk = await heard.desk(service)
    body: m.RewardsRequest = heard.body
    _check_count("items", len(body.items), service)
    done: list[Any] = await asyncio.gather(
        *(_told(service, desk, heard.caller, item.id, item) for item in body.items), return_exceptions=True
    )
    results = []
    for item, each in zip(body.items, done, strict=True):
        if isinstance(each, Exception):
            problem = problem_of(each)
            fault = m.Fault(problem.kind, problem.sentence, problem.field)
            results.append(m.RewardResult(item.id, problem.status, None, fault))
        elif isinstance(each, BaseException):
            raise each
        else:
            results.append(m.RewardResult(item.id, 200, each[0], None))
    return json_of(m.RewardResults(results))


def _check_count(name: str, count: int, service: Service) -> None:
    most = service.settings.limits.count
    if count > most:
        raise InvalidInput(f"`{name}` is {count}: at most {most} are taken in one request. Send several.")


def _check_listed(name: str, listed: list[Any] | None, most: int) -> None:
    if listed is not None and len(listed) > most:
        raise InvalidInput(f"`{name}` has {len(listed)} entries: at most {most} are looked at in one decision.")


async def observe(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Tell of something that was not asked for."""
    desk = await heard.desk(service)
    done = await desk.do(Observe(heard.body, Request.of("observations", heard.key, heard.body)))
    service.metrics.observed(desk, again=done.again)
    trial, would = done.trial, done.would
    said = m.Observation(trial.number, trial.reward or 0.0, None if would is None else m.Would(**would))
    return json_of(said, 201, AGAIN if done.again else ())


DECIDING = [
    Operation(
        method="PUT", path=STUDY, name="putStudy", summary="Make a study, or see that it is as it should be.",
        text="To put the same again changes nothing. A study keeps the policy, goal, seed, facts and waiting rule that "
        "it was made with: another one is refused with what differs.",
        do=put_study, body=m.StudyRequest,
        answers={200: Answered("It was there, and is the same.", m.StudySaid), 201: Answered("Made.", m.StudySaid)},
    ),
    Operation(
        method="POST", path=f"{STUDY}/decisions", name="ask", summary="Ask what to do.",
        text="The decisions are on disk, pending, before they are answered. With an `Idempotency-Key` the same request "
        "again, to whichever server, gets the same decisions, also after a crash.",
        do=ask, body=m.DecisionRequest, repeatable=True, answers={201: Answered("Decided.", m.Decisions)},
    ),
    Operation(
        method="PUT", path=f"{ONE}/reward", name="reward", summary="Tell what came of a decision.",
        text="The same again changes nothing; another one is refused, unless with `revise` it corrects the one there "
        "is: the study goes on as if it had come first. A late one is taken; `late` and `counted` say what became of "
        "it.",
        do=reward, body=m.RewardRequest, answers=TOLD,
    ),
    Operation(
        method="POST", path=f"{ONE}/failure", name="fail", summary="Tell that nothing will come of a decision.",
        text="A point that has only failed is not asked for again. With `revise` it takes back a reward.",
        do=failure, body=m.FailureRequest, answers=TOLD,
    ),
    Operation(
        method="POST", path=f"{ONE}/abandonment", name="abandon",
        summary="Tell that nobody works on a decision any more.",
        text="It no longer counts as pending, and says nothing of its point. Its reward is taken all the same if it "
        "comes.",
        do=abandonment, body=m.AbandonmentRequest, answers=TOLD,
    ),
    Operation(
        method="POST", path=f"{STUDY}/rewards", name="rewards", summary="Tell what came of several decisions.",
        text="Each is recorded by itself, and has a status of its own.",
        do=rewards, body=m.RewardsRequest, answers={200: Answered("What came of each.", m.RewardResults)},
    ),
    Operation(
        method="POST", path=f"{STUDY}/observations", name="observe",
        summary="Tell of something that was not asked for.",
        text="With `compare` the policy learns as an apprentice: it says what it would have done in your place, before "
        "it learns what came of what you did.",
        do=observe, body=m.ObservationRequest, repeatable=True, answers={201: Answered("On record.", m.Observation)},
    ),
]  # fmt: skip
