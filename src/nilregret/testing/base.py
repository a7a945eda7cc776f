"""Shared helpers of the checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._utils.checks import Array


def promise(kept: object, sentence: str) -> None:
    """Raises an `AssertionError` with this sentence if a promise is not kept."""
    if not kept:
        raise AssertionError(sentence)


def same(first: Any, second: Any) -> bool:
    """Returns True if two nested tuples of arrays and plain values are equal to the last bit."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return bool(np.array_equal(first, second, equal_nan=True))
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    both_nan = isinstance(first, float) and isinstance(second, float) and first != first and second != second
    return both_nan or bool(first == second)


def close(first: Array, second: Array, tolerance: float) -> bool:
    """Returns True if two arrays have one shape and agree within `tolerance` relative to the second one."""
    if first.shape != second.shape:
        return False
    size = max(1.0, float(np.abs(second).max(initial=0.0)))
    return bool(np.isfinite(first).all() and (np.abs(first - second) <= tolerance * size).all())


def refused(call: Callable[[], object], kinds: type[Exception] | tuple[type[Exception], ...]) -> bool:
    """Returns True if a call raises one of these exceptions."""
    try:
        call()
    except kinds:
        return True
    return False


def central_differences(function: Callable[[Array], float], at: Array, step: float = 1e-5) -> Array:
    """Returns the gradient of a function at an array, of its shape, by Richardson-extrapolated differences."""
    gradient = np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        shift = np.zeros(at.shape)
        shift[index] = step
        near = (function(at + shift) - function(at - shift)) / (2 * step)
        far = (function(at + 2 * shift) - function(at - 2 * shift)) / (4 * step)
        gradient[index] = (4 * near - far) / 3
    return gradient
