"""Storages: where the records of studies live between runs."""

from __future__ import annotations

from typing import Any

from .._utils.public import public

_load, __all__ = public(__name__, __path__)


def __getattr__(name: str) -> Any:
    value = _load(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
