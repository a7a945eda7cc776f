"""Random hypervolume scalarisations (Golovin & Zhang 2020) of bounds and draws (Paria, Kandasamy & Poczos 2019).

| symbol | name | meaning |
|---|---|---|
| k | `objectives` | number of objectives, each a sample of a Gaussian process of its own, given kernel |
| r | `reference` | the worst value of each objective that counts, fixed before the first trial |
| lambda_t | `ScalarisedBound` | direction of round t, uniform on the positive part of the unit sphere |
| s_lambda(y) | `scalarised` | min_i max(0, (y_i - r_i) / lambda_i)^k |

The abstract of Golovin & Zhang states hypervolume regret of order sqrt(T), up to logarithms, for both algorithms. The
regret of round t is that of s_lambda_t (Paria et al., eq. 5). Their Theorem 1 (eq. 8) bounds its expected sum by
O(L sqrt(K^2 T d gamma_T ln T / ln(1 + sigma^-2))), for scalarisations with one Lipschitz constant L for all weights.
This one has none: its slope grows as a weight falls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

from .._utils.checks import integer, many, number, shown
from ..domains.domain import D
from ..errors import InvalidInput
from ..kernels import Kernel
from ..policy.policy import Policy
from ..slots.envelope import Confidence
from ..slots.front_scores import ScalarisedBound, ScalarisedSample
from ..slots.pareto import MOST_OBJECTIVES, Pareto
from .arguments import chosen_width, noise_and_ridge
from .bayes_widths import bayes_width, bounds_without_theorem, prior_std
from .definition import FreeSlots, algorithm, build, given

FILLED = {
    "constraints": "it holds the objectives, and the number of limits beside them",
    "context": "a front is looked for without contexts",
    "reward": "each objective is a number of any size",
    "switching": "a trial of several objectives is played once",
}


@algorithm(**FILLED)
def hypervolume_ucb(
    domain: D,
    kernel: Kernel | Sequence[Kernel],
    *,
    noise: float | Sequence[float] | None = None,
    reference: Sequence[float],
    objectives: int | Sequence[str] | None = None,
    constraints: int = 0,
    width: Literal["finite", "compact"] | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[FreeSlots],
) -> Policy[D]:
    """Scalarised GP-UCB: argmax s_lambda_t(U_t(x)) (Golovin & Zhang 2020, Paria et al. 2019).

    In each round lambda_t is drawn uniformly from the positive part of the unit sphere. U_t has the upper bounds of all
    objectives (Paria et al., section 3.3), of Theorem 1 or 2 of Srinivas et al. 2010, each with delta / k. So all
    bounds of all objectives hold together with probability 1 - delta. Golovin & Zhang state hypervolume regret of order
    sqrt(T), up to logarithms, for a fixed reference. That is claimed here for samples of the given kernels. With
    `refit` nothing is proved.

    Args:
        domain: arms, a box, or a space of parameters.
        kernel: prior covariance of each objective, or one for all. Objectives are independent.
        noise: standard deviation of the noise of each objective, in its units, or one for all.
        reference: r, in the units told. Values worse than r count for nothing. One that the front does not reach makes
            all directions but a few alike.
        objectives: k, or a name for each objective. The number of entries of `reference` unless given.
        constraints: m, the number of constraint values told with the objectives, each satisfied when <= 0. A point is
            played if its lower bounds allow that it satisfies all. They have kernel and noise of the first objective.
            Nothing is proved about the volume then.
        width: "finite" (Theorem 1, the default on arms), "compact" (Theorem 2, elsewhere), or a part, whose `delta` is
            for one objective.
        delta: failure probability of the bounds of all objectives together.
        regularization: lambda of each objective, its `noise**2` unless given. With another value nothing is proved.
        slots: see `gp_ucb`. `prior_mean` is that of every objective.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.hypervolume_ucb(arms, kernel, noise=0.1, reference=(-2.0, -2.0))
    >>> study = nr.Study(policy, seed=0)
    >>> _ = study.tell(study.ask(), (0.3, -0.1))
    >>> len(study.front()), policy.valid_for
    (1, 'f')
    """
    model = _Model("hypervolume_ucb", domain, kernel, noise, reference, objectives, constraints, regularization, slots)
    confidence = chosen_width(width, ["finite", "compact"], delta=delta)
    if isinstance(confidence, str | None):
        found = [
            bayes_width(domain, None, each, width=confidence, delta=model.share(delta), noise_matched=model.matched)
            for each in model.kernels
        ]
        confidence = _widest(found)
    return model.build(confidence, ScalarisedBound(sizes=model.sizes))


@algorithm(**FILLED)
def hypervolume_thompson(
    domain: D,
    kernel: Kernel | Sequence[Kernel],
    *,
    noise: float | Sequence[float] | None = None,
    reference: Sequence[float],
    objectives: int | Sequence[str] | None = None,
    constraints: int = 0,
    width: Literal["finite", "pointwise"] | Confidence | None = None,
    delta: float = 0.1,
    regularization: float | None = None,
    **slots: Unpack[FreeSlots],
) -> Policy[D]:
    """Scalarised Thompson sampling: argmax s_lambda_t of a draw (Golovin & Zhang 2020, Paria et al. 2019).

    In each round lambda_t is drawn as in `hypervolume_ucb`, and one function of each objective from its posterior. The
    regret is of the same order, in the mean over the objectives, noise and draws.

    Args:
        domain, kernel, noise, reference, objectives, constraints, regularization, slots: see `hypervolume_ucb`.
        width: bounds of `study.bounds` alone. "finite" (Theorem 1) is the default on arms. "pointwise", for one point
            in one round, is the default elsewhere. Or a part.
        delta: failure probability of these bounds, of all objectives together.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.algorithms.hypervolume_thompson(arms, kernel, noise=0.1, reference=(-2.0, -2.0))
    >>> study = nr.Study(policy, seed=0)
    >>> _ = study.tell(study.ask(), (0.3, -0.1))
    >>> len(study.front())
    1
    """
    model = _Model(
        "hypervolume_thompson", domain, kernel, noise, reference, objectives, constraints, regularization, slots
    )
    confidence = chosen_width(width, ["finite", "pointwise"], delta=delta)
    if isinstance(confidence, str | None):
        share = model.share(delta)
        confidence = bounds_without_theorem(domain, None, width=confidence, delta=share, noise_matched=model.matched)
    return model.build(confidence, ScalarisedSample(sizes=model.sizes))


class _Model:
    """The model of k objectives, each with a kernel and a noise."""

    def __init__(
        self, algorithm: str, domain: Any, kernel: Any, noise: Any, reference: Any, objectives: Any, constraints: Any,
        regularization: Any, slots: FreeSlots,
    ) -> None:  # fmt: skip
        noise = given(algorithm, noise, slots, constraints=constraints)
        self._algorithm, self._domain, self._slots = algorithm, domain, slots
        names = tuple(objectives) if isinstance(objectives, Sequence) and not isinstance(objectives, str) else None
        if isinstance(reference, str | Mapping) or not hasattr(reference, "__iter__"):
            raise InvalidInput(f"`reference` is {shown(reference)}: it must be a number for each objective, in order.")
        listed = list(reference)
        self.k = len(listed) if objectives is None else objectives if names is None else len(names)
        why = "It is the number of objectives, and of the entries of `reference`."
        self.k = integer("objectives", self.k, low=2, high=MOST_OBJECTIVES, why=why)
        limits = integer("constraints", constraints, low=0, why="It is the number of constraint values of each trial.")
        self.kernels, noises = self._each("kernel", kernel), self._each("noise", noise)
        self._noise, self._ridge = noise_and_ridge(domain, self.kernels[0], noises[0], regularization, slots)
        pairs = zip(self.kernels[1:], noises[1:], strict=True)
        others = [noise_and_ridge(domain, each, std, regularization, slots) for each, std in pairs]
        # Of limits nothing is told: they have the kernel and the noise of the first objective.
        own = [(self.kernels[0], (self._noise, self._ridge))] * limits
        outputs = [*zip(self.kernels[1:], others, strict=True), *own]
        self._rule = Pareto(
            objectives=self.k, names=names, limits=limits, reference=tuple(listed), rule="optimistic",
            kernel=tuple(each for each, _ in outputs), noise=tuple(std for _, (std, _) in outputs),
            regularization=tuple(ridge for _, (_, ridge) in outputs),
        )  # fmt: skip

    def _each(self, name: str, value: Any) -> list[Any]:
        """Returns a list with one entry for each objective."""
        if not hasattr(value, "__iter__") or isinstance(value, str):
            return [value] * self.k
        if len(listed := list(value)) != self.k:
            raise InvalidInput(
                f"`{name}` has {many(len(listed), 'entry')} for {many(self.k, 'objective')}: give one for all, or one "
                "for each."
            )
        return listed

    def share(self, delta: float) -> float:
        """Returns the failure probability of the bounds of each objective, if that of all together is delta."""
        return number("delta", delta, low=0.0, high=1.0, open_low=True, open_high=True) / self.k

    @property
    def matched(self) -> bool:
        """True if lambda of the first objective is its noise variance. The rule looks after the others."""
        return self._ridge == self._noise**2

    @property
    def sizes(self) -> tuple[float, ...]:
        """s: the prior standard deviation of each objective, fixed as the theorem has it."""
        return tuple(prior_std(self._domain, None, each) for each in self.kernels)

    def build(self, confidence: Confidence, score: ScalarisedBound | ScalarisedSample) -> Policy:
        """Returns the policy."""
        mean = self._slots.get("prior_mean")
        rule = self._rule
        if mean is not None:
            rule = replace(rule, prior_mean=(mean,) * (self.k - 1) + (0.0,) * rule.limits)
        return build(
            self._algorithm, self._domain, self.kernels[0], confidence, score, noise=self._noise,
            regularization=self._ridge, constraints=rule, **self._slots,
        )  # fmt: skip


def _widest(bounds: Sequence[Confidence]) -> Confidence:
    """Returns bounds that hold for samples of each of several kernels. Those of Theorem 1 are the same for all."""
    names = [name for name in ("log_a", "b", "assumed") if hasattr(bounds[0], name)]  # of Theorem 2
    widest: Any = {name: max(getattr(each, name) for each in bounds) for name in names}
    return replace(bounds[0], **widest)  # type: ignore[type-var]
