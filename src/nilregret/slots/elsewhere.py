"""Forced rounds away from a basin whose local search has ended, by a model of the trials outside of it.

| symbol | name | meaning | shape |
|---|---|---|---|
| S | `scale` | best reward less the median of the first ten, reward units | scalar |
| C | `centres` | best points of the exhausted basins | (k, d) |

Trials gather around the best point. Then whatever lies outside counts by its rank alone, and looks equally bad. So a
second model is fitted to the trials outside of the basin, in units of their own. Expected improvement over the best of
them finds the top of the next basin, as the search found that of the first.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, integer, number, settle, shown
from .._utils.dataclass import field, replace
from .._utils.process_setting import with_one_thread
from .._utils.randomness import Draws
from ..domains.domain import Box, Space
from ..domains.search.boxes import AcquisitionFunction
from ..domains.search.designs import mutated
from ..errors import InvalidInput
from ..gp import AtPoints
from ..gp.choice import posterior_at_points
from ..gp.fitting import MOST_RESTARTS
from ..kernels import Kernel
from ..serialize import LATER, description
from .base import Policy
from .envelope import Envelope
from .explore import COUNTED, MOST_ROUNDS, CoordinateSearch, Explore, Situation
from .refit import Refitted
from .scores import ExpectedImprovement, PointwiseScore

FIRST = 10  # The first answers, whose median and spread are the units of what is still to be won.
STILL = 5  # The last answers, which must have raised the best by at most
LITTLE = 0.005  # this share of S before the model is asked whether the local search has ended.
LOUD = 0.02  # The standard deviation of the noise, as a share of S, from which nothing is known to be exhausted.
RELATED = 0.5  # The correlation with a centre from which a point lies in its basin.
VALLEY = 0.02  # The depth, in standard deviations of the rewards, from which a valley separates two points.
WAY = np.linspace(0.0, 1.0, 9)[1:-1]  # The places between two points at which a valley is looked for.
FEWEST = 4  # The least number of trials outside from which something is learned.
RISE, SMALL_RISE = 0.02, 0.002  # Gains, as shares of S, below and above the best so far.
EVERY = 3  # The number of answers between two fits to the trials outside, and between two checks.
AROUND = 256  # The number of points around the best one at which an improvement is looked for.
RESOLUTION = 0.003  # Nats of log expected improvement that are not worth another step.
MOST_KEPT = 128  # The largest number of results that a run keeps.

PRIOR = "moderate"  # The prior of these fits, with which `LITTLE` and `hope` were chosen.

IMPROVEMENT = ExpectedImprovement()

Mask = npt.NDArray[np.bool_]


class _Away(NamedTuple):
    """A phase away from exhausted basins.

    Attributes:
        start: number of answers at its beginning.
        best: the best reward then.
        kernel: kernel of the fit to all answers then, which stays for the phase.
        centres: `(k, d)`.
        places: indices of the centres among the first answers, `(k,)`.
        inner: True for each of the first answers that lies in an exhausted basin, `(start,)`.
        kept: the latest result at the answers and at the candidates.
    """

    start: int
    best: float
    kernel: Kernel
    centres: Array
    places: IndexArray
    inner: Mask
    kept: dict[str, Any]

    def covers(self, points: Array) -> Mask:
        """Returns which points are related to a centre, `(m,)`."""
        return np.asarray((_correlation(self.kernel, points, self.centres) >= RELATED).any(axis=1))

    def outside(self, points: Array) -> Mask:
        """Returns which of the points answered so far, `(n, d)`, lie outside of the exhausted basins, `(n,)`."""
        if self.kept.get("points") is not points:
            inside = self.covers(points)
            inside[: self.start] |= self.inner
            self.kept["points"], self.kept["outside"] = points, ~inside
        found: Mask = self.kept["outside"]
        return found

    def exhausted(self, candidates: Array, points: Array, later: Array, inner: Mask) -> Mask:
        """Returns which candidates belong to the basins, by themselves or by the trial most related to them, `(m,)`.

        Results at points that are still the first ones are kept.

        Args:
            candidates: the same in each round, `(m, d)`.
            points: that were answered, `(n, d)`.
            later: other points tried, `(k, d)`.
            inner: which points, and then which later ones, lie in the basins, `(n + k,)`.
        """
        known: _Nearest | None = self.kept.get("nearest")
        if known is None or not np.array_equal(known.points, points[: len(known.points)]):
            self.kept["covered"] = self.covers(candidates)
            known = _Nearest(points[:0], np.full(len(candidates), -np.inf), np.zeros(len(candidates), dtype=np.intp))
        known = self.kept["nearest"] = known.then(points[len(known.points) :], self.kernel, candidates)
        return np.asarray(self.kept["covered"] | inner[known.then(later, self.kernel, candidates).places])


class _Nearest(NamedTuple):
    """The most related of some points for each candidate.

    Attributes:
        points: `(n, d)`.
        largest: prior correlation with the most related point, `(m,)`.
        places: its place among the points, `(m,)`.
    """

    points: Array
    largest: Array
    places: IndexArray

    def then(self, points: Array, kernel: Kernel, at: Array) -> _Nearest:
        """Returns the same for more points."""
        if not len(points):
            return self
        related = _correlation(kernel, at, points)
        first = related.argmax(axis=1)
        largest = np.take_along_axis(related, first[:, None], axis=1)[:, 0]
        nearer = largest > self.largest
        return _Nearest(
            np.concatenate([self.points, points]),
            np.where(nearer, largest, self.largest),
            np.where(nearer, len(self.points) + first, self.places),
        )


class _Walk(NamedTuple):
    """The state after the phases and checks that the first answers have decided.

    Attributes:
        points: of these answers, `(n, d)`.
        rewards: `(n,)`.
        centres: best points of the exhausted basins, `(k, d)`.
        at: least number of answers at the next check.
        rest: least number of rounds after the next phase.
    """

    points: Array
    rewards: Array
    centres: Array
    at: int
    rest: int

    def begins(self, points: Array, rewards: Array) -> bool:
        """Returns whether these are the first of all answers."""
        n = len(self.rewards)
        return np.array_equal(self.points, points[:n]) and np.array_equal(self.rewards, rewards[:n])


class _Models(NamedTuple):
    """The fits of a run to any of its answers."""

    policy: Policy
    seed: int
    kept: dict[Any, Any]
    restarts: int | None

    def keep(self, name: str, arrays: tuple[Array, ...], make: Callable[[], Any]) -> Any:
        """Returns what `make` returns, which depends on the name and the arrays alone. It is made once."""
        key = (name, *(array.tobytes() for array in arrays))
        if key not in self.kept:
            if len(self.kept) >= MOST_KEPT:
                self.kept.clear()
            self.kept[key] = make()
        return self.kept[key]

    def fit(self, points: Array, rewards: Array, **changes: Any) -> Refitted:
        """Returns kernel, noise and units for these answers."""
        policy = self.policy
        fitting = replace(policy.fitting, prior=PRIOR, standardize=True, **changes)
        noise = float(np.sqrt(policy.regularization))
        found: Refitted = fitting(policy.kernel, points, rewards, policy.sides, noise=noise, seed=self.seed)
        return found

    def fit_outside(self, points: Array, rewards: Array) -> Refitted:
        """Returns kernel, noise and units for the answers outside of the basins."""
        return self.fit(points, rewards, **({} if self.restarts is None else {"restarts": self.restarts}))


@final
@description(frozen=True, kw_only=True)
class Elsewhere(Explore):
    """Rounds that look for another basin once the local search has ended by its own belief.

    The local search has ended if no point around the best one promises more than a share `hope` of S. A model of all
    answers says so, in the units of the first ten. The basin then has the points related to the best one. It also has
    the trials above the median of those ten that no valley of the posterior mean separates from it. It stays as it is
    for the phase. Rounds of the phase play the largest expected improvement over the best trial outside, under a model
    of the trials outside alone. The phase ends after `stall` answers in a row without a gain outside. Then its best
    point is the centre of another exhausted basin, and at least `rest` rounds are ordinary ones. After a phase that won
    nothing there are twice as many as after the one before.

    Everything is a function of the answers by trial number. It has no effect on arms, under contexts or constraints,
    without fits, or where the noise exceeds a fiftieth of S.

    Attributes:
        after: answers before the first phase.
        hope: expected improvement, as a share of S, below which the local search has ended.
        stall: answers in a row without a gain outside that end a phase.
        rest: least number of rounds between two phases, doubled after each phase that has won nothing.
        until: answers after which no phase begins, since a fit costs more than a trial may be worth.
        otherwise: search of single parameters, which decides its rounds where there is no phase. None for no such
            search.
        restarts: number of random starts of each fit to the trials outside. None for that of the policy's fits.
    """

    after: int = 30
    hope: float = 5e-4
    stall: int = 10
    rest: int = 10
    until: int = 300
    otherwise: CoordinateSearch | None = None
    restarts: int | None = field(default=None, metadata=LATER)

    def __post_init__(self) -> None:
        for name, low in (("after", FIRST + STILL), ("stall", 1), ("rest", 1), ("until", 0)):
            settle(self, **{name: integer(name, getattr(self, name), low=low, high=MOST_ROUNDS, why=COUNTED)})
        if self.restarts is not None:
            settle(self, restarts=integer("restarts", self.restarts, low=0, high=MOST_RESTARTS))
        settle(self, hope=number("hope", self.hope, low=0.0, high=1.0, why="It is a share of what was won so far."))
        if not isinstance(self.otherwise, CoordinateSearch | None):
            raise InvalidInput(f"`otherwise` is {shown(self.otherwise)}: it must be a `CoordinateSearch` or None.")

    def due(self, uniform: int, history: int, randomness: Any) -> bool:
        """Returns True once there may be a phase, and in the rounds of the other search."""
        other = self.otherwise
        return history >= self.after or (other is not None and other.due(uniform, history, randomness))

    @property
    def score(self) -> PointwiseScore:
        """Score of the other search. In a phase there is one place, and nothing to decide."""
        return IMPROVEMENT if self.otherwise is None else self.otherwise.score

    def places(self, situation: Situation) -> Array:
        """Returns the point to play in a phase, the places of the other search, or none."""
        point = self._elsewhere(situation) if situation.history >= self.after else None
        if point is not None:
            return point[None]
        other = self.otherwise
        if other is not None and other.due(0, situation.history, situation.randomness):
            return other.places(situation)
        return np.zeros((0, situation.domain.dimension))

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the other search does not fit the policy."""
        if self.otherwise is not None:
            self.otherwise.check(policy)

    @with_one_thread
    def _elsewhere(self, situation: Situation) -> Array | None:
        """Returns the point to play if there is a phase, `(d,)`, or None."""
        policy = situation.policy
        if policy is None or not _suits(policy) or len(trials := situation.answers()) < self.after:
            return None
        points, rewards = np.array([trial.point for trial in trials]), np.array([trial.reward for trial in trials])
        kept = {} if situation.kept is None else situation.kept
        models = _Models(policy, situation.seed, kept, self.restarts)
        phase = self._phase(models, points, rewards)
        return None if phase is None else _best_outside(models, phase, points, rewards, situation)

    def _phase(self, models: _Models, points: Array, rewards: Array) -> _Away | None:
        """Returns the phase after these answers, or None."""
        middle = float(np.median(rewards[:FIRST]))
        walk: _Walk | None = models.kept.get(self)
        if walk is None or not walk.begins(points, rewards):
            walk = _Walk(points[:0], rewards[:0], points[:0], self.after, self.rest)
        phase: _Away | None = None
        while (begin := self._still(rewards, middle, walk.at)) is not None:
            some = points[:begin], rewards[:begin], walk.centres
            phase = models.keep("phase", some, partial(self._begun, models, *some))
            if phase is None:
                walk = walk._replace(points=some[0], rewards=some[1], at=begin + max(EVERY, begin // 10))
                continue
            end, last = self._end(phase, points, rewards, middle)
            if end is None:
                break
            centres = phase.centres if last is None else np.concatenate([phase.centres, points[last][None]])
            rest = self.rest if rewards[:end].max() > phase.best else 2 * walk.rest
            walk = _Walk(points[:end], rewards[:end], centres, end + rest, rest)
        models.kept[self] = walk
        return None if begin is None else phase

    def _still(self, rewards: Array, middle: float, least: int) -> int | None:
        """Returns the first number of answers, from `least`, of which the last have won little, or None."""
        counts = np.arange(least, min(len(rewards), self.until) + 1)
        best = np.maximum.accumulate(rewards)
        now = best[counts - 1]
        still = (now > middle) & (now - best[counts - 1 - STILL] <= LITTLE * (now - middle))
        return int(counts[still.argmax()]) if still.any() else None

    def _begun(self, models: _Models, points: Array, rewards: Array, centres: Array) -> _Away | None:
        """Returns the phase that begins after these answers, or None if the local search goes on."""
        values, unit = _in_first_units(rewards)
        fitted = models.fit(points, values, warp="none", restarts=0)
        unit *= fitted.scale.std
        scale = float(rewards.max() - np.median(rewards[:FIRST]))
        if np.sqrt(fitted.regularization) * unit > LOUD * scale:
            return None
        posterior = _posterior(fitted, points, values)
        means = posterior.mean(points)
        top = points[int(means.argmax())]
        around = mutated(models.policy.domain, top[None], AROUND, Draws(f"mutations {models.seed}"))
        promised = IMPROVEMENT(Envelope(*posterior.predict(around), 0.0), float(means.max())).max()
        if np.exp(promised) * unit > self.hope * scale:
            return None
        known = _correlation(fitted.kernel, centres, top[None])[:, 0] >= RELATED
        centres = np.concatenate([centres[~known], top[None]])
        inner = (values > 0.0) & _joined(posterior, points, means, centres)
        places = (points == centres[:, None]).all(axis=2).argmax(axis=1)
        phase = _Away(len(rewards), float(rewards.max()), fitted.kernel, centres, places, inner, {})
        return phase if int(phase.outside(points).sum()) >= FEWEST else None

    def _end(self, phase: _Away, points: Array, rewards: Array, middle: float) -> tuple[int | None, int | None]:
        """Returns the number of answers at which a phase ended, or None, and the best trial outside then, if any."""
        after = np.maximum.accumulate(np.where(phase.outside(points), rewards, -np.inf))
        best, fails = -np.inf, 0
        for count, top in enumerate(after[phase.start - 1 :].tolist(), start=phase.start):
            won = top > best + (RISE if top < phase.best else SMALL_RISE) * (phase.best - middle)
            best, fails = (top, 0) if won else (best, fails + 1)
            if fails >= self.stall:
                return count, int(after.searchsorted(top))
        return None, None


def _suits(policy: Policy) -> bool:
    """Returns whether one kernel for the points alone is fitted to the rewards alone, which stay as they are."""
    plain = policy.context is None and policy.constraints is None and policy.objective.is_reward
    return plain and policy.fitting is not None and isinstance(policy.domain, Box | Space)


def _best_outside(models: _Models, phase: _Away, points: Array, rewards: Array, situation: Situation) -> Array | None:
    """Returns the point outside of the basins with the largest expected improvement there, `(d,)`, or None."""
    outside, open_ = phase.outside(points), situation.open()
    seen = np.flatnonzero(outside[: phase.start + EVERY * ((len(points) - phase.start) // EVERY)])
    some = points[seen], rewards[seen]
    fitted = models.keep(f"outside {models.restarts}", some, partial(models.fit_outside, *some))
    posterior = _posterior(fitted, points[outside], rewards[outside])
    means = posterior.mean(points[outside])
    if len(open_):
        posterior.extend(open_, posterior.mean(open_))
    tried = np.concatenate([points, open_])
    inner = np.concatenate([~outside, phase.covers(open_)])

    def exhausted(at: Array) -> Mask:
        """Returns which points belong to the basins, by themselves or by the trial most related to them."""
        related = _correlation(phase.kernel, at, tried)
        return np.asarray((related[:, phase.places] >= RELATED).any(axis=1) | inner[related.argmax(axis=1)])

    domain, search = situation.domain, models.policy.search
    surface = _improvement(posterior, float(means.max()), exhausted)
    candidates = models.keep("candidates", (), lambda: search.candidate_points(domain, situation.seed))
    scores = IMPROVEMENT(Envelope(*posterior.predict(candidates), 0.0), float(means.max()))
    scores[phase.exhausted(candidates, points, open_, inner)] = -np.inf
    if not np.isfinite(scores).any():
        return None
    found = search.maximize(
        surface, domain, candidates=candidates, scores=scores,
        incumbents=points[outside][np.argsort(-means, kind="stable")[: search.incumbents]],
        rng=lambda: situation.randomness.draws,
    )  # fmt: skip
    placed: Array = search.moved_apart(
        found.point.copy(), surface, domain, candidates=candidates, scores=scores, tried=tried,
        rng=lambda: situation.randomness.draws,
    )  # fmt: skip
    again = (tried == placed).all(axis=1).any()  # Nothing else is left outside.
    return None if again or not np.isfinite(surface.values(placed[None]))[0] else placed


def _improvement(posterior: AtPoints, best: float, excluded: Callable[[Array], Mask]) -> AcquisitionFunction:
    """Returns the logarithm of the expected improvement over a value, minus infinity at excluded points."""

    def values(points: Array) -> Array:
        return np.where(excluded(points), -np.inf, IMPROVEMENT(Envelope(*posterior.predict(points), 0.0), best))

    def slopes(points: Array) -> tuple[Array, Array]:
        at, gone = posterior.gradients(points), excluded(points)
        scores, by_mean, by_std = IMPROVEMENT.with_partials(Envelope(at.mean, at.std, 0.0), best)
        gradient = by_mean[:, None] * at.mean_gradient + by_std[:, None] * at.std_gradient
        return np.where(gone, -np.inf, scores), np.where(gone[:, None], 0.0, gradient)

    return AcquisitionFunction(values, slopes, RESOLUTION)


def _in_first_units(rewards: Array) -> tuple[Array, float]:
    """Returns rewards less the median of the first, in units of their better half, and that unit.

    Rewards below that median count by their ranks, as in `nilregret.gp.warping.half_rank`. The units stay as they are
    while trials gather near the best, so that a posterior deviation means the same at the end.
    """
    from scipy.special import ndtri  # slow to import

    first = rewards[:FIRST]
    middle = float(np.median(first))
    unit = float(np.sqrt(np.mean(np.square(first[first >= middle] - middle)))) or float(np.std(rewards)) or 1.0
    values, bad = (rewards - middle) / unit, rewards < middle
    _, places, counts = np.unique(rewards[bad], return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - 0.5 * (counts - 1)  # Equal rewards have the mean of theirs.
    values[bad] = ndtri((ranks[places] - 0.5) / (2.0 * bad.sum()))
    return values, unit


def _posterior(fitted: Refitted, points: Array, rewards: Array) -> AtPoints:
    """Returns the posterior of a fit after these answers, in the units of the fit."""
    posterior = posterior_at_points(fitted.kernel, points.shape[1], fitted.regularization)
    posterior.extend(points, fitted.targets(rewards))
    return posterior


def _correlation(kernel: Kernel, points: Array, others: Array) -> Array:
    """Returns prior correlations, `(m, k)`."""
    same = kernel.variance
    variances = kernel.diagonal(points)[:, None] * kernel.diagonal(others) if same is None else same * same
    return np.asarray(kernel(points, others) / np.sqrt(np.maximum(variances, 1e-300)))


def _joined(posterior: AtPoints, points: Array, means: Array, centres: Array) -> Mask:
    """Returns which points, of these posterior means, no valley of the mean separates from a centre, `(n,)`."""
    joined = np.zeros(len(points), dtype=bool)
    for centre, height in zip(centres, posterior.mean(centres), strict=True):
        way = points[:, None] + WAY[:, None] * (centre - points)[:, None]
        lowest = posterior.mean(way.reshape(-1, points.shape[1])).reshape(len(points), -1).min(axis=1)
        joined |= lowest >= np.minimum(means, height) - VALLEY
    return joined
