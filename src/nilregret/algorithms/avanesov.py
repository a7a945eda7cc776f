"""Avanesov: GP-UCB-CPD, GP-UCB that detects abrupt changes of the reward function and starts anew."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

from .._utils.checks import integer, many, number, one_of, shown
from .._utils.errors import InvalidInput
from ..domains.domain import Domain
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.envelope import Confidence, DriftBayes
from ..slots.explore import NoExploration, UniformExploration
from ..slots.memory import Forever, Memory, RestartAt, RestartOnChange
from ..slots.scores import UpperConfidenceBound
from ..slots.widths.periods import PeriodRkhs
from ..theory.change.schedules import BETA_CONSTANT, PowerLaw, smoothness, ucb_regularization
from .common import Slots, algorithm, build, check_gain, checked_noise, chosen_gain, chosen_width, is_other

DETECTORS = ("test", "oracle", "never")
WIDTHS = ("power", "rkhs")


@algorithm(
    memory="`detector` says what is forgotten",
    explore="`exploration` says which rounds are uniform",
    switching="each trial is one play, at which a change may come",
)
def gp_ucb_cpd(
    domain: Domain,
    kernel: Kernel,
    *,
    noise: float | None = None,
    horizon: int,
    exploration: float = 3**0.5,
    threshold: float | PowerLaw | None = None,
    ridge: float | PowerLaw | None = None,
    distance: str = "average",
    detector: str = "test",
    change_points: Sequence[int] | None = None,
    width: str | Confidence = "power",
    constant: float | None = None,
    log_power: float = 3.0,
    norm_bound: float | None = None,
    information_gain: str | float = "greedy",
    alpha: float | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy:
    """GP-UCB-CPD (Avanesov, Algorithm 2), with log^3 T in beta_t where the paper prints log^4 T.

    Forced uniform rounds, a test for changes on them, a restart at each.
    beta_t = D t^{d(d+1) / (2 alpha + d(d+1))} log^p T, eq. 3.7, or D (2 F^2 + 300 eta_t log^3(t T^2)), eq. A.3, with t
    counted from the last restart.

    Args:
        domain, kernel, slots: see `gp_ucb`. No contexts with the detector.
        noise: g, the sub-Gaussian constant of the noise, reward units.
        horizon: T, the number of rounds, at least 2.
        exploration: xi: a round is uniform while |uniform| <= xi sqrt(|history|); sqrt(3) is the paper's for K = 3
            periods, 0 makes none.
        threshold: theta_n of the detector, reward units squared; default and meaning as of `detect_change`.
        ridge: n rho_n of the detector, likewise.
        distance: "average" or "integral", of the detector.
        detector: "test"; "oracle", which restarts at `change_points`; or "never".
        change_points: rounds, counted from 0, at which another function begins; of the oracle.
        width: "power", eq. 3.7, with which the experiments were made; "rkhs", eq. A.3, the one of the proof, very wide;
            or a part, also one of your own, with which nothing else that is about the bounds may be given.
        constant: D; 0.02, the paper's, for eq. 3.7 unless given, and 1, the least that is proved, for eq. A.3.
        log_power: p, of eq. 3.7. The paper prints 4; with 3, the default, which its proof has in eq. A.3, its figures
        come out, with
            4 they do not (exploration is then 2.6 times as strong).
        norm_bound: F of eq. A.3, a bound on the norm of every period's function, reward units.
        information_gain: eta_t of eq. A.3: "greedy", an upper bound (arms); "realised", "rate" or a number, for which
            nothing is proved.
        alpha: smoothness of the kernel: nu of a Matern kernel, infinite for a squared exponential one unless given.
        delta: not used; eq. 3.7 has no failure probability of its own, and that of eq. A.3 is 3 / T^2 a period.
        regularization: lambda; sigma^2 = 6 g^2 log T, eq. 3.4, unless given.
    """
    noise, horizon = checked_noise(noise), integer("horizon", horizon, low=2, why="It is the number of rounds T.")
    context = slots.get("context")
    check_model(domain, context, kernel)
    one_of("detector", detector, DETECTORS)
    check_gain(information_gain)
    matched = regularization is None
    if regularization is None:
        regularization = ucb_regularization(noise=noise, horizon=horizon)
    chosen = chosen_width(
        width, WIDTHS, delta=delta, constant=constant is not None,
        log_power=is_other(log_power, 3.0), norm_bound=norm_bound is not None, alpha=alpha is not None,
        information_gain=is_other(information_gain, "greedy"),
    )  # fmt: skip
    confidence: Confidence
    if not isinstance(chosen, str | None):
        confidence = chosen
    elif chosen == "rkhs":
        if norm_bound is None:
            raise InvalidInput("`width` 'rkhs' is eq. A.3, which needs `norm_bound`: F, for every period's function.")
        confidence = PeriodRkhs(
            horizon=horizon,
            norm_bound=norm_bound,
            gain=chosen_gain(information_gain, domain, context, kernel),
            constant=1.0 if constant is None else constant,
            ridge_matched=matched,
        )
    else:
        if norm_bound is not None:
            raise InvalidInput("`norm_bound` belongs to eq. A.3: add `width` 'rkhs' to use it, or leave it out.")
        confidence = _power_width(
            domain, context, kernel, horizon=horizon, alpha=alpha, constant=constant, log_power=log_power, delta=delta
        )
    slots["memory"] = _forgetting(
        detector, change_points, horizon=horizon, threshold=threshold, ridge=ridge, distance=distance
    )
    xi = number("exploration", exploration, low=0.0)
    slots["explore"] = UniformExploration(xi) if xi > 0.0 else NoExploration()
    return build(
        "gp_ucb_cpd", domain, kernel, confidence, UpperConfidenceBound(),
        noise=noise, regularization=regularization, **slots,
    )  # fmt: skip


def _forgetting(
    detector: str,
    change_points: Sequence[int] | None,
    *,
    horizon: int,
    threshold: float | PowerLaw | None,
    ridge: float | PowerLaw | None,
    distance: str,
) -> Memory:
    """What the detector makes of the memory."""
    test = RestartOnChange(threshold=threshold, ridge=ridge, distance=distance)  # checked with every detector
    if detector == "oracle":
        if change_points is None:
            raise InvalidInput(
                "`detector` 'oracle' needs `change_points`: the rounds at which another function begins."
            )
        memory = RestartAt(change_points)  # type: ignore[arg-type]  # it makes a tuple of any sequence
        if memory.rounds and memory.rounds[-1] >= horizon:
            raise InvalidInput(
                f"`change_points` has {memory.rounds[-1]}, beyond the last of {many(horizon, 'round')}, counted from 0."
            )
        return memory
    if change_points is not None:
        raise InvalidInput("`change_points` go with `detector` 'oracle': the others do not know them.")
    return test if detector == "test" else Forever()


def _power_width(
    domain: Domain,
    context: Domain | None,
    kernel: Kernel,
    *,
    horizon: int,
    alpha: float | None,
    constant: float | None,
    log_power: float,
    delta: float,
) -> Confidence:
    """Eq. 3.7."""
    if alpha is None:
        alpha = smoothness(kernel)
    if alpha is None:
        raise InvalidInput(
            f"{shown(kernel)} states no smoothness alpha, on which the schedules of eq. 3.4-3.7 hang: give `alpha` (of "
            "a Matern kernel it is nu) and, for the detector, `threshold`."
        )
    infinite = isinstance(alpha, float) and alpha == math.inf
    return DriftBayes(
        horizon=horizon,
        alpha=None if infinite else alpha,
        dimension=domain.dimension + (0 if context is None else context.dimension),
        constant=BETA_CONSTANT if constant is None else constant,
        log_power=log_power,
        delta=delta,
    )
