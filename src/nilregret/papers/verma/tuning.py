"""Figures 2 and 3: hyperparameters of a support vector machine, a convolutional network and a logistic regression.

Rules start from k = exp(-r^2 / (2 0.1^2)) on the unit cube and lambda = 1e-4. As in the released code, they fit the
kernel by maximum likelihood after every 10 answers to raw rewards (accuracies, prior mean 0). Left: the fit takes
rewards of answered trials. Right: it takes the outputs of each method, with censored zeros or hallucinated means.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...environments import ArmFunction, Environment
from ...environments.delays import Delay
from ...kernels import SquaredExponential
from ...slots.refit import Refit
from ..figure import Job, Result, World, compare
from .rules import EARLY, FIXED, PAPER, STOCHASTIC, TS, UCB, known_regret, rules, simple_panel, smaller, window
from .tables import table

TRIALS, ROUNDS, QUICK = 24, 100, (3, 60)
START = SquaredExponential(0.1)
NOISE = 0.01  # noise of the GP, while the objective itself has none
TITLES = {"answered": "kernel fitted to answers", "own": "kernel fitted to own outputs"}


def tuning(job: Job, name: str, names: Sequence[str], delay: Delay) -> Result:
    """Makes a figure of every rule on a table of validation accuracies."""
    known = table(name, job.data)
    f = ArmFunction(known.arms, known.accuracy)
    env = Environment(f, domain=known.arms, delay=delay)
    panels = []
    for outputs, title in TITLES.items():
        refit = Refit(every=10, prior="none", outputs=outputs, standardize=False)
        policies = rules(names, known.arms, START, noise=NOISE, m=window(delay), refit=refit)

        def world(trial: int, seed: int, policies=policies) -> World:  # type: ignore[no-untyped-def]  # noqa: ARG001
            return env, policies

        runs = compare(job, world, known_regret(float(np.ptp(f.values))))
        panels.append(simple_panel(runs, job.rounds, title, unit="share of the validation set"))
    text = f'"{names[0]} ... consistently outperform the corresponding baselines": below {{}}.'
    statements = [
        smaller(panel, names[0], [other], at=at, text=text.format(other))
        for panel in panels
        for at in EARLY
        for other in names[1:]
    ]
    note = f"A table of {len(known.arms)} configurations, accuracies from {f.values.min():.3f} to {f.values.max():.3f}."
    return Result(tuple(panels), tuple(statements), (note,))


SETTINGS = (
    ("UCB rules, Poisson delays", UCB, STOCHASTIC),
    ("UCB rules, fixed delays", UCB, FIXED),
    ("Thompson sampling, Poisson delays", TS, STOCHASTIC),
    ("Thompson sampling, fixed delays", TS, FIXED),
)


MODELS = (
    ("2", "abcd", "svm", "support vector machine on Pima diabetes"),
    ("2", "efgh", "cnn", "convolutional network on MNIST"),
    ("3", "abcd", "lr", "logistic regression on breast cancer"),
)
PAPER.declare(
    [
        (f"{number}{letter}", f"{model}: {about}", tuning, name, names, delay)
        for number, letters, name, model in MODELS
        for letter, (about, names, delay) in zip(letters, SETTINGS, strict=True)
    ],
    trials=TRIALS, rounds=ROUNDS, quick=QUICK,
)  # fmt: skip
