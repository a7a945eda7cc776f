"""An environment: the true reward of every point, and what stands between it and the decision maker.

Noise, contexts, changes, delays of the answers, constraints: any of them, in any combination.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._utils.checks import LARGEST_REWARD, Array, finite_array, listed, many, number
from ..._utils.errors import InvalidInput
from ...domains.domain import Arms, Box, Domain, Space, check_domain
from ...storage.record import Trial
from .delays import Delay, make_delay
from .truth import Drifting, Function, TrueOutput, checked_changes

START_POWER = 12  # 2^12 quasi-random points when a maximum is searched for
ASCENTS = 8  # local ascents from the best of them


def search_maximum(values: Callable[[Array], Array], domain: Box | Space) -> float:
    """The maximum of a function of points `(n, d)` over a box or space, by quasi-random points and local ascents.

    The function may be -inf where points do not count.
    """
    from scipy.optimize import minimize
    from scipy.stats import qmc

    unit = qmc.Sobol(domain.dimension, scramble=True, rng=np.random.default_rng(0)).random_base2(START_POWER)
    span = domain.upper - domain.lower

    def place(u: Array) -> Array:
        points = domain.lower + np.clip(np.atleast_2d(u), 0.0, 1.0) * span
        return domain.snap(points) if isinstance(domain, Space) else points

    def downhill(u: Array) -> float:
        return -float(values(place(u))[0])

    scores = values(place(unit))
    best = float(scores.max())
    for index in np.argsort(-scores)[:ASCENTS]:
        # A simplex needs no gradients: the reward may be any function.
        found = minimize(downhill, unit[index], method="Nelder-Mead", tol=1e-10)
        best = max(best, -float(found.fun))
    return best


class Environment:
    """A reward function and how it is seen.

    Args:
        reward: maps points `(n, d)` (encoded ones, of a space) to expected rewards `(n,)`; with contexts, points and
            contexts `(n, c)`. A function that returns one number for several points is taken for one of a single point
            `(d,)` (and context `(c,)`), and is called for each, which is slower. A sequence of such functions, one
            for each stationary period, goes with `change_points`; one function is for all periods. Any of them may be
            a `nilregret.simulation.environments.Drifting`, which becomes another one gradually.
        domain: what may be played.
        noise: standard deviation of the noise, reward units.
        delay: how many further questions are asked before an answer is known: a number, a part of
            `nilregret.simulation.environments.delays`, or a function `delay(rng, point, reward)`; infinity for never. A
            `timedelta` instead of a number is a time, counted on the simulated clock.
        constraints: maps points `(n, d)` (with contexts: and `(n, c)`) to `(n, m)` values g (or `(n,)` for one),
            satisfied when <= 0. A sequence of such functions, one for each period, as of `reward`: which of the two
            changes when is free.
        constraint_noise: standard deviation of the normal noise on them, one for all or a sequence of m; or a function
            `noise(rng, (rounds, m))` that draws another one.
        constraint_delay: how long it takes until the constraint values are known, as `delay`, where they are told by
            themselves and not with the reward: 0 where they are known at once. Algorithms that learn from both
            together (Shi & Eryilmaz's) are told a reward when both are there.
        change_points: rounds, counted from 0, at which the next functions begin (`even_changes` and `random_changes`
            make them); in a run that ends before, a change does not happen.
        contexts: domain from which the context of each round is drawn uniformly, or None.
        context_order: contexts `(n, c)` in the order in which they come, from the first again after the last, where
            they are not drawn.
        best: the largest expected reward (under constraints, of the points that satisfy them), against which regret is
            measured; with contexts a function from contexts `(n, c)` to it `(n,)`. Found unless given: exactly on
            arms, by a multi-start search elsewhere; always of the round's own period and context.
        interval: seconds from one question to the next on the simulated clock, for delays that are times.
    """

    def __init__(
        self,
        reward: Function | Drifting | Sequence[Function | Drifting],
        *,
        domain: Domain,
        noise: float = 0.0,
        delay: Any = None,
        constraints: Function | Drifting | Sequence[Function | Drifting] | None = None,
        constraint_noise: float
        | Sequence[float]
        | Callable[[np.random.Generator, tuple[int, int]], npt.ArrayLike] = 0.0,
        constraint_delay: Any = None,
        change_points: Sequence[int] | None = None,
        contexts: Domain | None = None,
        context_order: npt.ArrayLike | None = None,
        best: float | Callable[[Array], npt.ArrayLike] | None = None,
        interval: float = 1.0,
    ) -> None:
        check_domain("domain", domain)
        if contexts is not None:
            check_domain("contexts", contexts)
        self.domain, self.contexts = domain, contexts
        if context_order is not None and contexts is None:
            raise InvalidInput("`context_order` needs `contexts`, the domain that they are of.")
        self._order = (
            None if contexts is None or context_order is None else contexts.inside("context_order", context_order)
        )
        self.noise = number(
            "noise", noise, low=0.0, high=LARGEST_REWARD, why="It is a standard deviation, in the units of the reward."
        )
        self.interval = number("interval", interval, low=0.0, why="It is a time in seconds.")
        self.delay: Delay | None = None if delay is None else make_delay(delay)
        if constraints is None and constraint_delay is not None:
            raise InvalidInput("`constraint_delay` needs `constraints`, whose values it is about.")
        if constraints is None and not (isinstance(constraint_noise, float | int) and constraint_noise == 0.0):
            raise InvalidInput("`constraint_noise` needs `constraints`, whose values it is about.")
        self.constraint_delay: Delay | None = (
            None if constraint_delay is None else make_delay(constraint_delay, name="constraint_delay")
        )
        self._reward = TrueOutput("reward", reward, domain=domain, contexts=contexts)
        self._limits = (
            None if constraints is None else TrueOutput("constraints", constraints, domain=domain, contexts=contexts)
        )
        self.change_points = checked_changes(
            change_points,
            rewards=len(self._reward.periods),
            limits=1 if self._limits is None else len(self._limits.periods),
        )
        self.constraint_count = 0 if self._limits is None else self._limits.columns(self._some_context())
        self.constraint_noise = self._checked_noise(constraint_noise)
        if callable(best) != (contexts is not None) and best is not None:
            raise InvalidInput("`best` is a number, or with contexts a function of them.")
        if best is not None and (self.change_points or self._moves(0, 0)):
            raise InvalidInput("`best` is for one reward function; with `change_points` it is found for each.")
        self._best = best if best is None or callable(best) else number("best", best)
        self._largest_of: dict[tuple[int, bytes], float] = {}  # of periods and contexts in which nothing moves

    def _some_context(self) -> Array | None:
        return None if self.contexts is None else self.draw_context(np.random.default_rng(0))

    def _checked_noise(self, noise: Any) -> float | tuple[float, ...] | Callable[..., npt.ArrayLike]:
        if callable(noise):
            return noise  # type: ignore[no-any-return]  # of whatever it returns, the shape is checked
        why = "It is a standard deviation, a list of one for each constraint, or a function that draws noise."
        limits: dict[str, Any] = {"low": 0.0, "high": LARGEST_REWARD, "why": why}
        if not isinstance(noise, Sequence | np.ndarray) or isinstance(noise, str):
            return number("constraint_noise", noise, **limits)
        each = tuple(number("constraint_noise", std, **limits) for std in listed("constraint_noise", noise, why=why))
        if len(each) != self.constraint_count:
            raise InvalidInput(
                f"`constraint_noise` has {many(len(each), 'entry')} for {many(self.constraint_count, 'constraint')}: "
                "give one for all, or one for each."
            )
        return each

    @property
    def values(self) -> Array:
        """Expected reward of every arm in the first round, `(N,)`; errors where there are no arms, or contexts."""
        if not isinstance(self.domain, Arms) or self.contexts is not None:
            raise InvalidInput("Only arms without contexts have a table of rewards.")
        return self._reward.of_arms(0, 0, None)

    @property
    def best_value(self) -> float:
        """The largest expected reward, in the first round; errors where there are contexts."""
        if self.contexts is not None:
            raise InvalidInput("With contexts, what is best depends on the context.")
        return self._best_of(0, 0, None)

    def period(self, round_: int) -> int:
        """Which stationary period a round (counted from 0) is in."""
        return bisect_right(self.change_points, round_)

    @cached_property
    def _fixed(self) -> tuple[list[float], float] | None:
        """The expected reward of each arm, and the largest, where these are the same in every round."""
        if not isinstance(self.domain, Arms) or not self.still or self._limits is not None or callable(self._best):
            return None
        return self._reward.of_arms(0, 0, None).tolist(), self._best_of(0, 0, None)

    @property
    def still(self) -> bool:
        """Whether every round is like the first: no contexts, no changes, no drift."""
        return self.contexts is None and not self.change_points and not self._moves(0, 0)

    def expected(self, trial: Trial) -> tuple[float, float]:
        """The trial's expected reward, and the largest one possible in its round under its context."""
        if trial.arm is not None and (fixed := self._fixed) is not None:
            return fixed[0][trial.arm], fixed[1]
        period, age = self._when(trial.number)
        value = float(self._reward.of_trial(period, age, trial.arm, trial.point, trial.context))
        if not callable(self._best):
            largest = self._best_of(period, age, trial.context)
            # What a search finds may be a little less than what was played.
            return value, largest if trial.context is None or self._limits is not None else max(largest, value)
        best = finite_array("best(contexts)", self._best(trial.context[None]))  # type: ignore[index]  # checked
        if best.size != 1:
            raise InvalidInput(
                f"`best` returned shape {best.shape} for one context; it must be one number for each row."
            )
        largest = float(best.reshape(-1)[0])
        return value, largest if self._limits is not None else max(largest, value)

    def constraint(self, trial: Trial) -> Array:
        """The trial's expected constraint values g, `(m,)`."""
        if self._limits is None:
            return np.zeros(0)
        period, age = self._when(trial.number)
        return np.asarray(self._limits.of_trial(period, age, trial.arm, trial.point, trial.context))

    def draw_constraint_noise(self, rng: np.random.Generator, rounds: int) -> Array:
        """Noise on the constraint values of so many rounds, `(rounds, m)`."""
        shape = (rounds, self.constraint_count)
        if not callable(self.constraint_noise):
            return np.asarray(np.array(self.constraint_noise) * rng.standard_normal(shape))
        noise = finite_array("constraint_noise(rng, shape)", self.constraint_noise(rng, shape))
        if noise.shape != shape:
            raise InvalidInput(f"`constraint_noise` returned shape {noise.shape} where {shape} was asked for.")
        return noise

    def draw_context(self, rng: np.random.Generator, round_: int = 0) -> Array | None:
        """The context of a round (counted from 0), `(c,)`, or None."""
        if self.contexts is None:
            return None
        if self._order is not None:
            return np.asarray(self._order[round_ % len(self._order)])
        if isinstance(self.contexts, Arms):
            points: Array = self.contexts.points
            return np.asarray(points[int(rng.integers(len(points)))])
        point = np.asarray(rng.uniform(self.contexts.lower, self.contexts.upper))
        return self.contexts.snap(point[None])[0] if isinstance(self.contexts, Space) else point

    def _when(self, round_: int) -> tuple[int, int]:
        """The period of a round, and how many rounds ago it began."""
        changes = self.change_points
        if not changes:
            return 0, round_
        period = bisect_right(changes, round_)
        return period, round_ - changes[period - 1] if period else round_

    def _moves(self, period: int, age: int) -> bool:
        limits = self._limits
        return self._reward.moving(period, age) or (limits is not None and limits.moving(period, age))

    def _best_of(self, period: int, age: int, context: Array | None) -> float:
        if self._best is not None and not callable(self._best):
            return self._best
        key = (period, b"" if context is None else context.tobytes())
        known = self._largest_of.get(key)
        if known is not None and not self._moves(period, age):
            return known
        largest = self._largest(period, age, context)
        if not self._moves(period, age) and (context is None or isinstance(self.contexts, Arms)):
            self._largest_of[key] = largest
        return largest

    def _largest(self, period: int, age: int, context: Array | None) -> float:
        """The largest expected reward of points that satisfy the constraints: of all arms, or what a search finds."""
        domain, reward, limits = self.domain, self._reward, self._limits
        if isinstance(domain, Arms):
            scores = reward.of_arms(period, age, context)
            if limits is not None:
                scores = np.where((limits.of_arms(period, age, context) <= 0.0).all(axis=1), scores, -np.inf)
            best = float(scores.max())
        else:

            def values(points: Array) -> Array:
                scores = reward.of_points(period, age, points, context)
                if limits is None:
                    return scores
                return np.where((limits.of_points(period, age, points, context) <= 0.0).all(axis=1), scores, -np.inf)

            best = search_maximum(values, domain)
        if not np.isfinite(best):
            raise InvalidInput(
                "No point satisfies all constraints, so there is no best one to measure regret against. Usually the "
                "constraint values do not lie at 0 where they are just met, or have the other sign (satisfied where "
                "<= 0); under contexts and changes each of them needs a point that satisfies all constraints."
            )
        return best
