"""The size of a constraint, learned with caution from its values."""

from __future__ import annotations

from typing import final

import numpy as np

from .._utils.checks import Array
from .._utils.copying import Copyable
from ..gp.fitting import Standardization
from ..kernels.domains import prior_std
from ..slots.constraint_scale import cautious_scale
from ..slots.constraints import LEAST_RIDGE
from ..slots.lengthscales import with_factor
from .engines import row_of
from .policy import Policy
from .training_data import TrainingData

FEW, SHARE = 64, 0.1  # beyond so many values the size is learned anew after this share more


@final
class SizeLearner(Copyable):
    """The learned size of one constraint: its standard deviation and a factor of its lengthscales.

    Args:
        policy: the policy of the constraint.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._shape = (1.0 / prior_std(policy.domain, policy.context, policy.kernel) ** 2) * policy.kernel
        self._new = 0  # values since the last update
        self._size: tuple[float, float] | None = None  # factor of the lengthscales, and standard deviation

    @property
    def known(self) -> bool:
        """True if a size has been learned since the last restart."""
        return self._size is not None

    def observe(self, count: int) -> None:
        """Counts new constraint values."""
        self._new += count

    def restart(self, data: TrainingData) -> None:
        """Returns to the policy's kernel. The data are then restarted."""
        data.posterior.kernel, self._size = self._policy.kernel, None

    def count_again(self, data: TrainingData) -> None:
        """Counts all values as new, after a restart."""
        self._new = len(data.posterior.entries)

    def update(self, data: TrainingData) -> bool:
        """Learns the size from the values that count. Returns whether the posterior was rebuilt."""
        entries, policy = data.posterior.entries, self._policy
        if not self._new or (len(entries) > FEW and self._new < SHARE * len(entries)):
            return False
        self._new = 0
        told: dict[bytes, tuple[Array, list[float]]] = {}
        for number in sorted(entries):
            trial = entries[number].trial
            if trial.reward is not None:
                row = row_of(trial)
                told.setdefault(row.tobytes(), (row, []))[1].append(trial.reward)
        if not told:
            return False
        rows = np.array([row for row, _ in told.values()])
        means, counts = (np.array([found(values) for _, values in told.values()]) for found in (np.mean, len))
        factor, size = cautious_scale(self._shape, rows, means, counts, noise=policy.noise)
        if (factor, size) == self._size or not size:
            return False
        self._size = factor, size
        data.posterior.kernel = size**2 * with_factor(self._shape, factor, rows.shape[1])
        ridge = policy.regularization if policy.noise else LEAST_RIDGE * size**2
        data.rebuild(data.posterior.kernel, ridge, Standardization(policy.prior_mean, 1.0))
        return True
