"""A policy: a frozen description of how to decide, parts in fixed slots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, final

import numpy as np

from .. import serialize
from .._utils.checks import LARGEST_REWARD, LARGEST_VARIANCE, Array, number, shown
from .._utils.dataclass import MISSING, dataclass, field, fields, replace
from .._utils.numerals import exact, numeral
from ..domains.domain import Arms, D, Domain, check_domain, enclosing_box, sides
from ..domains.search.boxes import PointSearch
from ..errors import InvalidInput
from ..kernels import Kernel, check_covariance, check_kernel
from ..slots.by_name import SLOTS, check_part, chosen, part_of, parts_for_constraints
from ..slots.constraints import Constraints, objective_names
from ..slots.envelope import Confidence, Window
from ..slots.explore import Explore, NoExploration, UniformExploration, forced_in_turn
from ..slots.fidelity import Fidelity
from ..slots.memory import Forever, Memory, RestartOnChange, detects_by_rounds, joined
from ..slots.no_worse import NoWorse, checked_guards, parted
from ..slots.objective import Objective, RewardAlone
from ..slots.pending import Ignored, Pending
from ..slots.pruning import Pruning
from ..slots.refit import Learning, Refit
from ..slots.scores import Score, UpperConfidenceBound
from ..slots.sketch import Sketch, check_sketch
from ..slots.slates import SlateModel
from ..slots.switching import Switching
from .engines import Decision

if TYPE_CHECKING:
    from ..gp.linear_model import Candidate
    from ..theory.change.schedules import PowerLaw

__all__ = ["Decision", "Policy"]

LARGEST_PRIOR = 1e120  # variance: its square must not overflow


@final
@serialize.described
@dataclass(frozen=True, kw_only=True)
class Policy(Generic[D]):
    """A description of how to decide: parts in fixed slots.

    The functions of `nilregret.algorithms` make policies, one function for each theorem.

    Attributes:
        algorithm: name of the function that filled the slots.
        domain: the points that may be played.
        context: the domain of contexts, or None.
        kernel: the prior covariance of the rewards of two points, or of two (context, point) rows.
        noise: standard deviation (or sub-Gaussian constant) of the reward noise, reward units.
        regularization: lambda, added to the kernel matrix, reward units squared.
        prior_mean: the prior mean of a reward, reward units.
        memory: the trials that count.
        explore: the rounds that are forced: uniform ones, or initial uncertainty sampling.
        pending: the value of a trial before its answer is known.
        objective: the number that is learned: the reward, or the reward less charges for violated constraints.
        confidence: the bounds of f.
        score: the score whose maximum is played.
        search: the search for the best score on a continuous domain. Arms are all compared.
        refit: the way in which the kernel is learned from the record. None for a kernel that is given.
        constraints: the sense in which constraints with posteriors of their own must hold, or None.
        sketch: the approximation of the posterior on a box, a space or with continuous contexts. None for the exact
            posterior.
        switching: the length of runs of plays of one point. None for one play.
        pruning: the rule that stops trials that report before their last step. None stops no trial.
        fidelity: the setting of each trial that the policy chooses, which is then the context. None for no setting.
        guards: the promises that a control is kept (`nr.NoWorse`), which are given as `constraints`. None for none.
        slate: what the answers of a slate teach. None if the answer of each place counts as it is.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, memory="adaptive")
    >>> nr.Policy.from_json(policy.to_json()) == policy
    True
    >>> policy.using(memory=nr.slots.SlidingWindow(100)).memory
    SlidingWindow(rounds=100)
    """

    algorithm: str
    domain: D
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
    pruning: Pruning | None = field(default=None, metadata=serialize.LATER)
    fidelity: Fidelity | None = field(default=None, metadata=serialize.LATER)
    guards: tuple[NoWorse, ...] | None = field(default=None, metadata=serialize.LATER)
    slate: SlateModel | None = field(default=None, metadata=serialize.LATER)

    def __post_init__(self) -> None:
        check_model(self.domain, self.context, self.kernel)
        for name in SLOTS:
            check_part(name, getattr(self, name))
        object.__setattr__(self, "explore", self.explore.within(self.domain))
        for kernel in self.objective.kernels:
            check_model(self.domain, self.context, kernel)
        for part in (self.memory, self.explore, self.pending, self.objective, self.confidence, self.score):
            part.check(self)
        if self.sketch is not None:
            check_sketch(self.sketch, self)
        for rule in filter(None, (self.switching, self.pruning, self.fidelity, self.slate)):
            rule.check(self)
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
        object.__setattr__(self, "guards", checked_guards(self))

    def of_channel(self, j: int) -> Policy:
        """Returns the policy whose reward is constraint j, from 1.

        Memory and forced rounds are those of this policy. If fits warp rewards, fits of constraints keep the border at
        0 in its place. `Constraints.pending_of` gives the slot `pending`.
        """
        world = self.constraints
        if world is None:
            raise InvalidInput("This policy has no constraints with posteriors of their own.")
        return replace(
            self,
            **world.of_channel(self, j - 1),
            pending=world.pending_of(self, j - 1),
            score=UpperConfidenceBound(),
            objective=RewardAlone(),  # nothing more is known of a constraint
            refit=None if self.refit is None else world.refit_of(self.refit, j - 1),
            constraints=None,
            pruning=None,
            fidelity=None,
            guards=None,
        )

    @property
    def fitting(self) -> Refit | None:
        """The fits of kernel, noise and units, or None."""
        return None if self.refit is None else self.refit.fitting

    @property
    def valid_for(self) -> str:
        """The claim for which the bounds are proved (see `Envelope`).

        Nothing is proved if the kernel, the memory or f itself changes, since a restart spends delta anew. Nothing is
        proved under a kernel that stands for another (`Kernel.approximates`), since f is not of its space. Nothing is
        proved if unanswered trials are imputed either, since the theorems are for rewards. Exceptions are the width
        for censored rewards and the inflated width for a hallucinated variance.

        Under constraints, f is the reward less the charges of the epoch's multipliers. If data are kept between
        epochs, f depends on the noise in them. Then the theorem must hold for all f at once, as that of Chowdhury
        & Gopalan does. The martingale of Srinivas et al.'s Theorem 6 is for an f that was there before the noise.
        """
        about_f = not self.objective.looks_back or self.confidence.for_all_at_once
        about_f = about_f and self.objective.proved and self.objective.admits(self.confidence)
        about_f = about_f and self.confidence.suits(self)
        exact = (self.sketch is None or self.confidence.sketched) and not self.kernel.approximates
        whole = self.refit is None and self.memory.keeps_all and about_f and exact
        return self.pending.proves(self.confidence.valid_for, self) if whole else "none"

    @property
    def finite(self) -> bool:
        """True if its points are arms, and there are finitely many contexts or none."""
        return isinstance(self.domain, Arms) and isinstance(self.context, Arms | None)

    @property
    def batched(self) -> bool:
        """True if many simulated worlds can advance together: their points are arms, and every part says so."""
        extras = (self.refit, self.constraints, self.sketch, self.switching, self.guards)
        parts = (self.memory, self.explore, self.pending, self.objective, self.confidence, self.score)
        return self.finite and extras == (None,) * 5 and all(part.batched for part in parts)

    @property
    def constraint_count(self) -> int:
        """The number m of constraint values with each reward."""
        rule = self.constraints
        return self.objective.constraints if rule is None else rule.count + 1 - rule.objectives

    @property
    def objective_count(self) -> int:
        """The number k of objectives. It is 1 without a rule such as `nr.slots.Pareto`."""
        return 1 if self.constraints is None else self.constraints.objectives

    @property
    def output_count(self) -> int:
        """The number of values with each trial: objectives and constraint values."""
        return self.objective_count + self.constraint_count

    @property
    def objective_names(self) -> tuple[str, ...]:
        """The name of each objective."""
        count = self.objective_count
        if count == 1:
            return ("reward",)
        return objective_names(getattr(self.constraints, "names", None), count)

    @property
    def window(self) -> Window | None:
        """The window of trials on whose uncertainty the width depends, or None."""
        return self.confidence.recent

    @property
    def by_round(self) -> bool:
        """True if an update may be due before a decision although no outcome has come in."""
        return not self.memory.keeps_all or self.objective.revises

    @property
    def plain(self) -> bool:
        """True if every answer counts, and nothing else does."""
        return self.memory.keeps_all and not self.pending.revises and not self.objective.revises

    @property
    def direct(self) -> bool:
        """True if arms and rewards are all that is learned from, each reward at once and for good.

        Such a policy is played without a `Trial` for each round.
        """
        rewards = self.plain and self.objective.is_reward and not (self.pending.moves or self.constraint_count)
        fixed = self.refit is None and self.memory.drift() is None and self.confidence.guess() is None
        alone = (self.constraints, self.switching, self.window, self.guards) == (None,) * 4
        return self.finite and rewards and fixed and alone and self.pending.waits() is None

    @property
    def models(self) -> tuple[Candidate, ...] | None:
        """Linear models of arms that take the place of the kernel, or None."""
        return None if self.refit is None else self.refit.models(self)

    @property
    def foreseeable(self) -> bool:
        """True if every answer counts as itself, whatever else counts."""
        return self.memory.keeps_all and not self.objective.revises and self.pending.as_answered

    def using(self, **parts: Any) -> Policy[D]:
        """Returns this policy with other parts, checked again: `policy.using(memory=nr.slots.SlidingWindow(200))`.

        Args:
            parts: new parts by slot: any of the attributes above but `algorithm`. The slots `memory`, `pending` and
                `switching` take names as well. None stands for the plain part. If bounds (`confidence`) come without a
                score, their upper bound is played, even if the old score drew its own width. Parts that `auto` has
                chosen yield to `constraints` that do not go with them.

        >>> import nilregret as nr
        >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
        >>> policy = nr.gp_ucb(arms, kernel, noise=0.1).using(pending="hallucinate")
        >>> policy.pending
        Hallucinated(failed='aside')
        """
        parts = parted(parts)
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

    def with_arms(self, domain: Arms) -> Policy:
        """Returns this policy for more arms (`Arms.with_more`). Kernel and other hyperparameters stay.

        Bounds and scores whose theorem counts the arms count these (`Part.for_arms`).

        Raises:
            InvalidInput: if a part cannot have more arms, such as a kernel with a row for each arm.
        """
        if not isinstance(self.domain, Arms):
            raise InvalidInput("Arms can be added to a policy on `Arms` only: other domains have all their points.")
        before, after = len(self.domain), len(domain)
        confidence, score = self.confidence.for_arms(before, after), self.score.for_arms(before, after)
        return replace(self, domain=domain, confidence=confidence, score=score)  # type: ignore[arg-type]  # D is Arms

    def detecting_changes(
        self,
        *,
        exploration: float | None = None,
        threshold: float | PowerLaw | None = None,
        ridge: float | PowerLaw | None = None,
        distance: str = "average",
    ) -> Policy:
        """Returns this policy with a test for changes on forced uniform rounds (Avanesov, Alg. 2).

        Each change restarts the memory. The policy's own memory and forced rounds stay: `AllOf` joins both memories,
        and `InTurn` both kinds of rounds.

        Args:
            exploration: xi: a round is uniform while |uniform| <= xi sqrt(|history|). None for sqrt(3), or for the
                uniform rounds that the policy has already.
            threshold: the threshold of the detector (see `detect_change`).
            ridge: the ridge of the detector (see `detect_change`).
            distance: the distance of the detector (see `detect_change`).

        Raises:
            InvalidInput: if the policy has such a detector already, or if parts do not go together.

        >>> import nilregret as nr
        >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
        >>> policy = nr.expected_improvement(arms, kernel, noise=0.1).detecting_changes()
        >>> nr.Study(policy).ask().explored
        True
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
        """The sides of the smallest box around contexts and points, `(c + d,)`."""
        return sides(self.domain, self.context)

    def to_json(self) -> str:
        """Returns the description as one line of JSON. Equal policies give equal text.

        >>> import nilregret as nr
        >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
        >>> policy = nr.gp_ucb(arms, kernel, noise=0.1)
        >>> nr.Policy.from_json(policy.to_json()) == policy
        True
        """
        return serialize.dumps(self)

    @staticmethod
    def from_json(text: str) -> Policy:
        """Returns the policy that `to_json` described."""
        policy = serialize.loads(text)
        if not isinstance(policy, Policy):
            raise InvalidInput(f"This JSON describes a {type(policy).__name__}, not a Policy.")
        return policy


def check_model(domain: Domain, context: Domain | None, kernel: Kernel) -> None:
    """Checks domain, contexts and kernel, and the kernel on rows of the domain."""
    check_domain("domain", domain)
    if context is not None:
        check_domain("context", context)
    check_kernel("kernel", kernel)
    if isinstance(domain, Arms) and context is None:
        corners = np.concatenate([domain.points.argmin(axis=0), domain.points.argmax(axis=0)])
        with np.errstate(all="ignore"):
            check_covariance(kernel, kernel.between_arms(domain.points, corners, corners), len(corners))
            variances = kernel.arm_variances(domain.points)
    else:
        ends = enclosing_box(domain, context)
        with np.errstate(all="ignore"):
            K = kernel(*[np.stack([ends.lower, ends.upper])] * 2)
        check_covariance(kernel, K, 2)
        variances = K.diagonal()
        row = np.zeros((1, ends.dimension))
        kernel.input_gradient(row, row, np.ones((1, 1)))  # continuous domains are searched by gradients
    if not float(variances.max()) <= LARGEST_PRIOR:
        raise InvalidInput(
            f"The prior variance reaches {numeral(float(variances.max()))} on this domain, beyond "
            f"{exact(LARGEST_PRIOR)}, where its square may overflow: change the unit of the rewards, or (of a linear "
            "kernel) of the points."
        )
