"""Boxes against BoTorch (and scikit-learn, where it fits), as ratios within one run.

    python benchmarks/boxes.py
    python benchmarks/boxes.py --only ask --sizes 1000 3000 10000 --rounds 3
    python benchmarks/boxes.py --only hartmann --seeds 20 --jobs 2

Needs botorch and scikit-learn. Everything runs on one thread and in double precision; times are CPU times. What `auto`
asks in six dimensions is in `asks.py`.

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

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import concurrent.futures
import dataclasses
import multiprocessing
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import nilregret as nr
from nilregret.environments import hartmann6
from nilregret.gp import CandidateMoments, PointPosterior
from nilregret.slots.envelope import Confidence
from nilregret.slots.refit import Refit
from nilregret.study.curves import interval

NOISE = 0.1
SECTIONS = ("ask", "tell", "fit", "hartmann")


def timed(call):
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def median(values):
    return statistics.median(values)


def span(ratios):
    return f"{median(ratios):.1f} times faster (median; {min(ratios):.1f} to {max(ratios):.1f})"


# -- BoTorch, imported late: a process that measures nilregret's memory has none of it -----------------------------


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

    def __init__(self, seed):
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
        memory(max(options.sizes), options)


def ask_at(n, options):
    feed = Feed([n, options.seed])
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
    print(f"   n = {n}: recording the data {filling:.1f} s, the first ask, which takes them in, {warming:.2f} s")
    report_asks(np.array(rows))


def report_asks(rows):
    own, peer, ours, theirs, apart = rows.T
    ratios, gains = peer / own, ours - theirs
    reached = int((gains >= -1e-9 * np.abs(theirs)).sum())
    print(
        f"      nilregret {median(own) * 1e3:.1f} ms, BoTorch {median(peer) * 1e3:.0f} ms "
        f"(medians of {len(rows)} rounds): {span(ratios)}"
    )
    print(
        f"      acquisition at least BoTorch's in {reached} of {len(rows)} ({reached / len(rows):.0%});"
        f" ours less theirs, of {theirs.mean():.3f}: mean {gains.mean():+.1e}, worst {gains.min():+.1e}, "
        f"best {gains.max():+.1e}"
    )
    print(f"      the two posteriors differ by at most {apart.max():.1e} at the chosen points", flush=True)


def memory(n, options):
    """Peak memory of fresh processes."""
    peaks = []
    for who in ("nilregret", "botorch"):
        command = [sys.executable, __file__, "--peak", who, "--sizes", str(n)]
        command += [
            "--lengthscale",
            str(options.lengthscale),
            "--scale",
            str(options.scale),
            "--seed",
            str(options.seed),
        ]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        peaks.append(float(output))
    print(
        f"   peak memory at n = {n}, data and one ask: nilregret {peaks[0]:.0f} MB, BoTorch {peaks[1]:.0f} MB: "
        f"ratio {peaks[1] / peaks[0]:.1f}",
        flush=True,
    )


def peak(options):
    X, y = Feed([options.sizes[0], options.seed]).draw(options.sizes[0])
    if options.peak == "nilregret":
        filled(X, y, options.lengthscale, options.scale).ask()
    else:
        botorch_ask(fixed_model(X, y, options.lengthscale), 2.0, 2)
    # Not getrusage: its maximum outlives exec, so that it would be the parent's where that is larger.
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(float(line.split()[1]) / 1024)


# -- 2. tell ------------------------------------------------------------------------------------------------------


def tell(options):
    n = options.tell_size
    feed = Feed([n, options.seed])
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


# -- 3. fit -------------------------------------------------------------------------------------------------------

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


@dataclasses.dataclass(frozen=True)
class FixedWidth(Confidence):
    """The same width in every round."""

    multiplier: float
    valid_for: str = "none"

    def width(self, t, progress):  # noqa: ARG002 - always the same
        """The multiplier."""
        return self.multiplier


def own_loop(first, noise, options, seed):
    box = nr.Box([0] * 6, [1] * 6)
    policy = nr.gp_ucb(box, nr.Matern(2.5, [0.5] * 6), noise=NOISE, refit=Refit(every=options.every))
    study = nr.Study(dataclasses.replace(policy, confidence=FixedWidth(options.width)), seed=seed)
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
    context = multiprocessing.get_context("spawn")
    results = []
    with concurrent.futures.ProcessPoolExecutor(options.jobs, mp_context=context) as pool:
        futures = [pool.submit(hartmann_pair, seed, options) for seed in range(options.seeds)]
        for seed, future in enumerate(futures):
            own, peer = future.result()
            results.append((own, peer))
            print(
                f"   seed {seed}: nilregret {own[0]:6.1f} s, simple regret {own[1]:.4f}, cumulative {own[2]:6.1f}; "
                f"BoTorch {peer[0]:6.1f} s, {peer[1]:.4f}, {peer[2]:6.1f}; {peer[0] / own[0]:.1f} times faster",
                flush=True,
            )
    report_hartmann(np.array(results))


def report_hartmann(results):
    own, peer = results[:, 0], results[:, 1]
    ratios = peer[:, 0] / own[:, 0]
    print(f"   whole loop: {span(ratios)}")
    for column, name in ((1, "simple regret"), (2, "cumulative regret")):
        ours, theirs = own[:, column], peer[:, column]
        print(
            f"   {name}: nilregret mean {ours.mean():.4f}, median {median(ours):.4f}; BoTorch mean "
            f"{theirs.mean():.4f}, "
            f"median {median(theirs):.4f}; paired difference {interval(ours - theirs)}"
        )


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections to run, with commas (default all)")
    parser.add_argument("--seed", type=int, default=0, help="of the data of sections 1 to 3 (default 0)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000], help="n of `ask` (default 1000 3000)")
    parser.add_argument("--rounds", type=int, default=10, help="paired rounds of `ask` and `tell` (default 10)")
    parser.add_argument("--lengthscale", type=float, default=0.3, help="of `ask` and `tell` (default 0.3)")
    parser.add_argument("--scale", type=float, default=0.2, help="multiplies beta_t in `ask` (default 0.2)")
    parser.add_argument("--no-memory", action="store_true", help="leave out the peak memory of `ask`")
    parser.add_argument("--tell-size", type=int, default=3000, help="n of `tell` (default 3000)")
    parser.add_argument("--fit-sizes", type=int, nargs="+", default=[200, 1000], help="n of `fit` (default 200 1000)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each fit (default 3)")
    parser.add_argument("--seeds", type=int, default=20, help="seeds of `hartmann` (default 20)")
    parser.add_argument("--jobs", type=int, default=1, help="processes of `hartmann`, one thread each (default 1)")
    parser.add_argument("--evaluations", type=int, default=300, help="of `hartmann`, all included (default 300)")
    parser.add_argument("--every", type=int, default=10, help="evaluations between fits (default 10)")
    parser.add_argument("--width", type=float, default=2.0, help="times the std, in `hartmann` (default 2)")
    parser.add_argument("--peer-kernel", choices=["matern", "rbf"], default="matern", help="of BoTorch in `hartmann`")
    parser.add_argument("--peak", choices=["nilregret", "botorch"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.only = options.only.split(",")
    unknown = set(options.only) - set(SECTIONS)
    if unknown:
        parser.error(f"unknown sections: {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    return options


def main():
    options = parsed()
    if options.peak:
        peak(options)
        return
    torch_one_thread()
    sections = {"ask": ask, "tell": tell, "fit": fit, "hartmann": hartmann_section}
    for name in SECTIONS:
        if name in options.only:
            sections[name](options)


if __name__ == "__main__":
    main()
