"""What an ask costs with Optuna's samplers on a long study: `NoRegretSampler` against `GPSampler`, in one run.

    python benchmarks/optuna_sampler.py --trials 1000 --asks 20

A study of five floats has 1,000 completed random trials. Then each sampler in turn asks and is told, and printed are
the CPU seconds of an ask (median, mean and the longest, the first one apart: it reads the record), and the ratio.
GPSampler needs torch and is left out without it. Afterwards a study is resumed half-way by a new sampler of the same
seed: how many of 24 trials are those of the uninterrupted run.
"""

import importlib.util
import time
import warnings

import bench
import numpy as np
import optuna

from nilregret.integrations.optuna import NoRegretSampler

NAMES = [f"x{i}" for i in range(5)]
SPACE = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in NAMES}
NOISE = 0.1


def loss(parameters, rng):
    values = np.array([parameters[name] for name in NAMES])
    return float(((values - 0.3) ** 2).sum() + np.sin(7.0 * values[0]) + NOISE * rng.standard_normal())


def study_of(sampler, trials):
    rng, study = np.random.default_rng(0), optuna.create_study(sampler=sampler)
    found = []
    for _ in range(trials):
        parameters = {name: float(value) for name, value in zip(NAMES, rng.random(len(NAMES)), strict=True)}
        found.append(optuna.create_trial(params=parameters, distributions=SPACE, value=loss(parameters, rng)))
    study.add_trials(found)
    return study


def seconds(studies, asks):
    """CPU seconds of each ask, by sampler, in turns; the first of each apart."""
    rng, spent = np.random.default_rng(1), {name: [] for name in studies}
    for _ in range(asks + 1):
        for name, study in studies.items():
            start = time.process_time()
            trial = study.ask(SPACE)
            spent[name].append(time.process_time() - start)
            study.tell(trial, loss(trial.params, rng))
    return {name: (each[0], np.array(each[1:])) for name, each in spent.items()}


def objective(trial):
    values = [trial.suggest_float(name, 0.0, 1.0) for name in NAMES]
    return sum((value - 0.3) ** 2 for value in values)


def repeated(make, trials=24):
    """How many trials of a run that was resumed half-way are those of the uninterrupted one."""
    whole, halves = optuna.create_study(sampler=make()), optuna.create_study(sampler=make())
    whole.optimize(objective, n_trials=trials)
    halves.optimize(objective, n_trials=trials // 2)
    halves.sampler = make()
    halves.optimize(objective, n_trials=trials - trials // 2)
    return sum(one.params == other.params for one, other in zip(whole.trials, halves.trials, strict=True))


@bench.command(__doc__)
def main(given):
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    makers = {"NoRegretSampler": lambda: NoRegretSampler(seed=0)}
    if importlib.util.find_spec("torch") is not None:
        makers["GPSampler"] = lambda: optuna.samplers.GPSampler(seed=0)
    found = seconds({name: study_of(make(), given.trials) for name, make in makers.items()}, given.asks)
    print(f"CPU seconds of an ask after {given.trials} trials")
    for name, (first, rest) in found.items():
        print(
            f"  {name:16} median {np.median(rest):7.4f}  mean {rest.mean():7.4f}  longest {rest.max():7.4f}"
            f"  the first {first:7.2f}"
        )
    if "GPSampler" in found:
        ratio = found["GPSampler"][1].mean() / found["NoRegretSampler"][1].mean()
        print(f"  GPSampler over NoRegretSampler: {ratio:.1f}")
    for name, make in makers.items():
        print(f"{name}: {repeated(make)} of 24 trials as without the interruption")
