"""The operation that evaluates other policies on the log of a study. It reads, in a reading thread."""

from __future__ import annotations

import math
import warnings
from typing import Any

from starlette.types import ASGIApp

from ...errors import InvalidInput, NoRegretWarning
from ...evaluation import Evaluation, evaluate
from ...study.study import Study
from ..wire import evaluation_messages as m
from ..wire.advice import warning_of
from ..wire.problems import about
from ..wire.settings import Limits
from .create_study import whole
from .operations import Operation, ParsedRequest, ResponseInfo, Service, json_of
from .size_limits import check_posterior
from .write_routes import STUDY

MOST_REPLAYED = 1000  # decisions on which a policy is asked one by one, which may take milliseconds each


async def evaluations(service: Service, request: ParsedRequest) -> ASGIApp:
    """Returns what another policy would have earned on the decisions of a study."""
    worker, body = await request.worker(service), request.body
    policy = about("policy", policy_of, service.settings.limits, body.policy)
    return json_of(await worker.read(lambda study: evaluated(study, policy, body)))


def evaluated(study: Study, policy: Any, body: m.EvaluationRequest) -> m.EvaluationResult:
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
    if isinstance(policy, dict):
        try:
            return {int(arm): probability for arm, probability in policy.items()}
        except ValueError:
            raise InvalidInput(
                "`policy` has an entry that is no arm: its entries are numbers of arms.", topic="target"
            ) from None
    return policy


def _reply(result: Evaluation) -> m.EvaluationResult:
    said = result.to_dict()
    said["cautions"] = [*map(warning_of, said["cautions"])]
    said["text"] = warning_of(said["text"])
    check = m.PropensityCheckResult(**said.pop("check"))
    return m.EvaluationResult(check=check, **{name: _plain(value) for name, value in said.items()})


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


EVALUATION_OPERATIONS = [
    Operation(method="POST", path=f"{STUDY}/evaluations", name="evaluate",
              summary="What another policy would have earned on the decisions of a study.",
              text="From the decisions with a recorded probability: put the study with "
              '`"propensities": true`. It reads, and changes nothing.',
              handler=evaluations, body=m.EvaluationRequest,
              answers={200: ResponseInfo("The estimates and their interval.", m.EvaluationResult)}),
]  # fmt: skip
