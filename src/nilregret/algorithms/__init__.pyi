# The public names of the algorithms, said once.

from .auto import boca as boca
from .avanesov import gp_ucb_cpd as gp_ucb_cpd
from .baselines import admmbo as admmbo
from .baselines import bandit_oco as bandit_oco
from .chowdhury import gp_ts as gp_ts
from .chowdhury import igp_ucb as igp_ucb
from .chowdhury import kernel_ucb as kernel_ucb
from .definition import Slots as Slots
from .desautels import asy_ts as asy_ts
from .desautels import gp_bts as gp_bts
from .desautels import gp_bucb as gp_bucb
from .golovin import hypervolume_thompson as hypervolume_thompson
from .golovin import hypervolume_ucb as hypervolume_ucb
from .shi import gp_ucb_noiseless_constraints as gp_ucb_noiseless_constraints
from .shi import gp_ucb_noisy_constraints as gp_ucb_noisy_constraints
from .srinivas import expected_improvement as expected_improvement
from .srinivas import gp_ucb as gp_ucb
from .srinivas import greedy_mean as greedy_mean
from .srinivas import greedy_variance as greedy_variance
from .srinivas import probability_of_improvement as probability_of_improvement
from .takeno import irgp_ucb as irgp_ucb
from .verma import gp_ts_sdf as gp_ts_sdf
from .verma import gp_ucb_sdf as gp_ucb_sdf
from .ziomek import lb_gp_ucb as lb_gp_ucb
