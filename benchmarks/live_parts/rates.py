"""Row d: clicks of 1% to 5% without contexts, regret over that of Thompson sampling with beta distributions.

The worlds and the plays are those of `benchmarks/clicks.py`. Related rates are a sample of a squared exponential kernel
of lengthscale .2 on a line, scaled to end at 1% and 5%. Unrelated ones are uniform. `nr.auto` is told neither.
"""

from __future__ import annotations

import numpy as np
from clicks import regret

from .report import paired

WORLDS = {  # name: (kind, arms, goal)
    "100 related arms": ("sampled", 100, 0.3),
    "100 unrelated arms": ("unrelated", 100, 0.9),
    "1,000 related arms": ("sampled", 1000, 0.35),
}


def clicks(args):
    """Row d, with four times as many seeds, since a run has some hundred clicks alone."""
    rounds, found, rows = args.rounds or 4000, [], []
    seeds = range(args.first, args.first + 4 * args.seeds)
    for name, (kind, arms, goal) in WORLDS.items():
        each = {}
        for rule in ("auto", "beta"):
            each[rule] = np.array([regret((kind, 0.01, 0.05), rule, seed, rounds, arms) for seed in seeds])
            some = zip(seeds, each[rule].tolist(), strict=True)
            found += [{"row": "clicks", "problem": name, "method": rule, "seed": s, "regret": r} for s, r in some]
        middle, low, high = paired(each["auto"], each["beta"], ratio=True)
        means = (f"{each[rule].mean():.0f}" for rule in ("beta", "auto"))
        rows.append([name, *means, f"{middle:.2f} [{low:.2f}, {high:.2f}]", f"{goal:g}"])
    head = ["clicks of 1% to 5%", "beta, its regret", "auto", "auto over beta", "goal"]
    args.show(f"Regret over {rounds} rounds, {len(seeds)} seeds", head, rows)
    return found
