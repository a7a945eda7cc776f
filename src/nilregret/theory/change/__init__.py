"""Change tests: Algorithm 1 of Avanesov's GP-UCB-CPD for one test and after every pair, with its schedules."""

from __future__ import annotations

from .algorithm import ChangeTest, detect_change
from .bounds import gp_ucb_cpd_regret_bound, gp_ucb_cpd_regret_rate, pairs_to_detect, regret_exponent
from .calibration import Calibration, calibrate_threshold, uniform_points
from .detector import ChangeDetector
from .schedules import (
    PowerLaw,
    Schedule,
    checked_schedule,
    detection_exponent,
    detection_ridge,
    detection_threshold,
    smoothness,
    threshold_level,
    ucb_beta,
    ucb_regularization,
    ucb_rho,
    uniform_count,
)
from .validation import RidgeChoice, cross_validate_ridge

__all__ = [
    "Calibration",
    "ChangeDetector",
    "ChangeTest",
    "PowerLaw",
    "RidgeChoice",
    "Schedule",
    "calibrate_threshold",
    "checked_schedule",
    "cross_validate_ridge",
    "detect_change",
    "detection_exponent",
    "detection_ridge",
    "detection_threshold",
    "gp_ucb_cpd_regret_bound",
    "gp_ucb_cpd_regret_rate",
    "pairs_to_detect",
    "regret_exponent",
    "smoothness",
    "threshold_level",
    "ucb_beta",
    "ucb_regularization",
    "ucb_rho",
    "uniform_count",
    "uniform_points",
]
