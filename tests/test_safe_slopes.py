"""The certificate by slopes: distances in the user's units, what is certified, and what refutes it."""

import math
import re

import numpy as np
import pytest

import nilregret as nr
from nilregret.domains.distances import Metric
from nilregret.errors import InvalidInput, NoRegretError

HEATER = nr.Space(
    power=nr.Float(0, 100), rate=nr.Float(0.001, 10, log=True), count=nr.Int(1, 9), fan=nr.Choice("low", "mid", "high")
)
SLOPE = {"power": 0.9, "rate": 2.0, "count": 0.5, "fan": {"low": {"mid": 3.0}, "high": {"mid": 4}}}
LINE = nr.Arms.grid(0, 10, 11)
KERNEL = nr.SquaredExponential(2.0)
FEED = nr.Space(feed=nr.Float(0, 10))


def line(**more):
    part = nr.Safe(start=[[0.0]], **{"slope": 1.0, "noise": 0.1, **more})
    return nr.Study(nr.gp_ucb(LINE, KERNEL, noise=0.1, constraints=part), seed=0)


def distance(one, other, slope=SLOPE):
    rows = HEATER.inside("points", [one, other])
    return float(Metric(slope, HEATER, None)(rows[:1], rows[1:])[0, 0])


def test_distances_are_in_the_users_units():
    one = {"power": 20, "rate": 0.01, "count": 2, "fan": "low"}
    for change, expected in (
        ({"power": 30}, 9.0),
        ({"rate": 1.0}, 4.0),  # two decades
        ({"count": 7}, 2.5),
        ({"fan": "mid"}, 3.0),
        ({"fan": "high"}, 7.0),  # over "mid"
        ({"power": 10, "fan": "mid", "rate": 0.001}, 14.0),
    ):
        assert distance(one, {**one, **change}) == pytest.approx(expected, rel=1e-6)
    assert distance(one, {**one, "fan": "mid"}, {**SLOPE, "fan": 5}) == pytest.approx(5.0)
    assert distance(one, {**one, "fan": "mid"}, {**SLOPE, "fan": None}) == np.inf
    assert distance(one, {**one, "power": 21}, {**SLOPE, "power": None}) == np.inf


@pytest.mark.parametrize(
    ("slope", "message"),
    [
        ({**SLOPE, "power": 0}, r"`slope\['power'\]` is 0"),
        ({name: each for name, each in SLOPE.items() if name != "rate"}, "says nothing of parameter `rate`"),
        ({**SLOPE, "powr": 1.0}, "misspelt"),
        ({**SLOPE, "fan": {"low": {"hgh": 1.0}}}, "names the option 'hgh'"),
        ({**SLOPE, "fan": {"low": 3.0}}, "table such as"),
        ({**SLOPE, "power": {"a": 1}}, "is a number, so give one"),
        (2.0, "the parameters have names"),
    ],
)
def test_a_slope_that_says_too_little_is_refused(slope, message):
    part = nr.Safe(start=[{"power": 20, "rate": 0.01, "count": 2, "fan": "low"}], slope=slope, noise=0.1)
    with pytest.raises(InvalidInput, match=message):
        nr.gp_ucb(HEATER, nr.kernel_for(HEATER), noise=0.1, constraints=part)


@pytest.mark.parametrize("wrong", [math.nan, -1.0])
@pytest.mark.parametrize("made", [lambda x: {"a": x}, lambda x: [1.0, x], lambda x: {"fan": {"low": {"high": x}}}])
def test_a_slope_that_is_no_size_is_refused_before_there_is_a_domain(made, wrong):
    with pytest.raises(InvalidInput, match=r"`slope\[.*most by which the constraint changes"):
        nr.Safe(start=[[0.0]], slope=made(wrong), noise=0.1)
    assert nr.Safe(start=[[0.0]], slope=made(math.inf), noise=0.1).slope


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"noise": None}, "`noise` is missing"),
        ({"certificate": "bounds"}, "certifies by itself"),
        ({"scale": "learned"}, "certifies by itself"),
        ({"caution": 0.5}, "caution"),
        ({"slope": [1.0, 2.0]}, "1 coordinate without names"),
    ],
)
def test_other_certificates_are_refused_beside_slopes(more, message):
    with pytest.raises(InvalidInput, match=message):
        line(**more)


def test_certified_is_what_an_answer_proves():
    study = line(caution=1.0)
    assert study.feasible().tolist() == [1.0] + [0.0] * 10
    study.add([0.0], 0.0, constraints=[-3.2])  # 0.1 of noise leaves 3.1
    assert study.feasible().tolist() == [1.0] * 4 + [0.0] * 7
    study.add([3.0], 0.0, constraints=[-4.0])
    assert study.feasible().tolist() == [1.0] * 7 + [0.0] * 4
    assert study.ask().arm in (0, 1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("true", [0.7, 1.0, 1.25, 1.5])
def test_slopes_that_are_told_too_small_by_at_most_caution_do_no_harm(true):
    """A line of that slope where 1 is told, without noise: refuted as soon as two answers show it, and never above."""
    study = line(noise=0.0)
    for _ in range(8):
        if study.remarks:
            break
        trial = study.ask()
        assert true * trial.point[0] - 5.0 <= 0.0
        study.tell(trial, trial.point[0], constraints=[true * trial.point[0] - 5.0])
    assert bool(study.remarks) == (true > 1.0)
    assert len(study.trials) > 1


def test_two_answers_refute_the_slopes():
    study = line()
    study.add([0.0], 0.0, constraints=[-5.0])
    study.add([2.0], 0.0, constraints=[-1.0])  # 4 apart, and 2 + 0.2 are allowed
    said = study.remarks["refuted"]
    for words in ("Trials 0 and 1", "differ by 4", "allows 2", "0.2 more", "1.9 times", "`noise` of 1"):
        assert words in said
    assert not study.feasible().any()
    with pytest.raises(NoRegretError, match="Trials 0 and 1 refute"):
        study.ask()
    study.add([1.0], 0.0, constraints=[-1.0])  # an answer that was under way
    assert "3.8 times" in study.remarks["refuted"]
    steeper = line(slope=3.81)
    for trial in study.trials:
        steeper.add(trial.point, trial.reward, constraints=trial.constraints)
    assert not steeper.remarks
    assert steeper.feasible()[:2].all()


def test_a_start_that_violates_is_not_played_again():
    study = line()
    study.tell(study.ask(), 0.0, constraints=[0.5])
    assert "violates constraint 1: trial 0 told 0.5" in study.remarks["unsafe start"]
    with pytest.raises(NoRegretError, match="nothing left to play"):
        study.ask()


def test_slopes_survive_json():
    start = {"power": 20, "rate": 0.01, "count": 2, "fan": "low"}
    part = nr.Safe(start=[start], slope=SLOPE, noise=0.1)
    policy = nr.auto(HEATER, constraints=part)
    again = nr.Policy.from_json(policy.to_json())
    assert again == policy
    assert hash(again.constraints) == hash(policy.constraints)


def test_averages_of_independent_noise_are_narrower():
    wide, close = line(slope=0.25, noise=1.0), line(slope=0.25, noise=1.0, independent=True, delta=0.1)
    for study in (wide, close):
        for _ in range(60):
            study.add([0.0], 0.0, constraints=[-3.0])
    assert close.feasible().sum() > wide.feasible().sum()


@pytest.mark.parametrize(
    ("more", "told", "words"),
    [
        ({"noise": 1.0}, -0.9, ("leave a margin of 0", "so nothing else is certified")),
        ({"slope": 3.0}, -4.0, ("leave a margin of 3.9", "nearest other arm is 4.5 away", "finer arms")),
        ({"slope": 3.0, "caution": 1.0}, -4.0, ()),
    ],
)
def test_a_start_without_room_is_said(more, told, words):
    study = line(**more)
    for _ in range(8):
        study.add([0.0], 0.0, constraints=[told])
    said = study.remarks.get("stuck", "")
    assert bool(said) == bool(words)
    for each in words:
        assert each in said


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(("low", "high"), [(1e-3, 10.0), (1e6, 1e6 + 5), (2.4e9, 2.48e9), (1e-9, 3e-9)])
def test_the_digits_of_decoded_numbers_neither_violate_nor_refute(low, high, log):
    """An exact constraint of the stated slope, at the values that people see, which have 12 digits."""
    space, decades = nr.Space(x=nr.Float(low, high, log=log)), np.log10(high / low)
    slope = 10.0 / decades if log else 10.0 / (high - low)

    def g(x):
        return slope * (np.log10(x / low) - 0.7313 * decades) if log else slope * (x - low) - 7.313

    part = nr.Safe(start=[{"x": low}], slope={"x": slope}, noise=0.0, caution=1.0)
    study = nr.Study(nr.gp_ucb(space, nr.kernel_for(space), noise=0.01, constraints=part), seed=0)
    for _ in range(12):
        trial = study.ask()
        assert g(trial.parameters["x"]) <= 0.0
        study.tell(trial, space.encode(trial.parameters)[0], constraints=[g(trial.parameters["x"])])
    assert max(g(trial.parameters["x"]) for trial in study.trials) > -0.1
    assert "refuted" not in study.remarks


@pytest.mark.parametrize("independent", [False, True])
def test_the_slopes_and_the_noise_that_a_refutation_names_fit(independent):
    for seed in range(8):
        rng, told = np.random.default_rng(seed), []
        study = line(independent=independent, delta=0.5)
        while not study.remarks and len(told) < 200:
            x = float(rng.integers(0, 3 if independent else 11))
            told.append(([x], -5.0 + rng.uniform(1.0, 1.4) * x + rng.uniform(-0.1, 0.1)))
            study.add(told[-1][0], 0.0, constraints=told[-1][1])
        said = study.remarks["refuted"]
        steeper = re.search(r"Slopes (\S+) times", said)
        wider = re.search(r"`noise` of (\S+)\. ", said)
        for more in ({"slope": float(steeper[1])} if steeper else {}, {"noise": float(wider[1])}):
            again = line(independent=independent, delta=0.5, **more)
            for point, value in told:
                again.add(point, 0.0, constraints=value)
            assert ("refuted" in again.remarks) == (not more)


def test_averages_that_refute_are_not_called_values():
    study = line(noise=1.0, independent=True)
    for value in (0.9, -0.9) * 150:
        study.add([0.0], 0.0, constraints=[-5.0 + value])
        study.add([1.0], 0.0, constraints=[-2.5 + value])
    assert "constraint 1 differs by" in study.remarks["refuted"]


@pytest.mark.parametrize("told", [0.25, 0.5])
@pytest.mark.parametrize("domain", [nr.Box(0, 10), nr.Arms.grid(0, 10, 101)], ids=["box", "arms"])
def test_a_line_told_much_too_flat_is_refuted_before_it_does_harm(domain, told):
    part = nr.Safe(start=[[0.0]], slope=told, noise=0.2)
    study = nr.Study(nr.gp_ucb(domain, KERNEL, noise=0.1, constraints=part), seed=0)
    for _ in range(6):
        if study.remarks:
            break
        trial = study.ask()
        assert trial.point[0] - 5.0 <= 0.0
        study.tell(trial, trial.point[0], constraints=[trial.point[0] - 5.0])
    assert "refuted" in study.remarks


def test_first_steps_are_short_until_answers_lie_far_apart():
    study = nr.Study(
        nr.gp_ucb(nr.Box(0, 10), KERNEL, noise=0.1, constraints=nr.Safe(start=[[0.0]], slope=1.0, noise=0.5))
    )
    reaches = []
    for point in (0.0, 1.0, 2.5, 0.0):  # told once more at the end
        study.add([point], 0.0, constraints=[-6.5])
        ahead = np.linspace(point, 10.0, 1001)[:, None]
        reaches.append(float(ahead[study.feasible(ahead) > 0].max() - max(point, *(t.point[0] for t in study.trials))))
    # A margin of 6 over a factor of 4, then 1 + 1 / 1, then 1.5, for `caution` is more than 1 + 1 / 2.5.
    assert reaches == pytest.approx([6 / 4, 6 / 2, 6 / 1.5, 6 / 1.5], abs=0.02)


@pytest.mark.parametrize("grid", [True, False])
@pytest.mark.parametrize("name", ["hour", "day"])
def test_a_point_of_start_is_played_in_a_context_with_a_missing_value(name, grid):
    """Two missing values may differ, so that no answer certifies anything there, and `start` holds in every context."""
    contexts = nr.Space(
        hour=nr.Float(0, 24, unknown=True) if name == "hour" else nr.Float(0, 24),
        day=nr.Choice("mon", "sun", unknown=name == "day"),
    )
    space, known = nr.Space(x=nr.Float(0, 10)), {"hour": 3.0, "day": "mon"}
    domain = space.grid(11) if grid else space
    part = nr.Safe(start=[{"x": 0.0}], slope={"x": 1.0, "hour": 0.1, "day": 0.1}, noise=0.0)
    kernel = nr.kernel_for(domain, context=contexts)
    study = nr.Study(nr.gp_ucb(domain, kernel, noise=0.1, context=contexts, constraints=part), seed=0)
    for value in (known[name], None, None, known[name]):
        trial = study.ask({**known, name: value})
        assert value is not None or trial.parameters["x"] == 0.0
        study.tell(trial, trial.parameters["x"], constraints=[trial.parameters["x"] - 5.0])
    assert study.trials[-1].parameters["x"] > 0.0


def test_contexts_that_never_recur_are_said():
    def study(slope):
        part = nr.Safe(start=[{"x": 0.0}], slope=slope, noise=0.1)
        made = nr.gp_ucb(nr.Space(x=nr.Float(0, 10)), nr.kernel_for(nr.Space(x=nr.Float(0, 10)), context=FEED),
                         noise=0.1, context=FEED, constraints=part)  # fmt: skip
        return nr.Study(made, seed=0)

    alone, named = study({"x": 1.0}), study({"x": 1.0, "feed": 0.1})
    for each in (alone, named):
        for i in range(9):
            each.add({"x": 0.0}, 0.0, context={"feed": float(i)}, constraints=[-3.0])
    assert "9 contexts" in alone.remarks["contexts"]
    assert not named.remarks
    assert named.ask(context={"feed": 4.5}).parameters["x"] > 0.0


def test_a_misspelt_slope_is_named():
    part = nr.Safe(start=[{"x": 0.0}], slope={"y": 1.0}, noise=0.1)
    with pytest.raises(InvalidInput, match=r"says nothing of parameter `x`.* It names \['y'\]"):
        nr.gp_ucb(nr.Space(x=nr.Float(0, 10)), KERNEL, noise=0.1, constraints=part)


def test_remarks_under_contexts_count_contexts_and_say_where_a_value_counts():
    part = nr.Safe(start=[{"feed": 1}, {"feed": 9}], slope={"feed": 1.0}, noise=0.1)
    study = nr.Study(nr.auto(FEED, context=nr.Space(load=nr.Float(0, 1)), constraints=part), seed=0)
    for load in range(8):
        assert "contexts" not in study.remarks
        for feed in (1, 9):
            study.add({"feed": feed}, 0.0, context={"load": load / 10}, constraints=[-1.0])
    assert "told under 8 contexts" in study.remarks["contexts"]
    study.add({"feed": 9}, 0.0, context={"load": 0.9}, constraints=[1.0])
    assert "not played again in contexts for which this value counts." in study.remarks["unsafe start"]
    assert study.feasible({"feed": 9}, context={"load": 0.9}) == 0.0
    assert study.feasible({"feed": 9}, context={"load": 0.8}) == 1.0
