"""Decisions made again and again while learning: Gaussian-process (kernelized) bandits, theorem by theorem.

A name is loaded when it is first used, with the module it lives in: importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .algorithms import (
        asy_ts,
        expected_improvement,
        gp_bts,
        gp_bucb,
        gp_ts,
        gp_ts_sdf,
        gp_ucb,
        gp_ucb_cpd,
        gp_ucb_noiseless_constraints,
        gp_ucb_noisy_constraints,
        gp_ucb_sdf,
        greedy_mean,
        greedy_variance,
        igp_ucb,
        irgp_ucb,
        kernel_ucb,
        lb_gp_ucb,
        probability_of_improvement,
    )
    from .algorithms.auto import auto
    from .baselines import admmbo, bandit_oco
    from .change import (
        Calibration,
        ChangeDetector,
        ChangeTest,
        PowerLaw,
        RidgeChoice,
        calibrate_threshold,
        cross_validate_ridge,
        detect_change,
        gp_ucb_cpd_regret_bound,
        gp_ucb_cpd_regret_rate,
    )
    from .conditions import when
    from .domain import Arms, Box, Space
    from .environments import Environment
    from .errors import (
        InvalidInput,
        MissingData,
        MissingExtra,
        NoRegretError,
        NoRegretWarning,
        ServiceError,
        StorageError,
        TrialError,
    )
    from .fitting import Fit, Standardization, fit
    from .kernels import (
        Active,
        Empirical,
        Kernel,
        Linear,
        Matern,
        Mixture,
        Overlap,
        Periodic,
        Product,
        RationalQuadratic,
        Rounded,
        SquaredExponential,
        Sum,
        Tied,
        kernel_for,
    )
    from .likelihood import log_marginal_likelihood
    from .optimize import Result, maximize, minimize
    from .optimize.call import run
    from .parameters import Choice, Float, Int
    from .policy.policy import Policy
    from .rounds import Run
    from .search.boxes import PointSearch
    from .simulation import replicate, simulate
    from .slots.adaptive import DriftBank, EDetector
    from .slots.constraints import EveryRound, OnAverage
    from .slots.explore import CoordinateSearch, InitialDesign, InTurn
    from .slots.lengthscales import LengthscaleBank
    from .slots.memory import Discount, RestartAt, RestartDoubling, RestartEvery, RestartOnChange, SlidingWindow
    from .slots.penalties import ExponentialPenalty, PenaltyFunction, PowerPenalty
    from .slots.pending import Censored, Hallucinated, Ignored, NearestMeans
    from .slots.refit import Refit
    from .slots.rewards import Bernoulli, Bounded, Poisson
    from .slots.safe import Safe
    from .slots.silence import Imputed, LateOrNever
    from .slots.sketch import Sketch
    from .slots.switching import Lazy
    from .slots.together import AllOf
    from .study.explanation import Explanation
    from .study.rewards import Rewards
    from .study.study import Study
    from .theory.constraint_bounds import least_slack, noiseless_constraints_bounds, noisy_constraints_bounds
    from .theory.delayed_bounds import (
        conditional_gain_bound,
        gp_bucb_regret_bound,
        gp_ts_sdf_regret_bound,
        gp_ucb_sdf_regret_bound,
    )
    from .theory.information import GreedyDesign, Spectrum, effective_dimension, information_gain
    from .theory.rates import information_gain_rate
    from .theory.regret_bounds import gp_ts_regret_bound, gp_ucb_regret_bound, igp_ucb_regret_bound
    from .trial import Trial
    from .widths.series import EvenSeries, PowerSeries

_HOME = {
    "algorithms.auto": ["auto"],
    "algorithms": [
        "asy_ts",
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
        "igp_ucb",
        "irgp_ucb",
        "kernel_ucb",
        "lb_gp_ucb",
        "probability_of_improvement",
    ],
    "baselines": ["admmbo", "bandit_oco"],
    "change": [
        "Calibration",
        "ChangeDetector",
        "ChangeTest",
        "PowerLaw",
        "RidgeChoice",
        "calibrate_threshold",
        "cross_validate_ridge",
        "detect_change",
        "gp_ucb_cpd_regret_bound",
        "gp_ucb_cpd_regret_rate",
    ],
    "theory.constraint_bounds": ["least_slack", "noiseless_constraints_bounds", "noisy_constraints_bounds"],
    "conditions": ["when"],
    "domain": ["Arms", "Box", "Space"],
    "environments": ["Environment"],
    "errors": [
        "InvalidInput",
        "MissingData",
        "MissingExtra",
        "NoRegretError",
        "NoRegretWarning",
        "ServiceError",
        "StorageError",
        "TrialError",
    ],
    "fitting": ["Fit", "Standardization", "fit"],
    "theory.information": ["GreedyDesign", "Spectrum", "effective_dimension", "information_gain"],
    "kernels": [
        "Active",
        "Empirical",
        "Kernel",
        "Linear",
        "Matern",
        "Mixture",
        "Overlap",
        "Periodic",
        "Product",
        "RationalQuadratic",
        "Rounded",
        "SquaredExponential",
        "Sum",
        "Tied",
        "kernel_for",
    ],
    "likelihood": ["log_marginal_likelihood"],
    "optimize": ["Result", "maximize", "minimize"],
    "optimize.call": ["run"],
    "parameters": ["Choice", "Float", "Int"],
    "slots.constraints": ["EveryRound", "OnAverage"],
    "slots.explore": ["CoordinateSearch", "InTurn", "InitialDesign"],
    "slots.adaptive": ["DriftBank", "EDetector"],
    "slots.memory": ["Discount", "RestartAt", "RestartDoubling", "RestartEvery", "RestartOnChange", "SlidingWindow"],
    "slots.penalties": ["ExponentialPenalty", "PenaltyFunction", "PowerPenalty"],
    "slots.rewards": ["Bernoulli", "Bounded", "Poisson"],
    "slots.pending": ["Censored", "Hallucinated", "Ignored", "NearestMeans"],
    "slots.silence": ["Imputed", "LateOrNever"],
    "slots.lengthscales": ["LengthscaleBank"],
    "slots.refit": ["Refit"],
    "slots.safe": ["Safe"],
    "slots.sketch": ["Sketch"],
    "slots.switching": ["Lazy"],
    "slots.together": ["AllOf"],
    "search.boxes": ["PointSearch"],
    "widths.series": ["EvenSeries", "PowerSeries"],
    "policy": ["Policy"],
    "theory.rates": ["information_gain_rate"],
    "trial": ["Trial"],
    "theory.regret_bounds": ["gp_ts_regret_bound", "gp_ucb_regret_bound", "igp_ucb_regret_bound"],
    "theory.delayed_bounds": [
        "conditional_gain_bound",
        "gp_bucb_regret_bound",
        "gp_ts_sdf_regret_bound",
        "gp_ucb_sdf_regret_bound",
    ],
    "rounds": ["Run"],
    "simulation": ["replicate", "simulate"],
    "study.explanation": ["Explanation"],
    "study": ["Study"],
    "study.rewards": ["Rewards"],
}
_MODULE = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Active",
    "AllOf",
    "Arms",
    "Bernoulli",
    "Bounded",
    "Box",
    "Calibration",
    "Censored",
    "ChangeDetector",
    "ChangeTest",
    "Choice",
    "CoordinateSearch",
    "Discount",
    "DriftBank",
    "EDetector",
    "Empirical",
    "Environment",
    "EvenSeries",
    "EveryRound",
    "Explanation",
    "ExponentialPenalty",
    "Fit",
    "Float",
    "GreedyDesign",
    "Hallucinated",
    "Ignored",
    "Imputed",
    "InTurn",
    "InitialDesign",
    "Int",
    "InvalidInput",
    "Kernel",
    "LateOrNever",
    "Lazy",
    "LengthscaleBank",
    "Linear",
    "Matern",
    "MissingData",
    "MissingExtra",
    "Mixture",
    "NearestMeans",
    "NoRegretError",
    "NoRegretWarning",
    "OnAverage",
    "Overlap",
    "PenaltyFunction",
    "Periodic",
    "PointSearch",
    "Poisson",
    "Policy",
    "PowerLaw",
    "PowerPenalty",
    "PowerSeries",
    "Product",
    "RationalQuadratic",
    "Refit",
    "RestartAt",
    "RestartDoubling",
    "RestartEvery",
    "RestartOnChange",
    "Result",
    "Rewards",
    "RidgeChoice",
    "Rounded",
    "Run",
    "Safe",
    "ServiceError",
    "Sketch",
    "SlidingWindow",
    "Space",
    "Spectrum",
    "SquaredExponential",
    "Standardization",
    "StorageError",
    "Study",
    "Sum",
    "Tied",
    "Trial",
    "TrialError",
    "admmbo",
    "asy_ts",
    "auto",
    "bandit_oco",
    "calibrate_threshold",
    "conditional_gain_bound",
    "cross_validate_ridge",
    "detect_change",
    "effective_dimension",
    "expected_improvement",
    "fit",
    "gp_bts",
    "gp_bucb",
    "gp_bucb_regret_bound",
    "gp_ts",
    "gp_ts_regret_bound",
    "gp_ts_sdf",
    "gp_ts_sdf_regret_bound",
    "gp_ucb",
    "gp_ucb_cpd",
    "gp_ucb_cpd_regret_bound",
    "gp_ucb_cpd_regret_rate",
    "gp_ucb_noiseless_constraints",
    "gp_ucb_noisy_constraints",
    "gp_ucb_regret_bound",
    "gp_ucb_sdf",
    "gp_ucb_sdf_regret_bound",
    "greedy_mean",
    "greedy_variance",
    "igp_ucb",
    "igp_ucb_regret_bound",
    "information_gain",
    "information_gain_rate",
    "irgp_ucb",
    "kernel_for",
    "kernel_ucb",
    "lb_gp_ucb",
    "least_slack",
    "log_marginal_likelihood",
    "maximize",
    "minimize",
    "noiseless_constraints_bounds",
    "noisy_constraints_bounds",
    "probability_of_improvement",
    "replicate",
    "run",
    "simulate",
    "when",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("noregret")
    if name in ("environments", "plots"):  # what is in them keeps its prefix: `nr.environments.branin`
        return import_module(f".{name}", __name__)
    if name not in _MODULE:
        raise AttributeError(f"module 'noregret' has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
