"""Problems with limits that are learned.

| problem | parameters | limits | feasible share |
|---|---|---|---|
| toy-sine | 2 real | sin x sin y <= -0.95 (Gardner et al. 2014) | 2% |
| townsend | 2 real | inside a curve (Townsend 2014) | 65% |
| branin-disk | 2 real | inside a disk (Gelbart et al. 2014) | 70% |
| hartmann-6-ball | 6 real | norm at most 1 (Letham et al. 2019) | 8% |
| vessel | 2 whole, 2 real | three of a pressure vessel (Coello Coello 2002) | 40% |
| forest-digits | 4 whole, 1 real, 1 choice | comparisons that a forest's prediction takes | 56% |

The share is of uniform points. On branin-disk and hartmann-6-ball the best point of all is feasible; on the others the
best feasible one lies on a border.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier
from tuning_parts.models import split

from nilregret import Choice, Float, Int, Space
from nilregret.environments import hartmann6


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something to maximise under limits.

    Attributes:
        name: as the command line has it.
        space: its parameters.
        told: of a dict of parameters the value and the limits' values, each satisfied when <= 0.
        count: how many limits.
        limits: texts of those that are known beforehand; `told` then tells them and the ranges of the parameters.
        best: the highest feasible value that is known; the report takes what runs have found where that is higher.
        typical: the median value of uniform feasible points.
    """

    name: str
    space: Space
    told: Callable[[dict[str, Any]], tuple[float, list[float]]]
    count: int = 1
    limits: tuple[str, ...] = ()
    best: float
    typical: float


def toy_sine(p):
    x, y = p["x"], p["y"]
    return -np.sin(x) - y, [np.sin(x) * np.sin(y) + 0.95]


def townsend(p):
    x, y = p["x"], p["y"]
    t = np.arctan2(x, y)
    along = 2 * np.cos(t) - np.cos(2 * t) / 2 - np.cos(3 * t) / 4 - np.cos(4 * t) / 8
    value = np.cos((x - 0.1) * y) ** 2 + x * np.sin(3 * x + y)
    return value, [x**2 + y**2 - along**2 - (2 * np.sin(t)) ** 2]


def branin_disk(p):
    x, y = p["x"], p["y"]
    bent = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    value = bent**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10
    return -value, [(x - 2.5) ** 2 + (y - 7.5) ** 2 - 50.0]


def hartmann(p):
    x = np.array([p[f"x{i}"] for i in range(6)])
    return float(hartmann6(x[None])[0]), x


def hartmann_6_ball(p):
    value, x = hartmann(p)
    return value, [float(np.linalg.norm(x)) - 1.0]


def vessel(p):
    """A cylinder with round ends; thicknesses come in sixteenths of an inch, the cost is in dollars."""
    shell, head, radius, length = p["shell"] / 16, p["head"] / 16, p["radius"], p["length"]
    cost = 0.6224 * shell * radius * length + 1.7781 * head * radius**2
    cost += 3.1661 * shell**2 * length + 19.84 * shell**2 * radius
    volume = np.pi * radius**2 * length + 4 / 3 * np.pi * radius**3
    return -cost, [0.0193 * radius - shell, 0.00954 * radius - head, 1_296_000.0 - volume]


def forest_digits(p):
    """Log loss of a forest, of which a prediction may take at most 40 comparisons: what its latency is made of."""
    X, X_valid, y, y_valid = split("digits", 600)
    model = ExtraTreesClassifier(
        p["trees"], criterion=p["criterion"], max_depth=p["depth"], min_samples_leaf=p["leaf"],
        max_features=p["features"], max_leaf_nodes=p["leaves"], random_state=0,
    ).fit(X, y)  # fmt: skip
    chosen = model.predict_proba(X_valid)[np.arange(len(y_valid)), np.searchsorted(model.classes_, y_valid)]
    loss = -float(np.mean(np.log(np.clip(chosen, 1e-3, 1.0))))
    comparisons = model.decision_path(X_valid)[0].sum() / len(y_valid) - p["trees"]
    return -loss, [float(comparisons) - 40.0]


def _problem(told, best, typical, count=1, **parameters):
    name = told.__name__.replace("_", "-")
    return Problem(name=name, space=Space(**parameters), told=told, count=count, best=best, typical=typical)


UNIT_6 = {f"x{i}": Float(0.0, 1.0) for i in range(6)}

LEARNED = [
    _problem(toy_sine, -0.25324, -5.47, x=Float(0.0, 6.0), y=Float(0.0, 6.0)),
    _problem(townsend, 2.02399, 0.76, x=Float(-2.25, 2.5), y=Float(-2.5, 1.75)),
    _problem(branin_disk, -0.397887, -32.9, x=Float(-5.0, 10.0), y=Float(0.0, 15.0)),
    _problem(hartmann_6_ball, 3.32237, 0.29, **UNIT_6),
    _problem(
        vessel, -6059.714, -142260.0, 3,
        shell=Int(1, 99), head=Int(1, 99), radius=Float(10.0, 200.0), length=Float(10.0, 200.0),
    ),
    _problem(
        forest_digits, -0.601, -1.457,
        trees=Int(1, 100, log=True), depth=Int(1, 16), leaf=Int(1, 30, log=True), leaves=Int(2, 200, log=True),
        features=Float(0.02, 1.0), criterion=Choice("gini", "entropy"),
    ),
]  # fmt: skip
