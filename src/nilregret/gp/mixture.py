"""Bayesian model averaging: posteriors under several kernels, weighted by the quality of their predictions.

| symbol | name | meaning | shape |
|---|---|---|---|
| k_j | `bank.kernels` | kernels that are compared, such as one of several lengthscales | m |
| mu_j, s_j | `each` | posterior of f under k_j | (n,) |
| q_j, LD_j | `quadratic_form`, `log_determinant_ratio` | y^T (K_j + lambda I)^{-1} y, log det(I + K_j / lambda) | |
| w_j | `shares` | share of kernel j | (m,) |
| nu | `bank.weight` | rewards that the given scale counts as; None if the scale is right | |

Each kernel predicts each reward before it learns the reward, and w_j is proportional to the product of these densities.
By the chain rule that product is the marginal likelihood. The posterior has it anyway, whatever was observed in which
order, repeated, revised or forgotten:

    log w_j = -(q_j + LD_j) / 2 + const                                       if the scale is as given,
    log w_j = -LD_j / 2 - (nu + t) / 2 log(1 + q_j / nu) + const              if the scale is learned.

The latter has Student-t predictions, with one unknown factor of prior variance and noise variance together. The factor
is inverse-gamma (nu / 2, nu / 2). Here lambda is the given variance of the noise. If the regulariser is another number,
there are posteriors with either: those with the regulariser for predictions, and those with lambda for the shares.

The predictions have the mean and the variance of the mixture,

    mu = sum_j w_j mu_j,    s^2 = sum_j w_j (s_j^2 + (mu_j - mu)^2),

and a sample is drawn from one posterior, which is drawn by its share. For a scale as given, the covariance divided by
lambda is also the derivative of mu in the targets: d log w_j / d y_s = (mu_j(x_s) - y_s) / lambda.

An `Ensemble` has posteriors of earlier studies beside that of this one, weighted by how well each ranks new rewards.

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

Other departures: the posterior is the mixture of the posteriors, whose variance grows if they disagree. In
the paper it is a sum of independent processes, of variance sum_i w_i^2 s_i^2. Only the 200 points with the best rewards
are ranked. Before three points all studies have the same share.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, cast, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, finite_array, frozen, number, points_array, settle, shown
from .._utils.dataclass import field
from .._utils.randomness import Draws, Rng, drawn_places
from ..errors import InvalidInput
from ..kernels import Kernel
from ..serialize import description
from .arms import ArmPosterior
from .points import PointPosterior
from .protocol import AtPoints, Gradients, Posterior, WeighingPosterior

SAMPLES = 200  # bootstrap samples of the points
JUDGED = 200  # most points by which studies are judged: those of this study with the best rewards
FEWEST = 3  # points of this study before which all studies have the same share


@final
@description(frozen=True, kw_only=True, eq=False)
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

    def posteriors(self, make: Callable[[Kernel, float], P], regularization: float) -> list[P]:
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
    picked = Draws(f"resamples {n}").integers(len(rows), size=(SAMPLES, len(rows)))
    drawn = picked + len(rows) * np.arange(SAMPLES)[:, None]
    draws = np.bincount(drawn.ravel(), minlength=drawn.size).reshape(drawn.shape)
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


LEAST = 1e-9  # share below which a kernel does not count in predictions, although it keeps its share

P = TypeVar("P", bound=WeighingPosterior)


class Bank(NamedTuple):
    """Kernels to compare.

    Attributes:
        kernels: k_j.
        factors: lengthscale factor of each kernel, relative to the given kernel.
        weight: nu, rewards, or None for a scale that is right as given.
        noise_variance: lambda of the shares, or None if it is that of the posteriors.
    """

    kernels: tuple[Kernel, ...]
    factors: tuple[float, ...]
    weight: float | None
    noise_variance: float | None = None

    @property
    def learners(self) -> int | None:
        """None, since all posteriors learn."""
        return None

    def variances(self, regularization: float) -> tuple[float, ...]:
        """Returns lambda of the posteriors, and lambda of the posteriors for the shares if they differ."""
        return (regularization,) if self.noise_variance is None else (regularization, self.noise_variance)

    def posteriors(self, make: Callable[[Kernel, float], P], regularization: float) -> list[P]:
        """Returns an empty posterior under each kernel, then those for the shares if they differ."""
        return [make(kernel, variance) for variance in self.variances(regularization) for kernel in self.kernels]

    def log_shares(self, each: Sequence[WeighingPosterior]) -> Array:
        """Returns the logarithms of the shares up to a constant, `(m,)`."""
        judges = each[-len(self.kernels) :]
        misfit = np.array([posterior.quadratic_form for posterior in judges])
        spread = np.array([posterior.log_determinant_ratio for posterior in judges])
        if self.weight is None:
            return np.asarray(-0.5 * (misfit + spread))
        return np.asarray(-0.5 * spread - 0.5 * (self.weight + each[0].count) * np.log1p(misfit / self.weight))


class Averaged(Posterior, Generic[P]):
    """The mixture of posteriors under several kernels.

    Attributes:
        bank: the kernels.
        each: posterior under each kernel, then posteriors for the shares if they differ. All have the same
            observations.
        leader: the only kernel with a say in predictions, or None for all, by their shares.
    """

    OWNED_EACH = ("each",)

    def __init__(self, bank: Bank | Ensemble, each: Sequence[P]) -> None:
        self.bank, self.each = bank, list(each)
        self.regularization = self.each[0].regularization
        self.leader: int | None = None
        self._followed: Self | None = None
        self._shares: Array | None = None  # cached until an observation changes

    # -- observations --------------------------------------------------------------------------------------------

    @property
    def count(self) -> float:  # type: ignore[override]  # All posteriors have the same.
        """Number of observations."""
        return self.each[0].count

    @final
    @property
    def _learning(self) -> list[P]:
        return self.each[: self.bank.learners]

    @final
    def append(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Adds one observation to all posteriors that learn."""
        for posterior in self._learning:
            posterior.append(point, target, weight=weight)
        self._shares = None

    @final
    def revise(self, point: Any, old: float, new: float) -> None:
        """Replaces the target of one observation."""
        for posterior in self._learning:
            posterior.revise(point, old, new)
        self._shares = None

    @final
    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Replaces the targets of several observations."""
        for posterior in self._learning:
            posterior.revise_all(points, old, new)
        self._shares = None

    @final
    def forget(self, point: Any, target: float, *, weight: float = 1.0) -> None:
        """Removes one observation."""
        for posterior in self._learning:
            posterior.forget(point, target, weight=weight)
        self._shares = None

    # -- shares --------------------------------------------------------------------------------------------------

    @final
    @property
    def shares(self) -> Array:
        """Shares of the kernels, by their predictions, `(m,)`, adding up to 1."""
        if self._followed is not None:
            return self._followed.shares
        if self._shares is None:
            log = self.bank.log_shares(self.each)
            shares = np.exp(log - log.max())
            self._shares = frozen(shares / shares.sum())
        return self._shares

    @final
    @property
    def likeliest(self) -> int:
        """Index of the kernel with the largest share, the first of several."""
        return int(self.shares.argmax())

    @final
    def _believed(self) -> tuple[IndexArray, Array]:
        """Returns which kernels have a say in predictions, and their shares."""
        leader = self.leader if self._followed is None else self._followed.leader
        if leader is not None:
            return np.array([leader]), np.ones(1)
        shares = self.shares
        which = np.flatnonzero(shares >= LEAST)
        return which, shares[which] / shares[which].sum()

    @final
    def following(self, observed: Self) -> Self:
        """Returns a copy of this posterior of f less the mean of another one, whose shares and means it takes.

        Its mean is 0, and its samples are samples of this difference.

        Args:
            observed: the other posterior.
        """
        other = self.copy()
        other._followed = observed
        return other

    # -- predictions ---------------------------------------------------------------------------------------------

    @abstractmethod
    def _mean(self, j: int, points: Any) -> Array:
        """Returns mu_j, `(n,)`."""

    @final
    def _means(self, which: IndexArray, points: Any) -> Array:
        """Returns the means of these kernels, `(j, n)`."""
        return np.stack([self._mean(int(j), points) for j in which])

    @final
    def _apart(self, which: IndexArray, shares: Array, means: Array, points: Any) -> tuple[Array, Array]:
        """Returns the mean of the mixture `(n,)`, and the deviation of each mean from it, `(j, n)`."""
        known = means if self._followed is None else self._followed._means(which, points)
        mean = shares @ known
        return mean if self._followed is None else np.zeros(len(mean)), known - mean

    @final
    def predict(self, points: Any = None) -> tuple[Array, Array]:
        """Returns mean and standard deviation of f, each `(n,)`, as fresh arrays."""
        return self.mixed(lambda posterior: posterior.predict(points), points)

    @final
    def mixed(self, moments: Any, points: Any) -> tuple[Array, Array]:
        """Returns mean and std of the mixture, each `(n,)`, given a function for those of one posterior."""
        which, shares = self._believed()
        if len(which) == 1 and self._followed is None:
            return cast(tuple[Array, Array], moments(self.each[int(which[0])]))
        means, stds = (np.stack(each) for each in zip(*(moments(self.each[int(j)]) for j in which), strict=True))
        mean, apart = self._apart(which, shares, means, points)
        return mean, np.sqrt(shares @ (stds**2 + apart**2))

    @final
    def covariance(self, points: Any) -> Array:
        """Returns the joint covariance of f, `(n, n)`."""
        which, shares = self._believed()
        apart = self._apart(which, shares, self._means(which, points), points)[1]
        within = sum(share * self.each[int(j)].covariance(points) for j, share in zip(which, shares, strict=True))
        return np.asarray(within + (shares[:, None] * apart).T @ apart)

    @final
    def parts(self, points: Any) -> list[tuple[float, Array, Array]]:
        """Returns the law under each kernel that has a say (see `Posterior.parts`)."""
        which, shares = self._believed()
        apart = self._apart(which, shares, self._means(which, points), points)[1]
        each = (self.each[int(j)].covariance(points) for j in which)
        return list(zip(shares.tolist(), apart, each, strict=True))

    @final
    def cross_covariance(self, points: Any, others: Any) -> Array:
        """Returns the covariance of f between points and others, `(n, k)`."""
        which, shares = self._believed()
        apart = self._apart(which, shares, self._means(which, points), points)[1]
        beyond = self._apart(which, shares, self._means(which, others), others)[1]
        each = (self.each[int(j)].cross_covariance(points, others) for j in which)
        within = sum(share * covariance for share, covariance in zip(shares, each, strict=True))
        return np.asarray(within + (shares[:, None] * apart).T @ beyond)

    @final
    def sample(self, rng: Rng, points: Any = None, *, size: int = 1) -> Array:
        """Returns joint samples of f, `(size, n)`, each under a kernel that is drawn by its share."""
        which, shares = self._believed()
        places = drawn_places(shares, rng, size) if len(which) > 1 else np.zeros(size, dtype=np.intp)
        found: list[Array] = [np.zeros(0)] * size
        for place in np.unique(places):
            rows = np.flatnonzero(places == place)
            drawn = self.each[int(which[place])].sample(rng, points, size=len(rows))
            if self._followed is not None:
                drawn = drawn + self._apart(which, shares, np.zeros(0), points)[1][place]
            for row, sample in zip(rows, drawn, strict=True):
                found[int(row)] = sample
        return np.stack(found)

    @final
    def _average_of(self, name: str) -> float:
        which, shares = self._believed()
        return float(shares @ np.array([getattr(self.each[int(j)], name) for j in which]))

    @property
    def _outside(self) -> float:  # type: ignore[override]  # of sketches
        return self._average_of("_outside")

    @property
    def mean_norm(self) -> float:
        """RKHS norm ||mu_j||_k, averaged over the kernels."""
        return self._average_of("mean_norm")

    @property
    def log_determinant_ratio(self) -> float:
        """LD_j, averaged over the kernels."""
        return self._average_of("log_determinant_ratio")


@final
class AveragedArms(Averaged[ArmPosterior]):
    """A mixture of posteriors on arms."""

    def __init__(self, bank: Bank | Ensemble, each: Sequence[ArmPosterior]) -> None:
        super().__init__(bank, each)
        self.prior = self.each[_nearest(bank)].prior

    def _mean(self, j: int, points: Any) -> Array:
        return self.each[j].predict(points)[0]


@final
class AveragedPoints(Averaged[AtPoints]):
    """A mixture of posteriors at points, with most methods of `AtPoints`."""

    def __init__(self, bank: Bank | Ensemble, each: Sequence[AtPoints]) -> None:
        super().__init__(bank, each)
        self.kernel = self.each[_nearest(bank)].kernel

    def extend(self, points: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        """Adds observations at `(m, d)` points with targets `(m,)` to all posteriors."""
        for posterior in self._learning:
            posterior.extend(points, targets)
        self._shares = None

    def size_at(self, points: Array) -> float:
        """Returns the largest prior standard deviation at points `(m, d)`."""
        return self.each[_nearest(self.bank)].size_at(points)

    @property
    def points(self) -> Array:
        """Distinct points, `(n, d)`."""
        return self.each[0].points

    @property
    def landmarks(self) -> Array:
        """Observed points that represent all observed points, `(k, d)`, of the leader if there is one."""
        return self.each[int(self._believed()[0][0])].landmarks if self.leader is not None else self.points

    @property
    def average(self) -> Array:
        """Average target of each point, `(n,)`."""
        return self.each[0].average

    @property
    def noisy(self) -> bool | None:
        """True if repeated points had different targets, False if they had equal ones, None if none was repeated."""
        return self.each[0].noisy

    def _mean(self, j: int, points: Any) -> Array:
        return self.each[j].mean(points)

    def _mixed_means(self, means: Any) -> Array:
        which, shares = self._believed()
        return np.asarray(sum(share * means(self.each[int(j)]) for j, share in zip(which, shares, strict=True)))

    def mean(self, points: Any) -> Array:
        """Returns the mean, `(m,)`."""
        return self._mixed_means(lambda posterior: posterior.mean(points))

    def means_of(self, points: Any) -> Array:
        """Returns the mean at points that mostly were observed, `(m,)`."""
        return self._mixed_means(lambda posterior: posterior.means_of(points))

    def landmark_means(self) -> Array:
        """Returns the mean at the landmarks, `(k,)`."""
        landmarks = self.landmarks
        return self._mixed_means(lambda posterior: posterior.means_of(landmarks))

    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """Returns the mean at `(m, d)` points and its gradient."""
        which, shares = self._believed()
        means, slopes = zip(*(self.each[int(j)].mean_gradient(points) for j in which), strict=True)
        return shares @ np.stack(means), np.tensordot(shares, np.stack(slopes), axes=1)

    def gradients(self, points: npt.ArrayLike) -> Gradients:
        """Returns mean and std at `(m, d)` points with their gradients."""
        which, shares = self._believed()
        each = [self.each[int(j)].gradients(points) for j in which]
        if len(each) == 1 and self._followed is None:
            return each[0]
        means, stds, slopes, std_slopes = (np.stack(parts) for parts in zip(*each, strict=True))
        if self._followed is not None:
            known = [self._followed.each[int(j)].mean_gradient(points) for j in which]
            means, slopes = (np.stack(parts) for parts in zip(*known, strict=True))
        mean, slope = shares @ means, np.tensordot(shares, slopes, axes=1)
        apart = means - mean
        std = np.sqrt(shares @ (stds**2 + apart**2))
        inner = stds[..., None] * std_slopes + apart[..., None] * (slopes - slope)  # half the gradient of s^2
        flat = std[:, None] <= 0.0
        std_slope = np.where(flat, 0.0, np.tensordot(shares, inner, axes=1) / np.where(flat, 1.0, std[:, None]))
        if self._followed is not None:
            mean, slope = np.zeros_like(mean), np.zeros_like(slope)
        return Gradients(mean, std, slope, std_slope)

    def path(self, rng: Rng, width: float) -> AnyPath:
        """Returns a function drawn under a kernel that is drawn by its share.

        Deviations from the mean are multiplied with `width`.
        """
        from .paths import drawn_path

        which, shares = self._believed()
        j = int(which[drawn_places(shares, rng, 1)[0]]) if len(which) > 1 else int(which[0])
        path = drawn_path(self.each[j], rng)
        if len(which) == 1 and self._followed is None:
            return path.widened(width)
        return _AveragedPath(path, self, self._followed, j, width)


class AnyPath(Protocol):
    """A function drawn from a posterior."""

    def __call__(self, points: Array) -> Array:
        """Returns values at `(m, d)` points, `(m,)`."""

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Returns values `(m,)` and gradients `(m, d)`."""


@final
class _AveragedPath:
    """A path f_j under one kernel, rescaled about the mean of all: mu + width (f_j - mu), or width (f_j - mu)."""

    def __init__(
        self, path: AnyPath, whole: AveragedPoints, followed: AveragedPoints | None, j: int, width: float
    ) -> None:
        self._path, self._whole, self._followed, self._j, self._width = path, whole, followed, j, width

    def __call__(self, points: Array) -> Array:
        """Returns values at `(m, d)` points, `(m,)`."""
        return self._from(lambda posterior: posterior.mean(points), self._path(points))

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Returns values `(m,)` and gradients `(m, d)`."""
        values, gradients = self._path.slopes(points)
        slope = self._from(lambda posterior: posterior.mean_gradient(points)[1], gradients)
        return self._from(lambda posterior: posterior.mean(points), values), slope

    def _from(self, mean: Any, drawn: Array) -> Array:
        if self._followed is None:
            middle = mean(self._whole)
            return np.asarray(middle + self._width * (drawn - middle))
        return np.asarray(self._width * (drawn + mean(self._followed.each[self._j]) - mean(self._followed)))


def _nearest(bank: Bank | Ensemble) -> int:
    """Returns the index of the kernel nearest to the given one."""
    return int(np.abs(np.log(bank.factors)).argmin())


def path_of(posterior: AtPoints | AveragedPoints, rng: Rng, width: float) -> AnyPath:
    """Returns a function drawn from the posterior, with deviations from its mean multiplied with `width`."""
    from .paths import drawn_path

    if isinstance(posterior, AveragedPoints):
        return posterior.path(rng, width)
    return drawn_path(posterior, rng).widened(width)
