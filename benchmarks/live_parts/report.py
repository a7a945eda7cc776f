"""Tables of what was played, and paired differences with bootstrap intervals."""

from __future__ import annotations

import numpy as np

DRAWS = 4000


def paired(over, under, *, ratio=False):
    """Mean of the differences of paired values, or the ratio of their means, and its 95% bootstrap interval."""
    over, under = np.asarray(over), np.asarray(under)
    drawn = np.random.default_rng(0).integers(len(over), size=(DRAWS, len(over)))
    a, b = over[drawn].mean(axis=1), under[drawn].mean(axis=1)
    low, high = np.quantile(a / b if ratio else a - b, [0.025, 0.975])
    return float(over.mean() / under.mean() if ratio else over.mean() - under.mean()), float(low), float(high)


def by_setting(records):
    """{(method, setting): its records, by seed}."""
    found = {}
    for each in records:
        found.setdefault((each["method"], each["setting"]), []).append(each)
    return {key: sorted(some, key=lambda each: each["seed"]) for key, some in found.items()}


def in_hindsight(records, *, by="share"):
    """{method: records of its best setting on these very seeds}."""
    sign, best = 1.0 if by == "share" else -1.0, {}
    for (method, _), some in by_setting(records).items():
        if method not in best or sign * np.mean([e[by] for e in some]) > sign * np.mean([e[by] for e in best[method]]):
            best[method] = some
    return best


def values(some, key):
    return np.array([each[key] for each in some])


def table(records, *, by="share", ours="auto", ratio=False):
    """Rows of one problem: method, setting, value, ours less it (or over it), CPU; and what is summed up."""
    best = in_hindsight(records, by=by)
    mine, rows, places = best[ours], [], 3 if by == "share" else 0
    for method, some in best.items():
        against = ""
        if method != ours:
            middle, low, high = paired(values(mine, by), values(some, by), ratio=ratio)
            against = f"{middle:.2f} [{low:.2f}, {high:.2f}]" if ratio else f"{middle:+.3f} [{low:+.3f}, {high:+.3f}]"
        cost = [f"{np.median(values(some, key)):.3f}" for key in ("median ms", "last ms")]
        worst = f"{np.max(values(some, 'worst ms')):.1f}"
        rows.append([method, some[0]["setting"], f"{values(some, by).mean():.{places}f}", against, *cost, worst])
    return ["method", "setting", by, f"{ours} {'over' if ratio else 'less'} it", *HEAD], rows, best


HEAD = ["ms a decision", "ms at the end", "worst ms"]
