"""Shi & Eryilmaz 2022: bandits whose constraints must hold on average."""

from __future__ import annotations

from typing import Any

from ..checks import integer, one_of
from ..domain import Domain
from ..kernels import Kernel
from ..parts.confidence import Confidence
from ..parts.memory import Memory
from ..parts.objective import AdditivePenalty, MultiplicativePenalty
from ..parts.pending import Pending
from ..parts.rkhs import SelfNormalized
from ..parts.scores import Score, ThompsonSample, UpperConfidenceBound
from ..parts.search import PointSearch
from ..policy import Policy, check_model
from .common import build, checked_noise, chosen_gain, ridge_for_horizon

SOLVERS = ("igp_ucb", "gp_ts")
MEMORIES = ("kept", "fresh")


def gp_ucb_noiseless_constraints(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    norm_bound: float,
    epoch: int,
    epochs: int,
    constraints: int = 1,
    penalty: str = "exp",
    c: float = 1.0,
    n: float = 2.0,
    solver: str = "igp_ucb",
    memory: str | Memory = "kept",
    information_gain: str | float = "realised",
    context: Domain | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    pending: str | Pending = "ignore",
    search: PointSearch | None = None,
) -> Policy:
    """Bandits with noiseless long-term constraints (Shi & Eryilmaz 2022, Algorithm 2).

    In L epochs of S rounds a bandit maximises f - sum_j kappa_j (psi(g_j) - 1); after each, kappa_j is multiplied by
    psi of the epoch's average g_j. Tell constraint values with the reward: `study.tell(trial, reward, constraints=g)`.

    Args:
        domain, kernel, context, prior_mean, pending, search: see `gp_ucb`.
        noise: R, the sub-Gaussian constant of the reward's noise, reward units.
        norm_bound: B, a bound on the norm of what is learned, reward units.
        epoch: S, rounds of an epoch; fewer mean less violation and more regret.
        epochs: L. Beyond L S rounds the last epoch goes on.
        constraints: m, how many constraint values each trial has.
        penalty: psi for violations x > 0: "exp", exp(c x), or "power", (c x + 1)^n. Multipliers saturate at 1e6, with a
            warning.
        c: see `penalty`, per unit of g.
        n: see `penalty`, at least 1.
        solver: the bandit of an epoch, "igp_ucb" or "gp_ts".
        memory: "kept", the default: data are kept and weighed anew in every epoch, as the paper's figures need;
            "fresh": each epoch starts from nothing, as the pseudocode reads. Or a part (`nr.SlidingWindow`, ...),
            with data kept.
        information_gain: see `igp_ucb`.
        delta: failure probability, split evenly over the epochs (delta / L).
        regularization: lambda; 1 + 2/T with T = L S (kept) or S (fresh) unless given. The paper's experiments suggest
            0.01.
    """
    slots = _inner(
        domain, kernel, noise=noise, norm_bound=norm_bound, epoch=epoch, epochs=epochs, solver=solver, memory=memory,
        information_gain=information_gain, context=context, delta=delta, shares=1, regularization=regularization,
    )  # fmt: skip
    objective = MultiplicativePenalty(
        epoch=epoch, epochs=epochs, constraints=constraints, fresh=memory == "fresh", penalty=penalty, c=c, n=n
    )
    return build(
        "gp_ucb_noiseless_constraints", domain, kernel,
        context=context, prior_mean=prior_mean, pending=pending, search=search, refit=None, objective=objective,
        **slots,
    )  # fmt: skip


def gp_ucb_noisy_constraints(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    norm_bound: float,
    epoch: int,
    epochs: int,
    constraints: int = 1,
    step: float | None = None,
    solver: str = "igp_ucb",
    memory: str | Memory = "kept",
    information_gain: str | float = "realised",
    context: Domain | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    prior_mean: float = 0.0,
    pending: str | Pending = "ignore",
    search: PointSearch | None = None,
) -> Policy:
    """Bandits with noisy long-term constraints (Shi & Eryilmaz 2022, Algorithm 3).

    In L epochs of S rounds a bandit maximises f - sum_j kappa_j g_j, its noise constant widened by
    sqrt(1 + sum_j kappa_j^2); after each, kappa_j <- [kappa_j + step * average g_j]^+, from 0.

    Args:
        domain, kernel, norm_bound, epoch, epochs, constraints, solver, memory, information_gain, context, prior_mean,
            regularization, pending, search: see `gp_ucb_noiseless_constraints`.
        noise: R, of the reward and of each constraint value.
        step: mu, reward units per unit of g; 2 / sqrt(L) unless given (about 0.5 for the paper's 17 epochs).
        delta: failure probability, of which each epoch gets delta / (2 L).
    """
    slots = _inner(
        domain, kernel, noise=noise, norm_bound=norm_bound, epoch=epoch, epochs=epochs, solver=solver, memory=memory,
        information_gain=information_gain, context=context, delta=delta, shares=2, regularization=regularization,
    )  # fmt: skip
    objective = AdditivePenalty(
        epoch=epoch,
        epochs=epochs,
        constraints=constraints,
        fresh=memory == "fresh",
        step=2.0 / epochs**0.5 if step is None else step,
    )
    return build(
        "gp_ucb_noisy_constraints", domain, kernel,
        context=context, prior_mean=prior_mean, pending=pending, search=search, refit=None, objective=objective,
        **slots,
    )  # fmt: skip


def _inner(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float,
    norm_bound: float,
    epoch: int,
    epochs: int,
    solver: str,
    memory: str | Memory,
    information_gain: str | float,
    context: Domain | None,
    delta: float,
    shares: int,
    regularization: float | None,
) -> dict[str, Any]:
    """The bandit of the epochs: IGP-UCB or GP-TS at confidence delta / (shares L)."""
    one_of("solver", solver, SOLVERS)
    if not isinstance(memory, Memory):
        one_of("memory", memory, MEMORIES)
    integer("epoch", epoch, low=1)
    integer("epochs", epochs, low=1)
    noise = checked_noise(noise)
    ridge = ridge_for_horizon(regularization, epoch if memory == "fresh" else epoch * epochs)
    check_model(domain, context, kernel)
    number_of_parts = 1 if solver == "igp_ucb" else 2
    confidence: Confidence = SelfNormalized(
        norm_bound=norm_bound,
        noise=noise,
        gain=chosen_gain(information_gain, domain, context, kernel),
        parts=number_of_parts * shares * epochs,  # ln(1 / (delta / L)) and so on
        delta=delta,
        ridge_large=ridge >= 1.0,
    )
    score: Score = UpperConfidenceBound() if solver == "igp_ucb" else ThompsonSample()
    kept = memory if isinstance(memory, Memory) else None
    return {"confidence": confidence, "score": score, "noise": noise, "regularization": ridge, "memory": kept}
