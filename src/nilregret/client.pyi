# What type checkers read: `nilregret/__init__.py` gives this name to the module.

from .serve.client import *  # noqa: F403
