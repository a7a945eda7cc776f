"""Checks of the promises of a policy, a kernel and a storage, which need no test framework.

>>> import nilregret as nr
>>> from nilregret.testing import check_policy
>>> check_policy(nr.gp_ucb(nr.Arms.grid(0, 1, 20), nr.Matern(2.5, 0.2), noise=0.1))

Each check returns None, or raises an `AssertionError` that names the broken promise and its usual cause. The policies,
kernels and storages of this package pass the same checks.
"""

from __future__ import annotations

from .kernels import check_kernel
from .policies import check_policy
from .storages import check_storage

__all__ = ["check_kernel", "check_policy", "check_storage"]


def __dir__() -> list[str]:
    return __all__
