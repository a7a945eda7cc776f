# The public names of the engines, said once.

from .arms import ArmEngine as ArmEngine
from .base import REWARDS as REWARDS
from .base import BestReward as BestReward
from .base import Compared as Compared
from .base import Decision as Decision
from .base import Engine as Engine
from .base import Front as Front
from .base import Limit as Limit
from .base import Limits as Limits
from .base import Prior as Prior
from .base import Question as Question
from .base import Units as Units
from .base import row_of as row_of
from .base import table as table
from .points import PointEngine as PointEngine
from .points import make_engine as make_engine
