"""The operations under /v1 that look, and change nothing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import ASGIApp

from .._utils.errors import InvalidInput, MissingExtra, NoRegretError
from .._utils.serialize import plain_loads
from ..storage.trial import Trial
from ..study.export import write
from ..study.study import Study
from . import messages as m
from . import queries as q
from .auth.tenants import own_names
from .commands import LATE, OBSERVED, WOULD
from .commands import heard as heard_of
from .deadlines import DEFAULTED
from .events import Stream, events, snapshot
from .operations import Answered, Operation, ParsedRequest, json_of
from .problems import Problem, about
from .replies import decision, earlier, listed, plays_of, study_in_full, study_said
from .service import Service
from .worker import StudyWorker
from .write_routes import ONE, STUDY

R = TypeVar("R")

UNARROWED = (
    "Parquet and Arrow files need pyarrow, which this server has not installed; `csv` and `jsonl` need nothing. "
    "Whoever runs the server installs it by `pip install pyarrow`."
)
PART = 1 << 16  # bytes of a file that are sent at a time
MEDIA = {
    "jsonl": "application/x-ndjson", "csv": "text/csv", "arrow": "application/vnd.apache.arrow.file",
    "parquet": "application/vnd.apache.parquet",
}  # fmt: skip


async def studies(service: Service, heard: ParsedRequest) -> ASGIApp:
    """The tenant's."""

    def found() -> list[m.StudySaid]:
        said = []
        names = {stored: name for name, stored in own_names(service.storage, heard.caller.tenant).items()}
        for stored, _ in service.storage.summaries():
            name = names.get(stored.name)
            if name is not None:
                said.append(m.StudySaid(**study_said(name, str(plain_loads(stored.policy)["algorithm"]), stored)))
        return said

    return json_of(m.Studies(await service.desks.thread(found, tenant=heard.caller.tenant)))


async def study(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Where it stands."""
    desk = await heard.desk(service)
    return json_of(await desk.look(lambda _: study_in_full(desk)))


async def one_decision(service: Service, heard: ParsedRequest) -> ASGIApp:
    """What became of it."""
    desk = await heard.desk(service)
    number = service.ids.number(heard.caller.tenant, desk.stored, heard.path["id"])

    def seen(study: Study) -> m.DecisionInFull:
        trials = snapshot(study)
        if number >= len(trials):
            raise Problem(404, "no_decision", "This decision is no longer on record.", field="id")
        trial = trials[number]
        notes = {
            kind: service.storage.notes(desk.stored, f"{kind}:{number}").get(f"{kind}:{number}")
            for kind in (DEFAULTED, LATE, OBSERVED)
        }
        came = heard_of(desk, trials, trial)
        late = None if notes[LATE] is None else json.loads(notes[LATE] or "")[0]
        g = None if trial.constraints is None else trial.constraints.tolist()
        given_up = trial.abandoned if trial.state == "abandoned" else None
        return m.DecisionInFull(
            **msgspec.structs.asdict(decision(desk, service.ids, trial)), state=trial.state, reward=trial.reward,
            plays=plays_of(trial.reward, trial.plays), constraints=g,
            reason=trial.reason if given_up is None else given_up.reason, told_at=trial.told_at,
            late=came.late if notes[DEFAULTED] is None else late is not None,
            counted=came.counted, defaulted=notes[DEFAULTED] is not None, late_reward=late,
            observed_at=None if notes[OBSERVED] is None else json.loads(notes[OBSERVED] or ""),
            corrected=[earlier(each) for each in trial.corrected],
        )  # fmt: skip

    return json_of(await desk.look(seen))


async def predict(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Posterior mean and standard deviation."""
    desk, points, context = await _where(service, heard)
    channel: int = heard.query.channel
    mean, std = await desk.look(lambda study: _seen(study, study.predict, points, context, channel=channel))
    return json_of(m.Prediction(listed(mean), listed(std)))


async def bounds(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Confidence bounds."""
    desk, points, context = await _where(service, heard)
    channel: int = heard.query.channel
    lower, upper = await desk.look(lambda study: _seen(study, study.bounds, points, context, channel=channel))
    return json_of(m.ConfidenceBounds(listed(lower), listed(upper)))


def _seen(study: Study, look: Callable[..., R], points: Any, context: Any, **more: Any) -> R:
    """What it sees at points under a context; of an error it is known which of them it is about."""
    about("context", study.inputs.context, context)
    return about("channel" if more.get("channel") else "points", partial(look, points, context=context, **more))


async def feasible(service: Service, heard: ParsedRequest) -> ASGIApp:
    """What satisfies all constraints, as far as is known."""
    desk, points, context = await _where(service, heard)

    def seen(study: Study) -> m.Feasibility:
        about("context", study.inputs.context, context)
        none = study.infeasible(context=context)
        known = [] if points == [] else _seen(study, study.feasible, points, context).tolist()
        return m.Feasibility(known, none)

    return json_of(await desk.look(seen))


async def _where(service: Service, heard: ParsedRequest) -> tuple[Any, Any, Any]:
    desk = await heard.desk(service)
    points = _json("points", heard.query.points)
    most = service.settings.limits.count
    if isinstance(points, list) and len(points) > most:
        raise InvalidInput(f"`points` has {len(points)} entries; at most {most} are looked at in one request.")
    return desk, points, _json("context", heard.query.context)


async def best(service: Service, heard: ParsedRequest) -> ASGIApp:
    """The best decision so far."""
    desk, context = await heard.desk(service), _json("context", heard.query.context)
    trial = await desk.look(lambda study: about("context", partial(study.best, context=context)))
    heard_again = ParsedRequest(
        heard.caller, scope=heard.scope,
        path={"name": desk.name, "id": service.ids.of(desk.tenant, desk.stored, trial.number)},
    )  # fmt: skip
    return await one_decision(service, heard_again)


async def explain(service: Service, heard: ParsedRequest) -> ASGIApp:
    """Why it was decided so."""
    desk, number = await heard.desk(service), heard.path["number"]
    said = await desk.explained(number, draws=heard.query.draws)
    return Response(json.dumps(said.to_dict(), allow_nan=False), media_type="application/json")


async def happened(service: Service, heard: ParsedRequest) -> ASGIApp:
    """What happened; as a stream where that is asked for."""
    desk, query = await heard.desk(service), heard.query
    if "text/event-stream" in heard.headers.get("accept", ""):
        last = heard.headers.get("last-event-id", "")
        after = int(last) if last.isascii() and last.isdecimal() and len(last) < 16 else query.after
        return Stream(service.streams, desk, after)
    return json_of(await desk.look(lambda study: events(study, query.after, query.limit)))


async def export(service: Service, heard: ParsedRequest) -> ASGIApp:
    """All trials, as a file."""
    desk, kind = await heard.desk(service), heard.query.format

    def written(study: Study) -> Path:
        with tempfile.NamedTemporaryFile(prefix="nilregret-", suffix=f".{kind}", delete=False) as file:
            path = Path(file.name)
        try:
            return write(study.policy, snapshot(study), path, beside=_beside(service, desk))
        except MissingExtra:
            path.unlink()
            raise Problem(501, "missing", UNARROWED, field="format") from None
        except BaseException:
            path.unlink()
            raise

    path = await desk.look(written)
    file = path.open("rb")
    path.unlink()  # it is gone when it is closed, whatever happens to whoever reads it
    named = {"Content-Disposition": f'attachment; filename="trials.{kind}"'}
    return StreamingResponse(_parts(file), media_type=MEDIA[kind], headers=named)


def _beside(service: Service, desk: StudyWorker) -> Callable[[Trial], dict[str, Any]]:
    """What a file of trials says of each besides: its id, and what the waiting rule made of it."""
    defaults, late = (service.storage.notes(desk.stored, f"{kind}:") for kind in (DEFAULTED, LATE))

    def said(trial: Trial) -> dict[str, Any]:
        after = late.get(f"{LATE}:{trial.number}")
        return {
            "id": service.ids.of(desk.tenant, desk.stored, trial.number),
            "defaulted": not trial.open and f"{DEFAULTED}:{trial.number}" in defaults,
            "late_reward": None if after is None else json.loads(after)[0],
        }

    return said


def _parts(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while part := file.read(PART):
            yield part


async def apprentice(service: Service, heard: ParsedRequest) -> ASGIApp:
    """How the policy compares with who was observed."""
    desk = await heard.desk(service)

    def seen(study: Study) -> m.Apprentice:
        trials = snapshot(study)
        would = {
            int(key.partition(":")[2]): json.loads(value)
            for key, value in service.storage.notes(desk.stored, f"{WOULD}:").items()
        }
        rewards = {number: trials[number].reward for number in would if number < len(trials)}
        told = {number: value for number, value in rewards.items() if value is not None}
        same = [value for number, value in told.items() if would[number]["same"]]
        other = [value for number, value in told.items() if not would[number]["same"]]
        return m.Apprentice(
            len(told), len(same), len(same) / len(told) if told else None, _mean(list(told.values())), _mean(same),
            _mean(other), sum(would[number]["explored"] for number in told),
        )  # fmt: skip

    return json_of(await desk.look(seen))


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
    """The process runs."""
    del service
    return json_of(m.Health(ok=True))


async def ready(service: Service, _: ParsedRequest) -> ASGIApp:
    """The storage answers, and is as this version needs it."""
    try:
        await service.desks.quickly(service.storage.find, "ready")
    except NoRegretError as error:
        raise Problem(503, "storage", "The storage cannot be used just now.", headers={"Retry-After": "1"}) from error
    return json_of(m.Health(ok=True))


async def metrics(service: Service, heard: ParsedRequest) -> ASGIApp:
    """For Prometheus."""
    tenant = None if heard.caller.may("admin") and heard.caller.tenant == "default" else heard.caller.tenant
    text = await service.desks.thread(service.metrics.text, tenant, tenant=heard.caller.tenant)
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")


LOOKING = [
    Operation(method="GET", path="/v1/studies", name="studies", summary="List the studies.", do=studies,
              answers={200: Answered("Oldest first.", m.Studies)}),
    Operation(method="GET", path=STUDY, name="study", summary="Say where a study stands.", do=study,
              answers={200: Answered("Where it stands.", m.StudyInFull)}),
    Operation(method="GET", path=ONE, name="decision", summary="Say what became of a decision.", do=one_decision,
              answers={200: Answered("What is on record.", m.DecisionInFull)}),
    Operation(method="GET", path=f"{STUDY}/predict", name="predict",
              summary="Posterior mean and standard deviation of the reward.", do=predict, query=q.ChannelQuery,
              answers={200: Answered("At each point.", m.Prediction)}),
    Operation(method="GET", path=f"{STUDY}/bounds", name="bounds", summary="The policy's confidence bounds.",
              do=bounds, query=q.ChannelQuery, answers={200: Answered("At each point.", m.ConfidenceBounds)}),
    Operation(method="GET", path=f"{STUDY}/feasible", name="feasible",
              summary="What is known of points satisfying all constraints, and whether any can.", do=feasible,
              text="Of studies whose constraints have posteriors of their own, as those have that are put with "
              "`constraints`.",
              query=q.PointsQuery, answers={200: Answered("At each point.", m.Feasibility)}),
    Operation(method="GET", path=f"{STUDY}/best", name="best",
              summary="The answered decision of the highest posterior mean.", do=best, query=q.BestQuery,
              answers={200: Answered("The decision.", m.DecisionInFull)}),
    Operation(method="GET", path=STUDY + "/explain/{number:int}", name="explain", summary="Say why it was decided so.",
              text="Recomputed from the record of what had happened before, which costs a replay of it.",
              do=explain, query=q.ExplainQuery, answers={200: Answered("Why.", ("application/json",))}),
    Operation(method="GET", path=f"{STUDY}/events", name="events", summary="What happened after a cursor.",
              text="With `Accept: text/event-stream` as server-sent events as they come; `Last-Event-ID` is a cursor.",
              do=happened, query=q.EventsQuery, answers={200: Answered("In order.", m.Events)}),
    Operation(method="GET", path=f"{STUDY}/export", name="export", summary="All trials, as a file.",
              do=export, query=q.ExportQuery, answers={200: Answered("The file.", tuple(MEDIA.values()))}),
    Operation(method="GET", path=f"{STUDY}/apprentice", name="apprentice",
              summary="How the policy compares with who was observed.",
              text="Of the observations sent with `compare`: how often the policy would have done the same, and what "
              "came of it then and otherwise.",
              do=apprentice, answers={200: Answered("The comparison.", m.Apprentice)}),
]  # fmt: skip
HEALTH = [
    Operation(method="GET", path="/healthz", name="health", summary="Whether the process runs.", do=health,
              answers={200: Answered("It does.", m.Health)}),
    Operation(method="GET", path="/readyz", name="ready", summary="Whether the storage answers.", do=ready,
              answers={200: Answered("It does.", m.Health)}),
    Operation(method="GET", path="/metrics", name="metrics", summary="Figures for Prometheus.", do=metrics,
              answers={200: Answered("In its text format.", ("text/plain",))}),
]  # fmt: skip
