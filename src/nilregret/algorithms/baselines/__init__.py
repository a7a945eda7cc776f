"""Methods from other fields that constrained policies are compared with, with the same interface."""

from .admm import Admmbo, admmbo
from .oco import BanditOco, bandit_oco

__all__ = ["Admmbo", "BanditOco", "admmbo", "bandit_oco"]
