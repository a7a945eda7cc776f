"""Figures 2 and 3: hyperparameters of a support vector machine, a convolutional network and a logistic regression.

Rules start from k = exp(-r^2 / (2 0.1^2)) on the unit cube and lambda = 1e-4. As in the released code, they fit the
kernel by maximum likelihood after every 10 answers to raw rewards (accuracies, prior mean 0). Left: the fit takes
rewards of answered trials. Right: it takes the outputs of each method, with censored zeros or hallucinated means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ..._utils.checks import Array
from ...domains.domain import Arms
from ...environments import ArmFunction, Environment
from ...environments.data.datasets import arrays, find
from ...environments.delays import Delay, PoissonDelay
from ...kernels import SquaredExponential
from ...slots.refit import Refit
from ...study.curves import Curves
from ..figure import Job, Result, World, below, compare, cumulative_regret, kept_rounds
from .synthetic import EARLY, FIXED, PAPER, STOCHASTIC, TS, UCB, known_regret, rules, simple_panel, smaller, window
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


VISITS = 30  # rounds of a context
DELAY, M = PoissonDelay(3.0), 6.0
META_FEATURES = 6
TST_SVM = ("tst_svm/tst_svm.npz",)
Model = tuple[SquaredExponential, float]  # kernel, and standard deviation of the noise

TST: Model = SquaredExponential(1.7, scale=1.0), 0.13
# The fit finds no dependence on context and C (lengthscales of 1,000), so that both get the side of the box.
GROWING: Model = SquaredExponential((1.0, 1.0, 0.15), scale=0.7), 0.01


def contextual(job: Job, names: Sequence[str], contexts: Arms, arms: Arms, values: Array, model: Model) -> Result:
    """Makes a figure of rules on a table with a row `(N,)` for each context. Contexts come in this order."""
    kernel, noise = model
    policies = rules(names, arms, kernel, noise=noise, m=M, context=contexts)

    def reward(points: Array, seen: Array) -> Array:
        return np.asarray(values[contexts.index(seen), arms.index(points)])

    env = Environment(
        reward, domain=arms, contexts=contexts, context_order=np.repeat(contexts.points, VISITS, axis=0), delay=DELAY,
        best=lambda seen: values[contexts.index(seen)].max(axis=1),
    )  # fmt: skip

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - Only delays and ties are random.
        return env, policies

    runs = compare(job, world, cumulative_regret)
    curves = Curves(
        x=kept_rounds(job.rounds).astype(np.float64), lines=runs, x_label="iterations", y_label="cumulative regret"
    )
    text = f'"{names[0]} incur[s] smaller regrets than the other baselines": below {{}}.'
    return Result((curves,), tuple(below(text.format(other), curves, [names[0]], [other]) for other in names[1:]))


def tasks(data: Path | None) -> tuple[Arms, Arms, Array]:
    """Returns contexts, arms and accuracies `(50, 288)` of Wistuba et al.'s table, tasks in alphabetical order."""
    origin = (
        "It is made of data/svm of the GitHub repository wistuba/TST (Wistuba, Schilling and Schmidt-Thieme 2015): "
        "arrays accuracy (50, 288), hyperparameters (288, 6) and meta_features (50, 22)."
    )
    file = find("tst_svm", ["tst_svm.npz"], data, origin=origin)
    accuracy, hyperparameters, features = (
        np.asarray(array, dtype=np.float64) for array in arrays(file, ["accuracy", "hyperparameters", "meta_features"])
    )
    return Arms(features[:, :META_FEATURES]), Arms(hyperparameters), accuracy


def growing(data: Path | None) -> tuple[Arms, Arms, Array]:
    """Returns contexts 0, 1/19, ..., 1, the arms, and the accuracies of the `growing` table."""
    known = table("growing", data)
    return Arms.grid(0.0, 1.0, len(known.accuracy)), known.arms, known.accuracy


def _make(
    job: Job, names: Sequence[str], load: Callable[[Path | None], tuple[Arms, Arms, Array]], model: Model
) -> Result:
    return contextual(job, names, *load(job.data), model)


# The context is six meta-features of a task, or the number of the data set, 0 to 19, scaled to [0, 1].
PAPER.declare(
    [
        ("4a", "fifty tasks as contexts, UCB rules", _make, UCB, tasks, TST),
        ("4b", "fifty tasks as contexts, Thompson sampling", _make, TS, tasks, TST),
    ],
    trials=10, rounds=1500, quick=(2, 200), data=TST_SVM,
)  # fmt: skip
PAPER.declare(
    [
        ("4c", "ever more data as context, UCB rules", _make, UCB, growing, GROWING),
        ("4d", "ever more data as context, Thompson sampling", _make, TS, growing, GROWING),
    ],
    trials=10, rounds=600, quick=(2, 200),
)  # fmt: skip
