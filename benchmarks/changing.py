"""Policies in a world that changes: what a whole run costs, and that no round costs more for coming late.

    python benchmarks/changing.py

1,000 arms on [0, 5], Matern-5/2 of lengthscale 1, noise 0.05, one BLAS thread.

1. A run of GP-UCB-CPD with three stationary periods, world and checks included, as in figure 1 of Avanesov's paper;
   and of its comparators.
2. Microseconds a round (ask and tell) at the start and at the end of a long run of GP-UCB with each memory, and their
   ratio. Discount is TV-GP-UCB, RestartEvery R-GP-UCB, SlidingWindow SW-GP-UCB.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time

import numpy as np

import nilregret as nr

NOISE = 0.05
KERNEL = nr.Matern(2.5, 1.0)
ARMS = nr.Arms.grid(0, 5, 1000)


def whole_runs(rounds, repeats):
    changes = nr.environments.even_changes(rounds, 3)
    functions = [nr.environments.gp_sample(KERNEL, ARMS, seed=[0, period]) for period in range(3)]
    env = nr.Environment(functions, domain=ARMS, noise=NOISE, change_points=changes)
    policies = {
        "GP-UCB-CPD": {},
        "oracle": {"detector": "oracle", "change_points": changes},
        "no detector": {"detector": "never"},
        "GP-UCB": {"detector": "never", "exploration": 0.0},
    }
    print(f"1. T = {rounds}, {len(ARMS)} arms, changes at {', '.join(map(str, changes))}: best of {repeats}")
    for name, choices in policies.items():
        policy = nr.gp_ucb_cpd(ARMS, KERNEL, noise=NOISE, horizon=rounds, **choices)
        seconds = []
        for _ in range(repeats):
            start = time.perf_counter()
            run = nr.simulate(policy, env, rounds, seed=0)
            seconds.append(time.perf_counter() - start)
        print(
            f"   {name:12s} {min(seconds):.2f} s; regret {run.regret.sum():.0f}, uniform rounds {run.explored.sum()}, "
            f"restarts {list(run.restarts)}"
        )


def late_rounds(rounds):
    f = nr.environments.gp_sample(KERNEL, ARMS, seed=0)
    memories = {
        "everything": None,
        "Discount": nr.slots.Discount(0.001),
        "SlidingWindow": nr.slots.SlidingWindow(max(rounds // 20, 2)),
        "RestartEvery": nr.slots.RestartEvery(max(rounds // 20, 2)),
    }
    part = max(rounds // 10, 1)
    print(f"2. {rounds} rounds: microseconds a round in the second tenth and in the last, medians")
    for name, memory in memories.items():
        study = nr.Study(nr.gp_ucb(ARMS, KERNEL, noise=NOISE, scale=0.2, memory=memory), seed=0)
        rng, took = np.random.default_rng(0), np.zeros(rounds)
        for t in range(rounds):
            start = time.perf_counter()
            trial = study.ask()
            study.tell(trial, float(f.values[trial.arm] + NOISE * rng.standard_normal()))
            took[t] = time.perf_counter() - start
        early, late = (float(np.median(each)) * 1e6 for each in (took[part : 2 * part], took[-part:]))
        print(f"   {name:14s} {early:4.0f} -> {late:4.0f}, ratio {late / early:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2400, help="rounds of the whole runs (default 2,400)")
    parser.add_argument("--long", type=int, default=20_000, help="rounds of the long runs (default 20,000)")
    parser.add_argument("--repeats", type=int, default=3, help="how often each whole run is timed (default 3)")
    options = parser.parse_args()
    whole_runs(options.rounds, options.repeats)
    late_rounds(options.long)
