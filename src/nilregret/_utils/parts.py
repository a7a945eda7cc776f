"""Functions that import all described classes, listed by the root of the package.

A stored description names classes of rooms above this one. They are imported when an unknown name is met.
"""

from __future__ import annotations

from collections.abc import Callable

LOADERS: list[Callable[[], object]] = []
