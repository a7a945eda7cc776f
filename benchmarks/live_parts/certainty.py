"""How sure `certainty()` is of one of several equal arms (A/A), how often it finds a better one, and what bounds hold.

Nothing is told to the policy but the kind of the rewards. A certainty above .95 counts. In an A/B test it must be of
the better arm. Bounds are those of all arms after the last reward. They should hold the true mean as often as two
standard deviations of a normal law, .954.
"""

import numpy as np
from bench import quiet

import nilregret as nr

SURE, ROUNDS = 0.95, 500
TESTS = (  # kind of the rewards, their means, rounds. Faults are clicks that are minimised.
    ("bernoulli", (0.1,) * 2, ROUNDS),
    ("bernoulli", (0.1,) * 3, ROUNDS),
    ("bernoulli", (0.1,) * 8, ROUNDS),
    ("bernoulli", (0.02,) * 2, ROUNDS),
    ("bernoulli", (0.02,) * 2, 4 * ROUNDS),
    ("bernoulli", (0.005,) * 4, ROUNDS),
    ("bernoulli", (0.5,) * 2, ROUNDS),
    ("faults", (0.1,) * 2, ROUNDS),
    ("poisson", (0.1,) * 2, ROUNDS),
    ("poisson", (2.0,) * 2, ROUNDS),
    ("bounded", (0.1,) * 2, ROUNDS),
    ("bounded", (0.5,) * 2, ROUNDS),
    ("bernoulli", (0.16, 0.1), ROUNDS),
    ("bernoulli", (0.2, 0.1), 4 * ROUNDS),
    ("poisson", (2.4, 2.0), ROUNDS),
    ("bounded", (0.16, 0.1), ROUNDS),
)


def reward_of(kind, mean, rng):
    """A reward of this mean. Bounded ones have a beta distribution of two pseudo-counts."""
    if kind in ("bernoulli", "faults"):
        return float(rng.random() < mean)
    return float(rng.poisson(mean) if kind == "poisson" else rng.beta(2.0 * mean, 2.0 * (1.0 - mean)))


def tested(kind, means, rounds, seed):
    """Whether the study is sure, whether the arm is the best, and the share of bounds that hold."""
    rng = np.random.default_rng([7, seed])
    reward, goal = ("bernoulli", "minimize") if kind == "faults" else (kind, "maximize")
    study = quiet(nr.auto(nr.Arms(np.arange(float(len(means)))[:, None]), reward=reward), seed=seed, goal=goal)
    for _ in range(rounds):
        trial = study.ask()
        study.tell(trial, reward_of(kind, means[trial.arm], rng))
    lower, upper = study.bounds()
    right = means[study.best().arm] == max(means)
    return study.certainty().probability > SURE, right, np.mean((lower <= means) & (means <= upper))


def certainty(report):
    """Row certainty, with forty times as many seeds."""
    rows, seeds = [], report.seeds(40)
    for kind, means, rounds in TESTS:
        last = report.rounds or rounds
        each = [tested(kind, means, last, seed) for seed in seeds]
        sure, right, held = (np.array(column, dtype=float) for column in zip(*each, strict=True))
        equal = len(set(means)) == 1
        share = (sure if equal else sure * right).mean()
        name = f"{len(means)} arms of {means[0]:g}" if equal else " and ".join(f"{mean:g}" for mean in means)
        name = f"{'A/A' if equal else 'A/B'} {kind}, {name}"
        rows.append([
            name, str(last), f"{share:.3f}", "0.05" if equal else "",
            "" if equal else f"{(sure * (1.0 - right)).mean():.3f}", f"{held.mean():.3f}",
        ])  # fmt: skip
        report.keep("certainty", f"{name}, {last} rounds", "auto", seeds, sure=sure, right=right, held=held)
    head = ["test", "rounds", f"certainty over {SURE:g}", "at most", "of the worse arm", "bounds hold"]
    report.show(f"Certainty of the best arm, {len(seeds)} seeds", head, rows)
