"""Hyperparameters from data: the kernel and noise of highest likelihood or posterior density.

| symbol | name | meaning | shape |
|---|---|---|---|
| theta | | `kernel.log_parameters`, then log noise variance | (p + 1,) |
| p(y) | `log_likelihood` | see `likelihood` | scalar |

The search is the core of SciPy's L-BFGS-B (Byrd, Lu, Nocedal & Zhu 1995), within bounds.
The wrappers of `scipy.optimize.minimize` took a quarter of the time of a fit. The core is private to SciPy. If it is
missing or takes other arguments, `minimize` is called, which gives the same results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import (
    LARGEST_REWARD,
    LARGEST_SEED,
    Array,
    IndexArray,
    finite_array,
    flag,
    integer,
    many,
    number,
    one_of,
    settle,
    shown,
)
from .._utils.dataclass import dataclass, replace
from .._utils.randomness import Draws
from ..errors import InvalidInput, warn
from ..kernels import Kernel, check_kernel
from ..kernels.factorization import first_largest
from ..serialize import description

if TYPE_CHECKING:
    from .likelihood import Data, Density, Evaluated, Marginal, Prior

MEMORY = 10  # past steps that approximate the Hessian
SEARCHED = 20  # evaluations of one line search at most
ITERATIONS = 200  # largest number of a descent
FLAT = 1e-3  # largest component of the projected gradient that ends a descent
NEW, EVALUATE, CONVERGED, STOPPED, TOO_MANY = 1, 3, 4, 5, 504  # tasks of the core

Loss = Callable[[Array], tuple[float, Array]]


class Minimum(NamedTuple):
    """The end of a descent.

    Attributes:
        at: place, `(p,)`.
        value: of the loss there.
        converged: True if a tolerance was met.
        evaluations: number of the loss.
        message: reason of the end, in the words of SciPy.
    """

    at: Array
    value: float
    converged: bool
    evaluations: int
    message: str


def descend(loss: Loss, start: Array, low: Array, high: Array, tolerance: float) -> Minimum:
    """Returns the local minimum that L-BFGS-B reaches from a start.

    Args:
        loss: value and gradient. Its argument changes afterwards.
        start: `(p,)`.
        low: finite lower bounds, `(p,)`.
        high: finite upper bounds, `(p,)`.
        tolerance: relative fall of the loss in an iteration that ends the descent.
    """
    core = _core()
    if core is None or (low == high).all():
        return _by_minimize(loss, start, low, high, tolerance)
    x, value, gradient, evaluations, iterations = np.clip(start, low, high), 0.0, np.zeros(len(start)), 0, 0
    task, step = _stepper(core, x, low, high, tolerance)
    while True:
        step(value, gradient)
        if task[0] == EVALUATE:
            value, slopes = loss(x)
            gradient = slopes.copy()  # The core writes into it.
            evaluations += 1
        elif task[0] == NEW:
            iterations += 1
            if iterations >= ITERATIONS:
                task[:] = STOPPED, TOO_MANY
        else:
            break
    message = f"{core.status_messages[task[0]]}: {core.task_messages[task[1]]}"
    return Minimum(x, value, bool(task[0] == CONVERGED), evaluations, message)


def _stepper(core: Any, x: Array, low: Array, high: Array, tolerance: float) -> tuple[Any, Callable[..., None]]:
    """Returns the task of the core, and the function that hands it a value and a gradient. Both change in place."""
    n, m = len(x), MEMORY
    bounded, task, line = np.full(n, 2, dtype=np.int32), np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.int32)
    work, places = np.zeros(2 * m * n + 5 * n + 11 * m * m + 8 * m), np.zeros(3 * n, dtype=np.int32)
    flags, counts, numbers = np.zeros(4, dtype=np.int32), np.zeros(44, dtype=np.int32), np.zeros(29)
    setulb, factor = core._lbfgsb.setulb, tolerance / float(np.finfo(np.float64).eps)

    def step(value: float, gradient: Array) -> None:
        setulb(
            m, x, low, high, bounded, value, gradient, factor, FLAT, work, places, task, flags, counts, numbers,
            SEARCHED, line,
        )  # fmt: skip

    return task, step


@cache
def _core() -> Any:
    """Returns SciPy's module with the core, or None if it does not ask for an evaluation as expected."""
    try:
        from scipy.optimize import _lbfgsb_py as core

        one = np.ones(1)
        task, step = _stepper(core, one, 0.0 * one, 2.0 * one, 1e-3)
        step(0.0, np.zeros(1))
        known = core.status_messages[CONVERGED], core.task_messages[TOO_MANY]
    except (ImportError, AttributeError, TypeError, ValueError, LookupError):
        return None
    return core if task[0] == EVALUATE and all(known) else None


def _by_minimize(loss: Loss, start: Array, low: Array, high: Array, tolerance: float) -> Minimum:
    from scipy.optimize import minimize

    found = minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)),
        options={"maxiter": ITERATIONS, "ftol": tolerance, "gtol": FLAT, "maxcor": MEMORY, "maxls": SEARCHED},
    )  # fmt: skip
    return Minimum(found.x, float(found.fun), bool(found.success), int(found.nfev), str(found.message))


MOST_RESTARTS = 1000
LEAST_STD = 1e-200  # smallest standard deviation of rewards: numbers divided by it must not overflow
FEWEST = 3  # distinct points below which a lengthscale cannot be learned
PART = 125  # distinct points beyond which the starts are compared on a random part of the points
MOST = 1000  # largest number u of distinct points in a fit, which takes time u^3 and memory u^2
TOLERANCE = 1e-8  # relative rise of an iteration that ends a climb
ROUGHLY = 1e-3  # the same tolerance when starts are compared
HOPEFUL = 3.0  # nats by which a rough climb may end below the best one, to be continued
NEAR = 0.7  # largest difference of log parameters of two ends that lead to one maximum
RIDGES = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)  # relative to the mean prior variance, tried in this order
WALK, FIRST, KEPT = 1500, 300, 50  # steps of a random walk, steps before its first draw, and steps between draws
MOST_WALKED = 125  # distinct points beyond which there is no walk: it would take long, and data say what theta is


@final
@description(frozen=True)
class Standardization:
    """A map of rewards to mean 0 and standard deviation 1 (`to`), and back (`back`)."""

    mean: float
    std: float

    def __post_init__(self) -> None:
        settle(self, mean=number("mean", self.mean, low=-LARGEST_REWARD, high=LARGEST_REWARD))
        settle(self, std=number("std", self.std, low=LEAST_STD, high=LARGEST_REWARD))

    @classmethod
    def of(cls, y: npt.ArrayLike) -> Standardization:
        """Returns the standardization of these rewards `(n,)`.

        The std is 1 if the rewards are all equal, and the mean is 0 if there are none.
        """
        rewards = finite_array("y", y)
        if rewards.ndim != 1:
            raise InvalidInput(f"`y` has shape {rewards.shape}: it must be (n,), one reward for each trial.")
        if rewards.size == 0:
            return cls(0.0, 1.0)
        mean, std = float(rewards.mean()), float(rewards.std())
        return cls(mean, 1.0 if _constant(rewards) or std < LEAST_STD else std)

    def to(self, y: npt.ArrayLike) -> Array:
        """Returns rewards on the standard scale."""
        return (finite_array("y", y) - self.mean) / self.std

    def back(self, values: npt.ArrayLike) -> Array:
        """Returns rewards, or posterior means, on their own scale. A posterior std comes back by `* std` alone."""
        return finite_array("values", values) * self.std + self.mean


@final
@dataclass(frozen=True)
class Fit:
    """The result of `fit`.

    Attributes:
        kernel: of the given structure.
        noise: standard deviation, reward units.
        mean: of the process, reward units, and 0 unless it was fitted.
        log_likelihood: log marginal likelihood, nats.
        log_posterior: log likelihood plus the log density of the prior, if there is one.
        converged: True if the optimizer met its tolerances, and False if nothing could be fitted.
        message: outcome in one sentence.
    """

    kernel: Kernel
    noise: float
    mean: float
    log_likelihood: float
    log_posterior: float
    converged: bool
    message: str


def fit(
    kernel: Kernel,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    *,
    noise: float | None = None,
    fit_noise: bool = True,
    fit_mean: bool = False,
    prior: str | None = "hvarfner",
    restarts: int = 2,
    seed: int = 0,
    bounds: Mapping[str, tuple[float, float]] | None = None,
    fewest: int = FEWEST,
    stds: npt.ArrayLike | None = None,
) -> Fit:
    """Returns the kernel and the noise that make the rewards most likely, or most probable under a prior.

    The search starts at the given kernel, at the mode of the prior, and at random draws from the prior. The best of
    these optima counts. Equal arguments give equal results. With many points the starts climb on a random part of the
    points. Only the start that is best on all points continues with all. Of more than 1,000 distinct points only 1,000
    are used, half of them spread out and half drawn from the rest. The resulting likelihood is that of these points.

    Prior "hvarfner" (Hvarfner, Hellsten & Nardi 2024) is for points in the unit cube and standardised rewards
    (`Standardization`). For a kernel that sees d columns, lengthscales are log-normal (sqrt 2 + log(d) / 2, sqrt 3), at
    least 0.025. So smoother functions are expected in more dimensions. The noise variance is log-normal (-4, 1), at
    least 1e-4.

    Prior "moderate" has lengthscales that are log-normal (0.14 + log(d) / 2, 0.7), and a noise variance that is
    log-normal (0, 3), at least 1e-6. Under it heavy noise is found.

    Prior "related" has the noise of "moderate", at least 1e-10. It is for several columns with a lengthscale each. The
    average of their logarithms has the mode of "hvarfner", with standard deviation 1, and each differs from the average
    with standard deviation 0.5. So few answers suffice to learn how smooth a function is, and many show which columns
    do not matter.

    The paper has no scale, since rewards are standardised. A kernel with a scale has a log-normal prior (1, 1) here, of
    mode 1. Without this prior, data that look linear drive scale and lengthscale to infinity together, and the scales
    of a product are not determined. The odds of a `Mixture` also have a log-normal prior (1, 1), of mode 1: half sum
    and half product.

    Prior None is maximum likelihood, for points and rewards in any units, within wide bounds set by the spread of the
    data. Lengthscales lie within 1e-3 to 1e3 spans of X. Scales lie within 1e-4 to 1e4 variances of y, and the noise
    variance within 1e-6 to 10 variances of y. With all priors the process has mean 0 unless `fit_mean` is True, so
    subtract the average of y.

    With fewer than `fewest` distinct points, or if all rewards are equal, nothing can be learned. Then the given kernel
    is returned with the starting noise, a message and a `NoRegretWarning`.

    Args:
        kernel: structure and first start. Give one lengthscale for each dimension to fit as many.
        X: `(n, d)`. Repeated rows cost nothing.
        y: `(n,)`.
        noise: starting standard deviation of the reward noise, by default the mode of its prior.
        fit_noise: False if `noise` is known and fixed.
        fit_mean: True to fit a constant mean of the process as well. Otherwise the mean is 0.
        prior: "hvarfner", "moderate", "related", or None for maximum likelihood.
        restarts: number of starts in addition to the given kernel.
        seed: of the random starts, and of the random parts of many points.
        bounds: (low, high) by kind of parameter, in place of the default bounds. Kinds are "lengthscale", "scale" (all
            scales), "noise" (a standard deviation) and "period". Further kinds are "angle" (lengthscales of `Periodic`,
            pure numbers) and "odds" (of `Mixture`, lambda / (1 - lambda)). Equal ends fix a value. Periods are fixed
            unless they have bounds here.
        fewest: distinct points below which nothing is fitted. The default is 3, since two say nothing about a
            lengthscale. With a prior, 1 and 2 are enough for the noise.
        stds: standard deviation of the noise of each reward where it is known, nan elsewhere, `(n,)`. The fitted noise
            is that of the others.

    Raises:
        InvalidInput: values that are not finite, shapes that do not fit, a noise that is not positive, wrong
            bounds.
    """
    from .likelihood import PRIORS, checked, merged, prior_of

    points, rewards = checked(X, y)
    if prior is not None:
        one_of("prior", prior, list(PRIORS), why="None is maximum likelihood.")
    check_kernel("kernel", kernel)
    fit_noise, fit_mean = flag("fit_noise", fit_noise), flag("fit_mean", fit_mean)
    starts = 1 + integer("restarts", restarts, low=0, high=MOST_RESTARTS)
    fewest = integer("fewest", fewest, low=1, why="It counts distinct points.")
    rng = Draws(f"fit {integer('seed', seed, low=0, high=LARGEST_SEED)}")
    if not isinstance(bounds, Mapping | None):
        raise InvalidInput(f"`bounds` is {shown(bounds)}: it must be a dict such as {{'noise': (0.01, 1.0)}}.")
    believed = prior_of(kernel, points, Standardization.of(rewards).std ** 2, prior, bounds or {})
    problem = _Problem(kernel, merged(points, rewards, stds), believed, fit_mean=fit_mean)
    theta = _given(problem, noise, fit_noise)
    reason = _nothing_to_fit(problem.data, rewards, fewest)
    if reason:
        warn(reason)
        return problem.result(theta, converged=False, message=reason)
    if not fit_noise:
        problem = replace(problem, prior=problem.prior.with_noise(theta[-1]))
    return _maximize(problem, theta, starts, rng)


def _constant(y: Array) -> bool:
    """Returns True if the rewards differ by no more than the rounding of their average."""
    return bool(np.ptp(y) <= 8.0 * np.finfo(np.float64).eps * np.abs(y).max())


def _nothing_to_fit(data: Data, y: Array, fewest: int) -> str:
    if len(data.means) < fewest:
        seen = f"there are {len(data.means)} distinct points, and a fit needs at least {fewest}"
    elif _constant(y):
        seen = "all rewards are equal"
    else:
        return ""
    return f"No fit: {seen}. The kernel stays as it is."


class _Climb(NamedTuple):
    theta: Array
    log_posterior: float
    converged: bool
    evaluations: int
    message: str


class _Point(NamedTuple):
    log_likelihood: float
    mean: float
    ridge: float
    loss: float
    gradient: Array  # of the loss


@final
@dataclass(frozen=True)
class _Problem:
    """The log posterior of theta."""

    kernel: Kernel
    data: Data
    prior: Prior
    fit_mean: bool = False

    @cached_property
    def _likelihood(self) -> Marginal:
        from .likelihood import Marginal

        return Marginal(self.kernel, self.data, ridges=RIDGES, fit_mean=self.fit_mean)

    @cached_property
    def _density(self) -> Density:
        return self.prior.density()

    @cached_property
    def _points(self) -> dict[bytes, _Point]:
        """Points evaluated so far by theta, since ends of climbs are asked for again."""
        return {}

    def evaluate(self, theta: Array) -> Evaluated:
        result = self._likelihood(theta)
        if result is None:
            kernel = self.kernel.with_log_parameters(theta[:-1])
            raise InvalidInput(
                f"{shown(kernel)} is not positive definite on these points, not even with a ridge of {RIDGES[-1]:g} "
                "times its prior variance. Usually it is a kernel of your own with an error in it."
            )
        return result

    def of_part(self, size: int, rng: Draws, *, spread: int = 0) -> _Problem:
        """Returns the problem on `size` of the points: `spread` spread-out points, and the others drawn at random."""
        apart = _spread(self.data.points, spread, rng)
        rest = np.setdiff1d(np.arange(len(self.data.means)), apart)
        drawn = rest[rng.permutation(len(rest))[: size - spread]]
        return replace(self, data=self.data.part(np.sort(np.concatenate([apart, drawn]))))

    def at(self, theta: Array) -> _Point:
        """Returns the likelihood and the loss, from memory where theta is known."""
        found = self._points.get(key := theta.tobytes())
        if found is None:
            value, slopes, mean, ridge = self.evaluate(theta)
            density, gradient = self._density(theta)
            found = self._points[key] = _Point(value, mean, ridge, -value - density, -slopes() - gradient)
        return found

    def loss(self, theta: Array) -> tuple[float, Array]:
        """Returns minus the log posterior and its gradient."""
        return self.at(theta)[-2:]

    def log_posterior(self, theta: Array) -> float:
        """Returns the log posterior alone, which costs a third of its gradient."""
        return self.evaluate(theta).value + self._density(theta)[0]

    def climb(self, start: Array, tolerance: float = TOLERANCE) -> _Climb:
        """Returns the local maximum that L-BFGS-B reaches from a start."""
        found = descend(self.loss, start, self.prior.low, self.prior.high, tolerance)
        converged = found.converged or self._is_flat(found.at)
        return _Climb(found.at, -found.value, converged, found.evaluations, found.message)

    def _is_flat(self, theta: Array) -> bool:
        """Returns True if the projected gradient is small.

        Rounding can end the line search where nothing is left to gain.
        """
        left = theta - np.clip(theta - self.loss(theta)[1], self.prior.low, self.prior.high)
        return bool(np.abs(left).max() <= 1e-2)

    def result(self, theta: Array, *, converged: bool, message: str) -> Fit:
        log_likelihood, mean, ridge, *_ = self.at(theta)
        if ridge:
            message += f" The covariance of the rewards was singular to rounding; a ridge of {ridge:g} was added."
        return Fit(
            kernel=self.kernel.with_log_parameters(theta[:-1]),
            noise=math.exp(0.5 * theta[-1]),
            mean=mean,
            log_likelihood=log_likelihood,
            log_posterior=log_likelihood + self._density(theta)[0],
            converged=converged,
            message=message,
        )


def _given(problem: _Problem, noise: float | None, fit_noise: bool) -> Array:
    """Returns theta of the given kernel and noise."""
    if noise is None and not fit_noise:
        raise InvalidInput("`fit_noise` is False and `noise` is not given: then it must be known.")
    if noise is None:
        return np.append(problem.kernel.log_parameters, problem.prior.mode[-1])
    std = number("noise", noise, low=0.0, open_low=True, why="It is the standard deviation of the reward noise.")
    return np.append(problem.kernel.log_parameters, 2.0 * math.log(std))


def _maximize(problem: _Problem, theta: Array, starts: int, rng: Draws) -> Fit:
    _keep_memory()
    prior, distinct = problem.prior, len(problem.data.means)
    draws = prior.draw(max(starts - 2, 0), rng)
    ways = np.clip(np.vstack([theta, prior.mode, draws])[:starts], prior.low, prior.high)
    if distinct > MOST:
        # A search crowds where rewards are good, and near points say little of lengthscales. With 200 of 600 points
        # drawn at random, lengthscales moved by a third from fit to fit, which cost regret. Hence half the points are
        # spread out. The others determine the noise.
        problem = problem.of_part(MOST, rng, spread=MOST // 2)
    rough = problem.of_part(PART, rng) if distinct > PART else problem
    climbs = [rough.climb(way, ROUGHLY) for way in ways]
    ends = [problem.climb(theta) for theta in _hopeful(problem, rough, climbs)]
    best = max(ends, key=lambda climb: climb.log_posterior)
    evaluations = sum(climb.evaluations for climb in [*climbs, *ends])
    what = "Converged" if best.converged else f"Not converged ({best.message.strip().rstrip('.')})"
    of = f" on {MOST} of {distinct} points" if distinct > MOST else ""
    message = f"{what}: best of {many(starts, 'start')}, {many(evaluations, 'evaluation')}{of}."
    return problem.result(best.theta, converged=best.converged, message=message)


def drawn(
    kernel: Kernel, X: Array, y: Array, stds: Array, *, noise: float, fit_noise: bool, prior: str,
    bounds: Mapping[str, tuple[float, float]], seed: int,
) -> list[tuple[Kernel, float, float]]:  # fmt: skip
    """Returns kernels, noise variances and means of the process, drawn from the density whose maximum `fit` finds.

    It is a density of theta, so its maximum is the fit. A random walk (Metropolis) begins at this kernel and noise.

    Returns:
        Nothing with fewer than three distinct points, with more than 125, or if all rewards are equal.
    """
    from .likelihood import merged, prior_of

    data, found = merged(X, y, stds), []
    if not FEWEST <= len(data.means) <= MOST_WALKED or _constant(y):
        return []
    problem, rng = _Problem(kernel, data, prior_of(kernel, X, 1.0, prior, bounds), fit_mean=True), Draws(f"walk {seed}")
    theta = _given(problem, noise, fit_noise)
    _, spread, low, high, *_ = problem.prior if fit_noise else problem.prior.with_noise(theta[-1])
    sizes = 0.3 * 7.0 ** rng.random((WALK, 1)) / math.sqrt(len(theta))
    moves = sizes * np.where(low < high, spread, 0.0) * rng.standard_normal((WALK, len(theta)))
    here = problem.log_posterior(theta := np.clip(theta, low, high))
    for step, (move, chance) in enumerate(zip(moves, np.log(rng.random(WALK)).tolist(), strict=True), start=1):
        other = np.clip(theta + move, low, high)
        if (other == theta + move).all() and (there := problem.log_posterior(other)) - here > chance:
            theta, here = other, there
        if step > FIRST and step % KEPT == 0:
            found.append((kernel.with_log_parameters(theta[:-1]), math.exp(theta[-1]), problem.evaluate(theta).mean))
    return found


def _hopeful(problem: _Problem, rough: _Problem, climbs: list[_Climb]) -> list[Array]:
    """Returns the ends of rough climbs from which to climb on, best first: of all points one, and else all hopeful."""
    if rough is not problem:
        return [max((climb.theta for climb in climbs), key=problem.log_posterior)]
    climbs = sorted(climbs, key=lambda climb: -climb.log_posterior)
    found: list[Array] = []
    for theta, value, *_ in climbs:
        hopeful = value >= climbs[0].log_posterior - HOPEFUL
        if hopeful and all(np.abs(theta - other).max() > NEAR for other in found):
            found.append(theta)
    return found


def _spread(points: Array, count: int, rng: Draws) -> IndexArray:
    """Returns a random point of `(u, d)` and then, repeatedly, the point farthest from those chosen, `(count,)`."""
    chosen = np.zeros(count, dtype=np.intp)
    spans = np.ptp(points, axis=0)
    scaled = points / np.where(spans > 0.0, spans, 1.0)
    apart = np.full(len(points), np.inf)
    for i in range(count):
        chosen[i] = first_largest(apart, 0.0) if i else rng.integers(len(points))
        apart = np.minimum(apart, np.sum((scaled - scaled[chosen[i]]) ** 2, axis=1))
    return chosen


def _keep_memory() -> None:
    """Makes the allocator keep freed blocks, rather than return them to the system one by one.

    Every evaluation allocates and frees a few (u, u) arrays. Fresh memory is cleared page by page, which was 40% of the
    time at u = 200. The C library of Linux keeps blocks smaller than the largest block freed so far (at most 32 MB).
    The block here is never written to, so it costs nothing. On other systems nothing happens.
    """
    np.empty(31 << 20, dtype=np.uint8)
