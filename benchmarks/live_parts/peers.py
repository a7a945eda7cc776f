"""The peers, each short: a decision, and what is learned from its reward.

`ask(context)` returns (token, arm), and the token goes back with the reward: `tell(token, reward)`.

Linear peers have a model for each arm over [1, context], prior precision 1. Their exploration is chosen in hindsight on
the very seeds that are shown, of those in `ALPHAS` and `DRAWS`. Vowpal Wabbit has a linear model for each action by
crossing the context with the action (`--ignore_linear` for the context alone), and its learning rate is chosen in
hindsight of those in `RATES`. Each gets contexts that are standardised over the whole data set.
"""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from scipy.linalg.blas import dger

ALPHAS = (0.1, 0.25, 0.5, 1.0)  # LinUCB: standard deviations above the mean
DRAWS = (0.05, 0.1, 0.25, 0.5)  # LinTS: how far draws deviate
RATES = (0.5, 2.0)  # Vowpal Wabbit: its default, and what was best on digits
EXPLORERS = {"epsilon": "--epsilon 0.02", "softmax": "--softmax --lambda 50", "bag": "--bag 5"}
BASE = "--cb_explore_adf -q sa --ignore_linear s --quiet"


class Linear:
    """Ridge regression of each arm; its choice is an upper bound, or a draw."""

    def __init__(self, problem, seed, *, width=0.0, drawn=0.0, precision=1.0):
        columns = 1 + problem.contexts.shape[1]
        self._inverse = np.stack([np.eye(columns) / precision] * problem.arms)
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


class Beta:
    """Thompson sampling with a beta distribution for each arm, or for each arm under each context."""

    def __init__(self, problem, seed, *, apart=False):
        self._rng, self._arms, self._apart, self._counts = np.random.default_rng([seed, 23]), problem.arms, apart, {}

    def ask(self, context):
        counts = self._counts.setdefault(context.tobytes() if self._apart else b"", np.ones((2, self._arms)))
        arm = int(self._rng.beta(*counts).argmax())
        return (counts, arm), arm

    def tell(self, token, reward):
        counts, arm = token
        counts[0 if reward else 1, arm] += 1.0


class Uniform:
    """Any arm."""

    def __init__(self, problem, seed):
        self._rng, self._arms = np.random.default_rng([seed, 24]), problem.arms

    def ask(self, context):  # noqa: ARG002
        return None, int(self._rng.integers(self._arms))

    def tell(self, token, reward):
        """Learns nothing."""


def linear():
    """Name of a peer, its setting, and what makes it."""
    yield from (("LinUCB", f"alpha {a:g}", Linear, {"width": a}) for a in ALPHAS)
    yield from (("LinTS", f"v {v:g}", Linear, {"drawn": v}) for v in DRAWS)


def vowpal():
    """The same for Vowpal Wabbit, nothing where it is not installed."""
    if find_spec("vowpalwabbit") is not None:
        for explorer in EXPLORERS:
            yield from (
                (f"VW {explorer}", f"-l {rate:g}", Vowpal, {"explorer": explorer, "rate": rate}) for rate in RATES
            )


def missing():
    """A sentence for each peer that is not installed."""
    if find_spec("vowpalwabbit") is None:
        yield "Vowpal Wabbit is not installed, and is left out: pip install vowpalwabbit."
