"""A policy whose spaces have another order of parameters or options than those on record.

The columns of the policy are put into the order on record. If the policy is then equal to the one on record, the study
goes on with that one. So decisions do not depend on the order that a program happened to have, such as that of a set.

| symbol | name | meaning | shape |
|---|---|---|---|
| d, c | | columns of a point and of a context | |
| | `orders[n]` | for each column on record the column now, by the number n of columns: d, c, c + d | (n,) |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..domains.domain import Space
from ..domains.space import column_order
from ..errors import InvalidInput
from ..serialize import from_plain

Orders = Mapping[int, list[int]]


def in_order_of(recorded: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Returns a policy's description in the order of the one on record, or as it is.

    It stays as it is if a list of numbers in it may be about columns and cannot be put into that order. It also stays
    as it is on sets of arms, whose numbers follow the order.

    Args:
        recorded: description of the policy on record.
        now: description of the policy.
    """
    if all(recorded.get(name) == now.get(name) for name in ("domain", "context")):
        return now
    of_points, of_contexts = (_order(recorded.get(name), now.get(name)) for name in ("domain", "context"))
    if of_points is None or of_contexts is None:
        return now
    joint = [*of_contexts, *(len(of_contexts) + column for column in of_points)]  # Of a (context, point) row.
    orders = {len(joint): joint}
    for part in (of_points, of_contexts):
        if orders.setdefault(len(part), part) != part:
            return now  # A point has as many columns as a context, in another order.
    try:
        return {
            name: recorded[name] if name in ("domain", "context") else _moved(entry, orders)
            for name, entry in now.items()
        }
    except _Unclear:
        return now


class _Unclear(Exception):
    """A list of numbers may be about columns, and has another length."""


def _order(recorded: Any, now: Any) -> list[int] | None:
    """Returns the order of the columns of a described domain, or None if the two differ in more."""
    if recorded is None or now is None:
        return [] if recorded is now else None
    try:
        then, here = from_plain(recorded), from_plain(now)
    except InvalidInput:  # Of another version.
        return None
    if isinstance(then, Space) and isinstance(here, Space):
        return column_order(then, here)
    return list(range(then.dimension)) if recorded == now else None


def _moved(entry: Any, orders: Orders) -> Any:
    """Returns an entry of a description with its columns in the order on record."""
    if isinstance(entry, dict):
        own, inside = _of_kernel(entry, orders)
        return {name: own[name] if name in own else _moved(value, inside) for name, value in entry.items()}
    if not isinstance(entry, list):
        return entry
    if not all(type(each) in (int, float) for each in entry):
        return [_moved(each, orders) for each in entry]
    if len(set(entry)) < 2:
        return entry
    return [entry[column] for column in _of_length(orders, len(entry))]


def _of_kernel(entry: dict[str, Any], orders: Orders) -> tuple[dict[str, Any], Orders]:
    """Returns the columns that a kernel names, in the order on record, and the orders for the kernel inside it.

    The kernel inside sees a column for each group, or the columns that are named.
    """
    groups, dimensions = entry.get("groups"), entry.get("dimensions")
    if isinstance(groups, list):
        moved = [groups[column] for column in _of_length(orders, len(groups))]
        names = list(dict.fromkeys(moved))
        return {"groups": [names.index(group) for group in moved]}, {len(names): names}
    if isinstance(dimensions, list):
        joint = orders[max(orders)]
        if not set(dimensions) <= set(joint):
            raise _Unclear
        moved = sorted(joint.index(column) for column in dimensions)
        return {"dimensions": moved}, {len(moved): [dimensions.index(joint[column]) for column in moved]}
    return {}, orders


def _of_length(orders: Orders, length: int) -> list[int]:
    if length not in orders:
        raise _Unclear
    return orders[length]
