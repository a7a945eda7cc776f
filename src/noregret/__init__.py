"""Decisions made again and again while learning: Gaussian-process (kernelized) bandits, theorem by theorem.

Importing the package loads numpy and scipy.linalg and little else; whatever a call needs beyond (the database, the
pictures, processes) is loaded when it is made.
"""

from __future__ import annotations

from .algorithms import gp_ucb
from .domain import Arms, Box, Choice, Float, Int, Space
from .environments import Environment
from .errors import InvalidInput, MissingExtra, NoRegretError, NoRegretWarning, StorageError, TrialError
from .fitting import Fit, Standardization, fit
from .kernels import Active, Empirical, Kernel, Linear, Matern, Product, SquaredExponential, Sum
from .likelihood import log_marginal_likelihood
from .policy import Policy
from .record import Trial
from .simulate import Run, replicate, simulate
from .study import Study

__all__ = [
    "Active",
    "Arms",
    "Box",
    "Choice",
    "Empirical",
    "Environment",
    "Fit",
    "Float",
    "Int",
    "InvalidInput",
    "Kernel",
    "Linear",
    "Matern",
    "MissingExtra",
    "NoRegretError",
    "NoRegretWarning",
    "Policy",
    "Product",
    "Run",
    "Space",
    "SquaredExponential",
    "Standardization",
    "StorageError",
    "Study",
    "Sum",
    "Trial",
    "TrialError",
    "fit",
    "gp_ucb",
    "log_marginal_likelihood",
    "replicate",
    "simulate",
]


def __getattr__(name: str) -> str:
    if name == "__version__":
        from importlib.metadata import version  # slow to import, and rarely asked for

        return version("noregret")
    raise AttributeError(f"module 'noregret' has no attribute {name!r}")
