"""Scores of several objectives, by the volume that a point would add to a front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from .._utils.checks import Array
from ..domains.search.boxes import AcquisitionFunction
from ..serialize import described
from ..theory.fronts import non_dominated, reference_point
from .acquisition import AcquisitionContext, PointView, TableView
from .envelope import Envelope
from .scores import FrontScore

LEAST = 1e-12


@final
@described
@dataclass(frozen=True, kw_only=True)
class HypervolumeImprovement(FrontScore):
    """The logarithm of the least upper bound above a reference point, in units of its objective."""

    logarithm: ClassVar[bool] = True

    def on_table(self, view: TableView) -> Array:
        """Returns the scores of all arms."""
        return self._score(view, view.objectives())

    def on_points(self, view: PointView) -> AcquisitionFunction:
        """Returns the scores of points."""
        return view.without_slopes(lambda points: self._score(view, view.objectives(points)))

    def _score(self, view: AcquisitionContext, found: list[Envelope]) -> Array:
        means = view.known_objectives().means
        if not len(means):
            return np.zeros(len(found[0].mean))
        reference = reference_point(means, means[non_dominated(means)])
        above = [np.maximum(one.mean + one.std - worst, LEAST) for one, worst in zip(found, reference, strict=True)]
        return np.asarray(np.min(np.log(above), axis=0))
