"""The e-detector and the drift bank: how often they are wrong, what they cost, and what they are worth.

    python benchmarks/adaptive.py [--runs 400] [--worlds 64] [--jobs 1]

GP-UCB of width 2 on [0, 5], Matern-5/2 of lengthscale 1, noise 0.05; the world of Avanesov's section 4.

1. `runs` stationary runs of 400 rounds on 150 arms with memory="adaptive" (delta = 0.05): runs with an alarm (with the
   95% interval of Clopper and Pearson), alarms a run, and the regret over that without a detector, in pairs. The same
   with a tenth of the runs with noise that is in truth twice or half of what was told, with Student-t noise of three
   degrees of freedom, and with lengthscales told 1.6 times too long or too short.
2. Figure 3 of Avanesov: T = 1,200, 1,000 arms, another function every 300 rounds. Regret over that of the oracle of the
   same width: ratio of the medians, of the means (95% intervals over paired worlds); changes missed, false alarms,
   median delay; the same for detectors that know nothing of outliers, one of them without a clip (a quarter of the
   worlds, as all that follow), GP-UCB-CPD at several settings of equal width, and the paper's own setting.
3. What drifts a little in every round (1,200 of them, 150 arms), at two rates and at none: regret of the bank over
   that of the best fixed rate (0 or one of the bank's), in paired worlds.
4. Drift and switches at once: another function every quarter of 1,200 rounds, which drifts a little in every round, at
   two rates and at none. Regret of the detector, the bank, and both (`nr.slots.AllOf`) over that of who is told the
   rounds
   and the rate, in paired worlds with seeds from 1,000 on.
5. What an answer costs: microseconds a round without, with the detector, with the bank, with both.
6. Noise that is not as it was told, 400 rounds on 150 arms: of `surprises` runs without a change those with an alarm,
   and of as many in which another function begins with round 200 those with a cut at 195 to 300; the median delay of
   these. With the detector, and with one that knows nothing of outliers (`clip=6.0, outliers=0.0`).

`--parts 4` makes the fourth alone.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import partial

import numpy as np
from scipy.stats import beta

import nilregret as nr
from nilregret.environments import drifting_samples, even_changes, gp_sample
from nilregret.papers import avanesov
from nilregret.simulation import metrics
from nilregret.slots.envelope import ConstantWidth

NOISE, KERNEL = avanesov.NOISE, avanesov.KERNEL
WIDTH = ConstantWidth(value=2.0)
PERIODS = 4
STATIONARY = {  # what is true of the noise, and how long lengthscales are believed to be
    "as told": {},
    "noise twice": {"noise": 2.0},
    "noise half": {"noise": 0.5},
    "t_3 noise": {"freedom": 3},
    "lengthscale 1.6 times too long": {"length": 1.6},
    "lengthscale 1.6 times too short": {"length": 1 / 1.6},
}

SURPRISES = {
    "Gaussian, as told": {},
    "t_3, as told": {"freedom": 3},
    "4% ten times as noisy": {"contaminated": 10.0},
    "4% fifty times as noisy": {"contaminated": 50.0},
    "the best arm ten times as noisy": {"best": 10.0},
    "twice as told": {"noise": 2.0},
    "twice as told from round 100 on": {"later": 2.0},
    "one answer 50 deviations off": {"off": 50.0},
}


def always(_):
    """The period of every round."""
    return 0


def ucb(arms, memory, *, length=1.0):
    return nr.gp_ucb(arms, nr.Matern(2.5, length), noise=NOISE, width=WIDTH, memory=memory)


def play(policy, values, period, rounds, seed, *, noise=1.0, freedom=None):
    """Regret of each round `(T,)`, and when the memory was cut (the round after which the answer came, the cut)."""
    rng = np.random.default_rng([seed, 5])
    if freedom is None:
        draws = rng.standard_normal(rounds)
    else:
        draws = rng.standard_t(freedom, rounds) / np.sqrt(freedom / (freedom - 2))
    study, regret, alarms = nr.Study(policy, seed=seed), np.zeros(rounds), []
    study.quiet = True
    for t in range(rounds):
        trial, f = study.ask(), values[period(t)]
        alarms += [t] * (len(study.replica.state.restarts) - len(alarms))
        regret[t] = f.max() - f[trial.arm]
        study.tell(trial, float(f[trial.arm] + NOISE * noise * draws[t]))
    return regret, alarms


def stationary(seed, *, rounds, arms, length=1.0, **truth):
    """(alarms, regret with the detector, regret without)."""
    grid = nr.Arms.grid(0.0, 5.0, arms)
    values = [gp_sample(KERNEL, grid, seed=[seed, 9]).values]
    regret, alarms = play(ucb(grid, "adaptive", length=length), values, always, rounds, seed, **truth)
    plain, _ = play(ucb(grid, None, length=length), values, always, rounds, seed, **truth)
    return len(alarms), regret.sum(), plain.sum()


def switching(seed, *, rounds, make):
    """(regret, alarms) of one world of figure 3."""
    values = [gp_sample(KERNEL, avanesov.ARMS, seed=[seed, k]).values for k in range(PERIODS)]
    period = partial(np.searchsorted, even_changes(rounds, PERIODS), side="right")
    regret, alarms = play(make(rounds), values, period, rounds, seed)
    return regret.sum(), alarms


def e_detector(_, **choices):
    return ucb(avanesov.ARMS, nr.slots.EDetector(**choices))


def told(rounds):
    return ucb(avanesov.ARMS, nr.slots.RestartAt(even_changes(rounds, PERIODS)))


def never(_):
    return ucb(avanesov.ARMS, None)


def cpd(rounds, *, exploration, level):
    policy = avanesov.rule(rounds, exploration=exploration, threshold=nr.theory.PowerLaw(level, -6 / 7))
    return policy.using(confidence=WIDTH, regularization=NOISE**2)


def papers(rounds):
    return avanesov.rule(rounds)


def proportion(hits, of):
    """A share with its 95% interval (Clopper and Pearson)."""
    low = beta.ppf(0.025, hits, of - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, of - hits) if hits < of else 1.0
    return f"{hits} of {of} ({100 * low:.1f} to {100 * high:.1f}%)"


def resampled(statistic, over, under):
    """A ratio of statistics with its 95% interval over paired worlds (bootstrap)."""
    over, under = np.asarray(over), np.asarray(under)
    picks = np.random.default_rng(0).integers(len(over), size=(4000, len(over)))
    low, high = np.quantile(statistic(over[picks], axis=1) / statistic(under[picks], axis=1), [0.025, 0.975])
    return f"{statistic(over) / statistic(under):.2f} ({low:.2f} to {high:.2f})"


def without_change(each, runs, rounds, arms):
    print(f"1. {rounds} rounds without a change, {arms} arms, delta 0.05", flush=True)
    for name, truth in STATIONARY.items():
        count = runs if not truth else max(runs // 10, 1)
        found = list(each(partial(stationary, rounds=rounds, arms=arms, **truth), range(count)))
        alarms, regret, plain = (np.array(column) for column in zip(*found, strict=True))
        wrong = proportion(int((alarms > 0).sum()), count)
        print(
            f"   {name:32s} runs with an alarm {wrong}, {alarms.mean():.2f} a run; "
            f"regret over that without {resampled(np.mean, regret, plain)}",
            flush=True,
        )


def with_changes(each, worlds, rounds, settings):
    changes = even_changes(rounds, PERIODS)
    print(f"2. T = {rounds}, changes at {', '.join(map(str, changes))}", flush=True)
    some = max(worlds // 4, 2)
    rules = {
        "told the change points": (told, worlds),
        "e-detector": (e_detector, worlds),
        "e-detector, no outliers": (partial(e_detector, clip=6.0, outliers=0.0), worlds),
        "e-detector, no outliers, no clip": (partial(e_detector, clip=50.0, outliers=0.0), some),
        "GP-UCB": (never, some),
        "GP-UCB-CPD of the paper": (papers, some),
    }
    for exploration in (1.0, 3**0.5):
        for level in settings:
            name = f"GP-UCB-CPD, xi {exploration:.2f}, level {level:g}"
            rules[name] = (partial(cpd, exploration=exploration, level=level), some)
    regrets = {}
    for name, (make, count) in rules.items():
        found = list(each(partial(switching, rounds=rounds, make=make), range(count)))
        regrets[name] = np.array([regret for regret, _ in found])
        oracle = regrets["told the change points"][:count]
        seen = [metrics.detections(alarms, changes, rounds) for _, alarms in found]
        delays = np.concatenate([np.asarray(each_.delays, dtype=float) for each_ in seen])
        late = np.median(delays[np.isfinite(delays)]) if np.isfinite(delays).any() else np.nan
        mean, median = regrets[name].mean(), np.median(regrets[name])
        print(
            f"   {name:32s} mean {mean:6.1f}, median {median:6.1f}; over the oracle's: "
            f"mean {resampled(np.mean, regrets[name], oracle)}, median {resampled(np.median, regrets[name], oracle)}; "
            f"missed {100 * np.mean(~np.isfinite(delays)):.1f}%, delay {late:.0f}, "
            f"false alarms a run {np.mean([each_.false_alarms for each_ in seen]):.2f}",
            flush=True,
        )
    best = min((name for name in rules if "xi" in name), key=lambda name: regrets[name].mean())
    print(f"   e-detector over {best}: {resampled(np.mean, regrets['e-detector'][:some], regrets[best])}", flush=True)


def drifting(seed, *, rate, rounds, arms):
    """Regret of each memory in one world."""
    grid = nr.Arms.grid(0.0, 5.0, arms)
    if rate:
        functions = drifting_samples(KERNEL, grid, rounds=rounds, rate=rate, seed=seed)
    else:
        functions = [gp_sample(KERNEL, grid, seed=[seed, 9])] * rounds
    values = [f.values for f in functions]
    memories = {"rate 0": None} | {
        f"rate {each:g}": nr.slots.Discount(each) for each in nr.slots.DriftBank().rates if each
    }
    memories |= {"bank": nr.slots.DriftBank(), "e-detector": "adaptive"}
    return {name: play(ucb(grid, memory), values, int, rounds, seed)[0].sum() for name, memory in memories.items()}


def with_drift(each, worlds, rounds, arms):
    print(f"3. {rounds} rounds of drift, {arms} arms", flush=True)
    for rate in (0.0, 0.001, 0.01):
        found = list(each(partial(drifting, rate=rate, rounds=rounds, arms=arms), range(worlds)))
        regrets = {name: np.array([regret[name] for regret in found]) for name in found[0]}
        best = min((name for name in regrets if "rate" in name), key=lambda name: regrets[name].mean())
        means = ", ".join(f"{name} {values.mean():.1f}" for name, values in regrets.items())
        ratio = resampled(np.mean, regrets["bank"], regrets[best])
        print(f"   drift {rate:g}: {means}; bank over {best}: {ratio}", flush=True)


def both_at_once(seed, *, rate, rounds, arms):
    """Regret of each memory in one world that drifts and switches."""
    grid, length = nr.Arms.grid(0.0, 5.0, arms), rounds // PERIODS
    values = []
    for period in range(PERIODS):
        if rate:
            values += [f.values for f in drifting_samples(KERNEL, grid, rounds=length, rate=rate, seed=[seed, period])]
        else:
            values += [gp_sample(KERNEL, grid, seed=[seed, period]).values] * length
    switches = nr.slots.RestartAt(even_changes(rounds, PERIODS))
    memories = {
        "told": nr.slots.AllOf((switches, nr.slots.Discount(rate))), "detector": "adaptive",
        "bank": nr.slots.DriftBank(),
        "both": nr.slots.AllOf((nr.slots.EDetector(), nr.slots.DriftBank())),
    }  # fmt: skip
    found = {}
    for name, memory in memories.items():
        regret, alarms = play(ucb(grid, memory), values, int, len(values), seed)
        found[name] = regret.sum(), len(alarms)
    return found


def with_both(each, worlds, rounds, arms):
    print(f"4. {rounds} rounds of drift and {PERIODS - 1} switches, {arms} arms", flush=True)
    for rate in (0.0, 0.001, 0.01):
        found = list(each(partial(both_at_once, rate=rate, rounds=rounds, arms=arms), range(1000, 1000 + worlds)))
        regrets = {name: np.array([world[name][0] for world in found]) for name in found[0]}
        for name, values in regrets.items():
            cuts = np.mean([world[name][1] for world in found])
            ratio = resampled(np.mean, values, regrets["told"])
            print(f"   drift {rate:g}: {name} {values.mean():.1f}, over told {ratio}, {cuts:.1f} cuts", flush=True)


def surprised(
    seed, *, changes, rounds, arms, memory, freedom=None, contaminated=1.0, best=1.0, noise=1.0, later=1.0, off=0.0
):
    """The cuts of one run, and after which rounds they were made."""
    grid, rng = nr.Arms.grid(0.0, 5.0, arms), np.random.default_rng([seed, 5])
    values = [gp_sample(KERNEL, grid, seed=[seed, 9 + part]).values for part in range(2)]
    draws = rng.standard_normal(rounds) if freedom is None else rng.standard_t(freedom, rounds) / 3**0.5
    draws *= noise * np.where(rng.uniform(size=rounds) < 0.04, contaminated, 1.0)
    draws[rounds // 4 :] *= later
    draws[rng.integers(rounds // 20, rounds // 2)] += off
    study, after = nr.Study(ucb(grid, memory), seed=seed), []
    study.quiet = True
    for t in range(rounds):
        trial, f = study.ask(), values[changes and t >= rounds // 2]
        after += [t] * (len(study.restarts) - len(after))
        if after and not changes:
            break
        times = best if trial.arm == values[0].argmax() else 1.0
        study.tell(trial, float(f[trial.arm] + NOISE * times * draws[t]))
    return study.restarts[: len(after)], after


def with_surprises(each, runs, rounds, arms):
    print(f"6. {rounds} rounds, {arms} arms: runs with an alarm where nothing changes; changes found, median delay")
    half = rounds // 2
    for memory in (nr.slots.EDetector(), nr.slots.EDetector(clip=6.0, outliers=0.0)):
        print(f"   outliers={memory.outliers:g}, clip={memory.clip:g}")
        for name, truth in SURPRISES.items():
            play_one = partial(surprised, rounds=rounds, arms=arms, memory=memory, **truth)
            wrong = sum(bool(cuts) for cuts, _ in each(partial(play_one, changes=False), range(runs)))
            delays = []
            for cuts, after in each(partial(play_one, changes=True), range(runs)):
                delays += [at - half for cut, at in zip(cuts, after, strict=True) if half - 5 <= cut <= half + 100][:1]
            delay = np.median(delays) if delays else np.nan
            print(f"   {name:32s} {wrong} of {runs}; {len(delays)} of {runs}, {delay:.0f}", flush=True)


def cost(rounds):
    print(f"5. microseconds a round, 1,000 arms, {rounds} rounds")
    values = [gp_sample(KERNEL, avanesov.ARMS, seed=0).values]
    for name, memory in {
        "without": None, "with the detector": "adaptive", "with the bank": nr.slots.DriftBank(),
        "with both": nr.slots.AllOf((nr.slots.EDetector(), nr.slots.DriftBank())),
    }.items():  # fmt: skip
        start = time.process_time()
        play(ucb(avanesov.ARMS, memory), values, always, rounds, 0)
        print(f"   {name:32s} {1e6 * (time.process_time() - start) / rounds:.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="stationary runs (default 400)")
    parser.add_argument("--worlds", type=int, default=64, help="worlds that change (default 64)")
    parser.add_argument("--drifts", type=int, default=24, help="worlds that drift (default 24)")
    parser.add_argument("--surprises", type=int, default=50, help="runs of each with other noise (default 50)")
    parser.add_argument("--rounds", type=int, default=400, help="of a stationary run (default 400)")
    parser.add_argument("--long", type=int, default=1200, help="of a world that changes (default 1,200)")
    parser.add_argument("--arms", type=int, default=150, help="of a stationary run (default 150)")
    parser.add_argument("--levels", type=float, nargs="*", default=[0.15, 0.3, 0.65, 1.3, 2.6], help="of GP-UCB-CPD")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument(
        "--parts", type=int, nargs="*", default=[1, 2, 3, 4, 5, 6], help="which of the six (default all)"
    )
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) if options.jobs > 1 else nullcontext() as pool:
        each = map if pool is None else pool.map
        if 1 in options.parts:
            without_change(each, options.runs, options.rounds, options.arms)
        if 2 in options.parts:
            with_changes(each, options.worlds, options.long, options.levels)
        if 3 in options.parts:
            with_drift(each, options.drifts, options.long, options.arms)
        if 4 in options.parts:
            with_both(each, options.drifts, options.long, options.arms)
        if 6 in options.parts:
            with_surprises(each, options.surprises, options.rounds, options.arms)
    if 5 in options.parts:
        cost(options.long)
