"""What `nr.auto` has chosen for a user yields to the constraints that the user asks for."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from .._utils.errors import InvalidInput, NoRegretWarning
from ..kernels import kernel_for
from .base import Policy
from .constraints import Constraints, OnAverage
from .explore import NoExploration
from .scores import UpperConfidenceBound

NOTHING_FITTED = "Beside `Safe` nothing is fitted, since a kernel that is learned certifies nothing"
GIVE_NOISE = "Give `auto` the `noise` of the rewards, which are then taken to vary by ten times as much."


def parts_for_constraints(world: Constraints, policy: Policy) -> dict[str, Any]:
    """By slot, what goes with constraints of this kind in place of what `auto` has chosen.

    Raises:
        InvalidInput: under `Safe`, where nobody has told a noise that it could certify by.
    """
    from .safe import Safe

    if isinstance(world, Safe):
        fits = None if policy.refit is None else policy.refit.fitting
        if fits is not None and fits.noise == "unknown":
            if world.noise is None:
                raise InvalidInput(f"{NOTHING_FITTED}, and it certifies by the noise that is told. {GIVE_NOISE}")
            warnings.warn(
                f"{NOTHING_FITTED}: rewards are taken to vary by 1. {GIVE_NOISE}", NoRegretWarning, stacklevel=4
            )
        return {"constraints": world, "explore": NoExploration(), "refit": None}
    parts: dict[str, Any] = {"constraints": world}
    if world.kernel is None:  # each in its own units until its first fit, whatever those of the reward
        kernel = kernel_for(policy.domain, context=policy.context, lengthscale=0.5)
        parts["constraints"] = replace(world, kernel=kernel)
    if isinstance(world, OnAverage) and not policy.score.in_rewards:
        parts["score"] = UpperConfidenceBound()
    return parts
