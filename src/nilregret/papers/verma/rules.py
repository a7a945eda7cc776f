"""Shared parts of the figures of Verma, Dai & Low: competitors, measured regret, and statements.

| symbol | name | meaning | shape |
|---|---|---|---|
| mu | | mean delay, in further questions asked | rounds |
| m | `window` | rounds until a pending trial is given up, 2 mu unless said otherwise | rounds |
| beta_t | `BETA` | 1, for all rules (appendix C) | |
| B_y | | 1: rewards lie in [0, 1] | reward units |
| r_t | | simple regret, of answered queries only | (replicates, T) |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..._utils.checks import Array
from ...algorithms import asy_ts, gp_bts, gp_bucb, gp_ts_sdf, gp_ucb_sdf
from ...domains.domain import Arms, Domain
from ...environments import ArmFunction, gp_sample
from ...environments.delays import Delay, FixedDelay, PoissonDelay
from ...kernels import Kernel, SquaredExponential
from ...policy.policy import Policy
from ...simulation.results import Run
from ...slots.pending import Ignored
from ...slots.refit import Refit
from ...study.curves import Curves
from ..figure import Paper, Statement, below, kept_rounds

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
