"""A policy: a frozen description of how to decide, parts in fixed slots."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, final

import numpy as np

from .._utils import serialize
from .._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, Array, number, shown
from .._utils.errors import InvalidInput
from ..domains.domain import Arms, Domain, check_domain, enclosing_box, sides
from ..domains.search.boxes import PointSearch
from ..kernels import Kernel, check_kernel
from ..slots.auto_constraints import parts_for_constraints
from ..slots.by_name import chosen
from ..slots.check import SLOTS, check_part, part_of
from ..slots.combined_memory import detects_by_rounds, joined
from ..slots.constraints import Constraints
from ..slots.envelope import Confidence, Window
from ..slots.explore import Explore, NoExploration, UniformExploration, forced_in_turn
from ..slots.memory import Forever, Memory, RestartOnChange
from ..slots.objective import Objective, RewardAlone
from ..slots.pending import Ignored, Pending
from ..slots.refit import Learning, Refit
from ..slots.scores import Score, UpperConfidenceBound
from ..slots.sketch import Sketch, check_sketch
from ..slots.switching import Switching
from ..theory.change.schedules import PowerLaw
from .engines import Decision

__all__ = ["Decision", "Policy"]

LARGEST_PRIOR = 1e120  # variance: its square must not overflow


@final
@serialize.described
@dataclass(frozen=True, kw_only=True)
class Policy:
    """How to decide: parts in fixed slots. Made by the functions of `nilregret.algorithms`, one for each theorem.

    Attributes:
        algorithm: name of the function that filled the slots.
        domain: what may be played.
        context: where contexts come from, or None.
        kernel: how the rewards of two points relate; of two (context, point) rows where there are contexts.
        noise: standard deviation (or sub-Gaussian constant) of the reward noise, reward units.
        regularization: lambda, added to the kernel matrix, reward units squared.
        prior_mean: what a reward is expected to be before anything is seen, reward units.
        memory: which trials count.
        explore: which rounds are forced: uniform ones, or initial uncertainty sampling.
        pending: what a trial counts as before its answer is known.
        objective: which number is learned, the reward or one that charges for violated constraints.
        confidence: which bounds hold for f.
        score: what makes a point attractive.
        search: how a continuous domain is searched for the best score; arms are searched whole.
        refit: how the kernel is learned from the record; None for a kernel that is given.
        constraints: in which sense constraints must hold that have posteriors of their own; None for none.
        sketch: how the posterior of a box, a space or of continuous contexts is approximated; None for the exact one.
        switching: how long a choice is played before the next one; None for one round.
    """

    algorithm: str
    domain: Domain
    context: Domain | None = None
    kernel: Kernel
    noise: float
    regularization: float
    prior_mean: float = 0.0
    memory: Memory = field(default_factory=Forever)
    explore: Explore = field(default_factory=NoExploration)
    pending: Pending = field(default_factory=Ignored)
    objective: Objective = field(default_factory=RewardAlone)
    confidence: Confidence
    score: Score
    search: PointSearch = field(default_factory=PointSearch)
    refit: Learning | None = None
    constraints: Constraints | None = None
    sketch: Sketch | None = None
    switching: Switching | None = None

    def __post_init__(self) -> None:
        check_model(self.domain, self.context, self.kernel)
        for name in SLOTS:
            check_part(name, getattr(self, name))
        for kernel in self.objective.kernels:
            check_model(self.domain, self.context, kernel)
        for part in (self.memory, self.explore, self.pending, self.objective, self.confidence, self.score):
            part.check(self)
        if self.sketch is not None:
            check_sketch(self.sketch, self)
        if self.switching is not None:
            self.switching.check(self)
        why = "It is a standard deviation, in the units of the reward."
        object.__setattr__(self, "noise", number("noise", self.noise, low=0.0, high=LARGEST_REWARD, why=why))
        prior_mean = number("prior_mean", self.prior_mean, low=-LARGEST_REWARD, high=LARGEST_REWARD)
        object.__setattr__(self, "prior_mean", prior_mean)
        why = "With noise = 0 give `regularization` yourself, such as 1e-6 of the prior variance."
        if not isinstance(self.algorithm, str):
            raise InvalidInput(f"`algorithm` is {shown(self.algorithm)}: it must be the name of a function.")
        ridge = number("regularization", self.regularization, low=0.0, high=LARGEST_VARIANCE, open_low=True, why=why)
        object.__setattr__(self, "regularization", ridge)
        if self.refit is not None:
            self.refit.check(self)
        if self.constraints is not None:
            object.__setattr__(self, "constraints", self.constraints.within(self.domain))
            self.constraints.check(self)
            for j in range(self.constraints.count):
                self.of_channel(j + 1)

    def of_channel(self, j: int) -> Policy:
        """The policy whose reward is constraint j, from 1: what is learned of it, and by which bounds.

        Memory and forced rounds are those of the whole. Where fits warp rewards, those of constraints keep the border
        at 0 in its place. What unanswered trials count as is said by `Constraints.pending_of`.
        """
        world = self.constraints
        if world is None:
            raise InvalidInput("This policy has no constraints with posteriors of their own.")
        return replace(
            self,
            **world.of_channel(self, j - 1),
            pending=world.pending_of(self, j - 1),
            score=UpperConfidenceBound(),
            objective=RewardAlone(),  # of a constraint nothing is known beyond its size
            refit=None if self.refit is None else self._refit_of(world, self.refit),
            constraints=None,
        )

    @staticmethod
    def _refit_of(world: Constraints, refit: Learning) -> Learning:
        """Of a constraint: a noise that is given is the reward's, unless that of the constraints is given too."""
        return refit.of_constraint(warp="signed-log" if world.by_sign else "none", given=world.noise is not None)

    @property
    def fitting(self) -> Refit | None:
        """The fits of kernel, noise and units, if there are any."""
        return None if self.refit is None else self.refit.fitting

    @property
    def valid_for(self) -> str:
        """What the bounds are proved for (see `Envelope`).

        Nothing where kernel, memory or f itself moves (a restart spends delta anew), or where unanswered trials count
        as something: the theorems are for rewards. Only the width for censored rewards is for those, and the inflated
        one for a hallucinated variance. Under constraints,
        "f" is what is learned: the reward less what the multipliers of the epoch charge. Where data are kept that f
        hangs on the noise in them, and the theorem must be for all f at once: Chowdhury & Gopalan's is, while the
        martingale of Srinivas et al.'s Theorem 6 is one for an f that was there before the noise.
        """
        about_f = not self.objective.looks_back or self.confidence.for_all_at_once
        about_f = about_f and self.objective.proved and self.objective.admits(self.confidence)
        about_f = about_f and self.confidence.suits(self)
        exact = self.sketch is None or self.confidence.sketched
        whole = self.refit is None and self.memory.keeps_all and about_f and exact
        return self.pending.proves(self.confidence.valid_for, self) if whole else "none"

    @property
    def constraint_count(self) -> int:
        """m, how many constraint values the policy wants with each reward."""
        return self.objective.constraints if self.constraints is None else self.constraints.count

    @property
    def window(self) -> Window | None:
        """The trials whose std the width depends on, if any."""
        return self.confidence.recent

    @property
    def by_round(self) -> bool:
        """Whether something may be due before a decision although no outcome has come in."""
        return not self.memory.keeps_all or self.objective.revises

    @property
    def plain(self) -> bool:
        """Whether every answer counts, and nothing else does."""
        return self.memory.keeps_all and not self.pending.revises and not self.objective.revises

    @property
    def foreseeable(self) -> bool:
        """Whether every answer counts, and as itself, whatever else does."""
        return self.memory.keeps_all and not self.objective.revises and self.pending.as_answered

    def using(self, **parts: Any) -> Policy:
        """Returns this policy with other parts, checked again: `policy.using(memory=nr.slots.SlidingWindow(200))`.

        Args:
            parts: by slot, any of the attributes above but `algorithm`; `memory`, `pending` and `switching` by name
                too; None for the plain filling. Bounds (`confidence`) without a score are what is then played by, also
                where a score drew its own width. What `auto` has chosen yields to `constraints` that it would not go
                with.
        """
        known = [item.name for item in fields(self) if item.name != "algorithm"]
        unknown = sorted(parts.keys() - set(known))
        if unknown:
            raise InvalidInput(
                f"A policy has no slot {', '.join(map(repr, unknown))}; its slots are {', '.join(known)}."
            )
        if "confidence" in parts and "score" not in parts and self.score.widens:
            parts["score"] = UpperConfidenceBound()
        if self.algorithm == "auto" and (world := part_of("constraints", parts.get("constraints"))) is not None:
            yielding = parts_for_constraints(world, self)
            parts = yielding | parts | {"constraints": yielding["constraints"]}
        plain = {item.name: item.default_factory for item in fields(self) if item.default_factory is not MISSING}
        parts = {name: plain[name]() if part is None and name in plain else part for name, part in parts.items()}
        return replace(self, **chosen(parts))

    def detecting_changes(
        self,
        *,
        exploration: float | None = None,
        threshold: float | PowerLaw | None = None,
        ridge: float | PowerLaw | None = None,
        distance: str = "average",
    ) -> Policy:
        """This policy with forced uniform rounds, a test for changes on them and a restart at each (Avanesov, Alg. 2).

        Its own memory and forced rounds stay: both memories together are an `AllOf`, both kinds of rounds an `InTurn`.

        Args:
            exploration: xi: a round is uniform while |uniform| <= xi sqrt(|history|). Unless given sqrt(3), and where
                the policy has uniform rounds already, these.
            threshold: of the detector, as of `detect_change`.
            ridge: likewise.
            distance: likewise.

        Raises:
            InvalidInput: where the policy has such a detector already, and where parts do not go together.
        """
        if detects_by_rounds(self.memory):
            raise InvalidInput(
                "This policy detects changes on uniform rounds already.",
                advice="For another detector in its place say `policy.using(memory=nr.slots.RestartOnChange(...))`.",
            )
        memory = joined(self.memory, RestartOnChange(threshold=threshold, ridge=ridge, distance=distance))
        if exploration is None and self.explore.uniform:
            return replace(self, memory=memory)
        xi = 3**0.5 if exploration is None else number("exploration", exploration, low=0.0, open_low=True)
        return replace(self, memory=memory, explore=forced_in_turn(self.explore, UniformExploration(xi)))

    @property
    def sides(self) -> Array:
        """Sides of the smallest box around contexts and points, `(c + d,)`."""
        return sides(self.domain, self.context)

    def to_json(self) -> str:
        """The description as one line of JSON; equal policies give equal text."""
        return serialize.dumps(self)

    @staticmethod
    def from_json(text: str) -> Policy:
        """The policy behind `to_json`."""
        policy = serialize.loads(text)
        if not isinstance(policy, Policy):
            raise InvalidInput(f"This JSON describes a {type(policy).__name__}, not a Policy.")
        return policy


def check_model(domain: Domain, context: Domain | None, kernel: Kernel) -> None:
    """Refuse what is no domain or kernel, and a kernel that does not fit the rows it will see."""
    check_domain("domain", domain)
    if context is not None:
        check_domain("context", context)
    check_kernel("kernel", kernel)
    if isinstance(domain, Arms) and context is None:
        corners = np.concatenate([domain.points.argmin(axis=0), domain.points.argmax(axis=0)])
        with np.errstate(all="ignore"):
            K, variances = kernel.between_arms(domain.points, corners, corners), kernel.arm_variances(domain.points)
    else:
        row = np.zeros((1, domain.dimension + (0 if context is None else context.dimension)))
        kernel.input_gradient(row, row, np.ones((1, 1)))  # continuous domains are searched by gradients
        ends = enclosing_box(domain, context)
        with np.errstate(all="ignore"):
            K = kernel(*[np.stack([ends.lower, ends.upper])] * 2)
        variances = K.diagonal()
    if not np.isfinite(K).all():
        raise InvalidInput(
            "The kernel is not finite between the ends of the domain: its lengthscales or scales and the coordinates "
            "are too many powers of ten apart for floats. Use other units for the coordinates, or other lengthscales."
        )
    if not float(variances.max()) <= LARGEST_PRIOR:
        raise InvalidInput(
            f"The prior variance reaches {float(variances.max()):g} on this domain, beyond {LARGEST_PRIOR:g}, where "
            "its square may overflow: change the unit of the rewards, or (of a linear kernel) of the points."
        )
