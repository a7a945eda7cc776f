"""What runs say."""

from functools import cache as remembered
from importlib.util import find_spec

import bench
import numpy as np
from limits_parts.report import ranks
from objectives_parts.problems import PROBLEMS
from tuning_parts.report import mean, present

from nilregret.theory.fronts import hypervolume, non_dominated

FLOOR = 1e-5  # smaller shares are not told apart


def volume(values):
    """Returns the volume between values, to be minimised, and 1.1."""
    if find_spec("moocore") is None:
        return hypervolume(-np.asarray(values), np.full(values.shape[1], -1.1))
    import moocore

    return float(moocore.hypervolume(np.asarray(values), ref=np.full(values.shape[1], 1.1)))


@remembered
def missing(name, rows):
    """Returns log10 of the share of a problem's volume that values lack."""
    low, size, best = PROBLEMS[name].shape
    return float(np.log10(max(1.0 - volume((np.array(rows) - low) / size) / best, FLOOR)))


def shares(cache, setting, problems, methods, seeds, trials):
    """Returns log10 of the missing share, `(problems, methods, seeds)`, nan where there is no run, and CPU seconds."""
    found = np.full((2, len(problems), len(methods), len(seeds)), np.nan)
    for place in np.ndindex(found.shape[1:]):
        name, key = problems[place[0]], (setting.of(problems[place[0]]), methods[place[1]], seeds[place[2]])
        if cache.has(*key, trials):
            run = cache.runs[key]
            found[(0, *place)] = missing(name, tuple(map(tuple, run["values"][:trials])))
            found[(1, *place)] = run["cpu"][trials - 1] / trials
    return found


def text(cache, setting, problems, methods, seeds, trials):
    """Returns the tables of a setting."""
    methods = present(cache, [setting.of(name) for name in problems], methods, seeds, trials)
    found, cpu = shares(cache, setting, problems, methods, seeds, trials)
    by = "moocore" if find_spec("moocore") else "the library, since moocore is not installed"
    lines = [f"{trials} trials, {setting}"]
    lines += [f"log10 of the missing share of the volume, measured by {by}; means over seeds"]
    lines += [f"{'':18}" + "".join(f"{name:>15}" for name in methods)]
    for i, name in enumerate(problems):
        cells = [f"{mean(row):.2f} ({np.isfinite(row).sum()})" for row in found[i]]
        lines += [f"{name:18}" + "".join(f"{cell if 'nan' not in cell else '-':>15}" for cell in cells)]
    for count in (2, 3):
        rows = [i for i, name in enumerate(problems) if PROBLEMS[name].count == count]
        if rows and methods:
            lines += _stands(found[rows], cpu[rows], [problems[i] for i in rows], methods, count)
    if setting.noise:
        lines += _shown(cache, setting, problems, methods, seeds, trials)
    return "\n".join(lines)


def _stands(found, cpu, problems, methods, count):
    """Lines of ranks, CPU seconds and differences."""
    means, every = [mean(column) for column in ranks(found).T], np.isfinite(found).all(axis=1)
    on = int(every.any(axis=1).sum())
    lines = ["", f"{count} objectives: mean ranks, {int(every.sum())} runs each, problems: {on}"]
    for j, name in enumerate(methods):
        row = f"  {name:14} rank {means[j]:.2f}, {mean([mean(each[j]) for each in found]):+.3f}"
        row += f", {1e3 * mean(cpu[:, j].ravel()):.1f} ms CPU a trial"
        both = np.isfinite(found[:, [0, j]]).all(axis=1)
        apart = np.where(both, found[:, 0] - found[:, j], np.nan)
        if j and both.any():
            row += f"; {methods[0]} less it {bench.difference(apart[both])}, {int(both.sum())} runs"
            less = zip(problems, map(mean, apart), strict=True)
            row += f"; it is ahead on {', '.join(f'{name} {gap:+.2f}' for name, gap in less if gap > 0.0) or 'none'}"
        lines.append(row)
    return lines


def losses(cache, settings, problems, methods, seeds, trials):
    """Lines that say what each method loses in later settings to the first one, in runs that both have."""
    found = [shares(cache, each, problems, methods, seeds, trials)[0] for each in settings]
    for setting, later in zip(settings[1:], found[1:], strict=True):
        for j, name in enumerate(methods):
            apart = (later - found[0])[:, j]
            if (there := np.isfinite(apart)).any():
                yield f"{setting} less {settings[0]}: {name} {bench.difference(apart[there])}, {int(there.sum())} runs"


def _shown(cache, setting, problems, methods, seeds, trials):
    """Lines that say how well fronts of posterior means, and of told values, show the true front of the trials."""
    lines = ["", "share of the truly non-dominated trials that are shown, and of the trials' volume that is kept:"]
    for method in methods:
        rows = []
        for name in problems:
            for seed in seeds:
                run = cache.runs.get((setting.of(name), method, seed), {})
                if len(run.get("values", ())) == trials and "shown" in run:
                    low, size, _ = PROBLEMS[name].shape
                    values, told = ((np.array(run[key]) - low) / size for key in ("values", "told"))
                    true = non_dominated(-values)
                    for shown in (np.isin(np.arange(trials), run["shown"]), non_dominated(-told)):
                        rows.append((shown[true].mean(), volume(values[shown]) / max(volume(values), FLOOR)))
        if rows:
            means = np.array(rows).reshape(-1, 4).mean(axis=0)
            lines.append("  {:14} means {:.2f}, {:.3f}; told values {:.2f}, {:.3f}".format(method, *means))
    return lines
