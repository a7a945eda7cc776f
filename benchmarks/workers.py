"""How busy workers are kept: 100 of them, whose jobs take a second on average, and one process that asks for all.

    python benchmarks/workers.py --workers 100 --jobs 10 --seconds 1.0 --seed 1000 [--only TEXT] [--no-sleep]
    python benchmarks/workers.py --workers 100 --jobs 10

Busy is the share of the workers' time, from the first question to the last, in which they had a job; what they wait for
is the process that asks. It is measured twice.

- By the clock: each of the threads sleeps, from half a second to one and a half, and computes nothing. Asking and
  telling are real. What else runs on the machine lowers this share.
- Simulated: nobody sleeps. The same jobs are events on a clock that is moved by the processor time of each question and
  answer. This share hardly depends on what else runs on the machine.
"""

import heapq
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import bench
import numpy as np

import nilregret as nr

ARMS = nr.Arms(np.stack(np.meshgrid(np.linspace(0, 1, 10), np.linspace(0, 1, 10)), axis=-1).reshape(-1, 2))
PLANE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 1))
SPACE = nr.Space(**{f"x{i}": nr.Float(0, 1) for i in range(6)})
KERNEL = nr.SquaredExponential(0.3)


class Sleeper:
    """An objective that takes its time, and keeps when it was at work."""

    def __init__(self, seconds, seed):
        self.rng, self.seconds = np.random.default_rng(seed), seconds
        self.lock, self.spans = threading.Lock(), []

    def job(self, x):
        """Returns how long the evaluation takes, in seconds, and its value."""
        with self.lock:
            seconds = self.seconds * self.rng.uniform(0.5, 1.5)
            noise = 0.1 * self.rng.standard_normal()
        return seconds, float(-((x[0] - 0.3) ** 2) - (x[1] - 0.6) ** 2 + noise)

    def __call__(self, x):
        seconds, value = self.job(x)
        begun = time.time()
        time.sleep(seconds)
        with self.lock:
            self.spans.append((begun, time.time()))
        return value

    def named(self, **parameters):
        return self(tuple(parameters.values()))


def share_at_work(spans, first, last, workers):
    """Share of the workers' time between two moments in which they had a job."""
    at_work = sum(max(0.0, min(end, last) - max(begun, first)) for begun, end in spans)
    return at_work / (workers * (last - first))


def by_the_clock(study, objective, sleeper, workers, trials):
    """Share of time with a job, processor time of this process for each trial (s), and the number of points."""
    cpu = time.process_time()
    with ThreadPoolExecutor(workers) as pool:
        result = nr.run(study, objective, trials=trials, executor=pool, progress=False)
    cpu = (time.process_time() - cpu) / trials
    first, last = result.trials[0].asked_at, result.trials[-1].asked_at
    return share_at_work(sleeper.spans, first, last, workers), cpu, len({tuple(trial.point) for trial in result.trials})


def simulated(study, sleeper, workers, trials):
    """Share of time with a job on a clock moved by processor time, and that time for each trial (s)."""
    now, events, spans, asked_at = 0.0, [], [], []

    def timed(act, *arguments):
        nonlocal now
        begun = time.process_time()
        result = act(*arguments)
        now += time.process_time() - begun
        return result

    def begin():
        trial = timed(study.ask)
        asked_at.append(now)
        seconds, value = sleeper.job(trial.point)
        spans.append((now, now + seconds))
        heapq.heappush(events, (now + seconds, trial.number, value))

    for _ in range(workers):
        begin()
    cpu = now
    while len(asked_at) < trials:
        finished, number, value = heapq.heappop(events)
        now = max(now, finished)
        waited = now
        timed(study.tell, study.trials[number], value)
        begin()
        cpu += now - waited
    return share_at_work(spans, asked_at[0], asked_at[-1], workers), cpu / trials


@bench.command(__doc__)
def main(options):
    trials = options.workers * options.jobs
    bucb = nr.gp_bucb(ARMS, KERNEL, noise=0.1)
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            "gp_bucb, 100 arms, in memory": (bucb, None),
            "gp_bucb, 100 arms, SQLite": (bucb, f"sqlite:///{folder}/"),
            "auto, 2 parameters, in memory": (nr.auto(PLANE, budget=trials, parallel=options.workers), None),
            "auto, 6 parameters, in memory": (nr.auto(SPACE, budget=trials, parallel=options.workers), None),
        }
        print(f"{options.workers} workers, {trials} jobs of {options.seconds:g} s on average (0.5 to 1.5 times)")
        for name, (policy, storage) in cases.items():
            if options.only and options.only not in name:
                continue

            def fresh(how, policy=policy, storage=storage):
                study = bench.quiet(policy, seed=options.seed, storage=storage and f"{storage}{how}.db")
                return study, Sleeper(options.seconds, options.seed)

            share, cpu = simulated(*fresh("simulated"), options.workers, trials)
            line = f"{name:32} simulated {100 * share:5.1f}% busy, {1000 * cpu:6.2f} ms CPU a trial"
            if not options.no_sleep:
                study, sleeper = fresh("clock")
                objective = sleeper.named if isinstance(policy.domain, nr.Space) else sleeper
                share, cpu, points = by_the_clock(study, objective, sleeper, options.workers, trials)
                line += f"   by the clock {100 * share:5.1f}%, {1000 * cpu:6.2f} ms, {points} points"
            print(line, flush=True)
