"""What an explanation costs, and whether it is exact.

    python benchmarks/explain.py

The last of many trials is explained, which replays all of them. Then trials of studies of several policies, at random:
the policy must decide the very same point again, with the score and the bounds that it had when it was asked.
"""

import argparse
import sys
import time
import warnings

import numpy as np

import nilregret as nr

ARMS = nr.Arms.grid(0, 1, 100)
K = nr.SquaredExponential(0.1)
SPACE = nr.Space(x=nr.Float(0, 1), y=nr.Float(0, 2), kind=nr.Choice("a", "b"))
POLICIES = {
    "GP-UCB on arms": nr.gp_ucb(ARMS, K, noise=0.1),
    "GP-TS on arms": nr.gp_ts(ARMS, K, noise=0.1, norm_bound=1.0),
    "arms, adaptive memory": nr.gp_ucb(ARMS, K, noise=0.1, memory="adaptive"),
    "arms, a budget": nr.gp_ucb(ARMS, K, noise=0.1, constraints=nr.OnAverage()),
    "arms, censored": nr.gp_ucb_sdf(ARMS, K, noise=0.1, window=5, minimum=-2.0),
    "auto on a space": nr.auto(SPACE),
    "EI on a box": nr.expected_improvement(nr.Box([0, 0], [1, 1]), K, noise=0.1),
}


def played(policy, rounds, *, late=0, look=True):
    """A study, each answer some questions late, and the width that it said just before each question."""
    study, waiting, said = nr.Study(policy, seed=1), [], []
    study.quiet = True
    for _ in range(rounds):
        if look:
            said.append(study.width)
        trial = study.ask()
        waiting.append(trial)
        if len(waiting) > late:
            trial = waiting.pop(0)
            noise = np.random.default_rng([5, trial.number]).normal(scale=0.1)
            values = [float(np.cos(7 * trial.point[0]))] * policy.constraint_count or None
            study.tell(trial, float(np.sin(9 * trial.point[0]) + noise), constraints=values)
    return study, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20_000, help="of the long study")
    parser.add_argument("--rounds", type=int, default=60, help="of each of the others")
    options = parser.parse_args()
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    start = time.process_time()
    study, _ = played(POLICIES["GP-UCB on arms"], options.trials, look=False)
    between = time.process_time()
    exact = study.explain(options.trials - 1).repeated
    done = time.process_time()
    print(
        f"the last of {options.trials} trials on {len(ARMS)} arms: explained in {done - between:.2f} s of CPU, "
        f"{(done - between) / (between - start):.2f} times what asking and telling them took, repeated: {exact}"
    )
    wrong = 0 if exact else 1
    for name, policy in POLICIES.items():
        study, said = played(policy, options.rounds, late=3)
        found = [study.explain(n, draws=0) for n in range(0, options.rounds, max(1, options.rounds // 15))]
        same = [e.repeated and (e.width == said[e.number] or np.isnan(said[e.number])) for e in found]
        wrong += len(same) - sum(same)
        print(f"{name:24s} {sum(same)} of {len(same)} explanations exact")
    print(f"{wrong} explanations wrong")
    sys.exit(int(wrong > 0))


if __name__ == "__main__":
    main()
