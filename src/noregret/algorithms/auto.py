"""What we recommend to whoever does not want to choose."""

from __future__ import annotations

import numpy as np

from ..domain import Arms, Box, Domain, Space, sides
from ..kernels import Kernel, Matern
from ..policy.policy import Policy
from ..search.boxes import PointSearch
from ..slots.envelope import ConstantWidth
from ..slots.explore import CoordinateSearch, InitialDesign, InTurn
from ..slots.pending import Hallucinated, Ignored
from ..slots.refit import Refit
from ..slots.scores import ExpectedImprovement
from .common import build


def auto(domain: Domain, *, context: Domain | None = None, noise: float | None = None, parallel: int = 1) -> Policy:
    return build(
        "auto", domain, Matern(2.5, 0.5 * sides(domain, context)), ConstantWidth(value=2.0), ExpectedImprovement(),
        noise=0.1, regularization=0.01, context=context,
        explore=InTurn((InitialDesign(5), CoordinateSearch())),
        pending=Ignored(failed="worst"),
        search=PointSearch(mutations=256, incumbents=5),
        refit=Refit(every=3, growth=0.1, warp="half-rank", noise="unknown"),
    )
