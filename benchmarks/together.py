"""Everything at once: answers that come late, changes that nobody announces, a constraint, and contexts.

    python benchmarks/together.py [--seeds 32] [--first 1000] [--jobs 1] [--markdown FILE]

Twelve contexts and thirty actions, product squared exponential kernel of lengthscales 0.2; reward and constraint are
samples of it (the constraint less 0.4, drawn until every context has an action well inside), both drawn anew at rounds
400 and 800 of 1,200; noise 0.1 on both; both are known after a geometric number of further questions, 10 on average.
Bounds are 2 standard deviations. R+ is the sum over rounds of the positive part of the regret against the best action
that satisfies the constraint of the round under its context, V+ that of the positive parts of g.

- The told oracle: GP-UCB with a posterior for the constraint (`EveryRound`), hallucinated pending trials, and a memory
  that is cut at the changes. Everything is divided by what it has on the same seeds.
- The full policy: the same with `memory="adaptive"` in place of what the oracle was told.
- The full policy without one part: pending trials ignored; everything remembered; the constraint ignored; contexts
  ignored (a kernel that is constant in them).
- Beliefs that are wrong: lengthscales 1.6 times too long, noise half of what it is, both oracle and full policy.
- A constraint that changes where the reward stays as it is.

Ratios of means over seeds with 95% intervals of a paired bootstrap. The parts of the policy were settled on seeds below
1,000; seeds from 1,000 up are held out. The last lines are milliseconds of processor time a round.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

import numpy as np
from common_parts import limits

import nilregret as nr
from nilregret.environments.delays import GeometricDelay
from nilregret.simulation import metrics
from nilregret.slots.envelope import ConstantWidth

CONTEXTS, ACTIONS = nr.Arms.grid(0, 1, 12), nr.Arms.grid(0, 1, 30)
LENGTH, NOISE, DELAY, SHIFT, INSIDE = 0.2, 0.1, 10.0, 0.4, -0.1
PERIODS, ROUNDS = 3, 1200
LAST = 100  # rounds over which the time of a round is taken
EVERYWHERE = 1e6  # a lengthscale of which nothing is seen


@cache
def root():
    """Of the kernel matrix of all (context, action)."""
    cells = np.array([[*z, *x] for z in CONTEXTS.points for x in ACTIONS.points])
    values, vectors = np.linalg.eigh(nr.SquaredExponential([LENGTH, LENGTH])(cells, cells))
    return vectors * np.sqrt(np.maximum(values, 0.0))


def tables(seed):
    """Reward and constraint of every period, (contexts, actions) each."""
    rng = np.random.default_rng([seed, 77])

    def drawn():
        return (root() @ rng.standard_normal(len(root()))).reshape(len(CONTEXTS), len(ACTIONS))

    f, g = [], []
    for _ in range(PERIODS):
        f.append(drawn())
        g.append(drawn() - SHIFT)
        while not (g[-1].min(axis=1) < INSIDE).all():
            g[-1] = drawn() - SHIFT
    return f, g


def looked_up(table):
    """A function of points and contexts."""

    def function(points, contexts):
        return table[CONTEXTS.index(contexts), ACTIONS.index(points)]

    return function


def world(seed, *, rounds, reward_changes=True):
    """The environment of one seed."""
    f, g = (list(map(looked_up, each)) for each in tables(seed))
    return nr.Environment(
        f if reward_changes else f[0],
        domain=ACTIONS,
        contexts=CONTEXTS,
        noise=NOISE,
        delay=GeometricDelay(DELAY),
        constraints=g,
        constraint_noise=NOISE,
        change_points=nr.environments.even_changes(rounds, PERIODS),
    )


def policy(*, memory, rounds, pending="hallucinate", constraint=True, context=True, length=LENGTH, noise=NOISE):
    """The full policy, or one without some of its parts or with other beliefs."""
    memory = nr.slots.RestartAt(nr.environments.even_changes(rounds, PERIODS)) if memory == "told" else memory
    return nr.gp_ucb(
        ACTIONS,
        nr.SquaredExponential([length if context else EVERYWHERE, length]),
        noise=noise,
        width=ConstantWidth(value=2.0),
        context=CONTEXTS,
        memory=memory,
        pending=pending,
        constraints=nr.EveryRound() if constraint else None,
    )


LONG, QUIET = {"length": 1.6 * LENGTH}, {"noise": 0.5 * NOISE}
POLICIES = {  # name: (what the policy is, what the world is, by which oracle it is divided)
    "told oracle": ({"memory": "told"}, {}, None),
    "full": ({"memory": "adaptive"}, {}, "told oracle"),
    "without pending trials": ({"memory": "adaptive", "pending": "ignore"}, {}, "told oracle"),
    "without a detector": ({"memory": None}, {}, "told oracle"),
    "without the constraint": ({"memory": "adaptive", "constraint": False}, {}, "told oracle"),
    "without contexts": ({"memory": "adaptive", "context": False}, {}, "told oracle"),
    "oracle, lengthscales 1.6 times": ({"memory": "told", **LONG}, {}, None),
    "full, lengthscales 1.6 times": ({"memory": "adaptive", **LONG}, {}, "oracle, lengthscales 1.6 times"),
    "oracle, noise told half": ({"memory": "told", **QUIET}, {}, None),
    "full, noise told half": ({"memory": "adaptive", **QUIET}, {}, "oracle, noise told half"),
    "oracle, constraint changes alone": ({"memory": "told"}, {"reward_changes": False}, None),
    "full, constraint changes alone": (
        {"memory": "adaptive"},
        {"reward_changes": False},
        "oracle, constraint changes alone",
    ),
}


def played(job, *, rounds):
    """(R+, V+, cuts, missed changes) of one policy on one seed."""
    name, seed = job
    chosen, where, _ = POLICIES[name]
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    env = world(seed, rounds=rounds, **where)
    run = nr.simulate(policy(rounds=rounds, **chosen), env, rounds, seed=seed)
    missed = metrics.detections([cut + 1 for cut in run.restarts if cut < rounds], env.change_points, rounds).missed
    return np.maximum(run.regret, 0.0).sum(), run.violations.sum(), len(run.restarts), missed


def milliseconds(rounds):
    """A round of the full policy at the end of a stationary run, on average, and of one that looks for no change."""
    for memory in ("adaptive", None):
        study = nr.Study(policy(memory=memory, rounds=rounds), seed=0)
        study.quiet = True
        f, g = (each[0] for each in tables(0))
        rng, due, spent = np.random.default_rng(1), {}, np.zeros(rounds)
        for t in range(rounds):
            z, late = int(rng.integers(len(CONTEXTS))), int(rng.geometric(1 / (1 + DELAY))) - 1
            began = time.process_time()
            trial = study.ask(CONTEXTS.points[z])
            spent[t] = time.process_time() - began
            noise = NOISE * rng.standard_normal(2)
            answer = trial.number, f[z, trial.arm] + noise[0], g[z, trial.arm] + noise[1]
            due.setdefault(t + late, []).append(answer)
            began = time.process_time()
            for number, reward, limit in due.pop(t, []):
                study.tell(number, reward, constraints=[limit])
            spent[t] += time.process_time() - began
        yield memory, 1e3 * spent.mean(), 1e3 * spent[-LAST:].mean()


def shown(found):
    """The lines of the table."""
    lines = [
        "| policy | R+ | V+ | R+ over the oracle's | V+ over the oracle's | cuts a run | changes missed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, (_, _, oracle) in POLICIES.items():
        regret, violation, cuts, missed = found[name].T
        cells = [name, f"{regret.mean():.1f}", f"{violation.mean():.1f}"]
        for i in range(2):
            if oracle is None:
                cells.append("1")
            else:
                middle, low, high = limits(found[name][:, i], found[oracle][:, i], draws=10_000)
                cells.append(f"{middle:.2f} ({low:.2f} to {high:.2f})")
        cells += [f"{cuts.mean():.2f}", f"{100 * missed.mean() / (PERIODS - 1):.1f}%"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--only", nargs="*", default=list(POLICIES), help="these policies, with their oracles")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--markdown", metavar="FILE", help="write the table there too")
    given = parser.parse_args()
    for name in list(POLICIES):
        if name not in given.only and name not in {POLICIES[other][2] for other in given.only}:
            del POLICIES[name]
    seeds = range(given.first, given.first + given.seeds)
    jobs = [(name, seed) for name in POLICIES for seed in seeds]
    with ProcessPoolExecutor(given.jobs) as pool:
        rows = list(pool.map(partial(played, rounds=given.rounds), jobs, chunksize=2))
    found = {name: np.array(rows[i * len(seeds) : (i + 1) * len(seeds)]) for i, name in enumerate(POLICIES)}
    lines = shown(found)
    print(f"seeds {seeds.start} to {seeds.stop - 1}, T = {given.rounds}")
    print("\n".join(lines))
    if given.markdown:
        Path(given.markdown).write_text("\n".join(lines) + "\n")
    for memory, mean, last in milliseconds(given.rounds):
        print(f"a round with memory={memory!r}: {mean:.2f} ms, of the last {LAST}: {last:.2f} ms")


if __name__ == "__main__":
    main()
