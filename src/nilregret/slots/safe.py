"""Constraints that no round may violate: only what is certified is played.

| symbol | name | meaning | shape |
|---|---|---|---|
| delta | `delta` | probability that a run violates anything | scalar |
| P(g_j > 0) | `risk` | posterior probability of a violation, summed over the constraints | (n,) |
| U_j | `limit.upper` | upper bounds of g_j | (n,) |
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np

from .._utils.checks import LARGEST_REWARD, Array, finite_array, number, one_of, settle
from .._utils.errors import InvalidInput, NoRegretError, NoRegretWarning
from .._utils.serialize import described
from ..domains.coordinates import named_points
from ..domains.domain import Domain
from ..domains.search.acquisition import AcquisitionFunction
from ..kernels import Kernel
from ..kernels.domains import prior_std
from .acquisition import PointView, TableView
from .base import Policy
from .constraint_state import DualState
from .constraints import Constraints, one_for
from .envelope import Envelope, checked_delta
from .feasibility import ANCHORS, AROUND, Mask, between, nearest, penalised, risk, violation
from .safety_state import SafetyState, among

SHARE = 0.2  # of the probability left to violate something that one point may take
MOST_GOALS, MOST_PLACES = 64, 128  # of a step towards what is not certified
INFORMS = 0.2  # prior deviations by which an answer must be able to move the goal, to be worth one
NO_SCALE = (
    "`scale` is missing: `Safe` certifies by how large the constraint is, and a unit variance would be a guess, of "
    "degrees, milliseconds or dollars a bad one. Give `scale`, a standard deviation of the constraint over the domain "
    "in its own units (about a quarter of its range), or a `kernel` of the constraint, or have it learned from small "
    "steps around `start` (`scale` 'learned')."
)


@final
@described
@dataclass(frozen=True, kw_only=True)
class Safe(Constraints):
    """No round may violate anything: only what is certified is played, besides `start`.

    With certificate="posterior" a point is certified where its probability to violate something, sum_j P(g_j > 0), is
    at most a fifth of what is left of delta; playing it for the first time takes its own probability off. It is settled
    then: whether it violates is no matter of further rounds. As each of these probabilities is one given what was known
    when the point was chosen, a run violates something with probability at most delta, whatever its length, for g_j
    that are samples of the Gaussian process and Gaussian noise of the variance told (the world of Srinivas et al. 2010,
    Theorem 1). With certificate="bounds" it is certified where U_j <= 0 for all j, by the bounds of `confidence` and
    under their assumptions; these hold at all points at once, so less is certified.

    A point at which the values told of some g_j are above 0 on average is certified no more, whatever the kernel, nor
    is one of `start`. Where nothing else is left, that of `start` is played whose values are lowest, and a warning says
    so. A value that lies more than 4 standard deviations from what was expected of it contradicts the prior (of a point
    told before, more than 6; of bounds, so much of the noise beyond them): from then on nothing new is certified.

    The goal is what `EveryRound` would play. Where it is certified it is played; else the certified point whose answer
    moves the constraints most at the best of the goals that answers within can reach at all, if one of these is better
    than what is certified (Turchetta et al. 2019, GoOSE, expand likewise only where it may pay); else the best
    certified one. What cannot be reached by certified steps is never played, however good.

    Attributes:
        start: points `(k, d)`, or dictionaries of parameters, that satisfy all constraints, whatever the context, for
            sure.
        scale: a standard deviation of each g_j over the domain, in its units: the kernel (the constraint's or the
            policy's) is brought to it; one for all or a tuple of m. Needed unless `kernel` is given. "learned": a large
            one, and a short lengthscale, given what was told (`nilregret.slots.sizes`); then nothing is proved, and the
            first steps are small. "kernel": as the kernel has it, for constraints in the units of the reward.
        certificate: "posterior" or "bounds"; the latter is for bounds of which something is proved.
        delta: probability that a run may violate anything; of certificate="posterior". A cut of the memory begins anew,
            and under a window what was first played before it counts no more: delta is then for as long as that.
    """

    start: tuple[tuple[float, ...], ...]
    scale: float | str | tuple[float | str, ...] | None = None
    certificate: str = "posterior"
    delta: float = 0.05

    hallucinates: ClassVar[bool] = False  # a variance that counts answers that are not there certifies nothing
    BEFORE: ClassVar[Mapping[str, object]] = {"scale": "kernel"}  # what descriptions meant that do not say

    def __post_init__(self) -> None:
        super().__post_init__()
        named = named_points(self.start)
        if named is None:
            points = finite_array("start", self.start)
            points = points[None] if points.ndim == 1 else points
            if points.ndim != 2 or not points.size:
                raise InvalidInput(
                    f"`start` has shape {points.shape}: it must be points `(k, d)` that satisfy all constraints for "
                    "sure, or dictionaries of parameters. Without one nothing can be played safely."
                )
            settle(self, start=tuple(map(tuple, points.tolist())))
        else:  # encoded by the policy, which has the domain
            settle(self, start=tuple(map(dict, named)))
        if self.scale is not None:
            sizes = [_checked_scale(scale) for scale in self._listed("scale", self.scale)]
            settle(self, scale=tuple(sizes) if isinstance(self.scale, tuple | list) else sizes[0])
        if any(self.learns(j) and one_for(self.prior_mean, j) for j in range(self.count)):
            raise InvalidInput(
                "`scale` 'learned' is learned from how far the values told lie from the border, and a `prior_mean` "
                "says where the constraint lies although nobody has looked: leave it out, or give `scale`."
            )
        settle(
            self,
            certificate=one_of("certificate", self.certificate, ["posterior", "bounds"]),
            delta=checked_delta(self.delta),
        )

    def within(self, domain: Domain) -> Safe:
        """The points of `start` as the domain has them: encoded, and to the last digit."""
        try:
            points = domain.inside("start", self.start)
        except InvalidInput as error:
            raise error.within("start").within("constraints") from error
        return replace(self, start=tuple(map(tuple, points.tolist())))

    def kernel_of(self, policy: Policy, j: int) -> Kernel:
        """Of constraint j, counted from 0: brought to the scale that was told."""
        kernel, scale = super().kernel_of(policy, j), one_for(self.scale, j)
        if not isinstance(scale, float):
            return kernel
        return (scale / prior_std(policy.domain, policy.context, kernel)) ** 2 * kernel

    def takes_ridge(self, policy: Policy) -> bool:
        """For bounds by a theorem that has one of its own; a posterior is one of the noise told."""
        return self.certificate == "bounds" and (policy.confidence.own_ridge or self.noise is None)

    def learns(self, j: int) -> bool:
        """Whether the size of constraint j, counted from 0, is learned with caution."""
        return bool(one_for(self.scale, j) == "learned")

    def check(self, policy: Policy) -> None:
        """Sizes that are known, functions that stay, a kernel that is given, no forced rounds, bounds that hold."""
        super().check(policy)
        if self.scale is None and self.kernel is None:
            raise InvalidInput(
                NO_SCALE,
                advice="Such as `nr.Safe(start=points, scale=25.0, noise=0.5)`.",
                places=("constraints",),
            )
        if policy.explore.ever:
            raise InvalidInput(
                f"`{type(policy.explore).__name__}` forces rounds that nothing has certified, and `Safe` plays nothing "
                "else: leave `explore` out, or take `EveryRound`."
            )
        if policy.refit is not None:
            raise InvalidInput(
                "`Safe` certifies by a kernel that is given; one that is learned certifies nothing. Leave `refit` out, "
                "or take `EveryRound`."
            )
        if policy.memory.drift() is not None:
            raise InvalidInput(
                f"Under `{type(policy.memory).__name__}` what was certified may have drifted by the next round: `Safe` "
                "takes restarts and windows, or take `EveryRound`."
            )
        if self.noise is None and getattr(policy.confidence, "noise", 0.0) is None:
            raise InvalidInput(
                "`Safe` certifies by the noise of the constraint values, and nobody has told it (`noise` 'unknown'): "
                "give it, in the units of the constraint.",
                advice="Such as `nr.Safe(start=points, scale=25.0, noise=0.5)`.",
            )
        if self.certificate == "bounds":
            self._check_bounds(policy)

    def _check_bounds(self, policy: Policy) -> None:
        for j in range(self.count):
            bounds = policy.of_channel(j + 1)
            if self.learns(j) or bounds.valid_for == "none":
                refusal = InvalidInput(
                    f"`certificate` 'bounds' certifies by bounds that hold, and nothing is proved for those of "
                    f"constraint {j + 1} (`valid_for` is 'none'): `{type(bounds.confidence).__name__}` with lambda "
                    f"{bounds.regularization:.6g}, noise {bounds.noise:.6g}"
                    f"{' and a scale that is learned' if self.learns(j) else ''}. Usually the width is no theorem's, "
                    "lambda is not the theorem's, or the memory forgets. Take `certificate` 'posterior', or give the "
                    "policy a width that is proved.",
                    advice="Such as those of `gp_ucb`.",
                )
                if self.scale != "kernel":
                    raise refusal
                warnings.warn(NoRegretWarning(refusal.what), stacklevel=2)  # a stored study opens all the same

    def begin(self) -> DualState:
        """Nothing settled, nothing risked."""
        learned = any(self.learns(j) for j in range(self.count))
        return SafetyState(np.array(self.start), self.delta, bounded=self.certificate == "bounds", learned=learned)

    def judged(self, scores: Array, view: TableView | PointView) -> Array:
        """Certified ones, by score or by what they say about a goal."""
        limits = view.limits()
        safe, unsafe = self._safe(limits, view.points, view.dual_state, view.context)
        if not (safe & np.isfinite(scores)).any():
            return self._least_unsafe(scores, view)
        settled = self._settled(view.points, view.dual_state, view.context)
        hoped = np.where(~unsafe & (settled | (violation(limits, view.limit_sizes) <= 0.0)), scores, -np.inf)
        certified = np.where(safe, scores, -np.inf)
        goal = int(hoped.argmax())
        if not np.isfinite(hoped[goal]) or safe[goal] or np.isneginf(self._accepted(view.dual_state)):
            return certified
        place = self._step(certified, np.where(safe, -np.inf, hoped), view)
        if place is None:
            return certified
        chosen = np.full(len(scores), -np.inf)
        chosen[place] = 0.0
        return chosen

    def _least_unsafe(self, scores: Array, view: TableView | PointView) -> Array:
        """Of the points of `start` that may be played, the one whose values are lowest; errors where there is none."""
        state = view.dual_state
        found = np.full(len(scores), -np.inf)
        for place in np.flatnonzero(self._started(view.points) & np.isfinite(scores)):
            told = state.average_at(view.context, view.points[place]) if isinstance(state, SafetyState) else None
            found[place] = 0.0 if told is None else -float((told / view.limit_sizes).max())
        if np.isneginf(found).all() and np.isfinite(scores).any():
            raise NoRegretError(
                "Nothing that may be played now is certified as safe, so there is nothing left: the points of `start` "
                "are not among it, or have failed. Let more be played, or begin again with another `start`."
            )
        return found

    def _step(self, certified: Array, hoped: Array, view: TableView | PointView) -> int | None:
        """The certified point whose answer moves the best of the goals within reach most; None where none is worth it.

        Args:
            certified: scores `(n,)`, -inf where nothing is certified.
            hoped: scores of the others that may satisfy all constraints, likewise.
            view: of the round.
        """
        limits = view.limits()
        goals = np.flatnonzero(hoped > certified.max(initial=-np.inf))
        places = np.flatnonzero(np.isfinite(certified))
        if not len(goals) or not len(places):
            return None
        doubt = self._doubt(limits)
        goals = goals[np.argsort(doubt[goals], kind="stable")[:MOST_GOALS]]  # nearly certified: within reach, if any
        spread = np.max([limit.std / size for limit, size in zip(limits, view.limit_sizes, strict=True)], axis=0)
        places = places[np.argsort(-spread[places], kind="stable")[:MOST_PLACES]]
        accepted = self._accepted(view.dual_state)
        open_ = np.array([self._doubt([limit])[goals] for limit in limits]) > accepted / len(limits)
        moves = (view.informs(places, goals) * open_[:, None, :]).max(axis=0)  # what is certified needs no answers
        reached = np.where(moves.max(axis=0) >= INFORMS, hoped[goals], -np.inf)
        best = int(reached.argmax())
        return None if np.isneginf(reached[best]) else int(places[moves[:, best].argmax()])

    def on_points(self, surface: AcquisitionFunction, view: PointView) -> AcquisitionFunction:
        """The goal: as of `EveryRound`."""
        return penalised(surface, view)

    def placed(self, point: Array, surface: AcquisitionFunction, view: PointView) -> Array:
        """The goal if it is certified; else one of the certified points around, judged as arms are."""
        started = np.array(self.start)
        everywhere = np.concatenate([view.tried(), view.points])
        around = np.concatenate([nearest(at, everywhere, view, AROUND) for at in (point, *started[:ANCHORS])])
        anchors = np.concatenate([started, around])
        safe, _ = self._safe(view.limits(anchors), anchors, view.dual_state, view.context)
        paths = between(point, nearest(point, anchors[safe], view, ANCHORS), view)
        candidates = np.unique(np.concatenate([point[None], anchors, paths]), axis=0)
        here = view.at(candidates)
        return np.asarray(candidates[int(self.judged(surface.values(candidates), here).argmax())].copy())

    def _accepted(self, state: DualState) -> float:
        """How large a doubt may be; -inf where nothing new is certified."""
        if not isinstance(state, SafetyState) or state.closed:
            return -math.inf
        return SHARE * state.remaining_delta if self.certificate == "posterior" else 0.0

    def _doubt(self, limits: Sequence[Envelope]) -> Array:
        """Sum_j P(g_j > 0), or max_j U_j, `(n,)`."""
        if self.certificate == "bounds":
            return np.asarray(np.max([limit.upper for limit in limits], axis=0))
        return risk(limits)

    def _safe(
        self, limits: Sequence[Envelope], points: Array, state: DualState, context: Array | None
    ) -> tuple[Mask, Mask]:
        """Which points are certified, or settled; and which are neither as what was told there says otherwise."""
        unsafe = among(points, state.unsafe_points(context) if isinstance(state, SafetyState) else [])
        safe = self._settled(points, state, context) | (self._doubt(limits) <= self._accepted(state))
        return safe & ~unsafe, unsafe

    def _started(self, points: Array) -> Mask:
        """Which of some points are those of `start`, `(n,)`."""
        return among(points, self.start)

    def _settled(self, points: Array, state: DualState, context: Array | None) -> Mask:
        """Which points need no certificate (any more), `(n,)`."""
        settled = state.certified_points(context) if isinstance(state, SafetyState) else []
        return self._started(points) | among(points, settled)

    def certain(self, limits: Sequence[Envelope], points: Array, state: DualState, context: Array | None) -> Array:
        """Whether a point is certified, or settled, now: 1.0 or 0.0."""
        return self._safe(limits, points, state, context)[0].astype(np.float64)


def _checked_scale(scale: object) -> float | str:
    """A standard deviation, or a word."""
    if isinstance(scale, str):
        why = "Or give a standard deviation of the constraint over the domain, in its units."
        return one_of("scale", scale, ["learned", "kernel"], advice=why)
    why = "It is a standard deviation of the constraint over the domain, in its units."
    return number("scale", scale, low=0.0, high=LARGEST_REWARD, open_low=True, why=why)
