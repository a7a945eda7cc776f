"""Tuning under limits: `nr.auto(space, constraints=m)` against BoTorch's constrained qLogNEI and Optuna's GPSampler.

    python benchmarks/limits.py --cache /tmp/limits --seeds 10 --first-seed 1000
    python benchmarks/limits.py --cache /tmp/limits --half development --methods auto random --seeds 5
    python benchmarks/limits.py --cache /tmp/limits --policy mine=my_module:make_policy --methods mine auto --report

Six problems, 50 trials each, and five others on which things may be tried (`limits_parts/problems.py`); figures are of
seeds from 1000 on, smaller ones are for development. Values and limits have no noise; a method is told both and how
many limits there are. Runs are kept as JSON lines in the folder of `--cache` and never repeated; peers need their
packages only while they run. Runs go seed by seed, so that what is there after an interruption is balanced.

Printed: the normalised regret of the best feasible value (0 the optimum, 1 the median uniform feasible point, 2 where
none was found, and at most), by trial; the mean rank over the problems; paired differences of the first method to the
others in both, of the seeds that both have, with 95% bootstrap intervals over seeds (ranks: problems and seeds); runs
without a feasible trial; and how often what a method itself calls its best was infeasible although a feasible trial had
been told, or was none.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys

from limits_parts.methods import METHODS
from limits_parts.problems import DEVELOPMENT, MEASURED, PROBLEMS
from limits_parts.report import best_feasible, text
from limits_parts.runs import of_policy, run
from tuning_parts.runs import Cache


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", help="folder that keeps the runs, outside the repository; without it none is kept")
    parser.add_argument("--half", choices=["measured", "development"], default="measured")
    parser.add_argument("--problems", nargs="+", choices=sorted(PROBLEMS), help="these alone")
    parser.add_argument("--methods", nargs="+", default=["auto", "random", "gpsampler", "botorch"])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--policy", action="append", default=[], metavar="NAME=MODULE:FUNCTION")
    parser.add_argument("--report", action="store_true", help="run nothing, only say what the cache has")
    parser.add_argument("--quiet", action="store_true", help="no line for each run")
    options = parser.parse_args()
    for given in options.policy:
        name, _, dotted = given.partition("=")
        METHODS[name] = of_policy(dotted)
    unknown = set(options.methods) - set(METHODS)
    if unknown:
        parser.error(f"unknown methods: {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")
    return options


def main():
    options = parsed()
    half = MEASURED if options.half == "measured" else DEVELOPMENT
    problems = [PROBLEMS[name] for name in options.problems] if options.problems else half
    cache, seeds = Cache(options.cache, "limits.jsonl"), range(options.first_seed, options.first_seed + options.seeds)
    for seed in [] if options.report else seeds:
        for problem in problems:
            for method in options.methods:
                if cache.has(problem.name, method, seed, options.trials):
                    continue
                done = run(problem, method, seed, options.trials)
                cache.add(done)
                if not options.quiet:
                    said = f"{best_feasible(done, options.trials):.5g}, {done['cpu']:.1f} s CPU"
                    print(f"{problem.name:18} {method:12} seed {seed}: {said}", file=sys.stderr, flush=True)
    print(text(cache, problems, options.methods, seeds, options.trials))


if __name__ == "__main__":
    main()
