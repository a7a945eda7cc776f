"""The algorithms: each a citation and the parts that fill its slots."""

from __future__ import annotations

from .checks import LARGEST_REWARD, number, one_of
from .domain import Arms
from .kernels import Kernel
from .parts.confidence import FiniteBayes
from .parts.scores import UpperConfidenceBound
from .policy import Policy


def gp_ucb(
    domain: Arms,
    kernel: Kernel,
    *,
    noise: float,
    width: str = "finite",
    scale: float = 1.0,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
) -> Policy:
    """GP-UCB: play argmax mu_{t-1}(x) + beta_t^{1/2} sigma_{t-1}(x) (Srinivas et al. 2010, Algorithm 1, eq. 6).

    Args:
        domain: the arms.
        kernel: prior covariance of the rewards; the theorem assumes k(x, x) <= 1.
        noise: standard deviation of the reward noise, reward units.
        width: "finite" for Theorem 1, beta_t = 2 log(|D| t^2 pi^2 / (6 delta)).
        scale: multiplies beta_t; the paper's experiments divide it by 5.
        delta: failure probability of the confidence bounds.
        regularization: lambda; `noise**2` unless given, as in eq. 1. With another value nothing is proved.
        prior_mean: what a reward is expected to be before anything is seen; the theorem is for f - prior_mean.
    """
    one_of("width", width, ["finite"], why="Theorem 1 is for finitely many arms.")
    why = "It is a standard deviation, in the units of the reward."
    noise = number("noise", noise, low=0.0, high=LARGEST_REWARD, why=why)
    ridge = noise**2 if regularization is None else regularization  # sigma^2 of eq. 1
    return Policy(
        algorithm="gp_ucb",
        domain=domain,
        kernel=kernel,
        noise=noise,
        regularization=ridge,
        prior_mean=prior_mean,
        confidence=FiniteBayes(delta=delta, scale=scale, noise_matched=ridge == noise**2),  # Theorem 1
        score=UpperConfidenceBound(),  # eq. 6
    )
