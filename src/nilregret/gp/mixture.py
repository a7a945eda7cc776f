"""Posteriors under several kernels at once, weighed by how well each has predicted: Bayesian model averaging.

| symbol | name | meaning | shape |
|---|---|---|---|
| k_j | `bank.kernels` | kernels that are compared, such as one of several lengthscales | m |
| mu_j, s_j | `each` | posterior of f under k_j | (n,) |
| q_j, LD_j | `quadratic_form`, `log_determinant_ratio` | y^T (K_j + lambda I)^{-1} y, log det(I + K_j / lambda) | |
| w_j | `shares` | share of kernel j | (m,) |
| nu | `bank.weight` | answers that the told scale is worth; None: it is right | |

Each kernel predicts each answer before it learns it, and w_j is proportional to the product of these densities. By the
chain rule that product is the marginal likelihood, which is known from what a posterior keeps anyway, whatever came in
which order, was repeated, revised or forgotten:

    log w_j = -(q_j + LD_j) / 2 + const                                       where the scale is as it was told,
    log w_j = -LD_j / 2 - (nu + t) / 2 log(1 + q_j / nu) + const              where it is learned,

the latter with Student-t predictions: one unknown factor of prior variance and noise variance together, which is
inverse-gamma (nu / 2, nu / 2). Here lambda is the variance of the noise as it was told. Where the regulariser is
another number there are posteriors with either: that one for what is believed, this one for the shares.

What is believed has the mean and the variance of the mixture,

    mu = sum_j w_j mu_j,    s^2 = sum_j w_j (s_j^2 + (mu_j - mu)^2),

and a draw is one of a posterior that was drawn by its share. Its covariance divided by lambda is also the derivative
of mu in the targets (for a scale as told): d log w_j / d y_s = (mu_j(x_s) - y_s) / lambda.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar, cast, final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, IndexArray, frozen
from ..kernels import Kernel
from .arms import ArmPosterior
from .at_points import AtPoints, Gradients
from .paths import drawn_path
from .protocol import Posterior, RevisablePosterior

LEAST = 1e-9  # share below which a kernel has no say in predictions; it keeps its share

P = TypeVar("P", bound=RevisablePosterior)


class Bank(NamedTuple):
    """Kernels to compare.

    Attributes:
        kernels: k_j.
        factors: by which each differs from the one that was given.
        weight: nu, answers; None for a scale that is as it was told.
        noise_variance: lambda of the shares; None where it is that of the posteriors.
    """

    kernels: tuple[Kernel, ...]
    factors: tuple[float, ...]
    weight: float | None
    noise_variance: float | None = None

    def variances(self, regularization: float) -> tuple[float, ...]:
        """Lambda of the posteriors, and of those for the shares where they are others."""
        return (regularization,) if self.noise_variance is None else (regularization, self.noise_variance)


class Averaged(Posterior, Generic[P]):
    """The mixture of posteriors under several kernels.

    Attributes:
        bank: of which kernels.
        each: posterior under each, all of the same observations; then those for the shares, where they are others.
        leader: of these the only one that is believed; None for all, by their shares.
    """

    OWNED_EACH = ("each",)

    def __init__(self, bank: Bank, each: Sequence[P]) -> None:
        self.bank, self.each = bank, list(each)
        self.regularization = self.each[0].regularization
        self.leader: int | None = None
        self._followed: Self | None = None
        self._shares: Array | None = None  # until something changes

    # -- observations --------------------------------------------------------------------------------------------

    @property
    def count(self) -> int:  # type: ignore[override]  # that of all of them
        """Observations."""
        return self.each[0].count

    @final
    def append(self, point: Any, target: float) -> None:
        """Add one observation, to all."""
        for posterior in self.each:
            posterior.append(point, target)
        self._shares = None

    @final
    def revise(self, point: Any, old: float, new: float) -> None:
        """Change the target of one observation."""
        for posterior in self.each:
            posterior.revise(point, old, new)
        self._shares = None

    @final
    def revise_all(self, points: Sequence[Any], old: Sequence[float], new: Sequence[float]) -> None:
        """Change the targets of several observations."""
        for posterior in self.each:
            posterior.revise_all(points, old, new)
        self._shares = None

    @final
    def forget(self, point: Any, target: float) -> None:
        """Take one observation back out."""
        for posterior in self.each:
            posterior.forget(point, target)
        self._shares = None

    # -- shares --------------------------------------------------------------------------------------------------

    @final
    @property
    def shares(self) -> Array:
        """Of the kernels, by what they have predicted, `(m,)`, adding up to 1."""
        if self._followed is not None:
            return self._followed.shares
        if self._shares is None:
            log = self._log_weights()
            shares = np.exp(log - log.max())
            self._shares = frozen(shares / shares.sum())
        return self._shares

    def _log_weights(self) -> Array:
        judges = self.each[-len(self.bank.kernels) :]
        misfit = np.array([posterior.quadratic_form for posterior in judges])
        spread = np.array([posterior.log_determinant_ratio for posterior in judges])
        nu = self.bank.weight
        if nu is None:
            return np.asarray(-0.5 * (misfit + spread))
        return np.asarray(-0.5 * spread - 0.5 * (nu + self.count) * np.log1p(misfit / nu))

    @final
    @property
    def likeliest(self) -> int:
        """Which kernel has the largest share; the first of several."""
        return int(self.shares.argmax())

    @final
    def _believed(self) -> tuple[IndexArray, Array]:
        """Which kernels have a say, and how much of one."""
        leader = self.leader if self._followed is None else self._followed.leader
        if leader is not None:
            return np.array([leader]), np.ones(1)
        shares = self.shares
        which = np.flatnonzero(shares >= LEAST)
        return which, shares[which] / shares[which].sum()

    @final
    def following(self, answered: Self) -> Self:
        """A copy of this posterior of questions that takes the shares and the means from one of answers.

        Its mean is that of f less the mean of the other one, 0; its draws are draws of this difference.
        """
        other = self.copy()
        other._followed = answered
        return other

    # -- what is believed ----------------------------------------------------------------------------------------

    @abstractmethod
    def _mean(self, j: int, points: Any) -> Array:
        """mu_j alone, `(n,)`."""

    @final
    def _means(self, which: IndexArray, points: Any) -> Array:
        """Of these kernels, `(j, n)`."""
        return np.stack([self._mean(int(j), points) for j in which])

    @final
    def _apart(self, which: IndexArray, shares: Array, means: Array, points: Any) -> tuple[Array, Array]:
        """The mean of the mixture `(n,)`, and how far each mean is from it, `(j, n)`."""
        known = means if self._followed is None else self._followed._means(which, points)
        mean = shares @ known
        return mean if self._followed is None else np.zeros(len(mean)), known - mean

    @final
    def predict(self, points: Any = None) -> tuple[Array, Array]:
        """Mean and standard deviation of f, each `(n,)`, fresh arrays."""
        return self.mixed(lambda posterior: posterior.predict(points), points)

    @final
    def mixed(self, moments: Any, points: Any) -> tuple[Array, Array]:
        """Mean and standard deviation of the mixture, each `(n,)`, from what gives those of one posterior."""
        which, shares = self._believed()
        if len(which) == 1 and self._followed is None:
            return cast(tuple[Array, Array], moments(self.each[int(which[0])]))
        means, stds = (np.stack(each) for each in zip(*(moments(self.each[int(j)]) for j in which), strict=True))
        mean, apart = self._apart(which, shares, means, points)
        return mean, np.sqrt(shares @ (stds**2 + apart**2))

    @final
    def covariance(self, points: Any) -> Array:
        """Joint covariance of f, `(n, n)`."""
        which, shares = self._believed()
        apart = self._apart(which, shares, self._means(which, points), points)[1]
        within = sum(share * self.each[int(j)].covariance(points) for j, share in zip(which, shares, strict=True))
        return np.asarray(within + (shares[:, None] * apart).T @ apart)

    @final
    def cross_covariance(self, points: Any, others: Any) -> Array:
        """Covariance of f between points and others, `(n, k)`."""
        which, shares = self._believed()
        apart = self._apart(which, shares, self._means(which, points), points)[1]
        beyond = self._apart(which, shares, self._means(which, others), others)[1]
        each = (self.each[int(j)].cross_covariance(points, others) for j in which)
        within = sum(share * covariance for share, covariance in zip(shares, each, strict=True))
        return np.asarray(within + (shares[:, None] * apart).T @ beyond)

    @final
    def sample(self, rng: np.random.Generator, points: Any = None, *, size: int = 1) -> Array:
        """Joint samples of f, `(size, n)`, each under a kernel that was drawn by its share."""
        which, shares = self._believed()
        places = rng.choice(len(which), size=size, p=shares) if len(which) > 1 else np.zeros(size, dtype=np.intp)
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
        """||mu_j||_k, averaged over the kernels."""
        return self._average_of("mean_norm")

    @property
    def log_determinant_ratio(self) -> float:
        """LD_j, averaged over the kernels."""
        return self._average_of("log_determinant_ratio")


@final
class AveragedArms(Averaged[ArmPosterior]):
    """On arms."""

    def __init__(self, bank: Bank, each: Sequence[ArmPosterior]) -> None:
        super().__init__(bank, each)
        self.prior = self.each[_nearest(bank)].prior

    def _mean(self, j: int, points: Any) -> Array:
        return self.each[j].predict(points)[0]


@final
class AveragedPoints(Averaged[AtPoints]):
    """At points. What it has of `AtPoints` means the same."""

    def __init__(self, bank: Bank, each: Sequence[AtPoints]) -> None:
        super().__init__(bank, each)
        self.kernel = self.each[_nearest(bank)].kernel

    def extend(self, points: npt.ArrayLike, targets: npt.ArrayLike) -> None:
        """Add observations at `(m, d)` points, targets `(m,)`, to all."""
        for posterior in self.each:
            posterior.extend(points, targets)
        self._shares = None

    @property
    def points(self) -> Array:
        """The distinct points, `(n, d)`."""
        return self.each[0].points

    @property
    def landmarks(self) -> Array:
        """Observed points that stand for all of them, `(k, d)`: those of the likeliest kernel."""
        return self.each[int(self._believed()[0][0])].landmarks if self.leader is not None else self.points

    @property
    def average(self) -> Array:
        """Average target of each, `(n,)`."""
        return self.each[0].average

    @property
    def noisy(self) -> bool:
        """Whether points that came again had several targets, or none came again."""
        return self.each[0].noisy

    def _mean(self, j: int, points: Any) -> Array:
        return self.each[j].mean(points)

    def _mixed_means(self, means: Any) -> Array:
        which, shares = self._believed()
        return np.asarray(sum(share * means(self.each[int(j)]) for j, share in zip(which, shares, strict=True)))

    def mean(self, points: Any) -> Array:
        """The mean alone, `(m,)`."""
        return self._mixed_means(lambda posterior: posterior.mean(points))

    def means_of(self, points: Any) -> Array:
        """The mean at points that mostly were observed, `(m,)`."""
        return self._mixed_means(lambda posterior: posterior.means_of(points))

    def landmark_means(self) -> Array:
        """The mean at the landmarks, `(k,)`."""
        landmarks = self.landmarks
        return self._mixed_means(lambda posterior: posterior.means_of(landmarks))

    def mean_gradient(self, points: npt.ArrayLike) -> tuple[Array, Array]:
        """The mean at `(m, d)` points and its gradient."""
        which, shares = self._believed()
        means, slopes = zip(*(self.each[int(j)].mean_gradient(points) for j in which), strict=True)
        return shares @ np.stack(means), np.tensordot(shares, np.stack(slopes), axes=1)

    def gradients(self, points: npt.ArrayLike) -> Gradients:
        """Mean and std at `(m, d)` points with their gradients."""
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

    def path(self, rng: np.random.Generator, width: float) -> AnyPath:
        """A function drawn under a kernel that was drawn by its share; `width` times as far from the mean."""
        which, shares = self._believed()
        j = int(which[rng.choice(len(which), p=shares)]) if len(which) > 1 else int(which[0])
        path = drawn_path(self.each[j], rng)
        if len(which) == 1 and self._followed is None:
            return path.widened(width)
        return _AveragedPath(path, self, self._followed, j, width)


class AnyPath(Protocol):
    """One function."""

    def __call__(self, points: Array) -> Array:
        """Values at `(m, d)` points, `(m,)`."""

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Values `(m,)` and gradients `(m, d)`."""


@final
class _AveragedPath:
    """A path under one kernel, seen from the mean of all: mu + width (f_j - mu), or width (f_j - mu) alone."""

    def __init__(
        self, path: AnyPath, whole: AveragedPoints, followed: AveragedPoints | None, j: int, width: float
    ) -> None:
        self._path, self._whole, self._followed, self._j, self._width = path, whole, followed, j, width

    def __call__(self, points: Array) -> Array:
        """Values at `(m, d)` points, `(m,)`."""
        return self._from(lambda posterior: posterior.mean(points), self._path(points))

    def slopes(self, points: Array) -> tuple[Array, Array]:
        """Values `(m,)` and gradients `(m, d)`."""
        values, gradients = self._path.slopes(points)
        slope = self._from(lambda posterior: posterior.mean_gradient(points)[1], gradients)
        return self._from(lambda posterior: posterior.mean(points), values), slope

    def _from(self, mean: Any, drawn: Array) -> Array:
        if self._followed is None:
            middle = mean(self._whole)
            return np.asarray(middle + self._width * (drawn - middle))
        return np.asarray(self._width * (drawn + mean(self._followed.each[self._j]) - mean(self._followed)))


def _nearest(bank: Bank) -> int:
    """The kernel that is nearest to the one that was given."""
    return int(np.abs(np.log(bank.factors)).argmin())


def path_of(posterior: AtPoints | AveragedPoints, rng: np.random.Generator, width: float) -> AnyPath:
    """A function drawn from the posterior, `width` times as far from its mean."""
    if isinstance(posterior, AveragedPoints):
        return posterior.path(rng, width)
    return drawn_path(posterior, rng).widened(width)
