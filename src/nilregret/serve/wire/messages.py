"""Bodies of requests and replies, each a structure. An entry with an unknown name is refused.

JSON has no NaN and no infinity, so no value here is one. Times are Unix seconds. If the study minimises, rewards are
losses.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from msgspec import UNSET, Meta, Struct, UnsetType, field

from ...storage.trial import Verdict

# Names of studies in URLs, written so that browsers and proxies leave any name as it is.
#
# In a path `.` and `..` are steps, `/` ends a part, some programs read `\` as a slash, and unprintable characters are
# refused. A name with any of these is written as `~~` and the hexadecimal digits of its UTF-8. A name that begins
# with `~~` is written in the same way. For example, `..` is `~~2e2e`.

INSTEAD: Final = "~~"
NAME_PATTERN: Final = r"^([^/\\\x00-\x1f\x7f-\x9f]{1,200}|~~([0-9a-f]{2}){1,800})$"
NEW_PATTERN: Final = r"^[^\x00-\x1f\x7f-\x9f]+$"  # of a new name, for programs, as the others
WRITTEN = re.compile(re.escape(INSTEAD) + "((?:[0-9a-f]{2})+)")


def segment(name: str) -> str:
    """Returns a name as one part of a path."""
    if name in (".", "..") or not name.isprintable() or "/" in name or "\\" in name or name.startswith(INSTEAD):
        return INSTEAD + name.encode("utf-8").hex()
    return quote(name, safe="")


def name_in(segment: str) -> str:
    """Returns the name that a percent-decoded part of a path stands for."""
    written = WRITTEN.fullmatch(segment)
    if written is None:
        return segment
    try:
        return bytes.fromhex(written[1]).decode("utf-8")
    except UnicodeDecodeError:  # not the writing of a name, so no study has this one
        return segment


Reward = Annotated[float, Meta(description="What came of it; true and false count as 1 and 0.")] | bool


class Sums(Struct, forbid_unknown_fields=True, frozen=True):
    """Rewards of several plays of one decision, summed up."""

    count: Annotated[int, Meta(ge=1, description="How many plays.")]
    sum: Annotated[float, Meta(description="Of their rewards, less `about` each.")]
    squares: Annotated[float, Meta(ge=0, description="The sum of the squares of the same.")]
    about: float = 0.0


NUMBERS = {"additionalProperties": {"anyOf": [{"type": "number"}, {"type": "boolean"}]}}
Rewards = (
    Reward
    | Annotated[
        list[float | bool],
        Meta(
            min_length=1,
            description="The value of each objective, in order. Or where `repeats` is above 1: one for each play, of "
            "all of them or fewer.",
        ),
    ]
    | Annotated[dict[str, Any], Meta(description="The value of each objective by name.", extra_json_schema=NUMBERS)]
)  # A dict may be `Sums`, too. `Sums` is no part of the type, since msgspec takes one kind of object only.
Metrics = Annotated[
    dict[Annotated[str, Meta(min_length=1, max_length=200)], float | bool],
    Meta(max_length=100, description="Further numbers to keep with the reward, by name."),
]
Values = Annotated[list[float] | None, Meta(description="Of each objective, where there are several.")] | UnsetType
Plays = Annotated[int | None, Meta(description="Of how many plays `reward` is the mean.")]
Context = Annotated[
    list[float] | dict[str, Any] | None, Meta(description="What is known before: numbers, or parameters by name.")
]
POINT = {"type": "array", "items": {"type": "number"}}
# Which of these an entry may be depends on the study. Generators of clients leave out what has no `items`.
CHOICE: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "boolean"}, POINT, {"type": "object"}]}
Choices = Annotated[list[Any], Meta(extra_json_schema={"items": CHOICE})]
Deadline = Annotated[float, Meta(gt=0, le=1e9, description="Seconds for which a reward is waited for.")]
Goal = Literal["maximize", "minimize"]
OnDeadline = Literal["abandon", "fail", "reward", "censor", "silence"]
Rewarding = Literal["sum", "first", "last"]
EventKind = Literal[
    "asked", "told", "limited", "abandoned", "corrected", "reported", "stopped", "arms_added", "arms_retired",
    "arms_restored", "arms_described", "enqueued", "taken", "widened",
]  # fmt: skip
Curve = Annotated[list[list[float]], Meta(description="Step and value of each report, in order.")]
Steps = Annotated[int, Meta(ge=2, le=10_000)]
Key = Annotated[str, Meta(min_length=1, max_length=200)]
EventId = Annotated[str, Meta(min_length=1, max_length=200, description="Your own id of the decision.")]
Reason = Annotated[str, Meta(min_length=1, max_length=2000, description="In words.")]
Revise = Annotated[bool, Meta(description="Whether another answer than the one there is corrects it.")]
RepeatedPlays = Annotated[int, Meta(ge=1, le=1000)]


class Request(Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """The body of a request."""


class Reply(Struct, frozen=True):
    """The body of a reply."""


# -- studies -------------------------------------------------------------------------------------------------------


class StudyRequest(Request, frozen=True):
    """A study: the points to choose from (`space` or `arms`) and how to decide (`policy`)."""

    policy: Annotated[
        dict[str, Any] | str | None,
        Meta(
            description='How to decide, in the words of `[policy]` in a file: {"algorithm": "gp_ucb", "kernel": '
            '{"type": "matern"}, "noise": 0.1}. Left out: {"algorithm": "auto"}, which takes `noise`, `budget`, '
            "`parallel`, `world`, `answers`, `reward`, `explore`, `pruning` and `constraints`. Or a whole policy as "
            "Python's `policy.to_json()` writes it, which says all of it and has a `type`; then nothing of the next "
            "seven."
        ),
    ] = None
    space: Annotated[
        dict[str, dict[str, Any]] | None,
        Meta(description='Parameters by name, such as {"price": {"type": "float", "low": 1, "high": 9}}.'),
    ] = None
    where: Annotated[list[str] | None, Meta(description='Limits that decisions keep, such as "a + b <= 1".')] = None
    grid: Annotated[
        Steps | dict[str, Steps] | None, Meta(description="Steps of each parameter: a grid instead of a continuum.")
    ] = None
    arms: Annotated[list[list[float]] | None, Meta(description="Points to choose from, instead of `space`.")] = None
    context: Annotated[dict[str, dict[str, Any]] | None, Meta(description="Likewise, what is known before.")] = None
    constraints: Annotated[
        int, Meta(ge=0, le=100, description="How many values are told with each reward, satisfied when <= 0. "
                  'A budget is 1 of them, and `policy` has {"constraints": "on_average"}.')] = 0  # fmt: skip
    objectives: (
        Annotated[dict[str, Goal], Meta(min_length=2, description="Several objectives: their goals by name.")]
        | Annotated[list[str], Meta(min_length=2, description="Names of several objectives, which share `goal`.")]
        | None
    ) = None
    goal: (
        Goal | Annotated[list[Goal], Meta(min_length=1, description="Of each objective, where there are several.")]
    ) = "maximize"
    seed: Annotated[int, Meta(ge=0, description="Of all random choices.")] = 0
    about: Annotated[dict[str, Any] | None, Meta(description="Facts to keep with it.")] = None
    deadline: Deadline | None = None
    on_deadline: Annotated[OnDeadline, Meta(description="What the absence of a reward means.")] = "abandon"
    default_reward: Annotated[
        float | list[float] | None,
        Meta(description="What stands in for a reward that does not come; with several objectives a value for each."),
    ] = None
    late: Annotated[Literal["drop", "count"], Meta(description="Of a reward after the deadline.")] = "drop"
    propensities: Annotated[
        bool, Meta(description="Whether each decision is recorded with its probability, for `evaluations`.")
    ] = False
    reward: Annotated[
        Rewarding | None,
        Meta(description="Several rewards of a decision, each with a `key`: what is told of them at the `deadline`."),
    ] = None
    sticky: Annotated[
        bool | float, Meta(description="Whether a `unit` keeps its arm: true, or for so many seconds.")
    ] = False


class Objective(Reply, frozen=True):
    """One of several objectives."""

    name: str
    goal: Goal


class StudySaid(Reply, frozen=True):
    """A study."""

    name: str
    algorithm: str
    goal: str | list[str]
    seed: int
    about: dict[str, Any]
    deadline: float | None
    on_deadline: OnDeadline
    default_reward: float | list[float] | None
    late: str
    propensities: bool
    created_at: float
    reward: Rewarding | UnsetType = UNSET
    sticky: bool | float | UnsetType = UNSET
    objectives: Annotated[list[Objective], Meta(description="Where there are several, in order.")] | UnsetType = UNSET


class StudyInFull(StudySaid, frozen=True, kw_only=True):
    """A study with its trials and what the policy has learned."""

    policy: dict[str, Any]
    trials: dict[str, int]
    width: float | None
    information_gain: float | None
    restarts: list[int]
    multipliers: list[float]
    cautions: list[str]


class Studies(Reply, frozen=True):
    """The studies of the caller."""

    studies: list[StudySaid]


# -- decisions -----------------------------------------------------------------------------------------------------


class DecisionRequest(Request, frozen=True):
    """A request for decisions."""

    context: Context = None
    count: Annotated[
        RepeatedPlays | None,
        Meta(
            description="How many decisions; one unless given. What takes too long for one answer is recorded in "
            "part: with an `Idempotency-Key`, send it again to go on."
        ),
    ] = None
    deadline: Deadline | None = None
    client: Annotated[
        Key | None, Meta(description="A worker's name: what it was asked and has not answered is given to it again.")
    ] = None
    among: Annotated[Choices | None, Meta(description="What may be done this time: arms, points or parameters.")] = None
    exclude: Annotated[Choices | None, Meta(description="Arms that may not.")] = None
    propensity: Annotated[bool, Meta(description="Whether to say how probable it was; of at most 10 decisions.")] = (
        False
    )
    event: EventId | None = None
    unit: Annotated[Key | None, Meta(description="Who visits. The text itself is not recorded.")] = None
    slate: Annotated[
        bool, Meta(description="Whether the `count` decisions are the places of one slate, each at another arm.")
    ] = False
    facts: Annotated[
        dict[str, Any] | None,
        Meta(description="Your own facts, such as an order: at most 20 texts or numbers by name."),
    ] = None


class Decision(Reply, frozen=True):
    """A decision: the point to play."""

    id: str
    number: int
    parameters: dict[str, Any] | None
    point: list[float]
    arm: int | None
    context: list[float] | dict[str, Any] | None
    explored: bool
    repeats: Annotated[int, Meta(description="How often to play it; above 1 only where the policy has `switching`.")]
    propensity: float | None
    asked_at: float
    expires_at: float | None
    enqueued: Annotated[bool, Meta(description="Whether a request to `enqueue` named it, all of it or a part.")] = False
    event: EventId | UnsetType = UNSET
    unit: Annotated[int, Meta(description="Number of the first decision of its unit.")] | UnsetType = UNSET
    kept: Annotated[int, Meta(description="Number of the decision whose arm it keeps.")] | UnsetType = UNSET
    facts: dict[str, Any] | UnsetType = UNSET
    slate: Annotated[str, Meta(description="Id of the first place of its slate.")] | UnsetType = UNSET
    place: Annotated[int, Meta(description="In the slate, from 0.")] | UnsetType = UNSET


class Decisions(Reply, frozen=True):
    """Decisions, in the order in which they were made."""

    decisions: list[Decision]
    cautions: Annotated[list[str], Meta(description="Such as that `count` plays each arm.")] | UnsetType = UNSET


Std = Annotated[float | None, Meta(description="Standard deviation of the noise of the reward; null where unknown.")]
NOISE = "Standard deviation of the noise of the reward; null where unknown. Of objectives in order, or by name."
GivenStd = Annotated[float | list[float | None] | dict[str, float | None] | None, Meta(description=NOISE)]
Stds = (
    Annotated[list[float | None] | None, Meta(description="`std` of each objective, where there are several.")]
    | UnsetType
)


class Several(Reply, frozen=True, kw_only=True):
    """The values of several objectives. `reward` and `std` are those of the first."""

    values: Values = UNSET
    stds: Stds = UNSET


class Earlier(Several, frozen=True):
    """An answer that a later one has replaced."""

    reward: float | None
    plays: Plays
    constraints: list[float] | None
    reason: str | None
    told_at: float
    std: Std
    metrics: dict[str, float]


class KeyedReward(Reply, frozen=True):
    """One of several rewards of a decision."""

    key: str
    reward: float
    at: Annotated[float, Meta(description="When it came, or was seen, Unix seconds.")]
    late: Annotated[bool, Meta(description="Whether it came after the wait.")]
    counted: bool


KeyedRewards = Annotated[list[KeyedReward], Meta(description="What came so far, in a study with `reward`.")] | UnsetType


LateReward = Annotated[float | None, Meta(description="Came after the rule was applied; `reward` is what stands.")]


class DecisionInFull(Decision, frozen=True, kw_only=True):
    """A decision with its reward or failure."""

    state: str
    reward: float | None
    plays: Plays
    constraints: list[float] | None
    reason: str | None
    told_at: float | None
    late: bool
    counted: bool
    defaulted: bool
    late_reward: LateReward
    observed_at: float | None
    std: Std
    metrics: dict[str, float]
    corrected: Annotated[list[Earlier], Meta(description="What was told before, oldest first.")]
    values: Values = UNSET
    stds: Stds = UNSET
    late_values: Values = UNSET
    rewards: KeyedRewards = UNSET
    curve: Curve | UnsetType = field(default=UNSET, name="steps")

    @property
    def steps(self) -> list[tuple[int, float]]:
        """Step and value of each report, in order."""
        return [(int(step), value) for step, value in self.curve or ()]


# -- rewards -------------------------------------------------------------------------------------------------------


class RewardRequest(Request, frozen=True):
    """The reward of a decision."""

    reward: Rewards | None = None
    constraints: list[float] | None = None
    std: GivenStd = None
    metrics: Metrics | None = None
    observed_at: Annotated[float | None, Meta(description="When it was seen; kept with it.")] = None
    revise: Revise = False
    key: Annotated[
        Key | None, Meta(description="Name of one of several rewards of a decision, in a study with `reward`.")
    ] = None


class FailureRequest(Request, frozen=True):
    """The failure of a decision: no reward will come."""

    reason: Reason
    revise: Revise = False


class AbandonmentRequest(Request, frozen=True):
    """The end of work on a decision, without a reward or a failure."""

    reason: Reason = "its worker is gone"


class StepRequest(Request, frozen=True):
    """The value of a decision after a step of its evaluation."""

    value: Annotated[float, Meta(description="In the units of the reward.")]


class StepSaid(Reply, frozen=True):
    """The verdict on a decision after a step of its evaluation."""

    go_on: Annotated[bool, Meta(description="Whether going on is worth it.")]
    verdict: Annotated[Verdict, Meta(description="`wait`: pause it, and send it again. `spared`: it tests the rule.")]


class StopRequest(Request, frozen=True):
    """The end of an evaluation before its last step."""

    reason: Annotated[Reason | None, Meta(description="Left out: that of the study's rule.")] = None


class Answer(Several, frozen=True):
    """The decision as it is now. A late answer that does not count is `late_reward`, and `reward` is what stands."""

    id: str
    number: int
    state: str
    reward: float | None
    plays: Plays
    constraints: list[float] | None
    reason: str | None
    late: bool
    counted: bool
    late_reward: LateReward
    told_at: float | None
    sentence: str | None
    std: Std
    metrics: dict[str, float]
    late_values: Values = UNSET
    rewards: KeyedRewards = UNSET


class SlateRequest(Request, frozen=True):
    """Answers of a slate: exactly one of `rewards` and `clicked`."""

    rewards: Annotated[
        list[float | None] | None, Meta(description="Of each place, in order; null where nothing is known yet.")
    ] = None
    clicked: Annotated[
        list[int] | None, Meta(description="The places whose reward is 1, from 0. All others have the reward 0.")
    ] = None
    revise: Revise = False


class SlateSaid(Reply, frozen=True):
    """The answers of a slate that were told, in the order of the places."""

    answers: list[Answer]


class RewardItem(RewardRequest, frozen=True, kw_only=True):
    """The reward of one of several decisions. Exactly one of `id` and `event` is given."""

    id: str | None = None
    event: EventId | None = None


class RewardsRequest(Request, frozen=True):
    """The rewards of several decisions. Each is recorded by itself."""

    items: Annotated[list[RewardItem], Meta(min_length=1, max_length=1000)]


class Fault(Reply, frozen=True, omit_defaults=True):
    """The reason of a refusal."""

    kind: str
    sentence: str
    field: str | None = None


class Problem(Reply, frozen=True):
    """A refusal."""

    error: Fault


class RewardResult(Reply, frozen=True):
    """The result for one of several rewards: an HTTP status, and the answer or the error."""

    id: Annotated[str | None, Meta(description="As it was given.")]
    status: int
    answer: Answer | None
    error: Fault | None
    event: EventId | UnsetType = UNSET


class RewardResults(Reply, frozen=True):
    """The results, in the order of the items."""

    items: list[RewardResult]


# -- observations --------------------------------------------------------------------------------------------------


class ObservationRequest(Request, frozen=True):
    """An observation that no decision asked for. Exactly one of `parameters`, `point` and `arm` is given."""

    reward: Rewards
    parameters: dict[str, Any] | None = None
    point: list[float] | None = None
    arm: Annotated[int, Meta(ge=0)] | None = None
    context: Context = None
    constraints: list[float] | None = None
    std: GivenStd = None
    metrics: Metrics | None = None
    compare: Annotated[bool, Meta(description="Apprentice: say what the policy would have done.")] = False


class Would(Reply, frozen=True):
    """The decision that the policy would have made instead."""

    parameters: dict[str, Any] | None
    point: list[float]
    arm: int | None
    same: bool
    explored: Annotated[bool, Meta(description="Whether that would have been a forced uniform round: mere chance.")]


class Observation(Several, frozen=True):
    """The observation on record."""

    number: int
    reward: float
    would: Would | None


class ObservationsTaken(Reply, frozen=True):
    """Counts of the lines that have been taken, by all requests with the same `Idempotency-Key`."""

    rows: Annotated[int, Meta(description="Lines taken so far, all in order from the first.")]
    recorded: Annotated[int, Meta(description="Of these, on record: those with a reward.")]
    without_propensity: Annotated[int, Meta(description="Of these, decisions that `evaluate` leaves out.")]
    new: Annotated[int, Meta(description="Lines that this request took. The others came before.")]
    unread: Annotated[list[str], Meta(description="Entries of these that mean nothing to the study.")]


class Apprentice(Reply, frozen=True):
    """A comparison of the policy's decisions with the observed ones."""

    compared: int
    same: int
    share: float | None
    mean_reward: float | None
    mean_reward_where_same: float | None
    mean_reward_elsewhere: float | None
    explored: Annotated[int, Meta(description="Of those compared, forced uniform rounds: mere chance.")]


# -- looking -------------------------------------------------------------------------------------------------------


class Prediction(Reply, frozen=True):
    """Posterior mean and standard deviation at each point."""

    mean: list[float | None]
    std: list[float | None]


class ConfidenceBounds(Reply, frozen=True):
    """The policy's bounds at each point."""

    lower: list[float | None]
    upper: list[float | None]


class Front(Reply, frozen=True):
    """The decisions that no other beats in the posterior means: the best of each objective first, then by the first.

    The lists beside them have a row for each decision, and in it a value for each objective.
    """

    objectives: list[Objective]
    decisions: list[DecisionInFull]
    mean: list[list[float | None]]
    std: list[list[float | None]]
    lower: list[list[float | None]]
    upper: list[list[float | None]]
    hypervolume: Annotated[float | None, Meta(description="Of the means, beyond the reference.")]
    reference: Annotated[
        list[float | None], Meta(description="A value of each objective, which is worse than the front.")
    ]
    left_out: Annotated[list[int], Meta(description="Numbers of those that no other beats as told, left out as noise.")]


class Mix(Reply, frozen=True):
    """The decisions whose points earn most together while each budget holds on average: the largest share first."""

    decisions: list[DecisionInFull]
    shares: Annotated[list[float], Meta(description="Of the rounds, for each decision's point; in sum 1.")]
    reward: Annotated[float, Meta(description="Mean reward of a round, by posterior means.")]
    use: Annotated[list[float], Meta(description="Mean value of each constraint in a round: at most 0.")]


class Feasibility(Reply, frozen=True):
    """The probability that each point satisfies all constraints."""

    feasible: Annotated[list[float], Meta(description="At each point: a probability, or 1 and 0 where it is proved.")]
    infeasible: Annotated[
        float | None, Meta(description="That no point can satisfy them all: how sure it is; null where one may.")
    ]


class Event(Several, frozen=True):
    """An event of a trial, or a change of the study."""

    order: int
    kind: EventKind
    number: Annotated[int | None, Meta(description="Of the decision; null for a change of the study.")]
    at: float | None
    reward: float | None
    reason: str | None
    propensity: Annotated[float | None, Meta(description="Of a decision, in a study with `propensities`.")]
    arms: Annotated[list[int] | None, Meta(description="That a change of arms is of.")] = None
    std: Std = None
    change: Annotated[dict[str, Any] | None, Meta(description="That a change other than of arms says.")] = None
    step: Annotated[int, Meta(description="Of a report, with its value and the verdict.")] | UnsetType = UNSET
    value: float | UnsetType = UNSET
    verdict: Verdict | UnsetType = UNSET


class Events(Reply, frozen=True):
    """The events after a cursor, in order, and the next cursor."""

    events: list[Event]
    next: int
    more: bool


class Health(Reply, frozen=True):
    """The health of the service."""

    ok: bool
