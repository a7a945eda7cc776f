"""The peers with their defaults, each imported when a run of it begins (Optuna, CMA-ES, BoTorch, TuRBO)."""

import warnings

import numpy as np

import nilregret as nr


class Open:
    """What belongs to the suggestions that are not yet told; of a dict that `suggest` gave, by its identity."""

    def __init__(self):
        self.kept = {}

    def add(self, parameters, thing):
        """Keep it, and return the parameters."""
        self.kept[id(parameters)] = (parameters, thing)  # the dict too: no other gets its identity meanwhile
        return parameters

    def close(self, parameters):
        return self.kept.pop(id(parameters))[1]

    def things(self):
        return [thing for _, thing in self.kept.values()]


class Optuna:
    """A sampler of Optuna with its defaults."""

    def __init__(self, space, seed, sampler, directions=("maximize",), **more):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        made = getattr(optuna.samplers, sampler)(seed=seed, **more)
        self.study = optuna.create_study(directions=directions, sampler=made)
        self.distributions, self.open, self.conditions = {}, Open(), space.conditions
        distributions = optuna.distributions
        for name, parameter in space.parameters.items():
            if isinstance(parameter, nr.Choice):
                self.distributions[name] = distributions.CategoricalDistribution(parameter.options)
                continue
            kind = distributions.FloatDistribution if isinstance(parameter, nr.Float) else distributions.IntDistribution
            self.distributions[name] = kind(parameter.low, parameter.high, log=parameter.log)

    def suggest(self):
        if self.conditions is None:
            trial = self.study.ask(self.distributions)
        else:  # its own way with conditions: a parameter is suggested where it counts
            trial = self.study.ask()
            for name, parameter in self.conditions.parameters.items():
                if not self.conditions.is_active(name, trial.params):
                    continue
                if isinstance(parameter, nr.Choice):
                    trial.suggest_categorical(name, parameter.options)
                else:
                    suggest = trial.suggest_float if isinstance(parameter, nr.Float) else trial.suggest_int
                    suggest(name, parameter.low, parameter.high, log=parameter.log)
        return self.open.add(dict(trial.params), trial)

    def tell(self, parameters, reward):
        self.study.tell(self.open.close(parameters), reward)


class CmaEs:
    """CMA-ES of the package `cmaes` in the encoded cube, with bounds and its own population of 4 + 3 log d.

    From the centre, with a deviation of a sixth of the sides, as Optuna's `CmaEsSampler`; a run that has converged
    begins anew at a random point with twice the population (IPOP), which the sampler does not. Whole numbers and
    choices are rounded to the nearest.
    """

    SIGMA = 1.0 / 6.0

    def __init__(self, space, seed):
        self.space, self.open, self.told = space, Open(), []
        self.bounds = np.column_stack([space.lower, space.upper])
        self.rng = np.random.default_rng(seed)
        self.begin(self.bounds.mean(axis=1), None)

    def begin(self, mean, population):
        import cmaes

        seed = int(self.rng.integers(2**31))
        self.search = cmaes.CMA(mean, self.SIGMA, bounds=self.bounds, seed=seed, population_size=population)

    def suggest(self):
        point = self.search.ask()
        snapped = self.space.snap(np.clip(point, *self.bounds.T)[None])[0]
        return self.open.add(self.space.decode(snapped), point)

    def tell(self, parameters, reward):
        self.told.append((self.open.close(parameters), -reward))
        if len(self.told) < self.search.population_size:
            return
        self.search.tell(self.told)
        self.told = []
        if self.search.should_stop():
            self.begin(self.rng.uniform(*self.bounds.T), 2 * self.search.population_size)


class Encoded:
    """What works in the encoded cube: points are rounded to what the space has; first come Sobol points."""

    def __init__(self, space, seed, initial):
        import torch

        torch.set_num_threads(1)
        torch.manual_seed(seed)
        warnings.simplefilter("ignore")
        self.space, self.torch, self.open = space, torch, Open()
        self.bounds = torch.tensor(np.array([space.lower, space.upper]), dtype=torch.double)
        self.first, self.X, self.y = self.sobol(initial, seed), [], []

    def sobol(self, count, seed):
        from botorch.utils.sampling import draw_sobol_samples

        return list(draw_sobol_samples(self.bounds, count, 1, seed=seed)[:, 0].numpy())

    def tensor(self, rows):
        return self.torch.tensor(np.array(rows), dtype=self.torch.double)

    def models(self, X, Y):
        """A process for each column of Y, fitted."""
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import ModelListGP, SingleTaskGP
        from gpytorch.mlls import SumMarginalLogLikelihood

        model = ModelListGP(*(SingleTaskGP(X, Y[:, [j]]) for j in range(Y.shape[1])))
        fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
        return model

    def suggest(self):
        point = self.first.pop(0) if self.first else self.chosen()
        point = self.space.snap(np.clip(point, self.space.lower, self.space.upper)[None])[0]
        return self.open.add(self.space.decode(point), point)

    def tell(self, parameters, reward):
        self.X.append(self.open.close(parameters))
        self.y.append(reward)


class BoTorch(Encoded):
    """A thin loop: `SingleTaskGP` and `qLogNoisyExpectedImprovement` with their defaults in the encoded unit cube.

    First Sobol points, twice as many as parameters and at least five (Ax's number). Whole numbers and choices are
    relaxed, and rounded to the nearest afterwards; standardised outcomes are the model's default.
    """

    def __init__(self, space, seed):
        super().__init__(space, seed, max(5, 2 * len(space.parameters)))

    def fitted(self):
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.mlls import ExactMarginalLogLikelihood

        X = self.tensor(self.X)
        model = SingleTaskGP(X, self.tensor(self.y)[:, None])
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        return model, X

    def recommended(self):
        """The point of the highest posterior mean of those tried."""
        model, X = self.fitted()
        return self.space.decode(self.X[int(model.posterior(X).mean[:, 0].argmax())])

    def chosen(self):
        from botorch.acquisition.logei import qLogNoisyExpectedImprovement
        from botorch.optim import optimize_acqf

        (model, X), pending = self.fitted(), self.open.things()
        acquisition = qLogNoisyExpectedImprovement(model, X, X_pending=self.tensor(pending) if pending else None)
        point, _ = optimize_acqf(acquisition, self.bounds, q=1, num_restarts=10, raw_samples=512)
        return point[0].detach().numpy()


class Turbo(Encoded):
    """TuRBO-1 of Eriksson et al. (2019), "Scalable Global Optimization via Local Bayesian Optimization".

    Thompson sampling in a trust region around the best point, a Matern-5/2 process of BoTorch fitted at every trial to
    what this region has seen. Lengths and number of candidates are the paper's; 2 d Sobol points to begin with, bounds
    of the fit and the tolerance of ten successes are those of BoTorch's tutorial (the paper has three).
    """

    START, SHORTEST, LONGEST, SUCCESSES = 0.8, 0.5**7, 1.6, 10

    def __init__(self, space, seed):
        self.dimension, self.seed = len(space.lower), seed
        super().__init__(space, seed, 2 * self.dimension)
        self.patience = max(4, self.dimension)  # failures in a row, at one evaluation a round
        self.restart()

    def restart(self):
        self.length, self.successes, self.failures, self.begun = self.START, 0, 0, len(self.y)

    def tell(self, parameters, reward):
        super().tell(parameters, reward)
        seen = self.y[self.begun :]
        if len(seen) <= 2 * self.dimension:
            return
        best = max(seen[:-1])
        better = reward > best + 1e-3 * abs(best)
        self.successes, self.failures = (self.successes + 1, 0) if better else (0, self.failures + 1)
        if self.successes == self.SUCCESSES:
            self.length, self.successes = min(2.0 * self.length, self.LONGEST), 0
        elif self.failures == self.patience:
            self.length, self.failures = self.length / 2.0, 0
        if self.length < self.SHORTEST:
            self.restart()
            self.seed += 1000
            self.first = self.sobol(2 * self.dimension, self.seed)

    def fitted(self, X, y):
        from botorch.exceptions import ModelFittingError
        from botorch.fit import fit_gpytorch_mll
        from botorch.models import SingleTaskGP
        from gpytorch.constraints import Interval
        from gpytorch.kernels import MaternKernel, ScaleKernel
        from gpytorch.likelihoods import GaussianLikelihood
        from gpytorch.mlls import ExactMarginalLogLikelihood

        stationary = MaternKernel(nu=2.5, ard_num_dims=self.dimension, lengthscale_constraint=Interval(0.005, 4.0))
        likelihood = GaussianLikelihood(noise_constraint=Interval(1e-8, 1e-3))
        model = SingleTaskGP(X, y, covar_module=ScaleKernel(stationary), likelihood=likelihood)
        try:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:  # of points that rounding has made equal, say: with what the fit began with
            model.eval()
        return model, stationary.lengthscale.detach()[0]

    def chosen(self):
        import gpytorch

        X, y = self.tensor(self.X[self.begun :]), self.tensor(self.y[self.begun :])[:, None]
        model, lengthscales = self.fitted(X, y)
        # L_i = lambda_i L / (prod_j lambda_j)^(1/d), section 2 of the paper
        sides = self.length * lengthscales / lengthscales.log().mean().exp()
        with self.torch.no_grad(), gpytorch.settings.max_cholesky_size(10_000):
            candidates = self.candidates(X[y.argmax()], sides)
            return candidates[model.posterior(candidates).rsample()[0, :, 0].argmax()].numpy()

    def candidates(self, centre, sides):
        """Sobol points of the region, of which each coordinate moves with probability min(1, 20 / d)."""
        torch = self.torch
        low = torch.maximum(centre - sides / 2.0, self.bounds[0])
        high = torch.minimum(centre + sides / 2.0, self.bounds[1])
        count = min(100 * self.dimension, 5000)
        seed = int(torch.randint(2**31, (1,)))
        points = torch.quasirandom.SobolEngine(self.dimension, scramble=True, seed=seed).draw(count).to(centre)
        moves = torch.rand(count, self.dimension) < min(1.0, 20.0 / self.dimension)
        moves[torch.arange(count), torch.randint(self.dimension, (count,))] = True
        return torch.where(moves, low + (high - low) * points, centre)
