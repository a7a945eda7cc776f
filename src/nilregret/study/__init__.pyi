# The public names of studies, said once.

from .. import plots as plots
from .explanation import Explanation as Explanation
from .play_rewards import Rewards as Rewards
from .study import Study as Study
