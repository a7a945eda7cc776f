"""What runs under limits say."""

import numpy as np
from limits_parts.known import KEPT, OUTSIDE
from tuning_parts.report import finite, mean, present

DRAWS = 2000
FLOOR = 1e-6  # smaller regrets are not told apart by their logarithms
NONE = 2.0  # the regret of a run without a feasible trial, and the largest of any
AT = (0.3, 0.6, 1.0)  # shares of the trials after which regrets are shown


def text(cache, problems, methods, seeds, trials):
    """Regrets by problem and method, then how the first method stands to the others."""
    methods = present(cache, [problem.name for problem in problems], methods, seeds, trials)
    after = [max(round(share * trials), 1) for share in AT]
    regret = {count: regrets(cache, problems, methods, seeds, trials, count) for count in after}
    last = regret[after[-1]]
    known = bool(problems[0].limits)
    told = "log10 of the regret, medians over seeds, and trials outside" if known else "regret"
    lines = [f"normalised {told}, of the best feasible value after {' / '.join(map(str, after))} trials"]
    lines.append(f"{'':18}" + "".join(f"{name:>26}" for name in methods))
    for i, problem in enumerate(problems):
        cells = [
            " / ".join(f"{_middle(regret[n][i, j]):.2f}" if known else f"{mean(regret[n][i, j]):.3f}" for n in after)
            for j in range(len(methods))
        ]
        if known:
            outside = [f" {_outside(cache, [problem], method, seeds, trials)[0]:>3}" for method in methods]
            cells = [cell + count for cell, count in zip(cells, outside, strict=True)]
        lines.append(f"{problem.name:18}" + "".join(f"{cell:>26}" for cell in cells))
    lines.append("")
    for j, method in enumerate(methods):
        said = f"{method:12} regret {mean([mean(row) for row in last[:, j]]):.4f}"
        said += f", median of logarithms {mean([_middle(row) for row in last[:, j]]):.2f}"
        said += f", rank {mean(ranks(last)[:, j]):.2f}, runs {int(np.isfinite(last[:, j]).sum())}"
        if known:
            outside, every = _outside(cache, problems, method, seeds, trials)
            said += f", {outside} of {every} trials outside"
        lines.append(said + advice_text(cache, problems, method, seeds, trials))
    for j, method in enumerate(methods[1:], start=1):
        lines.append(f"{methods[0]} less {method}: {_against(last, j)}")
        for i, problem in enumerate(problems if known else ()):
            if np.isfinite(last[i, [0, j]]).all(axis=0).any():
                lines.append(f"    {problem.name:16} {_against(last[[i]], j, ['log10 regret'])}")
    return "\n".join(lines)


def regrets(cache, problems, methods, seeds, trials, count):
    """`(problems, methods, seeds)`; nan where there is no run."""
    found = np.full((len(problems), len(methods), len(seeds)), np.nan)
    for i, problem in enumerate(problems):
        best = max(
            [problem.best, *(best_feasible(run, trials) for key, run in cache.runs.items() if key[0] == problem.name)]
        )
        for j, method in enumerate(methods):
            for k, seed in enumerate(seeds):
                if cache.has(problem.name, method, seed, trials):
                    value = best_feasible(cache.runs[problem.name, method, seed], count)
                    found[i, j, k] = min((best - value) / (best - problem.typical), NONE)
    return found


def best_feasible(run, count):
    """The best feasible value; -inf without one."""
    return max(
        (value for value, worst in zip(run["values"][:count], run["worst"], strict=False) if worst <= KEPT),
        default=-np.inf,
    )


def ranks(regret):
    """`(problems, methods)`: mean ranks over the seeds that all methods have, ties shared."""
    shared = np.isfinite(regret).all(axis=1)
    found = np.full(regret.shape[:2], np.nan)
    for i in range(len(regret)):
        rows = np.round(regret[i][:, shared[i]], 6)  # a millionth of a range is no difference
        if rows.shape[1]:
            below = (rows[None] < rows[:, None]).sum(axis=1) + 0.5 * ((rows[None] == rows[:, None]).sum(axis=1) - 1)
            found[i] = 1 + below.mean(axis=1)
    return found


MEASURES = {
    "regret": lambda a, b: a - b,
    "log10 regret": lambda a, b: np.log10(a + FLOOR) - np.log10(b + FLOOR),
    "rank": lambda a, b: np.sign(np.round(a - b, 6)) / 2,
}


def _against(regret, j, measures=MEASURES):
    """The first method less another: regret, logarithm of regret, and how often it is ahead; 95% intervals."""
    rng, parts = np.random.default_rng(0), []
    pairs = [row[[0, j]][:, np.isfinite(row[[0, j]]).all(axis=0)] for row in regret]
    pairs = [pair for pair in pairs if pair.shape[1]]
    for label in measures if pairs else ():
        apart = [MEASURES[label](*pair) for pair in pairs]
        draws = np.mean([rng.choice(row, (DRAWS, len(row))).mean(axis=1) for row in apart], axis=0)
        low, high = np.percentile(draws, [2.5, 97.5])
        parts.append(f"{label} {np.mean([row.mean() for row in apart]):+.4f} [{low:+.4f}, {high:+.4f}]")
    seeds = min((pair.shape[1] for pair in pairs), default=0)
    return ", ".join(parts) + f" ({seeds} or more seeds each, {len(pairs)} problems)"


def advice_text(cache, problems, method, seeds, trials):
    """What the runs have found, and what the method called its best."""
    without = wrong = 0
    seconds, known = [], bool(problems[0].limits)
    for problem in problems:
        for seed in seeds:
            if cache.has(problem.name, method, seed, trials):
                run = cache.runs[problem.name, method, seed]
                feasible = min(run["worst"]) <= KEPT
                without += not feasible
                wrong += run["advice"] is None if feasible else run["advice"] is not None
                wrong += feasible and run["advice"] is not None and run["worst"][run["advice"]] > 0.0
                seconds.append(run["cpu"])
    advice = "" if known else f", {wrong} with a wrong best"
    return f", {without} without a feasible trial{advice}, {mean(seconds):.1f} s CPU a run"


def _outside(cache, problems, method, seeds, trials):
    """How many trials broke a known limit, and of how many."""
    keys = [(problem.name, method, seed) for problem in problems for seed in seeds]
    runs = [cache.runs[key]["worst"][:trials] for key in keys if cache.has(*key, trials)]
    return sum(worst > OUTSIDE for run in runs for worst in run), sum(map(len, runs))


def _middle(values):
    values = finite(values)
    return float(np.median(np.log10(values + FLOOR))) if len(values) else float("nan")
