"""The search among points that slopes certify, against brute force: nothing else is found, and nearly the best is."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.domains.distances import Metric
from nilregret.domains.search.boxes import AcquisitionFunction
from nilregret.domains.search.cones import CertifiedSearch, Cones, last_good

MIXED = nr.Space(
    a=nr.Float(1e-3, 1.0, log=True),
    b=nr.Int(1, 20),
    c=nr.Choice("x", "y", "z"),
    d=nr.when("c", "x", nr.Float(0.0, 1.0)),
)
PLANE = nr.Space(a=nr.Float(0.0, 1.0), b=nr.Float(0.0, 1.0))
WORLDS = {
    "box": (nr.Box([0.0, -5.0], [1.0, 20.0]), [2.0, 0.1]),
    "mixed": (MIXED, {"a": 0.5, "b": 0.1, "c": {"x": {"y": 0.3}}, "d": 1.0}),
    "limits": (
        nr.Space(a=nr.Float(0.0, 1.0), b=nr.Float(0.0, 1.0), c=nr.Int(0, 5)).where("a + b <= 1", "a * b <= 0.2"),
        {"a": 1.0, "b": 1.5, "c": 0.2},
    ),
    "one column never changes": (PLANE, {"a": 1.0, "b": None}),
    "nothing is real": (nr.Space(n=nr.Int(0, 30), c=nr.Choice("x", "y", "z")), {"n": 0.05, "c": 0.2}),
}


def world(name, m, seed):
    """Returns a domain, the cones of eight answers, and a concave function with its maximum anywhere."""
    domain, slope = WORLDS[name]
    rng = np.random.default_rng([seed, m])
    places = domain.snap(rng.uniform(domain.lower, domain.upper, (24, domain.dimension)))
    places = places if domain.limits is None else places[domain.limits.holds(places)]
    values = rng.uniform(-1.0, 0.3, (8, m))
    values[0] = -0.8
    cones = Cones(
        metrics=tuple(Metric(slope, domain, None) for _ in range(m)), places=places[:8], ceilings=values + 0.05,
        floors=values - 2.0, factors=np.full(m, 1.5),
    )  # fmt: skip
    top, span = rng.uniform(domain.lower, domain.upper), domain.upper - domain.lower
    weights = rng.uniform(0.5, 4.0, domain.dimension) / span**2

    def values_at(points):
        return -(np.square(points - top) * weights).sum(axis=1)

    surface = AcquisitionFunction(values_at, lambda points: (values_at(points), -2.0 * (points - top) * weights))
    return domain, cones, surface, domain.snap(top[None])


def certified(domain, cones, points):
    """Certifies points one by one: some answer must prove each constraint."""
    found = []
    for point in points:
        rise = [1.5 * metric(point[None], cones.places)[0] for metric in cones.metrics]
        found.append(all((cones.ceilings[:, j] + far).min() <= 0.0 for j, far in enumerate(rise)))
    return np.array(found) & (domain.snap(points) == points).all(axis=1)


@pytest.mark.parametrize("m", [1, 2])
@pytest.mark.parametrize("name", WORLDS)
def test_all_points_are_certified_and_the_best_is_nearly_reached(name, m):
    for seed in range(3):
        domain, cones, surface, goals = world(name, m, seed)
        search = CertifiedSearch(domain, cones)
        centres = search.centres(surface, goals)
        border = np.concatenate([centres, search.border(centres, goals)])
        starts = border[np.argsort(-surface.values(border), kind="stable")[:8]]
        ends, values = search.ascend(surface, starts, steps=20)
        for points in (border, ends):
            assert certified(domain, cones, points).all()
            assert ((points >= domain.lower) & (points <= domain.upper)).all()
            assert domain.limits is None or domain.limits.holds(points).all()
        assert values == pytest.approx(surface.values(ends))
        rng = np.random.default_rng(seed)
        if isinstance(domain, nr.Box):
            others = rng.uniform(domain.lower, domain.upper, (20_000, domain.dimension))
        else:
            others = domain.spread(rng.random((20_000, len(domain.parameters))))
        if name == "one column never changes":
            others[:, 1] = cones.points[rng.integers(8, size=len(others)), 1]
        others = surface.values(others[search.good(others)])
        assert values.max() >= others.max() - 0.02 * np.ptp(others)


def test_bounds_of_a_model_are_narrowed_with_their_slopes():
    domain, cones, _, _ = world("box", 2, 0)
    rng = np.random.default_rng(0)
    points = rng.uniform(domain.lower, domain.upper, (200, 2))
    height = rng.uniform(-1.0, 1.0, (2, 1))

    def model(at):
        return height + 0.3 * at[:, 0] - 0.02 * at[:, 1]

    def narrowed(at):
        return cones.narrowed(at, model(at))

    rise = np.broadcast_to(np.array([0.3, -0.02]), points.shape)
    found, slopes = cones.narrowed_slopes(points, model(points), [rise, rise])
    assert found == pytest.approx(narrowed(points))
    assert (found >= cones.bounds(points)[0].T - 1e-12).all()
    assert (found <= np.maximum(cones.upper(points), cones.bounds(points)[0]).T + 1e-12).all()
    for column in range(2):
        step = 1e-7 * np.eye(2)[column]
        numeric = (narrowed(points + step) - narrowed(points - step)) / 2e-7
        smooth = np.abs(narrowed(points + step) + narrowed(points - step) - 2.0 * found) < 1e-10
        assert smooth.mean() > 0.99
        assert np.array(slopes)[:, :, column][smooth] == pytest.approx(numeric[smooth], abs=1e-6)


def test_a_way_ends_at_the_last_good_point_seen():
    at, tried = np.zeros((3, 1)), np.array([[1.0], [2.0], [-1.0]])
    found = last_good(at, tried, lambda points: points[:, 0] <= 0.7)
    assert found[:, 0] == pytest.approx([0.6875, 0.6875, -1.0], abs=1 / 64)
    assert (found <= 0.7).all()
