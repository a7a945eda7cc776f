"""Goes on in a wider space by `Study.widen`, against a new study and one with `like=`.

    python benchmarks/changed_space.py --seeds 20

The first 20 trials of each run are in a range that lacks the minimum. The figures are the further trials until the
loss is within 1% of the spread of the objective, at most 40.
"""

import warnings

import bench
import numpy as np

import nilregret as nr

FIRST, MOST, CLOSE = 20, 40, 0.01


def branin(x, y):
    """Branin's function, of which the first range lacks the minima."""
    bent = y - 5.1 / (4.0 * np.pi**2) * x**2 + 5.0 / np.pi * x - 6.0
    return float(bent**2 + 10.0 * (1.0 - 1.0 / (8.0 * np.pi)) * np.cos(x) + 10.0 - 0.397887)


def valley(x, y):
    """A curved valley with its minimum at (4, 4)."""
    return float((x - 4.0) ** 2 + 3.0 * (y - 4.0 - 0.2 * (x - 4.0) ** 2) ** 2)


PROBLEMS = {
    "branin": (branin, {"x": (3.5, 8.0), "y": (6.0, 15.0)}, {"x": (-5.0, 10.0), "y": (0.0, 15.0)}),
    "valley": (valley, {"x": (0.0, 2.0), "y": (0.0, 2.0)}, {"x": (0.0, 8.0), "y": (0.0, 8.0)}),
}


def ranges(ends):
    """Returns the parameters of these ranges."""
    return {name: nr.Float(*end) for name, end in ends.items()}


def further(study, objective, target):
    """Returns the number of further trials until a loss is at most the target, or one more than the most."""
    for count in range(1, MOST + 1):
        trial = study.ask()
        loss = objective(**trial.parameters)
        study.tell(trial, loss)
        if loss <= target:
            return count
    return MOST + 1


def run(name, seed):
    """Returns the further trials of each way into the wider space."""
    objective, narrow, wide = PROBLEMS[name]
    space = nr.Space(**ranges(wide))
    drawn = np.random.default_rng(0).uniform(*np.array(list(wide.values())).T, size=(4096, 2))
    target = CLOSE * float(np.std([objective(*point) for point in drawn]))
    first = nr.Study(nr.auto(nr.Space(**ranges(narrow))), goal="minimize", seed=seed)
    for _ in range(FIRST):
        trial = first.ask()
        first.tell(trial, objective(**trial.parameters))
    found = {
        "new": further(nr.Study(nr.auto(space), goal="minimize", seed=seed), objective, target),
        "like": further(nr.Study(nr.auto(space, like=first), goal="minimize", seed=seed), objective, target),
    }
    first.widen(**ranges(wide))
    return found | {"widen": further(first, objective, target)}


@bench.command(__doc__)
def main(options):
    warnings.simplefilter("ignore")
    print("median (mean) further trials", *(f"{way:>14}" for way in ("widen", "like", "new")))
    for name in PROBLEMS:
        counts = [run(name, seed) for seed in range(options.seeds)]
        of = {way: [each[way] for each in counts] for way in ("widen", "like", "new")}
        print(f"{name:28}", *(f"{np.median(n):6.1f} ({np.mean(n):5.1f})" for n in of.values()), flush=True)
