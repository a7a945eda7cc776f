"""Tuning without being told anything: policies of this library against Optuna, BoTorch, Ax, SMAC and random search.

    python benchmarks/tuning.py --cache /tmp/tuning --trials 30 60 120 --markdown table.md
    python benchmarks/tuning.py --cache /tmp/tuning --policy mine=my_module:make_policy --methods mine tpe --report
    python benchmarks/tuning.py --cache /tmp/tuning --problems hartmann-6 --seeds 40 --within 0.01
    python benchmarks/tuning.py --cache /tmp/tuning --problems levy-20 ackley-20 --methods ei botorch turbo --trials 200
    python benchmarks/tuning.py --cache /tmp/tuning --suite bbob --trials 30 60 --methods auto tpe cmaes
    python benchmarks/tuning.py --cache /tmp/tuning --suite bbob --half held-out --dimensions 20 40 --trials 200
    python benchmarks/tuning.py --cache /tmp/tuning --workers 4 --methods ei gpsampler
    python benchmarks/tuning.py --cache /tmp/tuning --optimum cliff

14 problems on which policies may be developed and ten held out, half of each known functions and half models of
scikit-learn that are trained at every evaluation, and extra ones that belong to neither half (`tuning_parts/`). Suites
(`--suite`) are apart from these: "bbob" and "mixint", problems of COCO; "noisy", some of them under noise; "models",
those of scikit-learn. They too have a half for development and one that is held out. A method gets the parameters and
the rewards, in its defaults, and as many trials as all others. It is not told how many, so that the beginning of a
longer run is a shorter run. Runs are kept as JSON lines in the folder of `--cache` and never repeated, so peers run
once; they need their packages only while they run: "tpe" and "gpsampler" (Optuna), "cmaes", "botorch", "turbo"
(BoTorch), "ax" (ax-platform), "smac". HEBO is missing because its last release, 0.3.6, wants NumPy below 1.25 and this
library wants 2; Ax takes minutes for a run, so it has no place in the default list, nor have SMAC and TuRBO. One
process, one thread; runs go seed by seed, so that what is there after an interruption is balanced.

With `--workers 4` four evaluations are in flight: whoever gets an answer suggests the next trial at once, while three
are pending. Such runs are kept apart ("ei@4", and "ei@4r" with `--durations random`), and the ratio of their regret to
that of one worker at equal trials is printed.

Printed, for each half and both together: normalised regret (the optimum less the value of the trial that was told the
best reward, divided by the same of the median random search with equal trials), mean rank over the problems, paired
differences of the first method to the others in both, all with bootstrap intervals (over seeds; of ranks over problems
and seeds); problems on which random search is better beyond the interval; wall and CPU seconds that the method itself
took in a run, and CPU seconds of its last asks. Comparisons use the seeds that both have.

Of suites: the mean of log10 of the gap to the optimum, at least 1e-8, under noise of the point that the method
recommends, and of models normalised regret; paired differences of the first method to each other one, and to the best
of the peers; the same for groups of problems. Intervals are over problems, and over the seeds of each.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import sys
import time
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from tuning_parts import transfer
from tuning_parts.methods import METHODS, add_method, add_policy
from tuning_parts.problems import DEVELOPMENT, HELD_OUT, PROBLEMS
from tuning_parts.report import MEASURES, Table, present
from tuning_parts.runs import Cache, key, parts, run
from tuning_parts.show import groups_text, markdown, ratio_text, text, within_text
from tuning_parts.suites import SUITES

HALVES = ("development", "held-out")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", help="folder that keeps the runs, outside the repository; without it none is kept")
    parser.add_argument("--suite", choices=[*SUITES, "transfer"], help="this one in place of the 24 problems")
    parser.add_argument(
        "--half", choices=[*HALVES, "both"], help="both unless told, of a suite the one for development"
    )
    parser.add_argument("--dimensions", type=int, nargs="+", help="of a suite, where it has them")
    parser.add_argument("--problems", nargs="+", help="these alone")
    parser.add_argument("--measure", choices=MEASURES, help="of what is printed, if not that of the suite")
    parser.add_argument("--methods", nargs="+", help="the first one is compared with the others")
    parser.add_argument("--trials", type=int, nargs="+", help="runs are as long as the largest; 60 unless told")
    parser.add_argument("--seeds", type=int)
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
    if options.suite == "transfer":  # Its problems, methods and figures are its own.
        return options
    options = filled(options)
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


def filled(options):
    """The options with what the suite, or the 24 problems, have where nothing was told."""
    suite = SUITES.get(options.suite)
    usual = {"half": "both", "measure": "regret", "methods": ["ei", "random", "tpe", "gpsampler", "botorch"]}
    usual |= {"trials": [60], "seeds": 10}
    if suite is not None:
        usual = vars(suite) | {"half": "development"}
    for name in ("half", "measure", "methods", "trials", "seeds"):
        if getattr(options, name) is None:
            setattr(options, name, usual[name])
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
    halves = dict(zip(HALVES, (DEVELOPMENT, HELD_OUT), strict=True))
    if options.suite:
        halves = {half: SUITES[options.suite].names(half, options.dimensions) for half in HALVES}
    if options.half == "both":
        return {**halves, "together": [*chain(*halves.values())]}
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


def report(options, cache, many, seeds, trials):
    """Print what there is after so many trials; returns it for a page."""
    chosen, tables, parted = groups(options), {}, {}
    made = partial(Table, cache, seeds=seeds, trials=trials, measure=options.measure, redraw=options.suite is not None)
    for title, names in chosen.items():
        there = present(cache, names, many, seeds, trials)
        if missing := [name for name in many if name not in there]:
            print(f"\n{title}: no runs of {trials} trials of {', '.join(missing)}")
        if not there:
            continue
        table = tables[title] = made(names, there)
        print(text(table, title, problems=title != "together" and not options.suite), flush=True)
        if some := SUITES[options.suite].groups(names) if options.suite else {}:
            parted[title] = {group: made(inside, there) for group, inside in some.items()}
            print(groups_text(parted[title]))
        if options.workers > 1:
            alone = made(names, [parts(name)[0] for name in there])
            print(ratio_text(alone, table, title), flush=True)
        if options.within is not None and title != "together":
            print(within_text(cache, names, there, seeds, trials, options.within))
    return [markdown(tables, parted)] if tables else []


def main():
    options = parsed()
    if options.suite == "transfer":
        transfer.present(options)
        return
    if options.optimum:
        brute_force(options.optimum)
        return
    cache = Cache(options.cache)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    many = [key(method, options.workers, options.durations) for method in options.methods]
    if not options.report:
        every = list(groups(options).values())[-1]  # the last group has all problems
        play(options, cache, every, dict.fromkeys([*options.methods, *many]), seeds)
    pages = list(chain(*(report(options, cache, many, seeds, trials) for trials in options.trials)))
    if options.markdown:
        Path(options.markdown).write_text("\n".join(pages))


if __name__ == "__main__":
    main()
