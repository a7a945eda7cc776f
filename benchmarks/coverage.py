"""Are the bounds honest? How often they fail on functions they were not fitted to, and regret against its theorem.

A run fails when f leaves the bounds anywhere: any round, any arm. The theorems allow a share delta = 0.1 of runs to.
Theorem 1 (Srinivas et al. 2010) is tried on samples of the Gaussian process; IGP-UCB and GP-TS (Chowdhury & Gopalan
2017), with the realised gain, on functions of known RKHS norm; GP-BUCB (Desautels et al. 2014) on samples, with answers
that come five questions late: as its theorem has it, and with the width that is not inflated (nothing is proved).

    python benchmarks/coverage.py --runs 400 --rounds 100 --jobs 2 [--ranges] [--bands]
    python benchmarks/coverage.py --runs 20      # a look
    python benchmarks/coverage.py --ranges       # how often ranges of the tab Worth of the dashboard hold, and no more
    python benchmarks/coverage.py --bands --rounds 25 --runs 16  # how much of f 95% bands of slices hold, and no more
"""

import time
from typing import NamedTuple

import bench
import numpy as np
from scipy.stats import binom

import nilregret as nr
from nilregret.environments import gp_sample, rkhs_function
from nilregret.plots.slices_picture import slices_of
from nilregret.serve.dashboard.views.comparison import SIDES, compare

DELTA = 0.1
ARMS = nr.Arms.grid(0, 1, 100)
KERNELS = {"squared exponential": nr.SquaredExponential(0.2), "Matern 5/2": nr.Matern(2.5, 0.2)}
NOISE = 0.25
NORM = 2.0
SPACES = {
    "best on a limit, d = 3": ((1.0, 1.0, 1.0), ("a + b <= 1", "c >= a - 0.5")),
    "best on a limit, d = 2": ((1.0, 1.0), ("a + b <= 1",)),
    "best inside, d = 3": ((1.0, 1.0, 1.0), ()),
    "best inside, d = 2": ((1.0, 1.0), ()),
    "best on an edge, d = 3": ((0.5, 1.0, 1.0), ()),
    "best on an edge, d = 2": ((0.5, 1.0), ()),
}
FUNCTIONS = {
    "a square": lambda a, b: (a - 0.6) ** 2 + (b - 0.7) ** 2,
    "a square, noise 0.05": lambda a, b: (a - 0.6) ** 2 + (b - 0.7) ** 2,
    "steep": lambda a, b: np.exp(4.0 * ((a - 0.6) ** 2 + (b - 0.7) ** 2)),
    "with a cliff": lambda a, b: (a - 0.6) ** 2 + (b - 0.7) ** 2 + 20.0 * ((a < 0.3) | (b > 0.9)),
}
FEW, FEW_KERNEL, RANGE_NOISE = nr.Arms.grid(0, 1, 15), nr.SquaredExponential(0.2), 0.3  # of ranges


class Case(NamedTuple):
    """A policy, and the functions its theorem is about."""

    name: str
    kernel: nr.kernels.Kernel

    @property
    def on_samples(self):
        return self.name == "Theorem 1" or self.delay > 0

    @property
    def delay(self):
        return 5 if self.name.startswith("GP-BUCB") else 0

    def function(self, seed):
        if self.on_samples:
            return gp_sample(self.kernel, ARMS, seed=seed)
        return rkhs_function(self.kernel, ARMS, seed=seed, norm=NORM)

    def policy(self, rounds):
        if self.name == "Theorem 1":
            return nr.gp_ucb(ARMS, self.kernel, noise=NOISE, delta=DELTA)
        if self.delay:
            inflation = "realised" if self.name == "GP-BUCB" else None
            return nr.gp_bucb(ARMS, self.kernel, noise=NOISE, delta=DELTA, inflation=inflation)
        make = nr.igp_ucb if self.name == "IGP-UCB" else nr.gp_ts
        return make(ARMS, self.kernel, noise=NOISE, norm_bound=NORM, horizon=rounds, delta=DELTA)

    def regret_bound(self, rounds, study):
        """The theorem's bound of the cumulative regret, with the largest width and the gain of the whole run."""
        gain, width = study.information_gain, study.width
        if self.on_samples:  # of GP-BUCB the width has its factor exp(C), the one now and not the largest
            return nr.theory.gp_ucb_regret_bound(rounds, width=width, information_gain=gain, noise=NOISE)
        if self.name == "IGP-UCB":
            return nr.theory.igp_ucb_regret_bound(rounds, width=width, information_gain=gain)
        return nr.theory.gp_ts_regret_bound(
            rounds, width=width, information_gain=gain, norm_bound=NORM, log_size=np.log(len(ARMS)), delta=DELTA
        )


NAMES = ("Theorem 1", "IGP-UCB", "GP-TS", "GP-BUCB", "GP-BUCB, not inflated")
CASES = [Case(name, kernel) for name in NAMES for kernel in KERNELS.values()]


class Outcome(NamedTuple):
    """Of one run."""

    failed: bool  # the bounds, anywhere
    tightest: float  # largest |f - mu| / (width sigma) seen
    regret_share: float  # largest regret over its bound at any round


def one_run(case, seed, rounds):
    values = np.asarray(case.function(seed)(ARMS.points))
    noise = NOISE * np.random.default_rng([23, seed]).standard_normal(rounds)
    study = nr.Study(case.policy(rounds), seed=seed)
    tightest, regret, share, waiting = 0.0, 0.0, 0.0, []
    for t in range(rounds):
        mean, std = study.predict()
        # Where nothing is uncertain any more, what is left of |f - mu| is rounding.
        ratio = np.abs(values - mean) / (study.width * np.maximum(std, 1e-9))
        tightest = max(tightest, float(ratio.max()))
        trial = study.ask()
        waiting.append(trial)
        if t >= case.delay:
            due = waiting.pop(0)
            study.tell(due, float(values[due.arm] + noise[due.number]))
        regret += float(values.max() - values[trial.arm])
        share = max(share, regret / case.regret_bound(t + 1, study))
    return Outcome(tightest > 1.0, tightest, share)


class Held(NamedTuple):
    """Whether ranges of the tab Worth hold what is true."""

    best: bool  # the reward of the choice that looks best
    cost: bool  # of learning, against this choice
    gain: bool  # over the first choice


def ranges(policy, seed, rounds):
    values = np.asarray(gp_sample(FEW_KERNEL, FEW, seed=seed)(FEW.points))
    noise = RANGE_NOISE * np.random.default_rng([29, seed]).standard_normal(rounds)
    study = bench.quiet(policy, seed=seed)
    bench.play(study, rounds, lambda trial: float(values[trial.arm] + noise[trial.number]))
    found, total = compare(study), sum(trial.reward for trial in study.trials)
    best, first = rounds * values[study.best().arm], rounds * values[study.trials[0].arm]
    cost, half = found.cost
    return Held(
        abs(best - found.best.total) <= SIDES * found.best.error, abs(best - total - cost) <= half,
        abs(total - first - found.gained[-1]) <= found.gained_half[-1],
    )  # fmt: skip


def main_of_ranges(options):
    given = nr.gp_ucb(FEW, FEW_KERNEL, noise=RANGE_NOISE)
    for name, policy in (("kernel and noise given", given), ("nr.auto", nr.auto(FEW))):
        for rounds in (30, 50, 100):
            held = bench.mapped(options.jobs, ranges, [(policy, seed, rounds) for seed in range(options.runs)])
            shares = ", ".join(f"{key} {share:.3f}" for key, share in Held(*np.mean(held, axis=0))._asdict().items())
            print(f"{name}, {rounds} answers: ranges hold in {shares} of {options.runs} runs")


def band(space, function, seed, rounds):
    """Returns shares of f in 95% bands along a and b through the best trial: of slices, and by `predict`."""
    highs, limits = SPACES[space]
    domain = nr.Space(**{name: nr.Float(0.0, high) for name, high in zip("abc", highs, strict=False)})
    study = nr.Study(nr.auto(domain.where(*limits) if limits else domain), goal="minimize", seed=seed)
    value, size = FUNCTIONS[function], 0.05 if "noise" in function else 0.0
    noises = size * np.random.default_rng([31, seed]).standard_normal(rounds)

    def told(trial):
        return float(value(trial.parameters["a"], trial.parameters["b"]) + noises[trial.number])

    bench.play(study, rounds, told)
    best, held = study.best(), []
    for one in slices_of(study, best, ["a", "b"]):
        at = [{**best.parameters, one.axis.name: each} for each in one.values]
        true = np.array([value(point["a"], point["b"]) for point in at])
        low, high = one.quantiles[[0, -1]]
        lower, upper = study.bounds(at)  # two deviations
        held.append([np.mean((true >= a - 1e-9) & (true <= b + 1e-9)) for a, b in ((low, high), (lower, upper))])
    return np.mean(held, axis=0)


def main_of_bands(options):
    rows = []  # The walk over kernels was chosen on the seeds 0 to 11, so these begin at 300.
    for space in SPACES:
        for function in FUNCTIONS:
            jobs = [(space, function, 300 + run, options.rounds) for run in range(options.runs)]
            rows.append([space, function, *np.mean(bench.mapped(options.jobs, band, jobs), axis=0)])
    print(bench.tabulate(rows, ["", "f", "bands of slices", "study.bounds"], tablefmt="pipe", floatfmt=".2f"))


@bench.command(__doc__)
def main(options):
    if options.bands:
        main_of_bands(options)
        return
    if options.ranges:
        main_of_ranges(options)
        return
    limit = int(binom.ppf(0.95, options.runs, DELTA))
    print(f"{options.runs} runs of {options.rounds} rounds on {len(ARMS)} arms; delta = {DELTA}: more than {limit}")
    print("failures would be significantly too many (one-sided 5%)\n")
    for case in CASES:
        began = time.perf_counter()
        outcomes = bench.mapped(options.jobs, one_run, [(case, seed, options.rounds) for seed in range(options.runs)])
        failures = sum(outcome.failed for outcome in outcomes)
        tightest = np.median([outcome.tightest for outcome in outcomes])
        share = max(outcome.regret_share for outcome in outcomes)
        verdict = "honest" if failures <= limit else "NOT HONEST"
        print(f"{case.name}, {case.kernel}: {failures} of {options.runs} runs fail ({failures / options.runs:.3f}),")
        print(f"   {verdict}; median of the largest |f - mu| / (width sigma): {tightest:.2f}; regret at most")
        print(f"   {share:.4f} of its bound at any round of any run; {time.perf_counter() - began:.0f} s")
