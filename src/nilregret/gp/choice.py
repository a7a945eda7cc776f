"""Choice of the posterior that suits a kernel and a domain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._utils.checks import number
from ..domains.domain import Arms
from ..kernels import Kernel
from ..kernels.factorization import factor_of_arms, tolerance
from .arms import ArmPosterior, Prior
from .feature_maps import ArmColumns, FeatureMap, KernelFeatures, Terms, arm_features
from .points import PointPosterior
from .protocol import AtPoints

MOST_FEATURES = 2048  # largest rank of a kernel whose features are used: 34 MB, and 13 ms a round


def posterior_on_arms(domain: Arms, kernel: Kernel, regularization: float) -> ArmPosterior:
    """Returns the exact posterior on arms in the representation that suits the kernel.

    Low-rank features are used if the kernel matrix has them within the tolerance of `factorization`. Otherwise, for
    rough kernels on many arms, the distinct arms played are used.

    Args:
        domain: the arms.
        kernel: prior covariance.
        regularization: lambda, reward units squared.
    """
    from .distinct_arms import DistinctArmsPosterior
    from .low_rank_arms import MAX_RANK, LowRankPosterior

    prior = Prior(kernel, domain.points)
    tol = tolerance(prior.variance, number("regularization", regularization, low=0.0, open_low=True))
    factor = factor_of_arms(kernel, domain.points, tol=tol, max_rank=MAX_RANK)
    if factor.complete:
        return LowRankPosterior(prior, factor, regularization)
    return DistinctArmsPosterior(prior, regularization)


def posterior_at_points(
    kernel: Kernel,
    dimension: int,
    regularization: float,
    *,
    terms: Terms | None = None,
    arms: Sequence[ArmColumns] = (),
) -> AtPoints:
    """Returns the posterior at points that suits the kernel, exact unless a sketch is needed and asked for.

    Args:
        kernel: prior covariance. If its rank r is finite (`Kernel.features`) a round costs r^2, otherwise n^2.
        dimension: number of columns of a point.
        regularization: lambda, reward units squared.
        terms: of a sketch, which a kernel of finite rank does not need.
        arms: columns that hold one of finitely many arms or options each. If f is an independent function for each
            arm, of rank p, a round costs p^2 an arm.
    """
    from .weight_space import WeightSpacePosterior

    span = features_at_points(kernel, dimension, arms)
    if span is not None or terms is not None:
        return WeightSpacePosterior(kernel, dimension, regularization, span, None if span is not None else terms)
    return PointPosterior(kernel, dimension, regularization)


def features_at_points(kernel: Kernel, dimension: int, arms: Sequence[ArmColumns]) -> FeatureMap | None:
    """Returns the features of a kernel of finite rank, or None if there are too many (see `posterior_at_points`).

    A posterior of them holds `blocks * size**2` numbers.
    """
    for each in arms:
        found = arm_features(kernel, each)
        if found is not None and found.blocks * found.size**2 <= MOST_FEATURES**2:
            return found
    rank = kernel.rank(dimension)
    known = rank is not None and rank <= MOST_FEATURES and kernel.features(np.zeros((1, dimension))) is not None
    return KernelFeatures(kernel, rank) if known and rank is not None else None
