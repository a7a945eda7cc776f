"""Operations under /v1 that list, add, retire, restore and describe the arms of a study."""

from __future__ import annotations

from functools import partial
from typing import Any

from starlette.types import ASGIApp

from ...domains.domain import Arms, count_of_points
from ...domains.options import readable
from ...errors import InvalidInput
from ...policy.policy import Policy
from ...study.arms import Arm
from ...study.transaction import Transaction
from ..watch.audit import audited
from ..wire import change_messages as c
from ..wire.decision_ids import IdempotentRequest
from ..wire.limits import Limits
from ..wire.problems import about
from ..work.worker import Action, Change, Recorded, StudyWorker
from .memory_limits import check_posterior
from .operations import AGAIN, Operation, ParsedRequest, ResponseInfo, Service, json_of
from .size_limits import check_arms
from .write_routes import STUDY

ARMS = f"{STUDY}/arms"
ARM = ARMS + "/{arm:int}"


def _adding(body: c.ArmsRequest, request: IdempotentRequest, limits: Limits, worker: StudyWorker) -> Action:
    """Checks the size of the study with more arms, and returns the action that adds them."""
    new = body.arms
    places = [_place(arm) for arm in new]
    if len({type(place) for place in places}) > 1:
        raise InvalidInput("`arms`: give points or parameters, the same for all arms of one request.")
    names, facts = [arm.name for arm in new], [arm.about for arm in new]

    def action(transaction: Transaction) -> Recorded:
        reply = request.stored_reply(transaction)
        if reply is not None:
            listed = worker.study.replica.roster.listed()
            return Recorded([listed[number] for number in reply.numbers], again=True)
        about("arms", _check_size, worker.study.policy, places, limits)
        arms: list[Arm] = about("arms", transaction.add_arms, places, names, facts)
        request.store(transaction, [arm.number for arm in arms])
        return Recorded(arms, again=False)

    return action


def _check_size(policy: Any, places: list[Any], limits: Limits) -> None:
    """Refuses arms with which the study would be too large."""
    if not isinstance(policy, Policy) or not isinstance(policy.domain, Arms):
        return  # `Transaction.add_arms` refuses the policy
    contexts = 1 if policy.context is None else count_of_points(policy.context) or 1
    check_arms((len(policy.domain) + len(places)) * contexts, limits)
    check_posterior(policy.with_arms(policy.domain.with_more(places)), limits)


def _place(arm: c.NewArm) -> Any:
    if (arm.point is None) == (arm.parameters is None):
        raise InvalidInput("`arms`: each arm has either a `point` or `parameters`.")
    return arm.point if arm.parameters is None else arm.parameters


def arm_said(arm: Arm) -> c.ArmSaid:
    """Returns an arm as a reply."""
    return c.ArmSaid(arm.number, arm.point.tolist(), readable(arm.parameters), *arm[3:])


async def list_arms(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns all arms of a study."""
    worker = await request.worker(service)
    return json_of(c.ArmsSaid(await worker.read(lambda study: [arm_said(arm) for arm in study.arms])))


async def add_arms(service: Service, request: ParsedRequest) -> ASGIApp:
    """Adds arms to a study."""
    worker = await request.worker(service)
    idempotent = IdempotentRequest.of("arms", request.key, request.body)
    added = Change(partial(_adding, request.body, idempotent, service.settings.limits), idempotent.keys)
    what = ("add arms", {"arms": len(request.body.arms)})
    done: Recorded = await audited(worker, request.caller, service.clock(), what, lambda: worker.run(added))
    return json_of(c.ArmsSaid([arm_said(arm) for arm in done.value]), 201, AGAIN if done.again else ())


async def put_arm(service: Service, request: ParsedRequest) -> ASGIApp:
    """Describes an arm, and retires it or brings it back."""
    return await _changed(service, request, "change an arm", request.body)


async def retire_arm(service: Service, request: ParsedRequest) -> ASGIApp:
    """Retires an arm."""
    return await _changed(service, request, "retire-arm", c.ArmRequest(retired=True))


async def _changed(service: Service, request: ParsedRequest, action: str, body: c.ArmRequest) -> ASGIApp:
    worker, number = await request.worker(service), request.path["arm"]

    def change(transaction: Transaction) -> Arm:
        arm: Arm = about("arm", transaction.describe_arm, number, body.name, body.about)
        return arm if body.retired is None else transaction.move_arm(number, "retired" if body.retired else "restored")

    what = (action, {"arm": number, "name": body.name, "retired": body.retired})
    command = Change(lambda _: change)
    arm: Arm = await audited(worker, request.caller, service.clock(), what, lambda: worker.run(command))
    return json_of(arm_said(arm))


ARM_OPERATIONS = [
    Operation(
        method="GET", path=ARMS, name="arms", summary="List the arms of a study, with the retired ones.",
        handler=list_arms, answers={200: ResponseInfo("By number.", c.ArmsSaid)},
    ),
    Operation(
        method="POST", path=ARMS, name="addArms", summary="Add arms to a running study.",
        text="They get the next numbers, and the next decision may play them. What is known of similar arms is known "
        "of them at once. With an `Idempotency-Key` the same request again adds nothing.",
        handler=add_arms, body=c.ArmsRequest, repeatable=True, answers={201: ResponseInfo("Added.", c.ArmsSaid)},
    ),
    Operation(
        method="PUT", path=ARM, name="putArm", summary="Describe an arm, retire it or bring it back.",
        text="The same again changes nothing.", handler=put_arm, body=c.ArmRequest,
        answers={200: ResponseInfo("The arm.", c.ArmSaid)},
    ),
    Operation(
        method="DELETE", path=ARM, name="retireArm", summary="Retire an arm: no later decision plays it.",
        text="It keeps its number. What was learned of it still teaches about similar arms, and decisions that wait "
        "for its reward may be told. The same again changes nothing.",
        handler=retire_arm, answers={200: ResponseInfo("The arm.", c.ArmSaid)},
    ),
]  # fmt: skip
