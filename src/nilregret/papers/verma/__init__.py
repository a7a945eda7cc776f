"""Verma, Dai and Low (2022): figures 1 to 5, and comparisons at equal width that are not in the paper."""

from . import synthetic, tuning, contexts, widths  # noqa: I001 - This is the order of the list of figures.
from .rules import PAPER

__all__ = ["PAPER", "contexts", "synthetic", "tuning", "widths"]
