"""Tuning without being told anything: policies of this library against Optuna, BoTorch and random search.

    python benchmarks/tuning.py --cache /tmp/tuning
    python benchmarks/tuning.py --cache /tmp/tuning --methods random tpe gpsampler botorch --trials 60 --seeds 10
    python benchmarks/tuning.py --cache /tmp/tuning --policy mine=my_module:make_policy --methods mine tpe --report
    python benchmarks/tuning.py --cache /tmp/tuning --optimum cliff

14 problems on which policies may be developed and ten held out, half of each known functions and half models of
scikit-learn that are trained at every evaluation (`tuning_parts/`). A method gets the parameters and the rewards, in
its defaults, and as many trials as all others. Runs are kept as JSON lines in the folder of `--cache` and never
repeated, so peers run once; methods "tpe", "gpsampler" (Optuna) and "botorch" need their packages only while they run.
One process, one thread; runs go seed by seed, so that what is there after an interruption is balanced.

Printed: normalised regret (the optimum less the value of the trial that was told the best reward, divided by the same
of the median random search with equal trials), mean rank over the problems, bootstrap intervals, paired differences of
the first method to the others, and the wall and CPU seconds that the method itself took in a run.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys
import time

import numpy as np
from tuning_parts.methods import METHODS, add_method, add_policy
from tuning_parts.problems import DEVELOPMENT, HELD_OUT, PROBLEMS
from tuning_parts.report import Table, show
from tuning_parts.runs import Cache, run


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", help="folder that keeps the runs, outside the repository; without it none is kept")
    parser.add_argument("--half", choices=["development", "held-out", "both"], default="both")
    parser.add_argument("--problems", nargs="+", choices=sorted(PROBLEMS), help="these alone")
    parser.add_argument("--methods", nargs="+", default=["ei", "random", "tpe", "gpsampler", "botorch"])
    parser.add_argument("--trials", type=int, nargs="+", default=[60], help="runs are as long as the largest")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--policy", action="append", default=[], metavar="NAME=MODULE:FUNCTION", help="space -> policy")
    parser.add_argument(
        "--method", action="append", default=[], metavar="NAME=MODULE:FUNCTION", help="(space, seed) -> suggest, tell"
    )
    parser.add_argument("--report", action="store_true", help="run nothing, only say what the cache has")
    parser.add_argument("--quiet", action="store_true", help="no line for each run")
    parser.add_argument(
        "--optimum", choices=sorted(PROBLEMS), help="check a problem's optimum by brute force, and stop"
    )
    options = parser.parse_args()
    for text in options.policy:
        add_policy(text)
    for text in options.method:
        add_method(text)
    unknown = set(options.methods) - set(METHODS)
    if unknown:
        parser.error(f"unknown methods: {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    return options


def brute_force(name):
    """The best of many random points and of small steps from the best of them."""
    problem, rng = PROBLEMS[name], np.random.default_rng(0)
    lower, upper = problem.space.lower, problem.space.upper
    until = time.monotonic() + 60
    best, at, radius = -np.inf, None, 0.5
    count = 0
    while time.monotonic() < until:
        count += 1
        point = rng.uniform(lower, upper)
        if at is not None and count % 4:
            moved = rng.uniform(size=len(point)) < 0.4
            radius = 10.0 ** rng.uniform(-5, -0.3)
            point = np.where(moved, np.clip(at + radius * rng.standard_normal(len(point)), lower, upper), at)
        point = problem.space.snap(point[None])[0]
        value = problem.value(problem.space.decode(point))
        if value > best:
            best, at = value, point
    print(f"{name}: {best:.8g} after {count} evaluations at {problem.space.decode(at)}; known {problem.best:.8g}")


def main():
    options = parsed()
    if options.optimum:
        brute_force(options.optimum)
        return
    cache = Cache(options.cache)
    halves = {"development": DEVELOPMENT, "held-out": HELD_OUT}
    chosen = {half: names for half, names in halves.items() if options.half in (half, "both")}
    if options.problems:
        chosen = {"chosen": options.problems}
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    todo = [(p, m, seed) for seed in seeds for names in chosen.values() for p in names for m in options.methods]
    for problem, method, seed in () if options.report else todo:
        if cache.has(problem, method, seed, max(options.trials)):
            continue
        done = run(problem, method, seed, max(options.trials))
        cache.add(done)
        if not options.quiet:
            best, cpu = max(done["values"]), done["cpu"][-1]
            print(
                f"{problem:22} {method:12} seed {seed}: best {best:.5g}, {cpu:.1f} s CPU", file=sys.stderr, flush=True
            )
    for trials in options.trials:
        for half, names in chosen.items():
            show(Table(cache, names, options.methods, list(seeds), trials), half)


if __name__ == "__main__":
    main()
