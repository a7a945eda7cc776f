"""Problems of several objectives, all to be minimised, and what of their fronts is known.

| problem | parameters | objectives | source |
|---|---|---|---|
| branin-currin | 2 real | 2 | Belakaria, Deshwal & Doppa 2019 |
| zdt1, zdt2, zdt3 | 4 real | 2 | Zitzler, Deb & Thiele 2000 |
| dtlz2, dtlz2-3 | 4 real | 2, 3 | Deb et al. 2005 |
| re21, re24 | 4 real, 2 real | 2 | Tanabe & Ishibuchi 2020: a truss, a beam |
| re33 | 4 real | 3 | the same: a disc brake |
| biobj-f1-d2 and others | 2 or 5 real | 2 | bbob-biobj (Brockhoff et al. 2022), instance 1, in [-5, 5] |
| forest-digits | 4 whole, 1 real, 1 choice | 2 | a forest's log loss, and the comparisons of a prediction |
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from limits_parts.problems import LEARNED, branin_disk, forest_digits
from tuning_parts.functions import cube, vector

import nilregret as nr

# Least and greatest values on the best front known and its volume, in units of its range, the reference 1.1.
EXACT = {
    "zdt1": ((0.0, 0.0), (1.0, 1.0), 0.21 + 2 / 3),
    "zdt2": ((0.0, 0.0), (1.0, 1.0), 0.21 + 1 / 3),
    "dtlz2": ((0.0, 0.0), (1.0, 1.0), 1.1**2 - np.pi / 4),
    "dtlz2-3": ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0), 1.1**3 - np.pi / 6),
}
FRONTS = EXACT | {  # as `--fronts` prints them
    "branin-currin": ((0.3978873577, 1.180408021), (17.50829952, 5.686144052), 0.879977),
    "zdt3": ((0.0, -0.7733690052), (0.8518369794, 1.0), 0.727407),
    "re21": ((1237.841423, 0.002761423749), (2886.36956, 0.04), 0.888920),
    "re24": ((60.5, 0.0), (481.6338025, 44.28190476), 1.171357),
    "biobj-f1-d2": ((394.48, -152.04), (426.2790233, -120.2402116), 1.043201),
    "biobj-f13-d2": ((-92.08998382, -47.14999976), (11541819.69, -45.88676967), 0.995604),
    "biobj-f35-d2": ((-51.7098531, 932.0139277), (62.58447979, 1317.315907), 1.131081),
    "biobj-f2-d5": ((394.4800001, 320.1901311), (462.5099039, 19534112.6), 1.154535),
    "biobj-f14-d5": ((-92.08774826, 951.6919644), (2670781.265, 1745.69247), 1.057535),
    "biobj-f41-d5": ((-179.5398348, 39.92014756), (75.51476251, 131.6178581), 1.185753),
    "re33": ((-0.721525, 1.139072039, 0.0), (5.3067, 2.381828883, 37.33938487), 1.042874),
    "forest-digits": ((0.3976327742, 1.0), (2.004218465, 102.6566667), 1.116365),
}


@dataclass(frozen=True)
class Problem:
    """Objectives to be minimised together.

    Attributes:
        name: as the command line has it.
        space: its parameters.
        values: of a dict of parameters.
        count: how many objectives.
        along: points at which the search for its front begins, beside random ones.
        model: whether a model is trained.
    """

    name: str
    space: nr.Space
    values: Callable[[dict[str, Any]], tuple[float, ...]]
    count: int = 2
    along: np.ndarray | None = None
    model: bool = False

    @property
    def shape(self):
        """Least values and range of the front that is known, and its volume in units of the range."""
        low, high, volume = FRONTS[self.name]
        return np.array(low), np.array(high) - np.array(low), volume


def branin_currin(p):
    x, y = p["x0"], p["x1"]
    currin = (2300 * x**3 + 1900 * x**2 + 2092 * x + 60) / (100 * x**3 + 500 * x**2 + 4 * x + 20)
    currin *= 1.0 - np.exp(-0.5 / y) if y > 0.0 else 1.0
    return -branin_disk({"x": 15 * x - 5, "y": 15 * y})[0], currin


def zdt(kind, p):
    x = vector(p, 4)
    g = 1.0 + 9.0 * np.mean(x[1:])
    share = x[0] / g
    bent = {1: 1 - np.sqrt(share), 2: 1 - share**2, 3: 1 - np.sqrt(share) - share * np.sin(10 * np.pi * x[0])}
    return x[0], g * bent[kind]


def dtlz2(count, p):
    x = vector(p, 4)
    angles, g = x[: count - 1] * np.pi / 2, 1.0 + np.sum((x[count - 1 :] - 0.5) ** 2)
    cosines = np.concatenate([[1.0], np.cumprod(np.cos(angles))])[::-1]
    return tuple(g * cosines * np.concatenate([[1.0], np.sin(angles[::-1])]))


def re21(p):
    a, b, c, d = (p[name] for name in "abcd")
    root = np.sqrt(2.0)
    return 200 * (2 * a + root * b + np.sqrt(c) + d), 0.01 * (2 / a + 2 * root / b - 2 * root / c + 2 / d)


def re24(p):
    a, b = p["a"], p["b"]
    stress = 4500 / (a * b)
    kept = (1 - stress / 700, 1 - 1800 / b / 450, 1 - 562000 / (700000 * a * b * b) / 1.5, 1 - stress / (7000 * a * a))
    return a + 120 * b, sum(max(-each, 0.0) for each in kept)


def re33(p):
    a, b, c, d = (p[name] for name in "abcd")
    area, cubes = b * b - a * a, b**3 - a**3
    kept = (
        b - a - 20, 0.4 - c / (3.14 * area), 1 - 2.22e-3 * c * cubes / area**2,
        2.66e-2 * c * d * cubes / area - 900,
    )  # fmt: skip
    return 4.9e-5 * area * (d - 1), 9.82e6 * area / (c * d * cubes), sum(max(-each, 0.0) for each in kept)


def forest(p):
    minus_loss, (over,) = forest_digits(p)
    return -minus_loss, over + 40.0


def _coco(function, dimension):
    """The problem of COCO's suite bbob-biobj, made when it is asked for. It needs the wheel `coco-experiment`."""
    kept = []

    def values(p):
        if not kept:
            import cocoex

            chosen = f"dimensions: {dimension} function_indices: {function} instance_indices: 1"
            kept.append(suite := cocoex.Suite("bbob-biobj", "", chosen))
            kept.append(suite[0])
        return tuple(kept[1](vector(p, dimension)))

    return Problem(f"biobj-f{function}-d{dimension}", cube(dimension, -5.0, 5.0), values)


def _real(**bounds):
    return nr.Space(**{name: nr.Float(*pair) for name, pair in bounds.items()})


ROOT = float(np.sqrt(2.0))
UNIT = cube(4, 0.0, 1.0)
ZDT = np.pad(np.linspace(0.0, 1.0, 20_001)[:, None], [(0, 0), (0, 3)])  # the front: others are 0
EVERY = [
    Problem("branin-currin", cube(2, 0.0, 1.0), branin_currin, along=np.array([[5 - np.pi, 12.275]]) / 15),
    *(Problem(f"zdt{kind}", UNIT, partial(zdt, kind), along=ZDT) for kind in (1, 2, 3)),
    Problem("dtlz2", UNIT, partial(dtlz2, 2)),
    Problem("re21", _real(a=(1, 3), b=(ROOT, 3), c=(ROOT, 3), d=(1, 3)), re21),
    Problem("re24", _real(a=(0.5, 4), b=(0.5, 50)), re24),
    *(_coco(*each) for each in ((1, 2), (13, 2), (35, 2), (2, 5), (14, 5), (41, 5))),
    Problem("forest-digits", LEARNED[-1].space, forest, model=True),
    Problem("dtlz2-3", UNIT, partial(dtlz2, 3), 3),
    Problem("re33", _real(a=(55, 80), b=(75, 110), c=(1000, 3000), d=(11, 20)), re33, 3),
]
PROBLEMS = {problem.name: problem for problem in EVERY}


def best_front(problem, volume):
    """Returns least and greatest values of the best front that a long search finds, and its volume."""
    import moocore

    def at(points):
        points = problem.space.snap(np.clip(points, problem.space.lower, problem.space.upper))
        return points, np.array([problem.values(problem.space.decode(point)) for point in points])

    def kept(points, values, most=4000):
        rows = np.flatnonzero(moocore.is_nondominated(values))
        if len(rows) > most:  # few of those that agree in all objectives
            low, size = values[rows].min(axis=0), np.ptp(values[rows], axis=0)
            _, first = np.unique(np.floor((values[rows] - low) / size * most), axis=0, return_index=True)
            rows = np.union1d(rng.permutation(rows[first])[:most], rows[values[rows].argmin(axis=0)])
        return points[rows], values[rows]

    rng, d = np.random.default_rng(1), len(problem.space.lower)
    width = problem.space.upper - problem.space.lower
    known = problem.along if problem.along is not None else np.empty((0, d))
    start, rounds, each = (300, 15, 60) if problem.model else (16_000, 400, 400)
    points, values = kept(*at(np.vstack([known, problem.space.lower + width * rng.random((start, d))])))
    for step in np.geomspace(0.3, 5e-4, rounds):
        i, j = rng.integers(len(points), size=(2, each))
        ends = rng.permutation(each)[: each // 5]  # a fifth of the search is for the best of each objective
        i[ends] = rng.permuted(np.resize(values.argmin(axis=0), len(ends)))
        moved = rng.random((each, d)) < np.maximum(rng.random((each, 1)), 1.0 / d)
        new = points[i] + step * width * rng.standard_normal((each, d)) * moved
        new += (points[j] - points[i]) * rng.random((each, 1)) * (rng.random((each, 1)) < 0.3)
        more = at(new)
        points, values = kept(np.vstack([points, more[0]]), np.vstack([values, more[1]]))
    low, high = values.min(axis=0), values.max(axis=0)
    scaled = (values - low) / (high - low)  # what is the best by a hair is no end: Branin has three optima
    beaten = [((scaled <= y + 1e-6).all(axis=1) & (scaled < y - 1e-2).any(axis=1)).any() for y in scaled]
    high = values[~np.array(beaten)].max(axis=0)
    return low, high, volume((values - low) / (high - low))
