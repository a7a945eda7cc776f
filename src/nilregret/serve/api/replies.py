"""Replies of the API about trials and studies."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from starlette.responses import StreamingResponse

from ..._utils.checks import Array
from ...errors import NoRegretError
from ...serialize import plain_loads, to_plain
from ...storage import StoredStudy
from ...storage.record import Trial
from ...storage.trial import Answer as Earlier
from ...storage.trial import Plays
from ...storage.visit import Visit
from ...study.definition import PROPENSITIES, objectives_of
from ...study.study import Study
from ...study.trial_json import context_json, parameters_json
from ...study.visits import STICKY, sticky_seconds
from ...study.waiting import overdue
from ..wire import messages
from ..wire.advice import warning_of
from ..wire.decision_ids import Ids
from ..work.answers import TellResult
from ..work.collected import Collected
from ..work.deadlines import FACT, Rule
from ..work.events import several
from ..work.workers import StudyWorker


def finite(value: float | None) -> float | None:
    """Returns the value, or None if it is no number of JSON."""
    return None if value is None or not math.isfinite(value) else value


def listed(values: Array) -> list[float | None]:
    """Returns numbers as a list, with None for those that JSON does not have."""
    return [finite(value) for value in np.asarray(values).tolist()]


def study_said(name: str, algorithm: str, stored: StoredStudy) -> dict[str, Any]:
    """Returns the entries of `StudySaid`."""
    about = plain_loads(stored.about)
    rule, propensities = Rule.of(about), about.get(PROPENSITIES) is True
    about.pop(FACT, None)
    if propensities:
        del about[PROPENSITIES]
    sticky = msgspec.UNSET if sticky_seconds(about) is None else about.pop(STICKY)
    objectives = objectives_said(stored)
    return {
        "name": name, "algorithm": algorithm, "seed": stored.seed,
        "goal": [each.goal for each in objectives] or stored.goal, "objectives": objectives or msgspec.UNSET,
        "about": about, "propensities": propensities, "deadline": rule.deadline,
        "on_deadline": rule.on_deadline, "default_reward": rule.default_reward, "late": rule.late,
        "created_at": stored.created_at, "reward": rule.reward or msgspec.UNSET, "sticky": sticky,
    }  # fmt: skip


def objectives_said(stored: StoredStudy) -> list[messages.Objective]:
    """Returns the objectives of a study, if there are several."""
    return [messages.Objective(name, goal) for name, goal in objectives_of(stored).items()]


def rows(table: Array) -> list[list[float | None]]:
    """Returns a table as lists, with None for numbers that JSON does not have."""
    return [listed(row) for row in table]


def _policy(study: Study, stored: StoredStudy) -> Any:
    """Returns the policy as it was made, or in the space to which the study was changed since."""
    return plain_loads(stored.policy) if study.replica.roster.spaces is None else to_plain(study.policy)


def study_in_full(worker: StudyWorker) -> messages.StudyInFull:
    """Returns the state of a study. It reads the study, so it needs a thread."""
    study = worker.study
    trials = study.trials
    counted: dict[str, int] = dict(Counter(trial.state for trial in trials))
    if past := overdue(study, study.replica.clock()):
        counted["overdue"] = past
    return messages.StudyInFull(
        **study_said(worker.name, study.policy.algorithm, worker.stored),
        policy=_policy(study, worker.stored), trials={"all": len(trials)} | counted,
        width=_known(study, "width"), information_gain=_known(study, "information_gain"),
        restarts=study.restarts, multipliers=study.multipliers.tolist(),
        cautions=[warning_of(each) for each in {**study.held_warnings, **study.remarks}.values()],
    )  # fmt: skip


def _known(study: Study, name: str) -> float | None:
    try:
        return finite(getattr(study, name))
    except NoRegretError:  # a policy without a posterior
        return None


def decision(worker: StudyWorker, ids: Ids, trial: Trial, propensity: float | None = None) -> messages.Decision:
    """Returns a trial as it was when it was decided, so that a retry gets the same reply."""
    parameters = None if trial.settings is None else parameters_json(trial)
    context = None if trial.context is None else context_json(trial)
    return messages.Decision(
        ids.of(worker.tenant, worker.stored, trial.number), trial.number, parameters, trial.point.tolist(),
        trial.arm, context, trial.explored, trial.repeats, trial.propensity if propensity is None else propensity,
        trial.asked_at, worker.deadlines.expires_at(trial), trial.enqueued,
        **({} if trial.visit is None else _visit(worker, ids, trial.visit)),
    )  # fmt: skip


def _visit(worker: StudyWorker, ids: Ids, visit: Visit) -> dict[str, Any]:
    """Returns the entries of a decision that say who visits, the caller's own id and facts, and the slate."""
    said = visit.said()
    if visit.slate is not None:
        said["slate"] = ids.of(worker.tenant, worker.stored, visit.slate)
    return said


def plays_of(reward: float | None, plays: Plays | None) -> int | None:
    """Returns the number of plays whose mean is the reward."""
    return None if reward is None else 1 if plays is None else plays.times


def earlier(answer: Earlier) -> messages.Earlier:
    """Returns an answer that was corrected later."""
    g = None if answer.constraints is None else answer.constraints.tolist()
    plays = plays_of(answer.reward, answer.plays)
    return messages.Earlier(
        answer.reward, plays, g, answer.reason, answer.time, answer.std, dict(answer.measured), **several(answer)
    )


def answer(worker: StudyWorker, ids: Ids, result: TellResult) -> messages.Answer:
    """Returns the reply to a reward or a failure."""
    trial, late = result.trial, result.late_told
    g = None if trial.constraints is None else trial.constraints.tolist()
    reason = trial.abandoned.reason if trial.abandoned and trial.state == "abandoned" else trial.reason
    return messages.Answer(
        id=ids.of(worker.tenant, worker.stored, trial.number), number=trial.number, state=trial.state,
        reward=trial.reward, plays=plays_of(trial.reward, trial.plays), constraints=g, reason=reason, late=result.late,
        counted=result.counted, late_reward=None if late is None else late.reward, told_at=trial.told_at,
        sentence=result.sentence, std=trial.std, metrics=trial.metrics, rewards=keyed(result.collected),
        late_values=msgspec.UNSET if late is None else several(late).get("values", msgspec.UNSET), **several(trial),
    )  # fmt: skip


def keyed(collected: Collected | None) -> list[messages.KeyedReward] | msgspec.UnsetType:
    """Returns several rewards of a decision, or nothing in a study that takes one."""
    return msgspec.UNSET if collected is None else [messages.KeyedReward(**each) for each in collected.listed()]


PART = 1 << 16  # bytes in one part of a file


async def download(
    worker: StudyWorker, name: str, media: str, write: Callable[[Study, Path], object]
) -> StreamingResponse:
    """Returns a file as a response. The file is gone when it is closed, also if the client leaves.

    Args:
        worker: of the study.
        name: of the file, for the client.
        media: type of the file.
        write: writes the file of a study to a path.
    """

    def written(study: Study) -> BinaryIO:
        with tempfile.NamedTemporaryFile(prefix="nilregret-", suffix=Path(name).suffix, delete=False) as file:
            path = Path(file.name)
        try:
            write(study, path)
            return path.open("rb")
        finally:
            path.unlink()

    named = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_parts(await worker.read(written)), media_type=media, headers=named)


def _parts(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while part := file.read(PART):
            yield part
