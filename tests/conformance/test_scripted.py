"""Every scripted policy joins by one line in SCRIPTED: it is used like any other, without a posterior."""

import itertools
import warnings

import numpy as np
import pytest

import nilregret as nr
from nilregret import serialize
from nilregret.algorithms import baselines
from nilregret.policy.scripted import ScriptedPolicy

BOX = nr.Box([0.0, -1.0], [2.0, 1.0])
SCRIPTED = {
    "admmbo": lambda **more: nr.algorithms.admmbo(BOX, **{"first": (3, 4), "more": (2, 2), "candidates": 200} | more),
    "bandit_oco": lambda **more: nr.algorithms.bandit_oco(BOX, **{"step": 0.1} | more),
}


def reward(trial):
    return float(-((trial.point - [1.5, 0.2]) ** 2).sum()) + 0.05 * np.random.default_rng([5, trial.number]).normal()


def g(trial, m=1):
    return [float(trial.point[0] - 1.0), -float(trial.point[1]) - 2.0][:m]


def answer(study, trial):
    study.tell(trial, reward(trial), constraints=g(trial, study.policy.constraint_count))


def play(study, rounds):
    for _ in range(rounds):
        answer(study, study.ask())
    return [trial.point.tolist() for trial in study.trials]


@pytest.fixture(params=SCRIPTED.values(), ids=SCRIPTED.keys(), name="make")
def make_fixture(request):
    return request.param


def test_table_is_complete():
    assert set(SCRIPTED) == {name for name in baselines.__all__ if name.islower()}
    assert {make().algorithm for make in SCRIPTED.values()} == set(SCRIPTED)
    assert set(SCRIPTED) <= set(nr.algorithms.__all__)
    assert {type(make()) for make in SCRIPTED.values()} == set(ScriptedPolicy.__subclasses__())


def test_round_trips_through_json(make):

    policy = make(constraints=2)
    again = serialize.loads(policy.to_json())
    assert again == policy
    assert again.to_json() == policy.to_json()
    assert hash(again) == hash(policy)
    assert play(nr.Study(again, seed=3), 12) == play(nr.Study(policy, seed=3), 12)
    with pytest.raises(AttributeError):
        policy.domain = BOX


def test_asking_is_pure_and_looking_changes_nothing(make):
    quiet, curious = nr.Study(make(), seed=5), nr.Study(make(), seed=5)
    for _ in range(25):
        decided = curious.replica.state.decide()
        assert np.array_equal(curious.replica.state.decide().point, decided.point)
        trials = quiet.ask(), curious.ask()
        np.testing.assert_array_equal(trials[0].point, trials[1].point)
        np.testing.assert_array_equal(trials[1].point, decided.point)
        assert (BOX.inside("point", trials[0].point[None]) == trials[0].point).all()
        answer(quiet, trials[0])
        answer(curious, trials[1])
        assert curious.multipliers.shape == (1,)
        assert curious.restarts == curious.norm_bounds == []
        assert not curious.saturated


def test_same_seed_same_run_other_seed_other_run(make):
    assert play(nr.Study(make(), seed=1), 15) == play(nr.Study(make(), seed=1), 15)
    assert play(nr.Study(make(), seed=1), 15) != play(nr.Study(make(), seed=2), 15)


@pytest.mark.parametrize("stop", [0, 1, 2, 13])
def test_resuming_from_storage_continues_exactly(make, tmp_path, stop):
    url = f"sqlite:///{tmp_path}/studies.db"
    straight = nr.Study(make(), seed=4)
    play(straight, 24)
    play(nr.Study(make(), seed=4, storage=url, name="a"), stop)
    resumed = nr.Study.open(storage=url, name="a")
    play(resumed, 24 - stop)
    assert [t.point.tolist() for t in resumed.trials] == [t.point.tolist() for t in straight.trials]
    np.testing.assert_array_equal(resumed.multipliers, straight.multipliers)


def test_resuming_with_open_questions_continues_exactly(make, tmp_path):
    url = f"sqlite:///{tmp_path}/studies.db"
    straight, stored = nr.Study(make(), seed=4), nr.Study(make(), seed=4, storage=url)
    for study in (straight, stored):
        play(study, 4)
        trials = study.ask(count=2)
        study.add([1.0, 0.5], 3.0, constraints=[-1.0])
        answer(study, trials[1])
        study.ask()
        answer(study, trials[0])
    assert play(nr.Study.open(storage=url), 8) == play(straight, 8)


def test_order_of_arrival_between_two_asks_does_not_matter(make):
    outcomes = set()
    for order in itertools.permutations(range(3)):
        study = nr.Study(make(), seed=6)
        play(study, 6)
        trials = study.ask(count=3)
        for position in order:
            answer(study, trials[position])
        outcomes.add(study.ask().point.tobytes())
    assert len(outcomes) == 1


def test_while_an_answer_is_missing_it_asks_again_and_goes_on_when_it_comes(make):
    study, straight = nr.Study(make(), seed=6), nr.Study(make(), seed=6)
    play(study, 5)
    play(straight, 5)
    while True:  # up to the last point of a batch
        trial = study.ask()
        answer(straight, straight.ask())
        if len(study.replica.state._numbers) == len(study.replica.state._points):
            break
        answer(study, trial)
    first = study.replica.state._points[0]
    for _ in range(3):
        again = study.ask()
        np.testing.assert_array_equal(again.point, first)
        answer(study, again)
    answer(study, trial)
    assert study.ask().number == straight.ask().number + 3


def test_failures_and_missing_values_are_passed_over(make):
    study = nr.Study(make(), seed=0)
    for number in range(24):
        trial = study.ask()
        if number % 3 == 0:
            study.fail(trial, "rig down")
        elif number % 3 == 1:
            study.tell(trial, 1.0)
        else:
            answer(study, trial)
    assert len({trial.point.tobytes() for trial in study.trials}) > 5
    assert np.isfinite([trial.point for trial in study.trials]).all()


def test_added_points_are_recorded_and_teach_nothing(make):
    plain, added = nr.Study(make(), seed=0), nr.Study(make(), seed=0)
    plain.ask()
    added.ask()
    added.add([1.9, 0.0], 100.0, constraints=[0.5])
    if make().algorithm == "admmbo":  # the first points are one batch: nothing is drawn in between
        np.testing.assert_array_equal(plain.ask().point, added.ask().point)
    assert added.trials[1].reward == 100.0


def test_there_is_nothing_to_predict(make):
    study = nr.Study(make(), seed=0)
    play(study, 4)
    for look in (study.predict, study.bounds, lambda: study.width, lambda: study.information_gain):
        with pytest.raises(nr.NoRegretError, match="keeps no posterior"):
            look()


def test_the_best_trial_satisfies_the_constraints(make):
    study = nr.Study(make(), seed=0)
    study.add([1.5, 0.2], 5.0, constraints=[0.5])
    with pytest.raises(nr.errors.TrialError, match="None of the 1"):
        study.best()
    study.add([0.9, 0.2], 1.0, constraints=[-0.1])
    study.add([0.5, 0.2], 0.5, constraints=[-0.5])
    assert study.best().number == 1


def test_it_is_simulated_like_any_policy(make):
    env = nr.Environment(
        lambda x: -((x - [1.5, 0.2]) ** 2).sum(axis=1),
        domain=BOX,
        noise=0.05,
        constraints=lambda x: x[:, 0] - 1.0,
        best=-0.25,
        delay=1,
    )
    policy = make()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        runs = [nr.replicate(lambda: policy, lambda: env, 14, seeds=range(2), jobs=jobs) for jobs in (1, 2)]
    np.testing.assert_array_equal(runs[0].points, runs[1].points)
    assert runs[0].violation.shape == (2, 14)
    assert runs[0].multipliers.shape == (2, 14, 1)


@pytest.mark.parametrize("domain", [nr.Arms.grid(0, 1, 5), nr.Space(x=nr.Float(0, 1)), "box"])
def test_only_boxes(domain):
    with pytest.raises(nr.errors.InvalidInput, match="must be a `Box`"):
        nr.algorithms.bandit_oco(domain, step=0.1)
    if not isinstance(domain, nr.Space):
        with pytest.raises(nr.errors.InvalidInput, match="must be a `Box` or a `Space`"):
            nr.algorithms.admmbo(domain)


def test_admmbo_searches_a_space():
    """Only valid points are asked for, whole numbers and options included, and they become good ones."""
    space = nr.Space(x=nr.Float(0, 1), n=nr.Int(0, 10, step=5), kind=nr.Choice("a", None))
    policy = nr.algorithms.admmbo(space, first=(4, 4), more=(1, 1), start=3, steps=3, candidates=50)
    assert serialize.loads(policy.to_json()) == policy
    study = nr.Study(policy, seed=1)
    for _ in range(30):
        trial = study.ask()
        p = trial.parameters
        assert p["n"] in (0, 5, 10)
        assert p["kind"] in ("a", None)
        np.testing.assert_array_equal(space.encode(p)[1:], trial.point[1:])
        study.tell(trial, -((p["x"] - 0.3) ** 2) + 0.1 * p["n"], constraints=[p["x"] - 0.9])
    assert study.best().parameters["n"] == 10


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("bandit_oco", {"step": 0.0}, "`step` is 0"),
        ("bandit_oco", {"spread": 1.0}, "`spread` is 1"),
        ("bandit_oco", {"damping": -1.0}, "`damping` is -1"),
        ("bandit_oco", {"constraints": 0}, "`constraints` is 0"),
        ("bandit_oco", {"start": [5.0, 0.0]}, "outside the box"),
        ("admmbo", {"rho": 0.0}, "`rho` is 0"),
        ("admmbo", {"price": float("nan")}, "`price` is nan"),
        ("admmbo", {"first": (0, 5)}, "`first` is 0"),
        ("admmbo", {"more": 5}, "`more`"),
        ("admmbo", {"candidates": 0}, "`candidates` is 0"),
    ],
)
def test_bad_arguments_are_named(name, arguments, message):
    with pytest.raises(nr.errors.InvalidInput, match=message):
        SCRIPTED[name](**arguments)


# -- what they do ------------------------------------------------------------------------------------------------------


def test_oco_solves_a_convex_problem():
    """Maximise -|x - (1.5, 0.2)|^2 with x_1 <= 1: the optimum is (1, 0.2), its multiplier 1."""
    study = nr.Study(nr.algorithms.bandit_oco(BOX, step=0.05, spread=0.02, damping=0.0, start=[0.2, -0.8]), seed=0)
    for _ in range(1500):
        trial = study.ask()
        study.tell(trial, float(-((trial.point - [1.5, 0.2]) ** 2).sum()), constraints=g(trial))
    np.testing.assert_allclose(study.ask().point, [1.0, 0.2], atol=0.06)
    assert study.multipliers[0] == pytest.approx(1.0, abs=0.15)


def test_oco_steps_are_those_of_the_page():
    policy = nr.algorithms.bandit_oco(BOX, step=0.1, spread=0.2, damping=0.3, start=[1.9, 0.1])
    study = nr.Study(policy, seed=0)
    points, values = [], []
    for _ in range(9):
        trial = study.ask()
        points.append(trial.point)
        values.append((-reward(trial), g(trial)[0]))
        answer(study, trial)
    np.testing.assert_allclose(points[0], [1.8, 0.1])  # (1 - xi) X, xi = 0.2
    lam = 0.0
    for k in (0, 3):
        x, plus, minus = points[k : k + 3]
        u = (plus - minus) / 0.4
        assert np.linalg.norm(u) == pytest.approx(1.0)
        np.testing.assert_allclose(plus + minus, 2 * x, atol=1e-12)
        gradient = [2 / 0.4 * (values[k + 1][i] - values[k + 2][i]) * u for i in (0, 1)]
        expected = np.clip(x - 0.1 * (gradient[0] + lam * gradient[1]), [0.2, -0.8], [1.8, 0.8])
        np.testing.assert_allclose(points[k + 3], expected, atol=1e-12)
        lam = max(0.0, lam + 0.1 * (values[k][1] - 0.3 * lam))


def test_admmbo_finds_a_good_feasible_point_and_stops():
    policy = nr.algorithms.admmbo(BOX, first=(6, 8), more=(3, 3), candidates=2000)
    study = nr.Study(policy, seed=0)
    play(study, 90)
    last = [trial.point.tolist() for trial in list(study.trials)[-5:]]
    assert len(set(map(tuple, last))) == 1  # it has stopped
    assert g(study.trials[-1])[0] <= 0.01 + 1e-9
    assert reward(study.trials[-1]) > -0.6
