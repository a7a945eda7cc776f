"""Very long runs under continuous contexts: kernels of finite rank, and sketches of the others.

    python benchmarks/sketch.py
    python benchmarks/sketch.py --only finite
    python benchmarks/sketch.py --only sketch --rounds 10000 --prefix 3000 --seeds 2

One thread, CPU seconds. Functions, contexts and noise are those of the seeds from `--first` on.

1. `finite`: IGP-UCB with the AY width, 20 arms in 3 dimensions under a context in 3, and the bilinear kernel
   Linear().on(0, 1, 2) * Linear().on(3, 4, 5), whose rank is 9. A decision is `study.ask` and `study.tell`, averaged
   over the 500 before t: with the features, with the posterior at n points that it was before (as far as
   `--dense` decisions), and LinUCB's arithmetic alone (Sherman-Morrison on 9 features, nothing recorded or checked).
2. `sketch`: 50 arms on [0, 1] under a context on [0, 1], squared-exponential kernel of lengthscale 0.2 in both, f of
   norm 2 (the norm bound told), noise 0.1, AY width with lambda = 0.01. Regret of `nr.slots.Sketch()` over that of
   the exact
   posterior on the first `--prefix` rounds, same function, contexts and noise; CPU time of the last `--prefix` rounds
   over that of the first; inducing points, rho and the memory of the process in the end. `--keep` names a folder where
   exact runs, which take long, are kept and taken from.
3. `box`: the mean of ten asks on [0, 1]^2 after n random observations and one more before each, sketch and exact.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import resource
import time
from pathlib import Path

import numpy as np

import nilregret as nr
from nilregret.gp import choice
from nilregret.slots.widths.mixtures import AnyRidge

NOISE, NORM, ARMS = 0.1, 2.0, 50
WINDOW = 500  # decisions that a time is averaged over


# -- kernels of finite rank ----------------------------------------------------------------------------------------


def bilinear(seed, rounds):
    """Arms, contexts, weights and noise."""
    rng = np.random.default_rng([seed, 3])
    arms, weights = rng.uniform(-1, 1, (20, 3)), rng.standard_normal((3, 3)) / 3
    contexts = np.random.default_rng([seed, 4]).uniform(-1, 1, (rounds, 3))
    return arms, contexts, weights, NOISE * np.random.default_rng([seed, 5]).standard_normal(rounds)


def with_library(seed, rounds):
    arms, contexts, weights, noise = bilinear(seed, rounds)
    kernel = nr.Linear().on(0, 1, 2) * nr.Linear().on(3, 4, 5)
    policy = nr.igp_ucb(
        nr.Arms(arms), kernel, noise=NOISE, norm_bound=1.0, context=nr.Box([-1.0] * 3, [1.0] * 3), width="ay"
    )
    study, stamps, played = nr.Study(policy, seed=seed), [time.process_time()], []
    for context, error in zip(contexts, noise, strict=True):
        trial = study.ask(context)
        study.tell(trial, float(context @ weights @ trial.point) + error)
        stamps.append(time.process_time())
        played.append(trial.arm)
    return np.diff(stamps), played


def linucb(seed, rounds):
    """The arithmetic alone."""
    arms, contexts, weights, noise = bilinear(seed, rounds)
    ridge = NOISE**2
    inverse, right = np.eye(9) / ridge, np.zeros(9)  # of Z^T Z + lambda I
    stamps, log_ratio = [time.process_time()], 0.0
    for context, error in zip(contexts, noise, strict=True):
        z = (context[:, None] * arms[:, None, :]).reshape(20, 9)
        towards = z @ inverse
        variances = ridge * np.einsum("ij,ij->i", towards, z)
        width = 1.0 + NOISE / np.sqrt(ridge) * np.sqrt(log_ratio + 2.0 * np.log(10.0))
        arm = int((towards @ right + width * np.sqrt(variances)).argmax())
        x, direction = z[arm], towards[arm]
        log_ratio += np.log1p(variances[arm] / ridge)
        inverse -= np.outer(direction, direction) / (1.0 + direction @ x)
        right += x * (float(context @ weights @ arms[arm]) + error)
        stamps.append(time.process_time())
    return np.diff(stamps)


def at(times, rounds):
    """Microseconds a decision, of those before some rounds."""
    return "  ".join(f"{1e6 * times[max(t - WINDOW, 0) : t].mean():9.0f}" for t in rounds if t <= len(times))


def finite(options):
    rounds = [t for t in (1000, 4000, 20_000) if t <= options.decisions] or [options.decisions]
    print(f"finite rank 9, 20 arms: microseconds a decision at t = {', '.join(map(str, rounds))}")
    quick, played = with_library(options.first, options.decisions)
    print(f"  features            {at(quick, rounds)}")
    print(f"  LinUCB, arithmetic  {at(linucb(options.first, options.decisions), rounds)}")
    limit, choice.MOST_FEATURES = choice.MOST_FEATURES, 0
    dense, same = with_library(options.first, options.dense)
    choice.MOST_FEATURES = limit
    print(f"  points observed     {at(dense, [t for t in rounds if t <= options.dense] or [options.dense])}")
    print(f"  same arms as with the points observed: {'yes' if played[: len(same)] == same else 'no'}")


# -- sketches ------------------------------------------------------------------------------------------------------


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
    """Regret of each round, CPU seconds at its end, and the study."""
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


def exact(seed, options):
    """Of the exact posterior, kept from before where it was."""
    kept = None if options.keep is None else options.keep / f"exact-{seed}.npz"
    if kept is not None and kept.exists():
        with np.load(kept) as known:
            if len(known["regret"]) >= options.prefix:
                return known["regret"][: options.prefix], known["times"][: options.prefix]
    kernel, f = world(seed)
    regret, times, _ = play(policy_of(kernel), f, options.prefix, options.prefix, seed)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, regret=regret, times=times)
    return regret, times


def sketch(options):
    prefix, ratios, flats = options.prefix, [], []
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
            true, slow = exact(seed, options)
            ratios.append(regret[:prefix].sum() / true.sum())
            line += f"; exact {true.sum():.1f}, {1e3 * slow[-WINDOW:].mean():.0f} ms a round there"
        print(f"{line}; rho {study.shortfall:.3f}", flush=True)
    print(f"  memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")
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
    print(f"  memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["finite", "sketch", "box"])
    parser.add_argument("--decisions", type=int, default=20_000)
    parser.add_argument("--dense", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=100_000)
    parser.add_argument("--prefix", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--exact", type=int, default=3, help="how many of the seeds are played with the exact one too")
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--accuracy", type=float, default=0.1)
    parser.add_argument("--observations", type=int, nargs="+", default=[2000, 20_000], help="n of `box`")
    parser.add_argument("--most", type=int, default=2000, help="n up to which `box` asks the exact posterior too")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    for section in (finite, sketch, box):
        if options.only in (None, section.__name__):
            section(options)


if __name__ == "__main__":
    main()
