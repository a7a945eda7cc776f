"""Row unknown: 12% of the decisions are for a device that was never declared, from the start or from round 200 on.

Ten arms have the mean base + level of the device + slope * hour, with normal effects of deviation .5, 1 and .7, and
noise of .5. Four devices are declared. "refused" is a service that has no decision for an unknown device, so the caller
draws an arm and the study learns nothing. "mapped" calls it by the first declared name. "declared" knows it from the
start, and "later" from round 600 on (`Study.widen`). The regret is the mean of a decision.
"""

import numpy as np
from bench import quiet, ratio

import nilregret as nr

ARMS, SHARE, ROUNDS, DECLARED_AT, FIRST = 10, 0.12, 1000, 600, 20
LEVELS, NEW = ("phone", "desk", "tv", "watch"), "tablet"
METHODS = ("unknown", "later", "declared", "mapped", "refused")


def device(method):
    declared = (*LEVELS, *[NEW] * (method == "declared"))
    return nr.Choice(*declared, unknown=method in ("unknown", "later"))


def played(method, begin, rounds, seed):
    """Mean regret of the unknown device, of its first decisions, and of the other devices."""
    rng = np.random.default_rng([44, seed])
    base, slope = rng.normal(0.0, 0.5, ARMS), rng.normal(0.0, 0.7, ARMS)
    levels = rng.normal(0.0, 1.0, (len(LEVELS) + 1, ARMS))
    context = nr.Space(hour=nr.Float(0, 1), device=device(method))
    study = quiet(nr.auto(nr.Arms(range(ARMS)), context=context), seed=seed)
    lost = {True: [], False: []}
    for t in range(rounds):
        new, known, hour, noise, drawn = rng.random() < SHARE, rng.integers(4), rng.random(), *rng.random(2)
        new = bool(new) and t >= begin
        level = len(LEVELS) if new else int(known)
        mean = base + levels[level] + slope * hour
        arm = int(drawn * ARMS)
        if method == "later" and t == DECLARED_AT:
            study.widen(context={"device": nr.Choice(*LEVELS, NEW, unknown=True)})
        if not new or method != "refused":
            name = LEVELS[0] if new and method == "mapped" else (*LEVELS, NEW)[level]
            trial = study.ask({"hour": float(hour), "device": name})
            arm = trial.arm
            study.tell(trial, float(mean[arm] + np.sqrt(12.0) * 0.5 * (noise - 0.5)))
        lost[new].append(mean.max() - mean[arm])
    return np.mean(lost[True] or [0.0]), np.mean(lost[True][:FIRST] or [0.0]), np.mean(lost[False])


def unknown(report):
    """Row unknown."""
    rows, seeds, rounds = [], report.seeds(4), report.rounds or ROUNDS
    for begin in (0, 200):
        each = {
            method: np.array([played(method, min(begin, rounds // 4), rounds, seed) for seed in seeds]).T
            for method in METHODS
        }
        for method, (all_, first, known) in each.items():
            against = "" if method == "unknown" else ratio(all_, np.maximum(each["unknown"][0], 1e-9))
            numbers = (f"{values.mean():.3f}" for values in (all_, first, known))
            rows.append([f"from round {begin}", method, *numbers, against])
            report.keep("unknown", f"from round {begin}, {rounds} rounds", method, seeds, all=all_, known=known)
    head = ["unknown device", "method", "regret of it", f"first {FIRST}", "of others", "over unknown"]
    report.show(f"Unknown devices, {len(seeds)} seeds, {rounds} rounds", head, rows)
