"""Known functions, turned upside down where they are usually minimised; optima are not at centres or corners."""

import math

import numpy as np

from nilregret import Choice, Float, Int, Space, when
from nilregret.environments import hartmann3, hartmann6

from .base import Problem


def vector(parameters, count):
    return np.array([parameters[f"x{i}"] for i in range(count)], dtype=float)


def cube(count, low, high, kind=Float):
    return Space(**{f"x{i}": kind(low, high) for i in range(count)})


def hartmann_6(parameters):
    return float(hartmann6(vector(parameters, 6)[None])[0])


def hartmann_3(parameters):
    """With a category that shifts it: "c" is best."""
    shift = {"a": 0.5, "b": 0.25, "c": 0.0}[parameters["kind"]]
    x = np.clip(vector(parameters, 3) + 0.3 * shift, 0.0, 1.3)
    return float(hartmann3(x[None])[0]) - shift


def _ackley(x):
    return -(
        -20.0 * math.exp(-0.2 * math.sqrt(float(np.mean(x**2))))
        - math.exp(float(np.mean(np.cos(2.0 * math.pi * x))))
        + 20.0
        + math.e
    )


def ackley_mixed(parameters):
    return _ackley(vector(parameters, 5))


def ackley_10(parameters):
    return _ackley(vector(parameters, 10))


def ackley_20(parameters):
    return _ackley(vector(parameters, 20))


def _levy(x):
    w = 1.0 + (x - 1.0) / 4.0
    middle = (w[:-1] - 1.0) ** 2 * (1.0 + 10.0 * np.sin(math.pi * w[:-1] + 1.0) ** 2)
    last = (w[-1] - 1.0) ** 2 * (1.0 + math.sin(2.0 * math.pi * w[-1]) ** 2)
    return -float(math.sin(math.pi * w[0]) ** 2 + middle.sum() + last)


def levy(parameters):
    return _levy(vector(parameters, len(parameters)))


def branin(parameters):
    """With a category that moves and lifts it; "c" has the true optimum."""
    shift, lift = {"a": (3.0, 4.0), "b": (-2.0, 1.0), "c": (0.0, 0.0), "d": (5.0, 12.0)}[parameters["kind"]]
    x, y = parameters["x"] + shift, parameters["y"]
    value = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    return -(value + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 + lift)


def camel(parameters):
    x, y = parameters["x"], parameters["y"]
    return -((4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (4 * y**2 - 4) * y**2)


def conditional(parameters):
    """Three ways to go, each with parameters of its own that say nothing elsewhere."""
    way, x = parameters["way"], parameters["shared"]
    if way == "walk":
        return 0.6 - 2.0 * (parameters["pace"] - 0.7) ** 2 - (x - 0.2) ** 2
    if way == "ride":
        wobble = 0.15 * math.cos(9.0 * parameters["gear"] / 10.0)
        return 1.0 - 3.0 * (math.log10(parameters["load"]) + 1.5) ** 2 / 4.0 - (x - 0.8) ** 2 - 0.15 + wobble
    return 0.5 - abs(x - 0.5)


def log_rosenbrock(parameters):
    z = np.log10(vector(parameters, 4))
    return -math.log1p(float(np.sum(100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1.0 - z[:-1]) ** 2)))


def integers(parameters):
    """Whole numbers with a ripple; the optimum is at (3, 17, 8, -11, 29)."""
    x = vector(parameters, 5) - np.array([3, 17, 8, -11, 29])
    return -float(np.sum(np.abs(x) ** 1.5 / 20.0 + 0.5 * (1.0 - np.cos(0.9 * x))))


def cliff(parameters):
    """A smooth bowl with a region a thousand times worse: a quarter of the cube."""
    x = vector(parameters, 4)
    bowl = -float(np.sum(np.array([4.0, 1.0, 2.0, 0.5]) * (x - np.array([0.52, 0.3, 0.8, 0.15])) ** 2))
    return (
        bowl - 0.1 * math.sin(12.0 * x[0]) * math.sin(9.0 * x[2]) - (1000.0 * x[0] if x[0] + 0.4 * x[1] > 0.95 else 0)
    )


BRANIN = Space(x=Float(-5, 10), y=Float(0, 15), kind=Choice("a", "b", "c", "d"))
ACKLEY_MIXED = Space(x0=Float(-10, 15), x1=Float(-12, 9), x2=Float(-7, 13), x3=Int(-10, 15), x4=Int(-14, 8))
CONDITIONAL = Space(
    way=Choice("walk", "ride", "stay"),
    shared=Float(0, 1),
    pace=Float(0, 1),
    load=Float(1e-4, 1e1, log=True),
    gear=Int(1, 12),
)
CONDITIONAL_DECLARED = Space(
    way=CONDITIONAL.parameters["way"],
    shared=CONDITIONAL.parameters["shared"],
    pace=when("way", "walk", CONDITIONAL.parameters["pace"]),
    load=when("way", "ride", CONDITIONAL.parameters["load"]),
    gear=when("way", "ride", CONDITIONAL.parameters["gear"]),
)
FUNCTIONS = [
    Problem(name="hartmann-6", space=cube(6, 0.0, 1.0), value=hartmann_6, best=3.3223680),
    Problem(name="ackley-mixed", space=ACKLEY_MIXED, value=ackley_mixed, best=0.0),
    Problem(name="branin-category", space=BRANIN, value=branin, best=-0.39788736),
    Problem(name="levy-5", space=cube(5, -10.0, 10.0), value=levy, best=0.0),
    Problem(name="camel-noisy", space=Space(x=Float(-3, 3), y=Float(-2, 2)), value=camel, best=1.03162846, noise=0.3),
    Problem(name="conditional", space=CONDITIONAL, value=conditional, best=0.9999788),
    Problem(name="ackley-10", space=cube(10, -10.0, 15.0), value=ackley_10, best=0.0),
    Problem(
        name="log-rosenbrock", value=log_rosenbrock, best=0.0, held_out=True,
        space=Space(**{f"x{i}": Float(1e-3, 1e3, log=True) for i in range(4)}),
    ),
    Problem(name="levy-20", space=cube(20, -10.0, 10.0), value=levy, best=0.0, held_out=True),
    Problem(name="integers", space=cube(5, -40, 40, Int), value=integers, best=0.0, held_out=True),
    Problem(
        name="hartmann-3-noisy", value=hartmann_3, best=3.8627798, noise=0.2, held_out=True,
        space=Space(x0=Float(0, 1), x1=Float(0, 1), x2=Float(0, 1), kind=Choice("a", "b", "c")),
    ),
    Problem(name="cliff", space=cube(4, 0.0, 1.0), value=cliff, best=0.0520759, held_out=True),
]  # fmt: skip
EXTRA = [
    Problem(name="ackley-20", space=cube(20, -10.0, 15.0), value=ackley_20, best=0.0, held_out=True),
    # The problem "conditional", where the space says which parameters count.
    Problem(name="conditional-when", space=CONDITIONAL_DECLARED, value=conditional, best=0.9999788, held_out=True),
]
