"""Changes to the policy of `nr.auto` when the user asks for constraints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .._utils.errors import InvalidInput, warn
from ..kernels import kernel_for
from .base import Policy
from .constraints import Constraints, OnAverage
from .explore import NoExploration
from .scores import UpperConfidenceBound

NOTHING_FITTED = "Beside `Safe` nothing is fitted, since a kernel that is learned certifies nothing"
GIVE_NOISE = "Give `auto` the `noise` of the rewards, which are then taken to vary by ten times as much."


def parts_for_constraints(constraints: Constraints, policy: Policy) -> dict[str, Any]:
    """Returns the parts, by slot, that replace those of `auto` under these constraints.

    Raises:
        InvalidInput: under `Safe`, if the noise by which it certifies is unknown.
    """
    from .safe import Safe

    if isinstance(constraints, Safe):
        fits = None if policy.refit is None else policy.refit.fitting
        if fits is not None and fits.noise == "unknown":
            if constraints.noise is None:
                raise InvalidInput(f"{NOTHING_FITTED}, and it certifies by the noise that is told. {GIVE_NOISE}")
            warn(f"{NOTHING_FITTED}: rewards are taken to vary by 1. {GIVE_NOISE}")
        return {"constraints": constraints, "explore": NoExploration(), "refit": None}
    parts: dict[str, Any] = {"constraints": constraints}
    if constraints.kernel is None:  # The units of a constraint have nothing to do with those of the reward.
        kernel = kernel_for(policy.domain, context=policy.context, lengthscale=0.5)
        parts["constraints"] = replace(constraints, kernel=kernel)
    if isinstance(constraints, OnAverage) and not policy.score.in_rewards:
        parts["score"] = UpperConfidenceBound()
    return parts
