"""Verma, Dai and Low (2022): figures 1 to 5, and comparisons at equal width that are not in the paper."""

from . import synthetic, tuning, widths  # This is the order of the list of figures.
from .synthetic import PAPER

__all__ = ["PAPER", "synthetic", "tuning", "widths"]
