"""A policy on a changed space: the parts that count columns or points are made anew, the others stay.

Lengthscales are shares of the range of a parameter, so a kernel stays as it is where a range changes. If a choice has
other options, or parameters are new, the kernel gets the columns of the new space. A new parameter gets the median
lengthscale of the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

from ..domains.domain import Space, count_of_points, options_of
from ..domains.options import known
from ..errors import InvalidInput
from ..kernels.domains import parameter_groups
from ..serialize import from_plain, to_plain
from .policy import Policy

# Parts with points of the old space, which would mean others in the new one.
FIXED = {
    "EarlierStudies": "`like=`",
    "GivenPoints": "given points, as `like=` gives some",
    "Safe": "`nr.Safe`, whose start has points",
}
BY_COLUMN = {"dimensions", "groups"}  # Fields of kernels that name columns.


class _Columns(NamedTuple):
    """The columns of a (context, point) row.

    Attributes:
        groups: the parameter of each column.
        names: the name of each parameter, with a number for a column of a context.
    """

    groups: tuple[int, ...]
    names: tuple[str | int, ...]


def on_space(policy: Policy[Any], space: Space) -> Policy[Any]:
    """Returns the policy on another space.

    Raises:
        InvalidInput: the policy plays in no space, or a part of it belongs to the old one.
    """
    old = policy.domain
    if not isinstance(old, Space):
        raise InvalidInput("Only a `Space` of named parameters can change.")
    before, after = count_of_points(old), count_of_points(space)
    if before is not None and after is not None:
        confidence, score = policy.confidence.for_arms(before, after), policy.score.for_arms(before, after)
        policy = replace(policy, confidence=confidence, score=score)
    elif before is not None and policy.valid_for != "none":
        raise InvalidInput("its bounds are proved for finitely many points, and the new space has infinitely many")
    plain = cast("dict[str, Any]", to_plain(policy))
    _refuse_fixed(plain)
    columns, now = _columns_of(old, policy), _columns_of(space, policy)
    if columns != now:
        plain = {name: _moved(entry, columns, now) for name, entry in plain.items() if name != "context"}
        plain["context"] = to_plain(policy.context)
    with known(options_of(space, policy.context)):  # Classes and functions stay those of the user.
        new = cast("Policy[Any]", from_plain({**plain, "domain": to_plain(space)}))
    new.domain.changed = True
    return replace(new, confidence=new.confidence.for_space(policy, new))


def _refuse_fixed(entry: Any) -> None:
    if isinstance(entry, dict):
        if (kind := entry.get("type")) in FIXED:
            raise InvalidInput(f"it was made with {FIXED[kind]}, in coordinates of the space that it has now")
        for value in entry.values():
            _refuse_fixed(value)
    elif isinstance(entry, list) and entry and isinstance(entry[0], dict | list):
        for value in entry:
            _refuse_fixed(value)


def _columns_of(space: Space, policy: Policy[Any]) -> _Columns:
    contexts = 0 if policy.context is None else max(parameter_groups(policy.context)) + 1
    return _Columns(parameter_groups(space, policy.context), (*range(contexts), *space.parameters))


def _moved(entry: Any, old: _Columns, new: _Columns) -> Any:
    """Returns a plain description with the columns of the new space."""
    if isinstance(entry, list):
        return [_moved(each, old, new) for each in entry]
    if not isinstance(entry, dict) or entry.get("type") in ("Space", "Arms", "Box"):
        return entry
    kind, lengths, inner = entry.get("type"), entry.get("lengthscale"), entry.get("kernel")
    if kind == "Tied" and entry["groups"] == list(old.groups) and isinstance(inner, dict):
        return _tied(inner, old, new)
    if isinstance(lengths, list) and len(lengths) == len(old.groups) == len(old.names):
        return _tied(entry, old, new)
    if BY_COLUMN & entry.keys() or isinstance(lengths, list):
        raise InvalidInput(f"its kernel {kind} names columns, and the new space has others")
    moved = {name: _moved(value, old, new) for name, value in entry.items()}
    return moved | {"dimension": len(new.groups)} if moved.get("dimension") == len(old.groups) else moved


def _tied(kernel: dict[str, Any], old: _Columns, new: _Columns) -> dict[str, Any]:
    """Returns a stationary kernel with a lengthscale for each parameter of the new space."""
    lengths = kernel["lengthscale"]
    if isinstance(lengths, list):
        known: dict[str | int, float] = dict(zip(old.names, lengths, strict=True))
        middle = sorted(lengths)[len(lengths) // 2]
        kernel = kernel | {"lengthscale": [known.get(name, middle) for name in new.names]}
    if len(new.names) == len(new.groups):
        return kernel
    return {"type": "Tied", "kernel": kernel, "groups": list(new.groups)}
