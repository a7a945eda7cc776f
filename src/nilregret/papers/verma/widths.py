"""Not in the paper: what ignoring, hallucinating and censoring buy at the same constant width.

In the paper's comparisons GP-UCB-SDF alone is widened by the sum over the last m queries. Here all have the same width,
2, and the same prior mean, 0.5, on functions scaled to [0, 1]: what differs is what an unanswered trial counts as.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..._utils.checks import Array
from ...algorithms import gp_bts, gp_bucb
from ...domains.domain import Arms
from ...kernels import SquaredExponential
from ...policy.policy import Policy
from ...simulation.environments import ArmFunction, Environment, gp_sample
from ...simulation.environments.delays import Delay, GeometricDelay, PoissonDelay, SilentNo
from ...simulation.results import Run
from ...slots.pending import Censored, Hallucinated, Ignored, Pending
from ...study.curves import Curves
from ...study.study import Study
from ..figure import Job, Result, Statement, kept_rounds
from ..trials import World, compare, in_processes
from ..verdicts import below
from .rules import PAPER

ARMS = Arms.grid(0.0, 1.0, 200)
KERNEL = SquaredExponential(0.1, scale=0.0625)  # standard deviation 0.25
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
    """One policy for everything that an unanswered trial may count as; nothing else differs."""
    make = gp_bts if thompson else gp_bucb
    width = 1.0 if thompson else WIDTH
    policy = make(ARMS, KERNEL, noise=noise, beta=width, prior_mean=CENTER)
    return {name: replace(policy, algorithm="equal width", pending=part) for name, part in COUNTS_AS.items()}


def _both(run: Run) -> Array:
    """Cumulative regret, and simple regret of answered trials, `(2, T)`."""
    return np.stack([run.cumulative_regret, np.minimum(run.simple_regret, 1.0)])


def panels(job: Job, delay: Delay, *, thompson: bool, noise: float = NOISE) -> tuple[Curves, Curves]:
    """Both regrets of the rules under this delay."""
    rules = policies(thompson=thompson, noise=noise)

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - all is in the seed
        return Environment(_scaled(seed), domain=ARMS, noise=noise, delay=delay), rules

    runs = compare(job, world, _both)
    kind = "Thompson sampling" if thompson else "UCB"
    first, second = (
        _panel({name: line[:, i] for name, line in runs.items()}, job.rounds, f"{kind}, {label}", label)
        for i, label in enumerate(("cumulative regret", "simple regret"))
    )
    return first, second


def _scaled(seed: int) -> ArmFunction:
    """A draw from the GP, scaled to [0, 1]."""
    values = gp_sample(SquaredExponential(0.1), ARMS, seed=seed).values
    return ArmFunction(ARMS, (values - values.min()) / (values.max() - values.min()))


def _panel(lines: Mapping[str, Array], rounds: int, title: str, label: str) -> Curves:
    x = kept_rounds(rounds).astype(np.float64)
    return Curves(x=x, lines=lines, title=title, x_label="rounds", y_label=label)


@PAPER.figure(
    "equal-width", "not in the paper: three treatments at one width, delays independent of the reward",
    trials=TRIALS, rounds=ROUNDS, quick=QUICK,
)  # fmt: skip
def independent(job: Job) -> Result:
    """Poisson delays of mean 10, m = 20."""
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
    """Rewards (noise 0.3) below 0.5 are never reported, the others after a geometric delay of mean 5; m = 20."""
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
    """The answer is yes (1), after a geometric delay of mean 5, with probability f(x) <= 0.6; else there is none."""
    shown = []
    for thompson in (False, True):
        base = policies(thompson=thompson, noise=0.5)  # the standard deviation of yes or no
        rules = {name: replace(policy, prior_mean=0.3) for name, policy in base.items()}

        def one(trial: int, rules: Mapping[str, Policy] = rules) -> dict[str, Array]:
            seed = job.seed_of(trial)
            f = 0.6 * _scaled(seed).values
            return {
                name: _clicked(policy, f, job.rounds, seed)[kept_rounds(job.rounds) - 1]
                for name, policy in rules.items()
            }

        results = in_processes(job, one, job.trials)
        lines = {name: np.stack([result[name] for result in results]) for name in rules}
        label = "cumulative regret"
        shown.append(_panel(lines, job.rounds, f"{'Thompson sampling' if thompson else 'UCB'}, {label}", label))
    return Result(tuple(shown), tuple(statement for panel in shown for statement in _censoring_is_better(panel)))


def _clicked(policy: Policy, f: Array, rounds: int, seed: int) -> Array:
    """Cumulative regret where f is the probability of the one answer that there is, `(T,)`."""
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
