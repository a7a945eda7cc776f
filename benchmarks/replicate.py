"""`nr.replicate` of many seeds on arms: all worlds together over one by one, as ratios within one run.

    python benchmarks/replicate.py --seeds 100 --rounds 300 --repeats 3

Each line is a policy on N arms, played for T rounds with each seed. The kernel is squared exponential with lengthscale
0.2, functions are drawn from it, and the noise variance is 0.025. A line prints CPU time for each seed and round, with
all seeds together and by one `nr.simulate` after the other. It prints the median of their ratios over blocks in turn,
and the share of runs in which all arms are equal. "alone" stands for a policy whose worlds do not advance together.
Ratios grow with the number of seeds: few seeds show less than the defaults. For GP-UCB and GP-TS a line ends with the
time together over that of the bare arithmetic of all worlds, the quickest block of each: scores, the best arm, its
column, and the root, mean and variance after its reward, in NumPy, with normal numbers of one generator.
"""

import statistics
import warnings

import bench
import numpy as np

import nilregret as nr
from nilregret.gp.choice import posterior_on_arms

NOISE = 0.025**0.5
KERNEL = nr.SquaredExponential(0.2)
PAIR = nr.SquaredExponential([0.5, 0.2])
CONTEXTS = nr.Arms.grid(0, 1, 5)
BOUND = {"noise": NOISE, "norm_bound": 2.0}


def functions(kernel, points, count):
    """Functions drawn from the prior, (count, number of points)."""
    normal = np.array([np.random.default_rng([1, seed]).standard_normal(len(points)) for seed in range(count)])
    return normal @ bench.root(kernel, points).T


def worlds(arms, seeds, **more):
    drawn = functions(KERNEL, arms.points, seeds)
    return [nr.Environment(lambda _, f=f: f, domain=arms, noise=NOISE, **more) for f in drawn]


def contextual_worlds(arms, seeds):
    rows = np.array([[*context, *arm] for context in CONTEXTS.points for arm in arms.points])
    drawn = functions(PAIR, rows, seeds).reshape(seeds, len(CONTEXTS), len(arms))

    def reward(table):
        return lambda _, z: table[CONTEXTS.index(z[:1])[0]]

    return [nr.Environment(reward(table), domain=arms, contexts=CONTEXTS, noise=NOISE) for table in drawn]


def lines(arms):
    """The policies on 100 arms other than GP-UCB, each with the maker of its worlds."""
    late = {"delay": nr.environments.delays.PoissonDelay(10.0)}
    sdf = {"window": 20, "minimum": -4.0, "reward_bound": 8.0}
    constrained = {"epoch": 20, "epochs": 15, "regularization": 0.01, "norm_bound": 2.0}
    return {
        "IGP-UCB": (nr.algorithms.igp_ucb(arms, KERNEL, **BOUND), worlds),
        "GP-TS": (nr.algorithms.gp_ts(arms, KERNEL, **BOUND), worlds),
        "expected improvement": (nr.algorithms.expected_improvement(arms, KERNEL, noise=NOISE), worlds),
        "IRGP-UCB": (nr.algorithms.irgp_ucb(arms, KERNEL, noise=NOISE), worlds),
        "GP-UCB, 5 contexts": (nr.gp_ucb(arms, PAIR, noise=NOISE, context=CONTEXTS), contextual_worlds),
        "GP-UCB, late answers": (nr.gp_ucb(arms, KERNEL, noise=NOISE), lambda a, s: worlds(a, s, **late)),
        "GP-BUCB, late answers": (nr.algorithms.gp_bucb(arms, KERNEL, noise=NOISE), lambda a, s: worlds(a, s, **late)),
        "GP-UCB-SDF, late answers": (
            nr.algorithms.gp_ucb_sdf(arms, KERNEL, **BOUND, **sdf), lambda a, s: worlds(a, s, **late),
        ),
        "constraints on average": (
            nr.algorithms.gp_ucb_noiseless_constraints(arms, KERNEL, noise=NOISE, **constrained),
            lambda a, s: worlds(a, s, constraints=lambda x: x[:, 0] - 0.6),
        ),
    }  # fmt: skip


def bare(policy, functions, rounds, drawn):
    """Plays all worlds by nothing but the arithmetic: upper bounds, or draws, of the posteriors of low rank."""
    empty = posterior_on_arms(policy.domain, policy.kernel, policy.regularization)
    features = empty.features
    (count, arms), rank, noise = functions.shape, features.shape[1], policy.regularization
    rng, worlds, columns = np.random.default_rng(0), np.arange(count), np.ascontiguousarray(features.T)
    root, mean = np.tile(np.eye(rank), (count, 1, 1)), np.zeros((count, arms))
    variance = np.tile(empty.prior.variance, (count, 1))
    for _ in range(rounds):
        if drawn:
            normal = rng.standard_normal((count, rank, 1))
            score = mean + np.matmul(root, normal)[:, :, 0] @ columns
        else:
            score = mean + 2.0 * np.sqrt(np.maximum(variance, 0.0))
        arm = score.argmax(axis=1)
        z = np.matmul(features[arm][:, None], root)[:, 0]
        along = np.matmul(root, z[:, :, None])[:, :, 0]
        column, square = along @ columns, (z * z).sum(axis=1)
        total = noise + square
        root -= (along / (total + np.sqrt(noise * total))[:, None])[:, :, None] * z[:, None]
        reward = functions[worlds, arm] + NOISE * rng.standard_normal(count)
        mean += column * ((reward - mean[worlds, arm]) / total)[:, None]
        variance -= column * column / total[:, None]


def measure(name, policy, envs, rounds, repeats, *, drawn=None):
    """Prints the line of a policy. Its bare arithmetic is that of draws if `drawn`, of bounds, or None."""
    seeds = range(len(envs))
    ratios, each, alone_each, bare_each = [], [], [], []
    functions = np.array([env.table(0)[0].reshape(-1) for env in envs])
    for _ in range(repeats):
        together, runs = bench.timed(lambda: nr.replicate(lambda: policy, lambda seed: envs[seed], rounds, seeds=seeds))
        alone, ones = bench.timed(lambda: [nr.simulate(policy, envs[seed], rounds, seed=seed) for seed in seeds])
        (together,), (alone,) = together, alone
        ratios.append(alone / together)
        each.append(together / len(envs) / rounds * 1e6)
        alone_each.append(alone / len(envs) / rounds * 1e6)
        if drawn is not None:
            bare_each.append(
                bench.timed(lambda: bare(policy, functions, rounds, drawn))[0][0] / len(envs) / rounds * 1e6
            )
    equal = np.mean([np.array_equal(runs.arms[seed], one.arms) for seed, one in enumerate(ones)])
    ratio = f"{statistics.median(ratios):.1f} times" if runs.batched else "alone"
    print(
        f"{name:32} {statistics.median(each):6.2f} us together, {statistics.median(alone_each):6.1f} us alone: {ratio};"
        f" equal arms in {equal:.0%} of runs"
        + (f"; {min(each) / min(bare_each):.2f} times the bare arithmetic" if bare_each else ""),
        flush=True,
    )


@bench.command(__doc__)
def main(options):
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    nr.replicate(lambda: nr.gp_ucb(CONTEXTS, KERNEL, noise=NOISE), lambda: worlds(CONTEXTS, 1)[0], 300, seeds=range(2))
    for count in (20, 100, 1000):
        arms = nr.Arms.grid(0, 1, count)
        policy = nr.gp_ucb(arms, KERNEL, noise=NOISE, scale=0.2)
        envs = worlds(arms, options.seeds)
        measure(f"GP-UCB, {count} arms", policy, envs, options.rounds, options.repeats, drawn=False)
    arms = nr.Arms.grid(0, 1, 100)
    for name, (policy, make) in lines(arms).items():
        drawn, repeats = (True, options.repeats) if name == "GP-TS" else (None, 1)
        measure(name, policy, make(arms, options.seeds), options.rounds, repeats, drawn=drawn)
