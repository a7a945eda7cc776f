"""What all checks use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._utils.checks import Array


def promise(kept: object, sentence: str) -> None:
    """An `AssertionError` with this sentence where a promise is not kept."""
    if not kept:
        raise AssertionError(sentence)


def same(first: Any, second: Any) -> bool:
    """Whether two nested tuples of arrays and plain values are equal to the last bit."""
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return bool(np.array_equal(first, second, equal_nan=True))
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    both_nan = isinstance(first, float) and isinstance(second, float) and first != first and second != second
    return both_nan or bool(first == second)


def close(first: Array, second: Array, tolerance: float) -> bool:
    """Whether two arrays are of one shape and agree to within a share of the larger one's size."""
    if first.shape != second.shape:
        return False
    size = max(1.0, float(np.abs(second).max(initial=0.0)))
    return bool(np.isfinite(first).all() and (np.abs(first - second) <= tolerance * size).all())


def refused(call: Callable[[], object], kinds: type[Exception] | tuple[type[Exception], ...]) -> bool:
    """Whether a call raises one of these."""
    try:
        call()
    except kinds:
        return True
    return False


def central_differences(function: Callable[[Array], float], at: Array, step: float = 1e-5) -> Array:
    """The gradient of a function of an array, by Richardson-extrapolated central differences, of its shape."""
    gradient = np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        shift = np.zeros(at.shape)
        shift[index] = step
        near = (function(at + shift) - function(at - shift)) / (2 * step)
        far = (function(at + 2 * shift) - function(at - 2 * shift)) / (4 * step)
        gradient[index] = (4 * near - far) / 3
    return gradient
