"""Imports that make every described class known; the root of the package fills the list.

A stored description names classes of rooms above this one, which are imported when an unknown name is met.
"""

from __future__ import annotations

from collections.abc import Callable

LOADERS: list[Callable[[], object]] = []
