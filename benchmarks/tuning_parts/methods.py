"""Who is compared: objects with `suggest() -> parameters` and `tell(parameters, reward)`, rewards to be maximised.

All are as a user would have them who sets nothing. Several suggestions may be open at once; `tell` is given the very
dict that `suggest` gave. A method with `recommended() -> parameters` says which point a user takes under noise; of the
others it is the one that was told the best reward. Peers are imported when they are first used (`peers.py`).
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import nilregret as nr

from .peers import BoTorch, CmaEs, Open, Optuna, Turbo


class RandomSearch:
    def __init__(self, space, seed):
        self.space, self.rng = space, np.random.default_rng([1, seed])

    def suggest(self):
        point = self.rng.uniform(self.space.lower, self.space.upper)
        return self.space.decode(self.space.snap(point[None])[0])

    def tell(self, parameters, reward):
        pass


class Policy:
    """A policy of this library, in a study: what `make(space)` gives, or `make(space, parallel=workers)` if it can."""

    def __init__(self, space, seed, make, workers=1):
        told = {"parallel": workers} if "parallel" in inspect.signature(make).parameters else {}
        self.study, self.open = nr.Study(make(space, **told), seed=seed), Open()

    def suggest(self):
        trial = self.study.ask()
        return self.open.add(dict(trial.parameters), trial)

    def tell(self, parameters, reward):
        self.study.tell(self.open.close(parameters), reward)

    def recommended(self):
        return self.study.best().parameters


def expected_improvement(space):
    """The plainest policy for this without being told anything: EI, refitted."""
    return nr.expected_improvement(
        space, nr.Matern(2.5, [0.5] * space.dimension), noise=0.05, refit=nr.slots.Refit(every=3, restarts=4)
    )


def named(dotted):
    """What `module:name` or `module.name` names."""
    module, _, name = dotted.replace(":", ".").rpartition(".")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class OfPolicy:
    """What makes the method of a policy."""

    make: Callable[..., Any]

    def __call__(self, space, seed, workers=1):
        return Policy(space, seed, self.make, workers)


METHODS = {
    "random": RandomSearch,
    "tpe": lambda space, seed: Optuna(space, seed, "TPESampler"),
    "gpsampler": lambda space, seed: Optuna(space, seed, "GPSampler"),
    "cmaes": CmaEs,
    "botorch": BoTorch,
    "turbo": Turbo,
    "auto": OfPolicy(nr.auto),
    "ei": OfPolicy(expected_improvement),
}


def begun(name, space, seed, workers=1):
    """A method at the beginning of a run; policies alone are told how many evaluations will be in flight."""
    make = METHODS[name]
    return make(space, seed, workers) if isinstance(make, OfPolicy) else make(space, seed)


def add_policy(text):
    """Make a method of `name=dotted`, where the dotted name gives the policy of a space."""
    name, _, dotted = text.partition("=")
    METHODS[name] = OfPolicy(named(dotted))
