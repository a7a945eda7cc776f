"""Switching: the number of plays of a choice before the next decision.

Changes of the choice may be costly, and decisions take time. A posterior moves little while a well-known point is
played, so a decision may stand for many rounds. The rule is mini-META (Calandriello, Carratino, Lazaric, Valko &
Rosasco 2022, "Scaling Gaussian process optimization by evaluating a few unique candidates multiple times").

| symbol | name | meaning | unit |
|---|---|---|---|
| s(x) | `std` | posterior standard deviation of f at the choice x | reward |
| lambda | `regularization` | of the posterior | reward squared |
| C | `factor` | factor by which standard deviations may shrink before the next decision | |
| U(x), mu(x) | | upper bound and posterior mean of f at the choice | reward |
| h | `hope` | (U(x) - max mu) / (U(x) - mu(x)), at least 0 | |

After n more plays of x, s'(z)^2 = s(z)^2 - cov(z, x)^2 / (lambda / n + s(x)^2), and cov(z, x)^2 <= s(z)^2 s(x)^2. So

    s(z)^2 / s'(z)^2 <= 1 + n s(x)^2 / lambda    at every point z,

with equality at x itself, and n <= (C^2 - 1) lambda / s(x)^2 plays keep every standard deviation within the factor C.

Fewer plays do so, too. The number of decisions depends on n alone: a share q of that n is the rule for the factor
sqrt(1 + q (C^2 - 1)). Each play of a run that is too long costs the gap of its point. A point with the largest mean has
no known gap, and is played for all of n. Any other point was chosen for its upper bound, and h is the share of that
bound's excess that lies above the largest mean. Such a point is played for a share max(1/4, h^2) of n. As measured,
this saves a fifth of the excess regret of C = 1.1 at a third more decisions (docs/million.md).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import final

from .._utils.checks import number, settle
from ..errors import InvalidInput
from ..serialize import description
from .base import Part, Policy
from .memory import Forever
from .pending import Hallucinated, Ignored
from .rewards import KnownReward

MOST_REPEATS = 10**9  # largest number of plays of one decision
LARGEST_FACTOR = 1e3
LEAST_SHARE = 0.25  # share of the longest run: the decisions are at most those for the factor sqrt(1 + (C^2 - 1) / 4)


class Switching(Part):
    """The number of plays of a trial before the next decision (`trial.repeats`).

    A run of plays of one point is one trial and one entry of the record. All its rewards are told together, or their
    count, sum and sum of squares (`nilregret.study.Rewards`). Forced rounds are played once.
    """

    @abstractmethod
    def repeats(self, std: float, regularization: float, hope: float = 1.0) -> int:
        """Returns the number of plays of a point, at least 1.

        Args:
            std: posterior standard deviation of f there. Pending trials count as observed if the policy imputes them
                so.
            regularization: lambda of the posterior, in the same units squared.
            hope: h, a share in [0, 1] of the interval from the mean to the upper bound of the point. It is the share
                above the largest mean of all points. h is 1 at the point with the largest mean. It is small at points
                that are known to be worse.
        """

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for parts that need a decision in each round or change the posterior in between."""
        self._check_single_rounds(policy)
        self._check_posterior(policy)

    def _check_single_rounds(self, policy: Policy) -> None:
        name = type(self).__name__
        if policy.context is not None:
            raise InvalidInput(
                f"`{name}` plays one choice for many rounds, and under contexts each round has its own: the choice of "
                "one context says nothing of the next. Leave out `context`, or `switching`."
            )
        if not isinstance(policy.memory, Forever):
            raise InvalidInput(
                f"`{name}` records a run of plays as one trial, and `{type(policy.memory).__name__}` looks at rounds "
                "one by one, to forget or to find a change in the middle of a run. Leave out one of them."
            )
        if not isinstance(policy.pending, Ignored | Hallucinated):
            raise InvalidInput(
                f"`{name}` has runs of plays under way, and what `{type(policy.pending).__name__}` puts in the place "
                "of an answer is that of a single play. Take `pending` 'ignore' or 'hallucinate'."
            )
        if isinstance(policy.objective, KnownReward):
            raise InvalidInput(
                f"`{name}` plays a choice as long as rewards of one noise can teach little, and with "
                f"`reward` {type(policy.objective).__name__.lower()!r} the noise differs from point to point and is "
                "learned on the way. Leave out one of them."
            )
        if policy.constraints is not None or policy.objective.constraints:
            raise InvalidInput(
                f"`{name}` keeps the uncertainty of the reward within a factor and not that of constraints, whose "
                "values are learned, charged and kept round by round. Leave out one of them."
            )

    def _check_posterior(self, policy: Policy) -> None:
        name = type(self).__name__
        if policy.sketch is not None:
            raise InvalidInput(
                f"`{name}` leaves few distinct points to learn from, and of these the exact posterior is quick: leave "
                "out `sketch`, which is for many."
            )
        if policy.refit is not None:
            raise InvalidInput(
                f"`{name}` bounds how much plays teach under one kernel, and `refit` changes it between them; fits "
                "see single rewards, too. Fit the kernel first, and give it to a policy without `refit`.",
                advice="`nr.gp.fit` does so.",
            )
        if policy.confidence.recent is not None:
            raise InvalidInput(
                f"`{name}` records a run of plays as one trial, and `{type(policy.confidence).__name__}` adds up the "
                "last single ones. Take another width, such as `width` 'amm' of `igp_ucb`."
            )


@final
@description(frozen=True)
class Lazy(Switching):
    """A rule that plays a choice until it could have shrunk some standard deviation by the factor C.

    The point with the best mean is played exactly so long. A point chosen for its uncertainty is played for a share of
    these rounds, at least a quarter. The regret is that of deciding in each round up to a constant that tends to 1 with
    C. Only O(gamma_T) decisions are made in T rounds (Calandriello et al. 2022, for GP-UCB), some two hundred in a
    million.

    Args:
        factor: C >= 1. With 1 every round has a decision.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> env = nr.Environment(lambda x: -((x[:, 0] - 0.3) ** 2), domain=arms, noise=0.1)
    >>> run = nr.simulate(nr.gp_ucb(arms, kernel, noise=0.1), env, 1000, switching=nr.slots.Lazy())
    >>> len(run.entries) < 500
    True
    """

    factor: float = 1.1

    def __post_init__(self) -> None:
        why = "It is by how much standard deviations may shrink between decisions; 1.1 loses next to nothing."
        settle(self, factor=number("factor", self.factor, low=1.0, high=LARGEST_FACTOR, why=why))

    def repeats(self, std: float, regularization: float, hope: float = 1.0) -> int:
        """Returns floor(max(1/4, h^2) (C^2 - 1) lambda / s^2(x)), at least 1."""
        allowed = max(LEAST_SHARE, hope**2) * (self.factor**2 - 1.0) * regularization
        if allowed <= 0.0:
            return 1
        if allowed >= MOST_REPEATS * std**2:
            return MOST_REPEATS
        return max(1, math.floor(allowed / std**2))
