# What type checkers read: `nilregret/__init__.py` gives this name to the module.

from .simulation.environments import *  # noqa: F403
