# The public names of the simulation, said once.

from . import environments as environments
from .environments import Environment as Environment
from .results import Run as Run
from .simulate import replicate as replicate
from .simulate import simulate as simulate
