"""All problems by name: 14 on which things may be tried, ten held out, and extra ones that belong to neither half.

`MODELS_DEVELOPMENT` and `MODELS_HELD_OUT` are the models of scikit-learn by themselves, more of them.
"""

from . import coco, functions
from .models import MODELS, MORE_MODELS

HALVES = [*functions.FUNCTIONS, *MODELS]
DEVELOPMENT = [problem.name for problem in HALVES if not problem.held_out]
HELD_OUT = [problem.name for problem in HALVES if problem.held_out]
EXTRA = [problem.name for problem in functions.EXTRA]
MODELS_DEVELOPMENT = [problem.name for problem in [*MODELS, *MORE_MODELS] if not problem.held_out]
MODELS_HELD_OUT = [problem.name for problem in MORE_MODELS if problem.held_out]


class Problems(dict):
    """Problems by name. Those of COCO are made when they are asked for."""

    def __missing__(self, name):
        return coco.problem(name)


PROBLEMS = Problems({problem.name: problem for problem in [*HALVES, *functions.EXTRA, *MORE_MODELS]})
