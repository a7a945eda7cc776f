"""GP-UCB-CPD: GP-UCB that detects abrupt changes of the reward function and starts anew (Avanesov)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Unpack

from .._utils.checks import integer, many, number, one_of, shown
from ..domains.domain import D, Domain
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.envelope import Confidence, DriftBayes
from ..slots.explore import NoExploration, UniformExploration
from ..slots.memory import Forever, Memory, RestartAt, RestartOnChange
from ..slots.scores import UpperConfidenceBound
from ..slots.widths.self_normalized import PeriodRkhs
from ..theory.change.schedules import BETA_CONSTANT, PowerLaw, smoothness, ucb_regularization
from .arguments import check_gain, checked_noise, chosen_gain, chosen_width, is_other
from .definition import Slots, algorithm, build, given

DETECTORS = ("test", "oracle", "never")
WIDTHS = ("power", "rkhs")


@algorithm(
    memory="`detector` says what is forgotten",
    explore="`exploration` says which rounds are uniform",
    switching="each trial is one play, at which a change may come",
)
def gp_ucb_cpd(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    horizon: int,
    exploration: float = 3**0.5,
    threshold: float | PowerLaw | None = None,
    ridge: float | PowerLaw | None = None,
    distance: str = "average",
    detector: Literal["test", "oracle", "never"] = "test",
    change_points: Sequence[int] | None = None,
    width: Literal["power", "rkhs"] | Confidence = "power",
    constant: float | None = None,
    log_power: float = 3.0,
    norm_bound: float | None = None,
    information_gain: Literal["greedy", "realised", "rate"] | float = "greedy",
    alpha: float | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """GP-UCB-CPD (Avanesov, Algorithm 2), with log^3 T in beta_t where the paper prints log^4 T.

    Some rounds are uniform. A test for changes runs on them, and each detected change restarts the memory. The width
    beta_t is one of two, where t counts from the last restart:

    - eq. 3.7: D t^{d(d+1) / (2 alpha + d(d+1))} log^p T
    - eq. A.3: D (2 F^2 + 300 eta_t log^3(t T^2))

    Args:
        domain, kernel, slots: see `gp_ucb`. The detector allows no contexts.
        noise: g, the sub-Gaussian constant of the noise, reward units.
        horizon: T, the number of rounds, at least 2.
        exploration: xi. A round is uniform while |uniform| <= xi sqrt(|history|). The paper's value for K = 3 periods
            is sqrt(3). With 0 no round is uniform.
        threshold: theta_n of the detector, reward units squared. Default and meaning as of `detect_change`.
        ridge: n rho_n of the detector, as of `detect_change`.
        distance: "average" or "integral", of the detector.
        detector: "test", "oracle" (restarts at `change_points`) or "never".
        change_points: rounds, counted from 0, at which another function begins. For the oracle.
        width: "power" or "rkhs" or a part.

            - "power": eq. 3.7, the width of the experiments.
            - "rkhs": eq. A.3, the very large width of the proof.
            - A part. Then the other arguments about the bounds must be left out.
        constant: D. Unless given 0.02 for eq. 3.7, as in the paper, and 1 for eq. A.3, the least that is proved.
        log_power: p of eq. 3.7. The paper prints 4: 3 of eq. A.3 and 1 of Lemma B.7. The default 3 reproduces its
            figures. With 4 they are not reproduced, as exploration is 2.7 times as strong.
        norm_bound: F of eq. A.3, a bound on the norm of every period's function, reward units.
        information_gain: eta_t of eq. A.3. "greedy" is an upper bound (arms). For "realised", "rate" or a number
            nothing is proved.
        alpha: smoothness of the kernel. Unless given nu of a Matern kernel, infinite for a squared exponential one.
        delta: not used. Eq. 3.7 has no failure probability of its own, and that of eq. A.3 is 3 / T^2 a period.
        regularization: lambda, sigma^2 = 6 g^2 log T (eq. 3.4) unless given.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb_cpd(arms, kernel, noise=0.1, horizon=500)
    >>> policy.valid_for
    'none'
    >>> nr.Study(policy).ask().state
    'pending'
    """
    noise = checked_noise(given("gp_ucb_cpd", noise, slots))
    horizon = integer("horizon", horizon, low=2, why="It is the number of rounds T.")
    check_model(domain, slots.get("context"), kernel)
    check_gain(information_gain)
    ridge_matched = regularization is None
    if regularization is None:
        regularization = ucb_regularization(noise=noise, horizon=horizon)
    confidence = _width(
        width, domain, slots.get("context"), kernel, horizon=horizon, constant=constant, log_power=log_power,
        norm_bound=norm_bound, information_gain=information_gain, alpha=alpha, delta=delta, ridge_matched=ridge_matched,
    )  # fmt: skip
    slots["memory"] = _memory(
        detector, change_points, horizon=horizon, threshold=threshold, ridge=ridge, distance=distance
    )
    xi = number("exploration", exploration, low=0.0)
    slots["explore"] = UniformExploration(xi) if xi > 0.0 else NoExploration()
    score = UpperConfidenceBound()
    return build("gp_ucb_cpd", domain, kernel, confidence, score, noise=noise, regularization=regularization, **slots)


def _memory(
    detector: str,
    change_points: Sequence[int] | None,
    *,
    horizon: int,
    threshold: float | PowerLaw | None,
    ridge: float | PowerLaw | None,
    distance: str,
) -> Memory:
    """Returns the memory of a detector: restarts on change, at known rounds, or never."""
    one_of("detector", detector, DETECTORS)
    test = RestartOnChange(threshold=threshold, ridge=ridge, distance=distance)  # Every detector checks these.
    if detector == "oracle":
        if change_points is None:
            raise InvalidInput(
                "`detector` 'oracle' needs `change_points`: the rounds at which another function begins."
            )
        memory = RestartAt(change_points)  # type: ignore[arg-type]  # The class makes a tuple of any sequence.
        if memory.rounds and memory.rounds[-1] >= horizon:
            raise InvalidInput(
                f"`change_points` has {memory.rounds[-1]}, beyond the last of {many(horizon, 'round')}, counted from 0."
            )
        return memory
    if change_points is not None:
        raise InvalidInput("`change_points` go with `detector` 'oracle': the others do not know them.")
    return test if detector == "test" else Forever()


def _width(
    width: str | Confidence,
    domain: Domain,
    context: Domain | None,
    kernel: Kernel,
    *,
    horizon: int,
    constant: float | None,
    log_power: float,
    norm_bound: float | None,
    information_gain: str | float,
    alpha: float | None,
    delta: float,
    ridge_matched: bool,
) -> Confidence:
    """Returns the width of eq. 3.7 or eq. A.3, or the part that the user gave."""
    chosen = chosen_width(
        width, WIDTHS, delta=delta, constant=constant is not None, log_power=is_other(log_power, 3.0),
        norm_bound=norm_bound is not None, alpha=alpha is not None,
        information_gain=is_other(information_gain, "greedy"),
    )  # fmt: skip
    if not isinstance(chosen, str | None):
        return chosen
    if chosen == "rkhs":
        if norm_bound is None:
            raise InvalidInput("`width` 'rkhs' is eq. A.3, which needs `norm_bound`: F, for every period's function.")
        gain = chosen_gain(information_gain, domain, context, kernel)
        least = 1.0 if constant is None else constant
        return PeriodRkhs(
            horizon=horizon, norm_bound=norm_bound, gain=gain, constant=least, ridge_matched=ridge_matched
        )
    if norm_bound is not None:
        raise InvalidInput("`norm_bound` belongs to eq. A.3: add `width` 'rkhs' to use it, or leave it out.")
    smooth = _alpha(alpha, kernel)
    return DriftBayes(
        horizon=horizon, alpha=smooth, dimension=domain.dimension + (0 if context is None else context.dimension),
        constant=BETA_CONSTANT if constant is None else constant, log_power=log_power, delta=delta,
    )  # fmt: skip


def _alpha(alpha: float | None, kernel: Kernel) -> float | None:
    """Returns the smoothness alpha of eq. 3.7, or None for an infinite one."""
    if alpha is None:
        alpha = smoothness(kernel)
    if alpha is None:
        raise InvalidInput(
            f"{shown(kernel)} states no smoothness alpha, on which the schedules of eq. 3.4-3.7 hang: give `alpha` (of "
            "a Matern kernel it is nu) and, for the detector, `threshold`."
        )
    return None if isinstance(alpha, float) and alpha == math.inf else alpha
