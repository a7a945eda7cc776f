"""BOCA, and the recommended policy, for objectives with a setting that makes trials cheaper."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from .._utils.checks import shown
from ..domains.domain import D
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy
from ..slots.by_name import part_of
from ..slots.envelope import Confidence
from ..slots.explore import CoordinateSearch, Explore, InitialDesign, InTurn
from ..slots.fidelity import Confirm, Fidelity
from ..slots.scores import ExpectedImprovement
from .srinivas import gp_ucb

SHARE = 4  # One of so many trials confirms a best point at the full setting, and at least one of a run does.


def boca(
    domain: D, kernel: Kernel, *, fidelity: Fidelity, noise: float,
    width: Literal["finite", "compact"] | Confidence | None = None, delta: float = 0.1,
    regularization: float | None = None, prior_mean: float | None = None,
) -> Policy[D]:  # fmt: skip
    """Returns BOCA (Kandasamy, Dasarathy, Schneider & Poczos 2017, algorithm 1): GP-UCB that chooses the setting, too.

    In each round x_t is the point with the highest upper bound at the full setting z*. The setting z_t is the cheapest
    one of Z_t(x_t), whose answer is still uncertain and tells enough about z* (`nilregret.slots.fidelity.boca`). With
    high probability, the simple regret per cost is bounded by their Theorem 1, for kernels k(z, z') k(x, x').

    Args:
        domain: of the points.
        kernel: prior covariance of two rows (z, x), the setting first.
        fidelity: the setting. Its rule becomes "boca". Of a continuous setting, `levels` values are compared.
        noise: standard deviation of the noise, reward units.
        width: see `gp_ucb`.
        delta: failure probability of the bounds.
        regularization: see `gp_ucb`.
        prior_mean: see `gp_ucb`.

    >>> import nilregret as nr
    >>> arms, rows = nr.Arms.grid(0, 1, 11), nr.Fidelity("rows", 10, 1_000, rule="boca")
    >>> kernel = nr.SquaredExponential([1.0, 0.2])
    >>> study = nr.Study(nr.algorithms.boca(arms, kernel, fidelity=rows, noise=0.1))
    >>> study.ask().context_parameters
    {'rows': 10}
    """
    chosen = replace(checked_fidelity(fidelity), rule="boca")
    policy: Policy[D] = gp_ucb(
        domain, kernel, noise=noise, context=chosen.space, width=width, delta=delta, regularization=regularization,
        prior_mean=prior_mean,
    )  # fmt: skip
    return replace(policy, algorithm="boca", fidelity=chosen)


def checked_fidelity(fidelity: object) -> Fidelity:
    """Returns the setting, or raises `InvalidInput`."""
    part: Fidelity | None = part_of("fidelity", fidelity)
    if part is None:
        said = f"`fidelity` is {shown(fidelity)}: it must be a setting."
        raise InvalidInput(said, advice="Make it with `nr.Fidelity('rows', 1_000, 100_000)`.")
    return part


def with_fidelity(policy: Policy[D], fidelity: Fidelity, *, start: int, budget: int | None) -> Policy[D]:
    """Returns the recommended policy for a setting.

    Args:
        policy: `auto` under the settings as contexts.
        fidelity: the setting.
        start: number of points of the initial design.
        budget: number of trials, or None if it is not known.
    """
    parts: list[Explore] = [InitialDesign(start)]
    if budget is not None:
        parts.append(Confirm(budget, rounds=max(1, min(LAST, budget // SHARE))))
    parts.append(CoordinateSearch(after=start + 5, every=OFTEN))
    improvement = ExpectedImprovement(incumbent="pending" if policy.pending.hallucinates else "mean")
    return policy.using(fidelity=fidelity, explore=InTurn(tuple(parts)), score=improvement)


LAST = 3  # Rounds that confirm the best points at the full setting.
OFTEN = 5  # Rounds from one search of a single parameter to the next.
