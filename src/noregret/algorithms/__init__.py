"""The algorithms, one module a paper: each a citation and the parts that fill the slots of a policy."""

from __future__ import annotations

from .chowdhury import gp_ts, igp_ucb, kernel_ucb
from .srinivas import expected_improvement, gp_ucb, greedy_mean, greedy_variance, probability_of_improvement

__all__ = [
    "expected_improvement",
    "gp_ts",
    "gp_ucb",
    "greedy_mean",
    "greedy_variance",
    "igp_ucb",
    "kernel_ucb",
    "probability_of_improvement",
]
