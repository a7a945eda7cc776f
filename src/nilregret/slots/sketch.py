"""Approximate posteriors at points, whose cost in a round does not grow with the length of a run."""

from __future__ import annotations

from typing import final

from .._utils.checks import integer, number, settle, shown
from ..domains.domain import Arms
from ..errors import InvalidInput
from ..gp import Terms
from ..serialize import description
from .base import Part, Policy


@final
@description(frozen=True, kw_only=True)
class Sketch(Part):
    """Inducing points drawn by their remaining uncertainty, as in BKB and BBKB (Calandriello et al. 2019, 2020).

    Sketches are for boxes, spaces and continuous contexts: `policy.using(sketch=nr.slots.Sketch())`. A round with the
    exact posterior costs n^2 there, with n distinct points. A round with a sketch costs m^2, with m inducing points. m
    grows as the effective dimension of the points played. Kernels of finite rank need no sketch and stay exact.

    A point becomes an inducing point with probability min(1, q N s^2 / lambda) (BKB, with N its plays). All inducing
    points are drawn again when 1 + sum s^2 / lambda since the last draw exceeds C (BBKB). Rewards are added at once,
    whereas BBKB waits for the end of a batch. The authors' q makes a good sketch nearly certain, but would keep nearly
    every point. Here the part of the prior variance that is left out, tr(K - Q), is measured. Points are added until
    rho = sqrt(tr(K - Q) / lambda) is at most `accuracy`. Then, for certain,

    - every standard deviation is the exact one up to a factor of 1 + rho / 2 + rho^2 / 8, in either direction,
    - the information gain shown is at least the exact one, and at most rho^2 / 2 nats more than that of the sketch,
    - the bounds of `igp_ucb(width="ay")` hold with the norm bound times 1 + rho, which that width uses by itself.

    The proof is at the head of `nilregret.gp.feature_maps`. For all other widths nothing is proved with a sketch, and
    `valid_for` says "none". Draws are keyed by the seed and the number of observations, so a replay repeats them.

    Attributes:
        accuracy: rho, at most, as long as `most` allows it.
        oversampling: q.
        growth: C > 1.
        most: largest number of inducing points.

    Raises:
        InvalidInput: on arms with finitely many contexts or none, where exact posteriors do not grow, or where f
            drifts.
    """

    accuracy: float = 0.1
    oversampling: float = 4.0
    growth: float = 4.0
    most: int = 1000

    def __post_init__(self) -> None:
        settle(
            self,
            accuracy=number("accuracy", self.accuracy, low=1e-4, high=10.0, why="It is rho, 0 of an exact posterior."),
            oversampling=number("oversampling", self.oversampling, low=0.0, high=1e6, open_low=True),
            growth=number("growth", self.growth, low=1.0, high=1e6, open_low=True, why="It is C of BBKB."),
            most=integer("most", self.most, low=1, high=10_000),
        )

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the policy has no use for a sketch, or if f drifts."""
        if isinstance(policy.domain, Arms) and (policy.context is None or isinstance(policy.context, Arms)):
            raise InvalidInput(
                "A sketch is for boxes, spaces and continuous contexts. On arms with finitely many contexts, or none, "
                "the exact posterior does not grow with the number of rounds: leave `sketch` out."
            )
        if policy.memory.drift() is not None:
            raise InvalidInput(
                f"Under {type(policy.memory).__name__} f is another function in each round, which no fixed number of "
                "inducing points can follow. Take a window (`SlidingWindow`) or restarts with a sketch."
            )

    def terms(self, seed: int) -> Terms:
        """Returns the settings for the posterior."""
        return Terms(self.accuracy, self.oversampling, self.growth, self.most, seed)


def check_sketch(sketch: object, policy: Policy) -> None:
    """Raises `InvalidInput` unless this is a sketch that the policy can use."""
    if not isinstance(sketch, Sketch):
        raise InvalidInput(
            f"`sketch` is {shown(sketch)}: it must be a `Sketch`, or nothing.",
            advice="It is made by `nr.slots.Sketch(...)`.",
        )
    sketch.check(policy)
