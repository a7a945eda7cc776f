"""Who is compared: objects with `suggest() -> parameters` and `tell(parameters, values)`, values to be minimised.

All are as a user would have them who sets nothing, but for NSGA-II, whose population of 50 would be random search, and
for BoTorch's search, which has a quarter of the usual samples, starts and candidates.
"""

import inspect
import warnings
from dataclasses import replace
from functools import partial

from tuning_parts.methods import RandomSearch
from tuning_parts.peers import Encoded, Open, Optuna

import nilregret as nr
from nilregret.slots.envelope import ConstantWidth


class Random(RandomSearch):
    """Uniform points."""

    def __init__(self, problem, seed, _):
        super().__init__(problem.space, seed)


class Sampler(Optuna):
    """A sampler of Optuna."""

    def __init__(self, problem, seed, _, *, sampler, **more):
        super().__init__(problem.space, seed, sampler, ["minimize"] * problem.count, **more)


class Policy:
    """A policy of this library: what `make(space, objectives=k)` gives, told how answers come if it takes that."""

    def __init__(self, problem, seed, told, *, make=nr.auto):
        warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
        takes = inspect.signature(make).parameters
        told = {name: value for name, value in told.items() if name in takes}
        self.study = nr.Study(make(problem.space, objectives=problem.count, **told), seed=seed, goal="minimize")
        self.open = Open()

    def suggest(self):
        trial = self.study.ask()
        return self.open.add(dict(trial.parameters), trial)

    def tell(self, parameters, values):
        self.study.tell(self.open.close(parameters), tuple(values))

    def shown(self):
        """The numbers of the trials that the front shows."""
        return [trial.number for trial in self.study.front()]


class BoTorch(Encoded):
    """A thin loop: a `SingleTaskGP` for each objective and `qLogNoisyExpectedHypervolumeImprovement`.

    First Sobol points, twice as many as parameters and two more. The reference point is what BoTorch infers.
    """

    SAMPLES, STARTS, CANDIDATES = 128, 3, 128

    def __init__(self, problem, seed, _):
        super().__init__(problem.space, seed, 2 * len(problem.space.parameters) + 2)

    def chosen(self):
        from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
        from botorch.optim import optimize_acqf
        from botorch.sampling import SobolQMCNormalSampler
        from botorch.utils.multi_objective.hypervolume import infer_reference_point
        from botorch.utils.multi_objective.pareto import is_non_dominated

        X, Y, pending = self.tensor(self.X), -self.tensor(self.y), self.open.things()
        acquisition = qLogNoisyExpectedHypervolumeImprovement(
            self.models(X, Y),
            infer_reference_point(Y[is_non_dominated(Y)]),
            X,
            sampler=SobolQMCNormalSampler(self.torch.Size([self.SAMPLES])),
            prune_baseline=True,
            X_pending=self.tensor(pending) if pending else None,
        )
        point, _ = optimize_acqf(acquisition, self.bounds, q=1, num_restarts=self.STARTS, raw_samples=self.CANDIDATES)
        return point[0].detach().numpy()


def ruled(space, objectives, parallel=1, answers="prompt", *, warp="none", **parts):
    """`nr.auto` with another warp or other parts."""
    policy = nr.auto(space, objectives=objectives, parallel=parallel, answers=answers)
    return policy.using(refit=replace(policy.refit, warp=warp), **parts)


def _rule(**more):
    return partial(Policy, make=partial(ruled, **more))


METHODS = {
    "auto": Policy,
    "random": Random,
    "tpe": partial(Sampler, sampler="TPESampler"),
    "nsga2": partial(Sampler, sampler="NSGAIISampler", population_size=10),
    "gpsampler": partial(Sampler, sampler="GPSampler"),
    "botorch": BoTorch,
    "volume": _rule(score=nr.slots.HypervolumeImprovement()),
    "scalarised": _rule(score=nr.slots.ScalarisedImprovement()),
    "scalarised-16": _rule(score=nr.slots.ScalarisedImprovement(directions=16)),
    "bound": _rule(score=nr.slots.ScalarisedBound(), confidence=ConstantWidth(value=1.0)),
    "draw": _rule(score=nr.slots.ScalarisedSample()),
    "warped": _rule(warp="half-rank"),
}
NEEDS = {
    "tpe": ("optuna",), "nsga2": ("optuna",), "gpsampler": ("optuna", "torch"), "botorch": ("botorch",),
}  # fmt: skip
