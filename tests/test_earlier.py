"""What earlier studies know: where they are read from, how they are weighed, and that a record needs none of them."""

import csv

import numpy as np
import pytest

import nilregret as nr
from nilregret.algorithms.registry import PolicyContext
from nilregret.algorithms.registry import policy as read_policy
from nilregret.errors import InvalidInput, NoRegretWarning
from nilregret.gp.mixture import left_out, rank_shares
from nilregret.gp.points import PointPosterior
from nilregret.slots import EarlierStudies, GivenPoints
from nilregret.tuning.toml.config import load

SPACE = nr.Space(x=nr.Float(-5, 5), y=nr.Float(1e-3, 1e2, log=True), kind=nr.Choice("plain", "shifted"))


def value(x, y, kind, at=1.0):
    return -((x - at) ** 2) - np.log10(y) ** 2 + (1.0 if kind == "shifted" else 0.0)


def study_of(space=SPACE, objective=value, *, sign=1.0, count=16, seed=0, **more):
    study = nr.Study(nr.auto(space), seed=seed, **more)
    rng = np.random.default_rng(seed)
    for point in space.snap(rng.uniform(space.lower, space.upper, (count, space.dimension))):
        parameters = space.decode(point)
        study.add(parameters, sign * objective(**parameters))
    return study


@pytest.fixture(scope="module")
def earlier():
    return study_of()


def rows_of(study):
    return [{**trial.parameters, "reward": trial.reward} for trial in study.trials]


def one(policy):
    assert isinstance(policy.refit, EarlierStudies)
    (study,) = policy.refit.studies
    return study


def shares(study):
    return study.replica.query(lambda state: state.reward.posterior.belief.observed.shares)


def played(policy, count, objective=value, **more):
    study = nr.Study(policy, **more)
    for _ in range(count):
        trial = study.ask()
        study.tell(trial, objective(**trial.parameters))
    return study


# -- weights -----------------------------------------------------------------------------------------------------------


def posterior(function, count=25, seed=0):
    points = np.random.default_rng(seed).uniform(size=(count, 2))
    made = PointPosterior(nr.Matern(2.5, 0.3), 2, 1e-4)
    made.extend(points, function(points))
    return made


def wave(points):
    return np.sin(9 * points[:, 0]) + points[:, 1]


def test_a_study_that_ranks_well_leads_while_this_one_knows_little():
    own = posterior(wave, 6, seed=1)
    found = rank_shares(own, [posterior(wave), posterior(lambda points: -wave(points)), posterior(lambda p: p[:, 0])])
    assert found.sum() == pytest.approx(1.0)
    assert found.argmax() == 1
    assert found[2] == 0.0


def test_other_units_weigh_the_same():
    own = posterior(wave, 6, seed=1)
    other = posterior(lambda points: 1e3 * wave(points))
    assert np.array_equal(rank_shares(own, [posterior(wave)]), rank_shares(own, [other]))


def test_many_studies_of_nothing_do_not_dilute():
    own = posterior(wave, 30, seed=1)
    noise = [posterior(lambda points, i=i: np.random.default_rng(i).normal(size=len(points))) for i in range(20)]
    assert rank_shares(own, noise)[0] == 1.0


def test_this_study_is_judged_by_points_that_were_left_out():
    points = np.random.default_rng(0).uniform(size=(8, 2))
    own = PointPosterior(nr.Matern(2.5, 0.3), 2, 1e-4)
    own.extend(points, wave(points))
    found = left_out(own, np.arange(8))
    for j in range(8):
        rest = np.arange(8) != j
        without = PointPosterior(nr.Matern(2.5, 0.3), 2, 1e-4)
        without.extend(points[rest], wave(points[rest]))
        assert found[j] == pytest.approx(float(without.mean(points[j : j + 1])[0]))


def test_studies_that_mislead_fade(earlier):
    negated = [{**row, "reward": -row["reward"]} for row in rows_of(earlier)]
    study = played(nr.auto(SPACE, like=[negated, earlier]), 18)
    found = shares(study)
    assert found[1] == 0.0
    assert found[0] + found[2] == pytest.approx(1.0)


# -- the policy holds all that it knows --------------------------------------------------------------------------------


def test_a_description_holds_the_studies(earlier):
    policy = nr.auto(SPACE, like=earlier)
    again = nr.Policy.from_json(policy.to_json())
    assert again == policy
    assert hash(again.refit) == hash(policy.refit)
    assert nr.Policy.from_json(nr.auto(SPACE).to_json()) == nr.auto(SPACE)


def test_a_stored_study_is_replayed_to_the_bit(tmp_path, earlier):
    place = f"sqlite:///{tmp_path}/new.db"
    policy = nr.auto(SPACE, like=earlier)
    whole = played(policy, 14)
    half = played(policy, 7, storage=place, name="new")
    half.close()
    resumed = nr.Study.open(storage=place, name="new")
    for _ in range(7):
        trial = resumed.ask()
        resumed.tell(trial, value(**trial.parameters))
    assert [trial.point.tobytes() for trial in resumed.trials] == [trial.point.tobytes() for trial in whole.trials]


def test_the_best_points_are_played_first(earlier):
    policy = nr.auto(SPACE, like=earlier)
    given = policy.explore.parts[0]
    assert isinstance(given, GivenPoints)
    study = played(policy, len(given.points))
    assert np.array_equal([trial.point for trial in study.trials], given.points)
    best = max(trial.reward for trial in earlier.trials)
    assert max(trial.reward for trial in study.trials) >= best - 1e-9


def test_several_workers_and_constraints(earlier):
    policy = nr.auto(SPACE, like=earlier, parallel=2, constraints=1)
    assert isinstance(policy.of_channel(1).refit, nr.slots.Refit)
    study = nr.Study(policy)
    for trial in [trial for _ in range(4) for trial in study.ask(count=2)]:
        study.tell(trial, value(**trial.parameters), constraints=[trial.parameters["x"] - 2.0])
    mean, std = study.predict([{"x": 1.0, "y": 1.0, "kind": "shifted"}])
    assert np.isfinite(mean).all()
    assert (std > 0).all()


# -- sources -----------------------------------------------------------------------------------------------------------


def same(first, second):
    return np.array_equal(first.points, second.points) and np.allclose(first.targets, second.targets)


def test_directions_are_those_of_each_study(earlier):
    losses = study_of(sign=-1.0, goal="minimize")
    assert same(one(nr.auto(SPACE, like=losses)), one(nr.auto(SPACE, like=earlier)))


def test_results_and_tables(earlier):
    result = nr.maximize(value, SPACE, trials=6, progress=False)
    assert same(one(nr.auto(SPACE, like=result)), one(nr.auto(SPACE, like=result.study)))
    wanted = one(nr.auto(SPACE, like=earlier))
    assert same(one(nr.auto(SPACE, like=rows_of(earlier))), wanted)
    assert same(one(nr.auto(SPACE, like=[rows_of(earlier)])), wanted)
    pandas = pytest.importorskip("pandas")
    assert same(one(nr.auto(SPACE, like=pandas.DataFrame(rows_of(earlier)))), wanted)
    assert same(one(nr.auto(SPACE, like=earlier.to_pandas())), wanted)


def test_tables_hold_losses_if_the_objective_is_minimised(earlier):
    rows = [{**row, "reward": -row["reward"]} for row in rows_of(earlier)]
    policy = nr.minimize(lambda **p: -value(**p), SPACE, trials=1, like=rows, progress=False).study.policy
    assert same(one(policy), one(nr.auto(SPACE, like=earlier)))


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_exported_files(tmp_path, earlier, ending):
    path = tmp_path / f"trials.{ending}"
    earlier.export(path)
    assert same(one(nr.auto(SPACE, like=path)), one(nr.auto(SPACE, like=earlier)))


def test_a_table_of_texts(tmp_path, earlier):
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["x", "y", "kind", "reward"])
        writer.writeheader()
        writer.writerows([*rows_of(earlier), {"x": 1.0, "y": 1.0, "kind": "plain", "reward": ""}])
    assert same(one(nr.auto(SPACE, like=str(path))), one(nr.auto(SPACE, like=earlier)))


def test_storages_and_one_study_of_them(tmp_path, earlier):
    place = f"sqlite:///{tmp_path}/old.db"
    study_of(storage=place, name="first").close()
    study_of(storage=place, name="second", seed=1).close()
    assert [study.name for study in nr.auto(SPACE, like=place).refit.studies] == ["first", "second"]
    assert same(one(nr.auto(SPACE, like=f"{place}#first")), one(nr.auto(SPACE, like=earlier)))
    assert same(one(nr.auto(SPACE, like=f"{tmp_path}/old.db#first")), one(nr.auto(SPACE, like=earlier)))
    with pytest.raises(InvalidInput, match="no study 'third'"):
        nr.auto(SPACE, like=f"{place}#third")
    study_of(storage=place, name="third", count=2).close()
    with pytest.warns(NoRegretWarning, match="leaves out 1 study with answers. 'third' has 2 answered trials"):
        assert len(nr.auto(SPACE, like=place).refit.studies) == 2


def test_studies_of_optuna(earlier):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(direction="minimize")
    ranges = {
        "x": optuna.distributions.FloatDistribution(-5, 5),
        "y": optuna.distributions.FloatDistribution(1e-3, 1e2, log=True),
        "kind": optuna.distributions.CategoricalDistribution(["plain", "shifted"]),
    }
    for row in rows_of(earlier):
        loss = -row.pop("reward")
        study.add_trial(optuna.trial.create_trial(params=row, distributions=ranges, value=loss))
    study.add_trial(optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL))
    assert same(one(nr.auto(SPACE, like=study)), one(nr.auto(SPACE, like=earlier)))


def test_failed_and_open_trials_say_nothing(earlier):
    study = study_of()
    study.fail(study.ask(), "it broke")
    study.ask()
    assert same(one(nr.auto(SPACE, like=study)), one(nr.auto(SPACE, like=earlier)))


def test_a_box():
    box = nr.Box([0, 0], [1, 2])
    earlier = nr.Study(nr.auto(box))
    for point in np.random.default_rng(0).uniform(box.lower, box.upper, (10, 2)):
        earlier.add(point, -float(((point - 0.4) ** 2).sum()))
    study = nr.Study(nr.auto(box, like=earlier))
    assert study.ask().point == pytest.approx(max(earlier.trials, key=lambda trial: trial.reward).point)
    with pytest.raises(InvalidInput, match="3 dimensions"):
        nr.auto(nr.Box([0] * 3, [1] * 3), like=earlier)


# -- spaces that overlap partly ----------------------------------------------------------------------------------------


def test_parameters_that_an_earlier_study_lacks_do_not_matter_to_it(earlier):
    space = nr.Space(depth=nr.Int(1, 9), **SPACE.declared, other=nr.Choice("a", "b"))
    study = one(nr.auto(space, like=earlier))
    first, second = (
        {"depth": depth, "x": 1.0, "y": 1.0, "kind": "plain", "other": other} for depth, other in [(1, "a"), (9, "b")]
    )
    means = study.posterior().mean(np.array([space.encode(first), space.encode(second)]))
    assert means[0] == means[1]
    played(nr.auto(space, like=earlier), 12, lambda depth, other, **p: value(**p))


def test_parameters_that_the_new_space_lacks_are_dropped(earlier):
    space = nr.Space(x=nr.Float(-5, 5))
    study = one(nr.auto(space, like=earlier))
    assert study.points.shape == (16, 1)


def test_ranges_scales_and_options_may_differ(earlier):
    space = nr.Space(x=nr.Float(-2, 2), y=nr.Float(0.0, 100.0), kind=nr.Choice("new", "shifted"))
    with pytest.warns(NoRegretWarning, match="`like` leaves out 12 of 16 trials of 'study', .*: 12 for `kind`"):
        policy = nr.auto(space, like=earlier)
    study = one(policy)
    kept = [t for t in earlier.trials if t.parameters["kind"] == "shifted"]
    assert 3 <= len(study.points) <= len(kept)
    assert np.array_equal(
        study.points[0], [(kept[0].parameters["x"] + 2) / 4, kept[0].parameters["y"] / 100, 0, 0.5**0.5]
    )
    assert study.points[:, 0].max() > 1.0
    first = nr.Study(policy).ask()
    assert -2 <= first.parameters["x"] <= 2


def test_conditional_parameters():
    space = nr.Space(
        kernel=nr.Choice("linear", "rbf"),
        gamma=nr.when("kernel", "rbf", nr.Float(1e-3, 1.0, log=True)),
        C=nr.Float(0, 1),
    )

    def objective(kernel, C, gamma=1.0):
        return -((C - 0.3) ** 2) - (np.log10(gamma) + 2) ** 2 * (kernel == "rbf")

    earlier = study_of(space, objective)
    study = one(nr.auto(space, like=earlier))
    assert np.array_equal(study.points, [trial.point for trial in earlier.trials])
    played(nr.auto(space, like=earlier), 10, objective)


# -- errors ------------------------------------------------------------------------------------------------------------


def test_many_trials_are_cut_down():
    rows = rows_of(study_of(count=300))
    study = one(nr.auto(SPACE, like=rows))
    assert len(study.points) == 120
    assert np.array([row["reward"] for row in rows]).max() == pytest.approx(
        max(value(**SPACE.decode(point)) for point in study.points)
    )


@pytest.mark.parametrize(
    ("like", "said"),
    [
        ([], "is empty"),
        (3, "an earlier study is a study"),
        ([{"x": 1.0}], "must be `reward`"),
        ([{"z": 1.0, "reward": 2.0}] * 4, "something about x, y, kind"),
        ([{"x": 1.0, "reward": 2.0}] * 2, "no 3 answered trials"),
        ([{"x": 1.0, "reward": 10**400}, {"x": 2.0, "reward": -1e200}] * 3, "no 3 answered trials"),
        ("nothing.csv", "no file"),
    ],
)
def test_what_is_no_earlier_study(like, said):
    with pytest.raises(InvalidInput, match=said):
        nr.auto(SPACE, like=like)


def test_what_earlier_studies_do_not_go_with(earlier):
    with pytest.raises(InvalidInput, match="boxes and spaces"):
        nr.auto(nr.Arms([0.0, 1.0]), like=earlier)
    with pytest.raises(InvalidInput, match="boxes and spaces"):
        nr.auto(nr.Arms([0.0, 1.0]), like=earlier, reward="bernoulli")
    with pytest.raises(InvalidInput, match="under contexts"):
        nr.auto(SPACE, like=earlier, context=nr.Box(0, 1))
    with pytest.raises(InvalidInput, match=r"^\[like\] `storage` 'sqlite:///none\.db': there is no such file"):
        nr.auto(SPACE, like="sqlite:///none.db")
    with pytest.raises(InvalidInput, match="both given"):
        nr.maximize(value, SPACE, trials=3, policy=nr.auto(SPACE), like=earlier)
    under = nr.Study(nr.auto(SPACE, context=nr.Box(0, 1)))
    with pytest.raises(InvalidInput, match="has contexts"):
        nr.auto(SPACE, like=under)


# -- files -------------------------------------------------------------------------------------------------------------

FILE = """
trials = 3
like = ["sqlite:///old.db#first", "table.csv"]
[parameters.x]
type = "float"
low = 0
high = 1
[objective]
command = "echo {x}"
"""


def test_a_tuning_file_names_earlier_studies(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(FILE)
    assert load(path).like == [f"sqlite:///{tmp_path}/old.db#first", f"{tmp_path}/table.csv"]
    path.write_text(FILE + '[policy]\nalgorithm = "auto"\n')
    with pytest.raises(InvalidInput, match="both given"):
        load(path)


@pytest.mark.parametrize("live", [True, False])
def test_a_policy_in_a_file_or_a_request_reads_no_paths(live):
    space = nr.Space(x=nr.Float(0, 1))
    with pytest.raises(InvalidInput, match="`like` cannot be set"):
        read_policy(
            {"algorithm": "auto", "like": ["sqlite:////etc/secrets.db"]}, space, PolicyContext(space, None, live=live)
        )


@pytest.mark.parametrize(("rows", "what"), [
    ([{"x": 1.0, "reward": 2.0}] * 2, "has 2 answered trials"),
    ([{"z": 1.0, "reward": 2.0}] * 4, "are z"),
    ([{"x": 1e9, "reward": 2.0}] * 4, "far outside"),
])  # fmt: skip
def test_an_earlier_study_that_says_nothing_is_told_why(rows, what):
    with pytest.raises(nr.errors.InvalidInput, match=f"no 3 answered trials that say something about x.*{what}"):
        nr.auto(nr.Space(x=nr.Float(0, 3)), like=rows)
