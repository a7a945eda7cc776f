# What type checkers read: `nilregret/__init__.py` gives this name to the module.

from ._utils.serialize import *  # noqa: F403
