"""The algorithms, one module for each paper. An algorithm is a named combination of the parts of a policy."""

from __future__ import annotations

from .avanesov import gp_ucb_cpd
from .baselines import admmbo, bandit_oco
from .chowdhury import gp_ts, igp_ucb, kernel_ucb
from .definition import Slots as Slots
from .desautels import asy_ts, gp_bts, gp_bucb
from .fidelities import boca
from .golovin import hypervolume_thompson, hypervolume_ucb
from .shi import gp_ucb_noiseless_constraints, gp_ucb_noisy_constraints
from .srinivas import expected_improvement, gp_ucb, greedy_mean, greedy_variance, probability_of_improvement
from .takeno import irgp_ucb
from .verma import gp_ts_sdf, gp_ucb_sdf
from .ziomek import lb_gp_ucb

__all__ = [
    "admmbo",
    "asy_ts",
    "bandit_oco",
    "boca",
    "expected_improvement",
    "gp_bts",
    "gp_bucb",
    "gp_ts",
    "gp_ts_sdf",
    "gp_ucb",
    "gp_ucb_cpd",
    "gp_ucb_noiseless_constraints",
    "gp_ucb_noisy_constraints",
    "gp_ucb_sdf",
    "greedy_mean",
    "greedy_variance",
    "hypervolume_thompson",
    "hypervolume_ucb",
    "igp_ucb",
    "irgp_ucb",
    "kernel_ucb",
    "lb_gp_ucb",
    "probability_of_improvement",
]


def __dir__() -> list[str]:
    return __all__
