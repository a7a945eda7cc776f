"""What 20 pending trials cost: a round with them over a round without, 1,000 arms.

    python benchmarks/pending.py --rounds 300 --arms 1000

For every treatment of unanswered trials, UCB and Thompson sampling: one run whose answers come after 20 further
questions (so that 20 are pending in every round but the first), and beside it the same points with answers at once,
round by round in turns. A round is to decide and to take in the question and the answer that is due. Printed are the
median times and their ratio. The points must be the same, because what a round costs grows with the number of distinct
arms played, and policies that spread out play more of them; how many there were is printed as well.
"""

import time
from collections import deque
from dataclasses import replace

import bench
import numpy as np

import nilregret as nr
from nilregret.policy.state import State
from nilregret.storage.record import Event, Trial

NOISE = 0.1
PENDING = 20


class Runner:
    """A state whose answers come after so many further questions."""

    def __init__(self, policy, delay):
        self.state, self.delay, self.order, self.waiting = State(policy, seed=0), delay, 0, deque()

    def decide(self):
        """The next decision, and the seconds it took."""
        start = time.perf_counter()
        return self.state.decide(), time.perf_counter() - start

    def play(self, number, decision, reward):
        """Ask for a point, tell what is due; returns the seconds that took."""
        trial = Trial(number, decision.point, decision.arm, None, self._next(), 0.0)
        self.waiting.append(trial.answered(reward=reward, order=0, time=0.0))
        events = [Event(trial.asked_order, "asked", trial)]
        if len(self.waiting) > self.delay:
            due = self.waiting.popleft()
            events.append(Event(self._next(), "told", due._replace(told_order=self.order)))
        start = time.perf_counter()
        for event in events:
            self.state.receive([event])
        return time.perf_counter() - start

    def _next(self):
        self.order += 1
        return self.order


def rounds_of(policy, f, rounds):
    """Seconds of each round without and with pending trials, `(rounds, 2)`."""
    without, waiting, rng, seconds = Runner(policy, 0), Runner(policy, PENDING), np.random.default_rng(0), []
    for number in range(rounds):
        _, first = without.decide()
        decision, second = waiting.decide()
        reward = f[decision.arm] + NOISE * rng.standard_normal()
        first += without.play(number, decision, reward)
        second += waiting.play(number, decision, reward)
        seconds.append((first, second))
    return np.array(seconds), waiting.state


def policies(arms, kernel):
    """Every treatment at the same constant width, and the paper's algorithms."""
    for kind, make in (("UCB", nr.gp_bucb), ("Thompson", nr.algorithms.gp_bts)):
        policy = make(arms, kernel, noise=NOISE, beta=2.0)
        yield f"{kind}, ignored", replace(policy, pending=nr.slots.Ignored())
        yield f"{kind}, hallucinated", policy
        for late in ("drop", "accept"):
            censored = nr.slots.Censored(minimum=-3.0, window=PENDING, late=late)
            yield f"{kind}, censored, late {late}", replace(policy, pending=censored)
        yield f"{kind}, imputed", replace(policy, pending=nr.slots.Imputed(minimum=-3.0))
        yield f"{kind}, auto", replace(policy, pending=nr.slots.LateOrNever(minimum=-3.0))
    yield "gp_ucb_sdf, tight", nr.gp_ucb_sdf(arms, kernel, noise=NOISE, window=PENDING, minimum=-3.0, width="tight")
    yield "gp_ucb_sdf", nr.gp_ucb_sdf(arms, kernel, noise=NOISE, window=PENDING, minimum=-3.0)
    yield "gp_ts_sdf", nr.gp_ts_sdf(arms, kernel, noise=NOISE, window=PENDING, minimum=-3.0)


@bench.command(__doc__)
def main(options):
    rounds, arms_count = options.rounds, options.arms
    arms = nr.Arms.grid(0, 1, arms_count)
    for title, kernel in (
        ("SE, l = 0.2", nr.SquaredExponential(0.2)),
        ("Matern 5/2, l = 0.05", nr.Matern(2.5, lengthscale=0.05)),
    ):
        f = nr.environments.gp_sample(kernel, arms, seed=1).values
        print(f"{title}, {arms_count} arms, T = {rounds}, {PENDING} pending against none")
        ratios = []
        for name, policy in policies(arms, kernel):
            seconds, state = rounds_of(policy, f, rounds)
            none, some = np.median(seconds[min(2 * PENDING, rounds // 2) :], axis=0)
            ratios.append(some / none)
            distinct = np.count_nonzero(state.reward.posterior.belief.observed.plays)
            print(f"  {name:28} {none * 1e6:6.0f} us, {some * 1e6:6.0f} us: ratio {ratios[-1]:.2f} ({distinct} arms)")
        print(f"  largest ratio: {max(ratios):.2f}")
