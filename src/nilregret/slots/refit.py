"""Fits of hyperparameters to the record, and their schedule. Policies with fits are not certified.

`ArmModels` are linear models of arms under contexts, averaged by their predictions, at a cost that does not grow.

`EarlierStudies` are studies of similar problems beside the posterior of this one.

`LengthscaleBank` has several lengthscales at once, for a kernel whose lengthscale is unknown:

| symbol | name | meaning |
|---|---|---|
| theta_0 | | lengthscales of the policy's kernel |
| theta_j / theta_0 | `factors` | candidates, as multiples of these lengthscales |
| w_j | `Lengthscales.weights` | weight of a candidate, by its predictions |
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, flag, integer, listed, number, one_of, settle, shown
from .._utils.dataclass import replace
from .._utils.process_setting import with_one_thread
from ..domains.domain import Arms, sides
from ..errors import InvalidInput, NoRegretWarning
from ..gp import Bank
from ..gp.fitting import FEWEST, MOST_RESTARTS, Standardization, fit
from ..gp.likelihood import PRIORS
from ..gp.linear_model import Candidate
from ..gp.mixture import EarlierStudy, Ensemble
from ..gp.warping import AnyWarp, SignedLog, Warp, half_rank, signed_log
from ..kernels import Kernel
from ..kernels.factorization import LEAST_REGULARIZATION
from ..serialize import description, entries, from_plain, to_plain
from .base import Policy
from .envelope import checked_delta

WARPS: dict[str, Callable[[Array], AnyWarp | None]] = {
    "none": lambda rewards: None,  # noqa: ARG005
    "half-rank": half_rank,
    "signed-log": signed_log,
}


class Learning(ABC):
    """A way to learn the kernel from the record: the slot `refit`. It is not for parts of your own."""

    balances: ClassVar[bool] = False  # True if candidates decide rounds in turn (`RegretBalancing`)
    by_rows: ClassVar[bool] = False  # True if arms under finitely many contexts are learned by their coordinates, too

    @property
    @abstractmethod
    def fitting(self) -> Refit | None:
        """Fits of kernel, noise and units, or None if these stay as given."""

    @abstractmethod
    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for policies in which this part makes no sense."""

    @abstractmethod
    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Bank | Ensemble | None:
        """Returns the kernels to compare, or None for the current kernel alone.

        Args:
            kernel: current kernel.
            columns: number of columns of its points.
            more: number of candidates added in the run.
            noise_variance: noise variance as in `Bank`.
        """

    def models(self, policy: Policy) -> tuple[Candidate, ...] | None:  # noqa: ARG002
        """Returns linear models of arms that take the place of the kernel, or None."""
        return None

    @abstractmethod
    def of_constraint(self, *, warp: str, given: bool) -> Learning:
        """Returns the part for a constraint.

        Args:
            warp: warp of the fits.
            given: False if the noise of the constraint is unknown to the fits.
        """


class Refitted(NamedTuple):
    """Kernel, ridge and units of the posterior after a fit."""

    kernel: Kernel  # for points in their own units and standardised rewards
    regularization: float
    scale: Standardization  # of the warped rewards, with the mean of the process and the std of the rewards
    warp: AnyWarp | None = None  # warp of the rewards, applied first

    def targets(self, rewards: Array) -> Array:
        """Returns rewards in the units of the posterior."""
        return self.scale.to(rewards if self.warp is None else self.warp.to(rewards))

    def plain(self) -> dict[str, Any]:
        """Returns plain JSON values that keep every bit."""
        return {
            "kernel": to_plain(self.kernel), "regularization": self.regularization, "mean": self.scale.mean,
            "std": self.scale.std, "warp": to_plain(self.warp),
        }  # fmt: skip

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """Returns the fit that `plain` described.

        Raises:
            InvalidInput: if the values describe no fit.
        """
        plain, ridge, mean, std, warp = entries(
            values, kernel=dict, regularization=float, mean=float, std=float, warp=dict | None
        )  # fmt: skip
        kernel, bent = from_plain(plain), from_plain(warp)
        if not isinstance(kernel, Kernel) or not isinstance(bent, Warp | SignedLog | None):
            raise InvalidInput("this is no kernel, or no map of rewards.")
        return cls(kernel, number("regularization", ridge, low=0.0, open_low=True), Standardization(mean, std), bent)


@final
@description(frozen=True, kw_only=True)
class Refit(Learning):
    """Fits of the kernel, the noise and a constant mean at intervals, each from the policy's own kernel.

    A fit sees the first k * `every` rewards, standardised, at points in units of the domain's sides. It is a pure
    function of the record, which a replay repeats. Under a prior the scale of a kernel is 1, the variance of
    standardised rewards. Scales in sums of kernels are fitted, since their shares matter. The confidence
    bounds of theorems are for a given kernel, so they are not called valid here.

    Attributes:
        every: number of rewards between two fits.
        prior: "hvarfner" (Hvarfner et al. 2024), "moderate", which finds heavy noise, "related" (with
            lengthscales about a shared one) or "none" for maximum likelihood. `nilregret.gp.fitting.fit` has them.
        restarts: number of random starts of each fit.
        outputs: "answered" fits to the rewards of observed trials. The option "own" fits to the training data of the
            policy, with the imputed values of pending trials. The code released by Verma et al. 2022 does so.
        standardize: True brings rewards to mean 0 and standard deviation 1. False only subtracts the policy's prior
            mean, which stays, as in that code. The priors are for standardised rewards.
        growth: the next fit comes after `every` more rewards or after this share of all rewards so far, whichever is
            later. Long runs then spend less time on fits. 0 always means `every`.
        warp: map of the rewards before they are standardised. "none" keeps all. The option "half-rank" keeps those from
            the median up and replaces the lower half by normal scores (`nilregret.gp.warping.half_rank`). Outliers and
            cliffs then do not hide the rest. The option "signed-log" is for constraint values: it keeps values near 0
            and takes logarithms of those far away. The map is of the rewards that the fit saw, and results are mapped
            back. Nothing is warped once the noise of a reward was told.
        noise: "fitted" starts from the policy's noise. The option "unknown" starts from the mode of its prior. The
            option "given" keeps the policy's noise, unless rewards a million times larger need more for the
            computation. For warped rewards it is the noise of those from the median up.

    >>> import nilregret as nr
    >>> arms, kernel = nr.Arms.grid(0, 1, 11), nr.SquaredExponential(0.2)
    >>> policy = nr.gp_ucb(arms, kernel, noise=0.1, refit=nr.slots.Refit(every=5))
    >>> policy.valid_for  # a fitted kernel has no theorem
    'none'
    """

    every: int = 10
    prior: str = "hvarfner"
    restarts: int = 2
    outputs: str = "answered"
    standardize: bool = True
    growth: float = 0.0
    warp: str = "none"
    noise: str = "fitted"

    def __post_init__(self) -> None:
        settle(
            self,
            every=integer("every", self.every, low=3, why="Two answers are too few to learn a kernel from."),
            prior=one_of("prior", self.prior, [*PRIORS, "none"]),
            restarts=integer("restarts", self.restarts, low=0, high=MOST_RESTARTS),
            outputs=one_of("outputs", self.outputs, ["answered", "own"]),
            standardize=flag("standardize", self.standardize),
            growth=number("growth", self.growth, low=0.0, high=1.0, why="It is a share of the answers so far."),
            warp=one_of("warp", self.warp, list(WARPS)),
            noise=one_of("noise", self.noise, ["fitted", "given", "unknown"]),
        )
        if self.warp != "none" and not self.standardize:
            raise InvalidInput(
                f"Warped rewards are standardised: `warp` {self.warp!r} does not go with `standardize` False. Leave "
                "one out."
            )

    @property
    def fitting(self) -> Refit:
        """The part itself."""
        return self

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the kernel cannot be fitted."""
        policy.kernel.rescaled(1.0 / sides(policy.domain, policy.context))

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> None:
        """Returns None, for the last fitted kernel alone."""

    def of_constraint(self, *, warp: str, given: bool) -> Refit:
        """Returns the fits of a constraint, whose values are warped by their signs if rewards are warped."""
        named = warp if self.standardize and self.warp != "none" else "none"
        return replace(self, warp=named, noise="unknown" if self.noise == "given" and not given else self.noise)

    def fits(self, answers: int) -> int:
        """Returns how many fits are due once so many rewards count."""
        if not self.growth:
            return answers // self.every
        return int(bisect_right(_schedule(self.every, self.growth, answers), answers))

    def seen_by(self, fit: int) -> int:
        """Returns how many rewards the fit of this number, from 1, sees."""
        if not self.growth:
            return fit * self.every
        known = 2 * self.every
        while len(_schedule(self.every, self.growth, known)) < fit:
            known *= 2
        return _schedule(self.every, self.growth, known)[fit - 1]

    @with_one_thread
    def __call__(
        self, kernel: Kernel, rows: Array, rewards: Array, sides: Array, *, noise: float, seed: int,
        prior_mean: float = 0.0, stds: Array | None = None,
    ) -> Refitted:  # fmt: skip
        """Returns kernel and noise for rows `(n, d)` with rewards `(n,)`, in a box with sides `(d,)`.

        `stds` `(n,)` has the noise of rewards where it is known, and nan elsewhere. Rewards are then not warped. The
        fitted noise is that of the others. If there are none, its prior decides. Under maximum likelihood its first
        value stays then.

        If there is nothing to learn from (equal rewards, or fewer than three distinct points), kernel and noise stay,
        and only the mean is fitted. If the noise is unknown (`noise="unknown"`), the kernel's unit is unknown, too.
        Then even one or two points are fitted under the prior. For equal rewards the noise is the mode of its prior.

        As long as all rewards are equal there is no unit, and a repeated reward says nothing of the noise in it. So of
        the first rewards, which are equal, a fit that learns unit and noise sees one at each point.
        """
        if self.standardize and self.noise != "given" and stds is None:
            rows, rewards = _without_first_repeats(rows, rewards)
        # A warp weighs answers of known noise by their rank, and their belief reaches down to the worst rewards.
        warp = WARPS[self.warp](rewards) if stds is None else None
        rewards = rewards if warp is None else warp.to(rewards)
        scale = Standardization.of(rewards) if self.standardize else Standardization(prior_mean, 1.0)
        fewest = 1 if self.noise == "unknown" and self.prior != "none" else FEWEST
        if self.standardize and _are_fewer(rows, fewest):  # the kernel stays, in reward units
            scale = Standardization(scale.mean, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRegretWarning)  # warned elsewhere once, not after every fit
            found = fit(
                kernel.rescaled(1.0 / sides),
                rows / sides,
                scale.to(rewards),
                noise=None if self.noise == "unknown" else noise / scale.std,
                fit_noise=self.noise != "given",
                prior=None if self.prior == "none" else self.prior,
                restarts=self.restarts,
                seed=seed,
                fit_mean=self.standardize,
                bounds=self.bounds(kernel, sides),
                fewest=fewest,
                stds=None if stds is None else stds / scale.std,
            )
        # A search observes ever better rewards. Their average says little about f elsewhere.
        shifted = Standardization(float(scale.back(found.mean)), scale.std)
        least = 10.0 * LEAST_REGULARIZATION * float(found.kernel.diagonal(rows / sides).max())
        ridge = max(found.noise**2, least) if self.noise == "given" else found.noise**2
        return Refitted(found.kernel.rescaled(sides), ridge, shifted, warp)

    def bounds(self, kernel: Kernel, sides: Array) -> dict[str, tuple[float, float]]:
        """Returns the bounds of a fit's hyperparameters: under a prior the scale of a kernel is 1."""
        return {"scale": (1.0, 1.0)} if self.prior != "none" and _multiplies(kernel, len(sides)) else {}


def _are_fewer(rows: Array, count: int) -> bool:
    """Returns True if fewer than `count` rows of `(n, d)` are distinct."""
    return len(rows) < count or (count > 1 and len(np.unique(rows, axis=0)) < count)


def _without_first_repeats(rows: Array, rewards: Array) -> tuple[Array, Array]:
    """Returns rows `(n, d)` and rewards `(n,)` without repeated rows before the first reward that differs, if any."""
    apart = np.flatnonzero(rewards != rewards[0])
    equal = int(apart[0]) if len(apart) else 0
    if equal < 2:
        return rows, rewards
    kept = np.sort(np.unique(rows[:equal], axis=0, return_index=True)[1])
    if len(kept) == equal:
        return rows, rewards
    return np.concatenate([rows[kept], rows[equal:]]), np.concatenate([rewards[kept], rewards[equal:]])


@lru_cache(maxsize=64)
def _schedule(every: int, growth: float, answers: int) -> list[int]:
    """Returns the number of rewards at each fit, up to at least so many."""
    counts = [every]
    while counts[-1] < answers:
        counts.append(counts[-1] + max(every, int(growth * counts[-1])))
    return counts


def _multiplies(kernel: Kernel, dimension: int) -> bool:
    """Returns True if the prior variance is the product of the kernel's scales, and so 1 if all scales are 1."""
    kinds = [parameter.kind for parameter in kernel.hyperparameters(range(dimension))]
    ones = np.where(np.array(kinds) == "scale", 0.0, kernel.log_parameters)
    return kernel.with_log_parameters(ones).variance == 1.0


CAUTIOUS = 30.0  # precision of a linear model for faint signals
FARTHEST_BEHIND = 1e3  # nats


@final
@description(frozen=True, kw_only=True)
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


MOST_STUDIES = 64  # largest number of earlier studies, each with a posterior that each decision asks


@final
@description(frozen=True, kw_only=True)
class EarlierStudies(Learning):
    """A mixture of the posterior of this study and those of earlier ones, weighted by ranks (`nilregret.gp.mixture`).

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
        if not 1 <= len(studies) <= MOST_STUDIES or not all(isinstance(study, EarlierStudy) for study in studies):
            raise InvalidInput(
                f"`studies` is {shown(self.studies)}: it must be 1 to {MOST_STUDIES} earlier studies.",
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


LENGTHS = ("lengthscale", "angle")  # kinds of hyperparameters that are lengths
MOST_FACTORS = 64  # largest number of candidates, each with a posterior of its own
FARTHEST = 1e6
HALVES = (0.5, 0.5**0.5, 1.0, 2.0**0.5, 2.0)  # Steps of sqrt 2 leave no lengthscale far from a candidate.


class Lengthscales(NamedTuple):
    """Candidates for the lengthscales and their weights.

    Attributes:
        factors: multiplier of the kernel's lengthscales, of each candidate, `(m,)`.
        weights: weight of each candidate by its predictions of the rewards, `(m,)`. They sum to 1.
        kernels: kernel of each candidate.
        leader: index of the one candidate that decides the next round (`RegretBalancing`), or None.
        eliminated: indices of the candidates that decide no more rounds (`RegretBalancing`).
    """

    factors: tuple[float, ...]
    weights: Array
    kernels: tuple[Kernel, ...]
    leader: int | None = None
    eliminated: tuple[int, ...] = ()


def with_factor(kernel: Kernel, factor: float, columns: int) -> Kernel:
    """Returns the kernel with its lengthscales multiplied by a factor.

    Periods, scales and all other hyperparameters stay.
    """
    if factor == 1.0:
        return kernel
    known = kernel.hyperparameters(range(columns))
    steps = [math.log(factor) if parameter.kind in LENGTHS else 0.0 for parameter in known]
    return kernel.with_log_parameters(kernel.log_parameters + np.array(steps))


def _check_lengths(policy: Policy) -> None:
    columns = len(sides(policy.domain, policy.context))
    if not any(parameter.kind in LENGTHS for parameter in policy.kernel.hyperparameters(range(columns))):
        raise InvalidInput(
            f"The {type(policy.kernel).__name__} kernel has no lengthscale, so that there is nothing to compare: leave "
            "`refit` out, or take a kernel that has one.",
            advice="Such as `nr.Matern(2.5, 0.3)`.",
        )


def _checked_factors(factors: object) -> tuple[float, ...]:
    why = "Each is what the kernel's lengthscales are multiplied with."
    found = tuple(
        number("factors", factor, low=1.0 / FARTHEST, high=FARTHEST, why=why)
        for factor in listed("factors", factors, why=why)
    )
    if not 1 <= len(found) <= MOST_FACTORS or len(set(found)) < len(found):
        raise InvalidInput(
            f"`factors` are {shown(list(found))}: give one to {MOST_FACTORS} different ones, such as "
            "(0.5, 0.71, 1, 1.41, 2), which are what the kernel's lengthscales are multiplied with."
        )
    return found


@final
@description(frozen=True, kw_only=True)
class LengthscaleBank(Learning):
    """A posterior for each of several lengthscales, averaged by their predictions (`nilregret.gp.mixture`).

    This is Bayesian model averaging on a grid. Scores see the mean and standard deviation of the mixture, and Thompson
    sampling first draws a lengthscale. Unlike a fit, the bank never settles on one lengthscale after few observations,
    and drops none. A round costs as much as the rounds of all candidates together. `study.lengthscales` shows the
    weights. The confidence bounds of theorems are for a given kernel, so they are not called valid here.

    Predictions are weighted by the stated noise, even if the regularizer is another number (`igp_ucb`, `gp_ts`). A
    round then costs twice as much. A bank is refused where f drifts (`Discount`, `DriftBank`), as fits are.

    Attributes:
        factors: multipliers of all lengthscales of the policy's kernel. Use a geometric grid in steps of about sqrt 2
            over the plausible range. The default is from a half to twice.
        weight: weight of the stated scale of kernel and noise, as a number of observations, or None if the scale is
            known to be right.
        around: fits of the kernel, the noise and the units on their schedule, or None if kernel and noise are given.
            The candidates are then multiples of the last fitted lengthscales, and are weighted again after each fit.
    """

    factors: tuple[float, ...] = HALVES
    weight: float | None = 10.0
    around: Refit | None = None

    def __post_init__(self) -> None:
        why = "It counts answers; None for a scale that is right."
        weight = None if self.weight is None else number("weight", self.weight, low=0.0, open_low=True, why=why)
        settle(self, factors=_checked_factors(self.factors), weight=weight)
        if not isinstance(self.around, Refit | None):
            raise InvalidInput(
                f"`around` is {shown(self.around)}: it must be a `Refit`, or nothing.",
                advice="It is made by `nr.slots.Refit(...)`.",
            )

    @property
    def fitting(self) -> Refit | None:
        """The fits around which the bank lies, or None."""
        return self.around

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` if the kernel has no lengthscale, or no fit is possible."""
        _check_lengths(policy)
        if self.around is not None:
            self.around.check(policy)

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Bank:  # noqa: ARG002
        """Returns a candidate for each factor."""
        kernels = tuple(with_factor(kernel, factor, columns) for factor in self.factors)
        return Bank(kernels, self.factors, self.weight, noise_variance)

    def of_constraint(self, *, warp: str, given: bool) -> LengthscaleBank:
        """Returns a bank with the same factors for the kernel of a constraint."""
        return replace(self, around=None if self.around is None else self.around.of_constraint(warp=warp, given=given))


@final
@description(frozen=True, kw_only=True)
class RegretBalancing(Learning):
    """LB-GP-UCB: each round is decided by the lengthscale with the smallest regret bound so far.

    Ziomek, Adachi & Osborne 2024, Algorithm 1: candidates q(i) = theta_0 e^{-i/d}, longest first. Each candidate
    decides by its own posterior, and all posteriors have all observations. A refuted candidate decides no more rounds.
    The part is made by `nr.algorithms.lb_gp_ucb`.

    Attributes:
        factors: theta_j / theta_0 at the beginning, descending.
        norm_bound: N, a bound on ||f||_k for the longest lengthscale that suits f, reward units.
        noise: sub-Gaussian constant of the noise, reward units.
        growth: a in g(t) = t^a / (the least factor). Candidates down to 1 / g(t) are added as t grows. 0 adds none.
        delta: probability that a candidate is wrongly refuted. Half of it is for the widths.
    """

    factors: tuple[float, ...]
    norm_bound: float
    noise: float
    growth: float = 0.0
    delta: float = 0.1

    balances: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(
            self,
            factors=_checked_factors(self.factors),
            norm_bound=number("norm_bound", self.norm_bound, low=0.0, high=LARGEST_REWARD, open_low=True),
            noise=number("noise", self.noise, low=0.0, high=LARGEST_REWARD),
            growth=number("growth", self.growth, low=0.0, high=1.0, why="It is the power of t in g(t)."),
            delta=checked_delta(self.delta),
        )
        if list(self.factors) != sorted(self.factors, reverse=True):
            raise InvalidInput(
                f"`factors` are {shown(list(self.factors))}: they must descend, the longest lengthscale first, which "
                "is the one that is trusted most."
            )

    @property
    def fitting(self) -> None:
        """None, since nothing is fitted."""

    def check(self, policy: Policy) -> None:
        """Raises `InvalidInput` for contexts, kernels without lengthscales, and kernels without a known gain rate."""
        from ..theory.rates import information_gain_rate

        if policy.context is not None:
            raise InvalidInput(
                "`lb_gp_ucb` (`RegretBalancing`) compares what candidates earned on average in different rounds, and "
                "under contexts the best that can be earned differs from round to round: who had the better contexts "
                "would refute the others. Leave out `context`, or take a `LengthscaleBank` for `refit` instead.",
                advice="That is `refit=nr.slots.LengthscaleBank()`.",
            )
        _check_lengths(policy)
        information_gain_rate(policy.kernel, len(sides(policy.domain, policy.context)), 2.0, source="vakili")

    def all_factors(self, columns: int, more: int) -> tuple[float, ...]:
        """Returns the factors with `more` added ones: q(i + 1) = q(i) e^{-1/d}."""
        return self.factors + tuple(self.factors[-1] * math.exp(-i / columns) for i in range(1, more + 1))

    def added_by(self, t: int, columns: int) -> int:
        """Returns how many candidates are added by round t: all q(i) >= theta_0 / g(t) (line 14)."""
        room = MOST_FACTORS - len(self.factors)
        return min(math.floor(self.growth * math.log(max(t, 1)) * columns + 1e-9), room)

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Bank:  # noqa: ARG002
        """Returns a candidate for each factor."""
        factors = self.all_factors(columns, more)
        return Bank(tuple(with_factor(kernel, factor, columns) for factor in factors), factors, None)

    def of_constraint(self, *, warp: str, given: bool) -> LengthscaleBank:  # noqa: ARG002
        """Returns a bank that averages the same candidates, since constraints are not balanced."""
        return LengthscaleBank(factors=self.factors)
