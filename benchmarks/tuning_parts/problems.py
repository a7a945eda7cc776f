"""All problems by name: 14 on which things may be tried, and ten held out."""

from .functions import FUNCTIONS
from .models import MODELS

PROBLEMS = {problem.name: problem for problem in [*FUNCTIONS, *MODELS]}
DEVELOPMENT = [name for name, problem in PROBLEMS.items() if not problem.held_out]
HELD_OUT = [name for name, problem in PROBLEMS.items() if problem.held_out]
