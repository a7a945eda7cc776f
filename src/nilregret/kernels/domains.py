"""The default kernel for a domain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import final

import numpy as np
import numpy.typing as npt

from .._utils.checks import Array, many, number, one_of, points_array, shown
from .._utils.dataclass import field, replace
from ..domains.domain import Arms, Domain, Space, check_domain, enclosing_box, sides
from ..domains.parameters import Choice
from ..errors import InvalidInput
from ..serialize import description
from .base import (
    Derivatives,
    Hyperparameter,
    Kernel,
    Matrices,
    PointKernel,
    Pullback,
    checked_lengths,
    parameter_values,
    points_pair,
    scale_number,
    weights_array,
)
from .combined import Pair, Product, Stretched, Sum
from .stationary import DISTANCE, Matern, SquaredExponential, Stationary
from .tied import Tied, checked_groups

SMALLEST = 1e-150  # norm of a choice's columns below which they have no direction


@final
@description(frozen=True)
class Overlap(PointKernel):
    """k = scale / c * sum_i 1[h_i = h'_i], the share of choices in which two points agree (Ru et al. 2020, eq. 1).

    For points that are no encoded option it is the cosine of their angle, choice by choice.

    Attributes:
        groups: number of the choice of each column, counted from 0.

    >>> import nilregret as nr
    >>> nr.kernels.Overlap((0, 0, 0))([[1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    array([[1., 0.]])
    """

    groups: tuple[int, ...]
    scale: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", checked_groups(self.groups))
        object.__setattr__(self, "scale", scale_number(self.scale))

    @cached_property
    def _members(self) -> Array:
        """Indicators of the choice of each column, `(d, c)`."""
        return np.eye(max(self.groups) + 1)[list(self.groups)]

    @property
    def _factor(self) -> float:
        return self.scale / (max(self.groups) + 1)

    def _norms(self, points: Array) -> Array:
        """Returns the norm of its choice, for every column, `(n, d)`."""
        if points.shape[1] != len(self.groups):
            raise InvalidInput(
                f"The kernel says of {many(len(self.groups), 'column')} which choice they belong to, and the points "
                f"have {points.shape[1]}. Have it see the choices alone.",
                advice="That is `kernel.on(*columns)`.",
            )
        return np.maximum(np.sqrt(points**2 @ self._members), SMALLEST) @ self._members.T

    def __call__(self, A: npt.ArrayLike, B: npt.ArrayLike) -> Array:
        """Returns the covariances between the rows of A and of B, `(n, m)`."""
        first, second = points_pair(A, B)
        u = first / self._norms(first)
        v = u if second is first else second / self._norms(second)
        return np.asarray(self._factor * (u @ v.T))

    def diagonal(self, A: npt.ArrayLike) -> Array:
        """Returns `scale` for every row (less if a choice's columns are all 0)."""
        points = points_array("A", A)
        u = points / self._norms(points)
        return np.asarray(self._factor * np.einsum("ij,ij->i", u, u))

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns rows sum_j weights[i, j] * d k(x_i, b_j) / d x_i, `(m, d)`, through h / norm(h)."""
        first, second = points_pair(X, B)
        norms = self._norms(first)
        u, v = first / norms, second / self._norms(second)
        towards = weights_array(weights, (len(first), len(second))) @ v
        along = (u * towards) @ self._members @ self._members.T
        return np.asarray(self._factor * (towards - along * u) / norms)

    @property
    def log_parameters(self) -> Array:
        """Log scale."""
        return np.array([math.log(self.scale)])

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns the description of the scale."""
        return (Hyperparameter("scale", tuple(columns), self._members.shape[1]),)

    def with_log_parameters(self, values: npt.ArrayLike) -> Overlap:
        """Returns the same kernel with this scale, given by its logarithm."""
        return replace(self, scale=math.exp(parameter_values(values, 1)[0]))

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns multiples of one matrix, and the pullback by log scale, whose derivative is K."""
        one = self(X, X) / self.scale

        def at(values: Array) -> tuple[Array, Pullback]:
            matrix = math.exp(values[0]) * one
            return matrix, lambda weights: np.array([np.vdot(weights, matrix)])

        return at

    def scaled(self, factor: float) -> Overlap:
        """Returns the same kernel with `factor` times the scale."""
        return replace(self, scale=factor * self.scale)

    def rescaled(self, factors: Array) -> Kernel:
        """Returns the kernel itself if the columns of each choice have one factor, since lengths do not count."""
        spread = [np.ptp(factors[self._members[:, choice] > 0.0]) for choice in range(self._members.shape[1])]
        return self if max(spread) == 0.0 else Stretched(self, tuple(factors.tolist()))

    @property
    def variance(self) -> float:
        """Scale."""
        return self.scale

    def rank(self, dimension: int) -> int:  # noqa: ARG002 - its groups have the number of columns
        """Returns the number of options."""
        return len(self.groups)

    def features(self, points: npt.ArrayLike) -> Array:
        """Returns u of every choice, times the root of the scale over the number of choices."""
        X = points_array("points", points)
        return np.asarray(math.sqrt(self._factor) * X / self._norms(X))

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients through h / norm(h), `(m, d)`."""
        points = points_array("X", X)
        norms = self._norms(points)
        u, towards = points / norms, np.asarray(weights)
        along = (u * towards) @ self._members @ self._members.T
        return np.asarray(math.sqrt(self._factor) * (towards - along * u) / norms)


@final
@description(frozen=True)
class Mixture(Pair):
    """k = scale * ((1 - lambda) (left + right) / 2 + lambda left * right), with lambda in (0, 1) learned by fits.

    Ru et al. 2020, eq. 2, for choices and numbers. The sum learns from points that agree in one of the two, and the
    product learns their interaction. The factor 1/2 keeps the prior variance the same for every lambda.

    >>> import nilregret as nr
    >>> choices, numbers = nr.kernels.Overlap((0, 0)).on(0, 1), nr.Matern(1.5, 0.3).on(2)
    >>> nr.kernels.Mixture(choices, numbers, 0.3)([[1.0, 0.0, 0.5]], [[1.0, 0.0, 0.5]])
    array([[1.]])
    """

    share: float = 0.5
    scale: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        why = "It is lambda, the share of the product."
        share = number("share", self.share, low=0.0, high=1.0, open_low=True, open_high=True, why=why)
        object.__setattr__(self, "share", share)
        object.__setattr__(self, "scale", scale_number(self.scale))

    @cached_property
    def expanded(self) -> Sum:
        """Sum of three kernels with the same covariances."""
        half = 0.5 * self.scale * (1.0 - self.share)
        product = Product(self.left, self.right).scaled(self.scale * self.share)
        return Sum(Sum(self.left.scaled(half), self.right.scaled(half)), product)

    def _combined(self, left: Array, right: Array) -> Array:
        middle = 0.5 * (left + right)
        return np.asarray(self.scale * (middle + self.share * (left * right - middle)))

    def _by(self, other: Array) -> Array:
        """Returns dk / d left, given the covariances of `right`, or the reverse."""
        return np.asarray(self.scale * (0.5 * (1.0 - self.share) + self.share * other))

    def input_gradient(self, X: npt.ArrayLike, B: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients by the product rule, `(m, d)`."""
        left, right = self.left(X, B), self.right(X, B)
        given = weights_array(weights, left.shape)
        by_left = self.left.input_gradient(X, B, given * self._by(right))
        return by_left + self.right.input_gradient(X, B, given * self._by(left))

    def diagonal_gradient(self, X: npt.ArrayLike) -> Array:
        """Returns the gradients by the product rule, `(m, d)`."""
        left, right = self.left.diagonal(X)[:, None], self.right.diagonal(X)[:, None]
        return self._by(right) * self.left.diagonal_gradient(X) + self._by(left) * self.right.diagonal_gradient(X)

    @property
    def log_parameters(self) -> Array:
        """Log parameters of `left`, of `right`, log(lambda / (1 - lambda)), log scale."""
        own = [math.log(self.share / (1.0 - self.share)), math.log(self.scale)]
        return np.concatenate([super().log_parameters, own])

    def hyperparameters(self, columns: Sequence[int]) -> tuple[Hyperparameter, ...]:
        """Returns the hyperparameters of `left`, of `right`, the odds of lambda, and the scale."""
        own = tuple(Hyperparameter(kind, tuple(columns), len(columns)) for kind in ("odds", "scale"))
        return (*super().hyperparameters(columns), *own)

    def with_log_parameters(self, values: npt.ArrayLike) -> Mixture:
        """Returns the mixture of both kernels with these log parameters."""
        first, second = len(self.left.log_parameters), len(self.right.log_parameters)
        given = parameter_values(values, first + second + 2)
        left = self.left.with_log_parameters(given[:first])
        right = self.right.with_log_parameters(given[first:-2])
        return replace(self._with_own(given), left=left, right=right)

    def _with_own(self, values: Array) -> Mixture:
        """Returns the mixture of the same kernels with lambda and the scale of these log parameters."""
        odds, scale = np.exp(values[-2:]).tolist()
        return replace(self, share=odds / (1.0 + odds), scale=scale)

    def matrices(self, X: npt.ArrayLike) -> Matrices:
        """Returns K, and the pullback by the product rule, by log parameters."""
        of_left, of_right, first = self.left.matrices(X), self.right.matrices(X), len(self.left.log_parameters)

        def at(values: Array) -> tuple[Array, Pullback]:
            (left, left_pullback), (right, right_pullback) = of_left(values[:first]), of_right(values[first:-2])
            mixed = self._with_own(values)
            matrix = mixed._combined(left, right)

            def pullback(weights: Array) -> Array:
                parts = [left_pullback(weights * mixed._by(right)), right_pullback(weights * mixed._by(left))]
                slope = mixed.scale * mixed.share * (1.0 - mixed.share)  # d lambda / d log odds = lambda (1 - lambda)
                by_odds = slope * float(np.vdot(weights, left * right - 0.5 * (left + right)))
                return np.concatenate([*parts, [by_odds, np.vdot(weights, matrix)]])

            return matrix, pullback

        return at

    def scaled(self, factor: float) -> Mixture:
        """Returns the same mixture with `factor` times the scale."""
        return replace(self, scale=factor * self.scale)

    def derivatives(self, lower: Array, upper: Array) -> Derivatives:
        """Returns the derivatives of the sum of three."""
        return self.expanded.derivatives(lower, upper)

    def rank(self, dimension: int) -> int | None:
        """Returns the rank of the sum of three, an upper bound."""
        return self.expanded.rank(dimension)

    def features(self, points: npt.ArrayLike) -> Array | None:
        """Returns the features of the sum of three."""
        return self.expanded.features(points)

    def feature_gradient(self, X: npt.ArrayLike, weights: npt.ArrayLike) -> Array:
        """Returns the gradients of the sum of three, `(m, d)`."""
        return self.expanded.feature_gradient(X, weights)


LENGTHSCALE = 0.2  # times sqrt(m), the mode exp(sqrt(2) - 3) = 0.205 of the prior of fits (Hvarfner et al. 2024)


def prior_std(domain: Domain, context: Domain | None, kernel: Kernel) -> float:
    """Returns the largest prior standard deviation, over the arms or the corners of the box.

    Arms that were added to a running study do not change it.
    """
    domain = domain.founding if isinstance(domain, Arms) else domain
    if isinstance(domain, Arms) and context is None:
        return math.sqrt(float(kernel.arm_variances(domain.points).max()))
    box = enclosing_box(domain, context)
    return math.sqrt(float(kernel.diagonal(np.stack([box.lower, box.upper])).max()))


def kernel_for(
    domain: Domain,
    *,
    context: Domain | None = None,
    kernel: Stationary | None = None,
    lengthscale: float | None = None,
    choices: str = "tied",
) -> Kernel:
    """Returns the kernel for a domain, with one lengthscale for each parameter or coordinate.

    On a `Space` (or its grid) the columns of a choice share a lengthscale (`Tied`), so that a fit learns one for each
    parameter. In every parameter the lengthscale is the same share of its range, and in a box the same share of each
    side.

    Args:
        domain: `Arms`, `Box` or `Space`.
        context: domain of contexts, the first columns of the rows that the kernel sees, or None.
        kernel: stationary kernel of which everything but the lengthscale is kept, or None for `Matern(2.5)`.
        lengthscale: share of each parameter's range, or of each side. None for 0.2 sqrt(m) in m parameters, the
            mode of the prior of fits, hence where they begin. (For a mixture that prior counts the parameters of
            each part.)
        choices: "tied" for one kernel of all parameters. "overlap" for a `Mixture` of `Overlap` for the choices and
            the stationary kernel for the numbers (CoCaBO, Ru et al. 2020). "transformed" for the same mixture with
            the transformed overlap exp(sum_i l_i 1[h_i = h'_i] / c) for the choices (Casmopolitan, Wan et al. 2021,
            eq. 2). Divided by its value at h = h' it is a squared exponential kernel of lengthscales sqrt(c / (2
            l_i)), tied.

    >>> import nilregret as nr
    >>> space = nr.Space(C=nr.Float(1e-2, 1e3, log=True), kernel=nr.Choice("rbf", "linear", "poly"))
    >>> nr.kernel_for(space, lengthscale=0.3)
    Tied(kernel=Matern(nu=2.5, lengthscale=(0.3, 0.3), scale=1.0), groups=(0, 1, 1, 1))
    >>> nr.kernel_for(nr.Box([0, 0], [1, 20]), lengthscale=0.3)
    Matern(nu=2.5, lengthscale=(0.3, 6.0), scale=1.0)
    """
    check_domain("domain", domain)
    if context is not None:
        check_domain("context", context)
    family: object = Matern(2.5) if kernel is None else kernel
    if not isinstance(family, Stationary):
        raise InvalidInput(f"`kernel` must be a stationary kernel such as Matern(1.5), not {shown(kernel)}.")
    one_of("choices", choices, ["tied", "overlap", "transformed"])
    groups = parameter_groups(domain, context)
    count = max(groups) + 1
    share = LENGTHSCALE * math.sqrt(count) if lengthscale is None else lengthscale
    if isinstance(checked_lengths("lengthscale", share, why=DISTANCE), tuple):
        raise InvalidInput(
            f"`lengthscale` is {shown(lengthscale)}: give one number, a share of every range. For a lengthscale of its "
            "own for each, write the kernel itself.",
            advice="Such as Matern(2.5, lengthscale=[0.1, 0.3]).",
        )
    unit = sides(domain, context)
    lengths = np.zeros(count)
    lengths[list(groups)] = share * unit  # all columns of one parameter have the unit 1
    if choices == "tied":
        return _tied(family, lengths, groups)
    named = _columns_of_choices(domain, context)
    numbers = [column for column in range(len(groups)) if column not in named]
    if not named:
        return _tied(family, lengths, groups)
    own = _counted([groups[column] for column in named])
    smooth = _tied(SquaredExponential(), np.full(max(own) + 1, share), own)
    left = (Overlap(own) if choices == "overlap" else smooth).on(*named)
    if not numbers:
        return left
    of_numbers = [groups[column] for column in numbers]  # each has a column
    return Mixture(left, _tied(family, lengths[of_numbers], _counted(of_numbers)).on(*numbers))


def _tied(family: Stationary, lengths: Array, groups: tuple[int, ...]) -> Stationary | Tied:
    """Returns the kernel with a lengthscale for each group, tied if a group has several columns."""
    made = replace(family, lengthscale=tuple(lengths.tolist()))  # type: ignore[type-var]  # all are dataclasses
    return made if len(lengths) == len(groups) else Tied(made, groups)


def _counted(groups: list[int]) -> tuple[int, ...]:
    """Returns some of the groups, counted from 0 without gaps."""
    place = {group: i for i, group in enumerate(dict.fromkeys(groups))}
    return tuple(place[group] for group in groups)


def _columns_of_choices(domain: Domain, context: Domain | None) -> list[int]:
    """Returns the columns of a (context, point) row that belong to choices."""
    found: list[int] = []
    start = 0
    for part in [domain] if context is None else [context, domain]:
        space = part.space if isinstance(part, Arms) else part if isinstance(part, Space) else None
        for parameter, columns in [] if space is None else space.columns():
            if isinstance(parameter, Choice):
                found += range(start + columns.start, start + columns.stop)
        start += part.dimension
    return found


def parameter_groups(domain: Domain, context: Domain | None = None) -> tuple[int, ...]:
    """Returns the number of the parameter or coordinate of each column of a (context, point) row."""
    widths: list[int] = []
    for part in [domain] if context is None else [context, domain]:
        space = part.space if isinstance(part, Arms) else part if isinstance(part, Space) else None
        widths += [1] * part.dimension if space is None else [p.columns for p in space.parameters.values()]
    numbers: Array = np.repeat(np.arange(len(widths)), widths)
    return tuple(int(number) for number in numbers)
