"""Figures 1 and 5: functions drawn from a Gaussian process, scaled to [0, 1], under random and fixed delays.

"An equally spaced grid within the range [0, 1] with a size 1000", squared exponential kernel of lengthscale 0.02. The
paper gives neither the noise nor the initial kernel of the rules. Here the noise has standard deviation 0.01, and
lambda = 0.01. The prior variance k(x, x) = 0.25 is the largest variance of a function on [0, 1].

Before them stand the shared parts of all figures: competitors, measured regret, and statements.

| symbol | name | meaning | shape |
|---|---|---|---|
| mu | | mean delay, in further questions asked | rounds |
| m | `window` | rounds until a pending trial is given up, 2 mu unless said otherwise | rounds |
| beta_t | `BETA` | 1, for all rules (appendix C) | |
| B_y | | 1: rewards lie in [0, 1] | reward units |
| r_t | | simple regret, of answered queries only | (replicates, T) |
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..._utils.checks import Array
from ...algorithms import asy_ts, gp_bts, gp_bucb, gp_ts_sdf, gp_ucb_sdf
from ...domains.domain import Arms, Domain
from ...environments import ArmFunction, Environment, gp_sample
from ...environments.delays import Delay, FixedDelay, PoissonDelay
from ...kernels import Kernel, SquaredExponential
from ...policy.policy import Policy
from ...simulation.metrics import Run
from ...slots.pending import Ignored
from ...slots.refit import Refit
from ...study.curves import Curves
from ..figure import Job, Paper, Result, Statement, World, below, compare, ends, gap, kept_rounds, together, within

PAPER = Paper("verma", "Verma, Dai and Low 2022: GP-UCB-SDF and GP-TS-SDF")

BETA = 1.0
MEAN = 10.0  # mu, and the fixed delay of batches of 11
STOCHASTIC, FIXED = PoissonDelay(MEAN), FixedDelay(MEAN)
UCB = ["GP-UCB-SDF", "GP-UCB", "GP-BUCB"]  # Pending trials are censored (ours), ignored, or hallucinated.
TS = ["GP-TS-SDF", "asy-TS", "GP-BTS"]
EARLY = (20, 40)  # rounds of the verdicts on tuning


def window(delay: Delay) -> float:
    """Returns m, which is twice the mean of random delays, or a fixed delay itself (batches of m + 1)."""
    return delay.rounds if isinstance(delay, FixedDelay) else 2.0 * MEAN


def rules(
    names: Sequence[str],
    arms: Arms,
    kernel: Kernel,
    *,
    noise: float,
    m: float,
    context: Domain | None = None,
    regularization: float | None = None,
    refit: Refit | None = None,
) -> dict[str, Policy]:
    """Returns the competitors by name: a GP of mean 0, the minimum of f, beta_t = 1 and B_y = 1 (appendix C)."""
    ridge = noise**2 if regularization is None else regularization
    makers: dict[str, Callable[..., Policy]] = {
        "GP-UCB-SDF": gp_ucb_sdf, "GP-UCB": gp_bucb, "GP-BUCB": gp_bucb,
        "GP-TS-SDF": gp_ts_sdf, "asy-TS": asy_ts, "GP-BTS": gp_bts,
    }  # fmt: skip
    policies = {}
    for name in names:
        more = {"window": m} if name.endswith("SDF") else {}
        policies[name] = makers[name](
            arms, kernel, noise=noise, beta=BETA, context=context, regularization=ridge, refit=refit, **more
        )
    if "GP-UCB" in policies:  # GP-UCB has a constant width and ignores pending trials.
        policies["GP-UCB"] = replace(policies["GP-UCB"], algorithm="gp_ucb", pending=Ignored())
    return policies


def scaled_sample(arms: Arms, lengthscale: float, seed: int) -> ArmFunction:
    """Returns a draw from the GP, "normalized into the range of [0, 1]"."""
    values = gp_sample(SquaredExponential(lengthscale), arms, seed=seed).values
    return ArmFunction(arms, (values - values.min()) / (values.max() - values.min()))


def known_regret(worst: float) -> Callable[[Run], Array]:
    """Returns the simple regret of answered queries, `(T,)`, which starts at that of the worst point."""
    return lambda run: np.minimum(run.simple_regret, worst)


def simple_panel(lines: Mapping[str, Array], rounds: int, title: str = "", unit: str = "") -> Curves:
    """Returns a panel of the simple regret against the rounds."""
    return Curves(
        x=kept_rounds(rounds).astype(np.float64), lines=lines, title=title,
        x_label="iterations", y_label=f"simple regret{f', {unit}' if unit else ''}",
    )  # fmt: skip


def until(curves: Curves, last: float) -> Curves:
    """Returns the curves up to a round, or to their end if they are shorter."""
    kept = max(int((curves.x <= last).sum()), 1)
    return replace(curves, x=curves.x[:kept], lines={name: line[:, :kept] for name, line in curves.lines.items()})


def smaller(curves: Curves, ours: str, others: Sequence[str], *, at: float, text: str) -> Statement:
    """Returns the statement that ours is below all others at a round."""
    cut = until(curves, at)
    return below(f"{curves.title}: {text} At round {cut.x[-1]:g}.", cut, [ours], others)


TRIALS, ROUNDS, QUICK = 30, 100, (6, 100)
ARMS = Arms.grid(0.0, 1.0, 1000)
LENGTHSCALE, NOISE, RIDGE = 0.02, 0.01, 0.01
KNOWN = SquaredExponential(LENGTHSCALE, scale=0.25)
REFITTED = Refit(every=10, prior="none")  # maximum likelihood, standardised rewards of answered queries
TITLES = {"kernel known": None, "kernel fitted every 10 answers": REFITTED}


def runs_under(job: Job, delay: Delay, policies: Mapping[str, Policy]) -> dict[str, Array]:
    """Returns the simple regret of every policy on every function."""

    def world(trial: int, seed: int) -> World:  # noqa: ARG001 - The seed decides everything.
        return Environment(scaled_sample(ARMS, LENGTHSCALE, seed), domain=ARMS, noise=NOISE, delay=delay), policies

    return compare(job, world, known_regret(1.0))


def _rules(names: Sequence[str], m: float, refit: Refit | None) -> dict[str, Policy]:
    return rules(names, ARMS, KNOWN, noise=NOISE, m=m, regularization=RIDGE, refit=refit)


def _ours(job: Job, delay: Delay, m: float, refit: Refit | None) -> Array:
    return runs_under(job, delay, _rules(["GP-UCB-SDF"], m, refit))["GP-UCB-SDF"]


def _panels(job: Job, lines: Callable[[Refit | None], Mapping[str, Array]]) -> tuple[Curves, Curves]:
    """Returns a panel with the known kernel, and one with a fitted kernel."""
    first, second = (simple_panel(lines(refit), job.rounds, title) for title, refit in TITLES.items())
    return first, second


@PAPER.figure("1a", "GP-UCB-SDF under short and long delays", trials=TRIALS, rounds=ROUNDS, quick=QUICK)
def delays(job: Job) -> Result:
    """Takes Poisson delays of mean 5, 10 and 20, and m = twice the mean."""
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
    """Returns the statement that two curves end within 1% of the range of the function, interval included."""
    apart = gap(curves, a, b)
    return Statement(
        f'{curves.title}: "m = 20 = 2 mu and m = 40 produce comparable performances": the difference at the end, its '
        f"interval included, is within {by:g}.",
        f"{ends(curves, [a, b])}; {b} - {a} = {apart}",
        within(apart, by),
    )


@PAPER.figure("1b", "GP-UCB-SDF with short and long windows m", trials=TRIALS, rounds=ROUNDS, quick=QUICK)
def windows(job: Job) -> Result:
    """Takes Poisson delays of mean 10, and m = 5, 10, 20 and 40."""
    panels = _panels(job, lambda refit: {f"m = {m}": _ours(job, STOCHASTIC, float(m), refit) for m in (5, 10, 20, 40)})
    statements = []
    for panel in panels:
        text = f'{panel.title}: "an overly small value of m leads to large regrets": m = 5 against 20 and 40.'
        statements.append(below(text, panel, ["m = 20", "m = 40"], ["m = 5"]))
        statements.append(_comparable(panel, "m = 20", "m = 40"))
    return Result(panels, tuple(statements))


def _against(job: Job, names: Sequence[str], delay: Delay) -> Result:
    panels = _panels(job, lambda refit: runs_under(job, delay, _rules(names, window(delay), refit)))
    said = "" if names[0] == UCB[0] else " (said of GP-UCB-SDF)"  # The paper says nothing of figure 5.
    text = f'{names[0]} "achieves smaller simple regret than the baselines"{said}.'
    made = [smaller(panel, names[0], [other], at=job.rounds, text=text) for panel in panels for other in names[1:]]
    return Result(panels, tuple(made))


# Poisson delays have mean 10 and m = 20. Fixed delays are 10, in batches of 11, with m = 10.
PAPER.declare(
    [
        ("1c", "UCB rules, Poisson delays", _against, UCB, STOCHASTIC),
        ("1d", "UCB rules, fixed delays", _against, UCB, FIXED),
        ("5a", "Thompson sampling, Poisson delays", _against, TS, STOCHASTIC),
        ("5b", "Thompson sampling, fixed delays", _against, TS, FIXED),
    ],
    trials=TRIALS, rounds=ROUNDS, quick=QUICK,
)  # fmt: skip
