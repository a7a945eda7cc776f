"""A policy on a changed space, or under changed contexts: parts that count columns or points are made anew.

The others stay.

Lengthscales are shares of the range of a parameter, so a kernel stays as it is where a range changes. If a choice has
other options, or parameters are new, the kernel gets the columns of the new space. A new parameter gets the median
lengthscale of the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, cast

from ..domains.domain import Arms, Domain, Space, count_of_points, options_of
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
        names: of each parameter or coordinate, whether it is of the context, and its name or number.
    """

    groups: tuple[int, ...]
    names: tuple[tuple[bool, str | int], ...]

    @classmethod
    def of(cls, domain: Domain, context: Domain | None) -> _Columns:
        """Returns the columns of a domain under contexts."""
        names: list[tuple[bool, str | int]] = []
        for part in (domain,) if context is None else (context, domain):
            space = part.space if isinstance(part, Arms) else part if isinstance(part, Space) else None
            names += [
                (part is context, each) for each in (range(part.dimension) if space is None else space.parameters)
            ]
        return cls(parameter_groups(domain, context), tuple(names))


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
    _refuse_fixed(to_plain(policy))
    new = _made_on(policy, space, policy.context)
    new.domain.changed = True
    return replace(new, confidence=new.confidence.for_space(policy, new))


def on_context(policy: Policy[Any], context: Space) -> Policy[Any]:
    """Returns the policy under contexts of another space.

    Raises:
        InvalidInput: the policy has no contexts by name, or a part of it belongs to the old ones.
    """
    old = policy.context
    if not isinstance(old, Space):
        raise InvalidInput("Only a `Space` of named contexts can change.")
    before, after = count_of_points(old), count_of_points(context)
    if before is not None and after is not None:
        policy = replace(policy, confidence=policy.confidence.for_arms(before, after))
    new = _made_on(policy, policy.domain, context)
    if isinstance(policy.domain, Space):
        new.domain.changed = policy.domain.changed
    return replace(new, confidence=new.confidence.for_space(policy, new))


def _made_on(policy: Policy[Any], domain: Domain, context: Domain | None) -> Policy[Any]:
    """Returns the policy on another domain, or under other contexts, with a kernel of its columns."""
    plain = cast("dict[str, Any]", to_plain(policy))
    columns, now = _Columns.of(policy.domain, policy.context), _Columns.of(domain, context)
    if columns != now:
        plain = {name: _moved(entry, columns, now) for name, entry in plain.items()}
    with known(options_of(domain, context)):  # Classes and functions stay those of the user.
        return cast("Policy[Any]", from_plain({**plain, "domain": to_plain(domain), "context": to_plain(context)}))


def _refuse_fixed(entry: Any) -> None:
    if isinstance(entry, dict):
        if (kind := entry.get("type")) in FIXED:
            raise InvalidInput(f"it was made with {FIXED[kind]}, in coordinates of the space that it has now")
        for value in entry.values():
            _refuse_fixed(value)
    elif isinstance(entry, list) and entry and isinstance(entry[0], dict | list):
        for value in entry:
            _refuse_fixed(value)


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
        known: dict[tuple[bool, str | int], float] = dict(zip(old.names, lengths, strict=True))
        kernel = kernel | {"lengthscale": [known.get(name) or _median(known, name[0]) for name in new.names]}
    if len(new.names) == len(new.groups):
        return kernel
    return {"type": "Tied", "kernel": kernel, "groups": list(new.groups)}


def _median(lengths: dict[tuple[bool, str | int], float], of_context: bool) -> float:
    """Returns the median lengthscale of all parameters, or of those of the context, whose unit is 1."""
    listed = sorted(length for name, length in lengths.items() if name[0] or not of_context)
    return listed[len(listed) // 2]
