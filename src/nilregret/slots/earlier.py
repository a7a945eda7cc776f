"""Earlier studies of similar problems beside the posterior of this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from .._utils.checks import settle, shown
from .._utils.serialize import described
from ..domains.domain import Arms
from ..errors import InvalidInput
from ..gp.ensemble import EarlierStudy, Ensemble
from ..kernels import Kernel
from .base import Policy
from .refit import Learning, Refit

MOST = 64  # largest number of earlier studies, each with a posterior that each decision asks


@final
@described
@dataclass(frozen=True, kw_only=True)
class EarlierStudies(Learning):
    """A mixture of the posterior of this study and those of earlier ones, weighted by ranks (`nilregret.gp.ensemble`).

    Each study is weighted by how well its posterior ranks the new rewards (Feurer, Letham & Bakshy 2018), so those that
    mislead fade. The earlier posteriors are as they were when the policy was made. They are a part of the policy's
    description, so a replay needs no other study. `nr.auto(like=...)` makes the part.

    Scores see the mean and standard deviation of the mixture. Nothing is proved of its bounds.

    Attributes:
        studies: the earlier studies.
        around: fits of the kernel, the noise and the units of this study.
    """

    studies: tuple[EarlierStudy, ...]
    around: Refit

    def __post_init__(self) -> None:
        studies = tuple(self.studies) if isinstance(self.studies, tuple | list) else ()
        if not 1 <= len(studies) <= MOST or not all(isinstance(study, EarlierStudy) for study in studies):
            raise InvalidInput(
                f"`studies` is {shown(self.studies)}: it must be 1 to {MOST} earlier studies.",
                advice="`nr.auto(space, like=...)` makes them of studies, storages and tables.",
            )
        if not isinstance(self.around, Refit):
            raise InvalidInput(f"`around` is {shown(self.around)}: it must be a `Refit`.")
        settle(self, studies=studies)

    @property
    def fitting(self) -> Refit:
        """The fits of this study."""
        return self.around

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for arms, contexts, and points of another dimension."""
        if isinstance(policy.domain, Arms) or policy.context is not None:
            raise InvalidInput(
                "Earlier studies (`like`) are for boxes and spaces without contexts: leave `like` out on arms and "
                "under contexts."
            )
        for study in self.studies:
            if study.points.shape[1] != policy.domain.dimension:
                raise InvalidInput(
                    f"Earlier study {shown(study.name)} has points of {study.points.shape[1]} columns, and the domain "
                    f"has {policy.domain.dimension}."
                )
        self.around.check(policy)

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Ensemble:  # noqa: ARG002
        """Returns the earlier studies beside the kernel of this one."""
        return Ensemble(kernel, self.studies)

    def of_constraint(self, *, warp: str, given: bool) -> Refit:
        """Returns the fits of a constraint, of which the earlier studies say nothing."""
        return self.around.of_constraint(warp=warp, given=given)
