"""An environment: the true reward of every point, with noise, contexts, changes, delays and constraints."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .._utils.checks import LARGEST_REWARD, Array, finite_array, listed, many, number
from ..domains.domain import Arms, Box, Domain, Space, check_domain
from ..domains.search.designs import uniform
from ..errors import InvalidInput
from .delays import Delay, make_delay
from .true_outputs import Drifting, Function, TrueOutput, checked_changes

START_POWER = 12  # A search for a maximum starts with 2^12 quasi-random points.
ASCENTS = 8  # The number of local ascents from the best of them.

ConstraintNoise = float | Sequence[float] | Callable[[np.random.Generator, tuple[int, int]], npt.ArrayLike]


def search_maximum(values: Callable[[Array], Array], domain: Box | Space) -> float:
    """Returns the maximum of a function of points `(n, d)`, by quasi-random points and local ascents.

    The function may be -inf at points that do not count.
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
    for index in np.argsort(-scores, kind="stable")[:ASCENTS]:
        # A simplex needs no gradients: the reward may be any function.
        found = minimize(downhill, unit[index], method="Nelder-Mead", tol=1e-10)
        best = max(best, -float(found.fun))
    return best


def _checked_delay(name: str, delay: Any) -> Delay | None:
    return None if delay is None else make_delay(delay, name=name)


def _checked_order(order: npt.ArrayLike | None, contexts: Domain | None) -> Array | None:
    if order is not None and contexts is None:
        raise InvalidInput("`context_order` needs `contexts`, the domain that they are of.")
    return None if contexts is None or order is None else contexts.inside("context_order", order)


def _refuse_without_constraints(noise: Any, delay: Any) -> None:
    """Raises an error for noise or a delay of constraint values if there are no constraints."""
    if delay is not None:
        raise InvalidInput("`constraint_delay` needs `constraints`, whose values it is about.")
    if not (isinstance(noise, float | int) and noise == 0.0):
        raise InvalidInput("`constraint_noise` needs `constraints`, whose values it is about.")


class Play(Protocol):
    """A decision of one round, as a `Trial` is one."""

    @property
    def number(self) -> int:
        """The round, from 0."""

    @property
    def arm(self) -> int | None:
        """The arm, or None on other domains."""

    @property
    def point(self) -> Array:
        """The point, `(d,)`."""

    @property
    def context(self) -> Array | None:
        """The context, `(c,)`, or None."""

    @property
    def explored(self) -> bool:
        """True in a forced uniform round."""


class Environment:
    """A reward function, and the way in which a policy observes it.

    Args:
        reward: maps points `(n, d)` (encoded points of a space) to expected rewards `(n,)`. With contexts, called
            with points and contexts `(n, c)`. A function that returns one number for several points is slower: it is
            called for each point `(d,)` (and context `(c,)`). Either one function for all periods, or a sequence with
            one for each stationary period, together with `change_points`. Each may be a
            `nilregret.environments.Drifting`, which becomes another function gradually.
        domain: domain of the points.
        noise: standard deviation of the noise, reward units.
        delay: number of further questions before an answer is known: a number, a part of
            `nilregret.environments.delays`, or a function `delay(rng, point, reward)`. Infinity for never. A
            `timedelta` is a time on the simulated clock.
        constraints: maps points `(n, d)` (with contexts also `(n, c)`) to `(n, m)` values g (or `(n,)` for one),
            satisfied when <= 0. One function for all periods or one for each, independent of `reward`.
        constraint_noise: standard deviation of the normal noise on the constraint values, one for all or a sequence of
            m. Or a function `noise(rng, (rounds, m))` that draws the noise.
        constraint_delay: delay of the constraint values, as `delay`, if they are told separately from the reward. 0 if
            they are known at once. Algorithms that learn from both together (Shi & Eryilmaz's) are told a reward when
            both are known.
        change_points: rounds, counted from 0, at which the next functions begin (see `even_changes` and
            `random_changes`). Changes after the end of a run do not happen.
        contexts: domain from which the context of each round is drawn uniformly, or None.
        context_order: contexts `(n, c)` in their order in a run, if they are not drawn. The order repeats after the
            last one.
        best: the largest expected reward (of points that satisfy the constraints), which regret is measured against.
            With contexts a function from contexts `(n, c)` to `(n,)`. Computed unless given, exactly on arms, by a
            multi-start search elsewhere, and always for the period and context of the round.
        interval: seconds between questions on the simulated clock, for delays that are times.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> env = nr.Environment(lambda x: 1.0 - (x[:, 0] - 0.3) ** 2, domain=arms, noise=0.1)
    >>> round(env.best_value, 3)
    1.0
    """

    def __init__(
        self,
        reward: Function | Drifting | Sequence[Function | Drifting],
        *,
        domain: Domain,
        noise: float = 0.0,
        delay: Any = None,
        constraints: Function | Drifting | Sequence[Function | Drifting] | None = None,
        constraint_noise: ConstraintNoise = 0.0,
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
        self._order = _checked_order(context_order, contexts)
        why = "It is a standard deviation, in the units of the reward."
        self.noise = number("noise", noise, low=0.0, high=LARGEST_REWARD, why=why)
        self.interval = number("interval", interval, low=0.0, why="It is a time in seconds.")
        self.delay = _checked_delay("delay", delay)
        if constraints is None:
            _refuse_without_constraints(constraint_noise, constraint_delay)
        self.constraint_delay = _checked_delay("constraint_delay", constraint_delay)
        self._reward = TrueOutput("reward", reward, domain=domain, contexts=contexts)
        self._constraints: TrueOutput | None = None
        if constraints is not None:
            self._constraints = TrueOutput("constraints", constraints, domain=domain, contexts=contexts)
        counts = [1 if each is None else len(each.periods) for each in (self._reward, self._constraints)]
        self.change_points = checked_changes(change_points, rewards=counts[0], constraints=counts[1])
        self.constraint_count = 0 if self._constraints is None else self._constraints.columns(self._some_context())
        self.constraint_noise = self._checked_noise(constraint_noise)
        self._best = self._checked_best(best)
        self._largest_of: dict[tuple[int, bytes], float] = {}  # By period and context, if nothing drifts.

    def _some_context(self) -> Array | None:
        return None if self.contexts is None else self.draw_context(np.random.default_rng(0))

    def _checked_noise(self, noise: Any) -> float | tuple[float, ...] | Callable[..., npt.ArrayLike]:
        if callable(noise):
            return noise  # type: ignore[no-any-return]  # The shape of its values is checked when they are drawn.
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

    def _checked_best(self, best: Any) -> float | Callable[[Array], npt.ArrayLike] | None:
        if callable(best) != (self.contexts is not None) and best is not None:
            raise InvalidInput("`best` is a number, or with contexts a function of them.")
        if best is not None and (self.change_points or self._drifts(0, 0)):
            raise InvalidInput("`best` is for one reward function; with `change_points` it is found for each.")
        return best if best is None or callable(best) else number("best", best)

    @property
    def values(self) -> Array:
        """Expected reward of every arm in the first round, `(N,)`. An error without arms, or with contexts."""
        if not isinstance(self.domain, Arms) or self.contexts is not None:
            raise InvalidInput("Only arms without contexts have a table of rewards.")
        return self._reward.of_arms(0, 0, None)

    @property
    def best_value(self) -> float:
        """The largest expected reward in the first round. An error with contexts."""
        if self.contexts is not None:
            raise InvalidInput("With contexts, what is best depends on the context.")
        return self._best_of(0, 0, None)

    def period(self, round_: int) -> int:
        """Returns the number of the stationary period of a round (both counted from 0)."""
        return bisect_right(self.change_points, round_)

    def agrees(self, other: Environment) -> bool:
        """Returns True if both expect the same first reward of all arms, or of a point drawn from another domain."""
        if self is other or (self.domain, self.contexts) != (other.domain, other.contexts):
            return self is other
        rng, context = np.random.default_rng(0), self._some_context()
        if isinstance(self.domain, Arms):
            one, two = (each._reward.of_arms(0, 0, context) for each in (self, other))
        else:
            point = uniform(self.domain, 1, rng)
            one, two = (each._reward.of_points(0, 0, point, context) for each in (self, other))
        return np.array_equal(one, two)

    @cached_property
    def _fixed(self) -> tuple[list[float], float] | None:
        """The expected reward of each arm, and the largest, if these are the same in every round."""
        if not isinstance(self.domain, Arms) or not self.still or self._constraints is not None or callable(self._best):
            return None
        return self._reward.of_arms(0, 0, None).tolist(), self._best_of(0, 0, None)

    @property
    def still(self) -> bool:
        """True if there are no contexts, no changes and no drift."""
        return self.contexts is None and not self.change_points and not self._drifts(0, 0)

    def expected(self, trial: Play) -> tuple[float, float]:
        """Returns the trial's expected reward, and the largest one in its round under its context."""
        if trial.arm is not None and (fixed := self._fixed) is not None:
            return fixed[0][trial.arm], fixed[1]
        period, age = self._period_and_age(trial.number)
        value = float(self._reward.of_trial(period, age, trial.arm, trial.point, trial.context))
        if not callable(self._best):
            largest = self._best_of(period, age, trial.context)
            # A search may find slightly less than the played point.
            return value, largest if trial.context is None or self._constraints is not None else max(largest, value)
        best = finite_array("best(contexts)", self._best(trial.context[None]))  # type: ignore[index]  # checked
        if best.size != 1:
            raise InvalidInput(
                f"`best` returned shape {best.shape} for one context; it must be one number for each row."
            )
        largest = float(best.reshape(-1)[0])
        return value, largest if self._constraints is not None else max(largest, value)

    def changes_in(self, round_: int) -> bool:
        """Returns True if a round (counted from 0) may have another `table` than the round before."""
        return round_ == 0 or round_ in self.change_points or self._drifts(*self._period_and_age(round_ - 1))

    def table(self, round_: int) -> tuple[Array, Array] | None:
        """Returns the expected rewards of a round (counted from 0), `(C, N)`, and the largest of each context, `(C,)`.

        C is the number of contexts, 1 without contexts. There is no table if arms or contexts are not finitely many,
        and none with a function for `best`.
        """
        if type(self) is not Environment:  # A class of one's own may compute its values in another way.
            return None
        if not isinstance(self.domain, Arms) or not isinstance(self.contexts, Arms | None) or callable(self._best):
            return None
        period, age = self._period_and_age(round_)
        contexts = [None] if self.contexts is None else list(self.contexts.points)
        values = np.array([self._reward.of_arms(period, age, context) for context in contexts])
        return values, np.array([self._best_of(period, age, context) for context in contexts])

    def constraint(self, trial: Play) -> Array:
        """Returns the trial's expected constraint values g, `(m,)`."""
        if self._constraints is None:
            return np.zeros(0)
        period, age = self._period_and_age(trial.number)
        return np.asarray(self._constraints.of_trial(period, age, trial.arm, trial.point, trial.context))

    def draw_constraint_noise(self, rng: np.random.Generator, rounds: int) -> Array:
        """Returns noise on the constraint values, `(rounds, m)`."""
        shape = (rounds, self.constraint_count)
        if not callable(self.constraint_noise):
            return np.asarray(np.array(self.constraint_noise) * rng.standard_normal(shape))
        noise = finite_array("constraint_noise(rng, shape)", self.constraint_noise(rng, shape))
        if noise.shape != shape:
            raise InvalidInput(f"`constraint_noise` returned shape {noise.shape} where {shape} was asked for.")
        return noise

    def draw_context(self, rng: np.random.Generator, round_: int = 0) -> Array | None:
        """Returns the context of a round (counted from 0), `(c,)`, or None."""
        if self.contexts is None:
            return None
        if self._order is not None:
            return np.asarray(self._order[round_ % len(self._order)])
        if isinstance(self.contexts, Arms):
            points: Array = self.contexts.points
            return np.asarray(points[int(rng.integers(len(points)))])
        return np.asarray(uniform(self.contexts, 1, rng)[0])

    def _period_and_age(self, round_: int) -> tuple[int, int]:
        """Returns the period of a round, and the number of rounds since it began."""
        changes = self.change_points
        if not changes:
            return 0, round_
        period = bisect_right(changes, round_)
        return period, round_ - changes[period - 1] if period else round_

    def _drifts(self, period: int, age: int) -> bool:
        outputs = (self._reward, self._constraints)
        return any(output is not None and output.drifting(period, age) for output in outputs)

    def _best_of(self, period: int, age: int, context: Array | None) -> float:
        if self._best is not None and not callable(self._best):
            return self._best
        key = (period, b"" if context is None else context.tobytes())
        known = self._largest_of.get(key)
        if known is not None and not self._drifts(period, age):
            return known
        largest = self._largest(period, age, context)
        if not self._drifts(period, age) and (context is None or isinstance(self.contexts, Arms)):
            self._largest_of[key] = largest
        return largest

    def _largest(self, period: int, age: int, context: Array | None) -> float:
        """Returns the largest expected reward of feasible points, of all arms or of those that a search finds."""
        domain, reward, constraints = self.domain, self._reward, self._constraints
        if isinstance(domain, Arms):
            scores = reward.of_arms(period, age, context)
            if constraints is not None:
                scores = np.where((constraints.of_arms(period, age, context) <= 0.0).all(axis=1), scores, -np.inf)
            best = float(scores.max())
        else:

            def values(points: Array) -> Array:
                scores = reward.of_points(period, age, points, context)
                if constraints is None:
                    return scores
                g = constraints.of_points(period, age, points, context)
                return np.where((g <= 0.0).all(axis=1), scores, -np.inf)

            best = search_maximum(values, domain)
        if not np.isfinite(best):
            raise InvalidInput(
                "No point satisfies all constraints, so there is no best one to measure regret against. Usually the "
                "constraint values do not lie at 0 where they are just met, or have the other sign (satisfied where "
                "<= 0); under contexts and changes each of them needs a point that satisfies all constraints."
            )
        return best
