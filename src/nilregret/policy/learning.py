"""What the slot `refit` does in a run: fits, an average over lengthscales, or a balance between them."""

from __future__ import annotations

from typing import Any, final

from ..gp import Averaged, Belief
from ..slots.lengthscales import Lengthscales, RegretBalancing
from ..storage.record import Event, Trial
from .fits import Fits, Fitted, Learner, When
from .lengthscale_balance import Balance
from .policy import Policy
from .training_data import Ledger


@final
class Averaging(Learner):
    """The candidate of the largest share is the kernel in use, for whoever wants one.

    Args:
        fits: of what the candidates surround, if there are any.
    """

    OWNED = ("_fits",)

    def __init__(self, fits: Fits | None) -> None:
        self._fits = fits

    def plan(self, events: list[Event], ledger: Ledger, waiting: list[Trial] | None) -> None:
        """Of the fits."""
        if self._fits is not None:
            self._fits.plan(events, ledger, waiting)

    def planned(self) -> None:
        """Of the fits."""
        if self._fits is not None:
            self._fits.planned()

    def restart(self) -> None:
        """Of the fits."""
        if self._fits is not None:
            self._fits.restart()

    def forget_before(self, first: int, ledger: Ledger) -> None:
        """Of the fits."""
        if self._fits is not None:
            self._fits.forget_before(first, ledger)

    @property
    def news(self) -> Fitted:
        """Of the fits."""
        return () if self._fits is None else self._fits.news

    def settle(self, ledger: Ledger, when: When) -> bool:
        """Fits that are due, and then which candidate is ahead."""
        begun = self._fits is not None and self._fits.settle(ledger, when)
        averaged = averaged_of(ledger.belief)
        if averaged is None or not averaged.count:
            return begun
        kernel = averaged.bank.kernels[averaged.likeliest]
        ahead = kernel is not ledger.in_use and kernel != ledger.in_use
        if ahead:
            ledger.in_use = kernel
        return begun or ahead


def learner_of(policy: Policy, *, seed: int, channel: int = 0) -> Learner | None:
    """Of a policy, for the reward or constraint j; None where nothing is learned but f."""
    refit = policy.refit
    if refit is None:
        return None
    if isinstance(refit, RegretBalancing):
        return Balance(policy, refit)
    fits = None if policy.fitting is None else Fits(policy, policy.fitting, seed=seed, channel=channel)
    return fits if fits is not None and refit is policy.fitting else Averaging(fits)


def averaged_of(belief: Belief[Any]) -> Averaged[Any] | None:
    """Its mixture, where it is one."""
    return belief.answered if isinstance(belief.answered, Averaged) else None


def lengthscales_of(ledger: Ledger, learner: Learner | None) -> Lengthscales | None:
    """What is believed of the lengthscales; None where one kernel is given, or the last one fitted counts."""
    averaged = averaged_of(ledger.belief)
    if averaged is None:
        return None
    balance = learner if isinstance(learner, Balance) else None
    return Lengthscales(
        averaged.bank.factors, averaged.shares, averaged.bank.kernels, averaged.leader,
        () if balance is None else balance.eliminated,
    )  # fmt: skip
