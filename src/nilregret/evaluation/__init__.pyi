# The public names of the evaluation, said once.

from .api import evaluate as evaluate
from .diagnostics import PropensityCheck as PropensityCheck
from .result import Evaluation as Evaluation
