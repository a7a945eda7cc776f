"""Methods that constrained policies are compared with, under the same interface; what they promise is another thing."""

from .admm import Admmbo, admmbo
from .oco import BanditOco, bandit_oco

__all__ = ["Admmbo", "BanditOco", "admmbo", "bandit_oco"]
