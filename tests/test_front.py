"""Several objectives: goals, the front, and decisions that follow from the record."""

import numpy as np
import pytest

import nilregret as nr
from nilregret.cli.overview import front_json, front_table
from nilregret.errors import InvalidInput, TrialError
from nilregret.plots.front_picture import front_title
from nilregret.slots.pareto import Pareto
from nilregret.study.terminal import plain

SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
SEARCH = nr.slots.PointSearch(candidates=16, around=4, starts=1, evaluations=2)


def costs(x, y):
    """Two losses that fight each other along x, and are both least for y = 0."""
    return x + y, 1.0 - x**0.5 + y


def policy(domain=SPACE, **more):
    made = nr.auto(domain, objectives=("time", "size"), budget=12, **more)
    return made.using(search=SEARCH)


def played(study, trials, signs=(1.0, 1.0)):
    """The points of a study after so many trials."""
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, tuple(sign * value for sign, value in zip(signs, costs(*trial.point), strict=True)))
    return [trial.point.tolist() for trial in study.trials]


def filled(**more):
    """A study of four answered trials, of which the third is beaten by the second."""
    study = nr.Study(policy(), goal="minimize", **more)
    for x, values in ((0.2, (0.9, 1.0)), (0.5, (0.5, 2.0)), (0.6, (0.7, 3.0)), (0.9, (0.1, 4.0))):
        study.add({"x": x, "y": 0.0}, values)
    return study


def test_minus_a_loss_is_a_reward():
    down = played(nr.Study(policy(), goal="minimize"), 9)
    up = played(nr.Study(policy(), goal=("maximize", "maximize")), 9, signs=(-1.0, -1.0))
    mixed = played(nr.Study(policy(), goal=("minimize", "maximize")), 9, signs=(1.0, -1.0))
    assert down == up == mixed


def test_decisions_follow_from_the_record(tmp_path):
    url = f"sqlite:///{tmp_path / 'fronts.db'}"
    whole = played(nr.Study(policy(), goal="minimize"), 10)
    with nr.Study(policy(), goal="minimize", storage=url) as study:
        played(study, 7)
    with nr.Study.open(storage=url) as study:
        assert study.goal == ("minimize", "minimize")
        assert played(study, 3) == whole


def test_decisions_follow_from_the_record_with_open_trials_and_failures():
    study = nr.Study(policy(parallel=3), goal="minimize", seed=3)
    asked = study.ask(count=9)
    for trial in asked[:7]:
        study.tell(trial, costs(*trial.point))
    study.fail(asked[7], "no answer")
    again = nr.Study(policy(parallel=3), goal="minimize", seed=3)
    again.replica.adopt(study.replica.record.as_of(study.replica.record.order))
    assert study.ask().point.tolist() == again.ask().point.tolist()
    assert study.ask().point.tolist() == again.ask().point.tolist()


def test_the_front_has_the_best_of_each_objective_first():
    study = filled()
    assert [trial.number for trial in study.front()] == [3, 0, 1]
    found = study.front_values(reference=(1.0, 5.0))
    assert found.reference.tolist() == [1.0, 5.0]
    assert found.mean.shape == found.std.shape == (3, 2)
    assert (found.lower <= found.mean).all()
    assert (found.mean <= found.upper).all()
    by_strips = (1 - 0.9) * (5 - 1) + (0.9 - 0.5) * (5 - 2) + (0.5 - 0.1) * (5 - 4)
    assert found.hypervolume == pytest.approx(by_strips, rel=0.1)
    assert study.hypervolume(reference=(1.0, 5.0)) == found.hypervolume


def test_weights_pick_from_the_front():
    study = filled()
    assert study.best(weights={"time": 1}).number == 3
    assert study.best(weights={"size": 1}).number == 0
    assert study.best(weights=(1, 1)).number == 1


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"times": 1}, "Did you mean 'time'"),
        ((1, 1, 1), "a number for each objective"),
        ({"time": 0}, "all 0"),
        ({"time": -1}, "`weight of time` is -1"),
        ("time", "a number for each objective"),
    ],
)
def test_weights_that_are_none(weights, words):
    with pytest.raises(InvalidInput, match=words):
        filled().best(weights=weights)


def test_no_single_trial_is_best():
    study = filled()
    for asked in (study.best, study.certainty):
        with pytest.raises(TrialError, match=r"time, size.*front\(\)"):
            asked()


def test_one_objective_has_a_front_of_one():
    study = nr.Study(nr.auto(SPACE), goal="minimize")
    study.add({"x": 0.1, "y": 0.1}, 1.0)
    study.add({"x": 0.9, "y": 0.1}, 2.0)
    assert study.front() == [study.best()]
    with pytest.raises(InvalidInput, match="one objective"):
        study.front_values()
    with pytest.raises(InvalidInput, match="leave them out"):
        study.best(weights={"reward": 1})


def test_a_study_without_answers_has_an_empty_front():
    study = nr.Study(policy(), goal="minimize")
    assert study.front() == []
    assert study.hypervolume() == 0.0


def test_a_violation_keeps_a_trial_off_the_front():
    study = nr.Study(policy(constraints=1), goal="minimize")
    study.add({"x": 0.1, "y": 0.1}, (0.0, 0.0), constraints=[1.0])
    assert study.front() == []
    study.add({"x": 0.9, "y": 0.1}, (1.0, 1.0), constraints=[-1.0])
    assert [trial.number for trial in study.front()] == [1]
    assert (study.policy.constraint_count, study.policy.output_count) == (1, 3)
    played_on = [study.ask() for _ in range(3)]
    assert len({trial.point.tobytes() for trial in played_on}) == 3


def test_predictions_of_each_objective_are_in_the_units_told():
    study = nr.Study(policy(), goal=("minimize", "maximize"))
    for x in (0.1, 0.4, 0.8):
        study.add({"x": x, "y": 0.0}, (10.0 * x, 1000.0 + 100.0 * x))
    rising = [study.predict([{"x": x, "y": 0.0} for x in (0.1, 0.8)], channel=j)[0] for j in (0, 1)]
    assert rising[0][1] > rising[0][0]
    assert rising[1][1] > rising[1][0] > 900.0
    lower, upper = study.bounds([{"x": 0.1, "y": 0.0}], channel=1)
    assert lower[0] < upper[0]
    with pytest.raises(InvalidInput, match="channel"):
        study.predict([{"x": 0.1, "y": 0.0}], channel=2)


def test_arms_have_fronts_too():
    arms = nr.Arms.grid(0, 1, 9)
    study = nr.Study(nr.auto(arms, objectives=2), goal="minimize")
    for _ in range(12):
        trial = study.ask()
        study.tell(trial, costs(trial.point[0], 0.0))
    assert {trial.arm for trial in study.front()} >= {0, 8}


def test_a_policy_of_several_objectives_is_stored_whole():
    made = nr.auto(SPACE, objectives=("time", "size"), constraints=2)
    assert nr.Policy.from_json(made.to_json()) == made
    assert made.objective_names == ("time", "size")
    assert nr.auto(SPACE, objectives=3).objective_names == ("objective 1", "objective 2", "objective 3")
    assert nr.auto(SPACE).objective_names == ("reward",)


def test_a_reference_is_in_the_units_told():
    rule = Pareto(objectives=2, limits=1, goals=("minimize", "maximize"), reference=(5.0, -1.0), prior_mean=(2.0, 0.5))
    turned = rule.turned()
    assert turned.reference == (-5.0, -1.0)
    assert turned.prior_mean == (2.0, 0.5)
    assert turned.turned() == turned


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: nr.auto(SPACE, objectives=0), "objectives"),
        (lambda: nr.auto(SPACE, objectives=("time",)), "single one"),
        (lambda: nr.auto(SPACE, objectives=("time", "time")), "'time'"),
        (lambda: nr.auto(SPACE, objectives=("time", "")), "one line"),
        (lambda: nr.auto(SPACE, objectives={"time": "minimize", "size": "minimize"}), "a policy has no goals"),
        (lambda: nr.auto(SPACE, objectives="time"), "objectives"),
        (lambda: nr.auto(SPACE, objectives=2, context=nr.Box(0, 1)), "`context`"),
        (lambda: nr.auto(nr.Arms.grid(0, 1, 5), objectives=2, reward="bernoulli"), "`reward`"),
        (lambda: nr.auto(SPACE, objectives=2, cost="seconds"), "`cost`"),
        (lambda: nr.auto(SPACE, objectives=2, constraints=nr.OnAverage()), "`constraints`"),
        (lambda: nr.auto(SPACE, objectives=2, answers="silent no"), "`answers`"),
        (lambda: nr.auto(SPACE, objectives=2, regret="cumulative"), "`regret`"),
        (lambda: nr.gp_ucb(SPACE, nr.Matern(2.5, [0.3, 0.3]), noise=0.1).using(constraints=Pareto()), "scores one"),
        (lambda: Pareto(objectives=2, reference=(1.0,)), "give each one"),
        (lambda: Pareto(objectives=2, goals=("minimize", "min")), "goals"),
        (lambda: Pareto(objectives=2, count=3), "leave it out"),
        (lambda: nr.Study(policy(), goal=("minimize",)), "2 objectives"),
        (lambda: nr.Study(policy(), goal={"time": "minimize"}), "a tuple in their order"),
        (lambda: nr.Study(policy(), goal=("minimize", "min")), "Did you mean 'minimize'"),
        (lambda: nr.Study(nr.auto(SPACE), goal=("minimize", "maximize")), "1 objective"),
        (
            lambda: nr.Study(nr.Study(policy(), goal="minimize").policy, goal=("maximize", "minimize")),
            "have the goals .* another `name`",
        ),
    ],
)
def test_what_several_objectives_refuse(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()


def test_a_change_is_noticed_in_any_objective():
    made = nr.auto(nr.Arms.grid(0, 1, 4), objectives=2, world="switching", noise=0.05)
    study = nr.Study(made, goal="maximize")
    rng = np.random.default_rng(0)
    for n in range(80):
        trial = study.ask()
        study.tell(trial, (0.05 * rng.normal(), (2.0 if n < 40 else -2.0) + 0.05 * rng.normal()))
    assert study.restarts


def test_a_front_of_exact_values_has_no_trial_that_another_one_beats():
    """Posterior means of exact values differ by rounding."""

    def costs_of(x, n):
        return (x - 0.3) ** 2 + 1 / n, n * 1.5

    space = nr.Space(x=nr.Float(0, 1), n=nr.Int(1, 9))
    study = nr.Study(nr.auto(space, objectives=2, budget=18).using(search=SEARCH), goal="minimize")
    for _ in range(18):
        trial = study.ask()
        study.tell(trial, costs_of(**trial.parameters))
    told = [trial.values for trial in study.trials]
    beaten = [
        trial.number for trial in study.front() for a, b in told
        if a <= trial.values[0] and b <= trial.values[1] and (a, b) != trial.values
    ]  # fmt: skip
    assert beaten == []


@pytest.mark.parametrize("noise", [None, 0])
def test_trials_that_are_left_out_as_noise_are_counted_and_without_noise_there_are_none(noise):
    rng = np.random.default_rng(0)
    study = nr.Study(nr.auto(SPACE, objectives=2, noise=noise, constraints=1), goal="minimize")
    for x, y in rng.uniform(size=(30, 2)):
        study.add({"x": x, "y": y}, (x + 0.3 * rng.normal(), 1 - x + 0.3 * rng.normal()), constraints=[y - 0.8])
    feasible = [trial for trial in study.trials if trial.feasible]
    best_as_told = {
        trial.number for trial in feasible
        if not any(np.all(np.array(other.values) <= trial.values) for other in feasible if other is not trial)
    }  # fmt: skip
    found = study.front_values()
    missing = best_as_told - {trial.number for trial in found.trials}
    assert set(found.left_out) == missing
    assert bool(missing) == (noise is None)
    assert bool(found.note) == bool(missing) == any(f"({n}" in found.note for n in found.left_out)
    heading, _, first, *_ = plain(front_table(front_json(study), wide=True)).split("\n")
    values = (*found.trials[0].values, *found.mean[0].tolist())
    headings = [f"{name}, {word}" for word in ("told", "mean") for name in study.policy.objective_names]
    for name, value in zip(headings, values, strict=True):
        end = heading.index(name) + len(name)
        assert float(first[:end].split()[-1]) == pytest.approx(value, rel=1e-3)
    assert front_title(study, found).endswith(found.note)
    for number, other in zip(found.left_out, found.behind, strict=True):
        pair = [study.trials[number], study.trials[other]]
        one, better = study.replica.query(lambda state, pair=pair: state.objective_means(pair))
        assert (better >= one).all()
        assert f"{number} behind {other}" in found.note
    if noise == 0:
        assert {trial.number for trial in found.trials} == best_as_told
        assert [tuple(row) for row in found.mean.tolist()] == [trial.values for trial in found.trials]
        assert nr.serialize.loads(nr.serialize.dumps(study.policy)).constraints.exact


def test_where_nothing_is_feasible_weights_name_the_closest_trial():
    study = nr.Study(policy(constraints=1), goal="minimize")
    study.add({"x": 0.1, "y": 0.1}, (0.0, 0.0), constraints=[1.0])
    with pytest.raises(TrialError, match="satisfied all constraints"):
        study.best(weights=(1, 1))


def test_a_point_of_noisy_constraint_values_counts_by_their_mean_as_for_one_objective():
    study = nr.Study(policy(constraints=1), goal="minimize")
    for value in (0.1, -0.5):
        study.add({"x": 0.1, "y": 0.1}, (0.0, 0.0), constraints=[value])
    study.add({"x": 0.9, "y": 0.9}, (1.0, 1.0), constraints=[-1.0])
    assert [trial.number for trial in study.front_values().trials] == [0]
    assert study.best(weights=(1, 1)).number == 0


def test_a_front_names_who_is_believed_to_violate_a_constraint_but_was_not_told_so():
    study = nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1)), objectives=2, constraints=1), seed=0)
    for i, x in enumerate(np.linspace(0.0, 1.0, 8)):
        study.add({"x": x}, (x, 1.0 - x), constraints=[48.0 if i == 6 else -0.1 if i == 7 else -1.0 - x])
    found = study.front_values()
    assert {*found.left_out} == {0, 1, 2, 3, 4, 5, 7} - {trial.number for trial in found.trials}
    assert dict(zip(found.left_out, found.behind, strict=True))[7] is None
    assert "7 by a constraint" in found.note
