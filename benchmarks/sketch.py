"""Sketches of kernels of infinite rank, in very long runs under a continuous context and on a box.

    python benchmarks/sketch.py [--only sketch|box] --rounds 100000 --prefix 10000 --seeds 3 --exact 3 --first 1000
        --accuracy 0.1 --observations 2000 20000 --most 2000 [--keep FOLDER]
    python benchmarks/sketch.py --only sketch --rounds 10000 --prefix 3000 --seeds 2

One thread, CPU seconds. Functions, contexts and noise are those of the seeds from `--first` on.

1. `sketch`: 50 arms on [0, 1] under a context on [0, 1], squared-exponential kernel of lengthscale 0.2 in both, f of
   norm 2 (the norm bound told), noise 0.1, AY width with lambda = 0.01. Of the first `--exact` seeds, regret of
   `nr.slots.Sketch()` over that of the exact posterior on the first `--prefix` rounds, same function, contexts and
   noise; CPU time of the last `--prefix` rounds over that of the first; rho and the memory of the process in the end.
   `--keep` names a folder where exact runs, which take long, are kept and taken from.
2. `box`: the mean of ten asks on [0, 1]^2 after n random observations and one more before each, by a sketch, and by the
   exact posterior for n of at most `--most`.
"""

import time

import bench
import numpy as np

import nilregret as nr
from nilregret.slots.widths.mixtures import AnyRidge

NOISE, NORM, ARMS = 0.1, 2.0, 50
WINDOW = 500  # decisions that a time is averaged over


def world(seed):
    """The kernel, and f of norm 2 in its space."""
    rng = np.random.default_rng([seed, 1])
    kernel = nr.SquaredExponential(0.2)
    centres, weights = rng.uniform(0, 1, (30, 2)), rng.standard_normal(30)
    weights *= NORM / np.sqrt(weights @ kernel(centres, centres) @ weights)
    return kernel, lambda rows: kernel(rows, centres) @ weights


def policy_of(kernel):
    policy = nr.gp_ucb(nr.Arms.grid(0, 1, ARMS), kernel, noise=NOISE, context=nr.Box([0.0], [1.0]))
    width = AnyRidge(norm_bound=NORM, noise=NOISE, regularization=NOISE**2)
    return policy.using(confidence=width, regularization=NOISE**2)


def play(policy, f, rounds, block, seed):
    """Regret of each round, CPU seconds of each, and the study."""
    rng = np.random.default_rng([seed, 2])
    blocks = [(rng.uniform(0, 1, (block, 1)), rng.standard_normal(block)) for _ in range(0, rounds, block)]
    contexts, noise = (np.concatenate(each) for each in zip(*blocks, strict=True))
    study, arms = nr.Study(policy, seed=seed), policy.domain.points
    regret, stamps = np.zeros(rounds), np.zeros(rounds + 1)
    stamps[0] = time.process_time()
    for t in range(rounds):
        trial = study.ask(contexts[t])
        values = f(np.hstack([np.broadcast_to(contexts[t], (ARMS, 1)), arms]))
        study.tell(trial, values[trial.arm] + NOISE * noise[t])
        regret[t], stamps[t + 1] = values.max() - values[trial.arm], time.process_time()
    return regret, np.diff(stamps), study


def exact(seed, rounds):
    """Regret of the exact posterior, and CPU seconds of a round in the end."""
    kernel, f = world(seed)
    regret, times, _ = play(policy_of(kernel), f, rounds, rounds, seed)
    return float(regret.sum()), float(times[-WINDOW:].mean())


def sketch(options):
    prefix, ratios, flats = options.prefix, [], []
    kept = bench.Kept(options.keep and options.keep / "exact.jsonl")
    print(f"sketch, {ARMS} arms under a context, {options.rounds} rounds; exact to {prefix}")
    for seed in range(options.first, options.first + options.seeds):
        kernel, f = world(seed)
        policy = policy_of(kernel).using(sketch=nr.slots.Sketch(accuracy=options.accuracy))
        regret, times, study = play(policy, f, options.rounds, options.prefix, seed)
        flat = times[-prefix:].sum() / times[:prefix].sum()
        flats.append(flat)
        line = (
            f"  seed {seed}: {1e3 * times[:prefix].mean():.2f} ms a round first, {1e3 * times[-prefix:].mean():.2f} "
            f"last: ratio {flat:.2f}; regret {regret[:prefix].sum():.1f} at {prefix}, {regret.sum():.1f} in the end"
        )
        if seed < options.first + options.exact:
            true, slow = kept.get((seed, prefix), lambda seed=seed: exact(seed, prefix))
            ratios.append(regret[:prefix].sum() / true)
            line += f"; exact {true:.1f}, {1e3 * slow:.0f} ms a round there"
        print(f"{line}; rho {study.shortfall:.3f}", flush=True)
    print(f"  memory {bench.peak():.0f} MB")
    print(f"  last over first {prefix} rounds: at most {max(flats):.2f}")
    if ratios:
        print(f"  regret over exact: mean {np.mean(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")


def box(options):
    """Asks on a square after n random observations, with a sketch and exactly."""
    kernels = {"squared-exponential": nr.SquaredExponential(0.3), "Matern-5/2": nr.Matern(2.5, 0.3)}
    for name, kernel in kernels.items():
        policy = nr.gp_ucb(nr.Box([0, 0], [1, 1]), kernel, noise=NOISE, scale=0.2)
        for n in options.observations:
            line = f"box, {name}, n = {n}:"
            for how, each in (
                ("sketch", policy.using(sketch=nr.slots.Sketch(accuracy=options.accuracy))),
                ("exact", policy),
            ):
                if how == "exact" and n > options.most:
                    continue
                rng, study = np.random.default_rng([options.first, 6]), nr.Study(each, seed=options.first)
                for point in rng.uniform(0, 1, (n, 2)):
                    study.add(point, np.sin(5 * point.sum()) + NOISE * rng.standard_normal())
                study.ask()
                start = time.process_time()
                for _ in range(10):
                    study.add(point := rng.uniform(0, 1, 2), np.sin(5 * point.sum()) + NOISE * rng.standard_normal())
                    study.ask()
                line += f" {how} {100 * (time.process_time() - start):.0f} ms an ask"
                line += f" (rho {study.shortfall:.3f})" if how == "sketch" else ""
            print(line, flush=True)
    print(f"  memory {bench.peak():.0f} MB")


@bench.command(__doc__)
def main(options):
    for section in (sketch, box):
        if options.only in (None, section.__name__):
            section(options)
