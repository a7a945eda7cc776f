"""A posterior at points that is not exact, so that a round of a very long run costs no more than one of a short one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from .._utils.checks import integer, number, settle, shown
from .._utils.errors import InvalidInput
from .._utils.serialize import described
from ..domains.domain import Arms
from ..gp import Terms
from .base import Part, Policy


@final
@described
@dataclass(frozen=True, kw_only=True)
class Sketch(Part):
    """Inducing points drawn by what is not known yet at them, as BKB and BBKB do (Calandriello et al. 2019, 2020).

    For boxes, spaces and continuous contexts: `policy.using(sketch=nr.slots.Sketch())`. The exact posterior costs n^2
    a round
    there, n the number of distinct points; this one m^2, m the number of inducing points, which grows as the effective
    dimension of what has been played. Kernels of finite rank do without it and stay exact.

    A point becomes an inducing point with probability min(1, q N s^2 / lambda) (BKB; N its plays), all of them
    drawn anew when 1 + sum s^2 / lambda since the last draw exceeds C (BBKB). Answers are taken in at once, unlike
    BBKB's, which wait for the end of a batch. The authors' q, which makes a good sketch nearly certain, would keep
    nearly every point; here what was left out of the prior variance, tr(K - Q), is measured, and points are added until
    rho = sqrt(tr(K - Q) / lambda) is at most `accuracy`. Then, for certain,

    - every standard deviation is the exact one to a factor of 1 + rho / 2 + rho^2 / 8 at most, either way;
    - the information gain shown is the exact one at least, and at most rho^2 / 2 nats more than that of the sketch;
    - the bounds of `igp_ucb(width="ay")` hold with the norm bound times 1 + rho, which that width then takes by itself.

    The proof heads `nilregret.gp.inducing`. Of all other widths nothing is proved with a sketch, and
    `valid_for` says "none". Draws are keyed by the seed and the number of observations: a replay repeats them.

    Attributes:
        accuracy: rho, at most, as long as `most` allows it.
        oversampling: q.
        growth: C > 1.
        most: inducing points.

    Raises:
        InvalidInput: on arms with finitely many contexts or none, where exact posteriors do not grow; where f drifts.
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
        """Refuse a policy in which it has no use, and one whose f drifts."""
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
        """What the posterior wants to know."""
        return Terms(self.accuracy, self.oversampling, self.growth, self.most, seed)


def check_sketch(sketch: object, policy: Policy) -> None:
    """Refuse what is no sketch, and one that the policy has no use for."""
    if not isinstance(sketch, Sketch):
        raise InvalidInput(
            f"`sketch` is {shown(sketch)}: it must be a `Sketch`, or nothing.",
            advice="It is made by `nr.slots.Sketch(...)`.",
        )
    sketch.check(policy)
