"""Contexts as columns of numbers, for the reward model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from .._utils.checks import Array

MOST_COLUMNS = 200  # The reward model solves systems of this size.
MOST_LEVELS = 32  # values of a category that have a column each


def features_of(contexts: Any, count: int) -> Array:
    """Returns the columns of numbers that describe contexts, `(n, c)`.

    Numbers are taken as they are. Each frequent value of a text has a column of its own. Missing values are the mean.

    Args:
        contexts: `(n, c)`, or a list of numbers, texts, lists and dictionaries, or None.
        count: n.
    """
    if contexts is None:
        return np.zeros((count, 0))
    if isinstance(contexts, np.ndarray) and contexts.dtype.kind in "fiub":
        return _filled(contexts.reshape(count, -1).astype(np.float64)[:, :MOST_COLUMNS])
    numbers: dict[str, list[tuple[int, float]]] = {}
    levels: dict[str, list[tuple[int, Any]]] = {}
    for row, context in enumerate(contexts):
        for name, value in _entries("", context):
            if isinstance(value, Real):
                numbers.setdefault(name, []).append((row, float(value)))
            elif value is not None:
                levels.setdefault(name, []).append((row, value))
    columns = []
    for _, cells in sorted(numbers.items(), key=lambda item: -len(item[1]))[:MOST_COLUMNS]:
        column = np.full(count, np.nan)
        rows, values = zip(*cells, strict=True)
        column[list(rows)] = values
        columns.append(column)
    for texts in levels.values():
        for level, _ in Counter(value for _, value in texts).most_common(MOST_LEVELS):
            column = np.zeros(count)
            column[[row for row, value in texts if value == level]] = 1.0
            columns.append(column)
    return _filled(np.column_stack(columns[:MOST_COLUMNS])) if columns else np.zeros((count, 0))


def _entries(name: str, context: Any) -> Iterator[tuple[str, Any]]:
    """Yields the numbers and texts in a context, with their names."""
    if isinstance(context, Mapping):
        for key, value in context.items():
            yield from _entries(f"{name}.{key}", value)
    elif isinstance(context, np.ndarray) or (isinstance(context, Sequence) and not isinstance(context, str | bytes)):
        for i, value in enumerate(context):
            yield from _entries(f"{name}.{i}", value)
    else:
        yield name, context


def _filled(columns: Array) -> Array:
    """Returns columns with their means in place of missing and infinite values."""
    finite = np.isfinite(columns)
    if finite.all():
        return columns
    known = np.where(finite, columns, 0.0)
    means = known.sum(axis=0) / np.maximum(finite.sum(axis=0), 1)
    return np.where(finite, columns, means)
