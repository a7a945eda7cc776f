"""The problems: what every arm is worth in every round, and what is known before a decision.

| symbol | meaning | shape |
|---|---|---|
| values | expected reward of each arm in each round; 1 for the class of a data set and else 0 | (T, K) |
| contexts | columns known before the decision, standardised | (T, d) |
| luck | a uniform number a round; the reward is 1 where it is below the value | (T,) |
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

VARIABLE = "NILREGRET_DATA"


@dataclass(frozen=True)
class Problem:
    """One seed of one problem."""

    values: np.ndarray
    contexts: np.ndarray
    luck: np.ndarray
    limits: tuple = (-10.0, 10.0)  # of the contexts, in each column or in all
    table: np.ndarray | None = None  # all contexts that there are, where they are few, (n, d)

    @property
    def arms(self):
        return self.values.shape[1]

    def reward(self, t, arm):
        return float(self.luck[t] < self.values[t, arm])

    def got(self, chosen):
        """Expected reward of what was chosen, (T,)."""
        return self.values[np.arange(len(chosen)), chosen]

    def regret(self, chosen):
        return float((self.values.max(axis=1)[: len(chosen)] - self.got(chosen)).sum())


def images():
    """MNIST's 10,000 test images and their labels, or None where the files are not at hand."""
    place = os.environ.get(VARIABLE)
    folder = Path(place) / "mnist_t10k" if place else Path(__file__).parents[3] / "shared" / "data" / "mnist_t10k"
    names = "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"
    if not all((folder / name).is_file() for name in names):
        return None
    pixels, labels = (np.frombuffer(gzip.decompress((folder / name).read_bytes()), np.uint8) for name in names)
    return pixels[16:].reshape(-1, 784).astype(float), labels[8:].astype(int)


def digits():
    from sklearn.datasets import load_digits

    found = load_digits()
    return found.data, found.target


@cache
def reduced(name, columns):
    """Principal components, standardised, and labels of a data set, or None. All columns where `columns` is None."""
    found = {"mnist": images, "digits": digits}[name]()
    if found is None:
        return None
    data, labels = found
    if columns is not None:
        from sklearn.decomposition import PCA

        data = PCA(columns, svd_solver="full", random_state=0).fit_transform(data)
    data = data[:, data.std(axis=0) > 0.0]
    return (data - data.mean(axis=0)) / data.std(axis=0), labels


def classes(name, columns, rounds, seed, *, permuted=False):
    """A data set in an order of its own; permuted: the classes change places after half of the rounds. Or None."""
    found = reduced(name, columns)
    if found is None:
        return None
    data, labels = found
    rng = np.random.default_rng([seed, 11])
    order = np.concatenate([rng.permutation(len(data)) for _ in range(-(-rounds // len(data)))])[:rounds]
    best = labels[order]
    if permuted:
        moved = rng.permutation(10)
        best = np.where(np.arange(rounds) < rounds // 2, best, moved[best])
    return Problem(np.eye(10)[best], data[order], np.full(rounds, 0.5), (data.min(axis=0), data.max(axis=0)))


def bananas(rounds, seed):
    """A banana between two of the other class. The best rule is right in .915 of the rounds."""
    rng = np.random.default_rng([seed, 12])
    best, x = rng.integers(2, size=rounds), rng.uniform(-1.5, 1.5, rounds)
    side = np.where(best == 1, 0.0, 1.1 * rng.choice([-1.0, 1.0], rounds))
    y = x**2 - 0.75 + side + 0.35 * rng.standard_normal(rounds)
    return Problem(np.eye(2)[best], np.stack([x / 0.87, y / 1.15], axis=1), np.full(rounds, 0.5), (-4.0, 4.0))


def banners(rounds, seed, *, arms=8):
    """Clicks of 2 to 12% on banners, under 504 contexts: an hour, a day of the week and one of three devices."""
    rng = np.random.default_rng([seed, 13])
    hours, days, devices = (each.ravel() for each in np.meshgrid(np.arange(24), np.arange(7), np.arange(3)))
    circle = [part(2 * np.pi * each / n) for each, n in ((hours, 24), (days, 7)) for part in (np.cos, np.sin)]
    table = np.stack([*circle, *(devices == i for i in range(3))], axis=1).astype(float)
    table = (table - table.mean(axis=0)) / table.std(axis=0)
    both = np.concatenate([table, table[:, :2] * table[:, 4:5], table[:, :1] * table[:, 2:3]], axis=1)
    score = rng.standard_normal(arms) * 0.3 + both @ rng.standard_normal((both.shape[1], arms)) * 0.3
    rates = 0.02 + 0.1 / (1.0 + np.exp(1.0 - score))
    drawn = rng.integers(len(table), size=rounds)
    return Problem(rates[drawn], table[drawn], rng.random(rounds), table=table)
