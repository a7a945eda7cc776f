"""Requests of the clients, and the parsing of their replies: pure functions."""

from __future__ import annotations

import json
import math
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar, final

import msgspec
import numpy as np
import numpy.typing as npt

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, outcome, shown
from ..._utils.errors import InvalidInput
from ...study.play_rewards import Rewards, is_several
from .. import messages as m

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
Points = npt.ArrayLike | Sequence[Mapping[str, Any]] | Mapping[str, Any]
Context = npt.ArrayLike | Mapping[str, Any] | None
Told = float | Sequence[float] | Array | Rewards  # of one play, or of several


@final
@dataclass(frozen=True)
class PreparedRequest(Generic[T]):
    """A request that is ready to be sent.

    Attributes:
        method: of HTTP.
        path: of the URL, with the query string.
        read: parses the body of the reply into what the caller gets.
        body: JSON, or None.
        headers: of the request, besides those of every request.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


def of(kind: type[S]) -> Callable[[bytes], S]:
    """Returns a parser of a structure."""
    return msgspec.json.Decoder(kind).decode


def entries(answer: bytes) -> dict[str, Any]:
    """Returns the entries of a JSON object."""
    return msgspec.json.decode(answer, type=dict[str, Any])


def nothing(answer: bytes) -> None:
    """Returns None for any body."""
    del answer


ANY = {"Accept": "*/*"}


def asking(
    study: str, context: Context, count: int | None, deadline: float | None, worker: str | None,
    among: Sequence[Any] | None, exclude: Sequence[Any] | None, key: str | None,
) -> PreparedRequest[list[m.Decision]]:  # fmt: skip
    """Returns a request for decisions."""
    body = m.DecisionRequest(
        context=plain(context), count=count, deadline=deadline, client=worker,
        among=None if among is None else plain(among), exclude=None if exclude is None else plain(exclude),
    )  # fmt: skip

    def read(answer: bytes) -> list[m.Decision]:
        return msgspec.json.decode(answer, type=m.Decisions).decisions

    return PreparedRequest("POST", f"{study}/decisions", read, msgspec.json.encode(body), _key(key))


def telling(
    study: str, decision: m.Decision | str, reward: Told | None, constraints: npt.ArrayLike | None,
    observed_at: float | None, *, revise: bool,
) -> PreparedRequest[m.Answer]:  # fmt: skip
    """Returns a request that records a reward."""
    g = None if constraints is None else np.atleast_1d(np.asarray(constraints, dtype=float)).tolist()
    told = None if reward is None else _reward(reward)
    body = m.RewardRequest(reward=told, constraints=g, observed_at=observed_at, revise=revise)
    return PreparedRequest("PUT", _one(study, decision, "/reward"), of(m.Answer), msgspec.json.encode(body))


def telling_many(
    study: str, answers: Iterable[tuple[m.Decision | str, Told]], *, revise: bool
) -> PreparedRequest[list[m.RewardResult]]:
    """Returns a request that records several rewards."""
    items = [m.RewardItem(id=_id(decision), reward=_reward(reward), revise=revise) for decision, reward in answers]
    body = msgspec.json.encode(m.RewardsRequest(items))

    def read(answer: bytes) -> list[m.RewardResult]:
        return msgspec.json.decode(answer, type=m.RewardResults).items

    return PreparedRequest("POST", f"{study}/rewards", read, body)


def failing(study: str, decision: m.Decision | str, reason: str, *, revise: bool) -> PreparedRequest[m.Answer]:
    """Returns a request that records a failure."""
    body = msgspec.json.encode(m.FailureRequest(reason, revise))
    return PreparedRequest("POST", _one(study, decision, "/failure"), of(m.Answer), body)


def abandoning(study: str, decision: m.Decision | str, reason: str) -> PreparedRequest[m.Answer]:
    """Returns a request that records an abandonment."""
    body = msgspec.json.encode(m.AbandonmentRequest(reason))
    return PreparedRequest("POST", _one(study, decision, "/abandonment"), of(m.Answer), body)


def adding(
    study: str, point: Mapping[str, Any] | npt.ArrayLike, reward: Told, context: Context,
    constraints: npt.ArrayLike | None, compare: bool, key: str | None,
) -> PreparedRequest[m.Observation]:  # fmt: skip
    """Returns a request that records an observation."""
    given = plain(point)
    place = "parameters" if isinstance(given, dict) else "arm" if isinstance(given, int) else "point"
    g = None if constraints is None else np.atleast_1d(np.asarray(constraints, dtype=float)).tolist()
    body = m.ObservationRequest(
        reward=_reward(reward), context=plain(context), constraints=g, compare=compare, **{place: given}
    )
    return PreparedRequest("POST", f"{study}/observations", of(m.Observation), msgspec.json.encode(body), _key(key))


def predicting(
    study: str, points: Points | None, context: Context, channel: int
) -> PreparedRequest[tuple[Array, Array]]:
    """Returns a request for posterior mean and standard deviation."""

    def read(answer: bytes) -> tuple[Array, Array]:
        said = msgspec.json.decode(answer, type=m.Prediction)
        return numbers(said.mean), numbers(said.std)

    return PreparedRequest("GET", f"{study}/predict{_query(points=points, context=context, channel=channel)}", read)


def bounding(study: str, points: Points | None, context: Context, channel: int) -> PreparedRequest[tuple[Array, Array]]:
    """Returns a request for the policy's bounds."""

    def read(answer: bytes) -> tuple[Array, Array]:
        said = msgspec.json.decode(answer, type=m.ConfidenceBounds)
        return numbers(said.lower), numbers(said.upper)

    return PreparedRequest("GET", f"{study}/bounds{_query(points=points, context=context, channel=channel)}", read)


def satisfying(study: str, points: Points | None, context: Context) -> PreparedRequest[m.Feasibility]:
    """Returns a request for the feasibility of points."""
    return PreparedRequest("GET", f"{study}/feasible{_query(points=points, context=context)}", of(m.Feasibility))


def explaining(study: str, number: int, draws: int) -> PreparedRequest[dict[str, Any]]:
    """Returns a request for the explanation of a decision."""
    return PreparedRequest("GET", f"{study}/explain/{number}{_query(draws=draws)}", entries)


def best_so_far(study: str, context: Context) -> PreparedRequest[m.DecisionInFull]:
    """Returns a request for the best decision."""
    return PreparedRequest("GET", f"{study}/best{_query(context=context)}", of(m.DecisionInFull))


def seeing(study: str, decision: m.Decision | str) -> PreparedRequest[m.DecisionInFull]:
    """Returns a request for a decision with its reward."""
    return PreparedRequest("GET", _one(study, decision, ""), of(m.DecisionInFull))


def happening(study: str, after: int) -> PreparedRequest[m.Events]:
    """Returns a request for events after a cursor."""
    return PreparedRequest("GET", f"{study}/events?after={int(after)}", of(m.Events))


def recorded(study: str) -> PreparedRequest[list[dict[str, Any]]]:
    """Returns a request for all trials, as dicts."""

    def read(answer: bytes) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in answer.splitlines()]

    return PreparedRequest("GET", f"{study}/export?format=jsonl", read, headers=ANY)


def exporting(study: str, kind: str) -> PreparedRequest[bytes]:
    """Returns a request for all trials, as a file."""
    return PreparedRequest("GET", f"{study}/export?format={urllib.parse.quote(kind)}", bytes, headers={"Accept": "*/*"})


def _one(study: str, decision: m.Decision | str, what: str) -> str:
    return f"{study}/decisions/{urllib.parse.quote(_id(decision), safe='')}{what}"


def _id(decision: m.Decision | m.DecisionInFull | str) -> str:
    given = decision if isinstance(decision, str) else getattr(decision, "id", None)
    if not isinstance(given, str) or not given:
        raise InvalidInput(f"{shown(decision)} is no decision: pass what `ask` returned, or its `id`.")
    return given


def _key(key: str | None) -> dict[str, str]:
    if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
        raise InvalidInput(f"`key` is {shown(key)}: it must be a text of plain letters, digits and signs.")
    return {"Idempotency-Key": key or str(uuid.uuid4())}


def _reward(value: Told) -> float | list[float | bool] | m.Sums:
    """Returns a reward, or the rewards of several plays."""
    if isinstance(value, Rewards):
        return m.Sums(**asdict(value))
    if is_several(value):
        return [*finite_array("rewards", value).ravel().tolist()]
    return outcome("reward", value, low=-LARGEST_REWARD, high=LARGEST_REWARD, why="It is what came of a decision.")


def plain(value: Any) -> Any:
    """Returns plain numbers and lists in place of those of numpy."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return value


def _query(**given: Any) -> str:
    said = {name: json.dumps(plain(value)) for name, value in given.items() if value is not None}
    return f"?{urllib.parse.urlencode(said)}" if said else ""


# -- replies ---------------------------------------------------------------------------------------------------------


def numbers(values: Sequence[float | None]) -> Array:
    """Returns an array, with NaN for None."""
    return np.array([math.nan if value is None else value for value in values], dtype=float)
