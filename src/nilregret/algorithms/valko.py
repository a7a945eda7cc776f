"""KernelUCB (Valko et al. 2013), which IGP-UCB is compared with."""

from __future__ import annotations

from typing import Unpack

from ..domains.typed import D
from ..kernels import Kernel
from ..policy.policy import Policy, check_model
from ..slots.scores import UpperConfidenceBound
from ..slots.widths.self_normalized import KernelUcb
from .arguments import checked_noise, ridge_for_horizon
from .definition import Slots, algorithm, build


@algorithm()
def kernel_ucb(
    domain: D,
    kernel: Kernel,
    *,
    noise: float | None = None,
    eta: float,
    horizon: int | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[Slots],
) -> Policy[D]:
    """KernelUCB: argmax mu_{t-1} + eta lambda^{-1/2} sigma_{t-1} (Valko et al. 2013, whose lambda is free, and 1 here).

    Args:
        domain, kernel, slots: see `gp_ucb`.
        noise: R, reward units. The rule does not use it.
        eta: exploration, reward units.
        horizon: T, which sets lambda = 1 + 2/T.
        delta: failure probability, which the rule does not use.
        regularization: lambda, 1 + 2/T unless given, and 1 without a horizon.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.kernel_ucb(arms, kernel, noise=0.1, eta=0.1)
    >>> round(nr.Study(policy).width, 2), policy.valid_for
    (0.1, 'none')
    """
    noise, ridge = checked_noise(noise), ridge_for_horizon(regularization, horizon)
    check_model(domain, slots.get("context"), kernel)
    confidence = KernelUcb(eta=eta, regularization=ridge, delta=delta)
    return build(
        "kernel_ucb", domain, kernel, confidence, UpperConfidenceBound(), noise=noise, regularization=ridge, **slots
    )
