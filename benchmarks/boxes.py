"""Boxes against BoTorch (and scikit-learn, where it fits), as ratios within one run.

    python benchmarks/boxes.py --only ask tell fit hartmann --seed 0 --sizes 1000 3000 --rounds 10 --lengthscale 0.3
        --scale 0.2 [--no-memory] --tell-size 3000 --fit-sizes 200 1000 --repeats 3 --seeds 20 --jobs 1
        --evaluations 300 --every 10 --width 2.0 --peer-kernel matern|rbf
    python benchmarks/boxes.py --only ask --sizes 1000 3000 10000 --rounds 3
    python benchmarks/boxes.py --only hartmann --seeds 20 --jobs 2

Needs botorch and scikit-learn. Everything runs on one thread and in double precision; times are CPU times.

1. `ask`: GP-UCB on [0, 1]^2, Matern-5/2 of a given lengthscale, noise 0.1, nothing fitted, n random observations. Each
   round both get one new random observation and what the last trial brought; then nilregret's `study.ask()` is timed,
   which takes both in, and BoTorch's `optimize_acqf` of the same upper bound (same width) on a model of the same data
   (10 restarts, 512 raw samples), which is conditioned, caches and all, before the clock starts. Both chosen points are
   then valued by nilregret's exact posterior, which is compared with BoTorch's there. At the largest n, the peak memory
   of one process each that takes in the data and asks once (Linux).
2. `tell`: one new observation at n, all of what it causes: `study.add` without a storage (the study takes it in at the
   next question), the new row of the factor, the next entry of L^{-1} y (with which predictions and decisions in two
   dimensions do), and the standing candidates of the search; against `condition_on_observations` of a model whose
   caches exist.
3. `fit`: maximum likelihood of six lengthscales, a scale and the noise, Matern-5/2; same data and same start. The peers
   start once; nilregret once, and three times (its default). Log likelihoods are totals, as each library reports it.
4. `hartmann`: Hartmann-6 with noise 0.1, ten shared random points and then GP-UCB of a fixed width, a fit every few
   evaluations; same noise. Both have a Matern-5/2 kernel under the priors of Hvarfner et al. 2024 on rewards that are
   standardised at each fit. BoTorch is built anew with the last fit's hyperparameters between fits. Simple regret is of
   the best true value among the points evaluated; times are of the whole loop.
"""

import warnings
from statistics import median

import bench
import numpy as np

import nilregret as nr
from nilregret.environments import hartmann6
from nilregret.gp import CandidateMoments, PointPosterior
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.refit import Refit
from nilregret.study.curves import interval

NOISE = 0.1


# -- BoTorch, imported late: a process that measures nilregret's memory has none of it -----------------------------


def timed(call):
    (seconds,), result = bench.timed(call)
    return seconds, result


def span(ratios):
    return f"{median(ratios):.1f} times faster (median; {min(ratios):.1f} to {max(ratios):.1f})"


def torch_one_thread():
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    return torch


def fixed_model(X, y, lengthscale):
    """The exact posterior at given hyperparameters: no transforms, no scale, mean 0; its caches exist."""
    torch = torch_one_thread()
    from botorch.models import SingleTaskGP
    from gpytorch.kernels import MaternKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.means import ZeroMean

    model = SingleTaskGP(
        torch.tensor(X, dtype=torch.double),
        torch.tensor(y, dtype=torch.double)[:, None],
        likelihood=GaussianLikelihood(),
        covar_module=MaternKernel(nu=2.5),
        mean_module=ZeroMean(),
        outcome_transform=None,
    )
    model.to(torch.double)
    model.covar_module.lengthscale = lengthscale
    model.likelihood.noise = NOISE**2
    model.eval()
    botorch_predict(model, X[:2])
    return model


def botorch_predict(model, X):
    torch = torch_one_thread()
    with torch.no_grad():
        posterior = model.posterior(torch.tensor(X, dtype=torch.double))
        return posterior.mean[:, 0].numpy(), posterior.variance[:, 0].sqrt().numpy()


def botorch_ask(model, width, dimension):
    torch = torch_one_thread()
    from botorch.acquisition import UpperConfidenceBound
    from botorch.optim import optimize_acqf

    bounds = torch.tensor([[0.0] * dimension, [1.0] * dimension], dtype=torch.double)
    acquisition = UpperConfidenceBound(model, beta=width**2)
    point, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
    return point[0].detach().numpy()


# -- 1. ask -------------------------------------------------------------------------------------------------------


def smooth(X):
    return np.sin(6.0 * X[:, 0]) * np.cos(4.0 * X[:, 1]) + 0.5 * np.sin(11.0 * X[:, 0] + 7.0 * X[:, 1])


class Feed:
    """Random points of the unit square, and noisy rewards."""

    def __init__(self, *seed):
        self.rng = np.random.default_rng(seed)

    def reward(self, X):
        """What is observed at `(n, 2)` points."""
        return smooth(X) + NOISE * self.rng.standard_normal(len(X))

    def draw(self, n):
        """Points and rewards."""
        X = self.rng.uniform(size=(n, 2))
        return X, self.reward(X)


def filled(X, y, lengthscale, scale):
    kernel = nr.Matern(2.5, lengthscale)
    study = nr.Study(nr.gp_ucb(nr.Box([0, 0], [1, 1]), kernel, noise=NOISE, scale=scale))
    for x, reward in zip(X, y, strict=True):
        study.add(x, reward)
    return study


def ask_round(study, feed, X, y, lengthscale):
    """One paired round: times, values by our posterior, and how far the two posteriors are apart; the data so far."""
    x, reward = feed.draw(1)
    study.add(x[0], reward[0])
    X, y = np.vstack([X, x]), np.append(y, reward)
    width = study.policy.confidence.width(len(study.trials) + 1, None)  # of the question that comes now
    own, trial = timed(study.ask)
    model = fixed_model(X, y, lengthscale)
    peer, point = timed(lambda: botorch_ask(model, width, 2))
    both = np.array([trial.point, np.clip(point, 0.0, 1.0)])
    mean, std = study.predict(both)
    their_mean, their_std = botorch_predict(model, both)
    apart = max(np.abs(mean - their_mean).max(), np.abs(std - their_std).max())
    answer = feed.reward(both[:1])
    study.tell(trial, answer[0])
    return (own, peer, *(mean + width * std), apart), np.vstack([X, both[:1]]), np.append(y, answer)


def ask(options):
    print(f"1. ask: [0, 1]^2, Matern-5/2, lengthscale {options.lengthscale:g}, beta_t scaled by {options.scale:g}")
    for n in options.sizes:
        ask_at(n, options)
    if not options.no_memory:
        n = max(options.sizes)
        given = n, options.seed, options.lengthscale, options.scale
        ours, theirs = (bench.apart(peak, who, *given) for who in ("nilregret", "botorch"))
        print(
            f"   peak memory at n = {n}, data and one ask: nilregret {ours:.0f} MB, BoTorch {theirs:.0f} MB: "
            f"ratio {theirs / ours:.1f}",
            flush=True,
        )


def peak(who, n, seed, lengthscale, scale):
    X, y = Feed(n, seed).draw(n)
    if who == "nilregret":
        filled(X, y, lengthscale, scale).ask()
    else:
        botorch_ask(fixed_model(X, y, lengthscale), 2.0, 2)
    return bench.peak()


def ask_at(n, options):
    feed = Feed(n, options.seed)
    X, y = feed.draw(n)
    filling, study = timed(lambda: filled(X, y, options.lengthscale, options.scale))
    warming, trial = timed(study.ask)
    answer = feed.reward(trial.point[None])
    study.tell(trial, answer[0])
    X, y = np.vstack([X, trial.point]), np.append(y, answer)
    torch_one_thread().manual_seed(options.seed)
    botorch_ask(fixed_model(X[:50], y[:50], options.lengthscale), 2.0, 2)  # whatever is set up on the first call
    rows = []
    for _ in range(options.rounds):
        row, X, y = ask_round(study, feed, X, y, options.lengthscale)
        rows.append(row)
    own, peer, ours, theirs, apart = np.array(rows).T
    gains = ours - theirs
    reached = int((gains >= -1e-9 * np.abs(theirs)).sum())
    print(
        f"   n = {n}: recording the data {filling:.1f} s, the first ask, which takes them in, {warming:.2f} s\n"
        f"      nilregret {median(own) * 1e3:.1f} ms, BoTorch {median(peer) * 1e3:.0f} ms "
        f"(medians of {len(rows)} rounds): {span(peer / own)}\n"
        f"      acquisition at least BoTorch's in {reached} of {len(rows)} ({reached / len(rows):.0%});"
        f" ours less theirs, of {theirs.mean():.3f}: mean {gains.mean():+.1e}, worst {gains.min():+.1e}, "
        f"best {gains.max():+.1e}\n"
        f"      the two posteriors differ by at most {apart.max():.1e} at the chosen points",
        flush=True,
    )


# -- 2. tell ------------------------------------------------------------------------------------------------------


def tell(options):
    n = options.tell_size
    feed = Feed(n, options.seed)
    X, y = feed.draw(n)
    study = filled(X, y, options.lengthscale, options.scale)
    posterior = PointPosterior(nr.Matern(2.5, options.lengthscale), 2, NOISE**2)
    posterior.extend(X, y)
    standing = CandidateMoments(posterior, study.policy.search.standing(study.policy.domain, 0))
    standing.predict()
    model = fixed_model(X, y, options.lengthscale)
    torch = torch_one_thread()

    def take_in(x, reward):
        posterior.append(x, reward)
        return posterior.half, standing.predict()

    def condition(x, reward):
        with torch.no_grad():
            return model.condition_on_observations(X=torch.tensor(x)[None], Y=torch.tensor([[reward]]))

    rows = []
    for x, reward in zip(*feed.draw(options.rounds), strict=True):
        calls = (lambda x=x, r=reward: study.add(x, r), lambda x=x, r=reward: take_in(x, r))
        rows.append([timed(call)[0] for call in (*calls, lambda x=x, r=reward: condition(x, r))])
    recording, taking, peer = np.array(rows).T
    ratios = peer / (recording + taking)
    print(
        f"2. tell at n = {n}: nilregret {median(recording + taking) * 1e3:.2f} ms (recording "
        f"{median(recording) * 1e3:.3f}, taking in {median(taking) * 1e3:.2f}), BoTorch condition_on_observations "
        f"{median(peer) * 1e3:.0f} ms: {span(ratios)}",
        flush=True,
    )


# -- 3. fit -----------------------------------------------------------------------------------------------------------

DIMENSION = 6


def matern_rewards(n, seed):
    """Standardised draws of a Matern process of six lengthscales, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, DIMENSION))
    matrix = nr.Matern(2.5, np.geomspace(0.3, 3.0, DIMENSION))(X, X)
    y = np.linalg.cholesky(matrix + 1e-10 * np.eye(n)) @ rng.standard_normal(n) + NOISE * rng.standard_normal(n)
    return X, nr.gp.Standardization.of(y).to(y)


def own_fit(X, y, restarts):
    found = nr.gp.fit(nr.Matern(2.5, [0.5] * DIMENSION), X, y, prior=None, noise=NOISE, restarts=restarts)
    return found.log_likelihood


def scikit_learn_fit(X, y):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process import kernels as sk

    structure = sk.ConstantKernel(1.0, (1e-4, 1e4)) * sk.Matern([0.5] * DIMENSION, (1e-3, 1e3), nu=2.5)
    kernel = structure + sk.WhiteKernel(NOISE**2, (1e-6, 10.0))
    model = GaussianProcessRegressor(kernel, alpha=1e-12, n_restarts_optimizer=0)
    return float(model.fit(X, y).log_marginal_likelihood_value_)


def botorch_fit(X, y):
    torch = torch_one_thread()
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.constraints import GreaterThan
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.likelihoods import GaussianLikelihood
    from gpytorch.means import ZeroMean
    from gpytorch.mlls import ExactMarginalLogLikelihood

    model = SingleTaskGP(
        torch.tensor(X),
        torch.tensor(y)[:, None],
        likelihood=GaussianLikelihood(noise_constraint=GreaterThan(1e-6)),
        covar_module=ScaleKernel(MaternKernel(nu=2.5, ard_num_dims=DIMENSION)),
        mean_module=ZeroMean(),
        outcome_transform=None,
    ).to(torch.double)
    model.covar_module.base_kernel.lengthscale = 0.5
    model.covar_module.outputscale = 1.0
    model.likelihood.noise = NOISE**2
    mll = ExactMarginalLogLikelihood(model.likelihood, model)
    fit_gpytorch_mll(mll)
    model.train()
    with torch.no_grad():
        return float(mll(model(*model.train_inputs), model.train_targets)) * len(y)


def fit(options):
    print(f"3. fit: Matern-5/2, {DIMENSION} lengthscales, maximum likelihood (medians of {options.repeats})")
    botorch_fit(*matern_rewards(30, seed=0))  # imports, and whatever is set up on the first call
    scikit_learn_fit(*matern_rewards(30, seed=0))
    for n in options.fit_sizes:
        fit_at(n, options)


def fit_at(n, options):
    X, y = matern_rewards(n, seed=options.seed + 1)
    calls = {
        "nilregret, one start": lambda: own_fit(X, y, 0),
        "nilregret, three starts": lambda: own_fit(X, y, 2),
        "scikit-learn": lambda: scikit_learn_fit(X, y),
        "BoTorch": lambda: botorch_fit(X, y),
    }
    times, values = {name: [] for name in calls}, {}
    for _ in range(options.repeats):
        for name, call in calls.items():
            seconds, values[name] = timed(call)
            times[name].append(seconds)
    print(f"   n = {n}")
    for name in calls:
        print(f"      {name:22} {median(times[name]):7.3f} s, log likelihood {values[name]:.4f}")
    peers = [min(pair) for pair in zip(times["scikit-learn"], times["BoTorch"], strict=True)]
    top = max(values["scikit-learn"], values["BoTorch"])
    for name in list(calls)[:2]:
        ratio = median([peer / own for own, peer in zip(times[name], peers, strict=True)])
        print(
            f"      {name}: {ratio:.1f} times faster than the faster peer, log likelihood {values[name] - top:+.1e} "
            "from the better peer's",
            flush=True,
        )


# -- 4. hartmann --------------------------------------------------------------------------------------------------

MAXIMUM = hartmann6.best
INITIAL = 10


def hartmann(x):
    """Hartmann-6, upside down: the highest value is `MAXIMUM`."""
    return float(hartmann6(x[None])[0])


def own_loop(first, noise, options, seed):
    width = ConstantWidth(value=options.width)
    policy = nr.gp_ucb(nr.Box([0] * 6, [1] * 6), nr.Matern(2.5, [0.5] * 6), noise=NOISE, width=width)
    study = nr.Study(policy.using(refit=Refit(every=options.every)), seed=seed)
    for x, error in zip(first, noise, strict=False):
        study.add(x, hartmann(x) + error)
    values = [hartmann(x) for x in first]
    for error in noise[len(first) :]:
        trial = study.ask()
        values.append(hartmann(trial.point))
        study.tell(trial, values[-1] + error)
    return values


def prior_model(X, y, peer_kernel):
    """A SingleTaskGP with its own priors, on rewards that are already standardised."""
    torch = torch_one_thread()
    from botorch.models import SingleTaskGP
    from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior

    kernel = get_covar_module_with_dim_scaled_prior(ard_num_dims=6, use_rbf_kernel=peer_kernel == "rbf")
    inputs, targets = torch.tensor(np.array(X)), torch.tensor(np.array(y))[:, None]
    return SingleTaskGP(inputs, targets, covar_module=kernel, outcome_transform=None)


def botorch_loop(first, noise, options, seed):
    torch = torch_one_thread()
    from botorch.fit import fit_gpytorch_mll
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    points, values = list(first), [hartmann(x) for x in first]
    rewards = [value + error for value, error in zip(values, noise, strict=False)]
    learned, scale, fitted = None, nr.gp.Standardization(0.0, 1.0), 0
    for error in noise[len(first) :]:
        due = len(rewards) // options.every
        if due > fitted:
            scale = nr.gp.Standardization.of(rewards[: due * options.every])
        model = prior_model(points, scale.to(rewards), options.peer_kernel)
        if due > fitted:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            learned, fitted = model.state_dict(), due
        elif learned is not None:
            model.load_state_dict(learned)
        model.eval()
        points.append(np.clip(botorch_ask(model, options.width, 6), 0.0, 1.0))
        values.append(hartmann(points[-1]))
        rewards.append(values[-1] + error)
    return values


def hartmann_pair(seed, options):
    """For each library: seconds, simple regret, cumulative regret."""
    rng = np.random.default_rng([6, seed])
    first, noise = rng.uniform(size=(INITIAL, 6)), NOISE * rng.standard_normal(options.evaluations)
    botorch_loop(first, noise[: INITIAL + 1], options, seed)  # imports, and whatever is set up on the first call
    own_loop(first, noise[: INITIAL + 1], options, seed)
    results = []
    for loop in (own_loop, botorch_loop):
        seconds, values = timed(lambda loop=loop: loop(first, noise, options, seed))
        results.append((seconds, MAXIMUM - max(values), MAXIMUM * len(values) - sum(values)))
    return results


def hartmann_section(options):
    print(
        f"4. hartmann: {options.evaluations} evaluations, a fit every {options.every}, width {options.width:g}, "
        f"BoTorch's kernel {options.peer_kernel}, {options.seeds} seeds in {options.jobs} processes",
        flush=True,
    )
    results = np.array(bench.mapped(options.jobs, hartmann_pair, [(seed, options) for seed in range(options.seeds)]))
    own, peer = results[:, 0], results[:, 1]
    print(f"   whole loop: {span(peer[:, 0] / own[:, 0])}")
    for column, name in ((1, "simple regret"), (2, "cumulative regret")):
        ours, theirs = own[:, column], peer[:, column]
        print(
            f"   {name}: nilregret mean {ours.mean():.4f}, median {median(ours):.4f}; BoTorch mean "
            f"{theirs.mean():.4f}, "
            f"median {median(theirs):.4f}; paired difference {interval(ours - theirs)}"
        )


@bench.command(__doc__)
def main(options):
    torch_one_thread()
    for name, section in {"ask": ask, "tell": tell, "fit": fit, "hartmann": hartmann_section}.items():
        if name in options.only:
            section(options)
