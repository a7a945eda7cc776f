"""Gaussian-process (kernelized) bandits: decisions made again and again while learning, theorem by theorem.

Each public name is imported from its module when it is first used, so that importing the package is fast.
"""

from __future__ import annotations

from typing import Any

from ._utils.public import LOADERS, public

# These modules are public, and not among the first names that `dir` shows.
_LATER = ("algorithms", "gp", "simulation", "evaluation", "study")
_load, _, __all__ = public(__name__, __path__, rooms=("kernels", "slots", "theory", "errors", *_LATER))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    return _load(name)


def __dir__() -> list[str]:
    return [name for name in __all__ if name not in _LATER]


def _load_parts() -> None:
    """Imports every module that has described classes."""
    from . import algorithms, kernels, slots
    from .algorithms import auto, baselines  # noqa: F401

    for package in (algorithms, kernels, slots):
        for name in dir(package):
            getattr(package, name)


LOADERS.append(_load_parts)
