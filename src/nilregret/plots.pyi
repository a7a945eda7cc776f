# What type checkers read: `nilregret/__init__.py` gives this name to the module.

from .study.plots import *  # noqa: F403
