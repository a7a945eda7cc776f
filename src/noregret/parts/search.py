"""Which point of a box has the best score: candidates everywhere, a closer look around the best, gradients at the end.

The search works in the unit cube (u = (x - lower) / (upper - lower)), where one step size fits all dimensions.
Deterministic given its random generator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import numpy.typing as npt

from ..checks import Array, integer
from ..domain import Box, Choice, Float, Int, Space
from ..serialize import described

FLAT = 1e-10  # relative range of the candidates' scores below which a surface is called flat


class Surface(NamedTuple):
    """What is maximised over a domain; points are rows in the domain's (encoded) coordinates."""

    values: Callable[[Array], Array]  # (m, d) -> (m,)
    slope: Callable[[Array], tuple[float, Array]]  # (d,) -> value and gradient (d,)


class Found(NamedTuple):
    """Where a search ended.

    Attributes:
        point: `(d,)`, a valid point of the domain.
        value: the score reached there.
        evaluations: points at which the score was evaluated, standing candidates not counted.
    """

    point: Array
    value: float
    evaluations: int


@final
@described
@dataclass(frozen=True, kw_only=True)
class PointSearch:
    """Multi-start ascent.

    Attributes:
        candidates: scrambled Sobol points that stand ready, a power of two.
        around: points tried around the best candidates and incumbents before gradients are used.
        starts: how many of the best are refined by L-BFGS-B.
        evaluations: most gradients for each of them.
    """

    candidates: int = 2048
    around: int = 48
    starts: int = 3
    evaluations: int = 15

    def __post_init__(self) -> None:
        for name, low in (("candidates", 2), ("around", 0), ("starts", 1), ("evaluations", 1)):
            integer(name, getattr(self, name), low=low)

    def standing(self, domain: Box | Space, seed: int) -> Array:
        """The standing candidates, `(candidates, d)`: the same for the same seed."""
        from scipy.stats import qmc  # slow to import, and arms need none of it

        power = (self.candidates - 1).bit_length()
        unit = qmc.Sobol(
            domain.dimension, scramble=True, rng=np.random.default_rng([seed, domain.dimension])
        ).random_base2(power)
        points = domain.lower + unit * (domain.upper - domain.lower)
        return domain.snap(points) if isinstance(domain, Space) else points

    def maximize(
        self, surface: Surface, domain: Box | Space, *, standing: Array, scores: Array, incumbents: Array,
        rng: Callable[[], np.random.Generator],
    ) -> Found:  # fmt: skip
        """The best point found.

        Args:
            surface: the score.
            domain: where.
            standing: candidates `(m, d)`.
            scores: their scores `(m,)`.
            incumbents: points worth a closer look, `(i, d)`: the best so far, the last maximum.
            rng: gives the trial's generator.
        """
        top = _spread(standing, scores, self.starts, domain)
        possible = np.flatnonzero(np.isfinite(scores))
        if float(np.ptp(scores[possible])) <= FLAT * float(np.abs(scores[possible]).max()):
            # As before anything is observed: any point is as good as another.
            pick = int(rng().choice(possible))
            return Found(standing[pick], float(scores[pick]), 0)
        near = _perturbed(np.concatenate([standing[top], incumbents]), domain, self.around, len(standing), rng())
        points = np.concatenate([near, incumbents, standing[top]])
        values = np.concatenate([surface.values(np.concatenate([near, incumbents])), scores[top]])
        counted = len(near) + len(incumbents)
        best: Found | None = None
        for start in _spread(points, values, self.starts, domain):
            found = self._ascend(surface, domain, Found(points[start], float(values[start]), 0))
            counted += found.evaluations
            if best is None or found.value > best.value:
                best = found
        assert best is not None  # noqa: S101 - there is at least one start
        return best._replace(evaluations=counted)

    def _ascend(self, surface: Surface, domain: Box | Space, start: Found) -> Found:
        """Alternate gradients in the real columns with exact local search in the others until neither helps."""
        here = start
        real = _real_columns(domain)
        for _ in range(5):
            before = here.value
            if real.any():
                here = self._climb(surface, domain, here, real)
            if real.all():
                break
            neighbours = _neighbours(domain, here.point)
            values = surface.values(neighbours)
            best = int(values.argmax())
            here = here._replace(evaluations=here.evaluations + len(neighbours))
            if values[best] <= max(here.value, before):
                break
            here = Found(neighbours[best], float(values[best]), here.evaluations)
        return here

    def _climb(self, surface: Surface, domain: Box | Space, start: Found, real: npt.NDArray[np.bool_]) -> Found:
        from scipy.optimize import minimize

        low, span = domain.lower[real], (domain.upper - domain.lower)[real]
        best, count = [start], [start.evaluations]

        def downhill(u: Array) -> tuple[float, Array]:
            point = start.point.copy()
            point[real] = np.clip(low + u * span, low, low + span)
            value, gradient = surface.slope(point)
            count[0] += 1
            if value > best[0].value:
                best[0] = Found(point, value, 0)
            return -value, -gradient[real] * span

        minimize(
            downhill,
            np.clip((start.point[real] - low) / span, 0.0, 1.0),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0.0, 1.0)] * int(real.sum()),
            options={"maxfun": self.evaluations, "ftol": 1e-12, "gtol": 1e-9},
        )
        return best[0]._replace(evaluations=count[0])


def _real_columns(domain: Box | Space) -> npt.NDArray[np.bool_]:
    real = np.ones(domain.dimension, dtype=bool)
    if isinstance(domain, Space):
        for parameter, columns in domain.columns():
            real[columns] = isinstance(parameter, Float)
    return real


def _spread(points: Array, values: Array, count: int, domain: Box | Space) -> list[int]:
    """The best points, none of them closer than 2% of the diagonal to a better one."""
    span = domain.upper - domain.lower
    apart = 0.02 * np.sqrt(domain.dimension)
    chosen: list[int] = []
    for index in np.argsort(-values, kind="stable")[: 64 * count]:
        if all(np.linalg.norm((points[index] - points[other]) / span) > apart for other in chosen):
            chosen.append(int(index))
            if len(chosen) == count:
                break
    return chosen


def _perturbed(centres: Array, domain: Box | Space, count: int, standing: int, rng: np.random.Generator) -> Array:
    """Points around the centres, some near and some nearer, within the domain."""
    if count == 0:
        return np.zeros((0, domain.dimension))
    # Half the spacing of the standing candidates, and a tenth of it.
    spacing = 0.5 * standing ** (-1.0 / domain.dimension)
    radius = spacing * np.where(np.arange(count) % 2, 1.0, 0.1)[:, None] * (domain.upper - domain.lower)
    points = centres[np.arange(count) % len(centres)] + radius * rng.standard_normal((count, domain.dimension))
    points = np.clip(points, domain.lower, domain.upper)
    return domain.snap(points) if isinstance(domain, Space) else points


def _neighbours(domain: Box | Space, point: Array) -> Array:
    """Points that differ in one whole number (by 1, by an eighth of the range, at the ends) or one choice."""
    rows = []
    if isinstance(domain, Space):
        for parameter, columns in domain.columns():
            for value in _other_values(parameter, point[columns]):
                row = point.copy()
                row[columns] = parameter.encode(value)
                rows.append(row)
    return np.array(rows).reshape(len(rows), domain.dimension)


def _other_values(parameter: Float | Int | Choice, columns: Array) -> list[object]:
    if isinstance(parameter, Float):
        return []
    here = parameter.decode(columns)
    if isinstance(parameter, Choice):
        return [option for option in parameter.options if option is not here]
    far = max((parameter.high - parameter.low) // 8, 2)
    steps = {int(here) + step for step in (-1, 1, -far, far)} | {parameter.low, parameter.high}
    return [value for value in sorted(steps - {int(here)}) if parameter.low <= value <= parameter.high]
