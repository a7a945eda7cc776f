"""A service and its studies, with the verbs of `Study`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Self, final, overload

import msgspec
import numpy.typing as npt

from ..._utils.checks import Array, integer, study_name
from ...study.direction import AnyPolicy, Goal
from .. import messages as m
from ..addresses import segment
from . import calls
from .calls import Context, Points, PreparedRequest, Told
from .session import Session

ExportKind = Literal["jsonl", "csv", "arrow", "parquet"]


@final
class Client:
    """A decision service: its studies. May be used by several threads.

    >>> from nilregret.serve.client import Client
    >>> Client("http://127.0.0.1:8000")
    Client('http://127.0.0.1:8000')

    Args:
        url: of the service, such as "http://127.0.0.1:8000" or "https://decisions.example.com/base".
        token: as `nilregret token new` printed it; None where the service needs none.
        timeout: seconds without an answer after which an attempt has failed.
        attempts: how often to try where the service cannot be reached, or says that it is busy. Nothing is done twice.
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 30.0, attempts: int = 5) -> None:
        self._session = Session(url, token=token, timeout=timeout, attempts=attempts)

    def __repr__(self) -> str:
        return f"Client({self._session.url!r})"

    def studies(self) -> list[m.StudySaid]:
        """The studies that this token may see, oldest first."""
        return self._session.send(PreparedRequest("GET", "/v1/studies", calls.of(m.Studies))).studies

    def study(self, name: str) -> RemoteStudy:
        """A study that is there.

        Raises:
            TrialError: there is none of this name for this token.
        """
        found = RemoteStudy(self._session, name)
        found.status()
        return found

    def create(
        self, name: str, policy: AnyPolicy, *, goal: Goal = "maximize", seed: int = 0,
        about: Mapping[str, Any] | None = None, deadline: float | None = None,
        on_deadline: m.OnDeadline = "abandon", default_reward: float | None = None,
        late: Literal["drop", "count"] = "drop",
    ) -> RemoteStudy:  # fmt: skip
        """Make a study, or go on with it where it is there and is the same.

        Args:
            name: without a slash.
            policy: how to decide.
            goal: whether what is told is to be maximized or minimized.
            seed: of all random choices.
            about: facts to keep with it.
            deadline: seconds for which a reward is waited for.
            on_deadline: what then: the trial is abandoned, has failed, gets `default_reward`, is censored, or its
                silence means no.
            default_reward: for `on_deadline="reward"`.
            late: whether a reward after the deadline counts.

        Raises:
            InvalidInput: a value cannot be used.
            TrialError: another study has that name.
        """
        plain = json.loads(policy.to_json())
        body = m.StudyRequest(
            policy=plain, goal=goal, seed=seed, about=None if about is None else dict(about), deadline=deadline,
            on_deadline=on_deadline, default_reward=default_reward, late=late,
        )  # fmt: skip
        study = RemoteStudy(self._session, name)
        self._session.send(PreparedRequest("PUT", study.path, calls.nothing, msgspec.json.encode(body)))
        return study

    def close(self) -> None:
        """Close the connections that nobody uses; the next call opens another."""
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@final
class RemoteStudy:
    """A study that a service keeps; `Client.create` and `Client.study` make it.

    Decisions (`nilregret.serve.messages.Decision`) have `id`, `number`, `parameters`, `point`, `arm`, `context`,
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
        key: str | None = None,
    ) -> m.Decision: ...  # fmt: skip
    @overload
    def ask(
        self, context: Context = None, *, count: int, deadline: float | None = None, worker: str | None = None,
        among: Sequence[Any] | None = None, exclude: Sequence[Any] | None = None, key: str | None = None,
    ) -> list[m.Decision]: ...  # fmt: skip
    def ask(
        self, context: Context = None, *, count: int | None = None, deadline: float | None = None,
        worker: str | None = None, among: Sequence[Any] | None = None, exclude: Sequence[Any] | None = None,
        key: str | None = None,
    ) -> m.Decision | list[m.Decision]:  # fmt: skip
        """What to do; with `count` a list of that many. It is on the service's disk, pending, before it is here.

        Args:
            context: what is known before.
            count: how many.
            deadline: seconds for which the reward is waited for, instead of the study's.
            worker: a name; what it was asked and has not answered is given to it again, also after a crash.
            among: what may be done this time: arms, points or parameters.
            exclude: arms that may not.
            key: `Idempotency-Key`: whoever asks with the same key again gets the same decision. Each call makes one of
                its own unless told.
        """
        found = self._session.send(calls.asking(self.path, context, count, deadline, worker, among, exclude, key))
        return found[0] if count is None else found

    def tell(
        self, decision: m.Decision | str, reward: Told | None = None, *, constraints: npt.ArrayLike | None = None,
        observed_at: float | None = None, revise: bool = False,
    ) -> m.Answer:  # fmt: skip
        """What came of a decision, or of its id; `late` and `counted` of the answer say what became of it.

        `reward` is a number; of a decision to be played several times (`decision.repeats`) one for each play, or their
        `nr.study.Rewards`. With `revise` it corrects another one that was told before.

        Raises:
            TrialError: another reward of it was told before, or there is no such decision.
        """
        return self._session.send(calls.telling(self.path, decision, reward, constraints, observed_at, revise=revise))

    def tell_many(
        self, answers: Iterable[tuple[m.Decision | str, Told]], *, revise: bool = False
    ) -> list[m.RewardResult]:
        """The rewards of several decisions, each recorded by itself: a `status` that is not 200 says which were not."""
        return self._session.send(calls.telling_many(self.path, answers, revise=revise))

    def fail(self, decision: m.Decision | str, reason: str, *, revise: bool = False) -> m.Answer:
        """That nothing will come of a decision; with `revise` it takes back a reward."""
        return self._session.send(calls.failing(self.path, decision, reason, revise=revise))

    def abandon(self, decision: m.Decision | str, reason: str = "its worker is gone") -> m.Answer:
        """That nobody works on a decision any more; its reward is taken all the same if it comes."""
        return self._session.send(calls.abandoning(self.path, decision, reason))

    def add(
        self, point: Mapping[str, Any] | npt.ArrayLike, reward: Told, *, context: Context = None,
        constraints: npt.ArrayLike | None = None, compare: bool = False, key: str | None = None,
    ) -> m.Observation:  # fmt: skip
        """What came of something nobody asked for: parameters, a point `(d,)`, or the number of an arm.

        With `compare` the policy learns as an apprentice: the answer says what it would have done instead.
        """
        return self._session.send(calls.adding(self.path, point, reward, context, constraints, compare, key))

    def predict(
        self, points: Points | None = None, *, context: Context = None, channel: int = 0
    ) -> tuple[Array, Array]:  # fmt: skip
        """Posterior mean and std at points, of all arms without any, each `(n,)`; of constraint `channel` likewise."""
        return self._session.send(calls.predicting(self.path, points, context, channel))

    def bounds(
        self, points: Points | None = None, *, context: Context = None, channel: int = 0
    ) -> tuple[Array, Array]:  # fmt: skip
        """The policy's lower and upper bounds, each `(n,)`: of the reward, or of constraint `channel`."""
        return self._session.send(calls.bounding(self.path, points, context, channel))

    def best(self, *, context: Context = None) -> m.DecisionInFull:
        """The answered decision of the best posterior mean."""
        return self._session.send(calls.best_so_far(self.path, context))

    def decision(self, decision: m.Decision | str) -> m.DecisionInFull:
        """What became of a decision."""
        return self._session.send(calls.seeing(self.path, decision))

    def feasible(self, points: Points | None = None, *, context: Context = None) -> Array:
        """What is known of points satisfying all constraints, `(n,)`, as `Study.feasible` says it."""
        return calls.numbers(self._session.send(calls.satisfying(self.path, points, context)).feasible)

    def infeasible(self, *, context: Context = None) -> float | None:
        """Whether no point can satisfy all constraints any more: None, or how sure that is."""
        return self._session.send(calls.satisfying(self.path, [], context)).infeasible

    def explain(self, number: int, *, draws: int = 1000) -> dict[str, Any]:
        """Why it was decided so, as `study.explain(number).to_dict()` says it.

        Args:
            number: of the decision.
            draws: from which a propensity is estimated, at most 10,000.
        """
        number = integer("number", number, low=0, why="Decisions are numbered from 0.")
        return self._session.send(calls.explaining(self.path, number, draws))

    def trials(self) -> list[dict[str, Any]]:
        """All of them by number, each as a line of `export("jsonl")` has it."""
        return self._session.send(calls.recorded(self.path))

    def status(self) -> m.StudyInFull:
        """Where the study stands."""
        return self._session.send(PreparedRequest("GET", self.path, calls.of(m.StudyInFull)))

    def events(self, after: int = 0, *, follow: bool = False, every: float = 1.0) -> Iterator[m.Event]:
        """What happened after a cursor (the `order` of the last event that was seen), in order.

        Args:
            after: a cursor; 0 for all.
            follow: whether to wait for more, without end.
            every: seconds between two looks while there is nothing new.
        """
        while True:
            found = self._session.send(calls.happening(self.path, after))
            yield from found.events
            after = found.next
            if not found.more and not follow:
                return
            if not found.more:
                time.sleep(every)

    def export(self, kind: ExportKind = "jsonl") -> bytes:
        """All trials as a file of that kind."""
        return self._session.send(calls.exporting(self.path, kind))
