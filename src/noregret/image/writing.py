"""An object and all that it refers to, as bytes.

| part | content |
|---|---|
| header | MessagePack: `[classes, nodes, root]` |
| memory | of arrays, each from a multiple of `ALIGNED` on, without the zeros at its end: room to grow is mostly zeros |

A value is nothing, a truth value, a number, a text or bytes as it is, or `[i]` for node i. A node is `[kind, ...]`, see
`Kind`. What may be changed comes before or after what refers to it; what may not (a tuple) comes after its parts, so
that it can be made in one go.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from types import MethodType
from typing import Any, final

import msgspec
import numpy as np

from ..trial import Trial
from .classes import Unimageable, has_field, is_named_tuple, is_plain, method_of, name_of, slots_of

MAGIC = b"nrgimg01"  # and the version of the format
ALIGNED = 16  # bytes
CHUNK = 2**16  # bytes looked at in one go for zeros
NUMBERS = "?bBhHiIlLqQefdFD"  # types of arrays: their memory is all there is of them
LARGEST = 2**63  # of whole numbers that are written as they are
_ARRAYS = tuple(Trial._fields.index(name) for name in ("point", "context", "constraints"))
_ATOMS = (type(None), bool, float, str, bytes)
Term = Any  # what msgspec takes


class Kind:
    """What stands at the beginning of a node, and what follows it."""

    LIST = "l"  # values
    DICT = "d"  # keys and values in turn
    COUNTER = "c"  # likewise
    SET = "s"  # values
    DEQUE = "q"  # its largest length, values
    ARRAY = "a"  # type, shape, axes from slow to fast, whether it may be written to, where its memory begins, length
    OBJECT = "x"  # class and names of fields, by number; values
    TUPLE = "t"  # values
    NAMED = "m"  # class by number; values
    VIEW = "v"  # the array whose memory it shows, type, shape, strides, whether it may be written to, offset
    METHOD = "b"  # whose, name
    PARTIAL = "p"  # of what, arguments, names and values in turn
    ENUM = "e"  # class by number, name
    SCALAR = "n"  # type, bytes
    WHOLE = "i"  # a large whole number in words
    TRIAL = "r"  # number; places and values that differ from the record's
    FIELD = "g"  # number of a trial, place
    ANCHOR = "k"  # the way to it


def write(root: object, *, anchors: Mapping[int, str], trials: Sequence[Trial], most: int) -> bytes:
    """The image of an object.

    Args:
        root: the object; it must not be changed meanwhile.
        anchors: the ways to what the reader has, by `id` (`Anchors.way`).
        trials: that the reader has, by number.
        most: bytes, of arrays and all.

    Raises:
        Unimageable: something in it is not of the kinds that have an image, or it is too large.
    """
    try:
        return _Writer(anchors, trials, most).image(root)
    except (RecursionError, UnicodeEncodeError) as error:
        raise Unimageable("nested without end, or no text") from error


@final
class _Writer:
    def __init__(self, anchors: Mapping[int, str], trials: Sequence[Trial], most: int) -> None:
        self._anchors, self._trials, self._left = anchors, trials, most
        self._nodes: list[Any] = []
        self._known: dict[int, list[int]] = {}  # values of what has a node, by `id`
        self._alive: list[object] = []  # so that no `id` comes twice
        self._later: list[tuple[int, Any]] = []  # nodes that are still to be filled
        self._classes: dict[tuple[str, tuple[str, ...]], int] = {}
        self._memory: list[bytes] = []
        self._used = 0
        self._fields = {
            id(trial[place]): (trial.number, place) for trial in trials for place in _ARRAYS if trial[place] is not None
        }

    def image(self, root: object) -> bytes:
        """See `write`."""
        term = self._term(root)
        while self._later:
            at, value = self._later.pop()
            node = self._nodes[at]
            _FILLED[node[0]](self, node, value)
        classes = [[name, list(fields)] for name, fields in self._classes]
        header: bytes = msgspec.msgpack.encode([classes, self._nodes, term])
        lengths = len(header).to_bytes(8, "big") + self._used.to_bytes(8, "big")
        if len(header) + len(lengths) > self._left:
            raise Unimageable("too large")
        return b"".join([MAGIC, lengths, header, *self._memory])

    # -- values --------------------------------------------------------------------------------------------------

    def _term(self, value: Any) -> Term:
        kind = type(value)
        if kind in _ATOMS:
            return value
        if kind is int:
            return value if -LARGEST <= value < LARGEST else self._new(value, [Kind.WHOLE, hex(value)])
        known = self._known.get(id(value))
        if known is not None:
            return known
        way = self._anchors.get(id(value))
        if way is not None:
            return self._new(value, [Kind.ANCHOR, way])
        field = self._fields.get(id(value))
        if field is not None:
            return self._new(value, [Kind.FIELD, *field])
        write = _WRITTEN.get(kind)
        return self._object(value) if write is None else write(self, value)

    def _terms(self, values: Any) -> list[Term]:
        return [self._term(value) for value in values]

    def _new(self, value: Any, node: list[Any]) -> list[int]:
        """What refers to a node from now on."""
        self._known[id(value)] = reference = [len(self._nodes)]
        self._alive.append(value)
        self._nodes.append(node)
        return reference

    def _begun(self, value: Any, node: list[Any]) -> list[int]:
        """Likewise, to be filled later: it may refer to itself."""
        self._later.append((len(self._nodes), value))
        return self._new(value, node)

    def _class(self, cls: type, fields: tuple[str, ...]) -> int:
        return self._classes.setdefault((name_of(cls), fields), len(self._classes))

    # -- kinds ---------------------------------------------------------------------------------------------------

    def _list(self, value: list[Any]) -> Term:
        return self._begun(value, [Kind.LIST])

    def _dict(self, value: dict[Any, Any]) -> Term:
        return self._begun(value, [Kind.DICT])

    def _counter(self, value: Counter[Any]) -> Term:
        return self._begun(value, [Kind.COUNTER])

    def _set(self, value: set[Any]) -> Term:
        return self._begun(value, [Kind.SET])

    def _deque(self, value: deque[Any]) -> Term:
        return self._begun(value, [Kind.DEQUE, value.maxlen])

    def _tuple(self, value: tuple[Any, ...]) -> Term:
        return self._new(value, [Kind.TUPLE, *self._terms(value)])

    def _fill(self, node: list[Any], value: Any) -> None:
        node += self._terms(value)

    def _fill_pairs(self, node: list[Any], value: Mapping[Any, Any]) -> None:
        node += [term for pair in value.items() for term in self._terms(pair)]

    def _method(self, value: MethodType) -> Term:
        owner, name = value.__self__, value.__func__.__name__
        if method_of(owner, name) != value:
            raise Unimageable(f"the method {name}")
        return self._new(value, [Kind.METHOD, self._term(owner), name])

    def _partial(self, value: partial[Any]) -> Term:
        if not isinstance(value.func, MethodType):
            raise Unimageable(f"a part of {value.func}")
        function, given = self._term(value.func), self._terms(value.args)
        more = [term for name, part in value.keywords.items() for term in (name, self._term(part))]
        return self._new(value, [Kind.PARTIAL, function, given, more])

    def _trial(self, value: Trial) -> Term:
        number = value.number
        known = self._trials[number] if type(number) is int and 0 <= number < len(self._trials) else None
        if known is None:
            raise Unimageable(f"trial {number}")
        if value is known:
            return self._new(value, [Kind.TRIAL, number])
        other = [
            term
            for place, (mine, theirs) in enumerate(zip(value, known, strict=True))
            if not _same(mine, theirs)
            for term in (place, self._term(mine))
        ]
        return self._new(value, [Kind.TRIAL, number, *other])

    def _object(self, value: Any) -> Term:
        cls: type = type(value)
        if isinstance(value, np.generic) and cls.__module__ == "numpy" and value.dtype.char in NUMBERS:
            return self._new(value, [Kind.SCALAR, value.dtype.str, value.tobytes()])
        if isinstance(value, Enum):
            return self._new(value, [Kind.ENUM, self._class(cls, ()), value.name])
        if is_named_tuple(cls):
            terms = self._terms(value)
            return self._new(value, [Kind.NAMED, self._class(cls, ()), *terms])
        if not is_plain(cls):
            raise Unimageable(f"{cls.__module__}.{cls.__qualname__}")
        return self._begun(value, [Kind.OBJECT])

    def _fill_object(self, node: list[Any], value: Any) -> None:
        cls: type = type(value)
        fields = {name: getattr(value, name) for name in slots_of(cls) if hasattr(value, name)}
        fields |= getattr(value, "__dict__", {})
        for name in fields:
            if not has_field(cls, name):
                raise Unimageable(f"{cls.__qualname__}.{name}")
        node += [self._class(cls, tuple(fields)), *self._terms(fields.values())]

    # -- arrays --------------------------------------------------------------------------------------------------

    def _array(self, value: np.ndarray[Any, Any]) -> Term:
        if value.dtype.char not in NUMBERS or not value.dtype.isnative:
            raise Unimageable(f"an array of {value.dtype}")
        owner = _owner(value)
        if owner is value or _alone(value, owner, self._anchors):
            return self._memory_of(value)
        base = self._term(owner)
        offset = _address(value) - _address(owner)
        said = [value.dtype.str, list(value.shape), list(value.strides), value.flags.writeable]
        return self._new(value, [Kind.VIEW, base, *said, offset])

    def _memory_of(self, value: np.ndarray[Any, Any]) -> Term:
        order = _order(value)
        flat = value.transpose(order)
        if not flat.flags.c_contiguous:
            raise Unimageable("an array with holes")
        self._left -= value.nbytes + ALIGNED
        if self._left < 0:
            raise Unimageable("too large")
        content = flat.reshape(-1).view(np.uint8) if value.size else np.zeros(0, np.uint8)
        size = _filled(content)
        said = [value.dtype.str, list(value.shape), order, value.flags.writeable]
        node = self._new(value, [Kind.ARRAY, *said, self._used, size])
        self._memory += [content[:size].tobytes(), b"\0" * (-size % ALIGNED)]
        self._used += size + -size % ALIGNED
        return node


def _order(value: np.ndarray[Any, Any]) -> list[int]:
    """Its axes, from the one of the largest steps through memory to that of the smallest."""
    if value.flags.c_contiguous:
        return list(range(value.ndim))
    if value.flags.f_contiguous:
        return list(range(value.ndim))[::-1]
    return sorted(range(value.ndim), key=lambda axis: (-value.strides[axis], axis))


def _filled(content: np.ndarray[Any, Any]) -> int:
    """How many bytes there are before the zeros at the end."""
    size = len(content)
    while size:
        part = content[max(size - CHUNK, 0) : size]
        if part.any():
            return size - len(part) + int(np.flatnonzero(part)[-1]) + 1
        size -= len(part)
    return 0


def _owner(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array whose memory it shows; itself where that is nobody else's array."""
    owner = value
    while type(owner.base) is np.ndarray:
        owner = owner.base
    if owner.base is not None and owner.flags.writeable:
        raise Unimageable("an array in memory of something else")
    return owner


def _alone(value: np.ndarray[Any, Any], owner: np.ndarray[Any, Any], anchors: Mapping[int, str]) -> bool:
    """Whether nobody can tell that a view is one: neither is ever written to, and it has no holes."""
    fixed = not (value.flags.writeable or owner.flags.writeable)
    return fixed and id(owner) not in anchors and bool(value.flags.c_contiguous)


def _address(value: np.ndarray[Any, Any]) -> int:
    return int(value.__array_interface__["data"][0])


def _same(one: Any, other: Any) -> bool:
    """Whether two fields of trials are the same to the bit; of what is not plain only where it is one object."""
    if one is other:
        return True
    return type(one) is type(other) and type(one) in (int, bool, float, str) and repr(one) == repr(other)


_WRITTEN: dict[type, Callable[[_Writer, Any], Term]] = {
    list: _Writer._list,
    dict: _Writer._dict,
    Counter: _Writer._counter,
    set: _Writer._set,
    deque: _Writer._deque,
    tuple: _Writer._tuple,
    MethodType: _Writer._method,
    partial: _Writer._partial,
    np.ndarray: _Writer._array,
    Trial: _Writer._trial,
}
_FILLED: dict[str, Callable[[_Writer, list[Any], Any], None]] = {
    Kind.LIST: _Writer._fill,
    Kind.SET: _Writer._fill,
    Kind.DEQUE: _Writer._fill,
    Kind.DICT: _Writer._fill_pairs,
    Kind.COUNTER: _Writer._fill_pairs,
    Kind.OBJECT: _Writer._fill_object,
}
