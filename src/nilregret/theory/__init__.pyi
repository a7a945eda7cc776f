# The public names of the theory, said once.

from .change.algorithm import ChangeTest as ChangeTest
from .change.algorithm import detect_change as detect_change
from .change.bounds import gp_ucb_cpd_regret_bound as gp_ucb_cpd_regret_bound
from .change.bounds import gp_ucb_cpd_regret_rate as gp_ucb_cpd_regret_rate
from .change.calibration import Calibration as Calibration
from .change.calibration import calibrate_threshold as calibrate_threshold
from .change.detector import ChangeDetector as ChangeDetector
from .change.schedules import PowerLaw as PowerLaw
from .change.validation import RidgeChoice as RidgeChoice
from .change.validation import cross_validate_ridge as cross_validate_ridge
from .constraint_bounds import least_slack as least_slack
from .constraint_bounds import noiseless_constraints_bounds as noiseless_constraints_bounds
from .constraint_bounds import noisy_constraints_bounds as noisy_constraints_bounds
from .delayed_bounds import conditional_gain_bound as conditional_gain_bound
from .delayed_bounds import gp_bucb_regret_bound as gp_bucb_regret_bound
from .delayed_bounds import gp_ts_sdf_regret_bound as gp_ts_sdf_regret_bound
from .delayed_bounds import gp_ucb_sdf_regret_bound as gp_ucb_sdf_regret_bound
from .information import GreedyDesign as GreedyDesign
from .information import Spectrum as Spectrum
from .information import effective_dimension as effective_dimension
from .information import information_gain as information_gain
from .rates import information_gain_rate as information_gain_rate
from .regret_bounds import gp_ts_regret_bound as gp_ts_regret_bound
from .regret_bounds import gp_ucb_regret_bound as gp_ucb_regret_bound
from .regret_bounds import igp_ucb_regret_bound as igp_ucb_regret_bound
