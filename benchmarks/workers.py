"""How busy workers are kept: 100 of them, whose jobs take a second on average, and one process that asks for all.

    python benchmarks/workers.py --workers 100 --jobs 10

The jobs are simulated: each of the threads sleeps, from half a second to one and a half, and computes nothing. Asking
and telling are real, and so is the clock. Busy is the share of the workers' time, from the first question to the last,
in which they had a job; what they wait for is the process that asks.
"""

import argparse
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import nilregret as nr

ARMS = nr.Arms(np.stack(np.meshgrid(np.linspace(0, 1, 10), np.linspace(0, 1, 10)), axis=-1).reshape(-1, 2))
SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
KERNEL = nr.SquaredExponential(0.3)


class Sleeper:
    """An objective that takes its time, and keeps when it was at work."""

    def __init__(self, seconds, seed):
        self.rng, self.seconds = np.random.default_rng(seed), seconds
        self.lock, self.spans = threading.Lock(), []

    def __call__(self, x):
        with self.lock:
            seconds = self.seconds * self.rng.uniform(0.5, 1.5)
            noise = 0.1 * self.rng.standard_normal()
        begun = time.time()
        time.sleep(seconds)
        with self.lock:
            self.spans.append((begun, time.time()))
        return float(-((x[0] - 0.3) ** 2) - (x[1] - 0.6) ** 2 + noise)

    def named(self, x, y):
        return self((x, y))


def busy(study, objective, sleeper, workers, trials):
    """Share of time with a job; processor time of this process for each trial (s)."""
    cpu = time.process_time()
    with ThreadPoolExecutor(workers) as pool:
        result = nr.run(study, objective, trials=trials, executor=pool, progress=False)
    cpu = (time.process_time() - cpu) / trials
    first, last = result.trials[0].asked_at, result.trials[-1].asked_at
    at_work = sum(max(0.0, min(end, last) - max(begun, first)) for begun, end in sleeper.spans)
    return at_work / (workers * (last - first)), cpu, len({tuple(trial.point) for trial in result.trials})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=10, help="for each worker (default 10)")
    parser.add_argument("--seconds", type=float, default=1.0, help="mean length of a job (default 1)")
    parser.add_argument("--seed", type=int, default=1000)
    options = parser.parse_args()
    trials = options.workers * options.jobs
    bucb = nr.gp_bucb(ARMS, KERNEL, noise=0.1)
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "gp_bucb, 100 arms, in memory": (bucb, None),
            "gp_bucb, 100 arms, SQLite": (bucb, f"sqlite:///{folder}/s.db"),
            "auto, 2 parameters, in memory": (nr.auto(SPACE, budget=trials, parallel=options.workers), None),
        }
        print(f"{options.workers} workers, {trials} jobs of {options.seconds:g} s on average (0.5 to 1.5 times)")
        for name, (policy, storage) in cases.items():
            sleeper = Sleeper(options.seconds, options.seed)
            study = nr.Study(policy, seed=options.seed, storage=storage)
            study.quiet = True
            objective = sleeper.named if isinstance(policy.domain, nr.Space) else sleeper
            share, cpu, points = busy(study, objective, sleeper, options.workers, trials)
            print(
                f"{name:32} {100 * share:5.1f}% busy   {1000 * cpu:6.2f} ms CPU a trial   {points} points", flush=True
            )


if __name__ == "__main__":
    main()
