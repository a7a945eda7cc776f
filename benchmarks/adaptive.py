"""The e-detector and the drift bank: how often they are wrong, what they cost, and what they are worth.

    python benchmarks/adaptive.py --runs 400 --worlds 64 --drifts 24 --surprises 50 --rounds 400 --long 1200 --arms 150
        --levels 0.15 0.3 0.65 1.3 2.6 --jobs 1 --parts 1 2 3 4 5 6 7 8 --repeats 3 --late 20000

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
   rounds and the rate, in paired worlds with seeds from 1,000 on.
5. What an answer costs: microseconds a round without, with the detector, with the bank, with both.
6. Noise that is not as it was told, 400 rounds on 150 arms: of `surprises` runs without a change those with an alarm,
   and of as many in which another function begins with round 200 those with a cut at 195 to 300; the median delay of
   these. With the detector, and with one that knows nothing of outliers (`clip=6.0, outliers=0.0`).
7. A run of GP-UCB-CPD with three stationary periods, T twice `--long`, world and checks included, as in figure 1 of the
   paper, and of its comparators.
8. Microseconds a round (ask and tell) at the start and at the end of `--late` rounds of GP-UCB with each memory, and
   their ratio. Discount is TV-GP-UCB, RestartEvery R-GP-UCB, SlidingWindow SW-GP-UCB.

`--parts 4` makes the fourth alone.
"""

from functools import partial

import bench
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


def ucb(arms, memory, *, length=1.0):
    return nr.gp_ucb(arms, nr.Matern(2.5, length), noise=NOISE, width=WIDTH, memory=memory)


def play(policy, values, period, rounds, seed, *, noise=1.0, freedom=None):
    """Regret of each round `(T,)`, and when the memory was cut (the round after which the answer came, the cut)."""
    rng, study, regret, alarms = np.random.default_rng([seed, 5]), bench.quiet(policy, seed=seed), np.zeros(rounds), []
    draws = drawn(rng, rounds, freedom)
    for t in range(rounds):
        trial, f = study.ask(), values[period(t)]
        alarms += [t] * (len(study.replica.state.restarts) - len(alarms))
        regret[t] = f.max() - f[trial.arm]
        study.tell(trial, float(f[trial.arm] + NOISE * noise * draws[t]))
    return regret, alarms


def drawn(rng, rounds, freedom):
    """Normal numbers, or those of Student's t, of standard deviation 1."""
    if freedom is None:
        return rng.standard_normal(rounds)
    return rng.standard_t(freedom, rounds) / np.sqrt(freedom / (freedom - 2))


def stationary(seed, *, rounds, arms, length=1.0, **truth):
    """(alarms, regret with the detector, regret without)."""
    grid = nr.Arms.grid(0.0, 5.0, arms)
    values = [gp_sample(KERNEL, grid, seed=[seed, 9]).values]
    regret, alarms = play(ucb(grid, "adaptive", length=length), values, lambda _: 0, rounds, seed, **truth)
    plain, _ = play(ucb(grid, None, length=length), values, lambda _: 0, rounds, seed, **truth)
    return len(alarms), regret.sum(), plain.sum()


def switching(seed, *, rounds, make):
    """(regret, alarms) of one world of figure 3."""
    values = [gp_sample(KERNEL, avanesov.ARMS, seed=[seed, k]).values for k in range(PERIODS)]
    period = partial(np.searchsorted, even_changes(rounds, PERIODS), side="right")
    regret, alarms = play(make(rounds), values, period, rounds, seed)
    return regret.sum(), alarms


def e_detector(_, **choices):
    return ucb(avanesov.ARMS, nr.slots.EDetector(**choices))


def cpd(rounds, *, exploration, level):
    policy = avanesov.rule(rounds, exploration=exploration, threshold=nr.theory.PowerLaw(level, -6 / 7))
    return policy.using(confidence=WIDTH, regularization=NOISE**2)


def proportion(hits, of):
    """A share with its 95% interval (Clopper and Pearson)."""
    low = beta.ppf(0.025, hits, of - hits + 1) if hits else 0.0
    high = beta.ppf(0.975, hits + 1, of - hits) if hits < of else 1.0
    return f"{hits} of {of} ({100 * low:.1f} to {100 * high:.1f}%)"


def resampled(over, under, statistic=np.mean):
    """A ratio of statistics with its 95% interval over paired worlds (bootstrap)."""
    over, under = np.asarray(over), np.asarray(under)
    picks = np.random.default_rng(0).integers(len(over), size=(4000, len(over)))
    low, high = np.quantile(statistic(over[picks], axis=1) / statistic(under[picks], axis=1), [0.025, 0.975])
    return f"{statistic(over) / statistic(under):.2f} ({low:.2f} to {high:.2f})"


def without_change(each, runs, rounds, arms):
    print(f"1. {rounds} rounds without a change, {arms} arms, delta 0.05", flush=True)
    for name, truth in STATIONARY.items():
        count = runs if not truth else max(runs // 10, 1)
        found = each(partial(stationary, rounds=rounds, arms=arms, **truth), range(count))
        alarms, regret, plain = (np.array(column) for column in zip(*found, strict=True))
        wrong = proportion(int((alarms > 0).sum()), count)
        print(
            f"   {name:32s} runs with an alarm {wrong}, {alarms.mean():.2f} a run; "
            f"regret over that without {resampled(regret, plain)}",
            flush=True,
        )


def with_changes(each, worlds, rounds, settings):
    changes = even_changes(rounds, PERIODS)
    print(f"2. T = {rounds}, changes at {', '.join(map(str, changes))}", flush=True)
    some = max(worlds // 4, 2)
    rules = {
        "told the change points": (lambda n: ucb(avanesov.ARMS, nr.slots.RestartAt(even_changes(n, PERIODS))), worlds),
        "e-detector": (e_detector, worlds),
        "e-detector, no outliers": (partial(e_detector, clip=6.0, outliers=0.0), worlds),
        "e-detector, no outliers, no clip": (partial(e_detector, clip=50.0, outliers=0.0), some),
        "GP-UCB": (lambda _: ucb(avanesov.ARMS, None), some),
        "GP-UCB-CPD of the paper": (avanesov.rule, some),
    }
    for exploration in (1.0, 3**0.5):
        for level in settings:
            name = f"GP-UCB-CPD, xi {exploration:.2f}, level {level:g}"
            rules[name] = (partial(cpd, exploration=exploration, level=level), some)
    regrets = {}
    for name, (make, count) in rules.items():
        found = each(partial(switching, rounds=rounds, make=make), range(count))
        regrets[name] = np.array([regret for regret, _ in found])
        oracle = regrets["told the change points"][:count]
        seen = [metrics.detections(alarms, changes, rounds) for _, alarms in found]
        delays = np.concatenate([np.asarray(each_.delays, dtype=float) for each_ in seen])
        late = np.median(delays[np.isfinite(delays)]) if np.isfinite(delays).any() else np.nan
        mean, median = regrets[name].mean(), np.median(regrets[name])
        print(
            f"   {name:32s} mean {mean:6.1f}, median {median:6.1f}; over the oracle's: "
            f"mean {resampled(regrets[name], oracle)}, median {resampled(regrets[name], oracle, np.median)}; "
            f"missed {100 * np.mean(~np.isfinite(delays)):.1f}%, delay {late:.0f}, "
            f"false alarms a run {np.mean([each_.false_alarms for each_ in seen]):.2f}",
            flush=True,
        )
    best = min((name for name in rules if "xi" in name), key=lambda name: regrets[name].mean())
    print(f"   e-detector over {best}: {resampled(regrets['e-detector'][:some], regrets[best])}", flush=True)


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
        found = each(partial(drifting, rate=rate, rounds=rounds, arms=arms), range(worlds))
        regrets = {name: np.array([regret[name] for regret in found]) for name in found[0]}
        best = min((name for name in regrets if "rate" in name), key=lambda name: regrets[name].mean())
        means = ", ".join(f"{name} {values.mean():.1f}" for name, values in regrets.items())
        ratio = resampled(regrets["bank"], regrets[best])
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
        found = each(partial(both_at_once, rate=rate, rounds=rounds, arms=arms), range(1000, 1000 + worlds))
        regrets = {name: np.array([world[name][0] for world in found]) for name in found[0]}
        for name, values in regrets.items():
            cuts = np.mean([world[name][1] for world in found])
            ratio = resampled(values, regrets["told"])
            print(f"   drift {rate:g}: {name} {values.mean():.1f}, over told {ratio}, {cuts:.1f} cuts", flush=True)


def surprised(
    seed, *, changes, rounds, arms, memory, freedom=None, contaminated=1.0, best=1.0, noise=1.0, later=1.0, off=0.0
):
    """The cuts of one run, and after which rounds they were made."""
    grid, rng = nr.Arms.grid(0.0, 5.0, arms), np.random.default_rng([seed, 5])
    values = [gp_sample(KERNEL, grid, seed=[seed, 9 + part]).values for part in range(2)]
    draws = drawn(rng, rounds, freedom)
    draws *= noise * np.where(rng.uniform(size=rounds) < 0.04, contaminated, 1.0)
    draws[rounds // 4 :] *= later
    draws[rng.integers(rounds // 20, rounds // 2)] += off
    study, after = bench.quiet(ucb(grid, memory), seed=seed), []
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
        (seconds,), _ = bench.timed(partial(play, ucb(avanesov.ARMS, memory), values, lambda _: 0, rounds, 0))
        print(f"   {name:32s} {1e6 * seconds / rounds:.0f}")


def whole_runs(rounds, repeats):
    changes = nr.environments.even_changes(rounds, 3)
    functions = [nr.environments.gp_sample(KERNEL, avanesov.ARMS, seed=[0, period]) for period in range(3)]
    env = nr.Environment(functions, domain=avanesov.ARMS, noise=NOISE, change_points=changes)
    policies = {
        "GP-UCB-CPD": {},
        "oracle": {"detector": "oracle", "change_points": changes},
        "no detector": {"detector": "never"},
        "GP-UCB": {"detector": "never", "exploration": 0.0},
    }
    print(f"7. T = {rounds}, {len(avanesov.ARMS)} arms, changes at {', '.join(map(str, changes))}: best of {repeats}")
    for name, choices in policies.items():
        policy = nr.gp_ucb_cpd(avanesov.ARMS, KERNEL, noise=NOISE, horizon=rounds, **choices)
        seconds, run = bench.timed(lambda policy=policy: nr.simulate(policy, env, rounds, seed=0), repeats)
        print(
            f"   {name:12s} {min(seconds):.2f} s; regret {run.regret.sum():.0f}, uniform rounds {run.explored.sum()}, "
            f"restarts {list(run.restarts)}"
        )


def late_rounds(rounds):
    f = nr.environments.gp_sample(KERNEL, avanesov.ARMS, seed=0)
    memories = {
        "everything": None,
        "Discount": nr.slots.Discount(0.001),
        "SlidingWindow": nr.slots.SlidingWindow(max(rounds // 20, 2)),
        "RestartEvery": nr.slots.RestartEvery(max(rounds // 20, 2)),
    }
    part = max(rounds // 10, 1)
    print(f"8. {rounds} rounds: microseconds a round in the second tenth and in the last, medians")
    for name, memory in memories.items():
        study = nr.Study(nr.gp_ucb(avanesov.ARMS, KERNEL, noise=NOISE, scale=0.2, memory=memory), seed=0)
        noise = NOISE * np.random.default_rng(0).standard_normal(rounds)
        _, took = bench.play(study, rounds, lambda trial, noise=noise: float(f.values[trial.arm] + noise[trial.number]))
        early, late = (float(np.median(each)) * 1e6 for each in (took[part : 2 * part], took[-part:]))
        print(f"   {name:14s} {early:4.0f} -> {late:4.0f}, ratio {late / early:.2f}")


@bench.command(__doc__)
def main(options):
    few, long = (options.rounds, options.arms), (options.long, options.arms)
    parts = {
        1: lambda each: without_change(each, options.runs, *few),
        2: lambda each: with_changes(each, options.worlds, options.long, options.levels),
        3: lambda each: with_drift(each, options.drifts, *long),
        4: lambda each: with_both(each, options.drifts, *long),
        6: lambda each: with_surprises(each, options.surprises, *few),
        5: lambda _: cost(options.long),
        7: lambda _: whole_runs(2 * options.long, options.repeats),
        8: lambda _: late_rounds(options.late),
    }
    for number, part in parts.items():
        if number in options.parts:
            part(lambda function, seeds: bench.mapped(options.jobs, function, [(seed,) for seed in seeds]))
