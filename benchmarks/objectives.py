"""Several objectives: the volume that is still missing, against Optuna, BoTorch and random search.

    python benchmarks/objectives.py [--cache FOLDER] [--problems NAME ...] --methods auto random tpe nsga2 ...
        --trials 40 --seeds 5 --first-seed 0 --noise 0 5 ... --batch 1 ... --late 0 ...
        [--policy NAME=MODULE:FUNCTION ...] [--fronts] [--report] [--quiet]
    python benchmarks/objectives.py --cache /tmp/objectives --methods auto gpsampler botorch --noise 0
    python benchmarks/objectives.py --cache /tmp/objectives --methods auto tpe --noise 0 --batch 1 4
    python benchmarks/objectives.py --cache /tmp/objectives --methods auto tpe --noise 0 --late 0 5
    python benchmarks/objectives.py --fronts

Sixteen problems, 14 of two objectives and two of three (`objectives_parts/problems.py`). All objectives are minimised.
Under noise of 5 what is told has normal noise of 5% of the range of the best front known. In batches of 4 four trials
are asked before any is answered. With answers 5 late, the answer of a trial comes after five more trials were asked.

Volumes are of the noiseless values at the points tried, in units of the range of the best front known, with 1.1 of it
as the reference. `moocore` measures them; without it the library does, and the report says so. `--fronts` prints the
table of fronts that `problems.py` has, from a search of 176,000 points. Runs are kept as JSON lines in the folder of
`--cache` and never repeated, so that peers need their packages only while they run. A method or problem whose package
is missing is left out, and named. `--policy` adds a method: what a function makes of a space and `objectives=k`.

Printed: log10 of the missing share of the volume, by problem and method, means over seeds; mean ranks over problems and
seeds that all methods have, of two objectives and of three; CPU seconds of an ask with its tell; differences of the
first method to each other one, of the runs that both have, with 95% bootstrap intervals; the problems on which the
other one is ahead; under noise, how much of the true front of the trials is shown; and of several settings, what each
method loses to its runs in the first one.
"""

import sys
from functools import partial
from importlib.util import find_spec
from itertools import product

import bench
from objectives_parts.methods import METHODS, NEEDS, Policy
from objectives_parts.problems import EXACT, PROBLEMS, best_front
from objectives_parts.report import losses, text, volume
from objectives_parts.runs import Setting, run
from tuning_parts.methods import named
from tuning_parts.runs import Cache


def there(names, needs):
    """Returns the names whose packages are installed; says which are not."""
    found = []
    for name in names:
        missing = [package for package in needs(name) if find_spec(package) is None]
        if missing:
            print(f"{name} is left out: {', '.join(missing)} is not installed", file=sys.stderr)
        else:
            found.append(name)
    return found


def print_fronts(problems):
    """Prints the table `FRONTS`."""
    for name in (name for name in problems if name not in EXACT):
        *ends, size = best_front(PROBLEMS[name], volume)
        low, high = (tuple(float(f"{value:.10g}") for value in end) for end in ends)
        print(f'    "{name}": ({low}, {high}, {size:.6f}),', flush=True)


@bench.command(__doc__)
def main(options):
    for given in options.policy or ():
        name, _, dotted = given.partition("=")
        METHODS[name] = partial(Policy, make=named(dotted))
    unknown = {*options.methods, *(options.problems or ())} - {*METHODS, *PROBLEMS}
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join([*METHODS, *PROBLEMS])}")
    problems, methods = options.problems or list(PROBLEMS), options.methods
    if not options.report:
        problems = there(problems, lambda name: ("cocoex",) if name.startswith("biobj") else ())
        methods = there(methods, lambda name: NEEDS.get(name, ()))
    if options.fronts:
        return print_fronts(problems)
    cache, seeds = (
        Cache(options.cache, "objectives.jsonl"), range(options.first_seed, options.first_seed + options.seeds),
    )  # fmt: skip
    settings = [Setting(*each) for each in product(options.noise, options.batch, options.late)]
    for seed, setting, problem, method in product(seeds, settings, problems, methods):
        key = setting.of(problem), method, seed
        if options.report or cache.has(*key, options.trials):
            continue
        done = run(PROBLEMS[problem], METHODS[method], method, setting, seed, options.trials)
        cache.add(done)
        if not options.quiet:
            print(*key, f"{done['cpu'][-1]:.1f} s CPU", file=sys.stderr, flush=True)
    print("\n\n".join(text(cache, each, problems, methods, seeds, options.trials) for each in settings))
    print(*losses(cache, settings, problems, methods, seeds, options.trials), sep="\n")
    return None
