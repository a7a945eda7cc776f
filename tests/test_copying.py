"""Copies own the attributes that their class declares, and share the others."""

import numpy as np
import pytest

from nilregret._utils.copying import Copyable, independent


class Sums(Copyable):
    OWNED = ("rows", "names", "inner")
    OWNED_EACH = ("lists", "by_key")

    def __init__(self):
        self.rows = np.asfortranarray(np.arange(6.0).reshape(2, 3))
        self.names, self.inner, self.shared = {"a": 1}, None, [1]
        self.lists, self.by_key = [[1], [2]], {"a": [1]}


def test_a_copy_owns_what_is_declared():
    original = Sums()
    copy = original.copy()
    copy.rows[0, 0], copy.names["a"] = 9.0, 2
    copy.lists[0].append(3)
    copy.by_key["a"].append(4)
    assert original.rows[0, 0] == 0.0
    assert original.names == {"a": 1}
    assert original.lists == [[1], [2]]
    assert original.by_key == {"a": [1]}
    assert type(copy) is Sums
    assert copy.inner is None
    assert copy.shared is original.shared


def test_arrays_keep_their_order_in_memory():
    assert Sums().copy().rows.flags.f_contiguous


def test_fresh_values_replace_those_of_the_original():
    assert independent(Sums(), fresh={"shared": 5}).shared == 5


def test_a_misspelt_attribute_is_an_error():
    class Wrong(Sums):
        OWNED = ("row",)

    with pytest.raises(KeyError, match="row"):
        Wrong().copy()
