"""A million rounds on 1,000 arms: few decisions (`switching="lazy"`, C = 1.1) and one in each round, both exact.

    python benchmarks/million.py --seeds 32 --first 1000 --rounds 10000 --long 1000000 --exact 1000000 --dense 2000

Rewards are a sample of a squared exponential kernel (lengthscale .05) with noise of .1; the bounds are those of
`igp_ucb(width="amm")`. Printed: the regret at T = `--rounds` of few decisions over that of one in each round, on paired
seeds that nothing was tuned on, with a bootstrap interval; processor seconds of whole simulations of `--long` rounds
(`--exact` where each decides), record included, bytes a round, and the seconds of the last tenth of the rounds over
those of the first, each in a process of its own; where the time of a round goes, and a simulation against a study that
is asked and told the same rounds, in turn; and the posterior after `--dense` rounds against a dense solve of all
rewards one by one.
"""

import resource
import time
from pathlib import Path

import bench
import numpy as np

import nilregret as nr
from nilregret.environments import Environment, gp_sample
from nilregret.policy.state import State
from nilregret.storage.record import Record
from nilregret.storage.trial import Trial

ARMS, KERNEL, NOISE, BOUND = nr.Arms.grid(0, 1, 1000), nr.SquaredExponential(0.05), 0.1, 2.0
POLICY = nr.igp_ucb(ARMS, KERNEL, noise=NOISE, norm_bound=BOUND, width="amm", regularization=NOISE**2)
FACTORS = (1.05, 1.1, 1.4)
TURNS = 5  # of the ways to play a round
BLOCKS = 10  # of the rounds of a long run, to compare the last with the first
LAZY = POLICY.using(switching=nr.slots.Lazy(factor=1.1))


def world(seed):
    return Environment(gp_sample(KERNEL, ARMS, seed=seed), domain=ARMS, noise=NOISE)


def alone(rounds, lazy):
    """A simulation in this process: what it took."""
    env = world(3)
    nr.simulate(LAZY if lazy else POLICY, env, 100)  # imports, tables
    marks, held = [] if lazy else marked(env, max(rounds // BLOCKS, 1)), resident()
    (seconds,), run = bench.timed(lambda: nr.simulate(LAZY if lazy else POLICY, env, rounds))
    blocks = np.diff([*marks, time.process_time()])
    decisions = rounds if run.entries is None else len(run.entries)
    return {"seconds": seconds, "memory": bench.peak(), "more": max(resident() - held, 0.0), "decisions": decisions,
            "flat": None if lazy else blocks[-1] / blocks[0], "regret": float(run.total_regret)}  # fmt: skip


def marked(env, every):
    """The processor times at which a block of rounds begins, noted while they are played."""
    marks, known = [], env.expected

    def expected(play):
        if play.number % every == 0:
            marks.append(time.process_time())
        return known(play)

    env.expected = expected
    return marks


def resident():
    """The memory now, MB, or the largest so far where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return bench.peak()
    return pages * resource.getpagesize() / 2**20


def regrets(rounds, seeds):
    """Regret of one decision in each round, and of few with each factor, `(seeds, 1 + factors)`."""
    found = []
    for seed in seeds:
        env = world(seed)
        runs = [
            nr.simulate(POLICY, env, rounds, seed=seed, switching=how) for how in (None, *map(nr.slots.Lazy, FACTORS))
        ]
        found.append([float(run.total_regret) for run in runs])
    return np.array(found)


def error(rounds):
    """The largest difference of mean and variance from a dense solve of all rewards."""
    env, study, rows, targets = world(3), nr.Study(LAZY), [], []
    rng = np.random.default_rng(0)
    while len(targets) < rounds:
        trial = study.ask()
        count = min(trial.repeats, rounds - len(targets))
        rewards = env.values[trial.arm] + NOISE * rng.standard_normal(count)
        study.tell(trial, rewards)
        rows += [trial.arm] * count
        targets += list(rewards)
    K = KERNEL(ARMS.points[rows], ARMS.points[rows]) + NOISE**2 * np.eye(rounds)
    cross = KERNEL(ARMS.points, ARMS.points[rows])
    solved = np.linalg.solve(K, np.column_stack([targets, cross.T]))
    mean, std = study.predict(ARMS.points)
    variance = 1.0 - np.einsum("ij,ji->i", cross, solved[:, 1:])
    return max(np.abs(mean - cross @ solved[:, 0]).max(), np.abs(std**2 - variance).max())


def shares(rounds):
    """Microseconds of a round: of all, of a study, of a state that is told events, of the posterior alone."""
    env, run, study = world(3), nr.simulate(POLICY, world(3), rounds), nr.Study(POLICY)
    arms, rewards, state, record = run.arms.tolist(), run.rewards.tolist(), State(POLICY, seed=0), Record()
    posterior = State(POLICY, seed=0).reward.posterior.belief.observed

    def studied():
        for reward in rewards:
            study.tell(study.ask(), reward)

    def decided():
        for number, reward in enumerate(rewards):
            decision = state.decide()
            trial = Trial(number, decision.point, decision.arm, None, 2 * number + 1, 0.0)
            state.receive((record.update(trial, "asked"),))
            state.receive((record.update(trial.answered(reward=reward, order=2 * number + 2, time=0.0), "told"),))

    def learned():
        for arm, reward in zip(arms, rewards, strict=True):
            posterior.append(arm, reward)
            posterior.predict()

    calls = (lambda: nr.simulate(POLICY, env, rounds), studied, decided, learned)
    return [1e6 * bench.timed(call)[0][0] / rounds for call in calls]


@bench.command(__doc__)
def main(given):
    print(f"{'rounds':>9}  decisions  CPU s  us/round  peak MB  of the run MB  bytes/round  last/first tenth  regret")
    long, exact = given.long, given.exact
    for rounds, lazy in ((long // 10, True), (long, True), (exact // 10, False), (exact, False)):
        one = bench.apart(alone, rounds, lazy)
        print(
            f"{rounds:>9}  {one['decisions']:>9}  {one['seconds']:>5.2f}  {1e6 * one['seconds'] / rounds:>8.2f}  "
            f"{one['memory']:>7.1f}  {one['more']:>13.1f}  {one['more'] * 2**20 / rounds:>11.0f}  "
            f"{'-' if lazy else format(one['flat'], '.2f'):>16}  {one['regret']:.1f}",
            flush=True,
        )
    each = np.array([shares(max(min(given.exact // 200, 5000), 10)) for _ in range(TURNS)])
    whole, studied, decided, learned = np.median(each, axis=0)
    print(
        f"us a round, one decision in each: simulated {whole:.1f}, study {studied:.1f}, "
        f"state and record {decided:.1f}, posterior and its predictions {learned:.1f}"
    )
    print(f"study over simulation, median of {TURNS} turns: {np.median(each[:, 1] / each[:, 0]):.2f}")
    found = regrets(given.rounds, range(given.first, given.first + given.seeds))
    print(f"regret at T = {given.rounds}, {given.seeds} paired seeds from {given.first}:")
    print(f"  one by one: {found[:, 0].mean():.2f}")
    for i, factor in enumerate(FACTORS, start=1):
        print(f"  C = {factor} over one by one: {bench.ratio(found[:, i], found[:, 0], places=4, draws=10_000)}")
    print(f"largest error of the posterior after {given.dense} rounds against a dense solve: {error(given.dense):.1e}")
