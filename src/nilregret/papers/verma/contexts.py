"""Figure 4: contexts. Fifty tasks one after the other, and one task on ever more data.

Each context stays for 30 rounds. Delays are Poisson of mean 3, and m = 6. The cumulative regret is against the best arm
of each context. The kernel is a fixed squared exponential of (context, arm), because fits of up to 1,500 points every
10 rounds would be most of the work. Its numbers come from a maximum likelihood fit to 500 random cells (appendix C
names none).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ..._utils.checks import Array
from ...domains.domain import Arms
from ...environments import Environment
from ...environments.data.datasets import arrays, find
from ...environments.delays import PoissonDelay
from ...kernels import SquaredExponential
from ...study.curves import Curves
from ..figure import Job, Result, World, compare, cumulative_regret, kept_rounds
from ..verdicts import below
from .rules import PAPER, TS, UCB, rules
from .tables import table

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
