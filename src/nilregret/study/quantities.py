"""The numbers that trials tell: objectives, constraint values and metrics, each with a model for pictures.

Objectives and constraints with posteriors have the model of the policy. Any other number gets a model when it is looked
at: a posterior with the policy's kernel, fitted to all trials that told the number. It is not on record, and no
decision depends on it.
"""

from __future__ import annotations

import math
import re
from functools import cached_property, partial
from typing import Any, cast, final
from weakref import WeakKeyDictionary

import numpy as np

from .._utils.checks import Array, nearest, shown
from .._utils.dataclass import dataclass
from ..domains.domain import sides
from ..errors import InvalidInput
from ..kernels import Kernel, kernel_for
from ..policy.engines import row_of
from ..policy.policy import Policy
from ..policy.state import State
from ..slots.envelope import ConstantWidth
from ..slots.refit import Refit
from ..slots.scores import UpperConfidenceBound
from ..storage.trial import Trial, metric_names
from .definition import constraint_names
from .direction import AnyPolicy, Goal, has_channels, state_after
from .explanation import PosteriorBand, band_of
from .function import Function

MOST = 500  # Trials that a model of a metric learns from, the latest.
KEPT = 4  # Models of metrics that are kept of each study, the latest.
WIDTH = 2.0  # Standard deviations of its bounds.
START = 0.1  # Standard deviation of the noise before the fit, of standardised numbers.
LENGTHSCALE = 0.5  # Before the fit, in sides of the domain, if the policy's kernel cannot be fitted.
BOUND = re.compile(r"(.+?)\s*(<=|>=)\s*([-+.\deE_]+)")


# The models of numbers by their keys, each with the trials and the policy that it follows from.
_states: WeakKeyDictionary[Any, dict[str, tuple[tuple[int, int], int, State]]] = WeakKeyDictionary()


@final
@dataclass(frozen=True, eq=False)
class Quantity:
    """A number that trials tell.

    Attributes:
        study: of the trials, a `Study`.
        name: shown to people.
        channel: number of the output: objectives first, of which a reward is the only one, then constraints. None for a
            metric.
    """

    study: Any
    name: str
    channel: int | None = 0

    def told(self, trial: Trial) -> float | None:
        """Returns the number that a trial told, or None."""
        if self.channel is None:
            return next((value for name, value in trial.measured if name == self.name), None)
        if trial.values is None:
            return None
        outputs = (*trial.values, *(() if trial.constraints is None else trial.constraints.tolist()))
        return outputs[self.channel] if self.channel < len(outputs) else None

    @cached_property
    def trials(self) -> list[Trial]:
        """The trials that told the number."""
        return [trial for trial in self.study.trials if self.told(trial) is not None]

    @cached_property
    def values(self) -> Array:
        """The numbers of `trials`, `(n,)`."""
        return np.array([self.told(trial) for trial in self.trials], dtype=np.float64)

    @property
    def upward(self) -> bool:
        """False if lower numbers are better. More of a metric is neither better nor worse."""
        return not self.limited and self.goal == "maximize"

    @property
    def goal(self) -> Goal:
        """The goal of an objective, and "maximize" for any other number."""
        goals = self.study.goals
        return cast(Goal, goals[self.channel]) if self.objective else "maximize"

    @property
    def objective(self) -> bool:
        """True for an objective, such as the reward."""
        return self.channel is not None and self.channel < len(self.study.goals)

    @property
    def key(self) -> str:
        """The number of the channel, or "metrics." and the name, for addresses and forms."""
        return f"metrics.{self.name}" if self.channel is None else str(self.channel)

    @property
    def limited(self) -> bool:
        """True for a constraint, which is satisfied by values of at most 0."""
        return self.channel is not None and not self.objective

    @property
    def modelled(self) -> bool:
        """True if the policy has a posterior of the number."""
        return self.channel == 0 or (self.channel is not None and has_channels(self.study.policy))

    @cached_property
    def function(self) -> Function:
        """The model of the number.

        Raises:
            InvalidInput: the policy has no posterior of the reward, or too few trials told the number.
        """
        study, channel = self.study, self.channel or 0
        if self.modelled:
            make = partial(Function, goal=self.goal, seed=study.seed, channel=channel)
            return cast(Function, study.replica.query(make))
        return Function(self._fitted, "maximize", study.seed)

    def band(self, points: Array, context: Any = None) -> PosteriorBand:
        """Returns the posterior mean of the number at points `(n, d)`, with a band to draw."""
        if self.modelled:
            return cast(PosteriorBand, self.study.band(points, context=context, channel=self.channel or 0))
        seen = self.study.inputs.context(context)
        return band_of(self._fitted.envelope(points, seen), constraint=False)

    @property
    def _fitted(self) -> State:
        """The state of the model that is fitted to the trials."""
        policy, trials = self.study.policy, self.trials
        seen = len(trials), max((trial.told_order or 0 for trial in trials), default=0)
        known = _states.setdefault(self.study, {})
        found = known.get(self.key)
        if found is None or found[:2] != (seen, id(policy)):
            if len(known) >= KEPT:
                known.pop(next(iter(known)), None)
            found = seen, id(policy), fitted(policy, trials[-MOST:], self.told, self.study.seed)
            known[self.key] = found
        return found[2]


def fitted(policy: AnyPolicy, trials: list[Trial], told: Any, seed: int) -> State:
    """Returns the state of a posterior with a policy's kernel, fitted to a number that trials told.

    Args:
        policy: with the domain, the contexts and the kernel.
        trials: that told the number.
        told: returns the number of a trial.
        seed: of the fit.

    Raises:
        InvalidInput: fewer than two trials told the number.
    """
    if len(trials) < 2:
        raise InvalidInput("A model needs two answers at least.", advice="`nr.plots.history` draws the trials alone.")
    domain, context, kernel = policy.domain, policy.context, _kernel(policy)
    rows, values = np.array([row_of(trial) for trial in trials]), np.array([told(trial) for trial in trials])
    own = policy.fitting if isinstance(policy, Policy) else None
    prior = own.prior if own is not None and own.prior != "none" else "hvarfner"
    refit = Refit(noise="unknown", prior=prior)
    found = refit(kernel, rows, values, sides(domain, context), noise=START, seed=seed)
    variance = found.regularization * found.scale.std**2
    model = Policy(
        algorithm="model", domain=domain, context=context, kernel=found.scale.std**2 * found.kernel,
        noise=math.sqrt(variance), regularization=variance, prior_mean=found.scale.mean,
        confidence=ConstantWidth(value=WIDTH), score=UpperConfidenceBound(),
    )  # fmt: skip
    alone = [
        Trial(
            i, trial.point, trial.arm, trial.settings, i + 1, trial.asked_at, trial.context, state="observed",
            reward=float(value), told_order=i + 1, told_at=trial.told_at, context_settings=trial.context_settings,
        )
        for i, (trial, value) in enumerate(zip(trials, values, strict=True))
    ]  # fmt: skip
    return cast(State, state_after(model, "maximize", alone, seed=seed)).settled()


def _kernel(policy: AnyPolicy) -> Kernel:
    """Returns the kernel from which a fit starts: the policy's own, or a default if it cannot be fitted."""
    try:
        if isinstance(policy, Policy):
            policy.kernel.rescaled(1.0 / sides(policy.domain, policy.context))
            return policy.kernel
    except InvalidInput:
        pass
    return kernel_for(policy.domain, context=policy.context, lengthscale=LENGTHSCALE)


def quantities(study: Any) -> list[Quantity]:
    """Returns the numbers that the trials of a study tell: objectives, then constraint values, then metrics."""
    trials = study.trials
    known = trials[: len(trials)]
    widths = [len(trial.constraints) for trial in known if trial.constraints is not None]
    found = objectives(study)
    names = constraint_names(study.about, max([study.policy.constraint_count, *widths]))
    found += [Quantity(study, name, j) for j, name in enumerate(names, start=len(found))]
    return found + [Quantity(study, name, None) for name in metric_names(known)]


def objectives(study: Any) -> list[Quantity]:
    """Returns the objectives of a study. A single one is called "reward" or "loss"."""
    names = study.policy.objective_names
    if len(names) == 1:
        names = ("reward" if study.goals[0] == "maximize" else "loss",)
    return [Quantity(study, name, j) for j, name in enumerate(names)]


def drawn(study: Any, of: str | int | Quantity | None) -> list[Quantity]:
    """Returns the numbers that a picture draws: the one that a caller names, or all objectives."""
    return objectives(study) if of is None else [quantity(study, of)]


def quantity(study: Any, of: str | int | Quantity | None, *, word: str = "of") -> Quantity:
    """Returns the number that a caller names.

    Args:
        study: of the trials.
        of: name of an objective, text of a constraint, or name of a metric. Objectives and then constraints also have
            numbers, from 0. None for the first objective. The names of a single objective are "reward" and "loss".
        word: name of the argument, for errors.

    Raises:
        InvalidInput: the trials tell no such number.
    """
    if isinstance(of, Quantity):
        return of
    first = objectives(study)
    if of is None or (len(first) == 1 and isinstance(of, str) and of in ("reward", "loss")):
        return first[0]
    known = quantities(study)
    whole = not isinstance(of, bool) and isinstance(of, int | np.integer)
    for each in known:
        if (whole and each.channel == of) or each.name == of or (each.limited and _same_bound(each.name, of)):
            return each
    listed = ", ".join(repr(each.name) + f" ({each.channel})" * bool(each.channel) for each in known)
    raise InvalidInput(
        f"`{word}` is {shown(of)}, and no trial of this study told such a number. There are {listed}."
        + (nearest(of, [each.name for each in known]) if isinstance(of, str) else "")
    )


def _same_bound(name: str, of: object) -> bool:
    """Returns whether two texts limit one entry by one number, such as "ms <= 50" and "ms <= 50.0"."""
    read = [BOUND.fullmatch(text.strip()) for text in (name, str(of))]
    try:
        return len({(each[1], each[2], float(each[3])) for each in read if each}) == 1 and all(read)
    except ValueError:
        return False
