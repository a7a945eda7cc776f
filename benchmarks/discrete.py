"""Spaces of whole numbers and choices: how good `auto` gets in few trials, and what choices of many options cost.

    python benchmarks/discrete.py              # both, some minutes
    python benchmarks/discrete.py --seeds 0    # the cost alone
    python benchmarks/discrete.py --seeds 20 --kinds log "log and real"

Each seed of a kind is another function, whose best point is drawn, the ends of the ranges among others. Printed is the
mean gap of the best point asked to the best there is, in units of the median point, after half of the trials and after
all, with its standard error over the seeds, and how many questions were asked at a point that had been asked before.
"batches" asks for eight points at a time with `parallel=1`. Under noise the gap is that of the point which the study
recommends. The cost is the CPU time of five decisions after twenty, over that with a choice of five options.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from tabulate import tabulate

import nilregret as nr
from nilregret.domains.search.designs import sobol

OPTIONS = (5, 50, 200, 500)
KINDS = {  # space, trials, noise, points at a time
    "grid": (nr.Space(a=nr.Int(0, 9), b=nr.Int(0, 9)), 24, 0.0, 1),
    "rough grid": (nr.Space(a=nr.Int(0, 9), b=nr.Int(0, 9), c=nr.Int(0, 9), kind=nr.Choice("u", "v")), 40, 0.0, 1),
    "log": (nr.Space(a=nr.Int(1, 4, log=True), b=nr.Int(1, 64, log=True), c=nr.Int(1, 1000, log=True)), 24, 0.0, 1),
    "log and real": (nr.Space(a=nr.Int(1, 8, log=True), x=nr.Float(0, 1), kind=nr.Choice("u", "v", "w")), 24, 0.0, 1),
    "noisy grid": (nr.Space(a=nr.Int(0, 9), kind=nr.Choice("u", "v", "w")), 60, 0.3, 1),
    "options": (nr.Space(kind=nr.Choice(*range(100)), x=nr.Float(0, 1), y=nr.Float(0, 1)), 60, 0.0, 1),
    "batches, small": (nr.Space(a=nr.Int(0, 9), b=nr.Int(0, 9), kind=nr.Choice("u", "v", "w")), 32, 0.0, 8),
    "batches, real": (nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1), a=nr.Int(1, 8)), 32, 0.0, 8),
}


def function_of(space, seed, *, rough):
    """Returns a function of parameters whose minimum of 0 is at a point that is drawn, in units of its median."""
    rng = np.random.default_rng([seed, 77])
    best, weights = {}, {name: rng.uniform(0.3, 2.0) for name in space.parameters}
    for name, parameter in space.parameters.items():
        if isinstance(parameter, nr.Choice):
            best[name] = rng.permutation(len(parameter.options)).tolist()
        else:
            values = parameter.values(1000)
            best[name] = values[0 if rng.random() < 0.2 else int(rng.integers(len(values)))]

    def loss(parameters):
        total = 0.0
        for name, parameter in space.parameters.items():
            if isinstance(parameter, nr.Choice):
                total += 0.2 * weights[name] * best[name][parameter.options.index(parameters[name])]
            else:
                gap = parameter.position(parameters[name]) - parameter.position(best[name])
                total += weights[name] * (gap**2 + (0.1 * (1.0 - np.cos(6.0 * np.pi * gap)) if rough else 0.0))
        return total

    unit = float(np.median([loss(space.decode(point)) for point in sobol(space, 256, rng)]))
    return lambda parameters: loss(parameters) / unit


def run(kind, seed):
    """Returns the gaps after half of the trials and after all, and the number of repeated questions."""
    space, trials, noise, count = KINDS[kind]
    loss, rng = function_of(space, seed, rough="rough" in kind), np.random.default_rng([seed, 78])
    study, gaps, asked = nr.Study(nr.auto(space), goal="minimize", seed=seed), [], []
    while len(asked) < trials:
        for trial in study.ask(count=count):
            asked.append(tuple(trial.point))
            study.tell(trial, loss(trial.parameters) + noise * rng.standard_normal())
        if len(asked) in (trials // 2, trials):
            shown = [study.best()] if noise else study.trials
            gaps.append(min(loss(trial.parameters) for trial in shown))
    return *gaps, len(asked) - len(set(asked))


def cost(options):
    """Returns CPU seconds of five decisions after twenty."""
    values = np.random.default_rng(0).normal(size=options)
    space = nr.Space(kind=nr.Choice(*[f"o{i}" for i in range(options)]), x=nr.Float(0, 1))
    study = nr.Study(nr.auto(space), goal="maximize", seed=0)
    for number in range(25):
        if number == 20:
            start = time.process_time()
        trial = study.ask()
        study.tell(trial, values[int(trial.parameters["kind"][1:])] - trial.parameters["x"])
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20, help="functions of each kind; 0 for the cost alone")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument(
        "--repeats", type=int, default=3, help="times that each cost is taken, of which the least counts"
    )
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    table = []
    for kind in arguments.kinds if arguments.seeds else ():
        found = np.array([run(kind, seed) for seed in range(arguments.seeds)])
        mean, error = found.mean(axis=0), found.std(axis=0) / np.sqrt(max(len(found) - 1, 1))
        table.append(
            [kind, *(f"{m:.4f} +- {e:.4f}" for m, e in zip(mean[:2], error[:2], strict=True)), f"{mean[2]:.2f}"]
        )
    if table:
        print(tabulate(table, headers=["kind", "gap at half", "gap at the end", "repeats"]), end="\n\n", flush=True)
    if arguments.repeats:
        cost(OPTIONS[0])
        costs = np.min([[cost(options) for options in OPTIONS] for _ in range(arguments.repeats)], axis=0)
        rows = [[options, 1e3 * each / 5, each / costs[0]] for options, each in zip(OPTIONS, costs, strict=True)]
        print(tabulate(rows, headers=["options", "ms of a decision", "ratio"], floatfmt=("", ".1f", ".1f")))


if __name__ == "__main__":
    main()
