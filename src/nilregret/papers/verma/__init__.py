"""Verma, Dai and Low (2022): figures 1 to 5, and two of our own on what their method is compared with."""

from . import contexts, synthetic, tuning, widths
from .rules import PAPER

__all__ = ["PAPER", "contexts", "synthetic", "tuning", "widths"]
