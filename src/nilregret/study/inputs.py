"""Checks of what users pass to a study: rewards, constraint values, contexts and points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np

from .._utils.checks import (
    LARGEST_REWARD,
    LONGEST_NAME,
    Array,
    finite_array,
    frozen,
    integer,
    many,
    nearest,
    number,
    only_entry,
    outcome,
    shown,
)
from ..domains.coordinates import named_points, one_row
from ..domains.domain import Arms, Domain, Space, space_of, within
from ..errors import InvalidInput
from ..policy.engines import Decision
from ..policy.policy import Policy
from ..policy.trained_posterior import refuse_std
from ..slots.pruning import LARGEST_STEP
from ..storage.trial import MOST_METRICS, Measured, Other, Trial, is_metric_name
from ..storage.visit import Facts
from .direction import AnyPolicy, Goal, reward_check, setting_of
from .play_rewards import Rewards, Told, is_several, refuse_several_rewards, sum_up
from .pruning import pruning_of

DRAWS = 1000  # Draws that estimate a propensity by default.
NO_REWARD = (
    "If the point does not work, `study.fail(trial, reason)` says so. After an accident that says nothing of the "
    "point, `study.abandon(trial)` gives it up. Both stay in the record."
)


NO_VALUE = (
    "A step without a value is left out. If the trial has broken down, `study.fail(trial, reason)` says so. Its curve "
    "stays on record."
)

STD = "It is the standard deviation of the noise of this reward, in its units; 0 says that the reward is exact."


@final
class PlacesOfTrials:
    """The points of trials, by the points of their parameters.

    Decoded numbers have 12 digits, so parameters copied from a trial encode to a point next to that of the trial.
    Exactly these parameters stand for the point of the earliest trial that has them. What certifies the point certifies
    its parameters, too (`nilregret.domains.distances`).

    Args:
        domain: of the points, or of contexts. Numbers without names are exact.
        of_context: True for the contexts of trials in place of their points.
    """

    def __init__(self, domain: Domain | None, *, of_context: bool = False) -> None:
        space = domain if isinstance(domain, Space) else None
        self._space = None if space is None or not any(each.real for each in space.parameters.values()) else space
        self._of_context, self._found, self._read = of_context, dict[bytes, Array](), 0
        self._last: tuple[float, bytes] | None = None  # Time and point of the last trial that was read.

    def of(self, points: Array, trials: Sequence[Trial]) -> Array:
        """Returns points `(n, d)`, with those of trials in place of the points of their parameters.

        Args:
            points: of the domain.
            trials: all of the study, at their places in the domain. Earlier calls have read the beginning.
        """
        space = self._space
        if space is None:
            return points
        if self._read and (len(trials) < self._read or _mark(trials[self._read - 1]) != self._last):
            self._found, self._read = {}, 0  # A call was rolled back.
        for trial in trials[self._read :]:
            place = trial.context if self._of_context else trial.point
            if place is not None and (not space.changed or within(space, place[None])[0]):
                self._found.setdefault(space.as_decoded(place).tobytes(), place)
        self._read, self._last = len(trials), _mark(trials[-1]) if trials else None
        return np.array([self._found.get(point.tobytes(), point) for point in points]).reshape(points.shape)


def _mark(trial: Trial) -> tuple[float, bytes]:
    return trial.asked_at, trial.point.tobytes()


@final
class Inputs:
    """The checks of one study.

    Args:
        policy: of the study, in the units told.
        goal: of the study.

    Attributes:
        policy: as given.
        named: True if points have named parameters.
        points: points of trials that their parameters name.
        contexts: contexts of trials that their parameters name.
        checked: raises an error for a reward that is not of the policy's kind, or None.
        full: coordinates of the full setting of a policy with `fidelity`, or None.
    """

    def __init__(self, policy: AnyPolicy, goal: Goal) -> None:
        self.policy, self.named = policy, space_of(policy.domain) is not None
        self.points, self.contexts = PlacesOfTrials(policy.domain), PlacesOfTrials(policy.context, of_context=True)
        self._one = policy.objective_count == 1
        fidelity = setting_of(policy)
        self.full: Array | None = None if fidelity is None else fidelity.full
        self.checked = reward_check(policy, goal)

    def answer(
        self, trial: Any, reward: Any = None, constraints: Any = None, std: Any = None, metrics: Any = None
    ) -> Told:
        """Returns a user's answer to a trial, checked."""
        # The path of most rounds, which nan does not take.
        if type(reward) is float and constraints is None and std is None and metrics is None and self._one:
            if not abs(reward) <= LARGEST_REWARD or self.checked is not None:
                self.reward(reward)
            return Told(trial, reward, None)
        g = None if constraints is None else self.constraints(constraints)
        if not self._one:
            return self._of_all(trial, reward, g, std, metrics)
        if reward is None and g is not None:
            given = "std" if std is not None else "metrics" if metrics else None
            if given is not None:
                raise InvalidInput(f"`{given}` belongs to a reward, and no reward is told with it.")
            return Told(trial, None, g)
        noise = None if std is None else self.std(std)
        measured = () if metrics is None else self.metrics(metrics)
        plays = isinstance(self.policy, Policy) and self.policy.switching is not None
        if not is_several(reward if plays else only_entry(reward)):
            return Told(trial, self.reward(reward), g, None, noise, measured)
        if not plays:
            refuse_several_rewards(reward)
        mean, several = sum_up(reward, self.reward)
        return Told(trial, mean, g, several, noise, measured)

    def _of_all(self, trial: Any, reward: Any, g: Array | None, std: Any, metrics: Any) -> Told:
        """Returns the answer of several objectives, checked."""
        if reward is None and g is not None:
            raise InvalidInput("Constraint values come together with the objectives, and no objective is told.")
        names = self.policy.objective_names
        told = zip(names, self._by_objective("reward", reward), strict=True)
        values = [self.reward(each, f"reward.{of}") for of, each in told]
        stds: list[float | None] = [None] * len(values)
        if std is not None:
            given = self._by_objective("std", std, missing=True)
            stds = [
                None if each is None else self.std(each, f"std.{of}") for of, each in zip(names, given, strict=True)
            ]
        measured = () if metrics is None else self.metrics(metrics)
        others = tuple(map(Other, values[1:], stds[1:]))
        return Told(trial, values[0], g, None, stds[0], measured, others)

    def _by_objective(self, argument: str, given: Any, *, missing: bool = False) -> list[Any]:
        """Returns what was given for each objective, by name or in order, unchecked.

        Args:
            argument: name of the argument, for errors.
            given: a dict or a sequence.
            missing: whether a dict may leave objectives out, for which None stands.
        """
        names = self.policy.objective_names
        each = f"{len(names)} objectives ({', '.join(names)})"
        if isinstance(given, Mapping):
            unknown = next((name for name in given if name not in names), None)
            if unknown is not None:
                hint = nearest(unknown, list(names)) if isinstance(unknown, str) else ""
                raise InvalidInput(f"`{argument}` names {shown(unknown)}, and a trial of this study has {each}.{hint}")
            absent = [name for name in names if name not in given]
            if absent and not missing:
                raise InvalidInput(
                    f"`{argument}` has no {absent[0]!r}, and a trial of this study has {each}: tell all at once.",
                    advice=NO_REWARD,
                    topic="unusable",
                )
            return [given.get(name) for name in names]
        if not is_several(given) or isinstance(given, Rewards):
            raise InvalidInput(
                f"`{argument}` is {shown(given)}, and a trial of this study has {each}.",
                advice="Pass a number for each, in this order, or a dict of these names."
                + f" {NO_REWARD}" * (given is None),
                topic="unusable" if given is None else "values",
            )
        listed = list(given)
        if len(listed) != len(names):
            raise InvalidInput(
                f"`{argument}` has {many(len(listed), 'number')}, and a trial of this study has {each}.",
                advice="Pass a number for each, in this order, or a dict of these names.",
                topic="values",
            )
        return listed

    def observation(self, reward: Any, constraints: Any, std: Any, metrics: Any) -> tuple[Told, float]:
        """Returns the answer of a point that was not asked for, checked, and the reward in it."""
        told = self.answer(-1, reward, constraints, std, metrics)
        return told, self.reward(None) if told.reward is None else told.reward

    def reward(self, value: object, name: str = "reward") -> float:
        """Returns a reward (a loss, if the goal is to minimise) as it is recorded.

        Args:
            value: as given.
            name: of the objective, for errors.
        """
        try:
            reward = outcome(name, value, low=-LARGEST_REWARD, high=LARGEST_REWARD)
        except InvalidInput as error:
            raise error.advised(NO_REWARD, topic="unusable") from None
        if self.checked is not None:
            self.checked(reward)
        return reward

    def report(self, step: object, value: object) -> tuple[int, float]:
        """Returns step and value of a report as they are recorded."""
        if not self._one:
            raise InvalidInput(
                f"A report is of one objective, and a trial of this study has {self.policy.objective_count}.",
                advice="Tell the values of all objectives at the end.",
            )
        rule = pruning_of(self.policy)
        at = integer("step", step, low=0, high=LARGEST_STEP, why="Steps are whole numbers that grow: epochs, rounds.")
        if rule.steps is not None and at > rule.steps:
            raise InvalidInput(
                f"`step` is {at}, and a trial has {many(rule.steps, 'step')} (`steps`). Usually `steps` was set too "
                f"low, or the steps are counted in other units. Report {rule.steps} at most, or begin another study "
                "with more: this one keeps its `steps`."
            )
        try:
            found = outcome("value", value, low=-LARGEST_REWARD, high=LARGEST_REWARD)
        except InvalidInput as error:
            raise error.advised(NO_VALUE, topic="unusable") from None
        if self.checked is not None:
            self.checked(found)  # A stopped trial may teach it.
        return at, found

    def std(self, value: object, name: str = "std") -> float:
        """Returns the standard deviation of the noise of a value, in its units, as it is recorded.

        Raises:
            InvalidInput: it is no such number, or the policy cannot weigh rewards by their noise.
        """
        std = number(name, value, low=0.0, high=LARGEST_REWARD, why=STD)
        refuse_std(self.policy, [std])
        return std

    def metrics(self, values: Any) -> Measured:
        """Returns metrics as they are recorded: (name, value) of each, in the order given.

        Raises:
            InvalidInput: they are no dict of names and finite numbers, or too many.
        """
        if not isinstance(values, Mapping) or len(values) > MOST_METRICS:
            raise InvalidInput(
                f"`metrics` is {shown(values)}: it must be a dict of at most {MOST_METRICS} numbers by name."
            )
        for name in values:
            if not is_metric_name(name):
                raise InvalidInput(
                    f"`metrics` has the name {shown(name)}: it must be one line of at most {LONGEST_NAME} characters."
                )
        return tuple(
            (str(name), outcome("metrics", value, low=-LARGEST_REWARD, high=LARGEST_REWARD,
                                        why=f"It is of {shown(name)}: leave out what was not measured."))
            for name, value in values.items()
        )  # fmt: skip

    def constraints(self, values: Any) -> Array:
        """Returns constraint values, `(m,)`, read-only."""
        g = np.atleast_1d(finite_array("constraints", values))
        wanted = self.policy.constraint_count
        if not wanted and not self._one:
            raise InvalidInput("The policy has several objectives and no constraints: leave `constraints` out.")
        if g.ndim != 1 or (wanted and len(g) != wanted):
            count = f"{many(wanted, 'number')}, one for each constraint" if wanted else "a vector of numbers"
            raise InvalidInput(f"`constraints` has shape {g.shape}: it must be {count} of the policy.")
        number("constraints", float(np.abs(g).max(initial=0.0)), high=LARGEST_REWARD)
        return frozen(g.copy())

    def context(self, context: Any, trials: Sequence[Trial] = ()) -> Array | None:
        """Returns a context, `(c,)`, read-only, or None if the policy has no contexts.

        Args:
            context: as given.
            trials: of the study, whose contexts are known by their parameters (see `PlacesOfTrials`), or none.
        """
        domain = self.policy.context
        if domain is None:
            if context is not None:
                meant = f"Did you mean `ask(count={shown(context)})`?" if isinstance(context, int) else ""
                raise InvalidInput(
                    "This policy has no context domain, so it takes no context.", advice=meant, topic="no_context"
                )
            return None
        if context is None and self.full is not None:
            return self.full
        if context is None:
            parts = ", ".join(domain.parameters) if isinstance(domain, Space) else many(domain.dimension, "number")
            raise InvalidInput(
                f"This policy decides for a context ({parts}), what is known before the decision, and none is given.",
                advice="Pass `context=`.",
                topic="context",
            )
        if type(context) is not np.ndarray:  # A simulation passes arrays, and the check takes time.
            one_row("context", context, domain.dimension)
        rows = domain.inside("context", context)
        if len(rows) != 1:
            raise InvalidInput(f"A decision has one context; {len(rows)} were given.")
        return frozen((self.contexts.of(rows, trials) if trials else rows)[0].copy())

    def given(self, context: Any) -> Facts:
        """Returns name and value of each entry of a context, checked, that the study does not know, as it came."""
        space = None if self.policy.context is None else space_of(self.policy.context)
        named = named_points(context) if space is not None and space.unknown else None
        return () if named is None or space is None else space.unknown_in(named[0])

    def point(self, point: Any) -> Decision:
        """Returns a decision for one point of the domain, or for the parameters of one."""
        domain = self.policy.domain
        one_row("point", point, domain.dimension)
        rows = domain.inside("point", point)
        if len(rows) != 1:
            raise InvalidInput(
                f"What was not asked for is recorded one point at a time; {len(rows)} were given.",
                advice="Call `add` for each.",
            )
        arm = int(domain.index(rows)[0]) if isinstance(domain, Arms) else None
        row = rows[0] if domain.limits is None else domain.limits.balanced(rows[0])
        return Decision(frozen(row.copy()), arm, explored=False)

    def at_trial(self, decision: Decision, trials: Sequence[Trial]) -> Decision:
        """Returns the decision at the point of the trial that has exactly its parameters, if there is one."""
        return decision._replace(point=frozen(self.points.of(decision.point[None], trials)[0].copy()))
