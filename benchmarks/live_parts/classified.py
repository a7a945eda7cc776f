"""Rows with contexts: classes of data sets and a smooth problem, and the peers that play them.

| symbol | meaning | shape |
|---|---|---|
| values | expected reward of each arm in each round; 1 for the class of a data set and else 0 | (T, K) |
| contexts | columns known before the decision, standardised | (T, d) |
| luck | a uniform number a round; the reward is 1 where it is below the value | (T,) |

A learner has `ask(context)`, which returns (token, arm), and `tell(token, reward)`.

Linear peers have a model for each arm over [1, context], prior precision 1. Their exploration is chosen in hindsight on
the very seeds that are shown, of those in `ALPHAS` and `DRAWS`. Vowpal Wabbit has a linear model for each action by
crossing the context with the action (`--ignore_linear` for the context alone), and its learning rate is chosen in
hindsight of those in `RATES`. Each gets contexts that are standardised over the whole data set.
"""

import gzip
import os
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import bench
import numpy as np
from scipy.linalg.blas import dger

import nilregret as nr

ALPHAS = (0.1, 0.25, 0.5, 1.0)  # LinUCB: standard deviations above the mean
DRAWS = (0.05, 0.1, 0.25, 0.5)  # LinTS: how far draws deviate
RATES = (0.5, 2.0)  # Vowpal Wabbit: its default, and what was best on digits
EXPLORERS = {"epsilon": "--epsilon 0.02", "softmax": "--softmax --lambda 50", "bag": "--bag 5"}
BASE = "--cb_explore_adf -q sa --ignore_linear s --quiet"
SETS = {"digits": ("digits", None), "mnist PCA16": ("mnist", 16), "mnist PCA64": ("mnist", 64)}


@dataclass(frozen=True)
class Problem:
    """One seed of one problem."""

    values: np.ndarray
    contexts: np.ndarray
    luck: np.ndarray
    limits: tuple = (-10.0, 10.0)  # of the contexts, in each column or in all

    @property
    def arms(self):
        return self.values.shape[1]

    def played(self, learner):
        """The arms that a learner chooses, (T,)."""
        chosen = np.zeros(len(self.values), dtype=int)
        warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
        for t, context in enumerate(self.contexts):
            token, chosen[t] = learner.ask(context)
            learner.tell(token, float(self.luck[t] < self.values[t, chosen[t]]))
        return chosen


def images():
    """MNIST's 10,000 test images and their labels, or None where the files are not at hand."""
    place = os.environ.get("NILREGRET_DATA")
    folder = Path(place) / "mnist_t10k" if place else Path(__file__).parents[3] / "shared" / "data" / "mnist_t10k"
    names = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
    if not all((folder / name).is_file() for name in names):
        return None
    pixels, labels = (np.frombuffer(gzip.decompress((folder / name).read_bytes()), np.uint8) for name in names)
    return pixels[16:].reshape(-1, 784).astype(float), labels[8:].astype(int)


@cache
def reduced(name, columns):
    """Principal components, standardised, and labels of a data set, or None. All columns where `columns` is None."""
    from sklearn.datasets import load_digits
    from sklearn.decomposition import PCA

    found = images() if name == "mnist" else load_digits(return_X_y=True)
    if found is None:
        return None
    data, labels = found
    if columns is not None:
        data = PCA(columns, svd_solver="full", random_state=0).fit_transform(data)
    data = data[:, data.std(axis=0) > 0.0]
    return (data - data.mean(axis=0)) / data.std(axis=0), labels


def classes(name, columns, rounds, seed):
    """A data set in an order of its own, or None."""
    found = reduced(name, columns)
    if found is None:
        return None
    data, labels = found
    rng = np.random.default_rng([seed, 11])
    order = np.concatenate([rng.permutation(len(data)) for _ in range(-(-rounds // len(data)))])[:rounds]
    limits = data.min(axis=0), data.max(axis=0)
    return Problem(np.eye(10)[labels[order]], data[order], np.full(rounds, 0.5), limits)


def bananas(rounds, seed):
    """A banana between two of the other class. The best rule is right in .915 of the rounds."""
    rng = np.random.default_rng([seed, 12])
    best, x = rng.integers(2, size=rounds), rng.uniform(-1.5, 1.5, rounds)
    side = np.where(best == 1, 0.0, 1.1 * rng.choice([-1.0, 1.0], rounds))
    y = x**2 - 0.75 + side + 0.35 * rng.standard_normal(rounds)
    return Problem(np.eye(2)[best], np.stack([x / 0.87, y / 1.15], axis=1), np.full(rounds, 0.5), (-4.0, 4.0))


# -- who plays -----------------------------------------------------------------------------------------------------


class Ours:
    """A policy of this library, in a study as anybody has it."""

    def __init__(self, policy, **more):
        self._study = bench.quiet(policy, **more)

    def ask(self, context):
        trial = self._study.ask(context)
        return trial, trial.arm

    def tell(self, trial, reward):
        self._study.tell(trial, reward)


class Linear:
    """Ridge regression of each arm; its choice is an upper bound, or a draw."""

    def __init__(self, problem, seed, *, width=0.0, drawn=0.0):
        columns = 1 + problem.contexts.shape[1]
        self._inverse = np.stack([np.eye(columns)] * problem.arms)
        self._weights = np.zeros((problem.arms, columns))
        self._width, self._drawn, self._rng = width, drawn, np.random.default_rng([seed, 21])

    def ask(self, context):
        z = np.append(1.0, context)
        std = np.sqrt(np.maximum((self._inverse @ z) @ z, 0.0))
        noise = self._rng.standard_normal(len(std))
        score = self._weights @ z + std * (self._width + self._drawn * noise) + 1e-9 * noise
        arm = int(score.argmax())
        return (z, arm), arm

    def tell(self, token, reward):
        z, arm = token
        inverse = self._inverse[arm]
        u = inverse @ z
        scale = 1.0 / (1.0 + u @ z)
        dger(-scale, u, u, a=inverse.T, overwrite_a=1)
        self._weights[arm] += u * (scale * (reward - self._weights[arm] @ z))


class Vowpal:
    """Vowpal Wabbit with an explorer of its own."""

    def __init__(self, problem, seed, *, explorer, rate):
        import vowpalwabbit

        self._vw = vowpalwabbit.Workspace(f"{BASE} {EXPLORERS[explorer]} -l {rate} --random_seed {seed}")
        self._actions = [f"|a a{k}" for k in range(problem.arms)]
        self._rng = np.random.default_rng([seed, 22])

    def ask(self, context):
        shared = "shared |s one " + " ".join(f"f{i}:{x:.6g}" for i, x in enumerate(context.tolist()))
        chances = np.array(self._vw.predict([shared, *self._actions]))
        total = chances.cumsum()
        arm = min(int(np.searchsorted(total, self._rng.random() * total[-1], side="right")), len(total) - 1)
        return (shared, arm, chances[arm]), arm

    def tell(self, token, reward):
        shared, arm, chance = token
        told = [shared, *self._actions]
        told[1 + arm] = f"0:{-reward}:{chance} {self._actions[arm]}"
        self._vw.learn(told)


def learners(report):
    """Name, setting, maker and its settings, of `nr.auto` with contexts in the box of their ranges and of the peers."""

    def auto(problem, seed):
        columns = np.ones(problem.contexts.shape[1])
        box = nr.Box(*(end * columns for end in problem.limits))
        return Ours(nr.auto(nr.Arms(np.eye(problem.arms)), context=box, reward="bernoulli"), seed=seed)

    yield "auto", "", auto, {}
    if report.alone:
        return
    yield from (("LinUCB", f"alpha {a:g}", Linear, {"width": a}) for a in ALPHAS)
    yield from (("LinTS", f"v {v:g}", Linear, {"drawn": v}) for v in DRAWS)
    if find_spec("vowpalwabbit") is None:
        print("Vowpal Wabbit is not installed, and is left out: pip install vowpalwabbit.")
        return
    for explorer in EXPLORERS:
        yield from ((f"VW {explorer}", f"-l {r:g}", Vowpal, {"explorer": explorer, "rate": r}) for r in RATES)


# -- rows ----------------------------------------------------------------------------------------------------------


def against_peers(report, row, name, make):
    """Plays `auto` and the peers on each seed; prints their shares and returns `auto`'s mean less the best peer's."""
    problems = {seed: make(seed) for seed in report.seeds()}
    if None in problems.values():
        print(f"{name} is left out: NILREGRET_DATA names no folder with mnist_t10k.\n")
        return None
    best = {}
    for method, setting, learner, settings in learners(report):
        shares = np.array([
            problem.values[np.arange(len(problem.values)), problem.played(learner(problem, seed, **settings))].mean()
            for seed, problem in problems.items()
        ])  # fmt: skip
        report.keep(row, name, f"{method} {setting}".strip(), problems, share=shares)
        if method not in best or shares.mean() > best[method][1].mean():
            best[method] = setting, shares
    ours = best.pop("auto")[1]
    rows = [["auto", "", f"{ours.mean():.3f}", ""]]
    rows += [[m, setting, f"{x.mean():.3f}", bench.difference(ours, x)] for m, (setting, x) in best.items()]
    rounds = len(next(iter(problems.values())).values)
    report.show(f"{name}, {rounds} rounds, {len(problems)} seeds", ["method", "setting", "share", "auto less it"], rows)
    if not best:
        return None
    peer, (_, theirs) = max(best.items(), key=lambda each: each[1][1].mean())
    print(f"auto less the best peer ({peer}): {bench.difference(ours, theirs)}\n")
    return ours.mean() - theirs.mean()


def shares(report):
    """The share right, `auto` against the best of LinUCB, LinTS and Vowpal Wabbit in hindsight."""
    rounds = report.rounds or 3000
    ahead = [
        against_peers(report, "shares", name, lambda s, told=told: classes(*told, rounds, s))
        for name, told in SETS.items()
    ]
    if ahead := [each for each in ahead if each is not None]:
        print(f"goal: at least the best peer - .01 on each ({min(ahead):+.3f}), mean above 0 ({np.mean(ahead):+.3f})\n")


def smooth(report):
    """A banana between two others, and the digits once through in 20 principal components."""
    rounds, few = report.rounds or 2000, min(report.rounds or 1797, 1797)
    name = "bananas (goal .88, the best rule has .915)"
    against_peers(report, "smooth", name, lambda seed: bananas(rounds, seed))
    against_peers(report, "smooth", "digits PCA20 (goal .84)", lambda seed: classes("digits", 20, few, seed))
