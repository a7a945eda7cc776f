"""Promises of a class about its methods, which end where a subclass overrides one of them."""

from __future__ import annotations


def take_back(cls: type, name: str, default: object, methods: tuple[str, ...] | None = None) -> None:
    """Gives a class the default of an attribute if it may break what the attribute promises.

    It keeps an attribute that it sets itself.

    Args:
        cls: the class, just made.
        name: the attribute, which a base has computed or declared for its own methods.
        default: the value that holds for any methods.
        methods: names of the methods that the attribute depends on, or None if every override may break it.
    """
    own = vars(cls)
    if name not in own and (methods is None or any(method in own for method in methods)):
        setattr(cls, name, default)
