"""What the decisions of a live study cost: the worst of them, those of the service's first example, and their memory.

    python benchmarks/decisions.py
    python benchmarks/decisions.py --asks 60 --blocks 2 --example 40 --seeds 1 --memory 2000

One BLAS thread. Three parts, each in blocks that take turns:

- `auto` on a box of six dimensions, asked and told from `--from` trials on: the worst ask over the median one, with
  fits by a thread and with fits inline: processor time of the asking thread, and by the clock, since the thread that
  fits may hold up an ask. The first ask after a fit computes the posterior anew.
- The first example of docs/service.md, a price under the hour of the day: CPU time of an ask after `--example` trials,
  over that of an ask with the search of 1,024 candidates that `maximize` uses. Both see the same worlds, whose regret
  is printed, with the standard error of the difference.
- Bytes that a study of 100 click arms holds for each decision that was answered, on SQLite (tracemalloc).
"""

import argparse
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import gc
import statistics
import tempfile
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import nilregret as nr
from nilregret.domains.search.boxes import PointSearch
from nilregret.environments import hartmann6

NOISE = 0.05
HOUR, PRICE = nr.Space(hour=nr.Float(0, 24)), nr.Space(price=nr.Float(1, 9))
PRICES = np.linspace(1, 9, 401)
WARM = 3  # asks before anything is timed, since modules are loaded with the first ones


def worst(options):
    """The worst ask over the median one, with fits apart and inline."""
    rng = np.random.default_rng(options.seed)
    X = rng.uniform(size=(options.begin, 6))
    y = hartmann6(X) + NOISE * rng.standard_normal(len(X))
    policy = nr.auto(nr.Box(np.zeros(6), np.ones(6)))
    with ThreadPoolExecutor(1) as executor:
        studies = {how: nr.Study(policy, fits=fits) for how, fits in (("apart", executor), ("inline", "inline"))}
        waits = {how: [] for how in studies}
        for study in studies.values():
            for x, value in zip(X, y, strict=True):
                study.add(x, value)
        for block in range(-1, options.blocks):
            for how, study in studies.items():
                for _ in range(options.asks if block >= 0 else WARM):
                    begun, cpu = time.perf_counter(), time.thread_time()
                    trial = study.ask()
                    if block >= 0:
                        waits[how].append((time.thread_time() - cpu, time.perf_counter() - begun))
                    study.tell(trial, float(hartmann6(trial.point[None])[0] + NOISE * rng.standard_normal()))
        made = {how: len(study.fits) for how, study in studies.items()}
    print(f"asks of auto on [0, 1]^6 from {options.begin} trials on, ms")
    for how, found in waits.items():
        for clock, times in zip(("processor", "clock"), zip(*found, strict=True), strict=True):
            median, most = 1e3 * statistics.median(times), 1e3 * max(times)
            spent = f"median {median:.1f}, worst {most:.1f}, {most / median:.1f} times"
            print(f"   {made[how]} fits {how:6}, {clock:9}: {spent}")


def takings(price, hour):
    return price * np.exp(-(((price - 5 - 2 * np.sin(hour / 24 * 2 * np.pi)) / 2) ** 2))


def example(options):
    """CPU time of an ask and regret in the service's first example, with the search of `auto` and a dense one."""
    policy = nr.auto(PRICE, context=HOUR)
    policies = [policy, policy.using(search=PointSearch(incumbents=5, apart=0.001))]
    times, regrets = [[], []], []
    for seed in range(options.seeds):
        studies = [nr.Study(each, seed=seed) for each in policies]
        regret = [0.0, 0.0]
        rng = np.random.default_rng([options.seed, seed])
        for number in range(options.example + options.example // 5):
            hour, noise = rng.uniform(0, 24), 0.3 * rng.standard_normal()
            for i, study in enumerate(studies):
                begun = time.process_time()
                trial = study.ask({"hour": hour})
                if number >= options.example and not trial.fits:
                    times[i].append(time.process_time() - begun)
                value = takings(trial.parameters["price"], hour)
                regret[i] += takings(PRICES, hour).max() - value
                study.tell(trial, value + noise)
        regrets.append(regret)
    own, other = (1e3 * statistics.median(each) for each in times)
    mean, apart = np.mean(regrets, axis=0), np.diff(regrets, axis=1)[:, 0]
    error = apart.std(ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else np.nan
    print(f"the service's first example after {options.example} trials, CPU ms an ask without a fit (median)")
    print(f"   auto {own:.2f}, with 1,024 candidates {other:.2f}: {own / other:.2f} of it")
    print(f"   regret {mean[0]:.1f} and {mean[1]:.1f}, difference {-apart.mean():+.2f} (standard error {error:.2f})")


def memory(options):
    """Bytes that a study holds for each answered decision."""
    arms = nr.Arms(np.random.default_rng(0).uniform(size=(100, 4)))
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        study = nr.Study(nr.auto(arms, reward="bernoulli"), storage=f"sqlite:///{folder}/a.db")

        def play(count):
            for _ in range(count // 100):
                trials = study.ask(count=100)
                study.tell_many([(trial, float(rng.random() < 0.1)) for trial in trials])
            gc.collect()

        play(500)
        tracemalloc.start()
        play(options.memory)
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        study.close()
    print(f"memory of 100 click arms: {held / options.memory:.0f} bytes a decision ({options.memory} decisions)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="begin", type=int, default=200, help="trials before the asks that are timed")
    parser.add_argument("--asks", type=int, default=60, help="asks of a block")
    parser.add_argument("--blocks", type=int, default=3)
    parser.add_argument("--example", type=int, default=300, help="trials before the asks of the example")
    parser.add_argument("--seeds", type=int, default=4, help="of the example")
    parser.add_argument("--memory", type=int, default=20_000, help="decisions")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for part in (worst, example, memory):
        part(options)


if __name__ == "__main__":
    main()
