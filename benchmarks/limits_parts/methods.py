"""Who is compared: objects with `suggest() -> parameters` and `tell(parameters, value, limits)`, values maximised.

All are as a user would have them who sets nothing but how many limits there are. `best()` is what the method itself
advises: the parameters, or None where it says that nothing feasible was told.
"""

import warnings

import numpy as np
from tuning_parts.methods import RandomSearch
from tuning_parts.peers import Encoded, Optuna
from tuning_parts.runs import Clock

import nilregret as nr


class Feasible:
    """The best of the points that were feasible."""

    feasible = ()

    def keep(self, parameters, value, limits):
        if max(limits) <= 0.0:
            self.feasible = [*self.feasible, (value, parameters)]

    def best(self):
        return max(self.feasible, key=lambda pair: pair[0])[1] if self.feasible else None


class Random(RandomSearch, Feasible):
    """Uniform points."""

    def __init__(self, problem, seed):
        super().__init__(problem.space, seed)

    tell = Feasible.keep


class Policy:
    """A policy of this library, in a study: `make(space, constraints=m)`, or `make(space)` with known limits in it."""

    def __init__(self, problem, seed, make=nr.auto):
        warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
        self.known = problem.limits
        policy = (
            make(problem.space.where(*self.known)) if self.known else make(problem.space, constraints=problem.count)
        )
        self.study = nr.Study(policy, seed=seed)

    def suggest(self):
        self.trial = self.study.ask()
        return dict(self.trial.parameters)

    def tell(self, parameters, value, limits):  # noqa: ARG002 - the trial knows
        self.study.tell(self.trial, value, **({} if self.known else {"constraints": limits}))

    def best(self):
        try:
            return self.study.best().parameters
        except nr.errors.TrialError:
            return None


class GPSampler(Optuna):
    """Optuna's, with limits as it takes them."""

    def __init__(self, problem, seed):
        super().__init__(problem.space, seed, "GPSampler")

    def tell(self, parameters, value, limits):
        trial = self.open.close(parameters)
        for j, limit in enumerate(limits):
            trial.set_constraint(f"g{j}", limit)
        self.study.tell(trial, value)

    def best(self):
        try:
            return dict(self.study.best_trial.params)
        except ValueError:
            return None


class BoTorch(Encoded, Feasible):
    """A thin loop: `SingleTaskGP` for each output, with its defaults, and constrained `qLogNoisyExpectedImprovement`.

    First Sobol points, twice as many as parameters and at least five. Whole numbers and choices are relaxed and
    rounded. Samples, starts and candidates are a quarter of the usual 512, 10 and 512, which take minutes a run.
    """

    SAMPLES, STARTS, CANDIDATES = 128, 3, 128

    def __init__(self, problem, seed):
        super().__init__(problem.space, seed, max(5, 2 * len(problem.space.parameters)))
        self.G = []

    def tell(self, parameters, value, limits):
        super().tell(parameters, value)
        self.G.append(limits)
        self.keep(parameters, value, limits)

    def chosen(self):
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.acquisition.objective import GenericMCObjective
        from botorch.optim import optimize_acqf
        from botorch.sampling import SobolQMCNormalSampler

        X, Y = self.tensor(self.X), self.tensor(np.column_stack([self.y, self.G]))
        acquisition = qLogNoisyExpectedImprovement(
            self.models(X, Y),
            X,
            sampler=SobolQMCNormalSampler(self.torch.Size([self.SAMPLES])),
            objective=GenericMCObjective(lambda Z, X=None: Z[..., 0]),  # noqa: ARG005 - it is called with X
            constraints=[lambda Z, j=j: Z[..., j] for j in range(1, Y.shape[1])],
        )
        point, _ = optimize_acqf(acquisition, self.bounds, q=1, num_restarts=self.STARTS, raw_samples=self.CANDIDATES)
        return point[0].detach().numpy()


METHODS = {"auto": Policy, "random": Random, "gpsampler": GPSampler, "botorch": BoTorch}


def run(problem, method, seed, trials, name):
    """One run, as the cache keeps it.

    A line has `problem`, `method`, `seed`, for every trial the value (`values`) and the largest of its limits
    (`worst`), which of the trials the method calls its best at the end (`advice`: a number; None where it says that
    none is feasible), and the seconds of CPU time that the method took (`cpu`).
    """
    values, worst, asked = [], [], []
    clock = Clock()
    with clock:
        method = method(problem, seed)
    for _ in range(trials):
        with clock:
            parameters = method.suggest()
        asked.append(dict(parameters))
        value, limits = problem.told(parameters)
        values.append(float(f"{value:.10g}"))
        worst.append(float(max(limits)))
        with clock:
            method.tell(parameters, float(value), [float(limit) for limit in limits])
    advised = None if problem.limits else method.best()
    advice = None if advised is None else asked.index(advised)
    return {
        "problem": problem.name, "method": name, "seed": seed, "values": values, "worst": worst, "advice": advice,
        "cpu": clock.cpu,
    }  # fmt: skip
