"""Tuning under limits, which are learned (against BoTorch's constrained qLogNEI and Optuna's GPSampler) or known.

    python benchmarks/limits.py [--cache FOLDER] --half learned|known [--problems NAME ...]
        --methods auto random gpsampler botorch ... --trials 50 --seeds 10 --first-seed 1000
        [--policy NAME=MODULE:FUNCTION ...] [--report] [--quiet]
    python benchmarks/limits.py --cache /tmp/limits --policy mine=my_module:make_policy --methods mine auto --report
    python benchmarks/limits.py --cache /tmp/limits --half known --trials 40 --seeds 5
        --methods auto random gpsampler tpe nevergrad baybe ax

Six problems have limits that are learned, 50 trials each (`limits_parts/problems.py`). Nothing has noise; a
method is told both and how many limits there are. Figures are of seeds from 1000 on, smaller ones are for development.
Runs are kept as JSON lines in the folder of `--cache` and never repeated; peers need their packages only while they
run. Runs go seed by seed, so that what is there after an interruption is balanced. `--report` runs nothing. `--policy`
adds a method: what a function, called with a space and `constraints=m`, gives.

Twelve problems have known limits, 40 trials each (`limits_parts/known.py`), which peers take as far as each can be told
(`known_methods.py`). Of these the logarithms of regrets are printed, and trials that are outside by more than 1e-9.

Printed: the normalised regret of the best feasible value (0 the optimum, 1 the median uniform feasible point, 2 where
none was found, and at most), by trial; the mean rank over the problems; paired differences of the first method to the
others in both, of the seeds that both have, with 95% bootstrap intervals over seeds (ranks: problems and seeds); runs
without a feasible trial; and how often what a method itself calls its best was infeasible although a feasible trial had
been told, or was none.
"""

import sys
from functools import partial

import bench
from limits_parts import known_methods
from limits_parts.known import KNOWN
from limits_parts.methods import METHODS, Policy, run
from limits_parts.problems import LEARNED
from limits_parts.report import best_feasible, text
from tuning_parts.methods import named
from tuning_parts.runs import Cache

HALVES = {"learned": (LEARNED, METHODS), "known": (KNOWN, known_methods.METHODS)}


@bench.command(__doc__)
def main(options):
    half, methods = HALVES[options.half]
    for given in options.policy or ():
        name, _, dotted = given.partition("=")
        methods[name] = partial(Policy, make=named(dotted))
    if unknown := set(options.methods) - set(methods):
        sys.exit(f"unknown methods: {', '.join(sorted(unknown))}; there are {', '.join(methods)}")
    problems = [p for p in half if not options.problems or p.name in options.problems]
    cache, seeds = (
        Cache(options.cache, "known.jsonl" if half is KNOWN else "limits.jsonl"),
        range(options.first_seed, options.first_seed + options.seeds),
    )
    for seed, problem, method in ((s, p, m) for s in seeds for p in problems for m in options.methods):
        takes = getattr(methods[method], "takes", None)
        if options.report or cache.has(problem.name, method, seed, options.trials) or (takes and not takes(problem)):
            continue
        done = run(problem, methods[method], seed, options.trials, method)
        cache.add(done)
        if not options.quiet:
            said = f"{best_feasible(done, options.trials):.5g}, {done['cpu']:.1f} s CPU"
            print(f"{problem.name:18} {method:12} seed {seed}: {said}", file=sys.stderr, flush=True)
    print(text(cache, problems, options.methods, seeds, options.trials))
