"""Fronts: dominance, volumes, boxes, references, and expected improvements of a volume."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from nilregret._utils.randomness import Draws
from nilregret.theory.fronts import (
    boxes,
    hypervolume,
    log_ehvi,
    log_ehvi_slopes,
    log_scalarised_improvement,
    non_dominated,
    reference_point,
    scalarised,
    sphere,
    volume_constant,
)


def sliced(values, reference):
    """Returns the hypervolume by slices of the last objective."""
    values = values[(values > reference).all(axis=1)]
    if not len(values) or len(reference) == 1:
        return float((values[:, 0] - reference[0]).max(initial=0.0))
    cuts = np.unique(np.append(values[:, -1], reference[-1]))
    return sum(
        (above - below) * sliced(values[values[:, -1] >= above][:, :-1], reference[:-1])
        for below, above in pairwise(cuts)
    )


def gains(y, low, high):
    """Returns the volume that each point adds, `(n,)`."""
    return np.maximum(np.minimum(y[:, None], high) - low, 0.0).prod(axis=2).sum(axis=1)


def fronts(k, count):
    """Yields random values, of which half have ties, with references inside and outside."""
    draws = Draws(f"fronts {k}")
    for i in range(count):
        n = draws.integers(12)
        values = 6.0 * draws.random((n, k))
        yield np.floor(values) if i % 2 else values, np.full(k, draws.integers(4) - 1.0)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6])
def test_volumes_and_boxes_are_exact_with_ties_and_points_outside(k):
    """Slices give the same volume, and each point above r is in one box, or dominated."""
    for values, reference in fronts(k, 12):
        worse = np.array([any((w >= v).all() and (w > v).any() for w in values) for v in values], dtype=bool)
        assert (non_dominated(values) == ~worse).all()
        assert hypervolume(values, reference) == pytest.approx(sliced(values, reference), rel=1e-12)
        low, high = boxes(values, reference)
        at = 8.0 * Draws("places").random((100, k)) - 1.0
        free = (at >= reference).all(axis=1) & ~(values[:, None] >= at).all(axis=2).any(axis=0)
        assert (((at[:, None] >= low) & (at[:, None] < high)).all(axis=2).sum(axis=1) == free).all()
        base = hypervolume(values, reference)
        for point, gain in zip(at[:5], gains(at[:5], low, high), strict=True):
            assert hypervolume(np.vstack([values, point]), reference) - base == pytest.approx(gain, abs=1e-9)


def test_few_boxes_tile_a_front():
    """There are n + 1 strips, and 2 n + 1 boxes with three objectives."""
    for k, most in ((2, 41), (3, 81)):
        points = np.abs(Draws(f"sphere {k}").standard_normal((40, k)))
        assert len(boxes(points / np.linalg.norm(points, axis=1)[:, None], np.zeros(k))[0]) == most


def test_edges_of_a_front():
    """Nothing, one point, equal rows, points at the reference and flat objectives have volumes and references."""
    none = np.zeros((0, 2))
    assert non_dominated(none).shape == (0,)
    assert hypervolume(none, np.zeros(2)) == 0.0
    assert hypervolume(np.array([[1.0, 0.0], [-1.0, 5.0]]), np.zeros(2)) == 0.0
    assert hypervolume(np.array([[1.0, 2.0]] * 3), np.zeros(2)) == 2.0
    assert non_dominated(np.array([[1.0, 2.0]] * 3)).all()
    assert reference_point(none, none).tolist() == [-0.1, -0.1]
    one = np.array([[1.0, 2.0]])
    assert reference_point(one, one).tolist() == [0.9, 1.9]
    flat = np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]])
    assert reference_point(flat, flat[1:2]) == pytest.approx([0.8, 4.9])  # the worst answer, and no range at all
    assert reference_point(flat, none) == pytest.approx([0.8, 4.9])


def test_a_reference_lets_a_front_grow_and_no_outlier_decides():
    """It is 3 / f sizes below the nadir, or at the worst answer if that is nearer, with a tenth to spare."""
    values = np.array([[0.0, 1.0], [-1.0, 2.0], [-1.5, 0.0], [-2.0, 0.5]])
    front = values[non_dominated(values)]  # of two points
    assert reference_point(values, front) == pytest.approx([-2.2, -0.2])
    far = np.vstack([values, [[-1e6, -1e6]]])
    assert reference_point(far, front) == pytest.approx([-2.5 - 0.25, -0.5 - 0.25])


def test_hairs_do_not_move_a_reference():
    """An objective that is flat at its best does not push the others out, nor become a unit of its own."""
    values = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [-9.0, 1.005]])
    assert reference_point(values, values)[0] == pytest.approx(-1.2)
    flat = np.array([[0.0, 1.0], [1e-7, 0.5], [2e-7, 0.0], [-4.0, -1.0], [-5.0, -2.0], [-6.0, -3.0]])
    assert reference_point(flat, flat[:3])[0] < -4.0
    crowd = np.array([[0.0, 1.0], [0.02, -2.0], *[[-1.0 - x, -3.0] for x in range(3)], *[[0.0, -3.0]] * 6])
    assert reference_point(crowd, crowd[:2])[0] < -0.1  # though more than half of all answers are the best in one
    dense = np.stack([np.linspace(0, 1, 300), np.sqrt(1 - np.linspace(0, 1, 300) ** 2)], axis=1)
    assert (np.abs(reference_point(dense, dense) + 0.1) < 0.05).all()  # a dense front keeps its ends


@pytest.mark.parametrize(("unit", "offset"), [(1e9, 0.0), (1e-9, 0.0), (1.0, 1e6)])
def test_units_and_offsets_change_nothing(unit, offset):
    """Masks are equal, volumes and references scale, and log EHVI shifts by a constant."""
    values, moved = Draws("units").random((20, 2)), [1.0, unit]
    other = values * moved + offset
    front, again = values[non_dominated(values)], other[non_dominated(other)]
    assert (non_dominated(values) == non_dominated(other)).all()
    r, s = reference_point(values, front), reference_point(other, again)
    assert s == pytest.approx(r * moved + offset, rel=1e-9, abs=1e-9 * unit)
    assert hypervolume(other, s) == pytest.approx(unit * hypervolume(values, r), rel=1e-7)
    mean, std = Draws("means").random((2, 2, 9))
    scale = np.array(moved)[:, None]
    there = log_ehvi(mean * scale + offset, std * scale, boxes(other, s))
    assert there - log_ehvi(mean, std, boxes(values, r)) == pytest.approx(math.log(unit), abs=1e-7)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_expected_gains_agree_with_simulation(k):
    """EHVI is the mean gain of draws, and the mean over directions. Each bound fails with a chance below 1e-6."""
    draws = Draws(f"gains {k}")
    front, reference = draws.random((6, k)), np.full(k, -0.1)
    mean, std = draws.random((k, 4)), 0.05 + 0.5 * draws.random((k, 4))
    tiles = boxes(front, reference)
    exact = np.exp(log_ehvi(mean, std, tiles))
    for i in range(4):
        found = gains(mean[:, i] + std[:, i] * draws.standard_normal((20_000, k)), *tiles)
        assert abs(found.mean() - exact[i]) < 5.0 * found.std() / math.sqrt(20_000)
    each = []
    for weights in sphere(draws, 400, k):
        best = max(float(scalarised(front, weights, reference).max()), 0.0)
        each.append(np.exp(log_scalarised_improvement(mean - reference[:, None], std, weights, best).values))
    found = volume_constant(k) * np.array(each)
    assert (np.abs(found.mean(axis=0) - exact) < 5.0 * found.std(axis=0) / math.sqrt(400)).all()


def test_a_volume_is_a_mean_over_directions():
    """HV = c_k E max_y s(y)^k. The chance of a miss is below 1e-6."""
    for k in (2, 3, 4):
        front, reference = Draws(f"front {k}").random((7, k)), np.full(k, -0.2)
        best = scalarised(front, sphere(Draws("directions"), 4000, k), reference).max(axis=1) ** k
        found = volume_constant(k) * best
        assert abs(found.mean() - hypervolume(front, reference)) < 5.0 * found.std() / math.sqrt(4000)


def test_a_scalarised_improvement_agrees_with_integration():
    """The quadrature is right to 1e-4 where objectives are sure, unsure and far from any improvement."""
    weights = np.array([0.6, 0.8])
    for mean in ([0.5, 0.5], [2.0, 0.4], [0.3, 3.0], [0.1, -0.5]):
        for std in ([0.3, 0.3], [1e-3, 0.5], [0.5, 1e-3], [0.01, 0.02]):

            def above(t, mean=mean, std=std):
                return 2.0 * t * norm.cdf((np.array(mean) - weights * t) / std).prod()

            ends = [0.4, *(m / w + c * s / w for m, s, w in zip(mean, std, weights, strict=True) for c in (-7, 0, 7))]
            ends = sorted(max(each, 0.4) for each in ends)
            exact = sum(quad(above, a, b)[0] for a, b in pairwise(ends))
            if exact > 1e-12:
                found = log_scalarised_improvement(np.array(mean)[:, None], np.array(std)[:, None], weights, 0.4)
                assert found.values[0] == pytest.approx(math.log(exact), abs=1e-4)


@pytest.mark.parametrize("means", [(0.93343, 1.05507), (0.8915, 1.0)])
def test_a_scalarised_improvement_is_smooth_where_a_surer_objective_fails_first(means):
    """An objective that is unsure just before a sure one fails gets nodes of its own: values and slopes are right."""
    mean, std, weights, best = np.array(means), np.array([0.003, 0.03]), np.array([0.63307, 0.7741]), 0.2

    def integral(mean, std):
        cuts = [(m + c * s) / w for m, s, w in zip(mean, std, weights, strict=True) for c in (-8, -4, -2, 0, 2, 4, 8)]
        cuts = sorted(each for each in [best, *cuts] if best <= each <= ((mean + 8 * std) / weights).min())

        def above(t):
            return 2.0 * t * norm.cdf((mean - weights * t) / std).prod()

        return math.log(sum(quad(above, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in pairwise(cuts)))

    found = log_scalarised_improvement(mean[:, None], std[:, None], weights, best)
    assert found.values[0] == pytest.approx(integral(mean, std), abs=1e-4)
    for i in range(2):
        step = 1e-3 * std * (np.arange(2) == i)
        by_mean = (integral(mean + step, std) - integral(mean - step, std)) / (2.0 * step[i])
        by_std = (integral(mean, std + step) - integral(mean, std - step)) / (2.0 * step[i])
        assert found.by_mean[i, 0] == pytest.approx(by_mean, abs=0.02)
        assert found.by_std[i, 0] == pytest.approx(by_std, abs=0.02)


@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e3])
def test_slopes_are_those_of_the_values(scale):
    """Derivatives in means and deviations agree with differences where EHVI is e^-1000, and where boxes are narrow."""
    draws = Draws("slopes")
    front, mean, std = draws.random((6, 3)), draws.random((3, 5)), scale * (0.1 + draws.random((3, 5)))
    mean[:, 0] -= 10.0
    front = np.vstack([front, front[0] + [1e-7, -1e-7, 0.0]])
    weights, tiles = np.array([0.6, 0.6, 0.52]), boxes(front, np.full(3, -0.1))
    for of in (lambda m, s: log_ehvi_slopes(m, s, tiles), lambda m, s: log_scalarised_improvement(m, s, weights, 0.5)):
        found, step = of(mean, std), 1e-6 * std
        if scale >= 1.0:
            assert np.isfinite(np.array([found.by_mean, found.by_std])).all()
        for i in range(3):
            move = np.zeros((3, 5))
            move[i] = step[i]
            for slope, here, there in (
                (found.by_mean, of(mean + move, std), of(mean - move, std)),
                (found.by_std, of(mean, std + move), of(mean, std - move)),
            ):
                differences = (here.values - there.values) / (2.0 * step[i])
                assert differences == pytest.approx(slope[i], rel=2e-3, abs=2e-3 / std[i].min())
    assert (log_ehvi_slopes(mean, std, tiles).values == log_ehvi(mean, std, tiles)).all()


def test_nothing_overflows_or_underflows():
    """Certain, hopeless and unknown candidates have finite values and slopes."""
    mean = np.array([[-1e9, -100.0, -1.0, 0.3, 2.0, 1e9, 0.5, 0.5]] * 2)
    std = np.array([[1e-9, 1.0, 1e-3, 0.0, 0.0, 1e-9, 1e9, 1e-300]] * 2)
    front = np.array([[0.2, 0.9], [0.6, 0.6], [0.9, 0.1]])
    with np.errstate(all="raise", under="ignore"):
        for found in (
            log_ehvi_slopes(mean, std, boxes(front, np.zeros(2))),
            log_scalarised_improvement(mean, std, np.array([0.6, 0.8]), 0.4),
        ):
            assert all(np.isfinite(each).all() for each in found)
    sure = math.exp(log_ehvi(mean, std, boxes(front, np.zeros(2)))[4])
    assert sure == pytest.approx(4.0 - hypervolume(front, np.zeros(2)))
