"""Clicks: what a posterior over related rates saves, what the bounds cost, and whether they hold.

    python benchmarks/clicks.py --seeds 32 --rates all|low|high [--rules NAME ...] [--cache FILE] --rounds 20000
        --runs 400 --cover 20 --long 100000 --jobs 1 [--markdown]
    python benchmarks/clicks.py --seeds 2 --runs 0   # a look

100 arms. Related: one bump of random place and width over the lowest rate. Unrelated: rates drawn independently between
the lowest and the highest. Regret of Thompson sampling with a beta distribution for each arm, which is what most use,
and the ratio of the others to it on the same worlds, with 95% bootstrap intervals, paired. The kernel of `gp_ts` and
`gp_ucb` is squared exponential, lengthscale 0.2; `nr.auto` is told nothing. Coverage: of `--runs` of `--cover` rounds,
those in which the true rates leave the certified bounds anywhere, in any round. Last, what `--long` decisions cost.
Seeds from 1000 on were not looked at before. `--cache` keeps what was found, to go on from.
"""

from __future__ import annotations

import bench
import numpy as np
from bench import mapped
from scipy.stats import binom

import nilregret as nr
from nilregret.slots.envelope import ConstantWidth

ARMS, DELTA, FIRST_SEED, CENTER = 100, 0.1, 1000, 0.3
WORLDS = [(kind, low, high) for low, high in ((0.02, 0.05), (0.1, 0.5)) for kind in ("related", "unrelated")]
RULES = ("auto", "gp_ts", "gp_ucb, width 2", "gp_ucb, width 2, noise 1/2")
COVERED = ("clicks, dmm", "clicks, lr", "counts, lr", "shares, lr")
KERNEL = nr.SquaredExponential(0.2)
PLACES = np.linspace(0, 1, ARMS)


def rates_of(world, seed, arms=ARMS):
    kind, low, high = world
    rng = np.random.default_rng(seed)
    if kind == "unrelated":
        return rng.uniform(low, high, arms)
    if kind == "sampled":  # from the kernel, and then from `low` to `high`
        places = np.linspace(0, 1, arms)[:, None]
        values, vectors = np.linalg.eigh(KERNEL(places, places))
        f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(arms))
        return low + (high - low) * (f - f.min()) / (f.max() - f.min())
    center, width = rng.uniform(0, 1), rng.uniform(0.08, 0.2)
    return low + (high - low) * np.exp(-0.5 * ((PLACES - center) / width) ** 2)


def policy_of(rule, arms=ARMS):
    arms = nr.Arms.grid(0, 1, arms)
    if rule == "auto":
        return nr.auto(arms, reward="bernoulli")
    if rule == "gp_ts":
        return nr.gp_ts(arms, KERNEL, reward="bernoulli", v=0.6)
    known = {"noise": 0.5} if rule.endswith("1/2") else {"reward": "bernoulli"}
    return nr.gp_ucb(arms, KERNEL, width=ConstantWidth(value=2.0), **known)


def beta_thompson(rates, seed, rounds):
    rng = np.random.default_rng([seed, 1])
    won, lost, chosen = np.ones(len(rates)), np.ones(len(rates)), np.zeros(rounds, dtype=int)
    for t in range(rounds):
        arm = chosen[t] = int(rng.beta(won, lost).argmax())
        if rng.random() < rates[arm]:
            won[arm] += 1.0
        else:
            lost[arm] += 1.0
    return chosen


def played(policy, rates, seed, rounds):
    rng = np.random.default_rng([seed, 2])
    return bench.play(nr.Study(policy, seed=seed), rounds, lambda trial: float(rng.random() < rates[trial.arm]))


def regret(world, rule, seed, rounds, arms=ARMS):
    rates = rates_of(world, seed, arms)
    by = beta_thompson(rates, seed, rounds) if rule == "beta" else played(policy_of(rule, arms), rates, seed, rounds)[0]
    return float((rates.max() - rates[by]).sum())


def covered(what, seed, rounds):
    """Whether the true rates stayed inside, of a world on 20 arms with a known norm about 0.3."""
    kind, width = what.split(", ")
    rng, arms = np.random.default_rng([seed, 3]), nr.Arms.grid(0, 1, 20)
    centers, weights = rng.integers(20, size=1 + 3 * (seed % 2)), rng.normal(size=1 + 3 * (seed % 2))
    K = KERNEL.between_arms(arms.points, np.arange(20), np.arange(20))
    f = K[:, centers] @ weights
    scale = (0.25 if seed % 4 < 2 else 0.05) / np.abs(f).max()
    rates, norm = CENTER + scale * f, scale * float(np.sqrt(weights @ K[np.ix_(centers, centers)] @ weights))
    reward = {"clicks": "bernoulli", "counts": "poisson", "shares": "bounded"}[kind]
    policy = nr.igp_ucb(arms, KERNEL, reward=reward, norm_bound=norm, prior_mean=CENTER, width=width, delta=DELTA)
    study = nr.Study(policy, seed=seed)
    for _ in range(rounds):
        trial = study.ask()
        lower, upper = study.bounds()
        if ((rates < lower - 1e-9) | (rates > upper + 1e-9)).any():
            return False
        mean = rates[trial.arm]
        told = {"clicks": lambda p: rng.random() < p, "counts": rng.poisson, "shares": lambda p: rng.beta(p, 1 - p)}
        study.tell(trial, float(told[kind](mean)))
    return True


def regrets(args):
    seeds = range(FIRST_SEED, FIRST_SEED + args.seeds)
    rates = {"all": WORLDS, "low": WORLDS[:2], "high": WORLDS[2:]}[args.rates]
    rules, found, rows = ["beta", *(args.rules or RULES)], bench.Kept(args.cache), []
    keys = [(*world, rule, seed, args.rounds) for seed in seeds for world in rates for rule in rules]
    keys = [key for key in keys if key not in found]  # seed by seed, so that a run that was stopped has pairs
    for part in (keys[i : i + 32] for i in range(0, len(keys), 32)):
        for key, value in zip(part, mapped(args.jobs, regret, [(k[:3], *k[3:]) for k in part]), strict=True):
            found.get(key, lambda value=value: value)
    for world in rates:
        each = [np.array([found[(*world, rule, seed, args.rounds)] for seed in seeds]) for rule in rules]
        name = f"{world[0]}, {100 * world[1]:g}% to {100 * world[2]:g}%"
        rows.append([name, f"{each[0].mean():.0f}", *(bench.ratio(other, each[0]) for other in each[1:])])
    title = f"Regret over {args.rounds} rounds, {args.seeds} worlds, over that of independent beta distributions"
    bench.table(title, ["rates", *rules], rows, markdown=args.markdown)


def coverage(args):
    rows = []
    for what in COVERED:
        tasks = [(what, seed, args.cover) for seed in range(FIRST_SEED, FIRST_SEED + args.runs)]
        failed = args.runs - sum(mapped(args.jobs, covered, tasks))
        verdict = "above delta" if binom.sf(failed - 1, args.runs, DELTA) < 0.05 else "no more than delta"
        rows.append([what, failed, verdict])
    title = f"Coverage, {args.runs} runs of {args.cover} rounds, delta = {DELTA:g}"
    bench.table(title, ["bounds", "runs in which rates were outside", ""], rows, markdown=args.markdown)


def costs(args):
    rates, arms = rates_of(WORLDS[0], 0), nr.Arms.grid(0, 1, ARMS)
    certified = {"reward": "bernoulli", "norm_bound": 0.5, "prior_mean": 0.03}
    policies = {rule: policy_of(rule) for rule in RULES}
    policies |= {f"igp_ucb, {width}": nr.igp_ucb(arms, KERNEL, width=width, **certified) for width in ("dmm", "lr")}
    rows = []
    for name, policy in policies.items():
        chosen, seconds = played(policy, rates, 0, args.long)
        rows.append([name, f"{1e3 * seconds.mean():.3f} ms", f"{(rates.max() - rates[chosen]).sum():.0f}"])
    head = ["policy", "CPU a decision, ask and tell", "regret"]
    bench.table(f"{args.long} decisions at 2 to 5%, one bump", head, rows, markdown=args.markdown)


@bench.command(__doc__)
def main(args):
    if args.seeds:
        regrets(args)
    if args.runs:
        coverage(args)
    if args.long:
        costs(args)
