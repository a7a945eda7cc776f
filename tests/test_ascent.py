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


def test_a_side_holds_a_climb_only_where_the_slope_leads_out():
    """The maximum lies on the side x = 1; a start in the corner (0, 0) climbs away from both of its sides."""
    top = np.array([1.4, 0.3])

    def slopes(points, _):
        return -np.sum((points - top) ** 2, axis=1), -2.0 * (points - top)

    starts = np.array([[0.0, 0.0], [1.0, 1.0], [0.2, 0.9]])
    at, value, _ = ascend(slopes, starts, radius=0.1, reach=9.0, best=-np.inf, unit=1.0, evaluations=40)
    best = int(value.argmax())
    np.testing.assert_allclose(at[best], [1.0, 0.3], atol=1e-3)
    corner = ascend(slopes, starts[:1], radius=0.1, reach=9.0, best=-np.inf, unit=1.0, evaluations=40)[0]
    np.testing.assert_allclose(corner, [[1.0, 0.3]], atol=1e-3)
