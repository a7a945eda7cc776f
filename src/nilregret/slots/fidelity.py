"""Fidelity: a setting of each trial, such as a number of rows, that makes it cheaper and less telling.

The policy learns f over (setting, point). It chooses the point by the bounds at the full setting, and then the setting
itself. This is BOCA (Kandasamy, Dasarathy, Schneider & Poczos 2017, "Multi-fidelity Bayesian optimisation with
continuous approximations", ICML, section 3), of which "information" replaces the second step.

| symbol | name | meaning | unit |
|---|---|---|---|
| z, z* | | setting of a trial, and the full one | of the setting |
| lambda(z) | `cost` | cost of a trial, as a share of a full one | |
| tau(z) | `std` | posterior standard deviation at (z, x) | reward |
| kappa_0 | `prior` | prior variance | reward squared |
| phi(z) | `alike` | prior correlation of (z, x) and (z*, x) | |
| xi(z) | | information gap sqrt(1 - phi(z)^2) | |
| beta^(1/2) | `width` | width of the bounds, in standard deviations | |
| p, d | | numbers of settings (1) and of coordinates | |
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Literal, NamedTuple, final

import numpy as np

from .._utils.checks import Array, frozen, integer, number, one_of, settle, shown
from .._utils.randomness import Randomness
from ..domains.domain import Space
from ..domains.parameters import Float, Int
from ..errors import InvalidInput
from ..serialize import description
from .base import Part, Policy
from .explore import MOST_ROUNDS, Explore, InitialDesign, Situation

DECADE = 10.0  # The ratio of high and low from which settings are logarithmic.
LARGEST_POWER, MOST_LEVELS = 10.0, 1000


class Levels(NamedTuple):
    """Posterior and cost at some settings of one point, the full setting last.

    Attributes:
        costs: of trials, as shares of a full one, growing, `(m,)`.
        std: tau, posterior standard deviations, `(m,)`.
        shared: posterior covariances with the full setting, `(m,)`.
        noise: variance of the noise of an answer.
        prior: kappa_0, the prior variance.
        alike: phi, prior correlations with the full setting, `(m,)`.
        width: beta^(1/2), or None if bounds are no multiples of standard deviations.
        coordinates: d, of a point.
    """

    costs: Array
    std: Array
    shared: Array
    noise: float
    prior: float
    alike: Array
    width: float | None
    coordinates: int


@final
@description(frozen=True)
class Fidelity(Part):
    """A setting of each trial that the policy chooses, from the cheapest to the full one.

    The objective gets it beside the parameters, and the trial has it as its context (`trial.context_parameters`).
    `Study.best` compares trials at the full setting. Predictions are for the full setting unless a context is given.

    Attributes:
        name: of the setting, such as "rows".
        low: the cheapest setting, above 0.
        high: the full setting. If both are whole numbers, every setting is one.
        cost: cost of a trial as a power of the setting. "linear" is 1.
        levels: number of settings that are compared. If `high` is ten times `low` or more, they are logarithmic.
        rule: "information" chooses the setting whose answer reduces the variance of f at the full one most, per cost.
            "boca" is the rule of the paper.

    >>> import nilregret as nr
    >>> rows = nr.Fidelity("rows", 1_000, 100_000)
    >>> study = nr.Study(nr.auto(nr.Space(depth=nr.Int(1, 12)), fidelity=rows), goal="minimize")
    >>> study.ask().context_parameters
    {'rows': 1000}
    """

    name: str
    low: float
    high: float
    cost: Literal["linear"] | float = "linear"
    levels: int = 9
    rule: Literal["information", "boca"] = "information"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise InvalidInput(f"`name` is {shown(self.name)}: it must be a name of an argument, such as 'rows'.")
        number("low", self.low, low=0.0, open_low=True)
        number("high", self.high, low=float(self.low), open_low=True, why="It is the full setting.")
        if self.cost != "linear":
            why = "It is a power of the setting, or 'linear'."
            settle(self, cost=number("cost", self.cost, low=0.0, high=LARGEST_POWER, open_low=True, why=why))
        settle(self, levels=integer("levels", self.levels, low=2, high=MOST_LEVELS))
        settle(self, rule=one_of("rule", self.rule, ["information", "boca"]))
        _ = self.space  # This checks the numbers.

    @property
    def _log(self) -> bool:
        return self.high >= DECADE * self.low

    @cached_property
    def space(self) -> Space:
        """The domain of the settings, which is that of the contexts of the policy."""
        whole = all(isinstance(end, int) and not isinstance(end, bool) for end in (self.low, self.high))
        one = Int(int(self.low), int(self.high), log=self._log) if whole else Float(self.low, self.high, log=self._log)
        return Space(**{self.name: one})

    @cached_property
    def grid(self) -> Array:
        """Coordinates of the settings that are compared, the full one last, `(m, 1)`, read-only."""
        at = np.arange(self.levels) / (self.levels - 1)
        ratio, gap = self.high / self.low, self.high - self.low
        values = [self.low * ratio ** float(u) if self._log else self.low + gap * float(u) for u in at[1:-1]]
        values = [self.low, *(round(z) if isinstance(self.space.parameters[self.name], Int) else z for z in values)]
        listed = list(dict.fromkeys([*values, self.high]))
        return frozen(np.concatenate([self.space.inside("context", {self.name: z}) for z in listed]))

    @property
    def full(self) -> Array:
        """Coordinates of the full setting, `(1,)`, read-only."""
        return frozen(self.grid[-1].copy())

    @cached_property
    def costs(self) -> Array:
        """Cost of a trial at each setting of `grid`, as a share of a full one, `(m,)`."""
        return np.array([self.cost_at(row) for row in self.grid])

    def cost_at(self, context: Array) -> float:
        """Returns the cost of a trial, as a share of a full one.

        Args:
            context: coordinates of its setting, `(1,)`.
        """
        value = float(self.space.decode(context)[self.name])
        power = 1.0 if self.cost == "linear" else float(self.cost)
        return float((value / float(self.high)) ** power)

    def choose(self, levels: Levels) -> int:
        """Returns the place of the setting of a trial among those that are compared."""
        return boca(levels) if self.rule == "boca" else most_telling(levels)

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the contexts of the policy are not the settings, or trials are no single plays."""
        super().check(policy)
        if policy.context != self.space:
            raise InvalidInput(
                "With `fidelity` the contexts of a policy are the settings, and it has others.",
                advice="Leave `context` out: `nr.auto(space, fidelity=...)`, or `nr.algorithms.boca`.",
            )
        if isinstance(policy.domain, Space) and self.name in policy.domain.parameters:
            raise InvalidInput(f"{self.name!r} is a parameter of the space and the name of the setting: rename one.")
        what = "`switching`" if policy.switching is not None else None
        what = "constraints" if policy.constraint_count else what
        what = "several objectives" if policy.objective_count > 1 else what
        if what:
            raise InvalidInput(f"`fidelity` is for one objective that is played once, and the policy has {what}.")


def most_telling(levels: Levels) -> int:
    """Returns the setting whose answer reduces the variance of f at the full one most, for its cost.

    An answer at z reduces tau(z*)^2 by cov(z, z*)^2 / (tau(z)^2 + noise). Of equal ones it is the dearest.
    """
    gain = levels.shared**2 / np.maximum(levels.std**2 + levels.noise, np.finfo(float).tiny)
    worth = gain / levels.costs
    return int(np.flatnonzero(worth >= worth.max() * (1.0 - SAME))[-1])


def boca(levels: Levels) -> int:
    """Returns the cheapest setting of the set Z_t(x) of BOCA (Kandasamy et al. 2017, section 3).

    Besides z* it has each z with lambda(z) < lambda(z*), tau(z) > gamma(z) and xi(z) > beta^(-1/2) max xi, where
    gamma(z) = sqrt(kappa_0) xi(z) (lambda(z) / lambda(z*))^q and q = 1 / (p + d + 2).
    """
    gap = np.sqrt(np.maximum(1.0 - levels.alike**2, 0.0))
    q = 1.0 / (1 + levels.coordinates + 2)
    threshold = math.sqrt(levels.prior) * gap * levels.costs**q
    least = 0.0 if not levels.width else float(gap.max()) / levels.width
    able = (levels.std > threshold) & (gap > least) & (levels.costs < 1.0)
    able[-1] = True
    return int(np.flatnonzero(able)[0])


SAME = 1e-9  # Relative difference of two gains that count as equal.


@final
@description(frozen=True)
class Confirm(Explore):
    """Last rounds of a known budget that play the best point tried, if it was not yet played at the full setting.

    Attributes:
        budget: number of trials in all.
        rounds: number of the last of them.
    """

    budget: int
    rounds: int = 3

    def __post_init__(self) -> None:
        settle(self, budget=integer("budget", self.budget, low=1, why="It is how many trials there will be."))
        settle(self, rounds=integer("rounds", self.rounds, low=1, high=MOST_ROUNDS))

    def due(self, uniform: int, history: int, randomness: Randomness) -> bool:  # noqa: ARG002
        """Returns True in the last rounds of the budget."""
        return self.is_last(randomness.number)

    def is_last(self, count: int) -> bool:
        """Returns whether the round after so many is one of the last."""
        return self.budget - self.rounds <= count < self.budget

    @property
    def uniform(self) -> bool:
        """False, since the points are those of earlier trials."""
        return False

    def places(self, situation: Situation) -> Array:
        """Returns the best point that was not played at the full setting, `(1, d)`, or none."""
        tried = situation.answered()
        full = situation.context
        none = np.zeros((0, situation.domain.dimension))
        if tried is None or full is None:
            return none
        at_full = [trial.point for trial in situation.answers() if np.all(trial.context == full)]
        done = {point.tobytes() for point in (*at_full, *situation.open())}
        left = [point for point in tried.points if point.tobytes() not in done]
        return none if not left else np.array(left[:1])


def forced_level(explore: Explore, count: int, levels: int) -> int | None:
    """Returns the place of the setting of the round after so many if it follows from its number, or None.

    The rounds of an initial design have settings in turn, from which fits learn how alike they are. The last rounds are
    played at the full setting.
    """
    parts = getattr(explore, "parts", (explore,))
    if any(isinstance(part, Confirm) and part.is_last(count) for part in parts):
        return levels - 1
    for part in parts:
        if isinstance(part, InitialDesign) and count < part.rounds:
            return round(IN_TURN[count % len(IN_TURN)] * (levels - 1))
    return None


IN_TURN = (0.0, 1 / 3, 0.0, 2 / 3, 0.0, 1.0)  # Settings of an initial design, from the cheapest to the full one.
