"""Bodies of the operation that evaluates another policy."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from ...evaluation.estimators import Estimator
from .messages import Reply, Request


class EvaluationRequest(Request, frozen=True):
    """A policy to evaluate on the decisions of a study."""

    policy: Annotated[
        int | str | list[float] | dict[str, Any],
        Meta(
            description='"uniform"; "best", the arm that the study thinks best; an arm, or its parameters; the '
            'probability of each arm, as a list or by arm ({"3": 1}); or a whole policy as Python\'s '
            "`policy.to_json()` writes it, which learns on the way."
        ),
    ]
    estimator: Estimator = "snips"
    delta: Annotated[float, Meta(gt=0, lt=1, description="With what probability the interval may miss.")] = 0.05
    reward_range: (
        Annotated[list[float], Meta(min_length=2, max_length=2, description="Least and largest possible reward.")]
        | None
    ) = None
    floor: (
        Annotated[float, Meta(gt=0, le=1, description="The lowest probability that an arm can have by design.")] | None
    ) = None
    default_reward: Annotated[float | None, Meta(description="What stands in for a reward that did not come.")] = None
    seed: Annotated[int, Meta(ge=0, description="Of a policy that learns.")] = 0
    reward: Annotated[
        str | None, Meta(description='"metrics.NAME": a metric in the place of the reward, such as one by its key.')
    ] = None


class PropensityCheckResult(Reply, frozen=True):
    """The means of inverse propensities, which are 1 if these are right: an interval for each arm and for all."""

    passed: bool
    uniform: list[float]
    actions: dict[str, list[float]]


class EvaluationResult(Reply, frozen=True):
    """The value of a policy, its mean reward for each decision, with an interval."""

    estimator: str
    value: Annotated[float | None, Meta(description="null where the log says nothing.")]
    lower: float
    upper: float
    delta: float
    estimates: dict[str, float | None]
    effective_sample_size: float
    overlap: Annotated[float, Meta(description="Share of the policy's choices that the log could have made.")]
    largest_weight: float
    rows: int
    left_out: Annotated[dict[str, int], Meta(description="How many decisions, by reason.")]
    logged: Annotated[float, Meta(description="The mean reward of the log.")]
    logged_interval: list[float]
    gain: Annotated[list[float], Meta(description="Interval of the value less that of the log.")]
    reward_range: list[float]
    check: PropensityCheckResult
    cautions: list[str]
    learned: Annotated[int | None, Meta(description="From how many decisions a policy that learns has learned.")]
    text: Annotated[str, Meta(description="The same in sentences.")]
    units: Annotated[int, Meta(description="Number of units, where some visit often.")] | UnsetType = UNSET
