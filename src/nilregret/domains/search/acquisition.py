"""The function that a search maximises over a domain."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..._utils.checks import Array


class AcquisitionFunction(NamedTuple):
    """What is maximised over a domain; points are rows in the domain's (encoded) coordinates."""

    values: Callable[[Array], Array]  # (m, d) -> (m,)
    slopes: Callable[[Array], tuple[Array, Array]]  # (m, d) -> values (m,) and gradients (m, d)
