"""Comparison of ignoring, hallucinating and censoring at the same constant width, which is not in the paper.

In the paper only GP-UCB-SDF is widened by the sum over the last m queries. Here all rules have the same width, 2, and
the same prior mean, 0.5, on functions scaled to [0, 1]. Only the imputed value of a pending trial differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..._utils.checks import Array
from ...algorithms import gp_bts, gp_bucb
from ...domains.domain import Arms
from ...environments import Environment
from ...environments.delays import Delay, GeometricDelay, PoissonDelay, SilentNo
from ...kernels import SquaredExponential
from ...policy.policy import Policy
from ...simulation.metrics import Run
from ...slots.pending import Censored, Hallucinated, Ignored, Pending
from ...study.curves import Curves
from ...study.study import Study
from ..figure import Job, Result, Statement, World, below, compare, in_trials, kept_rounds
from .synthetic import PAPER, scaled_sample

ARMS = Arms.grid(0.0, 1.0, 200)
LENGTHSCALE = 0.1
KERNEL = SquaredExponential(LENGTHSCALE, scale=0.0625)  # standard deviation 0.25
NOISE, WIDTH, CENTER = 0.1, 2.0, 0.5
M = 20.0
TRIALS, ROUNDS, QUICK = 30, 200, (6, 200)
COUNTS_AS: dict[str, Pending] = {
    "ignored": Ignored(),
    "hallucinated": Hallucinated(),
    "censored": Censored(minimum=0.0, window=M),
    "censored, late accepted": Censored(minimum=0.0, window=M, late="accept"),
}


def policies(*, thompson: bool, noise: float = NOISE) -> dict[str, Policy]:
    """Returns a policy for each imputed value of a pending trial, all else being equal."""
    make = gp_bts if thompson else gp_bucb
    width = 1.0 if thompson else WIDTH
    policy = make(ARMS, KERNEL, noise=noise, beta=width, prior_mean=CENTER)
    return {name: replace(policy, algorithm="equal width", pending=part) for name, part in COUNTS_AS.items()}


def _both(run: Run) -> Array:
    """Returns the cumulative regret, and the simple regret of answered trials, `(2, T)`."""
    return np.stack([run.cumulative_regret, np.minimum(run.simple_regret, 1.0)])


def panels(job: Job, delay: Delay, *, thompson: bool, noise: float = NOISE) -> tuple[Curves, Curves]:
    """Returns panels of both regrets of the rules under this delay."""
    rules = policies(thompson=thompson, noise=noise)

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - The seed decides everything.
        return Environment(scaled_sample(ARMS, LENGTHSCALE, seed), domain=ARMS, noise=noise, delay=delay), rules

    runs = compare(job, world, _both)
    kind = "Thompson sampling" if thompson else "UCB"
    first, second = (
        _panel({name: line[:, i] for name, line in runs.items()}, job.rounds, f"{kind}, {label}", label)
        for i, label in enumerate(("cumulative regret", "simple regret"))
    )
    return first, second


def _panel(lines: Mapping[str, Array], rounds: int, title: str, label: str) -> Curves:
    x = kept_rounds(rounds).astype(np.float64)
    return Curves(x=x, lines=lines, title=title, x_label="rounds", y_label=label)


@PAPER.figure(
    "equal-width", "not in the paper: three treatments at one width, delays independent of the reward",
    trials=TRIALS, rounds=ROUNDS, quick=QUICK,
)  # fmt: skip
def independent(job: Job) -> Result:
    """Takes Poisson delays of mean 10, and m = 20."""
    shown = [panel for thompson in (False, True) for panel in panels(job, PoissonDelay(10.0), thompson=thompson)]
    statements = [
        below(f"{panel.title}: hallucinating is better than {what}.", panel, ["hallucinated"], [other])
        for panel in shown[::2]
        for what, other in (("ignoring", "ignored"), ("censoring", "censored"))
    ]
    return Result(tuple(shown), tuple(statements))


@PAPER.figure(
    "silent-no", "not in the paper: three treatments at one width, where no answer means no",
    trials=TRIALS, rounds=ROUNDS, quick=QUICK,
)  # fmt: skip
def silent(job: Job) -> Result:
    """Never reports rewards (noise 0.3) below 0.5, and the others after a geometric delay of mean 5, with m = 20."""
    delay = SilentNo(0.5, other=GeometricDelay(5.0))
    shown = [panel for thompson in (False, True) for panel in panels(job, delay, thompson=thompson, noise=0.3)]
    return Result(tuple(shown), tuple(statement for panel in shown[::2] for statement in _censoring_is_better(panel)))


def _censoring_is_better(panel: Curves) -> list[Statement]:
    return [
        below(f"{panel.title}: censoring is better than {what}.", panel, ["censored"], [other])
        for what, other in (("ignoring", "ignored"), ("hallucinating", "hallucinated"))
    ]


@PAPER.figure(
    "clicks", "not in the paper: three treatments at one width, where the only answer is yes",
    trials=TRIALS, rounds=400, quick=(6, 200),
)  # fmt: skip
def clicks(job: Job) -> Result:
    """Answers yes (1) with probability f(x) <= 0.6 after a geometric delay of mean 5, and else never."""
    shown = []
    for thompson in (False, True):
        base = policies(thompson=thompson, noise=0.5)  # the standard deviation of yes or no
        rules = {name: replace(policy, prior_mean=0.3) for name, policy in base.items()}

        def one(trial: int, rules: Mapping[str, Policy] = rules) -> dict[str, Array]:
            seed = job.seed_of(trial)
            f = 0.6 * scaled_sample(ARMS, LENGTHSCALE, seed).values
            return {
                name: _clicked(policy, f, job.rounds, seed)[kept_rounds(job.rounds) - 1]
                for name, policy in rules.items()
            }

        lines, label = in_trials(job, one), "cumulative regret"
        shown.append(_panel(lines, job.rounds, f"{'Thompson sampling' if thompson else 'UCB'}, {label}", label))
    return Result(tuple(shown), tuple(statement for panel in shown for statement in _censoring_is_better(panel)))


def _clicked(policy: Policy, f: Array, rounds: int, seed: int) -> Array:
    """Returns the cumulative regret if f is the probability of the only possible answer, `(T,)`."""
    study, rng, regret = Study(policy, seed=seed), np.random.default_rng([seed, 1]), np.zeros(rounds)
    chance, delays = rng.uniform(size=rounds), rng.geometric(1.0 / 6.0, size=rounds) - 1
    due: dict[int, list[int]] = {}
    for t in range(rounds):
        trial = study.ask()
        arm = int(trial.arm or 0)
        regret[t] = f.max() - f[arm]
        if chance[t] < f[arm]:
            due.setdefault(t + int(delays[t]), []).append(t)
        for number in due.pop(t, []):
            study.tell(number, 1.0)
    return np.cumsum(regret)
