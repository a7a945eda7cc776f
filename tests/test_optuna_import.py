"""Studies of Optuna taken over."""

import math

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import nilregret as nr
from nilregret.integrations.optuna import import_study
from nilregret.integrations.optuna_import import space_of

optuna.logging.set_verbosity(optuna.logging.WARNING)
BETWEEN = FloatDistribution(0, 1)


def made(params, distributions=None, value=1.0, **more):
    return optuna.create_trial(
        params=params, distributions=distributions or dict.fromkeys(params, BETWEEN), value=value, **more
    )


def holding(*trials, **more):
    study = optuna.create_study(study_name="theirs", **more)
    study.add_trials(trials)
    return study


def test_trials_come_over_with_values_constraints_and_direction(tmp_path):
    def objective(trial):
        x, n = trial.suggest_float("x", 0, 1), trial.suggest_int("n", 1, 9, log=True)
        kind = trial.suggest_categorical("kind", ["a", "b"])
        trial.set_constraint("small", x - 0.5)
        trial.set_user_attr("accuracy", 0.5 * x)
        for name, fact in (("ok", True), ("model", "a.pkl"), ("sizes", [1, 2]), ("odd", float("nan")), ("std", 0.5)):
            trial.set_user_attr(name, fact)
        if trial.number == 3:
            raise RuntimeError("it broke")
        if trial.number == 4:
            trial.report(7.0, 1)
            raise optuna.TrialPruned
        return x + n + (kind == "a")

    place = optuna.storages.RDBStorage(f"sqlite:///{tmp_path}/optuna.db")
    theirs = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=1), study_name="theirs", direction="maximize", storage=place
    )
    theirs.optimize(objective, n_trials=12, catch=RuntimeError)
    theirs.ask()  # running: nothing is known of it
    loaded = optuna.load_study(study_name="theirs", storage=place)
    with pytest.warns(nr.errors.NoRegretWarning, match="1 pruned trial came without constraint values"):
        mine = import_study(loaded, seed=3, storage=f"sqlite:///{tmp_path}/mine.db")
    assert (mine.name, mine.goal, mine.seed, len(mine.trials)) == ("theirs", "maximize", 3, 11)
    assert mine.policy.domain == nr.Space(kind=nr.Choice("a", "b"), n=nr.Int(1, 9, log=True), x=nr.Float(0, 1))
    whole = [trial for trial in theirs.trials if trial.state in (TrialState.COMPLETE, TrialState.PRUNED)]
    for own, other in zip(mine.trials, whole, strict=True):
        assert own.parameters == pytest.approx(other.params)
        if other.state == TrialState.PRUNED:
            assert (own.state, own.steps) == ("stopped", list(other.intermediate_values.items()))
            continue
        assert own.reward == other.value
        assert own.constraints.tolist() == [other.constraints["small"]]
        assert own.metrics == {
            "accuracy": other.user_attrs["accuracy"],
            "ok": 1.0,
            "std": 0.5,
        }  # Optuna knows no `std`.
    assert mine.trials[3].steps[-1][1] == 7.0
    again = nr.Study.open(storage=f"sqlite:///{tmp_path}/mine.db", name="theirs")
    assert again.ask().parameters == mine.trials[-1].parameters
    with pytest.raises(nr.errors.InvalidInput, match="already, with 12 trials"):
        import_study(loaded, policy=mine.policy, seed=3, storage=f"sqlite:///{tmp_path}/mine.db")
    place.remove_session()
    place.engine.dispose()


def test_conditions_are_found():
    kinds, sizes = CategoricalDistribution(["a", "b", "c"]), IntDistribution(1, 3)
    trials = [
        made({"kind": "a", "x": 0.5}, {"kind": kinds, "x": BETWEEN}),
        made({"kind": "b", "y": 0.5, "n": 1}, {"kind": kinds, "y": BETWEEN, "n": sizes}),
        made({"kind": "b", "y": 0.5, "n": 3, "z": 0.1}, {"kind": kinds, "y": BETWEEN, "n": sizes, "z": BETWEEN}),
        made({"kind": "c", "x": 0.5}, {"kind": kinds, "x": BETWEEN}),
    ]
    unit = nr.Float(0, 1)
    assert space_of(trials) == nr.Space(
        kind=nr.Choice("a", "b", "c"),
        n=nr.when("kind", "b", nr.Int(1, 3)),
        x=nr.when("kind", ["a", "c"], unit),
        y=nr.when("kind", "b", unit),
        z=nr.when("n", 3, unit),
    )
    assert len(import_study(holding(*trials)).trials) == 4


def test_ranges_are_as_wide_as_they_ever_were():
    trials = [
        made({"x": 0.5, "s": 0.5, "one": 2.0}, {"x": BETWEEN, "s": FloatDistribution(0, 1, step=0.5),
             "one": FloatDistribution(2, 2)}),
        made({"x": 5.0, "s": 1.5, "one": 2.0}, {"x": FloatDistribution(4, 6), "s": FloatDistribution(0, 2, step=0.25),
             "one": FloatDistribution(2, 2)}),
    ]  # fmt: skip
    assert space_of(trials) == nr.Space(one=nr.Float(2, 2), s=nr.Float(0, 2), x=nr.Float(0, 6))
    odd = [made({"n": low}, {"n": IntDistribution(low, low + 4, step=2)}) for low in (0, 1)]
    with pytest.raises(nr.errors.InvalidInput, match="no grid in common"):
        space_of(odd)


def test_what_no_condition_explains_needs_a_space():
    trials = [made({"x": 0.5}), made({"x": 0.5, "y": 0.5}), made({"x": 0.7, "y": 0.5}, value=math.inf)]
    with pytest.raises(nr.errors.InvalidInput, match="parameters `y` and others do not"):
        import_study(holding(*trials))
    mine = import_study(holding(*trials), space=nr.Space(x=nr.Float(0, 1)))
    assert [trial.reward for trial in mine.trials] == [1.0, 1.0]  # an infinite value says nothing


def test_trials_outside_a_given_space_are_left_out_with_a_warning():
    with pytest.warns(nr.errors.NoRegretWarning, match=r"1 of 2 trials left out, which did not fit the space: \[1\]"):
        mine = import_study(holding(made({"x": 0.1}), made({"x": 0.9})), space=nr.Space(x=nr.Float(0, 0.5)))
    assert len(mine.trials) == 1


def test_a_policy_of_ones_own():
    policy = nr.gp_bucb(nr.Space(x=nr.Float(0, 1)), nr.SquaredExponential(0.2), noise=0.1, beta=2.0)
    mine = import_study(holding(made({"x": 0.1}, constraints={"c": 1.0})), policy=policy, name="mine")
    assert (mine.policy, mine.name) == (policy, "mine")
    assert mine.trials[0].constraints is None


BOTH = {"directions": ["minimize", "maximize"]}


def both(x, std=None, **more):
    """A trial of two objectives."""
    attributes = {} if std is None else {"nilregret:std": std}
    return optuna.create_trial(
        params={"x": x}, distributions={"x": FloatDistribution(0, 1)}, values=[x, 10.0 - x], user_attrs=attributes,
        **more,
    )  # fmt: skip


def test_several_directions_become_objectives():
    theirs = holding(both(0.1, constraints={"c": -1.0}), both(0.7, [0.1, None], constraints={"c": 1.0}), **BOTH)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        theirs.set_metric_names(["loss", "recall"])
    mine = import_study(theirs)
    assert mine.policy.objective_names == ("loss", "recall")
    assert mine.goals == ("minimize", "maximize")
    assert [trial.values for trial in mine.trials] == [(0.1, 9.9), (0.7, 9.3)]
    assert [trial.stds for trial in mine.trials] == [None, (0.1, None)]
    assert [trial.number for trial in mine.front()] == [0]
    assert import_study(holding(both(0.1), **BOTH)).policy.objective_names == ("objective 1", "objective 2")
    theirs = holding(both(0.1, constraints={"c": -1.0}), both(0.7), **BOTH)
    with pytest.warns(nr.errors.NoRegretWarning, match=r"space or lack constraint values: \[1\]"):
        assert len(import_study(theirs).trials) == 1


@pytest.mark.parametrize(
    ("study", "more", "sentence"),
    [
        (lambda: "theirs", {}, "must be a study of Optuna"),
        (lambda: holding(both(0.1), **BOTH), {"policy": nr.auto(nr.Space(x=nr.Float(0, 1)))}, "policy has 1"),
        (lambda: holding(both(0.1, std=0.1), **BOTH), {}, "it must be a list of 2 numbers. It is of trial 0"),
        (lambda: holding(), {}, "no trial with a finite value"),
        (lambda: holding(made({"x": 0.1})), {"policy": nr.auto(nr.Box([0], [1]))}, "must be a policy of an nr.Space"),
    ],
)
def test_refusals(study, more, sentence):
    with pytest.raises(nr.errors.InvalidInput, match=sentence):
        import_study(study(), **more)
