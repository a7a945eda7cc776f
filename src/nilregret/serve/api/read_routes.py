"""Operations under /v1 that read, also those that evaluate other policies, and of the health of the process."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response
from starlette.types import ASGIApp

from ..._utils.checks import whole_in
from ...errors import InvalidInput, MissingExtra, NoRegretError, NoRegretWarning
from ...evaluation import Evaluation, evaluate
from ...serialize import plain_loads
from ...storage.trial import Trial
from ...study.export import write
from ...study.study import Study
from ..auth.tokens import own_among
from ..wire import evaluation_messages as e
from ..wire import messages as m
from ..wire.advice import warning_of
from ..wire.problems import Problem, about
from ..wire.settings import Limits
from ..work.answers import LATE, OBSERVED, late_told, tell_result
from ..work.collected import COLLECTED, Collected
from ..work.commands import WOULD
from ..work.deadlines import DEFAULTED
from ..work.events import Stream, events, several
from ..work.workers import StudyWorker
from . import replies
from .create_study import whole
from .operations import Operation, ParsedRequest, ResponseInfo, Service, json_of
from .size_limits import check_posterior
from .write_routes import ONE, STUDY


class Query(Struct, forbid_unknown_fields=True, frozen=True):
    """A query string."""


class PointsQuery(Query, frozen=True):
    """Points, or every arm if there are none, under a context."""

    points: Annotated[str | None, Meta(description="JSON: a list of points or of parameters.")] = None
    context: Annotated[str | None, Meta(description="JSON: numbers, or parameters by name.")] = None


class ChannelQuery(PointsQuery, frozen=True):
    """Points, and the output to predict there."""

    channel: Annotated[int, Meta(ge=0, description="0 for the reward, j for constraint j.")] = 0


class ContextQuery(Query, frozen=True):
    """A context."""

    context: Annotated[str | None, Meta(description="JSON: numbers, or parameters by name.")] = None


class BestQuery(ContextQuery, frozen=True):
    """A context, and weights of several objectives."""

    weights: Annotated[str | None, Meta(description="JSON: the weight of each objective, by name or in order.")] = None


class FrontQuery(Query, frozen=True):
    """A reference point of the hypervolume."""

    reference: Annotated[str | None, Meta(description="JSON: a value of each objective, instead of the study's.")] = (
        None
    )


class EventsQuery(Query, frozen=True):
    """A cursor of events."""

    after: Annotated[int, Meta(ge=0, description="The `next` of the answer before; 0 for all.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class ExplainQuery(Query, frozen=True):
    """Precision of an explanation."""

    draws: Annotated[int, Meta(ge=0, le=10_000, description="From which a propensity is estimated.")] = 1000


class ExportQuery(Query, frozen=True):
    """Format of a file."""

    format: Annotated[Literal["jsonl", "csv", "arrow", "parquet"], Meta(description="Of the file.")] = "jsonl"


R = TypeVar("R")

UNARROWED = (
    "Parquet and Arrow files need pyarrow, which this server has not installed; `csv` and `jsonl` need nothing. "
    "Whoever runs the server installs it by `pip install pyarrow`."
)
MEDIA = {
    "jsonl": "application/x-ndjson", "csv": "text/csv", "arrow": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
}  # fmt: skip


async def studies(service: Service, request: ParsedRequest) -> ASGIApp:
    """Lists the studies of the tenant."""

    def found() -> list[m.StudySaid]:
        studies = {stored.name: stored for stored, _ in service.storage.summaries()}
        own = own_among(service.storage, list(studies), request.caller.tenant)
        return [
            m.StudySaid(**replies.study_said(name, str(plain_loads(studies[each].policy)["algorithm"]), studies[each]))
            for name, each in own.items()
        ]

    return json_of(m.Studies(await service.workers.in_thread(found, tenant=request.caller.tenant)))


async def study(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns the state of a study."""
    worker = await request.worker(service)
    return json_of(await worker.read(lambda _: replies.study_in_full(worker)))


async def one_decision(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns a decision with its reward and its notes."""
    worker = await request.worker(service)
    which = service.ids.which(request.caller.tenant, worker.stored, request.path["id"])

    def seen(study: Study) -> m.DecisionInFull:
        trials = study.replica.snapshot()
        number = study.replica.record.events.get(which, len(trials)) if isinstance(which, str) else which
        if number >= len(trials):
            raise Problem(404, "no_decision", "There is no decision of this id or event on record.", field="id")
        return in_full(service, worker, [number])[0]

    return json_of(await worker.read(seen))


def in_full(service: Service, worker: StudyWorker, numbers: Sequence[int]) -> list[m.DecisionInFull]:
    """Returns decisions with their rewards and notes. It reads the study, so it needs a thread."""
    trials = worker.study.replica.snapshot()
    # A key with a number is also the beginning of others, which are read in vain.
    which = str(numbers[0]) if len(numbers) == 1 else ""
    names = (DEFAULTED, LATE, OBSERVED, *[COLLECTED] * (worker.deadlines.rule.reward is not None))
    kinds = [service.storage.notes(worker.stored, f"{kind}:{which}") for kind in names]
    return [_in_full(service, worker, trials, trials[number], *kinds) for number in numbers]


def _in_full(
    service: Service, worker: StudyWorker, trials: Sequence[Trial], trial: Trial, defaults: Mapping[str, str],
    late_ones: Mapping[str, str], seen: Mapping[str, str], collected: Mapping[str, str] | None = None,
) -> m.DecisionInFull:  # fmt: skip
    number = trial.number
    came, defaulted = tell_result(worker, trials, trial), f"{DEFAULTED}:{number}" in defaults
    several_ = None if collected is None else Collected.of(collected.get(f"{COLLECTED}:{number}"))
    late = late_told(worker, number, late_ones.get(f"{LATE}:{number}"), several_ or Collected.of(None))
    kept = late.reward is not None
    g = None if trial.constraints is None else trial.constraints.tolist()
    given_up = trial.abandoned if trial.state == "abandoned" else None
    return m.DecisionInFull(
        **msgspec.structs.asdict(replies.decision(worker, service.ids, trial)), state=trial.state, reward=trial.reward,
        plays=replies.plays_of(trial.reward, trial.plays), constraints=g,
        reason=trial.reason if given_up is None else given_up.reason, told_at=trial.told_at,
        late=kept or (came.late and not defaulted), defaulted=defaulted,
        counted=worker.deadlines.rule.late == "count" if kept else came.counted,
        late_reward=late.reward, observed_at=json.loads(seen.get(f"{OBSERVED}:{number}", "null")),
        std=trial.std, metrics=trial.metrics, corrected=[replies.earlier(each) for each in trial.corrected],
        late_values=several(late).get("values", msgspec.UNSET), rewards=replies.keyed(several_),
        curve=[[*each] for each in trial.steps] or msgspec.UNSET, **several(trial),
    )  # fmt: skip


async def predict(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns posterior mean and standard deviation at points."""
    worker, points, context = await _points(service, request)
    channel: int = request.query.channel
    mean, std = await worker.read(lambda study: _at_points(study, study.predict, points, context, channel=channel))
    return json_of(m.Prediction(replies.listed(mean), replies.listed(std)))


async def bounds(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns confidence bounds at points."""
    worker, points, context = await _points(service, request)
    channel: int = request.query.channel
    lower, upper = await worker.read(lambda study: _at_points(study, study.bounds, points, context, channel=channel))
    return json_of(m.ConfidenceBounds(replies.listed(lower), replies.listed(upper)))


def _at_points(study: Study, query: Callable[..., R], points: Any, context: Any, **more: Any) -> R:
    """Returns `query(points)` under a context. An error names the entry of the request that is wrong."""
    about("context", study.inputs.context, context)
    return about("channel" if more.get("channel") else "points", partial(query, points, context=context, **more))


async def feasible(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns the probability that points satisfy all constraints."""
    worker, points, context = await _points(service, request)

    def seen(study: Study) -> m.Feasibility:
        about("context", study.inputs.context, context)
        none = study.infeasible(context=context)
        known = [] if points == [] else _at_points(study, study.feasible, points, context).tolist()
        return m.Feasibility(known, none)

    return json_of(await worker.read(seen))


async def _points(service: Service, request: ParsedRequest) -> tuple[Any, Any, Any]:
    worker = await request.worker(service)
    points = _json("points", request.query.points)
    most = service.settings.limits.count
    if isinstance(points, list) and len(points) > most:
        raise InvalidInput(f"`points` has {len(points)} entries; at most {most} are looked at in one request.")
    return worker, points, _json("context", request.query.context)


async def best(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns the decision with the highest posterior mean."""
    worker, context = await request.worker(service), _json("context", request.query.context)
    weights = _json("weights", request.query.weights)

    def seen(study: Study) -> m.DecisionInFull:
        entry = "context" if weights is None else "weights"
        trial = about(entry, partial(study.best, context=context, weights=weights))
        return in_full(service, worker, [trial.number])[0]

    return json_of(await worker.read(seen))


async def front(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns the decisions that no other beats in the posterior means of several objectives."""
    worker, reference = await request.worker(service), _json("reference", request.query.reference)

    def seen(study: Study) -> m.Front:
        found = study.front_values() if reference is None else about("reference", study.front_values, reference)
        return m.Front(
            replies.objectives_said(worker.stored), in_full(service, worker, [trial.number for trial in found.trials]),
            replies.rows(found.mean), replies.rows(found.std), replies.rows(found.lower), replies.rows(found.upper),
            replies.finite(found.hypervolume), replies.listed(found.reference), list(found.left_out),
        )  # fmt: skip

    return json_of(await worker.read(seen))


async def mix(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns the decisions whose points earn most together while the budgets hold on average."""
    worker, context = await request.worker(service), _json("context", request.query.context)

    def seen(study: Study) -> m.Mix:
        about("context", study.inputs.context, context)
        found = study.mix(context=context)
        decisions = in_full(service, worker, [trial.number for trial in found.trials])
        return m.Mix(decisions, found.shares.tolist(), found.reward, found.use.tolist())

    return json_of(await worker.read(seen))


async def explain(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns why a decision was made."""
    worker, number = await request.worker(service), request.path["number"]
    said = await worker.explain(number, draws=request.query.draws)
    return Response(json.dumps(said.to_dict(), allow_nan=False), media_type="application/json")


async def list_events(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns events, or a stream of events if the client asks for one."""
    worker, query = await request.worker(service), request.query
    if "text/event-stream" in request.headers.get("accept", ""):
        last = whole_in(request.headers.get("last-event-id", ""))
        return Stream(service.streams, worker, query.after if last is None or last < 0 else last)
    return json_of(await worker.read(lambda study: events(study, query.after, query.limit)))


async def export(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns all trials as a file."""
    worker, kind = await request.worker(service), request.query.format

    def written(study: Study, path: Path) -> None:
        try:
            write(study.policy, study.replica.snapshot(), path, extra=_more_columns(service, worker))
        except MissingExtra:
            raise Problem(501, "missing", UNARROWED, field="format") from None

    return await replies.download(worker, f"trials.{kind}", MEDIA[kind], written)


def _more_columns(service: Service, worker: StudyWorker) -> Callable[[Trial], dict[str, Any]]:
    """Returns further columns of a file of trials: the id, and the effect of the deadline rule."""
    defaults, late = (service.storage.notes(worker.stored, f"{kind}:") for kind in (DEFAULTED, LATE))
    several_ = worker.deadlines.rule.reward is not None
    collected = service.storage.notes(worker.stored, f"{COLLECTED}:") if several_ else {}
    names = [f"late_values.{each.name}" for each in replies.objectives_said(worker.stored)]

    def said(trial: Trial) -> dict[str, Any]:
        number, came = trial.number, Collected.of(collected.get(f"{COLLECTED}:{trial.number}"))
        after = late_told(worker, number, late.get(f"{LATE}:{number}"), came)
        values = dict.fromkeys(names) | dict(zip(names, several(after).get("values", ()), strict=False))
        return worker.study.replica.roster.columns(trial) | {
            "id": service.ids.of(worker.tenant, worker.stored, trial.number),
            "defaulted": not trial.open and f"{DEFAULTED}:{trial.number}" in defaults,
            "late_reward": after.reward,
            **values,
        }

    return said


async def apprentice(service: Service, request: ParsedRequest) -> ASGIApp:
    """Compares the policy's decisions with the observed ones."""
    worker = await request.worker(service)

    def seen(study: Study) -> m.Apprentice:
        trials = study.replica.snapshot()
        would = {
            int(key.partition(":")[2]): json.loads(value)
            for key, value in service.storage.notes(worker.stored, f"{WOULD}:").items()
        }
        rewards = {number: trials[number].reward for number in would if number < len(trials)}
        told = {number: value for number, value in rewards.items() if value is not None}
        same = [value for number, value in told.items() if would[number]["same"]]
        other = [value for number, value in told.items() if not would[number]["same"]]
        groups = ([*told.values()], same, other) if len(study.goals) == 1 else ([], [], [])
        explored = sum(would[number]["explored"] for number in told)
        return m.Apprentice(
            len(told), len(same), len(same) / len(told) if told else None, _mean(groups[0]), _mean(groups[1]),
            _mean(groups[2]), explored,
        )  # fmt: skip

    return json_of(await worker.read(seen))


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _json(name: str, text: str | None) -> Any:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidInput(
            f"`{name}` in the address is no JSON: write a list of numbers such as [0.5, 2] or an object of parameters, "
            "percent-encoded."
        ) from None


async def health(service: Service, _: ParsedRequest) -> ASGIApp:
    """Returns that the process runs."""
    del service
    return json_of(m.Health(ok=True))


async def ready(service: Service, _: ParsedRequest) -> ASGIApp:
    """Returns whether the storage can be read and has the tables of this version."""
    try:
        await service.workers.lookup(service.storage.find, "ready")
    except NoRegretError as error:
        raise Problem(503, "storage", "The storage cannot be used just now.", headers={"Retry-After": "1"}) from error
    return json_of(m.Health(ok=True))


async def metrics(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns metrics for Prometheus."""
    tenant = None if request.caller.may("admin") and request.caller.tenant == "default" else request.caller.tenant
    text = await service.workers.in_thread(service.metrics.text, tenant, tenant=request.caller.tenant)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


READ_OPERATIONS = [
    Operation(method="GET", path="/v1/studies", name="studies", summary="List the studies.", handler=studies,
              answers={200: ResponseInfo("Oldest first.", m.Studies)}),
    Operation(method="GET", path=STUDY, name="study", summary="Say where a study stands.", handler=study,
              answers={200: ResponseInfo("Where it stands.", m.StudyInFull)}),
    Operation(method="GET", path=ONE, name="decision", summary="Say what became of a decision.", handler=one_decision,
              answers={200: ResponseInfo("What is on record.", m.DecisionInFull)}),
    Operation(method="GET", path=f"{STUDY}/predict", name="predict",
              summary="Posterior mean and standard deviation of the reward.", handler=predict, query=ChannelQuery,
              answers={200: ResponseInfo("At each point.", m.Prediction)}),
    Operation(method="GET", path=f"{STUDY}/bounds", name="bounds", summary="The policy's confidence bounds.",
              handler=bounds, query=ChannelQuery, answers={200: ResponseInfo("At each point.", m.ConfidenceBounds)}),
    Operation(method="GET", path=f"{STUDY}/feasible", name="feasible",
              summary="What is known of points satisfying all constraints, and whether any can.", handler=feasible,
              text="Of studies whose constraints have posteriors of their own, as those have that are put with "
              "`constraints`.",
              query=PointsQuery, answers={200: ResponseInfo("At each point.", m.Feasibility)}),
    Operation(method="GET", path=f"{STUDY}/best", name="best",
              summary="The answered decision of the highest posterior mean.", handler=best, query=BestQuery,
              answers={200: ResponseInfo("The decision.", m.DecisionInFull)}),
    Operation(method="GET", path=f"{STUDY}/front", name="front",
              summary="The decisions that no other beats, of several objectives.",
              text="By posterior means, with intervals, and the volume that they dominate.", handler=front,
              query=FrontQuery, answers={200: ResponseInfo("The front.", m.Front)}),
    Operation(method="GET", path=f"{STUDY}/mix", name="mix",
              summary="The decisions whose points earn most together within a budget on average.",
              text="By posterior means. Of studies whose constraints hold on average.", handler=mix, query=ContextQuery,
              answers={200: ResponseInfo("The decisions, and the share of each.", m.Mix)}),
    Operation(method="GET", path=STUDY + "/explain/{number:int}", name="explain", summary="Say why it was decided so.",
              text="Recomputed from the record of what had happened before, which costs a replay of it.",
              handler=explain, query=ExplainQuery, answers={200: ResponseInfo("Why.", ("application/json",))}),
    Operation(method="GET", path=f"{STUDY}/events", name="events", summary="What happened after a cursor.",
              text="With `Accept: text/event-stream` as server-sent events as they come; `Last-Event-ID` is a cursor.",
              handler=list_events, query=EventsQuery, answers={200: ResponseInfo("In order.", m.Events)}),
    Operation(method="GET", path=f"{STUDY}/export", name="export", summary="All trials, as a file.",
              handler=export, query=ExportQuery, answers={200: ResponseInfo("The file.", tuple(MEDIA.values()))}),
    Operation(method="GET", path=f"{STUDY}/apprentice", name="apprentice",
              summary="How the policy compares with who was observed.",
              text="Of the observations sent with `compare`: how often the policy would have done the same, and what "
              "came of it then and otherwise. Of several objectives there are no mean rewards.",
              handler=apprentice, answers={200: ResponseInfo("The comparison.", m.Apprentice)}),
]  # fmt: skip
HEALTH_OPERATIONS = [
    Operation(method="GET", path="/healthz", name="health", summary="Whether the process runs.", handler=health,
              answers={200: ResponseInfo("It does.", m.Health)}),
    Operation(method="GET", path="/readyz", name="ready", summary="Whether the storage answers.", handler=ready,
              answers={200: ResponseInfo("It does.", m.Health)}),
    Operation(method="GET", path="/metrics", name="metrics", summary="Figures for Prometheus.", handler=metrics,
              answers={200: ResponseInfo("In its text format.", ("text/plain",))}),
]  # fmt: skip


MOST_REPLAYED = 1000  # decisions on which a policy is asked one by one, which may take milliseconds each


async def evaluations(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns what another policy would have earned on the decisions of a study."""
    worker, body = await request.worker(service), request.body
    policy = about("policy", policy_of, service.settings.limits, body.policy)
    return json_of(await worker.read(lambda study: evaluated(study, policy, body)))


def evaluated(study: Study, policy: Any, body: e.EvaluationRequest) -> e.EvaluationResult:
    """Returns what a policy would have earned on the decisions of a study.

    Args:
        study: with recorded propensities.
        policy: as `policy_of` returns it.
        body: the other entries of the request.
    """
    asked = policy == "best" and study.policy.context is not None
    asked = asked or not isinstance(policy, int | str | dict | list)
    if asked and len(study.replica.snapshot()) > MOST_REPLAYED:
        raise InvalidInput(
            f"`policy` is asked at each decision of the log, and here of at most {MOST_REPLAYED}: export the study "
            "and run `nilregret evaluate`."
        )
    given = {name: getattr(body, name) for name in ("estimator", "delta", "floor", "default_reward", "seed", "reward")}
    low, high = body.reward_range or (0.0, 1.0)
    with warnings.catch_warnings():  # The reply has the cautions.
        warnings.simplefilter("ignore", NoRegretWarning)
        return _reply(evaluate(study, policy, reward_range=(low, high), **given))


def policy_of(limits: Limits, policy: Any) -> Any:
    """Returns the policy of a request in Python: a word, an arm, probabilities, or a policy that learns."""
    if isinstance(policy, dict) and "type" in policy:
        made = whole(policy, limits)
        check_posterior(made, limits)
        return made
    return policy


def _reply(result: Evaluation) -> e.EvaluationResult:
    said = result.to_dict()
    said["cautions"] = [*map(warning_of, said["cautions"])]
    said["text"] = warning_of(said["text"])
    check = e.PropensityCheckResult(**said.pop("check"))
    return e.EvaluationResult(check=check, **{name: _plain(value) for name, value in said.items()})


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


EVALUATION_OPERATIONS = [
    Operation(method="POST", path=f"{STUDY}/evaluations", name="evaluate",
              summary="What another policy would have earned on the decisions of a study.",
              text="From the decisions with a recorded probability: put the study with "
              '`"propensities": true`. It reads, and changes nothing.',
              handler=evaluations, body=e.EvaluationRequest,
              answers={200: ResponseInfo("The estimates and their interval.", e.EvaluationResult)}),
]  # fmt: skip
