"""When and how hyperparameters are learned from the record. Policies that do so are not certified."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self, final

import numpy as np

from .._utils.blas import with_one_thread
from .._utils.checks import Array, flag, integer, number, one_of, settle
from .._utils.errors import InvalidInput, NoRegretWarning
from .._utils.serialize import described, entries, from_plain, to_plain
from ..domains.domain import sides
from ..gp import Bank
from ..gp.fitting import FEWEST, MOST_RESTARTS, Standardization, fit
from ..gp.protocol import LEAST_REGULARIZATION
from ..gp.warping import AnyWarp, SignedLog, Warp, half_rank, signed_log
from ..kernels import Kernel
from .base import Policy

WARPS: dict[str, Callable[[Array], AnyWarp | None]] = {
    "none": lambda rewards: None,  # noqa: ARG005 - whatever they are
    "half-rank": half_rank,
    "signed-log": signed_log,
}


class Learning(ABC):
    """How the kernel is learned from the record: the slot `refit`. Not for parts of one's own."""

    balances: ClassVar[bool] = False  # whether candidates decide rounds in turn (`RegretBalancing`)

    @property
    @abstractmethod
    def fitting(self) -> Refit | None:
        """The fits there are: kernel, noise and units are what the last one found; None where they stay as given."""

    @abstractmethod
    def check(self, policy: Policy) -> None:
        """Refuse policies in which this makes no sense."""

    @abstractmethod
    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> Bank | None:
        """The kernels to compare where this one is in use, on so many columns; None for this one alone.

        `more` is how many were added in the run, `noise_variance` as of `Bank`.
        """

    @abstractmethod
    def of_constraint(self, *, warp: str, given: bool) -> Learning:
        """For a constraint: fits warp by this, and of a noise that is not `given` for it they know nothing."""


class Refitted(NamedTuple):
    """What the posterior works with after a fit."""

    kernel: Kernel  # in the units of the points, on standardised rewards
    regularization: float
    scale: Standardization  # of the (warped) rewards: `mean` is that of the process, `std` that of the rewards
    warp: AnyWarp | None = None  # of the rewards, before anything else

    def plain(self) -> dict[str, Any]:
        """Plain JSON values, with every bit."""
        return {
            "kernel": to_plain(self.kernel), "regularization": self.regularization, "mean": self.scale.mean,
            "std": self.scale.std, "warp": to_plain(self.warp),
        }  # fmt: skip

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """What `plain` described.

        Raises:
            InvalidInput: it describes nothing of the kind.
        """
        plain, ridge, mean, std, warp = entries(
            values, kernel=dict, regularization=float, mean=float, std=float, warp=dict | None
        )  # fmt: skip
        kernel, bent = from_plain(plain), from_plain(warp)
        if not isinstance(kernel, Kernel) or not isinstance(bent, Warp | SignedLog | None):
            raise InvalidInput("this is no kernel, or no map of rewards.")
        return cls(kernel, number("regularization", ridge, low=0.0, open_low=True), Standardization(mean, std), bent)


@final
@described
@dataclass(frozen=True, kw_only=True)
class Refit(Learning):
    """Fit the kernel, the noise and a constant mean anew after every so many answers, from the policy's own kernel.

    A fit sees the first k * `every` answers, standardised, and points in shares of the domain's sides: a pure
    function of the record, which a replay repeats. Under the prior of Hvarfner et al. a kernel's scale is 1, the
    variance of standardised rewards, as with them; the scales of sums, whose shares matter, are fitted. The confidence
    bounds of a theorem are for a kernel that is given, so they are not called valid here.

    Attributes:
        every: answers between two fits.
        prior: "hvarfner" (Hvarfner et al. 2024, see `fitting.fit`) or "none" for maximum likelihood.
        restarts: random starts of each fit.
        outputs: "answered" fits to the rewards of answered trials; "own" to whatever the policy takes trials for, the
            censored or hallucinated values of unanswered ones included (as the code that Verma et al. 2022 released
            does).
        standardize: whether rewards are brought to mean 0 and standard deviation 1; otherwise they are taken as they
            are, less the policy's prior mean, which stays (likewise); the prior "hvarfner" is for standardised ones.
        growth: the next fit comes after `every` more answers or this share of all so far, whichever is later, so that a
            long run does not spend itself on fits; 0 for always `every`.
        warp: what becomes of rewards before they are standardised: "none", or "half-rank", which keeps those from the
            median up and takes the lower half for normal scores (`nilregret.gp.warping.half_rank`), so that outliers
            and
            cliffs do not hide the rest. The map is of the rewards that the fit saw, and undone in what is shown.
            "signed-log" is for constraint values: near 0 they stay, far away their logarithms count.
        noise: "fitted", from the policy's on; "unknown", from the mode of its prior on; or "given", the policy's, which
            stays, but for what is needed to compute with it where rewards are a million times larger. Of warped
            rewards it is that of those from the median up.
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
            prior=one_of("prior", self.prior, ["hvarfner", "none"]),
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
        """Itself."""
        return self

    def check(self, policy: Policy) -> None:
        """A kernel that has what a fit needs."""
        policy.kernel.rescaled(1.0 / sides(policy.domain, policy.context))

    def bank(self, kernel: Kernel, columns: int, more: int, noise_variance: float | None) -> None:
        """The last fit alone."""

    def of_constraint(self, *, warp: str, given: bool) -> Refit:
        """Rewards that are warped are those of the constraint by their signs."""
        named = warp if self.standardize and self.warp != "none" else "none"
        return replace(self, warp=named, noise="unknown" if self.noise == "given" and not given else self.noise)

    def fits(self, answers: int) -> int:
        """How many fits are due once so many answers count."""
        if not self.growth:
            return answers // self.every
        return int(bisect_right(_schedule(self.every, self.growth, answers), answers))

    def seen_by(self, fit: int) -> int:
        """How many answers the fit of this number, from 1, sees."""
        if not self.growth:
            return fit * self.every
        known = 2 * self.every
        while len(_schedule(self.every, self.growth, known)) < fit:
            known *= 2
        return _schedule(self.every, self.growth, known)[fit - 1]

    @with_one_thread
    def __call__(
        self,
        kernel: Kernel,
        rows: Array,
        rewards: Array,
        sides: Array,
        *,
        noise: float,
        seed: int,
        prior_mean: float = 0.0,
    ) -> Refitted:
        """The kernel and noise for rows `(n, d)` with these rewards `(n,)`, in a box of these sides `(d,)`.

        Where there is nothing to learn from (rewards all equal, fewer than three distinct points) the kernel and the
        noise stay as they are, and only the mean is fitted. But of unknown noise (`noise="unknown"`) neither the
        kernel's unit is known: then two points, or one, are fitted too, under the prior; under equal rewards the noise
        is the mode of its prior.
        """
        warp = WARPS[self.warp](rewards)
        rewards = rewards if warp is None else warp.to(rewards)
        scale = Standardization.of(rewards) if self.standardize else Standardization(prior_mean, 1.0)
        fewest = 1 if self.noise == "unknown" and self.prior != "none" else FEWEST
        if self.standardize and len(np.unique(rows, axis=0)) < fewest:  # the kernel that stays is in reward units
            scale = Standardization(scale.mean, 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoRegretWarning)  # said here once and for all, not after every few rounds
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
                bounds={"scale": (1.0, 1.0)} if self.prior == "hvarfner" and _multiplies(kernel, len(sides)) else None,
                fewest=fewest,
            )
        # A search sees good rewards more and more often: their average is not where the function lies elsewhere.
        shifted = Standardization(float(scale.back(found.mean)), scale.std)
        ridge = found.noise**2
        if self.noise == "given":
            ridge = max(ridge, 10.0 * LEAST_REGULARIZATION * float(found.kernel.diagonal(rows / sides).max()))
        return Refitted(found.kernel.rescaled(sides), ridge, shifted, warp)


@lru_cache(maxsize=64)
def _schedule(every: int, growth: float, answers: int) -> list[int]:
    """After how many answers each fit comes, up to at least so many."""
    counts = [every]
    while counts[-1] < answers:
        counts.append(counts[-1] + max(every, int(growth * counts[-1])))
    return counts


def _multiplies(kernel: Kernel, dimension: int) -> bool:
    """Whether the prior variance is the product of the kernel's scales, so that it is 1 where all of them are 1."""
    kinds = [parameter.kind for parameter in kernel.hyperparameters(range(dimension))]
    ones = np.where(np.array(kinds) == "scale", 0.0, kernel.log_parameters)
    return kernel.with_log_parameters(ones).variance == 1.0
