"""Independent copies of objects, from a declaration of the attributes that a copy owns."""

from __future__ import annotations

from typing import Any, ClassVar, Self, TypeVar

from numpy import ndarray

T = TypeVar("T")


def independent(
    original: T, owned: tuple[str, ...] = (), owned_each: tuple[str, ...] = (), *, fresh: dict[str, Any] | None = None
) -> T:
    """Returns a copy that shares all attributes with the original but those named here.

    Shared attributes must be replaced when they change, never written into.

    Args:
        original: object whose attributes are in `__dict__`. Its `__init__` is not called.
        owned: attributes that are copied by their own `copy`, unless they are None. An array keeps its order in memory,
            since the order decides how products with it round.
        owned_each: lists and dicts that are copied with each of their values.
        fresh: attributes with values of their own in the copy, by name.
    """
    copy = object.__new__(type(original))
    attributes = copy.__dict__
    attributes.update(original.__dict__)
    for name in owned:
        value = attributes[name]
        if type(value) is ndarray:
            attributes[name] = value.copy("K")
        elif value is not None:
            attributes[name] = value.copy()
    for name in owned_each:
        values = attributes[name]
        if type(values) is dict:
            attributes[name] = {key: value.copy() for key, value in values.items()}
        else:
            attributes[name] = [value.copy() for value in values]
    if fresh:
        attributes.update(fresh)
    return copy


class Copyable:
    """An object that changes in place, and whose copies change independently of it.

    Attributes:
        OWNED: names of the attributes of which each copy has its own. All others are shared.
        OWNED_EACH: names of lists and dicts of which each copy has its own, with its own of each value.
    """

    OWNED: ClassVar[tuple[str, ...]] = ()
    OWNED_EACH: ClassVar[tuple[str, ...]] = ()

    def copy(self) -> Self:
        """Returns an independent object in the same state."""
        return independent(self, self.OWNED, self.OWNED_EACH)


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
