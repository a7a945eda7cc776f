"""The client of a service, and its studies with the verbs of `Study`. Rows of a table are sent as JSON lines."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, Self, final, overload
from urllib.parse import quote

import msgspec
import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, integer, many, shown, study_name
from .._utils.files import bytes_of
from .._utils.logs import Row
from .._utils.tables import NESTED, PROPENSITY, Table, given_table, is_missing, table_in
from ..algorithms.schema import table_of
from ..domains.domain import Space
from ..errors import InvalidInput, warn
from ..evaluation.estimators import Estimator
from ..serialize import from_plain
from ..serve.wire import change_messages as c
from ..serve.wire import messages as m
from ..serve.wire.evaluation_messages import EvaluationRequest, EvaluationResult
from ..serve.wire.messages import segment
from ..study.direction import AnyPolicy, Goal
from ..study.play_rewards import answer_entries, listed_answers
from ..study.visits import sticky_of
from .session import (  # fmt: skip
    Context,
    Points,
    Session,
    Std,
    Told,
    Weights,
    constraint_values,
    context_of,
    decision_id,
    key_header,
    numbers,
    plain,
    reward_of,
)

PART = 500  # rows that are sent together


@final
class Rows:
    """The rows of a table as JSON lines. Each iteration yields all of them.

    Args:
        table: path of a file, a data frame, a mapping of columns or a list of dicts.
        decimal: decimal mark of a CSV file, or None if the file shows which it is.

    Attributes:
        key: a name of the content of a file, or None.

    Raises:
        InvalidInput: nothing can be read.
    """

    def __init__(self, table: Any, decimal: str | None = None) -> None:
        self.key: str | None = None
        if isinstance(table, str | Path):
            data = bytes_of(table)
            self.key = f"content {hashlib.sha256(data).hexdigest()}"
            found = table_in(data, str(table), decimal)
        else:
            found = given_table("table", table)
        columns = {name: found.values(name) if name in NESTED else cells for name, cells in found.columns.items()}
        self._table = Table(found.called, columns, lines=found.lines)

    def __iter__(self) -> Iterator[bytes]:
        part = []
        for number, row in enumerate(
            self._table.rows(),
        ):
            part.append(msgspec.json.encode(self._checked(row, number), enc_hook=_plain) + b"\n")
            if len(part) == PART:
                yield b"".join(part)
                part = []
        yield b"".join(part)

    def _checked(self, row: Row, number: int) -> Row:
        """Returns a row with None in empty cells. JSON would write an infinite number as a missing one."""
        found = {name: None if is_missing(value) else value for name, value in row.items()}
        for name, value in found.items():
            if isinstance(value, float) and math.isinf(value):
                raise InvalidInput(f"{self._table.at(number)} has {value} in column {name}: it must be finite.")
        return found

    def _above_limits(self) -> list[str]:
        from ..study.importing import VIOLATING
        from ..study.rows import LIMITS

        found, table = [], self._table
        limits = [name for name in table.columns if name.startswith(LIMITS) and table.find("asked_at") is None]
        for name in limits:
            told = table.numbers(name)
            told = told[~np.isnan(told)]
            if len(told) > 1 and told.min() > 0.0:
                found.append(VIOLATING.format(len(told), f"`{name}`", table.called))
        return found

    def cautions(self, said: m.ObservationsTaken) -> list[str]:
        """Returns sentences about what a service has taken of the rows."""
        found, called = [], self._table.called
        if not said.new:
            found.append(
                f"All {many(said.rows, 'row')} of {called} are on record already, under the same key. Nothing was "
                "recorded again. If they are new decisions, pass a `key` of their own."
            )
        if not said.recorded:
            found.append(f"No row of {called} has a reward, so nothing was recorded.")
        of_log = self._table.find("number") or self._table.find(PROPENSITY)  # Many decisions of a log have no reward.
        if 0 < said.recorded < said.rows and of_log is None:
            left = f"{said.rows - said.recorded:,} of {many(said.rows, 'row')}"
            found.append(f"{left} of {called} have no reward, and were left out.")
        found += self._above_limits()
        if said.unread:
            found.append(f"{called} has columns that were not read: {', '.join(map(shown, said.unread))}.")
        if 0 < said.without_propensity < said.recorded:
            found.append(
                f"{said.without_propensity:,} of {many(said.recorded, 'row')} have no propensity. Such rows teach the "
                "policy, and `evaluate` leaves them out."
            )
        return found


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise InvalidInput(f"A cell of the table is {shown(value)}, which is no value of JSON.")


MOST_ITEMS = 1000  # answers of one request
ExportKind = Literal["jsonl", "csv", "arrow", "parquet"]


@final
class Client:
    """A decision service and its studies. Several threads may use one client, and so may forked processes.

    >>> from nilregret.client import Client
    >>> Client("http://127.0.0.1:8000")
    Client('http://127.0.0.1:8000')

    Args:
        url: of the service, such as "http://127.0.0.1:8000" or "https://decisions.example.com/base".
        token: as `nilregret token new` printed it. None if the service needs none.
        timeout: seconds without an answer after which an attempt has failed.
        attempts: number of attempts while the service cannot be reached or is busy. Retries are idempotent.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0, attempts: int = 5) -> None:
        self._session = Session(url, token=token, timeout=timeout, attempts=attempts)

    def __repr__(self) -> str:
        return f"Client({self._session.url!r})"

    def studies(self) -> list[m.StudySaid]:
        """Returns the studies that this token may see, oldest first."""
        return self._session.get("/v1/studies", m.Studies).studies

    def study(self, name: str) -> RemoteStudy:
        """Returns a study that exists.

        Raises:
            TrialError: this token sees no study of this name.
        """
        found = RemoteStudy(self._session, name)
        found.status()
        return found

    def create(
        self, name: str, policy: AnyPolicy, *, goal: Goal | Sequence[Goal] = "maximize", seed: int = 0,
        about: Mapping[str, Any] | None = None, deadline: float | None = None,
        on_deadline: m.OnDeadline = "abandon", default_reward: float | Sequence[float] | None = None,
        late: Literal["drop", "count"] = "drop", propensities: bool = False,
        sticky: bool | float | timedelta = False, reward: m.Rewarding | None = None,
    ) -> RemoteStudy:  # fmt: skip
        """Makes a study, or returns the stored one if it is the same.

        Args:
            name: without a slash.
            policy: that decides.
            goal: whether rewards are maximized or minimized. Of several objectives, a word for all or for each.
            seed: of all random choices.
            about: facts to keep with the study.
            deadline: seconds from a decision to its deadline.
            on_deadline: what happens at the deadline. The trial is abandoned, fails, gets `default_reward`, is
                censored, or is imputed from silence.
            default_reward: for `on_deadline="reward"`. Of several objectives, a value for each.
            late: whether a reward after the deadline counts.
            propensities: whether each decision is recorded with its probability.
            sticky: whether a unit keeps its arm, or for how long, as of a `Study`.
            reward: what several rewards of a decision are told as at its deadline. None if it has one reward.

        Raises:
            InvalidInput: a value cannot be used.
            TrialError: a different study has this name.
        """
        body = m.StudyRequest(
            policy=json.loads(policy.to_json()), goal=plain("goal", goal), seed=seed,
            about=None if about is None else dict(about), deadline=deadline, on_deadline=on_deadline,
            default_reward=plain("default_reward", default_reward), late=late, propensities=propensities,
            sticky=sticky_of(sticky), reward=reward,
        )  # fmt: skip
        study = RemoteStudy(self._session, name)
        self._session.send("PUT", study.path, body, dict[str, Any])
        return study

    def close(self) -> None:
        """Closes the connections. The next request opens another."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@final
class RemoteStudy:
    """A study of a service. `Client.create` and `Client.study` make it.

    Decisions (`nilregret.serve.wire.messages.Decision`) have `id`, `number`, `parameters`, `point`, `arm`, `context`,
    `explored` and `expires_at`.
    """

    def __init__(self, session: Session, name: str) -> None:
        self.name, self._session = study_name("name", name), session
        self.path = f"/v1/studies/{segment(name)}"

    def __repr__(self) -> str:
        return f"RemoteStudy({self.name!r}, {self._session.url!r})"

    @overload
    def ask(
        self, context: Context = None, *, count: None = None, deadline: float | None = None,
        worker: str | None = None, among: Sequence[Any] | None = None, exclude: Sequence[Any] | None = None,
        unit: str | None = None, event: str | None = None, facts: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> m.Decision: ...  # fmt: skip
    @overload
    def ask(
        self, context: Context = None, *, count: int, deadline: float | None = None, worker: str | None = None,
        among: Sequence[Any] | None = None, exclude: Sequence[Any] | None = None, slate: bool = False,
        unit: str | None = None, event: str | None = None, facts: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> list[m.Decision]: ...  # fmt: skip
    def ask(
        self, context: Context = None, *, count: int | None = None, deadline: float | None = None,
        worker: str | None = None, among: Sequence[Any] | None = None, exclude: Sequence[Any] | None = None,
        slate: bool = False, unit: str | None = None, event: str | None = None,
        facts: Mapping[str, Any] | None = None, key: str | None = None,
    ) -> m.Decision | list[m.Decision]:  # fmt: skip
        """Returns a decision, or a list of `count`. A decision is on the service's disk before it is returned.

        Args:
            context: of the decision.
            count: number of decisions.
            deadline: seconds to the deadline of the reward, instead of the study's.
            worker: name of a worker. It gets its unanswered decisions again, also after a crash.
            among: arms, points or parameters to choose from.
            exclude: arms that must not be chosen.
            slate: whether the decisions are the places of one slate, each at another arm.
            unit: who visits. A study with `sticky` plays the same arm for a unit again.
            event: your own id of the decision, for `tell` and for retries. The same event is the same decision.
            facts: your own facts, such as an order, at most 20.
            key: `Idempotency-Key`. A request with the same key gets the same decision. Each call makes a new key unless
                given.
        """
        body = m.DecisionRequest(
            context=context_of(context), count=count, deadline=deadline, client=worker,
            among=plain("among", among), exclude=plain("exclude", exclude), event=event, unit=unit,
            facts=plain("facts", facts), slate=slate,
        )  # fmt: skip
        path = f"{self.path}/decisions"
        said = self._session.send("POST", path, body, m.Decisions, key_header(key))
        for sentence in said.cautions or ():
            warn(sentence)
        return said.decisions[0] if count is None else said.decisions

    def tell(
        self, decision: m.Decision | str, reward: Told | None = None, *, constraints: npt.ArrayLike | None = None,
        std: Std = None, metrics: Mapping[str, float] | None = None, observed_at: float | None = None,
        key: str | None = None, revise: bool = False,
    ) -> m.Answer:  # fmt: skip
        """Records the reward of a decision, of its id or its event. `late` and `counted` say how it counts.

        `reward` is a number. If a decision is to be played several times (`decision.repeats`), it holds one number for
        each play, or it is `nr.study.Rewards` of these plays. Of several objectives it holds a value for each, in order
        or by name. `std` is the standard deviation of its noise, where it is known, and `metrics` are further numbers
        to keep with it. In a study with `reward`, `key` names one of several rewards. With `revise` it corrects an
        earlier reward.

        Raises:
            TrialError: the decision has a different reward, or there is no such decision.
        """
        body = m.RewardRequest(
            reward=None if reward is None else reward_of(reward), constraints=constraint_values(constraints),
            std=plain("std", std), metrics=plain("metrics", metrics), observed_at=observed_at, revise=revise,
            key=key,
        )  # fmt: skip
        return self._session.send("PUT", f"{self._path_of(decision)}/reward", body, m.Answer)

    def tell_many(self, answers: Iterable[Any], *, revise: bool = False) -> list[m.RewardResult]:
        """Records the rewards of several decisions, each by itself. A `status` other than 200 marks a refused one.

        Args:
            answers: as of `Study.tell_many`, with decisions, their ids or events in place of trials. A dict may have
                the "key" of one of several rewards.
            revise: see `tell`.
        """
        items = [_item(answer, revise) for answer in listed_answers(answers)]
        found: list[m.RewardResult] = []
        for first in range(0, len(items), MOST_ITEMS):
            body = m.RewardsRequest(items[first : first + MOST_ITEMS])
            found += self._session.send("POST", f"{self.path}/rewards", body, m.RewardResults).items
        return found

    def tell_slate(
        self, slate: m.Decision | str | Sequence[m.Decision], rewards: Sequence[float | None] | None = None, *,
        clicked: int | Sequence[int] | None = None, revise: bool = False,
    ) -> list[m.Answer]:  # fmt: skip
        """Records answers of the places of a slate, all or none (see `Study.tell_slate`)."""
        one: Any = slate[0] if isinstance(slate, list | tuple) and slate else slate
        places = [clicked] if isinstance(clicked, int) else clicked
        body = m.SlateRequest(plain("rewards", rewards), plain("clicked", places), revise)
        return self._session.send("PUT", f"{self._path_of(one)}/slate", body, m.SlateSaid).answers

    def fail(self, decision: m.Decision | str, reason: str, *, revise: bool = False) -> m.Answer:
        """Records that a decision failed. With `revise` the failure replaces a reward."""
        return self._session.send(
            "POST", f"{self._path_of(decision)}/failure", m.FailureRequest(reason, revise), m.Answer
        )

    def abandon(self, decision: m.Decision | str, reason: str = "its worker is gone") -> m.Answer:
        """Records that no worker will answer a decision. A reward is recorded all the same if one comes."""
        path = f"{self._path_of(decision)}/abandonment"
        return self._session.send("POST", path, m.AbandonmentRequest(reason), m.Answer)

    def report(self, decision: m.Decision | str, step: int, value: float) -> bool:
        """Records the value of a decision after a step, and returns whether going on is worth it.

        A repeated report records nothing and is judged anew (see `Study.report`).
        """
        number = integer("step", step, low=0, why="It counts the steps of an evaluation.")
        path = f"{self._path_of(decision)}/steps/{number}"
        return self._session.send("PUT", path, m.StepRequest(plain("value", value)), m.StepSaid).go_on

    def forget(self, unit: str) -> bool:
        """Removes the link from a unit to its decisions, and returns True if there was one (see `Study.forget`)."""
        return self._session.send("POST", f"{self.path}/forget", c.ForgetRequest(unit), c.Forgotten).forgotten

    def stop(self, decision: m.Decision | str, reason: str | None = None) -> m.Answer:
        """Records that the evaluation of a decision was stopped. Its last report stays (see `Study.stop`)."""
        return self._session.send("POST", f"{self._path_of(decision)}/stop", m.StopRequest(reason), m.Answer)

    def add(
        self, point: Mapping[str, Any] | npt.ArrayLike, reward: Told, *, context: Context = None,
        constraints: npt.ArrayLike | None = None, std: Std = None,
        metrics: Mapping[str, float] | None = None, compare: bool = False, key: str | None = None,
    ) -> m.Observation:  # fmt: skip
        """Records an observation that no decision asked for, at parameters, a point `(d,)` or the number of an arm.

        With `compare` the answer says what the policy would have done instead, before it learns from the observation.
        """
        given = plain("point", point)
        place = "parameters" if isinstance(given, dict) else "arm" if isinstance(given, int) else "point"
        body = m.ObservationRequest(
            reward=reward_of(reward), context=context_of(context), constraints=constraint_values(constraints),
            std=plain("std", std), metrics=plain("metrics", metrics), compare=compare, **{place: given},
        )  # fmt: skip
        return self._session.send("POST", f"{self.path}/observations", body, m.Observation, key_header(key))

    def add_from(self, table: Any, *, key: str | None = None, decimal: str | None = None) -> m.ObservationsTaken:
        """Records the rewards of a table, a file or a log in one request, and returns how many (see `Study.add_from`).

        The service takes the rows in pieces. If the call is interrupted or a row is refused, those before it stay on
        record. The same call goes on after them.

        Args:
            table: see `Study.add_from`.
            key: names these rows. Of a file, the same content has the same name, so that a repeated call records
                nothing twice. Rows in memory are new at each call unless they have a `key`.
            decimal: see `Study.add_from`.
        """
        rows = Rows(table, decimal)
        headers = key_header(key or rows.key) | {"Content-Type": "application/x-ndjson"}
        reply = self._session.request("POST", f"{self.path}/observations", rows, headers)
        said = msgspec.json.decode(reply, type=m.ObservationsTaken)
        for sentence in rows.cautions(said):
            warn(sentence)
        return said

    def arms(self) -> list[c.ArmSaid]:
        """Returns all arms by number, the retired ones included."""
        return self._session.get(f"{self.path}/arms", c.ArmsSaid).arms

    def add_arms(
        self, points: Points, *, names: Sequence[str | None] | None = None,
        about: Sequence[Mapping[str, Any] | None] | None = None, key: str | None = None,
    ) -> list[c.ArmSaid]:  # fmt: skip
        """Adds arms to the study, and returns them (see `Study.add_arms`)."""
        given = plain("points", points)
        rows = [given] if isinstance(given, dict) else given
        of = zip(rows, names or [None] * len(rows), about or [None] * len(rows), strict=True)
        arms = [
            c.NewArm(parameters=row, name=name, about=plain("about", facts))
            if isinstance(row, dict)
            else c.NewArm(point=row if isinstance(row, list) else [row], name=name, about=plain("about", facts))
            for row, name, facts in of
        ]
        return self._session.send("POST", f"{self.path}/arms", c.ArmsRequest(arms), c.ArmsSaid, key_header(key)).arms

    def retire_arm(self, arm: int) -> c.ArmSaid:
        """Retires an arm, and returns it: no later decision plays it (see `Study.retire_arm`)."""
        return self._put_arm(arm, c.ArmRequest(retired=True))

    def restore_arm(self, arm: int) -> c.ArmSaid:
        """Brings a retired arm back, and returns it."""
        return self._put_arm(arm, c.ArmRequest(retired=False))

    def describe_arm(self, arm: int, *, name: str | None = None, about: Mapping[str, Any] | None = None) -> c.ArmSaid:
        """Records a name of an arm, facts about it, or both, and returns the arm."""
        return self._put_arm(arm, c.ArmRequest(name=name, about=plain("about", about)))

    def widen(
        self, /, *, was: Mapping[str, Any] | None = None, context: Any = None, key: str | None = None, **parameters: Any
    ) -> Space:
        """Records another space of the study, or of its contexts, and returns it (see `Study.widen`).

        Args:
            was: value that each new parameter had in the trials so far.
            context: changed and new parameters of contexts, by name.
            key: see `ask`.
            parameters: changed and new parameters.
        """
        if context is not None and not isinstance(context, Mapping):
            parameters, context = {**parameters, "context": context}, None  # A parameter of that name.
        body = c.WidenRequest(_tables(parameters), _tables(context), plain("was", was))
        found: Space = from_plain(
            self._session.send("POST", f"{self.path}/widen", body, c.SpaceSaid, key_header(key)).space
        )
        return found

    def enqueue(self, points: Points | Mapping[str, Any] | int, *, key: str | None = None) -> list[c.EntrySaid]:
        """Adds points to try first, and returns them as they wait (see `Study.enqueue`).

        Args:
            points: a dict of parameters, of all or some, or a list of them. Or points `(n, d)`, or numbers of arms. A
                list of whole numbers is of arms.
            key: see `ask`.
        """
        given = plain("points", points)
        rows = given if isinstance(given, list) and not any(isinstance(each, float) for each in given) else [given]
        kinds = {dict: "parameters", int: "arm"}
        body = c.EnqueueRequest([c.NewEntry(**{kinds.get(type(row), "point"): row}) for row in rows])
        return self._session.send("POST", f"{self.path}/enqueue", body, c.QueueSaid, key_header(key)).entries

    def enqueued(self) -> list[c.EntrySaid]:
        """Returns the points that wait to be tried first, in order."""
        return self._session.get(f"{self.path}/enqueue", c.QueueSaid).entries

    def withdraw(self, entry: int) -> None:
        """Takes a point that waits out of the queue (see `Study.withdraw`)."""
        number = integer("entry", entry, low=0, why="Entries are numbered from 0.")
        self._session.request("DELETE", f"{self.path}/enqueue/{number}")

    def _put_arm(self, arm: int, body: c.ArmRequest) -> c.ArmSaid:
        number = integer("arm", arm, low=0, why="Arms are numbered from 0.")
        return self._session.send("PUT", f"{self.path}/arms/{number}", body, c.ArmSaid)

    def predict(
        self, points: Points | None = None, *, context: Context = None, channel: int = 0
    ) -> tuple[Array, Array]:  # fmt: skip
        """Returns posterior mean and standard deviation at points, or of all arms, each `(n,)`.

        `channel` 0 is the reward, and j is constraint j. Objectives after the first stand before constraints.
        """
        found = self._session.get(f"{self.path}/predict", m.Prediction, points=points, context=context, channel=channel)
        return numbers(found.mean), numbers(found.std)

    def bounds(
        self, points: Points | None = None, *, context: Context = None, channel: int = 0
    ) -> tuple[Array, Array]:  # fmt: skip
        """Returns the policy's lower and upper bounds, each `(n,)`: of the reward, or of constraint `channel`."""
        found = self._session.get(
            f"{self.path}/bounds", m.ConfidenceBounds, points=points, context=context, channel=channel
        )
        return numbers(found.lower), numbers(found.upper)

    def best(self, *, context: Context = None, weights: Weights = None) -> m.DecisionInFull:
        """Returns the answered decision with the best posterior mean.

        Of several objectives, it is a decision of the front for the `weights` of objectives, by name or in order.
        """
        return self._session.get(f"{self.path}/best", m.DecisionInFull, context=context, weights=weights)

    def mix(self, *, context: Context = None) -> m.Mix:
        """Returns the decisions whose points earn most together within a budget on average (see `Study.mix`)."""
        return self._session.get(f"{self.path}/mix", m.Mix, context=context)

    def front(self) -> list[m.DecisionInFull]:
        """Returns the decisions that no other beats, of several objectives: the best of each objective first."""
        return self.front_values().decisions

    def front_values(self, reference: npt.ArrayLike | None = None) -> m.Front:
        """Returns the front with posterior means, bounds and its hypervolume (see `Study.front_values`)."""
        return self._session.get(f"{self.path}/front", m.Front, reference=reference)

    def hypervolume(self, reference: npt.ArrayLike | None = None) -> float:
        """Returns the hypervolume of the front (see `Study.hypervolume`)."""
        return float(numbers([self.front_values(reference).hypervolume])[0])

    def decision(self, decision: m.Decision | str) -> m.DecisionInFull:
        """Returns a decision with its reward or failure."""
        return self._session.get(self._path_of(decision), m.DecisionInFull)

    def feasible(self, points: Points | None = None, *, context: Context = None) -> Array:
        """Returns the feasibility of points, `(n,)`, as `Study.feasible` does."""
        return numbers(
            self._session.get(f"{self.path}/feasible", m.Feasibility, points=points, context=context).feasible
        )

    def infeasible(self, *, context: Context = None) -> float | None:
        """Returns None if a point may satisfy all constraints, otherwise the confidence that none can."""
        return self._session.get(f"{self.path}/feasible", m.Feasibility, points=[], context=context).infeasible

    def explain(self, number: int, *, draws: int = 1000) -> dict[str, Any]:
        """Returns why a decision was made, as `study.explain(number).to_dict()` does.

        Args:
            number: of the decision.
            draws: for the estimate of a propensity, at most 10,000.
        """
        number = integer("number", number, low=0, why="Decisions are numbered from 0.")
        return self._session.get(f"{self.path}/explain/{number}", dict[str, Any], draws=draws)

    def evaluate(
        self, policy: AnyPolicy | int | str | Sequence[float] | Mapping[int, float], *,
        estimator: Estimator = "snips", delta: float = 0.05,
        reward_range: tuple[float, float] | None = None, floor: float | None = None,
        default_reward: float | None = None, reward: str | None = None, seed: int = 0,
    ) -> EvaluationResult:  # fmt: skip
        """Returns what another policy would have earned on the decisions of the study (see `nilregret.evaluate`)."""
        said = {str(arm): p for arm, p in policy.items()} if isinstance(policy, Mapping) else policy
        body = EvaluationRequest(
            json.loads(said.to_json()) if isinstance(said, AnyPolicy) else plain("policy", said), estimator, delta,
            plain("reward_range", reward_range), floor, default_reward, seed, reward,
        )  # fmt: skip
        return self._session.send("POST", f"{self.path}/evaluations", body, EvaluationResult)

    def trials(self) -> list[dict[str, Any]]:
        """Returns all trials by number, each as a line of `export("jsonl")`."""
        return [json.loads(line) for line in self.export("jsonl").splitlines()]

    def status(self) -> m.StudyInFull:
        """Returns the state of the study."""
        return self._session.get(self.path, m.StudyInFull)

    def events(self, after: int = 0, *, follow: bool = False, every: float = 1.0) -> Iterator[m.Event]:
        """Yields the events after a cursor, in order. The cursor is the `order` of the last event seen.

        Args:
            after: cursor. 0 means all events.
            follow: whether to wait for more events, without end.
            every: seconds between two requests while there is no new event.
        """
        while True:
            found = self._session.get(f"{self.path}/events", m.Events, after=int(after))
            yield from found.events
            after = found.next
            if not found.more and not follow:
                return
            if not found.more:
                time.sleep(every)

    def export(self, kind: ExportKind = "jsonl") -> bytes:
        """Returns all trials as a file of this kind."""
        return self._session.request("GET", f"{self.path}/export?format={quote(kind)}", headers={"Accept": "*/*"})

    def _path_of(self, decision: m.Decision | str) -> str:
        return f"{self.path}/decisions/{segment(decision_id(decision))}"


def _tables(parameters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Returns the table of each parameter, by name, or None without parameters."""
    if not parameters:
        return None
    return {name: plain(name, table_of(each)) for name, each in Space(**parameters).declared.items()}


def _item(answer: Any, revise: bool) -> m.RewardItem:
    """Returns the item of a request for an answer."""
    key = answer.get("key") if isinstance(answer, Mapping) else None
    keyless = {name: each for name, each in answer.items() if name != "key"} if key is not None else answer
    told = answer_entries(keyless)
    reward = told.pop("reward", None)
    return m.RewardItem(
        id=decision_id(told.pop("trial")), reward=None if reward is None else reward_of(reward),
        constraints=constraint_values(told.pop("constraints", None)), revise=revise, key=key, **told,
    )  # fmt: skip
