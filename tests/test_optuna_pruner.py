"""Optuna's pruning: `NoRegretPruner`, the sampler on pruned trials, and the import of curves."""

import math
import pickle

import numpy as np
import optuna
import pytest

import nilregret as nr
from nilregret.integrations.optuna import NoRegretPruner, NoRegretSampler, import_study

optuna.logging.set_verbosity(optuna.logging.ERROR)


def training(trial):
    rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
    for epoch in range(1, 10):
        loss = (1 - rate) ** (2 * epoch) + rate / 20
        trial.report(loss, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return loss


def played(pruner, sampler=None, *, trials=25, objective=training, **more):
    study = optuna.create_study(sampler=sampler or optuna.samplers.RandomSampler(seed=0), pruner=pruner, **more)
    study.optimize(objective, n_trials=trials)
    return study


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (nr.slots.Median(), optuna.pruners.MedianPruner(n_startup_trials=5)),
        (
            nr.slots.Halving(steps=9, factor=3, first=1 / 9, trials=None),
            optuna.pruners.SuccessiveHalvingPruner(min_resource=1, reduction_factor=3),
        ),
    ],
)
def test_the_rules_that_optuna_has_prune_as_there(ours, theirs):
    ends = [[len(t.intermediate_values) for t in played(pruner).trials] for pruner in (NoRegretPruner(ours), theirs)]
    assert ends[0] == ends[1]
    assert min(ends[0]) < 9


@pytest.mark.parametrize("rule", ["median", "halving", "predicted", nr.slots.Halving(steps=9, pause=True)])
def test_our_sampler_and_pruner_go_together_and_repeat(rule):
    runs = [played(NoRegretPruner(rule), NoRegretSampler(seed=1)) for _ in range(2)]
    assert [t.params for t in runs[0].trials] == [t.params for t in runs[1].trials]
    assert {t.state.name for t in runs[0].trials} <= {"COMPLETE", "PRUNED"}
    assert runs[0].best_value < 0.2
    assert repr(pickle.loads(pickle.dumps(NoRegretPruner(rule)))) == repr(NoRegretPruner(rule))


def test_a_report_that_is_no_number_prunes_nothing():
    def objective(trial):
        rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
        for epoch in range(4):
            trial.report(math.nan if epoch == 2 else rate * (4 - epoch), epoch)
            if trial.should_prune():
                assert epoch != 2
                raise optuna.TrialPruned
        return rate

    study = played(NoRegretPruner("median"), objective=objective)
    assert any(trial.state.name == "PRUNED" for trial in study.trials)


def test_imported_trials_keep_their_curves():
    study = played(optuna.pruners.MedianPruner(n_startup_trials=3), trials=12)
    made = import_study(study)
    assert len(made.trials) == 12
    ended = sorted(study.trials, key=lambda trial: (trial.datetime_complete, trial.number))
    for theirs, trial in zip(ended, made.trials, strict=True):
        assert trial.steps == list(theirs.intermediate_values.items())
        assert trial.state == ("stopped" if theirs.state.name == "PRUNED" else "observed")
    assert "stopped" in {trial.state for trial in made.trials}
    assert made.best().state == "observed"
    assert np.isfinite(made.ask().point).all()


@pytest.mark.parametrize("rule", ["medain", 5, None])
def test_a_rule_that_is_none_is_refused(rule):
    with pytest.raises(nr.NoRegretError, match=r"rule|pruning"):
        NoRegretPruner(rule)
