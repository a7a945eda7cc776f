"""Bandit online convex optimisation with long-term constraints: gradients from two values, a saddle point in between.

| symbol | name | meaning | shape |
|---|---|---|---|
| x_t | `x` | the action, in (1 - xi) X | (d,) |
| eta | `step` | step of x and lambda, units of length and g over units of reward | |
| delta | `spread` | distance of the two probes from the action; xi = delta / inradius | |
| theta | `damping` | pull of the multipliers towards 0 | |
| lambda | `multipliers` | of the constraints | (m,) |
| u | | uniform on the unit sphere | (d,) |

The method follows Cao & Liu 2018, whose text is not at hand. It is a saddle-point method. After each action it sees the
values at random points close to the action. The damping is that of Mahdavi, Jin & Yang 2012. If the functions are not
convex nothing is proved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, integer, number, settle
from ...domains.domain import Box
from ...domains.search.designs import uniform
from ...errors import InvalidInput
from ...policy.scripted import Answers, Play, Script, ScriptedPolicy
from ...serialize import description
from ...slots.objective import MOST_CONSTRAINTS
from ...storage.record import Trial

SPREAD = 0.05  # Share of the box's shortest side.


@final
@description(frozen=True, kw_only=True)
class BanditOco(ScriptedPolicy):
    """The policy that `bandit_oco` returns."""

    domain: Box
    constraints: int
    step: float
    spread: float
    damping: float
    start: tuple[float, ...] | None = None
    algorithm: str = "bandit_oco"

    def __post_init__(self) -> None:
        check_box(self.domain)
        why = "It is the number of constraint values of each trial."
        settle(self, constraints=integer("constraints", self.constraints, low=1, high=MOST_CONSTRAINTS, why=why))
        settle(self, step=number("step", self.step, low=0.0, high=LARGEST_REWARD, open_low=True))
        half = float((self.domain.upper - self.domain.lower).min()) / 2.0
        why = "The probes must stay inside the box: it is less than half its shortest side."
        spread = number("spread", self.spread, low=0.0, high=half, open_low=True, open_high=True, why=why)
        object.__setattr__(self, "spread", spread)
        object.__setattr__(self, "damping", number("damping", self.damping, low=0.0, high=LARGEST_REWARD))
        if self.start is not None:
            point = self.domain.inside("start", np.atleast_2d(finite_array("start", self.start)))
            object.__setattr__(self, "start", tuple(point[0].tolist()))

    def begin(self) -> Script:
        """Returns a new run."""
        return _Descent(self)


def bandit_oco(
    domain: Box,
    *,
    step: float,
    spread: float | None = None,
    damping: float | None = None,
    constraints: int = 1,
    start: Sequence[float] | None = None,
) -> BanditOco:
    """Returns bandit convex optimisation after Cao & Liu 2018, for comparison, but its probes are trials as any other.

    This is a local online method with long-term constraints. Each step asks for three trials: the action x, and the
    probes x + spread u and x - spread u in a random direction u. Their differences give gradients. x climbs the
    Lagrangian, and the multipliers follow the violation at x. In the theory the probes cost nothing, and only actions
    count (trials 0, 3, 6, ...). Here every trial is a decision.

    Args:
        domain: a box. The functions should be convex on it, or the method gets stuck.
        step: eta, for x and for the multipliers. The theory takes O(1 / sqrt(T)).
        spread: delta, in the units of the box. 5% of its shortest side unless given. The theory takes O(T^(-1/4)).
        damping: theta, which pulls the multipliers towards 0. The value of eta unless given.
        constraints: m, the number of constraint values of each trial.
        start: the first action. Drawn uniformly (by the study's seed) unless given.
    """
    check_box(domain)
    shortest = float((domain.upper - domain.lower).min())
    return BanditOco(
        domain=domain,
        constraints=constraints,
        step=step,
        spread=SPREAD * shortest if spread is None else spread,
        damping=step if damping is None else damping,
        start=start,  # type: ignore[arg-type]  # The class makes a tuple.
    )


def check_box(domain: object) -> None:
    """Raises an error if the domain is no box."""
    if not isinstance(domain, Box):
        raise InvalidInput(f"This method moves through a box: `domain` must be a `Box`, not {type(domain).__name__}.")


class _Descent(Script):
    """A run of bandit convex optimisation."""

    def __init__(self, policy: BanditOco) -> None:
        self._policy = policy
        self.multipliers = np.zeros(policy.constraints)

    def play(self, first: Answers) -> Play:
        policy, box, rng = self._policy, self._policy.domain, first.randomness.draws
        middle, half = (box.lower + box.upper) / 2.0, (box.upper - box.lower) / 2.0
        shrunk = (1.0 - policy.spread / float(half.min())) * half  # x lies in (1 - xi) X, and both probes in X.
        start = uniform(box, 1, rng)[0] if policy.start is None else np.array(policy.start)
        x = np.clip(start, middle - shrunk, middle + shrunk)
        while True:
            u = rng.standard_normal(len(x))
            u /= np.linalg.norm(u)
            trials, randomness = yield np.clip(
                np.stack([x, x + policy.spread * u, x - policy.spread * u]), box.lower, box.upper
            )
            rng = randomness.draws
            values = [_values(trial) for trial in trials]
            if any(value is None for value in values):
                continue  # Without all three values the step is tried in another direction.
            here, ahead, behind = (value for value in values if value is not None)
            slope = (
                len(x) / (2.0 * policy.spread) * (ahead - behind)[:, None] * u
            )  # The gradients of -f and of each g_j, (1 + m, d).
            descent = slope[0] + self.multipliers @ slope[1:]
            x = np.clip(x - policy.step * descent, middle - shrunk, middle + shrunk)
            pull = here[1:] - policy.damping * self.multipliers
            self.multipliers = np.maximum(self.multipliers + policy.step * pull, 0.0)


def _values(trial: Trial) -> Array | None:
    """Returns (-f, g_1, ..., g_m), or None if a value is missing."""
    if trial.reward is None or trial.constraints is None:
        return None
    return np.concatenate([[-trial.reward], trial.constraints])
