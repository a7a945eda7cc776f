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


def ruled(space, objectives, parallel=1, answers="prompt", *, score=None, warp=None):
    """`nr.auto` with another score or warp."""
    policy = nr.auto(space, objectives=objectives, parallel=parallel, answers=answers)
    if warp is not None:
        policy = policy.using(refit=replace(policy.refit, warp=warp))
    return policy if score is None else policy.using(score=score)


def _rule(score=None, **more):
    return partial(Policy, make=partial(ruled, score=score, **more))


SLOTS = nr.slots
METHODS = {
    "auto": Policy,
    "random": Random,
    "tpe": partial(Sampler, sampler="TPESampler"),
    "nsga2": partial(Sampler, sampler="NSGAIISampler", population_size=10),
    "gpsampler": partial(Sampler, sampler="GPSampler"),
    "botorch": BoTorch,
    "volume": _rule(SLOTS.HypervolumeImprovement()),
    "scalarised": _rule(SLOTS.ScalarisedImprovement()),
    "scalarised-16": _rule(SLOTS.ScalarisedImprovement(directions=16)),
    "unwarped": _rule(warp="none"),
    "warped": _rule(warp="half-rank"),
}
NEEDS = {
    "tpe": ("optuna",), "nsga2": ("optuna",), "gpsampler": ("optuna", "torch"), "botorch": ("botorch",),
}  # fmt: skip
