"""What the propensity of a decision costs, as a ratio of an ask without it, and how far it is from a long Monte Carlo.

    python benchmarks/propensities.py --arms 2 10 50 100 1000 --rounds 30 --blocks 4 --draws 20000
    python benchmarks/propensities.py --arms 2 50 --rounds 40 --blocks 2 --draws 2000

For each law and number of arms two studies with the same seed know the same rewards and are asked and told in turn, in
blocks of several trials: one records propensities. The least CPU time of an ask over the blocks counts, with one BLAS
thread. The estimate of 1,000 draws (`explain` before there were laws) is timed in the same run, less often. Then the
state decides again with other random numbers. The largest distance of a share from its probability is said in standard
errors of the share, besides the distance itself.

The laws are a drawn width (`irgp_ucb`), independent normal draws (`GaussianDraws`), and joint ones (`gp_ts`).
"""

import time

import bench
import numpy as np

import nilregret as nr
from nilregret.policy.explain import Inquiry
from nilregret.slots import GaussianDraws

KERNEL, NOISE = nr.Matern(2.5, 0.2), 0.3


def policies(arms):
    """The laws by name."""
    domain = nr.Arms.grid(0, 1, arms)
    return {
        "width": nr.irgp_ucb(domain, KERNEL, noise=NOISE),
        "independent": nr.gp_ucb(domain, KERNEL, noise=NOISE).using(score=GaussianDraws(width=1.0)),
        "joint": nr.gp_ts(domain, KERNEL, noise=NOISE, norm_bound=1.0, information_gain=1.0),
    }


def played(study, rounds, rng):
    """The mean CPU seconds of an ask."""
    spent = 0.0
    for _ in range(rounds):
        begun = time.process_time()
        trial = study.ask()
        spent += time.process_time() - begun
        study.tell(trial, np.sin(7.0 * trial.point[0]) + NOISE * rng.standard_normal())
    return spent / rounds


def estimated(study, times):
    """CPU seconds of the estimate of 1,000 draws of the next decision."""
    state = study.replica.state.copy()
    decision = state.decide()
    trial = study.trials[-1]._replace(number=state.rounds.count, point=decision.point, arm=decision.arm)
    inquiry = Inquiry(state, trial, trial.asked_at, None, 1000, repeated=True)
    begun = time.process_time()
    for _ in range(times):
        inquiry._estimated()
    return (time.process_time() - begun) / times


def distance(study, draws):
    """The largest distance of a share from its probability, in standard errors, and the largest distance."""
    state, found = study.replica.state, study.probabilities()
    counts, seed = np.zeros(len(found)), state.rounds.seed
    for other in range(draws):
        state.rounds.seed = other
        counts[state.decide().arm] += 1
    state.rounds.seed = seed
    away = np.abs(counts / draws - found)
    return (away / np.sqrt(np.maximum(found * (1.0 - found), 1.0 / draws) / draws)).max(), away.max()


@bench.command(__doc__)
def main(options):
    print("law           arms   ask ms   propensity ms   ratio   1,000 draws ms   largest distance")
    for arms in options.arms:
        for name, policy in policies(arms).items():
            studies = [nr.Study(policy, propensities=recorded) for recorded in (False, True)]
            rngs = [np.random.default_rng(0) for _ in studies]
            blocks = [
                [played(study, options.rounds, rng) for study, rng in zip(studies, rngs, strict=True)]
                for _ in range(options.blocks)
            ]
            plain, recorded = np.min(blocks, axis=0) * 1e3
            before = 1e3 * estimated(studies[1], 1 if arms > 100 else 2)
            errors, away = distance(studies[1], options.draws if arms <= 100 else options.draws // 10)
            print(
                f"{name:12} {arms:5d} {plain:8.3f} {recorded - plain:15.3f} {recorded / plain:7.2f} {before:16.1f}"
                f"   {errors:.1f} standard errors, {away:.4f}"
            )
