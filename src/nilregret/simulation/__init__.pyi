# The public names of the simulation, said once.

from .. import environments as environments
from ..environments.environment import Environment as Environment
from .compare_policies import Comparison as Comparison
from .compare_policies import compare as compare
from .metrics import Run as Run
from .runner import replicate as replicate
from .runner import simulate as simulate
