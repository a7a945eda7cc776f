"""Promises of a class about its methods, which end where a subclass overrides one of them."""

from __future__ import annotations


def take_back(cls: type, name: str, default: object, methods: tuple[str, ...]) -> None:
    """Gives a class the default of an attribute if it overrides one of the methods, and not the attribute itself.

    Args:
        cls: the class, just made.
        name: the attribute, which a base has computed or declared for its own methods.
        default: the value that holds for any methods.
        methods: names of the methods that the attribute depends on.
    """
    own = vars(cls)
    if name not in own and any(method in own for method in methods):
        setattr(cls, name, default)
