"""Optimisation of an objective in one call (`maximize`, `minimize`, `run`), and the loop that carries it out."""

from .api import maximize, minimize
from .result import Result

__all__ = ["Result", "maximize", "minimize"]
