"""Linear models of arms under contexts, averaged by their predictions, at a cost that does not grow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from .._utils.checks import flag, listed, number, settle
from .._utils.serialize import described
from ..domains.domain import Arms
from ..errors import InvalidInput
from ..gp.linear_model import Candidate
from .base import Policy
from .refit import Learning

CAUTIOUS = 30.0  # precision of a linear model for faint signals
FARTHEST_BEHIND = 1e3  # nats


@final
@described
@dataclass(frozen=True, kw_only=True)
class ArmModels(Learning):
    """Linear models of arms under contexts, in place of a posterior with the policy's kernel.

    Each model is linear in the columns of the context, and most in random waves besides (`nilregret.gp.context_bank`).
    Each arm has weights of its own, and the arms share the noise and the mean of their constants. The models are
    averaged by how well they predicted each reward before they learned it. Units of rewards and contexts are learned
    from the first 50 observations, and the noise from all errors. A decision costs the same after any number.

    The policy's kernel, noise and regularizer have no effect on these models. Change detectors read them.

    Attributes:
        lengths: lengthscales of the waves, in median distances between the first contexts. The first one leads.
        precision: noise variance over prior variance of each weight, of standardised rewards and columns.
        drift: share of the distance from the prior that weights lose in each round, in the models that drift. 0 for no
            such models. There are none either where targets are revised or forgotten, such as under a window.
        changing: True if a model that drifts leads.
        related: True for one more model of contexts and arms together, by the coordinates of the arms.
        behind: nats by which another model must predict better than the one that leads.
    """

    lengths: tuple[float, ...] = (1.0, 0.3)
    precision: float = 0.3
    drift: float = 0.001
    changing: bool = False
    related: bool = True
    behind: float = 10.0

    by_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        why = "Each is a number of median distances."
        lengths = tuple(
            number("lengths", each, low=0.0, open_low=True, why=why)
            for each in listed("lengths", self.lengths, why=why)
        )
        settle(
            self,
            lengths=lengths,
            precision=number("precision", self.precision, low=1e-3, high=1e6),
            drift=number("drift", self.drift, low=0.0, high=0.5, why="It is a share."),
            changing=flag("changing", self.changing),
            related=flag("related", self.related),
            behind=number("behind", self.behind, low=0.0, high=FARTHEST_BEHIND, why="It is in nats."),
        )
        if not lengths:
            raise InvalidInput("`lengths` is empty: give one lengthscale at least.")
        if self.changing and not self.drift:
            raise InvalidInput("`changing` is True and `drift` is 0: a model that drifts needs a drift.")

    @property
    def fitting(self) -> None:
        """None, since nothing is fitted apart from what each observation changes."""

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for other domains than arms under contexts, and for parts that need joint draws."""
        if not isinstance(policy.domain, Arms) or policy.context is None:
            raise InvalidInput(
                "`ArmModels` has a model for each of finitely many arms, as a function of the context: there must be "
                "arms, and contexts.",
                advice="Elsewhere take `nr.slots.Refit()`.",
            )
        if policy.score.draws:
            raise InvalidInput(
                f"`{type(policy.score).__name__}` draws one function of all contexts, and `ArmModels` has none.",
                advice="Take `nr.slots.GaussianDraws()`, which draws a value for each arm.",
            )
        if policy.sketch is not None:
            raise InvalidInput("`ArmModels` needs no sketch, since its cost does not grow: leave `sketch` out.")
        if policy.pending.hallucinates:
            raise InvalidInput(
                "With `ArmModels` an unanswered trial cannot shrink the variance: leave `pending` out. Draws differ "
                "from decision to decision without it."
            )

    def bank(self, kernel: object, columns: int, more: int, noise_variance: float | None) -> None:
        """Returns None, since no kernels are compared."""

    def of_constraint(self, *, warp: str, given: bool) -> ArmModels:  # noqa: ARG002
        """Returns the same models for the values of a constraint."""
        return self

    def models(self, policy: Policy) -> tuple[Candidate, ...]:
        """Returns the models that are compared, the one that leads first."""
        leading, behind, precision = self.lengths[0], self.behind, self.precision
        still = [Candidate(length=length, precision=precision, behind=behind) for length in self.lengths]
        still += [Candidate(False, 1.0, each, behind=behind) for each in (precision, CAUTIOUS)]
        if self.related:
            still.append(Candidate(length=leading, precision=precision, shared=True, behind=behind))
        if self.drift and policy.plain:
            drifting = Candidate(length=leading, precision=precision, keep=1.0 - self.drift, behind=behind)
            still.insert(0 if self.changing else len(still), drifting)
        return (still[0]._replace(behind=0.0), *still[1:])
