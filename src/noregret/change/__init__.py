"""Has the world changed? Algorithm 1 of Avanesov's GP-UCB-CPD, once and after every pair; its schedules."""

from __future__ import annotations

from .algorithm import ChangeTest, detect_change
from .calibration import Calibration, calibrate_threshold, uniform_points
from .detector import ChangeDetector
from .schedules import (
    PowerLaw,
    Schedule,
    detection_exponent,
    detection_ridge,
    detection_threshold,
    smoothness,
    threshold_level,
    ucb_beta,
    ucb_regularization,
    uniform_count,
)

__all__ = [
    "Calibration",
    "ChangeDetector",
    "ChangeTest",
    "PowerLaw",
    "Schedule",
    "calibrate_threshold",
    "detect_change",
    "detection_exponent",
    "detection_ridge",
    "detection_threshold",
    "smoothness",
    "threshold_level",
    "ucb_beta",
    "ucb_regularization",
    "uniform_count",
    "uniform_points",
]
