"""An objective for Optuna, and a process that goes on with a study: `python tests/optuna_worker.py STORAGE TRIALS`."""

import math
import sys

import optuna

from nilregret.integrations.optuna import NoRegretSampler

SEED = 5


def loss(parameters):
    bump = (parameters["x"] - 0.5) ** 2 + 0.1 * (math.log10(parameters["rate"]) + 2) ** 2
    return bump + (parameters["kind"] == "b")


def objective(trial):
    parameters = {
        "x": trial.suggest_float("x", -2, 2),
        "rate": trial.suggest_float("rate", 1e-4, 1, log=True),
        "kind": trial.suggest_categorical("kind", ["a", "b"]),
    }
    return loss(parameters)


if __name__ == "__main__":
    study = optuna.load_study(study_name="s", storage=sys.argv[1], sampler=NoRegretSampler(seed=SEED))
    study.optimize(objective, n_trials=int(sys.argv[2]))
