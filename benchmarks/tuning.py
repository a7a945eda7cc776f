"""Tuning without being told anything: policies of this library against Optuna, BoTorch, Ax, SMAC and random search.

    python benchmarks/tuning.py --cache /tmp/tuning --trials 30 60 120 --markdown table.md
    python benchmarks/tuning.py --cache /tmp/tuning --policy mine=my_module:make_policy --methods mine tpe --report
    python benchmarks/tuning.py --cache /tmp/tuning --problems hartmann-6 --seeds 40 --within 0.01
    python benchmarks/tuning.py --cache /tmp/tuning --problems levy-20 ackley-20 --methods ei botorch turbo --trials 200
    python benchmarks/tuning.py --cache /tmp/tuning --workers 4 --methods ei gpsampler
    python benchmarks/tuning.py --cache /tmp/tuning --optimum cliff

14 problems on which policies may be developed and ten held out, half of each known functions and half models of
scikit-learn that are trained at every evaluation, and extra ones that belong to neither half (`tuning_parts/`). A
method gets the parameters and the rewards, in its defaults, and as many trials as all others. It is not told how many,
so that the beginning of a longer run is a shorter run. Runs are kept as JSON lines in the folder of `--cache` and never
repeated, so peers run once; they need their packages only while they run: "tpe" and "gpsampler" (Optuna), "botorch",
"turbo" (BoTorch), "ax" (ax-platform), "smac". HEBO is missing because its last release, 0.3.6, wants NumPy below 1.25
and this library wants 2; Ax takes minutes for a run, so it has no place in the default list, nor have SMAC and TuRBO.
One process, one thread; runs go seed by seed, so that what is there after an interruption is balanced.

With `--workers 4` four evaluations are in flight: whoever gets an answer suggests the next trial at once, while three
are pending. Such runs are kept apart ("ei@4", and "ei@4r" with `--durations random`), and the ratio of their regret to
that of one worker at equal trials is printed.

Printed, for each half and both together: normalised regret (the optimum less the value of the trial that was told the
best reward, divided by the same of the median random search with equal trials), mean rank over the problems, paired
differences of the first method to the others in both, all with bootstrap intervals (over seeds; of ranks over problems
and seeds); problems on which random search is better beyond the interval; wall and CPU seconds that the method itself
took in a run, and CPU seconds of its last asks. Comparisons use the seeds that both have.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from tuning_parts.methods import METHODS, add_method, add_policy
from tuning_parts.problems import DEVELOPMENT, HELD_OUT, PROBLEMS
from tuning_parts.report import Table, present
from tuning_parts.runs import Cache, key, parts, run
from tuning_parts.show import markdown, ratio_text, text, within_text


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", help="folder that keeps the runs, outside the repository; without it none is kept")
    parser.add_argument("--half", choices=["development", "held-out", "both"], default="both")
    parser.add_argument("--problems", nargs="+", help="these alone")
    parser.add_argument("--methods", nargs="+", default=["ei", "random", "tpe", "gpsampler", "botorch"])
    parser.add_argument("--trials", type=int, nargs="+", default=[60], help="runs are as long as the largest")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1, help="evaluations in flight")
    parser.add_argument("--durations", choices=["equal", "random"], default="equal", help="of several workers")
    parser.add_argument("--within", type=float, metavar="GAP", help="say how many runs came so close to the maximum")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables there too")
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME=MODULE:FUNCTION",
        help="space -> policy; told parallel= if it takes that",
    )
    parser.add_argument(
        "--method", action="append", default=[], metavar="NAME=MODULE:FUNCTION", help="(space, seed) -> suggest, tell"
    )
    parser.add_argument("--report", action="store_true", help="run nothing, only say what the cache has")
    parser.add_argument("--quiet", action="store_true", help="no line for each run")
    parser.add_argument(
        "--optimum", choices=sorted(PROBLEMS), help="check a problem's optimum by brute force, and stop"
    )
    options = parser.parse_args()
    if options.workers < 1:
        parser.error(f"--workers is {options.workers}: at least one evaluation is in flight; leave it out for one")
    for given in options.policy:
        add_policy(given)
    for given in options.method:
        add_method(given)
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


def groups(options):
    """Problems by heading."""
    if options.problems:
        return {"chosen": options.problems}
    halves = {"development": DEVELOPMENT, "held-out": HELD_OUT}
    if options.half == "both":
        return {**halves, "together": [*DEVELOPMENT, *HELD_OUT]}
    return {options.half: halves[options.half]}


def play(options, cache, problems, methods, seeds):
    """Run what the cache does not have, seed by seed."""
    trials = max(options.trials)
    for problem, method, seed in ((p, m, seed) for seed in seeds for p in problems for m in methods):
        if cache.has(problem, method, seed, trials):
            continue
        done = run(problem, method, seed, trials)
        cache.add(done)
        if not options.quiet:
            said = f"best {max(done['values']):.5g}, {done['cpu'][-1]:.1f} s CPU"
            print(f"{problem:22} {method:12} seed {seed}: {said}", file=sys.stderr, flush=True)


def main():
    options = parsed()
    if options.optimum:
        brute_force(options.optimum)
        return
    cache, chosen = Cache(options.cache), groups(options)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    many = [key(method, options.workers, options.durations) for method in options.methods]
    if not options.report:
        every = list(chosen.values())[-1]  # the last group has all problems
        play(options, cache, every, dict.fromkeys([*options.methods, *many]), seeds)
    pages = []
    for trials in options.trials:
        tables = {}
        for title, names in chosen.items():
            there = present(cache, names, many, seeds, trials)
            if missing := [name for name in many if name not in there]:
                print(f"\n{title}: no runs of {trials} trials of {', '.join(missing)}")
            if not there:
                continue
            tables[title] = Table(cache, names, there, seeds, trials)
            print(text(tables[title], title, problems=title != "together"), flush=True)
            if options.workers > 1:
                alone = Table(cache, names, [parts(name)[0] for name in there], seeds, trials)
                print(ratio_text(alone, tables[title], title), flush=True)
            if options.within is not None and title != "together":
                print(within_text(cache, names, there, seeds, trials, options.within))
        pages += [markdown(tables)] if tables else []
    if options.markdown:
        Path(options.markdown).write_text("\n".join(pages))


if __name__ == "__main__":
    main()
