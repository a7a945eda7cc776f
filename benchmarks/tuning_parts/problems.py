"""All problems by name: 14 on which things may be tried, ten held out, and extra ones that belong to neither half."""

from . import coco, functions
from .models import MODELS

HALVES = [*functions.FUNCTIONS, *MODELS]
DEVELOPMENT = [problem.name for problem in HALVES if not problem.held_out]
HELD_OUT = [problem.name for problem in HALVES if problem.held_out]
EXTRA = [problem.name for problem in functions.EXTRA]


class Problems(dict):
    """Problems by name. Those of COCO are made when they are asked for."""

    def __missing__(self, name):
        return coco.problem(name)


PROBLEMS = Problems({problem.name: problem for problem in [*HALVES, *functions.EXTRA]})
