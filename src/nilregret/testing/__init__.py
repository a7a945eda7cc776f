"""The promises of a policy, a kernel and a storage, as checks to run on one's own: no test framework is needed.

>>> import nilregret as nr
>>> from nilregret.testing import check_policy
>>> check_policy(nr.gp_ucb(nr.Arms.grid(0, 1, 20), nr.Matern(2.5, 0.2), noise=0.1))

Each returns None, or raises an `AssertionError` whose sentence says which promise is broken and what usually breaks it.
The package's own policies, kernels and storages are held to the same ones.
"""

from __future__ import annotations

from .kernels import check_kernel
from .policies import check_policy
from .storages import check_storage

__all__ = ["check_kernel", "check_policy", "check_storage"]


def __dir__() -> list[str]:
    return __all__
