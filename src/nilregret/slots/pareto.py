"""Several objectives, each with a posterior of its own: the rule that looks for the front.

An output is one function that is learned. With k objectives and m constraints, the reward is output 0, the other
objectives are outputs 1 to k - 1, and the constraints are outputs k to k + m - 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, LONGEST_NAME, Array, flag, integer, many, number, one_of, settle, shown
from .._utils.dataclass import field, replace
from ..domains.search.boxes import AcquisitionFunction
from ..errors import InvalidInput
from ..serialize import LATER, description
from .base import Part, Policy
from .constraints import Constraints, EveryRound
from .objective import RewardAlone
from .refit import Learning
from .scores import PointView, TableView

MOST_OBJECTIVES = 10
DIRECTIONS = ("maximize", "minimize")


@final
@description(frozen=True, kw_only=True)
class Pareto(Constraints):
    """Several objectives, of which none counts more: the front of the trials that no other trial beats in all of them.

    Each objective has a posterior of its own, as each constraint has. The score says how points are chosen
    (`HypervolumeImprovement`, or a scalarised bound or draw). A trial tells all objectives at once.

    Attributes:
        objectives: k, the number of objectives, at least 2.
        names: name of each objective, or None.
        goals: goal of each objective, "maximize" or "minimize". A study fills them in (`Study(goal=...)`).
        limits: m, the number of constraints, whose values come with the objectives. Each is satisfied when <= 0.
        reference: the worst value of each objective that counts, in the units told, or None. The volume of a front is
            measured from there. None stands for a point that follows from the answers so far
            (`nilregret.theory.fronts.reference_point`).
        rule: how the constraints count, as of `EveryRound`. "probability" is for scores that are logarithms.
        exact: True if values are told without noise. The front is then of the values told, not of posterior means.
        count: k - 1 + m, the number of outputs besides the first. It follows from the others.

    >>> import nilregret as nr
    >>> policy = nr.auto(nr.Space(x=nr.Float(0, 1)), objectives=("loss", "size"))
    >>> policy.constraints.objectives, policy.constraints.names
    (2, ('loss', 'size'))
    """

    objectives: int = 2
    names: tuple[str, ...] | None = None
    goals: tuple[str, ...] | None = None
    limits: int = 0
    reference: tuple[float, ...] | None = None
    rule: Literal["optimistic", "probability"] = "probability"
    exact: bool = field(default=False, metadata=LATER)

    def __post_init__(self) -> None:
        why = "It is the number of objectives. A single one is a reward, and needs no front."
        count = integer("objectives", self.objectives, low=2, high=MOST_OBJECTIVES, why=why)
        limits = integer("limits", self.limits, low=0, why="It is the number of constraint values of each trial.")
        if self.count not in (1, count - 1 + limits):
            raise InvalidInput(
                f"`count` is {self.count!r}: it follows from `objectives` and `limits`, so leave it out."
            )
        settle(self, objectives=count, limits=limits, count=count - 1 + limits, exact=flag("exact", self.exact))
        settle(self, rule=one_of("rule", self.rule, ["optimistic", "probability"]))
        if self.names is not None:
            settle(self, names=checked_names(self._of_each("names", self.names)))
        if self.goals is not None:
            goals = self._of_each("goals", self.goals)
            settle(self, goals=tuple(one_of("goals", goal, DIRECTIONS) for goal in goals))
        if self.reference is not None:
            given = self._of_each("reference", self.reference)
            low, high = -LARGEST_REWARD, LARGEST_REWARD
            settle(self, reference=tuple(number("reference", value, low=low, high=high) for value in given))
        super().__post_init__()

    def _of_each(self, name: str, values: Any) -> list[Any]:
        """Returns a list with one entry for each objective."""
        listed = [values] if isinstance(values, str) or not hasattr(values, "__iter__") else list(values)
        if len(listed) != self.objectives:
            raise InvalidInput(
                f"`{name}` has {many(len(listed), 'entry')} for {many(self.objectives, 'objective')}: give each one."
            )
        return listed

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if a part of the policy sees one reward, or if no score fits."""
        super().check(policy)
        if not policy.score.of_front:
            raise InvalidInput(
                f"`Pareto` looks for a front, and `{type(policy.score).__name__}` scores one reward.",
                advice="Take `nr.slots.HypervolumeImprovement()`, or have `nr.auto(space, objectives=...)` choose.",
            )
        if policy.objective != RewardAlone():
            raise InvalidInput(
                f"`Pareto` learns numbers of any size, and `{type(policy.objective).__name__}` says more of a reward. "
                "Leave `reward` out. Usually clicks or counts were meant: tell their rates, which are numbers."
            )
        if policy.switching is not None:
            raise InvalidInput("A trial of several objectives is played once: leave `switching` out.")
        if policy.context is not None:
            raise InvalidInput("A front is looked for without contexts: leave `context` out.")
        if self.limits and self.rule == "probability" and not policy.score.logarithm:
            raise InvalidInput(
                f"`rule` 'probability' adds a log probability, and `{type(policy.score).__name__}` is no logarithm: "
                "take `rule` 'optimistic'."
            )

    @property
    def movable(self) -> bool:
        """True if the score contains all that is known about the constraints."""
        return not self.limits or self.rule == "probability"

    def with_goals(self, goals: Sequence[str]) -> Pareto:
        """Returns this rule with the goal of each objective."""
        return replace(self, goals=tuple(goals))

    def turned(self) -> Pareto:
        """Returns the rule for objectives that are all maximised, with minus each number of one that is minimised."""
        signs = self.signs
        mean = self.prior_mean
        means = mean if isinstance(mean, tuple) else (mean,) * self.count
        turned = tuple(0.0 + sign * each for sign, each in zip([*signs[1:], *[1.0] * self.limits], means, strict=True))
        reference = self.reference
        if reference is not None:
            reference = tuple(0.0 + sign * value for sign, value in zip(signs, reference, strict=True))
        goals = ("maximize",) * self.objectives
        kept = mean if turned == means else turned
        return replace(self, goals=goals, reference=reference, prior_mean=kept)

    @property
    def signs(self) -> list[float]:
        """1.0 for each objective that is maximised, and -1.0 for each that is minimised."""
        return [-1.0 if goal == "minimize" else 1.0 for goal in self.goals or ("maximize",) * self.objectives]

    def refit_of(self, refit: Learning, j: int) -> Learning:
        """Returns the fits of output j + 1. Those of an objective are those of the reward."""
        if j < self.objectives - 1:
            return refit
        return refit.of_constraint(warp="signed-log", given=self.noise is not None)

    def beside(self, score: Part) -> Pareto:
        """Returns the optimistic rule if a log probability would not have the units of the score."""
        if self.rule == "probability" and not getattr(score, "logarithm", False):
            return replace(self, rule="optimistic")
        return self

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Returns the scores under the constraints (see `EveryRound`)."""
        return EveryRound(rule=self.rule).judged(scores, view) if self.limits else np.array(scores)

    def added(self, view: TableView | PointView) -> Array:
        """Returns what `judged` adds."""
        return EveryRound(rule=self.rule).added(view) if self.limits else np.zeros(len(view.points))

    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """Returns the acquisition function under the constraints (see `EveryRound`)."""
        return EveryRound(rule=self.rule).on_points(surface, view) if self.limits else surface

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        """Returns the point, or one inside of the constraints (see `EveryRound`)."""
        return EveryRound(rule=self.rule).placed(point, surface, view) if self.limits else point


def checked_names(names: Sequence[Any]) -> tuple[str, ...]:
    """Returns names of objectives, or raises an error for a text that is no name and for a name given twice."""
    for name in names:
        if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
            raise InvalidInput(
                f"An objective has the name {shown(name)}: it must be one line of at most {LONGEST_NAME} characters."
            )
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise InvalidInput(f"Two objectives have the name {twice!r}: give each a name of its own.")
    return tuple(names)
