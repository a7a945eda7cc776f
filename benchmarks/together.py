"""Everything at once: answers that come late, changes that nobody announces, a constraint, and contexts.

    python benchmarks/together.py --seeds 32 --first 1000 --rounds 1200 [--only POLICY ...] --jobs 1

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

import time
import warnings
from functools import cache

import bench
import numpy as np

import nilregret as nr
from nilregret.environments.delays import GeometricDelay
from nilregret.simulation import metrics
from nilregret.slots.envelope import ConstantWidth

CONTEXTS, ACTIONS = nr.Arms.grid(0, 1, 12), nr.Arms.grid(0, 1, 30)
LENGTH, NOISE, DELAY, SHIFT, INSIDE = 0.2, 0.1, 10.0, 0.4, -0.1
PERIODS = 3
LAST = 100  # rounds over which the time of a round is taken
EVERYWHERE = 1e6  # a lengthscale of which nothing is seen


@cache
def root():
    """Of the kernel matrix of all (context, action)."""
    cells = np.array([[*z, *x] for z in CONTEXTS.points for x in ACTIONS.points])
    return bench.root(nr.SquaredExponential([LENGTH, LENGTH]), cells)


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
    return lambda points, contexts: table[CONTEXTS.index(contexts), ACTIONS.index(points)]


def world(seed, *, rounds, reward_changes=True):
    """The environment of one seed."""
    f, g = (list(map(looked_up, each)) for each in tables(seed))
    return nr.Environment(
        f if reward_changes else f[0],
        domain=ACTIONS, contexts=CONTEXTS, noise=NOISE, delay=GeometricDelay(DELAY), constraints=g,
        constraint_noise=NOISE, change_points=nr.environments.even_changes(rounds, PERIODS),
    )  # fmt: skip


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


LONG, QUIET, ALONE = {"length": 1.6 * LENGTH}, {"noise": 0.5 * NOISE}, {"reward_changes": False}
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
    "oracle, constraint changes alone": ({"memory": "told"}, ALONE, None),
    "full, constraint changes alone": ({"memory": "adaptive"}, ALONE, "oracle, constraint changes alone"),
}


def played(name, seed, rounds):
    """(R+, V+, cuts, missed changes) of one policy on one seed."""
    chosen, where, _ = POLICIES[name]
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    env = world(seed, rounds=rounds, **where)
    run = nr.simulate(policy(rounds=rounds, **chosen), env, rounds, seed=seed)
    missed = metrics.detections([cut + 1 for cut in run.restarts if cut < rounds], env.change_points, rounds).missed
    return np.maximum(run.regret, 0.0).sum(), run.violations.sum(), len(run.restarts), missed


def milliseconds(rounds):
    """A round of the full policy at the end of a stationary run, on average, and of one that looks for no change."""
    for memory in ("adaptive", None):
        study = bench.quiet(policy(memory=memory, rounds=rounds), seed=0)
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


@bench.command(__doc__)
def main(given):
    only, rows = given.only or list(POLICIES), []
    names = [name for name in POLICIES if name in only or name in {POLICIES[other][2] for other in only}]
    seeds = range(given.first, given.first + given.seeds)
    runs = bench.mapped(given.jobs, played, [(name, seed, given.rounds) for name in names for seed in seeds])
    found = dict(zip(names, np.reshape(runs, (len(names), len(seeds), 4)), strict=True))
    for name, each in found.items():
        regret, violation, cuts, missed = each.T
        row = [name, f"{regret.mean():.1f}", f"{violation.mean():.1f}"]
        oracle = found.get(POLICIES[name][2])
        for i in range(2):
            limits = None if oracle is None else bench.interval(each[:, i], oracle[:, i], draws=10_000)
            row.append("{:.2f} ({:.2f} to {:.2f})".format(*limits) if limits else "1")
        rows.append([*row, f"{cuts.mean():.2f}", f"{100 * missed.mean() / (PERIODS - 1):.1f}%"])
    head = ["policy", "R+", "V+", "R+ over the oracle's", "V+ over the oracle's", "cuts a run", "changes missed"]
    bench.table(f"seeds {seeds.start} to {seeds.stop - 1}, T = {given.rounds}", head, rows, markdown=True)
    for memory, mean, last in milliseconds(given.rounds):
        print(f"a round with memory={memory!r}: {mean:.2f} ms, of the last {LAST}: {last:.2f} ms")
