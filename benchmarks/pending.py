"""What 20 pending trials cost: a round with them over a round without, 1,000 arms.

    python benchmarks/pending.py

For every treatment of unanswered trials, UCB and Thompson sampling: two runs of the same policy on the same function,
one with answers at once, one with answers after 20 further questions (so that 20 are pending in every round but the
first), taking turns round by round. Printed is the median time of a round (ask and tell) of either, and their ratio.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import statistics
import time
from collections import deque
from dataclasses import replace

import numpy as np

import noregret as nr

NOISE = 0.1
PENDING = 20


class Runner:
    """A study whose answers come after so many further questions."""

    def __init__(self, policy, delay, f):
        self.study, self.delay, self.f = nr.Study(policy, seed=0), delay, f
        self.waiting = deque()
        self.noise = np.random.default_rng(0)

    def round(self):
        """Seconds that one question and the answer that is due take."""
        start = time.perf_counter()
        trial = self.study.ask()
        self.waiting.append(trial)
        if len(self.waiting) > self.delay:
            known = self.waiting.popleft()
            self.study.tell(known, self.f[known.arm] + NOISE * self.noise.standard_normal())
        return time.perf_counter() - start


def policies(arms, kernel):
    """Every treatment at the same constant width, and the paper's algorithms."""
    for kind, make in (("UCB", nr.gp_bucb), ("Thompson", nr.gp_bts)):
        policy = make(arms, kernel, noise=NOISE, beta=2.0)
        yield f"{kind}, ignored", replace(policy, pending=nr.Ignored())
        yield f"{kind}, hallucinated", policy
        for late in ("drop", "accept"):
            censored = nr.Censored(minimum=-3.0, window=PENDING, late=late)
            yield f"{kind}, censored, late {late}", replace(policy, pending=censored)
    yield "gp_ucb_sdf", nr.gp_ucb_sdf(arms, kernel, noise=NOISE, window=PENDING, minimum=-3.0)
    yield "gp_ts_sdf", nr.gp_ts_sdf(arms, kernel, noise=NOISE, window=PENDING, minimum=-3.0)


def main(rounds, arms_count):
    arms = nr.Arms.grid(0, 1, arms_count)
    for title, kernel in (
        ("SE, l = 0.2", nr.SquaredExponential(0.2)),
        ("Matern 5/2, l = 0.05", nr.Matern(2.5, lengthscale=0.05)),
    ):
        f = nr.environments.gp_sample(kernel, arms, seed=1).values
        print(f"{title}, {arms_count} arms, T = {rounds}, {PENDING} pending against none")
        ratios = []
        for name, policy in policies(arms, kernel):
            without, waiting = Runner(policy, 0, f), Runner(policy, PENDING, f)
            pairs = [(without.round(), waiting.round()) for _ in range(rounds)][min(2 * PENDING, rounds // 2) :]
            none, some = (statistics.median(column) for column in zip(*pairs, strict=True))
            ratios.append(some / none)
            print(f"  {name:28} {none * 1e6:6.0f} us, {some * 1e6:6.0f} us: ratio {ratios[-1]:.2f}")
        print(f"  largest ratio: {max(ratios):.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300, help="rounds of each run (default 300)")
    parser.add_argument("--arms", type=int, default=1000, help="arms (default 1,000)")
    options = parser.parse_args()
    main(options.rounds, options.arms)
