# The public names of the evaluation, said once.

from .api import Evaluation as Evaluation
from .api import evaluate as evaluate
from .diagnostics import PropensityCheck as PropensityCheck
from .slates import SlateEvaluation as SlateEvaluation
