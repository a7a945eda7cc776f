"""Plays: a learner on a problem, with the CPU of each decision, and what is written down of it."""

from __future__ import annotations

import time
import warnings

import numpy as np

import nilregret as nr


class Ours:
    """A policy of this library, in a study as anybody has it."""

    def __init__(self, policy, seed):
        self._study = nr.Study(policy, seed=seed)
        self._study.quiet = True

    def ask(self, context):
        trial = self._study.ask(context)
        return trial, trial.arm

    def tell(self, trial, reward):
        self._study.tell(trial, reward)


def auto(problem, seed, **told):
    """`nr.auto` with contexts in the box of their ranges, or in the table that there is."""
    if problem.table is None:
        columns = np.ones(problem.contexts.shape[1])
        context = nr.Box(*(end * columns for end in problem.limits))
    else:
        context = nr.Arms(problem.table)
    policy = nr.auto(nr.Arms(np.eye(problem.arms)), context=context, reward="bernoulli", **told)
    return Ours(policy, seed)


def played(learner, problem, rounds, *, late=0):
    """Arms chosen and CPU seconds of each ask and tell, (T,) each. A reward comes `late` rounds after its decision."""
    chosen, spent, open_ = np.zeros(rounds, dtype=int), np.zeros(rounds), []
    warnings.simplefilter("ignore", nr.errors.NoRegretWarning)
    for t in range(rounds):
        context = problem.contexts[t]
        began = time.process_time()
        token, chosen[t] = learner.ask(context)
        spent[t] = time.process_time() - began
        open_.append((token, problem.reward(t, chosen[t])))
        if len(open_) > late:
            token, reward = open_.pop(0)
            began = time.process_time()
            learner.tell(token, reward)
            spent[t] += time.process_time() - began
    return chosen, spent


def record(row, name, method, setting, seed, problem, chosen, spent):
    """What is written down of one run: see `--json`."""
    last = spent[-max(len(spent) // 20, 1) :]
    return {
        "row": row,
        "problem": name,
        "method": method,
        "setting": setting,
        "seed": seed,
        "rounds": len(chosen),
        "share": float(problem.got(chosen).mean()),
        "regret": problem.regret(chosen),
        "ms": 1e3 * float(spent.mean()),
        "median ms": 1e3 * float(np.median(spent)),
        "last ms": 1e3 * float(np.median(last)),
        "worst ms": 1e3 * float(spent.max()),
    }
