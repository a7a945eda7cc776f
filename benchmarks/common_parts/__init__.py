"""What several benchmarks do: runs on several cores, and ratios of paired regrets with their intervals."""

import loky
import numpy as np
from tqdm import tqdm


def mapped(jobs, function, tasks):
    """What a function gives for each tuple of arguments, in order."""
    if jobs == 1:
        return [function(*task) for task in tqdm(tasks, leave=False)]
    found = loky.get_reusable_executor(jobs).map(function, *zip(*tasks, strict=True)) if tasks else ()
    return list(tqdm(found, total=len(tasks), leave=False))


def limits(over, under, draws):
    """Of the ratio of means of paired values `(seeds,)`: it, and its 95% bootstrap interval."""
    drawn = np.random.default_rng(0).integers(len(over), size=(draws, len(over)))
    low, high = np.quantile(over[drawn].mean(axis=1) / under[drawn].mean(axis=1), [0.025, 0.975])
    return over.mean() / under.mean(), low, high


def ratio(over, under, *, places=2, draws=4000):
    """The same, to be read."""
    middle, low, high = limits(over, under, draws)
    return f"{middle:.{places}f} [{low:.{places}f}, {high:.{places}f}]"
