"""Exact Gaussian-process posteriors whose cost a round does not grow with the number of rounds."""

from __future__ import annotations

from ..checks import number
from ..domain import Arms
from ..kernels import Kernel
from .arms import ArmPosterior, Prior
from .bank import BankPosterior
from .belief import Belief, PointBelief, TableBelief
from .drifting import DriftingPosterior
from .factorization import pivoted_cholesky, tolerance
from .features import FeaturePosterior
from .paths import Path, sample_path
from .played import PlayedPosterior
from .points import Gradients, PointPosterior
from .protocol import Posterior, RevisablePosterior
from .rates import Known, RatePosterior
from .retraced import Retraced
from .standing import Standing

__all__ = [
    "ArmPosterior",
    "BankPosterior",
    "Belief",
    "DriftingPosterior",
    "FeaturePosterior",
    "Gradients",
    "Known",
    "Path",
    "PlayedPosterior",
    "PointBelief",
    "PointPosterior",
    "Posterior",
    "RatePosterior",
    "Retraced",
    "RevisablePosterior",
    "Standing",
    "TableBelief",
    "posterior_on_arms",
    "sample_path",
]

MAX_RANK = 128  # features of higher rank cost more a round than the arms played usually do


def posterior_on_arms(domain: Arms, kernel: Kernel, regularization: float) -> ArmPosterior:
    """The exact posterior on arms by the engine that suits the kernel.

    Features of low rank where the kernel matrix has them within the tolerance of `factorization`; the arms played
    where it does not (rough kernels on many arms).

    Args:
        domain: the arms.
        kernel: prior covariance.
        regularization: lambda, reward units squared.
    """
    prior = Prior(kernel, domain.points)
    tol = tolerance(prior.variance, number("regularization", regularization, low=0.0, open_low=True))
    factor = pivoted_cholesky(kernel, domain.points, tol=tol, max_rank=MAX_RANK)
    if factor.complete:
        return FeaturePosterior(prior, factor, regularization)
    return PlayedPosterior(prior, regularization)
