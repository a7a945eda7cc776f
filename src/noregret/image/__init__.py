"""Objects as bytes and back, to the bit: what a program has worked out, kept to be used again by an equal program.

An image is data. To read one calls no constructor and no `__setstate__`, imports nothing beyond the classes that a
state is made of (`classes.HOMES`), and ends in one error, `BadImage`, whatever is wrong with it. It knows nothing of
policies.
"""

from __future__ import annotations

from .anchors import Anchors
from .classes import BadImage, Unimageable
from .reading import read
from .writing import write

__all__ = ["Anchors", "BadImage", "Unimageable", "read", "write"]
