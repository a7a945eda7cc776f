"""What the figures of Verma, Dai & Low share: the rules that are compared, what is measured, and the sentences.

| symbol | name | meaning | shape |
|---|---|---|---|
| mu | | mean delay, in further questions asked | rounds |
| m | `window` | how long an answer is waited for, 2 mu unless said otherwise | rounds |
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
from ...kernels import Kernel
from ...policy.policy import Policy
from ...simulation.environments.delays import Delay, FixedDelay, PoissonDelay
from ...simulation.results import Run
from ...slots.pending import Ignored
from ...slots.refit import Refit
from ...study.curves import Curves
from ..figure import Paper, Statement, kept_rounds
from ..verdicts import below

PAPER = Paper("verma", "Verma, Dai and Low 2022: GP-UCB-SDF and GP-TS-SDF")

BETA = 1.0
MEAN = 10.0  # mu, and the fixed delay of batches of 11
STOCHASTIC, FIXED = PoissonDelay(MEAN), FixedDelay(MEAN)
UCB = ["GP-UCB-SDF", "GP-UCB", "GP-BUCB"]  # ours (censored), delays ignored, hallucinated
TS = ["GP-TS-SDF", "asy-TS", "GP-BTS"]
EARLY = (20, 40)  # rounds at which sentences about tuning are judged


def window(delay: Delay) -> float:
    """M: twice the mean of random delays; the delay itself where it is always the same (batches of m + 1)."""
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
    """The competitors by name: a GP of mean 0, the minimum of f, beta_t = 1 and B_y = 1 (appendix C)."""
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
    if "GP-UCB" in policies:  # a constant width, and delayed answers ignored
        policies["GP-UCB"] = replace(policies["GP-UCB"], algorithm="gp_ucb", pending=Ignored())
    return policies


def known_regret(worst: float) -> Callable[[Run], Array]:
    """Simple regret of answered queries, `(T,)`; before the first answer that of the worst point."""
    return lambda run: np.minimum(run.simple_regret, worst)


def simple_panel(lines: Mapping[str, Array], rounds: int, title: str = "", unit: str = "") -> Curves:
    """Simple regret against the rounds."""
    return Curves(
        x=kept_rounds(rounds).astype(np.float64), lines=lines, title=title,
        x_label="iterations", y_label=f"simple regret{f', {unit}' if unit else ''}",
    )  # fmt: skip


def until(curves: Curves, last: float) -> Curves:
    """The curves up to a round (or to their end, where that is before it)."""
    kept = max(int((curves.x <= last).sum()), 1)
    return replace(curves, x=curves.x[:kept], lines={name: line[:, :kept] for name, line in curves.lines.items()})


def smaller(curves: Curves, ours: str, others: Sequence[str], *, at: float, text: str) -> Statement:
    """Whether ours is below every other one at a round."""
    cut = until(curves, at)
    return below(f"{curves.title}: {text} At round {cut.x[-1]:g}.", cut, [ours], others)
