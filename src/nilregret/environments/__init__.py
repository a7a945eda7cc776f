"""Simulated environments, and functions to make them of."""

from .data.datasets import (
    METR_LA_WORKING_DAYS,
    intel_lab,
    intel_lab_log,
    la_highway,
    light_cmu,
    metr_la,
    mote_positions,
)
from .data.sensors import Readings, SensorNetwork, sensor_network
from .environment import Environment
from .rkhs_functions import (
    RKHSFunction,
    drifting_samples,
    gp_sample,
    literal_norm,
    range_noise,
    rkhs_fit,
    rkhs_function,
    rkhs_posterior_mean,
)
from .standard_functions import (
    ConstrainedProblem,
    KnownFunction,
    branin,
    data_rates,
    hartmann3,
    hartmann6,
    rosenbrock,
    small_feasible_region,
)
from .true_outputs import ArmFunction, Drifting, even_changes, random_changes

__all__ = [
    "METR_LA_WORKING_DAYS",
    "ArmFunction",
    "ConstrainedProblem",
    "Drifting",
    "Environment",
    "KnownFunction",
    "RKHSFunction",
    "Readings",
    "SensorNetwork",
    "branin",
    "data_rates",
    "drifting_samples",
    "even_changes",
    "gp_sample",
    "hartmann3",
    "hartmann6",
    "intel_lab",
    "intel_lab_log",
    "la_highway",
    "light_cmu",
    "literal_norm",
    "metr_la",
    "mote_positions",
    "random_changes",
    "range_noise",
    "rkhs_fit",
    "rkhs_function",
    "rkhs_posterior_mean",
    "rosenbrock",
    "sensor_network",
    "small_feasible_region",
]


def __dir__() -> list[str]:
    return __all__
