"""What `auto(regret="cumulative")` is made of: tables or linear models, scores on boxes, and the models of the bank.

    python benchmarks/every_reward.py --only cells boxes bank --runs 4 [--rounds N]
    python benchmarks/every_reward.py --only boxes --runs 4

| part | what is measured |
|---|---|
| cells | clicks of 8 arms under few contexts: regret of a table of rates and of linear models, CPU of a decision |
| boxes | regret of scores on boxes over that of expected improvement, kernel and noise learned |
| bank | regret of other banks of models over that of the default |

Seeds are paired. CPU is of ask and tell, one BLAS thread.
"""

import time
import warnings

import bench
import numpy as np

import nilregret as nr
from nilregret.slots import ArmModels, GaussianDraws, InitialDesign
from nilregret.slots.envelope import ConstantWidth
from nilregret.slots.scores import RandomisedBound, UpperConfidenceBound

ARMS = nr.Arms(np.arange(8.0))


def played(policy, contexts, means, noise, rounds, seed):
    """Regret, and CPU milliseconds of a decision. Means are `(n, K)`, clicks where `noise` is None."""
    study, rng, regret = bench.quiet(policy, seed=seed), np.random.default_rng([seed, 7]), 0.0
    began = time.process_time()
    for _ in range(rounds):
        i = rng.integers(len(contexts))
        trial = study.ask(contexts[i])
        mean = means[i, trial.arm]
        study.tell(trial, float(rng.random() < mean) if noise is None else mean + noise * rng.standard_normal())
        regret += means[i].max() - mean
    return regret, 1e3 * (time.process_time() - began) / rounds


def of_cells(kind, count, seed):
    """Contexts and rates of clicks: each cell by itself, or smooth in two columns of the context."""
    rng = np.random.default_rng([seed, count])
    if kind == "unrelated":
        return np.arange(float(count))[:, None], 1.0 / (1.0 + np.exp(2.0 - 0.8 * rng.standard_normal((count, 8))))
    side = round(count**0.5)
    contexts = np.array([(i, j) for i in range(side) for j in range(side)], dtype=float)
    z = (contexts - contexts.mean(0)) / contexts.std(0)
    log_odds = -2.0 + 0.5 * z @ rng.standard_normal((2, 8)) + 0.3 * rng.standard_normal(8)
    return contexts, 1.0 / (1.0 + np.exp(-log_odds))


def cells(args):
    rows = []
    for kind in ("unrelated", "smooth"):
        for count in (4, 9, 25, 64):
            found = []
            for seed in range(args.runs):
                contexts, rates = of_cells(kind, count, seed)
                table = nr.auto(ARMS, context=nr.Arms(contexts), reward="bernoulli", regret="simple")
                models = nr.auto(ARMS, context=nr.Arms(contexts), reward="bernoulli")
                models = models.using(refit=ArmModels(), score=GaussianDraws(), confidence=ConstantWidth(value=2.0))
                told = contexts, rates, None, args.rounds or 1500, seed
                found.append([*played(table, *told), *played(models, *told)])
            table, spent, models, spent_by_models = np.mean(found, axis=0)
            rows.append([kind, 8 * count, table, models, f"{spent:.2f}", f"{spent_by_models:.2f}"])
    bench.table("", ["arms", "cells", "table", "models", "ms", "ms of models"], rows, floatfmt=".1f")


def function(columns, length, seed):
    """A function drawn from a Matern-5/2 process, about, and its highest value in the unit box."""
    rng = np.random.default_rng([seed, 5])
    waves = rng.standard_normal((200, columns)) / length / np.sqrt(rng.chisquare(5, 200) / 5)[:, None]
    shifts, weights = rng.uniform(0.0, 2.0 * np.pi, 200), rng.standard_normal(200) * np.sqrt(2 / 200)
    points = np.random.default_rng(0).random((6000, columns))
    return lambda x: float(np.cos(waves @ x + shifts) @ weights), (np.cos(points @ waves.T + shifts) @ weights).max()


def boxes(args):
    rules = {
        "expected improvement": {},
        "width drawn, E alone": {"score": RandomisedBound(shift=0.0)},
        "two deviations": {"score": UpperConfidenceBound()},
        "one deviation": {"score": UpperConfidenceBound(), "confidence": ConstantWidth(value=1.0)},
        "E alone, no coordinate search": {"score": RandomisedBound(shift=0.0), "explore": InitialDesign(10)},
    }
    rows = []
    for columns, length, noise in ((1, 0.1, 0.1), (2, 0.2, 0.1), (2, 0.2, 0.5), (4, 0.5, 0.1)):
        policy, found = nr.auto(nr.Box(np.zeros(columns), np.ones(columns)), regret="simple"), []
        for seed in range(args.runs):
            f, best = function(columns, length, seed)
            regrets = []
            for parts in rules.values():
                study, rng, regret = nr.Study(policy.using(**parts), seed=seed), np.random.default_rng(seed), 0.0
                for _ in range(args.rounds or 60):
                    trial = study.ask()
                    study.tell(trial, f(trial.point) + noise * rng.standard_normal())
                    regret += max(best - f(trial.point), 0.0)
                regrets.append(regret)
            found.append(regrets)
        ratios = np.median(np.array(found) / np.array(found)[:, :1], axis=0)
        rows.append([f"{columns} columns, noise {noise}", *np.mean(found, axis=0)[:1], *ratios[1:]])
    bench.table("", ["", *rules], rows, floatfmt=".2f")


def bank(args):
    variants = {
        "default": {},
        "width 0.5": {"score": GaussianDraws(width=0.5)},
        "precision 3": {"refit": ArmModels(precision=3.0)},
        "nothing related": {"refit": ArmModels(related=False)},
        "no drift": {"refit": ArmModels(drift=0.0)},
    }
    rows = []
    for name, arms, noise in (("faint clicks", 8, None), ("smooth, 100 arms", 100, 0.3), ("unrelated, 8 arms", 8, 0.3)):
        found = []
        for seed in range(args.runs):
            rng = np.random.default_rng([seed, arms])
            contexts, points = rng.random((2000, 3)), rng.random((arms, 2))
            if noise is None:
                means = 1.0 / (1.0 + np.exp(3.0 - (contexts - 0.5) @ rng.standard_normal((3, arms))))
            elif arms == 100:
                pairs = np.concatenate([np.repeat(contexts, arms, 0), np.tile(points, (2000, 1))], axis=1)
                waves, shifts = rng.standard_normal((60, 5)) / 0.6, rng.uniform(0, 6.3, 60)
                means = (np.cos(pairs @ waves.T + shifts) @ rng.standard_normal(60) * 60**-0.5).reshape(2000, arms)
            else:
                waves, shifts = rng.standard_normal((60, 3)) / 0.5, rng.uniform(0, 6.3, 60)
                means = np.cos(contexts @ waves.T + shifts) @ rng.standard_normal((60, arms)) * 60**-0.5
            policy = nr.auto(nr.Arms(points), context=nr.Box(np.zeros(3), np.ones(3)))
            each = [(policy.using(**parts), args.rounds or 1000) for parts in variants.values()]
            found.append([played(p, contexts, means, noise, n, seed)[0] for p, n in each])
        rows.append([name, *np.mean(found, axis=0)])
    bench.table("", ["", *variants], rows, floatfmt=".1f")


@bench.command(__doc__)
def main(args):
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    for part in (cells, boxes, bank):
        if part.__name__ in args.only:
            part(args)
