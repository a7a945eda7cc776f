"""One call that tries parameters, learns and tries better ones: `maximize` and `minimize`, and the loop behind them."""

from .api import maximize, minimize
from .result import Result

__all__ = ["Result", "maximize", "minimize"]
