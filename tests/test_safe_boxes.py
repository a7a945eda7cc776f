"""Boxes and spaces under a certificate by slopes: only certified points, and the border in full use."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.domains.search.cones import within_ball

MIXED = nr.Space(
    power=nr.Float(1, 100, log=True),
    fans=nr.Int(1, 5),
    mode=nr.Choice("eco", "fast", "turbo"),
    boost=nr.when("mode", "turbo", nr.Float(0, 1)),
).where("power <= 20 * fans")
SLOPE = {"power": 20.0, "fans": 3.0, "mode": {"eco": {"fast": 6.0}, "fast": {"turbo": 4.0}}, "boost": 5.0}


def heat(power, fans, mode, boost=0.0):
    """A heat that obeys `SLOPE`, at most 0 where it is safe."""
    return 17.0 * np.log10(power) - 3.0 * fans + {"eco": 0.0, "fast": 5.0, "turbo": 8.0}[mode] + 4.0 * boost - 18.0


def distance(one, other):
    """The most by which `heat` differs between two settings, by `SLOPE`. Infinite if `boost` counts for one alone."""
    if ("boost" in one) != ("boost" in other):
        return np.inf
    jumps = {("eco", "fast"): 6.0, ("fast", "turbo"): 4.0, ("eco", "turbo"): 10.0}
    modes = tuple(sorted((one["mode"], other["mode"])))
    jump = 0.0 if one["mode"] == other["mode"] else jumps[modes]
    decades = abs(np.log10(one["power"] / other["power"]))
    return 20.0 * decades + 3.0 * abs(one["fans"] - other["fans"]) + jump + 5.0 * abs(
        one.get("boost", 0.0) - other.get("boost", 0.0)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("auto", "rounds"), [(False, 7), pytest.param(False, 30, marks=pytest.mark.nightly),
                         pytest.param(True, 30, marks=pytest.mark.nightly)]
)  # fmt: skip
def test_every_setting_of_a_mixed_space_is_certified_by_an_answer(auto, rounds):
    start, bound = {"power": 2.0, "fans": 3, "mode": "eco"}, 0.3
    part = nr.Safe(start=[start], slope=SLOPE, noise=bound)
    policy = nr.auto(MIXED, constraints=part) if auto else nr.gp_ucb(
        MIXED, nr.kernel_for(MIXED), noise=0.1, constraints=part
    )  # fmt: skip
    study, rng, told = nr.Study(policy, seed=1), np.random.default_rng(1), []
    for _ in range(rounds):
        setting = study.ask().parameters
        assert setting == start or any(y + bound + distance(setting, at) <= 1e-6 for at, y in told)
        assert heat(**setting) <= 0.0
        assert setting["power"] <= 20 * setting["fans"] + 1e-9
        y = heat(**setting) + bound * rng.uniform(-1, 1)
        told.append((setting, y))
        study.tell(study.trials[-1], setting["power"] / 20 + rng.normal(0, 0.1), constraints=[y])
    assert len({str(setting) for setting, _ in told}) > rounds // 2
    assert max(setting["power"] for setting, _ in told) > 4.0
    assert not study.remarks


def test_a_heater_is_used_up_to_its_limit():
    heater = nr.Space(power=nr.Float(0, 100), fan=nr.Choice("low", "high"))
    part = nr.Safe(start=[{"power": 20, "fan": "low"}], slope={"power": 1.0, "fan": 10.0}, noise=2.0)
    study = nr.Study(nr.gp_ucb(heater, nr.kernel_for(heater), noise=0.1, constraints=part), seed=0)
    rng, powers = np.random.default_rng(0), []
    for _ in range(16):
        trial = study.ask()
        power, fan = trial.parameters["power"], trial.parameters["fan"]
        degrees = 0.9 * power - 8 * (fan == "high")
        assert degrees <= 50.0
        powers.append(power)
        reward = power / 100 - 0.1 * (fan == "high") + 0.1 * rng.standard_normal()
        study.tell(trial, reward, constraints=[degrees + np.clip(0.5 * rng.standard_normal(), -2, 2) - 50])
    assert max(powers) > 50.0  # 55.5 with the slow fan, 64.4 with the other


@pytest.mark.parametrize("dimension", [1, 3, 6])
def test_a_projection_onto_a_ball_is_the_nearest_point(dimension):
    rng = np.random.default_rng(dimension)
    offsets, weights = 3.0 * rng.standard_normal((40, dimension)), rng.uniform(0.2, 2.0, dimension)
    radii = rng.uniform(0.1, 2.0, 40)
    found = within_ball(offsets, weights, radii)
    assert (np.abs(found) @ weights <= radii * (1 + 1e-9)).all()
    others = rng.standard_normal((400, dimension))
    others /= (np.abs(others) @ weights)[:, None]
    for offset, radius, nearest in zip(offsets, radii, found, strict=True):
        inside = np.concatenate([radius * others, found + 0.0])
        inside = inside[np.abs(inside) @ weights <= radius]
        assert np.linalg.norm(offset - nearest) <= np.linalg.norm(offset - inside, axis=1).min() + 1e-9


def test_a_refuted_box_asks_no_more():
    part = nr.Safe(start=[[0.1]], slope=1.0, noise=0.0)
    study = nr.Study(nr.gp_ucb(nr.Box(0, 1), nr.SquaredExponential(0.2), noise=0.1, constraints=part))
    study.add([0.1], 0.0, constraints=[-1.0])
    study.add([0.2], 0.0, constraints=[-0.5])
    with pytest.raises(nr.NoRegretError, match=r"5 times as steep"):
        study.ask()


@pytest.mark.parametrize("domain", [nr.Box([0, 0], [1, 1]), nr.Box([0, 0], [1, 1]).grid(21)], ids=["box", "arms"])
def test_a_batch_does_not_take_one_step_three_times(domain):
    part = nr.Safe(start=[[0.1, 0.1]], slope=1.0, noise=0.05)
    study = nr.Study(nr.gp_ucb(domain, nr.SquaredExponential(0.3), noise=0.05, constraints=part))
    for batch in range(4):
        trials = study.ask(count=3)
        # Nothing but the start is certified at first.
        assert len({trial.point.tobytes() for trial in trials}) >= (2 if batch else 1)
        for trial in trials:
            study.tell(trial, float(trial.point[0]), constraints=[0.7 * trial.point[0] - 0.5])
    assert len({trial.point.tobytes() for trial in study.trials}) >= 7


def test_an_open_trial_counts_for_steps_until_it_is_abandoned():
    part = nr.Safe(start=[[0.1]], slope=1.0, noise=0.05, caution=1.0)

    def next_after(change):
        study = nr.Study(nr.gp_ucb(nr.Box(0, 1), nr.SquaredExponential(0.3), noise=0.05, constraints=part))
        study.add([0.1], 0.1, constraints=[-0.5])
        trial = study.ask()
        change(study, trial)
        return trial.point[0], study.ask().point[0]

    first, second = next_after(lambda study, trial: study.abandon(trial))
    assert second == pytest.approx(first, abs=1e-6)
    first, second = next_after(lambda study, trial: None)
    assert abs(second - first) > 0.01


def test_a_certified_point_is_not_moved_onto_the_limits_of_a_space():
    """Between points of a ring that may be played, points may not. They were moved onto the ring, uncertified."""
    ring = nr.Space(a=nr.Float(-3, 3), b=nr.Float(-3, 3)).where("a*a + b*b >= 4", "a*a + b*b <= 7")
    part = nr.Safe(start=[{"a": 2.2, "b": 0.0}], slope={"a": 1.0, "b": 0.7}, noise=0.1, caution=1.0)
    study = nr.Study(nr.gp_bucb(ring, nr.kernel_for(ring), noise=0.1, constraints=part), seed=1)
    rng = np.random.default_rng(1)
    for _ in range(4):
        for trial in (trials := study.ask(count=2)):
            assert study.feasible([trial.point])[0] == 1.0
        for trial in trials:
            a, b = trial.parameters["a"], trial.parameters["b"]
            value = abs(a - 2.2) + 0.7 * abs(b) - 2.0
            study.tell(trial, -a + 0.3 * b, constraints=[value + rng.choice([-0.1, 0.1])])
