"""Tuning without being told anything: policies of this library against Optuna, CMA-ES, BoTorch and random search.

    python benchmarks/tuning.py [--cache FOLDER] [--suite bbob|mixint|models|noisy|transfer]
        [--half development|held-out|both] [--dimensions N ...] [--problems NAME ...] [--measure regret|gap]
        [--methods NAME ...] [--trials N ...] [--seeds N] --first-seed 0 --workers 1 [--within X] [--markdown FILE]
        [--policy NAME=MODULE:FUNCTION ...] [--report] [--quiet]
    python benchmarks/tuning.py --cache /tmp/tuning --trials 30 60 120 --markdown table.md
    python benchmarks/tuning.py --cache /tmp/tuning --policy mine=my_module:make_policy --methods mine tpe --report
    python benchmarks/tuning.py --cache /tmp/tuning --problems hartmann-6 --seeds 40 --within 0.01
    python benchmarks/tuning.py --cache /tmp/tuning --suite bbob --trials 30 60 --methods auto tpe cmaes
    python benchmarks/tuning.py --cache /tmp/tuning --suite bbob --half held-out --dimensions 20 40 --trials 200
    python benchmarks/tuning.py --cache /tmp/tuning --workers 4 --methods auto gpsampler

14 problems on which policies may be developed and ten held out, half of each known functions and half models of
scikit-learn that are trained at every evaluation, and extra ones that belong to neither half (`tuning_parts/`). Suites
(`--suite`) are apart from these: "bbob" and "mixint", problems of COCO; "noisy", some of them under noise; "models",
those of scikit-learn. They too have a half for development, which is played unless told, and one that is held out.
"transfer" asks what earlier studies are worth (`tuning_parts/transfer.py`). A method gets the parameters and the
rewards, in its defaults, and as many trials as all others. It is not told how many, so that the beginning of a longer
run is a shorter run. Runs are kept as JSON lines in the folder of `--cache` and never repeated, so peers run once; they
need their packages only while they run: "tpe" and "gpsampler" (Optuna), "cmaes", "botorch", "turbo" (BoTorch).
`--report` runs nothing, and `--quiet` has no line for each run. One process, one thread; runs go seed by seed, so that
what is there after an interruption is balanced. `--policy` adds a method: what makes a policy of a space, told
parallel= if it takes that. The first method is compared with the others.

With `--workers 4` four evaluations are in flight: whoever gets an answer suggests the next trial at once, while three
are pending. Such runs are kept apart ("auto@4"), and the ratio of their regret to that of one worker at equal trials is
printed. `--within` says how many runs came so close to the maximum.

Printed, for each half and both together: normalised regret (the optimum less the value of the trial that was told the
best reward, divided by the same of the median random search with equal trials), mean rank over the problems, paired
differences of the first method to the others in both, all with bootstrap intervals (over seeds; of ranks over problems
and seeds); problems on which random search is better beyond the interval; wall and CPU seconds that the method itself
took in a run, and CPU seconds of its last asks. Comparisons use the seeds that both have.

Of suites: the mean of log10 of the gap to the optimum, at least 1e-8, under noise of the point that the method
recommends, and of models normalised regret; paired differences of the first method to each other one, and to the best
of the peers; the same for groups of problems. Intervals are over problems, and over the seeds of each.
"""

import sys
from functools import partial
from itertools import chain

import bench
from tuning_parts import transfer
from tuning_parts.methods import METHODS, add_policy
from tuning_parts.problems import DEVELOPMENT, HELD_OUT
from tuning_parts.report import Table, present
from tuning_parts.runs import Cache, key, parts, run
from tuning_parts.show import markdown, ratio_text, within_text
from tuning_parts.suites import SUITES

HALVES = ("development", "held-out")
USUAL = {"half": "both", "measure": "regret", "methods": ["auto", "random", "tpe", "gpsampler", "botorch"]}
USUAL |= {"trials": [60], "seeds": 10}


def fill(options):
    """Sets what the suite, or the 24 problems, have where nothing was told."""
    usual = vars(SUITES[options.suite]) | {"half": "development"} if options.suite else USUAL
    for name in USUAL:
        if getattr(options, name) is None:
            setattr(options, name, usual[name])
    if options.workers < 1:
        sys.exit(f"--workers is {options.workers}: at least one evaluation is in flight; leave it out for one")
    for given in options.policy or ():
        add_policy(given)
    if unknown := set(options.methods) - set(METHODS):
        sys.exit(f"unknown methods: {', '.join(sorted(unknown))}; there are {', '.join(METHODS)}")


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
        if some := SUITES[options.suite].groups(names) if options.suite else {}:
            parted[title] = {group: made(inside, there) for group, inside in some.items()}
        if options.workers > 1:
            print(ratio_text(made(names, [parts(name)[0] for name in there]), table, title), flush=True)
        if options.within is not None and title != "together":
            print(within_text(cache, names, there, seeds, trials, options.within))
    page = markdown(tables, parted) if tables else ""
    print(page, flush=True)
    return page


@bench.command(__doc__)
def main(options):
    if options.suite == "transfer":  # Its problems, methods and figures are its own.
        transfer.present(options)
        return
    fill(options)
    cache = Cache(options.cache)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    many = [key(method, options.workers) for method in options.methods]
    if not options.report:
        every = list(groups(options).values())[-1]  # the last group has all problems
        play(options, cache, every, dict.fromkeys([*options.methods, *many]), seeds)
    pages = [report(options, cache, many, seeds, trials) for trials in options.trials]
    if options.markdown:
        options.markdown.write_text("\n".join(pages))
