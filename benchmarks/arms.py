"""Speed on arms, as ratios within one run.

    python benchmarks/arms.py --rounds 1000 --seeds 3 --long 30000 --imports 15 --tiny 200

1. GP-UCB on 1,000 arms (SE, lengthscale 0.2, noise variance 0.025, beta_t / 5, T = 1,000) against scikit-learn's
   GaussianProcessRegressor refitted every round with the same fixed kernel. Same seeds, same noise, one BLAS thread
   each; the chosen arms must be equal. Processor time, of nilregret that of the whole `simulate` (median of five).
2. T = 30,000 on 100 random arms: the time of the last 1,000 rounds over the first 1,000, and that of `best()` in
   rounds: the first call, and calls after one more round each (median).
3. `import nilregret`, and a study made and asked (`gp_ucb` on arms, `auto` on a space), against
   `import numpy, scipy.linalg`, in fresh processes. Processor time, the least of `--imports`.
4. `replicate` of many tiny runs (20 rounds on 20 arms) with jobs=2 against jobs=1, in pairs.
"""

import resource
import statistics
import subprocess
import sys
import time
from functools import partial

import bench
import numpy as np

import nilregret as nr
from nilregret._utils.randomness import Randomness, simulation_generator
from nilregret.domains.search.arms import best_arm
from nilregret.slots.envelope import FiniteBayes

NOISE = 0.025**0.5


def sample(kernel, domain, seed):
    """A function drawn from the prior."""
    f = bench.root(kernel, domain.points) @ np.random.default_rng([1, seed]).standard_normal(len(domain))
    return nr.Environment(lambda _: f, domain=domain, noise=NOISE)


def with_scikit_learn(env, rounds, seed):
    """The same algorithm on scikit-learn's posterior; everything else is shared."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    noise = NOISE * simulation_generator(seed, "rewards").standard_normal(rounds)
    width = FiniteBayes(size=len(env.domain), scale=0.2)
    points, arms, rewards = env.domain.points, [], []
    mean, std = np.zeros(len(points)), np.ones(len(points))
    for t in range(rounds):
        if t:
            model = GaussianProcessRegressor(RBF(0.2, "fixed"), alpha=NOISE**2, optimizer=None)
            mean, std = model.fit(points[arms], rewards).predict(points, return_std=True)
        scores = mean + width.width(t + 1, None) * std
        arms.append(best_arm(scores, 1.0, Randomness(seed, t)))
        rewards.append(env.values[arms[-1]] + noise[t])
    return np.array(arms)


def against_scikit_learn(rounds, seeds):
    domain, kernel = nr.Arms.grid(0, 1, 1000), nr.SquaredExponential(0.2)
    policy = nr.gp_ucb(domain, kernel, noise=NOISE, scale=0.2)
    print(f"1. SE, 1,000 arms, T = {rounds}: scikit-learn refitted each round against nilregret")
    ratios, each = [], []
    for seed in range(seeds):
        env = sample(kernel, domain, seed)
        times, ours = bench.timed(lambda env=env, seed=seed: nr.simulate(policy, env, rounds, seed=seed), 5)
        (peer,), theirs = bench.timed(lambda env=env, seed=seed: with_scikit_learn(env, rounds, seed))
        own = statistics.median(times)
        same = np.array_equal(ours.arms, theirs)
        ratios.append(peer / own)
        each.append(own / rounds * 1e6)
        print(
            f"   seed {seed}: scikit-learn {peer:6.1f} s, nilregret {own:6.4f} s ({each[-1]:.0f} us a round): "
            f"{ratios[-1]:.0f} times faster; same arms: {'yes' if same else 'NO'}"
        )
        if not same:
            sys.exit("The two chose different arms.")
    print(f"   median: {statistics.median(ratios):.0f} times faster, {statistics.median(each):.0f} us a round")


def many_rounds(rounds):
    domain = nr.Arms(np.random.default_rng(0).uniform(0, 1, (100, 1)))
    kernel = nr.SquaredExponential(0.2)
    env = sample(kernel, domain, 0)
    study = nr.Study(nr.gp_ucb(domain, kernel, noise=NOISE, scale=0.2), seed=0)
    noise = NOISE * simulation_generator(0, "rewards").standard_normal(rounds)
    _, took = bench.play(study, rounds, lambda trial: env.values[trial.arm] + noise[trial.number])
    blocks = took[: rounds // 1000 * 1000].reshape(-1, 1000).sum(axis=1)
    print(
        f"2. SE, 100 random arms, T = {rounds}: {sum(blocks):.2f} s, {np.median(blocks) * 1e3:.0f} us a round (median)"
    )
    print(f"   last 1,000 rounds over first 1,000: {blocks[-1] / blocks[0]:.2f}")
    print(f"   last five blocks over first five (medians): {np.median(blocks[-5:]) / np.median(blocks[:5]):.2f}")
    first, later, each = bench.timed(study.best)[0], [], np.median(took[-1000:])
    for _ in range(50):
        bench.play(study, 1, lambda trial: env.values[trial.arm])
        later += bench.timed(study.best)[0]
    print(f"   best(): {first[0] / each:.0f} rounds, then after each round {np.median(later) / each:.1f}")


def imports(repeats):
    def seconds(statement):
        call = partial(subprocess.run, [sys.executable, "-c", statement], check=True)
        return bench.timed(call, clock=of_children)[0][0]

    ask = "import nilregret as nr; nr.Study(nr.gp_ucb(nr.Arms.grid(0, 1, 9), nr.SquaredExponential(), noise=0.1)).ask()"
    auto = "import nilregret as nr; nr.Study(nr.auto(nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1)))).ask()"
    statements = ["import nilregret", ask, auto, "import numpy, scipy.linalg"]
    times = [[seconds(statement) for statement in statements] for _ in range(repeats + 1)][1:]
    bare, asked, of_auto, base = (min(column) for column in zip(*times, strict=True))
    print(f"3. import nilregret {bare:.3f} s, import numpy, scipy.linalg {base:.3f} s: ratio {bare / base:.2f}")
    print(f"   import and first decision {asked:.3f} s: ratio {asked / base:.2f}")
    print(f"   import and first decision of auto {of_auto:.3f} s: ratio {of_auto / base:.2f}")


def of_children():
    """The processor time of all processes that this one has started and that have ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tiny_runs(count, repeats=5):
    domain, kernel = nr.Arms.grid(0, 1, 20), nr.SquaredExponential(0.2)
    env, policy = sample(kernel, domain, 0), nr.gp_ucb(domain, kernel, noise=NOISE)

    def seconds(jobs):
        call = partial(nr.replicate, lambda: policy, lambda: env, 20, seeds=range(count), jobs=jobs)
        return bench.timed(call, clock=time.perf_counter)[0][0]

    pairs = [(seconds(1), seconds(2)) for _ in range(repeats)]
    alone = statistics.median(one for one, _ in pairs)
    ratios = sorted(two / one for one, two in pairs)
    print(f"4. {count} runs of 20 rounds: {alone:.2f} s with jobs=1")
    print(f"   jobs=2 over jobs=1: {statistics.median(ratios):.2f} (median; {ratios[0]:.2f} to {ratios[-1]:.2f})")


@bench.command(__doc__)
def main(options):
    against_scikit_learn(options.rounds, options.seeds)
    many_rounds(options.long)
    imports(options.imports)
    tiny_runs(options.tiny)
