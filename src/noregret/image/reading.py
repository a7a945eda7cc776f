"""What an image shows, made again.

First come the objects that may be changed, empty, then what may not, from its parts; then the former are filled, and
last those whose keys are compared by content. Nothing of an image is called or evaluated on the way, and everything in
it is checked: whatever is odd ends in `BadImage`.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, final

import msgspec
import numpy as np

from ..trial import Trial
from .classes import BadImage, class_of, has_dict, has_field, is_named_tuple, is_plain, method_of, slots_of
from .writing import ALIGNED, MAGIC, NUMBERS, Kind

_HEAD = len(MAGIC) + 16
_TYPES = {dtype.str: np.dtype(dtype.str) for dtype in map(np.dtype, NUMBERS)}
DEEPEST = 100  # levels of tuples within each other: states have four
MOST_IN_KEYS = 200_000  # parts of all keys that are no plain values: a state of 10,000 trials has some thousands
_LATER = (Kind.LIST, Kind.DICT, Kind.COUNTER, Kind.SET, Kind.DEQUE, Kind.OBJECT)  # made empty
_ODD = (
    AttributeError, ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError,
    msgspec.MsgspecError,
)  # fmt: skip


def read(image: bytes, *, anchors: Mapping[str, Any], trials: Sequence[Trial], most: int) -> Any:
    """The object that an image shows.

    Args:
        image: as `write` gave it.
        anchors: objects by the ways to them (`Anchors.at`).
        trials: by number; as they were when it was written.
        most: bytes of all arrays.

    Raises:
        BadImage: it is none, or one of something else.
    """
    try:
        return _Reader(image, anchors, trials, most).made()
    except _ODD as error:
        raise BadImage(f"{type(error).__name__}: {error}") from error


@final
class _Reader:
    def __init__(self, image: bytes, anchors: Mapping[str, Any], trials: Sequence[Trial], most: int) -> None:
        self._anchors, self._trials, self._left = anchors, trials, most
        length, used = (int.from_bytes(image[at : at + 8], "big") for at in (_HEAD - 16, _HEAD - 8))
        if image[: len(MAGIC)] != MAGIC or len(image) != _HEAD + length + used:
            raise BadImage("its length")
        self._memory = memoryview(image)[_HEAD + length :]
        classes, self._nodes, self._root = msgspec.msgpack.decode(image[_HEAD : _HEAD + length])
        self._classes = [(class_of(name), tuple(fields)) for name, fields in classes]
        for cls, fields in self._classes:
            if len(set(fields)) < len(fields) or not all(has_field(cls, name) for name in fields):
                raise BadImage(f"fields {fields}")
        self._made: list[Any] = []
        self._deep = [0] * len(self._nodes)  # levels of tuples within each other
        self._keys = MOST_IN_KEYS
        self._whole: list[bool] = []  # whether what is made of a node may be referred to

    def made(self) -> Any:
        """See `read`."""
        for node in self._nodes:
            kind = node[0]
            self._made.append(self._empty(node) if kind in _LATER else None)
            self._whole.append(kind in _LATER)
        for at, node in enumerate(self._nodes):
            if not self._whole[at]:
                self._deep[at] = 1 + max((self._deep[i] for i in _references(_parts(node))), default=0)
                if self._deep[at] > DEEPEST:
                    raise BadImage("tuples within tuples without end")
                self._made[at] = _MADE[node[0]](self, node)
                self._whole[at] = True
        for kinds in ((Kind.LIST, Kind.DEQUE, Kind.OBJECT), (Kind.DICT, Kind.COUNTER, Kind.SET)):
            for made, node in zip(self._made, self._nodes, strict=True):
                if node[0] in kinds:
                    _FILLED[node[0]](self, made, node)
        for made, node in zip(self._made, self._nodes, strict=True):
            if node[0] in (Kind.ARRAY, Kind.VIEW):
                made.flags.writeable = bool(node[4] if node[0] == Kind.ARRAY else node[5])
        return self._value(self._root)

    # -- values --------------------------------------------------------------------------------------------------

    def _value(self, term: Any) -> Any:
        if type(term) is not list:
            if type(term) is dict:
                raise BadImage("a map")
            return term
        (at,) = term
        if type(at) is not int or at < 0 or not self._whole[at]:
            raise BadImage(f"node {at}")
        return self._made[at]

    def _values(self, terms: list[Any]) -> list[Any]:
        return [self._value(term) for term in terms]

    # -- made empty, and filled ----------------------------------------------------------------------------------

    def _empty(self, node: list[Any]) -> Any:
        if node[0] == Kind.DEQUE:
            return deque(maxlen=node[1])
        return self._empty_object(node) if node[0] == Kind.OBJECT else _EMPTY[node[0]]()

    def _empty_object(self, node: list[Any]) -> Any:
        cls, fields = self._classes[_index(node[1])]
        if not is_plain(cls) or len(node) != 2 + len(fields):
            raise BadImage(f"an object {cls}")
        return object.__new__(cls)

    def _fill_object(self, made: Any, node: list[Any]) -> None:
        cls, fields = self._classes[node[1]]
        slots, inside = slots_of(cls), made.__dict__ if has_dict(cls) else {}
        for name, term in zip(fields, node[2:], strict=True):
            if name in slots:
                slots[name].__set__(made, self._value(term))
            else:
                inside[name] = self._value(term)

    def _fill_list(self, made: list[Any], node: list[Any]) -> None:
        made += self._values(node[1:])

    def _fill_deque(self, made: deque[Any], node: list[Any]) -> None:
        made += self._values(node[2:])

    def _fill_set(self, made: set[Any], node: list[Any]) -> None:
        self._count_keys(node[1:])
        made.update(self._values(node[1:]))

    def _fill_dict(self, made: dict[Any, Any], node: list[Any]) -> None:
        self._count_keys(node[1::2])
        terms = self._values(node[1:])
        for key, value in zip(terms[::2], terms[1::2], strict=True):
            dict.__setitem__(made, key, value)

    def _count_keys(self, terms: list[Any]) -> None:
        """Refuse keys for whose hashes everything in them would be gone through without end."""
        left = [(i, 1) for i in _references(terms)]
        while left:
            at, level = left.pop()
            self._keys -= 1
            if self._keys < 0 or level > DEEPEST:
                raise BadImage("keys without end")
            hashing: Any = type(self._made[at]).__hash__
            if hashing != object.__hash__:
                left += [(i, level + 1) for i in _references(_parts(self._nodes[at]))]

    # -- made in one go ------------------------------------------------------------------------------------------

    def _tuple(self, node: list[Any]) -> Any:
        return tuple(self._values(node[1:]))

    def _named(self, node: list[Any]) -> Any:
        cls, _ = self._classes[_index(node[1])]
        if not is_named_tuple(cls) or len(node) != 2 + len(cls._fields):  # type: ignore[attr-defined]
            raise BadImage(f"a tuple {cls}")
        return tuple.__new__(cls, self._values(node[2:]))

    def _method(self, node: list[Any]) -> Any:
        _, term, name = node
        method = method_of(self._value(term), name)
        if method is None or type(term) is not list:
            raise BadImage(f"method {name}")
        return method

    def _partial(self, node: list[Any]) -> Any:
        _, term, given, more = node
        function, rest = self._value(term), self._values(more)
        if type(term) is not list or self._nodes[term[0]][0] != Kind.METHOD:
            raise BadImage("a part of no method")
        return partial(function, *self._values(given), **dict(zip(rest[::2], rest[1::2], strict=True)))

    def _enum(self, node: list[Any]) -> Any:
        cls, _ = self._classes[_index(node[1])]
        if not issubclass(cls, Enum):
            raise BadImage(f"a member of {cls}")
        return cls.__members__[node[2]]

    def _scalar(self, node: list[Any]) -> Any:
        _, kind, content = node
        return np.frombuffer(content, dtype=_dtype(kind), count=1)[0]

    def _large(self, node: list[Any]) -> Any:
        return int(node[1], 16)

    def _trial(self, node: list[Any]) -> Any:
        trial = self._trials[_index(node[1])]
        if len(node) == 2:
            return trial
        fields, other = list(trial), node[2:]
        for place, term in zip(other[::2], other[1::2], strict=True):
            fields[_index(place)] = self._value(term)
        return tuple.__new__(Trial, fields)

    def _field(self, node: list[Any]) -> Any:
        _, number, place = node
        return self._trials[_index(number)][_index(place)]

    def _anchor(self, node: list[Any]) -> Any:
        return self._anchors[node[1]]

    # -- arrays --------------------------------------------------------------------------------------------------

    def _array(self, node: list[Any]) -> Any:
        _, kind, shape, order, writeable, begin, size = node
        dtype, shape, begin, size = _dtype(kind), _shape(shape), _index(begin), _index(size)
        if sorted(order) != list(range(len(shape))) or type(writeable) is not bool or begin % ALIGNED:
            raise BadImage("an array's layout")
        whole = math.prod(shape) * dtype.itemsize
        self._left -= whole
        content = self._memory[begin : begin + size]
        if len(content) != size or size > whole or self._left < 0:
            raise BadImage("an array's memory")
        if order == list(range(len(shape)))[::-1]:
            made = np.zeros(shape, dtype, order="F")
            _fill_memory(made.T, content)
            return made
        made = np.zeros([shape[axis] for axis in order], dtype)
        _fill_memory(made, content)
        return made if order == sorted(order) else made.transpose(np.argsort(order))

    def _view(self, node: list[Any]) -> Any:
        _, term, kind, shape, strides, writeable, offset = node
        base, dtype, shape = self._value(term), _dtype(kind), _shape(shape)
        if type(base) is not np.ndarray or type(writeable) is not bool or len(strides) != len(shape):
            raise BadImage("a view of no array")
        if math.prod(shape) > max(base.size, 1):
            raise BadImage("a view that is larger than its array")
        if not all(type(step) is int for step in strides):
            raise BadImage("a view's steps")
        memory = base.reshape(-1, order="A")
        if base.size and not np.may_share_memory(memory, base):
            raise BadImage("a view of an array with holes")
        if _index(offset) > base.nbytes:
            raise BadImage("a view beyond its array")
        # numpy sees to it that the view stays inside.
        return np.ndarray(shape, dtype, buffer=memory.view(np.uint8), offset=offset, strides=tuple(strides))


def _parts(node: list[Any]) -> list[Any]:
    """The values that a node is made of, where it is compared by them."""
    if node[0] == Kind.PARTIAL:
        return [node[1], *node[2], *node[3]]
    first = {Kind.TUPLE: 1, Kind.METHOD: 1, Kind.NAMED: 2, Kind.TRIAL: 2, Kind.OBJECT: 2}.get(node[0])
    return [] if first is None else node[first:]


def _references(terms: list[Any]) -> list[int]:
    return [_index(term[0]) for term in terms if type(term) is list and term]


def _fill_memory(made: np.ndarray[Any, Any], content: memoryview) -> None:
    """The first bytes of an array in C's order."""
    if len(content):
        made.reshape(-1).view(np.uint8)[: len(content)] = np.frombuffer(content, np.uint8)


def _index(number: Any) -> int:
    if type(number) is not int or number < 0:
        raise BadImage(f"number {number!r}")
    return number


def _dtype(name: Any) -> np.dtype[Any]:
    if type(name) is not str or name not in _TYPES:
        raise BadImage("a type of numbers")
    return _TYPES[name]


def _shape(shape: Any) -> tuple[int, ...]:
    return tuple(_index(length) for length in shape)


_EMPTY: dict[str, Callable[[], Any]] = {Kind.LIST: list, Kind.DICT: dict, Kind.COUNTER: Counter, Kind.SET: set}
_MADE: dict[str, Callable[[_Reader, list[Any]], Any]] = {
    Kind.ARRAY: _Reader._array,
    Kind.TUPLE: _Reader._tuple,
    Kind.NAMED: _Reader._named,
    Kind.VIEW: _Reader._view,
    Kind.METHOD: _Reader._method,
    Kind.PARTIAL: _Reader._partial,
    Kind.ENUM: _Reader._enum,
    Kind.SCALAR: _Reader._scalar,
    Kind.WHOLE: _Reader._large,
    Kind.TRIAL: _Reader._trial,
    Kind.FIELD: _Reader._field,
    Kind.ANCHOR: _Reader._anchor,
}
_FILLED: dict[str, Callable[[_Reader, Any, list[Any]], None]] = {
    Kind.LIST: _Reader._fill_list,
    Kind.DICT: _Reader._fill_dict,
    Kind.COUNTER: _Reader._fill_dict,
    Kind.SET: _Reader._fill_set,
    Kind.DEQUE: _Reader._fill_deque,
    Kind.OBJECT: _Reader._fill_object,
}
