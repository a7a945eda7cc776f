"""The posterior of one function: mean of the observed trials, variance of all trials asked for.

Usually one posterior has both. With hallucination (Desautels, Krause & Burdick 2014), pending trials count for the
variance before their rewards are observed. Then a second posterior holds every trial asked for, with targets of 0. The
variance is taken from this one, and its samples are samples of f - mu.

| symbol | name | meaning |
|---|---|---|
| mu | `observed` | posterior of the trials that have a value |
| sigma | `with_pending` | posterior of all trials, pending ones included; equal to `observed` without pending trials |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast, final

import numpy as np

from .._utils.checks import Array, IndexArray
from .._utils.copying import independent
from .._utils.process_setting import with_one_thread
from .._utils.randomness import Rng
from ..domains.domain import Arms
from .arms import ArmIndices, ArmPosterior
from .binomial_counts import RatePosterior
from .drifting import Chain, OutOfSequencePosterior
from .mixture import AnyPath, Averaged, AveragedArms, AveragedPoints, path_of
from .points import PointPosterior, Related
from .protocol import AtPoints, Gradients, Posterior, RevisablePosterior
from .tidal import TidalPosterior

P = TypeVar("P", bound=Posterior)

MORE = 10  # multiple of some points that all points must exceed for predictions by some to pay


def _variance_only(posterior: P, observed: P) -> P:
    if isinstance(posterior, Averaged) and isinstance(observed, Averaged):
        return cast(P, posterior.following(observed))
    if isinstance(posterior, OutOfSequencePosterior | RatePosterior | TidalPosterior):
        return cast(P, posterior.variance_only())
    return posterior.copy()


class RepeatedPlays(NamedTuple):
    """Several plays of one cell in a row, whose target is the average, or one play with a noise of its own.

    Attributes:
        cell: an arm of a table, or a row.
        times: number of plays.
        scatter: sum of squared deviations from the average, in the belief's units.
        weight: lambda divided by the noise variance of a play.
    """

    cell: Any
    times: int = 1
    scatter: float = 0.0
    weight: float = 1.0

    def change(self, posterior: Any, value: float, *, add: bool) -> None:
        """Adds these plays to a posterior, or removes them. One play is an observation of any posterior."""
        act = posterior.append if add else posterior.forget
        if self.times == 1:
            act(self.cell, value, weight=self.weight)
        else:
            act(self.cell, value, weight=self.weight, count=self.times, scatter=self.scatter)


class Belief(ABC, Generic[P]):
    """A posterior to which trials are added with a value, or with None to shrink only the variance.

    Args:
        posterior: without observations.
        apart: True if trials may be added without a value.
    """

    def __init__(self, posterior: P, *, apart: bool = False) -> None:
        self.observed = posterior
        self.with_pending = _variance_only(posterior, posterior) if apart else posterior
        self.apart = apart

    @final
    def leave_pending(self) -> None:
        """Forgets the trials without a value."""
        self.with_pending, self.apart = self.observed, False

    @final
    def put(self, cell: Any, value: float | None) -> None:
        """Adds a trial at a cell, which is an arm of a table, a row, or repeated plays of one."""
        if type(cell) is RepeatedPlays:
            if self.apart:
                cell._replace(scatter=0.0).change(self.with_pending, 0.0, add=True)
            if value is not None:
                cell.change(self.observed, value, add=True)
            return
        if self.apart:
            self.with_pending.append(cell, 0.0)
        if value is not None:
            self.observed.append(cell, value)

    def revise(self, cell: Any, old: float | None, new: float | None) -> None:
        """Replaces the target of a trial that was added with `old`."""
        if old == new:
            return
        if type(cell) is RepeatedPlays:
            if old is not None:
                cell.change(self.observed, old, add=False)
            if new is not None:
                cell.change(self.observed, new, add=True)
            return
        if old is None and new is not None:
            self.observed.append(cell, new)
            return
        # Policies that revise targets are made only with a posterior that can.
        known = cast(RevisablePosterior, self.observed)
        if new is None:
            known.forget(cell, cast(float, old))
        else:
            known.revise(cell, cast(float, old), new)

    def revise_all(self, cells: Sequence[Any], old: Sequence[float | None], new: Sequence[float | None]) -> None:
        """Replaces the targets of several trials. Trials with a value before and after move the mean once."""
        together = []
        for cell, before, after in zip(cells, old, new, strict=True):
            if before is None or after is None or type(cell) is RepeatedPlays:
                self.revise(cell, before, after)
            elif before != after:
                together.append((cell, before, after))
        if together:
            cast(RevisablePosterior, self.observed).revise_all(*zip(*together, strict=True))

    def drop(self, cell: Any, value: float | None) -> None:
        """Removes a trial that was added with this value."""
        if type(cell) is RepeatedPlays:
            if self.apart:
                cell._replace(scatter=0.0).change(self.with_pending, 0.0, add=False)
            if value is not None:
                cell.change(self.observed, value, add=False)
            return
        if self.apart:
            cast(RevisablePosterior, self.with_pending).forget(cell, 0.0)
        if value is not None:
            cast(RevisablePosterior, self.observed).forget(cell, value)

    @final
    @property
    def spread(self) -> P:
        """Posterior that the variance is taken from."""
        # Without pending trials both posteriors have the same variance, and only the observed one rounds consistently.
        if self.with_pending.count == self.observed.count:
            return self.observed
        if isinstance(self.with_pending, OutOfSequencePosterior | RatePosterior | TidalPosterior):
            return cast(P, self.with_pending.deviations_from(cast(Any, self.observed)))
        return self.with_pending

    @final
    def copy(self) -> Self:
        """Returns an independent belief in the same state."""
        other = independent(self, ("observed",))
        other.with_pending = self._copy_with_pending(other.observed) if self.apart else other.observed
        return other

    def _copy_with_pending(self, observed: P) -> P:
        known = self.with_pending
        return _variance_only(known, observed) if isinstance(known, Averaged) else known.copy()

    joins: ClassVar[bool] = False  # whether several calls of `put_all` may be made one, to the bit

    @abstractmethod
    def put_all(self, cells: Sequence[Any], values: Sequence[float | None]) -> None:
        """Takes in several trials, in order."""

    @abstractmethod
    def fill_all(self, cells: Sequence[Any], values: Sequence[float | None]) -> None:
        """Gives values to trials that were taken in without one."""

    def begin_with(self, asked: Sequence[Any], answered: Sequence[Any], values: Sequence[float]) -> None:
        """Adds all known trials to an empty belief.

        Args:
            asked: cells of all trials, in the order of the questions.
            answered: cells of the trials with a value, in the order of the answers.
            values: these values.
        """
        if self.apart:
            self.put_all(asked, [None] * len(asked))
            self.fill_all(answered, values)
        else:
            self.put_all(answered, values)

    def advance(self, round_: int) -> None:
        """Sets the round of the trials that are asked for from now on."""

    @abstractmethod
    def predict(self, cells: Any = None) -> tuple[Array, Array]:
        """Returns mean and standard deviation of f, each `(n,)`, as fresh arrays."""

    @abstractmethod
    def mean(self, cells: Any) -> Array:
        """Returns the mean, `(n,)`."""

    @final
    def laws_of_draw(self, cells: Any, *, width: float) -> list[tuple[float, Array, Array]]:
        """Returns the normal laws that a draw from GP(mu, width^2 cov) at these cells is a mixture of.

        Each has its share, its mean `(n,)`, and its covariance `(n, n)`.
        """
        mean = self.mean(cells)
        return [
            (share, mean + width * apart, width**2 * covariance)
            for share, apart, covariance in self.spread.parts(cells)
        ]

    @abstractmethod
    def draw_at(self, rng: Rng, cells: Any) -> Array:
        """Returns one function drawn from the posterior, at cells of which some may coincide, `(n,)`."""

    @abstractmethod
    def pull(self, cells: Any, others: Sequence[Any]) -> Array:
        """Returns the derivatives of the mean at cells by the targets at others, `(n, k)`.

        d mu(x) / d y_s = cov(x, x_s) / lambda, with the covariance of the observed trials.
        """


@final
class TableBelief(
    Belief[ArmPosterior | OutOfSequencePosterior | Chain | RatePosterior | AveragedArms | TidalPosterior]
):
    """A belief over finitely many cells, given by index."""

    joins: ClassVar[bool] = True

    def put_all(self, cells: Sequence[int | RepeatedPlays], values: Sequence[float | None]) -> None:
        """Adds several trials, with the same result to the bit as one by one, and faster if they are many."""
        if len(cells) == 1 and not self.apart and values[0] is not None and type(cells[0]) is int:  # This is usual.
            self.observed.append(cells[0], values[0])
            return
        if len(cells) > 1 and not self.apart and all(type(cell) is int for cell in cells):
            self.observed.append_all(cast("Sequence[int]", cells), cast("Sequence[float]", values))
            return
        for cell, value in zip(cells, values, strict=True):
            self.put(cell, value)

    def begin_with(self, asked: Sequence[Any], answered: Sequence[Any], values: Sequence[float]) -> None:
        """Adds all known trials to an empty belief, which on many arms costs less than one by one."""
        if any(type(cell) is RepeatedPlays for cell in asked):
            super().begin_with(asked, answered, values)
            return
        if self.apart:
            self.with_pending.begin_with(asked, [0.0] * len(asked))
        self.observed.begin_with(answered, values)

    def fill_all(self, cells: Sequence[int | RepeatedPlays], values: Sequence[float | None]) -> None:
        """Gives values to trials that were taken in without one."""
        for cell, value in zip(cells, values, strict=True):
            self.revise(cell, None, value)

    def predict(self, cells: ArmIndices | None = None) -> tuple[Array, Array]:
        """Returns mean and standard deviation of f at these cells, or at all."""
        mean, std = self.observed.predict(cells)
        if self.apart and (spread := self.spread) is not self.observed:
            std = spread.predict(cells)[1]
        return mean, std

    def mean(self, cells: ArmIndices) -> Array:
        """Returns the mean, `(n,)`."""
        return self.observed.predict(cells)[0]

    def pull(self, cells: ArmIndices | None, others: Sequence[Any]) -> Array:
        """Returns the derivatives at these cells, or at all, `(n, k)`."""
        known = self.observed
        at = np.arange(len(known.prior.points)) if cells is None else cells
        return known.cross_covariance(at, np.asarray(others, dtype=np.intp)) / known.regularization

    def draw(self, rng: Rng, cells: ArmIndices | None, *, width: float) -> Array:
        """Returns a draw from GP(mu, width^2 cov), jointly at these cells or at all, `(n,)`."""
        mean, _ = self.observed.predict(cells)
        spread = self.spread
        deviation = spread.sample(rng, cells)[0]
        if spread is self.observed:  # Otherwise the mean of `spread` is 0.
            deviation -= mean
        return np.asarray(mean + width * deviation)

    def draw_at(self, rng: Rng, cells: ArmIndices) -> Array:
        """Returns one function drawn from the posterior, `(n,)`."""
        each, places = np.unique(np.asarray(cells), return_inverse=True)
        return self.draw(rng, each, width=1.0)[places]

    def advance(self, round_: int) -> None:
        """Sets the round of the trials that are asked for from now on, if f drifts."""
        for posterior in (self.observed, self.with_pending) if self.apart else (self.observed,):
            if isinstance(posterior, OutOfSequencePosterior):
                posterior.advance(round_)


@final
class PointBelief(Belief[AtPoints | AveragedPoints]):
    """A belief over rows of coordinates."""

    _places: tuple[IndexArray, int, int] = np.zeros(0, dtype=np.intp), 0, 0  # of `observed` in `with_pending`

    @with_one_thread
    def put_all(self, cells: Sequence[Array | RepeatedPlays], values: Sequence[float | None]) -> None:
        """Takes in several trials at once, which costs less than one by one. Runs of plays enter one by one."""
        if any(type(cell) is RepeatedPlays for cell in cells):
            for cell, value in zip(cells, values, strict=True):
                self.put(cell, value)
            return
        rows = np.array(cells)
        if self.apart:
            self.with_pending.extend(rows, np.zeros(len(rows)))
        self._fill(rows, values)

    @with_one_thread
    def fill_all(self, cells: Sequence[Array | RepeatedPlays], values: Sequence[float | None]) -> None:
        """Gives values to trials that were taken in without one."""
        if any(type(cell) is RepeatedPlays for cell in cells):
            for cell, value in zip(cells, values, strict=True):
                self.revise(cell, None, value)
            return
        self._fill(np.array(cells), values)

    def _fill(self, rows: Array, values: Sequence[float | None]) -> None:
        valued = [i for i, value in enumerate(values) if value is not None]
        if valued:
            self.observed.extend(rows[valued], [cast(float, values[i]) for i in valued])

    @with_one_thread
    def revise(self, cell: Any, old: float | None, new: float | None) -> None:
        """Replaces the value of a trial."""
        super().revise(cell, old, new)

    @with_one_thread
    def revise_all(self, cells: Sequence[Any], old: Sequence[float | None], new: Sequence[float | None]) -> None:
        """Replaces the values of several trials."""
        super().revise_all(cells, old, new)

    @with_one_thread
    def drop(self, cell: Any, value: float | None) -> None:
        """Removes a trial."""
        super().drop(cell, value)

    def add_arms(self, arms: Arms) -> bool:
        """Takes over more arms, if linear models of arms hold the belief (see `ContextPosterior.add_arms`)."""
        return bool(cast(Any, self.observed).add_arms(arms))

    def predict(self, cells: Any = None) -> tuple[Array, Array]:
        """Returns mean and standard deviation of f at rows `(n, d)`."""
        spread = self.spread
        if spread is self.observed:
            return spread.predict(cells)
        if (weights := self.weights) is not None:
            return cast(PointPosterior, spread).predict(cells, weights=weights)
        return self.observed.mean(cells), spread.predict(cells)[1]

    @property
    def predict_roughly(self) -> Callable[..., tuple[Array, Array]] | None:
        """A function of rows that returns the mean and an approximate std, or None if `predict` is as quick.

        Its argument `given` is that of `PointPosterior.predict_roughly`.
        """
        spread, weights = self.spread, self.weights
        if not isinstance(spread, PointPosterior) or not spread.large:
            return None
        if weights is None and spread is not self.observed:
            return None
        return partial(spread.predict_roughly, weights=weights)

    def related(self, rows: Array, count: int) -> Related | None:
        """Returns `count` observed points from which the std around rows `(m, d)` is computed roughly.

        None if there are not more than `MORE` times as many, or if `predict_roughly` is None.
        """
        spread = self.spread
        if self.predict_roughly is None or not isinstance(spread, PointPosterior) or spread.rank <= MORE * count:
            return None
        return spread.related(rows, count)

    @property
    def leading(self) -> Callable[[Array, Array], Array | None] | None:
        """The method of that name if linear models of arms hold the belief (see `ContextPosterior.leading`)."""
        return getattr(self.observed, "leading", None)

    @property
    def weights(self) -> Array | None:
        """Weights of the kernel at the points of `spread` in the mean, `(n,)`. None if they are those of `spread`.

        None, too, if a mean is no sum of kernels at the observed points. With them one matrix of covariances serves the
        mean and the variance.
        """
        known, spread = self.observed, self.spread
        if spread is known or not (isinstance(known, PointPosterior) and isinstance(spread, PointPosterior)):
            return None
        removals = known.removals, spread.removals
        places = self._places[0] if self._places[1:] == removals else self._places[0][:0]
        if len(places) < known.rank:
            places = np.concatenate([places, spread.places(known.points[len(places) :])])
            self._places = places, *removals
        weights = np.zeros(spread.rank)
        weights[places] = known.weights
        return weights

    def mean(self, cells: Array) -> Array:
        """Returns the mean, `(n,)`."""
        return self.observed.mean(cells)

    @property
    def waiting(self) -> Array:
        """Rows that only lower the variance, `(k, d)`."""
        rows = self.with_pending.points
        if self.with_pending.count == self.observed.count:
            return rows[:0]
        known = {row.tobytes() for row in self.observed.points}
        return rows[[row.tobytes() not in known for row in rows]]

    def pull(self, cells: Array, others: Sequence[Any]) -> Array:
        """Returns the derivatives at rows `(n, d)` by the targets at k others, `(n, k)`."""
        return self.observed.cross_covariance(cells, np.array(others)) / self.observed.regularization

    def gradients(self, rows: Array, given: Related | None = None) -> Gradients:
        """Returns mean and standard deviation at rows `(n, d)`, with their gradients.

        Args:
            rows: `(n, d)`.
            given: the points from which the std is computed (see `related`), in place of all observed ones.
        """
        spread = self.spread
        if (weights := self.weights) is not None or given is not None:
            return cast(PointPosterior, spread).gradients(rows, weights=weights, given=given)
        at = spread.gradients(rows)
        if spread is self.observed:
            return at
        mean, slope = self.observed.mean_gradient(rows)
        return at._replace(mean=mean, mean_gradient=slope)

    def draw_at(self, rng: Rng, cells: Array) -> Array:
        """Returns one function drawn from the posterior, `(n,)`."""
        return self.path(rng, width=1.0)(cells)

    def path(self, rng: Rng, *, width: float) -> SampledFunction:
        """Returns a function drawn from GP(mu, width^2 cov)."""
        spread = self.spread
        return SampledFunction(path_of(spread, rng, width), None if spread is self.observed else self.observed)


@final
class SampledFunction:
    """A sample path, plus the mean if the path is a draw of f - mu.

    Args:
        path: the sample path.
        mean: posterior whose mean is added, or None.
    """

    def __init__(self, path: AnyPath, mean: AtPoints | AveragedPoints | None) -> None:
        self._path, self._mean = path, mean

    def __call__(self, rows: Array) -> Array:
        """Returns values at rows `(n, d)`."""
        drawn = self._path(rows)
        return drawn if self._mean is None else drawn + self._mean.mean(rows)

    def slopes(self, rows: Array) -> tuple[Array, Array]:
        """Returns values `(n,)` and gradients `(n, d)`."""
        drawn, gradients = self._path.slopes(rows)
        if self._mean is not None:
            means, mean_gradients = self._mean.mean_gradient(rows)
            drawn, gradients = drawn + means, gradients + mean_gradients
        return drawn, gradients
