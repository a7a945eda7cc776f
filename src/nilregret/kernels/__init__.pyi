# The public names of the kernels, said once.

from .base import ALL as ALL  # not listed
from .base import Derivatives as Derivatives
from .base import Hyperparameter as Hyperparameter
from .base import Kernel as Kernel
from .base import PointKernel as PointKernel
from .base import Pullback as Pullback  # not listed
from .base import check_covariance as check_covariance  # not listed
from .base import check_kernel as check_kernel  # not listed
from .combined import Active as Active
from .combined import Multiplied as Multiplied
from .combined import Product as Product
from .combined import Rounded as Rounded
from .combined import Stretched as Stretched
from .combined import Sum as Sum
from .domains import Mixture as Mixture
from .domains import Overlap as Overlap
from .domains import kernel_for as kernel_for
from .others import Empirical as Empirical
from .others import Intercept as Intercept
from .others import Linear as Linear
from .others import RandomFeatures as RandomFeatures
from .periodic import Periodic as Periodic
from .stationary import Matern as Matern
from .stationary import RationalQuadratic as RationalQuadratic
from .stationary import Spectral as Spectral
from .stationary import SquaredExponential as SquaredExponential
from .stationary import Stationary as Stationary
from .tied import Tied as Tied
