"""Figures 1 and 5: functions drawn from a Gaussian process, scaled to [0, 1], under random and fixed delays.

"An equally spaced grid within the range [0, 1] with a size 1000", squared exponential kernel of lengthscale 0.02. The
paper gives neither the noise (here its standard deviation is 0.01) nor what the GP starts from: here k(x, x) = 0.25, as
large as a function on [0, 1] can vary, and lambda = 0.01.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from ..._utils.checks import Array
from ...domains.domain import Arms
from ...kernels import SquaredExponential
from ...policy.policy import Policy
from ...simulation.environments import ArmFunction, Environment, gp_sample
from ...simulation.environments.delays import Delay, PoissonDelay
from ...slots.refit import Refit
from ...study.curves import Curves
from ..figure import Job, Result, Statement
from ..trials import World, compare
from ..verdicts import below, ends, gap, together, within
from .rules import FIXED, MEAN, PAPER, STOCHASTIC, TS, UCB, known_regret, rules, simple_panel, smaller, window

TRIALS, ROUNDS, QUICK = 30, 100, (6, 100)
ARMS = Arms.grid(0.0, 1.0, 1000)
LENGTHSCALE, NOISE, RIDGE = 0.02, 0.01, 0.01
KNOWN = SquaredExponential(LENGTHSCALE, scale=0.25)
REFITTED = Refit(every=10, prior="none")  # maximum likelihood, standardised rewards of answered queries
TITLES = {"kernel known": None, "kernel fitted every 10 answers": REFITTED}


def scaled_sample(seed: int) -> ArmFunction:
    """A draw from the GP, "normalized into the range of [0, 1]"."""
    values = gp_sample(SquaredExponential(LENGTHSCALE), ARMS, seed=seed).values
    return ArmFunction(ARMS, (values - values.min()) / (values.max() - values.min()))


def runs_under(job: Job, delay: Delay, policies: Mapping[str, Policy]) -> dict[str, Array]:
    """Simple regret of every policy on every function."""

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - all is in the seed
        return Environment(scaled_sample(seed), domain=ARMS, noise=NOISE, delay=delay), policies

    return compare(job, world, known_regret(1.0))


def _rules(names: Sequence[str], m: float, refit: Refit | None) -> dict[str, Policy]:
    return rules(names, ARMS, KNOWN, noise=NOISE, m=m, regularization=RIDGE, refit=refit)


def _ours(job: Job, delay: Delay, m: float, refit: Refit | None) -> Array:
    return runs_under(job, delay, _rules(["GP-UCB-SDF"], m, refit))["GP-UCB-SDF"]


def _panels(job: Job, lines: Callable[[Refit | None], Mapping[str, Array]]) -> tuple[Curves, Curves]:
    """With the kernel known, and with it fitted."""
    first, second = (simple_panel(lines(refit), job.rounds, title) for title, refit in TITLES.items())
    return first, second


@PAPER.figure("1a", "GP-UCB-SDF under short and long delays", trials=TRIALS, rounds=ROUNDS, quick=QUICK)
def delays(job: Job) -> Result:
    """Poisson delays of mean 5, 10 and 20, m = twice that."""
    means = (5.0, MEAN, 20.0)
    panels = _panels(job, lambda refit: {f"mean {mu:g}": _ours(job, PoissonDelay(mu), 2.0 * mu, refit) for mu in means})
    return Result(panels, tuple(_larger_is_worse(panel) for panel in panels))


def _larger_is_worse(curves: Curves) -> Statement:
    averaged = {name: line.mean(axis=1, keepdims=True) for name, line in curves.lines.items()}
    average = replace(curves, x=curves.x[-1:], lines=averaged)
    steps = [below("", average, [a], [b]) for a, b in itertools.pairwise(averaged)]
    text = f'{curves.title}: "larger delays ... result in worse performances": simple regret averaged over all rounds.'
    return Statement(text, "; ".join(step.measured for step in steps), together(step.holds for step in steps))


def _comparable(curves: Curves, a: str, b: str, *, by: float = 0.01) -> Statement:
    """The whole interval of the difference at the end is within 1% of the function's range."""
    apart = gap(curves, a, b)
    return Statement(
        f'{curves.title}: "m = 20 = 2 mu and m = 40 produce comparable performances": the difference at the end, its '
        f"interval included, is within {by:g}.",
        f"{ends(curves, [a, b])}; {b} - {a} = {apart}",
        within(apart, by),
    )


@PAPER.figure("1b", "GP-UCB-SDF with short and long windows m", trials=TRIALS, rounds=ROUNDS, quick=QUICK)
def windows(job: Job) -> Result:
    """Poisson delays of mean 10, m = 5, 10, 20 and 40."""
    panels = _panels(job, lambda refit: {f"m = {m}": _ours(job, STOCHASTIC, float(m), refit) for m in (5, 10, 20, 40)})
    statements = []
    for panel in panels:
        text = f'{panel.title}: "an overly small value of m leads to large regrets": m = 5 against 20 and 40.'
        statements.append(below(text, panel, ["m = 20", "m = 40"], ["m = 5"]))
        statements.append(_comparable(panel, "m = 20", "m = 40"))
    return Result(panels, tuple(statements))


def _against(job: Job, names: Sequence[str], delay: Delay) -> Result:
    panels = _panels(job, lambda refit: runs_under(job, delay, _rules(names, window(delay), refit)))
    text = f'"{names[0]} achieves smaller simple regret than the baselines."'
    statements = [
        smaller(panel, names[0], [other], at=float(job.rounds), text=text) for panel in panels for other in names[1:]
    ]
    return Result(panels, tuple(statements))


@PAPER.figure("1c", "UCB rules, Poisson delays", trials=TRIALS, rounds=ROUNDS, quick=QUICK)
def ucb_stochastic(job: Job) -> Result:
    """Mean 10, m = 20."""
    return _against(job, UCB, STOCHASTIC)


@PAPER.figure("1d", "UCB rules, fixed delays", trials=TRIALS, rounds=ROUNDS, quick=QUICK)
def ucb_fixed(job: Job) -> Result:
    """Delay 10, batches of 11, m = 10."""
    return _against(job, UCB, FIXED)


@PAPER.figure("5a", "Thompson sampling, Poisson delays", trials=TRIALS, rounds=ROUNDS, quick=QUICK)
def ts_stochastic(job: Job) -> Result:
    """As figure 1c."""
    return _against(job, TS, STOCHASTIC)


@PAPER.figure("5b", "Thompson sampling, fixed delays", trials=TRIALS, rounds=ROUNDS, quick=QUICK)
def ts_fixed(job: Job) -> Result:
    """As figure 1d."""
    return _against(job, TS, FIXED)
