"""Who is compared: objects with `suggest() -> parameters` and `tell(parameters, reward)`, rewards to be maximised.

All are as a user would have them who sets nothing. Peers are imported when they are first used.
"""

import importlib
import warnings
from typing import Any, Protocol

import numpy as np

import noregret as nr


class Method(Protocol):
    """One run of a method on one problem."""

    def suggest(self) -> dict[str, Any]: ...

    def tell(self, parameters: dict[str, Any], reward: float) -> None: ...


class RandomSearch:
    def __init__(self, space, seed):
        self.space, self.rng = space, np.random.default_rng([1, seed])

    def suggest(self):
        point = self.rng.uniform(self.space.lower, self.space.upper)
        return self.space.decode(self.space.snap(point[None])[0])

    def tell(self, parameters, reward):
        pass


class Optuna:
    """A sampler of Optuna with its defaults."""

    def __init__(self, space, seed, sampler):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        self.study = optuna.create_study(direction="maximize", sampler=getattr(optuna.samplers, sampler)(seed=seed))
        self.distributions, self.options = {}, {}
        distributions = optuna.distributions
        for name, parameter in space.parameters.items():
            if isinstance(parameter, nr.Choice):
                self.distributions[name] = distributions.CategoricalDistribution(parameter.options)
                continue
            kind = distributions.FloatDistribution if isinstance(parameter, nr.Float) else distributions.IntDistribution
            self.distributions[name] = kind(parameter.low, parameter.high, log=parameter.log)

    def suggest(self):
        self.trial = self.study.ask(self.distributions)
        return dict(self.trial.params)

    def tell(self, parameters, reward):  # noqa: ARG002 - it knows which trial it asked
        self.study.tell(self.trial, reward)


class BoTorch:
    """A thin loop: `SingleTaskGP` and `qLogNoisyExpectedImprovement` with their defaults in the encoded unit cube.

    First Sobol points, twice as many as parameters and at least five (Ax's number). Whole numbers and choices are
    relaxed, and rounded to the nearest afterwards; standardised outcomes are the model's default.
    """

    def __init__(self, space, seed):
        import torch
        from botorch.utils.sampling import draw_sobol_samples

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        warnings.simplefilter("ignore")
        self.space, self.torch = space, torch
        self.bounds = torch.tensor(np.array([space.lower, space.upper]), dtype=torch.double)
        first = draw_sobol_samples(self.bounds, max(5, 2 * len(space.parameters)), 1, seed=seed)[:, 0].numpy()
        self.first = list(first)
        self.X, self.y = [], []

    def suggest(self):
        point = self.first.pop(0) if self.first else self._next()
        self.X.append(self.space.snap(np.clip(point, self.space.lower, self.space.upper)[None])[0])
        return self.space.decode(self.X[-1])

    def _next(self):
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from botorch.optim import optimize_acqf
        from gpytorch.mlls import ExactMarginalLogLikelihood

        X = self.torch.tensor(np.array(self.X), dtype=self.torch.double)
        y = self.torch.tensor(np.array(self.y), dtype=self.torch.double)[:, None]
        model = SingleTaskGP(X, y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        acquisition = qLogNoisyExpectedImprovement(model, X)
        point, _ = optimize_acqf(acquisition, self.bounds, q=1, num_restarts=10, raw_samples=512)
        return point[0].detach().numpy()

    def tell(self, parameters, reward):  # noqa: ARG002 - it knows which point it suggested
        self.y.append(reward)


class Policy:
    """A policy of this library, in a study."""

    def __init__(self, space, seed, make):
        self.study = nr.Study(make(space), seed=seed)

    def suggest(self):
        self.trial = self.study.ask()
        return self.trial.parameters

    def tell(self, parameters, reward):  # noqa: ARG002 - it knows which trial it asked
        self.study.tell(self.trial, reward)


def expected_improvement(space):
    """The plainest policy for this without being told anything: EI, refitted."""
    return nr.expected_improvement(
        space, nr.Matern(2.5, [0.5] * space.dimension), noise=0.05, refit=nr.Refit(every=3, restarts=4)
    )


def named(dotted):
    """What `module:name` or `module.name` names."""
    module, _, name = dotted.replace(":", ".").rpartition(".")
    return getattr(importlib.import_module(module), name)


METHODS = {
    "random": RandomSearch,
    "tpe": lambda space, seed: Optuna(space, seed, "TPESampler"),
    "gpsampler": lambda space, seed: Optuna(space, seed, "GPSampler"),
    "botorch": BoTorch,
    "ei": lambda space, seed: Policy(space, seed, expected_improvement),
}


def add_policy(text):
    """Make a method of `name=dotted`, where the dotted name gives the policy of a space."""
    name, _, dotted = text.partition("=")
    METHODS[name] = lambda space, seed: Policy(space, seed, named(dotted))


def add_method(text):
    """Make a method of `name=dotted`, where the dotted name, called with a space and a seed, gives a `Method`."""
    name, _, dotted = text.partition("=")
    METHODS[name] = lambda space, seed: named(dotted)(space, seed)
