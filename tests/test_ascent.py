"""The climb from several starts."""

import numpy as np

from nilregret.domains.search.quasi_newton import ascend


def test_slopes_beyond_all_numbers_are_climbed_all_the_same():
    """Where nothing is uncertain a standard deviation has slopes that are infinite, or none at all."""

    def slopes(points, _):
        gradients = -2.0 * (points - 0.5)
        gradients[0] = [np.inf, -1e300]
        gradients[1] = np.nan
        return -np.sum((points - 0.5) ** 2, axis=1), gradients

    starts = np.array([[0.0, 0.3], [0.4, 0.4], [0.1, 0.9]])
    at, value, _ = ascend(slopes, starts, radius=0.1, reach=1.0, best=-1.0, unit=1.0, evaluations=1)
    assert np.isfinite(at).all()
    assert np.isfinite(value).all()
