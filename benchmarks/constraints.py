"""What long-term constraints cost: the same run with and without them, as a ratio within one run.

    python benchmarks/constraints.py

The test problem of Shi & Eryilmaz (2022, appendix E.1) on a grid of 61 x 61 arms, T = 350, epochs of 20 rounds, data
kept and weighed anew in every epoch; peer: IGP-UCB on the reward alone, under the same noise. One BLAS thread. At the
end the re-scored posterior is compared with one made afresh of the re-scored targets.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time

import numpy as np

import nilregret as nr

PROBLEM = nr.environments.small_feasible_region
KERNEL = nr.Matern(2.5, lengthscale=1.0)
SAME = 1e-8


def policies(arms, rounds, epoch):
    common = {"noise": 0.1, "norm_bound": 1.0, "regularization": 0.01}
    epochs = {"epoch": epoch, "epochs": max(1, rounds // epoch)}
    return {
        "IGP-UCB, no constraints": nr.igp_ucb(arms, KERNEL, **common),
        "Algorithm 2, data kept": nr.gp_ucb_noiseless_constraints(arms, KERNEL, **common, **epochs),
        "Algorithm 2, fresh epochs": nr.gp_ucb_noiseless_constraints(arms, KERNEL, **common, **epochs, memory="fresh"),
        "Algorithm 3, data kept": nr.gp_ucb_noisy_constraints(arms, KERNEL, **common, **epochs, step=0.5),
    }


def same_as_afresh(policy, env, rounds):
    """Whether re-scoring from epoch to epoch leaves the posterior of the last epoch's targets."""
    rng, study = np.random.default_rng(0), nr.Study(policy)
    for _ in range(rounds):
        trial = study.ask()
        g = env.constraint(trial)
        study.tell(trial, env.expected(trial)[0] + 0.1 * rng.standard_normal(), constraints=g)
    plain = nr.Study(nr.igp_ucb(policy.domain, KERNEL, noise=0.1, norm_bound=1.0, regularization=0.01))
    for trial in study.trials:
        plain.add(trial.point, policy.objective.target(trial, study.multipliers))
    return max(float(np.abs(a - b).max()) for a, b in zip(study.predict(), plain.predict(), strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=350)
    parser.add_argument("--epoch", type=int, default=20)
    parser.add_argument("--side", type=int, default=61, help="arms along each side")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    arms = PROBLEM.domain.grid(options.side)
    env = nr.Environment(PROBLEM.reward, domain=arms, noise=0.1, constraints=PROBLEM.constraint, best=PROBLEM.best)
    rules = policies(arms, options.rounds, options.epoch)
    seconds = {name: [] for name in rules}
    for seed in range(options.seeds):
        for name, policy in rules.items():
            start = time.perf_counter()
            nr.simulate(policy, env, options.rounds, seed=seed)
            seconds[name].append(time.perf_counter() - start)
    peer = np.array(seconds["IGP-UCB, no constraints"])
    for name, taken in seconds.items():
        print(
            f"{name}: {np.median(taken):.3f} s for {options.rounds} rounds (worst {max(taken):.3f}), "
            f"{np.median(np.array(taken) / peer):.2f} times the unconstrained run"
        )
    worst = same_as_afresh(rules["Algorithm 2, data kept"], env, options.rounds)
    print(f"re-scored posterior against one made afresh: {worst:.1e}, same: {'yes' if worst <= SAME else 'NO'}")


if __name__ == "__main__":
    main()
