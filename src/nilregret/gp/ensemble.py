"""Posteriors of earlier studies beside that of this one, weighted by how well each ranks the new rewards.

| symbol | name | meaning | shape |
|---|---|---|---|
| mu_0 | `each[0]` | posterior of this study | |
| mu_i | `each[i]` | posterior of earlier study i, which no longer learns | |
| y | | average rewards at the points of this study | (n,) |
| L_i | | pairs of points that mu_i ranks the other way than y does | (n, n) |
| w_i | `rank_shares` | share of the resampled points on which study i has the smallest loss | (m + 1,) |

These are the ranking losses of Feurer, Letham & Bakshy 2018, "Scalable meta-learning for Bayesian optimization using
ranking-weighted Gaussian process ensembles". Losses are resampled by the bootstrap, as in the later version (Feurer,
Letham, Hutter & Bakshy 2022), and not by draws of the posterior. Ranks need no common unit, so a study with other
rewards is as good as one with the same.

This study is judged by its predictions at points that were left out: with M = K + lambda N^{-1} and alpha = M^{-1} y,
mu_0 without point j is y_j - alpha_j / (M^{-1})_jj there. Otherwise it would rank its own points best of all.

A study counts nothing if its median loss is beyond the median of the losses of this study. So many useless studies do
not win together by chance, which is the paper's guard against weight dilution. The paper takes the 95% quantile, which
was measured to hold this study back (docs/earlier-studies.md). Of equal losses the study's own counts, and
else that of the first study.

Other departures: the posterior is the mixture of the posteriors, whose variance grows if they disagree (`mixture`). In
the paper it is a sum of independent processes, of variance sum_i w_i^2 s_i^2. Only the 200 points with the best rewards
are ranked. Before three points all studies have the same share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar, final

import numpy as np

from .._utils.checks import Array, IndexArray, finite_array, frozen, number, points_array, settle, shown
from .._utils.serialize import described
from ..errors import InvalidInput
from ..kernels import Kernel
from .at_points import AtPoints
from .points import PointPosterior
from .protocol import RevisablePosterior

SAMPLES = 200  # bootstrap samples of the points
JUDGED = 200  # most points by which studies are judged: those of this study with the best rewards
FEWEST = 3  # points of this study before which all studies have the same share

Q = TypeVar("Q", bound=RevisablePosterior)


@final
@described
@dataclass(frozen=True, kw_only=True, eq=False)
class EarlierStudy:
    """The posterior of an earlier study, by what determines it.

    Attributes:
        name: of the study.
        points: its points in the coordinates of the new domain, `(n, d)`. Ranges may differ, so they may lie outside.
        targets: its rewards in the units of its own fit, `(n,)`.
        kernel: its fitted kernel, on the columns of the new domain that it knows.
        regularization: lambda of its fit.
    """

    name: str
    points: Array = field(repr=False)
    targets: Array = field(repr=False)
    kernel: Kernel
    regularization: float

    def __post_init__(self) -> None:
        points, targets = points_array("points", self.points), finite_array("targets", self.targets)
        if targets.shape != (len(points),) or not len(points):
            raise InvalidInput(f"`targets` has shape {targets.shape}: it must be ({len(points)},), one for each point.")
        if not isinstance(self.name, str):
            raise InvalidInput(f"`name` is {shown(self.name)}: it must be a text.")
        if not isinstance(self.kernel, Kernel):
            raise InvalidInput(f"`kernel` is {shown(self.kernel)}: it must be the fitted kernel of the study.")
        ridge = number("regularization", self.regularization, low=0.0, open_low=True)
        settle(self, points=frozen(points.copy()), targets=frozen(targets.copy()), regularization=ridge)
        settle(self, name=str(self.name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EarlierStudy) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.name, self.points.tobytes(), self.targets.tobytes(), self.kernel, self.regularization

    def posterior(self) -> PointPosterior:
        """Returns the posterior."""
        made = PointPosterior(self.kernel, self.points.shape[1], self.regularization)
        made.extend(self.points, self.targets)
        return made


class Ensemble(NamedTuple):
    """Earlier studies beside the posterior of this one, in the place of a `Bank`.

    Attributes:
        kernel: the kernel of this study.
        earlier: the earlier studies.
    """

    kernel: Kernel
    earlier: tuple[EarlierStudy, ...]

    @property
    def learners(self) -> int:
        """1, since only the first posterior learns."""
        return 1

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernel of this study, whichever posterior leads."""
        return (self.kernel,) * (1 + len(self.earlier))

    @property
    def factors(self) -> tuple[float, ...]:
        """No lengthscale is multiplied."""
        return (1.0,) * (1 + len(self.earlier))

    def variances(self, regularization: float) -> tuple[float, ...]:
        """Returns lambda of the posterior that learns."""
        return (regularization,)

    def posteriors(self, make: Callable[[Kernel, float], Q], regularization: float) -> list[Q]:
        """Returns the posterior of this study, then those of the earlier ones."""
        return [make(self.kernel, regularization), *(study.posterior() for study in self.earlier)]  # type: ignore[list-item]

    def log_shares(self, each: Sequence[Any]) -> Array:
        """Returns the logarithms of the shares, `(m + 1,)`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(rank_shares(each[0], each[1:])))


def rank_shares(own: AtPoints, earlier: Sequence[AtPoints]) -> Array:
    """Returns the share of each posterior, this study's first, `(m + 1,)`, adding up to 1."""
    n = len(own.points)
    if n < FEWEST:
        return np.full(1 + len(earlier), 1.0 / (1 + len(earlier)))
    rewards = own.average
    rows = np.sort(np.argsort(-rewards, kind="stable")[:JUDGED])
    points, rewards = own.points[rows], rewards[rows]
    draws = np.random.default_rng(n).multinomial(len(rows), np.full(len(rows), 1.0 / len(rows)), size=SAMPLES)
    means = [study.mean(points) for study in earlier]
    losses = np.array([_losses(draws, left_out(own, rows), rewards, own=True)])
    losses = np.vstack([losses, *(_losses(draws, mean, rewards, own=False) for mean in means)])
    middle = np.median(losses, axis=1)
    losses[middle > middle[0]] = np.inf
    return np.bincount(losses.argmin(axis=0), minlength=len(losses)) / SAMPLES


def _losses(draws: IndexArray, means: Array, rewards: Array, *, own: bool) -> Array:
    """Returns the number of misranked pairs among the resampled points, `(SAMPLES,)`.

    The prediction of this study at a point that is left out is compared with the rewards of the other points.
    """
    better = means[:, None] > (rewards if own else means)[None, :]
    wrong = (better != (rewards[:, None] > rewards[None, :])) & (rewards[:, None] != rewards[None, :])
    return np.asarray(((draws @ wrong) * draws).sum(axis=1), dtype=np.float64)


def left_out(own: AtPoints, rows: IndexArray) -> Array:
    """Returns the mean at each of some observed points without what was observed there, `(k,)`."""
    M = own.kernel(own.points, own.points)
    M[np.diag_indices(len(M))] += own.regularization / own.plays
    inverse = np.linalg.inv(M)
    return np.asarray((own.average - inverse @ own.average / inverse.diagonal())[rows])
