"""Decisions made again and again while learning: Gaussian-process (kernelized) bandits, theorem by theorem.

A name is loaded when it is first used, with the module it lives in: importing the package costs next to nothing.
"""

from __future__ import annotations

import sys
from typing import Any

from ._utils import parts
from ._utils.public import PublicModules, public

_load, __all__ = public(
    __name__,
    __path__,
    also=tuple(
        f"{__name__}.{room}"
        for room in (
            "kernels",
            "slots",
            "algorithms",
            "algorithms.baselines",
            "theory",
            "_utils.errors",
            "gp",
            "simulation",
            "study",
        )
    ),
)


# Shorter names of modules, for imports.
sys.meta_path.append(
    PublicModules(
        {
            f"{__name__}.{name}": f"{__name__}.{place}"
            for name, place in {
                "errors": "_utils.errors",
                "serialize": "_utils.serialize",
                "environments": "simulation.environments",
                "plots": "study.plots",
                "client": "serve.client",
            }.items()
        }
    )
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    value = _load(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def _load_parts() -> None:
    """Imports every module that has described classes."""
    from .algorithms import baselines  # noqa: F401
    from .slots import safe  # noqa: F401


parts.LOADERS.append(_load_parts)
