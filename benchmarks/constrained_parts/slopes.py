"""Runs of `nr.Safe(slope=)` in worlds whose slopes and noise bound are known, told rightly or wrongly."""

import contextlib
from dataclasses import dataclass, replace
from typing import NamedTuple

import bench
import numpy as np

import nilregret as nr
from nilregret.slots.slopes import SlopeState

STD, BOUND = 0.05, 0.15  # of the noise: normal, clipped at three standard deviations
SHAPES = {  # arms, their grid, the lengthscale
    "line": (nr.Arms.grid(0, 1, 60), (60,), 0.12),
    "square": (bench.square(15), (15, 15), 0.3),
    "fine square": (bench.square(25), (25, 25), 0.3),
}
NOISES = {
    "clipped": lambda rng: STD * np.clip(rng.standard_normal(), -3, 3),
    "uniform": lambda rng: rng.uniform(-BOUND, BOUND),
    "edges": lambda rng: rng.choice([-BOUND, BOUND]),
    "low": lambda rng: -BOUND,  # noqa: ARG005  it always looks safer than it is
}


@dataclass(frozen=True)
class Rule:
    """What is told of a world: slope and noise bound as factors of the true ones. No slope: a kernel and a scale."""

    slope: float | None = 1.0
    bound: float = 1.0
    caution: float | None = None  # None is the default
    lengthscale: float = 1.0  # of the model, as a factor
    noise: str = "clipped"

    def __str__(self):
        if self.slope is None:
            return "kernel and scale" + (f", lengthscale x {self.lengthscale:g}" if self.lengthscale != 1.0 else "")
        said = [f"slope x {self.slope:g}"]
        said += [f"E x {self.bound:g}"] if self.bound != 1.0 else []
        said += [f"caution {self.caution:g}"] if self.caution is not None else []
        said += [f"lengthscale x {self.lengthscale:g}"] if self.lengthscale != 1.0 else []
        said += [f"noise {self.noise}"] if self.noise != "clipped" else []
        return ", ".join(said)


class World:
    """Samples f and g of a process, the safest arm at -1, and the least slopes that g has."""

    def __init__(self, shape, seed):
        self.seed, self.shape = seed, shape
        self.arms, grid, self.lengthscale = SHAPES[shape]
        root = _root(shape)
        rng = np.random.default_rng([seed, 21])
        self.f, g = root @ rng.standard_normal(len(root)), root @ rng.standard_normal(len(root))
        self.start = int(g.argmin())
        self.g = g - g.min() - 1.0
        steps = [np.abs(np.diff(self.g.reshape(grid), axis=axis)).max() for axis in range(len(grid))]
        self.slope = [step * (side - 1) for step, side in zip(steps, grid, strict=True)]
        self.best = self.f[self.g <= 0].max()

    def policy(self, rule):
        kernel = nr.SquaredExponential(rule.lengthscale * self.lengthscale)
        start = self.arms.points[[self.start]]
        if rule.slope is None:
            part = nr.Safe(start=start, scale="kernel", noise=STD)
        else:
            more = {} if rule.caution is None else {"caution": rule.caution}
            slope = [rule.slope * each for each in self.slope]
            part = nr.Safe(start=start, slope=slope, noise=rule.bound * BOUND, **more)
        return nr.gp_ucb(self.arms, kernel, noise=STD, constraints=part)


ROOTS = {}


def _root(shape):
    if shape not in ROOTS:
        arms, _, lengthscale = SHAPES[shape]
        ROOTS[shape] = bench.root(nr.SquaredExponential(lengthscale), arms.points)
    return ROOTS[shape]


class Run(NamedTuple):
    """The violations of a run, its regret, and the number of trials before it was refuted, or None."""

    unsafe: np.ndarray
    regret: float
    refuted: int | None


@contextlib.contextmanager
def blind():
    """Lets studies overlook what refutes them."""
    check = SlopeState._check
    SlopeState._check = lambda *_: None
    try:
        yield
    finally:
        SlopeState._check = check


def played(world, rule, rounds):
    """Returns the run of a rule. After it is refuted, the point of `start` is played."""
    study = bench.quiet(world.policy(rule), seed=world.seed)
    rng, noise, arms = np.random.default_rng([world.seed, 22]), NOISES[rule.noise], []
    for _ in range(rounds):
        errors = STD * rng.standard_normal(), noise(rng)
        try:
            trial = study.ask()
        except nr.errors.NoRegretError:
            break
        arms.append(trial.arm)
        study.tell(trial, world.f[trial.arm] + errors[0], constraints=[world.g[trial.arm] + errors[1]])
    refuted = len(arms) if "refuted" in study.remarks else None
    arms += [world.start] * (rounds - len(arms))
    return Run(world.g[arms] > 0, float(world.best - world.f[arms].mean()), refuted)


RULES = (
    Rule(None), Rule(None, lengthscale=2.0),
    Rule(), Rule(2.0), Rule(noise="uniform"), Rule(noise="edges"), Rule(noise="low"), Rule(lengthscale=2.0),
    Rule(0.5), Rule(0.25), Rule(bound=0.5), Rule(0.5, lengthscale=2.0),
    Rule(caution=1.0), Rule(0.5, caution=1.0), Rule(0.25, caution=1.0), Rule(bound=0.5, caution=1.0),
    Rule(caution=2.0), Rule(0.5, caution=2.0), Rule(0.5, caution=2.0, lengthscale=2.0),
)  # fmt: skip
HEAD = (
    "told", "runs with a violation", "rounds", "regret a round", "refuted", "bare and blind: violate",
    "of these unharmed", "of these refuted unharmed",
)  # fmt: skip


def report(seeds, rounds):
    """Prints what each rule does, and in the runs that slopes alone harm (`caution` 1) if nobody refutes them."""
    print(f"slopes: T = {rounds}, E = {BOUND:g}, {len(seeds)} runs, half of them on a square, seeds from {seeds[0]}")
    worlds = [World(("line", "square")[i % 2], seed) for i, seed in enumerate(seeds)]
    rows, regrets, harmed = [], {}, {}
    for rule in RULES:
        runs = [played(world, rule, rounds) for world in worlds]
        regrets[rule] = np.array([run.regret for run in runs])
        rows.append([str(rule), *_said(rule, runs, regrets[rule]), *_spared(rule, runs, worlds, rounds, harmed)])
    bench.table("", HEAD, rows)
    paired = (RULES[0], Rule(), Rule(caution=1.0), Rule(lengthscale=2.0))
    fine = [World("fine square", seed) for seed in seeds[: max(len(seeds) // 4, 2)]]
    shapes = {"line": slice(0, None, 2), "square": slice(1, None, 2)}
    each = {shape: [regrets[rule][part] for rule in paired] for shape, part in shapes.items()}
    each["fine square"] = [np.array([played(world, rule, rounds).regret for world in fine]) for rule in paired]
    print("regret a round less that of the kernel and scale:")
    for shape, (today, *others) in each.items():
        for rule, found in zip(paired[1:], others, strict=True):
            if len(today):
                said = bench.difference(found, today)
                print(f"{shape}, {rule}: {said} of {today.mean():.3f}, {len(today)} runs", flush=True)


def _said(rule, runs, regrets):
    rounds = sum(len(run.unsafe) for run in runs)
    return (
        f"{sum(run.unsafe.any() for run in runs)} of {len(runs)}",
        f"{sum(run.unsafe.sum() for run in runs)} of {rounds}",
        f"{regrets.mean():.3f} +- {bench.error(regrets):.3f}",
        "" if rule.slope is None else sum(run.refuted is not None for run in runs),
    )


def _spared(rule, runs, worlds, rounds, known):
    """Returns the number of runs that slopes alone harm if nobody refutes them, and what becomes of them."""
    if rule.slope is None or min(rule.slope, rule.bound) >= 1.0:
        return ("", "", "")
    bare = replace(rule, caution=1.0)
    if bare not in known:
        with blind():
            known[bare] = [played(world, bare, rounds).unsafe.any() for world in worlds]
    met = [run for run, harm in zip(runs, known[bare], strict=True) if harm]
    kept = [not run.unsafe.any() for run in met]
    told = [run.refuted is not None and not run.unsafe.any() for run in met]
    return (len(met), *(f"{sum(each)} ({np.mean(each or [1.0]):.0%})" for each in (kept, told)))
