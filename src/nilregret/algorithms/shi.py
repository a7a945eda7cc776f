"""Bandits whose constraints hold on average (Shi & Eryilmaz 2022)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from .._utils.checks import integer, one_of
from ..domains.domain import D, Domain
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.by_name import part_of
from ..slots.envelope import Confidence
from ..slots.objective import AdditivePenalty, MultiplicativePenalty
from ..slots.scores import ExpectedImprovement, Score, ThompsonSample, UpperConfidenceBound
from ..slots.widths.self_normalized import BoundedNoise, Gain, SelfNormalized
from ..theory.penalties import PenaltyFunction
from .arguments import checked_noise, chosen_gain, chosen_width, is_other, ridge_for_horizon
from .definition import FreeSlots, algorithm, build, given

SCORES: dict[str, Score] = {
    "igp_ucb": UpperConfidenceBound(),
    "gp_ts": ThompsonSample(),
    "gp_ucb": UpperConfidenceBound(),
    "expected_improvement": ExpectedImprovement(),
}
MEMORIES = ("kept", "fresh")
FILLED = {
    "refit": "in each epoch another number is learned, with the kernel that is given for it",
    "constraints": "a number, of those that multipliers charge for",
    "reward": "what is learned is the reward less a penalty, which is no click and no count",
    "switching": "each trial is one play, for which multipliers charge",
}


@algorithm(**FILLED)
def gp_ucb_noiseless_constraints(
    domain: D,
    kernel: Kernel | Sequence[Kernel],
    *,
    noise: float,
    norm_bound: float | None = None,
    epoch: int,
    epochs: int,
    constraints: int = 1,
    penalty: Literal["exp", "power"] | PenaltyFunction = "exp",
    c: float = 1.0,
    n: float = 2.0,
    solver: Literal["igp_ucb", "gp_ts", "gp_ucb", "expected_improvement"] = "igp_ucb",
    width: Confidence | None = None,
    information_gain: Literal["greedy", "realised", "rate"] | float = "realised",
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[FreeSlots],
) -> Policy[D]:
    """Noiseless long-term constraints (Shi & Eryilmaz 2022, Algorithm 2), data kept over epochs, with realised gains.

    In each of L epochs of S rounds a bandit maximises f - sum_j kappa_j (psi(g_j) - 1). After each epoch, kappa_j is
    multiplied by psi of the epoch's average g_j. Tell constraint values with the reward:
    `study.tell(trial, reward, constraints=g)`.

    Args:
        domain: see `gp_ucb`.
        kernel: kernel of the penalised reward. Or a list of L kernels k_l, one for each epoch: the penalised reward
            changes with the multipliers, and so may its complexity (Assumption 3).
        noise: R, the sub-Gaussian constant of the reward's noise, reward units.
        norm_bound: B, a bound on the norm of the penalised reward, reward units. Needed unless `width` is given.
        epoch: S, rounds of an epoch. Fewer rounds mean less violation and more regret.
        epochs: L. After L S rounds the last epoch goes on.
        constraints: m, the number of constraint values of each trial.
        penalty: psi for violations x > 0: "exp" for exp(c x), "power" for (c x + 1)^n, or a `nr.slots.PenaltyFunction`
            of your own. Multipliers saturate at 1e6, with a warning.
        c: constant of the penalty, per unit of g.
        n: exponent of the penalty, at least 1.
        solver: the bandit of an epoch. Remark 1 allows any with sublinear regret: "igp_ucb", "gp_ts" or "gp_ucb"
            (Srinivas et al. 2010, Theorem 3). "gp_ucb" takes noise bounded by `noise`, and lambda = noise^2 unless
            given. With data kept it is not proved, as its f must not depend on past noise. With
            "expected_improvement" no regret is proved.
        width: a part in place of the solver's bounds. Then `delta` is that of the part, and for one epoch.
        information_gain: see `igp_ucb`. For "gp_ucb" a bound such as "greedy", or nothing is proved. With several
            kernels "realised" or a number.
        delta: failure probability, split evenly over the epochs (delta / L).
        regularization: lambda, 1 + 2/T unless given, with T = L S (kept) or S (fresh). The paper's experiments suggest
            0.01.
        slots: see `gp_ucb`, except that memory has further values. "kept", the default, keeps the data and weighs them
            anew in every epoch, as the paper's figures need. "fresh" starts each epoch from nothing, as the pseudocode
            reads. A part (`nr.slots.SlidingWindow`, ...) keeps the data.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb_noiseless_constraints(arms, kernel, noise=0.1, norm_bound=1.0, epoch=10, epochs=4)
    >>> policy.valid_for
    'f'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("gp_ucb_noiseless_constraints", noise, slots, constraints=constraints)
    one_of("solver", solver, SCORES)
    kernels = _kernels(kernel)
    fresh = _take_names_of_memory(slots)
    confidence, noise, ridge = _solver(
        domain, kernels, noise=noise, norm_bound=norm_bound, epoch=epoch, epochs=epochs, solver=solver, fresh=fresh,
        width=width, information_gain=information_gain, context=slots.get("context"), delta=delta, shares=1,
        regularization=regularization,
    )  # fmt: skip
    objective = MultiplicativePenalty(
        epoch=epoch, epochs=epochs, constraints=constraints, fresh=fresh,
        kernels=kernels if isinstance(kernel, Sequence) else (), penalty=penalty, c=c, n=n,
    )  # fmt: skip
    return build(
        "gp_ucb_noiseless_constraints", domain, kernels[0], confidence, SCORES[solver],
        noise=noise, regularization=ridge, objective=objective, **slots,
    )  # fmt: skip


@algorithm(**FILLED)
def gp_ucb_noisy_constraints(
    domain: D,
    kernel: Kernel | Sequence[Kernel],
    *,
    noise: float,
    norm_bound: float | None = None,
    epoch: int,
    epochs: int,
    constraints: int = 1,
    step: float | None = None,
    solver: Literal["igp_ucb", "gp_ts", "gp_ucb", "expected_improvement"] = "igp_ucb",
    width: Confidence | None = None,
    information_gain: Literal["greedy", "realised", "rate"] | float = "realised",
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[FreeSlots],
) -> Policy[D]:
    """Noisy long-term constraints (Shi & Eryilmaz 2022, Algorithm 3), data kept over epochs, with realised gains.

    In each of L epochs of S rounds a bandit maximises f - sum_j kappa_j g_j. Its noise constant is widened by
    sqrt(1 + sum_j kappa_j^2). After each epoch, kappa_j <- [kappa_j + step * average g_j]^+, from 0.

    Args:
        domain, kernel, norm_bound, epoch, epochs, constraints, width, information_gain, regularization, slots: see
            `gp_ucb_noiseless_constraints`.
        noise: R, of the reward and of each constraint value.
        step: mu, reward units per unit of g. 2 / sqrt(L) unless given (about 0.5 for the paper's 17 epochs).
        solver: the bandit of an epoch. "igp_ucb" is that of Theorem 2. For "gp_ts" and "expected_improvement" neither
            regret nor violation is proved (Remark 2: the noise grows with the multipliers). `study.bounds` hold for
            all decisions and are the same for all solvers.
        delta: failure probability, of which each epoch gets delta / (2 L).

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb_noisy_constraints(arms, kernel, noise=0.1, norm_bound=1.0, epoch=10, epochs=4, step=0.5)
    >>> policy.valid_for
    'none'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = given("gp_ucb_noisy_constraints", noise, slots, constraints=constraints)
    why = (
        'The width of "gp_ucb" knows no noise that grows with the multipliers.'
        if isinstance(solver, str) and solver == "gp_ucb"
        else ""
    )
    one_of("solver", solver, [name for name in SCORES if name != "gp_ucb"], why=why)
    kernels = _kernels(kernel)
    fresh = _take_names_of_memory(slots)
    confidence, noise, ridge = _solver(
        domain, kernels, noise=noise, norm_bound=norm_bound, epoch=epoch, epochs=epochs, solver=solver, fresh=fresh,
        width=width, information_gain=information_gain, context=slots.get("context"), delta=delta, shares=2,
        regularization=regularization,
    )  # fmt: skip
    objective = AdditivePenalty(
        epoch=epoch, epochs=epochs, constraints=constraints, fresh=fresh,
        kernels=kernels if isinstance(kernel, Sequence) else (), step=2.0 / epochs**0.5 if step is None else step,
    )  # fmt: skip
    return build(
        "gp_ucb_noisy_constraints", domain, kernels[0], confidence, SCORES[solver],
        noise=noise, regularization=ridge, objective=objective, **slots,
    )  # fmt: skip


def _solver(
    domain: Domain,
    kernels: tuple[Kernel, ...],
    *,
    noise: float,
    norm_bound: float | None,
    epoch: int,
    epochs: int,
    solver: str,
    fresh: bool,
    width: Confidence | None,
    information_gain: str | float,
    context: Domain | None,
    delta: float,
    shares: int,
    regularization: float | None,
) -> tuple[Confidence, float, float]:
    """Returns the bounds, noise and lambda of the bandit of the epochs, at failure probability delta / (shares L)."""
    epoch, epochs = integer("epoch", epoch, low=1), integer("epochs", epochs, low=1)
    noise = checked_noise(noise)
    for kernel in kernels:
        check_model(domain, context, kernel)
    _check_one_gain(information_gain, kernels)
    if solver == "gp_ucb":
        ridge = noise**2 if regularization is None else regularization
    else:
        ridge = ridge_for_horizon(regularization, epoch if fresh else epoch * epochs)
    other_gain = is_other(information_gain, "realised")
    chosen = chosen_width(
        width, [], delta=delta, norm_bound=norm_bound is not None, information_gain=other_gain
    )  # fmt: skip
    if not isinstance(chosen, str | None):
        return chosen, noise, ridge
    if norm_bound is None:
        raise InvalidInput("`norm_bound` is missing: the theorem needs a bound on the norm of what is learned.")
    gain = chosen_gain(information_gain, domain, context, kernels[0])
    parts = shares * epochs
    return _width(solver, norm_bound, gain, noise=noise, ridge=ridge, parts=parts, delta=delta), noise, ridge


def _check_one_gain(information_gain: str | float, kernels: tuple[Kernel, ...]) -> None:
    """Raises an error for the information gain of one kernel if the epochs have kernels of their own."""
    if len(kernels) > 1 and information_gain in ("greedy", "rate"):
        raise InvalidInput(
            f"information_gain={information_gain!r} is of one kernel, and the epochs have kernels of their own: use "
            "'realised', or a number that is large enough for all of them."
        )


def _width(
    solver: str, norm_bound: float, gain: Gain, *, noise: float, ridge: float, parts: int, delta: float
) -> Confidence:
    """Returns the bounds of the solver, at failure probability delta / parts."""
    if solver == "gp_ucb":
        return BoundedNoise(norm_bound=norm_bound, gain=gain, delta=delta / parts, noise_matched=ridge == noise**2)
    draws = 2 if solver == "gp_ts" else 1  # Thompson sampling has ln(2 / delta).
    return SelfNormalized(
        norm_bound=norm_bound, noise=noise, gain=gain, parts=draws * parts, delta=delta, ridge_large=ridge >= 1.0
    )


def _take_names_of_memory(slots: FreeSlots) -> bool:
    """Returns whether epochs start from nothing, and replaces "kept" and "fresh" in the slot."""
    memory = slots.get("memory")
    if memory is None or part_of("memory", memory) is not None:
        return False
    name = one_of("memory", memory, [*MEMORIES, "adaptive"])
    slots["memory"] = "adaptive" if name == "adaptive" else None
    return name == "fresh"


def _kernels(kernel: Kernel | Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Returns the kernels, one or many, without a check."""
    return tuple(kernel) if isinstance(kernel, Sequence) and len(kernel) > 0 else (kernel,)  # type: ignore[return-value]
