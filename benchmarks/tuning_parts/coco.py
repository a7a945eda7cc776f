"""Problems of COCO (Hansen et al. 2021) that nobody here wrote: BBOB and its mixed-integer twin, turned upside down.

A name says it all: `bbob-f15-d5-i1` is function 15 in five dimensions, instance 1, and `mixint-f15-d5-i1` the same with
integers. `bbob-f15-d5-i1-n20` adds noise: its standard deviation is 20% of the spread of 1,000 random values, which is
the optimum less the 5% quantile. Needs the wheel `coco-experiment`.
"""

import os
import re
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from nilregret import Float, Int, Space

from .base import Problem

# Functions of all five groups (1 to 5 separable, 6 to 9 moderate, 10 to 14 ill-conditioned, 15 to 19 with a structure
# of many modes, 20 to 24 with a weak one).
FUNCTIONS = (1, 3, 6, 8, 9, 10, 13, 15, 16, 17, 20, 21, 23, 24)
DIMENSIONS = (2, 5, 10)
IN_HIGH = (1, 3, 8, 10, 15, 17, 20, 21)  # functions in more dimensions than these
DEVELOPED_ON, HELD_OUT = (1,), (4, 5)  # instances
NAME = re.compile(r"(bbob|mixint)-f(\d+)-d(\d+)-i(\d+)(?:-n(\d+))?")


def names(suite, instances, dimensions=DIMENSIONS, functions=FUNCTIONS, noise=None):
    """The names of problems, instance by instance."""
    end = "" if noise is None else f"-n{noise}"
    return [f"{suite}-f{f}-d{d}-i{i}{end}" for i in instances for d in dimensions for f in functions]


@cache
def problem(name):
    """The problem of this name."""
    import cocoex

    kind, function, dimension, instance, percent = NAME.fullmatch(name).groups()
    suite = cocoex.Suite(
        "bbob" if kind == "bbob" else "bbob-mixint",
        f"instances: {instance}",
        f"dimensions: {dimension} function_indices: {function}",
    )
    found = suite[0]
    best, integers = _lowest(found), found.number_of_integer_variables
    bounds = zip(found.lower_bounds, found.upper_bounds, strict=True)
    space = Space(**{f"x{i}": (Int if i < integers else Float)(low, high) for i, (low, high) in enumerate(bounds)})
    keep = suite  # the problem lives as long as its suite

    def value(parameters, keep=keep):  # noqa: ARG001
        return best - found(np.array([parameters[f"x{i}"] for i in range(found.dimension)], dtype=float))

    noise = 0.0
    if percent is not None:
        points = space.snap(np.random.default_rng(0).uniform(space.lower, space.upper, (1000, space.dimension)))
        noise = int(percent) / 100 * -float(np.quantile([value(space.decode(point)) for point in points], 0.05))
    return Problem(name=name, space=space, value=value, best=0.0, noise=noise, held_out=int(instance) in HELD_OUT)


def _lowest(found):
    """The value at the best point, which COCO tells in a file alone."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            found._best_parameter("print")
            return float(found(np.loadtxt("._bbob_problem_best_parameter.txt")))
        finally:
            os.chdir(before)
