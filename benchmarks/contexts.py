"""What a decision under continuous contexts costs, and whether it stays flat.

    python benchmarks/contexts.py --decisions 10000 --dense 1000 --prefilled 0 --pairs 64 --seed 0
    python benchmarks/contexts.py --decisions 100000 --dense 0       # last 10^4 over first 10^4
    python benchmarks/contexts.py --decisions 1000 --prefilled 10000 # the first kernel after 10,000 known rewards

10 arms, 16 context columns, rewards linear in the context for each arm, noise 0.3, upper bounds of two standard
deviations. CPU time of one `ask` and one `tell`, one BLAS thread, methods in turn by blocks of 100 decisions on the
same contexts and noise. Beside each kernel stands the posterior at the points observed (`dense`), which costs the
square of the decisions before. LinUCB is its arithmetic alone in 15 lines of NumPy, without checks or a record.
Medians of the blocks next to t, and their ratios. What LinUCB itself loses from first to last is the machine's load.
`mean regret` is per decision.
"""

from __future__ import annotations

import time

import bench
import numpy as np

import nilregret as nr
from nilregret.gp import choice
from nilregret.kernels import Intercept, Overlap, RandomFeatures
from nilregret.slots.envelope import ConstantWidth

ARMS, COLUMNS, NOISE, WIDTH, BLOCK = 10, 16, 0.3, 2.0, 100
CONTEXT, ARM = range(COLUMNS), range(COLUMNS, COLUMNS + ARMS)
OPTION = Overlap([0] * ARMS).on(*ARM)


def kernels(pairs):
    """The kernels by name."""
    wave = RandomFeatures(nr.Matern(2.5, 4.0), pairs).on(*CONTEXT)
    return {
        "Linear x Linear": nr.Linear().on(*CONTEXT) * nr.Linear().on(*ARM),
        "Overlap x Linear": OPTION * nr.Linear().on(*CONTEXT),
        f"Overlap x (1 + Linear + {2 * pairs} waves)": OPTION * (Intercept() + nr.Linear().on(*CONTEXT) + wave),
        "Linear x Linear + Linear": nr.Linear().on(*CONTEXT) * (nr.Linear().on(*ARM) + Intercept()),
    }


class LinUCB:
    """A linear model for each arm."""

    def __init__(self):
        self.inverses, self.right = np.stack([np.eye(COLUMNS) / NOISE**2] * ARMS), np.zeros((ARMS, COLUMNS))
        self.means = np.zeros((ARMS, COLUMNS))

    def ask(self, x):
        towards = self.inverses @ x
        return int((self.means @ x + WIDTH * NOISE * np.sqrt(towards @ x)).argmax())

    def tell(self, x, arm, reward):
        direction = self.inverses[arm] @ x
        self.inverses[arm] -= np.outer(direction, direction) / (1.0 + direction @ x)
        self.right[arm] += reward * x
        self.means[arm] = self.inverses[arm] @ self.right[arm]


class Library:
    """A study, with the posterior in features, or at the points observed."""

    def __init__(self, kernel, *, dense):
        self.trial = None
        context = nr.Box([-6.0] * COLUMNS, [6.0] * COLUMNS)
        width = ConstantWidth(value=WIDTH)
        policy = nr.gp_ucb(nr.Arms(np.eye(ARMS)), kernel, noise=NOISE, context=context, width=width)
        features = choice.features_at_points
        if dense:
            choice.features_at_points = lambda *_: None
        try:
            self.study = nr.Study(policy, seed=0)
            self.study.ask([0.0] * COLUMNS)  # the posterior is made
        finally:
            choice.features_at_points = features

    def ask(self, x):
        self.trial = self.study.ask(x)
        return self.trial.arm

    def tell(self, _, __, reward):
        self.study.tell(self.trial, reward)


def play(methods, options):
    """CPU seconds a decision of each block, and the regret, by method."""
    rng = np.random.default_rng(options.seed)
    truth = rng.standard_normal((ARMS, COLUMNS)) / np.sqrt(COLUMNS)
    times, regret = ({name: [] for name in methods} for _ in range(2))
    for start in range(0, options.decisions, BLOCK):
        contexts = np.clip(rng.standard_normal((BLOCK, COLUMNS)), -6.0, 6.0)
        noise, values = NOISE * rng.standard_normal(BLOCK), contexts @ truth.T
        for name, method in methods.items():
            if name.endswith("dense") and start >= options.dense:
                continue
            arms, begin = [], time.process_time()
            for x, error, value in zip(contexts, noise.tolist(), values, strict=True):
                arm = method.ask(x)
                method.tell(x, arm, float(value[arm]) + error)
                arms.append(arm)
            times[name].append((time.process_time() - begin) / BLOCK)
            regret[name].append(float((values.max(axis=1) - values[np.arange(BLOCK), arms]).mean()))
    return times, regret


def prefilled(kernel, count, seed):
    """Median CPU seconds of 20 decisions after so many known rewards, by method."""
    rng, found = np.random.default_rng(seed), {}
    contexts, rewards = rng.standard_normal((count + 20, COLUMNS)), rng.standard_normal(count + 20)
    for dense in (False, True):
        method, times = Library(kernel, dense=dense), []
        for x, reward in zip(contexts[:count], rewards, strict=False):
            method.study.add(np.eye(ARMS)[int(abs(reward) * 1e6) % ARMS], reward, context=np.clip(x, -6.0, 6.0))
        method.ask(contexts[0])  # learns them
        for x, reward in zip(contexts[count:], rewards[count:].tolist(), strict=True):
            begin = time.process_time()
            method.tell(x, method.ask(x), reward)
            times.append(time.process_time() - begin)
        found[dense] = float(np.median(times))
    return found


def last_over_first(times):
    """Ratio of the CPU time of the last 10,000 decisions to that of the first, or of both halves."""
    count = min(10_000 // BLOCK, len(times) // 2)
    return float(np.sum(times[-count:]) / np.sum(times[:count]))


def near(times, t):
    """Median of the blocks next to t, in microseconds, or NaN."""
    block = t // BLOCK - 1
    some = times[max(block - 4, 0) : block + 1]
    return 1e6 * float(np.median(some)) if block < len(times) else np.nan


@bench.command(__doc__)
def main(options):
    methods = {"LinUCB, arithmetic": LinUCB()}
    for name, kernel in kernels(options.pairs).items():
        methods[name] = Library(kernel, dense=False)
        if options.dense:
            methods[f"{name}, dense"] = Library(kernel, dense=True)
    times, regret = play(methods, options)
    ends = sorted({t for t in (100, 1000, options.dense, 10_000, options.decisions) if 0 < t <= options.decisions})
    print("microseconds a decision at t = " + ", ".join(f"{t:,}" for t in ends) + "; mean regret of 1,000 and of all")
    floor = times["LinUCB, arithmetic"]
    for name, each in times.items():
        line = "".join(f"{near(each, t):10.0f}" for t in ends)
        own = regret[name]
        print(f"  {name:36}{line}   {np.mean(own[: 1000 // BLOCK]):.3f}  {np.mean(own):.3f}")
    print("ratios")
    for name in (name for name in times if not name.endswith("dense") and name != "LinUCB, arithmetic"):
        each, dense = times[name], times.get(f"{name}, dense", [])
        line = f"  {name:36} over LinUCB {near(each, options.decisions) / near(floor, options.decisions):.1f}"
        if dense:
            line += (
                f"; dense over it at {options.dense:,}: {near(dense, options.dense) / near(each, options.dense):.1f}"
            )
        ends_of = (last_over_first(each), last_over_first(floor))
        print(f"{line}; last {10_000:,} (or half) over first: {ends_of[0]:.2f}, of LinUCB {ends_of[1]:.2f}")
    if options.prefilled:
        name, kernel = next(iter(kernels(options.pairs).items()))
        found = prefilled(kernel, options.prefilled, options.seed)
        print(
            f"after {options.prefilled:,} known rewards, {name}: {1e6 * found[False]:.0f} us a decision, dense "
            f"{1e6 * found[True]:.0f}: ratio {found[True] / found[False]:.0f}"
        )
